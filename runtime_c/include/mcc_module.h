/* mcc_module.h - models that are exchanged whole, code and weights: opens a module that `--module` has built and calls
 * it. The program knows nothing of the model; a table in the module says what goes in and what comes out.
 *
 *     static const mcc_module_functions functions = MCC_MODULE_GIVEN;        (mcc_module_functions.h)
 *     mcc_module m;
 *     mcc_status s = mcc_module_open(&m, image, bytes, &functions);           wherever it lies, in RAM or in flash
 *     if (s == MCC_OK && mcc_module_memory_bytes(&m) <= sizeof memory) s = mcc_module_init(&m, memory, sizeof memory);
 *     ... fill mcc_module_input(&m, 0) ...
 *     s = mcc_module_run(&m);
 *     ... read mcc_module_output(&m, 0) ...
 *
 * A module is used where it lies, which must be memory that code runs in. Where there are caches, whoever copies it
 * makes the copy visible to the core's instruction side first. Checksums tell damage, not who has made a module: check
 * a signature of your own before it is opened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_MODULE_H
#define MCC_MODULE_H

#include "mcc_init.h"
#include "mcc_module_machine.h"

#define MCC_MODULE_MAGIC 0x4D43434Du /* "MCCM" */
#define MCC_MODULE_VERSION 1u        /* of all that is declared here; a module of another one is refused */
#define MCC_MODULE_SHAPE 8u          /* sizes that the table has room for */
#define MCC_MODULE_WANTED 5u         /* words with a bit for each function that a module calls */

/* How a module begins: words of 32 bits, little-endian. Offsets are from its first byte. */
typedef struct mcc_module_head {
    uint32_t magic;
    uint32_t version;     /* and, from bit 16 on, the bytes of this struct */
    uint32_t bytes;       /* of the whole module */
    uint32_t crc;         /* CRC-32 of all bytes but these four */
    uint32_t machine;
    uint32_t features;
    uint32_t align;       /* of its place */
    uint32_t entry;       /* offset of its only entry point */
    uint8_t identity[16]; /* of code and weights, as in the blob */
    uint32_t arena_bytes;
    uint32_t arena_align;
    uint32_t model_bytes; /* of the struct of an instance */
    uint32_t tensors;     /* how many follow */
    uint32_t wanted[MCC_MODULE_WANTED];
    uint32_t unused;
} mcc_module_head;

enum { MCC_MODULE_INPUT = 0, MCC_MODULE_OUTPUT = 1, MCC_MODULE_STATE = 2 };

/* An input, an output or a state. */
typedef struct mcc_module_tensor {
    uint32_t name;    /* offset of its text, which ends with a zero */
    uint32_t way;     /* MCC_MODULE_INPUT, ... */
    uint32_t element; /* its type, by the numbers of ONNX: 1 float, 2 uint8, 3 int8, 6 int32, 7 int64 ... */
    uint32_t bytes;   /* at most, where sizes are known at run time only */
    uint32_t room;    /* of memory outside the arena (mcc_module_place), 0: it lies inside; and its alignment */
    uint32_t align;
    uint32_t rank;
    uint32_t shape[MCC_MODULE_SHAPE]; /* 0xFFFFFFFF: known at run time, mcc_module_shape */
    uint32_t quantized;               /* 1: an integer q stands for (q - zero_point) * scale */
    float scale;
    int32_t zero_point;
} mcc_module_tensor;

/* What the program gives: functions of its C library, in the order of mcc_module_functions.h; null: it has none. */
typedef struct mcc_module_functions {
    void (*each[32u * MCC_MODULE_WANTED])(void);
} mcc_module_functions;

/* What the entry point is asked for. */
enum {
    MCC_MODULE_DO_INIT = 0, /* memory and bytes: the arena */
    MCC_MODULE_DO_RUN,
    MCC_MODULE_DO_TENSOR,   /* number: of a tensor; memory becomes where it lies */
    MCC_MODULE_DO_PLACE,    /* number, memory */
    MCC_MODULE_DO_SHAPE,    /* number, memory: size_t[] */
    MCC_MODULE_DO_RESIZE,   /* memory: ptrdiff_t[] */
    MCC_MODULE_DO_RESET,
    MCC_MODULE_DO_SAVE,     /* memory */
    MCC_MODULE_DO_LOAD,     /* memory */
    MCC_MODULE_DO_BEGIN,
    MCC_MODULE_DO_STEPS,    /* number */
    MCC_MODULE_DO_PUSH,
    MCC_MODULE_DO_SEED      /* memory: uint64_t */
};

typedef struct mcc_module_call {
    uint32_t what;
    uint32_t number;
    void *model;
    void *memory;
    size_t bytes;
} mcc_module_call;

typedef uint32_t (*mcc_module_entry)(const mcc_module_functions *functions, mcc_module_call *call);

/* An opened module with one instance of its model; more instances are more of these. Its fields are private. */
typedef struct mcc_module {
    const uint8_t *image;
    const mcc_module_functions *functions;
    void *model;
} mcc_module;

/* What its head says. */
MCC_INLINE mcc_module_head mcc_module_head_of(const mcc_module *m)
{
    mcc_module_head head;
    (void)memcpy(&head, m->image, sizeof head);
    return head;
}

/* Checks a module from its first byte to its last; nothing of it has run then. `bytes`: what is there, at least the
 * module. `functions` stays where it is, as the module does. */
MCC_INLINE mcc_status mcc_module_open(mcc_module *m, const void *image, size_t bytes,
                                      const mcc_module_functions *functions)
{
    const uint8_t *const b = (const uint8_t *)image;
    mcc_module_head head;
    uint32_t i;
    if (m == NULL) return MCC_ERR_NULL;
    m->image = NULL;
    m->model = NULL;
    m->functions = functions;
    if (image == NULL || functions == NULL) return MCC_ERR_NULL;
    if (bytes < sizeof head) return MCC_ERR_MODULE_SIZE;
    (void)memcpy(&head, b, sizeof head);
    if (head.magic != MCC_MODULE_MAGIC) return MCC_ERR_MODULE_MAGIC;
    if (head.version != (MCC_MODULE_VERSION | (uint32_t)sizeof head << 16)) return MCC_ERR_MODULE_VERSION;
    if (head.bytes > bytes || head.bytes < sizeof head) return MCC_ERR_MODULE_SIZE;
    if (head.machine != (MCC_MODULE_MACHINE)) return MCC_ERR_MODULE_MACHINE;
    if ((head.features & ~(uint32_t)(MCC_MODULE_FEATURES)) != 0u) return MCC_ERR_MODULE_MACHINE;
    if (mcc_crc32_of_many(mcc_crc32(0u, b, 12u), &b[16], head.bytes - 16u) != head.crc) return MCC_ERR_MODULE_CRC;
    if (head.align == 0u || !mcc_is_aligned(image, head.align)) return MCC_ERR_MODULE_ALIGN;
    for (i = 0; i < 32u * MCC_MODULE_WANTED; i++)
        if ((head.wanted[i / 32u] >> i % 32u & 1u) != 0u && functions->each[i] == NULL) return MCC_ERR_MODULE_FUNCTION;
    m->image = b;
    return MCC_OK;
}

MCC_INLINE mcc_status mcc_module_do(const mcc_module *m, mcc_module_call *call)
{
    if (m == NULL || m->image == NULL) return MCC_ERR_NULL;
    call->model = m->model;
    return (mcc_status)((mcc_module_entry)((uintptr_t)m->image + mcc_module_head_of(m).entry))(m->functions, call);
}

MCC_INLINE mcc_status mcc_module_ask(const mcc_module *m, uint32_t what, uint32_t number, void *memory, size_t bytes)
{
    mcc_module_call call;
    call.what = what;
    call.number = number;
    call.model = NULL;
    call.memory = memory;
    call.bytes = bytes;
    return mcc_module_do(m, &call);
}

/* What an instance needs: memory at a multiple of mcc_module_memory_align. */
MCC_INLINE size_t mcc_module_memory_bytes(const mcc_module *m)
{
    const mcc_module_head head = mcc_module_head_of(m);
    return ((size_t)head.arena_bytes + 15u) / 16u * 16u + head.model_bytes;
}

MCC_INLINE size_t mcc_module_memory_align(const mcc_module *m)
{
    const mcc_module_head head = mcc_module_head_of(m);
    return head.arena_align < 16u ? 16u : head.arena_align;
}

/* The same where arena and struct lie apart. */
MCC_INLINE mcc_status mcc_module_init_at(mcc_module *m, void *model, void *arena, size_t arena_bytes)
{
    if (m == NULL || m->image == NULL || model == NULL) return MCC_ERR_NULL;
    m->model = model;
    return mcc_module_ask(m, MCC_MODULE_DO_INIT, 0u, arena, arena_bytes);
}

/* Makes the instance. Its memory must stay where it is. */
MCC_INLINE mcc_status mcc_module_init(mcc_module *m, void *memory, size_t bytes)
{
    size_t arena;
    if (m == NULL || m->image == NULL || memory == NULL) return MCC_ERR_NULL;
    m->model = NULL;
    if (bytes < mcc_module_memory_bytes(m)) return MCC_ERR_ARENA_SIZE;
    if (!mcc_is_aligned(memory, mcc_module_memory_align(m))) return MCC_ERR_ARENA_ALIGN;
    arena = mcc_module_memory_bytes(m) - mcc_module_head_of(m).model_bytes;
    return mcc_module_init_at(m, (uint8_t *)memory + arena, memory, arena);
}

/* Tensor `number` of all: inputs, then outputs, then states; null: there are not so many. */
MCC_INLINE const mcc_module_tensor *mcc_module_tensor_at(const mcc_module *m, uint32_t number)
{
    if (m == NULL || m->image == NULL || number >= mcc_module_head_of(m).tensors) return NULL;
    return (const mcc_module_tensor *)(const void *)&m->image[sizeof(mcc_module_head)] + number;
}

MCC_INLINE const char *mcc_module_name(const mcc_module *m, const mcc_module_tensor *tensor)
{
    return (const char *)&m->image[tensor->name];
}

/* The number among all of number `index` of one way; 0xFFFFFFFF: there are not so many. */
MCC_INLINE uint32_t mcc_module_number(const mcc_module *m, uint32_t way, uint32_t index)
{
    const mcc_module_tensor *tensor;
    uint32_t number;
    for (number = 0; (tensor = mcc_module_tensor_at(m, number)) != NULL; number++)
        if (tensor->way == way && index-- == 0u) return number;
    return 0xFFFFFFFFu;
}

/* Where a tensor lies; null without an instance, for a number too large, and for what lies outside of the arena. */
MCC_INLINE void *mcc_module_data(const mcc_module *m, uint32_t number)
{
    mcc_module_call call;
    if (m == NULL || m->model == NULL) return NULL;
    call.what = MCC_MODULE_DO_TENSOR;
    call.number = number;
    call.memory = NULL;
    call.bytes = 0u;
    return mcc_module_do(m, &call) == MCC_OK ? call.memory : NULL;
}

MCC_INLINE void *mcc_module_input(const mcc_module *m, uint32_t index)
{
    return mcc_module_data(m, mcc_module_number(m, MCC_MODULE_INPUT, index));
}

MCC_INLINE const void *mcc_module_output(const mcc_module *m, uint32_t index)
{
    return mcc_module_data(m, mcc_module_number(m, MCC_MODULE_OUTPUT, index));
}

/* What <model>_run, ... do. MCC_ERR_MODULE_CALL: the model was compiled without. */
MCC_INLINE mcc_status mcc_module_run(const mcc_module *m)
{
    return mcc_module_ask(m, MCC_MODULE_DO_RUN, 0u, NULL, 0u);
}

MCC_INLINE mcc_status mcc_module_begin(const mcc_module *m)
{
    return mcc_module_ask(m, MCC_MODULE_DO_BEGIN, 0u, NULL, 0u);
}

MCC_INLINE mcc_status mcc_module_run_steps(const mcc_module *m, uint32_t steps)
{
    return mcc_module_ask(m, MCC_MODULE_DO_STEPS, steps, NULL, 0u);
}

MCC_INLINE mcc_status mcc_module_push(const mcc_module *m)
{
    return mcc_module_ask(m, MCC_MODULE_DO_PUSH, 0u, NULL, 0u);
}

MCC_INLINE mcc_status mcc_module_reset(const mcc_module *m)
{
    return mcc_module_ask(m, MCC_MODULE_DO_RESET, 0u, NULL, 0u);
}

MCC_INLINE mcc_status mcc_module_save_state(const mcc_module *m, void *to)
{
    return mcc_module_ask(m, MCC_MODULE_DO_SAVE, 0u, to, 0u);
}

MCC_INLINE mcc_status mcc_module_load_state(const mcc_module *m, void *from)
{
    return mcc_module_ask(m, MCC_MODULE_DO_LOAD, 0u, from, 0u);
}

MCC_INLINE mcc_status mcc_module_seed(const mcc_module *m, uint64_t seed)
{
    return mcc_module_ask(m, MCC_MODULE_DO_SEED, 0u, &seed, 0u);
}

/* As many sizes as are free, in the order of the report. */
MCC_INLINE mcc_status mcc_module_resize(const mcc_module *m, ptrdiff_t *sizes)
{
    return mcc_module_ask(m, MCC_MODULE_DO_RESIZE, 0u, sizes, 0u);
}

/* The true shape of a tensor of the table, where sizes are not fixed. */
MCC_INLINE mcc_status mcc_module_shape(const mcc_module *m, uint32_t number, size_t *shape)
{
    return mcc_module_ask(m, MCC_MODULE_DO_SHAPE, number, shape, 0u);
}

/* Where a tensor lies that has `room`. */
MCC_INLINE mcc_status mcc_module_place(const mcc_module *m, uint32_t number, void *memory)
{
    return mcc_module_ask(m, MCC_MODULE_DO_PLACE, number, memory, 0u);
}

#endif /* MCC_MODULE_H */
