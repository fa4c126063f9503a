"""vellum-check: silent about what is whole, loud about every kind of damage, and never a writer."""

import hashlib
import os
import random
import shutil
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import harness  # noqa: E402

PAGE = 4096
SMALL, LARGE, MEMBER = b"a small value to be found again", b"large", b"member-000777"
OUTSIDE = b"beside the node "
LONG = b"a key too long to stand in its item, " * 8000


@pytest.fixture(scope="module")
def made():
    """A directory of everything, as kill -9 leaves it (1) and after an ordered stop (2)."""
    chance = random.Random(5)
    server = harness.Server(1, partitions=2, appendfsync="always")
    try:
        client = server.start().client()
        client.mset({f"k:{i}": chance.randbytes(chance.randrange(300)) for i in range(2000)})
        client.set("small", SMALL)
        client.set("large", LARGE * 200_000)
        client.set(LONG, "named")
        client.set("larger", chance.randbytes(9_000_000))
        client.hset("hash", mapping={b"member-%06d" % i: i for i in range(3000)})
        client.hset("hash", b"outside", OUTSIDE * 300)
        client.rpush("list", *range(5000))
        client.zadd("zset", {f"m{i}": i for i in range(2000)})
        client.set("mortal", "x", ex=1000)
        client.select(3)
        client.set("flushed", "x")
        client.flushdb()
        server.kill9()
        killed = server.data + ".killed"
        shutil.copytree(server.data, killed)
        server.start()
        server.stop()
        yield killed, server.data
    finally:
        server.remove()


def check(directory):
    done = subprocess.run([harness.CHECKER, directory], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    assert not harness.COMPLAINT.search(done.stdout), done.stdout
    return done.returncode, done.stdout


@pytest.fixture
def copy(made):
    directory = os.path.join(os.path.dirname(made[1]), "copy")
    shutil.copytree(made[1], directory)
    yield directory
    shutil.rmtree(directory)


def flip(directory, name, offset, mask=1):
    with open(os.path.join(directory, name), "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ mask]))


def place_of(directory, text, names=("slabs-00", "slabs-01", "extents")):
    for name in names:
        with open(os.path.join(directory, name), "rb") as f:
            at = f.read().find(text)
        if at >= 0:
            return name, at
    raise AssertionError(f"{text} is not there")


def state_of(directory):
    """Names, contents and times of change."""
    state = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        with open(path, "rb") as f:
            state[name] = (hashlib.sha256(f.read()).digest(), os.stat(path).st_mtime_ns)
    return state


def test_what_is_whole_is_not_complained_of_nor_touched(made):
    for directory in made:
        before = state_of(directory)
        status, said = check(directory)
        assert status == 0, said
        assert "2008 items, 3 large values" in said and "3 collections" in said, said
        assert "1 values beside them" in said and said.endswith("nothing wrong\n")
        assert state_of(directory) == before


def test_the_journal_counts(made):
    assert "0 commits in the journal" not in check(made[0])[1]
    assert ", 0 commits in the journal" in check(made[1])[1]


@pytest.mark.parametrize("offset", [0, 20, 40, 5000])
def test_the_index_checkpoint_is_compared(made, copy, offset):
    assert "no index checkpoint" in check(made[0])[1]
    assert "checkpoint is whole and right" in check(made[1])[1]
    flip(copy, "index", offset)
    status, said = check(copy)
    assert status == 1 and "The index checkpoint is damaged" in said, said


def test_the_index_checkpoint_of_another_stop_is_no_fault():
    server = harness.Server(1, partitions=2)
    try:
        for _ in range(2):
            server.start().client().incr("starts")
            server.stop()
            kept = server.data + ".index"
            if not os.path.exists(kept):
                shutil.copy(os.path.join(server.data, "index"), kept)
        shutil.copy(kept, os.path.join(server.data, "index"))
        status, said = check(server.data)
        assert status == 0 and "no index checkpoint" in said, said
    finally:
        server.remove()


@pytest.mark.parametrize("text, complaint", [
    (SMALL, "Damaged item"),
    (LARGE * 100, "part of large"),
    (MEMBER, "Damaged item"),
    (OUTSIDE, "Damaged"),
    (LONG[:PAGE], "part of (a key that cannot be read)"),
])
def test_a_flipped_bit_is_found(copy, text, complaint):
    name, at = place_of(copy, text)
    flip(copy, name, at + len(text) // 2, 1 << len(text) % 8)
    status, said = check(copy)
    assert status == 1 and complaint in said, said


def test_a_node_that_is_gone_is_missed_by_its_collection(copy):
    name, at = place_of(copy, MEMBER)
    flip(copy, name, at)
    status, said = check(copy)
    assert status == 1 and "is damaged: a node is missing" in said, said


def test_a_page_of_zeros_is_missed_by_its_collection(copy):
    name, at = place_of(copy, MEMBER)
    with open(os.path.join(copy, name), "r+b") as f:
        f.seek(at // PAGE * PAGE)
        f.write(bytes(PAGE))
    status, said = check(copy)
    assert status == 1 and "a node is missing" in said, said


def test_a_copied_page_is_found(copy):
    """A write that went astray: whole, but in another place."""
    name, at = place_of(copy, MEMBER)
    with open(os.path.join(copy, name), "r+b") as f:
        f.seek(at // PAGE * PAGE)
        page = f.read(PAGE)
        f.seek((at // PAGE + 1) * PAGE)
        f.write(page)
    status, said = check(copy)
    assert status == 1 and "Damaged item" in said, said


@pytest.mark.parametrize("name", ["slabs-00", "extents"])
def test_headers_of_segments_are_looked_at(copy, name):
    flip(copy, name, 16)
    status, said = check(copy)
    assert status == 1 and "segment 0" in said and "1 faults" in said, said
    flip(copy, name, 2048 + 16)
    assert check(copy)[0] == 1


def test_superblocks_are_looked_at(copy):
    flip(copy, "superblock", 50)
    status, said = check(copy)
    assert status == 1 and "superblock" in said, said
    flip(copy, "superblock", PAGE + 50)
    status, said = check(copy)
    assert status == 1 and "backup" in said, said


def tail_of(directory):
    """Where redo begins, as the newer copy of the superblock says."""
    with open(os.path.join(directory, "superblock"), "rb") as f:
        copies = [f.read(PAGE) for _ in range(2)]
    return max(struct.unpack_from("<QQQ", copy, 48) for copy in copies)[2]


def test_a_damaged_journal_is_found(made):
    directory = made[0] + ".copy"
    shutil.copytree(made[0], directory)
    try:
        flip(directory, "journal", tail_of(directory) + 80)
        status, said = check(directory)
        assert status == 1 and "journal is damaged" in said, said
    finally:
        shutil.rmtree(directory)


@pytest.mark.parametrize("name", ["journal", "superblock"])
def test_a_file_of_another_directory_is_found(made, name):
    """Nothing of what the journal alone has would be missed otherwise."""
    server = harness.Server(1, partitions=2, appendfsync="always")
    try:
        assert server.start().client().set("a", "1")
        server.kill9()
        shutil.copy(os.path.join(made[0], name), os.path.join(server.data, name))
        status, said = check(server.data)
        assert status == 2 and "not of the same data directory" in said, said
        with pytest.raises(harness.StartError, match="not of the same data directory"):
            server.start()
    finally:
        server.remove()


def test_a_missing_file_is_found(copy):
    os.remove(os.path.join(copy, "slabs-01"))
    status, said = check(copy)
    assert status == 1 and "slabs-01" in said, said


@pytest.mark.parametrize("name", ["slabs-00", "slabs-01"])
def test_slabs_cut_short_are_noticed(copy, name):
    os.truncate(os.path.join(copy, name), 0)
    status, said = check(copy)
    assert status == 1 and "cut short" in said, said


def test_what_cannot_be_checked_has_a_status_of_its_own(tmp_path):
    assert check(str(tmp_path))[0] == 2
    assert os.listdir(tmp_path) == []
    assert check(str(tmp_path / "nowhere"))[0] == 2
    assert subprocess.run([harness.CHECKER], stderr=subprocess.PIPE, check=False).returncode == 2


def test_a_running_server_is_left_alone():
    server = harness.Server(1)
    try:
        server.start()
        status, said = check(server.data)
        assert status == 2 and "in use" in said, said
        server.stop()
        assert check(server.data)[0] == 0
    finally:
        server.remove()
