/* bare.c - start-up and semihosting for emulated boards without an operating system: Cortex-M and RISC-V. The linker
 * script of the board (written by boards.py) says where things lie. */
#include <string.h>

#include "board.h"

#define PAINT 0xC5C5C5C5
#define QUOTED(text) #text
#define TEXT(macro) QUOTED(macro)

extern uint32_t bare_stack_limit[], bare_stack_top[];
extern uint8_t bare_data_load[], bare_data_start[], bare_data_end[], bare_bss_start[], bare_bss_end[];

int main(void);
void bare_start(void);
void bare_fault(void);

#if defined(__arm__)

/* FPU and vectors are switched on before any compiled code: compilers use them even to copy memory. The core before Arm v7 has
 * neither, and takes the writes for nothing. */
__asm__(".syntax unified\n"
        ".section .text.bare_reset,\"ax\",%progbits\n"
        ".thumb_func\n"
        ".global bare_reset\n"
        ".type bare_reset,%function\n"
        "bare_reset:\n"
        "    ldr r0, =0xE000ED88\n"
        "    ldr r1, =0x00F00000\n"
        "    str r1, [r0]\n"
        "    dsb\n"
        "    isb\n"
        "    bl bare_start\n"
        "    .ltorg\n"
        ".section .vectors,\"a\",%progbits\n"
        "    .word bare_stack_top, bare_reset\n"
        "    .rept 14\n"
        "    .word bare_fault\n"
        "    .endr\n"
        ".section .text.board_paint_stack,\"ax\",%progbits\n"
        ".thumb_func\n"
        ".global board_paint_stack\n"
        ".type board_paint_stack,%function\n"
        "board_paint_stack:\n"
        "    ldr r0, =bare_stack_limit\n"
        "    ldr r1, =" TEXT(PAINT) "\n"
        "1:  str r1, [r0]\n"
        "    adds r0, #4\n"
        "    cmp r0, sp\n"
        "    blo 1b\n"
        "    bx lr\n"
        "    .ltorg\n"
        ".text\n");

static intptr_t semihost(intptr_t operation, const void *block)
{
    register intptr_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

#elif defined(__riscv)

__asm__(".section .vectors,\"ax\",%progbits\n"
        ".global bare_reset\n"
        ".type bare_reset,%function\n"
        "bare_reset:\n"
        "    .option push\n"
        "    .option norelax\n"
        "    la gp, __global_pointer$\n" /* linkers address small data by it */
        "    .option pop\n"
        "    la sp, bare_stack_top\n"
        "    la t0, bare_fault\n"
        "    .word 0x30529073\n" /* csrw mtvec, t0, which assemblers want an extension for */
        "    j bare_start\n"
        ".section .text.board_paint_stack,\"ax\",%progbits\n"
        ".global board_paint_stack\n"
        ".type board_paint_stack,%function\n"
        "board_paint_stack:\n"
        "    la t0, bare_stack_limit\n"
        "    li t1, " TEXT(PAINT) "\n"
        "1:  sw t1, 0(t0)\n"
        "    addi t0, t0, 4\n"
        "    bltu t0, sp, 1b\n"
        "    ret\n"
        ".text\n");

/* The three instructions are the mark of a semihosting call; they must be 4 bytes each and lie in one page. */
static intptr_t semihost(intptr_t operation, const void *block)
{
    register intptr_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = block;
    __asm__ volatile(".option push\n"
                     ".option norvc\n"
                     ".balign 16\n"
                     "slli x0, x0, 0x1f\n"
                     "ebreak\n"
                     "srai x0, x0, 7\n"
                     ".option pop\n"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
}

#else
#error "no start-up code for this machine"
#endif

void bare_start(void)
{
    memcpy(bare_data_start, bare_data_load, (size_t)(bare_data_end - bare_data_start));
    memset(bare_bss_start, 0, (size_t)(bare_bss_end - bare_bss_start));
    board_exit(main());
}

__attribute__((aligned(4))) void bare_fault(void)
{
    (void)semihost(0x04, "the core took a fault or another exception\n"); /* SYS_WRITE0 */
    board_exit(99);
}

void board_exit(int code)
{
    uintptr_t block[2] = {0x20026u, (uintptr_t)code}; /* the application ended */
    (void)semihost(0x20, block);                      /* SYS_EXIT_EXTENDED */
    for (;;) {
    }
}

int board_open(const char *path, int for_writing)
{
    uintptr_t block[3];
    block[0] = (uintptr_t)path;
    block[1] = for_writing ? 5u : 1u; /* "wb", "rb" */
    block[2] = strlen(path);
    return (int)semihost(0x01, block);
}

size_t board_read(int file, void *to, size_t bytes)
{
    uintptr_t block[3] = {(uintptr_t)file, (uintptr_t)to, bytes};
    return bytes - (size_t)semihost(0x06, block);
}

size_t board_write(int file, const void *from, size_t bytes)
{
    uintptr_t block[3] = {(uintptr_t)file, (uintptr_t)from, bytes};
    return bytes - (size_t)semihost(0x05, block);
}

/* A leaf that is never inlined: its frame begins where the stack of the caller ends, at the canonical frame address.
 * board_paint_stack above has no frame, so all below its caller is painted. */
__attribute__((noinline)) long board_stack_used(void)
{
    const volatile uint32_t *p = bare_stack_limit;
    while (p < (const volatile uint32_t *)__builtin_dwarf_cfa() && *p == PAINT) p++;
    return (long)((uintptr_t)__builtin_dwarf_cfa() - (uintptr_t)p);
}
