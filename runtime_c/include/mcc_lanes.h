/* mcc_lanes.h - loops that compilers make vectors of, and functions without branches for them.
 *
 *     MCC_EACH_LANE(lane, count)  opens a loop over `count` elements, none of which reads what another one wrote
 *     MCC_EACH_LANE_CUT(lane, count)                      the same of a loop in which floats are cut to integers
 *     mcc_lane_div_T mcc_lane_mod_T mcc_lane_fmod_T    what mcc_div_T and the like give; T is i8 i16 i32 i64 u8 u16 u32
 *     mcc_lane_fixed_product(term, multiplier)  mcc_lane_fixed_round(sum, shift)    what those of mcc_quant.h give
 *     mcc_lane_round_even_f32(x)                          what mcc_round_even_f32 gives
 *     mcc_lane_key_T(x, lost)    integers in the order of floats; zeros are equal, NaN is lost; T is f32 f64
 *
 * Machines have vectors of quotients for floats only. Those of numbers of 16 bits in f32 are never rounded up to a
 * whole number, so cutting them off is exact. Larger ones take two quotients by the inverse.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_LANES_H
#define MCC_LANES_H

#include <math.h>
#include <string.h>

#include "mcc_int.h"

#if defined(__clang__)
/* Loops that stay scalar, as with sanitizers or without optimisation, are right too. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define MCC_LANES_APART _Pragma("clang loop vectorize(assume_safety)")
#ifdef __riscv_vector /* QEMU 7.2 stops where a block has two vfcvt.rtz or begins with one: nothing has tested these. */
#define MCC_LANES_CUT _Pragma("clang loop vectorize(disable) unroll(disable)")
#endif
#elif defined(__GNUC__)
#define MCC_LANES_APART _Pragma("GCC ivdep")
#else
#define MCC_LANES_APART
#endif
#ifndef MCC_LANES_CUT
#define MCC_LANES_CUT MCC_LANES_APART
#endif
#define MCC_EACH_LANE(lane, count) MCC_LANES_APART for (ptrdiff_t lane = 0; lane < (count); ++lane)
#define MCC_EACH_LANE_CUT(lane, count) MCC_LANES_CUT for (ptrdiff_t lane = 0; lane < (count); ++lane)

/* Dividing by 0 or -1 is dividing by 1, and the quotient is corrected behind: no result is out of range, and no branch
 * is made of a comparison. */
#define MCC_LANE_QUOTIENT(T, type, real)                                                                               \
    MCC_INLINE type mcc_lane_whole_##T(type a, type by) { return (type)((real)a / (real)by); }

/* The inverse is less than it is by more than all rounding (`less`), so that no quotient is too large, and of numbers
 * that stay the same compilers take it once. What the first quotient leaves is divided again, and may leave once. */
#define MCC_LANE_QUOTIENTS(T, type, sums, real, less)                                                                  \
    MCC_INLINE type mcc_lane_whole_##T(type a, type by)                                                                \
    {                                                                                                                  \
        const real inverse = less / (real)by;                                                                          \
        const type first = (type)((real)a * inverse), rest = (type)((sums)a - (sums)first * (sums)by);                 \
        const type second = (type)((real)rest * inverse), last = (type)((sums)rest - (sums)second * (sums)by);         \
        const sums minus = (sums)-(sums)(last < 0), below = (sums)-(sums)(by < 0);                                     \
        const sums size = ((sums)last ^ minus) - minus, of = ((sums)by ^ below) - below;                               \
        return (type)((sums)first + (sums)second + (((minus ^ below) | 1) & (sums)-(sums)(size >= of)));               \
    }

#define MCC_LANE_DIVISION(T, type, wide, sums, of)                                                                     \
    MCC_INLINE type mcc_lane_div_##T(wide a, wide b)                                                                   \
    {                                                                                                                  \
        const wide whole = mcc_lane_whole_##of(a, b + (b == 0) + 2 * (b == -1));                                       \
        return (type)((sums)whole * (sums)((b != 0) - 2 * (b == -1)));                                                 \
    }                                                                                                                  \
    MCC_INLINE type mcc_lane_fmod_##T(wide a, wide b)                                                                  \
    {                                                                                                                  \
        const wide by = b + (b == 0) + 2 * (b == -1), whole = mcc_lane_whole_##of(a, by);                              \
        return (type)((sums)a - (sums)whole * (sums)by);                                                               \
    }                                                                                                                  \
    MCC_INLINE type mcc_lane_mod_##T(wide a, wide b)                                                                   \
    {                                                                                                                  \
        const wide rest = mcc_lane_fmod_##T(a, b);                                                                     \
        return (type)(rest + (b & -(wide)((rest != 0) & ((rest ^ b) < 0))));                                           \
    }

MCC_LANE_QUOTIENT(i16, int32_t, float)
MCC_LANE_QUOTIENTS(i32, int32_t, uint32_t, float, 0.999999523f)
MCC_LANE_QUOTIENTS(i64, int64_t, uint64_t, double, 0.99999999999999911)
MCC_LANE_DIVISION(i8, int8_t, int32_t, uint32_t, i16)
MCC_LANE_DIVISION(u8, uint8_t, int32_t, uint32_t, i16)
MCC_LANE_DIVISION(i16, int16_t, int32_t, uint32_t, i16)
MCC_LANE_DIVISION(u16, uint16_t, int32_t, uint32_t, i16)
MCC_LANE_DIVISION(i32, int32_t, int32_t, uint32_t, i32)
MCC_LANE_DIVISION(u32, uint32_t, int64_t, uint64_t, i64)
MCC_LANE_DIVISION(i64, int64_t, int64_t, uint64_t, i64)
#undef MCC_LANE_QUOTIENT
#undef MCC_LANE_QUOTIENTS
#undef MCC_LANE_DIVISION

#ifdef __AVX512VL__
MCC_INLINE int64_t mcc_lane_shifted(int64_t value, int bits) { return mcc_shr_i64(value, bits); }
#else /* Few machines shift signed numbers of 64 bits in vectors. */
MCC_INLINE int64_t mcc_lane_shifted(int64_t value, int bits)
{
    const uint64_t sign = (uint64_t)0 - ((uint64_t)value >> 63);
    return (int64_t)((((uint64_t)value ^ sign) >> bits) ^ sign);
}
#endif

MCC_INLINE int64_t mcc_lane_fixed_product(int32_t term, int64_t multiplier)
{
    const int64_t low = (int64_t)term * (multiplier & INT64_C(4294967295));
    return (int64_t)term * (int64_t)((uint64_t)multiplier >> 32) + mcc_lane_shifted(low, 32);
}

MCC_INLINE int32_t mcc_lane_fixed_round(int64_t sum, uint8_t shift)
{
    const int bits = shift & 63;
    const int64_t whole = mcc_lane_shifted(sum, bits);
    const uint64_t rest = (uint64_t)sum & ((UINT64_C(1) << bits) - 1u);
    return (int32_t)(whole - (whole & 1 & -(int64_t)((shift >= 64) & ((rest >> 2) == 0))));
}

/* GCC makes vectors of this one alone: it sees control flow in floorf and in choices between sums. */
MCC_INLINE float mcc_lane_round_even_f32(float x) { return rintf(x); }

/* Of sign and magnitude, which is 0 for both zeros. No choices: GCC would make branches of them. */
#define MCC_LANE_KEY(T, type, key, SIZE, INFINITE)                                                                     \
    MCC_INLINE key mcc_lane_key_##T(type x, key lost)                                                                  \
    {                                                                                                                  \
        key bits, size, sign, none;                                                                                    \
        (void)memcpy(&bits, &x, sizeof bits);                                                                          \
        size = bits & (SIZE);                                                                                          \
        sign = -(key)(bits < 0);                                                                                       \
        none = -(key)(size > (INFINITE));                                                                              \
        return (lost & none) | (((size ^ sign) - sign) & ~none);                                                       \
    }                                                                                                                  \
    typedef int mcc_lane_key_of_##T
MCC_LANE_KEY(f32, float, int32_t, 0x7fffffff, 0x7f800000);
MCC_LANE_KEY(f64, double, int64_t, INT64_MAX, INT64_C(0x7ff0000000000000));

#endif /* MCC_LANES_H */
