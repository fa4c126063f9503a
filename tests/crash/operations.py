"""The operations of writers on keys of their own, each a list of commands (several of them a
transaction), and a model of what they make of these keys.
"""

import itertools

import harness

STRINGS = 40
LIST_MOST = 3000
FIELDS = 4000
MEMBERS = 3000
ENTRIES_MOST = 1500
GROUP = b"g"


# ---- operations: each a list of commands, several of them a transaction ----

def value(chance, number, least, most):
    """Bytes that say which operation wrote them, all the way through."""
    size = chance.randrange(least, most)
    mark = b"%010d." % number
    return (mark * (size // len(mark) + 1))[:size]


def large(chance, number):
    return value(chance, number, 3000, chance.choice((5000, 20_000, 400_000)))


def string_key(chance, name):
    return b"%s:s%d" % (name, chance.randrange(STRINGS))


def one_set(chance, name, number):
    return (b"SET", string_key(chance, name), value(chance, number, 10, 600))


def one_large(chance, name, number):
    return (b"SET", string_key(chance, name), large(chance, number))


def one_range(chance, name, number):
    return (b"SETRANGE", string_key(chance, name), b"%d" % chance.randrange(200_000),
            value(chance, number, 10, 9000))


def one_delete(chance, name, _):
    return (b"DEL", string_key(chance, name))


def one_mset(chance, name, number):
    pairs = [(string_key(chance, name), value(chance, number, 10, 3000)) for _ in range(4)]
    return (b"MSET", *[word for pair in pairs for word in pair])


def one_fields(chance, name, number):
    fields = [b"f%d" % chance.randrange(FIELDS) for _ in range(chance.choice((1, 5, 60)))]
    pairs = [(field, value(chance, number, 10, 100)) for field in fields]
    return (b"HSET", name + b":h", *[word for pair in pairs for word in pair])


def one_forget(chance, name, _):
    return (b"HDEL", name + b":h", *[b"f%d" % chance.randrange(FIELDS) for _ in range(5)])


def one_push(chance, name, number):
    count = chance.choice((1, 5, 60))
    return (b"RPUSH", name + b":l", *[b"%d.%d" % (number, i) for i in range(count)])


def one_trim(_chance, name, _number):
    return (b"LTRIM", name + b":l", b"%d" % -LIST_MOST, b"-1")


def members(chance, most):
    return [b"m%d" % chance.randrange(MEMBERS) for _ in range(chance.choice((1, 5, most)))]


def one_ranking(chance, name, _):
    scores = [b"%d" % chance.randrange(2000) for _ in range(40)]
    return (b"ZADD", name + b":z", *[word for pair in zip(scores, members(chance, 40)) for word in pair])


def one_raise(chance, name, _):
    return (b"ZINCRBY", name + b":z", b"%d" % chance.randrange(50), *members(chance, 1)[:1])


def one_pop(chance, name, _):
    return (b"ZPOPMIN", name + b":z", b"%d" % chance.choice((1, 3, 100)))


def one_expulsion(chance, name, _):
    return (b"ZREM", name + b":z", *members(chance, 5))


def one_union(chance, name, _):
    return (b"SADD", name + b":e", *members(chance, 60))


def one_exit(chance, name, _):
    return (b"SREM", name + b":e", *members(chance, 20))


def one_entry(chance, name, number):
    trim = (b"MAXLEN", b"=", b"%d" % ENTRIES_MOST) if chance.random() < 0.5 else ()
    return (b"XADD", name + b":x", *trim, b"%d-*" % number, b"f", value(chance, number, 1, 300))


def ids(chance, number):
    """Of entries that may be there."""
    first = max(1, number - chance.randrange(1, 4000))
    return [b"%d-0" % (first + i) for i in range(chance.choice((1, 10, 60)))]


def one_removal(chance, name, number):
    return (b"XDEL", name + b":x", *ids(chance, number)[:10])


def one_delivery(chance, name, _):
    consumer = b"c%d" % chance.randrange(3)
    return (b"XREADGROUP", b"GROUP", GROUP, consumer, b"COUNT", b"%d" % chance.choice((1, 3, 20)), b"STREAMS",
            name + b":x", b">")


def one_receipt(chance, name, number):
    return (b"XACK", name + b":x", GROUP, *ids(chance, number))


COMMANDS = {one_set: 40, one_large: 6, one_range: 6, one_delete: 8, one_mset: 12, one_fields: 12,
            one_forget: 4, one_push: 10, one_trim: 2, one_ranking: 8, one_raise: 4, one_pop: 1,
            one_expulsion: 2, one_union: 6, one_exit: 3, one_entry: 14, one_removal: 2, one_delivery: 6,
            one_receipt: 5}


def drop(chance, name):
    """Of something large, all at once."""
    key = name + chance.choice((b":l", b":h", b":z", b":e", b":x"))
    if key != name + b":x":
        return [(b"DEL", key)]
    return [(b"XGROUP", b"DESTROY", key, GROUP), (b"XGROUP", b"CREATE", key, GROUP, b"0")]


def first_operation(chance, name, number, state):
    """Makes the stream, which stays, and its group, if they are not there."""
    key = name + b":x"
    if key in state:
        return operation(chance, name, number, state)
    return [(b"XGROUP", b"CREATE", key, GROUP, b"0", b"MKSTREAM")]


def operation(chance, name, number, _state):
    if chance.random() < 0.003:
        return drop(chance, name)
    count = chance.choice((2, 3, 6)) if chance.random() < 0.15 else 1
    makers = chance.choices(list(COMMANDS), list(COMMANDS.values()), k=count)
    return [make(chance, name, number) for make in makers]


def encode(commands):
    words = b"".join(harness.encode(*command) for command in commands)
    if len(commands) == 1:
        return words, 1
    return harness.encode("MULTI") + words + harness.encode("EXEC"), len(commands) + 2


# ---- what operations make of keys ----

def pairs_of(words):
    return list(zip(words[::2], words[1::2]))


def without(old, members):
    return {member: v for member, v in old.items() if member not in members}


def after_string(old, words):
    if words[0] == b"SET":
        return words[2]
    offset, there = int(words[2]), old or b""
    return there[:offset].ljust(offset, b"\0") + words[3] + there[offset + len(words[3]):]


def after_list(old, words):
    return (old or ()) + words[2:] if words[0] == b"RPUSH" else (old or ())[int(words[2]):]


def after_hash(old, words):
    if words[0] == b"HSET":
        return {**(old or {}), **dict(pairs_of(words[2:]))}
    return without(old or {}, words[2:])


def after_set(old, words):
    """Members, as the keys of a dictionary."""
    if words[0] == b"SADD":
        return {**(old or {}), **dict.fromkeys(words[2:])}
    return without(old or {}, words[2:])


def after_sorted_set(old, words):
    old = old or {}
    if words[0] == b"ZADD":
        return {**old, **{member: int(score) for score, member in pairs_of(words[2:])}}
    if words[0] == b"ZINCRBY":
        return {**old, words[3]: old.get(words[3], 0) + int(words[2])}
    if words[0] == b"ZREM":
        return without(old, words[2:])
    lowest = sorted(old, key=lambda member: (old[member], member))
    return without(old, set(lowest[:int(words[2])]))


# A stream: its entries, its last ID; of its group the last ID delivered, and the consumers of the pending ones.
NEW_STREAM = ({}, b"0-0", b"0-0", {})


def place(entry):
    return tuple(int(part) for part in entry.split(b"-"))


def with_entry(entries, last, words):
    at = words.index(b"f") - 1
    number, (last_number, last_sequence) = int(words[at].split(b"-")[0]), place(last)
    last = b"%d-%d" % (number, last_sequence + 1 if number == last_number else 0)
    entries = {**entries, last: words[at + 2]}
    if words[2] == b"MAXLEN":
        excess = max(0, len(entries) - int(words[4]))
        entries = dict(list(entries.items())[excess:])
    return entries, last


def delivery(entries, delivered, count):
    behind = list(itertools.takewhile(lambda entry: place(entry) > place(delivered), reversed(entries)))
    return behind[::-1][:count]


def after_stream(old, words):
    entries, last, delivered, pending = old or NEW_STREAM
    if words[0] == b"XADD":
        return *with_entry(entries, last, words), delivered, pending
    if words[0] == b"XDEL":
        return without(entries, words[2:]), last, delivered, pending
    if words[0] == b"XACK":
        return entries, last, delivered, without(pending, words[3:])
    if words[0] == b"XREADGROUP":
        new = delivery(entries, delivered, int(words[5]))
        return entries, last, (new or [delivered])[-1], {**pending, **dict.fromkeys(new, words[3])}
    return entries, last, *NEW_STREAM[2:]  # XGROUP


AFTER = {b"SET": after_string, b"SETRANGE": after_string, b"RPUSH": after_list, b"LTRIM": after_list,
         b"HSET": after_hash, b"HDEL": after_hash, b"SADD": after_set, b"SREM": after_set,
         b"ZADD": after_sorted_set, b"ZINCRBY": after_sorted_set, b"ZREM": after_sorted_set,
         b"ZPOPMIN": after_sorted_set, b"XADD": after_stream, b"XDEL": after_stream, b"XACK": after_stream,
         b"XREADGROUP": after_stream, b"XGROUP": after_stream, b"DEL": lambda old, words: None}
KEY_AT = {b"XREADGROUP": -2, b"XGROUP": 2}


def apply_command(state, words):
    """Changes `state`, a dictionary of keys; returns the keys it touched. Values are replaced, never
    changed, so that a copy of the dictionary is a copy of everything."""
    if words[0] == b"MSET":
        state.update(pairs_of(words[1:]))
        return [key for key, _ in pairs_of(words[1:])]
    key = words[KEY_AT.get(words[0], 1)]
    state[key] = AFTER[words[0]](state.get(key), words)
    if not state[key]:
        del state[key]
    return [key]


# ---- what a server has ----

def read_stream(client, key):
    entries = {entry: fields[b"f"] for entry, fields in client.xrange(key)}
    pending = client.xpending_range(key, GROUP, "-", "+", 1 << 30)
    return (entries, client.xinfo_stream(key)["last-generated-id"],
            client.xinfo_groups(key)[0]["last-delivered-id"],
            {one["message_id"]: one["consumer"] for one in pending})


def read_value(client, key):
    """As the model has it."""
    kind = client.type(key)
    if kind == b"string":
        return client.get(key)
    if kind == b"list":
        return tuple(client.lrange(key, 0, -1))
    if kind == b"hash":
        return client.hgetall(key)
    if kind == b"set":
        return dict.fromkeys(client.smembers(key))
    if kind == b"zset":
        return {member: int(score) for member, score in client.zrange(key, 0, -1, withscores=True)}
    return read_stream(client, key)
