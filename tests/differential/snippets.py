"""Lua, a line each: what scripts see, what they answer, and how errors are told; what the libraries
do stands in snippets_libraries.py. Stock redis-server must say the same."""

import snippets_libraries

# Not sent, since the two differ: numbers that no 64 bits hold (to C, anything may come of them),
# chance, cursors, texts of HELP, commands that are not there; getmetatable(_G), which Redis shows
# and refuses to change, is nil. error({}) and errors that are tables without a text end 7.0.
LINES = r'''
return 1
return 1.999
return -1.999
return 1e15
return 2^53
return 2^62
return -2^62
return -1e300
return 0/0
return -1/0
return -0
return 0.1+0.2
return tostring(0.1+0.2)
return tostring(1e15)
return tostring(1e14)
return tostring(2^53)
return tostring(-0)
return tostring(1/0)
return tostring(-1/0)
return tostring(1e100)
return 1e100 .. ''
return 3 .. ''
return 3.0 .. ''
return tostring(nil)
return tostring(true)
return tonumber('0x10')
return tonumber('10', 2)
return tonumber('zz', 36)
return tonumber('')
return tonumber(' 5 ')
return tonumber('5x')
return tonumber('1e2')
return tonumber('nan')
return tonumber({})
return {1,2,nil,4}
return {1,nil}
return {nil,1}
return {}
return {{},{}}
return {1,{2,{3,{4}}}}
return {a=1}
return {1,a=2}
return {[0]=1,[1]=2}
return {1.5,2.5}
return {true,false,true}
return {ok='a'}
return {ok='a',1}
return {ok=1}
return {ok={}}
return {err='a'}
return {err='a b'}
return {err='ERR a'}
return {err=''}
return {err=1}
return {err='a',ok='b'}
return {err="a\r\nb"}
return {ok="a\r\nb"}
return {err='-a'}
return {double=1.5}
return {double=1}
return {double='x'}
return {double=1/0}
return {map={}}
return {map={1,2}}
return {map={a={map={b=1}}}}
return {map=1}
return {set={}}
return {set={a=1}}
return {set={[1]=true}}
return {big_number='123'}
return {big_number=123}
return {verbatim_string={string='a',format='txt'}}
return {verbatim_string={string='a'}}
return {verbatim_string={string='a',format='toolong'}}
return {verbatim_string='a'}
return 'abc', 'def'
return
return nil, 1
local x
return KEYS
return ARGV
return #KEYS
return KEYS[1]
return KEYS[0]
return ARGV[3]
return {KEYS[1], ARGV[1], ARGV[2]}
KEYS[1]='z' return KEYS
KEYS={1} return KEYS
ARGV={1} return ARGV
KEYS=nil return type(KEYS)
KEYS.x=1 return KEYS.x
return type(KEYS)
return type(redis)
return type(redis.call)
return type(cjson.null)
return type(cjson)
return type(_G)
return type(os)
return type(os.clock)
return type(os.time)
return type(io)
return type(require)
return type(loadstring)
return type(load)
return type(dofile)
return type(loadfile)
return type(print)
return type(newproxy)
return type(getfenv)
return type(setfenv)
return type(getmetatable)
return type(setmetatable)
return type(rawget)
return type(rawset)
return type(rawequal)
return type(collectgarbage)
return type(coroutine)
return type(debug)
return type(package)
return type(module)
return type(string.dump)
return type(string.gfind)
return type(table.foreach)
return type(table.foreachi)
return type(table.setn)
return type(table.getn)
return type(table.maxn)
return type(math.mod)
return type(math.fmod)
return type(unpack)
return type(table.unpack)
return type(bit)
return type(bit32)
return type(struct)
return type(cmsgpack)
return type(utf8)
return type(redis.replicate_commands)
return type(redis.set_repl)
return type(redis.breakpoint)
return type(redis.debug)
return type(redis.acl_check_cmd)
return type(redis.register_function)
return type(redis.setresp)
return type(redis.sha1hex)
return type(redis.log)
return type(redis.error_reply)
return type(redis.status_reply)
return redis.REPL_ALL
return redis.REPL_AOF
return redis.REPL_REPLICA
return redis.REPL_SLAVE
return redis.REPL_NONE
return redis.LOG_DEBUG
return redis.LOG_VERBOSE
return redis.LOG_NOTICE
return redis.LOG_WARNING
return type(redis.REDIS_VERSION)
return type(redis.REDIS_VERSION_NUM)
return redis.replicate_commands()
return redis.set_repl(redis.REPL_ALL)
return redis.set_repl()
return redis.set_repl(99)
return redis.set_repl('x')
return redis.set_repl(redis.REPL_NONE)
return redis.breakpoint()
return redis.debug('x')
return redis.debug()
return redis.log(redis.LOG_DEBUG, 'x')
return redis.log('x')
return redis.log('x', 'y')
return redis.log(9, 'y')
return redis.log(-1, 'y')
return redis.sha1hex('a')
return redis.sha1hex()
return redis.sha1hex('a', 'b')
return redis.sha1hex(1)
return redis.sha1hex(nil)
return redis.sha1hex({})
return redis.error_reply('x')
return redis.error_reply('x y')
return redis.error_reply('-x y')
return redis.error_reply('ERR x')
return redis.error_reply('')
return redis.error_reply()
return redis.error_reply(1)
return redis.error_reply({})
return redis.error_reply('a','b')
return redis.error_reply("My Err\r\nx")
return redis.status_reply('x')
return redis.status_reply()
return redis.status_reply(1)
return redis.status_reply({})
return redis.setresp(2)
return redis.setresp(3)
return redis.setresp(4)
return redis.setresp()
return redis.setresp('x')
return redis.setresp('3')
return redis.setresp(2,3)
return redis.acl_check_cmd('get','x')
return redis.acl_check_cmd('nosuch')
return redis.acl_check_cmd()
return redis.acl_check_cmd('config|get')
return redis.acl_check_cmd('config','get')
return redis.acl_check_cmd({})
return redis.call()
return redis.call(nil)
return redis.call({})
return redis.call(true)
return redis.call('')
return redis.call(1)
return redis.call('nosuch')
return redis.call('get')
return redis.call('get', 'n', 'x')
return redis.call('get', {})
return redis.call('get', nil)
return redis.call('get', 'n')
return redis.call('GET', 'n')
return redis.call('get', 'nonexistent')
return redis.call('get', 'l')
return redis.call('incr', 's')
return redis.pcall()
return redis.pcall('nosuch')
return redis.pcall('get')
return redis.pcall('get', 'l')
return redis.pcall('get', {})
return redis.pcall('incr', 's')
return redis.pcall('incr', 's').err
local r = redis.pcall('incr', 's') local t = {} for k in pairs(r) do t[#t+1] = k end table.sort(t) return t
local r = redis.pcall('nosuch') local t = {} for k in pairs(r) do t[#t+1] = k end table.sort(t) return t
local r = redis.error_reply('x') local t = {} for k in pairs(r) do t[#t+1] = k end table.sort(t) return t
local ok, e = pcall(redis.call, 'incr', 's') local t = {type(e)} for k,v in pairs(e) do t[#t+1] = k .. '=' .. tostring(v) end table.sort(t) return t
local ok, e = pcall(redis.call) local t = {type(e)} for k,v in pairs(e) do t[#t+1] = k .. '=' .. tostring(v) end table.sort(t) return t
local ok, e = pcall(redis.setresp, 9) return type(e)
local ok, e = pcall(error, 'x') return {type(e), e}
local ok, e = pcall(error, {err='x'}) return {type(e), e}
local ok, e = pcall(function() error('x') end) return {type(e), e}
local ok, e = pcall(function() error('x', 2) end) return {type(e), e}
local ok, e = pcall(function() error('x', 0) end) return {type(e), e}
return redis.call('set', 's', 1.5) and redis.call('get', 's')
return redis.call('set', 's', 1e15) and redis.call('get', 's')
return redis.call('set', 's', 2^53) and redis.call('get', 's')
return redis.call('set', 's', 1e100) and redis.call('get', 's')
return redis.call('set', 's', 3.0) and redis.call('get', 's')
return redis.call('set', 's', -0) and redis.call('get', 's')
return redis.call('set', 's', 1/0) and redis.call('get', 's')
return redis.call('set', 's', 0.1) and redis.call('get', 's')
return redis.call('set', 's', true)
return redis.call('set', 's', nil)
return redis.call('set', 's', "a\0b") and redis.call('get', 's')
return redis.call('lrange', 'l', 0, -1)
return redis.call('hgetall', 'h')
return redis.call('hmget', 'h', 'a', 'nosuch')
return redis.call('zrange', 'z', 0, -1, 'withscores')
return redis.call('zscore', 'z', 'a')
return redis.call('ping')
return redis.call('ping', 'x')
return redis.call('echo', 'x')
return redis.call('type', 's')
return redis.call('type', 's').ok
return redis.call('set', 's', 'v').ok
return redis.call('smismember', 't', 'a', 'q')
return redis.call('mget', 's', 'x', 'l')
return redis.call('exists', 's', 'x')
return redis.call('select', 1)
return redis.call('select', 99)
return redis.call('select', 'x')
return redis.call('multi')
return redis.call('exec')
return redis.call('watch', 's')
return redis.call('unwatch')
return redis.call('discard')
return redis.call('subscribe', 'a')
return redis.call('psubscribe', 'a')
return redis.call('unsubscribe', 'a')
return redis.call('publish', 'a', 'b')
return redis.call('spublish', 'a', 'b')
return redis.call('pubsub', 'numpat')
return redis.call('eval', 'return 1', 0)
return redis.call('evalsha', 'x', 0)
return redis.call('script', 'kill')
return redis.call('script', 'help')[1]
return redis.call('script', 'nosuch')
return redis.call('config', 'get', 'maxmemory')
return redis.call('config', 'help')[1]
return redis.call('client', 'id')
return redis.call('client', 'help')[1]
return redis.call('client', 'list')
return redis.call('debug', 'sleep', 0)
return redis.call('monitor')
return redis.call('shutdown')
return redis.call('hello', 3)
return redis.call('auth', 'x')
return redis.call('reset')
return redis.call('quit')
return redis.call('keys', 'nosuch')
return redis.call('randomkey') ~= nil
return redis.call('dbsize') > 0
return redis.call('flushdb')
return redis.call('time') ~= nil
return #redis.call('time')
return redis.call('command', 'count') > 1
return redis.call('object', 'encoding', 's')
return redis.call('object', 'help')[1]
return redis.call('memory', 'usage', 's') > 0
return redis.call('info') ~= nil
return type(redis.call('info'))
return #redis.call('info','nosuch')
return redis.call('info','keyspace')
return redis.call('lolwut') ~= nil
return redis.call('blmpop', 0, 1, 'x', 'left')
return redis.call('sort', 't')
return redis.call('smembers', 'i')
return redis.call('sort', 'l', 'by', 'nosort')
return redis.call('dump', 's') ~= nil
return redis.call('restore', 'y', 0, redis.call('dump', 's'))
redis.setresp(3) return redis.call('hgetall', 'h')
redis.setresp(3) return type(redis.call('hgetall', 'h').map)
redis.setresp(3) return redis.call('smembers', 'i')
redis.setresp(3) return redis.call('smembers', 'i').set['1']
redis.setresp(3) return redis.call('zscore', 'z', 'a')
redis.setresp(3) return redis.call('zscore', 'z', 'a').double
redis.setresp(3) return redis.call('zrange', 'z', 0, -1, 'withscores')
redis.setresp(3) return redis.call('get', 'nonexistent')
redis.setresp(3) return redis.call('get', 'nonexistent') == nil
redis.setresp(3) return redis.call('zpopmin', 'x')
redis.setresp(3) return redis.call('debug', 'protocol', 'double')
redis.setresp(3) return redis.call('info', 'nosuch')
redis.setresp(3) return redis.call('lolwut') ~= nil
redis.setresp(3) return redis.call('hmget', 'h', 'a', 'q')
redis.setresp(3) return true
redis.setresp(3) return false
redis.setresp(3) return nil
redis.setresp(3) return {1.5, false, nil, true}
redis.setresp(3) redis.setresp(2) return redis.call('hgetall', 'h')
error('x')
error('x', 0)
error('x', 1)
error('x', 2)
error()
error(nil)
error({err='x'})
error({err='My x'})
error({err='ERR x', foo='bar'})
error(1)
error(true)
assert(false)
assert(false, 'x')
assert(nil, {err='x'})
assert(1 == 1) return 'ok'
local a = nil; a.b = 1
local a = nil; return a.b
local a = {} ; a.b.c = 1
return nosuch
nosuch = 1
nosuch()
return nosuch.x
function f() return 1 end
local function f() return 1 end return f()
local function f() error('deep') end f()
local function f() return f() + 1 end return f()
local function f() return redis.call('incr', 's') end return f()
return 1 + nil
return 1 + {}
return 1 + 'x'
return 1 + '2'
return '10' * '2'
return {} .. 'x'
return #nil
return -{}
return {} < {}
return 1 < 'x'
return 'a' < 'b'
return nil == false
return ('x'):rep(3)
return ('x'):nosuch()
return string.rep('ab', 3)
return string.rep('ab', -1)
return string.format('%d', 3.7)
return string.format('%d', '3')
return string.format('%5.2f', 3.14159)
return string.format('%q', 'a"b\n\0')
return string.format('%s', nil)
return string.format('%s %s', 1, true)
return string.format('%x', 255)
return string.format('%X', -1)
return string.format('%c', 65)
return string.format('%e', 12345.678)
return string.format('%g', 1e20)
return string.format('%i', 42)
return string.format('%o', 8)
return string.format('%u', 42)
return string.format('%5s|%-5s|', 'a', 'b')
return string.format('%.3s', 'abcdef')
return string.format('%%')
return string.format('%y', 1)
return string.format('%d')
return string.format('%d', 'x')
return string.format('%099d', 1)
return string.byte('abc', 1, -1)
return {string.byte('abc', 1, -1)}
return string.char(97, 98)
return string.char(256)
return string.sub('abcdef', 2, -2)
return string.sub('abc', 0)
return string.sub('abc', 5)
return string.upper('aBc')
return string.reverse('abc')
return string.len('a\0b')
return {string.find('hello', 'l')}
return {string.find('hello', 'l+')}
return {string.find('hello', '(l)(l)')}
return {string.find('a.b', '.', 1, true)}
return {string.find('abc', '')}
return {string.find('abc', '', 10)}
return {string.find('abc', 'b', -1)}
return string.match('key=val', '(%w+)=(%w+)')
return {string.match('key=val', '(%w+)=(%w+)')}
return {string.match('abc', '()b()')}
return string.match('2024-01-02', '%d+-%d+')
return string.match('abc', '^b')
return string.match('f(a(b))c', '%b()')
return string.match('x', '[')
return string.match('x', '%')
return string.match('x', '(')
return string.match('x', ')')
return string.match('x', '%1')
return string.match('THE END', '%f[%a]%a+')
return {string.gsub('hello', 'l', 'L')}
return {string.gsub('hello', 'l', 'L', 1)}
return {string.gsub('hello', '', '-')}
return {string.gsub('hello', 'l', {l='x'})}
return {string.gsub('hello', '.', function(c) if c == 'l' then return 'y' end end)}
return {string.gsub('hello', '(h)(e)', '%2%1')}
return {string.gsub('abc', '%w', '%0%0')}
return {string.gsub('abc', 'b', '%2')}
return {string.gsub('abc', 'b', 5)}
return string.gsub('abc', 'b', true)
local t = {} for w in string.gmatch('a b c', '%a') do t[#t+1] = w end return t
local t = {} for k, v in string.gmatch('a=1,b=2', '(%w+)=(%w+)') do t[#t+1] = k .. v end return t
return string.dump(function() end)
return table.concat({1,2,3}, ',')
return table.concat({1,2,3}, ',', 2)
return table.concat({1,2,3}, ',', 2, 2)
return table.concat({1,{},3})
return table.concat({})
return table.concat({'a', nil, 'c'})
local t = {3,1,2} table.sort(t) return t
local t = {3,1,2} table.sort(t, function(a,b) return a > b end) return t
local t = {3,'a'} table.sort(t) return t
local t = {1,2,3} table.insert(t, 4) return t
local t = {1,2,3} table.insert(t, 1, 0) return t
local t = {1,2,3} table.insert(t) return t
local t = {1,2,3} table.insert(t, 1, 2, 3) return t
local t = {1,2,3} table.insert(t, 7, 'x') return {#t, t[7], t[6]}
local t = {1,2,3} table.insert(t, -2, 'x') return {t[-2], t[-1], t[0], t[1], t[2], t[3], t[4]}
local t = {1,2,3} table.insert(t, 2.7, 'x') return t
local t = {1,2,3} table.insert(t, 'x', 'x') return t
local t = {1,2,3} table.insert(t, '2', nil) return {t[1], t[3], t[4]}
table.insert(nil, 1)
table.insert('x', 1)
local t = {1,2,3} return {table.remove(t, 2), #t, t[1], t[2]}
local t = {1,2,3} return {table.remove(t, 4) == nil, table.remove(t, 0) == nil, #t}
local t = {1,2,3} return {table.remove(t, '3'), table.remove(t, 1.9), #t}
local t = {1,2,3} return table.remove(t, {})
return table.remove(1)
local t = {1,2,3} return table.foreachi(t, function(i, v) if i == 2 then return v end end)
return table.foreachi({1,2}, 1)
return table.foreach({1,2}, 1)
return table.foreach({1,2}, function(k, v) return k .. v end)
return table.foreachi(nil, print)
local t = {3,1,2} table.sort(t, math.max) return t
local t = {'b','c','a'} table.sort(t, rawequal) return t
local t = {'b',1} table.sort(t, math.max) return t
return ('x'):rep(70000):len()
return ('xyz'):rep(30000.9):sub(-5)
return ('x'):rep(0/0)
return ('abc'):upper() .. ('ABC'):lower() .. ('abc'):reverse()
return string.upper()
local s = ('aBc\0d'):rep(123457) .. 'xY' return redis.sha1hex(s:upper()) .. redis.sha1hex(s:lower()) .. redis.sha1hex(s:reverse())
return string.format('%q', ('a\\n'):rep(40000)):len()
return {pcall(xpcall, error, 5)}
return {xpcall(error, 5)}
return {xpcall(function() error('x', 0) end, function(e) return e .. 'y' end)}
return {xpcall(function() error('x', 0) end, function(e) error(e .. 'y', 0) end)}
return {xpcall(function() error({1, 2}) end, function(e) return e[2] end)}
return {xpcall(function() return 1, 2 end, error)}
local t = {1,2,3} return table.remove(t)
local t = {1,2,3} table.remove(t, 1) return t
return table.remove({})
return table.getn({1,2})
return table.maxn({1,2,[10]=3})
return {unpack({1,2,3})}
return {unpack({1,2,3}, 2)}
return {unpack({1,2,3}, 2, 5)}
return select('#', 1, nil, 3)
return {select(2, 'a', 'b', 'c')}
return select(-1, 'a', 'b')
return select(0)
return next({})
return {next({5})}
return type(next)
local t = {} for i, v in ipairs({1,2,nil,4}) do t[#t+1] = v end return t
local n = 0 for k, v in pairs({a=1,b=2,3}) do n = n + v end return n
local n = 0 table.foreach({1,2}, function(k, v) n = n + v end) return n
return math.floor(3.7)
return math.floor(-3.7)
return math.ceil(3.2)
return math.abs(-5)
return math.max(1, 5, 3)
return math.min(1, 5, 3)
return math.max()
return math.sqrt(16)
return tostring(math.pi)
return math.huge == 1/0
return math.fmod(7, 3)
return tostring(math.fmod(-7, 3))
return -7 % 3
return 7 % -3
return tostring(5.5 % 2)
return tostring(7 / 2)
return 2^10
return tostring(math.log(10))
return tostring(math.exp(1))
return tostring(math.sin(1))
return {math.modf(3.7)}
return {math.frexp(8)}
return math.ldexp(1, 3)
return math.random(0)
return math.random(5, 1)
math.randomseed(1) return math.random(1000)
math.randomseed(42) return {math.random(1000), math.random(1000)}
return os.clock() >= 0
return os.time()
local c = coroutine.create(function() coroutine.yield(1) return 2 end) return {select(2, coroutine.resume(c)), select(2, coroutine.resume(c))}
local c = coroutine.wrap(function() for i=1,3 do coroutine.yield(i) end end) return {c(), c(), c()}
local c = coroutine.create(function() error('x') end) return {coroutine.resume(c)}
return coroutine.status(coroutine.create(function() end))
return coroutine.running()
local c = coroutine.create(function() return redis.call('get', 'n') end) return {coroutine.resume(c)}
return loadstring('return 1 + 1')()
return loadstring('return (')
return {loadstring('return (')}
return {loadstring('return (', 'chunk')}
return {load(function() return nil end)}
return getmetatable('').__index == string
return getmetatable({})
local t = setmetatable({}, {__index=function(t, k) return k .. '!' end}) return t.foo
local t = setmetatable({}, {__call=function(self, a) return a end}) return t(5)
local t = setmetatable({}, {__tostring=function() return 'T' end}) return tostring(t)
local t = setmetatable({}, {__metatable='locked'}) return getmetatable(t)
local t = setmetatable({1,2}, {__len=function() return 9 end}) return #t
return setmetatable({}, {__index=function(t, k) if k == 1 then return 'a' end end})
return setmetatable(1, {})
return rawequal('a', 'a')
return rawget({5}, 1)
return rawset({}, 1, 2)
setfenv(1, {}) return 1
return getfenv(1) == _G
_G.x = 1
rawset(_G, 'x', 1) return x
setmetatable(_G, nil)
string.foo = 1
redis.foo = 1
redis.call = nil
string = nil
table.insert(redis, 1)
rawset(redis, 'x', 1)
getmetatable('').__index = nil
return collectgarbage('count') > 0
return collectgarbage('collect')
return collectgarbage('nosuch')
print('x') return 1
return _VERSION
return arg
return ...
goto x
return 0x10
return 0b1
return 1//2
return 'a' 'b'
return "a\z"
return '\065\x41'
return [[a
return --[[ x ]] 1
x = = 1
return 'unfinished
if true then return 1
for i=1,10 do if i == 5 then return i end end
for i=10,1,-3 do if i < 5 then return i end end
for i=1,2,0 do return 'x' end return 'y'
for i='a',2 do end
while true do return 'w' end
repeat local x = 1 until x == 1 return 'r'
local a, b = 1 return {a, b or 'nil'}
local t = {f = function(self) return self.v end, v = 7} return t:f()
return (function(...) return select('#', ...) end)(1, 2, nil)
return not nil
return 1 and 2 or 3
return 'a' .. 1 .. 2.5
return 1 == 1.0
return '1' == 1
local n = 0 for i = 1, 1e5 do n = n + i end return n
return redis.call('set', KEYS[1], ARGV[1])
redis.call('set', 'k1', 'x') error('after')
redis.call('set', 'k1', 'x') return redis.call('nosuch')
local r = redis.pcall('nosuch') return r
local r = redis.pcall('nosuch') return {r}
return {redis.pcall('nosuch'), 1}
return {redis.error_reply('x'), redis.status_reply('y')}
return {{err='x'}, {ok='y'}}
local ok, e = pcall(redis.call, 'nosuch') return e
local ok, e = pcall(redis.call, 'nosuch') error(e)
local e = redis.pcall('nosuch') error(e)
local e = redis.pcall('lpush', 's', 'x') error(e)
local e = redis.pcall('lpush', 's', 'x') return e
local e = redis.pcall('lpush', 's', 'x') e.err = 'CHANGED it' return e
local e = redis.pcall('lpush', 's', 'x') return {e.err, e.source or 'none', e.line or 'none'}
return tostring(print):match('^builtin') or tostring(print):match('^function')
return pcall(redis.call, 'get')
return {xpcall(function() error('x') end, function(m) return 'handled ' .. m end)}
return {xpcall(function() error({err='x'}) end, function(m) return type(m) end)}
return {pcall(error)}
return tostring(function() end):sub(1, 9)
return tostring({}):sub(1, 6)
return string.format('%s', {}):sub(1, 6)
return os.date()
return debug.traceback()
return redis.REDIS_VERSION_NUM >= 0x070000
return #redis.REDIS_VERSION > 0
'''

# With line ends in them.
LONGER = [
    '\nreturn 1',
    "\n\nerror('x')",
    'local a = 1\nlocal b = nil\nreturn a + b',
    "return redis.call('incr','s')\n",
    "\n\n\nreturn redis.call('nosuch')",
    '#!lua\nreturn 1',
    '#!lua \nreturn 1',
    '#!lua flags=\nreturn 1',
    "#!lua flags=no-writes\nreturn redis.call('set','s','1')",
    "#!lua flags=no-writes\nreturn redis.call('get','n')",
    '#!lua flags=no-writes,allow-stale\nreturn 1',
    '#!lua flags=no-writes, allow-stale\nreturn 1',
    "#!lua flags=allow-oom\nreturn redis.call('set','s','1')",
    '#!lua flags=no-cluster\nreturn 1',
    '#!lua flags=allow-cross-slot-keys\nreturn 1',
    '#!lua flags=nosuch\nreturn 1',
    '#!lua flags=no-writes flags=allow-oom\nreturn 1',
    '#!lua foo=bar\nreturn 1',
    '#!lua foo\nreturn 1',
    '#!\nreturn 1',
    '#!python\nreturn 1',
    '#! lua\nreturn 1',
    '#!lua',
    '#!lua flags=no-writes',
    ' #!lua\nreturn 1',
    '#!LUA\nreturn 1',
    '#!lua name=x\nreturn 1',
    '#!lua flags=NO-WRITES\nreturn 1',
    "#!lua\nerror('x')",
    "#!lua\n\nreturn redis.call('nosuch')",
    "#!lua flags=no-writes\nreturn redis.pcall('publish','a','b')",
    "#!lua flags=no-writes\nreturn redis.pcall('pfcount','x')",
    '#!lua\r\nreturn 1',
    '#!lua flags=no-writes\r\nreturn 1',
    '# x\nreturn 1',
    '--x\nreturn 1',
    '\x17Lua',
    "return '\x00'",
    'return 1\x00garbage',
    '',
    ' ',
    'return [[\na\nb]]',
    "local function f()\n error('in f')\nend\nf()",
    "local ok, e = pcall(function()\n error('in f')\nend)\nreturn e",
    'return {\n1,\n2\n}',
    "return redis.call('set', 's')\n",
    'local x = \nreturn x y',
    "return cjson.decode(\n'[')",
]


def snippets():
    """Each with what has to be run behind it, or None."""
    for text in LINES.strip("\n").split("\n") + LONGER:
        yield text, None
    yield from snippets_libraries.snippets()
