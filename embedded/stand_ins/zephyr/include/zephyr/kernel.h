#pragma once
#include <stdint.h>
int32_t k_msleep(int32_t ms);
void k_yield(void);
int64_t k_uptime_ticks(void);
uint64_t k_ticks_to_us_floor64(uint64_t ticks);
struct k_thread {
    struct {
        uintptr_t start;
    } stack_info;
};
struct k_thread *k_current_get(void);
#include <stddef.h>
struct k_mem_slab {
    int id;
};
#define K_MEM_SLAB_DEFINE_STATIC(name, bytes, count, align) static struct k_mem_slab name
void k_mem_slab_free(struct k_mem_slab *slab, void *block);
typedef const struct k_thread *k_tid_t;
#define K_PRIO_COOP(level) (-(level))
#define K_TICKS_FOREVER (-1)
#define K_THREAD_DEFINE(name, stack, entry, a, b, c, priority, options, delay) \
    void (*const name##_entry)(void *, void *, void *) = entry; \
    extern k_tid_t name
void k_thread_start(k_tid_t thread);
