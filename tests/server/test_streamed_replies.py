"""Replies that leave while their command runs: whole, of one moment, in little memory, whether the
client reads or not."""

import hashlib
import itertools
import socket
import threading
import time

import pytest

from harness import IS_REDIS, encode

MB = 2**20


def push(client, key, count, size, at=0):
    """A list of `count` different elements; what LRANGE says of it, in parts."""
    filler = "x" * size
    for first in range(at, at + count, 5000):
        client.rpush(key, *[f"{i:08}{filler}" for i in range(first, min(first + 5000, at + count))])


def said(count, size, at=0):
    bulk = b"$%d\r\n%%08d%s\r\n" % (8 + size, b"x" * size)
    yield b"*%d\r\n" % count
    for i in range(at, at + count):
        yield bulk % i


def digest(parts):
    found = hashlib.sha256()
    length = 0
    for part in parts:
        found.update(part)
        length += len(part)
    return found.hexdigest(), length


def received(raw, length):
    """The next bytes of a connection, without ever holding them all."""
    got, raw.unread = raw.unread[:length], raw.unread[length:]
    while got or length:
        yield got
        length -= len(got)
        got = raw.exactly(min(length, MB))


def stalled(server, key="list"):
    """A client that has asked for all of it and read no more than a little."""
    raw = server.raw(receive_buffer=4096)
    raw.id = int(raw.call("CLIENT", "ID")[1:])
    raw.send(encode("LRANGE", key, "0", "-1"))
    raw.more()
    time.sleep(0.1)
    return raw


@pytest.mark.vellum
def test_a_list_larger_than_the_memory(make_server):
    server = make_server(maxmemory=f"{64 * MB}")
    client = server.client()
    push(client, "list", 400000, 250)
    expected = digest(said(400000, 250))
    client.lrange("list", 0, 100)
    before = server.peak_memory(reset=True)
    with server.raw() as raw:
        raw.send(encode("LRANGE", "list", "0", "-1"))
        assert digest(received(raw, expected[1])) == expected
        assert raw.call("PING") == b"+PONG\r\n"
    assert server.peak_memory() < max(before, 64 * MB) + 8 * MB
    assert client.info("stats")["evicted_clients"] == 0


@pytest.mark.vellum
def test_who_waits_for_a_client_that_does_not_read(make_server):
    server = make_server()
    client = server.client()
    push(client, "list", 60000, 250)
    expected = digest(said(60000, 250))
    with stalled(server) as raw:
        before = client.info("memory")["mem_clients_normal"]
        assert before < 4 * MB
        began = time.monotonic()
        assert client.rpush("list", "one more") == 60001
        assert time.monotonic() - began < 5
        while client.info("memory")["mem_clients_normal"] <= 8 * MB:  # counted by its own worker
            assert time.monotonic() - began < 10
        assert digest(received(raw, expected[1])) == expected  # as it was
        assert raw.call("LLEN", "list") == b":60001\r\n"


@pytest.mark.vellum
def test_everybody_waits_for_a_client_that_does_not_read(make_server):
    server = make_server()
    client = server.client()
    push(client, "list", 30000, 250)
    expected = digest(said(30000, 250))
    with stalled(server) as raw, stalled(server) as other:
        assert client.flushall() is True
        assert digest(received(raw, expected[1])) == expected
        assert digest(received(other, expected[1])) == expected


@pytest.mark.vellum
def test_the_output_limit_holds(make_server):
    server = make_server()
    client = server.client()
    push(client, "list", 60000, 250)
    client.config_set("client-output-buffer-limit", "normal 0 2mb 1")
    with stalled(server) as raw:
        assert client.client_list()  # it is there: nobody waits
        assert client.info("stats")["client_output_buffer_limit_disconnections"] == 0
        assert client.rpush("list", "one more") == 60001
        limit = time.monotonic() + 60
        while client.info("stats")["client_output_buffer_limit_disconnections"] == 0:
            assert time.monotonic() < limit
            time.sleep(0.05)
        with pytest.raises((EOFError, ConnectionResetError)):
            raw.exactly(60000 * 260)
    assert client.info("stats")["client_output_buffer_limit_disconnections"] == 1


@pytest.mark.vellum
def test_an_end_in_the_middle(make_server):
    server = make_server()
    client = server.client()
    push(client, "list", 30000, 250)
    left, killed, lasting = stalled(server), stalled(server), stalled(server)
    left.close()
    assert client.client_kill_filter(_id=killed.id) == 1
    assert client.rpush("list", "one more") == 30001
    with pytest.raises((EOFError, ConnectionResetError)):
        killed.exactly(30000 * 260)
    killed.close()
    assert client.rename("list", "other") is True
    server.stop()  # does not wait for the client that lasts
    lasting.close()


@pytest.mark.vellum
def test_pushes_do_not_come_in_between(make_server):
    server = make_server()
    client = server.client()
    push(client, "list", 30000, 250)
    with server.raw(receive_buffer=4096) as raw:
        raw.call("HELLO", "3")
        raw.call("SUBSCRIBE", "news")
        raw.send(encode("LRANGE", "list", "0", "-1") + encode("ECHO", "end"))
        raw.more()
        for i in range(100):
            client.publish("news", f"{i}" * 200)
        expected = digest(said(30000, 250))
        assert digest(received(raw, expected[1])) == expected
        replies = [raw.reply() for _ in range(101)]
        messages = [reply for reply in replies if reply.startswith(b">3\r\n$7\r\nmessage")]
        assert len(messages) == 100 and b"$3\r\nend\r\n" in replies


def test_replies_in_the_order_of_their_commands(make_server):
    """Several at once in one connection, each more than it may be ahead; slowly read."""
    server = make_server()
    client = server.client()
    push(client, "list", 8000, 120)
    push(client, "other", 8000, 120, at=8000)
    lines = [encode("LRANGE", "list", "0", "-1"), encode("LRANGE", "other", "0", "-1"),
             encode("RPUSH", "list", "x"), encode("LRANGE", "list", "0", "7999"), encode("PING")]
    expected = digest(itertools.chain(said(8000, 120), said(8000, 120, at=8000), [b":8001\r\n"],
                                      said(8000, 120), [b"+PONG\r\n"]))
    with server.raw(receive_buffer=4096) as raw:
        raw.send(b"".join(lines))
        time.sleep(0.2)
        assert digest(received(raw, expected[1])) == expected


@pytest.mark.shared
@pytest.mark.parametrize("version", ["2", "3"])
def test_each_kind_of_collection(make_server, version):
    server = make_server()
    client = server.client()
    names = [b"member:%06d:%s" % (i, b"y" * 20) for i in range(12000)]
    for first in range(0, len(names), 2000):
        part = names[first:first + 2000]
        client.sadd("set", *part)
        client.hset("hash", mapping={name: name[::-1] for name in part})
        client.zadd("zset", {name: float(name[7:13]) for name in part})
    head = {"set": b"~" if version == "3" else b"*", "map": b"%" if version == "3" else b"*"}
    bulk = {name: b"$%d\r\n%s\r\n" % (len(name), name) for name in
            names + [name[::-1] for name in names]}

    def bulks(reply, count):
        end = reply.index(b"\r\n") + 2
        found = reply[end:].split(b"\r\n")[1:-1:2]
        assert len(found) == count
        return reply[:end], found

    with server.raw() as raw:
        raw.call("HELLO", version)
        first, found = bulks(raw.call("SMEMBERS", "set"), 12000)
        assert first == head["set"] + b"12000\r\n" and sorted(found) == names
        first, found = bulks(raw.call("HGETALL", "hash"), 24000)
        assert first == head["map"] + (b"12000\r\n" if version == "3" else b"24000\r\n")
        assert dict(zip(found[::2], found[1::2])) == {name: name[::-1] for name in names}
        first, found = bulks(raw.call("HKEYS", "hash"), 12000)
        assert first == b"*12000\r\n" and sorted(found) == names
        first, found = bulks(raw.call("SRANDMEMBER", "set", "11999"), 11999)
        assert first == b"*11999\r\n" and len(set(found)) == 11999
        first, found = bulks(raw.call("HRANDFIELD", "hash", "-13000"), 13000)
        assert first == b"*13000\r\n" and set(found) <= set(names)
        assert raw.call("ZRANGE", "zset", "0", "-1") == \
            b"*12000\r\n" + b"".join(bulk[name] for name in names)
        assert raw.call("ZREVRANGEBYSCORE", "zset", "+inf", "-inf") == \
            b"*12000\r\n" + b"".join(bulk[name] for name in reversed(names))
        first, found = bulks(raw.call("ZRANDMEMBER", "zset", "20000"), 12000)
        assert first == b"*12000\r\n" and sorted(found) == names


@pytest.mark.vellum
def test_many_readers_and_a_writer(make_server):
    """Everyone sees some moment: as long as it is said to be, and nothing missing in it."""
    server = make_server()
    client = server.client()
    push(client, "list", 10000, 60)
    done = threading.Event()
    errors = []

    def read(slowly):
        own = server.raw(receive_buffer=4096 if slowly else None)
        try:
            while not done.is_set():
                own.send(encode("LRANGE", "list", "0", "-1"))
                if slowly:
                    time.sleep(0.05)
                count = int(own.line()[1:])
                parts = own.exactly(count * 75)
                assert parts == b"".join(itertools.islice(said(count, 60), 1, None))
        except (AssertionError, EOFError, OSError) as error:
            errors.append(error)
        own.close()

    readers = [threading.Thread(target=read, args=(i % 2 == 0,)) for i in range(4)]
    for reader in readers:
        reader.start()
    for i in range(30):
        push(client, "list", 20, 60, at=10000 + 20 * i)
    done.set()
    for reader in readers:
        reader.join()
    assert not errors and client.llen("list") == 10600


# ---- long elements ----

LONG = 6 * MB


@pytest.mark.vellum
def test_long_values_of_fields_and_elements(make_server):
    """They leave from where they lie, and are not read into memory for it."""
    server = make_server()
    client = server.client()
    values = {b"f%d" % i: bytes([97 + i]) * (LONG + i * 1000) for i in range(3)}
    for field, value in values.items():
        client.hset("hash", field, value)
        client.rpush("list", value, b"short")
    client.rpush("list", *[b"e%d" % i for i in range(100)])
    bulk = {field: b"$%d\r\n%s\r\n" % (len(value), value) for field, value in values.items()}
    short = b"$5\r\nshort\r\n"
    all_of_list = (b"*106\r\n" + b"".join(bulk[field] + short for field in sorted(values)) +
                   b"".join(b"$%d\r\ne%d\r\n" % (len(b"e%d" % i), i) for i in range(100)))
    before = server.peak_memory(reset=True)
    with server.raw() as raw:
        assert raw.call("HGET", "hash", "f1") == bulk[b"f1"]
        assert raw.call("HMGET", "hash", "f0", "absent", "f2") == \
            b"*3\r\n" + bulk[b"f0"] + b"$-1\r\n" + bulk[b"f2"]
        assert raw.call("LRANGE", "list", "0", "5") == \
            b"*6\r\n" + b"".join(bulk[field] + short for field in sorted(values))
        assert raw.call("LRANGE", "list", "0", "-1") == all_of_list
        reply = raw.call("HVALS", "hash")
        assert reply[:4] == b"*3\r\n" and len(reply) == 4 + sum(map(len, bulk.values()))
        assert all(reply.find(value, 4) > 0 for value in bulk.values())
    assert server.peak_memory() < before + LONG
    with server.raw() as raw:
        raw.send(encode("LRANGE", "list", "0", "-1") + encode("HGETALL", "hash") +
                 encode("LLEN", "list"))
        assert raw.reply() == all_of_list
        reply = raw.reply()
        assert reply[:4] == b"*6\r\n"
        assert all(b"$2\r\n%s\r\n%s" % (field, bulk[field]) in reply for field in values)
        assert raw.reply() == b":106\r\n"
        raw.call("MULTI")
        raw.call("HGET", "hash", "f2")
        raw.call("LRANGE", "list", "2", "3")
        assert raw.call("EXEC") == b"*2\r\n" + bulk[b"f2"] + b"*2\r\n" + bulk[b"f1"] + short


@pytest.mark.vellum
def test_long_values_that_are_overwritten_meanwhile(make_server):
    server = make_server()
    client = server.client()
    old = {b"f%d" % i: bytes([97 + i]) * (2 * MB + i) for i in range(4)}
    for field, value in old.items():
        client.hset("hash", field, value)
    with server.raw(receive_buffer=4096) as raw:
        raw.send(encode("HGETALL", "hash") + encode("HGET", "hash", "f0"))
        raw.more()
        for i in range(4):
            client.hset("hash", f"f{i}", b"z" * (2 * MB))
        client.delete("hash")
        for i in range(4):  # where the old ones lay, if that had been given up
            client.set(f"s{i}", b"y" * (2 * MB))
        reply = raw.reply()
        assert reply[:4] == b"*8\r\n"
        assert all(b"$2\r\n%s\r\n$%d\r\n%s\r\n" % (field, len(value), value) in reply
                   for field, value in old.items())
        assert raw.reply() in (b"$-1\r\n", b"$%d\r\n%s\r\n" % (2 * MB, old[b"f0"]))


def received_until_closed(raw):
    received = 0
    try:
        while part := raw.socket.recv(MB):
            received += len(part)
    except ConnectionResetError:
        pass
    return received


def test_one_reply_over_the_output_limit(make_server):
    """It ends its client in the middle, also one that reads; shorter ones leave."""
    server = make_server()
    client = server.client()
    client.hset("hash", "field", "value")
    client.rpush("list", *[b"%0100d" % i for i in range(20000)])
    client.config_set("client-output-buffer-limit", f"normal {4 * MB} 0 0")
    with server.raw() as raw:
        raw.send(encode("HRANDFIELD", "hash", "-999999999"))
        assert received_until_closed(raw) < 64 * MB
    if not IS_REDIS:  # 7.2 counts it; the one that the tests are compared with is older
        assert client.info("stats")["client_output_buffer_limit_disconnections"] == 1
    for _ in range(4):
        assert len(client.lrange("list", 0, -1)) == 20000
    client.config_set("client-output-buffer-limit", "normal 1000000 0 0")
    script = "return redis.call('lrange', KEYS[1], 0, 15000)"
    for words in (["LRANGE", "list", "0", "15000"], ["EVAL", script, 1, "list"]):
        with server.raw() as raw:
            raw.send(encode(*words))
            assert received_until_closed(raw) < 15000 * 100
    with server.raw() as raw:  # also within a transaction, which is carried out
        raw.send(encode("MULTI") + encode("SET", "a", "1") + encode("LRANGE", "list", "0", "15000") +
                 encode("SET", "b", "2"))
        assert [raw.reply() for _ in range(4)] == [b"+OK\r\n"] + [b"+QUEUED\r\n"] * 3
        raw.send(encode("EXEC"))
        assert received_until_closed(raw) == 0
    assert client.mget("a", "b") == [b"1", b"2"]
    assert len(client.lrange("list", 0, 8000)) == 8001
    client.config_set("client-output-buffer-limit", "normal 0 0 0")
    assert len(client.hrandfield("hash", -200000)) == 200000
