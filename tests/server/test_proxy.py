"""What vellum-rdma-proxy says to a client that it cannot carry. What it carries: tests/rdma."""

import os
import resource
import socket
import subprocess
import time

import pytest

import harness

PROGRAM = os.path.join(os.path.dirname(harness.PROGRAM), "vellum-rdma-proxy")
pytestmark = [
    pytest.mark.skipif(not os.path.exists(PROGRAM), reason="built only with libibverbs"),
    pytest.mark.vellum, pytest.mark.sockets("starts a proxy of its own")]


@pytest.fixture
def workers():
    """What is tested is the proxy: once is enough."""
    return 1


def connect(proxy, path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(20)
    deadline = time.monotonic() + 20
    while client.connect_ex(path) != 0:
        assert proxy.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    return client


def refusal(port, path, password, *options):
    """What a client reads from a proxy that has this password."""
    env = dict(os.environ, VELLUM_PASSWORD=password)
    proxy = subprocess.Popen([PROGRAM, "--listen", path, "--port", str(port), "--device", "nowhere",
                              *options], env=env)
    try:
        with connect(proxy, path) as client:
            return client.makefile("rb").read().decode()
    finally:
        proxy.kill()
        proxy.wait()


def test_a_wrong_password_is_told(make_server, tmp_path):
    server = make_server(requirepass="right")
    path = str(tmp_path / "socket")
    for options in ((), ("--user", "default")):
        said = refusal(server.port, path, "wrong", *options)
        assert said.startswith("-ERR vellum-rdma-proxy: ") and said.endswith("\r\n")
        assert "AUTH was: WRONGPASS" in said
        assert "AUTH was" not in refusal(server.port, path, "right", *options)


def test_a_server_without_a_password_is_asked_for_a_channel(make_server, tmp_path):
    said = refusal(make_server().port, str(tmp_path / "socket"), "any")
    assert "RDMA" in said.partition("; the reply to AUTH was: ")[0]
    assert "; the reply to AUTH was: ERR" in said


def test_without_descriptors_it_waits(server, tmp_path):
    """And takes the connection up when there are some; at its start it has raised its limit."""
    path = str(tmp_path / "socket")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    proxy = subprocess.Popen(
        [PROGRAM, "--listen", path, "--port", str(server.port), "--device", "nowhere"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, most)))
    try:
        connect(proxy, path).close()
        assert resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE) == (most, most)
        time.sleep(0.5)
        used = 1 + max(int(fd) for fd in os.listdir(f"/proc/{proxy.pid}/fd"))
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (used, most))
        with connect(proxy, path) as client:
            before = harness.processor_seconds(proxy)
            time.sleep(3)
            assert harness.processor_seconds(proxy) - before < 1
            resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (most, most))
            assert client.makefile("rb").read().startswith(b"-ERR vellum-rdma-proxy: ")
    finally:
        proxy.kill()
        proxy.wait()
