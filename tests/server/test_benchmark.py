"""vellum-benchmark by TCP and by a Unix socket: that it does what it says, by the server's count."""

import csv
import io
import json
import os
import signal
import subprocess
import sys

import pytest

import harness

BENCHMARK = os.path.join(harness.TOP, "build", "bin", "vellum-benchmark")
LOAD = os.path.join(harness.TOP, "build", "bin", "bench-load")
pytestmark = [
    pytest.mark.skipif(not os.path.exists(BENCHMARK), reason="built only with libibverbs"),
    pytest.mark.slow, pytest.mark.vellum]


@pytest.fixture
def workers():
    """What is tested is the client: once is enough."""
    return 3


def run(server, *words, status=0):
    done = subprocess.run([BENCHMARK, "-p", str(server.port), *words], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def rows(server, *words):
    """The table; no complaint has come with it."""
    done = run(server, "--json", *words)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def both(make_server):
    """A server with a Unix socket as well."""
    server = make_server(unixsocket="socket")
    server.socket = os.path.join(server.data, "socket")
    return server


def calls(server, *names):
    stats = server.client().info("commandstats")
    return [stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in names]


def test_every_usual_test_does_as_many_commands_as_it_says(server):
    found = rows(server, "-n", "300", "-c", "5", "-r", "1000")
    assert len(found) == 19
    for row in found:
        assert row["operations"] == row["commands"] == row["server_calls"] == 300, row
        assert row["absent"] == 0 or row["name"] in ("spop", "zpopmin"), row
        assert row["odd"] == 0
        assert 0 < row["min_ms"] <= row["p50_ms"] <= row["p99_ms"] <= row["max_ms"], row
        assert row["client_cpu_us"] > 0


def test_transports_take_turns(both):
    found = rows(both, "-s", both.socket, "--transport", "tcp,unix", "-t", "get,set", "-n", "400",
                 "-d", "8,1kb", "-c", "4", "-P", "8", "--rounds", "3", "--threads", "2")
    assert [(row["name"], row["value_bytes"], row["transport"]) for row in found] == [
        (name, size, transport) for name in ("get", "set") for size in (8, 1024)
        for transport in ("tcp", "unix")]
    assert all(row["operations"] == row["server_calls"] == 400 for row in found)
    # Of the GETs' keys one was filled for each size.
    assert calls(both, "get", "set") == [1600, 1600 + 2]
    assert both.client().strlen("key:__rand_int__") == 1024


def test_no_transport_repeats_the_keys_of_another(both):
    run(both, "-s", both.socket, "--transport", "tcp,unix", "--rounds", "2", "-t", "sadd", "-q",
        "-n", "500", "-r", "1000000000")
    assert both.client().scard("myset") > 990


def test_lists_are_read_and_popped_in_the_size_of_the_row(server):
    client = server.client()
    client.rpush("mylist", *["older"] * 700)
    rows(server, "-t", "lpop,rpop", "-n", "40", "-d", "8,9")
    assert client.lrange("mylist", 0, -1) == [b"older"] * 700
    rows(server, "-t", "lrange_100,lrange_600", "-n", "1", "-d", "8,9")
    assert {len(element) for element in client.lrange("mylist", 0, 599)} == {9}


def test_scores_are_random_with_r(server):
    client = server.client()
    rows(server, "-t", "zadd", "-n", "50")
    assert client.zrange("myzset", 0, -1, withscores=True) == [(b"element:__rand_int__", 0)]
    rows(server, "-t", "zadd", "-n", "50", "-r", "1000000")
    assert len({score for _, score in client.zrange("myzset", 0, -1, withscores=True)}) > 40


MIXES = {"ycsb-a": (0.5, 0.5), "ycsb-b": (0.95, 0.05), "ycsb-c": (1, 0), "ycsb-d": (0.95, 0.05),
         "ycsb-f": (1, 0.5)}


def test_mixes_are_mixed_as_they_say(server):
    for name, (reads, writes) in MIXES.items():
        gets, sets = calls(server, "get", "set")
        [row] = rows(server, "-t", name, "-n", "4000", "-r", "500", "-d", "20", "-P", "4", "-c",
                     "5", "--threads", "2")
        gets, sets = [now - before for now, before in zip(calls(server, "get", "set"), (gets, sets))]
        sets -= 500  # the records
        assert row["operations"] == 4000 and row["server_calls"] == gets + sets
        assert abs(gets / 4000 - reads) < 0.05 and abs(sets / 4000 - writes) < 0.05, name
        assert row["absent"] == 0 and row["odd"] == 0
        inserted = sets if name == "ycsb-d" else 0
        assert server.client().dbsize() == 500 + inserted
        server.client().flushall()


def test_scans_of_ycsb_e(make_server):
    server = make_server(ordered_keys="yes")
    [row] = rows(server, "-t", "ycsb-e", "-n", "2000", "-r", "500", "-d", "20", "-P", "4", "-c", "5",
                 "--threads", "2")
    scans, sets = calls(server, "vellum.range", "set")
    sets -= 500  # the records
    assert row["operations"] == 2000 and row["server_calls"] == scans + sets
    assert abs(sets / 2000 - 0.05) < 0.02
    assert row["absent"] == 0 and row["odd"] == 0
    assert server.client().dbsize() == 500 + sets


def test_zipfian_keys_are_not_uniform(server):
    """The most popular of 500 records gets more than a tenth of the updates; uniform, 1 in 500."""
    client = server.client()
    client.config_set("notify-keyspace-events", "K$")
    events = client.pubsub()
    events.psubscribe("__keyspace@0__:key:*")
    run(server, "-t", "ycsb-a", "-n", "2000", "-r", "500", "-q")
    seen = {}
    for message in harness.heard(events, client):
        seen[message["channel"]] = seen.get(message["channel"], 0) + 1
    events.close()
    counts = sorted(seen.values(), reverse=True)
    assert counts[0] - 1 > 70 and counts[-1] < 10, counts[:5]


def test_open_loop_keeps_its_rate(server):
    [row] = rows(server, "-c", "2", "-n", "101", "--rate", "200", "-t", "ping_mbulk")
    assert row["operations"] == 101 and 0.45 < row["seconds"] < 5
    assert row["rate"] == 200 and row["ops_per_second"] < 230


def test_requests_beside_seconds_are_what_is_filled(server):
    [row] = rows(server, "-c", "2", "-n", "500", "--seconds", "0.2", "--rate", "100", "-t", "lpop")
    assert row["operations"] == 21 and server.client().llen("mylist") == 500 - 21


def test_threads_share_the_even_intervals(server):
    """By MONITOR: one ECHO each 50 ms, where two threads begin at the same time."""
    with server.client().monitor() as monitor:
        run(server, "-q", "-c", "2", "--threads", "2", "-n", "20", "--rate", "20", "echo", "due")
        times = []
        while len(times) < 20:
            event = monitor.next_command()
            if event["command"] == "echo due":
                times.append(event["time"])
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert gaps[5] > 0.02, gaps


def test_a_rate_below_one(server):
    [row] = rows(server, "-c", "1", "-n", "1", "--rate", "0.4", "-t", "ping_mbulk")
    assert row["rate"] == 0.4
    assert ",\"0.4\"," in run(server, "-c", "1", "-n", "1", "--rate", "0.4", "-t", "ping_mbulk", "--csv").stdout


def test_backlog_is_seen_in_open_loop(make_server):
    """Each request takes 20 ms, one is due every 10 ms: the last has waited for all before it."""
    server = make_server(enable_debug_command="yes")
    [row] = rows(server, "-c", "1", "-n", "30", "--rate", "100", "debug", "sleep", "0.02")
    assert row["max_ms"] > 250, row
    [row] = rows(server, "-c", "1", "-n", "10", "debug", "sleep", "0.02")
    assert 20 <= row["min_ms"] and row["server_calls"] == 10


def test_a_command_of_ones_own(server):
    run(server, "-q", "-n", "500", "-r", "20", "-d", "7", "setex", "own:__rand_int__", "100",
        "__data__")
    client = server.client()
    keys = client.keys("own:*")
    assert 15 <= len(keys) <= 20 and all(len(key) == 16 for key in keys)
    assert client.strlen(keys[0]) == 7 and client.ttl(keys[0]) > 0


def test_a_command_of_ones_own_in_several_sizes(server):
    def sizes(*words):
        return [row["value_bytes"] for row in rows(server, "-n", "10", "-d", "8,9", *words)]
    assert sizes("set", "key", "__data__") == [8, 9]
    assert sizes("get", "key") == [0]


def test_threads_give_up_once(server):
    for _ in range(30):
        said = run(server, "--threads", "16", "nonsense", status=1).stderr
        assert said.count("vellum-benchmark:") == 1, said


def test_what_redis_benchmark_takes_too(server):
    done = run(server, "-e", "-n", "10", "-r", "0", "-d", "0", "-P", "0", "--threads", "0", "-t", "ping",
               "set", "own:__rand_int__", "__data__")
    assert "-e has no effect" in done.stderr
    client = server.client()
    assert client.keys() == [b"own:000000000000"] and client.strlen("own:000000000000") == 1


def test_a_word_from_the_standard_input(server):
    subprocess.run([BENCHMARK, "-p", str(server.port), "-q", "-n", "3", "-c", "1", "-x", "lpush",
                    "piped"], input="a long\nword", text=True, check=True, capture_output=True,
                   timeout=60)
    assert server.client().lrange("piped", 0, -1) == [b"a long\nword"] * 3


def test_a_server_by_its_uri(make_server):
    server = make_server(requirepass="secret")
    for host in ("127.0.0.1", "[127.0.0.1]"):
        uri = f"redis://default:secret@{host}:{server.port}/3"
        done = subprocess.run([BENCHMARK, "-u", uri, "-q", "-n", "100", "-t", "set,lrange_100"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr == ""
    client = server.client(password="secret", db=3)
    assert sorted(client.keys()) == [b"key:__rand_int__", b"mylist"]
    client.config_set("requirepass", "c:@%d")
    uri = f"redis://%64efault:c%3a%40%25d@:{server.port}"
    done = subprocess.run([BENCHMARK, "-u", uri, "-q", "-n", "10", "-t", "set"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    for wrong in ("http://127.0.0.1", "redis://secret@127.0.0.1", "redis://127.0.0.1:0", "redis://[::1",
                  f"redis://:secret@[127.0.0.1]x:{server.port}",
                  f"redis://default:secr%6@127.0.0.1:{server.port}"):
        done = subprocess.run([BENCHMARK, "-u", wrong, "-n", "10", "-t", "set"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and done.stdout == ""


@pytest.mark.parametrize("words, has_begun", [
    (["-I", "-c", "7"], lambda client: len(client.client_list()) == 8),
    (["-l", "-n", "50", "-q", "-t", "set"],
     lambda client: client.info("commandstats").get("cmdstat_set", {"calls": 0})["calls"] > 200)])
def test_what_does_not_end(server, words, has_begun):
    process = subprocess.Popen([BENCHMARK, "-p", str(server.port), *words],
                               stdout=subprocess.DEVNULL)
    try:
        assert harness.eventually(lambda: has_begun(server.client()))
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_for_ever_takes_no_more_memory(server):
    """Results of 500 passes would take 17 MB."""
    process = subprocess.Popen([BENCHMARK, "-p", str(server.port), "-l", "-n", "1", "-c", "1",
                                "-q", "-t", "set"], stdout=subprocess.DEVNULL)
    try:
        assert harness.eventually(lambda: calls(server, "set")[0] > 20)
        before = harness.resident_bytes(process)
        assert harness.eventually(lambda: calls(server, "set")[0] > 520)
        assert harness.resident_bytes(process) - before < 4 << 20
    finally:
        process.kill()
        process.wait()


PLACE = """
import sys
import signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
sys.path.insert(0, "benchmarks")
from bench import Place
class Told(Place):
    def start(self, *command, **more):
        process = super().start(*command, **more)
        print(process.pid, flush=True)
        return process
with Told(sys.argv[1]) as place:
    place.run(["sleep", "60"], 60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_script_leaves_nothing(tmp_path, number):
    (tmp_path / "bin").mkdir()
    for name in ("vellum-server", "bench-load", "bench-engine"):
        (tmp_path / "bin" / name).touch()
    script = subprocess.Popen([sys.executable, "-c", PLACE, str(tmp_path)], cwd=harness.TOP,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        started = int(script.stdout.readline())
        script.send_signal(number)
        script.wait(30)
        assert not os.path.exists(f"/proc/{started}")
        assert list(tmp_path.iterdir()) == [tmp_path / "bin"]
    finally:
        script.kill()
        script.wait()


@pytest.mark.skipif(not os.path.exists(LOAD), reason="built only by make bench-tools")
def test_the_load_generator_tells_what_was_not_there(server):
    server.client().rpush("list", "one")
    for words, absent in (("GET nothing", 7), ("LRANGE nothing 0 -1", 7), ("BLPOP nothing 0.001", 7),
                          ("LRANGE list 0 -1", 0)):
        out = subprocess.run([LOAD, "--port", str(server.port), "--connections", "1", "--ops", "7",
                              "--command", words], capture_output=True, text=True, check=True,
                             timeout=60).stdout
        assert "ops=7 " in out and f" absent={absent} " in out, out


def test_bench_exec_sees_errors_in_the_transaction(server):
    server.client().lpush("key:000000000003", "of another type")
    code = f"import sys; sys.path.insert(0, 'benchmarks'); import exec; exec.transactions({server.port}, 8, 1)"
    done = subprocess.run([sys.executable, "-c", code], cwd=harness.TOP, capture_output=True, text=True,
                          timeout=60)
    assert "in EXEC: b'-WRONGTYPE" in done.stderr


def test_forms_of_the_report(both):
    text = run(both, "-t", "set", "-n", "100").stdout
    assert "====== SET ======" in text and "throughput summary:" in text
    text = run(both, "-t", "set", "-n", "100", "-q").stdout
    assert text.startswith("SET: ") and text.rstrip().endswith("msec")
    table = list(csv.DictReader(io.StringIO(run(
        both, "-s", both.socket, "--transport", "tcp,unix", "-t", "set", "-n", "100", "--csv").stdout)))
    assert [row["transport"] for row in table] == ["tcp", "unix"]
    assert all(float(row["rps"]) > 0 and row["server_calls"] == "100" for row in table)
    assert json.loads(run(both, "--json", "-t", "set", "-n", "100", "-q").stdout)[0]["test"] == "SET"
    picture = os.path.join(both.directory, "plot.png")
    run(both, "-t", "ping,set", "-n", "100", "-q", "--plot", picture)
    with open(picture, "rb") as f:
        assert f.read(8) == b"\x89PNG\r\n\x1a\n"


def test_a_plot_is_left_only_where_it_was_drawn(server):
    picture = os.path.join(server.directory, "plot.png")
    run(server, "--plot", picture, "nonsense", status=1)
    assert not os.path.exists(picture)
    with open(picture, "wb") as f:
        f.write(b"an older one")
    run(server, "--plot", picture, "nonsense", status=1)
    with open(picture, "rb") as f:
        assert f.read() == b"an older one"


def test_as_many_tests_as_there_is_room_for(server):
    names = ["set"] * 64
    assert len(rows(server, "-n", "1", "-c", "1", "-t", ",".join(names))) == 64
    names.append("get")
    assert "more than 64 tests" in run(server, "-t", ",".join(names), status=1).stderr


def test_what_it_cannot_do_it_says(server):
    for words, said in ((["-t", "ycsb-g"], "no test is called 'ycsb-g'"),
                        (["-t", "ycsb-e", "-n", "10"], "keeps no order of its keys"),
                        (["-n", "0"], "'0' is not a number from 1"),
                        (["--transport", "carrier-pigeon"], "no transport is called"),
                        (["--transport", "unix"], "-s tells the socket's path"),
                        (["--transport", "unix", "-s", "/nowhere"], "by unix: No such file"),
                        (["--transport", "tcp,unix,tcp"], "--transport names tcp twice"),
                        (["-t", ""], "-t wants a test"),
                        (["--seconds", "1e9"], "'1e9' is not a number from 1e-06 to 1e+06"),
                        (["--rate", "1e10"], "'1e10' is not a number from"),
                        (["--rate", "0"], "'0' is not a number from"),
                        (["--json", "-q", "--csv"], "either --csv or --json"),
                        (["--user", "somebody"], "--user wants a password"),
                        (["--plot", "/nowhere/plot.png"], "cannot be written to /nowhere/plot.png"),
                        (["--plot", "it's.png", "nonsense"], "may hold no quote"),
                        (["nonsense"], "the server says: ERR unknown command"),
                        (["-a", "wrong"], "ERR AUTH")):
        assert said in run(server, *words, status=1).stderr
    server.client().lpush("mylist", "of another type")
    server.client().set("myset", "of another type")
    assert "WRONGTYPE" in run(server, "-t", "sadd", "-n", "10", status=1).stderr
    help_text = run(server, "--help").stdout
    assert "--transport" in help_text and "ycsb-f" in help_text
