/*
 * A transaction's own memory: blocks that are freed together, when its run is discarded or it is
 * finished.
 *
 * Invariant: `block_bytes` is the sum of the blocks' sizes, including blocks that txn_memory_swap
 * has set aside.
 */
#include "storage/txn/txn_memory.h"

#include <assert.h>
#include <stdlib.h>

#define BLOCK_SIZE 16384u
#define NOTE_STEP (256u << 10)    /* smaller changes of a worker's transactions are not reported */
#define ALWAYS_BYTES (256u << 10) /* a transaction may take so much unchecked */

struct memory_block {
    struct memory_block *next;
    size_t used, size;
    char bytes[];
};

static uint64_t entry_bytes(const struct store_txn *txn)
{
    return sizeof *txn->writes + WRITE_CELLS * sizeof *txn->write_table;
}

void txn_memory_note(struct store_txn *txn)
{
    struct store_worker *worker = txn->worker;
    int64_t held = (int64_t)(txn->block_bytes + txn->write_capacity * entry_bytes(txn));
    int64_t change = worker->unreported_bytes + held - txn->noted_bytes;
    txn->noted_bytes = held;
    bool is_due = change >= NOTE_STEP || change <= -NOTE_STEP;
    worker->unreported_bytes = is_due ? 0 : change;
    if (is_due)
        store_note_memory(txn->store, change);
}

static bool may_grow(const struct store_txn *txn, uint64_t bytes)
{
    return (uint64_t)txn->noted_bytes + bytes <= ALWAYS_BYTES ||
           store_has_memory(txn->store, bytes);
}

bool txn_memory_for_writes(const struct store_txn *txn)
{
    return may_grow(txn, txn->write_capacity * entry_bytes(txn));
}

static void free_block(struct store_txn *txn, struct memory_block *block)
{
    assert(block->used <= block->size && txn->block_bytes >= block->size);
    txn->block_bytes -= block->size;
    txn_memory_note(txn);
    free(block);
}

void *store_alloc(struct store_txn *txn, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    struct memory_block *block = txn->blocks;
    if (!block || block->size - block->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        struct memory_block *fresh = may_grow(txn, room) ? malloc(sizeof *fresh + room) : NULL;
        if (!fresh)
            return NULL;
        *fresh = (struct memory_block){.next = block, .size = room};
        txn->blocks = block = fresh;
        txn->block_bytes += room;
        txn_memory_note(txn);
    }
    void *memory = block->bytes + block->used;
    block->used += size;
    return memory;
}

struct memory_block *txn_memory_swap(struct store_txn *txn, struct memory_block *blocks)
{
    struct memory_block *before = txn->blocks;
    txn->blocks = blocks;
    return before;
}

void txn_memory_free(struct store_txn *txn, struct memory_block *blocks)
{
    while (blocks) {
        struct memory_block *next = blocks->next;
        free_block(txn, blocks);
        blocks = next;
    }
}

uint64_t store_memory(const struct store_txn *txn)
{
    return txn->block_bytes + (uint64_t)txn->write_count * sizeof *txn->writes +
           (uint64_t)txn->write_table_size * sizeof *txn->write_table;
}

void store_mark(const struct store_txn *txn, struct store_mark *mark)
{
    *mark = (struct store_mark){.block = txn->blocks,
                                .used = txn->blocks ? txn->blocks->used : 0,
                                .copied_bytes = txn->copied_bytes,
                                .write_count = txn->write_count,
                                .tree_buffers = txn->trees.buffers,
                                .collection = txn->trees.collections,
                                .reader = txn->readers};
}

static bool is_referred_to(const struct store_txn *txn, const struct store_mark *mark)
{
    return txn->write_count != mark->write_count || txn->trees.collections != mark->collection ||
           txn->trees.buffers != mark->tree_buffers || txn->readers != mark->reader;
}

bool store_forget(struct store_txn *txn, const struct store_mark *mark)
{
    if (is_referred_to(txn, mark) || txn->bulk_load)
        return false;
    txn_memory_return(txn, mark);
    return true;
}

void txn_memory_return(struct store_txn *txn, const struct store_mark *mark)
{
    assert(!is_referred_to(txn, mark));
    while (txn->blocks != mark->block) {
        struct memory_block *next = txn->blocks->next;
        if (!next && !mark->block)
            break; /* the first block is always kept */
        free_block(txn, txn->blocks);
        txn->blocks = next;
    }
    assert(txn->blocks || !mark->block);
    if (txn->blocks)
        txn->blocks->used = txn->blocks == mark->block ? mark->used : 0;
    txn->copied_bytes = mark->copied_bytes;
}

void txn_memory_release(struct store_txn *txn)
{
    while (txn->blocks && txn->blocks->next) {
        struct memory_block *next = txn->blocks->next;
        free_block(txn, txn->blocks);
        txn->blocks = next;
    }
    if (txn->blocks && txn->blocks->size > BLOCK_SIZE) {
        free_block(txn, txn->blocks);
        txn->blocks = NULL;
    }
    if (txn->blocks)
        txn->blocks->used = 0;
    txn->copied_bytes = 0;
}
