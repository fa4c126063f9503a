/*
 * The commands on strings: scripts of commands and replies, and seeded random strings for LCS.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/command_driver.h"

/* ---- scripts ---- */

static const struct step get_set[] = {
    {"GET k", NIL, NULL},
    {"SET k v", OK, NULL},
    {"GET k", BULK(1, "v"), NULL},
    {"SET k ''", OK, NULL},
    {"GET k", EMPTY, NULL},
    {"SET k \"a\\x00b\\r\\n\"", OK, NULL},
    {"GET k", "$5\r\na\\0b\r\n\r\n", NULL},
    {"@list l", OK, NULL},
    {"GET l", WRONG, NULL},
    {"SET l v", OK, NULL},
    {"GET l", BULK(1, "v"), NULL},
    {"SET k v EX", SYNTAX, NULL},
    {"SET k v nonsense", SYNTAX, NULL},
    {"SET k v PERSIST", SYNTAX, NULL},
    {"SET k v NX XX", SYNTAX, NULL},
    {"SET k v XX NX", SYNTAX, NULL},
    {"SET k v EX 10 PX 10", SYNTAX, NULL},
    {"SET k v EX 10 KEEPTTL", SYNTAX, NULL},
    {"SET k v KEEPTTL EXAT 10", SYNTAX, NULL},
    {"SET k v PXAT 10 EXAT 10", SYNTAX, NULL},
    {"SET k v EX nan NX XX", SYNTAX, NULL},
    {"SET k v NX NX", NIL, NULL},
    {NULL, NULL, NULL},
};

static const struct step set_conditions[] = {
    {"SET k v XX", NIL, NULL},
    {"GET k", NIL, NULL},
    {"SET k v nx", OK, NULL},
    {"SET k w NX", NIL, NULL},
    {"GET k", BULK(1, "v"), NULL},
    {"SET k w XX", OK, NULL},
    {"GET k", BULK(1, "w"), NULL},
    {"SET k x GET", BULK(1, "w"), NULL},
    {"SET k y NX GET", BULK(1, "x"), NULL},
    {"GET k", BULK(1, "x"), NULL},
    {"SET n y NX GET", NIL, NULL},
    {"GET n", BULK(1, "y"), NULL},
    {"SET m y XX GET", NIL, NULL},
    {"GET m", NIL, NULL},
    {"SET n z XX GET", BULK(1, "y"), NULL},
    {"SET o z GET", NIL, NULL},
    {"GET o", BULK(1, "z"), NULL},
    {"@list l", OK, NULL},
    {"SET l v GET", WRONG, NULL},
    {"SET l v NX GET", WRONG, NULL},
    {"GET l", WRONG, NULL},
    {"SET l v NX", NIL, NULL},
    {"SET l v XX", OK, NULL},
    {"GET l", BULK(1, "v"), NULL},
    {"SET l w IFEQ x", NIL, NULL},
    {"SET l w IFEQ x GET", BULK(1, "v"), NULL},
    {"SET l w IFEQ v NX", SYNTAX, NULL},
    {"SET l w IFEQ", SYNTAX, NULL},
    {"SET l w IFEQ v", OK, NULL},
    {"GET l", BULK(1, "w"), NULL},
    {"DELIFEQ l v", INT(0), NULL},
    {"DELIFEQ l w", INT(1), NULL},
    {"DELIFEQ l w", INT(0), NULL},
    {"SET l v IFEQ w", NIL, NULL},
    {"SETNX k other", INT(0), NULL},
    {"SETNX fresh v", INT(1), NULL},
    {"GET fresh", BULK(1, "v"), NULL},
    {"@list l", OK, NULL},
    {"SETNX l v", INT(0), NULL},
    {NULL, NULL, NULL},
};

#define BAD_TIME(name) ERR("invalid expire time in '" name "' command")

static const struct step set_expiry[] = {
    {"SET k v EX 100", OK, NULL},
    {"@ttl k", INT(100000), NULL},
    {"SET k v PX 1500", OK, NULL},
    {"@ttl k", INT(1500), NULL},
    {"SET k w KEEPTTL", OK, NULL},
    {"@ttl k", INT(1500), NULL},
    {"GET k", BULK(1, "w"), NULL},
    {"SET k w", OK, NULL},
    {"@ttl k", INT(-1), NULL},
    {"SET k w KEEPTTL", OK, NULL},
    {"@ttl k", INT(-1), NULL},
    {"SET new w KEEPTTL", OK, NULL},
    {"@ttl new", INT(-1), NULL},
    {"SET k v EX 10 EX 20", OK, NULL},
    {"@ttl k", INT(20000), NULL},
    {"SET k v NX EX 30", NIL, NULL},
    {"@ttl k", INT(20000), NULL},
    {"SET k v GET EX 30", BULK(1, "v"), NULL},
    {"@ttl k", INT(30000), NULL},
    {"SET k v EX 0", BAD_TIME("set"), NULL},
    {"SET k v EX -1", BAD_TIME("set"), NULL},
    {"SET k v PX 0", BAD_TIME("set"), NULL},
    {"SET k v EXAT 0", BAD_TIME("set"), NULL},
    {"SET k v PXAT -5", BAD_TIME("set"), NULL},
    {"SET k v EX 9223372036854775807", BAD_TIME("set"), NULL},
    {"SET k v EX 9223372036854775", BAD_TIME("set"), NULL},
    {"SET k v PX 9223372036854775807", BAD_TIME("set"), NULL},
    {"SET k v EX abc", NOT_INT, NULL},
    {"SET k v EX 1.5", NOT_INT, NULL},
    {"SET k v PX 99999999999999999999", NOT_INT, NULL},
    {"@ttl k", INT(30000), NULL},
    {"SET k v PXAT 9223372036854775807", OK, NULL},
    {"GET k", BULK(1, "v"), NULL},
    {"@keys", INT(2), NULL},
    {"SET k v EXAT 1", OK, NULL},
    {"@keys", INT(1), NULL},
    {"GET k", NIL, NULL},
    {"@ttl k", INT(-2), NULL},
    {"SET k v PX 50", OK, NULL},
    {"@pass 60", OK, NULL},
    {"GET k", NIL, NULL},
    {"SET k v XX", NIL, NULL},
    {"SET k a", OK, NULL},
    {"SET k b GET PXAT 1", BULK(1, "a"), NULL},
    {"GET k", NIL, NULL},
    {"SETEX k 10 v", OK, NULL},
    {"@ttl k", INT(10000), NULL},
    {"PSETEX k 1234 w", OK, NULL},
    {"@ttl k", INT(1234), NULL},
    {"GET k", BULK(1, "w"), NULL},
    {"SETEX k 0 v", BAD_TIME("setex"), NULL},
    {"SETEX k -10 v", BAD_TIME("setex"), NULL},
    {"SETEX k 9223372036854775807 v", BAD_TIME("setex"), NULL},
    {"SETEX k x v", NOT_INT, NULL},
    {"PSETEX k 0 v", BAD_TIME("psetex"), NULL},
    {"PSETEX k 9223372036854775807 v", BAD_TIME("psetex"), NULL},
    {"GET k", BULK(1, "w"), NULL},
    {"SETNX k v", INT(0), NULL},
    {"@ttl k", INT(1234), NULL},
    {NULL, NULL, NULL},
};

static const struct step get_and_more[] = {
    {"GETSET k a", NIL, NULL},
    {"GETSET k b", BULK(1, "a"), NULL},
    {"SET k b EX 10", OK, NULL},
    {"GETSET k c", BULK(1, "b"), NULL},
    {"@ttl k", INT(-1), NULL},
    {"@list l", OK, NULL},
    {"GETSET l v", WRONG, NULL},
    {"GETDEL l", WRONG, NULL},
    {"GETEX l", WRONG, NULL},
    {"GETEX l EX 0", WRONG, NULL},
    {"GETDEL k", BULK(1, "c"), NULL},
    {"GETDEL k", NIL, NULL},
    {"GET k", NIL, NULL},
    {"GETEX k", NIL, NULL},
    {"GETEX k EX 0", NIL, NULL},
    {"GETEX k EX 0 PX 1", SYNTAX, NULL},
    {"SET k v", OK, NULL},
    {"GETEX k", BULK(1, "v"), NULL},
    {"@ttl k", INT(-1), NULL},
    {"GETEX k EX 10", BULK(1, "v"), NULL},
    {"@ttl k", INT(10000), NULL},
    {"GETEX k", BULK(1, "v"), NULL},
    {"@ttl k", INT(10000), NULL},
    {"GETEX k px 2000", BULK(1, "v"), NULL},
    {"@ttl k", INT(2000), NULL},
    {"GETEX k PERSIST", BULK(1, "v"), NULL},
    {"@ttl k", INT(-1), NULL},
    {"GETEX k PERSIST", BULK(1, "v"), NULL},
    {"GETEX k EX 10 PERSIST", SYNTAX, NULL},
    {"GETEX k PERSIST PX 10", SYNTAX, NULL},
    {"GETEX k KEEPTTL", SYNTAX, NULL},
    {"GETEX k NX", SYNTAX, NULL},
    {"GETEX k GET", SYNTAX, NULL},
    {"GETEX k EX", SYNTAX, NULL},
    {"GETEX k EX 0", BAD_TIME("getex"), NULL},
    {"GETEX k PX abc", NOT_INT, NULL},
    {"GETEX k PXAT 9223372036854775806", BULK(1, "v"), NULL},
    {"@keys", INT(2), NULL},
    {"GETEX k EXAT 1", BULK(1, "v"), NULL},
    {"@keys", INT(1), NULL},
    {"GET k", NIL, NULL},
    {NULL, NULL, NULL},
};

static const struct step lengths[] = {
    {"STRLEN k", INT(0), NULL},
    {"APPEND k ''", INT(0), NULL},
    {"GET k", EMPTY, NULL},
    {"APPEND k abc", INT(3), NULL},
    {"APPEND k de", INT(5), NULL},
    {"APPEND k ''", INT(5), NULL},
    {"GET k", BULK(5, "abcde"), NULL},
    {"STRLEN k", INT(5), NULL},
    {"SET k 12 EX 100", OK, NULL},
    {"APPEND k 34", INT(4), NULL},
    {"GET k", BULK(4, "1234"), NULL},
    {"@ttl k", INT(100000), NULL},
    {"@list l", OK, NULL},
    {"STRLEN l", WRONG, NULL},
    {"APPEND l x", WRONG, NULL},
    {NULL, NULL, NULL},
};

static const struct step get_range[] = {
    {"SET k 'Hello World'", OK, NULL},
    {"GETRANGE k 0 4", BULK(5, "Hello"), NULL},
    {"GETRANGE k 0 -1", BULK(11, "Hello World"), NULL},
    {"GETRANGE k -5 -1", BULK(5, "World"), NULL},
    {"GETRANGE k 5 3", EMPTY, NULL},
    {"GETRANGE k -3 -5", EMPTY, NULL},
    {"GETRANGE k 11 20", EMPTY, NULL},
    {"GETRANGE k 10 5000", BULK(1, "d"), NULL},
    {"GETRANGE k -5000 2", BULK(3, "Hel"), NULL},
    {"GETRANGE k -5000 -4000", BULK(1, "H"), NULL},
    {"GETRANGE k -9223372036854775808 9223372036854775807", BULK(11, "Hello World"), NULL},
    {"GETRANGE k 9223372036854775807 -9223372036854775808", EMPTY, NULL},
    {"GETRANGE k -9223372036854775808 -9223372036854775808", BULK(1, "H"), NULL},
    {"GETRANGE k -9223372036854775809 0", NOT_INT, NULL},
    {"GETRANGE k 0 x", NOT_INT, NULL},
    {"GETRANGE none x 1", NOT_INT, NULL},
    {"GETRANGE none 0 -1", EMPTY, NULL},
    {"SUBSTR k 0 4", BULK(5, "Hello"), NULL},
    {"SET e ''", OK, NULL},
    {"GETRANGE e 0 -1", EMPTY, NULL},
    {"GETRANGE e 0 0", EMPTY, NULL},
    {"@list l", OK, NULL},
    {"GETRANGE l 0 1", WRONG, NULL},
    {"SUBSTR l 0 1", WRONG, NULL},
    {NULL, NULL, NULL},
};

static const struct step set_range[] = {
    {"SETRANGE k 0 ''", INT(0), NULL},
    {"GET k", NIL, NULL},
    {"SETRANGE k 3 ab", INT(5), NULL},
    {"GET k", "$5\r\n\\0\\0\\0ab\r\n", NULL},
    {"SETRANGE k 1 X", INT(5), NULL},
    {"GET k", "$5\r\n\\0X\\0ab\r\n", NULL},
    {"SETRANGE k 100 ''", INT(5), NULL},
    {"STRLEN k", INT(5), NULL},
    {"SETRANGE k 4 cde", INT(7), NULL},
    {"GET k", "$7\r\n\\0X\\0acde\r\n", NULL},
    {"SETRANGE n 0 abc", INT(3), NULL},
    {"GET n", BULK(3, "abc"), NULL},
    {"SET n 1234 PX 5000", OK, NULL},
    {"SETRANGE n 1 99", INT(4), NULL},
    {"GET n", BULK(4, "1994"), NULL},
    {"@ttl n", INT(5000), NULL},
    {"SETRANGE k -1 x", ERR("offset is out of range"), NULL},
    {"SETRANGE k x x", NOT_INT, NULL},
    {"SETRANGE k 9223372036854775807 x", TOO_LONG, NULL},
    {"SETRANGE k 4294967296 x", TOO_LONG, NULL},
    {"SETRANGE none 4294967296 x", TOO_LONG, NULL},
    {"SETRANGE k 536870912 x", TOO_LONG, NULL},
    {"SETRANGE k 536870911 xy", TOO_LONG, NULL},
    {"SETRANGE k 4294967296 ''", INT(7), NULL},
    {"SETRANGE none 4294967296 ''", INT(0), NULL},
    {"GET none", NIL, NULL},
    {"@list l", OK, NULL},
    {"SETRANGE l 0 x", WRONG, NULL},
    {"SETRANGE l 0 ''", WRONG, NULL},
    {"SETRANGE l -1 x", ERR("offset is out of range"), NULL},
    {NULL, NULL, NULL},
};

static const struct step integers[] = {
    {"INCR k", INT(1), NULL},
    {"INCR k", INT(2), NULL},
    {"GET k", BULK(1, "2"), NULL},
    {"DECR k", INT(1), NULL},
    {"INCRBY k 41", INT(42), NULL},
    {"DECRBY k 50", INT(-8), NULL},
    {"INCRBY k -2", INT(-10), NULL},
    {"DECRBY k -3", INT(-7), NULL},
    {"DECR n", INT(-1), NULL},
    {"DECRBY m 5", INT(-5), NULL},
    {"SET k 5 EX 100", OK, NULL},
    {"INCR k", INT(6), NULL},
    {"@ttl k", INT(100000), NULL},
    {"INCRBY k x", NOT_INT, NULL},
    {"INCRBY k 1.0", NOT_INT, NULL},
    {"DECRBY k ''", NOT_INT, NULL},
    {"DECRBY k -9223372036854775808", ERR("decrement would overflow"), NULL},
    {"SET k 9223372036854775807", OK, NULL},
    {"INCR k", ERR("increment or decrement would overflow"), NULL},
    {"INCRBY k 9223372036854775807", ERR("increment or decrement would overflow"), NULL},
    {"DECR k", INT(9223372036854775806), NULL},
    {"INCR k", INT(9223372036854775807), NULL},
    {"SET k -9223372036854775808", OK, NULL},
    {"DECR k", ERR("increment or decrement would overflow"), NULL},
    {"INCRBY k -9223372036854775808", ERR("increment or decrement would overflow"), NULL},
    {"DECRBY k 9223372036854775807", ERR("increment or decrement would overflow"), NULL},
    {"INCRBY k 9223372036854775807", INT(-1), NULL},
    {"INCRBY k -9223372036854775808", ERR("increment or decrement would overflow"), NULL},
    {"SET k 0", OK, NULL},
    {"INCRBY k -9223372036854775808", INT(-9223372036854775808), NULL},
    {"SET k ' 1'", OK, NULL},
    {"INCR k", NOT_INT, NULL},
    {"SET k '1 '", OK, NULL},
    {"INCR k", NOT_INT, NULL},
    {"SET k 01", OK, NULL},
    {"INCR k", NOT_INT, NULL},
    {"SET k ''", OK, NULL},
    {"INCR k", NOT_INT, NULL},
    {"SET k 9223372036854775808", OK, NULL},
    {"DECR k", NOT_INT, NULL},
    {"@fill big 100000 1", OK, NULL},
    {"INCR big", NOT_INT, NULL},
    {"@list l", OK, NULL},
    {"INCR l", WRONG, NULL},
    {"DECRBY l 1", WRONG, NULL},
    {"INCRBY l x", NOT_INT, NULL},
    {NULL, NULL, NULL},
};

#define NOT_FLOAT ERR("value is not a valid float")

static const struct step floats[] = {
    {"INCRBYFLOAT k 1.5", BULK(3, "1.5"), NULL},
    {"INCRBYFLOAT k 1.5", BULK(1, "3"), NULL},
    {"INCRBYFLOAT k -0.1", BULK(3, "2.9"), NULL},
    {"GET k", BULK(3, "2.9"), NULL},
    {"SET k 10.50 PX 9000", OK, NULL},
    {"INCRBYFLOAT k 0.1", BULK(4, "10.6"), NULL},
    {"@ttl k", INT(9000), NULL},
    {"SET k 5.0e3", OK, NULL},
    {"INCRBYFLOAT k 2.0e2", BULK(4, "5200"), NULL},
    {"INCR k", INT(5201), NULL},
    {"SET k 1", OK, NULL},
    {"INCRBYFLOAT k x", NOT_FLOAT, NULL},
    {"INCRBYFLOAT k ''", NOT_FLOAT, NULL},
    {"INCRBYFLOAT k ' 1'", NOT_FLOAT, NULL},
    {"INCRBYFLOAT k nan", NOT_FLOAT, NULL},
    {"INCRBYFLOAT k inf", ERR("increment would produce NaN or Infinity"), NULL},
    {"INCRBYFLOAT k -inf", ERR("increment would produce NaN or Infinity"), NULL},
    {"GET k", BULK(1, "1"), NULL},
    {"SET k inf", OK, NULL},
    {"INCRBYFLOAT k -inf", ERR("increment would produce NaN or Infinity"), NULL},
    {"INCRBYFLOAT k 1", ERR("increment would produce NaN or Infinity"), NULL},
    {"SET k 1.1e4932", OK, NULL},
    {"INCRBYFLOAT k 1.1e4932", ERR("increment would produce NaN or Infinity"), NULL},
    {"SET k '1 '", OK, NULL},
    {"INCRBYFLOAT k 1", NOT_FLOAT, NULL},
    {"SET k ' 1'", OK, NULL},
    {"INCRBYFLOAT k 1", NOT_FLOAT, NULL},
    {"SET k -1", OK, NULL},
    {"INCRBYFLOAT k 1", BULK(1, "0"), NULL},
    {"SET k 17179869184", OK, NULL},
    {"INCRBYFLOAT k 1.5", BULK(13, "17179869185.5"), NULL},
    {"@fill big 100000 1", OK, NULL},
    {"INCRBYFLOAT big 1", NOT_FLOAT, NULL},
    {"@list l", OK, NULL},
    {"INCRBYFLOAT l x", WRONG, NULL},
    {NULL, NULL, NULL},
};

#define ARITY(name) ERR("wrong number of arguments for '" name "' command")

static const struct step several_keys[] = {
    {"MSET a 1 b 2", OK, NULL},
    {"MGET a b c", "*3\r\n" BULK(1, "1") BULK(1, "2") NIL, NULL},
    {"@list l", OK, NULL},
    {"MGET l a l", "*3\r\n" NIL BULK(1, "1") NIL, NULL},
    {"MGET a", "*1\r\n" BULK(1, "1"), NULL},
    {"MSET a 1 a 2 a 3", OK, NULL},
    {"GET a", BULK(1, "3"), NULL},
    {"MSET a 1 b", ARITY("mset"), NULL},
    {"MSETNX a 1 b", ARITY("msetnx"), NULL},
    {"SET a 3 EX 10", OK, NULL},
    {"MSET l x a y", OK, NULL},
    {"@ttl a", INT(-1), NULL},
    {"GET l", BULK(1, "x"), NULL},
    {"MSETNX n 1 a 2", INT(0), NULL},
    {"GET n", NIL, NULL},
    {"@list l", OK, NULL},
    {"MSETNX n 1 l 2", INT(0), NULL},
    {"MSETNX n 1 m 2", INT(1), NULL},
    {"MGET n m", "*2\r\n" BULK(1, "1") BULK(1, "2"), NULL},
    {"MSETNX x 1 x 2", INT(1), NULL},
    {"GET x", BULK(1, "2"), NULL},
    {"MSETNX x 3 x 4", INT(0), NULL},
    {NULL, NULL, NULL},
};

#define RANGE(a, b, c, d) "*2\r\n" INT(a) INT(b) "*2\r\n" INT(c) INT(d)

static const struct step lcs[] = {
    {"MSET a ohmytext b mynewtext e ''", OK, NULL},
    {"LCS a b", BULK(6, "mytext"), NULL},
    {"LCS a b LEN", INT(6), NULL},
    {"LCS b a len", INT(6), NULL},
    {"LCS b a", BULK(6, "mytext"), NULL},
    {"LCS a b IDX",
     "*4\r\n" BULK(7, "matches") "*2\r\n*2\r\n" RANGE(4, 7, 5, 8) "*2\r\n" RANGE(2, 3, 0, 1)
         BULK(3, "len") INT(6),
     "%2\r\n" BULK(7, "matches") "*2\r\n*2\r\n" RANGE(4, 7, 5, 8) "*2\r\n" RANGE(2, 3, 0, 1)
         BULK(3, "len") INT(6)},
    {"LCS a b IDX MINMATCHLEN 4",
     "*4\r\n" BULK(7, "matches") "*1\r\n*2\r\n" RANGE(4, 7, 5, 8) BULK(3, "len") INT(6),
     "%2\r\n" BULK(7, "matches") "*1\r\n*2\r\n" RANGE(4, 7, 5, 8) BULK(3, "len") INT(6)},
    {"LCS a b IDX MINMATCHLEN 5", "*4\r\n" BULK(7, "matches") "*0\r\n" BULK(3, "len") INT(6),
     "%2\r\n" BULK(7, "matches") "*0\r\n" BULK(3, "len") INT(6)},
    {"LCS a b WITHMATCHLEN IDX MINMATCHLEN -3",
     "*4\r\n" BULK(7, "matches") "*2\r\n*3\r\n" RANGE(4, 7, 5, 8) INT(4) "*3\r\n" RANGE(2, 3, 0, 1)
         INT(2) BULK(3, "len") INT(6),
     "%2\r\n" BULK(7, "matches") "*2\r\n*3\r\n" RANGE(4, 7, 5, 8) INT(4) "*3\r\n" RANGE(2, 3, 0, 1)
         INT(2) BULK(3, "len") INT(6)},
    {"LCS a a IDX",
     "*4\r\n" BULK(7, "matches") "*1\r\n*2\r\n" RANGE(0, 7, 0, 7) BULK(3, "len") INT(8),
     "%2\r\n" BULK(7, "matches") "*1\r\n*2\r\n" RANGE(0, 7, 0, 7) BULK(3, "len") INT(8)},
    {"LCS a none", EMPTY, NULL},
    {"LCS none a LEN", INT(0), NULL},
    {"LCS e a", EMPTY, NULL},
    {"LCS none none IDX", "*4\r\n" BULK(7, "matches") "*0\r\n" BULK(3, "len") INT(0),
     "%2\r\n" BULK(7, "matches") "*0\r\n" BULK(3, "len") INT(0)},
    {"LCS a b IDX LEN", ERR("If you want both the length and indexes, please just use IDX."), NULL},
    {"LCS a b MINMATCHLEN", SYNTAX, NULL},
    {"LCS a b MINMATCHLEN x", NOT_INT, NULL},
    {"LCS a b what", SYNTAX, NULL},
    {"LCS a b WITHMATCHLEN MINMATCHLEN 100", BULK(6, "mytext"), NULL},
    {"@list l", OK, NULL},
    {"LCS a l", ERR("The specified keys must contain string values"), NULL},
    {"LCS l none what", ERR("The specified keys must contain string values"), NULL},
    {"MSET a abcbdab b bdcaba", OK, NULL},
    {"LCS a b", BULK(4, "bdab"), NULL},
    {"LCS b a", BULK(4, "bcba"), NULL},
    {"@fill big 20000 a", OK, NULL},
    {"@fill bigger 30000 a", OK, NULL},
    {"LCS big bigger",
     ERR("Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"), NULL},
    {"LCS big bigger LEN",
     ERR("Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"), NULL},
    {"SET a bab", OK, NULL},
    {"LCS a big LEN", INT(1), NULL},
    {"LCS big a", BULK(1, "a"), NULL},
    {NULL, NULL, NULL},
};

/* What INFO counts as keyspace_hits and keyspace_misses, over all reruns once. */
static const struct step lookups[] = {
    {"GET k", NIL, NULL},
    {"@lookups", "*2\r\n" INT(0) INT(1), NULL},
    {"SET k v", OK, NULL},
    {"@lookups", "*2\r\n" INT(0) INT(0), NULL},
    {"GET k", BULK(1, "v"), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {"SET k v GET", BULK(1, "v"), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {"SET k v NX", NIL, NULL},
    {"@lookups", "*2\r\n" INT(0) INT(0), NULL},
    {"GETEX k EX 10", BULK(1, "v"), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {"GETSET k w", BULK(1, "v"), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {"MGET k none k", "*3\r\n" BULK(1, "w") NIL BULK(1, "w"), NULL},
    {"@lookups", "*2\r\n" INT(2) INT(1), NULL},
    {"STRLEN k", INT(1), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {"LCS k none LEN", INT(0), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(1), NULL},
    {"GETDEL k", BULK(1, "w"), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {"GETDEL k", NIL, NULL},
    {"@lookups", "*2\r\n" INT(0) INT(1), NULL},
    {"INCR n", INT(1), NULL},
    {"@lookups", "*2\r\n" INT(0) INT(0), NULL},
    {"BITOP NOT d n", INT(1), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {"BITFIELD n GET u8 0", "*1\r\n" INT(49), NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {"BITFIELD n SET u8 0 48", "*1\r\n" INT(49), NULL},
    {"@lookups", "*2\r\n" INT(0) INT(0), NULL},
    {"BITCOUNT none", INT(0), NULL},
    {"@lookups", "*2\r\n" INT(0) INT(1), NULL},
    {"@list l", OK, NULL},
    {"@lookups", "*2\r\n" INT(0) INT(0), NULL},
    {"GETEX l", WRONG, NULL},
    {"@lookups", "*2\r\n" INT(1) INT(0), NULL},
    {NULL, NULL, NULL},
};

/* Values that the store keeps in extents: the same rules, by other ways. */
static const struct step large_values[] = {
    {"@fill k 100000 a", OK, NULL},
    {"STRLEN k", INT(100000), NULL},
    {"APPEND k bc", INT(100002), NULL},
    {"GETRANGE k -4 -1", BULK(4, "aabc"), NULL},
    {"SETRANGE k 50000 XYZ", INT(100002), NULL},
    {"GETRANGE k 49999 50003", BULK(5, "aXYZa"), NULL},
    {"SETRANGE k 100005 q", INT(100006), NULL},
    {"GETRANGE k 100001 -1", "$5\r\nc\\0\\0\\0q\r\n", NULL},
    {"SETBIT k 400006 1", INT(0), NULL},
    {"SETBIT k 400006 1", INT(1), NULL},
    {"GETBIT k 400006", INT(1), NULL},
    {"GETRANGE k 50000 50002", BULK(3, "ZYZ"), NULL},
    {"BITFIELD k GET u8 #50001 SET u16 #25000 16706 INCRBY u8 #99999 1 GET u8 0 GET u8 #50001",
     "*5\r\n" INT(89) INT(23129) INT(98) INT(97) INT(66), NULL},
    {"GETRANGE k 50000 50001", BULK(2, "AB"), NULL},
    {"GETRANGE k 99999 100000", BULK(2, "bb"), NULL},
    {"BITFIELD k SET u8 #100010 1 OVERFLOW FAIL INCRBY u2 800200 7", "*2\r\n" INT(0) NIL, NULL},
    {"STRLEN k", INT(100026), NULL},
    {"SETRANGE s 20000 x", INT(20001), NULL},
    {"BITCOUNT s", INT(4), NULL},
    {"SETBIT t 1000000 1", INT(0), NULL},
    {"STRLEN t", INT(125001), NULL},
    {"BITPOS t 1", INT(1000000), NULL},
    {"BITFIELD f SET i3 1000001 -1 GET i3 1000001", "*2\r\n" INT(0) INT(-1), NULL},
    {"BITPOS f 1", INT(1000001), NULL},
    {"BITCOUNT f", INT(3), NULL},
    {NULL, NULL, NULL},
};

static const struct step bulk_limit[] = {
    {"@limit 1048576", OK, NULL},
    {"SETRANGE k 1048575 x", INT(1048576), NULL},
    {"SETRANGE k 1048576 x", TOO_LONG, NULL},
    {"SETRANGE k 1048575 xy", TOO_LONG, NULL},
    {"APPEND k x", TOO_LONG, NULL},
    {"APPEND k ''", INT(1048576), NULL},
    {"SETBIT k 8388607 1", INT(0), NULL},
    {"SETBIT k 8388608 1", BAD_OFFSET, NULL},
    {"GETBIT k 8388607", INT(1), NULL},
    {"GETBIT k 8388608", BAD_OFFSET, NULL},
    {"BITFIELD k GET u8 8388608", BAD_OFFSET, NULL},
    {"BITFIELD k GET u8 8388607", "*1\r\n" INT(128), NULL},
    {"BITFIELD k SET u8 8388600 7", "*1\r\n" INT(121), NULL},
    {"BITFIELD k SET u8 8388601 7", TOO_LONG, NULL},
    {"STRLEN k", INT(1048576), NULL},
    {"@fill a 1000 x", OK, NULL},
    {"LCS a a LEN", ERR("Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"),
     NULL},
    {NULL, NULL, NULL},
};

/* ---- large values in replies, and their effects ---- */

#define LARGE 300000

static void assert_bulk(struct resp_slice reply, char byte, size_t len)
{
    char header[24];
    int header_len = snprintf(header, sizeof(header), "$%zu\r\n", len);
    assert_int_equal(reply.len, (size_t)header_len + len + 2);
    assert_memory_equal(reply.data, header, (size_t)header_len);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(reply.data[(size_t)header_len + i], byte);
    assert_memory_equal(reply.data + (size_t)header_len + len, "\r\n", 2);
}

static void assert_text(struct resp_slice reply, const char *text)
{
    assert_int_equal(reply.len, strlen(text));
    assert_memory_equal(reply.data, text, reply.len);
}

static void large_replies(uint64_t wait_seed)
{
    struct driver *driver = driver_open(2, wait_seed);
    assert_text(driver_run_line(driver, "@fill k 300000 x"), OK);
    assert_bulk(driver_run_line(driver, "GET k"), 'x', LARGE);
    assert_bulk(driver_run_line(driver, "GETRANGE k 0 -1"), 'x', LARGE);
    assert_bulk(driver_run_line(driver, "GETRANGE k 1 -2"), 'x', LARGE - 2);
    assert_bulk(driver_run_line(driver, "GETEX k PX 100"), 'x', LARGE);
    assert_text(driver_run_line(driver, "@ttl k"), INT(100));
    assert_bulk(driver_run_line(driver, "GETEX k PERSIST"), 'x', LARGE);
    assert_text(driver_run_line(driver, "@ttl k"), INT(-1));
    assert_bulk(driver_run_line(driver, "SET k y NX GET"), 'x', LARGE);
    assert_bulk(driver_run_line(driver, "SET k y GET"), 'x', LARGE);
    assert_text(driver_run_line(driver, "GET k"), BULK(1, "y"));
    assert_text(driver_run_line(driver, "@fill k 300000 z"), OK);
    assert_bulk(driver_run_line(driver, "GETSET k y"), 'z', LARGE);
    assert_text(driver_run_line(driver, "GETSET k y"), BULK(1, "y"));
    assert_text(driver_run_line(driver, "@fill k 300000 z"), OK);
    assert_bulk(driver_run_line(driver, "GETDEL k"), 'z', LARGE);
    assert_text(driver_run_line(driver, "GET k"), NIL);
    assert_text(driver_run_line(driver, "@fill k 300000 z"), OK);
    struct resp_slice many = driver_run_line(driver, "MGET k none");
    assert_memory_equal(many.data, "*2\r\n", 4);
    assert_memory_equal(many.data + many.len - 5, NIL, 5);
    assert_bulk((struct resp_slice){many.data + 4, many.len - 9}, 'z', LARGE);
    driver_close(driver);
}

static void test_large_replies(void **state)
{
    (void)state;
    large_replies(DRIVER_NO_WAITS);
    for (uint64_t seed = 1; seed <= 20; seed++)
        large_replies(seed);
}

/* ---- LCS on random strings ---- */

#define LCS_MAX 60

static uint32_t next_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(*state >> 33) % below;
}

static size_t random_text(uint64_t *random, char text[LCS_MAX])
{
    size_t len = next_random(random, LCS_MAX);
    uint32_t letters = 1 + next_random(random, 4);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + next_random(random, letters));
    return len;
}

/* Straight from the definition: the whole table. */
static uint32_t longest_common(const char *a, size_t a_len, const char *b, size_t b_len)
{
    uint32_t table[LCS_MAX + 1][LCS_MAX + 1] = {{0}};
    for (size_t i = 1; i <= a_len; i++)
        for (size_t j = 1; j <= b_len; j++) {
            uint32_t skip = table[i - 1][j] > table[i][j - 1] ? table[i - 1][j] : table[i][j - 1];
            table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : skip;
        }
    return table[a_len][b_len];
}

static bool is_subsequence(const char *part, size_t part_len, const char *of, size_t of_len)
{
    size_t found = 0;
    for (size_t i = 0; i < of_len && found < part_len; i++)
        found += of[i] == part[found];
    return found == part_len;
}

static void test_lcs_of_random_strings(void **state)
{
    (void)state;
    uint64_t random = 1;
    struct driver *driver = driver_open(2, DRIVER_NO_WAITS);
    for (int round = 0; round < 2000; round++) {
        char a[LCS_MAX], b[LCS_MAX], text[24];
        size_t a_len = random_text(&random, a), b_len = random_text(&random, b);
        struct resp_slice set[] = {{"MSET", 4}, {"a", 1}, {a, a_len}, {"b", 1}, {b, b_len}};
        assert_text(driver_run(driver, set, 5), OK);
        uint32_t longest = longest_common(a, a_len, b, b_len);
        snprintf(text, sizeof(text), ":%u\r\n", longest);
        assert_text(driver_run_line(driver, "LCS a b LEN"), text);
        struct resp_slice found = driver_run_line(driver, "LCS a b");
        size_t header = (size_t)snprintf(text, sizeof(text), "$%u\r\n", longest);
        assert_int_equal(found.len, header + longest + 2);
        assert_memory_equal(found.data, text, header);
        assert_true(is_subsequence(found.data + header, longest, a, a_len));
        assert_true(is_subsequence(found.data + header, longest, b, b_len));
    }
    driver_close(driver);
}

/* ---- tests ---- */

static void test_get_set(void **state)
{
    (void)state;
    driver_run_script(get_set);
}

static void test_set_conditions(void **state)
{
    (void)state;
    driver_run_script(set_conditions);
}

static void test_set_expiry(void **state)
{
    (void)state;
    driver_run_script(set_expiry);
}

static void test_get_and_more(void **state)
{
    (void)state;
    driver_run_script(get_and_more);
}

static void test_lengths(void **state)
{
    (void)state;
    driver_run_script(lengths);
}

static void test_get_range(void **state)
{
    (void)state;
    driver_run_script(get_range);
}

static void test_set_range(void **state)
{
    (void)state;
    driver_run_script(set_range);
}

static void test_integers(void **state)
{
    (void)state;
    driver_run_script(integers);
}

static void test_floats(void **state)
{
    (void)state;
    driver_run_script(floats);
}

static void test_several_keys(void **state)
{
    (void)state;
    driver_run_script(several_keys);
}

static void test_lcs(void **state)
{
    (void)state;
    driver_run_script(lcs);
}

static void test_large_values(void **state)
{
    (void)state;
    driver_run_script(large_values);
}

static void test_bulk_limit(void **state)
{
    (void)state;
    driver_run_script(bulk_limit);
}

static void test_lookups(void **state)
{
    (void)state;
    driver_run_script(lookups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get_set),
        cmocka_unit_test(test_set_conditions),
        cmocka_unit_test(test_set_expiry),
        cmocka_unit_test(test_get_and_more),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_get_range),
        cmocka_unit_test(test_set_range),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_several_keys),
        cmocka_unit_test(test_lcs),
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_large_values),
        cmocka_unit_test(test_large_replies),
        cmocka_unit_test(test_lcs_of_random_strings),
        cmocka_unit_test(test_bulk_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
