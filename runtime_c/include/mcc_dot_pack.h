/* mcc_dot_pack.h - packs columns of a matrix of bytes that a run computes, as tiles of mcc_dot.h read weights: numbers
 * that sums begin with, then the bytes of each step.
 *
 * `columns` of the `width` that are packed are there, each of `depth` elements; an element lies `along` after that of
 * the column before, and `down` after the one above. A step takes `step` elements of a column; they lie together, or
 * `by_elements` those of all columns. `zipped`: lanes of a vector if the columns are in the order of mcc_dot_zip, else
 * 0. `flip` is 0x80 for bytes without a sign, which become what they are less 128.
 *
 * Sums begin with the bias of the column, less `zero` times the sum of what is packed; where `has_sums` is 0, zero is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT_PACK_H
#define MCC_DOT_PACK_H

#include <stddef.h>
#include <string.h>

#include "mcc_lanes.h"
#include "mcc_vec.h"

#define MCC_DOT_PACKED 64 /* columns at most: four vectors of sums */

/* Columns side by side, four elements of each in a step: a loop over columns that compilers make vectors of. What is
 * zipped has four columns at a time in other places. Elements that the last step lacks, and columns that are not there,
 * are 0. */
MCC_VEC_INLINE void mcc_dot_pack_beside(int8_t *bytes, int32_t *sums, const uint8_t *b, ptrdiff_t width,
    ptrdiff_t columns, ptrdiff_t depth, ptrdiff_t down, ptrdiff_t zipped, unsigned flip)
{
    int8_t in_order[4 * MCC_DOT_PACKED];
    ptrdiff_t k, at;
    MCC_EACH_LANE(p, width) sums[p] = 0;
    for (k = 0; k < depth; k += 4) {
        const ptrdiff_t rest = depth - k;
        const unsigned is1 = rest > 1 ? 0xffu : 0u, is2 = rest > 2 ? 0xffu : 0u, is3 = rest > 3 ? 0xffu : 0u;
        const uint8_t *const from = b + k * down, *const from1 = from + (rest > 1 ? down : 0);
        const uint8_t *const from2 = from + (rest > 2 ? 2 * down : 0), *const from3 = from + (rest > 3 ? 3 * down : 0);
        int8_t *const step = zipped ? in_order : bytes + k * width;
        MCC_EACH_LANE(p, columns) {
            const int8_t x0 = (int8_t)(from[p] ^ flip), x1 = (int8_t)((from1[p] ^ flip) & is1);
            const int8_t x2 = (int8_t)((from2[p] ^ flip) & is2), x3 = (int8_t)((from3[p] ^ flip) & is3);
            step[4 * p] = x0;
            step[4 * p + 1] = x1;
            step[4 * p + 2] = x2;
            step[4 * p + 3] = x3;
            sums[p] += x0 + x1 + x2 + x3;
        }
        for (at = 4 * columns; at < 4 * width; ++at) step[at] = 0;
        for (at = 0; zipped && at < width; at += 4)
            (void)memcpy(bytes + k * width + 4 * at, in_order + 4 * (at % zipped * 4 + at / zipped * 4), 16);
    }
}

/* A column whose elements follow each other, step by step; the sum of it where that `has_sums`. */
MCC_VEC_INLINE int32_t mcc_dot_pack_column(int8_t *bytes, const uint8_t *from, ptrdiff_t width, ptrdiff_t depth,
    ptrdiff_t step, unsigned flip, int has_sums)
{
    const ptrdiff_t whole = depth / step * step;
    int32_t sum = 0;
    ptrdiff_t k, n;
    for (k = 0; k < whole; k += step)
        for (n = 0; n < step; ++n) bytes[k * width + n] = (int8_t)(from[k + n] ^ flip);
    for (n = 0; whole < depth && n < step; ++n)
        bytes[whole * width + n] = (int8_t)(whole + n < depth ? from[whole + n] ^ flip : 0u);
    for (k = 0; has_sums && k < depth; ++k) sum += (int8_t)(from[k] ^ flip);
    return sum;
}

MCC_VEC_INLINE void mcc_dot_pack(int8_t *to, const void *b, ptrdiff_t width, ptrdiff_t columns, ptrdiff_t depth,
    ptrdiff_t down, ptrdiff_t along, ptrdiff_t step, int by_elements, ptrdiff_t zipped, unsigned flip, int has_sums,
    int32_t zero, const int32_t *bias, ptrdiff_t bias_step)
{
    const uint8_t *const all = (const uint8_t *)b;
    int8_t *const bytes = to + 4 * width;
    const ptrdiff_t padded = (depth + step - 1) / step * step;
    const int lies_down = down == 1 && !by_elements;
    const int beside = along == 1 && step == 4 && !by_elements;
    int32_t sums[MCC_DOT_PACKED];
    ptrdiff_t p, k;
    if (beside) mcc_dot_pack_beside(bytes, sums, all, width, columns, depth, down, zipped, flip);
    for (p = 0; p < width; ++p) {
        const ptrdiff_t column = zipped ? p % zipped / 4 * 16 + p / zipped * 4 + p % 4 : p;
        const int is_there = column < columns;
        const uint8_t *const from = all + (is_there ? column * along : 0);
        int32_t begin = is_there && bias != NULL ? bias[column * bias_step] : 0, sum = 0;
        if (beside) {
            sum = sums[column];
        } else if (lies_down && is_there) {
            sum = mcc_dot_pack_column(bytes + p * step, from, width, depth, step, flip, has_sums);
        } else {
            for (k = 0; k < padded; ++k) {
                const ptrdiff_t in_step = by_elements ? k % step * width + p : k % step + p * step;
                const int8_t value = (int8_t)(is_there && (padded == depth || k < depth) ? from[k * down] ^ flip : 0u);
                bytes[k / step * step * width + in_step] = value;
                sum += value;
            }
        }
        if (has_sums) begin -= zero * sum;
        (void)memcpy(to + 4 * p, &begin, sizeof begin);
    }
}

#endif
