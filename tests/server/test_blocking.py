"""Commands that wait: for their keys or for a time, and what ends the wait."""

import threading
import time

import pytest

import harness
from harness import encode, eventually
from test_pubsub import connect, silent  # noqa: F401

pytestmark = pytest.mark.shared


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


WAYS_TO_POP = {
    "BLPOP": (("BLPOP", "q", 0), ("RPUSH", "q", "x")),
    "BLMOVE": (("BLMOVE", "q", "other", "LEFT", "LEFT", 0), ("RPUSH", "q", "x")),
    "BLMPOP": (("BLMPOP", 0, 1, "q", "LEFT"), ("RPUSH", "q", "x")),
    "BZPOPMIN": (("BZPOPMIN", "q", 0), ("ZADD", "q", 1, "x")),
}


@pytest.mark.parametrize("wait,push", WAYS_TO_POP.values(), ids=WAYS_TO_POP.keys())
@pytest.mark.parametrize("order", ["kill-push", "push-kill"])
def test_nothing_is_popped_for_a_killed_client(connect, workers, wait, push, order):  # noqa: F811
    """Nor if the key was handed to it first: in a transaction, the pop follows the kill."""
    if order == "push-kill" and workers > 1:
        return  # the client's own worker may pop, and answer it, before the kill arrives there
    asker, killed, other = connect(), connect(), connect()
    number = int(killed.call("CLIENT", "ID")[1:])
    killed.send(encode(*wait))
    blocked(asker, 1)
    kill = encode("CLIENT", "KILL", "ID", number)
    if order == "kill-push":
        asker.send(kill + encode(*push))
        assert [asker.reply() for _ in range(2)] == [b":1\r\n"] * 2
    else:
        asker.send(encode("MULTI") + encode(*push) + kill + encode("EXEC"))
        assert [asker.reply() for _ in range(4)][3] == b"*2\r\n:1\r\n:1\r\n"
    assert killed.closed()
    assert asker.call("EXISTS", "q", "other") == b":1\r\n"
    other.send(encode(*wait))  # nothing else is reserved for the one that is gone
    assert b"x" in other.reply()
    assert asker.call("EXISTS", "q") == b":0\r\n"


def test_nothing_is_moved_for_a_client_that_is_killed_before_the_commit(connect, workers):  # noqa: F811
    """The element is long: the commit waits until it has been written to its new place."""
    if workers > 1:
        return  # the client's own worker may commit before the kill arrives there
    wait, element = encode("BLMOVE", "q", "other", "LEFT", "LEFT", 0), b"x" * 300000
    asker, killed, other = connect(), connect(), connect()
    number = int(killed.call("CLIENT", "ID")[1:])
    killed.send(wait)
    blocked(asker, 1)
    asker.send(encode("RPUSH", "q", element) + encode("CLIENT", "KILL", "ID", number))
    assert [asker.reply() for _ in range(2)] == [b":1\r\n"] * 2
    assert killed.closed()
    other.send(wait)
    assert other.reply() == b"$300000\r\n" + element + b"\r\n"
    assert asker.call("LLEN", "other") == b":1\r\n"
    assert asker.call("EXISTS", "q") == b":0\r\n"


@pytest.mark.parametrize("wait,push", WAYS_TO_POP.values(), ids=WAYS_TO_POP.keys())
def test_what_a_killed_client_would_get_goes_to_the_next(connect, wait, push):  # noqa: F811
    asker, killed, other = connect(), connect(), connect()
    number = int(killed.call("CLIENT", "ID")[1:])
    for count, raw in enumerate((killed, other), 1):
        raw.send(encode(*wait))
        blocked(asker, count)
    asker.send(encode("CLIENT", "KILL", "ID", number) + encode(*push))
    assert [asker.reply() for _ in range(2)] == [b":1\r\n"] * 2
    assert killed.closed()
    assert b"x" in other.reply()
    blocked(asker, 0)


@pytest.mark.parametrize("abrupt", [False, True])
def test_clients_that_go_away_behind_more_than_is_read(connect, abrupt):  # noqa: F811
    asker, waiter = connect(), connect()
    waiter.send(encode("SET", "before", "x" * 100000) + encode("GET", "before"))
    if not abrupt:  # else unread replies reset the connection
        assert [len(waiter.reply()) for _ in range(2)] == [5, 100011]
    waiter.send(encode("BLPOP", "none", 0) + encode("SET", "never", 1) * 3000)
    blocked(asker, 1)
    waiter.close()
    blocked(asker, 0)
    assert asker.call("EXISTS", "before", "never") == b":1\r\n"


@pytest.mark.vellum
def test_clients_that_go_away_before_they_wait(make_server):
    """Where the store makes the first look, at what has expired, wait."""
    server = make_server(enable_debug_command="yes")
    with server.raw() as asker:
        asker.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        for i in range(100):
            asker.send(encode("RPUSH", i, "x") + encode("PEXPIRE", i, 1))
            assert [asker.reply(), asker.reply()] == [b":1\r\n"] * 2
        time.sleep(0.01)
        for i in range(100):
            with server.raw() as raw:
                raw.send(encode("BLPOP", i, 0))
        eventually(lambda: b"connected_clients:1\r\n" in asker.call("INFO", "clients"))
        blocked(asker, 0)


def test_a_server_stops_although_clients_wait(make_server):
    server = make_server()
    with server.raw() as waiter, server.raw() as asker:
        waiter.send(encode("WAIT", 1, 0))
        blocked(asker, 1)
        server.stop()
        server.start()


# ---- lists ----

def bulks(*texts):
    return b"*%d\r\n" % len(texts) + b"".join(
        b"$%d\r\n%s\r\n" % (len(t), t.encode()) for t in texts)


NONE = b"*-1\r\n"


def test_served_in_the_order_of_arrival(connect):  # noqa: F811
    asker, waiters = connect(), [connect() for _ in range(9)]
    for i, raw in enumerate(waiters):
        raw.send(encode(("BLPOP", "BRPOP")[i % 2], "queue", 0))
        blocked(asker, i + 1)
    asker.call("RPUSH", "queue", *range(4))
    got = [waiters[i].reply() for i in range(4)]
    # Each takes from its end of what was there in its turn.
    assert got == [bulks("queue", x) for x in ("0", "3", "1", "2")]
    assert all(silent(raw, 0.05) for raw in waiters[4:])
    for i in range(4, 9):
        assert asker.call("LPUSH", "queue", i) == b":1\r\n"
        assert waiters[i].reply() == bulks("queue", str(i))
    assert asker.call("EXISTS", "queue") == b":0\r\n"
    info = asker.call("INFO", "clients")
    assert b"blocked_clients:0\r\n" in info
    assert harness.IS_REDIS or b"total_blocking_keys:0\r\n" in info  # since 7.2


def test_what_is_there_is_taken_at_once(connect):  # noqa: F811
    raw = connect()
    raw.call("RPUSH", "b", 1, 2, 3, 4, 5)
    assert raw.call("BLPOP", "a", "b", 0) == bulks("b", "1")
    assert raw.call("BRPOP", "a", "b", 0) == bulks("b", "5")
    assert raw.call("BLMOVE", "b", "c", "LEFT", "RIGHT", 0) == b"$1\r\n2\r\n"
    assert raw.call("BRPOPLPUSH", "b", "c", 0) == b"$1\r\n4\r\n"
    assert raw.call("BLMPOP", 0, 2, "a", "c", "LEFT", "COUNT", 9) == (
        b"*2\r\n$1\r\nc\r\n" + bulks("4", "2"))
    assert raw.call("LRANGE", "b", 0, -1) == bulks("3")


def test_several_keys_and_the_first_that_has_something(connect):  # noqa: F811
    raw, asker = connect(), connect()
    for key in ("a", "b", "c", "b"):
        raw.send(encode("BLPOP", "a", "b", "c", "b", 0))
        blocked(asker, 1)
        asker.call("RPUSH", key, "x")
        assert raw.reply() == bulks(key, "x")
    raw.send(encode("BLMPOP", 0, 2, "a", "b", "RIGHT", "COUNT", 2))
    blocked(asker, 1)
    asker.call("RPUSH", "b", 1, 2, 3)
    assert raw.reply() == b"*2\r\n$1\r\nb\r\n" + bulks("3", "2")


def test_very_many_keys(connect):  # noqa: F811
    raw, asker = connect(), connect()
    keys = [f"k{i}" for i in range(20000)]
    for round in range(2):
        raw.send(encode("BLPOP", *keys, 0))
        blocked(asker, 1)
        asker.call("RPUSH", keys[-1 - round], "x", "y")
        assert raw.reply() == bulks(keys[-1 - round], "x")
        assert asker.call("LPOP", keys[-1 - round]) == b"$1\r\ny\r\n"


def test_timeouts_and_their_replies(connect):  # noqa: F811
    raw, new = connect(), connect(3)
    for words in (("BLPOP", "k", 0.03), ("BRPOP", "k", "k2", "0.03"), ("BRPOPLPUSH", "k", "d", 0.03),
                  ("BLMOVE", "k", "d", "LEFT", "LEFT", 0.03), ("BLMPOP", 0.03, 1, "k", "LEFT")):
        begin = time.monotonic()
        assert raw.call(*words) == NONE
        assert 0.029 <= time.monotonic() - begin < 5
        assert new.call(*words) == b"_\r\n"
    assert raw.call("BLPOP", "k", "x") == b"-ERR timeout is not a float or out of range\r\n"
    assert raw.call("BLPOP", "k", -1) == b"-ERR timeout is negative\r\n"
    if not harness.IS_REDIS:  # 7.0 takes it for negative
        assert raw.call("BLPOP", "k", 1e30) == b"-ERR timeout is out of range\r\n"
    raw.call("SET", "s", 1)
    assert raw.call("BLPOP", "k", "s", 0).startswith(b"-WRONGTYPE")
    assert raw.call("BLMOVE", "s", "d", "LEFT", "LEFT", 0).startswith(b"-WRONGTYPE")
    assert raw.call("BLMPOP", 0, 0, "k", "LEFT").startswith(b"-ERR numkeys should be")


def test_nothing_waits_inside_a_transaction(connect):  # noqa: F811
    raw = connect()
    raw.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("BLPOP", "k", 0), ("BLMOVE", "k", "d", "LEFT", "LEFT", 0),
        ("BLMPOP", 0, 1, "k", "LEFT"), ("RPUSH", "k", 1), ("BRPOP", "k", 0), ("EXEC",))))
    assert [raw.reply() for _ in range(7)][6] == (
        b"*5\r\n" + NONE + b"$-1\r\n" + NONE + b":1\r\n" + bulks("k", "1"))


def test_a_transaction_is_seen_when_it_is_done(connect):  # noqa: F811
    raw, asker = connect(), connect()
    raw.send(encode("BLPOP", "k", 0))
    blocked(asker, 1)
    asker.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("RPUSH", "k", "a"), ("DEL", "k"), ("EXEC",))))
    for _ in range(4):
        asker.reply()
    assert silent(raw)
    asker.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("RPUSH", "k", "a"), ("DEL", "k"), ("RPUSH", "k", "b"), ("EXEC",))))
    for _ in range(5):
        asker.reply()
    assert raw.reply() == bulks("k", "b")


def test_other_ways_for_a_list_to_come(connect):  # noqa: F811
    raw, asker = connect(), connect()
    asker.call("SELECT", 1)
    asker.call("RPUSH", "k", "swapped")
    asker.call("SELECT", 0)
    for words, value in ((("RENAME", "src", "k"), "x"), (("COPY", "src", "k"), "x"),
                         (("LMOVE", "src", "k", "LEFT", "LEFT"), "x"), (("SWAPDB", 0, 1), "swapped")):
        asker.call("DEL", "src")
        asker.call("RPUSH", "src", "x")
        raw.send(encode("BLPOP", "k", 0))
        blocked(asker, 1)
        asker.call("SET", "k", "a string comes and goes")
        asker.call("DEL", "k")
        asker.call(*words)
        assert raw.reply() == bulks("k", value), words


@pytest.mark.parametrize("wait, push, left", [
    (("BLPOP", "k", "0"), ("RPUSH", "k", "late"), ("RPUSH", "k", "new")),
    (("BZPOPMIN", "k", "0"), ("ZADD", "k", "1", "late"), ("ZADD", "k", "2", "new")),
])
def test_a_key_that_expires_within_its_own_transaction_wakes_nobody(make_server, wait, push, left):
    server = make_server(enable_debug_command="yes")
    with server.raw() as asker, server.raw() as waiter:
        waiter.send(encode(*wait))
        blocked(asker, 1)
        asker.send(encode("MULTI") + encode(*push) + encode("PEXPIRE", "k", 20) +
                   encode("DEBUG", "SLEEP", "0.2") + encode("EXEC"))
        said = [asker.reply() for _ in range(5)]
        assert said[4] == b"*3\r\n:1\r\n:1\r\n+OK\r\n"
        assert asker.call("EXISTS", "k") == b":0\r\n"
        blocked(asker, 1)
        assert asker.call(*left) == b":1\r\n"
        assert b"new" in waiter.reply()


def test_what_is_of_another_type_wakes_nobody(connect):  # noqa: F811
    waiters, asker = [connect(), connect()], connect()
    for raw, words in zip(waiters, (("BLPOP", "k", 0), ("BZPOPMIN", "k", 0))):
        raw.send(encode(*words))
    blocked(asker, 2)
    for words in (("SELECT", 1), ("SET", "k", "a string"), ("SWAPDB", 0, 1), ("DEL", "k"),
                  ("SET", "k", "another"), ("SWAPDB", 0, 1)):
        asker.call(*words)
    assert all(silent(raw) for raw in waiters)
    for words in (("SELECT", 0), ("DEL", "k"), ("RPUSH", "k", "x"), ("ZADD", "k", 1, "m")):
        asker.call(*words)
    assert waiters[0].reply() == bulks("k", "x")
    waiters[1].close()
    # Others may be faster than who was woken: he does not hear of what they do.
    for _ in range(50):
        asker.call("DEL", "k")
        waiters[0].send(encode("BLPOP", "k", 0))
        blocked(asker, 1)
        asker.send(b"".join(encode(*words) for words in (
            ("RPUSH", "k", "y"), ("DEL", "k"), ("SET", "k", "v"), ("DEL", "k"), ("RPUSH", "k", "z"))))
        assert waiters[0].reply() in (bulks("k", "y"), bulks("k", "z"))
        assert all(asker.reply()[:1] in b":+" for _ in range(5))


def test_chains_of_moves(connect):  # noqa: F811
    asker, waiters = connect(), [connect() for _ in range(6)]
    for i, raw in enumerate(waiters):
        raw.send(encode("BLMOVE", f"l{i}", f"l{i + 1}", "LEFT", "RIGHT", 0))
        blocked(asker, i + 1)
    asker.call("RPUSH", "l0", "x")
    for raw in waiters:
        assert raw.reply() == b"$1\r\nx\r\n"
    assert asker.call("LRANGE", "l6", 0, -1) == bulks("x")
    waiters[0].send(encode("BLMOVE", "l0", "wrong", "LEFT", "LEFT", 0))
    blocked(asker, 1)
    asker.call("SET", "wrong", 1)
    waiters[1].send(encode("BLPOP", "l0", 0))
    blocked(asker, 2)
    asker.call("RPUSH", "l0", "y")
    assert waiters[0].reply().startswith(b"-WRONGTYPE")
    assert waiters[1].reply() == bulks("l0", "y")


def test_who_goes_away_takes_nothing(connect):  # noqa: F811
    asker, waiters = connect(), [connect() for _ in range(6)]
    for i, raw in enumerate(waiters):
        raw.send(encode("BLPOP", "k", 0))
        blocked(asker, i + 1)
    waiters[0].close()
    waiters[2].close()
    blocked(asker, 4)
    asker.call("RPUSH", "k", 1, 2, 3, 4)
    for i, value in ((1, "1"), (3, "2"), (4, "3"), (5, "4")):
        assert waiters[i].reply() == bulks("k", value)


def test_unblock_and_timeouts_while_elements_come(connect):  # noqa: F811
    """Every element is received once, by any client, however the waits end."""
    producers, consumers, killers = 3, 6, 1
    stop, errors, got = threading.Event(), [], []

    def consume(raw, number):
        try:
            mine = []
            while True:
                reply = raw.call("BLPOP", "q1", "q2", 0.002 * (number + 1))
                if reply.startswith(b"*2"):
                    value = reply.split(b"\r\n")[4]
                    if value == b"end":
                        break
                    mine.append(int(value))
            got.append(mine)
        except Exception as error:
            errors.append(error)

    def produce(raw, number):
        try:
            for i in range(300):
                raw.call("RPUSH", f"q{1 + i % 2}", number * 1000 + i)
        except Exception as error:
            errors.append(error)

    def unblock(raw, ids):
        while not stop.is_set():
            for number in ids:
                raw.call("CLIENT", "UNBLOCK", number, "ERROR")

    raws = [connect() for _ in range(consumers)]
    ids = [int(raw.call("CLIENT", "ID")[1:]) for raw in raws]
    takers = [threading.Thread(target=consume, args=(raw, i)) for i, raw in enumerate(raws)]
    makers = [threading.Thread(target=produce, args=(connect(), i)) for i in range(producers)]
    others = [threading.Thread(target=unblock, args=(connect(), ids)) for _ in range(killers)]
    for thread in takers + makers + others:
        thread.start()
    for thread in makers:
        thread.join()
    stop.set()
    asker = connect()
    for thread in others:
        thread.join()
    for _ in range(consumers):
        asker.call("RPUSH", "q2", "end")
    for thread in takers:
        thread.join()
    assert errors == []
    # What one producer has put into one queue comes to each consumer in its order.
    for mine in got:
        for producer in range(producers):
            for parity in range(2):
                mine_of = [v for v in mine if v // 1000 == producer and v % 2 == parity]
                assert mine_of == sorted(mine_of)
    assert sorted(v for mine in got for v in mine) == [
        p * 1000 + i for p in range(producers) for i in range(300)]
    assert b"blocked_clients:0\r\n" in asker.call("INFO", "clients")


def test_equal_blocking_commands_in_one_packet(make_server):
    """They are copied one by one, and are no batch."""
    server = make_server()
    with server.raw() as raw:
        raw.send(encode("RPUSH", "q", 1, 2, 3) + encode("BLPOP", "q", 0) * 4)
        assert raw.reply() == b":3\r\n"
        for i in b"1", b"2", b"3":
            assert raw.reply() == b"*2\r\n$1\r\nq\r\n$1\r\n" + i + b"\r\n"
        server.client().rpush("q", 4)
        assert raw.reply() == b"*2\r\n$1\r\nq\r\n$1\r\n4\r\n"


@pytest.mark.vellum
@pytest.mark.parametrize("wait, push, taken", [
    (("BLPOP", "a", "b", 0), ("RPUSH", "b", "1"), ("LLEN", "b")),
    (("BRPOP", "a", "b", 0), ("RPUSH", "b", "1"), ("LLEN", "b")),
    (("BLMPOP", 0, 2, "a", "b", "LEFT"), ("RPUSH", "b", "1"), ("LLEN", "b")),
    (("BZPOPMIN", "a", "b", 0), ("ZADD", "b", 1, "m"), ("ZCARD", "b")),
    (("BZMPOP", 0, 2, "a", "b", "MAX"), ("ZADD", "b", 1, "m"), ("ZCARD", "b")),
], ids=lambda words: str(words[0]))
def test_a_key_of_another_type_before_the_one_with_an_element(connect, wait, push, taken):
    """As in Redis 7.2; 7.0 passes over it. The next one that waits gets the element."""
    asker, first, second = connect(), connect(), connect()
    first.send(encode(*wait))
    blocked(asker, 1)
    second.send(encode(*[word if word != "a" else "c" for word in wait]))
    blocked(asker, 2)
    asker.call("SET", "a", "x")
    blocked(asker, 2)
    asker.call(*push)
    assert first.reply().startswith(b"-WRONGTYPE")
    assert b"b" in second.reply()
    assert asker.call(*taken) == b":0\r\n"
    first.send(encode(*wait))
    assert first.reply().startswith(b"-WRONGTYPE")


@pytest.mark.vellum
@pytest.mark.parametrize("mode", ["OFF", "SKIP"])
def test_client_reply_does_not_concern_what_has_ended_before_it(make_server, mode):
    """The element comes, and CLIENT REPLY behind it, while the worker is busy elsewhere."""
    server = make_server(enable_debug_command="yes")
    with server.raw() as waiter, server.raw() as sleeper, server.raw() as other:
        for _ in range(5):
            waiter.send(encode("BLPOP", "q", 0))
            blocked(other, 1)
            sleeper.send(encode("DEBUG", "SLEEP", "0.2"))
            time.sleep(0.05)
            other.send(encode("RPUSH", "q", "x"))
            time.sleep(0.05)
            waiter.send(encode("CLIENT", "REPLY", mode))
            assert waiter.reply() == bulks("q", "x")
            assert sleeper.reply() == b"+OK\r\n" and other.reply() == b":1\r\n"
            waiter.send(encode("PING") if mode == "SKIP" else encode("CLIENT", "REPLY", "ON"))
            if mode == "OFF":
                assert waiter.reply() == b"+OK\r\n"
            assert waiter.call("PING") == b"+PONG\r\n"
