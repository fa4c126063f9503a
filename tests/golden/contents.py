"""What every golden data directory holds: each kind of structure on disk at least once, above and
below each threshold of form; and what must be read back from it. Data directories of earlier servers
hold what this file had then, so it is only added to, under the next format's version (SINCE_3)."""

FAR = 4_000_000_000_000  # an expiry, in milliseconds


def long(name, length):
    text = b"%s 0123456789 " % name
    return (text * (length // len(text) + 1))[:length]


STRINGS = {
    b"empty": b"",
    b"number": b"-9223372036854775808",
    b"short": b"value",
    b"of a page": long(b"page", 4000),
    b"of two extents": long(b"two", 200_000),
    b"of two levels": long(b"levels", 9_000_000),
    long(b"a long key", 5000): b"by its hash",
    b"binary\x00\r\n\xff": bytes(range(256)),
}
FIELDS = {
    b"packed hash": {b"f%d" % i: b"v%d" % i for i in range(20)},
    b"tree hash": {b"field:%d" % i: b"value %d" % i for i in range(2000)},
    b"hash of long values": {b"a": long(b"a", 3000), b"b": long(b"b", 150_000)},
}
SETS = {
    b"numbers": {b"%d" % i for i in range(-50, 50)},
    b"packed set": {b"member %d" % i for i in range(20)},
    b"tree set": {b"member %d" % i for i in range(3000)},
}
LISTS = {
    b"packed list": [b"e%d" % i for i in range(30)],
    b"tree list": [b"element %d" % i for i in range(3000)],
    b"list of long elements": [long(b"e%d" % i, 5000) for i in range(5)],
}
SCORES = {
    b"packed zset": {b"m%d" % i: i / 4 for i in range(20)},
    b"tree zset": {b"member %d" % i: float(i % 100) for i in range(2000)},
    b"infinite": {b"-": float("-inf"), b"+": float("inf"), b"0": 0.0},
}
# Trees of what Redis would keep as listpacks and intsets, in the order in which they are shown.
SINCE_3 = {
    b"ordered hash": {b"%d:" % (i * 37 % 101) + b"f" * 40: b"%d" % i for i in range(101)},
    b"ordered set": [b"%d:" % (i * 29 % 101) + b"m" * 40 for i in range(101)],
    b"long numbers": [b"%d" % (i * 10**18 // 29) for i in range(-200, 200)],
    b"numbers and others": [b"%d" % (i * 10**18 // 13) for i in range(-50, 50)] + [b"x", b"-1", b"a"],
}
# Streams: with groups, empty, and with long entries.
SINCE_4 = {
    b"stream": [(b"%d-%d" % (i // 3 + 1, i % 3), {b"field": b"value %d" % i}) for i in range(2000)],
    b"empty stream": [],
    b"stream of long entries": [(b"1-0", {b"a": long(b"a", 3000), b"b": b""}),
                                (b"1-1", {b"c": long(b"c", 150_000)})],
}
# From 5 on too: libraries of functions, which are in no database; one is short, one has a value of its own.
LIBRARIES = {
    name: b"#!lua name=%s\nredis.register_function('%s_f', function(keys, args) return #keys end)\n--%s"
    % (name, name, long(b"x", length)) for name, length in ((b"short", 10), (b"long", 200_000))
}
# Hashes of which fields expire: those with an odd number; long values are of both kinds.
SINCE_5 = {
    b"packed timed hash": {b"f%d" % i: b"v%d" % i for i in range(20)},
    b"tree timed hash": {b"field:%d" % i: b"value %d" % i for i in range(2000)},
    b"timed hash of long values": {b"%d" % i: long(b"%d" % i, n) for i, n in enumerate((3000, 3001, 150_000, 150_001))},
}
GROUPS = [b"a group", long(b"a long name", 600)]


def fill_streams(client):
    for key, entries in SINCE_4.items():
        for identity, fields in entries + [(b"999-9", {b"x": b"deleted"})]:
            client.xadd(key, fields, identity)
        client.xdel(key, b"999-9")
    for group in GROUPS:
        client.xgroup_create(b"stream", group, b"0")
        client.xreadgroup(group, b"one", {b"stream": b">"}, count=300)
        client.xreadgroup(group, b"other", {b"stream": b">"}, count=10)
        client.xack(b"stream", group, *(identity for identity, _ in SINCE_4[b"stream"][:200]))


def verify_streams(client):
    for key, entries in SINCE_4.items():
        assert client.xrange(key) == entries, key
        info = client.xinfo_stream(key)
        assert info["last-generated-id"] == info["max-deleted-entry-id"] == b"999-9"
        assert info["entries-added"] == len(entries) + 1
    groups = client.xinfo_groups(b"stream")
    assert [(group["name"], group["consumers"], group["pending"]) for group in groups] == [
        (name, 2, 110) for name in sorted(GROUPS)]
    for group in GROUPS:
        pending = client.xpending_range(b"stream", group, "-", "+", 1000)
        assert [(p["message_id"], p["consumer"], p["times_delivered"]) for p in pending] == [
            (SINCE_4[b"stream"][i][0], b"one" if i < 300 else b"other", 1) for i in range(200, 310)]


def verify_libraries(client):
    listed = {name: (functions, code) for _, name, _, _, _, functions, _, code in client.execute_command(
        "FUNCTION", "LIST", "WITHCODE")}
    assert listed == {name: ([[b"name", name + b"_f", b"description", None, b"flags", []]], code)
                      for name, code in LIBRARIES.items()}
    for name in LIBRARIES:
        assert client.execute_command("FCALL", name + b"_f", 2, "a", "b") == 2


def expiries(fields):
    return [FAR + i % 7 if i % 2 else -1 for i in range(len(fields))]


def fill_timed(client):
    for key, fields in SINCE_5.items():
        client.hset(key, mapping=fields)
        for name, when in zip(fields, expiries(fields)):
            if when > 0:
                client.execute_command("HPEXPIREAT", key, when, "FIELDS", 1, name)


def verify_timed(client):
    for key, fields in SINCE_5.items():
        assert client.hgetall(key) == fields, key
        times = client.execute_command("HPEXPIRETIME", key, "FIELDS", len(fields), *fields)
        assert times == expiries(fields), key


def verify_order(client, other):
    """Names that agree in their first bytes may change places: there is none with such a neighbor."""
    for each in client, other:
        assert each.execute_command("VELLUM.RANGE", "-", "+") == sorted(each.keys())
        assert each.execute_command("VELLUM.RANGE", "(p", "[o", "REV") == sorted(each.keys("o*"), reverse=True)


def fill(client, other):
    """`other` is a client of database 3."""
    for key, value in STRINGS.items():
        client.set(key, value)
    client.setbit(b"hole", 80_000_000, 1)
    for key, fields in FIELDS.items():
        client.hset(key, mapping=fields)
    for key, members in SETS.items():
        client.sadd(key, *sorted(members))
    for key, elements in LISTS.items():
        client.rpush(key, *elements)
    for key, scores in SCORES.items():
        client.zadd(key, scores)
    for key, members in SINCE_3.items():
        if isinstance(members, dict):
            client.hset(key, mapping=members)
        elif key == b"numbers and others":
            client.sadd(key, *members[99::-1])
            client.sadd(key, *members[100:])
        else:
            client.sadd(key, *members)
    fill_streams(client)
    for code in LIBRARIES.values():
        client.execute_command("FUNCTION", "LOAD", code)
    fill_timed(client)
    client.pfadd(b"hyperloglog", *range(1000))
    client.set(b"expires", b"late", pxat=FAR)
    client.set(b"deleted", b"x")
    client.delete(b"deleted")
    client.set(b"overwritten", long(b"old", 100_000))
    client.set(b"overwritten", b"new")
    other.set(b"elsewhere", b"database 3")


def verify(client, other, version):
    keys = len(STRINGS) + len(FIELDS) + len(SETS) + len(LISTS) + len(SCORES) + 4
    if version >= 3:
        keys += len(SINCE_3)
        for key, members in SINCE_3.items():
            if isinstance(members, dict):
                assert list(client.hgetall(key).items()) == list(members.items()), key
            else:
                assert client.sort(key, by="nosort") == members, key
    if version >= 4:
        keys += len(SINCE_4)
        verify_streams(client)
    if version >= 5:
        verify_libraries(client)
        keys += len(SINCE_5)
        verify_timed(client)
    for key, value in STRINGS.items():
        assert client.get(key) == value, key[:20]
    assert client.strlen(b"hole") == 10_000_001 and client.bitcount(b"hole") == 1
    for key, fields in FIELDS.items():
        assert client.hgetall(key) == fields, key
    for key, members in SETS.items():
        assert client.smembers(key) == members, key
    for key, elements in LISTS.items():
        assert client.lrange(key, 0, -1) == elements, key
    for key, scores in SCORES.items():
        assert dict(client.zrange(key, 0, -1, withscores=True)) == scores, key
        assert client.zrange(key, 0, -1) == sorted(scores, key=lambda m: (scores[m], m)), key
    assert 980 <= client.pfcount(b"hyperloglog") <= 1020
    assert client.get(b"expires") == b"late" and client.pexpiretime(b"expires") == FAR
    assert client.get(b"deleted") is None
    assert client.get(b"overwritten") == b"new"
    assert other.get(b"elsewhere") == b"database 3" and other.dbsize() == 1
    assert client.dbsize() == keys
