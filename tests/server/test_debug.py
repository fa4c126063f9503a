"""DEBUG: what a reload keeps, which clients may use it, and what its subcommands reply."""

import os
import threading
import time

import pytest
import redis

from harness import IS_REDIS, encode, eventually
from test_dump import TWO_IDS, UNKNOWN, consumer, group, sealed, stream

ZEROS = b"0" * 40


def flat(reply):
    return reply if isinstance(reply, bytes) else str(reply).encode()


@pytest.fixture
def debugged(make_server):
    return make_server(enable_debug_command="yes")


@pytest.fixture
def client(debugged):
    return debugged.client()


def digest(client):
    return flat(client.execute_command("DEBUG", "DIGEST"))


def reload(client):
    assert flat(client.execute_command("DEBUG", "RELOAD")) in (b"OK", b"True")


def recovered(client):
    return client.info("everything").get("recovered_items")


def fill(client, prefix="k", count=500):
    """Values of every kind; what must be there."""
    kinds = {"empty": b"", "int": b"-17", "short": b"text", "zeros": b"\0" * 300,
             "page": b"p" * 4000, "large": bytes(range(256)) * 1024, "huge": b"h" * 3_000_000}
    found = {prefix + name: value for name, value in kinds.items()}
    found |= {f"{prefix}{i}": b"v%d" % i * (i % 90) for i in range(count)}
    pipe = client.pipeline(transaction=False)
    for key, value in found.items():
        pipe.set(key, value)
    pipe.execute()
    client.append(prefix + "large", b"tail")
    client.setrange(prefix + "huge", 2_000_000, b"middle")
    found[prefix + "large"] += b"tail"
    huge = bytearray(found[prefix + "huge"])
    huge[2_000_000:2_000_006] = b"middle"
    found[prefix + "huge"] = bytes(huge)
    return found


def check(client, found):
    keys = list(found)
    for key, value in zip(keys, client.mget(keys)):
        assert value == found[key], key
    assert client.dbsize() == len(found)


@pytest.mark.vellum
def test_a_reload_keeps_every_kind_of_value(client):
    found = fill(client)
    before = digest(client)
    for _ in range(3):
        reload(client)
        assert recovered(client) == len(found)
        assert client.info("everything")["recovered_from"] == "slabs"
        check(client, found)
        assert digest(client) == before


@pytest.mark.vellum
def test_what_is_written_and_deleted_after_a_reload_counts(debugged, client):
    found = fill(client)
    for turn in range(3):
        reload(client)
        client.set(f"new{turn}", b"n" * turn)
        found[f"new{turn}"] = b"n" * turn
        for i in range(turn * 50, turn * 50 + 50):
            assert client.delete(f"k{i}") == 1
            del found[f"k{i}"]
        client.set("klarge", b"L" * (200_000 + turn))
        found["klarge"] = b"L" * (200_000 + turn)
        client.append("khuge", b"more")
        found["khuge"] += b"more"
    check(client, found)
    reload(client)
    check(client, found)
    debugged.restart()
    check(debugged.client(), found)


@pytest.mark.vellum
def test_a_killed_server_keeps_what_was_written_after_a_reload(make_server):
    server = make_server(enable_debug_command="yes", appendfsync="always")
    client = server.client()
    found = fill(client, count=50)
    reload(client)
    client.set("after", "x" * 5000)
    found["after"] = b"x" * 5000
    assert client.delete("k1") == 1
    del found["k1"]
    server.kill9()
    server.start()
    check(server.client(), found)


@pytest.mark.vellum
def test_a_reload_keeps_when_keys_expire(client):
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    client.set("late", "v", px=5_000_000)
    client.set("large", b"x" * 100_000, px=5_000_000)
    client.set("stays", "v", px=5_000_000)
    client.persist("stays")
    client.set("soon", "v", px=50)
    at = {name: client.execute_command("PEXPIRETIME", name) for name in ("late", "large", "stays")}
    time.sleep(0.1)
    reload(client)
    assert {n: client.execute_command("PEXPIRETIME", n) for n in at} == at
    assert at["stays"] == -1
    assert client.get("soon") is None
    assert eventually(lambda: client.info("keyspace")["db0"]["expires"] == 2)
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert client.dbsize() == 3


@pytest.mark.vellum
def test_a_reload_keeps_flushed_and_swapped_databases(debugged, client):
    dbs = [debugged.client(db=i) for i in range(4)]
    found = [fill(c, prefix=f"db{i}-", count=60) for i, c in enumerate(dbs)]
    dbs[1].flushdb()
    client.swapdb(0, 2)
    dbs[1].set("again", "1")
    dbs[3].move("db3-5", 1)
    expected = [found[2], {"again": b"1", "db3-5": found[3]["db3-5"]}, found[0],
                {k: v for k, v in found[3].items() if k != "db3-5"}]
    for _ in range(2):
        reload(client)
        for c, values in zip(dbs, expected):
            check(c, values)
    client.flushall()
    reload(client)
    assert [c.dbsize() for c in dbs] == [0] * 4
    assert recovered(client) == 0
    assert digest(client) == ZEROS


@pytest.mark.vellum
def test_a_reload_of_nothing(client):
    reload(client)
    assert client.dbsize() == 0
    assert client.get("k") is None
    client.set("k", "v")
    reload(client)
    assert client.get("k") == b"v"


@pytest.mark.vellum
def test_reloads_under_load_lose_nothing(debugged, client):
    """Writers and readers of many connections go on; each sees its own counter rise by one."""
    stop, wrong = threading.Event(), []

    def count(i):
        c = debugged.client()
        n = 0
        try:
            while not stop.is_set():
                n += 1
                c.set(f"value{i}", b"%d " % n * (1 + n * 37 % 900))
                if c.incr(f"counter{i}") != n or not c.get(f"value{i}").startswith(b"%d " % n):
                    wrong.append((i, n))
                c.mget([f"value{j}" for j in range(6)])
        except Exception as error:  # noqa: BLE001
            wrong.append((i, error))

    threads = [threading.Thread(target=count, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            reload(client)
            time.sleep(0.03)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert client.dbsize() == 12


@pytest.mark.vellum
def test_two_reloads_at_once_take_turns(debugged, client):
    found = fill(client, count=100)
    errors = []

    def work():
        try:
            for _ in range(4):
                reload(debugged.client())
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    check(client, found)


def test_options_of_reload(client):
    for options in (["NOSAVE"], ["MERGE", "NOFLUSH"]):
        client.execute_command("DEBUG", "RELOAD")
        client.execute_command("DEBUG", "RELOAD", *options)
    with pytest.raises(redis.ResponseError, match="only supports the MERGE, NOFLUSH and NOSAVE"):
        client.execute_command("DEBUG", "RELOAD", "NOW")


def test_reads_delete_what_has_expired(client):
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    for i in range(5):
        client.set(f"k{i}", "v", px=30)
    time.sleep(0.1)
    assert client.dbsize() == 5
    assert client.mget(["k0", "k1"]) == [None, None]
    assert eventually(lambda: client.dbsize() == 3)
    time.sleep(0.3)
    assert client.dbsize() == 3
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert eventually(lambda: client.dbsize() == 0)


def test_digests_tell_states_apart(client):
    assert digest(client) == ZEROS
    seen = {ZEROS}
    for change in (("SET", "a", "1"), ("SET", "b", "1"), ("SET", "a", "2"), ("EXPIRE", "a", "900"),
                   ("RENAME", "b", "c"), ("SET", "d", "x" * 200_000), ("SETRANGE", "d", "150000", "y"),
                   ("MOVE", "c", "3")):
        client.execute_command(*change)
        now = digest(client)
        assert len(now) == 40 and now not in seen, change
        seen.add(now)
    client.setrange("d", 150000, "x")
    first, second, third = client.execute_command("DEBUG", "DIGEST-VALUE", "d", "none", "a")
    client.set("e", "x" * 200_000)
    assert flat(first) == flat(client.execute_command("DEBUG", "DIGEST-VALUE", "e")[0])
    assert flat(second) == ZEROS
    assert flat(third) not in (ZEROS, flat(first))


def with_groups(name=b"g", last=(6, 0), pending=TWO_IDS, alice=b"alice", times=(1000, 900),
                owners=((5, 1), (6, 0)), read=3):
    consumers = [consumer(alice, times[0], owners[:1], times[1]),
                 consumer(b"bob", 3000, owners[1:], -1)]
    groups = [group(b"another", (0, 0), [], [], UNKNOWN), group(name, last, pending, consumers, read)]
    return sealed(stream(21, [], 0, (9, 0), groups), 11)


@pytest.mark.skipif(IS_REDIS, reason="Redis's digest has the entries alone")
def test_digests_of_consumer_groups(client):
    """Two streams that are alike have numbered their groups and consumers apart."""
    client.restore("s", 0, with_groups())
    client.restore("again", 0, with_groups())
    client.copy("s", "copy")
    assert len(set(client.execute_command("DEBUG", "DIGEST-VALUE", "s", "again", "copy"))) == 1
    others = {"name": b"h", "last": (6, 1), "read": UNKNOWN, "alice": b"alicf",
              "pending": [TWO_IDS[0], ((6, 0), 2001, 3)], "owners": ((6, 0), (5, 1))}
    payloads = [with_groups(**{name: value}) for name, value in others.items()]
    payloads += [with_groups(times=times) for times in ((1001, 900), (1000, 901))]
    payloads.append(with_groups(pending=[TWO_IDS[0], ((6, 0), 2000, 4)]))
    for i, payload in enumerate(payloads):
        client.restore(f"s{i}", 0, payload)
    keys = ["s", *[f"s{i}" for i in range(len(payloads))]]
    assert len(set(client.execute_command("DEBUG", "DIGEST-VALUE", *keys))) == len(keys)


@pytest.mark.skipif(IS_REDIS, reason="Redis's digest has the entries alone")
def test_digests_of_many_pending_entries(client):
    ids = [(i, 0) for i in range(1, 6001)]
    for key, odd in (("s", 2000), ("again", 2000), ("apart", 2001)):
        pending = [(which, 1000, odd if which[0] == 6000 else 1) for which in ids]
        owners = [consumer(b"%03d" % i, 1, ids[50 * i:50 * i + 50]) for i in range(120)]
        groups = [group(name, (9, 9), pending, owners, 0) for name in (b"a", b"b")]
        client.restore(key, 0, sealed(stream(19, [], 0, (9, 0), groups)))
    first, second, third = client.execute_command("DEBUG", "DIGEST-VALUE", "s", "again", "apart")
    assert first == second != third


def test_digests_of_much_leave_others_their_turn(debugged, client):
    names = [b"m%d" % i for i in range(60000)]
    for at in range(0, len(names), 10000):
        client.sadd("up", *names[at:at + 10000])
        client.sadd("down", *reversed(names[50000 - at:60000 - at]))
        client.rpush("list", *names[at:at + 10000])
    before = digest(client)
    values = [flat(v) for v in client.execute_command("DEBUG", "DIGEST-VALUE", "up", "down", "list")]
    assert values[0] == values[1] != values[2]
    other = debugged.client()
    other.ping()
    with debugged.raw() as raw:
        raw.send(encode("DEBUG", "DIGEST"))
        raw.socket.setblocking(False)
        pings = 0
        while True:
            other.ping()
            try:
                assert raw.socket.recv(100) == b"+" + before + b"\r\n"
                break
            except BlockingIOError:
                pings += 1
    assert pings > 3
    client.srem("up", names[-1])
    assert flat(client.execute_command("DEBUG", "DIGEST-VALUE", "up")[0]) != values[0]


def test_object_says_how_a_value_is_kept(client):
    for value, encoding in (("12", "int"), ("short", "embstr"), ("l" * 100, "raw")):
        client.set("k", value)
        said = client.execute_command("DEBUG", "OBJECT", "k")
        said = said if isinstance(said, dict) else str(said)
        assert encoding in str(said) and "serializedlength" in str(said)
    with pytest.raises(redis.ResponseError, match="no such key"):
        client.execute_command("DEBUG", "OBJECT", "none")


def test_the_sum_of_floats_stays_text(client):
    client.set("k", "1")
    assert client.incrbyfloat("k", 1) == 2 and client.object("encoding", "k") == b"embstr"
    assert client.copy("k", "copy") and client.object("encoding", "copy") == b"embstr"
    assert client.incr("k") == 3 and client.object("encoding", "k") == b"int"
    assert client.incrbyfloat("copy", 1e40) and client.object("encoding", "copy") == b"embstr"


def test_a_string_changed_in_place_is_raw_from_then_on(client):
    def encoding(key):
        return flat(client.object("encoding", key))

    for change in (("APPEND", "k", "5"), ("SETRANGE", "k", "0", "7"), ("SETBIT", "k", "7", "0"),
                   ("BITFIELD", "k", "SET", "u8", "0", "55"), ("BITOP", "AND", "k", "k")):
        client.set("k", "1234")
        assert encoding("k") == b"int"
        client.execute_command(*change)
        assert encoding("k") == b"raw", change
        assert client.type("k") == b"string"
    client.copy("k", "copy")
    client.rename("k", "renamed")
    client.expire("renamed", 1000)
    assert encoding("copy") == encoding("renamed") == b"raw"
    assert client.incr("renamed") > 0
    assert encoding("renamed") == b"int"
    client.append("fresh", "12")
    assert encoding("fresh") == b"int"
    client.setrange("ranged", 0, "12")
    assert encoding("ranged") == b"raw"


def test_object_tells_how_long_it_would_be_saved(client):
    def length(value):
        client.set("k", value)
        said = client.execute_command("DEBUG", "OBJECT", "k")
        return said["serializedlength"] if isinstance(said, dict) else \
            int(str(said).split("serializedlength:")[1].split()[0])

    for value, wanted in (("", 1), ("bar", 4), ("12", 2), ("-300", 3), ("70000", 5),
                          ("12345678901", 12), (bytes(range(63)), 64), (bytes(range(64)), 66),
                          (os.urandom(20000), 20005)):
        assert length(value) == wanted, value
    for value in ("a" * 1000, b"\0" * 100_000, "abcabcabcabcabcabcabcabc"):
        assert length(value) == len(client.dump("k")) - 11, value


def test_small_numbers_have_many_references(make_server):
    client = make_server(maxmemory="128mb").client()
    many = 2147483647

    def references():
        return client.object("refcount", "k")

    for value, wanted in ((0, many), (9999, many), (10000, 1), (-1, 1), ("01", 1), ("x", 1)):
        client.set("k", value)
        assert references() == wanted, value
    client.set("k", 9999)
    assert client.incr("k") == 10000 and references() == 1
    assert client.decr("k") == 9999 and references() == many
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.set("k", 1)
    assert references() == 1
    client.config_set("maxmemory-policy", "allkeys-random")
    client.set("k", 1)
    assert references() == many
    client.delete("k")
    client.rpush("k", 1)
    assert references() == 1


def test_populate_makes_keys_that_are_not_there(client):
    client.set("key:3", "mine")
    assert flat(client.execute_command("DEBUG", "POPULATE", 1000)) in (b"OK", b"True")
    assert client.dbsize() == 1000
    assert client.mget("key:0", "key:3", "key:999") == [b"value:0", b"mine", b"value:999"]
    client.execute_command("DEBUG", "POPULATE", 3, "other", 10)
    assert client.mget("other:0", "other:2") == [b"value:0\0\0\0", b"value:2\0\0\0"]
    client.execute_command("DEBUG", "POPULATE", 2, "cut", 3)
    assert client.get("cut:1") == b"val"
    client.execute_command("DEBUG", "POPULATE", 2, "p" * 200)
    assert client.get("p" * 127) == b"value:0"
    assert client.dbsize() == 1006
    for words in (["x"], ["-1"], ["1", "p", "x"], ["1", "p", "-1"], ["1", "p", "1", "1"]):
        with pytest.raises(redis.ResponseError):
            client.execute_command("DEBUG", "POPULATE", *words)
    assert client.dbsize() == 1006


@pytest.mark.vellum
def test_populate_of_more_than_memory_has_room_for_makes_nothing(client):
    with pytest.raises(redis.ResponseError, match="^OOM"):
        client.execute_command("DEBUG", "POPULATE", 10_000_000, "p", 10_000)
    assert client.dbsize() == 0
    client.execute_command("DEBUG", "POPULATE", 20_000, "p", 100)
    assert client.dbsize() == 20_000
    assert client.strlen("p:19999") == 100


@pytest.mark.vellum
def test_populate_without_a_maxmemory(make_server):
    client = make_server(enable_debug_command="yes", maxmemory=0).client()
    client.execute_command("DEBUG", "POPULATE", 1000)
    assert client.dbsize() == 1000


def test_an_error_is_what_is_asked_for(debugged):
    with debugged.raw() as raw:
        assert raw.call("DEBUG", "ERROR", "CODE some text") == b"-CODE some text\r\n"
        assert raw.call("DEBUG", "ERROR", "a\r\nb") == b"-a  b\r\n"
        assert raw.call("DEBUG", "ERROR", "") == b"-\r\n"
        assert raw.call("PING") == b"+PONG\r\n"


def test_a_line_in_the_log(debugged, client):
    assert flat(client.execute_command("DEBUG", "LOG", "here I am")) in (b"OK", b"True")
    with open(debugged.log, encoding="utf-8") as log:
        assert "DEBUG LOG: here I am\n" in log.read()


@pytest.mark.vellum
def test_a_segfault_ends_the_server(make_server):
    server = make_server(enable_debug_command="yes", appendfsync="always")
    client = server.client()
    client.set("k", "v")
    with pytest.raises(redis.exceptions.ConnectionError):
        client.execute_command("DEBUG", "SEGFAULT")
    server.process.wait(60)
    server.start()
    assert server.client().get("k") == b"v"


def test_sleep_reads_as_much_of_a_number_as_there_is(client):
    for text in ("0", "0\r\n", "0.01 and more", "", "none", "-1"):
        assert flat(client.execute_command("DEBUG", "SLEEP", text)) in (b"OK", b"True")


def test_sleep_lets_others_wait(debugged):
    with debugged.raw() as sleeper, debugged.raw() as other:
        assert other.call("PING") == b"+PONG\r\n"
        began = time.monotonic()
        sleeper.send(encode("DEBUG", "SLEEP", "0.5"))
        time.sleep(0.1)
        assert other.call("SET", "k", "v") == b"+OK\r\n"
        assert time.monotonic() - began > 0.4
        assert sleeper.reply() == b"+OK\r\n"


def test_types_of_the_protocol(debugged):
    with debugged.raw() as raw:
        assert raw.call("DEBUG", "PROTOCOL", "map").startswith(b"*6\r\n")
        assert raw.call("HELLO", "3")
        for name, reply in (("bignum", b"(1234567999999999999999999999999999999\r\n"),
                            ("true", b"#t\r\n"), ("null", b"_\r\n"), ("double", b",3.141\r\n"),
                            ("verbatim", b"=29\r\ntxt:This is a verbatim\nstring\r\n"),
                            ("set", b"~3\r\n:0\r\n:1\r\n:2\r\n")):
            assert raw.call("DEBUG", "PROTOCOL", name) == reply, name
        assert raw.call("DEBUG", "PROTOCOL", "nothing").startswith(b"-ERR Wrong protocol type name")


def test_what_is_not_known_is_refused(client):
    for words in (["NO-SUCH"], ["SLEEP"], ["RELOAD", "x"], ["SET-ACTIVE-EXPIRE"]):
        with pytest.raises(redis.ResponseError):
            client.execute_command("DEBUG", *words)


@pytest.mark.parametrize("words", [["HELP"], ["RELOAD"], ["SLEEP", "0"], ["DIGEST"],
                                   ["DIGEST-VALUE", "k"], ["OBJECT", "k"], ["LOADAOF"],
                                   ["SET-ACTIVE-EXPIRE", "1"], ["PROTOCOL", "string"],
                                   ["POPULATE", "1"], ["ERROR", "x"], ["LOG", "x"], ["SEGFAULT"]])
def test_without_leave_nothing_is_done(make_server, words):
    client = make_server().client()
    with pytest.raises(redis.ResponseError) as refusal:
        client.execute_command("DEBUG", *words)
    assert "DEBUG command not allowed" in str(refusal.value)
    assert 'enable-debug-command option is set to "local"' in str(refusal.value)


@pytest.mark.sockets("the proxy comes from another address")
def test_local_clients_may_where_local_is_said(make_server):
    client = make_server(enable_debug_command="local").client()
    assert flat(client.execute_command("DEBUG", "PROTOCOL", "string")) == b"Hello World"


def test_stringmatch_len(make_server):
    client = make_server(enable_debug_command="yes").client()
    assert client.execute_command("DEBUG", "STRINGMATCH-LEN", "1000", "x*x") == 1
    assert client.execute_command("DEBUG", "STRINGMATCH-LEN", "100000", "*y") == 0


def test_lolwut_ends_with_the_version(client):
    assert b"\nRedis ver. 7.2." in client.execute_command("LOLWUT", "VERSION", "5")


def test_restore_without_a_look_at_the_checksum(client):
    client.set("k", "value")
    payload = bytearray(client.dump("k"))
    payload[-1] ^= 1
    with pytest.raises(redis.ResponseError, match="DUMP payload version or checksum are wrong"):
        client.restore("r", 0, bytes(payload))
    assert flat(client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)) in (b"OK", b"True")
    client.restore("r", 0, bytes(payload))
    assert client.get("r") == b"value"
    payload[-10:-8] = b"\xff\xff"  # the version counts all the same
    for bad in (bytes(payload), b"", b"123456789"):
        with pytest.raises(redis.ResponseError, match="DUMP payload version or checksum are wrong"):
            client.restore("s", 0, bad)
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 0)
    with pytest.raises(redis.ResponseError, match="checksum are wrong"):
        client.restore("s", 0, client.dump("k")[:-1] + b"\0\0")


def test_the_packed_threshold_is_a_size(client):
    for good in ("0", "100", "1gb", "10KB"):
        assert flat(client.execute_command("DEBUG", "QUICKLIST-PACKED-THRESHOLD", good)) in (b"OK", b"True")
    for bad in ("abc", "5gb", "1x", "4gb", "9" * 30, "1" * 100):
        with pytest.raises(redis.ResponseError, match="argument must be a memory value bigger than 1"):
            client.execute_command("DEBUG", "QUICKLIST-PACKED-THRESHOLD", bad)
