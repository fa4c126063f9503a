"""CLIENT PAUSE: what waits, what does not, for how long, and what becomes of clients that wait."""

import time

import pytest

import harness
from harness import bulk, encode, eventually, processor_seconds, resident_bytes
from test_blocking import blocked
from test_pubsub import connect, silent  # noqa: F401

pytestmark = pytest.mark.shared

LONG = 3600000
READ_ONLY = "#!lua flags=no-writes\nreturn 1"
WRITING = "#!lua\nreturn 1"


@pytest.fixture
def pauser(connect):  # noqa: F811
    """A client that pauses only writes, and ends the pause."""
    raw = connect()
    yield raw
    assert raw.call("CLIENT", "UNPAUSE") == b"+OK\r\n"


def info(raw, name):
    lines = raw.call("INFO", "everything").split(b"\r\n")
    return int(next(line for line in lines if line.startswith(name.encode() + b":")).split(b":")[1])


def sha_of(raw, script):
    return raw.call("SCRIPT", "LOAD", script)[5:45]


def test_errors(connect, pauser):  # noqa: F811
    raw = connect()
    for words, error in {
        ("x",): b"timeout is not an integer or out of range",
        ("1.5", "WRITE"): b"timeout is not an integer or out of range",
        (-1,): b"timeout is negative",
        ("x", "READ"): b"CLIENT PAUSE mode must be WRITE or ALL",
        (1, "WRITE", "x"): b"unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.",
    }.items():
        assert raw.call("CLIENT", "PAUSE", *words) == b"-ERR " + error + b"\r\n"
    assert raw.call("CLIENT", "PAUSE") == (
        b"-ERR wrong number of arguments for 'client|pause' command\r\n")
    assert raw.call("CLIENT", "UNPAUSE", "x") == (
        b"-ERR wrong number of arguments for 'client|unpause' command\r\n")
    assert raw.call("EVAL", "return redis.call('CLIENT', 'PAUSE', 1)", 0).startswith(b"-ERR This Redis")
    assert raw.call("SET", "k", "v") == b"+OK\r\n"  # nothing of this has paused anything


@pytest.mark.vellum
def test_an_end_beyond_all_time(connect, pauser):  # noqa: F811
    """7.0 takes it for one that has passed."""
    raw = connect()
    assert raw.call("CLIENT", "PAUSE", 2**63 - 1) == b"-ERR timeout is out of range\r\n"
    now_ms = int(time.time() * 1000)
    assert pauser.call("CLIENT", "PAUSE", 2**63 - 1 - now_ms - 3600000, "WRITE") == b"+OK\r\n"
    raw.send(encode("SET", "k", "v"))
    blocked(pauser, 1)


WAIT = [("SET", "k", "v"), ("GETEX", "s"), ("GETDEL", "k"), ("SORT", "l"), ("BITFIELD", "s"), ("PFCOUNT", "p"),
        ("PUBLISH", "c", "m"), ("SPUBLISH", "c", "m"), ("EVAL", "return 1", 0), ("EVAL", WRITING, 0),
        ("EVAL_RO", WRITING, 0), ("EVALSHA", "0" * 40, 0), ("BLPOP", "none", 1), ("FLUSHALL",), ("SWAPDB", 0, 1),
        ("EXPIRE", "none", 1), ("RESTORE", "k", 0, "x"), ("COPY", "none", "k")]
GO_ON = [("GET", "s"), ("BITFIELD_RO", "s"), ("SORT_RO", "l"), ("EVAL_RO", "return 1", 0),
         ("EVAL", READ_ONLY, 0), ("EVALSHA_RO", "0" * 40, 0), ("PING",), ("WAIT", 0, 0), ("SCRIPT", "LOAD", "return 1"),
         ("WATCH", "s"), ("UNWATCH",), ("RANDOMKEY",), ("KEYS", "*"), ("OBJECT", "ENCODING", "s"),
         ("CONFIG", "RESETSTAT"), ("CLIENT", "LIST"), ("ECHO", "x"), ("SUBSCRIBE", "c")]


def test_what_waits_while_writes_are_paused(connect, pauser):  # noqa: F811
    pauser.send(encode("SET", "s", "v") + encode("RPUSH", "l", 2, 1) + encode("PFADD", "p", 1))
    assert [pauser.reply() for _ in range(3)] == [b"+OK\r\n", b":2\r\n", b":1\r\n"]
    assert pauser.call("CLIENT", "PAUSE", LONG, "write") == b"+OK\r\n"
    for words in GO_ON:
        assert connect().call(*words)[:1] != b""
    waiting = []
    for words in WAIT:
        waiting.append(connect())
        waiting[-1].send(encode(*words))
        blocked(pauser, len(waiting))
    assert all(silent(raw, 0.01) for raw in waiting)
    assert pauser.call("CLIENT", "UNPAUSE") == b"+OK\r\n"
    for raw in waiting:
        assert raw.reply() != b""
    blocked(pauser, 0)


def test_scripts_are_judged_by_their_first_line(connect, pauser):  # noqa: F811
    readers, writer = [sha_of(pauser, READ_ONLY)], sha_of(pauser, WRITING)
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    for sha in readers:
        assert connect().call("EVALSHA", sha.upper(), 0) == b":1\r\n"
    waiting = connect()
    waiting.send(encode("EVALSHA", writer, 0))
    blocked(pauser, 1)
    assert pauser.call("EVAL_RO", "return redis.call('PUBLISH', 'c', 'm')", 0).startswith(
        b"-ERR Write commands are not allowed from read-only scripts.")
    pauser.call("CLIENT", "UNPAUSE")
    assert waiting.reply() == b":1\r\n"


def test_errors_do_not_wait(connect, pauser):  # noqa: F811
    subscriber = connect()
    subscriber.call("SUBSCRIBE", "c")
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    raw = connect()
    assert raw.call("SET", "k") == b"-ERR wrong number of arguments for 'set' command\r\n"
    assert raw.call("SET").startswith(b"-ERR wrong number")
    assert raw.call("NOSUCH", "k", "v").startswith(b"-ERR unknown command 'NOSUCH'")
    assert raw.call("CONFIG", "NOSUCH").startswith(b"-ERR unknown subcommand")
    assert subscriber.call("SET", "k", "v").startswith(b"-ERR Can't execute 'set'")
    raw.send(b"*1\r\n$x\r\n")
    assert raw.reply() == b"-ERR Protocol error: invalid bulk length\r\n"


@pytest.mark.sockets("the proxy is given no password")
def test_password_first(connect, make_server):  # noqa: F811
    server = make_server(requirepass="secret")
    with server.raw() as known, server.raw() as stranger:
        assert known.call("AUTH", "secret") == b"+OK\r\n"
        assert known.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
        assert stranger.call("SET", "k", "v") == b"-NOAUTH Authentication required.\r\n"
        assert stranger.call("AUTH", "secret") == b"+OK\r\n"
        stranger.send(encode("SET", "k", "v"))
        blocked(known, 1)
        known.call("CLIENT", "UNPAUSE")
        assert stranger.reply() == b"+OK\r\n"


def test_commands_behind_keep_their_order(connect, pauser):  # noqa: F811
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    raw = connect()
    raw.send(encode("GET", "k") + encode("ECHO", "a") + encode("SET", "k", 1) + encode("GET", "k") +
             encode("INCR", "k") + encode("NOSUCH") + encode("PING"))
    assert [raw.reply() for _ in range(2)] == [b"$-1\r\n", bulk("a")]
    blocked(pauser, 1)
    raw.send(encode("GET", "k"))
    assert silent(raw)
    pauser.call("CLIENT", "UNPAUSE")
    replies = [raw.reply() for _ in range(6)]
    assert replies[:3] == [b"+OK\r\n", bulk("1"), b":2\r\n"] and replies[3].startswith(b"-ERR unknown")
    assert replies[4:] == [b"+PONG\r\n", bulk("2")]


def test_inline_commands_and_long_values_wait(connect, pauser):  # noqa: F811
    value = b"v" * (1 << 20)
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    inline, long, halves = connect(), connect(), connect()
    inline.send(b"SET inline 'a b'\r\nGET inline\r\n")
    long.send(encode("SET", "long", value) + encode("STRLEN", "long"))
    words = encode("SET", "halves", value)
    halves.send(words[:600000])
    blocked(pauser, 2)
    halves.send(words[600000:] + encode("STRLEN", "halves"))
    blocked(pauser, 3)
    pauser.call("CLIENT", "UNPAUSE")
    assert [inline.reply() for _ in range(2)] == [b"+OK\r\n", bulk("a b")]
    for raw in (long, halves):
        assert [raw.reply() for _ in range(2)] == [b"+OK\r\n", b":%d\r\n" % len(value)]
    assert inline.call("GET", "halves") == bulk(value)


def took(raw, *commands):
    """Seconds, from before the first to after the last: no less than what was to pass between them."""
    begin = time.monotonic()
    for words in commands:
        assert raw.call(*words)[:1] != b"-"
    return time.monotonic() - begin


def test_all_commands_wait_for_the_end(connect):  # noqa: F811
    """Those of the client that pauses, too, and CLIENT UNPAUSE."""
    pauser, mistaken, others = connect(), connect(), [connect() for _ in range(3)]
    for raw in (mistaken, *others):
        raw.call("PING")  # with the proxy, it has its channel then
    begin = time.monotonic()
    assert pauser.call("CLIENT", "PAUSE", 1500) == b"+OK\r\n"
    others[0].send(encode("PING"))
    others[1].send(encode("CLIENT", "UNPAUSE"))
    others[2].send(encode("MULTI") + encode("PING") + encode("EXEC"))
    assert mistaken.call("NOSUCH").startswith(b"-ERR unknown command")
    assert time.monotonic() - begin < 1.5
    assert pauser.call("PING") == b"+PONG\r\n"
    assert time.monotonic() - begin >= 1.5
    assert [raw.reply() for raw in others] == [b"+PONG\r\n", b"+OK\r\n", b"+OK\r\n"]
    blocked(pauser, 0)


def test_the_longer_end_and_the_stricter_mode_win(connect):  # noqa: F811
    raw, other = connect(), connect()

    def pause(ms, mode):
        return "CLIENT", "PAUSE", ms, mode

    set_it, get_it = ("SET", "k", "v"), ("GET", "k")
    assert took(raw, pause(500, "WRITE"), pause(1, "WRITE"), set_it) >= 0.5
    assert took(raw, pause(500, "WRITE"), pause(0, "WRITE"), set_it) >= 0.5
    begin = time.monotonic()
    assert raw.call(*pause(100, "WRITE")) == b"+OK\r\n"
    other.send(encode(*set_it))
    assert raw.call(*pause(600, "WRITE")) == b"+OK\r\n"
    assert other.reply() == b"+OK\r\n"
    assert time.monotonic() - begin >= 0.6
    # The two are one pause then: ALL holds to its end.
    assert took(raw, pause(500, "WRITE"), pause(1, "ALL"), get_it) >= 0.5
    assert took(raw, pause(500, "WRITE"), pause(0, "ALL"), get_it) >= 0.5
    assert took(raw, pause(500, "ALL"), pause(500, "WRITE"), get_it) >= 0.5
    took(raw, pause(0, "ALL"), set_it, pause(0, "WRITE"), set_it)


def test_a_pause_ends_by_itself_on_each_worker(connect):  # noqa: F811
    pauser, others = connect(), [connect() for _ in range(12)]
    begin = time.monotonic()
    assert pauser.call("CLIENT", "PAUSE", 800, "WRITE") == b"+OK\r\n"
    for i, raw in enumerate(others):
        raw.send(encode("SET", f"k{i}", i))
    assert [raw.reply() for raw in others] == [b"+OK\r\n"] * 12
    assert time.monotonic() - begin >= 0.8
    assert pauser.call("DBSIZE") == b":12\r\n"


def test_a_short_pause_after_a_long_one(connect, pauser):  # noqa: F811
    raw = connect()
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    raw.send(encode("SET", "k", 1))
    blocked(pauser, 1)
    pauser.send(encode("CLIENT", "UNPAUSE") + encode("CLIENT", "PAUSE", 300, "WRITE"))
    assert [pauser.reply() for _ in range(2)] == [b"+OK\r\n"] * 2
    assert raw.reply() == b"+OK\r\n"
    assert raw.call("SET", "k", 2) == b"+OK\r\n"


def test_exec_is_judged_as_a_whole(connect, pauser):  # noqa: F811
    reader, writer, script, late = [connect() for _ in range(4)]
    writer.send(encode("MULTI") + encode("GET", "k") + encode("SET", "k", 1))
    assert [writer.reply() for _ in range(3)] == [b"+OK\r\n"] + [b"+QUEUED\r\n"] * 2
    script.send(encode("MULTI") + encode("EVAL", "return 5", 0))
    assert [script.reply() for _ in range(2)] == [b"+OK\r\n", b"+QUEUED\r\n"]
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    reader.send(encode("MULTI") + encode("GET", "k") + encode("EVAL", READ_ONLY, 0) +
                encode("EVAL_RO", "return 2", 0) + encode("EXEC"))
    assert [reader.reply() for _ in range(5)][4] == b"*3\r\n$-1\r\n:1\r\n:2\r\n"
    assert reader.call("EXEC") == b"-ERR EXEC without MULTI\r\n"
    writer.send(encode("EXEC"))
    script.send(encode("EXEC"))
    blocked(pauser, 2)
    late.send(encode("MULTI") + encode("SET", "k", 2) + encode("EXEC"))  # not even queued
    assert late.reply() == b"+OK\r\n"
    blocked(pauser, 3)
    assert silent(late)
    pauser.call("CLIENT", "UNPAUSE")
    assert writer.reply()[-5:] == b"+OK\r\n"
    assert script.reply() == b"*1\r\n:5\r\n"
    assert [late.reply() for _ in range(2)] == [b"+QUEUED\r\n", b"*1\r\n+OK\r\n"]


def test_watched_keys_of_an_exec_that_waits(connect, pauser):  # noqa: F811
    watcher, writer = connect(), connect()
    watcher.send(encode("WATCH", "k") + encode("MULTI") + encode("SET", "k", "mine"))
    assert [watcher.reply() for _ in range(3)][2] == b"+QUEUED\r\n"
    writer.send(encode("MULTI") + encode("SET", "k", "other") + encode("CLIENT", "PAUSE", LONG, "WRITE") +
                encode("SET", "l", 1) + encode("EXEC"))
    assert [writer.reply() for _ in range(5)][4] == b"*3\r\n" + b"+OK\r\n" * 3  # it pauses from its end on
    watcher.send(encode("EXEC"))
    writer.send(encode("SET", "m", 1))
    blocked(pauser, 2)
    assert pauser.call("MGET", "k", "l", "m") == b"*3\r\n" + bulk("other") + bulk("1") + b"$-1\r\n"
    pauser.call("CLIENT", "UNPAUSE")
    assert watcher.reply() == b"*-1\r\n"
    assert writer.reply() == b"+OK\r\n"


def test_expired_keys_are_absent_but_not_deleted(connect, pauser):  # noqa: F811
    before = info(pauser, "expired_keys")
    pauser.send(encode("MULTI") + b"".join(encode("SET", f"k{i}", i, "PX", 30) for i in range(20)) +
                encode("CLIENT", "PAUSE", LONG, "WRITE") + encode("EXEC"))
    assert [pauser.reply() for _ in range(23)][-1].count(b"+OK") == 21
    eventually(lambda: pauser.call("EXISTS", *(f"k{i}" for i in range(20))) == b":0\r\n")
    time.sleep(0.5)
    assert pauser.call("MGET", "k1", "k2") == b"*2\r\n" + b"$-1\r\n" * 2
    assert pauser.call("DBSIZE") == b":20\r\n"
    assert info(pauser, "expired_keys") == before
    if not harness.IS_REDIS:  # it looks for another key, forever
        assert pauser.call("RANDOMKEY") == b"$-1\r\n"
    pauser.call("CLIENT", "UNPAUSE")
    eventually(lambda: pauser.call("DBSIZE") == b":0\r\n")
    assert info(pauser, "expired_keys") == before + 20


def test_expired_keys_go_after_a_pause_that_ends_by_itself(connect):  # noqa: F811
    raw = connect()
    raw.send(encode("SET", "k", 1, "PX", 20) + encode("CLIENT", "PAUSE", 500, "WRITE"))
    assert [raw.reply() for _ in range(2)] == [b"+OK\r\n"] * 2
    begin = time.monotonic()
    time.sleep(0.3)
    assert raw.call("DBSIZE") == b":1\r\n" or time.monotonic() - begin > 0.45
    eventually(lambda: raw.call("DBSIZE") == b":0\r\n")


def test_clients_that_block_are_not_held_back(connect, pauser):  # noqa: F811
    """Their time-outs end during the pause; elements come after it."""
    short, long = connect(), connect()
    short.send(encode("BLPOP", "q", 0.4))
    long.send(encode("BLPOP", "q", 0))
    blocked(pauser, 2)
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    pusher = connect()
    pusher.send(encode("RPUSH", "q", "x"))
    assert short.reply() == b"*-1\r\n"
    blocked(pauser, 2)
    assert silent(long)
    pauser.call("CLIENT", "UNPAUSE")
    assert pusher.reply() == b":1\r\n"
    assert long.reply() == b"*2\r\n" + bulk("q") + bulk("x")


@pytest.mark.vellum
def test_unblock_does_not_end_a_pause(connect, pauser):  # noqa: F811
    """7.0 ends itself over that."""
    raw = connect()
    number = int(raw.call("CLIENT", "ID")[1:])
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    raw.send(encode("SET", "k", "v"))
    blocked(pauser, 1)
    for how in ((), ("TIMEOUT",), ("ERROR",)):
        assert pauser.call("CLIENT", "UNBLOCK", number, *how) == b":0\r\n"
    assert silent(raw)


def test_client_list_shows_who_waits(connect, pauser):  # noqa: F811
    raw = connect()
    raw.call("CLIENT", "SETNAME", "held")
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    raw.send(encode("SET", "k", "v"))
    blocked(pauser, 1)
    line = next(line for line in pauser.call("CLIENT", "LIST").split(b"\n") if b" name=held " in line)
    assert b" flags=b " in line and b" cmd=set " in line
    pauser.call("CLIENT", "UNPAUSE")
    assert raw.reply() == b"+OK\r\n"
    line = next(line for line in pauser.call("CLIENT", "LIST").split(b"\n") if b" name=held " in line)
    assert b" flags=N " in line


def test_commands_of_clients_that_are_gone_never_run(connect, pauser):  # noqa: F811
    killed, closed, ended = connect(), connect(), connect()
    number = int(killed.call("CLIENT", "ID")[1:])
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    for raw in (killed, closed, ended):
        raw.send(encode("INCR", "k") + encode("INCR", "k"))
    blocked(pauser, 3)
    assert pauser.call("CLIENT", "KILL", "ID", number) == b":1\r\n"
    assert killed.closed()
    closed.close()
    blocked(pauser, 1)
    ended.send(encode("INCR", "k") * 1000)  # there is input before the end
    ended.close()
    blocked(pauser, 0)
    pauser.call("CLIENT", "UNPAUSE")
    assert pauser.call("GET", "k") == b"$-1\r\n"


def test_waiting_costs_nothing(connect, pauser, server):  # noqa: F811
    """Neither time nor memory, however much the clients send."""
    waiting = [connect() for _ in range(20)]
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    for raw in waiting:
        raw.send(encode("INCR", "k"))
    blocked(pauser, len(waiting))
    before = resident_bytes(server.process)
    flood, sent = encode("INCR", "k") * 20000, []
    for raw in waiting:
        raw.socket.settimeout(0.05)
        sent.append(0)
        try:
            while sent[-1] < 200 * len(flood):
                sent[-1] += raw.socket.send(flood[sent[-1] % len(flood):])
        except TimeoutError:
            pass
        raw.socket.settimeout(60)
    if not harness.IS_REDIS:
        assert resident_bytes(server.process) - before < 16 << 20
        assert max(sent) < 200 * len(flood)
    begin = processor_seconds(server.process)
    time.sleep(2)
    assert processor_seconds(server.process) - begin < 0.5
    pauser.call("CLIENT", "UNPAUSE")
    for raw in waiting:
        assert raw.reply().startswith(b":")


def test_a_stop_does_not_wait_for_the_end(make_server):
    server = make_server()
    with server.raw() as pauser, server.raw() as waiting:
        assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
        waiting.send(encode("SET", "never", 1))
        blocked(pauser, 1)
        server.stop()
        assert waiting.closed()
    server.start()
    with server.raw() as raw:  # a pause does not outlive the server
        assert raw.call("EXISTS", "never") == b":0\r\n"
        assert raw.call("SET", "k", "v") == b"+OK\r\n"


@pytest.mark.vellum
def test_info_shows_the_pause(connect, pauser):  # noqa: F811
    def shown():
        lines = pauser.call("INFO", "vellum").split(b"\r\n")
        return dict(line.split(b":") for line in lines if line.startswith(b"client_pause"))
    assert shown() == {b"client_pause": b"none", b"client_pause_ms": b"0"}
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    assert shown()[b"client_pause"] == b"write"
    assert LONG - 60000 < int(shown()[b"client_pause_ms"]) <= LONG
    pauser.call("CLIENT", "UNPAUSE")
    assert shown() == {b"client_pause": b"none", b"client_pause_ms": b"0"}


def test_help(connect):  # noqa: F811
    lines = connect().call("CLIENT", "HELP")
    assert b"PAUSE <timeout> [WRITE|ALL]\r\n" in lines and b"UNPAUSE\r\n" in lines


def library(version, *functions):
    """Functions of these names and flags, each of which returns its library's version."""
    return (f"#!lua name=lib{version}\n" + "".join(
        f"redis.register_function{{function_name='{name}', callback=function() return {version} end, "
        f"flags={{{flags}}}}}\n" for name, flags in functions))


def test_functions_that_no_worker_has_called(connect, pauser):  # noqa: F811
    """Whether they write is known at once on each worker, to any case of the name, and after a change."""
    readers = [(f"read_{i}", "'allow-stale', 'no-writes'") for i in range(20)]
    assert pauser.call("FUNCTION", "LOAD", library(1, ("write", ""), ("later", "'no-writes'"), *readers)) == bulk("lib1")
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    for name, _ in readers:
        assert connect().call("FCALL", name.upper(), "0") == b":1\r\n"
    writing = [connect() for _ in range(3)]
    for raw in writing:
        raw.send(encode("FCALL", "write", "0"))
    blocked(pauser, 3)
    pauser.call("CLIENT", "UNPAUSE")
    assert [raw.reply() for raw in writing] == [b":1\r\n"] * 3

    assert pauser.call("FUNCTION", "DELETE", "lib1") == b"+OK\r\n"
    assert pauser.call("FUNCTION", "LOAD", library(2, ("write", "'no-writes'"), ("later", ""))) == bulk("lib2")
    assert pauser.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
    for _ in range(6):
        assert connect().call("FCALL", "write", "0") == b":2\r\n"
    late = connect()
    late.send(encode("FCALL", "later", "0"))
    blocked(pauser, 1)
    pauser.call("CLIENT", "UNPAUSE")
    assert late.reply() == b":2\r\n"
    assert pauser.call("FUNCTION", "FLUSH") == b"+OK\r\n"


def test_functions_after_a_restart(make_server):
    server = make_server()
    with server.raw() as raw:
        assert raw.call("FUNCTION", "LOAD", library(1, ("read", "'no-writes'"), ("write", ""))) == bulk("lib1")
    server.restart()
    with server.raw() as raw, server.raw() as late:
        assert raw.call("CLIENT", "PAUSE", LONG, "WRITE") == b"+OK\r\n"
        late.send(encode("FCALL", "write", "0"))
        for _ in range(6):
            with server.raw() as other:
                assert other.call("FCALL", "read", "0") == b":1\r\n"
        blocked(raw, 1)
        raw.call("CLIENT", "UNPAUSE")
        assert late.reply() == b":1\r\n"
