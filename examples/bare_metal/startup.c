/* startup.c - the least that a Cortex-M needs before main: vectors, FPU, variables. And two calls to the debugger
 * (semihosting, which QEMU answers): a text, and the end of the program. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];
int main(void);
void start(void);
void fault(void);
void say(const char *text);
void leave(int failed);

/* The FPU (and on the M55 the vectors) are switched on before any compiled code runs. */
__asm__(".syntax unified\n"
        ".section .text.reset,\"ax\",%progbits\n"
        ".thumb_func\n"
        ".global reset\n"
        ".type reset,%function\n"
        "reset:\n"
        "    ldr r0, =0xE000ED88\n"
        "    ldr r1, =0x00F00000\n"
        "    str r1, [r0]\n"
        "    dsb\n"
        "    isb\n"
        "    bl start\n"
        "    .ltorg\n"
        ".section .vectors,\"a\",%progbits\n"
        "    .word stack_top, reset\n"
        "    .rept 14\n"
        "    .word fault\n"
        "    .endr\n"
        ".text\n");

static void semihost(uintptr_t operation, uintptr_t argument)
{
    register uintptr_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void say(const char *text) { semihost(0x04u, (uintptr_t)text); }

void leave(int failed)
{
    semihost(0x18u, failed ? 0x20023u : 0x20026u); /* run-time error, or end of the application */
    for (;;) {
    }
}

void fault(void)
{
    say("fault\n");
    leave(1);
}

void start(void)
{
    const uint32_t *from = data_load;
    uint32_t *to;
    for (to = data_start; to < data_end;) *to++ = *from++;
    for (to = bss_start; to < bss_end;) *to++ = 0u;
    leave(main());
}
