/* mcc_vecmath_wide_half.h - the functions of mcc_vecmath_wide.h on vectors of eight 16-bit floats, computed in 32 bits
 * and rounded once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VECMATH_WIDE_HALF_H
#define MCC_VECMATH_WIDE_HALF_H

#include "mcc_vecmath_half.h"
#include "mcc_vecmath_wide.h"

#define MCC_VECMATH_HALF_TWO(name)                                                                                     \
    MCC_VEC_INLINE mcc_f16x8 mcc_##name##_f16x8(mcc_f16x8 x, mcc_f16x8 y)                                              \
    {                                                                                                                  \
        mcc_total_f16x8 wide = mcc_widen_f16x8(x);                                                                     \
        const mcc_total_f16x8 other = mcc_widen_f16x8(y);                                                              \
        wide.low = mcc_##name##_f32x4(wide.low, other.low);                                                            \
        wide.high = mcc_##name##_f32x4(wide.high, other.high);                                                         \
        return mcc_round_total_f16x8(wide);                                                                            \
    }                                                                                                                  \
    typedef mcc_f16x8 mcc_f16x8_##name

MCC_VECMATH_HALF(sin);
MCC_VECMATH_HALF(cos);
MCC_VECMATH_HALF(tan);
MCC_VECMATH_HALF(sinh);
MCC_VECMATH_HALF(cosh);
MCC_VECMATH_HALF(asinh);
MCC_VECMATH_HALF(acosh);
MCC_VECMATH_HALF(atanh);
MCC_VECMATH_HALF_TWO(pow);
MCC_VECMATH_HALF_TWO(mod);
MCC_VECMATH_HALF_TWO(fmod);

#endif /* MCC_VECMATH_WIDE_HALF_H */
