/* shown.c: the network "shown", step by step. Arena 1008 bytes, 1620 multiply-accumulates. */
#include "shown.h"

#include "shown_kernels.h"
#include "mcc_init.h"

/* A T at an offset into the arena, and into the weights. */
#define A(T, offset) ((T *)(void *)(m->arena + (offset)))
#define W(T, offset) ((const T *)(const void *)(m->weights + (offset)))

/* Where buffers begin. */
enum shown_at {
    SHOWN_AT_FLAT = 0, /* 432 bytes: flat */
    SHOWN_AT_IN_PUT = 0, /* 288 bytes: in/put:0 */
    SHOWN_AT_JOINED = 432, /* 576 bytes: joined/last */
    SHOWN_AT_LEFT = 432, /* 288 bytes: left/last */
    SHOWN_AT_OUT_PUT = 432, /* 144 bytes: out.put */
    SHOWN_AT_Z = 576, /* 12 bytes: z */
    SHOWN_AT_RIGHT = 720 /* 288 bytes: right */
};

#define READY 0x4194A934u

mcc_status shown_init(shown_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes)
{
    /* Ties this code to its weights: another model's blob is refused, one trained anew is not. */
    static const uint8_t identity[16] = {0x41, 0x94, 0xA9, 0x34, 0x1F, 0x37, 0xB9, 0xE6, 0x52, 0xB7, 0x29, 0x57, 0xD2,
        0xC9, 0xF1, 0x71};
    mcc_status status;
    if (m == NULL) return MCC_ERR_NULL;
    m->ready = 0u;
    status = mcc_check_arena(arena, arena_bytes, 1008u + 2u * MCC_CANARY_BYTES, SHOWN_ARENA_ALIGN);
    if (status != MCC_OK) return status;
    status = mcc_blob_open(weights, weights_bytes, identity, 1600u, 16u, &m->weights);
    if (status != MCC_OK) return status;
    m->arena = mcc_tensors(arena);
    m->ready = READY;
    return MCC_OK;
}

float *shown_input_in_put_0(shown_model *m)
{
    return A(float, SHOWN_AT_IN_PUT);
}

const float *shown_output_out_put(const shown_model *m)
{
    return A(float, SHOWN_AT_OUT_PUT);
}

const float *shown_output_z(const shown_model *m)
{
    return A(float, SHOWN_AT_Z);
}

mcc_status shown_run(shown_model *m)
{
    if (m == NULL) return MCC_ERR_NULL;
    if (m->ready != READY) return MCC_ERR_NOT_INIT;
    mcc_set_canaries(m->arena, 1008u);

    /* right/Sigmoid: map f32[1,2,6,6] -> f32[1,2,6,6]; arena 0..1008 */
    shown_map_div_add(A(float, SHOWN_AT_RIGHT), A(const float, SHOWN_AT_IN_PUT));

    /* c/Conv + left/Relu: conv f32[1,2,6,6], f32[2,2,3,3], f32[1,2,1,1] -> f32[1,2,6,6]; arena 0..720 */
    shown_conv_3x3s1_6x6x2_2(A(float, SHOWN_AT_LEFT), A(const float, SHOWN_AT_IN_PUT), W(float, 0), W(float, 192));

    /* out.put/Mul: map f32[1,6,6,1], f32[1,6,6,1] -> f32[1,6,6,1]; arena 432..576 */
    shown_map_mul(A(float, SHOWN_AT_OUT_PUT), A(const float, SHOWN_AT_JOINED), A(const float, SHOWN_AT_JOINED));

    /* flat/Flatten: map f32[1,6,6,3] -> f32[1,6,6,3]; arena 0..1008 */
    shown_copy(A(float, SHOWN_AT_FLAT), A(const float, SHOWN_AT_JOINED + 144));

    /* m/MatMul + z/Tanh: gemm f32[1,108], f32[108,3] -> f32[1,3]; arena 0..588 */
    shown_gemm_1x108x3(A(float, SHOWN_AT_Z), A(const float, SHOWN_AT_FLAT), W(float, 256));

    return mcc_check_canaries(m->arena, 1008u);
}
