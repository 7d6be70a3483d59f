/* mcc_cores.h - two cores without an operating system for models compiled with --threads 2; nothing else needs it.
 *
 *     static mcc_cores cores;
 *     mcc_cores_work(&cores);                         the second core, started as its chip says, until it is stopped
 *     kws_set_parallel(&m, mcc_cores_for, &cores);    the first one, which then runs the model
 *
 * Every other piece of a step is the second core's, and no step ends before both have done. Each word that the cores
 * look at is written by one of them, so loads and stores are enough, as on Cortex-M0+. One run at a time may use it.
 *
 *   MCC_CORES_WAKE()  After such a word is written; nothing by default. Where an event of one core wakes the other
 *                     (RP2040), __SEV().
 *   MCC_CORES_IDLE()  While a core waits; nothing by default, so it looks again. There, __WFE().
 *
 * Where both have caches of their own that do not see each other's writes, put struct, arena and model where neither
 * caches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_CORES_H
#define MCC_CORES_H

#if defined(__TINYC__)
#error "mcc_cores.h needs the atomic built-ins of gcc or clang: hand another parallel_for to <model>_set_parallel"
#endif

#include <stddef.h>
#include <stdint.h>

#ifndef MCC_CORES_WAKE
#define MCC_CORES_WAKE() ((void)0)
#endif
#ifndef MCC_CORES_IDLE
#define MCC_CORES_IDLE() ((void)0)
#endif

typedef struct mcc_cores {
    void (*body)(void *context, ptrdiff_t index); /* NULL: the second core has nothing more to do */
    void *context;
    ptrdiff_t count;
    uint32_t asked; /* steps, by the first core */
    uint32_t done;  /* by the second one */
} mcc_cores;

#define MCC_CORES_LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define MCC_CORES_STORE(x, value) __atomic_store_n(&(x), (value), __ATOMIC_RELEASE)

static inline void mcc_cores_work(mcc_cores *cores)
{
    for (uint32_t done = cores->done;;) {
        int more;
        while (MCC_CORES_LOAD(cores->asked) == done) MCC_CORES_IDLE();
        more = cores->body != NULL;
        for (ptrdiff_t index = 1; more && index < cores->count; index += 2) cores->body(cores->context, index);
        MCC_CORES_STORE(cores->done, ++done);
        MCC_CORES_WAKE();
        if (!more) return;
    }
}

/* An mcc_parallel_for. */
static inline void mcc_cores_for(void *of, ptrdiff_t count, void (*body)(void *context, ptrdiff_t index), void *context)
{
    mcc_cores *const cores = (mcc_cores *)of;
    const uint32_t asked = cores->asked + 1u;
    cores->body = body;
    cores->context = context;
    cores->count = count;
    MCC_CORES_STORE(cores->asked, asked);
    MCC_CORES_WAKE();
    for (ptrdiff_t index = 0; body != NULL && index < count; index += 2) body(context, index);
    while (MCC_CORES_LOAD(cores->done) != asked) MCC_CORES_IDLE();
}

/* Ends mcc_cores_work on the second core. */
static inline void mcc_cores_stop(mcc_cores *cores)
{
    mcc_cores_for(cores, 0, NULL, NULL);
}

#endif
