/* What the compiler would write for: y = a + b + w, n = number of runs so far; by hand. */
#ifndef ADDER_H
#define ADDER_H

#include "mcc.h"

#define ADDER_ARENA_BYTES 32u
#define ADDER_ARENA_ALIGN 16u

typedef struct adder_model {
    uint8_t *arena;
    const float *w;
    int64_t runs;
} adder_model;

#ifdef __cplusplus
extern "C" {
#endif

mcc_status adder_init(adder_model *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes);
mcc_status adder_run(adder_model *m);
float *adder_input_a(adder_model *m);
float *adder_input_b_0(adder_model *m);
const float *adder_output_y(const adder_model *m);
const int64_t *adder_output_n(const adder_model *m);

#ifdef __cplusplus
}
#endif

#endif /* ADDER_H */
