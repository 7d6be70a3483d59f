/* mcc_window.h - weights that a run copies into the arena piece by piece (--weights-window), while it computes with the
 * piece before: from a file, an SD card, a memory that is slow or that nothing can address. Each byte is read once in a
 * run, from the first to the last.
 *
 *     static int begin(void *user, void *to, uint64_t from, size_t bytes)
 *     {
 *         return flash_start_dma(user, to, from, bytes);
 *     }
 *     static int wait(void *user) { return flash_finish_dma(user); }
 *     ...
 *     const mcc_reader reader = {begin, wait, &flash};
 *     net_init_from(&m, arena, sizeof arena, &reader);
 *
 * A blob that lies in memory is copied by MCC_COPY_BEGIN (mcc_port.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_WINDOW_H
#define MCC_WINDOW_H

#include "mcc.h"
#include "mcc_copy.h"

/* How a program reads the blob. At most one piece is on its way at a time; but where a run was given up between two
 * slices (<model>_run_steps), `begin` may come before the end of the piece before, and lets that end first. */
typedef struct mcc_reader {
    /* Begins to read `bytes` bytes from byte `from` of the blob to `to`, or reads them at once; 0 if that went well. */
    int (*begin)(void *user, void *to, uint64_t from, size_t bytes);
    /* Returns when they are there, 0 if that went well; NULL: they are when `begin` returns. */
    int (*wait)(void *user);
    void *user;
} mcc_reader;

/* Where a model has its weights from. */
typedef struct mcc_window {
    mcc_reader reader;
    const uint8_t *memory; /* the blob, where there is no reader */
    uint64_t data;         /* where its data section begins */
} mcc_window;

/* Begins to bring a piece of the data section. */
MCC_INLINE int mcc_window_begin(const mcc_window *w, void *to, uint64_t from, size_t bytes)
{
    if (w->reader.begin != NULL) return w->reader.begin(w->reader.user, to, w->data + from, bytes);
    return mcc_copy_begin(to, &w->memory[(size_t)(w->data + from)], bytes);
}

/* Returns when the piece that was begun last, which was this one, is there. */
MCC_INLINE int mcc_window_wait(const mcc_window *w, void *to, uint64_t from, size_t bytes)
{
    if (w->reader.begin != NULL) return w->reader.wait != NULL ? w->reader.wait(w->reader.user) : 0;
    return mcc_copy_wait(to, &w->memory[(size_t)(w->data + from)], bytes);
}

/* Brings a piece and waits for it. */
MCC_INLINE int mcc_window_read(const mcc_window *w, void *to, uint64_t from, size_t bytes)
{
    const int failed = mcc_window_begin(w, to, from, bytes);
    return failed != 0 ? failed : mcc_window_wait(w, to, from, bytes);
}

#endif /* MCC_WINDOW_H */
