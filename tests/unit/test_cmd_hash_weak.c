/* The tests of hashes again, with a hash of so few values that many members share theirs. */
#include "tests/unit/test_cmd_hash.c"

#include "tests/unit/weak_hash.h"
