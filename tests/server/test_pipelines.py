"""Clients that write all of a pipeline before they read: none of them hangs, whatever is in it, and
what they are answered comes whole and in order. What they have sent beyond what may stand in memory
is on the device, and its room comes back."""

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from harness import IS_REDIS, Raw, bulk, encode, eventually

MB = 2**20
SMALL = {} if IS_REDIS else {"maxmemory": "64mb"}
LONG = 65000  # commands of `filling`: more than sockets and the server's replies hold


class Unix(Raw):
    """By the server's Unix socket, whose path is relative to its data directory."""

    def __init__(self, server, timeout=60):  # pylint: disable=super-init-not-called
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        directory = os.open(server.data, os.O_RDONLY)
        try:
            self.socket.connect(f"/proc/self/fd/{directory}/socket")
        finally:
            os.close(directory)
        self.unread = b""


def connect(server, kind="tcp"):
    return Unix(server) if kind == "unix" else server.raw()


def filling(count, name):
    """Commands that all have different replies, and these."""
    texts = [b"%s %0200d" % (name, i) for i in range(count)]
    return b"".join(encode("ECHO", text) for text in texts), b"".join(map(bulk, texts))


def spooled(client):
    return 0 if IS_REDIS else client.info("vellum")["spooled_input_bytes"]


def check(raw, expected):
    """The replies are these, byte by byte, and nothing comes behind them."""
    assert raw.exactly(len(expected)) == expected
    assert raw.call("ECHO", "the last") == bulk(b"the last")


@pytest.mark.sockets("the proxy reads and writes side by side")
@pytest.mark.parametrize("kind", ["tcp", "unix"])
@pytest.mark.parametrize("sync", ["everysec", "always"])
def test_written_before_it_is_read(make_server, kind, sync):
    server = make_server(appendfsync=sync, unixsocket="socket", **SMALL)
    client = server.client()
    commands, replies = filling(LONG, b"first")
    for turn in range(2):
        with connect(server, kind) as raw:
            raw.send(commands + encode("INCR", "turns") + commands)
            if not IS_REDIS:
                eventually(lambda: spooled(client) > 0)
            check(raw, replies + b":%d\r\n" % (turn + 1) + replies)
        eventually(lambda: spooled(client) == 0)
    assert server.peak_memory() < (1 << 40 if IS_REDIS else 68 * MB)


@pytest.mark.sockets("the proxy reads and writes side by side")
def test_everything_in_the_middle(make_server):
    """What streams, what leaves in parts or was put aside, long values, transactions: before what
    is set aside, in it, and behind it."""
    server = make_server(**SMALL)
    client = server.client()
    long, longer = os.urandom(100000), os.urandom(5 * MB)
    elements = [b"element %06d" % i for i in range(30000)]
    client.rpush("list", *elements)
    client.set("longer", longer)
    array = b"*%d\r\n" % len(elements) + b"".join(map(bulk, elements))
    commands, replies = filling(LONG // 2, b"between")
    middle = (encode("SET", "long", long) + encode("GET", "long") * 3 + encode("GET", "longer") +
              encode("LRANGE", "list", "0", "-1") + encode("MULTI") + encode("INCR", "n") +
              encode("GET", "longer") + encode("EXEC") + b"PING\r\n" +
              encode("SORT", "list", "ALPHA") + encode("RPUSH", "one", "x" * 70000) +
              encode("LPOP", "one") + encode("FLUSHDB") + encode("SET", "longer", longer) +
              encode("RPUSH", "list", *elements) + encode("DEL", "n"))
    answers = (b"+OK\r\n" + bulk(long) * 3 + bulk(longer) + array + b"+OK\r\n" + b"+QUEUED\r\n" * 2 +
               b"*2\r\n:1\r\n" + bulk(longer) + b"+PONG\r\n" + array + b":1\r\n" +
               bulk(b"x" * 70000) + b"+OK\r\n+OK\r\n" + b":%d\r\n" % len(elements) + b":0\r\n")
    with server.raw() as raw:
        raw.send(middle + (commands + middle) * 3)
        check(raw, answers + (replies + answers) * 3)
    eventually(lambda: spooled(client) == 0)


@pytest.mark.sockets("the proxy reads and writes side by side")
def test_behind_one_that_blocks(make_server):
    """Redis reads on behind it, too."""
    server = make_server(**SMALL)
    client = server.client()
    commands, replies = filling(LONG, b"behind")
    with server.raw() as raw:
        raw.send(encode("BLPOP", "queue", "0") + commands)
        client.rpush("queue", "served")
        check(raw, b"*2\r\n" + bulk(b"queue") + bulk(b"served") + replies)
    eventually(lambda: spooled(client) == 0)


@pytest.mark.vellum
@pytest.mark.sockets("it has no halves")
def test_who_blocks_and_goes(make_server):
    """That it has gone is seen, although what it has sent before that was not run."""
    server = make_server(**SMALL)
    client = server.client()
    commands, _ = filling(LONG, b"behind")
    clients = client.info("clients")["connected_clients"]
    with server.raw() as raw:
        raw.send(encode("BLPOP", "queue", "0") + commands)
        eventually(lambda: spooled(client) > MB)
    eventually(lambda: client.info("clients")["connected_clients"] == clients)
    eventually(lambda: spooled(client) == 0)
    client.rpush("queue", "of nobody")
    assert client.llen("queue") == 1


@pytest.mark.vellum
@pytest.mark.sockets("it has no halves")
def test_the_end_of_input_is_behind_what_was_set_aside(make_server):
    server = make_server(**SMALL)
    commands, replies = filling(LONG, b"all")
    with server.raw() as raw:
        raw.send(commands)
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.exactly(len(replies)) == replies
        assert raw.closed()


@pytest.mark.sockets("the proxy reads and writes side by side")
def test_messages_between_replies(make_server):
    server = make_server(**SMALL)
    client = server.client()
    commands, replies = filling(LONG, b"reply")
    with server.raw() as raw:
        raw.send(encode("HELLO", "3"))
        raw.reply()
        raw.send(encode("SUBSCRIBE", "news") + commands)
        eventually(lambda: client.pubsub_numsub("news") == [(b"news", 1)])
        for i in range(100):
            assert client.publish("news", f"message {i}") == 1
        got, told = [], []
        while len(got) < LONG or len(told) < 101:
            reply = raw.reply()
            (told if reply.startswith(b">") else got).append(reply)
        assert b"".join(got) == replies
        assert [line.split(b"\r\n")[-2] for line in told[1:]] == \
            [b"message %d" % i for i in range(100)]
        assert raw.call("ECHO", "the last") == bulk(b"the last")


@pytest.mark.sockets("the proxy reads and writes side by side")
def test_messages_while_it_is_set_aside(make_server):
    """They give the connection turns, also while the device has to catch up with its input."""
    server = make_server(**SMALL)
    client = server.client()
    commands, replies = filling(LONG, b"aside")
    with server.raw() as raw, ThreadPoolExecutor() as pool:
        raw.send(encode("HELLO", "3"))
        raw.reply()
        raw.send(encode("SUBSCRIBE", "news"))
        raw.reply()
        sending, count = pool.submit(raw.send, commands * 2), 0
        while not sending.done() and count < 20_000:
            count += client.publish("news", "message")
        got, told = [], 0
        while len(got) < 2 * LONG or told < count:
            reply = raw.reply()
            if reply.startswith(b">"):
                told += 1
            else:
                got.append(reply)
        assert b"".join(got) == replies * 2
        assert sending.result() is None


@pytest.mark.vellum
@pytest.mark.sockets("the proxy reads and writes side by side")
def test_the_room_comes_back(make_server):
    """The space of input that was read, and of closed connections, is freed; it is not reused before."""
    server = make_server(**SMALL)
    client = server.client()
    commands, replies = filling(LONG, b"again")
    sizes = []
    # What was deleted has its room back when that is durable: the file grows in the first rounds.
    while len(sizes) < 6 or sizes[-1] != sizes[-6]:
        i = len(sizes)
        assert i < 60, sizes
        with server.raw() as raw:
            raw.send(commands)
            eventually(lambda: spooled(client) > MB)
            client.set("large", os.urandom(8 * MB))
            client.flushall()
            client.set("large", os.urandom(8 * MB))
            if i % 2 == 0:
                check(raw, replies)
        eventually(lambda: spooled(client) == 0)
        client.flushall()
        sizes.append(client.info("vellum")["store_bytes"])
    with server.raw() as raw:
        raw.send(commands)  # and of one that is there when the server stops
        server.restart()
    assert spooled(server.client()) == 0


@pytest.mark.sockets("the proxy reads and writes side by side")
def test_beside_many_long_values(make_server):
    """They arrive slowly, and have most of the memory for what is on its way to the device."""
    server = make_server(**SMALL)
    commands, replies = filling(LONG, b"slowly")
    raws = [server.raw() for _ in range(300)]
    try:
        for i, raw in enumerate(raws):
            raw.send(b"*3\r\n$3\r\nSET\r\n$4\r\nk%03d\r\n$1000000\r\n" % i + b"x" * 70000)
        with server.raw() as raw:
            raw.send(commands)
            check(raw, replies)
    finally:
        for raw in raws:
            raw.close()


@pytest.mark.slow
@pytest.mark.vellum
@pytest.mark.sockets("the proxy reads and writes side by side")
def test_a_full_disk_is_one_clients_end(make_server):
    """Of one that does not read. Nobody else's; and not of one that reads while it writes."""
    server = make_server(maxstore=24 * MB, journal_size=8 * MB, partitions=4, **SMALL)
    client = server.client()
    client.set("kept", "value")
    commands, replies = filling(LONG, b"much")
    with server.raw() as neighbour, server.raw() as raw:
        neighbour.send(encode("BLPOP", "queue", "0") + commands[:MB])
        with pytest.raises(OSError):
            for _ in range(20):
                raw.send(commands)
            raise AssertionError("it has all been taken")
        assert "the store is full" in server.said()
        assert client.get("kept") == b"value"
        client.rpush("queue", "served")
        neighbour.exactly(len(b"*2\r\n" + bulk(b"queue") + bulk(b"served")))
        assert neighbour.exactly(MB // 2) == replies[:MB // 2]
    eventually(lambda: spooled(client) == 0)
    assert client.set("kept", "another") and client.get("kept") == b"another"
    with pytest.raises(redis.ResponseError, match="OOM"):
        for i in range(100):
            client.set(f"filling:{i}", os.urandom(MB))
    with server.raw() as raw:
        writer = threading.Thread(target=raw.send, args=(commands * 2,))
        writer.start()
        for at in range(0, len(replies), MB):
            assert raw.exactly(len(replies[at:at + MB])) == replies[at:at + MB]
            time.sleep(0.01)
        check(raw, replies)
        writer.join()
    assert server.said().count("the store is full") == 1


@pytest.mark.vellum
@pytest.mark.sockets("the proxy reads and writes side by side")
def test_strangers_get_nothing_set_aside(make_server):
    server = make_server(requirepass="secret", **SMALL)
    client = server.client(password="secret")
    with server.raw() as raw:
        raw.socket.settimeout(1)
        with pytest.raises(OSError):
            raw.send(filling(LONG, b"who")[0] * 4)
        assert spooled(client) == 0 and server.peak_memory() < 68 * MB


@pytest.mark.sockets("the proxy reads and writes side by side")
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_many_who_read_late(make_server, kind):
    """Each has sent all it wants before any of them reads. What the kernel takes of the replies
    differs: by Unix sockets it is little, so that each of them has a value that is partly sent."""
    count, each = 200, 20
    server = make_server(unixsocket="socket", **SMALL)
    client = server.client()
    value = os.urandom(100000)
    client.set("long", value)
    raws = [connect(server, kind) for _ in range(count)]
    try:
        for raw in raws:
            raw.send(encode("GET", "long") * each)
        for raw in raws:
            for _ in range(each):
                assert raw.reply() == bulk(value)
        assert client.info("stats").get("evicted_clients", 0) == 0
    finally:
        for raw in raws:
            raw.close()


@pytest.mark.sockets("the proxy reads and writes side by side")
def test_many_long_pipelines_at_once(make_server):
    """Together they hold much memory from early on, so that each sets its input aside in short
    parts, and stops and begins to read it again and again. None of them hangs or is closed."""
    server = make_server(**SMALL)
    client = server.client()
    commands, replies = filling(LONG, b"many")
    raws = [server.raw() for _ in range(12)]

    def read(raw):
        for at in range(0, len(replies), MB):
            assert raw.exactly(len(replies[at:at + MB])) == replies[at:at + MB]
        assert raw.call("ECHO", "the last") == bulk(b"the last")

    try:
        with ThreadPoolExecutor(len(raws)) as threads:
            list(threads.map(lambda raw: raw.send(commands), raws))
            assert IS_REDIS or spooled(client) > 64 * MB
            list(threads.map(read, raws))
        assert client.info("stats").get("evicted_clients", 0) == 0
    finally:
        for raw in raws:
            raw.close()
    eventually(lambda: spooled(client) == 0)


@pytest.mark.slow
@pytest.mark.sockets("the proxy reads and writes side by side")
def test_hundreds_of_megabytes(make_server):
    """Three million SETs in one go, and four others with as much between them."""
    server = make_server(**SMALL)
    client = server.client()
    commands, replies = filling(LONG, b"much")
    raws = [server.raw() for _ in range(4)]
    try:
        for raw in raws:
            for _ in range(6):
                raw.send(commands)
        with server.raw() as setter:
            for part in range(300):
                setter.send(b"".join(encode("SET", "k%d" % i, "v" * 20)
                                     for i in range(part * 10000, (part + 1) * 10000)))
            if not IS_REDIS:
                assert spooled(client) > 150 * MB
            assert setter.exactly(3000000 * 5) == b"+OK\r\n" * 3000000
        for raw in raws:
            check(raw, replies * 6)
        assert client.dbsize() == 3000000
        assert server.peak_memory() < (1 << 40 if IS_REDIS else 68 * MB)
    finally:
        for raw in raws:
            raw.close()
    eventually(lambda: spooled(client) == 0)
