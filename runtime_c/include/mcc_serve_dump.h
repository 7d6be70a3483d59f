/* mcc_serve_dump.h - has a run behind a serial line stop at everything that its steps make, until the host has read
 * what it wants of that. For models that are compiled with --dump-values:
 * <model>_set_dump(&m, mcc_serve_stop, &server).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SERVE_DUMP_H
#define MCC_SERVE_DUMP_H

#include "mcc_dump.h"
#include "mcc_serve.h"

/* The bytes of a record, of which some are wanted. */
typedef struct {
    uint32_t at, wanted;
    uint8_t *to;
    size_t count;
} mcc_serve_part;

MCC_INLINE size_t mcc_serve_take(void *to, const void *from, size_t bytes)
{
    mcc_serve_part *const part = (mcc_serve_part *)to;
    const uint8_t *const p = (const uint8_t *)from;
    size_t i;
    for (i = 0; i < bytes; i++, part->at++)
        if (part->at >= part->wanted && part->at - part->wanted < part->count) part->to[part->at - part->wanted] = p[i];
    return bytes;
}

/* Writes so many bytes of the record of what is there, from `offset` on. */
MCC_INLINE void mcc_serve_record(mcc_serve *s, uint32_t offset, uint8_t *to, size_t count)
{
    mcc_serve_part part;
    mcc_dump_writer writer;
    part.at = 0u;
    part.wanted = offset;
    part.to = to;
    part.count = count;
    mcc_dump_begin(&writer, mcc_serve_take, &part);
    mcc_dump_write(&writer, (const mcc_dumped *)s->stopped_at);
    s->record_bytes = part.at;
}

/* A function for <model>_set_dump; `to` is the server, and its `record` is mcc_serve_record. */
MCC_INLINE void mcc_serve_stop(void *to, const mcc_dumped *what)
{
    mcc_serve *const s = (mcc_serve *)to;
    int byte;
    if ((s->how & MCC_SERVE_TO_STOP) == 0u) return;
    s->stopped_at = what;
    mcc_serve_record(s, 0u, NULL, 0u);
    s->is_stopped = 1u;
    mcc_serve_set(s, MCC_SERVE_STOPPED, MCC_OK, s->record_bytes, 0u);
    mcc_serve_reply(s, MCC_SERVE_STOPPED);
    while (s->is_stopped) {
        byte = s->read(s->stream);
        if (byte < 0) s->is_stopped = 0u;
        else mcc_serve_byte(s, (uint8_t)byte);
    }
}

#endif /* MCC_SERVE_DUMP_H */
