"""Transactions: MULTI, EXEC, DISCARD, WATCH, over partitions and workers."""

import random
import threading
import time

import pytest
import redis

import harness
from harness import encode, eventually
from test_concurrency import at_once

pytestmark = pytest.mark.shared

QUEUED = b"+QUEUED\r\n"
OK = b"+OK\r\n"
CHANGED = b"*-1\r\n"


def run(raw, *commands):
    """MULTI, the commands (each as words in one string or as a tuple), EXEC: EXEC's reply."""
    assert raw.call("MULTI") == OK
    for command in commands:
        words = command.split() if isinstance(command, str) else command
        assert raw.call(*words) == QUEUED, command
    return raw.call("EXEC")


@pytest.fixture
def raw(server):
    with server.raw() as connection:
        yield connection


# ---- queueing ----

@pytest.mark.parametrize("refused, error", [
    (("NOSUCH",), b"-ERR unknown command 'NOSUCH'"),
    (("GET",), b"-ERR wrong number of arguments for 'get' command"),
    (("CLIENT", "NOSUCH"), b"-ERR unknown subcommand 'NOSUCH'"),
    (("SHUTDOWN",), b"-ERR Command not allowed inside a transaction"),
    (("MULTI", "x"), b"-ERR wrong number of arguments for 'multi' command"),
])
def test_a_refused_command_aborts(raw, refused, error):
    raw.call("MULTI")
    assert raw.call("SET", "a", "1") == QUEUED
    assert raw.call(*refused).startswith(error)
    assert raw.call("SET", "b", "1") == QUEUED
    assert raw.call("EXEC") == b"-EXECABORT Transaction discarded because of previous errors.\r\n"
    assert raw.call("EXISTS", "a", "b") == b":0\r\n"
    assert raw.call("EXEC") == b"-ERR EXEC without MULTI\r\n"


def test_refusals_that_abort_nothing(raw):
    assert raw.call("DISCARD") == b"-ERR DISCARD without MULTI\r\n"
    raw.call("MULTI")
    assert raw.call("MULTI") == b"-ERR MULTI calls can not be nested\r\n"
    assert raw.call("WATCH", "a") == b"-ERR WATCH inside MULTI is not allowed\r\n"
    raw.call("SET", "a", "1")
    assert raw.call("EXEC") == b"*1\r\n+OK\r\n"


def test_a_wrong_exec_ends_the_transaction(raw):
    raw.call("MULTI")
    raw.call("SET", "a", "1")
    assert raw.call("EXEC", "a") == (b"-EXECABORT Transaction discarded because of: wrong number of "
                                     b"arguments for 'exec' command\r\n")
    assert raw.call("GET", "a") == b"$-1\r\n"
    assert raw.call("EXEC", "a").startswith(b"-EXECABORT"), "also without MULTI"


@pytest.mark.parametrize("end", ["DISCARD", "RESET"])
def test_forgotten(raw, end):
    raw.call("WATCH", "w")
    raw.call("SET", "w", "1")
    raw.call("MULTI")
    raw.call("SET", "a", "1")
    raw.call(end)
    assert raw.call("EXISTS", "a") == b":0\r\n"
    assert run(raw, "PING") == b"*1\r\n+PONG\r\n", "still watched"


def test_quit_does_not_run_what_is_queued(server, raw):
    raw.call("MULTI")
    raw.call("SET", "a", "1")
    assert raw.call("QUIT") == OK
    assert raw.closed()
    assert server.client().exists("a") == 0


def test_an_error_of_one_command_is_its_own(raw):
    assert run(raw, "SET a 1", "INCRBY a x", "APPEND a 2", "SETRANGE a -1 x", "GET a") == (
        b"*5\r\n+OK\r\n-ERR value is not an integer or out of range\r\n:2\r\n"
        b"-ERR offset is out of range\r\n$2\r\n12\r\n")


def test_empty(raw):
    assert run(raw) == b"*0\r\n"


def test_the_queue_is_bounded(make_server):
    server = make_server(client_query_buffer_limit="1mb")
    with server.raw() as raw:
        raw.call("MULTI")
        with pytest.raises((EOFError, ConnectionError)):
            for _ in range(100):
                assert raw.call("SET", "a", "x" * 20000) == QUEUED
    assert server.client().exists("a") == 0


# ---- running ----

def test_replies_of_any_size_in_their_places(raw):
    """Large values are streamed between the others."""
    values = [random.Random(n).randbytes(size) for n, size in
              enumerate([10, 200_000, 5000, 0, 1_000_000, 4096])]
    for n, value in enumerate(values):
        raw.call("SET", f"v{n}", value)
    expected = b"".join(b"$%d\r\n%s\r\n" % (len(v), v) for v in values)
    ping = b"$4\r\nback\r\n"
    everything = run(raw, "GET v0", "GET v1", "PING back", "MGET v0 v1 v2 v3 v4 v5",
                     "CLIENT GETNAME", "GET v4", "ECHO back")
    by_one = [b"$%d\r\n%s\r\n" % (len(values[n]), values[n]) for n in (0, 1, 4)]
    assert everything == (b"*7\r\n" + by_one[0] + by_one[1] + ping + b"*6\r\n" + expected +
                          b"$-1\r\n" + by_one[2] + ping)


def test_reads_leave_no_memory_behind(server, raw):
    """A queue of them takes what one of them takes."""
    raw.call("SETRANGE", "holes", 99_999, "x")
    raw.call("SET", "long", "x" * 50_000)
    before = server.peak_memory(reset=True)
    reply = run(raw, *["BITCOUNT holes", "BITCOUNT long"] * 2000)
    assert reply == b"*4000\r\n" + b":4\r\n:200000\r\n" * 2000
    assert server.peak_memory() < before + (100 << 20)


def test_reads_between_writes_of_a_collection(raw):
    """A node that one command has changed and others read, with yet others between."""
    raw.call("ZADD", "z", *[word for n in range(3000) for word in (n, f"m{n:04}")])
    raw.call("SET", "long", "x" * 100_000)
    queue = []
    for n in range(20):
        queue += [f"ZADD z {n}.5 n{n}"] + [f"ZSCORE z m{n:04}", "GETRANGE long 0 5000"] * 3
    shown = b"$5001\r\n" + b"x" * 5001 + b"\r\n"
    assert run(raw, *queue) == b"*140\r\n" + b"".join(
        b":1\r\n" + (b"$%d\r\n%d\r\n" % (len(str(n)), n) + shown) * 3 for n in range(20))
    assert raw.call("ZRANGE", "z", 0, 3) == (
        b"*4\r\n$5\r\nm0000\r\n$2\r\nn0\r\n$5\r\nm0001\r\n$2\r\nn1\r\n")


def test_own_writes_are_seen(raw):
    assert run(raw, "SET a 1", "INCR a", "GET a", "DEL a", "EXISTS a", "SET a 3",
               "RENAME a b", "GET b") == (
        b"*8\r\n+OK\r\n:2\r\n$1\r\n2\r\n:1\r\n:0\r\n+OK\r\n+OK\r\n$1\r\n3\r\n")


def test_flushes_and_swaps_take_their_place(raw):
    raw.call("SET", "k", "old")
    raw.call("SET", "other", "old")
    assert run(raw, "GET k", "FLUSHDB", "GET k", "DBSIZE", "SET k new", "SET l new", "DBSIZE",
               "SWAPDB 0 1", "EXISTS k", "SET k last", "KEYS *", "SELECT 1", "GET k", "DBSIZE",
               "DEL l", "RANDOMKEY") == \
        b"*16\r\n$3\r\nold\r\n+OK\r\n$-1\r\n:0\r\n+OK\r\n+OK\r\n:2\r\n+OK\r\n:0\r\n+OK\r\n" \
        b"*1\r\n$1\r\nk\r\n+OK\r\n$3\r\nnew\r\n:2\r\n:1\r\n$1\r\nk\r\n"
    assert raw.call("SELECT", "0") == b"+OK\r\n"
    assert raw.call("GET", "k") == b"$4\r\nlast\r\n"
    assert raw.call("DBSIZE") == b":1\r\n"


def test_own_large_writes_are_read(raw):
    """A value that is not on the disk yet cannot be streamed from there."""
    value = b"x" * 300_000
    raw.call("SET", "old", value)
    assert run(raw, ("SET", "a", value), "GET a", "APPEND old y", "GET old") == (
        b"*4\r\n+OK\r\n$300000\r\n%s\r\n:300001\r\n$300001\r\n%sy\r\n" % (value, value))


def test_select_counts_for_what_follows(raw):
    raw.call("SET", "a", "zero")
    assert run(raw, "SELECT 3", "SET a three", "SELECT 99", "GET a", "SELECT 0", "GET a",
               "SELECT 5") == (
        b"*7\r\n+OK\r\n+OK\r\n-ERR DB index is out of range\r\n$5\r\nthree\r\n+OK\r\n"
        b"$4\r\nzero\r\n+OK\r\n")
    assert raw.call("GET", "a") == b"$-1\r\n"
    assert raw.call("SET", "a", "five") == OK
    raw.call("SELECT", "3")
    assert raw.call("GET", "a") == b"$5\r\nthree\r\n"


def test_hello_counts_for_what_follows(raw):
    reply = run(raw, "GET absent", "HELLO 3", "GET absent")
    assert reply.startswith(b"*3\r\n$-1\r\n%7\r\n") and reply.endswith(b"_\r\n")
    assert raw.call("GET", "absent") == b"_\r\n"


def test_commands_without_transaction_run_once(server, raw):
    """With values that have to be waited for before and behind them."""
    cold(server, raw, 8)
    victim = server.client()
    number = victim.client_id()
    reply = run(raw, "GET cold0", "CLIENT SETNAME me", f"CLIENT KILL ID {number}", "GET cold1",
                "CLIENT GETNAME", "SET cold2 x", "CONFIG GET port", "GET cold3")
    assert b"+OK\r\n:1\r\n" in reply and b"$2\r\nme\r\n" in reply, reply
    assert reply.count(b"value") == 3
    assert raw.call("GET", "cold2") == b"$1\r\nx\r\n"


def test_tours_answer_in_their_place(server, raw):
    others = [server.client() for _ in range(5)]
    for other in others:
        other.ping()
    reply = run(raw, "SET a 1", "CLIENT LIST", "GET a", "CONFIG RESETSTAT", "PING")
    assert reply.startswith(b"*5\r\n+OK\r\n$") and reply.endswith(b"$1\r\n1\r\n+OK\r\n+PONG\r\n")
    assert reply.count(b"laddr=") >= 6


def test_walks_over_all_keys(raw):
    """KEYS and SCAN keep what they have collected while other pages are waited for."""
    for n in range(300):
        raw.call("SET", f"key:{n}", "x" * 500)
    reply = run(raw, "KEYS key:*", "GET key:7", "SCAN 0 COUNT 1000", "KEYS key:1?")
    assert reply.startswith(b"*4\r\n*300\r\n")
    assert b"$500\r\n" in reply and b"*10\r\n$6\r\nkey:1" in reply


def test_large_transactions(raw):
    """Thousands of commands with keys in all partitions, as one."""
    raw.send(encode("MULTI") + b"".join(encode("INCRBY", f"n{i}", i) for i in range(5000)))
    assert raw.reply() == OK
    for _ in range(5000):
        assert raw.reply() == QUEUED
    assert raw.call("EXEC") == b"*5000\r\n" + b"".join(b":%d\r\n" % i for i in range(5000))


@pytest.mark.vellum
def test_longer_than_the_journal_takes(make_server):
    """With values that would travel in it, of 8 MB."""
    server = make_server(journal_size="8mb", appendfsync="always")
    values = {f"n{n}": str(n) * 500 for n in range(4000)}
    with server.raw() as raw:
        raw.send(encode("MULTI") + b"".join(encode("SET", *item) for item in values.items()))
        assert [raw.reply() for _ in range(4001)] == [OK] + 4000 * [QUEUED]
        assert raw.call("EXEC") == b"*4000\r\n" + 4000 * OK
    client = server.client()
    assert client.eval("for n = 0, 3999 do redis.call('APPEND', 'n' .. n, '+') end return 1", 0) == 1
    server.kill9()
    server.start()
    client = server.client()
    assert client.mget(values) == [(value + "+").encode() for value in values.values()]


@pytest.mark.vellum
def test_more_than_memory_changes_nothing(make_server):
    server = make_server(maxmemory="40mb", journal_size="8mb")
    client = server.client()
    client.set("a", "1")
    with pytest.raises(redis.ResponseError, match="OOM"):
        client.eval("for n = 1, 20000 do redis.call('SET', 'n' .. n, ARGV[1]) end", 0, "x" * 3000)
    assert client.dbsize() == 1 and client.get("a") == b"1"
    assert client.set("b", "2") and server.running()


def test_figures_count_what_has_run(server):
    client = server.client()
    with server.raw() as raw:
        raw.call("SET", "a", "text")
        client.config_resetstat()
        run(raw, "INCR a", "GET a", "GET absent", "CLIENT ID")
        raw.call("MULTI")
        raw.call("GET", "a")
        raw.call("DISCARD")
    stats = client.info("commandstats")
    assert stats["cmdstat_get"]["calls"] == 2
    assert stats["cmdstat_incr"]["calls"] == 1 and stats["cmdstat_incr"]["failed_calls"] == 1
    assert stats["cmdstat_client|id"]["calls"] == 1
    assert stats["cmdstat_exec"]["calls"] == 1 and stats["cmdstat_exec"]["failed_calls"] == 0
    whole = client.info("stats")
    assert whole["keyspace_hits"] == 1 and whole["keyspace_misses"] == 1
    with server.raw() as raw:
        assert b"errorstat_ERR:count=1\r\n" in raw.call("INFO", "errorstats")


def test_figures_count_scripts_in_transactions(server):
    client = server.client()
    client.set("a", "text")
    failing = "redis.call('GET', KEYS[1]) redis.call('GET', 'x') return redis.call('INCR', KEYS[1])"
    with server.raw() as raw:
        client.config_resetstat()
        raw.send(encode("MULTI") + encode("EVAL", "redis.call('GET', KEYS[1]) return 1", 1, "a") +
                 encode("EVAL", failing, 2, "a", "x") + encode("EXEC"))
        assert raw.reply() == b"+OK\r\n"
        assert [raw.reply() for _ in range(3)][2].startswith(b"*2\r\n:1\r\n-ERR value is not")
    stats = client.info("commandstats")
    assert stats["cmdstat_get"]["calls"] == 3
    assert stats["cmdstat_incr"]["calls"] == 1 and stats["cmdstat_incr"]["failed_calls"] == 1
    assert stats["cmdstat_eval"]["calls"] == 2 and stats["cmdstat_eval"]["failed_calls"] == 1
    with server.raw() as raw:
        assert b"errorstat_ERR:count=1\r\n" in raw.call("INFO", "errorstats")
    whole = client.info("stats")
    assert whole["total_error_replies"] == 1
    assert whole["keyspace_hits"] == 2 and whole["keyspace_misses"] == 1


def test_figures_count_long_replies(server):
    client = server.client()
    names = ["a", "b", "c"]
    for name in names:
        client.sadd(name, *range(5000))
    client.config_resetstat()
    with client.pipeline(transaction=True) as pipeline:
        for name in names:
            pipeline.smembers(name)
        pipeline.smembers("absent")
        assert [len(reply) for reply in pipeline.execute()] == [5000, 5000, 5000, 0]
    whole = client.info("stats")
    assert whole["keyspace_hits"] == 3 and whole["keyspace_misses"] == 1
    assert client.info("commandstats")["cmdstat_smembers"]["calls"] == 4


def test_client_list_tells(server):
    with server.raw() as raw:
        raw.call("CLIENT", "SETNAME", "queueing")

        def mine():
            return next(c for c in server.client().client_list() if c["name"] == "queueing")
        assert mine()["multi"] == "-1" and mine()["flags"] == "N"
        raw.call("WATCH", "a")
        raw.call("MULTI")
        raw.call("SET", "a", "1")
        raw.call("SET", "b", "1")
        told = mine()
        assert told["multi"] == "2" and told["flags"] == "x" and int(told["multi-mem"]) > 10
        server.client().set("a", 1)
        assert mine()["flags"] == "xd"


# ---- WATCH ----

CHANGES = ["SET w new", "SET w old", "DEL w", "EXPIRE w 1000", "APPEND w x", ("APPEND", "w", ""), "RENAME w x",
           "RENAME other w", "COPY other w REPLACE", "MOVE w 1", "FLUSHDB", "FLUSHALL",
           "SWAPDB 0 1", "GETDEL w", "SETRANGE w 0 x", "PERSIST expiring"]
NO_CHANGES = ["GET w", "SET v new", "DEL absent", "FLUSHDB 1", "TTL w", "EXISTS w", "SWAPDB 2 3"]


def prepare(raw):
    raw.call("FLUSHALL")
    for key in ("w", "other"):
        raw.call("SET", key, "old")
    raw.call("SET", "expiring", "old", "EX", "1000")


@pytest.mark.parametrize("by", ["another", "itself"])
def test_what_changes_a_watched_key(server, raw, by):
    with server.raw() as other:
        for change in CHANGES + NO_CHANGES:
            prepare(raw)
            assert raw.call("WATCH", "w", "expiring", "w") == OK
            words = change.split() if isinstance(change, str) else change
            if words[0] == "FLUSHDB" and len(words) == 2:
                words = ["FLUSHDB"]
                other.call("SELECT", "1")
                other.call(*words)
                other.call("SELECT", "0")
            else:
                (other if by == "another" else raw).call(*words)
            expected = CHANGED if change in CHANGES else b"*1\r\n+PONG\r\n"
            assert run(raw, "PING") == expected, change
            assert run(raw, "PING") == b"*1\r\n+PONG\r\n", ("watched once", change)


def test_what_counts_as_a_change_without_changing_anything(raw):
    elements = [f"{i:020}" for i in range(20000)]
    for key in ("small", "large"):
        kept = elements if key == "large" else elements[:3]
        raw.call("RPUSH", key, *kept)
        for change in (("LTRIM", key, "0", "-1"), ("LSET", key, "1", kept[1])):
            raw.call("WATCH", key)
            assert raw.call(*change) == OK
            assert run(raw, "PING") == CHANGED, change
            assert run(raw, " ".join(change), "PING") == b"*2\r\n+OK\r\n+PONG\r\n"
        for change in (("LREM", key, "0", "absent"), ("LINSERT", key, "BEFORE", "absent", "x")):
            raw.call("WATCH", key)
            raw.call(*change)
            assert run(raw, "PING") == b"*1\r\n+PONG\r\n", change
    raw.call("SET", "string", "v", "PXAT", "99999999999999")
    raw.call("WATCH", "string")
    raw.call("GETEX", "string", "PXAT", "99999999999999")
    assert run(raw, "PING") == CHANGED


def test_an_absent_key(server, raw):
    other = server.client()
    for change, expected in [
            (lambda: other.set("w", 1), CHANGED),
            (lambda: (other.set("w", 1), other.delete("w")), CHANGED),
            (lambda: (other.set("v", 1), other.rename("v", "w")), CHANGED),
            (lambda: other.delete("w"), b"*0\r\n"),
            (lambda: other.flushall(), b"*0\r\n"),
            (lambda: other.swapdb(0, 1), b"*0\r\n"),
            (lambda: (server.client(db=1).set("w", 1), other.swapdb(0, 1)), CHANGED)]:
        other.flushall()
        raw.call("WATCH", "w")
        change()
        assert run(raw) == expected


def test_databases_are_told_apart(raw):
    raw.call("SELECT", "5")
    raw.call("WATCH", "w")
    raw.call("SELECT", "0")
    raw.call("SET", "w", "1")
    assert run(raw) == b"*0\r\n"
    raw.call("SELECT", "5")
    raw.call("WATCH", "w")
    raw.call("SELECT", "0")
    assert run(raw, "SELECT 5", "SET w 1", "SELECT 0") == b"*3\r\n" + 3 * OK


def test_a_watched_key_expires(server, raw):
    def is_watched():
        raw.send(encode("UNWATCH") + encode("SET", "w", "1", "PX", "30") + encode("WATCH", "w") +
                 encode("EXISTS", "w"))
        return [raw.reply() for _ in range(4)][3] == b":1\r\n"

    assert eventually(is_watched)
    time.sleep(0.1)
    assert run(raw) == CHANGED


def test_a_key_that_had_expired_is_no_change(make_server):
    server = make_server(enable_debug_command="yes")
    with server.raw() as raw, server.raw() as other:
        raw.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        raw.call("SET", "w", "1", "PX", "1")
        time.sleep(0.05)
        raw.call("WATCH", "w")
        other.call("GET", "w")
        other.call("DEL", "w")
        other.call("FLUSHALL")
        assert run(raw) == b"*0\r\n"
        raw.call("WATCH", "w")
        other.call("SET", "w", "again")
        assert run(raw) == CHANGED


def test_a_watched_key_changes_before_all_keys_are_locked(server):
    """SORT BY needs keys that EXEC did not name: it begins again with all of them, and others write to the
    watched one meanwhile."""
    client = server.client()
    for _ in range(6):
        client.rpush("sorted", *range(5000))
    client.set("weight_1", "1")
    for attempt in range(10):
        client.set("watched", "0")
        with server.raw() as raw, server.raw() as other:
            assert raw.call("WATCH", "watched") == OK
            raw.send(b"".join(encode(*words) for words in (
                ("MULTI",), ("SORT", "sorted"), ("SORT", "sorted", "BY", "weight_*"),
                ("SET", "watched", "mine"), ("EXEC",))))
            time.sleep(0.002 * (attempt % 8))
            other.call("SET", "watched", "other")
            replies = [raw.reply() for _ in range(5)]
        assert client.get("watched") == b"other", replies[4][:40]


def test_unwatch(server, raw):
    raw.call("WATCH", "w")
    server.client().set("w", 1)
    assert raw.call("UNWATCH") == OK
    assert run(raw) == b"*0\r\n"


def test_many_watchers_come_and_go(server):
    """Connections that end, or start anew, leave nothing behind that a change could meet."""
    stop = time.monotonic() + 1
    chance = harness.chance()
    writer = server.client()
    while time.monotonic() < stop:
        raws = [server.raw() for _ in range(10)]
        for raw in raws:
            raw.call("WATCH", *[f"w{chance.randrange(50)}" for _ in range(chance.randrange(1, 30))])
        for _ in range(10):
            writer.set(f"w{chance.randrange(50)}", 1)
        for raw in chance.sample(raws, 5):
            raw.call(chance.choice(["UNWATCH", "RESET"]))
        for raw in raws:
            raw.close()
    assert writer.ping()


# ---- many at once ----

def cold(server, raw, count):
    """Keys that are on the disk only."""
    for n in range(count):
        raw.call("SET", f"cold{n}", "value")
    raw.close()
    server.restart()
    raw.__init__(server.port)


def test_transfers_keep_the_sum(server):
    """Over partitions; one MGET, and an EXEC of GETs, always see all the money."""
    accounts = [f"account:{n}" for n in range(12)]
    server.client().mset({account: 100 for account in accounts})
    done = []

    def mover(name):
        def job(stop):
            chance = random.Random(name)
            with server.raw() as raw:
                while not stop.is_set():
                    a, b, c = chance.sample(accounts, 3)
                    amount = chance.randrange(1, 20)
                    raw.send(encode("MULTI") + encode("DECRBY", a, 2 * amount) +
                             encode("INCRBY", b, amount) + encode("INCRBY", c, amount) +
                             encode("EXEC"))
                    assert [raw.reply() for _ in range(4)] == [OK] + 3 * [QUEUED]
                    assert raw.reply().startswith(b"*3\r\n:")
                    done.append(1)
        return job

    def watcher(stop):
        client = server.client()
        while not stop.is_set():
            assert sum(map(int, client.mget(accounts))) == 1200
            pipe = client.pipeline(transaction=True)
            for account in accounts:
                pipe.get(account)
            assert sum(map(int, pipe.execute())) == 1200

    at_once(mover(1), mover(2), mover(3), watcher, watcher)
    assert len(done) > 50


def test_optimistic_increments_lose_nothing(server):
    """GET, then SET if no other client was faster."""
    counts = [0] * 4

    def job(name):
        def run_job(stop):
            with server.raw() as raw:
                while not stop.is_set():
                    raw.send(encode("WATCH", "n") + encode("GET", "n"))
                    assert raw.reply() == OK
                    value = raw.reply()
                    value = 0 if value == b"$-1\r\n" else int(value.split(b"\r\n")[1])
                    if run(raw, f"SET n {value + 1}") != CHANGED:
                        counts[name] += 1
        return run_job

    at_once(*[job(n) for n in range(4)])
    assert int(server.client().get("n")) == sum(counts) > 20


def test_watchers_of_flushed_and_swapped_databases(server):
    """A key exists only together with its twin: seeing one without the other means seeing half of a
    transaction."""
    def writer(stop):
        with server.raw() as raw:
            while not stop.is_set():
                run(raw, "SET twin:a 1", "SET twin:b 1")
                raw.call("FLUSHDB")
                run(raw, "SET twin:a 1", "SET twin:b 1")
                raw.call("SWAPDB", "0", "1")

    def watcher(stop):
        with server.raw() as raw:
            while not stop.is_set():
                raw.call("WATCH", "twin:a")
                there = raw.call("EXISTS", "twin:b")
                reply = run(raw, "EXISTS twin:a")
                assert reply in (CHANGED, b"*1\r\n" + there), (there, reply)

    at_once(writer, watcher, watcher)


def test_a_count_of_keys_sees_whole_transactions_only(server):
    names = [f"k{i}" for i in range(3000)]

    def writer(stop):
        with server.raw() as raw:
            while not stop.is_set():
                raw.call("MSET", *[word for name in names for word in (name, "1")])
                raw.call("SWAPDB", "0", "1")
                raw.call("MSET", *[word for name in names for word in (name, "1")])
                raw.call("FLUSHALL")

    def counter(stop):
        with server.raw() as raw:
            while not stop.is_set():
                count = raw.call("DBSIZE")
                assert count in (b":0\r\n", b":3000\r\n"), count

    at_once(writer, counter, counter)


@pytest.mark.parametrize("after", ["PING", "DEL k", "PEXPIREAT k 1", "SET k v"])
def test_a_key_that_a_swap_has_brought_is_a_change(raw, after):
    """Whatever becomes of it afterwards."""
    for command in ("SELECT 1", "SET k v", "SELECT 0", "WATCH k", "SWAPDB 0 1", after):
        assert not raw.call(*command.split()).startswith(b"-")
    assert run(raw, "PING") == CHANGED


def test_what_exec_acknowledged_survives(make_server):
    """Under `always`, with a kill in the middle: whole transactions, and all that were answered."""
    server = make_server(appendfsync="always")
    answered = [0]

    def job():
        try:
            with server.raw() as raw:
                for number in range(1, 1 << 30):
                    run(raw, *[f"SET t{k} {number}" for k in range(8)])
                    answered[0] = number
        except (OSError, EOFError):
            pass

    thread = threading.Thread(target=job)
    thread.start()
    time.sleep(1)
    assert eventually(lambda: answered[0] > 0)
    server.kill9()
    thread.join()
    server.start()
    values = set(server.client().mget([f"t{k}" for k in range(8)]))
    assert len(values) == 1
    assert int(values.pop()) in (answered[0], answered[0] + 1)


def test_a_database_swapped_with_itself_is_no_change(client):
    with client.pipeline() as pipe:
        pipe.watch("k")
        assert client.execute_command("SWAPDB", 0, 0)
        pipe.multi()
        pipe.set("k", "v")
        assert pipe.execute() == [True]


def test_copies_are_of_what_was_there(make_server, workers):
    """The commit waits for the device, and meanwhile others need the pages' memory."""
    server = make_server(maxmemory="64mb")
    rounds = 40
    finished = threading.Event()

    def write(number):
        def job(stop):
            client = server.client()
            i = 0
            while not stop.is_set() and not finished.is_set():
                client.set(f"other:{number}:{i % 4000}", f"{i:08d}" * 400)
                i += 1
        return job

    def copy(_):
        try:
            with server.raw() as raw:
                raw.call("SET", "large", "l" * 100_000)
                raw.call("RPUSH", "list", *("element" + "x" * 100 for _ in range(10)))
                for i in range(rounds):
                    value = f"{i:04d}" * (20 + 10 * i)
                    raw.call("SET", "source", value)
                    reply = run(raw, "COPY source copy REPLACE", ("APPEND", "large", "x" * 5000),
                                "COPY list list:copy REPLACE", ("SET", "beside", "b" * 6000))
                    assert reply.startswith(b"*4\r\n:1\r\n:"), reply
                    assert raw.call("GET", "copy") == b"$%d\r\n%s\r\n" % (len(value), value.encode())
                    assert raw.call("LRANGE", "list:copy", "0", "-1") == raw.call("LRANGE", "list", "0", "-1")
        finally:
            finished.set()

    at_once(copy, *(write(i) for i in range(3)), until=finished.is_set)


def test_many_changes_of_one_long_value(server):
    """Four times as many take about four times the work, and not sixteen."""
    length, work = 1 << 20, []
    for count in (12_000, 48_000):
        expected = bytearray(b"a" * length)
        changes = [(i * 506_963 % (length - 8), b"%08d" % i) for i in range(count)]
        for offset, text in changes:
            expected[offset:offset + 8] = text
        with server.raw() as raw:
            raw.call("SET", "value", "a" * length)
            raw.call("MULTI")
            for at in range(0, count, 1000):
                some = changes[at:at + 1000]
                raw.send(b"".join(encode("SETRANGE", "value", offset, text) for offset, text in some))
                assert all(raw.reply() == QUEUED for _ in some)
            before = harness.processor_seconds(server.process)
            assert raw.call("EXEC") == b"*%d\r\n" % count + b":%d\r\n" % length * count
            work.append(harness.processor_seconds(server.process) - before)
            assert raw.call("GET", "value") == b"$%d\r\n%s\r\n" % (length, bytes(expected))
    assert work[1] < 5 * work[0] + 0.3, work


COUNTS_LONG = "local n = 0 for i = 1, 10000000 do n = n + 1 end "


@pytest.mark.parametrize("script, keys", [
    (COUNTS_LONG + "return n", []),
    (COUNTS_LONG + "return redis.call('LLEN', KEYS[1])", ["walked"]),
])
def test_a_script_that_only_reads_runs_once_beside_a_walk_in_steps(server, script, keys):
    """The walk begins anew in each of its steps, and the script before it does not."""
    with server.raw() as raw:
        for at in range(0, 200_000, 10_000):
            raw.call("RPUSH", "walked", *range(at, at + 10_000))
        work = []
        for commands in ([("EVAL", script, len(keys), *keys)], [("SORT", "walked", "LIMIT", 0, 1)]):
            before = harness.processor_seconds(server.process)
            run(raw, *commands)
            work.append(harness.processor_seconds(server.process) - before)
        before = harness.processor_seconds(server.process)
        reply = run(raw, ("EVAL", script, len(keys), *keys), ("SORT", "walked", "LIMIT", 0, 1))
        both = harness.processor_seconds(server.process) - before
    assert reply == b"*2\r\n:%d\r\n*1\r\n$1\r\n0\r\n" % (200_000 if keys else 10_000_000)
    assert both < 4 * sum(work) + 0.3, (work, both)


def test_a_script_with_effects_before_a_walk_in_steps(server):
    """It runs again with each step, and its effects are there once."""
    walk = ("SORT", "walked", "LIMIT", 0, 1)
    with server.raw() as raw, server.raw() as subscriber:
        raw.call("RPUSH", "walked", *range(50_000))
        assert subscriber.call("SUBSCRIBE", "news").startswith(b"*3\r\n")
        reply = run(raw, ("EVAL", "redis.call('INCR', KEYS[1]) return 7", "1", "counter"), walk,
                    ("EVAL", "redis.call('PUBLISH', 'news', 'x') return 8", "0"), walk,
                    ("GET", "counter"))
        first = b"*1\r\n$1\r\n0\r\n"
        assert reply == b"*5\r\n:7\r\n" + first + b":8\r\n" + first + b"$1\r\n1\r\n"
        raw.call("PUBLISH", "news", "end")
        for text in (b"x", b"end"):
            assert subscriber.reply() == b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$%d\r\n%s\r\n" % (len(text), text)


def test_a_script_sees_what_was_written_before_it_in_the_transaction(server):
    """Its kept reply is of the state that EXEC's commands before it have made."""
    read = ("EVAL", "return redis.call('GET', KEYS[1])", "1", "k")
    with server.raw() as raw:
        raw.call("RPUSH", "walked", *range(50_000))
        raw.call("SET", "k", "old")
        walk = ("SORT", "walked", "LIMIT", 0, 1)
        reply = run(raw, read, ("SET", "k", "new"), read, walk, ("APPEND", "k", "er"), read, walk)
    first = b"*1\r\n$1\r\n0\r\n"
    assert reply == (b"*7\r\n$3\r\nold\r\n" + OK + b"$3\r\nnew\r\n" + first + b":5\r\n$5\r\nnewer\r\n" + first)
