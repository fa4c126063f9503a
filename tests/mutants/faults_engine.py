"""Transactions, trees, order, the cache, eviction, the disk."""

from fault import (Faults, BORROWED, CLOCK, CONCURRENT, CUTS, DISK, EVICT, FAULTS, LARGE, LONG_KEYS, LONG_RECORD,
                   POWERCUT, RANDOM, STALLS, TINY_RANDOM, TREES, UPLOAD)

ALL = Faults()
fault = ALL.add

# ---- commits ----

fault("page-bytes-committed", "storage/value/write_set.c",
      "a small value that was read from a page is taken from there when the commit comes",
      ("write_set_outlives_pages(txn, &bytes, len) ? write_set_add(txn, key, WRITE_PUT) : NULL;",
       "write_set_add(txn, key, WRITE_PUT);"),
      by=[BORROWED, "wait/test_borrowed"], quick=True)
fault("page-bytes-staged", "storage/value/large_value.c",
      "so is what is laid over a large value",
      ("!write_set_outlives_pages(txn, &bytes, len) ||", ""),
      by=[BORROWED])
fault("page-bytes-as-name", "storage/value/write_set.c",
      "so is a key's name",
      ("return write_set_outlives_pages(txn, &write->key.data, key->len) ? write : NULL;", "return write;"),
      by=[BORROWED])
fault("older-bytes-on-top", "storage/value/patches.c",
      "what is laid over a part of a large value leaves older bytes behind it",
      ("|| !divide(txn, patches, offset + len))", ")"),
      by=["test_patches"])
fault("node-kept-over-a-pause", "storage/tree/tree_edit.c",
      "a run looks for a node where it was before its pause",
      ("tree->seen[level].leavings == tree->txn->leavings &&", ""),
      by=[BORROWED])
fault("due-keys-passed-over", "storage/index/ttl.c",
      "the walk over keys that have expired passes those that cannot be taken now",
      ("ttl->walk_key = key << KEY_SHIFT; return false; } } } return true;",
       "} } } return true;"),
      by=["test_ttl"])
fault("rekeyed-out-of-reach", "storage/tree/tree_change.c",
      "an entry at the edge of its leaf gets a key for which searches go to the other leaf",
      ("if (result == STORE_OK && !leads)", "if (false)"),
      by=["tiny/test_tree"])
fault("leaf-kept-over-its-neighbours", "storage/tree/tree_change.c",
      "a leaf is changed by a pointer from before other nodes were read",
      ("if (*stays && !is_large)", "if (false)"),
      by=["wait/test_tree"])
fault("long-records-without-pressure", "storage/value/long_record.c",
      "long commits go on, however much the ones before would have redo read",
      ("!any_unwritten && !long_record_checkpoint_due(store) &&", "!any_unwritten &&"),
      by=[LONG_RECORD])
fault("segment-takes-a-page", "storage/value/slot_alloc.c",
      "a run that needs a segment takes the frame of a page that it has read",
      ("page_file_add_frame_beside(file, page)", "page_file_add_frame(file, page, true)"),
      by=[BORROWED])
fault("erase-not-journaled", "storage/exec/commit.c",
      "the old slot of an item that moves is not erased in the journal",
      ("bool erases = write->kind == WRITE_DELETE || moves(write);",
       "bool erases = write->kind == WRITE_DELETE;"),
      ("if (write->kind == WRITE_DELETE || moves(write)) at =",
       "if (write->kind == WRITE_DELETE) at ="),
      by=[CUTS, POWERCUT])
fault("erase-not-applied", "storage/exec/commit.c",
      "an erased item stays on its page",
      ("memset(old, 0, sizeof *old);", ""),
      by=[CUTS, POWERCUT, RANDOM])
fault("erase-not-dirty", "storage/exec/commit.c",
      "a page from which an item was erased is not written",
      ("page_file_mark_dirty(&partition->file, write->old_frame, commit);", ""),
      by=[CUTS, POWERCUT, RANDOM])
fault("put-not-dirty", "storage/exec/commit.c",
      "a page that got an item is not written",
      ("page_file_mark_dirty(file, frame, commit); count_new", "count_new"),
      by=[RANDOM, CUTS, POWERCUT], quick=True)
fault("slots-never-free", "storage/exec/commit.c",
      "the slot of a deleted item is not used again",
      ("page_file_give_slot(&partition->file, write->old_page, write->old_slot);", ""),
      by=[RANDOM])
fault("transaction-in-pieces", "storage/exec/commit.c",
      "every key of a transaction has a record of its own",
      ("static enum store_result journal_and_apply(struct store_txn *txn) {",
       """static enum store_result journal_and_apply(struct store_txn *txn)
          {
              struct write *all = txn->writes;
              uint32_t count = txn->write_count;
              if (count > 1 && !changes_databases(txn)) {
                  enum store_result piece = STORE_OK;
                  for (uint32_t i = 0; i < count && piece == STORE_OK; i++) {
                      txn->writes = all + i;
                      txn->write_count = 1;
                      piece = journal_and_apply(txn);
                      journal_kick(&txn->store->journal, txn->worker->queue, 0);
                  }
                  txn->writes = all;
                  txn->write_count = count;
                  return piece;
              }"""),
      by=[CUTS, POWERCUT])
fault("expiry-entry-kept", "storage/exec/commit.c",
      "what was noted about the expiry of an old item is not taken back",
      ("if (expiry != STORE_NO_EXPIRY) "
       "ttl_remove(&partition->ttl, write->key.slot, write->tag, expiry);", ""),
      by=[RANDOM])
fault("absence-shows-nothing", "storage/value/lookup.c",
      "an absence does not wait for the durability of the delete that made it",
      ("show(txn, engine_partition(txn->store, key->slot)->last_removal);", ""),
      by=[RANDOM])
fault("value-shows-nothing", "storage/value/lookup.c",
      "a value does not wait for the durability of the commit that made it",
      ("show(txn, found.item->version); show(", "show("),
      by=[RANDOM])
fault("swap-shows-nothing", "storage/value/lookup.c",
      "what a swap of databases has brought does not wait for its durability",
      ("show(txn, txn->store->databases_commit);", ""),
      by=[RANDOM])
fault("expiry-ignored", "storage/value/lookup.c",
      "an expired item is served",
      ("if (expired(txn, expiry)) { expire_note(", "if (false) { expire_note("),
      by=[RANDOM], quick=True)
fault("own-writes-unseen", "storage/value/lookup.c",
      "a transaction does not see what it has written",
      ("if (txn->write_count) { const struct write *write = txn_find_write(txn, key);",
       "if (false) { const struct write *write = txn_find_write(txn, key);"),
      by=[RANDOM])
fault("key-unverified", "storage/value/long_key.h",
      "an item with the same tag and key length is taken for the key's",
      ("item->key_len == key->len && memcmp(format_key(item), key->data, key->len) == 0",
       "item->key_len == key->len"),
      by=[RANDOM])

# ---- long keys ----

fault("long-key-runs-forgotten", "storage/recovery/recover.c",
      "a start takes the bytes of long keys for free space",
      ("if (item->flags & FORMAT_LONG_KEY && !keep_root(", "if (false && !keep_root("),
      by=[LONG_KEYS])
fault("long-key-space-lost", "storage/exec/commit.c",
      "the bytes of a long key stay when it is deleted",
      ("if (write->old_key)", "if (false)"),
      by=[LONG_KEYS])
fault("long-key-rewritten-over", "storage/exec/commit.c",
      "an overwrite gives up the bytes that the key goes on to use",
      ("&& !(write->long_key && write->long_key->bytes.base);", ";"),
      by=[LONG_KEYS])
fault("long-key-read-unprotected", "storage/value/extent.c",
      "the bytes of a key are used anew while a scan reads them",
      ("if (is_key) run_reader_begin(", "if (false) run_reader_begin("),
      ("if (whole->is_key) run_reader_end(", "if (false) run_reader_end("),
      by=[LONG_KEYS], quick=True)
fault("long-key-told-for-ever", "storage/exec/removal.c",
      "a key that has expired and cannot be read is read again ten times a second",
      ("is_unreadable(worker, name) ? NULL :", "is_unreadable(worker, name) && false ? NULL :"),
      by=[LONG_KEYS])

fault("snapshot-ends-under-its-read", "storage/exec/snapshot.c",
      "the runs of a deleted long key are free while a snapshot that has ended still reads them",
      ("    LIST_REMOVE(snapshot, of_open);\n", ""),
      ("    change_remove_observer(store, before_change, snapshot);\n",
       "    change_remove_observer(store, before_change, snapshot);\n    LIST_REMOVE(snapshot, of_open);\n"
       "    maintenance_ask(store);\n"),
      by=[LONG_KEYS])

# ---- large collections ----

fault("patches-before-the-image", "storage/recovery/redo.c",
      "of a page, only the last change is redone",
      ("if (log->redo[i].operation->kind != FORMAT_PATCH) kept = begin;", "kept = begin;"),
      by=[CUTS])
fault("patch-not-redone", "storage/recovery/recover.c",
      "what changed of a page is not laid over it",
      ("return lay_patch(buffer, redo->operation, slot, page, size);",
       "return true;"),
      by=[CUTS])
fault("nodes-taken-for-free", "storage/recovery/recover_trees.c",
      "the pages of a collection are used again after a start",
      ("bool keeps = is_named(found, nodes[i].collection);", "bool keeps = false;"),
      by=[CUTS, *TREES])

fault("dirty-node-dropped", "storage/maintenance/tree_purge.c",
      "the page of a node that is given up stays as it was before the node",
      ("if (is_here && !arena_frame(file->arena, frame)->dirty)", "if (is_here)"),
      by=TREES)
fault("dropped-tree-outlives-a-flush", "storage/exec/flush.c",
      "pages are freed once more after a flush of everything",
      ("store->generation++;", ""),
      by=["test_bulk_load"])
fault("collection-not-dropped", "storage/exec/commit.c",
      "the pages of a deleted collection are lost until the next start",
      ("if (old && !tree_is_kept(txn, old->collection))", "if (false)"),
      by=TREES)
fault("renamed-collection-dropped", "storage/exec/commit.c",
      "a collection that lives on under another name is taken apart",
      ("if (old && !tree_is_kept(txn, old->collection))", "if (old)"),
      by=TREES)
fault("fresh-nodes-kept", "storage/tree/tree_edit.c",
      "a run that is discarded keeps the pages it had taken",
      ("if (edit->is_fresh && !edit->is_idle)", "if (false)"),
      by=TREES)
fault("further-plans-lost", "storage/tree/tree_edit.c",
      "of several small changes of a node only the first is committed",
      ("edit->patch_length += length;", ""),
      by=TREES)
fault("values-outside-forgotten", "storage/tree/tree_overflow.c",
      "a tree does not say that values of it lie outside",
      ("tree->root->has_overflow = 1;", ""),
      by=TREES)
fault("separators-believed", "storage/format/tree_node.c",
      "equal keys on both sides of a boundary are looked for on one",
      ("child->loose = same == after.key_len;", "child->loose = false;"),
      by=TREES)
fault("heads-believed", "storage/format/tree_node.c",
      "a search in an inner node stops at the separators that begin as the key does",
      ("for (high = low; high < node->count && cell[high].head == head;)", "for (high = low; false;)"),
      by=TREES)
fault("rank-from-the-end", "storage/format/tree_node.c",
      "who looks for a rank from the end of an inner node forgets what is before the child",
      ("while (i > 0 && *rank < begin); *rank -= begin;", "while (i > 0 && *rank < begin);"),
      by=TREES)
fault("words-change-places", "storage/format/format.h",
      "a node's checksum does not say where its words stand",
      ("(number + 1ull) * 0x9e37", "0 * number + 1ull * 0x9e37"),
      by=["test_rot"])
fault("rank-not-learned", "storage/tree/tree_change.c",
      "after a leaf is parted, a cursor that did not know its rank goes on anywhere",
      ("result = tree_rank(cursor); if (result == STORE_OK) result = change_at(cursor, depth, &leaf);",
       "result = change_at(cursor, depth, &leaf);"),
      by=TREES)
fault("no-prefetch-run", "storage/exec/request.c",
      "who waits behind others for a key has its pages read when its turn comes",
      ("else if (queued && request->may_prefetch && txn->hold == HOLDS_KEYS)", "else if (false)"),
      by=TREES)
fault("prefetch-runs-stop-at-once", "storage/exec/prefetch_run.c",
      "who waits has the first page read that it needs, and finds out about the next in its turn",
      ("bool is_waiting = txn->prefetch_run == PREFETCH_RUN_DONE &&", "bool is_waiting = false &&"),
      by=TREES)
fault("wrong-leaf", "storage/tree/tree_change.c",
      "an entry between two leaves is put where the cursor is, whatever their separator says",
      ("if (!at_end && !at_start)", "if (true)"),
      by=TREES)
fault("new-entry-in-the-fuller-half", "storage/format/tree_node.c",
      "a new entry that belongs to the left half of a split leaf comes into the right one",
      ("passed += size; *is_left = true;", "passed += size;"),
      by=[TREES[0], "test_collections.py::test_a_leaf_splits_around_an_entry_of_a_quarter"])
fault("shared-bytes-unchecked", "storage/format/tree_node.c",
      "a key that does not begin as the others do comes into a leaf unnoticed",
      ("if (node->shared == 0) return true;", "if (node->count) return true;"),
      by=TREES)
fault("values-outside-not-judged", "storage/recovery/recover_trees.c",
      "values that no node names any more stay for ever",
      ("if (!is_named(found, overflow[i].collection) && !tree_drop_overflow(store, &overflow[i]))",
       "if (false)"),
      by=TREES)
fault("step-keeps-its-pins", "storage/exec/request.c",
      "a walk in steps holds all pages it has seen",
      ("if (again >= AGAIN_IN_TURN) end_step(txn, again == AGAIN_WHEN_RESUMED);", ""),
      by=TREES)

# ---- order and isolation ----

fault("key-lock-not-taken", "storage/exec/request.c",
      "a transaction that waits does not hold its keys",
      ("txn->request->key_count > 0) return key_locks_request(txn);",
       "txn->request->key_count > 0) return true;"),
      by=[CONCURRENT, RANDOM])
fault("key-locks-ignored", "storage/txn/key_locks.c",
      "a new transaction overtakes those that hold its keys",
      ("if (partition->key_lock_count == 0) return false;", "return false;"),
      by=[CONCURRENT, RANDOM], quick=True)
fault("exclusive-as-shared", "storage/txn/key_locks.c",
      "writers share their keys",
      (".exclusive = key->mode == STORE_EXCLUSIVE", ".exclusive = false"),
      by=[CONCURRENT, RANDOM])
fault("shared-meets-exclusive", "storage/txn/key_locks.c",
      "a reader does not mind a writer that holds the key",
      ("(!first->queue.exclusive_ahead && !key_lock->exclusive)", "!key_lock->exclusive"),
      by=[STALLS])
fault("own-key-lock-in-the-way", "storage/txn/key_locks.c",
      "a transaction that names a key twice waits for itself",
      ("return first->txn == key_lock->txn ||", "return first == key_lock ||"),
      by=[STALLS])
fault("exclusive-requests-in-a-row", "storage/exec/request.c",
      "a request with keys waits for all requests on the whole store that are queued before it",
      ("if (txn->request->scope == STORE_SCOPE_ALL) { STAILQ_INSERT_TAIL(",
       "if (!STAILQ_EMPTY(&store->store_lock) || txn->request->scope == STORE_SCOPE_ALL) { STAILQ_INSERT_TAIL("),
      by=["test_store_lock"])
fault("pause-without-key-locks", "storage/exec/request.c",
      "a run that pauses lets others at its keys",
      ("if (!hold_place(txn)) return false;", ""),
      by=[CONCURRENT])
fault("barrier-passed", "storage/exec/request.c",
      "transactions overtake one that waits to be alone",
      ("if (behind || busy)", "if (busy)"),
      by=[CONCURRENT, RANDOM])
fault("alone-among-others", "storage/exec/request.c",
      "a transaction that must be alone does not wait for those under way",
      ("bool busy = alone && atomic_load_explicit(&store->active, memory_order_relaxed) > 0;",
       "bool busy = false;"),
      by=[CONCURRENT, RANDOM])
fault("ready-while-it-runs", "storage/exec/request.c",
      "a transaction becomes ready without ever having been parked",
      ("if (txn_state(txn) == TXN_RUNNING) txn_move(txn, TXN_PARKED);", ""),
      by=[CONCURRENT, RANDOM, STALLS])
fault("rerun-keeps-its-writes", "storage/exec/request.c",
      "what a run that has to wait has written is kept for the next run",
      ("txn_discard(txn); txn->again = AGAIN_WHEN_LOADED;", "txn->again = AGAIN_WHEN_LOADED;"),
      by=[STALLS])

# ---- eviction ----

fault("useless-ones-asked-for-ever", "storage/maintenance/evict.c",
      "values whose runs would be of no use are chosen again and again",
      ("return flags & INDEX_LARGE && may_give_run(choice, entry);",
       "return flags & INDEX_LARGE && (may_give_run(choice, entry) || true);"),
      by=[EVICT])
fault("barren-since-long", "storage/txn/room_wanted.c",
      "a write is refused because an earlier search found nothing to evict",
      ("[room_number(size_class)] > since_ms)", "[room_number(size_class)] > 0)"),
      by=[EVICT])
fault("one-hand-for-all", "storage/maintenance/evict.c",
      "searches for several classes see a part of the entries each",
      ("eviction_hands[choice->size_class]", "eviction_hands[0]"),
      by=[EVICT])
fault("runs-never-barren", "storage/maintenance/evict.c",
      "a large value that no eviction makes room for is refused only when patience ends",
      ("if (*fruitless <= 2 * visit->entries + BATCH)",
       "if (eviction == NULL || size_class > FORMAT_RUN_CLASS || *fruitless <= 2 * visit->entries + BATCH)"),
      by=[EVICT])
fault("search-of-an-earlier-wait", "storage/maintenance/evict.c",
      "a write is refused by the end of a search that has begun before it",
      ("eviction->barren_ms[number] = eviction->search_ms[number];",
       "eviction->barren_ms[number] = env_clock_ms();"),
      by=[EVICT])
fault("memory-by-one-partition", "storage/maintenance/evict.c",
      "writes are refused because one partition has no key to evict",
      ("if (size_class == ANY_CLASS && (barren || visit.seen)) atomic_store(&store->eviction_exhausted, barren);",
       "if (size_class == ANY_CLASS) atomic_store(&store->eviction_exhausted, true);"),
      by=[EVICT])
fault("unwanted-commit", "storage/exec/request.c",
      "a commit that has waited goes on though its client was killed meanwhile",
      ("if (txn->phase == TXN_COMMIT && !is_wanted(txn))", "if (txn->phase == TXN_COMMIT && !is_wanted(txn) && false)"),
      by=[LARGE])

# ---- the cache ----

fault("dirty-page-evicted", "storage/cache/page_file.c",
      "a page is dropped before it is written",
      ("queue_remove(file, number); frame->dirty = true;", "frame->dirty = true;"),
      ("frame->visited = false; queue_add(file, number);", "frame->visited = false;"),
      by=[RANDOM, CONCURRENT])
fault("files-grow-late", "storage/value/slot_alloc.c",
      "a file is made longer when it is all but full",
      ("uint32_t least = file->segment_count / 16;", "uint32_t least = 0;"),
      by=[STALLS])
fault("maintenance-frees-every-frame", "storage/cache/arena.c",
      "with too much in memory a reader waits for the maintenance thread, though there are clean pages",
      ("if (need == ARENA_INSTEAD) return true;", ""),
      by=[STALLS])
fault("held-back-for-all", "storage/txn/load.c",
      "a GET waits behind the writers that want the same page",
      ("hurry(txn->worker, file, frame->page);", "{ }"),
      by=[STALLS])
fault("no-copy-on-write", "storage/cache/page_file.c",
      "a frame is changed while it is being written",
      ("if (!old->writing) return true;", "return true;"),
      by=[STALLS])
fault("copy-is-clean", "storage/cache/page_file.c",
      "the copy of a frame that is being written can go before the write has arrived",
      ("page_file_mark_dirty(file, copy, frame->commit);", ""),
      by=["test_page_file"])
fault("page-unverified", "storage/txn/load.c",
      "a damaged item is served from a page that was read",
      ("if (empty || (verify_slot(file, page, slot, item) != SLOT_DAMAGED && "
       "item->version <= atomic_load(&file->engine->journal.appended)))", "if (true)"),
      by=[FAULTS])
fault("read-error-ignored", "storage/txn/load.c",
      "what a failed read left in a frame is served",
      ("arrived(load, i, op->error != 0);", "arrived(load, i, false);"),
      by=[FAULTS])

# ---- the clock ----

fault("clock-stands-still", "storage/base/env.c",
      "nothing expires while the machine's clock is behind",
      ("(here - moved) / 8 * 7;", "0 * (here - moved);"),
      by=[CLOCK])
fault("clock-followed-back", "storage/base/env.c",
      "the store's clock is set back with the machine's",
      ("return go_on_slowly(env);", "return (void)go_on_slowly, now;"),
      by=[CLOCK])
fault("clock-lost-by-a-stop", "storage/maintenance/writeback.c",
      "the time of a stop is not kept",
      ("super->clock_ms = (uint64_t)env_now_ms(&store->env);", ""),
      by=[CLOCK])
fault("clock-lost-by-a-start", "storage/recovery/recover.c",
      "the time of a start is not kept",
      ("super->clock_ms = (uint64_t)env_now_ms(&store->env);", ""),
      by=[CLOCK])
fault("clock-not-read", "storage/journal/superblock.c",
      "the time that a superblock has kept is not gone on from",
      ("env_set_clock(block->env, (int64_t)best.clock_ms);", ""),
      by=[CLOCK])
fault("scans-all-or-none", "storage/recovery/recover.c",
      "a start that gets fewer queues than it has scans gives up",
      ("if (count == 0) return result;", "if (result != STORE_OK) return result;"),
      by=[DISK])
fault("direct-by-room", "storage/base/disk_file.c",
      "a start on a full disk takes the file system for one without O_DIRECT",
      ("return error == ENOSPC || error == EDQUOT; } /* Whether", "return error < 0; } /* Whether"),
      by=[DISK])
fault("everysec-late", "storage/maintenance/writeback.c",
      "a second is three",
      (": SYNC_AGE_MS;", ": SYNC_AGE_MS + 2000;"),
      by=[CLOCK])

# ---- the disk ----

fault("durability-not-asked-for", "storage/base/disk_file.c",
      "a durable write is like any other to the kernel",
      ("op->iocb.aio_rw_flags = RWF_DSYNC;", ";"),
      by=[DISK], quick=True)
fault("flush-is-nothing", "storage/base/disk_file.c",
      "a flush does not reach the kernel",
      ("io_prep_fdsync(&op->iocb, op->file->fd);",
       "io_prep_preadv(&op->iocb, op->file->fd, op->vectors, 0, 0);"),
      by=[DISK])
fault("growth-not-synced", "storage/base/disk_file.c",
      "the new length of a file may be lost",
      ("if (!error && fsync(file->fd) != 0)", "if (false)"),
      by=[DISK])
fault("directory-not-synced", "storage/base/disk_file.c",
      "a new file's name may be lost",
      ("return fsync(((struct file_disk *)disk)->directory_fd) == 0 ? 0 : errno;",
       "(void)disk; return 0;"),
      by=[DISK])

fault("short-transfer-is-whole", "storage/base/disk_file.c",
      "what the kernel transferred of an operation passes for all of it",
      ("else if (op->kind == DISK_FLUSH || (uint64_t)result == op->remaining)",
       "else if (op->kind == DISK_FLUSH || result > 0)"),
      by=[DISK])
fault("rest-in-the-wrong-place", "storage/base/disk_file.c",
      "the rest of a short transfer goes where its beginning went",
      ("op->offset += transferred;", ""),
      by=[DISK])
fault("interruption-is-an-error", "storage/base/disk_file.c",
      "an operation that was interrupted fails",
      ("if (result == -EINTR || result == -EAGAIN)", "if (result == -EAGAIN)"),
      by=[DISK])

# ---- large values, databases, scans ----

fault("extents-not-durable", "storage/value/run_write.c",
      "a large value is named by a commit before it is durable",
      (".kind = DISK_WRITE, .durable = true,", ".kind = DISK_WRITE, .durable = false,"),
      by=[CUTS, POWERCUT])
fault("upload-put-too-early", "storage/exec/upload.c",
      "a value that was uploaded is named by a commit before all of it is durable",
      ("if (upload->in_flight > 0) { upload->is_awaited = true; return STORE_WAIT; }", ""),
      by=[UPLOAD])
fault("ids-run-out", "storage/txn/databases.c",
      "a flush takes an id that stands for something else",
      ("if (arrangement->flushes > 0 && !has_ids_left(store)) return STORE_FULL;", ""),
      by=[FAULTS])
fault("upload-flushed-away", "storage/value/free.c",
      "a flush of everything frees what uploads are writing to",
      ("store->hooks->set_uploads_apart(store, true);", ""),
      ("store->hooks->set_uploads_apart(store, false);", ""),
      by=[UPLOAD])
fault("upload-begins-in-a-reload", "storage/exec/upload.c",
      "an upload takes a run while everything is recovered",
      ("if (atomic_load(&upload->store->reloading)) {", "if (false) {"),
      by=["test_upload.py::test_uploads_that_begin_in_a_reload"])
fault("upload-leaks", "storage/exec/upload.c",
      "the space of an upload that was given up does not come back",
      ("if (!upload->is_handed_over) {", "if (false) {"),
      by=[UPLOAD])
fault("upload-hogs-the-cache", "storage/exec/upload.c",
      "slow uploads hold as many frames as they please",
      ("cache_is_tight(txn->store) ? RUN_WRITE_APART : RUN_WRITE_MAY_BE_APART;",
       "RUN_WRITE_MAY_BE_APART;"),
      by=[UPLOAD])
fault("spilled-gone-with-its-command", "storage/exec/reader.c",
      "a spilled reply is freed when its command has ended, although it is still read",
      ("upload_hold(upload);", ""), ("upload_release(reader->upload);", ""),
      by=[UPLOAD])
fault("spilled-without-its-last-pieces", "storage/exec/upload.c",
      "a spilled reply ends where there was no more room",
      ("if (upload->failure == STORE_FULL || upload->failure == STORE_NO_MEMORY)", "if (false)"),
      by=[UPLOAD])
fault("command-before-its-value", "server/exec/runner.c",
      "a command runs while its long value is still on its way to the device",
      ("!conn->is_held && upload_is_settled(request->call.upload) && pipeline_may_start(conn, request);",
       "!conn->is_held && pipeline_may_start(conn, request);"),
      by=["test_runner"])
fault("row-of-any-keys", "server/exec/batch.c",
      "a row goes on with a command for another key",
      ("next->key->hash == key->hash && next->key->len == key->len &&", ""),
      ("memcmp(next->key->data, key->data, key->len) == 0", "true"),
      by=["test_pipeline_batching.py::test_a_pipeline_is_its_commands_one_by_one"])
fault("line-of-any-keys", "server/exec/pipeline.c",
      "a command starts beside writes on other keys",
      ("request->line == conn->line &&", ""),
      by=["test_runner"])
fault("long-values-without-bound", "server/exec/runner.c",
      "a client may have any number of long values on their way to the device",
      ("conn->unsettled_uploads < RUNNER_UPLOADS_MAX * UPLOAD_WEIGHT &&", ""),
      by=["test_runner"])
fault("extent-unchecked", "storage/value/extent.c",
      "a damaged large value is served",
      ("if (XXH3_64bits_digest(&state) != extent->checksum)", "if (false)"),
      by=[FAULTS])
fault("data-passes-for-a-node", "storage/value/extent_write.c",
      "a value that gets nodes has former extents in their places",
      ("else if (base && base->depth == extent_write->depth && i < base->count)",
       "else if (base && i < base->count)"),
      by=[LARGE])
fault("data-passes-for-the-first-node", "storage/value/extent_write.c",
      "a value that gets nodes keeps its former extents in their places, whatever is written",
      ("else if (base && base->depth == extent_write->depth && i < base->count)",
       "else if (base && i < base->count)"),
      ("bool deepens = extent_write->depth == 1 && large->base && large->base->depth == 0;",
       "bool deepens = false;"),
      by=[TINY_RANDOM])
fault("roots-believed", "storage/txn/verify.c",
      "what an item says of lengths and counts is used as it stands",
      ("return format_item_is_sound(item) && is_of_store(file, item) ? SLOT_ITEM : SLOT_DAMAGED;",
       "return SLOT_ITEM;"),
      by=[LARGE])
fault("length-of-a-node-believed", "storage/value/extent.c",
      "what is missing of a node that is too short passes for holes",
      ("if (node->page && node->length != FORMAT_NODE_BYTES)", "if (false)"),
      by=[LARGE])
fault("freed-runs-believed", "storage/value/free.c",
      "a run is given back that is none, or was given back before",
      ("if (!format_extent_is_sound(run) || !page_file_has_run(file, run) || is_awaited(file, run) ||\n"
       "number_list_has(&file->engine->disputed_runs, run->page)) {", "if (false) {"),
      by=[LARGE])
fault("run-free-before-durable", "storage/value/free.c",
      "the run of an old value is used again while a crash would bring the value back",
      ("if (entry && entry->commit <= durable &&", "(void)durable; if (entry &&"),
      by=[LARGE])
fault("run-free-under-a-stream", "storage/value/free.c",
      "the run of an old value is used again while it is being streamed",
      ("entry->commit <= oldest_reader(store) && entry->commit <= store->hooks->oldest_snapshot(store)",
       "entry->commit <= store->hooks->oldest_snapshot(store)"),
      by=[RANDOM, CUTS, POWERCUT])
fault("renamed-value-freed", "storage/exec/commit.c",
      "the extents of a value that lives on under another name are given up",
      ("if (write->old_root && !lives_on(txn, write->old_root))", "if (write->old_root)"),
      by=[RANDOM])
fault("database-ids-reused", "storage/txn/databases.c",
      "a database is flushed to an id that others have had",
      ("arrangement->databases.next_id++", "arrangement->databases.next_id"),
      by=[RANDOM, CUTS, POWERCUT])
fault("scan-skips-a-tag", "storage/index/index.c",
      "a step of a scan that ends before a group of equal tags leaves the group out",
      ("at->tag = index_tag(entry); return false; }", "at->tag = index_tag(entry) + 1; return false; }"),
      by=["test_index", RANDOM], quick=True)
fault("array-size-wraps", "storage/base/array.h",
      "the size of an array that is grown may wrap around: less memory than elements",
      ("if (__builtin_mul_overflow(wanted, size, &bytes)) return false;",
       "bytes = wanted * size;"),
      by=["test_array"])
fault("memory-for-every-question", "storage/txn/memory.c",
      "a question for memory is granted, whatever the process has taken",
      ("(uint64_t)taken_now(store) + late_frames(store) + kept + bytes <= budget", "true"),
      by=["test_evict"])
fault("failed-measurement-counts", "storage/txn/memory.c",
      "where the system does not tell the size of the process, it is taken for nothing",
      ("if (taken > 0) {", "if (taken >= 0) {"),
      by=["test_evict"])
fault("no-memory-in-reserve", "storage/txn/memory.c",
      "the last of the memory is given away",
      ("late_frames(store) + kept + bytes", "late_frames(store) + 0 * kept + bytes"),
      by=["test_evict"])
fault("transactions-ask-nobody", "storage/txn/txn_memory.c",
      "a transaction takes as much memory as it wants",
      ("(uint64_t)txn->noted_bytes + bytes <= ALWAYS_BYTES || store_has_memory(txn->store, bytes)",
       "bytes < UINT64_MAX || store_has_memory(txn->store, bytes)"),
      by=["test_evict"])
fault("kept-key-not-counted", "storage/txn/key_locks.c",
      "an exclusive lock that goes ahead in a queue is not counted among those that wait",
      ("first->queue.last = key_lock; first->queue.exclusive_from_it += key_lock->exclusive; }",
       "first->queue.last = key_lock; }"),
      by=["wait/test_lock_handoff"])
