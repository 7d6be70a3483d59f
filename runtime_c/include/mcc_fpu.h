/* mcc_fpu.h - 32-bit floats on cores whose FPU multiplies and adds at once, one pair at a time: Cortex-M4, M7, M33.
 *
 *     MCC_FPU_ADD8(a, b, c, d, e, f, g, h, x, w)    x times w[0] .. w[7], added to a .. h
 *
 * One instruction loads all eight of w, which compilers do not find. Where it is missing, C does the same; whether
 * products are rounded before they are added is up to the compiler there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_FPU_H
#define MCC_FPU_H

#include "mcc.h"

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_FMA) && defined(__ARM_FP)
typedef struct {
    float of[8];
} mcc_fpu_eight; /* what the assembly reads */

#define MCC_FPU_ADD8(a, b, c, d, e, f, g, h, x, w) \
    __asm__("vldmia %[from], {s16-s23}\n\t" \
            "vfma.f32 %0, %[by], s16\n\t" \
            "vfma.f32 %1, %[by], s17\n\t" \
            "vfma.f32 %2, %[by], s18\n\t" \
            "vfma.f32 %3, %[by], s19\n\t" \
            "vfma.f32 %4, %[by], s20\n\t" \
            "vfma.f32 %5, %[by], s21\n\t" \
            "vfma.f32 %6, %[by], s22\n\t" \
            "vfma.f32 %7, %[by], s23" \
            : "+t"(a), "+t"(b), "+t"(c), "+t"(d), "+t"(e), "+t"(f), "+t"(g), "+t"(h) \
            : [by] "t"(x), [from] "r"(w), "m"(*(const mcc_fpu_eight *)(const void *)(w)) \
            : "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23")
#else
#define MCC_FPU_ADD8(a, b, c, d, e, f, g, h, x, w) \
    do { \
        (a) += (x) * (w)[0]; \
        (b) += (x) * (w)[1]; \
        (c) += (x) * (w)[2]; \
        (d) += (x) * (w)[3]; \
        (e) += (x) * (w)[4]; \
        (f) += (x) * (w)[5]; \
        (g) += (x) * (w)[6]; \
        (h) += (x) * (w)[7]; \
    } while (0)
#endif

#endif /* MCC_FPU_H */
