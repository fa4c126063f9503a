"""Keys of any length: what every command does with them, over restarts, and that they go."""

import threading
import time

import pytest
import redis

LENGTHS = [2048, 2049, 5000, 100_000, 1_000_000]
MB = 1 << 20


def name(length, what=b""):
    """Keys of one length and another `what` differ at their very end."""
    return b"long:" + b"k" * (length - len(what) - 5) + what


@pytest.fixture(params=LENGTHS)
def length(request):
    return request.param


@pytest.mark.shared
def test_every_type(server, length):
    client = server.client()
    text, hashed, listed, ordered, plain, big = (name(length, b":%d" % i) for i in range(6))
    assert client.set(text, "v") and client.get(text) == b"v"
    assert client.get(name(length, b":x")) is None
    assert client.append(text, "w" * 300_000) == 300_001 and client.getrange(text, 0, 2) == b"vww"
    assert client.hset(hashed, mapping={f"f{i}": "x" * 40 for i in range(150)}) == 150
    assert client.rpush(listed, *range(1000)) == 1000 and client.lindex(listed, -1) == b"999"
    assert client.zadd(ordered, {str(i): i for i in range(200)}) == 200
    assert client.sadd(plain, 1, 2, 3) == 3 and client.sinterstore(plain, [plain, plain]) == 3
    assert client.set(big, "y" * 100_000)
    types = [client.type(key) for key in (text, hashed, listed, ordered, plain, big)]
    assert types == [b"string", b"hash", b"list", b"zset", b"set", b"string"]
    assert client.exists(text, hashed, listed, ordered, plain, big, name(length)) == 6
    assert client.mget(text, big)[1] == b"y" * 100_000
    assert client.hget(hashed, "f149") == b"x" * 40 and client.zrank(ordered, "7") == 7
    assert client.object("encoding", plain) == b"intset" and client.memory_usage(big) > 100_000
    assert client.delete(text, hashed, listed, ordered) == 4 and client.unlink(plain, big) == 2
    assert client.dbsize() == 0


@pytest.mark.shared
def test_keys_as_such(server, length):
    client = server.client()
    first, second, third = (name(length, b":%d" % i) for i in range(3))
    client.set(first, "v")
    assert client.rename(first, second) and client.get(second) == b"v" and not client.exists(first)
    assert client.rename(second, "short") and client.rename("short", first)
    assert client.copy(first, second) and not client.renamenx(first, second)
    assert client.restore(third, 0, client.dump(first)) and client.get(third) == b"v"
    assert client.move(third, 1) and not client.exists(third)
    assert server.client(db=1).keys() == [third]
    assert client.expire(second, 1000) and 990 < client.ttl(second) <= 1000
    assert client.persist(second) and client.ttl(second) == -1
    client.mset({f"key{i}": i for i in range(50)})
    assert {first, second} < set(client.keys()) and len(client.keys()) == 52
    assert sorted(client.keys("long:k*")) == [first, second]
    assert sorted(client.scan_iter(count=7, match=b"long:*")) == [first, second]
    client.delete(*client.keys("key*"))
    assert {client.randomkey() for _ in range(60)} == {first, second}
    client.swapdb(0, 2)
    assert client.dbsize() == 0 and sorted(server.client(db=2).keys()) == [first, second]
    client.flushall()
    assert client.keys() == []


@pytest.mark.shared
def test_sort_by_long_keys(server):
    client = server.client()
    weights = name(70_000, b":*")
    client.rpush("list", "a", "b", "c")
    client.mset({weights.replace(b"*", b"%d" % ord(e)): 0 for e in "abc"})
    client.mset({weights.replace(b"*", e): w for e, w in ((b"a", 3), (b"b", 1), (b"c", 2))})
    assert client.sort("list", by=weights, get=["#", weights]) == [
        b"b", b"1", b"c", b"2", b"a", b"3"]


@pytest.mark.shared
def test_transactions_and_scripts(server, length):
    client, other = server.client(), server.client()
    key = name(length, b":t")
    with client.pipeline() as pipe:
        pipe.watch(key)
        other.set(key, "theirs")
        pipe.multi()
        pipe.set(key, "mine")
        with pytest.raises(redis.WatchError):
            pipe.execute()
    with client.pipeline() as pipe:
        pipe.watch(key)
        pipe.multi()
        pipe.append(key, "!").keys("*").flushdb().keys("*").set(key, 1).incr(key).keys("*")
        assert pipe.execute() == [7, [key], True, [], True, 2, [key]]
    assert client.eval("return redis.call('incr', KEYS[1])", 1, key) == 3
    assert client.eval("return redis.call('keys', '*')[1]", 0) == key
    assert client.eval("local k = string.rep('u', 70000) redis.call('set', k, ARGV[1]) "
                       "return #redis.call('keys', 'u*')[1]", 0, "x") == 70000


@pytest.mark.shared
def test_blocking_notifications_and_monitor(server, length):
    client = server.client()
    key, got = name(length, b":b"), []
    waiter = threading.Thread(target=lambda: got.append(server.client().blpop(key, 20)))
    waiter.start()
    client.config_set("notify-keyspace-events", "KEA")
    listener = server.client().pubsub()
    listener.psubscribe("__key*__:*")
    assert listener.get_message(timeout=10)["type"] == "psubscribe"
    while client.info("clients")["blocked_clients"] == 0:
        time.sleep(0.01)
    with server.client().monitor() as monitor:
        client.rpush(key, "v")
        lines = [monitor.next_command()["command"]]
        if lines[0].startswith("BLPOP"):  # told only now
            lines.append(monitor.next_command()["command"])
        assert lines[-1] == f"RPUSH {key.decode()} v"
    waiter.join()
    assert got == [(key, b"v")]
    told = {(m["channel"], m["data"]) for m in (listener.get_message(timeout=10) for _ in range(6))}
    events = [b"rpush", b"lpop", b"del"]  # with several workers not in this order
    assert told == ({(b"__keyspace@0__:" + key, event) for event in events} |
                    {(b"__keyevent@0__:" + event, key) for event in events})
    client.config_set("notify-keyspace-events", "Ex")
    listener.reset()
    listener.psubscribe("__keyevent@0__:expired")
    assert listener.get_message(timeout=10)["type"] == "psubscribe"
    client.set(key, "v", px=30)
    assert listener.get_message(timeout=20)["data"] == key
    listener.close()
    client.config_set("notify-keyspace-events", "")
    assert client.keys() == []


@pytest.mark.vellum
def test_they_outlive_the_server(make_server):
    server = make_server(appendfsync="always", enable_debug_command="yes")
    keys = {name(length, b":%d" % i): b"%d" % i for i, length in enumerate(LENGTHS * 2)}
    keys[name(10 * MB)] = b"long"

    def as_they_were():
        client = server.client()
        assert sorted(client.keys()) == sorted(keys)
        assert client.mget(keys) == list(keys.values())
        return client

    server.client().mset(keys)
    server.kill9()
    server.start()
    client = as_they_were()
    client.execute_command("DEBUG", "RELOAD")
    as_they_were()
    server.restart()
    as_they_were()
    server.stop()
    status, said = server.check_data()
    assert status == 0, said
    server.start()


@pytest.mark.vellum
def test_eviction_tells_their_names(make_server):
    server = make_server(maxstore=40 * MB, journal_size=8 * MB, partitions=2, maxmemory=64 * MB,
                         maxmemory_policy="allkeys-random", notify_keyspace_events="Ee")
    client = server.client()
    listener = server.client().pubsub()
    listener.psubscribe("__keyevent@0__:evicted")
    assert listener.get_message(timeout=10)["type"] == "psubscribe"
    count = 500
    for i in range(count):
        client.set(name(100_000, b":%d" % i), "v")
    evicted = client.info("stats")["evicted_keys"]
    assert evicted > 100 and client.dbsize() + evicted == count
    assert len(client.keys()) == client.dbsize()
    told = listener.get_message(timeout=10)["data"]
    assert len(told) == 100_000 and told.startswith(b"long:k") and not client.exists(told)


@pytest.mark.slow
@pytest.mark.vellum
def test_beyond_what_a_value_may_be(make_server):
    server = make_server(proto_max_bulk_len="1gb", client_query_buffer_limit="2gb",
                         maxmemory="3gb")
    key = b"k" * (513 * MB)
    with pytest.raises(redis.ResponseError, match="exceeds maximum allowed size"):
        server.client().set(key, "v")
    assert server.client().get(key) is None
