"""SET IFEQ and DELIFEQ, as Valkey has them: a change on condition of the old value."""

import threading

import pytest
import redis

from test_long_strings import MB, PIECE, dense, small  # noqa: F401


def cas(client, key, value, expected, *options):
    return client.execute_command("SET", key, value, "IFEQ", expected, *options, get="GET" in options)


def test_sets_where_the_value_is_the_expected_one(client):
    assert cas(client, "k", "a", "") is None and not client.exists("k")
    client.set("k", "a", ex=1000)
    for other in ("b", "", "aa", "A"):
        assert cas(client, "k", "b", other) is None and client.get("k") == b"a"
    assert client.ttl("k") > 0
    assert cas(client, "k", "b", "a") and client.get("k") == b"b" and client.ttl("k") == -1
    client.set("k", 12345)
    assert cas(client, "k", "", "12345") and cas(client, "k", "c", "")
    assert cas(client, "k", "d", "c", "PX", 100000) and client.pttl("k") > 0
    assert cas(client, "k", "e", "d", "KEEPTTL") and client.pttl("k") > 0
    assert client.execute_command("set", "k", "f", "px", 5000, "ifeq", "e") and client.get("k") == b"f"


def test_get_shows_the_old_value_either_way(client):
    assert cas(client, "k", "a", "", "GET") is None and not client.exists("k")
    client.set("k", "a")
    assert cas(client, "k", "b", "x", "GET") == b"a" and client.get("k") == b"a"
    assert cas(client, "k", "b", "a", "GET") == b"a" and client.get("k") == b"b"


def test_deletes_where_the_value_is_the_expected_one(client):
    assert client.execute_command("DELIFEQ", "k", "") == 0
    client.set("k", "a")
    assert client.execute_command("DELIFEQ", "k", "b") == 0 and client.get("k") == b"a"
    assert client.execute_command("DELIFEQ", "k", "a") == 1 and not client.exists("k")


def test_what_is_refused(client):
    client.rpush("l", "a")
    for words in (("SET", "l", "v", "IFEQ", "a"), ("SET", "l", "v", "GET", "IFEQ", "a"), ("DELIFEQ", "l", "a")):
        with pytest.raises(redis.ResponseError, match="^WRONGTYPE"):
            client.execute_command(*words)
    for options in (("IFEQ",), ("IFEQ", "a", "NX"), ("XX", "IFEQ", "a"), ("NX", "IFEQ", "a", "GET"), ("IFNE", "a")):
        with pytest.raises(redis.ResponseError, match="syntax error"):
            client.execute_command("SET", "k", "v", *options)
    with pytest.raises(redis.ResponseError, match="wrong number of arguments for 'delifeq' command"):
        client.execute_command("DELIFEQ", "k")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        client.eval("return redis.call('DELIFEQ', KEYS[1], 'a')", 1, "l")
    assert client.lrange("l", 0, -1) == [b"a"] and not client.exists("k")


def test_a_watched_key_changes_only_if_it_is_set(server):
    watcher, other = server.client(), server.client()
    watcher.set("k", "a")
    for expected, done in (("x", [b"a"]), ("a", None)):
        pipe = watcher.pipeline()
        pipe.watch("k")
        cas(other, "k", "b", expected)
        pipe.multi()
        pipe.get("k")
        if done:
            assert pipe.execute() == done
        else:
            with pytest.raises(redis.WatchError):
                pipe.execute()


def test_no_update_is_lost(server):
    """Clients count up a number that each reads first."""
    def count(client, rounds):
        for _ in range(rounds):
            while True:
                old = client.get("n")
                if cas(client, "n", int(old) + 1, old):
                    break

    server.client().set("n", 0)
    threads = [threading.Thread(target=count, args=(server.client(), 50)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.client().get("n") == b"200"


@pytest.mark.parametrize("length", [100, 4096, PIECE, 64 * 1024 + 1, 3 * MB])
def test_each_byte_counts(client, length):
    value = (dense(MB)[1:] * 4)[:length]
    client.set("k", value)
    for at in (0, length // 2, length - 1):
        other = bytearray(value)
        other[at] ^= 1
        assert client.execute_command("DELIFEQ", "k", bytes(other)) == 0
        assert cas(client, "k", "x", bytes(other)) is None
    assert client.execute_command("DELIFEQ", "k", value[:-1]) == 0
    assert cas(client, "k", value + b"+", value) and client.get("k") == value + b"+"
    assert cas(client, "k", "short", value + b"+", "GET") == value + b"+" and client.get("k") == b"short"


@pytest.mark.vellum
def test_long_strings_and_holes_in_little_memory(small):  # noqa: F811
    client, value = small.client(), dense(12 * MB)
    client.set("d", value)
    client.setrange("hole", 12 * MB - 1, "x")
    zeros = bytes(12 * MB - 1)
    client.set("d2", value)
    for key, same, other in (("d", value, value[:-1] + b"\xff"), ("hole", zeros + b"x", zeros + b"y"),
                             ("hole", zeros + b"x", zeros[:-MB] + b"\1" + bytes(MB - 1) + b"x")):
        client.copy(key, "copy", replace=True)
        assert client.execute_command("DELIFEQ", "copy", other) == 0
        assert cas(client, "copy", "x", other) is None
        assert client.execute_command("DELIFEQ", "copy", same) == 1 and not client.exists("copy")
    replacement = value[::-1]
    assert cas(client, "d2", replacement, value[:-1] + b"\xff") is None
    assert cas(client, "d2", replacement, value)
    assert client.getrange("d2", 0, 99) == replacement[:100] and client.strlen("d2") == len(value)
