/* mcc_store.h - keeps what was learned where it survives a power cut: two slots of the program's memory, of which one
 * is whole at any time. A save erases the other one, writes the weights, and their header last; what has no header with
 * the right checksums does not count. Included by <model>.h where it learns, and by mcc_update.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_STORE_H
#define MCC_STORE_H

#include <string.h>

#include "mcc_init.h"

#define MCC_STORE_MAGIC 0x4C43434Du /* "MCCL" */
#define MCC_STORE_HEADER_BYTES 64u  /* of a slot, in front of the weights; 36 are used, the others stay erased */
#define MCC_STORE_NONE 2u

/* Slots 0 and 1, by functions of the program: not 0 where one failed. Each is written once behind erase, every byte of
 * it at most once, and read at any time. */
typedef struct mcc_store {
    int (*read)(void *user, uint32_t slot, uint32_t at, void *to, size_t bytes);
    int (*erase)(void *user, uint32_t slot);
    int (*write)(void *user, uint32_t slot, uint32_t at, const void *from, size_t bytes);
    void *user; /* handed to all of them */
} mcc_store;

/* A tensor that is kept. */
typedef struct mcc_stored {
    void *place;
    uint32_t bytes;
} mcc_stored;

MCC_INLINE void mcc_put_u32(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
    to[2] = (uint8_t)(value >> 16);
    to[3] = (uint8_t)(value >> 24);
}

/* Does a slot hold so many bytes, whole and of this model? */
MCC_INLINE int mcc_store_is_whole(const mcc_store *s, uint32_t slot, const uint8_t *identity, uint32_t bytes,
                                  uint32_t *sequence)
{
    uint8_t head[36], piece[64];
    uint32_t at, crc = 0u;
    if (s->read(s->user, slot, 0u, head, sizeof head) != 0) return 0;
    if (mcc_read_u32(head) != MCC_STORE_MAGIC || mcc_read_u32(&head[8]) != bytes) return 0;
    if (mcc_crc32(0u, head, 32u) != mcc_read_u32(&head[32]) || memcmp(&head[16], identity, 16u) != 0) return 0;
    for (at = 0u; at < bytes; at += (uint32_t)sizeof piece) {
        const uint32_t count = bytes - at < (uint32_t)sizeof piece ? bytes - at : (uint32_t)sizeof piece;
        if (s->read(s->user, slot, MCC_STORE_HEADER_BYTES + at, piece, count) != 0) return 0;
        crc = mcc_crc32(crc, piece, count);
    }
    *sequence = mcc_read_u32(&head[4]);
    return crc == mcc_read_u32(&head[12]);
}

/* The slot that was saved last; MCC_STORE_NONE where none is whole. */
MCC_INLINE uint32_t mcc_store_newest(const mcc_store *s, const uint8_t *identity, uint32_t bytes, uint32_t *sequence)
{
    uint32_t found[2] = {0u, 0u};
    const int first = mcc_store_is_whole(s, 0u, identity, bytes, &found[0]);
    const int second = mcc_store_is_whole(s, 1u, identity, bytes, &found[1]);
    uint32_t slot = first ? 0u : MCC_STORE_NONE;
    if (second && (!first || found[1] - found[0] < 0x80000000u)) slot = 1u;
    *sequence = slot == MCC_STORE_NONE ? 0u : found[slot];
    return slot;
}

MCC_INLINE uint32_t mcc_stored_bytes(const mcc_stored *tensors, uint32_t count)
{
    uint32_t i, bytes = 0u;
    for (i = 0u; i < count; ++i) bytes += tensors[i].bytes;
    return bytes;
}

/* Writes the header of a slot whose contents are there, all of its bytes, as flash may take no fewer: from now on it
 * counts. */
MCC_INLINE mcc_status mcc_store_seal(const mcc_store *s, uint32_t slot, uint32_t sequence, const uint8_t *identity,
                                     uint32_t bytes, uint32_t crc)
{
    uint8_t head[MCC_STORE_HEADER_BYTES];
    uint32_t found;
    (void)memset(head, 0xFF, sizeof head);
    mcc_put_u32(head, MCC_STORE_MAGIC);
    mcc_put_u32(&head[4], sequence);
    mcc_put_u32(&head[8], bytes);
    mcc_put_u32(&head[12], crc);
    (void)memcpy(&head[16], identity, 16u);
    mcc_put_u32(&head[32], mcc_crc32(0u, head, 32u));
    if (s->write(s->user, slot, 0u, head, sizeof head) != 0) return MCC_ERR_STORE;
    return mcc_store_is_whole(s, slot, identity, bytes, &found) && found == sequence ? MCC_OK : MCC_ERR_STORE;
}

MCC_INLINE mcc_status mcc_store_save(const mcc_store *s, const uint8_t *identity, const mcc_stored *tensors,
                                     uint32_t count)
{
    const uint32_t bytes = mcc_stored_bytes(tensors, count);
    uint32_t i, sequence, at = MCC_STORE_HEADER_BYTES, crc = 0u;
    const uint32_t slot = mcc_store_newest(s, identity, bytes, &sequence) == 0u ? 1u : 0u;
    if (s->erase(s->user, slot) != 0) return MCC_ERR_STORE;
    for (i = 0u; i < count; ++i) {
        if (s->write(s->user, slot, at, tensors[i].place, tensors[i].bytes) != 0) return MCC_ERR_STORE;
        crc = mcc_crc32(crc, (const uint8_t *)tensors[i].place, tensors[i].bytes);
        at += tensors[i].bytes;
    }
    return mcc_store_seal(s, slot, sequence + 1u, identity, bytes, crc);
}

MCC_INLINE mcc_status mcc_store_load(const mcc_store *s, const uint8_t *identity, const mcc_stored *tensors,
                                     uint32_t count)
{
    uint32_t i, sequence, at = MCC_STORE_HEADER_BYTES;
    const uint32_t slot = mcc_store_newest(s, identity, mcc_stored_bytes(tensors, count), &sequence);
    if (slot == MCC_STORE_NONE) return MCC_ERR_STORE;
    for (i = 0u; i < count; ++i) {
        if (s->read(s->user, slot, at, tensors[i].place, tensors[i].bytes) != 0) return MCC_ERR_STORE;
        at += tensors[i].bytes;
    }
    return MCC_OK;
}

#endif
