#include <stdbool.h>
bool stdio_usb_connected(void);
