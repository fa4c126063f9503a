"""Consecutive similar commands of a pipeline, on large collections: that the server batches them must not be
observable. Each test compares with the same commands one by one, or names what these give."""

import random
import re

import pytest

from harness import encode

pytestmark = pytest.mark.shared

TOGETHER, SINGLE = 2, 3  # databases
LISTS, ZSETS = (b"biglist", b"dwindling", b"few"), (b"bigzset", b"shrinking")
PUSHES = b"LPUSH", b"RPUSH", b"LPUSHX", b"RPUSHX"
SIZES = 1, 8, 16, 16, 300, 1500, 5000


def value(rng):
    return rng.randbytes(1) * rng.choice(SIZES)


def mostly_one(rng, keys, count):
    key = rng.choice(keys)
    for _ in range(rng.randrange(count)):
        yield key
        if rng.random() < .1:
            key = rng.choice(keys)


def alike(rng):
    """A row, as a rule: one command for one key, over and over."""
    kind = rng.randrange(5)
    if kind == 0:
        command, width = rng.choice(PUSHES), rng.choice([1, 1, 1, 3])
        return [(command, key, *(value(rng) for _ in range(width)))
                for key in mostly_one(rng, LISTS + (b"absent", b"bigzset"), 12)]
    if kind == 1:
        command = rng.choice([b"LPOP", b"RPOP"])
        return [(command, key) for key in mostly_one(rng, LISTS, 40)]
    if kind == 2:
        command = rng.choice([b"ZPOPMIN", b"ZPOPMAX"])
        return [(command, key) for key in mostly_one(rng, ZSETS, 40)]
    if kind == 3:
        return [(b"ZADD", key, b"%d" % rng.randrange(100), value(rng))
                for key in mostly_one(rng, ZSETS, 8)]
    key = rng.choice(LISTS)
    return [rng.choice([(b"LPUSH", key, value(rng)), (b"lpop", key), (b"RPOP", key, b"2")])
            for _ in range(rng.randrange(8))]


def other(rng):
    key = rng.choice(LISTS + ZSETS)
    return rng.choice([
        [(b"LLEN", key)], [(b"ZCARD", key)], [(b"LINDEX", key, b"0")], [(b"LPUSH", key)],
        [(b"LPOP", key, b"1", b"2")], [(b"ZPOPMIN", key, b"no number")],
        [(b"SET", b"string", b"1")],
        [(b"LPUSH", b"string", b"x")] * 3, [(b"DEL", b"absent")], [(b"EXPIRE", key, b"1000")],
        [(b"NONSENSE",)], [(b"LSET", key, b"1", value(rng))], [(b"LTRIM", key, b"1", b"-2")],
        [(b"MULTI",)] + [(b"LPUSH", key, b"q")] * 3 + [(b"EXEC",)],
        [(b"MULTI",)] + [(b"ZPOPMIN", key)] * 2 + [(b"DISCARD",)],
        [(b"EVAL", b"return redis.call('LPUSH', KEYS[1], 'a')", b"1", b"biglist")] * 2,
        [(b"CLIENT", b"REPLY", b"SKIP")] + [(b"RPUSH", b"biglist", b"s")] * 2,
    ])


def are_answered(commands):
    """CLIENT REPLY SKIP and the command behind it are not answered."""
    skips = [i for i, words in enumerate(commands) if words[:2] == (b"CLIENT", b"REPLY")]
    skipped = {i + behind for i in skips for behind in (0, 1)}
    return [i not in skipped for i in range(len(commands))]


def stream(rng):
    commands = [(b"RPUSH", key, *(b"element:%d" % i for i in range(count)))
                for key, count in ((b"biglist", 3000), (b"dwindling", 400), (b"few", 5))]
    commands += [(b"ZADD", key, *(w for i in range(count) for w in (b"%d" % (i % 50), b"m%d" % i)))
                 for key, count in ((b"bigzset", 3000), (b"shrinking", 300))]
    while len(commands) < 1200:
        commands += alike(rng) if rng.random() < .8 else other(rng)
    return commands


class Watched:
    """One database of a server, and what its keys are notified of."""

    def __init__(self, server, db):
        self.client, self.events = server.raw(), server.raw()
        self.client.call("SELECT", db)
        self.events.call("PSUBSCRIBE", f"__keyspace@{db}__:*")
        self.db = b"@%d" % db

    def told(self):
        """All that has happened."""
        self.client.call("PUBLISH", b"__keyspace%s__:the end" % self.db, "")
        told = []
        while not told or b"the end" not in told[-1]:
            told.append(self.events.reply().replace(self.db, b"@"))
        return told

    def content(self):
        lists = [self.client.call("LRANGE", key, "0", "-1") for key in LISTS]
        return lists + [self.client.call("ZRANGE", key, "0", "-1", "WITHSCORES") for key in ZSETS]


def figures(client):
    found = re.findall(rb"cmdstat_(\w+):calls=(\d+).*?rejected_calls=(\d+),failed_calls=(\d+)",
                       client.call("INFO", "commandstats"))
    return {name: numbers for name, *numbers in found
            if re.search(rb"push|pop|zadd|llen", name)}


def processed(client):
    return int(re.search(rb"total_commands_processed:(\d+)", client.call("INFO", "stats"))[1])


@pytest.mark.parametrize("seed", range(2))
def test_a_pipeline_is_its_commands_one_by_one(server, seed):
    rng = random.Random(seed)
    commands = stream(rng)
    answered = are_answered(commands)
    admin = server.raw()
    admin.call("CONFIG", "SET", "notify-keyspace-events", "KA")
    seen = {}
    for db in (SINGLE, TOGETHER):
        admin.call("CONFIG", "RESETSTAT")
        watched, replies, at = Watched(server, db), [], 0
        before = processed(admin)
        while at < len(commands):
            part = commands[at:at + (1 if db == SINGLE else rng.choice([5, 50, 300]))]
            watched.client.send(b"".join(encode(*words) for words in part))
            replies += [watched.client.reply() for is_answered in answered[at:at + len(part)]
                        if is_answered]
            at += len(part)
        seen[db] = (replies, figures(admin), processed(admin) - before, watched.told(),
                    watched.content())
        watched.client.close()
        watched.events.close()
    admin.close()
    for one, together in zip(seen[SINGLE], seen[TOGETHER]):
        assert together == one


def test_who_waits_is_served_between_pushes(server):
    waiting, client = server.raw(), server.raw()
    waiting.call("CLIENT", "ID")
    waiting.send(encode("BLPOP", "queue", "0"))
    while b"blocked_clients:1" not in client.call("INFO", "clients"):
        pass
    client.send(b"".join(encode("LPUSH", "queue", i) for i in range(5)))
    assert [client.reply() for _ in range(5)] == [b":%d\r\n" % i for i in (1, 1, 2, 3, 4)]
    assert waiting.reply() == b"*2\r\n$5\r\nqueue\r\n$1\r\n0\r\n"
    waiting.close()
    client.close()


def test_a_monitor_sees_each(server):
    monitor, client = server.raw(), server.raw()
    client.call("RPUSH", "list", *range(3000))
    monitor.call("MONITOR")
    client.send(b"".join(encode("LPUSH", "list", i) for i in range(40)))
    assert [client.reply() for _ in range(40)] == [b":%d\r\n" % (3001 + i) for i in range(40)]
    lines = [monitor.line() for _ in range(40)]
    assert [re.search(rb'"LPUSH" "list" "(\d+)"', line)[1] for line in lines] == [
        b"%d" % i for i in range(40)]
    monitor.close()
    client.close()


def test_a_watched_list_is_touched(server):
    watching, client = server.raw(), server.raw()
    client.call("RPUSH", "list", *range(3000))
    watching.call("WATCH", "list")
    client.send(encode("LPOP", "list") * 30)
    assert [client.reply() for _ in range(30)] == [
        b"$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(30)]
    watching.send(encode("MULTI") + encode("PING") + encode("EXEC"))
    assert [watching.reply() for _ in range(3)][2] == b"*-1\r\n"
    watching.close()
    client.close()


@pytest.mark.vellum
def test_what_was_popped_stays_away(make_server):
    server = make_server(appendfsync="always")
    client = server.raw()
    client.call("RPUSH", "list", *range(3000))
    client.send(encode("LPOP", "list") * 100 + b"".join(
        encode("RPUSH", "list", i) for i in range(3000, 3100)))
    assert [client.reply() for _ in range(200)][-1] == b":3000\r\n"
    client.close()
    server.kill9()
    server.start()
    assert server.client().lrange("list", 0, -1) == [b"%d" % i for i in range(100, 3100)]


@pytest.mark.vellum
@pytest.mark.parametrize("size", [300, 1500])
def test_what_a_full_store_refuses_is_not_there(make_server, size):
    server = make_server(maxstore=24 << 20, journal_size=8 << 20, partitions=4, maxmemory="100mb")
    client, taken, refused = server.raw(timeout=120), [], 0
    while refused < 20:
        values = [b"%d:" % (len(taken) + i) + b"v" * size for i in range(200)]
        client.send(b"".join(encode("RPUSH", "list", v) for v in values))
        for v in values:
            reply = client.reply()
            refused += reply.startswith(b"-OOM")
            if not reply.startswith(b"-OOM"):
                taken.append(v)
                assert reply == b":%d\r\n" % len(taken)
    client.send(encode("LPOP", "list") * 100)
    assert [client.reply() for _ in range(100)] == [
        b"$%d\r\n%s\r\n" % (len(v), v) for v in taken[:100]]
    client.close()
    assert server.client().lrange("list", 0, -1) == taken[100:]
