/* mcc_vecmath_doubles.h - exp, log, tanh, erf, sin and their kin on vectors of doubles (mcc_vec_doubles.h), for H lanes
 * among 2, 4 and 8:
 *
 *     mcc_exp mcc_expm1 mcc_log mcc_log1p mcc_tanh mcc_erf _f64xH      error below 2 ulp
 *     mcc_sin mcc_cos mcc_sinh mcc_cosh mcc_asinh mcc_acosh mcc_atanh _f64xH
 *     mcc_fmod mcc_mod _f64xH                               what mcc_fmod_f64 and mcc_mod_f64 give
 *     mcc_tan mcc_asin mcc_acos mcc_atan mcc_pow _f64xH     those of the C library, lane by lane
 *
 * Denormal numbers are included; NaN gives NaN; signs of zeros are kept. Lanes that need more bits (sines of 2^20 and
 * more, or near to multiples of pi) ask libm. The polynomials are least-maximum fits of our own over the ranges that
 * the comments name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VECMATH_DOUBLES_H
#define MCC_VECMATH_DOUBLES_H

#include <math.h>

#include "mcc_math.h"
#include "mcc_vec_doubles.h"

/* These are long, and models call them in several places. Where registers are groups, calls would pass vectors in
 * memory. */
#if defined(__riscv_vector)
#define MCC_DOUBLES_CALLED MCC_VEC_INLINE
#else
#define MCC_DOUBLES_CALLED static inline __attribute__((unused))
#endif

/* (1 + q) * 2^n for a whole number n within -2046..2046, given k = n + MCC_WIDE_SHIFT: in two factors, as 2^n itself
 * may leave the range of doubles. */
#define MCC_DOUBLES_SCALE(H)                                                                                           \
    MCC_VEC_INLINE mcc_f64x##H mcc_scale_f64x##H(mcc_f64x##H q, mcc_f64x##H k)                                         \
    {                                                                                                                  \
        const mcc_u64x##H bits = (mcc_u64x##H)k + (mcc_u64x##H)mcc_set_b64x##H(2046), half = bits >> 1;                \
        const mcc_f64x##H size = (mcc_f64x##H)(half << 52), rest = (mcc_f64x##H)((bits - half) << 52);                 \
        return mcc_fma_f64x##H(q, size, size) * rest;                                                                  \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_scale
#if defined(__AVX512VL__)
#define MCC_DOUBLES_X86_SCALE(H, V, simd)                                                                              \
    MCC_VEC_INLINE mcc_f64x##H mcc_scale_f64x##H(mcc_f64x##H q, mcc_f64x##H k)                                         \
    {                                                                                                                  \
        const mcc_f64x##H n = k - mcc_set_f64x##H(MCC_WIDE_SHIFT), p = q + mcc_set_f64x##H(1.0);                       \
        return (mcc_f64x##H)simd##_maskz_scalef_pd((__mmask8)-1, (V)p, (V)n);                                          \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_scale
MCC_DOUBLES_X86_SCALE(2, __m128d, _mm);
MCC_DOUBLES_X86_SCALE(4, __m256d, _mm256);
MCC_DOUBLES_X86_SCALE(8, __m512d, _mm512);
#else
MCC_DOUBLES_SCALE(2);
#if MCC_VEC_LANES >= 8
MCC_DOUBLES_SCALE(4);
#endif
#if MCC_VEC_LANES >= 16
MCC_DOUBLES_SCALE(8);
#endif
#endif

/* x = n * log(2) + r, |r| <= log(2)/2; exp(r) = 1 + q, q = r + r^2/2 + r^3 * p(r). The first part of log(2) has 33
 * bits: products with it are exact. k = n + MCC_WIDE_SHIFT. */
#define MCC_DOUBLES_EXP(H, X)                                                                                          \
    const mcc_f64x##H shift = mcc_set_f64x##H(MCC_WIDE_SHIFT);                                                         \
    const mcc_f64x##H k = mcc_fma_f64x##H(X, mcc_set_f64x##H(1.4426950408889634), shift);                              \
    const mcc_f64x##H n = k - shift;                                                                                   \
    const mcc_f64x##H high = mcc_fma_f64x##H(n, mcc_set_f64x##H(-0.6931471803691238), X);                              \
    const mcc_f64x##H r = mcc_fma_f64x##H(n, mcc_set_f64x##H(-1.9082149292705877e-10), high);                          \
    mcc_f64x##H p = mcc_set_f64x##H(2.091817130916585e-09);                                                            \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(2.5100425540993716e-08));                                                \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(2.755726422638177e-07));                                                 \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(2.7557268375356204e-06));                                                \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(2.480158733403087e-05));                                                 \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.0001984126986310847));                                                 \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.0013888888888880918));                                                 \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.008333333333330051));                                                  \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.04166666666666667));                                                   \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.16666666666666669));                                                   \
    p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.5));                                                                   \
    const mcc_f64x##H q = mcc_fma_f64x##H(p, r * r, r);

#define MCC_DOUBLES_EXPONENTIALS(H)                                                                                    \
    /* 2^less * exp(x); 2^1025 and 2^-1078 are at the ends */                                                          \
    MCC_VEC_INLINE mcc_f64x##H mcc_exp_by_f64x##H(mcc_f64x##H x, double less)                                          \
    {                                                                                                                  \
        const mcc_f64x##H in = mcc_at_least_f64x##H(mcc_at_most_f64x##H(x, mcc_set_f64x##H(711.0)),                    \
            mcc_set_f64x##H(-746.0));                                                                                  \
        MCC_DOUBLES_EXP(H, in)                                                                                         \
        return mcc_scale_f64x##H(q, k + mcc_set_f64x##H(less));                                                        \
    }                                                                                                                  \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_exp_f64x##H(mcc_f64x##H x) { return mcc_exp_by_f64x##H(x, 0.0); }               \
    /* twice 2^(n - 1) * q + 2^(n - 1) - 1/2; q where n = 0. Below -40 the result is -1. */                            \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_expm1_f64x##H(mcc_f64x##H x)                                                    \
    {                                                                                                                  \
        const mcc_f64x##H in = mcc_at_least_f64x##H(mcc_at_most_f64x##H(x, mcc_set_f64x##H(710.0)),                    \
            mcc_set_f64x##H(-40.0));                                                                                   \
        const mcc_f64x##H half = mcc_set_f64x##H(0.5);                                                                 \
        MCC_DOUBLES_EXP(H, in)                                                                                         \
        const mcc_f64x##H size = (mcc_f64x##H)(((mcc_b64x##H)k + mcc_set_b64x##H(1022)) << 52);                        \
        const mcc_f64x##H far = mcc_fma_f64x##H(q, size, size - half);                                                 \
        const mcc_f64x##H y = mcc_select_f64x##H((mcc_b64x##H)(n == mcc_set_f64x##H(0.0)), q, far + far);              \
        return mcc_signed_f64x##H(mcc_abs_f64x##H(y), x);                                                              \
    }                                                                                                                  \
    /* x + x^3 * p(x^2) for |x| < 0.55, else 1 - 2 / (exp(2|x|) + 1), which is 1 from 20 on */                         \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_tanh_f64x##H(mcc_f64x##H x)                                                     \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_at_most_f64x##H(mcc_abs_f64x##H(x), mcc_set_f64x##H(20.0)), z = x * x;            \
        const mcc_f64x##H e = mcc_exp_by_f64x##H(size + size, 0.0);                                                    \
        const mcc_f64x##H far = mcc_set_f64x##H(1.0) - mcc_set_f64x##H(2.0) / (e + mcc_set_f64x##H(1.0));              \
        mcc_f64x##H p = mcc_set_f64x##H(-2.0177546150992934e-05);                                                      \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(8.449380907855161e-05));                                             \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.00023425260899283376));                                           \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.0005888059931846726));                                             \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.0014556351919299436));                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.0035921070181770074));                                             \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.008863234141168502));                                             \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.021869488482482935));                                              \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.05396825396718845));                                              \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.1333333333333251));                                                \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.3333333333333333));                                               \
        return mcc_signed_f64x##H(mcc_select_f64x##H((mcc_b64x##H)(size < mcc_set_f64x##H(0.55)),                      \
            mcc_abs_f64x##H(mcc_fma_f64x##H(p * z, x, x)), far), x);                                                   \
    }                                                                                                                  \
    /* x + x^3 * p(x^2) for |x| < 1, else h - 1 / (4 * h), h = exp(|x|) / 2 */                                         \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_sinh_f64x##H(mcc_f64x##H x)                                                     \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), z = x * x, half = mcc_exp_by_f64x##H(size, -1.0);                 \
        const mcc_f64x##H far = half - mcc_set_f64x##H(0.25) / half;                                                   \
        mcc_f64x##H p = mcc_set_f64x##H(7.748182272406707e-13);                                                        \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(1.605762394477803e-10));                                             \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(2.5052118271398336e-08));                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(2.7557319188667244e-06));                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.00019841269841329914));                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.008333333333333295));                                              \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.16666666666666666));                                               \
        return mcc_signed_f64x##H(mcc_select_f64x##H((mcc_b64x##H)(size < mcc_set_f64x##H(1.0)),                       \
            mcc_abs_f64x##H(mcc_fma_f64x##H(p * z, x, x)), far), x);                                                   \
    }                                                                                                                  \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_cosh_f64x##H(mcc_f64x##H x)                                                     \
    {                                                                                                                  \
        const mcc_f64x##H half = mcc_exp_by_f64x##H(mcc_abs_f64x##H(x), -1.0);                                         \
        return half + mcc_set_f64x##H(0.25) / half;                                                                    \
    }                                                                                                                  \
    /* |x| < 1: x + x * p(x^2); else 1 - exp(-q(|x| - 1)), which is 1 from 6 on */                                     \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_erf_f64x##H(mcc_f64x##H x)                                                      \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), z = x * x;                                                        \
        const mcc_f64x##H u = mcc_at_least_f64x##H(mcc_at_most_f64x##H(size, mcc_set_f64x##H(6.0)),                    \
            mcc_set_f64x##H(1.0)) - mcc_set_f64x##H(1.0);                                                              \
        mcc_f64x##H p = mcc_set_f64x##H(-7.801188874097751e-10);                                                       \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(1.3722976265924504e-08));                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-1.6209175911748696e-07));                                           \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(1.6447517677871873e-06));                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-1.4924744663335489e-05));                                           \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.00012055295320494294));                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.0008548325989696758));                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.005223977607423468));                                              \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.02686617064327622));                                              \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.11283791670945253));                                               \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.3761263890318355));                                               \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.12837916709551256));                                               \
        mcc_f64x##H e = mcc_set_f64x##H(4.864742504739347e-12);                                                        \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(-1.1932022811030046e-10));                                           \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(1.3190518993984098e-09));                                            \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(-8.518502453916215e-09));                                            \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(3.339033050395238e-08));                                             \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(-5.800940541384291e-08));                                            \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(-2.0481556730159732e-07));                                           \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(2.1319441478731673e-06));                                            \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(-9.671380702205931e-06));                                            \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(2.7198975080073612e-05));                                            \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(-2.6296328112544425e-05));                                           \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(-0.0002373164343344623));                                            \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(0.001977901215698808));                                              \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(-0.010033825179109826));                                             \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(0.04156109802508014));                                               \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(0.8431072563594125));                                                \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(2.6389675142347757));                                                \
        e = mcc_fma_f64x##H(e, u, mcc_set_f64x##H(1.8496055099332482));                                                \
        e = mcc_set_f64x##H(1.0) - mcc_exp_by_f64x##H(-e, 0.0);                                                        \
        return mcc_select_f64x##H((mcc_b64x##H)(size < mcc_set_f64x##H(1.0)), mcc_fma_f64x##H(p, x, x),                \
            mcc_signed_f64x##H(mcc_abs_f64x##H(e), x));                                                                \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_exponentials

#define MCC_DOUBLES_LOGARITHMS(H)                                                                                      \
    /* x = 2^n * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = f - f^2/2 + s * (f^2/2 + s^2 * p(s^2)) for        \
       s = f / (2 + f) */                                                                                              \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_log_f64x##H(mcc_f64x##H x)                                                      \
    {                                                                                                                  \
        const mcc_b64x##H tiny = (mcc_b64x##H)(x < mcc_set_f64x##H(2.2250738585072014e-308));                          \
        const mcc_b64x##H least = mcc_set_b64x##H(INT64_C(0x3fe6a09e667f3bcd));                                        \
        const mcc_b64x##H bits = (mcc_b64x##H)mcc_select_f64x##H(tiny, x * mcc_set_f64x##H(18014398509481984.0),       \
            x) - least;                                                                                                \
        const mcc_b64x##H shift = (mcc_b64x##H)mcc_set_f64x##H(MCC_WIDE_SHIFT);                                        \
        const mcc_b64x##H whole = (bits >> 52) - (tiny & mcc_set_b64x##H(54)) + shift;                                 \
        const mcc_f64x##H n = (mcc_f64x##H)whole - (mcc_f64x##H)shift;                                                 \
        const mcc_b64x##H kept = (bits & mcc_set_b64x##H(INT64_C(0x000fffffffffffff))) + least;                        \
        const mcc_f64x##H f = (mcc_f64x##H)kept - mcc_set_f64x##H(1.0);                                                \
        const mcc_f64x##H s = f / (f + mcc_set_f64x##H(2.0)), z = s * s, square = f * f * mcc_set_f64x##H(0.5);        \
        mcc_f64x##H p = mcc_set_f64x##H(0.14614765127674845);                                                          \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.1533191261302611));                                                \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.18182880927366427));                                               \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.22222211301904618));                                               \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.2857142862432957));                                                \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.3999999999990644));                                                \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.6666666666666669));                                                \
        p = mcc_fma_f64x##H(n, mcc_set_f64x##H(1.9082149292705877e-10), s * mcc_fma_f64x##H(p, z, square));            \
        p = mcc_fma_f64x##H(n, mcc_set_f64x##H(0.6931471803691238), f - (square - p));                                 \
        p = mcc_select_f64x##H((mcc_b64x##H)(x <= mcc_set_f64x##H(1.7976931348623157e308)), p, x);                     \
        p = mcc_select_f64x##H((mcc_b64x##H)(x == mcc_set_f64x##H(0.0)), mcc_set_f64x##H(-INFINITY), p);               \
        return mcc_select_f64x##H((mcc_b64x##H)(x < mcc_set_f64x##H(0.0)), mcc_set_f64x##H(NAN), p);                   \
    }                                                                                                                  \
    /* log of the rounded sum, and what rounding took away */                                                          \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_log1p_f64x##H(mcc_f64x##H x)                                                    \
    {                                                                                                                  \
        const mcc_f64x##H one = mcc_set_f64x##H(1.0), u = one + x, log = mcc_log_f64x##H(u);                           \
        const mcc_f64x##H lost = mcc_select_f64x##H((mcc_b64x##H)(x < one), x - (u - one), one - (u - x));             \
        const mcc_f64x##H none = u - u;                                                                                \
        const mcc_b64x##H ends = (mcc_b64x##H)(u == mcc_set_f64x##H(0.0)) | (mcc_b64x##H)(none != none);               \
        return mcc_select_f64x##H(ends, log, mcc_select_f64x##H((mcc_b64x##H)(u == one), x, log + lost / u));          \
    }                                                                                                                  \
    /* log(1 + 2y + 2y * y / (1 - y)) / 2 for y = |x| */                                                               \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_atanh_f64x##H(mcc_f64x##H x)                                                    \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), one = mcc_set_f64x##H(1.0), two = size + size;                    \
        const mcc_f64x##H at = mcc_select_f64x##H((mcc_b64x##H)(size == one), mcc_set_f64x##H(INFINITY),               \
            two + two * size / (one - size));                                                                          \
        const mcc_f64x##H y = mcc_log1p_f64x##H(at) * mcc_set_f64x##H(0.5);                                            \
        return mcc_select_f64x##H((mcc_b64x##H)(size > one), mcc_set_f64x##H(NAN),                                     \
            mcc_signed_f64x##H(mcc_abs_f64x##H(y), x));                                                                \
    }                                                                                                                  \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_asinh_f64x##H(mcc_f64x##H x)                                                    \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), z = size * size, one = mcc_set_f64x##H(1.0);                      \
        const mcc_f64x##H far = mcc_log_f64x##H(size) + mcc_set_f64x##H(0.6931471805599453);                           \
        const mcc_f64x##H y = mcc_log1p_f64x##H(size + z / (one + mcc_sqrt_f64x##H(one + z)));                         \
        const mcc_f64x##H up = mcc_select_f64x##H((mcc_b64x##H)(size > mcc_set_f64x##H(268435456.0)), far, y);         \
        return mcc_signed_f64x##H(mcc_abs_f64x##H(up), x);                                                             \
    }                                                                                                                  \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_acosh_f64x##H(mcc_f64x##H x)                                                    \
    {                                                                                                                  \
        const mcc_f64x##H t = x - mcc_set_f64x##H(1.0);                                                                \
        const mcc_f64x##H far = mcc_log_f64x##H(x) + mcc_set_f64x##H(0.6931471805599453);                              \
        const mcc_f64x##H y = mcc_log1p_f64x##H(t + mcc_sqrt_f64x##H(t * (t + mcc_set_f64x##H(2.0))));                 \
        return mcc_select_f64x##H((mcc_b64x##H)(x > mcc_set_f64x##H(268435456.0)), far,                                \
            mcc_select_f64x##H((mcc_b64x##H)(x < mcc_set_f64x##H(1.0)), mcc_set_f64x##H(NAN), y));                     \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_logarithms

/* Lanes of `y` that ask for more. */
#define MCC_DOUBLES_LANES(H, hard, of_lane)                                                                            \
    {                                                                                                                  \
        int i;                                                                                                         \
        if (mcc_any_b64x##H(hard))                                                                                     \
            for (i = 0; i < H; i++)                                                                                    \
                if (hard[i]) y[i] = of_lane;                                                                           \
    }

#define MCC_DOUBLES_WAVES(H)                                                                                           \
    /* x = n * pi/2 + r + low, |r| <= pi/4; the first two parts of pi/2 have 33 bits, and n has at most 20.            \
       sin(r) = r + r^3 * s(r^2), cos(r) = 1 - r^2/2 + r^4 * c(r^2). Hard: what this has too few bits for. */          \
    MCC_VEC_INLINE mcc_f64x##H mcc_wave_f64x##H(mcc_f64x##H x, int quarter, mcc_b64x##H *hard)                         \
    {                                                                                                                  \
        const mcc_f64x##H shift = mcc_set_f64x##H(MCC_WIDE_SHIFT);                                                     \
        const mcc_f64x##H k = mcc_fma_f64x##H(x, mcc_set_f64x##H(0.6366197723675814), shift);                          \
        const mcc_f64x##H n = k - shift;                                                                               \
        const mcc_f64x##H first = mcc_fma_f64x##H(n, mcc_set_f64x##H(-1.5707963267341256), x);                         \
        const mcc_f64x##H second = n * mcc_set_f64x##H(6.077100506303966e-11);                                         \
        const mcc_f64x##H third = n * mcc_set_f64x##H(2.0222662487959506e-21), near = first - second;                  \
        const mcc_f64x##H off = (first - near) - second;                                                               \
        const mcc_f64x##H rest = third - off, r = near - rest, low = (near - r) - rest;                                \
        const mcc_f64x##H z = r * r, half = z * mcc_set_f64x##H(0.5), one = mcc_set_f64x##H(1.0), w = one - half;      \
        const mcc_b64x##H at = (mcc_b64x##H)k + mcc_set_b64x##H(quarter), odd = -(at & mcc_set_b64x##H(1));            \
        const mcc_b64x##H flip = (at & mcc_set_b64x##H(2)) << 62;                                                      \
        mcc_f64x##H s = mcc_set_f64x##H(1.5918002273950452e-10);                                                       \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(-2.5051130101670965e-08));                                           \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(2.755731609430714e-06));                                             \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(-0.00019841269836742977));                                           \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(0.00833333333333094));                                               \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(-0.16666666666666666));                                              \
        mcc_f64x##H c = mcc_set_f64x##H(-1.1344292725433579e-11);                                                      \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(2.087556549513496e-09));                                             \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(-2.7557314207494504e-07));                                           \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(2.480158729221224e-05));                                             \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(-0.001388888888888254));                                             \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(0.04166666666666666));                                               \
        s = r + mcc_fma_f64x##H(s * z, r, mcc_fma_f64x##H(half, -low, low));                                           \
        c = w + ((one - w - half) + mcc_fma_f64x##H(z * z, c, -(r * low)));                                            \
        const mcc_b64x##H far = ~(mcc_b64x##H)(mcc_abs_f64x##H(x) < mcc_set_f64x##H(1048576.0));                       \
        const mcc_b64x##H turned = (mcc_b64x##H)(mcc_abs_f64x##H(x) > one);                                            \
        *hard = far | (turned & (mcc_b64x##H)(mcc_abs_f64x##H(r) < mcc_set_f64x##H(1e-6)));                            \
        return (mcc_f64x##H)((mcc_b64x##H)mcc_select_f64x##H(odd, c, mcc_signed_f64x##H(mcc_abs_f64x##H(s),            \
            r)) ^ flip);                                                                                               \
    }                                                                                                                  \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_sin_f64x##H(mcc_f64x##H x)                                                      \
    {                                                                                                                  \
        mcc_b64x##H hard;                                                                                              \
        mcc_f64x##H y = mcc_wave_f64x##H(x, 0, &hard);                                                                 \
        MCC_DOUBLES_LANES(H, hard, sin(x[i]))                                                                          \
        return y;                                                                                                      \
    }                                                                                                                  \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_cos_f64x##H(mcc_f64x##H x)                                                      \
    {                                                                                                                  \
        mcc_b64x##H hard;                                                                                              \
        mcc_f64x##H y = mcc_wave_f64x##H(x, 1, &hard);                                                                 \
        MCC_DOUBLES_LANES(H, hard, cos(x[i]))                                                                          \
        return y;                                                                                                      \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_waves

#define MCC_DOUBLES_EACH(H, name)                                                                                      \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_##name##_f64x##H(mcc_f64x##H x)                                                 \
    {                                                                                                                  \
        int i;                                                                                                         \
        for (i = 0; i < H; i++) x[i] = name(x[i]);                                                                     \
        return x;                                                                                                      \
    }
#define MCC_DOUBLES_BOTH(H, name, of)                                                                                  \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_##name##_f64x##H(mcc_f64x##H x, mcc_f64x##H y)                                  \
    {                                                                                                                  \
        int i;                                                                                                         \
        for (i = 0; i < H; i++) x[i] = of(x[i], y[i]);                                                                 \
        return x;                                                                                                      \
    }
#if defined(MCC_WIDE_FUSED)
/* What is left is exact where it is fused; it is below 0 where the quotient was rounded up. Hard: quotients of 2^51 and
 * more, infinities and NaN. */
#define MCC_DOUBLES_FMOD(H)                                                                                            \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_fmod_f64x##H(mcc_f64x##H x, mcc_f64x##H by)                                     \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), of = mcc_abs_f64x##H(by);                                         \
        const mcc_b64x##H near = (mcc_b64x##H)(size < of * mcc_set_f64x##H(2251799813685248.0));                       \
        const mcc_b64x##H finite = (mcc_b64x##H)(of <= mcc_set_f64x##H(1.7976931348623157e308));                       \
        const mcc_f64x##H rest = mcc_fma_f64x##H(-mcc_trunc_f64x##H(size / of), of, size);                             \
        const mcc_b64x##H below = (mcc_b64x##H)(rest < mcc_set_f64x##H(0.0));                                          \
        mcc_f64x##H y = mcc_signed_f64x##H(mcc_abs_f64x##H(mcc_select_f64x##H(below, rest + of, rest)), x);            \
        MCC_DOUBLES_LANES(H, ~(near & finite), fmod(x[i], by[i]))                                                      \
        return y;                                                                                                      \
    }
#else
#define MCC_DOUBLES_FMOD(H) MCC_DOUBLES_BOTH(H, fmod, fmod)
#endif
#define MCC_DOUBLES_MOD(H)                                                                                             \
    MCC_DOUBLES_CALLED mcc_f64x##H mcc_mod_f64x##H(mcc_f64x##H x, mcc_f64x##H by)                                      \
    {                                                                                                                  \
        const mcc_f64x##H rest = mcc_fmod_f64x##H(x, by), none = mcc_set_f64x##H(0.0);                                 \
        const mcc_b64x##H other = (mcc_b64x##H)(rest < none) ^ (mcc_b64x##H)(by < none);                               \
        const mcc_f64x##H y = mcc_select_f64x##H(other, rest + by, rest);                                              \
        return mcc_select_f64x##H((mcc_b64x##H)(rest == none), mcc_signed_f64x##H(none, by), y);                       \
    }
#define MCC_DOUBLES_FUNCTIONS(H)                                                                                       \
    MCC_DOUBLES_EXPONENTIALS(H);                                                                                       \
    MCC_DOUBLES_LOGARITHMS(H);                                                                                         \
    MCC_DOUBLES_WAVES(H);                                                                                              \
    MCC_DOUBLES_EACH(H, tan)                                                                                           \
    MCC_DOUBLES_EACH(H, asin)                                                                                          \
    MCC_DOUBLES_EACH(H, acos)                                                                                          \
    MCC_DOUBLES_EACH(H, atan)                                                                                          \
    MCC_DOUBLES_BOTH(H, pow, pow)                                                                                      \
    MCC_DOUBLES_FMOD(H)                                                                                                \
    MCC_DOUBLES_MOD(H)                                                                                                 \
    typedef double mcc_f64x##H##_functions_of_doubles

MCC_DOUBLES_FUNCTIONS(2);
#if MCC_VEC_LANES >= 8
MCC_DOUBLES_FUNCTIONS(4);
#endif
#if MCC_VEC_LANES >= 16
MCC_DOUBLES_FUNCTIONS(8);
#endif

#endif /* MCC_VECMATH_DOUBLES_H */
