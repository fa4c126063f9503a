"""Where the two servers may answer differently, each with its reason; everything else is compared
byte for byte. Debian's Redis is 7.0.15, ours keeps the rules of 7.2."""

import re

# Of a second each; the two servers do not run a command in the same moment.
TIME_UNITS = {b"TTL": 1, b"EXPIRETIME": 1, b"PTTL": 1000, b"PEXPIRETIME": 1000}


def integer(reply):
    return int(reply[1:-2]) if reply[:1] == b":" else None


def elements(reply):
    """The bulk strings of a flat array or set."""
    parts = re.split(rb"\r\n", reply, maxsplit=1)
    rest, found = parts[1], []
    while rest:
        head, rest = rest.split(b"\r\n", 1)
        if head[:1] != b"$":
            return None
        size = int(head[1:])
        found.append(rest[:size])
        rest = rest[size + 2:]
    return found


def replies(array):
    """The replies that an array holds, each with its own bytes."""
    head, _, rest = array.partition(b"\r\n")
    found, start, at = [], 0, 0
    for _ in range(int(head[1:]) * (2 if head[:1] == b"%" else 1)):
        pending = 1
        while pending:
            end = rest.index(b"\r\n", at)
            kind, size = rest[at:at + 1], rest[at + 1:end]
            at = end + 2
            pending -= 1
            if kind in b"$=" and size != b"-1":
                at += int(size) + 2
            elif kind in b"*~%" and size != b"-1":
                pending += int(size) * (2 if kind == b"%" else 1)
        found.append(rest[start:at])
        start = at
    return found


def is_error(reply):
    return reply[:1] == b"-"


def same_time(name, stock, ours, apart_s):
    a, b = integer(stock), integer(ours)
    if a is None or b is None or a < 0 or b < 0:
        return False
    return abs(a - b) <= 1 + apart_s * TIME_UNITS[name]


def same_keys(_words, stock, ours):
    """KEYS: in no particular order."""
    if stock[:1] != b"*" or ours[:1] != b"*":
        return False
    return sorted(elements(stock)) == sorted(elements(ours))


def same_members(_words, stock, ours):
    """The elements of a set, of a hash's keys or values: in no particular order in a hash table. What is
    none on either side is compared with every look at the keyspace."""
    if stock[:1] not in (b"*", b"~") or stock[:1] != ours[:1]:
        return False
    return sorted(elements(stock)) == sorted(elements(ours))


def same_pairs(_words, stock, ours):
    """HGETALL, likewise."""
    if stock[:1] not in (b"*", b"%") or stock[:1] != ours[:1]:
        return False
    a, b = elements(stock), elements(ours)
    return sorted(zip(a[::2], a[1::2])) == sorted(zip(b[::2], b[1::2]))


def both_pick(words, stock, ours):
    """HRANDFIELD, SRANDMEMBER: as many, by chance; all of them if there are fewer than asked for."""
    if len(words) == 2:
        return both_some_key(words, stock, ours)
    if stock[:1] not in (b"*", b"~") or stock.split(b"\r\n")[0] != ours.split(b"\r\n")[0]:
        return False
    a, b = replies(stock), replies(ours)
    is_whole = len(words) == 3 and int(words[2]) > len(a)
    return not is_whole or sorted(a) == sorted(b)


def both_scan(_words, stock, ours):
    """SCAN: cursors and the order are each server's own; the whole walk is compared elsewhere."""
    return stock.startswith(b"*2\r\n$") and ours.startswith(b"*2\r\n$")


def both_some_key(_words, stock, ours):
    """RANDOMKEY."""
    return stock[:1] == b"$" and ours[:1] == b"$" and stock != b"$-1\r\n" != ours


STRINGS = (b"$3\r\nint\r\n", b"$6\r\nembstr\r\n", b"$3\r\nraw\r\n")
LISTPACK, HASHTABLE = b"$8\r\nlistpack\r\n", b"$9\r\nhashtable\r\n"
SKIPLIST = b"$8\r\nskiplist\r\n"


def same_object(words, stock, ours):
    """OBJECT: all lists of stock Redis are quicklists; it shares small integers; its idle time is a
    clock's."""
    what = words[1].upper() if len(words) > 1 else b""
    if what == b"ENCODING":
        if stock in (LISTPACK, HASHTABLE):
            # 7.2 keeps small sets that are not all integers as listpacks, and a hash whose fields
            # are named more often than it may have them as a table at once.
            return ours in (LISTPACK, HASHTABLE)
        if stock == b"$9\r\nquicklist\r\n":
            return ours == LISTPACK
        if stock == SKIPLIST:
            # Stock Redis converts a sorted set that SORT reads, and its later copies; ours only reads.
            return ours == LISTPACK
        # What INCRBYFLOAT or APPEND has written; DEBUG RELOAD has stock Redis encode it anew.
        return stock in STRINGS and ours in STRINGS
    if what == b"REFCOUNT":
        return integer(stock) is not None and integer(ours) is not None
    if what == b"IDLETIME":
        # Stock Redis forgets at DEBUG RELOAD what RESTORE said of it; the limits differ.
        return stock[:1] == ours[:1] == b":"
    return False


def same_count(_words, stock, ours):
    """DBSIZE: keys that were given an expiry in the past, or have just expired, count until they
    are met."""
    a, b = integer(stock), integer(ours)
    return a is not None and b is not None and abs(a - b) <= 3


def without_place(error):
    """Not with the script and the line where it was met."""
    return re.sub(rb" script: .*\r\n", b"\r\n", error)


SYNTAX = b"-ERR syntax error\r\n"
OF_BITS = (SYNTAX, b"-ERR value is not an integer or out of range\r\n",
           b"-ERR The bit argument must be 1 or 0.\r\n")


def bits_of_nothing(words, stock, ours):
    """BITCOUNT and BITPOS of a missing key, or of no string: 7.2 looks at the other arguments before
    it answers."""
    of_nothing = stock in (b":0\r\n", b":-1\r\n") or stock.startswith(b"-WRONGTYPE")
    return of_nothing and without_place(ours) in OF_BITS


def least_rank(words, _stock, ours):
    """LPOS: 7.2 has no RANK that could not be negated."""
    return b"-9223372036854775808" in words and is_error(ours)


def ranked_with_score(words, stock, ours):
    """ZRANK, ZREVRANK: 7.2 has an option."""
    if len(words) != 4 or not is_error(stock):
        return False
    if words[3].upper() != b"WITHSCORE":
        return without_place(ours) == SYNTAX
    return ours[:1] in (b"*", b"_") or ours == b"$-1\r\n" or ours.startswith(b"-WRONGTYPE")


def far_timeout(name, stock, ours):
    """BLPOP and its kin: 7.2 sees that a timeout in milliseconds is too large, 7.0 takes what is
    left of it."""
    return (name in BLOCKING and stock == b"-ERR timeout is negative\r\n" and
            ours == b"-ERR timeout is out of range\r\n")


LENGTH = re.compile(rb"\$-?\d+")


def number(text):
    try:
        return float(text.lstrip(b","))
    except ValueError:
        return None


def same_scores(_words, stock, ours):
    """Of sorted sets: 7.2 prints a score with as many digits as it needs, not with 17."""
    a, b = stock.split(b"\r\n"), ours.split(b"\r\n")
    a, b = ([line for line in lines if not LENGTH.fullmatch(line)] for lines in (a, b))
    return len(a) == len(b) and all(
        x == y or (number(x) is not None and number(x) == number(y)) for x, y in zip(a, b))


def both_dump(_words, stock, ours):
    """DUMP: each in a form of its own; what the other restores of it is compared elsewhere."""
    return stock[:1] == b"$" == ours[:1] and stock != b"$-1\r\n" != ours


def same_to_strcoll(stock, ours):
    """To Redis, what differs behind a zero byte alone is equal; here the whole elements are compared."""
    def seen(element):
        return element.partition(b"\r\n")[2].rstrip(b"\r\n").partition(b"\0")[0]
    return sorted(stock) == sorted(ours) and list(map(seen, stock)) == list(map(seen, ours))


def sort_patterns(words):
    """Of SORT: the patterns of BY, and whether it is by bytes."""
    arguments = {b"BY": 1, b"GET": 1, b"STORE": 1, b"LIMIT": 2}
    patterns, alpha, at = [], False, 2
    while at < len(words):
        option = words[at].upper()
        alpha |= option == b"ALPHA"
        patterns += words[at + 1:at + 2] if option == b"BY" else []
        at += 1 + arguments.get(option, 0)
    return patterns, alpha


def same_sorted(words, stock, ours):
    """SORT: the members of a set that are not sorted, and what has the same weight by bytes, come in any
    order; equal numbers are sorted by their elements. 7.0 has not cleared errno when it reads a number, and
    may refuse any."""
    if stock.startswith(b"-ERR One or more scores"):
        return not is_error(ours)
    if stock[:1] != b"*" or ours[:1] != b"*":
        return False
    if same_to_strcoll(replies(stock), replies(ours)):
        return True
    patterns, alpha = sort_patterns(words)
    is_sorted = all(b"*" in pattern.partition(b"\0")[0] for pattern in patterns)
    # No command makes a set of a key with such a name.
    may_be_set = words[1][:1] not in (b"l", b"z")
    if not patterns or not (alpha if is_sorted else may_be_set):
        return False
    limited = b"LIMIT" in [word.upper() for word in words]
    return stock.split(b"\r\n")[0] == ours.split(b"\r\n")[0] if limited else (
        sorted(replies(stock)) == sorted(replies(ours)))


def same_nearest(words, stock, ours):
    """Geo searches with COUNT: Redis sorts only in part then, and which of those at equal distances come
    first is by chance."""
    options = {word.upper() for word in words}
    if b"COUNT" not in options or b"ANY" in options or stock[:1] != b"*" or ours[:1] != b"*":
        return False
    a, b = replies(stock), replies(ours)
    if b"WITHDIST" not in options:
        return len(a) == len(b)
    return [replies(result)[1] for result in a] == [replies(result)[1] for result in b]


def same_kind(_words, stock, ours):
    """Replies that describe the server itself: a bulk string, a map, a number of its own."""
    kinds = (b"*%", b"$=", b":,", b"+")
    return any(stock[:1] in kind and ours[:1] in kind for kind in kinds)


# Of commands with subcommands, those that tell of the server itself.
OF_ITS_OWN = {b"CLIENT": (b"ID", b"INFO", b"LIST"), b"MEMORY": (b"USAGE", b"STATS", b"DOCTOR", b"MALLOC-STATS"),
              b"SLOWLOG": (b"GET", b"LEN"), b"LATENCY": (b"HISTOGRAM", b"DOCTOR"),
              b"COMMAND": (b"COUNT", b"INFO", b"DOCS", b"LIST"),
              b"DEBUG": (b"OBJECT", b"DIGEST", b"DIGEST-VALUE")}


def same_subcommand(words, stock, ours):
    """DEBUG is a container of commands here, and in Redis one command: it refuses otherwise. 7.0's
    COMMAND GETKEYS wants an argument behind the command's name. Redis has it refuse a PFMERGE that has no
    sources, though PFMERGE does not; GETKEYSANDFLAGS likewise. Redis's MEMORY USAGE sees keys that have
    expired."""
    if words[1].upper() == b"USAGE" and ours in (b"$-1\r\n", b"_\r\n") and stock[:1] == b":":
        return True
    if words[1:] == [b"RELOAD"]:
        return ours.startswith(b"-ERR Nothing was reloaded: A large value")
    if (words[1].upper() in (b"GETKEYS", b"GETKEYSANDFLAGS") and len(words) == 4 and
            words[2].upper() == b"PFMERGE"):
        return is_error(stock)
    if is_error(stock):
        return is_error(ours) and (words[0].upper() == b"DEBUG" or len(words) == 3)
    return words[1].upper() in OF_ITS_OWN[words[0].upper()] and same_kind(words, stock, ours)


def same_names(_words, stock, ours):
    """PUBSUB, names of CONFIG GET: in no particular order."""
    return stock[:1] == ours[:1] and stock[:1] in (b"*", b"%") and (
        sorted(replies(stock)) == sorted(replies(ours)))


ALREADY = re.compile(rb"-ERR (Library|Function) \w+ already exists\r\n")


def same_libraries(words, stock, ours):
    """FUNCTION LIST and DUMP: libraries and their functions, in no particular order. RESTORE: of several
    that are there already, Redis names the first of a hash table whose seed is drawn at start."""
    if words[1].upper() == b"RESTORE":
        a, b = ALREADY.fullmatch(stock), ALREADY.fullmatch(ours)
        return a is not None and b is not None and a.group(1) == b.group(1)
    if words[1].upper() == b"DUMP":
        return same_kind(words, stock, ours) and len(stock) == len(ours)
    return words[1].upper() == b"LIST" and sorted(stock.split(b"\r\n")) == sorted(ours.split(b"\r\n"))


def same_directives(words, stock, ours):
    """CONFIG: 7.2 has one more level of logs."""
    return stock == ours.replace(b"warning, nothing\r\n", b"warning\r\n") or (
        not is_error(stock) and same_names(words, stock, ours))


def without_times(reply):
    """What XINFO and XPENDING show, without times, what 7.2 adds, and Redis's nodes."""
    reply = re.sub(rb"\$(9\r\nseen-time|11\r\nactive-time|4\r\nidle|8\r\ninactive)\r\n:-?\d+\r\n", b"", reply)
    reply = re.sub(rb"[*%]\d+\r\n(?=\$4\r\nname\r\n)", b"", reply)
    reply = re.sub(rb"(\$\d+\r\nradix-tree-(keys|nodes)\r\n):\d+", rb"\1", reply)
    reply = re.sub(rb"(\*4\r\n\$\d+\r\n\d+-\d+\r\n\$\d+\r\n[^\r]*\r\n):\d+", rb"\1", reply)
    return re.sub(rb"(\*3\r\n\$\d+\r\n\d+-\d+\r\n):\d+", rb"\1", reply)


def same_but_times(_words, stock, ours):
    return without_times(stock) == without_times(ours)


def unbalanced(_words, stock, ours):
    """XREAD, XREADGROUP: 7.2 names the command, and 7.4 has one ID more."""
    return (stock.startswith(b"-ERR Unbalanced XREAD list of streams") and
            ours.startswith(b"-ERR Unbalanced 'xread"))


WITH_SCORES = (b"ZADD", b"ZINCRBY", b"ZSCORE", b"ZMSCORE", b"ZRANGE", b"ZREVRANGE",
               b"ZRANGEBYSCORE", b"ZREVRANGEBYSCORE", b"ZPOPMIN", b"ZPOPMAX", b"ZMPOP", b"ZUNION",
               b"ZINTER", b"ZDIFF", b"BZPOPMIN", b"BZPOPMAX", b"BZMPOP")

BLOCKING = (b"BLPOP", b"BRPOP", b"BLMOVE", b"BLMPOP", b"BRPOPLPUSH", b"BZPOPMIN", b"BZPOPMAX",
            b"BZMPOP")

# They run the command that follows.
CALLING = (b"EVAL", b"EVAL_RO", b"EVALSHA", b"EVALSHA_RO", b"FCALL", b"FCALL_RO")

BY_NAME = {
    b"KEYS": same_keys,
    b"HKEYS": same_members,
    b"HVALS": same_members,
    b"HGETALL": same_pairs,
    b"HRANDFIELD": both_pick,
    b"HSCAN": both_scan,
    b"SMEMBERS": same_members,
    b"SINTER": same_members,
    b"SUNION": same_members,
    b"SDIFF": same_members,
    b"SPOP": same_members,
    b"SRANDMEMBER": both_pick,
    b"SSCAN": both_scan,
    b"SCAN": both_scan,
    b"RANDOMKEY": both_some_key,
    b"OBJECT": same_object,
    b"DBSIZE": same_count,
    b"DUMP": both_dump,
    b"SORT": same_sorted,
    b"SORT_RO": same_sorted,
    b"BITCOUNT": bits_of_nothing,
    b"BITPOS": bits_of_nothing,
    b"LPOS": least_rank,
    b"ZRANK": ranked_with_score,
    b"ZREVRANK": ranked_with_score,
    b"ZRANDMEMBER": both_pick,
    b"ZSCAN": both_scan,
    b"CLIENT": same_subcommand,
    b"MEMORY": same_subcommand,
    b"SLOWLOG": same_subcommand,
    b"LATENCY": same_subcommand,
    b"COMMAND": same_subcommand,
    b"DEBUG": same_subcommand,
    b"INFO": same_kind,
    b"TIME": same_kind,
    b"LOLWUT": same_kind,
    b"ROLE": same_kind,
    b"HELLO": same_kind,
    b"PUBSUB": same_names,
    b"CONFIG": same_directives,
    b"FUNCTION": same_libraries,
    b"XREAD": unbalanced,
    b"XREADGROUP": unbalanced,
    b"XINFO": same_but_times,
    b"XPENDING": same_but_times,
}
BY_NAME.update(dict.fromkeys(WITH_SCORES, same_scores))
BY_NAME.update(dict.fromkeys((b"GEOSEARCH", b"GEORADIUS", b"GEORADIUS_RO", b"GEORADIUSBYMEMBER",
                              b"GEORADIUSBYMEMBER_RO"), same_nearest))


def same(words, stock, ours, queued=(), apart_s=10):
    """`queued`: what EXEC has run; `apart_s`: by how many seconds one of the servers may be late."""
    if stock == ours:
        return True
    name = words[0].upper()
    if name == b"EXEC" and stock[:1] == ours[:1] == b"*" and b"*-1\r\n" not in (stock, ours):
        left, right = replies(stock), replies(ours)
        return len(left) == len(right) == len(queued) and all(
            same(words, a, b, (), apart_s) for words, a, b in zip(queued, left, right))
    if name in CALLING and len(words) > 3:
        # A number of Lua's that is too large: its conversion is undefined in C.
        too_large = b":-9223372036854775808\r\n", b":9223372036854775807\r\n"
        return same(words[3:], stock.replace(*too_large), ours.replace(*too_large), (), apart_s)
    if name in TIME_UNITS:
        return same_time(name, stock, ours, apart_s)
    rule = BY_NAME.get(name)
    may_differ = rule in (bits_of_nothing, least_rank, ranked_with_score, same_sorted,
                          same_subcommand, same_directives, same_libraries, unbalanced) or not (
                              is_error(stock))
    return (rule is not None and may_differ and rule(words, stock, ours) or
            far_timeout(name, stock, ours))
