"""Libraries of functions: what their code sees and answers, and that every worker has them, as durably
as data. Under the WAIT build a function is run again at its store reads."""

import re
import threading
import time

import pytest

import harness

pytestmark = pytest.mark.shared

OK = b"+OK\r\n"
BAD_NAME = ("Library names can only contain letters, numbers, or underscores(_) and must be at least one "
            "character long")
CODE = """#!lua name=lib
redis.register_function('put', function(keys, args)
    redis.call('SET', keys[1], args[1])
    return redis.call('GET', keys[1])
end)
redis.register_function{function_name='count', flags={'no-writes'}, description='counts',
                        callback=function(keys, args) return #keys + 10 * #args end}"""
F = "redis.register_function('f', function() return 1 end)"


def library(body, name="lib"):
    return f"#!lua name={name}\n{body}"


def function(body, name="lib", called="f", flags=""):
    return library(f"redis.register_function{{function_name='{called}', flags={{{flags}}}, "
                   f"callback=function(keys, args)\n{body}\nend}}", name)


def error(text):
    return f"-{text}\r\n".encode()


@pytest.fixture
def raw(server):
    with server.raw() as connection:
        yield connection


def load(raw, code):
    assert raw.call("FUNCTION", "LOAD", "REPLACE", code).startswith(b"$")


# ---- FUNCTION LOAD ----

@pytest.mark.parametrize("first, problem", [
    ("lua name=a", "ERR Missing library metadata"),
    ("#!lua", "ERR Library name was not given"),
    ("#!", "ERR Library name was not given"),
    ("#!js", "ERR Library name was not given"),
    ("#!lua name=", "ERR " + BAD_NAME),
    ("#!lua name=a-b", "ERR " + BAD_NAME),
    ("#!js name=a-b", "ERR " + BAD_NAME),
    ("#!js name=a", "ERR Engine 'js' not found"),
    ("#! name=a", "ERR Engine '' not found"),
    ("#!lua name=a b", "ERR Invalid metadata value given: b"),
    ("#!lua name=a name=b", "ERR Invalid metadata value, name argument was given multiple times"),
    ("#!lua name=\"a", "ERR Invalid library metadata"),
    ("#!lua name='q\\'", "ERR Invalid library metadata"),
    ("#!lua name=a\0b", "ERR Invalid library metadata"),
    ("#!lua x=" + 300 * "n", "ERR Invalid metadata value given: x=" + 300 * "n"),
    ("#!" + 300 * "e" + " name=a", "ERR Engine '" + 300 * "e" + "' not found"),
])
def test_bad_first_line(raw, first, problem):
    assert raw.call("FUNCTION", "LOAD", first + "\n" + F) == error(problem)
    assert raw.call("FUNCTION", "LIST") == b"*0\r\n"


@pytest.mark.parametrize("first, name", [
    ("#!lua name=a", "a"), ("#!LUA NAME=up", "up"), ("#!lua name=\"a\"", "a"), ("#!lua \t name=sp  ", "sp"),
    ("#!lua name=\"\\x61b\"", "ab"), ("#!lua name=" + 300 * "n", 300 * "n")])
def test_good_first_line(raw, first, name):
    assert raw.call("FUNCTION", "LOAD", first + "\n" + F) == harness.bulk(name.encode())
    assert raw.call("FCALL", "f", 0) == b":1\r\n"


NONEXISTENT = "ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent " \
              "global variable "
REGISTERING = "ERR Error registering functions: ERR "


@pytest.mark.parametrize("body, problem", [
    ("bad script", "ERR Error compiling function: user_function:2: '=' expected near 'script'"),
    ("return 1", "ERR No functions registered"),
    ("a=1", REGISTERING + "user_function:2: Attempt to modify a readonly table"),
    ("redis.foo=1", REGISTERING + "user_function:2: Attempt to modify a readonly table"),
    ("redis.call('ping')", NONEXISTENT + "'call'"),
    ("redis.setresp(3)", NONEXISTENT + "'setresp'"),
    ("math.random()", NONEXISTENT + "'math'"),
    ("local mt = getmetatable(_G)", NONEXISTENT + "'getmetatable'"),
    ("local a = 5 a = a.b.c", REGISTERING + "user_function:2: attempt to index local 'a' (a number value)"),
    ("while true do end", REGISTERING + "FUNCTION LOAD timeout"),
    ("redis.log('x')", REGISTERING + "redis.log() requires two arguments or more."),
    ("redis.register_function()", REGISTERING + "wrong number of arguments to redis.register_function"),
    ("redis.register_function('f', 1, 2)",
     REGISTERING + "wrong number of arguments to redis.register_function"),
    ("redis.register_function('f')", REGISTERING + "calling redis.register_function with a single argument "
     "is only applicable to Lua table (representing named arguments)."),
    ("redis.register_function(nil, function() end)",
     REGISTERING + "first argument to redis.register_function must be a string"),
    ("redis.register_function('f', 3)",
     REGISTERING + "second argument to redis.register_function must be a function"),
    ("redis.register_function('', function() end)", REGISTERING + BAD_NAME),
    ("redis.register_function('a\\0b', function() end)", REGISTERING + BAD_NAME),
    (F + F, REGISTERING + "Function already exists in the library"),
    ("redis.register_function{function_name={}}",
     REGISTERING + "function_name argument given to redis.register_function must be a string"),
    ("redis.register_function{callback='x'}",
     REGISTERING + "callback argument given to redis.register_function must be a function"),
    ("redis.register_function{description={}}",
     REGISTERING + "description argument given to redis.register_function must be a string"),
    ("redis.register_function{flags='x'}",
     REGISTERING + "flags argument to redis.register_function must be a table representing function flags"),
    ("redis.register_function{flags={'x'}}", REGISTERING + "unknown flag given"),
    ("redis.register_function{flags={{}}}", REGISTERING + "unknown flag given"),
    ("redis.register_function{foo=1}", REGISTERING + "unknown argument given to redis.register_function"),
    ("redis.register_function{1}", REGISTERING + "unknown argument given to redis.register_function"),
    ("redis.register_function{[{}]=1}",
     REGISTERING + "named argument key given to redis.register_function is not a string"),
    ("redis.register_function{function_name='f'}",
     REGISTERING + "redis.register_function must get a callback argument"),
    ("redis.register_function{callback=function() end}",
     REGISTERING + "redis.register_function must get a function name argument"),
])
def test_bad_code(raw, body, problem):
    load(raw, library(F))
    assert raw.call("FUNCTION", "LOAD", "REPLACE", library(body)) == error(problem)
    assert raw.call("FCALL", "f", 0) == b":1\r\n"


def test_names_that_exist(raw):
    load(raw, library(F))
    assert raw.call("FUNCTION", "LOAD", library(F)) == error("ERR Library 'lib' already exists")
    assert raw.call("FUNCTION", "LOAD", library(F, "other")) == error("ERR Function f already exists")
    capital = F.replace("'f'", "'F'")
    assert raw.call("FUNCTION", "LOAD", library(capital, "other")) == error("ERR Function F already exists")
    assert raw.call("FUNCTION", "LOAD", library(capital, "LIB")) == error("ERR Function F already exists")
    assert raw.call("FUNCTION", "LOAD", "x" * 200, library(F)) == error("ERR Unknown option given: " + "x" * 200)
    assert raw.call("FCALL", "F", 0) == b":1\r\n"


# ---- FCALL ----

@pytest.mark.parametrize("body, reply", [
    ("return {#keys, #args, keys[1], args[2]}", b"*4\r\n:1\r\n:2\r\n$1\r\nk\r\n$1\r\nb\r\n"),
    ("return 1.7", b":1\r\n"),
    ("return redis.call('SET', keys[1], args[1])", OK),
    ("return redis.register_function", b"$-1\r\n"),
    ("return redis.error_reply('X y')", b"-X y\r\n"),
    ("return pcall(function() x = 1 end)", b"$-1\r\n"),
    ("return KEYS[1]", None),
    ("error('oh')", b"-ERR user_function:3: oh script: f, on @user_function:3.\r\n"),
    ("error({err='My oh'})", b"-My oh script: f, on @user_function:3.\r\n"),
    ("x = 1", b"-ERR user_function:3: Attempt to modify a readonly table script: f, on @user_function:3.\r\n"),
    ("_G.x = 1", b"-ERR user_function:3: Attempt to modify a readonly table script: f, on @user_function:3.\r\n"),
    ("redis.register_function('g', function() end)", b"-ERR user_function:3: attempt to call field "
     b"'register_function' (a nil value) script: f, on @user_function:3.\r\n"),
    ("return redis.call('FCALL', 'f', 0)",
     b"-ERR This Redis command is not allowed from script script: f, on @user_function:3.\r\n"),
    ("return redis.call('FUNCTION', 'LIST')",
     b"-ERR This Redis command is not allowed from script script: f, on @user_function:3.\r\n"),
])
def test_call(raw, body, reply):
    load(raw, function(body))
    raw.call("EVAL", "return 1", 1, "k")  # leaves no KEYS behind
    if reply is None:
        reply = (b"-ERR user_function:3: Script attempted to access nonexistent global variable 'KEYS' script: f, "
                 b"on @user_function:3.\r\n")
    assert raw.call("FCALL", "F", 1, "k", "a", "b") == reply


def test_call_of_bad_arguments(raw):
    load(raw, CODE)
    assert raw.call("FCALL", "none", "x") == error("ERR Function not found")
    assert raw.call("FCALL", "count", "x") == error("ERR Bad number of keys provided")
    assert raw.call("FCALL", "count", "-1") == error("ERR Number of keys can't be negative")
    assert raw.call("FCALL", "count", "1") == error("ERR Number of keys can't be greater than number of args")
    assert raw.call("FCALL", "none", "1", "k") == error("ERR Function not found")


def test_a_long_name_is_whole(raw):
    name = "n" * 5000
    load(raw, function("error('x')", called=name, name="l" * 5000))
    assert raw.call("FCALL", name.upper(), 0) == error(
        f"ERR user_function:3: x script: {name}, on @user_function:3.")
    assert name.encode() in raw.call("FUNCTION", "LIST") and b"l" * 5000 in raw.call("FUNCTION", "LIST")


def test_flags(raw):
    load(raw, CODE)
    assert raw.call("FCALL_RO", "put", 1, "k", "v") == error(
        "ERR Can not execute a script with write flag using *_ro command.")
    assert raw.call("FCALL_RO", "count", 1, "k", "v") == b":11\r\n"
    load(raw, function("return redis.call('SET', keys[1], 'x')", flags="'no-writes'"))
    for _ in range(2):
        for command in "FCALL", "FCALL_RO":
            assert raw.call(command, "f", 1, "k") == error(
                "ERR Write commands are not allowed from read-only scripts. script: f, on @user_function:3.")
    assert raw.call("EXISTS", "k") == b":0\r\n"
    flags = [b"no-writes", b"allow-oom", b"allow-stale", b"no-cluster", b"allow-cross-slot-keys"]
    load(raw, function("", flags=",".join(f"'{flag.decode().upper()}'" for flag in flags)))
    assert raw.call("FUNCTION", "LIST").endswith(b"*5\r\n" + b"".join(b"+%s\r\n" % flag for flag in flags))


def test_a_function_that_starts_to_write_locks_as_a_writer(raw):
    """Which locks it needs is guessed from the library that the worker has loaded."""
    load(raw, function("return redis.call('GET', keys[1])", flags="'no-writes'"))
    assert raw.call("FCALL", "f", 1, "k") == b"$-1\r\n"
    load(raw, function("redis.call('APPEND', keys[1], 'x') return redis.call('GET', keys[1])"))
    for length in 1, 2, 3:
        assert raw.call("FCALL", "f", 1, "k") == harness.bulk(b"x" * length)


def test_undeclared_keys(raw):
    load(raw, function("redis.call('SET', 'other', args[1]) return redis.call('GET', 'other')"))
    for value in b"a", b"b":
        assert raw.call("FCALL", "f", 0, value) == harness.bulk(value)


# ---- variables ----

COUNTER = library("""local count, seen = 0, {}
redis.register_function('next', function(keys, args)
    count = count + 1
    return count
end)
redis.register_function('see', function(keys, args)
    local value = redis.call('GET', keys[1])
    seen[#seen + 1] = value
    return #seen
end)
redis.register_function('fail', function(keys, args)
    count = count + 1
    error('x')
end)""")


def test_variables_outlive_a_call(make_server):
    raw = make_server().raw()
    load(raw, COUNTER)
    assert raw.call("FCALL", "next", 0) == b":1\r\n"
    assert raw.call("FCALL", "next", 0) == b":2\r\n"
    assert raw.call("FCALL", "fail", 0).startswith(b"-ERR")
    load(raw, library("redis.register_function('g', function() end)", "other"))
    assert raw.call("FCALL", "next", 0) == b":4\r\n"
    load(raw, COUNTER)
    assert raw.call("FCALL", "next", 0) == b":1\r\n"


def test_variables_in_a_transaction(raw):
    load(raw, COUNTER)
    raw.call("MULTI")
    raw.call("FCALL", "next", 0)
    raw.call("FCALL", "next", 0)
    assert raw.call("EXEC") == b"*2\r\n:1\r\n:2\r\n"
    assert raw.call("FCALL", "next", 0) == b":3\r\n"


@pytest.mark.vellum
def test_a_discarded_run_leaves_no_variables(make_server):
    """A run that must wait for a page is discarded; so is what it has noted in its library."""
    server = make_server(enable_debug_command="yes")
    with server.raw() as raw:
        load(raw, COUNTER.replace("local value", "seen[#seen + 1] = 'before' local value"))
        raw.call("SET", "k", "v")
        assert raw.call("FCALL", "see", 1, "k") == b":2\r\n"
        server.client().execute_command("DEBUG", "RELOAD")
        assert raw.call("FCALL", "see", 1, "k") in (b":2\r\n", b":4\r\n")
        for _ in range(20):
            seen = int(raw.call("FCALL", "see", 1, "k")[1:])
            assert seen % 2 == 0


# ---- LIST, DUMP, RESTORE ----

def listed(raw, *words):
    """The libraries, sorted, since Redis has no order of them."""
    return sorted(re.split(rb"\*\d\r\n\$12\r\nlibrary_name", raw.call("FUNCTION", "LIST", *words))[1:])


def test_list(raw):
    assert raw.call("FUNCTION", "LIST") == b"*0\r\n"
    load(raw, CODE.split("redis.register_function{")[0])
    shown = (b"*6\r\n$12\r\nlibrary_name\r\n$3\r\nlib\r\n$6\r\nengine\r\n$3\r\nLUA\r\n$9\r\nfunctions\r\n*1\r\n*6\r\n"
             b"$4\r\nname\r\n$3\r\nput\r\n$11\r\ndescription\r\n$-1\r\n$5\r\nflags\r\n*0\r\n")
    assert raw.call("FUNCTION", "LIST") == b"*1\r\n" + shown
    load(raw, function("", name="Other", called="counts", flags="'no-writes'"))
    assert len(listed(raw)) == 2
    assert raw.call("FUNCTION", "LIST", "LIBRARYNAME", "L*") == b"*1\r\n" + shown
    assert raw.call("FUNCTION", "LIST", "LIBRARYNAME", "x") == b"*0\r\n"
    assert b"library_code" in raw.call("FUNCTION", "LIST", "withcode", "libraryname", "o[st]her")
    assert raw.call("FUNCTION", "LIST", "foo" * 99) == error("ERR Unknown argument " + "foo" * 99)
    assert raw.call("FUNCTION", "LIST", "WITHCODE", "withcode") == error("ERR Unknown argument withcode")
    assert raw.call("FUNCTION", "LIST", "LIBRARYNAME") == error("ERR library name argument was not given")
    raw.call("HELLO", "3")
    assert b"%3\r\n$4\r\nname\r\n$6\r\ncounts\r\n$11\r\ndescription\r\n_\r\n$5\r\nflags\r\n~1\r\n+no-writes" in \
        raw.call("FUNCTION", "LIST")


def test_delete_and_flush(raw):
    load(raw, CODE)
    assert raw.call("FUNCTION", "DELETE", "LIB") == error("ERR Library not found")
    assert raw.call("FUNCTION", "DELETE", "lib") == OK
    assert raw.call("FCALL", "count", 0) == error("ERR Function not found")
    for mode in [], ["SYNC"], ["async"]:
        load(raw, CODE)
        assert raw.call("FUNCTION", "FLUSH", *mode) == OK
        assert raw.call("FUNCTION", "LIST") == b"*0\r\n"
        assert raw.call("FCALL", "count", 0) == error("ERR Function not found")
    assert raw.call("FUNCTION", "FLUSH", "x") == error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
    assert raw.call("FUNCTION", "FLUSH", "SYNC", "x") == error(
        "ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.")


def dump_of(raw):
    return raw.call("FUNCTION", "DUMP").split(b"\r\n", 1)[1][:-2]


def libraries(count):
    return [function(f"return {i} --" + "y" * (i * i * 500), f"lib{i}", f"f{i}") for i in range(count)]


def test_dump_and_restore(raw):
    empty = dump_of(raw)
    for code in libraries(5):
        load(raw, code)
    dump, shown = dump_of(raw), listed(raw, "WITHCODE")
    assert raw.call("FUNCTION", "RESTORE", empty) == OK
    assert listed(raw, "WITHCODE") == shown
    assert raw.call("FUNCTION", "RESTORE", empty, "FLUSH") == OK
    assert raw.call("FUNCTION", "LIST") == b"*0\r\n"
    for words in ["FLUSH"], ["REPLACE"]:
        assert raw.call("FUNCTION", "RESTORE", dump, *words) == OK
        assert listed(raw, "WITHCODE") == shown
    for words in [], ["APPEND"]:
        assert b"already exists" in raw.call("FUNCTION", "RESTORE", dump, *words)
    raw.call("FUNCTION", "DELETE", "lib4")
    load(raw, function("", "other", "F4"))
    assert raw.call("FUNCTION", "RESTORE", dump, "REPLACE") == error("ERR Function f4 already exists")
    assert raw.call("FCALL", "f3", 0) == b":3\r\n"
    assert raw.call("FUNCTION", "RESTORE", dump, "x") == error(
        "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
    for bad in b"", b"x", dump[:-1], dump[:-1] + bytes([dump[-1] ^ 1]):
        assert raw.call("FUNCTION", "RESTORE", bad, "FLUSH") == error(
            "ERR DUMP payload version or checksum are wrong")
    raw.call("SET", "k", "v")
    value = raw.call("DUMP", "k").split(b"\r\n", 1)[1][:-2]
    assert raw.call("FUNCTION", "RESTORE", value, "FLUSH") == error("ERR given type is not a function")
    assert raw.call("FCALL", "f3", 0) == b":3\r\n"


@pytest.mark.vellum
def test_payloads_go_to_redis_and_back(raw, stock):
    with stock.raw() as other:
        other.call("FUNCTION", "FLUSH")
        for code in libraries(9):
            load(raw, code)
        assert other.call("FUNCTION", "RESTORE", dump_of(raw)) == OK
        assert listed(other, "WITHCODE") == listed(raw, "WITHCODE")
        raw.call("FUNCTION", "FLUSH")
        assert raw.call("FUNCTION", "RESTORE", dump_of(other)) == OK
        assert listed(other, "WITHCODE") == listed(raw, "WITHCODE")


@pytest.mark.vellum
@pytest.mark.parametrize("words", [["FLUSH"], ["DELETE", "lib"]], ids=["flush", "delete"])
def test_what_a_library_held_is_free_when_it_is_gone(make_server, words):
    """For other scripts, also where its worker calls no function any more."""
    server = make_server(maxmemory="64mb")
    script = "local t = {} for i = 1, 60000 do t[i] = ('x'):rep(50)..i end return #t"
    raws = [server.raw() for _ in range(6)]
    load(raws[0], library("local t = {} redis.register_function('hoard', function() for i = 1, 20000 do "
                          "t[#t + 1] = ('x'):rep(100)..#t end end)"))
    for raw in raws:
        while b"not enough memory" not in raw.call("FCALL", "hoard", 0):
            pass
    assert raws[0].call("FUNCTION", *words) == OK
    # One that has loaded them runs a script, or has not enough memory for long.
    for raw in raws:
        harness.eventually(lambda r=raw: r.call("EVAL", script, 0) == b":60000\r\n")
        raw.close()


# ---- busy ----

BUSY = "BUSY Redis is busy running a script. You can only call {} KILL or SHUTDOWN NOSAVE."


@pytest.fixture
def busy(make_server):
    """A server, and what calls a command on it that goes on until it is killed."""
    server = make_server(busy_reply_threshold=50)
    load(server.raw(), library("redis.register_function('loop', function(keys, args) if args[1] then "
                               "redis.call('SET', keys[1], args[1]) end while not args[1] or "
                               "redis.call('TIME')[1] < args[1] do end end)"))
    threads = []

    def call(*words):
        def run():
            with server.raw() as connection:
                try:
                    thread.reply = connection.call(*words)
                except EOFError:
                    thread.reply = None
        thread = threading.Thread(target=run)
        thread.start()
        threads.append(thread)
        return thread

    yield server, call
    for thread in threads:
        thread.join()


def test_kill(busy):
    server, call = busy
    with server.raw() as raw:
        assert raw.call("FUNCTION", "KILL") == error("NOTBUSY No scripts in execution right now.")
        thread = call("FCALL", "Loop", 1, "k")
        harness.eventually(lambda: b"duration_ms" in raw.call("FUNCTION", "STATS"))
        stats = raw.call("FUNCTION", "STATS")
        assert stats.startswith(b"*4\r\n$14\r\nrunning_script\r\n*6\r\n$4\r\nname\r\n$4\r\nloop\r\n$7\r\ncommand\r\n*4\r\n"
                                b"$5\r\nFCALL\r\n$4\r\nLoop\r\n$1\r\n1\r\n$1\r\nk\r\n$11\r\nduration_ms\r\n:")
        assert raw.call("SCRIPT", "KILL") == error(BUSY.format("FUNCTION"))
        assert raw.call("SET", "k", "v") == error(BUSY.format("FUNCTION"))
        assert raw.call("FUNCTION", "KILL") == OK
        thread.join()
        assert b"Script killed by user" in thread.reply and b"script: loop" in thread.reply
        assert b"running_script\r\n$-1\r\n" in raw.call("FUNCTION", "STATS")


def test_a_script_is_not_killed_as_a_function(busy):
    server, call = busy
    with server.raw() as raw:
        thread = call("EVAL", "while true do end", 1, "k")
        harness.eventually(lambda: raw.call("FUNCTION", "KILL") == error(BUSY.format("SCRIPT")))
        assert raw.call("FUNCTION", "STATS") == error(BUSY.format("SCRIPT"))
        assert raw.call("SET", "k", "v") == error(BUSY.format("SCRIPT"))
        assert raw.call("SCRIPT", "KILL") == OK
        thread.join()
        assert b"Script killed by user" in thread.reply


def test_a_function_that_has_written_is_not_killed(busy):
    server, call = busy
    with server.raw() as raw:
        until = raw.call("TIME").split(b"\r\n")[2]
        thread = call("FCALL", "loop", 1, "k", b"%d" % (int(until) + 3))
        harness.eventually(lambda: raw.call("FUNCTION", "KILL").startswith(b"-UNKILLABLE"))
        assert raw.call("SCRIPT", "KILL").startswith(b"-UNKILLABLE")
        thread.join()
        assert thread.reply == b"$-1\r\n"
        assert raw.call("EXISTS", "k") == b":1\r\n"


# ---- EVAL's first line ----

@pytest.mark.parametrize("script, reply", [
    ("#!lua\nreturn 1", b":1\r\n"),
    ("#!lua flags=\nreturn 1", b":1\r\n"),
    ("#!lua \"flags=no-writes\"\nreturn 1", b":1\r\n"),
    ("#!lua flags=no-writes,allow-oom\nreturn redis.call('GET', KEYS[1])", b"$-1\r\n"),
    ("#!lua flags=bad\nreturn 1", b"-ERR Unexpected flag in script shebang: bad\r\n"),
    ("#!lua flags=NO-WRITES\nreturn 1", b"-ERR Unexpected flag in script shebang: NO-WRITES\r\n"),
    ("#!lua flags=no-writes,,allow-oom\nreturn 1", b"-ERR Unexpected flag in script shebang: \r\n"),
    ("#!lua name=x\nreturn 1", b"-ERR Unknown lua shebang option: name=x\r\n"),
    ("#!lua FLAGS=no-writes\nreturn 1", b"-ERR Unknown lua shebang option: FLAGS=no-writes\r\n"),
    ("#!js\nreturn 1", b"-ERR Unexpected engine in script shebang: #!js\r\n"),
    ("#!lua", b"-ERR Invalid script shebang\r\n"),
    ("#!lua flags=" + 300 * "x" + "\nreturn 1",
     b"-ERR Unexpected flag in script shebang: " + 300 * b"x" + b"\r\n"),
    ("#!lua " + 300 * "x" + "\nreturn 1", b"-ERR Unknown lua shebang option: " + 300 * b"x" + b"\r\n"),
])
def test_first_line_of_scripts(raw, script, reply):
    assert raw.call("EVAL", script, 1, "k") == reply


# ---- all workers, and the store ----

def test_load_is_seen_by_all_workers(server):
    clients = [server.client() for _ in range(8)]
    for version in range(5):
        code = f"#!lua name=lib\nredis.register_function('f', function() return {version} end)"
        assert clients[version].execute_command("FUNCTION", "LOAD", "REPLACE", code) == b"lib"
        for client in clients:
            assert client.execute_command("FCALL", "f", 0) == version


def test_calls_during_changes(server):
    """Each call sees one version as a whole, and no older one than an earlier call."""
    def code(version):
        pad = "--" + "x" * (version % 3 * 40_000)
        return library("".join(f"redis.register_function('{name}', function() return {version} end)\n"
                               for name in "abc") + pad)

    client = server.client()
    client.execute_command("FUNCTION", "LOAD", code(0))
    failures, is_over = [], threading.Event()

    def look():
        one, last = server.client(), 0
        while not is_over.is_set():
            pipe = one.pipeline(transaction=True)
            for name in "abc":
                pipe.execute_command("FCALL", name, 0)
            seen = pipe.execute()
            if len(set(seen)) != 1 or seen[0] < last:
                failures.append((last, seen))
            last = seen[0]

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for version in range(1, 60):
        client.execute_command("FUNCTION", "LOAD", "REPLACE", code(version))
        assert client.execute_command("FCALL", "a", 0) == version
    is_over.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_what_was_acknowledged_is_called(server):
    """On whatever worker: never a version older than the last one that FUNCTION LOAD has acknowledged."""
    client = server.client()
    client.execute_command("FUNCTION", "LOAD", library("redis.register_function('f', function() return 0 end)"))
    acknowledged, failures, is_over = [0], [], threading.Event()

    def look():
        one = server.client()
        while not is_over.is_set():
            least = acknowledged[0]
            seen = one.execute_command("FCALL", "f", 1, "k")
            if seen < least:
                failures.append((least, seen))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for version in range(1, 200):
        code = library(f"redis.register_function('f', function() return {version} end)")
        if version % 3 == 0:
            pipe = client.pipeline(transaction=True)
            pipe.execute_command("FUNCTION", "DELETE", "lib")
            pipe.execute_command("FUNCTION", "LOAD", code)
            pipe.execute()
        else:
            client.execute_command("FUNCTION", "LOAD", "REPLACE", code)
        acknowledged[0] = version
    is_over.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_nothing_but_functions_shows_libraries(make_server):
    client = make_server(enable_debug_command="yes").client()
    client.execute_command("FUNCTION", "LOAD", CODE)
    client.execute_command("FUNCTION", "LOAD", function("", "long", "g") + "--" + "x" * 300_000)
    assert client.execute_command("DEBUG", "DIGEST") == b"0" * 40
    assert client.dbsize() == 0 and client.keys("*") == [] and client.scan()[1] == []
    assert client.randomkey() is None and client.info("keyspace") == {}
    for key in "functions", b"functions":
        assert client.exists(key) == 0
    client.set("functions", "mine")
    client.flushdb()
    client.flushall()
    client.swapdb(0, 1)
    assert client.execute_command("FCALL", "put", 1, "k", "v") == b"v"
    client.execute_command("FUNCTION", "FLUSH")
    assert client.get("k") == b"v"


def info(client):
    section = client.info("memory")
    return section["number_of_libraries"] if "number_of_libraries" in section else None, \
        section["number_of_functions"]


@pytest.mark.vellum
def test_figures(make_server):
    server = make_server(appendfsync="always")
    client = server.client()
    assert info(client) == (0, 0)
    client.execute_command("FUNCTION", "LOAD", CODE)
    client.execute_command("FUNCTION", "LOAD", function("", "other", "g"))
    assert info(client) == (2, 3)
    assert client.info("memory")["used_memory_functions"] > len(CODE)
    assert client.memory_stats()["functions.caches"] == client.info("memory")["used_memory_functions"]
    pipe = client.pipeline(transaction=True)
    pipe.execute_command("FUNCTION", "DELETE", "lib")
    pipe.execute_command("FUNCTION", "LOAD", "bad")
    assert pipe.execute(raise_on_error=False)[0] == b"OK" and info(client) == (1, 1)
    server.restart()
    assert info(server.client()) == (1, 1)
    server.kill9()
    server.start()
    assert info(server.client()) == (1, 1)
    server.client().execute_command("FUNCTION", "FLUSH")
    assert info(server.client()) == (0, 0)


def test_inside_a_transaction(client):
    pipe = client.pipeline(transaction=True)
    pipe.execute_command("FUNCTION", "LOAD", CODE)
    pipe.execute_command("FCALL", "put", 1, "k", "v")
    pipe.execute_command("FUNCTION", "LOAD", "REPLACE", library(F))
    pipe.execute_command("FCALL", "f", 0)
    pipe.execute_command("FUNCTION", "FLUSH")
    pipe.execute_command("FUNCTION", "LIST")
    assert pipe.execute() == [b"lib", b"v", b"lib", 1, b"OK", []]


@pytest.mark.vellum
def test_a_library_must_fit(make_server):
    client = make_server(maxmemory="64mb").client()
    with pytest.raises(harness.redis.ResponseError, match="would take more than 8388608 bytes"):
        client.execute_command("FUNCTION", "LOAD", function("", "a") + "--" + "x" * 9_000_000)
    client.execute_command("FUNCTION", "LOAD", function("return 5", "a") + "--" + "x" * 3_000_000)
    client.execute_command("FUNCTION", "LOAD", function("return 6", "b", "g") + "--" + "x" * 3_000_000)
    with pytest.raises(harness.redis.ResponseError, match="would take more than 8388608 bytes"):
        client.execute_command("FUNCTION", "LOAD", function("", "c", "h") + "--" + "x" * 3_000_000)
    assert client.execute_command("FCALL", "f", 0) == 5 and client.execute_command("FCALL", "g", 0) == 6


@pytest.mark.vellum
def test_kill_9_loses_no_acknowledged_library(make_server):
    server = make_server(appendfsync="always", enable_debug_command="yes")
    for version in range(4):
        server.client().execute_command("FUNCTION", "LOAD", "REPLACE", CODE + f"\n--{version}" + "x" * 60_000 * version)
        server.kill9()
        server.start()
        client = server.client()
        assert client.execute_command("FCALL_RO", "count", 1, "k", "a") == 11
        assert b"--%d" % version in client.execute_command("FUNCTION", "LIST", "WITHCODE")[0][7]
    client.execute_command("DEBUG", "RELOAD")
    assert client.execute_command("FCALL_RO", "count", 1, "k", "a") == 11
    server.stop()
    assert server.check_data()[0] == 0
    server.start()


@pytest.mark.vellum
def test_libraries_survive_a_sweep(make_server):
    """What a flush leaves is removed in the background, where other keys are left."""
    server = make_server()
    client = server.client()
    client.execute_command("FUNCTION", "LOAD", CODE)
    server.client(db=1).set("stays", "x")
    client.mset({f"key {i}": "x" * 100 for i in range(2000)})
    client.flushdb()
    assert harness.eventually(lambda: client.info("vellum")["live_slots"] < 100)
    assert len(client.execute_command("FUNCTION", "LIST")) == 1
    server.restart()
    assert server.client().execute_command("FCALL", "count", 0) == 0


@pytest.mark.vellum
def test_libraries_are_not_evicted(make_server):
    server = make_server(maxstore="40mb", partitions=2, journal_size="8mb", maxmemory_policy="allkeys-lru")
    client = server.client()
    client.execute_command("FUNCTION", "LOAD", CODE + "\n--" + "x" * 200_000)
    for i in range(1500):
        client.set(f"key {i}", b"x" * 50_000)
    assert client.info()["evicted_keys"] > 100
    assert client.execute_command("FCALL", "count", 0) == 0


@pytest.mark.vellum
def test_functions_do_not_stop_others(busy):
    """While a function runs, others may load nothing, but serve all other keys (on other workers)."""
    server, call = busy
    if server.workers == 1:
        pytest.skip("one worker")
    thread = call("FCALL", "loop", 1, "k")
    with server.raw() as raw:
        harness.eventually(lambda: b"duration_ms" in raw.call("FUNCTION", "STATS"))
        clients = [server.client() for _ in range(6)]
        served = 0
        for one in clients:
            try:
                served += one.set("other", "x") is True
            except harness.redis.ResponseError:
                pass
        assert served > 0
        assert raw.call("FUNCTION", "KILL") == OK
    thread.join()


def test_pause_of_writes_lets_readers_call(make_server):
    server = make_server()
    client, other = server.client(), server.client()
    client.execute_command("FUNCTION", "LOAD", CODE)
    for one in client, other:
        one.execute_command("FCALL_RO", "count", 0)  # the worker has loaded it
    client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
    assert other.execute_command("FCALL", "count", 0) == 0
    began = time.monotonic()
    waiter = threading.Thread(target=server.client().execute_command, args=("FCALL", "put", 1, "k", "v"))
    waiter.start()
    harness.eventually(lambda: client.info("clients")["blocked_clients"] > 0 or time.monotonic() - began > 0.5)
    assert client.get("k") is None
    client.execute_command("CLIENT", "UNPAUSE")
    waiter.join()
    assert client.get("k") == b"v"


@pytest.mark.vellum
@pytest.mark.slow
@pytest.mark.sockets("the proxy would hold what fills the server's memory")
def test_without_memory(make_server):
    server = make_server(maxmemory=64 << 20, partitions=4, journal_size=16 << 20, maxmemory_clients="1gb")
    client = server.client()
    client.set("k", "old")
    put, get = "return redis.call('SET', keys[1], 'x')", "return redis.call('GET', keys[1])"
    for name, body, flags in ("plain", put, ""), ("allowed", put, "'allow-oom'"), ("read", get, "'no-writes'"):
        client.execute_command("FUNCTION", "LOAD", function(body, name, name, flags))
    dump = client.execute_command("FUNCTION", "DUMP")
    crowd = []
    while client.info("vellum")["over_memory"] == 0 and len(crowd) < 200:
        one = server.raw()
        one.send(b"*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$1500000\r\n" + b"z" * 1000000)
        crowd.append(one)
        time.sleep(0.02)
    put, get = put.replace("keys", "KEYS"), get.replace("keys", "KEYS")
    no_flag = "allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
    no_command = "command not allowed when used memory > 'maxmemory'"
    for words, text in ((("FCALL", "plain", 1, "k"), no_flag), (("EVAL", "#!lua\n" + put, 1, "k"), no_flag),
                        (("EVAL", put, 1, "k"), no_command), (("FUNCTION", "LOAD", library(F)), no_command),
                        (("FUNCTION", "RESTORE", dump, "FLUSH"), no_command)):
        with pytest.raises(harness.redis.ResponseError, match=text):
            client.execute_command(*words)
    assert client.execute_command("FCALL", "read", 1, "k") == b"old"
    assert client.execute_command("EVAL", get, 1, "k") == b"old"
    assert client.execute_command("EVAL", "#!lua flags=no-writes\n" + get, 1, "k") == b"old"
    assert client.execute_command("FCALL", "allowed", 1, "k") == b"OK" and client.get("k") == b"x"
    assert client.execute_command("EVAL", "#!lua flags=allow-oom\n" + put, 1, "k") == b"OK"
    assert client.execute_command("FUNCTION", "DELETE", "plain") == b"OK"
    for one in crowd:
        one.close()
