/* mcc_dsp_taps.h - sums of each channel for itself over taps that lie anywhere, in the words of mcc_dsp.h:
 *
 *     mcc_dsp_taps_i8(sums, taps, w, c, count)    four channels from c on (u8 too); gives where weights go on
 *     mcc_dsp_saturated_i8(value, shift)          a number shifted to the right, within 8 bits (u8 too)
 *
 * Taps point to their first channels, and are an even number. Weights are four words that sums begin with, and for two
 * taps two words of two channels each: bytes 0 and 2 are of the first one, 1 and 3 of the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_TAPS_H
#define MCC_DSP_TAPS_H

#include "mcc_dsp.h"
#include "mcc_taps.h"

/* Sums of four channels, with the numbers that they begin with in front of the weights. */
#if MCC_DSP_ASM && defined(__OPTIMIZE__) /* without it a register is missing */
#define MCC_DSP_TAPS(T, C, WIDEN)                                                                                      \
    MCC_DSP_CALLED const int8_t *mcc_dsp_taps_##T(int32_t *sums, const C *const *taps, const int8_t *w, mcc_index c,   \
                                                  mcc_index count)                                                     \
    {                                                                                                                  \
        uint32_t s0 = mcc_dsp_load(w), s1 = mcc_dsp_load(w + 4);                                                       \
        uint32_t s2 = mcc_dsp_load(w + 8), s3 = mcc_dsp_load(w + 12);                                                  \
        uint32_t highs, word, lows, x, y;                                                                              \
        const C *const *const end = taps + count;                                                                      \
        w += 16;                                                                                                       \
        __asm__ volatile("1: ldrd %[highs], %[word], [%[taps]], #8\n"                                                  \
                         "ldr %[highs], [%[highs], %[c]]\n"                                                            \
                         "ldr %[word], [%[word], %[c]]\n"                                                              \
                         "pkhbt %[lows], %[highs], %[word], lsl #16\n"                                                 \
                         "pkhtb %[highs], %[word], %[highs], asr #16\n"                                                \
                         "ldr %[word], [%[w]], #4\n"                                                                   \
                         MCC_DSP_TWO_CHANNELS_OF("lows", "s0", "s1", WIDEN)                                            \
                         "ldr %[word], [%[w]], #4\n"                                                                   \
                         MCC_DSP_TWO_CHANNELS_OF("highs", "s2", "s3", WIDEN)                                           \
                         "cmp %[taps], %[end]\n"                                                                       \
                         "bne 1b"                                                                                      \
                         : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [taps] "+r"(taps), [w] "+r"(w), \
                           [highs] "=&r"(highs), [word] "=&r"(word), [lows] "=&r"(lows), [x] "=&r"(x), [y] "=&r"(y)    \
                         : [c] "r"(c), [end] "r"(end)                                                                  \
                         : "cc", "memory");                                                                            \
        sums[0] = (int32_t)s0;                                                                                         \
        sums[1] = (int32_t)s1;                                                                                         \
        sums[2] = (int32_t)s2;                                                                                         \
        sums[3] = (int32_t)s3;                                                                                         \
        return w;                                                                                                      \
    }
#define MCC_DSP_TWO_CHANNELS_OF(PAIRS, S, T, WIDEN)                                                                    \
    WIDEN " %[x], %[" PAIRS "]\n"                                                                                      \
    "sxtb16 %[y], %[word]\n"                                                                                           \
    "smlad %[" S "], %[x], %[y], %[" S "]\n"                                                                           \
    WIDEN " %[" PAIRS "], %[" PAIRS "], ror #8\n"                                                                      \
    "sxtb16 %[word], %[word], ror #8\n"                                                                                \
    "smlad %[" T "], %[" PAIRS "], %[word], %[" T "]\n"
MCC_DSP_TAPS(i8, int8_t, "sxtb16")
MCC_DSP_TAPS(u8, uint8_t, "uxtb16")
#else
#define MCC_DSP_TAPS(T, C)                                                                                             \
    MCC_INLINE const int8_t *mcc_dsp_taps_##T(int32_t *sums, const C *const *taps, const int8_t *w, mcc_index c,       \
                                              mcc_index count)                                                         \
    {                                                                                                                  \
        memcpy(sums, w, 16);                                                                                           \
        w += 16;                                                                                                       \
        for (mcc_index k = 0; k < count; ++k) {                                                                        \
            const C *const x = taps[k] + c;                                                                            \
            const int8_t *const own = w + 4 * (k - k % 2) + 2 * (k % 2);                                               \
            sums[0] = mcc_add_i32(sums[0], x[0] * own[0]);                                                             \
            sums[1] = mcc_add_i32(sums[1], x[1] * own[1]);                                                             \
            sums[2] = mcc_add_i32(sums[2], x[2] * own[4]);                                                             \
            sums[3] = mcc_add_i32(sums[3], x[3] * own[5]);                                                             \
        }                                                                                                              \
        return w + 4 * count;                                                                                          \
    }
MCC_DSP_TAPS(i8, int8_t)
MCC_DSP_TAPS(u8, uint8_t)
#endif

#if MCC_DSP_ASM
#define MCC_DSP_SATURATED(T, INSTRUCTION)                                                                              \
    MCC_INLINE int32_t mcc_dsp_saturated_##T(int32_t value, int shift)                                                 \
    {                                                                                                                  \
        int32_t found;                                                                                                 \
        __asm__(INSTRUCTION " %0, #8, %1" : "=r"(found) : "r"(mcc_shr_i32(value, shift)));                             \
        return found;                                                                                                  \
    }
MCC_DSP_SATURATED(i8, "ssat")
MCC_DSP_SATURATED(u8, "usat")
#else
MCC_INLINE int32_t mcc_dsp_saturated_i8(int32_t value, int shift)
{
    return mcc_saturate_i8(mcc_shr_i32(value, shift));
}

MCC_INLINE int32_t mcc_dsp_saturated_u8(int32_t value, int shift)
{
    return mcc_saturate_u8(mcc_shr_i32(value, shift));
}
#endif

#endif /* MCC_DSP_TAPS_H */
