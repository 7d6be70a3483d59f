/* count.c - a plugin for QEMU that counts the instructions between two places of a program. Exact: the same on every host, under
 * any load. Arguments: begin=0x..., end=0x... (addresses of board_count_begin and board_count_end), out=FILE. Writes a line with a
 * number for every time that `end` is reached. The functions of QEMU's plugin interface (version 1) are declared here, because
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

static uint64_t begin, end, count;
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
    count = 0;
}

static void at_end(unsigned cpu, void *unused)
{
    (void)cpu;
    (void)unused;
    if (counting) fprintf(out, "%" PRIu64 "\n", count);
    fflush(out);
    counting = 0;
}

/* Calls and returns end blocks of translated code, so a function's first instruction always begins one. */
static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
    const uint64_t address = qemu_plugin_tb_vaddr(block);
    void *const instructions = (void *)(uintptr_t)qemu_plugin_tb_n_insns(block);
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, address == begin ? at_begin : address == end ? at_end : plain, 0, instructions);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    int i;
    (void)info;
    for (i = 0; i < argc; i++) {
        if (strncmp(argv[i], "begin=", 6) == 0) begin = strtoull(argv[i] + 6, NULL, 0);
        else if (strncmp(argv[i], "end=", 4) == 0) end = strtoull(argv[i] + 4, NULL, 0);
        else if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
        else return -1;
    }
    if (out == NULL) return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
