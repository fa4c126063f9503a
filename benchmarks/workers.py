#!/usr/bin/env python3
"""What a second worker costs: pipelined GETs over all keys, CPU per operation with --workers 2
against --workers 1, all data in the cache. With 2 workers half of the keys a connection asks for
have last been touched by the other thread. Nothing is pinned: where there are two cores, the load
generator shares them, so the rates say little and the CPU per operation says all.
"""

import sys

from bench import Place, Server, medians, options, print_table, progress, spread


def main():
    opt = options(__doc__, keys=1000000, connections=50, rounds=5, seconds=3.0, maxmemory="1gb")
    with Place(opt.build) as place:
        servers = {}
        for workers in (1, 2):
            progress(f"preloading, {workers} workers")
            servers[workers] = Server.vellum(place, workers=workers, maxmemory=opt.maxmemory)
            servers[workers].load("--fill", "--keys", opt.keys, "--value", 100, "--pipeline", 16)
        rows = []
        for pipeline in (16, 64):
            progress(f"pipeline {pipeline}")
            measured = {1: [], 2: []}
            for _ in range(opt.rounds):
                for workers, server in servers.items():
                    measured[workers].append(server.load(
                        "--keys", opt.keys, "--reads", 100, "--pipeline", pipeline,
                        "--connections", opt.connections, seconds=opt.seconds))
            one = medians(measured[1])
            for workers in (1, 2):
                m = medians(measured[workers])
                rows.append([f"GET, pipeline {pipeline}", workers, f"{m['rate'] / 1e3:.0f}",
                             spread(measured[workers], "rate"), f"{m['p50_us']:.0f}",
                             f"{m['p99_us']:.0f}", f"{m['cpu_us']:.3f}",
                             f"{m['cpu_us'] / one['cpu_us']:.2f}"])
        print_table(f"{opt.keys} keys, values of 100 B, {opt.connections} connections; medians of "
                    f"{opt.rounds} rounds of {opt.seconds:g} s in turn",
                    ["", "workers", "K ops/s", "(min-max)", "p50 us", "p99 us", "CPU us/op",
                     "CPU ratio"], rows)
        for server in servers.values():
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
