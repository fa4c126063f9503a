"""What every program says of itself, and to what it does not understand."""

import os
import re
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.vellum, pytest.mark.slow]

BUILT = os.path.dirname(harness.PROGRAM)
# Their status for a wrong option; a version; an option that does not exist, or has a wrong value.
PROGRAMS = [
    ("vellum-server", 1, True, [("--wrong",), ("-Z",)]),
    ("vellum-check", 2, True, [("--wrong",), ("-Z",)]),
    ("vellum-benchmark", 1, True, [("--wrong",), ("-Z",), ("-c", "none"), ("--transport", "wings")]),
    ("vellum-rdma-proxy", 1, True, [
        ("--wrong",), ("-Z",), ("--listen", "nowhere"), ("--listen", "70000"), ("--port", "7x"),
        ("--mode", "wings"), ("word",)]),
    ("vellum-example", 1, False, [("--wrong",)]),
    ("vellum-example-async", 1, False, [("--wrong",)]),
    ("bench-load", 2, False, [("--wrong",)]),
    ("bench-engine", 2, False, [("--wrong",)]),
]


@pytest.fixture
def workers():
    """No server is started."""
    return 3


def say(name, *words):
    program = os.path.join(BUILT, name)
    if not os.path.exists(program):
        pytest.skip("not built here")
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name, status, has_version, wrong", PROGRAMS)
def test_a_program_tells_how_it_is_used(name, status, has_version, wrong):
    code, out, err = say(name, "--help")
    assert (code, err) == (0, "")
    assert re.match(rf"usage: {name}\b", out, re.IGNORECASE)
    if has_version:
        version = say("vellum-server", "--version")[1].split("v=")[1].split()[0]
        for option in ("--version", "-v"):
            code, out, err = say(name, option)
            assert (code, err) == (0, "")
            assert re.search(rf"\b{re.escape(version)}\b", out)
    for words in wrong:
        code, out, err = say(name, *words)
        assert (code, out) == (status, "")
        assert words[-1].lstrip("-") in err or not has_version and err.startswith("usage"), err


def test_the_proxy_wants_to_know_where_to_listen():
    code, out, err = say("vellum-rdma-proxy", "--server", "127.0.0.1")
    assert (code, out) == (1, "")
    assert "--listen is missing" in err


def test_the_benchmark_of_transports_wants_a_number_for_the_core():
    for wrong in ("first", "1x", "-1", ""):
        code, out, err = say("bench-transports", "--core", wrong)
        assert (code, out) == (1, "")
        assert "a number out of its range" in err
