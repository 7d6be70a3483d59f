/* Two models, two instances of each, run in turns. Reads the inputs of instance 0 and 1 of the first model, then of the second, from stdin;
 * writes the outputs in the same order after the second round, in which every instance ran after all others had. */
#include <stdio.h>

#include "branches/branches.h"
#include "conv/conv.h"

static MCC_ALIGNED(CONV_ARENA_ALIGN) uint8_t conv_arena[2][(CONV_ARENA_BYTES + CONV_ARENA_ALIGN - 1) / CONV_ARENA_ALIGN * CONV_ARENA_ALIGN];
static MCC_ALIGNED(BRANCHES_ARENA_ALIGN)
    uint8_t branches_arena[2][(BRANCHES_ARENA_BYTES + BRANCHES_ARENA_ALIGN - 1) / BRANCHES_ARENA_ALIGN * BRANCHES_ARENA_ALIGN];
static float conv_x[2][CONV_INPUT_X_COUNT], branches_x[2][BRANCHES_INPUT_X_COUNT];

int main(void)
{
    conv_model c[2];
    branches_model b[2];
    int i, round;
    size_t k;
    if (fread(conv_x, sizeof conv_x, 1, stdin) != 1 || fread(branches_x, sizeof branches_x, 1, stdin) != 1) return 2;
    for (i = 0; i < 2; i++) {
        if (conv_init(&c[i], conv_arena[i], CONV_ARENA_BYTES, conv_weights, conv_weights_bytes) != MCC_OK) return 3;
        if (branches_init(&b[i], branches_arena[i], BRANCHES_ARENA_BYTES, branches_weights, branches_weights_bytes) != MCC_OK) {
            return 3;
        }
    }
    for (round = 0; round < 2; round++) {
        for (i = 0; i < 2; i++) {
            for (k = 0; k < CONV_INPUT_X_COUNT; k++) conv_input_x(&c[i])[k] = conv_x[i][k];
            for (k = 0; k < BRANCHES_INPUT_X_COUNT; k++) branches_input_x(&b[i])[k] = branches_x[i][k];
        }
        if (conv_run(&c[0]) != MCC_OK || branches_run(&b[1]) != MCC_OK) return 4;
        if (conv_run(&c[1]) != MCC_OK || branches_run(&b[0]) != MCC_OK) return 4;
    }
    for (i = 0; i < 2; i++) fwrite(conv_output_y(&c[i]), CONV_OUTPUT_Y_BYTES, 1, stdout);
    for (i = 0; i < 2; i++) {
        fwrite(branches_output_y(&b[i]), BRANCHES_OUTPUT_Y_BYTES, 1, stdout);
        fwrite(branches_output_z(&b[i]), BRANCHES_OUTPUT_Z_BYTES, 1, stdout);
    }
    return 0;
}
