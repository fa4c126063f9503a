/* The tests of sets again, with a hash of so few values that many members share theirs. */
#include "tests/unit/server/commands/test_cmd_set.c"

#include "tests/unit/server/commands/weak_hash.h"
