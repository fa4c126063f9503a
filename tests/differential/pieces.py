"""What the generator's commands are made of: keys, numbers, texts; mostly sensible, often at an edge."""

EDGES = [0, 1, -1, 2, 7, 8, 63, 64, 255, 256, 2**31 - 1, 2**31, -2**31, 2**32 - 1, 2**32, 2**53,
         2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64]
NOT_NUMBERS = [b"", b" 1", b"1 ", b"+1", b"01", b"-0", b"1.5", b"abc", b"0x10", b"1e3", b"nan",
               b"inf", b"99999999999999999999999"]
FLOATS = [b"0", b"1", b"-1", b"0.1", b"3.0e3", b"-2.5e-7", b"1e17", b"1e308", b"-1e308", b"5e-324",
          b"inf", b"-inf", b"nan", b"1.", b".5", b"0x1p3", b" 1", b"1 ", b"", b"12345678.87654321",
          b"9223372036854775807", b"1e400", b"3.0000000000000001"]
PATTERNS = [b"*", b"k*", b"k?", b"k[0-5]", b"k[^0-5]", b"*1*", b"k\\1", b"{*", b"", b"[", b"k[1",
            b"k[5-0]", b"**a**", b"k1"]
TINY_SIZES = [600, 8192, 4 * 8192, 16 * 8192]


class Pieces:
    """What Generator chooses by."""

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

    def boundary(self):
        """Bytes about as many as an item, some extents, a root's and some nodes' have in the build of tiny
        sizes, where all of that is within a few pages (storage/sizes.h)."""
        return max(0, self.random.choice(TINY_SIZES) * self.random.randrange(1, 5) +
                   self.random.randrange(-2, 3))

    def text(self):
        if self.tiny and self.chance(0.15):
            return bytes(self.random.choices(b"ab\x00", k=min(self.boundary(), 150000)))
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
