/* mcc_dsp_products.h - products of matrices of 8-bit integers that are both computed, in the words of mcc_dsp.h:
 *
 *     mcc_dsp_pack_columns_i8(d, sums, b, n, down, along, z)    n elements of two columns of b, made 16 bits wide, less
 *                                                               their zero points; `sums` (or NULL) gets their sums
 *     mcc_dsp_products_i8(sums, a, gap, d, n)                   two rows of a, `gap` apart, times these columns
 *
 * There are both for u8 too. n is rounded up to a multiple of MCC_DSP_DEPTH: rows of a are read that far, and what lies
 * there is multiplied by 0. Sums are those of the first row, then of the second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_PRODUCTS_H
#define MCC_DSP_PRODUCTS_H

#include "mcc_dsp.h"

#if MCC_DSP_ASM && defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#define MCC_DSP_DEPTH 8
/* Eight elements of a column lie beside each other, then those of the other one. */
#define MCC_DSP_PLACE(K, COLUMN) ((K) * 2 + (COLUMN) * 8)
#define MCC_DSP_PRODUCTS(T, C, LOAD)                                                                                   \
    MCC_DSP_CALLED void mcc_dsp_products_##T(int32_t *sums, const C *a, mcc_index gap, const int16_t *d, mcc_index n)  \
    {                                                                                                                  \
        const C *const other = a + gap;                                                                                \
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                                        \
        for (mcc_index k = 0; k < n; k += 8) {                                                                         \
            const int16x8_t x = LOAD(a + k), y = LOAD(other + k);                                                      \
            const int16x8_t first = vld1q_s16(d + k * 2), second = vld1q_s16(d + k * 2 + 8);                           \
            s0 = vmladavaq_s16(s0, x, first);                                                                          \
            s1 = vmladavaq_s16(s1, x, second);                                                                         \
            s2 = vmladavaq_s16(s2, y, first);                                                                          \
            s3 = vmladavaq_s16(s3, y, second);                                                                         \
        }                                                                                                              \
        sums[0] = s0;                                                                                                  \
        sums[1] = s1;                                                                                                  \
        sums[2] = s2;                                                                                                  \
        sums[3] = s3;                                                                                                  \
    }
#define MCC_DSP_LOAD_U8(P) vreinterpretq_s16_u16(vldrbq_u16(P))
MCC_DSP_PRODUCTS(i8, int8_t, vldrbq_s16)
MCC_DSP_PRODUCTS(u8, uint8_t, MCC_DSP_LOAD_U8)
#define MCC_DSP_PACK_COLUMNS(T, C, GATHER)                                                                             \
    MCC_DSP_CALLED void mcc_dsp_pack_columns_##T(int16_t *d, int32_t *sums, const C *b, mcc_index n, mcc_index down,   \
                                                 mcc_index along, const int32_t zeros[2])                              \
    {                                                                                                                  \
        const uint16x8_t places = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)down);                                     \
        for (mcc_index column = 0; column < 2; ++column) {                                                             \
            const int16x8_t zero = vdupq_n_s16((int16_t)zeros[column]), none = vdupq_n_s16(0);                         \
            const C *from = b + column * along;                                                                        \
            int32_t sum = 0;                                                                                           \
            for (mcc_index k = 0; k < n; k += 8, from += 8 * down) {                                                   \
                const mve_pred16_t there = vctp16q((uint32_t)(n - k));                                                 \
                const int16x8_t x = vsubq_m_s16(none, GATHER(from, places, there), zero, there);                       \
                sum = vaddvaq_s16(sum, x);                                                                             \
                vst1q_s16(d + MCC_DSP_PLACE(k, column), x);                                                            \
            }                                                                                                          \
            if (sums != NULL) sums[column] = sum;                                                                      \
        }                                                                                                              \
    }
#define MCC_DSP_GATHER_U8(FROM, PLACES, THERE) vreinterpretq_s16_u16(vldrbq_gather_offset_z_u16(FROM, PLACES, THERE))
MCC_DSP_PACK_COLUMNS(i8, int8_t, vldrbq_gather_offset_z_s16)
MCC_DSP_PACK_COLUMNS(u8, uint8_t, MCC_DSP_GATHER_U8)
#else
#define MCC_DSP_DEPTH 4
#if MCC_DSP_ASM
MCC_INLINE int32_t mcc_dsp_add_products(int32_t sum, uint32_t a, uint32_t b)
{
    __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}
#else
MCC_INLINE int32_t mcc_dsp_add_products(int32_t sum, uint32_t a, uint32_t b)
{
    return mcc_dsp_smlad(sum, a, mcc_dsp_low(b), mcc_dsp_high(b));
}
#endif
/* Of four elements of a column, 0, 2, 1 and 3 lie beside each other, then those of the other one. */
#define MCC_DSP_PRODUCTS(T, C)                                                                                         \
    MCC_DSP_CALLED void mcc_dsp_products_##T(int32_t *sums, const C *a, mcc_index gap, const int16_t *d, mcc_index n)  \
    {                                                                                                                  \
        const C *const end = a + n, *other = a + gap;                                                                  \
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                                        \
        for (; a < end; a += 4, other += 4, d += 8) {                                                                  \
            const uint32_t x = mcc_dsp_load(a), even = mcc_dsp_even_##T(0, x), odd = mcc_dsp_odd_##T(0, x);            \
            const uint32_t y = mcc_dsp_load(other), evens = mcc_dsp_even_##T(0, y), odds = mcc_dsp_odd_##T(0, y);      \
            uint32_t w = mcc_dsp_load(d), v = mcc_dsp_load(d + 2);                                                     \
            s0 = mcc_dsp_add_products(mcc_dsp_add_products(s0, even, w), odd, v);                                      \
            s2 = mcc_dsp_add_products(mcc_dsp_add_products(s2, evens, w), odds, v);                                    \
            w = mcc_dsp_load(d + 4), v = mcc_dsp_load(d + 6);                                                          \
            s1 = mcc_dsp_add_products(mcc_dsp_add_products(s1, even, w), odd, v);                                      \
            s3 = mcc_dsp_add_products(mcc_dsp_add_products(s3, evens, w), odds, v);                                    \
        }                                                                                                              \
        sums[0] = s0;                                                                                                  \
        sums[1] = s1;                                                                                                  \
        sums[2] = s2;                                                                                                  \
        sums[3] = s3;                                                                                                  \
    }
MCC_DSP_PRODUCTS(i8, int8_t)
MCC_DSP_PRODUCTS(u8, uint8_t)

MCC_INLINE void mcc_dsp_put(int16_t *to, const int32_t x[4])
{
    const uint32_t even = mcc_dsp_pair(x[0], x[2]), odd = mcc_dsp_pair(x[1], x[3]);
    memcpy(to, &even, 4);
    memcpy(to + 2, &odd, 4);
}

#define MCC_DSP_PACK_COLUMNS(T, C)                                                                                     \
    MCC_DSP_CALLED void mcc_dsp_pack_columns_##T(int16_t *d, int32_t *sums, const C *b, mcc_index n, mcc_index down,   \
                                                 mcc_index along, const int32_t zeros[2])                              \
    {                                                                                                                  \
        const mcc_index depth = (n + MCC_DSP_DEPTH - 1) / MCC_DSP_DEPTH * MCC_DSP_DEPTH;                               \
        for (mcc_index column = 0; column < 2; ++column) {                                                             \
            const int32_t zero = zeros[column];                                                                        \
            const C *from = b + column * along;                                                                        \
            int16_t *to = d + column * 4;                                                                              \
            int32_t sum = 0;                                                                                           \
            mcc_index k = 0;                                                                                           \
            for (; k + 4 <= n; k += 4, from += 4 * down, to += 8) {                                                    \
                const int32_t x[4] = {from[0] - zero, from[down] - zero, from[2 * down] - zero,                        \
                                      from[3 * down] - zero};                                                          \
                sum += x[0] + x[1] + x[2] + x[3];                                                                      \
                mcc_dsp_put(to, x);                                                                                    \
            }                                                                                                          \
            for (; k < depth; k += 4, to += 8) {                                                                       \
                int32_t x[4] = {0};                                                                                    \
                for (mcc_index i = 0; k + i < n; ++i) sum += x[i] = from[i * down] - zero;                             \
                mcc_dsp_put(to, x);                                                                                    \
            }                                                                                                          \
            if (sums != NULL) sums[column] = sum;                                                                      \
        }                                                                                                              \
    }
MCC_DSP_PACK_COLUMNS(i8, int8_t)
MCC_DSP_PACK_COLUMNS(u8, uint8_t)
#endif

#endif /* MCC_DSP_PRODUCTS_H */
