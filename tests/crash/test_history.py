"""The checker of acknowledged writes notices what it is there to notice."""

import os
import random
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness  # noqa: E402
import history  # noqa: E402


def told(name, operations, acknowledged):
    """A history whose operations were sent, and acknowledged, at the times given."""
    made = history.History(name, 0)
    made.operations = [commands for _, commands in operations]
    made.sent = [moment for moment, _ in operations]
    made.acknowledged = acknowledged
    return made


def set_to(key, value):
    return [(b"SET", key, value)]


ONE = told(b"a", [(1, set_to(b"a:k", b"1")), (3, set_to(b"a:k", b"2")),
                  (5, [(b"MSET", b"a:x", b"3", b"a:y", b"3")]),
                  (7, [(b"HSET", b"a:h", b"f", b"4"), (b"RPUSH", b"a:l", b"4")])], [2, 4, 6])
TWO = told(b"b", [(4.5, set_to(b"b:k", b"1")), (6.5, set_to(b"b:k", b"2"))], [4.8])
BOTH = {b"a:k": b"2", b"a:x": b"3", b"a:y": b"3", b"b:k": b"1"}


def faults(seen, certain=lambda writer: len(writer.acknowledged)):
    return " ".join(history.check([ONE, TWO], seen, certain))


def test_all_that_was_acknowledged_and_perhaps_more_is_there():
    assert faults(BOTH) == ""
    assert faults(BOTH | {b"a:h": {b"f": b"4"}, b"a:l": (b"4",), b"b:k": b"2"}) == ""


@pytest.mark.parametrize("change", [
    {b"a:k": b"1"},                     # older
    {b"a:k": b"5"},                     # never written
    {b"a:x": b"2"},                     # half an MSET
    {b"a:h": {b"f": b"4"}},             # half a transaction
    {b"a:h": {b"g": b"4"}, b"a:l": (b"4",)},
    {b"b:k": b""},
])
def test_what_no_first_operations_leave_is_noticed(change):
    assert "not what any first operations leave" in faults(BOTH | change)


def test_a_lost_operation_is_noticed():
    lost = {b"a:k": b"2", b"b:k": b"1"}
    assert "2 operations are there, 3 must be" in faults(lost)
    assert faults(lost, lambda _: 0) == ""


def test_what_is_left_is_a_prefix_over_all_writers():
    lost = {b"a:k": b"2", b"b:k": b"2"}
    assert "b: operation 2 is there, 3 of a is not" in faults(lost, lambda _: 0)


def test_keys_of_nobody_are_noticed():
    assert "nobody wrote" in faults(BOTH | {b"c": b""})


def test_what_operations_make_of_keys():
    state = {}
    for words in [(b"SETRANGE", b"s", b"2", b"xy"), (b"SETRANGE", b"s", b"1", b"z"),
                  (b"RPUSH", b"l", b"1", b"2", b"3"), (b"LTRIM", b"l", b"-2", b"-1"),
                  (b"HSET", b"h", b"f", b"1", b"g", b"2"), (b"HDEL", b"h", b"f", b"e"),
                  (b"HSET", b"gone", b"f", b"1"), (b"HDEL", b"gone", b"f"),
                  (b"MSET", b"m", b"1", b"n", b"2"), (b"DEL", b"n"), (b"DEL", b"none")]:
        history.apply_command(state, words)
    assert state == {b"s": b"\0zxy", b"l": (b"2", b"3"), b"h": {b"g": b"2"}, b"m": b"1"}


def follow(server):
    client = server.client()
    writer = history.History(b"w", random.randrange(1 << 30))
    for _ in range(40):
        with harness.Raw(server.port) as raw:
            for _ in range(100):
                sent, count = history.encode(writer.next())
                raw.send(sent)
                for _ in range(count):
                    reply = raw.reply()
                    assert reply[:1] != b"-", (writer.operations[-1], reply)
        seen = history.read_all(client)
        assert history.check([writer], seen, lambda writer: len(writer.operations)) == []
        writer.go_on(seen)


def test_the_model_is_what_a_server_does():
    """All kinds of operations, one at a time, and what is there after some."""
    server = harness.Server(1)
    server.start()
    try:
        follow(server)
    finally:
        server.stop()
