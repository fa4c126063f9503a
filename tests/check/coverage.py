#!/usr/bin/env python3
"""Coverage by room: what the tests have run of each, and the error paths that none of them ran.

Usage: coverage.py BUILD [--lines] (at the top of the tree; BUILD was made with COVERAGE=1, and tests
have run in it)
Reads the counts with gcc's gcov. Prints lines and branches per room, then each line of an error path
that was never executed: one that returns a failure, leaves by goto or logs. --lines lists all lines
that were never executed instead. Judges nothing: the list is to be read.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ERROR_PATH = re.compile(
    r"return (?:false|NULL|-\d|-errno|(?:\w*_)?(?:FAILED|DAMAGED|NO_MEMORY|IO_ERROR|ERROR|FULL|REFUSED))\b"
    r"|return STORE_(?!OK|WAIT|ABSENT)\w+"
    r"|\bgoto \w+;|\b(?:log_\w+|\w*fail\w*|\w*error\w*|\w*refuse\w*)\(")


def counts_of(notes):
    """gcov's account of one object, whether it was run or not."""
    done = subprocess.run(["gcov", "--branch-probabilities", "--json-format", "--stdout", notes],
                          capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def gather(build):
    """{path: {line: (times, branches taken, branches)}} of the tree's own files but the tests'. What
    several objects have of a header is added up."""
    found = {}
    notes = sorted(os.path.join(root, name) for root, _, names in os.walk(os.path.join(build, "obj"))
                   for name in names if name.endswith(".gcno"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for accounts in pool.map(counts_of, notes):
            for file in (file for account in accounts for file in account["files"]):
                path = os.path.relpath(file["file"])
                if not path.startswith(("/", "..", "tests/")):
                    add(found.setdefault(path, {}), file["lines"])
    return found


def add(lines, new):
    for line in new:
        taken = [branch["count"] > 0 for branch in line["branches"]]
        times, before = lines.get(line["line_number"], (0, []))
        if len(before) == len(taken):
            taken = [a or b for a, b in zip(before, taken)]
        elif len(before) > len(taken):
            taken = before
        lines[line["line_number"]] = (times + line["count"], taken)


def room_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def print_rooms(found):
    rooms = {}
    for path, lines in found.items():
        for name in (room_of(path), "all"):
            room = rooms.setdefault(name, [0, 0, 0, 0])
            room[0] += sum(times > 0 for times, _ in lines.values())
            room[1] += len(lines)
            room[2] += sum(sum(taken) for _, taken in lines.values())
            room[3] += sum(len(taken) for _, taken in lines.values())
    print(f"{'room':<22} {'lines':>7} {'run':>7} {'branches':>9} {'taken':>7}")
    for name in sorted(rooms, key=lambda n: (n == "all", n)):
        run, lines, taken, branches = rooms[name]
        print(f"{name:<22} {lines:>7} {share(run, lines):>7} {branches:>9} {share(taken, branches):>7}")


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def never_run(found, everything):
    """path:line: text of each line that was never executed."""
    for path in sorted(found):
        with open(path, encoding="utf-8") as file:
            text = file.read().splitlines()
        for number, (times, _) in sorted(found[path].items()):
            if times == 0 and (everything or ERROR_PATH.search(text[number - 1])):
                yield f"{path}:{number}: {text[number - 1].strip()}"


def main(arguments):
    found = gather(arguments[0])
    if not any(times for lines in found.values() for times, _ in lines.values()):
        print(f"coverage: nothing of {arguments[0]} was run")
        return 1
    print_rooms(found)
    lines = list(never_run(found, "--lines" in arguments))
    print(f"\n{'Lines' if '--lines' in arguments else 'Lines of error paths'} that no test ran: {len(lines)}")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
