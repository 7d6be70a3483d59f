/* hosted.c - the same for programs that run under an operating system. */
#include <stdio.h>
#include <stdlib.h>

#include "board.h"

static FILE *files[4];

int board_open(const char *path, int for_writing)
{
    int number;
    for (number = 0; number < 4; number++) {
        if (files[number] == NULL) {
            files[number] = fopen(path, for_writing ? "wb" : "rb");
            return files[number] == NULL ? -1 : number;
        }
    }
    return -1;
}

size_t board_read(int file, void *to, size_t bytes) { return fread(to, 1, bytes, files[file]); }

size_t board_write(int file, const void *from, size_t bytes) { return fwrite(from, 1, bytes, files[file]); }

void board_exit(int code) { exit(code); }

void board_paint_stack(void) {}

long board_stack_used(void) { return -1; }
