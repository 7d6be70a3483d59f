/* An int8 convolution handed to a library that computes it: arm_convolve_wrapper_s8 of CMSIS-NN with
 * -DCMSIS_NN, else plain C with its types.
 *
 *     mccompile conv.onnx -o out --external 'x+x_scale+x_zero+w+w_scale+b+y_scale+y_zero..y=nn_conv_s8,...'
 *
 * names the tensors in the order in which they are operands below; with `nhwc` they lie as the library wants them. */
#ifndef NN_CONV_S8_H
#define NN_CONV_S8_H

#include <math.h>

#include "mcc_external.h"

#ifdef CMSIS_NN
#include "arm_nnfunctions.h"
#else /* the same types */
typedef enum { ARM_CMSIS_NN_SUCCESS = 0 } arm_cmsis_nn_status;
typedef struct { void *buf; int32_t size; } cmsis_nn_context;
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { int32_t min, max; } cmsis_nn_activation;
typedef struct {
    int32_t input_offset, output_offset;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_conv_params;
typedef struct { int32_t *multiplier, *shift; } cmsis_nn_per_channel_quant_params;

static int32_t nn_requantize(int32_t sum, int32_t multiplier, int32_t shift)
{
    const int right = shift > 0 ? 0 : (int)-shift;
    const int64_t product = (int64_t)sum * ((int64_t)1 << (shift > 0 ? shift : 0)) * multiplier;
    const int32_t high = (int32_t)((product + ((int64_t)1 << 30)) / ((int64_t)1 << 31));
    const int32_t half = right ? (int32_t)1 << (right - 1) : 0;
    return right ? (int32_t)(((int64_t)high + half - (high < 0 ? 1 : 0)) >> right) : high;
}

static arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context *context,
    const cmsis_nn_conv_params *p, const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *input,
    const int8_t *x, const cmsis_nn_dims *filter, const int8_t *w, const cmsis_nn_dims *bias, const int32_t *b,
    const cmsis_nn_dims *output, int8_t *y)
{
    (void)context;
    (void)bias;
    for (int32_t row = 0; row < output->h; ++row) {
        for (int32_t column = 0; column < output->w; ++column) {
            for (int32_t c = 0; c < output->c; ++c) {
                int32_t sum = b[c];
                for (int32_t i = 0; i < filter->h; ++i) {
                    for (int32_t j = 0; j < filter->w; ++j) {
                        const int32_t v = row * p->stride.h + i * p->dilation.h - p->padding.h;
                        const int32_t u = column * p->stride.w + j * p->dilation.w - p->padding.w;
                        if (v < 0 || v >= input->h || u < 0 || u >= input->w) { continue; }
                        for (int32_t d = 0; d < input->c; ++d) {
                            const int32_t weight = w[((c * filter->h + i) * filter->w + j) * input->c + d];
                            sum += weight * (x[(v * input->w + u) * input->c + d] + p->input_offset);
                        }
                    }
                }
                sum = nn_requantize(sum, quant->multiplier[c], quant->shift[c]) + p->output_offset;
                sum = sum < p->activation.min ? p->activation.min : sum > p->activation.max ? p->activation.max : sum;
                y[(row * output->w + column) * output->c + c] = (int8_t)sum;
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
#endif

static int32_t nn_size(mcc_index size) { return (int32_t)size; }

/* Workspace: 8 bytes for each channel of the result, then what the library asks for. */
static void nn_conv_s8(const mcc_external *call)
{
    const mcc_operand *in = call->operands;
    const mcc_index *xs = in[0].shape, *ws = in[3].shape, *ys = call->results[0].shape;
    const int64_t *pads = mcc_external_attribute(call, "pads")->ints;
    const int64_t *strides = mcc_external_attribute(call, "strides")->ints;
    const float x_scale = *(const float *)in[1].data, y_scale = *(const float *)in[6].data;
    int32_t *multiplier = (int32_t *)call->workspace;
    int32_t *shift = multiplier + ys[3];
    for (mcc_index c = 0; c < ys[3]; ++c) { /* the factor is multiplier * 2^(shift - 31) */
        const double factor = (double)x_scale * (double)((const float *)in[4].data)[c] / (double)y_scale;
        int exponent = 0;
        const double part = frexp(factor, &exponent) * 2147483648.0;
        multiplier[c] = part >= 2147483647.0 ? INT32_MAX : (int32_t)(part + 0.5);
        shift[c] = exponent;
    }
    const cmsis_nn_context context = {shift + ys[3], (int32_t)(call->workspace_bytes - (size_t)ys[3] * 8u)};
    const cmsis_nn_conv_params params = {-*(const int8_t *)in[2].data, *(const int8_t *)in[7].data,
        {(int32_t)strides[1], (int32_t)strides[0]}, {(int32_t)pads[1], (int32_t)pads[0]}, {1, 1}, {-128, 127}};
    const cmsis_nn_per_channel_quant_params quant = {multiplier, shift};
    const cmsis_nn_dims input = {1, nn_size(xs[1]), nn_size(xs[2]), nn_size(xs[3])};
    const cmsis_nn_dims filter = {nn_size(ws[0]), nn_size(ws[1]), nn_size(ws[2]), nn_size(ws[3])};
    const cmsis_nn_dims bias = {1, 1, 1, nn_size(ys[3])};
    const cmsis_nn_dims output = {1, nn_size(ys[1]), nn_size(ys[2]), nn_size(ys[3])};
    (void)arm_convolve_wrapper_s8(&context, &params, &quant, &input, (const int8_t *)in[0].data, &filter,
        (const int8_t *)in[3].data, &bias, (const int32_t *)in[5].data, &output, (int8_t *)call->results[0].data);
}

#endif
