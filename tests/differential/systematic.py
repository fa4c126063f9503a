"""What is sent to both servers whole, not by chance: forms.py's commands, by themselves and inside of
others, and snippets.py's scripts. Each begins with the same keys."""

import re

import exceptions
import forms
import harness
import snippets

BATCH = 100
SETUP = b"".join(harness.encode(*words) for words in forms.SETUP)
# Stays on this connection, whatever has been said before.
AFTER = harness.encode("SELECT", "0")

PCALL = "return redis.pcall(unpack(ARGV))"


def by_itself(words):
    return harness.encode(*words), 1


def in_multi(words):
    return (harness.encode("MULTI") + harness.encode(*words) + harness.encode("EXEC") +
            harness.encode("DISCARD") + harness.encode("UNWATCH")), 5


# Commands that wait, but not in there.
WAITING = (b"WAIT", b"BLPOP", b"BRPOP", b"BLMOVE", b"BRPOPLPUSH", b"BZPOPMIN", b"BZPOPMAX")


def in_script(words):
    return harness.encode("EVAL", PCALL, "0", *words), 1


def in_reading_script(words):
    return harness.encode("EVAL_RO", PCALL, "0", *words), 1


# How a form is sent, in which protocol, and one in how many; what is not sent so.
WAYS = [(by_itself, 2, 1, ()),
        (by_itself, 3, 4, ()),
        (in_multi, 2, 5, (b"EXEC", b"DISCARD", b"MULTI")),
        # In 7.2 they may stand in scripts.
        (in_script, 2, 5, WAITING),
        (in_reading_script, 2, 11, WAITING)]


def same(how, words, stock, ours):
    """Of what is sent for one form."""
    if how in (in_script, in_reading_script):
        words = [b"EVAL", b"", b"0", *words]
    if len(stock) == 1:
        return exceptions.same(words, stock[0], ours[0])
    # Of MULTI, the form, EXEC, DISCARD and UNWATCH.
    return (stock[:1] + stock[3:] == ours[:1] + ours[3:] and
            exceptions.same(words, stock[1], ours[1]) and
            exceptions.same([b"EXEC"], stock[2], ours[2], [words]))


def replies_to(raw, how, batch):
    """For each form what came back."""
    sent = [how(words) for words in batch]
    raw.send(b"".join(SETUP + data + AFTER for data, _ in sent))
    found = []
    for _, count in sent:
        for _ in forms.SETUP:
            raw.reply()
        found.append([raw.reply() for _ in range(count)])
        raw.reply()
    return found


def compare_forms(stock, ours, how, version, step, apart):
    """The first differences, as (words, what stock says, what ours says)."""
    chosen = [words for words in forms.forms()[::step] if words[0].upper() not in apart]
    differences = []
    with stock.raw() as left, ours.raw() as right:
        for raw in (left, right):
            raw.call("HELLO", version)
        for i in range(0, len(chosen), BATCH):
            batch = chosen[i:i + BATCH]
            answers = replies_to(left, how, batch), replies_to(right, how, batch)
            differences += [(words, a, b) for words, a, b in zip(batch, *answers)
                            if not same(how, words, a, b)]
    return differences


def compare_bound(stock, ours):
    """What a subscriber in RESP2 may say: one form of each length of each command."""
    apart = (b"SHUTDOWN", b"MONITOR", b"DEBUG")
    chosen = list({(words[0].upper(), len(words)): words for words in forms.forms()
                   if words[0].upper() not in apart}.values())
    answers = []
    for server in (stock, ours):
        with server.raw() as raw:
            raw.call("SUBSCRIBE", "channel")
            raw.send(b"".join(harness.encode(*words) for words in chosen))
            answers.append([raw.reply() for _ in chosen])
    return [(words, [a], [b]) for words, a, b in zip(chosen, *answers) if a != b]


def lookups_of(server, chosen):
    """For each form the counted hits and misses, and the keys whose absence was notified."""
    found = []
    with server.raw() as raw, server.raw() as listener:
        raw.call("CONFIG", "SET", "notify-keyspace-events", "Em")
        listener.call("PSUBSCRIBE", "__keyevent@*__:keymiss")
        listener.call("SUBSCRIBE", "end")
        for words in chosen:
            raw.send(SETUP + harness.encode("CONFIG", "RESETSTAT") + harness.encode(*words) + AFTER +
                     harness.encode("INFO", "stats") + harness.encode("PUBLISH", "end", ""))
            info = [raw.reply() for _ in range(len(forms.SETUP) + 5)][-2]
            missed = []
            while not (event := listener.reply()).startswith(b"*3"):
                missed.append(event)
            found.append(re.findall(rb"keyspace_(?:hits|misses):\d+", info) + sorted(missed))
    return found


def compare_lookups(stock, ours, step):
    """Which keys count as read."""
    ends = (b"SHUTDOWN", b"MONITOR", b"DEBUG", b"QUIT", b"CONFIG", b"MULTI", b"SUBSCRIBE", b"PSUBSCRIBE",
            b"SSUBSCRIBE", b"CLIENT")
    # 7.2 reads the arguments of the first two before it looks the key up; cursors are each server's own.
    apart = (b"BITCOUNT", b"BITPOS", b"SCAN")
    chosen = [words for words in forms.forms()[::step] if words[0].upper() not in ends + apart]
    return [(words, a, b) for words, a, b in
            zip(chosen, lookups_of(stock, chosen), lookups_of(ours, chosen)) if a != b]


def answer_to_script(raw, command, script):
    raw.send(SETUP + harness.encode(command, script.encode("latin-1"), "1", "k", "a1", "a2") + AFTER)
    for _ in forms.SETUP:
        raw.reply()
    reply = raw.reply()
    raw.reply()
    return reply


def compare_scripts(stock, ours, command, version):
    differences = []
    with stock.raw() as left, ours.raw() as right:
        for raw in (left, right):
            raw.call("HELLO", version)
        for script, behind in snippets.snippets():
            a, b = (answer_to_script(raw, command, script) for raw in (left, right))
            if a != b:
                differences.append(([command.encode(), script.encode("latin-1")], [a], [b]))
            if behind is not None:
                left.call("EVAL", behind, "0")
    return differences


def cases():
    """(name, what compares both servers, its other arguments)."""
    for way in WAYS:
        yield f"forms {way[0].__name__}, RESP{way[1]}", compare_forms, way
    yield "forms of a subscriber", compare_bound, ()
    yield "look-ups of forms", compare_lookups, (3,)
    for command, version in (("EVAL", 2), ("EVAL", 3), ("EVAL_RO", 2)):
        yield f"scripts by {command}, RESP{version}", compare_scripts, (command, version)
