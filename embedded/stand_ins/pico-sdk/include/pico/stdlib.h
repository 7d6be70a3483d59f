#include <stdint.h>
bool stdio_init_all(void);
int getchar_timeout_us(uint32_t us);
int putchar_raw(int byte);
void stdio_flush(void);
void sleep_ms(uint32_t ms);
uint32_t time_us_32(void);
#define tight_loop_contents() ((void)0)
