/* mcc_fpu.h - 32-bit floats on cores whose FPU multiplies and adds at once, one pair at a time: Cortex-M4, M7, M33.
 *
 * Sums of a tile of P points (1 or 2) x L lanes (1 to 8), over `rows` runs of `n` steps. Runs begin `x_row` elements
 * apart in x, and `w_row` apart in the weights. For p < P, j < L, r < rows, i < n:
 *
 *     mcc_fpu_sums_PxL(totals, x, step, w, n, rows, x_row, w_row)
 *         totals[L p + j] += x[step p + x_row r + i] * w[w_row r + L i + j]
 *     mcc_fpu_bytes_PxL    the same with weights of int8_t
 *     mcc_fpu_each_PxL(totals, x, step, w, tap, n, rows, x_row, w_row)
 *         totals[L p + j] += x[step p + x_row r + tap i + j] * w[w_row r + L i + j]
 *
 * All sums stay in registers; one instruction loads four of x or the weights of all lanes, which compilers do not find.
 * Where these are missing, C does the same; whether products are rounded before they are added is up to the compiler
 * there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_FPU_H
#define MCC_FPU_H

#include "mcc.h"

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_FMA) && defined(__ARM_FP)
/* One copy for all kernels: the work of a call is many times what it takes to call. */
#define MCC_FPU_CALLED static __attribute__((noinline, unused))

/* One of x times the weights in s8 and on: sums of the first point lie in s16 and on, of the second in s24 and on. */
#define MCC_FPU_LOW_1(X) "vfma.f32 s16, " X ", s8\n\t"
#define MCC_FPU_LOW_2(X) MCC_FPU_LOW_1(X) "vfma.f32 s17, " X ", s9\n\t"
#define MCC_FPU_LOW_3(X) MCC_FPU_LOW_2(X) "vfma.f32 s18, " X ", s10\n\t"
#define MCC_FPU_LOW_4(X) MCC_FPU_LOW_3(X) "vfma.f32 s19, " X ", s11\n\t"
#define MCC_FPU_LOW_5(X) MCC_FPU_LOW_4(X) "vfma.f32 s20, " X ", s12\n\t"
#define MCC_FPU_LOW_6(X) MCC_FPU_LOW_5(X) "vfma.f32 s21, " X ", s13\n\t"
#define MCC_FPU_LOW_7(X) MCC_FPU_LOW_6(X) "vfma.f32 s22, " X ", s14\n\t"
#define MCC_FPU_LOW_8(X) MCC_FPU_LOW_7(X) "vfma.f32 s23, " X ", s15\n\t"
#define MCC_FPU_HIGH_1(X) "vfma.f32 s24, " X ", s8\n\t"
#define MCC_FPU_HIGH_2(X) MCC_FPU_HIGH_1(X) "vfma.f32 s25, " X ", s9\n\t"
#define MCC_FPU_HIGH_3(X) MCC_FPU_HIGH_2(X) "vfma.f32 s26, " X ", s10\n\t"
#define MCC_FPU_HIGH_4(X) MCC_FPU_HIGH_3(X) "vfma.f32 s27, " X ", s11\n\t"
#define MCC_FPU_HIGH_5(X) MCC_FPU_HIGH_4(X) "vfma.f32 s28, " X ", s12\n\t"
#define MCC_FPU_HIGH_6(X) MCC_FPU_HIGH_5(X) "vfma.f32 s29, " X ", s13\n\t"
#define MCC_FPU_HIGH_7(X) MCC_FPU_HIGH_6(X) "vfma.f32 s30, " X ", s14\n\t"
#define MCC_FPU_HIGH_8(X) MCC_FPU_HIGH_7(X) "vfma.f32 s31, " X ", s15\n\t"
/* The same with an x of its own for each lane, in s0 and on. */
#define MCC_FPU_EACH_LOW_1 "vfma.f32 s16, s0, s8\n\t"
#define MCC_FPU_EACH_LOW_2 MCC_FPU_EACH_LOW_1 "vfma.f32 s17, s1, s9\n\t"
#define MCC_FPU_EACH_LOW_3 MCC_FPU_EACH_LOW_2 "vfma.f32 s18, s2, s10\n\t"
#define MCC_FPU_EACH_LOW_4 MCC_FPU_EACH_LOW_3 "vfma.f32 s19, s3, s11\n\t"
#define MCC_FPU_EACH_LOW_5 MCC_FPU_EACH_LOW_4 "vfma.f32 s20, s4, s12\n\t"
#define MCC_FPU_EACH_LOW_6 MCC_FPU_EACH_LOW_5 "vfma.f32 s21, s5, s13\n\t"
#define MCC_FPU_EACH_LOW_7 MCC_FPU_EACH_LOW_6 "vfma.f32 s22, s6, s14\n\t"
#define MCC_FPU_EACH_LOW_8 MCC_FPU_EACH_LOW_7 "vfma.f32 s23, s7, s15\n\t"
#define MCC_FPU_EACH_HIGH_1 "vfma.f32 s24, s0, s8\n\t"
#define MCC_FPU_EACH_HIGH_2 MCC_FPU_EACH_HIGH_1 "vfma.f32 s25, s1, s9\n\t"
#define MCC_FPU_EACH_HIGH_3 MCC_FPU_EACH_HIGH_2 "vfma.f32 s26, s2, s10\n\t"
#define MCC_FPU_EACH_HIGH_4 MCC_FPU_EACH_HIGH_3 "vfma.f32 s27, s3, s11\n\t"
#define MCC_FPU_EACH_HIGH_5 MCC_FPU_EACH_HIGH_4 "vfma.f32 s28, s4, s12\n\t"
#define MCC_FPU_EACH_HIGH_6 MCC_FPU_EACH_HIGH_5 "vfma.f32 s29, s5, s13\n\t"
#define MCC_FPU_EACH_HIGH_7 MCC_FPU_EACH_HIGH_6 "vfma.f32 s30, s6, s14\n\t"
#define MCC_FPU_EACH_HIGH_8 MCC_FPU_EACH_HIGH_7 "vfma.f32 s31, s7, s15\n\t"
/* Weights of 8 bits as floats. */
#define MCC_FPU_BYTE(A) \
    "ldrsb %[a], [%[w]], #1\n\t" \
    "vmov " A ", %[a]\n\t" \
    "vcvt.f32.s32 " A ", " A "\n\t"
#define MCC_FPU_PAIR(A, B) \
    "ldrsb %[a], [%[w]], #1\n\t" \
    "ldrsb %[b], [%[w]], #1\n\t" \
    "vmov " A ", " B ", %[a], %[b]\n\t" \
    "vcvt.f32.s32 " A ", " A "\n\t" \
    "vcvt.f32.s32 " B ", " B "\n\t"
#define MCC_FPU_BYTES_1 MCC_FPU_BYTE("s8")
#define MCC_FPU_BYTES_2 MCC_FPU_PAIR("s8", "s9")
#define MCC_FPU_BYTES_3 MCC_FPU_BYTES_2 MCC_FPU_BYTE("s10")
#define MCC_FPU_BYTES_4 MCC_FPU_BYTES_2 MCC_FPU_PAIR("s10", "s11")
#define MCC_FPU_BYTES_5 MCC_FPU_BYTES_4 MCC_FPU_BYTE("s12")
#define MCC_FPU_BYTES_6 MCC_FPU_BYTES_4 MCC_FPU_PAIR("s12", "s13")
#define MCC_FPU_BYTES_7 MCC_FPU_BYTES_6 MCC_FPU_BYTE("s14")
#define MCC_FPU_BYTES_8 MCC_FPU_BYTES_6 MCC_FPU_PAIR("s14", "s15")

/* The runs of a tile of one point, and of two. `run` has the steps of one, and how far it is to the next in x and w. */
#define MCC_FPU_NEXT "ldr %[i], [%[run], #8]\n\tadd %[w], %[i]\n\tsubs %[rows], #1\n\tbne 1b\n\t"
#define MCC_FPU_TILE_1(LOW, HIGH, STEPS) \
    "vldmia %[totals], {" LOW "}\n" \
    "1:\n\tldr %[i], [%[run]]\n\t" STEPS "ldr %[i], [%[run], #4]\n\tadd %[x], %[i]\n\t" MCC_FPU_NEXT \
    "vstmia %[totals], {" LOW "}"
#define MCC_FPU_TILE_2(LOW, HIGH, STEPS) \
    "vldmia %[totals]!, {" LOW "}\n\tvldmia %[totals]!, {" HIGH "}\n" \
    "1:\n\tldr %[i], [%[run]]\n\t" STEPS "ldr %[i], [%[run], #4]\n\tadd %[x], %[i]\n\tadd %[y], %[i]\n\t" MCC_FPU_NEXT \
    "vstmdb %[totals]!, {" HIGH "}\n\tvstmdb %[totals]!, {" LOW "}"
/* The steps of a run: by fours and then one by one, or all of them one by one. */
#define MCC_FPU_FOURS(FOUR, ONE) \
    "subs %[i], #4\n\tblt 3f\n" \
    "2:\n\t" FOUR "subs %[i], #4\n\tbge 2b\n" \
    "3:\n\tadds %[i], #4\n\tbeq 5f\n" \
    "4:\n\t" ONE "subs %[i], #1\n\tbne 4b\n" \
    "5:\n\t"
#define MCC_FPU_ONES(ONE) "2:\n\t" ONE "subs %[i], #1\n\tbne 2b\n\t"
#define MCC_FPU_LOAD_1(X, Y) "vldmia %[x]!, {" X "}\n\t"
#define MCC_FPU_LOAD_2(X, Y) "vldmia %[x]!, {" X "}\n\tvldmia %[y]!, {" Y "}\n\t"
#define MCC_FPU_STEP_1(L, W, X, Y) W MCC_FPU_LOW_##L(X)
#define MCC_FPU_STEP_2(L, W, X, Y) W MCC_FPU_LOW_##L(X) MCC_FPU_HIGH_##L(Y)
#define MCC_FPU_STEPS(P, L, W) \
    MCC_FPU_FOURS(MCC_FPU_LOAD_##P("s0-s3", "s4-s7") MCC_FPU_STEP_##P(L, W, "s0", "s4") \
                      MCC_FPU_STEP_##P(L, W, "s1", "s5") MCC_FPU_STEP_##P(L, W, "s2", "s6") \
                      MCC_FPU_STEP_##P(L, W, "s3", "s7"), \
                  MCC_FPU_LOAD_##P("s0", "s4") MCC_FPU_STEP_##P(L, W, "s0", "s4"))
#define MCC_FPU_BYTE_STEPS(P, L, W) MCC_FPU_ONES(MCC_FPU_LOAD_##P("s0", "s4") MCC_FPU_STEP_##P(L, W, "s0", "s4"))
#define MCC_FPU_WEIGHTS(W) "vldmia %[w]!, {" W "}\n\t"
#define MCC_FPU_TAP(FROM, X) "vldmia %[" FROM "], {" X "}\n\tadd %[" FROM "], %[tap]\n\t"
#define MCC_FPU_EACH_1(L, X) MCC_FPU_TAP("x", X) MCC_FPU_EACH_LOW_##L
#define MCC_FPU_EACH_2(L, X) MCC_FPU_TAP("x", X) MCC_FPU_EACH_LOW_##L MCC_FPU_TAP("y", X) MCC_FPU_EACH_HIGH_##L

/* What the texts change, what they read, and what they use. */
#define MCC_FPU_MOVED \
    [totals] "+r"(totals), [x] "+r"(x), [y] "+r"(y), [w] "+r"(w), [rows] "+r"(rows), [i] "=&r"(i)
#define MCC_FPU_FIXED [run] "r"(run)
#define MCC_FPU_USED \
    "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", \
        "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", "cc", \
        "memory"
#define MCC_FPU_DEFINE_SUMS(P, L, W, X, LOW, HIGH) \
    MCC_FPU_CALLED void mcc_fpu_sums_##P##x##L(float *totals, const float *x, mcc_index step, const float *w, \
                                               mcc_index n, mcc_index rows, mcc_index x_row, mcc_index w_row) \
    { \
        const mcc_index run[3] = {n, (x_row - n) * 4, (w_row - n * L) * 4}; \
        const float *y = x + step; \
        mcc_index i; \
        if (n <= 0 || rows <= 0) return; \
        __asm__ volatile(MCC_FPU_TILE_##P(LOW, HIGH, MCC_FPU_STEPS(P, L, MCC_FPU_WEIGHTS(W))) \
                         : MCC_FPU_MOVED : MCC_FPU_FIXED : MCC_FPU_USED); \
    }
#define MCC_FPU_DEFINE_BYTES(P, L, W, X, LOW, HIGH) \
    MCC_FPU_CALLED void mcc_fpu_bytes_##P##x##L(float *totals, const float *x, mcc_index step, const int8_t *w, \
                                                mcc_index n, mcc_index rows, mcc_index x_row, mcc_index w_row) \
    { \
        const mcc_index run[3] = {n, (x_row - n) * 4, w_row - n * L}; \
        const float *y = x + step; \
        mcc_index i, a, b; \
        if (n <= 0 || rows <= 0) return; \
        __asm__ volatile(MCC_FPU_TILE_##P(LOW, HIGH, MCC_FPU_BYTE_STEPS(P, L, MCC_FPU_BYTES_##L)) \
                         : MCC_FPU_MOVED, [a] "=&r"(a), [b] "=&r"(b) : MCC_FPU_FIXED : MCC_FPU_USED); \
    }
#define MCC_FPU_DEFINE_EACH(P, L, W, X, LOW, HIGH) \
    MCC_FPU_CALLED void mcc_fpu_each_##P##x##L(float *totals, const float *x, mcc_index step, const float *w, \
                                               mcc_index tap, mcc_index n, mcc_index rows, mcc_index x_row, \
                                               mcc_index w_row) \
    { \
        const mcc_index run[3] = {n, (x_row - n * tap) * 4, (w_row - n * L) * 4}; \
        const float *y = x + step; \
        mcc_index i; \
        if (n <= 0 || rows <= 0) return; \
        tap *= 4; \
        __asm__ volatile(MCC_FPU_TILE_##P(LOW, HIGH, MCC_FPU_ONES(MCC_FPU_WEIGHTS(W) MCC_FPU_EACH_##P(L, X))) \
                         : MCC_FPU_MOVED : MCC_FPU_FIXED, [tap] "r"(tap) : MCC_FPU_USED); \
    }
#else
#define MCC_FPU_DEFINE_RUNS(NAME, P, L, TYPE) \
    MCC_INLINE void NAME(float *totals, const float *x, mcc_index step, const TYPE *w, mcc_index n, mcc_index rows, \
                         mcc_index x_row, mcc_index w_row) \
    { \
        for (mcc_index r = 0; r < rows; ++r) { \
            for (mcc_index i = 0; i < n; ++i) { \
                for (mcc_index j = 0; j < P * L; ++j) { \
                    totals[j] += x[step * (j / L) + x_row * r + i] * (float)w[w_row * r + L * i + j % L]; \
                } \
            } \
        } \
    }
#define MCC_FPU_DEFINE_SUMS(P, L, W, X, LOW, HIGH) MCC_FPU_DEFINE_RUNS(mcc_fpu_sums_##P##x##L, P, L, float)
#define MCC_FPU_DEFINE_BYTES(P, L, W, X, LOW, HIGH) MCC_FPU_DEFINE_RUNS(mcc_fpu_bytes_##P##x##L, P, L, int8_t)
#define MCC_FPU_DEFINE_EACH(P, L, W, X, LOW, HIGH) \
    MCC_INLINE void mcc_fpu_each_##P##x##L(float *totals, const float *x, mcc_index step, const float *w, \
                                           mcc_index tap, mcc_index n, mcc_index rows, mcc_index x_row, \
                                           mcc_index w_row) \
    { \
        for (mcc_index r = 0; r < rows; ++r) { \
            for (mcc_index i = 0; i < n; ++i) { \
                for (mcc_index j = 0; j < P * L; ++j) { \
                    const mcc_index from = step * (j / L) + x_row * r + tap * i + j % L; \
                    totals[j] += x[from] * w[w_row * r + L * i + j % L]; \
                } \
            } \
        } \
    }
#endif

#define MCC_FPU_DEFINE(L, W, X, LOW, HIGH) \
    MCC_FPU_DEFINE_SUMS(1, L, W, X, LOW, HIGH) \
    MCC_FPU_DEFINE_SUMS(2, L, W, X, LOW, HIGH) \
    MCC_FPU_DEFINE_BYTES(1, L, W, X, LOW, HIGH) \
    MCC_FPU_DEFINE_BYTES(2, L, W, X, LOW, HIGH) \
    MCC_FPU_DEFINE_EACH(1, L, W, X, LOW, HIGH) \
    MCC_FPU_DEFINE_EACH(2, L, W, X, LOW, HIGH)
MCC_FPU_DEFINE(1, "s8", "s0", "s16", "s24")
MCC_FPU_DEFINE(2, "s8-s9", "s0-s1", "s16-s17", "s24-s25")
MCC_FPU_DEFINE(3, "s8-s10", "s0-s2", "s16-s18", "s24-s26")
MCC_FPU_DEFINE(4, "s8-s11", "s0-s3", "s16-s19", "s24-s27")
MCC_FPU_DEFINE(5, "s8-s12", "s0-s4", "s16-s20", "s24-s28")
MCC_FPU_DEFINE(6, "s8-s13", "s0-s5", "s16-s21", "s24-s29")
MCC_FPU_DEFINE(7, "s8-s14", "s0-s6", "s16-s22", "s24-s30")
MCC_FPU_DEFINE(8, "s8-s15", "s0-s7", "s16-s23", "s24-s31")

#endif /* MCC_FPU_H */
