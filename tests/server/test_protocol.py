"""Bytes over a socket: what is accepted, what closes a connection, and that it closes no other."""

import os
import threading
import time

import pytest

from harness import encode, eventually, processor_seconds, resident_bytes

MB = 1 << 20

ERRORS = [
    (b"*abc\r\n", b"invalid multibulk length"),
    (b"*2147483648\r\n", b"invalid multibulk length"),
    (b"*3\r\n:1\r\n", b"expected '$', got ':'"),
    (b"*1\r\n$-5\r\n", b"invalid bulk length"),
    (b"*1\r\n$abc\r\n", b"invalid bulk length"),
    (b"*2\r\n$3\r\nGET\r\n$999999999999\r\n", b"invalid bulk length"),
    (b'SET "a b\r\n', b"unbalanced quotes in request"),
    (b"SET 'a'b c\r\n", b"unbalanced quotes in request"),
    (b"a" * 70000, b"too big inline request"),
    (b"*" + b"1" * 70000, b"too big mbulk count string"),
    (b"*1\r\n$" + b"1" * 70000, b"too big bulk count string"),
]


@pytest.mark.parametrize("request_bytes,error", ERRORS, ids=[e.decode() for _, e in ERRORS])
def test_protocol_error_closes_only_its_connection(server, request_bytes, error):
    with server.raw() as bystander, server.raw() as bad:
        bystander.send(b"*2\r\n$4\r\nECHO\r\n$5\r\nhe")
        # What came before the error in the same write is answered.
        bad.send(encode("SET", "before", "1") + request_bytes)
        assert bad.reply() == b"+OK\r\n"
        assert bad.reply() == b"-ERR Protocol error: " + error + b"\r\n"
        assert bad.closed()
        bystander.send(b"llo\r\n")
        assert bystander.reply() == b"$5\r\nhello\r\n"


@pytest.mark.parametrize("line", [b"POST / HTTP/1.1\r\n", b"Host: localhost\r\n"])
def test_http_is_hung_up_on(server, line):
    with server.raw() as raw:
        raw.send(line + encode("SET", "smuggled", "1"))
        assert raw.closed()
    assert server.client().get("smuggled") is None


def test_wrong_commands_keep_the_connection(server):
    with server.raw() as raw:
        assert raw.call("NOSUCH", "a", "b") == \
            b"-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' \r\n"
        assert raw.call("GET") == b"-ERR wrong number of arguments for 'get' command\r\n"
        assert raw.call("CONFIG", "NOSUCH").startswith(b"-ERR unknown subcommand 'NOSUCH'.")
        assert raw.call("PING") == b"+PONG\r\n"


def test_a_pipeline_changes_what_its_later_commands_mean(server):
    """The server reads ahead in a pipeline: what it learned there must not outlive a SELECT, a
    RESET, or commands of other forms in between."""
    parts = [
        (encode("SET", "k", "zero"), b"+OK\r\n"),
        (encode("SELECT", "3"), b"+OK\r\n"),
        (encode("GET", "k"), b"$-1\r\n"),
        (encode("SET", "k", "three"), b"+OK\r\n"),
        (b"PING\r\n", b"+PONG\r\n"),
        (b"*0\r\n", b""),
        (encode("GET", "k"), b"$5\r\nthree\r\n"),
        (encode("COPY", "k", "other", "DB", "0"), b":1\r\n"),
        (encode("NOSUCH", "k"), b"-ERR unknown command 'NOSUCH', with args beginning with: 'k' \r\n"),
        (encode("MSET", *(w for i in range(60) for w in (f"m{i}", i))), b"+OK\r\n"),
        (encode("MGET", "m0", "m59", "m60"), b"*3\r\n$1\r\n0\r\n$2\r\n59\r\n$-1\r\n"),
        (encode("RESET"), b"+RESET\r\n"),
        (encode("GET", "k"), b"$4\r\nzero\r\n"),
        (encode("GET", "other"), b"$5\r\nthree\r\n"),
        (encode("SWAPDB", "0", "3"), b"+OK\r\n"),
        (encode("GET", "k"), b"$5\r\nthree\r\n"),
        (encode("FLUSHALL"), b"+OK\r\n"),
        (encode("GET", "k"), b"$-1\r\n"),
    ]
    with server.raw() as raw:
        raw.send(b"".join(request for request, _ in parts))
        for request, wanted in parts:
            if wanted:
                assert raw.reply() == wanted, request


def test_inline_commands(server):
    with server.raw() as raw:
        raw.send(b"\r\n\n  \r\nPING\r\nping\nSET  key   'it\\'s'\r\n"
                 b'SET "a key" "\\x41\\r\\n\\"\\t"\r\nGET key\r\nGET "a key"\r\n*0\r\n*-1\r\nECHO ""\n')
        expected = [b"+PONG\r\n", b"+PONG\r\n", b"+OK\r\n", b"+OK\r\n", b"$4\r\nit's\r\n",
                    b'$5\r\nA\r\n"\t\r\n', b"$0\r\n\r\n"]
        assert [raw.reply() for _ in expected] == expected


def test_request_in_single_bytes(server):
    with server.raw() as raw:
        for byte in encode("SET", "split", "a\r\nb") + b"GET split\r\n":
            raw.send(bytes([byte]))
        assert raw.reply() == b"+OK\r\n"
        assert raw.reply() == b"$4\r\na\r\nb\r\n"


def test_pipeline_of_10000_in_one_write(server):
    requests, expected = [], []
    for i in range(2500):
        requests += [encode("SET", f"k:{i}", i), encode("INCRBY", f"k:{i}", 1),
                     encode("GET", f"k:{i}"), encode("APPEND", f"k:{i}", "x")]
        n = b"%d" % (i + 1)
        expected += [b"+OK\r\n", b":%s\r\n" % n, b"$%d\r\n%s\r\n" % (len(n), n),
                     b":%d\r\n" % (len(n) + 1)]
    with server.raw() as raw:
        sender = threading.Thread(target=raw.send, args=(b"".join(requests),))
        sender.start()
        replies = [raw.reply() for _ in expected]
        sender.join()
    assert replies == expected


def test_pipeline_on_one_key_keeps_its_order(server):
    with server.raw() as raw:
        raw.send(b"".join(encode("APPEND", "log", chr(97 + i % 26)) for i in range(10000)))
        assert [raw.reply() for _ in range(10000)] == [b":%d\r\n" % n for n in range(1, 10001)]
        wanted = bytes(97 + i % 26 for i in range(10000))
        assert raw.call("GET", "log") == b"$10000\r\n" + wanted + b"\r\n"


def test_binary_keys_and_values(server):
    client = server.client()
    everything = bytes(range(256))
    client.set(everything, everything[::-1])
    client.set(b"", b"")
    assert client.get(everything) == everything[::-1]
    assert client.get(b"") == b"" and client.exists(b"") == 1


SIZES = [0, 1, 44, 45, 1000, 2000, 4000, 4095, 4096, 4097, 16384, 65535, 65536, 100001, MB, 5 * MB]


def test_values_of_many_sizes_survive_a_restart(server):
    values = {f"v:{size}": os.urandom(size) for size in SIZES}
    client = server.client()
    for key, value in values.items():
        client.set(key, value)
    for _ in range(2):
        client = server.client()
        for key, value in values.items():
            assert client.get(key) == value, key
            assert client.strlen(key) == len(value)
            assert client.getrange(key, len(value) // 3, len(value) // 2) == \
                value[len(value) // 3:len(value) // 2 + 1]
        server.restart()


def large_value_walk(server, size):
    client = server.client()
    block = os.urandom(MB)
    value = b"".join(block[i % MB:] + block[:i % MB] for i in range(size // MB))
    client.set("large", value)
    assert client.get("large") == value
    assert client.strlen("large") == size
    assert client.getrange("large", -5, -1) == value[-5:]
    changed = bytearray(value)
    for offset in (0, size // 2 - 3, size - 7):
        client.setrange("large", offset, b"changed")
        changed[offset:offset + 7] = b"changed"
    if size + 4 <= 512 * MB:
        assert client.append("large", b"tail") == size + 4
        changed += b"tail"
    assert client.get("large") == changed
    server.restart()
    assert server.client().get("large") == changed
    assert server.client().delete("large") == 1


@pytest.mark.parametrize("size", [8 * MB, 64 * MB], ids=["8MB", "64MB"])
def test_large_value(server, size):
    large_value_walk(server, size)


@pytest.mark.slow
def test_value_of_512_mb(make_server):
    large_value_walk(make_server(), 512 * MB)


def test_a_value_over_the_limit_is_refused(server):
    client = server.client()
    client.setrange("s", 100, "x")
    with pytest.raises(Exception, match="string exceeds maximum allowed size"):
        client.setrange("s", 512 * MB - 3, "four")
    with pytest.raises(Exception, match="offset is out of range"):
        client.setrange("s", -1, "x")
    assert client.strlen("s") == 101


@pytest.mark.vellum
def test_a_client_that_does_not_read_costs_little(server):
    """200 MB of unread replies neither stand in the server's memory nor stop other clients."""
    client = server.client()
    value = os.urandom(MB)
    client.set("big", value)
    before = resident_bytes(server.process)
    with server.raw(receive_buffer=4096) as slow:
        sender = threading.Thread(target=slow.send, args=(encode("GET", "big") * 200,))
        sender.start()
        worst = 0
        for _ in range(50):
            assert client.set("other", "1")
            worst = max(worst, resident_bytes(server.process) - before)
            time.sleep(0.01)
        assert worst < 40 * MB
        # It wakes up, and nothing was lost.
        for _ in range(200):
            assert slow.reply() == b"$%d\r\n%s\r\n" % (MB, value)
        sender.join()


@pytest.mark.sockets("the proxy connects when they have gone")
def test_clients_that_vanish_mid_pipeline(server):
    client = server.client()
    client.set("big", os.urandom(MB))
    before = client.info("stats")["total_connections_received"]
    for _ in range(30):
        raw = server.raw(receive_buffer=4096)
        raw.send(encode("GET", "big") * 20 + b"*2\r\n$3\r\nGET\r\n$3\r\nb")
        raw.close()
    assert client.ping()
    limit = time.monotonic() + 30
    info = client.info()
    while time.monotonic() < limit and not (  # some may be accepted when they have gone
            info["total_connections_received"] == before + 30 and info["connected_clients"] == 1):
        time.sleep(0.05)
        info = client.info()
    assert info["total_connections_received"] == before + 30 and info["connected_clients"] == 1


def test_resp3_forms(server):
    with server.raw() as raw:
        assert raw.call("GET", "nothing") == b"$-1\r\n"
        hello = raw.call("HELLO", "3")
        assert hello.startswith(b"%7\r\n") and b"$5\r\nproto\r\n:3\r\n" in hello
        assert b"$6\r\nserver\r\n$5\r\nredis\r\n" in hello
        assert raw.call("GET", "nothing") == b"_\r\n"
        assert raw.call("MGET", "a", "b") == b"*2\r\n_\r\n_\r\n"
        assert raw.call("CONFIG", "GET", "maxclients").startswith(b"%1\r\n$10\r\nmaxclients\r\n")
        assert raw.call("HELLO", "4") == b"-NOPROTO unsupported protocol version\r\n"
        assert raw.call("HELLO", "2").startswith(b"*14\r\n")
        assert raw.call("GET", "nothing") == b"$-1\r\n"


def test_select_is_per_connection(server):
    with server.raw() as one, server.raw() as two:
        assert one.call("SELECT", "9") == b"+OK\r\n"
        one.call("SET", "k", "nine")
        two.call("SET", "k", "zero")
        assert one.call("GET", "k") == b"$4\r\nnine\r\n"
        assert two.call("GET", "k") == b"$4\r\nzero\r\n"
        assert one.call("SELECT", "16") == b"-ERR DB index is out of range\r\n"


@pytest.mark.sockets("the proxy logs in before it asks for a channel")
def test_authentication(make_server):
    server = make_server(requirepass="s3cret")
    denied = b"-NOAUTH Authentication required.\r\n"
    with server.raw() as raw:
        assert raw.call("GET", "k") == denied
        assert raw.call("PING") == denied
        assert raw.call("HELLO", "3").startswith(b"-NOAUTH HELLO must be called")
        assert raw.call("AUTH", "wrong").startswith(b"-WRONGPASS invalid username-password pair")
        assert raw.call("AUTH", "default", "wrong").startswith(b"-WRONGPASS")
        assert raw.call("AUTH", "someone", "s3cret").startswith(b"-WRONGPASS")
        assert raw.call("GET", "k") == denied
        assert raw.call("AUTH", "s3cret") == b"+OK\r\n"
        assert raw.call("SET", "k", "v") == b"+OK\r\n"
        assert raw.call("AUTH", "wrong").startswith(b"-WRONGPASS")
        assert raw.call("GET", "k") == b"$1\r\nv\r\n"
    with server.raw() as raw:
        assert raw.call("HELLO", "3", "AUTH", "default", "s3cret").startswith(b"%7\r\n")
        assert raw.call("GET", "k") == b"$1\r\nv\r\n"


@pytest.mark.parametrize("request_bytes,error", [
    (b"*11\r\n", b"unauthenticated multibulk length"),
    (b"*2\r\n$4\r\nECHO\r\n$16385\r\n", b"unauthenticated bulk length"),
])
@pytest.mark.sockets("strangers get no channel")
def test_strangers_may_not_announce_much(make_server, request_bytes, error):
    server = make_server(requirepass="s3cret")
    with server.raw() as raw:
        raw.send(request_bytes)
        assert raw.reply() == b"-ERR Protocol error: " + error + b"\r\n"
        assert raw.closed()
    with server.raw() as raw:
        raw.call("AUTH", "s3cret")
        assert raw.call("ECHO", "x" * 20000) == b"$20000\r\n" + b"x" * 20000 + b"\r\n"


def test_hostile_counts_cost_no_memory(server):
    before = resident_bytes(server.process)
    raws = [server.raw() for _ in range(50)]
    for raw in raws:
        raw.send(b"*1000000000\r\n$3\r\nGET\r\n$500000000\r\nabc")
    client = server.client()
    assert client.ping()
    assert resident_bytes(server.process) - before < 64 * MB
    for raw in raws:
        raw.close()
    assert client.ping()


@pytest.mark.sockets("the refusal goes to the proxy")
def test_maxclients(make_server):
    server = make_server(maxclients=5)
    raws = [server.raw()]
    try:
        # The connection that waited for the start may still be counted.
        assert eventually(lambda: b"connected_clients:1\r" in raws[0].call("INFO", "clients"))
        raws += [server.raw() for _ in range(4)]
        for raw in raws:
            assert raw.call("PING") == b"+PONG\r\n"
        with server.raw() as extra:
            assert extra.reply() == b"-ERR max number of clients reached\r\n"
            assert extra.closed()
    finally:
        for raw in raws:
            raw.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with server.raw() as again:
            again.send(encode("PING"))
            if again.reply() == b"+PONG\r\n":
                return
    pytest.fail("connections that are closed make no room")


@pytest.mark.sockets("the refusal goes to the proxy")
def test_a_full_server_refuses_quickly(make_server):
    """The thread that refuses does not sleep for each of them: it also takes CONFIG SET port, and stops."""
    server = make_server(maxclients=2)
    time.sleep(0.3)  # the connection that waited for the start may still be counted
    with server.raw() as one, server.raw() as other:
        assert one.call("PING") == other.call("PING") == b"+PONG\r\n"
        begin = time.monotonic()
        for _ in range(400):
            with server.raw() as extra:
                assert extra.reply() == b"-ERR max number of clients reached\r\n"
        assert time.monotonic() - begin < 6


def test_idle_clients_are_closed(make_server):
    server = make_server(timeout=1)
    with server.raw(timeout=10) as raw:
        assert raw.call("PING") == b"+PONG\r\n"
        assert raw.closed()


def test_client_reply_off_and_skip(server):
    with server.raw() as raw:
        raw.send(encode("CLIENT", "REPLY", "SKIP") + encode("SET", "a", "1") +
                 encode("CLIENT", "REPLY", "OFF") + encode("SET", "b", "2") + encode("NOSUCH") +
                 encode("CLIENT", "REPLY", "ON") + encode("MGET", "a", "b"))
        assert raw.reply() == b"+OK\r\n"
        assert raw.reply() == b"*2\r\n$1\r\n1\r\n$1\r\n2\r\n"


def test_quit_answers_what_came_before_and_closes(server):
    with server.raw() as raw:
        raw.send(encode("SET", "a", "1") + encode("QUIT") + encode("SET", "a", "2"))
        assert raw.reply() == b"+OK\r\n"
        assert raw.reply() == b"+OK\r\n"
        assert raw.closed()
    assert server.client().get("a") == b"1"


@pytest.mark.vellum
def test_idle_server_uses_no_cpu(server):
    with server.raw() as raw:
        raw.call("SET", "a", "1")
        time.sleep(2)  # what the write left to be done
        before = processor_seconds(server.process)
        time.sleep(2)
        assert processor_seconds(server.process) - before < 0.1


def test_an_error_names_a_long_word_as_a_whole(server):
    word = "w" * 5000
    with server.raw() as raw:
        assert raw.call("EXPIRE", "k", "100", word) == f"-ERR Unsupported option {word}\r\n".encode()
        assert raw.call("CONFIG", "SET", word, "1") == (
            f"-ERR Unknown option or number of arguments for CONFIG SET - '{word}'\r\n".encode())
