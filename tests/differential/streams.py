"""Random commands on streams. IDs that the clock gives (`*`) would differ between two servers, and so would
what `~` leaves behind: stock Redis removes whole nodes, whose sizes depend on what was deleted."""

LAST = b"18446744073709551615-18446744073709551615"
EDGES = [b"0", b"0-0", b"0-1", b"-", b"+", b"18446744073709551615", b"18446744073709551615-0", LAST,
         b"18446744073709551616", b"1-", b"-1", b"1-1-1", b"1--1", b"", b"x", b"1-x", b"01-02",
         b" 1", b"1-*", b"*", b"$", b">", b"(", b"(1", b"1-+5"]


class Streams:
    def stream(self):
        return b"r%d" % self.random.randrange(4) if self.chance(0.92) else self.key()

    def some_id(self):
        """Mostly one that there may be."""
        if self.chance(0.06):
            return self.random.choice(EDGES)
        ms = self.random.randrange(max(1, self.newest - 40), self.newest + 3)
        return b"%d" % ms if self.chance(0.3) else b"%d-%d" % (ms, self.random.randrange(3))

    def new_id(self):
        if self.chance(0.04):
            return self.some_id()
        if self.chance(0.6):
            self.newest += 1
        return self.random.choice([b"%d-%d" % (self.newest, self.random.randrange(6)), b"%d-*" % self.newest,
                                   b"%d" % self.newest])

    def fields(self):
        if self.chance(0.03):
            return [w for i in range(self.random.randrange(300)) for w in (b"f%d" % i, i)]
        words = [w for _ in range(self.random.randrange(1, 4))
                 for w in (b"f%d" % self.random.randrange(4), self.value())]
        return words[1:] if self.chance(0.02) else words

    def trim(self):
        way = self.random.random()
        if way < 0.1:
            return self.options([["MAXLEN", "~", 1000000], ["MINID", "~", 0], ["LIMIT", self.integer()],
                                 ["MAXLEN", 20], ["LIMIT", 0]], 3)
        if way < 0.6:
            return ["MAXLEN"] + self.option("=") + [self.integer(60)]
        return ["MINID"] + self.option("=") + [self.some_id()]

    def XADD(self):
        options = (self.trim() if self.chance(0.1) else []) + (["NOMKSTREAM"] if self.chance(0.1) else [])
        identity = self.new_id()
        return [self.stream()] + options + [b"9" if identity == b"*" else identity] + self.fields()

    def XLEN(self):
        return [self.stream()]

    def XDEL(self):
        return [self.stream()] + [self.some_id() for _ in range(self.random.randrange(1, 4))]

    def XTRIM(self):
        return [self.stream()] + self.trim()

    def XSETID(self):
        """To no ID below that of a deleted entry: 7.0 allows it, 7.2 does not."""
        self.newest += 1
        words = [self.stream(), b"%d-%d" % (self.newest, self.random.randrange(3))]
        return words + self.options([["ENTRIESADDED", self.integer(100)], ["MAXDELETEDID", self.some_id()]], 2)

    def bound(self):
        bound = self.random.choice([b"-", b"+"]) if self.chance(0.3) else self.some_id()
        return b"(" + bound if self.chance(0.2) else bound

    def XRANGE(self):
        return [self.stream(), self.bound(), self.bound()] + self.option("COUNT", self.integer())

    XREVRANGE = XRANGE

    def XREAD(self):
        count = self.random.randrange(1, 4)
        ids = [self.some_id() for _ in range(count)]
        ids = [b"1" if identity == b"+" else identity for identity in ids]  # of 7.4
        options = self.options([["COUNT", self.integer()], ["BLOCK", 1]], 2)
        return options + ["STREAMS"] + [self.stream() for _ in range(count)] + ids

    # ---- groups ----

    def group(self):
        return b"g%d" % self.random.randrange(2) if self.chance(0.95) else self.value()

    def consumer(self):
        """One that there is: 7.2 makes one in more cases than 7.0 does."""
        return b"c%d" % self.random.randrange(3)

    @staticmethod
    def consumers_after(words):
        """What makes them again behind a command that leaves a group without."""
        names = [word.upper() for word in words]
        if b"XGROUP" not in names:
            return []
        way, key, group = (words[names.index(b"XGROUP") + 1:] + [b""] * 3)[:3]
        if way.upper() not in (b"CREATE", b"DELCONSUMER"):
            return []
        return [[b"XGROUP", b"CREATECONSUMER", key, group, b"c%d" % i] for i in range(3)]

    def XGROUP(self):
        way, key, group = self.random.random(), self.stream(), self.group()
        if way < 0.6:
            start = self.random.choice([b"$", b"0", self.some_id()])
            return ["CREATE", key, group, start] + self.options([["MKSTREAM"], ["ENTRIESREAD", self.integer()]], 2)
        if way < 0.75:
            return ["SETID", key, group, self.some_id()] + self.option("ENTRIESREAD", self.integer())
        if way < 0.85:
            return ["DELCONSUMER", key, group, self.consumer()]
        if way < 0.95:
            return ["DESTROY", key, group]
        return ["CREATECONSUMER", key, group, self.consumer()]

    def XREADGROUP(self):
        count = self.random.randrange(1, 3)
        options = self.options([["COUNT", self.integer()], ["NOACK"], ["BLOCK", 1]], 2)
        ids = [b">" if self.chance(0.7) else self.some_id() for _ in range(count)]
        # Behind the last one stock Redis begins again with the first.
        ids = [b"1" if identity == LAST else identity for identity in ids]
        return ["GROUP", self.group(), self.consumer()] + options + ["STREAMS"] + [
            self.stream() for _ in range(count)] + ids

    def XACK(self):
        return [self.stream(), self.group()] + [self.some_id() for _ in range(self.random.randrange(1, 5))]

    def XPENDING(self):
        words = [self.stream(), self.group()]
        if self.chance(0.4):
            return words
        return words + self.option("IDLE", self.random.choice([0, 10**9])) + [
            self.bound(), self.bound(), self.integer()] + self.option(self.consumer())

    def XCLAIM(self):
        options = [["FORCE"], ["JUSTID"], ["IDLE", self.integer()], ["RETRYCOUNT", self.integer()],
                   ["LASTID", self.some_id()]]
        return [self.stream(), self.group(), self.consumer(), self.random.choice([0, 10**9])] + [
            self.some_id() for _ in range(self.random.randrange(1, 4))] + self.options(options, 2)

    def XAUTOCLAIM(self):
        return [self.stream(), self.group(), self.consumer(), self.random.choice([0, 10**9]),
                self.bound()] + self.options([["COUNT", self.random.randrange(-1, 20)], ["JUSTID"]], 2)

    def XINFO(self):
        kind = self.random.choice(["STREAM", "GROUPS", "CONSUMERS"])
        if kind == "CONSUMERS":
            return [kind, self.stream(), self.group()]
        full = ["FULL"] + self.option("COUNT", self.integer()) if self.chance(0.6) else []
        return [kind, self.stream()] + (full if kind == "STREAM" else [])
