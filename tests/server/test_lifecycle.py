"""Starting, stopping, being killed: what is said, what is refused, what is kept."""

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time

import pytest

import harness
from harness import encode, eventually


@pytest.fixture
def directory():
    made = harness.fresh_directory()
    yield made
    shutil.rmtree(made, ignore_errors=True)


def refuses(directory, *arguments, lines=None):
    """Runs the server, which must give up at once with exit code 1; returns what it says."""
    program = harness.stock_redis() if harness.IS_REDIS else harness.PROGRAM
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=30,
                          cwd=directory, env=harness.ENVIRONMENT, input=lines)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert not harness.COMPLAINT.search(said), said
    return said


@pytest.mark.parametrize("arguments,reason", [
    (["--port", "seven"], "argument couldn't be parsed into an integer"),
    (["--port", "70000"], "argument must be between 0 and 65535 inclusive"),
    (["--no-such-option", "1"], "Bad directive or wrong number of arguments"),
    (["--maxmemory", "lots"], "argument must be a memory value"),
    (["--appendfsync", "sometimes"], "argument(s) must be one of the following"),
    (["--port"], "wrong number of arguments"),
])
def test_a_wrong_option_is_named(directory, arguments, reason):
    said = refuses(directory, *arguments)
    assert "FATAL CONFIG FILE ERROR" in said
    assert arguments[0][2:] in said and reason in said


@pytest.mark.vellum
@pytest.mark.parametrize("arguments", [["--workers", "0"], ["--workers", "many"],
                                       ["--partitions", "3"], ["--databases", "64"],
                                       ["--journal-size", "8388607"], ["--journal-size", "1mb"],
                                       ["--journal-size", "8589934593"], ["--tls-port", "6380"],
                                       ["--aclfile", "users.acl"], ["--cluster-enabled", "yes"],
                                       ["--replicaof", "127.0.0.1", "6379"]])
def test_a_wrong_option_of_ours_is_named(directory, arguments):
    assert arguments[0][2:] in refuses(directory, *arguments)
    assert os.listdir(directory) == []


def test_a_missing_configuration_file_is_named(directory):
    assert "/nowhere/vellum.conf" in refuses(directory, "/nowhere/vellum.conf")


def test_a_stop_after_many_halves_of_commands(make_server):
    """All that is kept for the next connection is there when the server ends."""
    server = make_server()
    client = server.client()
    crowd = [server.raw() for _ in range(100)]
    for raw in crowd:
        raw.send(b"PING\r\n*2\r\n$3\r\nGET\r\n")
        assert raw.exactly(7) == b"+PONG\r\n"
    assert client.ping()
    for raw in crowd:
        raw.send(b"$1\r\nk\r\n")
        assert raw.exactly(5) == b"$-1\r\n"
        raw.close()
    server.stop()


def test_a_wrong_line_of_the_file_is_shown(directory):
    path = os.path.join(directory, "wrong.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write("# fine\nport 7000\n\nmaxclients few\n")
    said = refuses(directory, path)
    assert "at line 4" in said and "'maxclients few'" in said


def test_a_taken_port_is_refused(server, directory):
    port = str(server.port)
    said = refuses(directory, "--port", port, "--dir", directory)
    assert "Address already in use" in said and port in said


@pytest.mark.vellum
def test_a_directory_serves_one_server(server):
    server.client().set("k", "v")
    said = refuses(server.directory, "--port", str(harness.free_port()), "--dir", server.data)
    assert server.data in said
    assert server.client().get("k") == b"v"


@pytest.fixture
def short_directory():
    """For the paths of Unix sockets, which may have a hundred characters at most."""
    with tempfile.TemporaryDirectory() as made:
        yield made


def answers_at(path):
    with socket.socket(socket.AF_UNIX) as local:
        local.connect(path)
        local.sendall(encode("PING"))
        return local.recv(100) == b"+PONG\r\n"


@pytest.mark.vellum
@pytest.mark.parametrize("differs", [None, "dir", "unixsocket"])
def test_a_second_start_leaves_the_running_server_its_files(make_server, short_directory, differs):
    path, pidfile = (os.path.join(short_directory, name) for name in ("socket", "pid"))
    server = make_server(unixsocket=path, pidfile=pidfile)
    options = {"port": "0", "dir": server.data, "unixsocket": path, "pidfile": pidfile}
    if differs is not None:
        options[differs] = os.path.join(short_directory, "other")
    said = refuses(server.directory, *[word for name, value in options.items()
                                       for word in ("--" + name, value)])
    assert ("in use by another server" if differs == "unixsocket" else "Address already in use") in said
    assert not os.path.exists(os.path.join(short_directory, "other")) or differs == "dir"
    assert answers_at(path)
    with open(pidfile, encoding="ascii") as file:
        assert int(file.read()) == server.process.pid
    server.stop()
    assert not os.path.exists(path) and not os.path.exists(pidfile)


@contextlib.contextmanager
def notified(monkeypatch, path):
    """What a server tells systemd, one message at a time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path.replace("@", "\0"))
        manager.settimeout(30)
        monkeypatch.setitem(harness.ENVIRONMENT, "NOTIFY_SOCKET", path)
        yield lambda: manager.recv(1000).decode().splitlines()


@pytest.mark.vellum
@pytest.mark.parametrize("supervised", ["systemd", "auto"])
@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_systemd_is_told(make_server, short_directory, monkeypatch, supervised, kind):
    path = os.path.join(short_directory, "notify") if kind == "path" else f"@vellum-{os.getpid()}"
    with notified(monkeypatch, path) as told:
        server = make_server(supervised=supervised, daemonize="yes")
        assert server.running(), "a supervised server is no daemon"
        assert "READY=1" in told()
        assert server.client().info("server")["process_supervised"] == "systemd"
        assert "has no effect" not in server.said()
        server.stop()
        assert "STOPPING=1" in told()


@pytest.mark.vellum
def test_systemd_is_told_only_if_asked_for_and_there(make_server, short_directory, monkeypatch):
    with notified(monkeypatch, os.path.join(short_directory, "notify")):
        server = make_server(supervised="no")
        assert server.client().info("server")["process_supervised"] == "no"
        server.stop()
        os.remove(os.path.join(short_directory, "notify"))
        server = make_server(supervised="systemd")
        assert server.client().ping() and "Cannot notify systemd" in server.said()
        monkeypatch.delitem(harness.ENVIRONMENT, "NOTIFY_SOCKET")
        server.restart()
        assert server.client().info("server")["process_supervised"] == "no"
        assert "NOTIFY_SOCKET not found" in server.said()


@pytest.mark.vellum
def test_upstart_lets_a_server_go_on_when_it_is_ready(directory, monkeypatch):
    monkeypatch.setitem(harness.ENVIRONMENT, "UPSTART_JOB", "vellum")
    port = harness.free_port()
    with subprocess.Popen([harness.PROGRAM, "--port", str(port), "--dir", "data", "--supervised", "auto"],
                          stdout=subprocess.DEVNULL, cwd=directory, env=harness.ENVIRONMENT) as process:
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        process.send_signal(signal.SIGCONT)
        with harness.Raw(port) as raw:
            assert b"process_supervised:upstart" in raw.call("INFO", "server")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@contextlib.contextmanager
def slow_start(directory, *arguments):
    """A server that makes a large journal first; yields it, and what tells what it has said."""
    path = os.path.join(directory, "slow-log")
    with open(path, "wb") as log:
        process = subprocess.Popen([harness.PROGRAM, "--dir", "slow", "--journal-size", "1gb", *arguments],
                                   stdout=log, stderr=log, cwd=directory, env=harness.ENVIRONMENT)

    def said():
        with open(path, encoding="ascii") as log:
            return log.read()

    try:
        yield process, said
    finally:
        process.kill()
        process.wait()


def first_connection(process, port):
    while process.poll() is None:
        with contextlib.suppress(ConnectionRefusedError):
            return harness.Raw(port)
        time.sleep(0.001)
    pytest.fail("it has ended")


@pytest.mark.vellum
def test_ports_are_taken_before_recovery(directory):
    """So that whoever comes later is refused; clients wait until the store is open."""
    port = harness.free_port()
    with slow_start(directory, "--port", str(port)) as (process, said):
        with first_connection(process, port) as raw:
            raw.send(encode("PING"))
            taken = refuses(directory, "--port", str(port), "--dir", "other")
            assert f":{port}: bind: Address already in use" in taken
            assert "Store open" not in said()
            assert raw.reply() == b"+PONG\r\n"
            assert "Store open" in said()


@pytest.mark.vellum
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_does_not_wait_for_recovery(directory, how):
    port = harness.free_port()
    arguments = "--port", str(port), "--unixsocket", "socket", "--pidfile", "pid"
    with slow_start(directory, *arguments) as (process, said):
        with first_connection(process, port) as raw:
            process.send_signal(how)
            assert process.wait(60) == 0
            assert "Store open" not in said()
            assert raw.closed()
    assert not {"socket", "pid"} & set(os.listdir(os.path.join(directory, "slow")))
    with slow_start(directory, *arguments) as (process, said):
        with first_connection(process, port) as raw:
            assert raw.call("PING") == b"+PONG\r\n"
        process.send_signal(how)
        assert process.wait(60) == 0 and "Store open" in said()


@pytest.mark.vellum
def test_a_unix_socket_is_no_file_of_others(directory):
    path = os.path.join(directory, "data", "letter")
    os.mkdir(os.path.dirname(path))
    with open(path, "w", encoding="ascii") as file:
        file.write("to my aunt")
    said = refuses(directory, "--port", "0", "--unixsocket", "letter", "--dir", "data")
    assert "Address already in use" in said
    with open(path, encoding="ascii") as file:
        assert file.read() == "to my aunt"


@pytest.mark.vellum
@pytest.mark.sockets("the proxy is started with the server")
def test_a_server_removes_no_names_that_others_have_taken(make_server, short_directory):
    path, pidfile = (os.path.join(short_directory, name) for name in ("socket", "pid"))
    server = make_server(unixsocket=path, pidfile=pidfile)
    server.kill9()
    server.start()  # over what was left
    assert answers_at(path)
    os.remove(path)
    with socket.socket(socket.AF_UNIX) as other, open(pidfile, "w", encoding="ascii") as file:
        other.bind(path)
        file.write("1\n")
    server.stop()
    assert os.path.exists(path) and os.path.exists(pidfile)


def modes(path):
    return {name: stat.S_IMODE(os.stat(os.path.join(path, name)).st_mode) for name in os.listdir(path)}


@pytest.mark.vellum
def test_data_are_nobody_elses(server):
    """Whoever could open the files could read the data, and prevent a start by locking them."""
    server.client().set("k", "v" * 100_000)
    assert stat.S_IMODE(os.stat(server.data).st_mode) == 0o700
    assert set(modes(server.data).values()) == {0o600}
    server.stop()
    assert set(modes(server.data).values()) == {0o600}
    os.chmod(os.path.join(server.data, "lock"), 0o644)
    os.chmod(server.data, 0o750)
    server.start()
    assert set(modes(server.data).values()) == {0o600}
    assert stat.S_IMODE(os.stat(server.data).st_mode) == 0o750, "what exists is as its owner wants it"


@pytest.mark.vellum
def test_a_directory_of_something_else_is_left_alone(directory):
    path = os.path.join(directory, "superblock")
    with open(path, "wb") as f:
        f.write(b"a letter to my aunt" * 1000)
    said = refuses(directory, "--port", str(harness.free_port()), "--dir", directory)
    assert directory in said
    with open(path, "rb") as f:
        assert f.read() == b"a letter to my aunt" * 1000


def test_a_data_directory_that_cannot_be_is_named(directory):
    path = os.path.join(directory, "file")
    with open(path, "w", encoding="ascii"):
        pass
    said = refuses(directory, "--port", str(harness.free_port()), "--dir", path)
    assert path in said


def quoted(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Names of files, and what would make another server of it than the test wants.
LEFT_OUT = {"port", "dir", "logfile", "pidfile", "bind", "unixsocket", "aclfile", "replicaof",
            "slaveof", "daemonize", "tls-port", "save", "cluster-enabled", "bind-source-addr"}


@contextlib.contextmanager
def started_by(path):
    """A server of one worker that reads this configuration file; it has to stop in order."""
    server = harness.Server(1)
    try:
        options = server.arguments
        server.arguments = lambda: [path, *options()]
        server.start()
        yield server
        server.stop()
    finally:
        server.remove()


def test_a_stock_configuration_is_accepted(directory):
    """A file with every directive that stock Redis reports, at its value there."""
    stock = harness.Server(program="redis-server")
    try:
        values = stock.start().client().config_get("*")
    finally:
        stock.remove()
    assert len(values) > 150
    path = os.path.join(directory, "stock.conf")
    with open(path, "w", encoding="ascii") as f:
        for name, value in values.items():
            multiple = name in ("client-output-buffer-limit", "oom-score-adj-values")
            if name not in LEFT_OUT:
                f.write(f"{name} {value if multiple else quoted(value)}\n")
        f.write('save 900 1\nsave 300 10\ndaemonize no\nbind 127.0.0.1 -::1\n')
    with started_by(path) as server:
        got = server.client().config_get("*")
        for name in values.keys() - LEFT_OUT:
            assert name in got
        assert got["slowlog-max-len"] == values["slowlog-max-len"]
        assert got["hash-max-listpack-entries"] == values["hash-max-listpack-entries"]


def test_the_stock_configuration_file_is_accepted():
    """The redis.conf that comes with Redis, as it is."""
    subprocess.run([os.path.join(harness.TOP, "tests", "conformance", "fetch")], check=True)
    path = os.path.join(harness.TOP, "build", "conformance", "redis", "redis.conf")
    with started_by(path) as server:
        assert server.client().set("k", "v")
        if not harness.IS_REDIS:
            # One line for each directive that says nothing here, and no more than that.
            assert server.said().count("'stop-writes-on-bgsave-error'") == 1, server.said()


def test_config_rewrite_survives_a_restart(directory):
    path = os.path.join(directory, "own.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write("# a comment to be kept\nmaxclients 77\n")
    with started_by(path) as server:
        client = server.client()
        assert client.config_get("maxclients") == {"maxclients": "77"}
        client.config_set("maxclients", 78)
        client.config_rewrite()
        with open(path, encoding="ascii") as f:
            text = f.read()
        assert text.startswith("# a comment to be kept\nmaxclients 78\n")
        server.restart()
        assert server.client().config_get("maxclients") == {"maxclients": "78"}


def test_lines_of_the_standard_input(directory):
    said = refuses(directory, "-", lines="timeout 7\nmaxclients few\n")
    assert "at line 2" in said and "'maxclients few'" in said


@pytest.mark.vellum
def test_config_rewrite_writes_no_lines_of_others(directory):
    """Who may change a list of words gets no other directive into the file by that."""
    path = os.path.join(directory, "own.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write("maxclients 77\n")
    with started_by(path) as server:
        with server.raw() as raw:
            for name in ("shutdown-on-sigint", "shutdown-on-sigterm", "bind"):
                for value in ('"now\nenable-debug-command yes\n"', '"a\\"b"',
                              '127.0.0.1 "-x\nenable-debug-command\\x09yes"'):
                    assert raw.call("CONFIG", "SET", name, value).startswith(b"-ERR CONFIG SET")
            assert raw.call("CONFIG", "SET", "shutdown-on-sigterm", "now nosave") == b"+OK\r\n"
            assert raw.call("CONFIG", "REWRITE") == b"+OK\r\n"
        with open(path, encoding="ascii") as f:
            text = f.read()
        assert "debug" not in text and "\nshutdown-on-sigterm nosave now\n" in text
        assert "debug" not in server.said()
        server.restart()
        got = server.client().config_get("enable-debug-command", "shutdown-on-sigterm")
        assert got == {"enable-debug-command": "no", "shutdown-on-sigterm": "nosave now"}


def test_names_are_relative_to_the_data_directory(make_server):
    server = make_server(logfile="a.log", pidfile="a.pid", unixsocket="s")
    with open(os.path.join(server.data, "a.pid"), encoding="ascii") as f:
        assert int(f.read()) == server.process.pid
    with open(os.path.join(server.data, "a.log"), encoding="ascii") as f:
        assert "to accept connections" in f.read()
    assert os.path.exists(os.path.join(server.data, "s"))
    server.stop()
    assert sorted({"a.pid", "s"} & set(os.listdir(server.data))) == []
    assert os.listdir(server.directory).count("a.log") == 0


def test_restart_keeps_keys_types_and_expiries(server):
    client = server.client()
    client.set("plain", "value")
    client.set("number", 41)
    client.incr("number")
    client.set("mortal", "value", ex=1000)
    client.set("gone", "value", px=150)
    client.set("deleted", "value")
    client.delete("deleted")
    client.setbit("bits", 1000, 1)
    client.rename("plain", "renamed")
    client.execute_command("SELECT 9")
    server.client(db=9).set("ninth", "9")
    time.sleep(0.3)
    for _ in range(2):
        server.restart()
        client = server.client()
        assert sorted(client.keys("*")) == [b"bits", b"mortal", b"number", b"renamed"]
        assert client.get("renamed") == b"value"
        assert client.get("number") == b"42"
        assert 990 <= client.ttl("mortal") <= 1000
        assert client.ttl("renamed") == -1
        assert client.getbit("bits", 1000) == 1 and client.strlen("bits") == 126
        deadline = time.monotonic() + 5  # what has expired is counted until it is deleted
        while client.dbsize() != 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert client.dbsize() == 4
        assert server.client(db=9).get("ninth") == b"9"


def started_from(client):
    return client.info("everything")["recovered_from"]


@pytest.mark.vellum
def test_a_start_reads_slabs_only_when_it_must(server):
    client = server.client()
    assert started_from(client) == "slabs"
    client.mset({f"k:{i}": "value" for i in range(300)})
    client.hset("hash", mapping={f"field:{i}": "value" * 20 for i in range(2000)})
    client.set("large", b"x" * 1_000_000)
    server.restart()
    client = server.client()
    assert started_from(client) == "checkpoint"
    assert client.info("everything")["recovered_items"] == 302
    assert client.dbsize() == 302 and client.hlen("hash") == 2000
    server.kill9()
    client = server.start().client()
    assert started_from(client) == "slabs"
    assert client.hget("hash", "field:77") == b"value" * 20 and client.strlen("large") == 1_000_000


def test_flushed_is_flushed_after_a_restart(server):
    client = server.client()
    for db in (0, 1):
        other = server.client(db=db)
        for i in range(500):
            other.set(f"k:{i}", "x" * i)
    client.flushdb()
    client.set("new", "1")
    server.restart()
    client = server.client()
    assert client.keys("*") == [b"new"] and server.client(db=1).dbsize() == 500
    client.flushall()
    server.restart()
    assert server.client().dbsize() == 0 and server.client(db=1).dbsize() == 0


def test_many_keys_survive_restarts_with_changes(server):
    """Several rounds of random changes to 5,000 keys, each checked whole after a restart."""
    chance = harness.chance()
    model = {}
    for _ in range(3):
        with server.raw() as raw:
            for _ in range(5):
                sent = []
                for _ in range(2000):
                    key = b"k:%d" % chance.randrange(5000)
                    if chance.random() < 0.25:
                        model.pop(key, None)
                        sent.append(encode("DEL", key))
                    else:
                        model[key] = b"%d:" % chance.randrange(10**9) * chance.randrange(60)
                        sent.append(encode("SET", key, model[key]))
                raw.send(b"".join(sent))
                for _ in sent:
                    assert raw.reply()[:1] in b"+:"
        server.restart()
        client = server.client()
        assert client.dbsize() == len(model)
        keys = [b"k:%d" % i for i in range(5000)]
        assert client.mget(keys) == [model.get(key) for key in keys]


@pytest.mark.vellum
def test_the_number_of_workers_may_change(workers):
    server = harness.Server(workers)
    try:
        server.start()
        client = server.client()
        for i in range(1000):
            client.set(f"k:{i}", i)
        for server.workers in (4, 1, 2):
            server.restart()
            client = server.client()
            assert client.mget([f"k:{i}" for i in range(1000)]) == \
                [b"%d" % i for i in range(1000)]
            client.set("k:5", 5)
        server.stop()
    finally:
        server.remove()


def write_until_stopped(port, stop, name, acknowledged, sent):
    """Two keys by one MSET each time, in turn over 50 pairs, one at a time."""
    try:
        with harness.Raw(port) as raw:
            for number in range(1, 10**9):
                if stop.is_set():
                    return
                pair = number % 50
                sent[name, pair] = number
                raw.send(encode("MSET", f"{name}:{pair}:a", number, f"{name}:{pair}:b", number))
                if raw.reply() != b"+OK\r\n":
                    return
                acknowledged[name, pair] = number
    except (OSError, EOFError):
        pass


def run_writers(server, seconds, least, end):
    """Until there are so many acknowledged, on a slow machine."""
    stop, acknowledged, sent = threading.Event(), {}, {}
    threads = [threading.Thread(target=write_until_stopped,
                                args=(server.port, stop, f"w{n}", acknowledged, sent))
               for n in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    limit = time.monotonic() + 30
    while len(acknowledged) <= least and time.monotonic() < limit:
        time.sleep(0.05)
    end()
    stop.set()
    for thread in threads:
        thread.join()
    return acknowledged, sent


def check_writers(server, acknowledged, sent):
    client = server.client()
    for (name, pair), number in acknowledged.items():
        a, b = client.mget(f"{name}:{pair}:a", f"{name}:{pair}:b")
        assert a == b, "half a transaction"
        assert a is not None and number <= int(a) <= sent[name, pair]


def test_kill_9_loses_nothing_acknowledged(make_server):
    server = make_server(appendfsync="always")
    total = 0
    for _ in range(4):
        acknowledged, sent = run_writers(server, 0.7, 12, server.kill9)
        server.start()
        check_writers(server, acknowledged, sent)
        total += len(acknowledged)
        server.client().flushall()
    assert total > 50


@pytest.mark.parametrize("size", [3000, 5000, 300_000])
def test_kill_9_tears_no_value(make_server, size):
    """One key written over and over with whole values of one number: what is there after a kill is
    one of them, whole, and not older than the last acknowledged."""
    server = make_server(appendfsync="always")
    for _ in range(3):
        acknowledged, sent = [0], [0]

        def write(port=server.port, acknowledged=acknowledged, sent=sent):
            try:
                with harness.Raw(port) as raw:
                    while True:
                        sent[0] += 1
                        raw.send(encode("SET", "k", b"%010d" % sent[0] * (size // 10)))
                        if raw.reply() != b"+OK\r\n":
                            return
                        acknowledged[0] = sent[0]
            except (OSError, EOFError):
                pass

        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.5)
        assert eventually(lambda acknowledged=acknowledged: acknowledged[0] > 0)
        server.kill9()
        writer.join()
        server.start()
        value = server.client().get("k")
        number = int(value[:10])
        assert value == b"%010d" % number * (size // 10)
        assert 0 < acknowledged[0] <= number <= sent[0]


def test_kill_9_brings_nothing_back(make_server):
    server = make_server(appendfsync="always")
    client = server.client()
    for i in range(300):
        client.set(f"k:{i}", "x" * i)
        client.set(f"mortal:{i}", "x", px=1)
    for i in range(0, 300, 3):
        client.delete(f"k:{i}")
    for i in range(1, 300, 3):
        client.set(f"k:{i}", "newer")
    server.kill9()
    server.start()
    client = server.client()
    for i in range(300):
        wanted = [None, b"newer", b"x" * i][i % 3]
        assert client.get(f"k:{i}") == wanted
        assert client.get(f"mortal:{i}") is None


@pytest.mark.parametrize("policy,seconds,lost", [("everysec", 3.5, 1), ("no", 1.5, 30)])
def test_kill_9_keeps_a_prefix(make_server, policy, seconds, lost):
    """Of what was acknowledged over several connections in turn, on whatever workers; of each
    transaction all, though its keys are in different partitions. Under `no` the values are so long
    that they fill groups of the journal, which are written at once, under `everysec` the clock has to."""
    size = 2000 if policy == "no" else 1

    def padded(number):
        return b"%0*d" % (size, number)

    server = make_server(appendfsync=policy)
    times = []
    with contextlib.ExitStack() as stack:
        raws = [stack.enter_context(server.raw()) for _ in range(4)]
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            number = len(times)
            words = "MSET", f"k:{number}", padded(number), f"twin of {number}", padded(number)
            assert raws[number % 4].call(*words) == b"+OK\r\n"
            times.append(time.monotonic())
            time.sleep(0.002)
    killed = time.monotonic()
    server.kill9()
    server.start()
    client = server.client()
    count = client.dbsize() // 2
    wanted = [padded(i) for i in range(count)]
    assert count > 0
    assert client.mget([f"k:{i}" for i in range(count)]) == wanted
    assert client.mget([f"twin of {i}" for i in range(count)]) == wanted
    assert client.dbsize() == 2 * count
    # And what a flush may take on a busy machine.
    assert count >= sum(1 for t in times if t < killed - lost - 1)


def test_sigterm_keeps_everything_acknowledged(server):
    acknowledged, sent = run_writers(server, 0.7, 50, server.stop)
    server.start()
    check_writers(server, acknowledged, sent)
    assert len(acknowledged) > 50


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_well(server, how):
    with server.raw() as idle, server.raw() as busy:
        idle.call("PING")
        busy.send(b"*2\r\n$3\r\nGET\r\n$100\r\nabc")
        process = server.process
        process.send_signal(how)
        assert process.wait(20) == 0
        assert idle.closed()


def tell_to_end(server, how):
    """A signal; or SHUTDOWN with these options, which a server that stops need not read."""
    if isinstance(how, signal.Signals):
        server.process.send_signal(how)
        return
    with contextlib.suppress(OSError, EOFError), harness.Raw(server.port) as raw:
        raw.send(encode("SHUTDOWN", *how))
        answer = raw.reply()
        assert how == ["ABORT"] and answer == b"-ERR No shutdown in progress.\r\n"


@pytest.mark.sockets("SHUTDOWN ends the proxy's connections, too")
@pytest.mark.parametrize("hows", [
    [signal.SIGTERM] * 2, [signal.SIGTERM] * 5, [signal.SIGINT, signal.SIGTERM, signal.SIGTERM],
    [["NOSAVE"], signal.SIGTERM, signal.SIGTERM], [signal.SIGTERM, ["NOSAVE"], signal.SIGTERM],
    [["ABORT"], signal.SIGTERM, ["ABORT"], signal.SIGTERM], [[], ["ABORT"], signal.SIGTERM]],
    ids=lambda hows: "-".join(how.name if isinstance(how, signal.Signals) else " ".join(
        ["SHUTDOWN", *how]) for how in hows))
def test_a_stop_that_is_asked_for_again_keeps_everything(server, hows):
    def end():
        for how in hows:
            tell_to_end(server, how)
        assert server.process.wait(60) == 0

    acknowledged, sent = run_writers(server, 0, 50, end)
    server.start()
    check_writers(server, acknowledged, sent)
    assert len(acknowledged) > 50


def test_an_insisting_sigint_keeps_what_is_durable(make_server):
    server = make_server(appendfsync="always")

    def end():
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) in (0, 1)  # 0: it was faster

    acknowledged, sent = run_writers(server, 0, 12, end)
    server.start()
    check_writers(server, acknowledged, sent)


@pytest.mark.sockets("the proxy is started with the server")
def test_a_stop_during_recovery_keeps_everything(make_server):
    server = make_server(appendfsync="always")
    acknowledged, sent = run_writers(server, 0, 12, server.kill9)
    for hows in ([signal.SIGTERM] * 2, [signal.SIGTERM, signal.SIGINT]):
        begin = len(server.said())
        with open(server.log, "ab") as log:
            process = subprocess.Popen([server.program, *server.arguments()], stdout=log,
                                       stderr=log, cwd=server.directory,
                                       env=harness.ENVIRONMENT)
        limit = time.monotonic() + 60
        while "starting, pid" not in server.said()[begin:] and time.monotonic() < limit:
            time.sleep(0.001)
        for how in hows:
            process.send_signal(how)
        assert process.wait(60) in ((0,) if signal.SIGINT not in hows else (0, 1))
    server.start()
    check_writers(server, acknowledged, sent)


@pytest.mark.parametrize("words", [["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["shutdown", "save"]])
def test_shutdown_command(server, words):
    server.client().set("k", "v")
    with server.raw() as raw:
        raw.send(encode(*words))
        assert raw.closed()
    assert server.process.wait(20) == 0
    if words[-1] != "NOSAVE":
        server.start()
        assert server.client().get("k") == b"v"


def start_is_refused(server):
    with pytest.raises(harness.StartError) as refusal:
        server.start()
    server.process.wait()
    server.process = None
    return str(refusal.value)


@pytest.mark.vellum
def test_a_file_that_was_cut_short_is_told_of(make_server):
    """Not by keys that are not there any more; and with the file as it was they are."""
    server = make_server(partitions=1)
    client = server.client()
    for first in range(0, 20_000, 1000):
        client.mset({f"key:{i}": f"value {i} " + "x" * 100 for i in range(first, first + 1000)})
    client.close()
    server.stop()
    path = os.path.join(server.data, "slabs-00")
    with open(path, "rb") as file:
        whole = file.read()
    os.truncate(path, 1 << 20)
    for _ in range(2):
        said = start_is_refused(server)
        assert "slabs-00 was cut short" in said and "backup" in said and "`index`" in said
    assert server.check_data()[0] == 1
    with open(path, "wb") as file:
        file.write(whole)
    server.start()
    client = server.client()
    assert client.dbsize() == 20_000 and client.get("key:19999").startswith(b"value 19999 ")
    client.close()
    server.stop()
    os.truncate(path, 1 << 20)
    os.remove(os.path.join(server.data, "index"))
    server.start()
    assert 0 < server.client().dbsize() < 20_000


@pytest.mark.vellum
def test_nothing_opens_the_files_of_a_running_server(server):
    """Whatever becomes of the lock file, and by whatever name they are found."""
    client = server.client()
    assert client.set("k", "v")
    other = os.path.join(server.directory, "linked")
    os.mkdir(other)
    for name in os.listdir(server.data):
        if name != "lock":
            os.link(os.path.join(server.data, name), os.path.join(other, name))
    port = str(harness.free_port())
    for _ in range(2):
        os.remove(os.path.join(server.data, "lock"))
        said = refuses(server.directory, "--port", port, "--dir", server.data)
        assert "in use by another server" in said
        status, lines = server.check_data()
        assert status == 2 and "in use by a server" in lines
    assert "in use by another server" in refuses(server.directory, "--port", port, "--dir", other)
    shutil.rmtree(other)
    assert client.set("k", "w")
    server.restart()
    assert server.client().get("k") == b"w"


FEW_FILES = """#!/usr/bin/python3
import ctypes, os, resource, sys
ctypes.CDLL(None).prctl(24, 24, 0, 0, 0)  # root may not raise limits, either
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""


@pytest.mark.vellum
def test_as_many_clients_as_maxclients_says(directory):
    """Each partition has a file; what it takes of the limit is not promised to clients."""
    wrapper = os.path.join(directory, "few-files")
    with open(wrapper, "w", encoding="ascii") as file:
        file.write(FEW_FILES.format(program=harness.PROGRAM))
    os.chmod(wrapper, 0o755)
    server = harness.Server(program=wrapper, partitions=128)
    try:
        for partitions in (128, 16):  # the directory's number counts
            server.options["partitions"] = partitions
            server.start()
            with contextlib.ExitStack() as clients:
                first = clients.enter_context(server.raw())
                most = int(first.call("CONFIG", "GET", "maxclients").split(b"\r\n")[4])
                for number in range(1, most):
                    raw = clients.enter_context(server.raw())
                    assert raw.call("PING") == b"+PONG\r\n", (number, most)
            server.stop()
    finally:
        server.remove()
