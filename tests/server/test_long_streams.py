"""Streams that are long in some direction: many entries of which many are pending, in a cache a tenth of
their size; many groups; many consumers; entries of many fields. VELLUM_STREAM_ENTRIES says how many, some
thousands in a run of the tests, ten million in `make streamtest`."""

import os

import pytest
import redis

import harness
from harness import IS_REDIS

MB = 2**20
ENTRIES = int(os.environ.get("VELLUM_STREAM_ENTRIES", "20000"))
PENDING = ENTRIES // 10
NAMES = ENTRIES // 10  # groups, and consumers of one group
MANY = 100_000
FIELDS = 100_000
OOM = "OOM command not allowed when used memory > 'maxmemory'."
PAD = b"x" * 40
STEP = 1000
CACHE_MB = 64  # the stream of `make streamtest` takes ten times as much
AT_THE_ENDS = 200  # operations that are counted


def add(client, key, first, count):
    pipe = client.pipeline(transaction=False)
    for i in range(first, first + count):
        pipe.execute_command("XADD", key, f"{i}-1", i, PAD)
    pipe.execute()


def small(make_server):
    if IS_REDIS:
        return make_server()
    return make_server(maxmemory=f"{CACHE_MB}mb", journal_size="8mb", maxmemory_policy="noeviction")


def pages_of(client, action):
    """How many pages it reads, by and large: the cache may evict what it needs next."""
    before = client.info("vellum")["pages_read"]
    for i in range(AT_THE_ENDS):
        action(i)
    return (client.info("vellum")["pages_read"] - before) / AT_THE_ENDS


def check_bounds(server):
    if IS_REDIS:
        return
    assert server.client().info("memory")["used_memory"] < CACHE_MB * MB * 1.05
    assert server.peak_memory() < CACHE_MB * MB * 1.05 + 8 * MB


def shown(command, *words):
    """How many there are; a reply of more than memory has room for is refused."""
    try:
        return len(command(*words))
    except redis.ResponseError as error:
        assert NAMES > MANY
        return str(error)


@pytest.mark.slow
@pytest.mark.skipif(IS_REDIS, reason="asks for pages")
def test_a_stream_ten_times_larger_than_the_cache(make_server):
    server = small(make_server)
    client = server.client()
    for first in range(1, ENTRIES + 1, STEP):
        add(client, "s", first, STEP)
    client.xgroup_create("s", "g", id="0")
    for i in range(PENDING // STEP):
        assert len(client.xreadgroup("g", f"c{i % 7}", {"s": ">"}, count=STEP)[0][1]) == STEP
    assert client.xlen("s") == ENTRIES
    assert client.xpending("s", "g")["pending"] == PENDING
    assert client.xinfo_groups("s")[0]["lag"] == ENTRIES - PENDING
    check_bounds(server)

    drawn = harness.chance()
    taken = iter(drawn.sample(range(1, PENDING + 1), AT_THE_ENDS))
    known = iter(drawn.sample(range(1, ENTRIES + 1), AT_THE_ENDS))
    assert pages_of(client, lambda i: add(client, "s", ENTRIES + 1 + i, 1)) < 2
    assert pages_of(client, lambda _: client.xreadgroup("g", "c", {"s": ">"}, count=1)) < 8
    assert pages_of(client, lambda _: client.xack("s", "g", f"{next(taken)}-1")) < 16

    def find(_):
        number = next(known)
        assert client.xrange("s", f"{number}-1", count=1)[0][1] == {b"%d" % number: PAD}
    assert pages_of(client, find) < 8
    assert client.xpending("s", "g")["pending"] == PENDING

    assert client.execute_command("WAITAOF", 1, 0, 0)[0] == 1
    server.kill9()
    server.start()
    client = server.client()
    assert client.xlen("s") == ENTRIES + AT_THE_ENDS
    assert client.xpending("s", "g")["pending"] == PENDING
    assert len(client.xautoclaim("s", "g", "new", 0, count=100)[1]) == 100
    claimed = client.xpending_range("s", "g", "-", "+", 100, consumername="new")
    assert len(claimed) == 100
    assert 0 < client.xtrim("s", maxlen=ENTRIES // 2, approximate=True, limit=STEP) <= STEP
    check_bounds(server)
    assert client.delete("s") == 1
    server.stop()
    assert server.check_data()[0] == 0


@pytest.mark.slow
def test_many_groups(make_server):
    server = small(make_server)
    client = server.client()
    client.xadd("s", {"a": "b"}, "1-1")
    for first in range(0, NAMES, STEP):
        pipe = client.pipeline(transaction=False)
        for i in range(first, min(first + STEP, NAMES)):
            pipe.xgroup_create("s", f"group:{i}", id="0")
        assert all(pipe.execute())
    assert client.xinfo_stream("s")["groups"] == NAMES
    for i in (0, NAMES // 2, NAMES - 1):
        assert client.xreadgroup(f"group:{i}", "c", {"s": ">"}) == [[b"s", [(b"1-1", {b"a": b"b"})]]]
        assert client.xack("s", f"group:{i}", "1-1") == 1
    with pytest.raises(redis.ResponseError, match="^BUSYGROUP"):
        client.xgroup_create("s", "group:1", id="0")
    assert shown(client.xinfo_groups, "s") in (NAMES, OOM)
    for i in range(0, NAMES, NAMES // 10):
        assert client.xgroup_destroy("s", f"group:{i}") == 1
    assert client.xinfo_stream("s")["groups"] == NAMES - 10
    server.restart()
    assert server.client().xinfo_stream("s")["groups"] == NAMES - 10
    assert server.client().delete("s") == 1
    check_bounds(server)


@pytest.mark.slow
def test_many_consumers(make_server):
    server = small(make_server)
    client = server.client()
    client.xgroup_create("s", "g", mkstream=True)
    for first in range(0, NAMES, STEP):
        pipe = client.pipeline(transaction=False)
        for i in range(first, min(first + STEP, NAMES)):
            pipe.xgroup_createconsumer("s", "g", f"consumer:{i}")
        assert sum(pipe.execute()) == min(STEP, NAMES - first)
    client.xadd("s", {"a": "b"}, "1-1")
    last = f"consumer:{NAMES - 1}"
    assert client.xreadgroup("g", last, {"s": ">"}) == [[b"s", [(b"1-1", {b"a": b"b"})]]]
    assert client.xinfo_groups("s")[0]["consumers"] == NAMES
    assert client.xpending("s", "g")["consumers"] == [{"name": last.encode(), "pending": 1}]
    assert client.xgroup_delconsumer("s", "g", last) == 1
    assert shown(client.xinfo_consumers, "s", "g") in (NAMES - 1, OOM)
    assert client.xgroup_destroy("s", "g") == 1
    check_bounds(server)


def test_an_entry_of_many_fields(make_server):
    server = small(make_server)
    client = server.client()
    words = [b"%s:%d" % (kind, i) for i in range(FIELDS) for kind in (b"field", b"value")]
    assert client.execute_command("XADD", "s", "1-1", *words) == b"1-1"
    [(identity, fields)] = client.xrange("s")
    assert identity == b"1-1" and len(fields) == FIELDS
    assert fields[b"field:99999"] == b"value:99999"
    client.xgroup_create("s", "g", id="0")
    assert len(client.xreadgroup("g", "c", {"s": ">"})[0][1][0][1]) == FIELDS
    assert len(client.xclaim("s", "g", "d", 0, ["1-1"])[0][1]) == FIELDS
    other = client.dump("s")
    assert client.restore("t", 0, other)
    assert client.xrange("t") == [(identity, fields)]
    assert client.xdel("s", "1-1") == 1
    with pytest.raises(redis.ResponseError, match="wrong number of arguments for 'xadd' command"):
        client.execute_command("XADD", "s", "2-1", *words[:-1])
    assert client.xlen("s") == 0
