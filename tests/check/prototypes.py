#!/usr/bin/env python3
"""A prototype stands in the header of the file that defines the function: `x.h` beside `x.c`. Who looks for
a function's file or its contract then finds both by one name, and a source sees no more than it includes.

Usage: prototypes.py BUILD (at the top of the tree; BUILD holds the objects)
Prototypes are read off the sources, definitions off the symbols of the objects; what no object defines
(a build without verbs, a function of one kind of build) is looked for in the text. Prints a line per
breach, exit code 1 if there is any.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import rooms  # noqa: E402

# The faces of libraries: header, and the folder anywhere in which its functions are defined.
FACES = {"storage/store.h": "storage/", "storage/collections.h": "storage/", "storage/ordered.h": "storage/",
         "protocol/resp.h": "protocol/", "clients/vellum.h": "clients/"}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.S)
# Return type and name: no type, no prototype but the use of a macro.
PROTOTYPE = re.compile(r"(?:\w+[\s*]+)+?(\w+)\s*\(")
OTHER = re.compile(r"typedef\b|static\b|_?[Ss]tatic_assert\b")


def outside_braces(text):
    """The text at the top level of a file, where a block leaves `{}`; after a body a `;`. What is in
    `extern "C"` is at the top level."""
    kept, depth, transparent = [], 0, 0
    for part in re.split(r"([{}])", text):
        if part == "{" and depth == 0 and "".join(kept).rstrip().endswith("extern"):
            kept.append(";")
            transparent += 1
        elif part == "{":
            depth += 1
        elif part == "}" and depth == 0 and transparent > 0:
            transparent -= 1
        elif part == "}":
            depth -= 1
            if depth == 0:
                kept.append("{}")
        elif depth == 0:
            if kept and kept[-1] == "{}" and not part.lstrip().startswith((";", "=", ",")):
                kept.append(";")
            kept.append(part)
    return "".join(kept)


def prototypes(text):
    """The names of the functions that a file declares and does not define."""
    for pattern in (COMMENT, STRING, DIRECTIVE, ATTRIBUTE):
        text = pattern.sub(" ", text)
    for statement in outside_braces(text).split(";"):
        statement = statement.strip()
        found = PROTOTYPE.match(statement)
        if found and "{}" not in statement and "=" not in statement and not OTHER.match(statement):
            yield found.group(1)


def definitions(build, files):
    """{function: sources that define it}."""
    defined = {}
    for path, kind, name in rooms.symbols(build, files):
        if kind in "TW":
            defined.setdefault(name, []).append(path)
    return defined


def stands_in_text(path, name):
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as file:
        return re.search(rf"\b{name}\(", file.read()) is not None


def breach(path, name, sources):
    own = path[:-2] + ".c"
    if path.endswith(".c"):
        return f"{path} declares {name}: a prototype stands in a header"
    if path in FACES:
        sources = sources or [source for source in rooms.sources(FACES[path])
                              if source.endswith(".c") and stands_in_text(source, name)]
        if not any(source.startswith(FACES[path]) for source in sources):
            return f"{path} declares {name}, which nothing in {FACES[path]} defines"
    elif sources and own not in sources:
        return f"{path} declares {name}, which {sources[0]} defines: it belongs in {sources[0][:-2]}.h"
    elif not sources and not stands_in_text(own, name):
        return f"{path} declares {name}, which nothing defines"
    return None


def complaints(build):
    files = [path for folder in rooms.ALL_FOLDERS for path in rooms.sources(folder)]
    defined = definitions(build, files)
    for path in files:
        with open(path, encoding="utf-8") as file:
            for name in prototypes(file.read()):
                if line := breach(path, name, defined.get(name, [])):
                    yield line


if __name__ == "__main__":
    sys.exit(rooms.report(complaints(sys.argv[1])))
