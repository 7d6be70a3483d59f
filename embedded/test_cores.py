"""Two cores of a board without an operating system share the steps of a model: two Cortex-M33 that run code for M0+,
which has no instructions but loads and stores for that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from embedded.counted import compiled, instructions, model_objects, program
from embedded.quantized_models import Net
from mccompile.driver import Options, compile
from mccompile.targets import api
from mccompile.toolchain import emulate
from mccompile.toolchain.boards import BOARDS, linker_script
from mccompile.toolchain.tools import missing
from tests.small_models import save
from tests.small_quantized import convolutions

pytestmark = pytest.mark.skipif(bool(missing(["arm-none-eabi-gcc", "qemu-system-arm"])), reason="needs QEMU for Arm")
PROGRAM = """
#include <string.h>
#include "board.h"
#include "cores.h"
#include "mcc_cores.h"

#define INITSVTOR1 (*(volatile uint32_t *)0x50021114) /* where the second core's vectors are */
#define CPUWAIT (*(volatile uint32_t *)0x50021118)    /* which cores wait */

static MCC_ALIGNED(CORES_ARENA_ALIGN) uint8_t arena[CORES_ARENA_BYTES];
static int8_t alone[CORES_OUTPUT_Y_COUNT];
static cores_model m;
static mcc_cores both;
static uint64_t stack[512];
static volatile uint32_t started;

static void second(void)
{
    started = 1u;
    mcc_cores_work(&both);
    for (;;) {
    }
}

static const struct {
    void *stack;
    void (*reset)(void);
} vectors MCC_ALIGNED(512) = {stack + 512, second};

static int differs(void)
{
    for (size_t i = 0; i < CORES_INPUT_X_COUNT; i++) cores_input_x(&m)[i] = (int8_t)(i * 7u);
    return cores_run(&m) != MCC_OK || memcmp(alone, cores_output_y(&m), sizeof alone) != 0;
}

int main(void)
{
    if (cores_init(&m, arena, sizeof arena, cores_weights, cores_weights_bytes) != MCC_OK) return 1;
    (void)differs();
    memcpy(alone, cores_output_y(&m), sizeof alone);
    if (differs()) return 2;
    INITSVTOR1 = (uint32_t)(uintptr_t)&vectors;
    CPUWAIT = 0u;
    while (!started) {
    }
    if (cores_set_parallel(&m, mcc_cores_for, &both) != MCC_OK) return 3;
    for (int run = 0; run < 3; run++) {
        if (differs()) return 4;
    }
    if (both.done == 0u || both.done != both.asked) return 5;
    mcc_cores_stop(&both);
    return 0;
}
"""


def test_a_second_core_shares_steps(tmp_path: Path) -> None:
    made = save(convolutions(24, [(8, 3, 1), (0, 3, 1), (16, 1, 1), (16, 3, 2)]), tmp_path)
    package = compile(made, Options(target="cortex-m0", prefer="time", threads=2, name="cores"))
    assert sum(step.shared is not None for step in package.plan.steps()) > 1
    package.write(tmp_path / "out")
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "board.ld").write_text(linker_script(BOARDS["mps2-an505"], "cores_weights.o"))  # an521's are the same
    board, sources = Path(emulate.__file__).parent / "board", sorted((tmp_path / "out").glob("cores*.c"))
    flags = [*api.load("cortex-m0").cflags, "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror"]
    folders = [f"-I{folder}" for folder in (tmp_path / "out", tmp_path / "out" / "runtime", board)]
    linking = ["-nostartfiles", "--specs=nano.specs", "-T", str(tmp_path / "board.ld"), "-o", str(tmp_path / "program")]
    files = [str(tmp_path / "program.c"), str(board / "bare.c"), *map(str, sources)]
    subprocess.run(["arm-none-eabi-gcc", *flags, *folders, *files, *linking], check=True)
    machine = ["qemu-system-arm", "-M", "mps2-an521", "-display", "none", "-semihosting", "-kernel"]
    done = subprocess.run([*machine, str(tmp_path / "program")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


# A model whose pieces run one after the other: what is counted are all of it (WHOLE), or each piece.
IN_TURN = """
#include "board.h"
#include "cores.h"

static MCC_ALIGNED(CORES_ARENA_ALIGN) uint8_t arena[CORES_ARENA_BYTES];

#ifdef CORES_THREADS
static void in_turn(void *of, mcc_index count, void (*body)(void *context, mcc_index index), void *context)
{
    (void)of;
    for (mcc_index i = 0; i < count; ++i) {
        if (!WHOLE) board_count_begin();
        body(context, i);
        if (!WHOLE) board_count_end();
    }
}
#endif

int main(void)
{
    static cores_model m;
    if (cores_init(&m, arena, sizeof arena, cores_weights, cores_weights_bytes) != MCC_OK) return 1;
#ifdef CORES_THREADS
    if (cores_set_parallel(&m, in_turn, NULL) != MCC_OK) return 2;
#endif
    if (WHOLE) board_count_begin();
    if (cores_run(&m) != MCC_OK) return 3;
    if (WHOLE) board_count_end();
    return 0;
}
"""


def counted(model: Path, threads: int, whole: bool, folder: Path) -> list[int]:
    package = compile(model, Options(target="cortex-m4", prefer="time", threads=threads, name="cores"))
    package.write(folder / "out")
    ahead = f"#define WHOLE {int(whole)}\n" + "#define CORES_THREADS\n" * (threads > 1)
    (folder / "in_turn.c").write_text(ahead + IN_TURN)
    places = (folder / "out", folder / "out" / "runtime")
    objects = [*model_objects(folder / "out", folder), compiled(folder / "in_turn.c", folder, *places)]
    return instructions(program(objects, "cores_weights.o", folder))


def quicker(made: Path, tmp_path: Path) -> float:
    """How many times, by instructions of the longer piece of each step, and of what one core does alone."""
    found = []
    for number, (threads, whole) in enumerate([(1, True), (2, True), (2, False)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(counted(made, threads, whole, folder))
    (alone,), (both,), pieces = found
    longest = sum(max(pair) for pair in zip(pieces[::2], pieces[1::2], strict=True))
    assert len(pieces) >= 6
    return alone / (both - sum(pieces) + longest)


@pytest.mark.parametrize("height", [24, 13])
def test_two_cores_run_a_convolutional_network_in_little_more_than_half(height: int, tmp_path: Path) -> None:
    made = save(convolutions(height, [(16, 3, 1), (0, 3, 1), (32, 1, 1), (32, 3, 2), (32, 3, 1)]), tmp_path)
    assert quicker(made, tmp_path) >= 1.8


def test_two_cores_share_the_columns_of_dense_layers(tmp_path: Path) -> None:
    net = Net((1, 96), 1)
    for outs, inputs in ((64, 96), (70, 64), (48, 70)):
        net.layer("Gemm", (outs, inputs), inputs, transB=1)
    assert quicker(save(net.model("dense", (1, 48)), tmp_path), tmp_path) >= 1.7


def test_two_cores_share_the_channels_of_convolutions_of_few_positions(tmp_path: Path) -> None:
    made = save(convolutions(4, [(32, 3, 1), (32, 3, 1), (32, 3, 1)]), tmp_path)
    assert quicker(made, tmp_path) >= 1.7
