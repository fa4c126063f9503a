"""DUMP and RESTORE, between us and stock Redis, and of what only old or broken ones write."""

import random
import struct

import pytest
import redis

import harness

pytestmark = pytest.mark.shared

REMAINDERS = []
for _i in range(256):
    _sum = _i
    for _ in range(8):
        _sum = (_sum >> 1) ^ (0x95AC9329AC4BC9B5 if _sum & 1 else 0)
    REMAINDERS.append(_sum)


def sealed(body, version=10):
    """With version and checksum."""
    body += struct.pack("<H", version)
    total = 0
    for byte in body:
        total = (total >> 8) ^ REMAINDERS[(total ^ byte) & 255]
    return body + struct.pack("<Q", total)


def string(data):
    if len(data) < 64:
        return bytes([len(data)]) + data
    return b"\x80" + struct.pack(">I", len(data)) + data


def ziplist(entries):
    out, before, last = b"", 0, 10
    for entry in entries:
        last = 10 + len(out)
        head = bytes([before]) if before < 254 else b"\xfe" + struct.pack("<I", before)
        if isinstance(entry, bytes):
            size = len(entry)
            body = (bytes([size]) if size < 64 else struct.pack(">H", 0x4000 | size)) + entry
        else:
            code, layout = entry
            body = bytes([code]) + layout
        out += head + body
        before = len(head) + len(body)
    return struct.pack("<IIH", len(out) + 11, last, len(entries)) + out + b"\xff"


def listpack(entries):
    out = b""
    for entry in entries:
        body = entry if isinstance(entry, bytearray) else bytes([0x80 | len(entry)]) + entry
        out += bytes(body) + bytes([len(body)])
    return struct.pack("<IH", len(out) + 7, len(entries)) + out + b"\xff"


def state(client, key):
    kind = client.type(key)
    if kind == b"string":
        return client.get(key)
    if kind == b"list":
        return client.lrange(key, 0, -1)
    if kind == b"set":
        return client.smembers(key)
    if kind == b"hash":
        return client.hgetall(key)
    return client.zrange(key, 0, -1, withscores=True)


def fill(client):
    client.set("int8", -7)
    client.set("int16", 30000)
    client.set("int32", -2**31)
    client.set("int64", 2**40)
    client.set("short", b"a\x00b")
    client.set("empty", "")
    client.set("lzf", "abc" * 5000)
    client.set("big", random.Random(1).randbytes(300000))
    for count in (3, 2000):
        client.rpush(f"list{count}", *[f"element {i}" for i in range(count)], "", 12, -3000)
        client.sadd(f"ints{count}", *range(-count, count))
        client.sadd(f"set{count}", *[f"member {i}" for i in range(count)], 5)
        client.hset(f"hash{count}", mapping={f"field {i}": i * 100001 for i in range(count)})
        client.zadd(f"zset{count}", {f"m{i}": i / 7 - 3 for i in range(count)})
    client.zadd("infinite", {"a": float("inf"), "b": float("-inf"), "c": 1e300, "d": 17})
    client.rpush("long", "x" * 20000, b"\xff" * 70, "y" * 5000, 2**40, -1)
    client.hset("long fields", mapping={"f" * 300: "v" * 10000})


@pytest.fixture(name="stock")
def stock_server():
    stock = harness.Server(program="redis-server")
    try:
        yield stock.start()
        stock.stop()
    finally:
        stock.remove()


def move_all(source, target):
    keys = source.keys()
    assert len(keys) > 20
    for key in keys:
        assert target.restore(key, 0, source.dump(key)) == b"OK", key
        assert state(target, key) == state(source, key), key


def test_what_stock_redis_dumps_is_restored(server, stock):
    fill(stock.client())
    move_all(stock.client(), server.client())


def test_stock_redis_restores_what_is_dumped(server, stock):
    fill(server.client())
    move_all(server.client(), stock.client())
    ours, theirs = server.client(), stock.client()
    for key in ("ints3", "hash3", "zset3", "zset2000", "hash2000"):
        assert theirs.object("encoding", key) == ours.object("encoding", key), key


OLD = {
    "linked list": (b"\x01\x02" + string(b"a") + b"\xc0\x05", [b"a", b"5"]),
    "zset with text": (b"\x03\x03" + string(b"a") + b"\x031.5" + string(b"b") + b"\xfe" +
                       string(b"c") + b"\xff", [(b"c", float("-inf")), (b"a", 1.5),
                                                (b"b", float("inf"))]),
    "zipmap": (b"\x09" + string(b"\x02\x01a\x02\x00xy\x01b\x01\x03z---\xff"),
               {b"a": b"xy", b"b": b"z"}),
    "ziplist": (b"\x0a" + string(ziplist([b"a", b"b" * 100, b"c" * 300, (0xF3, b""),
                                          (0xFE, b"\xff"), (0xC0, b"\x00\x80"),
                                          (0xF0, b"\xff\xff\x7f"), (0xD0, b"\x01\x00\x00\x80"),
                                          (0xE0, b"\x00" * 7 + b"\x80")])),
                [b"a", b"b" * 100, b"c" * 300, b"2", b"-1", b"-32768", b"8388607",
                 b"-2147483647", b"-9223372036854775808"]),
    "intset": (b"\x0b" + string(struct.pack("<IIhh", 2, 2, -5, 1000)), {b"-5", b"1000"}),
    "zset ziplist": (b"\x0c" + string(ziplist([b"a", b"1.5", b"b", (0xF4, b"")])),
                     [(b"a", 1.5), (b"b", 3)]),
    "hash ziplist": (b"\x0d" + string(ziplist([b"f", b"v"])), {b"f": b"v"}),
    "quicklist": (b"\x0e\x02" + string(ziplist([b"a"])) + string(ziplist([b"b"])), [b"a", b"b"]),
    "hash listpack": (b"\x10" + string(listpack([b"f", bytearray(b"\xdf\xff")])), {b"f": b"-1"}),
    "zset listpack": (b"\x11" + string(listpack([b"f", bytearray(b"\x07")])), [(b"f", 7)]),
    "quicklist 2": (b"\x12\x02\x01" + string(b"plain") + b"\x02" +
                    string(listpack([b"a", bytearray(b"\xf1\x00\x80"),
                                     bytearray(b"\xe0\x03abc")])),
                    [b"plain", b"a", b"-32768", b"abc"]),
    "set listpack": (b"\x14" + string(listpack([b"a", b"b"])), {b"a", b"b"}),
}


@pytest.mark.parametrize("name", OLD)
def test_every_form_there_has_been(server, name):
    client = server.client()
    body, expected = OLD[name]
    assert client.restore("k", 0, sealed(body, 11)) == b"OK"
    assert state(client, "k") == expected


BROKEN = {
    "quicklist 2, an empty plain node": b"\x12\x02\x01" + string(b"a") + b"\x01" + string(b""),
    "nothing": b"\x02\x00",
    "twice in a set": b"\x02\x02" + string(b"a") * 2,
    "twice in a hash": b"\x04\x02" + (string(b"a") + string(b"1")) * 2,
    "twice in a sorted set": b"\x05\x02" + (string(b"a") + struct.pack("<d", 1)) * 2,
    "twice in a large set": b"\x02\x43\xe8" + b"".join(
        string(b"member %d" % (i % 999)) for i in range(1000)),
    "no number": b"\x05\x01" + string(b"a") + struct.pack("<d", float("nan")),
    "too long": b"\x00\x05a",
    "enormous": b"\x01\x81" + b"\x7f" + b"\xff" * 7,
    "enormous when unpacked": b"\x00\xc3\x01\x80\x1f\xff\xff\xff\x00",
    "unknown": b"\x63\x00",
    "odd": b"\x0d" + string(ziplist([b"f"])),
    "intset in no order": b"\x0b" + string(struct.pack("<IIhh", 2, 2, 5, 5)),
    "ziplist with another length": b"\x0a" + string(ziplist([b"a"])[:-1] + b"\x00\xff"),
    "listpack without its end": b"\x10" + string(listpack([b"f", b"v"])[:-1]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_refused(server, name):
    client = server.client()
    client.set("k", "before")
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        client.restore("k", 0, sealed(BROKEN[name]), replace=True)
    assert client.get("k") == b"before"


def test_what_follows_the_value_is_ignored(server):
    client = server.client()
    assert client.restore("k", 0, sealed(b"\x00" + string(b"a") + b"x"))
    assert client.get("k") == b"a"


def test_random_damage_under_a_good_checksum(server):
    client = server.client()
    rng = harness.chance()
    fill(client)
    dumps = [client.dump(key)[:-10] for key in client.keys() if client.memory_usage(key) < 5000]
    dumps += [body for body, _ in OLD.values()]
    for _ in range(3000):
        body = bytearray(rng.choice(dumps))
        for _ in range(rng.randrange(1, 4)):
            body[rng.randrange(len(body))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        try:
            client.restore("damaged", 0, sealed(bytes(body)), replace=True)
            state(client, "damaged")
        except redis.ResponseError as error:
            assert "Bad data format" in str(error)
    assert client.ping()


def test_options_of_restore(server):
    client = server.client()
    client.set("a", "1")
    dump = client.dump("a")
    with pytest.raises(redis.ResponseError, match="BUSYKEY|Target key name already exists"):
        client.restore("a", 0, dump)
    for words, error in ((("0", dump[:-1] + b"?"), "checksum are wrong"),
                         (("0", dump[:-10] + b"\x0c\x00" + dump[-8:]), "checksum are wrong"),
                         (("-1", dump), "Invalid TTL value"), (("x", dump), "not an integer"),
                         (("0", dump, "NOSUCH"), "syntax error"),
                         (("0", dump, "IDLETIME", "-1"), "Invalid IDLETIME"),
                         (("0", dump, "FREQ", "256"), "Invalid FREQ"),
                         (("0", dump, "FREQ", "1", "IDLETIME", "1"), "syntax error")):
        with pytest.raises(redis.ResponseError, match=error):
            client.execute_command("RESTORE", "b", *words)
    assert client.execute_command("RESTORE", "b", 100000, dump, "IDLETIME", "7") == b"OK"
    assert 90000 < client.pttl("b") <= 100000
    assert client.execute_command("RESTORE", "b", 1, dump, "REPLACE", "ABSTTL") == b"OK"
    assert not client.exists("b")
    assert client.dump("b") is None
