/* mcc_vec_half.h - vectors of eight 16-bit floats, for machines that compute with them: Arm's with FEAT_FP16.
 *
 * The vocabulary of mcc_vec.h for N = 8 and f16 instead of f32. Numbers are those of memory, their bits:
 * mcc_set_f16x8(0x3C00u) is 1 in every lane. Every operation rounds to 16 bits, fused products once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_HALF_H
#define MCC_VEC_HALF_H

#include "mcc_vec.h"

#if !defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#error "this code computes with 16-bit floats: compile it for a machine that does, as -march=armv8.2-a+fp16 says"
#endif

typedef float16x8_t mcc_f16x8;
typedef int16_t mcc_i16x8 __attribute__((vector_size(16)));

MCC_VEC_INLINE mcc_f16x8 mcc_load_f16x8(const uint16_t *p) { return vreinterpretq_f16_u16(vld1q_u16(p)); }
MCC_VEC_INLINE void mcc_store_f16x8(uint16_t *p, mcc_f16x8 v) { vst1q_u16(p, vreinterpretq_u16_f16(v)); }
MCC_VEC_INLINE mcc_f16x8 mcc_load_part_f16x8(const uint16_t *p, int n)
{
    uint16_t lanes[8] = {0};
    (void)memcpy(lanes, p, (size_t)n * 2);
    return mcc_load_f16x8(lanes);
}
MCC_VEC_INLINE void mcc_store_part_f16x8(uint16_t *p, int n, mcc_f16x8 v)
{
    uint16_t lanes[8];
    mcc_store_f16x8(lanes, v);
    (void)memcpy(p, lanes, (size_t)n * 2);
}
MCC_VEC_INLINE mcc_f16x8 mcc_set_f16x8(uint16_t x) { return vreinterpretq_f16_u16(vdupq_n_u16(x)); }
MCC_VEC_INLINE mcc_i16x8 mcc_set_i16x8(int16_t x) { return (mcc_i16x8)vdupq_n_s16(x); }
MCC_VEC_INLINE mcc_f16x8 mcc_add_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return vaddq_f16(a, b); }
MCC_VEC_INLINE mcc_f16x8 mcc_sub_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return vsubq_f16(a, b); }
MCC_VEC_INLINE mcc_f16x8 mcc_mul_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return vmulq_f16(a, b); }
MCC_VEC_INLINE mcc_f16x8 mcc_div_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return vdivq_f16(a, b); }
MCC_VEC_INLINE mcc_f16x8 mcc_neg_f16x8(mcc_f16x8 x) { return vnegq_f16(x); }
MCC_VEC_INLINE mcc_i16x8 mcc_less_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return (mcc_i16x8)vcltq_f16(a, b); }
MCC_VEC_INLINE mcc_i16x8 mcc_less_equal_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return (mcc_i16x8)vcleq_f16(a, b); }
MCC_VEC_INLINE mcc_i16x8 mcc_equal_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return (mcc_i16x8)vceqq_f16(a, b); }
MCC_VEC_INLINE mcc_i16x8 mcc_greater_equal_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return (mcc_i16x8)vcgeq_f16(a, b); }
MCC_VEC_INLINE mcc_i16x8 mcc_greater_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return (mcc_i16x8)vcgtq_f16(a, b); }
MCC_VEC_INLINE mcc_f16x8 mcc_fma_f16x8(mcc_f16x8 a, mcc_f16x8 b, mcc_f16x8 c) { return vfmaq_f16(c, a, b); }
/* One instruction; GCC would make two of vfmaq_laneq_f16, and of the load of `b` eight loads of single numbers. Only
 * half of the registers, "x", can be multiplied with by element. */
#define MCC_VEC_HALF_FMA_AT(lane)                                                                                      \
    MCC_VEC_INLINE mcc_f16x8 mcc_fma_at_##lane##_f16x8(mcc_f16x8 a, mcc_f16x8 b, mcc_f16x8 c)                          \
    {                                                                                                                  \
        __asm__("fmla %0.8h, %1.8h, %2.h[" #lane "]" : "+w"(c) : "w"(a), "x"(b));                                      \
        return c;                                                                                                      \
    }                                                                                                                  \
    typedef mcc_f16x8 mcc_f16x8_fma_at_##lane
MCC_VEC_HALF_FMA_AT(0);
MCC_VEC_HALF_FMA_AT(1);
MCC_VEC_HALF_FMA_AT(2);
MCC_VEC_HALF_FMA_AT(3);
MCC_VEC_HALF_FMA_AT(4);
MCC_VEC_HALF_FMA_AT(5);
MCC_VEC_HALF_FMA_AT(6);
MCC_VEC_HALF_FMA_AT(7);
#define mcc_each_f16x8 mcc_f16x8
#define mcc_of_each_f16x8 mcc_set_f16x8
#define mcc_fma_each_f16x8 mcc_fma_f16x8
#define mcc_fma_at_f16x8(a, b, lane, c) mcc_fma_at_##lane##_f16x8(a, b, c)
/* Totals of 32 bits, lane by lane. */
typedef struct {
    mcc_f32x4 low, high;
} mcc_total_f16x8;
MCC_VEC_INLINE mcc_total_f16x8 mcc_widen_f16x8(mcc_f16x8 x)
{
    mcc_total_f16x8 wide;
    wide.low = (mcc_f32x4)vcvt_f32_f16(vget_low_f16(x));
    wide.high = (mcc_f32x4)vcvt_high_f32_f16(x);
    return wide;
}
MCC_VEC_INLINE mcc_total_f16x8 mcc_add_total_f16x8(mcc_total_f16x8 total, mcc_f16x8 x)
{
    const mcc_total_f16x8 wide = mcc_widen_f16x8(x);
    total.low += wide.low;
    total.high += wide.high;
    return total;
}
MCC_VEC_INLINE mcc_f16x8 mcc_round_total_f16x8(mcc_total_f16x8 total)
{
    return vcvt_high_f16_f32(vcvt_f16_f32((float32x4_t)total.low), (float32x4_t)total.high);
}
MCC_VEC_INLINE int mcc_is_lost_f16x8(mcc_f16x8 v)
{
    const mcc_total_f16x8 wide = mcc_widen_f16x8(vsubq_f16(v, v));
    return mcc_sum_f32x4(wide.low + wide.high) != 0.0f;
}
MCC_VEC_INLINE mcc_f16x8 mcc_max_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return vmaxq_f16(a, b); }
MCC_VEC_INLINE mcc_f16x8 mcc_min_f16x8(mcc_f16x8 a, mcc_f16x8 b) { return vminq_f16(a, b); }
MCC_VEC_INLINE mcc_f16x8 mcc_at_least_f16x8(mcc_f16x8 x, mcc_f16x8 low) { return vmaxq_f16(x, low); }
MCC_VEC_INLINE mcc_f16x8 mcc_at_most_f16x8(mcc_f16x8 x, mcc_f16x8 high) { return vminq_f16(x, high); }
MCC_VEC_INLINE mcc_f16x8 mcc_select_f16x8(mcc_i16x8 m, mcc_f16x8 a, mcc_f16x8 b)
{
    return vbslq_f16((uint16x8_t)m, a, b);
}
MCC_VEC_INLINE mcc_f16x8 mcc_abs_f16x8(mcc_f16x8 x) { return vabsq_f16(x); }
MCC_VEC_INLINE mcc_f16x8 mcc_sqrt_f16x8(mcc_f16x8 x) { return vsqrtq_f16(x); }
MCC_VEC_INLINE mcc_f16x8 mcc_floor_f16x8(mcc_f16x8 x) { return vrndmq_f16(x); }
MCC_VEC_INLINE mcc_f16x8 mcc_ceil_f16x8(mcc_f16x8 x) { return vrndpq_f16(x); }
MCC_VEC_INLINE mcc_f16x8 mcc_trunc_f16x8(mcc_f16x8 x) { return vrndq_f16(x); }
MCC_VEC_INLINE mcc_f16x8 mcc_round_even_f16x8(mcc_f16x8 x) { return vrndnq_f16(x); }

#endif /* MCC_VEC_HALF_H */
