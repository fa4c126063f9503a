"""Random commands on keys of all types: mostly sensible, often at an edge, sometimes nonsense. One seed
gives one stream. Those about collections stand in containers.py and streams.py, those about no values in talk.py."""

import random
import time

import containers
import pieces
import streams
import talk

# What they answer is in no order, or by chance: within EXEC's reply nobody would compare it so.
NOT_QUEUED = {"KEYS", "RANDOMKEY"}

# They wait for somebody, and there is nobody here: outside of a transaction for a moment only, and
# seldom.
BLOCKING = {"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN",
            "WAIT", "XREAD", "XREADGROUP"}

# Rather seldom, since they take long or undo what was set up.
SELDOM = {"CONFIG", "DEBUG", "SCRIPT", "FUNCTION", "HELLO", "RESET", "SHUTDOWN", "CLIENT", "COMMAND"}

# They speak of the connection, whose state is not to change in the middle of an EXEC.
ABOUT_CONNECTION = {"AUTH", "HELLO", "RESET", "SHUTDOWN", "DEBUG", "CONFIG", "SCRIPT"}

# Scripts refuse them, or say in another order what is in none.
NOT_IN_SCRIPTS = NOT_QUEUED | ABOUT_CONNECTION | {
    "EXEC", "DISCARD", "WATCH", "UNWATCH", "EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "PUBSUB",
    "FUNCTION", "FCALL", "FCALL_RO", "CLIENT", "COMMAND", "INFO", "SLOWLOG", "LATENCY", "CLUSTER", "MODULE", "ROLE", "ASKING",
    "READONLY", "READWRITE"}

# A consumer by another name is made in more cases by 7.2. SPOP without its count would leave different sets
# behind; ZRANK with one argument more is a command only for 7.2, and EXEC tells.
AS_THEY_ARE = {"XGROUP", "XREADGROUP", "XCLAIM", "XAUTOCLAIM", "SPOP", "ZRANK", "ZREVRANK", "EVAL",
               "EVAL_RO", "EVALSHA", "EVALSHA_RO", "FUNCTION", "FCALL", "FCALL_RO", "CLIENT", "CONFIG", "COMMAND", "DEBUG", "SHUTDOWN",
               "SCRIPT", "INFO", "HELLO", "MEMORY", "WAIT", "SLOWLOG", "LATENCY", "CLUSTER", "MODULE",
               "ROLE", "ASKING", "READONLY", "READWRITE"}

# Two arguments exchanged would be a time to live of milliseconds, in which the servers differ.
SHORT_LIVED = (b"RESTORE", b"PSETEX")

# So many draws with repetition, by an argument that was spoiled, keep stock Redis busy for minutes.
DRAWS = {"HRANDFIELD", "SRANDMEMBER", "ZRANDMEMBER"}
TOO_MANY_DRAWS = b"-2147483648"

# Values as DUMP gives them.
DUMPS = [b'\x00\x03abc\n\x00\xd9\xac0=Ar\xa2\xe2',
         b"\x00\xc1\x10'\n\x00\xe4\xb7\xcal\x86C%\xd1",
         b'\x01\x02\x01a\xc0\x05\n\x00G\xa3w\x89\xf0\xcf\xbb\x97',
         b'\x02\x02\x01a\x01b\n\x00\xfed!%\xeb\x03=\r',
         b'\x04\x01\x01f\x01v\n\x00\xad\xf2CV\xb1\x86\x0e\xfc',
         b'\x05\x01\x01m\x00\x00\x00\x00\x00\x00\xf8?\n\x00\x86\xee\x8a=\x9ap\xe9\x7f',
         b'\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\xfb\xff\xe8\x03\n\x00\x9b\xd1\x17&S=\xaf\xb4',
         b'\x13\x01\x10\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x0100\x00\x00'
         b'\x00\x11\x00\x02\x01\x00\x01\x01\x01\x82f0\x03\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02'
         b'\x04\x01\x00\x01\x01\x01\xdf\xff\x02\x01\x01\x82f1\x03\x81w\x02\x06\x01\xff\x02\x04\x00'
         b'\x03\x01\x00\x00\x02\x01\x01g\x03\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00'
         b'\x00\x00\x00\x00\x01\xe8\x03\x00\x00\x00\x00\x00\x00\x01\x01\x01c\xe8\x03\x00\x00\x00\x00'
         b'\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\n\x00\x07'
         b'\x06\x04\xeb/\xe7\x0ba',
         b'\x13\x00\x00\x04\x00\x00\x00\x00\x00\x00\x01\x01g\x03\x01\x01\x02\x00\x00\x00\x00\x00\x00'
         b'\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\xe8\x03\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00'
         b'\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\xe8\x03\x00\x00\x00\x00\x00\x00\x01'
         b'\x01\x01c\xe8\x03\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00'
         b'\x00\x00\x00\x00\x01\n\x00A\xf0\xadY\xb7\xb2P\x01',
         b'\x02\x02\x01a\x01a\n\x00W\xbev/\xc2\xd6R:',
         b'c\x00\n\x00k\x89v\xbc*\xe5$\x98']


class Generator(pieces.Pieces, containers.Containers, streams.Streams, talk.Talk):
    def __init__(self, seed, names, tiny=False):
        """`names`: the commands to choose from, upper case; each must have a method here. `tiny`: lengths
        and offsets are such as matter to the build of tiny sizes."""
        self.tiny = tiny
        self.random = random.Random(seed)
        known = names & set(self.methods())
        known -= talk.LISTENING
        self.names = sorted(known)
        self.queued_names = sorted(known - NOT_QUEUED - ABOUT_CONNECTION)
        self.scripted_names = sorted(known - NOT_IN_SCRIPTS - BLOCKING)
        self.now_s = int(time.time())
        self.planned = []  # of a transaction that has begun
        self.watches = self.has_moved = False
        self.newest = 1  # of the IDs of streams, in milliseconds

    @classmethod
    def methods(cls):
        """Command names that have a generator: methods in upper case."""
        return {name for name in dir(cls) if name.isupper()}

    def next(self):
        if not self.planned and "EXEC" in self.names and self.chance(0.02):
            self.plan_transaction()
        words = self.planned.pop(0) if self.planned else self.single()
        while not self.keeps_watch(words):  # perhaps in a transaction: what may stand anywhere
            words = self.single(self.scripted_names)
        self.planned[:0] = self.consumers_after(words)
        return words

    def keeps_watch(self, words):
        """A watched key that one SWAPDB brings and the next one, or a flush, takes away again has
        changed for Redis alone (server/LIMITS.md): False for what comes second. So has one that is
        not there and is set with an expiry in the past: False, too."""
        name = words[0].upper()
        if self.watches and {word.upper() for word in words} & {b"EXAT", b"PXAT"}:
            return False
        if name in (b"UNWATCH", b"EXEC", b"DISCARD", b"RESET", b"QUIT"):
            self.watches = self.has_moved = False
        self.watches = self.watches or name == b"WATCH"
        moves = self.watches and {word.upper() for word in words} & {b"SWAPDB", b"FLUSHALL", b"FLUSHDB"}
        if moves and self.has_moved:
            return False
        self.has_moved = self.has_moved or bool(moves)
        return True

    def plan_transaction(self):
        """Nonsense aborts it, as anywhere: it is short, so that most are run."""
        watched = [b"WATCH"] + self.keys(3)
        if self.chance(0.5):
            between = [self.single() for _ in range(self.random.randrange(3))]
            # For stock Redis every watched key has changed after DEBUG RELOAD.
            self.planned += [watched] + [w for w in between if w[1:] != [b"RELOAD"]]
        self.planned.append([b"MULTI"])
        names = self.queued_names
        for _ in range(self.random.randrange(8)):
            self.planned.append(self.single(names))
            if self.ends_transaction(self.planned[-1]):
                names = None
        if self.chance(0.05):
            self.planned.append([b"MULTI"])
        self.planned.append([b"EXEC" if self.chance(0.9) else b"DISCARD"])

    @staticmethod
    def ends_transaction(words):
        """An EXEC with arguments aborts it, a DISCARD with some is only an error."""
        name = words[0].upper()
        return name == b"EXEC" or (name == b"DISCARD" and len(words) == 1)

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
        # Members of one score: by-lex ranges of others are unspecified.
        keeps_scores = any(word in (b"y0", b"y1") for word in words)
        if name not in AS_THEY_ARE and not keeps_scores and self.chance(0.04):
            words = self.spoiled(words)
        return self.single(names) if name in DRAWS and TOO_MANY_DRAWS in words else words

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
        if way == 3 and words[0].upper() in SHORT_LIVED:
            return words
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
        if self.tiny and self.chance(0.3):
            begin = self.boundary()
            return [self.key(), begin, begin + self.random.randrange(20000)]
        return [self.key(), self.integer(50), self.integer(50)]

    SUBSTR = GETRANGE

    def SETRANGE(self):
        return [self.key(), self.offset(6000), self.text() if self.chance(0.9) else b""]

    def offset(self, small):
        """Not so far out that the value would grow to hundreds of megabytes."""
        way = self.random.random()
        if self.tiny and way < 0.3:
            return self.boundary() * (8 if small > 6000 else 1)
        if way < 0.8:
            return self.random.randrange(small)
        if way < 0.9:
            return self.random.choice([-1, -2**63, 2**63 - 1, 2**32, 2**63, 2**32 + 1])
        return self.random.choice(pieces.NOT_NUMBERS)

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

    def field_value(self):
        """With OVERFLOW SAT, Redis sets a field to its largest value for the smallest integer."""
        value = self.integer(300)
        return value if str(value) not in ("-9223372036854775808", "-9223372036854775807") else -300

    def BITFIELD(self):
        words = [self.key()]
        for _ in range(self.random.randrange(5)):
            words += self.random.choice([
                lambda: ["GET", self.field_type(), self.field_offset()],
                lambda: ["SET", self.field_type(), self.field_offset(), self.field_value()],
                lambda: ["INCRBY", self.field_type(), self.field_offset(), self.integer(300)],
                lambda: ["OVERFLOW", self.random.choice(["WRAP", "SAT", "FAIL", "sat", "NO"])],
            ])()
        return words

    def BITFIELD_RO(self):
        words = [self.key()]
        for _ in range(self.random.randrange(4)):
            words += ["GET", self.field_type(), self.field_offset()]
        return words + (["SET", "u8", 0, 1] if self.chance(0.05) else [])

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
        return [self.random.choice(pieces.PATTERNS)]

    def SCAN(self):
        cursor = self.random.choice([b"0", b"0", b"0", b"x", b"-1", b""])
        choices = [["MATCH", self.random.choice(pieces.PATTERNS)], ["COUNT", self.integer(50)],
                   ["TYPE", self.random.choice(["string", "hash", "STRING"])], ["NOSUCH"]]
        return [cursor] + self.options(choices, 2)

    def RANDOMKEY(self):
        return []

    DBSIZE = RANDOMKEY

    def OBJECT(self):
        return [self.random.choice(["ENCODING", "encoding", "REFCOUNT", "IDLETIME", "FREQ", "X"]),
                self.key()]

    # ---- dump ----

    def DUMP(self):
        return [self.key()]

    def RESTORE(self):
        """Of each type one, and three that are broken."""
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
