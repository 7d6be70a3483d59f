/* mcc_port.h - what differs between compilers and machines, and nothing else.
 * To port the runtime to a new compiler, read this page and no other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_PORT_H
#define MCC_PORT_H

#include <stddef.h>
#include <stdint.h>

/* Settings: define them for the whole build if you need them.
 *
 *   MCC_NO_CRC   Do not compute the checksums of the blob in <model>_init (saves start-up time and about 300 bytes of
 *                code). Sizes, version and identity are still checked; a damaged weight is not noticed any more.
 *   MCC_CRC_TABLE  Compute them with a table of 1 KB: 2.5 times as fast on cores of 32 bits.
 *   MCC_CANARY   Each arena has MCC_CANARY_BYTES more at either end, which a run fills and looks at when it is done: if
 *                somebody wrote there meanwhile, it ends with MCC_ERR_CANARY.
 *   MCC_CONFIG   The name of your own header, in quotes, that is included here and defines what else you need:
 *   MCC_CRC32(crc, p, count)  Checksums by a unit of the chip: the CRC-32 (SPEC.md) of `count` bytes at `p`, which may
 *                             lie anywhere, continued from `crc` (0 to start), as zlib's crc32 gives it.
 *   MCC_COPY_BEGIN(to, from, bytes)  Weights through a window (mcc_window.h) of a blob in memory, and tensors of a
 *                                    memory that is `copied` (mcc_copy.h): begins to copy, as a DMA does; 0 if that
 *                                    went well. memcpy by default.
 *   MCC_COPY_WAIT()  Waits for the end of that copy; 0 if it went well.
 *   MCC_LATE_COPIES  For tests: copies are there no sooner than they are waited for, and before that other numbers are.
 *   MCC_STEP_HOOK(step)  After each step of <model>_run_steps: feeds a watchdog, yields, measures. Nothing by default.
 *   MCC_ASSERT(condition)  Where positions come from data: is it one inside of the tensor? Nothing by default, and what
 *                          lies outside means the nearest element inside.
 */
#ifdef MCC_CONFIG
#include MCC_CONFIG
#endif
#ifndef MCC_STEP_HOOK
#define MCC_STEP_HOOK(step) ((void)(step))
#endif
#ifndef MCC_ASSERT
#define MCC_ASSERT(condition) ((void)0)
#endif
#ifdef MCC_CANARY
#define MCC_CANARY_BYTES 64u
#else
#define MCC_CANARY_BYTES 0u
#endif

/* Results are exact by promise; such options let the compiler reorder sums and forget NaN and infinity. */
#if defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "compile without -ffast-math (/fp:fast): it changes results"
#endif
#if defined(__FINITE_MATH_ONLY__)
#if __FINITE_MATH_ONLY__
#error "compile without -ffinite-math-only: NaN and infinity are values like any other"
#endif
#endif

/* MCC_ALIGNED(n) in front of a declaration: the object lies at a multiple of n, a power of two.
 * On a compiler that knows no way to say so, <model>_init reports an address that does not fit. */
#if defined(__TINYC__) /* glibc's headers define __attribute__ as nothing for it, but not its other spelling */
#define MCC_ALIGNED(n) __attribute((aligned(n)))
#elif defined(__GNUC__) || defined(__clang__)
#define MCC_ALIGNED(n) __attribute__((aligned(n)))
#elif defined(_MSC_VER)
#define MCC_ALIGNED(n) __declspec(align(n))
#elif defined(__cplusplus) && __cplusplus >= 201103L
#define MCC_ALIGNED(n) alignas(n)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define MCC_ALIGNED(n) _Alignas(n)
#else
#define MCC_ALIGNED(n)
#endif

/* MCC_RESTRICT: C99's restrict, which C++ lacks. */
#if defined(_MSC_VER) || (defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__)))
#define MCC_RESTRICT __restrict
#elif defined(__cplusplus)
#define MCC_RESTRICT
#else
#define MCC_RESTRICT restrict
#endif

/* MCC_UNUSED: a parameter, an object or a function that may stay unused. */
#if defined(__GNUC__) || defined(__clang__)
#define MCC_UNUSED __attribute__((unused))
#else
#define MCC_UNUSED
#endif

/* MCC_INLINE: a function in a header that costs nothing where it is not used. It is static, so any number of
 * compiled models, each with its own copy of the runtime, link into one program. */
#if defined(_MSC_VER) && !defined(__cplusplus)
#define MCC_INLINE static __inline
#else
#define MCC_INLINE MCC_UNUSED static inline
#endif

/* MCC_APART: a function that its callers do not take in, so that each step is done with memory before the next one
 * stores tensors of other types there: Clang may reorder such stores where it sees both. */
#if defined(__GNUC__) || defined(__clang__)
#define MCC_APART __attribute__((noinline))
#else
#define MCC_APART
#endif

/* MCC_PART: a part of a long function, which stands alone for its readers only. */
#if defined(__GNUC__) || defined(__clang__)
#define MCC_PART static inline __attribute__((always_inline))
#else
#define MCC_PART MCC_INLINE
#endif

/* Makes the compiler hold the vector `v` in a register from here on. */
#if defined(__AVX__)
#define MCC_VEC_KEEP(v) __asm__("" : "+v"(v))
#else
#define MCC_VEC_KEEP(v) ((void)0)
#endif

#endif /* MCC_PORT_H */
