#!/usr/bin/env python3
"""Vellum by TCP and by RDMA channels of both modes beside perftest, in turns, in one run of the
test machine (tests/rdma/guest), where everything is emulated: only the ratios mean something. A
look at the clock costs there what it does on a real machine, since perftest does without one.

The server has one core for itself, what asks it the other. The kernel there counts a soft interrupt
to the process that it interrupts, and that is where Soft-RoCE does a card's work, and TCP the other
end's: `server CPU` is without what they took of the server's core, which is shown apart (an upper
bound for TCP, whose server is not always the one interrupted), and the sum too. With several
clients TCP's work for one command falls, and Soft-RoCE's does not: to send costs it 20 us and more
each time.

Without --inside it boots the machine and runs itself there.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOST, PORT = "10.9.0.1", 7600
SPIN_US = 2000  # emulated, a round trip takes some tens, and now and then some hundred
SERVER_CORE, CLIENT_CORE = "0", "1"
USUAL_SPIN_US = 50  # what the server does where nobody sets it


def boot(options):
    directory = os.path.join(TOP, options.build, "rdma", "bench")
    command = [os.path.join(TOP, "tests/rdma/guest"), "--quick-clock",
               "--limit", str(options.limit), directory,
               "/usr/bin/python3", os.path.abspath(__file__), "--inside",
               "--build", options.build, "--rounds", str(options.rounds),
               "--seconds", str(options.seconds)]
    code = subprocess.run(command, check=False).returncode
    output = os.path.join(directory, "output")
    if os.path.exists(output):
        with open(output, encoding="utf-8", errors="replace") as f:
            print(f.read(), end="")
    return code


def start_server(build):
    os.makedirs("/tmp/data", exist_ok=True)
    log = open("/tmp/server.log", "w", encoding="utf-8")
    server = subprocess.Popen(
        ["taskset", "-c", SERVER_CORE, os.path.join(TOP, build, "bin/vellum-server"),
         "--port", str(PORT), "--bind", HOST, "--protected-mode", "no",
         "--dir", "/tmp/data", "--maxmemory", "256mb",
         "--journal-size", "64mb", "--rdma", "yes", "--rdma-device", "rxe_a",
         "--rdma-spin-us", str(SPIN_US)], stdout=log, stderr=log)
    for _ in range(300):
        with open("/tmp/server.log", encoding="utf-8") as f:
            if "Ready" in f.read():
                return server
        time.sleep(0.1)
    sys.exit("the server does not start")


def ours(options, transport, clients, pipeline, size, *more):
    done = subprocess.run(
        ["taskset", "-c", CLIENT_CORE, os.path.join(TOP, options.build, "bin/bench-transports"),
         "--core", SERVER_CORE, "--transport", transport,
         "--host", HOST, "--port", str(PORT), "--clients", str(clients),
         "--pipeline", str(pipeline), "--size", str(size), "--seconds", str(options.seconds),
         "--spin", str(SPIN_US), *more], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    got = {name: float(value) for name, value in re.findall(r"(\w+)=(-?[\d.]+)", done.stdout)}
    got["sum_us"] = got["server_cpu_us"]
    got["server_cpu_us"] -= got["softirq_us"]
    return got


def perftest(tool, *arguments):
    """The line of figures that the tool's client prints. Where clocks are emulated it refuses now
    and then to report."""
    for _ in range(4):
        said = run_perftest(tool, *arguments)
        lines = [line.split() for line in said.splitlines() if re.match(r"\s*\d+\s+\d+", line)]
        if lines:
            return [float(word) for word in lines[-1]]
    return sys.exit(f"{tool}: {said}")


def run_perftest(tool, *rest):
    what = ["-x", "1", "-p", "7611", *rest]
    server = subprocess.Popen(["taskset", "-c", SERVER_CORE, tool, "-d", "rxe_a", *what],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    try:
        done = subprocess.run(["taskset", "-c", CLIENT_CORE, tool, "-d", "rxe_b", *what, HOST],
                              capture_output=True, text=True, timeout=60, check=False)
        server.wait(20)
    except subprocess.TimeoutExpired as late:  # either end may wait for the other for ever
        server.kill()
        server.wait()
        return f"{late}\n"
    return done.stdout + done.stderr


def set_spin(us):
    """The server's; what is measured sets it back."""
    subprocess.run(["redis-cli", "-h", HOST, "-p", str(PORT), "CONFIG", "SET", "rdma-spin-us",
                    str(us)], stdout=subprocess.DEVNULL, check=True, timeout=20)


def measure(options):
    """One round of everything: name -> figure."""
    latency = perftest("ib_send_lat", "-s", "64", "-n", "1000")[4]
    rate = perftest("ib_send_bw", "-s", "64", "-n", "5000")[4] * 1e6
    figures = {"perftest round trip us": 2 * latency, "perftest messages/s": rate}
    for transport in TRANSPORTS:
        for part in (small, long_values, idle):
            figures.update(part(options, transport))
            print(f"  {transport}, {part.__name__}", flush=True)  # silent machines are given up
    return figures


def cpu(what, got):
    return {f"{what} server CPU us": got["server_cpu_us"], f"{what} softirq us": got["softirq_us"],
            f"{what} CPU and softirq us": got["sum_us"]}


def small(options, transport):
    one = ours(options, transport, 1, 1, 64)
    many = ours(options, transport, 4, 16, 64)
    name = f"{transport} GET 64 B"
    figures = {
        f"{name} p50 us": one["p50_us"],
        f"{name} p99 us": one["p99_us"],
        **cpu(f"{name}, {clients_named(1)},", one),
        f"{transport} 4 clients, pipeline 16, ops/s": many["ops_s"],
        **cpu(f"{transport} 4 clients, pipeline 16,", many),
    }
    for clients in CLIENTS[1:]:
        several = ours(options, transport, clients, 1, 64)
        figures.update(cpu(f"{name}, {clients_named(clients)},", several))
    tenth = str(max(1, int(one["ops_s"] / 10)))
    for spin_us in (SPIN_US,) if transport == "tcp" else (SPIN_US, USUAL_SPIN_US):
        set_spin(spin_us)
        light = ours(options, transport, 1, 1, 64, "--rate", tenth)
        load = f"{name} at 10 % load" + (", usual spin," if spin_us == USUAL_SPIN_US else "")
        figures[f"{load} p50 us"] = light["p50_us"]
        figures.update(cpu(load, light))
    set_spin(SPIN_US)
    return figures


def long_values(options, transport):
    """By copy and, where there is a channel, by reference."""
    figures = {}
    ways = {"GET": ("get", ""), "SET": ("set", "")}
    if transport != "tcp":
        ways.update({"GET ref": ("get-into", " by reference"), "SET ref": ("set-from",
                                                                          " by reference")})
    for size, size_name in SIZES:
        for way, (command, suffix) in ways.items():
            done = ours(options, transport, 1, 1, size, "--command", command,
                        "--seconds", str(options.seconds / 2))
            name = f"{transport} {way[:3]} {size_name}{suffix}"
            figures[f"{name} p50 us"] = done["p50_us"]
            figures.update(cpu(name, done))
            figures[f"{name} copied bytes"] = done["copied_bytes"]
    return figures


def idle(options, transport):
    hundred = ours(options, transport, 100, 1, 64, "--command", "none", "--seconds", "3")
    figures = {f"{transport} CPU % with 100 idle clients": hundred["server_cpu_percent"]}
    if transport == "tcp":
        one = ours(options, transport, 1, 1, 64, "--command", "none", "--seconds", "3")
        figures["tcp CPU % with one idle client"] = one["server_cpu_percent"]
    else:
        figures[f"{transport} pinned bytes per idle channel"] = hundred["pinned_bytes"]
    return figures


TRANSPORTS = ("tcp", "rdma-send", "rdma-write")
CLIENTS = (1, 4, 16)
SIZES = ((4096, "4 KB"), (65536, "64 KB"), (1 << 20, "1 MB"))


def clients_named(count):
    return f"{count} client{'s' if count > 1 else ''}"


RATIOS = tuple((one.format(mode), other.format(mode), target)
               for mode in TRANSPORTS[1:] for one, other, target in (
    ("{} GET 64 B p50 us", "perftest round trip us", "at most 1.5"),
    ("{} GET 64 B p50 us", "tcp GET 64 B p50 us", "at most 0.4"),
    ("{} 4 clients, pipeline 16, ops/s", "perftest messages/s", "at least 0.5"),
    ("{} 4 clients, pipeline 16, ops/s", "tcp 4 clients, pipeline 16, ops/s", ""),
    *((f"{{}} GET 64 B, {clients_named(count)}, {what} us",
       f"tcp GET 64 B, {clients_named(count)}, {what} us", target)
      for count in CLIENTS for what, target in (
          ("server CPU", "at most 0.5" if count == 1 else ""), ("CPU and softirq", ""))),
    *((f"{{}} GET 64 B at 10 % load{spin} {what} us", f"tcp GET 64 B at 10 % load {what} us", "")
      for spin in ("", ", usual spin,") for what in ("server CPU", "CPU and softirq")),
    *((f"{{}} {command} {size}{how} p50 us", f"tcp {command} {size} p50 us", "")
      for command in ("GET", "SET") for _, size in SIZES for how in ("", " by reference")),
    *((f"{{}} {command} {size} by reference {what} us", f"tcp {command} {size} {what} us", "")
      for command in ("GET", "SET") for _, size in SIZES
      for what in ("server CPU", "CPU and softirq")),
))
BOUNDS = tuple((name.format(mode), most) for mode in TRANSPORTS[1:] for name, most in (
    *((f"{{}} {command} {size} by reference copied bytes", "0 of the value")
      for command in ("GET", "SET") for _, size in SIZES),
    ("{} pinned bytes per idle channel", "at most 65536"),
    ("{} CPU % with 100 idle clients", "no more than tcp's"),
))


def inside(options):
    server = start_server(options.build)
    rounds = []
    for number in range(options.rounds):
        began = time.monotonic()
        rounds.append(measure(options))
        print(f"round {number + 1}: {time.monotonic() - began:.0f} s", flush=True)
    for name in rounds[0]:
        values = [figures[name] for figures in rounds]
        print(f"{name:<56} {statistics.median(values):12.1f}   ({min(values):.1f} to "
              f"{max(values):.1f})")
    print(f"ratios, medians of {options.rounds} rounds:")
    for one, other, target in RATIOS:
        ratio = statistics.median(figures[one] / figures[other] for figures in rounds)
        print(f"{one + ' / ' + other:<102} {ratio:6.2f}   {target}")
    for name, most in BOUNDS:
        value = statistics.median(figures[name] for figures in rounds)
        print(f"{name:<96} {value:12.1f}   {most}")
    server.terminate()
    server.wait(30)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--limit", type=int, default=1200, help="seconds for the machine")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    return inside(options) if options.inside else boot(options)


if __name__ == "__main__":
    sys.exit(main())
