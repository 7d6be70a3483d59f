/* mcc_helium_cells.h - sums of each channel for itself over windows of any form, for cores with Helium:
 *
 *     mcc_helium_put_cells_i8(t, plane, on, x, step, columns, channels)     a row of up to 16 channels to their planes
 *     mcc_helium_window_sums(sums, every, t, on, w, blocks, count)          of count windows
 *     mcc_helium_rescale_i8(y, pixel, sums, count, scaling, raised)         results of a channel (u8 too)
 *
 * A plane has the cells of a channel, and a cell one column of the rows of a window, so that a window lies side by
 * side, in blocks of 16 bytes, the last of them against weights of 0. Weights are a word that sums begin with, and
 * these blocks. Of channels, whole eights are read and written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_HELIUM_CELLS_H
#define MCC_HELIUM_CELLS_H

#include "mcc_helium.h"

#if defined(__OPTIMIZE_SIZE__) && defined(__GNUC__)
#define MCC_HELIUM_CALLED static __attribute__((noinline, unused))
#else
#define MCC_HELIUM_CALLED MCC_INLINE
#endif

MCC_HELIUM_CALLED void mcc_helium_put_cells_i8(
    int8_t *t, mcc_index plane, mcc_index on, const int8_t *x, mcc_index step, mcc_index columns, mcc_index channels)
{
#if MCC_HELIUM_ASM
    const uint16x8_t places = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)plane);
    if (channels > 8) {
        int8_t *upper = t + 8 * plane;
        for (mcc_index i = 0; i < columns; ++i) {
            vstrbq_scatter_offset_s16(t, places, vldrbq_s16(x));
            vstrbq_scatter_offset_s16(upper, places, vldrbq_s16(x + 8));
            x += step;
            t += on;
            upper += on;
        }
        return;
    }
    for (mcc_index i = 0; i < columns; ++i) {
        vstrbq_scatter_offset_s16(t, places, vldrbq_s16(x));
        x += step;
        t += on;
    }
#else
    for (mcc_index i = 0; i < columns; ++i)
        for (mcc_index c = 0; c < channels; ++c) t[c * plane + i * on] = x[i * step + c];
#endif
}

MCC_HELIUM_CALLED void mcc_helium_window_sums(
    int32_t *sums, mcc_index every, const int8_t *t, mcc_index on, const int8_t *w, mcc_index blocks, mcc_index count)
{
    const int32_t begin = *(const int32_t *)(const void *)w;
    w += 4;
#if MCC_HELIUM_ASM
    const int8x16_t w0 = vldrbq_s8(w);
    const int8x16_t w1 = blocks > 1 ? vldrbq_s8(w + 16) : w0;
    const int8x16_t w2 = blocks > 2 ? vldrbq_s8(w + 32) : w0;
    const int8x16_t w3 = blocks > 3 ? vldrbq_s8(w + 48) : w0;
    for (mcc_index i = 0; i < count; ++i) {
        int32_t sum = vmladavaq_s8(begin, vldrbq_s8(t), w0);
        if (blocks > 1) sum = vmladavaq_s8(sum, vldrbq_s8(t + 16), w1);
        if (blocks > 2) sum = vmladavaq_s8(sum, vldrbq_s8(t + 32), w2);
        if (blocks > 3) sum = vmladavaq_s8(sum, vldrbq_s8(t + 48), w3);
        for (mcc_index k = 4; k < blocks; ++k) sum = vmladavaq_s8(sum, vldrbq_s8(t + 16 * k), vldrbq_s8(w + 16 * k));
        *sums = sum;
        sums += every;
        t += on;
    }
#else
    for (mcc_index i = 0; i < count; ++i) {
        int32_t sum = begin;
        for (mcc_index k = 0; k < 16 * blocks; ++k) sum = mcc_add_i32(sum, t[i * on + k] * w[k]);
        sums[i * every] = sum;
    }
#endif
}

/* ((sum * raise) * multiplier / 2^32 + addend) >> shift, within bounds that 8 bits hold */
typedef struct mcc_helium_scaling {
    int32_t raise;
    int32_t multiplier;
    int32_t addend;
    int32_t shift;
    int32_t low;
    int32_t high;
} mcc_helium_scaling;

#if MCC_HELIUM_ASM
#define MCC_HELIUM_RESCALE(T, C)                                                                                       \
    MCC_HELIUM_CALLED void mcc_helium_rescale_##T(C *y, mcc_index pixel, const int32_t *sums, mcc_index count,         \
                                                  const mcc_helium_scaling *scaling, mcc_bool raised)                  \
    {                                                                                                                  \
        const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)pixel);                                    \
        const int32x4_t multiplier = vdupq_n_s32(scaling->multiplier);                                                 \
        const int32x4_t low = vdupq_n_s32(scaling->low), high = vdupq_n_s32(scaling->high);                            \
        const int32_t raise = scaling->raise, addend = scaling->addend, shift = -scaling->shift;                       \
        int8_t *to = (int8_t *)(void *)y;                                                                              \
        for (mcc_index left = count; left > 0; left -= 4) {                                                            \
            int32x4_t value = vldrwq_s32(sums);                                                                        \
            if (raised) value = vmulq_n_s32(value, raise);                                                             \
            value = vshlq_r_s32(vaddq_n_s32(vmulhq_s32(value, multiplier), addend), shift);                            \
            value = vminq_s32(vmaxq_s32(value, low), high);                                                            \
            vstrbq_scatter_offset_p_s32(to, places, value, vctp32q((uint32_t)left));                                   \
            sums += 4;                                                                                                 \
            to += 4 * pixel;                                                                                           \
        }                                                                                                              \
    }
#else
#define MCC_HELIUM_RESCALE(T, C)                                                                                       \
    MCC_INLINE void mcc_helium_rescale_##T(C *y, mcc_index pixel, const int32_t *sums, mcc_index count,                \
                                           const mcc_helium_scaling *scaling, mcc_bool raised)                         \
    {                                                                                                                  \
        for (mcc_index i = 0; i < count; ++i) {                                                                        \
            const int32_t sum = raised ? mcc_mul_i32(sums[i], scaling->raise) : sums[i];                               \
            const int32_t scaled = mcc_high_sum(scaling->addend, sum, scaling->multiplier);                            \
            const int32_t value = mcc_shr_i32(scaled, scaling->shift);                                                 \
            y[i * pixel] = (C)mcc_min_i32(mcc_max_i32(value, scaling->low), scaling->high);                            \
        }                                                                                                              \
    }
#endif
MCC_HELIUM_RESCALE(i8, int8_t)
MCC_HELIUM_RESCALE(u8, uint8_t)

#endif /* MCC_HELIUM_CELLS_H */
