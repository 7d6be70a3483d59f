/* host.c - one compiled model behind functions whose names and types do not depend on it, so that the host can call any
 * model through the same few declarations. Compiled together with the model; mcc_host_model.h, written for it, holds
 *
 *     #include "kws.h"
 *     #define MCC_HOST_PREFIX kws
 *     #define MCC_HOST_INPUTS(MCC_HOST_EACH) MCC_HOST_EACH(mfcc)
 *     #define MCC_HOST_OUTPUTS(MCC_HOST_EACH) MCC_HOST_EACH(scores)
 *     #define MCC_HOST_SHAPES(MCC_HOST_EACH)         (position, symbol) of each output whose sizes are not fixed
 *     #define MCC_HOST_INIT(m, a, n, w, s) kws_init(m, (a)[0], (n)[0], w, s)      all arenas and their sizes
 *     #define MCC_HOST_RESIZE(m, n) MCC_OK           or kws_resize(m, n[0], ...)
 *     #define MCC_HOST_RUN kws_run                   or a function that runs step by step
 *     #define MCC_HOST_PLACES(MCC_HOST_EACH)         (position, input_symbol, C type) of what lies outside the arena
 *     #define MCC_HOST_ROWS(MCC_HOST_EACH)           (position, input_symbol, bytes of a row, rows), only where there are
 *     #define MCC_HOST_STATE(m, to, from) MCC_OK     or (to ? kws_save_state(m, to) : kws_load_state(m, from))
 *     #define MCC_HOST_ADVANCE(m) MCC_OK             or kws_advance(m)
 *     #define MCC_HOST_WORKERS 2                     only where workers share steps
 *     #define MCC_HOST_IN_TURN                       only where these are not threads
 *     #define MCC_HOST_STEPS 30                      only where steps are timed: mcc_host_tick(n) follows step n
 *     #define MCC_HOST_LEARN(m, rate) kws_learn(m)   only where it learns: or kws_learn(m, rate), and MCC_HOST_STEP is 0
 *     #define MCC_HOST_STEP(m, rate) kws_step(m, rate)
 *     #define MCC_HOST_DUMP                          only where what steps make is written to a file
 */
#define _POSIX_C_SOURCE 199309L
#include "mcc_host_model.h"

#define MCC_HOST_PASTE(a, b) a##b
#define MCC_HOST_JOIN(a, b) MCC_HOST_PASTE(a, b)
#define MCC_HOST_NAME(rest) MCC_HOST_JOIN(MCC_HOST_PREFIX, rest)

typedef MCC_HOST_NAME(_model) mcc_host_model;

/* What a host keeps: the model, and the frames that it fetches rows of. */
typedef struct mcc_host_all {
    mcc_host_model model;
#ifdef MCC_HOST_ROWS
#define MCC_HOST_ONE_ARRAY(position, name, bytes, rows) mcc_array_rows name;
    MCC_HOST_ROWS(MCC_HOST_ONE_ARRAY)
#undef MCC_HOST_ONE_ARRAY
#endif
} mcc_host_all;

#ifdef __cplusplus
extern "C" {
#endif

#include "host.h"

size_t mcc_host_model_bytes(void) { return sizeof(mcc_host_all); }

#if defined(MCC_HOST_WORKERS) && (defined(MCC_HOST_IN_TURN) || defined(__TINYC__))
/* There are no threads, or as in tcc no atomic operations for a pool: the pieces run one after the other. */
static void in_turn(void *of, ptrdiff_t count, void (*body)(void *context, ptrdiff_t index), void *context)
{
    (void)of;
    while (count-- > 0) body(context, count); /* in any order */
}

#define share_work(model) (int)MCC_HOST_NAME(_set_parallel)(model, in_turn, NULL)
#elif defined(MCC_HOST_WORKERS)
#include "mcc_pool.h"

static mcc_pool pool;
static int pool_runs = 0;

static int share_work(mcc_host_model *model)
{
    if (!pool_runs && mcc_pool_start(&pool, MCC_HOST_WORKERS) == 0) pool_runs = 1;
    return pool_runs ? (int)MCC_HOST_NAME(_set_parallel)(model, mcc_pool_for, &pool) : 0;
}

/* Before this code is unloaded, nobody may run it any more. */
__attribute__((destructor)) static void end_pool(void)
{
    if (pool_runs) mcc_pool_stop(&pool);
}
#else
#define share_work(model) 0
#endif

int mcc_host_init(void *model, void *const *arenas, const size_t *arena_bytes, const void *weights, size_t weights_bytes)
{
    mcc_host_model *const m = (mcc_host_model *)model;
    const int status = (int)MCC_HOST_INIT(m, arenas, arena_bytes, weights, weights_bytes);
    return status != 0 ? status : share_work(m);
}

#ifdef MCC_HOST_STEPS
#include <time.h>

static double spent[MCC_HOST_STEPS + 1], last;

/* The time since the tick before belongs to that step; -1 starts. */
void mcc_host_tick(int step);
void mcc_host_tick(int step)
{
    struct timespec t;
    double now;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (step >= 0) spent[step] += now - last;
    last = now;
}

const double *mcc_host_spent(void) { return spent; }
#else
#define mcc_host_tick(step) (void)(step)

const double *mcc_host_spent(void) { return NULL; }
#endif

int mcc_host_run(void *model)
{
    mcc_host_tick(-1);
    return (int)MCC_HOST_RUN((mcc_host_model *)model);
}

#define MCC_HOST_ONE(symbol)                                                                                           \
    if (index-- == 0) return MCC_HOST_NAME(MCC_HOST_JOIN(MCC_HOST_DIRECTION, symbol))(m);

void *mcc_host_input(void *model, int index)
{
    mcc_host_model *const m = (mcc_host_model *)model;
#define MCC_HOST_DIRECTION _input_
    MCC_HOST_INPUTS(MCC_HOST_ONE)
#undef MCC_HOST_DIRECTION
    (void)m;
    (void)index;
    return NULL;
}

const void *mcc_host_output(const void *model, int index)
{
    const mcc_host_model *const m = (const mcc_host_model *)model;
#define MCC_HOST_DIRECTION _output_
    MCC_HOST_OUTPUTS(MCC_HOST_ONE)
#undef MCC_HOST_DIRECTION
    (void)m;
    (void)index;
    return NULL;
}

int mcc_host_resize(void *model, const ptrdiff_t *sizes)
{
    mcc_host_model *const m = (mcc_host_model *)model;
    (void)m;
    (void)sizes;
    return (int)MCC_HOST_RESIZE(m, sizes);
}

void mcc_host_output_shape(const void *model, int index, size_t *shape)
{
    const mcc_host_model *const m = (const mcc_host_model *)model;
#define MCC_HOST_ONE_SHAPE(position, symbol)                                                                           \
    if (index == position) MCC_HOST_NAME(MCC_HOST_JOIN(_output_, MCC_HOST_PASTE(symbol, _shape)))(m, shape);
    MCC_HOST_SHAPES(MCC_HOST_ONE_SHAPE)
#undef MCC_HOST_ONE_SHAPE
    (void)m;
    (void)index;
    (void)shape;
}

int mcc_host_place(void *model, int index, void *memory)
{
    mcc_host_model *const m = (mcc_host_model *)model;
#define MCC_HOST_ONE_PLACE(position, name, type)                                                                       \
    if (index == position) return (int)MCC_HOST_NAME(_set_##name)(m, (type *)memory);
    MCC_HOST_PLACES(MCC_HOST_ONE_PLACE)
#undef MCC_HOST_ONE_PLACE
#ifdef MCC_HOST_ROWS
#define MCC_HOST_ONE_INPUT(position, name, bytes, count)                                                               \
    if (index == position) {                                                                                           \
        mcc_array_rows *const array = &((mcc_host_all *)model)->name;                                                  \
        array->from = memory;                                                                                          \
        array->row_bytes = bytes;                                                                                      \
        array->rows = count;                                                                                           \
        array->next = 0;                                                                                               \
        return (int)MCC_HOST_NAME(_set_##name)(m, mcc_fetch_array, array);                                             \
    }
    MCC_HOST_ROWS(MCC_HOST_ONE_INPUT)
#undef MCC_HOST_ONE_INPUT
#endif
    (void)m;
    (void)index;
    (void)memory;
    return 0;
}

/* Saves the state, or where `to` is null loads it. */
int mcc_host_state(void *model, void *to, const void *from)
{
    mcc_host_model *const m = (mcc_host_model *)model;
    (void)m;
    (void)to;
    (void)from;
    return (int)MCC_HOST_STATE(m, to, from);
}

int mcc_host_advance(void *model)
{
    (void)model;
    return (int)MCC_HOST_ADVANCE((mcc_host_model *)model);
}

#ifdef MCC_HOST_LEARN
int mcc_host_learn(void *model, float rate)
{
    (void)rate;
    return (int)MCC_HOST_LEARN((mcc_host_model *)model, rate);
}

int mcc_host_step(void *model, float rate)
{
    (void)model;
    (void)rate;
    return (int)MCC_HOST_STEP((mcc_host_model *)model, rate);
}

float mcc_host_loss(const void *model) { return MCC_HOST_NAME(_loss)((const mcc_host_model *)model); }
#endif

#ifdef MCC_HOST_DUMP
#include <stdio.h>

static FILE *dump_file;
static mcc_dump_writer dump_writer;

static size_t to_file(void *to, const void *from, size_t bytes) { return fwrite(from, 1u, bytes, (FILE *)to); }

/* Runs write what their steps make to a new file; with a null path no more. Not 0: something was not written. */
int mcc_host_dump(void *model, const char *path)
{
    mcc_host_model *const m = (mcc_host_model *)model;
    if (path == NULL) {
        MCC_HOST_NAME(_set_dump)(m, NULL, NULL);
        return fclose(dump_file) != 0 || dump_writer.failed;
    }
    dump_file = fopen(path, "wb");
    if (dump_file == NULL) return 1;
    mcc_dump_begin(&dump_writer, to_file, dump_file);
    MCC_HOST_NAME(_set_dump)(m, mcc_dump_write, &dump_writer);
    return 0;
}
#endif

const char *mcc_host_status_text(int status) { return mcc_status_text((mcc_status)status); }

#ifdef __cplusplus
}
#endif
