"""The faults that tests/mutants/run puts into the sources, one at a time.

An edit is a pair: the text to be found, exactly once and whatever its line breaks, and what stands
there instead. `killers` are tried in turn until one fails.
"""

import dataclasses

POWERCUT, CUTS, FAULTS, STALLS = "test_powercut", "test_cuts", "test_faults", "test_stalls"
ROT, DISK, RANDOM, CONCURRENT = "test_rot", "test_disk", "test_random", "test_concurrent"
INDEX_FILE, SPACE, ANNEX = "test_index_file", "test_space", "test_annex"
CUTS_SPACE = "test_cuts_space"
TREES = ["test_tree", "test_tree_space", "test_tree_reads"]
WAIT_RANDOM, UPLOAD, LONG_KEYS = "wait/test_random", "test_upload", "test_long_keys"
BUILDING, CLOCK, EVICT = "test_building", "test_clock", "test_evict"


@dataclasses.dataclass
class Fault:
    name: str
    file: str
    what: str
    edits: list
    killers: list
    quick: bool = False


ALL = []


def fault(name, file, what, *edits, by, quick=False):
    ALL.append(Fault(name, file, what, list(edits), by, quick))


# ---- the journal ----

fault("journal-not-durable", "storage/journal.c",
      "groups are written without durability",
      (".kind = DISK_WRITE, .durable = true, .file = journal->file",
       ".kind = DISK_WRITE, .durable = false, .file = journal->file"),
      by=[CUTS, POWERCUT], quick=True)
fault("durable-too-early", "storage/journal.c",
      "what is still being gathered counts as durable with the group that arrived",
      ("group->first_commit + group->record_count - 1", "journal->next_commit - 1"),
      by=[CUTS, POWERCUT])
fault("group-overtakes", "storage/journal.c",
      "a group that arrived counts as durable while the one before it is still on its way",
      ("if (!flight->arrived) break;",
       "if (!flight->arrived && journal->flight_count == 1) break;"),
      by=[POWERCUT])
fault("failed-group-acknowledged", "storage/journal.c",
      "a group whose write failed counts as durable",
      ("if (!engine_failed(journal->engine)) atomic_store_explicit(&journal->durable,",
       "atomic_store_explicit(&journal->durable,"),
      by=[FAULTS])
fault("ring-left-at-its-end", "storage/journal.c",
      "a group for which there is no room up to the ring's end is written behind it",
      ("if (padded > journal->size - journal->position) journal->position = 0;", ""),
      by=[POWERCUT])
fault("everysec-overdue", "storage/journal.c",
      "writers go on for as long as a flush takes",
      ("engine_clock_ms() - journal->oldest_ms > JOURNAL_OVERDUE_MS;", "false;"),
      by=[STALLS])
fault("ring-overruns-its-tail", "storage/journal.c",
      "groups are written over those that recovery still needs",
      ("journal->used + ring_cost(journal, group_length) + PAGE_SIZE > journal->size", "false"),
      by=[STALLS])
fault("commit-numbers-reused", "storage/journal.c",
      "the first commit after a start has the last one's number",
      ("journal->next_commit = mark->commit;",
       "journal->next_commit = mark->commit > 1 ? mark->commit - 1 : 1;"),
      by=[CUTS, POWERCUT], quick=True)
fault("group-checksum-unchecked", "storage/redo.c",
      "a torn group is recovered",
      ("return sum == (*group)->checksum &&", "return"),
      by=[CUTS, POWERCUT])
# Of epoch and chain each would do: a start begins its chain with a random number.
fault("history-ignored", "storage/redo.c",
      "groups of a history that was given up are followed",
      ("group->epoch == store->super.epoch && group->sequence == log->sequence &&",
       "group->sequence == log->sequence &&"),
      ("group->previous == log->previous &&", ""),
      by=[FAULTS])
fault("chain-ignored", "storage/redo.c",
      "a group is followed whatever group it was written behind",
      ("group->previous == log->previous &&", ""),
      by=[FAULTS])
fault("ring-not-followed", "storage/redo.c",
      "recovery ends where the ring does",
      ("if (result != STORE_ABSENT || position == 0) return result;", "return result;"),
      by=[POWERCUT])
fault("damaged-group-unnoticed", "storage/redo.c",
      "what comes behind a damaged group is dropped without a word",
      ("return orderly ? STORE_OK : look_behind(store, log, message);", "return STORE_OK;"),
      by=[ROT])
fault("later-epoch-unnoticed", "storage/redo.c",
      "what was written after the start that a damaged superblock told of is dropped",
      ("(group->epoch > store->super.epoch ||", "(false ||"),
      by=[ROT])
fault("foreign-group-believed", "storage/redo.c",
      "bytes that somebody made pass for a group",
      ("group->magic == FORMAT_GROUP_MAGIC && group->seed == store->super.seed && "
       "(group->epoch > store->super.epoch ||",
       "group->magic == FORMAT_GROUP_MAGIC && (group->epoch > store->super.epoch ||"),
      by=[ROT])
fault("last-group-cut", "storage/redo.c",
      "recovery drops the last group",
      ("enum store_result redo_read(struct store *store, struct redo_log *log, char *message) {",
       """static bool last_group(struct store *store, const struct redo_log *log,
                                 const struct format_group *group)
          {
              struct redo_log next = *log;
              struct format_group *behind;
              next.sequence++;
              next.previous = group->checksum;
              next.commit += group->record_count;
              next.position += journal_padded(group->length);
              return group->record_count && next.position < store->super.journal_bytes &&
                     read_group(store, &next, &behind) != STORE_OK;
          }
          enum store_result redo_read(struct store *store, struct redo_log *log, char *message)
          {"""),
      ("if (result == STORE_ABSENT) break; if (result == STORE_OK)",
       """if (result == STORE_ABSENT || (result == STORE_OK && last_group(store, log, group)))
              break;
          if (result == STORE_OK)"""),
      by=[CUTS, POWERCUT])

# ---- the index checkpoint ----

fault("index-of-another-stop", "storage/index_stream.c",
      "blocks are not bound to the stop that wrote them",
      ("stream->identity = XXH3_64bits_withSeed(head, sizeof *head, store->super.seed);",
       "stream->identity = 1;"),
      by=[INDEX_FILE])
fault("index-block-unchecked", "storage/index_stream.c",
      "a block's checksum is not looked at",
      ("stream->block->checksum == checksum_of(stream);", "true;"),
      by=[INDEX_FILE])
fault("index-by-one-superblock", "storage/recover.c",
      "the superblock of the stop is believed though the newer one is lost",
      ("!store->super_damaged && store->super_in_turn &&", ""),
      by=[INDEX_FILE])
fault("index-half-loaded", "storage/index_load.c",
      "what was loaded before the doubt is kept",
      ("engine_forget(store);", ""),
      by=[INDEX_FILE])
fault("index-of-longer-files", "storage/index_load.c",
      "an index checkpoint is believed though a file has been cut short",
      ("if (head->segment_count != space->segment_count || head->segment_assigned",
       "if (head->segment_assigned"),
      by=[INDEX_FILE])
fault("index-over-damage", "storage/index_save.c",
      "an index checkpoint hides damage from the next start",
      ("if (atomic_load(&store->damaged) > 0)", "if (false)"),
      by=[INDEX_FILE])
fault("index-without-free-slots", "storage/space.c",
      "slots in use are free after an index checkpoint was loaded",
      ("masks[i] = free_slots[i];", ""),
      by=[INDEX_FILE])
fault("index-forgets-the-sweep", "storage/index_load.c",
      "items of flushed databases stay in the index for ever",
      ("if (!head.is_swept)", "if (false)"),
      by=[INDEX_FILE])

# ---- commits longer than the journal takes ----

fault("annex-behind-its-mark", "storage/journal.c",
      "a group is written while what its records name outside of the ring is not there yet",
      ("journal->annex_unwritten == 0 && journal->filling.length >= least",
       "journal->filling.length >= least"),
      by=[ANNEX, CUTS])
fault("annex-not-flushed", "storage/annex.c",
      "an annex is written, but may be lost when its record is durable",
      ("return error ? error : disk_flush(store->keeper_queue, store->extents.file);",
       "return error;"),
      by=[ANNEX, CUTS], quick=True)
fault("annex-freed-early", "storage/annex.c",
      "an annex's runs are used again before a checkpoint has passed it",
      ("note_written(&store->journal, annex); engine_wake_workers(store);",
       "note_written(&store->journal, annex); engine_wake_workers(store);"
       "annex_release(store, UINT64_MAX);"),
      by=[ANNEX, POWERCUT])
fault("annex-flushed-away", "storage/free.c",
      "a flush of everything gives back runs that redo still reads",
      ("annex_set_apart(store, true);", ""), ("annex_set_apart(store, false);", ""),
      by=[ANNEX])
fault("annex-not-freed", "storage/writeback.c",
      "the runs of annexes do not come back",
      ("annex_release(store, mark->commit);", ""),
      by=[ANNEX])
fault("annex-damage-unseen", "storage/annex.c",
      "redo takes what stands in an annex's runs for what was written there",
      ("if (format_checksum(to, runs[i].length) != runs[i].checksum) return STORE_CORRUPT;", ""),
      by=[ANNEX])

# ---- collections made in steps ----

fault("building-left-behind", "storage/building.c",
      "what no key was given is not taken apart",
      ("if (!building->is_handed_over) {", "if (building->steps == UINT64_MAX) {"),
      by=[BUILDING])
fault("building-taken-from-its-key", "storage/building.c",
      "what a key was given is taken apart",
      ("c->building->is_handed_over = true;", "c->building->is_handed_over = false;"),
      by=[BUILDING], quick=True)
fault("step-commits-the-run", "storage/building.c",
      "a step commits whatever its run has written",
      ("if (is_beside(&txn->writes[i], id)) txn->writes[kept++] = txn->writes[i];",
       "txn->writes[kept++] = txn->writes[i];"),
      by=[BUILDING])
fault("building-of-the-past", "storage/tree_free.c",
      "of a collection that a flush has freed the pages are given back once more",
      ("grave->generation = generation;", ";"),
      by=[BUILDING])

# ---- segments that change their class ----

fault("segment-not-zeroed", "storage/reclaim.c",
      "a segment is taken by another class with what the last one left in it",
      ("int error = count > 0 ? write_zeros(store, space, segments, count, zeros) : 0;",
       "int error = 0;"),
      by=[SPACE])

fault("segment-zeroed-too-early", "storage/reclaim.c",
      "a segment is zeroed before the deletions that emptied it are durable",
      ("if (count > 0 && !writeback_sync(store, commit))", "if (false)"),
      by=[SPACE, CUTS_SPACE])
fault("zeros-not-flushed", "storage/reclaim.c",
      "a segment may be taken before the zeros in it are durable",
      ("return error ? error : disk_flush(store->keeper_queue, space->file);", "return error;"),
      by=[SPACE, CUTS_SPACE])
fault("emptying-not-finished", "storage/recover.c",
      "a start leaves in a segment what was to be emptied when the power went",
      ("if (class == 0 && emptied) {", "if (false) {"),
      by=[SPACE, CUTS_SPACE])
fault("emptied-is-redone", "storage/redo.c",
      "what a segment held before it changed its class is redone over what it holds now",
      ("leave_out_emptied(store, log);", ""),
      ("static void leave_out_emptied(", "__attribute__((unused)) static void leave_out_emptied("),
      by=[SPACE, CUTS_SPACE])
fault("segment-with-items-taken", "storage/space.c",
      "a segment that holds an item serves another class",
      ("space->segment_free[segment] == places_in_segment(class);",
       "space->segment_free[segment] + 1u >= places_in_segment(class);"),
      by=[SPACE])
fault("segment-in-use-taken", "storage/reclaim.c",
      "a segment is taken while somebody reads a page of it",
      ("!is_in_use(space, i))", "!(false && is_in_use(space, i)))"),
      by=[SPACE])

# ---- recovery ----

fault("first-operation-of-a-slot-wins", "storage/redo.c",
      "of several operations on a slot the first is redone",
      ("return x->order < y->order ? -1 : 1;", "return x->order < y->order ? 1 : -1;"),
      by=[CUTS, POWERCUT], quick=True)
fault("erase-not-redone", "storage/recover.c",
      "an erased slot comes back",
      ("bool put = redo->operation->kind == FORMAT_PUT;",
       "bool put = redo->operation->kind == FORMAT_PUT; if (!put) return;"),
      by=[CUTS, POWERCUT])
fault("redo-not-written-back", "storage/recover.c",
      "what the journal said is not laid down before the journal is given up",
      ("memcpy(slot, image, length); mark_changed(buffer, page);", "memcpy(slot, image, length);"),
      by=[CUTS, POWERCUT])
fault("redo-write-unnoticed", "storage/recover.c",
      "what recovery could not write is given up with the journal",
      ("if (scan->buffers[i].error && result == STORE_OK)", "if (false)"),
      by=[FAULTS])
fault("epoch-not-begun", "storage/recover.c",
      "a start whose superblock could not be written goes on all the same",
      ("if (result == STORE_OK && (error = begin_epoch(store, &journal))) result = STORE_IO;",
       "if (result == STORE_OK) error = begin_epoch(store, &journal);"),
      by=[FAULTS])
fault("unreadable-is-the-end", "storage/redo.c",
      "what cannot be read of the journal is taken for its end",
      ("head, PAGE_SIZE, log->position) != 0) return STORE_IO;",
       "head, PAGE_SIZE, log->position) != 0) return STORE_ABSENT;"),
      by=[FAULTS])
fault("one-superblock-of-a-stop", "storage/redo.c",
      "a superblock that says `clean` is believed though the newer one is lost",
      ("store->super.clean && !store->super_damaged;", "store->super.clean;"),
      by=[ROT])
fault("redo-not-flushed", "storage/recover.c",
      "what recovery wrote is not flushed before the journal is given up",
      ("if (result == STORE_OK && (scan->error = disk_flush(scan->queue, space->file)))",
       "if (false)"),
      by=[CUTS, POWERCUT])
fault("segment-class-not-redone", "storage/redo.c",
      "a segment whose header was not written yet is taken for unused",
      ("space->segment_class[segment] = operation->slot;", ""),
      by=[CUTS, POWERCUT])
fault("databases-not-redone", "storage/redo.c",
      "a flush or swap of databases is forgotten",
      ("memcpy(&store->databases, operation + 1, sizeof store->databases);", ""),
      by=[CUTS, POWERCUT])
fault("item-unchecked-at-the-start", "storage/recover.c",
      "a damaged item is entered in the index",
      ("if (state == SLOT_DAMAGED) {", "if (false) {"),
      by=[FAULTS])
fault("header-not-mended", "storage/recover.c",
      "of a segment's two headers a damaged one stays as it is",
      ("*anew = journaled || (class > 0 && !whole);", "*anew = journaled;"),
      by=[ROT])
fault("damaged-id-unnoticed", "storage/verify.c",
      "an item whose database id is damaged is taken for one of a database that is gone",
      ("past && !was_living(space, page, slot, item, length) ?", "past ?"),
      by=[ROT])
fault("unreadable-node-given-up", "storage/recover.c",
      "what a node names is free when the node could not be read at the start",
      ("if (scan->error) result = STORE_IO; else", "if (!scan->error)"),
      by=[ROT])
fault("used-slots-taken-for-free", "storage/recover.c",
      "what recovery found in a slot does not keep the slot from being used again",
      ("space_keep_slot(&partition->space, page, slot); databases_count_key",
       "databases_count_key"),
      by=[CUTS, POWERCUT])
fault("used-runs-taken-for-free", "storage/recover.c",
      "runs of large values are used again after a start",
      ("if (extent->page == 0) return;", "return;"),
      by=[RANDOM, CUTS, POWERCUT])
fault("nodes-not-followed", "storage/recover.c",
      "only what a root names itself is kept, not what its nodes do",
      ("if (root.depth > 0 && extent.page && !remember_node(scan, &extent)) return false;", ""),
      by=[UPLOAD, RANDOM])

# ---- checkpoints and write-behind ----

fault("slabs-not-flushed", "storage/writeback.c",
      "the journal's tail moves before the pages are durable",
      ("error = disk_flush(store->keeper_queue, store->partitions[i].space.file);", "error = 0;"),
      by=[CUTS, POWERCUT])
fault("extent-headers-not-flushed", "storage/writeback.c",
      "the journal's tail moves before the segment headers of large values are durable",
      ("return error ? error : disk_flush(store->keeper_queue, store->extents.file);",
       "return error;"),
      by=[CUTS, POWERCUT])
fault("tail-before-flush", "storage/writeback.c",
      "the superblock is written before the pages are flushed",
      ("int error = flush_files(store);", "int error = 0;"),
      ("error = superblock_write(store, store->keeper_queue);",
       "error = superblock_write(store, store->keeper_queue); "
       "if (!error) error = flush_files(store);"),
      by=[CUTS, POWERCUT])
fault("page-before-its-commit", "storage/writeback.c",
      "a page is written before its newest commit is durable",
      ("batch->newest <= store_durable(store) || writeback_sync(store, batch->newest);", "true;"),
      by=[CUTS, POWERCUT])
fault("page-skipped", "storage/writeback.c",
      "a checkpoint leaves out the page behind each one it writes",
      ("*cursor = page + 1;", "*cursor = page + 2;"),
      by=[CUTS, POWERCUT, RANDOM])
fault("extent-headers-not-written", "storage/keeper.c",
      "a checkpoint leaves out the segment headers of large values",
      ("if (good && write_space(store, &store->extents, batch))", "if (good)"),
      by=[CUTS, POWERCUT, RANDOM])
fault("changed-while-written", "storage/writeback.c",
      "a frame under way to the disk is not marked, so it is changed in place",
      ("frame->writing = true;", ""),
      by=[STALLS])
fault("failed-page-forgotten", "storage/writeback.c",
      "a page that could not be written counts as clean",
      ("if (failed && frame->state == FRAME_VALID)", "if (false)"),
      by=[FAULTS])
fault("undurable-page-forgotten", "storage/writeback.c",
      "a page whose commit the journal could not take counts as written",
      ("release(space, batch, error || !durable);", "release(space, batch, error);"),
      by=[FAULTS])
fault("tail-too-far", "storage/writeback.c",
      "the tail names the journal's end instead of where it stood when the checkpoint began",
      ("super->tail_position = mark->position;",
       "struct journal_mark end; journal_mark(&store->journal, &end); mark = &end; "
       "super->tail_position = mark->position;"),
      by=[CUTS, POWERCUT])
fault("ring-released-early", "storage/writeback.c",
      "the journal is written over before the superblock says that recovery begins behind",
      ("if (!error) error = superblock_write(store, store->keeper_queue);",
       "journal_release(&store->journal, mark); "
       "if (!error) error = superblock_write(store, store->keeper_queue);"),
      by=[STALLS])
fault("flush-before-its-commit", "storage/journal.c",
      "a checkpoint has the databases as a commit left them that is not written yet",
      (".databases = journal->sealed_databases};", ".databases = journal->databases};"),
      by=[STALLS])
fault("superblock-not-durable", "storage/superblock.c",
      "the superblock is written without durability",
      ("super->sequence % 2 * PAGE_SIZE, true)", "super->sequence % 2 * PAGE_SIZE, false)"),
      by=[CUTS, POWERCUT])
fault("superblock-in-place", "storage/superblock.c",
      "the only valid copy of the superblock is overwritten",
      ("super->sequence % 2 * PAGE_SIZE, true)", "0, true)"),
      by=[CUTS, POWERCUT, FAULTS])
fault("superblock-unchecked", "storage/superblock.c",
      "a damaged copy of the superblock is believed",
      ("candidate->checksum == checksum_of(candidate) &&", ""),
      by=[FAULTS, CUTS, POWERCUT])
fault("older-superblock", "storage/superblock.c",
      "the older copy of the superblock is taken",
      ("candidate->sequence > best->sequence", "candidate->sequence < best->sequence"),
      by=[CUTS, POWERCUT])

# ---- commits ----

fault("erase-not-journaled", "storage/commit.c",
      "the old slot of an item that moves is not erased in the journal",
      ("bool erases = write->kind == WRITE_DELETE || moves(write);",
       "bool erases = write->kind == WRITE_DELETE;"),
      ("if (write->kind == WRITE_DELETE || moves(write)) at =",
       "if (write->kind == WRITE_DELETE) at ="),
      by=[CUTS, POWERCUT])
fault("erase-not-applied", "storage/commit.c",
      "an erased item stays on its page",
      ("memset(old, 0, sizeof *old);", ""),
      by=[CUTS, POWERCUT, RANDOM])
fault("erase-not-dirty", "storage/commit.c",
      "a page from which an item was erased is not written",
      ("space_mark_dirty(&partition->space, write->old_frame, commit);", ""),
      by=[CUTS, POWERCUT, RANDOM])
fault("put-not-dirty", "storage/commit.c",
      "a page that got an item is not written",
      ("space_mark_dirty(space, frame, commit); count_new", "count_new"),
      by=[RANDOM, CUTS, POWERCUT], quick=True)
fault("slots-never-free", "storage/commit.c",
      "the slot of a deleted item is not used again",
      ("space_give_slot(&partition->space, write->old_page, write->old_slot);", ""),
      by=[RANDOM])
fault("transaction-in-pieces", "storage/commit.c",
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
fault("expiry-entry-kept", "storage/commit.c",
      "what was noted about the expiry of an old item is not taken back",
      ("if (expiry != STORE_NO_EXPIRY) "
       "ttl_remove(&partition->ttl, write->key.slot, write->tag, expiry);", ""),
      by=[RANDOM])
fault("absence-shows-nothing", "storage/txn.c",
      "an absence does not wait for the durability of the delete that made it",
      ("show(txn, engine_partition(txn->store, key->slot)->last_removal);", ""),
      by=[RANDOM])
fault("value-shows-nothing", "storage/txn.c",
      "a value does not wait for the durability of the commit that made it",
      ("show(txn, found.item->version); show(", "show("),
      by=[RANDOM])
fault("swap-shows-nothing", "storage/txn.c",
      "what a swap of databases has brought does not wait for its durability",
      ("show(txn, txn->store->databases_commit);", ""),
      by=[RANDOM])
fault("expiry-ignored", "storage/txn.c",
      "an expired item is served",
      ("if (expired(txn, expiry)) { expire_note(", "if (false) { expire_note("),
      by=[RANDOM], quick=True)
fault("own-writes-unseen", "storage/txn.c",
      "a transaction does not see what it has written",
      ("if (txn->write_count) { const struct write *write = txn_find_write(txn, key);",
       "if (false) { const struct write *write = txn_find_write(txn, key);"),
      by=[RANDOM])
fault("key-unverified", "storage/long_key.h",
      "an item with the same tag and key length is taken for the key's",
      ("item->key_len == key->len && memcmp(format_key(item), key->data, key->len) == 0",
       "item->key_len == key->len"),
      by=[RANDOM])

# ---- long keys ----

fault("long-key-runs-forgotten", "storage/recover.c",
      "a start takes the bytes of long keys for free space",
      ("if (item->flags & FORMAT_LONG_KEY && !keep_root(", "if (false && !keep_root("),
      by=[LONG_KEYS])
fault("long-key-space-lost", "storage/commit.c",
      "the bytes of a long key stay when it is deleted",
      ("if (txn->writes[i].old_key)", "if (false)"),
      by=[LONG_KEYS])
fault("long-key-rewritten-over", "storage/commit.c",
      "an overwrite gives up the bytes that the key goes on to use",
      ("&& !(write->long_key && write->long_key->bytes.base);", ";"),
      by=[LONG_KEYS])
fault("long-key-read-unprotected", "storage/extent.c",
      "the bytes of a key are used anew while a scan reads them",
      ("if (is_key) run_reader_begin(", "if (false) run_reader_begin("),
      ("if (whole->is_key) run_reader_end(", "if (false) run_reader_end("),
      by=[LONG_KEYS], quick=True)
fault("long-key-told-for-ever", "storage/removal.c",
      "a key that has expired and cannot be read is read again ten times a second",
      ("is_unreadable(worker, name) ? NULL :", "is_unreadable(worker, name) && false ? NULL :"),
      by=[LONG_KEYS])

# ---- large collections ----

fault("patches-before-the-image", "storage/redo.c",
      "of a page, only the last change is redone",
      ("if (log->redo[i].operation->kind != FORMAT_PATCH) kept = begin;", "kept = begin;"),
      by=[CUTS])
fault("patch-not-redone", "storage/recover.c",
      "what changed of a page is not laid over it",
      ("lay_patch(buffer, redo->operation, slot, page, slot_size); return;", "return;"),
      by=[CUTS])
fault("nodes-taken-for-free", "storage/recover_trees.c",
      "the pages of a collection are used again after a start",
      ("bool keeps = is_named(found, nodes[i].collection);", "bool keeps = false;"),
      by=[CUTS, *TREES])

fault("dirty-node-dropped", "storage/tree_free.c",
      "the page of a node that is given up stays as it was before the node",
      ("if (frame && !arena_frame(space->arena, frame)->dirty &&", "if (frame &&"),
      by=TREES)
fault("grave-outlives-a-flush", "storage/databases.c",
      "pages are freed once more after a flush of everything",
      ("store->generation++;", ""),
      by=TREES)
fault("collection-not-buried", "storage/commit.c",
      "the pages of a deleted collection are lost until the next start",
      ("if (old && !tree_is_kept(txn, old->collection))", "if (false)"),
      by=TREES)
fault("renamed-collection-buried", "storage/commit.c",
      "a collection that lives on under another name is taken apart",
      ("if (old && !tree_is_kept(txn, old->collection))", "if (old)"),
      by=TREES)
fault("fresh-nodes-kept", "storage/tree_edit.c",
      "a run that is discarded keeps the pages it had taken",
      ("if (edit->is_fresh && !edit->is_idle)", "if (false)"),
      by=TREES)
fault("further-plans-lost", "storage/tree_edit.c",
      "of several small changes of a node only the first is committed",
      ("edit->patch_length += length;", ""),
      by=TREES)
fault("values-outside-forgotten", "storage/tree_outside.c",
      "a tree does not say that values of it lie outside",
      ("tree->root->has_outside = 1;", ""),
      by=TREES)
fault("separators-believed", "storage/tree_node.c",
      "equal keys on both sides of a boundary are looked for on one",
      ("child->loose = same == after.key_len;", "child->loose = false;"),
      by=TREES)
fault("heads-believed", "storage/tree_node.c",
      "a search in an inner node stops at the separators that begin as the key does",
      ("for (high = low; high < node->count && cell[high].head == head;)", "for (high = low; false;)"),
      by=TREES)
fault("rank-from-the-end", "storage/tree_node.c",
      "who looks for a rank from the end of an inner node forgets what is before the child",
      ("while (i > 0 && *rank < begin); *rank -= begin;", "while (i > 0 && *rank < begin);"),
      by=TREES)
fault("words-change-places", "storage/format.h",
      "a node's checksum does not say where its words stand",
      ("(number + 1ull) * 0x9e37", "0 * number + 1ull * 0x9e37"),
      by=["test_rot"])
fault("rank-not-learned", "storage/tree_change.c",
      "after a leaf is parted, a cursor that did not know its rank goes on anywhere",
      ("result = tree_rank(cursor); if (result == STORE_OK) result = change_at(cursor, depth, &leaf);",
       "result = change_at(cursor, depth, &leaf);"),
      by=TREES)
fault("nobody-scouts", "storage/request.c",
      "who waits behind others for a key has its pages read when its turn comes",
      ("else if (request->may_scout && txn->counts_active)", "else if (false)"),
      by=TREES)
fault("scouts-stop-at-once", "storage/scout.c",
      "who waits has the first page read that it needs, and finds out about the next in its turn",
      ("bool is_waiting = txn->is_behind &&", "bool is_waiting = false &&"),
      by=TREES)
fault("wrong-leaf", "storage/tree_change.c",
      "an entry between two leaves is put where the cursor is, whatever their separator says",
      ("if (!at_end && !at_start)", "if (true)"),
      by=TREES)
fault("shared-bytes-unchecked", "storage/tree_node.c",
      "a key that does not begin as the others do comes into a leaf unnoticed",
      ("if (node->shared == 0) return true;", "if (node->count) return true;"),
      by=TREES)
fault("values-outside-not-judged", "storage/recover_trees.c",
      "values that no node names any more stay for ever",
      ("if (!is_named(found, outside[i].collection) && !tree_bury_outside(store, &outside[i]))",
       "if (false)"),
      by=TREES)
fault("step-keeps-its-pins", "storage/request.c",
      "a walk in steps holds all pages it has seen",
      ("if (txn->stepped) end_step(txn);", "txn->stepped = false;"),
      by=TREES)

# ---- order and isolation ----

fault("claim-not-taken", "storage/request.c",
      "a transaction that waits does not hold its keys",
      ("txn->request->key_count > 0) txn->out_of_memory = !admission_claim(txn);",
       "txn->request->key_count > 0) ;"),
      by=[CONCURRENT, RANDOM])
fault("claims-ignored", "storage/admission.c",
      "a new transaction overtakes those that hold its keys",
      ("if (partition->claim_count == 0) return false;", "return false;"),
      by=[CONCURRENT, RANDOM], quick=True)
fault("exclusive-as-shared", "storage/admission.c",
      "writers share their keys",
      (".exclusive = key->mode == STORE_EXCLUSIVE", ".exclusive = false"),
      by=[CONCURRENT, RANDOM])
fault("shared-meets-exclusive", "storage/admission.c",
      "a reader does not mind a writer that holds the key",
      ("(!first->queue.exclusive_ahead && !claim->exclusive)", "!claim->exclusive"),
      by=[STALLS])
fault("own-claim-in-the-way", "storage/admission.c",
      "a transaction that names a key twice waits for itself",
      ("return first->txn == claim->txn ||", "return first == claim ||"),
      by=[STALLS])
fault("pause-without-claims", "storage/request.c",
      "a run that pauses lets others at its keys",
      ("hold_place(txn); if (txn->out_of_memory) {", "if (txn->out_of_memory) {"),
      by=[CONCURRENT])
fault("barrier-passed", "storage/request.c",
      "transactions overtake one that waits to be alone",
      ("if (behind || busy)", "if (busy)"),
      by=[CONCURRENT, RANDOM])
fault("alone-among-others", "storage/request.c",
      "a transaction that must be alone does not wait for those under way",
      ("bool busy = alone && atomic_load_explicit(&store->active, memory_order_relaxed) > 0;",
       "bool busy = false;"),
      by=[CONCURRENT, RANDOM])
fault("rerun-keeps-its-writes", "storage/request.c",
      "what a run that has to wait has written is kept for the next run",
      ("txn_discard(txn); if (txn->again) {", "if (txn->again) {"),
      by=[STALLS])

# ---- eviction ----

fault("useless-ones-asked-for-ever", "storage/evict.c",
      "values whose runs would be of no use are chosen again and again",
      ("return traits & INDEX_LARGE && may_give_run(choice, entry);",
       "return traits & INDEX_LARGE && (may_give_run(choice, entry) || true);"),
      by=[EVICT])

# ---- the cache ----

fault("dirty-page-evicted", "storage/space.c",
      "a page is dropped before it is written",
      ("frame->dirty = true; queue_remove(space, number);", "frame->dirty = true;"),
      ("frame->visited = false; queue_add(space, number);", "frame->visited = false;"),
      by=[RANDOM, CONCURRENT])
fault("keeper-gives-every-frame", "storage/arena.c",
      "with too much in memory a reader waits for the keeper, though there are clean pages",
      ("if (need == ARENA_INSTEAD) return true;", ""),
      by=[STALLS])
fault("held-back-for-all", "storage/load.c",
      "a GET waits behind the writers that want the same page",
      ("hurry(txn->worker, space, frame->page);", "{ }"),
      by=[STALLS])
fault("no-copy-on-write", "storage/space.c",
      "a frame is changed while it is being written",
      ("if (!old->writing) return true;", "return true;"),
      by=[STALLS])
fault("copy-is-clean", "storage/space.c",
      "the copy of a frame that is being written can go before the write has arrived",
      ("space_mark_dirty(space, copy, frame->commit);", ""),
      by=[CONCURRENT, RANDOM])
fault("page-unverified", "storage/load.c",
      "a damaged item is served from a page that was read",
      ("if (empty || verify_slot(space, page, slot, item) != SLOT_DAMAGED)", "if (true)"),
      by=[FAULTS])
fault("read-error-ignored", "storage/load.c",
      "what a failed read left in a frame is served",
      ("arrived(load, i, op->error != 0);", "arrived(load, i, false);"),
      by=[FAULTS])

# ---- the clock ----

fault("clock-stands-still", "storage/store.c",
      "nothing expires while the machine's clock is behind",
      ("(here - moved) / 8 * 7;", "0 * (here - moved);"),
      by=[CLOCK])
fault("clock-followed-back", "storage/store.c",
      "the store's clock is set back with the machine's",
      ("return go_on_slowly(store);", "return (void)go_on_slowly, now;"),
      by=[CLOCK])
fault("clock-lost-by-a-stop", "storage/writeback.c",
      "the time of a stop is not kept",
      ("super->clock_ms = (uint64_t)store_clock_ms(store);", ""),
      by=[CLOCK])
fault("clock-lost-by-a-start", "storage/recover.c",
      "the time of a start is not kept",
      ("super->clock_ms = (uint64_t)store_clock_ms(store);", ""),
      by=[CLOCK])
fault("clock-not-read", "storage/superblock.c",
      "the time that a superblock has kept is not gone on from",
      ("engine_set_clock(store, (int64_t)best.clock_ms);", ""),
      by=[CLOCK])
fault("everysec-late", "storage/keeper.c",
      "a second is three",
      (": 1000 - TICK_MS;", ": 3000 - TICK_MS;"),
      by=[CLOCK])

# ---- the disk ----

fault("durability-not-asked-for", "storage/disk_file.c",
      "a durable write is like any other to the kernel",
      ("op->iocb.aio_rw_flags = RWF_DSYNC;", ";"),
      by=[DISK], quick=True)
fault("flush-is-nothing", "storage/disk_file.c",
      "a flush does not reach the kernel",
      ("io_prep_fdsync(&op->iocb, op->file->fd);",
       "io_prep_preadv(&op->iocb, op->file->fd, op->vectors, 0, 0);"),
      by=[DISK])
fault("growth-not-synced", "storage/disk_file.c",
      "the new length of a file may be lost",
      ("if (!error && fsync(file->fd) != 0)", "if (false)"),
      by=[DISK])
fault("directory-not-synced", "storage/disk_file.c",
      "a new file's name may be lost",
      ("return fsync(((struct file_disk *)disk)->directory_fd) == 0 ? 0 : errno;",
       "(void)disk; return 0;"),
      by=[DISK])

fault("short-transfer-is-whole", "storage/disk_file.c",
      "what the kernel transferred of an operation passes for all of it",
      ("else if (op->kind == DISK_FLUSH || (uint64_t)result == op->remaining)",
       "else if (op->kind == DISK_FLUSH || result > 0)"),
      by=[DISK])
fault("rest-in-the-wrong-place", "storage/disk_file.c",
      "the rest of a short transfer goes where its beginning went",
      ("op->offset += transferred;", ""),
      by=[DISK])
fault("interruption-is-an-error", "storage/disk_file.c",
      "an operation that was interrupted fails",
      ("if (result == -EINTR || result == -EAGAIN)", "if (result == -EAGAIN)"),
      by=[DISK])

# ---- large values, databases, scans ----

fault("extents-not-durable", "storage/run_write.c",
      "a large value is named by a commit before it is durable",
      (".kind = DISK_WRITE, .durable = true,", ".kind = DISK_WRITE, .durable = false,"),
      by=[CUTS, POWERCUT])
fault("upload-put-too-early", "storage/upload.c",
      "a value that was uploaded is named by a commit before all of it is durable",
      ("if (upload->in_flight > 0) { upload->is_awaited = true; return STORE_WAIT; }", ""),
      by=[UPLOAD])
fault("upload-flushed-away", "storage/free.c",
      "a flush of everything frees what uploads are writing to",
      ("upload_set_apart(store, true);", ""), ("upload_set_apart(store, false);", ""),
      by=[UPLOAD])
fault("upload-leaks", "storage/upload.c",
      "the space of an upload that was given up does not come back",
      ("if (!upload->is_handed_over) {", "if (false) {"),
      by=[UPLOAD])
fault("upload-hogs-the-cache", "storage/upload.c",
      "slow uploads hold as many frames as they please",
      ("cache_is_tight(txn->store) ? RUN_WRITE_APART : RUN_WRITE_MAY_BE_APART;",
       "RUN_WRITE_MAY_BE_APART;"),
      by=[UPLOAD])
fault("aside-gone-with-its-command", "storage/stream.c",
      "what was put aside is free when its command has ended, although it is still read",
      ("upload_hold(upload);", ""), ("upload_release(stream->upload);", ""),
      by=[UPLOAD])
fault("aside-without-its-last-pieces", "storage/upload.c",
      "what was put aside ends with what there is no more room for",
      ("if (upload->failure == STORE_FULL || upload->failure == STORE_NO_MEMORY)", "if (false)"),
      by=[UPLOAD])
fault("command-before-its-value", "server/runner.c",
      "a command runs while its long value is still on its way to the device",
      ("return upload_is_settled(request->call.upload) && order_may_start(conn, request);",
       "return order_may_start(conn, request);"),
      by=["test_runner"])
fault("row-of-any-keys", "server/row.c",
      "a row goes on with a command for another key",
      ("next->key->hash == key->hash && next->key->len == key->len &&", ""),
      ("memcmp(next->key->data, key->data, key->len) == 0", "true"),
      by=["test_rows.py::test_a_pipeline_is_its_commands_one_by_one"])
fault("line-of-any-keys", "server/order.c",
      "a command starts beside writes on other keys",
      ("request->line == conn->line &&", ""),
      by=["test_runner"])
fault("long-values-without-bound", "server/runner.c",
      "a client may have any number of long values on their way to the device",
      ("conn->unsettled_uploads < RUNNER_UPLOADS_MAX * UPLOAD_WEIGHT &&", ""),
      by=["test_runner"])
fault("extent-unchecked", "storage/extent.c",
      "a damaged large value is served",
      ("if (XXH3_64bits_digest(&state) != extent->checksum)", "if (false)"),
      by=[FAULTS])
fault("run-free-before-durable", "storage/free.c",
      "the run of an old value is used again while a crash would bring the value back",
      ("entry->commit <= durable &&", ""),
      by=[CUTS, POWERCUT])
fault("run-free-under-a-stream", "storage/free.c",
      "the run of an old value is used again while it is being streamed",
      ("entry->commit <= stream_oldest(store) && entry->commit <= snapshot_oldest(store)",
       "entry->commit <= snapshot_oldest(store)"),
      by=[RANDOM, CUTS, POWERCUT])
fault("renamed-value-freed", "storage/commit.c",
      "the extents of a value that lives on under another name are given up",
      ("lives_on = true;", "lives_on = false;"),
      by=[RANDOM])
fault("database-ids-reused", "storage/databases.c",
      "a database is flushed to an id that others have had",
      ("arrangement->databases.next_id++", "arrangement->databases.next_id"),
      by=[RANDOM, CUTS, POWERCUT])
fault("scan-skips-a-tag", "storage/index.c",
      "a step of a scan that ends before a group of equal tags leaves the group out",
      ("at->tag = index_tag(entry); return false; }", "at->tag = index_tag(entry) + 1; return false; }"),
      by=["test_index", RANDOM], quick=True)

# ---- the server ----

fault("reply-before-durable", "server/conn_output.c",
      "under `always` a reply leaves before its commit is durable",
      ("shown > store_durable(server->store)", "false"),
      by=["test_life.py::test_kill_9_loses_nothing_acknowledged"])
fault("everysec-never", "storage/keeper.c",
      "nothing is written by the clock",
      ("if (journal_age(&store->journal, engine_clock_ms()) >= limit)", "if (false)"),
      by=["test_life.py::test_kill_9_keeps_a_prefix"])

fault("no-means-never", "storage/keeper.c",
      "under `no` nothing is written by the clock",
      ("sync == STORE_SYNC_NO ? NO_SYNC_AGE_MS :", "sync == STORE_SYNC_NO ? INT64_MAX :"),
      by=[POWERCUT])

# ---- collections ----

fault("member-by-its-hash-alone", "server/member_tree.c",
      "members of one hash are taken for each other",
      ("*found = result == STORE_OK && same(member->name, name);", "*found = result == STORE_OK;"),
      by=["test_cmd_set_weak"], quick=True)
fault("scan-ends-at-hash-0", "server/members.c",
      "a scan whose first part ends among members of hash 0 is over",
      ("if (result != STORE_OK || *end == members_count(members))",
       "if (result != STORE_OK || *next == 0)"),
      by=["test_cmd_hash_weak"])
fault("scan-splits-a-cursor", "server/members.c",
      "a part of a scan ends between members that share a cursor",
      ("result = cursor_rank(members, *next, end);", ""),
      by=["test_cmd_hash_weak"])
fault("step-forgotten", "server/members.c",
      "after a step a walk begins again, behind what it has collected",
      ("store_tree_seek_rank(members->tree, gather->at, &cursor)",
       "store_tree_seek_rank(members->tree, 0, &cursor)"),
      by=["test_cmd_set"])
fault("packed-length-trusted", "server/packed.c",
      "the length behind an entry is not compared with the one before it",
      ("== size && mirrored == len;", "> 0;"),
      by=["test_packed"])
fault("expiry-lost-with-growth", "server/members.c",
      "a collection that outgrows its item forgets when it expires",
      ("store_tree_create(call->txn, members->key, members->type, 1, members->item.expire_ms);",
       "store_tree_create(call->txn, members->key, members->type, 1, STORE_NO_EXPIRY);"),
      by=["test_cmd_hash"])

# ---- replies that leave while their command runs, and what is to come before other commands ----

fault("pushes-within-a-reply", "server/conn_output.c",
      "a message stands where it came, in the middle of a reply that flows",
      ("if (conn->is_flowing) exchange_queues(conn); add_push(conn, head, head_count, publication); "
       "conn->worker->pushed_bytes += publication->len; "
       "if (conn->is_flowing) exchange_queues(conn);",
       "add_push(conn, head, head_count, publication); "
       "conn->worker->pushed_bytes += publication->len;"),
      by=["test_outflow.py::test_pushes_do_not_come_in_between"])
fault("part-before-its-turn", "server/outflow.c",
      "parts of a reply leave before the replies of earlier commands",
      ("bool is_first = conn->requests == request, is_short", "bool is_first = true, is_short"),
      by=["test_outflow.py::test_replies_in_the_order_of_their_commands"])
fault("never-hurried", "server/outflow.c",
      "who waits for the key of a reply that rests waits for its client",
      ("request->awaited_ms += OUTFLOW_PULSE_MS;", ""),
      by=["test_runner"], quick=True)
fault("rest-without-claims-seen", "storage/admission.c",
      "nobody is seen to wait for the keys of what rests",
      ("awaited = (*find_queue(partition, txn->claims[i].hash))->queue.waiting != NULL;",
       "awaited = false;"),
      by=["test_outflow.py::test_who_waits_for_a_client_that_does_not_read"])
fault("stream-from-its-extent", "storage/stream.c",
      "a stream that begins within an extent begins with it",
      ("(*stream)->skip = (uint32_t)(offset % FORMAT_EXTENT_BYTES);", ""),
      by=["test_outflow.py::test_long_values_of_fields_and_elements"])
fault("woken-in-its-round", "server/runner.c",
      "a woken client is served when all connections have had their turn",
      ("request_free(request); worker_visit_woken(conn->worker);", "request_free(request);"),
      by=["test_waking.py::test_the_next_command_finds_what_a_push_has_brought_about"])
fault("summoned-is-next", "storage/admission.c",
      "who is called to a key takes its place behind those who wait for it",
      ("push_in(*first, &txn->summons);", "append(*first, &txn->summons);"),
      by=["test_summon"], quick=True)
fault("summoned-goes-ahead", "storage/admission.c",
      "who is called to a key waits for those who wait for him there",
      ("|| !hold_up(at->txn)", "|| true"),
      by=["test_summon"])
fault("hands-on", "server/blocked.c",
      "what a served client leaves is not handed on",
      ("else hand_on(queue, waiter->worker->store, waiter->request->store.shown);", ""),
      by=["test_blocked"], quick=True)
fault("waitaof-waits", "server/cmd_blocking.c",
      "WAITAOF does not wait for the flush",
      ("(local == 0 || is_durable)", "(local == 0 || is_durable || true)"),
      by=["test_waitaof.py::test_what_it_has_waited_for_survives_a_kill"])
