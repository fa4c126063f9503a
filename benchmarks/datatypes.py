#!/usr/bin/env python3
"""Commands on collections beside stock Redis: server CPU per operation on small collections and on
one of a million elements, and on one ten times larger than our cache beside the same in memory.
Each server has one core, the load generator (bench-load) the other; they take turns. At the end all
ratios stand beside their targets. Beyond the cache an operation reads and writes pages: beside it
stands what so many cost fio, which does nothing else.

Fills take most of the time, and more on a busy machine: --minutes is what all of it should take, and
rounds after the first are left out where they would not fit.
"""

import hashlib
import os
import sys
import time

from bench import (MB, PAIR_HEAD, Failure, Place, Server, fio, in_turn, medians, options, pair_rows,
                   print_table, progress)

SERVER_CORE, LOAD_CORE = 1, 0
SCRIPT = "return redis.call('INCR', KEYS[1])"
DIGEST = hashlib.sha1(SCRIPT.encode()).hexdigest()
LIBRARY = ("#!lua name=bench\nredis.register_function('increase', function(keys) "
           "return redis.call('INCR', keys[1]) end)")
# The load generator does not know what it was given: a script acknowledges it.
TAKE = ("local got = redis.call('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', 1, 'STREAMS', KEYS[1], '>') "
        "return got and redis.call('XACK', KEYS[1], 'g', got[1][2][1][1])")
TAKE_DIGEST = hashlib.sha1(TAKE.encode()).hexdigest()
VALUE = 16
WIDE = 100  # where the collection is to be larger than the memory

# (what is measured, its command, keys, members of each): 0 stands for --elements.
# Each is done equally often. What adds to lists comes before what takes away. Sets and sorted sets are
# filled with every member there is: what finds and takes away comes before what adds.
PLAIN = (
    ("INCR", "INCR number:%k", 0, 1),
    ("MSET of 10", "MSET" + " key:%k %v" * 10, 0, 1),
    ("EVALSHA of INCR", f"EVALSHA {DIGEST} 1 number:%k", 0, 1),
    ("FCALL of INCR", "FCALL increase 1 number:%k", 0, 1),
)
SMALL = (
    ("LPUSH", "LPUSH list:%k %v", 100000, 10),
    ("LPOP", "LPOP list:%k", 100000, 10),
    ("LRANGE_100", "LRANGE hundred:%k 0 99", 1000, 100),
    ("LRANGE_600", "LRANGE hundreds:%k 0 599", 1000, 600),
    ("SPOP", "SPOP set:%k", 100000, 20),
    ("SADD", "SADD set:%k member:%m", 100000, 20),
    ("HSET", "HSET hash:%k field:%m %v", 100000, 10),
    ("HGET", "HGET hash:%k field:%m", 100000, 10),
    ("HSETEX", "HSETEX timed:%k EX 3600 FIELDS 1 field:%m %v", 100000, 10),
    ("ZRANGEBYSCORE", "ZRANGEBYSCORE zset:%k %m +inf LIMIT 0 10", 100000, 20),
    ("ZPOPMIN", "ZPOPMIN zset:%k", 100000, 20),
    ("ZADD", "ZADD zset:%k %m member:%m", 100000, 20),
    ("GEOSEARCH", "GEOSEARCH geo:%k FROMMEMBER member:%m BYRADIUS 5 m", 100000, 20),
    ("GEOADD", "GEOADD geo:%k %me-5 %me-5 member:%m", 100000, 20),
    ("XRANGE_100", "XRANGE stream:%k - + COUNT 100", 10000, 100),
    ("XREAD", "XREAD COUNT 10 STREAMS stream:%k 0", 10000, 100),
    ("XADD", "XADD stream:%k * field %v", 10000, 100),
    ("XREADGROUP", "XREADGROUP GROUP g c COUNT 1 STREAMS stream:%k >", 10000, 100),
    ("XREADGROUP+XACK", f"EVALSHA {TAKE_DIGEST} 1 stream:%k", 10000, 100),
)
LARGE = (
    ("LPUSH", "LPUSH biglist %v", 1, 0),
    ("LPOP", "LPOP biglist", 1, 0),
    ("LRANGE_100", "LRANGE biglist 0 99", 1, 0),
    ("LRANGE_600", "LRANGE biglist 0 599", 1, 0),
    ("SPOP", "SPOP bigset", 1, 0),
    ("SADD", "SADD bigset member:%m", 1, 0),
    ("HSET", "HSET bighash field:%m %v", 1, 0),
    ("HGET", "HGET bighash field:%m", 1, 0),
    ("HSETEX", "HSETEX bigtimed EX 3600 FIELDS 1 field:%m %v", 1, 0),
    ("ZRANGEBYSCORE", "ZRANGEBYSCORE bigzset %m +inf LIMIT 0 10", 1, 0),
    ("ZPOPMIN", "ZPOPMIN bigzset", 1, 0),
    ("ZADD", "ZADD bigzset %m member:%m", 1, 0),
    ("GEOSEARCH", "GEOSEARCH biggeo FROMMEMBER member:%m BYRADIUS 5 m", 1, 0),
    ("GEOADD", "GEOADD biggeo %me-5 %me-5 member:%m", 1, 0),
    ("XRANGE_100", "XRANGE bigstream - + COUNT 100", 1, 0),
    ("XREAD", "XREAD COUNT 10 STREAMS bigstream 0", 1, 0),
    ("XADD", "XADD bigstream * field %v", 1, 0),
    ("XREADGROUP", "XREADGROUP GROUP g c COUNT 1 STREAMS bigstream >", 1, 0),
    ("XREADGROUP+XACK", f"EVALSHA {TAKE_DIGEST} 1 bigstream", 1, 0),
)
# What stock Redis 7 does not know, and what it does instead: then there is no target.
INSTEAD = {"HSETEX": (("HSETEX", "HSET"), (" EX 3600 FIELDS 1", ""))}
FILLS = {
    "list": "RPUSH", "hundred": "RPUSH", "hundreds": "RPUSH", "set": "SADD", "hash": "HSET", "timed": "HSET",
    "zset": "ZADD", "geo": "GEOADD", "stream": "XADD",
}
# At most, of the CPU that stock Redis takes; beyond memory: that the same takes in memory.
SMALL_TARGET, LARGE_TARGET = 0.8, 1.0
# (what is measured, its command, its target)
BEYOND = (
    ("LPUSH", "LPUSH biglist %v", 3.0),
    ("HSET", "HSET bighash field:%m %v", 3.0),
    ("ZADD", "ZADD bigzset %m member:%m" + "x" * WIDE, 3.0),
    ("XADD", "XADD bigstream * field %v", 2.0),
)
PAGES = {"reads": "pages_read", "writes": "pages_written"}
FIO_MB, FIO_SECONDS, FIO_BATCH = 256, 3, 16
# Of the minutes, until when a part may begin another round.
SMALL_SHARE, LARGE_SHARE, BEYOND_SHARE = 0.4, 0.6, 0.8
# A reply of so many elements is as much work as so many commands; and entries of streams are to suffice for
# all rounds.
WEIGHT = {"XRANGE_100": 10, "LRANGE_100": 10, "LRANGE_600": 60, "MSET of 10": 8,
          "XREADGROUP": 4, "XREADGROUP+XACK": 4}


def sizes(row, opt):
    _, _, keys, members = row
    return keys or opt.elements, members or opt.elements


def load(server, words, keys, members, opt, *more, value=VALUE, limit_s=600):
    return server.load("--command", words, "--keys", keys, "--members", members, "--value", value,
                       "--pipeline", 16, "--connections", opt.connections, *more, core=LOAD_CORE,
                       seconds=limit_s)


def key_of(row):
    """The collection: XREADGROUP and EVALSHA name it behind other words."""
    words = row[1].split()
    return next((word for word in words if "stream" in word), words[1])


def fill(server, rows, opt):
    """Every collection that the rows name, with all its members."""
    done = set()
    for row in rows:
        key = key_of(row)
        kind = key.replace("big", "").split(":")[0]
        if key in done or kind not in FILLS:
            continue
        done.add(key)
        words = {"RPUSH": f"RPUSH {key} %v", "SADD": f"SADD {key} member:%m",
                 "HSET": f"HSET {key} field:%m %v", "ZADD": f"ZADD {key} %m member:%m",
                 "GEOADD": f"GEOADD {key} %me-5 %me-5 member:%m", "XADD": f"XADD {key} * field %v"}[FILLS[kind]]
        load(server, words, *sizes(row, opt), opt, "--fill")
        if kind == "stream":
            load(server, f"XGROUP CREATE {key} g 0", sizes(row, opt)[0], 1, opt, "--fill")


def run(server, row, opt, ops=None, value=VALUE):
    name, words = row[:2]
    if server.name == "redis":
        for ours, theirs in INSTEAD.get(name, ()):
            words = words.replace(ours, theirs)
    ops = ops or opt.ops // WEIGHT.get(name, 1)
    figures = load(server, words, *sizes(row, opt), opt, "--ops", ops, value=value)
    if figures["absent"] > ops / 10:
        raise Failure(f"{name}: {figures['absent']:.0f} of {ops} found nothing")
    return figures


def is_wanted(row, opt):
    return not opt.only or row[0].split()[0] in opt.only.split(",")


class Account:
    """What was measured beside what it should be, and the time that it took."""

    def __init__(self, opt):
        self.opt = opt
        self.start = time.monotonic()
        self.rows = []

    def minutes(self):
        return (time.monotonic() - self.start) / 60

    def rounds(self, share):
        """Numbers of rounds, one at least."""
        for number in range(self.opt.rounds):
            if number > 0 and self.minutes() > share * self.opt.minutes:
                return
            yield number

    def add(self, what, where, ratio, target, note=""):
        """target: None if there is nothing alike to compare it with."""
        verdict = "" if target is None else "met" if round(ratio, 2) <= target else "missed"
        limit = "" if target is None else f"{target:.2f}"
        self.rows.append([what, where, f"{ratio:.2f}", limit, verdict, note])

    def show(self):
        missed = sum(row[4] == "missed" for row in self.rows)
        print_table(f"CPU per operation against its target: {missed} of {len(self.rows)} missed; "
                    f"{self.minutes():.0f} minutes",
                    ["", "", "ratio", "at most", "", ""], self.rows)


def in_memory(place, opt, account):
    servers = [Server.vellum(place, core=SERVER_CORE, maxmemory=opt.maxmemory),
               Server.redis(place, core=SERVER_CORE)]
    small = f"of {opt.elements} keys, collections of 10 to 600 elements"
    parts = ((small, "small", PLAIN + SMALL, SMALL_TARGET, SMALL_SHARE),
             (f"one of {opt.elements} elements", "large", LARGE, LARGE_TARGET, LARGE_SHARE))
    for title, where, rows, target, share in parts:
        rows = [row for row in rows if is_wanted(row, opt)]
        for server in servers:
            progress(f"{title}: preloading {server.name}")
            server.ask("FLUSHALL")
            for script in (SCRIPT, TAKE):
                server.ask("SCRIPT", "LOAD", script)
            server.ask("FUNCTION", "LOAD", "REPLACE", LIBRARY)
            fill(server, rows, opt)
        measured, number = {}, 0
        for number in account.rounds(share):
            for row in rows:
                progress(f"round {number + 1}, {row[0]}")
                turns = in_turn(servers, 1, lambda server, row=row: run(server, row, opt))
                for server, rounds in turns.items():
                    measured.setdefault(row[0], {}).setdefault(server, []).extend(rounds)
        table = [line for what, turns in measured.items() for line in pair_rows(what, turns)]
        for what, turns in measured.items():
            ours, theirs = (medians(rounds)["cpu_us"] for rounds in turns.values())
            if what in INSTEAD:
                account.add(what, where, ours / theirs, None, f"stock Redis: {INSTEAD[what][0][1]}")
            else:
                account.add(what, where, ours / theirs, target)
        print_table(f"{title}; pipeline 16, elements of {VALUE} B, {opt.connections} connections; "
                    f"medians of {number + 1} rounds in turn; one core each, everysec",
                    PAIR_HEAD, table)
    for server in servers:
        server.stop()


def measure_with(place, directory, memory_mb, row, fill_first, opt, account):
    """Medians for a server with so much memory; `reads`, `writes`: pages per operation."""
    progress(f"{row[0]}, {memory_mb} MB")
    server = Server.vellum(place, directory, core=SERVER_CORE, maxmemory=f"{memory_mb}mb")
    if fill_first:
        load(server, row[1].replace("LPUSH", "RPUSH"), *sizes(row, opt), opt, "--fill", value=WIDE)
    rounds = []
    for _ in account.rounds(BEYOND_SHARE):
        before = {name: server.number(field) for name, field in PAGES.items()}
        figures = run(server, row, opt, opt.large_ops, WIDE)
        for name, field in PAGES.items():
            figures[name] = (server.number(field) - before[name]) / opt.large_ops
        rounds.append(figures)
    server.stop()
    return medians(rounds)


def device_cpu_us(place, reads, writes):
    """Processor time of fio for so many pages read and written at random, submitted in batches: what they
    cost any program."""
    if reads + writes < 0.01:
        return 0.0
    path = os.path.join(place.path, "fio.data")
    if not os.path.exists(path):
        progress("laying out fio's file")
        fio(place, filename=path, size=FIO_MB * MB, rw="write", bs="1m", iodepth=8)
    progress("fio")
    figures = fio(place, filename=path, size=FIO_MB * MB, rw="randrw", bs="4k",
                  rwmixread=round(100 * reads / (reads + writes)), iodepth=2 * FIO_BATCH,
                  iodepth_batch=FIO_BATCH, iodepth_batch_complete_min=1,
                  iodepth_batch_complete_max=FIO_BATCH, cpus_allowed=SERVER_CORE, time_based=None,
                  runtime=FIO_SECONDS)
    return figures["cpu_us"] * (reads + writes)


def beyond_memory(place, opt, account):
    """The same collection with memory for all of it, and for a tenth."""
    table = []
    for name, words, target in BEYOND:
        row = (name, words, 1, opt.large_elements)
        if not is_wanted(row, opt):
            continue
        directory = place.fresh("vellum")
        memories = opt.large_memory_mb, opt.small_memory_mb
        middle = [measure_with(place, directory, memory, row, memory == memories[0], opt,
                               account)
                  for memory in memories]
        device = device_cpu_us(place, middle[1]["reads"], middle[1]["writes"])
        own = middle[0]["cpu_us"]
        account.add(name, "beyond memory", middle[1]["cpu_us"] / own, target,
                    f"fio's I/O alone {device / own:.2f}")
        for memory, m in zip(memories, middle):
            fio_us = f"{device:.2f}" if m is middle[1] else ""
            table.append([name, f"{memory} MB", f"{m['rate'] / 1e3:.1f}", f"{m['reads']:.2f}",
                          f"{m['writes']:.2f}", f"{m['cpu_us']:.2f}", f"{m['cpu_us'] / own:.2f}",
                          fio_us])
    print_table(f"One of {opt.large_elements} elements of {WIDE} B, by maxmemory; pipeline 16; "
                f"fio: as many 4 KB reads and writes, in batches of {FIO_BATCH}",
                ["", "memory", "K ops/s", "reads/op", "writes/op", "CPU us/op", "CPU ratio",
                 "fio us/op"], table)


def main():
    opt = options(__doc__, elements=1000000, ops=400000, connections=50, rounds=3, minutes=14,
                  maxmemory="2gb", large_elements=3000000, large_ops=100000, large_memory_mb=2048,
                  small_memory_mb=48, only="", parts="memory,beyond")
    account = Account(opt)
    with Place(opt.build) as place:
        if "memory" in opt.parts:
            in_memory(place, opt, account)
        if "beyond" in opt.parts:
            beyond_memory(place, opt, account)
    account.show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
