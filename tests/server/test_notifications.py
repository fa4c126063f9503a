"""Keyspace notifications: which events, in which order, and those that no command makes."""

import time

import pytest

from harness import encode
from test_pubsub import connect, push  # noqa: F401

pytestmark = pytest.mark.shared

ALL = "KEAmn"


class Watcher:
    def __init__(self, raw):
        self.raw = raw
        raw.call("PSUBSCRIBE", "__keyevent@*")

    def event(self):
        """The next event as "event key", database 0 not named."""
        parts = self.raw.reply().split(b"\r\n")
        channel, key = parts[6].decode(), parts[8].decode()
        db = channel[len("__keyevent@"):channel.index("_", 11)]
        return f"{channel.split(':', 1)[1]} {key}" + ("" if db == "0" else f" in {db}")


@pytest.fixture
def make_watcher(connect):  # noqa: F811
    def make(letters=ALL):
        connect().call("CONFIG", "SET", "notify-keyspace-events", letters)
        return Watcher(connect())

    return make


EVENTS = [
    ("SET a 1", "new a", "set a"),
    ("SET a 1 EX 100", "set a", "expire a"),
    ("SET a 2 KEEPTTL", "set a"),
    ("SET a 1 NX",),
    ("SETEX b 100 x", "new b", "set b", "expire b"),
    ("PSETEX b 100000 x", "set b", "expire b"),
    ("SETNX b x",),
    ("SETNX c x", "new c", "set c"),
    ("GETSET c y", "set c"),
    ("GETSET c2 y", "keymiss c2", "new c2", "set c2"),
    ("MSET c 1 d 2", "set c", "new d", "set d"),
    ("MSETNX c 1 e 2",),
    ("MSETNX e 1 f 2", "new e", "set e", "new f", "set f"),
    ("GETEX a", ),
    ("GETEX a PERSIST", "persist a"),
    ("GETEX a PERSIST", ),
    ("GETEX a EX 100", "expire a"),
    ("PERSIST a", "persist a"),
    ("PERSIST a",),
    ("EXPIRE a 100", "expire a"),
    ("EXPIREAT a 1", "del a"),
    ("EXPIRE a 100",),
    ("GETDEL b", "del b"),
    ("GETDEL b", "keymiss b"),
    ("GET b", "keymiss b"),
    ("MGET b c b", "keymiss b", "keymiss b"),
    ("EXISTS b", "keymiss b"),
    ("TTL b", "keymiss b"),
    ("OBJECT ENCODING b",),
    ("STRLEN c",),
    ("INCR n", "new n", "incrby n"),
    ("DECRBY n 5", "incrby n"),
    ("INCR c", "incrby c"),
    ("INCRBYFLOAT n 1.5", "incrbyfloat n"),
    ("APPEND s x", "new s", "append s"),
    ("APPEND s x", "append s"),
    ("SETRANGE s 5 x", "setrange s"),
    ("SETRANGE s2 5 x", "new s2", "setrange s2"),
    ("SETBIT s 7 1", "setbit s"),
    ("SETBIT s3 7 1", "new s3", "setbit s3"),
    ("BITFIELD s SET u8 0 1 GET u8 0 INCRBY u8 8 1", "setbit s"),
    ("BITFIELD s OVERFLOW FAIL INCRBY u8 800 300",),
    ("BITFIELD s OVERFLOW FAIL INCRBY u8 900 300 SET u8 0 1", "setbit s"),
    ("BITFIELD s4 OVERFLOW FAIL INCRBY u8 800 300", "new s4"),
    ("BITOP AND dest s s2", "new dest", "set dest"),
    ("BITOP AND dest s s2", "set dest"),
    ("BITOP AND dest nosuch", "keymiss nosuch", "del dest"),
    ("BITOP AND dest nosuch", "keymiss nosuch"),
    ("PFADD hll a", "new hll", "pfadd hll"),
    ("PFADD hll a",),
    ("PFDEBUG TODENSE hll",),
    ("RENAME s t", "new t", "rename_from s", "rename_to t"),
    ("RENAME t s3", "new s3", "rename_from t", "rename_to s3"),
    ("RENAME s3 s3",),
    ("RENAMENX s3 n",),
    ("COPY s3 u", "new u", "copy_to u"),
    ("COPY s3 n REPLACE", "new n", "copy_to n"),
    ("COPY s3 n",),
    ("COPY nosuch n", "keymiss nosuch"),
    ("COPY n n2 DB 3", "new n2 in 3", "copy_to n2 in 3"),
    ("MOVE n 3", "new n in 3", "move_from n", "move_to n in 3"),
    ("DEL u nosuch c", "del u", "del c"),
    ("UNLINK d", "del d"),
    ("FLUSHALL",),
    ("SET end x", "new end", "set end"),
]


def test_events_of_commands(make_watcher, connect):  # noqa: F811
    watcher, raw = make_watcher(), connect()
    for number, (line, *events) in enumerate(EVENTS):
        assert not raw.call(*line.split()).startswith(b"-"), line
        raw.call("SET", f"mark{number}", "x")
        got = []
        while not got or got[-1] != f"set mark{number}":
            got.append(watcher.event())
        assert got == [*events, f"new mark{number}", f"set mark{number}"], line


def test_channels_and_classes(connect):  # noqa: F811
    admin, raw, reader = connect(), connect(), connect()
    reader.call("SUBSCRIBE", "__keyspace@0__:k", "__keyevent@0__:set", "__keyevent@0__:del")
    reader.reply(), reader.reply()
    admin.call("CONFIG", "SET", "notify-keyspace-events", "KE$")
    assert admin.call("CONFIG", "GET", "notify-keyspace-events").endswith(b"$3\r\n$KE\r\n")
    raw.call("SET", "k", 1)
    raw.call("DEL", "k")
    assert reader.reply() == push("message", "__keyspace@0__:k", "set")
    assert reader.reply() == push("message", "__keyevent@0__:set", "k")
    admin.call("CONFIG", "SET", "notify-keyspace-events", "Kg$")
    raw.call("SET", "k", 1)
    raw.call("DEL", "k")
    assert reader.reply() == push("message", "__keyspace@0__:k", "set")
    assert reader.reply() == push("message", "__keyspace@0__:k", "del")
    admin.call("CONFIG", "SET", "notify-keyspace-events", "")
    raw.call("SET", "k", 1)
    admin.call("CONFIG", "SET", "notify-keyspace-events", "Eg")
    raw.call("DEL", "k")
    assert reader.reply() == push("message", "__keyevent@0__:del", "k")


def test_keys_that_expire(make_watcher, connect):  # noqa: F811
    watcher, raw = make_watcher("Ex"), connect()
    keys = [f"key:{i}" for i in range(200)]
    raw.send(b"".join(encode("SET", key, "x", "PX", 300) for key in keys))
    for _ in keys:
        raw.reply()
    assert sorted(watcher.event() for _ in keys) == sorted(f"expired {key}" for key in keys)


def test_what_comes_after_an_expired_key_is_told_after_it(make_watcher, connect):  # noqa: F811
    watcher, raw = make_watcher("Ex$gn"), connect()
    raw.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    for i in range(20):
        raw.call("SET", f"k{i}", "x", "PX", 1)
        assert [watcher.event() for _ in range(3)] == [f"new k{i}", f"set k{i}", f"expire k{i}"]
        time.sleep(0.005)
        if i % 2 == 0:
            assert raw.call("GET", f"k{i}") == b"$-1\r\n"
            assert watcher.event() == f"expired k{i}"
            raw.call("SET", f"k{i}", "y")
            assert [watcher.event() for _ in range(2)] == [f"new k{i}", f"set k{i}"]
        else:
            raw.call("SET", f"k{i}", "y")
            assert sorted(watcher.event() for _ in range(3)) == [
                f"expired k{i}", f"new k{i}", f"set k{i}"]


def test_transactions_tell_when_they_are_done(make_watcher, connect):  # noqa: F811
    watcher, raw = make_watcher("E$g"), connect()
    raw.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("SET", "a", "1"), ("INCR", "a"), ("APPEND", "a", "x"), ("INCR", "a"),
        ("DEL", "a"), ("EXEC",), ("MULTI",), ("SET", "b", "1"), ("DISCARD",), ("SET", "c", "1"))))
    for _ in range(11):
        raw.reply()
    assert [watcher.event() for _ in range(5)] == [
        "set a", "incrby a", "append a", "del a", "set c"]
