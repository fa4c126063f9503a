"""Long values, which go to their place in the store while they arrive: the replies are those that
values in memory would get, and neither memory nor disk stays behind."""

import itertools
import os
import threading
import time

import pytest

from harness import PROXY, bulk, encode

MB = 1 << 20
CHANNEL = 100 * 1024  # pinned, and the driver's
VALUE = os.urandom(300_001)
LONG = os.urandom(9 * MB + 5)


def begin(*words, length):
    """A command up to its last argument's bytes, of which there are to be so many."""
    whole = encode(*words, b"")
    count, rest = whole.split(b"\r\n", 1)
    return count + b"\r\n" + rest[:-len(b"$0\r\n\r\n")] + b"$%d\r\n" % length


COMMANDS = [
    (["SET", "k", VALUE], b"+OK\r\n", True),
    (["set", "k", VALUE, "EX", "100", "GET"], bulk(b"old"), True),
    (["SET", "k", VALUE, "XX", "KEEPTTL"], b"+OK\r\n", True),
    (["SET", "k", VALUE, "NX"], b"$-1\r\n", False),
    (["SET", "k", VALUE, "NX", "XX"], b"-ERR syntax error\r\n", False),
    (["SET", "k", VALUE, "EX", "0"], b"-ERR invalid expire time in 'set' command\r\n", False),
    (["SET", "none", VALUE, "XX"], b"$-1\r\n", False),
    (["SET", "list", VALUE, "GET"],
     b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", False),
    (["SETNX", "k", VALUE], b":0\r\n", False),
    (["SETEX", "k", "100", VALUE], b"+OK\r\n", True),
    (["PSETEX", "k", "0", VALUE], b"-ERR invalid expire time in 'psetex' command\r\n", False),
    (["PSETEX", "k", "100000", VALUE], b"+OK\r\n", True),
    (["GETSET", "k", VALUE], bulk(b"old"), True),
    (["GETSET", "k", VALUE, "more"],
     b"-ERR wrong number of arguments for 'getset' command\r\n", False),
    (["APPEND", "k", VALUE], b":%d\r\n" % (3 + len(VALUE)), None),
    (["SETRANGE", "k", "0", VALUE], b":%d\r\n" % len(VALUE), True),
    (["MSET", "k", VALUE], b"+OK\r\n", True),
    (["nonsense", VALUE], None, False),
    (["SET", VALUE], b"-ERR wrong number of arguments for 'set' command\r\n", False),
]


def test_replies_are_the_usual_ones(server):
    with server.raw() as raw:
        for words, expected, is_put in COMMANDS:
            assert raw.call("DEL", "k", "list")
            assert raw.call("SET", "k", "old") == b"+OK\r\n"
            assert raw.call("RPUSH", "list", "a") == b":1\r\n"
            got = raw.call(*words)
            assert got == expected or (expected is None and got.startswith(b"-ERR unknown")), words
            if is_put is not None:
                assert raw.call("GET", "k") == bulk(VALUE if is_put else b"old"), words
        assert raw.call("SETNX", "fresh", VALUE) == b":1\r\n"
        assert raw.call("GET", "fresh") == bulk(VALUE)
        assert raw.call("SET", "gone", VALUE, "PXAT", "1") == b"+OK\r\n"
        assert raw.call("EXISTS", "gone") == b":0\r\n"


def test_pipelines_keep_their_order(server):
    with server.raw() as raw:
        other = os.urandom(len(VALUE))
        many = (encode("SET", "k", VALUE) + encode("GETRANGE", "k", "0", "9") +
                encode("SET", "k", other) + encode("SET", "k2", LONG) +
                encode("STRLEN", "k2") + encode("GET", "k") + encode("PING"))
        sender = threading.Thread(target=raw.send, args=(many * 4,))
        sender.start()
        for _ in range(4):
            assert raw.reply() == b"+OK\r\n"
            assert raw.reply() == bulk(VALUE[:10])
            assert [raw.reply() for _ in range(2)] == [b"+OK\r\n"] * 2
            assert raw.reply() == b":%d\r\n" % len(LONG)
            assert raw.reply() == bulk(other)
            assert raw.reply() == b"+PONG\r\n"
        sender.join()
        assert raw.call("GET", "k2") == bulk(LONG)


def test_transactions(server):
    with server.raw() as raw, server.raw() as other:
        assert raw.call("MULTI") == b"+OK\r\n"
        assert raw.call("SET", "k", VALUE) == b"+QUEUED\r\n"
        assert raw.call("APPEND", "k", "tail") == b"+QUEUED\r\n"
        assert raw.call("GETSET", "k", LONG) == b"+QUEUED\r\n"
        assert raw.call("COPY", "k", "copy") == b"+QUEUED\r\n"
        assert raw.call("RENAME", "k", "name") == b"+QUEUED\r\n"
        assert other.call("EXISTS", "k") == b":0\r\n"
        assert raw.call("EXEC") == (b"*5\r\n+OK\r\n:%d\r\n" % (len(VALUE) + 4) +
                                    bulk(VALUE + b"tail") + b":1\r\n+OK\r\n")
        assert raw.call("GET", "name") == raw.call("GET", "copy") == bulk(LONG)
        # Given up, aborted, and refused by WATCH.
        for end, reply in (("DISCARD", b"+OK\r\n"), ("EXEC", None)):
            assert raw.call("MULTI") == b"+OK\r\n"
            assert raw.call("SET", "k", VALUE) == b"+QUEUED\r\n"
            if end == "EXEC":
                assert raw.call("nonsense").startswith(b"-ERR unknown")
            got = raw.call(end)
            assert got == reply or got.startswith(b"-EXECABORT")
        assert raw.call("WATCH", "k") == b"+OK\r\n"
        assert other.call("SET", "k", "first") == b"+OK\r\n"
        assert raw.call("MULTI") == b"+OK\r\n"
        assert raw.call("SET", "k", VALUE) == b"+QUEUED\r\n"
        assert raw.call("EXEC") == b"*-1\r\n"
        assert raw.call("GET", "k") == bulk(b"first")


def test_flushes_in_between(server):
    with server.raw() as raw, server.raw() as other:
        assert other.call("SET", "k", VALUE) == b"+OK\r\n"
        raw.send(begin("SET", "long", length=len(LONG)) + LONG[:MB])
        assert other.call("FLUSHALL") == b"+OK\r\n"
        for i in range(10):
            assert other.call("SET", f"k{i}", VALUE) == b"+OK\r\n"
        raw.send(LONG[MB:] + b"\r\n")
        assert raw.reply() == b"+OK\r\n"
        assert raw.call("GET", "long") == bulk(LONG)
        for i in range(10):
            assert other.call("GET", f"k{i}") == bulk(VALUE)
        assert raw.call("MULTI") == b"+OK\r\n"
        for words in (["SET", "k", VALUE], ["FLUSHALL"], ["SET", "k2", VALUE]):
            assert raw.call(*words) == b"+QUEUED\r\n"
        assert raw.call("EXEC") == b"*3\r\n+OK\r\n+OK\r\n+OK\r\n"
        assert raw.call("DBSIZE") == b":1\r\n"
        assert raw.call("GET", "k2") == bulk(VALUE)


def test_monitors_see_all_of_it(server):
    with server.raw() as raw, server.raw() as monitor:
        assert monitor.call("MONITOR") == b"+OK\r\n"
        assert raw.call("SET", "k", "v" * 100_000) == b"+OK\r\n"
        assert monitor.line().endswith(b'"SET" "k" "' + b"v" * 100_000 + b'"\r\n')
        assert raw.call("GET", "k") == bulk(b"v" * 100_000)


def test_in_small_pieces(server):
    """Wherever the pieces end, and other clients go on meanwhile."""
    value = VALUE[:70_000]
    with server.raw() as raw, server.raw() as other:
        request = encode("SET", "k", value) + encode("GET", "k")
        for first, step in ((29, 9_999), (30, 23_456), (len(request) - 25, 1), (10, 65_536)):
            raw.send(request[:first])
            for at in range(first, len(request), step):
                assert other.call("PING") == b"+PONG\r\n"
                raw.send(request[at:at + step])
            assert raw.reply() == b"+OK\r\n"
            assert raw.reply() == bulk(value)


@pytest.mark.vellum
def test_clients_that_vanish_leave_no_space_in_use(make_server):
    """A hundred and fifty megabytes that were given up, in a store that has room for sixty."""
    server = make_server(maxstore="100mb")
    keeper = server.client()
    keeper.set("k", VALUE)
    for i in range(25):
        with server.raw() as raw:
            if i % 5 == 0:
                raw.send(encode("MULTI") + encode("SET", "k", LONG) + encode("PING"))
                assert [raw.reply() for _ in range(3)] == [b"+OK\r\n"] + [b"+QUEUED\r\n"] * 2
            elif i % 5 == 1:
                assert raw.call("SET", "k", LONG, "NX") == b"$-1\r\n"
            elif i % 5 == 2:
                ident = int(raw.call("CLIENT", "ID")[1:])
                raw.send(begin("SET", "k", length=len(LONG)) + LONG[:i * 400_000])
                keeper.client_kill_filter(_id=ident)
                assert raw.closed()
            elif i % 5 == 3:
                raw.send(begin("SET", "k", length=len(LONG)) + LONG)
            else:
                raw.send(encode("SET", "k", LONG, "no option") + encode("QUIT"))
                assert raw.reply() == b"-ERR syntax error\r\n"
                assert raw.reply() == b"+OK\r\n"
    assert keeper.get("k") == VALUE
    for i in range(3):
        keeper.set(f"long:{i}", LONG)
        assert keeper.get(f"long:{i}") == LONG
    assert keeper.info("stats")["total_error_replies"] >= 5
    server.stop()
    status, said = server.check_data()
    assert status == 0, said


@pytest.mark.vellum
def test_a_full_disk_is_told_at_the_end(make_server):
    server = make_server(maxstore="100mb")
    with server.raw() as raw:
        assert raw.call("SET", "k", VALUE) == b"+OK\r\n"
        value = bytes(150 * MB)
        for words in (["SET", "k", value], ["SETEX", "k", "10", value]):
            got = raw.call(*words)
            assert got.startswith(b"-OOM No room left on disk"), got
        assert raw.call("SET", "k", value, "NX") == b"$-1\r\n"
        assert raw.call("GET", "k") == bulk(VALUE)
        assert raw.call("SET", "k2", VALUE) == b"+OK\r\n"


@pytest.mark.vellum
def test_values_longer_than_the_memory(make_server):
    """Of several clients at once."""
    server = make_server(maxmemory="64mb")
    block = os.urandom(MB)

    def send(name):
        with server.raw() as raw:
            raw.send(begin("SET", name, length=60 * MB))
            for i in range(60):
                raw.send(block[i:] + block[:i])
            raw.send(b"\r\n")
            assert raw.reply() == b"+OK\r\n"

    senders = [threading.Thread(target=send, args=(f"k{i}",)) for i in range(3)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert server.peak_memory() < (64 + 40) * MB
    client = server.client()
    assert client.info("everything")["uploads"] == 3
    for i in range(3):
        assert client.strlen(f"k{i}") == 60 * MB
        assert client.getrange(f"k{i}", 37 * MB, 37 * MB + 99) == (block[37:] + block)[:100]


@pytest.mark.vellum
def test_announced_lengths_cost_little(server):
    before = server.peak_memory()
    if PROXY:
        before += 200 * CHANNEL
    raws = [server.raw() for _ in range(200)]
    for raw in raws:
        raw.send(begin("SET", "k", length=512 * MB) + b"v")
    with server.raw() as raw:
        assert raw.call("SET", "k", LONG) == b"+OK\r\n"
        assert raw.call("GET", "k") == bulk(LONG)
    assert server.peak_memory() < before + 40 * MB
    for raw in raws:
        raw.close()


@pytest.mark.vellum
def test_what_was_answered_survives(make_server):
    server = make_server(appendfsync="always")
    with server.raw() as raw, server.raw() as other:
        assert raw.call("SET", "k", LONG) == b"+OK\r\n"
        assert raw.call("SET", "k", VALUE) == b"+OK\r\n"
        other.send(begin("SET", "half", length=len(LONG)) + LONG[:5 * MB])
        time.sleep(0.05)
        assert raw.call("SET", "k2", LONG) == b"+OK\r\n"
        server.kill9()
    server.start()
    with server.raw() as raw:
        assert raw.call("GET", "k") == bulk(VALUE)
        assert raw.call("GET", "k2") == bulk(LONG)
        assert raw.call("DBSIZE") == b":2\r\n"
    server.stop()
    status, said = server.check_data()
    assert status == 0, said


@pytest.mark.vellum
def test_stopping_and_reloading_in_the_middle(make_server):
    server = make_server(enable_debug_command="yes")
    with server.raw() as raw, server.raw() as other:
        assert other.call("SET", "k", VALUE) == b"+OK\r\n"
        raw.send(begin("SET", "k", length=len(LONG)) + LONG[:MB])
        while b"db=0" not in other.call("CLIENT", "INFO"):
            pass
        time.sleep(0.05)
        assert other.call("DEBUG", "RELOAD").startswith(b"-ERR Nothing was reloaded")
        server.restart()
    with server.raw() as raw:
        assert raw.call("GET", "k") == bulk(VALUE)
        assert raw.call("DEBUG", "RELOAD") == b"+OK\r\n"


@pytest.mark.vellum
def test_uploads_that_begin_in_a_reload(make_server):
    """They take runs that the recovery would have found free."""
    server = make_server(enable_debug_command="yes")
    stop, errors = threading.Event(), []

    def write(number):
        try:
            with server.raw() as raw:
                for i in itertools.count():
                    value = os.urandom(200_000 + i % 7 * 30_000)
                    assert raw.call("SET", f"k{number}", value) == b"+OK\r\n"
                    assert raw.call("GET", f"k{number}") == bulk(value)
                    if stop.wait(0.005):
                        return
        except Exception as error:  # pylint: disable=broad-except
            errors.append(repr(error))

    writers = [threading.Thread(target=write, args=(i,)) for i in range(3)]
    for writer in writers:
        writer.start()
    with server.raw() as raw:
        until = time.monotonic() + 10
        reloads = 0
        while reloads < 30 and time.monotonic() < until and not errors:
            reloads += raw.call("DEBUG", "RELOAD") == b"+OK\r\n"
        stop.set()
        for writer in writers:
            writer.join()
    assert not errors and reloads > 0
    server.restart()
    with server.raw() as raw:
        for i in range(3):
            assert raw.call("GET", f"k{i}").startswith(b"$")


def is_closed_after(raw, *parts):
    try:
        for part in parts:
            raw.send(part)
        while True:
            raw.more()
    except (ConnectionError, EOFError):
        return True


@pytest.mark.sockets("the proxy logs in before it asks for a channel")
def test_limits_are_the_usual_ones(make_server):
    server = make_server(requirepass="secret", proto_max_bulk_len="2mb")
    with server.raw() as raw:
        raw.send(begin("SET", "k", length=70_000))
        assert raw.reply() == b"-ERR Protocol error: unauthenticated bulk length\r\n"
    with server.raw() as raw:
        assert raw.call("AUTH", "secret") == b"+OK\r\n"
        assert raw.call("SET", "k", VALUE) == b"+OK\r\n"
        raw.send(begin("SET", "k", length=2 * MB + 1))
        assert raw.reply() == b"-ERR Protocol error: invalid bulk length\r\n"
        assert raw.closed()
    with server.raw() as raw:
        assert raw.call("AUTH", "secret") == b"+OK\r\n"
        assert raw.call("CONFIG", "SET", "client-query-buffer-limit", "1mb") == b"+OK\r\n"
        assert raw.call("SET", "k", VALUE) == b"+OK\r\n"
        assert is_closed_after(raw, begin("SET", "k", length=2 * MB) + bytes(MB), bytes(MB))
    with server.raw() as raw:
        assert raw.call("AUTH", "secret") == b"+OK\r\n"
        assert raw.call("MULTI") == b"+OK\r\n"
        for _ in range(4):
            assert raw.call("SET", "k", VALUE) == b"+QUEUED\r\n"
        assert is_closed_after(raw, encode("PING"))


@pytest.mark.vellum
@pytest.mark.parametrize("length", [1_000_000, 2 * 131072 + 4096, 8 * MB])
def test_a_value_that_grows_far_behind_its_end(server, length):
    """Between its old end and the new one are zeros; and when it goes, so does all of it, and
    nothing else."""
    value = b"A" * length
    other = os.urandom(500_000)
    client = server.client()
    assert client.set("k", value) and client.set("other", other)
    assert client.setrange("k", 536_870_000, "x") == 536_870_001
    for start in (length, 1 << 23, 1 << 25, (1 << 25) + (1 << 17), 536_869_990):
        assert client.getrange("k", start, start + 8) == b"\0" * 9
    assert client.getrange("k", 536_869_999, -1) == b"\0x"
    assert client.getrange("k", 0, length - 1) == value
    assert client.setbit("k", 8 * 300_000_000 + 7, 1) == 0
    assert client.bitfield("k").set("u8", 8 * 150_000_000, 65).execute() == [0]
    assert client.getrange("k", 300_000_000, 300_000_001) == b"\1\0"
    assert client.getrange("k", 150_000_000, 150_000_001) == b"A\0"
    assert client.delete("k") == 1
    for i in range(20):
        assert client.set(f"new:{i}", value[:300_000])
    assert client.get("other") == other
    assert client.info("all")["damaged_items"] == 0
    client.close()
    server.stop()
    assert server.check_data()[0] == 0
