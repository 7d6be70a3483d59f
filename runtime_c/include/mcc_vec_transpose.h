/* mcc_vec_transpose.h - the part of mcc_vec.h that transposes square tiles of floats around in registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_TRANSPOSE_H
#define MCC_VEC_TRANSPOSE_H

#if !defined(MCC_VEC_H)
#error "this is a part of mcc_vec.h: include that"
#endif

MCC_VEC_INLINE void mcc_transpose_f32x4(mcc_f32x4 *v)
{
    const mcc_f32x4 a0 = MCC_VEC_CHOSEN(mcc_i32x4, v[0], v[1], 0, 4, 1, 5);
    const mcc_f32x4 a1 = MCC_VEC_CHOSEN(mcc_i32x4, v[0], v[1], 2, 6, 3, 7);
    const mcc_f32x4 a2 = MCC_VEC_CHOSEN(mcc_i32x4, v[2], v[3], 0, 4, 1, 5);
    const mcc_f32x4 a3 = MCC_VEC_CHOSEN(mcc_i32x4, v[2], v[3], 2, 6, 3, 7);
    v[0] = MCC_VEC_CHOSEN(mcc_i32x4, a0, a2, 0, 1, 4, 5);
    v[1] = MCC_VEC_CHOSEN(mcc_i32x4, a0, a2, 2, 3, 6, 7);
    v[2] = MCC_VEC_CHOSEN(mcc_i32x4, a1, a3, 0, 1, 4, 5);
    v[3] = MCC_VEC_CHOSEN(mcc_i32x4, a1, a3, 2, 3, 6, 7);
}

#if defined(__riscv_vector) /* groups of registers take longer to transpose than to store across */
#define MCC_VEC_STORE_TRANSPOSED(N)                                                                                    \
    MCC_VEC_INLINE void mcc_store_transposed_f32x##N(float *p, ptrdiff_t step, int n, const mcc_f32x##N *v, int each)  \
    {                                                                                                                  \
        for (int i = 0; i < N; ++i) mcc_store_apart_f32x##N(p + i, step, n, v[i * each]);                              \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_transposed
#else
#define MCC_VEC_STORE_TRANSPOSED(N)                                                                                    \
    MCC_VEC_INLINE void mcc_store_transposed_f32x##N(float *p, ptrdiff_t step, int n, const mcc_f32x##N *v, int each)  \
    {                                                                                                                  \
        mcc_f32x##N tile[N];                                                                                           \
        _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i) tile[i] = v[i * each];                                     \
        mcc_transpose_f32x##N(tile);                                                                                   \
        _Pragma("GCC unroll 8") for (int i = 0; i < n; ++i) mcc_store_f32x##N(p + i * step, tile[i]);                  \
    }                                                                                                                  \
    typedef float mcc_f32x##N##_transposed
#endif
MCC_VEC_STORE_TRANSPOSED(4);
#if MCC_VEC_LANES >= 8
MCC_VEC_INLINE void mcc_transpose_f32x8(mcc_f32x8 *v)
{
    const mcc_f32x8 a0 = MCC_VEC_CHOSEN(mcc_i32x8, v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
    const mcc_f32x8 a1 = MCC_VEC_CHOSEN(mcc_i32x8, v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
    const mcc_f32x8 a2 = MCC_VEC_CHOSEN(mcc_i32x8, v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
    const mcc_f32x8 a3 = MCC_VEC_CHOSEN(mcc_i32x8, v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
    const mcc_f32x8 a4 = MCC_VEC_CHOSEN(mcc_i32x8, v[4], v[5], 0, 8, 1, 9, 4, 12, 5, 13);
    const mcc_f32x8 a5 = MCC_VEC_CHOSEN(mcc_i32x8, v[4], v[5], 2, 10, 3, 11, 6, 14, 7, 15);
    const mcc_f32x8 a6 = MCC_VEC_CHOSEN(mcc_i32x8, v[6], v[7], 0, 8, 1, 9, 4, 12, 5, 13);
    const mcc_f32x8 a7 = MCC_VEC_CHOSEN(mcc_i32x8, v[6], v[7], 2, 10, 3, 11, 6, 14, 7, 15);
    const mcc_f32x8 b0 = MCC_VEC_CHOSEN(mcc_i32x8, a0, a2, 0, 1, 8, 9, 4, 5, 12, 13);
    const mcc_f32x8 b1 = MCC_VEC_CHOSEN(mcc_i32x8, a0, a2, 2, 3, 10, 11, 6, 7, 14, 15);
    const mcc_f32x8 b2 = MCC_VEC_CHOSEN(mcc_i32x8, a1, a3, 0, 1, 8, 9, 4, 5, 12, 13);
    const mcc_f32x8 b3 = MCC_VEC_CHOSEN(mcc_i32x8, a1, a3, 2, 3, 10, 11, 6, 7, 14, 15);
    const mcc_f32x8 b4 = MCC_VEC_CHOSEN(mcc_i32x8, a4, a6, 0, 1, 8, 9, 4, 5, 12, 13);
    const mcc_f32x8 b5 = MCC_VEC_CHOSEN(mcc_i32x8, a4, a6, 2, 3, 10, 11, 6, 7, 14, 15);
    const mcc_f32x8 b6 = MCC_VEC_CHOSEN(mcc_i32x8, a5, a7, 0, 1, 8, 9, 4, 5, 12, 13);
    const mcc_f32x8 b7 = MCC_VEC_CHOSEN(mcc_i32x8, a5, a7, 2, 3, 10, 11, 6, 7, 14, 15);
    v[0] = MCC_VEC_CHOSEN(mcc_i32x8, b0, b4, 0, 1, 2, 3, 8, 9, 10, 11);
    v[1] = MCC_VEC_CHOSEN(mcc_i32x8, b1, b5, 0, 1, 2, 3, 8, 9, 10, 11);
    v[2] = MCC_VEC_CHOSEN(mcc_i32x8, b2, b6, 0, 1, 2, 3, 8, 9, 10, 11);
    v[3] = MCC_VEC_CHOSEN(mcc_i32x8, b3, b7, 0, 1, 2, 3, 8, 9, 10, 11);
    v[4] = MCC_VEC_CHOSEN(mcc_i32x8, b0, b4, 4, 5, 6, 7, 12, 13, 14, 15);
    v[5] = MCC_VEC_CHOSEN(mcc_i32x8, b1, b5, 4, 5, 6, 7, 12, 13, 14, 15);
    v[6] = MCC_VEC_CHOSEN(mcc_i32x8, b2, b6, 4, 5, 6, 7, 12, 13, 14, 15);
    v[7] = MCC_VEC_CHOSEN(mcc_i32x8, b3, b7, 4, 5, 6, 7, 12, 13, 14, 15);
}
MCC_VEC_STORE_TRANSPOSED(8);
#endif
#if MCC_VEC_LANES >= 16
MCC_VEC_INLINE void mcc_store_transposed_f32x16(float *p, ptrdiff_t step, int n, const mcc_f32x16 *v, int each)
{
    const float *const numbers = (const float *)(const void *)v;
    _Pragma("GCC unroll 2") for (int half = 0; half < n; half += 8) {
        mcc_f32x8 column[8];
        _Pragma("GCC unroll 8") for (int i = 0; i < 8; ++i) column[i] = mcc_load_f32x8(numbers + i * each * 16 + half);
        mcc_store_transposed_f32x8(p + half * step, step, n - half < 8 ? n - half : 8, column, 1);
    }
}
#endif

#endif
