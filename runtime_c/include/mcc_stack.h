/* mcc_stack.h - how much stack a call took: what lies below the caller is painted, and what is no longer so afterwards
 * was used. It needs the lowest address of the stack, and a compiler that says where a frame begins (GCC, Clang).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_STACK_H
#define MCC_STACK_H

#include "mcc.h"

#define MCC_STACK_PAINT 0xC5C5C5C5u
#define MCC_STACK_UNKNOWN 0xFFFFFFFFu

#if defined(__GNUC__)
/* Both are leaves and never inlined: their frames begin where the stack of the caller ends. Their own frames, a few
 * words, are not painted and count as used. */
#if defined(__OPTIMIZE__)
#define MCC_STACK_LEAF static __attribute__((noinline, unused))
#else
#define MCC_STACK_LEAF MCC_INLINE
#endif
MCC_STACK_LEAF void mcc_stack_paint(uint32_t *lowest)
{
    uint32_t *const end = (uint32_t *)__builtin_frame_address(0) - 4;
    volatile uint32_t *p;
    for (p = lowest; p < end; p++) *p = MCC_STACK_PAINT;
}

MCC_STACK_LEAF uint32_t mcc_stack_used(const uint32_t *lowest)
{
    const volatile uint32_t *p = lowest;
    while (*p == MCC_STACK_PAINT) p++;
    return (uint32_t)((uintptr_t)__builtin_dwarf_cfa() - (uintptr_t)p);
}
#else
#define mcc_stack_paint(lowest) ((void)(lowest))
#define mcc_stack_used(lowest) ((void)(lowest), MCC_STACK_UNKNOWN)
#endif

#endif /* MCC_STACK_H */
