"""Strings much longer than memory: each command goes through them piece by piece, in the bound of
memory, while others are served."""

import hashlib
import socket
import threading
import time

import pytest
import redis

from harness import PROXY, encode
from test_memory_limits import MB, Watch

BOUND = 64 * MB
LAST_BIT = 2**32 - 16  # of the longest string there can be, or nearly
PIECE = 128 * 1024


def dense(length, seed=1):
    """Not twice the same page, and quickly made."""
    block = bytes((i * i * seed + (i >> 7)) % 251 for i in range(MB))
    return b"".join(i.to_bytes(8, "little") + block[8:] for i in range(length // MB))


class Neighbour:
    """Another client: how long it has waited at most for one of its own commands."""

    def __init__(self, server):
        self.client, self.longest, self.count, self.is_done = server.client(), 0, 0, False
        self.client.set("neighbour", "x")
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_done:
            before = time.monotonic()
            self.client.ping()
            assert self.client.get("neighbour") == b"x"
            self.longest = max(self.longest, time.monotonic() - before)
            self.count += 1

    def end(self):
        self.is_done = True
        self.thread.join()


@pytest.fixture
def small(make_server):
    """A server with little memory; it must keep to that, and serve a neighbour all the time."""
    if PROXY:
        pytest.skip("takes longer than all else in an emulated machine, and is not about commands")
    server = make_server(maxmemory=BOUND, partitions=4, journal_size=32 * MB)
    watch, neighbour = Watch(server.process.pid), Neighbour(server)
    yield server
    neighbour.end()
    seen = watch.end()
    assert neighbour.count > 0 and neighbour.longest < 8, neighbour.longest
    if not server.has_sanitizer():
        usual = seen[len(seen) * 9 // 10]
        assert usual <= BOUND * 1.05 + 4 * MB, f"{usual / MB:.1f} MB"
        moment = 1.5 if "wait" in server.program else 1.35
        assert seen[-1] <= BOUND * moment, f"{seen[-1] / MB:.1f} MB for a moment"


def ones_of(value):
    return int.from_bytes(value, "little").bit_count()


@pytest.mark.vellum
@pytest.mark.slow
def test_bits_of_a_long_string_are_counted_and_found(small):
    client, value = small.client(), dense(80 * MB)
    client.set("d", value)
    client.setbit("sparse", LAST_BIT, 1)
    client.setbit("sparse", 77777777, 1)
    assert client.bitcount("d") == ones_of(value)
    assert client.bitcount("d", 12345, 70 * MB) == ones_of(value[12345:70 * MB + 1])
    bits = client.execute_command("BITCOUNT", "d", 8 * PIECE + 3, -8 * PIECE - 6, "BIT")
    inner = value[PIECE:len(value) - PIECE]
    assert bits == (ones_of(inner) - (inner[0] >> 5).bit_count() - (inner[-1] & 0x1f).bit_count())
    assert client.bitcount("sparse") == 2
    assert client.bitcount("sparse", 77777777 // 8 + 1, -1) == 1
    assert client.bitpos("sparse", 1) == 77777777
    assert client.bitpos("sparse", 1, 77777777 // 8 + 1) == LAST_BIT
    assert client.execute_command("BITPOS", "sparse", 0, 77777777, LAST_BIT, "BIT") == 77777778
    assert client.execute_command("BITPOS", "sparse", 0, 12, LAST_BIT, "BIT") == 12
    assert client.execute_command("BITPOS", "sparse", 1, 0, LAST_BIT - 1, "BIT") == 77777777
    assert client.execute_command("BITPOS", "sparse", 1, 77777778, LAST_BIT - 1, "BIT") == -1
    client.set("ones", b"\xff" * (64 * MB))
    assert client.bitpos("ones", 0) == 64 * MB * 8
    assert client.bitpos("ones", 0, 0, -1) == -1
    client.setbit("ones", 63 * MB * 8 + 5, 0)
    assert client.bitpos("ones", 0) == 63 * MB * 8 + 5


@pytest.mark.vellum
@pytest.mark.slow
def test_bits_are_counted_in_transactions_and_scripts(small):
    client, value = small.client(), dense(64 * MB)
    client.set("d", value)
    client.setbit("sparse", LAST_BIT, 1)
    pipe = client.pipeline()
    pipe.setbit("d", 7, 1)
    pipe.setbit("sparse", 40 * MB * 8, 1)
    pipe.setbit("sparse", 500 * MB * 8 + 1, 1)
    for _ in range(2):
        pipe.bitcount("d")
        pipe.bitcount("sparse")
    pipe.bitpos("sparse", 1)
    pipe.bitpos("sparse", 1, 41 * MB)
    pipe.incr("n")
    ones = ones_of(bytes([value[0] | 1]) + value[1:])
    assert pipe.execute()[3:] == [ones, 3, ones, 3, 40 * MB * 8, 500 * MB * 8 + 1, 1]
    script = """redis.call('SETBIT', KEYS[2], 5, 1)
                return {redis.call('BITCOUNT', KEYS[1]), redis.call('BITCOUNT', KEYS[2]),
                        redis.call('BITPOS', KEYS[2], 1), redis.call('INCR', KEYS[3])}"""
    assert client.eval(script, 3, "d", "sparse", "n") == [ones, 4, 5, 2]
    assert client.eval("return redis.call('BITCOUNT', 'd')", 0) == ones


@pytest.mark.vellum
@pytest.mark.slow
def test_many_clients_count_at_once(small):
    client, value = small.client(), dense(64 * MB)
    client.set("d", value)
    counts = []
    counters = [threading.Thread(target=lambda: counts.append(small.client().bitcount("d")))
                for _ in range(6)]
    for counter in counters:
        counter.start()
    for counter in counters:
        counter.join()
    assert counts == 6 * [ones_of(value)]


def inverted(value):
    return value.translate(bytes(255 - i for i in range(256)))


def combined(operation, *values):
    """As BITOP has it."""
    length = max(map(len, values))
    numbers = [int.from_bytes(value.ljust(length, b"\0"), "little") for value in values]
    result = numbers[0]
    for number in numbers[1:]:
        result = (result & number if operation == "AND" else
                  result | number if operation == "OR" else result ^ number)
    return result.to_bytes(length, "little")


def is_same(client, key, value):
    """Without having the client's library go through it."""
    return client.strlen(key) == len(value) and client.get(key) == value


def stored(client):
    return client.info("vellum")["store_bytes"]


@pytest.mark.vellum
@pytest.mark.slow
def test_long_strings_are_combined(small):
    client = small.client()
    a, b, c = dense(66 * MB), dense(65 * MB, 3), dense(3 * MB, 5) + b"end"
    for key, value in (("a", a), ("b", b), ("c", c)):
        client.set(key, value)
    for operation in ("AND", "OR", "XOR"):
        assert client.bitop(operation, "to", "a", "b", "absent" if operation == "OR" else "c") == len(a)
        expected = combined(operation, a, b) if operation == "OR" else combined(operation, a, b, c)
        assert is_same(client, "to", expected), operation
    assert client.bitop("NOT", "a", "a") == len(a)
    assert is_same(client, "a", inverted(a))
    assert client.bitop("NOT", "c", "c") == len(c)
    assert is_same(client, "c", inverted(c))


@pytest.mark.vellum
@pytest.mark.slow
def test_holes_of_long_strings_are_combined(small):
    client = small.client()
    client.setbit("sparse", LAST_BIT, 1)
    client.setbit("sparse", 12345678, 1)
    client.set("short", b"\xff" * (200 * 1024))
    length, before = LAST_BIT // 8 + 1, stored(client)
    for operation in ("AND", "OR", "XOR"):
        assert client.bitop(operation, "to", "sparse", "short") == length
        assert client.strlen("to") == length
        assert client.bitcount("to") == {"AND": 0, "OR": 200 * 1024 * 8 + 2,
                                         "XOR": 200 * 1024 * 8 + 2}[operation]
    assert client.bitpos("to", 1, 200 * 1024) == 12345678
    assert client.bitop("OR", "sparse", "sparse") == length
    assert client.bitcount("sparse") == 2 and client.getbit("sparse", LAST_BIT) == 1
    assert stored(client) - before < 32 * MB  # holes stay holes
    assert client.bitop("NOT", "to", "sparse") == length
    assert client.bitcount("to") == length * 8 - 2
    assert client.bitpos("to", 0) == 12345678
    client.bitop("XOR", "to", "to", "to")
    assert client.bitpos("to", 1) == -1 and client.strlen("to") == length


@pytest.mark.vellum
@pytest.mark.slow
def test_long_strings_are_combined_in_transactions_and_scripts(small):
    client, value = small.client(), dense(40 * MB)
    client.set("d", value)
    client.setbit("sparse", LAST_BIT, 1)
    pipe = client.pipeline()
    pipe.setrange("d", 100, "changed")
    pipe.bitop("NOT", "to", "d")
    pipe.setrange("to", 200, "again")
    pipe.bitop("XOR", "both", "to", "d")
    pipe.bitop("OR", "copy", "sparse")
    pipe.bitcount("copy")
    value = value[:100] + b"changed" + value[107:]
    to = inverted(value)
    to = to[:200] + b"again" + to[205:]
    replies = pipe.execute()
    assert replies[1] == replies[3] == len(value) and replies[5] == 1
    both = combined("XOR", to, value)
    assert is_same(client, "to", to) and is_same(client, "both", both)
    script = """redis.call('SETBIT', KEYS[1], 3, 1)
                local len = redis.call('BITOP', 'NOT', KEYS[2], KEYS[1])
                return {len, redis.call('BITCOUNT', KEYS[2]), redis.call('INCR', KEYS[3])}"""
    length = LAST_BIT // 8 + 1
    assert client.eval(script, 3, "sparse", "not", "n") == [length, length * 8 - 2, 1]
    assert client.bitpos("not", 0) == 3
    undeclared = "return redis.call('BITOP', 'AND', 'to', 'to', 'sparse')"
    assert client.eval(undeclared, 0) == length and client.bitcount("to") == to[0] >> 4 & 1
    assert client.execute_command("EVAL", "return redis.pcall('BITOP', 'OR', 'l', 'to')", 0) == length


@pytest.mark.vellum
@pytest.mark.slow
def test_a_long_result_that_is_not_wanted_any_more_takes_no_space(make_server):
    """The disk is full while it is made, or the client has gone."""
    server = make_server(maxmemory=BOUND, partitions=4, journal_size=32 * MB, maxstore=160 * MB)
    client, value = server.client(), dense(80 * MB)
    client.setbit("sparse", LAST_BIT, 1)
    for at in range(0, len(value), 2 * MB):
        client.setrange("late", 40 * MB + at, value[at:at + 2 * MB])
    client.set("old", "value")
    for _ in range(3):
        with pytest.raises(redis.ResponseError, match="No room left on disk"):
            client.bitop("NOT", "old", "sparse")
        with pytest.raises(redis.ResponseError, match="No room left on disk"):
            client.bitop("OR", "old", "late")
        assert client.get("old") == b"value"
    assert is_same(client, "late", bytes(40 * MB) + value)
    client.delete("late")
    client.config_set("maxstore", 500 * MB)
    client.set("d", value)
    gone = redis.Redis(port=server.port, socket_timeout=0.05)
    for _ in range(2):
        with pytest.raises(redis.TimeoutError):
            gone.bitop("NOT", "to", "d")
        gone.close()
    client.delete("to")
    assert client.bitop("NOT", "d", "d") == len(value) and is_same(client, "d", inverted(value))


@pytest.mark.vellum
@pytest.mark.slow
def test_long_strings_are_copied(small):
    client, value = small.client(), dense(100 * MB)
    client.set("d", value, px=10**9)
    assert client.copy("d", "copy")
    assert is_same(client, "copy", value) and client.pttl("copy") > 10**8
    assert not client.copy("d", "copy") and client.copy("d", "copy", replace=True)
    assert client.copy("d", "copy", destination_db=3)
    client.setrange("d", 5, "x")
    assert is_same(client, "copy", value)
    client.setbit("sparse", LAST_BIT, 1)
    client.setbit("sparse", 12345678, 1)
    before = stored(client)
    for _ in range(20):
        assert client.copy("sparse", "again", replace=True)
    assert client.bitcount("again") == 2 and client.getbit("again", 12345678) == 1
    assert client.strlen("again") == LAST_BIT // 8 + 1
    assert stored(client) - before < 32 * MB  # holes stay holes
    pipe = client.pipeline()
    pipe.append("d", "more")
    pipe.copy("d", "copy", replace=True)
    pipe.setrange("copy", 7, "other")
    pipe.copy("copy", "third")
    pipe.bitcount("third", 0, 100)
    pipe.execute()
    value = value[:5] + b"x" + value[6:] + b"more"
    other = value[:7] + b"other" + value[12:]
    assert is_same(client, "copy", other) and is_same(client, "third", other)
    script = "return {redis.call('COPY', KEYS[1], KEYS[2]), redis.call('STRLEN', KEYS[2])}"
    assert client.eval(script, 2, "d", "fourth") == [1, len(value)]
    assert is_same(client, "fourth", value) and is_same(client, "d", value)


@pytest.mark.vellum
@pytest.mark.slow
def test_long_ranges_are_read(small):
    client, value = small.client(), dense(80 * MB)
    client.set("d", value)
    client.setbit("sparse", 300 * MB * 8, 1)
    for first, last in ((0, len(value) - 2), (1, len(value) - 1), (PIECE, PIECE + PIECE - 1),
                        (PIECE - 1, 3 * PIECE), (12345, 12345 + 65536), (7, 12 * MB),
                        (5 * PIECE + 4097, 70 * MB + 5)):
        assert client.getrange("d", first, last) == value[first:last + 1], (first, last)
    assert client.getrange("sparse", 299 * MB, 300 * MB) == bytes(MB) + b"\x80"
    pipe = client.pipeline(transaction=False)
    for _ in range(3):
        pipe.getrange("d", 10, 10 + 20 * MB)
        pipe.incr("n")
    assert pipe.execute()[:2] == [value[10:10 + 20 * MB + 1], 1]


@pytest.mark.vellum
@pytest.mark.slow
def test_what_a_transaction_has_set_it_reads(small):
    client, value, other = small.client(), dense(70 * MB), dense(5 * MB, 3)
    client.set("old", value)
    pipe = client.pipeline()
    pipe.get("old")
    pipe.set("k", other)
    pipe.get("k")
    pipe.expire("old", 1000)
    pipe.getrange("old", 3, 40 * MB)
    pipe.rename("k", "moved")
    pipe.getset("moved", "short")
    pipe.set("again", other)
    pipe.getdel("again")
    pipe.set("old", "y")
    pipe.get("old")
    replies = pipe.execute()
    assert replies[0] == value and replies[2] == other and replies[4] == value[3:40 * MB + 1]
    assert replies[6] == other and replies[8] == other and replies[10] == b"y"
    assert client.get("moved") == b"short" and client.get("again") is None
    client.set("d", value)
    assert is_same(client, "d", value)


@pytest.mark.vellum
def test_what_a_transaction_has_set_and_deleted_it_still_sends(make_server):
    """However late that is read, and whatever else is written meanwhile."""
    server = make_server(partitions=4, journal_size=32 * MB)
    client, value = server.client(), dense(12 * MB)
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        raw.connect(("127.0.0.1", server.port))
        raw.sendall(b"".join(encode(*words) for words in (
            ("MULTI",), ("SET", "k", value), ("GET", "k"), ("DEL", "k"), ("SET", "done", "x"),
            ("EXEC",))))
        while not client.exists("done"):
            time.sleep(0.01)
        for i in range(4):
            client.set(f"other{i}", bytes([i + 1]) * (12 * MB))
        head = b"+OK\r\n" + 4 * b"+QUEUED\r\n" + b"*4\r\n+OK\r\n$%d\r\n" % len(value)
        expected = head + value + b"\r\n:1\r\n+OK\r\n"
        with raw.makefile("rb") as file:
            assert file.read(len(expected)) == expected


@pytest.mark.vellum
@pytest.mark.slow
def test_scripts_read_no_more_of_long_strings_than_memory_has_room_for(small):
    client, value = small.client(), dense(80 * MB)
    client.set("d", value)
    client.setbit("sparse", LAST_BIT, 1)
    client.set("some", value[:6 * MB])
    client.setrange("some", 17, "x")
    for command in ("redis.call('GET', KEYS[1])", "redis.call('GETRANGE', KEYS[1], 1, -1)",
                    "redis.call('GETRANGE', KEYS[1], 5, 60000000)", "redis.pcall('GET', KEYS[1])",
                    "redis.call('MGET', KEYS[2], KEYS[1])", "redis.call('GETDEL', KEYS[1])"):
        for key in ("d", "sparse"):
            with pytest.raises(redis.ResponseError, match="OOM|not enough memory"):
                client.eval(f"return #({command})", 2, key, "some")
            assert client.ping()
    assert client.strlen("d") == len(value) and client.strlen("sparse") == LAST_BIT // 8 + 1
    some = value[:17] + b"x" + value[18:6 * MB]
    script = """local whole = redis.call('GET', KEYS[1])
                return {#whole, redis.sha1hex(whole), redis.call('GETRANGE', KEYS[2], 5, 3000004)}"""
    length, digest, part = client.eval(script, 2, "some", "d")
    assert length == len(some) and digest.decode() == hashlib.sha1(some).hexdigest()
    assert part == value[5:3000005]
    pipe = client.pipeline()
    pipe.setrange("d", 5, "z")
    pipe.get("d")
    with pytest.raises(redis.RedisError, match="OOM|memory"):
        pipe.execute()
    assert is_same(client, "d", value)


@pytest.mark.vellum
@pytest.mark.slow
def test_lcs_loads_no_longer_strings_than_memory_has_room_for(small):
    client, value = small.client(), dense(60 * MB)
    client.set("d", value)
    client.set("b", value[-1:])
    assert client.execute_command("LCS", "d", "absent") == b""
    assert client.execute_command("LCS", "absent", "d", "LEN") == 0
    assert client.execute_command("LCS", "d", "absent", "IDX") == [b"matches", [], b"len", 0]
    with pytest.raises(redis.ResponseError, match="OOM"):
        client.execute_command("LCS", "d", "b")
    client.set("some", value[:5 * MB] + b"\xff" + value[:MB])
    client.set("b", b"\xff")
    assert client.execute_command("LCS", "some", "b", "IDX") == \
        [b"matches", [[[5 * MB, 5 * MB], [0, 0]]], b"len", 1]
