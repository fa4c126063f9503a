#!/usr/bin/env python3
"""The engine beside fio on the same disk: YCSB A, B, C, E on data larger than the cache, device reads
per GET, bytes written per SET, durable SETs; and the reads once more through the server.

fio (direct, libaio, same depth) reads and writes 4 KB at random in a file as large as the data, as
many of each as the mix says. Its turn follows the engine's in each round. YCSB E is counted in keys shown,
beside fio's reads: items that follow one another in order are in pages apart.
"""

import os
import sys

from bench import (MB, Engine, Failure, Place, Server, fio, medians, options, print_table,
                   progress, spread)

ITEM = 1024     # in its slot: 24 bytes of header, 16 of key, the value
VALUE = ITEM - 40
WORKLOADS = [("YCSB C", 100), ("YCSB B", 95), ("YCSB A", 50)]
HEAD = ["", "", "K ops/s", "(min-max)", "ratio", "p50 us", "p99 us", "p99.9 us", "max ms",
        "CPU us/op", "reads/GET"]


def checked(figures):
    if figures.get("absent", 0):
        raise Failure(f"{figures['absent']:.0f} keys that were set were not found")
    return figures


def row(what, name, rounds, ratio, reads_per_get=""):
    m = medians(rounds)
    return [what, name, f"{m['rate'] / 1e3:.1f}", spread(rounds, "rate"), ratio,
            f"{m['p50_us']:.0f}", f"{m['p99_us']:.0f}", f"{m['p999_us']:.0f}",
            f"{m['max_us'] / 1e3:.1f}", f"{m['cpu_us']:.2f}", reads_per_get]


def rows_of_pair(what, name, ours, peers):
    ratio = f"{medians(ours)['rate'] / medians(peers)['rate']:.2f}"
    per_get = ""
    if "pages_read" in ours[0]:
        middle = medians(ours)
        if middle["reads"] == middle["ops"]:
            per_get = f"{middle['pages_read'] / middle['reads']:.2f}"
    return [row(what, name, ours, ratio, per_get), row("", "fio", peers, "")]


def peer_file(place, size):
    path = os.path.join(place.path, "fio.data")
    progress("laying out fio's file")
    fio(place, filename=path, size=size, rw="write", bs="1m", iodepth=8)
    return path


def fio_mix(place, path, reads, opt, size):
    mode = {100: {"rw": "randread"}}.get(reads, {"rw": "randrw", "rwmixread": reads})
    return fio(place, filename=path, size=size, bs="4k", iodepth=opt.depth,
               runtime=f"{opt.seconds:g}s", time_based=1, **mode)


def fill(place, items, memory, value, ordered=False):
    directory = place.fresh("engine")
    engine = Engine(place, directory, memory, ordered=ordered)
    progress(f"filling {items} items of {value} B")
    engine.do("fill", items=items, value=value)
    engine.do("quiet")
    return engine, directory


def ycsb(place, engine, path, items, opt):
    rows = []
    for name, reads in WORKLOADS:
        for zipfian in (0, 1):
            what = f"{name} {'zipfian' if zipfian else 'uniform'}"
            progress(what)
            settings = {"items": items, "value": VALUE, "reads": reads, "zipfian": zipfian,
                        "depth": opt.depth}
            engine.do("run", seconds=opt.seconds, **settings)  # the cache takes its shape
            ours, peers = [], []
            for _ in range(opt.rounds):
                ours.append(checked(engine.do("run", seconds=opt.seconds, **settings)))
                engine.do("quiet")
                peers.append(fio_mix(place, path, reads, opt, opt.data_mb * MB))
            rows += rows_of_pair(what, "engine", ours, peers)
    print_table(f"{items} items of {ITEM} B, {opt.data_mb} MB in {opt.memory_mb} MB of memory, depth "
                f"{opt.depth}; medians of {opt.rounds} rounds of {opt.seconds:g} s. fio: 4 KB at "
                "random, the same mix; its percentiles are those of reads or of writes, of which "
                "there were more", HEAD, rows)


def scans(place, path, items, opt):
    """In a directory with ordered keys."""
    engine, _ = fill(place, items, opt.memory_mb * MB, VALUE, ordered=True)
    rows = []
    for zipfian in (0, 1):
        what = f"YCSB E {'zipfian' if zipfian else 'uniform'}"
        progress(what)
        settings = {"items": items, "value": VALUE, "scans": 95, "zipfian": zipfian, "depth": opt.depth}
        engine.do("run", seconds=opt.seconds, **settings)
        ours, peers = [], []
        for _ in range(opt.rounds):
            figures = engine.do("run", seconds=opt.seconds, **settings)
            engine.do("quiet")
            figures["rate"] = figures["scanned"] / figures["seconds"]
            ours.append(figures)
            peers.append(fio_mix(place, path, 100, opt, opt.data_mb * MB))
        rows += rows_of_pair(what, "engine, keys", ours, peers)
    engine.stop()
    print_table(f"Scans of 1 to 100 keys in order with their values, and 5 % inserts; {items} items of {ITEM} B in "
                f"{opt.memory_mb} MB; rates of keys, latencies and CPU of operations", HEAD[:-1],
                [cells[:-1] for cells in rows])


def through_server(place, directory, path, items, opt):
    server = Server.vellum(place, directory, maxmemory=opt.memory_mb * MB)
    rows = []
    for zipfian in (0, 1):
        what = f"GET {'zipfian' if zipfian else 'uniform'}"
        progress(f"server, {what}")
        arguments = ["--keys", items, "--reads", 100, "--pipeline", 16, "--connections", 50]
        arguments += ["--zipfian"] * zipfian
        server.load(*arguments, seconds=opt.seconds)
        ours, peers = [], []
        for _ in range(opt.rounds):
            before = server.number("pages_read")
            figures = checked(server.load(*arguments, seconds=opt.seconds))
            figures.update(pages_read=server.number("pages_read") - before, reads=figures["ops"])
            ours.append(figures)
            peers.append(fio_mix(place, path, 100, opt, opt.data_mb * MB))
        rows += rows_of_pair(what, "server", ours, peers)
    print_table("The same reads through the server: 50 connections, pipelines of 16 (800 reads at a "
                f"time; fio {opt.depth})", HEAD, rows)
    server.stop()


def durable(place, engine, path, items, opt):
    """fio does the writes the engine did: one at a time, each as large as the journal's groups
    were and durable by itself; its rate is counted in the SETs that one group carried."""
    rows = []
    for depth in (1, opt.depth):
        what = f"SET always, depth {depth}"
        progress(what)
        ours, peers, sizes, shared = [], [], [], []
        for _ in range(opt.rounds):
            figures = engine.do("run", items=items, value=VALUE, reads=0, depth=depth,
                                sync="always", seconds=opt.seconds)
            engine.do("quiet")
            groups = figures["journal_groups"]
            size = max(4096, round(figures["journal_bytes"] / groups / 4096) * 4096)
            per_group = figures["ops"] / groups
            peer = fio(place, filename=path, size=min(256, opt.data_mb) * MB, rw="write", bs=size, iodepth=1,
                       sync="dsync", runtime=f"{opt.seconds:g}s", time_based=1)
            peer["rate"] *= per_group
            peer["cpu_us"] /= per_group
            ours.append(figures)
            peers.append(peer)
            sizes.append(size)
            shared.append(per_group)
        rows += rows_of_pair(f"{what} ({sorted(shared)[len(shared) // 2]:.1f} in "
                             f"{sorted(sizes)[len(sizes) // 2] // 1024} KB)", "engine", ours, peers)
    print_table(f"Durable SETs of {VALUE} B, {items} keys, all in the cache. fio: the journal's "
                "writes, O_DSYNC, one at a time, without the engine's write-behind", HEAD[:-1],
                [cells[:-1] for cells in rows])


def written(place, opt):
    """The whole of what the process wrote, by the kernel's count, while SETs went on for long
    enough that checkpoints keep pace."""
    rows = []
    memory = opt.small_memory_mb * MB
    for value in (100, 1024, 4096):
        items = opt.small_mb * MB // (value + 40)
        engine, _ = fill(place, items, memory, value)
        run = {"items": items, "value": value, "reads": 0, "depth": opt.depth}
        engine.do("run", seconds=opt.written_seconds, **run)
        figures = engine.do("run", seconds=opt.written_seconds, **run)
        ops = figures["ops"]
        journal = figures["journal_bytes"] / ops
        total = figures["device_bytes"] / ops
        rows.append([f"{value} B", f"{figures['rate'] / 1e3:.1f}", f"{journal:.0f}",
                     f"{figures['pages_written'] * 4096 / ops:.0f}", f"{total:.0f}",
                     f"{total / value:.2f}", f"{total / 4096:.2f}",
                     f"{figures['pages_read'] / ops:.2f}", f"{figures['checkpoints']:.0f}"])
        engine.stop()
    print_table(f"Bytes written to the device per SET, everysec, uniform, {opt.small_mb} MB in "
                f"{opt.small_memory_mb} MB; 'in pages': against one 4 KB page for each SET",
                ["value", "K SET/s", "journal", "pages", "in all", "in values", "in pages",
                 "reads/SET", "checkpoints"], rows)


def main():
    opt = options(__doc__, data_mb=2048, memory_mb=256, depth=64, rounds=3, seconds=4.0,
                  small_mb=512, small_memory_mb=64, written_seconds=8.0)
    items = opt.data_mb * MB // ITEM
    with Place(opt.build) as place:
        path = peer_file(place, opt.data_mb * MB)
        engine, directory = fill(place, items, opt.memory_mb * MB, VALUE)
        ycsb(place, engine, path, items, opt)
        engine.stop()
        through_server(place, directory, path, items, opt)
        scans(place, path, items, opt)
        few = opt.memory_mb * MB // ITEM // 4
        engine, _ = fill(place, few, opt.memory_mb * MB, VALUE)
        durable(place, engine, path, few, opt)
        engine.stop()
        written(place, opt)
    return 0


if __name__ == "__main__":
    sys.exit(main())
