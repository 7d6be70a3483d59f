/* mcc_vec_transpose_bits.h - square tiles of elements of any type, transposed in registers of 16 bytes.
 *
 *     mcc_transpose_8 mcc_transpose_16 mcc_transpose_32 mcc_transpose_64 (x, from, y, to)
 *     mcc_transpose_part_8 ... (x, from, y, to, first, rows)       only so many rows of y, literals: column `first` on
 *
 * Rows of x, which begin `from` elements of so many bits apart, become the columns of y, whose rows begin `to` elements
 * apart. A tile has as many rows and columns as 16 bytes have elements. Bits are moved, never numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_TRANSPOSE_BITS_H
#define MCC_VEC_TRANSPOSE_BITS_H

#include "mcc_vec.h"

/* Rows k and k + N/2 are woven into rows 2k and 2k + 1. After as many rounds as N has bits, columns are rows. */
#define MCC_VEC_TRANSPOSE_BITS(bits, N, ROUNDS, LOW, HIGH)                                                             \
    typedef uint##bits##_t mcc_tile_##bits __attribute__((vector_size(16)));                                           \
    MCC_VEC_INLINE void mcc_transpose_part_##bits(const void *x, ptrdiff_t from, void *y, ptrdiff_t to, int first,     \
                                                  int rows)                                                            \
    {                                                                                                                  \
        mcc_tile_##bits v[2][N];                                                                                       \
        _Pragma("GCC unroll 16") for (int row = 0; row < N; ++row)                                                     \
        {                                                                                                              \
            (void)memcpy(&v[0][row], (const uint##bits##_t *)x + row * from, 16);                                      \
        }                                                                                                              \
        _Pragma("GCC unroll 4") for (int round = 0; round < ROUNDS; ++round)                                           \
        {                                                                                                              \
            const mcc_tile_##bits *const before = v[round % 2];                                                        \
            mcc_tile_##bits *const made = v[1 - round % 2];                                                            \
            _Pragma("GCC unroll 8") for (int row = 0; row < N / 2; ++row)                                              \
            {                                                                                                          \
                made[2 * row] = MCC_VEC_CHOSEN(mcc_tile_##bits, before[row], before[row + N / 2], LOW);                \
                made[2 * row + 1] = MCC_VEC_CHOSEN(mcc_tile_##bits, before[row], before[row + N / 2], HIGH);           \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("GCC unroll 16") for (int row = 0; row < N; ++row)                                                     \
        {                                                                                                              \
            if (row < first || row >= first + rows) continue;                                                          \
            (void)memcpy((uint##bits##_t *)y + (row - first) * to, &v[ROUNDS % 2][row], 16);                           \
        }                                                                                                              \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_transpose_##bits(const void *x, ptrdiff_t from, void *y, ptrdiff_t to)                     \
    {                                                                                                                  \
        mcc_transpose_part_##bits(x, from, y, to, 0, N);                                                               \
    }                                                                                                                  \
    typedef int mcc_transposed_##bits

#define MCC_VEC_LOW_8 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define MCC_VEC_HIGH_8 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define MCC_VEC_LOW_16 0, 8, 1, 9, 2, 10, 3, 11
#define MCC_VEC_HIGH_16 4, 12, 5, 13, 6, 14, 7, 15
#define MCC_VEC_LOW_32 0, 4, 1, 5
#define MCC_VEC_HIGH_32 2, 6, 3, 7
#define MCC_VEC_LOW_64 0, 2
#define MCC_VEC_HIGH_64 1, 3

MCC_VEC_TRANSPOSE_BITS(8, 16, 4, MCC_VEC_LOW_8, MCC_VEC_HIGH_8);
MCC_VEC_TRANSPOSE_BITS(16, 8, 3, MCC_VEC_LOW_16, MCC_VEC_HIGH_16);
MCC_VEC_TRANSPOSE_BITS(32, 4, 2, MCC_VEC_LOW_32, MCC_VEC_HIGH_32);
MCC_VEC_TRANSPOSE_BITS(64, 2, 1, MCC_VEC_LOW_64, MCC_VEC_HIGH_64);

#endif
