"""libvellum by TCP and by a Unix socket, and as it is installed. By channels: tests/rdma."""

import os
import re
import subprocess

import pytest

import harness

BUILD = os.path.join(harness.TOP, "build")
PROGRAM = os.path.join(BUILD, "rdma", "test_client")
pytestmark = [
    pytest.mark.skipif(not os.path.exists(PROGRAM), reason="built only with libibverbs"),
    pytest.mark.slow, pytest.mark.vellum]


@pytest.fixture
def workers():
    """What is tested is the client: once is enough."""
    return 3


@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_cases(make_server, transport):
    server = make_server(unixsocket="socket")
    env = dict(os.environ, VELLUM_TRANSPORT=transport, VELLUM_HOST="127.0.0.1",
               VELLUM_PORT=str(server.port),
               VELLUM_SOCKET=os.path.join(server.data, "socket"))
    done = subprocess.run([PROGRAM], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"PASSED +\] \d+ test", done.stdout + done.stderr)


def test_installed(server, tmp_path):
    """What is needed to build programs against the library is installed, and enough."""
    env = dict(os.environ, MAKEFLAGS="")
    subprocess.run(["make", "-s", "-C", harness.TOP, "install", f"DESTDIR={tmp_path}",
                    "PREFIX=/opt/vellum"], env=env, check=True, timeout=600,
                   capture_output=True)
    prefix = tmp_path / "opt/vellum"
    env = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    for package, example in (("vellum", "example"), ("vellum-async", "example_async")):
        # The prefix that the files tell, put where they are now.
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", package], env=env, check=True,
            capture_output=True, text=True).stdout.replace("/opt/vellum", str(prefix))
        source = tmp_path / f"{example}.c"
        source.write_text(open(os.path.join(harness.TOP, "clients", f"{example}.c")).read())
        subprocess.run(["gcc", "-Wall", "-Werror", "-o", tmp_path / example, source,
                        *flags.split()], check=True)
        said = subprocess.run([tmp_path / example, "127.0.0.1", str(server.port)], check=True,
                              capture_output=True, text=True, timeout=60).stdout
        assert said.startswith("connected by tcp")
        assert said.endswith("hello\n" if package == "vellum" else "1000\n")
    for page in ("man1/vellum-benchmark.1", "man3/vellum.3"):
        assert (prefix / "share/man" / page).exists()
