/* mcc_init.h - the checks that <model>_init makes before a model is used: the arena fits, the blob is whole and the right
 * one. Included by <model>.c only. SPEC.md describes the blob bit by bit; it is used in place, never copied or written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_INIT_H
#define MCC_INIT_H

#include <string.h>

#include "mcc.h"

#define MCC_BLOB_MAGIC 0x4243434Du /* "MCCB" */
#define MCC_BLOB_VERSION 1u
#define MCC_BLOB_HEADER_BYTES 64u
#define MCC_BLOB_ENTRY_BYTES 24u
#define MCC_BLOB_IDENTITY_BYTES 16u

/* True if `address` is a multiple of `align`, a power of two. */
MCC_INLINE int mcc_is_aligned(const void *address, size_t align)
{
    return ((uintptr_t)address & (uintptr_t)(align - 1u)) == 0u;
}

/* The arena holds `need` bytes and lies at a multiple of `align`. A model that needs none accepts a null pointer. */
MCC_INLINE mcc_status mcc_check_arena(const void *arena, size_t bytes, size_t need, size_t align)
{
    if (need == 0u) return MCC_OK;
    if (arena == NULL) return MCC_ERR_NULL;
    if (bytes < need) return MCC_ERR_ARENA_SIZE;
    return mcc_is_aligned(arena, align) ? MCC_OK : MCC_ERR_ARENA_ALIGN;
}

/* Where the tensors of a model begin in its arena: behind the first canary. */
MCC_INLINE uint8_t *mcc_tensors(void *arena)
{
#ifdef MCC_CANARY
    return (uint8_t *)arena + MCC_CANARY_BYTES;
#else
    return (uint8_t *)arena;
#endif
}

/* Fills the canaries before and behind the tensors, before a run. */
MCC_INLINE void mcc_set_canaries(uint8_t *tensors, size_t bytes)
{
#ifdef MCC_CANARY
    (void)memset(tensors - MCC_CANARY_BYTES, 0xC5, MCC_CANARY_BYTES);
    (void)memset(tensors + bytes, 0xC5, MCC_CANARY_BYTES);
#else
    (void)tensors;
    (void)bytes;
#endif
}

/* After a run: are they as they were? */
MCC_INLINE mcc_status mcc_check_canaries(const uint8_t *tensors, size_t bytes)
{
#ifdef MCC_CANARY
    size_t i;
    for (i = 0; i < MCC_CANARY_BYTES; i++)
        if (tensors[bytes + i] != 0xC5u || (tensors - MCC_CANARY_BYTES)[i] != 0xC5u) return MCC_ERR_CANARY;
#else
    (void)tensors;
    (void)bytes;
#endif
    return MCC_OK;
}

MCC_INLINE int mcc_is_little_endian(void)
{
    const uint16_t one = 1u;
    uint8_t first;
    (void)memcpy(&first, &one, 1u);
    return first == 1u;
}

/* Header fields are assembled from bytes: the blob need not be aligned for them to be read. */
MCC_INLINE uint32_t mcc_read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

MCC_INLINE uint64_t mcc_read_u64(const uint8_t *p)
{
    return (uint64_t)mcc_read_u32(p) | (uint64_t)mcc_read_u32(&p[4]) << 32;
}

/* CRC-32 as in zip, PNG and Ethernet, continued from `crc` (0 to start); half a byte at a time keeps the table small. */
MCC_INLINE uint32_t mcc_crc32(uint32_t crc, const uint8_t *p, size_t count)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
    };
    size_t i;
    crc = ~crc;
    for (i = 0; i < count; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15u];
        crc = crc >> 4 ^ table[crc & 15u];
    }
    return ~crc;
}

/* The same for many bytes on a machine that has 8 KB of stack to spare: eight bytes at a time, by tables made on the way. */
MCC_INLINE uint32_t mcc_crc32_of_many(uint32_t crc, const uint8_t *p, size_t count)
{
#if UINTPTR_MAX > 0xFFFFFFFFu
    if (count >= 65536u) {
        uint32_t table[8][256];
        uint32_t i, k;
        for (i = 0; i < 256u; i++) {
            const uint8_t byte = (uint8_t)i;
            table[0][i] = mcc_crc32(0xFFFFFFFFu, &byte, 1) ^ 0xFFFFFFFFu;
        }
        for (k = 1; k < 8u; k++) {
            for (i = 0; i < 256u; i++) table[k][i] = table[k - 1u][i] >> 8 ^ table[0][table[k - 1u][i] & 255u];
        }
        crc = ~crc;
        for (; count >= 8u; count -= 8u, p += 8) {
            const uint32_t low = crc ^ mcc_read_u32(p), high = mcc_read_u32(p + 4);
            crc = table[7][low & 255u] ^ table[6][low >> 8 & 255u] ^ table[5][low >> 16 & 255u] ^ table[4][low >> 24] ^
                  table[3][high & 255u] ^ table[2][high >> 8 & 255u] ^ table[1][high >> 16 & 255u] ^ table[0][high >> 24];
        }
        crc = ~crc;
    }
#endif
    return mcc_crc32(crc, p, count);
}

/* Checks a blob of `bytes` bytes from its first to its last, and sets `*data` to its data section.
 * `identity` is that of the generated code; a blob of any other model is refused. */
MCC_INLINE mcc_status mcc_blob_open(const void *blob, size_t bytes, const uint8_t identity[MCC_BLOB_IDENTITY_BYTES],
                                    const uint8_t **data)
{
    const uint8_t *const b = (const uint8_t *)blob;
    uint64_t total, table_end, data_offset, data_bytes;
    size_t i;

    if (blob == NULL || identity == NULL || data == NULL) return MCC_ERR_NULL;
    *data = NULL;
    if (!mcc_is_little_endian()) return MCC_ERR_BLOB_BYTE_ORDER;
    if (bytes < MCC_BLOB_HEADER_BYTES) return MCC_ERR_BLOB_SIZE;
    if (mcc_read_u32(b) != MCC_BLOB_MAGIC) return MCC_ERR_BLOB_MAGIC;
    if (mcc_read_u32(&b[4]) != (MCC_BLOB_VERSION | MCC_BLOB_HEADER_BYTES << 16)) return MCC_ERR_BLOB_VERSION;

    total = mcc_read_u64(&b[8]);
    data_offset = mcc_read_u64(&b[32]);
    data_bytes = mcc_read_u64(&b[40]);
    table_end = MCC_BLOB_HEADER_BYTES + (uint64_t)MCC_BLOB_ENTRY_BYTES * mcc_read_u32(&b[52]);
    if (total != bytes || data_offset > total || data_bytes != total - data_offset || table_end > data_offset)
        return MCC_ERR_BLOB_SIZE;

#ifndef MCC_NO_CRC
    /* The first checksum covers all up to the data, except itself; so no byte is left out. */
    if (mcc_crc32(mcc_crc32(0u, b, 60u), &b[MCC_BLOB_HEADER_BYTES], (size_t)data_offset - MCC_BLOB_HEADER_BYTES) !=
        mcc_read_u32(&b[60]))
        return MCC_ERR_BLOB_CRC;
#endif
    for (i = 0; i < MCC_BLOB_IDENTITY_BYTES; i++)
        if (b[16u + i] != identity[i]) return MCC_ERR_BLOB_IDENTITY;
    if (!mcc_is_aligned(&b[(size_t)data_offset], (size_t)mcc_read_u32(&b[48]))) return MCC_ERR_BLOB_ALIGN;
#ifndef MCC_NO_CRC
    if (mcc_crc32_of_many(0u, &b[(size_t)data_offset], (size_t)data_bytes) != mcc_read_u32(&b[56])) return MCC_ERR_BLOB_CRC;
#endif
    *data = &b[(size_t)data_offset];
    return MCC_OK;
}

#endif /* MCC_INIT_H */
