#!/usr/bin/env python3
"""How large the files are beside the data in them: filled with a mix of sizes, each value resized,
half of them deleted at random, refilled with a size that was not there before; and then one class
after another, each deleted as a whole before the next. The bound is 1.3 of the data in their slots
and runs. Beside it what a SET writes to the device, all of journal, pages and zeros counted.

Its peer is arithmetic: what the items take where each stands in the smallest slot, or in the
shortest runs, that hold it. A class has at least a segment of 1 MB in each partition, and a file
grows by 4 MB: of little data, or in many partitions, the files are that much larger.
"""

import glob
import os
import sys
import time

from bench import MB, Failure, Place, Server, options, print_table, progress

PAGE, SEGMENT = 4096, MB
HEADER, EXTENT = 24, 128 << 10
SLOTS = (64, 56, 50, 44, 40, 36, 32, 28, 25, 22, 20, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
SIZES = (100, 300, 1000, 3000, 20000, 200000)
REFILL = 700
TURNS = (1500, 150, 3500, 50000)
NAME = 12 + len("000000:")  # digits, and the size they begin with


def slot_share(item):
    """Bytes of a segment that an item of this length takes."""
    slots = next(n for n in SLOTS if PAGE // n // 8 * 8 >= item)
    return PAGE / slots * 256 / 255


def run_share(length):
    pages = -(-length // PAGE)
    if pages > 8:
        step = 4 if pages > 16 else 2
        pages = -(-pages // step) * step
    return SEGMENT / (255 // pages)


class Group:
    """Keys of one size."""

    def __init__(self, name, size, count):
        self.name, self.size = f"{name:06d}:", size
        self.count = self.names = count

    def placed(self):
        item = HEADER + NAME + self.size
        if item <= PAGE:
            return self.count * slot_share(item)
        whole, rest = divmod(self.size, EXTENT)
        root = HEADER + NAME + 16 + 16 * (whole + (rest > 0))
        return self.count * (slot_share(root) + whole * run_share(EXTENT) +
                             (run_share(rest) if rest else 0))

    def live(self):
        return self.count * (NAME + self.size)


class Filler:
    def __init__(self, server):
        self.server, self.groups, self.rows = server, [], []
        self.sets, self.bytes_set, self.before = 0, 0, server.written_bytes()

    def command(self, group, words, *more, value=1):
        progress(f"{words.split()[0]} {group.name} {group.size} B")
        self.server.load("--command", words, "--keys", group.names, "--value", value, "--pipeline",
                         4 if value > PAGE else 16, "--connections", 8, *more, seconds=600)

    def set(self, group, size):
        group.size = size
        self.command(group, f"SET {group.name}%k %v", "--fill", value=size)
        group.count = group.names
        self.sets += group.count
        self.bytes_set += group.live()
        if group not in self.groups:
            self.groups.append(group)

    def remove(self, group, *more):
        before = self.keys()
        self.command(group, f"DEL {group.name}%k", *more)
        group.count -= before - self.keys()

    def keys(self):
        return int(self.server.ask("DBSIZE").lstrip(":"))

    def settle(self, what):
        """A row of the table, when everything given up is free."""
        time.sleep(2.5)
        if self.keys() != sum(g.count for g in self.groups):
            raise Failure(f"{self.keys()} keys, {sum(g.count for g in self.groups)} were left")
        files = sum(os.path.getsize(f) for name in ("slabs-*", "extents")
                    for f in glob.glob(os.path.join(self.server.directory, name)))
        live, placed = sum(g.live() for g in self.groups), sum(g.placed() for g in self.groups)
        written = self.server.written_bytes() - self.before
        self.rows.append([
            what, f"{live / MB:.0f}", f"{placed / MB:.0f}", f"{files / MB:.0f}",
            f"{files / live:.2f}", f"{files / placed:.2f}",
            f"{written / self.sets:.0f}" if self.sets else "",
            f"{written / self.bytes_set:.2f}" if self.sets else "",
            str(self.server.number("segments_reclaimed"))])
        self.sets, self.bytes_set, self.before = 0, 0, self.server.written_bytes()


def work(filler, total):
    share = total // len(SIZES)
    groups = [Group(size, size, share // (NAME + size)) for size in SIZES]
    for group in groups:
        filler.set(group, group.size)
    filler.settle("filled with a mix")
    for group, size in zip(groups, SIZES[1:3] + (2000, 4000, 10000, 60000)):
        filler.set(group, size)
    filler.settle("each value resized")
    live = sum(g.live() for g in groups)
    for group in groups:
        filler.remove(group, "--ops", int(group.names * 0.693))
    filler.settle("half of them deleted at random")
    refill = Group(REFILL, REFILL, (live - sum(g.live() for g in groups)) // (NAME + REFILL))
    filler.set(refill, REFILL)
    filler.settle(f"refilled with {REFILL} B")
    for group in filler.groups:
        filler.remove(group, "--fill")
    for size in TURNS:
        group = Group(size, size, live // (NAME + size))
        filler.set(group, size)
        filler.settle(f"all of them {size} B")
        filler.remove(group, "--fill")


def main():
    opt = options(__doc__, data_mb=300, maxmemory="256mb", partitions=4)
    with Place(opt.build) as place:
        server = Server.vellum(place, maxmemory=opt.maxmemory, partitions=opt.partitions)
        filler = Filler(server)
        work(filler, opt.data_mb * MB)
        server.stop()
        print_table(f"Files beside the data in them, {opt.data_mb} MB at first",
                    ["", "live MB", "placed MB", "files MB", "files/live", "files/placed",
                     "written/SET", "written/byte", "segments reused"], filler.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
