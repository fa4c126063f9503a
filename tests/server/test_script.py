"""Lua scripts: what they see, what they answer, and that a run which is thrown away leaves nothing
behind. Under the WAIT build a script is run again at its store reads."""

import hashlib
import threading
import time

import pytest

import harness
from harness import encode

pytestmark = pytest.mark.shared

OK = b"+OK\r\n"


def sha(text):
    return hashlib.sha1(text.encode()).hexdigest()


def error_of(script, text, line=1):
    return f"-{text} script: {sha(script)}, on @user_script:{line}.\r\n".encode()


@pytest.fixture
def raw(server):
    with server.raw() as connection:
        yield connection


# ---- values ----

@pytest.mark.parametrize("script, reply", [
    ("return 1", b":1\r\n"),
    ("return 3.99", b":3\r\n"),
    ("return -3.99", b":-3\r\n"),
    ("return 2^53", b":9007199254740992\r\n"),
    ("return 'a\\0b'", b"$3\r\na\0b\r\n"),
    ("return true", b":1\r\n"),
    ("return false", b"$-1\r\n"),
    ("return nil", b"$-1\r\n"),
    ("return print", None),
    ("return {1,{2,'x'},false,nil,5}", b"*3\r\n:1\r\n*2\r\n:2\r\n$1\r\nx\r\n$-1\r\n"),
    ("return {ok='fine'}", b"+fine\r\n"),
    ("return {err='BAD thing'}", b"-BAD thing\r\n"),
    ("return {double=3.5}", b"$3\r\n3.5\r\n"),
    ("return {map={a=1}}", b"*2\r\n$1\r\na\r\n:1\r\n"),
    ("return {set={a=true}}", b"*1\r\n$1\r\na\r\n"),
    ("return {big_number='12'}", b"$2\r\n12\r\n"),
    ("return {big_number='1\\r\\n2'}", b"$4\r\n1  2\r\n"),
    ("return {verbatim_string={string='abc',format='txt'}}", b"$3\r\nabc\r\n"),
    ("return redis.status_reply('X')", b"+X\r\n"),
    ("return redis.error_reply('X')", b"-ERR X\r\n"),
    ("return redis.error_reply('-CODE X')", b"-CODE X\r\n"),
    ("return redis.sha1hex('')", b"$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n"),
    ("return redis.call('ping')", b"+PONG\r\n"),
    ("return #redis.call('pubsub','help') > 3", b":1\r\n"),
    ("return redis.call('get','none')", b"$-1\r\n"),
    ("redis.setresp(3) return redis.call('get','none') == nil and 'nil'", b"$3\r\nnil\r\n"),
    ("redis.setresp(3) redis.call('hset','h','a','1') return redis.call('hgetall','h').map.a",
     b"$1\r\n1\r\n"),
    ("return #redis.sha1hex(string.rep('x', 119))", b":40\r\n"),
    ("return {KEYS[1], ARGV[1], #KEYS, #ARGV}", b"*4\r\n$1\r\nk\r\n$1\r\na\r\n:1\r\n:1\r\n"),
    ("redis.call('set','k',1/3) return redis.call('get','k')",
     b"$19\r\n0.33333333333333331\r\n"),
])
def test_value(raw, script, reply):
    if reply is not None:
        assert raw.call("EVAL", script, 1, "k", "a") == reply
    else:
        assert raw.call("EVAL", script, 1, "k", "a").startswith(b"-ERR user_script:1: Script atte")


def test_long_texts_are_changed_in_pieces(raw):
    text = b"aBc\0d" * 123_457 + b"xY"
    raw.call("SET", "text", text)
    for name, changed in ("upper", text.upper()), ("lower", text.lower()), ("reverse", text[::-1]):
        script = f"return string.{name}(redis.call('GET', KEYS[1]))"
        assert raw.call("EVAL", script, 1, "text") == b"$%d\r\n%s\r\n" % (len(text), changed)


def test_info_stands_in_its_turn(raw):
    """It reports what was written before it, not what follows it."""
    raw.call("FLUSHALL")
    script = ("redis.call('set','a','1') redis.call('setex','b','100','1') local text = "
              "redis.call('info','keyspace') redis.call('set','c','1') "
              "return text:match('db0:keys=%d+,expires=%d+')")
    assert raw.call("EVAL", script, 0) == b"$20\r\ndb0:keys=2,expires=1\r\n"
    raw.send(b"".join(encode(*words) for words in (
        ("MULTI",), ("DEL", "a"), ("INFO", "keyspace"), ("FLUSHDB",), ("INFO", "keyspace"), ("EXEC",))))
    for _ in range(5):
        raw.reply()
    reply = raw.reply()
    assert b"db0:keys=2,expires=1," in reply and reply.endswith(b"# Keyspace\r\n\r\n")


def test_waits_end_at_once(raw):
    assert raw.call("EVAL", "return redis.call('wait', 1, 0)", 0) == b":0\r\n"


@pytest.mark.skipif(harness.IS_REDIS, reason="7.2 has WAITAOF, 7.0 has not")
def test_waitaof_stands_in_no_script(raw):
    reply = raw.call("EVAL", "return redis.call('waitaof', 0, 1, 0)", 0)
    assert reply.startswith(b"-ERR This Redis command is not allowed from script")


@pytest.mark.skipif(harness.IS_REDIS, reason="7.2 lets them stand in scripts, 7.0 does not")
@pytest.mark.parametrize("words, reply, left", [
    ("'blpop', 'none', 'l', 0", b"*2\r\n$1\r\nl\r\n$1\r\na\r\n", [b"b", b"c"]),
    ("'brpop', 'l', 0", b"*2\r\n$1\r\nl\r\n$1\r\nc\r\n", [b"a", b"b"]),
    ("'blmove', 'l', 'l', 'left', 'right', 0", b"$1\r\na\r\n", [b"b", b"c", b"a"]),
    ("'brpoplpush', 'l', 'l', 0", b"$1\r\nc\r\n", [b"c", b"a", b"b"]),
    ("'blmpop', 0, 1, 'l', 'left'", b"*2\r\n$1\r\nl\r\n*1\r\n$1\r\na\r\n", [b"b", b"c"]),
    ("'bzpopmin', 'z', 0", b"*3\r\n$1\r\nz\r\n$1\r\nx\r\n$1\r\n1\r\n", None),
    ("'bzpopmax', 'z', 0", b"*3\r\n$1\r\nz\r\n$1\r\ny\r\n$1\r\n2\r\n", None),
    ("'bzmpop', 0, 1, 'z', 'min'",
     b"*2\r\n$1\r\nz\r\n*1\r\n*2\r\n$1\r\nx\r\n$1\r\n1\r\n", None),
])
def test_blocking_commands_do_not_wait(server, raw, words, reply, left):
    client = server.client()
    assert raw.call("EVAL", f"return redis.call({words})", 2, "l", "z") == b"$-1\r\n"
    client.rpush("l", "a", "b", "c")
    client.zadd("z", {"x": 1, "y": 2})
    assert raw.call("EVAL", f"return redis.call({words})", 2, "l", "z") == reply
    if left is not None:
        assert client.lrange("l", 0, -1) == left
    else:
        assert client.zcard("z") == 1
    assert raw.call("EVAL_RO", f"return redis.call({words})", 2, "l", "z").startswith(
        b"-ERR Write commands are not allowed from read-only scripts.")


@pytest.mark.parametrize("script, reply", [
    ("return {map={a=1}}", b"%1\r\n$1\r\na\r\n:1\r\n"),
    ("return {set={a=true}}", b"~1\r\n$1\r\na\r\n"),
    ("return {double=3.5}", b",3.5\r\n"),
    ("return {big_number='12'}", b"(12\r\n"),
    ("return {big_number='1\\r\\n2'}", b"(1  2\r\n"),
    ("return false", b"_\r\n"),
    ("redis.setresp(3) return false", b"#f\r\n"),
    ("redis.setresp(3) redis.call('hset','h','a','1') return redis.call('hgetall','h')",
     b"%1\r\n$1\r\na\r\n$1\r\n1\r\n"),
])
def test_value_in_resp3(raw, script, reply):
    raw.call("HELLO", "3")
    assert raw.call("EVAL", script, 0) == reply


# ---- errors ----

@pytest.mark.parametrize("script, text", [
    ("error('boo')", "ERR user_script:1: boo"),
    ("error({err='CODE boo'})", "CODE boo"),
    ("foo = 1", "ERR user_script:1: Attempt to modify a readonly table"),
    ("return foo", "ERR user_script:1: Script attempted to access nonexistent global variable "
                   "'foo'"),
    ("redis.call('nosuch')", "ERR Unknown Redis command called from script"),
    ("redis.call('get')", "ERR Wrong number of args calling Redis command from script"),
    ("redis.call('multi')", "ERR This Redis command is not allowed from script"),
    ("redis.call('eval','return 1',0)", "ERR This Redis command is not allowed from script"),
    ("redis.call()", "ERR Please specify at least one argument for this redis lib call"),
    ("redis.call({})", "ERR Lua redis lib command arguments must be strings or integers"),
    ("redis.call('select', 99)", "ERR DB index is out of range"),
    ("redis.log(1)", "ERR redis.log() requires two arguments or more."),
])
def test_error(raw, script, text):
    assert raw.call("EVAL", script, 0) == error_of(script, text)


@pytest.mark.parametrize("words, reply", [
    (("EVAL", "return 1", "x"), b"-ERR value is not an integer or out of range\r\n"),
    (("EVAL", "return 1", "-1"), b"-ERR Number of keys can't be negative\r\n"),
    (("EVAL", "return 1", "1"), b"-ERR Number of keys can't be greater than number of args\r\n"),
    (("EVAL", "return return", "0"),
     b"-ERR Error compiling script (new function): user_script:1: unexpected symbol near "
     b"'return'\r\n"),
    (("EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"),
     b"-NOSCRIPT No matching script. Please use EVAL.\r\n"),
    (("EVAL_RO", "return redis.call('set','k','v')", "1", "k"),
     error_of("return redis.call('set','k','v')",
              "ERR Write commands are not allowed from read-only scripts.")),
    (("EVAL_RO", "return redis.call('pfcount','k')", "1", "k"),
     error_of("return redis.call('pfcount','k')",
              "ERR Write commands are not allowed from read-only scripts.")),
    (("EVAL", "#!lua flags=nosuch\nreturn 1", "0"),
     b"-ERR Unexpected flag in script shebang: nosuch\r\n"),
    (("EVAL", "#!lua", "0"), b"-ERR Invalid script shebang\r\n"),
    (("EVAL", "#!js\nreturn 1", "0"), b"-ERR Unexpected engine in script shebang: #!js\r\n"),
    (("EVAL", "#!lua what=1\nreturn 1", "0"), b"-ERR Unknown lua shebang option: what=1\r\n"),
    (("EVAL_RO", "#!lua\nreturn 1", "0"),
     b"-ERR Can not execute a script with write flag using *_ro command.\r\n"),
    (("EVAL_RO", "#!lua flags=no-writes\nreturn 1", "0"), b":1\r\n"),
    (("SCRIPT", "LOAD", "return ("),
     b"-ERR Error compiling script (new function): user_script:1: unexpected symbol near "
     b"'<eof>'\r\n"),
    (("SCRIPT", "FLUSH", "x"), b"-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n"),
    (("SCRIPT", "KILL"), b"-NOTBUSY No scripts in execution right now.\r\n"),
])
def test_refusal(raw, words, reply):
    assert raw.call(*words) == reply


def test_error_in_pcall_is_a_value(raw):
    raw.call("SET", "k", "abc")
    assert raw.call("EVAL", "return redis.pcall('incr', KEYS[1])", 1, "k") == \
        b"-ERR value is not an integer or out of range\r\n"
    assert raw.call("EVAL", "local ok, e = pcall(redis.call, 'incr', KEYS[1]) return {ok, e}", 1,
                    "k") == b"*2\r\n$-1\r\n$43\r\nERR value is not an integer or out of range\r\n"


# ---- the cache ----

def test_cache(raw):
    name = sha("return ARGV[1]")
    assert raw.call("EVALSHA", name, 0, "x").startswith(b"-NOSCRIPT")
    assert raw.call("SCRIPT", "LOAD", "return ARGV[1]") == b"$40\r\n%s\r\n" % name.encode()
    assert raw.call("EVALSHA", name.upper(), 0, "x") == b"$1\r\nx\r\n"
    assert raw.call("SCRIPT", "EXISTS", name.upper(), "a" * 40) == b"*2\r\n:1\r\n:0\r\n"
    assert raw.call("SCRIPT", "FLUSH", "ASYNC") == OK
    assert raw.call("SCRIPT", "EXISTS", name) == b"*1\r\n:0\r\n"
    assert raw.call("EVALSHA", name, 0, "x").startswith(b"-NOSCRIPT")
    assert raw.call("EVAL", "return ARGV[1]", 0, "x") == b"$1\r\nx\r\n"
    assert raw.call("EVALSHA", name, 0, "x") == b"$1\r\nx\r\n"


def test_every_worker_knows_a_script(server):
    with server.raw() as first:
        first.call("SCRIPT", "LOAD", "return 7")
    for _ in range(8):
        with server.raw() as other:
            assert other.call("EVALSHA", sha("return 7"), 0) == b":7\r\n"


@pytest.mark.vellum
def test_scripts_of_eval_are_forgotten_when_there_are_many(raw):
    raw.call("SCRIPT", "LOAD", "return 'loaded'")
    for i in range(600):
        raw.call("EVAL", f"return {i}", 0)
    assert raw.call("SCRIPT", "EXISTS", sha("return 0"), sha("return 599"),
                    sha("return 'loaded'")) == b"*3\r\n:0\r\n:1\r\n:1\r\n"


# ---- the sandbox ----

@pytest.mark.parametrize("script", [
    "redis.call = 1",
    "string.len = 1",
    "_G.x = 1",
    "rawset(_G, 'x', 1)",
    "rawset(redis, 'x', 1)",
    "table.insert(redis, 1)",
    "setmetatable(_G, {})",
    "getmetatable('').__index = 1",
    "KEYS = 1",
])
def test_nothing_shared_can_be_changed(raw, script):
    # (Stock 7.0 lets the metatable of strings be changed; later ones do not.)
    if harness.IS_REDIS and "getmetatable" in script:
        pytest.skip("7.0 lets it")
    assert b"Attempt to modify a readonly table" in raw.call("EVAL", script, 0)


def test_an_error_that_is_a_shared_table_is_not_written_to(raw):
    for table in ("_G", "string", "cjson"):
        assert raw.call("EVAL", f"error({table})", "0").startswith(b"-ERR")
    assert b"nonexistent global variable 'line'" in raw.call("EVAL", "return line", "0")
    assert raw.call("EVAL", "return {string.line, cjson.source}", "0") == b"*0\r\n"
    assert b"readonly table" in raw.call("EVAL", "line = 1", "0")


@pytest.mark.vellum
def test_long_arguments_are_dropped_after_the_run(make_server):
    server = make_server(maxmemory="64mb")
    with server.raw() as raw:
        for _ in range(3):
            assert raw.call("EVAL", "return 1", "0", b"x" * 14_000_000) == b":1\r\n"
            assert raw.call("EVAL", "return #string.rep('x', 12e6)", "0") == b":12000000\r\n"


@pytest.mark.vellum
def test_a_script_can_be_killed_while_it_is_compiled(make_server):
    """It would end with a syntax error."""
    server = make_server(busy_reply_threshold="1", maxmemory="1gb")
    with server.raw() as raw, server.raw() as other:
        raw.send(encode("EVAL", "local a = 1 " + "a = a + 1 " * 1_000_000 + "(", "0"))
        limit = time.monotonic() + 60
        while other.call("SCRIPT", "KILL") != OK:
            assert time.monotonic() < limit
        assert b"Script killed by user with SCRIPT KILL" in raw.reply()
        assert raw.call("EVAL", "return 1", "0") == b":1\r\n"


@pytest.mark.parametrize("name", ["print", "dofile", "loadfile", "require", "module", "package",
                                  "os", "io", "debug", "getfenv", "setfenv", "newproxy"])
def test_what_is_not_there(raw, name):
    assert b"nonexistent global variable" in raw.call("EVAL", f"return {name}", 0)


@pytest.mark.parametrize("script", [
    "return loadstring(string.dump(function() return 1 end))()",
    "local function f() return 1 + f() end return f()",
    "return string.rep('x', 1e10)",
    "local t = {} for i = 1, 1e9 do t[i] = {i} end",
    "return {unpack({}, 1, 1e9)}",
    "return loadstring('return ' .. string.rep('(', 100000))()",
    "return ('a'):rep(10000):find(('a?'):rep(10000) .. ('a'):rep(10000))",
    "return ('a'):rep(1000):find('.-.-.-.-.-.-.-.-b')",
    "local t = {} for i = 1, 100000 do t = {t} end return t",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do t[#t + 1] = string.rep(#t .. '', 2000) end",
    "while true do redis.call('rpush', 'k', string.rep('x', 1000000)) end",
    "error({})",
    "error()",
])
@pytest.mark.vellum
def test_hostile_scripts_end_in_errors(raw, script):
    assert raw.call("EVAL", script, 0).startswith((b"-ERR ", b"-OOM "))
    assert raw.call("EVAL", "return 1", 0) == b":1\r\n"


# ---- runs that are thrown away ----

def test_undeclared_keys(raw):
    script = "redis.call('set', 'a', ARGV[1]) redis.call('set', 'b', ARGV[1]) " \
        "return {redis.call('get', 'a'), redis.call('get', 'b')}"
    for value in "12":
        assert raw.call("EVAL", script, 0, value) == b"*2\r\n" + 2 * (b"$1\r\n%s\r\n" % value.encode())


def processor_time(client, *words):
    def used():
        cpu = client.info("cpu")
        return cpu["used_cpu_user"] + cpu["used_cpu_sys"]
    before = used()
    assert client.execute_command(*words) == 50000
    return used() - before


@pytest.mark.parametrize("kind", ["distinct", "equal"])
def test_the_last_of_many_keys_is_found_as_fast_as_the_first(client, kind):
    keys = [f"key{i if kind == 'distinct' else ''}" for i in range(100000)] + ["last"]
    script = "for i = 1, 50000 do redis.call('GET', KEYS[%s]) end return 50000"
    first = processor_time(client, "EVAL", script % "1", len(keys), *keys)
    last = processor_time(client, "EVAL", script % "#KEYS", len(keys), *keys)
    assert last < 5 * first + 0.2, f"{first} s for the first key, {last} s for the last one"


def test_many_keys_are_all_declared(client):
    """Some twice, in two databases and for reading and writing."""
    keys = [f"key{i % 300}" for i in range(400)]
    script = "for i = 1, #KEYS do redis.call('INCR', KEYS[i]) end return redis.call('INCR', 'other')"
    pipe = client.pipeline(transaction=True)
    for key in keys:
        pipe.get(key)
    pipe.eval(script, len(keys), *keys)
    pipe.execute_command("SELECT", 1)
    pipe.eval(script, len(keys), *keys)
    pipe.execute_command("SELECT", 0)
    pipe.mget(*keys[:300])
    replies = pipe.execute()
    assert replies[400:404] == [1, True, 1, True]
    assert replies[404] == [b"2"] * 100 + [b"1"] * 200


def test_a_run_leaves_no_trace(server, raw):
    """Each run reads keys, which waits in the WAIT build, in the middle of all that might stay."""
    log = "line %d" % time.time_ns()
    script = """
        local before = math.random(1000000)
        redis.call('publish', 'channel', 'message')
        redis.log(redis.LOG_WARNING, ARGV[1])
        for i, key in ipairs(KEYS) do
            redis.call('append', key, 'x')
            pcall(redis.call, 'get', key)
            coroutine.wrap(function() redis.call('get', 'other' .. i) end)()
            xpcall(function() redis.call('strlen', key) end, function(e) return e end)
            if math.random(1000000) == nil then return 'no' end
        end
        redis.call('select', 5)
        redis.call('set', 'there', 'x')
        return redis.call('strlen', 'there')
    """
    with server.raw() as listener:
        listener.call("SUBSCRIBE", "channel")
        keys = [f"key{i}" for i in range(10)]
        assert raw.call("EVAL", script, len(keys), *keys, log) == b":1\r\n"
        listener.socket.settimeout(10)
        assert b"message" in listener.reply()
        listener.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.reply()
    for key in keys:
        assert raw.call("GET", key) == b"$1\r\nx\r\n"
    assert raw.call("EXISTS", "there") == b":0\r\n"
    if not harness.IS_REDIS:
        assert server.said().count(log) == 1


@pytest.mark.vellum  # stock 7.0 does not stop the clock, 7.2 does
def test_time_and_chance_stand_still(raw):
    script = """
        local function look() return table.concat(redis.call('time'), '.') end
        local first = look()
        for i = 1, 50 do redis.call('get', 'key' .. i) end
        return first == look() and 'same' or first .. look()
    """
    assert raw.call("EVAL", script, 0) == b"$4\r\nsame\r\n"
    assert raw.call("EVAL", "return math.random(1e9)", 0) != \
        raw.call("EVAL", "return math.random(1e9)", 0)


@pytest.mark.vellum
def test_time_stands_still_until_the_busy_threshold(make_server):
    client = make_server(busy_reply_threshold="60000", maxmemory="1gb").client()
    first, last = client.eval("""
        local first = redis.call('time')
        for i = 1, 1e7 do end
        return {first, redis.call('time')}
    """, 0)
    assert first == last
    assert client.time() > (int(first[0]), int(first[1]))


@pytest.mark.vellum
def test_trees_are_read_by_many_commands_of_one_run(make_server):
    """A run that has waited often reads in place, and its trees keep a buffer from then on."""
    server = make_server(maxmemory="64mb", partitions=4, journal_size="32mb")
    client, count = server.client(), 20_000
    names = [f"m{n:06}-" + "y" * 150 for n in range(count)]
    for at in range(0, count, 1000):
        client.zadd("z", {names[n * 7919 % count]: n * 7919 % count
                          for n in range(at, at + 1000)})
    server.stop()
    server.start()
    script = """
        for i = 0, 1999 do
            redis.call('ZSCORE', KEYS[1], string.format('m%06d-', i * 997 % 20000) .. ARGV[1])
        end
        return {redis.call('ZRANGE', KEYS[1], 1, 3), redis.call('ZPOPMIN', KEYS[1], 10),
                redis.call('ZRANGE', KEYS[1], 0, 9)}
    """
    seen, popped, left = server.client().eval(script, 1, "z", "y" * 150)
    assert seen == [name.encode() for name in names[1:4]]
    assert popped[::2] == [name.encode() for name in names[:10]]
    assert left == [name.encode() for name in names[10:20]]


def test_reads_between_writes_of_a_collection(raw):
    """A node that one command has changed and others read, with yet others between."""
    count = 3000
    raw.call("ZADD", "z", *[word for n in range(count) for word in (n, f"m{n:04}")])
    raw.call("SET", "long", "x" * 100_000)
    script = """
        local scores = {}
        for i = 0, 19 do
            redis.call('ZADD', 'z', i + 0.5, 'n' .. i)
            for j = 1, 3 do
                scores[#scores + 1] = redis.call('ZSCORE', 'z', string.format('m%04d', i))
                redis.call('GETRANGE', 'long', 0, 5000)
            end
        end
        return scores
    """
    reply = raw.call("EVAL", script, 2, "z", "long")
    assert reply == b"*60\r\n" + b"".join(
        b"$%d\r\n%d\r\n" % (len(str(n)), n) * 3 for n in range(20))
    assert raw.call("ZRANGE", "z", 0, 3) == (
        b"*4\r\n$5\r\nm0000\r\n$2\r\nn0\r\n$5\r\nm0001\r\n$2\r\nn1\r\n")
    assert raw.call("ZCARD", "z") == b":%d\r\n" % (count + 20)


# ---- isolation ----

def test_scripts_are_atomic(server):
    """Transfers between accounts, some declared and some not; the sum is always the same."""
    accounts = [f"account{i}" for i in range(8)]
    with server.raw() as raw:
        for account in accounts:
            raw.call("SET", account, 100)
    declared = "redis.call('decrby', KEYS[1], ARGV[1]) redis.call('incrby', KEYS[2], ARGV[1])"
    hidden = "redis.call('decrby', ARGV[2], ARGV[1]) redis.call('incrby', ARGV[3], ARGV[1])"
    total = "local sum = 0 for i, k in ipairs(KEYS) do sum = sum + redis.call('get', k) end " \
        "return sum"
    sums = []

    def transfer(number):
        with server.raw() as raw:
            for i in range(60):
                a, b = accounts[(number + i) % 8], accounts[(number * 3 + i * 5 + 1) % 8]
                if i % 3 == 0:
                    assert raw.call("EVAL", hidden, 0, 5, a, b) == b"$-1\r\n"
                else:
                    assert raw.call("EVAL", declared, 2, a, b, 5) == b"$-1\r\n"
                sums.append(raw.call("EVAL_RO", total, 8, *accounts))

    threads = [threading.Thread(target=transfer, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sums) == 240 and set(sums) == {b":800\r\n"}


def test_scripts_in_transactions(raw):
    raw.call("MULTI")
    raw.call("SET", "k", "1")
    raw.call("EVAL", "return redis.call('incr', KEYS[1])", 1, "k")
    raw.call("EVALSHA", "a" * 40, 0)
    raw.call("EVAL_RO", "return redis.call('get', KEYS[1])", 1, "k")
    raw.call("EVAL", "error('x')", 0)
    reply = raw.call("EXEC")
    assert reply.startswith(b"*5\r\n+OK\r\n:2\r\n-NOSCRIPT")
    assert b"$1\r\n2\r\n-ERR user_script:1: x" in reply


def test_large_values(raw):
    value = b"x" * 300000
    raw.call("SET", "large", value)
    assert raw.call("EVAL", "return #redis.call('get', KEYS[1])", 1, "large") == b":300000\r\n"
    assert raw.call("EVAL", "return redis.call('get', KEYS[1])", 1, "large") == \
        b"$300000\r\n" + value + b"\r\n"


# ---- libraries ----

MESSAGES = "local function e(...) local ok, m = pcall(...) return m end "


@pytest.mark.parametrize("script, reply", [
    ("return cjson.encode({1, 'a/b\\n\"', true, {x=1.5}, cjson.null})",
     rb'[1,"a\/b\n\"",true,{"x":1.5},null]'),
    ("return cjson.encode({})", b"{}"),
    ("return cjson.encode({[1]=1,[3]=3})", b"[1,null,3]"),
    ("return cjson.encode('\\0\\127')", rb'"\u0000\u007f"'),
    ("return cjson.encode(cjson.decode('{\"a\":[1,-1.5e3,\"\\\\u00e9\\\\ud83d\\\\ude00\"]}'))",
     '{"a":[1,-1500,"\u00e9\U0001f600"]}'.encode()),
    ("return e(cjson.decode, '{')", b"Expected object key string but found T_END at character 2"),
    ("return e(cjson.decode, '[1 2]')",
     b"Expected comma or array end but found T_NUMBER at character 4"),
    ("return e(cjson.decode, '[nil]')", b"Expected value but found invalid token at character 2"),
    ("return tostring(cjson.decode('[-Inf]')[1])", b"-inf"),
    ("return tostring(#cjson.encode(string.rep('\\n', 100000) .. 'x'))", b"200003"),
    ("return cjson.encode({cmsgpack.unpack_limit('\\1\\2\\3', 0, 1)})", b"[1]"),
    ("return cjson.encode({cmsgpack.unpack_limit('\\1\\2\\3', 0, 0)})", b"[1,2,3]"),
    ("return cjson.encode({struct.size('!4i3'), #struct.pack('!4i3', 1)})", b"[5,5]"),
    ("return e(cjson.decode, '@')", b"Expected value but found invalid token at character 1"),
    ("return e(cjson.encode, {[1]=1,[100]=2})",
     b"Cannot serialise table: excessively sparse array"),
    ("return e(cjson.encode, 0/0)", b"Cannot serialise number: must not be NaN or Inf"),
    ("local t = {} for i = 1, 1001 do t = {t} end return e(cjson.encode, t)",
     b"Cannot serialise, excessive nesting (1001)"),
    ("return e(cjson.decode, ('['):rep(1001))",
     b"Found too many nested data structures (1001) at character 1001"),
    ("return cmsgpack.pack(1, -33, 65536, 'a', {1, 2}, {a=1}, 1.5, true)",
     b"\x01\xd0\xdf\xce\0\1\0\0\xa1a\x92\1\2\x81\xa1a\1\xca\x3f\xc0\0\0\xc3"),
    ("return cjson.encode({cmsgpack.unpack(cmsgpack.pack(-2^53, {x={1,2}}, false, 0.1))})",
     b'[-9.007199254741e+15,{"x":[1,2]},false,0.1]'),
    ("return e(cmsgpack.unpack, '\\193')", b"Bad data format in input."),
    ("return e(cmsgpack.unpack, '\\223\\255\\255\\255\\255')", b"Missing bytes in input."),
    ("return struct.pack('>Hi3s!4bd', 258, -2, 'ab', 1, 1.5)",
     b"\1\2\xff\xff\xfeab\0\1\0\0\0\x3f\xf8\0\0\0\0\0\0"),
    ("return cjson.encode({struct.unpack('<hBc0', '\\254\\255\\2abc')})", b'[-2,"ab",6]'),
    ("return e(struct.unpack, 'i', 'abc')", b"bad argument #2 to '?' (data string too short)"),
    ("return e(struct.pack, 'i99', 1)", b"integral size 99 is larger than limit of 32"),
    ("return table.concat({bit.band(255, 15), bit.bnot(0), bit.arshift(-16, 2), bit.tohex(-1), "
     "bit.rol(305419896, 12), bit.tobit(4294967295)}, ' ')",
     b"15 -1 -4 ffffffff 1164411171 -1"),
    ("return ('THE (quick) fox'):gsub('%f[%a]%a+', string.lower)", b"the (quick) fox"),
    ("return ('k=v, a=b'):gsub('(%w+)=(%w+)', '%2=%1')", b"v=k, b=a"),
    ("return ('f(a(b)c)d'):match('%b()')", b"(a(b)c)"),
    ("return e(string.find, 'a', '[a')", b"malformed pattern (missing ']')"),
    ("return e(string.gsub, 'a', 'a', '%9')", b"invalid capture index"),
])
def test_libraries(raw, script, reply):
    assert raw.call("EVAL", MESSAGES + script, 0) == b"$%d\r\n%s\r\n" % (len(reply), reply)


@pytest.mark.vellum
def test_options_of_cjson_end_with_the_script(raw):
    sparse = "return cjson.encode({[1]=1,[100]=2})"
    assert raw.call("EVAL", "cjson.encode_sparse_array(true) " + sparse, 0) == \
        b'$15\r\n{"1":1,"100":2}\r\n'
    assert b"excessively sparse" in raw.call("EVAL", sparse, 0)


def test_info(raw):
    raw.call("SCRIPT", "LOAD", "return 1")
    assert b"number_of_cached_scripts:1\r\n" in raw.call("INFO", "memory")


WALK = "return redis.call('LPOS', KEYS[1], 'absent')"
TURN = """if redis.call('PUBSUB', 'NUMSUB', 'c')[2] == 0 then redis.call('PING')
          else redis.call('LTRIM', KEYS[1], 0, 0) end """


def reply_while_others_subscribe(server, commands, attempt):
    """The last reply; what PUBSUB NUMSUB says changes all the time."""
    with server.raw() as caller, server.raw() as other:
        caller.send(commands + encode("PING"))
        for _ in range(20):
            for words in ("SUBSCRIBE", "c"), ("UNSUBSCRIBE", "c"):
                other.call(*words)
                time.sleep(0.0002 * (attempt % 5))
        last = None
        while (reply := caller.reply()) != b"+PONG\r\n":
            last = reply
    return last


@pytest.mark.parametrize("commands", [
    encode("EVAL", TURN + WALK, "1", "list"),
    encode("MULTI") + encode("EVAL", TURN, "1", "list") + encode("LPOS", "list", "absent") +
    encode("EXEC"),
], ids=["script", "exec"])
def test_what_a_walk_has_found_is_of_its_own_run(server, commands):
    """A script runs anew while LPOS walks, and goes another way then: the list is not the one that was
    walked before."""
    client = server.client()
    for attempt in range(10):
        client.delete("list")
        for _ in range(3):
            client.rpush("list", *range(10000))
        last = reply_while_others_subscribe(server, commands, attempt)
        assert last in (b"$-1\r\n", b"*2\r\n$-1\r\n$-1\r\n")
        assert client.llen("list") in (1, 30000)


SORT = "return redis.call('SORT_RO', KEYS[1], 'BY', 'w*', 'LIMIT', '0', '1')"
WEIGHT = """local n = redis.call('PUBSUB', 'NUMSUB', 'c')[2]
            redis.call('SET', 'w0', n == 0 and '-1' or '1000000') """


@pytest.mark.parametrize("commands", [
    encode("EVAL", WEIGHT + "redis.call('SET', 'n', n) " + SORT, "1", "list"),
    encode("MULTI") + encode("EVAL", WEIGHT + "redis.call('SET', 'n', n)", "0") +
    encode("EVAL_RO", SORT, "1", "list") + encode("EXEC"),
], ids=["script", "exec"])
def test_what_sort_has_weighed_is_of_its_own_run(server, commands):
    """The weights are of keys that SORT does not name: what is written to them is another thing in
    each run."""
    client = server.client()
    client.rpush("list", *range(20000))
    client.mset({f"w{n}": n for n in range(20000)})
    for attempt in range(10):
        last = reply_while_others_subscribe(server, commands, attempt)
        first = b"0" if client.get("n") == b"0" else b"1"
        assert last.endswith(b"*1\r\n$1\r\n%s\r\n" % first)


@pytest.mark.vellum
def test_writes_that_are_others_in_each_run(raw):
    """They do not keep a walk of another key from its end; one of the same key is refused in the end."""
    for _ in range(3):
        raw.call("RPUSH", "list", *range(10000))
    other = "redis.call('SET', KEYS[2], redis.call('INFO', 'cpu')) "
    assert raw.call("EVAL", other + WALK, "2", "list", "k") == b"$-1\r\n"
    same = "redis.call('LSET', KEYS[1], 0, redis.call('INFO', 'cpu')) "
    reply = raw.call("EVAL", same + WALK, "1", "list")
    assert reply == b"$-1\r\n" or reply.startswith(b"-ERR The script writes something else")


@pytest.mark.vellum
def test_figures_leave_out_what_only_earlier_runs_have_called(server):
    """A run that another client's SUBSCRIBE sends another way: the walk of those before it is
    nobody's."""
    script = ("if redis.call('PUBSUB', 'NUMSUB', 'c')[2] > 0 then return 'short' end "
              "redis.call('SMEMBERS', KEYS[1]) return 'long'")
    client = server.client()
    client.sadd("s", *range(50_000))
    for _ in range(50):
        client.config_resetstat()
        with server.raw() as raw, server.raw() as subscriber:
            raw.send(encode("EVAL", script, 1, "s"))
            subscriber.call("SUBSCRIBE", "c")
            way = raw.reply()
        calls = client.info("commandstats").get("cmdstat_smembers", {"calls": 0})["calls"]
        assert calls == (way == b"$4\r\nlong\r\n")
        if calls == 0:
            break
