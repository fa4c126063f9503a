"""Streams: beside a model, larger than the cache, over restarts, and with readers that wait."""

import bisect
import random
import threading
import time

import pytest
import redis

import harness
from harness import eventually

MB = 1 << 20


class Model:
    """A stream as a sorted list of IDs, and their fields."""

    def __init__(self):
        self.ids, self.fields = [], {}
        self.last = (0, 0)

    def add(self, identity, fields):
        self.ids.append(identity)
        self.fields[identity] = fields
        self.last = identity

    def delete(self, identity):
        if identity in self.fields:
            del self.fields[identity]
            self.ids.remove(identity)

    def trim(self, count):
        for identity in self.ids[:count]:
            del self.fields[identity]
        del self.ids[:count]

    def between(self, first, last):
        return self.ids[bisect.bisect_left(self.ids, first):bisect.bisect_right(self.ids, last)]


def text(identity):
    return b"%d-%d" % identity


def compare(client, key, model, drawn):
    assert client.xlen(key) == len(model.ids)
    first, last = sorted((drawn.randrange(model.last[0] + 2), drawn.randrange(3)) for _ in range(2))
    wanted = [(text(i), model.fields[i]) for i in model.between(first, last)]
    count = drawn.choice([None, None, 1, 7, 100])
    assert client.xrange(key, text(first), text(last), count=count) == wanted[:count]
    assert client.xrevrange(key, text(last), text(first), count=count) == wanted[::-1][:count]
    after = [(text(i), model.fields[i]) for i in model.between((first[0], first[1] + 1), (2**64, 0))]
    found = client.xread({key: text(first)}, count=count)
    assert (found[0][1] if found else []) == after[:count]


def change(client, key, model, drawn):
    way = drawn.random()
    if way < 0.75:
        ms, seq = model.last
        identity = (ms, seq + 1) if drawn.random() < 0.3 else (ms + drawn.randrange(1, 4), drawn.randrange(3))
        size = drawn.choice([0, 3, 20, 20, 300, 1000, 1013, 2000, 5000, 150_000 if drawn.random() < 0.05 else 9])
        fields = {b"f%d" % i: drawn.randbytes(size) for i in range(drawn.randrange(1, 4))}
        assert client.xadd(key, fields, text(identity)) == text(identity)
        model.add(identity, fields)
    elif way < 0.95 and model.ids:
        chosen = drawn.sample(model.ids, min(len(model.ids), drawn.randrange(1, 5)))
        assert client.xdel(key, *map(text, chosen)) == len(chosen)
        for identity in chosen:
            model.delete(identity)
    elif way < 0.97:
        most = drawn.randrange(len(model.ids) + 2)
        count = max(0, len(model.ids) - most)
        assert client.xtrim(key, maxlen=most, approximate=False) == count
        model.trim(count)
    elif model.ids:
        least = drawn.choice(model.ids)
        count = model.ids.index(least)
        assert client.xtrim(key, minid=text(least), approximate=False) == count
        model.trim(count)


def test_random_changes_beside_a_model(make_server):
    server = make_server(enable_debug_command="yes", appendfsync="always")
    drawn, client = harness.chance(), server.client()
    models = {b"s%d" % i: Model() for i in range(3)}
    for number in range(1500):
        key, model = drawn.choice(list(models.items()))
        change(client, key, model, drawn)
        if number % 10 == 0:
            compare(client, key, model, drawn)
        if number % 500 == 250:
            client.execute_command("DEBUG", "RELOAD")
    server.kill9()
    server.start()
    for key, model in models.items():
        for _ in range(5):
            compare(server.client(), key, model, drawn)
    with pytest.raises(redis.ResponseError, match="equal or smaller"):
        server.client().xadd(b"s0", {"a": 1}, text(models[b"s0"].last))


def test_an_empty_stream_stays_and_knows_its_last_id(server):
    client = server.client()
    client.xadd("s", {"a": 1}, "5-5")
    assert client.xdel("s", "5-5") == 1
    assert client.exists("s") and client.xlen("s") == 0 and client.type("s") == b"stream"
    assert client.object("encoding", "s") == b"stream"
    with pytest.raises(redis.ResponseError, match="equal or smaller"):
        client.xadd("s", {"a": 1}, "5-5")
    assert client.xadd("s", {"a": 1}, "5-*") == b"5-6"
    assert client.xtrim("s", maxlen=0) == 0  # `~`: only whole nodes
    assert client.xtrim("s", maxlen=0, approximate=False) == 1
    assert client.xadd("s", {"a": 1}, "5-*") == b"5-7"


def test_copies_and_renamed_streams_are_whole(make_server):
    server = make_server(enable_debug_command="yes")
    client = server.client()
    for i in range(1, 3000):
        client.xadd("s", {"field": b"v" * (i % 50)}, f"{i}-1")
    client.xdel("s", "2999-1", "7-1")
    assert client.copy("s", "t")
    client.rename("s", "u")
    digests = [client.execute_command("DEBUG", "DIGEST-VALUE", key) for key in ("t", "u")]
    assert digests[0] == digests[1]
    with pytest.raises(redis.ResponseError, match="equal or smaller"):
        client.xadd("t", {"a": 1}, "2999-1")
    client.xadd("t", {"a": 1}, "3000-1")
    assert client.xlen("t") == 2998 and client.xlen("u") == 2997


def test_rough_trimming_removes_whole_nodes(server):
    client = server.client()
    for i in range(1, 1001):
        client.xadd("s", {"a": 1}, i, maxlen=555)
    assert client.xlen("s") == 600  # as in Redis
    client.config_set("stream-node-max-entries", 10)
    assert client.xtrim("s", maxlen=555) == 40
    assert client.xtrim("s", maxlen=0, limit=30) == 30
    assert client.xtrim("s", minid=1000) == 520


@pytest.mark.slow
def test_a_stream_ten_times_the_cache(make_server):
    """Both ends are at hand, whatever is between."""
    server = make_server(maxmemory="64mb", journal_size="8mb")
    client = server.client()
    count, value = 150_000, b"v" * 4000
    for i in range(1, count + 1, 500):
        pipe = client.pipeline(transaction=False)
        for j in range(i, i + 500):
            pipe.xadd("s", {"f": value}, f"{j}-1")
        pipe.execute()
    assert client.xlen("s") == count
    drawn = harness.chance()
    for _ in range(50):
        i = drawn.randrange(1, count + 1)
        assert client.xrange("s", i, i) == [(b"%d-1" % i, {b"f": value})]
    before = client.info("vellum")["pages_read"]
    for i in range(200):
        client.xadd("s", {"f": value}, f"{count + 1 + i}-1", maxlen=count, approximate=False)
        assert client.xread({"s": f"{count + i}-1"}) == [
            [b"s", [(b"%d-1" % (count + 1 + i), {b"f": value})]]]
    read = client.info("vellum")["pages_read"] - before
    assert read < 200 * 8, f"{read} pages for 200 entries at the ends"
    assert server.peak_memory() < 64 * MB * 1.05
    found = client.xrange("s", count - 4999, count)
    assert [identity for identity, _ in found] == [b"%d-1" % i for i in range(count - 4999, count + 1)]


def test_every_waiting_reader_gets_the_entry(server):
    """On any worker, and only what comes after it began to wait."""
    client = server.client()
    client.xadd("s", {"old": 1}, "1-1")
    readers = [server.raw() for _ in range(7)]
    for raw in readers:
        raw.send(harness.encode("XREAD", "BLOCK", 0, "STREAMS", "none", "s", "$", "$"))
    eventually(lambda: client.info("clients")["blocked_clients"] == len(readers))
    client.xadd("other", {"a": 1})
    client.xadd("s", {"a": 1}, "2-1")
    entry = b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n2-1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n"
    assert [raw.reply() for raw in readers] == [entry] * len(readers)
    for raw in readers:
        raw.close()


def test_a_reader_that_waits_for_a_later_id_lets_others_read(server):
    client = server.client()
    client.xadd("s", {"a": 1}, "1-1")
    with server.raw() as patient, server.raw() as eager:
        patient.send(harness.encode("XREAD", "BLOCK", 0, "STREAMS", "s", "5-0"))
        eventually(lambda: client.info("clients")["blocked_clients"] == 1)
        eager.send(harness.encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$"))
        eventually(lambda: client.info("clients")["blocked_clients"] == 2)
        client.xadd("s", {"a": 1}, "5-0")
        assert b"5-0" in eager.reply()
        assert client.info("clients")["blocked_clients"] == 1
        client.xadd("s", {"a": 1}, "5-1")
        reply = patient.reply()
        assert b"5-1" in reply and b"5-0" not in reply


def test_readers_that_wait_get_each_entry_once_and_in_order(server):
    """Each asks for what comes after the last entry that it has."""
    found = {}

    def read(number):
        client, last = server.client(), b"0-0"
        while len(found[number]) < 300:
            for _, entries in client.xread({"s": last}, block=20_000):
                found[number] += [int(fields[b"n"]) for _, fields in entries]
                last = entries[-1][0]

    threads = []
    for number in range(5):
        found[number] = []
        threads.append(threading.Thread(target=read, args=(number,)))
        threads[-1].start()
    client = server.client()
    for n in range(300):
        client.xadd("s", {"n": n})
        if n % 50 == 0:
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert all(numbers == list(range(300)) for numbers in found.values())


def test_scripts_and_transactions_do_not_wait(server):
    client = server.client()
    assert client.eval("return redis.call('XREAD', 'STREAMS', KEYS[1], '$')", 1, "s") is None
    with pytest.raises(redis.ResponseError, match="XREAD command is not allowed with BLOCK option"):
        client.eval("return redis.call('XREAD', 'BLOCK', 0, 'STREAMS', KEYS[1], '$')", 1, "s")
    pipe = client.pipeline()
    pipe.xread({"s": "$"}, block=0)
    pipe.xadd("s", {"a": 1}, "1-1")
    pipe.xread({"s": "0"}, block=0)
    assert pipe.execute() == [[], b"1-1", [[b"s", [(b"1-1", {b"a": b"1"})]]]]


def test_the_last_entry_is_read_by_a_plus(server):
    client = server.client()
    assert client.xread({"s": "+"}) == []
    for i in range(1, 5):
        client.xadd("s", {"n": i}, f"{i}-1")
    assert client.xread({"s": "+"}) == [[b"s", [(b"4-1", {b"n": b"4"})]]]


def test_keys_are_found_behind_the_word_streams(server):
    with server.raw() as raw:
        assert raw.call("COMMAND", "GETKEYS", "XREAD", "COUNT", "1", "STREAMS", "a", "b", "0", "0") == (
            b"*2\r\n$1\r\na\r\n$1\r\nb\r\n")
        assert raw.call("COMMAND", "GETKEYS", "XREAD", "BLOCK", "streams", "STREAMS", "a", "0") == (
            b"*1\r\n$1\r\na\r\n")
        assert raw.call("COMMAND", "GETKEYS", "XREAD", "STREAMS", "a", "b", "0") == (
            b"-ERR Invalid arguments specified for command\r\n")
