"""VELLUM.RANGE: the keys in the order of their bytes, compared with a sorted list of those that KEYS finds,
after commands of all kinds that make and remove keys."""

import random
import threading
import time

import pytest
import redis

import harness
from harness import chance, eventually

pytestmark = pytest.mark.vellum

TREE_KEY = 48 if harness.IS_TINY else 512
WHOLE = TREE_KEY - 8  # longer names are in order by so many bytes alone
LONG = 64 if harness.IS_TINY else 2048  # longer keys are not in their items


@pytest.fixture
def server(make_server):
    return make_server(ordered_keys="yes", partitions=4)


def bound(key, excluded=False):
    return (b"(" if excluded else b"[") + key


def keys_in(client, *args):
    return client.execute_command("VELLUM.RANGE", *args)


def ordered(client):
    return sorted(client.keys("*"))


def same_order(found, expected):
    """Names that agree in the bytes that are in order may change places."""
    assert sorted(found) == sorted(expected)
    assert [key[:WHOLE] for key in found] == [key[:WHOLE] for key in expected]


def expected_range(keys, low, high, reverse=False, offset=0, count=-1):
    def above(key):
        return low == b"-" or (key > low[1:] if low[:1] == b"(" else key >= low[1:])

    def below(key):
        return high == b"+" or (key < high[1:] if high[:1] == b"(" else key <= high[1:])
    found = [key for key in keys if above(key) and below(key)]
    if reverse:
        found.reverse()
    found = found[offset:]
    return found if count < 0 else found[:count]


# ---- the command ----

def test_syntax(client):
    for args, error in [
        (("a", "+"), "min or max not valid string range item"),
        (("-", ""), "min or max not valid string range item"),
        (("-x", "+"), "min or max not valid string range item"),
        (("-", "+", "LIMIT", "1"), "syntax error"),
        (("-", "+", "LIMIT", "x", "1"), "value is not an integer or out of range"),
        (("-", "+", "BYLEX"), "syntax error"),
        (("-",), "wrong number of arguments for 'vellum.range' command"),
    ]:
        with pytest.raises(redis.ResponseError, match=error):
            keys_in(client, *args)


def test_bounds(client):
    for key in "a", "b", "ba", "c", "d":
        client.set(key, key.upper())
    assert keys_in(client, "-", "+") == [b"a", b"b", b"ba", b"c", b"d"]
    assert keys_in(client, "[b", "(c") == [b"b", b"ba"]
    assert keys_in(client, "(b", "[c") == [b"ba", b"c"]
    assert keys_in(client, "+", "-", "REV") == [b"d", b"c", b"ba", b"b", b"a"]
    assert keys_in(client, "(c", "[a", "REV") == [b"ba", b"b", b"a"]
    assert keys_in(client, "+", "-") == []
    assert keys_in(client, "-", "+", "REV") == []
    assert keys_in(client, "[c", "[b") == []
    assert keys_in(client, "-", "+", "LIMIT", 1, 2) == [b"b", b"ba"]
    assert keys_in(client, "-", "+", "LIMIT", 3, -1) == [b"c", b"d"]
    assert keys_in(client, "-", "+", "LIMIT", -1, 2) == []
    assert keys_in(client, "-", "+", "LIMIT", 0, 0) == []
    assert keys_in(client, "-", "+", "limit", 9, 1, "rev") == []


def test_values(client, server):
    client.set("a", "1")
    client.hset("b", "field", "x")
    client.set("c", "")
    client.set("d", b"x" * 5000)
    client.rpush("e", *range(2000))
    client.set("f", b"y" * 300000)
    client.setrange("g", 1000000, "end")
    flat = keys_in(client, "-", "+", "WITHVALUES")
    assert flat == [b"a", b"1", b"b", None, b"c", b"", b"d", b"x" * 5000, b"e", None, b"f",
                    b"y" * 300000, b"g", b"\0" * 1000000 + b"end"]
    with server.raw() as raw:
        raw.call("HELLO", "3")
        reply = raw.call("VELLUM.RANGE", "[a", "[b", "WITHVALUES")
        assert reply == b"*2\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$1\r\nb\r\n_\r\n"


def test_not_ordered(make_server):
    plain = make_server()
    with pytest.raises(redis.ResponseError, match="keeps no order"):
        keys_in(plain.client(), "-", "+")


def test_not_in_transactions_and_scripts(client):
    with pytest.raises(redis.ResponseError, match="not allowed from script"):
        client.eval("return redis.call('VELLUM.RANGE', '-', '+')", 0)
    with client.pipeline(transaction=True) as pipe:
        pipe.execute_command("VELLUM.RANGE", "-", "+")
        with pytest.raises(redis.ResponseError, match="not allowed inside a transaction"):
            pipe.execute()


@pytest.mark.parametrize("first, then", [("yes", "no"), ("no", "yes")])
def test_the_directory_keeps_the_setting(make_server, first, then):
    server = make_server(ordered_keys=first)
    server.client().set("a", "1")
    server.stop()
    server.options["ordered_keys"] = then
    with pytest.raises(harness.StartError, match=f"`ordered-keys {first}`"):
        server.start()
    server.options["ordered_keys"] = first
    server.start()
    assert server.client().get("a") == b"1"


def test_expired_keys_are_skipped(client):
    for i in range(100):
        client.set(f"k{i:02}", "x", px=1 if i % 3 == 0 else None)
    time.sleep(0.01)
    assert keys_in(client, "-", "+") == [b"k%02d" % i for i in range(100) if i % 3]
    eventually(lambda: client.dbsize() == 66)
    assert keys_in(client, "-", "+") == ordered(client)


# ---- against KEYS ----

NAMES = [b"", b"a", b"b\0", b"b", b"\xff", b"\xff" * 9] + [b"key:%d" % i for i in range(150)] + \
    [bytes([65 + i % 26]) * WHOLE for i in range(4)] + \
    [bytes([65 + i % 3]) * (WHOLE + 1 + i) for i in range(9)] + \
    [bytes([97 + i]) + b"L" * (LONG + 1 + i) for i in range(3)]


class Chaos:
    """Random commands that make and remove keys in three databases."""

    def __init__(self, server, r):
        self.random = r
        self.clients = [server.client(db=db) for db in range(3)]

    def name(self):
        return self.random.choice(NAMES)

    def step(self):
        client, r = self.random.choice(self.clients), self.random
        a, b = self.name(), self.name()
        choice = r.randrange(22)
        if choice < 5:
            client.set(a, b"v" * r.choice([0, 10, 500, 5000, 200000 if r.random() < 0.1 else 1]))
        elif choice < 8:
            client.delete(a, b)
        elif choice == 8:
            client.mset({self.name(): b"m" for _ in range(r.randrange(1, 20))})
        elif choice == 9 and client.exists(a):
            client.rename(a, b)
        elif choice == 10 and client.exists(a):
            client.copy(a, b, destination_db=r.randrange(3), replace=True)
        elif choice == 11:
            client.move(a, (client.get_connection_kwargs()["db"] + 1) % 3)
        elif choice == 12:
            client.pexpire(a, r.choice([1, 50, 100000]))
        elif choice == 13:
            client.getdel(a) if client.type(a) == b"string" else client.delete(a)
        elif choice == 14:
            client.delete(a)
            client.rpush(a, *range(r.choice([3, 3000])))
        elif choice == 15 and client.exists(a):
            payload = client.dump(a)
            client.restore(b, 0, payload, replace=True)
        elif choice == 16:
            client.swapdb(r.randrange(3), r.randrange(3))
        elif choice == 17 and r.random() < 0.2:
            client.flushdb()
        elif choice == 18 and r.random() < 0.03:
            client.flushall()
        elif choice == 19:
            with client.pipeline(transaction=True) as pipe:
                for _ in range(r.randrange(1, 9)):
                    name = self.name()
                    pipe.set(name, "t") if r.random() < 0.5 else pipe.delete(name)
                    if r.random() < 0.05:
                        pipe.flushdb()
                    if r.random() < 0.1:
                        pipe.swapdb(r.randrange(3), r.randrange(3))
                pipe.execute()
        elif choice == 20:
            client.eval("for i = 1, #KEYS do if i % 2 == 0 then redis.call('set', KEYS[i], 'e') "
                        "else redis.call('del', KEYS[i]) end end", 4, *[self.name() for _ in range(4)])
        else:
            client.sadd(a, *range(3)) if client.type(a) in (b"none", b"set") else client.unlink(a)

    def run(self, steps):
        for _ in range(steps):
            try:
                self.step()
            except redis.ResponseError as error:
                if not str(error).startswith(("WRONGTYPE", "no such key", "ERR source and dest")) \
                        and "same" not in str(error):
                    raise

    def compare(self):
        for client in self.clients:
            keys = ordered(client)
            same_order(keys_in(client, "-", "+"), keys)
            same_order(keys_in(client, "+", "-", "REV"), keys[::-1])
            for _ in range(5):
                self.compare_range(client, keys)

    def compare_range(self, client, keys):
        r = self.random
        low = r.choice([b"-", bound(self.name(), r.random() < 0.5)])
        high = r.choice([b"+", bound(self.name(), r.random() < 0.5)])
        reverse = r.random() < 0.5
        args = [high, low, "REV"] if reverse else [low, high]
        offset, count = (r.randrange(20), r.choice([-1, 1, 10, 100])) if r.random() < 0.5 else (0, -1)
        found = keys_in(client, *args, "LIMIT", offset, count)
        alive = expected_range(keys, low, high, reverse, offset, count)
        assert [key[:WHOLE] for key in found] == [key[:WHOLE] for key in alive], (args, offset, count)


def settle(chaos):
    """No key expires between KEYS and VELLUM.RANGE."""
    for client in chaos.clients:
        for key in client.keys("*"):
            client.persist(key)


def test_random_commands(server):
    r = chance()
    chaos = Chaos(server, r)
    for round_number in range(10):
        chaos.run(120)
        settle(chaos)
        chaos.compare()
        if round_number % 4 == 1:
            server.restart()
        elif round_number % 4 == 3:
            chaos.clients[0].execute_command("WAITAOF", 1, 0, 0)
            server.kill9()
            status, said = server.check_data()
            assert status == 0, said
            server.start()
        if round_number % 2 == 1:
            chaos = Chaos(server, r)
            chaos.compare()
    server.stop()
    status, said = server.check_data()
    assert status == 0, said
    server.start()


def test_many_keys(server, client):
    """Trees of several levels, long replies, and values."""
    r = random.Random(3)
    numbers = list(range(40000))
    r.shuffle(numbers)
    for at in range(0, len(numbers), 1000):
        with client.pipeline(transaction=False) as pipe:
            for number in numbers[at:at + 1000]:
                pipe.set(b"user%08d" % number, b"value of %d" % number)
            pipe.execute()
    assert keys_in(client, "-", "+") == [b"user%08d" % i for i in range(40000)]
    assert keys_in(client, "+", "-", "REV", "LIMIT", 39990, 5) == [b"user%08d" % i for i in range(9, 4, -1)]
    flat = keys_in(client, "[user00010000", "+", "LIMIT", 0, 3000, "WITHVALUES")
    assert flat[0::2] == [b"user%08d" % i for i in range(10000, 13000)]
    assert flat[1::2] == [b"value of %d" % i for i in range(10000, 13000)]
    for at in range(0, 40000, 1000):
        client.delete(*[b"user%08d" % i for i in range(at, at + 1000) if i % 7])
    assert keys_in(client, "-", "+") == [b"user%08d" % i for i in range(0, 40000, 7)]
    server.restart()
    client = server.client()
    assert keys_in(client, "-", "+") == [b"user%08d" % i for i in range(0, 40000, 7)]
    client.flushall()
    assert keys_in(client, "-", "+") == []
    client.set("a", "b")
    assert keys_in(client, "-", "+") == [b"a"]


def test_while_others_write(server):
    """Keys that stay are shown once and in order, whatever comes and goes between them."""
    stay = [b"stay%05d" % i for i in range(2000)]
    client = server.client()
    client.mset({key: b"x" for key in stay})
    stop = threading.Event()

    def write(number):
        writer, r = server.client(), random.Random(number)
        while not stop.is_set():
            key = b"stay%05d.%d" % (r.randrange(2000), r.randrange(3))
            writer.set(key, "y") if r.random() < 0.5 else writer.delete(key)
    threads = [threading.Thread(target=write, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            found = keys_in(client, "-", "+")
            assert found == sorted(found)
            assert [key for key in found if b"." not in key] == stay
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert keys_in(client, "-", "+") == ordered(client)


def test_evicted_keys_leave_the_order(make_server):
    server = make_server(ordered_keys="yes", partitions=2, maxstore="80mb", maxmemory_policy="allkeys-lru",
                         journal_size="8mb")
    client = server.client()
    for at in range(0, 60000, 500):
        client.mset({b"key%07d" % i: b"v" * 1500 for i in range(at, at + 500)})
    assert client.info("stats")["evicted_keys"] > 0
    eventually(lambda: keys_in(client, "-", "+") == ordered(client))


def test_a_key_goes_with_its_last_field(client):
    client.hset("hash", mapping={"a": "1", "b": "2"})
    client.set("other", "1")
    assert client.execute_command("HPEXPIRE", "hash", 20, "FIELDS", 2, "a", "b") == [1, 1]
    eventually(lambda: keys_in(client, "-", "+") == [b"other"])


def test_libraries_are_no_keys(client, server):
    client.execute_command("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('add', function(keys) "
                           "return redis.call('SET', keys[1], 1) end)")
    assert keys_in(client, "-", "+") == []
    client.execute_command("FCALL", "add", 1, "made")
    server.restart()
    client = server.client()
    assert keys_in(client, "-", "+") == [b"made"]
    client.execute_command("FCALL", "add", 1, "again")
    assert keys_in(client, "-", "+") == [b"again", b"made"]
