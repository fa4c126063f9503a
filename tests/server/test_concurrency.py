"""Many clients at once, on keys all over the partitions: what each of them sees must be one of the
states that whole commands leave behind."""

import random
import threading
import time

import pytest

from harness import encode

pytestmark = pytest.mark.shared

SECONDS = 1.5
LONGEST_S = 30


def at_once(*jobs, until=lambda: True):
    """Runs jobs(stop) side by side for SECONDS, and on a slow machine until enough has happened, or
    LONGEST_S; any exception of theirs is the test's."""
    stop, errors = threading.Event(), []

    def run(job):
        try:
            job(stop)
        except BaseException as error:  # to be raised in the test's own thread
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    stop.wait(SECONDS)
    limit = time.monotonic() + LONGEST_S
    while not until() and time.monotonic() < limit and not stop.wait(0.1):
        pass
    stop.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_mget_sees_one_msets_values(server):
    keys = [f"k:{i}" for i in range(10)]
    server.client().mset({key: b"0:0" for key in keys})
    seen = []

    def writer(name):
        def job(stop):
            chance = random.Random(name)
            with server.raw() as raw:
                number = 0
                while not stop.is_set():
                    requests = []
                    for _ in range(4):
                        number += 1
                        order = chance.sample(keys, len(keys))
                        requests.append(encode("MSET", *[
                            w for key in order for w in (key, f"{name}:{number}")]))
                    raw.send(b"".join(requests))
                    for _ in requests:
                        assert raw.reply() == b"+OK\r\n"
        return job

    def reader(name):
        def job(stop):
            chance = random.Random(name)
            client = server.client()
            newest = {}
            while not stop.is_set():
                values = client.mget(chance.sample(keys, len(keys)))
                assert len(set(values)) == 1, values
                writer_name, number = values[0].split(b":")
                assert int(number) >= newest.get(writer_name, 0), "an older value after a newer one"
                newest[writer_name] = int(number)
                seen.append(values[0])
        return job

    at_once(writer(1), writer(2), writer(3), reader(4), reader(5),
            until=lambda: len(set(seen)) > 10)
    assert len(set(seen)) > 10


def test_msetnx_is_won_by_one(server):
    """Every round the same keys; exactly one of the clients sets them, all of them."""
    rounds, clients = 60, 4
    wins = [[] for _ in range(rounds)]
    barrier = threading.Barrier(clients)

    def job(name):
        def run(_stop):
            client = server.client()
            for number in range(rounds):
                barrier.wait(60)
                if client.msetnx({f"r{number}:{i}": name for i in range(6)}):
                    wins[number].append(name)
        return run

    at_once(*[job(n) for n in range(clients)])
    client = server.client()
    for number, winners in enumerate(wins):
        assert len(winners) == 1
        assert client.mget([f"r{number}:{i}" for i in range(6)]) == [b"%d" % winners[0]] * 6


def test_renames_lose_and_double_nothing(server):
    """Tokens move between places by RENAMENX; one MGET always sees each token exactly once."""
    places = [f"p:{i}" for i in range(16)]
    tokens = [b"token%d" % i for i in range(6)]
    client = server.client()
    for place, token in zip(places, tokens):
        client.set(place, token)
    moved = []

    def mover(name):
        def job(stop):
            chance = random.Random(name)
            with server.raw() as raw:
                while not stop.is_set():
                    reply = raw.call("RENAMENX", *chance.sample(places, 2))
                    assert reply in (b":1\r\n", b":0\r\n", b"-ERR no such key\r\n"), reply
                    moved.append(reply == b":1\r\n")
        return job

    def watcher(stop):
        own = server.client()
        while not stop.is_set():
            values = [v for v in own.mget(places) if v is not None]
            assert sorted(values) == tokens

    at_once(mover(1), mover(2), mover(3), watcher, watcher, until=lambda: sum(moved) > 20)
    assert sum(moved) > 20


TOKENS = [f"token{i}" for i in range(8)]
# By type: what fills it, asks for a token, takes one out, puts one in, and counts.
OF_TYPES = {
    "list": ("RPUSH l {}", "LPOS l {} RANK -1", "LREM l -1 {}", "RPUSH l {}", "LLEN l"),
    "set": ("SADD s {}", "SISMEMBER s {}", "SREM s {}", "SADD s {}", "SCARD s"),
    "hash": ("HSET h {} x", "HEXISTS h {}", "HDEL h {}", "HSET h {} x", "HLEN h"),
    "zset": ("ZADD z 7 {}", "ZSCORE z {}", "ZREM z {}", "ZADD z 3 {}", "ZCARD z"),
}
MOVE_BY_SCRIPT = """
local function run(text) local words = {} for word in text:gmatch('%S+') do words[#words + 1] = word end
    return redis.call(unpack(words)) end
if run(ARGV[1]) == 0 then return 0 end
return run(ARGV[2]) and 1
"""


def move_by_watch(raw, take, put):
    """What was read of a token counts only if no other client was faster."""
    raw.send(b"".join(encode(*words) for words in (
        ("WATCH", take.split()[1], put.split()[1]), ("EVAL", "return 1", "0"))))
    raw.reply(), raw.reply()
    token = take.split()[-1]
    asks = next(forms[1] for forms in OF_TYPES.values() if forms[2].split()[0] == take.split()[0])
    if raw.call(*asks.format(token).split()) in (b":0\r\n", b"$-1\r\n"):
        return b":0\r\n"
    raw.send(b"".join(encode(*words) for words in (
        ("MULTI",), take.split(), put.split(), ("EXEC",))))
    return [raw.reply() for _ in range(4)][3]


@pytest.mark.parametrize("size", [10, 2000], ids=["packed", "trees"])
def test_tokens_go_from_type_to_type(server, size):
    """By scripts and by optimistic transactions; every reader finds each token in exactly one place."""
    client = server.client()
    for fill, *_ in OF_TYPES.values():
        pipe = client.pipeline(transaction=False)
        for i in range(size):
            pipe.execute_command(*fill.format(f"filler{i}").split())
        pipe.execute()
    client.rpush("l", *TOKENS)
    moved = []

    def mover(name):
        def job(stop):
            chance = random.Random(name)
            with server.raw() as raw:
                while not stop.is_set():
                    token, (source, target) = chance.choice(TOKENS), chance.sample(list(OF_TYPES), 2)
                    take, put = (OF_TYPES[source][2].format(token), OF_TYPES[target][3].format(token))
                    if chance.random() < 0.5:
                        reply = raw.call("EVAL", MOVE_BY_SCRIPT, 2, take.split()[1], put.split()[1],
                                         take, put)
                    else:
                        reply = move_by_watch(raw, take, put)
                    assert reply[:1] in b":*", reply
                    moved.append(reply == b":1\r\n" or reply.startswith(b"*2"))
        return job

    def watcher(stop):
        chance = random.Random(size)
        with server.raw() as raw:
            while not stop.is_set():
                token = chance.choice(TOKENS)
                asks = [forms[1].format(token) for forms in OF_TYPES.values()]
                asks += [forms[4] for forms in OF_TYPES.values()]
                raw.send(encode("MULTI") + b"".join(encode(*ask.split()) for ask in asks) +
                         encode("EXEC"))
                lines = [raw.reply() for _ in range(10)][9].split(b"\r\n")[1:-1]
                there = [line for line in lines if line[:1] in b":$"]
                assert sum(line not in (b":0", b"$-1") for line in there[:4]) == 1, (token, lines)
                assert sum(int(line[1:]) for line in there[4:]) == 4 * size + len(TOKENS), lines

    at_once(mover(1), mover(2), mover(3), watcher, watcher, until=lambda: sum(moved) > 20)
    assert sum(moved) > 20


def test_rename_over_takes_the_place(server):
    """RENAME onto a key replaces it whole: its value and its expiry, at once."""
    client = server.client()

    def writer(stop):
        own = server.client()
        number = 0
        while not stop.is_set():
            number += 1
            own.set("new", number, ex=1000)
            own.rename("new", "current")

    def watcher(stop):
        own = server.client()
        last = 0
        while not stop.is_set():
            value = own.get("current")
            if value is not None:
                assert int(value) >= last
                last = int(value)
                assert own.ttl("current") > 900

    at_once(writer, watcher)
    assert client.exists("current") == 1


def test_increments_are_counted_once(server):
    each, clients = 400, 6
    replies = [[] for _ in range(clients)]

    def job(name):
        def run(_stop):
            with server.raw() as raw:
                for number in range(each):
                    raw.send(encode("INCR", "shared") + encode("INCRBY", f"own:{name}", 2))
                    replies[name].append(int(raw.reply()[1:-2]))
                    assert raw.reply() == b":%d\r\n" % (2 * number + 2)
        return run

    at_once(*[job(n) for n in range(clients)])
    assert sorted(n for some in replies for n in some) == list(range(1, each * clients + 1))


def test_a_pipeline_sees_its_own_writes(server):
    """Each connection's commands take effect in their order, whatever the others do."""
    def job(name):
        def run(stop):
            with server.raw() as raw:
                number = 0
                while not stop.is_set():
                    sent, expected = [], []
                    for _ in range(50):
                        number += 1
                        key, value = f"{name}:{number % 7}", b"%d" % number
                        sent += [encode("SET", key, value), encode("SET", "common", value),
                                 encode("GET", key), encode("DEL", key), encode("EXISTS", key)]
                        expected += [b"+OK\r\n", b"+OK\r\n",
                                     b"$%d\r\n%s\r\n" % (len(value), value), b":1\r\n", b":0\r\n"]
                    raw.send(b"".join(sent))
                    assert [raw.reply() for _ in expected] == expected
        return run

    at_once(job(1), job(2), job(3))


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_scan_shows_all_that_stays(server, count):
    """Keys there from the first call to the last are returned, whatever comes and goes."""
    stays = {b"stays:%d" % i for i in range(1500)}
    client = server.client()
    client.mset({key: "1" for key in stays})
    passes = []

    def churn(name):
        def job(stop):
            chance = random.Random(name)
            with server.raw() as raw:
                while not stop.is_set():
                    for verb in (("SET",), ("DEL",)):
                        keys = [f"goes:{name}:{chance.randrange(4000)}" for _ in range(500)]
                        raw.send(b"".join(encode(*verb, key, *["1"] * (verb[0] == "SET"))
                                          for key in keys))
                        for _ in keys:
                            raw.reply()
        return job

    def scanner(stop):
        own = server.client()
        while not passes or not stop.is_set():
            seen = set(own.scan_iter(count=count))
            assert stays <= seen
            assert all(key in stays or key.startswith(b"goes:") for key in seen)
            passes.append(len(seen))

    at_once(churn(1), churn(2), scanner)


def test_scan_ends_and_filters(server):
    client = server.client()
    client.mset({f"a:{i}": i for i in range(300)} | {f"b:{i}": i for i in range(300)})
    assert {int(k[2:]) for k in client.scan_iter(match="b:*", count=7)} == set(range(300))
    assert len(set(client.scan_iter(_type="string"))) == 600
    assert list(client.scan_iter(_type="hash")) == []
    with server.raw() as raw:
        assert raw.call("SCAN", "x") == raw.call("SCAN", "0x") == b"-ERR invalid cursor\r\n"
        assert raw.call("SSCAN", "nosuch", b"\0\xff") == raw.call("SSCAN", "nosuch", "")
        assert raw.call("SCAN", "0", "COUNT", "0") == b"-ERR syntax error\r\n"


def test_flushall_between_writers(server):
    """After FLUSHALL answered, nothing written before it is seen, on any partition."""
    def writer(name):
        def job(stop):
            own = server.client()
            number = 0
            while not stop.is_set():
                number += 1
                own.mset({f"{name}:{i}": number for i in range(8)})
        return job

    def flusher(stop):
        own = server.client()
        while not stop.is_set():
            own.set("mark", "1")
            own.flushall()
            assert own.get("mark") is None
            time.sleep(0.01)

    def watcher(stop):
        own = server.client()
        while not stop.is_set():
            for name in (1, 2):
                values = set(own.mget([f"{name}:{i}" for i in range(8)]))
                assert len(values) == 1, values

    at_once(writer(1), writer(2), flusher, watcher)


def test_expiry_is_seen_by_all(server):
    """A key that one client saw expire is not seen by another afterwards."""
    client, other = server.client(), server.client()
    for i in range(100):
        client.set(f"k:{i}", "v", px=20 + i)
    alive = set(range(100))
    while alive:
        for i in list(alive):
            if client.get(f"k:{i}") is None:
                assert other.get(f"k:{i}") is None and other.exists(f"k:{i}") == 0
                assert other.pttl(f"k:{i}") == -2
                alive.remove(i)
    assert client.keys("*") == []


def test_expired_keys_leave_by_themselves(server):
    """Nobody touches them again; DBSIZE and INFO show that they went."""
    client = server.client()
    pipe = client.pipeline(transaction=False)
    for i in range(2000):
        pipe.set(f"k:{i}", "v", px=100)
    pipe.execute()
    client.set("stays", "1")
    limit = time.monotonic() + 15
    while client.dbsize() > 1 and time.monotonic() < limit:
        time.sleep(0.1)
    assert client.dbsize() == 1
    assert client.info("stats")["expired_keys"] == 2000


def test_the_selftest_of_hyperloglogs_lets_others_in(server):
    with server.raw() as tester, server.raw() as neighbour:
        tester.send(encode("PFSELFTEST") * 3)
        for _ in range(3):
            assert neighbour.call("PING") == b"+PONG\r\n"
        tester.socket.setblocking(False)
        with pytest.raises(BlockingIOError):  # none of them is done
            tester.socket.recv(1)
        tester.socket.settimeout(60)
        assert [tester.reply() for _ in range(3)] == [b"+OK\r\n"] * 3
