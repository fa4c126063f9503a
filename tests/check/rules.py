#!/usr/bin/env python3
"""The rules of the house that can be read off the text: layers, sizes, names in
the documents.

Usage: rules.py FILE... (paths relative to the working directory, the top of the tree).
Prints a line per breach; exit code 1 if there is any.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import documents  # noqa: E402

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
FILE_BYTES_MAX = 1000000

TOP_LEVEL = {
    "Makefile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE",
    "server", "protocol", "rdma-ext", "storage", "tests", "clients", "benchmarks",
}

LIBC = set("""
    alloca.h assert.h ctype.h dirent.h endian.h errno.h fcntl.h float.h fnmatch.h getopt.h glob.h
    inttypes.h limits.h locale.h malloc.h math.h poll.h pthread.h sched.h signal.h stdalign.h
    stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h
    strings.h syslog.h termios.h time.h unistd.h
""".split())
# The compiler's own, and what the kernel offers through libc.
MACHINE = {"immintrin.h", "nmmintrin.h", "x86intrin.h", "arm_acle.h", "arm_neon.h"}
SYSTEM = re.compile(r"^(sys|linux|asm)/\w+\.h$")
SOCKETS = re.compile(r"^(sys/socket|sys/un|netinet/\w+|arpa/\w+|net/\w+|netdb|ifaddrs)\.h$")


def is_libc(name):
    return name in LIBC or name in MACHINE or (bool(SYSTEM.match(name)) and not SOCKETS.match(name))


# The storage's public interface.
STORE = ("storage/store.h", "storage/collections.h", "storage/ordered.h")
# folder: (system headers it may include besides libc, headers of other folders it may include)
LAYERS = {
    "protocol": (r"$^", ()),
    "storage": (r"libaio\.h|xxhash\.h", ()),
    "server": (
        SOCKETS.pattern + r"|event2/\w+\.h|liblzf/lzf\.h|lua\.h|lualib\.h|lauxlib\.h"
        r"|ucontext\.h|sanitizer/\w+\.h",
        ("protocol/resp.h", "protocol/rdma_end.h", "protocol/rdma_frame.h", *STORE, "storage/base/array.h",
         "storage/base/checks.h", "storage/base/keyed_hash.h", "storage/base/queue.h"),
    ),
    "rdma-ext": (
        SOCKETS.pattern + r"|infiniband/\w+\.h|rdma/\w+\.h",
        ("server/net/transport.h", "server/net/rdma.h", "protocol/rdma_end.h", "protocol/rdma_frame.h"),
    ),
    "clients": (
        SOCKETS.pattern + r"|hiredis/[\w/]+\.h|infiniband/\w+\.h|rdma/\w+\.h|event2/\w+\.h",
        ("protocol/resp.h", "protocol/rdma_end.h", "protocol/rdma_frame.h", "rdma-ext/verbs.h",
         "rdma-ext/link.h"),
    ),
    "benchmarks": (
        SOCKETS.pattern + r"|hiredis/[\w/]+\.h|infiniband/\w+\.h|rdma/\w+\.h|libaio\.h",
        ("protocol/resp.h", *STORE, "clients/vellum.h"),
    ),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')
MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK|stub|not implemented)\b")
# Paths of somebody's machine.
PLACE = re.compile(r"(?<![\w.])/(root|home|work)/")


# Editors, formatters and debuggers read headers as C++ in places, and so may users of the libraries.
CPLUSPLUS = re.compile(r"\b(?:and_eq|bitand|bitor|catch|class|compl|concept|const_cast|consteval|constexpr|"
                       r"constinit|co_await|co_return|co_yield|decltype|delete|dynamic_cast|explicit|export|"
                       r"friend|mutable|namespace|new|noexcept|not|not_eq|nullptr|operator|or|or_eq|private|"
                       r"protected|public|reinterpret_cast|requires|static_cast|template|this|throw|try|typeid|"
                       r"typename|using|virtual|xor|xor_eq|and)\b")
# Comments, literals and directives that hold text.
TEXT = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
                  r"|^[ \t]*#[ \t]*(?:error|warning|include)[^\n]*", re.S | re.M)


class Source:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as f:
            self.lines = f.read().split("\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()
        self.folder = path.split("/")[0]

    def functions(self):
        """(name, first line, last line) of each function; relies on the enforced format: the body
        stands between a { and a } at the beginning of a line."""
        opened = None
        for number, line in enumerate(self.lines):
            if line == "{":
                opened = number
            elif line == "}" and opened is not None:
                name = self.name_before(opened)
                if name:
                    yield name, opened + 1, number + 1
                opened = None

    def name_before(self, brace):
        head = []
        for line in reversed(self.lines[:brace]):
            if not line or line[0] in "}#/" or line.endswith((";", "*/")):
                break
            head.insert(0, line)
        text = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", " ".join(head))
        found = re.search(r"(\w+)\s*\(", text)
        return found.group(1) if found else None


def layer_breaches(source):
    if source.folder not in LAYERS:
        return
    system, foreign = LAYERS[source.folder]
    for number, line in enumerate(source.lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        angled, quoted = found.groups()
        if angled:
            if not is_libc(angled) and not re.fullmatch(system, angled):
                yield f"{source.path}:{number}: {source.folder}/ may not include <{angled}>"
            continue
        target = quoted if "/" in quoted else os.path.join(os.path.dirname(source.path), quoted)
        if target.split("/")[0] != source.folder and target not in foreign:
            yield f"{source.path}:{number}: {source.folder}/ may not include {target}"


def own_header_breach(source):
    stem, extension = os.path.splitext(source.path)
    if extension != ".c" or not os.path.exists(stem + ".h"):
        return
    for number, line in enumerate(source.lines, 1):
        found = INCLUDE.match(line)
        if found:
            if found.group(2) != stem + ".h":
                yield f"{source.path}:{number}: its own header comes first"
            return


def size_breaches(source):
    if source.folder == "tests":
        return
    if len(source.lines) > FILE_LINES_MAX:
        yield f"{source.path}: {len(source.lines)} lines (at most {FILE_LINES_MAX})"
    for name, first, last in source.functions():
        if last - first + 1 > FUNCTION_LINES_MAX:
            yield (f"{source.path}:{first}: {name} has {last - first + 1} lines"
                   f" (at most {FUNCTION_LINES_MAX})")


def keyword_breaches(source):
    code = TEXT.sub(lambda found: "\n" * found.group().count("\n"), "\n".join(source.lines))
    for number, line in enumerate(code.split("\n"), 1):
        for found in CPLUSPLUS.finditer(line):
            yield f"{source.path}:{number}: {found.group()} is a keyword of C++"


def text_breaches(path):
    if os.path.getsize(path) > FILE_BYTES_MAX:
        yield f"{path}: over {FILE_BYTES_MAX} bytes"
    if path.startswith("tests/check/"):
        return
    with open(path, encoding="utf-8", errors="replace") as f:
        for number, line in enumerate(f, 1):
            if MARK.search(line):
                yield f"{path}:{number}: a mark left behind: {line.strip()}"
            if PLACE.search(line):
                yield f"{path}:{number}: a path of somebody's machine: {line.strip()}"


def top_level_breaches(paths):
    for name in sorted({path.split("/")[0] for path in paths}):
        if not name.startswith(".") and name not in TOP_LEVEL:
            yield f"{name}: not one of the given names of the top level"


def list_breaches(paths):
    """Every C source stands in the Makefile, and everything the Makefile lists is there."""
    with open("Makefile", encoding="utf-8") as f:
        text = re.sub(r"#.*", "", f.read())
    words = set(re.findall(r"[\w./-]+", text))
    listed = set(re.findall(r"[\w./-]+\.c\b", text))
    # A fuzzer or a test of RDMA is listed by its name alone.
    for path in sorted(p for p in paths if p.endswith(".c")):
        name = os.path.splitext(os.path.basename(path))[0]
        folders = ("tests/fuzz/", "tests/rdma/")
        by_name = path.startswith(folders) and name in words
        if path not in listed and not by_name:
            yield f"{path}: in no list of the Makefile"
    for path in sorted(listed):
        if not os.path.exists(path):
            yield f"Makefile: lists {path}, which is not there"


def breaches(paths):
    sources = [Source(path) for path in paths if path.endswith((".c", ".h"))]
    for source in sources:
        yield from layer_breaches(source)
        yield from own_header_breach(source)
        yield from size_breaches(source)
        yield from keyword_breaches(source)
    for path in paths:
        yield from text_breaches(path)
    yield from top_level_breaches(paths)
    yield from list_breaches(paths)
    defined = {source.path: {name for name, _, _ in source.functions()} for source in sources}
    yield from documents.breaches(paths, defined)


def main(paths):
    found = list(breaches(paths))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
