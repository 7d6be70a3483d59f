/* mcc_module_code.h - the assembly of a module: its entry point, and jumps to the functions of the program.
 *
 * Calls of the C library go through the table that the entry point is given. Its address lies in a register that the
 * module's code leaves alone (-ffixed-r9, ...), and that functions keep for their callers on each of these machines; so
 * nothing in a module is written to, and it may lie in flash. The jumps change no register that may hold an argument,
 * and the linker drops those that nobody calls. The symbols mcc_wanted_<number> tell which are left.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_MODULE_CODE_H
#define MCC_MODULE_CODE_H

#ifndef MCC_MODULE_INSIDE
#error "this is for the inside of modules, and would take the place of the C library: include mcc_module.h"
#endif
#include "mcc_module_functions.h"

#define MCC_MODULE_BEGIN(name) \
    ".section .text." name ",\"ax\",%progbits\n.balign 4\n.globl " name "\n.hidden " name "\n.type " name ",%function\n"

#if defined(__aarch64__)
#define MCC_MODULE_ALIGN 4096 /* addresses are made of pages and of places in them */
#else
#define MCC_MODULE_ALIGN 16
#endif

uint32_t mcc_module_called(mcc_module_call *call);

/* uint32_t entry(functions, call): keeps the register, loads it, and calls mcc_module_called(call). */
#if defined(__arm__)
#if defined(__thumb__)
#define MCC_MODULE_STATE_OF_ARM ".syntax unified\n.thumb\n.thumb_func\n"
#else
#define MCC_MODULE_STATE_OF_ARM ".syntax unified\n.arm\n"
#endif
__asm__(MCC_MODULE_BEGIN("mcc_module_entry") MCC_MODULE_STATE_OF_ARM
        "mcc_module_entry:\n"
        "push {r4, lr}\n"
        "mov r4, r9\n"
        "mov r9, r0\n"
        "mov r0, r1\n"
        "bl mcc_module_called\n"
        "mov r9, r4\n"
        "pop {r4, pc}\n"
        ".text\n");
#if __ARM_ARCH_ISA_THUMB == 1
#define MCC_MODULE_JUMP(number)                                                                                        \
    "push {r4, r5, r6}\n"                                                                                              \
    "movs r5, #" #number "\n"                                                                                          \
    "lsls r5, r5, #2\n"                                                                                                \
    "mov r4, r9\n"                                                                                                     \
    "ldr r4, [r4, r5]\n"                                                                                               \
    "str r4, [sp, #8]\n"                                                                                               \
    "pop {r4, r5, pc}\n"
#else
#define MCC_MODULE_JUMP(number) "ldr pc, [r9, #4 * " #number "]\n"
#endif
#define MCC_MODULE_STATE_OF_JUMP MCC_MODULE_STATE_OF_ARM
#elif defined(__riscv)
#if __riscv_xlen == 64
#define MCC_MODULE_LOAD "ld"
#define MCC_MODULE_STORE "sd"
#define MCC_MODULE_WORD "8"
#else
#define MCC_MODULE_LOAD "lw"
#define MCC_MODULE_STORE "sw"
#define MCC_MODULE_WORD "4"
#endif
__asm__(MCC_MODULE_BEGIN("mcc_module_entry")
        "mcc_module_entry:\n"
        "addi sp, sp, -16\n"
        MCC_MODULE_STORE " ra, " MCC_MODULE_WORD "(sp)\n"
        MCC_MODULE_STORE " s11, 0(sp)\n"
        "mv s11, a0\n"
        "mv a0, a1\n"
        "call mcc_module_called\n"
        MCC_MODULE_LOAD " s11, 0(sp)\n"
        MCC_MODULE_LOAD " ra, " MCC_MODULE_WORD "(sp)\n"
        "addi sp, sp, 16\n"
        "ret\n"
        ".text\n");
#define MCC_MODULE_JUMP(number) MCC_MODULE_LOAD " t0, " MCC_MODULE_WORD " * " #number "(s11)\njr t0\n"
#define MCC_MODULE_STATE_OF_JUMP
#elif defined(__aarch64__)
__asm__(MCC_MODULE_BEGIN("mcc_module_entry")
        "mcc_module_entry:\n"
        "stp x28, x30, [sp, #-16]!\n"
        "mov x28, x0\n"
        "mov x0, x1\n"
        "bl mcc_module_called\n"
        "ldp x28, x30, [sp], #16\n"
        "ret\n"
        ".text\n");
#define MCC_MODULE_JUMP(number) "ldr x16, [x28, #8 * " #number "]\nbr x16\n"
#define MCC_MODULE_STATE_OF_JUMP
#else
__asm__(MCC_MODULE_BEGIN("mcc_module_entry")
        "mcc_module_entry:\n"
        "pushq %r15\n"
        "movq %rdi, %r15\n"
        "movq %rsi, %rdi\n"
        "call mcc_module_called\n"
        "popq %r15\n"
        "ret\n"
        ".text\n");
#define MCC_MODULE_JUMP(number) "jmp *8 * " #number "(%r15)\n"
#define MCC_MODULE_STATE_OF_JUMP
#endif

#define MCC_MODULE_FUNCTION(number, name)                                                                              \
    __asm__(MCC_MODULE_BEGIN(#name) MCC_MODULE_STATE_OF_JUMP #name ":\n.globl mcc_wanted_" #number                     \
            "\nmcc_wanted_" #number ":\n" MCC_MODULE_JUMP(number) ".text\n");

MCC_MODULE_MEMORY(MCC_MODULE_FUNCTION)
MCC_MODULE_FLOATS(MCC_MODULE_FUNCTION)
MCC_MODULE_DOUBLES(MCC_MODULE_FUNCTION)
MCC_MODULE_SOFT(MCC_MODULE_FUNCTION)

/* Compilers make one call of two where the C library has sincos; the table has both. */
float mcc_module_sinf(float x) __asm__("sinf");
float mcc_module_cosf(float x) __asm__("cosf");
double mcc_module_sin(double x) __asm__("sin");
double mcc_module_cos(double x) __asm__("cos");
void sincosf(float x, float *sine, float *cosine);
void sincos(double x, double *sine, double *cosine);

void sincosf(float x, float *sine, float *cosine)
{
    *sine = mcc_module_sinf(x);
    *cosine = mcc_module_cosf(x);
}

void sincos(double x, double *sine, double *cosine)
{
    *sine = mcc_module_sin(x);
    *cosine = mcc_module_cos(x);
}

#endif /* MCC_MODULE_CODE_H */
