/* mcc_dot8.h - vectors of 8 sums of products of bytes (mcc_dot.h): AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT8_H
#define MCC_DOT8_H

#include "mcc_dot.h"

#if !defined(__AVX2__)
#error "this code is for machines with AVX2: compile it for one, as -march=x86-64-v3 says"
#endif

MCC_DOT_TYPES(8);
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
MCC_DOT_ADDED(8, __m256i, _mm256_dpbusd_epi32);
MCC_DOT_FEW(8);
#elif defined(__AVXVNNI__)
MCC_DOT_ADDED(8, __m256i, _mm256_dpbusd_avx_epi32);
MCC_DOT_FEW(8);
#else
MCC_DOT_WIDENED(8, __m256i, _mm256_madd_epi16);
MCC_DOT_FEW_PAIRED(8, __m256i, _mm256_maddubs_epi16, _mm256_madd_epi16);
#endif
MCC_VEC_INLINE mcc_i32x8 mcc_load_u8_i32x8(const uint8_t *p)
{
    return (mcc_i32x8)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
MCC_VEC_INLINE mcc_i32x8 mcc_load_i8_i32x8(const int8_t *p)
{
    return (mcc_i32x8)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
/* The first four bytes of both halves. */
MCC_VEC_INLINE void mcc_dot_store_fours(void *p, __m256i v)
{
    const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)p, both);
}
MCC_VEC_INLINE void mcc_store_u8_i32x8(uint8_t *p, mcc_i32x8 v)
{
    const __m256i low = (__m256i)(v & 255), words = _mm256_packus_epi32(low, low);
    mcc_dot_store_fours(p, _mm256_packus_epi16(words, words));
}
MCC_VEC_INLINE void mcc_store_i8_i32x8(int8_t *p, mcc_i32x8 v) { mcc_store_u8_i32x8((uint8_t *)p, v); }
MCC_VEC_INLINE void mcc_store_saturated_u8_i32x8(uint8_t *p, mcc_i32x8 v)
{
    const __m256i words = _mm256_packs_epi32((__m256i)v, (__m256i)v);
    mcc_dot_store_fours(p, _mm256_packus_epi16(words, words));
}
MCC_VEC_INLINE void mcc_store_saturated_i8_i32x8(int8_t *p, mcc_i32x8 v)
{
    const __m256i words = _mm256_packs_epi32((__m256i)v, (__m256i)v);
    mcc_dot_store_fours(p, _mm256_packs_epi16(words, words));
}
MCC_DOT_ZIP(8, __m256i, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16);
MCC_VEC_INLINE void mcc_store_four_u8_i32x8(uint8_t *p, mcc_dot_four_i32x8 f)
{
    const __m256i low = _mm256_packs_epi32((__m256i)f.v0, (__m256i)f.v1);
    const __m256i high = _mm256_packs_epi32((__m256i)f.v2, (__m256i)f.v3);
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_packus_epi16(low, high));
}
MCC_VEC_INLINE void mcc_store_four_i8_i32x8(int8_t *p, mcc_dot_four_i32x8 f)
{
    const __m256i low = _mm256_packs_epi32((__m256i)f.v0, (__m256i)f.v1);
    const __m256i high = _mm256_packs_epi32((__m256i)f.v2, (__m256i)f.v3);
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_packs_epi16(low, high));
}
MCC_DOT_PART(8, u8, uint8_t);
MCC_DOT_PART(8, i8, int8_t);
MCC_DOT_FOUR_PART(8, u8, uint8_t);
MCC_DOT_FOUR_PART(8, i8, int8_t);
MCC_DOT_BINARY(8, __m256i, max, _mm256_max_epi32);
MCC_DOT_BINARY(8, __m256i, min, _mm256_min_epi32);
MCC_VEC_INLINE mcc_i32x8 mcc_f32_to_i32x8(mcc_f32x8 v) { return (mcc_i32x8)_mm256_cvttps_epi32((__m256)v); }
MCC_VEC_INLINE mcc_half_i64x8 mcc_even_products_i32x8(mcc_i32x8 a, mcc_i32x8 b)
{
    return (mcc_half_i64x8)_mm256_mul_epi32((__m256i)a, (__m256i)b);
}
MCC_VEC_INLINE mcc_i32x8 mcc_odd_lanes_i32x8(mcc_i32x8 a, mcc_i32x8 b)
{
    return (mcc_i32x8)_mm256_blend_epi32((__m256i)a, (__m256i)b, 0xaa);
}
MCC_VEC_INLINE mcc_i32x8 mcc_high_halves_i32x8(mcc_i32x8 a, mcc_i32x8 b)
{
    return mcc_odd_lanes_i32x8((mcc_i32x8)_mm256_srli_epi64((__m256i)a, 32), b);
}
/* There is but a logical shift: a number from 0 up is shifted, and as much too much is taken off afterwards. */
MCC_VEC_INLINE mcc_half_i64x8 mcc_shifted_i64x8(mcc_half_i64x8 half, mcc_half_i64x8 bits)
{
    const __m256i top = _mm256_set1_epi64x(INT64_MIN);
    const __m256i moved = _mm256_srlv_epi64(_mm256_xor_si256((__m256i)half, top), (__m256i)bits);
    return (mcc_half_i64x8)_mm256_sub_epi64(moved, _mm256_srlv_epi64(top, (__m256i)bits));
}
MCC_DOT_REST(8, 4);
MCC_DOT_FOURS(8);
MCC_DOT_HIGH_SUM(8);

#endif /* MCC_DOT8_H */
