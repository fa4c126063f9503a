"""Disks made from a log of writes: what is reported in order, and what a cut may leave."""

import io
import os
import random
import struct
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import disk_log  # noqa: E402

SECTOR = 512


def sector(data):
    return data.ljust(SECTOR, b"\0")


def entry(first, sectors, flags, data=b""):
    return sector(struct.pack("<QQQQ", first, sectors, flags, 0)) + data


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(sector(struct.pack("<QQQI", disk_log.MAGIC, 1, 4, SECTOR)) +
                     entry(2, 2, 0, b"a" * 1024) + entry(0, 0, disk_log.FLUSH) +
                     entry(1, 1, disk_log.DISCARD) + entry(3, 1, disk_log.FUA, b"b" * 512) +
                     entry(9, 1, 0, b"beyond its count"))
    return disk_log.Log(str(path))


def test_entries_are_applied_in_order(log):
    disk = io.BytesIO(b"-" * 3000)
    for each in log.entries:
        log.apply(disk, each)
    assert disk.getvalue() == (b"-" * 512 + bytes(512) + b"a" * 512 + b"b" * 512).ljust(3000, b"-")
    assert [e.flags & disk_log.FLUSH for e in log.entries] == [0, 1, 0, 0]


def test_what_was_not_flushed_is_kept_lost_or_torn(log):
    left = set()
    for seed in range(200):
        disk = io.BytesIO(b"-" * 3000)
        log.apply_unflushed(disk, log.entries[0], random.Random(seed))
        left.add(disk.getvalue()[1024:2048:512])
        log.apply_unflushed(disk, log.entries[3], random.Random(seed))
        assert disk.getvalue()[1536:2048] == b"b" * 512, "FUA is durable by itself"
    assert left == {b"aa", b"a-", b"-a", b"--"}
