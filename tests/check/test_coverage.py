"""What coverage.py says of a small program is what the program has run."""

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import coverage  # noqa: E402

TREE = {
    "server/low/a.c": "int a(int x);\n"
                      "int a(int x)\n"
                      "{\n"
                      "    if (x < 0)\n"
                      "        return -1;\n"
                      "    if (x == 7)\n"
                      "        x++;\n"
                      "    return x;\n"
                      "}\n",
    "server/main.c": "int a(int x);\n"
                     "int main(void)\n"
                     "{\n"
                     "    return a(0);\n"
                     "}\n",
    "storage/b.c": "int b(void);\nint b(void)\n{\n    return -1;\n}\n",
    "tests/c.c": "int c(void);\nint c(void)\n{\n    return -1;\n}\n",
}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    objects = []
    for path, text in TREE.items():
        objects.append(os.path.join("build/obj", path[:-2] + ".o"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.makedirs(os.path.dirname(objects[-1]), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run(["gcc", "--coverage", "-c", "-o", objects[-1], path], check=True)
    subprocess.run(["gcc", "--coverage", "-o", "program", *objects], check=True)


def test_rooms_and_error_paths(tree, capsys):
    assert coverage.main(["build"]) == 1  # nothing has run yet
    subprocess.run(["./program"], check=True)
    capsys.readouterr()
    assert coverage.main(["build"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for expected in ("server 2 100.0 % 0 -",
                     "server/low 6 66.7 % 4 50.0 %",
                     "storage 2 0.0 % 0 -",
                     "all 10 60.0 % 4 50.0 %",
                     "Lines of error paths that no test ran: 2",
                     "server/low/a.c:5: return -1;",
                     "storage/b.c:4: return -1;"):
        assert expected in lines
    assert not [line for line in lines if line.startswith(("tests", "server/low/a.c:7"))]


def test_all_lines(tree, capsys):
    subprocess.run(["./program"], check=True)
    assert coverage.main(["build", "--lines"]) == 0
    assert "server/low/a.c:7: x++;" in capsys.readouterr().out
