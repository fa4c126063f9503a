#include "storage/txn/item_access.h"

#include "storage/cache/access_clock.h"

static bool is_counted(const struct store_txn *txn, const struct page_file *file, uint32_t page,
                       uint32_t slot)
{
    return txn->used_page == page && txn->used_slot == slot && txn->used_file == file->id;
}

void item_use_touch(struct store_txn *txn, struct page_file *file, uint32_t page, uint32_t slot)
{
    if (is_counted(txn, file, page, slot))
        return;
    txn->used_page = page;
    txn->used_slot = (uint8_t)slot;
    txn->used_file = file->id;
    access_touch(file, page, slot, txn->request->now_ms, &txn->random);
}

void item_use_write(struct store_txn *txn, struct page_file *file, const struct write *write)
{
    const struct access_move move = {.old_page = write->old_page,
                                     .old_slot = write->old_slot,
                                     .new_page = write->new_page,
                                     .new_slot = write->new_slot,
                                     .given = write->use,
                                     .is_counted =
                                         is_counted(txn, file, write->old_page, write->old_slot),
                                     .now_ms = txn->request->now_ms};
    access_move(file, &move, &txn->random);
}
