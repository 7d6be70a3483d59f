/* mcc_shares.h - softmax of rows of scores whose keys come in blocks, in vectors of floats (mcc_vec.h), for N lanes
 * among 4, 8 and 16.
 *
 *     MCC_SHARES(NAME, N);            defines
 *     NAME(scores, rows, step, width, tops, totals, rests)
 *
 * which makes exp(x - top) of each of `width` scores of so many rows, which begin `step` floats apart; what is behind
 * them in the last vector becomes 0. `top` is the largest score of the row so far: `tops` has that of blocks before and
 * gets the new one. `totals` has the sum of all exponentials, scaled to it, and `rests` gets by how much what was made
 * before has to be scaled. Without blocks before, `tops` and `rests` are NULL, and `totals` gets the sum.
 *
 * The largest score begins with a number, below which there is nothing but -infinity: rows that begin with scores of
 * that have shares of zero, and what is only that has a total of zero.
 *
 * It is a function that no compiler moves into its caller: that is full of tiles, and has no registers left for the
 * constants of exp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SHARES_H
#define MCC_SHARES_H

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "mcc_vecmath.h"

#define MCC_SHARES(NAME, N)                                                                                            \
    static __attribute__((noinline)) void NAME(                                                                        \
        float *scores, int rows, ptrdiff_t step, ptrdiff_t width, float *tops, float *totals, float *rests)            \
    {                                                                                                                  \
        float *const most = rests == NULL ? totals : tops;                                                             \
        ptrdiff_t i, j;                                                                                                \
        for (i = 0; i < rows; ++i) {                                                                                   \
            const float before = rests == NULL ? -FLT_MAX : tops[i];                                                   \
            mcc_f32x##N largest = mcc_set_f32x##N(before);                                                             \
            float *const row = scores + i * step;                                                                      \
            for (j = width; j % N != 0; ++j) row[j] = -INFINITY;                                                       \
            for (j = 0; j < width; j += N) largest = mcc_at_least_f32x##N(largest, mcc_load_f32x##N(row + j));         \
            most[i] = mcc_largest_f32x##N(largest);                                                                    \
            if (rests != NULL) rests[i] = before - most[i];                                                            \
        }                                                                                                              \
        for (i = 0; rests != NULL && i + N <= rows; i += N) {                                                          \
            mcc_store_f32x##N(rests + i, mcc_exp_f32x##N(mcc_load_f32x##N(rests + i)));                                \
        }                                                                                                              \
        if (rests != NULL && i < rows) {                                                                               \
            const int left = (int)(rows - i);                                                                          \
            mcc_store_part_f32x##N(rests + i, left, mcc_exp_f32x##N(mcc_load_part_f32x##N(rests + i, left)));          \
        }                                                                                                              \
        for (i = 0; i < rows; ++i) {                                                                                   \
            const mcc_f32x##N top = mcc_set_f32x##N(most[i]);                                                          \
            mcc_f32x##N sum = mcc_set_f32x##N(0.0f);                                                                   \
            float *const row = scores + i * step;                                                                      \
            MCC_VEC_ROLLED for (j = 0; j < width; j += N) {                                                            \
                const mcc_f32x##N share = mcc_exp_below_f32x##N(mcc_sub_f32x##N(mcc_load_f32x##N(row + j), top));      \
                mcc_store_f32x##N(row + j, share);                                                                     \
                sum = mcc_add_f32x##N(sum, share);                                                                     \
            }                                                                                                          \
            totals[i] = (rests == NULL ? 0.0f : totals[i] * rests[i]) + mcc_sum_f32x##N(sum);                          \
        }                                                                                                              \
    }                                                                                                                  \
    typedef float NAME##_of_floats

#endif /* MCC_SHARES_H */
