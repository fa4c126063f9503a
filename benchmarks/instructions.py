#!/usr/bin/python3
"""benchmarks/instructions.py [--build DIR] [--beside DIR] [--only NAME,...]: instructions of the worker
per command, counted by valgrind's callgrind: a figure that a busy machine does not change. With
--beside a second build is measured, and their ratio printed. Each figure is the difference of two runs
of different length, so that starting and stopping do not count.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from bench import exit_on_signals

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEYS = 1000
FEW, MANY = 4_000, 24_000
PIPELINES = (1, 16)
START_LIMIT_S = 120

SCRIPT = "for i = 1, 10 do redis.call('SET', KEYS[1], ARGV[1]) end return redis.call('GET', KEYS[1])"

COMMANDS = {
    "GET": lambda n: ("GET", f"key:{n % KEYS:06d}"),
    "SET": lambda n: ("SET", f"key:{n % KEYS:06d}", "x" * 100),
    "INCR": lambda n: ("INCR", f"number:{n % KEYS:06d}"),
    "HSET": lambda n: ("HSET", f"hash:{n % KEYS:06d}", f"field:{n % 8}", "x" * 20),
    "HGET": lambda n: ("HGET", f"hash:{n % KEYS:06d}", f"field:{n % 8}"),
    "LPUSH": lambda n: ("LPUSH", "list", "x" * 20),
    "SADD": lambda n: ("SADD", f"set:{n % KEYS:06d}", f"member:{n % 8}"),
    "ZADD": lambda n: ("ZADD", f"zset:{n % KEYS:06d}", str(n % 100), f"member:{n % 8}"),
    "EVAL": lambda n: ("EVAL", SCRIPT, "1", f"key:{n % KEYS:06d}", "x" * 100),
    "PING": lambda n: ("PING",),
}


def encode(words):
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)


def connect(port):
    limit = time.monotonic() + START_LIMIT_S
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            connection.sendall(b"PING\r\n")
            if connection.recv(64) == b"+PONG\r\n":
                return connection
            connection.close()
        except OSError:
            pass
        if time.monotonic() > limit:
            sys.exit("the server does not answer")
        time.sleep(0.1)


def talk(connection, commands):
    """Sends them at once and reads as many replies; these are of one line, or of one bulk."""
    connection.sendall(b"".join(map(encode, commands)))
    data, found = b"", 0
    while found < len(commands):
        part = connection.recv(1 << 16)
        if not part:
            sys.exit("the server has closed the connection")
        data += part
        while True:
            end = data.find(b"\r\n")
            if end < 0:
                break
            if data[:1] == b"-":
                sys.exit(f"the server says {data[:end].decode()}")
            length = end + 2
            if data[:1] == b"$" and data[1:end] != b"-1":
                length += int(data[1:end]) + 2
            if len(data) < length:
                break
            data, found = data[length:], found + 1


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def thread_instructions(directory):
    """{thread: instructions}, as callgrind's files tell."""
    found = {}
    for name in os.listdir(directory):
        if name.startswith("callgrind.out-"):
            with open(os.path.join(directory, name), encoding="ascii", errors="replace") as file:
                total = re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M)
            found[name] = int(total.group(1)) if total else 0
    return found


def count(build, command, pipeline, times):
    directory = tempfile.mkdtemp(dir=os.path.join(TOP, "build"))
    port = free_port()
    server = subprocess.Popen(
        ["valgrind", "--tool=callgrind", "--separate-threads=yes",
         f"--callgrind-out-file={directory}/callgrind.out", os.path.join(build, "bin/vellum-server"),
         "--port", str(port), "--dir", os.path.join(directory, "data"), "--maxmemory", "256mb",
         "--journal-size", "64mb", "--workers", "1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connect(port) as connection:
            for first in range(0, KEYS, 100):  # what GET and HGET find
                talk(connection, [COMMANDS["SET"](n) for n in range(first, first + 100)])
                talk(connection, [COMMANDS["HSET"](n) for n in range(first, first + 100)])
            for n in range(0, times, pipeline):
                talk(connection, [command(i) for i in range(n, n + pipeline)])
        server.terminate()
        server.wait(120)
        return thread_instructions(directory)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
        shutil.rmtree(directory)


def per_command(build, command, pipeline):
    """Of the worker: the thread that had more to do the second time."""
    few, many = (count(build, command, pipeline, times) for times in (FEW, MANY))
    return max(many[thread] - few.get(thread, 0) for thread in many) / (MANY - FEW)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/lto")
    parser.add_argument("--beside", help="another build, to compare with")
    parser.add_argument("--only", default=",".join(COMMANDS))
    options = parser.parse_args()
    exit_on_signals()
    os.makedirs(os.path.join(TOP, "build"), exist_ok=True)
    print(f"{'command':8} {'pipeline':>8} {'instructions':>13}"
          + (f" {'beside':>9} {'ratio':>6}" if options.beside else ""), flush=True)
    for name in options.only.split(","):
        for pipeline in PIPELINES:
            figure = per_command(options.build, COMMANDS[name], pipeline)
            line = f"{name:8} {pipeline:8} {figure:13.0f}"
            if options.beside:
                other = per_command(options.beside, COMMANDS[name], pipeline)
                line += f" {other:9.0f} {figure / other:6.3f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
