/* mcc_dsp_dots.h - sums of products of 8-bit integers, in the words of mcc_dsp.h:
 *
 *     mcc_dsp_dot4x2_i8_S(w, patch, y, t)    4 positions x all channels, two at a time, from a patch with 4 lanes
 *     mcc_dsp_dot1x2_i8_S(w, patch, y, t)    the first of 4 positions x all channels, likewise
 *     mcc_dsp_dot1x4_i8_S(w, patch, y, t)    1 position x all channels, four at a time, from a patch with 1 lane
 *
 * S is the shift of the results (mcc_quant.h), or `raised` and the shift of sums that are raised first; behind `shared`
 * and `packed` it is that of channels with two numbers of their own. Weights stay 8 bits wide and are packed to
 * fit: see codegen/int8/dot.py. Every activation is widened once and then multiplied with all channels, so nothing but
 * two widenings of four weights (one in dot1x4) and multiplications are left in the inner loop.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_DOTS_H
#define MCC_DSP_DOTS_H

#include "mcc_dsp.h"

/* What is made of the sums. The table holds numbers for ShortRescale, channel by channel: for dot4x2 of two channels at
 * a time (bias, bias, multiplier, addend, multiplier, addend), for dot1x4 of four (four biases, then multiplier and
 * addend of each). Where sums are raised, as many factors follow the biases. Where channels have two numbers of their
 * own, biases are followed by multipliers, and all have one addend; in the forms `packed`, sums are raised by two to
 * the power that the multiplier ends with. */
typedef struct mcc_dsp_result {
    const int32_t *table;
    int32_t channels; /* a multiple of 2 or 4 */
    int32_t steps;    /* pairs of elements in a lane: an even number */
    int32_t stride;   /* from the results of one position to those of the next */
    int32_t addend;   /* of all channels */
} mcc_dsp_result;

/* Functions for every short rounding, as MCC_SHORT_ROUNDINGS, and for those of channels with two numbers. */
#define MCC_DSP_ALL_ROUNDINGS(OF)                                                                                      \
    OF(0, 0, plain) MCC_SHORT_ROUNDINGS(OF, plain, raised)                                                             \
    OF(shared0, 0, shared) OF(shared1, 1, shared) OF(shared2, 2, shared) OF(shared3, 3, shared)                        \
    OF(shared4, 4, shared) OF(shared5, 5, shared) OF(shared6, 6, shared) OF(shared7, 7, shared)                        \
    OF(shared8, 8, shared) OF(packed12, 12, packed)

#if MCC_DSP_ASM
/* Steps are unrolled; the first round enters in the middle, so that any number of steps will do. */
#if defined(__OPTIMIZE_SIZE__)
#define MCC_DSP_4X2_UNROLL "2"
#define MCC_DSP_1X4_UNROLL "1"
#else
#define MCC_DSP_4X2_UNROLL "32"
#define MCC_DSP_1X4_UNROLL "4"
#endif

/* Assembly needs no code around it; the operands are in r0 to r3. */
#define MCC_DSP_NAKED(NAME, W, C)                                                                                      \
    static __attribute__((naked, noinline, unused)) void NAME(                                                         \
        const W *w MCC_DSP_UNUSED, const uint32_t *patch MCC_DSP_UNUSED, C *y MCC_DSP_UNUSED,                          \
        const mcc_dsp_result *t MCC_DSP_UNUSED)

/* Bytes of a form of 4x2: its operands go where it finds them again; steps are left out by a jump over so many. */
#define MCC_DSP_BEGIN_4X2                                                                                              \
    "ldrd r4, r5, [r3]\n"                                                                                              \
    "ldrd r6, r7, [r3, #8]\n"                                                                                          \
    "add r5, r5, r2\n"                                                                                                 \
    "add r8, r1, r6, lsl #4\n"                                                                                         \
    "strd r7, r2, [sp]\n"                                                                                              \
    "strd r4, r5, [sp, #8]\n" "str r1, [sp, #16]\n"
#define MCC_DSP_ENTER_4X2(BYTES)                                                                                       \
    "mov r9, #" BYTES "\n"                                                                                             \
    "mul r6, r6, r9\n"                                                                                                 \
    "adr r9, 1f\n"                                                                                                     \
    "add r6, r6, r9\n"                                                                                                 \
    "orr r6, r6, #1\n"                                                                                                 \
    "strd r8, r6, [sp, #20]\n"
#define MCC_DSP_PRODUCTS_4X2                                                                                           \
    "smlad r4, r2, r12, r4\n"                                                                                          \
    "smlad r8, r2, lr, r8\n"                                                                                           \
    "smlad r5, r3, r12, r5\n"                                                                                          \
    "smlad r9, r3, lr, r9\n"                                                                                           \
    "ldrd r2, r3, [r1], #8\n"                                                                                          \
    "smlad r6, r2, r12, r6\n"                                                                                          \
    "smlad r10, r2, lr, r10\n"                                                                                         \
    "smlad r7, r3, r12, r7\n"                                                                                          \
    "smlad r11, r3, lr, r11\n"
/* How sums are rescaled: `MODE` is plain, raised, shared or packed. HOLD puts the addend of all channels on the stack,
 * DROP takes it away; BYTES is what the table has for two channels. */
#define MCC_DSP_HOLD_plain
#define MCC_DSP_HOLD_raised
#define MCC_DSP_HOLD_shared "ldr r4, [r3, #16]\npush {r4}\n"
#define MCC_DSP_HOLD_packed MCC_DSP_HOLD_shared
#define MCC_DSP_DROP_plain
#define MCC_DSP_DROP_raised
#define MCC_DSP_DROP_shared "add sp, #4\n"
#define MCC_DSP_DROP_packed MCC_DSP_DROP_shared
#define MCC_DSP_BYTES_plain "24"
#define MCC_DSP_BYTES_raised "24"
#define MCC_DSP_BYTES_shared "16"
#define MCC_DSP_BYTES_packed "16"
#define MCC_DSP_LIFT(R, FACTOR, POWER)                                                                                 \
    "and " #POWER ", " #FACTOR ", #31\nlsl " #R ", " #R ", " #POWER "\n"
#define MCC_DSP_SCALE_FOUR(A, B, C, D, FACTOR, ADDEND)                                                                 \
    MCC_DSP_SCALE(A, FACTOR, ADDEND) MCC_DSP_SCALE(B, FACTOR, ADDEND) MCC_DSP_SCALE(C, FACTOR, ADDEND)                 \
    MCC_DSP_SCALE(D, FACTOR, ADDEND)
#define MCC_DSP_LIFT_FOUR(A, B, C, D, FACTOR, POWER)                                                                   \
    "and " #POWER ", " #FACTOR ", #31\nlsl " #A ", " #A ", " #POWER "\nlsl " #B ", " #B ", " #POWER "\n"               \
    "lsl " #C ", " #C ", " #POWER "\nlsl " #D ", " #D ", " #POWER "\n"
#define MCC_DSP_SCALED_4X2_plain(AT)                                                                                   \
    "ldrd r3, lr, [r12, #8]\n"                                                                                         \
    MCC_DSP_SCALE_FOUR(r4, r5, r6, r7, r3, lr)                                                                         \
    "ldrd r3, lr, [r12, #16]\n"                                                                                        \
    MCC_DSP_SCALE_FOUR(r8, r9, r10, r11, r3, lr)
#define MCC_DSP_SCALED_4X2_raised(AT) MCC_DSP_RAISE_4X2 MCC_DSP_SCALED_4X2_plain(AT)
#define MCC_DSP_SCALED_4X2_shared(AT)                                                                                  \
    "ldr r3, [r12, #8]\n"                                                                                              \
    "ldr lr, [sp, #" AT "]\n"                                                                                          \
    MCC_DSP_SCALE_FOUR(r4, r5, r6, r7, r3, lr)                                                                         \
    "ldr r3, [r12, #12]\n"                                                                                             \
    MCC_DSP_SCALE_FOUR(r8, r9, r10, r11, r3, lr)
#define MCC_DSP_SCALED_4X2_packed(AT)                                                                                  \
    "ldr r3, [r12, #8]\n"                                                                                              \
    MCC_DSP_LIFT_FOUR(r4, r5, r6, r7, r3, lr)                                                                          \
    "ldr lr, [sp, #" AT "]\n"                                                                                          \
    MCC_DSP_SCALE_FOUR(r4, r5, r6, r7, r3, lr)                                                                         \
    "ldr r3, [r12, #12]\n"                                                                                             \
    MCC_DSP_LIFT_FOUR(r8, r9, r10, r11, r3, lr)                                                                        \
    "ldr lr, [sp, #" AT "]\n"                                                                                          \
    MCC_DSP_SCALE_FOUR(r8, r9, r10, r11, r3, lr)
#define MCC_DSP_RESULTS_4X2(S, MODE, SATURATE, AT)                                                                     \
    MCC_DSP_SCALED_4X2_##MODE(AT)                                                                                      \
    "add r3, r2, r1\n"                                                                                                 \
    MCC_DSP_STORE(r6, S, SATURATE, "[r2, r1, lsl #1]") MCC_DSP_STORE(r4, S, SATURATE, "[r2], #1")                      \
    MCC_DSP_STORE(r7, S, SATURATE, "[r3, r1, lsl #1]") MCC_DSP_STORE(r5, S, SATURATE, "[r3], #1")                      \
    MCC_DSP_STORE(r10, S, SATURATE, "[r2, r1, lsl #1]") MCC_DSP_STORE(r8, S, SATURATE, "[r2], #1")                     \
    MCC_DSP_STORE(r11, S, SATURATE, "[r3, r1, lsl #1]") MCC_DSP_STORE(r9, S, SATURATE, "[r3]")                         \
    "add r12, r12, #" MCC_DSP_BYTES_##MODE "\n"                                                                        \
    "strd r2, r12, [sp, #4]\n"                                                                                         \
    "ldr r3, [sp, #12]\n"                                                                                              \
    "cmp r2, r3\n"                                                                                                     \
    "bne.w 2b\n"
#define MCC_DSP_BEGIN_1X2                                                                                              \
    "ldrd r12, r9, [r3]\n"                                                                                             \
    "ldr r8, [r3, #8]\n"                                                                                               \
    "add r9, r9, r2\n"                                                                                                 \
    "add r8, r1, r8, lsl #4\n"                                                                                         \
    "mov lr, r1\n"
#define MCC_DSP_SCALED_1X2_plain                                                                                       \
    "ldrd r3, r6, [r12, #8]\n"                                                                                         \
    MCC_DSP_SCALE(r4, r3, r6)                                                                                          \
    "ldrd r3, r6, [r12, #16]\n"                                                                                        \
    MCC_DSP_SCALE(r5, r3, r6)
#define MCC_DSP_SCALED_1X2_raised MCC_DSP_RAISE_1X2 MCC_DSP_SCALED_1X2_plain
#define MCC_DSP_SCALED_1X2_shared                                                                                      \
    "ldrd r3, r6, [r12, #8]\n"                                                                                         \
    "ldr r7, [sp]\n"                                                                                                   \
    MCC_DSP_SCALE(r4, r3, r7) MCC_DSP_SCALE(r5, r6, r7)
#define MCC_DSP_SCALED_1X2_packed                                                                                      \
    "ldrd r3, r6, [r12, #8]\n"                                                                                         \
    MCC_DSP_LIFT(r4, r3, r7) MCC_DSP_LIFT(r5, r6, r7)                                                                  \
    "ldr r7, [sp]\n"                                                                                                   \
    MCC_DSP_SCALE(r4, r3, r7) MCC_DSP_SCALE(r5, r6, r7)
#define MCC_DSP_RESULTS_1X2(S, MODE, SATURATE)                                                                         \
    MCC_DSP_SCALED_1X2_##MODE                                                                                          \
    MCC_DSP_STORE(r4, S, SATURATE, "[r2]") MCC_DSP_STORE(r5, S, SATURATE, "[r2, #1]")                                  \
    "add r2, r2, #2\n"                                                                                                 \
    "add r12, r12, #" MCC_DSP_BYTES_##MODE "\n"                                                                        \
    "cmp r2, r9\n"                                                                                                     \
    "bne 2b\n"                                                                                                         \
    MCC_DSP_DROP_##MODE

/* How a FORM reads weights (dot here: a word is two pairs, which are widened), and the bytes of code of a step. */
#define MCC_DSP_READ_4X2_dot "ldr.w r12, [r0], #4\n"
#define MCC_DSP_WIDEN_4X2_dot "sxtb16 lr, r12, ror #8\nsxtb16 r12, r12\n"
#define MCC_DSP_BYTES_4X2_dot "52"
#define MCC_DSP_READ_1X2_dot "ldr r6, [r0], #4\n"
#define MCC_DSP_WIDEN_1X2_dot "sxtb16 r7, r6, ror #8\nsxtb16 r6, r6\n"

/* r4-r7 sums of the first channel, r8-r11 of the second; r0 weights, r1 patch, r2 r3 pairs of two positions, r12 lr
 * pairs of weights. The first step makes sums of biases. On the stack: stride, y, table, end of y, patch, its end,
 * where to enter, the addend of all channels. */
#define MCC_DSP_SUMS4X2(FORM, W, T, C, N, S, MODE, SATURATE)                                                           \
    MCC_DSP_NAKED(mcc_dsp_##FORM##4x2_##T##_##N, W, C)                                                                 \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r11, lr}\n"                                                                         \
                         MCC_DSP_HOLD_##MODE                                                                           \
                         "sub sp, #28\n"                                                                               \
                         MCC_DSP_BEGIN_4X2                                                                             \
                         "rsb r6, r6, #1\n"                                                                            \
                         "and r6, r6, #" MCC_DSP_4X2_UNROLL " - 1\n"                                                   \
                         MCC_DSP_ENTER_4X2(MCC_DSP_BYTES_4X2_##FORM)                                                   \
                         "ldr r12, [sp, #8]\n"                                                                         \
                         "2: ldrd r4, r8, [r12]\n"                                                                     \
                         "ldr r1, [sp, #16]\n"                                                                         \
                         MCC_DSP_READ_4X2_##FORM                                                                       \
                         "ldrd r2, r3, [r1, #8]\n"                                                                     \
                         MCC_DSP_WIDEN_4X2_##FORM                                                                      \
                         "smlad r6, r2, r12, r4\n"                                                                     \
                         "smlad r10, r2, lr, r8\n"                                                                     \
                         "smlad r7, r3, r12, r4\n"                                                                     \
                         "smlad r11, r3, lr, r8\n"                                                                     \
                         "ldrd r2, r3, [r1], #16\n"                                                                    \
                         "smlad r5, r3, r12, r4\n"                                                                     \
                         "smlad r9, r3, lr, r8\n"                                                                      \
                         "smlad r4, r2, r12, r4\n"                                                                     \
                         "smlad r8, r2, lr, r8\n"                                                                      \
                         "ldr pc, [sp, #24]\n"                                                                         \
                         ".balign 4\n"                                                                                 \
                         "1: .rept " MCC_DSP_4X2_UNROLL "\n"                                                           \
                         MCC_DSP_READ_4X2_##FORM                                                                       \
                         "ldrd r2, r3, [r1], #8\n"                                                                     \
                         MCC_DSP_WIDEN_4X2_##FORM                                                                      \
                         MCC_DSP_PRODUCTS_4X2                                                                          \
                         ".endr\n"                                                                                     \
                         "ldr r12, [sp, #20]\n"                                                                        \
                         "cmp r1, r12\n"                                                                               \
                         "bne.w 1b\n"                                                                                  \
                         "ldm sp, {r1, r2, r12}\n"                                                                     \
                         MCC_DSP_RESULTS_4X2(S, MODE, SATURATE, "28")                                                  \
                         "add sp, #28\n" MCC_DSP_DROP_##MODE                                                           \
                         "pop {r4-r11, pc}\n");                                                                        \
    }
#define MCC_DSP_DOT4X2(T, C, N, S, MODE, SATURATE) MCC_DSP_SUMS4X2(dot, int8_t, T, C, N, S, MODE, SATURATE)

/* r4 r5 sums of two channels; r0 weights, r1 patch, r3 pair of elements, r6 r7 pairs of weights, r8 end of the patch,
 * r9 end of y, r12 table, lr patch. */
#define MCC_DSP_SUMS1X2(FORM, W, T, C, N, S, MODE, SATURATE)                                                           \
    MCC_DSP_NAKED(mcc_dsp_##FORM##1x2_##T##_##N, W, C)                                                                 \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r9, lr}\n"                                                                          \
                         MCC_DSP_HOLD_##MODE                                                                           \
                         MCC_DSP_BEGIN_1X2                                                                             \
                         "2: ldrd r4, r5, [r12]\n"                                                                     \
                         "mov r1, lr\n"                                                                                \
                         "1: .rept 2\n"                                                                                \
                         MCC_DSP_READ_1X2_##FORM                                                                       \
                         "ldr r3, [r1], #16\n"                                                                         \
                         MCC_DSP_WIDEN_1X2_##FORM                                                                      \
                         "smlad r4, r3, r6, r4\n"                                                                      \
                         "smlad r5, r3, r7, r5\n"                                                                      \
                         ".endr\n"                                                                                     \
                         "cmp r1, r8\n"                                                                                \
                         "bne 1b\n"                                                                                    \
                         MCC_DSP_RESULTS_1X2(S, MODE, SATURATE)                                                        \
                         "pop {r4-r9, pc}\n");                                                                         \
    }
#define MCC_DSP_DOT1X2(T, C, N, S, MODE, SATURATE) MCC_DSP_SUMS1X2(dot, int8_t, T, C, N, S, MODE, SATURATE)

/* A word of weights holds two channels, the first one plus 128. As it is, it makes sums that are 256 times the second
 * channel's plus the first one's, which r5 and r7 sum up alone; 128 times the sum of the patch is taken away from both
 * beforehand. After at most 256 elements, whose sums are below 2^23, the difference goes to the second channel's sum.
 *
 * r4 and r5, r6 and r7 such sums of two channels each; r0 weights, r1 patch, r2 r3 pairs of elements, r8-r10 and r12
 * words of weights, lr end of these elements. On the stack: y, end of y, patch, where to enter, table, where the first
 * elements end, end of the patch, 128 times its sum, sums of the second and of the fourth channel, the
 * addend of all channels. */
#define MCC_DSP_TWO(X, W, A, B)                                                                                        \
    "uxtb16 r11, " #W "\n"                                                                                             \
    "smlad " #A ", " #X ", " #W ", " #A "\n"                                                                           \
    "smlad " #B ", " #X ", r11, " #B "\n"
#define MCC_DSP_SCALED_1X4_plain                                                                                       \
    "ldrd r2, r3, [r12], #8\n"                                                                                         \
    MCC_DSP_SCALE(r4, r2, r3)                                                                                          \
    "ldrd r2, r3, [r12], #8\n"                                                                                         \
    MCC_DSP_SCALE(r5, r2, r3)                                                                                          \
    "ldrd r2, r3, [r12], #8\n"                                                                                         \
    MCC_DSP_SCALE(r6, r2, r3)                                                                                          \
    "ldrd r2, r3, [r12], #8\n"                                                                                         \
    MCC_DSP_SCALE(r7, r2, r3)
#define MCC_DSP_SCALED_1X4_raised MCC_DSP_RAISE_1X4 MCC_DSP_SCALED_1X4_plain
#define MCC_DSP_SCALED_1X4_shared                                                                                      \
    "ldr r10, [sp, #40]\n"                                                                                             \
    "ldrd r2, r3, [r12], #8\n"                                                                                         \
    MCC_DSP_SCALE(r4, r2, r10) MCC_DSP_SCALE(r5, r3, r10)                                                              \
    "ldrd r2, r3, [r12], #8\n"                                                                                         \
    MCC_DSP_SCALE(r6, r2, r10) MCC_DSP_SCALE(r7, r3, r10)
#define MCC_DSP_SCALED_1X4_packed                                                                                      \
    "ldr r10, [sp, #40]\n"                                                                                             \
    "ldrd r2, r3, [r12], #8\n"                                                                                         \
    MCC_DSP_LIFT(r4, r2, r11) MCC_DSP_LIFT(r5, r3, r11)                                                                \
    MCC_DSP_SCALE(r4, r2, r10) MCC_DSP_SCALE(r5, r3, r10)                                                              \
    "ldrd r2, r3, [r12], #8\n"                                                                                         \
    MCC_DSP_LIFT(r6, r2, r11) MCC_DSP_LIFT(r7, r3, r11)                                                                \
    MCC_DSP_SCALE(r6, r2, r10) MCC_DSP_SCALE(r7, r3, r10)
#define MCC_DSP_DOT1X4(T, C, N, S, MODE, SATURATE)                                                                     \
    MCC_DSP_NAKED(mcc_dsp_dot1x4_##T##_##N, int8_t, C)                                                                 \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r11, lr}\n"                                                                         \
                         MCC_DSP_HOLD_##MODE                                                                           \
                         "sub sp, #40\n"                                                                               \
                         "ldrd r4, r5, [r3]\n"                                                                         \
                         "ldr r6, [r3, #8]\n"                                                                          \
                         "add r5, r5, r2\n"                                                                            \
                         "strd r2, r5, [sp]\n"                                                                         \
                         "add r10, r1, r6, lsl #2\n"                                                                   \
                         "mov r11, #0x00800080\n"                                                                      \
                         "mov r7, #0\n"                                                                                \
                         "mov r12, r1\n"                                                                               \
                         "3: ldrd r8, r9, [r12], #8\n"                                                                 \
                         "smlad r7, r8, r11, r7\n"                                                                     \
                         "smlad r7, r9, r11, r7\n"                                                                     \
                         "cmp r12, r10\n"                                                                              \
                         "bne 3b\n"                                                                                    \
                         "strd r10, r7, [sp, #24]\n"                                                                   \
                         "lsr r6, r6, #1\n"                                                                            \
                         "sub r7, r6, #1\n"                                                                            \
                         "and r7, r7, #63\n"                                                                           \
                         "add r8, r1, r7, lsl #3\n"                                                                    \
                         "add r8, r8, #8\n"                                                                            \
                         "str r8, [sp, #20]\n"                                                                         \
                         "rsb r6, r6, #0\n"                                                                            \
                         "and r6, r6, #" MCC_DSP_1X4_UNROLL " - 1\n"                                                   \
                         "mov r9, #56\n"                                                                               \
                         "mul r6, r6, r9\n"                                                                            \
                         "adr r12, 1f\n"                                                                               \
                         "add r12, r12, r6\n"                                                                          \
                         "orr r12, r12, #1\n"                                                                          \
                         "strd r1, r12, [sp, #8]\n"                                                                    \
                         "str r4, [sp, #16]\n"                                                                         \
                         "2: ldr r12, [sp, #16]\n"                                                                     \
                         "ldmia r12!, {r4-r7}\n"                                                                       \
                         "str r12, [sp, #16]\n"                                                                        \
                         "strd r5, r7, [sp, #32]\n"                                                                    \
                         "ldr r2, [sp, #28]\n"                                                                         \
                         "sub r4, r4, r2\n"                                                                            \
                         "mov r5, r4\n"                                                                                \
                         "sub r6, r6, r2\n"                                                                            \
                         "mov r7, r6\n"                                                                                \
                         "ldr lr, [sp, #20]\n"                                                                         \
                         "ldrd r1, r2, [sp, #8]\n"                                                                     \
                         "bx r2\n"                                                                                     \
                         ".balign 4\n"                                                                                 \
                         "1: .rept " MCC_DSP_1X4_UNROLL "\n"                                                           \
                         "ldrd r2, r3, [r1], #8\n"                                                                     \
                         "ldmia.w r0!, {r8-r10, r12}\n"                                                                \
                         MCC_DSP_TWO(r2, r8, r4, r5) MCC_DSP_TWO(r3, r9, r4, r5)                                       \
                         MCC_DSP_TWO(r2, r10, r6, r7) MCC_DSP_TWO(r3, r12, r6, r7)                                     \
                         ".endr\n"                                                                                     \
                         "cmp r1, lr\n"                                                                                \
                         "bne.w 1b\n"                                                                                  \
                         "ldrd r2, r3, [sp, #32]\n"                                                                    \
                         "sub r4, r4, r5\n"                                                                            \
                         "sub r6, r6, r7\n"                                                                            \
                         "add r2, r2, r4, asr #8\n"                                                                    \
                         "add r3, r3, r6, asr #8\n"                                                                    \
                         "mov r4, r5\n"                                                                                \
                         "mov r6, r7\n"                                                                                \
                         "ldr r8, [sp, #24]\n"                                                                         \
                         "cmp r1, r8\n"                                                                                \
                         "beq 4f\n"                                                                                    \
                         "strd r2, r3, [sp, #32]\n"                                                                    \
                         "add lr, lr, #512\n"                                                                          \
                         "b.w 1b\n"                                                                                    \
                         "4: mov r5, r2\n"                                                                             \
                         "mov r7, r3\n"                                                                                \
                         "ldrd r8, r9, [sp]\n"                                                                         \
                         "ldr r12, [sp, #16]\n"                                                                        \
                         MCC_DSP_SCALED_1X4_##MODE                                                                     \
                         "str r12, [sp, #16]\n"                                                                        \
                         MCC_DSP_STORE(r4, S, SATURATE, "[r8]") MCC_DSP_STORE(r5, S, SATURATE, "[r8, #1]")             \
                         MCC_DSP_STORE(r6, S, SATURATE, "[r8, #2]") MCC_DSP_STORE(r7, S, SATURATE, "[r8, #3]")         \
                         "add r8, r8, #4\n"                                                                            \
                         "str r8, [sp]\n"                                                                              \
                         "cmp r8, r9\n"                                                                                \
                         "bne.w 2b\n"                                                                                  \
                         "add sp, #40\n" MCC_DSP_DROP_##MODE                                                           \
                         "pop {r4-r11, pc}\n");                                                                        \
    }
/* Factors between biases and multipliers, where these are not enough. */
#define MCC_DSP_RAISE_4X2                                                                                              \
    "ldrd r3, lr, [r12, #8]!\nmul r4, r4, r3\nmul r5, r5, r3\nmul r6, r6, r3\nmul r7, r7, r3\n"                        \
    "mul r8, r8, lr\nmul r9, r9, lr\nmul r10, r10, lr\nmul r11, r11, lr\n"
#define MCC_DSP_RAISE_1X2 "ldrd r3, r6, [r12, #8]!\nmul r4, r4, r3\nmul r5, r5, r6\n"
#define MCC_DSP_RAISE_1X4                                                                                              \
    "ldrd r2, r3, [r12], #8\nmul r4, r4, r2\nmul r5, r5, r3\n"                                                         \
    "ldrd r2, r3, [r12], #8\nmul r6, r6, r2\nmul r7, r7, r3\n"
#define MCC_DSP_BOTH(FORM, N, S, MODE)                                                                                 \
    FORM(i8, int8_t, N, S, MODE, MCC_DSP_SATURATE_I8) FORM(u8, uint8_t, N, S, MODE, MCC_DSP_SATURATE_U8)
#define MCC_DSP_DOTS_OF(N, S, MODE)                                                                                    \
    MCC_DSP_BOTH(MCC_DSP_DOT4X2, N, S, MODE)                                                                           \
    MCC_DSP_BOTH(MCC_DSP_DOT1X2, N, S, MODE)                                                                           \
    MCC_DSP_BOTH(MCC_DSP_DOT1X4, N, S, MODE)

#else
/* Numbers that a channel has of its own. */
#define MCC_DSP_ROWS_plain 3
#define MCC_DSP_ROWS_raised 4
#define MCC_DSP_ROWS_shared 2
#define MCC_DSP_ROWS_packed 2
/* One of `lanes` channels that share a part of a table. */
#define MCC_DSP_SCALED_plain(SUM, LANE, LANES, S)                                                                      \
    mcc_dsp_rounded(SUM, table + (LANES) + 2 * (LANE), S)
#define MCC_DSP_SCALED_raised(SUM, LANE, LANES, S)                                                                     \
    mcc_dsp_rounded(mcc_mul_i32(SUM, table[(LANES) + (LANE)]), table + 2 * (LANES) + 2 * (LANE), S)
#define MCC_DSP_SCALED_shared(SUM, LANE, LANES, S)                                                                     \
    mcc_shr_i32(mcc_high_sum(t->addend, SUM, table[(LANES) + (LANE)]), S)
#define MCC_DSP_SCALED_packed(SUM, LANE, LANES, S)                                                                     \
    MCC_DSP_SCALED_shared(mcc_shl_i32(SUM, table[(LANES) + (LANE)] & 31), LANE, LANES, S)

#define MCC_DSP_LANES(NAME, LANES, W, C, ALL)                                                                          \
    MCC_INLINE void NAME(const W *w, const uint32_t *patch, C *y, const mcc_dsp_result *t)                             \
    {                                                                                                                  \
        ALL(w, patch, y, t, LANES);                                                                                    \
    }
/* Two channels at a time: LANE is from the weights of one to those of the other, NEXT from one of a pair to the
 * other. */
#define MCC_DSP_TWO_CHANNELS(FORM, W, LANE, NEXT, T, C, N, S, MODE)                                                    \
    MCC_INLINE void mcc_dsp_##FORM##_##T##_##N(const W *w, const uint32_t *patch, C *y, const mcc_dsp_result *t,       \
                                               mcc_index positions)                                                    \
    {                                                                                                                  \
        for (mcc_index o = 0; o < t->channels; ++o) {                                                                  \
            const int32_t *const table = t->table + o / 2 * 2 * MCC_DSP_ROWS_##MODE;                                   \
            const W *const own = w + o / 2 * 4 * t->steps + o % 2 * (LANE);                                            \
            for (mcc_index p = 0; p < positions; ++p) {                                                                \
                int32_t sum = table[o % 2];                                                                            \
                for (mcc_index i = 0; i < 4 * t->steps; i += 4) {                                                      \
                    sum = mcc_dsp_smlad(sum, patch[i + p], own[i], own[i + (NEXT)]);                                   \
                }                                                                                                      \
                y[p * t->stride + o] = (C)mcc_saturate_##T(MCC_DSP_SCALED_##MODE(sum, o % 2, 2, S));                   \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_DSP_LANES(mcc_dsp_##FORM##4x2_##T##_##N, 4, W, C, mcc_dsp_##FORM##_##T##_##N)                                  \
    MCC_DSP_LANES(mcc_dsp_##FORM##1x2_##T##_##N, 1, W, C, mcc_dsp_##FORM##_##T##_##N)
#define MCC_DSP_DOT(T, C, N, S, MODE)                                                                                  \
    MCC_DSP_TWO_CHANNELS(dot, int8_t, 1, 2, T, C, N, S, MODE)                                                          \
    MCC_INLINE void mcc_dsp_dot1x4_##T##_##N(const int8_t *w, const uint32_t *patch, C *y, const mcc_dsp_result *t)    \
    {                                                                                                                  \
        for (mcc_index o = 0; o < t->channels; ++o) {                                                                  \
            const int32_t *const table = t->table + o / 4 * 4 * MCC_DSP_ROWS_##MODE;                                   \
            const int8_t *const own = w + o / 4 * 8 * t->steps + o % 4 / 2 * 8 + o % 2;                                \
            int32_t sum = table[o % 4];                                                                                \
            for (mcc_index i = 0; i < t->steps; ++i) {                                                                 \
                const int8_t *const two = own + i / 2 * 16 + i % 2 * 4;                                                \
                const int32_t first = o % 2 ? two[0] : (uint8_t)two[0] - 128;                                          \
                const int32_t second = o % 2 ? two[2] : (uint8_t)two[2] - 128;                                         \
                sum = mcc_dsp_smlad(sum, patch[i], first, second);                                                     \
            }                                                                                                          \
            y[o] = (C)mcc_saturate_##T(MCC_DSP_SCALED_##MODE(sum, o % 4, 4, S));                                       \
        }                                                                                                              \
    }
#define MCC_DSP_DOTS_OF(N, S, MODE)                                                                                    \
    MCC_DSP_DOT(i8, int8_t, N, S, MODE)                                                                                \
    MCC_DSP_DOT(u8, uint8_t, N, S, MODE)
#endif

/* Only those that are called end up in a program. */
MCC_DSP_ALL_ROUNDINGS(MCC_DSP_DOTS_OF)

#endif /* MCC_DSP_DOTS_H */
