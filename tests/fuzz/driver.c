/* driver.c - runs several compiled models in one program, on the host or on a board: what to do stands in "inputs.bin",
 * what came out goes to "results.bin" (programs.py writes and reads both). Each model lies between guards, at addresses
 * no better aligned than promised. Words are of 32 bits. */
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "programs.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISON_GUARDS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON_GUARDS
#endif
#endif
#ifdef POISON_GUARDS
#include <sanitizer/asan_interface.h>
#define FORBID(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define ALLOW(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define FORBID(p, n) ((void)(p), (void)(n))
#define ALLOW(p, n) ((void)(p), (void)(n))
#endif

enum { END, RESET, RESIZE, INPUT, TEXTS, RUN, OUTPUT, SHAPED, OUTPUT_TEXTS, SAVE, LOAD };
enum { MODEL = 0x4D434346, FINE = 0, GUARDS = 1001, WEIGHTS = 1002, MOST = 32, MOST_RANK = 16, GUARD = 0xC3, AROUND = 64 };

typedef struct region {
    uint8_t *from, *start, *end, *to;
} region;

static uint64_t room[FUZZ_ROOM / 8u]; /* of one model at a time */
static size_t used;
static int in, out;
static region regions[MOST + 3], outside[MOST];
static int region_count;

static void get(void *to, size_t bytes)
{
    if (bytes != 0u && board_read(in, to, bytes) != bytes) board_exit(90);
}

static void put(const void *from, size_t bytes)
{
    if (bytes != 0u && board_write(out, from, bytes) != bytes) board_exit(91);
}

static uint32_t word(void)
{
    uint32_t value;
    get(&value, sizeof value);
    return value;
}

static void put_word(uint32_t value) { put(&value, sizeof value); }

static uint8_t *take(size_t bytes)
{
    uint8_t *const found = (uint8_t *)room + used;
    used += (bytes + 15u) & ~(size_t)15u;
    if (used > sizeof room) board_exit(92);
    ALLOW(found, bytes);
    return found;
}

/* Memory at an odd multiple of `align`, with guards on both sides. */
static region guarded(size_t bytes, size_t align)
{
    region made;
    const size_t all = bytes + 2u * AROUND + 4u * align;
    made.from = take(all);
    made.to = made.from + all;
    made.start = made.from + AROUND;
    while (((uintptr_t)made.start & (2u * align - 1u)) != align) made.start++;
    made.end = made.start + bytes;
    memset(made.from, GUARD, all);
    FORBID(made.from, (size_t)(made.start - made.from));
    FORBID(made.end, (size_t)(made.to - made.end));
    if (region_count < MOST + 3) regions[region_count++] = made;
    return made;
}

static int is_whole(void)
{
#ifndef POISON_GUARDS
    int n;
    const uint8_t *p;
    for (n = 0; n < region_count; n++) {
        for (p = regions[n].from; p < regions[n].start; p++)
            if (*p != GUARD) return 0;
        for (p = regions[n].end; p < regions[n].to; p++)
            if (*p != GUARD) return 0;
    }
#endif
    return 1;
}

static uint32_t sum(const uint8_t *p, size_t count)
{
    uint32_t found = 2166136261u;
    size_t i;
    for (i = 0; i < count; i++) found = (found ^ p[i]) * 16777619u;
    return found;
}

static void *place_of(const program *p, void *model, uint32_t kind, int number, int is_output)
{
    if (kind != 0u) return outside[number].start;
    return is_output ? (void *)(uintptr_t)p->output(model, number) : p->input(model, number);
}

static void run_one(const program *p)
{
    void *arenas[MOST];
    size_t arena_bytes[MOST], shape[MOST_RANK];
    ptrdiff_t sizes[MOST];
    region model, weights, state, places[MOST];
    uint32_t n, count, outsides, what, checksum, rank, bits, kind, number;
    int status = 0;
    used = 0u;
    region_count = 0;
    FORBID(room, sizeof room);
    weights = guarded(word(), 64u);
    get(weights.start, (size_t)(weights.end - weights.start));
    checksum = sum(weights.start, (size_t)(weights.end - weights.start));
    count = word();
    for (n = 0; n < count; n++) {
        const uint32_t bytes = word(), align = word();
        places[n] = guarded(bytes, align);
        arenas[n] = places[n].start;
        arena_bytes[n] = bytes;
    }
    outsides = word();
    for (n = 0; n < outsides; n++) {
        const uint32_t bytes = word(), align = word();
        outside[n] = guarded(bytes, align);
    }
    state = guarded(word(), 1u);
    model = guarded(p->model_bytes(), 16u);
    while ((what = word()) != END) {
        switch (what) {
        case RESET:
            kind = word();
            if (status != 0) { /* what has failed stays so */
                put_word((uint32_t)status);
                break;
            }
            for (n = 0; n < count; n++) memset(arenas[n], (int)kind, arena_bytes[n]);
            for (n = 0; n < outsides; n++)
                memset(outside[n].start, (int)kind, (size_t)(outside[n].end - outside[n].start));
            memset(model.start, (int)kind, (size_t)(model.end - model.start));
            status = p->init(model.start, arenas, arena_bytes, weights.start, (size_t)(weights.end - weights.start));
            for (n = 0; n < outsides && status == 0; n++) status = p->place(model.start, (int)n, outside[n].start);
            put_word((uint32_t)status);
            break;
        case RESIZE:
            number = word();
            for (n = 0; n < number; n++) sizes[n] = (ptrdiff_t)word();
            if (status == 0) put_word((uint32_t)(status = p->resize(model.start, sizes)));
            else put_word((uint32_t)status);
            break;
        case INPUT:
        case TEXTS: {
            uint8_t *to;
            kind = word();
            number = word();
            n = word();
            to = status == 0 ? place_of(p, model.start, kind, (int)number, 0) : NULL;
            if (what == INPUT) {
                uint8_t rest;
                if (to != NULL) get(to, n);
                else while (n-- > 0u) get(&rest, 1u);
            } else {
                while (n-- > 0u) {
                    const uint32_t bytes = word();
                    uint8_t *const text = take(bytes + 1u);
                    mcc_string made;
                    memset(&made, 0, sizeof made);
                    get(text, bytes);
                    made.data = (const char *)text;
                    made.size = bytes;
                    if (to != NULL) {
                        memcpy(to, &made, sizeof made);
                        to += sizeof made;
                    }
                }
            }
            break;
        }
        case RUN:
            if (status == 0) status = p->run(model.start);
            put_word((uint32_t)status);
            break;
        case OUTPUT:
            kind = word();
            number = word();
            n = word();
            if (status == 0) put(place_of(p, model.start, kind, (int)number, 1), n);
            break;
        case SHAPED:
            kind = word();
            number = word();
            what = word(); /* its number among all outputs */
            rank = word();
            bits = word();
            if (status == 0) {
                size_t elements = 1u;
                p->output_shape(model.start, (int)what, shape);
                for (n = 0; n < rank; n++) {
                    put_word((uint32_t)shape[n]);
                    elements *= shape[n];
                }
                put(place_of(p, model.start, kind, (int)number, 1), (elements * bits + 7u) / 8u);
            }
            break;
        case OUTPUT_TEXTS:
            kind = word();
            number = word();
            n = word();
            if (status == 0) {
                const uint8_t *from = (const uint8_t *)place_of(p, model.start, kind, (int)number, 1);
                while (n-- > 0u) {
                    mcc_string text;
                    memcpy(&text, from, sizeof text);
                    put_word(text.size);
                    put(text.data, text.size);
                    from += sizeof text;
                }
            }
            break;
        case SAVE:
            if (status == 0) status = p->state(model.start, state.start, NULL);
            break;
        case LOAD:
            if (status == 0) status = p->state(model.start, NULL, state.start);
            break;
        default: board_exit(93);
        }
    }
    if (status == 0 && !is_whole()) status = GUARDS;
    if (status == 0 && checksum != sum(weights.start, (size_t)(weights.end - weights.start))) status = WEIGHTS;
    put_word((uint32_t)status);
}

int main(void)
{
    uint32_t count;
    in = board_open("inputs.bin", 0);
    out = board_open("results.bin", 1);
    if (in < 0 || out < 0) return 94;
    for (count = word(); count > 0u; count--) {
        const uint32_t number = word();
        put_word(MODEL + number);
        run_one(&programs[number]);
    }
    return 0;
}
