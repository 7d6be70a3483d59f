/* run_model.c - the program that checks a model on its target. It reads "inputs.bin": the free sizes, the state to begin
 * with, and all inputs (strings as length and text; the count of elements before an input of a free size). It runs twice on
 * the same arena, with the state set back between, and writes "results.bin": the outputs of both runs (sizes before those
 * that are not fixed), the state after each and, with --advance, after a third run for it alone, and 8 words of 32 bits
 * that say how it went. Arena and struct lie between guards, and are poisoned before the model is initialised; at the end
 * the weights must still have their checksums. */
#include "model_memory.h"

#ifdef MCC_HOST_TEXT_BYTES
static uint8_t texts[MCC_HOST_TEXT_BYTES]; /* of the inputs: words, not books */
static size_t texts_used;

static int get_strings(int file, mcc_string *to, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t size;
        if (!get(file, &size, sizeof size) || size > sizeof texts - texts_used) return 0;
        if (!get(file, texts + texts_used, size)) return 0;
        to[i] = mcc_string_of((const char *)texts + texts_used, size);
        texts_used += size;
    }
    return 1;
}

static int put_strings(int file, const mcc_string *from, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++)
        if (!put(file, &from[i].size, sizeof from[i].size) || !put(file, from[i].data, from[i].size)) return 0;
    return 1;
}
#endif

#ifdef MCC_HOST_SHAPES
static uint32_t count_of_next(int file) /* elements of the input that follows */
{
    uint32_t count;
    return get(file, &count, sizeof count) ? count : 0xFFFFFFFFu;
}

static size_t put_shape(int file, const size_t *shape, size_t rank)
{
    size_t i, count = 1u;
    for (i = 0; i < rank; i++) {
        const uint32_t size = (uint32_t)shape[i];
        if (!put(file, &size, sizeof size)) return 0u;
        count *= shape[i];
    }
    return count;
}

#define SHAPE(symbol, rank)                                                                                            \
    static size_t count_##symbol(int file, const NAME(_model) *m)                                                      \
    {                                                                                                                  \
        size_t shape[rank];                                                                                            \
        NAME(JOIN(_output_, symbol##_shape))(m, shape);                                                                \
        return put_shape(file, shape, rank);                                                                           \
    }
MCC_HOST_SHAPES(SHAPE)
#endif

#ifdef MCC_HOST_STATE_BYTES
static uint8_t state[MCC_HOST_STATE_BYTES];

/* The state that the file has; without one what it is after init. */
static mcc_status set_state(int file, NAME(_model) *m, int run)
{
    uint32_t given;
    if (!get(file, &given, sizeof given)) return MCC_ERR_NULL;
    if (!given) return run ? NAME(_reset)(m) : MCC_OK;
    return get(file, state, sizeof state) ? NAME(_load_state)(m, state) : MCC_ERR_NULL;
}

static int put_state(int file, const NAME(_model) *m)
{
    return NAME(_save_state)(m, state) == MCC_OK && put(file, state, sizeof state);
}
#else
#define set_state(file, m, run) ((void)(file), (void)(run), MCC_OK)
#define put_state(file, m) 1
#endif

#ifdef MCC_HOST_ADVANCES
enum { ADVANCING = 2, RUNS };
#else
enum { ADVANCING = -1, RUNS = 2 };
#endif

static mcc_status run_once(int run)
{
    mcc_status status;
#ifdef MCC_HOST_ADVANCES
    if (run == ADVANCING) return NAME(_advance)(&model);
#endif
    (void)run;
    board_paint_stack();
    board_count_begin();
    status = NAME(_run)(&model);
    board_count_end();
    head[4] = (uint32_t)board_stack_used();
    return status;
}

static mcc_status resize(int file, NAME(_model) *m)
{
#ifdef MCC_HOST_RESIZE
    uint32_t n[MCC_HOST_GIVEN];
    return get(file, n, sizeof n) ? MCC_HOST_RESIZE(m, n) : MCC_ERR_NULL;
#else
    (void)file;
    (void)m;
    return MCC_OK;
#endif
}

static int read_inputs(int file, NAME(_model) *m)
{
#define READ(symbol, bytes) \
    if (!get(file, NAME(_input_##symbol)(m), bytes)) return 0;
#define READ_STRINGS(symbol, count) \
    if (!get_strings(file, NAME(_input_##symbol)(m), count)) return 0;
#ifdef MCC_HOST_TEXT_BYTES
    texts_used = 0u;
#endif
    MCC_HOST_INPUTS(READ, READ_STRINGS)
    (void)file;
    (void)m;
    return 1;
}

static int write_outputs(int file, const NAME(_model) *m)
{
#define WRITE(symbol, bytes) \
    if (!put(file, NAME(_output_##symbol)(m), bytes)) return 0;
#define WRITE_STRINGS(symbol, count) \
    if (!put_strings(file, NAME(_output_##symbol)(m), count)) return 0;
    MCC_HOST_OUTPUTS(WRITE, WRITE_STRINGS)
    (void)m;
    return 1;
}

#ifdef MCC_HOST_DUMP
static mcc_dump_writer writer;
static int dump_file;

static size_t to_file(void *to, const void *from, size_t bytes) { return board_write(*(const int *)to, from, bytes); }

/* Of the first run. */
static int set_dump(NAME(_model) *m, int run)
{
    if (run != 0) {
        NAME(_set_dump)(m, NULL, NULL);
        return !writer.failed;
    }
    dump_file = board_open("dump.bin", 1);
    mcc_dump_begin(&writer, to_file, &dump_file);
    NAME(_set_dump)(m, mcc_dump_write, &writer);
    return dump_file >= 0;
}
#else
#define set_dump(m, run) 1
#endif

int main(void)
{
    const int results = board_open("results.bin", 1);
    mcc_status status;
    int run;
    if (results < 0) return 98;
    status = begin();
    if (status != MCC_OK) return ended(results, STAGE_INIT, (uint32_t)status);
    for (run = 0; run < RUNS; run++) {
        const int inputs = board_open("inputs.bin", 0);
        if (inputs < 0) return ended(results, STAGE_READ, 0u);
        status = resize(inputs, &model);
        if (status != MCC_OK) return ended(results, STAGE_RESIZE, (uint32_t)status);
        if (set_state(inputs, &model, run) != MCC_OK) return ended(results, STAGE_READ, 0u);
        if (!read_inputs(inputs, &model)) return ended(results, STAGE_READ, 0u);
        if (!set_dump(&model, run)) return 97;
        status = run_once(run);
        if (status != MCC_OK) return ended(results, STAGE_RUN, (uint32_t)status);
        if (!is_within()) return ended(results, STAGE_GUARD, 0u);
        if (run != ADVANCING && !write_outputs(results, &model)) return 97;
        if (!put_state(results, &model)) return 97;
    }
    status = INIT();
    return ended(results, status == MCC_OK ? STAGE_DONE : STAGE_WEIGHTS, (uint32_t)status);
}
