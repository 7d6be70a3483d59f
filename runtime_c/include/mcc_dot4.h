/* mcc_dot4.h - vectors of 4 sums of products of bytes (mcc_dot.h): NEON, where signed bytes are multiplied, and
 * WebAssembly, where bytes without a sign are multiplied by bytes with one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT4_H
#define MCC_DOT4_H

#include "mcc_dot.h"

MCC_DOT_TYPES(4);
#if defined(__ARM_NEON)
MCC_VEC_INLINE mcc_i32x4 mcc_dot_i32x4(mcc_i32x4 sum, mcc_i32x4 x, mcc_i32x4 w)
{
    const int8x16_t a = (int8x16_t)x, b = (int8x16_t)w;
#if defined(__ARM_FEATURE_DOTPROD)
    return (mcc_i32x4)vdotq_s32((int32x4_t)sum, a, b);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
#if defined(__aarch64__)
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(a, b));
    return mcc_add_i32x4(sum, (mcc_i32x4)vpaddq_s32(low, high));
#else
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(a), vget_high_s8(b)));
    const int32x2_t two = vpadd_s32(vget_low_s32(low), vget_high_s32(low));
    const int32x2_t more = vpadd_s32(vget_low_s32(high), vget_high_s32(high));
    return mcc_add_i32x4(sum, (mcc_i32x4)vcombine_s32(two, more));
#endif
#endif
}
#if defined(__ARM_FEATURE_MATMUL_INT8)
/* Two points by two channels, eight products each: lanes are point 0 by channels 0 and 1, then point 1. */
MCC_VEC_INLINE mcc_i32x4 mcc_dot_pairs_i32x4(mcc_i32x4 sum, mcc_i32x4 x, mcc_i32x4 w)
{
    return (mcc_i32x4)vmmlaq_s32((int32x4_t)sum, (int8x16_t)x, (int8x16_t)w);
}
MCC_VEC_INLINE mcc_i32x4 mcc_dot_two_i8_i32x4(const void *a, const void *b)
{
    return (mcc_i32x4)vcombine_s8(vld1_s8((const int8_t *)a), vld1_s8((const int8_t *)b));
}
MCC_VEC_INLINE mcc_i32x4 mcc_dot_two_u8_i32x4(const void *a, const void *b)
{
    return (mcc_i32x4)veorq_u8((uint8x16_t)mcc_dot_two_i8_i32x4(a, b), vdupq_n_u8(128));
}
/* Of sums of channels 0 and 1, and of 2 and 3: all channels of point 0, of point 1; of one point, whose products are
 * added up in two lanes per channel. */
MCC_VEC_INLINE mcc_i32x4 mcc_dot_first_i32x4(mcc_i32x4 low, mcc_i32x4 high)
{
    return (mcc_i32x4)vzip1q_s64((int64x2_t)low, (int64x2_t)high);
}
MCC_VEC_INLINE mcc_i32x4 mcc_dot_second_i32x4(mcc_i32x4 low, mcc_i32x4 high)
{
    return (mcc_i32x4)vzip2q_s64((int64x2_t)low, (int64x2_t)high);
}
MCC_VEC_INLINE mcc_i32x4 mcc_dot_halves_i32x4(mcc_i32x4 low, mcc_i32x4 high)
{
    return (mcc_i32x4)vpaddq_s32((int32x4_t)low, (int32x4_t)high);
}
#endif
MCC_VEC_INLINE mcc_i32x4 mcc_load_u8_i32x4(const uint8_t *p)
{
    uint32_t four;
    (void)memcpy(&four, p, sizeof four);
    return (mcc_i32x4)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four))));
}
MCC_VEC_INLINE mcc_i32x4 mcc_load_i8_i32x4(const int8_t *p)
{
    uint32_t four;
    (void)memcpy(&four, p, sizeof four);
    return (mcc_i32x4)vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four))));
}
MCC_VEC_INLINE void mcc_dot_store_four_bytes(void *p, uint8x8_t bytes)
{
    const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    (void)memcpy(p, &four, sizeof four);
}
MCC_VEC_INLINE void mcc_store_u8_i32x4(uint8_t *p, mcc_i32x4 v)
{
    const uint16x4_t words = vmovn_u32((uint32x4_t)v);
    mcc_dot_store_four_bytes(p, vmovn_u16(vcombine_u16(words, words)));
}
MCC_VEC_INLINE void mcc_store_i8_i32x4(int8_t *p, mcc_i32x4 v) { mcc_store_u8_i32x4((uint8_t *)p, v); }
MCC_VEC_INLINE void mcc_store_saturated_u8_i32x4(uint8_t *p, mcc_i32x4 v)
{
    const int16x4_t words = vqmovn_s32((int32x4_t)v);
    mcc_dot_store_four_bytes(p, vqmovun_s16(vcombine_s16(words, words)));
}
MCC_VEC_INLINE void mcc_store_saturated_i8_i32x4(int8_t *p, mcc_i32x4 v)
{
    const int16x4_t words = vqmovn_s32((int32x4_t)v);
    mcc_dot_store_four_bytes(p, vreinterpret_u8_s8(vqmovn_s16(vcombine_s16(words, words))));
}
MCC_VEC_INLINE mcc_dot_four_i32x4 mcc_dot_zip_i32x4(const void *a, const void *b, const void *c, const void *d)
{
    const uint8x16x2_t ab = vzipq_u8(vld1q_u8((const uint8_t *)a), vld1q_u8((const uint8_t *)b));
    const uint8x16x2_t cd = vzipq_u8(vld1q_u8((const uint8_t *)c), vld1q_u8((const uint8_t *)d));
    const uint16x8x2_t low = vzipq_u16(vreinterpretq_u16_u8(ab.val[0]), vreinterpretq_u16_u8(cd.val[0]));
    const uint16x8x2_t high = vzipq_u16(vreinterpretq_u16_u8(ab.val[1]), vreinterpretq_u16_u8(cd.val[1]));
    mcc_dot_four_i32x4 f;
    f.v0 = (mcc_i32x4)low.val[0];
    f.v1 = (mcc_i32x4)low.val[1];
    f.v2 = (mcc_i32x4)high.val[0];
    f.v3 = (mcc_i32x4)high.val[1];
    return f;
}
MCC_VEC_INLINE int16x8_t mcc_dot_words(mcc_i32x4 low, mcc_i32x4 high)
{
    return vcombine_s16(vqmovn_s32((int32x4_t)low), vqmovn_s32((int32x4_t)high));
}
MCC_VEC_INLINE void mcc_store_four_u8_i32x4(uint8_t *p, mcc_dot_four_i32x4 f)
{
    vst1q_u8(p, vcombine_u8(vqmovun_s16(mcc_dot_words(f.v0, f.v1)), vqmovun_s16(mcc_dot_words(f.v2, f.v3))));
}
MCC_VEC_INLINE void mcc_store_four_i8_i32x4(int8_t *p, mcc_dot_four_i32x4 f)
{
    vst1q_s8(p, vcombine_s8(vqmovn_s16(mcc_dot_words(f.v0, f.v1)), vqmovn_s16(mcc_dot_words(f.v2, f.v3))));
}
MCC_DOT_BINARY(4, int32x4_t, max, vmaxq_s32);
MCC_DOT_BINARY(4, int32x4_t, min, vminq_s32);
MCC_VEC_INLINE mcc_i32x4 mcc_f32_to_i32x4(mcc_f32x4 v)
{
    const float32x4_t number = (float32x4_t)v;
    const uint32x4_t above = vcgeq_f32(number, vdupq_n_f32(-2147483648.0f));
    const uint32x4_t fits = vandq_u32(above, vcltq_f32(number, vdupq_n_f32(2147483648.0f)));
    return (mcc_i32x4)vbslq_s32(fits, vcvtq_s32_f32(number), vdupq_n_s32(INT32_MIN));
}
MCC_VEC_INLINE mcc_half_i64x4 mcc_even_products_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    return (mcc_half_i64x4)vmull_s32(vmovn_s64((int64x2_t)a), vmovn_s64((int64x2_t)b));
}
MCC_VEC_INLINE mcc_i32x4 mcc_odd_lanes_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    const mcc_i32x4 odd = {0, -1, 0, -1};
    return (a & ~odd) | (b & odd);
}
MCC_VEC_INLINE mcc_i32x4 mcc_high_halves_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    return (mcc_i32x4)vtrnq_s32((int32x4_t)a, (int32x4_t)b).val[1];
}
MCC_VEC_INLINE mcc_half_i64x4 mcc_shifted_i64x4(mcc_half_i64x4 half, mcc_half_i64x4 bits)
{
    return (mcc_half_i64x4)vshlq_s64((int64x2_t)half, (int64x2_t)-bits);
}
#elif defined(__wasm_simd128__)
MCC_DOT_WIDENED(4, v128_t, wasm_i32x4_dot_i16x8);
MCC_VEC_INLINE mcc_i32x4 mcc_load_u8_i32x4(const uint8_t *p)
{
    return (mcc_i32x4)wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(p)));
}
MCC_VEC_INLINE mcc_i32x4 mcc_load_i8_i32x4(const int8_t *p)
{
    return (mcc_i32x4)wasm_i32x4_extend_low_i16x8(wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(p)));
}
MCC_VEC_INLINE void mcc_store_u8_i32x4(uint8_t *p, mcc_i32x4 v)
{
    const v128_t low = (v128_t)(v & mcc_set_i32x4(255)), words = wasm_i16x8_narrow_i32x4(low, low);
    wasm_v128_store32_lane(p, wasm_u8x16_narrow_i16x8(words, words), 0);
}
MCC_VEC_INLINE void mcc_store_i8_i32x4(int8_t *p, mcc_i32x4 v) { mcc_store_u8_i32x4((uint8_t *)p, v); }
MCC_VEC_INLINE void mcc_store_saturated_u8_i32x4(uint8_t *p, mcc_i32x4 v)
{
    const v128_t words = wasm_i16x8_narrow_i32x4((v128_t)v, (v128_t)v);
    wasm_v128_store32_lane(p, wasm_u8x16_narrow_i16x8(words, words), 0);
}
MCC_VEC_INLINE void mcc_store_saturated_i8_i32x4(int8_t *p, mcc_i32x4 v)
{
    const v128_t words = wasm_i16x8_narrow_i32x4((v128_t)v, (v128_t)v);
    wasm_v128_store32_lane(p, wasm_i8x16_narrow_i16x8(words, words), 0);
}
#define MCC_DOT_LOW8(a, b) wasm_i8x16_shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define MCC_DOT_HIGH8(a, b) wasm_i8x16_shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define MCC_DOT_LOW16(a, b) wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define MCC_DOT_HIGH16(a, b) wasm_i16x8_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
MCC_DOT_ZIP(4, v128_t, MCC_DOT_LOW8, MCC_DOT_HIGH8, MCC_DOT_LOW16, MCC_DOT_HIGH16);
MCC_VEC_INLINE v128_t mcc_dot_words(mcc_i32x4 low, mcc_i32x4 high)
{
    return wasm_i16x8_narrow_i32x4((v128_t)low, (v128_t)high);
}
MCC_VEC_INLINE void mcc_store_four_u8_i32x4(uint8_t *p, mcc_dot_four_i32x4 f)
{
    wasm_v128_store(p, wasm_u8x16_narrow_i16x8(mcc_dot_words(f.v0, f.v1), mcc_dot_words(f.v2, f.v3)));
}
MCC_VEC_INLINE void mcc_store_four_i8_i32x4(int8_t *p, mcc_dot_four_i32x4 f)
{
    wasm_v128_store(p, wasm_i8x16_narrow_i16x8(mcc_dot_words(f.v0, f.v1), mcc_dot_words(f.v2, f.v3)));
}
MCC_DOT_BINARY(4, v128_t, max, wasm_i32x4_max);
MCC_DOT_BINARY(4, v128_t, min, wasm_i32x4_min);
MCC_VEC_INLINE mcc_i32x4 mcc_f32_to_i32x4(mcc_f32x4 v)
{
    const mcc_i32x4 above = mcc_greater_equal_f32x4(v, mcc_set_f32x4(-2147483648.0f));
    const mcc_i32x4 fits = above & mcc_less_f32x4(v, mcc_set_f32x4(2147483648.0f));
    const mcc_i32x4 whole = (mcc_i32x4)wasm_i32x4_trunc_sat_f32x4((v128_t)v);
    return (whole & fits) | (mcc_set_i32x4(INT32_MIN) & ~fits);
}
MCC_VEC_INLINE mcc_half_i64x4 mcc_even_products_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    const v128_t even_a = wasm_i32x4_shuffle((v128_t)a, (v128_t)a, 0, 2, 0, 2);
    return (mcc_half_i64x4)wasm_i64x2_extmul_low_i32x4(even_a, wasm_i32x4_shuffle((v128_t)b, (v128_t)b, 0, 2, 0, 2));
}
MCC_VEC_INLINE mcc_i32x4 mcc_odd_lanes_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    return (mcc_i32x4)wasm_i32x4_shuffle((v128_t)a, (v128_t)b, 0, 5, 2, 7);
}
MCC_VEC_INLINE mcc_i32x4 mcc_high_halves_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    return (mcc_i32x4)wasm_i32x4_shuffle((v128_t)a, (v128_t)b, 1, 5, 3, 7);
}
MCC_VEC_INLINE mcc_half_i64x4 mcc_shifted_i64x4(mcc_half_i64x4 half, mcc_half_i64x4 bits) { return half >> bits; }
#else
#error "this code is for vectors of NEON or WebAssembly: compile it for them, as -march=armv8-a or -msimd128 says"
#endif
MCC_DOT_FEW(4);
MCC_DOT_PART(4, u8, uint8_t);
MCC_DOT_PART(4, i8, int8_t);
MCC_DOT_FOUR_PART(4, u8, uint8_t);
MCC_DOT_FOUR_PART(4, i8, int8_t);
MCC_DOT_REST(4, 2);
MCC_DOT_FOURS(4);
MCC_DOT_HIGH_SUM(4);

#endif /* MCC_DOT4_H */
