/* peak.c - the most floating-point operations per second that one core does: fused multiply-adds on registers. Prints GFLOP/s. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>

#include "mcc_vec.h"

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
#define STEP(i) a##i = OF(fma)(a##i, x, y);

int main(void)
{
    const long rounds = 3000000;
    double best = 0;
    volatile float one = 0.9999f, little = 1e-6f; /* unknown to the compiler, and each reading another */
    const VECTOR x = OF(set)(one), y = OF(set)(little);
    int attempt;
    for (attempt = 0; attempt < 10; attempt++) {
        struct timespec start, end;
        VECTOR a0 = OF(set)(one), a1 = OF(set)(one), a2 = OF(set)(one), a3 = OF(set)(one);
        VECTOR a4 = OF(set)(one), a5 = OF(set)(one), a6 = OF(set)(one), a7 = OF(set)(one);
        VECTOR a8 = OF(set)(one), a9 = OF(set)(one), a10 = OF(set)(one), a11 = OF(set)(one);
        volatile float sink;
        double seconds, speed;
        long i;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (i = 0; i < rounds; i++) {
            STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        sink = OF(sum)(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11);
        (void)sink;
        seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
        speed = 2.0 * 12 * LANES * (double)rounds / seconds * 1e-9;
        if (speed > best) best = speed;
    }
    printf("%.1f\n", best);
    return 0;
}
