/* branches.h: the network "branches" in C.
 *
 * Target: generic; its C files are compiled by any C99 compiler.
 *
 * Memory: one struct and one arena of BRANCHES_ARENA_BYTES bytes per instance, both yours, no heap. Weights:
 * BRANCHES_WEIGHTS_BYTES bytes, read in place.
 *
 *     static MCC_ALIGNED(BRANCHES_ARENA_ALIGN) uint8_t arena[BRANCHES_ARENA_BYTES];
 *     branches_model m;
 *     mcc_status s = branches_init(&m, arena, sizeof arena, branches_weights, branches_weights_bytes);
 *     fill branches_input_x(&m)
 *     s = branches_run(&m);
 *     read branches_output_y(&m)
 *     read branches_output_z(&m)
 */
#ifndef BRANCHES_H
#define BRANCHES_H

#include "mcc.h"

#if MCC_RUNTIME_VERSION != 1
#error "branches and the mcc.h found first were made by different versions of mccompile"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define BRANCHES_ARENA_BYTES (1440u + 2u * MCC_CANARY_BYTES)
#define BRANCHES_ARENA_ALIGN 16u
#define BRANCHES_WEIGHTS_BYTES 256u

/* input "x": f32[1,3,4,5] */
#define BRANCHES_INPUT_X_COUNT 60u
#define BRANCHES_INPUT_X_BYTES 240u
#define BRANCHES_INPUT_X_PRESERVED 0 /* a run overwrites the input */

/* output "y": f32[1,4,5,4] */
#define BRANCHES_OUTPUT_Y_COUNT 80u
#define BRANCHES_OUTPUT_Y_BYTES 320u

/* output "z": f32[1,4,5,5] */
#define BRANCHES_OUTPUT_Z_COUNT 100u
#define BRANCHES_OUTPUT_Z_BYTES 400u

/* One instance. Make as many as you like; nothing is shared but the weights. Its fields are not for you. */
typedef struct branches_model {
    uint8_t *arena;
    const uint8_t *weights; /* the data section of the blob */
    uint32_t ready;
} branches_model;

/* The blob as part of the program: link branches_weights.c, or bring branches.mcb into memory in any other way, aligned
 * to 16. */
extern const uint64_t branches_weights[];
extern const size_t branches_weights_bytes;

/* Checks arena and weights. Both must stay where they are as long as the model is used. */
mcc_status branches_init(branches_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes);

/* One inference. */
mcc_status branches_run(branches_model *m);

/* Where inputs are written before a run, and outputs are read after it (until the next run). Dense, row-major. */
float *branches_input_x(branches_model *m); /* f32[1,3,4,5] */
const float *branches_output_y(const branches_model *m); /* f32[1,4,5,4] */
const float *branches_output_z(const branches_model *m); /* f32[1,4,5,5] */

#ifdef __cplusplus
}
#endif

#endif
