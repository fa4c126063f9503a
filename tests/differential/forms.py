"""Commands in all forms that somebody may try: each option, each pair of options, each type of key,
each number that is none, too few arguments and too many. Nothing here is left to chance.

A line of FORMS stands for all that come of it when one of each {alternatives} is chosen. Words are
divided by blanks; `~` is a blank within a word, `^` the end of a line, `_` alone is the empty word. Names in capitals in
braces stand for lists: KEY, INT, FLOAT ...
"""

import itertools
import re

# What stands at the keys whenever a form begins.
SETUP = [line.split() for line in """
DEL s n f l t i z h r g x y d
MSET s foobar n 5 f 1.5
RPUSH l a b c a
SADD t a b c
SADD i 1 2 3
ZADD z 1 a 2 b 3 c
HSET h a 1 b x c 1.5
XADD r 1-1 a 1
XADD r 2-0 b 2 c 3
XADD r 3-5 a 4
XGROUP CREATE r g 0
XGROUP CREATECONSUMER r g d
XREADGROUP GROUP g c COUNT 2 STREAMS r >
GEOADD g 13.361389 38.115556 P 15.087269 37.502669 C 12.758489 38.788135 E
""".strip().split("\n")] + [["FUNCTION", "FLUSH"], ["FUNCTION", "LOAD", """#!lua name=l
redis.register_function('f', function(keys, args) return {#keys, args[1] or 'none', keys[1]} end)
redis.register_function{function_name='o', flags={'no-writes'}, description='of keys',
                        callback=function(keys, args) return redis.call(args[1], keys[1], args[2]) end}"""]]

LISTS = {
    "KEY": "s|n|l|t|i|z|h|r|x",
    "INT": "0|1|-1|2|9223372036854775807|-9223372036854775808|9223372036854775808|x|_|1.5|~1|+1|01|-0",
    "FLOAT": "1.5|1e3|nan|inf|-inf|+inf|x|_|~1|1~|0x10|1e400|-0|(1|1_0",
    "TIME": "0.001|-1|x|nan|-0.1|_",
    "EXPIRY": "EX 10|PX 10000|EXAT 99999999999|PXAT 99999999999999|EX|PX 0|EX -1|EX x|EXAT 0|PXAT -5"
              "|EX 9223372036854775807|PX 9223372036854775807|EXAT 9223372036854775807"
              "|EX 9223372036854775",
    "BOUND": "1|(1|-inf|+inf|x|_|nan|(inf|[a|(a|-|+|((1|1e400",
    "AGGREGATE": "|WEIGHTS 1|WEIGHTS 1 2|WEIGHTS 2 x|WEIGHTS|WEIGHTS nan 1|WEIGHTS inf 0"
                 "|AGGREGATE SUM|AGGREGATE MIN|AGGREGATE MAX|AGGREGATE foo|AGGREGATE|WITHSCORES|foo"
                 "|WEIGHTS 1 2 AGGREGATE MAX WITHSCORES",
    "COUNT": "COUNT 1|COUNT 0|COUNT -1|COUNT x|COUNT|foo|COUNT 1 COUNT 2|",
    "GEO": "ASC|DESC WITHDIST|COUNT 1|COUNT 1 ANY|COUNT 2 DESC|ANY|COUNT 0|COUNT x|COUNT|WITHCOORD WITHHASH"
           "|STORE d|STOREDIST d|STORE d STOREDIST y|STORE|STORE g COUNT 1|STORE d WITHHASH|STOREDIST|foo|",
    "LENGTHS": "BYRADIUS 0 m|BYRADIUS x km|BYRADIUS -1 km|BYRADIUS 1 foo|BYRADIUS inf m|BYBOX 1 1|BYBOX -1 1 m"
               "|BYBOX x 1 m|BYBOX 1 x m|BYRADIUS 1 m BYBOX 1 1 m|BYBOX 1 1 m BYRADIUS 1 m|BYBOX 1 1 foo|",
    "CARD_LIMIT": "LIMIT 1|LIMIT 0|LIMIT -1|LIMIT x|LIMIT|foo|",
    "ID": "-|+|1|1-1|2-0|3-5|3-6|3-*|4|0|0-0|0-*|x|_|1-|-1|1-1-1|1-x|~1|01|18446744073709551615"
          "|18446744073709551615-18446744073709551615|18446744073709551616",
    "INTERVAL": "-|+|1|(1|(1-1|2|(2|(0-0|(-|(|0|x|18446744073709551615-18446744073709551615"
                "|(18446744073709551615-18446744073709551615",
    "AFTER": "0|1-1|3-5|2|$|>|x|-|_|18446744073709551615-18446744073709551615",
    "BITS": "GET u8 0|GET u8 #1|SET u8 0 255|SET u8 0 256|SET i8 0 -129|INCRBY u2 100 1|INCRBY i64 0 1"
            "|OVERFLOW WRAP|OVERFLOW SAT INCRBY u2 0 5|OVERFLOW FAIL INCRBY u2 0 5|OVERFLOW foo"
            "|GET u64 0|GET i65 0|GET u0 0|GET x8 0|GET u8 -1|GET u8 x|GET u8 #x|GET u8|SET u8 0"
            "|SET u8 0 x|INCRBY u8 0 x|foo|GET u8 4294967296|GET u63 #4294967296|GET u8 #-1|",
}

# Of these each is also given a word or two more.
ONE_KEY = """
INCR DECR STRLEN GET GETDEL TTL PTTL TYPE PERSIST EXPIRETIME PEXPIRETIME LLEN SCARD ZCARD HLEN HKEYS
HVALS HGETALL SMEMBERS LPOP RPOP SRANDMEMBER ZPOPMIN ZPOPMAX DUMP DEL UNLINK TOUCH EXISTS PFCOUNT
PFADD SORT SORT_RO BITCOUNT RPOPLPUSH LCS BITOP RANDOMKEY DBSIZE KEYS LPUSH RPUSH LPUSHX RPUSHX SADD
SREM SISMEMBER SMISMEMBER HGET HEXISTS HSTRLEN HDEL HMGET HSETNX HSET HMSET ZSCORE ZMSCORE ZREM MSET
MSETNX MGET APPEND GETSET SETNX GETRANGE SINTER SUNION SDIFF SINTERSTORE SUNIONSTORE SDIFFSTORE
RENAME RENAMENX XLEN XRANGE XREVRANGE XDEL XREAD XSETID
XACK XPENDING XINFO
""".split()

FORMS = """
XADD {r|l|x} {ID} {a 1|a|a 1 b}
XADD {r|x} {MAXLEN|MINID|LIMIT} {|=|~|foo} {0|2|100|2-0|x|-1} {|LIMIT 0|LIMIT 10|LIMIT x|LIMIT -1|LIMIT} 9-1 a 1
XADD {r|x} {NOMKSTREAM|NOMKSTREAM MAXLEN 1|MAXLEN 1 NOMKSTREAM|MAXLEN 1 MINID 1|foo} 9-1 a 1
XTRIM {r|l|x} {MAXLEN|MINID|LIMIT|foo} {|=|~|foo} {0|2|100|2-0|x|-1|} {|LIMIT 0|LIMIT 10|LIMIT x|LIMIT}
XDEL {KEY} {1-1|1-1 2-0|1-1 1-1|9-9|x|1-1 x|1|-|3-5|1-1 2-0 3-5}
{XRANGE|XREVRANGE} {r|x} {INTERVAL} {INTERVAL}
{XRANGE|XREVRANGE} {KEY} {-|+} {-|+} {COUNT}
XREAD {|COUNT 1|COUNT 0|COUNT -1|COUNT x|COUNT|BLOCK 1|BLOCK -1|BLOCK x|NOACK|GROUP g c|foo} STREAMS {r|x} {AFTER}
XREAD {COUNT 1|BLOCK 1 COUNT 2} STREAMS {r x|r r|x r|r l|r} {0 0|$ 0|3-5 0|0 x|0}
XGROUP CREATE {r|l|x} {g|h} {0|$|2-0|x|-|>} {|MKSTREAM|ENTRIESREAD 1|ENTRIESREAD -1|ENTRIESREAD -2|ENTRIESREAD x|ENTRIESREAD|foo}
XGROUP CREATE x h $ {MKSTREAM ENTRIESREAD 5|ENTRIESREAD 0 MKSTREAM|MKSTREAM MKSTREAM MKSTREAM MKSTREAM}
XGROUP SETID {r|l|x} {g|h} {0|$|2-0|x|-|+} {|ENTRIESREAD 1|MKSTREAM|foo}
XGROUP {DESTROY|SETID|CREATE} {r|l|x} {g|h}
XGROUP {CREATECONSUMER|DELCONSUMER} {r|l|x} {g|h} {c|d|e}
XGROUP {foo|HELP x|CREATE|DESTROY r}
XACK {r|l|x} {g|h} {1-1|1-1 2-0|1-1 1-1|3-5|x|1-1 x|1|2}
XPENDING {r|l|x} {g|h} {|- + 10|- + 0|- + -1|- + x|- +|1-1 1-1 5|(1-1 + 5|- (2 5|x + 5|- + 5 c|- + 5 d|- + 5 e}
XPENDING r g {IDLE 0 - + 5|IDLE 100000 - + 5|IDLE x - + 5|IDLE 0|IDLE 0 - + 5 c|IDLE 0 - + 5 c d|IDLE 0 - +}
XREADGROUP GROUP {g|h} d {|COUNT 1|COUNT 0|NOACK|COUNT x|BLOCK x} STREAMS {r|l|x} {>|0|2-0|$|x|+|-}
XREADGROUP GROUP g c {|COUNT 1|BLOCK 1} STREAMS {r r|r x|r} {> >|0 >|> 0|0 0|1-1 2-0}
XREADGROUP {COUNT 1 STREAMS r >|GROUP g STREAMS r >|NOACK STREAMS r > g|GROUP g c COUNT STREAMS r}
XCLAIM {r|l|x} {g|h} d {0|100000|x|-1} {1-1|1-1 2-0|3-5|9-9|1} {|JUSTID|FORCE|FORCE JUSTID|foo}
XCLAIM r g d 0 {1-1|3-5} {IDLE 5|IDLE x|TIME 1|TIME x|TIME -1|RETRYCOUNT 7|RETRYCOUNT x|RETRYCOUNT -1|LASTID 9-9|LASTID x|IDLE} {|FORCE}
XCLAIM r g d 0 {x|JUSTID|foo|1-1 x|1-1 JUSTID 2-0}
XAUTOCLAIM {r|l|x} {g|h} d {0|100000|x|-1} {0|2-0|(1-1|-|+|x|9} {|COUNT 1|COUNT 0|COUNT x|JUSTID|COUNT 1 JUSTID|foo}
XINFO {STREAM|GROUPS|CONSUMERS|foo} {r|l|x|r g|x g|r h|r FULL|r FULL COUNT 1|r FULL COUNT 0|r FULL COUNT x|r FULL foo|r foo|}
XSETID {r|l|x} {ID} {|ENTRIESADDED 3|ENTRIESADDED 2|ENTRIESADDED -1|ENTRIESADDED x|ENTRIESADDED|foo 1}
XSETID r {3-5|9-1|2-0} {MAXDELETEDID 1-1|MAXDELETEDID 9-0|MAXDELETEDID 9-2|MAXDELETEDID x|MAXDELETEDID}
SET {KEY} v {NX|XX|GET|KEEPTTL|NX GET|foo|}
SET {s|x|l} v {EXPIRY} {|NX|XX|GET|KEEPTTL|EX 10|PX 10000|EXAT 99999999999|PXAT 99999999999999|foo}
SET {s|x|l} v {NX|XX|GET|KEEPTTL|foo} {|NX|XX|GET|KEEPTTL|EX 10|PX 10000}
GETEX {s|x|l} {EXPIRY} {|PERSIST|EX 10|PX 100000|KEEPTTL|NX}
GETEX {s|x|l} {PERSIST|foo|} {|PERSIST|EX 10|KEEPTTL|NX}
{SETEX|PSETEX} {s|x|l} {INT} v
{INCRBY|DECRBY|LPOP|RPOP|ZPOPMIN|ZPOPMAX|EXPIRE|PEXPIRE|EXPIREAT|PEXPIREAT|LINDEX} {KEY} {INT}
{INCRBY|DECRBY|LPOP|RPOP|ZPOPMIN|ZPOPMAX|EXPIRE|LINDEX} {n|l|x} {INT} v
{GETBIT|SETRANGE|SWAPDB|SRANDMEMBER|SPOP|HRANDFIELD|ZRANDMEMBER} {s|x} {INT}
{SPOP|SRANDMEMBER} {t|l} {0|-1|x|_} {|v}
{SELECT|MOVE s} {0|1|16|-1|x|99999999999|_|9223372036854775807|9223372036854775808}
HRANDFIELD h {INT} {WITHVALUES|foo|WITHVALUES x}
ZRANDMEMBER z {INT} {WITHSCORES|foo}
INCRBYFLOAT {s|n|f|l|x} {FLOAT}
HINCRBYFLOAT {h|s|x} {a|b|c|d} {FLOAT}
HINCRBY {h|s|x} {a|b|c|d} {INT}
ZINCRBY {z|s|x} {FLOAT} {a|q}
GETRANGE {s|l|x} {INT} {INT}
SUBSTR {s|x} {INT} 3
SETRANGE {s|l|x} {INT} {v|_}
SETBIT {s|l|x} {INT} {0|1|2|x}
SETBIT s {4294967295|4294967296|536870912} 1
BITCOUNT {s|l|x} {INT} {INT}
BITCOUNT {s|x} {0|1|x} {1|-1|x|} {BIT|BYTE|foo|BIT x|}
BITPOS {s|l|x} {0|1|2|x} {0|-2|x|100|}
BITPOS {s|l|x} {0|1} {0|-2|x} {-1|0|x} {BIT|BYTE|foo|BIT x|}
BITOP {AND|OR|XOR|NOT|foo} d {s|l|x} {n|l|}
BITOP {AND|foo} d
{BITFIELD|BITFIELD_RO} {s|l|x} {|GET u4 0} {BITS}
LCS {s|l|x} {n|s|l|x} {LEN|IDX|IDX LEN|MINMATCHLEN|MINMATCHLEN x|MINMATCHLEN -1|IDX MINMATCHLEN 2|foo|}
LCS {s|l|x} {n|s} {IDX WITHMATCHLEN|WITHMATCHLEN}
{MSET|MSETNX} {|x|x 1|x 1 y|l 1|x 1 x 2|s 1 x 2}
MGET {s|l|x} {n|l|x}
{EXPIRE|PEXPIRE|EXPIREAT|PEXPIREAT} {s|x} {100|-1|0|99999999999999|x} {NX|XX|GT|LT|foo} {NX|XX|GT|LT|foo|}
COPY {s|l|x} {y|n|s} {DB 1|DB 0|DB 16|DB -1|DB x|DB|DB 99999999999999999999|foo|} {REPLACE|DB 1|}
{RENAME|RENAMENX} {s|x|l} {y|n|s|x}
MOVE {s|x} {0|1|16|-1|x|99999999999|_}
SWAPDB {0|16|-1|x} {0|16|-1|x|1}
OBJECT {|FREQ|IDLETIME|ENCODING|REFCOUNT|foo} {|s|l|x|s x}
RESTORE {s|x} {0|-1|x|10} bad {REPLACE|ABSTTL|IDLETIME 1|IDLETIME -1|IDLETIME x|IDLETIME|FREQ 1|FREQ|foo|}
RESTORE x {0|-1|x|10} bad {FREQ 256|FREQ -1|FREQ x|IDLETIME 1 FREQ 1|REPLACE ABSTTL}
SCAN {0|x|-1|_|18446744073709551616|1.5} {MATCH *|COUNT 10|COUNT 0|COUNT x|TYPE string|TYPE foo|TYPE|foo|}
{SSCAN t|HSCAN h|ZSCAN z|SSCAN s|HSCAN x} {0|x|-1|_|} {MATCH *|COUNT 10|COUNT 0|COUNT x|TYPE string|MATCH|foo|}
{SORT|SORT_RO} {KEY} {ASC|DESC|ALPHA|LIMIT 0 1|LIMIT 0|LIMIT x 1|LIMIT 0 x|LIMIT -1 -1|LIMIT 1 0|foo}
{SORT|SORT_RO} {KEY} {BY nosort|BY w_*|BY|GET #|GET w_*|GET|STORE d|STORE|ALPHA DESC LIMIT 1 1|BY h->a}
{SORT|SORT_RO} {KEY} {BY nosort GET #|BY nosort DESC|GET # GET #|ASC DESC ALPHA}
{SORT|SORT_RO} {l|t|z} BY {nosort|w_*} {DESC|BY w_*|BY nosort|LIMIT 1 2|ALPHA} {DESC|LIMIT 0 2|STORE d|GET #|BY x}
{FLUSHDB|FLUSHALL} {foo|ASYNC|SYNC|SYNC ASYNC|ASYNC x}
{LPUSH|RPUSH|LPUSHX|RPUSHX} {KEY} {v|v w}
{LRANGE|LTRIM} {l|x|s} {INT} {INT}
LSET {l|x|s} {INT} v
LREM {l|x|s} {INT} {a|q}
LINSERT {l|x|s} {BEFORE|AFTER|foo|before} {a|q} v
LMOVE {l|x|s} {y|l|s} {LEFT|RIGHT|foo} {LEFT|RIGHT|foo}
BLMOVE {l|x|s} {y|l|s} {LEFT|foo} {RIGHT|foo} {0.001|-1|x|nan}
BRPOPLPUSH {l|x|s} {y|s} {0.001|-1|x}
{BLPOP|BRPOP|BZPOPMIN|BZPOPMAX} {l|s|z|l x|x z|x s} {TIME}
{BLPOP|BRPOP|BZPOPMIN|BZPOPMAX} x {0.001|-1|x|-0.1|_|nan}
LPOS {l|s|x} a {RANK 1|RANK 2|RANK -1|RANK 0|RANK x|RANK|foo|} {COUNT 0|COUNT -1|COUNT x|COUNT|MAXLEN -1|}
LPOS {l|s|x} a {MAXLEN 0|MAXLEN 2|MAXLEN x|MAXLEN|RANK 1 COUNT 2 MAXLEN 3|COUNT 2 COUNT 1|}
{LMPOP|BLMPOP 0.001} {1|0|-1|x|2|9223372036854775807} {l|z|s} {LEFT|RIGHT|foo|MIN} {COUNT}
{ZMPOP|BZMPOP 0.001} {1|0|-1|x|2|9223372036854775807} {l|z|s} {MIN|MAX|foo|LEFT} {COUNT}
{LMPOP|BLMPOP 0.001} {|1|1 l|2 l LEFT|2 x l LEFT|2 x s LEFT COUNT 10}
{ZMPOP|BZMPOP 0.001} {|1|1 z|2 z MIN|2 x z MAX|2 x s MIN COUNT 10}
{BLMPOP|BZMPOP} {-1|x|nan} 1 {l LEFT|z MIN}
SMOVE {t|s|x} {i|s|y} {a|q}
{SINTER|SUNION|SDIFF} {t|s|x} {i|s|t|x|}
{SINTERSTORE|SUNIONSTORE|SDIFFSTORE} {d|s|t} {t|s|x} {i|s|t|x|} {|y|t}
SINTERCARD {1|0|-1|x|2|3} {t|s|x} {i|s|} {CARD_LIMIT}
ZINTERCARD {1|0|-1|x|2|3} {z|s|x|t} {z|s|} {CARD_LIMIT}
{HGET|HEXISTS|HSTRLEN|HDEL|HMGET|HSETNX|HSET|HMSET} {h|s|x} {a b|a b c|a b c d}
ZADD {z|s|x} {NX|XX|GT|LT|CH|INCR|foo|} {NX|XX|GT|LT|CH|INCR|} {5 a|0 a|5 q|nan a|x a|inf a}
ZADD {z|s|x} {NX|XX|XX GT INCR CH|INCR|CH|} {1|5 a 6|5 a 6 b|(5 a|1e400 a|-inf q|0x10 q|~5a a|}
ZMSCORE {z|s|x} {a|q} {a|q|}
{ZRANK|ZREVRANK} {z|s|x} {a|q}
{ZCOUNT|ZLEXCOUNT|ZREMRANGEBYSCORE|ZREMRANGEBYLEX} {z|s|x} {BOUND} {3|(3|+inf|x|nan|+|[c|_}
ZREMRANGEBYRANK {z|s|x} {INT} {0|-1|x}
{ZRANGEBYSCORE|ZREVRANGEBYSCORE} {z|s|x} {1|(1|-inf|+inf|x|[a} {3|(3|+inf|x} {WITHSCORES|foo|}
{ZRANGEBYSCORE|ZREVRANGEBYSCORE} {z|s|x} {1|x|+inf} {3|-inf} {LIMIT 0 1|LIMIT 0|LIMIT x 1|LIMIT 0 x|LIMIT}
{ZRANGEBYSCORE|ZREVRANGEBYSCORE} {z|s|x} {1|+inf} 3 {LIMIT -1 2|LIMIT 0 -1|WITHSCORES LIMIT 1 1}
{ZRANGEBYLEX|ZREVRANGEBYLEX} {z|s|x} {-|[a|(a|+|x|1} {+|[c|(c|-|x} {WITHSCORES|LIMIT 0 1|LIMIT x 1|foo|}
{ZRANGE|ZRANGESTORE d} {z|s|x} {0 -1|-1 0|x 1|1 x|1 3|(1 +inf|- +|+ -|[a [c|[a x} {|BYSCORE|BYLEX|REV|foo}
{ZRANGE|ZRANGESTORE d} {z|s|x} {0 -1|1 3|- +|+ -} {WITHSCORES|LIMIT 0 1|BYSCORE LIMIT 0 1|BYLEX LIMIT 0 1}
{ZRANGE|ZRANGESTORE d} {z|s|x} {0 -1|1 3|- +|3 1} {BYSCORE REV|BYLEX REV|BYSCORE BYLEX|BYSCORE WITHSCORES}
{ZRANGE|ZRANGESTORE d} {z|s|x} {0 -1|1 3|- +} {BYLEX WITHSCORES|REV WITHSCORES|BYSCORE LIMIT 1|REV REV}
{ZRANGE|ZRANGESTORE d} {z|s|x} {0 -1|1 3} {BYSCORE LIMIT x 1|BYSCORE LIMIT 1 x|BYSCORE LIMIT -1 -1}
ZREVRANGE {z|s|x} {INT} {0|-1|x} {WITHSCORES|foo|BYSCORE|}
{ZUNION|ZINTER|ZDIFF|ZUNIONSTORE d|ZINTERSTORE d} {1|0|-1|x|2|3} {z|z t|z s|x z|z z|} {AGGREGATE}
ZDIFFSTORE d {1|0|-1|x|2|9223372036854775807} {z|z t|s|} {|WEIGHTS 1|WITHSCORES|foo}
GEOADD {g|s|x} {NX|XX|CH|NX XX|GT|foo|} {1 1 P|1 1 q 2 2 r|1 1|x 1 P|181 1 P|1 86 P|nan 1 P|inf 1 P|}
{GEOPOS|GEOHASH} {g|z|s|x} {|P|P q C}
GEODIST {g|z|s|x} {P C|P q|a b|P} {m|KM|foo|m m|}
GEOSEARCH {g|s|x} {FROMMEMBER P|FROMLONLAT 15 37} {BYRADIUS|BYRADIUS 200|BYRADIUS 200 km|BYBOX 400 400 km} {GEO}
GEOSEARCH {g|s|x} {FROMMEMBER q|FROMLONLAT 181 0|FROMLONLAT x 1|FROMLONLAT 1|FROMMEMBER P FROMLONLAT 1 1|} {LENGTHS}
GEOSEARCH {g|x} FROMMEMBER P {LENGTHS} {ASC|WITHCOORD}
GEOSEARCHSTORE d {g|s|x} {FROMMEMBER P|FROMLONLAT 15 37|FROMMEMBER q} {BYRADIUS 200 km|BYBOX 1 1 m|} {GEO}
{GEORADIUS|GEORADIUS_RO} {g|s|x} {15 37|181 0|x 1|1} {200 km|x km|-1 km|1 foo} {GEO}
{GEORADIUSBYMEMBER|GEORADIUSBYMEMBER_RO} {g|s|x} {P|q} {200 km|x km|1 foo} {GEO}
PFMERGE {d|s|l} {x|s|l|}
PFDEBUG {GETREG|DECODE|ENCODING|TODENSE|foo|} {s|x|l|}
{PING|ECHO} {|a|a b}
CLIENT {|foo|ID x|GETNAME|SETNAME|SETNAME a b|REPLY|REPLY x|HELP x|NO-EVICT|NO-EVICT x|LIST x|LIST ID}
CLIENT PAUSE {|x|-1|1.5|0|1|0 WRITE|1 all|0 foo|x foo|1 WRITE x}
CLIENT UNPAUSE {|x}
CLIENT UNBLOCK {|x|99999|99999 foo|99999 TIMEOUT|99999 ERROR|-1|9 ERROR x}
CLIENT TRACKING {|on off|foo|on foo|on redirect|on redirect x|on redirect 99999999|on prefix|on prefix a|off prefix a|off}
CLIENT TRACKING on {bcast optin|optin optout|bcast prefix ab prefix a|bcast prefix a prefix a|bcast prefix a bcast optout}
CLIENT CACHING {|yes|no|foo}
CLIENT {GETREDIR|GETREDIR x|TRACKINGINFO|TRACKINGINFO x}
CLIENT KILL {|1|1.2.3.4:5|ID|ID x|ID 99999|ID 0|ID -1|TYPE foo|TYPE master|TYPE pubsub|TYPE slave|ADDR 1:1}
CLIENT KILL {LADDR 1:1|USER nobody|USER default ID 99999|SKIPME|SKIPME x|SKIPME yes ID 99999|FOO bar|ID 1 2}
CLIENT LIST {TYPE|TYPE foo|ID x|ID 99999|TYPE pubsub|TYPE master|TYPE normal x}
HELLO {x|1|4|9223372036854775808|2 AUTH|2 AUTH a|2 SETNAME|2 foo|2 AUTH nobody x|2 SETNAME a SETNAME b}
AUTH {|a|a b|a b c|default x|nobody x}
CONFIG {|foo|GET|GET nosuch|SET|SET maxclients|SET nosuch 1|RESETSTAT x|REWRITE x|HELP x}
CONFIG SET timeout {x|-1|0 timeout 0|0 nosuch 1|0 maxclients|0 timeout}
CONFIG SET {maxmemory-policy|appendfsync|loglevel|notify-keyspace-events|maxclients|hz} {foo|_}
CONFIG SET {maxmemory 1zb|databases 5|daemonize yes|unixsocketperm 999|client-output-buffer-limit foo}
{ROLE|READONLY|READWRITE|ASKING} {|x}
CLUSTER {|INFO|NODES|SLOTS|SHARDS|MYID|KEYSLOT a|COUNTKEYSINSLOT 1}
MODULE {|LIST|LIST x|foo}
LATENCY {|foo|LATEST|LATEST x|HISTORY|HISTORY command|HISTORY x y|GRAPH|GRAPH x|RESET|RESET command x|HELP x}
LATENCY {DOCTOR x|HISTOGRAM nosuch|HISTOGRAM get|HISTOGRAM client}
SLOWLOG {GET -2|GET x|GET 1 2|GET 0|LEN 1|RESET|RESET x|foo}
COMMAND {foo|COUNT x|LIST x|LIST FILTERBY|LIST FILTERBY foo bar|LIST FILTERBY MODULE x|INFO nosuch|DOCS nosuch}
COMMAND LIST FILTERBY {ACLCAT nosuch|PATTERN xyz*|PATTERN}
COMMAND GETKEYS {|foo bar|GET a|GET a b|PING x|EVAL x 2 a b|EVAL x 3 a b|EVAL x x a b|SORT a STORE b|SET a}
COMMAND GETKEYS {ZUNIONSTORE d 2 a b|ZUNIONSTORE d 5 a b|MSET a 1 b 2|MSET a 1 b|LMPOP 2 a b LEFT|BLPOP a b 0}
COMMAND GETKEYS {MEMORY USAGE a|OBJECT ENCODING a|PUBLISH a b|SPUBLISH a b|SUBSCRIBE a|CLIENT ID}
COMMAND GETKEYS {GEORADIUS g 1 1 1 km|GEORADIUS g 1 1 1 km STORE d|GEORADIUS g 1 1 1 STORE d|GEORADIUS g 1 STORE d}
COMMAND GETKEYS {GEORADIUS g 1 1 1 km STOREDIST d store y|GEORADIUS g 1 1 1 km STORE d STORE y STOREDIST}
COMMAND GETKEYS {GEORADIUSBYMEMBER g P 1 km STORE d|GEORADIUSBYMEMBER g P 1 STORE d|GEORADIUS_RO g 1 1 1 km STORE d}
COMMAND GETKEYS {GEOSEARCH g FROMMEMBER P BYRADIUS 1 km|GEOSEARCHSTORE d g FROMMEMBER P BYRADIUS 1 km|GEOADD g 1 1 P}
COMMAND GETKEYSANDFLAGS {GEORADIUS g 1 1 1 km STORE d STOREDIST y|GEOSEARCHSTORE d g FROMMEMBER P BYRADIUS 1 km}
COMMAND GETKEYSANDFLAGS {SET a b|SET a b GET|LMOVE a b LEFT LEFT|BITFIELD a GET u8 0|COPY a b|SORT a STORE b}
MEMORY {STATS|STATS x|DOCTOR|DOCTOR x|PURGE|PURGE x|MALLOC-STATS|MALLOC-STATS x}
MEMORY {|foo|USAGE|USAGE x|USAGE s SAMPLES|USAGE s SAMPLES x|USAGE s SAMPLES -1|USAGE s foo|HELP x}
{LOLWUT VERSION x|TIME x|DBSIZE x|MONITOR x|SHUTDOWN foo|SHUTDOWN NOSAVE SAVE|SHUTDOWN ABORT x}
WAIT {|x 1|0 x|0 -1|0 1|-1 1|1 1}
{nosuch|nosuch a b c|get|GeT s|_}
PUBSUB {|foo|CHANNELS a b|NUMSUB|NUMSUB a|NUMPAT x|NUMPAT|SHARDCHANNELS a b|SHARDNUMSUB a b}
{PUBLISH|SPUBLISH} {|a|a b|a b c}
{SUBSCRIBE|PSUBSCRIBE|SSUBSCRIBE|MULTI x|EXEC|EXEC x|DISCARD|DISCARD x|WATCH|UNWATCH x|UNWATCH}
EVAL {|x|return|return~1 x|return~1 -1|return~1 1|return~1 0 1|return~KEYS 1 a b}
{EVALSHA|EVALSHA_RO} {|x 0|ffffffffffffffffffffffffffffffffffffffff 0|ffffffffffffffffffffffffffffffffffffffff x}
FUNCTION {|foo|LOAD|LOAD x|LOAD REPLACE|LOAD foo x|LOAD #!lua|LOAD #!lua~name=x|LIST|LIST x|LIST WITHCODE}
FUNCTION LIST {WITHCODE WITHCODE|LIBRARYNAME|LIBRARYNAME l*|LIBRARYNAME x|LIBRARYNAME L* WITHCODE|LIBRARYNAME l LIBRARYNAME l}
FUNCTION {DUMP|DUMP x|STATS|STATS x|KILL|KILL x|DELETE|DELETE x|DELETE l|DELETE L|DELETE l x|FLUSH|FLUSH x|FLUSH SYNC}
FUNCTION {FLUSH ASYNC|FLUSH SYNC x|RESTORE|RESTORE x|RESTORE x FLUSH|RESTORE x y|RESTORE x FLUSH z|RESTORE _|HELP x}
FUNCTION LOAD {|REPLACE |foo |replace REPLACE }#!lua~name={l|m|x-y|_|"l"|l~x}^{return|bad~code|a=1|x.y=1}
FUNCTION LOAD {|REPLACE }#!lua~name={l|m}^redis.register_function('{f|F|g|_|x-y}',function(){|~end)}
FUNCTION LOAD #!{lua~name=m|js~name=m|LUA~NAME=m|lua|lua~n=m|lua~name=m~name=m|}^redis.register_function('g',function()~end)
FUNCTION LOAD #!lua~name=m^{redis.call('ping')|redis.register_function()|redis.register_function('g')|redis.log(1)}
{FCALL|FCALL_RO} {f|F|o|x|_|l} {|0|1 s|1 s a|-1|x|2 s|1|_|2 s n a b|01}
{FCALL|FCALL_RO} o 1 {s|x|l} {get|set 1|strlen|nosuch|getdel|append x|type|function list|get a}
SCRIPT {|foo|LOAD|LOAD return~1~1|LOAD return~1 x|EXISTS|EXISTS x y|FLUSH foo|FLUSH SYNC x|KILL|KILL x|DEBUG}
"""


def spread(line):
    """All that a line stands for, each a list of words."""
    for name, words in LISTS.items():
        line = line.replace("{" + name + "}", "{" + words + "}")
    parts = re.split(r"\{([^}]*)\}", line)
    choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    for chosen in itertools.product(*choices):
        yield ["" if word == "_" else word.replace("~", " ").replace("^", "\n") for word in "".join(chosen).split()]


def forms():
    """All of them, each once."""
    lines = FORMS.strip().split("\n") + [f"{name} {more}".strip() for name in ONE_KEY
                                         for more in ("", "{KEY}", "{KEY} y", "{KEY} y z")]
    found = {}
    for line in lines:
        for words in spread(line):
            found[tuple(words)] = [word.encode() for word in words]
    return list(found.values())
