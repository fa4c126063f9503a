/* The tests of hashes again, with a hash of so few values that many members share theirs. */
#include "tests/unit/server/commands/test_cmd_hash.c"

#include "tests/unit/server/commands/weak_hash.h"
