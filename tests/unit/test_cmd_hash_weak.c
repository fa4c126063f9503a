/* The tests of hashes again, with a hash of so few values that many members share theirs. */
#include "test_cmd_hash.c"

#include "weak_hash.h"
