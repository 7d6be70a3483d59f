/* mcc_dsp_wide.h - sums of products of 8-bit integers with weights that take 16 bits, in the words of mcc_dsp.h:
 *
 *     mcc_dsp_wide4x2_i8_S(w, patch, y, t)    4 positions x all channels, two at a time, from a patch with 4 lanes
 *     mcc_dsp_wide1x2_i8_S(w, patch, y, t)    the first of 4 positions x all channels, likewise
 *
 * What mcc_dsp_dot4x2 and 1x2 do, from twice the bytes: no weight is widened, so that a step of 16 products takes 11
 * instructions instead of 13.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_WIDE_H
#define MCC_DSP_WIDE_H

#include "mcc_dsp_dots.h"

#if MCC_DSP_ASM
#define MCC_DSP_READ_4X2_wide "ldrd r12, lr, [r0], #8\n"
#define MCC_DSP_WIDEN_4X2_wide
#define MCC_DSP_BYTES_4X2_wide "44"
#define MCC_DSP_READ_1X2_wide "ldrd r6, r7, [r0], #8\n"
#define MCC_DSP_WIDEN_1X2_wide
#define MCC_DSP_WIDE4X2(T, C, N, S, MODE, SATURATE) MCC_DSP_SUMS4X2(wide, int16_t, T, C, N, S, MODE, SATURATE)
#define MCC_DSP_WIDE1X2(T, C, N, S, MODE, SATURATE) MCC_DSP_SUMS1X2(wide, int16_t, T, C, N, S, MODE, SATURATE)
#define MCC_DSP_WIDE_OF(N, S, MODE)                                                                                    \
    MCC_DSP_BOTH(MCC_DSP_WIDE4X2, N, S, MODE)                                                                          \
    MCC_DSP_BOTH(MCC_DSP_WIDE1X2, N, S, MODE)

#else
#define MCC_DSP_WIDE_OF(N, S, MODE)                                                                                    \
    MCC_DSP_TWO_CHANNELS(wide, int16_t, 2, 1, i8, int8_t, N, S, MODE)                                                  \
    MCC_DSP_TWO_CHANNELS(wide, int16_t, 2, 1, u8, uint8_t, N, S, MODE)
#endif

MCC_DSP_ALL_ROUNDINGS(MCC_DSP_WIDE_OF)

#endif /* MCC_DSP_WIDE_H */
