/* mcc_dot.h - vectors of sums of products of 8-bit integers, and what is made of the sums.
 *
 * For N lanes, one for each output channel:
 *
 *     mcc_dot_i32xN(sum, x, w)             sum + x0 * w0 + x1 * w1 + x2 * w2 + x3 * w3, four bytes in each lane
 *     mcc_dot_few_i32xN(sum, x, w)         the same where every byte of x is from 0 to 63 and those of w have a sign,
 *                                          which some machines do in fewer instructions
 *     mcc_dot_short_i32xN(sum, x, w)       the same of sums that begin at 0, each half of which stays within 16 bits;
 *                                          mcc_dot_whole_i32xN(sum) is what it comes to
 *     mcc_dot_kept_i32xN(p)                a vector that is used several times, in a register meanwhile: compilers
 *                                          would rather read it again each time, which takes longer than the products
 *     mcc_dot_set_u8_i32xN(p)              the four elements at p in every lane, as mcc_dot takes them; mcc_dot_set_i8
 *     mcc_dot_form_u8_i32xN(v)             the same of elements that lie in v; mcc_dot_form_i8
 *
 * Machines multiply bytes without a sign by bytes with one, or bytes with signs. `MCC_DOT_SIGNED` says which: elements
 * of the other type are shifted by 128 as they are loaded, which the compiler takes out of the sums where they begin
 * (the target's option `dot_signed` tells it; see codegen/int8/dot_tiles.py). Nothing saturates.
 *
 * All that epilogues need is here too, with the bits of mcc_math.h and mcc_quant.h: mcc_add, mcc_sub, mcc_mul, mcc_max,
 * mcc_min, mcc_high_sum, mcc_shift_right, mcc_shift_even _i32xN; mcc_f32_to_i32xN, rounded toward zero, and
 * mcc_i32_to_f32xN; loads of bytes as i32, stores of i32 as bytes (`saturated`: with bounds); and mcc_i64xN, vectors of
 * twice the bits, whose tables lie as the lanes 0, 2, 4 ... and then 1, 3, 5 ...
 *
 *     mcc_sum_u8_i32xN(p, n)               of n elements; mcc_sum_i8
 *
 * Machines that widen bytes, then multiply one number by a vector (RISC-V), add up products one after the other, in
 * registers that C's operators do not know:
 *
 *     mcc_dot_begin_i32xN(p)               mcc_dot_terms_i32xN: sums to begin with
 *     mcc_dot_widened_i8_i32xN(p)          mcc_dot_words_i32xN: N elements; mcc_dot_widened_u8
 *     mcc_dot_term_i32xN(sums, x, w)       sums + x * w, x one number; mcc_dot_terms_of: N of them
 *     mcc_dot_ended_i32xN(sums)            as an mcc_i32xN
 *
 * Machines that multiply matrices of bytes (Arm with i8mm) add up eight products of two points by two channels in a
 * vector:
 *
 *     mcc_dot_two_u8_i32xN(a, b)           eight elements of each point, as mcc_dot takes them; mcc_dot_two_i8
 *     mcc_dot_pairs_i32xN(sums, x, w)      of both points and two channels; mcc_dot: of one point, in two lanes each
 *     mcc_dot_first mcc_dot_second mcc_dot_halves _i32xN(low, high)   four channels of the points, of the one point
 *
 * Where each channel is for itself, four rows of 4 * N channels are laid beside each other, so that a lane has the four
 * bytes of one channel. That is quick in the order in which machines do it: channel 16 * l + 4 * j + i comes into lane
 * 4 * l + i of vector j, for tables and weights as for the sums.
 *
 *     mcc_dot_zip_u8_i32xN(a, b, c, d)     pointers to rows -> mcc_dot_four_i32xN, in the form of mcc_dot; also i8
 *     mcc_store_four_u8_i32xN(p, f)        4 * N sums in the order of memory, with bounds; mcc_store_four_part, i8
 *     mcc_store_four_f32_i32xN(p, f)       the same of floats, whose bits f has; mcc_store_four_part
 *     mcc_load_four_u8_i32xN(p)            and back; mcc_load_four_part, i8
 *
 * Here is what all machines share; mcc_dotN.h has the instructions of those with N lanes and brings all of it.
 *
 * To add a machine: its instructions in mcc_dotN.h, which defines what is listed at the end of this file and ends in
 * MCC_DOT_REST(N, N / 2); then `dot` among the `isas` of the target, and its options `dot_lanes` and `dot_signed`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DOT_H
#define MCC_DOT_H

#include "mcc.h"
#include "mcc_int.h"
#include "mcc_vec.h"

#if defined(__SSE2__) || defined(__wasm__)
#define MCC_DOT_SIGNED 0
#else
#define MCC_DOT_SIGNED 1
#endif

#define MCC_DOT_KEEP(v) MCC_VEC_KEEP(v)

/* v, whose lanes come from memory at once, with all bytes shifted by 128. AVX2 takes the bits from memory too: its 16
 * registers are all needed for the sums of a tile and their factors. Vectors of 64 bytes keep their units busy: numbers
 * of bytes are better shifted before they become vectors, but for what GCC makes of widened ones. */
#if defined(__clang__) || defined(__AVX512VNNI__)
#define MCC_DOT_LOADED 0
#else
#define MCC_DOT_LOADED 1
#endif
#if defined(__AVX__) && !defined(__AVX512F__)
#define MCC_DOT_FLIP(V, v)                                                                                             \
    do {                                                                                                               \
        static const uint32_t flips[8] __attribute__((aligned(32))) = {0x80808080u, 0x80808080u, 0x80808080u,          \
            0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u};                                          \
        MCC_DOT_KEEP(v);                                                                                               \
        __asm__("{vpxor %1, %0, %0|vpxor %0, %0, %1}" : "+x"(v) : "m"(*(const V *)(const void *)flips));               \
    } while (0)
#else
#define MCC_DOT_FLIP(V, v)                                                                                             \
    do {                                                                                                               \
        if (sizeof(V) < 64 || MCC_DOT_LOADED) MCC_DOT_KEEP(v);                                                         \
        (v) ^= -0x7f7f7f80;                                                                                            \
    } while (0)
#endif

/* GCC adds up other sums first, which takes more registers than there are; what Clang does in turn is faster. */
#if defined(__clang__)
#define MCC_DOT_IN_TURN(v) ((void)0)
#else
#define MCC_DOT_IN_TURN(v) MCC_DOT_KEEP(v)
#endif

/* p, so that what lies there is read where it is used: compilers would rather read the weights of a loop in front of
 * it, and keep them on the stack, which pays only where they are widened first. */
MCC_VEC_INLINE const int8_t *mcc_dot_forget(const int8_t *p)
{
#if defined(__aarch64__) || defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__riscv_vector)
    __asm__ volatile("" : "+r"(p));
#endif
    return p;
}

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
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_kept_i32x##N(const void *p)                                                     \
    {                                                                                                                  \
        mcc_i32x##N v = mcc_load_i32x##N(p);                                                                           \
        MCC_DOT_KEEP(v);                                                                                               \
        return v;                                                                                                      \
    }                                                                                                                  \
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
    MCC_VEC_INLINE mcc_i32x##N mcc_shift_even_i32x##N(mcc_i32x##N v, int bits)                                         \
    {                                                                                                                  \
        return (v + ((v >> (bits - 2)) & 4)) >> bits;                                                                  \
    }                                                                                                                  \
    typedef struct mcc_dot_four_i32x##N {                                                                              \
        mcc_i32x##N v0, v1, v2, v3;                                                                                    \
    } mcc_dot_four_i32x##N;                                                                                            \
    typedef float mcc_dot_types_##N

/* The first n elements of a vector, which are written as a whole aside. */
#define MCC_DOT_STORED(NAME, C, COUNT, V, STORE)                                                                       \
    MCC_VEC_INLINE void NAME(C *p, int n, V v)                                                                         \
    {                                                                                                                  \
        C all[COUNT];                                                                                                  \
        STORE(all, v);                                                                                                 \
        (void)memcpy(p, all, (size_t)n);                                                                               \
    }

/* What does not need a vector register of the whole width. */
#define MCC_DOT_PART(N, OF, C)                                                                                         \
    MCC_VEC_INLINE mcc_i32x##N mcc_load_part_##OF##_i32x##N(const C *p, int n)                                         \
    {                                                                                                                  \
        C all[N] = {0};                                                                                                \
        (void)memcpy(all, p, (size_t)n);                                                                               \
        return mcc_load_##OF##_i32x##N(all);                                                                           \
    }                                                                                                                  \
    MCC_DOT_STORED(mcc_store_part_##OF##_i32x##N, C, N, mcc_i32x##N, mcc_store_##OF##_i32x##N)                         \
    MCC_DOT_STORED(mcc_store_part_saturated_##OF##_i32x##N, C, N, mcc_i32x##N, mcc_store_saturated_##OF##_i32x##N)     \
    typedef float mcc_dot_part_##OF##_##N

/* What is the same for elements of both types: OF is u8 or i8, C the type, LOW and HIGH its bounds, SHIFT what the
 * form of mcc_dot is less than an element. */
#define MCC_DOT_ELEMENTS(N, OF, C, LOW, HIGH, SHIFT)                                                                   \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_form_##OF##_i32x##N(mcc_i32x##N v)                                              \
    {                                                                                                                  \
        return (SHIFT) ? v ^ mcc_set_i32x##N(-0x7f7f7f80) : v;                                                         \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_set_##OF##_i32x##N(const void *p)                                               \
    {                                                                                                                  \
        int32_t four;                                                                                                  \
        mcc_i32x##N v;                                                                                                 \
        (void)memcpy(&four, p, sizeof four);                                                                           \
        v = mcc_set_i32x##N(four);                                                                                     \
        if (SHIFT) MCC_DOT_FLIP(mcc_i32x##N, v);                                                                       \
        return v;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE int32_t mcc_sum_##OF##_i32x##N(const C *p, mcc_index n)                                             \
    {                                                                                                                  \
        const mcc_i32x##N ones = mcc_set_i32x##N(0x01010101);                                                          \
        const mcc_index whole = n / (4 * N) * (4 * N);                                                                 \
        mcc_i32x##N total = mcc_set_i32x##N(0);                                                                        \
        int32_t lanes[N], sum = (SHIFT) * (int32_t)whole;                                                              \
        for (mcc_index i = 0; i < whole; i += 4 * N) {                                                                 \
            total = mcc_dot_i32x##N(total, mcc_dot_form_##OF##_i32x##N(mcc_load_i32x##N(p + i)), ones);                \
        }                                                                                                              \
        (void)memcpy(lanes, &total, sizeof lanes);                                                                     \
        for (mcc_index i = 0; i < N; ++i) sum += lanes[i];                                                             \
        for (mcc_index i = whole; i < n; ++i) sum += p[i];                                                             \
        return sum;                                                                                                    \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_saturate_##OF##_i32x##N(mcc_i32x##N v)                                              \
    {                                                                                                                  \
        return mcc_min_i32x##N(mcc_max_i32x##N(v, mcc_set_i32x##N(LOW)), mcc_set_i32x##N(HIGH));                       \
    }                                                                                                                  \
    typedef float mcc_dot_elements_##OF##_##N

#define MCC_DOT_REST(N, H)                                                                                             \
    MCC_DOT_ELEMENTS(N, u8, uint8_t, 0, 255, MCC_DOT_SIGNED ? 128 : 0);                                                \
    MCC_DOT_ELEMENTS(N, i8, int8_t, -128, 127, MCC_DOT_SIGNED ? 0 : -128);                                             \
    MCC_VEC_INLINE mcc_f32x##N mcc_i32_to_f32x##N(mcc_i32x##N v) { return __builtin_convertvector(v, mcc_f32x##N); }   \
    MCC_VEC_INLINE mcc_half_i64x##N mcc_high_half_i64x##N(mcc_i32x##N v)                                               \
    {                                                                                                                  \
        return (mcc_half_i64x##N)((mcc_half_u64x##N)v >> 32);                                                          \
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
    typedef float mcc_dot_rest_##N

/* What goes by four rows, behind MCC_DOT_REST. */
#define MCC_DOT_FOURS_OF(N, OF, C)                                                                                     \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_dot_zip_##OF##_i32x##N(const void *a, const void *b, const void *c,        \
                                                                   const void *d)                                      \
    {                                                                                                                  \
        mcc_dot_four_i32x##N f = mcc_dot_zip_i32x##N(a, b, c, d);                                                      \
        f.v0 = mcc_dot_form_##OF##_i32x##N(f.v0);                                                                      \
        f.v1 = mcc_dot_form_##OF##_i32x##N(f.v1);                                                                      \
        f.v2 = mcc_dot_form_##OF##_i32x##N(f.v2);                                                                      \
        f.v3 = mcc_dot_form_##OF##_i32x##N(f.v3);                                                                      \
        return f;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_load_four_part_##OF##_i32x##N(const C *p, int n)                           \
    {                                                                                                                  \
        C all[4 * N] = {0};                                                                                            \
        (void)memcpy(all, p, (size_t)n);                                                                               \
        return mcc_load_four_##OF##_i32x##N(all);                                                                      \
    }                                                                                                                  \
    typedef float mcc_dot_fours_##OF##_##N

#define MCC_DOT_FOURS(N)                                                                                               \
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
    MCC_VEC_INLINE void mcc_store_four_part_f32_i32x##N(float *p, int n, mcc_dot_four_i32x##N f)                       \
    {                                                                                                                  \
        float bits[4 * N];                                                                                             \
        int at;                                                                                                        \
        (void)memcpy(bits, &f, sizeof bits);                                                                           \
        for (at = 0; at < n; at += 4)                                                                                  \
            (void)memcpy(p + at, bits + at / 4 % 4 * N + at / 16 * 4, n - at < 4 ? 4 * (size_t)(n - at) : 16);         \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_four_f32_i32x##N(float *p, mcc_dot_four_i32x##N f)                                   \
    {                                                                                                                  \
        mcc_store_four_part_f32_i32x##N(p, 4 * N, f);                                                                  \
    }                                                                                                                  \
    MCC_DOT_FOURS_OF(N, u8, uint8_t);                                                                                  \
    MCC_DOT_FOURS_OF(N, i8, int8_t);                                                                                   \
    typedef float mcc_dot_fours_##N

#define MCC_DOT_FOUR_PART(N, OF, C)                                                                                    \
    MCC_DOT_STORED(mcc_store_four_part_##OF##_i32x##N, C, 4 * N, mcc_dot_four_i32x##N, mcc_store_four_##OF##_i32x##N)  \
    typedef float mcc_dot_four_part_##OF##_##N

/* The upper halves of products, where no instruction makes them. */
#define MCC_DOT_HIGH_SUM(N)                                                                                            \
    MCC_VEC_INLINE mcc_i32x##N mcc_high_sum_i32x##N(mcc_i32x##N sum, mcc_i32x##N a, mcc_i32x##N b)                     \
    {                                                                                                                  \
        const mcc_half_i64x##N even = mcc_even_products_i32x##N(a, b);                                                 \
        const mcc_half_i64x##N odd = mcc_even_products_i32x##N((mcc_i32x##N)mcc_high_half_i64x##N(a),                  \
                                                               (mcc_i32x##N)mcc_high_half_i64x##N(b));                 \
        return mcc_add_i32x##N(sum, mcc_high_halves_i32x##N((mcc_i32x##N)even, (mcc_i32x##N)odd));                     \
    }                                                                                                                  \
    typedef float mcc_dot_high_sum_##N

/* What mcc_dotN.h has: MCC_DOT_TYPES(N), then, as functions,
 *
 *     mcc_dot_i32xN(sum, x, w)
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

/* One instruction `of` on two vectors of the machine's type V. */
#define MCC_DOT_BINARY(N, V, name, of)                                                                                 \
    MCC_VEC_INLINE mcc_i32x##N mcc_##name##_i32x##N(mcc_i32x##N a, mcc_i32x##N b)                                      \
    {                                                                                                                  \
        return (mcc_i32x##N)of((V)a, (V)b);                                                                            \
    }                                                                                                                  \
    typedef float mcc_dot_##name##_##N

/* One instruction that adds up four products of bytes. */
#define MCC_DOT_ADDED(N, V, instruction)                                                                               \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_i32x##N(mcc_i32x##N sum, mcc_i32x##N x, mcc_i32x##N w)                          \
    {                                                                                                                  \
        return (mcc_i32x##N)instruction((V)sum, (V)x, (V)w);                                                           \
    }                                                                                                                  \
    typedef float mcc_dot_added_##N

/* x86 and WebAssembly without products of bytes: widened, for two of them do not always fit the 16 bits in which
 * vpmaddubsw saturates them. `pairs` multiplies 16-bit numbers and adds two products. */
#define MCC_DOT_WIDENED(N, V, pairs)                                                                                   \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_i32x##N(mcc_i32x##N sum, mcc_i32x##N x, mcc_i32x##N w)                          \
    {                                                                                                                  \
        const mcc_dot_i16x##N w02 = (mcc_dot_i16x##N)((mcc_dot_u16x##N)w << 8) >> 8, w13 = (mcc_dot_i16x##N)w >> 8;    \
        const mcc_dot_u16x##N x02 = (mcc_dot_u16x##N)x & 255, x13 = (mcc_dot_u16x##N)x >> 8;                           \
        sum = mcc_add_i32x##N(sum, (mcc_i32x##N)pairs((V)x02, (V)w02));                                                \
        MCC_DOT_IN_TURN(sum);                                                                                          \
        return mcc_add_i32x##N(sum, (mcc_i32x##N)pairs((V)x13, (V)w13));                                               \
    }                                                                                                                  \
    typedef float mcc_dot_widened_##N

/* Machines with products of bytes, or none of numbers this small. */
#define MCC_DOT_FEW(N)                                                                                                 \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_few_i32x##N(mcc_i32x##N sum, mcc_i32x##N x, mcc_i32x##N w)                      \
    {                                                                                                                  \
        return mcc_dot_i32x##N(sum, x, w);                                                                             \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_short_i32x##N(mcc_i32x##N sum, mcc_i32x##N x, mcc_i32x##N w)                    \
    {                                                                                                                  \
        return mcc_dot_i32x##N(sum, x, w);                                                                             \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_whole_i32x##N(mcc_i32x##N sum) { return sum; }                                  \
    typedef float mcc_dot_few_##N

/* x86 without products of bytes: two products of numbers this small fit 16 bits. */
#define MCC_DOT_FEW_PAIRED(N, V, bytes, pairs)                                                                         \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_few_i32x##N(mcc_i32x##N sum, mcc_i32x##N x, mcc_i32x##N w)                      \
    {                                                                                                                  \
        const V two = bytes((V)x, (V)w), ones = (V)mcc_set_i32x##N(0x00010001);                                        \
        return mcc_add_i32x##N(sum, (mcc_i32x##N)pairs(two, ones));                                                    \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_short_i32x##N(mcc_i32x##N sum, mcc_i32x##N x, mcc_i32x##N w)                    \
    {                                                                                                                  \
        return (mcc_i32x##N)((mcc_dot_u16x##N)sum + (mcc_dot_u16x##N)bytes((V)x, (V)w));                               \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_dot_whole_i32x##N(mcc_i32x##N sum)                                                  \
    {                                                                                                                  \
        return (mcc_i32x##N)pairs((V)sum, (V)mcc_set_i32x##N(0x00010001));                                             \
    }                                                                                                                  \
    typedef float mcc_dot_few_paired_##N

/* x86 and WebAssembly: `low` and `high` interleave the elements, of 8 or 16 bits, of the halves of each 128 bits. */
#define MCC_DOT_ZIP(N, V, low8, high8, low16, high16)                                                                  \
    MCC_VEC_INLINE mcc_dot_four_i32x##N mcc_dot_zip_i32x##N(const void *a, const void *b, const void *c, const void *d)\
    {                                                                                                                  \
        const V ra = (V)mcc_load_i32x##N(a), rb = (V)mcc_load_i32x##N(b);                                              \
        const V rc = (V)mcc_load_i32x##N(c), rd = (V)mcc_load_i32x##N(d);                                              \
        const V ab0 = low8(ra, rb), ab1 = high8(ra, rb), cd0 = low8(rc, rd), cd1 = high8(rc, rd);                      \
        mcc_dot_four_i32x##N f;                                                                                        \
        f.v0 = (mcc_i32x##N)low16(ab0, cd0);                                                                           \
        f.v1 = (mcc_i32x##N)high16(ab0, cd0);                                                                          \
        f.v2 = (mcc_i32x##N)low16(ab1, cd1);                                                                           \
        f.v3 = (mcc_i32x##N)high16(ab1, cd1);                                                                          \
        return f;                                                                                                      \
    }                                                                                                                  \
    typedef float mcc_dot_zip_##N

#endif /* MCC_DOT_H */
