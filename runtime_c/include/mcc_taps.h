/* mcc_taps.h - the table of a window: pointers to its taps, which kernels keep in scratch memory.
 *
 *     MCC_TAPS_OF_HOST(type, count);                        room for pointers to const type
 *     const type **const taps = MCC_TAPS(type, scratch);    the table, behind that
 *
 * Scratch memory has room for the pointers of the target. Those of a host that runs the same code for tests may be
 * longer: the table is in room on its stack instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_TAPS_H
#define MCC_TAPS_H

#include "mcc.h"

#if UINTPTR_MAX > 0xFFFFFFFFu
#define MCC_TAPS_OF_HOST(TYPE, COUNT) const TYPE *taps_of_host[COUNT]
#define MCC_TAPS(TYPE, SCRATCH) ((void)(SCRATCH), taps_of_host)
#else
#define MCC_TAPS_OF_HOST(TYPE, COUNT) struct mcc_taps_of_host
#define MCC_TAPS(TYPE, SCRATCH) ((const TYPE **)(void *)(SCRATCH))
#endif

#endif /* MCC_TAPS_H */
