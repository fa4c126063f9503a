#!/usr/bin/env python3
"""How long a transaction takes that reads and changes 8 keys, while a writer on many connections
keeps the same keys as busy as it can: once 8 keys out of data several times the memory, so that most
of them have to be read first; once 8 keys that are written all the time. Beside it the same
transactions without the writer. Nobody is overtaken in the queues of a key, so the longest times
must stay near what the device and the writer's batches take.
"""

import random
import socket
import sys
import threading
import time

from bench import Failure, Place, Server, options, print_table, progress

KEYS = 8


def request(chance, keys):
    """MULTI, a GET and a SETRANGE for each of the keys, EXEC."""
    names = [b"key:%012d" % n for n in chance.sample(range(keys), KEYS)]
    words = [[b"MULTI"]]
    words += [w for name in names for w in ([b"GET", name], [b"SETRANGE", name, b"0", b"exec"])]
    words += [[b"EXEC"]]
    return b"".join(b"*%d\r\n" % len(w) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in w)
                    for w in words)


def transactions(port, keys, seconds):
    """Milliseconds of each, rising."""
    chance, times = random.Random(1), []
    end = time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with link.makefile("rb") as replies:
            while time.monotonic() < end:
                data = request(chance, keys)
                begin = time.monotonic()
                link.sendall(data)
                for expected in [b"+OK\r\n"] + 2 * KEYS * [b"+QUEUED\r\n"] + [b"*16\r\n"]:
                    line = replies.readline()
                    if line != expected:
                        raise Failure(f"EXEC: {line!r}")
                for _ in range(2 * KEYS):
                    line = replies.readline()
                    if line[:1] == b"-":
                        raise Failure(f"in EXEC: {line!r}")
                    if line[:1] == b"$" and line != b"$-1\r\n":
                        replies.read(int(line[1:]) + 2)
                times.append((time.monotonic() - begin) * 1e3)
    return sorted(times)


def against_writer(server, keys, opt):
    figures = {}

    def write():
        figures.update(server.load("--keys", keys, "--reads", 0, "--value", opt.value,
                                   "--connections", opt.connections, "--pipeline", opt.pipeline,
                                   seconds=opt.seconds + 2))
    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(1)
    times = transactions(server.port, keys, opt.seconds)
    writer.join()
    if not figures:
        raise Failure("the writer has failed")
    return times, figures["rate"]


def row(name, times, rate):
    def at(share):
        return f"{times[min(len(times) - 1, int(len(times) * share))]:.2f}"
    return [name, f"{rate / 1e3:.0f}", len(times), at(0.5), at(0.99), at(0.999), f"{times[-1]:.2f}"]


def main():
    opt = options(__doc__, keys=400000, value=1000, connections=50, pipeline=4, seconds=10.0,
                  maxmemory="96mb")
    with Place(opt.build) as place:
        server = Server.vellum(place, workers=1, maxmemory=opt.maxmemory)
        progress("preloading")
        server.load("--fill", "--keys", opt.keys, "--value", opt.value, "--pipeline", 16)
        rows = []
        for name, keys in ((f"8 of {opt.keys} keys", opt.keys), ("the same 8 keys", KEYS)):
            progress(name)
            rows.append(row(name + ", alone", transactions(server.port, keys, opt.seconds), 0))
            rows.append(row(name + ", writer", *against_writer(server, keys, opt)))
        print_table(f"values of {opt.value} B, {opt.maxmemory} of memory; a writer with "
                    f"{opt.connections} connections, {opt.pipeline} SETs under way on each; "
                    f"{opt.seconds:g} s",
                    ["EXEC over", "K SET/s", "EXECs", "p50 ms", "p99 ms", "p99.9 ms", "longest"],
                    rows)
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
