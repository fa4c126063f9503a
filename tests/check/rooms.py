#!/usr/bin/env python3
"""The rooms of server/ and storage/: layers in one order, which the README of each folder gives, the
lowest first. A file includes and calls its own room and lower ones. Within a room, and in a folder
without rooms, no more than CIRCLE_MOST files form a circle, in which each calls all others, directly or
through them.

Usage: rooms.py BUILD (at the top of the tree; BUILD holds the objects)
Includes are read off the sources, calls off the symbols of the objects. Prints a line per breach, exit
code 1 if there is any.
"""

import os
import re
import subprocess
import sys

FOLDERS = ("server", "storage")
ALL_FOLDERS = ("protocol", "storage", "server", "rdma-ext", "clients")
CIRCLE_MOST = 4
# The library's face: part of no room.
PUBLIC = {"storage/store.h", "storage/collections.h", "storage/ordered.h"}
ROOM = re.compile(r"^\| `(\w+)/` \|")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def rooms_of(folder):
    """The order of the rooms, as its README has it."""
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        return [found.group(1) for line in file if (found := ROOM.match(line))]


def sources(folder):
    return sorted(os.path.join(root, name) for root, _, names in os.walk(folder)
                  for name in names if name.endswith((".c", ".h")))


class Folder:
    def __init__(self, name):
        self.name = name
        self.rooms = rooms_of(name)
        self.files = sources(name)

    def room(self, path):
        """Of a file of this folder: the room's name, or "" at its top, which is above all rooms."""
        parts = path.split("/")
        return parts[1] if len(parts) > 2 else ""

    def height(self, path):
        room = self.room(path)
        return self.rooms.index(room) if room else len(self.rooms)

    def unknown_rooms(self):
        found = {self.room(path) for path in self.files} - {""}
        for room in sorted(found ^ set(self.rooms)):
            yield f"{self.name}/{room}/: a room, or a row of {self.name}/README.md, but not both"

    def includes(self):
        """(file, header) of each include within the folder."""
        for path in self.files:
            with open(path, encoding="utf-8") as file:
                for target in INCLUDE.findall(file.read()):
                    if target.startswith(self.name + "/") and target not in PUBLIC:
                        yield path, target

    def calls(self, build):
        """(file, file, symbol) of each use of another file's symbol within the folder."""
        defined, used = {}, []
        for path, kind, symbol in symbols(build, self.files):
            if kind == "U":
                used.append((path, symbol))
            elif kind.isupper():
                defined[symbol] = path
        for path, symbol in used:
            if defined.get(symbol, path) != path:
                yield path, defined[symbol], symbol

    def breaches(self, build):
        for path, target in self.includes():
            if self.height(target) > self.height(path):
                yield f"{path} includes {target}"
        for path, target, symbol in self.calls(build):
            if self.height(target) > self.height(path):
                yield f"{path} uses {symbol} of {target}"


class Plain(Folder):
    """A folder without rooms."""

    def __init__(self, name):
        self.name, self.rooms, self.files = name, [], sources(name)


def folder_of(name):
    return Folder(name) if name in FOLDERS else Plain(name)


def circles(edges):
    """The strongly connected sets of a graph {node: nodes it leads to}, the largest first. Tarjan's
    algorithm with a stack of its own."""
    order, low, stack, found = {}, {}, [], []
    for start in sorted(edges):
        if start in order:
            continue
        order[start] = low[start] = len(order)
        stack.append(start)
        work = [(start, iter(sorted(edges[start])))]
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    work.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in stack:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    cut = stack.index(node)
                    found.append(sorted(stack[cut:]))
                    del stack[cut:]
    return sorted(found, key=lambda c: (-len(c), c))


def call_graph(folder, build):
    edges = {path: set() for path in folder.files if path.endswith(".c")}
    for path, target, _ in folder.calls(build):
        edges[path].add(target)
    return edges


def large_circles(folder, build):
    for circle in circles(call_graph(folder, build)):
        room = os.path.dirname(circle[0])
        if len(circle) > CIRCLE_MOST:
            names = ", ".join(os.path.basename(path) for path in circle)
            yield f"{room}/: {len(circle)} files in one circle, at most {CIRCLE_MOST} may be: {names}"


def symbols(build, paths):
    """(source, kind, name) triples from nm; nothing of a source that this build leaves out."""
    objects = {os.path.join(build, "obj", path[:-2] + ".o"): path
               for path in paths if path.endswith(".c")}
    there = [path for path in objects if os.path.exists(path)]
    if not there:
        return []
    done = subprocess.run(["nm", "-A", *there], capture_output=True, text=True, check=True)
    split = (line.partition(":") for line in done.stdout.splitlines())
    return [(objects[path], *rest.split()[-2:]) for path, _, rest in split]


def complaints(build):
    folders = [Folder(name) for name in FOLDERS]
    unknown = [line for folder in folders for line in folder.unknown_rooms()]
    if not os.path.isdir(os.path.join(build, "obj")):
        unknown.append(f"{build}/obj: no objects, whose symbols show the calls")
    if unknown:
        yield from unknown
        return
    for folder in folders:
        for breach in sorted(set(folder.breaches(build))):
            yield f"{breach}, which is above it"
    for name in ALL_FOLDERS:
        if os.path.isdir(name):
            yield from large_circles(folder_of(name), build)


def report(lines):
    """Prints the complaints; returns the exit code."""
    lines = list(lines)
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(report(complaints(sys.argv[1])))
