"""Replies whose beginning is known last (how many keys, members, bytes): whole, however long they
are, in little memory, and without holding up anybody while their client does not read. And what is
made of more than the cache has room for."""

import hashlib
import threading
import time

import pytest

from harness import IS_REDIS, encode

MB = 2**20
COUNT = 40000
SMALL = {} if IS_REDIS else {"maxmemory": "64mb"}


def name(i):
    return b"member:%030d" % i


def batches(count, size=2000):
    for at in range(0, count, size):
        yield range(at, min(at + size, count))


FILL = {
    "keys": lambda pipe, part: pipe.mset({b"key:%030d" % i: b"v" for i in part}),
    "set": lambda pipe, part: pipe.sadd("set", *[name(i) for i in part]),
    "other": lambda pipe, part: pipe.sadd("other", *[name(i + COUNT // 2) for i in part]),
    "hash": lambda pipe, part: pipe.hset("hash", mapping={name(i): i for i in part}),
    "zset": lambda pipe, part: pipe.zadd("zset", {name(i): i for i in part}),
    "list": lambda pipe, part: pipe.rpush("list", *[name(i * 7919 % COUNT) for i in part]),
}


def fill(client, *what):
    for part in batches(COUNT):
        with client.pipeline(transaction=False) as pipe:
            for kind in what:
                FILL[kind](pipe, part)
            pipe.execute()


def ask(client, command):
    """The reply to a command; most may come in any order."""
    reply = client.execute_command(*command)
    if isinstance(reply, (list, tuple)) and isinstance(reply[-1], (dict, list)):
        reply = reply[-1]
    if command[0] in ("SORT", "ZUNION"):
        return reply
    return sorted(reply.items()) if isinstance(reply, dict) else sorted(reply)


KEYS = [b"key:%030d" % i for i in range(COUNT)]
NAMES = [name(i) for i in range(COUNT)]
QUESTIONS = {
    ("KEYS", "key:*"): KEYS,
    ("SCAN", 0, "MATCH", "key:*", "COUNT", 10**7): KEYS,
    ("SUNION", "set", "other"): [name(i) for i in range(COUNT * 3 // 2)],
    ("SINTER", "set", "set"): NAMES,
    ("SDIFF", "set", "nothing"): NAMES,
    ("SSCAN", "set", 0, "COUNT", 10**7): NAMES,
    ("HSCAN", "hash", 0, "COUNT", 10**7): [(name(i), b"%d" % i) for i in range(COUNT)],
    ("ZSCAN", "zset", 0, "COUNT", 10**7): [(name(i), float(i)) for i in range(COUNT)],
    ("SORT", "list", "ALPHA"): NAMES,
    ("ZUNION", 1, "zset", "WEIGHTS", -1): NAMES[::-1],
    ("SORT", "list", "BY", "nosort", "GET", "nothing:*"): [None] * COUNT,
}


def test_long_replies(make_server):
    """Most of them are longer than this server keeps in memory of all replies together."""
    client = make_server(**SMALL).client()
    fill(client, *FILL)
    for command, expected in QUESTIONS.items():
        before = client.info().get("pages_written")
        assert ask(client, command) == expected, command
        if not IS_REDIS and expected[0] is not None:
            assert client.info("vellum")["pages_written"] - before >= 64, command
    with client.pipeline() as pipe:
        pipe.sdiff("set", "nothing").keys("key:*")
        found, keys = pipe.execute()
    assert sorted(found) == NAMES and len(keys) == COUNT
    assert client.eval("return #redis.call('SUNION', KEYS[1], KEYS[2])", 2, "set", "other") == \
        COUNT * 3 // 2


def test_very_many_positions(make_server):
    client = make_server(**SMALL).client()
    count = 250_000
    for part in batches(count, 50_000):
        client.rpush("list", *["other" if n % 5 == 0 else "a" for n in part])
    positions = [n for n in range(count) if n % 5 != 0]
    for rank, expected in ((1, positions), (-1, positions[::-1]), (7, positions[6:])):
        before = client.info().get("pages_written")
        assert client.lpos("list", "a", count=0, rank=rank) == expected
        if not IS_REDIS:
            assert client.info("vellum")["pages_written"] - before >= 64
    with client.pipeline() as pipe:
        pipe.lpos("list", "a", count=0).lpos("list", "a", rank=9).lpos("list", "none", count=0)
        assert pipe.execute() == [positions, positions[8], []]
    assert client.eval("return #redis.call('LPOS', KEYS[1], 'a', 'COUNT', 0)", 1, "list") == len(positions)


@pytest.mark.vellum
def test_a_client_that_does_not_read(make_server):
    """It holds neither memory nor keys; what it reads at last is of the time it asked."""
    server = make_server(**SMALL)
    client = server.client()
    fill(client, "set", "other")
    for command in (("SUNION", "set", "other"), ("DUMP", "set")):
        with server.raw(receive_buffer=4096) as raw:
            raw.send(encode(*command))
            raw.more()
            assert client.info("memory")["mem_clients_normal"] < MB
            began = time.monotonic()
            assert client.sadd("set", "one more") == 1
            assert time.monotonic() - began < 5
            assert client.srem("set", "one more") == 1
            size = int(raw.line()[1:])
            if command[0] == "DUMP":
                assert b"one more" not in raw.exactly(size + 2)
            else:
                assert size == COUNT * 3 // 2
                assert b"one more" not in [raw.reply() for _ in range(size)]
    with server.raw(receive_buffer=4096) as raw:
        raw.send(encode("SUNION", "set", "other"))
        raw.more()
        assert client.flushall() is True
        for i in range(8):
            client.set(f"new:{i}", b"y" * MB)  # over what the reply lies in, if that were free
        expected = {b"$%d\r\n%s\r\n" % (len(member), member)
                    for member in QUESTIONS[("SUNION", "set", "other")]}
        assert {raw.reply() for _ in range(int(raw.line()[1:]))} == expected
    assert len(client.keys("*")) == 8


@pytest.mark.vellum
def test_beside_many_long_values(make_server):
    """Values that arrive slowly have most of the memory that there is for such: so replies go aside
    part by part."""
    server = make_server(**SMALL)
    client = server.client()
    fill(client, "set")
    raws = [server.raw() for _ in range(300)]
    try:
        for i, raw in enumerate(raws):
            raw.send(b"*3\r\n$3\r\nSET\r\n$4\r\nk%03d\r\n$1000000\r\n" % i + b"x" * 70000)
        for command in (("SDIFF", "set", "nothing"), ("SORT", "set", "ALPHA")):
            for _ in range(3):
                assert sorted(client.execute_command(*command)) == NAMES
        client.restore("copy", 0, client.dump("set"))
        assert sorted(client.smembers("copy")) == NAMES
    finally:
        for raw in raws:
            raw.close()
    assert sorted(client.sdiff("set", "nothing")) == NAMES


@pytest.mark.vellum
def test_space_comes_back(make_server):
    """Of replies that were read, and of those whose client has gone."""
    server = make_server(**SMALL)
    client = server.client()
    fill(client, "set")
    client.execute_command("SDIFF", "set")
    size = client.info("vellum")["store_bytes"]
    for i in range(20):
        with server.raw(receive_buffer=4096) as raw:
            raw.send(encode("SDIFF", "set"))
            if i % 2:
                raw.more()
    for _ in range(10):
        client.execute_command("SDIFF", "set")
    assert client.info("vellum")["store_bytes"] <= size + 8 * MB


@pytest.mark.vellum
def test_where_there_is_no_room_aside(make_server):
    """A full disk: what memory can take is still answered."""
    client = make_server(maxstore=40 * MB, journal_size=8 * MB, partitions=4, **SMALL).client()
    fill(client, "set")
    with pytest.raises(Exception, match="OOM"):
        for i in range(100):
            client.set(f"filler:{i}", b"x" * MB)
    assert ask(client, ("SUNION", "set")) == NAMES
    assert len(client.keys("*")) > 1


def test_a_long_string_is_dumped_as_it_is(make_server):
    client = make_server(**SMALL).client()
    value = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(100000))
    client.set("string", value)
    assert client.restore("copy", 0, client.dump("string")) and client.get("copy") == value
    with client.pipeline() as pipe:
        pipe.setrange("string", 0, "changed").dump("string").get("string")
        _, payload, changed = pipe.execute()
    assert client.restore("copy", 0, payload, replace=True)
    assert client.get("copy") == changed == b"changed" + value[7:]


def test_draws_that_are_more_than_there_is(make_server):
    """Somebody writes meanwhile."""
    server = make_server(**SMALL)
    client = server.client()
    fill(client, "set", "hash", "zset")
    members = set(NAMES)
    for command in (("SRANDMEMBER", "set"), ("HRANDFIELD", "hash"), ("ZRANDMEMBER", "zset")):
        with server.raw() as raw:
            raw.send(encode(*command, -2 * COUNT))
            assert raw.line() == b"*%d\r\n" % (2 * COUNT)
            writer = threading.Thread(target=client.delete, args=(command[1],))
            writer.start()
            for _ in range(2 * COUNT):
                size = int(raw.line()[1:])
                assert raw.exactly(size + 2)[:-2] in members
            writer.join()
            assert raw.call("EXISTS", command[1]) == b":0\r\n"


FILLER = b"x" * 300
MANY = 24000


WHOLE = {
    b"list": lambda client, key: client.lrange(key, 0, -1),
    b"zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
    b"hash": lambda client, key: client.hgetall(key),
    b"set": lambda client, key: client.smembers(key),
}


def check_copy(client, key, kind):
    """DUMP and RESTORE of something larger than the cache; FILLER hardly counts in the payload."""
    assert client.restore("copy", 60000, client.dump(key), replace=True)
    assert client.type("copy") == kind and 0 < client.pttl("copy") <= 60000
    assert WHOLE[kind](client, "copy") == WHOLE[kind](client, key)
    assert client.object("ENCODING", "copy") == client.object("ENCODING", key)
    assert client.delete(key, "copy") == 2


@pytest.mark.slow
@pytest.mark.vellum
def test_entries_that_each_change_other_pages(make_server):
    """Two trees, larger than the cache, of which one is in another order than the work."""
    client = make_server(**SMALL).client()
    count = 250000
    for part in batches(count, 5000):
        client.execute_command("ZADD", "zset", *[x for i in part for x in (i, b"%016d" % i)])
    payload = client.dump("zset")
    assert client.zunionstore("zset", ["zset"], aggregate="MAX") == count
    assert client.restore("copy", 0, payload)
    for rank in range(0, count, 12345):
        assert client.zrange("copy", rank, rank) == [b"%016d" % rank]
        assert client.zscore("copy", b"%016d" % rank) == rank
    assert client.zcard("copy") == count


@pytest.mark.slow
@pytest.mark.vellum
def test_what_is_made_is_larger_than_the_cache(make_server):
    client = make_server(**SMALL).client()
    for part in batches(MANY):
        client.rpush("list", *[b"%08d" % (i * 7919 % MANY) + FILLER for i in part])
    assert client.sort("list", alpha=True, store="sorted") == MANY
    assert client.lrange("sorted", 1000, 1001) == [b"00001000" + FILLER, b"00001001" + FILLER]
    assert client.lindex("sorted", -1) == b"%08d" % (MANY - 1) + FILLER
    assert client.object("ENCODING", "sorted") == b"quicklist"
    assert client.sort("list", alpha=True, store="list", start=10, num=20) == 20
    assert client.llen("list") == 20 and client.delete("list") == 1
    check_copy(client, "sorted", b"list")
    for part in batches(MANY):
        client.zadd("zset", {b"%08d" % i + FILLER: i % 77 for i in part})
    check_copy(client, "zset", b"zset")
    for part in batches(MANY):
        client.hset("hash", mapping={b"%08d" % i: FILLER for i in part})
    check_copy(client, "hash", b"hash")
    for part in batches(MANY):
        client.sadd("set", *[b"%08d" % i + FILLER for i in part])
    check_copy(client, "set", b"set")


@pytest.mark.vellum
def test_many_long_values_in_one_reply(make_server):
    """Each would have a piece in memory when it is sent, but no two are sent at once."""
    client = make_server(**SMALL).client()
    values = [b"%d" % i + b"x" * 70000 for i in range(160)]
    for i, value in enumerate(values):
        client.set(f"string:{i}", value)
        client.hset("hash", f"field:{i}", value)
    assert client.mget([f"string:{i}" for i in range(160)]) == values
    assert client.hmget("hash", [f"field:{i}" for i in range(160)]) == values
    assert client.info("stats")["evicted_clients"] == 0
