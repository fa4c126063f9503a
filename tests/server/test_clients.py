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
import rq

import harness

pytestmark = pytest.mark.shared

CLIENTS = os.path.join(harness.TOP, "tests", "clients")
MODULES = os.path.join(harness.TOP, "build", "node", "node_modules")


@pytest.fixture(scope="module")
def modules():
    subprocess.run([os.path.join(CLIENTS, "install")], check=True, timeout=300)


@pytest.mark.parametrize(
    "script", [["bull.js"], ["bullmq.js"], ["ioredis.js"], ["redis.js", "2"], ["redis.js", "3"]],
    ids=["bull", "bullmq", "ioredis", "node-redis-resp2", "node-redis-resp3"])
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


HALVED = []  # in this process: the worker does not fork


def halve(number):
    HALVED.append(number)
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number // 2


def test_python_queue_of_rq(server):
    """Jobs, those that depend on others, failures and retries; what has come of them is in streams."""
    client = server.client(db=2)
    HALVED.clear()
    queue = rq.Queue("jobs", connection=client)
    jobs = [queue.enqueue(halve, i) for i in range(0, 40, 2)]
    odd = queue.enqueue(halve, 7, retry=rq.Retry(max=2))
    last = queue.enqueue(halve, 80, depends_on=jobs)
    first = queue.enqueue(halve, 90, at_front=True)
    urgent = rq.Queue("urgent", connection=client).enqueue(halve, 100, meta={"who": "me"})
    assert queue.get_job_ids()[0] == first.id and len(queue) == 22
    assert last.get_status() == "deferred"
    worker = rq.SimpleWorker(["urgent", "jobs"], connection=client)
    assert worker.work(burst=True, logging_level="ERROR")
    assert [job.latest_result().return_value for job in jobs] == list(range(20))
    assert [job.latest_result().return_value for job in (last, first, urgent)] == [40, 45, 50]
    assert HALVED == [100, 90, *range(0, 40, 2), 7, 80, 7, 7]
    failed = odd.results()
    assert [result.type for result in failed] == [rq.results.Result.Type.FAILED] * len(failed)
    assert odd.get_status() == "failed" and "7 is odd" in odd.latest_result().exc_string
    assert client.type(f"rq:results:{odd.id}") == b"stream"
    assert queue.failed_job_registry.get_job_ids() == [odd.id]
    queue.failed_job_registry.requeue(odd.id)
    assert odd.get_status() == "queued"
    assert rq.SimpleWorker([queue], connection=client).work(burst=True, logging_level="ERROR")
    assert len(odd.results()) == len(failed) + 1
    assert rq.job.Job.fetch(urgent.id, connection=client).meta == {"who": "me"}
    assert len(queue.finished_job_registry) == 22 and queue.is_empty()


def test_python_streams_and_groups(server):
    client = server.client(decode_responses=True)
    assert client.xgroup_create("s", "g", mkstream=True)
    waiting = []
    reader = threading.Thread(target=lambda: waiting.extend(
        server.client(decode_responses=True).xreadgroup("g", "waits", {"s": ">"}, block=30_000)))
    reader.start()
    harness.eventually(lambda: client.info("clients")["blocked_clients"] == 1)
    client.xadd("s", {"n": 0}, id="1-0")
    reader.join()
    assert waiting == [["s", [("1-0", {"n": "0"})]]]
    for n in range(1, 10):
        client.xadd("s", {"n": n}, id=f"{n + 1}-0", maxlen=8, approximate=False)
    assert client.xlen("s") == 8 and client.xrange("s", count=1) == [("3-0", {"n": "2"})]
    assert client.xrevrange("s", count=1) == [("10-0", {"n": "9"})]
    [[_, taken]] = client.xreadgroup("g", "a", {"s": ">"}, count=4)
    assert [identity for identity, _ in taken] == ["3-0", "4-0", "5-0", "6-0"]
    assert client.xack("s", "g", "1-0", "3-0") == 2
    assert client.xclaim("s", "g", "b", 0, ["4-0"]) == [("4-0", {"n": "3"})]
    assert client.xdel("s", "5-0") == 1
    assert client.xautoclaim("s", "g", "b", 0, count=9, justid=True) == ["4-0", "6-0"]
    assert client.xpending("s", "g") == {
        "pending": 2, "min": "4-0", "max": "6-0", "consumers": [{"name": "b", "pending": 2}]}
    [pending, _] = client.xpending_range("s", "g", "-", "+", 9)
    assert (pending["message_id"], pending["consumer"]) == ("4-0", "b")
    about = client.xinfo_stream("s")
    assert (about["length"], about["last-generated-id"], about["groups"]) == (7, "10-0", 1)
    assert [g["pending"] for g in client.xinfo_groups("s")] == [2]
    assert {c["name"]: c["pending"] for c in client.xinfo_consumers("s", "g")} == {"waits": 0, "a": 0, "b": 2}
    assert client.xgroup_delconsumer("s", "g", "b") == 2 and client.xgroup_destroy("s", "g") == 1
    with pytest.raises(redis.ResponseError, match="NOGROUP"):
        client.xreadgroup("g", "a", {"s": ">"})


def test_python_places(server):
    client = server.client(decode_responses=True)
    assert client.geoadd("towns", [13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"]) == 2
    assert client.geodist("towns", "Palermo", "Catania", unit="km") == 166.2742
    assert client.geohash("towns", "Palermo", "nowhere") == ["sqc8b49rny0", None]
    [(longitude, latitude), nowhere] = client.geopos("towns", "Catania", "nowhere")
    assert (round(longitude, 4), round(latitude, 4), nowhere) == (15.0873, 37.5027, None)
    near = client.geosearch("towns", longitude=15, latitude=37, radius=200, unit="km", sort="ASC", withdist=True)
    assert near == [["Catania", 56.4413], ["Palermo", 190.4424]]
    assert client.geosearch("towns", member="Catania", width=100, height=100, unit="km") == ["Catania"]
    assert client.geosearchstore("near", "towns", member="Palermo", radius=200, unit="km", storedist=True) == 2
    assert client.zrange("near", 0, -1) == ["Palermo", "Catania"]
