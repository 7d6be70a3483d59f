/* mcc_narrow.h - element types narrower than C's: 16-bit, 8-bit and 4-bit floats, and packed 4-bit and 2-bit elements.
 *
 *     mcc_N_to_f32(n)                    exact
 *     mcc_f32_to_N(x)  mcc_f64_to_N(x)   to the nearest, halves to even, rounded once
 *         for N among  f16 bf16 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f4e2m1 f8e8m0
 *     mcc_f32_to_N_sat(x)  mcc_f64_to_N_sat(x)   for the f8: what is too large gives the largest number (Cast with
 *                                                saturate = 1), not infinity or NaN (saturate = 0). f4 always does.
 *     mcc_normal_f16_to_f32(n)           for 0 and normal numbers, in four instructions
 *     mcc_load_i4(p, i)  mcc_store_i4(p, i, value)   element i of a packed array, also u4 i2 u2; a store keeps the
 *                                                    low bits of `value`; a packed f4e2m1 goes through u4
 *
 * All is done on bits, so no result depends on the rounding mode or on how the machine treats subnormals; but f16 and
 * floats become each other in one instruction on Arm, where compilers know the type, and on x86 with F16C. NaN stays
 * NaN, its bits may change.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_NARROW_H
#define MCC_NARROW_H

#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "mcc.h"

/* Floats as bits */

MCC_INLINE uint32_t mcc_f32_bits(float x)
{
    uint32_t bits;
    (void)memcpy(&bits, &x, sizeof bits);
    return bits;
}

MCC_INLINE float mcc_f32_of_bits(uint32_t bits)
{
    float x;
    (void)memcpy(&x, &bits, sizeof x);
    return x;
}

/* A double as a float, rounded to odd: rounding that once more, to a type at least two bits narrower, gives the same as
 * rounding the double itself. */
MCC_INLINE float mcc_f64_to_f32_odd(double x)
{
    uint64_t bits, mantissa;
    uint32_t sign, result;
    int exponent, drop;
    (void)memcpy(&bits, &x, sizeof bits);
    sign = (uint32_t)(bits >> 63) << 31;
    exponent = (int)(bits >> 52 & 0x7FFu) - 1023 + 127; /* as a float has it */
    mantissa = bits & 0xFFFFFFFFFFFFFu;
    if (exponent == 0x7FF - 1023 + 127) {
        result = mantissa != 0u ? 0x7FC00000u : 0x7F800000u;
    } else if (exponent >= 255) {
        result = 0x7F7FFFFFu;
    } else if (exponent > 0) {
        result = (uint32_t)exponent << 23 | (uint32_t)(mantissa >> 29) | (uint32_t)((mantissa & 0x1FFFFFFFu) != 0u);
    } else { /* subnormal as a float, or smaller; a subnormal double is smaller than all of them */
        drop = 30 - exponent;
        mantissa |= (uint64_t)1u << 52;
        result = drop > 53 ? (uint32_t)((bits << 1) != 0u)
                           : (uint32_t)(mantissa >> drop) |
                                 (uint32_t)((mantissa & (((uint64_t)1u << drop) - 1u)) != 0u);
    }
    return mcc_f32_of_bits(sign | result);
}

/* The smaller binary floats: one sign, some exponent bits with a bias, and `fraction` bits */

/* Magnitude bits of a finite float, rounded half to even. Too large a number gives a code beyond the largest finite. */
MCC_INLINE uint32_t mcc_small_of_magnitude(uint32_t magnitude, int fraction, int bias)
{
    const int exponent = (int)(magnitude >> 23);
    int drop = 23 - fraction;
    uint32_t code;
    if (exponent >= 128 - bias) {
        code = magnitude - ((uint32_t)(127 - bias) << 23);
    } else { /* subnormal in the small type: shift further, the hidden bit included */
        drop += 128 - bias - (exponent > 0 ? exponent : 1);
        if (drop > 24) return 0u;
        code = (magnitude & 0x7FFFFFu) | (exponent > 0 ? 0x800000u : 0u);
    }
    return (code + ((uint32_t)1u << (drop - 1)) - 1u + (code >> drop & 1u)) >> drop;
}

/* The float of a code without sign that stands for a finite number. */
MCC_INLINE uint32_t mcc_small_to_magnitude(uint32_t code, int fraction, int bias)
{
    if (code >> fraction != 0u) return (code << (23 - fraction)) + ((uint32_t)(127 - bias) << 23);
    return mcc_f32_bits((float)code * mcc_f32_of_bits((uint32_t)(128 - bias - fraction) << 23));
}

/* 16 bits */

#if defined(__ARM_FP16_FORMAT_IEEE) && defined(__ARM_FP) && (__ARM_FP & 2)
MCC_INLINE float mcc_f16_to_f32(mcc_f16 h)
{
    __fp16 x;
    (void)memcpy(&x, &h, sizeof x);
    return (float)x;
}

MCC_INLINE mcc_f16 mcc_f32_to_f16(float x)
{
    const __fp16 rounded = (__fp16)x;
    mcc_f16 h;
    (void)memcpy(&h, &rounded, sizeof h);
    return h;
}
#else
MCC_INLINE float mcc_f16_to_f32(mcc_f16 h)
{
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    const uint32_t sign = ((uint32_t)h & 0x8000u) << 16, code = (uint32_t)h & 0x7FFFu;
    if (code >= 0x7C00u) return mcc_f32_of_bits(sign | 0x7F800000u | (code & 0x3FFu) << 13);
    return mcc_f32_of_bits(sign | mcc_small_to_magnitude(code, 10, 15));
#endif
}

MCC_INLINE mcc_f16 mcc_f32_to_f16(float x)
{
#if defined(__F16C__)
    return (mcc_f16)_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
#else
    const uint32_t bits = mcc_f32_bits(x), magnitude = bits & 0x7FFFFFFFu;
    uint32_t code;
    if (magnitude > 0x7F800000u) code = 0x7E00u;
    else if (magnitude >= 0x47800000u) code = 0x7C00u; /* 65536 and more; rounding takes care of what is just below */
    else code = mcc_small_of_magnitude(magnitude, 10, 15);
    return (mcc_f16)((bits >> 16 & 0x8000u) | code);
#endif
}
#endif

MCC_INLINE float mcc_normal_f16_to_f32(mcc_f16 h)
{
    const uint32_t bits = ((uint32_t)h & 0x8000u) << 16 | ((uint32_t)h & 0x7FFFu) << 13;
    return mcc_f32_of_bits(bits) * 5.19229686e33f; /* 2^112, by which the exponents differ */
}

MCC_INLINE float mcc_bf16_to_f32(mcc_bf16 h) { return mcc_f32_of_bits((uint32_t)h << 16); }

MCC_INLINE mcc_bf16 mcc_f32_to_bf16(float x)
{
    const uint32_t bits = mcc_f32_bits(x);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (mcc_bf16)((bits >> 16 & 0x8000u) | 0x7FC0u);
    return (mcc_bf16)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

MCC_INLINE mcc_f16 mcc_f64_to_f16(double x) { return mcc_f32_to_f16(mcc_f64_to_f32_odd(x)); }
MCC_INLINE mcc_bf16 mcc_f64_to_bf16(double x) { return mcc_f32_to_bf16(mcc_f64_to_f32_odd(x)); }

/* 8 bits. "fn" has no infinity and one NaN, all ones; "fnuz" has neither infinity nor -0, whose code is its NaN. */

#define MCC_F8_NO_MINUS_ZERO 0x80u /* the NaN of the fnuz types */

MCC_INLINE float mcc_f8e4m3fn_to_f32(mcc_f8e4m3fn n)
{
    const uint32_t sign = ((uint32_t)n & 0x80u) << 24, code = (uint32_t)n & 0x7Fu;
    return mcc_f32_of_bits(sign | (code == 0x7Fu ? 0x7FC00000u : mcc_small_to_magnitude(code, 3, 7)));
}

MCC_INLINE float mcc_f8e5m2_to_f32(mcc_f8e5m2 n) { return mcc_f16_to_f32((mcc_f16)((uint32_t)n << 8)); }

MCC_INLINE float mcc_fnuz_to_f32(uint8_t n, int fraction, int bias)
{
    const uint32_t sign = ((uint32_t)n & 0x80u) << 24;
    if (n == MCC_F8_NO_MINUS_ZERO) return mcc_f32_of_bits(0x7FC00000u);
    return mcc_f32_of_bits(sign | mcc_small_to_magnitude(n & 0x7Fu, fraction, bias));
}

MCC_INLINE float mcc_f8e4m3fnuz_to_f32(mcc_f8e4m3fnuz n) { return mcc_fnuz_to_f32(n, 3, 8); }
MCC_INLINE float mcc_f8e5m2fnuz_to_f32(mcc_f8e5m2fnuz n) { return mcc_fnuz_to_f32(n, 2, 16); }

/* `largest` is the code of the largest number, `beyond` of what lies beyond it, `nan` of NaN. */
MCC_INLINE uint8_t mcc_f32_to_f8(float x, int fraction, int bias, uint32_t largest, uint32_t beyond, uint32_t nan)
{
    const uint32_t bits = mcc_f32_bits(x), magnitude = bits & 0x7FFFFFFFu;
    uint32_t code = nan;
    if (magnitude <= 0x7F800000u) {
        code = mcc_small_of_magnitude(magnitude, fraction, bias);
        if (code > largest) code = beyond;
        if (code == 0u && nan == MCC_F8_NO_MINUS_ZERO) return 0u;
    }
    return (uint8_t)((bits >> 24 & 0x80u) | code);
}

#define MCC_TO_F8(N, fraction, bias, largest, beyond, nan)                                                             \
    MCC_INLINE uint8_t mcc_f32_to_##N(float x) { return mcc_f32_to_f8(x, fraction, bias, largest, beyond, nan); }      \
    MCC_INLINE uint8_t mcc_f64_to_##N(double x) { return mcc_f32_to_##N(mcc_f64_to_f32_odd(x)); }                      \
    MCC_INLINE uint8_t mcc_f32_to_##N##_sat(float x)                                                                   \
    {                                                                                                                  \
        return mcc_f32_to_f8(x, fraction, bias, largest, largest, nan);                                                \
    }                                                                                                                  \
    MCC_INLINE uint8_t mcc_f64_to_##N##_sat(double x) { return mcc_f32_to_##N##_sat(mcc_f64_to_f32_odd(x)); }

MCC_TO_F8(f8e4m3fn, 3, 7, 0x7Eu, 0x7Fu, 0x7Fu)
MCC_TO_F8(f8e4m3fnuz, 3, 8, 0x7Fu, 0x80u, MCC_F8_NO_MINUS_ZERO)
MCC_TO_F8(f8e5m2, 2, 15, 0x7Bu, 0x7Cu, 0x7Eu)
MCC_TO_F8(f8e5m2fnuz, 2, 16, 0x7Fu, 0x80u, MCC_F8_NO_MINUS_ZERO)

#undef MCC_TO_F8

/* A power of two, 2^(n - 127); the smallest is a subnormal float. */
MCC_INLINE float mcc_f8e8m0_to_f32(mcc_f8e8m0 n)
{
    if (n == 0xFFu) return mcc_f32_of_bits(0x7FC00000u);
    return mcc_f32_of_bits(n == 0u ? 0x00400000u : (uint32_t)n << 23);
}

/* Of a power of two; the sign goes, and what is not a number or too large is NaN. */
MCC_INLINE mcc_f8e8m0 mcc_f32_to_f8e8m0(float x) { return (mcc_f8e8m0)(mcc_f32_bits(x) >> 23 & 0xFFu); }

/* The power of two that stands for the magnitude of x: the next one below, above (mode 1) or near it (mode 2), as Cast
 * defines them. Saturating, there is always one above a number; infinity and NaN are neither. */
MCC_INLINE float mcc_power_of_two(float x, int mode, int saturate)
{
    const uint32_t bits = mcc_f32_bits(x), exponent = bits >> 23 & 0xFFu, fraction = bits & 0x007FFFFFu;
    const uint32_t above_half = (fraction & 0x00400000u) != 0u ? (fraction & 0x003FFFFFu) | exponent : 0u;
    uint32_t code = exponent;
    if (exponent == 0xFFu) return mcc_f32_of_bits(0x7FC00000u);
    if ((mode == 1 && fraction != 0u) || (mode == 2 && above_half != 0u)) code += 1u;
    if (saturate != 0 && code == 0xFFu) code = 0xFEu;
    return mcc_f32_of_bits(code == 0u ? 0x00400000u : code << 23);
}

/* 4 bits: 0 0.5 1 1.5 2 3 4 6 and their negatives; NaN becomes a zero of the other sign, as in onnx (ml_dtypes) */

MCC_INLINE float mcc_f4e2m1_to_f32(uint8_t n)
{
    return mcc_f32_of_bits(((uint32_t)n & 8u) << 28 | mcc_small_to_magnitude(n & 7u, 1, 1));
}

MCC_INLINE uint8_t mcc_f32_to_f4e2m1(float x)
{
    const uint32_t bits = mcc_f32_bits(x), magnitude = bits & 0x7FFFFFFFu;
    uint32_t code;
    if (magnitude > 0x7F800000u) return (uint8_t)(~bits >> 28 & 8u);
    code = mcc_small_of_magnitude(magnitude, 1, 1);
    return (uint8_t)((bits >> 28 & 8u) | (code > 7u ? 7u : code));
}

MCC_INLINE uint8_t mcc_f64_to_f4e2m1(double x) { return mcc_f32_to_f4e2m1(mcc_f64_to_f32_odd(x)); }

/* Packed arrays */

MCC_INLINE uint8_t mcc_load_u4(const uint8_t *p, mcc_index i) { return (uint8_t)(p[i / 2] >> (i % 2 * 4) & 15); }
MCC_INLINE uint8_t mcc_load_u2(const uint8_t *p, mcc_index i) { return (uint8_t)(p[i / 4] >> (i % 4 * 2) & 3); }
MCC_INLINE int8_t mcc_load_i4(const uint8_t *p, mcc_index i) { return (int8_t)((mcc_load_u4(p, i) ^ 8) - 8); }
MCC_INLINE int8_t mcc_load_i2(const uint8_t *p, mcc_index i) { return (int8_t)((mcc_load_u2(p, i) ^ 2) - 2); }

MCC_INLINE void mcc_store_u4(uint8_t *p, mcc_index i, uint8_t value)
{
    const int shift = (int)(i % 2 * 4);
    p[i / 2] = (uint8_t)((p[i / 2] & ~(15 << shift)) | (value & 15) << shift);
}

MCC_INLINE void mcc_store_u2(uint8_t *p, mcc_index i, uint8_t value)
{
    const int shift = (int)(i % 4 * 2);
    p[i / 4] = (uint8_t)((p[i / 4] & ~(3 << shift)) | (value & 3) << shift);
}

MCC_INLINE void mcc_store_i4(uint8_t *p, mcc_index i, int8_t value) { mcc_store_u4(p, i, (uint8_t)value); }
MCC_INLINE void mcc_store_i2(uint8_t *p, mcc_index i, int8_t value) { mcc_store_u2(p, i, (uint8_t)value); }

#endif /* MCC_NARROW_H */
