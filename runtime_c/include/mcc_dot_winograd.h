/* mcc_dot_winograd.h - Winograd's F(4x4, 3x3) in integers, exactly: transforms in vectors of N sums (mcc_dot.h), and
 * products of 16 bits.
 *
 *     mcc_words_i32xN(sum, x, w)              sum + x0 * w0 + x1 * w1, two numbers of 16 bits in each lane
 *     mcc_words_set_i32xN(p)                  the two numbers at p in every lane
 *     mcc_words_store_i32xN(p, sums)
 *     mcc_winograd_tile_u8_i32xN(v, step, pixels, channels)   transforms 6x6 inputs, less 128, of channels in 2 * N:
 *                                             element i of them goes to v + i * step;
 *                                             mcc_winograd_tile_i8, less nothing
 *     mcc_winograd_results_i32xN(y, m, step)  adds the 4x4 results of 36 products, which lie `step` apart, to y
 *
 * Sums are 576 times those of the convolution, and wrap. The convolution's follow from them, for 576 = 9 * 64, 9 has an
 * inverse in 32 bits, and they have 26 bits with their sign (codegen/int8/integer_winograd.py).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT_WINOGRAD_H
#define MCC_DOT_WINOGRAD_H

#include "mcc_dot.h"

#define MCC_WINOGRAD_NINTH UINT32_C(954437177) /* times 9 is 1, in 32 bits */

/* The six numbers i, i + s, i + 2 * s ... of d become six. */
#define MCC_WINOGRAD_TURN(U, d, i, s)                                                                                  \
    do {                                                                                                               \
        const U even = d[(i) + 4 * (s)] - d[(i) + 2 * (s)], odd = d[(i) + 3 * (s)] - d[(i) + (s)];                     \
        const U far_even = d[(i) + 4 * (s)] - (d[(i) + 2 * (s)] << 2), twice = odd + odd;                              \
        const U far_odd = d[(i) + 3 * (s)] - (d[(i) + (s)] << 2);                                                      \
        d[i] = ((d[i] - d[(i) + 2 * (s)]) << 2) + even;                                                                \
        d[(i) + 5 * (s)] = d[(i) + 5 * (s)] - d[(i) + 3 * (s)] - (twice << 1);                                         \
        d[(i) + (s)] = far_even + far_odd;                                                                             \
        d[(i) + 2 * (s)] = far_even - far_odd;                                                                         \
        d[(i) + 3 * (s)] = even + twice;                                                                               \
        d[(i) + 4 * (s)] = even - twice;                                                                               \
    } while (0)
#define MCC_WINOGRAD_SIX(each, a, b) each(a, b, 0) each(a, b, 1) each(a, b, 2) each(a, b, 3) each(a, b, 4) each(a, b, 5)
#define MCC_WINOGRAD_COLUMN(N, OF, j)                                                                                  \
    d[j] = mcc_winograd_read_##OF##_i32x##N(pixels[j] + c);                                                            \
    d[6 + (j)] = mcc_winograd_read_##OF##_i32x##N(pixels[6 + (j)] + c);                                                \
    d[12 + (j)] = mcc_winograd_read_##OF##_i32x##N(pixels[12 + (j)] + c);                                              \
    d[18 + (j)] = mcc_winograd_read_##OF##_i32x##N(pixels[18 + (j)] + c);                                              \
    d[24 + (j)] = mcc_winograd_read_##OF##_i32x##N(pixels[24 + (j)] + c);                                              \
    d[30 + (j)] = mcc_winograd_read_##OF##_i32x##N(pixels[30 + (j)] + c);                                              \
    MCC_WINOGRAD_TURN(mcc_dot_u16x##N, d, j, 6);
#define MCC_WINOGRAD_ROW(N, OF, i)                                                                                     \
    MCC_WINOGRAD_TURN(mcc_dot_u16x##N, d, 6 * (i), 1);                                                                 \
    (void)memcpy(v + c + (6 * (i)) * step, &d[6 * (i)], sizeof d[0]);                                                  \
    (void)memcpy(v + c + (6 * (i) + 1) * step, &d[6 * (i) + 1], sizeof d[0]);                                          \
    (void)memcpy(v + c + (6 * (i) + 2) * step, &d[6 * (i) + 2], sizeof d[0]);                                          \
    (void)memcpy(v + c + (6 * (i) + 3) * step, &d[6 * (i) + 3], sizeof d[0]);                                          \
    (void)memcpy(v + c + (6 * (i) + 4) * step, &d[6 * (i) + 4], sizeof d[0]);                                          \
    (void)memcpy(v + c + (6 * (i) + 5) * step, &d[6 * (i) + 5], sizeof d[0]);
#define MCC_WINOGRAD_TILE(N, OF, C, ZERO)                                                                              \
    typedef C mcc_winograd_##OF##x##N __attribute__((vector_size(N * 2), aligned(1), may_alias));                      \
    MCC_VEC_INLINE mcc_dot_u16x##N mcc_winograd_read_##OF##_i32x##N(const C *p)                                        \
    {                                                                                                                  \
        const mcc_winograd_##OF##x##N bytes = *(const mcc_winograd_##OF##x##N *)p;                                     \
        return (mcc_dot_u16x##N)__builtin_convertvector(bytes, mcc_dot_i16x##N) - (uint16_t)(ZERO);                    \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_winograd_tile_##OF##_i32x##N(int16_t *v, mcc_index step, const C *const *pixels,           \
                                                         mcc_index channels)                                           \
    {                                                                                                                  \
        for (mcc_index c = 0; c < channels; c += 2 * N) {                                                              \
            mcc_dot_u16x##N d[36];                                                                                     \
            MCC_WINOGRAD_SIX(MCC_WINOGRAD_COLUMN, N, OF)                                                               \
            MCC_WINOGRAD_SIX(MCC_WINOGRAD_ROW, N, OF)                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    typedef float mcc_winograd_tile_of_##OF##_##N

/* Six sums become the four at d, d + s ... */
#define MCC_WINOGRAD_BACK(U, d, s, m0, m1, m2, m3, m4, m5)                                                             \
    do {                                                                                                               \
        const U near_even = (m1) + (m2), near_odd = (m1) - (m2), far_even = (m3) + (m4), far_odd = (m3) - (m4);        \
        (d)[0] = (m0) + near_even + far_even;                                                                          \
        (d)[s] = near_odd + (far_odd << 1);                                                                            \
        (d)[2 * (s)] = near_even + (far_even << 2);                                                                    \
        (d)[3 * (s)] = near_odd + (far_odd << 3) + ((m5) << 1);                                                        \
    } while (0)
#define MCC_WINOGRAD_SUMS(N, i) ((mcc_u32x##N)mcc_load_i32x##N(m + (i) * step))
#define MCC_WINOGRAD_BACK_COLUMN(N, OF, j)                                                                             \
    MCC_WINOGRAD_BACK(mcc_u32x##N, d + (j), 6, MCC_WINOGRAD_SUMS(N, j), MCC_WINOGRAD_SUMS(N, 6 + (j)),                 \
                      MCC_WINOGRAD_SUMS(N, 12 + (j)), MCC_WINOGRAD_SUMS(N, 18 + (j)), MCC_WINOGRAD_SUMS(N, 24 + (j)),  \
                      MCC_WINOGRAD_SUMS(N, 30 + (j)));
#define MCC_WINOGRAD_BACK_ROW(N, i)                                                                                    \
    MCC_WINOGRAD_BACK(mcc_u32x##N, r, 1, d[6 * (i)], d[6 * (i) + 1], d[6 * (i) + 2], d[6 * (i) + 3], d[6 * (i) + 4],   \
                      d[6 * (i) + 5]);                                                                                 \
    y[4 * (i)] = mcc_add_i32x##N(y[4 * (i)], (mcc_i32x##N)(r[0] * MCC_WINOGRAD_NINTH) >> 6);                           \
    y[4 * (i) + 1] = mcc_add_i32x##N(y[4 * (i) + 1], (mcc_i32x##N)(r[1] * MCC_WINOGRAD_NINTH) >> 6);                   \
    y[4 * (i) + 2] = mcc_add_i32x##N(y[4 * (i) + 2], (mcc_i32x##N)(r[2] * MCC_WINOGRAD_NINTH) >> 6);                   \
    y[4 * (i) + 3] = mcc_add_i32x##N(y[4 * (i) + 3], (mcc_i32x##N)(r[3] * MCC_WINOGRAD_NINTH) >> 6);
#define MCC_WINOGRAD(N)                                                                                                \
    MCC_VEC_INLINE mcc_i32x##N mcc_words_set_i32x##N(const int16_t *p)                                                 \
    {                                                                                                                  \
        int32_t two;                                                                                                   \
        (void)memcpy(&two, p, sizeof two);                                                                             \
        return mcc_set_i32x##N(two);                                                                                   \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_words_store_i32x##N(int32_t *p, mcc_i32x##N sums) { (void)memcpy(p, &sums, sizeof sums); } \
    MCC_WINOGRAD_TILE(N, u8, uint8_t, 128);                                                                            \
    MCC_WINOGRAD_TILE(N, i8, int8_t, 0);                                                                               \
    MCC_VEC_INLINE void mcc_winograd_results_i32x##N(mcc_i32x##N *y, const int32_t *m, mcc_index step)                 \
    {                                                                                                                  \
        mcc_u32x##N d[24], r[4];                                                                                       \
        MCC_WINOGRAD_SIX(MCC_WINOGRAD_BACK_COLUMN, N, sums)                                                            \
        MCC_WINOGRAD_BACK_ROW(N, 0)                                                                                    \
        MCC_WINOGRAD_BACK_ROW(N, 1)                                                                                    \
        MCC_WINOGRAD_BACK_ROW(N, 2)                                                                                    \
        MCC_WINOGRAD_BACK_ROW(N, 3)                                                                                    \
    }                                                                                                                  \
    typedef float mcc_winograd_of_##N

/* One instruction that adds up two products, or one that multiplies and adds them to each other. */
#define MCC_WINOGRAD_ADDED(N, V, instruction)                                                                          \
    MCC_VEC_INLINE mcc_i32x##N mcc_words_i32x##N(mcc_i32x##N sum, mcc_i32x##N x, mcc_i32x##N w)                        \
    {                                                                                                                  \
        return (mcc_i32x##N)instruction((V)sum, (V)x, (V)w);                                                           \
    }                                                                                                                  \
    typedef float mcc_winograd_added_##N
#define MCC_WINOGRAD_PAIRS(N, V, instruction)                                                                          \
    MCC_VEC_INLINE mcc_i32x##N mcc_words_i32x##N(mcc_i32x##N sum, mcc_i32x##N x, mcc_i32x##N w)                        \
    {                                                                                                                  \
        return mcc_add_i32x##N(sum, (mcc_i32x##N)instruction((V)x, (V)w));                                             \
    }                                                                                                                  \
    typedef float mcc_winograd_pairs_##N

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "mcc_dot16.h"
#if defined(__AVX512VNNI__)
MCC_WINOGRAD_ADDED(16, __m512i, _mm512_dpwssd_epi32);
#else
MCC_WINOGRAD_PAIRS(16, __m512i, _mm512_madd_epi16);
#endif
MCC_WINOGRAD(16);
#endif
#if defined(__AVX2__)
#include "mcc_dot8.h"
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
MCC_WINOGRAD_ADDED(8, __m256i, _mm256_dpwssd_epi32);
#elif defined(__AVXVNNI__)
MCC_WINOGRAD_ADDED(8, __m256i, _mm256_dpwssd_avx_epi32);
#else
MCC_WINOGRAD_PAIRS(8, __m256i, _mm256_madd_epi16);
#endif
MCC_WINOGRAD(8);
#else
#error "this code is for vectors that multiply words in pairs: compile it for them, as -march=x86-64-v3 says"
#endif

#endif /* MCC_DOT_WINOGRAD_H */
