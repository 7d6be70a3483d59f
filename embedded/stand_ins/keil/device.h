#include <stdint.h>
extern uint32_t SystemCoreClock;
void SystemCoreClockUpdate(void);
#define __NOP() __asm__ volatile("nop")
uint32_t SysTick_Config(uint32_t ticks);
#define __STACK_LIMIT __StackLimit
