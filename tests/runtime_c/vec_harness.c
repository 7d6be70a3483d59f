/* The functions of mcc_vec.h and mcc_vecmath.h over arrays; LANES and their names in FUNCTIONS come from the command line. */
#include "mcc_vecmath.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(JOIN(JOIN(mcc_, name), _f32x), LANES)
#define VECTOR JOIN(mcc_f32x, LANES)

#define UNARY(name)                                                                                                    \
    void t_##name(const float *x, float *y, int n);                                                                    \
    void t_##name(const float *x, float *y, int n)                                                                     \
    {                                                                                                                  \
        int i;                                                                                                         \
        for (i = 0; i < n; i += LANES) OF(store)(y + i, OF(name)(OF(load)(x + i)));                                    \
    }
#define BINARY(name)                                                                                                   \
    void t_##name(const float *x, const float *y, float *z, int n);                                                    \
    void t_##name(const float *x, const float *y, float *z, int n)                                                     \
    {                                                                                                                  \
        int i;                                                                                                         \
        for (i = 0; i < n; i += LANES) OF(store)(z + i, OF(name)(OF(load)(x + i), OF(load)(y + i)));                   \
    }

UNARY(exp)
UNARY(expm1)
UNARY(log)
UNARY(log1p)
UNARY(tanh)
UNARY(erf)
UNARY(abs)
UNARY(sqrt)
UNARY(floor)
UNARY(ceil)
UNARY(trunc)
UNARY(round_even)
BINARY(max)
BINARY(min)
BINARY(at_least)
BINARY(at_most)

float t_sum(const float *x);
float t_sum(const float *x) { return OF(sum)(OF(load)(x)); }

float t_largest(const float *x);
float t_largest(const float *x) { return OF(largest)(OF(load)(x)); }

void t_part(const float *x, float *y);
void t_part(const float *x, float *y)
{
    const VECTOR v = OF(load_part)(x, LANES - 1);
    OF(store_part)(y, LANES - 1, v + OF(set)(1.0f));
}
