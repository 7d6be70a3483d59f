/* Calls kernels on memory that comes from stdin and gives it back on stdout; see harness.py. Every block is an allocation of
 * its own and exactly as large as promised, so AddressSanitizer sees each byte too many. */
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"

static void stop(const char *why)
{
    fprintf(stderr, "harness: %s\n", why);
    exit(2);
}

int main(void)
{
    size_t number;
    for (number = 0; number < sizeof cases / sizeof cases[0]; number++) {
        const struct harness_case *const c = &cases[number];
        uint8_t *block[HARNESS_BLOCKS];
        int i;
        for (i = 0; i < c->blocks; i++) {
            void *memory = NULL;
            if (posix_memalign(&memory, c->align[i], c->bytes[i]) != 0) stop("no memory");
            block[i] = (uint8_t *)memory;
            if (fread(block[i], 1, c->bytes[i], stdin) != c->bytes[i]) stop("stdin ends too early");
        }
        c->call(block);
        for (i = 0; i < c->blocks; i++) {
            fwrite(block[i], 1, c->bytes[i], stdout);
            free(block[i]);
        }
    }
    return 0;
}
