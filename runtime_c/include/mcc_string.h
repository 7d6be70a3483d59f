/* mcc_string.h - strings as elements of tensors: pieces of bytes (UTF-8 as a rule) that lie elsewhere.
 *
 * A string that goes in points to your own memory, which must stay as it is until the outputs have been read. One that
 * comes out points into the arena, into the weights, or into what you gave; it is good until the next run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_STRING_H
#define MCC_STRING_H

#include <string.h>

#include "mcc.h"

/* The first `size` bytes at `data`, which need not end with a zero. */
MCC_INLINE mcc_string mcc_string_of(const char *data, size_t size)
{
    mcc_string s;
    (void)memset(&s, 0, sizeof s);
    s.data = data;
    s.size = (uint32_t)size;
    return s;
}

MCC_INLINE mcc_string mcc_string_empty(void) { return mcc_string_of("", 0u); }

/* What lies between two places of a string. */
MCC_INLINE mcc_string mcc_string_part(mcc_string s, uint32_t begin, uint32_t end)
{
    return begin < end ? mcc_string_of(s.data + begin, end - begin) : mcc_string_empty();
}

/* Below 0, 0 or above 0: order of bytes, which in UTF-8 is that of code points; a string comes after its beginnings. */
MCC_INLINE int mcc_string_order(mcc_string a, mcc_string b)
{
    const uint32_t common = a.size < b.size ? a.size : b.size;
    const int order = common == 0u ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

MCC_INLINE uint8_t mcc_string_equal(mcc_string a, mcc_string b)
{
    return (uint8_t)(a.size == b.size && (a.size == 0u || memcmp(a.data, b.data, a.size) == 0));
}

/* Room for the bytes of new strings. What does not fit is counted as such, and not written. */
typedef struct mcc_string_pool {
    char *bytes;
    uint32_t room;
    uint32_t used;
    uint8_t is_full;
} mcc_string_pool;

MCC_INLINE mcc_string_pool mcc_string_pool_of(uint8_t *bytes, uint32_t room)
{
    mcc_string_pool pool;
    pool.bytes = (char *)bytes;
    pool.room = room;
    pool.used = 0u;
    pool.is_full = 0u;
    return pool;
}

/* The next `size` bytes of the pool, or NULL. */
MCC_INLINE char *mcc_string_take(mcc_string_pool *pool, uint32_t size)
{
    char *const bytes = pool->bytes + pool->used;
    if (size > pool->room - pool->used) {
        pool->is_full = 1u;
        return NULL;
    }
    pool->used += size;
    return bytes;
}

/* Bytes that some text is made of, for constants: string i ends where ends[i] says. */
MCC_INLINE mcc_string mcc_string_of_table(const uint8_t *bytes, const uint32_t *ends, mcc_index i)
{
    const uint32_t begin = i == 0 ? 0u : ends[i - 1];
    return mcc_string_of((const char *)bytes + begin, ends[i] - begin);
}

#endif /* MCC_STRING_H */
