#!/usr/bin/env python3
"""Figures of the code's shape: how large rooms and functions are, and what hangs together.

Usage: figures.py BUILD (at the top of the tree; BUILD holds the objects)
Prints tables and judges nothing: rooms.py and rules.py hold the limits. `lines` are those of the
function's body with its braces. A circle is a set of sources each of which calls, directly or through
others, all of the set (symbols of the objects); `widest header` is the one of the folder's own, but
for `storage/store.h`, that most of its sources include, directly or through other headers.
"""

import os
import re
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import rooms  # noqa: E402
import rules  # noqa: E402

ASSERT = re.compile(r"\b(?:assert|static_assert|_Static_assert)\s*\(")


def includes_of(path):
    with open(path, encoding="utf-8") as file:
        for target in rooms.INCLUDE.findall(file.read()):
            if "/" not in target:
                target = os.path.join(os.path.dirname(path), target)
            if os.path.exists(target):
                yield target


def reached_headers(path):
    """Every header of the tree that a source sees."""
    seen, work = set(), [path]
    while work:
        for target in includes_of(work.pop()):
            if target not in seen:
                seen.add(target)
                work.append(target)
    return seen


def widest_header(name, paths):
    """(header, how many of the sources see it), of the folder's own headers but its public one."""
    seen = {}
    for path in paths:
        for header in reached_headers(path) - rooms.PUBLIC:
            if header.startswith(name + "/"):
                seen[header] = seen.get(header, 0) + 1
    return min(seen.items(), key=lambda item: (-item[1], item[0])) if seen else ("-", 0)


class Shape:
    """Of some files: functions with their lines, asserts."""

    def __init__(self, paths):
        self.functions, self.asserts = [], 0
        for path in paths:
            source = rules.Source(path)
            self.functions += [(last - first + 1, name, path) for name, first, last in source.functions()]
            self.asserts += sum(len(ASSERT.findall(line)) for line in source.lines)

    def median(self):
        return statistics.median(length for length, _, _ in self.functions) if self.functions else 0

    def longest(self):
        return max(self.functions, default=(0, "-", "-"))

    def asserts_per_function(self):
        return self.asserts / len(self.functions) if self.functions else 0.0


def print_folder(folder, build):
    sources = [path for path in folder.files if path.endswith(".c")]
    graph = rooms.call_graph(folder, build)
    circle = [c for c in rooms.circles(graph) if len(c) > 1]
    header, seen = widest_header(folder.name, sources)
    shape = Shape(folder.files)
    length, name, path = shape.longest()
    print(f"{folder.name}/")
    print(f"  sources            {len(sources)}, headers {len(folder.files) - len(sources)}")
    print(f"  largest circle     {len(circle[0]) if circle else 0} sources"
          f" ({len(circle)} circles, {sum(map(len, circle))} sources in them)")
    print(f"  widest header      {header}: {seen} of {len(sources)} sources see it")
    print(f"  functions          {len(shape.functions)}: median {shape.median():g} lines,"
          f" longest {length} ({name} in {path})")
    print(f"  asserts            {shape.asserts}: {shape.asserts_per_function():.2f} per function")


def print_rooms(folder):
    print(f"  {'room':<18} {'.c':>4} {'.h':>4} {'functions':>10} {'median':>7} {'asserts each':>13}")
    for room in folder.rooms + [""]:
        paths = [path for path in folder.files if folder.room(path) == room]
        shape = Shape(paths)
        sources = sum(path.endswith(".c") for path in paths)
        print(f"  {room + '/' if room else '(top)':<18} {sources:>4} {len(paths) - sources:>4}"
              f" {len(shape.functions):>10} {shape.median():>7g} {shape.asserts_per_function():>13.2f}")


def main(arguments):
    build = arguments[0]
    for name in rooms.ALL_FOLDERS:
        if not os.path.isdir(name):
            continue
        folder = rooms.folder_of(name)
        print_folder(folder, build)
        if folder.rooms:
            print_rooms(folder)
    breaches = [breach for name in rooms.FOLDERS if os.path.isdir(name)
                for breach in rooms.Folder(name).breaches(build)]
    calls = sum(" uses " in breach for breach in breaches)
    print(f"upward calls: {calls}, upward includes: {len(breaches) - calls}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
