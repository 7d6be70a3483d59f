/* mcc_window_open.h - the checks of mcc_blob_open (mcc_init.h) for a blob that is read piece by piece. Included by
 * <model>.c only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_WINDOW_OPEN_H
#define MCC_WINDOW_OPEN_H

#include "mcc_init.h"
#include "mcc_window.h"

/* The checksum of `bytes` bytes from `from` on: while one half of the room is summed up, the other one is read. */
MCC_INLINE int mcc_window_crc32(const mcc_window *w, uint32_t *crc, uint64_t from, uint64_t bytes, uint8_t *room,
                                size_t room_bytes)
{
    const size_t half = room_bytes / 64u * 32u;
    size_t piece = bytes < half ? (size_t)bytes : half;
    uint8_t *now = room, *other = &room[half];

    if (piece != 0u && mcc_window_begin(w, now, from, piece) != 0) return 1;
    while (piece != 0u) {
        const uint64_t next = from + piece;
        uint8_t *const read = now;
        const size_t count = piece;
        if (mcc_window_wait(w, read, from, count) != 0) return 1;
        bytes -= count;
        piece = bytes < half ? (size_t)bytes : half;
        if (piece != 0u && mcc_window_begin(w, other, next, piece) != 0) return 1;
        *crc = mcc_crc32_of_many(*crc, read, count);
        now = other;
        other = read;
        from = next;
    }
    return 0;
}

/* Checks a blob of `total` bytes as mcc_blob_open does, and finds out where its data begin. `room` is memory that
 * nobody needs yet. */
MCC_INLINE mcc_status mcc_window_open(mcc_window *w, uint64_t total, const uint8_t identity[MCC_BLOB_IDENTITY_BYTES],
                                      uint64_t need, size_t align, uint8_t *room, size_t room_bytes)
{
    uint8_t head[MCC_BLOB_HEADER_BYTES], small[64];
    uint64_t data_offset;
    uint32_t crc;
    size_t i;

    w->data = 0u;
    if (room_bytes < sizeof small) {
        room = small;
        room_bytes = sizeof small;
    }
    if (!mcc_is_little_endian()) return MCC_ERR_BLOB_BYTE_ORDER;
    if (mcc_window_read(w, head, 0u, sizeof head) != 0) return MCC_ERR_READ;
    if (mcc_read_u32(head) != MCC_BLOB_MAGIC) return MCC_ERR_BLOB_MAGIC;
    if (mcc_read_u32(&head[4]) != (MCC_BLOB_VERSION | (uint32_t)MCC_BLOB_HEADER_BYTES << 16))
        return MCC_ERR_BLOB_VERSION;
    data_offset = mcc_read_u64(&head[32]);
    if (mcc_read_u64(&head[8]) != total || data_offset > total || mcc_read_u64(&head[40]) != total - data_offset ||
        MCC_BLOB_HEADER_BYTES + (uint64_t)MCC_BLOB_ENTRY_BYTES * mcc_read_u32(&head[52]) > data_offset)
        return MCC_ERR_BLOB_SIZE;
    crc = 0u;
#ifndef MCC_NO_CRC
    crc = mcc_crc32(crc, head, 60u);
    if (mcc_window_crc32(w, &crc, sizeof head, data_offset - sizeof head, room, room_bytes) != 0) return MCC_ERR_READ;
    if (crc != mcc_read_u32(&head[60])) return MCC_ERR_BLOB_CRC;
#endif
    for (i = 0; i < MCC_BLOB_IDENTITY_BYTES; i++)
        if (head[16u + i] != identity[i]) return MCC_ERR_BLOB_IDENTITY;
    if (total - data_offset != need) return MCC_ERR_BLOB_SIZE;
    if (mcc_read_u32(&head[48]) != align) return MCC_ERR_BLOB_ALIGN;
    crc = 0u;
#ifndef MCC_NO_CRC
    if (mcc_window_crc32(w, &crc, data_offset, need, room, room_bytes) != 0) return MCC_ERR_READ;
    if (crc != mcc_read_u32(&head[56])) return MCC_ERR_BLOB_CRC;
#endif
    (void)crc;
    (void)room;
    (void)room_bytes;
    w->data = data_offset;
    return MCC_OK;
}

#endif /* MCC_WINDOW_OPEN_H */
