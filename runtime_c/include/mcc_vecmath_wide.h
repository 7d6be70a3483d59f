/* mcc_vecmath_wide.h - powers, trigonometric and hyperbolic functions and remainders of vectors of floats (mcc_vec.h),
 * for N lanes among 4, 8 and 16, computed in vectors of doubles:
 *
 *     mcc_sin_f32xN mcc_cos_f32xN mcc_tan_f32xN                                  error below 2 ulp
 *     mcc_sinh_f32xN mcc_cosh_f32xN mcc_asinh_f32xN mcc_acosh_f32xN mcc_atanh_f32xN   below 1 ulp
 *     mcc_pow_f32xN(x, y)                        below 1 ulp; zeros, infinities and NaN as C's pow has them
 *     mcc_fmod_f32xN(a, b)  mcc_mod_f32xN(a, b)  what mcc_fmod_f32 and mcc_mod_f32 give
 *
 * Doubles leave nothing to compensate for: whatever the machine fuses, a polynomial is rounded once, at its end. Lanes
 * that need more bits than these have (sines of 2^20 and more, quotients of 2^22 and more) ask libm. The polynomials
 * are least-maximum fits of our own over the ranges that the comments name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VECMATH_WIDE_H
#define MCC_VECMATH_WIDE_H

/* gcc for Helium moves 8 bytes under a condition by two instructions where it counted one: assemblers refuse that. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__ARM_FEATURE_MVE)
#pragma GCC optimize("no-if-conversion2")
#endif

#include <math.h>

#include "mcc_vec_f64.h"

/* These are long, and models call them in several places: the compiler may keep them as functions. Where registers are
 * groups, calls would pass vectors in memory. */
#if defined(__riscv_vector)
#define MCC_VECMATH_CALLED MCC_VEC_INLINE
#else
#define MCC_VECMATH_CALLED static inline __attribute__((unused))
#endif

#define MCC_WIDE_FUNCTIONS(H)                                                                                          \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_sinh_f64x##H(mcc_f64x##H x)                                                    \
    {                                                                                                                  \
        const mcc_f64x##H m = mcc_exp_less_f64x##H(mcc_abs_f64x##H(x), 1.0), one = mcc_set_f64x##H(1.0);               \
        return mcc_signed_f64x##H((m + m / (m + one)) * mcc_set_f64x##H(0.5), x);                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_cosh_f64x##H(mcc_f64x##H x)                                                    \
    {                                                                                                                  \
        const mcc_f64x##H one = mcc_set_f64x##H(1.0), e = mcc_exp_less_f64x##H(mcc_abs_f64x##H(x), 1.0) + one;         \
        return (e + one / e) * mcc_set_f64x##H(0.5);                                                                   \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_atanh_f64x##H(mcc_f64x##H x)                                                   \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), one = mcc_set_f64x##H(1.0);                                       \
        const mcc_f64x##H y = mcc_log_of_more_f64x##H((size + size) / (one - size)) * mcc_set_f64x##H(0.5);            \
        return mcc_select_f64x##H((mcc_b64x##H)(size > one), mcc_set_f64x##H(NAN), mcc_signed_f64x##H(y, x));          \
    }                                                                                                                  \
    /* `near`: the root of x^2 + 1, which is |x| far out */                                                            \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_asinh_f64x##H(mcc_f64x##H x, mcc_f64x##H near)                                 \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), one = mcc_set_f64x##H(1.0), s = x * x;                            \
        const mcc_b64x##H far = (mcc_b64x##H)(size > mcc_set_f64x##H(1e9));                                            \
        const mcc_f64x##H root = mcc_select_f64x##H(far, size, mcc_root_f64x##H(s + one, near));                       \
        const mcc_f64x##H more = mcc_select_f64x##H(far, size, s / (one + root));                                      \
        return mcc_signed_f64x##H(mcc_log_of_more_f64x##H(size + more), x);                                            \
    }                                                                                                                  \
    /* `near`: the root of x^2 - 1, which is x far out */                                                              \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_acosh_f64x##H(mcc_f64x##H x, mcc_f64x##H near)                                 \
    {                                                                                                                  \
        const mcc_f64x##H one = mcc_set_f64x##H(1.0), t = x - one;                                                     \
        const mcc_f64x##H square = t * (t + mcc_set_f64x##H(2.0));                                                     \
        const mcc_b64x##H far = (mcc_b64x##H)(x > mcc_set_f64x##H(1e9));                                               \
        const mcc_f64x##H root = mcc_select_f64x##H(far, x, mcc_root_f64x##H(square, near));                           \
        return mcc_select_f64x##H((mcc_b64x##H)(x < one), mcc_set_f64x##H(NAN), mcc_log_of_more_f64x##H(t + root));    \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_tan_f64x##H(mcc_f64x##H x)                                                     \
    {                                                                                                                  \
        mcc_f64x##H k, r = mcc_reduced_f64x##H(x, &k), z = r * r;                                                      \
        const mcc_b64x##H odd = -((mcc_b64x##H)k & mcc_set_b64x##H(1));                                                \
        mcc_f64x##H s = mcc_set_f64x##H(2.7171489597102448e-06);                                                       \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(-0.0001983917793794075));                                            \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(0.008333328688762265));                                              \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(-0.1666666663043182));                                               \
        s = mcc_fma_f64x##H(s, z, mcc_set_f64x##H(0.9999999999954482));                                                \
        mcc_f64x##H c = mcc_set_f64x##H(-2.7167937566003594e-07);                                                      \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(2.4798843637941158e-05));                                            \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(-0.001388887993136052));                                             \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(0.041666666533633503));                                              \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(-0.49999999999270867));                                              \
        c = mcc_fma_f64x##H(c, z, mcc_set_f64x##H(0.9999999999999343));                                                \
        s = s * r;                                                                                                     \
        return mcc_select_f64x##H(odd, -c, s) / mcc_select_f64x##H(odd, s, c);                                         \
    }                                                                                                                  \
    /* of x >= 0 */                                                                                                    \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_pow_f64x##H(mcc_f64x##H x, mcc_f64x##H y)                                      \
    {                                                                                                                  \
        const mcc_b64x##H none = (mcc_b64x##H)(x == mcc_set_f64x##H(0.0));                                             \
        const mcc_f64x##H log = mcc_select_f64x##H(none, mcc_set_f64x##H(-INFINITY), mcc_near_log_f64x##H(x));         \
        return mcc_exp_less_f64x##H(y * log, 0.0);                                                                     \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_functions

MCC_VEC_INLINE int mcc_any_i32x4(mcc_i32x4 mask)
{
    int64_t half[2];
    (void)memcpy(half, &mask, sizeof half);
    return (half[0] | half[1]) != 0;
}
#if MCC_VEC_LANES >= 8
MCC_VEC_INLINE int mcc_any_i32x8(mcc_i32x8 mask)
{
    mcc_i32x4 half[2];
    (void)memcpy(half, &mask, sizeof half);
    return mcc_any_i32x4(half[0] | half[1]);
}
#endif
#if MCC_VEC_LANES >= 16
MCC_VEC_INLINE int mcc_any_i32x16(mcc_i32x16 mask)
{
    mcc_i32x8 half[2];
    (void)memcpy(half, &mask, sizeof half);
    return mcc_any_i32x8(half[0] | half[1]);
}
#endif

/* Lanes of `y` that ask for more. */
#define MCC_WIDE_LANES(N, hard, of_lane)                                                                               \
    {                                                                                                                  \
        const mcc_i32x##N asks = hard;                                                                                 \
        int i;                                                                                                         \
        if (mcc_any_i32x##N(asks))                                                                                     \
            for (i = 0; i < N; i++)                                                                                    \
                if (asks[i]) y[i] = of_lane;                                                                           \
    }

/* a - n * b, exactly where n is the quotient, cut off, or one more: the products are exact in doubles, and need not be
 * kept where a product and a difference are rounded once. */
#if defined(MCC_WIDE_FUSED)
#define MCC_WIDE_REST(N, H)                                                                                            \
    MCC_VEC_INLINE mcc_f32x##N mcc_rest_f32x##N(mcc_f32x##N a, mcc_f32x##N n, mcc_f32x##N b)                           \
    {                                                                                                                  \
        return mcc_fma_f32x##N(mcc_neg_f32x##N(n), b, a);                                                              \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_rest
#else
#define MCC_WIDE_REST(N, H)                                                                                            \
    MCC_VEC_INLINE mcc_f32x##N mcc_rest_f32x##N(mcc_f32x##N a, mcc_f32x##N n, mcc_f32x##N b)                           \
    {                                                                                                                  \
        mcc_half_f64x##H half[2], by[2], of[2];                                                                        \
        int i;                                                                                                         \
        (void)memcpy(half, &a, sizeof a);                                                                              \
        (void)memcpy(by, &n, sizeof n);                                                                                \
        (void)memcpy(of, &b, sizeof b);                                                                                \
        for (i = 0; i < 2; i++)                                                                                        \
            half[i] = mcc_narrow_f64x##H(mcc_widen_f64x##H(half[i]) -                                                  \
                                         mcc_widen_f64x##H(by[i]) * mcc_widen_f64x##H(of[i]));                         \
        (void)memcpy(&a, half, sizeof a);                                                                              \
        return a;                                                                                                      \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_rest
#endif

#define MCC_WIDE_REMAINDER(N)                                                                                          \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_fmod_f32x##N(mcc_f32x##N x, mcc_f32x##N by)                                     \
    {                                                                                                                  \
        const mcc_f32x##N size = mcc_abs_f32x##N(x), of = mcc_abs_f32x##N(by), none = mcc_set_f32x##N(0.0f);           \
        const mcc_i32x##N sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff);                                        \
        const mcc_i32x##N near = mcc_less_f32x##N(size, mcc_mul_f32x##N(of, mcc_set_f32x##N(4194304.0f)));             \
        const mcc_i32x##N finite = mcc_less_equal_f32x##N(of, mcc_set_f32x##N(3.40282347e38f));                        \
        const mcc_f32x##N rest = mcc_rest_f32x##N(size, mcc_trunc_f32x##N(size / of), of);                             \
        const mcc_f32x##N up = mcc_select_f32x##N(mcc_less_f32x##N(rest, none), mcc_add_f32x##N(rest, of), rest);      \
        mcc_f32x##N y = (mcc_f32x##N)((mcc_i32x##N)mcc_abs_f32x##N(up) | sign);                                        \
        MCC_WIDE_LANES(N, ~(near & finite), fmodf(x[i], by[i]))                                                        \
        return y;                                                                                                      \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_remainder

#define MCC_WIDE_ONE(N, H, name, of)                                                                                   \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_##name##_f32x##N(mcc_f32x##N x)                                                 \
    {                                                                                                                  \
        mcc_half_f64x##H half[2];                                                                                      \
        (void)memcpy(half, &x, sizeof x);                                                                              \
        half[0] = mcc_narrow_f64x##H(mcc_##of##_f64x##H(mcc_widen_f64x##H(half[0])));                                  \
        half[1] = mcc_narrow_f64x##H(mcc_##of##_f64x##H(mcc_widen_f64x##H(half[1])));                                  \
        (void)memcpy(&x, half, sizeof x);                                                                              \
        return x;                                                                                                      \
    }
#define MCC_WIDE_TWO(N, H, name)                                                                                       \
    MCC_VEC_INLINE mcc_f32x##N mcc_both_##name##_f32x##N(mcc_f32x##N x, mcc_f32x##N y)                                 \
    {                                                                                                                  \
        mcc_half_f64x##H half[2], other[2];                                                                            \
        mcc_f64x##H wide[2];                                                                                           \
        (void)memcpy(half, &x, sizeof x);                                                                              \
        (void)memcpy(other, &y, sizeof y);                                                                             \
        wide[0] = mcc_widen_f64x##H(half[0]), wide[1] = mcc_widen_f64x##H(other[0]);                                   \
        half[0] = mcc_narrow_f64x##H(mcc_near_##name##_f64x##H(wide[0], wide[1]));                                     \
        wide[0] = mcc_widen_f64x##H(half[1]), wide[1] = mcc_widen_f64x##H(other[1]);                                   \
        half[1] = mcc_narrow_f64x##H(mcc_near_##name##_f64x##H(wide[0], wide[1]));                                     \
        (void)memcpy(&x, half, sizeof x);                                                                              \
        return x;                                                                                                      \
    }

#define MCC_WIDE(N, H)                                                                                                 \
    MCC_WIDE_ONE(N, H, sinh, near_sinh)                                                                                \
    MCC_WIDE_ONE(N, H, cosh, near_cosh)                                                                                \
    MCC_WIDE_ONE(N, H, atanh, near_atanh)                                                                              \
    MCC_WIDE_ONE(N, H, near_tan, near_tan)                                                                             \
    MCC_WIDE_TWO(N, H, asinh)                                                                                          \
    MCC_WIDE_TWO(N, H, acosh)                                                                                          \
    MCC_WIDE_TWO(N, H, pow)                                                                                            \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_asinh_f32x##N(mcc_f32x##N x)                                                    \
    {                                                                                                                  \
        const mcc_f32x##N size = mcc_at_most_f32x##N(mcc_abs_f32x##N(x), mcc_set_f32x##N(1e18f));                      \
        return mcc_both_asinh_f32x##N(x, mcc_sqrt_f32x##N(mcc_fma_f32x##N(size, size, mcc_set_f32x##N(1.0f))));        \
    }                                                                                                                  \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_acosh_f32x##N(mcc_f32x##N x)                                                    \
    {                                                                                                                  \
        const mcc_f32x##N one = mcc_set_f32x##N(1.0f), in = mcc_at_most_f32x##N(x, mcc_set_f32x##N(1e18f));            \
        const mcc_f32x##N square = mcc_mul_f32x##N(mcc_sub_f32x##N(in, one), mcc_add_f32x##N(in, one));                \
        return mcc_both_acosh_f32x##N(x, mcc_sqrt_f32x##N(square));                                                    \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_reduced_f32x##N(mcc_f32x##N x, mcc_i32x##N *quarters)                               \
    {                                                                                                                  \
        mcc_half_f64x##H half[2], turns[2];                                                                            \
        mcc_f64x##H k;                                                                                                 \
        mcc_f32x##N n;                                                                                                 \
        (void)memcpy(half, &x, sizeof x);                                                                              \
        half[0] = mcc_narrow_f64x##H(mcc_reduced_f64x##H(mcc_widen_f64x##H(half[0]), &k));                             \
        turns[0] = mcc_narrow_f64x##H(k - mcc_set_f64x##H(MCC_WIDE_SHIFT));                                            \
        half[1] = mcc_narrow_f64x##H(mcc_reduced_f64x##H(mcc_widen_f64x##H(half[1]), &k));                             \
        turns[1] = mcc_narrow_f64x##H(k - mcc_set_f64x##H(MCC_WIDE_SHIFT));                                            \
        (void)memcpy(&x, half, sizeof x);                                                                              \
        (void)memcpy(&n, turns, sizeof n);                                                                             \
        *quarters = (mcc_i32x##N)mcc_add_f32x##N(n, mcc_set_f32x##N(12582912.0f));                                     \
        return x;                                                                                                      \
    }                                                                                                                  \
    /* sin(r) = r + r^3 * p(r^2), cos(r) = 1 - r^2/2 + r^4 * q(r^2), |r| <= pi/4 */                                    \
    MCC_VEC_INLINE mcc_f32x##N mcc_wave_f32x##N(mcc_f32x##N x, int quarter)                                            \
    {                                                                                                                  \
        mcc_i32x##N turns;                                                                                             \
        const mcc_f32x##N r = mcc_reduced_f32x##N(x, &turns), z = mcc_mul_f32x##N(r, r), one = mcc_set_f32x##N(1.0f);  \
        const mcc_i32x##N sign = (mcc_i32x##N)r & ~mcc_set_i32x##N(0x7fffffff), at = turns + mcc_set_i32x##N(quarter); \
        const mcc_i32x##N odd = -(at & mcc_set_i32x##N(1)), flip = (at & mcc_set_i32x##N(2)) << 30;                    \
        mcc_f32x##N p = mcc_set_f32x##N(-0.00019516977f), q = mcc_set_f32x##N(2.44380919e-05f);                        \
        p = mcc_fma_f32x##N(p, z, mcc_set_f32x##N(0.00833217585f));                                                    \
        q = mcc_fma_f32x##N(q, z, mcc_set_f32x##N(-0.00138873645f));                                                   \
        p = mcc_fma_f32x##N(p, z, mcc_set_f32x##N(-0.166666549f));                                                     \
        q = mcc_fma_f32x##N(q, z, mcc_set_f32x##N(0.0416666468f));                                                     \
        p = mcc_fma_f32x##N(mcc_mul_f32x##N(p, z), r, r);                                                              \
        q = mcc_fma_f32x##N(mcc_mul_f32x##N(z, z), q, mcc_fma_f32x##N(z, mcc_set_f32x##N(-0.5f), one));                \
        p = (mcc_f32x##N)((mcc_i32x##N)p | sign);                                                                      \
        return (mcc_f32x##N)((mcc_i32x##N)mcc_select_f32x##N(odd, q, p) ^ flip);                                       \
    }                                                                                                                  \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_sin_f32x##N(mcc_f32x##N x)                                                      \
    {                                                                                                                  \
        mcc_f32x##N y = mcc_wave_f32x##N(x, 0);                                                                        \
        MCC_WIDE_LANES(N, mcc_greater_equal_f32x##N(mcc_abs_f32x##N(x), mcc_set_f32x##N(1048576.0f)), sinf(x[i]))      \
        return y;                                                                                                      \
    }                                                                                                                  \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_cos_f32x##N(mcc_f32x##N x)                                                      \
    {                                                                                                                  \
        mcc_f32x##N y = mcc_wave_f32x##N(x, 1);                                                                        \
        MCC_WIDE_LANES(N, mcc_greater_equal_f32x##N(mcc_abs_f32x##N(x), mcc_set_f32x##N(1048576.0f)), cosf(x[i]))      \
        return y;                                                                                                      \
    }                                                                                                                  \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_tan_f32x##N(mcc_f32x##N x)                                                      \
    {                                                                                                                  \
        mcc_f32x##N y = mcc_near_tan_f32x##N(x);                                                                       \
        MCC_WIDE_LANES(N, mcc_greater_equal_f32x##N(mcc_abs_f32x##N(x), mcc_set_f32x##N(1048576.0f)), tanf(x[i]))      \
        return y;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_mod_f32x##N(mcc_f32x##N x, mcc_f32x##N by)                                          \
    {                                                                                                                  \
        const mcc_f32x##N rest = mcc_fmod_f32x##N(x, by), none = mcc_set_f32x##N(0.0f);                                \
        const mcc_i32x##N other = mcc_less_f32x##N(rest, none) ^ mcc_less_f32x##N(by, none);                           \
        const mcc_i32x##N sign = (mcc_i32x##N)by & ~mcc_set_i32x##N(0x7fffffff);                                       \
        const mcc_f32x##N y = mcc_select_f32x##N(other, mcc_add_f32x##N(rest, by), rest);                              \
        return mcc_select_f32x##N(mcc_equal_f32x##N(rest, none), (mcc_f32x##N)sign, y);                                \
    }                                                                                                                  \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_pow_f32x##N(mcc_f32x##N x, mcc_f32x##N y)                                       \
    {                                                                                                                  \
        const mcc_f32x##N one = mcc_set_f32x##N(1.0f), none = mcc_set_f32x##N(0.0f), size = mcc_abs_f32x##N(x);        \
        const mcc_f32x##N half = mcc_mul_f32x##N(y, mcc_set_f32x##N(0.5f)), high = mcc_set_f32x##N(3.40282347e38f);    \
        const mcc_i32x##N whole = mcc_equal_f32x##N(mcc_trunc_f32x##N(y), y);                                          \
        const mcc_i32x##N even = mcc_equal_f32x##N(mcc_trunc_f32x##N(half), half);                                     \
        const mcc_i32x##N sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff) & whole & ~even;                        \
        const mcc_i32x##N none_is = mcc_less_f32x##N(x, none) & ~whole & mcc_less_equal_f32x##N(size, high);           \
        const mcc_i32x##N numbers = mcc_equal_f32x##N(x, x) & mcc_equal_f32x##N(y, y);                                 \
        mcc_f32x##N z = mcc_select_f32x##N(mcc_equal_f32x##N(size, one), one, mcc_both_pow_f32x##N(size, y));          \
        z = (mcc_f32x##N)((mcc_i32x##N)z | sign);                                                                      \
        z = mcc_select_f32x##N(numbers & ~none_is, z, mcc_set_f32x##N(NAN));                                           \
        return mcc_select_f32x##N(mcc_equal_f32x##N(x, one) | mcc_equal_f32x##N(y, none), one, z);                     \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_wide

MCC_WIDE_FUNCTIONS(2);
MCC_WIDE_REST(4, 2);
MCC_WIDE_REMAINDER(4);
MCC_WIDE(4, 2);
#if MCC_VEC_LANES >= 8
MCC_WIDE_FUNCTIONS(4);
MCC_WIDE_REST(8, 4);
MCC_WIDE_REMAINDER(8);
MCC_WIDE(8, 4);
#endif
#if MCC_VEC_LANES >= 16
MCC_WIDE_FUNCTIONS(8);
MCC_WIDE_REST(16, 8);
MCC_WIDE_REMAINDER(16);
MCC_WIDE(16, 8);
#endif

#endif /* MCC_VECMATH_WIDE_H */
