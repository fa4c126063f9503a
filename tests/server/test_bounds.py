"""Bounds: full files and full memory, eviction by each policy, and what is told about it."""

import time

import pytest
import redis

MB = 2**20
SMALL = dict(maxstore=24 * MB, journal_size=8 * MB, partitions=4, maxmemory="100mb")


def fill(client, count, prefix="k", size=900, **options):
    """How many keys were set before the first error, and that error."""
    value = b"x" * size
    for at in range(0, count, 200):
        with client.pipeline(transaction=False) as pipe:
            for i in range(at, min(at + 200, count)):
                pipe.set(f"{prefix}{i}", value, **options)
            for i, reply in enumerate(pipe.execute(raise_on_error=False)):
                if reply is not True:
                    return at + i, str(reply)
    return count, None


@pytest.mark.vellum
def test_a_full_store_refuses_and_recovers(make_server):
    client = make_server(**SMALL).client()
    count, error = fill(client, 40000)
    assert error.startswith("OOM No room left on disk") or "No room left on disk" in error, error
    assert client.info("vellum")["full"] == 1
    assert client.get("k0") == b"x" * 900
    assert client.delete(*[f"k{i}" for i in range(0, count, 2)]) == (count + 1) // 2
    assert fill(client, count // 4, "again")[1] is None
    client.config_set("maxstore", 40 * MB)
    assert fill(client, count // 2, "more")[1] is None
    assert client.info("stats")["evicted_keys"] == 0
    assert client.info("vellum")["store_bytes"] <= 40 * MB


@pytest.mark.vellum
def test_each_policy_makes_room(make_server):
    client = make_server(**SMALL).client()
    assert fill(client, 200, "lasting")[1] is None
    assert fill(client, 40000, ex=10000)[1] is not None
    evicted = 0
    for policy in ("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
                   "allkeys-lru", "allkeys-lfu", "allkeys-random"):
        client.config_set("maxmemory-policy", policy)
        options = {"ex": 10000} if policy.startswith("volatile") else {}
        assert fill(client, 3000, policy, **options)[1] is None
        before, evicted = evicted, client.info("stats")["evicted_keys"]
        assert evicted > before + 500
        if options:
            assert client.exists(*[f"lasting{i}" for i in range(200)]) == 200


@pytest.mark.vellum
def test_an_eviction_is_told(make_server):
    server = make_server(maxmemory_policy="allkeys-lru", notify_keyspace_events="Ee", **SMALL)
    client, watcher = server.client(), server.client()
    listener = server.client().pubsub()
    listener.psubscribe("__keyevent@*__:evicted")
    transaction = watcher.pipeline()
    client.set("watched", "x" * 900)
    transaction.watch("watched")
    time.sleep(0.05)
    assert fill(client, 30000)[1] is None
    assert client.exists("watched") == 0
    transaction.multi()
    transaction.ping()
    with pytest.raises(redis.WatchError):
        transaction.execute()
    told = set()
    while (message := listener.get_message(timeout=0.2)) is not None:
        told.add(message["data"])
    assert b"watched" in told and len(told) > 5000


@pytest.mark.vellum
def test_a_policy_takes_effect_at_once(make_server):
    client = make_server(**SMALL).client()
    assert fill(client, 40000)[1] is not None
    client.config_set("maxmemory-policy", "allkeys-random")
    assert fill(client, 5000, "after")[1] is None
    client.config_set("maxmemory-policy", "volatile-lru")
    assert fill(client, 20000, "refused")[1] is not None


def test_use_is_answered_by_policy(make_server):
    client = make_server(maxmemory_policy="allkeys-lru").client()
    client.set("a", "x")
    client.set("b", "y")
    time.sleep(2.1)
    client.get("b")
    client.ttl("a"), client.exists("a"), client.type("a")
    assert client.object("idletime", "a") == 2 and client.object("idletime", "b") == 0
    with pytest.raises(redis.ResponseError, match="An LFU maxmemory policy is not selected"):
        client.object("freq", "a")
    client.touch("a")
    assert client.object("idletime", "a") == 0
    client.execute_command("RESTORE", "c", 0, client.dump("a"), "IDLETIME", 1000)
    assert 1000 <= client.object("idletime", "c") <= 1010
    client.config_set("maxmemory-policy", "allkeys-lfu")
    client.set("d", "z")
    for _ in range(100):
        client.get("d")
    assert 8 <= client.object("freq", "d") <= 14
    client.execute_command("RESTORE", "e", 0, client.dump("a"), "FREQ", 100)
    assert client.object("freq", "e") in (99, 100)
    with pytest.raises(redis.ResponseError, match="idle time not tracked"):
        client.object("idletime", "d")
