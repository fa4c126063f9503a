"""Lists and sorted sets over their sockets, small and large: beyond the cache, over restarts."""

import random

import pytest

import harness

pytestmark = pytest.mark.shared


def push(client, key, elements, batch=200):
    pipe = client.pipeline(transaction=False)
    for i in range(0, len(elements), batch):
        pipe.rpush(key, *elements[i:i + batch])
    pipe.execute()


def add(client, key, scores, batch=200):
    pipe = client.pipeline(transaction=False)
    names = list(scores)
    for i in range(0, len(names), batch):
        pipe.zadd(key, {name: scores[name] for name in names[i:i + batch]})
    pipe.execute()


@pytest.mark.parametrize("size", [3, 4000])
def test_a_list_is_what_it_was_after_a_restart(server, client, size):
    elements = [b"element:%d" % i for i in range(size)]
    push(client, "l", elements)
    assert client.lpop("l") == elements.pop(0) and client.rpop("l") == elements.pop()
    assert client.lmove("l", "l", "LEFT", "RIGHT") == elements[0]
    elements.append(elements.pop(0))
    assert client.pexpire("l", 10**7)
    server.restart()
    client = server.client()
    assert client.lrange("l", 0, -1) == elements and client.pttl("l") > 10**6
    for at in random.Random(1).sample(range(len(elements)), min(20, len(elements))):
        assert client.lindex("l", at) == elements[at]
        assert client.lpos("l", elements[at]) == at
    client.ltrim("l", 0, 0)
    assert client.lrange("l", 0, -1) == elements[:1]
    assert client.lrem("l", 0, elements[0]) == 1 and client.exists("l") == 0


@pytest.mark.parametrize("size", [3, 4000])
def test_a_sorted_set_is_what_it_was_after_a_restart(server, client, size):
    dice = random.Random(size)
    scores = {b"member:%d" % i: float(dice.randrange(size)) for i in range(size)}
    add(client, "z", scores)
    assert client.zincrby("z", -0.5, b"member:0") == scores[b"member:0"] - 0.5
    scores[b"member:0"] -= 0.5
    server.restart()
    client = server.client()
    order = sorted(scores.items(), key=lambda pair: (pair[1], pair[0]))
    assert client.zrange("z", 0, -1, withscores=True) == order
    for rank in dice.sample(range(size), min(20, size)):
        name, score = order[rank]
        assert client.zrank("z", name) == rank and client.zscore("z", name) == score
    assert client.zcount("z", 0, size) == sum(score >= 0 for score in scores.values())
    half = size // 2
    assert client.zremrangebyrank("z", 0, half - 1) == half
    assert client.zrange("z", 0, -1, withscores=True) == order[half:]
    assert dict(client.zscan_iter("z")) == dict(order[half:])


@pytest.mark.vellum
def test_a_list_longer_than_the_cache(make_server):
    server = make_server(maxmemory="96mb", maxmemory_clients="90mb")
    client = server.client()
    elements = [b"%07d" % i + b"x" * 1500 for i in range(20000)]
    push(client, "l", elements)
    client.config_set("maxmemory", 80 * 2**20)
    assert client.llen("l") == len(elements)
    assert client.lindex("l", 12345) == elements[12345]
    assert client.lrange("l", 0, -1) == elements
    assert client.lpos("l", elements[-1]) == len(elements) - 1


def test_pipelines_say_what_single_commands_would(server, client):
    """What is looked up ahead for a pipeline is a guess: the commands before may change all."""
    dice = harness.chance()
    scores = {b"m:%d" % i: float(dice.randrange(900)) for i in range(3000)}
    add(client, "z", scores)
    for _ in range(120):
        pipe, expected = client.pipeline(transaction=False), []
        for _ in range(16):
            name, score = b"m:%d" % dice.randrange(3300), float(dice.randrange(900))
            kind = dice.randrange(6)
            if kind == 0:
                pipe.zadd("z", {name: score})
                expected.append(int(name not in scores))
                scores[name] = score
            elif kind == 1:
                pipe.zadd("z", {name: score}, nx=True)
                expected.append(int(name not in scores))
                scores.setdefault(name, score)
            elif kind == 2:
                pipe.zrem("z", name)
                expected.append(int(scores.pop(name, None) is not None))
            elif kind == 3:
                pipe.zscore("z", name)
                expected.append(scores.get(name))
            else:
                pipe.execute_command("ZPOPMIN" if kind == 4 else "ZPOPMAX", "z")
                best = (min if kind == 4 else max)(scores.items(), key=lambda e: (e[1], e[0]))
                expected.append([best[0], b"%d" % best[1]])
                del scores[best[0]]
        assert pipe.execute() == expected
    pipe = client.pipeline(transaction=False)
    for command in (["ZADD", "z", "1", "a"], ["DEL", "z"], ["ZPOPMIN", "z"], ["HSET", "z", "a", "b"],
                    ["HGET", "z", "a"], ["ZADD", "z", "1", "a"], ["ZADD", "z"], ["HGET", "z", "x"]):
        pipe.execute_command(*command)
    said = pipe.execute(raise_on_error=False)
    assert said[:5] == [1, 1, [], 1, b"b"] and said[7] is None
    assert "WRONGTYPE" in str(said[5]) and "wrong number" in str(said[6])


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 2048, 2049, 5000])
def test_a_union_is_sorted_whatever_its_length(server, count):
    """It is sorted in runs of 1024, between which others have their turns."""
    chance = harness.chance()
    scores = {f"member:{n}": chance.choice([1, 2, 3, chance.random()]) for n in range(count)}
    client = server.client()
    client.delete("union", "other")
    client.zadd("union", scores)
    client.zadd("other", {"last": 9})
    scores["last"] = 9
    expected = sorted(((name.encode(), float(score)) for name, score in scores.items()),
                      key=lambda pair: pair[::-1])
    pipe = client.pipeline(transaction=True)
    pipe.zunion(["union", "other"], withscores=True)
    for reply in [client.zunion(["union", "other"], withscores=True), *pipe.execute()]:
        assert [tuple(pair) for pair in reply] == expected
