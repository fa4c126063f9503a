"""Hashes and sets over their sockets: small and large, with everything that is done to keys."""

import time

import pytest
import redis

import harness
from harness import encode

pytestmark = pytest.mark.shared


def fields(first, last):
    return {b"field:%d" % i: b"value:%d" % i for i in range(first, last)}


def fill_hash(client, key, mapping, batch=200):
    names = list(mapping)
    pipe = client.pipeline(transaction=False)
    for i in range(0, len(names), batch):
        pipe.hset(key, mapping={name: mapping[name] for name in names[i:i + batch]})
        if i // batch % 20 == 19:
            pipe.execute()
    pipe.execute()


def fill_set(client, key, members, batch=200):
    members = list(members)
    pipe = client.pipeline(transaction=False)
    for i in range(0, len(members), batch):
        pipe.sadd(key, *members[i:i + batch])
    pipe.execute()


SIZES = [3, 5000]


@pytest.mark.parametrize("size", SIZES)
def test_a_hash_goes_through_all_that_happens_to_keys(server, client, size):
    mapping = fields(0, size)
    fill_hash(client, "h", mapping)
    assert client.type("h") == b"hash"
    assert list(client.scan_iter(_type="hash")) == [b"h"]
    assert client.pexpire("h", 10**7) and client.hset("h", "more", "1") == 1
    assert client.pttl("h") > 10**6, "a change keeps the expiry"
    assert client.hdel("h", "more") == 1 and client.pttl("h") > 10**6
    assert client.copy("h", "copy") and client.pttl("copy") > 10**6
    assert client.copy("h", "h", destination_db=3)
    assert client.hset("copy", "field:0", "changed") == 0
    assert client.rename("h", "renamed") and client.persist("renamed")
    assert client.move("renamed", 5)
    server.restart()
    client = server.client()
    assert client.exists("h") == 0 and client.exists("renamed") == 0
    assert client.hgetall("copy") == {**mapping, b"field:0": b"changed"}
    assert server.client(db=3).hgetall("h") == mapping
    other = server.client(db=5)
    assert other.hgetall("renamed") == mapping and other.ttl("renamed") == -1
    assert other.unlink("renamed") == 1 and other.hlen("renamed") == 0
    assert client.set("copy", "a string") and client.get("copy") == b"a string"
    assert server.client(db=3).pexpire("h", 1)
    while server.client(db=3).exists("h"):
        pass
    assert server.client(db=3).hset("h", "a", "1") == 1
    assert server.client(db=3).hgetall("h") == {b"a": b"1"}


@pytest.mark.parametrize("size", SIZES)
def test_what_a_set_has_survives_a_kill(make_server, size):
    server = make_server(appendfsync="always")
    client = server.client()
    members = {b"member:%d" % i for i in range(size)}
    fill_set(client, "s", members)
    popped = set(client.spop("s", 2))
    assert len(popped) == 2 and popped <= members
    server.kill9()
    server.start()
    assert server.client().smembers("s") == members - popped


def test_a_scan_meets_what_stays(client):
    fill_set(client, "s", (b"stays:%d" % i for i in range(3000)))
    cursor, seen, calls = 0, [], 0
    while True:
        cursor, part = client.sscan("s", cursor, count=50)
        seen += [m for m in part if m.startswith(b"stays")]
        client.sadd("s", *(b"comes:%d:%d" % (calls, i) for i in range(40)))
        client.srem("s", *(b"comes:%d:%d" % (calls - 2, i) for i in range(40)))
        calls += 1
        if cursor == 0:
            break
    assert len(seen) == len(set(seen)) == 3000


def scan_forms(client, members):
    """{type: (encoding, length of the first part, cursor)} of collections of these, COUNT 10."""
    numbers = range(len(members))
    fill_set(client, "s", members)
    client.sadd("i", *numbers)
    client.hset("h", mapping={m: n for n, m in enumerate(members)})
    client.zadd("z", {m: n for n, m in enumerate(members)})
    parts = {"s": client.sscan("s", 0, count=10), "i": client.sscan("i", 0, count=10),
             "h": client.hscan("h", 0, count=10), "z": client.zscan("z", 0, count=10)}
    return {key: (client.object("encoding", key), len(part), cursor)
            for key, (cursor, part) in parts.items()}


def test_a_scan_of_what_redis_packs_comes_whole(client):
    """Over 2000 bytes and more: whatever form it has on the device. BullMQ counts on it."""
    members = [b"%050d" % n for n in range(65)]
    found = scan_forms(client, members)
    assert found["i"] == (b"intset", 65, 0)
    assert found["h"] == (b"listpack", 65, 0) and found["z"] == (b"listpack", 65, 0)
    assert found["s"][1:] == (65, 0) or harness.IS_REDIS  # no listpacks in 7.0
    cursor, part = client.hscan("h", 17, match="*7", count=1)
    assert cursor == 0 and set(part) == {m for m in members if m.endswith(b"7")}
    client.flushall()
    found = scan_forms(client, [b"%050d" % n for n in range(600)])
    assert {encoding for encoding, _, _ in found.values()} == {b"hashtable", b"skiplist"}
    assert all(length < 600 and cursor != 0 for _, length, cursor in found.values())


@pytest.mark.vellum
def test_collections_beyond_the_cache(make_server):
    """Some 60 MB in a cache that has to give way to the replies: each is still that of a plain
    dictionary."""
    server = make_server(maxmemory="96mb", maxmemory_clients="90mb", journal_size="64mb",
                         appendfsync="always")
    client = server.client()
    rng = harness.chance()
    mapping = {b"field:%d" % i: rng.randbytes(rng.choice([10, 100, 600])) for i in range(100000)}
    fill_hash(client, "h", mapping, batch=500)
    two, three = set(b"m%d" % i for i in range(0, 120000, 2)), set(
        b"m%d" % i for i in range(0, 120000, 3))
    fill_set(client, "two", two, batch=1000)
    fill_set(client, "three", three, batch=1000)
    server.kill9()
    server.start()
    client = server.client()
    assert client.hlen("h") == len(mapping)
    names = rng.sample(list(mapping), 500)
    assert client.hmget("h", names) == [mapping[name] for name in names]
    assert client.hgetall("h") == mapping
    assert client.sinter("two", "three") == two & three
    assert client.sdiff("two", "three") == two - three
    assert client.sunionstore("union", "two", "three") == len(two | three)
    assert client.smembers("union") == two | three
    assert client.sintercard(2, ["two", "union"]) == len(two)
    assert client.hdel("h", *names[:200]) == 200
    assert client.copy("three", "copy") and client.scard("copy") == len(three)
    random_fields = client.hrandfield("h", 1000)
    assert len(set(random_fields)) == 1000 and set(random_fields) <= mapping.keys()
    assert client.delete("h", "union") == 2
    assert client.hset("h", "a", "1") == 1 and client.hgetall("h") == {b"a": b"1"}


@pytest.mark.vellum
def test_what_one_command_may_write(make_server):
    """More than the journal takes of one, and more than all of it."""
    server = make_server(journal_size="8mb", appendfsync="always")
    client = server.client()
    members = [b"%0100d" % i for i in range(60000)]
    assert client.sadd("s", *members) == 60000
    assert client.sunionstore("union", "s") == 60000 and client.copy("s", "copy")
    assert client.mset({b"k%d" % i: member for i, member in enumerate(members)})
    server.kill9()
    server.start()
    client = server.client()
    expected = set(members)
    assert all(client.smembers(key) == expected for key in ("s", "union", "copy"))
    assert client.mget(b"k%d" % i for i in range(60000)) == members
    assert len(client.spop("s", 59999)) == 59999 and client.scard("s") == 1


def test_long_names_and_values(client):
    name, value = b"n" * 70000, b"v" * 3000000
    assert client.hset("h", name, value) == 1
    assert client.hget("h", name) == value and client.hstrlen("h", name) == len(value)
    assert client.hget("h", name[:-1] + b"x") is None
    assert client.hkeys("h") == [name]
    assert client.sadd("s", value, value[1:]) == 2 and client.sismember("s", value)
    assert client.smembers("s") == {value, value[1:]}
    assert client.hdel("h", name) == 1 and client.exists("h") == 0


def test_walks_of_large_ones_beside_writers(server, client):
    """A walk goes in steps, and still shows one moment."""
    members = [b"%d" % i for i in range(4000)]
    fill_set(client, "s", members)
    with server.raw() as reader, server.raw() as writer:
        for i in range(30):
            reader.send(harness.encode("SMEMBERS", "s"))
            moved = members[i % len(members)]
            writer.send(harness.encode("SMOVE", "s", "t", moved)
                        + harness.encode("SMOVE", "t", "s", moved))
            assert writer.reply() == b":1\r\n" and writer.reply() == b":1\r\n"
            count = int(reader.reply().split(b"\r\n")[0][1:])
            assert count in (3999, 4000)


def test_events(make_server):
    server = make_server(notify_keyspace_events="AKEn")
    client = server.client()
    with server.raw() as listener:
        listener.call("PSUBSCRIBE", "__keyevent@0__:*")
        client.hset("h", "a", "1")
        client.hset("h", "a", "2")
        client.hincrby("h", "a", 1)
        client.hincrbyfloat("h", "a", 1)
        client.hdel("h", "nosuch")
        client.hdel("h", "a")
        client.sadd("s", "1", "2", "3")
        client.sadd("s", "1")
        client.smove("s", "t", "1")
        client.spop("s")
        client.spop("s", 5)
        client.sunionstore("u", "t")
        client.sinterstore("u", "t", "nosuch")
        client.sinterstore("u", "t", "nosuch")
        client.srem("t", "1")
        wanted = [("new", "h"), ("hset", "h"), ("hset", "h"), ("hincrby", "h"),
                  ("hincrbyfloat", "h"), ("hdel", "h"), ("del", "h"),
                  ("new", "s"), ("sadd", "s"), ("srem", "s"), ("new", "t"), ("sadd", "t"),
                  ("spop", "s"), ("spop", "s"), ("del", "s"),
                  ("new", "u"), ("sunionstore", "u"), ("del", "u"), ("srem", "t"), ("del", "t")]
        for event, key in wanted:
            message = listener.reply().split(b"\r\n")
            assert (message[6].decode(), message[8].decode()) == (
                "__keyevent@0__:" + event, key)


def test_large_ones_in_a_transaction(client):
    """Walks in steps, behind and before writes of the same transaction."""
    members = {b"m%d" % i for i in range(3000)}
    fill_set(client, "s", members)
    fill_hash(client, "h", fields(0, 3000))
    pipe = client.pipeline(transaction=True)
    pipe.sadd("s", "more").smembers("s").sunionstore("u", "s", "t").srem("s", "more")
    pipe.spop("u", 1000).scard("u").hset("h", "more", "1").hgetall("h").hdel("h", "more")
    pipe.copy("h", "copy").hlen("copy").sdiff("s", "u").sintercard(2, ["s", "u"])
    replies = pipe.execute()
    popped = set(replies[4])
    assert replies[0] == 1 and replies[1] == members | {b"more"} and replies[2] == 3001
    assert len(popped) == 1000 and replies[5] == 2001
    assert replies[7] == {**fields(0, 3000), b"more": b"1"} and replies[8] == 1
    assert replies[9] and replies[10] == 3000
    assert replies[11] == popped - {b"more"}
    assert replies[12] == 3000 - len(popped - {b"more"})
    assert client.smembers("s") == members
    assert client.smembers("u") == (members | {b"more"}) - popped
    assert client.hgetall("copy") == fields(0, 3000)


@pytest.mark.vellum
def test_larger_than_memory(make_server):
    """Copied and stored: by commands, in a transaction, in a script; and left alone by a kill."""
    server = make_server(journal_size="8mb", maxmemory="24mb", appendfsync="always")
    client = server.client()
    values = [b"%0900d" % i for i in range(30000)]
    names = [b"%0300d" % i for i in range(6000)]
    for i in range(0, 30000, 3000):
        client.rpush("l", *values[i:i + 3000])
    for i in range(0, 6000, 3000):
        client.sadd("s", *names[i:i + 3000])
        client.zadd("z", {name: n for n, name in enumerate(names[i:i + 3000], i)})
    assert client.copy("l", "l2") and client.sdiffstore("s2", "s") == 6000
    pipe = client.pipeline()
    pipe.set("a", "1").copy("z", "z2").zadd("z2", {"more": -7}).sunionstore("s", "s2", "s").get("a")
    assert pipe.execute() == [True, True, 1, 6000, b"1"]
    assert client.eval("redis.call('SADD', KEYS[1], 'more') redis.call('COPY', KEYS[1], KEYS[2])"
                       "return redis.call('SCARD', KEYS[2])", 2, "s2", "s3") == 6001
    client.config_set("set-max-intset-entries", 100000)
    client.sadd("i", *range(40000))
    assert client.sinterstore("i2", "i", "i") == 40000 and client.sdiff("i", "i2") == set()
    assert client.object("encoding", "i2") == b"intset"
    assert client.zunionstore("z3", {"z": 2, "s": 1}) == 6000
    assert client.zrangestore("z4", "z3", 10, 5000) == 4991
    with server.raw() as raw:
        raw.send(encode("COPY", "l", "l3"))
        time.sleep(0.05)
        server.kill9()
    server.start()
    client = server.client()
    assert client.scard("s") == 6000 and client.scard("s3") == 6001
    assert client.zcard("z2") == 6001 and client.zrange("z2", 5999, -1) == names[5998:]
    assert client.zrange("z4", 0, -1, withscores=True) == [
        (names[i], 2.0 * i + 1) for i in range(10, 5001)]
    assert client.llen("l3") in (0, 30000) and client.smismember("s3", names[::100]) == 60 * [1]
    assert [client.lindex("l2", i) for i in range(0, 30000, 1000)] == values[::1000]


def test_a_leaf_splits_around_an_entry_of_a_quarter(server, client):
    """Wherever the new entry comes to lie, both halves have room for what they get."""
    rng = harness.chance()
    for case in range(400):
        key, model = "split:%d" % case, {}
        for _ in range(12):
            field = b"%03d" % rng.randrange(1000)
            model[field] = b"v" * rng.choice([1, 200, 480, 900, 960, 970])
            client.hset(key, field, model[field])
        assert client.hgetall(key) == model, case
    shapes = [(b"a", 500), (b"b2", 980), (b"b3", 980), (b"b4", 980), (b"c", 480), (b"b1", 980)]
    client.hset("shaped", mapping={name: b"v" * length for name, length in shapes})
    assert client.hlen("shaped") == 6
    server.restart()
    kept = server.client().hgetall("shaped")
    assert kept == {name: b"v" * length for name, length in shapes}


def combined(sources, weights, way):
    """What ZUNIONSTORE makes of {member: score}s, the smallest first, as in Redis."""
    found = {}
    for members, weight in sorted(zip(sources, weights), key=lambda pair: len(pair[0])):
        for name, score in members.items():
            score *= weight
            found[name] = score if name not in found else {
                "SUM": found[name] + score, "MIN": min(found[name], score),
                "MAX": max(found[name], score)}[way]
    return found


@pytest.mark.parametrize("count", [2, 4, 5, 6, 20, 70, 200])
def test_the_algebra_of_many_sources(client, count):
    """Of packed ones and trees, absent and repeated ones, with few members and many in common."""
    rng = harness.chance()
    for case in range(12 if count < 70 else 4):
        client.flushall()
        names = [b"%d" % i if i % 3 else b"name:%d" % i for i in range(rng.choice([30, 300, 4000]))]
        sets, zsets = [], []
        for i in range(count):
            size = rng.choice([0, 1, 2, 5, 30] + [600] * (count < 70))
            sets.append(set(rng.sample(names, min(size, len(names)))))
            zsets.append({name: float(rng.randrange(50)) for name in sets[-1]})
            if sets[-1]:
                client.sadd(f"s{i}", *sets[-1])
                client.zadd(f"z{i}", zsets[-1])
        chosen = [rng.randrange(count) for _ in range(count)]
        keys = [f"s{i}" for i in chosen]
        union = set().union(*(sets[i] for i in chosen))
        reply = client.execute_command("SUNION", *keys)
        assert len(reply) == len(union) and set(reply) == union
        assert client.sunionstore("to", keys) == len(union) and client.smembers("to") == union
        rest = sets[chosen[0]].difference(*(sets[i] for i in chosen[1:]))
        assert client.sdiff(keys) == rest and client.sdiffstore("to", keys) == len(rest)
        common = sets[chosen[0]].intersection(*(sets[i] for i in chosen[1:]))
        assert client.sinter(keys) == common and client.sintercard(count, keys) == len(common)
        assert set(client.zdiff([f"z{i}" for i in chosen])) == rest
        way = rng.choice(["SUM", "MIN", "MAX"])
        weights = [rng.randrange(1, 5) for _ in chosen]
        of = [keys[n] if n % 4 == 3 else f"z{i}" for n, i in enumerate(chosen)]
        words = [count, *of, "WEIGHTS", *weights, "AGGREGATE", way]
        wanted = combined([dict.fromkeys(sets[i], 1.0) if n % 4 == 3 else zsets[i]
                           for n, i in enumerate(chosen)], weights, way)
        assert client.execute_command("ZUNIONSTORE", "to", *words) == len(wanted)
        assert dict(client.zrange("to", 0, -1, withscores=True)) == wanted
        flat = client.execute_command("ZUNION", *words, "WITHSCORES")
        assert {name: float(score) for name, score in zip(flat[::2], flat[1::2])} == wanted
        assert len(flat) == 2 * len(wanted)
        pipe = client.pipeline()
        pipe.srem(keys[0], "x").sunion(keys).execute_command("ZUNION", *words)
        _, nested, by_score = pipe.execute()
        assert set(nested) == union and sorted(by_score) == sorted(wanted)


def test_scans_with_long_classes(client):
    names = [b"a1", b"b2", b"c3", b"]4", b"-5", b"\xff6", b"B7"]
    client.mset(dict.fromkeys(names, "v"))
    client.sadd("set", *names)
    client.hset("hash", mapping=dict.fromkeys(names, "v"))
    client.zadd("zset", dict.fromkeys(names, 1))
    for inside, matched in ((b"b-a" * 50, (0, 1)), (b"\\]\\-" * 50, (3, 4)), (b"^" + b"\\b3" * 50, (0, 2, 3, 4, 5, 6)),
                            (b"c" * 40 + b"\xff-\x80", (2, 5))):
        expected = sorted(names[i] for i in matched)
        pattern = b"[" + inside + b"]?"
        assert sorted(client.keys(pattern)) == expected
        assert sorted(client.scan_iter(pattern)) == expected
        assert sorted(client.sscan_iter("set", pattern)) == expected
        assert sorted(name for name, _ in client.hscan_iter("hash", pattern)) == expected
        assert sorted(name for name, _ in client.zscan_iter("zset", pattern)) == expected
        assert client.keys(pattern[:-2]) == []  # it ends with the pattern: no name is as short
