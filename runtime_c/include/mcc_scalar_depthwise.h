/* mcc_scalar_depthwise.h - 3x3 convolutions of each channel for itself, in the words of mcc_scalar.h:
 *
 *     mcc_scalar_columns_i8(columns)    sums of windows over a channel of three rows, as it lies (u8 too)
 *
 * mcc_scalar_round_i8 makes results of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SCALAR_DEPTHWISE_H
#define MCC_SCALAR_DEPTHWISE_H

#include "mcc_scalar.h"

/* A channel of three rows, each element of which is multiplied with the three weights of its row. */
typedef struct mcc_scalar_columns {
    int32_t weights[9]; /* row by row; zeros for a row outside of the image */
    int32_t less;       /* is added to each element: the zero point, negated */
    int32_t step;       /* from column to column */
    int32_t end;        /* number of columns times step */
    const void *rows[3];
    int32_t *sums; /* around the column before the first one, around each column, and around that behind the last */
} mcc_scalar_columns;

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
#define MCC_SCALAR_COLUMNS(T, LOAD)                                                                                    \
    MCC_SCALAR_NAKED mcc_scalar_columns_##T(const mcc_scalar_columns *columns MCC_SCALAR_UNUSED)                       \
    {                                                                                                                  \
        __asm__ volatile(MCC_SCALAR_SAVE                                                                               \
                         "sub sp, #36\n"                                                                               \
                         "mov r4, sp\n"                                                                                \
                         "ldmia r0!, {r1, r2, r3}\n"                                                                   \
                         "stmia r4!, {r1, r2, r3}\n"                                                                   \
                         "ldmia r0!, {r1, r2, r3}\n"                                                                   \
                         "stmia r4!, {r1, r2, r3}\n"                                                                   \
                         "ldmia r0!, {r1, r2, r3}\n"                                                                   \
                         "stmia r4!, {r1, r2, r3}\n"                                                                   \
                         "ldmia r0!, {r1, r2, r3}\n"                                                                   \
                         "mov r12, r1\n"                                                                               \
                         "mov r10, r2\n"                                                                               \
                         "mov r11, r3\n"                                                                               \
                         "ldr r7, [r0, #12]\n"                                                                         \
                         "ldmia r0, {r0, r1, r2}\n"                                                                    \
                         "movs r3, #0\n"                                                                               \
                         "movs r6, #0\n"                                                                               \
                         "mov r8, r3\n"                                                                                \
                         "1:\n"                                                                                        \
                         MCC_SCALAR_CELL(LOAD, "r0", "0", "4", "8", "mov")                                             \
                         MCC_SCALAR_CELL(LOAD, "r1", "12", "16", "20", "add")                                          \
                         MCC_SCALAR_CELL(LOAD, "r2", "24", "28", "32", "add")                                          \
                         "stmia r7!, {r6}\n"                                                                           \
                         "mov r6, r8\n"                                                                                \
                         "mov r8, r9\n"                                                                                \
                         "add r3, r10\n"                                                                               \
                         "cmp r3, r11\n"                                                                               \
                         "bne 1b\n"                                                                                    \
                         "mov r5, r8\n"                                                                                \
                         "str r6, [r7]\n"                                                                              \
                         "str r5, [r7, #4]\n"                                                                          \
                         "add sp, #36\n"                                                                               \
                         MCC_SCALAR_RESTORE);                                                                          \
    }
MCC_SCALAR_COLUMNS(i8, "ldrsb")
MCC_SCALAR_COLUMNS(u8, "ldrb")
#else
#define MCC_SCALAR_CELL(K)                                                                                             \
    element = x##K[i] + columns->less;                                                                                 \
    before += element * w[3 * (K) + 2];                                                                                \
    here += element * w[3 * (K) + 1];                                                                                  \
    next += element * w[3 * (K)];
#define MCC_SCALAR_COLUMNS(T, C)                                                                                       \
    MCC_SCALAR_APART mcc_scalar_columns_##T(const mcc_scalar_columns *columns)                                         \
    {                                                                                                                  \
        const C *const x0 = (const C *)columns->rows[0], *const x1 = (const C *)columns->rows[1];                      \
        const C *const x2 = (const C *)columns->rows[2];                                                               \
        const int32_t *const w = columns->weights;                                                                     \
        int32_t *sums = columns->sums, before = 0, here = 0;                                                           \
        for (int32_t i = 0; i < columns->end; i += columns->step) {                                                    \
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
#endif

#endif /* MCC_SCALAR_DEPTHWISE_H */
