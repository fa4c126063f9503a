"""Random commands of every kind, for tests/crash/memory: what is sent, and what may be answered."""

import math

KEYS = 60
LONG = 64 << 20   # bytes of the longest value that is sent
SPARSE = 512 << 20
BYTES = memoryview(b"abcdefgh" * (LONG // 8))
PART = 1 << 20

# Errors any command may give; -OOM is among them: no memory, or no room on the device.
ALWAYS = ("OOM ", "WRONGTYPE ", "EXECABORT ", "NOSCRIPT ", "BUSY ", "BUSYKEY ")
# Of commands that look into values.
OF_VALUES = ("ERR string exceeds maximum", "ERR no such key", "ERR index out of range",
             "ERR The specified keys must contain string values",
             "ERR value is not an integer", "ERR value is not a valid float", "ERR hash value is not",
             "ERR One or more scores can't be converted into double", "ERR bit offset is not",
             "ERR Bad data format", "ERR DUMP payload version or checksum", "ERR not enough memory",
             "ERR reply is too large", "ERR source and destination objects are the same",
             "INVALIDOBJ ", "ERR resulting score", "ERR increment or decrement would overflow",
             "ERR Error running script", "ERR user_script", "ERR Invalid bulk length",
             "ERR Specified key is not", "ERR String length", "ERR Insufficient memory")


class Command:
    """Pieces of bytes that are sent, and the first bytes that replies may have; of several commands the
    last one's reply is looked at."""

    def __init__(self, name, forms, *words, replies=1):
        self.name, self.forms, self.replies = name, forms, replies
        self.parts = parts_of((name,) + words)


def may_fail(_command, text):
    return text.startswith(ALWAYS) or text.startswith(OF_VALUES)


def parts_of(words):
    """Short pieces are joined, long ones stay."""
    parts, short = [], [b"*%d\r\n" % len(words)]
    for word in words:
        if not isinstance(word, memoryview):
            word = word if isinstance(word, bytes) else str(word).encode()
        short.append(b"$%d\r\n" % len(word))
        if len(word) > PART:
            parts += [b"".join(short), word]
            short = []
        else:
            short.append(word)
        short.append(b"\r\n")
    return parts + [b"".join(short)]


def size(chance, most=LONG):
    """As many of each order of magnitude; the longest seldom."""
    if chance.random() < 0.9:
        most = min(most, PART)
    return int(math.exp(chance.uniform(0, math.log(most))))


def value(chance, most=LONG):
    return BYTES[:size(chance, most)]


def key(chance, kind="s"):
    """Mostly of the type that the command wants; sometimes a long name."""
    if chance.random() < 0.05:
        kind = chance.choice("slhzx")
    name = b"%s%d" % (kind.encode(), chance.randrange(KEYS))
    return name + bytes(BYTES[:size(chance, 1 << 20)]) if chance.random() < 0.02 else name


def keys(chance, kind, most=100):
    return [key(chance, kind) for _ in range(chance.randrange(1, most))]


def count(chance, most=20000):
    return int(math.exp(chance.uniform(0, math.log(most))))


def members(chance):
    """Many short or some long."""
    number = count(chance)
    length = size(chance, max(2, min(LONG, (8 << 20) // number)))
    at = chance.randrange(100000)
    return [b"%d:" % (at + i) + bytes(BYTES[:length]) for i in range(number)]


def pairs(chance):
    return [word for i, member in enumerate(members(chance)) for word in (b"%d" % i, member)]


STORE, READ = "+:$*", "$*:+"

# (weight, name, forms, arguments, whether it is short to send)
TABLE = [
    (6, "SET", "+$", lambda c: [key(c), value(c)], False),
    (2, "SET", "+$", lambda c: [key(c), value(c, 60000), "EX", "2"], True),
    (2, "APPEND", ":", lambda c: [key(c), value(c)], False),
    (2, "SETRANGE", ":", lambda c: [key(c), size(c, SPARSE), value(c, 60000)], True),
    (1, "SETBIT", ":", lambda c: [key(c), size(c, SPARSE) * 8 - 1, 1], True),
    (1, "BITFIELD", "*", lambda c: [key(c), "INCRBY", "u8", size(c, SPARSE), 3, "GET", "u4", 0], True),
    (6, "GET", "$", lambda c: [key(c)], True),
    (2, "GETRANGE", "$", lambda c: [key(c), size(c, SPARSE), -1], True),
    (2, "MGET", "*", lambda c: keys(c, "s", 200), True),
    (2, "MSET", "+", lambda c: [w for k in keys(c, "s") for w in (k, value(c, 300000))], False),
    (1, "MSET", "+", lambda c: [w for i in range(count(c)) for w in (b"m%d" % i, b"v")], False),
    (1, "GETSET", "$", lambda c: [key(c), value(c)], False),
    (1, "GETDEL", "$", lambda c: [key(c)], True),
    (1, "SET", "+$", lambda c: [key(c), value(c), "IFEQ", value(c), "GET"], False),
    (1, "DELIFEQ", ":", lambda c: [key(c), value(c)], False),
    (1, "INCR", ":", lambda c: [key(c, "n")], True),
    (2, "BITCOUNT", ":", lambda c: [key(c)], True),
    (1, "BITPOS", ":", lambda c: [key(c), c.randrange(2)], True),
    (1, "BITOP", ":", lambda c: [c.choice(("AND", "OR", "XOR")), key(c), key(c), key(c)], True),
    (1, "BITOP", ":", lambda c: ["NOT", key(c), key(c)], True),
    (1, "LCS", "$", lambda c: [key(c), key(c)], True),
    (1, "STRLEN", ":", lambda c: [key(c)], True),
    (3, "COPY", ":", lambda c: [key(c, k := c.choice("slhzx")), key(c, k), "REPLACE"], True),
    (2, "RENAME", "+", lambda c: [key(c, k := c.choice("slhzx")), key(c, k)], True),
    (5, "DEL", ":", lambda c: keys(c, c.choice("slhzx"), 10), True),
    (2, "UNLINK", ":", lambda c: keys(c, c.choice("slhzx"), 10), True),
    (1, "EXISTS", ":", lambda c: keys(c, "s"), True),
    (1, "PEXPIRE", ":", lambda c: [key(c, c.choice("slhzx")), c.randrange(1, 5000)], True),
    (1, "SCAN", "*", lambda c: [0, "COUNT", count(c)], True),
    (2, "KEYS", "*", lambda c: ["*"], True),
    (1, "RANDOMKEY", "$", lambda c: [], True),
    (1, "DBSIZE", ":", lambda c: [], True),
    (2, "DUMP", "$", lambda c: [key(c, c.choice("slhzx"))], True),
    (1, "RESTORE", "+", lambda c: [key(c, "d"), 0, value(c)], False),
    (1, "OBJECT", "$", lambda c: ["ENCODING", key(c)], True),
    (1, "MEMORY", ":$", lambda c: ["USAGE", key(c, c.choice("slhzx"))], True),
    (1, "DEBUG", "+", lambda c: ["DIGEST"], True),
    (1, "DEBUG", "*", lambda c: ["DIGEST-VALUE", *keys(c, c.choice("slhzx"), 10)], True),
    (3, "RPUSH", ":", lambda c: [key(c, "l"), *members(c)], False),
    (2, "LPUSH", ":", lambda c: [key(c, "l"), value(c)], False),
    (3, "LRANGE", "*", lambda c: [key(c, "l"), 0, -1], True),
    (1, "LINDEX", "$", lambda c: [key(c, "l"), c.randrange(-1000, 1000)], True),
    (1, "LSET", "+", lambda c: [key(c, "l"), 0, value(c)], False),
    (1, "LINSERT", ":", lambda c: [key(c, "l"), "BEFORE", b"1:", value(c)], False),
    (1, "LPOS", ":$", lambda c: [key(c, "l"), value(c, 60000)], True),
    (1, "LREM", ":", lambda c: [key(c, "l"), 0, value(c, 60000)], True),
    (1, "LPOP", "$*", lambda c: [key(c, "l"), count(c)], True),
    (1, "LMPOP", "*", lambda c: [2, key(c, "l"), key(c, "l"), "LEFT", "COUNT", count(c)], True),
    (1, "LMOVE", "$", lambda c: [key(c, "l"), key(c, "l"), "LEFT", "RIGHT"], True),
    (1, "LTRIM", "+", lambda c: [key(c, "l"), count(c), -1], True),
    (2, "BLPOP", "*", lambda c: keys(c, "l") + ["0.5"], True),
    (3, "HSET", ":", lambda c: [key(c, "h"), *pairs(c)], False),
    (1, "HSET", ":", lambda c: [key(c, "h"), "f", value(c)], False),
    (1, "HPEXPIRE", "*", lambda c: [key(c, "h"), c.randrange(1, 5000), "FIELDS", 2, "f", "f1"], False),
    (1, "HSETEX", ":", lambda c: [key(c, "h"), "PX", c.randrange(1, 5000), "FIELDS", 1, "f", value(c)], False),
    (1, "HGETDEL", "*", lambda c: [key(c, "h"), "FIELDS", 1, "f"], True),
    (3, "HGETALL", "*", lambda c: [key(c, "h")], True),
    (1, "HVALS", "*", lambda c: [key(c, "h")], True),
    (1, "HMGET", "*", lambda c: [key(c, "h"), *range(count(c))], True),
    (1, "HGET", "$", lambda c: [key(c, "h"), "f"], True),
    (1, "HSCAN", "*", lambda c: [key(c, "h"), 0, "COUNT", count(c)], True),
    (1, "HRANDFIELD", "*", lambda c: [key(c, "h"), -count(c, 100000), "WITHVALUES"], True),
    (1, "HDEL", ":", lambda c: [key(c, "h"), *range(count(c))], True),
    (3, "SADD", ":", lambda c: [key(c, "x"), *members(c)], False),
    (2, "SMEMBERS", "*", lambda c: [key(c, "x")], True),
    (2, "SUNION", "*", lambda c: keys(c, "x", 20), True),
    (1, "SINTER", "*", lambda c: keys(c, "x", 3), True),
    (1, "SDIFF", "*", lambda c: keys(c, "x", 3), True),
    (1, "SUNIONSTORE", ":", lambda c: keys(c, "x", 10) + [key(c, "x")], True),
    (1, "SRANDMEMBER", "*", lambda c: [key(c, "x"), -count(c, 100000)], True),
    (1, "SPOP", "*", lambda c: [key(c, "x"), count(c)], True),
    (1, "SSCAN", "*", lambda c: [key(c, "x"), 0, "COUNT", count(c)], True),
    (3, "ZADD", ":", lambda c: [key(c, "z"), *pairs(c)], False),
    (2, "ZRANGE", "*", lambda c: [key(c, "z"), 0, -1, "WITHSCORES"], True),
    (1, "ZUNION", "*", lambda c: ["3", key(c, "z"), key(c, "z"), key(c, "z")], True),
    (1, "ZINTER", "*", lambda c: ["2", key(c, "z"), key(c, "z")], True),
    (1, "ZUNIONSTORE", ":", lambda c: [key(c, "z"), "2", key(c, "z"), key(c, "z")], True),
    (1, "ZRANGESTORE", ":", lambda c: [key(c, "z"), key(c, "z"), 0, -1], True),
    (1, "ZPOPMIN", "*", lambda c: [key(c, "z"), count(c)], True),
    (1, "ZREM", ":", lambda c: [key(c, "z"), *members(c)], False),
    (2, "SORT", "*:", lambda c: [key(c, c.choice("lxz")), "ALPHA"], True),
    (1, "SORT", "*:", lambda c: [key(c, "l"), "BY", "s*", "ALPHA", "GET", "s*", "GET", "#"], True),
    (1, "SORT", "*:", lambda c: [key(c, "x"), "ALPHA", "STORE", key(c, "l")], True),
    (1, "PFADD", ":", lambda c: [key(c, "p"), *members(c)], False),
    (1, "PFMERGE", "+", lambda c: keys(c, "p"), True),
    (1, "PFCOUNT", ":", lambda c: keys(c, "p"), True),
    (1, "PUBLISH", ":", lambda c: ["news", value(c)], False),
    (1, "PING", "$", lambda c: [value(c)], False),
    (1, "CLIENT", "$", lambda c: ["LIST"], True),
    (1, "CLIENT", "+", lambda c: ["SETNAME", value(c, 60000)], True),
    (1, "WATCH", "+", lambda c: [b"w%d" % i for i in range(count(c))], True),
    (1, "UNWATCH", "+", lambda c: [], True),
    (1, "INFO", "$", lambda c: [], True),
    (1, "SLOWLOG", "*", lambda c: ["GET", -1], True),
    (1, "SCRIPT", "$", lambda c: ["LOAD", b"return 1 --" + bytes(value(c, PART))], False),
    (1, "EVAL", "$", lambda c: ["return redis.call('GET', KEYS[1])", 1, key(c)], True),
    (1, "EVAL", "*", lambda c: ["return redis.call('LRANGE', KEYS[1], 0, -1)", 1, key(c, "l")], True),
    (1, "EVAL", ":", lambda c: ["return #string.rep('x', ARGV[1])", 0, size(c, SPARSE)], True),
    (1, "EVAL", ":", lambda c: ["local t = {} for i = 1, ARGV[1] do t[i] = 'e' .. i end return #t", 0,
                                count(c, 3000000)], True),
    (1, "EVAL", ":", lambda c: ["for i = 1, ARGV[1] do redis.call('SET', 'e' .. i, i) end return 1", 0,
                                count(c)], True),
    (1, "EVAL", ":", lambda c: ["for i = 1, ARGV[1] do redis.call('BITCOUNT', KEYS[1]) end return 1", 1,
                                key(c), count(c, 20)], True),
    (1, "FLUSHDB", "+", lambda c: [], True),
]
SHORT = [row for row in TABLE if row[4]]
INSIDE = [row for row in SHORT if row[1] not in ("WATCH", "FLUSHDB", "DEBUG")]


def one_of(chance, rows):
    _, name, forms, arguments, _ = chance.choices(rows, [row[0] for row in rows])[0]
    return name, forms.encode(), arguments(chance)


def transaction(chance):
    """MULTI, some commands, EXEC."""
    number = chance.choice((1, 5, 50, 200))
    whole = Command("MULTI", b"+")
    whole.name, whole.forms, whole.replies = "EXEC", b"*", number + 2
    for _ in range(number):
        name, _, words = one_of(chance, INSIDE)
        whole.parts += parts_of([name, *words])
    whole.parts += parts_of(["EXEC"])
    return whole


def choose(chance):
    if chance.random() < 0.03:
        return transaction(chance)
    name, forms, words = one_of(chance, TABLE)
    return Command(name, forms, *words)


def choose_short(chance):
    """One that asks for much, and is short itself."""
    if chance.random() < 0.03:
        return transaction(chance)
    name, forms, words = one_of(chance, SHORT)
    return Command(name, forms, *words)
