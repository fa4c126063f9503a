"""Fields of hashes that expire: as Redis 8 has them, in hashes of both forms."""

import os
import random
import struct
import time

import pytest
import redis

from harness import eventually
from test_dump import length, listpack, number, sealed, string
from test_notifications import make_watcher  # noqa: F401
from test_pubsub import connect  # noqa: F401

pytestmark = pytest.mark.vellum

FAR = 4_000_000_000_000  # milliseconds
SIZES = (3, 1000)  # of hashes: packed, and a tree (in the build of tiny sizes a tree each)


def fields_of(count):
    return {b"f%d" % i: b"v%d" % i for i in range(count)}


def do(client, command, key, *words, fields):
    return client.execute_command(command, key, *words, "FIELDS", len(fields), *fields)


def expiry(client, key, *fields):
    return do(client, "HPEXPIRETIME", key, fields=fields)


def soon(client, ms=0):
    """A time on the server's clock, in milliseconds."""
    seconds, microseconds = client.time()
    return seconds * 1000 + microseconds // 1000 + ms


def wait_until(client, when_ms):
    while soon(client) <= when_ms:
        time.sleep(0.002)


@pytest.fixture
def frozen(server):
    """Two clients; nothing that has expired is removed while the first has paused writes."""
    pauser, client = server.client(), server.client()
    yield pauser, client
    pauser.client_unpause()


def expire_some(client, count, ms=150):
    """A hash of which every third field is about to expire; when, and what will remain."""
    fields = fields_of(count)
    client.hset("h", mapping=fields)
    when = soon(client, ms)
    gone = list(fields)[::3]
    assert set(do(client, "HPEXPIREAT", "h", when, fields=gone)) == {1}
    return when, gone, {name: value for name, value in fields.items() if name not in gone}


@pytest.mark.parametrize("count", SIZES)
def test_no_command_sees_what_has_expired(frozen, count):
    pauser, client = frozen
    when, gone, left = expire_some(client, count)
    pauser.client_pause(60000, all=False)
    wait_until(client, when)
    assert client.hlen("h") == len(left) and client.hgetall("h") == left
    assert client.hget("h", gone[0]) is None and not client.hexists("h", gone[0])
    assert client.hmget("h", *gone[:3]) == [None] * len(gone[:3]) and client.hstrlen("h", gone[0]) == 0
    assert set(client.hkeys("h")) == set(left) and set(client.hvals("h")) == set(left.values())
    assert dict(client.hscan_iter("h")) == left
    assert dict(client.hscan_iter("h", match=gone[0])) == {}
    assert do(client, "HPTTL", "h", fields=gone[:2]) == [-2] * len(gone[:2])
    for _ in range(20):
        assert client.hrandfield("h") in left
        assert set(client.hrandfield("h", -20)) <= set(left)
        some = client.hrandfield("h", max(1, len(left) // 2))
        assert len(some) == len(set(some)) == max(1, len(left) // 2) and set(some) <= set(left)
    assert set(client.hrandfield("h", count)) == set(left)
    pairs = client.execute_command("HRANDFIELD", "h", len(left), "WITHVALUES")
    assert dict(zip(pairs[::2], pairs[1::2])) == left
    assert client.eval_ro("return redis.call('HLEN', KEYS[1])", 1, "h") == len(left)
    assert client.eval_ro("return redis.call('HGET', KEYS[1], ARGV[1])", 1, "h", gone[0]) is None
    assert client.exists("h")  # as in Redis, until it is removed


def test_sort_sees_no_expired_fields(frozen):
    pauser, client = frozen
    client.rpush("l", 1, 2, 3)
    for i in (1, 2, 3):
        client.hset(f"w{i}", mapping={"by": 10 - i, "name": f"n{i}"})
    when = soon(client, 100)
    assert do(client, "HPEXPIREAT", "w1", when, fields=["by", "name"]) == [1, 1]
    pauser.client_pause(60000, all=False)
    wait_until(client, when)
    # Without a weight 1 counts as 0.
    assert client.execute_command("SORT_RO", "l", "BY", "w*->by", "GET", "w*->name") == [None, b"n3", b"n2"]


@pytest.mark.parametrize("count", SIZES)
def test_what_has_expired_goes_by_itself(server, count):
    client = server.client()
    when, gone, left = expire_some(client, count)
    before = client.info("stats")["expired_subkeys"]
    usage = client.memory_usage("h")
    wait_until(client, when)
    eventually(lambda: client.info("stats")["expired_subkeys"] == before + len(gone))
    assert client.hgetall("h") == left and client.memory_usage("h") < usage
    when = soon(client, 50)
    do(client, "HPEXPIREAT", "h", when, fields=left)
    wait_until(client, when)
    eventually(lambda: client.dbsize() == 0)
    assert client.info("stats")["expired_subkeys"] == before + count


@pytest.mark.slow
def test_a_large_hash_is_removed_while_others_work(server):
    """Fields that expire together go in steps, and only they are read."""
    client = server.client()
    pipe = client.pipeline(transaction=False)
    for first in range(0, 60000, 1000):
        names = [b"%s:%d" % (kind, i) for i in range(first, first + 1000) for kind in (b"a", b"b")]
        pipe.hset("h", mapping=dict.fromkeys(names, "x"))
        pipe.execute_command("HPEXPIRE", "h", 3000, "FIELDS", 1000, *names[::2])
    pipe.execute()
    slowest, began = 0, time.monotonic()
    while client.hlen("h") > 60000 or client.info("stats")["expired_subkeys"] < 60000:
        at = time.monotonic()
        assert client.hget("h", b"b:%d" % random.randrange(60000)) == b"x"
        slowest = max(slowest, time.monotonic() - at)
        assert at - began < 60
    assert slowest < 1 and client.hlen("h") == 60000


@pytest.mark.parametrize("count", SIZES)
def test_writes(client, count):
    client.hset("h", mapping=fields_of(count))
    assert do(client, "HPEXPIREAT", "h", FAR, fields=["f0", "f1", "f2"]) == [1, 1, 1]
    client.hset("h", "f0", "x")
    client.hset("h", "f1", 5)
    assert expiry(client, "h", "f0", "f1", "f2") == [-1, -1, FAR]
    do(client, "HPEXPIREAT", "h", FAR + 1, fields=["f1"])
    assert client.hincrby("h", "f1", 2) == 7 and client.hincrbyfloat("h", "f1", 0.5) == 7.5
    assert expiry(client, "h", "f1", "f2") == [FAR + 1, FAR]
    assert not client.hsetnx("h", "f2", "y") and expiry(client, "h", "f2") == [FAR]
    assert client.hdel("h", "f2") == 1 and client.hsetnx("h", "f2", "y") and expiry(client, "h", "f2") == [-1]
    assert do(client, "HPERSIST", "h", fields=["f0", "f1", "none"]) == [-1, 1, -2]
    assert client.execute_command("HSETEX", "h", "PXAT", FAR, "FIELDS", 2, "f0", "a", "new", "b") == 1
    assert do(client, "HGETEX", "h", "PERSIST", fields=["f0"]) == [b"a"]
    assert do(client, "HGETDEL", "h", fields=["f0", "new", "f0"]) == [b"a", b"b", None]
    assert client.hlen("h") == count - 1


def test_a_long_value_is_not_rewritten(client):
    """An expiry is with the field's name, not with its value."""
    value = os.urandom(4_000_000 if "tiny" not in os.environ.get("VELLUM_SERVER", "") else 100_000)
    client.hset("h", mapping={"long": value, "other": 1})
    client.hset("h", mapping=fields_of(1000))
    written = client.info("vellum")["journal_bytes_written"]
    pages = client.info("vellum")["pages_written"]
    for i in range(20):
        assert do(client, "HPEXPIREAT", "h", FAR + i, fields=["long"]) == [1]
    assert client.info("vellum")["journal_bytes_written"] - written < 1_000_000
    assert client.info("vellum")["pages_written"] - pages < 500
    assert client.hget("h", "long") == value and expiry(client, "h", "long") == [FAR + 19]
    assert do(client, "HGETDEL", "h", fields=["long"]) == [value]


@pytest.mark.parametrize("count", SIZES)
def test_times_follow_the_hash(client, count):
    fields = fields_of(count)
    client.hset("h", mapping=fields)
    do(client, "HPEXPIREAT", "h", FAR, fields=["f1"])
    for move in (lambda: client.copy("h", "other"), lambda: client.rename("h", "moved"),
                 lambda: client.rename("moved", "h"), lambda: client.expire("h", 1000),
                 lambda: client.persist("h"), lambda: client.move("h", 1)):
        move()
    assert expiry(client, "other", "f1", "f2") == [FAR, -1] and client.hgetall("other") == fields
    client.select(1)
    assert expiry(client, "h", "f1", "f2") == [FAR, -1] and client.hgetall("h") == fields
    # They are found by what removes them, too.
    for db, key in ((1, "h"), (0, "other")):
        client.select(db)
        assert do(client, "HPEXPIRE", key, 1, fields=fields) == [1] * count
        eventually(lambda: not client.exists(key))
    client.select(1)
    assert client.dbsize() == 0
    client.select(0)


@pytest.mark.parametrize("count", SIZES)
def test_times_of_a_copy_wake_by_themselves(client, count):
    client.hset("h", mapping=fields_of(count))
    when = soon(client, 300)
    do(client, "HPEXPIREAT", "h", when, fields=fields_of(count))
    assert client.copy("h", "copy") and client.rename("h", "renamed")
    wait_until(client, when)
    eventually(lambda: client.dbsize() == 0)


def test_events(client, make_watcher):  # noqa: F811
    watcher = make_watcher("KEAmn")
    client.hset("h", mapping={"a": 1, "b": 2, "c": 3})
    for key, words in (("h", "new hset"),):
        assert [watcher.event() for _ in words.split()] == [f"{word} {key}" for word in words.split()]
    steps = [
        (("HEXPIRE", "h", 100, "FIELDS", 2, "a", "b"), "hexpire"),
        (("HEXPIRE", "h", 100, "NX", "FIELDS", 1, "a"), ""),
        (("HPERSIST", "h", "FIELDS", 2, "a", "c"), "hpersist"),
        (("HPERSIST", "h", "FIELDS", 1, "c"), ""),
        (("HGETEX", "h", "EX", 100, "FIELDS", 1, "a"), "hexpire"),
        (("HGETEX", "h", "PERSIST", "FIELDS", 1, "a"), "hpersist"),
        (("HSETEX", "h", "EX", 100, "FIELDS", 1, "d", 4), "hset hexpire"),
        (("HSETEX", "h", "FIELDS", 1, "d", 4), "hset"),
        (("HGETEX", "h", "EXAT", 1, "FIELDS", 1, "d"), "hdel"),
        (("HEXPIRE", "h", 0, "FIELDS", 1, "a"), "hdel"),
        (("HGETDEL", "h", "FIELDS", 1, "b"), "hdel"),
        (("HPEXPIRE", "h", 0, "FIELDS", 1, "c"), "hdel del"),
        (("HSETEX", "h", "PX", 1, "FIELDS", 1, "a", 1), "new hset hexpire hexpired del"),
    ]
    for words, events in steps:
        client.execute_command(*words)
        assert [watcher.event() for _ in events.split()] == [f"{event} h" for event in events.split()], words
    client.hset("h", mapping={"a": 1, "b": 2})
    do(client, "HPEXPIRE", "h", 1, fields=["a"])
    assert [watcher.event() for _ in range(4)] == ["new h", "hset h", "hexpire h", "hexpired h"]
    assert client.hgetall("h") == {b"b": b"2"}


def test_a_watched_hash_changes_when_a_field_goes(server):
    watcher, other = server.client(), server.client()
    watcher.hset("h", mapping={"a": 1, "b": 2})
    do(watcher, "HPEXPIRE", "h", 50, fields=["a"])
    with watcher.pipeline() as pipe:
        pipe.watch("h")
        eventually(lambda: other.info("stats")["expired_subkeys"] == 1)
        pipe.multi()
        pipe.set("x", 1)
        with pytest.raises(redis.WatchError):
            pipe.execute()


def test_caches_hear_of_it(server, connect):  # noqa: F811
    raw, client = connect(3), server.client()
    raw.call("CLIENT", "TRACKING", "ON")
    client.hset("h", mapping={"a": 1, "b": 2})
    do(client, "HPEXPIRE", "h", 80, fields=["a"])
    assert raw.call("HGET", "h", "a") == b"$1\r\n1\r\n"
    assert b"invalidate" in raw.reply()
    eventually(lambda: client.hlen("h") == 1)


@pytest.mark.sockets("about the files")
@pytest.mark.parametrize("end", ("stop", "kill9"))
def test_times_outlive_the_server(make_server, end):
    server = make_server(appendfsync="always", enable_debug_command="yes")
    client = server.client()
    hashes = {b"h%d" % count: fields_of(count) for count in SIZES}
    when = soon(client, 400)
    for key, fields in hashes.items():
        client.hset(key, mapping=fields)
        do(client, "HPEXPIREAT", key, FAR, fields=["f0"])
        do(client, "HPEXPIREAT", key, when, fields=["f1"])
        client.hset(b"all " + key, mapping=fields)
        do(client, "HPEXPIREAT", b"all " + key, when, fields=fields)
    getattr(server, end)()
    server.start()
    client = server.client()
    for key, fields in hashes.items():
        assert expiry(client, key, "f0", "f2") == [FAR, -1]
    wait_until(client, when)
    for key, fields in hashes.items():
        assert client.hlen(key) == len(fields) - 1 and client.hget(key, "f1") is None
    eventually(lambda: client.dbsize() == len(hashes))
    digest = client.execute_command("DEBUG", "DIGEST")
    client.execute_command("DEBUG", "RELOAD")
    assert client.execute_command("DEBUG", "DIGEST") == digest
    for key in hashes:
        assert expiry(client, key, "f0", "f2") == [FAR, -1]


class Oracle:
    """What a few hashes should hold. Times are far away, long past, or the moment `soon`."""

    def __init__(self, client, rng):
        self.client, self.rng = client, rng
        self.hashes = {}  # key: {field: [value, expiry or None]}
        self.soon = soon(client, 700)

    def step(self):
        key = b"h%d" % self.rng.randrange(3)
        most = (5, 60, 400)[int(key[1:])]
        names = [b"f%d" % self.rng.randrange(most) for _ in range(self.rng.randrange(1, 5))]
        getattr(self, self.rng.choice(("set", "set", "set", "expire", "expire", "expire", "persist", "delete",
                                       "setex", "getex", "increment")))(key, self.hashes.setdefault(key, {}), names)
        if not self.hashes[key]:
            del self.hashes[key]

    def value(self):
        return b"%d" % self.rng.randrange(1000) + b"x" * self.rng.choice((0, 0, 30, 2000))

    def when(self):
        return self.rng.choice((FAR, FAR + self.rng.randrange(1000), self.soon, 1))

    def set(self, key, held, names):
        pairs = {name: self.value() for name in names}
        assert self.client.hset(key, mapping=pairs) == len(set(pairs) - set(held))
        held.update((name, [value, None]) for name, value in pairs.items())

    def expire(self, key, held, names):
        when, expected = self.when(), []
        for name in names:
            expected.append(-2 if name not in held else 2 if when == 1 else 1)
            if when == 1:
                held.pop(name, None)
            elif name in held:
                held[name][1] = when
        assert do(self.client, "HPEXPIREAT", key, when, fields=names) == expected

    def persist(self, key, held, names):
        expected = []
        for name in names:
            expected.append(-2 if name not in held else -1 if held[name][1] is None else 1)
            if name in held:
                held[name][1] = None
        assert do(self.client, "HPERSIST", key, fields=names) == expected

    def delete(self, key, held, names):
        assert self.client.hdel(key, *names) == len([held.pop(name) for name in set(names) if name in held])

    def setex(self, key, held, names):
        when = self.rng.choice((None, self.when()))
        pairs = [word for name in names for word in (name, self.value())]
        options = ("KEEPTTL",) if when is None else ("PXAT", when)
        assert self.client.execute_command("HSETEX", key, *options, "FIELDS", len(names), *pairs) == 1
        for name, value in zip(pairs[::2], pairs[1::2]):
            kept = held[name][1] if name in held else None
            held[name] = [value, kept if when is None else when]
            if when == 1:
                del held[name]

    def getex(self, key, held, names):
        names = list(dict.fromkeys(names))
        when = self.when()
        expected = [held[name][0] if name in held else None for name in names]
        assert do(self.client, "HGETEX", key, "PXAT", when, fields=names) == expected
        for name in names:
            if when == 1:
                held.pop(name, None)
            elif name in held:
                held[name][1] = when

    def increment(self, key, held, names):
        name = b"n" + names[0]
        old = held.get(name, [b"0", None])
        if not old[0].isdigit():
            return
        assert self.client.hincrby(key, name, 7) == int(old[0]) + 7
        held[name] = [b"%d" % (int(old[0]) + 7), old[1]]

    def drop_expired(self):
        wait_until(self.client, self.soon)
        for key in list(self.hashes):
            self.hashes[key] = {n: v for n, v in self.hashes[key].items() if v[1] != self.soon}
            if not self.hashes[key]:
                del self.hashes[key]
        self.soon = soon(self.client, 700)

    def check(self):
        for key in (b"h0", b"h1", b"h2"):
            held = self.hashes.get(key, {})
            assert self.client.hgetall(key) == {name: value for name, (value, _) in held.items()}
            assert self.client.hlen(key) == len(held)
            if held:
                times = do(self.client, "HPEXPIRETIME", key, fields=held)
                assert times == [-1 if when is None else when for _, when in held.values()]


@pytest.mark.slow
@pytest.mark.sockets("about the files")
def test_random_commands(make_server):
    server = make_server(appendfsync="always", enable_debug_command="yes")
    seed = int(os.environ.get("VELLUM_SEED") or random.randrange(1 << 30))
    print("VELLUM_SEED", seed)
    oracle = Oracle(server.client(), random.Random(seed))
    for part in range(8):
        began = time.monotonic()
        while time.monotonic() - began < 0.5:
            oracle.step()
        oracle.drop_expired()
        oracle.check()
        eventually(lambda: oracle.client.dbsize() == len(oracle.hashes))
        end = oracle.rng.choice(("", "stop", "kill9", "reload"))
        if end == "reload":
            oracle.client.execute_command("DEBUG", "RELOAD")
        elif end:
            getattr(server, end)()
            server.start()
            oracle.client = server.client()
        oracle.soon = soon(oracle.client, 700)
        oracle.check()


# ---- DUMP and RESTORE ----


@pytest.mark.parametrize("count", SIZES + (40000,))
def test_a_dump_has_the_times(client, count):
    fields = fields_of(count)
    client.hset("h", mapping=fields)
    do(client, "HPEXPIREAT", "h", FAR + 5, fields=["f0"])
    do(client, "HPEXPIREAT", "h", FAR, fields=["f1"])
    dump = client.dump("h")
    assert dump[0] == 24 and struct.unpack("<q", dump[1:9]) == (FAR,) and struct.unpack("<H", dump[-10:-8]) == (12,)
    client.hset("plain", mapping={"a": 1})
    assert client.dump("plain")[0] == 4 and struct.unpack("<H", client.dump("plain")[-10:-8]) == (10,)
    assert client.restore("copy", 0, dump) == b"OK" and client.restore("plain", 0, dump, replace=True) == b"OK"
    for key in ("copy", "plain"):
        assert client.hgetall(key) == fields and expiry(client, key, "f0", "f1", "f2") == [FAR + 5, FAR, -1]
    # What has been restored wakes up, too, and has all that belongs to it.
    assert client.copy("copy", "another")
    assert do(client, "HPERSIST", "another", fields=["f0", "f1"]) == [1, 1]
    assert do(client, "HPEXPIRE", "another", 1, fields=["f0", "f2"]) == [1, 1]
    eventually(lambda: client.info("stats")["expired_subkeys"] == 2)
    assert client.hlen("another") == count - 2
    when = soon(client, 500)
    do(client, "HPEXPIREAT", "h", when, fields=["f2"])
    assert client.restore("copy", 0, client.dump("h"), replace=True) == b"OK" and client.delete("h")
    wait_until(client, when)
    eventually(lambda: client.info("stats")["expired_subkeys"] == 3)
    assert client.hlen("copy") == count - 1


def timed(earliest, *fields):
    """A hash as Redis 7.4 writes it: (expiry after the earliest plus 1 or 0, field, value) each."""
    body = b"\x18" + struct.pack("<q", earliest) + length(len(fields))
    return body + b"".join(length(after) + string(name) + string(value) for after, name, value in fields)


def test_what_redis_has_dumped(client):
    packed = listpack([b"a", b"1", b"%d" % FAR, b"b", b"2", number(0)])
    for body in (timed(FAR, (1, b"a", b"1"), (0, b"b", b"2")), b"\x19" + struct.pack("<q", FAR) + string(packed)):
        assert client.restore("h", 0, sealed(body, 12), replace=True) == b"OK"
        assert client.hgetall("h") == {b"a": b"1", b"b": b"2"} and expiry(client, "h", "a", "b") == [FAR, -1]
        assert client.object("encoding", "h") == b"listpackex"
    # What has expired meanwhile goes; if that is all, the key goes.
    before = client.info("stats")["expired_subkeys"]
    client.restore("h", 0, sealed(timed(5, (1, b"a", b"1"), (FAR, b"b", b"2"))), replace=True)
    assert client.hgetall("h") == {b"b": b"2"}
    client.restore("h2", 0, sealed(timed(5, (1, b"a", b"1"))))
    assert client.hgetall("h2") == {}
    eventually(lambda: client.info("stats")["expired_subkeys"] == before + 2)
    assert client.dbsize() == 1


@pytest.mark.parametrize("body", (
    b"\x18", b"\x18" + struct.pack("<q", FAR), timed(FAR), timed(FAR, (1, b"a", b"1"))[:-1],
    timed(FAR, (1, b"a", b"1"), (1, b"a", b"2")), timed(-5, (1, b"a", b"1")), timed(FAR, (2**48, b"a", b"1")),
    timed(FAR, (2**64 - 1, b"a", b"1")), b"\x18" + struct.pack("<q", FAR) + b"\x81" + b"\xff" * 8,
    b"\x18" + struct.pack("<q", FAR) + length(1 << 50),
    b"\x19" + struct.pack("<q", FAR) + string(listpack([b"a", b"1"])),
    b"\x19" + struct.pack("<q", FAR) + string(listpack([b"a", b"1", b"x"])),
    b"\x19" + struct.pack("<q", FAR) + string(listpack([b"a", b"1", b"-1"])),
    b"\x19" + struct.pack("<q", FAR) + string(listpack([])), b"\x16\x01\x00\x01a\x011", b"\x17" + string(b"")))
def test_what_is_broken_is_refused(client, body):
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        client.restore("h", 0, sealed(body, 12))
    with pytest.raises(redis.ResponseError, match="version or checksum"):
        client.restore("h", 0, sealed(timed(FAR, (1, b"a", b"1")), 13))
    assert client.dbsize() == 0
