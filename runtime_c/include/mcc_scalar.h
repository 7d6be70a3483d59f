/* mcc_scalar.h - sums of products of 8-bit integers for cores that multiply 32 bits, once at a time: Cortex-M0, M3,
 * RV32. All kernels of the ISA `scalar` are made of these few words, and of
 * those of mcc_scalar_round.h:
 *
 *     mcc_scalar_widen_i8(&lane, x, n)                 n elements of x to one lane of a patch (u8 too)
 *     mcc_scalar_blank(&lane, z, n)                    n times the zero point to a lane of a patch
 *     mcc_scalar_dot2x4_i8(w, patch, lanes, y, t, n)   n (1 or 2) positions of a patch x all channels, four at a time
 *     mcc_scalar_parts2x4_i8(...)                      the same where the table may have numbers of two parts
 *     mcc_scalar_row4_i8_u8(w, x, n, y, t)             a row of n i8 as it lies x all channels, results u8 (and other
 *                                                      pairs)
 *
 * Everything in a patch is unsigned: i8 plus 128, so are the weights, and their channels lie in fours
 * (codegen/int8/dot.py). A patch holds two positions in the halves of 32 bits. One multiplication then gives two
 * products; both fit 16 bits. With
 *
 *     a = sum(product)    b = sum(product >> 16)
 *
 * b is the sum of the upper position, a - (b << 16) that of the lower one, modulo 2^32 like all sums. The 128 of the
 * activations and their zero point are in the biases; that of the weights is subtracted with the total of each lane.
 *
 * The inner loops are assembly on cores with eight low registers, in functions that contain nothing else: compilers
 * keep no sums in the upper ones. Cores that multiply and add in one instruction (Cortex-M3) make each product for
 * itself, and only the loop over two positions is assembly. Everywhere else C does the same, bit for bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SCALAR_H
#define MCC_SCALAR_H

#include "mcc.h"
#include "mcc_scalar_mla.h"
#include "mcc_scalar_round.h"

/* Where size counts, there is one copy of what is not called often, else one made to measure for each place. */
#if defined(__OPTIMIZE_SIZE__) && defined(__GNUC__)
#define MCC_SCALAR_CALLED static __attribute__((noinline, unused))
#else
#define MCC_SCALAR_CALLED MCC_INLINE
#endif

/* What is made of the sums of all channels. */
typedef struct mcc_scalar_result {
    const int32_t *table; /* bias, multiplier and addend of each channel (mcc_quant.h); for totals, one number each */
    int32_t channels;     /* those that are stored; of weights there is a multiple of four */
    int32_t steps;        /* of the sum: a multiple of four */
    int32_t stride;       /* from the results of one position to those of the next */
    int32_t shift;
} mcc_scalar_result;

/* Where the next element of a lane goes, and the total of those before it. */
typedef struct mcc_scalar_lane {
    uint16_t *next;
    uint32_t total;
} mcc_scalar_lane;

#define MCC_SCALAR_ELEMENT(I, FLIP)                                                                                    \
    element = (uint8_t)x[I] ^ (FLIP);                                                                                  \
    d[2 * (I)] = (uint16_t)element;                                                                                    \
    total += element;
#define MCC_SCALAR_WIDEN(T, C, FLIP)                                                                                   \
    MCC_SCALAR_CALLED void mcc_scalar_widen_##T(mcc_scalar_lane *lane, const C *x, mcc_index n)                        \
    {                                                                                                                  \
        uint16_t *d = lane->next;                                                                                      \
        uint32_t element, total = lane->total;                                                                         \
        lane->next += 2 * n;                                                                                           \
        for (; n >= 4; n -= 4) {                                                                                       \
            MCC_SCALAR_ELEMENT(0, FLIP)                                                                                \
            MCC_SCALAR_ELEMENT(1, FLIP)                                                                                \
            MCC_SCALAR_ELEMENT(2, FLIP)                                                                                \
            MCC_SCALAR_ELEMENT(3, FLIP)                                                                                \
            d += 8;                                                                                                    \
            x += 4;                                                                                                    \
        }                                                                                                              \
        for (; n > 0; --n) {                                                                                           \
            MCC_SCALAR_ELEMENT(0, FLIP)                                                                                \
            d += 2;                                                                                                    \
            ++x;                                                                                                       \
        }                                                                                                              \
        lane->total = total;                                                                                           \
    }
MCC_SCALAR_WIDEN(i8, int8_t, 128u)
MCC_SCALAR_WIDEN(u8, uint8_t, 0u)

MCC_SCALAR_CALLED void mcc_scalar_blank(mcc_scalar_lane *lane, uint32_t zero, mcc_index n)
{
    for (mcc_index i = 0; i < n; ++i) lane->next[2 * i] = (uint16_t)zero;
    lane->next += 2 * n;
    lane->total += zero * (uint32_t)n;
}

#if MCC_SCALAR_ASM
/* r0 weights, r1 patch, r2 a pair of elements, r3 a weight and its products; a in r8-r11, b in r4-r7; r12 end of
 * patch. */
#define MCC_SCALAR_PRODUCT(W, A, B)                                                                                    \
    "ldrb r3, [r0, #" W "]\n"                                                                                          \
    "muls r3, r2\n"                                                                                                    \
    "add " A ", r3\n"                                                                                                  \
    "lsrs r3, r3, #16\n"                                                                                               \
    "adds " B ", " B ", r3\n"
#define MCC_SCALAR_STEP(X, W0, W1, W2, W3)                                                                             \
    "ldr r2, [r1, #" X "]\n" MCC_SCALAR_PRODUCT(W0, "r8", "r4") MCC_SCALAR_PRODUCT(W1, "r9", "r5")                     \
        MCC_SCALAR_PRODUCT(W2, "r10", "r6") MCC_SCALAR_PRODUCT(W3, "r11", "r7")
#define MCC_SCALAR_KEEP(A, B, LOWER, UPPER)                                                                            \
    "mov r0, " A "\n"                                                                                                  \
    "lsls r1, " B ", #16\n"                                                                                            \
    "subs r0, r0, r1\n"                                                                                                \
    "str r0, [r2, #" LOWER "]\n"                                                                                       \
    "str " B ", [r2, #" UPPER "]\n"
MCC_SCALAR_NAKED mcc_scalar_sums2x4(const uint8_t *w MCC_SCALAR_UNUSED, const uint16_t *patch MCC_SCALAR_UNUSED,
                                    int32_t *sums MCC_SCALAR_UNUSED, int32_t steps MCC_SCALAR_UNUSED)
{
    __asm__ volatile(".syntax unified\n"
                     "push {r4-r7, lr}\n"
                     "mov r4, r8\n"
                     "mov r5, r9\n"
                     "mov r6, r10\n"
                     "mov r7, r11\n"
                     "push {r2, r4-r7}\n"
                     "lsls r3, r3, #2\n"
                     "adds r3, r3, r1\n"
                     "mov r12, r3\n"
                     "ldr r4, [r2, #16]\n"
                     "mov r5, r4\n"
                     "mov r6, r4\n"
                     "mov r7, r4\n"
                     "lsls r3, r4, #16\n"
                     "ldr r2, [r2]\n"
                     "adds r2, r2, r3\n"
                     "mov r8, r2\n"
                     "mov r9, r2\n"
                     "mov r10, r2\n"
                     "mov r11, r2\n"
                     "1:\n"                      MCC_SCALAR_STEP("0", "0", "1", "2", "3")
                     MCC_SCALAR_STEP("4", "4", "5", "6", "7")
                     MCC_SCALAR_STEP("8", "8", "9", "10", "11")
                     MCC_SCALAR_STEP("12", "12", "13", "14", "15")
                     "adds r0, #16\n"
                     "adds r1, #16\n"
                     "cmp r1, r12\n"
                     "bne 1b\n"
                     "pop {r2}\n"                      MCC_SCALAR_KEEP("r8", "r4", "0", "16")
                     MCC_SCALAR_KEEP("r9", "r5", "4", "20")
                     MCC_SCALAR_KEEP("r10", "r6", "8", "24")
                     MCC_SCALAR_KEEP("r11", "r7", "12", "28")
                     "pop {r4-r7}\n"
                     "mov r8, r4\n"
                     "mov r9, r5\n"
                     "mov r10, r6\n"
                     "mov r11, r7\n"
                     "pop {r4-r7, pc}\n");
}

/* r0 weights, r1 end of x, r2 place in x before it, r3 an element, r4 a weight and its product; sums in r5-r8. */
#define MCC_SCALAR_TERM(W, A)                                                                                          \
    "ldrb r4, [r0, #" W "]\n"                                                                                          \
    "muls r4, r3\n"                                                                                                    \
    "add " A ", r4\n"
#define MCC_SCALAR_TERMS(LOAD, W0, W1, W2, W3)                                                                         \
    LOAD " r3, [r1, r2]\n" MCC_SCALAR_TERM(W0, "r5") MCC_SCALAR_TERM(W1, "r6") MCC_SCALAR_TERM(W2, "r7")               \
        MCC_SCALAR_TERM(W3, "r8")
#define MCC_SCALAR_SUMS1X4(NAME, C, LOAD, BYTES)                                                                       \
    MCC_SCALAR_NAKED NAME(const uint8_t *w MCC_SCALAR_UNUSED, const C *x MCC_SCALAR_UNUSED,                            \
                          int32_t *sums MCC_SCALAR_UNUSED, int32_t steps MCC_SCALAR_UNUSED)                            \
    {                                                                                                                  \
        __asm__ volatile(".syntax unified\n"                                                                           \
                         "push {r4-r7, lr}\n"                                                                          \
                         "mov r4, r8\n"                                                                                \
                         "push {r2, r4}\n"                                                                             \
                         "ldr r5, [r2]\n"                                                                              \
                         "mov r6, r5\n"                                                                                \
                         "mov r7, r5\n"                                                                                \
                         "mov r8, r5\n"                                                                                \
                         "movs r2, #" BYTES "\n"                                                                       \
                         "muls r2, r3\n"                                                                               \
                         "adds r1, r1, r2\n"                                                                           \
                         "rsbs r2, r2, #0\n"                                                                           \
                         "1:\n"                                                                                        \
                         MCC_SCALAR_TERMS(LOAD, "0", "1", "2", "3") "adds r2, #" BYTES "\n"                            \
                         MCC_SCALAR_TERMS(LOAD, "4", "5", "6", "7") "adds r2, #" BYTES "\n"                            \
                         MCC_SCALAR_TERMS(LOAD, "8", "9", "10", "11") "adds r2, #" BYTES "\n"                          \
                         MCC_SCALAR_TERMS(LOAD, "12", "13", "14", "15")                                                \
                         "adds r0, #16\n"                                                                              \
                         "adds r2, #" BYTES "\n"                                                                       \
                         "bne 1b\n"                                                                                    \
                         "pop {r2, r4}\n"                                                                              \
                         "str r5, [r2]\n"                                                                              \
                         "str r6, [r2, #4]\n"                                                                          \
                         "str r7, [r2, #8]\n"                                                                          \
                         "mov r3, r8\n"                                                                                \
                         "str r3, [r2, #12]\n"                                                                         \
                         "mov r8, r4\n"                                                                                \
                         "pop {r4-r7, pc}\n");                                                                         \
    }
MCC_SCALAR_SUMS1X4(mcc_scalar_sums1x4, uint16_t, "ldrh", "4")
MCC_SCALAR_SUMS1X4(mcc_scalar_row_sums_i8, int8_t, "ldrsb", "1")
MCC_SCALAR_SUMS1X4(mcc_scalar_row_sums_u8, uint8_t, "ldrb", "1")

#else
#if !MCC_SCALAR_MLA
#define MCC_SCALAR_PRODUCT(I, J)                                                                                       \
    factor = w[4 * (I) + (J)];                                                                                         \
    a##J += lower * factor;                                                                                            \
    b##J += upper * factor;
#define MCC_SCALAR_STEP(I)                                                                                             \
    lower = patch[2 * (I)];                                                                                            \
    upper = patch[2 * (I) + 1];                                                                                        \
    MCC_SCALAR_PRODUCT(I, 0) MCC_SCALAR_PRODUCT(I, 1) MCC_SCALAR_PRODUCT(I, 2) MCC_SCALAR_PRODUCT(I, 3)
/* Four channels of both lanes; sums of the first channel are given, and are those of all channels to begin with. */
MCC_SCALAR_APART mcc_scalar_sums2x4(const uint8_t *w, const uint16_t *patch, int32_t *sums, int32_t steps)
{
    const uint16_t *const end = patch + 2 * steps;
    uint32_t a0 = (uint32_t)sums[0], a1 = a0, a2 = a0, a3 = a0;
    uint32_t b0 = (uint32_t)sums[4], b1 = b0, b2 = b0, b3 = b0;
    uint32_t lower, upper, factor;
    while (patch < end) {
        MCC_SCALAR_STEP(0) MCC_SCALAR_STEP(1)
        w += 8;
        patch += 4;
    }
    sums[0] = (int32_t)a0;
    sums[1] = (int32_t)a1;
    sums[2] = (int32_t)a2;
    sums[3] = (int32_t)a3;
    sums[4] = (int32_t)b0;
    sums[5] = (int32_t)b1;
    sums[6] = (int32_t)b2;
    sums[7] = (int32_t)b3;
}
#endif

#define MCC_SCALAR_TERMS(I, STEP)                                                                                      \
    element = (uint32_t)(int32_t)x[(I) * (STEP)];                                                                      \
    a0 += element * w[4 * (I)];                                                                                        \
    a1 += element * w[4 * (I) + 1];                                                                                    \
    a2 += element * w[4 * (I) + 2];                                                                                    \
    a3 += element * w[4 * (I) + 3];
#define MCC_SCALAR_SUMS1X4(NAME, C, STEP)                                                                              \
    MCC_SCALAR_APART NAME(const uint8_t *w, const C *x, int32_t *sums, int32_t steps)                                  \
    {                                                                                                                  \
        const C *const end = x + (STEP) * steps;                                                                       \
        uint32_t a0 = (uint32_t)sums[0], a1 = a0, a2 = a0, a3 = a0, element;                                           \
        while (x < end) {                                                                                              \
            MCC_SCALAR_TERMS(0, STEP) MCC_SCALAR_TERMS(1, STEP) MCC_SCALAR_TERMS(2, STEP) MCC_SCALAR_TERMS(3, STEP)    \
            w += 16;                                                                                                   \
            x += 4 * (STEP);                                                                                           \
        }                                                                                                              \
        sums[0] = (int32_t)a0;                                                                                         \
        sums[1] = (int32_t)a1;                                                                                         \
        sums[2] = (int32_t)a2;                                                                                         \
        sums[3] = (int32_t)a3;                                                                                         \
    }
MCC_SCALAR_SUMS1X4(mcc_scalar_sums1x4, uint16_t, 2)
MCC_SCALAR_SUMS1X4(mcc_scalar_row_sums_i8, int8_t, 1)
MCC_SCALAR_SUMS1X4(mcc_scalar_row_sums_u8, uint8_t, 1)

#endif

#define MCC_SCALAR_DOT(NAME, C, ROUND, NUMBERS)                                                                        \
    MCC_SCALAR_CALLED void NAME(const int8_t *w, const uint16_t *patch, const mcc_scalar_lane *lanes, C *y,            \
                                const mcc_scalar_result *t, mcc_index positions)                                       \
    {                                                                                                                  \
        const uint8_t *own = (const uint8_t *)w;                                                                       \
        const int32_t *table = t->table;                                                                               \
        const int32_t stride = positions > 1 ? t->stride : 0;                                                          \
        mcc_scalar_rounding r = {4, t->shift, 1, 3, 1};                                                                \
        for (int32_t left = t->channels; left > 0; left -= 4) {                                                        \
            int32_t sums[8];                                                                                           \
            sums[0] = (int32_t)(0u - 128u * lanes[0].total);                                                           \
            sums[4] = (int32_t)(0u - 128u * lanes[1].total);                                                           \
            if (left < 4) r.reach = left;                                                                              \
            if (positions > 1) {                                                                                       \
                mcc_scalar_sums2x4(own, patch, sums, t->steps);                                                        \
            } else {                                                                                                   \
                mcc_scalar_sums1x4(own, patch, sums, t->steps);                                                        \
                sums[5] = sums[6] = sums[7] = 0;                                                                       \
            }                                                                                                          \
            ROUND(y, sums, table, &r, stride);                                                                         \
            own += 4 * t->steps;                                                                                       \
            table += 4 * (NUMBERS);                                                                                    \
            y += 4;                                                                                                    \
        }                                                                                                              \
    }
MCC_SCALAR_DOT(mcc_scalar_dot2x4_i8, int8_t, mcc_scalar_long2x4_i8, 3)
MCC_SCALAR_DOT(mcc_scalar_dot2x4_u8, uint8_t, mcc_scalar_long2x4_u8, 3)
MCC_SCALAR_DOT(mcc_scalar_dot2x4_i32, int32_t, mcc_scalar_long2x4_i32, 1)
MCC_SCALAR_DOT(mcc_scalar_parts2x4_i8, int8_t, mcc_scalar_round2x4_i8, 3)
MCC_SCALAR_DOT(mcc_scalar_parts2x4_u8, uint8_t, mcc_scalar_round2x4_u8, 3)

#define MCC_SCALAR_ROW(X, XC, Y, YC, NUMBERS)                                                                          \
    MCC_SCALAR_CALLED void mcc_scalar_row4_##X##_##Y(const int8_t *w, const XC *x, mcc_index inputs, YC *y,            \
                                                     const mcc_scalar_result *t)                                       \
    {                                                                                                                  \
        const uint8_t *own = (const uint8_t *)w;                                                                       \
        const int32_t *table = t->table;                                                                               \
        mcc_scalar_rounding r = {4, t->shift, 1, 3, 1};                                                                \
        uint32_t total = 0;                                                                                            \
        for (mcc_index i = 0; i < inputs; ++i) {                                                                       \
            const int32_t one = x[i];                                                                                  \
            total += (uint32_t)one;                                                                                    \
        }                                                                                                              \
        for (int32_t left = t->channels; left > 0; left -= 4) {                                                        \
            int32_t sums[4];                                                                                           \
            sums[0] = (int32_t)(0u - 128u * total);                                                                    \
            if (left < 4) r.reach = left;                                                                              \
            mcc_scalar_row_sums_##X(own, x, sums, t->steps);                                                           \
            mcc_scalar_long_##Y(y, sums, table, &r);                                                                   \
            own += 4 * t->steps;                                                                                       \
            table += 4 * (NUMBERS);                                                                                    \
            y += 4;                                                                                                    \
        }                                                                                                              \
    }
MCC_SCALAR_ROW(i8, int8_t, i8, int8_t, 3)
MCC_SCALAR_ROW(i8, int8_t, u8, uint8_t, 3)
MCC_SCALAR_ROW(u8, uint8_t, i8, int8_t, 3)
MCC_SCALAR_ROW(u8, uint8_t, u8, uint8_t, 3)
MCC_SCALAR_ROW(i8, int8_t, i32, int32_t, 1)
MCC_SCALAR_ROW(u8, uint8_t, i32, int32_t, 1)

#endif /* MCC_SCALAR_H */
