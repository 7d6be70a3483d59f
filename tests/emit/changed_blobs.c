/* Offers the model conv blobs that are not its own, and prints how often each status came back, by kind of change:
 * one byte changed (three ways, every byte), truncated (every length), too long, of another model, moved. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conv.h"

static MCC_ALIGNED(CONV_ARENA_ALIGN) uint8_t arena[CONV_ARENA_BYTES];
static MCC_ALIGNED(64) uint8_t blob[CONV_WEIGHTS_BYTES + 64];

static const char *kind;
static unsigned long seen[32];

static void offer(const uint8_t *at, size_t bytes)
{
    conv_model m;
    const mcc_status status = conv_init(&m, arena, sizeof arena, at, bytes);
    seen[status]++;
    /* What init has refused, run refuses too. */
    if ((conv_run(&m) == MCC_OK) != (status == MCC_OK)) exit(3);
}

static void end(void)
{
    int status;
    for (status = 0; status < 32; status++)
        if (seen[status] != 0) printf("%s %d %lu\n", kind, status, seen[status]);
    memset(seen, 0, sizeof seen);
}

int main(int argc, char **argv)
{
    static const uint8_t changes[3] = {0x01, 0x80, 0xFF};
    size_t i;
    int c;
    FILE *other;
    memcpy(blob, conv_weights, CONV_WEIGHTS_BYTES);

    kind = "whole";
    offer(blob, CONV_WEIGHTS_BYTES);
    end();
    kind = "changed";
    for (i = 0; i < CONV_WEIGHTS_BYTES; i++) {
        for (c = 0; c < 3; c++) {
            blob[i] ^= changes[c];
            offer(blob, CONV_WEIGHTS_BYTES);
            blob[i] ^= changes[c];
        }
    }
    end();
    kind = "truncated";
    for (i = 0; i < CONV_WEIGHTS_BYTES; i++) offer(blob, i);
    end();
    kind = "oversized";
    for (i = 1; i <= 64; i++) offer(blob, CONV_WEIGHTS_BYTES + i);
    end();
    kind = "moved";
    memmove(blob + 4, blob, CONV_WEIGHTS_BYTES);
    offer(blob + 4, CONV_WEIGHTS_BYTES);
    end();
    kind = "other";
    if (argc != 2 || (other = fopen(argv[1], "rb")) == NULL) return 2;
    i = fread(blob, 1, sizeof blob, other);
    fclose(other);
    offer(blob, i);
    end();
    return 0;
}
