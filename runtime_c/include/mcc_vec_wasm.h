/* mcc_vec_wasm.h - the part of mcc_vec.h for WebAssembly: what it does better than C operators.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_WASM_H
#define MCC_VEC_WASM_H

#if !defined(MCC_VEC_H)
#error "this is a part of mcc_vec.h: include that"
#endif

#include <wasm_simd128.h>

#define MCC_VEC_FORGET(p) __asm__("" : "+r"(p))

MCC_VEC_INLINE mcc_f32x4 mcc_load_part_f32x4(const float *p, int n)
{
    if (n == 1) return (mcc_f32x4)wasm_v128_load32_zero(p);
    return (mcc_f32x4)(n == 2 ? wasm_v128_load64_zero(p) : wasm_v128_load32_lane(p + 2, wasm_v128_load64_zero(p), 2));
}
MCC_VEC_INLINE void mcc_store_part_f32x4(float *p, int n, mcc_f32x4 v)
{
    if (n > 1) wasm_v128_store64_lane(p, (v128_t)v, 0);
    if (n == 1) wasm_v128_store32_lane(p, (v128_t)v, 0);
    if (n == 3) wasm_v128_store32_lane(p + 2, (v128_t)v, 2);
}
/* `pmax` and `pmin` give their first operand where either is NaN. */
MCC_VEC_INLINE mcc_f32x4 mcc_max_f32x4(mcc_f32x4 a, mcc_f32x4 b)
{
    return (mcc_f32x4)wasm_f32x4_max((v128_t)a, (v128_t)b);
}
MCC_VEC_INLINE mcc_f32x4 mcc_min_f32x4(mcc_f32x4 a, mcc_f32x4 b)
{
    return (mcc_f32x4)wasm_f32x4_min((v128_t)a, (v128_t)b);
}
MCC_VEC_INLINE mcc_f32x4 mcc_at_least_f32x4(mcc_f32x4 x, mcc_f32x4 low)
{
    return (mcc_f32x4)wasm_f32x4_pmax((v128_t)x, (v128_t)low);
}
MCC_VEC_INLINE mcc_f32x4 mcc_at_most_f32x4(mcc_f32x4 x, mcc_f32x4 high)
{
    return (mcc_f32x4)wasm_f32x4_pmin((v128_t)x, (v128_t)high);
}
MCC_VEC_SET(4);
MCC_VEC_ARITHMETIC(4);
#if defined(__wasm_relaxed_simd__) /* rounds once or twice, as suits the machine that it runs on */
MCC_VEC_INLINE mcc_f32x4 mcc_fma_f32x4(mcc_f32x4 a, mcc_f32x4 b, mcc_f32x4 c)
{
    return (mcc_f32x4)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
}
#else
MCC_VEC_FMA(4);
#endif
MCC_VEC_ONE_TO_ONE(4, sqrt, wasm_f32x4_sqrt((v128_t)x));
MCC_VEC_ONE_TO_ONE(4, floor, wasm_f32x4_floor((v128_t)x));
MCC_VEC_ONE_TO_ONE(4, ceil, wasm_f32x4_ceil((v128_t)x));
MCC_VEC_ONE_TO_ONE(4, trunc, wasm_f32x4_trunc((v128_t)x));
MCC_VEC_ONE_TO_ONE(4, round_even, wasm_f32x4_nearest((v128_t)x));

#endif /* MCC_VEC_WASM_H */
