# Vellum. `make help` lists the targets.
#
# One tree per variant, so that they do not disturb each other: VARIANT=clang|asan|tsan|ubsan builds
# in build/VARIANT; WAIT=1 makes the store's reads wait at random, in build/wait or
# build/VARIANT-wait; TINY=1 makes extents, nodes and the like tiny (storage/sizes.h), in build/tiny;
# LTO=1 optimizes more, and over all files at once when it links, which takes
# long and makes a command up to a fifth cheaper, in build/lto: what benchmarks measure; COVERAGE=1
# counts what runs, in build/coverage. Every source file stands in a list below (`make check` sees to
# it).

VARIANT ?=
LTO ?=
COVERAGE ?=
# The one switch: RDMA is built where libibverbs can be compiled against; VERBS= leaves it out.
VERBS ?= $(wildcard /usr/include/infiniband/verbs.h)
WAIT ?=
TINY ?=
PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3
FUZZ_SECONDS ?= 60
POWERCUT_SECONDS ?= 600
POWERCUT_LETTERS ?= 3
KILL_CYCLES ?= 200
MEMORY_SECONDS ?= 300
MEMORY_CLIENTS ?= 200
CUT_BOOTS ?= 10
LONG_SECONDS ?= 3600
TINY_SESSIONS ?= 200
PIPE_MB ?= 1024
STREAM_ENTRIES ?= 10000000
COVERAGE_PARTS ?= unit server
RDMA_MODES ?= send write
TEST_LANES ?= 2

# ---- sources ----

PROTOCOL_SRC := \
	protocol/rdma_end.c \
	protocol/rdma_frame.c \
	protocol/resp_number.c \
	protocol/resp_parse.c \
	protocol/resp_write.c

STORAGE_SRC := \
	storage/base/cell_pool.c \
	storage/base/disk.c \
	storage/base/disk_file.c \
	storage/base/env.c \
	storage/base/hash_slot.c \
	storage/base/keyed_hash.c \
	storage/base/number_list.c \
	storage/base/ordered_table.c \
	storage/format/format.c \
	storage/format/tree_node.c \
	storage/cache/arena.c \
	storage/cache/page_file.c \
	storage/cache/access_clock.c \
	storage/index/index.c \
	storage/index/ttl.c \
	storage/journal/journal.c \
	storage/journal/record.c \
	storage/journal/superblock.c \
	storage/txn/key_locks.c \
	storage/txn/databases.c \
	storage/txn/item_access.c \
	storage/txn/load.c \
	storage/txn/memory.c \
	storage/txn/room_wanted.c \
	storage/txn/txn_memory.c \
	storage/txn/txn_state.c \
	storage/txn/verify.c \
	storage/txn/wait.c \
	storage/value/long_record.c \
	storage/value/extent.c \
	storage/value/free.c \
	storage/value/large_value.c \
	storage/value/long_key.c \
	storage/value/lookup.c \
	storage/value/patches.c \
	storage/value/run_write.c \
	storage/value/slot_alloc.c \
	storage/value/extent_write.c \
	storage/value/write_set.c \
	storage/tree/bulk_load.c \
	storage/tree/tree.c \
	storage/tree/tree_change.c \
	storage/tree/tree_drop.c \
	storage/tree/key_tree.c \
	storage/tree/tree_edit.c \
	storage/tree/tree_overflow.c \
	storage/tree/tree_owner.c \
	storage/exec/change.c \
	storage/exec/commit.c \
	storage/exec/flush.c \
	storage/exec/hooks.c \
	storage/exec/prefetch.c \
	storage/exec/prefetch_trees.c \
	storage/exec/removal.c \
	storage/exec/request.c \
	storage/exec/scan.c \
	storage/exec/ordered_range.c \
	storage/exec/prefetch_run.c \
	storage/exec/snapshot.c \
	storage/exec/reader.c \
	storage/exec/lock_handoff.c \
	storage/exec/txn.c \
	storage/exec/upload.c \
	storage/maintenance/evict.c \
	storage/maintenance/expire.c \
	storage/maintenance/index_save.c \
	storage/maintenance/index_stream.c \
	storage/maintenance/maintenance.c \
	storage/maintenance/reclaim.c \
	storage/maintenance/sweep.c \
	storage/maintenance/tree_purge.c \
	storage/maintenance/writeback.c \
	storage/recovery/check.c \
	storage/recovery/check_trees.c \
	storage/recovery/disk_readonly.c \
	storage/recovery/index_load.c \
	storage/recovery/open.c \
	storage/recovery/recover.c \
	storage/recovery/recover_trees.c \
	storage/recovery/redo.c \
	storage/recovery/reload.c \
	storage/store.c \
	storage/worker.c

SERVER_SRC := \
	server/base/rng.c \
	server/base/heap.c \
	server/base/fiber.c \
	server/base/glob.c \
	server/base/sha1.c \
	server/base/word_list.c \
	server/config/config.c \
	server/config/config_directive.c \
	server/config/config_file.c \
	server/config/config_rewrite.c \
	server/config/config_table.c \
	server/config/config_words.c \
	server/config/log.c \
	server/core/call.c \
	server/core/collected.c \
	server/core/command.c \
	server/core/command_syntax.c \
	server/core/commandstats.c \
	server/core/errorstats.c \
	server/core/latency.c \
	server/core/process.c \
	server/core/function_names.c \
	server/core/round_clock.c \
	server/core/server.c \
	server/core/worker.c \
	server/core/worker_inbox.c \
	server/net/client_memory.c \
	server/net/conn.c \
	server/net/conn_output.c \
	server/net/publication.c \
	server/net/spool.c \
	server/net/transport_socket.c \
	server/pubsub/effects.c \
	server/pubsub/keyspace_events.c \
	server/pubsub/notify.c \
	server/pubsub/pubsub.c \
	server/exec/reply_spill.c \
	server/exec/blocked.c \
	server/exec/executor.c \
	server/exec/collector.c \
	server/exec/collector_sort.c \
	server/exec/source_index.c \
	server/exec/declared_keys.c \
	server/exec/long_run.c \
	server/exec/keyspace.c \
	server/exec/read_ahead.c \
	server/exec/monitor.c \
	server/exec/multi.c \
	server/exec/nested.c \
	server/exec/pause.c \
	server/exec/written.c \
	server/exec/pipeline.c \
	server/exec/reply_stream.c \
	server/exec/request.c \
	server/exec/request_reply.c \
	server/exec/batch.c \
	server/exec/runner.c \
	server/exec/runner_reply.c \
	server/exec/slowlog.c \
	server/exec/steps.c \
	server/exec/upload.c \
	server/exec/invalidation.c \
	server/exec/tracker.c \
	server/exec/tracking.c \
	server/exec/prefix_table.c \
	server/exec/tracking_table.c \
	server/exec/watch.c \
	server/types/bulk_store.c \
	server/types/copy_trees.c \
	server/types/geo.c \
	server/types/hash.c \
	server/types/hyperloglog.c \
	server/types/list.c \
	server/types/stream.c \
	server/types/stream_dump.c \
	server/types/stream_group.c \
	server/types/stream_id.c \
	server/types/stream_lag.c \
	server/types/stream_restore.c \
	server/types/member_tree.c \
	server/types/members.c \
	server/types/members_expiry.c \
	server/types/members_order.c \
	server/types/members_reply.c \
	server/types/packed.c \
	server/types/prefetch_hints.c \
	server/types/rdb_packed.c \
	server/types/rdb_read.c \
	server/types/rdb_reader.c \
	server/types/rdb_stream_read.c \
	server/types/rdb_stream_write.c \
	server/types/rdb_write.c \
	server/types/scan_args.c \
	server/types/set.c \
	server/types/sort_table.c \
	server/types/string_build.c \
	server/types/string_walk.c \
	server/types/zset.c \
	server/types/zset_order.c \
	server/script/script.c \
	server/script/script_base.c \
	server/script/script_bit.c \
	server/script/script_busy.c \
	server/script/script_cjson.c \
	server/script/script_cmsgpack.c \
	server/script/script_error.c \
	server/script/script_function.c \
	server/script/script_library.c \
	server/script/script_pattern.c \
	server/script/script_redis.c \
	server/script/script_register.c \
	server/script/script_reply.c \
	server/script/script_run.c \
	server/script/script_seal.c \
	server/script/script_state.c \
	server/script/script_struct.c \
	server/script/script_table.c \
	server/script/script_wrap.c \
	server/commands/cmd_alone.c \
	server/commands/cmd_bitfield.c \
	server/commands/cmd_bitmap.c \
	server/commands/cmd_blocking.c \
	server/commands/cmd_client.c \
	server/commands/cmd_tracking.c \
	server/commands/cmd_command.c \
	server/commands/cmd_config.c \
	server/commands/cmd_connection.c \
	server/commands/cmd_debug.c \
	server/commands/cmd_debug_digest.c \
	server/commands/cmd_dump.c \
	server/commands/cmd_expire.c \
	server/commands/cmd_generic.c \
	server/commands/cmd_geo.c \
	server/commands/cmd_geo_search.c \
	server/commands/cmd_hash.c \
	server/commands/cmd_hash_expiry.c \
	server/commands/cmd_hash_walk.c \
	server/commands/cmd_hyperloglog.c \
	server/commands/cmd_lcs.c \
	server/commands/cmd_list.c \
	server/commands/cmd_list_search.c \
	server/commands/cmd_memory.c \
	server/commands/memory_figures.c \
	server/commands/cmd_multi.c \
	server/commands/cmd_pubsub.c \
	server/commands/cmd_restore.c \
	server/commands/cmd_rdma.c \
	server/commands/cmd_scan.c \
	server/commands/cmd_key_range.c \
	server/commands/cmd_script.c \
	server/commands/cmd_function.c \
	server/commands/cmd_function_dump.c \
	server/commands/function_value.c \
	server/commands/cmd_server.c \
	server/commands/cmd_set.c \
	server/commands/cmd_set_algebra.c \
	server/commands/cmd_set_random.c \
	server/commands/cmd_latency.c \
	server/commands/cmd_slowlog.c \
	server/commands/cmd_sort.c \
	server/commands/cmd_stream.c \
	server/commands/cmd_stream_group.c \
	server/commands/cmd_stream_info.c \
	server/commands/cmd_stream_pending.c \
	server/commands/cmd_stream_read.c \
	server/commands/cmd_stream_readgroup.c \
	server/commands/cmd_stream_reply.c \
	server/commands/cmd_string.c \
	server/commands/cmd_string_number.c \
	server/commands/cmd_zset.c \
	server/commands/cmd_zset_algebra.c \
	server/commands/cmd_zset_pop.c \
	server/commands/cmd_zset_range.c \
	server/commands/command_table.c \
	server/commands/info.c \
	server/commands/multi_pop.c \
	server/commands/protection.c \
	server/loop/conn_turn.c \
	server/loop/listener.c \
	server/loop/rdma_loop.c \
	server/loop/worker_loop.c \
	server/main.c

# RDMA channels: the server's side, and what both ends share.
LINK_SRC := \
	rdma-ext/link.c \
	rdma-ext/verbs.c
RDMA_SRC := \
	rdma-ext/channel.c \
	rdma-ext/choose.c \
	rdma-ext/completion_loop.c \
	rdma-ext/devices.c \
	rdma-ext/failure.c \
	rdma-ext/jobs.c \
	rdma-ext/page_registration.c \
	rdma-ext/poll_group.c \
	rdma-ext/port.c \
	rdma-ext/resolve.c \
	rdma-ext/service.c \
	rdma-ext/setup_jobs.c \
	rdma-ext/stages.c \
	rdma-ext/watch.c \
	rdma-ext/watch_ask.c \
	$(LINK_SRC)

# The client library; built where RDMA is.
CLIENT_SRC := \
	clients/channel.c \
	clients/connect.c \
	clients/connection.c \
	clients/get_into.c \
	clients/io.c \
	clients/pool.c \
	clients/registered_memory.c \
	clients/upgrade.c \
	clients/vellum.c \
	clients/vellum_async.c \
	clients/window.c

# Tests in a machine that has RDMA devices.
RDMA_TESTS := \
	test_address \
	test_channel \
	test_client \
	test_deaths \
	test_devices \
	test_end \
	test_failures \
	test_hostile \
	test_invalidation \
	test_limits \
	test_revoke \
	test_session \
	test_specification \
	test_stages \
	test_unreachable
RDMA_TEST_SRC := tests/rdma/raw.c
PRELOADED_SRC := tests/rdma/count_copies.c tests/rdma/fail_queues.c

# The plain in-memory model of storage/store.h: what the server's unit tests run on.
MODEL_SRC := \
	tests/model/model_change.c \
	tests/model/model_range.c \
	tests/model/model_store.c \
	tests/model/model_table.c \
	tests/model/model_tree.c \
	tests/model/model_txn.c \
	tests/model/model_upload.c

# Unit tests, each a program of its own, and what each is linked with (in the linker's order).
UNIT_TEST_SRC := \
	tests/unit/benchmarks/test_histogram.c \
	tests/unit/model/test_model_store.c \
	tests/unit/protocol/test_rdma_frame.c \
	tests/unit/protocol/test_resp_number.c \
	tests/unit/protocol/test_resp_parse.c \
	tests/unit/protocol/test_resp_write.c \
	tests/unit/server/base/test_fiber.c \
	tests/unit/server/base/test_glob.c \
	tests/unit/server/base/test_rng.c \
	tests/unit/server/base/test_sha1.c \
	tests/unit/server/commands/test_cmd_bitmap.c \
	tests/unit/server/commands/test_cmd_geo.c \
	tests/unit/server/commands/test_cmd_hash.c \
	tests/unit/server/commands/test_cmd_hash_weak.c \
	tests/unit/server/commands/test_cmd_hash_expiry.c \
	tests/unit/server/commands/test_cmd_hash_expiry_weak.c \
	tests/unit/server/commands/test_cmd_list.c \
	tests/unit/server/commands/test_cmd_set.c \
	tests/unit/server/commands/test_cmd_set_weak.c \
	tests/unit/server/commands/test_cmd_string.c \
	tests/unit/server/commands/test_cmd_zset.c \
	tests/unit/server/commands/test_generic.c \
	tests/unit/server/config/test_config.c \
	tests/unit/server/core/test_command.c \
	tests/unit/server/core/test_command_syntax.c \
	tests/unit/server/core/test_latency.c \
	tests/unit/server/core/test_function_names.c \
	tests/unit/server/exec/test_blocked.c \
	tests/unit/server/exec/test_runner.c \
	tests/unit/server/loop/test_rdma_loop.c \
	tests/unit/server/pubsub/test_publishing.c \
	tests/unit/server/pubsub/test_pubsub.c \
	tests/unit/server/script/test_script_library.c \
	tests/unit/server/types/test_packed.c \
	tests/unit/server/types/test_rdb_stream.c \
	tests/unit/storage/base/test_array.c \
	tests/unit/storage/base/test_hash_slot.c \
	tests/unit/storage/base/test_keyed_hash.c \
	tests/unit/storage/index/test_index.c \
	tests/unit/storage/index/test_ttl.c \
	tests/unit/storage/value/test_patches.c
ifneq ($(VERBS),)
UNIT_TEST_SRC += tests/unit/clients/test_output.c tests/unit/rdma-ext/test_rdma_channel.c \
	tests/unit/rdma-ext/test_rdma_devices.c tests/unit/rdma-ext/test_rdma_link.c \
	tests/unit/rdma-ext/test_rdma_service.c tests/unit/rdma-ext/test_rdma_stages.c \
	tests/unit/rdma-ext/test_rdma_verbs.c
endif
UNIT_TESTS := $(basename $(notdir $(UNIT_TEST_SRC)))

test_blocked_LINK = $(FIXTURE_TEST_LINK)
test_cmd_bitmap_LINK = $(COMMAND_TEST_LINK)
test_cmd_geo_LINK = $(COMMAND_TEST_LINK)
test_cmd_hash_LINK = $(COMMAND_TEST_LINK)
test_cmd_hash_weak_LINK = $(WEAK_TEST_LINK)
test_cmd_hash_expiry_LINK = $(COMMAND_TEST_LINK)
test_cmd_hash_expiry_weak_LINK = $(WEAK_TEST_LINK)
test_cmd_set_LINK = $(COMMAND_TEST_LINK)
test_cmd_set_weak_LINK = $(WEAK_TEST_LINK)
test_cmd_list_LINK = $(COMMAND_TEST_LINK)
test_cmd_string_LINK = $(COMMAND_TEST_LINK)
test_cmd_zset_LINK = $(COMMAND_TEST_LINK)
test_command_LINK = $(SERVER_TEST_LINK)
test_command_syntax_LINK = $(call objects,server/core/command_syntax.c server/base/word_list.c)
test_config_LINK = $(CONFIG_TEST_LINK)
test_rng_LINK = $(call objects,server/base/rng.c)
test_generic_LINK = $(GENERIC_TEST_LINK)
test_fiber_LINK = $(call objects,server/base/fiber.c)
test_glob_LINK = $(call objects,server/base/glob.c)
test_hash_slot_LINK = $(call objects,storage/base/hash_slot.c)
test_histogram_LINK = $(call objects,benchmarks/histogram.c)
test_index_LINK = $(call objects,storage/index/index.c storage/base/ordered_table.c storage/base/cell_pool.c)
test_latency_LINK = $(FIXTURE_TEST_LINK)
test_keyed_hash_LINK = $(call objects,storage/base/keyed_hash.c)
test_model_store_LINK = $(call objects,$(MODEL_SRC))
test_output_LINK = $(call objects,clients/connection.c clients/io.c)
test_output_LIBS = -lhiredis
test_packed_LINK = $(call objects,server/types/packed.c $(MODEL_SRC))
test_rdb_stream_LINK = $(fuzz_rdb_LINK)
test_rdma_frame_LINK = $(PROTOCOL_LIB)
test_rdma_channel_LINK = $(call objects,rdma-ext/channel.c rdma-ext/link.c) $(PROTOCOL_LIB)
test_rdma_link_LINK = $(call objects,rdma-ext/link.c) $(PROTOCOL_LIB)
test_rdma_devices_LINK = $(call objects,rdma-ext/choose.c rdma-ext/devices.c rdma-ext/poll_group.c \
	rdma-ext/watch.c rdma-ext/watch_ask.c)
test_rdma_service_LINK = $(call objects,rdma-ext/jobs.c rdma-ext/port.c rdma-ext/service.c)
test_rdma_stages_LINK = $(call objects,rdma-ext/link.c rdma-ext/stages.c) $(PROTOCOL_LIB)
test_rdma_verbs_LINK = $(call objects,rdma-ext/verbs.c) $(PROTOCOL_LIB)
test_rdma_loop_LINK = $(call objects,server/loop/rdma_loop.c) $(CONFIG_TEST_LINK)
test_publishing_LINK = $(FIXTURE_TEST_LINK)
test_pubsub_LINK = $(SERVER_TEST_LINK)
test_patches_LINK = $(call objects,storage/value/patches.c)
test_resp_number_LINK = $(PROTOCOL_LIB)
test_resp_parse_LINK = $(PROTOCOL_LIB)
test_resp_write_LINK = $(PROTOCOL_LIB)
test_runner_LINK = $(FIXTURE_TEST_LINK)
test_function_names_LINK = $(call objects,server/core/function_names.c)
test_script_library_LINK = $(SERVER_TEST_LINK)
test_sha1_LINK = $(call objects,server/base/sha1.c)
test_ttl_LINK = $(call objects,storage/index/ttl.c storage/index/index.c storage/base/ordered_table.c storage/base/cell_pool.c)

# Tests of the engine on its own, on a real directory and on a disk in memory that fails at will.
STORAGE_TEST_SRC := \
	tests/storage/base/test_disk.c \
	tests/storage/cache/test_page_file.c \
	tests/storage/exec/test_borrowed.c \
	tests/storage/exec/test_lock_handoff.c \
	tests/storage/exec/test_ordered_keys.c \
	tests/storage/txn/test_store_lock.c \
	tests/storage/exec/test_prefetch.c \
	tests/storage/exec/test_snapshot.c \
	tests/storage/exec/test_upload.c \
	tests/storage/index/test_clock.c \
	tests/storage/journal/test_long_record.c \
	tests/storage/maintenance/test_evict.c \
	tests/storage/recovery/test_believed.c \
	tests/storage/recovery/test_cuts.c \
	tests/storage/recovery/test_cuts_space.c \
	tests/storage/recovery/test_index_file.c \
	tests/storage/recovery/test_lost.c \
	tests/storage/recovery/test_powercut.c \
	tests/storage/recovery/test_rot.c \
	tests/storage/test_faults.c \
	tests/storage/test_random.c \
	tests/storage/test_stalls.c \
	tests/storage/tree/test_bulk_load.c \
	tests/storage/tree/test_tree.c \
	tests/storage/tree/test_tree_reads.c \
	tests/storage/tree/test_tree_room.c \
	tests/storage/txn/test_concurrent.c \
	tests/storage/value/test_large.c \
	tests/storage/value/test_long_keys.c
# A whole server on the engine, on that disk.
SERVED_TEST_SRC := \
	tests/storage/recovery/test_cuts_function.c \
	tests/storage/recovery/test_cuts_stream.c
SERVED_RIG_SRC = tests/storage/recovery/served_cuts.c $(STORAGE_RIG_SRC)
STORAGE_TESTS := $(basename $(notdir $(STORAGE_TEST_SRC) $(SERVED_TEST_SRC)))

WAIT_TESTS := test_borrowed test_bulk_load test_ordered_keys test_random test_snapshot test_lock_handoff test_runner test_tree test_tree_reads test_tree_room # also with reads that wait at random

# In the build of tiny sizes: random sequences, which reach every form there. The others count pages and
# runs, or damage what stands at a place, of the usual sizes.
TINY_TESTS := test_believed test_ordered_keys test_powercut test_random test_snapshot test_tree

STORAGE_RIG_SRC := \
	tests/storage/fault_disk.c \
	tests/storage/harness.c \
	tests/storage/medium.c \
	tests/storage/oracle.c \
	tests/storage/ordered_walk.c \
	tests/storage/sender.c \
	tests/storage/spoil.c \
	tests/storage/tree_job.c \
	tests/storage/tree_model.c \
	tests/storage/workload.c

test_clock_LDFLAGS := -Wl,--wrap=clock_gettime
test_disk_LDFLAGS := -Wl,--wrap=io_setup,--wrap=io_submit,--wrap=io_getevents,--wrap=fsync,--wrap=pwrite

# The whole server but its main, on the model.
SERVER_TEST_LINK = $(call objects,$(filter-out server/main.c,$(SERVER_SRC)) \
	storage/base/keyed_hash.c $(MODEL_SRC)) $(PROTOCOL_LIB)

# A server whose rounds the test calls: on the model, and on the engine.
FIXTURE_TEST_LINK = $(call objects,tests/unit/fixture.c tests/unit/fixture_model.c) $(SERVER_TEST_LINK)
SERVED_OBJECTS = $(call objects,tests/unit/served.c tests/unit/fixture.c $(filter-out server/main.c,$(SERVER_SRC))) \
	$(PROTOCOL_LIB)

CONFIG_TEST_LINK = $(call objects,$(filter server/config/config%,$(SERVER_SRC)))

# What collections are made of, and the commands on them.
COLLECTION_TEST_LINK = $(call objects,server/commands/cmd_list.c server/commands/cmd_list_search.c server/types/copy_trees.c server/types/list.c \
	server/exec/steps.c server/commands/multi_pop.c server/commands/cmd_zset.c server/commands/cmd_zset_algebra.c \
	server/commands/cmd_zset_pop.c server/commands/cmd_zset_range.c server/types/zset.c server/types/zset_order.c server/commands/cmd_hash.c server/commands/cmd_hash_expiry.c server/commands/cmd_hash_walk.c server/commands/cmd_set.c \
	server/commands/cmd_set_algebra.c server/commands/cmd_set_random.c server/base/rng.c server/core/collected.c server/exec/collector.c server/exec/collector_sort.c server/exec/source_index.c server/base/glob.c \
	server/commands/cmd_geo.c server/commands/cmd_geo_search.c server/types/geo.c server/types/hash.c storage/base/keyed_hash.c server/types/member_tree.c server/types/members.c server/types/members_expiry.c \
	server/types/members_order.c server/types/members_reply.c server/types/packed.c server/exec/batch.c server/types/scan_args.c server/types/set.c)

# Commands run on the model, by drivers that stand for the runner.
COMMAND_TEST_LINK = $(call objects,tests/unit/command_driver.c tests/unit/stand_ins.c \
	server/core/call.c server/exec/keyspace.c server/core/function_names.c server/net/publication.c server/pubsub/effects.c server/config/log.c server/pubsub/notify.c \
	server/commands/cmd_bitfield.c server/commands/cmd_bitmap.c server/commands/cmd_lcs.c server/commands/cmd_string.c \
	server/commands/cmd_string_number.c server/types/string_build.c server/types/string_walk.c $(MODEL_SRC)) $(COLLECTION_TEST_LINK) $(CONFIG_TEST_LINK) \
	$(PROTOCOL_LIB)
# The same without the hash, which the test brings along.
WEAK_TEST_LINK = $(filter-out $(call objects,storage/base/keyed_hash.c),$(COMMAND_TEST_LINK))
GENERIC_TEST_LINK = $(call objects,tests/unit/generic_driver.c tests/unit/stand_ins.c \
	server/core/call.c server/exec/keyspace.c server/core/function_names.c server/net/publication.c server/pubsub/effects.c server/config/log.c server/pubsub/notify.c \
	server/commands/cmd_expire.c server/commands/cmd_generic.c server/commands/cmd_scan.c server/commands/cmd_key_range.c server/types/copy_trees.c server/types/string_build.c server/types/string_walk.c \
	server/base/rng.c server/core/collected.c server/exec/collector.c server/exec/source_index.c server/base/glob.c server/types/scan_args.c $(MODEL_SRC)) $(CONFIG_TEST_LINK) $(PROTOCOL_LIB)

# What all benchmark programs are linked with.
BENCH_SRC := \
	benchmarks/histogram.c \
	benchmarks/keys.c

# vellum-benchmark, over libvellum.
BENCHMARK_SRC := \
	benchmarks/bench_options.c \
	benchmarks/bench_plot.c \
	benchmarks/bench_report.c \
	benchmarks/bench_run.c \
	benchmarks/bench_server.c \
	benchmarks/bench_tests.c \
	benchmarks/vellum_benchmark.c

# Fuzzers, likewise.
FUZZERS := fuzz_resp fuzz_rdb

fuzz_rdb_LINK = $(call objects,server/types/rdb_packed.c server/types/rdb_read.c server/types/rdb_reader.c server/types/rdb_stream_read.c \
	server/types/rdb_stream_write.c server/types/rdb_write.c) $(PROTOCOL_LIB)
fuzz_resp_LINK = $(PROTOCOL_LIB)

# ---- variants ----

WARNINGS := -Wall -Wextra -Wshadow -Wimplicit-fallthrough -Werror
SOURCE_FOLDERS := protocol storage server benchmarks tests/model tests/storage tests/unit tests/fuzz \
	$(if $(VERBS),rdma-ext clients tests/rdma)
SOURCES = $(wildcard $(addsuffix /*.c,$(SOURCE_FOLDERS)) server/*/*.c storage/*/*.c tests/storage/*/*.c tests/unit/*/*.c tests/unit/*/*/*.c)

CPPFLAGS := -D_GNU_SOURCE -iquote . -isystem /usr/include/lua5.1
CFLAGS := -std=c11 -O2 -g $(WARNINGS)
LDFLAGS :=
CC := gcc

ifneq ($(filter-out clang asan tsan ubsan fuzz,$(VARIANT)),)
$(error VARIANT is one of clang asan tsan ubsan)
endif
ifneq ($(VARIANT),)
CC := clang
endif
SANITIZE_asan := -fsanitize=address
SANITIZE_tsan := -fsanitize=thread
SANITIZE_ubsan := -fsanitize=undefined -fno-sanitize-recover=undefined
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
SANITIZE := $(SANITIZE_$(VARIANT))
ifneq ($(SANITIZE),)
CPPFLAGS += -DVELLUM_SANITIZED
CFLAGS += $(SANITIZE) -fno-omit-frame-pointer
LDFLAGS += $(SANITIZE)
endif
ifneq ($(WAIT),)
CPPFLAGS += -DVELLUM_WAIT
endif
ifneq ($(TINY),)
CPPFLAGS += -DVELLUM_TINY
endif
ifneq ($(LTO),)
ifneq ($(VARIANT),)
$(error LTO=1 is for gcc: without VARIANT)
endif
CFLAGS := $(subst -O2,-O3,$(CFLAGS)) -flto=auto -ffat-lto-objects
LDFLAGS += -flto=auto
AR := gcc-ar
endif

ifneq ($(COVERAGE),)
ifneq ($(VARIANT)$(TINY)$(WAIT)$(LTO),)
$(error COVERAGE=1 is for gcc: without VARIANT, WAIT and LTO)
endif
CFLAGS := $(subst -O2,-O0,$(CFLAGS)) --coverage -fprofile-update=atomic
LDFLAGS += --coverage
endif

empty :=
space := $(empty) $(empty)
BUILD := $(subst $(space),/,$(strip build $(subst $(space),-,$(strip $(VARIANT) $(if $(TINY),tiny) $(if $(WAIT),wait) $(if $(LTO),lto) $(if $(COVERAGE),coverage)))))
OBJ := $(BUILD)/obj
LIB := $(BUILD)/lib
BIN := $(BUILD)/bin

objects = $(patsubst %.c,$(OBJ)/%.o,$(1))

OBJCOPY ?= objcopy
STORAGE_LIB := $(LIB)/libvellum-storage.a
# The same with every symbol: what tests of the engine's inside link.
STORAGE_INSIDE := $(LIB)/libvellum-storage-inside.a
PROTOCOL_LIB := $(LIB)/libvellum-protocol.a
SERVER_LIBS := -levent_core -llua5.1 -llzf -lpthread -lm
STORAGE_LIBS := -laio -lpthread

ifneq ($(VERBS),)
RDMA_OBJECTS := $(call objects,$(RDMA_SRC))
SERVER_LIBS += -libverbs
$(OBJ)/server/main.o: private CPPFLAGS += -DVELLUM_RDMA
CLIENT_LIB := $(LIB)/libvellum.a
CLIENT_LIBS := -lhiredis -libverbs
RDMA_BENCH_PROGRAMS := $(BIN)/bench-transports
CLIENT_PROGRAMS := $(addprefix $(BIN)/,vellum-benchmark vellum-example vellum-example-async \
	vellum-rdma-proxy)
RDMA_TEST_PROGRAMS := $(addprefix $(BUILD)/rdma/,$(RDMA_TESTS)) \
	$(PRELOADED_SRC:tests/%.c=$(BUILD)/%.so)
endif

SERVER := $(BIN)/vellum-server
CHECKER := $(BIN)/vellum-check
UNIT_PROGRAMS := $(addprefix $(BUILD)/tests/,$(if $(TINY),$(TINY_TESTS),$(UNIT_TESTS) $(STORAGE_TESTS)))
BENCH_PROGRAMS := $(BIN)/bench-load $(BIN)/bench-engine $(RDMA_BENCH_PROGRAMS)

# ---- targets ----

.PHONY: all server clients checker unit test tiny-test check objects figures coverage tidy compile_commands clang-warnings asan tsan ubsan powercut killtest stoptest pipetest streamtest longtest cuttest memtest memscenarios fuzz bench bench-tools bench-compare \
	mutants gaptest rdma-test rdma-asan rdma-suite bench-device bench-recover bench-workers bench-index bench-exec bench-hitrate bench-datatypes bench-stalls bench-space bench-tracking bench-instructions bench-transports conformance conformance-all install clean help FORCE
.DELETE_ON_ERROR:

all: server clients checker

checker: $(CHECKER)

server: $(SERVER)

clients: $(CLIENT_LIB) $(CLIENT_PROGRAMS)

unit: $(UNIT_PROGRAMS)

help:
	@echo 'make              the server: build/bin/vellum-server, and the libraries in build/lib'
	@echo 'make unit         the unit and storage test programs, in build/tests'
	@echo 'make test         every test; the last line sums the test cases'
	@echo 'make check        layers, format, sizes, names in documents: what a reviewer should not have to look for'
	@echo 'make figures      sizes of rooms and functions, circles of calls, widest headers, asserts'
	@echo 'make coverage     lines and branches by room that COVERAGE_PARTS (unit server) run, and the lines of'
	@echo '                  error paths that no test ran'
	@echo 'make tidy         faults that clang-tidy finds'
	@echo 'make clang-warnings'
	@echo '                  every source, compiled by clang for its warnings alone'
	@echo 'make compile_commands'
	@echo '                  build/compile_commands.json, for clangd'
	@echo 'make gaptest      how long each command keeps a worker from its other clients'
	@echo 'make asan | tsan | ubsan'
	@echo '                  unit and server tests with a sanitizer'
	@echo 'make powercut     cuts the power of the engine for POWERCUT_SECONDS (600), three times, and in all'
	@echo '                  scripts of up to POWERCUT_LETTERS (3) operations'
	@echo 'make longtest     random commands beside stock Redis, then spoiled ones, for LONG_SECONDS (3600) each'
	@echo 'make pipetest     pipelines of PIPE_MB (1024) megabytes, written before the first reply is read'
	@echo 'make streamtest   a stream of STREAM_ENTRIES (10 million) in a small cache, a tenth as many groups, consumers'
	@echo 'make stoptest     every order of two stops, at every moment of a server'
	@echo 'make killtest     ends the server under load by kill -9 KILL_CYCLES (200) times'
	@echo 'make memtest      random commands from MEMORY_CLIENTS (200) clients for MEMORY_SECONDS (300), and what'
	@echo '                  memory they take at maxmemory 64mb'
	@echo 'make memscenarios what takes much memory in one way, one after the other, each with its peak'
	@echo 'make cuttest      cuts the power of virtual machines with a server, CUT_BOOTS (10) of them'
	@echo 'make tiny-test    random operations on a store of tiny extents and nodes, TINY_SESSIONS (200)'
	@echo 'make mutants      known faults in copies of the sources: the tests have to notice each'
	@echo 'make rdma-test    what needs RDMA devices: those of this system or, without any, in a virtual machine'
	@echo 'make rdma-asan    the same with the address sanitizer'
	@echo 'make rdma-suite   every command test of tests/server over channels, likewise'
	@echo 'make fuzz         every fuzzer for FUZZ_SECONDS (60)'
	@echo 'make bench        every benchmark, or one: bench-compare (stock Redis), bench-device (fio),'
	@echo '                  bench-recover, bench-workers, bench-index, bench-exec, bench-hitrate, bench-datatypes,'
	@echo '                  bench-stalls, bench-space, bench-tracking, bench-instructions, bench-transports (perftest);'
	@echo '                  BENCH=... for options'
	@echo 'make conformance  the units of the Redis test suite that cover what is there'
	@echo 'make conformance-all'
	@echo '                  with the long units in which the suite starts the servers itself'
	@echo 'make install      to PREFIX (/usr/local), under DESTDIR if set'
	@echo 'make clean        removes build/'
	@echo 'VARIANT=clang|asan|tsan|ubsan, WAIT=1 and TINY=1 choose another build, in a tree of its own;'
	@echo 'LTO=1 the one that is optimized as a whole: for installing, and what benchmarks measure'

test: all unit $(RDMA_TEST_PROGRAMS)
	$(MAKE) WAIT=1 server checker $(addprefix build/wait/tests/,$(WAIT_TESTS))
	VELLUM_UNIT_TESTS='$(WAIT_TESTS)' tests/run --build build/wait unit
	$(MAKE) TINY=1 server checker unit
	VELLUM_UNIT_TESTS='$(UNIT_TESTS) $(STORAGE_TESTS)' tests/run --lanes $(TEST_LANES)

# The order of the rooms is read off symbols, which any build has: the quickest.
check:
	tests/check/check.sh
	$(MAKE) -s -j"$$(nproc)" BUILD=build/symbols CFLAGS='-std=c11 -O0 -w' objects
	tests/check/rooms.py build/symbols
	tests/check/symbols.py build/symbols
	tests/check/prototypes.py build/symbols

objects: $(call objects,$(SERVER_SRC) $(STORAGE_SRC) $(PROTOCOL_SRC)) $(STORAGE_LIB) \
	$(if $(VERBS),$(RDMA_OBJECTS) $(CLIENT_LIB))

# The shape of the code, in figures; judges nothing.
figures: all
	@tests/check/figures.py $(BUILD)

# The counts of earlier runs are thrown away: they would be of other sources.
coverage:
	$(MAKE) COVERAGE=1 all unit
	find build/coverage -name '*.gcda' -delete
	-VELLUM_UNIT_TESTS='$(UNIT_TESTS) $(STORAGE_TESTS)' tests/run --build build/coverage $(COVERAGE_PARTS)
	@tests/check/coverage.py build/coverage

# Faults that .clang-tidy asks for; sources of the programs, not of the tests.
TIDY_FOLDERS := protocol storage server benchmarks $(if $(VERBS),rdma-ext clients)
tidy:
	printf '%s\n' $(wildcard $(addsuffix /*.c,$(TIDY_FOLDERS)) server/*/*.c storage/*/*.c) | \
	    xargs -P "$$(nproc)" -n 8 sh -c 'clang-tidy --quiet "$$@" -- $(CPPFLAGS) -std=c11 2>/dev/null' tidy

# For clangd and other tools; clangd looks for it in build/.
compile_commands:
	@mkdir -p build
	printf '%s\n' $(SOURCES) | sed 's|.*|{"directory": "$(CURDIR)", \
	    "file": "&", "command": "$(CC) $(CPPFLAGS) $(CFLAGS) -c &"}|; 1s/^/[/; $$!s/$$/,/; $$s/$$/]/' \
	    >build/compile_commands.json

# What clang has to say of every source, without building it.
clang-warnings:
	printf '%s\n' $(SOURCES) | \
	    xargs -P "$$(nproc)" -n 16 clang $(CPPFLAGS) $(CFLAGS) -fsyntax-only

asan tsan ubsan:
	$(MAKE) VARIANT=$@ all unit
	VELLUM_UNIT_TESTS='$(UNIT_TESTS) $(STORAGE_TESTS)' tests/run --build build/$@ unit server

# Every command on large values and collections: how long the worker did not look at its clients.
gaptest: server
	VELLUM_SERVER=$(CURDIR)/$(SERVER) tests/gaps

# The long run: random cuts, then every point of random short scripts, and those in which space changes
# hands, each for POWERCUT_SECONDS; then all scripts of up to POWERCUT_LETTERS operations.
POWERCUT_TESTS := $(addprefix $(BUILD)/tests/,test_powercut test_cuts test_cuts_space test_cuts_stream \
    test_cuts_function)
powercut: $(POWERCUT_TESTS)
	for test in $(POWERCUT_TESTS); do VELLUM_SECONDS=$(POWERCUT_SECONDS) $$test || exit 1; done
	VELLUM_LETTERS=$(POWERCUT_LETTERS) $(BUILD)/tests/test_cuts

# Random operations in the build of tiny sizes, opened and closed TINY_SESSIONS times; then where reads wait.
tiny-test:
	for wait in '' 1; do \
	    $(MAKE) TINY=1 WAIT=$$wait unit || exit 1; \
	    for test in test_random test_tree; do \
	        VELLUM_SESSIONS=$(TINY_SESSIONS) build/tiny$${wait:+-wait}/tests/$$test || exit 1; done; done

pipetest: server
	VELLUM_PIPE_MB=$(PIPE_MB) VELLUM_SERVER=$(CURDIR)/$(SERVER) \
	    python3 -m pytest -q -p no:cacheprovider tests/server/test_long_pipelines.py

streamtest: server
	VELLUM_STREAM_ENTRIES=$(STREAM_ENTRIES) VELLUM_SERVER=$(CURDIR)/$(SERVER) \
	    python3 -m pytest -q -p no:cacheprovider tests/server/test_long_streams.py

stoptest: server
	VELLUM_STOPS=all VELLUM_SERVER=$(CURDIR)/$(SERVER) \
	    python3 -m pytest -q -p no:cacheprovider tests/server/test_stops.py

killtest: server $(CHECKER)
	VELLUM_SERVER=$(CURDIR)/$(SERVER) tests/crash/kill --cycles $(KILL_CYCLES)

memtest: server
	VELLUM_SERVER=$(CURDIR)/$(SERVER) tests/crash/memory --seconds $(MEMORY_SECONDS) --clients $(MEMORY_CLIENTS)

memscenarios: server
	VELLUM_SERVER=$(CURDIR)/$(SERVER) tests/crash/memory --scenarios

# Random and spoiled commands, for LONG_SECONDS each: stock Redis beside ours, and attackers.
longtest: server $(CHECKER)
	VELLUM_SERVER=$(CURDIR)/$(SERVER) tests/differential/run --seconds $(LONG_SECONDS)
	VELLUM_SERVER=$(CURDIR)/$(SERVER) tests/crash/hostile --seconds $(LONG_SECONDS)

cuttest: server $(CHECKER)
	VELLUM_SERVER=$(CURDIR)/$(SERVER) tests/crash/cut --boots $(CUT_BOOTS) --cuts 100 --seconds 30

# Proves that the tests can fail; tests/run takes the quickest of them.
mutants:
	tests/mutants/run

rdma-test: all $(RDMA_TEST_PROGRAMS)
	tests/run --build $(BUILD) rdma

# The same with the address sanitizer in server, library, proxy and tests.
rdma-asan:
	$(MAKE) VARIANT=asan rdma-test

rdma-suite: all
	for mode in $(RDMA_MODES); do tests/rdma/suite --build $(BUILD) --mode $$mode || exit 1; done

fuzz:
	$(MAKE) VARIANT=fuzz $(addprefix build/fuzz/fuzz/,$(FUZZERS))
	for fuzzer in $(FUZZERS); do \
	    build/fuzz/fuzz/$$fuzzer -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 \
	        -artifact_prefix=build/fuzz/ -print_final_stats=0 -verbosity=0 || exit 1; \
	done

# Each by itself; a figure is the median of several rounds. BENCH holds more options.
BENCH_BUILD := $(if $(VARIANT)$(WAIT)$(LTO),$(BUILD),build/lto)
bench: bench-compare bench-device bench-recover bench-workers bench-index bench-exec bench-hitrate bench-datatypes bench-stalls bench-space bench-tracking bench-instructions bench-transports

bench-tools: server $(BENCH_PROGRAMS)

bench-compare bench-device bench-recover bench-workers bench-index bench-exec bench-hitrate bench-datatypes bench-stalls bench-space bench-tracking bench-instructions bench-transports: bench-%:
	$(MAKE) $(if $(filter $(BUILD),$(BENCH_BUILD)),,LTO=1) bench-tools
	$(PYTHON) benchmarks/$*.py --build $(BENCH_BUILD) $(BENCH)

conformance: all
	tests/run conformance

conformance-all: all
	tests/conformance/run --all

install: all
	install -D -m 755 $(SERVER) $(DESTDIR)$(PREFIX)/bin/vellum-server
	install -D -m 755 $(CHECKER) $(DESTDIR)$(PREFIX)/bin/vellum-check
ifneq ($(VERBS),)
	install -D -m 755 $(BIN)/vellum-benchmark $(DESTDIR)$(PREFIX)/bin/vellum-benchmark
	install -D -m 644 benchmarks/vellum-benchmark.1 $(DESTDIR)$(PREFIX)/share/man/man1/vellum-benchmark.1
	install -D -m 755 $(BIN)/vellum-rdma-proxy $(DESTDIR)$(PREFIX)/bin/vellum-rdma-proxy
	install -D -m 644 $(CLIENT_LIB) $(DESTDIR)$(PREFIX)/lib/libvellum.a
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include clients/vellum.h clients/vellum_async.h
	install -D -m 644 clients/vellum.3 $(DESTDIR)$(PREFIX)/share/man/man3/vellum.3
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/vellum clients/example.c \
	    clients/example_async.c protocol/RDMA.md
	for name in vellum vellum-async; do \
	    sed 's,@PREFIX@,$(PREFIX),' clients/$$name.pc.in >$(BUILD)/$$name.pc && \
	    install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/pkgconfig $(BUILD)/$$name.pc || exit 1; \
	done
endif

clean:
	rm -rf build

# ---- rules ----

# Each changes when what it remembers does: flags have everything compiled again, the switch for RDMA
# what depends on it.
REMEMBERED_flags = $(CC) $(CPPFLAGS) $(CFLAGS)
REMEMBERED_verbs = $(VERBS)
$(OBJ)/flags $(OBJ)/verbs: FORCE
	@mkdir -p $(@D)
	@echo '$(REMEMBERED_$(@F))' | cmp -s - $@ || echo '$(REMEMBERED_$(@F))' >$@

$(OBJ)/server/main.o: $(OBJ)/verbs

FORCE:

$(OBJ)/%.o: %.c $(OBJ)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Made anew each time: a member whose source has gone must not stay.
define archive
@mkdir -p $(@D)
@rm -f $@
$(AR) rcs $@ $^
endef

$(PROTOCOL_LIB): $(call objects,$(PROTOCOL_SRC))
	$(archive)

$(STORAGE_INSIDE): $(call objects,$(STORAGE_SRC))
	$(archive)

# One object, in which only the names of store.h are global: a function of the engine may be called as
# one of the program's. Optimizing over files and instrumenting need the objects as they are.
ifeq ($(LTO)$(VARIANT)$(COVERAGE),)
$(OBJ)/storage.o: $(call objects,$(STORAGE_SRC))
	$(CC) -r -nostdlib -o $@.all $^
	$(OBJCOPY) --wildcard --keep-global-symbol='store_*' $@.all $@

$(STORAGE_LIB): $(OBJ)/storage.o
	$(archive)
else
$(STORAGE_LIB): $(call objects,$(STORAGE_SRC))
	$(archive)
endif

$(SERVER): $(call objects,$(SERVER_SRC)) $(RDMA_OBJECTS) $(PROTOCOL_LIB) $(STORAGE_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(SERVER_LIBS) $(STORAGE_LIBS)

$(CHECKER): $(call objects,server/vellum_check.c) $(STORAGE_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(STORAGE_LIBS)

$(CLIENT_LIB): $(call objects,$(CLIENT_SRC) $(LINK_SRC) protocol/rdma_end.c protocol/rdma_frame.c)
	$(archive)

$(BIN)/vellum-example: $(call objects,clients/example.c) $(CLIENT_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(CLIENT_LIBS)

$(BIN)/vellum-example-async: $(call objects,clients/example_async.c) $(CLIENT_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(CLIENT_LIBS) -levent_core

$(BIN)/vellum-rdma-proxy: $(call objects,clients/proxy.c) $(CLIENT_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(CLIENT_LIBS) -levent_core

$(BIN)/vellum-benchmark: $(call objects,$(BENCHMARK_SRC) $(BENCH_SRC)) $(CLIENT_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(CLIENT_LIBS) -lpthread -lm

# Preloaded: no sanitizer in it.
$(BUILD)/rdma/%.so: tests/rdma/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=c11 -O2 $(WARNINGS) -shared -fPIC -o $@ $< -ldl

$(addprefix $(BUILD)/rdma/,test_address test_deaths test_devices test_end test_failures test_hostile test_invalidation test_limits test_revoke test_session test_stages test_unreachable): $(call objects,$(RDMA_TEST_SRC))

$(BUILD)/rdma/%: $(OBJ)/tests/rdma/%.o $(CLIENT_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(CLIENT_LIB) -lcmocka $(CLIENT_LIBS) -levent_core

# The server over the model instead of the engine: tells a fault of the one from one of the other.
$(BIN)/vellum-server-model: $(call objects,$(SERVER_SRC) $(MODEL_SRC)) $(RDMA_OBJECTS) $(PROTOCOL_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(SERVER_LIBS)

$(BIN)/bench-load: $(call objects,benchmarks/load.c benchmarks/pattern.c $(BENCH_SRC))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lm

$(BIN)/bench-engine: $(call objects,benchmarks/engine_bench.c $(BENCH_SRC)) $(STORAGE_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(STORAGE_LIBS) -lm

$(BIN)/bench-transports: $(call objects,benchmarks/transports.c $(BENCH_SRC)) $(CLIENT_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(CLIENT_LIBS) -lm

define unit_rule
$(BUILD)/tests/$(1): $(OBJ)/$(2:.c=.o) $(value $(1)_LINK)
	@mkdir -p $$(@D)
	$(CC) $(LDFLAGS) -o $$@ $$^ -lcmocka $(SERVER_LIBS) $(STORAGE_LIBS) $($(1)_LIBS)
endef
$(foreach source,$(UNIT_TEST_SRC),$(eval $(call unit_rule,$(basename $(notdir $(source))),$(source))))

define storage_test_rule
$(BUILD)/tests/$(1): $(OBJ)/$(2:.c=.o) $(call objects,$(STORAGE_RIG_SRC)) $(STORAGE_INSIDE)
	@mkdir -p $$(@D)
	$(CC) $(LDFLAGS) $($(1)_LDFLAGS) -o $$@ $$^ -lcmocka $(STORAGE_LIBS)
endef
$(foreach source,$(STORAGE_TEST_SRC),$(eval $(call storage_test_rule,$(basename $(notdir $(source))),$(source))))

# One object, in which only the names of served.h are global: those of the server would collide with those
# of the tests of the engine.
$(OBJ)/served.o: $(SERVED_OBJECTS)
	$(CC) $(if $(LTO),$(LDFLAGS) -flinker-output=nolto-rel) -r -nostdlib -o $@.all $^
	$(OBJCOPY) --wildcard --keep-global-symbol='served_*' $@.all $@

define served_test_rule
$(BUILD)/tests/$(1): $(OBJ)/$(2:.c=.o) $(OBJ)/served.o $(call objects,$(SERVED_RIG_SRC)) $(STORAGE_INSIDE)
	@mkdir -p $$(@D)
	$(CC) $(LDFLAGS) -o $$@ $$^ -lcmocka $(SERVER_LIBS) $(STORAGE_LIBS)
endef
$(foreach source,$(SERVED_TEST_SRC),$(eval $(call served_test_rule,$(basename $(notdir $(source))),$(source))))

define fuzz_rule
$(BUILD)/fuzz/$(1): $(OBJ)/tests/fuzz/$(1).o $(value $(1)_LINK)
	@mkdir -p $$(@D)
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $$@ $$^ $(SERVER_LIBS)
endef
$(foreach fuzzer,$(FUZZERS),$(eval $(call fuzz_rule,$(fuzzer))))

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
