/* mcc_copy.h - copies between memories, which a DMA may make (MCC_COPY_BEGIN in mcc_port.h). At most one is on its way
 * at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_COPY_H
#define MCC_COPY_H

#include <string.h>

#include "mcc.h"

#ifndef MCC_COPY_BEGIN
#define MCC_COPY_BEGIN(to, from, bytes) (memcpy(to, from, bytes), 0)
#endif
#ifndef MCC_COPY_WAIT
#define MCC_COPY_WAIT() 0
#endif

/* Begins to copy; 0 if that went well. Until it has been waited for, nobody uses `to`, or changes `from`. */
MCC_INLINE int mcc_copy_begin(void *to, const void *from, size_t bytes)
{
#ifdef MCC_LATE_COPIES
    (void)from;
    (void)memset(to, 0xA5, bytes);
    return 0;
#else
    return MCC_COPY_BEGIN(to, from, bytes);
#endif
}

/* Returns when what was begun last, which was this, is there. */
MCC_INLINE int mcc_copy_wait(void *to, const void *from, size_t bytes)
{
#ifdef MCC_LATE_COPIES
    (void)memcpy(to, from, bytes);
    return 0;
#else
    (void)to;
    (void)from;
    (void)bytes;
    return MCC_COPY_WAIT();
#endif
}

/* Copies and waits for it. */
MCC_INLINE int mcc_copy(void *to, const void *from, size_t bytes)
{
    const int failed = mcc_copy_begin(to, from, bytes);
    return failed != 0 ? failed : mcc_copy_wait(to, from, bytes);
}

/* What is on its way, of copies that follow one another; 0 bytes: nothing is. */
typedef struct mcc_copying {
    void *to;
    const void *from;
    size_t bytes;
} mcc_copying;

/* Returns when nothing is on its way any more; 0 if that went well. */
MCC_INLINE int mcc_copy_settle(mcc_copying *c)
{
    const size_t bytes = c->bytes;
    c->bytes = 0u;
    return bytes != 0u ? mcc_copy_wait(c->to, c->from, bytes) : 0;
}

/* Begins the next copy, behind the one before. */
MCC_INLINE int mcc_copy_next(mcc_copying *c, void *to, const void *from, size_t bytes)
{
    int failed = mcc_copy_settle(c);
    if (failed == 0) failed = mcc_copy_begin(to, from, bytes);
    if (failed != 0) return failed;
    c->to = to;
    c->from = from;
    c->bytes = bytes;
    return 0;
}

#endif /* MCC_COPY_H */
