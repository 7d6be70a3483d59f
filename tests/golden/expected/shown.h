/* shown.h: the network "shown" in C.
 *
 * Target: generic; its C files are compiled by any C99 compiler.
 *
 * Memory: one struct and one arena of SHOWN_ARENA_BYTES bytes per instance, both yours, no heap. Weights:
 * SHOWN_WEIGHTS_BYTES bytes, read in place.
 *
 *     static MCC_ALIGNED(SHOWN_ARENA_ALIGN) uint8_t arena[SHOWN_ARENA_BYTES];
 *     shown_model m;
 *     mcc_status s = shown_init(&m, arena, sizeof arena, shown_weights, shown_weights_bytes);
 *     fill shown_input_in_put_0(&m)
 *     s = shown_run(&m);
 *     read shown_output_out_put(&m)
 *     read shown_output_z(&m)
 */
#ifndef SHOWN_H
#define SHOWN_H

#include "mcc.h"

#if MCC_RUNTIME_VERSION != 1
#error "shown and the mcc.h found first were made by different versions of mccompile"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SHOWN_ARENA_BYTES (1008u + 2u * MCC_CANARY_BYTES)
#define SHOWN_ARENA_ALIGN 16u
#define SHOWN_WEIGHTS_BYTES 1792u

/* input "in/put:0": f32[1,2,6,6] */
#define SHOWN_INPUT_IN_PUT_0_COUNT 72u
#define SHOWN_INPUT_IN_PUT_0_BYTES 288u
#define SHOWN_INPUT_IN_PUT_0_PRESERVED 0 /* a run overwrites the input */

/* output "out.put": f32[1,6,6,1] */
#define SHOWN_OUTPUT_OUT_PUT_COUNT 36u
#define SHOWN_OUTPUT_OUT_PUT_BYTES 144u

/* output "z": f32[1,3] */
#define SHOWN_OUTPUT_Z_COUNT 3u
#define SHOWN_OUTPUT_Z_BYTES 12u

/* One instance. Make as many as you like; nothing is shared but the weights. Its fields are private. */
typedef struct shown_model {
    uint8_t *arena;
    const uint8_t *weights; /* the data section of the blob */
    uint32_t ready;
} shown_model;

/* The blob as part of the program: link shown_weights.c, or bring shown.mcb into memory in any other way, aligned to
 * 16. */
extern const uint64_t shown_weights[];
extern const size_t shown_weights_bytes;

/* Checks arena and weights. Both must stay where they are as long as the model is used. */
mcc_status shown_init(shown_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes);

/* One inference. */
mcc_status shown_run(shown_model *m);

/* Where inputs are written before a run, and outputs are read after it (until the next run). Dense, row-major. */
float *shown_input_in_put_0(shown_model *m); /* f32[1,2,6,6] */
const float *shown_output_out_put(const shown_model *m); /* f32[1,6,6,1] */
const float *shown_output_z(const shown_model *m); /* f32[1,3] */

#ifdef __cplusplus
}
#endif

#endif
