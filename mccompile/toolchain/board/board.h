/* board.h - what a program needs of the machine it runs on; behind it is semihosting (bare.c) or an operating system
 * (hosted.c). Files are opened in the folder where the emulator runs. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

int board_open(const char *path, int for_writing);             /* below 0: it cannot be opened */
size_t board_read(int file, void *to, size_t bytes);           /* how many bytes came */
size_t board_write(int file, const void *from, size_t bytes);  /* how many bytes went */
void board_exit(int code);

/* The stack below the caller is painted; afterwards, from the same place, how many bytes of it were written to. -1 where
 * the machine has no stack of a known size. */
void board_paint_stack(void);
long board_stack_used(void);

/* The counter of instructions (count.c) counts what runs between these two. */
void board_count_begin(void);
void board_count_end(void);

#endif
