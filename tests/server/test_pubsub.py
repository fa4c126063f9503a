"""Publish and subscribe, over all workers: which client gets which message, in which order and form."""

import hashlib
import threading
import time

import pytest

import harness
from harness import bulk, encode, eventually

pytestmark = pytest.mark.shared


def push(*parts, resp=2):
    shown = [b":%d\r\n" % p if isinstance(p, int) else b"_\r\n" if p is None and resp == 3 else
             b"$-1\r\n" if p is None else bulk(p) for p in parts]
    return (b">" if resp == 3 else b"*") + b"%d\r\n" % len(parts) + b"".join(shown)


@pytest.fixture
def connect(server):
    made = []

    def make(resp=2, **options):
        raw = server.raw(**options)
        made.append(raw)
        if resp == 3:
            raw.call("HELLO", 3)
        return raw

    yield make
    for raw in made:
        raw.close()


def silent(raw, seconds=0.1):
    raw.socket.settimeout(seconds)
    try:
        raw.more()
        return False
    except TimeoutError:
        return True
    finally:
        raw.socket.settimeout(60)


def test_every_subscriber_gets_every_message(connect):
    subscribers = [connect(resp) for resp in (2, 3) * 5]
    for i, raw in enumerate(subscribers):
        resp = 2 + i % 2
        assert raw.call("SUBSCRIBE", "news") == push("subscribe", "news", 1, resp=resp)
        assert raw.call("PSUBSCRIBE", "n[ae]*") == push("psubscribe", "n[ae]*", 2, resp=resp)
    sender = connect()
    for i in range(20):
        assert sender.call("PUBLISH", "news", f"m{i}") == b":20\r\n"
    assert sender.call("PUBLISH", "nobody", "x") == b":0\r\n"
    for i, raw in enumerate(subscribers):
        resp = 2 + i % 2
        for number in range(20):
            assert raw.reply() == push("message", "news", f"m{number}", resp=resp)
            assert raw.reply() == push("pmessage", "n[ae]*", "news", f"m{number}", resp=resp)
        assert silent(raw, 0.01)


def test_counts_and_names(connect):
    raw = connect()
    assert raw.call("SUBSCRIBE", "a", "b", "a")[-4:] == b":1\r\n"
    assert raw.reply() == push("subscribe", "b", 2)
    assert raw.reply() == push("subscribe", "a", 2)
    other = connect(3)
    other.call("SUBSCRIBE", "b")
    other.call("PSUBSCRIBE", "x*")
    other.call("SSUBSCRIBE", "s")
    assert other.call("SSUBSCRIBE", "s2") == push("ssubscribe", "s2", 2, resp=3)
    asker = connect()
    names = asker.call("PUBSUB", "CHANNELS")
    assert sorted(names.split(b"\r\n")[2::2][:2]) == [b"a", b"b"]
    assert asker.call("PUBSUB", "CHANNELS", "a*") == b"*1\r\n" + bulk("a")
    assert asker.call("PUBSUB", "NUMSUB", "a", "b", "c") == (
        b"*6\r\n" + bulk("a") + b":1\r\n" + bulk("b") + b":2\r\n" + bulk("c") + b":0\r\n")
    assert asker.call("PUBSUB", "NUMPAT") == b":1\r\n"
    assert asker.call("PUBSUB", "SHARDNUMSUB", "s", "a") == (
        b"*4\r\n" + bulk("s") + b":1\r\n" + bulk("a") + b":0\r\n")
    assert asker.call("PUBSUB", "SHARDCHANNELS", "s?") == b"*1\r\n" + bulk("s2")
    stats = asker.call("INFO", "stats").decode()
    assert "pubsub_channels:2\r\n" in stats and "pubsub_patterns:1\r\n" in stats
    clients = asker.call("CLIENT", "LIST", "TYPE", "pubsub").decode()
    assert " flags=P db=0 sub=2 psub=0 ssub=0 " in clients
    assert " flags=P db=0 sub=1 psub=1 ssub=2 " in clients
    assert "sub=1" not in asker.call("CLIENT", "LIST", "TYPE", "normal").decode()
    raw.close()
    other.close()
    eventually(lambda: asker.call("PUBSUB", "CHANNELS") == b"*0\r\n")
    assert asker.call("PUBSUB", "NUMPAT") == b":0\r\n"
    assert asker.call("PUBSUB", "SHARDCHANNELS") == b"*0\r\n"


def test_unsubscribing(connect):
    raw = connect()
    assert raw.call("UNSUBSCRIBE") == push("unsubscribe", None, 0)
    assert raw.call("SUNSUBSCRIBE", "x") == push("sunsubscribe", "x", 0)
    raw.call("SUBSCRIBE", "a")
    raw.call("PSUBSCRIBE", "p")
    assert raw.call("UNSUBSCRIBE", "zz") == push("unsubscribe", "zz", 2)
    assert raw.call("UNSUBSCRIBE") == push("unsubscribe", "a", 1)
    assert raw.call("PUNSUBSCRIBE") == push("punsubscribe", "p", 0)
    assert raw.call("GET", "k") == b"$-1\r\n"
    raw.call("HELLO", 3)
    assert raw.call("PUNSUBSCRIBE") == push("punsubscribe", None, 0, resp=3)


def test_what_a_resp2_subscriber_may_do(connect):
    raw = connect()
    raw.call("SUBSCRIBE", "a")
    refused = (b"-ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
               b"RESET are allowed in this context\r\n")
    assert raw.call("GET", "x") == refused % b"get"
    assert raw.call("CLIENT", "LIST") == refused % b"client|list"
    assert raw.call("PUBLISH", "a", "x") == refused % b"publish"
    assert raw.call("PING") == b"*2\r\n" + bulk("pong") + bulk("")
    assert raw.call("PING", "hi") == b"*2\r\n" + bulk("pong") + bulk("hi")
    assert raw.call("RESET") == b"+RESET\r\n"
    assert raw.call("PING") == b"+PONG\r\n"
    assert raw.call("PUBSUB", "NUMSUB", "a") == b"*2\r\n" + bulk("a") + b":0\r\n"
    raw.call("SUBSCRIBE", "a")
    assert raw.call("QUIT") == b"+OK\r\n"
    assert raw.closed()


def test_resp3_pushes_stand_between_replies(connect):
    raw, sender = connect(3), connect()
    raw.call("SUBSCRIBE", "a")
    raw.call("SET", "k", b"v" * 100000)
    sender.send(encode("PUBLISH", "a", b"p" * 20000) * 50)
    raw.send(encode("GET", "k") * 50)
    replies = [raw.reply() for _ in range(100)]
    assert sorted(set(replies)) == sorted({bulk(b"v" * 100000),
                                           push("message", "a", b"p" * 20000, resp=3)})
    assert replies.count(bulk(b"v" * 100000)) == 50
    assert [sender.reply() for _ in range(50)] == [b":1\r\n"] * 50


def test_a_client_that_publishes_to_itself(connect):
    """Redis 7.2 sends what a command has published after the command's reply, 7.0 before it."""
    raw = connect(3)
    raw.call("SUBSCRIBE", "a")
    first, second = (push("message", "a", text, resp=3) for text in "12")
    for _ in range(20):
        raw.send(encode("PUBLISH", "a", "1") + encode("ECHO", "x") + encode("MULTI") +
                 encode("PUBLISH", "a", "2") + encode("EXEC") + encode("ECHO", "y"))
        got = [raw.reply() for _ in range(8)]
        wanted = [b":1\r\n", first, bulk("x"), b"+OK\r\n", b"+QUEUED\r\n", b"*1\r\n:1\r\n", second, bulk("y")]
        if harness.IS_REDIS:
            got.sort()
            wanted.sort()
        assert got == wanted


def test_reply_off_does_not_silence_pushes(connect):
    raw, sender = connect(3), connect()
    raw.send(encode("CLIENT", "REPLY", "OFF") + encode("SUBSCRIBE", "y") + encode("PING"))
    assert raw.reply() == push("subscribe", "y", 1, resp=3)
    assert sender.call("PUBLISH", "y", "1") == b":1\r\n"
    assert raw.reply() == push("message", "y", "1", resp=3)
    assert raw.call("CLIENT", "REPLY", "ON") == b"+OK\r\n"


def test_who_sees_the_message_sees_the_write(connect):
    """And in order: every worker publishes and subscribes."""
    readers = [connect() for _ in range(4)]
    askers = [connect() for _ in range(4)]
    for raw in readers:
        raw.call("SUBSCRIBE", "turn")
    errors = []

    def read(raw, asker):
        try:
            for number in range(300):
                message = raw.reply()
                if message != push("message", "turn", str(number)):
                    errors.append(message)
                seen = int(asker.call("GET", "number").split(b"\r\n")[1])
                if seen < number:
                    errors.append((number, seen))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=pair) for pair in zip(readers, askers)]
    for thread in threads:
        thread.start()
    writer = connect()
    for number in range(0, 300, 10):
        writer.send(b"".join(encode("SET", "number", n) + encode("PUBLISH", "turn", n)
                             for n in range(number, number + 10)))
        for _ in range(10):
            assert writer.reply() == b"+OK\r\n"
            assert writer.reply() == b":4\r\n"
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_message_does_not_outrun_its_commit(make_server):
    server = make_server(appendfsync="always")
    with server.raw() as reader, server.raw() as asker, server.raw() as writer:
        reader.call("SUBSCRIBE", "c")
        for i in range(50):
            writer.send(encode("SET", f"k{i}", i) + encode("PUBLISH", "c", f"k{i}"))
            assert reader.reply() == push("message", "c", f"k{i}")
            assert asker.call("GET", f"k{i}") == bulk(str(i))
            assert writer.reply() + writer.reply() == b"+OK\r\n:1\r\n"


def test_a_subscriber_that_does_not_read_is_closed(make_server):
    server = make_server(client_output_buffer_limit="pubsub 1mb 512kb 1")
    message = b"x" * 100000
    with server.raw(receive_buffer=4096) as hard, server.raw() as sender:
        hard.call("SUBSCRIBE", "hard")
        assert eventually(lambda: sender.call("PUBLISH", "hard", message) == b":0\r\n")


def test_a_subscriber_that_reads_too_little_for_long_is_closed(make_server):
    """Above the soft limit, far below the hard one."""
    server = make_server(client_output_buffer_limit="pubsub 16mb 512kb 1")
    with server.raw(receive_buffer=4096) as soft, server.raw() as sender:
        soft.call("SUBSCRIBE", "soft")

        def unread():
            assert sender.call("PUBLISH", "soft", b"x" * 200_000) == b":1\r\n"
            listed = sender.call("CLIENT", "LIST", "TYPE", "pubsub")
            return int(listed.split(b"omem=")[1].split(b" ")[0])

        assert eventually(lambda: unread() > 600_000)
        assert eventually(lambda: sender.call("PUBSUB", "CHANNELS") == b"*0\r\n")


def test_large_messages_and_many_subscribers(connect):
    subscribers = [connect() for _ in range(20)]
    for raw in subscribers:
        raw.call("SUBSCRIBE", "big")
    message = bytes(range(256)) * 8192  # 2 MB
    sender = connect()
    threads = []
    for raw in subscribers:
        thread = threading.Thread(
            target=lambda r=raw: setattr(r, "got", [r.reply() for _ in range(2)]))
        thread.start()
        threads.append(thread)
    for _ in range(2):
        assert sender.call("PUBLISH", "big", message) == b":20\r\n"
    for raw, thread in zip(subscribers, threads):
        thread.join()
        assert raw.got == [push("message", "big", message)] * 2


@pytest.mark.vellum
def test_a_message_for_many_is_there_once(server):
    """Who has not read it yet is not closed for what all of them have together."""
    client = server.client()
    evicted = client.info("stats")["evicted_clients"]
    message = bytes(range(256)) * 32768  # 8 MB; all clients may hold 32
    subscribers = [server.raw(receive_buffer=4096) for _ in range(12)]
    for raw in subscribers:
        raw.call("SUBSCRIBE", "big")
    assert client.publish("big", message) == 12
    assert client.info("memory")["mem_clients_normal"] < 2 * len(message)
    for raw in subscribers:
        assert raw.reply() == push("message", "big", message)
        raw.close()
    assert client.info("stats")["evicted_clients"] == evicted


@pytest.mark.vellum
def test_messages_that_are_not_read_are_counted(server):
    client = server.client()
    size, count = 50000, 300
    with server.raw(receive_buffer=4096) as raw:
        raw.call("SUBSCRIBE", "many")
        for _ in range(count):
            client.publish("many", "x" * size)
        waiting = client.info("memory")["mem_clients_normal"]
        assert size * count // 2 < waiting < size * count * 5 // 4  # the kernel has the others
    eventually(lambda: client.info("memory")["mem_clients_normal"] < size * 10)


def test_thousands_of_channels_of_one_client(connect):
    raw, sender = connect(), connect()
    names = [f"channel:{i}" for i in range(5000)]
    raw.send(encode("SUBSCRIBE", *names) + encode("SUBSCRIBE", *names[:10]))
    for i, name in enumerate(names):
        assert raw.reply() == push("subscribe", name, i + 1)
    for name in names[:10]:
        assert raw.reply() == push("subscribe", name, 5000)
    assert sender.call("PUBLISH", "channel:4321", "x") == b":1\r\n"
    assert raw.reply() == push("message", "channel:4321", "x")
    raw.send(encode("UNSUBSCRIBE"))
    left = {raw.reply().split(b"\r\n")[4] for _ in names}
    assert len(left) == 5000
    assert sender.call("PUBSUB", "CHANNELS") == b"*0\r\n"


def test_subscribers_come_and_go_while_messages_fly(connect):
    stop, errors = threading.Event(), []

    def churn(raw, number):
        try:
            while not stop.is_set():
                raw.send(encode("SUBSCRIBE", "x", f"y{number}") + encode("PSUBSCRIBE", "x*") +
                         encode("UNSUBSCRIBE") + encode("PUNSUBSCRIBE"))
                while b"punsubscribe" not in raw.reply():
                    pass
        except Exception as error:
            errors.append(error)

    def send(raw):
        try:
            while not stop.is_set():
                raw.send(encode("PUBLISH", "x", "hello") * 20)
                for _ in range(20):
                    assert raw.reply()[:1] == b":"
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=churn, args=(connect(), i)) for i in range(4)]
    threads += [threading.Thread(target=send, args=(connect(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(1.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    asker = connect()
    assert asker.call("PUBSUB", "CHANNELS") == b"*0\r\n"
    assert asker.call("PUBSUB", "NUMPAT") == b":0\r\n"


def test_who_goes_away_while_his_transaction_runs_subscribes_to_nothing(connect):
    """Where the store makes the transaction wait."""
    asker = connect()
    asker.call("MSET", *(word for i in range(40) for word in (f"{{{i}}}", "v")))
    for i in range(40):
        raw = connect()
        raw.send(encode("MULTI") + encode("GET", f"{{{i}}}") + encode("SUBSCRIBE", "x") +
                 encode("PSUBSCRIBE", "x*") + encode("EXEC"))
        raw.close()
    eventually(lambda: b"connected_clients:1\r\n" in asker.call("INFO", "clients"))
    eventually(lambda: asker.call("PUBLISH", "x", "hello") == b":0\r\n")
    eventually(lambda: asker.call("PUBSUB", "NUMPAT") == b":0\r\n")


# ---- MONITOR ----

def monitored(raw):
    line = raw.line()
    assert line.startswith(b"+") and line.split(b" ")[0].count(b".") == 1
    return line[line.index(b" ") + 1:-2]


@pytest.mark.sockets("the addresses are those of the proxy")
def test_monitor_shows_commands_of_all_workers(connect):
    watcher = connect()
    assert watcher.call("MONITOR") == b"+OK\r\n"
    clients = [connect() for _ in range(4)]
    for i, raw in enumerate(clients):
        raw.call("SELECT", 3)
        name = b"[3 %s:%d] " % tuple(
            w if isinstance(w, int) else w.encode() for w in raw.socket.getsockname())
        assert monitored(watcher) == name + b'"SELECT" "3"'
        raw.call("SET", "k", b'a"\n\r\t\x07\x08\x01\\\xff')
        assert monitored(watcher) == name + rb'"SET" "k" "a\"\n\r\t\a\b\x01\\\xff"'
        raw.call("GET", "k")
        assert monitored(watcher) == name + b'"GET" "k"'


@pytest.mark.sockets("RDMA CONNECT is shown as well")
def test_monitor_hides_secrets_and_administration(connect):
    watcher, raw = connect(), connect()
    watcher.call("MONITOR")
    raw.call("AUTH", "secret")
    raw.call("AUTH", "user", "secret")
    raw.call("HELLO", 3, "AUTH", "default", "secret", "SETNAME", "a")
    raw.call("CONFIG", "GET", "port")
    raw.call("GET")
    raw.call("NOSUCH")
    raw.call("PING")
    assert monitored(watcher).endswith(b'] "AUTH" "(redacted)"')
    assert monitored(watcher).endswith(b'] "AUTH" "(redacted)" "(redacted)"')
    assert monitored(watcher).endswith(
        b'] "HELLO" "3" "AUTH" "(redacted)" "(redacted)" "SETNAME" "a"')
    assert monitored(watcher).endswith(b'] "PING"')


def test_a_monitor_is_listed_and_may_not_touch_keys(connect):
    watcher, raw = connect(), connect()
    assert raw.call("PING") == b"+PONG\r\n"  # it is there before it could be seen to come
    watcher.call("MONITOR")
    assert b"flags=O " in raw.call("CLIENT", "LIST")
    assert watcher.call("GET", "k") == b"-ERR Replica can't interact with the keyspace\r\n"
    assert watcher.call("RESET") == b"+RESET\r\n"
    raw.call("PING")
    assert watcher.call("GET", "k") == b"$-1\r\n"


def test_monitor_shows_transactions_as_they_run(connect):
    watcher, raw = connect(), connect(3)
    watcher.call("MONITOR")
    raw.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("SET", "a", "1"), ("CLIENT", "ID"), ("PUBLISH", "c", "x"), ("EXEC",))))
    for _ in range(5):
        raw.reply()
    shown = [monitored(watcher) for _ in range(5)]
    assert shown[0].endswith(b'"MULTI"') and shown[4].endswith(b'"EXEC"')
    assert sorted(line[line.index(b"] ") + 2:] for line in shown[1:4]) == [
        b'"CLIENT" "ID"', b'"PUBLISH" "c" "x"', b'"SET" "a" "1"']


def test_monitor_shows_scripts_before_what_they_call(connect):
    watcher, raw = connect(), connect()
    watcher.call("MONITOR")
    declared, undeclared = "redis.call('SET', KEYS[1], '1')", "return redis.call('GET', 'other')"
    absent = "0" * 40
    for words in (("EVAL", declared, "1", "k"), ("EVAL_RO", undeclared, "0"),
                  ("EVALSHA", hashlib.sha1(undeclared.encode()).hexdigest(), "0", "an argument"),
                  ("EVALSHA_RO", absent, "0"), ("MULTI",), ("EVAL", undeclared, "0")):
        raw.call(*words)
    raw.call("EXEC")
    shown = [line[line.index(b" ", 1) + 1:] for line in (monitored(watcher) for _ in range(11))]
    texts = [line[line.index(b"] ") + 2:].decode() for line in shown]
    assert texts == [
        f'"EVAL" "{declared}" "1" "k"', '"SET" "k" "1"', f'"EVAL_RO" "{undeclared}" "0"',
        '"GET" "other"', f'"EVALSHA" "{hashlib.sha1(undeclared.encode()).hexdigest()}" "0" '
        '"an argument"', '"GET" "other"', f'"EVALSHA_RO" "{absent}" "0"', '"MULTI"',
        f'"EVAL" "{undeclared}" "0"', '"GET" "other"', '"EXEC"']
    assert [line.startswith(b"lua]") for line in shown] == [
        text.startswith(('"SET', '"GET')) for text in texts]


def test_publishing_in_a_transaction(connect):
    reader, raw = connect(3), connect(3)
    reader.call("SUBSCRIBE", "c")
    raw.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("PUBLISH", "c", "1"), ("SUBSCRIBE", "d"), ("SET", "k", "v"),
        ("PUBLISH", "c", "2"), ("EXEC",))))
    assert [raw.reply() for _ in range(5)] == [b"+OK\r\n"] + [b"+QUEUED\r\n"] * 4
    assert raw.reply() == b"*4\r\n:1\r\n" + push("subscribe", "d", 1, resp=3) + b"+OK\r\n:1\r\n"
    assert reader.reply() == push("message", "c", "1", resp=3)
    assert reader.reply() == push("message", "c", "2", resp=3)
    raw.send(encode("MULTI") + encode("PUBLISH", "c", "3") + encode("DISCARD"))
    assert [raw.reply() for _ in range(3)][2] == b"+OK\r\n"
    assert silent(reader)
