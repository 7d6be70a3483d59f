/* model_memory.h - the memory of a model that is checked: arena and struct between guards, poisoned before the model is
 * initialised; and the words of 32 bits that end its results. */
#ifndef MODEL_MEMORY_H
#define MODEL_MEMORY_H

#include <string.h>

#include "board.h"
#include "mcc_host_model.h"

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)
#define NAME(rest) JOIN(MCC_HOST_PREFIX, rest)
extern const uint64_t NAME(_weights)[]; /* declared again where the blob is external */
extern const size_t NAME(_weights_bytes);

#define GUARD 0xC3
#define GUARD_BYTES 64u
#define POISON 0xA5

enum { MAGIC = 0x4D434352, STAGE_DONE = 0, STAGE_READ, STAGE_INIT, STAGE_RUN, STAGE_GUARD, STAGE_WEIGHTS, STAGE_RESIZE, STAGE_LEARN };

/* Aligned as promised, and no better: an odd multiple. */
static MCC_ALIGNED(2 * MCC_HOST_ARENA_ALIGN) uint8_t
    memory[MCC_HOST_ARENA_ALIGN + GUARD_BYTES * 2u + MCC_HOST_ARENA_BYTES + 2u * MCC_HOST_ARENA_ALIGN];
static uint8_t *arena;
static NAME(_model) model;
static uint32_t head[8]; /* MAGIC, stage and status where it ended, stack of init and of a run, bytes of the struct, 0, 0 */

static void fill(uint8_t *p, int value, size_t count) { memset(p, value, count); }

static int is_whole(const uint8_t *p)
{
    size_t i;
    for (i = 0; i < GUARD_BYTES; i++)
        if (p[i] != GUARD) return 0;
    return 1;
}

static int put(int file, const void *from, size_t bytes)
{
    return bytes == 0u || board_write(file, from, bytes) == bytes;
}

static int get(int file, void *to, size_t bytes) { return bytes == 0u || board_read(file, to, bytes) == bytes; }

#define INIT() MCC_HOST_INIT(&model, arena, NAME(_weights), NAME(_weights_bytes))

/* Init over poisoned memory, between guards. */
static mcc_status begin(void)
{
    mcc_status status;
    arena = memory + GUARD_BYTES;
    while (((uintptr_t)arena & (2u * MCC_HOST_ARENA_ALIGN - 1u)) != MCC_HOST_ARENA_ALIGN) arena++;
    head[0] = MAGIC;
    head[5] = (uint32_t)sizeof model;
    fill(memory, GUARD, sizeof memory);
    fill(arena, POISON, MCC_HOST_ARENA_BYTES);
    memset(&model, POISON, sizeof model);

    board_paint_stack();
    board_count_begin();
    status = INIT();
    board_count_end();
    head[3] = (uint32_t)board_stack_used();
    return status == MCC_OK ? (mcc_status)(MCC_HOST_PLACE(&model)) : status;
}

static int is_within(void) { return is_whole(arena - GUARD_BYTES) && is_whole(arena + MCC_HOST_ARENA_BYTES); }

static int ended(int file, uint32_t stage, uint32_t status)
{
    head[1] = stage;
    head[2] = status;
    return put(file, head, sizeof head) ? 0 : 97;
}

#endif
