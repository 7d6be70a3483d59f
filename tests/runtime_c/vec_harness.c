/* The functions of mcc_vec.h, mcc_vecmath.h, mcc_vecmath_wide.h and mcc_vec_narrow.h over arrays of n floats, or numbers in their places; LANES comes from the command line. With PROGRAM, a program
 * that calls the one whose number comes in through stdin, with n, x, y and what z holds before; z goes out through stdout. */
#include "mcc_narrow.h"
#include "mcc_vec_narrow.h"
#include "mcc_vecmath.h"
#include "mcc_vecmath_wide.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(JOIN(JOIN(mcc_, name), _f32x), LANES)
#define VECTOR JOIN(mcc_f32x, LANES)

#define FUNCTION(name)                                                                                                 \
    void t_##name(const float *x, const float *y, float *z, int n);                                                    \
    void t_##name(const float *x, const float *y, float *z, int n)
#define UNARY(name)                                                                                                    \
    FUNCTION(name)                                                                                                     \
    {                                                                                                                  \
        int i;                                                                                                         \
        (void)y;                                                                                                       \
        for (i = 0; i < n; i += LANES) OF(store)(z + i, OF(name)(OF(load)(x + i)));                                    \
    }
#define BINARY(name)                                                                                                   \
    FUNCTION(name)                                                                                                     \
    {                                                                                                                  \
        int i;                                                                                                         \
        for (i = 0; i < n; i += LANES) OF(store)(z + i, OF(name)(OF(load)(x + i), OF(load)(y + i)));                   \
    }
#define ACROSS(name)                                                                                                   \
    FUNCTION(name)                                                                                                     \
    {                                                                                                                  \
        int i;                                                                                                         \
        (void)y;                                                                                                       \
        for (i = 0; i < n; i += LANES) z[i] = OF(name)(OF(load)(x + i));                                               \
    }

UNARY(exp)
UNARY(expm1)
UNARY(log)
UNARY(log1p)
UNARY(tanh)
UNARY(erf)
UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(sinh)
UNARY(cosh)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
BINARY(pow)
BINARY(fmod)
BINARY(mod)
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

ACROSS(sum)
ACROSS(product)
ACROSS(smallest)
ACROSS(largest)

FUNCTION(part)
{
    const VECTOR v = OF(load_part)(x, LANES - 1);
    (void)y;
    (void)n;
    OF(store_part)(z, LANES - 1, OF(add)(v, OF(set)(1.0f)));
}

FUNCTION(apart)
{
    (void)y;
    (void)n;
    OF(store_apart)(z, 3, LANES, OF(load_apart)(x, 2, LANES));
    OF(store_apart)(z + 1, 3, LANES - 1, OF(load_apart)(x + 1, 2, LANES - 1));
}

#define NARROW(dtype)                                                                                                  \
    FUNCTION(load_##dtype)                                                                                             \
    {                                                                                                                  \
        int i;                                                                                                         \
        (void)y;                                                                                                       \
        for (i = 0; i < n; i += LANES) OF(store)(z + i, OF(load_##dtype)((const uint16_t *)(const void *)x + i));      \
    }                                                                                                                  \
    FUNCTION(store_##dtype)                                                                                            \
    {                                                                                                                  \
        int i;                                                                                                         \
        (void)y;                                                                                                       \
        for (i = 0; i < n; i += LANES) OF(store_##dtype)((uint16_t *)(void *)z + i, OF(load)(x + i));                  \
    }                                                                                                                  \
    FUNCTION(scalar_load_##dtype)                                                                                      \
    {                                                                                                                  \
        int i;                                                                                                         \
        (void)y;                                                                                                       \
        for (i = 0; i < n; i++) z[i] = mcc_##dtype##_to_f32(((const uint16_t *)(const void *)x)[i]);                   \
    }                                                                                                                  \
    FUNCTION(scalar_store_##dtype)                                                                                     \
    {                                                                                                                  \
        int i;                                                                                                         \
        (void)y;                                                                                                       \
        for (i = 0; i < n; i++) ((uint16_t *)(void *)z)[i] = mcc_f32_to_##dtype(x[i]);                                 \
    }                                                                                                                  \
    UNARY(round_##dtype)                                                                                               \
    FUNCTION(part_##dtype)                                                                                             \
    {                                                                                                                  \
        const VECTOR v = OF(load_part_##dtype)((const uint16_t *)(const void *)x, LANES - 1);                          \
        (void)y;                                                                                                       \
        (void)n;                                                                                                       \
        OF(store_part_##dtype)((uint16_t *)(void *)z, LANES - 1, OF(add)(v, OF(set)(1.0f)));                           \
    }

NARROW(f16)
NARROW(bf16)

#if LANES < 16
#define IN_PLACE(name, vectors)                                                                                        \
    FUNCTION(name)                                                                                                     \
    {                                                                                                                  \
        VECTOR v[vectors];                                                                                             \
        int i;                                                                                                         \
        (void)y;                                                                                                       \
        (void)n;                                                                                                       \
        for (i = 0; i < vectors; i++) v[i] = OF(load)(x + i * LANES);                                                  \
        OF(name)(v);                                                                                                   \
        for (i = 0; i < vectors; i++) OF(store)(z + i * LANES, v[i]);                                                  \
    }
#else
#define IN_PLACE(name, vectors)                                                                                        \
    FUNCTION(name)                                                                                                     \
    {                                                                                                                  \
        (void)x, (void)y, (void)z, (void)n;                                                                            \
    }
#endif

IN_PLACE(transpose, LANES)
IN_PLACE(weave, 2)

#ifdef PROGRAM
#include <stdio.h>

enum { MOST = 1 << 19 };
static float x[MOST], y[MOST], z[MOST];
static void (*const functions[])(const float *, const float *, float *, int) = {
    t_exp,  t_expm1, t_log,        t_log1p, t_tanh, t_erf,
    t_sin, t_cos, t_tan, t_asin, t_acos, t_atan, t_sinh, t_cosh, t_asinh, t_acosh, t_atanh, t_pow, t_fmod, t_mod, t_abs,     t_sqrt, t_floor,   t_ceil,
    t_trunc, t_round_even, t_max, t_min,   t_at_least, t_at_most, t_sum,   t_largest, t_part,
    t_product, t_smallest, t_apart, t_transpose,
    t_load_f16, t_store_f16, t_round_f16, t_part_f16, t_scalar_load_f16, t_scalar_store_f16,
    t_load_bf16, t_store_bf16, t_round_bf16, t_part_bf16, t_scalar_load_bf16, t_scalar_store_bf16, t_weave,
};

int main(void)
{
    int32_t given[2];
    size_t n;
    if (fread(given, sizeof given, 1, stdin) != 1 || given[1] > MOST) return 1;
    n = (size_t)given[1];
    if (fread(x, 4, n, stdin) != n || fread(y, 4, n, stdin) != n || fread(z, 4, n, stdin) != n) return 1;
    functions[given[0]](x, y, z, given[1]);
    return fwrite(z, 4, n, stdout) == n ? 0 : 1;
}
#endif
