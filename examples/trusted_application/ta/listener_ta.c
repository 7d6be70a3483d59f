/* listener_ta.c - a network inside of a trusted application: a session is an instance, its memory comes from the heap of
 * the application, the weights are part of its signed image. What the other world hands over is copied before it is
 * looked at, because it can change at any time. */
#include <tee_internal_api.h>

#include "kws.h"
#include "listener_ta.h"

typedef struct session {
    kws_model model;
    uint8_t arena[KWS_ARENA_BYTES + KWS_ARENA_ALIGN]; /* the heap knows nothing of its alignment */
} session;

TEE_Result TA_CreateEntryPoint(void) { return TEE_SUCCESS; }

void TA_DestroyEntryPoint(void) {}

TEE_Result TA_OpenSessionEntryPoint(uint32_t types, TEE_Param params[4], void **context)
{
    session *s;
    uint8_t *arena;
    (void)params;
    if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE))
        return TEE_ERROR_BAD_PARAMETERS;
    s = (session *)TEE_Malloc(sizeof *s, TEE_MALLOC_FILL_ZERO);
    if (s == NULL) return TEE_ERROR_OUT_OF_MEMORY;
    arena = s->arena + (KWS_ARENA_ALIGN - (uintptr_t)s->arena % KWS_ARENA_ALIGN) % KWS_ARENA_ALIGN;
    if (kws_init(&s->model, arena, KWS_ARENA_BYTES, kws_weights, kws_weights_bytes) != MCC_OK) {
        TEE_Free(s);
        return TEE_ERROR_GENERIC;
    }
    *context = s;
    return TEE_SUCCESS;
}

void TA_CloseSessionEntryPoint(void *context) { TEE_Free(context); }

static TEE_Result hear(session *s, uint32_t types, TEE_Param params[4])
{
    if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_INPUT, TEE_PARAM_TYPE_VALUE_OUTPUT, TEE_PARAM_TYPE_NONE,
                                 TEE_PARAM_TYPE_NONE))
        return TEE_ERROR_BAD_PARAMETERS;
    if (params[0].memref.size != KWS_INPUT_SOUND_BYTES) return TEE_ERROR_BAD_PARAMETERS;
    TEE_MemMove(kws_input_sound(&s->model), params[0].memref.buffer, KWS_INPUT_SOUND_BYTES);
    if (kws_run(&s->model) != MCC_OK) return TEE_ERROR_GENERIC;
    params[1].value.a = kws_output_scores(&s->model)[0];
    return TEE_SUCCESS;
}

TEE_Result TA_InvokeCommandEntryPoint(void *context, uint32_t command, uint32_t types, TEE_Param params[4])
{
    return command == TA_LISTENER_HEAR ? hear((session *)context, types, params) : TEE_ERROR_NOT_SUPPORTED;
}
