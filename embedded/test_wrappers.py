"""What wrappers cost on a Cortex-M4: at most one percent more instructions than the same program in C."""

from __future__ import annotations

from pathlib import Path

from embedded.counted import compiled, instructions, model_objects, program
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from tests import small_models

C = """
#include "conv.h"
#include "board.h"
static MCC_ALIGNED(CONV_ARENA_ALIGN) uint8_t arena[CONV_ARENA_BYTES];
static conv_model m;
float sum;
int main(void)
{
    size_t i;
    board_count_begin();
    if (conv_init(&m, arena, sizeof arena, conv_weights, conv_weights_bytes) != MCC_OK) return 1;
    board_count_end();
    board_count_begin();
    float *const x = conv_input_x(&m);
    for (i = 0; i != CONV_INPUT_X_COUNT; i++) x[i] = (float)i;
    if (conv_run(&m) != MCC_OK) return 2;
    const float *const y = conv_output_y(&m);
    for (i = 0; i != CONV_OUTPUT_Y_COUNT; i++) sum += y[i];
    board_count_end();
    return 0;
}
"""
CPP = """
#include "conv.hpp"
extern "C" {
#include "board.h"
}
static mcc::conv::arena arena;
float sum;
int main()
{
    board_count_begin();
    mcc::conv::model m(arena);
    if (m.status() != MCC_OK) return 1;
    board_count_end();
    board_count_begin();
    const auto x = m.input_x();
    for (size_t i = 0; i != x.size(); i++) x[i] = static_cast<float>(i);
    if (m.run() != MCC_OK) return 2;
    for (const float y : m.output_y()) sum += y;
    board_count_end();
    return 0;
}
"""


def counted(folder: Path, scratch: Path, source: str, name: str) -> list[int]:
    scratch.mkdir()
    (scratch / name).write_text(source)
    objects = [*model_objects(folder, scratch), compiled(scratch / name, scratch, folder, folder / "runtime")]
    return instructions(program(objects, "conv_weights.o", scratch))


def test_cpp_costs_what_c_costs(tmp_path: Path) -> None:
    """A model of so few instructions that one percent is not much."""
    options = Options(target="cortex-m4", wrappers=("cpp",))
    compile_graph(load_proto(small_models.conv()), options, "conv").write(tmp_path / "out")
    in_c = counted(tmp_path / "out", tmp_path / "c", C, "user.c")
    in_cpp = counted(tmp_path / "out", tmp_path / "cpp", CPP, "user.cpp")
    assert len(in_c) == 2
    assert all(more <= less * 1.01 for more, less in zip(in_cpp, in_c, strict=True)), (in_cpp, in_c)
    print(in_cpp, in_c)
