/* mlp.c: the network "mlp", step by step. Arena 192 bytes, 352 multiply-accumulates. */
#include "mlp.h"

#include "mlp_kernels.h"
#include "mcc_init.h"

/* A T at an offset into the arena, and into the weights. */
#define A(T, offset) ((T *)(void *)(m->arena + (offset)))
#define W(T, offset) ((const T *)(const void *)(m->weights + (offset)))

#define READY 0x7FBA8635u

mcc_status mlp_init(mlp_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes)
{
    /* Ties this code to its weights: another model's blob is refused, one trained anew is not. */
    static const uint8_t identity[16] = {
        0x7F, 0xBA, 0x86, 0x35, 0x88, 0xE1, 0x18, 0xFF, 0x00, 0x12, 0x8D, 0x53, 0xEC, 0x8A, 0x76, 0xA0
    };
    mcc_status status;
    if (m == NULL) return MCC_ERR_NULL;
    m->ready = 0u;
    status = mcc_check_arena(arena, arena_bytes, 192u + 2u * MCC_CANARY_BYTES, MLP_ARENA_ALIGN);
    if (status != MCC_OK) return status;
    status = mcc_blob_open(weights, weights_bytes, identity, 768u, 16u, &m->weights);
    if (status != MCC_OK) return status;
    m->arena = mcc_tensors(arena);
    m->ready = READY;
    return MCC_OK;
}

float *mlp_input_in_put_0(mlp_model *m)
{
    return A(float, 0);
}

const float *mlp_output_out_put(const mlp_model *m)
{
    return A(float, 0);
}

mcc_status mlp_run(mlp_model *m)
{
    if (m == NULL) return MCC_ERR_NULL;
    if (m->ready != READY) return MCC_ERR_NOT_INIT;
    mcc_set_canaries(m->arena, 192u);

    /* m1/MatMul + a1/Add + t1/Tanh: gemm f32[2,8], f32[8,16], f32[2,16] -> f32[2,16]; arena 0..192 */
    mlp_gemm_2x8x16(A(float, 64), A(const float, 0), W(float, 0), W(float, 512));

    /* out.put/MatMul: gemm f32[2,16], f32[16,3] -> f32[2,3]; arena 0..192 */
    mlp_gemm_2x16x3(A(float, 0), A(const float, 64), W(float, 576));

    return mcc_check_canaries(m->arena, 192u);
}
