#include <stdint.h>
int32_t k_msleep(int32_t ms);
void k_yield(void);
