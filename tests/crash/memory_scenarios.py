"""What takes much memory in one way, for tests/crash/memory (long) and tests/server/test_memory.py (short).

Each scenario is a function of a Stage: it says what is done, `stage.measured()` from where on memory is
looked at; what it asserts is that those who are refused are told so. The bound and the neighbour's waits
are asserted by the caller (`run`), for all of them alike.
"""

import contextlib
import selectors
import socket
import threading
import time

import redis

from harness import encode

MB = 1 << 20
BOUND = 64 * MB
ALLOWED = 1.05
NEIGHBOUR_LIMIT_S = 10  # 'a few seconds', on a machine that does other things too
OPTIONS = dict(maxmemory=BOUND, maxstore=4096 * MB, journal_size="16mb", partitions=4,
               enable_debug_command="yes", busy_reply_threshold=60000, proto_max_bulk_len="512mb")
SCENARIOS = []


class Stage:
    """A server, and how much is done to it: 1 is what was once seen to take too much."""

    def __init__(self, server, scale):
        self.server, self.scale = server, scale
        self.sockets = []

    def count(self, number, least=1):
        return max(least, int(number * self.scale))

    def client(self):
        return self.server.client()

    def measured(self):
        """What stands in memory from preparing may go first."""
        time.sleep(0.3)
        self.server.peak_memory(reset=True)

    def ask(self, *words):
        """The reply; or None for a refusal, which must be -OOM."""
        try:
            return self.client().execute_command(*words)
        except redis.ResponseError as error:
            assert "maxmemory" in str(error) or "not enough memory" in str(error), error
        except (redis.ConnectionError, redis.TimeoutError) as error:
            assert "Timeout" not in str(error), error
        return None

    def at_once(self, count, *words):
        threads = [threading.Thread(target=self.ask, args=words) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def connect(self, count):
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", self.server.port))
            sock.setblocking(False)
            self.sockets.append(sock)

    def send(self, request, seconds, reads=False):
        """The bytes to every connection, as far as it takes them within that time."""
        left = {sock: memoryview(request) for sock in self.sockets}
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            events = selectors.EVENT_WRITE | (selectors.EVENT_READ if reads else 0)
            for sock in left:
                ready.register(sock, events)
            while left and ready.get_map() and time.monotonic() < end:
                for key, mask in ready.select(0.1):
                    self._serve(ready, key.fileobj, mask, left)

    @staticmethod
    def _serve(ready, sock, mask, left):
        try:
            if mask & selectors.EVENT_READ and not sock.recv(1 << 18):
                raise OSError("closed")
            if mask & selectors.EVENT_WRITE:
                left[sock] = left[sock][sock.send(left[sock][:1 << 16]):]
        except BlockingIOError:
            return
        except OSError:
            left[sock] = b""
        if not left[sock]:
            del left[sock]
            ready.unregister(sock)

    def close(self):
        for sock in self.sockets:
            sock.close()
        self.sockets = []


def scenario(function):
    SCENARIOS.append(function)
    return function


# ---- strings ----

def sparse(stage, name="sb", size=512 * MB):
    stage.client().setbit(name, size * 8 - 16, 1)


@scenario
def whole_strings(stage):
    size = stage.count(512 * MB)
    sparse(stage, size=size)
    sparse(stage, "other", size)
    stage.measured()
    for words in (["BITOP", "NOT", "to", "sb"], ["BITOP", "XOR", "to", "sb", "other"],
                  ["COPY", "sb", "to", "REPLACE"], ["BITCOUNT", "sb"], ["BITPOS", "sb", 1],
                  ["BITFIELD", "sb", "INCRBY", "u8", 1000, 3]):
        stage.ask(*words)
    stage.ask("EVAL", "return #redis.call('GET', KEYS[1])", 1, "sb")


@scenario
def bitcounts_beside_each_other(stage):
    sparse(stage, size=200 * MB)
    stage.measured()
    stage.at_once(6, "BITCOUNT", "sb")


@scenario
def bitcounts_of_a_script(stage):
    stage.client().set("k", "x" * 100_000)
    stage.measured()
    stage.ask("EVAL", "for i = 1, ARGV[1] do redis.call('BITCOUNT', KEYS[1]) end", 1, "k",
              stage.count(400_000, 20_000))


# ---- names and texts ----

@scenario
def texts_of_scripts(stage):
    stage.measured()
    client = stage.client()
    for i in range(stage.count(1200, 100)):
        with contextlib.suppress(redis.ResponseError):
            client.script_load(f"return {i} --" + "x" * MB)
        with contextlib.suppress(redis.ResponseError):
            client.eval(f"return {i} ---" + "x" * MB, 0)


@scenario
def names_of_clients(stage):
    stage.connect(stage.count(200, 50))
    stage.measured()
    stage.send(encode("CLIENT", "SETNAME", b"n" * MB), 10, reads=True)


@scenario
def slow_commands(stage):
    client = stage.client()
    client.config_set("slowlog-log-slower-than", 0)
    client.config_set("slowlog-max-len", 1_000_000)
    stage.measured()
    for _ in range(stage.count(200, 20)):
        with client.pipeline(transaction=False) as pipe:
            for _ in range(500):
                pipe.execute_command("MGET", *(f"{j}" + "k" * 128 for j in range(40)))
            pipe.execute()


# ---- keys ----

@scenario
def long_keys(stage):
    client = stage.client()
    for i in range(stage.count(60, 20)):
        client.set(b"%d" % i + b"k" * 3 * MB, "v")
    stage.measured()
    for _ in range(2):
        stage.ask("KEYS", "*")
        stage.ask("SCAN", 0, "COUNT", 1000)
    stage.at_once(4, "KEYS", "*")
    stage.ask("RANDOMKEY")


@scenario
def many_keys_in_one_command(stage):
    words = [word for i in range(20_000) for word in (b"key:%d" % i, b"value")]
    stage.connect(20)
    stage.measured()
    stage.send(encode("MSET", *words), 20, reads=True)


# ---- clients ----

@scenario
def halves_of_sets(stage):
    stage.connect(stage.count(5000, 1000))
    stage.measured()
    stage.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n" + b"x" * 30_000, 10)


@scenario
def halves_of_pushes(stage):
    stage.connect(stage.count(2000, 500))
    stage.measured()
    stage.send(b"*3\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n$60000\r\n" + b"x" * 30_000, 10)


@scenario
def unread_values(stage):
    client = stage.client()
    for i in range(200):
        client.set(f"v{i}", b"x" * MB)
    stage.connect(50)
    stage.measured()
    stage.send(encode("MGET", *(f"v{i}" for i in range(200))) * 2, 3)
    time.sleep(stage.count(4))


@scenario
def unread_values_of_a_transaction(stage):
    client = stage.client()
    for i in range(100):
        client.set(f"v{i}", b"x" * MB)
    stage.connect(10)
    stage.measured()
    stage.send(encode("MULTI") + b"".join(encode("GET", f"v{i % 100}") for i in range(200)) +
               encode("EXEC"), 3)
    time.sleep(stage.count(4))


@scenario
def clients_that_wait(stage):
    stage.connect(stage.count(2000, 600))
    stage.measured()
    stage.send(encode("BLPOP", *(f"list:{i}" for i in range(100)), 0), 10)


@scenario
def clients_that_wait_for_long_names(stage):
    stage.connect(stage.count(600, 300))
    stage.measured()
    stage.send(encode("BLPOP", *(b"k%d" % i + b"n" * 46_000 for i in range(10)), 0), 10)


@scenario
def queued_commands(stage):
    stage.connect(stage.count(400, 200))
    stage.measured()
    stage.send(encode("MULTI") + encode("RPUSH", "l", b"e" * 50_000) * 10, 10, reads=True)


@scenario
def long_elements(stage):
    stage.connect(20)
    stage.measured()
    long = b"e" * 5 * MB
    for words in (("LPUSH", "l", long), ("HSET", "h", "f", long), ("SADD", "x", long)):
        stage.send(encode(*words), 10, reads=True)


# ---- collections ----

def fill(client, kind, name, count, length):
    for at in range(0, count, 5000):
        members = [b"%d:" % i + b"m" * length for i in range(at, min(at + 5000, count))]
        if kind == "zset":
            client.zadd(name, {member: i for i, member in enumerate(members)})
        elif kind == "hash":
            client.hset(name, mapping={member: member for member in members})
        else:
            (client.rpush if kind == "list" else client.sadd)(name, *members)


@scenario
def unread_collections(stage):
    client = stage.client()
    fill(client, "set", "x", 100_000, 30)
    for i in range(20):
        client.mset({f"key:{i}:{j}": "v" for j in range(5000)})
    stage.connect(20)
    stage.measured()
    for words in (("SORT", "x", "ALPHA"), ("SUNION", "x", "x"), ("KEYS", "*"), ("SMEMBERS", "x")):
        stage.send(encode(*words), 2)
    time.sleep(stage.count(4))


@scenario
def unread_picks(stage):
    """The picks of all members but one, eight bytes each, wait with a reply that nobody reads."""
    fill(stage.client(), "set", "x", 200_000, 30)
    stage.connect(60)
    stage.measured()
    stage.send(encode("SRANDMEMBER", "x", 199_999), 2)
    time.sleep(4)


@scenario
def members_in_one_command(stage):
    stage.connect(8)
    stage.measured()
    words = [b"%d" % i for i in range(100_000)]
    stage.send(encode("SADD", "x", *words), 10, reads=True)
    stage.send(encode("SMEMBERS", "x") * 4, 3, reads=True)


@scenario
def payloads(stage):
    client = stage.client()
    fill(client, "set", "x", 100_000, 10)
    fill(client, "hash", "h", 20_000, 100)
    for i in range(10):
        client.rpush("l", b"e" * 500_000)
    dumps = [client.dump(name) for name in ("x", "h", "l")]
    stage.measured()
    for dump in dumps:
        stage.ask("RESTORE", "to", 0, dump, "REPLACE")
    for dump in dumps:
        stage.at_once(4, "RESTORE", "to", 0, dump, "REPLACE")


@scenario
def sorts_by_long_values(stage):
    client = stage.client()
    client.rpush("l", *range(100))
    for i in range(100):
        client.set(f"weight:{i}", b"%d" % (100 - i) + b"w" * MB)
    stage.measured()
    stage.ask("SORT", "l", "BY", "weight:*", "ALPHA")
    stage.ask("SORT", "l", "GET", "weight:*")
    stage.ask("SORT", "l", "GET", "weight:*", "STORE", "to")
    stage.at_once(4, "SORT", "l", "GET", "weight:*")


@scenario
def copies_and_digests_of_long_elements(stage):
    client = stage.client()
    for i in range(stage.count(40, 20)):
        client.rpush("l", b"e" * 3 * MB)
        client.hset("h", f"f{i}", b"e" * 3 * MB)
    client.set("s", b"s" * 20 * MB)
    stage.measured()
    for name in ("l", "h"):
        stage.ask("COPY", name, "to", "REPLACE")
    stage.at_once(4, "COPY", "l", "to", "REPLACE")
    stage.ask("DEBUG", "DIGEST-VALUE", "l", "h", "s")
    stage.ask("DEBUG", "DIGEST")
    stage.at_once(4, "DEBUG", "DIGEST-VALUE", "l", "h", "s")


# ---- scripts ----

@scenario
def pings_of_a_script(stage):
    stage.measured()
    stage.ask("EVAL", "for i = 1, ARGV[1] do redis.call('ping') end", 0,
              stage.count(20_000_000, 1_000_000))


@scenario
def long_writes_of_a_script(stage):
    stage.measured()
    stage.ask("EVAL", "local v = string.rep('x', 1000000) for i = 1, ARGV[1] do "
              "redis.call('RPUSH', 'l' .. i, v .. i) end", 0, 100)
    stage.at_once(3, "EVAL", "local v = string.rep('x', 1000000) for i = 1, 100 do "
                  "redis.call('SET', 'k' .. i, v .. i) end", 0)


# ---- all of it ----

@scenario
def scripts_transactions_and_clients_at_once(stage):
    """Each keeps to its own bound, and all of these together are more than there is."""
    stage.connect(400)
    stage.measured()
    stage.send(b"*3\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n$60000\r\n" + b"x" * 36_000, 5)
    table = ("local t = {} for i = 1, ARGV[1] do t[i] = 'element ' .. i end "
             "local n = 0 for i = 1, 20 * ARGV[1] do n = n + #t[i % ARGV[1] + 1] end return #t")
    write = "for i = 1, 40000 do redis.call('SET', 'key:' .. i, string.rep('v', 400)) end"
    threads = [threading.Thread(target=stage.at_once, args=words) for words in
               ((2, "EVAL", table, 0, 300_000), (2, "EVAL", write, 0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- the account ----

class Neighbour:
    """GETs a short key the whole time."""

    def __init__(self, server):
        self.client = server.client(db=1)
        self.client.set("neighbour", "hello")
        self.longest, self.error, self.is_over = 0.0, None, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            began = time.monotonic()
            try:
                assert self.client.get("neighbour") == b"hello"
            except Exception as error:  # told by judge
                self.error = error
                return
            self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(0.02)

    def end(self):
        self.is_over = True
        self.thread.join()


class Outcome:
    def __init__(self, peak, longest, faults):
        self.peak, self.longest, self.faults = peak, longest, faults

    def __str__(self):
        return f"peak {100 * self.peak / BOUND:.1f} %, neighbour's longest wait {self.longest:.2f} s"


def run(function, server, scale, neighbour_limit_s=NEIGHBOUR_LIMIT_S):
    """What came of it; its faults are an empty list."""
    stage, neighbour = Stage(server, scale), Neighbour(server)
    try:
        function(stage)
    finally:
        neighbour.end()
        stage.close()
    peak, faults = server.peak_memory(), []
    if peak > ALLOWED * BOUND:
        faults.append(f"the server has had {100 * peak / BOUND:.1f} % of maxmemory")
    if neighbour.error:
        faults.append(f"a neighbour was told {neighbour.error!r}")
    if neighbour.longest > neighbour_limit_s:
        faults.append(f"a neighbour has waited {neighbour.longest:.1f} s")
    return Outcome(peak, neighbour.longest, faults)
