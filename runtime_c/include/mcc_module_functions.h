/* mcc_module_functions.h - what modules call in the program that they are loaded into: functions of its C library, by
 * numbers that never change. The program hands their addresses over, in one table for all of its modules:
 *
 *     static const mcc_module_functions functions = MCC_MODULE_GIVEN;
 *
 * Modules that want none of the functions of doubles, or none of math.h, run without; MCC_MODULE_NO_DOUBLE and
 * MCC_MODULE_NO_MATH leave these out of the table and so out of the program. Not for C++, where names of math.h stand
 * for several functions each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_MODULE_FUNCTIONS_H
#define MCC_MODULE_FUNCTIONS_H

#include <math.h>
#include <string.h>

#include "mcc_module.h"

#define MCC_MODULE_MEMORY(EACH)                                                                                        \
    EACH(0, memcpy) EACH(1, memmove) EACH(2, memset) EACH(3, memcmp)
#define MCC_MODULE_FLOATS(EACH)                                                                                        \
    EACH(4, acosf) EACH(5, acoshf) EACH(6, asinf) EACH(7, asinhf) EACH(8, atanf) EACH(9, atan2f) EACH(10, atanhf)      \
    EACH(11, cbrtf) EACH(12, ceilf) EACH(13, copysignf) EACH(14, cosf) EACH(15, coshf) EACH(16, erff) EACH(17, expf)   \
    EACH(18, exp2f) EACH(19, expm1f) EACH(20, fabsf) EACH(21, floorf) EACH(22, fmaf) EACH(23, fmaxf) EACH(24, fminf)   \
    EACH(25, fmodf) EACH(26, frexpf) EACH(27, ldexpf) EACH(28, logf) EACH(29, log10f) EACH(30, log1pf)                 \
    EACH(31, log2f) EACH(32, nearbyintf) EACH(33, powf) EACH(34, remainderf) EACH(35, rintf) EACH(36, roundf)          \
    EACH(37, sinf) EACH(38, sinhf) EACH(39, sqrtf) EACH(40, tanf) EACH(41, tanhf) EACH(42, truncf)
#define MCC_MODULE_DOUBLES(EACH)                                                                                       \
    EACH(43, acos) EACH(44, acosh) EACH(45, asin) EACH(46, asinh) EACH(47, atan) EACH(48, atan2) EACH(49, atanh)       \
    EACH(50, cbrt) EACH(51, ceil) EACH(52, copysign) EACH(53, cos) EACH(54, cosh) EACH(55, erf) EACH(56, exp)          \
    EACH(57, exp2) EACH(58, expm1) EACH(59, fabs) EACH(60, floor) EACH(61, fma) EACH(62, fmax) EACH(63, fmin)          \
    EACH(64, fmod) EACH(65, frexp) EACH(66, ldexp) EACH(67, log) EACH(68, log10) EACH(69, log1p) EACH(70, log2)        \
    EACH(71, nearbyint) EACH(72, pow) EACH(73, remainder) EACH(74, rint) EACH(75, round) EACH(76, sin)                 \
    EACH(77, sinh) EACH(78, sqrt) EACH(79, tan) EACH(80, tanh) EACH(81, trunc)

/* Arithmetic of floats in software, where that of the compiler's library does not run from any address (Arm v6-M). */
#if defined(__arm__) && __ARM_ARCH_ISA_THUMB == 1
#define MCC_MODULE_SOFT(EACH)                                                                                          \
    EACH(82, __aeabi_fadd) EACH(83, __aeabi_fsub) EACH(84, __aeabi_frsub) EACH(85, __aeabi_fmul)                       \
    EACH(86, __aeabi_fdiv) EACH(87, __aeabi_fcmpeq) EACH(88, __aeabi_fcmplt) EACH(89, __aeabi_fcmple)                  \
    EACH(90, __aeabi_fcmpge) EACH(91, __aeabi_fcmpgt) EACH(92, __aeabi_fcmpun) EACH(93, __aeabi_f2iz)                  \
    EACH(94, __aeabi_f2uiz) EACH(95, __aeabi_f2lz) EACH(96, __aeabi_f2ulz) EACH(97, __aeabi_f2d)                       \
    EACH(98, __aeabi_i2f) EACH(99, __aeabi_ui2f) EACH(100, __aeabi_l2f) EACH(101, __aeabi_ul2f)                        \
    EACH(102, __aeabi_dadd) EACH(103, __aeabi_dsub) EACH(104, __aeabi_drsub) EACH(105, __aeabi_dmul)                   \
    EACH(106, __aeabi_ddiv) EACH(107, __aeabi_dcmpeq) EACH(108, __aeabi_dcmplt) EACH(109, __aeabi_dcmple)              \
    EACH(110, __aeabi_dcmpge) EACH(111, __aeabi_dcmpgt) EACH(112, __aeabi_dcmpun) EACH(113, __aeabi_d2iz)              \
    EACH(114, __aeabi_d2uiz) EACH(115, __aeabi_d2lz) EACH(116, __aeabi_d2ulz) EACH(117, __aeabi_d2f)                   \
    EACH(118, __aeabi_i2d) EACH(119, __aeabi_ui2d) EACH(120, __aeabi_l2d) EACH(121, __aeabi_ul2d)
#else
#define MCC_MODULE_SOFT(EACH)
#endif

#define MCC_MODULE_DECLARE(number, name) void name(void);
MCC_MODULE_SOFT(MCC_MODULE_DECLARE)

#define MCC_MODULE_THERE(number, name) (void (*)(void))name,
#define MCC_MODULE_NONE(number, name) NULL,
#if defined(MCC_MODULE_NO_MATH)
#define MCC_MODULE_FLOATS_THERE MCC_MODULE_NONE
#define MCC_MODULE_DOUBLES_THERE MCC_MODULE_NONE
#elif defined(MCC_MODULE_NO_DOUBLE)
#define MCC_MODULE_FLOATS_THERE MCC_MODULE_THERE
#define MCC_MODULE_DOUBLES_THERE MCC_MODULE_NONE
#else
#define MCC_MODULE_FLOATS_THERE MCC_MODULE_THERE
#define MCC_MODULE_DOUBLES_THERE MCC_MODULE_THERE
#endif

#define MCC_MODULE_GIVEN                                                                                               \
    {                                                                                                                  \
        {                                                                                                              \
            MCC_MODULE_MEMORY(MCC_MODULE_THERE) MCC_MODULE_FLOATS(MCC_MODULE_FLOATS_THERE)                             \
                MCC_MODULE_DOUBLES(MCC_MODULE_DOUBLES_THERE) MCC_MODULE_SOFT(MCC_MODULE_THERE) NULL                    \
        }                                                                                                              \
    }

#endif /* MCC_MODULE_FUNCTIONS_H */
