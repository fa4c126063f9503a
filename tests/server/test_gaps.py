"""How long a worker keeps its clients waiting: the longest time between two looks at them, in the
processor time of its thread (DEBUG LOOP-GAP), so that a busy machine does not count."""

import re
import threading

import pytest

import harness
from test_dump import group, stream

LIMIT_USEC = 30_000  # thrice what is wanted: the machine may be in another one, or a sanitizer's
# A third of a millisecond, and a short reply.
LONG = harness.encode("COMMAND", "LIST", "FILTERBY", "PATTERN", "*a*a*a*a*a*b")

pytestmark = [
    pytest.mark.vellum,
    pytest.mark.skipif(bool(harness.PROXY), reason="a worker spins for its channels"),
]


@pytest.fixture
def server(request):
    """One worker: when a reply is there, and the next command runs, the round before has ended."""
    made = harness.Server(1, enable_debug_command="yes", **getattr(request, "param", {}))
    try:
        made.start()
        yield made
        made.stop()
    finally:
        made.remove()


def longest(raw):
    return int(raw.call("DEBUG", "LOOP-GAP")[1:])


def gap_of(server, pipeline, replies):
    """The longest gap while the commands run, all sent at once."""
    with server.raw() as beside, server.raw() as raw:
        longest(beside)
        sender = threading.Thread(target=raw.send, args=(pipeline,))
        sender.start()
        for _ in range(replies):
            raw.reply()
        sender.join()
        return longest(beside)


def test_a_pipeline_of_long_commands_is_many_rounds(server):
    assert gap_of(server, LONG * 700, 700) < LIMIT_USEC


@pytest.mark.parametrize("server", [dict(maxmemory="1gb")], indirect=True)
def test_the_only_key_beside_a_million_others(server):
    with server.raw() as raw:
        for i in range(20):
            assert raw.call("DEBUG", "POPULATE", "50000", f"key{i}") == b"+OK\r\n"
        raw.call("SELECT", "1")
        raw.call("SET", "only", "x")
    only = b"$4\r\nonly\r\n"
    for words, reply in ((["RANDOMKEY"], only), (["EVAL", "return redis.call('RANDOMKEY')", "0"], only),
                         (["EVAL", "return redis.call('KEYS', 'only')", "0"], b"*1\r\n" + only)):
        with server.raw() as beside, server.raw() as raw:
            raw.call("SELECT", "1")
            longest(beside)
            assert raw.call(*words) == reply
            assert longest(beside) < LIMIT_USEC, words


def test_commands_behind_one_that_waits_are_many_rounds(server):
    """They walk over so many names that those taken ahead, 128, take longer than a round."""
    subscriber = server.client().pubsub()
    subscriber.subscribe(*(f"{'a' * 60}{i}" for i in range(5000)))
    walk = harness.encode("PUBSUB", "CHANNELS", "*a*b")
    with server.raw() as other, server.raw() as raw:
        assert harness.eventually(
            lambda: other.call("PUBSUB", "NUMSUB", "a" * 60 + "4999").endswith(b":1\r\n"))
        raw.send(harness.encode("BLPOP", "list", "0") + walk * 400)
        while b"cmd=blpop" not in other.call("CLIENT", "LIST"):
            pass
        longest(other)
        other.call("RPUSH", "list", "x")
        for _ in range(401):
            raw.reply()
        assert longest(other) < LIMIT_USEC
    subscriber.close()


def test_every_client_of_a_long_round_goes_on(server):
    """Those that are put off are not forgotten, whatever they have sent behind it."""
    opened = [server.raw() for _ in range(8)]
    for i, raw in enumerate(opened):
        raw.send(LONG * 50 + harness.encode("ECHO", i) + harness.encode("QUIT"))
    for i, raw in enumerate(opened):
        for _ in range(50):
            assert raw.reply() == b"*0\r\n"
        assert raw.reply() == b"$1\r\n%d\r\n" % i
        assert raw.reply() == b"+OK\r\n"
        assert raw.closed()
        raw.close()


def lcs_length(a, b):
    """By whole rows of the table as bits of one number (Hyyro)."""
    where = {}
    for byte in set(b):
        others = bytes(range(256)).replace(bytes([byte]), b"")
        ones = bytes.maketrans(others + bytes([byte]), b"0" * 255 + b"1")
        where[byte] = int(a[::-1].translate(ones), 2)
    mask = (1 << len(a)) - 1
    row = mask
    for byte in b:
        same = row & where[byte]
        row = ((row + same) | (row - same)) & mask
    return len(a) - bin(row).count("1")


def is_subsequence(part, whole):
    at = 0
    for byte in part:
        at = whole.find(byte, at) + 1
        if at == 0:
            return False
    return True


def test_very_many_ids(server):
    """CLIENT LIST ID, whose time is not the product of its ids and the connections."""
    opened = [server.raw() for _ in range(300)]
    ids = [int(raw.call("CLIENT", "ID")[1:]) for raw in opened]
    others = range(1000000, 1060000)
    listed = harness.encode("CLIENT", "LIST", "ID", *others, ids[9], ids[3])
    assert any(gap_of(server, listed, 1) < LIMIT_USEC for _ in range(10))
    reply = opened[0].call("CLIENT", "LIST", "ID", *others, ids[9], ids[3], ids[9])
    assert [int(id) for id in re.findall(rb"(?m)^id=(\d+) ", reply.split(b"\r\n", 1)[1])] == [
        ids[9], ids[3]]
    for raw in opened:
        raw.close()


FORMATS = {
    "zeros": ("string.rep('x', 8000000)", ("size(f)", "pack(f)", "unpack(f, f)")),
    "blanks": ("string.rep(' ', 8000000)", ("size(f)", "pack(f)", "unpack(f, '')")),
    "digits": ("'c' .. string.rep('0', 8000000) .. '1'",
               ("size(f)", "pack(f, 'a')", "unpack(f, 'a')")),
}


@pytest.mark.parametrize("text,calls", FORMATS.values(), ids=FORMATS.keys())
def test_long_formats_of_struct(server, text, calls):
    """The shortest of some: new memory for the text takes the kernel time as well."""
    with server.raw() as raw:
        raw.call("CONFIG", "SET", "maxmemory", "1gb")  # Lua gets a share of it
    for call in calls:
        eval = harness.encode("EVAL", f"local f = {text} struct.{call} return 1", 0)
        assert any(gap_of(server, eval, 1) < LIMIT_USEC for _ in range(20)), call


@pytest.mark.parametrize("lengths", [(6000, 6000), (90, 400_000)])
def test_lcs_of_long_strings(server, lengths):
    random = harness.chance()
    a, b = (bytes(random.choices(b"abcd", k=length)) for length in lengths)
    client = server.client()
    client.mset({"a": a, "b": b})
    length = lcs_length(a, b)
    with server.raw() as raw:
        longest(raw)
        assert client.execute_command("LCS", "a", "b", "LEN") == length
        assert longest(raw) < LIMIT_USEC
        found = client.execute_command("LCS", "a", "b")
        assert longest(raw) < LIMIT_USEC
    assert len(found) == length and is_subsequence(found, a) and is_subsequence(found, b)
    pipe = client.pipeline(transaction=True)
    pipe.set("before", 1)
    pipe.execute_command("LCS", "a", "b", "LEN")
    pipe.execute_command("LCS", "b", "a")
    pipe.get("before")
    done, nested, turned, before = pipe.execute()
    assert (done, nested, before) == (True, length, b"1")
    assert len(turned) == length and is_subsequence(turned, a) and is_subsequence(turned, b)
    assert client.eval("return redis.call('LCS', 'a', 'b', 'LEN')", 2, "a", "b") == length


@pytest.mark.parametrize("filled", [True, False], ids=["full", "hole"])
def test_the_way_back_of_lcs_is_many_rounds(server, filled):
    """Over all of the long string, to the match at its beginning."""
    length = 40_000_000
    client = server.client()
    client.config_set("maxmemory", "1gb")
    client.set("long", b"yx" + b"z" * length * filled)
    client.setrange("long", length, "z")
    client.set("short", "yx")
    found = [b"matches", [[[0, 1], [0, 1]]], b"len", 2]
    with server.raw() as raw:
        longest(raw)
        assert client.execute_command("LCS", "long", "short", "IDX") == found
        assert longest(raw) < LIMIT_USEC
        assert client.execute_command("LCS", "short", "long") == b"yx"
        assert longest(raw) < LIMIT_USEC


# ---- one command is many rounds ----

MEMBERS = 120_000
CHANGED = 50_000
ROUNDS = 6  # of which asking takes five at most


def rounds_of(server, raw, *words):
    """How many rounds the worker has made while the command ran, and its reply. To ask for the
    figure takes two or three."""
    with server.raw() as beside:
        def cycles():
            text = beside.call("INFO", "everything").decode()
            return int(re.search(r"eventloop_cycles:(\d+)", text).group(1))

        before = cycles()
        reply = raw.call(*words)
        return cycles() - before, reply


def fill(server):
    client = server.client()
    for start in range(0, MEMBERS, 10_000):
        numbers = range(start, start + 10_000)
        pipe = client.pipeline(transaction=False)
        pipe.zadd("zset", {f"member:{n}": n for n in numbers})
        pipe.sadd("set", *(f"member:{n}" for n in numbers))
        pipe.execute()
    return client


def test_a_long_transaction_is_many_rounds(server):
    """And is one, although others have their turns in it."""
    fill(server)
    commands = 30_000
    with server.raw(timeout=300) as raw:
        queued = b"".join(harness.encode("SADD", "set", f"member:{n}", f"other:{n}")
                          for n in range(commands))
        raw.send(harness.encode("MULTI") + queued)
        for _ in range(commands + 1):
            raw.reply()
        rounds, reply = rounds_of(server, raw, "EXEC")
        assert reply == b"*%d\r\n" % commands + b":1\r\n" * commands
    assert rounds > ROUNDS
    assert server.client().scard("set") == MEMBERS + commands


def counted(reply):
    return int(re.match(rb"[:*~](\d+)", reply).group(1))


@pytest.mark.parametrize("words", [
    ("ZREMRANGEBYRANK", "zset", "0", str(CHANGED - 1)),
    ("ZREMRANGEBYSCORE", "zset", "-inf", f"({CHANGED}"),
    ("ZPOPMIN", "zset", str(CHANGED)), ("SPOP", "set", str(CHANGED)),
    ("ZREM", "zset", *(f"member:{n}" for n in range(CHANGED))),
    ("SREM", "set", *(f"member:{n}" for n in range(CHANGED))),
    ("SADD", "set", *(f"other:{n}" for n in range(CHANGED))),
    ("HSET", "hash", *(f"other:{n}" for n in range(2 * CHANGED)))], ids=lambda words: words[0])
def test_a_change_of_many_elements_is_many_rounds(server, words):
    client = fill(server)
    with server.raw(timeout=300) as raw:
        # To receive a long command takes rounds, too: it is there before they are counted.
        assert raw.call("MULTI") + raw.call(*words) == b"+OK\r\n+QUEUED\r\n"
        rounds, reply = rounds_of(server, raw, "EXEC")
    assert reply.startswith(b"*1\r\n")
    assert counted(reply[4:]) in (CHANGED, 2 * CHANGED)  # ZPOPMIN tells the scores, too
    assert rounds > ROUNDS
    left = {"zset": MEMBERS, "set": MEMBERS, "hash": 0}
    left[words[1]] += CHANGED if words[0] in ("SADD", "HSET") else -CHANGED
    assert [client.zcard("zset"), client.scard("set"), client.hlen("hash")] == list(left.values())


ASKED = 100_000
SMALL = [f"{n}" for n in range(100)]  # few enough not to be a tree
FOUND = b"*%d\r\n" % (2 * ASKED) + b"$1\r\n7\r\n$-1\r\n" * ASKED  # of one member and an absent one
ONE = b":1\r\n"


@pytest.mark.parametrize("words, reply, changed", [
    (["SMISMEMBER", "set"] + ["99", "x"] * ASKED, FOUND.replace(b"$1\r\n7", b":1").replace(b"$-1", b":0"), {}),
    (["SREM", "set", "5"] + ["x"] * ASKED, ONE, {"5": None}),
    (["SADD", "set", "y"] + ["99"] * ASKED, ONE, {"y": ""}),
    (["HMGET", "hash"] + ["99", "x"] * ASKED, FOUND, {}),
    (["HDEL", "hash", "5"] + ["x"] * ASKED, ONE, {"5": None}),
    (["HSET", "hash", "5", "8", "y", "9"] + ["99", "7"] * ASKED, ONE, {"5": "8", "y": "9"}),
    (["ZMSCORE", "zset"] + ["99", "x"] * ASKED, FOUND, {}),
    (["ZREM", "zset", "5"] + ["x"] * ASKED, ONE, {"5": None}),
    (["ZADD", "zset", "9", "y"] + ["8", "5", "7", "5"] * ASKED, ONE, {"y": 9}),
    (["GEOADD", "zset", "0", "0", "y"] + ["1", "1", "5", "-180", "-85.05112878", "5"] * ASKED, ONE,
     {"y": 3377699720527872, "5": 0}),
], ids=lambda value: value[0] if isinstance(value, list) else "")
def test_many_arguments_for_a_small_collection_are_many_rounds(server, words, reply, changed):
    client = server.client(decode_responses=True)
    client.sadd("set", *SMALL)
    client.hset("hash", mapping=dict.fromkeys(SMALL, "7"))
    client.zadd("zset", dict.fromkeys(SMALL, 7))
    with server.raw(timeout=300) as raw:
        assert raw.call("MULTI") + raw.call(*words) == b"+OK\r\n+QUEUED\r\n"
        rounds, found = rounds_of(server, raw, "EXEC")
    assert found == b"*1\r\n" + reply
    assert rounds > ROUNDS
    left = {"set": lambda: dict.fromkeys(client.smembers("set"), ""),
            "hash": lambda: client.hgetall("hash"),
            "zset": lambda: dict(client.zrange("zset", 0, -1, withscores=True))}[words[1]]()
    wanted = dict.fromkeys(SMALL, {"set": "", "hash": "7", "zset": 7}[words[1]]) | changed
    assert left == {name: value for name, value in wanted.items() if value is not None}


def fill_small(server, count):
    """As many sets and sorted sets of one member each."""
    with server.raw() as raw:
        for start in range(0, count, 1000):
            raw.send(b"".join(harness.encode("SADD", f"s{n}", f"m{n}") +
                              harness.encode("ZADD", f"z{n}", n, f"m{n}")
                              for n in range(start, start + 1000)))
            for _ in range(2000):
                raw.reply()


@pytest.mark.parametrize("words", [["SUNION"], ["SUNIONSTORE", "to"], ["ZUNION"],
                                   ["ZUNIONSTORE", "to"]], ids=lambda words: words[0])
def test_a_union_takes_time_in_proportion_to_its_keys(server, words):
    few, many = 4000, 40_000
    fill_small(server, many)
    used = []
    for count in (few, many):
        keys = [f"{words[0][0].lower()}{n}" for n in range(count)]
        number = [str(count)] if words[0].startswith("Z") else []
        begin = harness.processor_seconds(server.process)
        with server.raw(timeout=300) as raw:
            for _ in range(many // count):
                assert counted(raw.call(*words, *number, *keys)) == count
        used.append(harness.processor_seconds(server.process) - begin)
    # One of many and ten of a tenth: the same, or ten times as much if each looks in all others.
    assert used[1] < 4 * used[0] + 0.1


@pytest.mark.parametrize("words", [
    ["SDIFF", "few"], ["SDIFFSTORE", "to", "few"], ["ZDIFF", "N", "few"], ["SINTER", "all", "all"],
    ["SINTERCARD", "N", "all"], ["ZINTER", "N", "all"]], ids=lambda words: words[0])
def test_a_packed_set_and_many_keys_are_many_rounds(server, words):
    """Looks, rather than the length of a gap: to lock 10,000 keys takes long, too."""
    client = server.client()
    client.sadd("few", *range(600))
    client.sadd("all", *range(600))
    fill_small(server, 10_000)
    keys = [f"s{n}" for n in range(10_000)] if "few" in words else ["all"] * 4000
    number = str(len(words) - words.index("N") - 1 + len(keys)) if "N" in words else None
    words = [number if word == "N" else word for word in words]
    with server.raw(timeout=300) as raw:
        assert raw.call("MULTI") + raw.call(*words, *keys) == b"+OK\r\n+QUEUED\r\n"
        rounds, reply = rounds_of(server, raw, "EXEC")
    assert counted(reply[4:]) == 600
    assert rounds > ROUNDS


def test_a_few_members_are_looked_up_in_very_many_keys(server):
    """In one piece that takes twenty times as long as to lock the keys."""
    client = server.client()
    client.sadd("few", *(f"other{i}" for i in range(20)))
    client.sadd("all", *range(600))
    with server.raw() as beside, server.raw(timeout=300) as raw:
        raw.call("MULTI")
        raw.call("SDIFF", "few", *["all"] * 200_000)
        longest(beside)
        assert counted(raw.call("EXEC")[4:]) == 20
        assert longest(beside) < 4 * LIMIT_USEC


def test_the_scores_of_zadd_are_checked_in_many_rounds(server):
    server.client().set("text", "t")
    with server.raw(timeout=300) as raw:
        raw.call("MULTI")
        raw.call("ZADD", "text", *["1.2345678901234567e-100", "m"] * ASKED)
        rounds, reply = rounds_of(server, raw, "EXEC")
        assert reply == b"*1\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
        assert rounds > ROUNDS
        wrong = raw.call("ZADD", "text", *["1", "m"] * ASKED, "x", "m")
        assert wrong == b"-ERR value is not a valid float\r\n"


@pytest.mark.parametrize("words", [
    ["GEOSEARCH", "geo", "COUNT", "1"], ["GEOSEARCH", "geo", "DESC", "COUNT", "3"],
    ["GEOSEARCH", "geo", "ASC"], ["GEOSEARCHSTORE", "to", "geo"],
    ["GEOSEARCHSTORE", "to", "geo", "COUNT", str(CHANGED)]], ids=lambda words: " ".join(words[0::3]))
def test_a_search_of_many_members_is_many_rounds(server, words):
    """Also one that finds few of them."""
    client = server.client()
    for start in range(0, MEMBERS, 10_000):
        client.execute_command("GEOADD", "geo", *(
            word for n in range(start, start + 10_000) for word in (n / MEMBERS, n / MEMBERS, f"m:{n}")))
    at = words.index("geo") + 1
    words = words[:at] + ["FROMLONLAT", "0", "0", "BYRADIUS", "9000", "km"] + words[at:]
    with server.raw(timeout=300) as raw:
        rounds, reply = rounds_of(server, raw, *words)
    wanted = int(words[words.index("COUNT") + 1]) if "COUNT" in words else MEMBERS
    assert counted(reply) == wanted
    assert rounds > ROUNDS


LENGTH = 1_200_000
TAKEN = 590_000
ELEMENTS = [b"x" if n % 2 else b"%d" % n for n in range(LENGTH)]


def test_a_removal_from_a_long_list_is_many_rounds(server):
    """More of them than it takes to walk over these elements."""
    client = server.client()
    for start in range(0, LENGTH, 50_000):
        client.rpush("whole", *ELEMENTS[start : start + 50_000])
    first, last = ["LRANGE", "list", "0", str(TAKEN - 1)], ["LRANGE", "list", str(-TAKEN), "-1"]
    for words, walk, left in (
            (["LREM", "list", "0", "x"], ["LREM", "list", "0", "absent"], ELEMENTS[::2]),
            (["LTRIM", "list", str(TAKEN), "-1"], [], ELEMENTS[TAKEN:]),
            (["LTRIM", "list", str(-TAKEN), "-1"], [], ELEMENTS[-TAKEN:]),
            (["LPOP", "list", str(TAKEN)], first, ELEMENTS[TAKEN:]),
            (["RPOP", "list", str(TAKEN)], last, ELEMENTS[:-TAKEN]),
            (["LMPOP", "1", "list", "LEFT", "COUNT", str(TAKEN)], first, ELEMENTS[TAKEN:])):
        client.copy("whole", "list", replace=True)
        walked = 0
        with server.raw(timeout=300) as raw:
            if walk:
                raw.call("MULTI")
                raw.call(*walk)
                walked, _ = rounds_of(server, raw, "EXEC")
            raw.call("MULTI")
            raw.call(*words)
            rounds, _ = rounds_of(server, raw, "EXEC")
        assert client.lrange("list", 0, -1) == left
        assert rounds > walked + ROUNDS, words


def test_a_long_removal_keeps_its_reply(server):
    """What SPOP has chosen is in its reply, although it runs again after the reply was made."""
    client = server.client()
    members = [b"%0100d" % i for i in range(30000)]
    client.sadd("popped", *members)
    taken = client.spop("popped", 20000)
    assert len(set(taken)) == 20000 and set(taken) <= set(members)
    assert client.scard("popped") == 10000


def windows(count, write):
    """Fields that are far from each other in turn."""
    words = []
    for i in range(count):
        offset = "#%d" % (i % 2 * 100_000 + i // 2)
        words += ["SET", "u8", offset, i % 251] if write else ["GET", "u8", offset]
    return words


@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("words, reply", [
    (["PFCOUNT"] + ["hll"] * 5000, b":%d\r\n"),
    (["PFMERGE", "merged"] + ["hll"] * 5000, b"+OK\r\n"),
], ids=["PFCOUNT", "PFMERGE"])
def test_hyperloglogs_of_many_keys_are_many_rounds(server, words, reply, nested):
    client = server.client()
    for i in range(20):
        client.pfadd("hll", *range(i * 1000, i * 1000 + 1000))
    count = client.pfcount("hll")
    with server.raw() as raw:
        if nested:
            raw.call("MULTI")
            raw.call(*words)
            words, reply = ["EXEC"], b"*1\r\n" + reply
        rounds, found = rounds_of(server, raw, *words)
    assert found == (reply % count if b"%d" in reply else reply)
    assert rounds > ROUNDS
    if b"+OK" in reply:
        assert client.pfcount("merged") == count


@pytest.mark.parametrize("server", [{"maxmemory": "64mb"}], indirect=True, ids=[""])
@pytest.mark.parametrize("operation, combine", [
    ("AND", int.__and__), ("OR", int.__or__), ("XOR", int.__xor__)])
def test_bitop_of_many_sources_is_many_rounds(server, operation, combine):
    """In memory for the result and one source: all of them are more than this server's."""
    random = harness.chance()
    client = server.client()
    for length, most in ((5_000, 5_000), (60_000, 60_000), (60_000, 150_000)):
        values = [random.randbytes(length), random.randbytes(length // 2), random.randbytes(most)]
        client.mset({f"source:{i}": value for i, value in enumerate(values)})
        count = 240_000_000 // length
        order = [random.randrange(3) for _ in range(count)]
        result = 0 if operation != "AND" else int.from_bytes(b"\xff" * most, "little")
        numbers = [int.from_bytes(value, "little") for value in values]
        for i in order if operation == "XOR" else set(order):
            result = combine(result, numbers[i])
        with server.raw(timeout=300) as raw:
            raw.call("MULTI")
            raw.call("BITOP", operation, "made", *(f"source:{i}" for i in order))
            rounds, reply = rounds_of(server, raw, "EXEC")
        assert reply == b"*1\r\n:%d\r\n" % most
        assert rounds > ROUNDS
        assert client.get("made") == result.to_bytes(most, "little")
    before = client.info("stats")
    client.bitop(operation, "made", *["source:0", "absent"] * 500)
    after = client.info("stats")
    assert [after[name] - before[name] for name in ("keyspace_hits", "keyspace_misses")] == [500, 500]


def test_fields_of_distant_bytes_are_many_rounds(server):
    """In transactions, since what a long command's arguments take to arrive does not count."""
    count = 200_000
    numbers = b"".join(b":%d\r\n" % (i % 251) for i in range(count))
    client = server.client()
    with server.raw() as raw:
        for name, key, write, shown in (
                ("BITFIELD", "text", True, b":0\r\n" * count), ("BITFIELD", "text", False, numbers),
                ("BITFIELD_RO", "text", False, numbers),
                ("BITFIELD_RO", "none", False, b":0\r\n" * count)):
            misses = client.info("stats")["keyspace_misses"]
            raw.call("MULTI")
            raw.call(name, key, *windows(count, write))
            rounds, reply = rounds_of(server, raw, "EXEC")
            assert reply == b"*1\r\n*%d\r\n" % count + shown
            assert rounds > ROUNDS
            assert client.info("stats")["keyspace_misses"] == misses + (key == "none")


@pytest.mark.parametrize("server", [{"maxmemory": "1gb"}], indirect=True, ids=[""])
def test_long_elements_in_memory_are_compared_in_many_rounds(server):
    """400 MB of them, equal up to the last byte: none has to be waited for."""
    client = server.client()
    element = bytes(400_000)
    for _ in range(20):
        client.rpush("list", *[element] * 50)
    with server.raw() as raw:
        for words in (["LPOS"], ["LREM", "0"], ["LINSERT", "BEFORE"]):
            longest(raw)
            client.execute_command(words[0], "list", *words[1:], element[:-1] + b"x",
                                   *["y"] * (words[0] == "LINSERT"))
            assert longest(raw) < LIMIT_USEC, words
    assert client.llen("list") == 1000


@pytest.mark.parametrize("server", [{"maxmemory": "64mb"}], indirect=True, ids=[""])
@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a script"])
def test_long_elements_are_compared_in_many_rounds(server, nested):
    """More of them than the cache holds, and equal up to the last byte."""
    client = server.client()
    element = harness.chance().randbytes(200_000)
    other = element[:-1] + bytes([element[-1] ^ 1])
    for i in range(400):
        client.rpush("list", element if i % 4 else other)

    def run(*words):
        if nested:
            return client.eval("return redis.call(unpack(ARGV))", 1, "list", *words)
        return client.execute_command(*words)

    with server.raw() as raw:
        longest(raw)
        assert run("LPOS", "list", other, "COUNT", "0") == list(range(0, 400, 4))
        assert run("LPOS", "list", other, "RANK", "-2") == 392
        assert run("LINSERT", "list", "BEFORE", other[:-2] + element[-2:], "x") == 401
        assert run("LREM", "list", "-50", other) == 50
        if not nested:
            assert longest(raw) < LIMIT_USEC
    assert client.llen("list") == 351 and client.lindex("list", -1) == element
    assert client.lpos("list", other, count=0) == [0] + [1 + i for i in range(4, 200, 4)]
    assert client.lpos("list", bytes(200_000)) is None
    client.execute_command("SETRANGE", "zeros", 199_999, bytes(1))
    client.rpush("list", client.get("zeros"))
    assert client.lpos("list", bytes(200_000)) == 351


@pytest.mark.parametrize("server", [dict(maxmemory="1gb")], indirect=True)
def test_a_stream_whose_groups_have_names_alike_is_restored(server):
    """Beyond what fits into a key, each name is compared with all the others."""
    with server.raw() as raw:
        assert raw.call("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1") == b"+OK\r\n"
    groups = [group(b"n" * 2500 + b"%06d" % i, (0, 0), [], [], 0) for i in range(200 if harness.IS_WAIT else 4000)]
    payload = stream(19, [], 0, (9, 0), groups) + b"\x0a" + bytes(9)
    assert gap_of(server, harness.encode("RESTORE", "s", "0", payload), 1) < LIMIT_USEC
    assert server.client().type("s") == b"stream"
