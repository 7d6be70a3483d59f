/* mcc_scalar_round.h - what kernels of mcc_scalar.h store of their sums:
 *
 *     mcc_scalar_long_i8(y, sums, table, r)                results of some sums (u8 too; i32 adds a number to totals)
 *     mcc_scalar_long2x4_i8(y, sums, table, r, stride)     those of four channels at two positions, stride apart
 *     mcc_scalar_round_i8, mcc_scalar_round2x4_i8          the same where the table may have numbers of two parts
 *
 * The table has three numbers for each channel: bias, multiplier and addend (mcc_quant.h), or, where the second one is
 * negative, numbers of two parts (codegen/int8/two_parts.py):
 *
 *     addend, -m << 16 | low, shift        (sum * m + (sum * low >> 12) + addend) >> shift
 *
 * All of these fit 32 bits, so that cores whose products have no upper half need no more than two of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SCALAR_ROUND_H
#define MCC_SCALAR_ROUND_H

#include "mcc.h"
#include "mcc_quant.h"

#if defined(__GNUC__) && defined(__thumb__) && !defined(__thumb2__) && !defined(MCC_SCALAR_PORTABLE)
#define MCC_SCALAR_ASM 1
#else
#define MCC_SCALAR_ASM 0
#endif
#if MCC_SCALAR_ASM
#define MCC_SCALAR_UNUSED __attribute__((unused))
#define MCC_SCALAR_NAKED static __attribute__((naked, noinline, unused)) void
#endif

/* Loops that keep many sums in registers are functions of their own: there are fewer left beside other code. */
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define MCC_SCALAR_APART static __attribute__((noinline, unused)) void
#else
#define MCC_SCALAR_APART MCC_INLINE void
#endif

/* How some sums become results: steps from one to the next are those of sums, table and y, in elements. */
typedef struct mcc_scalar_rounding {
    int32_t reach; /* of the sums: their number times their step */
    int32_t shift;
    int32_t sums_step;
    int32_t table_step;
    int32_t y_step;
} mcc_scalar_rounding;

#if MCC_SCALAR_ASM
/* The registers that a caller wants back: onto the stack; and from it, which ends the function. */
#define MCC_SCALAR_SAVE                                                                                                \
    ".syntax unified\n"                                                                                                \
    "push {r4-r7, lr}\n"                                                                                               \
    "mov r4, r8\n"                                                                                                     \
    "mov r5, r9\n"                                                                                                     \
    "mov r6, r10\n"                                                                                                    \
    "mov r7, r11\n"                                                                                                    \
    "push {r4-r7}\n"
#define MCC_SCALAR_RESTORE                                                                                             \
    "pop {r4-r7}\n"                                                                                                    \
    "mov r8, r4\n"                                                                                                     \
    "mov r9, r5\n"                                                                                                     \
    "mov r10, r6\n"                                                                                                    \
    "mov r11, r7\n"                                                                                                    \
    "pop {r4-r7, pc}\n"

/* r0 a sum, r6 its three numbers, r8 shift; r1-r4 are lost. The upper half of a product of 32 bits is put together
 * from four products of 16 bits. */
#define MCC_SCALAR_WHOLE                                                                                               \
    "ldr r1, [r6]\n"                                                                                                   \
    "ldr r2, [r6, #4]\n"                                                                                               \
    "adds r0, r0, r1\n"                                                                                                \
    "uxth r1, r0\n"                                                                                                    \
    "asrs r0, r0, #16\n"                                                                                               \
    "asrs r3, r2, #16\n"                                                                                               \
    "uxth r2, r2\n"                                                                                                    \
    "mov r4, r1\n"                                                                                                     \
    "muls r4, r2\n"                                                                                                    \
    "lsrs r4, r4, #16\n"                                                                                               \
    "muls r1, r3\n"                                                                                                    \
    "adds r1, r1, r4\n"                                                                                                \
    "muls r2, r0\n"                                                                                                    \
    "muls r0, r3\n"                                                                                                    \
    "asrs r4, r1, #16\n"                                                                                               \
    "adds r0, r0, r4\n"                                                                                                \
    "uxth r1, r1\n"                                                                                                    \
    "adds r2, r2, r1\n"                                                                                                \
    "asrs r2, r2, #16\n"                                                                                               \
    "adds r0, r0, r2\n"                                                                                                \
    "ldr r4, [r6, #8]\n"                                                                                               \
    "adds r0, r0, r4\n"                                                                                                \
    "mov r4, r8\n"                                                                                                     \
    "asrs r0, r4\n"
/* r5 sums, r6 table, r7 y; r8 shift, r9-r11 steps, r12 end of the sums. */
#define MCC_SCALAR_LONG(T, C, SATURATE)                                                                                \
    MCC_SCALAR_NAKED mcc_scalar_long_##T(C *y MCC_SCALAR_UNUSED, const int32_t *sums MCC_SCALAR_UNUSED,               \
                                          const int32_t *table MCC_SCALAR_UNUSED,                                      \
                                          const mcc_scalar_rounding *r MCC_SCALAR_UNUSED)                              \
    {                                                                                                                  \
        __asm__ volatile(MCC_SCALAR_SAVE                                                                               \
                         "mov r7, r0\n"                                                                                \
                         "mov r5, r1\n"                                                                                \
                         "mov r6, r2\n"                                                                                \
                         "ldmia r3!, {r0, r1, r2, r4}\n"                                                               \
                         "lsls r0, r0, #2\n"                                                                           \
                         "adds r0, r0, r5\n"                                                                           \
                         "mov r12, r0\n"                                                                               \
                         "mov r8, r1\n"                                                                                \
                         "lsls r2, r2, #2\n"                                                                           \
                         "mov r9, r2\n"                                                                                \
                         "lsls r4, r4, #2\n"                                                                           \
                         "mov r10, r4\n"                                                                               \
                         "ldr r4, [r3]\n"                                                                              \
                         "mov r11, r4\n"                                                                               \
                         "1: ldr r0, [r5]\n"                                                                           \
                         "add r5, r9\n"                                                                                \
                         MCC_SCALAR_WHOLE "add r6, r10\n" SATURATE "2: strb r1, [r7]\n"                                \
                         "add r7, r11\n"                                                                               \
                         "cmp r5, r12\n"                                                                               \
                         "bne 1b\n"                                                                                    \
                         MCC_SCALAR_RESTORE);                                                                          \
    }
#define MCC_SCALAR_INTO_I8(END) "sxtb r1, r0\ncmp r1, r0\nbeq " END "f\nasrs r0, r0, #31\nmovs r1, #127\neors r1, r0\n"
#define MCC_SCALAR_INTO_U8(END) "uxtb r1, r0\ncmp r1, r0\nbeq " END "f\nasrs r0, r0, #31\nmvns r1, r0\n"
MCC_SCALAR_LONG(i8, int8_t, MCC_SCALAR_INTO_I8("2"))
MCC_SCALAR_LONG(u8, uint8_t, MCC_SCALAR_INTO_U8("2"))

/* r0 a sum, r1 a product, r2 low, r3 shift, r4 -m, r5 sums, r7 y; r8 addend. */
#define MCC_SCALAR_PARTS                                                                                               \
    "mov r1, r0\n"                                                                                                     \
    "muls r1, r4\n"                                                                                                    \
    "muls r0, r2\n"                                                                                                    \
    "asrs r0, r0, #12\n"                                                                                               \
    "subs r0, r0, r1\n"                                                                                                \
    "add r0, r8\n"                                                                                                     \
    "asrs r0, r3\n"
/* r6 from a sum to the next, r11 from a result to the next, r12 end of the sums. */
#define MCC_SCALAR_SHORT(T, C, INTO)                                                                                   \
    MCC_SCALAR_NAKED mcc_scalar_short_##T(C *y MCC_SCALAR_UNUSED, const int32_t *sums MCC_SCALAR_UNUSED,               \
                                          const int32_t *table MCC_SCALAR_UNUSED,                                      \
                                          const mcc_scalar_rounding *r MCC_SCALAR_UNUSED)                              \
    {                                                                                                                  \
        __asm__ volatile(MCC_SCALAR_SAVE                                                                               \
                         "mov r7, r0\n"                                                                                \
                         "mov r5, r1\n"                                                                                \
                         "ldr r0, [r3]\n"                                                                              \
                         "lsls r0, r0, #2\n"                                                                           \
                         "adds r0, r0, r5\n"                                                                           \
                         "mov r12, r0\n"                                                                               \
                         "ldr r6, [r3, #8]\n"                                                                          \
                         "lsls r6, r6, #2\n"                                                                           \
                         "ldr r0, [r3, #16]\n"                                                                         \
                         "mov r11, r0\n"                                                                               \
                         "ldr r0, [r2]\n"                                                                              \
                         "mov r8, r0\n"                                                                                \
                         "ldr r1, [r2, #4]\n"                                                                          \
                         "ldr r3, [r2, #8]\n"                                                                          \
                         "asrs r4, r1, #16\n"                                                                          \
                         "sxth r2, r1\n"                                                                               \
                         "1: ldr r0, [r5]\n"                                                                           \
                         "adds r5, r5, r6\n" MCC_SCALAR_PARTS INTO("2") "2: strb r1, [r7]\n"                           \
                         "add r7, r11\n"                                                                               \
                         "cmp r5, r12\n"                                                                               \
                         "bne 1b\n"                                                                                    \
                         MCC_SCALAR_RESTORE);                                                                          \
    }
MCC_SCALAR_SHORT(i8, int8_t, MCC_SCALAR_INTO_I8)
MCC_SCALAR_SHORT(u8, uint8_t, MCC_SCALAR_INTO_U8)

/* r6 table; r9 stride. The second position comes first, since the first one may be in its place. */
#define MCC_SCALAR_PAIR(UPPER, LOWER, INTO)                                                                            \
    "ldmia r6!, {r1, r2, r3}\n"                                                                                        \
    "mov r8, r1\n"                                                                                                     \
    "asrs r4, r2, #16\n"                                                                                               \
    "sxth r2, r2\n"                                                                                                    \
    "ldr r0, [r5, #" UPPER "]\n" MCC_SCALAR_PARTS INTO("1") "1: mov r0, r9\n"                                          \
    "strb r1, [r7, r0]\n"                                                                                              \
    "ldr r0, [r5, #" LOWER "]\n" MCC_SCALAR_PARTS INTO("1") "1: strb r1, [r7]\n"                                       \
    "adds r7, #1\n"
#define MCC_SCALAR_SHORT2X4(T, C, INTO)                                                                                \
    MCC_SCALAR_NAKED mcc_scalar_short2x4_##T(C *y MCC_SCALAR_UNUSED, const int32_t *sums MCC_SCALAR_UNUSED,            \
                                             const int32_t *table MCC_SCALAR_UNUSED,                                   \
                                             int32_t stride MCC_SCALAR_UNUSED)                                         \
    {                                                                                                                  \
        __asm__ volatile(".syntax unified\n"                                                                           \
                         "push {r4-r7, lr}\n"                                                                          \
                         "mov r4, r8\n"                                                                                \
                         "mov r5, r9\n"                                                                                \
                         "push {r4, r5}\n"                                                                             \
                         "mov r7, r0\n"                                                                                \
                         "mov r5, r1\n"                                                                                \
                         "mov r6, r2\n"                                                                                \
                         "mov r9, r3\n" MCC_SCALAR_PAIR("16", "0", INTO)                                               \
                         MCC_SCALAR_PAIR("20", "4", INTO) MCC_SCALAR_PAIR("24", "8", INTO)                             \
                         MCC_SCALAR_PAIR("28", "12", INTO) "pop {r4, r5}\n"                                            \
                         "mov r8, r4\n"                                                                                \
                         "mov r9, r5\n"                                                                                \
                         "pop {r4-r7, pc}\n");                                                                         \
    }
MCC_SCALAR_SHORT2X4(i8, int8_t, MCC_SCALAR_INTO_I8)
MCC_SCALAR_SHORT2X4(u8, uint8_t, MCC_SCALAR_INTO_U8)

#else
#define MCC_SCALAR_ROUNDS(T, C)                                                                                        \
    MCC_INLINE void mcc_scalar_long_##T(C *y, const int32_t *sums, const int32_t *table, const mcc_scalar_rounding *r) \
    {                                                                                                                  \
        for (int32_t i = 0; i < r->reach; i += r->sums_step) {                                                         \
            const int32_t large = mcc_high_sum(table[2], mcc_add_i32(sums[i], table[0]), table[1]);                    \
            *y = (C)mcc_saturate_##T(mcc_shr_i32(large, r->shift));                                                    \
            table += r->table_step;                                                                                    \
            y += r->y_step;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_INLINE C mcc_scalar_parts_##T(int32_t sum, const int32_t *table)                                               \
    {                                                                                                                  \
        const uint32_t upper = (uint32_t)sum * (uint32_t)mcc_shr_i32(table[1], 16);                                    \
        const int32_t lower = mcc_shr_i32((int32_t)((uint32_t)sum * (uint32_t)(int16_t)table[1]), 12);                 \
        const uint32_t total = (uint32_t)lower - upper + (uint32_t)table[0];                                           \
        return (C)mcc_saturate_##T(mcc_shr_i32((int32_t)total, table[2] & 31));                                        \
    }                                                                                                                  \
    MCC_INLINE void mcc_scalar_short_##T(C *y, const int32_t *sums, const int32_t *table,                              \
                                         const mcc_scalar_rounding *r)                                                 \
    {                                                                                                                  \
        for (int32_t i = 0; i < r->reach; i += r->sums_step) {                                                         \
            *y = mcc_scalar_parts_##T(sums[i], table);                                                                 \
            y += r->y_step;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_INLINE void mcc_scalar_short2x4_##T(C *y, const int32_t *sums, const int32_t *table, int32_t stride)           \
    {                                                                                                                  \
        for (int32_t i = 0; i < 4; ++i) {                                                                              \
            y[i + stride] = mcc_scalar_parts_##T(sums[i + 4], table + 3 * i);                                          \
            y[i] = mcc_scalar_parts_##T(sums[i], table + 3 * i);                                                       \
        }                                                                                                              \
    }
MCC_SCALAR_ROUNDS(i8, int8_t)
MCC_SCALAR_ROUNDS(u8, uint8_t)
#endif

/* Totals as they are, plus one number per channel. */
MCC_INLINE void mcc_scalar_long_i32(int32_t *y, const int32_t *sums, const int32_t *table,
                                    const mcc_scalar_rounding *r)
{
    for (int32_t i = 0; i < r->reach; ++i) y[i] = mcc_add_i32(sums[i], table[i]);
}

/* A stride of 0: there is only one position. */
#define MCC_SCALAR_LONG2X4(T, C)                                                                                       \
    MCC_INLINE void mcc_scalar_long2x4_##T(C *y, const int32_t *sums, const int32_t *table,                            \
                                           const mcc_scalar_rounding *r, int32_t stride)                               \
    {                                                                                                                  \
        if (stride != 0) mcc_scalar_long_##T(y + stride, sums + 4, table, r);                                          \
        mcc_scalar_long_##T(y, sums, table, r);                                                                        \
    }
MCC_SCALAR_LONG2X4(i8, int8_t)
MCC_SCALAR_LONG2X4(u8, uint8_t)
MCC_SCALAR_LONG2X4(i32, int32_t)

/* Whichever form the numbers have. Those of the second one are of one channel, or of four whose results all count. */
#define MCC_SCALAR_ROUND(T, C)                                                                                         \
    MCC_INLINE void mcc_scalar_round_##T(C *y, const int32_t *sums, const int32_t *table,                              \
                                         const mcc_scalar_rounding *r)                                                 \
    {                                                                                                                  \
        if (table[1] < 0) mcc_scalar_short_##T(y, sums, table, r);                                                     \
        else mcc_scalar_long_##T(y, sums, table, r);                                                                   \
    }                                                                                                                  \
    MCC_INLINE void mcc_scalar_round2x4_##T(C *y, const int32_t *sums, const int32_t *table,                           \
                                            const mcc_scalar_rounding *r, int32_t stride)                              \
    {                                                                                                                  \
        if (table[1] < 0 && r->reach == 4) mcc_scalar_short2x4_##T(y, sums, table, stride);                            \
        else mcc_scalar_long2x4_##T(y, sums, table, r, stride);                                                        \
    }
MCC_SCALAR_ROUND(i8, int8_t)
MCC_SCALAR_ROUND(u8, uint8_t)

#endif /* MCC_SCALAR_ROUND_H */
