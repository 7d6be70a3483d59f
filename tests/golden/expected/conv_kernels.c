/* conv_kernels.c: the computations of the model, each distinct one once.
 * Shapes, strides and attributes are literals; every number that comes from the weights is read through a pointer. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__ARM_FEATURE_MVE)
#pragma GCC optimize("no-tree-loop-vectorize") /* gcc's vectors of whole loops need up to a kilobyte of stack here */
#endif
#include "conv_kernels.h"

#include "mcc_math.h"

/* conv/any_strided_direct__c
 * y f32[1,4,6,6], x f32[1,2,6,6], w f32[4,2,3,3], e0 f32[1,4,6,6]
 * for c1/Conv + r1/Relu */
void conv_conv_3x3s1_6x6x2_4(float *MCC_RESTRICT y, const float *MCC_RESTRICT x, const float *MCC_RESTRICT w,
    const float *MCC_RESTRICT e0)
{
    for (mcc_index o = 0; o < 4; o += 4) {
        for (mcc_index p0 = 0; p0 < 6; ++p0) {
            const mcc_index at0 = p0 - 1;
            const mcc_index first0 = at0 < 0 ? -at0 : 0;
            const mcc_index end0 = at0 + 2 < 6 ? 3 : 6 - at0;
            for (mcc_index p1 = 0; p1 < 6;) {
                const mcc_index at1 = p1 - 1;
                if (p1 >= 1 && p1 <= 1) {
                    const mcc_index x_at = at0 * 6 + at1;
                    const mcc_index w_at = o;
                    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f, a4 = 0.0f, a5 = 0.0f, a6 = 0.0f, a7 = 0.0f,
                        a8 = 0.0f, a9 = 0.0f, a10 = 0.0f, a11 = 0.0f, a12 = 0.0f, a13 = 0.0f, a14 = 0.0f, a15 = 0.0f;
                    for (mcc_index c = 0; c < 2; ++c) {
                        for (mcc_index k0 = first0; k0 < end0; ++k0) {
                            for (mcc_index k1 = 0; k1 < 3; ++k1) {
                                const mcc_index x_in = x_at + c * 36 + k0 * 6 + k1;
                                const mcc_index w_in = w_at + c * 4 + k0 * 24 + k1 * 8;
                                const float x0 = x[x_in];
                                const float x1 = x[x_in + 1];
                                const float x2 = x[x_in + 2];
                                const float x3 = x[x_in + 3];
                                const float w0 = w[w_in];
                                const float w1 = w[w_in + 1];
                                const float w2 = w[w_in + 2];
                                const float w3 = w[w_in + 3];
                                a0 += x0 * w0;
                                a4 += x1 * w0;
                                a8 += x2 * w0;
                                a12 += x3 * w0;
                                a1 += x0 * w1;
                                a5 += x1 * w1;
                                a9 += x2 * w1;
                                a13 += x3 * w1;
                                a2 += x0 * w2;
                                a6 += x1 * w2;
                                a10 += x2 * w2;
                                a14 += x3 * w2;
                                a3 += x0 * w3;
                                a7 += x1 * w3;
                                a11 += x2 * w3;
                                a15 += x3 * w3;
                            }
                        }
                    }
                    const float totals[16] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};
                    for (mcc_index lane = 0; lane < 4; ++lane) {
                        for (mcc_index point = 0; point < 4; ++point) {
                            const float total = totals[point * 4 + lane];
                            y[o + p0 * 24 + p1 * 4 + lane + point * 4] = mcc_max_f32(total + e0[o + lane], 0.0f);
                        }
                    }
                    p1 += 4;
                } else {
                    const mcc_index first1 = at1 < 0 ? -at1 : 0;
                    const mcc_index end1 = at1 + 2 < 6 ? 3 : 6 - at1;
                    const mcc_index x_at = at0 * 6 + at1;
                    const mcc_index w_at = o;
                    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
                    for (mcc_index c = 0; c < 2; ++c) {
                        for (mcc_index k0 = first0; k0 < end0; ++k0) {
                            for (mcc_index k1 = first1; k1 < end1; ++k1) {
                                const mcc_index x_in = x_at + c * 36 + k0 * 6 + k1;
                                const mcc_index w_in = w_at + c * 4 + k0 * 24 + k1 * 8;
                                const float x0 = x[x_in];
                                const float w0 = w[w_in];
                                const float w1 = w[w_in + 1];
                                const float w2 = w[w_in + 2];
                                const float w3 = w[w_in + 3];
                                a0 += x0 * w0;
                                a1 += x0 * w1;
                                a2 += x0 * w2;
                                a3 += x0 * w3;
                            }
                        }
                    }
                    const float totals[4] = {a0, a1, a2, a3};
                    for (mcc_index lane = 0; lane < 4; ++lane) {
                        const float total = totals[lane];
                        y[o + p0 * 24 + p1 * 4 + lane] = mcc_max_f32(total + e0[o + lane], 0.0f);
                    }
                    p1 += 1;
                }
            }
        }
    }
}

/* conv/any_strided_direct__c
 * y f32[1,4,6,6], x f32[1,4,6,6], w f32[4,4,3,3], e0 f32[1,4,6,6]
 * for c2/Conv + sum/Add + y/Relu */
void conv_conv_3x3s1_6x6x4_4(float *MCC_RESTRICT y, const float *MCC_RESTRICT x, const float *MCC_RESTRICT w,
    const float *MCC_RESTRICT e0)
{
    for (mcc_index o = 0; o < 4; o += 4) {
        for (mcc_index p0 = 0; p0 < 6; ++p0) {
            const mcc_index at0 = p0 - 1;
            const mcc_index first0 = at0 < 0 ? -at0 : 0;
            const mcc_index end0 = at0 + 2 < 6 ? 3 : 6 - at0;
            for (mcc_index p1 = 0; p1 < 6;) {
                const mcc_index at1 = p1 - 1;
                if (p1 >= 1 && p1 <= 1) {
                    const mcc_index x_at = at0 * 24 + at1 * 4;
                    const mcc_index w_at = o;
                    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f, a4 = 0.0f, a5 = 0.0f, a6 = 0.0f, a7 = 0.0f,
                        a8 = 0.0f, a9 = 0.0f, a10 = 0.0f, a11 = 0.0f, a12 = 0.0f, a13 = 0.0f, a14 = 0.0f, a15 = 0.0f;
                    for (mcc_index k0 = first0; k0 < end0; ++k0) {
                        for (mcc_index k1 = 0; k1 < 3; ++k1) {
                            for (mcc_index c = 0; c < 4; ++c) {
                                const mcc_index x_in = x_at + c + k0 * 24 + k1 * 4;
                                const mcc_index w_in = w_at + c * 4 + k0 * 48 + k1 * 16;
                                const float x0 = x[x_in];
                                const float x1 = x[x_in + 4];
                                const float x2 = x[x_in + 8];
                                const float x3 = x[x_in + 12];
                                const float w0 = w[w_in];
                                const float w1 = w[w_in + 1];
                                const float w2 = w[w_in + 2];
                                const float w3 = w[w_in + 3];
                                a0 += x0 * w0;
                                a4 += x1 * w0;
                                a8 += x2 * w0;
                                a12 += x3 * w0;
                                a1 += x0 * w1;
                                a5 += x1 * w1;
                                a9 += x2 * w1;
                                a13 += x3 * w1;
                                a2 += x0 * w2;
                                a6 += x1 * w2;
                                a10 += x2 * w2;
                                a14 += x3 * w2;
                                a3 += x0 * w3;
                                a7 += x1 * w3;
                                a11 += x2 * w3;
                                a15 += x3 * w3;
                            }
                        }
                    }
                    const float totals[16] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};
                    for (mcc_index lane = 0; lane < 4; ++lane) {
                        for (mcc_index point = 0; point < 4; ++point) {
                            const float total = totals[point * 4 + lane];
                            y[o * 36 + p0 * 6 + p1 + lane * 36 + point] = mcc_max_f32(total + e0[o + lane], 0.0f);
                        }
                    }
                    p1 += 4;
                } else {
                    const mcc_index first1 = at1 < 0 ? -at1 : 0;
                    const mcc_index end1 = at1 + 2 < 6 ? 3 : 6 - at1;
                    const mcc_index x_at = at0 * 24 + at1 * 4;
                    const mcc_index w_at = o;
                    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
                    for (mcc_index k0 = first0; k0 < end0; ++k0) {
                        for (mcc_index k1 = first1; k1 < end1; ++k1) {
                            for (mcc_index c = 0; c < 4; ++c) {
                                const mcc_index x_in = x_at + c + k0 * 24 + k1 * 4;
                                const mcc_index w_in = w_at + c * 4 + k0 * 48 + k1 * 16;
                                const float x0 = x[x_in];
                                const float w0 = w[w_in];
                                const float w1 = w[w_in + 1];
                                const float w2 = w[w_in + 2];
                                const float w3 = w[w_in + 3];
                                a0 += x0 * w0;
                                a1 += x0 * w1;
                                a2 += x0 * w2;
                                a3 += x0 * w3;
                            }
                        }
                    }
                    const float totals[4] = {a0, a1, a2, a3};
                    for (mcc_index lane = 0; lane < 4; ++lane) {
                        const float total = totals[lane];
                        y[o * 36 + p0 * 6 + p1 + lane * 36] = mcc_max_f32(total + e0[o + lane], 0.0f);
                    }
                    p1 += 1;
                }
            }
        }
    }
}
