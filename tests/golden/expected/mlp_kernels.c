/* mlp_kernels.c: the computations of the model, each distinct one once.
 * Shapes, strides and attributes are literals; every number that comes from the weights is read through a pointer. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__ARM_FEATURE_MVE)
#pragma GCC optimize("no-tree-loop-vectorize") /* gcc's vectors of whole loops need up to a kilobyte of stack here */
#endif
#include "mlp_kernels.h"

#include <math.h>

/* gemm/any_strided__c
 * y f32[2,16], a f32[2,8], b f32[8,16], e0 f32[2,16]
 * for m1/MatMul + a1/Add + t1/Tanh */
void mlp_gemm_2x8x16(float *MCC_RESTRICT y, const float *MCC_RESTRICT a, const float *MCC_RESTRICT b,
    const float *MCC_RESTRICT e0)
{
    for (mcc_index j = 0; j < 16; j += 8) {
        const mcc_index i = 0;
        float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f, a4 = 0.0f, a5 = 0.0f, a6 = 0.0f, a7 = 0.0f, a8 = 0.0f,
            a9 = 0.0f, a10 = 0.0f, a11 = 0.0f, a12 = 0.0f, a13 = 0.0f, a14 = 0.0f, a15 = 0.0f;
        for (mcc_index k = 0; k < 8; ++k) {
            const mcc_index a_in = i * 8 + k;
            const mcc_index b_in = j + k * 16;
            const float a_0 = a[a_in];
            const float a_1 = a[a_in + 8];
            const float b_0 = b[b_in];
            const float b_1 = b[b_in + 1];
            const float b_2 = b[b_in + 2];
            const float b_3 = b[b_in + 3];
            const float b_4 = b[b_in + 4];
            const float b_5 = b[b_in + 5];
            const float b_6 = b[b_in + 6];
            const float b_7 = b[b_in + 7];
            a0 += a_0 * b_0;
            a8 += a_1 * b_0;
            a1 += a_0 * b_1;
            a9 += a_1 * b_1;
            a2 += a_0 * b_2;
            a10 += a_1 * b_2;
            a3 += a_0 * b_3;
            a11 += a_1 * b_3;
            a4 += a_0 * b_4;
            a12 += a_1 * b_4;
            a5 += a_0 * b_5;
            a13 += a_1 * b_5;
            a6 += a_0 * b_6;
            a14 += a_1 * b_6;
            a7 += a_0 * b_7;
            a15 += a_1 * b_7;
        }
        const float totals[16] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};
        for (mcc_index point = 0; point < 2; ++point) {
            for (mcc_index lane = 0; lane < 8; ++lane) {
                const float total = totals[point * 8 + lane];
                y[i * 16 + point * 16 + j + lane] = tanhf(total + e0[j + lane]);
            }
        }
    }
}

/* gemm/any_strided__c
 * y f32[2,3], a f32[2,16], b f32[16,3]
 * for out.put/MatMul */
void mlp_gemm_2x16x3(float *MCC_RESTRICT y, const float *MCC_RESTRICT a, const float *MCC_RESTRICT b)
{
    const mcc_index j = 0;
    const mcc_index i = 0;
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f, a4 = 0.0f, a5 = 0.0f;
    for (mcc_index k = 0; k < 16; ++k) {
        const mcc_index a_in = i * 16 + k;
        const mcc_index b_in = j + k * 3;
        const float a_0 = a[a_in];
        const float a_1 = a[a_in + 16];
        const float b_0 = b[b_in];
        const float b_1 = b[b_in + 1];
        const float b_2 = b[b_in + 2];
        a0 += a_0 * b_0;
        a3 += a_1 * b_0;
        a1 += a_0 * b_1;
        a4 += a_1 * b_1;
        a2 += a_0 * b_2;
        a5 += a_1 * b_2;
    }
    const float totals[6] = {a0, a1, a2, a3, a4, a5};
    for (mcc_index point = 0; point < 2; ++point) {
        for (mcc_index lane = 0; lane < 3; ++lane) {
            const float total = totals[point * 3 + lane];
            y[i * 3 + point * 3 + j + lane] = total;
        }
    }
}
