"""MEMORY: what it tells of the process."""

import pytest

from harness import encode, eventually
from test_command import decoded

pytestmark = pytest.mark.vellum

def stats_of(raw):
    raw.send(encode("MEMORY", "STATS"))
    flat = decoded(raw)
    return dict(zip(flat[::2], flat[1::2]))


def test_memory_stats_has_the_fields_of_redis(server, stock):
    with server.raw() as ours, stock.raw() as theirs:
        for raw in (ours, theirs):
            raw.call("SET", "k", "v")
            raw.call("SET", "l", "v", "EX", 1000)
            raw.call("SELECT", 3)
            raw.call("SET", "k", "v")
        found = stats_of(ours)
        assert list(found) == list(stats_of(theirs))
        assert found["db.0"][::2] == stats_of(theirs)["db.0"][::2]
        assert found["keys.count"] == 3
        main = [found[name][1] for name in ("db.0", "db.3")]
        assert main[1] > 0 and abs(main[0] - 2 * main[1]) <= 2


def test_memory_stats_are_those_of_info(server):
    client = server.client()
    for i in range(200):
        client.set(f"k{i}", "x" * 20000)
    with server.raw() as raw:
        raw.call("HELLO", 3)
        found, info = stats_of(raw), client.info("memory")
        for field, name in {"total.allocated": "used_memory", "peak.allocated": "used_memory_peak",
                            "dataset.bytes": "used_memory_dataset"}.items():
            assert 0.5 < found[field] / info[name] < 2
        assert found["overhead.total"] + found["dataset.bytes"] == found["total.allocated"]
        assert found["allocator.allocated"] <= found["allocator.active"]
        assert found["keys.bytes-per-key"] == found["total.allocated"] // 200
        assert 0 < float(found["peak.percentage"].lstrip(",")) <= 100


def test_memory_purge_and_malloc_stats(server):
    with server.raw() as raw:
        assert raw.call("MEMORY", "PURGE") == b"+OK\r\n"
        assert b"MB in blocks" in raw.call("MEMORY", "MALLOC-STATS")
        for name in ("STATS", "DOCTOR", "PURGE", "MALLOC-STATS", "HELP"):
            assert raw.call("MEMORY", name, "x").startswith(b"-ERR wrong number of arguments for 'memory|")


def test_memory_doctor_tells_what_is_there(make_server):
    server = make_server(maxmemory="64mb", maxmemory_clients="8mb")
    with server.raw() as raw, server.raw() as filler:
        report = raw.call("MEMORY", "DOCTOR")
        assert b"is bound to 64.0 MB" in report and b"Clients' buffers" not in report
        filler.send(b"*2\r\n$3\r\nGET\r\n$6000000\r\n" + b"x" * 5500000)
        eventually(lambda: b"Clients' buffers take" in raw.call("MEMORY", "DOCTOR"))
        assert b"From 8.0 MB on" in raw.call("MEMORY", "DOCTOR")
