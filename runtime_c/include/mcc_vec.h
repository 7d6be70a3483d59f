/* mcc_vec.h - vectors of floats: all that kernels for machines with vector registers ask of compiler and machine.
 *
 * For N lanes among 4, 8 and 16, up to MCC_VEC_LANES, what the machine that is compiled for works on at once:
 *
 *     mcc_f32xN  mcc_i32xN            floats; integers, and masks whose lanes are 0 or -1
 *     mcc_load_f32xN(p)               from any address where a float may lie
 *     mcc_kept_f32xN(p)               the same, in a register as long as it is used: GCC reads a vector that is used
 *                                     several times again each time, which takes longer than the products
 *     mcc_load_part_f32xN(p, n)       n < N floats, zeros behind; nothing beyond them is touched
 *     mcc_store_f32xN(p, v)  mcc_store_part_f32xN(p, n, v)
 *     mcc_load_mask_i32xN(p, step, n) n <= N truth values, bytes that lie `step` apart
 *     mcc_load_apart_f32xN(p, step, n)  mcc_store_apart_f32xN(p, step, n, v)   n <= N floats that lie `step` apart
 *     mcc_set_f32xN(x)                x in every lane
 *     mcc_add mcc_sub mcc_mul mcc_div _f32xN(a, b)  mcc_neg_f32xN(x)
 *     mcc_fma_f32xN(a, b, c)          a * b + c: rounded once where the machine can do that, twice elsewhere
 *     mcc_fma_at_f32x4(a, b, lane, c) the same with the element of b in that lane, a constant
 *     mcc_each_f32xN                  what mcc_of_each_f32xN(x) makes of x, for mcc_fma_each_f32xN(each, b, c):
 *                                     the number where the machine multiplies vectors by one, else x in every lane
 *     mcc_max_f32xN  mcc_min_f32xN    NaN if either operand is NaN
 *     mcc_at_least_f32xN(x, low)      mcc_max where `low` is known to be a number; mcc_at_most: mcc_min
 *     mcc_less mcc_less_equal mcc_equal mcc_greater_equal mcc_greater _f32xN(a, b)   a mask
 *     mcc_select_f32xN(m, a, b)       a where the mask is set, else b
 *     mcc_abs mcc_sqrt mcc_floor mcc_ceil mcc_trunc mcc_round_even _f32xN(x)
 *     mcc_sum mcc_product mcc_largest mcc_smallest _f32xN(v)   of all lanes; the last two are NaN if any lane is
 *     mcc_is_lost_f32xN(v)            is any lane an infinity or NaN?
 *     mcc_transpose_f32xN(v)          transposes the square of N vectors. Not for N = 16
 *     mcc_weave_f32xN(v)              two vectors become one of twice the length, which takes elements of both in turn
 *     mcc_store_transposed_f32xN(p, step, n, v, each)   stores N vectors (8 where N is 16), `each` apart, as columns
 *                                     of n <= N rows that lie `step` apart
 *     mcc_all_double  mcc_all_uint32  mcc_all_uint64   as many bytes as the machine works on, for C operators
 *     MCC_VEC_FORGET(p)               the compiler forgets where the pointer p came from; for WebAssembly, where
 *                                     constant distances from such a pointer become part of loads and stores
 *     MCC_VEC_ANEW(p)                 what lies at the pointer p is read again, not kept in a register since last time
 *     MCC_VEC_AGAIN                   whatever lies in memory is read again
 *     MCC_VEC_ROLLED                  in front of a loop with a long body: Clang would write short ones out, and keep
 *                                     what they load on the stack
 *
 * Quotients and bits are C operators on these types; the rest could be, but GCC takes those on floats apart for 32-bit
 * Arm, whose vectors round denormal numbers to zero. Nothing here depends on options that let the compiler fuse or
 * reorder; it must know GCC's vector types.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_H
#define MCC_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mcc_port.h"

#if !defined(__GNUC__) && !defined(__clang__)
#error "kernels with vectors need GCC or Clang; compile the model for --target generic"
#endif

#define MCC_VEC_INLINE static inline __attribute__((always_inline, unused))

#define MCC_VEC_ANEW(p) __asm__("" : "+r"(p))
#define MCC_VEC_AGAIN __asm__ volatile("" : : : "memory")

#if defined(__clang__)
#define MCC_VEC_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define MCC_VEC_ROLLED
#endif

#if defined(__AVX512F__) || defined(__riscv_vector) /* RISC-V: registers in groups, whatever the length of one */
#define MCC_VEC_LANES 16
#elif defined(__AVX__)
#define MCC_VEC_LANES 8
#else
#define MCC_VEC_LANES 4
#endif

#if defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_fma) && __has_builtin(__builtin_elementwise_sqrt)
#define MCC_VEC_ELEMENTWISE /* Clang 17 has them for vectors of any width */
#endif
#endif

typedef double mcc_all_double __attribute__((vector_size(MCC_VEC_LANES * 4), may_alias));
typedef uint32_t mcc_all_uint32 __attribute__((vector_size(MCC_VEC_LANES * 4), may_alias));
typedef uint64_t mcc_all_uint64 __attribute__((vector_size(MCC_VEC_LANES * 4), may_alias));

/* Macros that define functions end in a typedef that nobody needs, so that a semicolon may follow them.
 *
 * The whole vocabulary in terms of C operators on vectors; mcc_vec_<machine>.h has what a machine does better in one
 * instruction. */
#define MCC_VEC_TYPES(N)                                                                                               \
    typedef float mcc_f32x##N __attribute__((vector_size(N * 4)));                                                     \
    typedef int32_t mcc_i32x##N __attribute__((vector_size(N * 4)));                                                   \
    typedef float mcc_f32x##N##_anywhere __attribute__((vector_size(N * 4), aligned(4), may_alias));                   \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_f32x##N(const float *p) { return *(const mcc_f32x##N##_anywhere *)p; }         \
    MCC_VEC_INLINE mcc_f32x##N mcc_kept_f32x##N(const float *p)                                                        \
    {                                                                                                                  \
        mcc_f32x##N v = mcc_load_f32x##N(p);                                                                           \
        MCC_VEC_KEEP(v);                                                                                               \
        return v;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_f32x##N(float *p, mcc_f32x##N v) { *(mcc_f32x##N##_anywhere *)p = v; }               \
    MCC_VEC_INLINE mcc_f32x##N mcc_select_f32x##N(mcc_i32x##N m, mcc_f32x##N a, mcc_f32x##N b)                         \
    {                                                                                                                  \
        return (mcc_f32x##N)(((mcc_i32x##N)a & m) | ((mcc_i32x##N)b & ~m));                                            \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_set_i32x##N(int32_t x)                                                              \
    {                                                                                                                  \
        const mcc_i32x##N zero = {0};                                                                                  \
        return zero + x;                                                                                               \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_abs_f32x##N(mcc_f32x##N x)                                                          \
    {                                                                                                                  \
        return (mcc_f32x##N)((mcc_i32x##N)x & mcc_set_i32x##N(0x7fffffff));                                            \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_types

#define MCC_VEC_ARITHMETIC(N)                                                                                          \
    MCC_VEC_INLINE mcc_f32x##N mcc_add_f32x##N(mcc_f32x##N a, mcc_f32x##N b) { return a + b; }                         \
    MCC_VEC_INLINE mcc_f32x##N mcc_sub_f32x##N(mcc_f32x##N a, mcc_f32x##N b) { return a - b; }                         \
    MCC_VEC_INLINE mcc_f32x##N mcc_mul_f32x##N(mcc_f32x##N a, mcc_f32x##N b) { return a * b; }                         \
    MCC_VEC_INLINE mcc_f32x##N mcc_neg_f32x##N(mcc_f32x##N x) { return -x; }                                           \
    MCC_VEC_INLINE mcc_i32x##N mcc_less_f32x##N(mcc_f32x##N a, mcc_f32x##N b) { return (mcc_i32x##N)(a < b); }         \
    MCC_VEC_INLINE mcc_i32x##N mcc_less_equal_f32x##N(mcc_f32x##N a, mcc_f32x##N b) { return (mcc_i32x##N)(a <= b); }  \
    MCC_VEC_INLINE mcc_i32x##N mcc_equal_f32x##N(mcc_f32x##N a, mcc_f32x##N b) { return (mcc_i32x##N)(a == b); }       \
    MCC_VEC_INLINE mcc_i32x##N mcc_greater_equal_f32x##N(mcc_f32x##N a, mcc_f32x##N b)                                 \
    {                                                                                                                  \
        return (mcc_i32x##N)(a >= b);                                                                                  \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_i32x##N mcc_greater_f32x##N(mcc_f32x##N a, mcc_f32x##N b) { return (mcc_i32x##N)(a > b); }      \
    typedef float mcc_f32x##N##_arithmetic

#define MCC_VEC_SET(N)                                                                                                 \
    MCC_VEC_INLINE mcc_f32x##N mcc_set_f32x##N(float x)                                                                \
    {                                                                                                                  \
        const mcc_f32x##N zero = {0};                                                                                  \
        return x - zero;                                                                                               \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_set

#define MCC_VEC_PART(N)                                                                                                \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_part_f32x##N(const float *p, int n)                                            \
    {                                                                                                                  \
        mcc_f32x##N v = {0};                                                                                           \
        (void)memcpy(&v, p, (size_t)n * 4);                                                                            \
        return v;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_f32x##N(float *p, int n, mcc_f32x##N v) { (void)memcpy(p, &v, (size_t)n * 4); } \
    typedef float mcc_f32x##N##_part

#if defined(MCC_VEC_ELEMENTWISE) && defined(__riscv_vector)
#define MCC_VEC_FMA(N)                                                                                                 \
    MCC_VEC_INLINE mcc_f32x##N mcc_fma_f32x##N(mcc_f32x##N a, mcc_f32x##N b, mcc_f32x##N c)                            \
    {                                                                                                                  \
        return __builtin_elementwise_fma(a, b, c);                                                                     \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_fma
#else
#define MCC_VEC_FMA(N)                                                                                                 \
    MCC_VEC_INLINE mcc_f32x##N mcc_fma_f32x##N(mcc_f32x##N a, mcc_f32x##N b, mcc_f32x##N c) { return a * b + c; }      \
    typedef float mcc_f32x##N##_fma
#endif

#define MCC_VEC_COMPARE(N)                                                                                             \
    MCC_VEC_INLINE mcc_f32x##N mcc_max_f32x##N(mcc_f32x##N a, mcc_f32x##N b)                                           \
    {                                                                                                                  \
        return mcc_select_f32x##N((mcc_i32x##N)(a > b) | (mcc_i32x##N)(a != a), a, b);                                 \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_min_f32x##N(mcc_f32x##N a, mcc_f32x##N b)                                           \
    {                                                                                                                  \
        return mcc_select_f32x##N((mcc_i32x##N)(a < b) | (mcc_i32x##N)(a != a), a, b);                                 \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_at_least_f32x##N(mcc_f32x##N x, mcc_f32x##N low)                                    \
    {                                                                                                                  \
        return mcc_select_f32x##N((mcc_i32x##N)(x < low), low, x);                                                     \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_at_most_f32x##N(mcc_f32x##N x, mcc_f32x##N high)                                    \
    {                                                                                                                  \
        return mcc_select_f32x##N((mcc_i32x##N)(x > high), high, x);                                                   \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_compare

/* A number of 2^23 or more is whole; below, adding 2^23 and taking it away again leaves a neighbouring whole number,
 * the one above at times. No conversion to integers: they are slow on some machines, and QEMU 7.2 ends at those of
 * RISC-V. */
#define MCC_VEC_ROUND(N)                                                                                               \
    MCC_VEC_INLINE mcc_f32x##N mcc_trunc_f32x##N(mcc_f32x##N x)                                                        \
    {                                                                                                                  \
        const mcc_f32x##N size = mcc_abs_f32x##N(x), ulps = mcc_set_f32x##N(8388608.0f);                               \
        const mcc_i32x##N sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff);                                        \
        const mcc_f32x##N near = mcc_sub_f32x##N(mcc_add_f32x##N(size, ulps), ulps);                                   \
        const mcc_f32x##N less = mcc_sub_f32x##N(near, mcc_set_f32x##N(1.0f));                                         \
        const mcc_f32x##N whole = mcc_select_f32x##N(mcc_greater_f32x##N(near, size), less, near);                     \
        return mcc_select_f32x##N(mcc_less_f32x##N(size, ulps), (mcc_f32x##N)((mcc_i32x##N)whole | sign), x);          \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_floor_f32x##N(mcc_f32x##N x)                                                        \
    {                                                                                                                  \
        const mcc_f32x##N whole = mcc_trunc_f32x##N(x);                                                                \
        const mcc_f32x##N less = mcc_sub_f32x##N(whole, mcc_set_f32x##N(1.0f));                                        \
        return mcc_select_f32x##N(mcc_greater_f32x##N(whole, x), less, whole);                                         \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_ceil_f32x##N(mcc_f32x##N x)                                                         \
    {                                                                                                                  \
        const mcc_f32x##N up = mcc_floor_f32x##N((mcc_f32x##N)((mcc_i32x##N)x ^ ~mcc_set_i32x##N(0x7fffffff)));        \
        return (mcc_f32x##N)((mcc_i32x##N)up ^ ~mcc_set_i32x##N(0x7fffffff));                                          \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_round_even_f32x##N(mcc_f32x##N x)                                                   \
    {                                                                                                                  \
        const mcc_f32x##N down = mcc_floor_f32x##N(x), rest = mcc_sub_f32x##N(x, down);                                \
        const mcc_f32x##N one = mcc_set_f32x##N(1.0f), half = mcc_set_f32x##N(0.5f);                                   \
        const mcc_f32x##N whole_half = mcc_floor_f32x##N(mcc_mul_f32x##N(down, half));                                 \
        const mcc_i32x##N odd = mcc_less_f32x##N(mcc_add_f32x##N(whole_half, whole_half), down);                       \
        const mcc_i32x##N up = mcc_greater_f32x##N(rest, half) | (mcc_equal_f32x##N(rest, half) & odd);                \
        const mcc_f32x##N whole = mcc_select_f32x##N(up, mcc_add_f32x##N(down, one), down);                            \
        const mcc_i32x##N sign = (mcc_i32x##N)x & ~mcc_set_i32x##N(0x7fffffff);                                        \
        return mcc_select_f32x##N(mcc_equal_f32x##N(rest, rest), (mcc_f32x##N)((mcc_i32x##N)whole | sign), x);         \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_round

#if defined(MCC_VEC_ELEMENTWISE)
#define MCC_VEC_SQRT(N)                                                                                                \
    MCC_VEC_INLINE mcc_f32x##N mcc_sqrt_f32x##N(mcc_f32x##N x) { return __builtin_elementwise_sqrt(x); }               \
    typedef float mcc_f32x##N##_sqrt
#else
#define MCC_VEC_SQRT(N)                                                                                                \
    MCC_VEC_INLINE mcc_f32x##N mcc_sqrt_f32x##N(mcc_f32x##N x)                                                         \
    {                                                                                                                  \
        int i;                                                                                                         \
        for (i = 0; i < N; i++) x[i] = __builtin_sqrtf(x[i]);                                                          \
        return x;                                                                                                      \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_sqrt
#endif

/* Bytes, which GCC moves one by one in the general form. */
#define MCC_VEC_WIDENED_u8(N, p) __builtin_convertvector(*(const mcc_u8x##N *)(p), mcc_i32x##N)
#define MCC_VEC_WIDE_u8_4(p) MCC_VEC_WIDENED_u8(4, p)
#if defined(__AVX2__)
#define MCC_VEC_8_BYTES(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define MCC_VEC_WIDE_u8_8(p) (mcc_i32x8)_mm256_cvtepu8_epi32(MCC_VEC_8_BYTES(p))
#else
#define MCC_VEC_WIDE_u8_8(p) MCC_VEC_WIDENED_u8(8, p)
#endif
#if defined(__AVX512F__) /* with a mask, all of it set: for C++, gcc's own headers warn of the plain forms */
#define MCC_VEC_16_BYTES(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define MCC_VEC_WIDE_u8_16(p) (mcc_i32x16)_mm512_maskz_cvtepu8_epi32((__mmask16)-1, MCC_VEC_16_BYTES(p))
#else
#define MCC_VEC_WIDE_u8_16(p) MCC_VEC_WIDENED_u8(16, p)
#endif

#define MCC_VEC_MASK(N)                                                                                                \
    typedef uint8_t mcc_u8x##N __attribute__((vector_size(N), aligned(1), may_alias));                                 \
    MCC_VEC_INLINE mcc_i32x##N mcc_load_mask_i32x##N(const uint8_t *p, ptrdiff_t step, int n)                          \
    {                                                                                                                  \
        mcc_i32x##N v = {0};                                                                                           \
        int i;                                                                                                         \
        if (step == 0) return mcc_set_i32x##N(*p ? -1 : 0);                                                            \
        if (step == 1 && n == N) return (mcc_i32x##N)(MCC_VEC_WIDE_u8_##N(p) != 0);                                    \
        for (i = 0; i < n; i++) v[i] = p[i * step] ? -1 : 0;                                                           \
        return v;                                                                                                      \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_mask

/* Numbers that do not lie side by side come one by one. */
#define MCC_VEC_LOAD_APART(N, ALL)                                                                                     \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_apart_f32x##N(const float *p, ptrdiff_t step, int n)                           \
    {                                                                                                                  \
        mcc_f32x##N v = {0};                                                                                           \
        int i;                                                                                                         \
        if (n == N) return ALL(p, step);                                                                               \
        for (i = 0; i < n; i++) v[i] = p[i * step];                                                                    \
        return v;                                                                                                      \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_load_apart
#define MCC_VEC_STORE_APART(N)                                                                                         \
    MCC_VEC_INLINE void mcc_store_apart_f32x##N(float *p, ptrdiff_t step, int n, mcc_f32x##N v)                        \
    {                                                                                                                  \
        float lanes[N];                                                                                                \
        int i;                                                                                                         \
        mcc_store_f32x##N(lanes, v);                                                                                   \
        for (i = 0; i < n; i++) p[i * step] = lanes[i];                                                                \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_store_apart
#define MCC_VEC_APART(N, ALL)                                                                                          \
    MCC_VEC_LOAD_APART(N, ALL);                                                                                        \
    MCC_VEC_STORE_APART(N)

#define MCC_VEC_HALVES_APART(N, HALF)                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_all_apart_f32x##N(const float *p, ptrdiff_t step)                                   \
    {                                                                                                                  \
        mcc_f32x##HALF half[2];                                                                                        \
        mcc_f32x##N v;                                                                                                 \
        half[0] = mcc_all_apart_f32x##HALF(p, step);                                                                   \
        half[1] = mcc_all_apart_f32x##HALF(p + HALF * step, step);                                                     \
        (void)memcpy(&v, half, sizeof v);                                                                              \
        return v;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_APART(N, mcc_all_apart_f32x##N)

/* Over all lanes: halves are combined down to four lanes. */
#define MCC_VEC_HALVES(NAME, N, HALF, BOTH)                                                                            \
    MCC_VEC_INLINE float mcc_##NAME##_f32x##N(mcc_f32x##N v)                                                           \
    {                                                                                                                  \
        mcc_f32x##HALF half[2];                                                                                        \
        (void)memcpy(half, &v, sizeof half);                                                                           \
        return mcc_##NAME##_f32x##HALF(BOTH);                                                                          \
    }
#define MCC_VEC_ACROSS(N, HALF)                                                                                        \
    MCC_VEC_HALVES(sum, N, HALF, half[0] + half[1])                                                                    \
    MCC_VEC_HALVES(largest, N, HALF, mcc_max_f32x##HALF(half[0], half[1]))                                             \
    MCC_VEC_HALVES(product, N, HALF, mcc_mul_f32x##HALF(half[0], half[1]))                                             \
    MCC_VEC_INLINE float mcc_smallest_f32x##N(mcc_f32x##N v) { return -mcc_largest_f32x##N(mcc_neg_f32x##N(v)); }      \
    typedef float mcc_f32x##N##_across

/* All that a machine without instructions of its own here needs. */
#define MCC_VEC_PLAIN(N)                                                                                               \
    MCC_VEC_SET(N);                                                                                                    \
    MCC_VEC_COMPARE(N);                                                                                                \
    MCC_VEC_FMA(N);                                                                                                    \
    MCC_VEC_SQRT(N);                                                                                                   \
    MCC_VEC_ROUND(N)

#define MCC_VEC_ONE_TO_ONE(N, name, instruction)                                                                       \
    MCC_VEC_INLINE mcc_f32x##N mcc_##name##_f32x##N(mcc_f32x##N x) { return (mcc_f32x##N)instruction; }                \
    typedef float mcc_f32x##N##_##name

/* The widths that the machine has. */
MCC_VEC_TYPES(4);
#if MCC_VEC_LANES >= 8
MCC_VEC_TYPES(8);
MCC_VEC_ARITHMETIC(8);
#endif
#if MCC_VEC_LANES >= 16
MCC_VEC_TYPES(16);
MCC_VEC_ARITHMETIC(16);
#endif

#if defined(__ARM_FEATURE_MVE)
#include "mcc_vec_helium.h"
#elif defined(__SSE2__)
#include "mcc_vec_x86.h"
#elif defined(__ARM_NEON)
#include "mcc_vec_arm.h"
#elif defined(__wasm_simd128__)
#include "mcc_vec_wasm.h"
#else
MCC_VEC_ARITHMETIC(4);
MCC_VEC_PART(4);
MCC_VEC_PLAIN(4);
#if defined(__riscv_vector)
MCC_VEC_PART(8);
MCC_VEC_PLAIN(8);
MCC_VEC_PART(16);
MCC_VEC_PLAIN(16);
#endif
#endif

#define MCC_VEC_DIV(N)                                                                                                 \
    MCC_VEC_INLINE mcc_f32x##N mcc_div_f32x##N(mcc_f32x##N a, mcc_f32x##N b) { return a / b; }                         \
    typedef float mcc_f32x##N##_div
#if !defined(__ARM_FEATURE_MVE)
MCC_VEC_DIV(4);
#endif
#if MCC_VEC_LANES >= 8
MCC_VEC_DIV(8);
#endif
#if MCC_VEC_LANES >= 16
MCC_VEC_DIV(16);
#endif

#if !defined(mcc_each_f32x4)
#define mcc_each_f32x4 mcc_f32x4
#define mcc_of_each_f32x4 mcc_set_f32x4
#define mcc_fma_each_f32x4 mcc_fma_f32x4
#endif
#define mcc_each_f32x8 mcc_f32x8
#define mcc_of_each_f32x8 mcc_set_f32x8
#define mcc_fma_each_f32x8 mcc_fma_f32x8
#define mcc_each_f32x16 mcc_f32x16
#define mcc_of_each_f32x16 mcc_set_f32x16
#define mcc_fma_each_f32x16 mcc_fma_f32x16

#if defined(__clang__) || __GNUC__ >= 12
#define MCC_VEC_CHOSEN(V, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MCC_VEC_CHOSEN(V, a, b, ...) __builtin_shuffle(a, b, (V){__VA_ARGS__})
#endif

MCC_VEC_INLINE void mcc_weave_f32x4(mcc_f32x4 *v)
{
    const mcc_f32x4 a = v[0], b = v[1];
    v[0] = MCC_VEC_CHOSEN(mcc_i32x4, a, b, 0, 4, 1, 5);
    v[1] = MCC_VEC_CHOSEN(mcc_i32x4, a, b, 2, 6, 3, 7);
}
#if !defined(MCC_VEC_FORGET)
#define MCC_VEC_FORGET(p) (void)0
#endif
#if defined(__ARM_FEATURE_MVE)
MCC_VEC_LOAD_APART(4, mcc_all_apart_f32x4);
#else
MCC_VEC_INLINE mcc_f32x4 mcc_all_apart_f32x4(const float *p, ptrdiff_t step)
{
    const mcc_f32x4 v = {p[0], p[step], p[2 * step], p[3 * step]};
    return v;
}
MCC_VEC_APART(4, mcc_all_apart_f32x4);
#endif
MCC_VEC_MASK(4);
MCC_VEC_INLINE float mcc_sum_f32x4(mcc_f32x4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }
MCC_VEC_INLINE float mcc_product_f32x4(mcc_f32x4 v) { return (v[0] * v[2]) * (v[1] * v[3]); }
MCC_VEC_INLINE float mcc_largest_f32x4(mcc_f32x4 v)
{
    const mcc_f32x4 other = {v[2], v[3], v[0], v[1]};
    const mcc_f32x4 pair = mcc_max_f32x4(v, other);
    return pair[0] > pair[1] || pair[0] != pair[0] ? pair[0] : pair[1];
}
MCC_VEC_INLINE float mcc_smallest_f32x4(mcc_f32x4 v) { return -mcc_largest_f32x4(mcc_neg_f32x4(v)); }
#if MCC_VEC_LANES >= 8
MCC_VEC_INLINE void mcc_weave_f32x8(mcc_f32x8 *v)
{
    const mcc_f32x8 a = v[0], b = v[1];
    v[0] = MCC_VEC_CHOSEN(mcc_i32x8, a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    v[1] = MCC_VEC_CHOSEN(mcc_i32x8, a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
MCC_VEC_HALVES_APART(8, 4);
MCC_VEC_MASK(8);
MCC_VEC_ACROSS(8, 4);
#endif
#if MCC_VEC_LANES >= 16
MCC_VEC_HALVES_APART(16, 8);
MCC_VEC_MASK(16);
MCC_VEC_ACROSS(16, 8);
#endif

#define MCC_VEC_LOST(N)                                                                                                \
    MCC_VEC_INLINE int mcc_is_lost_f32x##N(mcc_f32x##N v)                                                              \
    {                                                                                                                  \
        return mcc_sum_f32x##N(mcc_sub_f32x##N(v, v)) != 0.0f;                                                         \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_lost
MCC_VEC_LOST(4);
#if MCC_VEC_LANES >= 8
MCC_VEC_LOST(8);
#endif
#if MCC_VEC_LANES >= 16
MCC_VEC_LOST(16);
#endif

#include "mcc_vec_transpose.h"

#endif /* MCC_VEC_H */
