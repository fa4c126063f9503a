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


# A ring of calls through these files of one room.
RING = {f"server/low/ring{i}.c": f"int ring{(i + 1) % 5}(void);\nint ring{i}(void) {{ return ring{(i + 1) % 5}(); }}\n"
        for i in range(5)}


@pytest.fixture
def plant(tmp_path, monkeypatch):
    return planted.planter(tmp_path, monkeypatch, rooms)


def test_a_sound_tree_passes(plant):
    assert plant(SOUND) == []


@pytest.mark.parametrize("change,expected", PLANTED, ids=[c[0] for _, c in PLANTED])
def test_a_breach_is_found(plant, change, expected):
    assert plant(SOUND | change) == expected


def test_a_large_circle_is_found(plant):
    assert plant(SOUND | RING) == [
        "server/low/: 5 files in one circle, at most 4 may be: ring0.c, ring1.c, ring2.c, ring3.c, ring4.c"]


def test_a_circle_in_a_folder_without_rooms_is_found(plant):
    ring = {path.replace("server/low/", "clients/"): text for path, text in RING.items()}
    assert plant(SOUND | ring) == [
        "clients/: 5 files in one circle, at most 4 may be: ring0.c, ring1.c, ring2.c, ring3.c, ring4.c"]


def test_a_small_circle_is_not(plant):
    ring = RING | {"server/low/ring0.c": "int ring0(void) { return 0; }\n"}
    assert plant(SOUND | ring) == []
    four = dict(list(RING.items())[:3]) | {"server/low/ring3.c": "int ring0(void);\nint ring3(void) { return ring0(); }\n"}
    assert plant(SOUND | four) == []


def test_objects_are_wanted(plant):
    plant(SOUND)
    assert list(rooms.complaints("nowhere")) == ["nowhere/obj: no objects, whose symbols show the calls"]
