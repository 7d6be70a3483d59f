/* mcc_external.h - what a function of your own gets, which computes an operator (--external NAME=function):
 *
 *     static void blur(const mcc_external *call)
 *     {
 *         const float *x = (const float *)call->operands[0].data;
 *         float *y = (float *)call->results[0].data;
 *         const mcc_index width = call->operands[0].shape[3];
 *         ...
 *     }
 *
 * Element (i, j, ...) of a tensor lies i * strides[0] + j * strides[1] + ... elements behind `data`. Unless `strided`
 * was asked for, tensors are row-major without gaps. Nothing but the results and the workspace may be written, all of
 * the results must be, and nothing of it lasts beyond the call. Results do not meet operands in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_EXTERNAL_H
#define MCC_EXTERNAL_H

#include <string.h>

#include "mcc.h"

/* MCC_EXTERN: declares a function of C, also where this is compiled as C++. */
#ifdef __cplusplus
#define MCC_EXTERN extern "C"
#else
#define MCC_EXTERN extern
#endif

typedef struct mcc_operand {
    const void *data;         /* the first element; NULL where the operand is absent */
    const mcc_index *shape;   /* elements along each axis */
    const mcc_index *strides; /* in elements */
    int rank;
    int type; /* as ONNX counts element types: 1 float, 2 uint8, 3 int8, 6 int32, 7 int64 ... */
} mcc_operand;

typedef struct mcc_result {
    void *data;
    const mcc_index *shape;
    const mcc_index *strides;
    int rank;
    int type;
} mcc_result;

/* One of ints, floats and text is there; the others are NULL. Attributes come in the order of their names. */
typedef struct mcc_attribute {
    const char *name;
    const int64_t *ints;
    const float *floats;
    const char *text;
    int count; /* of the numbers */
} mcc_attribute;

typedef struct mcc_external {
    const mcc_result *results;
    const mcc_operand *operands;
    const mcc_attribute *attributes;
    void *workspace; /* NULL where none was asked for */
    size_t workspace_bytes;
    int result_count;
    int operand_count;
    int attribute_count;
} mcc_external;

/* The attribute of that name; NULL where the node does not have it. */
MCC_INLINE const mcc_attribute *mcc_external_attribute(const mcc_external *call, const char *name)
{
    for (int i = 0; i < call->attribute_count; ++i) {
        if (strcmp(call->attributes[i].name, name) == 0) { return &call->attributes[i]; }
    }
    return NULL;
}

/* Bytes of an element, by its type. */
MCC_INLINE size_t mcc_external_bytes(int type)
{
    switch (type) {
    case 1: case 6: case 12: return 4; /* float, int32, uint32 */
    case 4: case 5: case 10: case 16: return 2; /* uint16, int16, float16, bfloat16 */
    case 7: case 11: case 13: return 8; /* int64, double, uint64 */
    default: return 1;
    }
}

/* A function that copies operand 0 to result 0, whatever their strides are. */
MCC_INLINE void mcc_external_copy(const mcc_external *call)
{
    const mcc_operand *x = &call->operands[0];
    const mcc_result *y = &call->results[0];
    const size_t bytes = mcc_external_bytes(y->type);
    mcc_index count = 1;
    for (int axis = 0; axis < y->rank; ++axis) { count *= y->shape[axis]; }
    for (mcc_index i = 0; i < count; ++i) {
        mcc_index rest = i, from = 0, to = 0;
        for (int axis = y->rank - 1; axis >= 0; --axis) {
            from += rest % y->shape[axis] * x->strides[axis];
            to += rest % y->shape[axis] * y->strides[axis];
            rest /= y->shape[axis];
        }
        (void)memcpy((uint8_t *)y->data + (size_t)to * bytes, (const uint8_t *)x->data + (size_t)from * bytes, bytes);
    }
}

#endif
