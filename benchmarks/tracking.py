#!/usr/bin/env python3
"""What CLIENT TRACKING costs: server CPU per GET and SET while another client has every key in its
cache, and while the clients themselves are in tracking mode; beside each what the command takes where
nobody tracks. A SET of a key that is in the cache sends an invalidation. Stock Redis does the same in
turns, on the same core; the load generator is its redis-benchmark, on the other core.
"""

import socket
import sys
import threading

from bench import (Failure, Place, Server, cpu_seconds, in_turn, medians, options, pin, print_table,
                   progress)

SERVER_CORE, LOAD_CORE = 1, 0
BATCH = 1000
LIMIT_S = 600
TARGET = 1.3  # of what it takes where nobody tracks
# What is measured, beside what, and its name.
ROWS = (
    ("GET, tracked", "GET", "GET of keys in another's cache"),
    ("SET of others, tracked", "SET of others", "SET of other keys"),
    ("SET, tracked", "SET", "SET of keys in another's cache"),
    ("GET, tracking", "GET", "GET in tracking mode"),
    ("SET, tracking", "SET", "SET in tracking mode"),
)


class Cache:
    """A client that reads all keys in tracking mode, and then takes whatever the server pushes."""

    def __init__(self, server, keys):
        self.link = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        replies = self.link.makefile("rb")
        self.link.sendall(b"HELLO 3\r\nCLIENT TRACKING ON\r\nECHO ready\r\n")
        while replies.readline() != b"ready\r\n":
            pass
        for first in range(0, keys, BATCH):
            names = range(first, min(keys, first + BATCH))
            self.link.sendall(b"".join(b"STRLEN key:%012d\r\n" % n for n in names))
            for _ in names:
                if not replies.readline().startswith(b":"):
                    raise Failure(f"{server.name}: STRLEN has failed")
        self.link.settimeout(None)
        self.pushed = 0
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while data := self.link.recv(1 << 20):
            self.pushed += data.count(b"invalidate")

    def close(self):
        self.link.shutdown(socket.SHUT_RDWR)
        self.reader.join()
        self.link.close()


def cpu_us(server, opt, *words):
    """Of the server, per command."""
    benchmark = ["redis-benchmark", "-p", str(server.port), "-n", str(opt.ops), "-r", str(opt.keys), "-P",
                 "16", "-c", str(opt.connections), "-q", *words]
    before = cpu_seconds(server.process.pid)
    server.place.run(pin(benchmark, LOAD_CORE), LIMIT_S)
    return (cpu_seconds(server.process.pid) - before) * 1e6 / opt.ops


def measure(server, opt):
    """CPU of each row, in microseconds."""
    get, value = ("GET", "key:__rand_int__"), "x" * opt.value
    put, put_other = (("SET", name + ":__rand_int__", value) for name in ("key", "other"))
    own = ("-3", "--enable-tracking")
    figures = {"GET": cpu_us(server, opt, *get), "SET": cpu_us(server, opt, *put)}
    cpu_us(server, opt, *put_other)  # so that most exist
    figures["SET of others"] = cpu_us(server, opt, *put_other)
    cache = Cache(server, opt.keys)
    if server.number("tracking_total_keys") < opt.keys:
        raise Failure(f"{server.name}: not all keys are tracked")
    figures["GET, tracked"] = cpu_us(server, opt, *get)
    figures["SET of others, tracked"] = cpu_us(server, opt, *put_other)
    figures["SET, tracked"] = cpu_us(server, opt, *put)
    cache.close()
    figures["GET, tracking"] = cpu_us(server, opt, *own, *get)
    figures["SET, tracking"] = cpu_us(server, opt, *own, *put)
    return figures | {"pushed": cache.pushed}


def rows_of(measured):
    middle = {server: medians(rounds) for server, rounds in measured.items()}
    rows = []
    for name, plain, what in ROWS:
        row = [what]
        for figures in middle.values():
            row += [f"{figures[plain]:.2f}", f"{figures[name]:.2f}", f"{figures[name] / figures[plain]:.2f}"]
        rows.append(row)
    return rows, [int(figures["pushed"]) for figures in middle.values()]


def main():
    opt = options(__doc__, keys=1000000, ops=400000, value=100, connections=20, rounds=3)
    with Place(opt.build) as place:
        servers = [Server.vellum(place, core=SERVER_CORE, workers=1), Server.redis(place, SERVER_CORE)]
        for server in servers:
            progress(f"preloading {server.name}")
            server.load("--fill", "--keys", opt.keys, "--value", opt.value, "--pipeline", 16)
        measured = in_turn(servers, opt.rounds, lambda server: measure(server, opt))
        rows, pushed = rows_of(measured)
        print_table(f"{opt.keys} keys in a client's cache, pipeline 16, CPU us per command",
                    ["", "vellum", "tracked", "ratio", "redis", "tracked", "ratio"], rows)
        print(f"invalidations of {opt.ops} SETs: {pushed[0]}, of redis {pushed[1]}; target of the first "
              f"two ratios: {TARGET}")
        for server in servers:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
