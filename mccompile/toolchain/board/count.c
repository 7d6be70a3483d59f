/* count.c - a plugin for QEMU that counts the instructions between two places of a program. Exact: the same on every host, under
 * any load. Arguments: begin=0x..., end=0x... (addresses of board_count_begin and board_count_end), out=FILE. Writes a line with a
 * number for every time that `end` is reached. With ticks=FILE, which lists addresses of functions that are called behind steps,
 * the line goes on with instructions:calls of each step. The functions of QEMU's plugin interface (version 1) are declared here, because
 * distributions ship no header for them. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*called)(uint64_t id, struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*called)(unsigned cpu, void *data), int flags,
                                          void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

enum { MOST_TICKS = 8192 };

static uint64_t begin, end, count, before;
static uint64_t ticks[MOST_TICKS], spent[MOST_TICKS], calls[MOST_TICKS];
static int tick_count;
static int counting;
static FILE *out;

static void plain(unsigned cpu, void *instructions)
{
    (void)cpu;
    if (counting) count += (uintptr_t)instructions;
}

static void at_begin(unsigned cpu, void *unused)
{
    (void)cpu;
    (void)unused;
    counting = 1;
    count = before = 0;
    memset(spent, 0, sizeof spent);
    memset(calls, 0, sizeof calls);
}

static void at_tick(unsigned cpu, void *number)
{
    const uintptr_t step = (uintptr_t)number;
    (void)cpu;
    if (!counting) return;
    spent[step] += count - before;
    calls[step]++;
    before = count;
}

static void at_end(unsigned cpu, void *unused)
{
    int i;
    (void)cpu;
    (void)unused;
    if (counting) {
        fprintf(out, "%" PRIu64, count);
        for (i = 0; i < tick_count; i++) fprintf(out, " %" PRIu64 ":%" PRIu64, spent[i], calls[i]);
        fputc('\n', out);
    }
    fflush(out);
    counting = 0;
}

/* Calls and returns end blocks of translated code, so a function's first instruction always begins one. */
static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
    const uint64_t address = qemu_plugin_tb_vaddr(block);
    void *const instructions = (void *)(uintptr_t)qemu_plugin_tb_n_insns(block);
    int i;
    (void)id;
    for (i = 0; i < tick_count; i++)
        if (ticks[i] == address) qemu_plugin_register_vcpu_tb_exec_cb(block, at_tick, 0, (void *)(uintptr_t)i);
    qemu_plugin_register_vcpu_tb_exec_cb(block, address == begin ? at_begin : address == end ? at_end : plain, 0, instructions);
}

static void read_ticks(const char *path)
{
    FILE *const file = fopen(path, "r");
    while (file != NULL && tick_count < MOST_TICKS && fscanf(file, "%" SCNx64, &ticks[tick_count]) == 1) tick_count++;
    if (file != NULL) fclose(file);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    int i;
    (void)info;
    for (i = 0; i < argc; i++) {
        if (strncmp(argv[i], "begin=", 6) == 0) begin = strtoull(argv[i] + 6, NULL, 0);
        else if (strncmp(argv[i], "end=", 4) == 0) end = strtoull(argv[i] + 4, NULL, 0);
        else if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
        else if (strncmp(argv[i], "ticks=", 6) == 0) read_ticks(argv[i] + 6);
        else return -1;
    }
    if (out == NULL) return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
