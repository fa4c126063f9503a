"""Geo commands over their sockets: searches beyond the cache, against all members one by one."""

import math

import pytest
import redis

import harness

pytestmark = pytest.mark.shared

RADIUS_M = 6372797.560856


def metres(a, b):
    """By the haversine formula."""
    (x, y), (u, v) = (map(math.radians, point) for point in (a, b))
    across, along = math.sin((u - x) / 2), math.sin((v - y) / 2)
    return 2 * RADIUS_M * math.asin(math.sqrt(along ** 2 + math.cos(y) * math.cos(v) * across ** 2))


def plain(server):
    """A client that gives replies as they are."""
    client = server.client()
    client.set_response_callback("GEOSEARCH", lambda reply, **_: reply)
    return client


def fill(client, key, count, length):
    """Members of that length around a place, and where they are: a score is a position to within a
    metre."""
    dice = harness.chance()
    names = [b"%07d" % n + b"x" * (length - 7) for n in range(count)]
    pipe = client.pipeline(transaction=False)
    for start in range(0, count, 100):
        some = names[start:start + 100]
        pipe.execute_command("GEOADD", key, *(word for name in some for word in (
            dice.uniform(-30, 30), dice.uniform(-30, 30), name)))
        pipe.geopos(key, *some)
    replies = pipe.execute()
    assert sum(replies[::2]) == count
    return dict(zip(names, (place for places in replies[1::2] for place in places)))


@pytest.mark.parametrize("size", [20, 5000])
def test_positions_are_what_they_were_after_a_restart(server, client, size):
    places = fill(client, "g", size, 20)
    server.restart()
    client = server.client()
    names = list(places)[:50]
    for name, found in zip(names, client.geopos("g", *names)):
        assert found == places[name]
    a, b = names[:2]
    assert abs(client.geodist("g", a, b) - metres(places[a], places[b])) < 0.001


@pytest.mark.parametrize("count", [1, 1024, 3000])
def test_searches_inside_of_others(server, count):
    """In a transaction and in a script, where all of it is one piece."""
    client = plain(server)
    places = fill(client, "g", count, 200)
    expected = sorted(places, key=lambda name: metres((0, 0), places[name]))
    words = ["GEOSEARCH", "g", "FROMLONLAT", "0", "0", "BYRADIUS", "9000", "km"]
    pipe = client.pipeline(transaction=True)
    pipe.execute_command(*words, "ASC")
    pipe.execute_command(*words, "COUNT", "7")
    pipe.execute_command("GEOSEARCHSTORE", "d", *words[1:])
    pipe.execute_command("ZCARD", "d")
    assert pipe.execute() == [expected, expected[:7], count, count]
    script = "return redis.call(unpack(ARGV))"
    assert client.eval(script, 1, "g", *words, "ASC") == expected
    assert client.eval(script, 1, "g", *words, "COUNT", "7", "DESC") == expected[:-8:-1]
    assert sorted(client.eval(script, 1, "g", *words)) == sorted(expected)


@pytest.mark.vellum
def test_searches_beyond_the_cache(make_server):
    """A collection larger than the memory; results to be sorted take at most a third of that."""
    server = make_server(maxmemory="96mb", maxmemory_clients="90mb")
    client = plain(server)
    places = fill(client, "g", 24000, 1500)
    client.config_set("maxmemory", 80 * 2**20)
    everywhere = ["g", "FROMLONLAT", "1", "2", "BYRADIUS", "9000", "km"]
    assert set(client.execute_command("GEOSEARCH", *everywhere)) == places.keys()
    nearest = sorted(places, key=lambda name: metres((1, 2), places[name]))
    assert client.execute_command("GEOSEARCH", *everywhere, "COUNT", "20") == nearest[:20]
    assert client.execute_command("GEOSEARCH", *everywhere, "COUNT", "3", "DESC") == nearest[:-4:-1]
    near = client.execute_command("GEOSEARCH", "g", "FROMLONLAT", "1", "2", "BYRADIUS", "500", "km", "ASC")
    assert near == nearest[:len(near)] and len(near) > 50
    assert metres((1, 2), places[nearest[len(near)]]) > 499_000
    with pytest.raises(redis.ResponseError, match="OOM"):
        client.execute_command("GEOSEARCH", *everywhere, "ASC")
    client.config_set("maxmemory", 128 * 2**20)  # less than both collections together
    assert client.execute_command("GEOSEARCHSTORE", "d", *everywhere, "STOREDIST") == len(places)
    assert client.zrange("d", 0, 99) == nearest[:100]
    assert client.execute_command("GEOSEARCHSTORE", "d", *everywhere, "COUNT", "2000") == 2000
    assert set(client.zrange("d", 0, -1)) == set(nearest[:2000])
