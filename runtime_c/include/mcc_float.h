/* mcc_float.h - what C's float arithmetic leaves open: NaN in minima, remainders, ties, and casts out of range.
 *
 * For T among f32 (float) and f64 (double); results never depend on the rounding mode:
 *
 *     mcc_min_T mcc_max_T      NaN if either operand is NaN
 *     mcc_sign_T(x)            -1, 0 or 1; NaN stays NaN
 *     mcc_mod_T(a, b)          a - floor(a / b) * b, with the sign of b, exact where that is a float
 *     mcc_fmod_T(a, b)         a - trunc(a / b) * b, with the sign of a, always exact
 *     mcc_round_even_T(x)      to the nearest whole number, halves to the even one
 *     mcc_erf_T(x)
 *     mcc_f32_near_i8(x, zero) ... _u8 _i16 _u16
 *                              x rounded so, plus zero (a number of that type), saturated; 0 for NaN
 *     mcc_T_to_i8 ... _to_u64  casts, see below;  mcc_T_to_bool: 0 for zero, 1 for all else, NaN included
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_FLOAT_H
#define MCC_FLOAT_H

#include <math.h>
#include <string.h>

#include "mcc_port.h"

/* Without an FPU an operation on floats is a call of a library: then the bits of a number tell what is asked. */
#ifndef MCC_SOFT_FLOAT
#if (defined(__arm__) && !defined(__ARM_FP)) || (defined(__riscv) && !defined(__riscv_flen))
#define MCC_SOFT_FLOAT 1
#else
#define MCC_SOFT_FLOAT 0
#endif
#endif

/* One instruction converts floats to integers and saturates, so that nothing branches. */
#ifndef MCC_FLOAT_CONVERTS
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_SAT) && defined(__ARM_FP)
#define MCC_FLOAT_CONVERTS ((__ARM_FP & 4) != 0)
#else
#define MCC_FLOAT_CONVERTS 0
#endif
#endif

/* No functions, since libraries of the smallest processors lack these, and most networks call none. */
#define mcc_erf_f32(x) erff(x)
#define mcc_erf_f64(x) erf(x)

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP)
/* Where b is known one comparison says all, and compilers need no branch: a run takes as long for all numbers. */
#define MCC_FLOAT_KNOWN(b) (__builtin_constant_p(b) && b == b)
#else
#define MCC_FLOAT_KNOWN(b) 0
#endif
/* Not NaN, where a comparison says so already: Frama-C wants to be told. */
#ifdef __FRAMAC__
#define MCC_FLOAT_NUMBER(x) ((x) == (x))
#else
#define MCC_FLOAT_NUMBER(x) 1
#endif
#if defined(__x86_64__) || defined(_M_X64)
/* One instruction chooses; what is left to ask seldom holds, or becomes no branch. */
#define MCC_FLOAT_CHOICE(NAME, type, BEFORE, NOT_BEFORE)                                                               \
    MCC_INLINE type NAME(type a, type b)                                                                               \
    {                                                                                                                  \
        const type chosen = a BEFORE b ? a : b;                                                                        \
        return a != a ? a : chosen;                                                                                    \
    }
#else
#define MCC_FLOAT_CHOICE(NAME, type, BEFORE, NOT_BEFORE)                                                               \
    MCC_INLINE type NAME(type a, type b)                                                                               \
    {                                                                                                                  \
        if (MCC_FLOAT_KNOWN(b)) return a NOT_BEFORE b ? b : a;                                                         \
        return a BEFORE b || a != a ? a : b;                                                                           \
    }
#endif

#define MCC_FLOAT_CHOSEN(T, type)                                                                                      \
    MCC_FLOAT_CHOICE(mcc_min_##T, type, <, >=)                                                                         \
    MCC_FLOAT_CHOICE(mcc_max_##T, type, >, <=)

/* Below `whole` (2^23, 2^52) a number may have a fraction, and fits `integer`, so that its whole part is an exact cast
 * and the fraction an exact difference. `f` is libm's suffix. Some targets have one instruction for rint. */
#if defined(__SSE4_1__) || defined(__aarch64__)
#define MCC_FLOAT_ROUNDED(T, type, f, integer, whole)                                                                  \
    MCC_INLINE type mcc_round_even_##T(type x) { return rint##f(x); }
#else
#define MCC_FLOAT_ROUNDED(T, type, f, integer, whole)                                                                  \
    MCC_INLINE type mcc_round_even_##T(type x)                                                                         \
    {                                                                                                                  \
        const type size = fabs##f(x);                                                                                  \
        integer near;                                                                                                  \
        type rest;                                                                                                     \
        if (!(MCC_FLOAT_NUMBER(size) && size < whole)) return x;                                                       \
        near = (integer)size;                                                                                          \
        rest = size - (type)near;                                                                                      \
        near += (integer)(rest > (type)0.5 || (!(rest < (type)0.5) && (near & 1) != 0));                               \
        return copysign##f((type)near, x);                                                                             \
    }
#endif

#define MCC_FLOAT(T, type, f)                                                                                          \
    MCC_INLINE type mcc_sign_##T(type x) { return x != x ? x : (type)((x > 0) - (x < 0)); }                            \
    MCC_INLINE type mcc_fmod_##T(type a, type b) { return fmod##f(a, b); }                                             \
    MCC_INLINE type mcc_mod_##T(type a, type b)                                                                        \
    {                                                                                                                  \
        const type rest = fmod##f(a, b);                                                                               \
        if (!(rest < 0) && !(rest > 0)) return rest != rest ? rest : copysign##f(rest, b);                             \
        return (rest < 0) != (b < 0) ? rest + b : rest;                                                                \
    }                                                                                                                  \
    MCC_INLINE uint8_t mcc_##T##_to_bool(type x) { return (uint8_t)!(x >= 0 && x <= 0); }

MCC_INLINE uint32_t mcc_float_bits(float x)
{
    uint32_t bits;
    (void)memcpy(&bits, &x, sizeof bits);
    return bits;
}

#if MCC_SOFT_FLOAT
#if defined(__GNUC__)
#define MCC_SOFT_CALLED static __attribute__((noinline, unused)) /* code counts on the cores that have no FPU */
#else
#define MCC_SOFT_CALLED MCC_INLINE
#endif

/* Is a < b? Nothing is less than a NaN, nor -0 than 0. */
MCC_SOFT_CALLED int mcc_soft_less(uint32_t a, uint32_t b)
{
    if ((a & 0x7fffffffu) > 0x7f800000u || (b & 0x7fffffffu) > 0x7f800000u || ((a | b) & 0x7fffffffu) == 0) return 0;
    if (((a ^ b) >> 31) != 0) return (a >> 31) != 0;
    return (a >> 31) != 0 ? a > b : a < b;
}

MCC_INLINE float mcc_min_f32(float a, float b)
{
    const uint32_t bits = mcc_float_bits(a);
    return mcc_soft_less(bits, mcc_float_bits(b)) || (bits & 0x7fffffffu) > 0x7f800000u ? a : b;
}

MCC_INLINE float mcc_max_f32(float a, float b)
{
    const uint32_t bits = mcc_float_bits(a);
    return mcc_soft_less(mcc_float_bits(b), bits) || (bits & 0x7fffffffu) > 0x7f800000u ? a : b;
}

MCC_INLINE float mcc_round_even_f32(float x)
{
    uint32_t bits = mcc_float_bits(x);
    const uint32_t power = (bits >> 23) & 255u;
    if (power >= 150u) return x; /* no fraction, or no number */
    if (power < 127u) {
        bits = (bits & 0x80000000u) | (power == 126u && (bits & 0x7fffffu) != 0 ? 0x3f800000u : 0u);
    } else {
        const uint32_t unit = UINT32_C(1) << (150u - power); /* of the last place before the point */
        bits += (unit >> 1) - 1u + ((bits & unit) != 0 ? 1u : 0u);
        bits &= ~(unit - 1u);
    }
    (void)memcpy(&x, &bits, sizeof x);
    return x;
}
#else
MCC_FLOAT_CHOSEN(f32, float)
#if MCC_FLOAT_CONVERTS
#if __ARM_ARCH >= 8
#define MCC_FLOAT_NEAREST "vcvtn.s32.f32"
#else
#define MCC_FLOAT_NEAREST "vcvtr.s32.f32" /* by the rounding mode, as the quotient that is rounded was */
#endif
/* INT32_MAX or INT32_MIN where the result does not fit, 0 for NaN. */
#define MCC_FLOAT_CONVERSION(NAME, INSTRUCTION)                                                                        \
    MCC_INLINE int32_t NAME(float x)                                                                                   \
    {                                                                                                                  \
        int32_t found;                                                                                                 \
        __asm__(INSTRUCTION " %0, %1" : "=t"(found) : "t"(x));                                                         \
        return found;                                                                                                  \
    }
MCC_FLOAT_CONVERSION(mcc_convert_nearest, MCC_FLOAT_NEAREST)
MCC_FLOAT_CONVERSION(mcc_convert_toward_zero, "vcvt.s32.f32")

MCC_INLINE float mcc_round_even_f32(float x)
{
    const uint32_t given = mcc_float_bits(x), fraction = (uint32_t)0 - (((given & 0x7fffffffu) - 0x4b000000u) >> 31);
    const float size = fabsf(x);
    const int32_t whole = mcc_convert_toward_zero(size);
    uint32_t near = (uint32_t)whole;
    near += (0x3f000000u - (near & 1u) - mcc_float_bits(size - (float)whole)) >> 31; /* more than a half, or odd */
    near = given ^ ((given ^ mcc_float_bits((float)(int32_t)near)) & fraction & 0x7fffffffu); /* keeps the sign */
    (void)memcpy(&x, &near, sizeof x);
    return x;
}
#else
MCC_FLOAT_ROUNDED(f32, float, f, int32_t, 8388608.0f)
#endif
#endif
MCC_FLOAT_CHOSEN(f64, double)
MCC_FLOAT_ROUNDED(f64, double, , int64_t, 4503599627370496.0)
MCC_FLOAT(f32, float, f)
MCC_FLOAT(f64, double, )

/* Casts to integers round toward zero. Where the result does not fit, C leaves it undefined and ONNX as well; here it
 * is what onnx's reference and onnxruntime give on x86 (of the two answers that they have for u32, that of their vector
 * code):
 *   - i32 and i64: the smallest value (also for NaN);
 *   - u32 and u64: negative numbers wrap around through the signed type, too large ones give 0;
 *   - 8 and 16 bits: the low bits of the cast to i32. */
#define MCC_FLOAT_TO_SIGNED(T, type, bits, half)                                                                       \
    MCC_INLINE int##bits##_t mcc_##T##_to_i##bits(type x)                                                              \
    {                                                                                                                  \
        return MCC_FLOAT_NUMBER(x) && x >= -(half) && x < (half) ? (int##bits##_t)x : INT##bits##_MIN;                 \
    }

#define MCC_FLOAT_TO_WORD(T, type, bits, half, full)                                                                   \
    MCC_INLINE uint##bits##_t mcc_##T##_to_u##bits(type x)                                                             \
    {                                                                                                                  \
        if (x >= (half)) return MCC_FLOAT_NUMBER(x) && x < (full) ? (uint##bits##_t)x : 0u;                            \
        return (uint##bits##_t)mcc_##T##_to_i##bits(x);                                                                \
    }

#define MCC_FLOAT_TO_INT(T, type, f)                                                                                   \
    MCC_FLOAT_TO_WORD(T, type, 32, 2147483648.0##f, 4294967296.0##f)                                                   \
    MCC_FLOAT_TO_WORD(T, type, 64, 9223372036854775808.0##f, 18446744073709551616.0##f)                                \
    MCC_INLINE int8_t mcc_##T##_to_i8(type x) { return (int8_t)mcc_##T##_to_i32(x); }                                  \
    MCC_INLINE uint8_t mcc_##T##_to_u8(type x) { return (uint8_t)mcc_##T##_to_i32(x); }                                \
    MCC_INLINE int16_t mcc_##T##_to_i16(type x) { return (int16_t)mcc_##T##_to_i32(x); }                               \
    MCC_INLINE uint16_t mcc_##T##_to_u16(type x) { return (uint16_t)mcc_##T##_to_i32(x); }

#if MCC_SOFT_FLOAT
MCC_INLINE int32_t mcc_f32_to_i32(float x)
{
    const uint32_t bits = mcc_float_bits(x), power = (bits >> 23) & 255u;
    int32_t size;
    if (power >= 158u) return INT32_MIN;
    if (power < 127u) return 0;
    size = (int32_t)(((bits << 8) | 0x80000000u) >> (158u - power));
    return (bits >> 31) != 0 ? -size : size;
}
#elif MCC_FLOAT_CONVERTS
MCC_INLINE int32_t mcc_f32_to_i32(float x)
{
    const int32_t whole = mcc_convert_toward_zero(x);
    return fabsf(x) < 2147483648.0f ? whole : INT32_MIN;
}
#else
MCC_FLOAT_TO_SIGNED(f32, float, 32, 2147483648.0f)
#endif
MCC_FLOAT_TO_SIGNED(f32, float, 64, 9223372036854775808.0f)
MCC_FLOAT_TO_SIGNED(f64, double, 32, 2147483648.0)
MCC_FLOAT_TO_SIGNED(f64, double, 64, 9223372036854775808.0)
MCC_FLOAT_TO_INT(f32, float, f)
MCC_FLOAT_TO_INT(f64, double, )

#if MCC_SOFT_FLOAT
MCC_SOFT_CALLED int32_t mcc_soft_near(float x, int32_t zero, int32_t low, int32_t high)
{
    const uint32_t bits = mcc_float_bits(x), power = (bits >> 23) & 255u;
    int32_t near;
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0;
    if (power >= 144u) {
        near = 131072; /* 2^17, as well as any that is larger */
    } else if (power >= 126u) {
        const uint32_t all = (bits << 8) | 0x80000000u, shift = 158u - power; /* 15 to 32 */
        const uint32_t whole = (all >> 1) >> (shift - 1u), rest = all << (32u - shift);
        near = (int32_t)(whole + (rest > 0x80000000u - (whole & 1u) ? 1u : 0u));
    } else {
        near = 0;
    }
    near = ((bits >> 31) != 0 ? -near : near) + zero;
    return near < low ? low : near > high ? high : near;
}
#define MCC_FLOAT_NEAR(T, c, LOW, HIGH, SATURATION)                                                                    \
    MCC_INLINE c mcc_f32_near_##T(float x, int32_t zero) { return (c)mcc_soft_near(x, zero, LOW, HIGH); }
#elif MCC_FLOAT_CONVERTS
#define MCC_FLOAT_NEAR(T, c, LOW, HIGH, SATURATION)                                                                    \
    MCC_INLINE c mcc_f32_near_##T(float x, int32_t zero)                                                               \
    {                                                                                                                  \
        int32_t found = mcc_convert_nearest(x);                                                                        \
        __asm__("ssat %0, #18, %1" : "=r"(found) : "r"(found));                                                        \
        __asm__(SATURATION ", %1" : "=r"(found) : "r"(found + zero));                                                  \
        return (c)(x != x ? 0 : found);                                                                                \
    }
#else
#define MCC_FLOAT_NEAR(T, c, LOW, HIGH, SATURATION)                                                                    \
    MCC_INLINE c mcc_f32_near_##T(float x, int32_t zero)                                                               \
    {                                                                                                                  \
        const float whole = mcc_round_even_f32(x) + (float)zero;                                                       \
        return mcc_f32_to_##T(mcc_max_f32(mcc_min_f32(whole, (float)(HIGH)), (float)(LOW)));                           \
    }
#endif
MCC_FLOAT_NEAR(i8, int8_t, -128, 127, "ssat %0, #8")
MCC_FLOAT_NEAR(u8, uint8_t, 0, 255, "usat %0, #8")
MCC_FLOAT_NEAR(i16, int16_t, -32768, 32767, "ssat %0, #16")
MCC_FLOAT_NEAR(u16, uint16_t, 0, 65535, "usat %0, #16")

#undef MCC_FLOAT_NEAR
#undef MCC_FLOAT_CONVERSION
#undef MCC_FLOAT_NEAREST
#undef MCC_FLOAT_ROUNDED
#undef MCC_FLOAT_CHOICE
#undef MCC_FLOAT_KNOWN
#undef MCC_FLOAT_NUMBER
#undef MCC_FLOAT
#undef MCC_FLOAT_CHOSEN
#undef MCC_SOFT_CALLED
#undef MCC_FLOAT_TO_SIGNED
#undef MCC_FLOAT_TO_WORD
#undef MCC_FLOAT_TO_INT

#endif /* MCC_FLOAT_H */
