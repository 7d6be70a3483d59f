/* mcc_elementary.h - exp, expm1, log, log1p and tanh of floats that take the same instructions for all numbers, NaN and
 * infinity included: no branch, no table and no address depends on data.
 *
 * Each is within 2 ulp, over all floats, with and without fused multiply-add. NaN gives NaN, signs of zeros are kept,
 * denormal numbers count. Methods and polynomials are those of mcc_vecmath.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_ELEMENTARY_H
#define MCC_ELEMENTARY_H

#include <string.h>

#include "mcc_port.h"

MCC_INLINE uint32_t mcc_elementary_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

MCC_INLINE float mcc_elementary_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* All bits where a < b, as numbers of 31 bits. */
MCC_INLINE uint32_t mcc_elementary_less(uint32_t a, uint32_t b) { return (uint32_t)0 - ((a - b) >> 31); }

MCC_INLINE float mcc_elementary_either(uint32_t mask, float yes, float no)
{
    const uint32_t other = mcc_elementary_bits(no);
    return mcc_elementary_float(other ^ (mask & (other ^ mcc_elementary_bits(yes))));
}

/* x, with its size at most `top`, a positive number; NaN stays. */
MCC_INLINE float mcc_elementary_within(float x, float top)
{
    const uint32_t bits = mcc_elementary_bits(x), size = bits & 0x7FFFFFFFu, most = mcc_elementary_bits(top);
    const uint32_t out = mcc_elementary_less(most, size) & mcc_elementary_less(size, 0x7F800001u);
    return mcc_elementary_float(bits ^ (out & (size ^ most)));
}

/* exp(x) = 2^n * (1 + q), for |x| <= 105: q, and *t = n + 3 * 2^22 + bias, whose bits hold n + bias. */
MCC_INLINE float mcc_elementary_power(float x, float bias, float *t)
{
    const float shift = 12582912.0f + bias;
    const float whole = x * 1.44269504f + shift, n = whole - shift;
    const float high = n * -0.693359375f + x, r = n * 2.12194440e-4f + high, r2 = r * r;
    float odd = 0.000197881614f, even = 0.00139468664f;
    odd = odd * r2 + 0.00833351072f;
    even = even * r2 + 0.0416662656f;
    odd = odd * r2 + 0.166666657f;
    even = even * r2 + 0.5f;
    *t = whole;
    return (odd * r + even) * r2 + r;
}

/* 2^n in two factors, as it may leave the range of floats. */
MCC_INLINE float mcc_elementary_exp(float x)
{
    float t;
    const float q = mcc_elementary_power(mcc_elementary_within(x, 104.5f), 254.0f, &t);
    const uint32_t bits = mcc_elementary_bits(t), half = bits >> 1;
    const float size = mcc_elementary_float(half << 23), rest = mcc_elementary_float((bits - half) << 23);
    return (q * size + size) * rest;
}

/* 2^n * q + 2^n - 1, computed as half of it; q where n is 0. */
MCC_INLINE float mcc_elementary_expm1(float x)
{
    const uint32_t bits = mcc_elementary_bits(x), sign = bits & 0x80000000u;
    const float low = mcc_elementary_within(x, 20.0f);
    float t, scale, far;
    const float in = mcc_elementary_either((uint32_t)0 - (sign >> 31), low, mcc_elementary_within(x, 89.0f));
    const float q = mcc_elementary_power(in, 126.0f, &t);
    const uint32_t moved = mcc_elementary_bits(t) ^ mcc_elementary_bits(12583038.0f);
    scale = mcc_elementary_float(mcc_elementary_bits(t) << 23);
    far = q * scale + (scale - 0.5f);
    far = mcc_elementary_either(mcc_elementary_less(0u, moved), far + far, q);
    return mcc_elementary_float(mcc_elementary_bits(far) | sign);
}

/* x = 2^n * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = f - f^2/2 + f^3 * p(f). */
MCC_INLINE float mcc_elementary_log_of(float x)
{
    const uint32_t given = mcc_elementary_bits(x), size = given & 0x7FFFFFFFu;
    const uint32_t tiny = mcc_elementary_less(size, 0x00800000u), zero = mcc_elementary_less(size, 1u);
    const uint32_t below = ((uint32_t)0 - (given >> 31)) & ~zero, past = mcc_elementary_less(0x7F7FFFFFu, size);
    const float up = mcc_elementary_either(tiny, x * 8388608.0f, x);
    const uint32_t bits = mcc_elementary_bits(up) - 0x3F3504F3u + 0x40000000u; /* of n + 128 */
    const int32_t n = (int32_t)(bits >> 23) - 128 - (int32_t)(tiny & 23u);
    const float f = mcc_elementary_float((bits & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f, f2 = f * f, e = (float)n;
    float p = 0.0674660131f, low, result;
    p = p * f - 0.116756409f;
    p = p * f + 0.118881747f;
    p = p * f - 0.124055915f;
    p = p * f + 0.142195508f;
    p = p * f - 0.166679963f;
    p = p * f + 0.200021192f;
    p = p * f - 0.250000089f;
    p = p * f + 0.333333135f;
    low = e * -2.12194440e-4f;
    low = (p * f2) * f + low;
    low = f2 * -0.5f + low;
    result = e * 0.693359375f + (f + low);
    result = mcc_elementary_either(past, x, result);
    result = mcc_elementary_either(zero, mcc_elementary_float(0xFF800000u), result);
    return mcc_elementary_either(below, mcc_elementary_float(0x7FC00000u), result);
}

MCC_INLINE float mcc_elementary_log(float x) { return mcc_elementary_log_of(x); }

/* log of the rounded sum, and what rounding took away */
MCC_INLINE float mcc_elementary_log1p(float x)
{
    const float u = 1.0f + x, of_x = x - (u - 1.0f), of_one = 1.0f - (u - x), log = mcc_elementary_log_of(u);
    const uint32_t size = mcc_elementary_bits(u) & 0x7FFFFFFFu;
    const uint32_t ends = mcc_elementary_less(size, 1u) | mcc_elementary_less(0x7F7FFFFFu, size);
    const uint32_t small = mcc_elementary_less(mcc_elementary_bits(x) & 0x7FFFFFFFu, 0x3F800000u);
    const uint32_t same = mcc_elementary_less(size ^ 0x3F800000u, 1u) & small;
    const float lost = mcc_elementary_either(small, of_x, of_one);
    float result = log + lost / mcc_elementary_either(ends, 1.0f, u);
    result = mcc_elementary_either(same, x, result);
    return mcc_elementary_either(ends, log, result);
}

/* x + x^3 * p(x^2) for |x| < 0.3, else m / (m + 2), m = exp(2|x|) - 1 = 2^n * q + 2^n - 1, which is 1 from 9.1 on, with
 * the sign of x */
MCC_INLINE float mcc_elementary_tanh(float x)
{
    const uint32_t bits = mcc_elementary_bits(x), sign = bits & 0x80000000u;
    const float size = mcc_elementary_float(bits ^ sign), top = mcc_elementary_within(size, 9.1f), s = top * top;
    float t, scale, m, p;
    const float q = mcc_elementary_power(top + top, 127.0f, &t);
    scale = mcc_elementary_float(mcc_elementary_bits(t) << 23);
    m = q * scale + (scale - 1.0f);
    p = -0.0503649227f * s + 0.133148149f;
    p = p * s - 0.333330601f;
    p = p * (top * s) + top;
    p = mcc_elementary_either(mcc_elementary_less(bits ^ sign, 0x3E99999Au), p, m / (m + 2.0f));
    return mcc_elementary_float(mcc_elementary_bits(p) | sign);
}

#endif /* MCC_ELEMENTARY_H */
