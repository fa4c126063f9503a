"""Names in the documents: what a Markdown file calls a file, a folder or a function has to exist.

In backticks, outside of indented blocks:
  `storage/txn/load.c`, `cmd_*.c`, `exec/`   a file or folder: from the top of the tree, from the
                                             document's folder, or by its last part alone
  `load.c:load_page`                         a function (or, in a header, a struct or a name) in it
  `load_page()`                              a function that some source of the tree defines
and the targets of Markdown links, with their anchors. Each decision is listed in ARCHITECTURE. Files are known by their extension, so that
`db0/name` or `GET key` is not taken for one."""

import fnmatch
import os
import re

QUOTED = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
EXTENSION = r"\.(?:c|h|def|py|md|sh|js|1|3|in)"
FILE = re.compile(rf"^[\w*./{{}},-]*\w?[\w*-]{EXTENSION}$")
FOLDER = re.compile(r"^(?:[\w-]+/)+$")
PLACE = re.compile(rf"^([\w*./-]+{EXTENSION}):([A-Za-z_]\w*)$")
CALL = re.compile(r"^([a-z]\w*_\w+)\(\)$")
HEADING = re.compile(r"^#+ +(.*)$")


class Tree:
    """What there is to be named: `paths`, and per C file the functions it defines."""

    def __init__(self, paths, defined):
        self.paths = sorted(paths)
        self.defined = defined
        self.functions = {name for names in defined.values() for name in names}
        self.folders = {os.path.dirname(path) for path in paths}
        for folder in list(self.folders):
            while folder := os.path.dirname(folder):
                self.folders.add(folder)

    def files(self, document, name):
        """The files that a document may mean by a name."""
        near = os.path.normpath(os.path.join(os.path.dirname(document), name))
        wanted = [near, name] + ([] if name.startswith("/") else ["*/" + name])
        return [path for path in self.paths if any(fnmatch.fnmatchcase(path, w) for w in wanted)]

    def has_folder(self, document, name):
        name = name.rstrip("/")
        near = os.path.normpath(os.path.join(os.path.dirname(document), name))
        return any(folder in (near, name) or folder.endswith("/" + name) for folder in self.folders)

    def has_in(self, paths, name):
        for path in paths:
            if name in self.defined.get(path, ()):
                return True
            if not path.endswith(".c"):
                with open(path, encoding="utf-8") as file:
                    if re.search(rf"\b{name}\b", file.read()):
                        return True
        return False


def complaint(tree, document, text):
    """What is wrong with a quoted piece of text, or None."""
    if found := PLACE.match(text):
        files = tree.files(document, found.group(1))
        if not files:
            return f"no file {found.group(1)}"
        if not tree.has_in(files, found.group(2)):
            return f"{found.group(1)} does not define {found.group(2)}"
    elif found := CALL.match(text):
        if found.group(1) not in tree.functions:
            return f"no function {found.group(1)}"
    elif FILE.match(text):
        if not tree.files(document, text):
            return f"no file {text}"
    elif FOLDER.match(text) and not tree.has_folder(document, text):
        return f"no folder {text}"
    return None


def anchors(path):
    """The anchors of a document's headings, as GitHub makes them."""
    with open(path, encoding="utf-8") as file:
        titles = [found.group(1) for line in file if (found := HEADING.match(line))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def dead_link(document, target):
    if re.match(r"[a-z]+:", target):
        return False
    name, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(document), name)) if name else document
    if not os.path.exists(path):
        return True
    return bool(anchor) and path.endswith(".md") and anchor not in anchors(path)


def document_breaches(tree, document, made):
    """`made` are folders and files that only a run or a build makes."""
    with open(document, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("    "):
                continue
            for text in QUOTED.findall(line):
                if not any(fnmatch.fnmatchcase(text, name) for name in made):
                    if wrong := complaint(tree, document, text):
                        yield f"{document}:{number}: {wrong}"
            for target in LINK.findall(line):
                if dead_link(document, target):
                    yield f"{document}:{number}: leads nowhere: {target}"


# Made by a build, or somebody else's: not in the tree.
ELSEWHERE = ["build/*", "./vellum-data*", "*redis.h", "rdma.c", "t_*.c"]


LIST_OF_DECISIONS = "ARCHITECTURE.md"


def unlisted_decisions(tree):
    """Decisions to which the list of all has no link."""
    decisions = [path for path in tree.paths if fnmatch.fnmatchcase(path, "*/decisions/*.md")]
    if decisions:
        with open(LIST_OF_DECISIONS, encoding="utf-8") as file:
            listed = set(LINK.findall(file.read()))
        yield from (f"{path}: not listed in {LIST_OF_DECISIONS}" for path in decisions if path not in listed)


def breaches(paths, defined):
    tree = Tree(paths, defined)
    yield from unlisted_decisions(tree)
    for document in tree.paths:
        if document.endswith(".md"):
            yield from document_breaches(tree, document, ELSEWHERE)
