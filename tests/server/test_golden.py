"""Data directories that earlier servers have written: one per version of the format and way to end."""

import glob
import os
import subprocess
import sys

import pytest

import harness

GOLDEN = os.path.join(harness.TOP, "tests", "golden")
sys.path.insert(0, GOLDEN)

import contents  # noqa: E402

ARCHIVES = sorted(glob.glob(os.path.join(GOLDEN, "*.tar.xz")))

pytestmark = [pytest.mark.vellum, pytest.mark.sockets("about the files")]


@pytest.fixture
def server(workers, request):
    server = harness.Server(workers)
    os.mkdir(server.data)
    subprocess.run(["tar", "-C", server.data, "-xJf", request.param], check=True)
    yield server
    try:
        server.stop()
    finally:
        server.remove()


@pytest.mark.parametrize("server", ARCHIVES, indirect=True, ids=os.path.basename)
def test_a_golden_directory_is_read_and_written_on(server):
    assert server.check_data()[0] == 0, server.check_data()
    server.start()
    contents.verify(server.client(), server.client(db=3))
    client = server.client()
    client.set("short", "another")
    client.lpush("tree list", "first")
    client.hset("packed hash", "f0", "changed")
    client.append("of two levels", "end")
    server.restart()
    client = server.client()
    assert client.get("short") == b"another" and client.llen("tree list") == 3001
    assert client.lindex("tree list", 0) == b"first"
    assert client.hget("packed hash", "f0") == b"changed"
    assert client.getrange("of two levels", -5, -1)[-3:] == b"end"
    assert client.info()["damaged_items"] == 0
    server.stop()
    assert server.check_data()[0] == 0


def test_every_format_has_its_directories():
    names = {os.path.basename(path) for path in ARCHIVES}
    with open(os.path.join(harness.TOP, "storage/format/format.h"), encoding="utf-8") as file:
        version = next(line.split()[2] for line in file if "define FORMAT_VERSION" in line)
    version = int(version.rstrip("u"))
    assert {f"format-{version}-{end}.tar.xz" for end in ("stopped", "killed")} <= names
