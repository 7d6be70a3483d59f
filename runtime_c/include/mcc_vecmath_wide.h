/* mcc_vecmath_wide.h - powers, trigonometric and hyperbolic functions and remainders of vectors of floats (mcc_vec.h),
 * for N lanes among 4, 8 and 16, computed in vectors of doubles:
 *
 *     mcc_sin_f32xN mcc_cos_f32xN mcc_tan_f32xN                                  error below 2 ulp
 *     mcc_asin_f32xN mcc_acos_f32xN mcc_atan_f32xN                               below 1 ulp
 *     mcc_sinh_f32xN mcc_cosh_f32xN mcc_asinh_f32xN mcc_acosh_f32xN mcc_atanh_f32xN   below 1 ulp
 *     mcc_pow_f32xN(x, y)                        below 1 ulp; zeros, infinities and NaN as C's pow has them
 *     mcc_fmod_f32xN(a, b)  mcc_mod_f32xN(a, b)  what mcc_fmod_f32 and mcc_mod_f32 give
 *
 * Doubles leave nothing to compensate for: whatever the machine fuses, a polynomial is rounded once, at its end. Lanes
 * that need more bits than these have (sines of 2^20 and more, quotients of 2^29 and more) ask libm. The polynomials
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
    MCC_VEC_INLINE mcc_f64x##H mcc_sinh_f64x##H(mcc_f64x##H x)                                                         \
    {                                                                                                                  \
        const mcc_f64x##H m = mcc_exp_less_f64x##H(mcc_abs_f64x##H(x), 1.0), one = mcc_set_f64x##H(1.0);               \
        return mcc_signed_f64x##H((m + m / (m + one)) * mcc_set_f64x##H(0.5), x);                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_cosh_f64x##H(mcc_f64x##H x)                                                         \
    {                                                                                                                  \
        const mcc_f64x##H one = mcc_set_f64x##H(1.0), e = mcc_exp_less_f64x##H(mcc_abs_f64x##H(x), 1.0) + one;         \
        return (e + one / e) * mcc_set_f64x##H(0.5);                                                                   \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_atanh_f64x##H(mcc_f64x##H x)                                                        \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), one = mcc_set_f64x##H(1.0);                                       \
        const mcc_f64x##H y = mcc_log_of_more_f64x##H((size + size) / (one - size)) * mcc_set_f64x##H(0.5);            \
        return mcc_select_f64x##H((mcc_b64x##H)(size > one), mcc_set_f64x##H(NAN), mcc_signed_f64x##H(y, x));          \
    }                                                                                                                  \
    /* `near`: the root of x^2 + 1, which is |x| far out */                                                            \
    MCC_VEC_INLINE mcc_f64x##H mcc_asinh_f64x##H(mcc_f64x##H x, mcc_f64x##H near)                                      \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), one = mcc_set_f64x##H(1.0), s = x * x;                            \
        const mcc_b64x##H far = (mcc_b64x##H)(size > mcc_set_f64x##H(1e9));                                            \
        const mcc_f64x##H root = mcc_select_f64x##H(far, size, mcc_root_f64x##H(s + one, near));                       \
        const mcc_f64x##H more = mcc_select_f64x##H(far, size, s / (one + root));                                      \
        return mcc_signed_f64x##H(mcc_log_of_more_f64x##H(size + more), x);                                            \
    }                                                                                                                  \
    /* `near`: the root of x^2 - 1, which is x far out */                                                              \
    MCC_VEC_INLINE mcc_f64x##H mcc_acosh_f64x##H(mcc_f64x##H x, mcc_f64x##H near)                                      \
    {                                                                                                                  \
        const mcc_f64x##H one = mcc_set_f64x##H(1.0), t = x - one;                                                     \
        const mcc_f64x##H square = t * (t + mcc_set_f64x##H(2.0));                                                     \
        const mcc_b64x##H far = (mcc_b64x##H)(x > mcc_set_f64x##H(1e9));                                               \
        const mcc_f64x##H root = mcc_select_f64x##H(far, x, mcc_root_f64x##H(square, near));                           \
        return mcc_select_f64x##H((mcc_b64x##H)(x < one), mcc_set_f64x##H(NAN), mcc_log_of_more_f64x##H(t + root));    \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_tan_f64x##H(mcc_f64x##H x)                                                     \
    {                                                                                                                  \
        mcc_f64x##H k, r = mcc_turned_f64x##H(x, &k), z = r * r;                                                       \
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
    /* atan(x) = turn + atan((x - at) / (1 + at * x)), x >= 0: at 0, 1 and infinity, less than tan(pi/8) is left */    \
    MCC_VEC_INLINE mcc_f64x##H mcc_atan_f64x##H(mcc_f64x##H x)                                                         \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), one = mcc_set_f64x##H(1.0), none = mcc_set_f64x##H(0.0);          \
        const mcc_b64x##H middle = (mcc_b64x##H)(size > mcc_set_f64x##H(0.41421356237309503));                         \
        const mcc_b64x##H far = (mcc_b64x##H)(size > mcc_set_f64x##H(2.4142135623730949));                             \
        const mcc_f64x##H over = mcc_select_f64x##H(far, -one, size - mcc_select_f64x##H(middle, one, none));          \
        const mcc_f64x##H under = mcc_select_f64x##H(far, size, mcc_select_f64x##H(middle, size + one, one));          \
        const mcc_f64x##H half = mcc_select_f64x##H(middle, mcc_set_f64x##H(0.78539816339744828), none);               \
        const mcc_f64x##H turn = mcc_select_f64x##H(far, mcc_set_f64x##H(1.5707963267948966), half);                   \
        const mcc_f64x##H t = over / under, z = t * t;                                                                 \
        mcc_f64x##H p = mcc_set_f64x##H(0.047141232800429);                                                            \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.0845969910879936));                                               \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.11041170097766147));                                               \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.14281649767081825));                                              \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.19999886329642166));                                               \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(-0.333333321343576));                                                \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.9999999999792867));                                                \
        return mcc_signed_f64x##H(mcc_fma_f64x##H(p, t, turn), x);                                                     \
    }                                                                                                                  \
    /* asin(x) = x * p(x^2) up to 1/2, beyond pi/2 - 2 * asin(sqrt((1 - x) / 2)); `near`: that root. */                \
    MCC_VEC_INLINE mcc_f64x##H mcc_arc_f64x##H(mcc_f64x##H x, mcc_f64x##H near, mcc_b64x##H *far)                      \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), half = mcc_set_f64x##H(0.5);                                      \
        const mcc_f64x##H rest = (mcc_set_f64x##H(1.0) - size) * half;                                                 \
        mcc_f64x##H t, z;                                                                                              \
        *far = (mcc_b64x##H)(size > half);                                                                             \
        t = mcc_select_f64x##H(*far, mcc_root_f64x##H(rest, near), size);                                              \
        z = mcc_select_f64x##H(*far, rest, size * size);                                                               \
        {                                                                                                              \
            mcc_f64x##H p = mcc_set_f64x##H(0.03495159707336405);                                                      \
            p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.007223807017858811));                                          \
            p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.024711543746259404));                                          \
            p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.030092210270769693));                                          \
            p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.04466203535236517));                                           \
            p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.07499938200213584));                                           \
            p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.16666667421645));                                              \
            p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.9999999999849066));                                            \
            return p * t;                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_asin_f64x##H(mcc_f64x##H x, mcc_f64x##H near)                                       \
    {                                                                                                                  \
        mcc_b64x##H far;                                                                                               \
        const mcc_f64x##H y = mcc_arc_f64x##H(x, near, &far);                                                          \
        return mcc_signed_f64x##H(mcc_select_f64x##H(far, mcc_set_f64x##H(1.5707963267948966) - (y + y), y), x);       \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_acos_f64x##H(mcc_f64x##H x, mcc_f64x##H near)                                       \
    {                                                                                                                  \
        mcc_b64x##H far;                                                                                               \
        const mcc_f64x##H y = mcc_arc_f64x##H(x, near, &far), both = y + y;                                            \
        const mcc_b64x##H below = (mcc_b64x##H)(x < mcc_set_f64x##H(0.0));                                             \
        const mcc_f64x##H out = mcc_select_f64x##H(below, mcc_set_f64x##H(3.1415926535897931) - both, both);           \
        const mcc_f64x##H in = mcc_set_f64x##H(1.5707963267948966) - mcc_select_f64x##H(below, -y, y);                 \
        return mcc_select_f64x##H(far, out, in);                                                                       \
    }                                                                                                                  \
    /* the rest of |a| / |b| < 2^29, with the sign of a: products of the quotient are exact */                         \
    MCC_VEC_INLINE mcc_f64x##H mcc_fmod_f64x##H(mcc_f64x##H a, mcc_f64x##H b)                                          \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(a), most = mcc_set_f64x##H(1e300), of = mcc_abs_f64x##H(b);           \
        const mcc_f64x##H by = mcc_select_f64x##H((mcc_b64x##H)(of > most), most, of);                                 \
        const mcc_f64x##H shift = mcc_set_f64x##H(MCC_WIDE_SHIFT);                                                     \
        const mcc_f64x##H rest = mcc_fma_f64x##H((size / by + shift) - shift, -by, size);                              \
        const mcc_b64x##H below = (mcc_b64x##H)(rest < mcc_set_f64x##H(0.0));                                          \
        return mcc_signed_f64x##H(mcc_abs_f64x##H(mcc_select_f64x##H(below, rest + by, rest)), a);                     \
    }                                                                                                                  \
    /* of x >= 0 */                                                                                                    \
    MCC_VEC_INLINE mcc_f64x##H mcc_pow_f64x##H(mcc_f64x##H x, mcc_f64x##H y)                                           \
    {                                                                                                                  \
        const mcc_b64x##H none = (mcc_b64x##H)(x == mcc_set_f64x##H(0.0));                                             \
        const mcc_f64x##H log = mcc_select_f64x##H(none, mcc_set_f64x##H(-INFINITY), mcc_log_f64x##H(x));              \
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

#define MCC_WIDE_ONE(N, H, name)                                                                                       \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_##name##_f32x##N(mcc_f32x##N x)                                                 \
    {                                                                                                                  \
        mcc_half_f64x##H half[2];                                                                                      \
        (void)memcpy(half, &x, sizeof x);                                                                              \
        half[0] = mcc_narrow_f64x##H(mcc_##name##_f64x##H(mcc_widen_f64x##H(half[0])));                                \
        half[1] = mcc_narrow_f64x##H(mcc_##name##_f64x##H(mcc_widen_f64x##H(half[1])));                                \
        (void)memcpy(&x, half, sizeof x);                                                                              \
        return x;                                                                                                      \
    }
#define MCC_WIDE_TWO(N, H, name)                                                                                       \
    MCC_VEC_INLINE mcc_f32x##N mcc_both_##name##_f32x##N(mcc_f32x##N x, mcc_f32x##N y)                                 \
    {                                                                                                                  \
        mcc_half_f64x##H half[2], other[2];                                                                            \
        (void)memcpy(half, &x, sizeof x);                                                                              \
        (void)memcpy(other, &y, sizeof y);                                                                             \
        half[0] = mcc_narrow_f64x##H(mcc_##name##_f64x##H(mcc_widen_f64x##H(half[0]), mcc_widen_f64x##H(other[0])));   \
        half[1] = mcc_narrow_f64x##H(mcc_##name##_f64x##H(mcc_widen_f64x##H(half[1]), mcc_widen_f64x##H(other[1])));   \
        (void)memcpy(&x, half, sizeof x);                                                                              \
        return x;                                                                                                      \
    }

#define MCC_WIDE(N, H)                                                                                                 \
    MCC_WIDE_ONE(N, H, sinh)                                                                                           \
    MCC_WIDE_ONE(N, H, cosh)                                                                                           \
    MCC_WIDE_ONE(N, H, atanh)                                                                                          \
    MCC_WIDE_ONE(N, H, atan)                                                                                           \
    MCC_WIDE_ONE(N, H, near_tan)                                                                                       \
    MCC_WIDE_TWO(N, H, asinh)                                                                                          \
    MCC_WIDE_TWO(N, H, acosh)                                                                                          \
    MCC_WIDE_TWO(N, H, asin)                                                                                           \
    MCC_WIDE_TWO(N, H, acos)                                                                                           \
    MCC_WIDE_TWO(N, H, fmod)                                                                                           \
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
    MCC_VEC_INLINE mcc_f32x##N mcc_near_arc_f32x##N(mcc_f32x##N x)                                                     \
    {                                                                                                                  \
        const mcc_f32x##N rest = mcc_sub_f32x##N(mcc_set_f32x##N(1.0f), mcc_abs_f32x##N(x));                           \
        return mcc_sqrt_f32x##N(mcc_mul_f32x##N(rest, mcc_set_f32x##N(0.5f)));                                         \
    }                                                                                                                  \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_asin_f32x##N(mcc_f32x##N x)                                                     \
    {                                                                                                                  \
        return mcc_both_asin_f32x##N(x, mcc_near_arc_f32x##N(x));                                                      \
    }                                                                                                                  \
    MCC_VECMATH_CALLED mcc_f32x##N mcc_acos_f32x##N(mcc_f32x##N x)                                                     \
    {                                                                                                                  \
        return mcc_both_acos_f32x##N(x, mcc_near_arc_f32x##N(x));                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_turned_f32x##N(mcc_f32x##N x, mcc_i32x##N *quarters)                                \
    {                                                                                                                  \
        mcc_half_f64x##H half[2], turns[2];                                                                            \
        mcc_f64x##H k;                                                                                                 \
        mcc_f32x##N n;                                                                                                 \
        (void)memcpy(half, &x, sizeof x);                                                                              \
        half[0] = mcc_narrow_f64x##H(mcc_turned_f64x##H(mcc_widen_f64x##H(half[0]), &k));                              \
        turns[0] = mcc_narrow_f64x##H(k - mcc_set_f64x##H(MCC_WIDE_SHIFT));                                            \
        half[1] = mcc_narrow_f64x##H(mcc_turned_f64x##H(mcc_widen_f64x##H(half[1]), &k));                              \
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
        const mcc_f32x##N r = mcc_turned_f32x##N(x, &turns), z = mcc_mul_f32x##N(r, r), one = mcc_set_f32x##N(1.0f);   \
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
    MCC_VECMATH_CALLED mcc_f32x##N mcc_fmod_f32x##N(mcc_f32x##N x, mcc_f32x##N by)                                     \
    {                                                                                                                  \
        const mcc_f32x##N most = mcc_mul_f32x##N(mcc_abs_f32x##N(by), mcc_set_f32x##N(536870912.0f));                  \
        mcc_f32x##N y = mcc_both_fmod_f32x##N(x, by);                                                                  \
        MCC_WIDE_LANES(N, mcc_greater_equal_f32x##N(mcc_abs_f32x##N(x), most), fmodf(x[i], by[i]))                     \
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
MCC_WIDE(4, 2);
#if MCC_VEC_LANES >= 8
MCC_WIDE_FUNCTIONS(4);
MCC_WIDE(8, 4);
#endif
#if MCC_VEC_LANES >= 16
MCC_WIDE_FUNCTIONS(8);
MCC_WIDE(16, 8);
#endif

#endif /* MCC_VECMATH_WIDE_H */
