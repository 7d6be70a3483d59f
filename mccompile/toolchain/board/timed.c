/* timed.c - runs a model again and again on memory that begins the same, and prints the median seconds of a run. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mcc_host_model.h"

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)
#define NAME(rest) JOIN(MCC_HOST_PREFIX, rest)
extern const uint64_t NAME(_weights)[]; /* declared again where the blob is external */
extern const size_t NAME(_weights_bytes);

enum { RUNS = 101, BYTE = 0x3C }; /* a byte that makes numbers near 0.01 as floats */

static MCC_ALIGNED(MCC_HOST_ARENA_ALIGN) uint8_t arena[MCC_HOST_ARENA_BYTES + 1u];
static NAME(_model) model;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    static double spent[RUNS];
    int run;
    if (MCC_HOST_INIT(&model, arena, NAME(_weights), NAME(_weights_bytes)) != MCC_OK) return 1;
#define FILL(symbol, bytes) memset(NAME(_input_##symbol)(&model), BYTE, bytes);
#define FILL_STRINGS(symbol, count)
    MCC_HOST_INPUTS(FILL, FILL_STRINGS)
    for (run = -2; run < RUNS; run++) { /* the first ones warm caches */
        const double start = now();
        if (NAME(_run)(&model) != MCC_OK) return 2;
        if (run >= 0) spent[run] = now() - start;
    }
    qsort(spent, RUNS, sizeof spent[0], by_size);
    printf("%.9f\n", spent[RUNS / 2]);
    return 0;
}
