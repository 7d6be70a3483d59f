/* mcc_radix.h - sorts words of 64 bits by the upper half of each, byte by byte: no branch depends on what is compared.
 *
 *     mcc_radix_sort(words, other, counts, n, bytes)   by the lowest `bytes` bytes of the upper halves, smallest first;
 *                                                      equal ones stay in order. Returns `words` or `other`, which has
 *                                                      the result; counts has room for 256 numbers per byte
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_RADIX_H
#define MCC_RADIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mcc_port.h"

MCC_INLINE uint64_t *mcc_radix_sort(uint64_t *words, uint64_t *other, uint32_t *counts, ptrdiff_t n, int bytes)
{
    (void)memset(counts, 0, (size_t)bytes * 256u * sizeof *counts);
    for (ptrdiff_t i = 0; i < n; ++i) {
        uint32_t key = (uint32_t)(words[i] >> 32);
        for (int byte = 0; byte < bytes; ++byte) {
            ++counts[(uint32_t)byte * 256u + (key & 255u)];
            key >>= 8;
        }
    }
    for (int byte = 0; byte < bytes; ++byte) {
        uint32_t *const place = counts + byte * 256;
        uint64_t *const from = words;
        const unsigned shift = 32u + 8u * (unsigned)byte;
        uint32_t begin = 0;
        if (place[(from[0] >> shift) & 255u] == (uint32_t)n) continue; /* they are all alike */
        for (int digit = 0; digit < 256; ++digit) {
            const uint32_t count = place[digit];
            place[digit] = begin;
            begin += count;
        }
        for (ptrdiff_t i = 0; i < n; ++i) {
            const uint64_t word = from[i];
            other[place[(word >> shift) & 255u]++] = word;
        }
        words = other;
        other = from;
    }
    return words;
}

#endif /* MCC_RADIX_H */
