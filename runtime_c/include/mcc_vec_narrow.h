/* mcc_vec_narrow.h - vectors of floats from and to numbers that are stored in 16 bits: f16 and bf16; integers of 8 and
 * 16 bits.
 *
 * For N lanes as in mcc_vec.h, and bf16 wherever f16 stands here:
 *
 *     mcc_load_f16_f32xN(p)               exact, whatever they are
 *     mcc_load_part_f16_f32xN(p, n)       n < N numbers, zeros behind; nothing beyond them is touched
 *     mcc_store_f16_f32xN(p, v)           to the nearest, halves to even; too large a number becomes infinity
 *     mcc_store_part_f16_f32xN(p, n, v)
 *     mcc_load_apart_f16_f32xN(p, step, n)  mcc_store_apart_f16_f32xN(p, step, n, v)   n <= N that lie `step` apart
 *     mcc_round_f16_f32xN(v)              what a store and a load would make of it
 *     mcc_load_T_f32xN(p)  mcc_load_part_T_f32xN(p, n)   T among i8, u8, i16, u16
 *                                         T may be i32 u32 i64 u64 too: to the nearest float
 *     mcc_store_T_f32xN(p, v)  mcc_store_part_T_f32xN(p, n, v)   cut toward zero; in range, or NaN, which becomes 0
 *
 * One instruction where the machine has it (F16C, AVX-512, NEON), else on bits; denormal numbers of f16 are numbers on
 * all machines. Those of bf16 are what the machine takes denormal floats for. NaN stays NaN, its bits may change.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_NARROW_H
#define MCC_VEC_NARROW_H

#include "mcc_vec.h"

/* GCC makes several instructions of the general form. */
#if defined(__ARM_NEON)
#define MCC_VEC_UP_16(N, h) vshll_n_u16((uint16x4_t)(h), 16)
#elif defined(__AVX2__)
#define MCC_VEC_WIDE_16_4(h) _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)&(h)))
#define MCC_VEC_WIDE_16_8(h) _mm256_cvtepu16_epi32((__m128i)(h))
#define MCC_VEC_WIDE_16_16(h) __builtin_convertvector(h, mcc_i32x16)
#define MCC_VEC_UP_16(N, h) ((mcc_i32x##N)MCC_VEC_WIDE_16_##N(h) << 16)
#else
#define MCC_VEC_UP_16(N, h) (__builtin_convertvector(h, mcc_i32x##N) << 16)
#endif

/* A vector that is read right after its parts were stored waits for them: a masked load does not. */
#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define MCC_VEC_PART_16_4(h, p, n) (void)memcpy(&(h), p, (size_t)(n)*2)
#define MCC_VEC_PART_16_8(h, p, n) (h) = (mcc_u16x8)_mm_maskz_loadu_epi16((__mmask8)((1u << (n)) - 1u), p)
#define MCC_VEC_PART_16_16(h, p, n) (h) = (mcc_u16x16)_mm256_maskz_loadu_epi16((__mmask16)((1u << (n)) - 1u), p)
#define MCC_VEC_PART_16(N, h, p, n) MCC_VEC_PART_16_##N(h, p, n)
#else
#define MCC_VEC_PART_16(N, h, p, n) (void)memcpy(&(h), p, (size_t)(n)*2)
#endif

#define MCC_VEC_NARROW_TYPES(N)                                                                                        \
    typedef uint16_t mcc_u16x##N __attribute__((vector_size(N * 2)));                                                  \
    typedef uint16_t mcc_u16x##N##_anywhere __attribute__((vector_size(N * 2), aligned(2), may_alias));                \
    MCC_VEC_INLINE mcc_u16x##N mcc_part_u16x##N(const uint16_t *p, int n)                                              \
    {                                                                                                                  \
        mcc_u16x##N h = {0};                                                                                           \
        MCC_VEC_PART_16(N, h, p, n);                                                                                   \
        return h;                                                                                                      \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_of_bf16_f32x##N(mcc_u16x##N h)                                                      \
    {                                                                                                                  \
        return (mcc_f32x##N)MCC_VEC_UP_16(N, h);                                                                       \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_u16x##N mcc_to_bf16_f32x##N(mcc_f32x##N v)                                                      \
    {                                                                                                                  \
        const mcc_i32x##N bits = (mcc_i32x##N)v, any = bits & mcc_set_i32x##N(0x7fffffff);                             \
        const mcc_i32x##N nan = (mcc_i32x##N)(any > mcc_set_i32x##N(0x7f800000));                                      \
        const mcc_i32x##N size = (any & ~nan) | (nan & mcc_set_i32x##N(0x7fc00000));                                   \
        const mcc_i32x##N odd = (size >> 16) & mcc_set_i32x##N(1);                                                     \
        const mcc_i32x##N code = (size + odd + mcc_set_i32x##N(0x7fff)) >> 16;                                         \
        return __builtin_convertvector(code | ((bits >> 16) & mcc_set_i32x##N(0x8000)), mcc_u16x##N);                  \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_narrow_types

/* A float of 0.5 has its last bit where the last one of denormal f16 is: 2^-24. */
#define MCC_VEC_F16_BITS(N)                                                                                            \
    MCC_VEC_INLINE mcc_f32x##N mcc_of_f16_f32x##N(mcc_u16x##N h)                                                       \
    {                                                                                                                  \
        const mcc_i32x##N bits = __builtin_convertvector(h, mcc_i32x##N), size = bits & mcc_set_i32x##N(0x7fff);       \
        const mcc_i32x##N sign = (bits & mcc_set_i32x##N(0x8000)) << 16, half = mcc_set_i32x##N(0x3f000000);           \
        const mcc_f32x##N tiny = mcc_sub_f32x##N((mcc_f32x##N)(size | half), (mcc_f32x##N)half);                       \
        const mcc_i32x##N beyond = (mcc_i32x##N)(size >= mcc_set_i32x##N(0x7c00)), bias = mcc_set_i32x##N(0x38000000); \
        const mcc_i32x##N more = bias + (beyond & bias);                                                               \
        const mcc_f32x##N plain = (mcc_f32x##N)((size << 13) + more);                                                  \
        const mcc_f32x##N found =                                                                                      \
            mcc_select_f32x##N((mcc_i32x##N)(size < mcc_set_i32x##N(0x400)), tiny, plain);                             \
        return (mcc_f32x##N)((mcc_i32x##N)found | sign);                                                               \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_u16x##N mcc_to_f16_f32x##N(mcc_f32x##N v)                                                       \
    {                                                                                                                  \
        const mcc_i32x##N bits = (mcc_i32x##N)v, size = bits & mcc_set_i32x##N(0x7fffffff);                            \
        const mcc_i32x##N odd = (size >> 13) & mcc_set_i32x##N(1), half = mcc_set_i32x##N(0x3f000000);                 \
        const mcc_i32x##N plain = (size + odd + mcc_set_i32x##N(0xfff - 0x38000000)) >> 13;                            \
        const mcc_i32x##N tiny = (mcc_i32x##N)mcc_add_f32x##N((mcc_f32x##N)size, (mcc_f32x##N)half) - half;            \
        const mcc_i32x##N small = (mcc_i32x##N)(size < mcc_set_i32x##N(0x38800000));                                   \
        const mcc_i32x##N large = (mcc_i32x##N)(size >= mcc_set_i32x##N(0x47800000));                                  \
        const mcc_i32x##N nan = (mcc_i32x##N)(size > mcc_set_i32x##N(0x7f800000));                                     \
        mcc_i32x##N code = (tiny & small) | (plain & ~small & ~large) | (large & mcc_set_i32x##N(0x7c00));             \
        code |= (nan & mcc_set_i32x##N(0x200)) | ((bits >> 16) & mcc_set_i32x##N(0x8000));                             \
        return __builtin_convertvector(code, mcc_u16x##N);                                                             \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_f16_bits

/* Two instructions on Helium. The second one is vcvtb.f32.f16, by its code: GNU's assembler (2.40) writes twice the
 * number of a register there, which is another register unless it is q0. */
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
MCC_VEC_INLINE mcc_f32x4 mcc_widened_f16_f32x4(uint32x4_t h)
{
    mcc_f32x4 found;
    __asm__(".irp i, 0, 1, 2, 3, 4, 5, 6, 7\n"
            ".equ mcc_number_of_q\\i, \\i\n"
            ".endr\n"
            ".inst.w 0xfe3f0e01 + (mcc_number_of_%q0 << 13) + (mcc_number_of_%q1 << 1)"
            : "=w"(found)
            : "w"(h));
    return found;
}
#define MCC_VEC_LOAD_f16(N, p) mcc_widened_f16_f32x4(vldrhq_u32(p))
#define MCC_VEC_LOAD_bf16(N, p) ((mcc_f32x4)(vldrhq_u32(p) << 16))
#else
#define MCC_VEC_LOAD_f16(N, p) mcc_of_f16_f32x##N(*(const mcc_u16x##N##_anywhere *)(p))
#define MCC_VEC_LOAD_bf16(N, p) mcc_of_bf16_f32x##N(*(const mcc_u16x##N##_anywhere *)(p))
#endif

#define MCC_VEC_NARROW(N, dtype)                                                                                       \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_##dtype##_f32x##N(const uint16_t *p)                                           \
    {                                                                                                                  \
        return MCC_VEC_LOAD_##dtype(N, p);                                                                             \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_##dtype##_f32x##N(uint16_t *p, mcc_f32x##N v)                                        \
    {                                                                                                                  \
        *(mcc_u16x##N##_anywhere *)p = mcc_to_##dtype##_f32x##N(v);                                                    \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_part_##dtype##_f32x##N(const uint16_t *p, int n)                               \
    {                                                                                                                  \
        return mcc_of_##dtype##_f32x##N(mcc_part_u16x##N(p, n));                                                       \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_##dtype##_f32x##N(uint16_t *p, int n, mcc_f32x##N v)                            \
    {                                                                                                                  \
        const mcc_u16x##N h = mcc_to_##dtype##_f32x##N(v);                                                             \
        (void)memcpy(p, &h, (size_t)n * 2);                                                                            \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_apart_##dtype##_f32x##N(const uint16_t *p, ptrdiff_t step, int n)              \
    {                                                                                                                  \
        mcc_u16x##N h = {0};                                                                                           \
        int i;                                                                                                         \
        for (i = 0; i < n; i++) h[i] = p[i * step];                                                                    \
        return mcc_of_##dtype##_f32x##N(h);                                                                            \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_apart_##dtype##_f32x##N(uint16_t *p, ptrdiff_t step, int n, mcc_f32x##N v)           \
    {                                                                                                                  \
        const mcc_u16x##N h = mcc_to_##dtype##_f32x##N(v);                                                             \
        int i;                                                                                                         \
        for (i = 0; i < n; i++) p[i * step] = h[i];                                                                    \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_round_##dtype##_f32x##N(mcc_f32x##N v)                                              \
    {                                                                                                                  \
        return mcc_of_##dtype##_f32x##N(mcc_to_##dtype##_f32x##N(v));                                                  \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_narrow_##dtype

/* Loads of numbers of another type, which `widened` makes floats or what becomes floats. */
#define MCC_VEC_LOADS(N, T, type, widened)                                                                             \
    typedef type mcc_##T##_f32x##N __attribute__((vector_size(N * sizeof(type)), aligned(sizeof(type)), may_alias));   \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_##T##_f32x##N(const type *p)                                                   \
    {                                                                                                                  \
        return __builtin_convertvector(widened, mcc_f32x##N);                                                          \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x##N mcc_load_part_##T##_f32x##N(const type *p, int n)                                       \
    {                                                                                                                  \
        type part[N] = {0};                                                                                            \
        (void)memcpy(part, p, (size_t)n * sizeof(type));                                                               \
        return mcc_load_##T##_f32x##N(part);                                                                           \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_loads_##T

/* One load widens integers on Helium, one store narrows them. */
#if defined(__ARM_FEATURE_MVE)
#define MCC_VEC_MVE_s int32x4_t
#define MCC_VEC_MVE_u uint32x4_t
#define MCC_VEC_MVE_INTEGER(T, type, of, word)                                                                         \
    MCC_VEC_INLINE mcc_f32x4 mcc_load_##T##_f32x4(const type *p)                                                       \
    {                                                                                                                  \
        return (mcc_f32x4)vcvtq_f32_s32((int32x4_t)vldr##of##_##word##32(p));                                          \
    }                                                                                                                  \
    MCC_VEC_INLINE mcc_f32x4 mcc_load_part_##T##_f32x4(const type *p, int n)                                           \
    {                                                                                                                  \
        return (mcc_f32x4)vcvtq_f32_s32((int32x4_t)vldr##of##_z_##word##32(p, vctp32q((uint32_t)n)));                  \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_##T##_f32x4(type *p, mcc_f32x4 v)                                                    \
    {                                                                                                                  \
        vstr##of##_##word##32(p, (MCC_VEC_MVE_##word)vcvtq_s32_f32((float32x4_t)v));                                   \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_##T##_f32x4(type *p, int n, mcc_f32x4 v)                                        \
    {                                                                                                                  \
        vstr##of##_p_##word##32(p, (MCC_VEC_MVE_##word)vcvtq_s32_f32((float32x4_t)v), vctp32q((uint32_t)n));           \
    }                                                                                                                  \
    typedef float mcc_f32x4_integer_##T
#define MCC_VEC_INTEGERS(N)                                                                                            \
    MCC_VEC_MVE_INTEGER(i8, int8_t, bq, s);                                                                            \
    MCC_VEC_MVE_INTEGER(u8, uint8_t, bq, u);                                                                           \
    MCC_VEC_MVE_INTEGER(i16, int16_t, hq, s);                                                                          \
    MCC_VEC_MVE_INTEGER(u16, uint16_t, hq, u)
#else
#define MCC_VEC_WIDENED(N, T, p) __builtin_convertvector(*(const mcc_##T##_f32x##N *)(p), mcc_i32x##N)
#define MCC_VEC_WIDE_i8_4(p) MCC_VEC_WIDENED(4, i8, p)
#if defined(__AVX2__)
#define MCC_VEC_WIDE_i8_8(p) (mcc_i32x8)_mm256_cvtepi8_epi32(MCC_VEC_8_BYTES(p))
#else
#define MCC_VEC_WIDE_i8_8(p) MCC_VEC_WIDENED(8, i8, p)
#endif
#if defined(__AVX512F__)
#define MCC_VEC_WIDE_i8_16(p) (mcc_i32x16)_mm512_maskz_cvtepi8_epi32((__mmask16)-1, MCC_VEC_16_BYTES(p))
#else
#define MCC_VEC_WIDE_i8_16(p) MCC_VEC_WIDENED(16, i8, p)
#endif
#define MCC_VEC_INTEGER(N, T, type, widened)                                                                           \
    MCC_VEC_LOADS(N, T, type, widened);                                                                                \
    MCC_VEC_INLINE void mcc_store_##T##_f32x##N(type *p, mcc_f32x##N v)                                                \
    {                                                                                                                  \
        const mcc_f32x##N number = (mcc_f32x##N)((mcc_i32x##N)v & (mcc_i32x##N)(v == v));                              \
        *(mcc_##T##_f32x##N *)p =                                                                                      \
            __builtin_convertvector(__builtin_convertvector(number, mcc_i32x##N), mcc_##T##_f32x##N);                  \
    }                                                                                                                  \
    MCC_VEC_INLINE void mcc_store_part_##T##_f32x##N(type *p, int n, mcc_f32x##N v)                                    \
    {                                                                                                                  \
        type part[N];                                                                                                  \
        mcc_store_##T##_f32x##N(part, v);                                                                              \
        (void)memcpy(p, part, (size_t)n * sizeof(type));                                                               \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_integer_##T
#define MCC_VEC_INTEGERS(N)                                                                                            \
    MCC_VEC_INTEGER(N, i8, int8_t, MCC_VEC_WIDE_i8_##N(p));                                                            \
    MCC_VEC_INTEGER(N, u8, uint8_t, MCC_VEC_WIDE_u8_##N(p));                                                           \
    MCC_VEC_INTEGER(N, i16, int16_t, MCC_VEC_WIDENED(N, i16, p));                                                      \
    MCC_VEC_INTEGER(N, u16, uint16_t, MCC_VEC_WIDENED(N, u16, p))
#endif

#define MCC_VEC_LONGS(N)                                                                                               \
    MCC_VEC_LOADS(N, i32, int32_t, *(const mcc_i32_f32x##N *)p);                                                       \
    MCC_VEC_LOADS(N, i64, int64_t, *(const mcc_i64_f32x##N *)p);                                                       \
    MCC_VEC_LOADS(N, u32, uint32_t, *(const mcc_u32_f32x##N *)p);                                                      \
    MCC_VEC_LOADS(N, u64, uint64_t, *(const mcc_u64_f32x##N *)p)

/* ---- 4 lanes */
MCC_VEC_NARROW_TYPES(4);
#if defined(__F16C__)
MCC_VEC_INLINE mcc_f32x4 mcc_of_f16_f32x4(mcc_u16x4 h)
{
    return (mcc_f32x4)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)&h));
}
MCC_VEC_INLINE mcc_u16x4 mcc_to_f16_f32x4(mcc_f32x4 v)
{
    mcc_u16x4 h;
    _mm_storel_epi64((__m128i *)(void *)&h, _mm_cvtps_ph((__m128)v, _MM_FROUND_TO_NEAREST_INT));
    return h;
}
#elif defined(__aarch64__) || (defined(__ARM_NEON) && defined(__ARM_FP16_FORMAT_IEEE) && (__ARM_FP & 2))
MCC_VEC_INLINE mcc_f32x4 mcc_of_f16_f32x4(mcc_u16x4 h)
{
    return (mcc_f32x4)vcvt_f32_f16(vreinterpret_f16_u16((uint16x4_t)h));
}
MCC_VEC_INLINE mcc_u16x4 mcc_to_f16_f32x4(mcc_f32x4 v)
{
    return (mcc_u16x4)vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v));
}
#else
MCC_VEC_F16_BITS(4);
#endif
MCC_VEC_NARROW(4, f16);
MCC_VEC_NARROW(4, bf16);
MCC_VEC_INTEGERS(4);
MCC_VEC_LONGS(4);

#if MCC_VEC_LANES >= 8
MCC_VEC_NARROW_TYPES(8);
#if defined(__F16C__)
MCC_VEC_INLINE mcc_f32x8 mcc_of_f16_f32x8(mcc_u16x8 h) { return (mcc_f32x8)_mm256_cvtph_ps((__m128i)h); }
MCC_VEC_INLINE mcc_u16x8 mcc_to_f16_f32x8(mcc_f32x8 v)
{
    return (mcc_u16x8)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
}
#else
MCC_VEC_F16_BITS(8);
#endif
MCC_VEC_NARROW(8, f16);
MCC_VEC_NARROW(8, bf16);
MCC_VEC_INTEGERS(8);
MCC_VEC_LONGS(8);
#endif

#if MCC_VEC_LANES >= 16
MCC_VEC_NARROW_TYPES(16);
#if defined(__AVX512F__) /* with a mask, all of it set: for C++, gcc's own headers warn of the plain forms */
MCC_VEC_INLINE mcc_f32x16 mcc_of_f16_f32x16(mcc_u16x16 h)
{
    return (mcc_f32x16)_mm512_maskz_cvtph_ps((__mmask16)-1, (__m256i)h);
}
MCC_VEC_INLINE mcc_u16x16 mcc_to_f16_f32x16(mcc_f32x16 v)
{
    return (mcc_u16x16)_mm512_maskz_cvtps_ph((__mmask16)-1, (__m512)v, _MM_FROUND_TO_NEAREST_INT);
}
#else
MCC_VEC_F16_BITS(16);
#endif
MCC_VEC_NARROW(16, f16);
MCC_VEC_NARROW(16, bf16);
MCC_VEC_INTEGERS(16);
MCC_VEC_LONGS(16);
#endif

#endif /* MCC_VEC_NARROW_H */
