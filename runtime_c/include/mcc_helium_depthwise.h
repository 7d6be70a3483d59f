/* mcc_helium_depthwise.h - 3x3 convolutions of each channel for itself, for cores with Helium:
 *
 *     mcc_helium_cells_i8(t, plane, rows, steps, columns, channels)         four rows of up to 16 channels, by channel
 *     mcc_helium_depthwise_pair_i8_S(y, t, w, numbers, rows)                two rows of results
 *     mcc_helium_depthwise_row_i8_S(y, t, w, numbers, rows)                 one row
 *     mcc_helium_depthwise_strided_i8_S(y, t, w, numbers, rows)             one row, for stride 2
 *
 * A cell is one column of four rows, of one channel: 4 bytes. A window is three cells, and the fourth one meets
 * weights of 0; the rows of a cell are what two rows of results need for stride 1, or one for stride 2. Weights of a
 * channel are 16 bytes for the upper row, and 16 for the lower. Zero points are folded into the bias. Cells of whole
 * blocks of results are read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_HELIUM_DEPTHWISE_H
#define MCC_HELIUM_DEPTHWISE_H

#include "mcc_helium.h"

#if MCC_HELIUM_ASM
MCC_INLINE void mcc_helium_put_cells(int8_t *t, mcc_index plane, uint32x4_t places, const int8_t *cells,
                                     mcc_index channels)
{
    MCC_HELIUM_UNROLLED
    for (mcc_index c = 0; c < channels; c += 4) {
        vstrwq_scatter_offset_s32((int32_t *)(void *)t, places, vreinterpretq_s32_s8(vldrbq_s8(cells + 4 * c)));
        t += 4 * plane;
    }
}
#endif

/* Rows that are not there are 16 zero points, with a step of 0. */
MCC_INLINE void mcc_helium_cells_i8(int8_t *t, mcc_index plane, const int8_t *const rows[4], const mcc_index steps[4],
                                    mcc_index columns, mcc_index channels)
{
    const int8_t *row0 = rows[0], *row1 = rows[1], *row2 = rows[2], *row3 = rows[3];
    for (mcc_index x = 0; x < columns; ++x) {
#if MCC_HELIUM_ASM
        int8_t cells[64];
        const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)plane);
        __asm__ volatile("vldrb.8 q0, [%0]\n vldrb.8 q1, [%1]\n vldrb.8 q2, [%2]\n vldrb.8 q3, [%3]\n"
                         "vst40.8 {q0, q1, q2, q3}, [%4]\n vst41.8 {q0, q1, q2, q3}, [%4]\n"
                         "vst42.8 {q0, q1, q2, q3}, [%4]\n vst43.8 {q0, q1, q2, q3}, [%4]"
                         :
                         : "r"(row0), "r"(row1), "r"(row2), "r"(row3), "r"(cells)
                         : "memory", "q0", "q1", "q2", "q3");
        if (channels == 16) {
            mcc_helium_put_cells(t, plane, places, cells, 16);
        } else {
            mcc_helium_put_cells(t, plane, places, cells, channels);
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

/* How results of a channel lie: those of four columns of two rows by turns, or of eight columns of one row. */
typedef struct mcc_helium_rows {
    uint16_t places[8];
    int32_t results;  /* in the row, or in both */
    int32_t step;     /* from eight results to the next eight */
    int32_t channels; /* which lie beside each other */
    int32_t plane;    /* bytes of cells of a channel */
} mcc_helium_rows;

#if MCC_HELIUM_ASM
/* Four sums, of windows at A, B, C and D. */
#define MCC_HELIUM_SUMS(V, W, A, B, C, D)                                                                              \
    "vldrb.8 %q[x], [%[t], #" A "]\n vmladav.s8 %[a], %q[x], %q[" W "]\n"                                              \
    "vldrb.8 %q[x], [%[t], #" C "]\n vmladav.s8 %[c], %q[x], %q[" W "]\n"                                              \
    "vmov %q[" V "][2], %q[" V "][0], %[a], %[c]\n"                                                                    \
    "vldrb.8 %q[x], [%[t], #" B "]\n vmladav.s8 %[a], %q[x], %q[" W "]\n"                                              \
    "vldrb.8 %q[x], [%[t], #" D "]\n vmladav.s8 %[c], %q[x], %q[" W "]\n"                                              \
    "vmov %q[" V "][3], %q[" V "][1], %[a], %[c]\n"
/* Of four windows, with both sets of weights. */
#define MCC_HELIUM_WINDOWS_pair                                                                                        \
    "vldrb.8 %q[x], [%[t]]\n vmladav.s8 %[a], %q[x], %q[w0]\n vmladav.s8 %[b], %q[x], %q[w1]\n"                        \
    "vldrb.8 %q[x], [%[t], #8]\n vmladav.s8 %[c], %q[x], %q[w0]\n vmladav.s8 %[d], %q[x], %q[w1]\n"                    \
    "vmov %q[p][2], %q[p][0], %[a], %[c]\n vmov %q[q][2], %q[q][0], %[b], %[d]\n"                                      \
    "vldrb.8 %q[x], [%[t], #4]\n vmladav.s8 %[a], %q[x], %q[w0]\n vmladav.s8 %[b], %q[x], %q[w1]\n"                    \
    "vldrb.8 %q[x], [%[t], #12]\n vmladav.s8 %[c], %q[x], %q[w0]\n vmladav.s8 %[d], %q[x], %q[w1]\n"                   \
    "vmov %q[p][3], %q[p][1], %[a], %[c]\n vmov %q[q][3], %q[q][1], %[b], %[d]\n"
/* Of eight windows, every second one from the first and from the second on. */
#define MCC_HELIUM_WINDOWS_row                                                                                         \
    MCC_HELIUM_SUMS("p", "w0", "0", "8", "16", "24") MCC_HELIUM_SUMS("q", "w0", "4", "12", "20", "28")
#define MCC_HELIUM_WINDOWS_strided                                                                                     \
    MCC_HELIUM_SUMS("p", "w0", "0", "16", "32", "48") MCC_HELIUM_SUMS("q", "w0", "8", "24", "40", "56")

#define MCC_HELIUM_DEPTHWISE_OF(N, S, BYTES)                                                                           \
    static __attribute__((noinline, unused)) void mcc_helium_depthwise_##N##_i8_##S(                                   \
        int8_t *y, const int8_t *t, const int8_t *w, const int32_t *numbers, const mcc_helium_rows *rows)              \
    {                                                                                                                  \
        const uint16x8_t places = vldrhq_u16(rows->places);                                                            \
        const int32_t step = rows->step;                                                                               \
        for (int32_t c = rows->channels; c > 0; --c) {                                                                 \
            const int8x16_t w0 = vldrbq_s8(w), w1 = vldrbq_s8(w + 16);                                                 \
            const int32_t bias = numbers[0], addend = numbers[2];                                                      \
            const int32x4_t multiplier = vdupq_n_s32(numbers[1]);                                                      \
            const int8_t *cells = t;                                                                                   \
            int8_t *to = y;                                                                                            \
            int32_t left = rows->results;                                                                              \
            do {                                                                                                       \
                int32x4_t p, q;                                                                                        \
                int8x16_t x;                                                                                           \
                int32_t a, b, c0, d;                                                                                   \
                __asm__ volatile(MCC_HELIUM_WINDOWS_##N                                                                \
                                 : [p] "=&w"(p), [q] "=&w"(q), [x] "=&w"(x), [a] "=&Te"(a), [b] "=&Te"(b),             \
                                   [c] "=&Te"(c0), [d] "=&Te"(d)                                                       \
                                 : [t] "r"(cells), [w0] "w"(w0), [w1] "w"(w1)                                          \
                                 : "memory");                                                                          \
                p = vaddq_n_s32(vmulhq_s32(vaddq_n_s32(p, bias), multiplier), addend);                                 \
                q = vaddq_n_s32(vmulhq_s32(vaddq_n_s32(q, bias), multiplier), addend);                                 \
                __asm__ volatile(MCC_HELIUM_NARROW_I8("%q0", "%q2", S) "vpst\n vstrbt.16 %q0, [%3, %q4]"               \
                                 : "+w"(p), "+r"(left)                                                                 \
                                 : "w"(q), "r"(to), "w"(places), "Up"(vctp16q((uint32_t)left))                         \
                                 : "memory");                                                                          \
                cells += BYTES;                                                                                        \
                to += step;                                                                                            \
                left -= 8;                                                                                             \
            } while (left > 0);                                                                                        \
            t += rows->plane;                                                                                          \
            w += 32;                                                                                                   \
            numbers += 3;                                                                                              \
            ++y;                                                                                                       \
        }                                                                                                              \
    }
#define MCC_HELIUM_DEPTHWISE(S)                                                                                        \
    MCC_HELIUM_DEPTHWISE_OF(pair, S, 16)                                                                               \
    MCC_HELIUM_DEPTHWISE_OF(row, S, 32)                                                                                \
    MCC_HELIUM_DEPTHWISE_OF(strided, S, 64)

#else
/* Results that share a cell, and bytes from there to the next ones. */
#define MCC_HELIUM_SHARE_pair 2
#define MCC_HELIUM_SHARE_row 1
#define MCC_HELIUM_SHARE_strided 1
#define MCC_HELIUM_ON_pair 4
#define MCC_HELIUM_ON_row 4
#define MCC_HELIUM_ON_strided 8
#define MCC_HELIUM_DEPTHWISE_OF(N, S)                                                                                  \
    MCC_INLINE void mcc_helium_depthwise_##N##_i8_##S(int8_t *y, const int8_t *t, const int8_t *w,                     \
                                                     const int32_t *numbers, const mcc_helium_rows *rows)              \
    {                                                                                                                  \
        for (mcc_index c = 0; c < rows->channels; ++c) {                                                               \
            const int32_t *const own = numbers + c * 3;                                                                \
            for (mcc_index i = 0; i < rows->results; ++i) {                                                            \
                const int8_t *const cells = t + c * rows->plane + i / MCC_HELIUM_SHARE_##N * MCC_HELIUM_ON_##N;        \
                const int8_t *const weights = w + c * 32 + i % MCC_HELIUM_SHARE_##N * 16;                              \
                int32_t sum = own[0];                                                                                  \
                for (mcc_index k = 0; k < 16; ++k) sum = mcc_add_i32(sum, cells[k] * weights[k]);                      \
                sum = mcc_shr_i32(mcc_high_sum(mcc_add_i32(own[2], 1 << (S - 1)), sum, own[1]), S);                    \
                y[i / 8 * rows->step + rows->places[i % 8] + c] = (int8_t)mcc_saturate_i8(sum);                        \
            }                                                                                                          \
        }                                                                                                              \
    }
#define MCC_HELIUM_DEPTHWISE(S)                                                                                        \
    MCC_HELIUM_DEPTHWISE_OF(pair, S)                                                                                   \
    MCC_HELIUM_DEPTHWISE_OF(row, S)                                                                                    \
    MCC_HELIUM_DEPTHWISE_OF(strided, S)
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
