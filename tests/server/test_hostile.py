"""Input that no client sends by accident. The server answers or closes the connection, and goes on serving
others in bounded time and memory."""

import time

import pytest

import harness
from harness import encode

pytestmark = pytest.mark.shared

WORDS = [b"GET", b"SET", b"MSET", b"BITFIELD", b"SCAN", b"CLIENT", b"CONFIG", b"COMMAND", b"HELLO",
         b"OBJECT", b"INFO", b"GETEX", b"SETRANGE", b"k", b"", b"0", b"-1", b"KILL", b"LIST", b"EX",
         b"9223372036854775807", b"GETKEYS", b"COUNT", b"*", b"\x00\xff", b"AUTH", b"3", b"x" * 5000]


def garbage(chance):
    """Requests as they should be, with bytes changed, lost, doubled."""
    data = bytearray()
    for _ in range(chance.randrange(1, 20)):
        data += encode(*[chance.choice(WORDS) for _ in range(chance.randrange(1, 6))])
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(data))
        way = chance.randrange(3)
        if way == 0:
            data[at] = chance.choice(b"*$:\r\n0129-\x00\xff")
        elif way == 1:
            del data[at:at + chance.randrange(1, 8)]
        else:
            data[at:at] = data[at:at + chance.randrange(1, 40)]
        data = data or bytearray(b"*")
    return bytes(data)


def test_garbage_harms_nobody(server):
    chance = harness.chance()
    with server.raw() as bystander:
        for number in range(400):
            with server.raw(timeout=5) as raw:
                try:
                    raw.send(garbage(chance))
                    if chance.random() < 0.5:
                        raw.send(garbage(chance))
                    raw.socket.settimeout(0.002)
                    while raw.socket.recv(65536):
                        pass
                except OSError:
                    pass
            assert bystander.call("ECHO", number) == encode(number)[4:]
    assert server.running()


@pytest.mark.parametrize("pattern", ["a*" * 30 + "b", "*a" * 40 + "c", "[a-" * 500, "\\" * 1001,
                                     "*" * 5000 + "x", "?" * 1000])
def test_patterns_that_explode(server, pattern):
    client = server.client()
    client.mset({"a" * 60 + str(i): i for i in range(20)})
    began = time.monotonic()
    assert client.keys(pattern) == []
    assert list(client.scan_iter(match=pattern)) == []
    client.config_get(pattern)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("words,error", [
    (["SETRANGE", "k", "9223372036854775807", "x"], b"string exceeds maximum allowed size"),
    (["SETRANGE", "k", "536870912", "x"], b"string exceeds maximum allowed size"),
    (["SETBIT", "k", "4294967296", "1"], b"bit offset is not an integer or out of range"),
    (["SETBIT", "k", "-1", "1"], b"bit offset is not an integer or out of range"),
    (["BITFIELD", "k", "SET", "u63", "#9223372036854775807", "1"], b"bit offset is not an integer"),
    (["BITFIELD", "k", "INCRBY", "u64", "0", "1"], b"Invalid bitfield type"),
    (["GETEX", "k", "EX", "9223372036854775807"], b"invalid expire time in 'getex' command"),
    (["SET", "k", "v", "PX", "-9223372036854775808"], b"invalid expire time in 'set' command"),
    (["EXPIRE", "k", "9223372036854775807"], b"invalid expire time in 'expire' command"),
    (["DECRBY", "k", "-9223372036854775808"], b"decrement would overflow"),
    (["INCRBYFLOAT", "n", "1e5000"], b"is not a valid float"),
    (["SELECT", "99999999999999"], b""),
    (["LCS", "k", "k", "LEN", "IDX"], b"If you want both the length and indexes"),
    (["CLIENT", "KILL", "ID", "-1"], b"client-id should be greater than 0"),
    (["OBJECT", "FREQ", "k"], b"An LFU maxmemory policy is not selected"),
])
def test_edges_answer_with_errors(server, words, error):
    with server.raw() as raw:
        raw.call("SET", "k", "1")
        reply = raw.call(*words)
        assert reply[:1] == b"-" and error in reply, reply
        assert raw.call("GET", "k") == b"$1\r\n1\r\n"


@pytest.mark.parametrize("fill, words", [
    (["SADD", "k"], ["SRANDMEMBER", "k", "-3000000000"]),
    (["HSET", "k", "f"], ["HRANDFIELD", "k", "-3000000000", "WITHVALUES"]),
    (["ZADD", "k", "1"], ["ZRANDMEMBER", "k", "-3000000000", "WITHSCORES"]),
])
@pytest.mark.vellum
def test_picks_without_end_end_in_errors(server, fill, words):
    """What one asks for is not made whatever it takes; others have their turn meanwhile."""
    with server.raw() as asker, server.raw() as other:
        asker.call(*fill, "x" * 100000)
        asker.send(encode(*words))
        most = 0
        for _ in range(20):
            began = time.monotonic()
            assert other.call("PING") == b"+PONG\r\n"
            most = max(most, time.monotonic() - began)
        assert most < 2
        assert asker.reply().startswith(b"-OOM")
        assert asker.call("SRANDMEMBER", "none", "-9223372036854775807") == b"*0\r\n"
    assert server.peak_memory() < 1 << 30


def test_results_beyond_numbers_are_refused(server):
    client = server.client()
    client.set("n", "9223372036854775807")
    with pytest.raises(Exception, match="increment or decrement would overflow"):
        client.incr("n")
    client.set("f", "1e308")
    with pytest.raises(Exception, match="NaN or Infinity"):
        client.execute_command("INCRBYFLOAT", "f", "inf")
    assert client.mget("n", "f") == [b"9223372036854775807", b"1e308"]


def test_msetnx_with_a_key_twice(server):
    client = server.client()
    assert client.execute_command("MSETNX", "k", "1", "k", "2", "k", "3") == 1
    assert client.get("k") == b"3" and client.dbsize() == 1


def test_a_table_too_large_is_refused(server):
    client = server.client()
    client.mset({"a": "a" * 1000000, "b": "b" * 1000000})
    for words in ([], ["LEN"], ["IDX"]):
        with pytest.raises(Exception, match="Insufficient memory, transient memory for LCS"):
            client.execute_command("LCS", "a", "b", *words)


def test_a_subscription_that_explodes(server):
    with server.raw() as listener, server.raw() as other:
        listener.call("PSUBSCRIBE", "a*" * 30 + "b")
        began = time.monotonic()
        assert other.call("PUBLISH", "a" * 200, "x") == b":0\r\n"
        assert time.monotonic() - began < 5


def test_a_command_after_empty_ones(server):
    with server.raw() as raw:
        raw.send(b"*0\r\n*-1\r\n\r\n" + encode("ECHO", "1") + b"*0\r\n" + encode("ECHO", "2"))
        assert [raw.reply(), raw.reply()] == [b"$1\r\n1\r\n", b"$1\r\n2\r\n"]


def test_a_client_closed_while_it_waits_and_holds_most(server):
    client = server.client()
    keys = [("k%d" % i) * 50 for i in range(20000)]
    with server.raw() as waiting:
        waiting.send(encode("BLPOP", *keys, "0"))
        while client.info("clients")["blocked_clients"] == 0:
            time.sleep(0.01)
        client.config_set("maxmemory-clients", "1mb")
        assert waiting.closed()
    client.config_set("maxmemory-clients", "0")
    assert client.lpush(keys[1], "x") == 1 and client.llen(keys[1]) == 1
    assert client.info("clients")["blocked_clients"] == 0


@pytest.mark.sockets("strangers get no channel")
def test_replies_before_authentication_stay_small(make_server):
    """An unauthenticated client that never reads cannot make the server buffer much."""
    server = make_server(requirepass="pass")
    with server.raw(receive_buffer=4096) as raw:
        raw.socket.settimeout(3)
        try:
            for _ in range(200):
                raw.send(encode("GET", "k") * 5000)
        except OSError:
            pass
        with server.raw() as other:
            assert other.call("AUTH", "pass") == b"+OK\r\n"
            assert other.call("PING") == b"+PONG\r\n"
