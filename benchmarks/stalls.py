#!/usr/bin/env python3
"""The longest GET while the server works hardest: while the store is filled and its index grows,
while all of it is overwritten, and while keys by the million expire. One connection asks for one key
at a time, of data several times the memory, so that most of the answers come from the device.

Its peer is fio, reading 4 KB at a time beside writers that write as much as the server wrote to the
device in that phase, half of it in large durable pieces as a journal is, half of it page by page. A
row of GETs without any other work shows what machine and network add by themselves.
"""

import os
import random
import socket
import sys
import threading
import time

from bench import MB, Failure, Place, Server, fio, options, print_table, progress

SLICE_S = 2
SETS_AT_ONCE = 1000


class Work(threading.Thread):
    """Something beside the GETs that are measured, and its failure if it has one."""

    def __init__(self, job):
        super().__init__(daemon=True)
        self.job, self.result, self.failure = job, None, None
        self.start()

    def run(self):
        try:
            self.result = self.job()
        except (Failure, OSError) as failure:
            self.failure = failure

    def outcome(self):
        self.join()
        if self.failure is not None:
            raise Failure(str(self.failure))
        return self.result


def get(server, keys):
    figures = server.load("--keys", keys, "--reads", 100, "--connections", 1, seconds=SLICE_S)
    if figures["absent"]:
        raise Failure(f"{figures['absent']:.0f} keys that were set were not found")
    return figures


def gets(server, keys, working):
    """Slices of GETs as long as something else goes on; each slice is a row of figures."""
    slices = [get(server, keys)]
    while working():
        slices.append(get(server, keys))
    return slices


def figures_of(slices):
    """Means of the percentiles, which a few slow slices do show in; the longest of all."""
    row = {name: sum(s[name] for s in slices) / len(slices) for name in ("p50_us", "p99_us", "p999_us")}
    row["max_us"] = max(s["max_us"] for s in slices)
    return row


def cells(figures):
    return [f"{figures['p50_us']:.0f}", f"{figures['p99_us']:.0f}", f"{figures['p999_us']:.0f}",
            f"{figures['max_us'] / 1e3:.1f}"]


def device_reads(place, path, size, rate, seconds):
    """fio's reader, beside writers of `rate` bytes a second."""
    writers = [Work(lambda settings=settings: fio(place, filename=path, size=size,
                                                  rate=max(4096, int(rate / 2)), time_based=1,
                                                  runtime=f"{seconds:g}s", **settings))
               for settings in ({"rw": "write", "bs": "128k", "sync": "dsync"},
                                {"rw": "randwrite", "bs": "4k", "iodepth": 32})]
    figures = fio(place, filename=path, size=size, rw="randread", bs="4k", iodepth=1, time_based=1,
                  runtime=f"{seconds:g}s")
    for writer in writers:
        writer.outcome()
    return figures


def phase(name, server, keys, job, peer_of):
    """Rows of the GETs beside `job`, and of fio's reads beside as much writing."""
    progress(name)
    before, begin = server.written_bytes(), time.monotonic()
    work = Work(job)
    ours = figures_of(gets(server, keys, work.is_alive))
    work.outcome()
    rate = (server.written_bytes() - before) / (time.monotonic() - begin)
    peer = peer_of(rate)
    over = (ours["max_us"] - peer["max_us"]) / 1e3
    return [[name, f"{rate / 1e6:.0f}"] + cells(ours) + [f"{over:+.1f}"],
            ["  fio", f"{rate / 1e6:.0f}"] + cells(peer) + [""]]


def set_to_expire(server, keys, seconds):
    """Each at a moment of its own within so many seconds from now."""
    chance = random.Random(1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as link:
        with link.makefile("rb") as replies:
            for first in range(0, keys, SETS_AT_ONCE):
                link.sendall(b"".join(
                    b"SET ex%012d %s PX %d\r\n" %
                    (n, 100 * b"v", chance.randrange(1000, int(seconds * 1000)))
                    for n in range(first, first + SETS_AT_ONCE)))
                for _ in range(SETS_AT_ONCE):
                    if replies.readline() != b"+OK\r\n":
                        raise Failure("SET with an expiry was refused")


def expire(server, opt):
    """Sets the keys, then waits until all of them have gone by themselves."""
    before = server.number("expired_keys")
    set_to_expire(server, opt.expiring, opt.expire_seconds)
    end = time.monotonic() + 2 * opt.expire_seconds
    while server.number("expired_keys") - before < opt.expiring:
        if time.monotonic() > end:
            raise Failure("keys whose time has passed are still there")
        time.sleep(0.5)


def main():
    opt = options(__doc__, store_mb=4096, value=1000, maxmemory="512mb", appendfsync="everysec",
                  overwrite_seconds=20, expiring=1000000, expire_seconds=60, fio_mb=2048)
    keys = opt.store_mb * MB // (opt.value + 40)
    asked = keys // 8
    with Place(opt.build) as place:
        path = os.path.join(place.path, "fio.data")
        progress("laying out fio's file")
        fio(place, filename=path, size=opt.fio_mb * MB, rw="write", bs="1m", iodepth=8)
        server = Server.vellum(place, maxmemory=opt.maxmemory, appendfsync=opt.appendfsync)
        sets = ["--value", opt.value, "--pipeline", 16]
        server.load("--fill", "--keys", asked, *sets)

        def peer_of(rate):
            return device_reads(place, path, opt.fio_mb * MB, rate, opt.overwrite_seconds)
        rows = phase(f"filled to {keys / 1e6:.1f} M keys", server, asked,
                     lambda: server.load("--fill", "--keys", keys, *sets), peer_of)
        rows += phase("overwritten", server, asked,
                      lambda: server.load("--keys", keys, "--reads", 0, *sets,
                                          seconds=opt.overwrite_seconds), peer_of)
        rows += phase(f"{opt.expiring / 1e6:g} M keys expire in {opt.expire_seconds} s", server, asked,
                      lambda: expire(server, opt), peer_of)
        progress("nothing beside")
        end = time.monotonic() + opt.overwrite_seconds
        alone = figures_of(gets(server, asked, lambda: time.monotonic() < end))
        rows.append(["nothing beside", "0"] + cells(alone) + [""])
        print_table(f"GETs of {opt.value} B, one at a time, {opt.store_mb} MB of data, maxmemory "
                    f"{opt.maxmemory}, {opt.appendfsync}",
                    ["while", "MB/s written", "p50 us", "p99 us", "p99.9 us", "longest ms",
                     "over fio ms"], rows)
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
