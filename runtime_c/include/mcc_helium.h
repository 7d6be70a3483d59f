/* mcc_helium.h - sums of products of 8-bit integers for cores with Helium (MVE): Cortex-M52, M55, M85.
 *
 *     mcc_helium_dot2x4_i8_S(w, x, y, t)   2 positions x all channels, four at a time
 *     mcc_helium_copy(d, x, n)             n bytes; up to 15 more are read, and written
 *     mcc_helium_fill(d, value, n)         n bytes of one value; up to 15 more are written
 *
 * S is the shift of the results (mcc_quant.h). Elements of a sum lie beside each other, in blocks of 16, the last of
 * them against weights of 0. Zero points are folded into the bias. For weights see kernels/dot.py. As in
 * mcc_dsp.h, C does the same where the instructions are missing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_HELIUM_H
#define MCC_HELIUM_H

#include <string.h>

#include "mcc.h"
#include "mcc_quant.h"

#if defined(__GNUC__) && defined(__ARM_FEATURE_MVE) && !defined(MCC_HELIUM_PORTABLE)
#define MCC_HELIUM_ASM 1
#include <arm_mve.h>
#else
#define MCC_HELIUM_ASM 0
#endif

#if defined(__GNUC__)
#define MCC_HELIUM_UNUSED __attribute__((unused))
#else
#define MCC_HELIUM_UNUSED
#endif

/* What is made of the sums. The table: four biases, four multipliers, four addends for four channels. */
typedef struct mcc_helium_result {
    const int32_t *table;
    int32_t channels; /* a multiple of 4 */
    int32_t steps;    /* blocks of 16 elements */
    int32_t gap;      /* bytes from the elements of the first position to those of the second */
    int32_t stride;   /* from the results of the first position to those of the second */
} mcc_helium_result;

MCC_INLINE void mcc_helium_copy(int8_t *d, const int8_t *x, mcc_index n)
{
#if MCC_HELIUM_ASM
    for (mcc_index i = 0; i < n; i += 16) vstrbq_s8(d + i, vldrbq_s8(x + i));
#else
    memcpy(d, x, (size_t)n);
#endif
}

MCC_INLINE void mcc_helium_fill(int8_t *d, int8_t value, mcc_index n)
{
#if MCC_HELIUM_ASM
    for (mcc_index i = 0; i < n; i += 16) vstrbq_s8(d + i, vdupq_n_s8(value));
#else
    for (mcc_index i = 0; i < n; ++i) d[i] = value;
#endif
}

#if MCC_HELIUM_ASM
/* r0 r2 r4 r6 sums of the first position, r8 r10 r12 lr of the second; r1 weights, r3 r5 elements, r7 end of those
 * of the first, r9 table, r11 y. On the stack: end of y, x, gap, end of x, stride, where to enter. */
#if defined(__OPTIMIZE_SIZE__)
#define MCC_HELIUM_UNROLL "1"
#else
#define MCC_HELIUM_UNROLL "8"
#endif
#define MCC_HELIUM_DOT2X4(T, C, S, SATURATE)                                                                           \
    static __attribute__((naked, noinline, unused)) void mcc_helium_dot2x4_##T##_##S(                                  \
        const int8_t *w MCC_HELIUM_UNUSED, const int8_t *x MCC_HELIUM_UNUSED, C *y MCC_HELIUM_UNUSED,                  \
        const mcc_helium_result *t MCC_HELIUM_UNUSED)                                                                  \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r11, lr}\n"                                                                         \
                         "sub sp, #28\n"                                                                               \
                         "ldrd r9, r4, [r3]\n"                                                                         \
                         "ldrd r5, r6, [r3, #8]\n"                                                                     \
                         "ldr r8, [r3, #16]\n"                                                                         \
                         "add r4, r4, r2\n"                                                                            \
                         "strd r4, r1, [sp]\n"                                                                         \
                         "add r7, r1, r5, lsl #4\n"                                                                    \
                         "strd r6, r7, [sp, #8]\n"                                                                     \
                         "str r8, [sp, #16]\n"                                                                         \
                         "mov r11, r2\n"                                                                               \
                         "rsbs r5, r5, #1\n"                                                                           \
                         "ite eq\n"                                                                                    \
                         "moveq r5, #" MCC_HELIUM_UNROLL "\n"                                                          \
                         "andne r5, r5, #" MCC_HELIUM_UNROLL " - 1\n"                                                  \
                         "mov r6, #56\n"                                                                               \
                         "mul r5, r5, r6\n"                                                                            \
                         "adr r6, 1f\n"                                                                                \
                         "add r5, r5, r6\n"                                                                            \
                         "orr r5, r5, #1\n"                                                                            \
                         "str r5, [sp, #20]\n"                                                                         \
                         "mov r1, r0\n"                                                                                \
                         "2: ldr r3, [sp, #4]\n"                                                                       \
                         "ldrd r5, r7, [sp, #8]\n"                                                                     \
                         "add r5, r5, r3\n"                                                                            \
                         "vldrb.8 q0, [r3], #16\n"                                                                     \
                         "vldrb.8 q1, [r5], #16\n"                                                                     \
                         "vldrb.8 q2, [r1], #16\n"                                                                     \
                         "vmladav.s8 r0, q0, q2\n"                                                                     \
                         "vldrb.8 q3, [r1], #16\n"                                                                     \
                         "vmladav.s8 r8, q1, q2\n"                                                                     \
                         "vmladav.s8 r2, q0, q3\n"                                                                     \
                         "vldrb.8 q2, [r1], #16\n"                                                                     \
                         "vmladav.s8 r10, q1, q3\n"                                                                    \
                         "vmladav.s8 r4, q0, q2\n"                                                                     \
                         "vldrb.8 q3, [r1], #16\n"                                                                     \
                         "vmladav.s8 r12, q1, q2\n"                                                                    \
                         "vmladav.s8 r6, q0, q3\n"                                                                     \
                         "vmladav.s8 lr, q1, q3\n"                                                                     \
                         "ldr pc, [sp, #20]\n"                                                                         \
                         ".balign 4\n"                                                                                 \
                         "1: .rept " MCC_HELIUM_UNROLL "\n"                                                            \
                         "vldrb.8 q0, [r3], #16\n"                                                                     \
                         "vldrb.8 q1, [r5], #16\n"                                                                     \
                         "vldrb.8 q2, [r1], #16\n"                                                                     \
                         "vmladava.s8 r0, q0, q2\n"                                                                    \
                         "vldrb.8 q3, [r1], #16\n"                                                                     \
                         "vmladava.s8 r8, q1, q2\n"                                                                    \
                         "vmladava.s8 r2, q0, q3\n"                                                                    \
                         "vldrb.8 q2, [r1], #16\n"                                                                     \
                         "vmladava.s8 r10, q1, q3\n"                                                                   \
                         "vmladava.s8 r4, q0, q2\n"                                                                    \
                         "vldrb.8 q3, [r1], #16\n"                                                                     \
                         "vmladava.s8 r12, q1, q2\n"                                                                   \
                         "vmladava.s8 r6, q0, q3\n"                                                                    \
                         "vmladava.s8 lr, q1, q3\n"                                                                    \
                         ".endr\n"                                                                                     \
                         "cmp r3, r7\n"                                                                                \
                         "bne.w 1b\n"                                                                                  \
                         "3: vmov q0[2], q0[0], r0, r4\n"                                                              \
                         "vmov q0[3], q0[1], r2, r6\n"                                                                 \
                         "vmov q1[2], q1[0], r8, r12\n"                                                                \
                         "vmov q1[3], q1[1], r10, lr\n"                                                                \
                         "vldrw.u32 q2, [r9], #16\n"                                                                   \
                         "vadd.i32 q0, q0, q2\n"                                                                       \
                         "vadd.i32 q1, q1, q2\n"                                                                       \
                         "vldrw.u32 q2, [r9], #16\n"                                                                   \
                         "vmulh.s32 q0, q0, q2\n"                                                                      \
                         "vmulh.s32 q1, q1, q2\n"                                                                      \
                         "vldrw.u32 q2, [r9], #16\n"                                                                   \
                         "vadd.i32 q0, q0, q2\n"                                                                       \
                         "vadd.i32 q1, q1, q2\n"                                                                       \
                         "vshr.s32 q0, q0, #" #S "\n"                                                                  \
                         "vshr.s32 q1, q1, #" #S "\n"                                                                  \
                         SATURATE                                                                                      \
                         "ldr r3, [sp, #16]\n"                                                                         \
                         "mov r7, r11\n"                                                                               \
                         "vstrb.32 q0, [r7]\n"                                                                         \
                         "add r5, r11, r3\n"                                                                           \
                         "vstrb.32 q1, [r5]\n"                                                                         \
                         "add r11, r11, #4\n"                                                                          \
                         "ldr r3, [sp]\n"                                                                              \
                         "cmp r11, r3\n"                                                                               \
                         "bne.w 2b\n"                                                                                  \
                         "add sp, #28\n"                                                                               \
                         "pop {r4-r11, pc}\n");                                                                        \
    }
#define MCC_HELIUM_SATURATE_I8                                                                                         \
    "vqmovnb.s32 q0, q0\nvqmovnb.s16 q0, q0\nvqmovnb.s32 q1, q1\nvqmovnb.s16 q1, q1\n"
#define MCC_HELIUM_SATURATE_U8                                                                                         \
    "vqmovunb.s32 q0, q0\nvqmovnb.u16 q0, q0\nvqmovunb.s32 q1, q1\nvqmovnb.u16 q1, q1\n"
#define MCC_HELIUM_DOTS(S)                                                                                             \
    MCC_HELIUM_DOT2X4(i8, int8_t, S, MCC_HELIUM_SATURATE_I8)                                                           \
    MCC_HELIUM_DOT2X4(u8, uint8_t, S, MCC_HELIUM_SATURATE_U8)

#else
#define MCC_HELIUM_DOT(T, C, S)                                                                                        \
    MCC_INLINE void mcc_helium_dot2x4_##T##_##S(const int8_t *w, const int8_t *x, C *y, const mcc_helium_result *t)    \
    {                                                                                                                  \
        for (mcc_index o = 0; o < t->channels; ++o) {                                                                  \
            const int32_t *const table = t->table + o / 4 * 12 + o % 4;                                                \
            for (mcc_index p = 0; p < 2; ++p) {                                                                        \
                const int8_t *const own = w + (o / 4 * 4 * t->steps + o % 4) * 16;                                     \
                int32_t sum = table[0];                                                                                \
                for (mcc_index i = 0; i < t->steps * 16; ++i) sum += x[p * t->gap + i] * own[i / 16 * 64 + i % 16];    \
                sum = mcc_shr_i32(mcc_add_i32(mcc_high_product(sum, table[4]), table[8]), S);                          \
                y[p * t->stride + o] = (C)mcc_saturate_##T(sum);                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }
#define MCC_HELIUM_DOTS(S)                                                                                             \
    MCC_HELIUM_DOT(i8, int8_t, S)                                                                                      \
    MCC_HELIUM_DOT(u8, uint8_t, S)
#endif

MCC_HELIUM_DOTS(1)
MCC_HELIUM_DOTS(2)
MCC_HELIUM_DOTS(3)
MCC_HELIUM_DOTS(4)
MCC_HELIUM_DOTS(5)
MCC_HELIUM_DOTS(6)
MCC_HELIUM_DOTS(7)
MCC_HELIUM_DOTS(8)

#endif /* MCC_HELIUM_H */
