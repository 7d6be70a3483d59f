/* How far the functions of mcc_vecmath.h and mcc_vecmath_wide.h are from libm's on doubles, in ulp, over all floats or
 * every so many-th:
 *
 *     gcc -O2 -march=native -DLANES=8 -I runtime_c/include tests/runtime_c/vec_all_floats.c -lm && ./a.out sin 1
 *
 * prints for each function (`all`: every one) the largest error, where it was, and how many results that are not finite
 * numbers, or zeros with another sign, differ. Functions of two operands take random second ones, and all pairs of
 * special ones. */
#include <stdio.h>
#include <stdlib.h>

#include "mcc_float.h"
#include "mcc_vecmath.h"
#include "mcc_vecmath_wide.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(JOIN(JOIN(mcc_, name), _f32x), LANES)
#define ONE(name)                                                                                                      \
    static void t_##name(const float *x, const float *y, float *z)                                                     \
    {                                                                                                                  \
        (void)y;                                                                                                       \
        OF(store)(z, OF(name)(OF(load)(x)));                                                                           \
    }
#define TWO(name)                                                                                                      \
    static void t_##name(const float *x, const float *y, float *z)                                                     \
    {                                                                                                                  \
        OF(store)(z, OF(name)(OF(load)(x), OF(load)(y)));                                                              \
    }
#define ROW(name) {#name, t_##name, name, NULL},
#define ALL_OF_ONE(DO)                                                                                                 \
    DO(exp) DO(expm1) DO(log) DO(log1p) DO(tanh) DO(erf) DO(sin) DO(cos) DO(tan) DO(asin) DO(acos) DO(atan) DO(sinh)   \
        DO(cosh) DO(asinh) DO(acosh) DO(atanh)

ALL_OF_ONE(ONE)
TWO(pow)
TWO(fmod)
TWO(mod)

static double scalar_mod(double a, double b) { return (double)mcc_mod_f32((float)a, (float)b); }

static const struct {
    const char *name;
    void (*vector)(const float *x, const float *y, float *z);
    double (*one)(double);
    double (*two)(double, double);
} functions[] = {ALL_OF_ONE(ROW){"pow", t_pow, NULL, pow}, {"fmod", t_fmod, NULL, fmod}, {"mod", t_mod, NULL, scalar_mod}};

static double worst;
static float worst_x, worst_y;
static long different;

static void compare(float x, float y, float got, double want)
{
    const float near = (float)want, size = fabsf(near), next = nextafterf(size, INFINITY);
    const double ulp = isinf(next) ? ldexp(1, 104) : (double)next - (double)size, off = fabs((double)got - want);
    if (isnan(near) || isinf(near)) {
        different += isnan(near) ? !isnan(got) : !(got == near);
    } else if (want == 0) {
        different += got != 0 || signbit(got) != signbit(near);
    } else if (!(off <= worst * ulp)) {
        worst = isfinite(got) ? off / ulp : INFINITY;
        worst_x = x, worst_y = y;
    }
}

static uint32_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 20);
}

/* Any float, a quotient near 1, or what makes a power of a usual size. */
static float second(float x)
{
    const uint32_t bits = random_bits();
    const float usual = (float)((int)(bits % 4001) - 2000);
    float any;
    if (bits >> 31) return usual / (bits >> 30 & 1 ? 7.0f : 100.0f);
    if (bits >> 30 & 1) return (float)(0.06 * usual / fabs(log(fabs((double)x))));
    (void)memcpy(&any, &bits, sizeof any);
    return any;
}

static double exact(size_t i, float x, float y) { return functions[i].one ? functions[i].one(x) : functions[i].two(x, y); }

static void pairs(size_t i)
{
    static const float ends[] = {0,     -0.0f, 1,        -1,       2,        3,      -3,       0.5f,      -0.5f, 2.5f, 1e-45f, 1e10f,
                                 -1e10f, 33,    16777216, 16777215, 3.4e38f, INFINITY, -INFINITY, NAN,   0.1f, -7,     1e-38f};
    const size_t count = sizeof ends / sizeof *ends;
    float x[LANES], y[LANES], z[LANES];
    size_t a, b, lane;
    for (a = 0; a < count; a++) {
        for (b = 0; b < count; b++) {
            for (lane = 0; lane < LANES; lane++) x[lane] = ends[a], y[lane] = ends[b];
            functions[i].vector(x, y, z);
            compare(x[0], y[0], z[0], exact(i, x[0], y[0]));
        }
    }
}

static void check(size_t i, uint64_t step)
{
    float x[LANES], y[LANES], z[LANES];
    uint64_t first;
    uint32_t lane;
    worst = 0, worst_x = worst_y = 0, different = 0;
    pairs(i);
    for (first = 0; first < (uint64_t)1 << 32; first += step * LANES) {
        for (lane = 0; lane < LANES; lane++) {
            const uint32_t bits = (uint32_t)(first + step * lane);
            (void)memcpy(x + lane, &bits, sizeof bits);
            y[lane] = functions[i].two ? second(x[lane]) : 0;
        }
        functions[i].vector(x, y, z);
        for (lane = 0; lane < LANES; lane++) compare(x[lane], y[lane], z[lane], exact(i, x[lane], y[lane]));
    }
    printf("%-6s %.3f ulp at %a %a, %ld different\n", functions[i].name, worst, (double)worst_x, (double)worst_y, different);
    (void)fflush(stdout);
}

int main(int count, char **given)
{
    size_t i;
    if (count != 3) return 2;
    for (i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(given[1], functions[i].name) || !strcmp(given[1], "all")) check(i, strtoull(given[2], NULL, 10));
    return 0;
}
