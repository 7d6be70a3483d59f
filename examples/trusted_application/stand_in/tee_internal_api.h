/* tee_internal_api.h - stands in for the header of that name: what ta/ uses of the TEE Internal Core API. */
#ifndef TEE_INTERNAL_API_H
#define TEE_INTERNAL_API_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t TEE_Result;

#define TEE_SUCCESS 0x00000000u
#define TEE_ERROR_GENERIC 0xFFFF0000u
#define TEE_ERROR_BAD_PARAMETERS 0xFFFF0006u
#define TEE_ERROR_NOT_SUPPORTED 0xFFFF000Au
#define TEE_ERROR_OUT_OF_MEMORY 0xFFFF000Cu

typedef union {
    struct {
        void *buffer;
        size_t size;
    } memref;
    struct {
        uint32_t a, b;
    } value;
} TEE_Param;

#define TEE_PARAM_TYPE_NONE 0u
#define TEE_PARAM_TYPE_VALUE_OUTPUT 2u
#define TEE_PARAM_TYPE_MEMREF_INPUT 5u
#define TEE_PARAM_TYPES(t0, t1, t2, t3) ((t0) | (t1) << 4 | (t2) << 8 | (t3) << 12)

#define TEE_MALLOC_FILL_ZERO 0u
void *TEE_Malloc(size_t size, uint32_t hint);
void TEE_Free(void *buffer);
void TEE_MemMove(void *to, const void *from, size_t size);

TEE_Result TA_CreateEntryPoint(void);
void TA_DestroyEntryPoint(void);
TEE_Result TA_OpenSessionEntryPoint(uint32_t types, TEE_Param params[4], void **context);
void TA_CloseSessionEntryPoint(void *context);
TEE_Result TA_InvokeCommandEntryPoint(void *context, uint32_t command, uint32_t types, TEE_Param params[4]);

#endif
