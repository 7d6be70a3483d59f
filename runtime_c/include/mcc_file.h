/* mcc_file.h - reads the blob of a model whose weights come through a window (--weights-window) from its file, by a
 * POSIX thread that reads while the model computes; nothing else needs it.
 *
 *     static mcc_file file;
 *     if (mcc_file_open(&file, "kws.mcb") == 0) {
 *         const mcc_reader reader = mcc_file_reader(&file);
 *         kws_init_from(&m, arena, sizeof arena, &reader);
 *     }
 *     ...
 *     mcc_file_close(&file);
 *
 * Its thread looks at `file` until mcc_file_close, also while a program ends: a local of main() has to be closed before
 * main() returns, a static one need not be.
 *
 * Both threads wait busily for a while (one piece follows the other within microseconds), then sleep. One model at a
 * time may use a file. Link with -pthread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_FILE_H
#define MCC_FILE_H

#if defined(__TINYC__)
#error "mcc_file.h needs the atomic built-ins of gcc or clang: hand another mcc_reader to <model>_init_from"
#endif

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include "mcc_window.h"

#ifndef MCC_FILE_PATIENCE
#define MCC_FILE_PATIENCE 100000 /* looks before a thread goes to sleep: a tenth of a millisecond or so */
#endif

typedef struct mcc_file {
    int descriptor, failed;
    int busy;     /* is there a piece to read? */
    int sleepers; /* threads that wait for another answer to that */
    uint8_t *to;  /* NULL: the thread has nothing more to do */
    uint64_t from;
    size_t bytes;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} mcc_file;

#define MCC_FILE_LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define MCC_FILE_ADD(x, n) (void)__atomic_add_fetch(&(x), (n), __ATOMIC_SEQ_CST)

/* Returns when `busy` is that. */
static inline void mcc_file_until(mcc_file *file, int busy)
{
    for (int look = 0; MCC_FILE_LOAD(file->busy) != busy && look < MCC_FILE_PATIENCE; ++look) {
        if (look % 256 == 255) (void)sched_yield();
    }
    if (MCC_FILE_LOAD(file->busy) == busy) return;
    (void)pthread_mutex_lock(&file->mutex);
    MCC_FILE_ADD(file->sleepers, 1);
    while (MCC_FILE_LOAD(file->busy) != busy) (void)pthread_cond_wait(&file->wake, &file->mutex);
    MCC_FILE_ADD(file->sleepers, -1);
    (void)pthread_mutex_unlock(&file->mutex);
}

static inline void mcc_file_turn(mcc_file *file, int busy)
{
    MCC_FILE_ADD(file->busy, busy ? 1 : -1);
    if (MCC_FILE_LOAD(file->sleepers) == 0) return;
    (void)pthread_mutex_lock(&file->mutex);
    (void)pthread_cond_broadcast(&file->wake);
    (void)pthread_mutex_unlock(&file->mutex);
}

static inline void *mcc_file_work(void *user)
{
    mcc_file *const file = (mcc_file *)user;
    for (;;) {
        mcc_file_until(file, 1);
        if (file->to == NULL) return NULL;
        file->failed = lseek(file->descriptor, (off_t)file->from, SEEK_SET) < 0;
        for (size_t done = 0; done < file->bytes && !file->failed;) {
            const ssize_t got = read(file->descriptor, &file->to[done], file->bytes - done);
            file->failed = got <= 0;
            if (got > 0) done += (size_t)got;
        }
        mcc_file_turn(file, 0);
    }
}

static inline int mcc_file_wait(void *user)
{
    mcc_file *const file = (mcc_file *)user;
    mcc_file_until(file, 0);
    return file->failed;
}

static inline int mcc_file_begin(void *user, void *to, uint64_t from, size_t bytes)
{
    mcc_file *const file = (mcc_file *)user;
    mcc_file_until(file, 0); /* where a run was given up */
    file->to = (uint8_t *)to;
    file->from = from;
    file->bytes = bytes;
    mcc_file_turn(file, 1);
    return 0;
}

static inline mcc_reader mcc_file_reader(mcc_file *file)
{
    mcc_reader reader;
    reader.begin = mcc_file_begin;
    reader.wait = mcc_file_wait;
    reader.user = file;
    return reader;
}

/* 0, or not: then there is nothing to close. */
static inline int mcc_file_open(mcc_file *file, const char *path)
{
    file->failed = file->busy = file->sleepers = 0;
    file->descriptor = open(path, O_RDONLY);
    if (file->descriptor < 0) return 1;
    (void)pthread_mutex_init(&file->mutex, NULL);
    (void)pthread_cond_init(&file->wake, NULL);
    if (pthread_create(&file->thread, NULL, mcc_file_work, file) == 0) return 0;
    (void)close(file->descriptor);
    return 1;
}

static inline void mcc_file_close(mcc_file *file)
{
    (void)mcc_file_begin(file, NULL, 0u, 0u);
    (void)pthread_join(file->thread, NULL);
    (void)pthread_cond_destroy(&file->wake);
    (void)pthread_mutex_destroy(&file->mutex);
    (void)close(file->descriptor);
}

#endif /* MCC_FILE_H */
