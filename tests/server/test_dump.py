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


def number(value):
    """As an element of a listpack: 16 bits wide."""
    return bytearray(b"\xf1" + struct.pack("<h", value))


def raw_id(ms, seq=0):
    return struct.pack(">QQ", ms, seq)


def length(value):
    return bytes([value]) if value < 64 else b"\x81" + struct.pack(">Q", value)


SAME, DELETED = 2, 1
UNKNOWN = 2**64 - 1


def node(master, fields, entries, live=None, deleted=None):
    """Entries: flags, ms and seq beyond the master's, and fields and values, or the values alone."""
    gone = sum(1 for flags, *_ in entries if flags & DELETED)
    live = len(entries) - gone if live is None else live
    parts = [number(live), number(gone if deleted is None else deleted), number(len(fields)),
             *fields, number(0)]
    for flags, ms, seq, words in entries:
        before = len(parts)
        parts += [number(flags), number(ms), number(seq)]
        parts += ([] if flags & SAME else [number(len(words) // 2)]) + words
        parts.append(number(len(parts) - before))
    return string(raw_id(*master)) + string(listpack(parts))


def consumer(name, seen, ids, active=None):
    times = struct.pack("<q", seen) + (b"" if active is None else struct.pack("<q", active))
    return string(name) + times + length(len(ids)) + b"".join(raw_id(*each) for each in ids)


def group(name, last, pending, consumers, read=None):
    body = string(name) + length(last[0]) + length(last[1])
    body += b"" if read is None else length(read)
    body += length(len(pending)) + b"".join(
        raw_id(*which) + struct.pack("<q", delivered) + length(count)
        for which, delivered, count in pending)
    return body + length(len(consumers)) + b"".join(consumers)


def stream(kind, nodes, entries, last, groups=(), first=(0, 0), max_deleted=(0, 0), added=None):
    body = bytes([kind]) + length(len(nodes)) + b"".join(nodes)
    numbers = [entries, *last]
    if kind > 15:
        numbers += [*first, *max_deleted, entries if added is None else added]
    return body + b"".join(map(length, numbers)) + length(len(groups)) + b"".join(groups)


ONE_NODE = [node((5, 1), [b"a", b"b"], [
    (SAME, 0, 0, [b"1", number(-300)]), (SAME | DELETED, 0, 1, [b"x", b"y"]),
    (0, 1, -1, [b"c", b"z" * 50])])]
TWO_IDS = [((5, 1), 1000, 1), ((6, 0), 2000, 3)]
TWO_OWNERS = [consumer(b"alice", 1000, [(5, 1)], 900), consumer(b"bob", 3000, [(6, 0)], -1)]
OLD_OWNERS = [consumer(b"alice", 1000, [(5, 1)]), consumer(b"bob", 3000, [(6, 0)])]
ENTRIES = [(b"5-1", {b"a": b"1", b"b": b"-300"}), (b"6-0", {b"c": b"z" * 50})]


def state(client, key):
    kind = client.type(key)
    if kind == b"stream":
        return client.xrange(key)
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
    fill_streams(client)


def fill_streams(client):
    for count in (3, 1000):
        for i in range(count):
            client.xadd(f"stream{count}", {"n": i * 99991 - 50000, "text": f"entry {i}"},
                        id=f"{7 + i // 3}-{i % 3}")
    client.xadd("varying", {"a": 1}, id="1-5")
    client.xadd("varying", {"b": 1, "a": "2"}, id="1-6")
    client.xadd("varying", {"a": "", "": 2**63 - 1}, id=f"2-{2**64 - 1}")
    client.xadd("varying", {"a": -2**63}, id=f"{2**64 - 1}-0")
    client.xadd("varying", {"a": -2**31, "007": "+7", "-0": "x" * 5000}, id=f"{2**64 - 1}-1")
    for i in range(300):
        client.xadd("deleted", {"n": i, "v": "v" * (i % 90)}, id=f"0-{i + 1}")
    client.xdel("deleted", *[f"0-{i}" for i in range(1, 300) if i % 3 or i < 150])
    client.xadd("long entry", {"f" * 5000: b"\xff" * 70000, "g": "g" * 300})
    client.xadd("emptied", {"a": 1}, id="9-9")
    client.xdel("emptied", "9-9")


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


def stream_info(client, key):
    """All that Redis knows of a stream, but for its own structure of nodes."""
    reply = client.execute_command("XINFO", "STREAM", key, "FULL", "COUNT", 0)
    return {name: value for name, value in zip(reply[::2], reply[1::2])
            if not name.startswith(b"radix-tree")}


def fill_groups(client):
    fill_streams(client)
    client.xgroup_create("stream1000", "all", "0")
    for i in range(9):
        client.xreadgroup("all", f"reader {i % 4}", {"stream1000": ">"}, count=100)
    client.xack("stream1000", "all", *[f"{i}-1" for i in range(7, 100)])
    client.xgroup_createconsumer("stream1000", "all", "idle")
    client.xgroup_create("stream1000", "arbitrary", "8-1")
    client.xgroup_create("stream1000", "", "$")
    for size in (1999, 2000, 2001, 30000):  # alike where keys end
        client.xgroup_create("stream3", "long" * size, "0")
        client.xreadgroup("long" * size, "c" * size, {"stream3": ">"}, count=2)
        client.xreadgroup("long" * size, "c" * (size + 1), {"stream3": ">"}, count=2)
    client.xgroup_create("deleted", "g", "0")
    client.xreadgroup("g", "c", {"deleted": ">"}, count=10)
    for entry, _ in client.xrange("deleted", count=5):
        client.xdel("deleted", entry)
    client.xgroup_create("emptied", "g", "$")
    client.xgroup_create("made for it", "g", "7-7", mkstream=True)


def test_groups_go_to_us_and_back(server, stock):
    ours, theirs = server.client(), stock.client()
    fill_groups(theirs)
    for key in theirs.keys():
        assert ours.restore(key, 0, theirs.dump(key)) == b"OK", key
        assert state(ours, key) == state(theirs, key), key
        assert theirs.restore("copy", 0, ours.dump(key), replace=True) == b"OK", key
        assert stream_info(theirs, "copy") == stream_info(theirs, key), key


def test_a_stream_goes_on_where_it_was(server, stock):
    ours, theirs = server.client(), stock.client()
    fill_streams(theirs)
    ours.restore("emptied", 0, theirs.dump("emptied"))
    with pytest.raises(redis.ResponseError, match="equal or smaller"):
        ours.xadd("emptied", {"a": 1}, id="9-9")
    assert ours.xadd("emptied", {"a": 1}, id="9-*") == b"9-10"


def test_large_streams_in_steps(server, stock):
    ours, theirs = server.client(), stock.client()
    for client in (theirs, ours):
        with client.pipeline(transaction=False) as batch:
            for i in range(20000):
                batch.xadd("s", {"n": i, "text": "t" * (i % 70)}, id=f"{i + 1}-0")
            batch.execute()
    assert theirs.restore("of ours", 0, ours.dump("s")) == b"OK"
    assert stream_info(theirs, "of ours") == stream_info(theirs, "s")
    for name in ("many", "more"):
        theirs.xgroup_create("s", name, "0")
        for i in range(50):
            theirs.xreadgroup(name, f"consumer {i % 20}", {"s": ">"}, count=60)
    theirs.xdel("s", *[f"{i}-0" for i in range(1, 10000, 7)])
    theirs.execute_command("XSETID", "s", "30000-1", "ENTRIESADDED", "50000")
    ours.expire("s", 1000)
    for _ in range(2):  # a stream is replaced, then a string
        assert ours.restore("s", 0, theirs.dump("s"), replace=True) == b"OK"
        assert ours.ttl("s") == -1
        assert state(ours, "s") == state(theirs, "s")
        assert theirs.restore("back", 0, ours.dump("s"), replace=True) == b"OK"
        assert stream_info(theirs, "back") == stream_info(theirs, "s")
        ours.set("s", "text")
    assert ours.restore("s", 100000, theirs.dump("s"), replace=True) == b"OK"
    assert 90000 < ours.pttl("s") <= 100000
    script = "return redis.call('RESTORE', KEYS[1], 0, ARGV[1], 'REPLACE')"
    assert ours.eval(script, 1, "s", theirs.dump("s")) == b"OK"
    assert ours.eval("return redis.call('DUMP', KEYS[1])", 1, "s") == ours.dump("s")
    assert state(ours, "s") == state(theirs, "s")


def test_names_of_fields_are_shared_by_many(server):
    """A short payload of a large stream."""
    client = server.client()
    names = [b"%05d" % i + b"n" * 50 for i in range(10)]
    entries = [(SAME, i, 0, [b"v"] * 10) for i in range(3000)]
    body = stream(19, [node((1, 0), names, entries)], 3000, (9000, 0))
    assert client.restore("s", 0, sealed(body)) == b"OK"
    assert client.xlen("s") == 3000
    assert client.xrange("s", "3000-0") == [(b"3000-0", {name: b"v" for name in names})]


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
    "stream 5": (stream(15, ONE_NODE, 2, (6, 0), [group(b"g", (6, 0), TWO_IDS, OLD_OWNERS)]),
                 ENTRIES),
    "stream 7.0": (stream(19, ONE_NODE, 2, (8, 0), [group(b"g", (6, 0), TWO_IDS, OLD_OWNERS, 3)],
                          (5, 1), (5, 2), 9), ENTRIES),
    "stream 7.2": (stream(21, ONE_NODE, 2, (8, 0),
                          [group(b"g", (6, 0), TWO_IDS, TWO_OWNERS, UNKNOWN)]), ENTRIES),
    "stream without entries": (stream(21, [], 0, (0, 0)), []),
    "set listpack": (b"\x14" + string(listpack([b"a", b"b"])), {b"a", b"b"}),
}


@pytest.mark.parametrize("name", OLD)
def test_every_form_there_has_been(server, name):
    client = server.client()
    body, expected = OLD[name]
    assert client.restore("k", 0, sealed(body, 11)) == b"OK"
    assert state(client, "k") == expected


def one_group(*words, kind=19, **more):
    return stream(kind, ONE_NODE, 2, (6, 0), [group(*words, **more)])


def entries_of(*entries, fields=(b"f",), last=(9, 9), **more):
    count = sum(1 for flags, *_ in entries if not flags & DELETED)
    return stream(19, [node((5, 1), list(fields), list(entries), **more)], count, last)


A, B = ((SAME, 0, 0, [b"v"]), (SAME, 1, 0, [b"v"]))
BROKEN_STREAMS = {
    "cut off": stream(19, ONE_NODE, 2, (6, 0))[:-1],
    "a node's ID is short": b"\x13\x01" + string(b"x" * 15) + ONE_NODE[0][17:],
    "another length": stream(19, ONE_NODE, 3, (6, 0)),
    "last ID below the entries'": stream(19, ONE_NODE, 2, (5, 9)),
    "fewer entries added than there are": stream(19, ONE_NODE, 2, (6, 0), added=1),
    "deleted beyond the last ID": stream(19, ONE_NODE, 2, (6, 0), max_deleted=(6, 1)),
    "a node twice": stream(19, ONE_NODE * 2, 4, (6, 0)),
    "nodes in no order": stream(19, [node((7, 0), [b"f"], [A]), node((5, 0), [b"f"], [A])], 2,
                                (9, 0)),
    "a node within another": stream(19, [node((5, 0), [b"f"], [A, B]), node((5, 5), [b"f"], [A])],
                                    3, (9, 0)),
    "IDs fall": entries_of(B, A),
    "an ID twice": entries_of(A, A),
    "an ID below the node's": entries_of((SAME, -1, 0, [b"v"])),
    "the ID 0-0": stream(19, [node((0, 0), [b"f"], [A])], 1, (9, 0)),
    "more live ones": entries_of(A, B, live=1, deleted=1),
    "fewer live ones": entries_of(A, B, live=3),
    "more deleted ones": entries_of(A, B, deleted=1),
    "negative counts": entries_of(A, B, live=3, deleted=-1),
    "no fields": entries_of((0, 0, 0, [])),
    "no fields in common": entries_of((SAME, 0, 0, []), fields=()),
    "unknown flags": entries_of((SAME | 4, 0, 0, [b"v"])),
    "a word as ID": stream(19, [string(raw_id(5)) + string(listpack(
        [number(1), number(0), number(1), b"f", number(0),
         number(SAME), b"a", number(0), b"v", number(4)]))], 1, (9, 0)),
    "a wrong count of elements": stream(19, [string(raw_id(5)) + string(listpack(
        [number(1), number(0), number(1), b"f", number(0),
         number(SAME), number(0), number(0), b"v", number(5)]))], 1, (9, 0)),
    "more after the entries": stream(19, [string(raw_id(5)) + string(listpack(
        [number(1), number(0), number(1), b"f", number(0),
         number(SAME), number(0), number(0), b"v", number(4), b"x"]))], 1, (9, 0)),
    "no end of the fields": stream(19, [string(raw_id(5)) + string(listpack(
        [number(1), number(0), number(1), b"f", number(1),
         number(SAME), number(0), number(0), b"v", number(4)]))], 1, (9, 0)),
    "an empty listpack": stream(19, [string(raw_id(5)) + string(listpack([]))], 0, (9, 0)),
    "enormous counts": b"\x13\x81" + b"\x7f" * 8,
    "enormous counts of fields": stream(19, [string(raw_id(5)) + string(listpack(
        [number(1), number(0), bytearray(b"\xf4" + b"\xff" * 7 + b"\x7f"), b"f"]))], 1, (9, 0)),
    "groups in no order": stream(19, ONE_NODE, 2, (6, 0), [group(b"b", (0, 0), [], [], 0),
                                                           group(b"a", (0, 0), [], [], 0)]),
    "a group twice": stream(19, ONE_NODE, 2, (6, 0), [group(b"a", (0, 0), [], [], 0)] * 2),
    "no such groups": stream(19, ONE_NODE, 2, (6, 0))[:-1] + b"\x05",
    "negative entries read": one_group(b"g", (6, 0), [], [], 2**63),
    "pending twice": one_group(b"g", (6, 0), [TWO_IDS[0]] * 2, [consumer(b"c", 1, [(5, 1)])], 0),
    "pending in no order": one_group(b"g", (6, 0), TWO_IDS[::-1], OLD_OWNERS, 0),
    "pending without a consumer": one_group(b"g", (6, 0), TWO_IDS, OLD_OWNERS[:1], 0),
    "pending for two consumers": one_group(b"g", (6, 0), TWO_IDS, [
        OLD_OWNERS[0], consumer(b"bob", 1, [(5, 1)])], 0),
    "pending for a consumer twice": one_group(b"g", (6, 0), TWO_IDS, [
        consumer(b"bob", 1, [(5, 1), (5, 1)])], 0),
    "pending for a consumer in no order": one_group(b"g", (6, 0), TWO_IDS, [
        consumer(b"bob", 1, [(6, 0), (5, 1)])], 0),
    "pending for a consumer alone": one_group(b"g", (6, 0), TWO_IDS[:1], OLD_OWNERS, 0),
    "delivered before there were times": one_group(b"g", (6, 0), [((5, 1), -1, 1)],
                                                   OLD_OWNERS[:1], 0),
    "a consumer twice": one_group(b"g", (6, 0), [], [consumer(b"c", 1, [])] * 2, 0),
    "consumers in no order": one_group(b"g", (6, 0), [], [consumer(b"c", 1, []),
                                                          consumer(b"b", 1, [])], 0),
    "a consumer without its times": one_group(b"g", (6, 0), [], [consumer(b"c", 1, [])], 0,
                                              kind=21),
}

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
    **{f"stream, {name}": body for name, body in BROKEN_STREAMS.items()},
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
