#include "mcc_elementary.h"

#include <stddef.h>

#define ROWS(name)                                                                                                     \
    void own_##name(const float *x, float *y, size_t count);                                                           \
    void own_##name(const float *x, float *y, size_t count)                                                            \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) y[i] = mcc_elementary_##name(x[i]);                                         \
    }

ROWS(exp)
ROWS(expm1)
ROWS(log)
ROWS(log1p)
ROWS(tanh)
ROWS(sin)
ROWS(cos)
