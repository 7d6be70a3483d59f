/* mcc_scalar_pairs.h - sums of products of 8-bit integers for cores that multiply, and add, 32 bits once at a time, as
 * RV32 does:
 *
 *     mcc_scalar_pair_i8(to, lane, x, n)           n elements of x to the lower or upper lane of a patch, 0 or 1 (u8
 *                                                  too); gives where the next ones go
 *     mcc_scalar_blank_pair(to, lane, z, n)        n times the same
 *     mcc_scalar_pairs2x4_i8(w, patch, y, t, n)    n (1 or 2) positions of a patch x all channels, four at a time
 *
 * Weights are signed, their channels lie in fours. A patch has the elements of two positions, less 128 where they are
 * u8, as a word: x0 + (x1 << 16). One multiplication then gives two products, of which two fit 17 bits, for both lowest
 * at once give 32768. With
 *
 *     a = sum(pair)    b = sum(((pair + 32767 + (32767 << 16)) >> 16) - 32767)
 *
 * over pairs of steps b is the sum of the upper position, a - (b << 16) that of the lower one, modulo 2^32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SCALAR_PAIRS_H
#define MCC_SCALAR_PAIRS_H

#include "mcc_scalar.h"

/* The first lane is what the other one is added to. */
#define MCC_SCALAR_LOWER(I, LESS) to[I] = (uint32_t)(x[I] - (LESS));
#define MCC_SCALAR_UPPER(I, LESS) to[I] += (uint32_t)(x[I] - (LESS)) << 16;
#define MCC_SCALAR_PAIR_OF(T, C, LESS)                                                                                 \
    MCC_SCALAR_CALLED uint32_t *mcc_scalar_pair_##T(uint32_t *to, mcc_index lane, const C *x, mcc_index n)             \
    {                                                                                                                  \
        if (lane == 0) {                                                                                               \
            for (; n >= 4; n -= 4) {                                                                                   \
                MCC_SCALAR_LOWER(0, LESS) MCC_SCALAR_LOWER(1, LESS) MCC_SCALAR_LOWER(2, LESS) MCC_SCALAR_LOWER(3, LESS)\
                to += 4;                                                                                               \
                x += 4;                                                                                                \
            }                                                                                                          \
            for (; n > 0; --n) *to++ = (uint32_t)(*x++ - (LESS));                                                      \
        } else {                                                                                                       \
            for (; n >= 4; n -= 4) {                                                                                   \
                MCC_SCALAR_UPPER(0, LESS) MCC_SCALAR_UPPER(1, LESS) MCC_SCALAR_UPPER(2, LESS) MCC_SCALAR_UPPER(3, LESS)\
                to += 4;                                                                                               \
                x += 4;                                                                                                \
            }                                                                                                          \
            for (; n > 0; --n) *to++ += (uint32_t)(*x++ - (LESS)) << 16;                                               \
        }                                                                                                              \
        return to;                                                                                                     \
    }
MCC_SCALAR_PAIR_OF(i8, int8_t, 0)
MCC_SCALAR_PAIR_OF(u8, uint8_t, 128)

MCC_SCALAR_CALLED uint32_t *mcc_scalar_blank_pair(uint32_t *to, mcc_index lane, int32_t zero, mcc_index n)
{
    if (lane == 0) {
        for (mcc_index i = 0; i < n; ++i) to[i] = (uint32_t)zero;
    } else {
        for (mcc_index i = 0; i < n; ++i) to[i] += (uint32_t)zero << 16;
    }
    return to + n;
}

/* Compilers that load everything first run out of registers. */
#if defined(__GNUC__)
#define MCC_SCALAR_IN_ORDER __asm__ volatile("" ::: "memory")
#else
#define MCC_SCALAR_IN_ORDER (void)0
#endif
#define MCC_SCALAR_TWO_STEPS_OF(I, J)                                                                                  \
    first = w[4 * (I) + (J)];                                                                                          \
    second = w[4 * (I) + 4 + (J)];                                                                                     \
    pair = x##I * (uint32_t)first + y##I * (uint32_t)second;                                                           \
    a##J += pair;                                                                                                      \
    b##J += (pair + 0x7fff7fffu) >> 16;
#define MCC_SCALAR_TWO_STEPS_OF_4(I)                                                                                   \
    x##I = patch[I];                                                                                                   \
    y##I = patch[(I) + 1];                                                                                             \
    MCC_SCALAR_TWO_STEPS_OF(I, 0) MCC_SCALAR_TWO_STEPS_OF(I, 1) MCC_SCALAR_TWO_STEPS_OF(I, 2)                          \
    MCC_SCALAR_TWO_STEPS_OF(I, 3)
MCC_SCALAR_APART mcc_scalar_pairs2x4(const int8_t *w, const uint32_t *patch, int32_t *sums, int32_t steps)
{
    const uint32_t *const end = patch + steps;
    const uint32_t none = 0u - 32767u * ((uint32_t)steps / 2u);
    uint32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = none, b1 = none, b2 = none, b3 = none, x0, y0, x2, y2, pair;
    int32_t first, second;
    while (patch < end) {
        MCC_SCALAR_TWO_STEPS_OF_4(0)
        MCC_SCALAR_IN_ORDER;
        MCC_SCALAR_TWO_STEPS_OF_4(2)
        w += 16;
        patch += 4;
    }
    sums[0] = (int32_t)(a0 - (b0 << 16));
    sums[1] = (int32_t)(a1 - (b1 << 16));
    sums[2] = (int32_t)(a2 - (b2 << 16));
    sums[3] = (int32_t)(a3 - (b3 << 16));
    sums[4] = (int32_t)b0;
    sums[5] = (int32_t)b1;
    sums[6] = (int32_t)b2;
    sums[7] = (int32_t)b3;
}

#define MCC_SCALAR_LOWER_STEPS(J)                                                                                      \
    first = w[J];                                                                                                      \
    second = w[4 + (J)];                                                                                               \
    a##J += x * (uint32_t)first + y * (uint32_t)second;
/* The lower lane, where there is no other one. */
MCC_SCALAR_APART mcc_scalar_pairs1x4(const int8_t *w, const uint32_t *patch, int32_t *sums, int32_t steps)
{
    const uint32_t *const end = patch + steps;
    uint32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    int32_t first, second;
    while (patch < end) {
        const uint32_t x = patch[0], y = patch[1];
        MCC_SCALAR_LOWER_STEPS(0) MCC_SCALAR_LOWER_STEPS(1) MCC_SCALAR_LOWER_STEPS(2) MCC_SCALAR_LOWER_STEPS(3)
        w += 8;
        patch += 2;
    }
    sums[0] = (int32_t)a0;
    sums[1] = (int32_t)a1;
    sums[2] = (int32_t)a2;
    sums[3] = (int32_t)a3;
}

#define MCC_SCALAR_PAIRS(T, C)                                                                                         \
    MCC_INLINE C mcc_scalar_pair_result_##T(int32_t sum, const int32_t *table, int32_t shift)                          \
    {                                                                                                                  \
        const int32_t large = mcc_high_sum(table[2], mcc_add_i32(sum, table[0]), table[1]);                            \
        return (C)mcc_saturate_##T(mcc_shr_i32(large, shift));                                                         \
    }                                                                                                                  \
    MCC_SCALAR_CALLED void mcc_scalar_pairs2x4_##T(const int8_t *w, const uint32_t *patch, C *y,                       \
                                                   const mcc_scalar_result *t, mcc_index positions)                    \
    {                                                                                                                  \
        const int32_t *table = t->table;                                                                               \
        const int32_t shift = t->shift, steps = t->steps;                                                              \
        const mcc_index stride = t->stride;                                                                            \
        for (int32_t left = t->channels; left > 0; left -= 4) {                                                        \
            const int32_t reach = left < 4 ? left : 4;                                                                 \
            int32_t sums[8];                                                                                           \
            if (positions > 1) {                                                                                       \
                mcc_scalar_pairs2x4(w, patch, sums, steps);                                                            \
                for (int32_t i = 0; i < reach; ++i) {                                                                  \
                    const int32_t numbers[3] = {table[0], table[1], table[2]};                                         \
                    y[i + stride] = mcc_scalar_pair_result_##T(sums[i + 4], numbers, shift);                           \
                    y[i] = mcc_scalar_pair_result_##T(sums[i], numbers, shift);                                        \
                    table += 3;                                                                                        \
                }                                                                                                      \
            } else {                                                                                                   \
                mcc_scalar_pairs1x4(w, patch, sums, steps);                                                            \
                for (int32_t i = 0; i < reach; ++i) {                                                                  \
                    y[i] = mcc_scalar_pair_result_##T(sums[i], table, shift);                                          \
                    table += 3;                                                                                        \
                }                                                                                                      \
            }                                                                                                          \
            w += 4 * steps;                                                                                            \
            y += 4;                                                                                                    \
        }                                                                                                              \
    }
MCC_SCALAR_PAIRS(i8, int8_t)
MCC_SCALAR_PAIRS(u8, uint8_t)

#endif /* MCC_SCALAR_PAIRS_H */
