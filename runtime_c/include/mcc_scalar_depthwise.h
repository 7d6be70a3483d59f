/* mcc_scalar_depthwise.h - 3x3 convolutions of each channel for itself, in the words of mcc_scalar.h:
 *
 *     mcc_scalar_depthwise_round_i8_i8(d)    rows of results whose windows have the same rows inside of the image (u8
 *                                            too, for elements and for results)
 *     mcc_scalar_depthwise_long_i8_i8(d)     the same where the table has no numbers of two parts
 *
 * Each channel goes from row to row with its weights, widened once. Every element of three rows is multiplied with the
 * three weights of its row, which gives the sums around all columns; results are made of these row by row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SCALAR_DEPTHWISE_H
#define MCC_SCALAR_DEPTHWISE_H

#include "mcc_scalar.h"

/* Offsets and steps in elements. */
typedef struct mcc_scalar_depthwise {
    const int8_t *w; /* nine of each channel, row by row */
    const int32_t *table;
    const void *rows[3]; /* around the first row of results */
    int32_t there[3];    /* all bits for a row inside of the image, none outside */
    void *y;
    int32_t *sums; /* around the column before the first one, around each column, and around that behind the last */
    int32_t *first;
    int32_t *last; /* behind the sums that results are made of */
    int32_t channels;
    int32_t height; /* rows of results */
    int32_t x_row;  /* from the windows of a row of results to those of the next */
    int32_t y_row;
    int32_t step; /* from column to column */
    int32_t end;  /* number of columns times step */
    int32_t less; /* is added to each element: the zero point, negated */
    int32_t sums_step;
    int32_t y_step;
    int32_t shift;
} mcc_scalar_depthwise;

#if MCC_SCALAR_ASM
/* r0-r2 rows, r3 place in them, r4 an element, r5 a product, r7 sums; sums that are being made: r6 of the column
 * before, r8 of this one, r9 of the next; r10 step, r11 end, r12 what is added to elements; weights on the stack. */
#define MCC_SCALAR_CELL(LOAD, ROW, W0, W1, W2, NEXT)                                                                   \
    LOAD " r4, [" ROW ", r3]\n"                                                                                        \
    "add r4, r12\n"                                                                                                    \
    "ldr r5, [sp, #" W2 "]\n"                                                                                          \
    "muls r5, r4\n"                                                                                                    \
    "add r6, r5\n"                                                                                                     \
    "ldr r5, [sp, #" W1 "]\n"                                                                                          \
    "muls r5, r4\n"                                                                                                    \
    "add r8, r5\n"                                                                                                     \
    "ldr r5, [sp, #" W0 "]\n"                                                                                          \
    "muls r5, r4\n" NEXT " r9, r5\n"
/* r0 weights, r1 where it says which rows there are, r2 where words go. */
#define MCC_SCALAR_THREE(THERE)                                                                                        \
    "ldrb r5, [r0]\n"                                                                                                  \
    "ldrb r6, [r0, #1]\n"                                                                                              \
    "ldrb r7, [r0, #2]\n"                                                                                              \
    "ldr r4, [r1, #" THERE "]\n"                                                                                       \
    "sxtb r5, r5\n"                                                                                                    \
    "sxtb r6, r6\n"                                                                                                    \
    "sxtb r7, r7\n"                                                                                                    \
    "ands r5, r4\n"                                                                                                    \
    "ands r6, r4\n"                                                                                                    \
    "ands r7, r4\n"                                                                                                    \
    "stmia r2!, {r5, r6, r7}\n"                                                                                        \
    "adds r0, #3\n"
/* r0 a sum, r5 sums, r6 from a sum to the next, r7 y; r9 end of the sums, lr from a result to the next. */
#define MCC_SCALAR_SHORT_ROW(INTO)                                                                                     \
    "cmp r4, #0\n"                                                                                                     \
    "bge 6f\n"                                                                                                         \
    "4: ldr r0, [r5]\n"                                                                                                \
    "adds r5, r5, r6\n" MCC_SCALAR_PARTS INTO("5") "5: strb r1, [r7]\n"                                                \
    "add r7, lr\n"                                                                                                     \
    "cmp r5, r9\n"                                                                                                     \
    "bne 4b\n"                                                                                                         \
    "b 8f\n"
#define MCC_SCALAR_NO_SHORT_ROW(INTO) ""
/* On the stack behind the weights: 36 rows, 48 addend, low, shift and -m, 64 y, 68 rows that are left; 72 d,
 * 76 weights, 80 table, 84 number of the channel. */
#define MCC_SCALAR_DEPTHWISE(NAME, LOAD, INTO, SHORT)                                                                  \
    MCC_SCALAR_NAKED NAME(const mcc_scalar_depthwise *d MCC_SCALAR_UNUSED)                                             \
    {                                                                                                                  \
        __asm__ volatile(                                                                                              \
            MCC_SCALAR_SAVE                                                                                            \
            "sub sp, #88\n"                                                                                            \
            "str r0, [sp, #72]\n"                                                                                      \
            "ldr r1, [r0]\n"                                                                                           \
            "str r1, [sp, #76]\n"                                                                                      \
            "ldr r1, [r0, #4]\n"                                                                                       \
            "str r1, [sp, #80]\n"                                                                                      \
            "movs r1, #0\n"                                                                                            \
            "str r1, [sp, #84]\n"                                                                                      \
            "adds r0, #64\n"                                                                                           \
            "ldmia r0!, {r1, r2, r3}\n"                                                                                \
            "mov r10, r1\n"                                                                                            \
            "mov r11, r2\n"                                                                                            \
            "mov r12, r3\n"                                                                                            \
            "ldr r1, [r0, #4]\n"                                                                                       \
            "mov lr, r1\n"                                                                                             \
            "1: ldr r0, [sp, #76]\n"                                                                                   \
            "ldr r1, [sp, #72]\n"                                                                                      \
            "mov r2, sp\n"                                                                                             \
            MCC_SCALAR_THREE("20") MCC_SCALAR_THREE("24") MCC_SCALAR_THREE("28")                                       \
            "str r0, [sp, #76]\n"                                                                                      \
            "ldr r3, [sp, #84]\n"                                                                                      \
            "ldr r4, [r1, #8]\n"                                                                                       \
            "ldr r5, [r1, #12]\n"                                                                                      \
            "ldr r6, [r1, #16]\n"                                                                                      \
            "adds r4, r4, r3\n"                                                                                        \
            "adds r5, r5, r3\n"                                                                                        \
            "adds r6, r6, r3\n"                                                                                        \
            "stmia r2!, {r4, r5, r6}\n"                                                                                \
            "ldr r0, [sp, #80]\n"                                                                                      \
            "ldmia r0!, {r4, r5, r6}\n"                                                                                \
            "str r0, [sp, #80]\n"                                                                                      \
            "asrs r7, r5, #16\n"                                                                                       \
            "sxth r5, r5\n"                                                                                            \
            "stmia r2!, {r4, r5, r6, r7}\n"                                                                            \
            "ldr r4, [r1, #32]\n"                                                                                      \
            "ldr r5, [r1, #52]\n"                                                                                      \
            "adds r4, r4, r3\n"                                                                                        \
            "stmia r2!, {r4, r5}\n"                                                                                    \
            "2: add r3, sp, #36\n"                                                                                     \
            "ldmia r3!, {r0, r1, r2}\n"                                                                                \
            "ldr r7, [sp, #72]\n"                                                                                      \
            "ldr r7, [r7, #36]\n"                                                                                      \
            "movs r3, #0\n"                                                                                            \
            "movs r6, #0\n"                                                                                            \
            "mov r8, r3\n"                                                                                             \
            "3:\n"                                                                                                     \
            MCC_SCALAR_CELL(LOAD, "r0", "0", "4", "8", "mov")                                                          \
            MCC_SCALAR_CELL(LOAD, "r1", "12", "16", "20", "add")                                                       \
            MCC_SCALAR_CELL(LOAD, "r2", "24", "28", "32", "add")                                                       \
            "stmia r7!, {r6}\n"                                                                                        \
            "mov r6, r8\n"                                                                                             \
            "mov r8, r9\n"                                                                                             \
            "add r3, r10\n"                                                                                            \
            "cmp r3, r11\n"                                                                                            \
            "bne 3b\n"                                                                                                 \
            "mov r5, r8\n"                                                                                             \
            "str r6, [r7]\n"                                                                                           \
            "str r5, [r7, #4]\n"                                                                                       \
            "ldr r7, [sp, #72]\n"                                                                                      \
            "ldr r4, [r7, #56]\n"                                                                                      \
            "adds r0, r0, r4\n"                                                                                        \
            "adds r1, r1, r4\n"                                                                                        \
            "adds r2, r2, r4\n"                                                                                        \
            "add r3, sp, #36\n"                                                                                        \
            "stmia r3!, {r0, r1, r2}\n"                                                                                \
            "ldmia r3, {r1, r2, r3, r4}\n"                                                                             \
            "mov r8, r1\n"                                                                                             \
            "ldr r5, [r7, #40]\n"                                                                                      \
            "ldr r0, [r7, #44]\n"                                                                                      \
            "mov r9, r0\n"                                                                                             \
            "ldr r6, [r7, #76]\n"                                                                                      \
            "lsls r6, r6, #2\n"                                                                                        \
            "ldr r1, [r7, #60]\n"                                                                                      \
            "ldr r0, [sp, #64]\n"                                                                                      \
            "adds r1, r1, r0\n"                                                                                        \
            "str r1, [sp, #64]\n"                                                                                      \
            "mov r1, r7\n"                                                                                             \
            "mov r7, r0\n"                                                                                             \
            SHORT(INTO)                                                                                                \
            "6: ldr r1, [r1, #84]\n"                                                                                   \
            "mov r8, r1\n"                                                                                             \
            "str r6, [sp, #56]\n"                                                                                      \
            "ldr r6, [sp, #80]\n"                                                                                      \
            "subs r6, #12\n"                                                                                           \
            "7: ldr r0, [r5]\n"                                                                                        \
            "ldr r4, [sp, #56]\n"                                                                                      \
            "adds r5, r5, r4\n"                                                                                        \
            MCC_SCALAR_WHOLE INTO("5") "5: strb r1, [r7]\n"                                                            \
            "add r7, lr\n"                                                                                             \
            "cmp r5, r9\n"                                                                                             \
            "bne 7b\n"                                                                                                 \
            "8: ldr r0, [sp, #68]\n"                                                                                   \
            "subs r0, #1\n"                                                                                            \
            "str r0, [sp, #68]\n"                                                                                      \
            "beq 9f\n"                                                                                                 \
            "b 2b\n"                                                                                                   \
            "9: ldr r0, [sp, #84]\n"                                                                                   \
            "adds r0, #1\n"                                                                                            \
            "str r0, [sp, #84]\n"                                                                                      \
            "ldr r1, [sp, #72]\n"                                                                                      \
            "ldr r1, [r1, #48]\n"                                                                                      \
            "cmp r0, r1\n"                                                                                             \
            "beq 9f\n"                                                                                                 \
            "b 1b\n"                                                                                                   \
            "9: add sp, #88\n"                                                                                         \
            MCC_SCALAR_RESTORE);                                                                                       \
    }
#define MCC_SCALAR_DEPTHWISE_OF(T, LOAD, Y, INTO)                                                                      \
    MCC_SCALAR_DEPTHWISE(mcc_scalar_depthwise_long_##T##_##Y, LOAD, INTO, MCC_SCALAR_NO_SHORT_ROW)                     \
    MCC_SCALAR_DEPTHWISE(mcc_scalar_depthwise_round_##T##_##Y, LOAD, INTO, MCC_SCALAR_SHORT_ROW)
MCC_SCALAR_DEPTHWISE_OF(i8, "ldrsb", i8, MCC_SCALAR_INTO_I8)
MCC_SCALAR_DEPTHWISE_OF(i8, "ldrsb", u8, MCC_SCALAR_INTO_U8)
MCC_SCALAR_DEPTHWISE_OF(u8, "ldrb", i8, MCC_SCALAR_INTO_I8)
MCC_SCALAR_DEPTHWISE_OF(u8, "ldrb", u8, MCC_SCALAR_INTO_U8)
#else
#define MCC_SCALAR_CELL(K)                                                                                             \
    element = x##K[i] + less;                                                                                          \
    before += element * w[3 * (K) + 2];                                                                                \
    here += element * w[3 * (K) + 1];                                                                                  \
    next += element * w[3 * (K)];
#define MCC_SCALAR_COLUMNS(T, C)                                                                                       \
    MCC_INLINE void mcc_scalar_columns_##T(const mcc_scalar_depthwise *d, const int32_t *w, mcc_index from)            \
    {                                                                                                                  \
        const C *const x0 = (const C *)d->rows[0] + from, *const x1 = (const C *)d->rows[1] + from;                    \
        const C *const x2 = (const C *)d->rows[2] + from;                                                              \
        const int32_t step = d->step, end = d->end, less = d->less;                                                    \
        int32_t *sums = d->sums, before = 0, here = 0;                                                                 \
        for (int32_t i = 0; i < end; i += step) {                                                                      \
            int32_t next = 0, element;                                                                                 \
            MCC_SCALAR_CELL(0) MCC_SCALAR_CELL(1) MCC_SCALAR_CELL(2)                                                   \
            *sums++ = before;                                                                                          \
            before = here;                                                                                             \
            here = next;                                                                                               \
        }                                                                                                              \
        sums[0] = before;                                                                                              \
        sums[1] = here;                                                                                                \
    }
MCC_SCALAR_COLUMNS(i8, int8_t)
MCC_SCALAR_COLUMNS(u8, uint8_t)
#define MCC_SCALAR_THREE(K)                                                                                            \
    own[3 * (K)] & d->there[K], own[3 * (K) + 1] & d->there[K], own[3 * (K) + 2] & d->there[K]
#define MCC_SCALAR_OVER_ROWS(T, C)                                                                                     \
    for (int32_t c = 0; c < d->channels; ++c) {                                                                        \
        const int8_t *const own = d->w + 9 * c;                                                                        \
        const int32_t *const table = d->table + 3 * c;                                                                 \
        const int32_t w[9] = {MCC_SCALAR_THREE(0), MCC_SCALAR_THREE(1), MCC_SCALAR_THREE(2)};                          \
        for (int32_t row = 0; row < d->height; ++row) {                                                                \
            C *const y = (C *)d->y + (mcc_index)row * d->y_row + c;                                                    \
            mcc_scalar_columns_##T(d, w, (mcc_index)row * d->x_row + c);
#define MCC_SCALAR_BEHIND_ROWS                                                                                         \
        }                                                                                                              \
    }
#define MCC_SCALAR_DEPTHWISE(T, Y, C)                                                                                  \
    MCC_INLINE void mcc_scalar_row_##T##_##Y(const mcc_scalar_depthwise *d, C *y, const int32_t *table)                \
    {                                                                                                                  \
        const int32_t bias = table[0], multiplier = table[1], addend = table[2], shift = d->shift;                     \
        const int32_t sums_step = d->sums_step, y_step = d->y_step;                                                    \
        const int32_t *const last = d->last;                                                                           \
        for (const int32_t *sums = d->first; sums < last; sums += sums_step) {                                         \
            const int32_t large = mcc_high_sum(addend, mcc_add_i32(*sums, bias), multiplier);                          \
            *y = (C)mcc_saturate_##Y(mcc_shr_i32(large, shift));                                                       \
            y += y_step;                                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_SCALAR_APART mcc_scalar_depthwise_long_##T##_##Y(const mcc_scalar_depthwise *d)                                \
    {                                                                                                                  \
        MCC_SCALAR_OVER_ROWS(T, C) mcc_scalar_row_##T##_##Y(d, y, table);                                              \
        MCC_SCALAR_BEHIND_ROWS                                                                                         \
    }                                                                                                                  \
    MCC_SCALAR_APART mcc_scalar_depthwise_round_##T##_##Y(const mcc_scalar_depthwise *d)                               \
    {                                                                                                                  \
        const mcc_scalar_rounding r = {(int32_t)(d->last - d->first), d->shift, d->sums_step, 0, d->y_step};           \
        MCC_SCALAR_OVER_ROWS(T, C)                                                                                     \
        if (table[1] < 0) mcc_scalar_short_##Y(y, d->first, table, &r);                                                \
        else mcc_scalar_row_##T##_##Y(d, y, table);                                                                    \
        MCC_SCALAR_BEHIND_ROWS                                                                                         \
    }
MCC_SCALAR_DEPTHWISE(i8, i8, int8_t)
MCC_SCALAR_DEPTHWISE(i8, u8, uint8_t)
MCC_SCALAR_DEPTHWISE(u8, i8, int8_t)
MCC_SCALAR_DEPTHWISE(u8, u8, uint8_t)
#endif

#endif /* MCC_SCALAR_DEPTHWISE_H */
