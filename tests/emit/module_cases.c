/* module_cases.c - opens "net.mcm" as any program does, on this machine or an emulated board (board.h): runs it at two
 * addresses on what "inputs.bin" holds, then damages copies of it in many ways. "results.bin" becomes the outputs of both
 * runs, and a word with the status of each other try. */
#if defined(__linux__)
#define _GNU_SOURCE
#include <sys/mman.h>
#endif
#include <string.h>

#include "board.h"
#include "mcc_module_functions.h"

#ifndef ROOM
#define ROOM (64u << 10)
#endif
enum { PAGE = 4096, FLIPS = 64 };

static const mcc_module_functions functions = MCC_MODULE_GIVEN;
static MCC_ALIGNED(64) uint8_t memory[ROOM];
static uint8_t original[ROOM];
#if !defined(__linux__)
static MCC_ALIGNED(PAGE) uint8_t places[2u * ROOM + PAGE];
#endif
static size_t bytes;
static int results;

static void put_word(uint32_t word) { (void)board_write(results, &word, sizeof word); }

/* Code that has been written becomes code that can run. */
static void copy(uint8_t *to, size_t count)
{
    (void)memcpy(to, original, count);
    __builtin___clear_cache((char *)to, (char *)to + count);
}

static mcc_status opened(const uint8_t *image, size_t count)
{
    mcc_module m;
    return mcc_module_open(&m, image, count, &functions);
}

static mcc_status run_at(uint8_t *image)
{
    const mcc_module_tensor *t;
    mcc_module m;
    mcc_status status;
    uint32_t number;
    const int inputs = board_open("inputs.bin", 0);
    copy(image, bytes);
    status = mcc_module_open(&m, image, bytes, &functions);
    (void)memset(memory, 0xA5, sizeof memory);
    if (status == MCC_OK) status = mcc_module_init(&m, memory, sizeof memory);
    for (number = 0; status == MCC_OK && (t = mcc_module_tensor_at(&m, number)) != NULL; number++)
        if (t->way == MCC_MODULE_INPUT && board_read(inputs, mcc_module_data(&m, number), t->bytes) != t->bytes)
            status = MCC_ERR_NULL;
    if (status == MCC_OK) status = mcc_module_run(&m);
    for (number = 0; status == MCC_OK && (t = mcc_module_tensor_at(&m, number)) != NULL; number++)
        if (t->way == MCC_MODULE_OUTPUT) (void)board_write(results, mcc_module_data(&m, number), t->bytes);
    return status;
}

/* With a byte altered, and whole again. */
static mcc_status altered(uint8_t *image, size_t at)
{
    mcc_status status;
    image[at] ^= 1u;
    status = opened(image, bytes);
    image[at] ^= 1u;
    return status;
}

int main(void)
{
    const int file = board_open("net.mcm", 0);
    uint8_t *first, *second;
    mcc_module_functions none;
    mcc_module_head head;
    mcc_module m;
    size_t i;
    results = board_open("results.bin", 1);
    bytes = board_read(file, original, sizeof original);
#if defined(__linux__)
    first = (uint8_t *)mmap(NULL, 3u * ROOM, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#else
    first = places;
#endif
    (void)memcpy(&head, original, sizeof head);
    second = first + ROOM + head.align; /* an odd multiple, no better */
    put_word((uint32_t)run_at(first));
    put_word((uint32_t)run_at(second));

    put_word((uint32_t)opened(first, 0u));
    put_word((uint32_t)opened(first, sizeof(mcc_module_head) - 1u));
    put_word((uint32_t)opened(first, sizeof(mcc_module_head)));
    put_word((uint32_t)opened(first, bytes - 1u));
    put_word((uint32_t)opened(first, bytes + 64u)); /* more may follow */
    put_word((uint32_t)altered(first, offsetof(mcc_module_head, magic)));
    put_word((uint32_t)altered(first, offsetof(mcc_module_head, version)));
    put_word((uint32_t)altered(first, offsetof(mcc_module_head, machine)));
    put_word((uint32_t)altered(first, offsetof(mcc_module_head, features) + 3u));
    put_word((uint32_t)altered(first, offsetof(mcc_module_head, crc)));
    put_word((uint32_t)altered(first, offsetof(mcc_module_head, entry)));
    (void)memmove(first + 4, original, bytes);
    put_word((uint32_t)opened(first + 4, bytes));
    copy(first, bytes);
    (void)memset(&none, 0, sizeof none);
    put_word((uint32_t)mcc_module_open(&m, first, bytes, &none));
    put_word((uint32_t)mcc_module_open(&m, first, bytes, NULL));
    put_word((uint32_t)mcc_module_run(&m)); /* not opened */
    put_word((uint32_t)mcc_module_open(&m, first, bytes, &functions));
    put_word((uint32_t)mcc_module_run(&m)); /* no instance */
    put_word((uint32_t)mcc_module_init(&m, memory, mcc_module_memory_bytes(&m) - 1u));
    put_word((uint32_t)mcc_module_init(&m, memory + 1, mcc_module_memory_bytes(&m)));
    put_word((uint32_t)mcc_module_init(&m, memory, mcc_module_memory_bytes(&m)));
    put_word((uint32_t)mcc_module_push(&m)); /* it has no stream */
    put_word(mcc_module_data(&m, 1000u) == NULL ? 0u : 1u);
    for (i = 0; i < FLIPS; i++) put_word((uint32_t)altered(first, offsetof(mcc_module_head, entry) + i * (bytes - 28u) / FLIPS));
    put_word((uint32_t)opened(first, bytes));
    return 0;
}
