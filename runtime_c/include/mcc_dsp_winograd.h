/* mcc_dsp_winograd.h - 3x3 convolutions of 8-bit integers by Winograd's F(2x2, 3x3), in the words of mcc_dsp.h:
 *
 *     mcc_dsp_tile_i8(v, step, pixels, n, zero)    n channels of the 4x4 pixels of a tile, transformed (u8 too)
 *     mcc_dsp_products4x2(w, v, m, steps)          4 tiles x 2 channels: sums of products of all 16 elements
 *     mcc_dsp_sums(m, lane, sums)                  the 2x2 sums of a lane of these products
 *
 * Weights are 16 bits wide and hold 4 times the transformed ones, so that they are integers; the sums are exact, and
 * divided by 4 in the end. A tile takes 16 multiplications instead of 36. Elements of v and m lie one after the other;
 * inside of an element of v pairs of channels, as in a patch, of 4 tiles each; inside of an element of m 2 channels, of
 * 4 tiles each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DSP_WINOGRAD_H
#define MCC_DSP_WINOGRAD_H

#include "mcc_dsp.h"

/* Both halves of two words, added and subtracted. */
#if MCC_DSP_ASM
#define MCC_DSP_HALVES(NAME, INSTRUCTION, OPERATOR)                                                                    \
    MCC_INLINE uint32_t NAME(uint32_t a, uint32_t b)                                                                   \
    {                                                                                                                  \
        uint32_t found;                                                                                                \
        __asm__(INSTRUCTION " %0, %1, %2" : "=r"(found) : "r"(a), "r"(b));                                             \
        return found;                                                                                                  \
    }
#else
#define MCC_DSP_HALVES(NAME, INSTRUCTION, OPERATOR)                                                                    \
    MCC_INLINE uint32_t NAME(uint32_t a, uint32_t b)                                                                   \
    {                                                                                                                  \
        return mcc_dsp_pair(mcc_dsp_low(a) OPERATOR mcc_dsp_low(b), mcc_dsp_high(a) OPERATOR mcc_dsp_high(b));         \
    }
#endif
MCC_DSP_HALVES(mcc_dsp_add, "sadd16", +)
MCC_DSP_HALVES(mcc_dsp_sub, "ssub16", -)

/* The transform of four pairs, of which every `to`-th place gets one. */
MCC_INLINE void mcc_dsp_turn(uint32_t *v, mcc_index to, uint32_t d0, uint32_t d1, uint32_t d2, uint32_t d3)
{
    v[0] = mcc_dsp_sub(d0, d2);
    v[to] = mcc_dsp_add(d1, d2);
    v[2 * to] = mcc_dsp_sub(d2, d1);
    v[3 * to] = mcc_dsp_sub(d1, d3);
}

/* `pixels`: where the first channels of the pixels lie. `step`: from an element of v to the next. */
#define MCC_DSP_TILE(T, C)                                                                                             \
    MCC_DSP_CALLED void mcc_dsp_tile_##T(uint32_t *v, mcc_index step, const C *const *pixels, mcc_index n,             \
                                         uint32_t zero)                                                                \
    {                                                                                                                  \
        for (mcc_index c = 0; c < n; c += 4, v += 8) {                                                                 \
            uint32_t even[16], odd[16];                                                                                \
            for (mcc_index j = 0; j < 4; ++j) {                                                                        \
                const uint32_t d0 = mcc_dsp_load(pixels[j] + c), d1 = mcc_dsp_load(pixels[4 + j] + c);                 \
                const uint32_t d2 = mcc_dsp_load(pixels[8 + j] + c), d3 = mcc_dsp_load(pixels[12 + j] + c);            \
                mcc_dsp_turn(even + j, 4, mcc_dsp_even_##T(zero, d0), mcc_dsp_even_##T(zero, d1),                      \
                             mcc_dsp_even_##T(zero, d2), mcc_dsp_even_##T(zero, d3));                                  \
                mcc_dsp_turn(odd + j, 4, mcc_dsp_odd_##T(zero, d0), mcc_dsp_odd_##T(zero, d1),                         \
                             mcc_dsp_odd_##T(zero, d2), mcc_dsp_odd_##T(zero, d3));                                    \
            }                                                                                                          \
            for (mcc_index i = 0; i < 16; i += 4) {                                                                    \
                uint32_t *const row = v + i * step;                                                                    \
                mcc_dsp_turn(row, step, even[i], even[i + 1], even[i + 2], even[i + 3]);                               \
                mcc_dsp_turn(row + 4, step, odd[i], odd[i + 1], odd[i + 2], odd[i + 3]);                               \
            }                                                                                                          \
        }                                                                                                              \
    }
MCC_DSP_TILE(i8, int8_t)
MCC_DSP_TILE(u8, uint8_t)

#if MCC_DSP_ASM
/* Steps are unrolled; the first round enters in the middle, so that any number of steps will do. */
#if defined(__OPTIMIZE_SIZE__)
#define MCC_DSP_PRODUCTS_UNROLL "1"
#else
#define MCC_DSP_PRODUCTS_UNROLL "32"
#endif

/* r4-r7 sums of the first channel, r8-r11 of the second; r0 weights, r1 tiles, r2 r3 pairs of two tiles, r12 and lr
 * pairs of weights. On the stack: end of the element, its bytes, where to enter, m, end of the tiles. */
static __attribute__((naked, noinline, unused)) void mcc_dsp_products4x2(const int16_t *w MCC_DSP_UNUSED,
                                                                         const uint32_t *v MCC_DSP_UNUSED,
                                                                         int32_t *m MCC_DSP_UNUSED,
                                                                         int32_t steps MCC_DSP_UNUSED)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "sub sp, #20\n"
                     "lsl r5, r3, #4\n"
                     "add r4, r1, r5\n"
                     "strd r4, r5, [sp]\n"
                     "rsb r6, r3, #1\n"
                     "and r6, r6, #" MCC_DSP_PRODUCTS_UNROLL " - 1\n"
                     "mov r9, #44\n"
                     "mul r6, r6, r9\n"
                     "adr r9, 1f\n"
                     "add r6, r6, r9\n"
                     "orr r6, r6, #1\n"
                     "strd r6, r2, [sp, #8]\n"
                     "add r5, r1, r5, lsl #4\n"
                     "str r5, [sp, #16]\n"
                     "2: ldrd r12, lr, [r0], #8\n"
                     "ldrd r2, r3, [r1], #8\n"
                     "smuad r4, r2, r12\n"
                     "smuad r8, r2, lr\n"
                     "smuad r5, r3, r12\n"
                     "smuad r9, r3, lr\n"
                     "ldrd r2, r3, [r1], #8\n"
                     "smuad r6, r2, r12\n"
                     "smuad r10, r2, lr\n"
                     "smuad r7, r3, r12\n"
                     "smuad r11, r3, lr\n"
                     "ldr r2, [sp]\n"
                     "cmp r1, r2\n"
                     "beq.w 3f\n"
                     "ldr pc, [sp, #8]\n"
                     ".balign 4\n"
                     "1: .rept " MCC_DSP_PRODUCTS_UNROLL "\n"
                     "ldrd r12, lr, [r0], #8\n"
                     "ldrd r2, r3, [r1], #8\n"
                     "smlad r4, r2, r12, r4\n"
                     "smlad r8, r2, lr, r8\n"
                     "smlad r5, r3, r12, r5\n"
                     "smlad r9, r3, lr, r9\n"
                     "ldrd r2, r3, [r1], #8\n"
                     "smlad r6, r2, r12, r6\n"
                     "smlad r10, r2, lr, r10\n"
                     "smlad r7, r3, r12, r7\n"
                     "smlad r11, r3, lr, r11\n"
                     ".endr\n"
                     "ldr r2, [sp]\n"
                     "cmp r1, r2\n"
                     "bne.w 1b\n"
                     "3: ldr r12, [sp, #12]\n"
                     "stmia r12!, {r4-r11}\n"
                     "ldr r3, [sp, #4]\n"
                     "add r2, r2, r3\n"
                     "str r12, [sp, #12]\n"
                     "str r2, [sp]\n"
                     "ldr r3, [sp, #16]\n"
                     "cmp r1, r3\n"
                     "bne.w 2b\n"
                     "add sp, #20\n"
                     "pop {r4-r11, pc}\n");
}
#else
MCC_INLINE void mcc_dsp_products4x2(const int16_t *w, const uint32_t *v, int32_t *m, int32_t steps)
{
    for (mcc_index i = 0; i < 128; ++i) {
        const mcc_index element = i / 8, channel = i / 4 % 2, lane = i % 4;
        const int16_t *const weights = w + 4 * steps * element + 2 * channel;
        const uint32_t *const pairs = v + 4 * steps * element + lane;
        int32_t sum = 0;
        for (mcc_index k = 0; k < steps; ++k) {
            sum = mcc_dsp_smlad(sum, pairs[4 * k], weights[4 * k], weights[4 * k + 1]);
        }
        m[i] = sum;
    }
}
#endif

/* The upper and the lower sum of a column of products. */
MCC_INLINE void mcc_dsp_column(const int32_t *m, uint32_t *upper, uint32_t *lower)
{
    const uint32_t m1 = (uint32_t)m[32], m2 = (uint32_t)m[64];
    *upper = (uint32_t)m[0] + m1 + m2;
    *lower = m1 - m2 - (uint32_t)m[96];
}

/* A left and a right result of a row of these; intermediate sums count modulo 2^32. */
MCC_INLINE void mcc_dsp_row(const uint32_t *t, int32_t *sums)
{
    sums[0] = mcc_shr_i32((int32_t)(t[0] + t[1] + t[2]), 2);
    sums[1] = mcc_shr_i32((int32_t)(t[1] - t[2] - t[3]), 2);
}

/* The 2x2 sums of the products at m, m + 8 ... */
MCC_INLINE void mcc_dsp_sums(const int32_t *m, int32_t *sums)
{
    uint32_t upper[4], lower[4];
    mcc_dsp_column(m, upper, lower);
    mcc_dsp_column(m + 8, upper + 1, lower + 1);
    mcc_dsp_column(m + 16, upper + 2, lower + 2);
    mcc_dsp_column(m + 24, upper + 3, lower + 3);
    mcc_dsp_row(upper, sums);
    mcc_dsp_row(lower, sums + 2);
}

#endif /* MCC_DSP_WINOGRAD_H */
