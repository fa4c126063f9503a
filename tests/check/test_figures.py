"""The figures of a small tree of its own are those that one counts by hand."""

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import figures  # noqa: E402
import rooms  # noqa: E402

TREE = {
    "server/README.md": "| `low/` | x |\n| `high/` | y |\n",
    "server/low/all.h": "int a(void);\nint b(void);\nint c(void);\n",
    "server/low/face.h": '#include "server/low/all.h"\n',
    "server/low/a.c": '#include "server/low/all.h"\n\nint a(void)\n{\n    return b();\n}\n',
    "server/low/b.c": '#include "server/low/face.h"\n\nint b(void)\n{\n    assert(a);\n    return c();\n}\n',
    "server/high/c.c": '#include "server/low/all.h"\n\nint c(void)\n{\n    int x = 1;\n    assert(x);\n'
                       "    assert(x);\n    return a();\n}\n",
    "server/main.c": '#include "server/low/all.h"\n\nint main(void)\n{\n    return a();\n}\n',
}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = tmp_path / "known"
    known.write_text("# excused\nserver/low/b.c uses c of server/high/c.c\nx includes y\nz includes y\n")
    monkeypatch.setattr(rooms, "KNOWN", str(known))
    for path, text in TREE.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if path.endswith(".c"):
            object_path = os.path.join("build/obj", path[:-2] + ".o")
            os.makedirs(os.path.dirname(object_path), exist_ok=True)
            subprocess.run(["gcc", "-iquote", ".", "-include", "assert.h", "-c", "-o", object_path, path],
                           check=True)


def test_figures_of_a_tree(tree, capsys):
    assert figures.main(["build"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for expected in (
            "sources 4, headers 2",
            "largest circle 3 sources (1 circles, 3 sources in them)",
            "widest header server/low/all.h: 4 of 4 sources see it",
            "functions 4: median 3.5 lines, longest 6 (c in server/high/c.c)",
            "asserts 3: 0.75 per function",
            "low/ 2 2 2 3.5 0.50",
            "high/ 1 0 1 6 2.00",
            "(top) 1 0 1 3 0.00",
            "upward calls that are excused: 1, upward includes: 2 (tests/check/known_breaches.txt)"):
        assert expected in lines


def test_circles_are_apart():
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"c"}, "e": {"a"}}
    assert figures.circles(graph) == [["a", "b"], ["c", "d"], ["e"]]
