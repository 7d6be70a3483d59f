/* mcc_quant.h - what integer operators make of their sums: a rational number rounded once, halves to even.
 *
 *     mcc_fixed_round(mcc_fixed_product(t0, m0) + mcc_fixed_product(t1, m1) + ... + addend, shift)
 *
 * is t0 * f0 + t1 * f1 + ... + constant, rounded, where factors and constant are rational: f = m / 2^(32 + shift), and
 * addend is (constant + 1/2) * 2^shift. The compiler chooses the numbers so that this is right for every value that the
 * terms can take; nothing overflows then. Products keep all bits down to 2^-32, sums are off by at most a few units.
 *
 * A shift of 64 + n is a shift by n bits where halves occur: the sum is at most one unit per term below them, addend is
 * larger by that, so a rest of 0 to 3 tells that it was a half (of 3 terms at most), and no other number comes so
 * close.
 *
 * Where results are few, 32-bit numbers are enough, also proven for every value of the sum:
 *
 *     mcc_high_sum(addend, (t + bias) * raise, multiplier) >> shift        (raise is often left out)
 *
 * Where halves occur, mcc_shift_even shifts: sums that were halves are 1 to 4 units below a whole number then, and no
 * others are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_QUANT_H
#define MCC_QUANT_H

#include "mcc_int.h"

/* sum + floor(a * b / 2^32). */
MCC_INLINE int32_t mcc_high_sum(int32_t sum, int32_t a, int32_t b)
{
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_DSP)
    int32_t found;
    __asm__("smmla %0, %1, %2, %3" : "=r"(found) : "r"(a), "r"(b), "r"(sum));
    return found;
#elif defined(__thumb__) && !defined(__thumb2__)
    /* there are products of 32 bits only: this one is put together from halves, none of which overflows */
    const uint32_t a_low = (uint32_t)a & 65535u, b_low = (uint32_t)b & 65535u;
    const int32_t a_high = mcc_shr_i32(a, 16), b_high = mcc_shr_i32(b, 16);
    const int32_t first = b_high * (int32_t)a_low + (int32_t)(a_low * b_low >> 16);
    const int32_t second = a_high * (int32_t)b_low + (first & 65535);
    return mcc_add_i32(sum, a_high * b_high + mcc_shr_i32(first, 16) + mcc_shr_i32(second, 16));
#else
    return mcc_add_i32(sum, (int32_t)mcc_shr_i64((int64_t)a * b, 32));
#endif
}

/* Takes what is 1 to 4 units of 2^-bits below a whole number to the even one of its neighbours; bits from 2 to 30. */
MCC_INLINE int32_t mcc_shift_even(int32_t sum, int32_t bits)
{
    return mcc_shr_i32(sum + (mcc_shr_i32(sum, bits - 2) & 4), bits);
}

/* The nearest number that 8 bits hold. */
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_SAT)
#define MCC_SATURATE(NAME, INSTRUCTION, LOW, HIGH)                                                                     \
    MCC_INLINE int32_t NAME(int32_t value)                                                                             \
    {                                                                                                                  \
        int32_t found;                                                                                                 \
        __asm__(INSTRUCTION " %0, #8, %1" : "=r"(found) : "r"(value));                                                 \
        return found;                                                                                                  \
    }
#else
#define MCC_SATURATE(NAME, INSTRUCTION, LOW, HIGH)                                                                     \
    MCC_INLINE int32_t NAME(int32_t value)                                                                             \
    {                                                                                                                  \
        return value < (LOW) ? (LOW) : value > (HIGH) ? (HIGH) : value;                                                \
    }
#endif
MCC_SATURATE(mcc_saturate_i8, "ssat", -128, 127)
MCC_SATURATE(mcc_saturate_u8, "usat", 0, 255)

/* floor(term * multiplier / 2^32), where the product has up to 95 bits; 0 <= multiplier. */
MCC_INLINE int64_t mcc_fixed_product(int32_t term, int64_t multiplier)
{
    const int64_t low = (int64_t)term * (multiplier & INT64_C(4294967295));
    return (int64_t)term * (multiplier >> 32) + mcc_shr_i64(low, 32);
}

MCC_INLINE int32_t mcc_fixed_round(int64_t sum, uint8_t shift)
{
    const int bits = shift & 63;
    const int64_t whole = mcc_shr_i64(sum, bits);
    const uint64_t rest = (uint64_t)sum & ((UINT64_C(1) << bits) - 1u);
    return (int32_t)(shift >= 64 && rest <= 3u ? whole - (whole & 1) : whole);
}

/* sum / 2^bits to the nearest, halves to even; bits from 32 to 63, so that only the upper half of a sum is shifted, and
 * sum + 2^(bits - 1) fits. */
MCC_INLINE uint32_t mcc_even_shift(uint64_t sum, int bits)
{
    const uint32_t odd = (uint32_t)(sum >> 32) >> (bits - 32) & 1u;
    return (uint32_t)((sum + ((UINT64_C(1) << (bits - 1)) - 1u) + odd) >> 32) >> (bits - 32);
}

/* 1 / sqrt(number) is about 2^(moved - 60) times the result, which is 2^29 to 2^30; 0 < number < 2^62. Newton's steps
 * in integers, so that it is the same everywhere: at most 2^-27 of it off. */
MCC_INLINE int32_t mcc_inverse_root(uint64_t number, int *moved)
{
    uint32_t root;
    uint64_t wide;
    int step;
    *moved = 0;
    while (number < UINT64_C(1) << 60) {
        number <<= 2;
        ++*moved;
    }
    wide = number >> 31; /* the number in units of 2^-31: from 1/4 to 1 */
    root = (uint32_t)(UINT64_C(2287104983) - (wide * 5u >> 3) + (wide >> 6)); /* of 2^-30: 2.13 - 1.22 x */
    for (step = 0; step < 4; ++step) {
        const uint64_t square = (uint64_t)root * root >> 31; /* of 2^-29 */
        root = (uint32_t)((uint64_t)root * (UINT64_C(1610612736) - (square * wide >> 31)) >> 30);
    }
    return (int32_t)(root >> 1);
}

/* Functions for every short rounding: the end of their names, the shift, and whether sums are raised first. A shift of
 * 0 has no form of its own in the instruction. */
#define MCC_SHORT_ROUNDINGS(OF, PLAIN, RAISED)                                                                         \
    OF(1, 1, PLAIN) OF(2, 2, PLAIN) OF(3, 3, PLAIN) OF(4, 4, PLAIN)                                                    \
    OF(5, 5, PLAIN) OF(6, 6, PLAIN) OF(7, 7, PLAIN) OF(8, 8, PLAIN)                                                    \
    OF(raised12, 12, RAISED) OF(raised14, 14, RAISED) OF(raised16, 16, RAISED)

#endif /* MCC_QUANT_H */
