/* Runs a plan of TiGrIS once, on zeros, by the runtime that comes with it: tigris PLAN SLOW_BYTES. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

const char *tigris_host_create(const void *plan, uint32_t bytes, uint32_t slow, void **made);
uint32_t tigris_host_tensor_bytes(void *made, int is_output, uint32_t index);
const char *tigris_host_run(void *made, void **in, uint32_t *in_bytes, uint32_t ins, void **out, uint32_t *out_bytes,
                            uint32_t outs);

int main(int argc, char **argv)
{
    static uint8_t plan[1 << 24];
    FILE *const file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    void *made = NULL, *in, *out;
    uint32_t bytes[2];
    const char *failed;
    if (file == NULL) return 2;
    failed = tigris_host_create(plan, (uint32_t)fread(plan, 1, sizeof plan, file), (uint32_t)atol(argv[2]), &made);
    if (failed == NULL) {
        bytes[0] = tigris_host_tensor_bytes(made, 0, 0);
        bytes[1] = tigris_host_tensor_bytes(made, 1, 0);
        in = calloc(bytes[0], 1);
        out = calloc(bytes[1], 1);
        failed = tigris_host_run(made, &in, &bytes[0], 1, &out, &bytes[1], 1);
    }
    if (failed != NULL) fprintf(stderr, "%s\n", failed);
    return failed != NULL;
}
