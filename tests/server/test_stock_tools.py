"""Redis's own tools, as a user runs them."""

import re
import subprocess

import pytest


def benchmark(server, *words):
    done = subprocess.run(["redis-benchmark", "-p", str(server.port), *words],
                          capture_output=True, text=True, timeout=300)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Error" not in said and "ERR" not in said, said
    return done.stdout


def test_cli_sets_and_gets(server):
    assert server.cli("PING") == "PONG\n"
    assert server.cli("SET", "greeting", "good day") == "OK\n"
    assert server.cli("GET", "greeting") == "good day\n"
    assert server.cli("GET", "nothing") == "\n"
    assert server.cli("--no-raw", "GET", "nothing") == "(nil)\n"
    assert server.cli("-3", "--no-raw", "STRLEN", "greeting") == "(integer) 8\n"
    assert "wrong number of arguments" in server.cli("GET")


@pytest.mark.vellum
def test_cli_shows_syntaxes(server):
    """It asks the server, by COMMAND DOCS, and makes its hints of the answer, too."""
    def syntax(*command):
        said = re.sub("\x1b\\[[0-9;]*m", "", server.cli("HELP", *command))
        return said.strip().splitlines()[0]
    assert syntax("SETRANGE") == "SETRANGE key offset value"
    assert syntax("set") == ("SET key value [NX|XX|IFEQ comparison-value] [GET] [EX seconds|PX milliseconds|EXAT "
                             "unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]")
    assert syntax("zadd") == ("ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member "
                              "[score member ...]")
    assert syntax("object", "encoding") == "OBJECT ENCODING key"
    assert syntax("rdma", "close") == "RDMA CLOSE client-id"


def test_cli_reads_commands_from_its_input(server):
    text = "".join(f"SET k{i} v{i}\n" for i in range(100)) + "GET k99\n"
    assert server.cli(text=text) == "OK\n" * 100 + "v99\n"


def test_cli_pipe_mass_insertion(server):
    text = "".join(f"SET key:{i} value:{i}\r\n" for i in range(5000))
    assert "errors: 0, replies: 5000" in server.cli("--pipe", text=text)
    assert server.client().dbsize() == 5000


def test_cli_scan_and_bigkeys(server):
    client = server.client()
    for i in range(50):
        client.set(f"k:{i}", "x" * i)
    assert sorted(server.cli("--scan", "--pattern", "k:*").split()) == sorted(
        f"k:{i}" for i in range(50))
    assert "Biggest string found '\"k:49\"' has 49 bytes" in server.cli("--bigkeys")


def test_benchmark_finishes_without_errors(server):
    names = ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"]
    out = benchmark(server, "-t", "ping,set,get,incr,mset", "-n", "2000", "--csv")
    for name in names:
        assert f'"{name}"' in out, out
    assert server.client().get("counter:__rand_int__") == b"2000"


def test_benchmark_pipelined_over_many_keys(server):
    benchmark(server, "-t", "set,get", "-n", "20000", "-P", "32", "-r", "3000", "-d", "300",
              "-c", "20", "-q")
    client = server.client()
    # 20,000 draws out of 3,000 leave about four keys unwritten.
    assert 2900 < client.dbsize() <= 3000
    assert client.strlen(client.randomkey()) == 300


def test_all_benchmarks_and_memkeys(server):
    benchmark(server, "-n", "1000", "-q")
    server.client().hset("hash", "field", "value")
    assert "Biggest   hash found" in server.cli("--memkeys")
