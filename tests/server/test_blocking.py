"""Commands that wait: for their keys or for a time, and what ends the wait."""

import threading
import time

import pytest

from harness import encode
from test_pubsub import connect, eventually, silent  # noqa: F401


def blocked(asker, count):
    eventually(lambda: f"blocked_clients:{count}\r\n".encode() in asker.call("INFO", "clients"))


def test_wait_takes_its_time(connect):  # noqa: F811
    raw = connect()
    raw.call("SET", "k", "v")
    assert raw.call("WAIT", 0, 1000000) == b":0\r\n"
    begin = time.monotonic()
    assert raw.call("WAIT", 1, 80) == b":0\r\n"
    assert 0.079 <= time.monotonic() - begin < 5
    assert raw.call("WAIT", "x", 1) == b"-ERR value is not an integer or out of range\r\n"
    assert raw.call("WAIT", 1, "x") == b"-ERR timeout is not an integer or out of range\r\n"
    assert raw.call("WAIT", 1, -1) == b"-ERR timeout is negative\r\n"
    raw.send(encode("MULTI") + encode("WAIT", 1, 0) + encode("EXEC"))
    assert [raw.reply() for _ in range(3)][2] == b"*1\r\n:0\r\n"


def test_commands_behind_a_wait_come_after_it(connect):  # noqa: F811
    raw = connect()
    raw.send(encode("SET", "a", 1) + encode("WAIT", 1, 50) + encode("GET", "a") + encode("PING"))
    assert [raw.reply() for _ in range(4)] == [b"+OK\r\n", b":0\r\n", b"$1\r\n1\r\n", b"+PONG\r\n"]


def test_client_unblock(connect):  # noqa: F811
    asker, waiters = connect(), [connect() for _ in range(4)]
    ids = [int(raw.call("CLIENT", "ID")[1:]) for raw in waiters]
    for raw in waiters:
        raw.send(encode("WAIT", 1, 0))
    blocked(asker, 4)
    assert asker.call("CLIENT", "LIST").count(b" flags=b ") == 4
    assert asker.call("CLIENT", "UNBLOCK", ids[0]) == b":1\r\n"
    assert waiters[0].reply() == b":0\r\n"
    assert asker.call("CLIENT", "UNBLOCK", ids[1], "ERROR") == b":1\r\n"
    assert waiters[1].reply() == b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
    assert asker.call("CLIENT", "UNBLOCK", ids[2], "TIMEOUT") == b":1\r\n"
    assert waiters[2].reply() == b":0\r\n"
    assert asker.call("CLIENT", "UNBLOCK", ids[2]) == b":0\r\n"
    assert asker.call("CLIENT", "UNBLOCK", 999999) == b":0\r\n"
    assert asker.call("CLIENT", "UNBLOCK", "x") == (
        b"-ERR value is not an integer or out of range\r\n")
    assert asker.call("CLIENT", "UNBLOCK", 1, "foo") == (
        b"-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n")
    blocked(asker, 1)
    assert waiters[0].call("PING") == b"+PONG\r\n"


def test_clients_that_go_away_or_are_killed_while_they_wait(connect):  # noqa: F811
    asker, waiters = connect(), [connect() for _ in range(6)]
    ids = [int(raw.call("CLIENT", "ID")[1:]) for raw in waiters]
    for raw in waiters:
        raw.send(encode("WAIT", 1, 0) + encode("SET", "never", 1))
    blocked(asker, 6)
    for raw in waiters[:3]:
        raw.close()
    blocked(asker, 3)
    assert asker.call("CLIENT", "KILL", "ID", ids[3]) == b":1\r\n"
    blocked(asker, 2)
    assert waiters[3].closed()
    assert asker.call("EXISTS", "never") == b":0\r\n"


def test_a_server_stops_although_clients_wait(make_server):
    server = make_server()
    with server.raw() as waiter, server.raw() as asker:
        waiter.send(encode("WAIT", 1, 0))
        blocked(asker, 1)
        server.stop()
        server.start()
