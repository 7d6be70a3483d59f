#include "adder.h"

#include "adder_kernels.h"
#include "mcc_init.h"

static const uint8_t adder_identity[16] = "adder, by hand";

mcc_status adder_init(adder_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes)
{
    const uint8_t *data;
    mcc_status status;
    if (m == NULL) return MCC_ERR_NULL;
    m->arena = NULL;
    status = mcc_check_arena(arena, arena_bytes, ADDER_ARENA_BYTES, ADDER_ARENA_ALIGN);
    if (status != MCC_OK) return status;
    status = mcc_blob_open(weights, weights_bytes, adder_identity, 16u, 64u, &data);
    if (status != MCC_OK) return status;
    m->arena = (uint8_t *)arena;
    m->w = (const float *)(const void *)data;
    m->runs = 0;
    return MCC_OK;
}

float *adder_input_a(adder_model *m) { return (float *)(void *)m->arena; }
float *adder_input_b_0(adder_model *m) { return (float *)(void *)(m->arena + 16); }
const float *adder_output_y(const adder_model *m) { return (const float *)(const void *)m->arena; }
const int64_t *adder_output_n(const adder_model *m) { return &m->runs; }

mcc_status adder_run(adder_model *m)
{
    if (m == NULL || m->arena == NULL) return MCC_ERR_NOT_INIT;
    adder_kernel(adder_input_a(m), adder_input_b_0(m), m->w);
    m->runs++;
#ifdef BREAK_ARENA
    m->arena[ADDER_ARENA_BYTES + 2u] = 1u;
#endif
#ifdef BREAK_WEIGHTS
    *(float *)(uintptr_t)m->w = 0.0f;
#endif
#ifdef FAIL_RUN
    return MCC_ERR_SIZE;
#else
    return MCC_OK;
#endif
}
