#!/usr/bin/env python3
"""How long a start takes: after kill -9 in the midst of writes, after a clean stop with its index
checkpoint taken away, and with it, beside fio reading the same files from end to end.
"""

import glob
import os
import statistics
import sys
import threading
import time

from bench import MB, Failure, Place, Server, fio, options, print_table, progress

VALUE = 984  # 1 KB in its slot
SYNC_S = 2.5  # everysec's promise, and a margin


def read_through(place, directory):
    """Seconds that fio takes for all files, one after the other."""
    files = sorted(f for f in glob.glob(os.path.join(directory, "*")) if os.path.getsize(f) >= MB)
    size = sum(os.path.getsize(f) for f in files)
    figures = fio(place, filename=":".join(files), rw="read", bs="1m", iodepth=8,
                  file_service_type="sequential", readonly=None)
    return size / figures["bytes_per_s"], size


def kill_while_writing(server, items):
    """kill -9 two seconds into SETs of keys that are all there: none may be missing afterwards."""
    def write():
        try:
            server.load("--keys", items, "--value", VALUE, "--pipeline", 16, seconds=60)
        except (Failure, OSError):
            pass  # the server was killed
    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(2)
    server.kill()
    writer.join()


KILL, LOST, WHOLE = "kill -9 while writing", "clean stop, slabs read", "clean stop with checkpoint"


def end(server, kind, items):
    """Seconds that the end took."""
    if kind == KILL:
        kill_while_writing(server, items)
        return 0.0
    took = server.stop()
    if kind == LOST:
        os.remove(os.path.join(server.directory, "index"))
    return took


def started(place, directory, items, opt):
    server = Server.vellum(place, directory, maxmemory=opt.maxmemory)
    keys = int(server.ask("DBSIZE").lstrip(":"))
    if keys != items:
        raise Failure(f"{keys} keys after the start, {items} were set")
    return server


def main():
    opt = options(__doc__, items=4000000, rounds=3, maxmemory="1gb")
    with Place(opt.build) as place:
        directory = place.fresh("vellum")
        server = Server.vellum(place, directory, maxmemory=opt.maxmemory)
        progress(f"filling {opt.items} items")
        server.load("--fill", "--keys", opt.items, "--value", VALUE, "--pipeline", 16)
        time.sleep(SYNC_S)
        measured = {KILL: [], LOST: [], WHOLE: []}
        for i in range(opt.rounds):
            for kind, rounds in measured.items():
                progress(f"round {i + 1}, {kind}")
                stop_s = end(server, kind, opt.items)
                peer_s, size = read_through(place, directory)
                server = started(place, directory, opt.items, opt)
                source = server.info()["recovered_from"]
                if (source == "checkpoint") != (kind == WHOLE):
                    raise Failure(f"{kind}: started from {source}")
                rounds.append((stop_s, server.start_s, server.number("recovered_commits"), peer_s,
                               size))
        server.stop()
        rows = []
        for kind, rounds in measured.items():
            stop_s, start_s, commits, peer_s, size = (statistics.median(c) for c in zip(*rounds))
            rows.append([kind, f"{stop_s:.2f}" if kind != KILL else "-", f"{start_s:.2f}", f"{commits:.0f}", f"{size / start_s / MB:.0f}",
                         f"{peer_s:.2f}", f"{size / peer_s / MB:.0f}", f"{peer_s / start_s:.2f}"])
        print_table(f"Start with {opt.items} items of 1 KB, {size / MB:.0f} MB of files, until the "
                    f"first PONG; medians of {opt.rounds} rounds",
                    ["after", "stop s", "start s", "commits redone", "MB/s", "fio s", "fio MB/s",
                     "fio s / start s"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
