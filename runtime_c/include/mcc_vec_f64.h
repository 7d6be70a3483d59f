/* mcc_vec_f64.h - vectors of H doubles, 2, 4 or 8, half as many as mcc_vec.h has floats, for what floats have too few
 * bits for (mcc_vecmath_wide.h):
 *
 *     mcc_f64xH  mcc_b64xH  mcc_half_f64xH      doubles; integers, and masks whose lanes are 0 or -1; as many floats
 *     mcc_widen_f64xH(x)  mcc_narrow_f64xH(x)   from and to as many floats
 *     mcc_set mcc_abs mcc_select mcc_fma _f64xH  as in mcc_vec.h; mcc_signed_f64xH(x, y): x >= 0 with the sign of y
 *     mcc_near_log_f64xH(x)            of x > 0; relative error below 2^-37
 *     mcc_log_of_more_f64xH(x)    log(1 + x)
 *     mcc_exp_less_f64xH(x, less) exp(x) - less, below 2^-31
 *     mcc_root_f64xH(x, near)     the root, from one in floats
 *     mcc_reduced_f64xH(x, &k)    x - k * pi/2
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_F64_H
#define MCC_VEC_F64_H

#include <math.h>

#include "mcc_vec.h"

/* 1.5 * 2^52: what is added to it is rounded to a whole number, which lies in its low bits */
#define MCC_WIDE_SHIFT 6755399441055744.0

#if defined(__FMA__)
#define MCC_WIDE_FUSED
#define MCC_WIDE_FMA2(a, b, c) (mcc_f64x2) _mm_fmadd_pd((__m128d)(a), (__m128d)(b), (__m128d)(c))
#define MCC_WIDE_FMA4(a, b, c) (mcc_f64x4) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#define MCC_WIDE_FMA8(a, b, c) (mcc_f64x8) _mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define MCC_WIDE_FUSED
#define MCC_WIDE_FMA2(a, b, c) (mcc_f64x2) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#else
#define MCC_WIDE_FMA2(a, b, c) (a) * (b) + (c)
#define MCC_WIDE_FMA4(a, b, c) (a) * (b) + (c)
#define MCC_WIDE_FMA8(a, b, c) (a) * (b) + (c)
#endif

#define MCC_WIDE_TYPES(H)                                                                                              \
    typedef double mcc_f64x##H __attribute__((vector_size(H * 8)));                                                    \
    typedef int64_t mcc_b64x##H __attribute__((vector_size(H * 8)));                                                   \
    typedef float mcc_half_f64x##H __attribute__((vector_size(H * 4))); /* as many floats */                           \
    MCC_VEC_INLINE mcc_f64x##H mcc_set_f64x##H(double x)                                                               \
    {                                                                                                                  \
        const mcc_f64x##H zero = {0};                                                                                  \
        return x - zero;                                                                                               \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_b64x##H mcc_set_b64x##H(int64_t x)                                                              \
    {                                                                                                                  \
        const mcc_b64x##H zero = {0};                                                                                  \
        return zero + x;                                                                                               \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_fma_f64x##H(mcc_f64x##H a, mcc_f64x##H b, mcc_f64x##H c)                            \
    {                                                                                                                  \
        return MCC_WIDE_FMA##H(a, b, c);                                                                               \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_select_f64x##H(mcc_b64x##H m, mcc_f64x##H a, mcc_f64x##H b)                         \
    {                                                                                                                  \
        return (mcc_f64x##H)(((mcc_b64x##H)a & m) | ((mcc_b64x##H)b & ~m));                                            \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_abs_f64x##H(mcc_f64x##H x)                                                          \
    {                                                                                                                  \
        return (mcc_f64x##H)((mcc_b64x##H)x & mcc_set_b64x##H(INT64_MAX));                                             \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_signed_f64x##H(mcc_f64x##H size, mcc_f64x##H x) /* of x >= 0, with x's sign */      \
    {                                                                                                                  \
        return (mcc_f64x##H)((mcc_b64x##H)size | ((mcc_b64x##H)x & ~mcc_set_b64x##H(INT64_MAX)));                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_widen_f64x##H(mcc_half_f64x##H x)                                                   \
    {                                                                                                                  \
        return __builtin_convertvector(x, mcc_f64x##H);                                                                \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_half_f64x##H mcc_narrow_f64x##H(mcc_f64x##H x)                                                  \
    {                                                                                                                  \
        return __builtin_convertvector(x, mcc_half_f64x##H);                                                           \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_types

#define MCC_WIDE_CORES(H)                                                                                              \
    /* x = m * 2^n, sqrt(1/2) <= m < sqrt(2); log(m) = s * p(s^2) for s = (m - 1) / (m + 1). Of positive numbers, also \
       infinity; NaN gives NaN. */                                                                                     \
    MCC_VEC_INLINE mcc_f64x##H mcc_near_log_f64x##H(mcc_f64x##H x)                                                     \
    {                                                                                                                  \
        const mcc_b64x##H least = mcc_set_b64x##H(INT64_C(0x3fe6a09e667f3bcd)), bits = (mcc_b64x##H)x - least;         \
        const mcc_b64x##H whole = (bits >> 52) + (mcc_b64x##H)mcc_set_f64x##H(MCC_WIDE_SHIFT);                         \
        const mcc_f64x##H n = (mcc_f64x##H)whole - mcc_set_f64x##H(MCC_WIDE_SHIFT);                                    \
        const mcc_f64x##H m = (mcc_f64x##H)((bits & mcc_set_b64x##H(INT64_C(0x000fffffffffffff))) + least);            \
        const mcc_f64x##H one = mcc_set_f64x##H(1.0), s = (m - one) / (m + one), z = s * s;                            \
        mcc_f64x##H p = mcc_set_f64x##H(0.23617611271200684);                                                          \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.2853497844867233));                                                \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.40000385986602105));                                               \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(0.6666666523988016));                                                \
        p = mcc_fma_f64x##H(p, z, mcc_set_f64x##H(2.0000000000084284));                                                \
        p = mcc_fma_f64x##H(n, mcc_set_f64x##H(0.69314718055994531), p * s);                                           \
        return mcc_select_f64x##H((mcc_b64x##H)(x <= mcc_set_f64x##H(1.7976931348623157e308)), p, x);                  \
    }                                                                                                                  \
    /* for x > -1; for small ones x - x^2 / 2 */                                                                       \
    MCC_VEC_INLINE mcc_f64x##H mcc_log_of_more_f64x##H(mcc_f64x##H x)                                                  \
    {                                                                                                                  \
        const mcc_b64x##H small = (mcc_b64x##H)(mcc_abs_f64x##H(x) < mcc_set_f64x##H(9.5e-7));                         \
        const mcc_f64x##H near = mcc_fma_f64x##H(x * x, mcc_set_f64x##H(-0.5), x);                                     \
        return mcc_select_f64x##H(small, near, mcc_near_log_f64x##H(x + mcc_set_f64x##H(1.0)));                        \
    }                                                                                                                  \
    /* exp(x) - less = 2^n * (exp(r) - 1) + 2^n - less, |r| <= log(2)/2. Beyond 110 floats are at their ends. */       \
    MCC_VEC_INLINE mcc_f64x##H mcc_exp_less_f64x##H(mcc_f64x##H x, double less)                                        \
    {                                                                                                                  \
        const mcc_f64x##H most = mcc_set_f64x##H(110.0), one = mcc_set_f64x##H(1.0);                                   \
        const mcc_f64x##H top = mcc_select_f64x##H((mcc_b64x##H)(x > most), most, x);                                  \
        const mcc_f64x##H in = mcc_select_f64x##H((mcc_b64x##H)(top < -most), -most, top);                             \
        const mcc_f64x##H shift = mcc_set_f64x##H(MCC_WIDE_SHIFT);                                                     \
        const mcc_f64x##H k = mcc_fma_f64x##H(in, mcc_set_f64x##H(1.4426950408889634), shift), n = k - shift;          \
        const mcc_f64x##H r = mcc_fma_f64x##H(n, mcc_set_f64x##H(-0.69314718055994531), in);                           \
        const mcc_f64x##H scale = (mcc_f64x##H)(((mcc_b64x##H)k << 52) + (mcc_b64x##H)one);                            \
        mcc_f64x##H p = mcc_set_f64x##H(0.00019915907511591202);                                                       \
        p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.0013941120957587224));                                             \
        p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.008333268522907297));                                              \
        p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.041666352741011596));                                              \
        p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.16666666853868767));                                               \
        p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.5000000047155038));                                                \
        p = mcc_fma_f64x##H(p, r, mcc_set_f64x##H(0.9999999999910121));                                                \
        return mcc_fma_f64x##H(p * r, scale, scale - mcc_set_f64x##H(less));                                           \
    }                                                                                                                  \
    /* One step of Newton's from a root in floats. */                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_root_f64x##H(mcc_f64x##H x, mcc_f64x##H near)                                       \
    {                                                                                                                  \
        const mcc_f64x##H root = (near + x / near) * mcc_set_f64x##H(0.5);                                             \
        return mcc_select_f64x##H((mcc_b64x##H)(x == mcc_set_f64x##H(0.0)), x, root);                                  \
    }                                                                                                                  \
    /* What is left of x, |x| < 2^20, between -pi/4 and pi/4, and in the low bits of `k` how many quarters it turns.   \
       The first part of pi/2 has 33 bits: products with it are exact. */                                              \
    MCC_VEC_INLINE mcc_f64x##H mcc_reduced_f64x##H(mcc_f64x##H x, mcc_f64x##H *k)                                      \
    {                                                                                                                  \
        mcc_f64x##H n, r;                                                                                              \
        *k = mcc_fma_f64x##H(x, mcc_set_f64x##H(0.63661977236758134), mcc_set_f64x##H(MCC_WIDE_SHIFT));                \
        n = *k - mcc_set_f64x##H(MCC_WIDE_SHIFT);                                                                      \
        r = mcc_fma_f64x##H(n, mcc_set_f64x##H(-1.5707963267341256), x);                                               \
        return mcc_fma_f64x##H(n, mcc_set_f64x##H(-6.077100506506192e-11), r);                                         \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_cores

MCC_WIDE_TYPES(2);
MCC_WIDE_CORES(2);
#if MCC_VEC_LANES >= 8
MCC_WIDE_TYPES(4);
MCC_WIDE_CORES(4);
#endif
#if MCC_VEC_LANES >= 16
MCC_WIDE_TYPES(8);
MCC_WIDE_CORES(8);
#endif

#endif /* MCC_VEC_F64_H */
