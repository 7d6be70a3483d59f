/* A run for the states leaves what a whole run leaves: what tests/emit/test_advance.py compiles beside a model. */
#include <string.h>

#include "streaming.h"

#define APART ((STREAMING_ARENA_BYTES / STREAMING_ARENA_ALIGN + 1u) * STREAMING_ARENA_ALIGN)
static MCC_ALIGNED(STREAMING_ARENA_ALIGN) uint8_t arenas[2][APART];
static uint8_t left[2][STREAMING_STATE_BYTES];
static uint8_t made[2][STREAMING_OUTPUT_Y_BYTES];

int main(void)
{
    streaming_model m[2];
    uint32_t drawn = 1u;
    int step, number;
    if (streaming_advance(NULL) != MCC_ERR_NULL) return 1;
    for (number = 0; number < 2; number++) {
        if (streaming_init(&m[number], arenas[number], sizeof arenas[0], streaming_weights, streaming_weights_bytes) != MCC_OK) {
            return 2;
        }
    }
    for (step = 0; step < 7; step++) {
        const uint32_t begin = drawn;
        for (number = 0; number < 2; number++) {
            float *const x = streaming_input_x(&m[number]);
            size_t i;
            drawn = begin;
            for (i = 0u; i < STREAMING_INPUT_X_COUNT; i++) {
                drawn = drawn * 1664525u + 1013904223u;
                x[i] = (float)(drawn >> 8) / 16777216.0f - 0.5f;
            }
            if ((number == 1 && step % 3 != 2 ? streaming_advance(&m[number]) : streaming_run(&m[number])) != MCC_OK) return 3;
            if (streaming_save_state(&m[number], left[number]) != MCC_OK) return 4;
            memcpy(made[number], streaming_output_y(&m[number]), sizeof made[0]);
        }
        if (memcmp(left[0], left[1], sizeof left[0]) != 0) return 5;
        if (step % 3 == 2 && memcmp(made[0], made[1], sizeof made[0]) != 0) return 6;
    }
    return 0;
}
