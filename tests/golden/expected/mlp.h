/* mlp.h: the network "mlp" in C.
 *
 * Target: generic; its C files are compiled by any C99 compiler.
 *
 * Memory: one struct and one arena of MLP_ARENA_BYTES bytes per instance, both yours, no heap. Weights:
 * MLP_WEIGHTS_BYTES bytes, read in place.
 *
 *     static MCC_ALIGNED(MLP_ARENA_ALIGN) uint8_t arena[MLP_ARENA_BYTES];
 *     mlp_model m;
 *     mcc_status s = mlp_init(&m, arena, sizeof arena, mlp_weights, mlp_weights_bytes);
 *     fill mlp_input_in_put_0(&m)
 *     s = mlp_run(&m);
 *     read mlp_output_out_put(&m)
 */
#ifndef MLP_H
#define MLP_H

#include "mcc.h"

#if MCC_RUNTIME_VERSION != 1
#error "mlp and the mcc.h found first were made by different versions of mccompile"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define MLP_ARENA_BYTES (192u + 2u * MCC_CANARY_BYTES)
#define MLP_ARENA_ALIGN 16u
#define MLP_WEIGHTS_BYTES 960u

/* input "in/put:0": f32[2,8] */
#define MLP_INPUT_IN_PUT_0_COUNT 16u
#define MLP_INPUT_IN_PUT_0_BYTES 64u
#define MLP_INPUT_IN_PUT_0_PRESERVED 0 /* a run overwrites the input */

/* output "out.put": f32[2,3] */
#define MLP_OUTPUT_OUT_PUT_COUNT 6u
#define MLP_OUTPUT_OUT_PUT_BYTES 24u

/* One instance. Make as many as you like; nothing is shared but the weights. Its fields are not for you. */
typedef struct mlp_model {
    uint8_t *arena;
    const uint8_t *weights; /* the data section of the blob */
    uint32_t ready;
} mlp_model;

/* The blob as part of the program: link mlp_weights.c, or bring mlp.mcb into memory in any other way, aligned to 16. */
extern const uint64_t mlp_weights[];
extern const size_t mlp_weights_bytes;

/* Checks arena and weights. Both must stay where they are as long as the model is used. */
mcc_status mlp_init(mlp_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes);

/* One inference. */
mcc_status mlp_run(mlp_model *m);

/* Where inputs are written before a run, and outputs are read after it (until the next run). Dense, row-major. */
float *mlp_input_in_put_0(mlp_model *m); /* f32[2,8] */
const float *mlp_output_out_put(const mlp_model *m); /* f32[2,3] */

#ifdef __cplusplus
}
#endif

#endif
