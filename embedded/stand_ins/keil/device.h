#include <stdint.h>
extern uint32_t SystemCoreClock;
void SystemCoreClockUpdate(void);
#define __NOP() __asm__ volatile("nop")
