/* mcc_openmp.h - OpenMP's threads for models compiled with --threads; nothing else needs it. Compile with -fopenmp.
 *
 *     kws_set_parallel(&m, mcc_openmp_for, NULL);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_OPENMP_H
#define MCC_OPENMP_H

#include <stddef.h>

/* An mcc_parallel_for. */
static inline void mcc_openmp_for(void *pool, ptrdiff_t count, void (*body)(void *context, ptrdiff_t index),
                                  void *context)
{
    ptrdiff_t index;
    (void)pool;
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1)
#endif
    for (index = 0; index < count; ++index) body(context, index);
}

#endif
