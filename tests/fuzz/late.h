/* late.h - copies as a DMA may make them: what is copied is there no sooner than it is waited for, and before that other
 * numbers are. One at a time: one that begins while another is on its way fails, and so does waiting for none. */
#ifndef FUZZ_LATE_H
#define FUZZ_LATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct late_copy {
    void *to; /* NULL: nothing is on its way */
    const void *from;
    size_t bytes;
} late_copy;

static inline int late_begin(late_copy *copy, void *to, const void *from, size_t bytes)
{
    if (copy->to != NULL) return 1;
    (void)memset(to, 0xA5, bytes);
    copy->to = to;
    copy->from = from;
    copy->bytes = bytes;
    return 0;
}

static inline int late_wait(late_copy *copy)
{
    if (copy->to == NULL) return 1;
    (void)memcpy(copy->to, copy->from, copy->bytes);
    copy->to = NULL;
    return 0;
}

/* The copy of this program that is on its way. */
static inline late_copy *late_one(void)
{
    static late_copy one;
    return &one;
}

#define MCC_COPY_BEGIN(to, from, bytes) late_begin(late_one(), to, from, bytes)
#define MCC_COPY_WAIT() late_wait(late_one())

#endif /* FUZZ_LATE_H */
