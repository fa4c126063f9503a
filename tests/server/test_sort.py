"""SORT by undeclared keys; HyperLogLogs between two servers."""

import random
import select
import threading

import pytest
import redis

from harness import encode

pytestmark = pytest.mark.shared


def fill(client, count):
    client.rpush("l", *range(count))
    for i in range(count):
        client.set(f"weight{i}", (i * 7919) % count)
        client.hset(f"object{i}", mapping={"name": f"n{i}", "rank": -i})


def by_weight(count):
    return sorted(range(count), key=lambda i: (i * 7919) % count)


def test_patterns_lead_to_any_partition(server):
    client = server.client()
    fill(client, 100)
    order = [b"%d" % i for i in by_weight(100)]
    assert client.sort("l", by="weight*") == order
    assert client.sort("l", by="object*->rank", start=0, num=2) == [b"99", b"98"]
    names = [b"n" + i for i in order]
    assert client.sort("l", by="weight*", get="object*->name") == names
    assert client.sort("l", by="weight*", get="object*->name", store="to") == 100
    assert client.lrange("to", 0, -1) == names


def test_patterns_inside_of_transactions_and_scripts(server):
    client = server.client()
    fill(client, 20)
    order = [b"%d" % i for i in by_weight(20)]
    pipe = client.pipeline(transaction=True)
    pipe.set("weight0", 1000).sort("l", by="weight*").set("weight0", 0)
    assert pipe.execute()[1] == order[1:] + order[:1]
    script = "return redis.call('SORT', KEYS[1], 'BY', 'weight*')"
    assert client.eval(script, 1, "l") == order


def test_sets_come_in_one_order_in_scripts(client):
    client.sadd("s", *[b"%d" % i for i in range(40)], "b", "a")
    script = "return redis.call('SORT', KEYS[1], 'BY', 'nosort')"
    assert client.eval(script, 1, "s") == sorted(client.smembers("s"))


def test_weights_are_numbers_up_to_a_zero_byte(client):
    client.rpush("l", "a", "b", "c")
    client.mset({"wa": b"3\0" + b"x" * 2000, "wb": b"\0" * 2000, "wc": b"0" * 2000 + b"1"})
    assert client.sort("l", by="w*") == [b"b", b"c", b"a"]
    client.set("wb", b"x" * 2000)
    with pytest.raises(redis.ResponseError, match="can't be converted into double"):
        client.sort("l", by="w*")


@pytest.mark.parametrize("weight", ["1e400", "-1e400", "1e-400", "nan"])
def test_weights_beyond_a_double_are_refused(client, weight):
    client.rpush("l", "1", weight)
    with pytest.raises(redis.ResponseError, match="can't be converted into double"):
        client.sort("l")


def test_infinity_is_a_weight(client):
    client.rpush("l", "1", "inf", "-inf", "")
    assert client.sort("l") == [b"-inf", b"", b"1", b"inf"]


@pytest.mark.parametrize("key, write", [("l", "RPUSH l 3 1 2 4"), ("z", "ZADD z 1 3 2 1 3 2 4 4")])
def test_a_constant_pattern_keeps_the_order_or_reverses_it(client, key, write):
    """Of lists and sorted sets; LIMIT counts in that order, and STORE keeps it."""
    client.execute_command(*write.split())
    forward = [b"3", b"1", b"2", b"4"]
    for words, order in (("ASC", forward), ("DESC", forward[::-1]), ("DESC ASC", forward)):
        sort = ["SORT", key, "BY", "nosort", *words.split()]
        assert client.execute_command(*sort) == order
        for offset, count in ((0, 2), (1, 2), (3, 5), (0, 0), (4, 1), (1, -1)):
            end = None if count < 0 else offset + count
            limited = [*sort, "LIMIT", offset, count]
            assert client.execute_command(*limited) == order[offset:end]
            assert client.execute_command(*limited, "STORE", "to") == len(order[offset:end])
            assert client.lrange("to", 0, -1) == order[offset:end]
        assert client.execute_command(*sort, "GET", "#", "GET", "none*") == \
            [part for element in order for part in (element, None)]


def test_a_pattern_after_a_constant_one_does_not_sort(client):
    client.rpush("l", 3, 1, 2)
    client.mset({"w_1": 1, "w_2": 2, "w_3": 3})
    for words in ("BY nosort BY w_*", "BY w_* BY nosort", "BY nosort BY w_* ALPHA"):
        assert client.execute_command("SORT", "l", *words.split()) == [b"3", b"1", b"2"]
    client.sadd("s", "b", "c", "a")
    client.execute_command(*"SORT s BY nosort BY w_* STORE to".split())
    assert client.lrange("to", 0, -1) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("count", [1, 1024, 1025, 3000, 30000])
def test_many_are_sorted_in_steps(client, count):
    """In runs, and runs of runs; alike ones come in one order."""
    chance = random.Random(count)
    numbers = [chance.randrange(count) for _ in range(count)]
    elements = [b"%d" % i for i in numbers]
    for i in range(0, count, 5000):
        client.rpush("l", *elements[i:i + 5000])
    client.zadd("z", {element: i for i, element in enumerate(elements)})
    by_number = [b"%d" % i for i in sorted(numbers)]
    assert client.sort("l") == by_number
    assert client.sort("l", desc=True, start=1, num=5) == by_number[::-1][1:6]
    assert client.sort("l", alpha=True) == sorted(elements)
    assert client.sort("l", by="nosort") == elements
    assert client.sort("l", by="nosort", start=count // 2, num=3) == \
        elements[count // 2:count // 2 + 3]
    assert client.sort("l", by="nosort", desc=True) == elements[::-1]
    assert client.sort("l", by="nosort", desc=True, start=1, num=5) == elements[::-1][1:6]
    in_order = client.zrange("z", 0, -1)
    assert client.sort("z", by="nosort", get=["#", "none*"], desc=True) == \
        [part for element in in_order[::-1] for part in (element, None)]
    assert client.sort("z", by="nosort", desc=True, start=1, num=2) == in_order[::-1][1:3]
    pipe = client.pipeline(transaction=True)
    pipe.lpush("l", "-1").sort("l", store="to").sort("to", by="nosort", start=0, num=2)
    pipe.get("none")
    assert pipe.execute()[1:] == [count + 1, [b"-1", by_number[0]], None]
    assert client.lrange("to", 1, -1) == by_number


def test_others_have_their_turn_while_many_are_sorted(server, client):
    client.eval("for i = 1, 400 do local t = {} for j = 1, 1000 do t[j] = i * j % 997 end "
                "redis.call('rpush', KEYS[1], unpack(t)) end", 1, "l")
    with server.raw() as sorter, server.raw() as other:
        sorter.send(encode("SORT", "l", "LIMIT", "0", "1"))
        turns = 0
        while not select.select([sorter.socket], [], [], 0)[0]:
            assert other.call("PING") == b"+PONG\r\n"
            turns += 1
        assert sorter.reply() == b"*1\r\n$1\r\n0\r\n"
    assert turns > 10


def test_sorting_sees_all_of_a_write_or_nothing(server):
    writer, reader = server.client(), server.client()
    writer.rpush("l", "a", "b")
    writer.mset({"w:a": 1, "w:b": 2})
    done = threading.Event()

    def swap():
        for i in range(2000):
            writer.mset({"w:a": i, "w:b": i + 1})
        done.set()

    thread = threading.Thread(target=swap)
    thread.start()
    while not done.is_set():
        assert reader.sort("l", by="w:*") == [b"a", b"b"]
    thread.join()


def test_an_estimate_is_written_down(server):
    client = server.client()
    client.pfadd("h", *range(5000))
    assert client.getrange("h", 15, 15) == b"\x80"
    estimate = client.pfcount("h")
    assert abs(estimate - 5000) < 200
    assert client.getrange("h", 15, 15) == b"\x00"
    assert int.from_bytes(client.getrange("h", 8, 15), "little") == estimate
    pipe = client.pipeline(transaction=True)
    pipe.pfadd("h", "one more", "and another").pfcount("h")
    assert pipe.execute()[1] == client.pfcount("h")


def test_what_is_no_hyperloglog_is_refused(server):
    client = server.client()
    client.pfadd("h", "a")
    whole = client.get("h")
    client.lpush("l", 1)
    for value, error in ((b"short", "not a valid HyperLogLog"), (whole + b"\x00", "Corrupted"),
                         (whole[:-1], "Corrupted"), (b"HYLL\x02" + whole[5:], "not a valid"),
                         (b"HYLL\x00" + whole[5:], "not a valid")):
        client.set("bad", value)
        for words in (("PFADD", "bad", "x"), ("PFCOUNT", "bad", "h"), ("PFMERGE", "h", "bad")):
            with pytest.raises(redis.ResponseError, match=error):
                client.execute_command(*words)
    with pytest.raises(redis.ResponseError, match="wrong kind of value"):
        client.pfcount("l")
    assert client.get("h") == whole
