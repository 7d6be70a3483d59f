/* mcc_pool.h - a small pool of POSIX threads for models compiled with --threads; nothing else needs it.
 *
 *     mcc_pool pool;
 *     if (mcc_pool_start(&pool, 2) == 0) kws_set_parallel(&m, mcc_pool_for, &pool);
 *     ...
 *     mcc_pool_stop(&pool);
 *
 * The thread that runs the model is one of the workers. The others wait busily for a while (a step of a network follows
 * the other within microseconds), then sleep. One run at a time may use a pool. Link with -pthread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_POOL_H
#define MCC_POOL_H

#if defined(__TINYC__)
#error "mcc_pool.h needs the atomic built-ins of gcc or clang: hand another parallel_for to <model>_set_parallel"
#endif

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#ifndef MCC_POOL_MOST
#define MCC_POOL_MOST 64 /* workers */
#endif
#ifndef MCC_POOL_PATIENCE
#define MCC_POOL_PATIENCE 1000000 /* looks for work before a worker goes to sleep: a millisecond or so */
#endif

typedef struct mcc_pool mcc_pool;

typedef struct mcc_pool_worker {
    mcc_pool *pool;
    ptrdiff_t number;
    pthread_t thread;
} mcc_pool_worker;

struct mcc_pool {
    mcc_pool_worker workers[MCC_POOL_MOST]; /* worker 0 is whoever calls mcc_pool_for */
    ptrdiff_t size, count, busy;            /* workers; indices of the job; other workers that are at it */
    void (*body)(void *context, ptrdiff_t index);
    void *context;
    unsigned job; /* how many there were; one without a body ends the pool */
    int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};

#define MCC_POOL_LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define MCC_POOL_ADD(x, n) (void)__atomic_add_fetch(&(x), (n), __ATOMIC_SEQ_CST)

static inline void mcc_pool_take(mcc_pool *pool, ptrdiff_t first)
{
    for (ptrdiff_t index = first; index < pool->count; index += pool->size) pool->body(pool->context, index);
}

static inline void *mcc_pool_work(void *argument)
{
    mcc_pool_worker *const worker = (mcc_pool_worker *)argument;
    mcc_pool *const pool = worker->pool;
    for (unsigned done = 0;; ++done) {
        for (int look = 0; MCC_POOL_LOAD(pool->job) == done && look < MCC_POOL_PATIENCE; ++look) {
            if (look % 256 == 255) (void)sched_yield();
        }
        if (MCC_POOL_LOAD(pool->job) == done) {
            (void)pthread_mutex_lock(&pool->mutex);
            MCC_POOL_ADD(pool->sleepers, 1);
            while (MCC_POOL_LOAD(pool->job) == done) (void)pthread_cond_wait(&pool->wake, &pool->mutex);
            MCC_POOL_ADD(pool->sleepers, -1);
            (void)pthread_mutex_unlock(&pool->mutex);
        }
        if (pool->body == NULL) return NULL;
        mcc_pool_take(pool, worker->number);
        MCC_POOL_ADD(pool->busy, -1);
    }
}

static inline void mcc_pool_begin(mcc_pool *pool)
{
    MCC_POOL_ADD(pool->busy, pool->size - 1);
    MCC_POOL_ADD(pool->job, 1);
    if (MCC_POOL_LOAD(pool->sleepers) > 0) {
        (void)pthread_mutex_lock(&pool->mutex);
        (void)pthread_cond_broadcast(&pool->wake);
        (void)pthread_mutex_unlock(&pool->mutex);
    }
}

/* An mcc_parallel_for. */
static inline void mcc_pool_for(void *of, ptrdiff_t count, void (*body)(void *context, ptrdiff_t index), void *context)
{
    mcc_pool *const pool = (mcc_pool *)of;
    pool->body = body;
    pool->context = context;
    pool->count = count;
    mcc_pool_begin(pool);
    mcc_pool_take(pool, 0);
    for (int look = 1; MCC_POOL_LOAD(pool->busy) > 0; ++look) {
        if (look % 1024 == 0) (void)sched_yield();
    }
}

static inline void mcc_pool_stop(mcc_pool *pool)
{
    pool->body = NULL;
    mcc_pool_begin(pool);
    for (ptrdiff_t number = 1; number < pool->size; ++number) (void)pthread_join(pool->workers[number].thread, NULL);
    (void)pthread_cond_destroy(&pool->wake);
    (void)pthread_mutex_destroy(&pool->mutex);
}

/* 0, or what pthread_create says; then there is no pool. */
static inline int mcc_pool_start(mcc_pool *pool, ptrdiff_t size)
{
    int status = 0;
    pool->size = 1;
    pool->count = pool->busy = 0;
    pool->body = NULL;
    pool->context = NULL;
    pool->job = 0;
    pool->sleepers = 0;
    (void)pthread_mutex_init(&pool->mutex, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    while (status == 0 && pool->size < size && pool->size < MCC_POOL_MOST) {
        mcc_pool_worker *const worker = &pool->workers[pool->size];
        worker->pool = pool;
        worker->number = pool->size;
        status = pthread_create(&worker->thread, NULL, mcc_pool_work, worker);
        if (status == 0) pool->size++;
    }
    if (status != 0) mcc_pool_stop(pool);
    return status;
}

#endif
