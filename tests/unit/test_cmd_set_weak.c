/* The tests of sets again, with a hash of so few values that many members share theirs. */
#include "test_cmd_set.c"

#include "weak_hash.h"
