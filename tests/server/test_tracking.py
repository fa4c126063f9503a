"""Client-side caching: which client is told of which change, in which form, and when."""

import random
import threading
import time

import pytest
import redis

import harness
from harness import bulk, encode, eventually

pytestmark = pytest.mark.shared

OK = b"+OK\r\n"


def array(*names):
    return b"*%d\r\n" % len(names) + b"".join(bulk(name) for name in names)


def invalid(*names):
    """The push about these keys; without any: about all."""
    return b">2\r\n" + bulk("invalidate") + (array(*names) if names else b"_\r\n")


def message(*names):
    """The same for a subscriber in RESP2."""
    return (b"*3\r\n" + bulk("message") + bulk("__redis__:invalidate") +
            (array(*names) if names else b"$-1\r\n"))


def client_id(raw):
    return int(raw.call("CLIENT", "ID")[1:-2])


@pytest.fixture
def connect(server):
    made = []

    def make(*tracking, resp=3):
        raw = server.raw()
        made.append(raw)
        if resp == 3:
            raw.call("HELLO", 3)
        if tracking:
            assert raw.call("CLIENT", "TRACKING", *tracking) == OK
        return raw

    yield make
    for raw in made:
        raw.close()


def quiet(*raws):
    """Nothing comes but the reply. A second round trip, for what other workers pass on."""
    for _ in range(2):
        for raw in raws:
            assert raw.call("PING") == b"+PONG\r\n"
        time.sleep(0.02)


# ---- keys that were read ----

def test_a_key_that_was_read(connect):
    reader, writer = connect("ON"), connect()
    reader.call("GET", "a")
    writer.call("SET", "b", "1")
    quiet(reader)
    writer.call("SET", "a", "1")
    assert reader.reply() == invalid("a")
    writer.call("SET", "a", "2")
    quiet(reader)
    assert reader.call("GET", "a") == bulk("2")
    writer.call("DEL", "a")
    assert reader.reply() == invalid("a")


def test_all_clients_that_have_read_it(connect):
    readers, writer = [connect("ON") for _ in range(20)], connect()
    for reader in readers:
        reader.call("MGET", "a", "b")
    readers.pop().close()
    writer.call("MSET", "a", "1", "b", "2")
    for reader in readers:
        assert {reader.reply(), reader.reply()} == {invalid("a"), invalid("b")}
    quiet(*readers)


@pytest.mark.parametrize("read", [
    "GET k", "MGET other k", "STRLEN k", "GETRANGE k 0 1", "EXISTS other k", "TYPE k", "TTL k", "DUMP k",
    "SUBSTR k 0 1", "OBJECT ENCODING k", "PFCOUNT k", "SORT_RO k", "LRANGE k 0 -1", "HGETALL k", "XRANGE k - +",
    "SINTER other k", "ZRANGE k 0 -1", "XREAD COUNT 1 STREAMS k 0", "LCS other k", "GEOPOS k a", "TOUCH k"])
def test_commands_that_read(connect, read):
    reader, writer = connect("ON"), connect()
    reader.call(*read.split())
    writer.call("SET", "k", "1")
    assert reader.reply() == invalid("k")


@pytest.mark.parametrize("other", ["SET k 1", "GETSET k 1", "GETEX k PERSIST", "KEYS *", "RANDOMKEY", "SCAN 0", "PING"])
def test_commands_that_do_not(connect, other):
    reader, writer = connect("ON"), connect()
    writer.call("SET", "k", "0")
    reader.call(*other.split())
    writer.call("SET", "k", "1")
    quiet(reader)


@pytest.mark.parametrize("change, names", [
    ("SET k 1", "k"), ("SET k 0 KEEPTTL", "k"), ("EXPIRE k 100", "k"), ("DEL k", "k"), ("UNLINK k", "k"), ("APPEND k x", "k"),
    ("RENAME k l", "k"), ("RENAME m k", "k"), ("COPY m k REPLACE", "k"), ("MOVE k 1", "k"),
    ("SETRANGE k 3 x", "k"), ("GETDEL k", "k"), ("GETEX k EX 100", "k"), ("INCR k", "k"),
    ("SORT list STORE k", "k"), ("BITOP NOT k m", "k"), ("EVAL redis.call('SET','k',2) 0", "k")])
def test_commands_that_change(connect, change, names):
    reader, writer = connect("ON"), connect()
    writer.call("MSET", "k", "0", "m", "2")
    writer.call("RPUSH", "list", "1")
    reader.call("GET", "k")
    words = change.split() if not change.startswith("EVAL") else ["EVAL", "redis.call('SET','k',2)", "0"]
    assert not writer.call(*words).startswith(b"-")
    assert reader.reply() == invalid(names)


def test_the_database_does_not_count(connect):
    reader, writer = connect("ON"), connect()
    reader.call("GET", "k")
    writer.call("SELECT", 3)
    writer.call("SET", "k", "1")
    assert reader.reply() == invalid("k")


def test_an_expired_key(connect):
    reader, writer = connect("ON"), connect()
    writer.call("SET", "k", "1", "PX", "50")
    assert reader.call("GET", "k") == bulk("1")
    assert reader.reply() == invalid("k")
    assert reader.call("GET", "k") == b"_\r\n"


@pytest.mark.parametrize("flush", ["FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC"])
def test_a_flush(connect, flush):
    reader, all_keys, writer = connect("ON"), connect("ON", "BCAST"), connect()
    writer.call("MSET", "a", "1", "b", "2")
    assert all_keys.reply() == invalid("a", "b")
    reader.call("MGET", "a", "b")
    writer.call(*flush.split())
    assert reader.reply() == all_keys.reply() == invalid()
    writer.call("SET", "a", "1")
    quiet(reader)


@pytest.mark.vellum
def test_a_swap(connect):
    reader, writer = connect("ON"), connect()
    reader.call("GET", "a")
    writer.call("SWAPDB", 0, 1)
    assert reader.reply() == invalid()


def test_keys_of_scripts_and_transactions(connect):
    reader, writer = connect("ON"), connect()
    writer.call("MSET", "a", "1", "b", "2", "c", "3")
    for words in (("EVAL", "return redis.call('GET', KEYS[1])", 1, "a"),
                  ("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, "a")):
        assert reader.call(*words) == bulk("1")
        writer.call("SET", "a", "1")
        assert reader.reply() == invalid("a")
    reader.call("MULTI")
    reader.call("GET", "b")
    reader.call("GET", "c")
    assert reader.call("EXEC") == b"*2\r\n" + bulk("2") + bulk("3")
    writer.call("MSET", "b", "4", "c", "5")
    assert {reader.reply(), reader.reply()} == {invalid("b"), invalid("c")}


# ---- own changes, and order ----

def test_own_changes_come_after_the_reply(connect):
    client = connect("ON")
    client.call("MGET", "a", "b")
    client.send(encode("SET", "a", "1") + encode("GET", "c") + encode("DEL", "a", "b") + encode("PING"))
    replies = [client.reply() for _ in range(5)]
    # Commands that had begun when the key changed, since a read waited, are answered before.
    assert replies.index(invalid("a")) > 0
    replies.remove(invalid("a"))
    assert replies == [OK, b"_\r\n", b":1\r\n", b"+PONG\r\n"]


def test_own_changes_of_a_transaction_come_after_exec(connect):
    client = connect("ON")
    client.call("MGET", "a", "b")
    client.send(b"".join(encode(*c) for c in [("MULTI",), ("SET", "a", "1"), ("SET", "b", "1"), ("EXEC",)]))
    assert [client.reply() for _ in range(4)] == [OK, b"+QUEUED\r\n", b"+QUEUED\r\n", b"*2\r\n+OK\r\n+OK\r\n"]
    assert {client.reply(), client.reply()} == {invalid("a"), invalid("b")}


def test_noloop(connect):
    client, writer = connect("ON", "NOLOOP"), connect()
    client.call("MGET", "a", "b", "c")
    client.call("MULTI")
    client.call("SET", "b", "1")
    client.call("EXEC")
    client.call("SET", "a", "1")
    quiet(client)
    writer.call("SET", "c", "1")
    assert client.reply() == invalid("c")


def test_a_change_is_told_before_the_next_reply(connect):
    reader, writer = connect("ON"), connect()
    for i in range(300):
        reader.call("GET", "a")
        writer.call("SET", "a", str(i))
        assert reader.call("GET", "b") == invalid("a")
        assert reader.reply() == b"_\r\n"


def test_a_blocked_client_is_told(connect):
    client, writer = connect("ON"), connect()
    client.call("GET", "a")
    client.send(encode("BLPOP", "list", 0) + encode("GET", "a"))
    eventually(lambda: b" flags=tb" in writer.call("CLIENT", "LIST") or b" flags=bt" in writer.call("CLIENT", "LIST"))
    writer.call("SET", "a", "1")
    assert client.reply() == invalid("a")
    writer.call("RPUSH", "list", "x")
    assert client.reply() == array("list", "x")
    assert client.reply() == bulk("1")


def test_silenced_replies(connect):
    client, writer = connect("ON"), connect()
    client.call("GET", "a")
    client.send(encode("CLIENT", "REPLY", "OFF"))
    time.sleep(0.1)
    writer.call("SET", "a", "1")
    assert client.reply() == invalid("a")


# ---- OPTIN, OPTOUT ----

def test_optin(connect):
    client, writer = connect("ON", "OPTIN"), connect()
    client.call("GET", "a")
    assert client.call("CLIENT", "CACHING", "YES") == OK
    client.call("CLIENT", "ID")
    client.call("GET", "b")
    client.call("GET", "c")
    writer.call("MSET", "a", "1", "c", "1")
    quiet(client)
    writer.call("SET", "b", "1")
    assert client.reply() == invalid("b")


def test_optout(connect):
    client, writer = connect("ON", "OPTOUT"), connect()
    client.call("GET", "a")
    assert client.call("CLIENT", "CACHING", "NO") == OK
    client.call("GET", "b")
    client.call("GET", "c")
    writer.call("SET", "b", "1")
    quiet(client)
    writer.call("SET", "a", "1")
    assert client.reply() == invalid("a")
    writer.call("SET", "c", "1")
    assert client.reply() == invalid("c")


def test_caching_counts_for_a_transaction(connect):
    client, writer = connect("ON", "OPTIN"), connect()
    client.send(b"".join(encode(*c) for c in [
        ("CLIENT", "CACHING", "YES"), ("MULTI",), ("GET", "a"), ("GET", "b"), ("EXEC",), ("GET", "c"),
        ("MULTI",), ("GET", "d"), ("CLIENT", "CACHING", "YES"), ("GET", "e"), ("EXEC",), ("GET", "f")]))
    for _ in range(12):
        client.reply()
    for key, is_told in zip("abcdef", (True, True, False, False, True, False)):
        writer.call("SET", key, "1")
        if is_told:
            assert client.reply() == invalid(key)
    quiet(client)


def test_pipelined_reads_with_and_without_caching(connect):
    client, writer = connect("ON", "OPTIN"), connect()
    keys = [f"k{i}" for i in range(40)]
    client.send(b"".join((encode("CLIENT", "CACHING", "YES") if i % 2 else b"") + encode("GET", key)
                         for i, key in enumerate(keys)))
    for _ in range(60):
        client.reply()
    writer.call("MSET", *[word for key in keys for word in (key, "1")])
    assert {client.reply() for _ in range(20)} == {invalid(key) for key in keys[1::2]}
    quiet(client)


def test_functions(connect):
    reader, writer = connect("ON"), connect()
    code = ("#!lua name=lib\nredis.register_function{function_name='get_one', callback=function(keys) "
            "return redis.call('GET', keys[1]) end, flags={'no-writes'}}\n"
            "redis.register_function('set_one', function(keys) return redis.call('SET', keys[1], 1) end)")
    assert writer.call("FUNCTION", "LOAD", "REPLACE", code) == bulk("lib")
    assert reader.call("FCALL_RO", "get_one", 1, "a") == b"_\r\n"
    assert writer.call("FCALL", "set_one", 1, "a") == OK
    assert reader.reply() == invalid("a")
    assert reader.call("FCALL", "get_one", 1, "a") == bulk("1")
    assert writer.call("FCALL", "set_one", 1, "b") == OK
    quiet(reader)
    assert reader.call("FCALL", "set_one", 1, "a") == OK
    assert reader.reply() == invalid("a")


# ---- broadcasting ----

def test_broadcast_by_prefix(connect):
    client, writer = connect("ON", "BCAST", "PREFIX", "a:", "PREFIX", "b:"), connect()
    assert client.call("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "c:") == OK
    writer.call("SET", "x", "1")
    quiet(client)
    writer.call("MSET", "a:1", "1", "b:1", "1", "a:2", "1", "d:", "1")
    assert {client.reply(), client.reply()} == {invalid("a:1", "a:2"), invalid("b:1")}
    writer.call("SET", "c:", "1")
    assert client.reply() == invalid("c:")
    writer.call("DEL", "c:")
    assert client.reply() == invalid("c:")


def overlap(a, b):
    return a.startswith(b) or b.startswith(a)


def refusal(existing, given):
    """Redis's words about the first of the given prefixes that overlaps with any; None: none does."""
    for i, prefix in enumerate(given):
        for kind, others in (("an existing", sorted(existing)), ("another provided", given[i + 1:])):
            for other in others:
                if overlap(prefix, other):
                    return (f"-ERR Prefix '{prefix}' overlaps with {kind} prefix '{other}'. Prefixes for a single "
                            "client must not overlap.\r\n").encode()
    return None


def test_random_prefixes(connect):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)

    def name(most):
        return "".join(chance.choice("ab") for _ in range(chance.randrange(most)))

    clients, has, writer = [connect() for _ in range(4)], [set() for _ in range(4)], connect()
    for _ in range(300):
        i = chance.randrange(4)
        if chance.random() < 0.1:
            assert clients[i].call("CLIENT", "TRACKING", "OFF") == OK
            has[i] = set()
        elif chance.random() < 0.5:
            given = [name(7) for _ in range(chance.randrange(1, 4))]
            words = [word for prefix in given for word in ("PREFIX", prefix)]
            refused = refusal(has[i], given)
            if harness.IS_REDIS and refused and b"provided" in refused and given[0].encode() not in refused.split(b"'"):
                continue  # it refuses, then says OK: its check returns the index as if that were a truth value
            assert clients[i].call("CLIENT", "TRACKING", "ON", "BCAST", *words) == (refused or OK)
            has[i] |= set() if refused else set(given)
        else:
            key = name(9)
            assert writer.call("SET", key, "1") == OK
            told = [client for client, prefixes in zip(clients, has) if any(key.startswith(p) for p in prefixes)]
            for client in told:
                assert client.reply() == invalid(key)
            for client in clients:
                assert client.call("PING") == b"+PONG\r\n"


@pytest.mark.vellum
def test_many_prefixes(connect):
    """A search among them by walking would take hours in all."""
    count = 200000
    clients, writer = [connect(), connect()], connect()
    for odd, client in enumerate(clients):
        names = [f"{number:06d}" for number in range(odd, count, 2)]
        random.shuffle(names)
        words = [word for name in names for word in ("PREFIX", name)]
        assert client.call("CLIENT", "TRACKING", "ON", "BCAST", *words) == OK
        assert client.call("CLIENT", "TRACKING", "ON", "BCAST", *words[:2]) == refusal({names[0]}, [names[0]])
    for _ in range(1000):
        number = random.randrange(count)
        writer.call("SET", f"{number:06d}:key", "1")
        assert clients[number % 2].reply() == invalid(f"{number:06d}:key")
    quiet(*clients)
    assert clients[0].call("CLIENT", "TRACKING", "OFF") == OK
    writer.call("SET", "000001", "1")
    assert clients[1].reply() == invalid("000001")


def test_broadcast_without_own_changes(connect):
    client, other = connect("ON", "BCAST", "NOLOOP"), connect("ON", "BCAST")
    client.call("SET", "a", "1")
    quiet(client)
    assert other.reply() == invalid("a")
    assert other.call("SET", "b", "1") == OK
    assert other.reply() == invalid("b")
    assert client.reply() == invalid("b")


def test_broadcast_tells_a_key_once_for_a_command(connect):
    client, writer = connect("ON", "BCAST"), connect()
    writer.call("EVAL", "for i = 1, 100 do redis.call('SET', 'k', i) end", 1, "k")
    assert client.reply() == invalid("k")
    quiet(client)


# ---- redirection ----

@pytest.mark.parametrize("resp", [2, 3])
def test_redirection_to_a_subscriber(connect, resp):
    target, writer = connect(resp=2), connect()
    target.call("SUBSCRIBE", "__redis__:invalidate")
    assert target.call("PING") == b"*2\r\n" + bulk("pong") + bulk("")
    listing = writer.call("CLIENT", "LIST", "TYPE", "PUBSUB").decode()
    number = int(listing.split("id=")[1].split()[0])
    client = connect("ON", "REDIRECT", number, resp=resp)
    assert client.call("CLIENT", "GETREDIR") == b":%d\r\n" % number
    client.call("MGET", "a", "b")
    writer.call("SET", "a", "1")
    assert target.reply() == message("a")
    writer.call("SET", "b", "1")
    assert target.reply() == message("b")
    quiet(client)
    if resp == 2:
        writer.call("FLUSHALL")
        assert target.reply() == message()


def test_redirection_to_a_resp3_client(connect):
    target, writer = connect(), connect()
    client = connect("ON", "REDIRECT", client_id(target), resp=2)
    client.call("GET", "a")
    writer.call("SET", "a", "1")
    assert target.reply() == invalid("a")


def test_no_subscriber_no_message(connect):
    target, writer = connect(resp=2), connect()
    client = connect("ON", "REDIRECT", client_id(target), resp=2)
    direct = connect("ON", resp=2)
    client.call("GET", "a")
    direct.call("GET", "a")
    writer.call("SET", "a", "1")
    quiet(client, target, direct)


def test_a_target_that_is_gone(connect):
    target, writer = connect(), connect()
    number = client_id(target)
    client = connect("ON", "REDIRECT", number)
    client.call("GET", "a")
    target.close()
    eventually(lambda: b"id=%d " % number not in writer.call("CLIENT", "LIST"))
    writer.call("SET", "a", "1")
    assert client.reply() == b">2\r\n" + bulk("tracking-redir-broken") + b":%d\r\n" % number
    assert b"broken_redirect" in client.call("CLIENT", "TRACKINGINFO")
    assert b" flags=tR " in client.call("CLIENT", "INFO")
    assert b"redir=%d " % number in client.call("CLIENT", "INFO")
    assert client.call("CLIENT", "TRACKING", "ON") == OK
    assert b" flags=t " in client.call("CLIENT", "INFO")


# ---- the commands ----

@pytest.mark.parametrize("before, words, error", [
    ((), ("MAYBE",), "syntax error"),
    ((), ("ON", "LOUD"), "syntax error"),
    ((), ("ON", "REDIRECT"), "syntax error"),
    ((), ("ON", "PREFIX"), "syntax error"),
    ((), ("ON", "REDIRECT", "x"), "value is not an integer or out of range"),
    ((), ("ON", "REDIRECT", "1000000"), "The client ID you want redirect to does not exist"),
    ((), ("OFF", "REDIRECT", "1000000"), "The client ID you want redirect to does not exist"),
    ((), ("ON", "PREFIX", "a"), "PREFIX option requires BCAST mode to be enabled"),
    ((), ("ON", "BCAST", "OPTIN"), "OPTIN and OPTOUT are not compatible with BCAST"),
    ((), ("ON", "OPTOUT", "OPTIN"), "You can't specify both OPTIN mode and OPTOUT mode"),
    ((), ("ON", "BCAST", "PREFIX", "ab", "PREFIX", "a"),
     "Prefix 'ab' overlaps with another provided prefix 'a'. Prefixes for a single client must not overlap."),
    (("ON", "BCAST", "PREFIX", "ab"), ("ON", "BCAST", "PREFIX", "abc"),
     "Prefix 'abc' overlaps with an existing prefix 'ab'. Prefixes for a single client must not overlap."),
    (("ON", "BCAST"), ("ON",), "You can't switch BCAST mode on/off before disabling tracking for this client, and "
     "then re-enabling it with a different mode."),
    (("ON", "OPTIN"), ("ON", "OPTOUT"), "You can't switch OPTIN/OPTOUT mode before disabling tracking for this "
     "client, and then re-enabling it with a different mode."),
])
def test_errors(connect, before, words, error):
    client = connect(*before)
    assert client.call("CLIENT", "TRACKING", *words) == b"-ERR %s\r\n" % error.encode()


def test_a_client_redirects_once(connect):
    client = connect()
    number = client_id(client)
    assert client.call("CLIENT", "TRACKING", "ON", "REDIRECT", number, "REDIRECT", number) == \
        b"-ERR A client can only redirect to a single other client\r\n"
    assert client.call("CLIENT", "TRACKING", "ON", "REDIRECT", number) == OK


@pytest.mark.parametrize("mode, words, error", [
    ((), "YES", "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode "
     "enabled"),
    (("ON",), "MAYBE", "syntax error"),
    (("ON",), "YES", "CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."),
    (("ON", "OPTIN"), "NO", "CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."),
])
def test_errors_of_caching(connect, mode, words, error):
    assert connect(*mode).call("CLIENT", "CACHING", words) == b"-ERR %s\r\n" % error.encode()


def info(flags, redirect, *prefixes):
    return (b"%3\r\n" + bulk("flags") + b"~%d\r\n" % len(flags.split()) +
            b"".join(bulk(flag) for flag in flags.split()) + bulk("redirect") + b":%d\r\n" % redirect +
            bulk("prefixes") + array(*prefixes))


def test_trackinginfo(connect):
    client = connect()
    assert client.call("CLIENT", "TRACKINGINFO") == info("off", -1)
    assert client.call("CLIENT", "GETREDIR") == b":-1\r\n"
    client.call("CLIENT", "TRACKING", "ON", "NOLOOP", "OPTIN")
    client.call("CLIENT", "CACHING", "YES")
    assert client.call("CLIENT", "TRACKINGINFO") == info("on optin caching-yes noloop", 0)
    client.call("PING")
    assert client.call("CLIENT", "TRACKINGINFO") == info("on optin noloop", 0)
    client.call("CLIENT", "TRACKING", "OFF")
    client.call("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "b", "PREFIX", "a")
    assert client.call("CLIENT", "TRACKINGINFO") == info("on bcast", 0, "a", "b")
    assert b" flags=tB " in client.call("CLIENT", "INFO")
    assert client.call("RESET") == b"+RESET\r\n"
    client.call("HELLO", 3)
    assert client.call("CLIENT", "TRACKINGINFO") == info("off", -1)


def test_off(connect):
    client, writer = connect("ON"), connect()
    client.call("GET", "a")
    assert client.call("CLIENT", "TRACKING", "OFF") == OK
    writer.call("SET", "a", "1")
    quiet(client)


def test_from_reads_to_broadcasting(connect):
    client, writer = connect("ON"), connect()
    client.call("GET", "a")
    client.call("CLIENT", "TRACKING", "OFF")
    client.call("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "b")
    writer.call("SET", "a", "1")
    quiet(client)


# ---- figures and the limit ----

def figures(raw):
    text = raw.call("INFO", "everything").decode()
    return [int(text.split(f"tracking_{name}:")[1].split()[0])
            for name in ("clients", "total_keys", "total_items", "total_prefixes")]


def test_figures(connect):
    a, b, c, other = connect("ON"), connect("ON"), connect("ON", "BCAST", "PREFIX", "x", "PREFIX", "y"), connect()
    a.call("MGET", "1", "2", "3")
    b.call("GET", "3")
    assert figures(other) == [3, 3, 4, 2]
    other.call("SET", "3", "1")
    assert figures(other) == [3, 2, 2, 2]
    c.close()
    b.close()
    eventually(lambda: figures(other) == [1, 2, 2, 0])
    other.call("FLUSHALL")
    assert figures(other) == [1, 0, 0, 0]


@pytest.mark.vellum
def test_clients_that_come_and_go(connect):
    """They stay in the table until the list of a key's clients would have to grow."""
    other = connect("ON")
    for i in range(100):
        client = connect("ON")
        client.call("GET", "a")
        client.close()
    eventually(lambda: figures(other)[0] == 1)
    for i in range(60):
        connect("ON").call("GET", "a")
    assert figures(other)[2] <= 100
    other.call("SET", "a", "1")
    assert figures(other)[1:3] == [0, 0]


def test_the_most_keys(make_server):
    server = make_server(tracking_table_max_keys=10)
    with server.raw() as client:
        client.call("HELLO", 3)
        client.call("CLIENT", "TRACKING", "ON")
        kept = set()
        for i in range(100):
            client.send(encode("GET", f"k{i}"))
            kept.add(f"k{i}")
            while (reply := client.reply()) != b"_\r\n":
                kept.remove(reply.split(b"\r\n")[-2].decode())
        while len(kept) > 10:
            kept.remove(client.reply().split(b"\r\n")[-2].decode())
        assert figures(client)[1] == 10
        client.call("CONFIG", "SET", "tracking-table-max-keys", "1")
        while len(kept) > 1:
            kept.remove(client.reply().split(b"\r\n")[-2].decode())
        client.call("SET", *kept, "1")
        assert client.reply() == invalid(*kept)


def test_a_client_that_does_not_read(make_server):
    """Its invalidations are output as any: beyond its class's limit it is closed."""
    server = make_server(client_output_buffer_limit="normal 200000 0 0")
    with server.raw() as client, server.raw() as writer:
        client.call("HELLO", 3)
        client.call("CLIENT", "TRACKING", "ON")
        keys = [f"{i}:" + "x" * 1000 for i in range(400)]
        for key in keys:
            client.call("GET", key)
        writer.call("MSET", *[word for key in keys for word in (key, "1")])
        eventually(lambda: figures(writer)[0] == 0)
        if not harness.IS_REDIS:  # 7.0 does not count them
            assert b"client_output_buffer_limit_disconnections:1\r\n" in writer.call("INFO", "stats")


# ---- reads after writes in a transaction ----

def test_a_read_after_a_write_of_the_transaction(connect):
    client, writer = connect("ON"), connect()
    client.send(b"".join(encode(*c) for c in [("MULTI",), ("SET", "a", "1"), ("GET", "a"), ("EXEC",)]))
    for _ in range(4):
        client.reply()
    quiet(client)
    writer.call("SET", "a", "2")
    assert client.reply() == invalid("a")
    client.call("GET", "a")
    client.call("EVAL", "redis.call('INCR', 'a') return redis.call('GET', 'a')", 1, "a")
    assert client.reply() == invalid("a")
    writer.call("SET", "a", "3")
    assert client.reply() == invalid("a")


# ---- many clients at once ----

class Cache:
    """A caching client: a dictionary filled by the replies to its reads, in the order in which it sent
    them, and emptied by the invalidations in between."""

    def __init__(self, raw):
        self.raw, self.asked, self.values, self.newest, self.told = raw, [], {}, {}, 0

    def ask(self, *keys):
        """GET of one key, MGET of several; or a transaction of them, or a script."""
        self.asked.append(keys)
        return encode("GET", *keys) if len(keys) == 1 else encode("MGET", *keys)

    def take(self):
        reply = self.raw.reply()
        if reply.startswith(b">2\r\n$10\r\ninvalidate"):
            self.told += 1
            words = reply.split(b"\r\n")
            if words[3] == b"_":
                self.values.clear()
            else:
                for name in words[5::2]:
                    self.values.pop(name.decode(), None)
            return
        keys, parts = self.asked.pop(0), self.values_of(reply)
        assert len(keys) == len(parts), reply[:100]
        for key, value in zip(keys, parts):
            self.values[key] = value
            self.check(key, value)

    def values_of(self, reply):
        if reply.startswith(b"*"):
            reply = reply[reply.index(b"\r\n") + 2:]
        found = []
        while reply:
            head, reply = reply.split(b"\r\n", 1)
            if head == b"_":
                found.append(None)
            else:
                size = int(head[1:])
                found.append(reply[:size].split(b" ")[0])
                reply = reply[size + 2:]
        return found

    def check(self, key, value):
        """Reads of a connection go forward in time: the numbers under a key only rise."""
        if value is not None and self.rises:
            assert int(value) >= self.newest.get(key, 0), key
            self.newest[key] = int(value)

    rises = True

    def finish(self):
        while self.asked:
            self.take()

    def barrier(self):
        """All that the server has acknowledged to others before has been told after this."""
        self.raw.send(encode("ECHO", "done"))
        while (reply := self.raw.reply()) != bulk("done"):
            self.raw.unread = reply + self.raw.unread
            self.take()


def write(chance, raw, keys, kind, size):
    """A change or several. The values begin with a number, of a counter of all the keys' writers."""
    key = chance.choice(keys)
    number = write.number = write.number + 1
    value = b"%d " % number + b"x" * size
    if kind == "set":
        raw.call("SET", key, value)
    elif kind == "mset":
        raw.call("MSET", *[word for k in chance.sample(keys, 3) for word in (k, value)])
    elif kind == "multi":
        for words in (("MULTI",), ("SET", key, value), ("DEL", chance.choice(keys)), ("EXEC",)):
            raw.call(*words)
    elif kind == "eval":
        raw.call("EVAL", "redis.call('SET', KEYS[1], ARGV[1])", 1, key, value)
    elif kind == "undeclared":
        raw.call("EVAL", "redis.call('SET', ARGV[2], ARGV[1])", 0, value, key)
    elif kind == "expire":
        raw.call("SET", key, value, "PX", str(chance.randrange(1, 30)))
    elif kind == "del":
        raw.call("DEL", *chance.sample(keys, 2))
    elif kind == "rename":
        raw.call("RENAME", key, chance.choice(keys))
    else:
        raw.call(*{"flushall": ("FLUSHALL",), "flushdb": ("FLUSHDB",), "swapdb": ("SWAPDB", 0, 1)}[kind])


write.number = 0
KINDS = ["set"] * 8 + ["mset", "multi", "eval", "undeclared", "expire", "expire", "del", "rename"]


def read(chance, cache, keys):
    form = chance.random()
    if form < 0.8:
        return cache.ask(chance.choice(keys))
    some = chance.sample(keys, 3)
    if form < 0.9:
        return cache.ask(*some)
    cache.asked.append(some)  # 7.0 tracks the declared keys of a script, 7.2 those that it reads
    return encode("EVAL", "return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]), "
                  "redis.call('GET', KEYS[3] or ARGV[1])}", 3 if harness.IS_REDIS else 2, *some)


def run_caches(server, kinds, size=0, readers=4, writers=3, seconds=2.5, key_count=12, bcast=False):
    """What the caches hold after the last write is what the server holds: no client keeps a stale value."""
    keys = [f"k{i}" for i in range(key_count)]
    stop, errors, caches = threading.Event(), [], []
    seed = harness.chance().random()

    def guarded(job, *args):
        try:
            job(*args)
        except BaseException as error:
            errors.append(error)
            stop.set()

    def reading(number, cache):
        chance = random.Random(f"r{number}{seed}")
        while not stop.is_set():
            wanted = [read(chance, cache, keys) for _ in range(chance.randrange(1, 20))]
            cache.raw.send(b"".join(wanted))
            cache.finish()

    def writing(number):
        chance = random.Random(f"w{number}{seed}")
        with server.raw() as raw:
            while not stop.is_set():
                write(chance, raw, keys, chance.choice(kinds), size)

    for _ in range(readers):
        raw = server.raw()
        raw.call("HELLO", 3)
        assert raw.call("CLIENT", "TRACKING", "ON", *(["BCAST", "PREFIX", "k"] if bcast else [])) == OK
        caches.append(Cache(raw))
        caches[-1].rises = False
    threads = [threading.Thread(target=guarded, args=(reading, i, cache)) for i, cache in enumerate(caches)]
    threads += [threading.Thread(target=guarded, args=(writing, i)) for i in range(writers)]
    for thread in threads:
        thread.start()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    with server.raw() as raw:
        raw.call("HELLO", 3)
        plain = Cache(raw)
        plain.rises = False

        def stale():
            """Keys that have expired are told when they are removed, shortly after a read has found that."""
            raw.send(plain.ask(*keys))
            plain.finish()
            for cache in caches:
                cache.barrier()
            return [(key, value, plain.values[key]) for cache in caches for key, value in cache.values.items()
                    if value != plain.values[key]]

        eventually(lambda: not stale(), 20)
        assert sum(cache.told for cache in caches) > 10
    for cache in caches:
        cache.raw.close()


def test_no_cache_stays_stale(server):
    run_caches(server, KINDS)


def test_no_cache_stays_stale_with_flushes_and_swaps(server):
    run_caches(server, KINDS + ["flushall", "flushdb", "swapdb"])


def test_no_cache_stays_stale_when_broadcasting(server):
    run_caches(server, KINDS + ["flushall"], bcast=True)


@pytest.mark.vellum
def test_no_cache_stays_stale_with_durable_replies(make_server):
    run_caches(make_server(appendfsync="always"), KINDS)


def test_no_cache_stays_stale_with_long_values(server):
    run_caches(server, ["set"] * 3 + ["del", "mset"], size=1_300_000, key_count=4, readers=3, writers=2)


def test_no_cache_stays_stale_over_the_limit(make_server):
    run_caches(make_server(tracking_table_max_keys=3), KINDS)


def test_a_change_told_elsewhere_is_known(server):
    """A write that was acknowledged to one client before another one's command began is told to that one
    before its reply, so that the value in its cache is none of before the write; and the numbers that its
    reads return only rise."""
    keys, acknowledged, stop, errors = [f"n{i}" for i in range(6)], {}, threading.Event(), []

    def writing(number):
        chance = random.Random(f"{number}{harness.chance().random()}")
        with server.raw() as raw:
            while not stop.is_set():
                key = chance.choice(keys)
                value = int(raw.call("INCR", key)[1:-2])
                if value > acknowledged.get(key, 0):
                    acknowledged[key] = value

    def reading(number):
        chance = random.Random(f"{number}{harness.chance().random()}")
        with server.raw() as raw:
            raw.call("HELLO", 3)
            raw.call("CLIENT", "TRACKING", "ON")
            cache = Cache(raw)
            while not stop.is_set():
                raw.send(b"".join(cache.ask(chance.choice(keys)) for _ in range(chance.randrange(1, 10))))
                cache.finish()
                known = dict(acknowledged)
                cache.barrier()
                for key, value in cache.values.items():
                    assert int(value or 0) >= known.get(key, 0), key

    def guarded(job, number):
        try:
            job(number)
        except BaseException as error:
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=guarded, args=(job, i)) for job in (writing, reading) for i in range(3)]
    for thread in threads:
        thread.start()
    stop.wait(2.5)
    stop.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.vellum
def test_the_table_leaves_room_for_others(make_server):
    """However many keys a client reads, it takes a quarter of memory at most."""
    server = make_server(maxmemory="64mb", journal_size="8mb")
    with server.raw() as tracking, server.raw() as other:
        tracking.call("CLIENT", "TRACKING", "on", "REDIRECT", client_id(other))
        for start in range(0, 400_000, 5000):
            tracking.send(b"".join(encode("GET", b"%040d" % i) for i in range(start, start + 5000)))
            assert tracking.exactly(5 * 5000) == b"$-1\r\n" * 5000
        client = server.client()
        keys = client.info("stats")["tracking_total_keys"]
        assert 50_000 < keys < 200_000, keys
        assert client.mset({b"%040d" % i: "v" for i in range(5000)})
        assert client.eval("local t = {} for i = 1, 60000 do t[i] = ('x'):rep(50)..i end return #t", 0) == 60_000
        prefixes = [word for i in range(150_000) for word in ("PREFIX", b"p%07d" % i)]
        try:
            client.execute_command("CLIENT", "TRACKING", "on", "BCAST", "REDIRECT", client.client_id(), *prefixes)
        except (redis.ResponseError, redis.ConnectionError):
            pass
        assert server.peak_memory() < 64 * 2**20 * 1.05
