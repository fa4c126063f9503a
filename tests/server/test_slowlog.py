"""SLOWLOG: what is noted, how it is shown, what is not shown."""

import re
import time

import pytest

import harness
from test_blocking import blocked
from test_pubsub import connect  # noqa: F401

pytestmark = pytest.mark.shared


@pytest.fixture
def log(connect):  # noqa: F811
    """A client of a server that notes every command, and has noted none."""
    raw = connect()
    raw.call("CLIENT", "SETNAME", "tester")
    raw.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
    raw.call("SLOWLOG", "RESET")
    yield raw
    raw.call("CONFIG", "SET", "slowlog-log-slower-than", 10000)


def parsed(raw, count=-1):
    """The entries as lists, the newest first."""
    raw.send(harness.encode("SLOWLOG", "GET", count))

    def value():
        line = raw.line()
        if line[:1] == b"*":
            return [value() for _ in range(int(line[1:]))]
        if line[:1] == b":":
            return int(line[1:])
        return raw.exactly(int(line[1:]) + 2)[:-2]
    return value()


def noted(raw):
    """The commands, the oldest first, but those about the log."""
    commands = [entry[3] for entry in reversed(parsed(raw))]
    return [words for words in commands if words[0].upper() != b"SLOWLOG"]


def test_an_entry(log):
    begin = int(time.time())
    assert log.call("SET", "key", "value") == b"+OK\r\n"
    newest, reset = parsed(log)
    assert newest[0] == reset[0] + 1 and begin - 1 <= newest[1] <= time.time() + 1
    assert 0 <= newest[2] < 10**7 and newest[3] == [b"SET", b"key", b"value"]
    address = re.search(rb" addr=(\S+) ", log.call("CLIENT", "INFO")).group(1)
    assert newest[4:] == [address, b"tester"]
    assert reset[3] == [b"SLOWLOG", b"RESET"]
    assert log.call("SLOWLOG", "LEN") == b":4\r\n"  # GET and INFO have been noted, LEN not yet


def test_numbers_go_on(log):
    log.call("PING")
    last = parsed(log)[0][0]
    assert log.call("SLOWLOG", "RESET") == b"+OK\r\n"
    assert [entry[0] for entry in parsed(log)] == [last + 2]  # the RESET; GET was before


def test_how_many(log):
    for i in range(20):
        log.call("ECHO", i)
    assert log.call("SLOWLOG", "GET").startswith(b"*10\r\n")
    assert len(parsed(log, 3)) == 3 and len(parsed(log, 0)) == 0 and len(parsed(log)) == 24
    log.call("CONFIG", "SET", "slowlog-max-len", 5)
    log.call("ECHO", "last")
    assert [entry[3][0] for entry in parsed(log)] == [b"ECHO", b"CONFIG"] + 3 * [b"SLOWLOG"]
    log.call("CONFIG", "SET", "slowlog-max-len", 0)
    assert parsed(log) == []
    for wrong in (-2, "x", "1.5"):
        assert log.call("SLOWLOG", "GET", wrong) == \
            b"-ERR count should be greater than or equal to -1\r\n"
    log.call("CONFIG", "SET", "slowlog-max-len", 128)


def test_only_what_is_slow(log):
    log.call("CONFIG", "SET", "slowlog-log-slower-than", 10**8)
    log.call("SLOWLOG", "RESET")
    log.call("PING")
    assert log.call("SLOWLOG", "LEN") == b":0\r\n"
    log.call("CONFIG", "SET", "slowlog-log-slower-than", -1)
    log.call("PING")
    assert log.call("SLOWLOG", "LEN") == b":0\r\n"
    log.call("CONFIG", "SET", "slowlog-log-slower-than", 10000)
    script = "for i = 1, 300000 do redis.sha1hex('') end return 0"
    began = time.monotonic()
    log.call("EVAL", script, 0)
    took = (time.monotonic() - began) * 1e6
    (entry,) = [entry for entry in parsed(log) if entry[3][1] == script.encode()]
    assert 10000 <= entry[2] <= took + 10000  # the clock's ticks


def test_long_ones_are_cut(log):
    log.call("SADD", "set", *range(100))
    log.call("MSET", "k", "x" * 129, "l", "y" * 128)
    many, long = noted(log)
    assert len(many) == 32 and many[:4] == [b"SADD", b"set", b"0", b"1"]
    assert many[31] == b"... (71 more arguments)"
    assert long == [b"MSET", b"k", b"x" * 128 + b"... (1 more bytes)", b"l", b"y" * 128]


@pytest.mark.vellum
@pytest.mark.vellum
def test_it_takes_a_sixteenth_of_memory_at_most(make_server):
    """An entry of 32 arguments takes about 5 KB: of 64 MB some 800 have room."""
    server = make_server(maxmemory="64mb", slowlog_log_slower_than=0, slowlog_max_len=1000000)
    words = ["PFADD", "k"] + ["x" * 128] * 30
    with server.raw() as raw:
        for _ in range(20):
            raw.send(harness.encode(*words) * 200)
            for _ in range(200):
                assert raw.reply()[:1] == b":"
        kept = int(raw.call("SLOWLOG", "LEN")[1:])
        assert 500 < kept < 1200
        assert parsed(raw, 1)[0][0] > 4000
        raw.call("SLOWLOG", "RESET")
        for _ in range(1500):
            raw.call("PING")
        assert int(raw.call("SLOWLOG", "LEN")[1:]) >= 1500


def test_a_long_name_is_cut(log):
    log.call("CLIENT", "SETNAME", "n" * 1000000)
    log.call("PING")
    assert parsed(log, 1)[0][5] == b"n" * 128 + b"... (999872 more bytes)"


@pytest.mark.vellum
def test_of_a_value_that_never_was_in_memory_there_is_the_length(log):
    value = "x" * 400000
    log.call("SET", "k", value)
    log.send(harness.encode("MULTI") + harness.encode("SETEX", "k", 100, value) +
             harness.encode("EXEC"))
    assert [log.reply() for _ in range(3)][2] == b"*1\r\n+OK\r\n"
    shown = b"... (400000 more bytes)"
    assert noted(log) == [[b"SET", b"k", shown], [b"MULTI"], [b"SETEX", b"k", b"100", shown]]


def test_passwords_are_not_shown(log):
    log.call("CONFIG", "SET", "requirepass", "", "hz", 10, "masterauth", "")
    log.call("AUTH", "name", "secret")
    log.call("HELLO", 2, "AUTH", "default", "secret", "SETNAME", "tester")
    hidden = b"(redacted)"
    assert noted(log)[0] == [b"CONFIG", b"SET", b"requirepass", hidden, b"hz", b"10",
                             b"masterauth", hidden]
    assert not any(b"secret" in words for words in noted(log))


def test_the_commands_of_exec(log):
    log.send(b"".join(harness.encode(*words) for words in
                      (["MULTI"], ["SET", "a", 1], ["GET", "a"], ["EXEC"])))
    assert [log.reply() for _ in range(4)][3] == b"*2\r\n+OK\r\n$1\r\n1\r\n"
    assert noted(log) == [[b"MULTI"], [b"SET", b"a", b"1"], [b"GET", b"a"]]


def test_the_commands_of_scripts(log):
    script = "redis.call('SET', KEYS[1], 1) return redis.call('GET', KEYS[1])"
    assert log.call("EVAL", script, 1, "a") == b"$1\r\n1\r\n"
    inner = [[b"SET", b"a", b"1"], [b"GET", b"a"]]
    evaluated = [b"EVAL", script.encode(), b"1", b"a"]
    assert noted(log) == [*inner, evaluated]
    log.call("SLOWLOG", "RESET")
    log.send(transaction(["EVAL", script, 1, "a"]))
    log.exactly(len(b"+OK\r\n+QUEUED\r\n*1\r\n$1\r\n1\r\n"))
    assert noted(log) == [[b"MULTI"], *inner, evaluated]


def test_the_commands_of_a_long_script_take_little_memory(log):
    log.call("CONFIG", "SET", "slowlog-max-len", 100000)
    try:
        script = "for i = 1, 20000 do redis.call('SET', KEYS[1], i) end"
        assert log.call("EVAL", script, 1, "a") == b"$-1\r\n"
        inner = [words for words in noted(log) if words[0] == b"SET"]
        assert inner == [[b"SET", b"a", str(i + 1).encode()] for i in range(len(inner))]
        assert 100 < len(inner) < 1000
    finally:
        log.call("CONFIG", "SET", "slowlog-max-len", 128)


def transaction(*commands):
    return b"".join(harness.encode(*words) for words in (["MULTI"], *commands, ["EXEC"]))


def times(raw, name):
    return [entry[2] for entry in parsed(raw) if entry[3][0] == name]


def test_a_transaction_that_waits_for_its_keys(log, connect, workers):  # noqa: F811
    """That is the first command's time."""
    if workers == 1:
        pytest.skip("nothing begins while a script runs")
    log.call("CONFIG", "SET", "slowlog-log-slower-than", 10000)
    others = [connect() for _ in range(3 * workers)]
    script = "for i = 1, 500000 do redis.sha1hex('') end"
    runner = connect()
    runner.send(harness.encode("EVAL", script, 1, "k"))
    time.sleep(0.05)  # it has begun
    for other in others:
        other.send(transaction(["GET", "k"], ["TYPE", "k"]))
    for raw, count in [(runner, 1)] + [(other, 4) for other in others]:
        for _ in range(count):
            raw.reply()
    (script_took,) = times(log, b"EVAL")
    assert max(times(log, b"GET"), default=0) >= script_took / 2
    assert max(times(log, b"TYPE"), default=0) < script_took / 2


def test_what_runs_behind_a_transaction_has_its_time(log):
    log.call("CONFIG", "SET", "slowlog-log-slower-than", 1)
    log.send(transaction(["SET", "k", "v"], ["CLIENT", "LIST"]))
    for _ in range(4):
        log.reply()
    (took,) = times(log, b"CLIENT")
    assert 1 <= took < 10**7


def share_of_reads(raw, keys):
    """What a transaction's commands have taken, of the time that its client has waited."""
    raw.call("SLOWLOG", "RESET")
    began = time.monotonic()
    raw.send(transaction(*[["GET", f"k{i}"] for i in keys]))
    replies = [raw.reply() for _ in range(len(keys) + 2)]
    took = (time.monotonic() - began) * 1e6
    assert len(replies[-1]) > 2000 * len(keys)
    return sum(times(raw, b"GET")) / took


@pytest.mark.vellum
def test_a_transaction_that_waits_for_pages(make_server):
    """Each command's waits are its own, and not again those that come behind it."""
    server = make_server()
    with server.raw() as raw:
        for i in range(0, 10000, 500):
            raw.call("MSET", *[word for j in range(i, i + 500) for word in (f"k{j}", "x" * 2000)])
    server.restart()
    with server.raw() as raw:
        raw.call("CONFIG", "SET", "slowlog-log-slower-than", 1)
        shares = [share_of_reads(raw, range(i, 10000, 100)) for i in range(5)]
    assert max(shares) >= 0.1 and max(shares) <= 1


def test_a_pipeline_on_one_key(log):
    words = [["ZADD", "zset", i, f"member {i}"] for i in range(40)]
    log.call("ZADD", "zset", *[word for i in range(500) for word in (i, f"other {i}")])
    log.call("SLOWLOG", "RESET")
    log.send(b"".join(harness.encode(*each) for each in words))
    assert [log.reply() for _ in words] == [b":1\r\n"] * 40
    assert noted(log) == [[str(word).encode() for word in each] for each in words]


def test_a_wait_is_not_time_taken(log, connect):  # noqa: F811
    waiter = connect()
    waiter.send(harness.encode("BLPOP", "list", 0))
    blocked(log, 1)
    time.sleep(1)
    assert [b"BLPOP", b"list", b"0"] not in noted(log)
    log.call("RPUSH", "list", "x")
    assert waiter.reply().endswith(b"x\r\n")
    waiter.call("PING")
    (entry,) = [entry for entry in parsed(log) if entry[3][0] == b"BLPOP"]
    assert entry[2] < 500_000


def test_what_is_refused_is_not_noted(log):
    log.call("NOSUCH")
    log.call("GET")
    log.call("LPUSH", "a")
    assert noted(log) == []
    log.call("SET", "text", "x")
    log.call("LPUSH", "text", "x")  # this one has run
    assert [words[0] for words in noted(log)] == [b"SET", b"LPUSH"]
