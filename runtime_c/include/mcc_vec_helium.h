/* mcc_vec_helium.h - the part of mcc_vec.h for Arm's Helium (MVE with floats): what it does better than C operators.
 *
 * Denormal numbers are zeros, as in NEON of 32 bits. Comparisons set predicates, of which GCC makes detours through
 * registers of the core: hence assembly. `lt` and `le` hold for NaN there, `gt` and `ge` do not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_VEC_HELIUM_H
#define MCC_VEC_HELIUM_H

#if !defined(MCC_VEC_H)
#error "this is a part of mcc_vec.h: include that"
#endif

#include <arm_mve.h>

#define MCC_VEC_MVE(name, instruction)                                                                                 \
    MCC_VEC_INLINE mcc_f32x4 mcc_##name##_f32x4(mcc_f32x4 a, mcc_f32x4 b)                                              \
    {                                                                                                                  \
        return (mcc_f32x4)instruction((float32x4_t)a, (float32x4_t)b);                                                 \
    }                                                                                                                  \
    typedef float mcc_f32x4_##name
MCC_VEC_MVE(add, vaddq_f32);
MCC_VEC_MVE(sub, vsubq_f32);
MCC_VEC_MVE(mul, vmulq_f32);
MCC_VEC_ONE_TO_ONE(4, neg, vnegq_f32((float32x4_t)x));
MCC_VEC_ONE_TO_ONE(4, floor, vrndmq_f32((float32x4_t)x));
MCC_VEC_ONE_TO_ONE(4, ceil, vrndpq_f32((float32x4_t)x));
MCC_VEC_ONE_TO_ONE(4, trunc, vrndq_f32((float32x4_t)x));
MCC_VEC_ONE_TO_ONE(4, round_even, vrndnq_f32((float32x4_t)x));
MCC_VEC_SQRT(4);
MCC_VEC_INLINE mcc_f32x4 mcc_set_f32x4(float x) { return (mcc_f32x4)vdupq_n_f32(x); }
MCC_VEC_INLINE mcc_f32x4 mcc_fma_f32x4(mcc_f32x4 a, mcc_f32x4 b, mcc_f32x4 c)
{
    return (mcc_f32x4)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
/* Four divisions in place: C's operator would take every lane through a register of the core. */
MCC_VEC_INLINE mcc_f32x4 mcc_div_f32x4(mcc_f32x4 a, mcc_f32x4 b)
{
#if defined(__clang__)
    return a / b;
#else
    register mcc_f32x4 found __asm__("q0") = a;
    register mcc_f32x4 by __asm__("q1") = b;
    __asm__("vdiv.f32 s0, s0, s4\n\tvdiv.f32 s1, s1, s5\n\tvdiv.f32 s2, s2, s6\n\tvdiv.f32 s3, s3, s7"
            : "+w"(found)
            : "w"(by));
    return found;
#endif
}
/* Four numbers that lie apart: one instruction, over a vector of their offsets. */
MCC_VEC_INLINE uint32x4_t mcc_apart_u32x4(ptrdiff_t step) { return vmulq_n_u32(vidupq_n_u32(0, 4), (uint32_t)step); }
MCC_VEC_INLINE mcc_f32x4 mcc_all_apart_f32x4(const float *p, ptrdiff_t step)
{
    return (mcc_f32x4)vldrwq_gather_offset_f32(p, mcc_apart_u32x4(step));
}
MCC_VEC_INLINE void mcc_store_apart_f32x4(float *p, ptrdiff_t step, int n, mcc_f32x4 v)
{
    if (n == 4)
        vstrwq_scatter_offset_f32(p, mcc_apart_u32x4(step), (float32x4_t)v);
    else
        vstrwq_scatter_offset_p_f32(p, mcc_apart_u32x4(step), (float32x4_t)v, vctp32q((uint32_t)n));
}
/* A number stays in a register of the core. */
#define mcc_each_f32x4 float
MCC_VEC_INLINE float mcc_of_each_f32x4(float x) { return x; }
MCC_VEC_INLINE mcc_f32x4 mcc_fma_each_f32x4(float x, mcc_f32x4 b, mcc_f32x4 c)
{
    return (mcc_f32x4)vfmaq_n_f32((float32x4_t)c, (float32x4_t)b, x);
}

/* a or b, lane by lane, where a condition of two vectors holds. */
#if defined(__clang__)
#define MCC_VEC_MVE_CHOICE(found, condition, c, d, a, b)                                                               \
    found = (__typeof__(found))vpselq_f32(                                                                             \
        (float32x4_t)(a), (float32x4_t)(b), vcmp##condition##q_f32((float32x4_t)(c), (float32x4_t)(d)))
#else
#define MCC_VEC_MVE_CHOICE(found, condition, c, d, a, b)                                                               \
    __asm__("vcmp.f32 " #condition ", %q1, %q2\n\tvpsel %q0, %q3, %q4"                                                 \
            : "=w"(found)                                                                                              \
            : "w"(c), "w"(d), "w"(a), "w"(b)                                                                           \
            : "p0")
#endif
#define MCC_VEC_MVE_MASK(name, condition, c, d)                                                                        \
    MCC_VEC_INLINE mcc_i32x4 mcc_##name##_f32x4(mcc_f32x4 a, mcc_f32x4 b)                                              \
    {                                                                                                                  \
        const mcc_i32x4 all = mcc_set_i32x4(-1), none = {0};                                                           \
        mcc_i32x4 mask;                                                                                                \
        MCC_VEC_MVE_CHOICE(mask, condition, c, d, all, none);                                                          \
        return mask;                                                                                                   \
    }                                                                                                                  \
    typedef float mcc_f32x4_##name
MCC_VEC_MVE_MASK(less, gt, b, a);
MCC_VEC_MVE_MASK(less_equal, ge, b, a);
MCC_VEC_MVE_MASK(equal, eq, a, b);
MCC_VEC_MVE_MASK(greater_equal, ge, a, b);
MCC_VEC_MVE_MASK(greater, gt, a, b);
MCC_VEC_INLINE mcc_f32x4 mcc_at_least_f32x4(mcc_f32x4 x, mcc_f32x4 low)
{
    mcc_f32x4 found;
    MCC_VEC_MVE_CHOICE(found, gt, low, x, low, x);
    return found;
}
MCC_VEC_INLINE mcc_f32x4 mcc_at_most_f32x4(mcc_f32x4 x, mcc_f32x4 high)
{
    mcc_f32x4 found;
    MCC_VEC_MVE_CHOICE(found, gt, x, high, high, x);
    return found;
}
MCC_VEC_INLINE mcc_f32x4 mcc_max_f32x4(mcc_f32x4 a, mcc_f32x4 b)
{
    mcc_f32x4 found; /* a where a > b, else b: NaN where b is */
    MCC_VEC_MVE_CHOICE(found, gt, a, b, a, b);
    MCC_VEC_MVE_CHOICE(found, ne, a, a, a, found);
    return found;
}
MCC_VEC_INLINE mcc_f32x4 mcc_min_f32x4(mcc_f32x4 a, mcc_f32x4 b)
{
    mcc_f32x4 found;
    MCC_VEC_MVE_CHOICE(found, gt, b, a, a, b);
    MCC_VEC_MVE_CHOICE(found, ne, a, a, a, found);
    return found;
}

MCC_VEC_INLINE mcc_f32x4 mcc_load_part_f32x4(const float *p, int n)
{
    return (mcc_f32x4)vldrwq_z_f32(p, vctp32q((uint32_t)n));
}
MCC_VEC_INLINE void mcc_store_part_f32x4(float *p, int n, mcc_f32x4 v)
{
    vstrwq_p_f32(p, (float32x4_t)v, vctp32q((uint32_t)n));
}

/* MCC_VEC_SUMS_PxV(sums, x, step, w, pairs): products of P points, `step` floats apart from x on, and V vectors of
 * weights, for 2 * pairs steps, added to sums a<point><vector>, which are arguments point by point; there may be no
 * pairs. The loops of nothing but assembly take their numbers two at a time; those of one point, which wait for
 * weights, load all of a step by one instruction. */
#define MCC_VEC_MVE_FMA(sum, w, x) "vfma.f32 %q[" sum "], " w ", %[" x "]\n\t"
#define MCC_VEC_MVE_NUMBERS(x, y, p) "ldrd %[" x "], %[" y "], [%[" p "]], #8\n\t"
#define MCC_VEC_MVE_WEIGHT(w) "vldrw.32 %q[" w "], [%[from]], #16\n\t"
#define MCC_VEC_MVE_1(a, w, n) MCC_VEC_MVE_FMA(a "0", w, n "0")
#define MCC_VEC_MVE_2(a, w, n) MCC_VEC_MVE_1(a, w, n) MCC_VEC_MVE_FMA(a "1", w, n "1")
#define MCC_VEC_MVE_3(a, w, n) MCC_VEC_MVE_2(a, w, n) MCC_VEC_MVE_FMA(a "2", w, n "2")
#define MCC_VEC_MVE_NUMBERS_1 MCC_VEC_MVE_NUMBERS("x0", "y0", "p0")
#define MCC_VEC_MVE_NUMBERS_2 MCC_VEC_MVE_NUMBERS_1 MCC_VEC_MVE_NUMBERS("x1", "y1", "p1")
#define MCC_VEC_MVE_NUMBERS_3 MCC_VEC_MVE_NUMBERS_2 MCC_VEC_MVE_NUMBERS("x2", "y2", "p2")
#define MCC_VEC_MVE_STEP_1(P, n) MCC_VEC_MVE_WEIGHT("w0") MCC_VEC_MVE_##P("a", "%q[w0]", n)
#define MCC_VEC_MVE_STEP_2(P, n)                                                                                       \
    MCC_VEC_MVE_WEIGHT("w0")                                                                                           \
    MCC_VEC_MVE_WEIGHT("w1") MCC_VEC_MVE_##P("a", "%q[w0]", n) MCC_VEC_MVE_##P("b", "%q[w1]", n)
#define MCC_VEC_MVE_LOOP(body) "wls lr, %[n], 2f\n1:\n\t" body "le lr, 1b\n2:"
#define MCC_VEC_MVE_SUMS(P, V)                                                                                         \
    MCC_VEC_MVE_LOOP(MCC_VEC_MVE_NUMBERS_##P MCC_VEC_MVE_STEP_##V(P, "x") MCC_VEC_MVE_STEP_##V(P, "y"))
#define MCC_VEC_MVE_POINTS_1 [p0] "+r"(mcc_p0), [x0] "=&r"(mcc_x0), [y0] "=&r"(mcc_y0)
#define MCC_VEC_MVE_POINTS_2 MCC_VEC_MVE_POINTS_1, [p1] "+r"(mcc_p1), [x1] "=&r"(mcc_x1), [y1] "=&r"(mcc_y1)
#define MCC_VEC_MVE_POINTS_3 MCC_VEC_MVE_POINTS_2, [p2] "+r"(mcc_p2), [x2] "=&r"(mcc_x2), [y2] "=&r"(mcc_y2)
#define MCC_VEC_MVE_AT_1(x, step)                                                                                      \
    const float *mcc_p0 = (x);                                                                                         \
    int32_t mcc_x0, mcc_y0
#define MCC_VEC_MVE_AT_2(x, step)                                                                                      \
    MCC_VEC_MVE_AT_1(x, step);                                                                                         \
    const float *mcc_p1 = (x) + (step);                                                                                \
    int32_t mcc_x1, mcc_y1
#define MCC_VEC_MVE_AT_3(x, step)                                                                                      \
    MCC_VEC_MVE_AT_2(x, step);                                                                                         \
    const float *mcc_p2 = (x) + 2 * (step);                                                                            \
    int32_t mcc_x2, mcc_y2
#define MCC_VEC_MVE_TILE(P, V, x, step, w, pairs, ...)                                                                 \
    do {                                                                                                               \
        MCC_VEC_MVE_AT_##P(x, step);                                                                                   \
        const float *mcc_from = (w);                                                                                   \
        mcc_f32x4 mcc_w0, mcc_w1;                                                                                      \
        __asm__(MCC_VEC_MVE_SUMS(P, V)                                                                                 \
                : __VA_ARGS__, MCC_VEC_MVE_POINTS_##P, [from] "+r"(mcc_from), [w0] "=&w"(mcc_w0), [w1] "=&w"(mcc_w1)   \
                : [n] "r"(pairs)                                                                                       \
                : "lr", "memory");                                                                                     \
    } while (0)
#define MCC_VEC_SUMS_1x1(a, x, step, w, pairs) MCC_VEC_MVE_TILE(1, 1, x, step, w, pairs, [a0] "+w"(a))
#define MCC_VEC_SUMS_2x1(a, b, x, step, w, pairs)                                                                      \
    MCC_VEC_MVE_TILE(2, 1, x, step, w, pairs, [a0] "+w"(a), [a1] "+w"(b))
#define MCC_VEC_SUMS_3x1(a, b, c, x, step, w, pairs)                                                                   \
    MCC_VEC_MVE_TILE(3, 1, x, step, w, pairs, [a0] "+w"(a), [a1] "+w"(b), [a2] "+w"(c))
#define MCC_VEC_SUMS_2x2(a, b, c, d, x, step, w, pairs)                                                                \
    MCC_VEC_MVE_TILE(2, 2, x, step, w, pairs, [a0] "+w"(a), [b0] "+w"(b), [a1] "+w"(c), [b1] "+w"(d))
#define MCC_VEC_SUMS_3x2(a, b, c, d, e, f, x, step, w, pairs)                                                          \
    MCC_VEC_MVE_TILE(3, 2, x, step, w, pairs, [a0] "+w"(a), [b0] "+w"(b), [a1] "+w"(c), [b1] "+w"(d), [a2] "+w"(e),    \
                     [b2] "+w"(f))

#define MCC_VEC_MVE_FEW(loads, step, x, w, pairs, ...)                                                                 \
    do {                                                                                                               \
        MCC_VEC_MVE_AT_1(x, 0);                                                                                        \
        const float *mcc_from = (w);                                                                                   \
        __asm__(MCC_VEC_MVE_LOOP(MCC_VEC_MVE_NUMBERS_1 loads step("x0") loads step("y0"))                              \
                : __VA_ARGS__, MCC_VEC_MVE_POINTS_1, [from] "+r"(mcc_from)                                             \
                : [n] "r"(pairs)                                                                                       \
                : "lr", "memory", "q0", "q1", "q2", "q3");                                                             \
    } while (0)
#define MCC_VEC_MVE_FEW_2(n) MCC_VEC_MVE_FMA("a0", "q0", n) MCC_VEC_MVE_FMA("a1", "q1", n)
#define MCC_VEC_MVE_FEW_3(n) MCC_VEC_MVE_FEW_2(n) MCC_VEC_MVE_FMA("a2", "q2", n)
#define MCC_VEC_MVE_FEW_4(n) MCC_VEC_MVE_FEW_3(n) MCC_VEC_MVE_FMA("a3", "q3", n)
#define MCC_VEC_SUMS_1x2(a, b, x, step, w, pairs)                                                                      \
    MCC_VEC_MVE_FEW("vldmia %[from]!, {d0-d3}\n\t", MCC_VEC_MVE_FEW_2, x, w, pairs, [a0] "+w"(a), [a1] "+w"(b))
#define MCC_VEC_SUMS_1x3(a, b, c, x, step, w, pairs)                                                                   \
    MCC_VEC_MVE_FEW("vldmia %[from]!, {d0-d5}\n\t", MCC_VEC_MVE_FEW_3, x, w, pairs, [a0] "+w"(a), [a1] "+w"(b),        \
                    [a2] "+w"(c))
#define MCC_VEC_SUMS_1x4(a, b, c, d, x, step, w, pairs)                                                                \
    MCC_VEC_MVE_FEW("vldmia %[from]!, {d0-d7}\n\t", MCC_VEC_MVE_FEW_4, x, w, pairs, [a0] "+w"(a), [a1] "+w"(b),        \
                    [a2] "+w"(c), [a3] "+w"(d))

#endif /* MCC_VEC_HELIUM_H */
