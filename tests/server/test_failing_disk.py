"""A kernel that refuses to write: what is answered, what goes on, and what is there afterwards."""

import resource
import signal
import time

import pytest
import redis

pytestmark = pytest.mark.vellum

BEYOND = 64 * 1024  # of any file: the log is shorter, the journal soon is not


def limit_files(server, most):
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, hard))


def write_until_refused(client, acknowledged):
    """How the first write that was not done ended."""
    for i in range(20000):
        try:
            client.set(f"k{i}", f"value {i}")
        except redis.ConnectionError:  # it was done in memory, and can never be acknowledged
            return "closed"
        except redis.ResponseError as error:
            return str(error)
        acknowledged.append((i, time.monotonic()))
    return None


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_a_failed_write_refuses_writes_and_nothing_else(make_server, policy):
    server = make_server(appendfsync=policy)
    client = server.client()
    client.set("before", "kept")
    client.rpush("list", "a", "b")
    client.execute_command("WAITAOF", 1, 0, 5000)
    assert client.info()["aof_last_write_status"] == "ok" and client.info("vellum")["failed"] == 0
    limit_files(server, BEYOND)
    acknowledged = []
    ended = write_until_refused(client, acknowledged)
    failed = time.monotonic()
    assert ended is not None and (ended == "closed" or ended.startswith("MISCONF")), ended
    client = server.client()
    for words in (("SET", "k0", "1"), ("DEL", "before"), ("LPUSH", "list", "c"), ("FLUSHALL",),
                  ("EVAL", "return redis.call('INCR', 'n')", "0"), ("EXPIRE", "list", "1")):
        with pytest.raises(redis.ResponseError, match="MISCONF"):
            client.execute_command(*words)
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        client.pipeline().set("a", "1").set("b", "2").execute()
    limit_files(server, resource.RLIM_INFINITY)  # what has failed stays so
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        client.set("k0", "1")
    assert client.get("before") == b"kept" and client.lrange("list", 0, -1) == [b"a", b"b"]
    # Of `always` only what is durable is shown.
    for i, _ in acknowledged:
        assert client.get(f"k{i}") == b"value %d" % i
    assert client.info()["aof_last_write_status"] == "err" and client.info("vellum")["failed"] == 1
    assert "writing the journal" in server.said()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 1  # whoever stops it is to know
    server.process = None
    assert server.check_data()[0] == 0
    client = server.start().client()
    assert client.get("before") == b"kept" and client.lrange("list", 0, -1) == [b"a", b"b"]
    count = client.dbsize() - 2
    certain = [i for i, when in acknowledged if policy == "always" or when < failed - 3]
    assert len(certain) <= count <= len(acknowledged) + 1
    assert client.mget([f"k{i}" for i in range(count)]) == [b"value %d" % i for i in range(count)]
    assert client.set("after", "works") and client.info("vellum")["failed"] == 0
