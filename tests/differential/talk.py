"""The generator's commands that are about no type of values: scripts, messages, the connection, the
server."""

import hashlib

# They are for a connection of their own: see `listening`.
LISTENING = {"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"}

# That is loaded when a seed begins.
SCRIPT = "return redis.call(unpack(ARGV))"
SCRIPT_SHA = hashlib.sha1(SCRIPT.encode()).hexdigest()

# Likewise, a library.
LIBRARY = """#!lua name=talk
redis.register_function('do', function(keys, args) return redis.call(unpack(args)) end)
redis.register_function('try', function(keys, args) return redis.pcall(unpack(args)) end)
redis.register_function{function_name='read', flags={'no-writes'}, description='reads',
                        callback=function(keys, args) return redis.call(unpack(args)) end}"""
# Of the libraries a and b, as FUNCTION DUMP gives it, without its checksum and with it.
PAYLOAD = (b"\xf5@D#!lua name=b\nredis.register_function('fb',function() return 'b' end)"
           b"\xf5@D#!lua name=a\nredis.register_function('fa',function() return 'a' end)\n\x00")
PAYLOAD_SUM = b"\n\xb19v\x12\x01\xd6I"

CHANNELS = [b"c1", b"c2", b"c3", b"d1", b"", b"\x00c"]

# Options that shape what OBJECT ENCODING says, as a seed finds them; and others that take a value
# here and there.
SETTINGS = {"hash-max-listpack-entries": 512, "hash-max-listpack-value": 64,
            "zset-max-listpack-entries": 128, "zset-max-listpack-value": 64,
            "set-max-intset-entries": 512, "hll-sparse-max-bytes": 3000,
            "notify-keyspace-events": "AKE"}
OTHER_SETTINGS = ["hash-max-ziplist-entries", "maxmemory-policy", "appendfsync", "port", "nosuch",
                  "timeout", "lazyfree-lazy-user-del", "databases"]


class Talk:
    """What Generator is, besides."""

    # ---- scripts ----

    def EVAL(self):
        """Another command, by a script that is given it."""
        call = self.random.choice(["call", "call", "call", "pcall"])
        return [f"return redis.{call}(unpack(ARGV))", 0] + self.single(self.scripted_names)

    EVAL_RO = EVAL

    def EVALSHA(self):
        sha = SCRIPT_SHA if self.chance(0.9) else self.random.choice([b"0" * 40, b"", b"x" * 41])
        return [sha, 0] + self.single(self.scripted_names)

    EVALSHA_RO = EVALSHA

    def SCRIPT(self):
        return self.random.choice([
            ["LOAD", SCRIPT], ["LOAD", "return 1"], ["LOAD", "return"], ["LOAD", "x="],
            ["EXISTS", SCRIPT_SHA], ["EXISTS", "0" * 40, SCRIPT_SHA.upper(), "x"], ["KILL"],
            ["FLUSH", "NOW"], ["FLUSH", "SYNC", "ASYNC"], ["X"],
            ["EXISTS"], ["LOAD"], ["LOAD", SCRIPT, "x"]])

    # ---- functions ----

    def FCALL(self):
        """Another command, by a function that is given it."""
        name = self.random.choice(["do", "do", "DO", "try", "read", "read", "nosuch", "fa", "fb"])
        return [name, 0] + self.single(self.scripted_names)

    FCALL_RO = FCALL

    def library(self):
        """One of a few, whose function may be another one's, too."""
        name, other = self.random.choice("abc"), self.random.choice("abc")
        function = f"redis.register_function('f{name if self.chance(0.8) else other}',"
        return f"#!lua name={name}\n" + function + f"function() return '{other}' end)"

    def FUNCTION(self):
        return self.random.choice([
            ["LOAD", self.library()], ["LOAD", self.library()], ["LOAD", "REPLACE", self.library()],
            ["LOAD", "REPLACE", LIBRARY], ["LOAD", "REPLACE", LIBRARY], ["LOAD", LIBRARY], ["LOAD", "return 1"],
            ["LOAD", "#!lua name=a\nreturn"], ["LOAD", "NOW", self.library()], ["LOAD"],
            ["DELETE", self.random.choice("abcd")], ["DELETE"], ["FLUSH", "NOW"], ["FLUSH", "SYNC", "ASYNC"],
            ["FLUSH"] if self.chance(0.2) else ["KILL"], ["LIST"], ["LIST", "WITHCODE"],
            ["LIST", "LIBRARYNAME", self.random.choice(["a", "[ab]", "*", "T*", ""])], ["LIST", "x"], ["STATS"],
            ["DUMP"], ["RESTORE", PAYLOAD + PAYLOAD_SUM, self.random.choice(["APPEND", "REPLACE", "FLUSH", "x"])],
            ["RESTORE", PAYLOAD], ["RESTORE", PAYLOAD + PAYLOAD_SUM], ["X"]])

    # ---- messages ----

    def channel(self):
        return self.random.choice(CHANNELS)

    def PUBLISH(self):
        return [self.channel(), self.value()]

    SPUBLISH = PUBLISH

    def PUBSUB(self):
        some = [self.channel() for _ in range(self.random.randrange(3))]
        return self.random.choice([
            ["CHANNELS"], ["CHANNELS", self.pattern()], ["NUMPAT"], ["NUMSUB"] + some,
            ["SHARDCHANNELS"], ["SHARDCHANNELS", self.pattern()], ["SHARDNUMSUB"] + some, ["X"],
            ["NUMPAT", "x"], ["CHANNELS", "a", "b"]])

    def pattern(self):
        return self.random.choice([b"c*", b"*", b"c?", b"[cd]1", b"c1", b"", b"__key*__:*"])

    def SUBSCRIBE(self):
        return [self.channel() for _ in range(self.random.randrange(4))]

    SSUBSCRIBE = UNSUBSCRIBE = SUNSUBSCRIBE = SUBSCRIBE

    def PSUBSCRIBE(self):
        return [self.pattern() for _ in range(self.random.randrange(4))]

    PUNSUBSCRIBE = PSUBSCRIBE

    def listening(self):
        """What a connection that hears messages sends."""
        name = self.random.choice(sorted(LISTENING))
        words = [name] + getattr(self, name)()
        return [w if isinstance(w, bytes) else str(w).encode() for w in words]

    # ---- connection and server ----

    def CLIENT(self):
        return self.random.choice([
            ["GETNAME"], ["SETNAME", self.random.choice([b"", b"me", b"a b", b"a\nb", b"\xff"])],
            ["ID"], ["INFO"], ["LIST"], ["LIST", "TYPE", self.random.choice(["normal", "x", "pubsub"])],
            ["LIST", "ID", self.random.choice([0, -1, b"x"])], ["LIST", "X"], ["LIST", "TYPE"],
            ["KILL", "1.2.3.4:5"], ["KILL", "ADDR", "1.2.3.4:5"], ["KILL", "ID", 10**9],
            ["KILL", "ID", self.random.choice([0, -1, b"x"])], ["KILL", "TYPE", "x"],
            ["KILL", "SKIPME", "x"], ["KILL", "USER", "nosuch"], ["KILL", "X", "y"], ["KILL", "ID"],
            ["KILL", "TYPE", "normal", "SKIPME", "yes", "ID", 10**9],
            ["NO-EVICT", self.random.choice(["on", "off", "x"])], ["REPLY", "ON"], ["REPLY", "X"],
            ["UNBLOCK", self.random.choice([10**9, -1, b"x"])], ["UNBLOCK", 10**9, "TIMEOUT"],
            ["UNBLOCK", 10**9, "X"], ["X"], ["GETNAME", "x"], ["SETNAME"]])

    def CONFIG(self):
        name = self.random.choice(sorted(SETTINGS))
        return self.random.choice([
            lambda: ["GET", name], lambda: ["GET", "hash-max-listpack-*", name], lambda: ["GET"],
            lambda: ["SET", name, self.random.choice([0, 1, 10, 64, 512, -1, b"x", b"1k", 2**40])],
            lambda: ["SET", name, 5, name, 6], lambda: ["SET", name], lambda: ["SET", "nosuch", 1],
            lambda: ["SET", self.random.choice(OTHER_SETTINGS), self.random.choice([b"x", b"-1"])],
            lambda: ["SET", name, 7, "nosuch", 1], lambda: ["RESETSTAT"], lambda: ["REWRITE"],
            lambda: ["GET", "nosuch"], lambda: ["X"]])()

    def COMMAND(self):
        other = self.single(self.scripted_names)
        if len(other) == 1:  # 7.2 takes it in a transaction, 7.0 does not
            other = other + ["x"]
        return self.random.choice([
            ["GETKEYS"] + other, ["GETKEYS"] + other, ["GETKEYSANDFLAGS"] + other, ["GETKEYS"],
            ["COUNT"], ["INFO", "get"], ["INFO", "nosuch"], ["LIST", "FILTERBY", "PATTERN", "zrangeby*"],
            ["LIST", "X"], ["DOCS", "nosuch"], ["DOCS", "get"], ["X"], ["COUNT", "x"],
            ["GETKEYS", "nosuch", "a"], ["GETKEYS", "EVAL", "", 1, "a"], ["GETKEYS", "EVAL", "", 9, "a"]])

    def DEBUG(self):
        # `push` and `attrib` are followed by another reply.
        types = ["string", "integer", "double", "null", "array", "set", "map", "verbatim", "true",
                 "false", "bignum", "x"]
        if self.chance(0.02):
            self.planned.insert(0, [b"UNWATCH"])  # see plan_transaction
            return ["RELOAD"]
        return self.random.choice([
            ["OBJECT", self.key()], ["PROTOCOL", self.random.choice(types)], ["SLEEP", 0], ["X"],
            ["DIGEST"], ["DIGEST-VALUE", self.key(), self.key()], ["SET-ACTIVE-EXPIRE", 1],
            ["OBJECT"], ["PROTOCOL"]])

    def INFO(self):
        return self.random.choice([[], ["server"], ["all"], ["keyspace", "cpu"], ["nosuch"]])

    def MEMORY(self):
        return self.random.choice([
            ["USAGE", self.key()], ["USAGE", self.key(), "SAMPLES", self.integer()],
            ["USAGE", self.key(), "X"], ["USAGE"], ["X"]])

    def SLOWLOG(self):
        return self.random.choice([
            ["GET"], ["GET", self.random.choice([-2, -1, 0, 1, 100, b"x"])], ["GET", 1, 2], ["LEN"],
            ["LEN", "x"], ["RESET"], ["X"]])

    def LATENCY(self):
        return self.random.choice([
            ["LATEST"], ["HISTORY", "command"], ["HISTORY"], ["GRAPH", "command"], ["RESET"],
            ["RESET", "command", "x"], ["HISTOGRAM", "get", "x"], ["DOCTOR"], ["LATEST", "x"], ["X"]])

    def TIME(self):
        return []

    LOLWUT = ROLE = ASKING = READONLY = READWRITE = TIME

    def CLUSTER(self):
        return self.random.choice([["INFO"], ["NODES"], ["SLOTS"], ["KEYSLOT", "a"], []])

    def MODULE(self):
        return self.random.choice([["LIST"], ["LIST", "x"], ["X"], []])

    def SHUTDOWN(self):
        return self.random.choice([["X"], ["SAVE", "NOSAVE"], ["ABORT"], ["ABORT", "NOW"]])

    def AUTH(self):
        return self.random.choice([["x"], ["nosuch", "x"], ["a", "b", "c"]])

    def HELLO(self):
        return self.random.choice([[], [2], [3], [1], [4], [b"x"], [3, "SETNAME", "me"],
                                   [3, "SETNAME", "a b"], [3, "AUTH", "nosuch", "x"], [3, "X"],
                                   [2, "AUTH", "x"]])

    def RESET(self):
        return []
