/* mcc_dot16.h - vectors of 16 sums of products of bytes (mcc_dot.h): AVX-512 and RISC-V.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT16_H
#define MCC_DOT16_H

#include "mcc_dot.h"

#if defined(__riscv_vector)
#include "mcc_dot_riscv.h"
#else
#if !(defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__))
#error "this code is for machines with AVX-512: compile it for one, as -march=x86-64-v4 says"
#endif

/* Forms with a mask, all of it set, because gcc's own headers warn of themselves in the plain ones. */
#define MCC_DOT_ALL ((__mmask16)-1)
#define MCC_DOT_WORDS ((__mmask32)-1)
#define MCC_DOT_BYTES ((__mmask64)-1)
#define MCC_DOT_MAX_512(a, b) _mm512_maskz_max_epi32(MCC_DOT_ALL, a, b)
#define MCC_DOT_MIN_512(a, b) _mm512_maskz_min_epi32(MCC_DOT_ALL, a, b)
#define MCC_DOT_LOW_8(a, b) _mm512_maskz_unpacklo_epi8(MCC_DOT_BYTES, a, b)
#define MCC_DOT_HIGH_8(a, b) _mm512_maskz_unpackhi_epi8(MCC_DOT_BYTES, a, b)
#define MCC_DOT_LOW_16(a, b) _mm512_maskz_unpacklo_epi16(MCC_DOT_WORDS, a, b)
#define MCC_DOT_HIGH_16(a, b) _mm512_maskz_unpackhi_epi16(MCC_DOT_WORDS, a, b)

MCC_DOT_TYPES(16);
#if defined(__AVX512VNNI__)
MCC_DOT_ADDED(16, __m512i, _mm512_dpbusd_epi32);
MCC_DOT_FEW(16);
#else
MCC_DOT_WIDENED(16, __m512i, _mm512_madd_epi16);
MCC_DOT_FEW_PAIRED(16, __m512i, _mm512_maddubs_epi16, _mm512_madd_epi16);
#endif
#define MCC_DOT_BYTES_16(OF, C, WIDEN, SATURATE, PACK)                                                                 \
    MCC_VEC_INLINE mcc_i32x16 mcc_load_##OF##_i32x16(const C *p)                                                       \
    {                                                                                                                  \
        return (mcc_i32x16)WIDEN(MCC_DOT_ALL, _mm_loadu_si128((const __m128i *)(const void *)p));                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x16 mcc_load_part_##OF##_i32x16(const C *p, int n)                                           \
    {                                                                                                                  \
        return (mcc_i32x16)WIDEN(MCC_DOT_ALL, _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1u), p));                   \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_##OF##_i32x16(C *p, mcc_i32x16 v)                                                    \
    {                                                                                                                  \
        _mm_storeu_si128((__m128i *)(void *)p, _mm512_maskz_cvtepi32_epi8(MCC_DOT_ALL, (__m512i)v));                   \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_##OF##_i32x16(C *p, int n, mcc_i32x16 v)                                        \
    {                                                                                                                  \
        const __m128i bytes = _mm512_maskz_cvtepi32_epi8(MCC_DOT_ALL, (__m512i)v);                                     \
        _mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1u), bytes);                                                   \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_saturated_##OF##_i32x16(C *p, mcc_i32x16 v)                                          \
    {                                                                                                                  \
        _mm_storeu_si128((__m128i *)(void *)p, SATURATE(v));                                                           \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_saturated_##OF##_i32x16(C *p, int n, mcc_i32x16 v)                              \
    {                                                                                                                  \
        _mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1u), SATURATE(v));                                             \
    }                                                                                                                  \
    MCC_VEC_INLINE __m512i mcc_dot_bytes_of_four_##OF(mcc_dot_four_i32x16 f)                                           \
    {                                                                                                                  \
        const __m512i low = _mm512_maskz_packs_epi32(MCC_DOT_WORDS, (__m512i)f.v0, (__m512i)f.v1);                     \
        const __m512i high = _mm512_maskz_packs_epi32(MCC_DOT_WORDS, (__m512i)f.v2, (__m512i)f.v3);                    \
        return PACK(MCC_DOT_BYTES, low, high);                                                                         \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_four_##OF##_i32x16(C *p, mcc_dot_four_i32x16 f)                                      \
    {                                                                                                                  \
        const __m512i all = mcc_dot_bytes_of_four_##OF(f);                                                             \
        (void)memcpy(p, &all, sizeof all);                                                                             \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_four_part_##OF##_i32x16(C *p, int n, mcc_dot_four_i32x16 f)                          \
    {                                                                                                                  \
        _mm512_mask_storeu_epi8(p, (__mmask64)((UINT64_C(1) << n) - 1u), mcc_dot_bytes_of_four_##OF(f));               \
    }                                                                                                                  \
    typedef float mcc_dot_bytes_##OF##_16
#define MCC_DOT_SATURATE_U8(v) _mm512_maskz_cvtusepi32_epi8(MCC_DOT_ALL, (__m512i)mcc_max_i32x16(v, mcc_set_i32x16(0)))
#define MCC_DOT_SATURATE_I8(v) _mm512_maskz_cvtsepi32_epi8(MCC_DOT_ALL, (__m512i)(v))
MCC_DOT_ZIP(16, __m512i, MCC_DOT_LOW_8, MCC_DOT_HIGH_8, MCC_DOT_LOW_16, MCC_DOT_HIGH_16);
MCC_DOT_BINARY(16, __m512i, max, MCC_DOT_MAX_512);
MCC_DOT_BINARY(16, __m512i, min, MCC_DOT_MIN_512);
MCC_DOT_BYTES_16(u8, uint8_t, _mm512_maskz_cvtepu8_epi32, MCC_DOT_SATURATE_U8, _mm512_maskz_packus_epi16);
MCC_DOT_BYTES_16(i8, int8_t, _mm512_maskz_cvtepi8_epi32, MCC_DOT_SATURATE_I8, _mm512_maskz_packs_epi16);
MCC_VEC_INLINE mcc_i32x16 mcc_f32_to_i32x16(mcc_f32x16 v)
{
    return (mcc_i32x16)_mm512_maskz_cvttps_epi32(MCC_DOT_ALL, (__m512)v);
}
MCC_VEC_INLINE mcc_half_i64x16 mcc_even_products_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    return (mcc_half_i64x16)_mm512_maskz_mul_epi32((__mmask8)-1, (__m512i)a, (__m512i)b);
}
MCC_VEC_INLINE mcc_i32x16 mcc_odd_lanes_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    return (mcc_i32x16)_mm512_mask_blend_epi32((__mmask16)0xaaaa, (__m512i)a, (__m512i)b);
}
MCC_VEC_INLINE mcc_i32x16 mcc_high_halves_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    return (mcc_i32x16)_mm512_mask_shuffle_epi32((__m512i)b, (__mmask16)0x5555, (__m512i)a, _MM_PERM_DDBB);
}
MCC_VEC_INLINE mcc_half_i64x16 mcc_shifted_i64x16(mcc_half_i64x16 half, mcc_half_i64x16 bits) { return half >> bits; }
#endif
MCC_DOT_REST(16, 8);
#if defined(__riscv_vector)
MCC_DOT_FEW(16);
#else
MCC_DOT_FOURS(16);
MCC_DOT_HIGH_SUM(16);
#endif

#endif /* MCC_DOT16_H */
