"""A pipeline that is written whole before its first reply is read: as long as VELLUM_PIPE_MB says, a few
megabytes in a run of the tests, a gigabyte in `make pipetest`. Subscriptions and commands that block
stand in between."""

import hashlib
import os

import pytest

from harness import IS_REDIS, encode, eventually
from test_pipelines import SMALL, bulk, connect, spooled

MB = 2**20
PIPE_BYTES = int(os.environ.get("VELLUM_PIPE_MB", "8")) * MB
CHUNK = MB
PIECES = 8  # with something else in between
LIMIT_S = 1800


def exchange(number, size):
    """Commands and their replies, which no others of the pipeline have."""
    text = b"%d " % number + b"x" * size
    key = b"k%d" % (number % 50)
    return (encode("SET", key, text) + encode("ECHO", text[:90]) + encode("GET", key),
            b"+OK\r\n" + bulk(text[:90]) + bulk(text))


def interruption(number):
    """It leaves RESP2's list of commands for a moment, and waits for somebody else."""
    name = b"queue:%d" % number
    return (encode("SUBSCRIBE", "c") + encode("UNSUBSCRIBE", "c") + encode("BLPOP", name, "0"),
            b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n"
            b"*2\r\n" + bulk(name) + bulk(b"served"))


def pipeline(size, interrupts):
    """Yields chunks of commands with their replies."""
    commands, replies, sent, number, interruptions = [], [], 0, 0, 0
    while sent < PIPE_BYTES:
        command, reply = exchange(number, size)
        if interrupts and sent * PIECES >= interruptions * PIPE_BYTES:
            more = interruption(interruptions)
            command, reply = command + more[0], reply + more[1]
            interruptions += 1
        commands.append(command)
        replies.append(reply)
        sent += len(command)
        number += 1
        if sum(map(len, commands[-2:])) > CHUNK or number % 1000 == 0:
            yield b"".join(commands), b"".join(replies)
            commands, replies = [], []
    yield b"".join(commands), b"".join(replies)


@pytest.mark.sockets("the proxy reads and writes side by side")
@pytest.mark.parametrize("kind", ["tcp", "unix"])
@pytest.mark.parametrize("size", [100, 150000], ids=["small", "large"])
@pytest.mark.parametrize("interrupts", [False, True], ids=["plain", "interrupted"])
def test_all_is_written_first(make_server, kind, size, interrupts):
    server = make_server(unixsocket="socket", **SMALL)
    client = server.client()
    expected, length = hashlib.sha256(), 0
    with connect(server, kind) as raw:
        raw.socket.settimeout(LIMIT_S)
        for commands, replies in pipeline(size, interrupts):
            raw.send(commands)
            expected.update(replies)
            length += len(replies)
        for number in range(PIECES + 1):
            client.rpush(b"queue:%d" % number, "served")
        found = hashlib.sha256()
        while length > 0:
            part = raw.exactly(min(length, CHUNK))
            found.update(part)
            length -= len(part)
        assert found.digest() == expected.digest()
        assert raw.call("ECHO", "the last") == bulk(b"the last")
    eventually(lambda: spooled(client) == 0)
    assert server.peak_memory() < (1 << 40 if IS_REDIS else 70 * MB)
