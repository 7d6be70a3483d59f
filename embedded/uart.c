/* uart.c - a program that serves a model over the first UART of the mps2 boards. */
#include "board.h"
#include "SERVE_H"

#define UART(offset) (*(volatile uint32_t *)(0x40004000u + (offset)))

static int get(void *stream)
{
    (void)stream;
    while (!(UART(4) & 2u)) {
    }
    return (int)(UART(0) & 255u);
}

static void put(void *stream, const uint8_t *bytes, size_t count)
{
    size_t i;
    (void)stream;
    for (i = 0; i < count; i++) {
        while (UART(4) & 1u) {
        }
        UART(0) = bytes[i];
    }
}

int main(void)
{
    UART(16) = 16u;
    UART(8) = 3u;
    SERVE(get, put, (void *)0);
    return 0;
}
