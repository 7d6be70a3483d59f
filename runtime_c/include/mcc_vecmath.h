/* mcc_vecmath.h - exp, log, tanh, erf, asin and their kin on vectors of floats (mcc_vec.h), for 4, 8 and 16 lanes.
 *
 *     mcc_exp_f32xN     error below 1.5 ulp; infinity above 88.73, and denormal numbers down to zero, as they should be
 *     mcc_expm1_f32xN   below 2 ulp
 *     mcc_log_f32xN     below 1.5 ulp; denormal numbers included; -infinity of zero, NaN below
 *     mcc_log1p_f32xN   below 2 ulp
 *     mcc_tanh_f32xN    below 2 ulp; exactly -1 and 1 at the ends
 *     mcc_erf_f32xN     below 2 ulp; exactly -1 and 1 at the ends
 *     mcc_asin_f32xN mcc_acos_f32xN mcc_atan_f32xN   below 2 ulp; NaN of what is not a sine
 *
 * An ulp is the distance of neighbouring floats at the exact result. NaN gives NaN; signs of zeros are kept. The same
 * vectors give the same results in every lane; machines with and without fused multiply-add may differ in the last bit.
 * The polynomials are least-maximum fits of our own over the ranges that the comments name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VECMATH_H
#define MCC_VECMATH_H

#include <math.h>

#include "mcc_vec.h"

/* (1 + q) * 2^n for a whole number n within -254..160, given t = n + 3 * 2^22 + 254: in two factors, as 2^n itself may
 * leave the range of floats. Half of the bits of t, shifted to the exponent, are one of them, the other half is the
 * rest. */
#define MCC_VEC_SCALE(N)                                                                                               \
    MCC_VEC_INLINE mcc_f32x##N mcc_scale_f32x##N(mcc_f32x##N q, mcc_f32x##N t)                                         \
    {                                                                                                                  \
        const mcc_i32x##N bits = (mcc_i32x##N)t, half = bits >> 1;                                                     \
        const mcc_f32x##N size = (mcc_f32x##N)(half << 23), rest = (mcc_f32x##N)((bits - half) << 23);                 \
        return mcc_mul_f32x##N(mcc_fma_f32x##N(q, size, size), rest);                                                  \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_scale

/* Lanes whose result is 0 are left out: to compute a number too small for floats takes 100 times as long. */
#if defined(__AVX512VL__)
#define MCC_VECMATH_X86_SCALE(N, V, simd)                                                                              \
    MCC_VEC_INLINE mcc_f32x##N mcc_scale_f32x##N(mcc_f32x##N q, mcc_f32x##N t)                                         \
    {                                                                                                                  \
        const V p = (V)mcc_add_f32x##N(q, mcc_set_f32x##N(1.0f));                                                      \
        const V n = (V)mcc_sub_f32x##N(t, mcc_set_f32x##N(12583166.0f));                                               \
        const __mmask8 some = simd##_cmp_ps_mask(n, (V)mcc_set_f32x##N(-150.0f), _CMP_NLT_UQ);                         \
        return (mcc_f32x##N)simd##_maskz_scalef_ps(some, p, n);                                                        \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_scale
MCC_VECMATH_X86_SCALE(4, __m128, _mm);
MCC_VECMATH_X86_SCALE(8, __m256, _mm256);
#else
MCC_VEC_SCALE(4);
#if MCC_VEC_LANES >= 8
MCC_VEC_SCALE(8);
#endif
#endif
#if defined(__AVX512F__)
MCC_VEC_INLINE mcc_f32x16 mcc_scale_f32x16(mcc_f32x16 q, mcc_f32x16 t)
{
    const __m512 p = (__m512)mcc_add_f32x16(q, mcc_set_f32x16(1.0f));
    const __m512 n = (__m512)mcc_sub_f32x16(t, mcc_set_f32x16(12583166.0f));
    const __mmask16 some = _mm512_cmp_ps_mask(n, (__m512)mcc_set_f32x16(-150.0f), _CMP_NLT_UQ);
    return (mcc_f32x16)_mm512_maskz_scalef_ps(some, p, n);
}
#elif MCC_VEC_LANES >= 16
MCC_VEC_SCALE(16);
#endif

/* 32-bit Arm has too few registers for several of these at once: as functions they take less room, and less time. */
#if defined(__arm__)
#define MCC_VECMATH_FUNCTION static __attribute__((noinline, unused))
#else
#define MCC_VECMATH_FUNCTION MCC_VEC_INLINE
#endif

/* exp(x) = 2^n * (1 + q): t = n + 3 * 2^22 + BIAS, whose bits, shifted to the exponent, are 2^n with a BIAS of 127.
 * x = n * log(2) + r, |r| <= log(2)/2; q = r + r^2 * p(r), p by odd and even powers, which do not wait for each
 * other. */
#define MCC_VECMATH_EXP(N, X, BIAS)                                                                                    \
    const mcc_f32x##N shift = mcc_set_f32x##N(12582912.0f + BIAS);                                                     \
    const mcc_f32x##N t = mcc_fma_f32x##N(X, mcc_set_f32x##N(1.44269504f), shift), n = mcc_sub_f32x##N(t, shift);      \
    const mcc_f32x##N high = mcc_fma_f32x##N(n, mcc_set_f32x##N(-0.693359375f), X);                                    \
    const mcc_f32x##N r = mcc_fma_f32x##N(n, mcc_set_f32x##N(2.12194440e-4f), high), r2 = mcc_mul_f32x##N(r, r);       \
    mcc_f32x##N odd = mcc_set_f32x##N(0.000197881614f), even = mcc_set_f32x##N(0.00139468664f), q;                     \
    odd = mcc_fma_f32x##N(odd, r2, mcc_set_f32x##N(0.00833351072f));                                                   \
    even = mcc_fma_f32x##N(even, r2, mcc_set_f32x##N(0.0416662656f));                                                  \
    odd = mcc_fma_f32x##N(odd, r2, mcc_set_f32x##N(0.166666657f));                                                     \
    even = mcc_fma_f32x##N(even, r2, mcc_set_f32x##N(0.5f));                                                           \
    q = mcc_fma_f32x##N(mcc_fma_f32x##N(odd, r, even), r2, r);

#define MCC_VECMATH(N)                                                                                                 \
    /* The bounds leave n within -254..129. Far down both factors are 0, and a product of zeros takes no longer than   \
     * another one; one that is too small for floats takes 100 times as long. */                                       \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_exp_f32x##N(mcc_f32x##N x)                                                    \
    {                                                                                                                  \
        const mcc_f32x##N top = mcc_at_most_f32x##N(x, mcc_set_f32x##N(89.0f));                                        \
        const mcc_f32x##N in = mcc_at_least_f32x##N(top, mcc_set_f32x##N(-176.1f));                                    \
        MCC_VECMATH_EXP(N, in, 254.0f)                                                                                 \
        return mcc_scale_f32x##N(q, t);                                                                                \
    }                                                                                                                  \
    /* the same of what is within -87..0 */                                                                            \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_fading_f32x##N(mcc_f32x##N x)                                                 \
    {                                                                                                                  \
        MCC_VECMATH_EXP(N, x, 127.0f)                                                                                  \
        const mcc_f32x##N scale = (mcc_f32x##N)((mcc_i32x##N)t << 23);                                                 \
        return mcc_fma_f32x##N(q, scale, scale);                                                                       \
    }                                                                                                                  \
    /* 2^n * q + 2^n - 1, computed as half of it; q where n = 0. Below -20 the result is -1. */                        \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_expm1_f32x##N(mcc_f32x##N x)                                                  \
    {                                                                                                                  \
        const mcc_f32x##N top = mcc_at_most_f32x##N(x, mcc_set_f32x##N(89.0f));                                        \
        const mcc_f32x##N in = mcc_at_least_f32x##N(top, mcc_set_f32x##N(-20.0f)), half = mcc_set_f32x##N(0.5f);       \
        const mcc_i32x##N sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff);                                        \
        MCC_VECMATH_EXP(N, in, 126.0f)                                                                                 \
        const mcc_f32x##N scale = (mcc_f32x##N)((mcc_i32x##N)t << 23);                                                 \
        mcc_f32x##N far = mcc_fma_f32x##N(q, scale, mcc_sub_f32x##N(scale, half));                                     \
        far = mcc_select_f32x##N(mcc_equal_f32x##N(n, mcc_set_f32x##N(0.0f)), q, mcc_add_f32x##N(far, far));           \
        return (mcc_f32x##N)((mcc_i32x##N)far | sign);                                                                 \
    }                                                                                                                  \
    /* x = 2^n * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = f - f^2/2 + f^3 * p(f). */                        \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_log_f32x##N(mcc_f32x##N x)                                                    \
    {                                                                                                                  \
        const mcc_i32x##N tiny = mcc_less_f32x##N(x, mcc_set_f32x##N(1.17549435e-38f));                                \
        const mcc_f32x##N up = mcc_select_f32x##N(tiny, mcc_mul_f32x##N(x, mcc_set_f32x##N(8388608.0f)), x);           \
        const mcc_i32x##N bits = (mcc_i32x##N)up - mcc_set_i32x##N(0x3f3504f3);                                        \
        const mcc_i32x##N n = (bits >> 23) - (tiny & mcc_set_i32x##N(23));                                             \
        const mcc_i32x##N kept = (bits & mcc_set_i32x##N(0x007fffff)) + mcc_set_i32x##N(0x3f3504f3);                   \
        const mcc_f32x##N f = mcc_sub_f32x##N((mcc_f32x##N)kept, mcc_set_f32x##N(1.0f)), f2 = mcc_mul_f32x##N(f, f);   \
        const mcc_f32x##N e = __builtin_convertvector(n, mcc_f32x##N);                                                 \
        mcc_f32x##N p = mcc_set_f32x##N(0.0674660131f), low, result;                                                   \
        p = mcc_fma_f32x##N(p, f, mcc_set_f32x##N(-0.116756409f));                                                     \
        p = mcc_fma_f32x##N(p, f, mcc_set_f32x##N(0.118881747f));                                                      \
        p = mcc_fma_f32x##N(p, f, mcc_set_f32x##N(-0.124055915f));                                                     \
        p = mcc_fma_f32x##N(p, f, mcc_set_f32x##N(0.142195508f));                                                      \
        p = mcc_fma_f32x##N(p, f, mcc_set_f32x##N(-0.166679963f));                                                     \
        p = mcc_fma_f32x##N(p, f, mcc_set_f32x##N(0.200021192f));                                                      \
        p = mcc_fma_f32x##N(p, f, mcc_set_f32x##N(-0.250000089f));                                                     \
        p = mcc_fma_f32x##N(p, f, mcc_set_f32x##N(0.333333135f));                                                      \
        low = mcc_mul_f32x##N(e, mcc_set_f32x##N(-2.12194440e-4f));                                                    \
        low = mcc_fma_f32x##N(mcc_mul_f32x##N(p, f2), f, low);                                                         \
        low = mcc_fma_f32x##N(f2, mcc_set_f32x##N(-0.5f), low);                                                        \
        result = mcc_fma_f32x##N(e, mcc_set_f32x##N(0.693359375f), mcc_add_f32x##N(f, low));                           \
        result = mcc_select_f32x##N(mcc_less_equal_f32x##N(x, mcc_set_f32x##N(3.40282347e38f)), result, x);            \
        result = mcc_select_f32x##N(mcc_equal_f32x##N(x, mcc_set_f32x##N(0.0f)), mcc_set_f32x##N(-INFINITY), result);  \
        return mcc_select_f32x##N(mcc_less_f32x##N(x, mcc_set_f32x##N(0.0f)), mcc_set_f32x##N(NAN), result);           \
    }                                                                                                                  \
    /* log of the rounded sum, and what rounding took away */                                                          \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_log1p_f32x##N(mcc_f32x##N x)                                                  \
    {                                                                                                                  \
        const mcc_f32x##N one = mcc_set_f32x##N(1.0f), u = mcc_add_f32x##N(one, x);                                    \
        const mcc_f32x##N of_x = mcc_sub_f32x##N(x, mcc_sub_f32x##N(u, one));                                          \
        const mcc_f32x##N of_one = mcc_sub_f32x##N(one, mcc_sub_f32x##N(u, x));                                        \
        const mcc_f32x##N lost = mcc_select_f32x##N(mcc_less_f32x##N(x, one), of_x, of_one);                           \
        const mcc_f32x##N none = mcc_sub_f32x##N(u, u), log = mcc_log_f32x##N(u);                                      \
        const mcc_i32x##N ends = mcc_equal_f32x##N(u, mcc_set_f32x##N(0.0f)) | ~mcc_equal_f32x##N(none, none);         \
        const mcc_f32x##N result = mcc_add_f32x##N(log, mcc_div_f32x##N(lost, u));                                     \
        return mcc_select_f32x##N(ends, log, mcc_select_f32x##N(mcc_equal_f32x##N(u, one), x, result));                \
    }                                                                                                                  \
    /* x + x^3 * p(x^2) for |x| < 0.3, else m / (m + 2), m = exp(2|x|) - 1 = 2^n * q + 2^n - 1, which is 1 from 9.1 on,\
       with the sign of x */                                                                                           \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_tanh_f32x##N(mcc_f32x##N x)                                                   \
    {                                                                                                                  \
        const mcc_f32x##N size = mcc_abs_f32x##N(x), top = mcc_at_most_f32x##N(size, mcc_set_f32x##N(9.1f));           \
        const mcc_f32x##N in = mcc_add_f32x##N(top, top), s = mcc_mul_f32x##N(x, x);                                   \
        const mcc_i32x##N sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff);                                        \
        MCC_VECMATH_EXP(N, in, 127.0f)                                                                                 \
        const mcc_f32x##N scale = (mcc_f32x##N)((mcc_i32x##N)t << 23);                                                 \
        const mcc_f32x##N m = mcc_fma_f32x##N(q, scale, mcc_sub_f32x##N(scale, mcc_set_f32x##N(1.0f)));                \
        const mcc_f32x##N far = mcc_div_f32x##N(m, mcc_add_f32x##N(m, mcc_set_f32x##N(2.0f)));                         \
        mcc_f32x##N p = mcc_fma_f32x##N(mcc_set_f32x##N(-0.0503649227f), s, mcc_set_f32x##N(0.133148149f));            \
        p = mcc_fma_f32x##N(p, s, mcc_set_f32x##N(-0.333330601f));                                                     \
        p = mcc_fma_f32x##N(mcc_mul_f32x##N(p, s), size, size);                                                        \
        p = mcc_select_f32x##N(mcc_less_f32x##N(size, mcc_set_f32x##N(0.3f)), p, far);                                 \
        return (mcc_f32x##N)((mcc_i32x##N)p | sign);                                                                   \
    }                                                                                                                  \
    /* x + x * (2/sqrt(pi) - 1 + s * p(s)), s = x^2, for |x| < 1; else 1 - exp(-q(|x| - 2)), q fitted up to 4, beyond  \
       which the result is 1 */                                                                                        \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_erf_f32x##N(mcc_f32x##N x)                                                    \
    {                                                                                                                  \
        const mcc_f32x##N size = mcc_abs_f32x##N(x), s = mcc_mul_f32x##N(x, x), one = mcc_set_f32x##N(1.0f);           \
        const mcc_i32x##N sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff);                                        \
        const mcc_f32x##N top = mcc_at_most_f32x##N(size, mcc_set_f32x##N(4.0f));                                      \
        const mcc_f32x##N t = mcc_sub_f32x##N(top, mcc_set_f32x##N(2.0f));                                             \
        mcc_f32x##N p = mcc_set_f32x##N(7.89835688e-05f), q = mcc_set_f32x##N(-0.000198220703f), far;                  \
        p = mcc_fma_f32x##N(p, s, mcc_set_f32x##N(-0.0008024726f));                                                    \
        p = mcc_fma_f32x##N(p, s, mcc_set_f32x##N(0.00519015309f));                                                    \
        p = mcc_fma_f32x##N(p, s, mcc_set_f32x##N(-0.0268549118f));                                                    \
        p = mcc_fma_f32x##N(p, s, mcc_set_f32x##N(0.112836173f));                                                      \
        p = mcc_fma_f32x##N(p, s, mcc_set_f32x##N(-0.376126298f));                                                     \
        p = mcc_fma_f32x##N(mcc_fma_f32x##N(p, s, mcc_set_f32x##N(0.128379167f)), x, x);                               \
        q = mcc_fma_f32x##N(q, t, mcc_set_f32x##N(0.00068685133f));                                                    \
        q = mcc_fma_f32x##N(q, t, mcc_set_f32x##N(-0.00355349225f));                                                   \
        q = mcc_fma_f32x##N(q, t, mcc_set_f32x##N(0.0164964404f));                                                     \
        q = mcc_fma_f32x##N(q, t, mcc_set_f32x##N(0.92375952f));                                                       \
        q = mcc_fma_f32x##N(q, t, mcc_set_f32x##N(4.41815996f));                                                       \
        q = mcc_fma_f32x##N(q, t, mcc_set_f32x##N(5.36494112f));                                                       \
        far = mcc_sub_f32x##N(one, mcc_fading_f32x##N(mcc_neg_f32x##N(q)));                                            \
        return mcc_select_f32x##N(mcc_less_f32x##N(size, mcc_set_f32x##N(1.0f)), p,                                    \
                                  (mcc_f32x##N)((mcc_i32x##N)far | sign));                                             \
    }                                                                                                                  \
    /* x + x^3 * p(x^2) up to 1, beyond pi/2, in two parts, less that of 1 / x; with the sign of x */                  \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_atan_f32x##N(mcc_f32x##N x)                                                   \
    {                                                                                                                  \
        const mcc_f32x##N size = mcc_abs_f32x##N(x), one = mcc_set_f32x##N(1.0f);                                      \
        const mcc_i32x##N far = mcc_greater_f32x##N(size, one), sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff);  \
        const mcc_f32x##N above = mcc_select_f32x##N(far, mcc_neg_f32x##N(one), size);                                 \
        const mcc_f32x##N t = mcc_div_f32x##N(above, mcc_select_f32x##N(far, size, one));                              \
        const mcc_f32x##N z = mcc_mul_f32x##N(t, t), z2 = mcc_mul_f32x##N(z, z);                                       \
        const mcc_f32x##N turn = (mcc_f32x##N)((mcc_i32x##N)mcc_set_f32x##N(1.57079637f) & far);                       \
        const mcc_f32x##N rest = (mcc_f32x##N)((mcc_i32x##N)mcc_set_f32x##N(-4.37113883e-8f) & far);                   \
        mcc_f32x##N p = mcc_fma_f32x##N(mcc_set_f32x##N(0.00297458679f), z, mcc_set_f32x##N(-0.0165811703f));          \
        mcc_f32x##N q = mcc_fma_f32x##N(mcc_set_f32x##N(0.04355352f), z, mcc_set_f32x##N(-0.0758057684f));             \
        p = mcc_fma_f32x##N(p, z2, q);                                                                                 \
        q = mcc_fma_f32x##N(mcc_set_f32x##N(0.106789395f), z, mcc_set_f32x##N(-0.142142087f));                         \
        p = mcc_fma_f32x##N(p, z2, q);                                                                                 \
        q = mcc_fma_f32x##N(mcc_set_f32x##N(0.199941367f), z, mcc_set_f32x##N(-0.333331674f));                         \
        p = mcc_fma_f32x##N(p, z2, q);                                                                                 \
        p = mcc_add_f32x##N(mcc_add_f32x##N(turn, t), mcc_fma_f32x##N(mcc_mul_f32x##N(p, z), t, rest));                \
        return (mcc_f32x##N)((mcc_i32x##N)p | sign);                                                                   \
    }                                                                                                                  \
    /* asin(t) = t + *more, where t, what is returned, is |x| up to 1/2, and sqrt((1 - |x|) / 2) `far` out, beyond */  \
    MCC_VEC_INLINE mcc_f32x##N mcc_arc_f32x##N(mcc_f32x##N x, mcc_i32x##N *far, mcc_f32x##N *more)                     \
    {                                                                                                                  \
        const mcc_f32x##N size = mcc_abs_f32x##N(x), half = mcc_set_f32x##N(0.5f);                                     \
        const mcc_f32x##N rest = mcc_mul_f32x##N(mcc_sub_f32x##N(mcc_set_f32x##N(1.0f), size), half);                  \
        const mcc_i32x##N out = ~mcc_less_equal_f32x##N(size, half);                                                   \
        const mcc_f32x##N t = mcc_select_f32x##N(out, mcc_sqrt_f32x##N(rest), size);                                   \
        const mcc_f32x##N z = mcc_select_f32x##N(out, rest, mcc_mul_f32x##N(x, x));                                    \
        mcc_f32x##N p = mcc_fma_f32x##N(mcc_set_f32x##N(0.0422185883f), z, mcc_set_f32x##N(0.0241475906f));            \
        p = mcc_fma_f32x##N(p, z, mcc_set_f32x##N(0.0454770997f));                                                     \
        p = mcc_fma_f32x##N(p, z, mcc_set_f32x##N(0.0749524161f));                                                     \
        p = mcc_fma_f32x##N(p, z, mcc_set_f32x##N(0.166667536f));                                                      \
        *far = out;                                                                                                    \
        *more = mcc_mul_f32x##N(mcc_mul_f32x##N(p, z), t);                                                             \
        return t;                                                                                                      \
    }                                                                                                                  \
    /* far out pi/2 - 2 * asin(t), pi/2 and what rounding takes in two parts; with the sign of x */                    \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_asin_f32x##N(mcc_f32x##N x)                                                   \
    {                                                                                                                  \
        const mcc_i32x##N sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff);                                        \
        const mcc_f32x##N turn = mcc_set_f32x##N(1.57079637f), minus_two = mcc_set_f32x##N(-2.0f);                     \
        mcc_i32x##N far;                                                                                               \
        mcc_f32x##N more, t = mcc_arc_f32x##N(x, &far, &more), less, lost;                                             \
        less = mcc_fma_f32x##N(minus_two, t, turn);                                                                    \
        lost = mcc_fma_f32x##N(minus_two, t, mcc_sub_f32x##N(turn, less));                                             \
        lost = mcc_add_f32x##N(lost, mcc_set_f32x##N(-4.37113883e-8f));                                                \
        more = mcc_select_f32x##N(far, mcc_fma_f32x##N(minus_two, more, lost), more);                                  \
        t = mcc_select_f32x##N(far, less, t);                                                                          \
        return (mcc_f32x##N)((mcc_i32x##N)mcc_add_f32x##N(t, more) | sign);                                            \
    }                                                                                                                  \
    /* 2 * asin(t) far out, pi less that of negative ones; else pi/2 - asin(x) */                                      \
    MCC_VECMATH_FUNCTION mcc_f32x##N mcc_acos_f32x##N(mcc_f32x##N x)                                                   \
    {                                                                                                                  \
        const mcc_i32x##N top = ~mcc_set_i32x##N(0x7fffffff), below = (mcc_i32x##N)x >> 31;                            \
        mcc_i32x##N far, flip;                                                                                         \
        mcc_f32x##N more, t = mcc_arc_f32x##N(x, &far, &more);                                                         \
        const mcc_f32x##N end = (mcc_f32x##N)((mcc_i32x##N)mcc_set_f32x##N(3.14159274f) & below);                      \
        const mcc_f32x##N from = mcc_select_f32x##N(far, end, mcc_set_f32x##N(1.57079637f));                           \
        flip = ((mcc_i32x##N)x & top) ^ (~far & top);                                                                  \
        t = mcc_add_f32x##N(t, (mcc_f32x##N)((mcc_i32x##N)t & far));                                                   \
        more = mcc_add_f32x##N(more, (mcc_f32x##N)((mcc_i32x##N)more & far));                                          \
        t = mcc_add_f32x##N(from, (mcc_f32x##N)((mcc_i32x##N)t ^ flip));                                               \
        return mcc_add_f32x##N(t, (mcc_f32x##N)((mcc_i32x##N)more ^ flip));                                            \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_math

MCC_VECMATH(4);
#if MCC_VEC_LANES >= 8
MCC_VECMATH(8);
#endif
#if MCC_VEC_LANES >= 16
MCC_VECMATH(16);
#endif

/* mcc_exp of what is at most 0, in fewer registers: 2^64 * exp(x) is a normal number wherever exp(x) is not 0, so that
 * its bits may be made at once, and only the last product rounds. AVX multiplies with two of the numbers where they lie
 * in memory: the others take all 16 registers. */
#if defined(__SSE2__) && !defined(__AVX512VL__)
#define MCC_VECMATH_EIGHT(x) {x, x, x, x, x, x, x, x}
#if defined(__AVX__)
#define MCC_VECMATH_TIMES(N, v, eight)                                                                                 \
    __asm__("{vmulps %1, %0, %0|vmulps %0, %0, %1}" : "+x"(v) : "m"(*(const mcc_f32x##N *)(const void *)eight))        
#else
#define MCC_VECMATH_TIMES(N, v, eight) v = mcc_mul_f32x##N(v, mcc_load_f32x##N(eight))
#endif
#define MCC_VECMATH_X86_BELOW(N, V, I, simd)                                                                           \
    MCC_VEC_INLINE mcc_f32x##N mcc_exp_below_f32x##N(mcc_f32x##N x)                                                    \
    {                                                                                                                  \
        static const float halvings[8] __attribute__((aligned(32))) = MCC_VECMATH_EIGHT(1.44269504f);                  \
        static const float back[8] __attribute__((aligned(32))) = MCC_VECMATH_EIGHT(5.42101086e-20f);                  \
        const mcc_f32x##N in = mcc_at_least_f32x##N(x, mcc_set_f32x##N(-104.5f));                                      \
        const mcc_f32x##N far = mcc_set_f32x##N(18446744073709551616.0f);                                              \
        mcc_f32x##N whole = in, p = mcc_set_f32x##N(0.000197881614f), r;                                               \
        I bits;                                                                                                        \
        MCC_VECMATH_TIMES(N, whole, halvings);                                                                         \
        whole = mcc_round_even_f32x##N(whole);                                                                         \
        r = mcc_fma_f32x##N(whole, mcc_set_f32x##N(-0.693359375f), in);                                                \
        r = mcc_fma_f32x##N(whole, mcc_set_f32x##N(2.12194440e-4f), r);                                                \
        bits = simd##_slli_epi32(simd##_cvtps_epi32((V)whole), 23);                                                    \
        p = mcc_fma_f32x##N(p, r, mcc_set_f32x##N(0.00139468664f));                                                    \
        p = mcc_fma_f32x##N(p, r, mcc_set_f32x##N(0.00833351072f));                                                    \
        p = mcc_fma_f32x##N(p, r, mcc_set_f32x##N(0.0416662656f));                                                     \
        p = mcc_fma_f32x##N(p, r, mcc_set_f32x##N(0.166666657f));                                                      \
        p = mcc_fma_f32x##N(p, r, mcc_set_f32x##N(0.5f));                                                              \
        p = mcc_fma_f32x##N(mcc_fma_f32x##N(p, mcc_mul_f32x##N(r, r), r), far, far);                                   \
        p = (mcc_f32x##N)(simd##_add_epi32((I)p, bits) & /* see above: 0 is not slow */                                \
                          simd##_cmpgt_epi32(bits, simd##_set1_epi32(-151 * (1 << 23))));                              \
        MCC_VECMATH_TIMES(N, p, back);                                                                                 \
        return p;                                                                                                      \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_exp_below
MCC_VECMATH_X86_BELOW(4, __m128, __m128i, _mm);
#if defined(__AVX2__)
MCC_VECMATH_X86_BELOW(8, __m256, __m256i, _mm256);
#elif MCC_VEC_LANES >= 8
#define mcc_exp_below_f32x8 mcc_exp_f32x8
#endif
#else
#define mcc_exp_below_f32x4 mcc_exp_f32x4
#define mcc_exp_below_f32x8 mcc_exp_f32x8
#define mcc_exp_below_f32x16 mcc_exp_f32x16
#endif

#endif /* MCC_VECMATH_H */
