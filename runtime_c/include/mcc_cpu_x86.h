/* mcc_cpu_x86.h - what the x86-64 processor that runs this can do, and the operating system saves registers for:
 *
 *     mcc_x86_has_v3()    all of -march=x86-64-v3: AVX2, FMA and their kin
 *     mcc_x86_has_v4()    all of -march=x86-64-v4: AVX-512 F, BW, CD, DQ and VL as well
 *
 * Included by models that are compiled for several targets only; their init asks once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_CPU_X86_H
#define MCC_CPU_X86_H

#include "mcc.h"

#if !defined(__x86_64__) || !(defined(__GNUC__) || defined(__TINYC__))
#error "mcc_cpu_x86.h is for x86-64, and for compilers with the assembly of gcc"
#endif

/* Registers a, b, c and d of a leaf; zeros where there is no such leaf. */
MCC_INLINE void mcc_x86_cpuid(uint32_t leaf, uint32_t found[4])
{
    const uint32_t group = leaf & 0x80000000u;
    __asm__ volatile("cpuid"
                     : "=a"(found[0]), "=b"(found[1]), "=c"(found[2]), "=d"(found[3])
                     : "0"(group), "2"(0u));
    if (found[0] < leaf) {
        found[0] = found[1] = found[2] = found[3] = 0u;
        return;
    }
    __asm__ volatile("cpuid"
                     : "=a"(found[0]), "=b"(found[1]), "=c"(found[2]), "=d"(found[3])
                     : "0"(leaf), "2"(0u));
}

/* Which registers the operating system saves: a bit each. */
MCC_INLINE uint32_t mcc_x86_saved(void)
{
    uint32_t low, high;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0u)); /* xgetbv */
    (void)high;
    return low;
}

MCC_INLINE int mcc_x86_has_v3(void)
{
    /* SSE3, SSSE3, FMA, CMPXCHG16B, SSE4.1, SSE4.2, MOVBE, POPCNT, XSAVE, AVX, F16C; BMI1, AVX2, BMI2; LAHF, LZCNT */
    const uint32_t first = 1u | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 22 | 1u << 23 | 1u << 27 |
                           1u << 28 | 1u << 29;
    const uint32_t seventh = 1u << 3 | 1u << 5 | 1u << 8, extended = 1u | 1u << 5;
    uint32_t found[4];
    mcc_x86_cpuid(1u, found);
    if ((found[2] & first) != first || (mcc_x86_saved() & 0x6u) != 0x6u) return 0;
    mcc_x86_cpuid(7u, found);
    if ((found[1] & seventh) != seventh) return 0;
    mcc_x86_cpuid(0x80000001u, found);
    return (found[2] & extended) == extended;
}

MCC_INLINE int mcc_x86_has_v4(void)
{
    const uint32_t seventh = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F, DQ, CD, BW, VL */
    uint32_t found[4];
    if (!mcc_x86_has_v3() || (mcc_x86_saved() & 0xE6u) != 0xE6u) return 0;
    mcc_x86_cpuid(7u, found);
    return (found[1] & seventh) == seventh;
}

#endif
