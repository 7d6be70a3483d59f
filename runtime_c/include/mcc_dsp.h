/* mcc_dsp.h - 8-bit integers on cores that add and multiply two pairs of 16 bits at once: Cortex-M4, M7, M33, M35P,
 * M55, M85. The kernels of the ISA `dsp` are made of these words and those of mcc_dsp_dots.h and mcc_dsp_depthwise.h:
 *
 *     mcc_dsp_zero(z)                        a zero point in the form in which it is subtracted
 *     mcc_dsp_widen_i8(d, lanes, x, n, z)    n elements of x, made 16 bits wide, less their zero point, to one lane of
 *                                            a patch (u8 too); n is rounded up to 4, gives where the lane goes on
 *     mcc_dsp_widen_taps_i8(d, lanes, x, n, taps, step, z)    the same of each of some taps, as far from each other
 *     mcc_dsp_blank(d, lanes, n)             zeros to a lane of a patch
 *     mcc_dsp_even_i8(pair, word)            bytes 0 and 2 of a word added to a pair (u8 too; mcc_dsp_odd: 1 and 3)
 *     mcc_dsp_larger_i8(a, b)                the larger of each two bytes of two words (u8 too)
 *     mcc_dsp_lows(first, second)            the lower halves of two words (mcc_dsp_highs: the upper ones)
 *
 * In a patch, elements lie in pairs (0, 2), (1, 3), (4, 6), (5, 7) ... of 32 bits, those of all lanes side by side.
 *
 * Inner loops are written in assembly, in functions that contain nothing else: C with intrinsics makes compilers move
 * values between registers and memory. Where these instructions are missing, C does the same, bit for bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_H
#define MCC_DSP_H

#include <string.h>

#include "mcc.h"
#include "mcc_quant.h"

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_DSP) && !defined(MCC_DSP_PORTABLE)
#define MCC_DSP_ASM 1
#else
#define MCC_DSP_ASM 0
#endif

#if defined(__GNUC__)
#define MCC_DSP_UNUSED __attribute__((unused))
#else
#define MCC_DSP_UNUSED
#endif

MCC_INLINE uint32_t mcc_dsp_pair(int32_t low, int32_t high)
{
    return ((uint32_t)low & 0xffffu) | ((uint32_t)high << 16);
}

MCC_INLINE int32_t mcc_dsp_low(uint32_t pair)
{
    return (int16_t)(pair & 0xffffu);
}

MCC_INLINE int32_t mcc_dsp_high(uint32_t pair)
{
    return (int16_t)(pair >> 16);
}

MCC_INLINE uint32_t mcc_dsp_zero(int32_t zero)
{
    return mcc_dsp_pair(-zero, -zero);
}

MCC_INLINE uint32_t mcc_dsp_load(const void *p)
{
    uint32_t word;
    memcpy(&word, p, 4);
    return word;
}

/* Bytes 0 and 2 of a word (odd: 1 and 3), made wider, plus a pair. */
#if MCC_DSP_ASM
#define MCC_DSP_ADD_BYTES(NAME, INSTRUCTION)                                                                           \
    MCC_INLINE uint32_t NAME(uint32_t sum, uint32_t word)                                                              \
    {                                                                                                                  \
        uint32_t found;                                                                                                \
        __asm__(INSTRUCTION : "=r"(found) : "r"(sum), "r"(word));                                                      \
        return found;                                                                                                  \
    }
MCC_DSP_ADD_BYTES(mcc_dsp_even_i8, "sxtab16 %0, %1, %2")
MCC_DSP_ADD_BYTES(mcc_dsp_odd_i8, "sxtab16 %0, %1, %2, ror #8")
MCC_DSP_ADD_BYTES(mcc_dsp_even_u8, "uxtab16 %0, %1, %2")
MCC_DSP_ADD_BYTES(mcc_dsp_odd_u8, "uxtab16 %0, %1, %2, ror #8")
#else
#define MCC_DSP_ADD_BYTES(NAME, TYPE, SHIFT)                                                                           \
    MCC_INLINE uint32_t NAME(uint32_t sum, uint32_t word)                                                              \
    {                                                                                                                  \
        return mcc_dsp_pair(mcc_dsp_low(sum) + (TYPE)(word >> (SHIFT) & 0xffu),                                        \
                            mcc_dsp_high(sum) + (TYPE)(word >> (SHIFT + 16) & 0xffu));                                 \
    }
MCC_DSP_ADD_BYTES(mcc_dsp_even_i8, int8_t, 0)
MCC_DSP_ADD_BYTES(mcc_dsp_odd_i8, int8_t, 8)
MCC_DSP_ADD_BYTES(mcc_dsp_even_u8, uint8_t, 0)
MCC_DSP_ADD_BYTES(mcc_dsp_odd_u8, uint8_t, 8)
#endif

/* The larger of each two bytes: the difference says which, and the flags that it sets choose. */
#if MCC_DSP_ASM
#define MCC_DSP_LARGER(NAME, INSTRUCTION)                                                                              \
    MCC_INLINE uint32_t NAME(uint32_t a, uint32_t b)                                                                   \
    {                                                                                                                  \
        uint32_t differences;                                                                                          \
        __asm__(INSTRUCTION " %1, %0, %2\nsel %0, %0, %2" : "+r"(a), "=&r"(differences) : "r"(b));                     \
        return a;                                                                                                      \
    }
MCC_DSP_LARGER(mcc_dsp_larger_i8, "ssub8")
MCC_DSP_LARGER(mcc_dsp_larger_u8, "usub8")
#else
#define MCC_DSP_LARGER(NAME, TYPE)                                                                                     \
    MCC_INLINE uint32_t NAME(uint32_t a, uint32_t b)                                                                   \
    {                                                                                                                  \
        uint32_t found = 0;                                                                                            \
        for (int shift = 0; shift < 32; shift += 8) {                                                                  \
            const TYPE one = (TYPE)(a >> shift & 0xffu), other = (TYPE)(b >> shift & 0xffu);                           \
            found |= (uint32_t)(uint8_t)(one > other ? one : other) << shift;                                          \
        }                                                                                                              \
        return found;                                                                                                  \
    }
MCC_DSP_LARGER(mcc_dsp_larger_i8, int8_t)
MCC_DSP_LARGER(mcc_dsp_larger_u8, uint8_t)
#endif

/* The lower halves of two words as one, and the upper ones. */
#if MCC_DSP_ASM
MCC_INLINE uint32_t mcc_dsp_lows(uint32_t first, uint32_t second)
{
    uint32_t found;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(found) : "r"(first), "r"(second));
    return found;
}

MCC_INLINE uint32_t mcc_dsp_highs(uint32_t first, uint32_t second)
{
    uint32_t found;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(found) : "r"(second), "r"(first));
    return found;
}
#else
MCC_INLINE uint32_t mcc_dsp_lows(uint32_t first, uint32_t second)
{
    return (first & 0xffffu) | (second << 16);
}

MCC_INLINE uint32_t mcc_dsp_highs(uint32_t first, uint32_t second)
{
    return (first >> 16) | (second & 0xffff0000u);
}
#endif

/* Where size counts, there is one copy of what is not called often, else one made to measure for each place. */
#if defined(__OPTIMIZE_SIZE__) && defined(__GNUC__)
#define MCC_DSP_CALLED static __attribute__((noinline, unused))
#define MCC_DSP_UNROLL 0
#else
#define MCC_DSP_CALLED MCC_INLINE
#define MCC_DSP_UNROLL 1
#endif

/* Adds sums of channels 0 and 2, and 1 and 3. */
MCC_INLINE void mcc_dsp_add_pairs(int32_t *totals, uint32_t even, uint32_t odd)
{
    totals[0] += mcc_dsp_low(even);
    totals[1] += mcc_dsp_low(odd);
    totals[2] += mcc_dsp_high(even);
    totals[3] += mcc_dsp_high(odd);
}

#define MCC_DSP_WORD(T, I)                                                                                             \
    word = mcc_dsp_load(x + 4 * (I));                                                                                  \
    d[2 * (I) * lanes] = mcc_dsp_even_##T(zero, word);                                                                 \
    d[(2 * (I) + 1) * lanes] = mcc_dsp_odd_##T(zero, word);
#define MCC_DSP_FOUR_WORDS(T, I)                                                                                       \
    MCC_DSP_WORD(T, I) MCC_DSP_WORD(T, (I) + 1) MCC_DSP_WORD(T, (I) + 2) MCC_DSP_WORD(T, (I) + 3)
#define MCC_DSP_WIDEN(T, C)                                                                                            \
    MCC_DSP_CALLED uint32_t *mcc_dsp_widen_##T(uint32_t *d, mcc_index lanes, const C *x, mcc_index n, uint32_t zero)   \
    {                                                                                                                  \
        uint32_t word;                                                                                                 \
        mcc_index words = (n + 3) / 4;                                                                                 \
        for (; MCC_DSP_UNROLL && words >= 8; words -= 8) {                                                             \
            MCC_DSP_FOUR_WORDS(T, 0) MCC_DSP_FOUR_WORDS(T, 4)                                                          \
            d += 16 * lanes;                                                                                           \
            x += 32;                                                                                                   \
        }                                                                                                              \
        if (MCC_DSP_UNROLL && words >= 4) {                                                                            \
            MCC_DSP_FOUR_WORDS(T, 0)                                                                                   \
            d += 8 * lanes;                                                                                            \
            x += 16;                                                                                                   \
            words -= 4;                                                                                                \
        }                                                                                                              \
        if (MCC_DSP_UNROLL && words >= 2) {                                                                            \
            MCC_DSP_WORD(T, 0) MCC_DSP_WORD(T, 1)                                                                      \
            d += 4 * lanes;                                                                                            \
            x += 8;                                                                                                    \
            words -= 2;                                                                                                \
        }                                                                                                              \
        for (; words > 0; --words) {                                                                                   \
            MCC_DSP_WORD(T, 0)                                                                                         \
            d += 2 * lanes;                                                                                            \
            x += 4;                                                                                                    \
        }                                                                                                              \
        return d;                                                                                                      \
    }                                                                                                                  \
    /* As many elements of each of some taps, which lie so far from each other. */                                     \
    MCC_DSP_CALLED uint32_t *mcc_dsp_widen_taps_##T(uint32_t *d, mcc_index lanes, const C *x, mcc_index n,             \
                                                    mcc_index taps, mcc_index step, uint32_t zero)                     \
    {                                                                                                                  \
        uint32_t word;                                                                                                 \
        for (; taps > 0; --taps, x += step) {                                                                          \
            if (n > 8) {                                                                                               \
                d = mcc_dsp_widen_##T(d, lanes, x, n, zero);                                                           \
                continue;                                                                                              \
            }                                                                                                          \
            MCC_DSP_WORD(T, 0)                                                                                         \
            if (n > 4) {                                                                                               \
                MCC_DSP_WORD(T, 1)                                                                                     \
                d += 2 * lanes;                                                                                        \
            }                                                                                                          \
            d += 2 * lanes;                                                                                            \
        }                                                                                                              \
        return d;                                                                                                      \
    }                                                                                                                  \
    /* A run of which only the elements from `first` to `end` are there, at x; zero points stand for the others. They  \
     * begin or end a row of so many elements, so that words may reach over the run, but not over the row. */          \
    MCC_DSP_CALLED uint32_t *mcc_dsp_widen_part_##T(uint32_t *d, mcc_index lanes, const C *x, mcc_index n,             \
                                                    mcc_index first, mcc_index end, mcc_index row, uint32_t zero,      \
                                                    C filler)                                                          \
    {                                                                                                                  \
        const uint32_t fill = (uint8_t)filler * 0x01010101u;                                                           \
        const mcc_bool words = MCC_DSP_UNROLL && row >= 4;                                                             \
        for (mcc_index i = 0; i < n; i += 4) {                                                                         \
            const mcc_index low = first - i, high = end - i;                                                           \
            uint32_t word = fill;                                                                                      \
            if (MCC_DSP_UNROLL && low <= 0 && high >= 4) {                                                             \
                word = mcc_dsp_load(x - low);                                                                          \
            } else if (words && low > 0 && low < 4 && high >= 4) {                                                     \
                word = mcc_dsp_load(x) << (8 * low) | fill >> (32 - 8 * low);                                          \
            } else if (words && low <= 0 && high > 0 && (first == 0 || end - first >= 4)) {                            \
                word = mcc_dsp_load(x - low + high - 4) >> (32 - 8 * high) | fill << (8 * high);                       \
            } else {                                                                                                   \
                for (mcc_index j = low > 0 ? low : 0; j < high && j < 4; ++j) {                                        \
                    word ^= (uint32_t)(uint8_t)(x[j - low] ^ filler) << (8 * j);                                       \
                }                                                                                                      \
            }                                                                                                          \
            d[0] = mcc_dsp_even_##T(zero, word);                                                                       \
            d[lanes] = mcc_dsp_odd_##T(zero, word);                                                                    \
            d += 2 * lanes;                                                                                            \
        }                                                                                                              \
        return d;                                                                                                      \
    }
MCC_DSP_WIDEN(i8, int8_t)
MCC_DSP_WIDEN(u8, uint8_t)

MCC_DSP_CALLED uint32_t *mcc_dsp_blank(uint32_t *d, mcc_index lanes, mcc_index n)
{
    for (mcc_index i = 0; i < n; i += 4) {
        d[0] = 0;
        d[lanes] = 0;
        d += 2 * lanes;
    }
    return d;
}

/* Results of 8 bits. A shift by nothing has no form with `asr`. */
#if MCC_DSP_ASM
#define MCC_DSP_SATURATE_TO(INSTRUCTION, R, S)                                                                         \
    ".if " #S "\n" INSTRUCTION " " #R ", #8, " #R ", asr #" #S "\n.else\n" INSTRUCTION " " #R ", #8, " #R "\n.endif\n"
#define MCC_DSP_SATURATE_I8(R, S) MCC_DSP_SATURATE_TO("ssat", R, S)
#define MCC_DSP_SATURATE_U8(R, S) MCC_DSP_SATURATE_TO("usat", R, S)
/* The upper half of a product, and what is added to it, rounded; a result of 8 bits. */
#define MCC_DSP_SCALE(R, FACTOR, ADDEND) "smmla " #R ", " #R ", " #FACTOR ", " #ADDEND "\n"
#define MCC_DSP_STORE(R, S, SATURATE, AT) SATURATE(R, S) "strb " #R ", " AT "\n"
#else
MCC_INLINE int32_t mcc_dsp_rounded(int32_t sum, const int32_t *numbers, int shift)
{
    return mcc_shr_i32(mcc_high_sum(numbers[1], sum, numbers[0]), shift);
}

/* A sum and the products of both halves of a pair; it wraps around, as the instruction does. */
MCC_INLINE int32_t mcc_dsp_smlad(int32_t sum, uint32_t pair, int32_t low, int32_t high)
{
    return mcc_add_i32(mcc_add_i32(sum, mcc_dsp_low(pair) * low), mcc_dsp_high(pair) * high);
}
#endif

/* Whether sums are raised says which text there is in assembly; in C, how many numbers a channel has in the table. */
#if MCC_DSP_ASM
#define MCC_DSP_RAISED(TEXT) TEXT
#define MCC_DSP_PLAIN(TEXT)
#else
#define MCC_DSP_RAISED 4
#define MCC_DSP_PLAIN 3
#endif

/* Factors of a half and more, as weights of 4 bits have them, leave nothing to be shifted. */
#define MCC_DSP_ROUNDINGS(OF) OF(0, 0, MCC_DSP_PLAIN) MCC_SHORT_ROUNDINGS(OF, MCC_DSP_PLAIN, MCC_DSP_RAISED)

#endif /* MCC_DSP_H */
