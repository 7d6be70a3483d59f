/* mcc_helium_depthwise.h - 3x3 convolutions of each channel for itself, for cores with Helium:
 *
 *     mcc_helium_cells_i8(t, plane, rows, steps, columns, channels)         four rows of up to 16 channels, by channel
 *     mcc_helium_depthwiseN_i8_S(y, t, columns, pixel, row, w, numbers)          one channel; stride N
 *
 * A cell is one column of four rows, of one channel: 4 bytes. A window is three cells, and the fourth one meets
 * weights of 0; the rows of a cell are what two rows of results need for stride 1, or one for stride 2. Weights of a
 * channel are 16 bytes for the upper row, and 16 for the lower. Zero points are folded into the bias. There are four or
 * more results in a row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_HELIUM_DEPTHWISE_H
#define MCC_HELIUM_DEPTHWISE_H

#include "mcc_helium.h"

/* Rows that are not there are 16 zero points, with a step of 0. */
MCC_INLINE void mcc_helium_cells_i8(int8_t *t, mcc_index plane, const int8_t *const rows[4], const mcc_index steps[4],
                                    mcc_index columns, mcc_index channels)
{
    const int8_t *row0 = rows[0], *row1 = rows[1], *row2 = rows[2], *row3 = rows[3];
    for (mcc_index x = 0; x < columns; ++x) {
#if MCC_HELIUM_ASM
        int8_t cells[64];
        int8x16x4_t four;
        const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)plane);
        four.val[0] = vldrbq_s8(row0);
        four.val[1] = vldrbq_s8(row1);
        four.val[2] = vldrbq_s8(row2);
        four.val[3] = vldrbq_s8(row3);
        vst4q_s8(cells, four);
        for (mcc_index c = 0; c < channels; c += 4) {
            const int32x4_t words = vreinterpretq_s32_s8(vldrbq_s8(cells + 4 * c));
            vstrwq_scatter_offset_s32((int32_t *)(void *)(t + c * plane), places, words);
        }
#else
        for (mcc_index c = 0; c < channels; ++c) {
            t[c * plane] = row0[c];
            t[c * plane + 1] = row1[c];
            t[c * plane + 2] = row2[c];
            t[c * plane + 3] = row3[c];
        }
#endif
        row0 += steps[0];
        row1 += steps[1];
        row2 += steps[2];
        row3 += steps[3];
        t += 4;
    }
}

#if MCC_HELIUM_ASM
/* Sums of four windows that begin `STEP` bytes after each other, with one or two sets of weights. */
#define MCC_HELIUM_WINDOWS(STEP, BOTH)                                                                                 \
    "vldrb.8 %q[x], [%[t]]\n vmladav.s8 %[a], %q[x], %q[w0]\n" BOTH("vmladav.s8 %[b], %q[x], %q[w1]\n")                \
    "vldrb.8 %q[x], [%[t], #2*" STEP "]\n vmladav.s8 %[c], %q[x], %q[w0]\n" BOTH("vmladav.s8 %[d], %q[x], %q[w1]\n")   \
    "vmov %q[p][2], %q[p][0], %[a], %[c]\n" BOTH("vmov %q[q][2], %q[q][0], %[b], %[d]\n")                              \
    "vldrb.8 %q[x], [%[t], #" STEP "]\n vmladav.s8 %[a], %q[x], %q[w0]\n" BOTH("vmladav.s8 %[b], %q[x], %q[w1]\n")     \
    "vldrb.8 %q[x], [%[t], #3*" STEP "]\n vmladav.s8 %[c], %q[x], %q[w0]\n" BOTH("vmladav.s8 %[d], %q[x], %q[w1]\n")   \
    "vmov %q[p][3], %q[p][1], %[a], %[c]\n" BOTH("vmov %q[q][3], %q[q][1], %[b], %[d]\n")
#define MCC_HELIUM_TWICE(...) __VA_ARGS__
#define MCC_HELIUM_ONCE(...)

#define MCC_HELIUM_ROUND(V, S)                                                                                         \
    V = vshrq_n_s32(vaddq_n_s32(vmulhq_s32(vaddq_n_s32(V, bias), multiplier), addend), S);                             \
    __asm__("vqmovnb.s32 %q0, %q0\n vqmovnb.s16 %q0, %q0" : "+w"(V));

#define MCC_HELIUM_DEPTHWISE_OF(N, STEP, S, BOTH)                                                                      \
    static __attribute__((noinline, unused)) void mcc_helium_depthwise##N##_i8_##S(                                    \
        int8_t *y, const int8_t *t, mcc_index columns, mcc_index pixel, mcc_index row, const int8_t *w,                \
        const int32_t *numbers)                                                                                        \
    {                                                                                                                  \
        const int8x16_t w0 = vldrbq_s8(w), w1 = vldrbq_s8(w + 16);                                                     \
        const int32_t bias = numbers[0], addend = numbers[2];                                                          \
        const int32x4_t multiplier = vdupq_n_s32(numbers[1]);                                                          \
        const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)pixel);                                    \
        for (mcc_index left = columns;;) {                                                                             \
            int32x4_t p, q;                                                                                            \
            int8x16_t x;                                                                                               \
            int32_t a, b, c, d;                                                                                        \
            __asm__ volatile(MCC_HELIUM_WINDOWS(STEP, BOTH)                                                            \
                             : [p] "=&w"(p), [q] "=&w"(q), [x] "=&w"(x), [a] "=&Te"(a), [b] "=&Te"(b), [c] "=&Te"(c),  \
                               [d] "=&Te"(d)                                                                           \
                             : [t] "r"(t), [w0] "w"(w0), [w1] "w"(w1)                                                  \
                             : "memory");                                                                              \
            /* the lower row first: where there is none, it is the upper one */                                        \
            BOTH(MCC_HELIUM_ROUND(q, S) vstrbq_scatter_offset_s32(y + row, places, q);)                                \
            MCC_HELIUM_ROUND(p, S)                                                                                     \
            vstrbq_scatter_offset_s32(y, places, p);                                                                   \
            left -= 4;                                                                                                 \
            if (left <= 0) break;                                                                                      \
            if (left < 4) { /* the last four, some of them once more */                                                \
                t -= (4 - left) * N * 4;                                                                               \
                y -= (4 - left) * pixel;                                                                               \
            }                                                                                                          \
            t += N * 16;                                                                                               \
            y += 4 * pixel;                                                                                            \
        }                                                                                                              \
        (void)row;                                                                                                     \
    }
#define MCC_HELIUM_DEPTHWISE(S)                                                                                        \
    MCC_HELIUM_DEPTHWISE_OF(1, "4", S, MCC_HELIUM_TWICE)                                                               \
    MCC_HELIUM_DEPTHWISE_OF(2, "8", S, MCC_HELIUM_ONCE)

#else
#define MCC_HELIUM_DEPTHWISE_OF(N, S)                                                                                  \
    MCC_INLINE void mcc_helium_depthwise##N##_i8_##S(int8_t *y, const int8_t *t, mcc_index columns, mcc_index pixel,   \
                                                     mcc_index row, const int8_t *w, const int32_t *numbers)           \
    {                                                                                                                  \
        for (mcc_index lower = 2 - N; lower >= 0; --lower) {                                                           \
            for (mcc_index i = 0; i < columns; ++i) {                                                                  \
                int32_t sum = numbers[0];                                                                              \
                for (mcc_index k = 0; k < 12; ++k) sum += t[N * 4 * i + k] * w[lower * 16 + k];                        \
                sum = mcc_shr_i32(mcc_high_sum(numbers[2], sum, numbers[1]), S);                      \
                y[i * pixel + lower * row] = (int8_t)mcc_saturate_i8(sum);                                             \
            }                                                                                                          \
        }                                                                                                              \
    }
#define MCC_HELIUM_DEPTHWISE(S)                                                                                        \
    MCC_HELIUM_DEPTHWISE_OF(1, S)                                                                                      \
    MCC_HELIUM_DEPTHWISE_OF(2, S)
#endif

MCC_HELIUM_DEPTHWISE(1)
MCC_HELIUM_DEPTHWISE(2)
MCC_HELIUM_DEPTHWISE(3)
MCC_HELIUM_DEPTHWISE(4)
MCC_HELIUM_DEPTHWISE(5)
MCC_HELIUM_DEPTHWISE(6)
MCC_HELIUM_DEPTHWISE(7)
MCC_HELIUM_DEPTHWISE(8)

#endif /* MCC_HELIUM_DEPTHWISE_H */
