#!/usr/bin/env python3
"""The rooms of server/ and storage/: layers in one order, which the README of each folder gives, the
lowest first. A file includes and calls its own room and lower ones.

Usage: rooms.py BUILD [--list] (at the top of the tree; BUILD holds the objects)
Includes are read off the sources, calls off the symbols of the objects. A breach that stands in
known_breaches.txt is excused; one that stands there and is none any more has to be taken out. Prints
a line per complaint, exit code 1 if there is any; --list prints all breaches as that file has them.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KNOWN = os.path.join(HERE, "known_breaches.txt")
FOLDERS = ("server", "storage")
# The library's face: part of no room.
PUBLIC = {"storage/store.h"}
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
        for path in self.files:
            if path.endswith(".c"):
                for kind, symbol in symbols(os.path.join(build, "obj", path[:-2] + ".o")):
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


def symbols(path):
    """(kind, name) pairs from nm; empty for a source that this build leaves out."""
    if not os.path.exists(path):
        return []
    done = subprocess.run(["nm", path], capture_output=True, text=True, check=True)
    return [tuple(line.split()[-2:]) for line in done.stdout.splitlines()]


def known():
    if not os.path.exists(KNOWN):
        return set()
    with open(KNOWN, encoding="utf-8") as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def complaints(build):
    folders = [Folder(name) for name in FOLDERS]
    unknown = [line for folder in folders for line in folder.unknown_rooms()]
    if unknown:
        yield from unknown
        return
    found = {breach for folder in folders for breach in folder.breaches(build)}
    for breach in sorted(found - known()):
        yield f"{breach}, which is above it"
    for breach in sorted(known() - found):
        yield f"{KNOWN}: no breach any more: {breach}"


def main(arguments):
    build = arguments[0]
    if "--list" in arguments:
        lines = sorted(b for name in FOLDERS for b in Folder(name).breaches(build))
    else:
        lines = list(complaints(build))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
