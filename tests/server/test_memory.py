"""The account of memory: what counts, and what is refused."""

import time

import pytest
import redis

from harness import encode

pytestmark = pytest.mark.vellum
MB = 2**20
BOUND = 64 * MB


def test_elements_that_memory_has_no_room_for_are_not_sorted(make_server):
    client = make_server(maxmemory=BOUND).client()
    client.rpush("l", b"e" * 10 * MB)
    client.rpush("l", b"f" * 10 * MB)
    with pytest.raises(redis.ResponseError, match="used memory > 'maxmemory'"):
        client.sort("l", alpha=True)
    assert client.llen("l") == 2


def test_what_a_client_waits_with_counts(make_server):
    server = make_server()
    with server.raw() as raw:
        raw.send(encode("CLIENT", "SETNAME", "waits") + encode("BLPOP", *range(1000), 0))
        client = server.client()
        end = time.monotonic() + 30
        while client.info("clients")["blocked_clients"] == 0 and time.monotonic() < end:
            time.sleep(0.02)
        listed = [entry for entry in client.client_list() if entry["name"] == "waits"]
        assert int(listed[0]["tot-mem"]) > 1000 * 190, listed
