"""The check of the rooms finds what it is there for: breaches planted in a small tree of its own."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import planted  # noqa: E402
import rooms  # noqa: E402

SOUND = {
    "server/README.md": "| room | |\n|---|---|\n| `low/` | x |\n| `high/` | y |\n",
    "server/low/a.h": "int a_get(void);\n",
    "server/low/a.c": '#include "server/low/a.h"\nint a_get(void) { return 1; }\n',
    "server/high/b.h": "int b_get(void);\n",
    "server/high/b.c": '#include "server/high/b.h"\n#include "server/low/a.h"\n'
                       "int b_get(void) { return a_get(); }\n",
    "server/main.c": '#include "server/high/b.h"\nint main(void) { return b_get(); }\n',
    "storage/README.md": "| `only/` | z |\n",
    "storage/store.h": "int store_get(void);\n",
    "storage/only/c.c": '#include "storage/store.h"\nint c_get(void) { return 2; }\n',
}

PLANTED = [
    ({"server/low/a.c": '#include "server/high/b.h"\nint a_get(void) { return 1; }\n'},
     ["server/low/a.c includes server/high/b.h, which is above it"]),
    ({"server/low/a.c": "int b_get(void);\nint a_get(void) { return b_get(); }\n"},
     ["server/low/a.c uses b_get of server/high/b.c, which is above it"]),
    ({"server/high/b.c": "int main(void);\nint b_get(void) { return main(); }\n"},
     ["server/high/b.c uses main of server/main.c, which is above it"]),
    ({"server/attic/d.c": "int d;\n"},
     ["server/attic/: a room, or a row of server/README.md, but not both"]),
    ({"storage/README.md": "| `only/` | z |\n| `none/` | z |\n"},
     ["storage/none/: a room, or a row of storage/README.md, but not both"]),
]


@pytest.fixture
def plant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def plant(files):
        planted.plant(files)
        return list(rooms.complaints("build"))
    return plant


def test_a_sound_tree_passes(plant):
    assert plant(SOUND) == []


@pytest.mark.parametrize("change,expected", PLANTED, ids=[c[0] for _, c in PLANTED])
def test_a_breach_is_found(plant, change, expected):
    assert plant(SOUND | change) == expected


def test_objects_are_wanted(plant):
    plant(SOUND)
    assert list(rooms.complaints("nowhere")) == ["nowhere/obj: no objects, whose symbols show the calls"]
