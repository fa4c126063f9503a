/* The tests of fields that expire again, with a hash of so few values that many fields share
 * theirs. */
#include "tests/unit/server/commands/test_cmd_hash_expiry.c"

#include "tests/unit/server/commands/weak_hash.h"
