"""WAITAOF: until what a connection has written is durable."""

import time

import pytest

from harness import encode
from test_blocking import blocked
from test_pubsub import connect  # noqa: F401

pytestmark = pytest.mark.vellum  # stock is 7.0, which does not have it

DURABLE = b"*2\r\n:1\r\n:0\r\n"
NOT_YET = b"*2\r\n:0\r\n:0\r\n"


def test_what_it_has_waited_for_survives_a_kill(make_server):
    server = make_server(appendfsync="everysec")
    with server.raw() as raw:
        began = time.monotonic()
        raw.send(b"".join(encode("SET", i, i) for i in range(200)) +
                 encode("MULTI") + encode("INCR", "n") + encode("RPUSH", "l", 1) + encode("EXEC") +
                 encode("EVAL", "return redis.call('INCR', 'n')", 0) + encode("WAITAOF", 1, 0, 0))
        replies = [raw.reply() for _ in range(206)]
        assert replies[-2:] == [b":2\r\n", DURABLE]
        assert time.monotonic() - began < 5
        assert raw.call("WAITAOF", 1, 0, 0) == DURABLE
    server.kill9()
    server.start()
    with server.raw() as raw:
        assert raw.call("DBSIZE") == b":202\r\n"
        assert raw.call("GET", "n") == b"$1\r\n2\r\n"
        assert raw.call("WAITAOF", 1, 0, 0) == DURABLE  # it has written nothing


def test_what_ends_the_wait(make_server):
    # Under `no` the journal is flushed every 30 seconds or so.
    server = make_server(appendfsync="no")
    with server.raw() as raw, server.raw() as asker:
        number = int(raw.call("CLIENT", "ID")[1:])
        raw.call("SET", "k", "v")
        assert raw.call("WAITAOF", 0, 0, 0) == NOT_YET
        began = time.monotonic()
        assert raw.call("WAITAOF", 1, 0, 60) == NOT_YET
        assert time.monotonic() - began >= 0.059
        raw.send(encode("MULTI") + encode("WAITAOF", 1, 1, 0) + encode("EXEC"))
        assert [raw.reply() for _ in range(3)][2] == b"*1\r\n" + NOT_YET
        for how, reply in (("TIMEOUT", NOT_YET),
                           ("ERROR", b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")):
            raw.send(encode("WAITAOF", 1, 0, 0))
            blocked(asker, 1)
            assert asker.call("CLIENT", "UNBLOCK", number, how) == b":1\r\n"
            assert raw.reply() == reply
        raw.send(encode("WAITAOF", 1, 0, 0) + encode("WAITAOF", 1, 2, 20))
        blocked(asker, 1)
        asker.call("CONFIG", "SET", "appendfsync", "always")
        asker.call("SET", "other", "v")  # its flush takes along what came before it
        assert raw.reply() == DURABLE
        assert raw.reply() == DURABLE  # but no replica has it
        blocked(asker, 0)


def test_wrong_arguments(make_server):
    with make_server().raw() as raw:
        for words, error in (
                ((2, 0, 0), b"-ERR value is out of range, value must between 0 and 1\r\n"),
                (("x", 0, 0), b"-ERR value is not an integer or out of range\r\n"),
                ((1, -1, 0), b"-ERR value is out of range, must be positive\r\n"),
                ((1, 0, -1), b"-ERR timeout is negative\r\n"),
                ((1, 0, "x"), b"-ERR timeout is not an integer or out of range\r\n"),
                ((1, 0), b"-ERR wrong number of arguments for 'waitaof' command\r\n")):
            assert raw.call("WAITAOF", *words) == error
