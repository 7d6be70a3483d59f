/* How far the functions of mcc_vecmath_doubles.h are from those of long doubles, in ulp of the result; LANES comes from
 * the command line. What is infinity, NaN or zero has to be so, with its sign. */
#include <math.h>

#include "mcc_vecmath_doubles.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(JOIN(JOIN(mcc_, name), _f64x), LANES)

static double off(double got, long double want)
{
    const double near = (double)want, size = fabs(near);
    if (near != near) return got != got ? 0.0 : (double)INFINITY;
    if (isinf(near) || near == 0.0) return got == near && signbit(got) == signbit(near) ? 0.0 : (double)INFINITY;
    return (double)(fabsl((long double)got - want) / (long double)(nextafter(size, (double)INFINITY) - size));
}

#define FUNCTION(name)                                                                                                 \
    void t_##name(const double *x, double *ulp, int n);                                                                \
    void t_##name(const double *x, double *ulp, int n)                                                                 \
    {                                                                                                                  \
        double y[LANES];                                                                                               \
        int i, lane;                                                                                                   \
        for (i = 0; i < n; i += LANES) {                                                                               \
            OF(store)(y, OF(name)(OF(load)(x + i)));                                                                   \
            for (lane = 0; lane < LANES; lane++) ulp[i + lane] = off(y[lane], name##l((long double)x[i + lane]));      \
        }                                                                                                              \
    }

#define PAIR(name, exact)                                                                                              \
    void t_##name(const double *x, const double *by, double *ulp, int n);                                              \
    void t_##name(const double *x, const double *by, double *ulp, int n)                                               \
    {                                                                                                                  \
        double y[LANES];                                                                                               \
        int i, lane;                                                                                                   \
        for (i = 0; i < n; i += LANES) {                                                                               \
            OF(store)(y, OF(name)(OF(load)(x + i), OF(load)(by + i)));                                                 \
            for (lane = 0; lane < LANES; lane++) ulp[i + lane] = off(y[lane], exact(x[i + lane], by[i + lane]));       \
        }                                                                                                              \
    }

PAIR(fmod, mcc_fmod_f64)
PAIR(mod, mcc_mod_f64)
FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(tan)
FUNCTION(asin)
FUNCTION(acos)
FUNCTION(atan)
FUNCTION(sinh)
FUNCTION(cosh)
FUNCTION(asinh)
FUNCTION(acosh)
FUNCTION(atanh)
FUNCTION(sqrt)
FUNCTION(floor)
FUNCTION(ceil)
FUNCTION(trunc)
#define round_evenl rintl
FUNCTION(round_even)
