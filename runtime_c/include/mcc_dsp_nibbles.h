/* mcc_dsp_nibbles.h - sums of products of 8-bit integers with weights of 4 bits, in the words of mcc_dsp.h:
 *
 *     mcc_dsp_nibbles4x2_i8_S(w, patch, y, t)    4 positions x all channels, two at a time, from a patch with 4 lanes
 *     mcc_dsp_nibbles1x2_i8_S(w, patch, y, t)    the first of 4 positions x all channels, likewise
 *
 * What mcc_dsp_dot4x2 and 1x2 do, from half the bytes. A byte holds an element of two channels: that of the second one
 * above, with its sign, that of the first one below, plus 8 (codegen/int8/dot.py). The byte as it is makes sums that
 * are 16 times the second channel's and once the first one's; what 8 times the patch sums to is taken away from those.
 * So there is one instruction more for 8 weights and 4 positions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_NIBBLES_H
#define MCC_DSP_NIBBLES_H

#include "mcc_dsp_dots.h"

#if MCC_DSP_ASM
#if defined(__OPTIMIZE_SIZE__)
#define MCC_DSP_NIBBLES_UNROLL "1"
#else
#define MCC_DSP_NIBBLES_UNROLL "16"
#endif

/* Registers as in MCC_DSP_DOT4X2; behind what is on the stack there, 8 times the sum of each lane of the patch. */
#define MCC_DSP_NIBBLES4X2(T, C, N, S, MODE, SATURATE)                                                                 \
    MCC_DSP_NAKED(mcc_dsp_nibbles4x2_##T##_##N, uint8_t, C)                                                            \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r11, lr}\n"                                                                         \
                         MCC_DSP_HOLD_##MODE                                                                           \
                         "sub sp, #44\n"                                                                               \
                         MCC_DSP_BEGIN_4X2                                                                             \
                         "lsr r6, r6, #1\n"                                                                            \
                         "rsb r6, r6, #0\n"                                                                            \
                         "and r6, r6, #" MCC_DSP_NIBBLES_UNROLL " - 1\n"                                               \
                         MCC_DSP_ENTER_4X2("108")                                                                      \
                         "mov r4, #0\n"                                                                                \
                         "mov r5, #0\n"                                                                                \
                         "mov r6, #0\n"                                                                                \
                         "mov r7, #0\n"                                                                                \
                         "mov r12, #0x00080008\n"                                                                      \
                         "3: ldrd r2, r3, [r1], #8\n"                                                                  \
                         "smlad r4, r2, r12, r4\n"                                                                     \
                         "smlad r5, r3, r12, r5\n"                                                                     \
                         "ldrd r2, r3, [r1], #8\n"                                                                     \
                         "smlad r6, r2, r12, r6\n"                                                                     \
                         "smlad r7, r3, r12, r7\n"                                                                     \
                         "cmp r1, r8\n"                                                                                \
                         "bne 3b\n"                                                                                    \
                         "strd r4, r5, [sp, #28]\n"                                                                    \
                         "strd r6, r7, [sp, #36]\n"                                                                    \
                         "2: ldr r1, [sp, #16]\n"                                                                      \
                         "mov r4, #0\n"                                                                                \
                         "mov r5, #0\n"                                                                                \
                         "mov r6, #0\n"                                                                                \
                         "mov r7, #0\n"                                                                                \
                         "mov r8, #0\n"                                                                                \
                         "mov r9, #0\n"                                                                                \
                         "mov r10, #0\n"                                                                               \
                         "mov r11, #0\n"                                                                               \
                         "ldr pc, [sp, #24]\n"                                                                         \
                         ".balign 4\n"                                                                                 \
                         "1: .rept " MCC_DSP_NIBBLES_UNROLL "\n"                                                       \
                         "ldr.w r12, [r0]\n"                                                                           \
                         "ldrd r2, r3, [r1], #8\n"                                                                     \
                         "sxtb16 lr, r12\n"                                                                            \
                         "and r12, r12, #0x000f000f\n"                                                                 \
                         MCC_DSP_PRODUCTS_4X2                                                                          \
                         "ldr.w r12, [r0], #4\n"                                                                       \
                         "ldrd r2, r3, [r1], #8\n"                                                                     \
                         "sxtb16 lr, r12, ror #8\n"                                                                    \
                         "uxtb16 r12, r12, ror #8\n"                                                                   \
                         "and r12, r12, #0x000f000f\n"                                                                 \
                         MCC_DSP_PRODUCTS_4X2                                                                          \
                         ".endr\n"                                                                                     \
                         "ldr r12, [sp, #20]\n"                                                                        \
                         "cmp r1, r12\n"                                                                               \
                         "bne.w 1b\n"                                                                                  \
                         "sub r8, r8, r4\n"                                                                            \
                         "sub r9, r9, r5\n"                                                                            \
                         "sub r10, r10, r6\n"                                                                          \
                         "sub r11, r11, r7\n"                                                                          \
                         "ldrd r2, r3, [sp, #28]\n"                                                                    \
                         "sub r4, r4, r2\n"                                                                            \
                         "sub r5, r5, r3\n"                                                                            \
                         "ldrd r2, r3, [sp, #36]\n"                                                                    \
                         "sub r6, r6, r2\n"                                                                            \
                         "sub r7, r7, r3\n"                                                                            \
                         "ldm sp, {r1, r2, r12}\n"                                                                     \
                         "ldrd r3, lr, [r12]\n"                                                                        \
                         "add r4, r4, r3\n"                                                                            \
                         "add r5, r5, r3\n"                                                                            \
                         "add r6, r6, r3\n"                                                                            \
                         "add r7, r7, r3\n"                                                                            \
                         "add r8, lr, r8, asr #4\n"                                                                    \
                         "add r9, lr, r9, asr #4\n"                                                                    \
                         "add r10, lr, r10, asr #4\n"                                                                  \
                         "add r11, lr, r11, asr #4\n"                                                                  \
                         MCC_DSP_RESULTS_4X2(S, MODE, SATURATE, "44")                                                  \
                         "add sp, #44\n" MCC_DSP_DROP_##MODE                                                           \
                         "pop {r4-r11, pc}\n");                                                                        \
    }
/* Registers as in MCC_DSP_DOT1X2; r10 8 times the sum of the patch, r11 a pair of weights. */
#define MCC_DSP_NIBBLES1X2(T, C, N, S, MODE, SATURATE)                                                                 \
    MCC_DSP_NAKED(mcc_dsp_nibbles1x2_##T##_##N, uint8_t, C)                                                            \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r11, lr}\n"                                                                         \
                         MCC_DSP_HOLD_##MODE                                                                           \
                         MCC_DSP_BEGIN_1X2                                                                             \
                         "mov r10, #0\n"                                                                               \
                         "mov r11, #0x00080008\n"                                                                      \
                         "3: ldr r3, [r1], #16\n"                                                                      \
                         "smlad r10, r3, r11, r10\n"                                                                   \
                         "cmp r1, r8\n"                                                                                \
                         "bne 3b\n"                                                                                    \
                         "2: mov r4, #0\n"                                                                             \
                         "mov r5, #0\n"                                                                                \
                         "mov r1, lr\n"                                                                                \
                         "1: ldr r6, [r0], #4\n"                                                                       \
                         "ldr r3, [r1], #16\n"                                                                         \
                         "sxtb16 r7, r6\n"                                                                             \
                         "and r11, r6, #0x000f000f\n"                                                                  \
                         "smlad r4, r3, r11, r4\n"                                                                     \
                         "smlad r5, r3, r7, r5\n"                                                                      \
                         "ldr r3, [r1], #16\n"                                                                         \
                         "sxtb16 r7, r6, ror #8\n"                                                                     \
                         "uxtb16 r6, r6, ror #8\n"                                                                     \
                         "and r6, r6, #0x000f000f\n"                                                                   \
                         "smlad r4, r3, r6, r4\n"                                                                      \
                         "smlad r5, r3, r7, r5\n"                                                                      \
                         "cmp r1, r8\n"                                                                                \
                         "bne 1b\n"                                                                                    \
                         "sub r5, r5, r4\n"                                                                            \
                         "sub r4, r4, r10\n"                                                                           \
                         "ldrd r6, r7, [r12]\n"                                                                        \
                         "add r4, r4, r6\n"                                                                            \
                         "add r5, r7, r5, asr #4\n"                                                                    \
                         MCC_DSP_RESULTS_1X2(S, MODE, SATURATE)                                                        \
                         "pop {r4-r11, pc}\n");                                                                        \
    }
#define MCC_DSP_NIBBLES_OF(N, S, MODE)                                                                                 \
    MCC_DSP_BOTH(MCC_DSP_NIBBLES4X2, N, S, MODE)                                                                       \
    MCC_DSP_BOTH(MCC_DSP_NIBBLES1X2, N, S, MODE)

#else
/* The weight of a channel, the first or the second of two. */
MCC_INLINE int32_t mcc_dsp_nibble(uint8_t byte, mcc_index channel)
{
    return channel ? ((byte >> 4) ^ 8) - 8 : (byte & 15) - 8;
}

#define MCC_DSP_NIBBLES_FORM(T, C, N, S, MODE)                                                                         \
    MCC_INLINE void mcc_dsp_nibbles_##T##_##N(const uint8_t *w, const uint32_t *patch, C *y, const mcc_dsp_result *t,  \
                                              mcc_index positions)                                                     \
    {                                                                                                                  \
        for (mcc_index o = 0; o < t->channels; ++o) {                                                                  \
            const int32_t *const table = t->table + o / 2 * 2 * MCC_DSP_ROWS_##MODE;                                   \
            for (mcc_index p = 0; p < positions; ++p) {                                                                \
                int32_t sum = table[o % 2];                                                                            \
                for (mcc_index i = 0; i < t->steps; ++i) {                                                             \
                    const uint8_t *const two = w + o / 2 * 2 * t->steps + i / 2 * 4 + i % 2;                           \
                    const int32_t low = mcc_dsp_nibble(two[0], o % 2), high = mcc_dsp_nibble(two[2], o % 2);           \
                    sum = mcc_dsp_smlad(sum, patch[i * 4 + p], low, high);                                             \
                }                                                                                                      \
                y[p * t->stride + o] = (C)mcc_saturate_##T(MCC_DSP_SCALED_##MODE(sum, o % 2, 2, S));                   \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_DSP_LANES(mcc_dsp_nibbles4x2_##T##_##N, 4, uint8_t, C, mcc_dsp_nibbles_##T##_##N)                              \
    MCC_DSP_LANES(mcc_dsp_nibbles1x2_##T##_##N, 1, uint8_t, C, mcc_dsp_nibbles_##T##_##N)
#define MCC_DSP_NIBBLES_OF(N, S, MODE)                                                                                 \
    MCC_DSP_NIBBLES_FORM(i8, int8_t, N, S, MODE)                                                                       \
    MCC_DSP_NIBBLES_FORM(u8, uint8_t, N, S, MODE)
#endif

MCC_DSP_ALL_ROUNDINGS(MCC_DSP_NIBBLES_OF)

#endif /* MCC_DSP_NIBBLES_H */
