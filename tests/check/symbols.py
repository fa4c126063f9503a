#!/usr/bin/env python3
"""Global symbols: what a library defines bears the library's prefix, and no name is defined twice in the
programs that are linked of them.

Usage: symbols.py BUILD (at the top of the tree; BUILD holds the objects and libraries)
Prints a line per breach, exit code 1 if there is any.
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import rooms  # noqa: E402

# What a library's names begin with. The engine's inner names are local to its archive: see the Makefile.
ARCHIVES = {"lib/libvellum-storage.a": r"store_"}
FOLDERS = {"protocol": r"resp_|rdma_", "rdma-ext": r"rdma_", "clients": r"vellum_"}
# Linked together, with the engine's inner names where the compiler optimizes over all files.
PROGRAM = ("server", "storage", "protocol", "rdma-ext")


def defined(build, folder):
    """(source, name) of each global symbol that the folder's objects define."""
    return [(path, name) for path, kind, name in rooms.symbols(build, rooms.sources(folder))
            if kind.isupper() and kind not in "UWV" and name != "main"]


def archive_breaches(build):
    for archive, prefix in ARCHIVES.items():
        path = os.path.join(build, archive)
        if not os.path.exists(path):
            yield f"{path}: is not there"
            continue
        done = subprocess.run(["nm", "-g", "--defined-only", path], capture_output=True, text=True, check=True)
        for name in re.findall(r"^\S+ \w (\w+)$", done.stdout, re.M):
            if not re.match(prefix, name):
                yield f"{archive} defines {name}, which does not begin with {prefix}"


def prefix_breaches(build):
    for folder, prefix in FOLDERS.items():
        for path, name in defined(build, folder):
            if not re.match(prefix, name):
                yield f"{path} defines {name}, which does not begin with {prefix}"


def duplicates(build):
    first = {}
    for folder in PROGRAM:
        for path, name in defined(build, folder):
            if first.setdefault(name, path) != path:
                yield f"{path} defines {name}, as {first[name]} does"


def main(arguments):
    build = arguments[0]
    lines = [*archive_breaches(build), *prefix_breaches(build), *duplicates(build)]
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
