"""Random commands on keys of all types: mostly sensible, often at an edge,
sometimes nonsense. One seed gives one stream."""

import random
import time

import talk

EDGES = [0, 1, -1, 2, 7, 8, 63, 64, 255, 256, 2**31 - 1, 2**31, -2**31, 2**32 - 1, 2**32, 2**53,
         2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64]
NOT_NUMBERS = [b"", b" 1", b"1 ", b"+1", b"01", b"-0", b"1.5", b"abc", b"0x10", b"1e3", b"nan",
               b"inf", b"99999999999999999999999"]
FLOATS = [b"0", b"1", b"-1", b"0.1", b"3.0e3", b"-2.5e-7", b"1e17", b"1e308", b"-1e308", b"5e-324",
          b"inf", b"-inf", b"nan", b"1.", b".5", b"0x1p3", b" 1", b"1 ", b"", b"12345678.87654321",
          b"9223372036854775807", b"1e400", b"3.0000000000000001"]
PATTERNS = [b"*", b"k*", b"k?", b"k[0-5]", b"k[^0-5]", b"*1*", b"k\\1", b"{*", b"", b"[", b"k[1",
            b"k[5-0]", b"**a**", b"k1"]


# What they answer is in no order, or by chance: within EXEC's reply nobody would compare it so.
NOT_QUEUED = {"KEYS", "RANDOMKEY"}

# They wait for somebody, and there is nobody here: outside of a transaction for a moment only, and
# seldom.
BLOCKING = {"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN",
            "WAIT"}

# Rather seldom, since they take long or undo what was set up.
SELDOM = {"CONFIG", "DEBUG", "SCRIPT", "HELLO", "RESET", "SHUTDOWN", "CLIENT", "COMMAND"}

# They speak of the connection, whose state is not to change in the middle of an EXEC.
ABOUT_CONNECTION = {"AUTH", "HELLO", "RESET", "SHUTDOWN", "DEBUG", "CONFIG", "SCRIPT"}

# Scripts refuse them, or say in another order what is in none.
NOT_IN_SCRIPTS = NOT_QUEUED | ABOUT_CONNECTION | {
    "EXEC", "DISCARD", "WATCH", "UNWATCH", "EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "PUBSUB",
    "CLIENT", "COMMAND", "INFO"}

# SPOP without its count would leave different sets behind; ZRANK with one argument more is a command
# only for 7.2, and EXEC tells.
AS_THEY_ARE = {"SPOP", "ZRANK", "ZREVRANK", "EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "CLIENT",
               "CONFIG", "COMMAND", "DEBUG", "SHUTDOWN", "SCRIPT", "INFO", "HELLO", "MEMORY", "WAIT"}

# Values as DUMP gives them.
DUMPS = [b'\x00\x03abc\n\x00\xd9\xac0=Ar\xa2\xe2',
         b"\x00\xc1\x10'\n\x00\xe4\xb7\xcal\x86C%\xd1",
         b'\x01\x02\x01a\xc0\x05\n\x00G\xa3w\x89\xf0\xcf\xbb\x97',
         b'\x02\x02\x01a\x01b\n\x00\xfed!%\xeb\x03=\r',
         b'\x04\x01\x01f\x01v\n\x00\xad\xf2CV\xb1\x86\x0e\xfc',
         b'\x05\x01\x01m\x00\x00\x00\x00\x00\x00\xf8?\n\x00\x86\xee\x8a=\x9ap\xe9\x7f',
         b'\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\xfb\xff\xe8\x03\n\x00\x9b\xd1\x17&S=\xaf\xb4',
         b'\x02\x02\x01a\x01a\n\x00W\xbev/\xc2\xd6R:',
         b'c\x00\n\x00k\x89v\xbc*\xe5$\x98']


class Generator(talk.Talk):
    def __init__(self, seed, names):
        """`names`: the commands to choose from, upper case; each must have a method here."""
        self.random = random.Random(seed)
        known = names & set(self.methods())
        known -= talk.LISTENING
        self.names = sorted(known)
        self.queued_names = sorted(known - NOT_QUEUED - ABOUT_CONNECTION)
        self.scripted_names = sorted(known - NOT_IN_SCRIPTS - BLOCKING)
        self.now_s = int(time.time())
        self.planned = []  # of a transaction that has begun

    @classmethod
    def methods(cls):
        """Command names that have a generator: methods in upper case."""
        return {name for name in dir(cls) if name.isupper()}

    def next(self):
        if not self.planned and "EXEC" in self.names and self.chance(0.02):
            self.plan_transaction()
        return self.planned.pop(0) if self.planned else self.single()

    def plan_transaction(self):
        """Nonsense aborts it, as anywhere: it is short, so that most are run."""
        watched = [b"WATCH"] + self.keys(3)
        if self.chance(0.5):
            self.planned += [watched] + [self.single() for _ in range(self.random.randrange(3))]
        self.planned.append([b"MULTI"])
        names = self.queued_names
        for _ in range(self.random.randrange(8)):
            self.planned.append(self.single(names))
            if self.planned[-1][0].upper() in (b"EXEC", b"DISCARD"):
                names = None
        if self.chance(0.05):
            self.planned.append([b"MULTI"])
        self.planned.append([b"EXEC" if self.chance(0.9) else b"DISCARD"])

    def single(self, names=None):
        name = self.random.choice(names or self.names)
        # Those that empty everything, rarely.
        if name in ("FLUSHALL", "FLUSHDB") and not self.chance(0.02):
            return self.single(names)
        if name in SELDOM and not self.chance(0.2):
            return self.single(names)
        if name in BLOCKING and names is None:
            return self.blocking(name) if self.chance(0.05) else self.single()
        words = [name if self.chance(0.9) else self.any_case(name)]
        words += getattr(self, name)()
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        if name not in AS_THEY_ARE and self.chance(0.04):
            return self.spoiled(words)
        return words

    def blocking(self, name):
        """For a moment, or with a mistake."""
        words = [w if isinstance(w, bytes) else str(w).encode() for w in [name] + getattr(self, name)()]
        if name == "WAIT":
            return [b"WAIT", words[1], b"1"]
        at = 1 if name in ("BLMPOP", "BZMPOP") else -1
        if words[at] in (b"0", b"1", b"1e3"):
            words[at] = b"0.01"
        return words

    def spoiled(self, words):
        """One argument missing, doubled, out of place or replaced."""
        way = self.random.randrange(5)
        if len(words) == 1 or way == 0:
            return words + [self.value()]
        at = self.random.randrange(1, len(words))
        if way == 1:
            return words[:at] + words[at + 1:]
        if way == 2:
            return words[:at] + [words[at]] + words[at:]
        if way == 3:
            other = self.random.randrange(1, len(words))
            words[at], words[other] = words[other], words[at]
            return words
        words[at] = self.random.choice([b"NX", b"XX", b"GET", b"nosuch", b"-1", b"", b"KEEPTTL"])
        return words

    # ---- pieces ----

    def chance(self, probability):
        return self.random.random() < probability

    def any_case(self, word):
        return "".join(c.upper() if self.chance(0.5) else c.lower() for c in word)

    def option(self, *words):
        """The words in half of the cases, else nothing."""
        return list(words) if self.chance(0.5) else []

    def options(self, choices, most):
        """Some of the choices (each a list of words), in any order, conflicts and all."""
        count = min(self.random.randrange(most + 1), len(choices))
        chosen = self.random.sample(choices, count)
        return [self.any_case(w) if isinstance(w, str) and self.chance(0.3) else w
                for words in chosen for w in words]

    def key(self):
        way = self.random.random()
        if way < 0.85:
            return b"k%d" % self.random.randrange(12)
        if way < 0.95:
            return b"{tag}%d" % self.random.randrange(3)
        return self.random.choice([b"", b"a\r\nb", b"\x00\xff", b"k" * 300, b"k" * 2049,
                                   b"k1" + b"l" * 5000])

    def keys(self, most=4):
        return [self.key() for _ in range(self.random.randrange(1, most + 1))]

    def integer(self, small=20):
        way = self.random.random()
        if way < 0.7:
            return self.random.randrange(-small // 4, small)
        if way < 0.95:
            return self.random.choice(EDGES)
        return self.random.choice(NOT_NUMBERS)

    def float(self):
        if self.chance(0.5):
            return b"%.*f" % (self.random.randrange(18), self.random.uniform(-1000, 1000))
        return self.random.choice(FLOATS)

    def text(self):
        size = self.random.choice([0, 1, 3, 10, 43, 44, 45, 100, 1000, 3000, 4096, 5000])
        return bytes(self.random.choices(b"abcab\x00\xff10", k=size))

    def value(self):
        way = self.random.random()
        if way < 0.35:
            return b"%d" % self.random.randrange(-100, 20000)
        if way < 0.45:
            return b"%d" % self.random.choice(EDGES)
        if way < 0.5:
            return self.random.choice(NOT_NUMBERS + FLOATS)
        if way < 0.502:
            return self.random.randbytes(self.random.randrange(60000, 300000))
        return self.text()

    def span(self, per_second):
        """A time span that neither ends during the run nor equals another one."""
        way = self.random.random()
        if way < 0.8:
            return self.random.randrange(10**3, 10**8) * per_second
        if way < 0.9:
            return self.random.choice([0, -1, -1000, 2**63 - 1, -2**63, 2**62])
        return self.random.choice(NOT_NUMBERS)

    def when(self, per_second):
        """A point in time, likewise; sometimes long past."""
        if self.chance(0.1):
            return self.span(per_second)
        return (self.now_s + self.random.randrange(10**3, 10**8)) * per_second

    def expiry(self):
        return self.random.choice([
            lambda: ["EX", self.span(1)], lambda: ["PX", self.span(1000)],
            lambda: ["EXAT", self.when(1)], lambda: ["PXAT", self.when(1000)],
        ])()

    # ---- string ----

    def SET(self):
        choices = [["NX"], ["XX"], ["GET"], ["KEEPTTL"], self.expiry(), self.expiry()]
        return [self.key(), self.value()] + self.options(choices, 3 if self.chance(0.4) else 0)

    def GET(self):
        return [self.key()]

    GETDEL = STRLEN = INCR = DECR = GET

    def SETNX(self):
        return [self.key(), self.value()]

    GETSET = APPEND = SETNX

    def SETEX(self):
        return [self.key(), self.span(1), self.value()]

    def PSETEX(self):
        return [self.key(), self.span(1000), self.value()]

    def GETEX(self):
        return [self.key()] + self.options([["PERSIST"], self.expiry(), self.expiry()], 2)

    def INCRBY(self):
        return [self.key(), self.integer(100000)]

    DECRBY = INCRBY

    def INCRBYFLOAT(self):
        return [self.key(), self.float()]

    def GETRANGE(self):
        return [self.key(), self.integer(50), self.integer(50)]

    SUBSTR = GETRANGE

    def SETRANGE(self):
        return [self.key(), self.offset(6000), self.text() if self.chance(0.9) else b""]

    def offset(self, small):
        """Not so far out that the value would grow to hundreds of megabytes."""
        way = self.random.random()
        if way < 0.8:
            return self.random.randrange(small)
        if way < 0.9:
            return self.random.choice([-1, -2**63, 2**63 - 1, 2**32, 2**63, 2**32 + 1])
        return self.random.choice(NOT_NUMBERS)

    def MGET(self):
        return self.keys(8)

    def MSET(self):
        return [w for key in self.keys(6) for w in (key, self.value())]

    MSETNX = MSET

    def LCS(self):
        choices = [["LEN"], ["IDX"], ["WITHMATCHLEN"], ["MINMATCHLEN", self.integer(5)]]
        return [self.key(), self.key()] + self.options(choices, 4)

    # ---- bitmap ----

    def bit(self):
        return self.random.choice([0, 1, 0, 1, 0, 1, 2, -1, b"x"])

    def SETBIT(self):
        return [self.key(), self.offset(50000), self.bit()]

    def GETBIT(self):
        return [self.key(), self.offset(50000)]

    def BITCOUNT(self):
        unit = self.option(self.random.choice(["BYTE", "BIT", "bit", "x"]))
        return [self.key()] + self.option(self.integer(80), self.integer(80), *unit)

    def BITPOS(self):
        unit = self.option(self.random.choice(["BYTE", "BIT", "byte", "x"]))
        return [self.key(), self.bit()] + self.option(
            self.integer(80), *self.option(self.integer(80), *unit))

    def BITOP(self):
        name = self.random.choice(["AND", "OR", "XOR", "NOT", "not", "Xor", "NAND"])
        return [name, self.key()] + ([self.key()] if name == "NOT" else self.keys())

    def field_type(self):
        return self.random.choice("uiuiuix") + str(self.random.choice(
            [1, 2, 3, 5, 7, 8, 8, 8, 13, 16, 31, 32, 33, 62, 63, 63, 64, 64, 65, 0, -1]))

    def field_offset(self):
        return ("#%d" % self.random.randrange(300) if self.chance(0.4) else self.offset(3000))

    def BITFIELD(self):
        words = [self.key()]
        for _ in range(self.random.randrange(5)):
            words += self.random.choice([
                lambda: ["GET", self.field_type(), self.field_offset()],
                lambda: ["SET", self.field_type(), self.field_offset(), self.integer(300)],
                lambda: ["INCRBY", self.field_type(), self.field_offset(), self.integer(300)],
                lambda: ["OVERFLOW", self.random.choice(["WRAP", "SAT", "FAIL", "sat", "NO"])],
            ])()
        return words

    def BITFIELD_RO(self):
        words = [self.key()]
        for _ in range(self.random.randrange(4)):
            words += ["GET", self.field_type(), self.field_offset()]
        return words + (["SET", "u8", 0, 1] if self.chance(0.05) else [])

    # ---- list ----

    def element(self):
        """Few different ones, so that searches find some; now and then one that makes a list large."""
        way = self.random.random()
        if way < 0.8:
            return b"e%d" % self.random.randrange(6)
        if way < 0.9:
            return self.random.randrange(-200, 20000)
        return self.value()

    def elements(self):
        if self.chance(0.03):
            return [b"e%d" % i for i in range(self.random.randrange(700))]
        return [self.element() for _ in range(self.random.randrange(1, 5))]

    def end(self):
        return self.any_case(self.random.choice(["LEFT", "RIGHT"]))

    def LPUSH(self):
        return [self.list()] + self.elements()

    RPUSH = LPUSHX = RPUSHX = LPUSH

    def list(self):
        return b"l%d" % self.random.randrange(5) if self.chance(0.9) else self.key()

    def LPOP(self):
        return [self.list()] + self.option(self.integer())

    RPOP = LPOP

    def LLEN(self):
        return [self.list()]

    def LINDEX(self):
        return [self.list(), self.integer()]

    def LSET(self):
        return [self.list(), self.integer(), self.element()]

    def LRANGE(self):
        return [self.list(), self.integer(), self.integer()]

    def LTRIM(self):
        last = -1 if self.chance(0.5) else self.integer()
        return [self.list(), self.integer(4), last]

    def LINSERT(self):
        where = self.any_case(self.random.choice(["BEFORE", "AFTER", "AFTER", "AT"]))
        return [self.list(), where, self.element(), self.element()]

    def LREM(self):
        return [self.list(), self.integer(8), self.element()]

    def LPOS(self):
        choices = [["RANK", self.integer(8)], ["COUNT", self.integer(8)],
                   ["MAXLEN", self.integer()]]
        return [self.list(), self.element()] + self.options(choices, 3)

    def LMOVE(self):
        return [self.list(), self.list(), self.end(), self.end()]

    def RPOPLPUSH(self):
        return [self.list(), self.list()]

    def counted(self, keys):
        """Keys with their number before them, seldom a wrong one."""
        return [len(keys) if self.chance(0.95) else self.integer(4)] + keys

    def LMPOP(self):
        keys = self.counted([self.list() for _ in range(self.random.randrange(1, 4))])
        return keys + [self.end()] + self.option("COUNT", self.integer(10))

    # ---- blocking ----

    def timeout(self):
        # Nothing too large: 7.0 takes that for negative.
        return self.random.choice([0, 0, 1, b"0.01", b"1e3", b"-1", b"-0.5", b"x", b""])

    def BLPOP(self):
        return [self.list() for _ in range(self.random.randrange(1, 4))] + [self.timeout()]

    BRPOP = BLPOP

    def BLMOVE(self):
        return self.LMOVE() + [self.timeout()]

    def BRPOPLPUSH(self):
        return self.RPOPLPUSH() + [self.timeout()]

    def BLMPOP(self):
        return [self.timeout()] + self.LMPOP()

    def BZPOPMIN(self):
        return [self.zset() for _ in range(self.random.randrange(1, 4))] + [self.timeout()]

    BZPOPMAX = BZPOPMIN

    def BZMPOP(self):
        return [self.timeout()] + self.ZMPOP()

    def WAIT(self):
        return [self.integer(3), self.random.choice([0, 10, -1, b"x", b"1.5", 2**63])]

    # ---- sorted set ----

    def zset(self):
        return b"z%d" % self.random.randrange(5) if self.chance(0.9) else self.key()

    def ranked(self):
        way = self.random.random()
        if way < 0.85:
            return b"m%d" % self.random.randrange(30)
        if way < 0.97:
            return self.random.choice([b"", b"a", b"b" * 63, b"b" * 64, b"b" * 65, b"b" * 503,
                                       b"b" * 504, b"b" * 505, b"b" * 504 + b"a", b"b" * 700])
        return self.value()

    def score(self):
        way = self.random.random()
        if way < 0.7:
            return self.random.randrange(-5, 15)
        if way < 0.85:
            return b"%.3f" % self.random.uniform(-20, 20)
        # -0 is left out: 7.2 forgets the sign in small sorted sets, 7.0 does not.
        return self.random.choice(FLOATS)

    def pairs(self):
        if self.chance(0.03):
            first = self.random.randrange(300)
            return [w for i in range(self.random.randrange(400))
                    for w in (i % 7, b"n%d" % (first + i))]
        return [w for _ in range(self.random.randrange(1, 4)) for w in (self.score(), self.ranked())]

    def ZADD(self):
        if self.chance(0.15):
            return [self.lex_zset()] + [w for _ in range(5) for w in (0, self.ranked())]
        choices = [["NX"], ["XX"], ["GT"], ["LT"], ["CH"], ["INCR"]]
        return [self.zset()] + self.options(choices, 2 if self.chance(0.4) else 0) + self.pairs()

    def ZINCRBY(self):
        return [self.zset(), self.score(), self.ranked()]

    def ZREM(self):
        return [self.zset()] + [self.ranked() for _ in range(self.random.randrange(1, 4))]

    def ZMSCORE(self):
        return self.ZREM()

    def ZSCORE(self):
        return [self.zset(), self.ranked()]

    def ZCARD(self):
        return [self.zset()]

    def ZRANK(self):
        # WITHSCORE is 7.2's.
        return [self.zset(), self.ranked()]

    ZREVRANK = ZRANK

    def score_bound(self):
        prefix = b"(" if self.chance(0.3) else b""
        bound = self.random.choice([b"-inf", b"+inf", b"inf"]) if self.chance(0.3) else self.score()
        return prefix + (bound if isinstance(bound, bytes) else str(bound).encode())

    def lex_bound(self):
        if self.chance(0.3):
            return self.random.choice([b"-", b"+", b"-", b"+", b"", b"x", b"+x"])
        return self.random.choice([b"[", b"("]) + self.ranked()

    def lex_zset(self):
        """Of one score, as ranges by member want it."""
        return b"y%d" % self.random.randrange(2)

    def bounds(self, kind):
        bound = {"rank": self.integer, "score": self.score_bound, "lex": self.lex_bound}[kind]
        return [bound(), bound()]

    def range(self, kind):
        """Key and bounds; now and then the key is given something to be found there."""
        return [self.lex_zset() if kind == "lex" else self.zset()] + self.bounds(kind)

    def limit(self):
        return ["LIMIT", self.integer(8), self.integer(8)]

    def ZCOUNT(self):
        return self.range("score")

    def ZLEXCOUNT(self):
        return self.range("lex")

    def ZRANGE(self):
        kind = self.random.choice(["rank", "rank", "score", "lex"])
        by = {"rank": [], "score": ["BYSCORE"], "lex": ["BYLEX"]}[kind]
        choices = [["REV"], ["WITHSCORES"], self.limit()]
        return self.range(kind) + by + self.options(choices, 2 if self.chance(0.6) else 0)

    def ZRANGESTORE(self):
        words = self.ZRANGE()
        return [self.lex_zset() if words[0][:1] == b"y" else self.zset()] + [
            w for w in words if w != "WITHSCORES" or self.chance(0.1)]

    def ZREVRANGE(self):
        return self.range("rank") + self.options([["WITHSCORES"], self.limit()], 1)

    def ZRANGEBYSCORE(self):
        return self.range("score") + self.options([["WITHSCORES"], self.limit()], 2)

    ZREVRANGEBYSCORE = ZRANGEBYSCORE

    def ZRANGEBYLEX(self):
        return self.range("lex") + self.options([["WITHSCORES"], self.limit(), self.limit()], 1)

    ZREVRANGEBYLEX = ZRANGEBYLEX

    def ZREMRANGEBYRANK(self):
        return self.range("rank")

    def ZREMRANGEBYSCORE(self):
        return self.range("score")

    def ZREMRANGEBYLEX(self):
        return self.range("lex")

    def ZPOPMIN(self):
        return [self.zset()] + self.option(self.integer(6))

    ZPOPMAX = ZPOPMIN

    def ZMPOP(self):
        keys = self.counted([self.zset() for _ in range(self.random.randrange(1, 4))])
        return keys + [self.any_case(self.random.choice(["MIN", "MAX"]))] + self.option(
            "COUNT", self.integer(6))

    def ZRANDMEMBER(self):
        return [self.zset()] + self.option(self.picks(), *self.option("WITHSCORES"))

    def ZSCAN(self):
        choices = [["MATCH", self.random.choice(PATTERNS)], ["COUNT", self.integer(50)]]
        return [self.zset(), self.random.choice([b"0", b"0", b"0", b"x"])] + self.options(choices, 2)

    def sources(self):
        return [self.key() if self.chance(0.1) else self.zset()
                for _ in range(self.random.randrange(1, 4))]

    def ZUNION(self):
        keys = self.sources()
        choices = [["WEIGHTS"] + [self.score() for _ in keys], ["WITHSCORES"], ["WITHSCORES"],
                   ["AGGREGATE", self.random.choice(["SUM", "MIN", "MAX", "max", "AVG"])]]
        return self.counted(keys) + self.options(choices, 3)

    ZINTER = ZUNION

    def ZDIFF(self):
        return self.counted(self.sources()) + self.options([["WITHSCORES"]], 1)

    def ZINTERCARD(self):
        return self.counted(self.sources()) + self.option("LIMIT", self.integer(8))

    def ZUNIONSTORE(self):
        return [self.zset()] + [w for w in self.ZUNION() if w != "WITHSCORES"]

    ZINTERSTORE = ZUNIONSTORE

    def ZDIFFSTORE(self):
        return [self.zset()] + self.counted(self.sources())

    # ---- generic ----

    def DEL(self):
        return self.keys()

    UNLINK = EXISTS = TOUCH = DEL
    TYPE = TTL = PTTL = EXPIRETIME = PEXPIRETIME = PERSIST = GET

    def RENAME(self):
        return [self.key(), self.key()]

    RENAMENX = RENAME

    def conditions(self):
        return self.options([["NX"], ["XX"], ["GT"], ["LT"], ["WHEN"]], 2)

    def EXPIRE(self):
        return [self.key(), self.span(1)] + self.conditions()

    def PEXPIRE(self):
        return [self.key(), self.span(1000)] + self.conditions()

    def EXPIREAT(self):
        return [self.key(), self.when(1)] + self.conditions()

    def PEXPIREAT(self):
        return [self.key(), self.when(1000)] + self.conditions()

    def database(self):
        return self.random.choice([0, 1, 2, 0, 1, 2, 15, 16, -1, b"x"])

    def COPY(self):
        return [self.key(), self.key()] + self.options([["DB", self.database()], ["REPLACE"]], 2)

    def MOVE(self):
        return [self.key(), self.database()]

    def KEYS(self):
        return [self.random.choice(PATTERNS)]

    def SCAN(self):
        cursor = self.random.choice([b"0", b"0", b"0", b"x", b"-1", b""])
        choices = [["MATCH", self.random.choice(PATTERNS)], ["COUNT", self.integer(50)],
                   ["TYPE", self.random.choice(["string", "hash", "STRING"])], ["NOSUCH"]]
        return [cursor] + self.options(choices, 2)

    def RANDOMKEY(self):
        return []

    DBSIZE = RANDOMKEY

    def OBJECT(self):
        return [self.random.choice(["ENCODING", "encoding", "REFCOUNT", "IDLETIME", "FREQ", "X"]),
                self.key()]

    # ---- hash ----

    def own_key(self, letter):
        """Mostly a key that only commands on one type use; sometimes any."""
        return b"%s%d" % (letter, self.random.randrange(4)) if self.chance(0.85) else self.key()

    def member(self):
        """Few different ones, so that they are met again; some to outgrow what is packed."""
        way = self.random.random()
        if way < 0.5:
            return b"%d" % self.random.randrange(30)
        if way < 0.7:
            return b"member:%d" % self.random.randrange(100)
        if way < 0.75:
            return b"%d" % self.random.choice(EDGES)
        if way < 0.8:
            return self.random.choice(NOT_NUMBERS)
        return self.random.choice([b"", b"a", b"b", b"c", b"a\r\nb", b"x" * 64, b"x" * 65, b"y" * 900])

    def members(self, most=6):
        return [self.member() for _ in range(self.random.randrange(1, most + 1))]

    def hash(self):
        return self.own_key(b"h")

    def HSET(self):
        return [self.hash()] + [w for m in self.members() for w in (m, self.value())]

    HMSET = HSET

    def HSETNX(self):
        return [self.hash(), self.member(), self.value()]

    def HGET(self):
        return [self.hash(), self.member()]

    HEXISTS = HSTRLEN = HGET

    def HMGET(self):
        return [self.hash()] + self.members()

    HDEL = HMGET

    def HLEN(self):
        return [self.hash()]

    HKEYS = HVALS = HGETALL = HLEN

    def HINCRBY(self):
        return [self.hash(), self.member(), self.integer(100000)]

    def HINCRBYFLOAT(self):
        return [self.hash(), self.member(), self.float()]

    def picks(self):
        return self.random.choice([0, 1, -1, 2, -3, 5, 1000, -40, b"x", b"1.5", 2**63, -2**63])

    def HRANDFIELD(self):
        return [self.hash()] + self.option(self.picks(), *self.option("WITHVALUES"))

    def walk(self):
        cursor = self.random.choice([b"0", b"0", b"0", b"x", b""])
        return [cursor] + self.options([["MATCH", self.random.choice(PATTERNS)],
                                        ["COUNT", self.integer(50)], ["TYPE", "hash"]], 2)

    def HSCAN(self):
        return [self.hash()] + self.walk()

    # ---- set ----

    def set(self):
        return self.own_key(b"s")

    def sets(self):
        return [self.set() for _ in range(self.random.randrange(1, 5))]

    def SADD(self):
        if self.chance(0.05):
            return [self.set()] + list(range(self.random.randrange(600)))
        return [self.set()] + self.members()

    def SREM(self):
        return [self.set()] + self.members()

    SMISMEMBER = SREM

    def SISMEMBER(self):
        return [self.set(), self.member()]

    def SCARD(self):
        return [self.set()]

    SMEMBERS = SCARD

    def SRANDMEMBER(self):
        return [self.set()] + self.option(self.picks())

    def SPOP(self):
        """All of them or none: what is popped else is each server's own choice."""
        return [self.set(), self.random.choice([0, -1, 10**6, b"x"])]

    def SMOVE(self):
        return [self.set(), self.set(), self.member()]

    def SSCAN(self):
        return [self.set()] + self.walk()

    def SINTER(self):
        return self.sets()

    SUNION = SDIFF = SINTER

    def SINTERSTORE(self):
        return [self.set()] + self.sets()

    SUNIONSTORE = SDIFFSTORE = SINTERSTORE

    def SINTERCARD(self):
        keys = self.sets()
        count = len(keys) if self.chance(0.9) else self.integer(3)
        return [count] + keys + self.option("LIMIT", self.integer(20))

    # ---- dump ----

    def DUMP(self):
        return [self.key()]

    def RESTORE(self):
        """Of each type one, and two that are broken."""
        payload = self.random.choice(DUMPS) if self.chance(0.95) else self.value()
        return [self.key(), self.random.choice([0, 0, 0, 10**7, -1, b"x"]), payload] + self.options(
            [["REPLACE"], ["REPLACE"], ["IDLETIME", self.integer()], ["FREQ", self.integer()]], 3)

    # ---- sort ----

    def SORT(self):
        kind = self.random.choice([b"l", b"s", b"z"])
        patterns = [b"k*", b"nosort", b"h0->*", b"h*->1", b"*->1", b"#", b"h1->", b"k*->", b"x*y"]
        order = self.options([["ASC"], ["DESC"], ["ALPHA"]], 3)
        by = [["BY", self.random.choice(patterns)]]
        gets = [["GET", p] for p in self.random.sample(patterns, self.random.randrange(3))]
        limits = [["LIMIT", self.integer(8), self.integer(8)]]
        words = order + self.options(by + gets + limits, 3)
        # By bytes without BY there is one order, in which both may store it.
        if any(str(word).upper() == "ALPHA" for word in words) and self.chance(0.8):
            words = ["ALPHA"] + self.options(limits, 1) + ["STORE", self.list()]
        return [self.own_key(kind)] + words

    def SORT_RO(self):
        return self.SORT()

    # ---- hyperloglog ----

    def hll(self):
        return self.own_key(b"h") if self.chance(0.1) else b"hll%d" % self.random.randrange(4)

    def PFADD(self):
        count = self.random.choice([0, 1, 2, 5, 50, 600])
        return [self.hll()] + [self.random.randrange(10**5) for _ in range(count)]

    def PFCOUNT(self):
        return [self.hll() for _ in range(self.random.randrange(1, 4))]

    def PFMERGE(self):
        return [self.hll()] + [self.hll() for _ in range(self.random.randrange(4))]

    def PFDEBUG(self):
        ways = ["GETREG", "DECODE", "ENCODING", "TODENSE", "NOSUCH"]
        return [self.random.choice(ways), self.hll()]

    # ---- transactions, beside those that are planned: only they have a MULTI ----

    def EXEC(self):
        return []

    DISCARD = UNWATCH = EXEC

    def WATCH(self):
        return self.keys()

    # ---- the database as a whole ----

    def SELECT(self):
        return [self.random.choice([0, 0, 0, 1, 2, 16, -1, b"x"])]

    def SWAPDB(self):
        return [self.database(), self.database()]

    def FLUSHDB(self):
        return self.options([["ASYNC"], ["SYNC"], ["NOW"]], 1)

    FLUSHALL = FLUSHDB

    def ECHO(self):
        return [self.value()]

    def PING(self):
        return self.option(self.value())
