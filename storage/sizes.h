/*
 * The sizes that decide where structure begins: how much a page's item, an extent, a root, a node
 * and a segment hold. With VELLUM_TINY (`make TINY=1`) all of them are tiny, so that short random
 * sequences of tests reach every form and depth, which otherwise only values of megabytes and
 * collections of millions do. A page stays 4096 bytes: devices ask for it.
 *
 * The sizes belong to the data format: a tiny directory has a format version of its own, and
 * neither build opens the other's.
 */
#ifndef VELLUM_STORE_SIZES_H
#define VELLUM_STORE_SIZES_H

#ifdef VELLUM_TINY

#define SIZES_ARE_TINY 1
#define SIZES_VERSION_MARK 0x54000000u /* of a format version: 'T' */
#define SIZES_SEGMENT_PAGES 64u
#define SIZES_EXTENT_PAGES 2u /* two, so that there are runs of several classes */
#define SIZES_ROOT_EXTENTS 4u
#define SIZES_NODE_FANOUT 4u /* of a large value's node */
#define SIZES_KEY_INLINE 64u
#define SIZES_ITEM_VALUE 600u /* the longest item of a key and its value */
#define SIZES_TREE_ROOM 352u  /* bytes of a tree's node: four of the largest entries */
#define SIZES_TREE_KEY 48     /* longest key of a tree's entry */
#define SIZES_VALUE_MAX (1024u * 1024)
#define SIZES_JOURNAL_MIN (2u << 20)
#define SIZES_GROUP_TARGET (32u << 10)
#define SIZES_GROUP_LIMIT (256u << 10)
#define SIZES_PACKED 60 /* bytes of a small collection */

#else

#define SIZES_ARE_TINY 0
#define SIZES_VERSION_MARK 0u
#define SIZES_SEGMENT_PAGES 256u
#define SIZES_EXTENT_PAGES 32u
#define SIZES_ROOT_EXTENTS 64u
#define SIZES_NODE_FANOUT 256u
#define SIZES_KEY_INLINE 2048u
#define SIZES_ITEM_VALUE 4096u
#define SIZES_TREE_ROOM 4052u
#define SIZES_TREE_KEY 512
#define SIZES_VALUE_MAX (512u * 1024 * 1024) /* as in Redis */
#define SIZES_JOURNAL_MIN (8u << 20)
#define SIZES_GROUP_TARGET (256u << 10)
#define SIZES_GROUP_LIMIT (4u << 20)
#define SIZES_PACKED 2000

#endif

#define STORE_VALUE_MAX SIZES_VALUE_MAX /* longest value */
#define STORE_KEY_MAX STORE_VALUE_MAX   /* longest key */

#endif
