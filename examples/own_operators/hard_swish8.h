/* The operator HardSwish8 of domain com.acme: x * min(max(x + 3, 0), top) / top. */
#ifndef HARD_SWISH8_H
#define HARD_SWISH8_H

#include "mcc_external.h"

static void hard_swish8(const mcc_external *call)
{
    const mcc_operand *x = &call->operands[0];
    const float *from = (const float *)x->data;
    float *to = (float *)call->results[0].data;
    const float top = mcc_external_attribute(call, "top")->floats[0];
    mcc_index count = 1;
    for (int axis = 0; axis < x->rank; ++axis) { count *= x->shape[axis]; }
    for (mcc_index i = 0; i < count; ++i) {
        const float raised = from[i] + 3.0f;
        const float gate = raised < 0.0f ? 0.0f : raised > top ? top : raised;
        to[i] = from[i] * gate / top;
    }
}

#endif
