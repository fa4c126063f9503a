"""RDMA as a server has it that finds no device: what it says, and its settings. Channels: tests/rdma."""

import os
import shutil
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.vellum, pytest.mark.sockets("there channels are offered")]

SETTINGS = {"rdma": "auto", "rdma-device": "", "rdma-port": "0", "rdma-gid-index": "-1",
            "rdma-spin-us": "50", "rdma-max-channels": "256", "rdma-max-pinned": str(256 << 20),
            "rdma-max-pinned-per-client": str(1 << 20), "rdma-check-peer": "yes"}
OTHERS = {"rdma": "no", "rdma-device": "nowhere", "rdma-port": "2", "rdma-gid-index": "3",
          "rdma-spin-us": "7", "rdma-max-channels": "9", "rdma-max-pinned": str(5 << 20),
          "rdma-max-pinned-per-client": "4096", "rdma-check-peer": "no"}
CHANGEABLE = ("rdma-spin-us", "rdma-check-peer")


@pytest.fixture
def workers():
    """LIST and CLOSE go round the workers."""
    return 3


@pytest.mark.parametrize("options, reason", [
    ({"rdma-device": "nowhere"}, b"RDMA device"), ({"rdma": "no"}, b"it is turned off (rdma no)")])
def test_commands_say_that_there_is_none(make_server, options, reason):
    server = make_server(**options)
    with server.raw() as raw:
        for words in (("INFO",), ("CONNECT", "1", "send", "GID", "0" * 32)):
            said = raw.call("RDMA", *words)
            assert said.startswith(b"-ERR RDMA is not available: ")
            assert reason in said or b"built without it" in said
        assert raw.call("RDMA", "LIST") == b"*0\r\n"
        assert raw.call("RDMA", "CLOSE", "1") == b"-ERR No such channel\r\n"
        assert raw.call("RDMA", "CLOSE", "x") == b"-ERR Invalid client ID\r\n"
        assert raw.call("RDMA", "CONNECT", "1") == \
            b"-ERR wrong number of arguments for 'rdma|connect' command\r\n"
        assert raw.call("RDMA", "NOSUCH").startswith(b"-ERR unknown subcommand 'NOSUCH'.")
        assert b"CONNECT <version>" in raw.call("RDMA", "HELP")
        assert raw.call("PING") == b"+PONG\r\n"
        assert b"transport" not in raw.call("CLIENT", "INFO")
    info = server.client().info("rdma")
    assert info["rdma_offered"] == info["rdma_channels"] == info["rdma_pinned_bytes"] == 0
    assert info["rdma_device"] == ""
    assert "rdma_offered" in server.client().info()


def test_a_server_that_must_have_it_does_not_start(tmp_path):
    done = subprocess.run([harness.PROGRAM, "--port", str(harness.free_port()), "--dir", tmp_path,
                           "--rdma", "yes", "--rdma-device", "nowhere"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "rdma yes, but RDMA is unavailable: " in done.stdout + done.stderr


def test_it_is_built_without_verbs(tmp_path):
    """In a copy of the tree of objects, of which only a few are to be made anew."""
    build = os.path.dirname(os.path.dirname(os.path.abspath(harness.PROGRAM)))
    if build != os.path.join(harness.TOP, "build"):
        pytest.skip("other builds have other flags")
    for part in ("obj", "lib"):
        shutil.copytree(os.path.join(build, part), tmp_path / part, copy_function=shutil.copy2)
    program = tmp_path / "bin" / "vellum-server"
    make = ["make", "VERBS=", f"BUILD={tmp_path}", program]
    steps = subprocess.run([*make, "-n", "-o", "FORCE"], cwd=harness.TOP, capture_output=True,
                           text=True, timeout=60).stdout
    if " -c -o " in steps:
        pytest.skip("the tree is not as it was built")
    subprocess.run(make, cwd=harness.TOP, check=True, capture_output=True, timeout=300)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=60).stdout
    assert "libevent" in linked and "libibverbs" not in linked
    done = subprocess.run([program, "--port", str(harness.free_port()), "--dir", tmp_path / "data",
                           "--rdma", "yes"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "this server was built without it" in done.stdout + done.stderr


def test_settings(make_server):
    assert make_server().client().config_get("rdma*") == SETTINGS
    server = make_server(**OTHERS)
    client = server.client()
    assert client.config_get("rdma*") == OTHERS
    with server.raw() as raw:
        for name, value in SETTINGS.items():
            said = raw.call("CONFIG", "SET", name, value)
            if name in CHANGEABLE:
                assert said == b"+OK\r\n"
            else:
                assert said == (b"-ERR CONFIG SET failed (possibly related to argument '%b') - can't "
                                b"set immutable config\r\n" % name.encode())
        for name, value in (("rdma-spin-us", "-1"), ("rdma-spin-us", "1000001"),
                            ("rdma-check-peer", "maybe")):
            said = raw.call("CONFIG", "SET", name, value)
            assert said.startswith(b"-ERR CONFIG SET failed (possibly related to argument '"), said
    now = dict(OTHERS, **{name: SETTINGS[name] for name in CHANGEABLE})
    assert client.config_get("rdma*") == now


@pytest.mark.parametrize("name, value", [
    ("rdma", "maybe"), ("rdma-port", "256"), ("rdma-gid-index", "-2"), ("rdma-max-channels", "0"),
    ("rdma-max-pinned", "1000"), ("rdma-max-pinned-per-client", "4095"),
    ("rdma-max-pinned-per-client", "2gb"), ("rdma-check-peer", "2")])
def test_wrong_settings_are_refused(tmp_path, name, value):
    done = subprocess.run([harness.PROGRAM, "--dir", tmp_path, "--" + name, value],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and name in done.stdout + done.stderr


def test_settings_are_rewritten():
    server = harness.Server(1)
    path, options = os.path.join(server.directory, "own.conf"), server.arguments
    server.arguments = lambda: [path, *options()]
    with open(path, "w", encoding="ascii") as f:
        f.write("rdma no\nrdma-max-channels 9\n")
    try:
        client = server.start().client()
        client.config_set("rdma-spin-us", 77)
        client.config_rewrite()
        with open(path, encoding="ascii") as f:
            lines = f.read().split("\n")
        assert {"rdma no", "rdma-max-channels 9", "rdma-spin-us 77"} <= set(lines), lines
        server.restart()
        assert server.client().config_get("rdma*") == dict(
            SETTINGS, **{"rdma": "no", "rdma-max-channels": "9", "rdma-spin-us": "77"})
        server.stop()
    finally:
        server.remove()
