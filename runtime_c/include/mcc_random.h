/* mcc_random.h - random numbers: the Mersenne Twister MT19937, started and read as numpy's RandomState does, so that a
 * seed gives the numbers that it gives there, on every machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_RANDOM_H
#define MCC_RANDOM_H

#include <math.h>

#include "mcc_port.h"

typedef struct {
    uint32_t key[624];
    uint32_t at;
    uint32_t has_spare; /* normal numbers come in pairs */
    double spare;
} mcc_random;

MCC_INLINE void mcc_random_start(mcc_random *r, uint32_t seed)
{
    uint32_t i;
    for (i = 0; i < 624u; ++i) {
        r->key[i] = seed;
        seed = UINT32_C(1812433253) * (seed ^ (seed >> 30)) + i + 1u;
    }
    r->at = 624u;
    r->has_spare = 0u;
    r->spare = 0.0;
}

MCC_INLINE uint32_t mcc_random_bits(mcc_random *r)
{
    uint32_t y;
    if (r->at == 624u) {
        uint32_t i;
        for (i = 0; i < 624u; ++i) {
            y = (r->key[i] & UINT32_C(0x80000000)) | (r->key[(i + 1u) % 624u] & UINT32_C(0x7fffffff));
            r->key[i] = r->key[(i + 397u) % 624u] ^ (y >> 1) ^ ((y & 1u) != 0u ? UINT32_C(0x9908b0df) : 0u);
        }
        r->at = 0u;
    }
    y = r->key[r->at];
    r->at += 1u;
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

/* From 0 up to, but not including, 1. */
MCC_INLINE double mcc_random_uniform(mcc_random *r)
{
    const uint32_t a = mcc_random_bits(r) >> 5;
    const uint32_t b = mcc_random_bits(r) >> 6;
    return ((double)a * 67108864.0 + (double)b) / 9007199254740992.0;
}

/* Of mean 0 and variance 1. */
MCC_INLINE double mcc_random_normal(mcc_random *r)
{
    double x, y, square, factor;
    if (r->has_spare != 0u) {
        r->has_spare = 0u;
        return r->spare;
    }
    do {
        x = 2.0 * mcc_random_uniform(r) - 1.0;
        y = 2.0 * mcc_random_uniform(r) - 1.0;
        square = x * x + y * y;
    } while (square >= 1.0 || square == 0.0);
    factor = sqrt(-2.0 * log(square) / square);
    r->has_spare = 1u;
    r->spare = factor * x;
    return factor * y;
}

/* A number that every bit of x has a part in. */
MCC_INLINE uint64_t mcc_random_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Another seed each time: `stream` goes on by one. */
MCC_INLINE uint32_t mcc_random_next_seed(uint64_t *stream)
{
    const uint64_t now = *stream;
    *stream = now + 1u;
    return (uint32_t)(mcc_random_mix(now) >> 32);
}

#endif /* MCC_RANDOM_H */
