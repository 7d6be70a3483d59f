/* mcc_check.h - what <model>_init asks of numbers in the blob that steer a run: indices that kernels take as they are,
 * shifts and divisors. A checksum says that a blob is as somebody wrote it, not that it was written well. SPEC.md lists
 * what is checked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_CHECK_H
#define MCC_CHECK_H

#include "mcc.h"

/* Every element lies from low to high. */
#define MCC_CHECK_WITHIN(T, type)                                                                                      \
    MCC_INLINE int mcc_check_within_##T(const type *p, size_t count, int64_t low, int64_t high)                        \
    {                                                                                                                  \
        size_t i;                                                                                                      \
        for (i = 0; i < count; i++)                                                                                    \
            if ((int64_t)p[i] < low || (int64_t)p[i] > high) return 0;                                                 \
        return 1;                                                                                                      \
    }

MCC_CHECK_WITHIN(i16, int16_t)
MCC_CHECK_WITHIN(i32, int32_t)
MCC_CHECK_WITHIN(i64, int64_t)
MCC_CHECK_WITHIN(u8, uint8_t)
MCC_CHECK_WITHIN(u16, uint16_t)
MCC_CHECK_WITHIN(u32, uint32_t)

/* No element is below the one before it, or above high. */
MCC_INLINE int mcc_check_rising_u32(const uint32_t *p, size_t count, int64_t high)
{
    size_t i;
    for (i = 0; i < count; i++)
        if ((int64_t)p[i] > high || (i > 0u && p[i] < p[i - 1u])) return 0;
    return 1;
}

/* Rows of four: the first and the last of some code points, from one to the next of them, and from them to others. */
MCC_INLINE int mcc_check_cases_i32(const int32_t *p, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++) {
        const int32_t low = i % 4u == 3u ? -0x10FFFF : i % 4u == 2u ? 1 : 0;
        if (p[i] < low || p[i] > 0x10FFFF) return 0;
    }
    return 1;
}

/* The first element can be divided by, and so can every sum that it is in. */
MCC_INLINE int mcc_check_divisor_u32(const uint32_t *p, size_t count)
{
    return count > 0u && p[0] != 0u;
}

/* Both ways from a node lead to nodes behind it, so every walk ends; at a leaf, which looks at no feature, they are the
 * first of its weights and the one after the last. */
#define MCC_CHECK_TREES(T, type)                                                                                       \
    MCC_INLINE int mcc_check_trees_##T(const type *feature, const type *yes, const type *no, size_t count,             \
                                       int64_t weights)                                                                \
    {                                                                                                                  \
        size_t i;                                                                                                      \
        for (i = 0; i < count; i++) {                                                                                  \
            const int64_t low = feature[i] < 0 ? 0 : (int64_t)i + 1;                                                   \
            const int64_t high = feature[i] < 0 ? weights : (int64_t)count - 1;                                        \
            if (yes[i] < low || yes[i] > high || no[i] < low || no[i] > high) return 0;                                \
        }                                                                                                              \
        return 1;                                                                                                      \
    }

MCC_CHECK_TREES(i16, int16_t)
MCC_CHECK_TREES(i32, int32_t)

#undef MCC_CHECK_WITHIN
#undef MCC_CHECK_TREES

#endif /* MCC_CHECK_H */
