"""Bounds: full files and full memory, eviction by each policy, and how they are reported."""

import hashlib
import os
import re
import selectors
import socket
import threading
import time

import pytest
import redis

from harness import PROXY, encode, eventually, heard

MB = 2**20
SMALL = dict(maxstore=24 * MB, journal_size=8 * MB, partitions=4, maxmemory="100mb")


def fill(client, count, prefix="k", size=900, **options):
    """How many keys were set before the first error, and that error."""
    value = b"x" * size
    for at in range(0, count, 200):
        with client.pipeline(transaction=False) as pipe:
            for i in range(at, min(at + 200, count)):
                pipe.set(f"{prefix}{i}", value, **options)
            for i, reply in enumerate(pipe.execute(raise_on_error=False)):
                if reply is not True:
                    return at + i, str(reply)
    return count, None


@pytest.mark.vellum
def test_a_full_store_refuses_and_recovers(make_server):
    client = make_server(**SMALL).client()
    count, error = fill(client, 40000)
    assert error.startswith("OOM No room left on disk") or "No room left on disk" in error, error
    assert client.info("vellum")["full"] == 1
    assert client.get("k0") == b"x" * 900
    assert client.delete(*[f"k{i}" for i in range(0, count, 2)]) == (count + 1) // 2
    assert fill(client, count // 4, "again")[1] is None
    client.config_set("maxstore", 40 * MB)
    assert fill(client, count // 2, "more")[1] is None
    assert client.info("stats")["evicted_keys"] == 0
    assert client.info("vellum")["store_bytes"] <= 40 * MB


@pytest.mark.vellum
def test_each_policy_makes_room(make_server):
    client = make_server(**SMALL).client()
    assert fill(client, 200, "lasting")[1] is None
    assert fill(client, 40000, ex=10000)[1] is not None
    evicted = 0
    for policy in ("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
                   "allkeys-lru", "allkeys-lfu", "allkeys-random"):
        client.config_set("maxmemory-policy", policy)
        options = {"ex": 10000} if policy.startswith("volatile") else {}
        assert fill(client, 3000, policy, **options)[1] is None
        before, evicted = evicted, client.info("stats")["evicted_keys"]
        assert evicted > before + 500
        if options:
            assert client.exists(*[f"lasting{i}" for i in range(200)]) == 200


@pytest.mark.vellum
def test_a_collection_that_fills_its_part_of_the_store_is_refused_more(make_server):
    """What is evicted elsewhere makes no room for it, and itself it does not evict."""
    client = make_server(**SMALL, maxmemory_policy="allkeys-lru").client()
    with pytest.raises(redis.ResponseError, match="No room left on disk"):
        for i in range(0, 40000, 10000):
            client.hset("h", mapping={f"f{j}": "x" * 900 for j in range(i, i + 10000)})
    assert client.set("k", "v") and client.get("k") == b"v"


@pytest.mark.vellum
def test_an_eviction_is_told(make_server):
    server = make_server(maxmemory_policy="allkeys-lru", notify_keyspace_events="Ee", **SMALL)
    client, watcher = server.client(), server.client()
    listener = server.client().pubsub()
    listener.psubscribe("__keyevent@*__:evicted")
    transaction = watcher.pipeline()
    client.set("watched", "x" * 900)
    transaction.watch("watched")
    time.sleep(0.05)
    assert fill(client, 30000)[1] is None
    assert client.exists("watched") == 0
    transaction.multi()
    transaction.ping()
    with pytest.raises(redis.WatchError):
        transaction.execute()
    told = {message["data"] for message in heard(listener, client)}
    assert b"watched" in told and len(told) > 5000


@pytest.mark.vellum
def test_a_policy_takes_effect_at_once(make_server):
    client = make_server(**SMALL).client()
    assert fill(client, 40000)[1] is not None
    client.config_set("maxmemory-samples", 2**31 - 1)
    client.config_set("maxmemory-policy", "allkeys-lru")
    assert fill(client, 5000, "after")[1] is None
    client.config_set("maxmemory-policy", "volatile-lru")
    assert fill(client, 20000, "refused")[1] is not None


def test_use_is_answered_by_policy(make_server):
    client = make_server(maxmemory_policy="allkeys-lru").client()
    client.set("a", "x")
    client.set("b", "y")
    time.sleep(2.1)
    client.get("b")
    client.ttl("a"), client.exists("a"), client.type("a")
    used, unused = client.object("idletime", "b"), client.object("idletime", "a")
    assert unused >= 2 and used < unused
    with pytest.raises(redis.ResponseError, match="An LFU maxmemory policy is not selected"):
        client.object("freq", "a")
    client.touch("a")
    assert client.object("idletime", "a") < unused
    client.execute_command("RESTORE", "c", 0, client.dump("a"), "IDLETIME", 1000)
    assert 1000 <= client.object("idletime", "c") <= 1010
    client.config_set("maxmemory-policy", "allkeys-lfu")
    client.set("d", "z")
    for _ in range(100):
        client.get("d")
    assert 8 <= client.object("freq", "d") <= 14
    client.execute_command("RESTORE", "e", 0, client.dump("a"), "FREQ", 100)
    assert client.object("freq", "e") in (99, 100)
    with pytest.raises(redis.ResponseError, match="idle time not tracked"):
        client.object("idletime", "d")


# ---- memory ----

BOUND = 80 * MB
ALLOWED = BOUND * 1.05 + 4 * MB  # for code


class Watch:
    """The memory that the server has, a hundred times a second."""

    def __init__(self, pid):
        self.pid, self.seen, self.is_done = pid, [], False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_done:
            with open(f"/proc/{self.pid}/statm") as file:
                self.seen.append(int(file.read().split()[1]) * 4096)
            time.sleep(0.01)

    def end(self):
        self.is_done = True
        self.thread.join()
        return sorted(self.seen)


@pytest.fixture
def watched(make_server):
    if PROXY:
        pytest.skip("takes longer than all else in an emulated machine, and is not about commands")
    server = make_server(maxmemory=BOUND, partitions=4, journal_size=32 * MB)
    watch = Watch(server.process.pid)
    yield server
    seen = watch.end()
    if not server.has_sanitizer():
        usual = seen[len(seen) * 9 // 10]
        assert usual <= ALLOWED, f"{usual / MB:.1f} MB"
        moment = 1.5 if "wait" in server.program else 1.35
        assert seen[-1] <= BOUND * moment, f"{seen[-1] / MB:.1f} MB for a moment"


def connect_many(server, count):
    return [socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)]


def flood(sockets, request, seconds):
    """Sends it over and over, and reads nothing."""
    for sock in sockets:
        sock.setblocking(False)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for sock in sockets:
            try:
                sock.send(request)
            except OSError:  # it is full, or was closed
                pass
            if time.monotonic() > end:
                break


def send_unless_closed(sock, request, reply_bytes=0):
    """All of it, and waits for so many bytes at most."""
    sock.settimeout(30)
    try:
        sock.sendall(request)
        if reply_bytes:
            sock.recv(reply_bytes)
    except OSError:  # it was closed
        pass


@pytest.mark.vellum
def test_memory_is_bounded_while_keys_become_ten_times_as_many(watched):
    client = watched.client()
    assert fill(client, 12000, size=1500)[1] is None
    first = client.info("vellum")
    assert fill(client, 120000, size=1500)[1] is None
    last = client.info("vellum")
    assert last["index_bytes"] > first["index_bytes"]
    assert last["frame_limit_bytes"] < first["frame_limit_bytes"]
    assert client.dbsize() == 120000 and client.get("k77") == b"x" * 1500


@pytest.mark.vellum
def test_memory_is_bounded_while_a_thousand_clients_pipeline(watched):
    """Most of what they ask for is not in memory."""
    client = watched.client()
    assert fill(client, 120000, size=1000)[1] is None
    crowd = connect_many(watched, 1000)
    for j, sock in enumerate(crowd):
        sock.settimeout(30)
        sock.sendall(b"".join(encode("GET", f"k{(i * 7919 + j * 104729) % 120000}")
                              for i in range(50)))
    for sock in crowd:
        left = 50 * len(b"$1000\r\n" + b"x" * 1000 + b"\r\n")
        while left > 0 and (got := sock.recv(min(left, 2**20))):
            left -= len(got)
        assert left == 0
    assert client.info("stats")["evicted_clients"] == 0
    for sock in crowd:
        sock.close()


def read_all(crowd, each):
    """Reads so many bytes from each; returns the connections that were closed before that."""
    left, closed = dict.fromkeys(crowd, each), 0
    with selectors.DefaultSelector() as ready:
        for sock in crowd:
            ready.register(sock, selectors.EVENT_READ)
        while ready.get_map():
            assert (events := ready.select(30))
            for sock in (key.fileobj for key, _ in events):
                got = len(sock.recv(2**18))
                left[sock] -= got
                closed += got == 0
                if got == 0 or left[sock] == 0:
                    ready.unregister(sock)
    return closed


@pytest.mark.vellum
def test_who_reads_is_not_closed_for_what_all_have_asked_for(watched):
    client = watched.client()
    client.set("hot", b"x" * 100000)
    crowd = connect_many(watched, 400)
    for sock in crowd:
        sock.sendall(encode("GET", "hot") * 60)
    assert read_all(crowd, 60 * len(b"$100000\r\n" + b"x" * 100000 + b"\r\n")) == 0
    assert client.info("stats")["evicted_clients"] == 0
    for sock in crowd:
        sock.close()


@pytest.mark.vellum
def test_memory_is_bounded_while_clients_do_not_read(watched):
    client = watched.client()
    assert fill(client, 60000, size=1000)[1] is None
    client.set("hot", b"y" * 3000)
    crowd = connect_many(watched, 1000)
    flood(crowd, encode("GET", "hot") * 200, 1)
    assert client.get("k5") == b"x" * 1000
    for sock in crowd:
        sock.close()


@pytest.mark.vellum
def test_memory_is_bounded_while_long_arguments_arrive(watched):
    client = watched.client()
    assert fill(client, 60000, size=1000)[1] is None
    crowd = connect_many(watched, 100)
    flood(crowd, encode("PING"), 0)
    for sock in crowd:
        send_unless_closed(sock, b"*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$1500000\r\n" + b"z" * 1000000)
    assert eventually(lambda: client.info("stats")["evicted_clients"] > 20)
    assert client.get("k5") == b"x" * 1000
    for sock in crowd:
        sock.close()


@pytest.mark.vellum
def test_memory_is_bounded_while_long_values_have_come_halfway(watched):
    """Values go to the device while they arrive, and clients that stop sending do not hold up others."""
    client = watched.client()
    assert fill(client, 60000, size=1500)[1] is None
    crowd = connect_many(watched, 1000)
    for i, sock in enumerate(crowd):
        sock.settimeout(30)
        sock.sendall(b"*3\r\n$3\r\nSET\r\n$5\r\nu%04d\r\n$200000\r\n" % i + b"z" * 125000)
    assert client.set("quick", b"q" * 400000) and client.strlen("quick") == 400000
    time.sleep(0.5)
    for sock in crowd[::50]:
        sock.sendall(b"y" * 75000 + b"\r\n")
        assert sock.recv(10) == b"+OK\r\n"
    for sock in crowd:
        sock.close()
    assert client.get("u0950") == b"z" * 125000 + b"y" * 75000 and client.exists("u0951") == 0
    assert client.info("stats")["evicted_clients"] == 0


@pytest.mark.vellum
def test_memory_is_bounded_while_clients_watch_many_keys(watched):
    client = watched.client()
    assert fill(client, 40000, size=1500)[1] is None
    crowd = connect_many(watched, 30)
    for i, sock in enumerate(crowd):
        send_unless_closed(sock, encode("WATCH", *[f"w{i}:{j}" for j in range(50000)]), 10)
    assert eventually(lambda: client.info("stats")["evicted_clients"] > 10)
    assert client.get("k5") == b"x" * 1500
    for sock in crowd:
        sock.close()


@pytest.mark.vellum
def test_memory_is_bounded_while_subscribers_do_not_read(watched):
    """One message is many; and more of them come from other workers than this one sends."""
    client = watched.client()
    assert fill(client, 40000, size=1500)[1] is None
    crowd = connect_many(watched, 300)
    for sock in crowd:
        sock.sendall(encode("SUBSCRIBE", "news"))
    assert eventually(lambda: client.pubsub_numsub("news")[0][1] == 300)
    for _ in range(20):
        with client.pipeline(transaction=False) as pipe:
            for _ in range(100):
                pipe.publish("news", b"m" * 1000)
            pipe.execute()
    for sock in crowd:
        sock.close()


@pytest.mark.vellum
@pytest.mark.parametrize("script", [
    "local t = {} for i = 1, 1e8 do t[i] = 'an element ' .. i end",
    "local s = 'x' for i = 1, 40 do s = s .. s end",
    "local t = {} for i = 1, 2e5 do t[i] = i end local s = cjson.encode({t, t, t, t, t, t, t, t, t, t, "
    "t, t, t, t, t, t, t, t, t, t, {t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t}})",
    "for i = 1, 100 do redis.call('KEYS', '*') end",
    "for i = 1, 500000 do redis.call('SET', 'n' .. i, 'v' .. i) end",
], ids=["table", "string", "library", "replies", "writes"])
def test_memory_is_bounded_while_scripts_want_all_of_it(watched, script):
    client = watched.client()
    assert fill(client, 60000, size=10)[1] is None
    with pytest.raises(redis.ResponseError, match="not enough memory|OOM"):
        client.eval(script, 0)
    assert client.eval("return redis.call('GET', KEYS[1])", 1, "k5")


@pytest.mark.vellum
def test_memory_is_bounded_while_a_script_makes_a_long_reply(watched):
    client = watched.client()
    assert fill(client, 100000, size=1000)[1] is None
    script = """local t, s = {}, string.rep('x', 1000)
        for i = 1, tonumber(ARGV[1]) do t[i] = s end
        return t"""
    assert len(client.eval(script, 0, 5000)) == 5000
    with pytest.raises(redis.ResponseError, match="reply is too large"):
        client.eval(script, 0, 50000)
    client.client_no_evict("ON")
    with pytest.raises(redis.ResponseError, match="reply is too large|not enough memory"):
        client.eval(script, 0, 100000)


@pytest.mark.vellum
def test_what_large_commands_took_comes_back(make_server):
    """All that requests keep for the next ones: it must not be what the largest has needed."""
    client = make_server(maxmemory="128mb", maxmemory_clients="100mb").client()
    members = [b"m%d" % i for i in range(100000)]
    pairs = [word for member in members for word in (member, member)]
    for words in (["SADD", "set", *members], ["MSET", *pairs], ["DEL", *members]):
        client.execute_command(*words)
    assert eventually(lambda: client.info("memory")["allocator_allocated"] < 25 * MB), (
        client.info("memory")["allocator_allocated"])


@pytest.mark.vellum
def test_memory_is_bounded_while_a_script_walks_more_than_memory(watched):
    """It has the whole store for itself, and each command leaves nothing behind."""
    client = watched.client()
    assert fill(client, 60000, size=1500)[1] is None
    script = """local sum = 0
        for i = 1, 20000 do sum = sum + redis.call('STRLEN', 'k' .. i * 7919 % 60000) end
        return sum"""
    client.config_resetstat()
    assert client.eval(script, 0) == 20000 * 1500
    stats = client.info("commandstats")
    assert stats["cmdstat_strlen"]["calls"] == 20000
    assert client.info("stats")["keyspace_hits"] == 20000


@pytest.mark.vellum
@pytest.mark.parametrize("form", ["return {number} --{text}", "return {number}, '{text}'"])
def test_texts_of_scripts_are_bounded(make_server, form):
    client = make_server(maxmemory="64mb").client()
    most = (64 << 20) // 8

    def script(number):
        return form.format(number=number, text=f"{number:07}" * 70000)

    def shown():
        return client.info("memory")["used_memory_scripts_eval"]

    for number in range(100):
        assert client.eval(script(number), 0) == number
        assert shown() <= most
    assert shown() > most / 2
    newest, oldest = (hashlib.sha1(script(n).encode()).hexdigest() for n in (99, 0))
    assert client.script_exists(newest, oldest) == [True, False]
    assert client.evalsha(newest, 0) == 99
    loaded = []
    with pytest.raises(redis.ResponseError, match="command not allowed when used memory"):
        for number in range(100, 200):
            loaded.append(client.script_load(script(number)))
            assert shown() <= most
    assert len(loaded) == most // (490000 + 1000)
    assert all(client.script_exists(*loaded))
    assert client.script_load(script(100)) == loaded[0]
    assert client.eval(script(7), 0) == 7
    assert client.evalsha(loaded[0], 0) == 100
    assert client.script_flush()
    assert shown() == 0
    assert client.script_load(script(199))


@pytest.mark.vellum
@pytest.mark.slow
@pytest.mark.parametrize("words", ["'PING', 'x'", "'SELECT', 0"])
def test_commands_without_keys_leave_nothing_behind(make_server, words):
    """Scripts have half of this memory."""
    client = make_server(maxmemory="64mb").client()
    assert client.eval(f"for i = 1, 700000 do redis.call({words}) end return 1", 0) == 1


@pytest.mark.vellum
def test_arguments_that_are_no_keys_cost_little(make_server):
    """Clients have 25 MB."""
    client = make_server(maxmemory="100mb").client()
    assert client.rpush("list", *[b"x"] * 400000) == 400000


@pytest.mark.vellum
def test_names_of_clients_count(make_server):
    server = make_server(maxmemory_clients="8mb")

    def total():
        found = re.search(rb" tot-mem=(\d+) ", raw.call("CLIENT", "INFO"))
        return int(found.group(1))

    with server.raw() as raw:
        before = total()
        assert raw.call("CLIENT", "SETNAME", "n" * 1_000_000) == b"+OK\r\n"
        assert 1_000_000 <= total() - before < 1_300_000
        assert raw.call("CLIENT", "SETINFO", "LIB-NAME", "l" * 500_000) == b"+OK\r\n"
        assert 1_500_000 <= total() - before < 1_800_000
        assert raw.call("CLIENT", "SETNAME", "") == b"+OK\r\n"
        assert 500_000 <= total() - before < 800_000
        assert raw.call("CLIENT", "SETINFO", "LIB-NAME", "") == b"+OK\r\n"
        assert total() - before < 300_000
        many = [server.raw() for _ in range(15)]
        for other in many:
            try:
                other.call("CLIENT", "SETNAME", "m" * 1_000_000)
            except (OSError, EOFError, AssertionError):
                pass
        limit = time.monotonic() + 30
        while time.monotonic() < limit and int(server.client().info()["evicted_clients"]) == 0:
            time.sleep(0.05)
        assert server.client().info()["evicted_clients"] > 0
        for other in many:
            other.close()


def test_maxmemory_clients_closes_those_that_hold_most(make_server):
    server = make_server(maxmemory_clients="3mb")
    client, small = server.client(), server.client()
    client.set("big", b"x" * 900000)
    small.ping()
    large = connect_many(server, 1)[0]
    large.settimeout(5)
    try:
        large.sendall(encode("MULTI") + encode("LPUSH", "l", b"y" * 4000000))
        while large.recv(1000):
            pass
    except ConnectionError:
        pass
    assert small.ping() and eventually(lambda: client.info("stats")["evicted_clients"] == 1)
    client.config_set("maxmemory-clients", "5%")
    assert client.config_get("maxmemory-clients") == {"maxmemory-clients": "5%"}


@pytest.mark.vellum
def test_keys_go_where_index_and_buffers_fill_memory(make_server):
    server = make_server(maxmemory=64 * MB, partitions=4, journal_size=16 * MB)
    client = server.client()
    crowd = []
    client.config_set("maxmemory-clients", "1gb")
    while client.info("vellum")["over_memory"] == 0 and len(crowd) < 200:
        sock = connect_many(server, 1)[0]
        sock.settimeout(10)
        sock.sendall(b"*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$1500000\r\n" + b"z" * 1000000)
        crowd.append(sock)
        time.sleep(0.02)
    with pytest.raises(redis.ResponseError, match="used memory > 'maxmemory'"):
        client.set("a", "1")
    assert client.get("a") is None and client.delete("a") == 0
    transaction = client.pipeline()
    transaction.set("a", "1")
    with pytest.raises(redis.ResponseError):
        transaction.execute()
    for sock in crowd:
        sock.close()
    assert eventually(lambda: client.info("vellum")["over_memory"] == 0)
    assert client.set("a", "1")


@pytest.mark.vellum
def test_memory_is_bounded_while_long_replies_are_made(watched):
    """Of commands behind each other, whose client reads nothing, and then goes. What they take
    while they wait for pages, and for each other, counts."""
    client = watched.client()
    assert fill(client, 60000, size=1000)[1] is None
    for _ in range(20):
        client.rpush("list", *[b"e" * 100] * 5000)
    for request in (encode("LRANGE", "list", 0, -1),
                    encode("MGET", *[f"k{i * 97 % 60000}" for i in range(200)])):
        crowd = connect_many(watched, 25)
        flood(crowd, request * 20, 1)
        for sock in crowd:
            sock.close()
        assert client.get("k5") == b"x" * 1000


@pytest.mark.vellum
def test_a_stop_without_room_for_the_index_is_no_damage(make_server):
    """The next start reads the slabs, which the stop says."""
    server = make_server(**SMALL)
    client = server.client()
    count = 0
    with pytest.raises(redis.ResponseError, match="OOM"):
        while True:
            assert client.set(f"key:{count}", b"x" * 3000)
            count += 1
    client.close()
    server.stop()
    assert "No index checkpoint was written: there is no room for it" in server.said()
    index = os.path.join(server.data, "index")
    assert os.path.getsize(index) == 0
    for length in (0, 8192):  # or there was room for some of it, and none of it was written
        os.truncate(index, length)
        status, lines = server.check_data()
        assert status == 0 and f"{count} items" in lines and "no index checkpoint" in lines, lines
    server.start()
    assert server.client().dbsize() == count


NAMED_OFTEN = {
    "MGET": ["MGET"] + ["key"] * 200_000,
    "MGET of long values": ["MGET"] + ["long"] * 30_000,
    "HMGET": ["HMGET", "hash", *["field"] * 200_000],
    "SORT": ["SORT", "list", "BY", "nosort"] + ["GET", "ke*"] * 200_000,
    "in a transaction": ["MGET"] + ["key"] * 50_000,
}


@pytest.mark.vellum
@pytest.mark.parametrize("script", [
    "local t = {} for i = 1, 63 do t[i] = 'long' end return #redis.call('mget', unpack(t))",
    "local t = {} for i = 1, 63 do t[i] = 'field' end return #redis.call('hmget', 'hash', unpack(t))",
    "return #redis.call('keys', '*')",
], ids=["MGET", "HMGET", "KEYS"])
def test_one_value_that_a_script_reads_often(make_server, request, script):
    server = make_server(maxmemory="64mb", journal_size="16mb")
    client = server.client()
    client.set("long", b"v" * 7 * MB)
    client.hset("hash", "field", b"v" * 7 * MB)
    if "KEYS" in request.node.name:
        for at in range(0, 3000, 50):
            client.mset({f"{i}" + "k" * 20_000: "" for i in range(at, at + 50)})
    with pytest.raises(redis.ResponseError, match="OOM|not enough memory"):
        client.eval(script, 0)
    assert server.peak_memory() < 67 * MB
    assert client.strlen("long") > 0


@pytest.mark.vellum
@pytest.mark.slow
def test_expired_keys_do_not_pile_up(make_server):
    """All of them in one partition, and at once; nobody asks for them."""
    client = make_server(partitions=1).client()
    when = int(time.time() * 1000) + 10_000
    for at in range(0, 200_000, 2000):
        with client.pipeline(transaction=False) as pipe:
            for i in range(at, at + 2000):
                pipe.set(f"k{i}", "x", pxat=when)
            pipe.execute()
    eventually(lambda: client.dbsize() == 0, 40)


@pytest.mark.vellum
def test_names_are_found_without_their_values(make_server):
    """Together the values are larger than memory, and half of it alone may be loaded."""
    server = make_server(maxmemory="64mb", journal_size="16mb")
    client = server.client()
    for i in range(300):
        client.hset("many", f"f{i}", bytes([i % 256]) * 100_000)
    for i in range(10):
        client.hset("long", f"f{i}", bytes([i]) * 3 * MB)
    client.hset("one", "f0", bytes(7 * MB))
    client.hset("one", "f1", bytes(7 * MB))
    with client.pipeline() as pipe:
        for _ in range(20):
            pipe.hrandfield("one")
        assert set(pipe.execute()) <= {b"f0", b"f1"}
    names = {f"f{i}".encode() for i in range(300)}
    assert set(client.hrandfield("many", 300)) == names == set(client.hkeys("many"))
    for count in (200, -300):
        found = client.hrandfield("many", count)
        assert len(found) == abs(count) and set(found) <= names
    assert client.hscan("long", 0, match="nosuch*")[1] == {}
    assert client.hscan("many", 0, match="x*", count=1000) == (0, {})
    assert client.hscan("long", 0, match="f[37]")[1] == {b"f%d" % i: bytes([i]) * 3 * MB for i in (3, 7)}
    picked = client.hrandfield("many", 100, withvalues=True)
    assert all(value == bytes([int(name[1:]) % 256]) * 100_000
               for name, value in zip(picked[::2], picked[1::2]))


@pytest.mark.vellum
def test_a_transaction_s_replies_count_once(make_server):
    """A third of maxmemory may be replies that are collected."""
    server = make_server(maxmemory="256mb", maxmemory_clients="0")
    with server.raw() as raw:
        raw.call("SET", "key", b"v" * 1500)
        raw.call("MULTI")
        for _ in range(16):
            raw.call("MGET", *["key"] * 2500)
        raw.send(encode("EXEC"))
        assert raw.reply().startswith(b"*16\r\n*2500\r\n$1500\r\n")


@pytest.mark.vellum
def test_a_transaction_s_replies_take_the_place_of_pages(make_server):
    """While it holds all partitions, whose pages fill the memory."""
    server = make_server(maxmemory="64mb", journal_size="8mb", partitions=4)
    client = server.client()
    assert fill(client, 60_000) == (60_000, None)
    client.hset("hash", mapping={f"f{i}": "y" * 100 for i in range(5000)})
    for at in range(0, 60_000, 1000):
        client.mget(*(f"k{i}" for i in range(at, at + 1000)))
    server.peak_memory(reset=True)
    pipe = client.pipeline()
    for i in range(64):
        pipe.exists(f"k{i}")
    pipe.hrandfield("hash", -50_000, withvalues=True)
    assert len(pipe.execute()[-1]) == 100_000
    assert server.peak_memory() < 64 * MB * 1.05


@pytest.mark.vellum
@pytest.mark.parametrize("words", NAMED_OFTEN.values(), ids=NAMED_OFTEN.keys())
def test_one_value_that_is_named_very_often(make_server, request, words):
    """A short command for a reply of hundreds of megabytes."""
    server = make_server(maxmemory="64mb")
    with server.raw() as raw, server.raw() as other:
        raw.call("SET", "key", b"v" * 1500)
        raw.call("SET", "long", b"v" * 100_000)
        raw.call("HSET", "hash", "field", b"v" * 1500)
        raw.call("RPUSH", "list", "y")
        try:
            if "transaction" in request.node.name:
                raw.call("MULTI")
                raw.call(*words)
                assert b"OOM" in raw.call("EXEC")
            elif words[0] == "SORT":  # in steps, to the disk
                assert raw.call(*words).startswith(b"*200000\r\n$1500\r\n")
            else:
                assert raw.call(*words).startswith(b"-OOM")
        except (ConnectionError, EOFError):
            pass  # closed for its buffers
        assert other.call("MGET", "key", "key").startswith(b"*2\r\n$1500\r\n")
        assert server.peak_memory() < 64 * MB
