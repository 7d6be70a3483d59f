/* mcc_vec_doubles.h - the vocabulary of mcc_vec.h on vectors of H doubles (mcc_vec_f64.h), 2, 4 or 8, and
 *
 *     mcc_any_b64xH(m)          is the mask set in any lane?
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_DOUBLES_H
#define MCC_VEC_DOUBLES_H

#include "mcc_vec_f64.h"

#define MCC_DOUBLES(H)                                                                                                 \
    typedef uint64_t mcc_u64x##H __attribute__((vector_size(H * 8)));                                                  \
    typedef double mcc_f64x##H##_anywhere __attribute__((vector_size(H * 8), aligned(8), may_alias));                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_load_f64x##H(const double *p) { return *(const mcc_f64x##H##_anywhere *)p; }        \
    MCC_VEC_INLINE void mcc_store_f64x##H(double *p, mcc_f64x##H v) { *(mcc_f64x##H##_anywhere *)p = v; }              \
    MCC_VEC_INLINE mcc_f64x##H mcc_add_f64x##H(mcc_f64x##H a, mcc_f64x##H b) { return a + b; }                         \
    MCC_VEC_INLINE mcc_f64x##H mcc_sub_f64x##H(mcc_f64x##H a, mcc_f64x##H b) { return a - b; }                         \
    MCC_VEC_INLINE mcc_f64x##H mcc_mul_f64x##H(mcc_f64x##H a, mcc_f64x##H b) { return a * b; }                         \
    MCC_VEC_INLINE mcc_f64x##H mcc_div_f64x##H(mcc_f64x##H a, mcc_f64x##H b) { return a / b; }                         \
    MCC_VEC_INLINE mcc_f64x##H mcc_neg_f64x##H(mcc_f64x##H x) { return -x; }                                           \
    MCC_VEC_INLINE mcc_b64x##H mcc_less_f64x##H(mcc_f64x##H a, mcc_f64x##H b) { return (mcc_b64x##H)(a < b); }         \
    MCC_VEC_INLINE mcc_b64x##H mcc_less_equal_f64x##H(mcc_f64x##H a, mcc_f64x##H b) { return (mcc_b64x##H)(a <= b); }  \
    MCC_VEC_INLINE mcc_b64x##H mcc_equal_f64x##H(mcc_f64x##H a, mcc_f64x##H b) { return (mcc_b64x##H)(a == b); }       \
    MCC_VEC_INLINE mcc_b64x##H mcc_greater_equal_f64x##H(mcc_f64x##H a, mcc_f64x##H b)                                 \
    {                                                                                                                  \
        return (mcc_b64x##H)(a >= b);                                                                                  \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_b64x##H mcc_greater_f64x##H(mcc_f64x##H a, mcc_f64x##H b) { return (mcc_b64x##H)(a > b); }      \
    MCC_VEC_INLINE mcc_b64x##H mcc_load_mask_b64x##H(const uint8_t *p, ptrdiff_t step, int n)                          \
    {                                                                                                                  \
        mcc_b64x##H v = {0};                                                                                           \
        int i;                                                                                                         \
        if (step == 0) return mcc_set_b64x##H(*p ? -1 : 0);                                                            \
        for (i = 0; i < n; i++) v[i] = p[i * step] ? -1 : 0;                                                           \
        return v;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_load_apart_f64x##H(const double *p, ptrdiff_t step, int n)                          \
    {                                                                                                                  \
        mcc_f64x##H v = {0};                                                                                           \
        int i;                                                                                                         \
        for (i = 0; i < n; i++) v[i] = p[i * step];                                                                    \
        return v;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_apart_f64x##H(double *p, ptrdiff_t step, int n, mcc_f64x##H v)                       \
    {                                                                                                                  \
        double lanes[H];                                                                                               \
        int i;                                                                                                         \
        mcc_store_f64x##H(lanes, v);                                                                                   \
        for (i = 0; i < n; i++) p[i * step] = lanes[i];                                                                \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_doubles

#define MCC_DOUBLES_PART(H)                                                                                            \
    MCC_VEC_INLINE mcc_f64x##H mcc_load_part_f64x##H(const double *p, int n)                                           \
    {                                                                                                                  \
        mcc_f64x##H v = {0};                                                                                           \
        (void)memcpy(&v, p, (size_t)n * 8);                                                                            \
        return v;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_f64x##H(double *p, int n, mcc_f64x##H v)                                        \
    {                                                                                                                  \
        (void)memcpy(p, &v, (size_t)n * 8);                                                                            \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_part

#define MCC_DOUBLES_COMPARE(H)                                                                                         \
    MCC_VEC_INLINE mcc_f64x##H mcc_max_f64x##H(mcc_f64x##H a, mcc_f64x##H b)                                           \
    {                                                                                                                  \
        return mcc_select_f64x##H((mcc_b64x##H)(a > b) | (mcc_b64x##H)(a != a), a, b);                                 \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_min_f64x##H(mcc_f64x##H a, mcc_f64x##H b)                                           \
    {                                                                                                                  \
        return mcc_select_f64x##H((mcc_b64x##H)(a < b) | (mcc_b64x##H)(a != a), a, b);                                 \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_at_least_f64x##H(mcc_f64x##H x, mcc_f64x##H low)                                    \
    {                                                                                                                  \
        return mcc_select_f64x##H((mcc_b64x##H)(x < low), low, x);                                                     \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_at_most_f64x##H(mcc_f64x##H x, mcc_f64x##H high)                                    \
    {                                                                                                                  \
        return mcc_select_f64x##H((mcc_b64x##H)(x > high), high, x);                                                   \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_compare

/* A number of 2^52 or more is whole; below, adding 2^52 and taking it away again leaves the nearest whole number. */
#define MCC_DOUBLES_ROUND_EVEN(H)                                                                                      \
    MCC_VEC_INLINE mcc_f64x##H mcc_round_even_f64x##H(mcc_f64x##H x)                                                   \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), ulps = mcc_set_f64x##H(4503599627370496.0);                       \
        return mcc_select_f64x##H((mcc_b64x##H)(size < ulps), mcc_signed_f64x##H((size + ulps) - ulps, x), x);         \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_even
#define MCC_DOUBLES_ROUND(H)                                                                                           \
    MCC_VEC_INLINE mcc_f64x##H mcc_trunc_f64x##H(mcc_f64x##H x)                                                        \
    {                                                                                                                  \
        const mcc_f64x##H size = mcc_abs_f64x##H(x), ulps = mcc_set_f64x##H(4503599627370496.0);                       \
        const mcc_f64x##H near = (size + ulps) - ulps;                                                                 \
        const mcc_f64x##H whole = mcc_select_f64x##H((mcc_b64x##H)(near > size), near - mcc_set_f64x##H(1.0), near);   \
        return mcc_select_f64x##H((mcc_b64x##H)(size < ulps), mcc_signed_f64x##H(whole, x), x);                        \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_floor_f64x##H(mcc_f64x##H x)                                                        \
    {                                                                                                                  \
        const mcc_f64x##H whole = mcc_trunc_f64x##H(x);                                                                \
        return mcc_select_f64x##H((mcc_b64x##H)(whole > x), whole - mcc_set_f64x##H(1.0), whole);                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_ceil_f64x##H(mcc_f64x##H x) { return -mcc_floor_f64x##H(-x); }                      \
    typedef double mcc_f64x##H##_round

#if defined(MCC_VEC_ELEMENTWISE)
#define MCC_DOUBLES_SQRT(H)                                                                                            \
    MCC_VEC_INLINE mcc_f64x##H mcc_sqrt_f64x##H(mcc_f64x##H x) { return __builtin_elementwise_sqrt(x); }               \
    typedef double mcc_f64x##H##_sqrt
#else
#define MCC_DOUBLES_SQRT(H)                                                                                            \
    MCC_VEC_INLINE mcc_f64x##H mcc_sqrt_f64x##H(mcc_f64x##H x)                                                         \
    {                                                                                                                  \
        int i;                                                                                                         \
        for (i = 0; i < H; i++) x[i] = sqrt(x[i]);                                                                     \
        return x;                                                                                                      \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_sqrt
#endif

#define MCC_DOUBLES_ONE_TO_ONE(H, name, instruction)                                                                   \
    MCC_VEC_INLINE mcc_f64x##H mcc_##name##_f64x##H(mcc_f64x##H x) { return (mcc_f64x##H)instruction; }                \
    typedef double mcc_f64x##H##_##name

#if defined(__SSE2__)
/* `max` and `min` give their second operand where either is NaN. */
#define MCC_DOUBLES_X86(H, max_pd, min_pd)                                                                             \
    MCC_VEC_INLINE mcc_f64x##H mcc_at_least_f64x##H(mcc_f64x##H x, mcc_f64x##H low)                                    \
    {                                                                                                                  \
        return (mcc_f64x##H)max_pd(low, x);                                                                            \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_at_most_f64x##H(mcc_f64x##H x, mcc_f64x##H high)                                    \
    {                                                                                                                  \
        return (mcc_f64x##H)min_pd(high, x);                                                                           \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_max_f64x##H(mcc_f64x##H a, mcc_f64x##H b)                                           \
    {                                                                                                                  \
        return mcc_select_f64x##H((mcc_b64x##H)(a != a), a, (mcc_f64x##H)max_pd(a, b));                                \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f64x##H mcc_min_f64x##H(mcc_f64x##H a, mcc_f64x##H b)                                           \
    {                                                                                                                  \
        return mcc_select_f64x##H((mcc_b64x##H)(a != a), a, (mcc_f64x##H)min_pd(a, b));                                \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_compare
#define MCC_DOUBLES_X86_ROUND(H, sqrt_pd, round_pd)                                                                    \
    MCC_DOUBLES_ONE_TO_ONE(H, sqrt, sqrt_pd(x));                                                                       \
    MCC_DOUBLES_ONE_TO_ONE(H, floor, round_pd(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));                          \
    MCC_DOUBLES_ONE_TO_ONE(H, ceil, round_pd(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));                           \
    MCC_DOUBLES_ONE_TO_ONE(H, trunc, round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));                             \
    MCC_DOUBLES_ONE_TO_ONE(H, round_even, round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#define MCC_DOUBLES_MASKED(H, V, simd)                                                                                 \
    MCC_VEC_INLINE mcc_f64x##H mcc_load_part_f64x##H(const double *p, int n)                                           \
    {                                                                                                                  \
        return (mcc_f64x##H)simd##_maskz_loadu_pd((__mmask8)((1u << n) - 1u), p);                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_f64x##H(double *p, int n, mcc_f64x##H v)                                        \
    {                                                                                                                  \
        simd##_mask_storeu_pd(p, (__mmask8)((1u << n) - 1u), (V)v);                                                    \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_part
#endif

/* Over all lanes: halves are combined. */
#define MCC_DOUBLES_HALVES(NAME, H, HALF, BOTH)                                                                        \
    MCC_VEC_INLINE double mcc_##NAME##_f64x##H(mcc_f64x##H v)                                                          \
    {                                                                                                                  \
        mcc_f64x##HALF half[2];                                                                                        \
        (void)memcpy(half, &v, sizeof half);                                                                           \
        return mcc_##NAME##_f64x##HALF(BOTH);                                                                          \
    }
#define MCC_DOUBLES_ACROSS(H, HALF)                                                                                    \
    MCC_DOUBLES_HALVES(sum, H, HALF, half[0] + half[1])                                                                \
    MCC_DOUBLES_HALVES(product, H, HALF, half[0] * half[1])                                                            \
    MCC_DOUBLES_HALVES(largest, H, HALF, mcc_max_f64x##HALF(half[0], half[1]))                                         \
    MCC_DOUBLES_HALVES(smallest, H, HALF, mcc_min_f64x##HALF(half[0], half[1]))                                        \
    MCC_VEC_INLINE int mcc_any_b64x##H(mcc_b64x##H mask)                                                               \
    {                                                                                                                  \
        mcc_b64x##HALF half[2];                                                                                        \
        (void)memcpy(half, &mask, sizeof half);                                                                        \
        return mcc_any_b64x##HALF(half[0] | half[1]);                                                                  \
    }                                                                                                                  \
    typedef double mcc_f64x##H##_across

MCC_DOUBLES(2);
#if MCC_VEC_LANES >= 8
MCC_DOUBLES(4);
#endif
#if MCC_VEC_LANES >= 16
MCC_DOUBLES(8);
#endif

#if defined(__AVX512VL__)
MCC_DOUBLES_MASKED(2, __m128d, _mm);
MCC_DOUBLES_MASKED(4, __m256d, _mm256);
MCC_DOUBLES_MASKED(8, __m512d, _mm512);
#else
MCC_DOUBLES_PART(2);
#if MCC_VEC_LANES >= 8
MCC_DOUBLES_PART(4);
#endif
#if MCC_VEC_LANES >= 16
MCC_DOUBLES_PART(8);
#endif
#endif

#if defined(__SSE4_1__)
MCC_DOUBLES_X86(2, _mm_max_pd, _mm_min_pd);
MCC_DOUBLES_X86_ROUND(2, _mm_sqrt_pd, _mm_round_pd);
#elif defined(__aarch64__) && defined(__ARM_NEON)
MCC_DOUBLES_COMPARE(2);
MCC_DOUBLES_ONE_TO_ONE(2, sqrt, vsqrtq_f64((float64x2_t)x));
MCC_DOUBLES_ONE_TO_ONE(2, floor, vrndmq_f64((float64x2_t)x));
MCC_DOUBLES_ONE_TO_ONE(2, ceil, vrndpq_f64((float64x2_t)x));
MCC_DOUBLES_ONE_TO_ONE(2, trunc, vrndq_f64((float64x2_t)x));
MCC_DOUBLES_ONE_TO_ONE(2, round_even, vrndnq_f64((float64x2_t)x));
#else
MCC_DOUBLES_COMPARE(2);
MCC_DOUBLES_ROUND(2);
MCC_DOUBLES_ROUND_EVEN(2);
MCC_DOUBLES_SQRT(2);
#endif
#if defined(__AVX__)
MCC_DOUBLES_X86(4, _mm256_max_pd, _mm256_min_pd);
MCC_DOUBLES_X86_ROUND(4, _mm256_sqrt_pd, _mm256_round_pd);
#elif MCC_VEC_LANES >= 8
MCC_DOUBLES_COMPARE(4);
MCC_DOUBLES_ROUND(4);
MCC_DOUBLES_ROUND_EVEN(4);
MCC_DOUBLES_SQRT(4);
#endif
#if defined(__AVX512F__) /* with a mask, all of it set: for C++, gcc's own headers warn of the plain forms */
#define MCC_DOUBLES_MAX8(a, b) _mm512_maskz_max_pd((__mmask8)-1, (__m512d)(a), (__m512d)(b))
#define MCC_DOUBLES_MIN8(a, b) _mm512_maskz_min_pd((__mmask8)-1, (__m512d)(a), (__m512d)(b))
#define MCC_DOUBLES_SQRT8(x) _mm512_maskz_sqrt_pd((__mmask8)-1, (__m512d)(x))
MCC_DOUBLES_X86(8, MCC_DOUBLES_MAX8, MCC_DOUBLES_MIN8);
MCC_DOUBLES_ONE_TO_ONE(8, sqrt, MCC_DOUBLES_SQRT8(x));
MCC_DOUBLES_ONE_TO_ONE(8, floor, _mm512_floor_pd((__m512d)x));
MCC_DOUBLES_ONE_TO_ONE(8, ceil, _mm512_ceil_pd((__m512d)x));
MCC_DOUBLES_ONE_TO_ONE(8, trunc, mcc_signed_f64x8(mcc_floor_f64x8(mcc_abs_f64x8(x)), x));
MCC_DOUBLES_ROUND_EVEN(8);
#elif MCC_VEC_LANES >= 16
MCC_DOUBLES_COMPARE(8);
MCC_DOUBLES_ROUND(8);
MCC_DOUBLES_ROUND_EVEN(8);
MCC_DOUBLES_SQRT(8);
#endif

MCC_VEC_INLINE double mcc_sum_f64x2(mcc_f64x2 v) { return v[0] + v[1]; }
MCC_VEC_INLINE double mcc_product_f64x2(mcc_f64x2 v) { return v[0] * v[1]; }
MCC_VEC_INLINE double mcc_largest_f64x2(mcc_f64x2 v) { return v[0] > v[1] || v[0] != v[0] ? v[0] : v[1]; }
MCC_VEC_INLINE double mcc_smallest_f64x2(mcc_f64x2 v) { return v[0] < v[1] || v[0] != v[0] ? v[0] : v[1]; }
MCC_VEC_INLINE int mcc_any_b64x2(mcc_b64x2 mask) { return (mask[0] | mask[1]) != 0; }
#if MCC_VEC_LANES >= 8
MCC_DOUBLES_ACROSS(4, 2);
#endif
#if MCC_VEC_LANES >= 16
MCC_DOUBLES_ACROSS(8, 4);
#endif

#endif /* MCC_VEC_DOUBLES_H */
