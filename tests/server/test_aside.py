"""Replies whose beginning is known last (how many keys, members, bytes): whole, however long they
are, in little memory, and without holding up anybody while their client does not read."""

import hashlib
import threading
import time

import pytest

from harness import IS_REDIS, encode

MB = 2**20
COUNT = 60000
BIG = 3 * MB


def name(i):
    return b"member:%030d" % i


def batches(count, size=2000):
    for at in range(0, count, size):
        yield range(at, min(at + size, count))


def fill(client):
    for part in batches(COUNT):
        with client.pipeline(transaction=False) as pipe:
            pipe.mset({b"key:%030d" % i: b"v" for i in part})
            pipe.sadd("set", *[name(i) for i in part])
            pipe.sadd("other", *[name(i + COUNT // 2) for i in part])
            pipe.hset("hash", mapping={name(i): i for i in part})
            pipe.zadd("zset", {name(i): i for i in part})
            pipe.rpush("list", *[name(i) for i in part])
            pipe.execute()
    client.set("string", b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(BIG // 32)))


@pytest.fixture
def filled(make_server):
    options = {} if IS_REDIS else {"maxmemory": "32mb", "journal_size": "8mb"}
    server = make_server(**options)
    client = server.client()
    fill(client)
    return server, client


def ask(client, command):
    """The reply to a command, whose elements may have come in any order."""
    reply = client.execute_command(*command)
    if isinstance(reply, (list, tuple)) and reply and isinstance(reply[-1], (dict, list)):
        reply = reply[-1]
    return sorted(reply.items()) if isinstance(reply, dict) else sorted(reply)


QUESTIONS = {
    ("KEYS", "key:*"): [b"key:%030d" % i for i in range(COUNT)],
    ("SCAN", 0, "MATCH", "key:*", "COUNT", 10**7): [b"key:%030d" % i for i in range(COUNT)],
    ("SUNION", "set", "other"): [name(i) for i in range(COUNT * 3 // 2)],
    ("SINTER", "set", "other"): [name(i) for i in range(COUNT // 2, COUNT)],
    ("SDIFF", "set", "other"): [name(i) for i in range(COUNT // 2)],
    ("SSCAN", "set", 0, "COUNT", 10**7): [name(i) for i in range(COUNT)],
    ("HSCAN", "hash", 0, "COUNT", 10**7): [(name(i), b"%d" % i) for i in range(COUNT)],
    ("ZSCAN", "zset", 0, "COUNT", 10**7): [(name(i), float(i)) for i in range(COUNT)],
}


def test_long_replies_are_whole(filled):
    _, client = filled
    for command, expected in QUESTIONS.items():
        assert ask(client, command) == expected, command


@pytest.mark.vellum
def test_long_replies_leave_from_the_disk(filled):
    """Each more than this server may have in memory of all replies together."""
    _, client = filled
    for command in QUESTIONS:
        before = client.info("vellum")["pages_written"]
        client.execute_command(*command)
        assert client.info("vellum")["pages_written"] - before > MB // 4096, command


@pytest.mark.vellum
def test_a_client_that_does_not_read(filled):
    """It holds neither memory nor keys; what it reads at last is of the time it asked."""
    server, client = filled
    for command in (("SUNION", "set", "other"), ("KEYS", "*"), ("DUMP", "set")):
        with server.raw(receive_buffer=4096) as raw:
            raw.send(encode(*command))
            raw.more()
            assert client.info("memory")["mem_clients_normal"] < 2 * MB
            began = time.monotonic()
            assert client.sadd("set", "one more") == 1
            assert time.monotonic() - began < 5
            assert client.srem("set", "one more") == 1
            head = raw.line()
            if command[0] == "DUMP":
                raw.exactly(int(head[1:]) + 2)
                continue
            for _ in range(int(head[1:])):
                found = raw.reply()
                assert b"one more" not in found
    assert client.flushall() is True
    assert client.keys("*") == []


@pytest.mark.vellum
def test_space_comes_back(filled):
    """Of replies that were read, and of those whose client has gone."""
    server, client = filled
    client.execute_command("SUNION", "set", "other")
    size = client.info("vellum")["store_bytes"]
    for i in range(12):
        with server.raw(receive_buffer=4096) as raw:
            raw.send(encode("SUNION", "set", "other"))
            if i % 2:
                raw.more()
    for _ in range(6):
        client.execute_command("SUNION", "set", "other")
    assert client.info("vellum")["store_bytes"] <= size + 16 * MB


@pytest.mark.vellum
def test_where_there_is_no_room_aside(make_server):
    """A full disk: what memory can take is still answered."""
    client = make_server(maxstore=48 * MB, journal_size=8 * MB, partitions=4,
                         maxmemory="32mb").client()
    for part in batches(COUNT):
        client.sadd("set", *[name(i) for i in part])
    with pytest.raises(Exception, match="OOM"):
        for i in range(100):
            client.set(f"filler:{i}", b"x" * MB)
    assert ask(client, ("SUNION", "set")) == [name(i) for i in range(COUNT)]
    assert len(client.keys("*")) > 1


def test_dumps_of_long_values_restore(filled):
    _, client = filled
    for key in ("string", "set", "list", "hash", "zset"):
        payload = client.dump(key)
        assert client.restore("copy", 0, payload, replace=True)
        assert client.dump("copy") == payload or key in ("set", "hash", "zset")
        assert client.type("copy") == client.type(key)
    assert client.get("string") == client.get("string")


def test_a_long_string_is_dumped_as_it_is(filled):
    _, client = filled
    value = client.get("string")
    assert client.restore("copy", 0, client.dump("string")) and client.get("copy") == value
    with client.pipeline() as pipe:
        pipe.setrange("string", 0, "changed").dump("string").get("string")
        _, payload, changed = pipe.execute()
    assert client.restore("copy", 0, payload, replace=True)
    assert client.get("copy") == changed == b"changed" + value[7:]


@pytest.mark.parametrize("command", [("SRANDMEMBER", "set"), ("HRANDFIELD", "hash"),
                                     ("ZRANDMEMBER", "zset")])
def test_draws_without_memory(filled, command):
    """Many more than there are members; somebody writes meanwhile."""
    server, client = filled
    members = {name(i) for i in range(COUNT)}
    with server.raw() as raw:
        raw.send(encode(*command, -4 * COUNT))
        assert raw.line() == b"*%d\r\n" % (4 * COUNT)
        writer = threading.Thread(target=client.delete, args=(command[1],))
        writer.start()
        for _ in range(4 * COUNT):
            size = int(raw.line()[1:])
            assert raw.exactly(size + 2)[:-2] in members
        writer.join()
        assert raw.call("EXISTS", command[1]) == b":0\r\n"


@pytest.mark.vellum
def test_inside_transactions_and_scripts(filled):
    _, client = filled
    expected = QUESTIONS[("SDIFF", "set", "other")]
    with client.pipeline() as pipe:
        pipe.sdiff("set", "other").keys("key:*")
        found, keys = pipe.execute()
    assert sorted(found) == expected and len(keys) == COUNT
    assert client.eval("return #redis.call('SDIFF', 'set', 'other')", 2, "set", "other") == \
        COUNT // 2
