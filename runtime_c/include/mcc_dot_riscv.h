/* mcc_dot_riscv.h - the part of mcc_dot16.h for RISC-V: registers of 128 bits in groups of four, longer ones in groups
 * of two. One number times a vector is added up in one instruction; the rest are C's operators.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT_RISCV_H
#define MCC_DOT_RISCV_H

#if !defined(MCC_DOT16_H)
#error "this is a part of mcc_dot16.h: include that"
#endif

#include <riscv_vector.h>

#if __riscv_v_min_vlen >= 256
typedef vint32m2_t mcc_dot_terms_i32x16;
typedef vint16m1_t mcc_dot_words_i32x16;
#define MCC_DOT_I32(of) __riscv_##of##_i32m2
#define MCC_DOT_I16(of) __riscv_##of##_i16m1
#define MCC_DOT_I8(of) __riscv_##of##_i8mf2
#define MCC_DOT_U16(of) __riscv_##of##_u16m1
#define MCC_DOT_U8(of) __riscv_##of##_u8mf2
#define MCC_DOT_NUMBERS __riscv_vreinterpret_v_u16m1_i16m1
#else
typedef vint32m4_t mcc_dot_terms_i32x16;
typedef vint16m2_t mcc_dot_words_i32x16;
#define MCC_DOT_I32(of) __riscv_##of##_i32m4
#define MCC_DOT_I16(of) __riscv_##of##_i16m2
#define MCC_DOT_I8(of) __riscv_##of##_i8m1
#define MCC_DOT_U16(of) __riscv_##of##_u16m2
#define MCC_DOT_U8(of) __riscv_##of##_u8m1
#define MCC_DOT_NUMBERS __riscv_vreinterpret_v_u16m2_i16m2
#endif

MCC_DOT_TYPES(16);
typedef uint8_t mcc_dot_u8x16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef int8_t mcc_dot_i8x16 __attribute__((vector_size(16), aligned(1), may_alias));

MCC_VEC_INLINE mcc_dot_terms_i32x16 mcc_dot_begin_i32x16(const void *p)
{
    return MCC_DOT_I32(vle32_v)((const int32_t *)p, 16);
}
MCC_VEC_INLINE mcc_dot_words_i32x16 mcc_dot_widened_i8_i32x16(const int8_t *p)
{
    return MCC_DOT_I16(vsext_vf2)(MCC_DOT_I8(vle8_v)(p, 16), 16);
}
MCC_VEC_INLINE mcc_dot_words_i32x16 mcc_dot_widened_u8_i32x16(const uint8_t *p)
{
    return MCC_DOT_NUMBERS(MCC_DOT_U16(vzext_vf2)(MCC_DOT_U8(vle8_v)(p, 16), 16));
}
MCC_VEC_INLINE mcc_dot_terms_i32x16 mcc_dot_term_i32x16(mcc_dot_terms_i32x16 sums, int16_t x, mcc_dot_words_i32x16 w)
{
    return MCC_DOT_I32(vwmacc_vx)(sums, x, w, 16);
}
MCC_VEC_INLINE mcc_dot_terms_i32x16 mcc_dot_terms_of_i32x16(mcc_dot_terms_i32x16 sums, mcc_dot_words_i32x16 x,
                                                            mcc_dot_words_i32x16 w)
{
    return MCC_DOT_I32(vwmacc_vv)(sums, x, w, 16);
}
MCC_VEC_INLINE mcc_i32x16 mcc_dot_ended_i32x16(mcc_dot_terms_i32x16 sums)
{
    int32_t all[16];
    MCC_DOT_I32(vse32_v)(all, sums, 16);
    return mcc_load_i32x16(all);
}
MCC_VEC_INLINE mcc_i32x16 mcc_dot_i32x16(mcc_i32x16 sum, mcc_i32x16 x, mcc_i32x16 w)
{
    const mcc_u32x16 v = (mcc_u32x16)x, u = (mcc_u32x16)w;
    for (int up = 0; up < 32; up += 8) {
        const mcc_i32x16 product = ((mcc_i32x16)(v << up) >> 24) * ((mcc_i32x16)(u << up) >> 24);
        sum = mcc_add_i32x16(sum, product);
    }
    return sum;
}
#define MCC_DOT_BYTES_RISCV(OF, C, LOW, HIGH)                                                                          \
    MCC_VEC_INLINE mcc_i32x16 mcc_load_##OF##_i32x16(const C *p)                                                       \
    {                                                                                                                  \
        return __builtin_convertvector(*(const mcc_dot_##OF##x16 *)(const void *)p, mcc_i32x16);                       \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_##OF##_i32x16(C *p, mcc_i32x16 v)                                                    \
    {                                                                                                                  \
        *(mcc_dot_##OF##x16 *)(void *)p = __builtin_convertvector(v, mcc_dot_##OF##x16);                               \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_saturated_##OF##_i32x16(C *p, mcc_i32x16 v)                                          \
    {                                                                                                                  \
        mcc_store_##OF##_i32x16(p, mcc_min_i32x16(mcc_max_i32x16(v, mcc_set_i32x16(LOW)), mcc_set_i32x16(HIGH)));      \
    }                                                                                                                  \
    typedef float mcc_dot_bytes_##OF##_16
#define MCC_DOT_CHOSEN(a, b, m) (((a) & (m)) | ((b) & ~(m)))
MCC_VEC_INLINE mcc_i32x16 mcc_max_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    const mcc_i32x16 above = a > b;
    return MCC_DOT_CHOSEN(a, b, above);
}
MCC_VEC_INLINE mcc_i32x16 mcc_min_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    const mcc_i32x16 below = a < b;
    return MCC_DOT_CHOSEN(a, b, below);
}
MCC_DOT_BYTES_RISCV(u8, uint8_t, 0, 255);
MCC_DOT_BYTES_RISCV(i8, int8_t, -128, 127);
MCC_DOT_PART(16, u8, uint8_t);
MCC_DOT_PART(16, i8, int8_t);
MCC_VEC_INLINE mcc_i32x16 mcc_f32_to_i32x16(mcc_f32x16 v)
{
    const mcc_i32x16 above = mcc_greater_equal_f32x16(v, mcc_set_f32x16(-2147483648.0f));
    const mcc_i32x16 fits = above & mcc_less_f32x16(v, mcc_set_f32x16(2147483648.0f));
    const mcc_i32x16 whole = __builtin_convertvector((mcc_f32x16)((mcc_i32x16)v & fits), mcc_i32x16);
    return MCC_DOT_CHOSEN(whole, mcc_set_i32x16(INT32_MIN), fits);
}
MCC_VEC_INLINE mcc_i32x16 mcc_high_sum_i32x16(mcc_i32x16 sum, mcc_i32x16 a, mcc_i32x16 b)
{
    typedef int64_t wide __attribute__((vector_size(128)));
    const wide product = __builtin_convertvector(a, wide) * __builtin_convertvector(b, wide);
    return mcc_add_i32x16(sum, __builtin_convertvector(product >> 32, mcc_i32x16));
}
MCC_VEC_INLINE mcc_half_i64x16 mcc_shifted_i64x16(mcc_half_i64x16 half, mcc_half_i64x16 bits) { return half >> bits; }
MCC_VEC_INLINE mcc_i32x16 mcc_odd_lanes_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    const mcc_half_i64x16 zero = {0}, even = zero + INT64_C(4294967295);
    return (mcc_i32x16)MCC_DOT_CHOSEN((mcc_half_i64x16)a, (mcc_half_i64x16)b, even);
}

#endif /* MCC_DOT_RISCV_H */
