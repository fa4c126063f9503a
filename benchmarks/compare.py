#!/usr/bin/env python3
"""Our server beside stock Redis: rates, latencies, CPU and memory per key, SET under everysec and
always. Each server has one core, the load generator (bench-load) the other; they take turns.
--beside DIR: the server of another build tree too, as `before`.
"""

import sys
import time

from bench import (MB, PAIR_HEAD, Failure, Place, Server, in_turn, options, pair_rows, print_table,
                   progress, resident_bytes)

SERVER_CORE, LOAD_CORE = 1, 0


def steady(server, opt):
    """SETs until checkpoints keep pace with them: three are done, and the amount of dirty pages no
    longer rises. Returns what was seen, for the reader."""
    first, highest, since = server.number("checkpoints"), 0, time.monotonic()
    limit = time.monotonic() + opt.steady_limit
    while time.monotonic() < limit:
        server.load("--keys", opt.keys, "--value", 100, "--pipeline", 16, core=LOAD_CORE, seconds=1)
        info = server.info()
        dirty = int(info["dirty_bytes"])
        if dirty > highest * 1.05:
            highest, since = dirty, time.monotonic()
        done = int(info["checkpoints"]) - first
        if done >= 3 and time.monotonic() - since > 3:
            return f"{done} checkpoints, dirty pages up to {highest / MB:.0f} MB"
    return f"NOT steady after {opt.steady_limit} s: {done} checkpoints, {highest / MB:.0f} MB dirty"


def compare(servers, what, reads, pipeline, opt):
    """Rows for the table: ours, then Redis, then the other build."""
    what = f"{what}, pipeline {pipeline}"
    progress(what)
    measured = in_turn(servers, opt.rounds, lambda server: server.load(
        "--keys", opt.keys, "--value", 100, "--reads", reads, "--pipeline", pipeline,
        "--connections", opt.connections, core=LOAD_CORE, seconds=opt.seconds))
    absent = sum(f["absent"] for rounds in measured.values() for f in rounds)
    if absent:
        raise Failure(f"{absent:.0f} keys that were set were not found")
    return pair_rows(what, measured)


def measure_speed(place, opt):
    servers = [Server.vellum(place, core=SERVER_CORE, maxmemory=opt.maxmemory),
               Server.redis(place, core=SERVER_CORE)]
    if opt.beside:
        servers.append(Server.vellum(place, core=SERVER_CORE, build=opt.beside,
                                     maxmemory=opt.maxmemory))
    rows = []
    for server in servers:
        progress(f"preloading {server.name}")
        server.load("--fill", "--keys", opt.keys, "--value", 100, "--pipeline", 16, core=LOAD_CORE)
    for pipeline in (1, 16, 64):
        rows += compare(servers, "GET", 100, pipeline, opt)
    seen = [steady(server, opt) for server in servers if server.name != "redis"]
    for pipeline in (1, 16, 64):
        rows += compare(servers, "SET everysec", 0, pipeline, opt)
    for server in servers:
        server.ask("CONFIG", "SET", "appendfsync", "always")
    for pipeline in (1, 16):
        rows += compare(servers, "SET always", 0, pipeline, opt)
    info = servers[0].info()
    print_table(f"{opt.keys} keys of 16 B, values of 100 B, {opt.connections} connections; medians "
                f"of {opt.rounds} rounds of {opt.seconds:g} s in turn; one core each", PAIR_HEAD, rows)
    print(f"Before the SETs: {'; '.join(seen)}. After: {info['checkpoints']} checkpoints, "
          f"{int(info['dirty_bytes']) / MB:.0f} MB dirty, {info['throttled_commits']} commits "
          f"had waited. CPU: all threads of the server, user and system.")
    for server in servers:
        server.stop()


def memory_row(server, keys):
    resident = resident_bytes(server.process.pid)
    row = [server.name, keys, f"{resident / keys:.1f}"]
    if server.name == "redis":
        return row + ["", "", "", ""], resident
    info = server.info()
    index, frames = int(info["index_bytes"]), int(info["frame_bytes"])
    row += [f"{part / keys:.1f}" for part in (index, frames, resident - index - frames)]
    return row, resident


def measure_memory(place, opt):
    servers = [Server.vellum(place, core=SERVER_CORE, maxmemory=opt.memory_maxmemory),
               Server.redis(place, core=SERVER_CORE)]
    rows = []
    for keys in (opt.keys, 5 * opt.keys):
        measured = []
        for server in servers:
            progress(f"{keys} keys in {server.name}")
            server.load("--fill", "--keys", keys, "--value", 100, "--pipeline", 16, core=LOAD_CORE)
            measured.append(memory_row(server, keys))
        (ours, ours_bytes), (redis, redis_bytes) = measured
        rows += [ours + [f"{ours_bytes / redis_bytes:.2f}"], redis]
    print_table(f"Resident bytes per key, values of 100 B; ours with maxmemory "
                f"{opt.memory_maxmemory}: its frames are cache, and shrink where memory is less",
                ["", "keys", "resident", "index", "frames", "rest", "ratio"], rows)
    for server in servers:
        server.stop()


def main():
    opt = options(__doc__, keys=1000000, connections=50, rounds=3, seconds=3.0,
                  maxmemory="512mb", memory_maxmemory="1gb", steady_limit=60, beside="")
    with Place(opt.build) as place:
        measure_speed(place, opt)
        measure_memory(place, opt)
    return 0


if __name__ == "__main__":
    sys.exit(main())
