#pragma once
#include <stddef.h>
#include <stdint.h>
struct Printer {
  void begin(unsigned long);
  int available();
  int read();
  size_t write(const uint8_t *, size_t);
  operator bool();
};
extern Printer Serial;
void delay(unsigned long);
unsigned long micros();
void yield();
