/* uart.c - a program that serves a model over the first UART of the machines that programs are linked for: mps2 boards, and
 * virt of RISC-V. */
#include "board.h"
#include "SERVE_H"

extern uint32_t bare_stack_limit[];

#if defined(__riscv)
#define REGISTER(offset) (*(volatile uint8_t *)(0x10000000u + (offset)))
#define HAS_COME() (REGISTER(5) & 1u)
#define IS_FULL() (!(REGISTER(5) & 32u))
#define START() ((void)0)
#else
#define REGISTER(offset) (*(volatile uint32_t *)(0x40004000u + (offset)))
#define HAS_COME() (REGISTER(4) & 2u)
#define IS_FULL() (REGISTER(4) & 1u)
#define SYSTICK(offset) (*(volatile uint32_t *)(0xE000E010u + (offset)))
#define START() (REGISTER(16) = 16u, REGISTER(8) = 3u, SYSTICK(4) = 0xFFFFFFu, SYSTICK(8) = 0u, SYSTICK(0) = 5u)
#endif

static int get(void *stream)
{
    (void)stream;
    while (!HAS_COME()) {
    }
    return (int)(REGISTER(0) & 255u);
}

static void put(void *stream, const uint8_t *bytes, size_t count)
{
    size_t i;
    (void)stream;
    for (i = 0; i < count; i++) {
        while (IS_FULL()) {
        }
        REGISTER(0) = bytes[i];
    }
}

#ifdef UPDATES
static MCC_ALIGNED(16) uint8_t room[UPDATES];

static mcc_status store(uint32_t offset, const uint8_t *bytes, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++) room[offset + i] = bytes[i];
    return MCC_OK;
}
#endif

#ifdef EEMBC
#define TIMER(offset) (*(volatile uint32_t *)(0x40000000u + (offset))) /* counts down, at 25 MHz */

static uint32_t microseconds(void *stream)
{
    (void)stream;
    return (0xFFFFFFFFu - TIMER(4)) / 25u;
}

int main(void)
{
    START();
    TIMER(4) = 0xFFFFFFFFu;
    TIMER(8) = 0xFFFFFFFFu;
    TIMER(0) = 1u;
    return (int)EEMBC(get, put, microseconds, (void *)0, (void *)0);
}
#else
int main(void)
{
    START();
    SERVE_STACK(bare_stack_limit);
#ifdef UPDATES
    SERVE_UPDATES(room, store);
#endif
    SERVE(get, put, (void *)0);
    return 0;
}
#endif
