"""The figures of a small tree of its own are those that one counts by hand."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import figures  # noqa: E402
import planted  # noqa: E402
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
    planted.plant(TREE)


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
            "upward calls: 1, upward includes: 0"):
        assert expected in lines


def test_circles_are_apart():
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"c"}, "e": {"a"}}
    assert rooms.circles(graph) == [["a", "b"], ["c", "d"], ["e"]]
