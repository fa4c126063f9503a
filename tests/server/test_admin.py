"""What operators and client libraries ask a server about itself."""

import os
import random
import re
import socket
import stat
import threading
import time

import pytest
import redis

import harness
from harness import Raw, encode


# What dashboards and exporters read.
INFO_FIELDS = """
    redis_version redis_mode os arch_bits process_id run_id tcp_port uptime_in_seconds
    uptime_in_days executable config_file
    connected_clients blocked_clients maxclients
    used_memory used_memory_human used_memory_rss maxmemory maxmemory_policy mem_fragmentation_ratio
    loading aof_enabled
    total_connections_received total_commands_processed instantaneous_ops_per_sec
    total_net_input_bytes total_net_output_bytes rejected_connections expired_keys evicted_keys
    keyspace_hits keyspace_misses total_error_replies
    role connected_slaves master_replid master_repl_offset
    used_cpu_sys used_cpu_user
""".split()


def test_info_has_what_dashboards_read(server, stock):
    client = server.client()
    client.mset({"a": 1, "b": 2})
    client.get("a")
    client.get("nothing")
    client.expire("a", 1000)
    info = client.info()
    assert [field for field in INFO_FIELDS if field not in info] == []
    assert [field for field in INFO_FIELDS if field not in stock.client().info()] == []
    assert info["keyspace_hits"] == 1 and info["keyspace_misses"] == 1
    assert info["db0"]["keys"] == 2 and info["db0"]["expires"] == 1
    assert info["tcp_port"] == server.own_port and info["process_id"] == server.process.pid
    # INFO counts itself when it is done.
    assert info["total_commands_processed"] >= 4
    everything = client.info("everything")
    assert everything["cmdstat_get"]["calls"] == 2
    assert everything["cmdstat_mset"]["calls"] == 1


def test_info_by_section(server):
    client = server.client()
    text = client.execute_command("INFO", "memory").keys()
    assert "used_memory" in text and "role" not in text
    with server.raw() as raw:
        assert raw.call("INFO", "nosuchsection") == b"$0\r\n\r\n"
        both = raw.call("INFO", "cpu", "keyspace")
        assert b"# CPU\r\n" in both and b"# Keyspace\r\n" in both and b"# Memory" not in both


def test_config_resetstat(server):
    client = server.client()
    for _ in range(10):
        client.get("nothing")
    client.config_resetstat()
    info = client.info("all")
    assert info["keyspace_misses"] == 0 and "cmdstat_get" not in info


def figures(raw):
    """Of INFO, but the times."""
    text = raw.call("INFO", "stats", "commandstats", "errorstats").decode()
    found = dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)
    return {name: re.sub(r"usec=.*?,usec_per_call=.*?,", "", value)
            for name, value in found.items()}


SCRIPTS = [
    # script, errors by code, figures of GET or LPUSH
    ("redis.pcall('get')", {"ERR": 1}, {"get": "calls=0,rejected_calls=1,failed_calls=0"}),
    ("redis.pcall('get') redis.pcall('get')", {"ERR": 2},
     {"get": "calls=0,rejected_calls=2,failed_calls=0"}),
    ("return redis.call('get')", {"ERR": 1}, {"get": "calls=0,rejected_calls=1,failed_calls=0"}),
    ("redis.pcall('nosuch')", {"ERR": 1}, {}),
    ("redis.pcall('subscribe', 'a')", {"ERR": 1},
     {"subscribe": "calls=0,rejected_calls=1,failed_calls=0"}),
    ("redis.pcall()", {}, {}),
    ("return redis.call()", {"ERR": 1}, {}),
    ("redis.pcall('lpush', 'string', 'x')", {"WRONGTYPE": 1},
     {"lpush": "calls=1,rejected_calls=0,failed_calls=1"}),
    ("return redis.pcall('lpush', 'string', 'x')", {"WRONGTYPE": 1},
     {"lpush": "calls=1,rejected_calls=0,failed_calls=1"}),
    ("return redis.call('lpush', 'string', 'x')", {"WRONGTYPE": 1},
     {"lpush": "calls=1,rejected_calls=0,failed_calls=1"}),
    ("return redis.error_reply('MY error')", {"MY": 1}, {}),
]


@pytest.mark.parametrize("script, errors, commands", SCRIPTS)
def test_errors_inside_of_scripts_count_once(server, script, errors, commands):
    with server.raw() as raw:
        raw.call("SET", "string", "x")
        raw.call("CONFIG", "RESETSTAT")
        raw.call("EVAL", script, "0")
        found = figures(raw)
    assert {name[10:]: int(value[6:]) for name, value in found.items()
            if name.startswith("errorstat_")} == errors
    assert int(found["total_error_replies"]) == sum(errors.values())
    for name, value in commands.items():
        assert found["cmdstat_" + name] == value


@pytest.mark.vellum
@pytest.mark.sockets("its channel's server counts itself")
def test_rates_are_those_of_the_last_second(server):
    """Whoever asks, and however long ago somebody asked before."""
    client = server.client()
    pipe = client.pipeline(transaction=False)
    for _ in range(20_000):
        pipe.ping()
    client.info("stats")
    pipe.execute()
    rate = lambda: client.info("stats")["instantaneous_ops_per_sec"]  # noqa: E731
    harness.eventually(lambda: rate() > 1000)
    harness.eventually(lambda: rate() < 200)


@pytest.mark.vellum
def test_clean_pages_are_no_fragmentation(make_server):
    client = make_server(maxmemory="256mb").client()
    for i in range(200):
        client.set(f"k{i}", os.urandom(500_000))
    for i in range(200):
        client.get(f"k{i}")
    memory = client.info("memory")
    if memory["used_memory_rss"] == 0:
        pytest.skip("a sanitizer's memory says nothing")
    assert memory["used_memory_rss"] > 2 * memory["used_memory"]
    assert memory["mem_fragmentation_ratio"] < 2 and memory["rss_overhead_ratio"] < 3, memory


def test_commands_are_counted_where_they_run(server):
    """Those inside scripts and transactions, but none that was refused or only queued."""
    with server.raw() as raw:
        def processed():
            return int(re.search(rb"total_commands_processed:(\d+)", raw.call("INFO", "stats"))[1])

        for pipeline, commands in (([["NOSUCH"], ["GET"], ["GET", "k"]], 1),
                                   ([["EVAL", "redis.call('GET', 'k') redis.call('GET', 'k')", "0"]], 3),
                                   ([["MULTI"], ["GET", "k"], ["PING"], ["EXEC"]], 4),
                                   ([["MULTI"], ["GET", "k"], ["DISCARD"]], 2)):
            before = processed()
            for words in pipeline:
                raw.call(*words)
            assert processed() - before == commands + 1, pipeline


def test_calls_that_are_rejected_are_counted(server):
    with server.raw() as raw:
        raw.call("CONFIG", "RESETSTAT")
        for words in (("GET",), ("GET", "a", "b"), ("CLIENT", "ID", "x"), ("CLIENT", "NOSUCH"),
                      ("NOSUCH",), ("LPUSH", "k")):
            assert raw.call(*words).startswith(b"-ERR ")
        found = figures(raw)
    assert found["cmdstat_get"] == "calls=0,rejected_calls=2,failed_calls=0"
    assert found["cmdstat_client|id"] == "calls=0,rejected_calls=1,failed_calls=0"
    assert found["cmdstat_lpush"] == "calls=0,rejected_calls=1,failed_calls=0"
    assert "cmdstat_client" not in found
    assert found["errorstat_ERR"] == "count=6"


@pytest.mark.vellum
@pytest.mark.sockets("the proxy logs in before it asks for a channel")
def test_denied_logins_are_counted(server):
    with server.raw() as raw:
        raw.call("AUTH", "nobody", "x")
        raw.call("HELLO", "3", "AUTH", "nobody", "x")
        raw.call("AUTH", "default", "any")
        assert figures(raw)["acl_access_denied_auth"] == "2"


@pytest.mark.vellum
def test_changes_since_the_start_are_counted(server):
    def changes():
        return int(re.search(rb"rdb_changes_since_last_save:(\d+)",
                             raw.call("INFO", "persistence"))[1])

    with server.raw() as raw:
        raw.call("SETBIT", "b", "1", "0")
        before = changes()
        for value in (0, 0, 1, 1, 0):
            raw.call("SETBIT", "b", "1", value)
            raw.call("GET", "b")
            raw.call("DEL", "nothing")
        assert changes() == before + 2
        raw.call("CONFIG", "RESETSTAT")
        raw.call("SETBIT", "b", "1", "1")
        assert changes() == before + 3
    server.stop()
    server.start()
    with server.raw() as raw:
        assert changes() == 0


@pytest.mark.vellum
def test_rounds_of_the_event_loops_are_counted(server):
    def values():
        found = figures(raw)
        return [int(found[f"eventloop_{name}"])
                for name in ("cycles", "duration_sum", "duration_cmd_sum")] + [
            int(found[f"instantaneous_eventloop_{name}"])
            for name in ("cycles_per_sec", "duration_usec")]

    with server.raw() as raw:
        before = values()
        limit = time.monotonic() + 60
        while True:
            for i in range(500):
                raw.call("SET", "k", "x" * i)
            now = values()
            assert all(a <= b for a, b in zip(before[:3], now[:3]))
            if all(now) or time.monotonic() > limit:
                break
        assert now[0] >= before[0] + 500 and all(now), now
        assert now[2] <= now[1] * 64  # the time of commands is sampled
        raw.call("CONFIG", "RESETSTAT")
        assert values()[0] < now[0]


@pytest.mark.vellum
def test_info_of_ours(server):
    info = server.client().info("everything")
    assert info["redis_version"].startswith("7.2.") and info["vellum_version"]
    assert info["workers"] == server.workers


def test_config_set_is_all_or_nothing(server):
    with server.raw() as raw:
        before = raw.call("CONFIG", "GET", "maxclients")
        assert raw.call("CONFIG", "SET", "maxclients", "555", "timeout", "never").startswith(
            b"-ERR CONFIG SET failed (possibly related to argument 'timeout') - ")
        assert raw.call("CONFIG", "GET", "maxclients") == before
        assert raw.call("CONFIG", "SET", "nosuch", "1") == \
            b"-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n"
        assert raw.call("CONFIG", "SET", "maxclients", "555", "timeout", "77") == b"+OK\r\n"
        assert raw.call("CONFIG", "GET", "maxclients", "timeou?") in (
            b"*4\r\n$10\r\nmaxclients\r\n$3\r\n555\r\n$7\r\ntimeout\r\n$2\r\n77\r\n",
            b"*4\r\n$7\r\ntimeout\r\n$2\r\n77\r\n$10\r\nmaxclients\r\n$3\r\n555\r\n")


def test_config_get_names_a_directive_as_it_was_asked_for(server):
    with server.raw() as raw:
        for asked, names in ((["MAXMEMORY-samples"], {b"MAXMEMORY-samples"}),
                             (["Slaveof", "RePLicaof"], {b"Slaveof", b"RePLicaof"}),
                             (["TIME*t", "nosuch"], {b"timeout"}), ([r"time\out"], set())):
            assert set(raw.call("CONFIG", "GET", *asked).split(b"\r\n")[2::4]) == names


def test_protected_directives(server):
    with server.raw() as raw:
        for name in ("dir", "dbfilename"):
            assert raw.call("CONFIG", "SET", name, "x") == \
                b"-ERR CONFIG SET failed (possibly related to argument '%s') - can't set protected config\r\n" \
                % name.encode()


def test_protected_directives_may_be_allowed(make_server):
    with make_server(enable_protected_configs="local").raw() as raw:
        assert raw.call("CONFIG", "SET", "dbfilename", "x.rdb") == b"+OK\r\n"
        assert raw.call("CONFIG", "GET", "dbfilename").endswith(b"$5\r\nx.rdb\r\n")


def test_the_first_invalid_name_ends_config_set(server):
    """However many pairs there are: directives do not repeat, so it is not far."""
    failed = b"-ERR CONFIG SET failed (possibly related to argument '%s') - %s\r\n"
    unknown = b"-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n"
    many = ["timeout", "1"] * 100_000
    with server.raw() as raw:
        for words, error in (
                (["timeout", "1", "TIMEOUT", "2", "nosuch", "3"], failed % (b"TIMEOUT", b"duplicate parameter")),
                (["databases", "1", "nosuch", "2"], failed % (b"databases", b"can't set immutable config")),
                (["nosuch", "1", "databases", "2", "databases", "2"], unknown),
                (many + ["nosuch", "1"], failed % (b"timeout", b"duplicate parameter")),
                (["nosuch", "1"] + many, unknown)):
            assert raw.call("CONFIG", "SET", *words) == error


def is_open(port, address="127.0.0.1"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        return probe.connect_ex((address, port)) == 0


def quiet_port():
    """Where no other test's server, and no client's end of a connection, comes to be."""
    while True:
        port = random.randrange(20000, 30000)
        if not is_open(port):
            return port


@pytest.fixture
def mover(server):
    """A server whose ports are all its own, so that it can leave them and come back."""
    port = quiet_port()
    with server.raw() as raw:
        assert raw.call("CONFIG", "SET", "port", str(port)) == b"+OK\r\n"
    server.port = port
    return server


UNABLE = (b"-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this "
          b"port. Check server logs.\r\n")
UNBOUND = (b"-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to "
           b"specified addresses.\r\n")


@pytest.mark.sockets("about the server's own ports")
def test_config_set_of_the_port_moves_the_server(mover):
    old, new = mover.port, quiet_port()
    with mover.raw() as raw:
        for port, other in ((new, old), (old, new)) * 5:
            assert raw.call("CONFIG", "SET", "port", str(port), "timeout", "0") == b"+OK\r\n"
            assert is_open(port) and not is_open(other)
            with Raw(port) as fresh:
                assert fresh.call("CONFIG", "GET", "port").endswith(b"\r\n%d\r\n" % port)
                assert b"tcp_port:%d\r\n" % port in fresh.call("INFO", "server")
        assert raw.call("CONFIG", "SET", "port", "0") == b"+OK\r\n"
        assert not is_open(old) and not is_open(new)
        assert raw.call("CONFIG", "SET", "port", str(old)) == b"+OK\r\n"
        assert is_open(old)


@pytest.mark.sockets("about the server's own ports")
def test_a_port_that_is_taken_is_refused_and_nothing_changes(mover):
    with mover.raw() as raw, socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for words in (("port", str(port)), ("timeout", "77", "port", str(port))):
            assert raw.call("CONFIG", "SET", *words) == UNABLE
            assert is_open(mover.port)
            assert raw.call("CONFIG", "GET", "port").endswith(b"\r\n%d\r\n" % mover.port)
        assert raw.call("CONFIG", "GET", "timeout") == b"*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"
        assert raw.call("CONFIG", "SET", "bind", "192.0.2.1") == UNBOUND
        assert raw.call("CONFIG", "SET", "bind", "127.0.0.1 nowhere.invalid") == UNBOUND
        assert raw.call("CONFIG", "SET", "bind", "127.0.0.1 -nowhere.invalid") == UNBOUND
        with mover.raw() as fresh:
            assert fresh.call("CONFIG", "GET", "bind") == b"*2\r\n$4\r\nbind\r\n$6\r\n* -::*\r\n"


@pytest.mark.sockets("about the server's own ports")
def test_config_set_of_bind_moves_the_server(mover):
    with mover.raw() as raw:
        assert is_open(mover.port, "127.0.0.2")
        assert raw.call("CONFIG", "SET", "bind", "127.0.0.1 -192.0.2.1") == b"+OK\r\n"
        assert is_open(mover.port) and not is_open(mover.port, "127.0.0.2")
        assert raw.call("CONFIG", "SET", "bind", "") == b"+OK\r\n"
        assert not is_open(mover.port)
        new = quiet_port()
        assert raw.call("CONFIG", "SET", "bind", "127.0.0.2", "port", str(new)) == b"+OK\r\n"
        assert is_open(new, "127.0.0.2") and not is_open(new) and not is_open(mover.port)
        assert raw.call("CONFIG", "SET", "port", str(mover.port), "bind", "* -::*") == b"+OK\r\n"
        assert is_open(mover.port) and is_open(mover.port, "127.0.0.2")


@pytest.mark.sockets("about the server's own ports")
def test_many_move_the_server_while_clients_connect(mover):
    ports = [mover.port, quiet_port(), quiet_port()]
    stop, wrong = threading.Event(), []

    def move(i):
        with Raw(mover.port) as raw:
            started.wait()
            for turn in range(30):
                said = raw.call("CONFIG", "SET", "port", str(ports[(i + turn) % 3]))
                if said not in (b"+OK\r\n", UNABLE):
                    wrong.append(said)

    def connect():
        started.wait()
        while not stop.is_set():
            for port in ports:
                is_open(port)

    started = threading.Barrier(4)
    movers = [threading.Thread(target=move, args=(i,)) for i in range(3)]
    visitor = threading.Thread(target=connect)
    with mover.raw() as raw:
        for thread in movers + [visitor]:
            thread.start()
        for thread in movers:
            thread.join()
        stop.set()
        visitor.join()
        assert wrong == []
        assert raw.call("CONFIG", "SET", "port", str(mover.port)) == b"+OK\r\n"
        assert [is_open(port) for port in ports] == [True, False, False]


def oom_score(server):
    with open(f"/proc/{server.process.pid}/oom_score_adj", encoding="ascii") as file:
        return int(file.read())


def test_the_oom_score_follows_its_directives(make_server):
    server = make_server()
    before = oom_score(server)
    with server.raw() as raw:
        assert raw.call("CONFIG", "SET", "oom-score-adj-values", "1 2 3") == b"+OK\r\n"
        assert oom_score(server) == before
        assert raw.call("CONFIG", "SET", "oom-score-adj", "relative") == b"+OK\r\n"
        assert oom_score(server) == min(before + 1, 1000)
        assert raw.call("CONFIG", "SET", "oom-score-adj", "absolute", "oom-score-adj-values",
                        "999 2 3") == b"+OK\r\n"
        assert oom_score(server) == 999
        assert raw.call("CONFIG", "SET", "oom-score-adj-values", "2000 2 2001").startswith(b"-ERR")
        assert raw.call("CONFIG", "SET", "port", "1", "oom-score-adj-values", "1000 2 3",
                        "bind", "192.0.2.1") == UNABLE
        assert oom_score(server) == 999
        assert raw.call("CONFIG", "SET", "oom-score-adj", "no") == b"+OK\r\n"
        assert oom_score(server) == before
    started = make_server(oom_score_adj="absolute", oom_score_adj_values="998 999 1000")
    assert oom_score(started) == 998


@pytest.mark.sockets("the proxy logs in before it asks for a channel")
def test_config_set_of_a_password_takes_effect(server):
    with server.raw() as old, server.raw() as late:
        assert old.call("CONFIG", "SET", "requirepass", "pass") == b"+OK\r\n"
        assert old.call("PING") == b"+PONG\r\n"
        late.send(encode("AUTH", "pass") + encode("PING"))
        assert late.reply() == b"+OK\r\n"
    with server.raw() as new:
        assert new.call("PING") == b"-NOAUTH Authentication required.\r\n"


def test_client_list_and_kill_reach_every_worker(server):
    raws = [server.raw() for _ in range(9)]
    try:
        for number, raw in enumerate(raws):
            assert raw.call("CLIENT", "SETNAME", f"conn{number}") == b"+OK\r\n"
        client = server.client()
        listed = {c["name"]: c for c in client.client_list()}
        assert {f"conn{n}" for n in range(9)} <= listed.keys()
        assert len({c["id"] for c in listed.values()}) == len(listed)
        assert client.client_kill_filter(_id=listed["conn3"]["id"]) == 1
        assert raws[3].closed()
        assert client.client_kill_filter(_id=listed["conn3"]["id"]) == 0
        assert client.client_kill(listed["conn4"]["addr"]) is True
        assert raws[4].closed()
        with pytest.raises(redis.ResponseError, match="No such client"):
            client.client_kill("127.0.0.1:1")
        # All others of the normal type, but not the one that asks.
        assert client.client_kill_filter(_type="normal", skipme=True) == 7
        for number in (0, 1, 2, 5, 6, 7, 8):
            assert raws[number].closed()
        assert client.ping()
    finally:
        for raw in raws:
            raw.close()


def test_client_info_and_setinfo(server):
    with server.raw() as raw:
        assert raw.call("CLIENT", "SETNAME", "with space").startswith(b"-ERR Client names cannot")
        raw.call("CLIENT", "SETNAME", "me")
        raw.call("SELECT", "3")
        info = raw.call("CLIENT", "INFO")
        number = raw.call("CLIENT", "ID")[1:-2]
        assert b"id=%s " % number in info and b" name=me " in info and b" db=3 " in info
        assert b" cmd=client|info " in info
        assert raw.call("CLIENT", "GETNAME") == b"$2\r\nme\r\n"
        assert raw.call("RESET") == b"+RESET\r\n"
        assert raw.call("CLIENT", "GETNAME") == b"$-1\r\n"


@pytest.mark.vellum
def test_what_has_no_effect_is_logged_once(server):
    with server.raw() as raw:
        for words in (("appendonly", "no"), ("appendonly", "yes"), ("timeout", "0"),
                      ("appendonly", "no", "repl-timeout", "61"), ("repl-timeout", "62")):
            assert raw.call("CONFIG", "SET", *words) == b"+OK\r\n"
            noted = [server.said().count(f"directive '{name}' has no effect: there is no")
                     for name in ("appendonly", "repl-timeout")]
            assert noted == [int(words != ("appendonly", "no")), int("repl-timeout" in words)]
    assert server.said().count("has no effect") == 2


@pytest.mark.vellum
@pytest.mark.parametrize("words", [["--requirepass", "open sesame"], ["--requirepass 'open sesame'"]])
def test_the_command_line_tells_no_passwords(make_server, words):
    server = make_server(requirepass="", tls_key_file_pass="dear friend", masterauth="our friend")
    options = server.arguments
    server.stop()
    server.arguments = lambda: [*options(), *words]
    server.start()
    with open(f"/proc/{server.process.pid}/cmdline", "rb") as f:
        shown = f.read()
    assert b"friend" not in shown and b"sesame" not in shown and b"open" not in shown
    assert b"--requirepass" in shown and b"--tls-key-file-pass\0x" in shown
    with server.raw() as raw:
        assert raw.call("PING").startswith(b"-NOAUTH")
        assert raw.call("AUTH", "open sesame") == b"+OK\r\n"
        assert raw.call("CONFIG", "GET", "masterauth").endswith(b"\r\nour friend\r\n")


def test_unix_socket(make_server, tmp_path_factory):
    # Such a path may have a hundred characters at most: not in the build tree.
    path = str(tmp_path_factory.mktemp("s") / "s")
    server = make_server(unixsocket=path, unixsocketperm="700")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as local:
        local.connect(path)
        local.sendall(encode("SET", "k", "v") + encode("GET", "k"))
        time.sleep(0.1)
        assert local.recv(100) == b"+OK\r\n$1\r\nv\r\n"
    assert server.client().get("k") == b"v"


def own_address():
    """This machine's address towards the world, if it has one; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return None


def test_protected_mode_denies_strangers(make_server):
    address = own_address()
    if not address:
        pytest.skip("no address but the loopback's")
    server = make_server(bind="* -::*", protected_mode="yes")
    with socket.create_connection((address, server.port), timeout=10) as stranger:
        assert stranger.recv(1000).startswith(b"-DENIED ")
    server.client().config_set("protected-mode", "no")
    with socket.create_connection((address, server.port), timeout=10) as stranger:
        stranger.sendall(encode("PING"))
        assert stranger.recv(100) == b"+PONG\r\n"


def test_a_server_that_stands_alone(client):
    """What clients for sentinels, clusters and modules ask first."""
    assert client.execute_command("ROLE") == [b"master", 0, []]
    assert client.execute_command("MODULE LIST") == []
    for command in ("CLUSTER SLOTS", "CLUSTER NODES", "CLUSTER INFO", "CLUSTER HELP", "READONLY",
                    "READWRITE", "ASKING"):
        with pytest.raises(redis.ResponseError) as error:
            client.execute_command(*command.split())
        assert str(error.value) == "This instance has cluster support disabled"
