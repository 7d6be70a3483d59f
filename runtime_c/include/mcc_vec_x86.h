/* mcc_vec_x86.h - the part of mcc_vec.h for x86: what it does better than C operators.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_X86_H
#define MCC_VEC_X86_H

#if !defined(MCC_VEC_H)
#error "this is a part of mcc_vec.h: include that"
#endif

#include <immintrin.h>

#if defined(__FMA__)
#define MCC_VEC_X86_FMA(N, V, instruction)                                                                             \
    MCC_VEC_INLINE mcc_f32x##N mcc_fma_f32x##N(mcc_f32x##N a, mcc_f32x##N b, mcc_f32x##N c)                            \
    {                                                                                                                  \
        return (mcc_f32x##N)instruction((V)a, (V)b, (V)c);                                                             \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_fma
#else
#define MCC_VEC_X86_FMA(N, V, instruction) MCC_VEC_FMA(N)
#endif
/* `max` and `min` give their second operand where either is NaN. */
#define MCC_VEC_X86_COMPARE(N, max_ps, min_ps)                                                                         \
    MCC_VEC_INLINE mcc_f32x##N mcc_at_least_f32x##N(mcc_f32x##N x, mcc_f32x##N low)                                    \
    {                                                                                                                  \
        return (mcc_f32x##N)max_ps(low, x);                                                                            \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_at_most_f32x##N(mcc_f32x##N x, mcc_f32x##N high)                                    \
    {                                                                                                                  \
        return (mcc_f32x##N)min_ps(high, x);                                                                           \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_max_f32x##N(mcc_f32x##N a, mcc_f32x##N b)                                           \
    {                                                                                                                  \
        return mcc_select_f32x##N((mcc_i32x##N)(a != a), a, (mcc_f32x##N)max_ps(a, b));                                \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_min_f32x##N(mcc_f32x##N a, mcc_f32x##N b)                                           \
    {                                                                                                                  \
        return mcc_select_f32x##N((mcc_i32x##N)(a != a), a, (mcc_f32x##N)min_ps(a, b));                                \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_compare

/* A masked store keeps back loads from the line behind it, such as those of the next row: lanes whose number is known
 * are stored in plain parts. Clang needs too many registers for these in loops of Winograd. */
#if defined(__clang__)
#define MCC_VEC_IS_KNOWN(n) (0 != 0)
#else
#define MCC_VEC_IS_KNOWN(n) (__builtin_constant_p(n) != 0)
#endif

/* ---- 4 lanes */
#if defined(__AVX512VL__)
MCC_VEC_INLINE mcc_f32x4 mcc_load_part_f32x4(const float *p, int n)
{
    return (mcc_f32x4)_mm_maskz_loadu_ps((__mmask8)((1u << n) - 1u), p);
}
MCC_VEC_INLINE void mcc_store_part_f32x4(float *p, int n, mcc_f32x4 v)
{
    if (MCC_VEC_IS_KNOWN(n)) {
        (void)memcpy(p, &v, (size_t)n * sizeof *p);
        return;
    }
    _mm_mask_storeu_ps(p, (__mmask8)((1u << n) - 1u), (__m128)v);
}
#else
MCC_VEC_PART(4);
#endif
MCC_VEC_ARITHMETIC(4);
MCC_VEC_INLINE mcc_f32x4 mcc_set_f32x4(float x) { return (mcc_f32x4)_mm_set1_ps(x); }
MCC_VEC_X86_COMPARE(4, _mm_max_ps, _mm_min_ps);
MCC_VEC_ONE_TO_ONE(4, sqrt, _mm_sqrt_ps(x));
MCC_VEC_X86_FMA(4, __m128, _mm_fmadd_ps);
#if defined(__SSE4_1__)
MCC_VEC_ONE_TO_ONE(4, floor, _mm_floor_ps(x));
MCC_VEC_ONE_TO_ONE(4, ceil, _mm_ceil_ps(x));
MCC_VEC_ONE_TO_ONE(4, trunc, _mm_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
MCC_VEC_ONE_TO_ONE(4, round_even, _mm_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
MCC_VEC_ROUND(4);
#endif

/* ---- 8 lanes */
#if defined(__AVX__)
MCC_VEC_INLINE mcc_f32x8 mcc_set_f32x8(float x) { return (mcc_f32x8)_mm256_set1_ps(x); }
MCC_VEC_X86_COMPARE(8, _mm256_max_ps, _mm256_min_ps);
MCC_VEC_ONE_TO_ONE(8, sqrt, _mm256_sqrt_ps(x));
MCC_VEC_ONE_TO_ONE(8, floor, _mm256_floor_ps(x));
MCC_VEC_ONE_TO_ONE(8, ceil, _mm256_ceil_ps(x));
MCC_VEC_ONE_TO_ONE(8, trunc, _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
MCC_VEC_ONE_TO_ONE(8, round_even, _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
MCC_VEC_X86_FMA(8, __m256, _mm256_fmadd_ps);
#define MCC_VEC_X86_STORE_PLAIN(N, HALF, low, high)                                                                    \
    MCC_VEC_INLINE void mcc_store_plain_f32x##N(float *p, int n, mcc_f32x##N v)                                        \
    {                                                                                                                  \
        if (n < HALF) {                                                                                                \
            mcc_store_part_f32x##HALF(p, n, (mcc_f32x##HALF)low);                                                      \
            return;                                                                                                    \
        }                                                                                                              \
        mcc_store_f32x##HALF(p, (mcc_f32x##HALF)low);                                                                  \
        if (n > HALF) mcc_store_part_f32x##HALF(p + HALF, n - HALF, (mcc_f32x##HALF)high);                             \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_store_plain
MCC_VEC_X86_STORE_PLAIN(8, 4, _mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
#if defined(__AVX512VL__)
MCC_VEC_INLINE mcc_f32x8 mcc_load_part_f32x8(const float *p, int n)
{
    return (mcc_f32x8)_mm256_maskz_loadu_ps((__mmask8)((1u << n) - 1u), p);
}
MCC_VEC_INLINE void mcc_store_part_f32x8(float *p, int n, mcc_f32x8 v)
{
    if (MCC_VEC_IS_KNOWN(n))
        mcc_store_plain_f32x8(p, n, v);
    else
        _mm256_mask_storeu_ps(p, (__mmask8)((1u << n) - 1u), (__m256)v);
}
#elif defined(__AVX2__)
MCC_VEC_INLINE mcc_i32x8 mcc_first_lanes_i32x8(int n)
{
    const mcc_i32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return (mcc_i32x8)(lane < mcc_set_i32x8(n));
}
MCC_VEC_INLINE mcc_f32x8 mcc_load_part_f32x8(const float *p, int n)
{
    return (mcc_f32x8)_mm256_maskload_ps(p, (__m256i)mcc_first_lanes_i32x8(n));
}
MCC_VEC_INLINE void mcc_store_part_f32x8(float *p, int n, mcc_f32x8 v)
{
    if (MCC_VEC_IS_KNOWN(n))
        mcc_store_plain_f32x8(p, n, v);
    else
        _mm256_maskstore_ps(p, (__m256i)mcc_first_lanes_i32x8(n), (__m256)v);
}
#else
MCC_VEC_PART(8);
#endif
#endif

/* ---- 16 lanes */
#if defined(__AVX512F__)
MCC_VEC_INLINE mcc_f32x16 mcc_set_f32x16(float x) { return (mcc_f32x16)_mm512_set1_ps(x); }
/* For C++ the forms with a mask, all of it set: there, gcc's own headers warn of themselves in the plain ones. */
#if defined(__cplusplus)
#define MCC_VEC_MAX_512(a, b) _mm512_maskz_max_ps((__mmask16)-1, (__m512)(a), (__m512)(b))
#define MCC_VEC_MIN_512(a, b) _mm512_maskz_min_ps((__mmask16)-1, (__m512)(a), (__m512)(b))
#define MCC_VEC_ROUND_512(x, how) _mm512_maskz_roundscale_ps((__mmask16)-1, (__m512)(x), (how) | _MM_FROUND_NO_EXC)
#define MCC_VEC_SQRT_512(x) _mm512_maskz_sqrt_ps((__mmask16)-1, (__m512)(x))
#else
#define MCC_VEC_MAX_512(a, b) _mm512_max_ps((__m512)(a), (__m512)(b))
#define MCC_VEC_MIN_512(a, b) _mm512_min_ps((__m512)(a), (__m512)(b))
#define MCC_VEC_ROUND_512(x, how) _mm512_roundscale_ps((__m512)(x), (how) | _MM_FROUND_NO_EXC)
#define MCC_VEC_SQRT_512(x) _mm512_sqrt_ps((__m512)(x))
#endif
MCC_VEC_X86_COMPARE(16, MCC_VEC_MAX_512, MCC_VEC_MIN_512);
MCC_VEC_ONE_TO_ONE(16, sqrt, MCC_VEC_SQRT_512(x));
#pragma GCC diagnostic push /* without optimisation these are macros, whose casts gcc takes for ours */
#pragma GCC diagnostic ignored "-Wsign-conversion"
MCC_VEC_ONE_TO_ONE(16, floor, MCC_VEC_ROUND_512(x, _MM_FROUND_TO_NEG_INF));
MCC_VEC_ONE_TO_ONE(16, ceil, MCC_VEC_ROUND_512(x, _MM_FROUND_TO_POS_INF));
MCC_VEC_ONE_TO_ONE(16, trunc, MCC_VEC_ROUND_512(x, _MM_FROUND_TO_ZERO));
MCC_VEC_ONE_TO_ONE(16, round_even, MCC_VEC_ROUND_512(x, _MM_FROUND_TO_NEAREST_INT));
#pragma GCC diagnostic pop
MCC_VEC_INLINE mcc_f32x16 mcc_fma_f32x16(mcc_f32x16 a, mcc_f32x16 b, mcc_f32x16 c)
{
    return (mcc_f32x16)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
MCC_VEC_INLINE mcc_f32x16 mcc_load_part_f32x16(const float *p, int n)
{
    return (mcc_f32x16)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
MCC_VEC_X86_STORE_PLAIN(16, 8, _mm512_castps512_ps256((__m512)v),
    _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)v), 1)));
MCC_VEC_INLINE void mcc_store_part_f32x16(float *p, int n, mcc_f32x16 v)
{
    if (MCC_VEC_IS_KNOWN(n))
        mcc_store_plain_f32x16(p, n, v);
    else
        _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
}
#endif

#endif /* MCC_VEC_X86_H */
