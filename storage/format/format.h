/*
 * The data directory, byte by byte. All integers are little-endian.
 *
 *   superblock   identity, geometry, the last checkpoint     (2 x 4096 B, written in turn: struct
 *                format_superblock at sequence % 2 * 4096, then zeros)
 *   journal      redo records, a ring of groups               (preallocated)
 *   slabs-NN     one per partition: items of up to a page
 *   extents      large values: runs of pages without headers
 *   index        written by a clean shutdown: saves the next start from reading all slabs
 *
 * Slab and extent files are arrays of 4096 B pages, in segments of 256. Page 0 of a segment is its
 * header and contains its class; the others hold slots (or runs) of that class. So page 0 of a file
 * never holds an item, and 0 can mean 'none'.
 *
 * Slab classes 1 to 26 have 64, 56, 50, 44, 40, 36, 32, 28, 25, 22, 20, 18, 16, 14, 12, 11, 10, 9,
 * 8, 7, 6, 5, 4, 3, 2 and 1 slots per page, consecutive from its start, each of 4096 / slots bytes,
 * rounded down to a multiple of 8. Classes of `extents` are 64 + pages in a run.
 *
 * SEGMENT HEADER PAGE: two copies, at 0 and at FORMAT_SEGMENT_COPY
 *   OFFSET SIZE DESCRIPTION
 *        0    8 FORMAT_SEGMENT_MAGIC
 *        8    8 store's seed
 *       16    4 segment number
 *       20    1 page file: partition number, or FORMAT_EXTENT_FILE
 *       21    1 class
 *       22    2 zero
 *       24    8 XXH3-64 of bytes 0..23
 *
 * ITEM, at the start of its slot; a free slot's header is all zeros
 *   OFFSET SIZE DESCRIPTION
 *        0    4 checksum: low half of XXH3-64 over bytes 4..end, xor format_place_mix(): the high
 *               half of ((file << 56 | slot << 40 | page) ^ store's seed) * 0x9e3779b97f4a7c15
 *        4    4 database id: a number from the superblock's map, never reused
 *        8    8 version: number of the commit that wrote it
 *       16    2 key length
 *       18    2 payload length
 *       20    1 type, defined by the caller
 *       21    1 flags: enum format_flags
 *       22    2 zero
 *       24    8 expiry, Unix ms                     (only with FORMAT_HAS_EXPIRY)
 *        .    8 wake time, Unix ms                  (only with FORMAT_HAS_WAKE, from version 5 on)
 *        .    . key, or with FORMAT_LONG_KEY its replacement (see LONG KEY)
 *        .    . payload: the value, or with FORMAT_LARGE a large root, with FORMAT_TREES the trees
 * A root of a tree of keys (KEY TREE) is of its database, has FORMAT_KEY_TREE, and in place of a
 * key a hash slot of its partition (2).
 * Database id FORMAT_HIDDEN is internal to the engine: nodes of trees, and overflow values of
 * trees' entries. The key of an overflow value is a struct format_overflow_key. FORMAT_META is that
 * of STORE_META_DB: the store's user has items there that are in none of the databases.
 *
 * LONG KEY: replaces a key of more than FORMAT_KEY_INLINE bytes in its item
 *        0    8 format_hash() of the key
 *        8    8 format_second_hash() of the key
 *       16    2 hash slot
 *       18    6 zero
 *       24    . large root of the key's bytes, stored like a value
 *
 * TREES: a large collection
 *        0    8 collection id, never reused
 *        8    2 partition of its nodes
 *       10    1 number of trees
 *       11    5 zero
 *       16  16n per tree: entries (8), page of the root (4), height (2; 0: empty, root 0),
 *               1 if there are overflow values (2)
 *
 * KEY TREE, in directories with FORMAT_ORDERED: for each partition and database, the keys in it in
 * order: TREES of one tree, whose nodes are in the same partition. The root exists while the tree
 * has entries. An entry's key is the name of a key of up to FORMAT_NAME_WHOLE bytes, and its value
 * is empty. Of a longer name the entry has these first bytes, then format_hash() with its highest
 * byte first (8), and as its value the hash slot (2).
 *
 * NODE of a tree: an item of a whole page with FORMAT_NODE and the version of its last change. It
 * is not in the index; its parent, or the trees, contain its page number. Changed in place.
 *        0   24 item header, with a different checksum: format_node_checksum(), xor
 *               format_place_mix()
 *       24    8 collection id (the item's key)
 *       32    1 level: 0 = a leaf
 *       33    1 a leaf: length of the prefix that all its keys share
 *       34    2 number of entries (children)
 *       36    2 start of the heap, which grows down from the page's end
 *       38    2 garbage bytes in the heap
 *       40    2 a leaf: free cells before the first
 *       42    2 zero
 *       44   4n a leaf: offset of each entry in order (2), the two bytes of its key after the
 *               shared prefix (2)
 *       44  16n an inner node: its children: entries below (4), page (4), offset (2) and length
 *               (2) of the separator, its first four bytes, the first one highest (4); highest bit
 *               of the length: `loose` (tree_node.h)
 * ENTRY in a leaf's heap
 *        0    2 key length; highest bit: the value is a struct format_overflow
 *        2    2 value length
 *        4    . key, value
 *
 * LARGE ROOT: a value as an array of extents of FORMAT_EXTENT_BYTES, the last one shorter
 *   OFFSET SIZE DESCRIPTION
 *        0    8 length of the value
 *        8    4 number of descriptors that follow
 *       12    4 depth: 0 = they name extents, 1 = they name nodes
 *       16  16n descriptors
 *   A node is a run of one page with FORMAT_NODE_FANOUT descriptors of extents (the last may have
 *   fewer; the rest is zero). Page 0 in place of a node's: all of its extents are holes.
 *
 * EXTENT DESCRIPTOR
 *        0    4 first page in `extents`; 0: a hole: as many zero bytes as an extent in its place
 *               has; the rest of the descriptor is zero
 *        4    4 length in bytes
 *        8    8 XXH3-64 of the bytes
 *
 * JOURNAL GROUP, at a multiple of 4096, padded with zeros to one; never wraps
 *   OFFSET SIZE DESCRIPTION
 *        0    8 FORMAT_GROUP_MAGIC
 *        8    8 epoch: number of starts of the server
 *       16    8 sequence number, consecutive
 *       24    8 number of its first commit; its records are consecutive commits
 *       32    4 number of records
 *       36    4 length of header and records in bytes
 *       40    8 checksum of the previous group (a chain: a group of an abandoned history can
 *               never follow one of the current history)
 *       48    8 store's seed: bytes written by a client never pass for a group
 *       56    8 the newest commit that was durable when the group was written: a missing commit up
 *               to that one is damage, a later one was never acknowledged
 *       64    8 XXH3-64 of the records, seeded with XXH3-64 of bytes 0..63
 *   A group that does not fit before the end of the journal is at its start.
 *
 * JOURNAL RECORD: one transaction                JOURNAL OPERATION, 8-aligned
 *        0    4 length, multiple of 8                0    1 kind: enum format_op
 *        4    4 number of operations                 1    1 page file
 *        8    . operations                           2    2 length of the bytes that follow
 *                                                    4    4 page
 *                                                    8    1 slot (PUT, ERASE) or class (ASSIGN)
 *                                                    9    7 zero
 *                                                   16    . bytes, padded to 8
 * The bytes of a PATCH are ranges of the slot: offset (2), length (2), that many bytes.
 * A record of LONG_RECORD operations alone refers to a long record, which holds the transaction's
 * operations, one after the other. The bytes of a LONG_RECORD are extent descriptors, in the order
 * of the long record's bytes, which fill all runs but the last. Redo is physical: applying a
 * journal's operations in order to the pages gives the pages; doing so twice gives the same.
 *
 * INDEX CHECKPOINT, the file `index`: a stream of bytes in blocks of FORMAT_INDEX_BLOCK
 *   OFFSET SIZE DESCRIPTION
 *        0    8 XXH3-64 of what follows except the padding, seeded with the hash (itself seeded
 *               with the store's seed) of the head of this shutdown's checkpoint: a block of
 *               another store or shutdown is wrong like a damaged one
 *        8    4 number of the block, from 0
 *       12    4 bytes of the stream in it
 *       16    . those bytes, in the last block padded with zeros to a multiple of 4096
 * The stream: a head; then for each partition, and at last for the extents (without entries and
 * expiries): a struct format_index_page_file; the classes of its first `segment_assigned` segments,
 * a byte each; the masks of free slots of each segment that has a class, 8 bytes for each page (of
 * extents the first FORMAT_RUN_MASKS); the entries of each hash slot that has any (index.h), until
 * there are `entries` of them; those of each expiry table (ttl.h), until there are `expiries`. Each
 * hash slot and table begins with a struct format_index_cells, followed by its cells of 8 bytes.
 * At the end FORMAT_INDEX_END.
 */
#ifndef VELLUM_STORE_FORMAT_H
#define VELLUM_STORE_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "storage/collections.h"

#define FORMAT_VERSION 5u
#define FORMAT_VERSION_OLDEST 2u /* still read: only entries, types, items of the server differ */
#define FORMAT_STAMP (FORMAT_VERSION | SIZES_VERSION_MARK) /* as stored in files */
#define FORMAT_STAMP_OLDEST (FORMAT_VERSION_OLDEST | SIZES_VERSION_MARK)
/* Of the version in the superblock of a directory with KEY TREEs: servers that would not keep them
 * know no such version. */
#define FORMAT_ORDERED 0x10000u
#define FORMAT_SUPERBLOCK_MAGIC 0x31304d554c4c4556ull /* "VELLUM01" */
#define FORMAT_SEGMENT_MAGIC 0x544d474553554c56ull    /* "VLUSEGMT" */
#define FORMAT_GROUP_MAGIC 0x50554f5247554c56ull      /* "VLUGROUP" */
#define FORMAT_INDEX_MAGIC 0x3258444e49554c56ull      /* "VLUINDX2" */
#define FORMAT_INDEX_END 0x444e4558444e4956ull        /* "VINDXEND" */

#define PAGE_SIZE 4096u
#define SEGMENT_PAGES SIZES_SEGMENT_PAGES
#define SEGMENT_BYTES (SEGMENT_PAGES * PAGE_SIZE)
#define FORMAT_SEGMENT_COPY 2048u
#define FORMAT_PARTITION_MAX 128u
#define FORMAT_EXTENT_FILE 255u /* page file number of `extents` */
#define FORMAT_EXTENT_PAGES SIZES_EXTENT_PAGES
#define FORMAT_EXTENT_BYTES (FORMAT_EXTENT_PAGES * PAGE_SIZE)
#define FORMAT_NODE_FANOUT SIZES_NODE_FANOUT
#define FORMAT_NODE_BYTES (FORMAT_NODE_FANOUT * 16u) /* of its descriptors */
#define FORMAT_INDEX_BLOCK (64u << 10)
#define FORMAT_RUN_MASKS 4u /* words of free runs at the start of an extents segment's masks */
#define FORMAT_ROOT_EXTENTS SIZES_ROOT_EXTENTS /* extents that a root names itself, at most */

#define FORMAT_KEY_INLINE SIZES_KEY_INLINE /* longest key stored in its item */

enum format_flags {
    FORMAT_HAS_EXPIRY = 1,
    FORMAT_LARGE = 2,
    FORMAT_NODE = 4,
    FORMAT_TREES = 8,
    FORMAT_LONG_KEY = 16,
    FORMAT_HAS_WAKE = 32,
    FORMAT_KEY_TREE = 64
};
#define FORMAT_NAME_WHOLE ((uint32_t)STORE_TREE_KEY_MAX - 8u) /* see KEY TREE */
#define FORMAT_DAMAGED UINT32_MAX /* database id of an item found damaged; in memory only */
#define FORMAT_HIDDEN (UINT32_MAX - 1)
#define FORMAT_META (UINT32_MAX - 2)

enum format_op {
    FORMAT_PUT = 1,
    FORMAT_ERASE = 2,
    FORMAT_ASSIGN = 3,
    FORMAT_DATABASES = 4,
    FORMAT_PATCH = 5,
    FORMAT_LONG_RECORD = 6
};

struct format_segment {
    uint64_t magic;
    uint64_t seed;
    uint32_t segment;
    uint8_t file;
    uint8_t size_class;
    uint16_t zero;
    uint64_t checksum;
};

struct format_item {
    uint32_t checksum;
    uint32_t database;
    uint64_t version;
    uint16_t key_len;
    uint16_t payload_len;
    uint8_t type;
    uint8_t flags;
    uint16_t zero;
};

struct format_extent {
    uint32_t page;
    uint32_t length;
    uint64_t checksum;
};

struct format_root {
    uint64_t length;
    uint32_t count;
    uint32_t depth;
    struct format_extent extents[];
};

struct format_long_key {
    uint64_t hashes[2];
    uint16_t slot;
    uint16_t zero[3];
};

struct format_tree {
    uint64_t count;
    uint32_t root;
    uint16_t height;
    uint16_t has_overflow;
};

struct format_trees {
    uint64_t collection;
    uint16_t home;
    uint8_t count;
    uint8_t zero[5];
    struct format_tree trees[];
};

struct format_node {
    struct format_item item;
    uint64_t collection;
    uint8_t level;
    uint8_t shared;
    uint16_t count;
    uint16_t heap;
    uint16_t garbage;
    uint16_t first;
    uint16_t zero;
};

struct format_cell { /* of a leaf */
    uint16_t offset, hint;
};

struct format_child {
    uint32_t count;
    uint32_t page;
    uint16_t separator;
    uint16_t separator_len;
    /* The separator's first bytes, as a number ordered like the keys, except for ties. */
    uint32_t head;
};

/* An overflow value: an item of its own under this key. */
struct format_overflow_key {
    uint64_t collection;
    uint64_t element; /* never reused */
    uint16_t slot;    /* hash slot under which the index has it */
    uint16_t zero[3];
};

struct format_overflow {
    uint64_t element;
    uint64_t length;
    uint16_t slot;
    uint16_t zero[3];
};

struct format_range { /* of a PATCH */
    uint16_t offset, length;
};

struct format_group {
    uint64_t magic;
    uint64_t epoch;
    uint64_t sequence;
    uint64_t first_commit;
    uint32_t record_count;
    uint32_t length;
    uint64_t previous;
    uint64_t seed;
    uint64_t durable_commit;
    uint64_t checksum;
};

struct format_record {
    uint32_t length;
    uint32_t op_count;
};

struct format_operation {
    uint8_t kind;
    uint8_t file;
    uint16_t length;
    uint32_t page;
    uint8_t slot;
    uint8_t zero[7];
};

/* The logical databases' current ids: SWAPDB exchanges two, FLUSHDB gives a new one. */
struct format_databases {
    uint32_t ids[STORE_DB_COUNT];
    uint32_t next_id;
    uint32_t zero;
};

struct format_superblock {
    uint64_t magic;
    uint32_t version;
    uint32_t partition_count;
    uint8_t store_id[16];
    uint64_t seed; /* of checksums: bytes written by a client never pass for an item */
    uint64_t journal_bytes;
    uint64_t sequence;      /* the valid copy with the higher one counts */
    uint64_t epoch;         /* of the current or last start */
    uint64_t tail_position; /* where redo begins in the journal */
    uint64_t tail_sequence; /* of the group expected there */
    uint64_t tail_previous; /* its `previous` */
    uint64_t tail_commit;   /* its first commit's number */
    uint64_t clock_ms;      /* highest time seen: expiry never runs backwards */
    uint32_t clean;         /* 1: clean shutdown, the journal is empty */
    uint32_t zero;
    struct format_databases databases; /* as of the tail */
    uint64_t checksum;                 /* XXH3-64 of the preceding bytes */
};

struct format_index_head {
    uint64_t magic;
    uint8_t store_id[16];
    uint64_t epoch;          /* that ended with this shutdown */
    uint64_t commit;         /* the first commit not included */
    uint64_t previous;       /* the superblock's tail_previous */
    uint64_t super_sequence; /* of the superblock that says `clean` */
    uint32_t version;
    uint32_t partition_count;
};

struct format_index_block {
    uint64_t checksum;
    uint32_t number;
    uint32_t length;
};

struct format_index_count {
    uint64_t keys, expires, expiries; /* as in struct database_count */
};

struct format_index_page_file {
    uint32_t segment_count;
    uint32_t segment_assigned;
    uint64_t entries;
    uint64_t expiries;
    int64_t expiry_base_ms;
    uint32_t is_swept; /* 0: entries of flushed databases may be included */
    uint32_t wakes;    /* of the expiries: wake times (modulo 2^32; 0 unless is_swept) */
    struct format_index_count databases[STORE_DB_COUNT + 1];
};

struct format_index_cells {
    uint32_t table; /* hash slot, or number of the expiry table */
    uint32_t count;
};

static_assert(sizeof(struct format_segment) == 32, "on disk");
static_assert(sizeof(struct format_index_head) == 64, "on disk");
static_assert(sizeof(struct format_index_block) == 16, "on disk");
static_assert(sizeof(struct format_index_page_file) == 40 + 24 * (STORE_DB_COUNT + 1), "on disk");
static_assert(sizeof(struct format_index_cells) == 8, "on disk");
static_assert(sizeof(struct format_item) == 24, "on disk");
static_assert(sizeof(struct format_extent) == 16, "on disk");
static_assert(sizeof(struct format_root) == 16, "on disk");
static_assert(sizeof(struct format_long_key) == 24, "on disk");
static_assert(sizeof(struct format_tree) == 16, "on disk");
static_assert(sizeof(struct format_trees) == 16, "on disk");
static_assert(offsetof(struct format_node, zero) == 42, "on disk");
static_assert(sizeof(struct format_cell) == 4, "on disk");
static_assert(sizeof(struct format_child) == 16, "on disk");
static_assert(sizeof(struct format_overflow_key) == 24, "on disk");
static_assert(sizeof(struct format_overflow) == 24, "on disk");
static_assert(sizeof(struct format_range) == 4, "on disk");
static_assert(sizeof(struct format_group) == 72, "on disk");
static_assert(sizeof(struct format_record) == 8, "on disk");
static_assert(sizeof(struct format_operation) == 16, "on disk");
static_assert(sizeof(struct format_databases) == 72, "on disk");
static_assert(sizeof(struct format_superblock) == 192, "on disk");

/* Size classes of slabs: equal slots that divide a page. Class 0 is 'unassigned'. */
#define FORMAT_SLAB_CLASSES 26u
/* Classes of extents are FORMAT_RUN_CLASS + pages in a run, 1 .. FORMAT_EXTENT_PAGES. */
#define FORMAT_RUN_CLASS 64u

uint32_t format_class_slots(uint32_t size_class); /* slots in a page */
uint32_t format_class_size(uint32_t size_class);  /* bytes in a slot */
uint32_t format_class_for(uint32_t item_len);     /* smallest class that holds it */
uint32_t format_run_class_for(uint32_t bytes);

#define FORMAT_ITEM_MAX PAGE_SIZE
#define FORMAT_ITEM_VALUE SIZES_ITEM_VALUE /* longest item that contains its value */

/* One item must have room for the roots of the longest key and the longest value. */
#define FORMAT_NODES_MOST                                                                          \
    ((STORE_VALUE_MAX + FORMAT_NODE_FANOUT * FORMAT_EXTENT_BYTES - 1) /                            \
     (FORMAT_NODE_FANOUT * FORMAT_EXTENT_BYTES))
static_assert(sizeof(struct format_item) + 8 + sizeof(struct format_long_key) +
                      2 * (sizeof(struct format_root) +
                           FORMAT_NODES_MOST * sizeof(struct format_extent)) <=
                  FORMAT_ITEM_MAX,
              "no item for the longest value under the longest key");
static_assert(FORMAT_ITEM_VALUE <= FORMAT_ITEM_MAX, "an item fills a page at most");
static_assert(sizeof(struct format_item) + 16 + FORMAT_KEY_INLINE + SIZES_PACKED <=
                  FORMAT_ITEM_VALUE,
              "a small collection with both times under the longest key in its item is not large");
static_assert(FORMAT_KEY_INLINE + FORMAT_ROOT_EXTENTS * sizeof(struct format_extent) +
                      sizeof(struct format_item) + 8 + sizeof(struct format_root) <=
                  FORMAT_ITEM_MAX,
              "no item for a large value under the longest key in it");
static_assert(FORMAT_NODE_BYTES == FORMAT_NODE_FANOUT * sizeof(struct format_extent) &&
                  FORMAT_NODE_BYTES <= PAGE_SIZE,
              "a node is one page");
static_assert(FORMAT_ROOT_EXTENTS <= FORMAT_NODE_FANOUT, "the first node takes the root's extents");
static_assert(SEGMENT_PAGES % 64 == 0 && SEGMENT_PAGES <= 64 * FORMAT_RUN_MASKS,
              "masks of free runs");
static_assert(STORE_READER_PIECE == FORMAT_EXTENT_BYTES, "a stream's piece is an extent");

/* Binds an item to its place, so that a misdirected or copied page is detected. */
uint32_t format_place_mix(uint64_t seed, uint32_t file, uint32_t page, uint32_t slot);
uint32_t format_item_checksum(const struct format_item *item, uint32_t length, uint32_t place_mix);

/* A node's checksum is a sum over its words, so that it can be updated after a change of a few
 * bytes without reading the whole page: subtract the old checksum of the words that hold
 * [offset, offset + length), and add the new one. Odd factors make each step a bijection, so that
 * no change of a single word is lost before the upper half is taken. The word's number makes
 * swapped words detectable. */
#define FORMAT_WORD 8u
static inline uint32_t format_word_checksum(uint64_t word, uint32_t number)
{
    uint64_t mixed = (word ^ (number + 1ull) * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
    return (uint32_t)((mixed ^ mixed >> 32) * 0x94d049bb133111ebull >> 32);
}
static inline uint32_t format_words_checksum(const void *node, uint32_t offset, uint32_t length)
{
    uint32_t sum = 0, last = (offset + length - 1) / FORMAT_WORD;
    for (uint32_t number = offset / FORMAT_WORD; number <= last; number++) {
        uint64_t word;
        memcpy(&word, (const char *)node + number * FORMAT_WORD, sizeof word);
        sum += format_word_checksum(word, number);
    }
    return sum;
}
/* Over the whole node except the checksum itself, the first half of the first word. */
static inline uint32_t format_node_checksum(const void *node)
{
    uint64_t first;
    memcpy(&first, node, sizeof first);
    return format_word_checksum(first >> 32, 0) +
           format_words_checksum(node, FORMAT_WORD, PAGE_SIZE - FORMAT_WORD);
}

/* Length of the whole item; 0 if its lengths are impossible in a slot of `slot_size`. */
uint32_t format_item_length(const struct format_item *item, uint32_t slot_size);

/* Whether an extent's length is possible, or it is a hole; the page file checks its page. */
bool format_extent_is_sound(const struct format_extent *extent);
/* Whether the item's references are plausible. A correct checksum does not prove it: data damaged
 * in memory is written with one. */
bool format_item_is_sound(const struct format_item *item);
/* Whether all ids are in the range that was assigned, each once. */
bool format_databases_are_sound(const struct format_databases *databases);

/* The hash of a key: XXH3-64 with the store's own secret, without which clients cannot construct
 * keys that collide in the index. The secret is in no file; it is derived from the superblock. Long
 * keys are hashed by store_keyed_hash(); the second hash is the same with another key. The two
 * hashes together identify a long key. */
#define FORMAT_SECRET_WORDS 24u
struct format_secret {
    _Alignas(64) uint64_t words[FORMAT_SECRET_WORDS];
    uint64_t long_keys[2][2];
};
void format_make_secret(const struct format_superblock *super, struct format_secret *secret);
uint64_t format_hash(const struct format_secret *secret, const char *data, size_t len);
uint64_t format_second_hash(const struct format_secret *secret, const char *data, size_t len);
uint64_t format_checksum(const void *data, size_t len);

/* Bytes of an item before its key. */
static inline uint32_t format_head_with(bool has_expiry, bool has_wake)
{
    return (uint32_t)sizeof(struct format_item) + (has_expiry ? 8u : 0u) + (has_wake ? 8u : 0u);
}
static inline uint32_t format_head_length(const struct format_item *item)
{
    static_assert(FORMAT_HAS_EXPIRY == 1 && FORMAT_HAS_WAKE == 32,
                  "8 bytes for each, without branches");
    uint32_t flags = item->flags;
    return (uint32_t)sizeof *item + ((flags & FORMAT_HAS_EXPIRY) << 3) +
           ((flags & FORMAT_HAS_WAKE) >> 2);
}
static inline const char *format_key(const struct format_item *item)
{
    return (const char *)item + format_head_length(item);
}
static inline const char *format_payload(const struct format_item *item)
{
    return format_key(item) + item->key_len;
}
int64_t format_expiry(const struct format_item *item);            /* or STORE_NO_EXPIRY */
static inline int64_t format_wake(const struct format_item *item) /* likewise */
{
    int64_t wake;
    if (__builtin_expect(!(item->flags & FORMAT_HAS_WAKE), 1))
        return STORE_NO_EXPIRY;
    memcpy(&wake, format_key(item) - sizeof wake, sizeof wake);
    return wake;
}

/* The root of the long key's bytes, after the struct that replaces the key. */
static inline const char *format_key_root(const struct format_item *item)
{
    return format_key(item) + sizeof(struct format_long_key);
}
static inline uint32_t format_key_root_length(const struct format_item *item)
{
    return item->key_len - (uint32_t)sizeof(struct format_long_key);
}
/* The hash of the item's key, short or long. */
uint64_t format_key_hash(const struct format_secret *secret, const struct format_item *item);
uint32_t format_key_slot(const struct format_item *item);

#endif
