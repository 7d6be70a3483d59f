/* mcc_neon_winograd.h - transforms of Winograd's F(2x2, 3x3) in integers, in vectors of NEON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_NEON_WINOGRAD_H
#define MCC_NEON_WINOGRAD_H

#include "mcc_dot4.h"

#if !defined(__ARM_NEON)
#error "this code is for vectors of NEON: compile it for them, as -march=armv8-a says"
#endif

/* The four numbers along one axis become four. */
#define MCC_NEON_TURN(d0, d1, d2, d3)                                                                                  \
    do {                                                                                                               \
        const int16x8_t first = vsubq_s16(d0, d2), last = vsubq_s16(d1, d3);                                           \
        const int16x8_t sum = vaddq_s16(d1, d2), less = vsubq_s16(d2, d1);                                             \
        d0 = first;                                                                                                    \
        d1 = sum;                                                                                                      \
        d2 = less;                                                                                                     \
        d3 = last;                                                                                                     \
    } while (0)
#define MCC_NEON_ROW(d, i) MCC_NEON_TURN((d)[4 * (i)], (d)[4 * (i) + 1], (d)[4 * (i) + 2], (d)[4 * (i) + 3])
#define MCC_NEON_COLUMN(d, j) MCC_NEON_TURN((d)[j], (d)[4 + (j)], (d)[8 + (j)], (d)[12 + (j)])

/* A tile of 4x4 inputs less their zero point, of channels in eights: element i of it at v + i * step. */
#define MCC_NEON_TILE(OF, C, WIDENED)                                                                                  \
    MCC_VEC_INLINE void mcc_neon_tile_##OF(int16_t *v, mcc_index step, const C *const *pixels, mcc_index channels,     \
                                           int zero)                                                                   \
    {                                                                                                                  \
        for (mcc_index c = 0; c < channels; c += 8) {                                                                  \
            int16x8_t d[16];                                                                                           \
            MCC_NEON_ALL(MCC_NEON_READ, WIDENED)                                                                       \
            MCC_NEON_COLUMN(d, 0);                                                                                     \
            MCC_NEON_COLUMN(d, 1);                                                                                     \
            MCC_NEON_COLUMN(d, 2);                                                                                     \
            MCC_NEON_COLUMN(d, 3);                                                                                     \
            MCC_NEON_ROW(d, 0);                                                                                        \
            MCC_NEON_ROW(d, 1);                                                                                        \
            MCC_NEON_ROW(d, 2);                                                                                        \
            MCC_NEON_ROW(d, 3);                                                                                        \
            MCC_NEON_ALL(MCC_NEON_WRITE, WIDENED)                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    typedef float mcc_neon_tile_of_##OF
#define MCC_NEON_FOUR(each, of, i) each(of, i) each(of, i + 1) each(of, i + 2) each(of, i + 3)
#define MCC_NEON_ALL(each, of)                                                                                         \
    MCC_NEON_FOUR(each, of, 0) MCC_NEON_FOUR(each, of, 4) MCC_NEON_FOUR(each, of, 8) MCC_NEON_FOUR(each, of, 12)
#define MCC_NEON_READ(of, i) d[i] = of(pixels[i] + c, zero);
#define MCC_NEON_WRITE(of, i) vst1q_s16(v + (i)*step + c, d[i]);
#define MCC_NEON_LESS_U8(p, zero) vreinterpretq_s16_u16(vsubl_u8(vld1_u8(p), vdup_n_u8((uint8_t)(zero))))
#define MCC_NEON_LESS_I8(p, zero) vsubl_s8(vld1_s8(p), vdup_n_s8((int8_t)(zero)))
MCC_NEON_TILE(u8, uint8_t, MCC_NEON_LESS_U8);
MCC_NEON_TILE(i8, int8_t, MCC_NEON_LESS_I8);

/* The four results of 16 products of four channels, which lie `step` apart. */
MCC_VEC_INLINE mcc_dot_four_i32x4 mcc_neon_results(const int32_t *m, mcc_index step)
{
    mcc_i32x4 up[4], down[4];
    mcc_dot_four_i32x4 f;
#define MCC_NEON_SUMS(j)                                                                                               \
    {                                                                                                                  \
        const mcc_i32x4 m0 = mcc_load_i32x4(m + (j)*step), m1 = mcc_load_i32x4(m + (4 + (j)) * step);                  \
        const mcc_i32x4 m2 = mcc_load_i32x4(m + (8 + (j)) * step), m3 = mcc_load_i32x4(m + (12 + (j)) * step);         \
        up[j] = mcc_add_i32x4(mcc_add_i32x4(m0, m1), m2);                                                              \
        down[j] = mcc_sub_i32x4(mcc_sub_i32x4(m1, m2), m3);                                                            \
    }
    MCC_NEON_SUMS(0)
    MCC_NEON_SUMS(1)
    MCC_NEON_SUMS(2)
    MCC_NEON_SUMS(3)
#undef MCC_NEON_SUMS
    f.v0 = mcc_shift_right_i32x4(mcc_add_i32x4(mcc_add_i32x4(up[0], up[1]), up[2]), 2);
    f.v1 = mcc_shift_right_i32x4(mcc_sub_i32x4(mcc_sub_i32x4(up[1], up[2]), up[3]), 2);
    f.v2 = mcc_shift_right_i32x4(mcc_add_i32x4(mcc_add_i32x4(down[0], down[1]), down[2]), 2);
    f.v3 = mcc_shift_right_i32x4(mcc_sub_i32x4(mcc_sub_i32x4(down[1], down[2]), down[3]), 2);
    return f;
}

#endif /* MCC_NEON_WINOGRAD_H */
