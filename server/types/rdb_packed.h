/*
 * The elements of Redis's compact encodings, each of which is stored in a string of its own.
 */
#ifndef VELLUM_RDB_PACKED_H
#define VELLUM_RDB_PACKED_H

#include "server/types/rdb_reader.h"

enum rdb_result rdb_read_listpack(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_ziplist(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_zipmap(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_intset(struct rdb_reader *reader, struct resp_slice bytes);

#endif
