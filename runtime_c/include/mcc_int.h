/* mcc_int.h - integer arithmetic with a result for every operand, the same on every machine.
 *
 * C leaves overflow, division by zero and wide shifts undefined and promotes small types on the way. Here, for T among
 * i8 i16 i32 i64 u8 u16 u32 u64 (the ONNX definitions where ONNX has one):
 *
 *     mcc_add_T mcc_sub_T mcc_mul_T mcc_neg_T mcc_abs_T    wrap around; so does abs of the smallest value
 *     mcc_div_T(a, b)     rounds toward zero; 0 if b is 0; the smallest value divided by -1 wraps around
 *     mcc_mod_T(a, b)     a - floor(a / b) * b, with the sign of b; 0 if b is 0
 *     mcc_fmod_T(a, b)    a - trunc(a / b) * b, with the sign of a; 0 if b is 0
 *     mcc_pow_T(a, b)     wraps around; 1 if b is 0; a negative power is 1 / a^-b rounded toward zero, and 0 if a is 0
 *     mcc_shl_T(a, b)     0 if b is negative or not less than the width
 *     mcc_shr_T(a, b)     fills with copies of the sign; if b is negative or not below the width, nothing else is left
 *     mcc_min_T mcc_max_T mcc_sign_T
 *
 * Casts between integers need no function: (int8_t)x keeps the low bits, as ONNX wants, on every compiler that exists.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_INT_H
#define MCC_INT_H

#include "mcc_port.h"

/* `word` is an unsigned type no narrower than T and at least 32 bits wide: unsigned arithmetic wraps around, and
 * uint16_t times uint16_t would not be unsigned. */
#define MCC_INT_BOTH(T, type, word, bits)                                                                              \
    MCC_INLINE type mcc_add_##T(type a, type b) { return (type)((word)a + (word)b); }                                  \
    MCC_INLINE type mcc_sub_##T(type a, type b) { return (type)((word)a - (word)b); }                                  \
    MCC_INLINE type mcc_mul_##T(type a, type b) { return (type)((word)a * (word)b); }                                  \
    MCC_INLINE type mcc_neg_##T(type a) { return (type)((word)0 - (word)a); }                                          \
    MCC_INLINE type mcc_min_##T(type a, type b) { return b < a ? b : a; }                                              \
    MCC_INLINE type mcc_max_##T(type a, type b) { return a < b ? b : a; }                                              \
    MCC_INLINE type mcc_power_##T(type a, type b) /* b >= 0 */                                                         \
    {                                                                                                                  \
        word base = (word)a, power = 1u;                                                                               \
        for (; b != 0; b = (type)(b >> 1)) {                                                                           \
            power += power * (base - 1u) * ((word)b & 1u); /* no branch: bits are as good as random */                 \
            base *= base;                                                                                              \
        }                                                                                                              \
        return (type)power;                                                                                            \
    }

#define MCC_INT_SIGNED(T, type, word, bits)                                                                            \
    MCC_INT_BOTH(T, type, word, bits)                                                                                  \
    MCC_INLINE type mcc_abs_##T(type a) { return a < 0 ? mcc_neg_##T(a) : a; }                                         \
    MCC_INLINE type mcc_sign_##T(type a) { return (type)((a > 0) - (a < 0)); }                                         \
    MCC_INLINE type mcc_div_##T(type a, type b)                                                                        \
    {                                                                                                                  \
        if (b == -1) return mcc_neg_##T(a);                                                                            \
        return (type)(b == 0 ? 0 : a / b);                                                                             \
    }                                                                                                                  \
    MCC_INLINE type mcc_fmod_##T(type a, type b) { return (type)(b == 0 || b == -1 ? 0 : a % b); }                     \
    MCC_INLINE type mcc_mod_##T(type a, type b)                                                                        \
    {                                                                                                                  \
        const type rest = mcc_fmod_##T(a, b);                                                                          \
        return (type)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);                                           \
    }                                                                                                                  \
    MCC_INLINE type mcc_shl_##T(type a, type b) { return (type)(b < 0 || b >= bits ? 0u : (word)a << b); }             \
    MCC_INLINE type mcc_shr_##T(type a, type b)                                                                        \
    {                                                                                                                  \
        const type shift = (type)(b < 0 || b >= bits ? bits - 1 : b);                                                  \
        return (type)(a < 0 ? ~(~a >> shift) : a >> shift);                                                            \
    }                                                                                                                  \
    MCC_INLINE type mcc_pow_##T(type a, type b)                                                                        \
    {                                                                                                                  \
        if (b >= 0) return mcc_power_##T(a, b);                                                                        \
        return (type)(a == 1 || (a == -1 && (b & 1) == 0) ? 1 : a == -1 ? -1 : 0);                                     \
    }

#define MCC_INT_UNSIGNED(T, type, word, bits)                                                                          \
    MCC_INT_BOTH(T, type, word, bits)                                                                                  \
    MCC_INLINE type mcc_abs_##T(type a) { return a; }                                                                  \
    MCC_INLINE type mcc_sign_##T(type a) { return (type)(a != 0u); }                                                   \
    MCC_INLINE type mcc_div_##T(type a, type b) { return (type)(b == 0u ? 0u : (word)a / b); }                         \
    MCC_INLINE type mcc_fmod_##T(type a, type b) { return (type)(b == 0u ? 0u : (word)a % b); }                        \
    MCC_INLINE type mcc_mod_##T(type a, type b) { return mcc_fmod_##T(a, b); }                                         \
    MCC_INLINE type mcc_shl_##T(type a, type b) { return (type)(b >= bits ? 0u : (word)a << b); }                      \
    MCC_INLINE type mcc_shr_##T(type a, type b) { return (type)(b >= bits ? 0u : (word)a >> b); }                      \
    MCC_INLINE type mcc_pow_##T(type a, type b) { return mcc_power_##T(a, b); }

MCC_INT_SIGNED(i8, int8_t, uint32_t, 8)
MCC_INT_SIGNED(i16, int16_t, uint32_t, 16)
MCC_INT_SIGNED(i32, int32_t, uint32_t, 32)
MCC_INT_SIGNED(i64, int64_t, uint64_t, 64)
MCC_INT_UNSIGNED(u8, uint8_t, uint32_t, 8)
MCC_INT_UNSIGNED(u16, uint16_t, uint32_t, 16)
MCC_INT_UNSIGNED(u32, uint32_t, uint32_t, 32)
MCC_INT_UNSIGNED(u64, uint64_t, uint64_t, 64)

#undef MCC_INT_BOTH
#undef MCC_INT_SIGNED
#undef MCC_INT_UNSIGNED

#endif /* MCC_INT_H */
