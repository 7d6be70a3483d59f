"""Each slice of a run is counted on an emulated board: none takes more than `--max-slice` says, all together hardly
more than the whole run, and two instances that take turns give the results of whole runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.counted import compiled, instructions, model_objects, program
from embedded.models import path_of
from mccompile.driver import Options, compile
from mccompile.targets.api import Prefer
from mccompile.toolchain.tools import missing

pytestmark = pytest.mark.skipif(bool(missing(["arm-none-eabi-gcc", "qemu-system-arm"])), reason="needs QEMU for Arm")
PROGRAM = r"""
#include <string.h>
#include "board.h"
#include "net.h"
#define ROOM ((NET_ARENA_BYTES + NET_ARENA_ALIGN - 1u) / NET_ARENA_ALIGN * NET_ARENA_ALIGN)
static MCC_ALIGNED(NET_ARENA_ALIGN) uint8_t arenas[2][ROOM];
static net_model m[2];
static int8_t whole[2][NET_OUTPUT_@OUT@_BYTES];

static void fill(int which)
{
    int8_t *const x = (int8_t *)net_input_@in@(&m[which]);
    for (int i = 0; i < (int)NET_INPUT_@IN@_BYTES; ++i) x[i] = (int8_t)(i * 37 + which * 11 + (i >> 3));
}

int main(void)
{
    mcc_status status;
    for (int k = 0; k < 2; ++k) {
        if (net_init(&m[k], arenas[k], sizeof arenas[k], net_weights, net_weights_bytes) != MCC_OK) return 1;
        fill(k);
        board_count_begin();
        if (net_run(&m[k]) != MCC_OK) return 2;
        board_count_end();
        memcpy(whole[k], net_output_@out@(&m[k]), sizeof whole[k]);
        fill(k);
        net_begin(&m[k]);
    }
    do {
        board_count_begin();
        status = net_run_steps(&m[0], 1);
        board_count_end();
        if (net_run_steps(&m[1], 1) != status) return 3;
    } while (status == MCC_MORE);
    for (int k = 0; k < 2; ++k)
        if (memcmp(whole[k], net_output_@out@(&m[k]), sizeof whole[k]) != 0) return 4;
    return status == MCC_OK ? 0 : 5;
}
"""


@pytest.mark.parametrize("prefer", [Prefer.BALANCED, Prefer.TIME, Prefer.FLASH])
def test_no_slice_is_longer_than_asked_for(prefer: Prefer, tmp_path: Path) -> None:
    most = 60_000
    options = Options(target="cortex-m4", prefer=prefer, slices=True, max_slice=most, name="net")
    package = compile(path_of("separable_int8", tmp_path), options)
    package.write(tmp_path / "out")
    (x,), (y,) = package.plan.inputs, package.plan.outputs
    names = {"in": x.name, "IN": x.name.upper(), "out": y.name, "OUT": y.name.upper()}
    text = PROGRAM
    for word, name in names.items():
        text = text.replace(f"@{word}@", name)
    (tmp_path / "main.c").write_text(text)
    own = compiled(tmp_path / "main.c", tmp_path, tmp_path / "out", tmp_path / "out" / "runtime")
    made = program([own, *model_objects(tmp_path / "out", tmp_path)], "net", tmp_path)
    whole, _, *slices = instructions(made)
    assert len(slices) > 8 and max(slices) <= most
    assert sum(slices) <= 1.03 * whole
