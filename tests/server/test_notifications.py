"""Keyspace notifications: which events, in which order, and those that no command makes."""

import time

import pytest
import redis

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
    ("SET a 1 IFEQ 1",),
    ("SET a 2 IFEQ 2 KEEPTTL", "set a"),
    ("DELIFEQ a 1",),
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
    ("SET b 1", "new b", "set b"),
    ("DELIFEQ b 1", "del b"),
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
    ("SADD m a b", "new m", "sadd m"),
    ("SINTERSTORE to x1 m x2", "keymiss x1", "keymiss x2"),
    ("SUNIONSTORE to m x1", "keymiss x1", "new to", "sunionstore to"),
    ("SDIFFSTORE to m x1 to", "keymiss x1", "del to"),
    ("ZUNIONSTORE zs 2 m x1", "keymiss x1", "new zs", "zunionstore zs"),
    ("GEOADD geo 15 37 C", "new geo", "zadd geo"),
    ("GEOADD geo NX 15 38 C",),
    ("GEOADD geo 15 38 C", "zadd geo"),
    ("GEOSEARCHSTORE near geo FROMMEMBER C BYRADIUS 1 km", "new near", "geosearchstore near"),
    ("GEORADIUS geo 15 38 1 km STORE near", "georadiusstore near"),
    ("GEORADIUSBYMEMBER geo C 1 km STOREDIST near COUNT 1", "georadiusstore near"),
    ("GEORADIUSBYMEMBER geo C 1 km",),
    ("GEORADIUS geo 0 0 1 km STORE near", "del near"),
    ("GEOSEARCHSTORE geo x1 FROMMEMBER C BYRADIUS 1 km", "keymiss x1", "del geo"),
    ("ZINTERSTORE to 2 x1 m", "keymiss x1"),
    ("ZDIFFSTORE to 2 x1 zs", "keymiss x1"),
    ("ZRANGESTORE to x1 0 -1", "keymiss x1"),
    ("ZINTERCARD 2 x1 zs", "keymiss x1"),
    ("PFMERGE p1 hll x1", "keymiss p1", "keymiss x1", "new p1", "pfadd p1"),
    ("PFMERGE p1 hll", "pfadd p1"),
    ("PFCOUNT x1 hll", "keymiss x1"),
    ("RPUSH l 3 1", "new l", "rpush l"),
    ("SET w1 5", "new w1", "set w1"),
    ("SORT x1", "keymiss x1"),
    ("SORT_RO x1", "keymiss x1"),
    ("SORT l BY w* GET x*->f GET # GET w* STORE to", "keymiss w3", "keymiss x3", "keymiss w3",
     "keymiss x1", "new to", "sortstore to"),
    ("SORT_RO l BY nosort GET w*", "keymiss w3"),
    ("DUMP x1", "keymiss x1"),
    ("MEMORY USAGE x1",),
    ("LMOVE x1 l LEFT LEFT",),
    ("SMOVE x1 m a",),
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


LOOKUPS = [  # (a command, its keyspace hits, its misses)
    ("SINTERSTORE to s x s", 2, 1), ("SUNIONSTORE to s x", 1, 1), ("SDIFFSTORE s s x y", 1, 2),
    ("ZUNIONSTORE to 3 z s x", 2, 1), ("ZINTERSTORE to 2 x z", 1, 1), ("ZDIFFSTORE to 2 z x", 1, 1),
    ("ZRANGESTORE to z 0 -1", 1, 0), ("ZRANGESTORE to x 0 -1", 0, 1), ("ZRANGESTORE z z 9 9", 1, 0),
    ("PFMERGE x hll", 1, 1), ("PFMERGE x", 1, 0), ("PFADD x a", 0, 0), ("PFCOUNT x y", 1, 1),
    ("SORT l BY w* GET h*->f GET w*", 4, 3), ("SORT_RO l BY w*", 2, 1), ("SORT l", 1, 0),
    ("SORT k", 1, 0), ("SORT_RO k", 1, 0), ("SORT l BY nosort GET w* STORE l", 2, 1),
    ("DUMP k", 1, 0), ("DUMP s", 1, 0), ("DUMP l", 1, 0), ("DUMP h1", 1, 0), ("DUMP y", 0, 1),
    ("COPY k k2", 1, 0), ("COPY y k2", 0, 1), ("BITOP AND to k y", 1, 1), ("BITFIELD k GET u8 0", 1, 0),
    ("BITFIELD k SET u8 0 1", 0, 0), ("SET k v GET", 1, 0), ("SET k v NX", 0, 0), ("GETEX y", 0, 1),
    ("LMOVE l l2 LEFT LEFT", 0, 0), ("SMOVE s s2 a", 0, 0), ("MEMORY USAGE k", 0, 0),
    ("SCAN 0 MATCH [kw]* TYPE string COUNT 100", 3, 0), ("SCAN 0 COUNT 100", 0, 0),
    ("SPOP s2", 0, 0), ("SPOP s 5", 1, 0),
]


def test_lookups_are_counted(client):
    for line in ("SADD s a b", "ZADD z 1 a", "PFADD hll a", "RPUSH l 1 3", "SET w1 1", "HSET h1 f 1",
                 "SET k v"):
        client.execute_command(*line.split())
    for line, hits, misses in LOOKUPS:
        client.config_resetstat()
        try:
            client.execute_command(*line.split())
        except redis.ResponseError as error:
            assert line.endswith(" k") and "WRONGTYPE" in str(error), line
        stats = client.info("stats")
        assert (stats["keyspace_hits"], stats["keyspace_misses"]) == (hits, misses), line


def test_a_sort_looks_all_weights_up_before_it_refuses_one(make_watcher, connect, client):  # noqa: F811
    client.rpush("l", 1, 2, 3)
    client.set("w1", "no number")
    watcher = make_watcher("Em")
    with pytest.raises(redis.ResponseError, match="can't be converted into double"):
        client.sort("l", by="w*", get="x*")
    assert [watcher.event() for _ in range(2)] == ["keymiss w2", "keymiss w3"]
    assert client.get("absent") is None and watcher.event() == "keymiss absent"


@pytest.mark.vellum
def test_a_sort_notifies_the_first_4096_misses(make_watcher, connect, client):  # noqa: F811
    client.rpush("l", *range(5000))
    watcher = make_watcher("Em")
    client.config_resetstat()
    assert client.sort("l", by="w*", start=0, num=1) == [b"0"]
    assert client.info("stats")["keyspace_misses"] == 5000
    assert [watcher.event() for _ in range(4096)] == [f"keymiss w{i}" for i in range(4096)]
    assert client.get("absent") is None and watcher.event() == "keymiss absent"


def test_a_sort_in_steps_counts_each_lookup_once(make_watcher, connect, client):  # noqa: F811
    """Those of earlier steps, and of runs that had to wait, too."""
    count = 3000
    for i in range(0, count, 1000):
        client.rpush("l", *range(i, i + 1000))
    client.mset({f"w{i}": -i for i in range(0, count, 2)})
    watcher = make_watcher("Em")
    client.config_resetstat()
    got = client.sort("l", by="w*", get=["#", "w*"])
    assert got[:3] == [b"2998", b"-2998", b"2996"] and len(got) == 2 * count
    stats = client.info("stats")
    assert (stats["keyspace_hits"], stats["keyspace_misses"]) == (1 + count, count)
    missed = [f"keymiss w{i}" for i in range(1, count, 2)]
    in_order = [f"keymiss w{int(i)}" for i in got[::2] if int(i) % 2 == 1]
    assert [watcher.event() for _ in range(count)] == missed + in_order


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


@pytest.mark.parametrize("change", ["'PERSIST', KEYS[1]", "'APPEND', KEYS[1], 'x'", "'EXPIRE', KEYS[1], 100"])
def test_a_key_that_a_script_keeps_has_not_expired(make_watcher, connect, change):  # noqa: F811
    """Within a script no time passes, even if its key would have expired meanwhile."""
    watcher, raw = make_watcher("Ex"), connect()
    script = f"""local value = redis.call('GET', KEYS[1])
                 for i = 1, 3e7 do end
                 redis.call({change})
                 redis.call('PERSIST', KEYS[1])
                 return value"""
    for tries in range(100):
        raw.call("SET", f"k{tries}", "x", "PX", 30)
        if raw.call("EVAL", script, 1, f"k{tries}") == b"$1\r\nx\r\n":
            break  # else the machine was so slow that it expired before
    assert raw.call("EXISTS", f"k{tries}") == b":1\r\n"
    raw.call("SET", "last", "x", "PX", 1)
    told = []
    while told[-1:] != ["expired last"]:
        told.append(watcher.event())
    assert f"expired k{tries}" not in told


def test_transactions_tell_when_they_are_done(make_watcher, connect):  # noqa: F811
    watcher, raw = make_watcher("E$g"), connect()
    raw.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("SET", "a", "1"), ("INCR", "a"), ("APPEND", "a", "x"), ("INCR", "a"),
        ("DEL", "a"), ("EXEC",), ("MULTI",), ("SET", "b", "1"), ("DISCARD",), ("SET", "c", "1"))))
    for _ in range(11):
        raw.reply()
    assert [watcher.event() for _ in range(5)] == [
        "set a", "incrby a", "append a", "del a", "set c"]
