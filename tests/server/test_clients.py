"""Stock client libraries at work: each connects, pipelines, runs transactions and scripts, publishes
and subscribes, and waits at queues. Those for node are scripts in tests/clients.
"""

import os
import socket
import subprocess
import threading

import kombu
import pytest
import redis

import harness

pytestmark = pytest.mark.shared

CLIENTS = os.path.join(harness.TOP, "tests", "clients")
MODULES = os.path.join(harness.TOP, "build", "node", "node_modules")


@pytest.fixture(scope="module")
def modules():
    subprocess.run([os.path.join(CLIENTS, "install")], check=True, timeout=300)


@pytest.mark.parametrize(
    "script", [["bull.js"], ["ioredis.js"], ["redis.js", "2"], ["redis.js", "3"]],
    ids=["bull", "ioredis", "node-redis-resp2", "node-redis-resp3"])
def test_node(server, modules, script):
    command = ["node", os.path.join(CLIENTS, script[0]), str(server.port), *script[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                          env=dict(os.environ, NODE_PATH=MODULES))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr


def test_python_values_and_pipelines(server):
    client = server.client(decode_responses=True, client_name="python-test")
    assert client.client_getname() == "python-test"
    assert client.set("greeting", "good day", ex=100) and client.get("greeting") == "good day"
    client.hset("user:1", mapping={"name": "Ada", "visits": 1})
    assert client.hincrbyfloat("user:1", "visits", 0.5) == 1.5
    client.zadd("scores", {"a": 1, "b": float("inf")})
    assert client.zrange("scores", 0, -1, withscores=True) == [("a", 1.0), ("b", float("inf"))]
    with client.pipeline(transaction=False) as batch:
        for i in range(1000):
            batch.set(f"p:{i}", i).incr(f"p:{i}")
        assert batch.execute()[1::2] == list(range(1, 1001))
    assert sorted(client.scan_iter(match="p:*", count=100)) == sorted(f"p:{i}" for i in range(1000))
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        client.lpush("user:1", "x")


def test_python_transactions_and_locks(server):
    client = server.client()
    with client.pipeline() as batch:
        assert batch.set("t", 1).incrby("t", 41).get("t").execute() == [True, 42, b"42"]
        batch.watch("t")
        client.set("t", "changed")
        batch.multi()
        batch.set("t", "lost")
        with pytest.raises(redis.WatchError):
            batch.execute()

    def increment():
        mine = server.client()
        for _ in range(20):
            mine.transaction(lambda p: p.multi() or p.set("sum", int(mine.get("sum") or 0) + 1),
                             "sum")
    threads = [threading.Thread(target=increment) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("sum") == b"80"
    with client.lock("lock", timeout=30):
        assert not client.lock("lock", timeout=30).acquire(blocking=False)
    assert client.get("lock") is None


def test_python_scripts(server):
    client = server.client()
    take = client.register_script("""
        local left = tonumber(redis.call('GET', KEYS[1]) or '0')
        if left < tonumber(ARGV[1]) then return redis.error_reply('LEFT only ' .. left) end
        return redis.call('DECRBY', KEYS[1], ARGV[1])""")
    client.set("stock", 10)
    client.script_flush()  # the first call finds no script, and sends it
    assert take(["stock"], [4]) == 6
    with pytest.raises(redis.ResponseError, match="LEFT only 6"):
        take(["stock"], [7])
    with client.pipeline() as batch:
        take(["stock"], [1], client=batch)
        assert batch.execute() == [5]


def test_python_messages(server):
    client = server.client()
    with client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe("news")
        listener.psubscribe("w*r")
        heard = []
        while client.pubsub_numsub("news") != [(b"news", 1)] or client.pubsub_numpat() != 1:
            listener.get_message(timeout=0.1)
        assert client.publish("news", "one") == 1
        client.publish("weather", "two")
        while len(heard) < 2:
            message = listener.get_message(timeout=10)
            if message:
                heard.append((message["type"], message["channel"], message["data"]))
        assert heard == [("message", b"news", b"one"), ("pmessage", b"weather", b"two")]


def test_python_queue(server):
    client, worker = server.client(), server.client()
    got = []
    waiter = threading.Thread(target=lambda: got.append(worker.blpop(["jobs", "urgent"], 30)))
    waiter.start()
    client.rpush("jobs", "job 1")
    waiter.join()
    assert got == [(b"jobs", b"job 1")]
    assert worker.blpop("jobs", 0.05) is None
    client.rpush("jobs", "job 2", "job 3")
    assert worker.blmove("jobs", "running", 10, "LEFT", "RIGHT") == b"job 2"
    assert worker.lrange("running", 0, -1) == [b"job 2"]
    client.zadd("delayed", {"later": 17})
    assert worker.bzpopmin("delayed", 10) == (b"delayed", b"later", 17.0)


def test_python_queue_of_kombu(server):
    """What Celery depends on: queues by priority, acknowledgements, messages to all subscribers."""
    with kombu.Connection(f"redis://127.0.0.1:{server.port}/1") as link:
        jobs = link.SimpleQueue("jobs")
        for i in range(50):
            jobs.put({"job": i}, priority=0 if i == 30 else 3)
        assert jobs.qsize() == 50
        first = jobs.get(timeout=10)
        assert first.payload == {"job": 30}
        first.requeue()
        got = [jobs.get(timeout=10) for _ in range(50)]
        assert sorted(message.payload["job"] for message in got) == list(range(50))
        client = server.client(db=1)
        assert client.zcard("unacked_index") == client.hlen("unacked") == 50
        for message in got[1:]:
            message.ack()
        jobs.close()
    with kombu.Connection(f"redis://127.0.0.1:{server.port}/1") as link:
        assert link.SimpleQueue("jobs").qsize() == 1  # what was not acknowledged has come back
        exchange = kombu.Exchange("news", type="fanout")
        heard = []
        reader = kombu.Queue("reader", exchange, auto_delete=True)
        with link.Consumer(reader, callbacks=[lambda body, message: heard.append(body)],
                           no_ack=True, accept=["json"]):
            publisher = server.client(db=1)
            while publisher.pubsub_numpat() == 0:
                try:
                    link.drain_events(timeout=0.1)
                except socket.timeout:
                    pass
            with link.Producer() as producer:
                producer.publish({"word": "hello"}, exchange=exchange)
            while not heard:
                link.drain_events(timeout=10)
        assert heard == [{"word": "hello"}]
