/* mcc_vec_bits.h - vectors of weights of few bits: words of 32 bits with several numbers each, unpacked as floats.
 *
 *     mcc_load_words_i32xN(p)               N words from any address where one may lie
 *     mcc_load_bytes_f32xN(p)               N unsigned bytes as floats
 *     mcc_masked_f32xN(words, mask)         the bits of each word under a mask, as a float
 *     mcc_topmost_f32xN(words, shift)       those from bit `shift` on, as a number of their own
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_BITS_H
#define MCC_VEC_BITS_H

#include "mcc_vec.h"

#if defined(__ARM_NEON)
#define MCC_VEC_CONVERTED(N, words) (mcc_f32x##N)vcvtq_f32_s32((int32x4_t)(words))
#else
#define MCC_VEC_CONVERTED(N, words) __builtin_convertvector(words, mcc_f32x##N)
#endif

#define MCC_VEC_BITS(N)                                                                                                \
    MCC_VEC_INLINE mcc_i32x##N mcc_load_words_i32x##N(const void *p)                                                   \
    {                                                                                                                  \
        return (mcc_i32x##N)mcc_load_f32x##N((const float *)p);                                                        \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_bytes_f32x##N(const uint8_t *p)                                                \
    {                                                                                                                  \
        return MCC_VEC_CONVERTED(N, __builtin_convertvector(*(const mcc_u8x##N *)p, mcc_i32x##N));                     \
    }                                                                                                                  \
    typedef uint32_t mcc_bits_u32x##N __attribute__((vector_size(N * 4)));                                             \
    MCC_VEC_INLINE mcc_f32x##N mcc_masked_f32x##N(mcc_i32x##N words, int32_t mask)                                     \
    {                                                                                                                  \
        return MCC_VEC_CONVERTED(N, words &mcc_set_i32x##N(mask));                                                     \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_topmost_f32x##N(mcc_i32x##N words, int shift)                                       \
    {                                                                                                                  \
        return MCC_VEC_CONVERTED(N, (mcc_i32x##N)((mcc_bits_u32x##N)words >> shift));                                  \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_bits

MCC_VEC_BITS(4);
#if MCC_VEC_LANES >= 8
MCC_VEC_BITS(8);
#endif
#if MCC_VEC_LANES >= 16
MCC_VEC_BITS(16);
#endif

#endif /* MCC_VEC_BITS_H */
