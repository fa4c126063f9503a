"""Consumer groups of streams: who gets what, who waits, and what is pending after a crash."""

import os
import threading

import pytest
import redis

import harness
from harness import encode, eventually

MB = 1 << 20


def blocked(client, count):
    eventually(lambda: client.info("clients")["blocked_clients"] == count)


def add(client, key, count, start=1):
    pipe = client.pipeline(transaction=False)
    for i in range(start, start + count):
        pipe.xadd(key, {"n": i}, f"{i}-1")
    pipe.execute()


def test_each_entry_goes_to_one_consumer(server):
    """While they wait and while they do not, on any worker, acknowledged or not."""
    client, found, lock = server.client(), [], threading.Lock()
    client.xgroup_create("s", "g", mkstream=True)

    def consume(name):
        own = server.client()
        while True:
            for _, entries in own.xreadgroup("g", name, {"s": ">"}, count=3, block=20_000):
                numbers = [int(fields[b"n"]) for _, fields in entries]
                if -1 in numbers:
                    own.xadd("s", {"n": -1})
                    return
                with lock:
                    found.extend(numbers)
                own.xack("s", "g", *(identity for identity, _ in entries))

    threads = [threading.Thread(target=consume, args=(f"c{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for n in range(500):
        client.xadd("s", {"n": n})
    eventually(lambda: len(found) == 500)
    client.xadd("s", {"n": -1})
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(500))
    assert all(int(client.xrange("s", i, i)[0][1][b"n"]) == -1 for i in
               (pending["message_id"] for pending in client.xpending_range("s", "g", "-", "+", 100)))


def test_waiting_consumers_are_served_in_the_order_of_their_arrival(server):
    client = server.client()
    client.xgroup_create("s", "g", mkstream=True)
    consumers = [server.raw() for _ in range(5)]
    for i, raw in enumerate(consumers):
        raw.send(encode("XREADGROUP", "GROUP", "g", f"c{i}", "BLOCK", 0, "STREAMS", "s", ">"))
        blocked(client, i + 1)
    for i, raw in enumerate(consumers):
        client.xadd("s", {"n": i}, f"{i + 1}-1")
        assert b"%d-1" % (i + 1) in raw.reply()
        blocked(client, len(consumers) - i - 1)


def test_groups_and_readers_that_wait_for_one_entry_all_get_it(server):
    client = server.client()
    for group in ("g", "h"):
        client.xgroup_create("s", group, mkstream=True)
    waiting = [server.raw() for _ in range(5)]
    for raw, group in zip(waiting, "gghh"):
        raw.send(encode("XREADGROUP", "GROUP", group, "c", "BLOCK", 0, "STREAMS", "s", ">"))
        blocked(client, waiting.index(raw) + 1)
    waiting[4].send(encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$"))
    blocked(client, 5)
    client.xadd("s", {"n": 1}, "1-1")
    assert all(b"1-1" in waiting[i].reply() for i in (0, 2, 4))
    blocked(client, 2)
    client.xadd("s", {"n": 2}, "2-1")
    assert all(b"2-1" in waiting[i].reply() for i in (1, 3))


@pytest.mark.parametrize("words, error", [
    (["XGROUP", "DESTROY", "s", "g"], b"-NOGROUP No such key 's' or consumer group 'g'"),
    (["DEL", "s"], b"-NOGROUP No such key 's' or consumer group 'g'"),
    (["FLUSHALL"], b"-NOGROUP No such key 's' or consumer group 'g'"),
    (["RENAME", "s", "t"], b"-NOGROUP No such key 's' or consumer group 'g'"),
    (["SWAPDB", "0", "1"], b"-NOGROUP No such key 's' or consumer group 'g'"),
    (["SET", "s", "x"], b"-WRONGTYPE"),
])
def test_who_waits_in_a_group_that_goes_is_told(server, words, error):
    client = server.client()
    client.xgroup_create("s", "g", mkstream=True)
    with server.raw() as raw, server.raw() as reader:
        raw.send(encode("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "other", "s", ">", ">"))
        assert raw.reply().startswith(b"-NOGROUP No such key 'other'")
        raw.send(encode("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "s", ">"))
        reader.send(encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$"))
        blocked(client, 2)
        client.execute_command(*words)
        assert raw.reply().startswith(error)
        blocked(client, 1)
        client.delete("s")
        client.xadd("s", {"a": 1}, "9-9")
        assert b"9-9" in reader.reply()


def cpu_seconds(server):
    total = 0
    for thread in os.listdir(f"/proc/{server.process.pid}/task"):
        with open(f"/proc/{server.process.pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def test_taking_wakes_nobody(server):
    """Claiming, for one, adds nothing that a reader could wait for: many readers cost as good as nothing."""
    client = server.client()
    client.xgroup_create("s", "g", mkstream=True)
    add(client, "s", 10)
    client.xreadgroup("g", "c", {"s": ">"})

    def claim():
        before = cpu_seconds(server)
        for _ in range(20):
            pipe = client.pipeline(transaction=False)
            for _ in range(100):
                pipe.xclaim("s", "g", "c", 0, ["1-1"], justid=True)
            pipe.execute()
        return cpu_seconds(server) - before

    alone = claim()
    readers = [server.raw() for _ in range(200)]
    for raw in readers:
        raw.send(encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$"))
    blocked(client, len(readers))
    assert claim() < 10 * alone + 0.1
    client.xadd("s", {"a": 1}, "200-1")
    assert all(b"200-1" in raw.reply() for raw in readers)
    for raw in readers:
        raw.close()


def test_what_is_pending_survives_a_crash(make_server):
    server = make_server(appendfsync="always")
    client, drawn = server.client(), harness.chance()
    client.xgroup_create("s", "g", mkstream=True)
    add(client, "s", 500)
    pending = {}
    for number in range(200):
        way, name = drawn.random(), drawn.choice(["a", "b", "c"])
        if way < 0.4:
            for _, entries in client.xreadgroup("g", name, {"s": ">"}, count=drawn.randrange(1, 8)):
                pending.update((identity, name) for identity, _ in entries)
        elif way < 0.7 and pending:
            chosen = drawn.sample(sorted(pending), min(len(pending), drawn.randrange(1, 5)))
            assert client.xack("s", "g", *chosen) == len(chosen)
            for identity in chosen:
                del pending[identity]
        elif way < 0.9 and pending:
            chosen = drawn.choice(sorted(pending))
            client.xclaim("s", "g", name, 0, [chosen], justid=True)
            pending[chosen] = name
        elif way < 0.93:
            count = sum(owner == name for owner in pending.values())
            assert client.xgroup_delconsumer("s", "g", name) == count
            pending = {identity: owner for identity, owner in pending.items() if owner != name}
    for _ in range(2):
        listed = server.client().xpending_range("s", "g", "-", "+", 1000)
        assert {p["message_id"]: p["consumer"].decode() for p in listed} == pending
        for name in "abc":
            own = server.client().xpending_range("s", "g", "-", "+", 1000, consumername=name)
            assert [p["message_id"] for p in own] == [
                p["message_id"] for p in listed if p["consumer"].decode() == name]
        server.kill9()
        server.start()


def test_names_of_any_length(server):
    """Names that share their first bytes, up to those that are too long for a key of the tree."""
    client = server.client()
    names = [b"n" * size + tail for size in (0, 1, 38, 39, 40, 502, 503, 504, 5000) for tail in (b"a", b"", b"b\0")]
    names = sorted(set(names) - {b""})
    add(client, "s", 10)
    for name in reversed(names):
        assert client.xgroup_create("s", name, id="0")
        with pytest.raises(redis.ResponseError, match="BUSYGROUP"):
            client.xgroup_create("s", name)
    assert [group["name"] for group in client.xinfo_groups("s")] == names
    for name in names:
        assert client.xgroup_createconsumer("s", names[3], name) == 1
        assert client.xgroup_createconsumer("s", names[3], name) == 0
    assert [consumer["name"] for consumer in client.xinfo_consumers("s", names[3])] == names
    for name in names:
        client.xreadgroup(names[3], name, {"s": ">"}, count=1)
    listed = client.xpending_range("s", names[3], "-", "+", 100)
    assert [pending["consumer"] for pending in listed] == names[:len(listed)] and len(listed) == 10
    for name in names[::2]:
        assert client.xgroup_destroy("s", name) == 1
    assert [group["name"] for group in client.xinfo_groups("s")] == names[1::2]


def test_what_a_destroyed_group_leaves_goes(server):
    """With the commands on other groups of the stream."""
    client = server.client()
    add(client, "s", 3000)
    used = client.memory_usage("s")
    client.xgroup_create("s", "g", id="0")
    client.xreadgroup("g", "c", {"s": ">"})
    full = client.memory_usage("s")
    assert full > 1.5 * used
    client.xgroup_destroy("s", "g")
    for _ in range(150):
        client.xgroup_create("s", "h", id="0")
        client.xgroup_destroy("s", "h")
    assert client.memory_usage("s") < used + (full - used) / 10


@pytest.mark.slow
def test_many_pending_entries_in_a_small_cache(make_server):
    """XREADGROUP and XACK take as many pages however many entries are pending."""
    server = make_server(maxmemory="64mb", journal_size="8mb")
    client, count = server.client(), 200_000
    client.xgroup_create("s", "g", mkstream=True)
    for start in range(1, count + 1, 1000):
        add(client, "s", 1000, start)
        client.xreadgroup("g", "c%d" % (start // 1000 % 7), {"s": ">"}, count=1000)
    assert client.xpending("s", "g")["pending"] == count
    assert client.xinfo_groups("s")[0]["lag"] == 0
    drawn, acknowledged = harness.chance(), set()
    before = client.info("vellum")["pages_read"]
    for i in range(200):
        add(client, "s", 1, count + 1 + i)
        assert len(client.xreadgroup("g", "c", {"s": ">"})[0][1]) == 1
        identity = drawn.randrange(1, count)
        if identity not in acknowledged:
            assert client.xack("s", "g", f"{identity}-1") == 1
        acknowledged.add(identity)
    read = client.info("vellum")["pages_read"] - before
    assert read < 200 * 16, f"{read} pages"
    assert client.xpending("s", "g")["pending"] == count + 200 - len(acknowledged)
    assert client.xgroup_delconsumer("s", "g", "c3") > 20_000
    assert server.peak_memory() < 64 * MB * 1.05
    assert client.xgroup_destroy("s", "g") == 1
    assert client.xinfo_groups("s") == []
    client.xgroup_create("s", "g", id="0")
    assert client.xpending("s", "g")["pending"] == 0
    for i in range(100):
        assert client.xreadgroup("g", "c", {"s": ">"}, count=1)[0][1][0][0] == b"%d-1" % (i + 1)
    assert client.xpending("s", "g")["pending"] == 100
