/* mcc_dsp_palette.h - weights that take at most 16 values, from indices of 4 bits:
 *
 *     mcc_dsp_unpack_i16(d, w, first, n)     n weights from that one on, for the functions of mcc_dsp_wide.h
 *     mcc_dsp_unpack_columns(d, w, first)    3x3 weights of four channels from that one on, for mcc_dsp_depthwise.h
 *
 * The first 16 bytes at w are the values, the others hold two indices each, the first one below (codegen/int8/dot.py).
 * n and the number of the first weight are multiples of 8, that of the first channel is one of 4. Weights of some
 * channels are unpacked once and multiplied with all positions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_PALETTE_H
#define MCC_DSP_PALETTE_H

#include "mcc_dsp.h"

/* A column of a window is elements (0, 1, 1, 2); two of them are six indices. */
MCC_DSP_CALLED void mcc_dsp_unpack_columns(int8_t *d, const int8_t *w, mcc_index first)
{
    const int8_t *two = w + 16 + first / 4 * 18;
    for (int8_t *const end = d + 48; d < end; d += 8, two += 3) {
        d[0] = w[two[0] & 15];
        d[1] = d[2] = w[(uint8_t)two[0] >> 4];
        d[3] = w[two[1] & 15];
        d[4] = w[(uint8_t)two[1] >> 4];
        d[5] = d[6] = w[two[2] & 15];
        d[7] = w[(uint8_t)two[2] >> 4];
    }
}

#if MCC_DSP_ASM
/* r0 weights, r1 values, r2 indices, r3 end of the weights; r12 8 indices, r4-r7 pairs of weights, lr the other one of
 * a pair. */
#define MCC_DSP_UNPACK_TWO(R, AT, NEXT)                                                                                \
    "ubfx " R ", r12, #" AT ", #4\n"                                                                                   \
    "ubfx lr, r12, #" NEXT ", #4\n"                                                                                    \
    "ldrsb " R ", [r1, " R "]\n"                                                                                       \
    "ldrsb lr, [r1, lr]\n"                                                                                             \
    "pkhbt " R ", " R ", lr, lsl #16\n"
static __attribute__((naked, noinline, unused)) void mcc_dsp_unpack_i16(int16_t *d MCC_DSP_UNUSED,
                                                                        const int8_t *w MCC_DSP_UNUSED,
                                                                        mcc_index first MCC_DSP_UNUSED,
                                                                        mcc_index n MCC_DSP_UNUSED)
{
    __asm__ volatile("push {r4-r7, lr}\n"
                     "add r2, r1, r2, lsr #1\n"
                     "add r2, r2, #16\n"
                     "add r3, r0, r3, lsl #1\n"
                     "1: ldr r12, [r2], #4\n" MCC_DSP_UNPACK_TWO("r4", "0", "4") MCC_DSP_UNPACK_TWO("r5", "8", "12")
                         MCC_DSP_UNPACK_TWO("r6", "16", "20") MCC_DSP_UNPACK_TWO("r7", "24", "28")
                     "stm r0!, {r4-r7}\n"
                     "cmp r0, r3\n"
                     "bne 1b\n"
                     "pop {r4-r7, pc}\n");
}
#else
MCC_INLINE void mcc_dsp_unpack_i16(int16_t *d, const int8_t *w, mcc_index first, mcc_index n)
{
    for (mcc_index i = 0; i < n; ++i) {
        const uint8_t two = (uint8_t)w[16 + (first + i) / 2];
        d[i] = w[i % 2 ? two >> 4 : two & 15];
    }
}
#endif

#endif /* MCC_DSP_PALETTE_H */
