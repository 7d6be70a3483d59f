/* mcc_dot.h - vectors of sums of products of 8-bit integers, and what is made of the sums.
 *
 * For N lanes, one for each output channel:
 *
 *     mcc_dot_i32xN(sum, x, w)             sum + x0 * w0 + x1 * w1 + x2 * w2 + x3 * w3, four bytes in each lane
 *     mcc_dot_set_u8_i32xN(p)              the four elements at p in every lane, as mcc_dot takes them; mcc_dot_set_i8
 *     mcc_dot_form_u8_i32xN(v)             the same of elements that lie in v; mcc_dot_form_i8
 *
 * Machines multiply bytes without a sign by bytes with one, or bytes with signs. `MCC_DOT_SIGNED` says which: elements
 * of the other type are shifted by 128 as they are loaded, which the compiler takes out of the sums where they begin
 * (the target's option `dot_signed` tells it; see kernels/dot_tiles.py). Nothing saturates.
 *
 * All that epilogues need is here too, with the bits of mcc_math.h and mcc_quant.h: mcc_add, mcc_sub, mcc_mul, mcc_max,
 * mcc_min, mcc_high_sum, mcc_shift_right _i32xN; mcc_f32_to_i32xN, rounded toward zero, and mcc_i32_to_f32xN; loads of
 * bytes as i32, stores of i32 as bytes (`saturated`: with bounds); and mcc_i64xN, vectors of twice the bits, whose
 * tables lie as the lanes 0, 2, 4 ... and then 1, 3, 5 ...
 *
 *     mcc_sum_u8_i32xN(p, n)               of n elements; mcc_sum_i8
 *
 * Where each channel is for itself, four rows of 4 * N channels are laid beside each other, so that a lane has the four
 * bytes of one channel. That is quick in the order in which machines do it: channel 16 * l + 4 * j + i comes into lane
 * 4 * l + i of vector j, for tables and weights as for the sums.
 *
 *     mcc_dot_zip_u8_i32xN(a, b, c, d)     pointers to rows -> mcc_dot_four_i32xN, in the form of mcc_dot; also i8
 *     mcc_store_four_u8_i32xN(p, f)        4 * N sums in the order of memory, with bounds; mcc_store_four_part, i8
 *     mcc_load_four_u8_i32xN(p)            and back; mcc_load_four_part, i8
 *
 * To add a machine: a section for its number of lanes below, which defines what is listed there and ends in
 * MCC_DOT_REST(N, N / 2); then `dot` among the `isas` of the target, and its options `dot_lanes` and `dot_signed`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT_H
#define MCC_DOT_H

#include "mcc.h"
#include "mcc_int.h"
#include "mcc_vec.h"

#if defined(__SSE2__)
#define MCC_DOT_SIGNED 0
#else
#define MCC_DOT_SIGNED 1
#endif

/* Keeps a vector that is used several times in its register; compilers would rather read it again each time, which
 * takes longer than the products. */
#if defined(__AVX__)
#define MCC_DOT_KEEP(v) __asm__("" : "+v"(v))
#else
#define MCC_DOT_KEEP(v) ((void)0)
#endif

/* In terms of C operators: loads, 32-bit arithmetic that wraps, and 64-bit numbers in two halves. */
#define MCC_DOT_TYPES(N)                                                                                               \
    typedef uint32_t mcc_u32x##N __attribute__((vector_size(N * 4)));                                                  \
    typedef uint16_t mcc_dot_u16x##N __attribute__((vector_size(N * 4)));                                              \
    typedef int16_t mcc_dot_i16x##N __attribute__((vector_size(N * 4)));                                               \
    typedef int64_t mcc_half_i64x##N __attribute__((vector_size(N * 4)));                                              \
    typedef uint64_t mcc_half_u64x##N __attribute__((vector_size(N * 4)));                                             \
    typedef int32_t mcc_i32x##N##_anywhere __attribute__((vector_size(N * 4), aligned(1), may_alias));                 \
    typedef struct mcc_i64x##N {                                                                                       \
        mcc_half_i64x##N even, odd;                                                                                    \
    } mcc_i64x##N;                                                                                                     \
    MCC_VEC_INLINE mcc_i32x##N mcc_load_i32x##N(const void *p) { return *(const mcc_i32x##N##_anywhere *)p; }          \
    MCC_VEC_INLINE mcc_i32x##N mcc_add_i32x##N(mcc_i32x##N a, mcc_i32x##N b)                                           \
    {                                                                                                                  \
        return (mcc_i32x##N)((mcc_u32x##N)a + (mcc_u32x##N)b);                                                         \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_sub_i32x##N(mcc_i32x##N a, mcc_i32x##N b)                                           \
    {                                                                                                                  \
        return (mcc_i32x##N)((mcc_u32x##N)a - (mcc_u32x##N)b);                                                         \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_mul_i32x##N(mcc_i32x##N a, mcc_i32x##N b)                                           \
    {                                                                                                                  \
        return (mcc_i32x##N)((mcc_u32x##N)a * (mcc_u32x##N)b);                                                         \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_shift_right_i32x##N(mcc_i32x##N v, int bits) { return v >> bits; }                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_set_i32x##N(const void *p)                                                      \
    {                                                                                                                  \
        int32_t four;                                                                                                  \
        (void)memcpy(&four, p, sizeof four);                                                                           \
        return mcc_set_i32x##N(four);                                                                                  \
    }                                                                                                                  \
    typedef struct mcc_dot_four_i32x##N {                                                                              \
        mcc_i32x##N v0, v1, v2, v3;                                                                                    \
    } mcc_dot_four_i32x##N;                                                                                            \
    typedef float mcc_dot_types_##N

/* What does not need a vector register of the whole width. */
#define MCC_DOT_PART(N, OF, C)                                                                                         \
    MCC_VEC_INLINE mcc_i32x##N mcc_load_part_##OF##_i32x##N(const C *p, int n)                                         \
    {                                                                                                                  \
        C all[N] = {0};                                                                                                \
        (void)memcpy(all, p, (size_t)n);                                                                               \
        return mcc_load_##OF##_i32x##N(all);                                                                           \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_##OF##_i32x##N(C *p, int n, mcc_i32x##N v)                                      \
    {                                                                                                                  \
        C all[N];                                                                                                      \
        mcc_store_##OF##_i32x##N(all, v);                                                                              \
        (void)memcpy(p, all, (size_t)n);                                                                               \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_saturated_##OF##_i32x##N(C *p, int n, mcc_i32x##N v)                            \
    {                                                                                                                  \
        C all[N];                                                                                                      \
        mcc_store_saturated_##OF##_i32x##N(all, v);                                                                    \
        (void)memcpy(p, all, (size_t)n);                                                                               \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_four_part_##OF##_i32x##N(C *p, int n, mcc_dot_four_i32x##N f)                        \
    {                                                                                                                  \
        C all[4 * N];                                                                                                  \
        mcc_store_four_##OF##_i32x##N(all, f);                                                                         \
        (void)memcpy(p, all, (size_t)n);                                                                               \
    }                                                                                                                  \
    typedef float mcc_dot_part_##OF##_##N

#define MCC_DOT_REST(N, H)                                                                                             \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_set_u8_i32x##N(const void *p)                                                   \
    {                                                                                                                  \
        return mcc_dot_form_u8_i32x##N(mcc_dot_set_i32x##N(p));                                                        \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_set_i8_i32x##N(const void *p)                                                   \
    {                                                                                                                  \
        return mcc_dot_form_i8_i32x##N(mcc_dot_set_i32x##N(p));                                                        \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_load_four_u8_i32x##N(const uint8_t *p)                                     \
    {                                                                                                                  \
        const uint8_t none[4 * N] = {0};                                                                               \
        return mcc_dot_zip_i32x##N(p, none, none, none);                                                               \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_load_four_i8_i32x##N(const int8_t *p)                                      \
    {                                                                                                                  \
        const uint8_t none[4 * N] = {0};                                                                               \
        mcc_dot_four_i32x##N f = mcc_dot_zip_i32x##N(none, none, none, p); /* in the upper bytes */                    \
        f.v0 = f.v0 >> 24;                                                                                             \
        f.v1 = f.v1 >> 24;                                                                                             \
        f.v2 = f.v2 >> 24;                                                                                             \
        f.v3 = f.v3 >> 24;                                                                                             \
        return f;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_load_four_part_u8_i32x##N(const uint8_t *p, int n)                         \
    {                                                                                                                  \
        uint8_t all[4 * N] = {0};                                                                                      \
        (void)memcpy(all, p, (size_t)n);                                                                               \
        return mcc_load_four_u8_i32x##N(all);                                                                          \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_load_four_part_i8_i32x##N(const int8_t *p, int n)                          \
    {                                                                                                                  \
        int8_t all[4 * N] = {0};                                                                                       \
        (void)memcpy(all, p, (size_t)n);                                                                               \
        return mcc_load_four_i8_i32x##N(all);                                                                          \
    }                                                                                                                  \
    MCC_VEC_INLINE int32_t mcc_sum_u8_i32x##N(const uint8_t *p, mcc_index n)                                           \
    {                                                                                                                  \
        const mcc_i32x##N ones = mcc_set_i32x##N(0x01010101);                                                          \
        const mcc_index whole = n / (4 * N) * (4 * N);                                                                 \
        mcc_i32x##N total = mcc_set_i32x##N(0);                                                                        \
        int32_t lanes[N], sum = (MCC_DOT_SIGNED ? 128 : 0) * (int32_t)whole;                                           \
        for (mcc_index i = 0; i < whole; i += 4 * N) {                                                                 \
            total = mcc_dot_i32x##N(total, mcc_dot_form_u8_i32x##N(mcc_load_i32x##N(p + i)), ones);                    \
        }                                                                                                              \
        (void)memcpy(lanes, &total, sizeof lanes);                                                                     \
        for (mcc_index i = 0; i < N; ++i) sum += lanes[i];                                                             \
        for (mcc_index i = whole; i < n; ++i) sum += p[i];                                                             \
        return sum;                                                                                                    \
    }                                                                                                                  \
    MCC_VEC_INLINE int32_t mcc_sum_i8_i32x##N(const int8_t *p, mcc_index n)                                            \
    {                                                                                                                  \
        const mcc_i32x##N ones = mcc_set_i32x##N(0x01010101);                                                          \
        const mcc_index whole = n / (4 * N) * (4 * N);                                                                 \
        mcc_i32x##N total = mcc_set_i32x##N(0);                                                                        \
        int32_t lanes[N], sum = (MCC_DOT_SIGNED ? 0 : -128) * (int32_t)whole;                                          \
        for (mcc_index i = 0; i < whole; i += 4 * N) {                                                                 \
            total = mcc_dot_i32x##N(total, mcc_dot_form_i8_i32x##N(mcc_load_i32x##N(p + i)), ones);                    \
        }                                                                                                              \
        (void)memcpy(lanes, &total, sizeof lanes);                                                                     \
        for (mcc_index i = 0; i < N; ++i) sum += lanes[i];                                                             \
        for (mcc_index i = whole; i < n; ++i) sum += p[i];                                                             \
        return sum;                                                                                                    \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_i32_to_f32x##N(mcc_i32x##N v) { return __builtin_convertvector(v, mcc_f32x##N); }   \
    MCC_VEC_INLINE mcc_i32x##N mcc_saturate_u8_i32x##N(mcc_i32x##N v)                                                  \
    {                                                                                                                  \
        return mcc_min_i32x##N(mcc_max_i32x##N(v, mcc_set_i32x##N(0)), mcc_set_i32x##N(255));                          \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_saturate_i8_i32x##N(mcc_i32x##N v)                                                  \
    {                                                                                                                  \
        return mcc_min_i32x##N(mcc_max_i32x##N(v, mcc_set_i32x##N(-128)), mcc_set_i32x##N(127));                       \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_half_i64x##N mcc_high_half_i64x##N(mcc_i32x##N v)                                               \
    {                                                                                                                  \
        return (mcc_half_i64x##N)((mcc_half_u64x##N)v >> 32);                                                          \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_high_sum_i32x##N(mcc_i32x##N sum, mcc_i32x##N a, mcc_i32x##N b)                     \
    {                                                                                                                  \
        const mcc_half_i64x##N even = mcc_even_products_i32x##N(a, b);                                                 \
        const mcc_half_i64x##N odd = mcc_even_products_i32x##N((mcc_i32x##N)mcc_high_half_i64x##N(a),                  \
                                                               (mcc_i32x##N)mcc_high_half_i64x##N(b));                 \
        return mcc_add_i32x##N(sum, mcc_high_halves_i32x##N((mcc_i32x##N)even, (mcc_i32x##N)odd));                     \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i64x##N mcc_set_i64x##N(int64_t value)                                                          \
    {                                                                                                                  \
        const mcc_half_i64x##N zero = {0};                                                                             \
        mcc_i64x##N found;                                                                                             \
        found.even = found.odd = zero + value;                                                                         \
        return found;                                                                                                  \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i64x##N mcc_load_i64x##N(const int64_t *p)                                                      \
    {                                                                                                                  \
        mcc_i64x##N found;                                                                                             \
        (void)memcpy(&found.even, p, sizeof found.even);                                                               \
        (void)memcpy(&found.odd, p + H, sizeof found.odd);                                                             \
        return found;                                                                                                  \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i64x##N mcc_add_i64x##N(mcc_i64x##N a, mcc_i64x##N b)                                           \
    {                                                                                                                  \
        a.even = (mcc_half_i64x##N)((mcc_half_u64x##N)a.even + (mcc_half_u64x##N)b.even);                              \
        a.odd = (mcc_half_i64x##N)((mcc_half_u64x##N)a.odd + (mcc_half_u64x##N)b.odd);                                 \
        return a;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i64x##N mcc_shift_right_i64x##N(mcc_i64x##N v, int bits)                                        \
    {                                                                                                                  \
        const mcc_half_i64x##N zero = {0};                                                                             \
        v.even = mcc_shifted_i64x##N(v.even, zero + bits);                                                             \
        v.odd = mcc_shifted_i64x##N(v.odd, zero + bits);                                                               \
        return v;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_narrow_i64x##N(mcc_i64x##N v)                                                       \
    {                                                                                                                  \
        return mcc_odd_lanes_i32x##N((mcc_i32x##N)v.even, (mcc_i32x##N)((mcc_half_u64x##N)v.odd << 32));               \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_half_i64x##N mcc_product_of_half_i64x##N(mcc_half_i64x##N term, mcc_half_i64x##N multiplier)    \
    {                                                                                                                  \
        const mcc_half_i64x##N zero = {0}, half = zero + 32, mask = zero + INT64_C(4294967295);                        \
        const mcc_half_u64x##N low = (mcc_half_u64x##N)term * (mcc_half_u64x##N)(multiplier & mask);                   \
        const mcc_half_u64x##N high = (mcc_half_u64x##N)term * ((mcc_half_u64x##N)multiplier >> 32);                   \
        return (mcc_half_i64x##N)(high + (mcc_half_u64x##N)mcc_shifted_i64x##N((mcc_half_i64x##N)low, half));          \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i64x##N mcc_fixed_product_i32x##N(mcc_i32x##N term, mcc_i64x##N multiplier)                     \
    {                                                                                                                  \
        const mcc_half_i64x##N zero = {0}, half = zero + 32;                                                           \
        const mcc_half_i64x##N up = (mcc_half_i64x##N)((mcc_half_u64x##N)term << 32);                                  \
        mcc_i64x##N found;                                                                                             \
        found.even = mcc_product_of_half_i64x##N(mcc_shifted_i64x##N(up, half), multiplier.even);                      \
        found.odd = mcc_product_of_half_i64x##N(mcc_shifted_i64x##N((mcc_half_i64x##N)term, half), multiplier.odd);    \
        return found;                                                                                                  \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_half_i64x##N mcc_round_half_i64x##N(mcc_half_i64x##N sum, mcc_half_i64x##N shift)               \
    {                                                                                                                  \
        const mcc_half_i64x##N zero = {0}, one = zero + 1, bits = shift & 63;                                          \
        const mcc_half_i64x##N whole = mcc_shifted_i64x##N(sum, bits);                                                 \
        const mcc_half_u64x##N above = (mcc_half_u64x##N)one << (mcc_half_u64x##N)bits;                                \
        const mcc_half_i64x##N rest = sum & (mcc_half_i64x##N)(above - 1u);                                            \
        const mcc_half_i64x##N half = (mcc_half_i64x##N)(shift >= 64) & (mcc_half_i64x##N)(rest <= 3);                 \
        return whole - (whole & one & half);                                                                           \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_fixed_round_i64x##N(mcc_i64x##N sum, mcc_i32x##N shift)                             \
    {                                                                                                                  \
        const mcc_half_i64x##N zero = {0}, mask = zero + INT64_C(4294967295);                                          \
        sum.even = mcc_round_half_i64x##N(sum.even, (mcc_half_i64x##N)shift & mask);                                   \
        sum.odd = mcc_round_half_i64x##N(sum.odd, mcc_high_half_i64x##N(shift));                                       \
        return mcc_narrow_i64x##N(sum);                                                                                \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_dot_zip_u8_i32x##N(const void *a, const void *b, const void *c,            \
                                                               const void *d)                                          \
    {                                                                                                                  \
        mcc_dot_four_i32x##N f = mcc_dot_zip_i32x##N(a, b, c, d);                                                      \
        f.v0 = mcc_dot_form_u8_i32x##N(f.v0);                                                                          \
        f.v1 = mcc_dot_form_u8_i32x##N(f.v1);                                                                          \
        f.v2 = mcc_dot_form_u8_i32x##N(f.v2);                                                                          \
        f.v3 = mcc_dot_form_u8_i32x##N(f.v3);                                                                          \
        return f;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_dot_zip_i8_i32x##N(const void *a, const void *b, const void *c,            \
                                                               const void *d)                                          \
    {                                                                                                                  \
        mcc_dot_four_i32x##N f = mcc_dot_zip_i32x##N(a, b, c, d);                                                      \
        f.v0 = mcc_dot_form_i8_i32x##N(f.v0);                                                                          \
        f.v1 = mcc_dot_form_i8_i32x##N(f.v1);                                                                          \
        f.v2 = mcc_dot_form_i8_i32x##N(f.v2);                                                                          \
        f.v3 = mcc_dot_form_i8_i32x##N(f.v3);                                                                          \
        return f;                                                                                                      \
    }                                                                                                                  \
    typedef float mcc_dot_rest_##N

/* A section for N lanes: MCC_DOT_TYPES(N), then, as functions,
 *
 *     mcc_dot_i32xN(sum, x, w)  mcc_dot_form_u8_i32xN(v)  mcc_dot_form_i8_i32xN(v)
 *     mcc_load_u8_i32xN(p)  mcc_load_i8_i32xN(p)                widened
 *     mcc_store_u8_i32xN(p, v)  mcc_store_i8_i32xN(p, v)        the low bytes
 *     mcc_store_saturated_u8_i32xN(p, v)  mcc_store_saturated_i8_i32xN(p, v)
 *     their four forms with `part` (MCC_DOT_PART defines those)
 *     mcc_max_i32xN(a, b)  mcc_min_i32xN(a, b)
 *     mcc_f32_to_i32xN(v)                                       INT32_MIN where a number does not fit
 *     mcc_even_products_i32xN(a, b)                             of lanes 0, 2, 4 ... as 64-bit numbers
 *     mcc_odd_lanes_i32xN(a, b)                                 lanes 1, 3, 5 ... of b, the others of a
 *     mcc_high_halves_i32xN(a, b)                               lanes 1, 3, 5 ... of b, and before each that of a
 *     mcc_shifted_i64xN(half, bits)                             64-bit numbers, arithmetically, each by bits of its own
 *     mcc_dot_zip_i32xN(a, b, c, d)                             the rows as they are
 *     mcc_store_four_u8_i32xN(p, f)  mcc_store_four_i8_i32xN(p, f), and with `part` (MCC_DOT_PART)
 */

/* ---- 4 lanes: NEON, where signed bytes are multiplied */
#if defined(__ARM_NEON)
MCC_DOT_TYPES(4);
MCC_VEC_INLINE mcc_i32x4 mcc_dot_form_u8_i32x4(mcc_i32x4 v) { return v ^ (mcc_i32x4)vdupq_n_s8(-128); }
MCC_VEC_INLINE mcc_i32x4 mcc_dot_form_i8_i32x4(mcc_i32x4 v) { return v; }
MCC_VEC_INLINE mcc_i32x4 mcc_dot_i32x4(mcc_i32x4 sum, mcc_i32x4 x, mcc_i32x4 w)
{
    const int8x16_t a = (int8x16_t)x, b = (int8x16_t)w;
#if defined(__ARM_FEATURE_DOTPROD)
    return (mcc_i32x4)vdotq_s32((int32x4_t)sum, a, b);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(a), vget_high_s8(b)));
#if defined(__aarch64__)
    return mcc_add_i32x4(sum, (mcc_i32x4)vpaddq_s32(low, high));
#else
    const int32x2_t two = vpadd_s32(vget_low_s32(low), vget_high_s32(low));
    const int32x2_t more = vpadd_s32(vget_low_s32(high), vget_high_s32(high));
    return mcc_add_i32x4(sum, (mcc_i32x4)vcombine_s32(two, more));
#endif
#endif
}
MCC_VEC_INLINE mcc_i32x4 mcc_load_u8_i32x4(const uint8_t *p)
{
    uint32_t four;
    (void)memcpy(&four, p, sizeof four);
    return (mcc_i32x4)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four))));
}
MCC_VEC_INLINE mcc_i32x4 mcc_load_i8_i32x4(const int8_t *p)
{
    uint32_t four;
    (void)memcpy(&four, p, sizeof four);
    return (mcc_i32x4)vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four))));
}
MCC_VEC_INLINE void mcc_dot_store_four_bytes(void *p, uint8x8_t bytes)
{
    const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    (void)memcpy(p, &four, sizeof four);
}
MCC_VEC_INLINE void mcc_store_u8_i32x4(uint8_t *p, mcc_i32x4 v)
{
    const uint16x4_t words = vmovn_u32((uint32x4_t)v);
    mcc_dot_store_four_bytes(p, vmovn_u16(vcombine_u16(words, words)));
}
MCC_VEC_INLINE void mcc_store_i8_i32x4(int8_t *p, mcc_i32x4 v) { mcc_store_u8_i32x4((uint8_t *)p, v); }
MCC_VEC_INLINE void mcc_store_saturated_u8_i32x4(uint8_t *p, mcc_i32x4 v)
{
    const int16x4_t words = vqmovn_s32((int32x4_t)v);
    mcc_dot_store_four_bytes(p, vqmovun_s16(vcombine_s16(words, words)));
}
MCC_VEC_INLINE void mcc_store_saturated_i8_i32x4(int8_t *p, mcc_i32x4 v)
{
    const int16x4_t words = vqmovn_s32((int32x4_t)v);
    mcc_dot_store_four_bytes(p, vreinterpret_u8_s8(vqmovn_s16(vcombine_s16(words, words))));
}
MCC_VEC_INLINE mcc_dot_four_i32x4 mcc_dot_zip_i32x4(const void *a, const void *b, const void *c, const void *d)
{
    const uint8x16x2_t ab = vzipq_u8(vld1q_u8((const uint8_t *)a), vld1q_u8((const uint8_t *)b));
    const uint8x16x2_t cd = vzipq_u8(vld1q_u8((const uint8_t *)c), vld1q_u8((const uint8_t *)d));
    const uint16x8x2_t low = vzipq_u16(vreinterpretq_u16_u8(ab.val[0]), vreinterpretq_u16_u8(cd.val[0]));
    const uint16x8x2_t high = vzipq_u16(vreinterpretq_u16_u8(ab.val[1]), vreinterpretq_u16_u8(cd.val[1]));
    mcc_dot_four_i32x4 f;
    f.v0 = (mcc_i32x4)low.val[0];
    f.v1 = (mcc_i32x4)low.val[1];
    f.v2 = (mcc_i32x4)high.val[0];
    f.v3 = (mcc_i32x4)high.val[1];
    return f;
}
MCC_VEC_INLINE int16x8_t mcc_dot_words(mcc_i32x4 low, mcc_i32x4 high)
{
    return vcombine_s16(vqmovn_s32((int32x4_t)low), vqmovn_s32((int32x4_t)high));
}
MCC_VEC_INLINE void mcc_store_four_u8_i32x4(uint8_t *p, mcc_dot_four_i32x4 f)
{
    vst1q_u8(p, vcombine_u8(vqmovun_s16(mcc_dot_words(f.v0, f.v1)), vqmovun_s16(mcc_dot_words(f.v2, f.v3))));
}
MCC_VEC_INLINE void mcc_store_four_i8_i32x4(int8_t *p, mcc_dot_four_i32x4 f)
{
    vst1q_s8(p, vcombine_s8(vqmovn_s16(mcc_dot_words(f.v0, f.v1)), vqmovn_s16(mcc_dot_words(f.v2, f.v3))));
}
MCC_DOT_PART(4, u8, uint8_t);
MCC_DOT_PART(4, i8, int8_t);
MCC_VEC_INLINE mcc_i32x4 mcc_max_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    return (mcc_i32x4)vmaxq_s32((int32x4_t)a, (int32x4_t)b);
}
MCC_VEC_INLINE mcc_i32x4 mcc_min_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    return (mcc_i32x4)vminq_s32((int32x4_t)a, (int32x4_t)b);
}
MCC_VEC_INLINE mcc_i32x4 mcc_f32_to_i32x4(mcc_f32x4 v)
{
    const float32x4_t number = (float32x4_t)v;
    const uint32x4_t above = vcgeq_f32(number, vdupq_n_f32(-2147483648.0f));
    const uint32x4_t fits = vandq_u32(above, vcltq_f32(number, vdupq_n_f32(2147483648.0f)));
    return (mcc_i32x4)vbslq_s32(fits, vcvtq_s32_f32(number), vdupq_n_s32(INT32_MIN));
}
MCC_VEC_INLINE mcc_half_i64x4 mcc_even_products_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    return (mcc_half_i64x4)vmull_s32(vmovn_s64((int64x2_t)a), vmovn_s64((int64x2_t)b));
}
MCC_VEC_INLINE mcc_i32x4 mcc_odd_lanes_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    const mcc_i32x4 odd = {0, -1, 0, -1};
    return (a & ~odd) | (b & odd);
}
MCC_VEC_INLINE mcc_i32x4 mcc_high_halves_i32x4(mcc_i32x4 a, mcc_i32x4 b)
{
    return (mcc_i32x4)vtrnq_s32((int32x4_t)a, (int32x4_t)b).val[1];
}
MCC_VEC_INLINE mcc_half_i64x4 mcc_shifted_i64x4(mcc_half_i64x4 half, mcc_half_i64x4 bits)
{
    return (mcc_half_i64x4)vshlq_s64((int64x2_t)half, (int64x2_t)-bits);
}
MCC_DOT_REST(4, 2);
#endif

/* ---- 8 lanes */
#if defined(__AVX2__)
MCC_DOT_TYPES(8);
MCC_VEC_INLINE mcc_i32x8 mcc_dot_form_u8_i32x8(mcc_i32x8 v) { return v; }
MCC_VEC_INLINE mcc_i32x8 mcc_dot_form_i8_i32x8(mcc_i32x8 v) { return v ^ (mcc_i32x8)_mm256_set1_epi8(-128); }
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
MCC_VEC_INLINE mcc_i32x8 mcc_dot_i32x8(mcc_i32x8 sum, mcc_i32x8 x, mcc_i32x8 w)
{
    return (mcc_i32x8)_mm256_dpbusd_epi32((__m256i)sum, (__m256i)x, (__m256i)w);
}
#elif defined(__AVXVNNI__)
MCC_VEC_INLINE mcc_i32x8 mcc_dot_i32x8(mcc_i32x8 sum, mcc_i32x8 x, mcc_i32x8 w)
{
    return (mcc_i32x8)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)x, (__m256i)w);
}
#else
/* Widened: two products of bytes do not always fit the 16 bits in which vpmaddubsw saturates them. */
MCC_VEC_INLINE mcc_i32x8 mcc_dot_i32x8(mcc_i32x8 sum, mcc_i32x8 x, mcc_i32x8 w)
{
    const mcc_dot_i16x8 w02 = (mcc_dot_i16x8)((mcc_dot_u16x8)w << 8) >> 8, w13 = (mcc_dot_i16x8)w >> 8;
    const mcc_dot_u16x8 x02 = (mcc_dot_u16x8)x & 255, x13 = (mcc_dot_u16x8)x >> 8;
    sum = mcc_add_i32x8(sum, (mcc_i32x8)_mm256_madd_epi16((__m256i)x02, (__m256i)w02));
    return mcc_add_i32x8(sum, (mcc_i32x8)_mm256_madd_epi16((__m256i)x13, (__m256i)w13));
}
#endif
MCC_VEC_INLINE mcc_i32x8 mcc_load_u8_i32x8(const uint8_t *p)
{
    return (mcc_i32x8)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
MCC_VEC_INLINE mcc_i32x8 mcc_load_i8_i32x8(const int8_t *p)
{
    return (mcc_i32x8)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
/* The first four bytes of both halves. */
MCC_VEC_INLINE void mcc_dot_store_fours(void *p, __m256i v)
{
    const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)p, both);
}
MCC_VEC_INLINE void mcc_store_u8_i32x8(uint8_t *p, mcc_i32x8 v)
{
    const __m256i low = (__m256i)(v & 255), words = _mm256_packus_epi32(low, low);
    mcc_dot_store_fours(p, _mm256_packus_epi16(words, words));
}
MCC_VEC_INLINE void mcc_store_i8_i32x8(int8_t *p, mcc_i32x8 v) { mcc_store_u8_i32x8((uint8_t *)p, v); }
MCC_VEC_INLINE void mcc_store_saturated_u8_i32x8(uint8_t *p, mcc_i32x8 v)
{
    const __m256i words = _mm256_packs_epi32((__m256i)v, (__m256i)v);
    mcc_dot_store_fours(p, _mm256_packus_epi16(words, words));
}
MCC_VEC_INLINE void mcc_store_saturated_i8_i32x8(int8_t *p, mcc_i32x8 v)
{
    const __m256i words = _mm256_packs_epi32((__m256i)v, (__m256i)v);
    mcc_dot_store_fours(p, _mm256_packs_epi16(words, words));
}
MCC_VEC_INLINE mcc_dot_four_i32x8 mcc_dot_zip_i32x8(const void *a, const void *b, const void *c, const void *d)
{
    const __m256i ra = _mm256_loadu_si256((const __m256i *)a), rb = _mm256_loadu_si256((const __m256i *)b);
    const __m256i rc = _mm256_loadu_si256((const __m256i *)c), rd = _mm256_loadu_si256((const __m256i *)d);
    const __m256i ab0 = _mm256_unpacklo_epi8(ra, rb), ab1 = _mm256_unpackhi_epi8(ra, rb);
    const __m256i cd0 = _mm256_unpacklo_epi8(rc, rd), cd1 = _mm256_unpackhi_epi8(rc, rd);
    mcc_dot_four_i32x8 f;
    f.v0 = (mcc_i32x8)_mm256_unpacklo_epi16(ab0, cd0);
    f.v1 = (mcc_i32x8)_mm256_unpackhi_epi16(ab0, cd0);
    f.v2 = (mcc_i32x8)_mm256_unpacklo_epi16(ab1, cd1);
    f.v3 = (mcc_i32x8)_mm256_unpackhi_epi16(ab1, cd1);
    return f;
}
MCC_VEC_INLINE void mcc_store_four_u8_i32x8(uint8_t *p, mcc_dot_four_i32x8 f)
{
    const __m256i low = _mm256_packs_epi32((__m256i)f.v0, (__m256i)f.v1);
    const __m256i high = _mm256_packs_epi32((__m256i)f.v2, (__m256i)f.v3);
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_packus_epi16(low, high));
}
MCC_VEC_INLINE void mcc_store_four_i8_i32x8(int8_t *p, mcc_dot_four_i32x8 f)
{
    const __m256i low = _mm256_packs_epi32((__m256i)f.v0, (__m256i)f.v1);
    const __m256i high = _mm256_packs_epi32((__m256i)f.v2, (__m256i)f.v3);
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_packs_epi16(low, high));
}
MCC_DOT_PART(8, u8, uint8_t);
MCC_DOT_PART(8, i8, int8_t);
MCC_VEC_INLINE mcc_i32x8 mcc_max_i32x8(mcc_i32x8 a, mcc_i32x8 b)
{
    return (mcc_i32x8)_mm256_max_epi32((__m256i)a, (__m256i)b);
}
MCC_VEC_INLINE mcc_i32x8 mcc_min_i32x8(mcc_i32x8 a, mcc_i32x8 b)
{
    return (mcc_i32x8)_mm256_min_epi32((__m256i)a, (__m256i)b);
}
MCC_VEC_INLINE mcc_i32x8 mcc_f32_to_i32x8(mcc_f32x8 v) { return (mcc_i32x8)_mm256_cvttps_epi32((__m256)v); }
MCC_VEC_INLINE mcc_half_i64x8 mcc_even_products_i32x8(mcc_i32x8 a, mcc_i32x8 b)
{
    return (mcc_half_i64x8)_mm256_mul_epi32((__m256i)a, (__m256i)b);
}
MCC_VEC_INLINE mcc_i32x8 mcc_odd_lanes_i32x8(mcc_i32x8 a, mcc_i32x8 b)
{
    return (mcc_i32x8)_mm256_blend_epi32((__m256i)a, (__m256i)b, 0xaa);
}
MCC_VEC_INLINE mcc_i32x8 mcc_high_halves_i32x8(mcc_i32x8 a, mcc_i32x8 b)
{
    return mcc_odd_lanes_i32x8((mcc_i32x8)_mm256_srli_epi64((__m256i)a, 32), b);
}
/* There is but a logical shift: a number from 0 up is shifted, and as much too much is taken off afterwards. */
MCC_VEC_INLINE mcc_half_i64x8 mcc_shifted_i64x8(mcc_half_i64x8 half, mcc_half_i64x8 bits)
{
    const __m256i top = _mm256_set1_epi64x(INT64_MIN);
    const __m256i moved = _mm256_srlv_epi64(_mm256_xor_si256((__m256i)half, top), (__m256i)bits);
    return (mcc_half_i64x8)_mm256_sub_epi64(moved, _mm256_srlv_epi64(top, (__m256i)bits));
}
MCC_DOT_REST(8, 4);
#endif

/* ---- 16 lanes; forms with a mask, all of it set, because gcc's own headers warn of themselves in the plain ones */
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define MCC_DOT_ALL ((__mmask16)-1)
#define MCC_DOT_WORDS ((__mmask32)-1)
#define MCC_DOT_BYTES ((__mmask64)-1)
MCC_DOT_TYPES(16);
MCC_VEC_INLINE mcc_i32x16 mcc_dot_form_u8_i32x16(mcc_i32x16 v) { return v; }
MCC_VEC_INLINE mcc_i32x16 mcc_dot_form_i8_i32x16(mcc_i32x16 v) { return v ^ (mcc_i32x16)_mm512_set1_epi8(-128); }
#if defined(__AVX512VNNI__)
MCC_VEC_INLINE mcc_i32x16 mcc_dot_i32x16(mcc_i32x16 sum, mcc_i32x16 x, mcc_i32x16 w)
{
    return (mcc_i32x16)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
}
#else
MCC_VEC_INLINE mcc_i32x16 mcc_dot_i32x16(mcc_i32x16 sum, mcc_i32x16 x, mcc_i32x16 w)
{
    const mcc_dot_i16x16 w02 = (mcc_dot_i16x16)((mcc_dot_u16x16)w << 8) >> 8, w13 = (mcc_dot_i16x16)w >> 8;
    const mcc_dot_u16x16 x02 = (mcc_dot_u16x16)x & 255, x13 = (mcc_dot_u16x16)x >> 8;
    sum = mcc_add_i32x16(sum, (mcc_i32x16)_mm512_madd_epi16((__m512i)x02, (__m512i)w02));
    return mcc_add_i32x16(sum, (mcc_i32x16)_mm512_madd_epi16((__m512i)x13, (__m512i)w13));
}
#endif
#define MCC_DOT_BYTES_16(OF, C, WIDEN, SATURATE, PACK)                                                                 \
    MCC_VEC_INLINE mcc_i32x16 mcc_load_##OF##_i32x16(const C *p)                                                       \
    {                                                                                                                  \
        return (mcc_i32x16)WIDEN(MCC_DOT_ALL, _mm_loadu_si128((const __m128i *)(const void *)p));                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x16 mcc_load_part_##OF##_i32x16(const C *p, int n)                                           \
    {                                                                                                                  \
        return (mcc_i32x16)WIDEN(MCC_DOT_ALL, _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1u), p));                   \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_##OF##_i32x16(C *p, mcc_i32x16 v)                                                    \
    {                                                                                                                  \
        _mm_storeu_si128((__m128i *)(void *)p, _mm512_maskz_cvtepi32_epi8(MCC_DOT_ALL, (__m512i)v));                   \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_##OF##_i32x16(C *p, int n, mcc_i32x16 v)                                        \
    {                                                                                                                  \
        const __m128i bytes = _mm512_maskz_cvtepi32_epi8(MCC_DOT_ALL, (__m512i)v);                                     \
        _mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1u), bytes);                                                   \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_saturated_##OF##_i32x16(C *p, mcc_i32x16 v)                                          \
    {                                                                                                                  \
        _mm_storeu_si128((__m128i *)(void *)p, SATURATE(v));                                                           \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_saturated_##OF##_i32x16(C *p, int n, mcc_i32x16 v)                              \
    {                                                                                                                  \
        _mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1u), SATURATE(v));                                             \
    }                                                                                                                  \
    MCC_VEC_INLINE __m512i mcc_dot_bytes_of_four_##OF(mcc_dot_four_i32x16 f)                                           \
    {                                                                                                                  \
        const __m512i low = _mm512_maskz_packs_epi32(MCC_DOT_WORDS, (__m512i)f.v0, (__m512i)f.v1);                     \
        const __m512i high = _mm512_maskz_packs_epi32(MCC_DOT_WORDS, (__m512i)f.v2, (__m512i)f.v3);                    \
        return PACK(MCC_DOT_BYTES, low, high);                                                                         \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_four_##OF##_i32x16(C *p, mcc_dot_four_i32x16 f)                                      \
    {                                                                                                                  \
        const __m512i all = mcc_dot_bytes_of_four_##OF(f);                                                             \
        (void)memcpy(p, &all, sizeof all);                                                                             \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_four_part_##OF##_i32x16(C *p, int n, mcc_dot_four_i32x16 f)                          \
    {                                                                                                                  \
        _mm512_mask_storeu_epi8(p, (__mmask64)((UINT64_C(1) << n) - 1u), mcc_dot_bytes_of_four_##OF(f));               \
    }                                                                                                                  \
    typedef float mcc_dot_bytes_##OF##_16
#define MCC_DOT_SATURATE_U8(v) _mm512_maskz_cvtusepi32_epi8(MCC_DOT_ALL, (__m512i)mcc_max_i32x16(v, mcc_set_i32x16(0)))
#define MCC_DOT_SATURATE_I8(v) _mm512_maskz_cvtsepi32_epi8(MCC_DOT_ALL, (__m512i)(v))
MCC_VEC_INLINE mcc_dot_four_i32x16 mcc_dot_zip_i32x16(const void *a, const void *b, const void *c, const void *d)
{
    const __m512i ra = (__m512i)mcc_load_i32x16(a), rb = (__m512i)mcc_load_i32x16(b);
    const __m512i rc = (__m512i)mcc_load_i32x16(c), rd = (__m512i)mcc_load_i32x16(d);
    const __m512i ab0 = _mm512_maskz_unpacklo_epi8(MCC_DOT_BYTES, ra, rb);
    const __m512i ab1 = _mm512_maskz_unpackhi_epi8(MCC_DOT_BYTES, ra, rb);
    const __m512i cd0 = _mm512_maskz_unpacklo_epi8(MCC_DOT_BYTES, rc, rd);
    const __m512i cd1 = _mm512_maskz_unpackhi_epi8(MCC_DOT_BYTES, rc, rd);
    mcc_dot_four_i32x16 f;
    f.v0 = (mcc_i32x16)_mm512_maskz_unpacklo_epi16(MCC_DOT_WORDS, ab0, cd0);
    f.v1 = (mcc_i32x16)_mm512_maskz_unpackhi_epi16(MCC_DOT_WORDS, ab0, cd0);
    f.v2 = (mcc_i32x16)_mm512_maskz_unpacklo_epi16(MCC_DOT_WORDS, ab1, cd1);
    f.v3 = (mcc_i32x16)_mm512_maskz_unpackhi_epi16(MCC_DOT_WORDS, ab1, cd1);
    return f;
}
MCC_VEC_INLINE mcc_i32x16 mcc_max_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    return (mcc_i32x16)_mm512_maskz_max_epi32(MCC_DOT_ALL, (__m512i)a, (__m512i)b);
}
MCC_VEC_INLINE mcc_i32x16 mcc_min_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    return (mcc_i32x16)_mm512_maskz_min_epi32(MCC_DOT_ALL, (__m512i)a, (__m512i)b);
}
MCC_DOT_BYTES_16(u8, uint8_t, _mm512_maskz_cvtepu8_epi32, MCC_DOT_SATURATE_U8, _mm512_maskz_packus_epi16);
MCC_DOT_BYTES_16(i8, int8_t, _mm512_maskz_cvtepi8_epi32, MCC_DOT_SATURATE_I8, _mm512_maskz_packs_epi16);
MCC_VEC_INLINE mcc_i32x16 mcc_f32_to_i32x16(mcc_f32x16 v)
{
    return (mcc_i32x16)_mm512_maskz_cvttps_epi32(MCC_DOT_ALL, (__m512)v);
}
MCC_VEC_INLINE mcc_half_i64x16 mcc_even_products_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    return (mcc_half_i64x16)_mm512_maskz_mul_epi32((__mmask8)-1, (__m512i)a, (__m512i)b);
}
MCC_VEC_INLINE mcc_i32x16 mcc_odd_lanes_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    return (mcc_i32x16)_mm512_mask_blend_epi32((__mmask16)0xaaaa, (__m512i)a, (__m512i)b);
}
MCC_VEC_INLINE mcc_i32x16 mcc_high_halves_i32x16(mcc_i32x16 a, mcc_i32x16 b)
{
    return (mcc_i32x16)_mm512_mask_shuffle_epi32((__m512i)b, (__mmask16)0x5555, (__m512i)a, _MM_PERM_DDBB);
}
MCC_VEC_INLINE mcc_half_i64x16 mcc_shifted_i64x16(mcc_half_i64x16 half, mcc_half_i64x16 bits) { return half >> bits; }
MCC_DOT_REST(16, 8);
#endif

#endif /* MCC_DOT_H */
