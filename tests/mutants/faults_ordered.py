"""Trees of keys, and walks over them."""

from fault import Faults, CUTS, FAULTS, ORDERED, POWERCUT, RANDOM

ALL = Faults()
fault = ALL.add

fault("names-not-kept", "storage/exec/commit.c",
      "keys come and go without their names",
      ("bool lacks_roots = txn->store->is_ordered;", "bool lacks_roots = false;"),
      by=[ORDERED], quick=True)
fault("names-of-an-attempt-kept", "storage/exec/commit.c",
      "what an attempt has changed in the trees of keys stays when it has to wait",
      ("key_trees_undo(txn, &mark->trees);", ""),
      by=[ORDERED, RANDOM])
fault("slots-of-roots-lost", "storage/exec/commit.c",
      "the slot of a new root is not given back when its commit has to wait",
      ("for (uint32_t i = mark->trees.write_count; i < txn->write_count; i++) give_back_slot(txn, &txn->writes[i]);",
       ""),
      by=[ORDERED])
fault("empty-root-kept", "storage/tree/key_tree.c",
      "the root of a tree of keys stays without entries",
      ("bool stays = changed->tree->root->count > 0;", "bool stays = true;"),
      by=[ORDERED])
fault("root-counted-at-a-start", "storage/recovery/recover.c",
      "the scan counts roots of trees of keys among the keys",
      ("if (item->flags & FORMAT_KEY_TREE) return STORE_OK; databases_count_key", "databases_count_key"),
      by=[ORDERED, RANDOM])
fault("root-counted", "storage/exec/commit.c",
      "a root of a tree of keys is counted as a key when it is written",
      ("{ if (write->is_key_tree) return; databases_count_key", "{ databases_count_key"),
      by=[ORDERED])
fault("roots-not-expected", "storage/recovery/index_load.c",
      "the index checkpoint is taken for wrong where there are trees of keys",
      ("keys += count->keys + (is_ordered && db < STORE_DB_COUNT && count->keys > 0);",
       "keys += count->keys;"),
      by=[ORDERED])
fault("root-found-as-a-key", "storage/value/long_key.c",
      "a look-up may find the root of a tree of keys",
      ("if (item->flags & FORMAT_KEY_TREE) return false;",
       "if (item->flags & FORMAT_KEY_TREE) return key->len == item->key_len && "
       "memcmp(format_key(item), key->data, key->len) == 0;"),
      by=[ORDERED])
fault("root-scanned", "storage/exec/scan.c",
      "SCAN shows the roots of trees of keys",
      ("item->database != database || item->flags & FORMAT_KEY_TREE ||", "item->database != database ||"),
      by=[ORDERED])
fault("root-in-a-snapshot", "storage/exec/snapshot.c",
      "so do snapshots",
      ("item->version > snapshot->seen || item->flags & FORMAT_KEY_TREE)", "item->version > snapshot->seen)"),
      by=[ORDERED])
fault("lost-key-twice", "storage/tree/key_tree.c",
      "a key that was lost to damage has two names when it is set again",
      ("(!adds || atomic_load(&txn->store->damaged) > 0)", "!adds"),
      by=[ORDERED])
fault("root-of-a-lost-key-taken", "storage/exec/flush.c",
      "a flush frees the slot of a root that is the only thing left of its database",
      ("if (store->is_ordered && atomic_load(&store->damaged) > 0)", "if (false)"),
      by=[ORDERED])
fault("order-on-demand", "storage/recovery/open.c",
      "a directory without ordered keys is opened as one with them, and the reverse",
      ("if (wanted == STORE_ORDERED_AS_FOUND || store->is_ordered == (wanted == STORE_ORDERED_YES))",
       "if (true)"),
      by=[ORDERED])
fault("order-unmarked", "storage/journal/superblock.c",
      "an earlier server opens a directory with ordered keys",
      ("super->version = FORMAT_STAMP | (super->version & FORMAT_ORDERED);", "super->version = FORMAT_STAMP;"),
      by=[ORDERED])
fault("names-unchecked", "storage/recovery/check_trees.c",
      "the check does not compare names with keys",
      ("if (check->names) compare_names(check);", ""),
      by=[ORDERED])
fault("walk-shows-expired-keys", "storage/exec/ordered_range.c",
      "a walk in order shows keys that have expired",
      ("*item = expiry == STORE_NO_EXPIRY || expiry >= txn->request->now_ms ? found : NULL;", "*item = found;"),
      by=["test_ordered_keys.py::test_expired_keys_are_skipped"])
fault("walk-repeats", "storage/exec/ordered_range.c",
      "a batch begins with the last key of the one before",
      ("return seek_after(txn, tree, lane->position, lane->position_len, cursor);",
       "return store_tree_find(tree, lane->position, lane->position_len, cursor);"),
      by=[ORDERED])
fault("walk-after-a-flush", "storage/exec/ordered_range.c",
      "a walk goes on in a database that was flushed",
      ("return !databases_is_dead(range->store, range->database); }", "return true; }"),
      by=[ORDERED])
fault("walk-of-another-database", "storage/exec/ordered_range.c",
      "a walk goes on in the other database after a swap",
      ("if (!range->database) range->database =", "range->database ="),
      by=[ORDERED])
fault("walk-in-parts-of-a-batch", "storage/exec/ordered_range.c",
      "what a step has read before it had to wait is read again",
      ("if (result != STORE_OK) lane->used = 0;", ""),
      ("if (result == STORE_OK && (item || is_known))", "if (found == STORE_OK && (item || is_known))"),
      by=[FAULTS, RANDOM, POWERCUT, CUTS])
