"""What makes acknowledged changes last, and recovery."""

from fault import (Faults, BULK_LOAD, CUTS, CUTS_SPACE, FAULTS, INDEX_FILE, LONG_RECORD, LOST, POWERCUT, RANDOM,
                   ROT, SPACE, STALLS, TINY_BELIEVED, UPLOAD)

ALL = Faults()
fault = ALL.add

fault("names-not-durable", "storage/recovery/open.c",
      "a directory whose making was cut off before its last flush is used as it is",
      ("int error = store->disk->ops->sync_directory(store->disk);", "int error = 0;"),
      by=[POWERCUT])

# ---- the journal ----

fault("journal-not-durable", "storage/journal/journal.c",
      "groups are written without durability",
      (".kind = DISK_WRITE, .durable = true, .file = journal->file",
       ".kind = DISK_WRITE, .durable = false, .file = journal->file"),
      by=[CUTS, POWERCUT], quick=True)
fault("durable-too-early", "storage/journal/journal.c",
      "what is still being gathered counts as durable with the group that arrived",
      ("group->first_commit + group->record_count - 1", "journal->next_commit - 1"),
      by=[CUTS, POWERCUT])
fault("group-overtakes", "storage/journal/journal.c",
      "a group that arrived counts as durable while the one before it is still on its way",
      ("if (!flight->arrived) break;",
       "if (!flight->arrived && journal->flight_count == 1) break;"),
      by=[POWERCUT])
fault("failed-group-acknowledged", "storage/journal/journal.c",
      "a group whose write failed counts as durable",
      ("if (!env_failed(journal->env)) atomic_store_explicit(&journal->durable,",
       "atomic_store_explicit(&journal->durable,"),
      by=[FAULTS])
fault("ring-left-at-its-end", "storage/journal/journal.c",
      "a group for which there is no room up to the ring's end is written behind it",
      ("if (padded > journal->size - journal->position) journal->position = 0;", ""),
      by=[POWERCUT])
fault("everysec-overdue", "storage/journal/journal.c",
      "writers go on for as long as a flush takes",
      ("env_clock_ms() - journal->oldest_ms > JOURNAL_OVERDUE_MS;", "false;"),
      by=[STALLS])
fault("ring-overruns-its-tail", "storage/journal/journal.c",
      "groups are written over those that recovery still needs",
      ("journal->used + ring_cost(journal, group_length) + PAGE_SIZE > journal->size", "false"),
      by=[STALLS])
fault("commit-numbers-reused", "storage/journal/journal.c",
      "the first commit after a start has the last one's number",
      ("journal->next_commit = mark->commit;",
       "journal->next_commit = mark->commit > 1 ? mark->commit - 1 : 1;"),
      by=[CUTS, POWERCUT], quick=True)
fault("group-checksum-unchecked", "storage/recovery/redo.c",
      "a torn group is recovered",
      ("return sum == (*group)->checksum &&", "return"),
      by=[CUTS, POWERCUT])
fault("failed-flush-is-lack-of-room", "storage/maintenance/maintenance.c",
      "the error of a flush is dropped if it comes while a file grows",
      ("if (error && !is_lack_of_room(error))", "if (false)"),
      by=[FAULTS])
# Of epoch and chain each would do: a start begins its chain with a random number.
fault("history-ignored", "storage/recovery/redo.c",
      "groups of a history that was given up are followed",
      ("group->epoch == store->superblock.latest.epoch && group->sequence == log->sequence &&",
       "group->sequence == log->sequence &&"),
      ("group->previous == log->previous &&", ""),
      by=[FAULTS])
fault("chain-ignored", "storage/recovery/redo.c",
      "a group is followed whatever group it was written behind",
      ("group->previous == log->previous &&", ""),
      by=[FAULTS])
fault("ring-not-followed", "storage/recovery/redo.c",
      "recovery ends where the ring does",
      ("if (result != STORE_ABSENT || position == 0) return result;", "return result;"),
      by=[POWERCUT])
fault("damaged-group-unnoticed", "storage/recovery/redo.c",
      "what comes behind a damaged group is dropped without a word",
      ("return orderly ? STORE_OK : look_behind(store, log, message);", "return STORE_OK;"),
      by=[ROT])
fault("later-epoch-unnoticed", "storage/recovery/redo.c",
      "what was written after the start that a damaged superblock told of is dropped",
      ("(group->epoch > store->superblock.latest.epoch ||", "(false ||"),
      by=[ROT])
fault("foreign-group-believed", "storage/recovery/redo.c",
      "bytes that somebody made pass for a group",
      ("group->magic == FORMAT_GROUP_MAGIC && group->seed == store->superblock.latest.seed && "
       "(group->epoch > store->superblock.latest.epoch ||",
       "group->magic == FORMAT_GROUP_MAGIC && (group->epoch > store->superblock.latest.epoch ||"),
      by=[ROT])
fault("last-group-cut", "storage/recovery/redo.c",
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
              return group->record_count && next.position < store->superblock.latest.journal_bytes &&
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

fault("index-of-another-stop", "storage/maintenance/index_stream.c",
      "blocks are not bound to the stop that wrote them",
      ("stream->identity = XXH3_64bits_withSeed(head, sizeof *head, store->superblock.latest.seed);",
       "stream->identity = 1;"),
      by=[INDEX_FILE])
fault("index-block-unchecked", "storage/maintenance/index_stream.c",
      "a block's checksum is not looked at",
      ("stream->block->checksum == checksum_of(stream);", "true;"),
      by=[INDEX_FILE])
fault("version-kept", "storage/journal/superblock.c",
      "a directory keeps its old format's version although new entries are written into it",
      ("super->version = FORMAT_STAMP | (super->version & FORMAT_ORDERED);", ""),
      by=["test_golden.py::test_an_earlier_server_refuses_what_this_one_has_started_on"])
fault("index-by-one-superblock", "storage/recovery/recover.c",
      "the superblock of the stop is believed though the newer one is lost",
      ("!store->superblock.is_damaged && store->superblock.is_in_turn &&", ""),
      by=[INDEX_FILE])
fault("index-half-loaded", "storage/recovery/index_load.c",
      "what was loaded before the doubt is kept",
      ("engine_forget(store);", ""),
      by=[INDEX_FILE])
fault("index-of-longer-files", "storage/recovery/index_load.c",
      "an index checkpoint is believed though a file has been cut short",
      ("if (head->segment_count != file->segment_count || head->segment_assigned",
       "if (head->segment_assigned"),
      by=[INDEX_FILE])
fault("data-for-all", "storage/base/disk_file.c",
      "any user of the machine may read the data, and lock the server out",
      ("#define FILE_MODE 0600", "#define FILE_MODE 0644"),
      by=["test_lifecycle.py::test_data_are_nobody_elses"])
fault("lock-file-alone", "storage/base/disk_file.c",
      "who deletes the lock file lets a second server in",
      ("return flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;", "return fd < 0;"),
      by=["test_disk"])
fault("cut-file-scanned", "storage/recovery/index_load.c",
      "a start goes on without what was in the part of a file that is gone",
      ("report_cut(loading, file, head);", "(void)report_cut;"),
      by=[INDEX_FILE])
fault("index-over-damage", "storage/maintenance/index_save.c",
      "an index checkpoint hides damage from the next start",
      ("if (atomic_load(&store->damaged) > 0)", "if (false)"),
      by=[INDEX_FILE])
fault("index-without-free-slots", "storage/cache/page_file.c",
      "slots in use are free after an index checkpoint was loaded",
      ("masks[i] = free_slots[i];", ""),
      by=[INDEX_FILE])
fault("index-forgets-the-sweep", "storage/recovery/index_load.c",
      "items of flushed databases stay in the index for ever",
      ("if (!head.is_swept)", "if (false)"),
      by=[INDEX_FILE])
fault("skipped-is-swept", "storage/maintenance/index_save.c",
      "an index checkpoint says that all is swept, though segments could not be read",
      ("&& store->sweep_skipped == 0;", ";"),
      by=[INDEX_FILE])

# ---- commits longer than the journal takes ----

fault("long-record-behind-its-mark", "storage/journal/journal.c",
      "a group is written while what its records name outside of the ring is not there yet",
      ("journal->long_record_unwritten == 0 && journal->filling.length >= least",
       "journal->filling.length >= least"),
      by=[LONG_RECORD, CUTS])
fault("long-record-not-flushed", "storage/value/long_record.c",
      "a long record is written, but may be lost when its record is durable",
      ("return error ? error : disk_flush(store->maintenance_queue, store->extents.file);",
       "return error;"),
      by=[LONG_RECORD, CUTS], quick=True)
fault("long-record-freed-early", "storage/value/long_record.c",
      "a long record's runs are used again before a checkpoint has passed it",
      ("note_written(&store->journal, long_record); engine_wake_workers(store);",
       "note_written(&store->journal, long_record); engine_wake_workers(store);"
       "long_record_release(store, UINT64_MAX);"),
      by=[LONG_RECORD, POWERCUT])
fault("long-record-flushed-away", "storage/value/free.c",
      "a flush of everything gives back runs that redo still reads",
      ("long_record_set_apart(store, true);", ""), ("long_record_set_apart(store, false);", ""),
      by=[LONG_RECORD])
fault("long-record-not-freed", "storage/maintenance/writeback.c",
      "the runs of long records do not come back",
      ("long_record_release(store, mark->commit);", ""),
      by=[LONG_RECORD])
fault("long-records-unbounded", "storage/value/long_record.c",
      "long records bring no checkpoint about",
      ("return journal_long_record_bytes(&store->journal) > frame_bytes(store) / 4;", "return store == NULL;"),
      by=[LONG_RECORD])
fault("keys-go-for-long-records", "storage/value/slot_alloc.c",
      "on a full disk keys are evicted for the room that long records have",
      ("bool checkpoint_helps = checkpoint_makes_room(file, store);", "bool checkpoint_helps = false;"),
      by=[LONG_RECORD])
fault("long-record-damage-unseen", "storage/value/long_record.c",
      "redo takes what stands in a long record's runs for what was written there",
      ("if (format_checksum(to, runs[i].length) != runs[i].checksum) return STORE_CORRUPT;", ""),
      by=[LONG_RECORD])

# ---- collections made in steps ----

fault("bulk-load-left-behind", "storage/tree/bulk_load.c",
      "what no key was given is not taken apart",
      ("if (!bulk_load->is_handed_over) {", "if (bulk_load->steps == UINT64_MAX) {"),
      by=[BULK_LOAD])
fault("bulk-load-taken-from-its-key", "storage/tree/bulk_load.c",
      "what a key was given is taken apart",
      ("c->bulk_load->is_handed_over = true;", "c->bulk_load->is_handed_over = false;"),
      by=[BULK_LOAD], quick=True)
fault("step-commits-the-run", "storage/tree/bulk_load.c",
      "a step commits whatever its run has written",
      ("if (is_beside(&txn->writes[i], id)) txn->writes[kept++] = txn->writes[i];",
       "txn->writes[kept++] = txn->writes[i];"),
      by=[BULK_LOAD])
fault("bulk-load-of-the-past", "storage/tree/tree_drop.c",
      "of a collection that a flush has freed the pages are given back once more",
      ("dropped->generation = generation;", ";"),
      by=[BULK_LOAD])

# ---- segments that change their class ----

fault("segment-not-zeroed", "storage/maintenance/reclaim.c",
      "a segment is taken by another class with what the last one left in it",
      ("int error = count > 0 ? write_zeros(store, file, segments, count, zeros) : 0;",
       "int error = 0;"),
      by=[SPACE])

fault("segment-zeroed-too-early", "storage/maintenance/reclaim.c",
      "a segment is zeroed before the deletions that emptied it are durable",
      ("if (count > 0 && !writeback_sync(store, commit))", "if (false)"),
      by=[SPACE, CUTS_SPACE])
fault("zeros-not-flushed", "storage/maintenance/reclaim.c",
      "a segment may be taken before the zeros in it are durable",
      ("return error ? error : disk_flush(store->maintenance_queue, file->file);", "return error;"),
      by=[SPACE, CUTS_SPACE])
fault("emptying-not-finished", "storage/recovery/recover.c",
      "a start leaves in a segment what was to be emptied when the power went",
      ("if (emptied) {", "if (false) {"),
      by=[SPACE, CUTS_SPACE])
fault("emptied-is-redone", "storage/recovery/redo.c",
      "what a segment held before it changed its class is redone over what it holds now",
      ("leave_out_emptied(store, log);", ""),
      ("static void leave_out_emptied(", "__attribute__((unused)) static void leave_out_emptied("),
      by=[SPACE, CUTS_SPACE])
fault("segment-with-items-taken", "storage/cache/page_file.c",
      "a segment that holds an item serves another class",
      ("file->segment_free[segment] == places_in_segment(size_class);",
       "file->segment_free[segment] + 1u >= places_in_segment(size_class);"),
      by=[SPACE])
fault("segment-in-use-taken", "storage/maintenance/reclaim.c",
      "a segment is taken while somebody reads a page of it",
      ("is_in_use(file, i))", "(false && is_in_use(file, i)))"),
      by=[SPACE])

fault("last-room-of-a-class-taken", "storage/maintenance/reclaim.c",
      "a class whose items come and go loses its only segment each time",
      ("if (only_spare && left", "if (false && only_spare && left"),
      by=[SPACE])
fault("empty-segments-kept-on-a-full-disk", "storage/maintenance/maintenance.c",
      "a file that cannot grow leaves empty segments to classes that do not need them",
      ("if (growing == CANNOT_GROW && reclaim(", "if (false && reclaim("),
      by=[SPACE])

# ---- recovery ----

fault("first-operation-of-a-slot-wins", "storage/recovery/redo.c",
      "of several operations on a slot the first is redone",
      ("return x->order < y->order ? -1 : 1;", "return x->order < y->order ? 1 : -1;"),
      by=[CUTS, POWERCUT], quick=True)
fault("erase-not-redone", "storage/recovery/recover.c",
      "an erased slot comes back",
      ("bool put = redo->operation->kind == FORMAT_PUT;",
       "bool put = redo->operation->kind == FORMAT_PUT; if (!put) return;"),
      by=[CUTS, POWERCUT])
fault("redo-not-written-back", "storage/recovery/recover.c",
      "what the journal said is not laid down before the journal is given up",
      ("memcpy(slot, image, length); mark_changed(buffer, page);", "memcpy(slot, image, length);"),
      by=[CUTS, POWERCUT])
fault("redo-write-unnoticed", "storage/recovery/recover.c",
      "what recovery could not write is given up with the journal",
      ("if (scan->buffers[i].error && result == STORE_OK)", "if (false)"),
      by=[FAULTS])
fault("epoch-not-begun", "storage/recovery/recover.c",
      "a start whose superblock could not be written goes on all the same",
      ("if (result == STORE_OK && (error = begin_epoch(store, &journal))) result = STORE_IO;",
       "if (result == STORE_OK) error = begin_epoch(store, &journal);"),
      by=[FAULTS])
fault("unreadable-is-the-end", "storage/recovery/redo.c",
      "what cannot be read of the journal is taken for its end",
      ("head, PAGE_SIZE, log->position) != 0) return STORE_IO;",
       "head, PAGE_SIZE, log->position) != 0) return STORE_ABSENT;"),
      by=[FAULTS])
fault("one-superblock-of-a-stop", "storage/recovery/redo.c",
      "a superblock that says `clean` is believed though the newer one is lost",
      ("store->superblock.latest.clean && !store->superblock.is_damaged && store->superblock.is_in_turn;",
       "store->superblock.latest.clean;"),
      by=[ROT])
fault("redo-not-flushed", "storage/recovery/recover.c",
      "what recovery wrote is not flushed before the journal is given up",
      ("if (result == STORE_OK && (scan->error = disk_flush(scan->queue, file->file)))",
       "if (false)"),
      by=[CUTS, POWERCUT])
fault("segment-class-not-redone", "storage/recovery/redo.c",
      "a segment whose header was not written yet is taken for unused",
      ("file->segment_class[segment] = operation->slot;", ""),
      by=[CUTS, POWERCUT])
fault("databases-not-redone", "storage/recovery/redo.c",
      "a flush or swap of databases is forgotten",
      ("store->databases = databases; return STORE_OK;", "return STORE_OK;"),
      by=[CUTS, POWERCUT])
fault("item-unchecked-at-the-start", "storage/recovery/recover.c",
      "a damaged item is entered in the index",
      ("if (state == SLOT_DAMAGED) {", "if (false) {"),
      by=[FAULTS])
fault("header-not-mended", "storage/recovery/recover.c",
      "of a segment's two headers a damaged one stays as it is",
      ("*anew = journaled || (size_class > 0 && !whole);", "*anew = journaled;"),
      by=[ROT])
fault("damaged-id-unnoticed", "storage/txn/verify.c",
      "an item whose database id is damaged is taken for one of a database that is gone",
      ("past && !was_living(file, page, slot, item, length) ?", "past ?"),
      by=[ROT])
fault("unreadable-node-given-up", "storage/recovery/recover.c",
      "what a node names is free when the node could not be read at the start",
      ("if (scan->error) result = STORE_IO; else", "if (!scan->error)"),
      by=[ROT])
fault("used-slots-taken-for-free", "storage/recovery/recover.c",
      "what recovery found in a slot does not keep the slot from being used again",
      ("page_file_keep_slot(&partition->file, page, slot); if (item->flags & FORMAT_KEY_TREE)",
       "if (item->flags & FORMAT_KEY_TREE)"),
      by=[CUTS, POWERCUT])
fault("used-runs-taken-for-free", "storage/recovery/recover.c",
      "runs of large values are used again after a start",
      ("if (extent->page == 0) return true;", "return true;"),
      by=[RANDOM, CUTS, POWERCUT])
fault("nodes-not-followed", "storage/recovery/recover.c",
      "only what a root names itself is kept, not what its nodes do",
      ("if (root.depth > 0 && extent.page && kept && !remember_node(scan, &extent)) return false;",
       "(void)kept;"),
      by=[UPLOAD, RANDOM])

# ---- checkpoints and write-behind ----

fault("slabs-not-flushed", "storage/maintenance/writeback.c",
      "the journal's tail moves before the pages are durable",
      ("error = disk_flush(store->maintenance_queue, store->partitions[i].file.file);", "error = 0;"),
      by=[CUTS, POWERCUT])
fault("extent-headers-not-flushed", "storage/maintenance/writeback.c",
      "the journal's tail moves before the segment headers of large values are durable",
      ("return error ? error : disk_flush(store->maintenance_queue, store->extents.file);",
       "return error;"),
      by=[CUTS, POWERCUT])
fault("tail-before-flush", "storage/maintenance/writeback.c",
      "the superblock is written before the pages are flushed",
      ("int error = flush_files(store);", "int error = 0;"),
      ("error = superblock_write(&store->superblock);",
       "error = superblock_write(&store->superblock); "
       "if (!error) error = flush_files(store);"),
      by=[CUTS, POWERCUT])
fault("page-before-its-commit", "storage/maintenance/writeback.c",
      "a page is written before its newest commit is durable",
      ("batch->newest <= journal_durable(&store->journal) || writeback_sync(store, batch->newest);", "true;"),
      by=[CUTS, POWERCUT])
fault("page-skipped", "storage/maintenance/writeback.c",
      "a checkpoint leaves out the page behind each one it writes",
      ("*cursor = page + 1;", "*cursor = page + 2;"),
      by=[CUTS, POWERCUT, RANDOM])
fault("extent-headers-not-written", "storage/maintenance/maintenance.c",
      "a checkpoint leaves out the segment headers of large values",
      ("if (good && write_page_file(store, &store->extents, batch))", "if (good)"),
      by=[CUTS, POWERCUT, RANDOM])
fault("changed-while-written", "storage/maintenance/writeback.c",
      "a frame under way to the disk is not marked, so it is changed in place",
      ("frame->writing = true;", ""),
      by=[STALLS])
fault("failed-page-forgotten", "storage/maintenance/writeback.c",
      "a page that could not be written counts as clean",
      ("if (failed && frame->state == FRAME_VALID)", "if (false)"),
      by=[FAULTS])
fault("undurable-page-forgotten", "storage/maintenance/writeback.c",
      "a page whose commit the journal could not take counts as written",
      ("release(file, batch, error || !durable);", "release(file, batch, error);"),
      by=[FAULTS])
fault("tail-too-far", "storage/maintenance/writeback.c",
      "the tail names the journal's end instead of where it stood when the checkpoint began",
      ("super->tail_position = mark->position;",
       "struct journal_mark end; journal_mark(&store->journal, &end); mark = &end; "
       "super->tail_position = mark->position;"),
      by=[CUTS, POWERCUT])
fault("ring-released-early", "storage/maintenance/writeback.c",
      "the journal is written over before the superblock says that recovery begins behind",
      ("if (!error) error = superblock_write(&store->superblock);",
       "journal_release(&store->journal, mark); "
       "if (!error) error = superblock_write(&store->superblock);"),
      by=[STALLS])
fault("flush-before-its-commit", "storage/journal/journal.c",
      "a checkpoint has the databases as a commit left them that is not written yet",
      (".databases = journal->sealed_databases};", ".databases = journal->databases};"),
      by=[STALLS])
fault("superblock-not-durable", "storage/journal/superblock.c",
      "the superblock is written without durability",
      ("super->sequence % 2 * PAGE_SIZE, true)", "super->sequence % 2 * PAGE_SIZE, false)"),
      by=[CUTS, POWERCUT])
fault("superblock-in-place", "storage/journal/superblock.c",
      "the only valid copy of the superblock is overwritten",
      ("super->sequence % 2 * PAGE_SIZE, true)", "0, true)"),
      by=[CUTS, POWERCUT, FAULTS])
fault("superblock-unchecked", "storage/journal/superblock.c",
      "a damaged copy of the superblock is believed",
      ("copy->checksum == checksum_of(copy) &&", ""),
      by=[FAULTS, CUTS, POWERCUT])
fault("superblock-blank", "storage/journal/superblock.c",
      "that the second copy of a new directory is lost passes for that it was not written yet",
      ("return is_valid(a) && is_valid(b) &&", "return"),
      by=[LOST])
fault("header-blank", "storage/recovery/recover.c",
      "a segment whose header reads as zeros is taken for a blank one",
      ("if (!emptied && has_lost_header(scan, file, segment, buffer->bytes))", "if (false)"),
      by=[LOST])
fault("header-blank-though-journaled", "storage/recovery/recover.c",
      "a segment of zeros that the journal has something for is taken for a blank one",
      ("return !disk_is_blank(bytes, SEGMENT_BYTES) || first_redo(scan, file, segment);", "return !disk_is_blank(bytes, SEGMENT_BYTES);"),
      by=[LOST])
fault("rest-grown-over", "storage/maintenance/maintenance.c",
      "a file that was cut within a segment grows over what is left of it",
      ("if (size == begin) return 0;", "if (size >= begin) return 0;"),
      by=[LOST])
fault("new-over-slabs", "storage/journal/superblock.c",
      "where superblock and journal are lost, a new store is made over the slabs",
      ("if (!file_is_blank(block, name)) return name;", "(void)0;"),
      by=[FAULTS])
fault("base-believed", "storage/recovery/index_load.c",
      "the time base of an index checkpoint is believed",
      ("|| !base_is_sound(loading, head.expiry_base_ms))", ")"),
      by=[INDEX_FILE])
fault("expiring-count-believed", "storage/recovery/index_load.c",
      "the number of keys that expire in an index checkpoint is believed",
      ("keys == head->entries && (uint32_t)(head->expiries - expires) == head->wakes",
       "keys == head->entries"),
      by=[INDEX_FILE])
fault("wakes-lost-at-the-start", "storage/recovery/recover.c",
      "a scan at the start does not enter wake times",
      ("(wakes && !ttl_add(&partition->ttl, hash_slot, tag, wake)) ||", ""),
      by=["test_hash_expiry.py::test_times_outlive_the_server"])
fault("wakes-nobody-under-its-new-name", "storage/exec/txn.c",
      "a packed value that is renamed forgets its wake time",
      ("store_set_wake(txn, key, item->wake_ms);", "(void)0;"),
      by=["test_hash_expiry.py::test_times_of_a_copy_wake_by_themselves"])
fault("journal-beyond-memory", "storage/journal/journal.c",
      "a large ring fills up, whatever memory a start after a crash has for it",
      ("atomic_store(&journal->bound, bytes > least ? bytes : least);",
       "atomic_store(&journal->bound, bytes > least ? UINT64_MAX : UINT64_MAX - 1);"),
      by=["test_memory.py::test_a_start_after_a_crash_stays_within_the_bound"])
fault("lost-runs-all-logged", "storage/recovery/recover.c",
      "a line is logged for each of however many lost runs",
      ("if (scan->lost_runs++ >= LOST_RUNS_LOGGED) return;", "scan->lost_runs++;"),
      by=[LOST])
fault("superblock-believed", "storage/journal/superblock.c",
      "sizes and places in a superblock with a right checksum are believed",
      ("copy->checksum == checksum_of(copy) && is_sound(copy);", "copy->checksum == checksum_of(copy);"),
      by=[TINY_BELIEVED])
fault("operation-believed", "storage/recovery/redo.c",
      "an operation's length leads beyond its record",
      ("if (end - at < (ptrdiff_t)padded) return STORE_CORRUPT;", ""),
      by=[TINY_BELIEVED])
fault("class-believed", "storage/recovery/redo.c",
      "the journal gives a segment a class that there is not",
      ("return operation->slot == 0 || page_file_class_exists(file, operation->slot);", "return true;"),
      by=[TINY_BELIEVED])
fault("slot-believed", "storage/recovery/recover.c",
      "the journal names a slot that the page does not have",
      ("if (redo->slot >= format_class_slots(size_class)) return false;", ""),
      by=[TINY_BELIEVED])
fault("node-believed", "storage/format/format.c",
      "a node with a right checksum is believed",
      ("node_is_sound((const struct format_node *)item);", "true;"),
      by=[TINY_BELIEVED])
fault("trees-believed", "storage/format/format.c",
      "the number of trees in an item is believed",
      ("return trees_are_sound(format_payload(item), item->payload_len);", "return true;"),
      by=[TINY_BELIEVED])
fault("key-depth-believed", "storage/format/format.c",
      "a long key's root is believed to be as deep as it says",
      ("return root.depth == (root.length > most);", "return true;"),
      by=[TINY_BELIEVED])
fault("flushed-believed", "storage/maintenance/sweep.c",
      "what a flushed item with a right checksum names is believed",
      ("verify_slot(&partition->file, page, item_slot, item) != SLOT_ITEM", "false"),
      by=[TINY_BELIEVED])
fault("pages-believed", "storage/maintenance/tree_purge.c",
      "a deleted collection gives back whatever pages its nodes name",
      ("return page_file_class_at(file, page) == TREE_CLASS && page % SEGMENT_PAGES != 0;", "return page > 0;"),
      by=[TINY_BELIEVED])
fault("older-superblock", "storage/journal/superblock.c",
      "the older copy of the superblock is taken",
      ("candidate->sequence > best->sequence", "candidate->sequence < best->sequence"),
      by=[CUTS, POWERCUT])
