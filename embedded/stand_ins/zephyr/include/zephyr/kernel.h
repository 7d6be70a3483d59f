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
