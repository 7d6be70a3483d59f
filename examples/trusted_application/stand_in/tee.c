/* tee.c - stands in for the operating system and for a client: makes the application's calls in their order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tee_internal_api.h>

#include "listener_ta.h"
#include "words.h"

void *TEE_Malloc(size_t size, uint32_t hint) { return hint == TEE_MALLOC_FILL_ZERO ? calloc(1u, size) : malloc(size); }

void TEE_Free(void *buffer) { free(buffer); }

void TEE_MemMove(void *to, const void *from, size_t size) { (void)memmove(to, from, size); }

static TEE_Result hear(void *session, const uint8_t *sound, size_t bytes, uint32_t *word)
{
    const uint32_t types = TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_INPUT, TEE_PARAM_TYPE_VALUE_OUTPUT, TEE_PARAM_TYPE_NONE,
                                           TEE_PARAM_TYPE_NONE);
    TEE_Param params[4];
    TEE_Result result;
    (void)memset(params, 0, sizeof params);
    params[0].memref.buffer = (void *)(uintptr_t)sound;
    params[0].memref.size = bytes;
    result = TA_InvokeCommandEntryPoint(session, TA_LISTENER_HEAR, types, params);
    *word = params[1].value.a;
    return result;
}

int main(void)
{
    TEE_Param none[4];
    void *session = NULL;
    uint32_t heard = 0u, word;
    int wrong = 0;
    (void)memset(none, 0, sizeof none);
    if (TA_CreateEntryPoint() != TEE_SUCCESS) return 1;
    if (TA_OpenSessionEntryPoint(0u, none, &session) != TEE_SUCCESS) return 1;
    for (word = 0; word < sizeof words / sizeof words[0]; word++) {
        const TEE_Result result = hear(session, words[word], sizeof words[word], &heard);
        printf("%s: %s\n", word_names[word], result == TEE_SUCCESS && heard == word ? "heard" : "not heard");
        wrong += result != TEE_SUCCESS || heard != word;
    }
    wrong += hear(session, words[0], sizeof words[0] - 1u, &heard) != TEE_ERROR_BAD_PARAMETERS;
    wrong += TA_InvokeCommandEntryPoint(session, TA_LISTENER_HEAR, 0u, none) != TEE_ERROR_BAD_PARAMETERS;
    wrong += TA_InvokeCommandEntryPoint(session, 99u, 0u, none) != TEE_ERROR_NOT_SUPPORTED;
    TA_CloseSessionEntryPoint(session);
    TA_DestroyEntryPoint();
    printf("%s\n", wrong == 0 ? "other calls are refused" : "something is wrong");
    return wrong != 0;
}
