/* shown_kernels.c: the computations of the model, each distinct one once.
 * Shapes, strides and attributes are literals; every number that comes from the weights is read through a pointer. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__ARM_FEATURE_MVE)
/* There are eight vector registers: gcc's vectors of whole loops take up to a kilobyte of stack, and instructions that
 * it moves before registers are given out put vectors there, too. */
#pragma GCC optimize("no-tree-loop-vectorize", "no-schedule-insns")
#endif
#include "shown_kernels.h"

#include "mcc_libm.h"
#include "mcc_math.h"

/* map/any_strided_loops__c
 * y f32[1,2,6,6], e0 f32[1,2,6,6]
 * for right/Sigmoid */
void shown_map_div_add(float *MCC_RESTRICT y, const float *MCC_RESTRICT e0)
{
    for (mcc_index i0 = 0; i0 < 72; ++i0) {
        y[i0] = 1.0f / (1.0f + expf(-e0[i0]));
    }
}

/* Called by shown_conv_3x3s1_6x6x2_2. */
MCC_PART void shown_conv_3x3s1_6x6x2_2_tile1(float *MCC_RESTRICT y, const float *MCC_RESTRICT x,
    const float *MCC_RESTRICT w, const float *MCC_RESTRICT e0, mcc_index p0, mcc_index at0, mcc_index first0,
    mcc_index end0, mcc_index p1, mcc_index at1)
{
    const mcc_index x_at = at0 * 6 + at1;
    float acc[8] = {0};
    for (mcc_index c = 0; c < 2; ++c) {
        for (mcc_index k0 = first0; k0 < end0; ++k0) {
            for (mcc_index k1 = 0; k1 < 3; ++k1) {
                const mcc_index x_in = x_at + c * 36 + k0 * 6 + k1;
                const mcc_index w_in = c * 2 + k0 * 12 + k1 * 4;
                const float x0 = x[x_in];
                const float x1 = x[x_in + 1];
                const float x2 = x[x_in + 2];
                const float x3 = x[x_in + 3];
                const float w0 = w[w_in];
                const float w1 = w[w_in + 1];
                acc[0] += x0 * w0;
                acc[2] += x1 * w0;
                acc[4] += x2 * w0;
                acc[6] += x3 * w0;
                acc[1] += x0 * w1;
                acc[3] += x1 * w1;
                acc[5] += x2 * w1;
                acc[7] += x3 * w1;
            }
        }
    }
    const float totals[8] = {acc[0], acc[1], acc[2], acc[3], acc[4], acc[5], acc[6], acc[7]};
    for (mcc_index lane = 0; lane < 2; ++lane) {
        for (mcc_index point = 0; point < 4; ++point) {
            const float total = totals[point * 2 + lane];
            y[p0 * 6 + p1 + lane * 36 + point] = mcc_max_f32(total + e0[lane], 0.0f);
        }
    }
}

MCC_PART void shown_conv_3x3s1_6x6x2_2_tile2(float *MCC_RESTRICT y, const float *MCC_RESTRICT x,
    const float *MCC_RESTRICT w, const float *MCC_RESTRICT e0, mcc_index p0, mcc_index at0, mcc_index first0,
    mcc_index end0, mcc_index p1, mcc_index at1, mcc_index first1, mcc_index end1)
{
    const mcc_index x_at = at0 * 6 + at1;
    float acc[2] = {0};
    for (mcc_index c = 0; c < 2; ++c) {
        for (mcc_index k0 = first0; k0 < end0; ++k0) {
            for (mcc_index k1 = first1; k1 < end1; ++k1) {
                const mcc_index x_in = x_at + c * 36 + k0 * 6 + k1;
                const mcc_index w_in = c * 2 + k0 * 12 + k1 * 4;
                const float x0 = x[x_in];
                const float w0 = w[w_in];
                const float w1 = w[w_in + 1];
                acc[0] += x0 * w0;
                acc[1] += x0 * w1;
            }
        }
    }
    const float totals[2] = {acc[0], acc[1]};
    for (mcc_index lane = 0; lane < 2; ++lane) {
        const float total = totals[lane];
        y[p0 * 6 + p1 + lane * 36] = mcc_max_f32(total + e0[lane], 0.0f);
    }
}

/* conv/any_strided_direct__c
 * y f32[1,2,6,6], x f32[1,2,6,6], w f32[2,2,3,3], e0 f32[1,2,1,1]
 * for c/Conv + left/Relu */
void shown_conv_3x3s1_6x6x2_2(float *MCC_RESTRICT y, const float *MCC_RESTRICT x, const float *MCC_RESTRICT w,
    const float *MCC_RESTRICT e0)
{
    for (mcc_index p0 = 0; p0 < 6; ++p0) {
        const mcc_index at0 = p0 - 1;
        const mcc_index first0 = at0 < 0 ? -at0 : 0;
        const mcc_index end0 = at0 + 2 < 6 ? 3 : 6 - at0;
        for (mcc_index p1 = 0; p1 < 6;) {
            const mcc_index at1 = p1 - 1;
            if (p1 == 1) {
                shown_conv_3x3s1_6x6x2_2_tile1(y, x, w, e0, p0, at0, first0, end0, p1, at1);
                p1 += 4;
            } else {
                const mcc_index first1 = at1 < 0 ? -at1 : 0;
                const mcc_index end1 = at1 + 2 < 6 ? 3 : 6 - at1;
                shown_conv_3x3s1_6x6x2_2_tile2(y, x, w, e0, p0, at0, first0, end0, p1, at1, first1, end1);
                p1 += 1;
            }
        }
    }
}

/* map/any_strided_loops__c
 * y f32[1,6,6,1], e0 f32[1,6,6,1], e1 f32[1,6,6,1]
 * for out.put/Mul */
void shown_map_mul(float *y, const float *e0, const float *e1)
{
    for (mcc_index i0 = 0; i0 < 36; ++i0) {
        y[i0] = e0[i0] * e1[i0];
    }
}

/* map/any_strided_loops__c
 * y f32[1,6,6,3], e0 f32[1,6,6,3]
 * for flat/Flatten */
void shown_copy(float *MCC_RESTRICT y, const float *MCC_RESTRICT e0)
{
    for (mcc_index i0 = 0; i0 < 36; ++i0) {
        for (mcc_index i1 = 0; i1 < 3; ++i1) {
            y[i0 * 3 + i1] = e0[i0 + i1 * 36];
        }
    }
}

/* gemm/any_strided__c
 * y f32[1,3], a f32[1,108], b f32[108,3]
 * for m/MatMul + z/Tanh */
void shown_gemm_1x108x3(float *MCC_RESTRICT y, const float *MCC_RESTRICT a, const float *MCC_RESTRICT b)
{
    float acc[3] = {0};
    for (mcc_index k = 0; k < 108; ++k) {
        const mcc_index b_in = k * 3;
        const float a_0 = a[k];
        const float b_0 = b[b_in];
        const float b_1 = b[b_in + 1];
        const float b_2 = b[b_in + 2];
        acc[0] += a_0 * b_0;
        acc[1] += a_0 * b_1;
        acc[2] += a_0 * b_2;
    }
    const float totals[3] = {acc[0], acc[1], acc[2]};
    for (mcc_index lane = 0; lane < 3; ++lane) {
        const float total = totals[lane];
        y[lane] = tanhf(total);
    }
}
