/* late_blob.h - a reader (mcc_window.h) of a blob that no pointer of the model reaches; pieces are there no sooner than they
 * are waited for (late.h). The header of the model comes first. */
#ifndef FUZZ_LATE_BLOB_H
#define FUZZ_LATE_BLOB_H

#include "late.h"

typedef struct late_blob {
    const uint8_t *bytes;
    size_t size;
} late_blob;

static inline int late_blob_begin(void *user, void *to, uint64_t from, size_t bytes)
{
    const late_blob *const blob = (const late_blob *)user;
    if (from > blob->size || bytes > blob->size - from) return 1;
    return late_begin(late_one(), to, &blob->bytes[(size_t)from], bytes);
}

static inline int late_blob_wait(void *user)
{
    (void)user;
    return late_wait(late_one());
}

/* Of one model, which reads it until the next call. */
static inline const mcc_reader *late_blob_reader(const void *bytes, size_t size)
{
    static late_blob blob;
    static mcc_reader reader;
    blob.bytes = (const uint8_t *)bytes;
    blob.size = size;
    reader.begin = late_blob_begin;
    reader.wait = late_blob_wait;
    reader.user = &blob;
    return &reader;
}

#endif /* FUZZ_LATE_BLOB_H */
