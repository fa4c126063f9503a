"""The rules find what they are there for: each breach, planted in a small tree of its own."""

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import rules  # noqa: E402

SOUND = {
    "Makefile": "SRC := storage/a.c server/b.c\n",
    "ARCHITECTURE.md": "# Walk\n\n- `storage/a.c:a_read` reads\n",
    "storage/a.h": "int a_read(int fd);\n",
    "storage/a.c": '#include "storage/a.h"\n\n#include <libaio.h>\n#include <xxhash.h>\n\n'
                   "int a_read(int fd)\n{\n    return fd;\n}\n",
    "storage/store.h": "int store_get(void);\n",
    "storage/README.md": "`a.c`, `storage/a.h`, `../server/b.c`, `*.h`, `a_read()`, `storage/`, `store.h:store_get`,\n"
                         "[the walk](../ARCHITECTURE.md#walk), `GET key`, `db0/x`, [web](https://a.b/c)\n",
    "server/b.c": '#include "storage/store.h"\n#include <event2/event.h>\n'
                  "#include <sys/socket.h>\n",
}

PLANTED = [
    ({"storage/a.c": '#include "storage/a.h"\n#include <sys/socket.h>\nint a_read(int fd)\n{\n}\n'},
     "storage/ may not include <sys/socket.h>"),
    ({"storage/a.h": '#include "server/b.h"\n'}, "storage/ may not include server/b.h"),
    ({"server/b.c": '#include "storage/a.h"\n'}, "server/ may not include storage/a.h"),
    ({"protocol/c.h": "#include <libaio.h>\n"}, "protocol/ may not include <libaio.h>"),
    ({"storage/a.c": '#include <stdio.h>\n#include "storage/a.h"\nint a_read(int fd)\n{\n}\n'},
     "its own header comes first"),
    ({"server/b.c": "\n" * 801}, "801 lines"),
    ({"server/b.c": "static int far(int a,\n               int b)\n{\n" + "    a++;\n" * 70 + "}\n"},
     "far has 72 lines"),
    ({"server/d.c": ""}, "server/d.c: in no list"),
    ({"Makefile": "SRC := storage/a.c server/b.c server/e.c\n"}, "lists server/e.c"),
    ({"ARCHITECTURE.md": "# Walk\n- `storage/a.c:a_write` writes\n"}, "storage/a.c does not define a_write"),
    ({"ARCHITECTURE.md": "# Walk\n- `a.h:a_write` writes\n"}, "a.h does not define a_write"),
    ({"ARCHITECTURE.md": "# Walk\n- `storage/z.c:a_read` reads\n"}, "no file storage/z.c"),
    ({"storage/README.md": "Read in `z.c`.\n"}, "storage/README.md:1: no file z.c"),
    ({"storage/README.md": "One of `z_*.c`.\n"}, "no file z_*.c"),
    ({"storage/README.md": "See `txn/`.\n"}, "no folder txn/"),
    ({"storage/README.md": "Call `a_write()`.\n"}, "no function a_write"),
    ({"storage/README.md": "[a](../NONE.md)\n"}, "leads nowhere: ../NONE.md"),
    ({"storage/README.md": "[a](../ARCHITECTURE.md#run)\n"}, "leads nowhere: ../ARCHITECTURE.md#run"),
    ({"storage/decisions/001-a.md": "# A\n"}, "storage/decisions/001-a.md: not listed in ARCHITECTURE.md"),
    ({"server/b.c": '/* a class, "this" */\nint new;\n'}, "server/b.c:2: new is a keyword of C++"),
    ({"server/b.c": "/* TODO: more */\n"}, "a mark left behind"),
    ({"server/b.c": "/* see /" "root/notes */\n"}, "a path of somebody's machine"),
    ({"utils.h": ""}, "utils.h: not one of the given names"),
]


def plant(directory, files):
    for path, text in files.items():
        full = directory / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
    return sorted(files)


def test_a_sound_tree_passes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(rules.breaches(plant(tmp_path, SOUND))) == []


@pytest.mark.parametrize("change,complaint", PLANTED, ids=[c for _, c in PLANTED])
def test_a_breach_is_found(tmp_path, monkeypatch, change, complaint):
    monkeypatch.chdir(tmp_path)
    found = list(rules.breaches(plant(tmp_path, SOUND | change)))
    assert len(found) == 1 and complaint in found[0], found


@pytest.mark.parametrize("declaration,good", [
    ('static const char *const calls[] = {"a"};', True),
    ("int calls;", False),
    ("static int calls = 3;", False),
    ("static __thread int calls;", False),
])
def test_writable_globals_are_found(tmp_path, declaration, good):
    source = tmp_path / "x.c"
    source.write_text(f"{declaration}\nconst void *use(void) {{ return &calls; }}\n")
    subprocess.run(["gcc", "-c", "-o", str(tmp_path / "x.o"), str(source)], check=True)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "globals.sh")
    done = subprocess.run([script, str(tmp_path / "x.o")], capture_output=True, check=False)
    assert (done.returncode == 0) == good
