"""The order in which small collections are shown: Redis keeps what is within its thresholds as a listpack
(in the order in which members were added) or an intset (in that of the numbers), whatever form they
have on disk here."""

import pytest

import harness

pytestmark = pytest.mark.shared

LIMITS = {"hash-max-listpack-entries": 128, "hash-max-listpack-value": 64,
          "set-max-intset-entries": 512, "set-max-listpack-entries": 128}


@pytest.fixture
def client(server):  # noqa: F811
    found = server.client()
    for name, value in LIMITS.items():
        if not server.is_redis or not name.startswith("set-max-listpack"):
            found.config_set(name, value)
    return found


def name(number):
    return b"%d:" % number + b"n" * (40 + number % 20)


def raw_elements(server, *words):
    """The bulk strings of a flat reply as they come: redis-py makes sets and maps of them."""
    with server.raw() as raw:
        data = raw.call(*words)
    head, rest = data.split(b"\r\n", 1)
    found = []
    for _ in range(int(head[1:])):
        size, rest = rest.split(b"\r\n", 1)
        found.append(rest[:int(size[1:])])
        rest = rest[int(size[1:]) + 2:]
    return found


def scanned(server, *words):
    with server.raw() as raw:
        data = raw.call(*words)
    assert data.startswith(b"*2\r\n$1\r\n0\r\n"), data[:40]
    parts = data[len(b"*2\r\n$1\r\n0\r\n"):].split(b"\r\n")
    return parts[2::2]


def pairs(mapping):
    return [word for pair in mapping.items() for word in pair]


def check_hash(server, key, mapping):
    assert raw_elements(server, "HGETALL", key) == pairs(mapping)
    assert raw_elements(server, "HKEYS", key) == list(mapping)
    assert raw_elements(server, "HVALS", key) == list(mapping.values())
    assert scanned(server, "HSCAN", key, 0, "COUNT", 3) == pairs(mapping)
    assert scanned(server, "HSCAN", key, 0, "MATCH", "1*") == pairs(
        {field: value for field, value in mapping.items() if field.startswith(b"1")})
    assert raw_elements(server, "HRANDFIELD", key, 10_000, "WITHVALUES") == pairs(mapping)
    assert len(check_picks(server, list(mapping), "HRANDFIELD", key, 5)) == 5
    script = "return redis.call('hkeys', KEYS[1])"
    assert raw_elements(server, "EVAL", script, 1, key) == list(mapping)


def check_set(server, key, members):
    members = list(members)
    assert raw_elements(server, "SMEMBERS", key) == members
    assert scanned(server, "SSCAN", key, 0, "COUNT", 3) == members
    assert raw_elements(server, "SRANDMEMBER", key, 10_000) == members
    assert raw_elements(server, "SORT", key, "BY", "nosort") == members
    assert raw_elements(server, "SORT", key, "BY", "nosort", "LIMIT", 5, 50) == members[5:55]
    assert raw_elements(server, "SINTER", key, key) == members
    assert raw_elements(server, "EVAL", "return redis.call('smembers', KEYS[1])", 1, key) == members


def check_picks(server, shown, *words):
    """A few by chance come in the same order as all of them."""
    place = {member: i for i, member in enumerate(shown)}
    picked = raw_elements(server, *words)
    assert [place[member] for member in picked] == sorted(place[member] for member in picked)
    return picked


def test_a_hash_is_shown_as_it_was_made(server, client):
    chance = harness.chance()
    mapping = {}
    for number in range(600):
        field = name(chance.randrange(127))
        if chance.random() < 0.25:
            assert client.hdel("h", field) == (mapping.pop(field, None) is not None)
        else:
            value = b"%d" % number * chance.choice([1, 5, 14])
            assert client.hset("h", field, value) == (field not in mapping)
            mapping[field] = value
        if number % 50 == 49:
            assert client.object("encoding", "h") == b"listpack"
            check_hash(server, "h", mapping)
    while len(mapping) < 128:
        mapping[b"f%d" % len(mapping)] = b"1"
        client.hset("h", b"f%d" % (len(mapping) - 1), "1")
    field = list(mapping)[70]
    client.hset("h", field, "1")
    mapping[field] = b"%d" % client.hincrby("h", field, 4)
    check_hash(server, "h", mapping)
    client.hset("h", "one more", "1")
    assert client.object("encoding", "h") == b"hashtable"
    assert client.hgetall("h") == {**mapping, b"one more": b"1"}
    with server.raw() as raw:
        cursor = raw.call("HSCAN", "h", "0", "COUNT", "3").split(b"\r\n")[2]
    assert cursor != b"0"


@pytest.mark.vellum
def test_a_set_is_shown_as_it_was_made(server, client):
    chance = harness.chance()
    members = {}
    for number in range(600):
        member = name(chance.randrange(127))
        if chance.random() < 0.25:
            assert client.srem("s", member) == (members.pop(member, None) is not None)
        else:
            assert client.sadd("s", member) == (member not in members)
            members[member] = 1
        if number % 50 == 49:
            assert client.object("encoding", "s") == b"listpack"
            check_set(server, "s", members)
    assert raw_elements(server, "SDIFF", "s", "nosuch") == list(members)
    assert raw_elements(server, "SUNION", "nosuch", "s") == list(members)
    assert client.sinterstore("t", "s", "s") and client.sunionstore("u", "s")
    client.smove("t", "v", list(members)[3])
    check_picks(server, list(members), "SRANDMEMBER", "s", 30)
    for _ in range(3):
        popped = check_picks(server, list(members), "SPOP", "s", 7)
        assert len(popped) == 7 and not any(client.smismember("s", popped))
        members = {member: 1 for member in members if member not in popped}
        check_set(server, "s", members)
    client.sadd("s", *(set(client.smembers("u")) - set(members)))
    assert client.sinterstore("s", "u", "s") and client.sunionstore("s", "u")
    members = {member: 1 for member in raw_elements(server, "SMEMBERS", "s")}
    check_set(server, "u", members)
    check_set(server, "t", [m for i, m in enumerate(members) if i != 3])
    assert raw_elements(server, "SPOP", "s", 1000) == list(members) and not client.exists("s")


def test_a_set_of_integers_is_shown_by_number(server, client):
    chance = harness.chance()
    numbers = [chance.randrange(-2**63, 2**63) for _ in range(400)]
    client.sadd("i", *numbers[:300])
    for number in numbers[300:]:
        client.sadd("i", number)
        client.srem("i", numbers[number % 100])
    left = sorted(map(int, client.smembers("i")))
    assert client.object("encoding", "i") == b"intset" and len(left) > 250
    check_set(server, "i", [b"%d" % number for number in left])
    with server.raw() as raw:
        raw.call("HELLO", 3)
        reply = raw.call("SMEMBERS", "i").split(b"\r\n")
    assert reply[2::2][:len(left)] == [b"%d" % number for number in left]


def test_a_union_of_integers_is_by_number(server, client):
    chance = harness.chance()
    sets = [[chance.randrange(-2**63, 2**63) for _ in range(count)] for count in (200, 3, 250)]
    for number, members in enumerate(sets):
        client.sadd(f"i{number}", *members, *sets[0][:20])
    expected = [b"%d" % number for number in sorted(set(sum(sets, [])))]
    assert raw_elements(server, "SUNION", "i0", "i1", "nosuch", "i2") == expected
    script = "return redis.call('sunion', KEYS[1], KEYS[2], KEYS[3])"
    assert raw_elements(server, "EVAL", script, 3, "i0", "i1", "i2") == expected
    client.sunionstore("u", "i2", "i1", "i0")
    check_set(server, "u", expected)
    client.sadd("i1", *range(400))  # which leaves more of them than an intset may have
    assert sorted(map(int, raw_elements(server, "SUNION", "i0", "i1", "i2"))) == sorted(
        set(sum(sets, list(range(400)))))


def test_a_sorted_set_is_shown_by_score(server, client):
    client.config_set("zset-max-listpack-entries", 128)
    client.config_set("zset-max-listpack-value", 64)
    chance = harness.chance()
    scores = {name(i): chance.randrange(9) for i in range(120)}
    for member in chance.sample(list(scores), len(scores)):
        client.zadd("z", {member: scores[member]})
    client.zincrby("z", 5, name(3))
    scores[name(3)] += 5
    client.zrem("z", name(4))
    del scores[name(4)]
    assert client.object("encoding", "z") == b"listpack"
    ordered = sorted(scores, key=lambda member: (scores[member], member))
    flat = [word for member in ordered for word in (member, b"%d" % scores[member])]
    assert scanned(server, "ZSCAN", "z", 0, "COUNT", 3) == flat
    assert scanned(server, "ZSCAN", "z", 0, "MATCH", "1*")[::2] == [
        member for member in ordered if member.startswith(b"1")]
    assert raw_elements(server, "ZRANDMEMBER", "z", 119) == ordered[::-1]
    assert raw_elements(server, "ZRANDMEMBER", "z", 1000, "WITHSCORES")[::2] == ordered[::-1]
    assert len(check_picks(server, ordered, "ZRANDMEMBER", "z", 7)) == 7
    assert len(raw_elements(server, "ZRANDMEMBER", "z", -300)) == 300


@pytest.mark.vellum
def test_integers_come_first_where_others_join_them(server, client):
    numbers = [b"%d" % (i * 10**18 // 7) for i in range(-50, 50)]
    client.sadd("s", *reversed(numbers))
    assert client.object("encoding", "s") == b"intset"
    client.sadd("s", "x")
    client.sadd("s", "-1", "a", "5")
    assert client.object("encoding", "s") == b"listpack"
    check_set(server, "s", numbers + [b"x", b"-1", b"a", b"5"])
    client.srem("s", numbers[0])
    client.sadd("s", numbers[0])
    check_set(server, "s", numbers[1:] + [b"x", b"-1", b"a", b"5", numbers[0]])


@pytest.mark.vellum
def test_the_order_outlives_copies_and_restarts(make_server):
    server = make_server(enable_debug_command="yes", appendfsync="always")
    client = server.client()
    mapping = {name(i * 37 % 101): b"%d" % i for i in range(101)}
    members = {name(i * 29 % 101): 1 for i in range(101)}
    client.hset("h", mapping=mapping)
    client.sadd("s", *members)
    dumps = client.dump("h"), client.dump("s")
    client.restore("h3", 0, dumps[0])
    client.restore("s3", 0, dumps[1])
    client.copy("h", "h2")
    client.copy("s", "s2")
    client.rename("h", "h1")
    client.rename("s", "s1")
    for end in (lambda: None, server.restart, server.kill9):
        end()
        if end == server.kill9:
            server.start()
        client = server.client()
        for i in range(1, 4):
            check_hash(server, f"h{i}", mapping)
            check_set(server, f"s{i}", members)
            field = list(mapping)[5]
            client.hset(f"h{i}", field, "changed")
            client.hdel(f"h{i}", list(mapping)[0])
            client.hset(f"h{i}", list(mapping)[0], "last")
            client.srem(f"s{i}", list(members)[1])
            client.sadd(f"s{i}", list(members)[1])
        mapping[field] = b"changed"
        first = next(iter(mapping))
        del mapping[first]
        mapping[first] = b"last"
        second = list(members)[1]
        del members[second]
        members[second] = 1
    assert client.dump("h1") == client.dump("h2") == client.dump("h3")
    assert client.dump("h1") != dumps[0]
    assert client.execute_command("DEBUG", "RELOAD")
    check_hash(server, "h3", mapping)


@pytest.mark.vellum
def test_thresholds_count_as_they_are_when_it_is_written(server, client):
    client.config_set("hash-max-listpack-entries", 3000)
    mapping = {name(i * 37 % 2503): b"%d" % i for i in range(2503)}
    for at in range(0, 2503, 100):
        client.hset("h", mapping=dict(list(mapping.items())[at:at + 100]))
    assert client.object("encoding", "h") == b"listpack"
    check_hash(server, "h", mapping)
    pipe = client.pipeline()
    pipe.hkeys("h")
    pipe.hset("h", "last", "1")
    pipe.hkeys("h")
    before, _, after = pipe.execute()
    assert before == list(mapping) and after == before + [b"last"]
    client.config_set("hash-max-listpack-entries", 128)
    assert client.object("encoding", "h") == b"listpack"
    check_hash(server, "h", {**mapping, b"last": b"1"})
    client.hset("h", "another", "1")
    assert client.object("encoding", "h") == b"hashtable" and client.hlen("h") == 2505
    client.config_set("hash-max-listpack-entries", 3000)
    client.hset("h", "and one", "1")
    assert client.object("encoding", "h") == b"hashtable"
    assert client.hgetall("h") == {**mapping, b"last": b"1", b"another": b"1", b"and one": b"1"}


@pytest.mark.vellum
def test_dump_gives_stock_redis_the_order(server, client):
    mapping = {name(i * 37 % 101): b"%d" % i for i in range(101)}
    client.hset("h", mapping=mapping)
    payload = client.dump("h")
    stock = harness.Server(program="redis-server")
    try:
        stock.start()
        stock.client().restore("h", 0, payload)
        check_hash(stock, "h", mapping)
    finally:
        stock.stop()
        stock.remove()
