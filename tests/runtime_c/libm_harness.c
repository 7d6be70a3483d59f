#define MCC_OWN_LIBM
#include "mcc_libm.h"

#include <stddef.h>

#define ROWS(name, function)                                                                                           \
    void name(const float *x, float *y, size_t count);                                                                 \
    void name(const float *x, float *y, size_t count)                                                                  \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) y[i] = function(x[i]);                                                      \
    }

ROWS(own_expm1, expm1f)
ROWS(own_log1p, log1pf)
ROWS(own_arcsinh, asinhf)
ROWS(own_arccosh, acoshf)
ROWS(own_arctanh, atanhf)
ROWS(own_erf, erff)
