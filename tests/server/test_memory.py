"""The account of memory: what counts, and what is refused."""

import os
import sys
import time

import pytest
import redis

import harness
from harness import encode

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
    """Of commands that work in steps, 50 KB each: scripts may have 32 MB."""
    client = make_server(maxmemory=BOUND).client()
    client.sadd("x", *(b"%d:" % i + b"m" * 500 for i in range(100)))
    script = "for i = 1, ARGV[1] do redis.call('SUNION', 'x') end return 1"
    assert client.eval(script, 0, 100) == 1
    with pytest.raises(redis.ResponseError, match="not enough memory|maxmemory"):
        client.eval(script, 0, 1500)
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


def eventually(holds):
    end = time.monotonic() + 30
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


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


@pytest.fixture
def stage():
    server = harness.Server(2, **memory_scenarios.OPTIONS)
    server.start()
    yield server
    try:
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
