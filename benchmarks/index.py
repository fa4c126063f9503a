#!/usr/bin/env python3
"""The index's memory per key at ten key counts between two growth steps (an eighth apart), engine
alone, beside the 12 B per key it may take at the worst of them.
"""

import sys

from bench import MB, Engine, Place, options, print_table

LIMIT = 12.0
STEPS = 10


def main():
    opt = options(__doc__, keys=4000000, value=16, memory_mb=512)
    with Place(opt.build) as place:
        engine = Engine(place, place.fresh("engine"), opt.memory_mb * MB)
        rows, before, worst = [], 0, 0.0
        for step in range(STEPS):
            keys = round(opt.keys * (1 + step / (8 * (STEPS - 1))))
            engine.do("fill", **{"from": before, "items": keys, "value": opt.value})
            before = keys
            stats = engine.do("stats")
            index = stats["index_bytes"] / stats["keys"]
            worst = max(worst, index)
            rows.append([keys, f"{index:.2f}", f"{index / LIMIT:.2f}",
                         f"{stats['table_bytes'] / stats['keys']:.2f}"])
        engine.stop()
        print_table(f"Index bytes per key, worst {worst:.2f} of {LIMIT:g}; page tables and free "
                    f"slots apart (values of {opt.value} B)",
                    ["keys", "index B/key", "ratio to 12 B", "tables B/key"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
