"""A kernel that refuses to write: what is answered, what goes on, and what is there afterwards."""

import resource
import signal
import time

import pytest
import redis

from harness import encode

pytestmark = pytest.mark.vellum

WITHHELD = (b"-MISCONF Errors writing to the journal: whether the change that this reply would show or "
            b"acknowledge is kept is not known until the server is started again. See the log.\r\n")
BEYOND = 64 * 1024  # of any file: the log is shorter, the journal soon is not


def limit_files(server, most):
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, hard))


def write_next(client, acknowledged):
    i = len(acknowledged)
    client.set(f"k{i}", f"value {i}")
    acknowledged.append((i, time.monotonic()))


def write_for(client, seconds, acknowledged):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        write_next(client, acknowledged)
        time.sleep(0.01)


def write_until_refused(client, acknowledged):
    """How the first write that was not done ended."""
    for _ in range(20000):
        try:
            write_next(client, acknowledged)
        except redis.ResponseError as error:
            return str(error)
    return None


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_a_failed_write_refuses_writes_and_nothing_else(make_server, policy):
    server = make_server(appendfsync=policy)
    client = server.client()
    client.set("before", "kept")
    client.rpush("list", "a", "b")
    client.execute_command("WAITAOF", 1, 0, 5000)
    assert client.info()["aof_last_write_status"] == "ok" and client.info("vellum")["failed"] == 0
    acknowledged = []
    if policy == "everysec":  # what is older than a few seconds must be there
        write_for(client, 4, acknowledged)
    limit_files(server, BEYOND)
    ended = write_until_refused(client, acknowledged)
    failed = time.monotonic()
    assert ended is not None and ended.startswith("MISCONF"), ended
    for words in (("SET", "k0", "1"), ("DEL", "before"), ("LPUSH", "list", "c"), ("FLUSHALL",),
                  ("EVAL", "return redis.call('INCR', 'n')", "0"), ("EXPIRE", "list", "1")):
        with pytest.raises(redis.ResponseError, match="MISCONF"):
            client.execute_command(*words)
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        client.pipeline().set("a", "1").set("b", "2").execute()
    limit_files(server, resource.RLIM_INFINITY)  # what has failed stays so
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        client.set("k0", "1")
    assert client.get("before") == b"kept" and client.lrange("list", 0, -1) == [b"a", b"b"]
    # Of `always` only what is durable is shown.
    for i, _ in acknowledged:
        assert client.get(f"k{i}") == b"value %d" % i
    assert client.info()["aof_last_write_status"] == "err" and client.info("vellum")["failed"] == 1
    assert "writing the journal" in server.said()
    end_failed(server)
    assert server.check_data()[0] == 0
    client = server.start().client()
    assert client.get("before") == b"kept" and client.lrange("list", 0, -1) == [b"a", b"b"]
    count = client.dbsize() - 2
    certain = [i for i, when in acknowledged if policy == "always" or when < failed - 3]
    assert certain or policy == "always"
    assert len(certain) <= count <= len(acknowledged) + 1
    assert client.mget([f"k{i}" for i in range(count)]) == [b"value %d" % i for i in range(count)]
    assert client.set("after", "works") and client.info("vellum")["failed"] == 0


def read_replies(raw, count):
    return [raw.reply() for _ in range(count)]


def fill_until_withheld(server, raws):
    """Pipelines of all of them at once; the first whose SET was not acknowledged."""
    limit_files(server, BEYOND)
    for i in range(20000):
        for n, raw in enumerate(raws):
            raw.send(encode("GET", "before") + encode("SET", f"k{n}:{i}", "x") +
                     encode("GET", f"k{n}:{i}") + encode("PING"))
        raws[0].send(encode("RPUSH", "list", "more") + encode("SETRANGE", "large", "0", "w"))
        replies = [read_replies(raw, 4) for raw in raws]
        changes = read_replies(raws[0], 2)
        lost = [n for n, (_, done, _, _) in enumerate(replies) if done.startswith(b"-MISCONF")]
        for n, (before, done, after, ping) in enumerate(replies):
            assert before in (b"$4\r\nkept\r\n", WITHHELD) and ping in (b"+PONG\r\n", WITHHELD)
            assert (done, after) == (b"+OK\r\n", b"$1\r\nx\r\n") or n in lost
            assert n not in lost or after in (WITHHELD, b"$-1\r\n"), after
        if lost and WITHHELD in changes:
            for words in (("LRANGE", "list", "0", "-1"), ("GET", "large")):
                assert (raws[0].call(*words) == WITHHELD) == (changes.pop(0) == WITHHELD), words
        if lost:
            return i, [n for n in lost if replies[n][1] == WITHHELD]
    return None


def end_failed(server):
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 1  # whoever stops it is to know
    server.process = None


def fail_under_way(make_server):
    """Returns a server whose last group of writes has failed, clients, and a key in that group. If the write
    that fails is not that of a group, no group may be in flight: then tries again."""
    for _ in range(10):
        server = make_server(appendfsync="always")
        client = server.client()
        client.set("before", "kept")
        client.set("large", b"v" * 200000)
        client.rpush("list", *["element" * 10] * 20000)
        raws = [server.raw() for _ in range(8)]
        found = fill_until_withheld(server, raws)
        assert found is not None
        i, lost = found
        if lost:
            return server, client, raws, f"k{lost[0]}:{i}"
        end_failed(server)
    raise AssertionError("never was a write under way")


def test_what_is_not_durable_is_answered_by_an_error_in_its_place(make_server):
    server, client, raws, lost_key = fail_under_way(make_server)
    for raw in raws:  # every connection goes on, its replies in order
        raw.send(encode("GET", lost_key) + encode("GET", "before") + encode("MGET", "before", lost_key) +
                 encode("MULTI") + encode("GET", "before") + encode("GET", lost_key) + encode("EXEC") +
                 encode("EVAL", "return #redis.call('GET', KEYS[1])", "1", lost_key) +
                 encode("SET", lost_key, "y") + encode("STRLEN", "before") + encode("PING"))
        replies = read_replies(raw, 11)
        assert replies == [WITHHELD, b"$4\r\nkept\r\n", WITHHELD, b"+OK\r\n", b"+QUEUED\r\n",
                           b"+QUEUED\r\n", WITHHELD, WITHHELD, replies[8], b":4\r\n",
                           b"+PONG\r\n"], replies
        assert b"this write was not done" in replies[8]
    # Nor is it told by messages; those of others arrive, also from who has met it.
    with server.raw() as listener:
        listener.call("SUBSCRIBE", "news")
        assert raws[0].call("EVAL", "redis.call('PUBLISH', 'news', redis.call('GET', KEYS[1]))", "1",
                            lost_key) == WITHHELD
        assert raws[0].call("PUBLISH", "news", "good") == b":1\r\n"
        assert listener.reply() == b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$4\r\ngood\r\n"
    assert int(client.info("errorstats")["errorstat_MISCONF"].split("=")[1]) >= 8 * 5
    client.config_set("appendfsync", "everysec")  # there it is shown
    assert client.get(lost_key) == b"x" and client.get("large")[1:] == b"v" * 199999
    assert client.lrange("list", 0, -1)[:20000] == [b"element" * 10] * 20000
    end_failed(server)


def test_equal_commands_of_one_packet_have_an_error_each(make_server):
    """They run together where the list is long, and the commit that does them may fail."""
    server = make_server(appendfsync="always")
    with server.raw() as raw:
        for i in range(100):
            raw.call("RPUSH", "list", *[f"{i}:{j}" + "x" * 50 for j in range(10)])
        limit_files(server, BEYOND)
        for _ in range(2000):
            raw.send(encode("LPOP", "list") * 3)
            replies = [raw.reply() for _ in range(3)]
            if any(reply.startswith(b"-MISCONF") for reply in replies):
                break
        else:
            pytest.fail("no write has failed")
        assert raw.call("PING") == b"+PONG\r\n"
    end_failed(server)


@pytest.mark.parametrize("command", [("SELECT", "1"), ("HELLO", "3")], ids=lambda words: words[0])
def test_a_transaction_that_fails_leaves_the_session_alone(make_server, command):
    server = make_server()
    limit_files(server, BEYOND)
    ended = write_until_refused(server.client(), [])
    assert ended is not None
    with server.raw() as raw:
        raw.call("MULTI")
        raw.call(*command)
        raw.call("SET", "k", "v")
        assert raw.call("EXEC").startswith(b"-EXECABORT")
        info = raw.call("CLIENT", "INFO")
        assert b" db=0 " in info and b" resp=2 " in info and info[:1] == b"$"
    end_failed(server)
