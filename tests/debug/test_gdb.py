"""The help for gdb, on a server of this build: what it says of a transaction that waits for a key."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import harness  # noqa: E402

SCRIPT = os.path.join(HERE, "vellum_gdb.py")
pytestmark = pytest.mark.skipif(not shutil.which("gdb") or harness.IS_REDIS, reason="needs gdb")


def gdb(*commands, pid=None):
    words = ["gdb", "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    words += ["-p", str(pid)] if pid else [harness.PROGRAM]
    words += ["-x", SCRIPT]
    for command in commands:
        words += ["-ex", command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_every_field_is_there():
    said = gdb("python [print('LACKS', kind, name) for kind, names in FIELDS.items() for name in names"
               " if name not in [f.name for f in gdb.lookup_type('struct ' + kind).fields()]]",
               "python print('LOOKED')")
    assert "LOOKED" in said and "LACKS" not in said and "Error" not in said, said


@pytest.fixture
def server():
    server = harness.Server(workers=2, busy_reply_threshold=3600000).start()
    yield server
    server.kill9()
    server.remove()


def test_a_script_that_holds_a_key(server):
    """One client's script runs on and holds a key, other clients want it, one is blocked on a list."""
    said = ""
    named = server.raw()
    named.call("CLIENT", "SETNAME", "blocked")
    named.send(b"BLPOP list 0\r\n")
    holder = server.raw()
    assert holder.call("SET", "held", "x") == b"+OK\r\n"
    assert holder.call("SET", "needle:7", "in the hay") == b"+OK\r\n"
    others = [server.raw() for _ in range(4)]  # of both workers
    holder.send(b"EVAL \"while true do end\" 1 held\r\n")
    deadline = time.monotonic() + 60
    while said.count("txn=") < 2 and time.monotonic() < deadline:
        for other in others:
            other.send(b"GET held\r\n")
        said = gdb("vellum connections", "vellum locks", "vellum frames",
                   "python arena = find_server()['store']['cache']['arena']",
                   "python page = gdb.selected_inferior().search_memory(int(arena['memory'][0]), 1 << 26,"
                   " b'needle:7')",
                   "python gdb.execute('vellum item %d' % (page - gdb.lookup_type('struct format_item').sizeof))",
                   "python print(arena['frames'][0][0])", pid=server.process.pid)
        if "Operation not permitted" in said:
            pytest.skip("this machine lets nobody trace a process")
    assert re.search(r"conn id=\d+ name=blocked db=0 resp=2 cmd=blpop .* blocked", said), said
    queue = re.search(r"queue of key hash .*\n((?:  .*\n)+)", said).group(1)
    assert re.search(r"key_lock hash=.* granted txn=", queue) and re.search(r"shared waits txn=", queue), said
    assert "not granted: 1" in queue, said
    assert re.search(r"txn (paused|running), next TXN_RUN, HOLDS_KEYS", queue), said
    assert "txn queued, next TXN_RUN, HOLDS_KEYS" in queue, said
    assert re.search(r"^valid.*: [1-9]", said, re.M) and re.search(r"^free: [1-9]", said, re.M), said
    assert re.search(r"item key='needle:7' database=\d+ commit=\d+ payload=10 ", said), said
    assert re.search(r"^frame page=\d+ of file \d+ ", said, re.M), said
    assert "Error" not in said and "Traceback" not in said, said
