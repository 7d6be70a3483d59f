"""Devices for docs/learning.md: `python -m tests.docs.fleet 3` runs out/ as three devices, each of which learns from
samples of its own and saves: devices/1.bin ..."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "spotter.h"
static MCC_ALIGNED(SPOTTER_ARENA_ALIGN) uint8_t arena[SPOTTER_ARENA_BYTES];
static uint8_t flash[2][SPOTTER_SLOT_BYTES];
static int read_slot(void *user, uint32_t slot, uint32_t at, void *to, size_t bytes)
{ (void)user; memcpy(to, &flash[slot][at], bytes); return 0; }
static int erase(void *user, uint32_t slot)
{ (void)user; memset(flash[slot], 0xFF, SPOTTER_SLOT_BYTES); return 0; }
static int write(void *user, uint32_t slot, uint32_t at, const void *from, size_t bytes)
{ (void)user; memcpy(&flash[slot][at], from, bytes); return 0; }
int main(int argc, char **argv)
{
    const mcc_store store = {read_slot, erase, write, NULL};
    static spotter_model m;
    unsigned chance = (unsigned)atoi(argv[argc - 1]);
    if (spotter_init(&m, arena, sizeof arena, spotter_weights, spotter_weights_bytes) != MCC_OK) return 1;
    for (int step = 0; step < 20; ++step) {
        for (size_t i = 0; i < SPOTTER_INPUT_X_COUNT; ++i) {
            chance = chance * 1103515245u + 12345u;
            spotter_input_x(&m)[i] = (float)(chance >> 16 & 1023u) / 512.0f - 1.0f;
        }
        spotter_input_target(&m)[0] = step % 4;
        if (spotter_learn(&m) != MCC_OK || spotter_step(&m, 0.05f) != MCC_OK) return 2;
    }
    if (spotter_save(&m, &store) != MCC_OK) return 3;
    return fwrite(flash, 1, sizeof flash, stdout) == sizeof flash ? 0 : 4;
}
"""


def main(count: int) -> None:
    Path("devices").mkdir()
    Path("device.c").write_text(PROGRAM)
    sources = map(str, Path("out").glob("spotter*.c"))
    subprocess.run(["cc", "-Iout", "-Iout/runtime", "device.c", *sources, "-lm", "-o", "device"], check=True)
    for number in range(1, count + 1):
        slots = subprocess.run(["./device", str(number)], capture_output=True, check=True).stdout
        Path(f"devices/{number}.bin").write_bytes(slots)


if __name__ == "__main__":
    main(int(sys.argv[1]))
