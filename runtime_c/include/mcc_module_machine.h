/* mcc_module_machine.h - what the code of a module is made for, as the preprocessor tells: the machine and how it
 * passes arguments (MCC_MODULE_MACHINE), which must be equal in program and module, and what the core has
 * (MCC_MODULE_FEATURES), of which a module may need no more than there is. Define the latter yourself where the core
 * has more than the compiler of the program is told.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_MODULE_MACHINE_H
#define MCC_MODULE_MACHINE_H

#ifndef MCC_MODULE_MACHINE
#if defined(__arm__)
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define MCC_MODULE_PROFILE 1u
#else
#define MCC_MODULE_PROFILE 0u
#endif
#if defined(__ARM_PCS_VFP)
#define MCC_MODULE_MACHINE (40u | MCC_MODULE_PROFILE << 8 | 1u << 16)
#else
#define MCC_MODULE_MACHINE (40u | MCC_MODULE_PROFILE << 8)
#endif
#elif defined(__riscv)
#if defined(__riscv_float_abi_double)
#define MCC_MODULE_MACHINE (243u | __riscv_xlen << 8 | 2u << 16)
#elif defined(__riscv_float_abi_single)
#define MCC_MODULE_MACHINE (243u | __riscv_xlen << 8 | 1u << 16)
#else
#define MCC_MODULE_MACHINE (243u | __riscv_xlen << 8)
#endif
#elif defined(__aarch64__)
#define MCC_MODULE_MACHINE 183u
#elif defined(__x86_64__)
#define MCC_MODULE_MACHINE 62u
#else
#error "there are modules for Arm, RISC-V and x86-64"
#endif
#endif

#ifndef MCC_MODULE_FEATURES
#if defined(__arm__)
#if __ARM_ARCH_ISA_THUMB >= 2
#define MCC_MODULE_THUMB2 1u
#else
#define MCC_MODULE_THUMB2 0u
#endif
#if defined(__ARM_FEATURE_DSP)
#define MCC_MODULE_DSP 2u
#else
#define MCC_MODULE_DSP 0u
#endif
#if defined(__ARM_FP)
#define MCC_MODULE_FP ((__ARM_FP & 0xEu) << 4) /* half, single, double */
#else
#define MCC_MODULE_FP 0u
#endif
#if defined(__ARM_FEATURE_MVE)
#define MCC_MODULE_MVE ((__ARM_FEATURE_MVE & 3u) << 8) /* integers, floats */
#else
#define MCC_MODULE_MVE 0u
#endif
#if defined(__ARM_NEON)
#define MCC_MODULE_NEON 0x400u
#else
#define MCC_MODULE_NEON 0u
#endif
#if __ARM_ARCH >= 8
#define MCC_MODULE_V8 0x800u
#else
#define MCC_MODULE_V8 0u
#endif
#define MCC_MODULE_FEATURES \
    (MCC_MODULE_THUMB2 | MCC_MODULE_DSP | MCC_MODULE_FP | MCC_MODULE_MVE | MCC_MODULE_NEON | MCC_MODULE_V8)
#elif defined(__riscv)
#if defined(__riscv_mul)
#define MCC_MODULE_M 1u
#else
#define MCC_MODULE_M 0u
#endif
#if defined(__riscv_compressed)
#define MCC_MODULE_C 2u
#else
#define MCC_MODULE_C 0u
#endif
#if defined(__riscv_flen)
#define MCC_MODULE_F __riscv_flen /* 32 or 64 */
#else
#define MCC_MODULE_F 0u
#endif
#if defined(__riscv_atomic)
#define MCC_MODULE_A 4u
#else
#define MCC_MODULE_A 0u
#endif
#if defined(__riscv_vector)
#define MCC_MODULE_V 8u
#else
#define MCC_MODULE_V 0u
#endif
#define MCC_MODULE_FEATURES (MCC_MODULE_M | MCC_MODULE_C | MCC_MODULE_F | MCC_MODULE_A | MCC_MODULE_V)
#elif defined(__aarch64__)
#if defined(__ARM_FEATURE_DOTPROD)
#define MCC_MODULE_DOT 1u
#else
#define MCC_MODULE_DOT 0u
#endif
#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#define MCC_MODULE_FP16 2u
#else
#define MCC_MODULE_FP16 0u
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define MCC_MODULE_I8MM 4u
#else
#define MCC_MODULE_I8MM 0u
#endif
#define MCC_MODULE_FEATURES (MCC_MODULE_DOT | MCC_MODULE_FP16 | MCC_MODULE_I8MM)
#else
#if defined(__AVX2__) && defined(__FMA__)
#define MCC_MODULE_AVX2 1u
#else
#define MCC_MODULE_AVX2 0u
#endif
#if defined(__AVX512F__)
#define MCC_MODULE_AVX512 2u
#else
#define MCC_MODULE_AVX512 0u
#endif
#if defined(__AVX512VNNI__)
#define MCC_MODULE_VNNI 4u
#else
#define MCC_MODULE_VNNI 0u
#endif
#define MCC_MODULE_FEATURES (MCC_MODULE_AVX2 | MCC_MODULE_AVX512 | MCC_MODULE_VNNI)
#endif
#endif

#endif /* MCC_MODULE_MACHINE_H */
