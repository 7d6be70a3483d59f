/* A target of libFuzzer for the init of one model, which fuzz_model.h describes, and for the runs of what init takes.
 * The first byte of an input says what the others are: bytes of any kind (0), a blob whose checksums, length and
 * identity are put right (1), or its data (2 and 3), so that init takes it; and where the blob lies. Everything that a
 * run may read or write is memory of its own, of just the right length. */
#include <stdio.h>
#include <stdlib.h>

typedef struct tensor {
    size_t bytes;
    size_t room; /* of memory outside the arena; 0: it lies in the arena */
    size_t align;
    size_t element;       /* bytes */
    int rank;             /* of a shape that is known only after a run; -1: it is fixed */
    const uint8_t *start; /* of an input: its elements */
    int is_string;
} tensor;

#include "fuzz_model.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0] - 1u) /* the last one ends it, as C has no empty arrays */
#define HEAD 64u

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long taken, refused, runs, ended;
static volatile uint8_t looked_at;

static void summary(void)
{
    fprintf(stderr, "blobs taken %lu refused %lu runs %lu ended %lu\n", taken, refused, runs, ended);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    return atexit(summary);
}

static void *memory(size_t bytes, size_t align)
{
    void *made = NULL;
    if (posix_memalign(&made, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0) abort();
    memset(made, 0xA5, bytes);
    return made;
}

static void look(const uint8_t *p, size_t bytes)
{
    size_t i;
    for (i = 0; i < bytes; i++) looked_at ^= p[i];
}

static void look_at_output(const void *model, int number, const tensor *t, const uint8_t *p)
{
    size_t shape[8] = {0}, bytes = t->bytes, i;
    if (t->rank >= 0) {
        mcc_host_output_shape(model, number, shape);
        for (bytes = t->element, i = 0; i < (size_t)t->rank; i++) bytes *= shape[i];
        if (bytes > t->bytes) abort();
    }
    look(p, bytes);
    if (t->is_string)
        for (i = 0; i < bytes / sizeof(mcc_string); i++)
            look((const uint8_t *)((const mcc_string *)(const void *)p)[i].data, ((const mcc_string *)(const void *)p)[i].size);
}

static void run(void *model, uint8_t *const *outside)
{
    size_t i, place = 0;
    int number = 0;
    for (i = 0; i < COUNT(inputs); i++) {
        uint8_t *const to = inputs[i].room != 0 ? outside[place++] : (uint8_t *)mcc_host_input(model, number++);
        if (inputs[i].bytes != 0) memcpy(to, inputs[i].start, inputs[i].bytes);
    }
    runs++;
    if (mcc_host_run(model) != MCC_OK) {
        ended++;
        return;
    }
    for (number = 0, i = 0; i < COUNT(outputs); i++) {
        const uint8_t *const p =
            outputs[i].room != 0 ? outside[place++] : (const uint8_t *)mcc_host_output(model, number++);
        look_at_output(model, (int)i, &outputs[i], p);
    }
}

static void offer(const uint8_t *blob, size_t bytes)
{
    void *const model = memory(mcc_host_model_bytes(), 16);
    void *arenas[COUNT(arena_bytes) + 1u];
    uint8_t *outside[COUNT(inputs) + COUNT(outputs) + 1u];
    void *const state = memory(STATE_BYTES, 16);
    size_t i, places = 0, s;
    for (i = 0; i < COUNT(arena_bytes); i++) arenas[i] = memory(arena_bytes[i], arena_aligns[i]);
    for (i = 0; i < COUNT(inputs); i++)
        if (inputs[i].room != 0) outside[places++] = memory(inputs[i].room, inputs[i].align);
    for (i = 0; i < COUNT(outputs); i++)
        if (outputs[i].room != 0) outside[places++] = memory(outputs[i].room, outputs[i].align);
    if (mcc_host_init(model, arenas, arena_bytes, blob, bytes) == MCC_OK) {
        taken++;
        for (i = 0; i < places; i++)
            if (mcc_host_place(model, (int)i, outside[i]) != MCC_OK) abort();
        for (s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            if (mcc_host_resize(model, sizes[s]) != MCC_OK) continue;
            run(model, outside);
            if (STATE_BYTES != 0 && mcc_host_state(model, state, NULL) != MCC_OK) abort();
            run(model, outside);
            if (STATE_BYTES != 0 && mcc_host_state(model, NULL, state) != MCC_OK) abort();
        }
    } else {
        refused++;
        if (mcc_host_run(model) == MCC_OK) abort(); /* what init has refused, run refuses too */
    }
    for (i = 0; i < COUNT(arena_bytes); i++) free(arenas[i]);
    for (i = 0; i < places; i++) free(outside[i]);
    free(state);
    free(model);
}

static void put(uint8_t *p, uint64_t value, int bytes)
{
    for (; bytes-- > 0; value >>= 8) *p++ = (uint8_t)value;
}

/* Makes a blob of this model's identity that is as long as it says; what else it says of itself stays. */
static void put_right(uint8_t *blob, size_t bytes)
{
    const uint64_t begin = mcc_read_u64(&blob[32]);
    memcpy(blob, weights_of_model, 8);
    put(&blob[8], bytes, 8);
    memcpy(&blob[16], weights_of_model + 16, 16);
    if (begin < HEAD || begin > bytes) return;
    put(&blob[56], mcc_crc32_of_many(0u, blob + begin, bytes - (size_t)begin), 4);
    put(&blob[60], mcc_crc32(mcc_crc32(0u, blob, 60u), blob + HEAD, (size_t)begin - HEAD), 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t shifts[8] = {0, 0, 0, 0, 0, 1, 8, 32};
    const size_t begin = (size_t)mcc_read_u64(weights_of_model + 32);
    const unsigned how = size == 0 ? 0u : data[0];
    const size_t given = size == 0 ? 0u : size - 1u, shift = shifts[how >> 2 & 7u];
    const size_t bytes = (how & 3u) == 0u ? given : (how & 3u) == 1u && given >= HEAD ? given : WEIGHTS_BYTES;
    uint8_t *const held = (uint8_t *)memory(shift + bytes, 64), *const blob = held + shift;
    if ((how & 2u) != 0u) {
        memcpy(blob, weights_of_model, WEIGHTS_BYTES);
        memcpy(blob + begin, data + 1, given < WEIGHTS_BYTES - begin ? given : WEIGHTS_BYTES - begin);
    } else {
        if (bytes > given) memcpy(blob, weights_of_model, bytes);
        if (given != 0u) memcpy(blob, data + 1, given);
    }
    if ((how & 3u) != 0u) put_right(blob, bytes);
    offer(blob, bytes);
    free(held);
    return 0;
}

static uint64_t next(uint64_t *chance)
{
    *chance = *chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *chance >> 33;
}

/* Often writes one number over another: the largest, the smallest, a neighbour, one that stands elsewhere. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint64_t chance = seed;
    const size_t width = (size_t)1 << (next(&chance) & 3u), count = size == 0 ? 0 : (size - 1u) / width;
    size_t place, from;
    uint64_t value = 0;
    if (count == 0 || next(&chance) % 3u == 0u) return LLVMFuzzerMutate(data, size, most);
    place = 1u + (size_t)next(&chance) % count * width;
    from = 1u + (size_t)next(&chance) % count * width;
    memcpy(&value, data + (next(&chance) % 2u == 0u ? place : from), width);
    switch (next(&chance) % 8u) {
    case 0: value = 0; break;
    case 1: value = UINT64_MAX; break;
    case 2: value = UINT64_C(1) << (8u * width - 1u); break;
    case 3: value = (UINT64_C(1) << (8u * width - 1u)) - 1u; break;
    case 4: value++; break;
    case 5: value--; break;
    case 6: value = next(&chance); break;
    default: break;
    }
    memcpy(data + place, &value, width);
    return size;
}
