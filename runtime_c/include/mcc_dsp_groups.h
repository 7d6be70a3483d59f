/* mcc_dsp_groups.h - sums of groups of channels over taps that lie anywhere, in the words of mcc_dsp.h:
 *
 *     mcc_dsp_twos_i8(sums, taps, w, c, count)     four results of two groups of two channels, from c on (u8 too)
 *     mcc_dsp_fours_i8(sums, taps, w, c, count)    four results of a group of four channels (u8 too)
 *
 * Both give where weights go on. Taps point to their first channels. Weights are four words that sums begin with, and
 * for each tap a word for two results of pairs, bytes 0 and 2 of the first one and 1 and 3 of the other; or a word for
 * each result of fours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_GROUPS_H
#define MCC_DSP_GROUPS_H

#include "mcc_dsp_taps.h"

#if MCC_DSP_ASM && defined(__OPTIMIZE__) /* without it a register is missing */
#define MCC_DSP_OVER_TAPS(NAME, T, C, WIDEN, PRODUCTS)                                                                 \
    MCC_DSP_CALLED const int8_t *mcc_dsp_##NAME##_##T(int32_t *sums, const C *const *taps, const int8_t *w,            \
                                                      mcc_index c, mcc_index count)                                    \
    {                                                                                                                  \
        uint32_t s0 = mcc_dsp_load(w), s1 = mcc_dsp_load(w + 4);                                                       \
        uint32_t s2 = mcc_dsp_load(w + 8), s3 = mcc_dsp_load(w + 12);                                                  \
        uint32_t even, odd, x, first, second;                                                                          \
        const C *const *const end = taps + count;                                                                      \
        w += 16;                                                                                                       \
        __asm__ volatile("1: ldr %[x], [%[taps]], #4\n"                                                                \
                         "ldr %[x], [%[x], %[c]]\n"                                                                    \
                         "ldrd %[first], %[second], [%[w]], #8\n"                                                      \
                         WIDEN " %[even], %[x]\n"                                                                      \
                         WIDEN " %[odd], %[x], ror #8\n"                                                               \
                         PRODUCTS                                                                                      \
                         "cmp %[taps], %[end]\n"                                                                       \
                         "bne 1b"                                                                                      \
                         : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [taps] "+r"(taps), [w] "+r"(w), \
                           [even] "=&r"(even), [odd] "=&r"(odd), [x] "=&r"(x), [first] "=&r"(first),                   \
                           [second] "=&r"(second)                                                                      \
                         : [c] "r"(c), [end] "r"(end)                                                                  \
                         : "cc", "memory");                                                                            \
        sums[0] = (int32_t)s0;                                                                                         \
        sums[1] = (int32_t)s1;                                                                                         \
        sums[2] = (int32_t)s2;                                                                                         \
        sums[3] = (int32_t)s3;                                                                                         \
        return w;                                                                                                      \
    }
#define MCC_DSP_TWO_RESULTS(X, WORD, S, T)                                                                             \
    "sxtb16 %[even], %[" WORD "]\n"                                                                                    \
    "smlad %[" S "], %[" X "], %[even], %[" S "]\n"                                                                    \
    "sxtb16 %[" WORD "], %[" WORD "], ror #8\n"                                                                        \
    "smlad %[" T "], %[" X "], %[" WORD "], %[" T "]\n"
#define MCC_DSP_PAIRS                                                                                                  \
    "pkhbt %[x], %[even], %[odd], lsl #16\n"                                                                           \
    "pkhtb %[odd], %[odd], %[even], asr #16\n"                                                                         \
    MCC_DSP_TWO_RESULTS("x", "first", "s0", "s1")                                                                      \
    MCC_DSP_TWO_RESULTS("odd", "second", "s2", "s3")
#define MCC_DSP_RESULT(WORD, S)                                                                                        \
    "sxtb16 %[x], %[" WORD "]\n"                                                                                       \
    "sxtb16 %[" WORD "], %[" WORD "], ror #8\n"                                                                        \
    "smlad %[" S "], %[even], %[x], %[" S "]\n"                                                                        \
    "smlad %[" S "], %[odd], %[" WORD "], %[" S "]\n"
#define MCC_DSP_FOURS                                                                                                  \
    MCC_DSP_RESULT("first", "s0")                                                                                      \
    MCC_DSP_RESULT("second", "s1")                                                                                     \
    "ldrd %[first], %[second], [%[w]], #8\n"                                                                           \
    MCC_DSP_RESULT("first", "s2")                                                                                      \
    MCC_DSP_RESULT("second", "s3")
MCC_DSP_OVER_TAPS(twos, i8, int8_t, "sxtb16", MCC_DSP_PAIRS)
MCC_DSP_OVER_TAPS(twos, u8, uint8_t, "uxtb16", MCC_DSP_PAIRS)
MCC_DSP_OVER_TAPS(fours, i8, int8_t, "sxtb16", MCC_DSP_FOURS)
MCC_DSP_OVER_TAPS(fours, u8, uint8_t, "uxtb16", MCC_DSP_FOURS)
#else
#define MCC_DSP_OVER_TAPS(T, C)                                                                                        \
    MCC_INLINE const int8_t *mcc_dsp_twos_##T(int32_t *sums, const C *const *taps, const int8_t *w, mcc_index c,       \
                                              mcc_index count)                                                         \
    {                                                                                                                  \
        memcpy(sums, w, 16);                                                                                           \
        w += 16;                                                                                                       \
        for (mcc_index k = 0; k < count; ++k) {                                                                        \
            const C *const x = taps[k] + c;                                                                            \
            for (mcc_index o = 0; o < 4; ++o) {                                                                        \
                const int8_t *const own = w + o / 2 * 4 + o % 2;                                                       \
                sums[o] = mcc_add_i32(sums[o], x[o / 2 * 2] * own[0]);                                                 \
                sums[o] = mcc_add_i32(sums[o], x[o / 2 * 2 + 1] * own[2]);                                             \
            }                                                                                                          \
            w += 8;                                                                                                    \
        }                                                                                                              \
        return w;                                                                                                      \
    }                                                                                                                  \
    MCC_INLINE const int8_t *mcc_dsp_fours_##T(int32_t *sums, const C *const *taps, const int8_t *w, mcc_index c,      \
                                               mcc_index count)                                                        \
    {                                                                                                                  \
        memcpy(sums, w, 16);                                                                                           \
        w += 16;                                                                                                       \
        for (mcc_index k = 0; k < count; ++k) {                                                                        \
            const C *const x = taps[k] + c;                                                                            \
            for (mcc_index o = 0; o < 16; ++o) sums[o / 4] = mcc_add_i32(sums[o / 4], x[o % 4] * w[o]);                \
            w += 16;                                                                                                   \
        }                                                                                                              \
        return w;                                                                                                      \
    }
MCC_DSP_OVER_TAPS(i8, int8_t)
MCC_DSP_OVER_TAPS(u8, uint8_t)
#endif

#endif /* MCC_DSP_GROUPS_H */
