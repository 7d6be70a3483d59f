/* mcc_scalar_mla.h - the sums of a patch for cores that multiply and add in one instruction, such as Cortex-M3:
 *
 *     mcc_scalar_sums2x4(w, patch, sums, steps)    four channels of both lanes (mcc_scalar.h)
 *
 * Eight sums, a weight and a pair of elements fill the registers, so that compilers would spill.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SCALAR_MLA_H
#define MCC_SCALAR_MLA_H

#include "mcc.h"

#if defined(__GNUC__) && defined(__thumb2__) && !defined(MCC_SCALAR_PORTABLE)
#define MCC_SCALAR_MLA 1
/* r0 weights, r1 patch, r2 and r3 a pair of elements, r12 a weight; sums in r4-r11, end of patch in lr. */
#define MCC_MLA_PRODUCT(W, A, B)                                                                                       \
    "ldrb r12, [r0, #" W "]\n"                                                                                         \
    "mla " A ", r12, r2, " A "\n"                                                                                      \
    "mla " B ", r12, r3, " B "\n"
#define MCC_MLA_STEP(X, NEXT, W0, W1, W2, W3)                                                                          \
    "ldrh r2, [r1, #" X "]\n"                                                                                          \
    "ldrh r3, [r1, #" NEXT "]\n" MCC_MLA_PRODUCT(W0, "r4", "r8") MCC_MLA_PRODUCT(W1, "r5", "r9")                       \
        MCC_MLA_PRODUCT(W2, "r6", "r10") MCC_MLA_PRODUCT(W3, "r7", "r11")
static __attribute__((naked, noinline, unused)) void mcc_scalar_sums2x4(const uint8_t *w __attribute__((unused)),
                                                                        const uint16_t *patch __attribute__((unused)),
                                                                        int32_t *sums __attribute__((unused)),
                                                                        int32_t steps __attribute__((unused)))
{
    __asm__ volatile(".syntax unified\n"
                     "push {r2, r4-r11, lr}\n"
                     "add lr, r1, r3, lsl #2\n"
                     "ldr r4, [r2]\n"
                     "ldr r8, [r2, #16]\n"
                     "mov r5, r4\n"
                     "mov r6, r4\n"
                     "mov r7, r4\n"
                     "mov r9, r8\n"
                     "mov r10, r8\n"
                     "mov r11, r8\n"
                     "1:\n" MCC_MLA_STEP("0", "2", "0", "1", "2", "3")
                     MCC_MLA_STEP("4", "6", "4", "5", "6", "7")
                     MCC_MLA_STEP("8", "10", "8", "9", "10", "11")
                     MCC_MLA_STEP("12", "14", "12", "13", "14", "15")
                     "adds r0, #16\n"
                     "adds r1, #16\n"
                     "cmp r1, lr\n"
                     "bne 1b\n"
                     "pop {r2}\n"
                     "stmia r2, {r4-r11}\n"
                     "pop {r4-r11, pc}\n");
}
#else
#define MCC_SCALAR_MLA 0
#endif

#endif /* MCC_SCALAR_MLA_H */
