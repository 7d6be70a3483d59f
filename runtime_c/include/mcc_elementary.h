/* mcc_elementary.h - exp, expm1, log, log1p, tanh, sin and cos of floats that take the same instructions for all
 * numbers, NaN and infinity included: no branch depends on data, and no address but that of a word in a table, for sin
 * and cos.
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

/* size * 2^32 * pi/2, with as many bits as a float needs */
MCC_INLINE uint64_t mcc_elementary_angle(uint64_t size)
{
    const uint64_t high = (size >> 32) * 0xC90FDAA2u, low = (size & 0xFFFFFFFFu) * 0xC90FDAA2u;
    return high + (low >> 32);
}

/* sin(|x| + quarter * pi/2) with `sign`; `near` where |x| < 2^-12. |x| = q * pi/2 + r, |r| <= pi/4: a product of the
 * 24 bits of |x| by 96 of 2/pi, from where whole turns end, has q in its highest two bits, and r behind these. */
MCC_INLINE float mcc_elementary_wave(float x, uint32_t quarter, uint32_t sign, float near)
{
    static const uint32_t two_over_pi[] = {0u,          0u,          0x28BE60DBu, 0x9391054Au, 0x7F09D5F4u,
                                           0x7D4D3770u, 0x36D8A566u, 0x4F10E410u, 0x7F9458EAu};
    const uint32_t size = mcc_elementary_bits(x) & 0x7FFFFFFFu, small = mcc_elementary_less(size, 0x39800000u);
    const uint32_t in = size ^ (small & (size ^ 0x39800000u)), moved = (in >> 23) - 94u, left = moved & 31u;
    const uint32_t *const words = &two_over_pi[moved >> 5];
    const uint32_t high = (words[0] << left) | (words[1] >> 1 >> (31u - left));
    const uint32_t middle = (words[1] << left) | (words[2] >> 1 >> (31u - left));
    const uint32_t low = (words[2] << left) | (words[3] >> 1 >> (31u - left));
    const uint32_t whole = (in << 8) | 0x80000000u;
    const uint64_t factor = whole, behind = (factor * low) >> 32;
    const uint64_t turned = (((factor * high) << 32) + factor * middle) + behind;
    const uint64_t q = (turned + ((uint64_t)1 << 61)) >> 62;
    const uint64_t rest = turned - (q << 62), less = (uint64_t)0 - (rest >> 63);
    const uint64_t angle = mcc_elementary_angle((rest ^ less) - less); /* 2^61 times |r| */
    const uint32_t top = (uint32_t)(angle >> 32), end = (uint32_t)angle, at = (uint32_t)q + quarter;
    const float most = (float)(top & ~63u) * 1.86264515e-9f;
    const float some = (float)(((top & 63u) << 18) | (end >> 14)) * 7.10542736e-15f;
    const float more = (float)(end & 0x3FFFu) * 4.33680869e-19f + some;
    const float r = most + more, lost = more - (r - most), z = r * r;
    const uint32_t odd = (uint32_t)0 - (at & 1u), turn = ((uint32_t)less & 0x80000000u & ~odd) ^ ((at & 2u) << 30);
    float p = -0.00019516977f, q4 = 2.44380919e-05f, y;
    p = p * z + 0.00833217585f;
    q4 = q4 * z - 0.00138873645f;
    p = p * z - 0.166666549f;
    q4 = q4 * z + 0.0416666468f;
    p = (p * z) * r + lost;
    q4 = (z * z) * q4 - lost * r;
    y = mcc_elementary_either(odd, (z * -0.5f + q4) + 1.0f, p + r);
    y = mcc_elementary_float(mcc_elementary_bits(y) ^ turn ^ sign);
    y = mcc_elementary_either(small, near, y);
    return mcc_elementary_either(mcc_elementary_less(0x7F7FFFFFu, size), x - x, y);
}

MCC_INLINE float mcc_elementary_sin(float x)
{
    return mcc_elementary_wave(x, 0u, mcc_elementary_bits(x) & 0x80000000u, x);
}

MCC_INLINE float mcc_elementary_cos(float x) { return mcc_elementary_wave(x, 1u, 0u, 1.0f); }

#endif /* MCC_ELEMENTARY_H */
