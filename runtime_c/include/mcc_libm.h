/* mcc_libm.h - <math.h>, with functions of ours in place of some of the library's:
 *
 * - for avr-libc those of C99 that it lacks: expm1f, log1pf, asinhf, acoshf, atanhf, erff, each within 4 ulp where
 *   expf, logf and sqrtf are within 1. -DMCC_OWN_LIBM takes these everywhere;
 * - on Cortex-M with an FPU those of mcc_elementary.h, which take the same instructions for all numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_LIBM_H
#define MCC_LIBM_H

#include <math.h>

#if defined(__AVR__) || defined(MCC_OWN_LIBM)

#include "mcc_port.h"

#define MCC_LIBM_LN2 0.693147181f
#define MCC_LIBM_LARGE 1e9f /* from here on x * x + 1 is x * x */

/* What exp(x) and 1 + x lose of a small x is made up for by the quotient of the exact and the rounded argument. */
MCC_INLINE float mcc_libm_expm1(float x)
{
    const float power = expf(x), less = power - 1.0f;
    if (!(less > -1.0f) || power > 1e37f) return less; /* NaN too */
    return power == 1.0f ? x : less * (x / logf(power));
}

MCC_INLINE float mcc_libm_log1p(float x)
{
    const float sum = 1.0f + x;
    if (sum == x) return logf(x);
    return sum == 1.0f ? x : logf(sum) * (x / (sum - 1.0f));
}

MCC_INLINE float mcc_libm_asinh(float x)
{
    const float a = fabsf(x), square = a * a;
    const float y = a > MCC_LIBM_LARGE ? logf(a) + MCC_LIBM_LN2
                                       : mcc_libm_log1p(a + square / (1.0f + sqrtf(square + 1.0f)));
    return copysignf(y, x);
}

MCC_INLINE float mcc_libm_acosh(float x)
{
    const float t = x - 1.0f;
    return x > MCC_LIBM_LARGE ? logf(x) + MCC_LIBM_LN2 : mcc_libm_log1p(t + sqrtf(t) * sqrtf(x + 1.0f));
}

MCC_INLINE float mcc_libm_atanh(float x)
{
    const float a = fabsf(x);
    return copysignf(0.5f * mcc_libm_log1p(2.0f * a / (1.0f - a)), x);
}

/* 1 - exp of a polynomial, and a polynomial of x * x near 0. */
MCC_INLINE float mcc_libm_erf(float x)
{
    const float t = fabsf(x), s = x * x;
    float r;
    if (t > 0.927734375f) {
        if (t > 4.0f) return copysignf(1.0f, x);
        r = -1.72853470e-5f * t + 3.83197126e-4f;
        r = r * s + (-3.88396438e-3f * t + 2.42546219e-2f);
        r = r * t - 1.06777877e-1f;
        r = r * t - 6.34846687e-1f;
        r = r * t - 1.28717512e-1f;
        return copysignf(1.0f - expf(r * t - t), x);
    }
    r = -5.96761703e-4f;
    r = r * s + 4.99119423e-3f;
    r = r * s - 2.67681349e-2f;
    r = r * s + 1.12819925e-1f;
    r = r * s - 3.76125336e-1f;
    r = r * s + 1.28379166e-1f;
    return r * x + x;
}

#define expm1f mcc_libm_expm1
#define log1pf mcc_libm_log1p
#define asinhf mcc_libm_asinh
#define acoshf mcc_libm_acosh
#define atanhf mcc_libm_atanh
#define erff mcc_libm_erf

#elif defined(__ARM_FP) && defined(__ARM_ARCH_PROFILE) && !defined(expf)
#if (__ARM_FP & 4) != 0 && __ARM_ARCH_PROFILE == 'M'
#include "mcc_elementary.h"
#define expf mcc_elementary_exp
#define expm1f mcc_elementary_expm1
#define logf mcc_elementary_log
#define log1pf mcc_elementary_log1p
#define tanhf mcc_elementary_tanh
#define sinf mcc_elementary_sin
#define cosf mcc_elementary_cos
#endif
#endif
#endif
