/* conv.c: the network "conv", step by step. Arena 1152 bytes, 7776 multiply-accumulates. */
#include "conv.h"

#include "conv_kernels.h"
#include "mcc_init.h"

/* A T at an offset into the arena, and into the weights. */
#define A(T, offset) ((T *)(void *)(m->arena + (offset)))
#define W(T, offset) ((const T *)(const void *)(m->weights + (offset)))

#define READY 0x46C8071Au

mcc_status conv_init(conv_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes)
{
    /* Ties this code to its weights: another model's blob is refused, one trained anew is not. */
    static const uint8_t identity[16] = {
        0x46, 0xC8, 0x07, 0x1A, 0xC9, 0x19, 0x5E, 0xD2, 0x2B, 0x65, 0x87, 0x24, 0xB2, 0x97, 0x02, 0x0C
    };
    mcc_status status;
    if (m == NULL) return MCC_ERR_NULL;
    m->ready = 0u;
    status = mcc_check_arena(arena, arena_bytes, 1152u + 2u * MCC_CANARY_BYTES, CONV_ARENA_ALIGN);
    if (status != MCC_OK) return status;
    status = mcc_blob_open(weights, weights_bytes, identity, 1024u, 16u, &m->weights);
    if (status != MCC_OK) return status;
    m->arena = mcc_tensors(arena);
    m->ready = READY;
    return MCC_OK;
}

float *conv_input_x(conv_model *m)
{
    return A(float, 0);
}

const float *conv_output_y(const conv_model *m)
{
    return A(float, 0);
}

mcc_status conv_run(conv_model *m)
{
    if (m == NULL) return MCC_ERR_NULL;
    if (m->ready != READY) return MCC_ERR_NOT_INIT;
    mcc_set_canaries(m->arena, 1152u);

    /* c1/Conv + r1/Relu: conv f32[1,2,6,6], f32[4,2,3,3], f32[1,4,6,6] -> f32[1,4,6,6]; arena 0..1152 */
    conv_conv_3x3s1_6x6x2_4(A(float, 576), A(const float, 0), W(float, 0), W(float, 320));

    /* c2/Conv + sum/Add + y/Relu: conv f32[1,4,6,6], f32[4,4,3,3], f32[1,4,6,6] -> f32[1,4,6,6]; arena 0..1152 */
    conv_conv_3x3s1_6x6x4_4(A(float, 0), A(const float, 576), W(float, 384), W(float, 960));

    return mcc_check_canaries(m->arena, 1152u);
}
