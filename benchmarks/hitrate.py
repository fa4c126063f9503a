#!/usr/bin/env python3
"""Hit rates of eviction by use: a server whose files are full is asked for keys, and given those it
has not, along two traces: a zipfian one, and the same with every fourth key from a scan that never
comes back. Beside it an exact LRU, or LFU (counts of what is kept, the least recently used first
among equals), of as many keys as the server held.
"""

import bisect
import collections
import itertools
import random
import socket
import sys

from bench import Failure, Place, Server, options, print_table, progress

BATCH = 50
MB = 2**20


class ExactLru:
    def __init__(self, capacity):
        self.capacity, self.keys = capacity, collections.OrderedDict()

    def has(self, key):
        if key not in self.keys:
            return False
        self.keys.move_to_end(key)
        return True

    def add(self, key):
        self.keys[key] = True
        self.keys.move_to_end(key)
        if len(self.keys) > self.capacity:
            self.keys.popitem(last=False)


class ExactLfu:
    def __init__(self, capacity):
        self.capacity, self.counts = capacity, {}
        self.by_count = collections.defaultdict(collections.OrderedDict)

    def move(self, key, count):
        self.counts[key] = count
        self.by_count[count][key] = True

    def has(self, key):
        count = self.counts.get(key)
        if count is None:
            return False
        del self.by_count[count][key]
        self.move(key, count + 1)
        return True

    def add(self, key):
        if self.has(key):
            return
        if len(self.counts) >= self.capacity:
            least = min(count for count, keys in self.by_count.items() if keys)
            del self.counts[self.by_count[least].popitem(last=False)[0]]
        self.move(key, 1)


class Cache:
    """The server, and how many keys it held in the second half of the trace."""

    def __init__(self, server, value):
        self.link = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self.replies = self.link.makefile("rb")
        self.value, self.held = b"x" * value, []

    def call(self, commands):
        self.link.sendall(b"".join(
            b"*%d\r\n" % len(c) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in c)
            for c in commands))
        for _ in commands:
            line = self.replies.readline()
            if line[:1] not in b"+:$" or not line:
                raise Failure(f"{line!r}")
            if line[:1] == b"$" and line != b"$-1\r\n":
                self.replies.read(int(line[1:]) + 2)
            yield line

    def ask(self, batch):
        found = list(self.call([(b"GET", b"%d" % key) for key in batch]))
        missing = [key for key, line in zip(batch, found) if line == b"$-1\r\n"]
        list(self.call([(b"SET", b"%d" % key, self.value) for key in missing]))
        return len(batch) - len(missing)

    def note_held(self):
        self.held.append(int(next(self.call([(b"DBSIZE",)]))[1:]))

    def capacity(self):
        return sum(self.held) // len(self.held)


def trace(opt, scans):
    chance, fresh = random.Random(7), itertools.count(opt.keys)
    weights = list(itertools.accumulate((i + 1) ** -opt.skew for i in range(opt.keys)))
    for i in range(opt.accesses):
        if scans and i % 4 == 0:
            yield next(fresh)
        else:
            yield bisect.bisect_left(weights, chance.random() * weights[-1])


def batches(keys):
    keys = iter(keys)
    while batch := list(itertools.islice(keys, BATCH)):
        yield batch


def of_server(place, opt, policy, scans):
    server = Server.vellum(place, workers=1, maxmemory="200mb", maxstore=opt.maxstore,
                           journal_size="8mb", partitions=4, maxmemory_policy=policy)
    cache, hits = Cache(server, opt.value), 0
    for i, batch in enumerate(batches(trace(opt, scans))):
        got = cache.ask(batch)
        if 2 * i * BATCH >= opt.accesses:
            hits += got
            if i % 20 == 0:
                cache.note_held()
    server.stop()
    return 2 * hits / opt.accesses, cache.capacity()


def of_exact(exact, opt, scans):
    hits = 0
    for i, batch in enumerate(batches(trace(opt, scans))):
        missing = [key for key in batch if not exact.has(key)]
        for key in missing:
            exact.add(key)
        if 2 * i * BATCH >= opt.accesses:
            hits += len(batch) - len(missing)
    return 2 * hits / opt.accesses


def main():
    opt = options(__doc__, keys=60000, accesses=300000, skew=0.9, value=900, maxstore=28 * MB)
    rows = []
    with Place(opt.build) as place:
        for policy, exact in (("allkeys-lru", ExactLru), ("allkeys-lfu", ExactLfu)):
            for name, scans in (("zipfian", False), ("with scans", True)):
                progress(f"{policy}, {name}")
                ours, capacity = of_server(place, opt, policy, scans)
                theirs = of_exact(exact(capacity), opt, scans)
                rows.append([policy, name, capacity, f"{100 * ours:.2f}", f"{100 * theirs:.2f}",
                             f"{100 * (ours / theirs - 1):+.2f} %"])
    print_table(f"{opt.keys} keys, skew {opt.skew:g}, {opt.accesses} accesses, hits in % of the "
                "second half", ["policy", "trace", "keys held", "server", "exact", "difference"],
                rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
