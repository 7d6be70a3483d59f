/* mcc_helium.h - sums of products of 8-bit integers for cores with Helium (MVE): Cortex-M52, M55, M85.
 *
 *     mcc_helium_dot2x4_i8_S(w, x, y, t)   2 positions x all channels, four at a time
 *     mcc_helium_copy(d, x, n)             n bytes; up to 15 more are read, and written
 *     mcc_helium_copy_rows(d, x, m, n, s)  m rows of n bytes, which begin s bytes apart, one behind the other
 *     mcc_helium_fill(d, value, n)         n bytes of one value; up to 15 more are written
 *
 * S is the shift of the results (mcc_quant.h), or `raised` and the shift of sums that are raised first. Elements of a
 * sum lie beside each other, in blocks of 16, the last of them against weights of 0. Zero points are folded into the
 * bias. For weights see codegen/int8/dot.py. As in mcc_dsp.h, C does the same where the instructions are missing.
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

#if defined(__OPTIMIZE_SIZE__)
#define MCC_HELIUM_UNROLLED
#else
#define MCC_HELIUM_UNROLLED _Pragma("GCC unroll 12")
#endif

#if defined(__GNUC__)
#define MCC_HELIUM_UNUSED __attribute__((unused))
#else
#define MCC_HELIUM_UNUSED
#endif

/* What is made of the sums. The table: four biases, (four factors of sums that are raised,) four multipliers and four
 * addends, less half of what is shifted out, for four channels. */
typedef struct mcc_helium_result {
    const int32_t *table;
    int32_t channels;   /* a multiple of 4 */
    int32_t steps;      /* blocks of 16 elements */
    int32_t gap;        /* bytes from the elements of the first position to those of the second */
    uint16_t places[8]; /* of the results of four channels, of both positions by turns: see MCC_HELIUM_PLACES */
} mcc_helium_result;

/* `stride` lies between the results of two positions. */
#define MCC_HELIUM_PLACES(stride)                                                                                      \
    {                                                                                                                  \
        0, (uint16_t)(stride), 1, (uint16_t)((stride) + 1), 2, (uint16_t)((stride) + 2), 3, (uint16_t)((stride) + 3)   \
    }

MCC_INLINE void mcc_helium_copy(int8_t *d, const int8_t *x, mcc_index n)
{
#if MCC_HELIUM_ASM
    for (mcc_index i = 0; i < n; i += 16) vstrbq_s8(d + i, vldrbq_s8(x + i));
#else
    memcpy(d, x, (size_t)n);
#endif
}

/* For numbers of bytes that are constants: all loads and stores of a row follow each other. */
MCC_INLINE void mcc_helium_copy_rows(int8_t *d, const int8_t *x, mcc_index m, mcc_index n, mcc_index s)
{
    for (mcc_index k = 0; k < m; ++k) {
#if MCC_HELIUM_ASM
        MCC_HELIUM_UNROLLED
        for (mcc_index i = 0; i < n; i += 16)
            __asm__ volatile("vldrb.8 q0, [%1], #16\nvstrb.8 q0, [%0], #16" : "+l"(d), "+l"(x) : : "memory", "q0");
        d -= -n & 15;
        x += s - (n + 15) / 16 * 16;
#else
        memcpy(d, x, (size_t)n);
        d += n;
        x += s;
#endif
    }
}

/* n pixels of so many bytes, which begin `from` bytes apart, to places `to` bytes apart; nothing else is read, or
 * written. */
MCC_INLINE void mcc_helium_copy_columns(
    int8_t *d, const int8_t *x, mcc_index n, mcc_index bytes, mcc_index to, mcc_index from)
{
    for (mcc_index k = 0; k < n; ++k) {
#if MCC_HELIUM_ASM
        MCC_HELIUM_UNROLLED
        for (mcc_index i = 16; i <= bytes; i += 16)
            __asm__ volatile("vldrb.8 q0, [%1], #16\nvstrb.8 q0, [%0], #16" : "+l"(d), "+l"(x) : : "memory", "q0");
        const mcc_index whole = bytes & -16;
        const mve_pred16_t rest = vctp8q((uint32_t)(bytes - whole));
        if (bytes > whole) vstrbq_p_s8(d, vldrbq_z_s8(x, rest), rest);
        d += to - whole;
        x += from - whole;
#else
        memcpy(d, x, (size_t)bytes);
        d += to;
        x += from;
#endif
    }
}

MCC_INLINE void mcc_helium_fill(int8_t *d, int8_t value, mcc_index n)
{
#if MCC_HELIUM_ASM
    for (mcc_index i = 0; i < n; i += 16) vstrbq_s8(d + i, vdupq_n_s8(value));
#else
    for (mcc_index i = 0; i < n; ++i) d[i] = value;
#endif
}

MCC_INLINE void mcc_helium_fill_columns(int8_t *d, int8_t value, mcc_index n, mcc_index bytes, mcc_index to)
{
    for (mcc_index k = 0; k < n; ++k) {
#if MCC_HELIUM_ASM
        const mcc_index whole = bytes & -16;
        for (mcc_index i = 0; i < whole; i += 16) vstrbq_s8(d + k * to + i, vdupq_n_s8(value));
        if (bytes > whole) vstrbq_p_s8(d + k * to + whole, vdupq_n_s8(value), vctp8q((uint32_t)(bytes - whole)));
#else
        mcc_helium_fill(d + k * to, value, bytes);
#endif
    }
}

/* Vectors of four 32-bit integers, for what is left to do with bytes that sums became. `next` and `put` move a pointer
 * on to the next four. */
#if MCC_HELIUM_ASM
typedef int32x4_t mcc_i32q;
#define mcc_set_i32q(value) vdupq_n_s32(value)
#define mcc_shift_right_i32q(a, by) vshrq_n_s32(a, by)
#define MCC_HELIUM_BINARY(NAME, INTRINSIC, SCALAR)                                                                     \
    MCC_INLINE mcc_i32q mcc_##NAME##_i32q(mcc_i32q a, mcc_i32q b)                                                      \
    {                                                                                                                  \
        return INTRINSIC(a, b);                                                                                        \
    }
#define MCC_HELIUM_NEXT(T, C, LOAD, STEP)                                                                              \
    MCC_INLINE mcc_i32q mcc_helium_next_##T(const C **p)                                                               \
    {                                                                                                                  \
        mcc_i32q found;                                                                                                \
        __asm__ volatile(LOAD " %q0, [%1], #" STEP : "=w"(found), "+l"(*p) : : "memory");                              \
        return found;                                                                                                  \
    }
MCC_HELIUM_NEXT(i8, int8_t, "vldrb.s32", "4")
MCC_HELIUM_NEXT(u8, uint8_t, "vldrb.u32", "4")
MCC_HELIUM_NEXT(i32, int32_t, "vldrw.u32", "16")
#define MCC_HELIUM_PUT(T, C, FIRST, SECOND)                                                                            \
    MCC_INLINE void mcc_helium_put_##T##_i32q(C **p, mcc_i32q a)                                                       \
    {                                                                                                                  \
        __asm__ volatile("vstrb.32 %q1, [%0], #4" : "+l"(*p) : "w"(a) : "memory");                                     \
    }                                                                                                                  \
    MCC_INLINE void mcc_helium_put_saturated_##T##_i32q(C **p, mcc_i32q a)                                             \
    {                                                                                                                  \
        __asm__(FIRST " %q0, %q0\n" SECOND " %q0, %q0" : "+w"(a));                                                     \
        mcc_helium_put_##T##_i32q(p, a);                                                                               \
    }
MCC_HELIUM_PUT(i8, int8_t, "vqmovnb.s32", "vqmovnb.s16")
MCC_HELIUM_PUT(u8, uint8_t, "vqmovunb.s32", "vqmovnb.u16")
#else
typedef struct mcc_i32q {
    int32_t lanes[4];
} mcc_i32q;
MCC_INLINE mcc_i32q mcc_set_i32q(int32_t value)
{
    const mcc_i32q found = {{value, value, value, value}};
    return found;
}
MCC_INLINE mcc_i32q mcc_shift_right_i32q(mcc_i32q a, int32_t by)
{
    for (mcc_index i = 0; i < 4; ++i) a.lanes[i] = mcc_shr_i32(a.lanes[i], by);
    return a;
}
#define MCC_HELIUM_BINARY(NAME, INTRINSIC, SCALAR)                                                                     \
    MCC_INLINE mcc_i32q mcc_##NAME##_i32q(mcc_i32q a, mcc_i32q b)                                                      \
    {                                                                                                                  \
        for (mcc_index i = 0; i < 4; ++i) a.lanes[i] = SCALAR(a.lanes[i], b.lanes[i]);                                 \
        return a;                                                                                                      \
    }
#define MCC_HELIUM_NEXT(T, C)                                                                                          \
    MCC_INLINE mcc_i32q mcc_helium_next_##T(const C **p)                                                               \
    {                                                                                                                  \
        const mcc_i32q found = {{(*p)[0], (*p)[1], (*p)[2], (*p)[3]}};                                                 \
        *p += 4;                                                                                                       \
        return found;                                                                                                  \
    }
MCC_HELIUM_NEXT(i8, int8_t)
MCC_HELIUM_NEXT(u8, uint8_t)
MCC_HELIUM_NEXT(i32, int32_t)
#define MCC_HELIUM_PUT(T, C)                                                                                           \
    MCC_INLINE void mcc_helium_put_##T##_i32q(C **p, mcc_i32q a)                                                       \
    {                                                                                                                  \
        for (mcc_index i = 0; i < 4; ++i) *(*p)++ = (C)a.lanes[i];                                                     \
    }                                                                                                                  \
    MCC_INLINE void mcc_helium_put_saturated_##T##_i32q(C **p, mcc_i32q a)                                             \
    {                                                                                                                  \
        for (mcc_index i = 0; i < 4; ++i) *(*p)++ = (C)mcc_saturate_##T(a.lanes[i]);                                   \
    }
MCC_HELIUM_PUT(i8, int8_t)
MCC_HELIUM_PUT(u8, uint8_t)
#endif
MCC_HELIUM_BINARY(add, vaddq_s32, mcc_add_i32)
MCC_HELIUM_BINARY(sub, vsubq_s32, mcc_sub_i32)
MCC_HELIUM_BINARY(mul, vmulq_s32, mcc_mul_i32)
MCC_HELIUM_BINARY(max, vmaxq_s32, mcc_max_i32)
MCC_HELIUM_BINARY(min, vminq_s32, mcc_min_i32)
MCC_INLINE mcc_i32q mcc_high_sum_i32q(mcc_i32q sum, mcc_i32q a, mcc_i32q b)
{
#if MCC_HELIUM_ASM
    return vaddq_s32(sum, vmulhq_s32(a, b));
#else
    for (mcc_index i = 0; i < 4; ++i) sum.lanes[i] = mcc_high_sum(sum.lanes[i], a.lanes[i], b.lanes[i]);
    return sum;
#endif
}
MCC_INLINE mcc_i32q mcc_saturate_i8_i32q(mcc_i32q a)
{
    return mcc_max_i32q(mcc_min_i32q(a, mcc_set_i32q(127)), mcc_set_i32q(-128));
}
MCC_INLINE mcc_i32q mcc_saturate_u8_i32q(mcc_i32q a)
{
    return mcc_max_i32q(mcc_min_i32q(a, mcc_set_i32q(255)), mcc_set_i32q(0));
}

#if MCC_HELIUM_ASM
/* r0 r2 r4 r6 sums of the first position, r8 r10 r12 lr of the second; r1 weights, r3 r5 elements, r7 end of those
 * of the first, r9 table, r11 y, q4 places. On the stack: x, that of the second position, where to enter, end of y. */
#if defined(__OPTIMIZE_SIZE__)
#define MCC_HELIUM_UNROLL "1"
#else
#define MCC_HELIUM_UNROLL "8"
#endif
#define MCC_HELIUM_DOT2X4(T, C, N, RAISE, NARROW)                                                                      \
    static __attribute__((naked, noinline, unused)) void mcc_helium_dot2x4_##T##_##N(                                  \
        const int8_t *w MCC_HELIUM_UNUSED, const int8_t *x MCC_HELIUM_UNUSED, C *y MCC_HELIUM_UNUSED,                  \
        const mcc_helium_result *t MCC_HELIUM_UNUSED)                                                                  \
    {                                                                                                                  \
        __asm__ volatile("push {r4-r11, lr}\n"                                                                         \
                         "vpush {d8-d9}\n"                                                                             \
                         "sub sp, #16\n"                                                                               \
                         "ldrd r9, r4, [r3]\n"                                                                         \
                         "ldrd r5, r6, [r3, #8]\n"                                                                     \
                         "vldrw.u32 q4, [r3, #16]\n"                                                                   \
                         "add r4, r4, r2\n"                                                                            \
                         "add r6, r6, r1\n"                                                                            \
                         "add r7, r1, r5, lsl #4\n"                                                                    \
                         "strd r1, r6, [sp]\n"                                                                         \
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
                         "strd r5, r4, [sp, #8]\n"                                                                     \
                         "mov r1, r0\n"                                                                                \
                         "2: ldrd r3, r5, [sp]\n"                                                                      \
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
                         "ldr pc, [sp, #8]\n"                                                                          \
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
                         "vmov q0[2], q0[0], r0, r4\n"                                                                 \
                         "vmov q0[3], q0[1], r2, r6\n"                                                                 \
                         "vmov q1[2], q1[0], r8, r12\n"                                                                \
                         "vmov q1[3], q1[1], r10, lr\n"                                                                \
                         "vldrw.u32 q2, [r9], #16\n"                                                                   \
                         "vadd.i32 q0, q0, q2\n"                                                                       \
                         "vadd.i32 q1, q1, q2\n"                                                                       \
                         RAISE "vldrw.u32 q2, [r9], #16\n"                                                             \
                         "vmulh.s32 q0, q0, q2\n"                                                                      \
                         "vmulh.s32 q1, q1, q2\n"                                                                      \
                         "vldrw.u32 q2, [r9], #16\n"                                                                   \
                         "vadd.i32 q0, q0, q2\n"                                                                       \
                         "vadd.i32 q1, q1, q2\n"                                                                       \
                         NARROW                                                                                        \
                         "vstrb.16 q0, [r11, q4]\n"                                                                    \
                         "add r11, r11, #4\n"                                                                          \
                         "ldr r3, [sp, #12]\n"                                                                         \
                         "cmp r11, r3\n"                                                                               \
                         "bne.w 2b\n"                                                                                  \
                         "add sp, #16\n"                                                                               \
                         "vpop {d8-d9}\n"                                                                              \
                         "pop {r4-r11, pc}\n");                                                                        \
    }
/* Sums in P and Q as bytes, by turns, in P. This rounds; assemblers take the forms that do not for those that do. */
#define MCC_HELIUM_NARROW_I8(P, Q, S)                                                                                  \
    "vqrshrnb.s32 " P ", " P ", #" #S "\nvqrshrnt.s32 " P ", " Q ", #" #S "\nvqmovnb.s16 " P ", " P "\n"
#define MCC_HELIUM_NARROW_U8(P, Q, S)                                                                                  \
    "vqrshrunb.s32 " P ", " P ", #" #S "\nvqrshrunt.s32 " P ", " Q ", #" #S "\nvqmovnb.u16 " P ", " P "\n"
#define MCC_HELIUM_RAISED "vldrw.u32 q2, [r9], #16\nvmul.i32 q0, q0, q2\nvmul.i32 q1, q1, q2\n"
#define MCC_HELIUM_PLAIN ""
#define MCC_HELIUM_DOTS_OF(N, S, RAISE)                                                                                \
    MCC_HELIUM_DOT2X4(i8, int8_t, N, RAISE, MCC_HELIUM_NARROW_I8("q0", "q1", S))                                       \
    MCC_HELIUM_DOT2X4(u8, uint8_t, N, RAISE, MCC_HELIUM_NARROW_U8("q0", "q1", S))

#else
#define MCC_HELIUM_DOT(T, C, N, S, ROWS)                                                                               \
    MCC_INLINE void mcc_helium_dot2x4_##T##_##N(const int8_t *w, const int8_t *x, C *y, const mcc_helium_result *t)    \
    {                                                                                                                  \
        for (mcc_index o = 0; o < t->channels; ++o) {                                                                  \
            const int32_t *const table = t->table + o / 4 * 4 * ROWS + o % 4;                                          \
            for (mcc_index p = 0; p < 2; ++p) {                                                                        \
                const int8_t *const own = w + (o / 4 * 4 * t->steps + o % 4) * 16;                                     \
                int32_t sum = table[0];                                                                                \
                for (mcc_index i = 0; i < t->steps * 16; ++i)                                                          \
                    sum = mcc_add_i32(sum, x[p * t->gap + i] * own[i / 16 * 64 + i % 16]);                             \
                sum = ROWS > 3 ? mcc_mul_i32(sum, table[4]) : sum;                                                     \
                sum = mcc_high_sum(mcc_add_i32(table[4 * ROWS - 4], 1 << (S - 1)), sum, table[4 * ROWS - 8]);          \
                y[o / 4 * 4 + t->places[o % 4 * 2 + p]] = (C)mcc_saturate_##T(mcc_shr_i32(sum, S));                    \
            }                                                                                                          \
        }                                                                                                              \
    }
#define MCC_HELIUM_RAISED 4
#define MCC_HELIUM_PLAIN 3
#define MCC_HELIUM_DOTS_OF(N, S, ROWS)                                                                                 \
    MCC_HELIUM_DOT(i8, int8_t, N, S, ROWS)                                                                             \
    MCC_HELIUM_DOT(u8, uint8_t, N, S, ROWS)
#endif

MCC_SHORT_ROUNDINGS(MCC_HELIUM_DOTS_OF, MCC_HELIUM_PLAIN, MCC_HELIUM_RAISED)

#endif /* MCC_HELIUM_H */
