/* conv.h: the network "conv" in C.
 *
 * Target: generic; its C files are compiled by any C99 compiler.
 *
 * Memory: one struct and one arena of CONV_ARENA_BYTES bytes per instance, both yours, no heap. Weights:
 * CONV_WEIGHTS_BYTES bytes, read in place.
 *
 *     static MCC_ALIGNED(CONV_ARENA_ALIGN) uint8_t arena[CONV_ARENA_BYTES];
 *     conv_model m;
 *     mcc_status s = conv_init(&m, arena, sizeof arena, conv_weights, conv_weights_bytes);
 *     fill conv_input_x(&m)
 *     s = conv_run(&m);
 *     read conv_output_y(&m)
 */
#ifndef CONV_H
#define CONV_H

#include "mcc.h"

#if MCC_RUNTIME_VERSION != 1
#error "conv and the mcc.h found first were made by different versions of mccompile"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CONV_ARENA_BYTES (1152u + 2u * MCC_CANARY_BYTES)
#define CONV_ARENA_ALIGN 16u
#define CONV_WEIGHTS_BYTES 1216u

/* input "x": f32[1,2,6,6] */
#define CONV_INPUT_X_COUNT 72u
#define CONV_INPUT_X_BYTES 288u
#define CONV_INPUT_X_PRESERVED 0 /* a run overwrites the input */

/* output "y": f32[1,4,6,6] */
#define CONV_OUTPUT_Y_COUNT 144u
#define CONV_OUTPUT_Y_BYTES 576u

/* One instance. Make as many as you like; nothing is shared but the weights. Its fields are not for you. */
typedef struct conv_model {
    uint8_t *arena;
    const uint8_t *weights; /* the data section of the blob */
    uint32_t ready;
} conv_model;

/* The blob as part of the program: link conv_weights.c, or bring conv.mcb into memory in any other way, aligned to 16.
 * */
extern const uint64_t conv_weights[];
extern const size_t conv_weights_bytes;

/* Checks arena and weights. Both must stay where they are as long as the model is used. */
mcc_status conv_init(conv_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes);

/* One inference. */
mcc_status conv_run(conv_model *m);

/* Where inputs are written before a run, and outputs are read after it (until the next run). Dense, row-major. */
float *conv_input_x(conv_model *m); /* f32[1,2,6,6] */
const float *conv_output_y(const conv_model *m); /* f32[1,4,6,6] */

#ifdef __cplusplus
}
#endif

#endif
