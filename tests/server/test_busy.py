"""Scripts that never end: which clients get BUSY, what continues, and how scripts are killed."""

import select
import signal
import threading
import time

import pytest

import harness
from harness import eventually

OK = b"+OK\r\n"
PONG = b"+PONG\r\n"
BUSY = (b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        b"\r\n")
KILLED = b"Script killed by user with SCRIPT KILL..."
ENDLESS = "while true do pcall(error) end"

pytestmark = pytest.mark.skipif(bool(harness.PROXY), reason="a worker is busy for its channels")


@pytest.fixture
def connect(server):
    """More connections; the first ones are spread over the workers."""
    opened = []

    def more():
        opened.append(server.raw())
        return opened[-1]

    yield more
    for raw in opened:
        raw.close()


@pytest.fixture
def others(connect, workers):
    """One connection for each worker, and the threshold set low."""
    made = [connect() for _ in range(workers)]
    assert made[0].call("CONFIG", "SET", "lua-time-limit", "10") == OK
    assert made[0].call("CONFIG", "GET", "busy-reply-threshold").endswith(b"$2\r\n10\r\n")
    return made


@pytest.fixture
def busy(connect, others):
    """Begins an endless script, and returns the connection that waits for it."""

    def begin(script=ENDLESS, *keys):
        runner = connect()
        runner.send(harness.encode("EVAL", script, len(keys), *keys))
        assert eventually(lambda: BUSY in [other.call("PING") for other in others])
        return runner

    return begin


def kill(other, runner):
    assert other.call("SCRIPT", "KILL") == OK
    assert KILLED in runner.reply()
    assert runner.call("PING") == PONG
    assert other.call("SCRIPT", "KILL") == b"-NOTBUSY No scripts in execution right now.\r\n"


def test_others_get_busy(others, busy, connect, workers):
    runner = busy()
    assert [other.call("PING") for other in others].count(BUSY) == 1
    answers = {connect().call("PING") for _ in range(workers)}
    assert answers == {BUSY if workers == 1 else PONG}  # new ones go where somebody has time
    kill(others[0], runner)
    assert {other.call("PING") for other in others} == {PONG}


def test_many_commands_at_once(others, busy):
    runner = busy()
    for other in others:
        other.send(harness.encode("ECHO", "x") * 500 + harness.encode("GET", "y" * 20000))
        assert {other.reply() for _ in range(500)} in ({BUSY}, {b"$1\r\nx\r\n"})
        assert other.reply() in (BUSY, b"$-1\r\n")
        assert other.call("NOSUCH").startswith(b"-ERR unknown command")
    kill(others[0], runner)


def test_what_is_allowed(others, busy):
    runner = busy()
    for other in others:
        assert other.call("MULTI") == OK
        assert other.call("DISCARD") == OK
        assert other.call("WATCH", "w") == OK
        assert other.call("UNWATCH") == OK
        assert other.call("HELLO", "2").startswith(b"*")
        assert other.call("RESET") == b"+RESET\r\n"
        assert other.call("SHUTDOWN") == BUSY
        assert other.call("CLIENT", "LIST") == BUSY
    kill(others[0], runner)


def test_transactions(others, busy, connect):
    begun = [other.call("MULTI") for other in others]
    assert set(begun) == {OK}
    runner = busy(ENDLESS, "k")
    for other in others:
        assert other.call("INCR", "k") in (BUSY, b"+QUEUED\r\n")
        assert other.call("EXEC") == b"-EXECABORT Transaction discarded because of: " + BUSY[1:]
        assert other.call("MULTI") == OK
    kill(connect(), runner)
    assert [other.call("EXEC") for other in others] == [b"*0\r\n"] * len(others)
    assert others[0].call("EXISTS", "k") == b":0\r\n"


def test_its_keys_are_refused_to_everybody(others, busy):
    runner = busy(ENDLESS, "k")
    for other in others:
        assert other.call("GET", "k") == BUSY
        assert other.call("MSET", "j", "1", "k", "1") == BUSY
        assert other.call("FLUSHALL") == BUSY
        assert other.call("EVAL", "return redis.call('get', 'undeclared')", "0") == BUSY
    free = [other.call("SET", "j", "2") for other in others]
    assert free.count(OK) == len(others) - 1
    kill(others[0], runner)
    assert others[0].call("EXISTS", "k") == b":0\r\n"


def test_undeclared_keys_are_all_keys(others, busy):
    runner = busy("redis.call('get', 'k') " + ENDLESS)
    for other in others:
        assert other.call("GET", "j") == BUSY
    kill(others[0], runner)
    assert others[0].call("GET", "j") == b"$-1\r\n"


def test_who_waits_already_is_refused(connect, others, workers):
    """No client gets BUSY before the threshold; then waiting ones do, too."""
    others[0].call("CONFIG", "SET", "busy-reply-threshold", "300")
    runner = connect()
    runner.send(harness.encode("EVAL", ENDLESS, 1, "k"))
    time.sleep(0.1)
    for other in others:
        other.send(harness.encode("GET", "k"))
    assert {other.reply() for other in others} == {BUSY}
    kill(others[0], runner)


def test_locks_are_let_go_before_the_threshold(connect, others, workers):
    """Other keys of the same partitions are everybody's."""
    if workers == 1:
        pytest.skip("there is nobody else")
    others[0].call("CONFIG", "SET", "busy-reply-threshold", "100000")
    runner = connect()
    runner.send(harness.encode("EVAL", "redis.call('time') " + ENDLESS, 1, "k"))
    time.sleep(0.1)
    for other in others:
        other.send(harness.encode("PING"))
    ready = select.select([other.socket for other in others], [], [], 20)[0]
    other = next(other for other in others if other.socket in ready)
    assert other.reply() == PONG
    for i in range(200):
        assert other.call("SET", f"j{i}", "1") == OK
    assert other.call("CONFIG", "SET", "busy-reply-threshold", "10") == OK
    assert eventually(lambda: other.call("SCRIPT", "KILL") == OK)
    assert KILLED in runner.reply()


def test_one_that_has_written_is_not_killed(server, others, busy):
    busy("redis.call('set', KEYS[1], 'x') " + ENDLESS, "k")
    for other in others:
        assert eventually(lambda: other.call("SCRIPT", "KILL").startswith(b"-UNKILLABLE Sorry the script"))
        assert other.call("GET", "k") == BUSY
    assert others[0].call("SHUTDOWN") == BUSY
    others[0].send(harness.encode("SHUTDOWN", "NOSAVE"))
    assert others[0].closed()
    assert server.process.wait(20) == 0
    server.start()
    with server.raw() as raw:
        assert raw.call("EXISTS", "k") == b":0\r\n"


def test_a_script_in_a_transaction(others, busy, connect):
    runner = connect()
    for words in (("MULTI",), ("SET", "k", "1"), ("EVAL", ENDLESS, "0"), ("SET", "k", "2")):
        runner.call(*words)
    runner.send(harness.encode("EXEC"))
    assert eventually(lambda: BUSY in [other.call("PING") for other in others])
    assert eventually(lambda: others[0].call("SCRIPT", "KILL") == OK)
    reply = runner.reply()
    assert reply.startswith(b"*3\r\n+OK\r\n-ERR") and KILLED in reply and reply.endswith(OK)
    assert others[0].call("GET", "k") == b"$1\r\n2\r\n"


def test_clients_come_and_go(others, busy, connect):
    runner = busy()
    for _ in range(20):
        passing = connect()
        assert passing.call("PING") in (BUSY, PONG)
        passing.close()
    for _ in range(5):
        assert connect().call("QUIT") == OK
    half = connect()
    half.send(b"*2\r\n$4\r\nECHO\r\n$5\r\nhe")
    time.sleep(0.05)
    kill(others[0], runner)
    half.send(b"llo\r\n")
    assert half.reply() == b"$5\r\nhello\r\n"


def test_pipelines_around_it(others, connect):
    """Those before have been answered, those behind run when it is over; the reply stands between."""
    runner = connect()
    runner.send(harness.encode("SET", "a", "1") + harness.encode("EVAL", ENDLESS, 0) +
                harness.encode("GET", "a"))
    assert eventually(lambda: BUSY in [other.call("PING") for other in others])
    time.sleep(0.05)
    assert eventually(lambda: others[0].call("SCRIPT", "KILL") == OK)
    assert runner.reply() == OK
    assert KILLED in runner.reply()
    assert runner.reply() == b"$1\r\n1\r\n"


def test_time_passes_for_a_busy_script(others, connect):
    """But not for another one, however often it asks."""
    others[0].call("CONFIG", "SET", "busy-reply-threshold", "300")
    asks = """local first = redis.call('TIME')
              for i = 1, ARGV[1] do
                  local now = redis.call('TIME')
                  if now[1] ~= first[1] or now[2] ~= first[2] then return i end
              end
              return 0"""
    raw = connect()
    assert raw.call("EVAL", asks, "0", "1000") == b":0\r\n"
    assert int(raw.call("EVAL", asks, "0", "1e9")[1:]) > 1000


def test_messages_come_meanwhile(others, busy, connect):
    """A busy worker's subscribers get what other workers publish, and so nobody waits for them."""
    subscribers = [connect() for _ in others]
    for subscriber in subscribers:
        subscriber.call("SUBSCRIBE", "news")
    runner = busy()
    sent = [other.call("PUBLISH", "news", "x") for other in others]
    assert sent.count(BUSY) == 1
    for subscriber in subscribers:
        for _ in range(len(others) - 1):
            assert b"news" in subscriber.reply()
    kill(others[0], runner)


@pytest.mark.parametrize("command", ["EVAL", "EXEC"])
def test_its_own_clients_messages_come_after_it(others, busy, connect, command):
    """In the client's version of RESP, and behind the replies before them."""
    runner = connect()
    runner.call("HELLO", "3")
    script = "redis.setresp(2) " + ENDLESS
    runner.send(harness.encode("SUBSCRIBE", "news") + b"".join(
        [harness.encode("EVAL", script, 0)] if command == "EVAL" else
        [harness.encode(*words) for words in (
            ("MULTI",), ("SET", "a", "1"), ("EVAL", script, 0), ("SET", "a", "2"), ("EXEC",))]))
    assert eventually(lambda: BUSY in [other.call("PING") for other in others])
    sent = [other.call("PUBLISH", "news", "x") for other in others]
    assert sent.count(BUSY) == 1
    time.sleep(0.1)
    assert eventually(lambda: others[0].call("SCRIPT", "KILL") == OK)
    assert runner.reply() == b">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
    if command == "EXEC":
        assert [runner.reply() for _ in range(4)] == [OK] + 3 * [b"+QUEUED\r\n"]
    found = [runner.reply() for _ in range(len(others))]
    if command == "EXEC" and harness.IS_WAIT:  # messages may come while an EXEC waits, before its reply
        found.sort(key=lambda reply: reply.startswith(b">"))
    assert KILLED in found[0]
    assert found[1:] == (len(others) - 1) * [b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n"]
    assert runner.call("PING") == PONG


@pytest.mark.vellum
def test_publishers_do_not_wait_for_it(others, busy, connect):
    """However much they publish: they can still end the script."""
    drains = [connect() for _ in others]
    received = [0]
    stop = threading.Event()

    def drain(raw):
        while not stop.is_set():
            if select.select([raw.socket], [], [], 0.1)[0]:
                received[0] += len(raw.socket.recv(1 << 20))

    for raw in drains:
        raw.call("SUBSCRIBE", "news")
    threads = [threading.Thread(target=drain, args=(raw,)) for raw in drains]
    for thread in threads:
        thread.start()
    try:
        assert others[0].call("CONFIG", "SET", "maxmemory", "64mb") == OK
        runner = busy()
        free = [other for other in others if other.call("PING") == PONG]
        for _ in range(60):
            for other in free:
                assert other.call("PUBLISH", "news", bytes(1 << 20)).startswith(b":")
        for other in free:
            assert other.call("PING") == PONG
        kill(others[0], runner)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert received[0] > 0 or not free


CATCHERS = {
    "a handler": "xpcall(error, function() while true do end end)",
    "handler and function": "local f = function() while true do end end while true do xpcall(f, f) end",
    "a handler of handlers": "local h h = function() xpcall(error, h) while true do end end "
                             "while true do xpcall(error, h) end",
    "a handler that fails": "while true do xpcall(error, function() error('x') end) end",
    "a loop of pcall": "while true do pcall(function() while true do end end) end",
    "coroutines": "local f = function() while true do end end while true do coroutine.resume("
                  "coroutine.create(function() while true do xpcall(f, f) end end)) end",
    "coroutine.wrap": "while true do pcall(coroutine.wrap(function() while true do end end)) end",
    "__index": "local t = setmetatable({}, {__index = function(t, k) return t[k .. 'x'] end}) "
               "while true do pcall(function() return t.x end) end",
    "__tostring": "local t = setmetatable({}, {__tostring = function() while true do end end}) "
                  "while true do pcall(tostring, t) end",
    "gsub": "while true do pcall(string.gsub, 'x', 'x', function() while true do end end) end",
    "sort": "while true do pcall(table.sort, {1, 2}, function() while true do end end) end",
    "load": "while true do load(function() while true do end end) end",
    "bytecode": "local f = string.dump(function() end) while true do pcall(loadstring, f) end",
}


@pytest.mark.vellum
@pytest.mark.parametrize("script", CATCHERS.values(), ids=CATCHERS.keys())
def test_what_catches_errors_does_not_catch_a_kill(others, busy, script):
    runner = busy(script)
    kill(others[0], runner)
    assert {other.call("PING") for other in others} == {PONG}


@pytest.mark.vellum
@pytest.mark.parametrize("name", ["a handler", "handler and function", "coroutines"])
@pytest.mark.parametrize("end", ["SHUTDOWN", "SIGTERM"])
def test_what_catches_errors_does_not_hold_up_an_end(server, others, busy, name, end):
    busy(CATCHERS[name])
    if end == "SIGTERM":
        server.process.send_signal(signal.SIGTERM)
    else:
        others[0].send(harness.encode("SHUTDOWN", "NOSAVE"))
    assert server.process.wait(60) == 0


# Tables whose length Lua takes for 2^30, since it looks at powers of two alone.
GAPS = "local t = {} for i = 0, 30 do t[2 ^ i] = 1 end "
ENDLESS_IN_C = {
    "insert far below": "table.insert({}, 2 ^ 31, 1)",
    "insert below": "while true do table.insert({}, -2 ^ 30, 1) end",
    "remove": GAPS + "while true do table.remove(t, 3) end",
    "foreachi": GAPS + "while true do table.foreachi(t, math.randomseed) end",
    "foreach": "local t = {} for i = 1, 100000 do t[i] = i end "
               "while true do table.foreach(t, math.randomseed) end",
    "sort by a function of C": GAPS + "t[3] = 1 while true do pcall(table.sort, t, redis.debug) end",
    "sort of long strings": "local a, t = string.rep('a', 10000000), {} for i = 1, 2000 do "
                            "t[i] = i % 2 == 0 and a .. i or a .. 'b' .. i % 4 if i > 4 then "
                            "t[i] = t[i - 4] end end while true do table.sort(t) end",
    "a reader of C": "while true do load(math.random) end",
    "rep": "while true do string.rep('ab', 30000000) end",
    "upper": "local a = string.rep('a', 30000000) while true do a:upper() end",
    "format": "local a = string.rep('a', 10000000) while true do string.format('%q', a) end",
    "sha1hex": "while true do redis.sha1hex(ARGV[1]) end",
    "set": "local p = '[' .. string.rep('b', 1000000) .. ']*c' "
           "local a = string.rep('a', 1000000) while true do a:find(p) end",
    "frontier": "local p = '%f[' .. string.rep('b', 1000000) .. ']' "
                "local a = string.rep('a', 1000000) while true do a:find(p) end",
    "back": "local a = string.rep('a', 10000000) while true do a:find('^(.*)%1%1%1b') end",
    "balance": "local a = string.rep('(', 1000000) while true do a:find('%b()x') end",
    "gsub": "local a = string.rep('a', 1000) local r = string.rep('%0', 10000) "
            "while true do a:gsub('a', r) end",
    "gsub by a function of C": "local a = string.rep('a', 10000000) "
                               "while true do a:gsub('a', redis.debug) end",
    "empty tables": "local e, t = {}, {} for i = 1, 1000000 do e[i] = i end for i = 1, 1000000 do "
                    "e[i] = nil end for i = 1, 100000 do t[i] = e end "
                    "while true do cjson.encode(t) end",
    "empty tables, packed": "local e, t = {}, {} for i = 1, 1000000 do e[i] = i end "
                            "for i = 1, 1000000 do e[i] = nil end for i = 1, 100000 do t[i] = e end "
                            "while true do cmsgpack.pack(t) end",
    "doubling, encoded": "local t = {} for i = 1, 40 do t = {t, t} end "
                         "while true do pcall(cmsgpack.pack, t) end",
    "a long reply": "local t = {} for i = 1, 40 do t = {t, t} end return t",
    "long format": "local f = string.rep('x', 10000000) while true do struct.pack(f) end",
    "commands": "while true do redis.call('LRANGE', KEYS[1], 0, -1) end",
}


@pytest.mark.vellum
@pytest.mark.parametrize("script", ENDLESS_IN_C.values(), ids=ENDLESS_IN_C.keys())
def test_functions_of_c_are_ended(others, connect, script):
    others[0].call("RPUSH", "k", *range(20000))
    assert others[0].call("CONFIG", "SET", "maxmemory", "1gb") == OK  # Lua gets a share of it
    runner = connect()
    runner.send(harness.encode("EVAL", script, 1, "k", "a" * 20000000))
    assert eventually(lambda: BUSY in [other.call("PING") for other in others], 60)
    assert eventually(lambda: others[0].call("SCRIPT", "KILL") == OK)
    assert KILLED in runner.reply()
    assert {other.call("PING") for other in others} == {PONG}


NUMBERS = "local t = {} for i = 1, 400000 do t[i] = i * 7919 % 400009 end "
PIPE = "local t = {} for i = 1, 300000 do t[i] = i t[600001 - i] = i end "
LONG = "local a = string.rep('a', 20000000) local b = a .. 'b' a = a .. 'c' "
LOOPS_IN_C = (
    NUMBERS + "while true do table.insert(t, 1, 0) table.remove(t, 1) end",
    NUMBERS + "while true do table.maxn(t) end",
    NUMBERS + "while true do table.concat(t, ', ') end",
    NUMBERS + "while true do cjson.decode(cjson.encode(t)) end",
    NUMBERS + "while true do cmsgpack.unpack(cmsgpack.pack(t)) end",
    "local t = {} for i = 1, 200000 do t[i] = {} end while true do collectgarbage() end",
    "while true do " + PIPE + "table.sort(t) end",
    LONG + "while true do local x = a < b end",
    LONG + "while true do local x = a .. b end",
    LONG + "local f = coroutine.create(function() while true do local x = b:upper() end end) "
    "while true do coroutine.resume(f) end",
    "local s = string.rep('x = 1 ', 2000000) while true do loadstring(s) end",
)


@pytest.mark.vellum
def test_functions_that_take_long_are_ended(others, connect):
    """What goes through much memory by an instruction or two is interrupted soon all the same."""
    assert others[0].call("CONFIG", "SET", "maxmemory", "1gb") == OK  # Lua gets a share of it
    for script in LOOPS_IN_C:
        runner = connect()
        runner.send(harness.encode("EVAL", script, 0))
        assert eventually(lambda: BUSY in [other.call("PING") for other in others])
        time.sleep(0.3)  # into the loop
        began = time.monotonic()
        assert eventually(lambda: others[0].call("SCRIPT", "KILL") == OK)
        assert KILLED in runner.reply()
        assert time.monotonic() - began < 3, script
        runner.close()


def test_a_stop_ends_a_script_and_says_so(server, others, busy):
    """Not that the journal has failed. The reply may get lost."""
    runner = busy()
    server.process.send_signal(signal.SIGTERM)
    try:
        reply = runner.reply()
    except (ConnectionError, EOFError):
        reply = b""
    assert not reply.startswith(b"-MISCONF"), reply
    assert server.process.wait(20) == 0
    server.start()
