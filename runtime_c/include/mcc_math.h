/* mcc_math.h - all scalar arithmetic of the runtime. Functions that are not used cost nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_MATH_H
#define MCC_MATH_H

#include "mcc_float.h"
#include "mcc_int.h"
#include "mcc_narrow.h"
#include "mcc_quant.h"

#endif /* MCC_MATH_H */
