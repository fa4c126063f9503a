"""The account of memory: what counts, and what is refused."""

import os
import select
import socket
import sys
import threading
import time

import pytest
import redis

import harness
from harness import encode, eventually

sys.path.insert(0, os.path.join(harness.TOP, "tests", "crash"))

import memory_scenarios  # noqa: E402

pytestmark = pytest.mark.vellum
MB = 2**20
BOUND = 64 * MB
SHORT = ["bitcounts_beside_each_other", "bitcounts_of_a_script", "names_of_clients", "long_keys",
         "many_keys_in_one_command", "halves_of_pushes", "clients_that_wait",
         "clients_that_wait_for_long_names", "queued_commands", "long_elements", "unread_picks",
         "members_in_one_command", "payloads", "sorts_by_long_values",
         "copies_and_digests_of_long_elements"]


def test_names_from_a_long_pattern_need_no_memory_together(make_server):
    client = make_server(maxmemory=BOUND).client()
    client.rpush("l", *range(2000))
    pattern = "x" * 100_000 + "*"
    client.set(pattern.replace("*", "7"), -1)
    assert client.sort("l", by=pattern, start=0, num=2) == [b"7", b"0"]
    assert client.sort("l", by="nosort", get=pattern)[6:9] == [None, b"-1", None]


def test_elements_that_memory_has_no_room_for_are_not_sorted(make_server):
    client = make_server(maxmemory=BOUND).client()
    client.rpush("l", b"e" * 10 * MB)
    client.rpush("l", b"f" * 10 * MB)
    with pytest.raises(redis.ResponseError, match="used memory > 'maxmemory'"):
        client.sort("l", alpha=True)
    assert client.llen("l") == 2


def test_what_a_client_waits_with_counts(make_server):
    server = make_server()
    with server.raw() as raw:
        raw.send(encode("CLIENT", "SETNAME", "waits") + encode("BLPOP", *range(1000), 0))
        client = server.client()
        end = time.monotonic() + 30
        while client.info("clients")["blocked_clients"] == 0 and time.monotonic() < end:
            time.sleep(0.02)
        listed = [entry for entry in client.client_list() if entry["name"] == "waits"]
        assert int(listed[0]["tot-mem"]) > 1000 * 190, listed


def test_replies_that_a_script_keeps_count(make_server):
    """Of commands that work in steps, 50 KB each: scripts may have 256 MB, whatever is free."""
    client = make_server(maxmemory=1024 * MB).client()
    client.sadd("x", *(b"%d:" % i + b"m" * 500 for i in range(100)))
    script = "for i = 1, ARGV[1] do redis.call('SUNION', 'x') end return 1"
    assert client.eval(script, 0, 100) == 1
    with pytest.raises(redis.ResponseError, match="not enough memory|maxmemory"):
        client.eval(script, 0, 6000)
    assert client.scard("x") == 100


def test_long_elements_are_copied_and_digested_one_after_the_other(make_server):
    """Together they are more than a command may load."""
    client = make_server(maxmemory=BOUND, enable_debug_command="yes").client()
    for i in range(40):
        client.rpush("l", b"%d" % i + b"e" * MB)
    assert client.copy("l", "to") and client.llen("to") == 40
    first, second = client.execute_command("DEBUG", "DIGEST-VALUE", "l", "to")
    assert first == second and first.strip(b"0")
    assert client.lindex("to", 39) == b"39" + b"e" * MB


def test_elements_are_sorted_by_long_values(make_server):
    """Together these are more than a command may load."""
    client = make_server(maxmemory=BOUND).client()
    client.rpush("l", *range(30))
    for i in range(30):
        client.set(f"v{i}", b"0" * MB + b"%d" % (30 - i))
    assert client.sort("l", by="v*") == [b"%d" % i for i in reversed(range(30))]


def test_a_loaded_script_outlives_a_shortage_of_memory(make_server):
    """It is compiled again when there is memory for it."""
    client = make_server(maxmemory=512 * MB).client()
    name = client.script_load("return #{" + "1," * 2_000_000 + "}")
    assert client.evalsha(name, 0) == 2_000_000
    client.config_set("maxmemory", BOUND)
    for _ in range(2):
        with pytest.raises(redis.ResponseError, match="not enough memory|maxmemory"):
            client.evalsha(name, 0)
    client.config_set("maxmemory", 512 * MB)
    assert client.evalsha(name, 0) == 2_000_000


@pytest.mark.parametrize("length", [40_000, 100_000])
def test_what_arrives_when_memory_becomes_short_runs_later(make_server, length):
    """Room for the rest of a command makes it short, while five others of its client wait behind BLPOP:
    more than may be in flight then."""
    server = make_server(maxmemory=BOUND)
    client = server.client()
    client.client_no_evict("on")
    element = b"e" * length
    request = encode("RPUSH", "l", element)
    with server.raw() as raw, server.raw() as other:
        assert raw.call("CLIENT", "NO-EVICT", "on") == b"+OK\r\n"
        raw.send(encode("BLPOP", "awaited", 0) + encode("PING") * 5 + request[:38_000])
        clients = lambda: client.info("memory")["mem_clients_normal"]  # noqa: E731
        assert eventually(lambda: clients() > 38_000 and client.info("clients")["blocked_clients"])
        client.config_set("maxmemory-clients", clients() + 20_000)
        raw.send(request[38_000:])
        time.sleep(0.1)
        assert other.call("ECHO", "x") == b"$1\r\nx\r\n"
        client.rpush("awaited", "v")
        assert raw.reply() == b"*2\r\n$7\r\nawaited\r\n$1\r\nv\r\n"
        assert [raw.reply() for _ in range(6)] == [b"+PONG\r\n"] * 5 + [b":1\r\n"]
    assert client.lindex("l", 0) == element

def grows(server, act):
    """By how many bytes the server's memory has grown at most meanwhile; None: not known."""
    if server.has_sanitizer():
        return act()
    before = server.peak_memory(reset=True)
    act()
    return server.peak_memory() - before


def echo(raw, times):
    """Fills the blocks that connections share."""
    for _ in range(times):
        raw.send(encode("ECHO", b"e" * 3000) * 20)
        for _ in range(20):
            assert raw.reply() == b"$3000\r\n" + b"e" * 3000 + b"\r\n"


@pytest.mark.parametrize("behind", [b"", encode("PING")], ids=["first", "parked"])
def test_clients_that_wait_hold_none_of_the_blocks_that_others_read_into(make_server, behind):
    server = make_server()
    waiting = [server.raw() for _ in range(200)]
    try:
        with server.raw() as busy:
            def wait():
                for raw in waiting:
                    raw.send(encode("BLPOP", "k", 0) + behind)
                    echo(busy, 4)
            grown = grows(server, wait)
            client = server.client()
            assert eventually(lambda: client.info("clients")["blocked_clients"] == len(waiting))
            assert grown is None or grown < 12 * MB, f"{grown / MB:.1f} MB for 200 short commands"
            client.rpush("k", *range(len(waiting)))
        popped = {raw.reply() for raw in waiting}
        assert popped == {b"*2\r\n$1\r\nk\r\n" + encode(i)[4:] for i in range(len(waiting))}
        assert not behind or all(raw.reply() == b"+PONG\r\n" for raw in waiting)
    finally:
        for raw in waiting:
            raw.close()


def is_closed(raw):
    """By the server, with nothing left to read."""
    try:
        return bool(select.select([raw.socket], [], [], 0)[0]) and raw.socket.recv(1, socket.MSG_PEEK) == b""
    except ConnectionResetError:
        return True


@pytest.mark.slow  # with one worker nobody can subscribe beside the script
def test_commands_of_clients_closed_for_their_memory_are_not_run(make_server):
    """They would keep it until they have got their key, which a script has until `go` is subscribed to.
    The first clients have sent their commands, and they have the longest: they are closed."""
    server = make_server(maxmemory=BOUND, busy_reply_threshold=600_000)
    client = server.client()
    first = {server.raw(): b"%02d" % i + b"f" * (5 * MB // 2) for i in range(5)}
    pushing = {**first, **{server.raw(): b"%02d" % i + b"e" * MB for i in range(5, 16)}}

    def push(raw, element):
        try:
            raw.send(encode("RPUSH", "k", element))
        except ConnectionError:
            pass

    with server.raw() as script:
        script.send(encode("EVAL", "redis.call('DEL', KEYS[1])  -- a push may have come first\n"
                           "while redis.call('PUBSUB', 'NUMSUB', 'go')[2] == 0 do end", 1, "k"))
        threads = [threading.Thread(target=push, args=entry) for entry in pushing.items()]
        for i, thread in enumerate(threads):
            thread.start()
            if i < len(first):
                thread.join()
        assert eventually(lambda: any(map(is_closed, first)))
        closed = list(filter(is_closed, first))
        subscribers = [server.raw() for _ in range(6)]  # one of them is on another worker
        for raw in subscribers:
            raw.send(encode("SUBSCRIBE", "go"))
        assert script.reply() == b"$-1\r\n"
        for thread in threads:
            thread.join()
    answers = 0
    for raw in pushing:
        try:
            answers += raw.reply().startswith(b":")
        except (EOFError, ConnectionError):
            pass
    for raw in [*pushing, *subscribers]:
        raw.close()
    assert answers > 0
    assert all(client.lpos("k", pushing[raw]) is None for raw in closed)


def test_a_client_that_announces_too_long_a_command_is_closed_at_once(make_server):
    server = make_server(maxmemory=BOUND)
    with server.raw() as raw:
        raw.send(b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % (40 * MB) + b"e" * 100_000)
        with pytest.raises((EOFError, ConnectionError)):
            raw.reply()
    assert "its command alone exceeds the limit of client buffers" in server.said()
    assert server.client().info("stats")["evicted_clients"] == 1


def test_a_transaction_whose_replies_have_no_room_is_refused(make_server):
    server = make_server(maxmemory=BOUND)
    client = server.client()
    client.hset("h", mapping={f"f{i}": b"v" * 1000 for i in range(60)})
    client.set("n", 0)
    with server.raw() as raw:
        def execute():
            raw.send(encode("MULTI") + encode("INCR", "n") + encode("HVALS", "h") * 1500 + encode("EXEC"))
            for _ in range(1 + 1 + 1500):
                raw.reply()
            assert b" OOM " in raw.reply().replace(b"-", b" ")
        grown = grows(server, execute)
    assert grown is None or grown < 60 * MB, f"{grown / MB:.1f} MB"
    assert client.get("n") == b"0"


@pytest.fixture
def stage():
    server = harness.Server(2, **memory_scenarios.OPTIONS)
    try:
        server.start()
        yield server
        server.stop()
    finally:
        server.remove()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_the_process_keeps_within_its_bound(stage, name):
    if harness.PROXY:
        pytest.skip("would take too long in an emulated machine")
    scenario = getattr(memory_scenarios, name)
    outcome = memory_scenarios.run(scenario, stage, scale=0.02, neighbour_limit_s=60)
    assert not outcome.faults, outcome


def test_a_start_after_a_crash_stays_within_the_bound(make_server):
    """Recovery holds the journal in memory, so not all of a large ring may fill up."""
    server = make_server(maxmemory=BOUND, journal_size=256 * MB)
    commands = b"".join(encode("SET", f"key:{number}", "v" * 16) for number in range(1000))
    with server.raw() as raw:
        for _ in range(800 if not server.has_sanitizer() else 100):
            raw.send(commands)
            assert raw.exactly(5 * 1000) == b"+OK\r\n" * 1000
    server.kill9()
    server.start()
    assert server.client().dbsize() == 1000
    assert server.peak_memory() <= 1.1 * BOUND
