/* mcc_scalar_taps.h - sums of each channel for itself over taps that lie anywhere, in the words of mcc_scalar.h:
 *
 *     mcc_scalar_taps_i8(sums, taps, w, c, count)    four channels from c on (u8 too); gives where weights go on
 *
 * Taps point to their first channels. Weights are four words that sums begin with, and four bytes of each tap.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SCALAR_TAPS_H
#define MCC_SCALAR_TAPS_H

#include "mcc_scalar.h"
#include "mcc_taps.h"

#if MCC_SCALAR_ASM
/* r0 weights less c, r1 taps, r2 elements of a tap, r3 an element, r4 a weight and its product, r5-r7 c, c + 1 and
 * c + 2; sums in r8-r11, end of taps in r12; on the stack where sums go, and c. */
#define MCC_SCALAR_TAP(LOAD, PLACE, SUM)                                                                               \
    LOAD " r3, [r2, " PLACE "]\n"                                                                                      \
    "ldrsb r4, [r0, " PLACE "]\n"                                                                                      \
    "muls r4, r3\n"                                                                                                    \
    "add " SUM ", r4\n"
#define MCC_SCALAR_TAPS(T, C, LOAD)                                                                                    \
    static __attribute__((naked, noinline, unused)) const int8_t *mcc_scalar_taps_##T(                                 \
        int32_t *sums MCC_SCALAR_UNUSED, const C *const *taps MCC_SCALAR_UNUSED, const int8_t *w MCC_SCALAR_UNUSED,    \
        mcc_index c MCC_SCALAR_UNUSED, mcc_index count MCC_SCALAR_UNUSED)                                              \
    {                                                                                                                  \
        __asm__ volatile(MCC_SCALAR_SAVE                                                                               \
                         "push {r0, r3}\n"                                                                             \
                         "mov r0, r2\n"                                                                                \
                         "mov r5, r3\n"                                                                                \
                         "ldmia r0!, {r2, r3, r4, r6}\n"                                                               \
                         "mov r8, r2\n"                                                                                \
                         "mov r9, r3\n"                                                                                \
                         "mov r10, r4\n"                                                                               \
                         "mov r11, r6\n"                                                                               \
                         "ldr r2, [sp, #44]\n"                                                                         \
                         "lsls r2, r2, #2\n"                                                                           \
                         "adds r2, r2, r1\n"                                                                           \
                         "mov r12, r2\n"                                                                               \
                         "subs r0, r0, r5\n"                                                                           \
                         "adds r6, r5, #1\n"                                                                           \
                         "adds r7, r5, #2\n"                                                                           \
                         "1: ldmia r1!, {r2}\n"                                                                        \
                         MCC_SCALAR_TAP(LOAD, "r5", "r8")                                                              \
                         MCC_SCALAR_TAP(LOAD, "r6", "r9")                                                              \
                         MCC_SCALAR_TAP(LOAD, "r7", "r10")                                                             \
                         "adds r2, #1\n"                                                                               \
                         "adds r0, #1\n"                                                                               \
                         MCC_SCALAR_TAP(LOAD, "r7", "r11")                                                             \
                         "adds r0, #3\n"                                                                               \
                         "cmp r1, r12\n"                                                                               \
                         "bne 1b\n"                                                                                    \
                         "adds r0, r0, r5\n"                                                                           \
                         "pop {r2, r3}\n"                                                                              \
                         "mov r4, r8\n"                                                                                \
                         "mov r5, r9\n"                                                                                \
                         "mov r6, r10\n"                                                                               \
                         "mov r7, r11\n"                                                                               \
                         "stmia r2!, {r4, r5, r6, r7}\n"                                                               \
                         MCC_SCALAR_RESTORE);                                                                          \
    }
MCC_SCALAR_TAPS(i8, int8_t, "ldrsb")
MCC_SCALAR_TAPS(u8, uint8_t, "ldrb")
#else
#define MCC_SCALAR_TAP(I) s##I += (uint32_t)((int32_t)x[I] * weights[4 * i + (I)]);
#define MCC_SCALAR_TAPS(T, C)                                                                                          \
    MCC_SCALAR_CALLED const int8_t *mcc_scalar_taps_##T(int32_t *sums, const C *const *taps, const int8_t *w,          \
                                                        mcc_index c, mcc_index count)                                  \
    {                                                                                                                  \
        const int32_t *const first = (const int32_t *)(const void *)w;                                                 \
        const int8_t *const weights = w + 16;                                                                          \
        uint32_t s0 = (uint32_t)first[0], s1 = (uint32_t)first[1], s2 = (uint32_t)first[2], s3 = (uint32_t)first[3];   \
        for (mcc_index i = 0; i < count; ++i) {                                                                        \
            const C *const x = taps[i] + c;                                                                            \
            MCC_SCALAR_TAP(0) MCC_SCALAR_TAP(1) MCC_SCALAR_TAP(2) MCC_SCALAR_TAP(3)                                    \
        }                                                                                                              \
        sums[0] = (int32_t)s0;                                                                                         \
        sums[1] = (int32_t)s1;                                                                                         \
        sums[2] = (int32_t)s2;                                                                                         \
        sums[3] = (int32_t)s3;                                                                                         \
        return weights + 4 * count;                                                                                    \
    }
MCC_SCALAR_TAPS(i8, int8_t)
MCC_SCALAR_TAPS(u8, uint8_t)
#endif

#endif /* MCC_SCALAR_TAPS_H */
