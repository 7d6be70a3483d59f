/* branches_kernels.c: the computations of the model, each distinct one once.
 * Shapes, strides and attributes are literals; every number that comes from the weights is read through a pointer. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__ARM_FEATURE_MVE)
#pragma GCC optimize("no-tree-loop-vectorize") /* gcc's vectors of whole loops need up to a kilobyte of stack here */
#endif
#include "branches_kernels.h"

#include <math.h>

/* map/any_strided_loops__c
 * y f32[1,3,4,5], e0 f32[1,3,4,5]
 * for right/Sigmoid */
void branches_map_div_f32(float *MCC_RESTRICT y, const float *MCC_RESTRICT e0)
{
    for (mcc_index i0 = 0; i0 < 20; ++i0) {
        for (mcc_index i1 = 0; i1 < 3; ++i1) {
            y[i0 * 9 + i1] = 1.0f / (1.0f + expf(-e0[i0 + i1 * 20]));
        }
    }
}

/* conv/any_strided_direct__c
 * y f32[1,3,4,5], x f32[1,3,4,5], w f32[3,3,1,1]
 * for left/Conv */
void branches_conv_1x1s1_4x5x3_3(float *MCC_RESTRICT y, const float *MCC_RESTRICT x, const float *MCC_RESTRICT w)
{
    for (mcc_index o = 0; o < 3; o += 3) {
        for (mcc_index p0 = 0; p0 < 20; p0 += 5) {
            const mcc_index at0 = p0;
            const mcc_index x_at = at0;
            const mcc_index w_at = o;
            float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f, a4 = 0.0f, a5 = 0.0f, a6 = 0.0f, a7 = 0.0f, a8 = 0.0f,
                a9 = 0.0f, a10 = 0.0f, a11 = 0.0f, a12 = 0.0f, a13 = 0.0f, a14 = 0.0f;
            for (mcc_index c = 0; c < 3; ++c) {
                const mcc_index x_in = x_at + c * 20;
                const mcc_index w_in = w_at + c * 3;
                const float x0 = x[x_in];
                const float x1 = x[x_in + 1];
                const float x2 = x[x_in + 2];
                const float x3 = x[x_in + 3];
                const float x4 = x[x_in + 4];
                const float w0 = w[w_in];
                const float w1 = w[w_in + 1];
                const float w2 = w[w_in + 2];
                a0 += x0 * w0;
                a3 += x1 * w0;
                a6 += x2 * w0;
                a9 += x3 * w0;
                a12 += x4 * w0;
                a1 += x0 * w1;
                a4 += x1 * w1;
                a7 += x2 * w1;
                a10 += x3 * w1;
                a13 += x4 * w1;
                a2 += x0 * w2;
                a5 += x1 * w2;
                a8 += x2 * w2;
                a11 += x3 * w2;
                a14 += x4 * w2;
            }
            const float totals[15] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14};
            for (mcc_index lane = 0; lane < 3; ++lane) {
                for (mcc_index point = 0; point < 5; ++point) {
                    const float total = totals[point * 3 + lane];
                    y[o + p0 * 9 + lane + point * 9] = total;
                }
            }
        }
    }
}

/* concat/any_strided__c
 * y f32[1,4,5,3], e0 f32[1,4,5,3]
 * for joined/Concat */
void branches_concat_1(float *MCC_RESTRICT y, const float *MCC_RESTRICT e0)
{
    for (mcc_index i0 = 0; i0 < 20; ++i0) {
        for (mcc_index i1 = 0; i1 < 3; ++i1) {
            y[i0 * 9 + i1] = e0[i0 + i1 * 20];
        }
    }
}

/* map/any_strided_loops__c
 * y f32[1,4,5,4], e0 f32[1,4,5,4], e1 f32[1,4,5,4]
 * for y/Mul */
void branches_map_mul(float *MCC_RESTRICT y, const float *MCC_RESTRICT e0, const float *MCC_RESTRICT e1)
{
    for (mcc_index i0 = 0; i0 < 20; ++i0) {
        for (mcc_index i1 = 0; i1 < 4; ++i1) {
            y[i0 * 4 + i1] = e0[i0 * 9 + i1] * e1[i0 * 9 + i1];
        }
    }
}

/* map/any_strided_loops__c
 * y f32[1,4,5,5], e0 f32[1,4,5,5], e1 f32[1,4,5,5]
 * for z/Add */
void branches_map_add(float *MCC_RESTRICT y, const float *MCC_RESTRICT e0, const float *MCC_RESTRICT e1)
{
    for (mcc_index i0 = 0; i0 < 20; ++i0) {
        for (mcc_index i1 = 0; i1 < 5; ++i1) {
            y[i0 * 5 + i1] = e0[i0 * 9 + i1] + e1[i1];
        }
    }
}
