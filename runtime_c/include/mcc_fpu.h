/* mcc_fpu.h - 32-bit floats on cores whose FPU multiplies and adds at once, one pair at a time: Cortex-M4, M7, M33.
 *
 *     mcc_fpu_sums_1(totals, x, w, n)          totals[j] += x[i] * w[8 i + j] for all i < n, j < 8
 *     mcc_fpu_sums_2(totals, x, step, w, n)    the same for x, and for x + step from totals[8] on
 *     mcc_fpu_each_1(totals, x, w, tap, n)     totals[j] += x[tap i + j] * w[8 i + j]
 *     mcc_fpu_each_2(totals, x, step, w, tap, n)
 *
 * All sums stay in registers; one instruction loads four of x or eight of w, which compilers do not find. Where these
 * are missing, C does the same; whether products are rounded before they are added is up to the compiler there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_FPU_H
#define MCC_FPU_H

#include "mcc.h"

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_FMA) && defined(__ARM_FP)
/* One copy for all kernels: the work of a call is many times what it takes to call. */
#define MCC_FPU_CALLED static __attribute__((noinline, unused))
#define MCC_FPU_WEIGHTS "vldmia %[w]!, {s8-s15}\n\t"
#define MCC_FPU_LOW(X) \
    "vfma.f32 s16, " X ", s8\n\t" \
    "vfma.f32 s17, " X ", s9\n\t" \
    "vfma.f32 s18, " X ", s10\n\t" \
    "vfma.f32 s19, " X ", s11\n\t" \
    "vfma.f32 s20, " X ", s12\n\t" \
    "vfma.f32 s21, " X ", s13\n\t" \
    "vfma.f32 s22, " X ", s14\n\t" \
    "vfma.f32 s23, " X ", s15\n\t"
#define MCC_FPU_HIGH(X) \
    "vfma.f32 s24, " X ", s8\n\t" \
    "vfma.f32 s25, " X ", s9\n\t" \
    "vfma.f32 s26, " X ", s10\n\t" \
    "vfma.f32 s27, " X ", s11\n\t" \
    "vfma.f32 s28, " X ", s12\n\t" \
    "vfma.f32 s29, " X ", s13\n\t" \
    "vfma.f32 s30, " X ", s14\n\t" \
    "vfma.f32 s31, " X ", s15\n\t"
/* Steps by fours, then one by one; `n` is not 0. */
#define MCC_FPU_LOOPS(FOUR, ONE) \
    "subs %[n], #4\n\t" \
    "blt 2f\n" \
    "1:\n\t" FOUR "subs %[n], #4\n\t" \
    "bge 1b\n" \
    "2:\n\t" \
    "adds %[n], #4\n\t" \
    "beq 4f\n" \
    "3:\n\t" ONE "subs %[n], #1\n\t" \
    "bne 3b\n" \
    "4:\n\t"

MCC_FPU_CALLED void mcc_fpu_sums_1(float *totals, const float *x, const float *w, mcc_index n)
{
    if (n <= 0) return;
    __asm__ volatile("vldmia %[totals], {s16-s23}\n\t"
                     MCC_FPU_LOOPS("vldmia %[x]!, {s0-s3}\n\t"
                                   MCC_FPU_WEIGHTS MCC_FPU_LOW("s0") MCC_FPU_WEIGHTS MCC_FPU_LOW("s1")
                                   MCC_FPU_WEIGHTS MCC_FPU_LOW("s2") MCC_FPU_WEIGHTS MCC_FPU_LOW("s3"),
                                   "vldmia %[x]!, {s0}\n\t" MCC_FPU_WEIGHTS MCC_FPU_LOW("s0"))
                     "vstmia %[totals], {s16-s23}"
                     : [x] "+r"(x), [w] "+r"(w), [n] "+r"(n)
                     : [totals] "r"(totals)
                     : "s0", "s1", "s2", "s3", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17",
                       "s18", "s19", "s20", "s21", "s22", "s23", "cc", "memory");
}

#define MCC_FPU_BOTH(X, Y) MCC_FPU_WEIGHTS MCC_FPU_LOW(X) MCC_FPU_HIGH(Y)
MCC_FPU_CALLED void mcc_fpu_sums_2(float *totals, const float *x, mcc_index step, const float *w, mcc_index n)
{
    const float *y = x + step;
    if (n <= 0) return;
    __asm__ volatile("vldmia %[totals], {s16-s31}\n\t"
                     MCC_FPU_LOOPS("vldmia %[x]!, {s0-s3}\n\t"
                                   "vldmia %[y]!, {s4-s7}\n\t"
                                   MCC_FPU_BOTH("s0", "s4") MCC_FPU_BOTH("s1", "s5")
                                   MCC_FPU_BOTH("s2", "s6") MCC_FPU_BOTH("s3", "s7"),
                                   "vldmia %[x]!, {s0}\n\t"
                                   "vldmia %[y]!, {s4}\n\t" MCC_FPU_BOTH("s0", "s4"))
                     "vstmia %[totals], {s16-s31}"
                     : [x] "+r"(x), [y] "+r"(y), [w] "+r"(w), [n] "+r"(n)
                     : [totals] "r"(totals)
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",
                       "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28",
                       "s29", "s30", "s31", "cc", "memory");
}

#define MCC_FPU_EACH(FROM, A, B, C, D, E, F, G, H) \
    "vldmia %[" FROM "], {s0-s7}\n\t" \
    "add %[" FROM "], %[tap]\n\t" \
    "vfma.f32 s" #A ", s0, s8\n\t" \
    "vfma.f32 s" #B ", s1, s9\n\t" \
    "vfma.f32 s" #C ", s2, s10\n\t" \
    "vfma.f32 s" #D ", s3, s11\n\t" \
    "vfma.f32 s" #E ", s4, s12\n\t" \
    "vfma.f32 s" #F ", s5, s13\n\t" \
    "vfma.f32 s" #G ", s6, s14\n\t" \
    "vfma.f32 s" #H ", s7, s15\n\t"

MCC_FPU_CALLED void mcc_fpu_each_1(float *totals, const float *x, const float *w, mcc_index tap, mcc_index n)
{
    if (n <= 0) return;
    __asm__ volatile("vldmia %[totals], {s16-s23}\n"
                     "1:\n\t" MCC_FPU_WEIGHTS MCC_FPU_EACH("x", 16, 17, 18, 19, 20, 21, 22, 23)
                     "subs %[n], #1\n\t"
                     "bne 1b\n\t"
                     "vstmia %[totals], {s16-s23}"
                     : [x] "+r"(x), [w] "+r"(w), [n] "+r"(n)
                     : [totals] "r"(totals), [tap] "r"(4 * tap)
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",
                       "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "cc", "memory");
}

MCC_FPU_CALLED void mcc_fpu_each_2(float *totals, const float *x, mcc_index step, const float *w, mcc_index tap,
                                   mcc_index n)
{
    const float *y = x + step;
    if (n <= 0) return;
    __asm__ volatile("vldmia %[totals], {s16-s31}\n"
                     "1:\n\t" MCC_FPU_WEIGHTS MCC_FPU_EACH("x", 16, 17, 18, 19, 20, 21, 22, 23)
                     MCC_FPU_EACH("y", 24, 25, 26, 27, 28, 29, 30, 31)
                     "subs %[n], #1\n\t"
                     "bne 1b\n\t"
                     "vstmia %[totals], {s16-s31}"
                     : [x] "+r"(x), [y] "+r"(y), [w] "+r"(w), [n] "+r"(n)
                     : [totals] "r"(totals), [tap] "r"(4 * tap)
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",
                       "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28",
                       "s29", "s30", "s31", "cc", "memory");
}
#else
MCC_INLINE void mcc_fpu_sums_1(float *totals, const float *x, const float *w, mcc_index n)
{
    for (mcc_index i = 0; i < n; ++i) {
        for (mcc_index j = 0; j < 8; ++j) totals[j] += x[i] * w[8 * i + j];
    }
}

MCC_INLINE void mcc_fpu_sums_2(float *totals, const float *x, mcc_index step, const float *w, mcc_index n)
{
    mcc_fpu_sums_1(totals, x, w, n);
    mcc_fpu_sums_1(totals + 8, x + step, w, n);
}

MCC_INLINE void mcc_fpu_each_1(float *totals, const float *x, const float *w, mcc_index tap, mcc_index n)
{
    for (mcc_index i = 0; i < n; ++i) {
        for (mcc_index j = 0; j < 8; ++j) totals[j] += x[tap * i + j] * w[8 * i + j];
    }
}

MCC_INLINE void mcc_fpu_each_2(float *totals, const float *x, mcc_index step, const float *w, mcc_index tap,
                               mcc_index n)
{
    mcc_fpu_each_1(totals, x, w, tap, n);
    mcc_fpu_each_1(totals + 8, x + step, w, tap, n);
}
#endif

#endif /* MCC_FPU_H */
