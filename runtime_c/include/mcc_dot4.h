/* mcc_dot4.h - vectors of 4 sums of products of bytes (mcc_dot.h): NEON, where signed bytes are multiplied.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT4_H
#define MCC_DOT4_H

#include "mcc_dot.h"

#if !defined(__ARM_NEON)
#error "this code is for machines with NEON: compile it for one, as -march=armv8-a says"
#endif

MCC_DOT_TYPES(4);
MCC_VEC_INLINE mcc_i32x4 mcc_dot_i32x4(mcc_i32x4 sum, mcc_i32x4 x, mcc_i32x4 w)
{
    const int8x16_t a = (int8x16_t)x, b = (int8x16_t)w;
#if defined(__ARM_FEATURE_DOTPROD)
    return (mcc_i32x4)vdotq_s32((int32x4_t)sum, a, b);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(a), vget_high_s8(b)));
#if defined(__aarch64__)
    return mcc_add_i32x4(sum, (mcc_i32x4)vpaddq_s32(low, high));
#else
    const int32x2_t two = vpadd_s32(vget_low_s32(low), vget_high_s32(low));
    const int32x2_t more = vpadd_s32(vget_low_s32(high), vget_high_s32(high));
    return mcc_add_i32x4(sum, (mcc_i32x4)vcombine_s32(two, more));
#endif
#endif
}
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
MCC_DOT_PART(4, u8, uint8_t);
MCC_DOT_PART(4, i8, int8_t);
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
MCC_DOT_REST(4, 2);

#endif /* MCC_DOT4_H */
