"""Canaries around the arena, assertions about positions from data: nothing by default; what they find is told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from mccompile.driver import Options
from tests import small_models
from tests.small_models import written

PROGRAM = """
#include <stdio.h>
#include "mlp.h"
static MCC_ALIGNED(64) uint8_t arena[MLP_ARENA_BYTES];
int main(void)
{
    mlp_model m;
    printf("%d ", mlp_init(&m, arena, sizeof arena - 1u, mlp_weights, mlp_weights_bytes));
    printf("%d ", mlp_init(&m, arena, sizeof arena, mlp_weights, mlp_weights_bytes));
    printf("%d", mlp_run(&m));
    return 0;
}
"""


def said_by(folder: Path, program: str, *flags: str) -> str:
    (folder / "main.c").write_text(program)
    sources = [str(path) for path in folder.glob("*.c")]
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{folder}", f"-I{folder}/runtime", *flags]
    subprocess.run([*command, *sources, "-o", f"{folder}/a", "-lm"], check=True)
    return subprocess.run([f"{folder}/a"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("slices", [False, True])
@pytest.mark.parametrize(("place", "status"), [("m->arena[-1]", 20), ("m->arena[MLP_SIZE]", 20), ("m->arena[0]", 0)])
def test_what_writes_beside_the_arena_is_found(place: str, status: int, slices: bool, tmp_path: Path) -> None:
    folder = written(small_models.mlp(), tmp_path, Options(slices=slices))
    source = folder / "mlp.c"
    text = source.read_text()
    begin = "    return mcc_check_canaries("
    assert begin in text
    size = "#define MLP_SIZE (MLP_ARENA_BYTES - 2u * MCC_CANARY_BYTES)\n"
    source.write_text(text.replace(begin, f"    {place} = 1u;\n{begin}").replace("#define A(", f"{size}#define A(", 1))
    assert said_by(folder, PROGRAM, "-DMCC_CANARY") == f"4 0 {status}"


def test_without_them_an_arena_is_no_larger(tmp_path: Path) -> None:
    folder = written(small_models.mlp(), tmp_path)
    program = '#include <stdio.h>\n#include "mlp.h"\nint main(void) { printf("%u", MLP_ARENA_BYTES); return 0; }\n'
    plain, guarded = int(said_by(folder, program)), int(said_by(folder, program, "-DMCC_CANARY"))
    assert guarded == plain + 128


def test_a_position_outside_of_its_tensor_is_asserted(tmp_path: Path) -> None:
    made = small_models.model("taken", [small_models.node("Gather", "table i", "y")], [("i", (1,))], [("y", (1, 2))],
                              {"table": np.ones((3, 2), np.float32)})  # fmt: skip
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    folder = written(made, tmp_path)
    (folder / "config.h").write_text("extern int broken;\n#define MCC_ASSERT(condition) (broken += !(condition))\n")
    program = """
#include <stdio.h>
#include "taken.h"
int broken;
static MCC_ALIGNED(64) uint8_t arena[TAKEN_ARENA_BYTES];
int main(void)
{
    taken_model m;
    int i;
    if (taken_init(&m, arena, sizeof arena, taken_weights, taken_weights_bytes) != MCC_OK) return 1;
    for (i = -4; i < 4; i++) {
        taken_input_i(&m)[0] = i;
        if (taken_run(&m) != MCC_OK) return 2;
        printf("%d", broken);
    }
    return 0;
}
"""
    assert said_by(folder, program, '-DMCC_CONFIG="config.h"') == "11111112"  # -4 and 3 lie outside
