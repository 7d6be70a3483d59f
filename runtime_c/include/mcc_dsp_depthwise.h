/* mcc_dsp_depthwise.h - 3x3 convolutions of each channel for itself, in the words of mcc_dsp.h:
 *
 *     mcc_dsp_pairs_i8(a, b, plane, ...)            two rows of four channels, as pairs of elements one above the other
 *     mcc_dsp_beside(t, rows, cells, ...)           zeros on both sides of an image, in all rows of a band
 *     mcc_dsp_again(t, plane, cells, last)          the last pairs of a band of rows as the first ones of the next
 *     mcc_dsp_depthwise1_i8_S(t, y, w, numbers, p)  one channel of a band; stride 1
 *     mcc_dsp_depthwise2_i8_S(t, y, w, numbers, p)  stride 2
 *     mcc_dsp_nibblewise1_i8_S, 2_i8_S              the same with weights of 4 bits
 *
 * A band is rows of cells, for each of four channels on a plane of its own. A cell is two pairs: of rows 2i and 2i + 1,
 * and of rows 2i + 2 and 2i + 3. That is all that a column of the window needs for two rows of results, which take 12
 * multiplications of pairs. Weights of a channel are 3 words, one per column of the window, with bytes (0, 1, 1, 2);
 * those of 4 bits are 3 halfwords, plus 8. S is the shift of the results, or `raised` and the shift of sums that are
 * raised first; the numbers of a channel are bias, (raise,) multiplier, addend.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_DEPTHWISE_H
#define MCC_DSP_DEPTHWISE_H

#include "mcc_dsp.h"

typedef struct mcc_dsp_band {
    int32_t pixel;   /* from one result to the next in a row */
    int32_t row;     /* from row to row of the results */
    int32_t columns; /* results in a row: at least 2 */
    int32_t rows;    /* pairs of rows of results for stride 1, rows for stride 2 */
    int32_t odd;     /* one more row after the pairs? For stride 1 */
    int32_t cells;   /* in a row of the band */
} mcc_dsp_band;

/* Pairs go to the first half of the cells from `a` on and to the second half of those from `b` on. Steps lead from
 * column to column; a row of nothing but zero points is one word and steps of 0. */
#define MCC_DSP_PAIRS(T, C)                                                                                            \
    MCC_INLINE void mcc_dsp_pairs_##T(uint32_t *a, uint32_t *b, mcc_index plane, const C *upper, mcc_index upper_step, \
                                      const C *lower, mcc_index lower_step, mcc_index columns, uint32_t zero)          \
    {                                                                                                                  \
        for (mcc_index x = 0; x < columns; ++x) {                                                                      \
            const uint32_t u = mcc_dsp_load(upper), v = mcc_dsp_load(lower);                                           \
            const uint32_t u02 = mcc_dsp_even_##T(zero, u), v02 = mcc_dsp_even_##T(zero, v);                           \
            const uint32_t u13 = mcc_dsp_odd_##T(zero, u), v13 = mcc_dsp_odd_##T(zero, v);                             \
            a[0] = b[0] = mcc_dsp_lows(u02, v02);                                                                      \
            a[plane] = b[plane] = mcc_dsp_lows(u13, v13);                                                              \
            a[2 * plane] = b[2 * plane] = mcc_dsp_highs(u02, v02);                                                     \
            a[3 * plane] = b[3 * plane] = mcc_dsp_highs(u13, v13);                                                     \
            upper += upper_step;                                                                                       \
            lower += lower_step;                                                                                       \
            a += 2;                                                                                                    \
            b += 2;                                                                                                    \
        }                                                                                                              \
    }
MCC_DSP_PAIRS(i8, int8_t)
MCC_DSP_PAIRS(u8, uint8_t)

MCC_INLINE void mcc_dsp_beside(uint32_t *t, mcc_index rows, mcc_index cells, mcc_index first, mcc_index columns)
{
    for (mcc_index x = 0; x < cells - columns; ++x) {
        uint32_t *cell = t + 2 * (x < first ? x : x + columns);
        for (mcc_index row = 0; row < rows; ++row) {
            cell[0] = 0;
            cell[1] = 0;
            cell += 2 * cells;
        }
    }
}

MCC_INLINE void mcc_dsp_again(uint32_t *t, mcc_index plane, mcc_index cells, mcc_index last)
{
    for (mcc_index channel = 0; channel < 4; ++channel) {
        for (mcc_index x = 0; x < cells; ++x) t[channel * plane + 2 * x] = t[channel * plane + last + 2 * x + 1];
    }
}

#if MCC_DSP_ASM
/* One column of the window, from the cell in r2 r3 and weights (0, 1) and (1, 2), added to the results of two rows. */
#define MCC_DSP_COLUMN(P, Q, W01, W12)                                                                                 \
    "smlad " P ", r2, " W01 ", " P "\n"                                                                                \
    "smlatb " Q ", r2, " W01 ", " Q "\n"                                                                               \
    "smlabt " P ", r3, " W12 ", " P "\n"                                                                               \
    "smlad " Q ", r3, " W12 ", " Q "\n"
#define MCC_DSP_FIRST_COLUMN(P, Q, BIAS)                                                                               \
    "smlatb " Q ", r2, r4, " BIAS "\n"                                                                                 \
    "smlad " P ", r2, r4, " BIAS "\n"                                                                                  \
    "smlabt " P ", r3, r5, " P "\n"                                                                                    \
    "smlad " Q ", r3, r5, " Q "\n"
#define MCC_DSP_WEIGHTS                                                                                                \
    "ldr r5, [r2, #0]\n"                                                                                               \
    "sxtb16 r4, r5\n"                                                                                                  \
    "sxtb16 r5, r5, ror #8\n"                                                                                          \
    "ldr r7, [r2, #4]\n"                                                                                               \
    "sxtb16 r6, r7\n"                                                                                                  \
    "sxtb16 r7, r7, ror #8\n"                                                                                          \
    "ldr r9, [r2, #8]\n"                                                                                               \
    "sxtb16 r8, r9\n"                                                                                                  \
    "sxtb16 r9, r9, ror #8\n"
#define MCC_DSP_NIBBLES_OF_COLUMN(FIRST, SECOND, AT)                                                                   \
    "ldrh " SECOND ", [r2, #" AT "]\n"                                                                                 \
    "orr " FIRST ", " SECOND ", " SECOND ", lsl #12\n"                                                                 \
    "and " SECOND ", r10, " FIRST ", lsr #8\n"                                                                         \
    "and " FIRST ", r10, " FIRST "\n"                                                                                  \
    "ssub16 " FIRST ", " FIRST ", r11\n"                                                                               \
    "ssub16 " SECOND ", " SECOND ", r11\n"
#define MCC_DSP_NIBBLE_WEIGHTS                                                                                         \
    "mov r10, #0x000f000f\n"                                                                                           \
    "mov r11, #0x00080008\n"                                                                                           \
    MCC_DSP_NIBBLES_OF_COLUMN("r4", "r5", "0")                                                                         \
    MCC_DSP_NIBBLES_OF_COLUMN("r6", "r7", "2")                                                                         \
    MCC_DSP_NIBBLES_OF_COLUMN("r8", "r9", "4")

#define MCC_DSP_TIMES(R) "mul " #R ", " #R ", r2\n"

/* The odd row, in code of its own where size does not count: else it is two rows, of which the upper one is written
 * over the lower one. */
#if defined(__OPTIMIZE_SIZE__)
#define MCC_DSP_ODD_ROW(S, RAISE, SATURATE)                                                                            \
    "mov r2, #0\n"                                                                                                     \
    "str r2, [sp, #44]\n"                                                                                              \
    "str r2, [sp, #12]\n"                                                                                              \
    "ldrd r2, r3, [sp, #32]\n"                                                                                         \
    "ldr r12, [sp, #24]\n"                                                                                             \
    "add r3, r3, r2\n"                                                                                                 \
    "add r3, r3, r12\n"                                                                                                \
    "ldr r12, [sp, #40]\n"                                                                                             \
    "add r3, r3, r12, lsl #3\n"                                                                                        \
    "str r3, [sp, #36]\n"                                                                                              \
    "b.w 1b\n"
#else
/* One column for the upper row alone, added to a register `FROM`. */
#define MCC_DSP_UPPER_COLUMN(P, W01, W12, FROM)                                                                        \
    "smlad " P ", r2, " W01 ", " FROM "\n" "smlabt " P ", r3, " W12 ", " P "\n"
#define MCC_DSP_ODD_ROW(S, RAISE, SATURATE)                                                                            \
    "ldr r11, [sp, #20]\n"                                                                                             \
    "ldr lr, [sp, #8]\n"                                                                                               \
    "7: ldrd r2, r3, [r0], #8\n"                                                                                       \
    MCC_DSP_UPPER_COLUMN("r10", "r4", "r5", "r11")                                                                     \
    "ldrd r2, r3, [r0], #8\n"                                                                                          \
    MCC_DSP_UPPER_COLUMN("r12", "r4", "r5", "r11")                                                                     \
    MCC_DSP_UPPER_COLUMN("r10", "r6", "r7", "r10")                                                                     \
    "ldrd r2, r3, [r0]\n"                                                                                              \
    MCC_DSP_UPPER_COLUMN("r10", "r8", "r9", "r10")                                                                     \
    MCC_DSP_UPPER_COLUMN("r12", "r6", "r7", "r12")                                                                     \
    "ldrd r2, r3, [r0, #8]\n"                                                                                          \
    MCC_DSP_UPPER_COLUMN("r12", "r8", "r9", "r12")                                                                     \
    RAISE("ldr r2, [sp, #48]\n" MCC_DSP_TIMES(r10) MCC_DSP_TIMES(r12))                                                 \
    "ldrd r2, r3, [sp]\n"                                                                                              \
    MCC_DSP_SCALE(r10, r2, r3) MCC_DSP_SCALE(r12, r2, r3)                                                              \
    MCC_DSP_STORE(r10, S, SATURATE, "[r1]") MCC_DSP_STORE(r12, S, SATURATE, "[r1, lr]")                                \
    "add r1, r1, lr, lsl #1\n"                                                                                         \
    "ldr r2, [sp, #16]\n"                                                                                              \
    "cmp r0, r2\n"                                                                                                     \
    "bne.w 7b\n"                                                                                                       \
    "ldr r2, [sp, #40]\n"                                                                                              \
    "cbz r2, 6f\n"                                                                                                     \
    "ldrd r2, r3, [r0], #8\n"                                                                                          \
    MCC_DSP_UPPER_COLUMN("r10", "r4", "r5", "r11")                                                                     \
    "ldrd r2, r3, [r0]\n"                                                                                              \
    MCC_DSP_UPPER_COLUMN("r10", "r6", "r7", "r10")                                                                     \
    "ldrd r2, r3, [r0, #8]\n"                                                                                          \
    MCC_DSP_UPPER_COLUMN("r10", "r8", "r9", "r10")                                                                     \
    RAISE("ldr r2, [sp, #48]\n" MCC_DSP_TIMES(r10))                                                                    \
    "ldrd r2, r3, [sp]\n"                                                                                              \
    MCC_DSP_SCALE(r10, r2, r3) MCC_DSP_STORE(r10, S, SATURATE, "[r1]")
#endif

/* r0 cell, r1 y, r2 r3 a cell, r4-r9 weights, r10 r11 results of one column, r12 lr of the next; in an odd row r10 and
 * r12 results, r11 bias, lr pixel. Stack: multiplier, addend, pixel, row, end of the pairs of columns, bias, from
 * their last cell and result to those of the next rows, bytes of these pairs, their end behind the last rows, is there
 * an odd column, an odd row, and what raises sums. */
#define MCC_DSP_DEPTHWISE1(NAME, W, WEIGHTS, T, C, N, S, RAISE, SATURATE)                                              \
    static __attribute__((naked, noinline, unused)) void mcc_dsp_##NAME##1_##T##_##N(                                  \
        const uint32_t *t MCC_DSP_UNUSED, C *y MCC_DSP_UNUSED, const W *w MCC_DSP_UNUSED,                              \
        const mcc_dsp_band *p MCC_DSP_UNUSED, const int32_t *numbers MCC_DSP_UNUSED)                                   \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r11, lr}\n"                                                                         \
                 "sub sp, #48\n"                                                                                       \
                 WEIGHTS                                                                                               \
                 "ldr r12, [sp, #84]\n"                                                                                \
                 RAISE("sub sp, #4\n")                                                                                 \
                 "ldr r10, [r12]\n"                                                                                    \
                 "str r10, [sp, #20]\n"                                                                                \
                 RAISE("ldr r10, [r12, #4]!\n" "str r10, [sp, #48]\n")                                                 \
                 "ldrd r10, r11, [r12, #4]\n"                                                                          \
                 "strd r10, r11, [sp]\n"                                                                               \
                 "ldrd r10, r11, [r3]\n"                                                                               \
                 "strd r10, r11, [sp, #8]\n"                                                                           \
                 "ldrd r12, lr, [r3, #8]\n"                                                                            \
                 "bic r2, r12, #1\n"                                                                                   \
                 "mul r10, r10, r2\n"                                                                                  \
                 "rsb r11, r10, r11, lsl #1\n"                                                                         \
                 "lsl r2, r2, #3\n"                                                                                    \
                 "ldr r10, [r3, #20]\n"                                                                                \
                 "mul lr, lr, r10\n"                                                                                   \
                 "add lr, r2, lr, lsl #3\n"                                                                            \
                 "add lr, lr, r0\n"                                                                                    \
                 "strd r2, lr, [sp, #32]\n"                                                                            \
                 "sub r10, r10, r12\n"                                                                                 \
                 "lsl r10, r10, #3\n"                                                                                  \
                 "strd r10, r11, [sp, #24]\n"                                                                          \
                 "and r12, r12, #1\n"                                                                                  \
                 "ldr r3, [r3, #16]\n"                                                                                 \
                 "strd r12, r3, [sp, #40]\n"                                                                           \
                 "add r10, r0, r2\n"                                                                                   \
                 "str r10, [sp, #16]\n"                                                                                \
                 "cmp r10, lr\n"                                                                                       \
                 "beq.w 5f\n"                                                                                          \
                 "1: ldr r12, [sp, #20]\n"                                                                             \
                 "ldrd r2, r3, [r0], #8\n"                                                                             \
                 MCC_DSP_FIRST_COLUMN("r10", "r11", "r12")                                                             \
                 "ldrd r2, r3, [r0], #8\n"                                                                             \
                 MCC_DSP_FIRST_COLUMN("r12", "lr", "r12")                                                              \
                 MCC_DSP_COLUMN("r10", "r11", "r6", "r7")                                                              \
                 "ldrd r2, r3, [r0]\n"                                                                                 \
                 MCC_DSP_COLUMN("r10", "r11", "r8", "r9")                                                              \
                 MCC_DSP_COLUMN("r12", "lr", "r6", "r7")                                                               \
                 "ldrd r2, r3, [r0, #8]\n"                                                                             \
                 MCC_DSP_COLUMN("r12", "lr", "r8", "r9")                                                               \
                 RAISE("ldr r2, [sp, #48]\n" MCC_DSP_TIMES(r10) MCC_DSP_TIMES(r11) MCC_DSP_TIMES(r12)                  \
                       MCC_DSP_TIMES(lr))                                                                              \
                 "ldrd r2, r3, [sp]\n"                                                                                 \
                 MCC_DSP_SCALE(r10, r2, r3) MCC_DSP_SCALE(r11, r2, r3) MCC_DSP_SCALE(r12, r2, r3)                      \
                 MCC_DSP_SCALE(lr, r2, r3)                                                                             \
                 "ldrd r2, r3, [sp, #8]\n"                                                                             \
                 MCC_DSP_STORE(r11, S, SATURATE, "[r1, r3]") MCC_DSP_STORE(r10, S, SATURATE, "[r1]")                   \
                 "add r1, r1, r2\n"                                                                                    \
                 MCC_DSP_STORE(lr, S, SATURATE, "[r1, r3]") MCC_DSP_STORE(r12, S, SATURATE, "[r1]")                    \
                 "add r1, r1, r2\n"                                                                                    \
                 "ldr r2, [sp, #16]\n"                                                                                 \
                 "cmp r0, r2\n"                                                                                        \
                 "bne.w 1b\n"                                                                                          \
                 "ldr r2, [sp, #40]\n"                                                                                 \
                 "cbz r2, 4f\n"                                                                                        \
                 "ldr r12, [sp, #20]\n"                                                                                \
                 "ldrd r2, r3, [r0], #8\n"                                                                             \
                 MCC_DSP_FIRST_COLUMN("r10", "r11", "r12")                                                             \
                 "ldrd r2, r3, [r0]\n"                                                                                 \
                 MCC_DSP_COLUMN("r10", "r11", "r6", "r7")                                                              \
                 "ldrd r2, r3, [r0, #8]\n"                                                                             \
                 MCC_DSP_COLUMN("r10", "r11", "r8", "r9")                                                              \
                 RAISE("ldr r2, [sp, #48]\n" MCC_DSP_TIMES(r10) MCC_DSP_TIMES(r11))                                    \
                 "ldrd r2, r3, [sp]\n"                                                                                 \
                 MCC_DSP_SCALE(r10, r2, r3) MCC_DSP_SCALE(r11, r2, r3)                                                 \
                 "ldr r3, [sp, #12]\n"                                                                                 \
                 MCC_DSP_STORE(r11, S, SATURATE, "[r1, r3]") MCC_DSP_STORE(r10, S, SATURATE, "[r1]")                   \
                 "4: ldrd r2, r3, [sp, #24]\n"                                                                         \
                 "add r0, r0, r2\n"                                                                                    \
                 "add r1, r1, r3\n"                                                                                    \
                 "ldrd r2, r3, [sp, #32]\n"                                                                            \
                 "add r12, r0, r2\n"                                                                                   \
                 "str r12, [sp, #16]\n"                                                                                \
                 "cmp r12, r3\n"                                                                                       \
                 "bne.w 1b\n"                                                                                          \
                 "5: ldr r2, [sp, #44]\n"                                                                              \
                 "cmp r2, #0\n"                                                                                        \
                 "beq.w 6f\n"                                                                                          \
                 MCC_DSP_ODD_ROW(S, RAISE, SATURATE)                                                                   \
                 "6: add sp, #48\n"                                                                                    \
                 RAISE("add sp, #4\n")                                                                                 \
                 "pop {r4-r11, pc}\n");                                                                                \
    }

/* r0 cell, r1 y, r2 r3 a cell, r4-r9 weights, r10 result, r11 bias, r12 pixel, lr end of the row. On the stack:
 * multiplier, addend, next y, row, bytes from the last cell to the next row, bytes of a row of cells, the last end, and
 * what raises sums. */
#define MCC_DSP_DEPTHWISE2(NAME, W, WEIGHTS, T, C, N, S, RAISE, SATURATE)                                              \
    static __attribute__((naked, noinline, unused)) void mcc_dsp_##NAME##2_##T##_##N(                                  \
        const uint32_t *t MCC_DSP_UNUSED, C *y MCC_DSP_UNUSED, const W *w MCC_DSP_UNUSED,                              \
        const mcc_dsp_band *p MCC_DSP_UNUSED, const int32_t *numbers MCC_DSP_UNUSED)                                   \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r11, lr}\n"                                                                         \
                 "sub sp, #28\n"                                                                                       \
                 WEIGHTS                                                                                               \
                 "ldr r12, [sp, #64]\n"                                                                                \
                 RAISE("sub sp, #4\n")                                                                                 \
                 "ldr r11, [r12]\n"                                                                                    \
                 RAISE("ldr r10, [r12, #4]!\n" "str r10, [sp, #28]\n")                                                 \
                 "ldrd r10, r12, [r12, #4]\n"                                                                          \
                 "strd r10, r12, [sp]\n"                                                                               \
                 "ldrd r12, r10, [r3]\n"                                                                               \
                 "add r2, r1, r10\n"                                                                                   \
                 "strd r2, r10, [sp, #8]\n"                                                                            \
                 "ldrd r2, r10, [r3, #8]\n"                                                                            \
                 "ldr r3, [r3, #20]\n"                                                                                 \
                 "lsl r3, r3, #3\n"                                                                                    \
                 "add lr, r0, r2, lsl #4\n"                                                                            \
                 "sub r2, r3, r2, lsl #4\n"                                                                            \
                 "strd r2, r3, [sp, #16]\n"                                                                            \
                 "mla r2, r10, r3, lr\n"                                                                               \
                 "str r2, [sp, #24]\n"                                                                                 \
                 "1: ldrd r2, r3, [r0], #8\n"                                                                          \
                 "smlad r10, r2, r4, r11\n"                                                                            \
                 "smlabt r10, r3, r5, r10\n"                                                                           \
                 "ldrd r2, r3, [r0], #8\n"                                                                             \
                 "smlad r10, r2, r6, r10\n"                                                                            \
                 "smlabt r10, r3, r7, r10\n"                                                                           \
                 "ldrd r2, r3, [r0]\n"                                                                                 \
                 "smlad r10, r2, r8, r10\n"                                                                            \
                 "smlabt r10, r3, r9, r10\n"                                                                           \
                 RAISE("ldr r2, [sp, #28]\n" MCC_DSP_TIMES(r10))                                                       \
                 "ldrd r2, r3, [sp]\n"                                                                                 \
                 MCC_DSP_SCALE(r10, r2, r3) MCC_DSP_STORE(r10, S, SATURATE, "[r1]")                                    \
                 "add r1, r1, r12\n"                                                                                   \
                 "cmp r0, lr\n"                                                                                        \
                 "bne.w 1b\n"                                                                                          \
                 "ldrd r2, r3, [sp, #16]\n"                                                                            \
                 "add r0, r0, r2\n"                                                                                    \
                 "add lr, lr, r3\n"                                                                                    \
                 "ldrd r1, r2, [sp, #8]\n"                                                                             \
                 "add r2, r2, r1\n"                                                                                    \
                 "str r2, [sp, #8]\n"                                                                                  \
                 "ldr r2, [sp, #24]\n"                                                                                 \
                 "cmp lr, r2\n"                                                                                        \
                 "bne.w 1b\n"                                                                                          \
                 "add sp, #28\n"                                                                                       \
                 RAISE("add sp, #4\n")                                                                                 \
                 "pop {r4-r11, pc}\n");                                                                                \
    }
#define MCC_DSP_STRIDES(NAME, W, WEIGHTS, T, C, N, S, RAISE, SATURATE)                                                 \
    MCC_DSP_DEPTHWISE1(NAME, W, WEIGHTS, T, C, N, S, RAISE, SATURATE)                                                  \
    MCC_DSP_DEPTHWISE2(NAME, W, WEIGHTS, T, C, N, S, RAISE, SATURATE)
#define MCC_DSP_DEPTHWISE(N, S, RAISE)                                                                                 \
    MCC_DSP_STRIDES(depthwise, int8_t, MCC_DSP_WEIGHTS, i8, int8_t, N, S, RAISE, MCC_DSP_SATURATE_I8)                  \
    MCC_DSP_STRIDES(depthwise, int8_t, MCC_DSP_WEIGHTS, u8, uint8_t, N, S, RAISE, MCC_DSP_SATURATE_U8)                 \
    MCC_DSP_STRIDES(nibblewise, uint8_t, MCC_DSP_NIBBLE_WEIGHTS, i8, int8_t, N, S, RAISE, MCC_DSP_SATURATE_I8)         \
    MCC_DSP_STRIDES(nibblewise, uint8_t, MCC_DSP_NIBBLE_WEIGHTS, u8, uint8_t, N, S, RAISE, MCC_DSP_SATURATE_U8)

#else
/* A result of the upper (0) or lower (1) of the rows whose window begins at a cell. */
MCC_INLINE int32_t mcc_dsp_window(const uint32_t *cell, int lower, const int8_t *w, const int32_t *numbers, int rows,
                                  int shift)
{
    int32_t sum = numbers[0];
    for (mcc_index k = 0; k < 3; ++k, cell += 2, w += 4) {
        const uint32_t first = lower ? cell[0] >> 16 | cell[1] << 16 : cell[0], last = lower ? cell[1] >> 16 : cell[1];
        sum = mcc_dsp_smlad(mcc_dsp_smlad(sum, first, w[0], w[1]), last, w[3], 0);
    }
    return mcc_dsp_rounded(rows > 3 ? mcc_mul_i32(sum, numbers[1]) : sum, numbers + rows - 2, shift);
}

MCC_INLINE void mcc_dsp_own_nibbles(int8_t *own, const uint8_t *w)
{
    for (mcc_index i = 0; i < 12; ++i) own[i] = (int8_t)((w[i / 2] >> (i % 2 * 4) & 15) - 8);
}

#define MCC_DSP_FROM_NIBBLES(STRIDE, T, C, N)                                                                          \
    MCC_INLINE void mcc_dsp_nibblewise##STRIDE##_##T##_##N(const uint32_t *t, C *y, const uint8_t *w,                  \
                                                           const mcc_dsp_band *p, const int32_t *numbers)              \
    {                                                                                                                  \
        int8_t own[12];                                                                                                \
        mcc_dsp_own_nibbles(own, w);                                                                                   \
        mcc_dsp_depthwise##STRIDE##_##T##_##N(t, y, own, p, numbers);                                                  \
    }
#define MCC_DSP_DEPTHWISE_OF(T, C, N, S, ROWS)                                                                         \
    MCC_INLINE void mcc_dsp_depthwise1_##T##_##N(const uint32_t *t, C *y, const int8_t *w, const mcc_dsp_band *p,      \
                                                 const int32_t *numbers)                                               \
    {                                                                                                                  \
        for (mcc_index row = 0; row < 2 * p->rows + p->odd; ++row) {                                                   \
            for (mcc_index x = 0; x < p->columns; ++x) {                                                               \
                const uint32_t *const cell = t + (row / 2 * p->cells + x) * 2;                                         \
                const int32_t found = mcc_dsp_window(cell, (int)(row % 2), w, numbers, ROWS, S);                       \
                y[row * p->row + x * p->pixel] = (C)mcc_saturate_##T(found);                                           \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_INLINE void mcc_dsp_depthwise2_##T##_##N(const uint32_t *t, C *y, const int8_t *w, const mcc_dsp_band *p,      \
                                                 const int32_t *numbers)                                               \
    {                                                                                                                  \
        for (mcc_index row = 0; row < p->rows; ++row) {                                                                \
            for (mcc_index x = 0; x < p->columns; ++x) {                                                               \
                const uint32_t *const cell = t + (row * p->cells + 2 * x) * 2;                                         \
                const int32_t found = mcc_dsp_window(cell, 0, w, numbers, ROWS, S);                                    \
                y[row * p->row + x * p->pixel] = (C)mcc_saturate_##T(found);                                           \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_DSP_FROM_NIBBLES(1, T, C, N)                                                                                   \
    MCC_DSP_FROM_NIBBLES(2, T, C, N)
#define MCC_DSP_DEPTHWISE(N, S, ROWS)                                                                                  \
    MCC_DSP_DEPTHWISE_OF(i8, int8_t, N, S, ROWS)                                                                       \
    MCC_DSP_DEPTHWISE_OF(u8, uint8_t, N, S, ROWS)
#endif

MCC_DSP_ROUNDINGS(MCC_DSP_DEPTHWISE)

#endif /* MCC_DSP_DEPTHWISE_H */
