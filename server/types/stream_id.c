#include "server/types/stream_id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MOST 127 /* longer texts are no IDs, as in Redis */

bool stream_id_increment(struct stream_id *id)
{
    if (id->seq == UINT64_MAX && id->ms == UINT64_MAX)
        return false;
    if (++id->seq == 0)
        id->ms++;
    return true;
}

bool stream_id_decrement(struct stream_id *id)
{
    if (stream_id_is_zero(*id))
        return false;
    if (id->seq-- == 0)
        id->ms--;
    return true;
}

size_t stream_id_print(char text[STREAM_ID_TEXT], struct stream_id id)
{
    return (size_t)snprintf(text, STREAM_ID_TEXT, "%" PRIu64 "-%" PRIu64, id.ms, id.seq);
}

void stream_id_reply(struct resp_writer *reply, struct stream_id id)
{
    char text[STREAM_ID_TEXT];
    size_t len = stream_id_print(text, id);
    resp_bulk(reply, text, len);
}

/* As Redis reads unsigned numbers: strtoull accepts what is no canonical int64, but a negative one
 * is invalid. */
static bool read_number(const char *text, uint64_t *number)
{
    int64_t canonical;
    if (resp_read_int64(text, strlen(text), &canonical)) {
        *number = (uint64_t)canonical;
        return canonical >= 0;
    }
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *text != '\0' && *end == '\0';
}

enum stream_id_form stream_id_parse(struct resp_slice text, uint64_t missing_seq,
                                    struct stream_id *id)
{
    char copy[TEXT_MOST + 1];
    if (text.len > TEXT_MOST)
        return STREAM_ID_INVALID;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    char *seq = strchr(copy, '-');
    if (seq != NULL)
        *seq++ = '\0';
    if (!read_number(copy, &id->ms))
        return STREAM_ID_INVALID;
    id->seq = missing_seq;
    if (seq == NULL)
        return STREAM_ID_WHOLE;
    if (strcmp(seq, "*") == 0) {
        id->seq = 0;
        return STREAM_ID_AUTO_SEQ;
    }
    return read_number(seq, &id->seq) ? STREAM_ID_WHOLE : STREAM_ID_INVALID;
}
