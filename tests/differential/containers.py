"""The generator's commands on lists, sorted sets, hashes and sets."""

import pieces


class Containers:
    """What Generator is, besides."""

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
        return self.random.choice(pieces.FLOATS)

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
        choices = [["MATCH", self.random.choice(pieces.PATTERNS)], ["COUNT", self.integer(50)]]
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

    # ---- geo ----

    def geo(self):
        return self.own_key(b"g") if self.chance(0.95) else self.zset()

    def geo_target(self):
        """Mostly a key that is only stored to."""
        return b"gt%d" % self.random.randrange(3) if self.chance(0.85) else self.geo()

    def longitude(self):
        way = self.random.random()
        if way < 0.5:
            return b"%.6f" % self.random.uniform(-180, 180)
        if way < 0.7:
            return b"%.9f" % (self.random.choice([-180, 180, 0, 90]) * (1 - 1e-4 * self.random.random()))
        if way < 0.98:
            return b"%.3f" % self.random.uniform(-12, 12)
        return self.random.choice([b"180", b"-180", b"0", b"-0", b"180.1", b"90", b"45", *pieces.FLOATS])

    def latitude(self):
        way = self.random.random()
        if way < 0.5:
            return b"%.6f" % self.random.uniform(-85, 85)
        if way < 0.7:
            return b"%.9f" % (self.random.choice([-1, 1]) * self.random.uniform(84.9, 85.0511287))
        if way < 0.98:
            return b"%.3f" % self.random.uniform(-12, 12)
        return self.random.choice([b"85.05112878", b"-85.05112878", b"0", b"85.06", b"66", b"-80", b"90",
                                   *pieces.FLOATS])

    def located(self, most):
        return [word for _ in range(self.random.randrange(1, most + 1))
                for word in (self.longitude(), self.latitude(), b"p%d" % self.random.randrange(150))]

    def GEOADD(self):
        choices = [["NX"], ["XX"], ["CH"]]
        options = self.options(choices, 2) if self.chance(0.3) else []
        return [self.geo()] + options + self.located(80 if self.chance(0.3) else 4)

    def place(self):
        return b"p%d" % self.random.randrange(150) if self.chance(0.95) else self.ranked()

    def GEOPOS(self):
        return [self.geo()] + [self.place() for _ in range(self.random.randrange(4))]

    GEOHASH = GEOPOS

    def length(self):
        way = self.random.random()
        if way < 0.4:
            return b"%.3f" % (10 ** self.random.uniform(-1, 4.3))
        if way < 0.95:
            return self.random.choice([0, 1, 50, 300, 1000, 2000, 5000, 7000, 10018, 10019, 20000, 20037,
                                       20038, 40000, 10**7])
        return self.random.choice(pieces.FLOATS)

    def unit(self):
        return self.random.choice(["km", "km", "km", "km", "mi", "m", "ft", "KM", "yd"])

    def GEODIST(self):
        return [self.geo(), self.place(), self.place()] + self.option(self.unit())

    def geo_options(self, stores):
        """COUNT cuts equal distances somewhere: it comes with what shows them, or stores all."""
        words = self.options([["ASC"], ["DESC"]], 1)
        if self.chance(0.4):
            words += ["COUNT", self.random.randrange(1, 20), "ANY"]
        elif self.chance(0.6):
            words += ["COUNT", self.integer(30) if not stores else 1000] + ([] if stores else ["WITHDIST"])
        elif self.chance(0.02):
            words += ["ANY"]
        if not stores or self.chance(0.02):
            words += self.options([["WITHCOORD"], ["WITHHASH"], ["WITHDIST"]], 3)
        return words

    def geo_shape(self):
        center = (["FROMLONLAT", self.longitude(), self.latitude()] if self.chance(0.6) else
                  ["FROMMEMBER", self.place()])
        shape = (["BYRADIUS", self.length(), self.unit()] if self.chance(0.5) else
                 ["BYBOX", self.length(), self.length(), self.unit()])
        return center + shape

    def GEOSEARCH(self):
        return [self.geo()] + self.geo_shape() + self.geo_options(False)

    def GEOSEARCHSTORE(self):
        return [self.geo_target(), self.geo()] + self.geo_shape() + self.geo_options(True) + self.option("STOREDIST")

    def circle(self, center, may_store):
        words = [self.geo()] + center + [self.length(), self.unit()]
        if not may_store or self.chance(0.5):
            return words + self.geo_options(False)
        return words + self.geo_options(True) + self.random.choice(
            [["STORE", self.geo_target()], ["STOREDIST", self.geo_target()],
             ["STORE", self.geo(), "STOREDIST", self.geo_target()]])

    def GEORADIUS(self):
        return self.circle([self.longitude(), self.latitude()], True)

    def GEORADIUS_RO(self):
        return self.circle([self.longitude(), self.latitude()], False)

    def GEORADIUSBYMEMBER(self):
        return self.circle([self.place()], True)

    def GEORADIUSBYMEMBER_RO(self):
        return self.circle([self.place()], False)

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
            return b"%d" % self.random.choice(pieces.EDGES)
        if way < 0.8:
            return self.random.choice(pieces.NOT_NUMBERS)
        return self.random.choice([b"", b"a", b"b", b"c", b"a\r\nb", b"x" * 64, b"x" * 65, b"y" * 900])

    def members(self, most=6):
        return [self.member() for _ in range(self.random.randrange(1, most + 1))]

    def hash(self):
        return self.own_key(b"h")

    def short_field(self):
        return b"field:%d:" % self.random.randrange(120) + b"f" * 30

    def HSET(self):
        if self.chance(0.15):  # many, but all of them short: a listpack, and a tree
            pairs = [(self.short_field(), b"v" * self.random.randrange(64)) for _ in range(30)]
            return [b"listpack"] + [word for pair in pairs for word in pair]
        return [self.hash()] + [w for m in self.members() for w in (m, self.value())]

    HMSET = HSET

    def HSETNX(self):
        return [self.hash(), self.member(), self.value()]

    def HGET(self):
        return [self.hash(), self.member()]

    HEXISTS = HSTRLEN = HGET

    def HMGET(self):
        return [self.hash()] + self.members()

    def HDEL(self):
        if self.chance(0.15):
            return [b"listpack"] + [self.short_field() for _ in range(5)]
        return self.HMGET()

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
        return [cursor] + self.options([["MATCH", self.random.choice(pieces.PATTERNS)],
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
            scale = self.random.choice([1, 10**16 // 3])  # of which a few are much to keep
            return [self.set()] + [i * scale for i in range(self.random.randrange(600))]
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
