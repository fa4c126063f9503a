"""A client that waits for a key gets what is put there before all others, whichever workers serve them."""

import random
import threading
import time

import pytest

from harness import encode
from test_blocking import blocked, bulks
from test_pubsub import connect  # noqa: F401

pytestmark = pytest.mark.shared


def in_threads(calls):
    """Calls them all at the same time; the first error of one is that of the test."""
    errors = []

    def guarded(call):
        try:
            call()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Thief:
    """Takes what it can get, without waiting for it."""

    def __init__(self, raw, words):
        self.raw, self.words, self.stop, self.loot = raw, words, threading.Event(), []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.stop.is_set():
            reply = self.raw.call(*self.words)
            if reply != b"$-1\r\n" and reply != b"*0\r\n":
                self.loot.append(reply)

    def end(self):
        self.stop.set()
        self.thread.join()
        return self.loot


WAYS = [  # to wait, to push one of two, to steal
    (("BLPOP", "q1", "q2", 0), ("RPUSH", "q{}", "{}"), [("LPOP", "q1"), ("RPOP", "q2")]),
    (("BLMOVE", "q1", "done", "LEFT", "RIGHT", 0), ("RPUSH", "q1", "{1}"),
     [("LPOP", "q1"), ("LMOVE", "q1", "loot", "LEFT", "LEFT")]),
    (("BZPOPMIN", "q2", "q1", 0), ("ZADD", "q{}", "{}", "m{1}"),
     [("ZPOPMIN", "q1"), ("ZPOPMAX", "q2")]),
]


@pytest.mark.parametrize("wait,push,steal", WAYS, ids=[way[0][0] for way in WAYS])
def test_nobody_steals_from_those_who_wait(connect, wait, push, steal):  # noqa: F811
    asker = connect()
    waiters, makers = [connect() for _ in range(8)], [connect() for _ in range(4)]
    thieves = [Thief(connect(), words) for words in steal]
    got, number = 0, 0

    def make(raw, first):
        for i in range(2):
            raw.call(*(word.format(1 + i, first + i) for word in push))

    try:
        for _ in range(25):
            for raw in waiters:
                raw.send(encode(*wait))
            blocked(asker, len(waiters))
            in_threads([lambda raw=raw, first=number + 2 * i: make(raw, first)
                        for i, raw in enumerate(makers)])
            number += 2 * len(makers)
            got += sum(raw.reply()[:1] in b"*$" for raw in waiters)
    finally:
        loot = [thief.end() for thief in thieves]
    assert loot == [[], []]
    assert got == number


def test_what_was_pushed_at_once_goes_to_those_who_wait(connect):  # noqa: F811
    """They hand on what is left, to each other before anybody else."""
    asker, waiters = connect(), [connect() for _ in range(6)]
    thief = Thief(connect(), ("LPOP", "q"))
    try:
        for number in range(20):
            for i, raw in enumerate(waiters):
                raw.send(encode("BLPOP", "q", 0))
                blocked(asker, i + 1)
            if number % 2 == 0:
                asker.call("RPUSH", "q", *range(6))
            else:
                asker.send(b"".join(encode(*words) for words in (
                    [("MULTI",)] + [("RPUSH", "q", i) for i in range(6)] + [("EXEC",)])))
                assert [asker.reply() for _ in range(8)][7].startswith(b"*6")
            assert [raw.reply() for raw in waiters] == [bulks("q", str(i)) for i in range(6)]
    finally:
        assert thief.end() == []


def test_who_waits_for_two_keys_has_the_choice(connect):  # noqa: F811
    """Both become ready at once: the next one has what the first leaves, in the order of its keys."""
    asker, waiters = connect(), [connect() for _ in range(3)]
    for i, (raw, count) in enumerate(zip(waiters, (1, 10, 10))):
        raw.send(encode("BLMPOP", 0, 2, "a", "b", "LEFT", "COUNT", count))
        blocked(asker, i + 1)
    asker.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("RPUSH", "a", 1, 2, 3), ("RPUSH", "b", 4, 5), ("EXEC",))))
    assert [asker.reply() for _ in range(4)][3] == b"*2\r\n:3\r\n:2\r\n"
    assert [raw.reply() for raw in waiters] == [
        b"*2\r\n$1\r\n" + key + b"\r\n" + bulks(*values)
        for key, values in ((b"a", "1"), (b"a", "23"), (b"b", "45"))]


def test_all_that_a_commit_brings_goes_to_those_who_wait(connect):  # noqa: F811
    """The first of two takes one key; the other key's next one is the second, not a passer-by."""
    asker, first, second = connect(), connect(), connect()
    thieves = [Thief(connect(), ("LPOP", key)) for key in ("b", "b", "c")]
    try:
        for number in range(60):
            first.send(encode("BLPOP", "a", "b", "c", 0))
            blocked(asker, 1)
            second.send(encode("BLMPOP", 0, 2, "b", "c", "LEFT", "COUNT", 9))
            blocked(asker, 2)
            asker.send(b"".join(encode(*words) for words in (
                ("MULTI",), ("RPUSH", "a", number), ("RPUSH", "b", "x"), ("EXEC",))))
            for _ in range(4):
                asker.reply()
            assert first.reply() == bulks("a", str(number))
            assert second.reply() == b"*2\r\n$1\r\nb\r\n" + bulks("x")
    finally:
        loot = [thief.end() for thief in thieves]
    assert loot == [[], [], []]


def test_the_next_command_finds_what_a_push_has_brought_about(server, connect):  # noqa: F811
    if server.workers > 1:
        pytest.skip("who waits may be another worker's, and comes a moment later")
    asker, waiter = connect(), connect()
    waiter.send(encode("BLMOVE", "q", "done", "LEFT", "RIGHT", 0))
    blocked(asker, 1)
    asker.send(encode("RPUSH", "q", "a") + encode("LLEN", "done"))
    assert [asker.reply(), asker.reply(), waiter.reply()] == [b":1\r\n", b":1\r\n", b"$1\r\na\r\n"]


def test_a_push_is_heard_of_before_the_pop_it_brings(connect):  # noqa: F811
    asker, makers = connect(), [connect() for _ in range(3)]
    asker.call("CONFIG", "SET", "notify-keyspace-events", "Elg")
    listener = connect()
    listener.call("PSUBSCRIBE", "__keyevent@0__:*")
    waiters = [[connect() for _ in range(3)] for _ in makers]
    rounds = 15
    for _ in range(rounds):
        for key, some in enumerate(waiters):
            for raw in some:
                raw.send(encode("BLPOP", f"q{key}", 0))
        blocked(asker, 9)
        in_threads([lambda raw=raw, key=key: [raw.call("RPUSH", f"q{key}", i) for i in range(3)]
                    for key, raw in enumerate(makers)])
        for key, some in enumerate(waiters):
            assert sorted(raw.reply() for raw in some) == [bulks(f"q{key}", x) for x in "012"]
    heard = {b"q0": [], b"q1": [], b"q2": []}
    for _ in range(rounds * 27):
        parts = listener.reply().split(b"\r\n")
        heard[parts[8]].append(parts[6].split(b":")[1])
    for events in heard.values():
        assert events == [b"rpush", b"lpop", b"del"] * 3 * rounds


def test_monitors_see_a_command_when_it_begins_to_wait(connect):  # noqa: F811
    asker, monitor, waiter = connect(), connect(), connect()
    for raw in (asker, waiter):  # they are there before they could be seen to come
        raw.call("PING")
    monitor.call("MONITOR")
    waiter.send(encode("BLPOP", "q", 0))
    assert b'"BLPOP" "q" "0"' in monitor.line()
    asker.call("RPUSH", "q", "x")
    assert b'"RPUSH" "q" "x"' in monitor.line()
    assert waiter.reply() == bulks("q", "x")
    waiter.send(encode("WAIT", 1, 50))
    assert b'"WAIT" "1" "50"' in monitor.line()
    assert waiter.reply() == b":0\r\n"
    waiter.call("ECHO", "last")
    assert b'"ECHO" "last"' in monitor.line()


def test_moves_that_cross_each_other(connect):  # noqa: F811
    """Waiters whose keys are each other's, among commands with several keys: nothing hangs, and no
    element is lost or doubled."""
    keys = ["a", "b", "c", "d"]
    stop = threading.Event()
    asker = connect()
    asker.call("RPUSH", "a", *range(5))

    def move(raw, seed):
        dice = random.Random(seed)
        while not stop.is_set():
            source, target = dice.sample(keys, 2)
            reply = raw.call("BLMOVE", source, target, "LEFT", "RIGHT", 0.05)
            assert reply[:1] in b"$*"

    def disturb(raw, seed):
        dice = random.Random(seed)
        while not stop.is_set():
            one, other = dice.sample(keys, 2)
            words = dice.choice([
                ("LMOVE", one, other, "LEFT", "LEFT"), ("RENAMENX", one, other),
                ("EXISTS", *keys), ("LMPOP", 1, "none", "LEFT"), ("COPY", one, "copy", "REPLACE"),
                ("EVAL", "return redis.call('LMOVE', KEYS[1], KEYS[2], 'LEFT', 'LEFT')", 2, one,
                 other),
                ("EVAL", "return redis.call('LMOVE', ARGV[1], ARGV[2], 'LEFT', 'LEFT')", 0, one,
                 other)])
            assert raw.call(*words)[:1] in b"$:*" or words[0] == "RENAMENX"

    def end():
        time.sleep(1)
        stop.set()

    calls = [lambda raw=connect(), i=i: move(raw, i) for i in range(6)]
    calls += [lambda raw=connect(), i=i: disturb(raw, i) for i in range(3)]
    in_threads(calls + [end])
    elements = []
    for key in keys:
        elements += [int(x) for x in asker.call("LRANGE", key, 0, -1).split(b"\r\n")[2::2]]
    assert sorted(elements) == list(range(5))
    blocked(asker, 0)


def test_keys_that_come_in_other_ways_go_to_those_who_wait(connect):  # noqa: F811
    asker, waiter = connect(), connect()
    asker.call("RPUSH", "src", "x")
    dump = asker.call("DUMP", "src").split(b"\r\n", 1)[1][:-2]
    thief = Thief(connect(), ("LPOP", "q"))
    try:
        for db, words in ((0, ("RENAME", "src", "q")), (0, ("COPY", "src", "q")),
                          (1, ("MOVE", "q", 0)), (0, ("RESTORE", "q", 0, dump)),
                          (0, ("SORT", "src", "STORE", "q", "ALPHA")), (0, ("SWAPDB", 0, 1))):
            for _ in range(3):
                waiter.send(encode("BLPOP", "q", 0))
                blocked(asker, 1)
                asker.call("SELECT", 1 if words[0] == "SWAPDB" else db)
                asker.call("DEL", "src", "q")
                asker.call("RPUSH", "q" if words[0] in ("MOVE", "SWAPDB") else "src", "x")
                reply = asker.call(*words)
                assert reply[:1] in b"+:", reply
                assert waiter.reply() == bulks("q", "x")
                asker.call("SELECT", 0)
                asker.call("DEL", "src")
    finally:
        loot = thief.end()
    assert loot == []
