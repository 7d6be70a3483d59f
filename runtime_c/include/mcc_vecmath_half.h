/* mcc_vecmath_half.h - the functions of mcc_vecmath.h on vectors of eight 16-bit floats, computed in 32 bits and
 * rounded once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VECMATH_HALF_H
#define MCC_VECMATH_HALF_H

#include "mcc_vec_half.h"
#include "mcc_vecmath.h"

#define MCC_VECMATH_HALF(name)                                                                                         \
    MCC_VEC_INLINE mcc_f16x8 mcc_##name##_f16x8(mcc_f16x8 x)                                                           \
    {                                                                                                                  \
        mcc_total_f16x8 wide = mcc_widen_f16x8(x);                                                                     \
        wide.low = mcc_##name##_f32x4(wide.low);                                                                       \
        wide.high = mcc_##name##_f32x4(wide.high);                                                                     \
        return mcc_round_total_f16x8(wide);                                                                            \
    }                                                                                                                  \
    typedef mcc_f16x8 mcc_f16x8_##name

MCC_VECMATH_HALF(exp);
MCC_VECMATH_HALF(expm1);
MCC_VECMATH_HALF(log);
MCC_VECMATH_HALF(log1p);
MCC_VECMATH_HALF(tanh);
MCC_VECMATH_HALF(erf);
MCC_VECMATH_HALF(asin);
MCC_VECMATH_HALF(acos);
MCC_VECMATH_HALF(atan);

#endif /* MCC_VECMATH_HALF_H */
