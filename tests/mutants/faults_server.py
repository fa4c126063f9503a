"""What clients see of the server."""

from fault import Faults, POWERCUT

ALL = Faults()
fault = ALL.add

# ---- the server ----

fault("slabs-take-no-descriptors", "server/core/process.c",
      "the files of the slabs are not counted where descriptors are left for clients",
      ("workers * WORKER_DESCRIPTORS + slabs;", "workers * WORKER_DESCRIPTORS + 0 * slabs;"),
      by=["test_lifecycle.py::test_as_many_clients_as_maxclients_says"])
fault("socket-of-others-gone", "server/loop/listener.c",
      "a start takes the Unix socket's name from whoever has it",
      ("if (is_left_over) return unlink", "if (is_left_over || true) return unlink"),
      by=["test_lifecycle.py::test_a_second_start_leaves_the_running_server_its_files"])
fault("pidfile-of-others-gone", "server/core/process.c",
      "a stop removes the pidfile that another server has written since",
      ("read_number_file(name, 0) == (uint64_t)getpid())", "getpid() != 0)"),
      by=["test_lifecycle.py::test_a_server_removes_no_names_that_others_have_taken"])
fault("abstract-name-taken-for-path", "server/core/process.c",
      "systemd's socket is looked for in the file system",
      ("if (path[0] == '@') /*", "if (false) /*"),
      by=["test_lifecycle.py::test_systemd_is_told"])
fault("ends-as-if-opening", "server/main.c",
      "a stop of a server whose store is open ends the process at once",
      ("while (!atomic_exchange(&server->is_opening, false))",
       "while (!atomic_load(&server->is_opening))"),
      by=["test_lifecycle.py::test_sigterm_keeps_everything_acknowledged",
          "test_lifecycle.py::test_a_start_reads_slabs_only_when_it_must"])
fault("sleeps-for-each-refusal", "server/loop/listener.c",
      "a full server waits in vain for each client that it refuses",
      ("if (clock_msec() < listener->next_wait_ms)", "if (false)"),
      by=["test_protocol.py::test_a_full_server_refuses_quickly"])
fault("stream-of-falling-ids", "server/types/rdb_stream_read.c",
      "RESTORE takes entries of a stream in any order",
      ("return is_higher;", "return is_higher || true;"),
      by=["test_dump.py::test_what_is_broken_is_refused", "test_rdb_stream"])
fault("pending-for-two", "server/types/rdb_stream_read.c",
      "RESTORE takes a pending entry that two consumers have",
      ("pending == NULL || pending->consumer != UINT64_MAX)", "pending == NULL)"),
      by=["test_dump.py::test_what_is_broken_is_refused"])
fault("pending-for-none", "server/types/rdb_stream_read.c",
      "RESTORE takes a pending entry that no consumer has",
      ("claimed != group->pending_count ?", "claimed > group->pending_count ?"),
      by=["test_dump.py::test_what_is_broken_is_refused"])
fault("count-of-a-node-believed", "server/types/rdb_stream_read.c",
      "a count in a stream's payload asks for any amount of memory",
      ("> (uint64_t)(reader->end - reader->at) / least)", "> UINT32_MAX)"),
      by=["test_rdb_stream"])
fault("nodes-miscounted", "server/types/stream_dump.c",
      "DUMP forgets the last node of a stream in its count",
      ("collector->count += result == STORE_OK && size.entries > 0;", ""),
      by=["test_dump.py::test_groups_go_to_us_and_back"])
fault("list-lost-in-a-wait", "server/types/stream_dump.c",
      "a wait ends the list of pending entries that DUMP writes",
      ("if (result == STORE_ABSENT) { collector->in_group.has_more = false; return STORE_OK; }",
       "if (result != STORE_OK) { collector->in_group.has_more = false; "
       "return result == STORE_ABSENT ? STORE_OK : result; }"),
      by=["wait/test_dump.py::test_groups_go_to_us_and_back"])
fault("restored-step-repeated", "server/types/stream_restore.c",
      "a run that has to begin again goes on where the discarded one was",
      ("restore->filled_to = restore->at; *stream", "*stream"),
      by=["wait/test_dump.py::test_large_streams_in_steps"])
fault("names-without-a-look", "server/types/stream_restore.c",
      "RESTORE compares many long names of groups in one piece",
      ("result == STORE_OK ? call_yield(filling->call) : result;", "result;"),
      by=["test_gaps.py::test_a_stream_whose_groups_have_names_alike_is_restored"])
fault("digest-by-numbers", "server/commands/cmd_debug_digest.c",
      "DEBUG DIGEST tells alike streams apart by the numbers of their groups",
      ("const uint64_t words[] = {group->last.ms, group->last.seq, group->read};",
       "const uint64_t words[] = {group->last.ms, group->last.seq, group->number};"),
      by=["test_debug.py::test_digests_of_consumer_groups"])
fault("reply-before-durable", "server/net/conn_output.c",
      "under `always` a reply leaves before its commit is durable",
      ("shown > store_durable(server->store)", "false"),
      by=["test_lifecycle.py::test_kill_9_loses_nothing_acknowledged"])
fault("round-without-end", "server/core/round_clock.c",
      "a pipeline of long commands runs in one round, however long that takes",
      ("return now - worker->round_began_nsec > ROUND_NSEC_MAX;", "return false;"),
      by=["test_gaps.py::test_a_pipeline_of_long_commands_is_many_rounds"])
fault("run-without-end", "server/exec/long_run.c",
      "a command that changes much is one round, however long that takes",
      ("if (now - request->looked_ns < (request->is_on_fiber ? TURN_NSEC : FIRST_NSEC)) return STORE_OK;",
       "if (now > 0) return STORE_OK;"),
      by=["test_gaps.py::test_a_long_transaction_is_many_rounds"])
fault("stack-uncounted", "server/base/fiber.c",
      "the stack of a command that runs for long counts in no account",
      ("fiber->bytes = bytes; } /* Stacks", "fiber->bytes = bytes; atomic_store(&pool->bytes, 0); } /* Stacks"),
      by=["test_fiber"])
fault("format-without-a-look", "server/script/script_struct.c",
      "a format of struct is read in one run, however long it is",
      ("check_clock(format); while (", "while ("),
      by=["test_gaps.py::test_long_formats_of_struct"])
fault("exec-without-a-look", "server/commands/cmd_multi.c",
      "EXEC runs all its commands in one round",
      ("if (++place % LOOK_EVERY == 0)", "if (++place == 0)"),
      by=["test_gaps.py::test_a_long_transaction_is_many_rounds"])
fault("yield-forgets", "storage/exec/request.c",
      "a run that gives way goes on without what it has written",
      ("if (again == AGAIN_AFTER_YIELD) {", "if (again == AGAIN_AFTER_YIELD) { tree_discard(txn);"),
      by=["test_gaps.py::test_a_long_transaction_is_many_rounds"])
fault("removal-without-a-look", "server/types/zset.c",
      "a range of a sorted set is removed in one round",
      ("return packed_yield(zset->call, &zset->packed, i);", "return STORE_OK;"),
      by=["test_gaps.py::test_a_change_of_many_elements_is_many_rounds"])
fault("change-without-a-look", "server/types/members.c",
      "members of sets and hashes are changed in one round",
      ("return packed_yield(call, &members->packed, i);", "return STORE_OK;"),
      by=["test_gaps.py::test_a_change_of_many_elements_is_many_rounds"])
fault("all-pairs-before-the-first-error", "server/commands/cmd_config.c",
      "CONFIG SET looks all pairs up, however many, before it refuses a repeated one",
      ("if (is_repeated(call, 2 + i * 2))", "if (i + 1 == count && is_repeated(call, 2 + i * 2))"),
      by=["test_admin.py::test_the_first_invalid_name_ends_config_set"])
fault("words-of-any-bytes", "server/config/config_directive.c",
      "CONFIG SET takes line breaks in a list of words, and CONFIG REWRITE writes them into the file",
      ("if (good && !are_plain(argc, argv))", "if (good && argc > 1000 && !are_plain(argc, argv))"),
      by=["test_config"])
fault("acl-file-unread", "server/config/config_table.c",
      "a server starts with an ACL file that it does not read",
      ("return text[0] == '\\0' ? NULL : \"ACL users", "return text[0] != '\\1' ? NULL : \"ACL users"),
      by=["test_config"])
fault("names-of-the-start", "server/config/config_file.c",
      "relative names are those of the directory that the server was started in",
      ("&& chdir(dir) == 0)", "&& dir[0] != 0)"),
      by=["test_lifecycle.py::test_names_are_relative_to_the_data_directory"])
fault("password-among-the-processes", "server/config/config_file.c",
      "a password stays on the command line",
      ("memset(argv[i], 'x', strlen(argv[i]));", ";"),
      by=["test_admin.py::test_the_command_line_tells_no_passwords"])
fault("bitop-without-a-look", "server/commands/cmd_bitmap.c",
      "BITOP of short strings combines all of them in one round",
      ("if (result == STORE_OK) result = call_yield_at(call, i);", ""),
      by=["test_gaps.py::test_bitop_of_many_sources_is_many_rounds"])
fault("bitop-keeps-its-sources", "server/commands/cmd_bitmap.c",
      "BITOP has all of its short sources in memory",
      ("bitop->length); (void)store_forget(call->txn, &mark);", "bitop->length);"),
      by=["test_gaps.py::test_bitop_of_many_sources_is_many_rounds"])
fault("bitop-sources-stay-in-pages", "server/commands/cmd_bitmap.c",
      "BITOP reads sources that it has found before others had their turns",
      ("if (are_few(bitop)) { *source", "if (i < YIELD_EVERY) { *source"),
      by=["wait/test_gaps.py::test_bitop_of_many_sources_is_many_rounds"])
fault("class-read-for-each-character", "server/base/glob.c",
      "a class of a pattern is read from its beginning for each character of a text",
      ("glob->class_count > 0 ? find_class(glob, at) : NULL", "glob->class_count > SIZE_MAX / 2 ? find_class(glob, at) : NULL"),
      by=["test_glob"])
fault("escapes-of-long-classes-fold", "server/base/glob.c",
      "an escaped character of a long class is taken for a range up to it",
      ("set->is_exact[(uint8_t)pattern[++i]] = true;", "add_range(set, (signed char)pattern[i + 1], (signed char)pattern[i + 1]); i++;"),
      by=["test_glob"])
fault("list-without-a-look", "server/types/list.c",
      "elements are removed from a list, or a list is written anew, in one round",
      ("return packed_yield(list->call, &list->packed, i);", "return STORE_OK;"),
      by=["test_gaps.py::test_a_removal_from_a_long_list_is_many_rounds"])
fault("lrem-without-a-look", "server/commands/cmd_list_search.c",
      "LREM removes all matches in one round",
      ("result = list_yield(list, i);", ";"),
      by=["test_gaps.py::test_a_removal_from_a_long_list_is_many_rounds"])
fault("positions-stay-in-memory", "server/commands/cmd_list_search.c",
      "the reply of LPOS is kept in memory, however many positions it has",
      ("collector->is_tail = search->is_replied;", ""),
      by=["test_spilled_replies.py::test_very_many_positions"])
fault("small-without-a-look", "server/types/packed.h",
      "very many arguments for a small collection are one round",
      ("if (i % YIELD_EVERY !=", "if (packed->len > 0 || i % YIELD_EVERY !="),
      by=["test_gaps.py::test_many_arguments_for_a_small_collection_are_many_rounds"])
fault("small-stays-in-its-page", "server/types/packed.h",
      "a command goes on in the page of a small collection, although it has given way",
      ("return packed_keep(packed, call->txn) ? call_yield(call) : STORE_NO_MEMORY;",
       "return call_yield(call);"),
      by=["wait/test_gaps.py::test_many_arguments_for_a_small_collection_are_many_rounds"])
fault("scores-without-a-look", "server/commands/cmd_zset.c",
      "all scores of ZADD are checked in one round",
      ("result = call_yield_at(call, i / 2);", ""),
      by=["test_gaps.py::test_the_scores_of_zadd_are_checked_in_many_rounds"])
fault("parked-without-a-look", "server/exec/runner.c",
      "commands that have waited behind another one run in one round, however long that takes",
      ("executor_start(request); conn_note_command(request->conn, request->named); if (result",
       "executor_start(request); if (result"),
      by=["test_gaps.py::test_commands_behind_one_that_waits_are_many_rounds"])
fault("put-off-for-ever", "server/loop/worker_loop.c",
      "a connection that was put off to the next round has no turn in it",
      ("worker_visit_urgent(worker); take_up_again(worker); pubsub_hear_again(worker);",
       "worker_visit_urgent(worker); pubsub_hear_again(worker);"),
      by=["test_gaps.py::test_every_client_of_a_long_round_goes_on"])
fault("lcs-at-once", "server/commands/cmd_lcs.c",
      "a table of 128 million cells is filled in one run",
      ("if (!fill(kept, LCS_STEP_CELLS * (call->outer != NULL ? STRING_NESTED_STEPS : 1)))",
       "if (!fill(kept, SIZE_MAX / 2))"),
      by=["test_gaps.py::test_lcs_of_long_strings"])
fault("sigterm-insists", "server/core/process.c",
      "a second SIGTERM ends the server at once",
      ("if (is_stopping && number == SIGINT)", "if (is_stopping)"),
      by=["test_lifecycle.py::test_a_stop_that_is_asked_for_again_keeps_everything"])
fault("handler-outlives-the-kill", "server/script/script_base.c",
      "xpcall's handler is run for the error that ends a script",
      ("static int handle_error(lua_State *lua) { if (script_state_of(lua)->is_over)",
       "static int handle_error(lua_State *lua) { if (false)"),
      by=["test_busy.py::test_what_catches_errors_does_not_catch_a_kill"])
fault("libraries-flushed", "storage/txn/databases.c",
      "the libraries are taken for a flushed database's",
      ("return id != FORMAT_HIDDEN && id != FORMAT_META &&", "return id != FORMAT_HIDDEN &&"),
      by=["test_functions.py::test_libraries_survive_a_sweep"])
fault("variables-of-discarded-runs", "server/script/script_function.c",
      "what a discarded run has left in variables of its library stays",
      ("if (are_variables_void(state->worker, call))", "if (false)"),
      by=["wait/test_functions.py::test_a_discarded_run_leaves_no_variables",
          "test_functions.py::test_a_discarded_run_leaves_no_variables"])
fault("changed-variables-unseen", "server/script/script_function.c",
      "tables among a library's variables are taken for constants",
      ("bool have = library->has_tables || library->has_changed;", "bool have = library->has_changed;"),
      by=["wait/test_functions.py::test_a_discarded_run_leaves_no_variables",
          "test_functions.py::test_a_discarded_run_leaves_no_variables"])
fault("variables-left-by-exec", "server/script/script_function.c",
      "EXEC does not repeat a function whose variables are set back",
      ("state->call->nested_calls->has_effects = true;", ""),
      by=["wait/test_functions.py::test_variables_in_a_transaction"])
fault("stale-libraries-called", "server/script/script_function.c",
      "a worker calls the functions that it has loaded, whatever has been loaded since",
      ("return state->functions_stamp == stamp_now(call->server);",
       "return state->functions_stamp != 0;"),
      by=["test_functions.py::test_load_is_seen_by_all_workers"])
fault("stale-flags-believed", "server/script/script_function.c",
      "the flags that a worker has loaded count, whatever has been loaded since",
      ("function != NULL && state->functions_stamp == stamp_now(worker->server)", "function != NULL"),
      by=["test_pause.py::test_functions_that_no_worker_has_called"])
fault("flags-not-at-start", "server/commands/function_value.c",
      "after a restart, functions that nobody has called count as writing",
      ("if (!show_names(&libraries, &shown)) /*", "if (false) /*"),
      by=["test_pause.py::test_functions_after_a_restart"])
fault("libraries-unbounded", "server/commands/function_value.c",
      "libraries may take all memory",
      ("if (bytes <= addition->most)", "if (true)"),
      by=["test_functions.py::test_a_library_must_fit"])
fault("functions-without-memory", "server/script/script_run.c",
      "functions run without memory, whatever their flags",
      ("(flags & (SCRIPT_NO_WRITES | SCRIPT_ALLOW_OOM)) == 0 &&", "false &&"),
      by=["test_functions.py::test_without_memory"])
fault("load-without-an-end", "server/script/script_busy.c",
      "code that FUNCTION LOAD runs may run for ever",
      ("if (commandstats_clock() > state->register_until)", "if (false)"),
      by=["test_functions.py::test_bad_code"])
fault("kills-of-any-kind", "server/script/script_busy.c",
      "SCRIPT KILL ends a function",
      ("atomic_load_explicit(&script->is_function, memory_order_relaxed) != is_function)", "false)"),
      by=["test_functions.py::test_kill"])
fault("insert-without-a-look", "server/script/script_table.c",
      "table.insert moves two thousand million elements without a look at SCRIPT KILL",
      ("if (to % PIECE == 0)", "if (false)"),
      by=["test_busy.py::test_functions_of_c_are_ended"])
fault("texts-of-eval-unbounded", "server/script/script.c",
      "EVAL's scripts are kept, however long they are",
      ("|| atomic_load(&scripts->bytes) > most))", "))"),
      by=["test_memory_limits.py::test_texts_of_scripts_are_bounded"])
fault("compiled-for-ever", "server/script/script_run.c",
      "compiled scripts are kept until there is no memory for another one",
      ("if (state->bytes > own && state->compiled > 0)", "if (false)"),
      by=["test_memory_limits.py::test_texts_of_scripts_are_bounded"])
fault("slowlog-unbounded", "server/exec/slowlog.c",
      "entries of SLOWLOG take as much memory as there are",
      ("(slowlog->bytes > most_bytes && slowlog->count > 1)", "false"),
      by=["test_slowlog.py::test_it_takes_a_sixteenth_of_memory_at_most"])
fault("slowlog-script-unbounded", "server/exec/nested.c",
      "all slow commands of a script stay in memory for SLOWLOG",
      ("nested_calls->slow_bytes + nested->bytes > SLOW_BYTES_MAX", "false"),
      by=["test_slowlog.py::test_the_commands_of_a_long_script_take_little_memory"])
fault("reads-of-exec-kept", "server/commands/cmd_multi.c",
      "what a read of EXEC's has taken stays until the last command of all",
      ("if (result == STORE_OK && is_read)", "if (false)"),
      by=["test_multi.py::test_reads_leave_no_memory_behind"])
fault("tree-buffer-forgotten", "storage/txn/txn_memory.c",
      "a tree goes on with a buffer that was given back with the command that had asked for it",
      ("txn->trees.buffers != mark->tree_buffers ||", ""),
      by=["test_script.py::test_trees_are_read_by_many_commands_of_one_run"])
fault("node-copy-forgotten", "storage/tree/tree_edit.c",
      "a changed node goes on with a copy that was given back with the read that had asked for it",
      ("    tree->txn->trees.buffers++;\n", ""),
      by=["test_script.py::test_reads_between_writes_of_a_collection",
          "test_multi.py::test_reads_between_writes_of_a_collection"])
fault("names-uncounted", "server/net/conn.c",
      "the names of clients are in nobody's account",
      (" + conn->session.text_bytes;", ";"),
      by=["test_memory_limits.py::test_names_of_clients_count"])
fault("pops-for-nobody", "server/exec/long_run.c",
      "a client that was killed while it waited for an element still takes it",
      ("(request->is_read || request->may_block) &&", "request->is_read &&"),
      by=["test_blocking.py::test_nothing_is_popped_for_a_killed_client"])
fault("commit-for-nobody", "server/exec/executor.c",
      "a client that is killed before the commit of its pop still takes the element",
      ("request->may_block ? long_run_is_wanted : NULL;", "NULL;"),
      by=["test_blocking.py::test_nothing_is_moved_for_a_client_that_is_killed_before_the_commit"])
fault("long-pop-for-nobody", "server/exec/long_run.c",
      "a client that is killed between two slices of its pop still takes the elements",
      ("return is_in_vain(request) ? STORE_CANCELLED : STORE_OK;", "return STORE_OK;"),
      by=["test_blocked"])
fault("waiter-looks-in-the-past", "server/exec/blocked.c",
      "a client that is woken sees its key as it was when the worker's round began",
      ("store_clock_ms(request->call.server->store); /*", "worker_now(waiter->worker); /*"),
      by=["test_blocking.py::test_a_key_that_expires_within_its_own_transaction_wakes_nobody"])
fault("bind-refused-and-gone", "server/loop/listener.c",
      "where other addresses cannot be had, those that were left are not taken again",
      ("!good && is_same_port && !open_tcp(listener, listener->port, listener->addresses)",
       "!good && is_same_port"),
      by=["test_admin.py::test_a_port_that_is_taken_is_refused_and_nothing_changes"])
fault("everysec-never", "storage/maintenance/writeback.c",
      "nothing is written by the clock",
      ("if (journal_age(&store->journal, env_clock_ms()) >= limit)", "if (false)"),
      by=["test_lifecycle.py::test_kill_9_keeps_a_prefix"])

fault("no-means-never", "storage/maintenance/writeback.c",
      "under `no` nothing is written by the clock",
      ("sync == STORE_SYNC_NO ? NO_SYNC_AGE_MS :", "sync == STORE_SYNC_NO ? INT64_MAX :"),
      by=[POWERCUT])

# ---- collections ----

fault("member-by-its-hash-alone", "server/types/member_tree.c",
      "members of one hash are taken for each other",
      ("*found = same(member->name, name);", "*found = true;"),
      by=["test_cmd_set_weak"], quick=True)
fault("scan-ends-at-hash-0", "server/types/members.c",
      "a scan whose first part ends among members of hash 0 is over",
      ("if (result != STORE_OK || *end == members_count(members))",
       "if (result != STORE_OK || *next == 0)"),
      by=["test_cmd_hash_weak"])
fault("scan-splits-a-cursor", "server/types/members.c",
      "a part of a scan ends between members that share a cursor",
      ("result = cursor_rank(members, *next, end);", ""),
      by=["test_cmd_hash_weak"])
fault("step-forgotten", "server/types/members.c",
      "after a step a walk begins again, behind what it has collected",
      ("store_tree_seek_rank(members->tree, collector->at, &cursor)",
       "store_tree_seek_rank(members->tree, 0, &cursor)"),
      by=["test_cmd_set"])
fault("listpack-in-hash-order", "server/types/members.h",
      "what Redis keeps as a listpack is shown in the order of a hash",
      ("(members->type & ITEM_TYPE_MASK) != TYPE_ZSET;", "false;"),
      by=["test_order.py::test_a_hash_is_shown_as_it_was_made"])
fault("order-of-few", "server/types/members_order.c",
      "members are sorted when a step has noted some of them",
      ("order->is_sorted = result == STORE_OK && order->count == order->capacity;",
       "order->is_sorted = result == STORE_OK;"),
      by=["test_order.py::test_thresholds_count_as_they_are_when_it_is_written"])
fault("unnumbered-behind-numbered", "server/types/member_tree.c",
      "a member without a number stands behind others of its hash that have one",
      ("if (result == STORE_OK && sequence == 0 && sought->has_namesakes)", "if (false)"),
      by=["test_cmd_hash_weak"])
fault("packed-length-trusted", "server/types/packed.c",
      "the length behind an entry is not compared with the one before it",
      ("== size && mirrored == len;", "> 0;"),
      by=["test_packed"])
fault("expiry-lost-with-growth", "server/types/members.c",
      "a collection that outgrows its item forgets when it expires",
      ("1 + is_timed, members->item.expire_ms);", "1 + is_timed, STORE_NO_EXPIRY);"),
      by=["test_cmd_hash"])

# ---- fields of hashes that expire ----

fault("expired-field-shown", "server/types/members.c",
      "a field is found after its time",
      ("*found = *found && !members_is_due(members, member->expire_ms);", ""),
      by=["test_cmd_hash_expiry"])
fault("set-keeps-the-expiry", "server/types/members.c",
      "HSET leaves the expiry of a field in a tree",
      ("(members->keeps_expiry && !was_due))", "!was_due)"),
      by=["test_cmd_hash_expiry"])
fault("kept-beyond-its-time", "server/types/members.c",
      "a field that was overwritten with KEEPTTL after its time has expired at once",
      ("members->keeps_expiry && !is_due);", "members->keeps_expiry);"),
      by=["test_cmd_hash_expiry"])
fault("removed-but-still-ordered", "server/types/members.c",
      "HDEL leaves the field's expiry in the order",
      ("result = members_forget_expiry(members, &member);", "result = STORE_OK;"),
      by=["test_cmd_hash_expiry"])
fault("namesakes-out-of-order", "server/types/member_tree.c",
      "of two fields with one hash one gets another key in its place, though the order is another one then",
      ("return alone ? store_tree_rekey(cursor, key, len)", "return alone || true ? store_tree_rekey(cursor, key, len)"),
      by=["test_cmd_hash_expiry_weak"])
fault("woken-too-early-or-never", "server/types/members_expiry.c",
      "the earliest expiry is not sought again when it is gone",
      ("members->is_earliest_gone |= member->expire_ms == members->wake_ms;", ""),
      by=["test_cmd_hash_expiry"])
fault("fields-wake-nobody", "server/types/members.c",
      "a hash's wake time is not stored",
      ("store_set_wake(call->txn, members->key, members->wake_ms);", "(void)0;"),
      by=["test_hash_expiry.py::test_what_has_expired_goes_by_itself"])
fault("copy-wakes-nobody", "server/types/copy_trees.c",
      "a copied tree forgets when its fields expire",
      ("store_set_wake(call->txn, to, item->wake_ms);", "(void)0;"),
      by=["test_hash_expiry.py::test_times_of_a_copy_wake_by_themselves"])
fault("restored-wakes-nobody", "server/types/bulk_store.c",
      "RESTORE of a large hash forgets when its fields expire",
      ("store_set_wake(call->txn, key, wake_ms);", "(void)0;"),
      by=["test_hash_expiry.py::test_a_dump_has_the_times"])
fault("expiry-beyond-the-range", "server/types/rdb_read.c",
      "RESTORE takes any expiry of a field",
      ("return expire_ms >= 0 && expire_ms <= RDB_EXPIRY_MAX;", "return expire_ms >= -1000;"),
      by=["test_hash_expiry.py::test_what_is_broken_is_refused"])
fault("as-many-fields-as-stated", "server/types/rdb_read.c",
      "RESTORE takes memory for as many fields as a payload states",
      ("count > (uint64_t)(reader->end - reader->at) / 3)", "false)"),
      by=["test_hash_expiry.py::test_what_is_broken_is_refused"])
fault("silent-fields", "server/pubsub/keyspace_events.c",
      "nobody is told of fields that expire",
      ("tell_of_fields(keyspace_events, classes, change);", "(void)classes;"),
      by=["test_hash_expiry.py::test_events"])

fault("flowed-and-forgotten", "server/net/conn_output.c",
      "of a reply that leaves in parts the limit counts only what is unsent",
      ("bytes > conn->streamed_bytes ? bytes : conn->streamed_bytes;", "bytes;"),
      by=["test_streamed_replies.py::test_one_reply_over_the_output_limit"])

# ---- spooled input ----

fault("weights-of-another-run", "server/exec/written.c",
      "a script's SORT keeps weights that another run has written",
      ("|| may_read_undeclared(call->command)) {", ") {"),
      by=["test_script.py::test_what_sort_has_weighed_is_of_its_own_run"])
fault("figures-of-another-run", "server/commands/cmd_script.c",
      "INFO counts commands that only a discarded run of a script has called",
      ("nested_calls_end(call->nested_calls);", ";"),
      by=["test_script.py::test_figures_leave_out_what_only_earlier_runs_have_called"])
fault("walk-of-another-run", "server/exec/nested.c",
      "a script's call goes on where it was, though others have written before it",
      ("bool is_other = path != nested->path && (", "bool is_other = false && ("),
      by=["test_script.py::test_what_a_walk_has_found_is_of_its_own_run"])
fault("script-of-exec-repeated", "server/exec/nested.c",
      "a script that has ended runs again in each step of a walk after it in EXEC",
      ("return !inner->has_effects && !monitor_any(call->server);", "return false;"),
      by=["test_multi.py::test_a_script_that_only_reads_runs_once_beside_a_walk_in_steps"])
fault("effects-of-a-kept-script-lost", "server/script/script_redis.c",
      "the effects of a script in EXEC are lost when a command after it has to wait",
      ("if ((command->flags & CMD_READONLY) == 0 || command_has_effect(command))", "if (false)"),
      by=["test_multi.py::test_a_script_with_effects_before_a_walk_in_steps"])
fault("watch-checked-once", "server/exec/executor.c",
      "what a transaction has found holds for the next one, that locks all keys",
      ("nested_calls_begin_anew(request->call.nested_calls);", ";"),
      by=["test_multi.py::test_a_watched_key_changes_before_all_keys_are_locked"])
fault("input-left-where-it-is", "server/loop/conn_turn.c",
      "a client that does not read its replies is not read from either",
      ("!can_read(conn) && !is_filling(conn) && runner_is_stuck(conn);", "false;"),
      by=["test_pipelines.py::test_the_end_of_input_is_behind_what_was_set_aside"])
fault("newest-input-first", "server/net/spool.c",
      "what is in memory is read before what is on the device",
      ("if (STAILQ_EMPTY(&spool->chunks)) taken += take_tail(", "taken += take_tail("),
      by=["test_pipelines.py::test_written_before_it_is_read",
          "test_pipelines.py::test_everything_in_the_middle"])
fault("spool-keeps-its-room", "server/net/spool.c",
      "what was read keeps its place on the device",
      ("store_upload_close(chunk->upload); count(", "count("),
      by=["test_pipelines.py::test_the_room_comes_back"])
fault("spool-in-short-parts", "server/net/spool.c",
      "where memory is short, input goes to the device in short parts however long it is",
      ("is_short && spool->chunk_count < PIECE / CHUNK_COST ?", "is_short ?"),
      by=["test_pipelines.py::test_many_long_pipelines_at_once"])

# ---- replies that leave while their command runs, and what is to come before other commands ----

fault("pushes-within-a-reply", "server/net/conn_output.c",
      "a message stands where it came, in the middle of a reply that flows",
      ("bool is_held = conn->is_streaming || conn->worker->apart == conn;",
       "bool is_held = conn->worker->apart == conn;"),
      by=["test_streamed_replies.py::test_pushes_do_not_come_in_between"])
fault("time-stands-still", "server/commands/cmd_server.c",
      "a busy script that waits for time to pass waits for ever",
      ("if (call->outer != NULL && !is_busy)", "if (call->outer != NULL)"),
      by=["test_busy.py::test_time_passes_for_a_busy_script"])
fault("tells-itself-later", "server/exec/executor.c",
      "a client's messages to itself come after the replies of its next commands",
      ("if (pubsub_is_subscriber(&conn->session.pubsub)) conn_put_off(conn);", ""),
      by=["test_pubsub.py::test_a_client_that_publishes_to_itself"])
fault("tells-itself-next-round", "server/loop/worker_loop.c",
      "a client that is put off goes on before it has its own messages",
      ("if (worker->put_off != NULL) /* what they have published to themselves comes first */ worker_visit_urgent(worker);", ""),
      by=["test_pubsub.py::test_a_client_that_publishes_to_itself"])
fault("expires-while-it-runs", "server/pubsub/keyspace_events.c",
      "a key that a script refreshes counts as expired when the script is done",
      ("change->old->expire_ms < change->now_ms;", "change->old->expire_ms < change->now_ms + 60000;"),
      by=["test_notifications.py::test_a_key_that_a_script_keeps_has_not_expired"])
fault("batch-has-one-error", "server/exec/runner.c",
      "of replies that a failed journal withholds, a batch's count as one",
      ("uint32_t count = request->is_streamed ? 0 : batch_length(&request->call);",
       "uint32_t count = request->is_streamed ? 0 : 1;"),
      by=["test_failing_disk.py::test_equal_commands_of_one_packet_have_an_error_each"])
fault("session-of-a-failed-exec", "server/exec/executor.c",
      "SELECT in a transaction that has failed stays in effect",
      ("effects_drop(&request->effects); nested_calls_undo(&request->call);",
       "effects_drop(&request->effects);"),
      by=["test_failing_disk.py::test_a_transaction_that_fails_leaves_the_session_alone"])
fault("values-read-for-names", "server/types/members.c",
      "HSCAN reads the values of fields that do not match",
      ("members->leaves == LEAVES_ALL_VALUES ||", "false ||"),
      by=["test_memory_limits.py::test_names_are_found_without_their_values"])
fault("long-elements-at-once", "server/commands/cmd_list_search.c",
      "long elements are compared in one round, however many",
      ("if (collector_step_fills(collector, PIECE_ENTRIES)) return collector_step(call, collector);", ""),
      by=["test_gaps.py::test_long_elements_in_memory_are_compared_in_many_rounds"])
fault("messages-within-a-script", "server/net/conn_output.c",
      "a client's message stands before the replies that its busy script holds up",
      ("bool is_held = conn->is_streaming || conn->worker->apart == conn;",
       "bool is_held = conn->is_streaming;"),
      by=["test_busy.py::test_its_own_clients_messages_come_after_it"])
fault("messages-in-a-script-s-version", "server/script/script_busy.c",
      "a client's message comes in the version of RESP that its script has set",
      ("session->resp_version = state->client_version; worker->hooks", "worker->hooks"),
      by=["test_busy.py::test_its_own_clients_messages_come_after_it"])
fault("long-parts-uncounted", "server/exec/request_reply.c",
      "a long value counts only when 64 names have been looked up",
      ("part->len <= COPIED_PART || call_may_reply(call) ? STORE_OK : STORE_NO_MEMORY;", "STORE_OK;"),
      by=["test_memory_limits.py::test_one_value_that_a_script_reads_often"])
fault("nested-walks-uncounted", "server/exec/collector.c",
      "names that a nested walk collects count when it has ended",
      ("bool may_go_on = collected_set(&collector->collected, held_bytes(collector));",
       "bool may_go_on = collector != NULL;"),
      by=["test_memory_limits.py::test_one_value_that_a_script_reads_often"])
fault("part-before-its-turn", "server/exec/reply_stream.c",
      "parts of a reply leave before the replies of earlier commands",
      ("bool is_first = STAILQ_FIRST(&conn->requests) == request, is_short", "bool is_first = true, is_short"),
      by=["test_streamed_replies.py::test_replies_in_the_order_of_their_commands"])
fault("never-hurried", "server/exec/reply_stream.c",
      "who waits for the key of a reply that rests waits for its client",
      ("request->awaited_ms += REPLY_STREAM_PULSE_MS;", ""),
      by=["test_runner"], quick=True)
fault("suspended-without-waiters-seen", "storage/txn/key_locks.c",
      "no request is seen to wait for the keys of a suspended one",
      ("awaited = (*find_queue(partition, txn->key_locks[i].hash))->queue.waiting != NULL;",
       "awaited = false;"),
      by=["test_streamed_replies.py::test_who_waits_for_a_client_that_does_not_read"])
fault("piece-of-who-does-not-read", "server/net/conn_output.c",
      "every client that does not read keeps a piece of a value in memory",
      ("if (conn->send_blocked && !STAILQ_EMPTY(&conn->output)) give_back_piece(conn);", ""),
      by=["test_pipelines.py::test_many_who_read_late"])
fault("piece-put-back-from-its-start", "storage/exec/reader.c",
      "a piece that is put back is read again from its start",
      ("begin_at(reader, reader->handed_out + taken);", "begin_at(reader, reader->handed_out);"),
      by=["test_random"], quick=True)
fault("stream-from-its-extent", "storage/exec/reader.c",
      "a stream that begins within an extent begins with it",
      ("reader->skip = (uint32_t)(offset % FORMAT_EXTENT_BYTES);", ""),
      by=["test_streamed_replies.py::test_long_values_of_fields_and_elements"])
fault("woken-in-its-round", "server/exec/runner.c",
      "a woken client is served when all connections have had their turn",
      ("request_free(request); worker_visit_woken(conn->worker);", "request_free(request);"),
      by=["test_blocking_wakeups.py::test_the_next_command_finds_what_a_push_has_brought_about"])
fault("handed-off-is-next", "storage/txn/key_locks.c",
      "a hand-off queues behind the transactions that wait for the key",
      ("push_in(*first, &txn->handoffs);", "append(*first, &txn->handoffs);"),
      by=["test_lock_handoff"], quick=True)
fault("handed-off-goes-ahead", "storage/txn/key_locks.c",
      "a hand-off waits for the transactions that it holds up",
      ("|| !hold_up(at->txn)", "|| true"),
      by=["test_lock_handoff"])
fault("hands-on", "server/exec/blocked.c",
      "what a served client leaves is not handed on",
      ("else hand_on(queue, waiter->worker->store, waiter->request->store.shown);", ""),
      by=["test_blocked"], quick=True)
fault("waitaof-waits", "server/commands/cmd_blocking.c",
      "WAITAOF does not wait for the flush",
      ("(local == 0 || is_durable)", "(local == 0 || is_durable || true)"),
      by=["test_waitaof.py::test_what_it_has_waited_for_survives_a_kill"])

# ---- long strings ----

fault("long-string-whole", "server/types/string_walk.c",
      "a long string is loaded whole to be gone through",
      ("if (item->large && len > STRING_SHORT)", "if (false)"),
      by=["test_long_strings.py::test_bits_of_a_long_string_are_counted_and_found"])
fault("long-string-own-bytes-in-a-hole", "storage/value/extent.c",
      "what a transaction has written into a hole of a long string is not seen by its walks",
      ("uint64_t first = patch ? patch->offset /", "uint64_t first = false ? patch->offset /"),
      by=["test_long_strings.py::test_bits_are_counted_in_transactions_and_scripts"])
fault("long-result-begins-in-the-middle", "server/types/string_build.c",
      "a piece is not begun anew behind one that is made",
      ("build->source = 0;", ""),
      by=["test_long_strings.py::test_long_strings_are_combined"])
fault("holes-given-back", "storage/exec/upload.c",
      "the holes of an upload that is given up are given back as runs",
      ("if (runs->at[i].page) run_give_back(", "run_give_back("),
      by=["test_long_strings.py::test_a_long_result_that_is_not_wanted_any_more_takes_no_space"])
fault("holes-written", "server/types/string_build.c",
      "the holes of what a long string is made from are written as zeros",
      ("build->used = used_of(build->piece, build->used);",
       "memset(build->piece + build->used, 0, len - build->used); build->used = len;"),
      by=["test_long_strings.py::test_holes_of_long_strings_are_combined"])
fault("range-to-the-end", "server/exec/request_reply.c",
      "the stream of a long range goes on to the end of its value",
      ("if (part != NULL && !is_tail(part))", "if (false)"),
      by=["test_long_strings.py::test_long_ranges_are_read"])
fault("own-stream-without-its-upload", "storage/exec/reader.c",
      "a stream of what its transaction has put does not keep the upload",
      ("upload_hold(own->upload);", "(*reader)->upload = NULL;"),
      by=["test_long_strings.py::test_what_a_transaction_has_set_and_deleted_it_still_sends"])
fault("script-reads-what-it-likes", "storage/value/extent.c",
      "a script reads long strings whole, whatever memory there is",
      ("if (!may_be && !is_key)", "if (false)"),
      by=["test_long_strings.py::test_scripts_read_no_more_of_long_strings_than_memory_has_room_for"])
fault("sort-keeps-what-it-loaded", "server/commands/cmd_sort.c",
      "SORT keeps the values that BY and GET name in memory until it ends",
      ("if (sort->call->outer == NULL) store_drop_loaded(sort->call->txn);", "(void)sort;"),
      by=["test_memory.py::test_elements_are_sorted_by_long_values"])
fault("digest-keeps-what-it-loaded", "server/commands/cmd_debug_digest.c",
      "DEBUG DIGEST-VALUE keeps the long elements of a collection in memory until it ends",
      ("if (call->outer == NULL) store_drop_loaded(call->txn);", ""),
      by=["test_memory.py::test_long_elements_are_copied_and_digested_one_after_the_other"])
fault("kept-replies-count-nothing", "server/exec/nested.c",
      "replies that a script's commands keep for its next run are not counted, if short",
      ("nested->bytes += nested->kept_len; nested_calls->bytes += nested->kept_len;", ""),
      by=["test_memory.py::test_replies_that_a_script_keeps_count"])
fault("waits-count-nothing", "server/exec/runner.c",
      "what a client waits with behind BLPOP is not counted as its memory",
      ("if (request->waiter != NULL) bytes += blocked_memory(request->waiter);", ""),
      by=["test_memory.py::test_what_a_client_waits_with_counts"])
fault("small-sources-stay-in-pages", "server/commands/cmd_zset_algebra.c",
      "a union keeps pointers into the page of a small source while it yields",
      ("return members_keep(algebra->call, &algebra->sources[i].members);", "return STORE_OK;"),
      by=["wait/test_lists_and_zsets.py::test_a_union_is_sorted_whatever_its_length"])
fault("name-stays-in-a-page", "server/commands/cmd_set_algebra.c",
      "a member keeps its place in a page while others have their turns between its look-ups",
      ("if (source->tree == NULL)", "if (true)"),
      by=["wait/test_collections.py::test_the_algebra_of_many_sources"])
fault("union-looks-in-all", "server/exec/collector.c",
      "a union of many keys looks each member up in all of them",
      ("if (bytes == 0)", "if (true)"),
      by=["test_gaps.py::test_a_union_takes_time_in_proportion_to_its_keys"])
fault("index-ends-early", "server/exec/source_index.c",
      "an index of sources does not look behind another member of the same chain",
      ("continue; /* another", "return SOURCE_NONE; /* another"),
      by=["test_collections.py::test_the_algebra_of_many_sources"])
fault("algebra-without-a-look", "server/commands/cmd_set_algebra.c",
      "a member is looked up in many sets in one round",
      ("result = call_yield_at(algebra->call, i);", ";"),
      by=["test_gaps.py::test_a_few_members_are_looked_up_in_very_many_keys"])
fault("picks-count-nothing", "server/exec/collector.c",
      "the ranks of members that are picked at random are not counted as memory",
      ("collector->rank_bytes = picks * sizeof *collector->ranks;", ""),
      by=["test_memory.py::test_the_process_keeps_within_its_bound"])
fault("unfinished-parser-lent", "server/loop/conn_turn.c",
      "a parser in the middle of a command goes to another client when memory is short",
      ("enum resp_status status = conn->parser != NULL ? RESP_INCOMPLETE : RESP_COMPLETE;",
       "enum resp_status status = RESP_COMPLETE;"),
      by=["test_memory.py::test_what_arrives_when_memory_becomes_short_runs_later"])
fault("last-bytes-left", "server/loop/conn_turn.c",
      "a command whose last bytes came when memory was short waits for more bytes",
      ("conn->parser == NULL || conn->input_end - conn->input_start >= conn->parser->wanted",
       "conn->parser == NULL"),
      by=["test_memory.py::test_what_arrives_when_memory_becomes_short_runs_later"])
fault("selftest-in-one-go", "server/commands/cmd_hyperloglog.c",
      "PFSELFTEST holds its worker from its beginning to its end",
      ("if (i % STEP == 0 && i < ELEMENTS) return store_step(call->txn);", ""),
      by=["test_concurrency.py::test_the_selftest_of_hyperloglogs_lets_others_in"])

# ---- RDMA devices ----

fault("address-decides-nothing", "rdma-ext/choose.c",
      "a channel runs by the first device, whatever address its connection has come to",
      ("return WORTH_ADDRESS;", "return WORTH_FAMILY;"),
      by=["test_rdma_devices"])
fault("port-that-is-down-chosen", "rdma-ext/choose.c",
      "a channel is given to a port that is down, though another one is up",
      ("worth += WORTH_UP;", "worth += 0;"),
      by=["test_rdma_devices"])
fault("failed-device-opened-again", "rdma-ext/devices.c",
      "a device that has failed is opened again and again",
      ("return is_failed(devices, name, index) || used", "return used"),
      by=["test_rdma_devices"])
fault("wrappers-nested", "rdma-ext/channel.c",
      "each CONNECT that is dropped leaves a wrapper around the connection's transport",
      ("if (tcp->ops == &channel_transport_ops)", "if (tcp == NULL)"),
      by=["test_rdma_channel"])
fault("end-of-tcp-unseen", "rdma-ext/channel.c",
      "a client that waits behind unread input, and had asked for a channel, is not missed when it has gone",
      ("return self->tcp->ops->has_ended != NULL && self->tcp->ops->has_ended(self->tcp);", "return false;"),
      by=["test_rdma_channel"])
fault("refused-device-said-not-to-fit", "rdma-ext/verbs.c",
      "a device that may not be opened is reported as one that has no active port",
      ("else if (outcome->refused != NULL)", "else if (outcome->count < 0)"),
      by=["test_rdma_verbs"])
fault("many-gids-none", "rdma-ext/verbs.c",
      "a device with more than 256 GIDs is taken for one without any",
      ("size <= GIDS_MAX;", "size <= GIDS_USUAL;"),
      by=["test_rdma_verbs"])
fault("gids-beyond-the-index", "rdma-ext/verbs.c",
      "a GID whose place is beyond what an address can name is used as another one",
      (" && entries[i].gid_index <= GID_INDEX_MAX", ""),
      by=["test_rdma_verbs"])
fault("waiting-for-a-stage-overtaken", "rdma-ext/stages.c",
      "a channel that comes when a buffer for pulled bytes is free overtakes those that wait",
      ("TAILQ_INSERT_TAIL(&worker->stages.waiting", "TAILQ_INSERT_HEAD(&worker->stages.waiting"),
      by=["test_rdma_stages"])
fault("waiting-for-a-stage-in-a-loop", "rdma-ext/channel.c",
      "a worker tries in each round to read what awaits a buffer",
      ("rdma_link_has_input(&channel->link) && !channel->awaits_stage", "rdma_link_has_input(&channel->link)"),
      by=["test_rdma_channel"])
fault("silent-holders-kept", "rdma-ext/stages.c",
      "clients that answer no READ keep the buffers that others wait for",
      ("if (most >= LOOKS)", "if (most >= 1000 * LOOKS)"),
      by=["test_rdma_stages"])
fault("stage-kept-by-one-that-does-not-read", "rdma-ext/stages.c",
      "a connection that does not read keeps a buffer that others wait for",
      ("(!holder->is_ready && rdma_link_unfetch(&holder->link))", "false"),
      by=["test_rdma_stages"])
fault("device-hidden-by-a-useless-one", "rdma-ext/devices.c",
      "a device that cannot be used hides those behind it",
      ("unusable.name[0] != '\\0' && pass_over(devices, &unusable, problem)",
       "unusable.name[0] != '\\0' && pass_over(devices, &unusable, problem) && false"),
      by=["test_rdma_devices"])
fault("useless-device-hides-its-reason", "rdma-ext/devices.c",
      "a device that cannot be used is reported as if there were none",
      ("problem = rest;", ";"),
      by=["test_rdma_devices"])
fault("refused-reference-read", "rdma-ext/link.c",
      "memory is read by a reference that has been refused, if the link is asked once more",
      ("if (!is_good) link->pull.rest.length = 0;", ""),
      by=["test_rdma_link"])
fault("end-needs-a-buffer", "rdma-ext/link.c",
      "END waits for the send buffers of the replies before it, though it needs none",
      ("(is_inline || has_buffer(link))", "has_buffer(link)"),
      by=["test_rdma_channel"])
fault("end-sent-once", "rdma-ext/channel.c",
      "a channel ends without END if there is no room for it when the connection closes",
      ("if (link->has_failed || (channel->has_sent_end", "if (!channel->has_sent_end || (channel->has_sent_end"),
      by=["test_rdma_channel"])
fault("end-waits-for-ever", "rdma-ext/channel.c",
      "a client that returns no credit for END keeps its channel",
      ("if (!channel->is_gone && !channel->has_sent_end) rdma_break_off(channel);", ""),
      by=["test_rdma_channel"])
fault("short-queues-taken", "rdma-ext/service.c",
      "a device whose queues have no room for a channel is opened",
      ("return by_completions > 0 && by_receives > 0;", "return true;"),
      by=["test_rdma_service"])
fault("new-device-unknown-to-some", "rdma-ext/watch.c",
      "a device that comes while workers are being added is unknown to the last of them",
      ("if (at < devices->group_count)", "if (at < 1)"),
      by=["test_rdma_devices"])
fault("last-replies-lost-at-the-stop", "server/loop/rdma_loop.c",
      "a server that stops does not wait until its last replies have arrived",
      ("if (loop == NULL || loop->ops->has_ended(loop->group)) return true;", "if (loop != NULL) return true;"),
      by=["test_rdma_loop"])
fault("device-freed-unheard", "rdma-ext/watch.c",
      "a device's queues are freed while a worker still has messages about them",
      ("else end(service);", "else { end(service); drop(devices, i); }"),
      by=["test_rdma_devices"])
fault("waiting-holds-a-shared-block", "server/exec/runner.c",
      "a client that waits holds a block with the commands of many others",
      ("&& may_stay(request, is_first))", "&& is_first && more > 1000000)"),
      by=["test_memory.py::test_clients_that_wait_hold_none_of_the_blocks_that_others_read_into"])
fault("evicted-clients-write", "server/exec/long_run.c",
      "commands of clients that were closed for their memory keep it until they have run",
      ("return request->conn->is_evicted ||", "return"),
      by=["test_memory.py::test_commands_of_clients_closed_for_their_memory_are_not_run"])
fault("announced-memory-taken", "server/net/client_memory.c",
      "a command that no client may have is received as far as memory goes",
      ("if (bytes <= limit ||", "if (bytes > 0 ||"),
      by=["test_memory.py::test_a_client_that_announces_too_long_a_command_is_closed_at_once"])
fault("publishers-wait-for-scripts", "server/pubsub/pubsub.c",
      "what is published waits for a busy script's end, and with it who publishes much",
      (".visit = deliver, .is_urgent = true}", ".visit = deliver}"),
      by=["test_busy.py::test_messages_come_meanwhile"])
fault("scan-without-a-look", "server/commands/cmd_scan.c",
      "a walk over the keys gives nobody else a turn",
      ("if (collector->is_nested) return collector_yield(call, collector); "
       "return collector_step_fills(collector, entries) ? collector_step(call, collector) : STORE_OK;",
       "(void)call, (void)collector, (void)entries; return STORE_OK;"),
      by=["test_gaps.py::test_the_only_key_beside_a_million_others"])
fault("growing-replies-uncounted", "server/exec/request_reply.c",
      "a reply counts as memory only when it is complete",
      ("return collected_set(&request->replied, bytes);", "return true;"),
      by=["test_memory_limits.py::test_one_value_that_is_named_very_often"])
fault("replies-of-exec-uncounted", "server/exec/long_run.c",
      "the replies of a transaction's commands are no memory",
      ("if (!call_may_reply(call))", "if (false)"),
      by=["test_memory.py::test_a_transaction_whose_replies_have_no_room_is_refused"])
fault("subscriptions-cost-for-ever", "server/pubsub/pubsub.c",
      "what a subscription takes stays counted when it has ended",
      ("session->bytes -= bytes_of(one);", ""),
      by=["wait/test_pubsub"])
fault("watched-keys-counted-for-ever", "server/exec/watch.c",
      "a key that is not watched any more stays counted in its shard",
      ("*at = watched->next_bucket; atomic_fetch_sub_explicit(&shard->count, 1, memory_order_relaxed);",
       "*at = watched->next_bucket;"),
      by=["wait/test_multi.py::test_unwatch"])
fault("closed-connection-linked", "server/loop/conn_turn.c",
      "the connection after a closed one still refers to it",
      ("LIST_REMOVE(conn, of_worker);", "*conn->of_worker.le_prev = LIST_NEXT(conn, of_worker);"),
      by=["wait/test_multi.py::test_many_watchers_come_and_go"])
fault("declared-keys-searched", "server/exec/declared_keys.c",
      "each command of a script with many keys is compared with all of them",
      ("if (!is_built && request->key_count > FEW_KEYS)", "if (false)"),
      by=["test_script.py::test_the_last_of_many_keys_is_found_as_fast_as_the_first"])
fault("sort-keeps-the-names", "server/commands/cmd_sort.c",
      "the keys of all elements that a step of SORT looks up are in memory together",
      ("sort->table->read += len;", ""),
      by=["test_memory.py::test_names_from_a_long_pattern_need_no_memory_together"])
fault("output-moved-at-each-write", "clients/io.c",
      "what is left of a command is moved whenever a part has been sent",
      ("if (left > vellum->sent) return;", ""),
      by=["test_output"])
fault("output-never-moved", "clients/io.c",
      "what has been sent stays in the buffer until all has",
      ("if (left > vellum->sent) return;", "if (left > 0) return;"),
      by=["test_output"])
fault("values-at-places-in-the-buffer", "clients/connection.c",
      "the place of a value by reference counts bytes that have been sent",
      (".before = vellum_output_length(vellum) - vellum->spliced};",
       ".before = vellum_output_length(vellum) + vellum->sent - vellum->spliced};"),
      by=["test_output"])
fault("errors-keep-the-queue-pair", "clients/connection.c",
      "the server can still reach memory that an error has returned",
      ("vellum->error, \"%s\", text); vellum_end_access(vellum);", "vellum->error, \"%s\", text);"),
      by=["test_output"])
fault("proxy-hides-the-password", "clients/proxy.c",
      "the proxy does not say that its password is wrong",
      ("snprintf(refusal, RDMA_MESSAGE_MAX, \"%s\", reply->str);", "(void)refusal;"),
      by=["test_proxy.py::test_a_wrong_password_is_told"])
fault("proxy-busy-without-descriptors", "clients/proxy.c",
      "a proxy that has no descriptors left tries again and again to accept a connection",
      ("event_del(proxy->arrivals);", "(void)proxy;"),
      by=["test_proxy.py::test_without_descriptors_it_waits"])
fault("long-commands-formatted", "clients/connection.c",
      "commands that are longer than an int can count are given to hiredis",
      ("if (left < head || length > left - head) return false;", ""),
      by=["test_output"])
fault("search-in-one-round", "server/commands/cmd_geo_search.c",
      "a geo search visits all members in one round",
      ("if (zset_is_large(zset) && collector_step_is_full(collector))", "if (false)"),
      by=["test_gaps.py::test_a_search_of_many_members_is_many_rounds"])
fault("nearest-out-of-order", "server/commands/cmd_geo_search.c",
      "of equal distances COUNT keeps those that come last",
      ("return a < b ? -1 : a > b;", "return a < b ? 1 : -1;"),
      by=["test_cmd_geo"])
fault("boxes-too-small", "server/types/geo.c",
      "a geo search looks only where the boxes of the first estimate are",
      ("if (steps > 1 && !is_enough(&cell, &frame))", "if (steps > 99 && !is_enough(&cell, &frame))"),
      by=["test_cmd_geo"])
fault("pause-reads-on", "server/exec/runner.c",
      "the commands behind one that a pause holds back are taken, as many as the client sends",
      ("request_count < most && !conn->is_held &&", "request_count < most && !conn->is_put_off &&"),
      by=["test_runner"])
fault("pause-forgets-what-is-queued", "server/exec/pause.c",
      "EXEC is not held back by a pause of writes, whatever it runs",
      ("if (may_write(&call)) return true;", "(void)may_write;"),
      by=["test_pause.py::test_exec_is_judged_as_a_whole"])
fault("pause-ends-never", "server/exec/pause.c",
      "the timer of an earlier, longer pause stays armed when it has been ended",
      ("event_del(worker->pause_timer);", ""),
      by=["test_pause.py::test_a_short_pause_after_a_long_one"])
fault("pause-expires-keys", "storage/txn/engine.h",
      "expired keys are deleted during a pause, and others evicted",
      ("return until_ms > 0 && env_now_ms(&store->env) <= until_ms;", "return until_ms < 0;"),
      by=["test_evict", "test_pause.py::test_expired_keys_are_absent_but_not_deleted"])
fault("paused-end-unnoticed", "server/loop/conn_turn.c",
      "a client whose command a pause holds back is kept, and its command run, though it is gone",
      ("return conn->waiter != NULL || conn->is_paused;", "return conn->waiter != NULL;"),
      by=["test_pause.py::test_commands_of_clients_that_are_gone_never_run"])
fault("latency-without-waits", "server/exec/executor.c",
      "LATENCY HISTOGRAM shows for a command that waits only what its first run took",
      ("if (!is_waiting) {", "if (count > 0) {"),
      by=["test_latency.py::test_waits_for_keys_are_noted"])
fault("latency-samples-of-one-second", "server/core/latency.c",
      "each event is a sample of its own, so that a second may fill the history",
      ("last->time_s == now_s)", "last->time_s < 0)"),
      by=["test_latency.py::test_a_second_has_its_worst_alone"])
fault("latency-in-wide-buckets", "server/core/latency.c",
      "times are counted in buckets of a power of two each",
      ("(shift << TIMES_STEPS_BITS) + (uint32_t)(nsec >> shift);",
       "(shift << TIMES_STEPS_BITS) + (1u << TIMES_STEPS_BITS);"),
      by=["test_latency"])

# ---- streams ----

fault("takers-wake-readers", "server/exec/blocked.c",
      "each acknowledgement has all waiting readers look at the stream",
      ("if (queue != NULL && change->cause != STORE_BY_TAKER) {", "if (queue != NULL) {"),
      by=["test_stream_groups.py::test_taking_wakes_nobody"])
fault("end-of-stream-untold", "server/exec/blocked.c",
      "a consumer waits for a group that is gone",
      ("return (is_ready || waiter->even_if_gone) && place", "return is_ready && place"),
      by=["test_stream_groups.py::test_who_waits_in_a_group_that_goes_is_told"])
fault("one-reader-takes-all", "server/exec/blocked.c",
      "a reader that finds nothing keeps others from looking",
      ("if (is_for_all(place->waiter)) see(place); else", "if (is_for_all(place->waiter)) see(place);"),
      by=["test_streams.py::test_a_reader_that_waits_for_a_later_id_lets_others_read"])
fault("last-id-forgotten", "server/types/stream.c",
      "the ID of a deleted last entry can be used again",
      ("stream_id_write(bytes, is_above ? head->last : STREAM_ID_MIN);",
       "stream_id_write(bytes, is_above ? last_entry : STREAM_ID_MIN);"),
      by=["test_streams.py::test_an_empty_stream_stays_and_knows_its_last_id"])
fault("pending-of-nobody", "server/types/stream_group.c",
      "a claimed entry stays in the list of the consumer that had it",
      ("if (found) result = list_for_consumer(group, before.consumer, pending->id, false);", ""),
      by=["test_stream_groups.py::test_what_is_pending_survives_a_crash"])
fault("group-numbers-used-twice", "storage/tree/tree_owner.c",
      "the groups made after a crash have the numbers, and what is pending, of those before it",
      ("return (store->superblock.latest.epoch << EPOCH_SHIFT) + number;", "return number;"),
      by=["test_cuts_stream"])
fault("grave-empty", "server/types/stream_group.c",
      "what a destroyed group has left stays for ever",
      ("result = remove_parts(&group, &most);", "most = 1;"),
      by=["test_stream_groups.py::test_what_a_destroyed_group_leaves_goes"])
fault("tracking-table-takes-all", "server/exec/tracking.c",
      "the keys that clients have read may take all memory",
      ("tracking_table_bytes(tracking->table) > memory / TABLE_SHARE", "memory == 0"),
      by=["test_tracking.py::test_the_table_leaves_room_for_others"])
fault("registered-stays", "server/script/script_function.c",
      "what the last library has registered is kept when it is gone",
      ("script_end_registering(lua);", ""),
      by=["test_functions.py::test_what_a_library_held_is_free_when_it_is_gone"])
fault("replies-beside-pages", "server/exec/collector.c",
      "a transaction that collects replies keeps all pages of its partitions",
      ("if ((call->command->flags & CMD_READONLY) != 0) /*", "if (false) /*"),
      by=["test_memory_limits.py::test_a_transaction_s_replies_take_the_place_of_pages"])
fault("trim-in-place", "server/types/stream.c",
      "trimming removes any number of entries in one transaction",
      ("if (count > COPY_TREES_MANY && count > others)", "if (false)"),
      by=["test_long_trims.py::test_most_of_a_stream_beyond_memory"])
fault("trim-forgets-groups", "server/types/copy_trees.c",
      "what trimming keeps of a stream's state is as many entries as it keeps of the stream",
      ("collector->source == 0 ? range : whole", "range"),
      by=["test_long_trims.py::test_most_of_a_stream_beyond_memory"])
fault("stream-node-not-whole", "server/commands/cmd_stream.c",
      "MAXLEN with ~ removes single entries",
      ("if (trim->is_rough) *count -= odd", "if (false) *count -= odd"),
      by=["test_streams.py::test_rough_trimming_removes_whole_nodes"])

# ---- client-side caching ----

fault("invalidations-before-the-value", "server/exec/tracker.c",
      "an invalidation does not wait for the replies of commands that have read the value before",
      ("if (conn->answered < tracker->due && !conn->stands_by)", "if (conn == NULL)"),
      by=["wait/test_tracking.py::test_a_change_told_elsewhere_is_known"])
fault("repeated-reads-untracked", "server/exec/long_run.c",
      "a run that is repeated does not note its keys again",
      ("return tracking_note_read(call) ?",
       "return request->state == REQUEST_RUNNING || tracking_note_read(call) ?"),
      by=["wait/test_tracking.py::test_no_cache_stays_stale"])
fault("invalidations-late", "server/exec/runner.c",
      "a command is answered before a change that its client may know of is told",
      ("if (conn->session.tracker != NULL) tracker_turn(conn->session.tracker);", ""),
      by=["test_tracking.py::test_a_change_told_elsewhere_is_known",
          "test_tracking.py::test_own_changes_come_after_the_reply"])
fault("own-commit-untracks", "server/exec/tracking.c",
      "what a transaction reads after it has written it is not tracked once it is committed",
      ("nested_calls != NULL && written_has(&nested_calls->written, key)",
       "nested_calls != NULL && nested_calls->count == UINT32_MAX"),
      by=["test_tracking.py::test_a_read_after_a_write_of_the_transaction"])
fault("swaps-untold", "server/exec/tracking.c",
      "keys that another database brings are not invalidated",
      ("if (change->kind != STORE_CHANGE_KEY) {", "if (change->kind == STORE_CHANGE_FLUSH) {"),
      by=["test_tracking.py::test_a_swap"])
fault("ended-clients-kept", "server/exec/tracking_table.c",
      "clients that have gone stay in the entry of a key that others read",
      ("if (tracked->count == tracked->capacity) drop_ended(shard, tracked);",
       "if (tracked->count > tracked->capacity) drop_ended(shard, tracked);"),
      by=["test_tracking.py::test_clients_that_come_and_go"])
