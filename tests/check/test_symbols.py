"""The check of symbols finds what it is there for: breaches planted in a small tree of its own."""

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import planted  # noqa: E402
import symbols  # noqa: E402

SOUND = {
    "storage/a.c": "int store_get(void) { return 1; }\n",
    "protocol/b.c": "int resp_read(void) { return 1; }\nint rdma_frame(void) { return 2; }\n",
    "rdma-ext/c.c": "int rdma_open(void) { return 1; }\n",
    "clients/d.c": "static int helper(void) { return 1; }\nint vellum_get(void) { return helper(); }\n",
    "server/e.c": "int store_get(void);\nint main(void) { return store_get(); }\n",
}

PLANTED = [
    ({"storage/a.c": "int commit(void) { return 1; }\n"},
     ["lib/libvellum-storage.a defines commit, which does not begin with store_"]),
    ({"protocol/b.c": "int store_read(void) { return 1; }\n"},
     ["protocol/b.c defines store_read, which does not begin with resp_|rdma_"]),
    ({"rdma-ext/c.c": "int resp_open;\n"},
     ["rdma-ext/c.c defines resp_open, which does not begin with rdma_"]),
    ({"clients/d.c": "int rdma_get(void) { return 1; }\n"},
     ["clients/d.c defines rdma_get, which does not begin with vellum_"]),
    ({"server/e.c": "int rdma_open(void) { return 1; }\n"},
     ["rdma-ext/c.c defines rdma_open, as server/e.c does"]),
]


@pytest.fixture
def plant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def plant(files):
        planted.plant(files)
        os.makedirs("build/lib")
        subprocess.run(["ar", "rcs", "build/lib/libvellum-storage.a", "build/obj/storage/a.o"], check=True)
        return [*symbols.archive_breaches("build"), *symbols.prefix_breaches("build"),
                *symbols.duplicates("build")]
    return plant


def test_a_sound_tree_passes(plant):
    assert plant(SOUND) == []


@pytest.mark.parametrize("change,expected", PLANTED, ids=[e[0] for _, e in PLANTED])
def test_a_breach_is_found(plant, change, expected):
    assert plant(SOUND | change) == expected


def test_the_archive_is_wanted(tmp_path):
    assert list(symbols.archive_breaches(str(tmp_path))) == [
        f"{tmp_path}/lib/libvellum-storage.a: is not there"]
