"""What the benchmarks share: programs that are started and ended by their process ids, a server to
talk to, fio, CPU time from /proc, medians, and a table.

Data lie in a directory of their own under the build tree, on the real disk; it goes at the end.
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

MB = 1 << 20
START_LIMIT_S = 300
STOP_LIMIT_S = 120


def options(description, **defaults):
    """The command line: --build, and --NAME for each default given, with its type."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default="build", help="build tree to measure (build)")
    for name, value in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value,
                            help=f"({value})")
    return parser.parse_args()


class Failure(Exception):
    """A program under test did what it must not: hung, ended, or said it has failed."""


def exit_on_signals():
    """So that what was started is ended. Under nohup SIGHUP stays ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: sys.exit(1))


class Place:
    """A directory for one benchmark, with copies of the programs: a build meanwhile changes
    nothing. Ends what was started in it, and removes it."""

    def __init__(self, build):
        self.path = os.path.abspath(os.path.join(build, f"bench-{os.getpid()}"))
        self.running = []
        self.names = 0
        os.makedirs(self.path)
        for name in ("vellum-server", "bench-load", "bench-engine"):
            shutil.copy2(os.path.join(build, "bin", name), os.path.join(self.path, name))

    def program(self, name):
        return os.path.join(self.path, name)

    def fresh(self, name):
        self.names += 1
        path = os.path.join(self.path, f"{name}-{self.names}")
        os.makedirs(path)
        return path

    def start(self, command, **more):
        process = subprocess.Popen(command, start_new_session=True, **more)
        self.running.append(process)
        return process

    def forget(self, process):
        self.running.remove(process)

    def run(self, command, limit_s):
        """The stdout of a program that ends by itself."""
        process = self.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        try:
            out, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise Failure(f"{os.path.basename(command[0])} did not end in {limit_s} s") from None
        self.forget(process)
        if process.returncode != 0:
            raise Failure(f"{' '.join(command)}: {(errors or out).strip()}")
        return out

    def __enter__(self):
        exit_on_signals()
        return self

    def __exit__(self, kind, error, trace):
        for process in list(self.running):  # threads still forget theirs
            process.kill()
            process.wait()
        shutil.rmtree(self.path, ignore_errors=True)
        if kind is Failure:
            print(f"failed: {error}", file=sys.stderr)
            sys.exit(1)


def pin(command, core):
    return command if core is None else ["taskset", "-c", str(core)] + command


def words(line):
    """The numbers of a line of name=value."""
    if not line.strip() or line.startswith("error"):
        raise Failure(line.strip() or "no answer")
    return {name: float(value) for name, value in (word.split("=") for word in line.split())}


def cpu_seconds(pid):
    """Of all threads that live, user and system, as the scheduler counts: to the nanosecond."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_port():
    while True:
        port = random.randrange(7100, 8000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Server:
    """A server under test, ours or stock Redis."""

    def __init__(self, place, name, command, directory, core=None):
        self.place, self.name, self.port = place, name, free_port()
        self.directory = directory
        command = pin(command + ["--port", str(self.port), "--dir", directory], core)
        self.log = os.path.join(place.path, name + ".log")
        start = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = place.start(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() - start > START_LIMIT_S:
                raise Failure(f"{name} does not start: {self.last_lines()}")
            time.sleep(0.005)
        self.start_s = time.monotonic() - start

    @classmethod
    def vellum(cls, place, directory=None, core=None, build=None, **settings):
        """Of another build, if given: the one before."""
        name = "before" if build else "vellum"
        command = [os.path.join(build, "bin/vellum-server") if build else place.program("vellum-server")]
        for key, value in settings.items():
            command += ["--" + key.replace("_", "-"), str(value)]
        return cls(place, name, command, directory or place.fresh(name), core)

    @classmethod
    def redis(cls, place, core=None):
        program = shutil.which("redis-server")
        if program is None:
            # Debian's redis-tools has the same program under another name.
            program = os.path.join(place.path, "redis-server")
            if not os.path.exists(program):
                os.symlink(shutil.which("redis-check-rdb"), program)
        command = [program, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
                   "--auto-aof-rewrite-percentage", "0"]
        return cls(place, "redis", command, place.fresh("redis"), core)

    def last_lines(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return " / ".join(file.read().strip().split("\n")[-4:])

    def ask(self, *arguments):
        """One command; a status or a bulk as text."""
        request = f"*{len(arguments)}\r\n" + "".join(f"${len(a)}\r\n{a}\r\n" for a in arguments)
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as link:
            link.sendall(request.encode())
            with link.makefile("rb") as replies:
                line = replies.readline().decode()
                if line.startswith("$"):
                    return replies.read(int(line[1:])).decode()
        if line.startswith("-"):
            raise Failure(f"{self.name}: {line.strip()}")
        return line.strip()

    def answers(self):
        try:
            return self.ask("PING") == "+PONG"
        except (OSError, Failure):
            return False

    def info(self):
        lines = (line.strip() for line in self.ask("INFO").split("\n"))
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def number(self, field):
        return int(self.info()[field])

    def written_bytes(self):
        """To the device, as the kernel counts."""
        with open(f"/proc/{self.process.pid}/io", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("write_bytes"))

    def load(self, *arguments, core=None, seconds=3, limit_s=900):
        """Runs the load generator; its figures, and `cpu_us`: the server's CPU per operation."""
        command = [self.place.program("bench-load"), "--port", str(self.port), "--seconds",
                   str(seconds), "--seed", str(random.randrange(1 << 30))]
        before = cpu_seconds(self.process.pid)
        out = self.place.run(pin(command + [str(a) for a in arguments], core), limit_s)
        if self.process.poll() is not None:
            raise Failure(f"{self.name} has ended: {self.last_lines()}")
        figures = words(out)
        figures["cpu_us"] = (cpu_seconds(self.process.pid) - before) * 1e6 / figures["ops"]
        return figures

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.place.forget(self.process)

    def stop(self):
        """Gracefully; how long it took."""
        start = time.monotonic()
        self.process.terminate()
        try:
            self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} does not stop: {self.last_lines()}") from None
        self.place.forget(self.process)
        return time.monotonic() - start


class Engine:
    """The engine alone, in a program that obeys lines."""

    def __init__(self, place, directory, memory, core=None, ordered=False):
        self.place = place
        command = [place.program("bench-engine"), "--dir", directory, "--memory", str(memory)]
        command += ["--ordered"] * ordered
        self.log = os.path.join(place.path, "engine.log")
        with open(self.log, "ab") as log:
            self.process = place.start(pin(command, core), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=log, text=True)
        self.start_s = words(self.answer())["opened_s"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                raise Failure("the engine has ended: " + file.read()[-400:].strip())
        return line

    def do(self, job, **settings):
        text = " ".join([job] + [f"{name}={value}" for name, value in settings.items()])
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return words(self.answer())

    def stop(self):
        self.process.stdin.close()
        closed = words(self.answer())
        self.process.wait(STOP_LIMIT_S)
        self.place.forget(self.process)
        return closed["closed_s"]


def fio(place, limit_s=900, **settings):
    """fio with direct, asynchronous I/O; rates and CPU of reads and writes together, percentiles (us) of
    those of which there were more."""
    command = ["fio", "--name=peer", "--direct=1", "--ioengine=libaio", "--output-format=json",
               "--norandommap=1", "--randrepeat=0", "--fallocate=none"]
    command += [f"--{name}" if value is None else f"--{name}={value}"
                for name, value in settings.items()]
    out = place.run(command, limit_s)
    job = json.loads(out[out.index("{"):])["jobs"][0]
    sides = [job[side] for side in ("read", "write") if job[side]["total_ios"] > 0]
    ops = sum(side["total_ios"] for side in sides)
    seconds = max(side["runtime"] for side in sides) / 1000
    busiest = max(sides, key=lambda side: side["total_ios"])
    percentile = busiest["clat_ns"]["percentile"]
    return {
        "ops": ops, "seconds": seconds, "rate": ops / seconds,
        "bytes_per_s": sum(side["io_bytes"] for side in sides) / seconds,
        "p50_us": percentile["50.000000"] / 1e3, "p99_us": percentile["99.000000"] / 1e3,
        "p999_us": percentile["99.900000"] / 1e3,
        "max_us": max(side["clat_ns"]["max"] for side in sides) / 1e3,
        "cpu_us": (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e3 / ops,
    }


def medians(rounds):
    """Of each figure over the rounds, by itself."""
    return {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}


def spread(rounds, name):
    values = [figures[name] for figures in rounds]
    return f"{min(values) / 1e3:.0f}-{max(values) / 1e3:.0f}"


def in_turn(servers, rounds, job):
    """Collects what job(server) returns, so many times for each server, in turns."""
    measured = {server: [] for server in servers}
    for _ in range(rounds):
        for server in servers:
            measured[server].append(job(server))
    return measured


PAIR_HEAD = ["", "", "K ops/s", "(min-max)", "p50 us", "p99 us", "p99.9 us", "CPU us/op",
             "ops ratio", "CPU ratio"]


def pair_rows(what, measured):
    """Rows for a table with PAIR_HEAD: the first server's with its ratios to the second's, then the
    others', from the third on with the ratios of the first to them."""
    middle = {server: medians(rounds) for server, rounds in measured.items()}
    first, second, *more = middle
    rows = []
    for server, m in middle.items():
        row = [what, server.name, f"{m['rate'] / 1e3:.1f}", spread(measured[server], "rate")]
        row += [f"{m[name]:.0f}" for name in ("p50_us", "p99_us", "p999_us")]
        rows.append(row + [f"{m['cpu_us']:.2f}"])

    def ratios(other):
        return [f"{middle[first][name] / middle[other][name]:.2f}" for name in ("rate", "cpu_us")]

    for row, ratio in zip(rows, [ratios(second), ["", ""], *map(ratios, more)]):
        row += ratio
    return rows


def print_table(title, head, rows):
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows + [head]) for i in range(len(head))]
    print("\n" + title)
    for row in [head, ["-" * width for width in widths]] + rows:
        cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())
    sys.stdout.flush()


def progress(text):
    print(text, file=sys.stderr, flush=True)
