"""Trimming that removes most of a stream or list: what is kept is copied, in steps, so that neither it nor the
rest needs to fit into memory. What else belongs to a stream stays, and nobody sees anything in between."""

import threading

import pytest
import redis

import harness
from harness import IS_REDIS

MB = 2**20
CACHE_MB = 64
PAD = b"x" * 300  # so that 400,000 of them do not fit
MANY = 400_000
STEP = 5000
SMALL = 20_000


def small(make_server):
    return make_server() if IS_REDIS else make_server(
        maxmemory=f"{CACHE_MB}mb", journal_size="8mb", maxmemory_policy="noeviction")


def add(client, key, count, first=1, pad=PAD):
    for start in range(first, first + count, STEP):
        pipe = client.pipeline(transaction=False)
        for i in range(start, min(start + STEP, first + count)):
            pipe.execute_command("XADD", key, f"{i}-1", "n", i, "pad", pad)
        pipe.execute()


def push(client, key, count, pad=PAD):
    for start in range(0, count, STEP):
        client.rpush(key, *(b"%d:%s" % (i, pad) for i in range(start, min(start + STEP, count))))


def numbers(client, key):
    """Of a stream's entries, without walking over those in the middle."""
    first, last = client.xrange(key, count=1), client.xrevrange(key, count=1)
    return tuple(int(entries[0][1][b"n"]) for entries in (first, last))


def check_bounds(server):
    if not IS_REDIS:
        assert server.peak_memory() < (CACHE_MB * 1.05 + 8) * MB


@pytest.mark.slow
def test_most_of_a_stream_beyond_memory(make_server):
    server = small(make_server)
    client = server.client()
    add(client, "s", MANY)
    client.xgroup_create("s", "g", id="0")
    assert len(client.xreadgroup("g", "c", {"s": ">"}, count=1000)[0][1]) == 1000
    client.pexpireat("s", 4_000_000_000_000)
    assert client.xtrim("s", maxlen=MANY // 5 * 2, approximate=False) == MANY // 5 * 3
    assert client.xlen("s") == MANY // 5 * 2
    assert numbers(client, "s") == (MANY // 5 * 3 + 1, MANY)
    info = client.xinfo_stream("s")
    assert info["entries-added"] == MANY and info["last-generated-id"] == b"%d-1" % MANY
    assert info["groups"] == 1 and client.xpending("s", "g")["pending"] == 1000
    assert client.pexpiretime("s") == 4_000_000_000_000
    assert client.xadd("s", {"n": MANY + 1}, f"{MANY + 1}-1", maxlen=10, approximate=False) == b"%d-1" % (MANY + 1)
    assert numbers(client, "s") == (MANY - 8, MANY + 1) and client.xlen("s") == 10
    assert client.xtrim("s", minid=f"{MANY}-2", approximate=False) == 9
    check_bounds(server)
    server.restart()
    client = server.client()
    assert numbers(client, "s") == (MANY + 1, MANY + 1)
    assert client.xinfo_stream("s")["entries-added"] == MANY + 1
    assert client.xpending("s", "g")["pending"] == 1000
    assert client.xtrim("s", maxlen=0, approximate=False) == 1


@pytest.mark.slow
def test_most_of_a_list_beyond_memory(make_server):
    server = small(make_server)
    client = server.client()
    push(client, "l", MANY)
    client.pexpireat("l", 4_000_000_000_000)
    assert client.ltrim("l", MANY // 2 + 100, -101)
    assert client.llen("l") == MANY // 2 - 200
    assert client.lindex("l", 0) == b"%d:%s" % (MANY // 2 + 100, PAD)
    assert client.lindex("l", -1) == b"%d:%s" % (MANY - 101, PAD)
    assert client.pexpiretime("l") == 4_000_000_000_000
    assert client.lpush("l", "first") == MANY // 2 - 199
    check_bounds(server)
    server.restart()
    client = server.client()
    assert client.lrange("l", 0, 1) == [b"first", b"%d:%s" % (MANY // 2 + 100, PAD)]


@pytest.mark.parametrize("way", ["plain", "multi", "script"])
def test_with_other_changes(make_server, way):
    """Of the same key, before and after, in one transaction."""
    client = make_server().client()
    add(client, "s", SMALL)
    push(client, "l", SMALL)
    commands = [("XADD", "s", f"{SMALL + 1}-1", "n", SMALL + 1), ("XDEL", "s", f"{SMALL}-1"),
                ("XTRIM", "s", "MAXLEN", 5000), ("XADD", "s", f"{SMALL + 2}-1", "n", SMALL + 2),
                ("RPUSH", "l", "a"), ("LTRIM", "l", SMALL - 5000, -1), ("LPUSH", "l", "b"),
                ("COPY", "s", "t"), ("XTRIM", "s", "MAXLEN", 1)]
    replies = [b"%d-1" % (SMALL + 1), 1, SMALL - 5000, b"%d-1" % (SMALL + 2), SMALL + 1, 1, 5002, 1, 5000]
    if way == "script":
        script = ("local r = {} for i = 1, #ARGV, 6 do local c = {} for j = i, i + 5 do "
                  "if ARGV[j] ~= '' then c[#c + 1] = ARGV[j] end end r[#r + 1] = redis.call(unpack(c)) end return r")
        words = [word for command in commands for word in (*command, *[""] * (6 - len(command)))]
        found = client.eval(script, 3, "s", "l", "t", *words)
    else:
        pipe = client.pipeline(transaction=way == "multi")
        for command in commands:
            pipe.execute_command(*command)
        found = pipe.execute()
    assert [1 if reply in (True, b"OK") else reply for reply in found] == replies
    assert numbers(client, "t") == (SMALL - 4999, SMALL + 2) and client.xlen("t") == 5001
    assert numbers(client, "s") == (SMALL + 2, SMALL + 2)
    assert client.llen("l") == 5002 and client.lindex("l", 0) == b"b" and client.lindex("l", -1) == b"a"
    assert client.lindex("l", 1) == b"%d:%s" % (SMALL - 5000, PAD)


def test_nobody_sees_it_half_done(make_server):
    server = make_server()
    client, lengths, is_over = server.client(), set(), threading.Event()
    add(client, "s", SMALL * 3, pad=b"")

    def look():
        own = server.client()
        while not is_over.is_set():
            lengths.add(own.xlen("s"))
    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    client.xtrim("s", maxlen=SMALL, approximate=False)
    is_over.set()
    for thread in threads:
        thread.join()
    assert lengths <= {SMALL * 3, SMALL}
    watcher = server.client().pipeline()
    watcher.watch("s")
    client.xtrim("s", maxlen=1, approximate=False)
    watcher.multi()
    watcher.xlen("s")
    with pytest.raises(redis.WatchError):
        watcher.execute()


def test_random_trims(make_server):
    """Beside a model, with long entries among short ones."""
    server = make_server()
    client, drawn, model, last = server.client(), harness.chance(), {}, 0
    for _ in range(25):
        key = drawn.choice(("a", "b"))
        entries = model.setdefault(key, [])
        count = drawn.choice((10, 3000, 12_000))
        pads = [b"y" * drawn.choice((0, 0, 0, 10, 1000, 5000)) for _ in range(count)]
        pipe = client.pipeline(transaction=False)
        for pad in pads:
            last += 1
            pipe.execute_command("XADD", key, f"{last}-0", last, pad)
            entries.append((b"%d-0" % last, {b"%d" % last: pad}))
        pipe.execute()
        kept = drawn.randrange(len(entries) + 1)
        if drawn.randrange(3):
            kept //= 4
        removed = len(entries) - kept
        assert client.xtrim(key, maxlen=kept, approximate=False) == removed
        del entries[:removed]
        assert client.xrange(key) == entries
        assert client.xinfo_stream(key)["length"] == kept
    if not IS_REDIS:
        server.stop()
        assert server.check_data()[0] == 0
