/* mcc_vec_arm.h - the part of mcc_vec.h for Arm (NEON): what it does better than C operators.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_ARM_H
#define MCC_VEC_ARM_H

#if !defined(MCC_VEC_H)
#error "this is a part of mcc_vec.h: include that"
#endif

#include <arm_neon.h>

MCC_VEC_PART(4);
MCC_VEC_INLINE mcc_f32x4 mcc_set_f32x4(float x) { return (mcc_f32x4)vdupq_n_f32(x); }
#define MCC_VEC_NEON(type, name, instruction)                                                                          \
    MCC_VEC_INLINE mcc_##type mcc_##name##_f32x4(mcc_f32x4 a, mcc_f32x4 b)                                             \
    {                                                                                                                  \
        return (mcc_##type)instruction((float32x4_t)a, (float32x4_t)b);                                                \
    }                                                                                                                  \
    typedef float mcc_f32x4_##name
MCC_VEC_NEON(f32x4, max, vmaxq_f32);
MCC_VEC_NEON(f32x4, min, vminq_f32);
MCC_VEC_NEON(f32x4, at_least, vmaxq_f32);
MCC_VEC_NEON(f32x4, at_most, vminq_f32);
#if defined(__aarch64__) || defined(__ARM_FEATURE_FMA)
MCC_VEC_INLINE mcc_f32x4 mcc_fma_f32x4(mcc_f32x4 a, mcc_f32x4 b, mcc_f32x4 c)
{
    return (mcc_f32x4)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#else
MCC_VEC_INLINE mcc_f32x4 mcc_fma_f32x4(mcc_f32x4 a, mcc_f32x4 b, mcc_f32x4 c)
{
    return (mcc_f32x4)vmlaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#endif
#if defined(__aarch64__)
MCC_VEC_ARITHMETIC(4);
#define mcc_fma_at_f32x4(a, b, lane, c)                                                                                \
    (mcc_f32x4)vfmaq_laneq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b), lane)
MCC_VEC_ONE_TO_ONE(4, sqrt, vsqrtq_f32((float32x4_t)x));
MCC_VEC_ONE_TO_ONE(4, floor, vrndmq_f32((float32x4_t)x));
MCC_VEC_ONE_TO_ONE(4, ceil, vrndpq_f32((float32x4_t)x));
MCC_VEC_ONE_TO_ONE(4, trunc, vrndq_f32((float32x4_t)x));
MCC_VEC_ONE_TO_ONE(4, round_even, vrndnq_f32((float32x4_t)x));
#else
MCC_VEC_NEON(f32x4, add, vaddq_f32);
MCC_VEC_NEON(f32x4, sub, vsubq_f32);
MCC_VEC_NEON(f32x4, mul, vmulq_f32);
MCC_VEC_INLINE mcc_f32x4 mcc_neg_f32x4(mcc_f32x4 x) { return (mcc_f32x4)vnegq_f32((float32x4_t)x); }
MCC_VEC_NEON(i32x4, less, vcltq_f32);
MCC_VEC_NEON(i32x4, less_equal, vcleq_f32);
MCC_VEC_NEON(i32x4, equal, vceqq_f32);
MCC_VEC_NEON(i32x4, greater_equal, vcgeq_f32);
MCC_VEC_NEON(i32x4, greater, vcgtq_f32);
/* Only products that are rounded apart have such a form. */
#define mcc_fma_at_f32x4(a, b, lane, c)                                                                                \
    (mcc_f32x4)vmlaq_lane_f32((float32x4_t)(c), (float32x4_t)(a),                                                      \
                              (lane) < 2 ? vget_low_f32((float32x4_t)(b)) : vget_high_f32((float32x4_t)(b)), (lane) & 1)
MCC_VEC_SQRT(4);
MCC_VEC_ROUND(4);
#endif

#endif /* MCC_VEC_ARM_H */
