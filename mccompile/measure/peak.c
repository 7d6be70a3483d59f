/* peak.c - the most that one core does: fused multiply-adds of floats and products of bytes on registers, and reading.
 * DOT_LANES: sums of products of bytes in a vector, 0 without. */
#include <stddef.h>

#include "mcc_vec.h"

#if DOT_LANES == 16
#include "mcc_dot16.h"
#elif DOT_LANES == 8
#include "mcc_dot8.h"
#elif DOT_LANES == 4
#include "mcc_dot4.h"
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(JOIN(JOIN(mcc_, name), _f32x), LANES)
#define VECTOR JOIN(mcc_f32x, LANES)
#define DOT(name) JOIN(JOIN(JOIN(mcc_, name), _i32x), DOT_LANES)
#define SUMS JOIN(mcc_i32x, DOT_LANES)
#define FOUR(DO, n) DO(n##0) DO(n##1) DO(n##2) DO(n##3)
#define ALL(DO) FOUR(DO, 1) FOUR(DO, 2) FOUR(DO, 3)
/* As if v had been written: what is computed with it is computed anew each time. */
#if defined(__AVX__)
#define ANEW(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define ANEW(v) __asm__("" : "+w"(v))
#else
#define ANEW(v) ((void)0)
#endif

static volatile float one = 0.9999f, little = 1e-6f; /* unknown to the compiler, and each reading another */
static volatile float sink;

/* How many multiply-adds it has done. */
double mcc_peak_floats(long rounds)
{
    const VECTOR x = OF(set)(one), y = OF(set)(little);
#define BEGIN(i) VECTOR a##i = OF(set)(one);
#define STEP(i) a##i = OF(fma)(a##i, x, y);
#define ADD(i) sum = sum + a##i;
    VECTOR sum = OF(set)(0.0f);
    long i;
    ALL(BEGIN)
    for (i = 0; i < rounds; i++) {
        ALL(STEP)
    }
    ALL(ADD)
    sink = OF(sum)(sum);
    return 12.0 * LANES * (double)rounds;
}

/* The same of products of bytes, of which one has few bits. */
double mcc_peak_bytes(long rounds)
{
#if DOT_LANES
    SUMS x = DOT(set)((int)one), w = DOT(set)((int)little), sum = x;
    long i;
#define BEGIN_DOT(i) SUMS a##i = w;
#define STEP_DOT(i)                                                                                                    \
    ANEW(w);                                                                                                           \
    a##i = DOT(dot_short)(a##i, x, w);
#define ADD_DOT(i) sum = DOT(add)(sum, a##i);
    ALL(BEGIN_DOT)
    for (i = 0; i < rounds; i++) {
        ALL(STEP_DOT)
    }
    ALL(ADD_DOT)
    sink = (float)sum[0];
    return 12.0 * 4 * DOT_LANES * (double)rounds;
#else
    (void)rounds;
    return 0.0;
#endif
}

/* Reads four streams, which is faster than one; returns how many bytes. */
double mcc_peak_read(const void *from, size_t bytes)
{
    typedef uint32_t words __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
    const size_t count = bytes / sizeof(words) / 8 * 2;
    const words *const a = (const words *)from, *const b = a + count, *const c = b + count, *const d = c + count;
    words s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    size_t i;
    for (i = 0; i < count; i += 2) {
        s0 ^= a[i], s1 ^= a[i + 1], s2 ^= b[i], s3 ^= b[i + 1];
        s4 ^= c[i], s5 ^= c[i + 1], s6 ^= d[i], s7 ^= d[i + 1];
    }
    s0 ^= s1 ^ s2 ^ s3 ^ s4 ^ s5 ^ s6 ^ s7;
    sink = (float)s0[0];
    return 4.0 * (double)(count * sizeof(words));
}
