#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
enum PinName { USBTX, USBRX };
struct BufferedSerial {
  BufferedSerial(PinName, PinName, int);
  ssize_t read(void *, size_t);
  ssize_t write(const void *, size_t);
};
void thread_sleep_for(uint32_t);
struct osRtxThread_t {
  void *stack_mem;
};
void *osThreadGetId();
uint32_t us_ticker_read();
