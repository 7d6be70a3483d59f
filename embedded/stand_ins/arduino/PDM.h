#include <Arduino.h>
struct PDMReader {
  int begin(int, int);
  int available();
  int read(void *, size_t);
  void onReceive(void (*)());
  void setBufferSize(int);
};
extern PDMReader PDM;
