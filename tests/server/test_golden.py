"""Data directories that earlier servers have written: one per version of the format and way to end."""

import glob
import os
import re
import struct
import subprocess
import sys

import pytest

import harness

GOLDEN = os.path.join(harness.TOP, "tests", "golden")
sys.path.insert(0, GOLDEN)

import contents  # noqa: E402

ARCHIVES = sorted(glob.glob(os.path.join(GOLDEN, "*.tar.xz")))

pytestmark = [pytest.mark.vellum, pytest.mark.sockets("about the files")]


def format_version():
    with open(os.path.join(harness.TOP, "storage/format/format.h"), encoding="utf-8") as file:
        version = next(line.split()[2] for line in file if "define FORMAT_VERSION " in line)
    return int(version.rstrip("u"))


def superblock_version(server):
    """Of the copy that counts; without its flags."""
    with open(os.path.join(server.data, "superblock"), "rb") as file:
        copies = file.read()
    heads = [struct.unpack_from("<8sII16sQQQ", copies, at) for at in (0, 4096)]
    return max(heads, key=lambda head: head[6])[1] & 0xFFFF


@pytest.fixture
def golden(workers, request):
    """A server that is not started yet, on such a directory, and the directory's version."""
    options = {"ordered_keys": "yes"} if "ordered" in request.param else {}
    server = harness.Server(workers, **options)
    os.mkdir(server.data)
    subprocess.run(["tar", "-C", server.data, "-xJf", request.param], check=True)
    yield server, int(re.search(r"format-(\d+)", request.param)[1])
    try:
        server.stop()
    finally:
        server.remove()


@pytest.mark.parametrize("golden", ARCHIVES, indirect=True, ids=os.path.basename)
def test_a_golden_directory_is_read_and_written_on(golden):
    server, version = golden
    assert server.check_data()[0] == 0, server.check_data()
    server.start()
    contents.verify(server.client(), server.client(db=3), version)
    if server.options:
        contents.verify_order(server.client(), server.client(db=3))
    client = server.client()
    pair = {b"%d" % i: b"x" * 20 for i in range(100)}
    client.hset("ordered from now on", mapping=pair)
    client.set("short", "another")
    client.lpush("tree list", "first")
    client.hset("packed hash", "f0", "changed")
    client.append("of two levels", "end")
    server.restart()
    client = server.client()
    assert client.get("short") == b"another" and client.llen("tree list") == 3001
    assert client.lindex("tree list", 0) == b"first"
    assert client.hget("packed hash", "f0") == b"changed"
    assert list(client.hgetall("ordered from now on").items()) == list(pair.items())
    assert client.getrange("of two levels", -5, -1)[-3:] == b"end"
    assert client.info()["damaged_items"] == 0
    if server.options:
        contents.verify_order(client, server.client(db=3))
    server.stop()
    assert server.check_data()[0] == 0


@pytest.mark.parametrize("golden", ARCHIVES, indirect=True, ids=os.path.basename)
def test_an_earlier_server_refuses_what_this_one_has_started_on(golden):
    server, version = golden
    assert superblock_version(server) == version
    server.start()
    assert superblock_version(server) == format_version()


def test_every_format_has_its_directories():
    names = {os.path.basename(path) for path in ARCHIVES}
    version = format_version()
    assert {f"format-{version}-{end}.tar.xz"
            for end in ("stopped", "killed", "ordered-stopped", "ordered-killed")} <= names
