/* mcc_file.h - reads the blob of a model whose weights come through a window (--weights-window) from its file, by a
 * POSIX thread that reads while the model computes; where the model has to wait, it reads too. Nothing else needs it.
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
#ifndef MCC_FILE_PART
#define MCC_FILE_PART 262144 /* bytes that one thread reads at a time */
#endif

enum { MCC_FILE_THREAD, MCC_FILE_MODEL }; /* who reads, each with a position of its own in the file */

typedef struct mcc_file {
    int descriptors[2], taken[2], failed;
    int left;     /* parts of the piece that nobody has begun to read; whoever takes one off it reads it */
    int pending;  /* parts that are not there yet; nothing below changes while there are any */
    int sleepers; /* threads that wait for other counts */
    int parts;
    uint8_t *to; /* NULL: the thread has nothing more to do */
    uint64_t from;
    size_t bytes;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} mcc_file;

#define MCC_FILE_LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define MCC_FILE_STORE(x, n) __atomic_store_n(&(x), n, __ATOMIC_SEQ_CST)
#define MCC_FILE_ADD(x, n) __atomic_add_fetch(&(x), n, __ATOMIC_SEQ_CST)
#define MCC_FILE_SWAP(x, was, n) __atomic_compare_exchange_n(&(x), &was, n, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* Returns when the count is 0, or when it is not. */
static inline void mcc_file_until(mcc_file *file, int *count, int zero)
{
    for (int look = 0; (MCC_FILE_LOAD(*count) == 0) != zero && look < MCC_FILE_PATIENCE; ++look) {
        if (look % 256 == 255) (void)sched_yield();
    }
    if ((MCC_FILE_LOAD(*count) == 0) == zero) return;
    (void)pthread_mutex_lock(&file->mutex);
    (void)MCC_FILE_ADD(file->sleepers, 1);
    while ((MCC_FILE_LOAD(*count) == 0) != zero) (void)pthread_cond_wait(&file->wake, &file->mutex);
    (void)MCC_FILE_ADD(file->sleepers, -1);
    (void)pthread_mutex_unlock(&file->mutex);
}

static inline void mcc_file_wake(mcc_file *file)
{
    if (MCC_FILE_LOAD(file->sleepers) == 0) return;
    (void)pthread_mutex_lock(&file->mutex);
    (void)pthread_cond_broadcast(&file->wake);
    (void)pthread_mutex_unlock(&file->mutex);
}

/* Takes a part of the piece; 0: all are taken. */
static inline int mcc_file_take(mcc_file *file)
{
    int left = MCC_FILE_LOAD(file->left);
    while (left > 0 && !MCC_FILE_SWAP(file->left, left, left - 1)) {
    }
    return left;
}

/* Reads a part that was taken: the thread from the front of the piece, the model from its end, so that each writes the
 * same bytes of the arena most times, and finds them in its own cache. */
static inline void mcc_file_read(mcc_file *file, int who)
{
    const int taken = file->taken[who]++;
    const size_t first = (size_t)(who == MCC_FILE_THREAD ? taken : file->parts - 1 - taken) * MCC_FILE_PART;
    const size_t rest = file->bytes - first;
    const size_t bytes = rest < MCC_FILE_PART ? rest : MCC_FILE_PART;
    int failed = lseek(file->descriptors[who], (off_t)(file->from + first), SEEK_SET) < 0;
    for (size_t done = 0; done < bytes && !failed;) {
        const ssize_t got = read(file->descriptors[who], &file->to[first + done], bytes - done);
        failed = got <= 0;
        if (got > 0) done += (size_t)got;
    }
    if (failed) MCC_FILE_STORE(file->failed, 1);
    if (MCC_FILE_ADD(file->pending, -1) == 0) mcc_file_wake(file);
}

static inline void *mcc_file_work(void *user)
{
    mcc_file *const file = (mcc_file *)user;
    for (;;) {
        mcc_file_until(file, &file->left, 0);
        const int part = mcc_file_take(file);
        if (part != 0 && file->to == NULL) return NULL;
        if (part != 0) mcc_file_read(file, MCC_FILE_THREAD);
    }
}

/* Reads what the thread has not begun to, then waits for what it has. */
static inline int mcc_file_wait(void *user)
{
    mcc_file *const file = (mcc_file *)user;
    for (int part = mcc_file_take(file); part != 0; part = mcc_file_take(file)) {
        mcc_file_read(file, MCC_FILE_MODEL);
    }
    mcc_file_until(file, &file->pending, 1);
    return MCC_FILE_LOAD(file->failed);
}

static inline int mcc_file_begin(void *user, void *to, uint64_t from, size_t bytes)
{
    mcc_file *const file = (mcc_file *)user;
    (void)mcc_file_wait(file); /* where a run was given up */
    file->to = (uint8_t *)to;
    file->from = from;
    file->bytes = bytes;
    file->parts = to == NULL ? 1 : (int)((bytes + MCC_FILE_PART - 1u) / MCC_FILE_PART);
    file->taken[0] = file->taken[1] = 0;
    MCC_FILE_STORE(file->failed, 0);
    MCC_FILE_STORE(file->pending, file->parts);
    MCC_FILE_STORE(file->left, file->parts);
    mcc_file_wake(file);
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
    file->failed = file->left = file->pending = file->sleepers = 0;
    file->descriptors[MCC_FILE_THREAD] = open(path, O_RDONLY);
    if (file->descriptors[MCC_FILE_THREAD] < 0) return 1;
    file->descriptors[MCC_FILE_MODEL] = open(path, O_RDONLY);
    if (file->descriptors[MCC_FILE_MODEL] >= 0) {
        (void)pthread_mutex_init(&file->mutex, NULL);
        (void)pthread_cond_init(&file->wake, NULL);
        if (pthread_create(&file->thread, NULL, mcc_file_work, file) == 0) return 0;
        (void)close(file->descriptors[MCC_FILE_MODEL]);
    }
    (void)close(file->descriptors[MCC_FILE_THREAD]);
    return 1;
}

static inline void mcc_file_close(mcc_file *file)
{
    (void)mcc_file_begin(file, NULL, 0u, 0u);
    (void)pthread_join(file->thread, NULL);
    (void)pthread_cond_destroy(&file->wake);
    (void)pthread_mutex_destroy(&file->mutex);
    (void)close(file->descriptors[MCC_FILE_MODEL]);
    (void)close(file->descriptors[MCC_FILE_THREAD]);
}

#endif /* MCC_FILE_H */
