"""Inputs and outputs outside the arena: the same results, no copy, and refusals where a program forgets something."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, arrange
from mccompile.emit.package import write_folder
from mccompile.kinds.map import Map
from mccompile.passes.api import ALL
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import compiled, random_inputs, reference, written
from tests.thorough import some

OUTSIDE = Options(external=(ALL,))
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
HEAD = '<ir_version: 8, opset_import: ["": 17]>'
LOOP = parser.parse_model(
    f"{HEAD} looped (float[3] x) => (float[3] y, float[4,3] all) <int64 four = {{4}}, bool go = {{1}}>"
    "{ y, all = Loop(four, go, x) <body = b (int64 i, bool c, float[3] v) => (bool d, float[3] w, float[3] s)"
    "  { d = Identity(c) w = Mul(v, v) s = Neg(v) }> }"
)
JOINED = parser.parse_model(  # an output is a part of another one, one is a view of the input
    f"{HEAD} joined (float[2,4] x) => (float[4,4] y, float[2,4] n, float[8] flat) <int64[1] eight = {{8}}>"
    "{ n = Neg(x) r = Relu(x) y = Concat<axis=0>(n, r) flat = Reshape(x, eight) }"
)
MODELS = {**{name: make() for name, make in small_models.ALL.items()}, "looped": LOOP, "joined": JOINED}


@some(1, "optimize", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_the_same(name: str, optimize: bool, tmp_path: Path) -> None:
    made = MODELS[name]
    folder = written(made, tmp_path, Options(external=(ALL,), optimize=optimize))
    model = Model.build(folder, flags=STRICT)
    inputs, wanted = random_inputs(made), reference(made, random_inputs(made))
    for got in (model.run(inputs, poison=0xA5), model.run(inputs)):
        for output, array in wanted.items():
            if array.dtype.kind == "f":
                np.testing.assert_allclose(got[output], array, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(got[output], array)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("state", [{}, {"kept": "before"}])
def test_an_output_inside_may_be_an_input_outside(state: dict[str, str], optimize: bool, tmp_path: Path) -> None:
    """All of it, a part of it, or what the next run finds: each is copied into the arena."""
    made = parser.parse_model(
        f"{HEAD} views (float[2,3] x, float[2,3] before) => (float[6] flat, float[1,3] part, float[2,3] sum,"
        " float[2,3] kept) <int64[1] six = {6}, int64[1] one = {1}, int64[1] two = {2}>"
        "{ flat = Reshape(x, six) part = Slice(x, one, two) sum = Add(x, before) kept = Identity(x) }"
    )
    options = Options(external=("x",), state=state, optimize=optimize)
    model = Model.build(written(made, tmp_path, options), flags=STRICT)
    runs = [np.arange(6, dtype=np.float32).reshape(2, 3) + n for n in range(3)]
    before = np.zeros_like(runs[0])
    for x in runs:
        got = model.run({"x": x} if state else {"x": x, "before": before})
        np.testing.assert_array_equal(got["flat"], x.reshape(-1))
        np.testing.assert_array_equal(got["part"], x[1:])
        np.testing.assert_array_equal(got["sum"], x + before)
        before = x


def test_the_arena_is_smaller_and_nothing_is_copied() -> None:
    inside, outside = compiled(small_models.conv()).plan, compiled(small_models.conv(), OUTSIDE).plan
    assert outside.arena_bytes < inside.arena_bytes
    assert len(list(outside.steps())) == len(list(inside.steps()))
    assert not any(isinstance(s.function.call.kind, Map) and s.function.call.kind.is_copy for s in outside.steps())


def test_one_alone_may_be_outside(tmp_path: Path) -> None:
    package = compiled(small_models.conv(), Options(external=("x",)))
    header = package.files["conv.h"].decode()
    assert "conv_set_input_x(" in header and "conv_output_y(" in header
    assert "conv_input_x(" not in header and "conv_set_output_y(" not in header


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(WrongUse, match="there is no input or output 'z'"):
        compiled(small_models.conv(), Options(external=("z",)))


PROGRAM = """
#include <stdio.h>
#include "conv.h"
static MCC_ALIGNED(CONV_ARENA_ALIGN) uint8_t arena[CONV_ARENA_BYTES];
static MCC_ALIGNED(8) uint8_t x[CONV_INPUT_X_ROOM + 1];
static MCC_ALIGNED(8) uint8_t y[CONV_OUTPUT_Y_ROOM];
int main(void)
{
    conv_model m;
    const void *odd = x + 1;
    if (conv_init(&m, arena, sizeof arena, conv_weights, conv_weights_bytes) != MCC_OK) return 1;
    printf("%d ", conv_set_input_x(&m, NULL));
    printf("%d ", conv_set_input_x(&m, (const float *)odd));
    printf("%d ", conv_set_input_x(&m, (const float *)(const void *)x));
    printf("%d ", conv_run(&m));
    printf("%d ", conv_set_output_y(&m, (float *)(void *)y));
    printf("%d ", conv_run(&m));
    m.ready = 0u;
    printf("%d", conv_set_output_y(&m, (float *)(void *)y));
    return 0;
}
"""


def test_pointers_that_are_missing_or_crooked_are_refused(tmp_path: Path) -> None:
    folder = written(small_models.conv(), tmp_path, OUTSIDE)
    (folder / "main.c").write_text(PROGRAM)
    sources = [str(path) for path in folder.glob("*.c")]
    subprocess.run(["gcc", "-std=c99", f"-I{folder}/runtime", *sources, "-o", f"{folder}/a", "-lm"], check=True)
    said = subprocess.run([f"{folder}/a"], capture_output=True, text=True, check=True).stdout
    assert said == "1 17 0 1 0 0 2"  # null, not aligned, ok, the output is not set, ok, ok, not initialised


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "tcc"])
def test_the_c_is_clean_and_the_program_runs(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder = written(JOINED, tmp_path, OUTSIDE)
    flags = ["-x", "c++", "-std=c++11", *STRICT[1:]] if compiler == "g++" else list(STRICT)
    sources = [str(path) for path in folder.glob("*.c")]
    command = [compiler, *flags, f"-I{folder}/runtime", *sources, "-o", f"{folder}/a", "-lm"]
    subprocess.run(command, check=True)
    said = subprocess.run([f"{folder}/a"], capture_output=True, text=True, check=True).stdout
    assert said.count(" 0") >= 16


def test_clang_has_nothing_to_say_of_it(tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    folder = written(small_models.conv(), tmp_path, OUTSIDE)
    flags = ["-std=c99", "-Wcast-qual", "-Wcast-align", "-Werror", "-fsyntax-only", f"-I{folder}/runtime"]
    subprocess.run(["clang", *flags, str(folder / "conv.c")], check=True)


def test_an_arduino_example_sets_them(tmp_path: Path) -> None:
    files = arrange(compiled(small_models.conv(), OUTSIDE).files, "arduino", "conv", OUTSIDE)
    write_folder(tmp_path / "out", files)
    (sketch,) = (tmp_path / "out").rglob("*.ino")
    assert "conv_set_input_x(&conv, reinterpret_cast<float *>(conv_input_x))" in sketch.read_text()
