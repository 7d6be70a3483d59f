/* mcc_scalar_wide.h - sums of products of 8-bit integers for cores that multiply 32 bits, once at a time, with weights
 * that lie two to a word:
 *
 *     mcc_scalar_words_i8(to, x, n)            n elements of x to a patch (u8 too); gives where the next ones go
 *     mcc_scalar_no_words(to, z, n)            n times the same
 *     mcc_scalar_wide_i8(w, patch, y, t)       a position of a patch x all channels, four at a time (u8 too)
 *
 * The weights of two channels, negated, are the halves of a word: n0 + (n1 << 16). A patch has words of one position:
 * -1 - x of i8, 127 - x of u8. One multiplication gives two products. These are between -16384 and 16256, so two steps
 * of a sum fit 16 bits, and with
 *
 *     a = sum(pair)    b = sum((pair + 32768) >> 16)
 *
 * over pairs of steps b is the sum of the upper channel, a - (b << 16) that of the lower one, modulo 2^32. That patches
 * hold x plus constants, negated, is in the biases.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SCALAR_WIDE_H
#define MCC_SCALAR_WIDE_H

#include "mcc_scalar.h"

#define MCC_SCALAR_WORDS(T, C, TOP)                                                                                    \
    MCC_SCALAR_CALLED int32_t *mcc_scalar_words_##T(int32_t *to, const C *x, mcc_index n)                              \
    {                                                                                                                  \
        for (; n >= 4; n -= 4) {                                                                                       \
            to[0] = (TOP)-x[0];                                                                                        \
            to[1] = (TOP)-x[1];                                                                                        \
            to[2] = (TOP)-x[2];                                                                                        \
            to[3] = (TOP)-x[3];                                                                                        \
            to += 4;                                                                                                   \
            x += 4;                                                                                                    \
        }                                                                                                              \
        for (; n > 0; --n) *to++ = (TOP) - *x++;                                                                       \
        return to;                                                                                                     \
    }
MCC_SCALAR_WORDS(i8, int8_t, -1)
MCC_SCALAR_WORDS(u8, uint8_t, 127)

MCC_SCALAR_CALLED int32_t *mcc_scalar_no_words(int32_t *to, int32_t zero, mcc_index n)
{
    for (mcc_index i = 0; i < n; ++i) to[i] = zero;
    return to + n;
}

#if MCC_SCALAR_ASM
/* r0 weights, r1 patch, r2-r5 words of weights and what is made of them, r6 and r7 elements; a in r8 and r9, b in r10
 * and r11; r12 32768, lr end of the patch. On the stack: 0 sums, 16 weights, 20 patch, 24 table, 28 y, 32 channels that
 * are left, 36 shift. */
#define MCC_SCALAR_TWO_STEPS                                                                                           \
    "ldmia r0!, {r2, r3, r4, r5}\n"                                                                                    \
    "ldmia r1!, {r6, r7}\n"                                                                                            \
    "muls r2, r6\n"                                                                                                    \
    "muls r3, r6\n"                                                                                                    \
    "muls r4, r7\n"                                                                                                    \
    "muls r5, r7\n"                                                                                                    \
    "adds r2, r2, r4\n"                                                                                                \
    "adds r3, r3, r5\n"                                                                                                \
    "add r8, r2\n"                                                                                                     \
    "add r9, r3\n"                                                                                                     \
    "add r2, r12\n"                                                                                                    \
    "add r3, r12\n"                                                                                                    \
    "asrs r2, r2, #16\n"                                                                                               \
    "asrs r3, r3, #16\n"                                                                                               \
    "add r10, r2\n"                                                                                                    \
    "add r11, r3\n"
/* r0 a sum, r6 table, r7 y: a result of two parts. */
#define MCC_SCALAR_ONE(Y, INTO)                                                                                        \
    "ldmia r6!, {r1, r2, r3}\n"                                                                                        \
    "asrs r4, r2, #16\n"                                                                                               \
    "sxth r2, r2\n"                                                                                                    \
    "muls r4, r0\n"                                                                                                    \
    "muls r0, r2\n"                                                                                                    \
    "asrs r0, r0, #12\n"                                                                                               \
    "subs r0, r0, r4\n"                                                                                                \
    "adds r0, r0, r1\n"                                                                                                \
    "asrs r0, r3\n"                                                                                                    \
    INTO("5") "5: strb r1, [r7, #" Y "]\n"
#define MCC_SCALAR_WIDE(T, C, INTO)                                                                                    \
    MCC_SCALAR_NAKED mcc_scalar_wide_##T(const int8_t *w MCC_SCALAR_UNUSED, const int32_t *patch MCC_SCALAR_UNUSED,    \
                                         C *y MCC_SCALAR_UNUSED, const mcc_scalar_result *t MCC_SCALAR_UNUSED)         \
    {                                                                                                                  \
        __asm__ volatile(                                                                                              \
            MCC_SCALAR_SAVE                                                                                            \
            "sub sp, #40\n"                                                                                            \
            "str r0, [sp, #16]\n"                                                                                      \
            "str r1, [sp, #20]\n"                                                                                      \
            "str r2, [sp, #28]\n"                                                                                      \
            "ldr r2, [r3]\n"                                                                                           \
            "str r2, [sp, #24]\n"                                                                                      \
            "ldr r2, [r3, #4]\n"                                                                                       \
            "str r2, [sp, #32]\n"                                                                                      \
            "ldr r2, [r3, #16]\n"                                                                                      \
            "str r2, [sp, #36]\n"                                                                                      \
            "ldr r2, [r3, #8]\n"                                                                                       \
            "lsls r2, r2, #2\n"                                                                                        \
            "adds r2, r2, r1\n"                                                                                        \
            "mov lr, r2\n"                                                                                             \
            "movs r2, #128\n"                                                                                          \
            "lsls r2, r2, #8\n"                                                                                        \
            "mov r12, r2\n"                                                                                            \
            "1: ldr r0, [sp, #16]\n"                                                                                   \
            "ldr r1, [sp, #20]\n"                                                                                      \
            "movs r3, #0\n"                                                                                            \
            "mov r8, r3\n"                                                                                             \
            "mov r9, r3\n"                                                                                             \
            "mov r10, r3\n"                                                                                            \
            "mov r11, r3\n"                                                                                            \
            "2:\n"                                                                                                     \
            MCC_SCALAR_TWO_STEPS MCC_SCALAR_TWO_STEPS                                                                  \
            "cmp r1, lr\n"                                                                                             \
            "bne 2b\n"                                                                                                 \
            "str r0, [sp, #16]\n"                                                                                      \
            "mov r4, r8\n"                                                                                             \
            "mov r5, r10\n"                                                                                            \
            "lsls r3, r5, #16\n"                                                                                       \
            "subs r4, r4, r3\n"                                                                                        \
            "mov r6, r9\n"                                                                                             \
            "mov r7, r11\n"                                                                                            \
            "lsls r3, r7, #16\n"                                                                                       \
            "subs r6, r6, r3\n"                                                                                        \
            "mov r3, sp\n"                                                                                             \
            "stmia r3!, {r4, r5, r6, r7}\n"                                                                            \
            "ldr r6, [sp, #24]\n"                                                                                      \
            "ldr r7, [sp, #28]\n"                                                                                      \
            "ldr r0, [sp, #32]\n"                                                                                      \
            "cmp r0, #4\n"                                                                                             \
            "blt 6f\n"                                                                                                 \
            "ldr r1, [r6, #4]\n"                                                                                       \
            "ldr r2, [r6, #16]\n"                                                                                      \
            "ldr r3, [r6, #28]\n"                                                                                      \
            "ldr r4, [r6, #40]\n"                                                                                      \
            "ands r1, r2\n"                                                                                            \
            "ands r3, r4\n"                                                                                            \
            "ands r1, r3\n"                                                                                            \
            "bpl 7f\n"                                                                                                 \
            "ldr r0, [sp]\n"                                                                                           \
            MCC_SCALAR_ONE("0", INTO)                                                                                  \
            "ldr r0, [sp, #4]\n"                                                                                       \
            MCC_SCALAR_ONE("1", INTO)                                                                                  \
            "ldr r0, [sp, #8]\n"                                                                                       \
            MCC_SCALAR_ONE("2", INTO)                                                                                  \
            "ldr r0, [sp, #12]\n"                                                                                      \
            MCC_SCALAR_ONE("3", INTO)                                                                                  \
            "adds r7, #4\n"                                                                                            \
            "3: str r6, [sp, #24]\n"                                                                                   \
            "str r7, [sp, #28]\n"                                                                                      \
            "ldr r0, [sp, #32]\n"                                                                                      \
            "subs r0, #4\n"                                                                                            \
            "str r0, [sp, #32]\n"                                                                                      \
            "ble 4f\n"                                                                                                 \
            "b 1b\n"                                                                                                   \
            "4: add sp, #40\n"                                                                                         \
            MCC_SCALAR_RESTORE                                                                                         \
            "7: movs r0, #4\n"                                                                                         \
            "6: mov r5, sp\n"                                                                                          \
            "lsls r0, r0, #2\n"                                                                                        \
            "adds r0, r0, r5\n"                                                                                        \
            "mov r9, r0\n"                                                                                             \
            "ldr r0, [sp, #36]\n"                                                                                      \
            "mov r8, r0\n"                                                                                             \
            "8: ldmia r5!, {r0}\n"                                                                                     \
            "ldr r1, [r6, #4]\n"                                                                                       \
            "cmp r1, #0\n"                                                                                             \
            "blt 9f\n"                                                                                                 \
            MCC_SCALAR_WHOLE INTO("5") "5: strb r1, [r7]\n"                                                            \
            "adds r6, #12\n"                                                                                           \
            "b 10f\n"                                                                                                  \
            "9:\n"                                                                                                     \
            MCC_SCALAR_ONE("0", INTO)                                                                                  \
            "10: adds r7, #1\n"                                                                                        \
            "cmp r5, r9\n"                                                                                             \
            "bne 8b\n"                                                                                                 \
            "b 3b\n");                                                                                                 \
    }
MCC_SCALAR_WIDE(i8, int8_t, MCC_SCALAR_INTO_I8)
MCC_SCALAR_WIDE(u8, uint8_t, MCC_SCALAR_INTO_U8)
#else
#define MCC_SCALAR_TWO_STEPS(J)                                                                                        \
    pair = (uint32_t)patch[i] * n[2 * i + (J)] + (uint32_t)patch[i + 1] * n[2 * i + 2 + (J)];                          \
    a##J += pair;                                                                                                      \
    b##J += (uint32_t)mcc_shr_i32((int32_t)(pair + 32768u), 16);
MCC_SCALAR_APART mcc_scalar_wide1x4(const int8_t *w, const int32_t *patch, int32_t *sums, int32_t steps)
{
    const uint32_t *const n = (const uint32_t *)(const void *)w;
    uint32_t a0 = 0, a1 = 0, b0 = 0, b1 = 0, pair;
    for (int32_t i = 0; i < steps; i += 2) {
        MCC_SCALAR_TWO_STEPS(0) MCC_SCALAR_TWO_STEPS(1)
    }
    sums[0] = (int32_t)(a0 - (b0 << 16));
    sums[1] = (int32_t)b0;
    sums[2] = (int32_t)(a1 - (b1 << 16));
    sums[3] = (int32_t)b1;
}

#define MCC_SCALAR_WIDE(T, C)                                                                                          \
    MCC_SCALAR_CALLED void mcc_scalar_wide_##T(const int8_t *w, const int32_t *patch, C *y, const mcc_scalar_result *t)\
    {                                                                                                                  \
        const int32_t *table = t->table;                                                                               \
        const mcc_scalar_rounding r = {1, t->shift, 1, 3, 1};                                                          \
        for (int32_t left = t->channels; left > 0; left -= 4) {                                                        \
            int32_t sums[4];                                                                                           \
            mcc_scalar_wide1x4(w, patch, sums, t->steps);                                                              \
            for (int32_t i = 0; i < 4 && i < left; ++i) {                                                              \
                if (table[3 * i + 1] < 0) y[i] = mcc_scalar_parts_##T(sums[i], table + 3 * i);                         \
                else mcc_scalar_long_##T(y + i, sums + i, table + 3 * i, &r);                                          \
            }                                                                                                          \
            w += 8 * t->steps;                                                                                         \
            table += 12;                                                                                               \
            y += 4;                                                                                                    \
        }                                                                                                              \
    }
MCC_SCALAR_WIDE(i8, int8_t)
MCC_SCALAR_WIDE(u8, uint8_t)
#endif

#endif /* MCC_SCALAR_WIDE_H */
