"""Inputs that a function of the program's gives row by row: the same results, a few rows in the arena, each asked for
once and in order."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

from mccompile import cli
from mccompile.base.dims import Symbol
from mccompile.base.dtypes import f32, u8
from mccompile.base.errors import InternalError, MccError, WrongUse
from mccompile.base.streaming import Stream
from mccompile.driver import Options, arrange, compile_graph
from mccompile.emit.package import write_folder
from mccompile.emit.summary import summary
from mccompile.frontend.load import load_proto
from mccompile.measure import correctness
from mccompile.passes.api import ALL
from mccompile.passes.io.io_forms import InputForm, parse_input
from mccompile.program.ir import Buffer, Call, Loop, Program
from mccompile.program.text import read
from mccompile.program.verify import verify
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import compiled, floats, model, node, random_inputs, reference, written
from tests.thorough import some

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
ROWS = InputForm(rows=True)
BY_ROWS = Options(inputs={"x": ROWS})
HEAD = '<ir_version: 8, opset_import: ["": 17]>'


def picture(height: int = 12, stride: int = 2, pad: int = 1) -> ModelProto:
    """Two convolutions; with stride 2 and no pad the last row of an even number is not read."""
    weights = {"v": floats(1, 4, 3, 3, 3), "w": floats(2, 2, 4, 3, 3)}
    first = (height + 2 * pad - 3) // stride + 1
    nodes = [
        node("Conv", "x v", "a", strides=[stride] * 2, pads=[pad] * 4),
        node("Relu", "a", "b"),
        node("Conv", "b w", "y", pads=[1] * 4),
    ]
    return model("picture", nodes, [("x", (1, 3, height, height))], [("y", (1, 2, first, first))], weights)


JOINED = parser.parse_model(  # nothing of it goes by rows
    f"{HEAD} joined (float[2,4] x) => (float[4,4] y, float[2,4] n, float[8] flat) <int64[1] eight = {{8}}>"
    "{ n = Neg(x) r = Relu(x) y = Concat<axis=0>(n, r) flat = Reshape(x, eight) }"
)
LOOPED = parser.parse_model(
    f"{HEAD} looped (float[3,2] x) => (float[3,2] y) <int64 four = {{4}}, bool go = {{1}}>"
    "{ y = Loop(four, go, x) <body = b (int64 i, bool c, float[3,2] v) => (bool d, float[3,2] w)"
    "  { d = Identity(c) w = Mul(v, v) }> }"
)
MIXED = parser.parse_model(  # rows of a picture, and its elements in another order than theirs
    f"{HEAD} mixed (float[1,2,6,5] x) => (float[1,2,6,5] y, float[60] flat, float[1,2,5] first)"
    " <float[2,2,3,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9},"
    "  int64[1] all = {60}, int64[1] one = {1}, int64[1] two = {2}, int64[1] axis = {2}, int64[1] shape = {-1}>"
    "{ y = Conv<pads=[1,1,1,1]>(x, w) r = Reshape(x, all) flat = Neg(r)"
    "  part = Slice(x, one, two, axis) first = Squeeze(part, axis) }"
)
MODELS = {
    "picture": picture(),
    "rows that nobody reads": picture(12, 2, 0),
    "joined": JOINED,
    "looped": LOOPED,
    "mixed": MIXED,
}
WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "plain": {"optimize": False},
    "off": {"rows": "off"},
    "time": {"prefer": "time"},
    "sliced": {"slices": True},
    "kept": {"keep_inputs": True, "external": (ALL,)},
    "shared": {"threads": 2, "prefer": "time"},
    "profiled": {"profile": True},
}


@pytest.mark.parametrize("way", WAYS)
@some(2, "name", MODELS)
def test_results_are_the_same(name: str, way: str, tmp_path: Path) -> None:
    """mcc_fetch_array, which gives the rows here, refuses any other order, and a run after one that left some."""
    made = MODELS[name]
    options = replace(BY_ROWS, **WAYS[way])
    running = Model.build(written(made, tmp_path, options), flags=STRICT)
    for seed in (0, 7):
        inputs = random_inputs(made, seed)
        wanted = reference(made, inputs)
        for got in (running.run(inputs, poison=0xA5), running.run(inputs)):
            for output, array in wanted.items():
                np.testing.assert_allclose(got[output], array, rtol=1e-5, atol=1e-5)


FORMS = {
    "bytes of a camera": "x=rows,u8,nhwc,bgr,mean=120:110:100,std=60:58:57",
    "frames": "x=rows,yuyv,resize=bilinear:24x20,scale=1/255",
    "frames with rows in two places": "x=rows,nv21,resize=nearest:24x20,crop=2:4:16x12,scale=1/255",
    "frames with a border": "x=rows,rgb565,resize=area:24x20,letterbox=114",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("rows", ["auto", "off"])
def test_it_goes_with_other_forms(text: str, rows: str, tmp_path: Path) -> None:
    path = small_models.save(picture(), tmp_path)
    assert correctness.check(path, Options(inputs=dict([parse_input(text)]), rows=rows), runs=2).ok


def test_the_arena_holds_the_rows_that_are_in_use() -> None:
    plan = compiled(picture(24), BY_ROWS).plan
    said = summary(plan, 0)
    assert "fetched  x: 3 of its 24 rows lie in the arena" in said and "external" not in said
    assert plan.arena_bytes < 24 * 24 * 3 * 4
    off = compiled(picture(24), replace(BY_ROWS, rows="off")).plan
    assert "fetched  x: all of it lies in the arena" in summary(off, 0)
    assert off.inputs == plan.inputs


def test_rows_that_nobody_reads_are_fetched_behind_the_others() -> None:
    read, unread = (compiled(picture(24, 2, pad), BY_ROWS).files["picture.c"].decode() for pad in (1, 0))
    assert read.count("picture_fetch(") == 1 and unread.count("picture_fetch(") == 2
    assert "while (made_x_rows < 24)" in unread


@pytest.mark.parametrize(
    ("shape", "form", "rows"),
    [
        ((1, 3, 8, 6), ROWS, (2, 8, 3 * 6 * 4)),
        ((1, 3, 8, 6), InputForm(dtype=u8, nhwc=True, rows=True), (1, 8, 6 * 3)),
    ],
)
def test_rows_are_those_of_the_picture(shape: tuple[int, ...], form: InputForm, rows: tuple[int, ...]) -> None:
    made = model("net", [node("Conv", "x w", "y")], [("x", shape)], [("y", (1, 2, 6, 4))], {"w": floats(1, 2, 3, 3, 3)})
    for optimize in (True, False):
        (given,) = compiled(made, Options(inputs={"x": form}, optimize=optimize)).plan.inputs
        assert given.rows is not None and (given.rows.axis, given.rows.count, given.rows.bytes) == rows


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("float[2,3,8,8] x) => (float[2,3,8,8] y", Options(), "it is a batch of 2 pictures"),
        ("float[n,3] x) => (float[n,3] y", Options(dims={"n": (1, 4)}), "rows are of known sizes"),
        ("float[1,1] x) => (float[1,1] y", Options(), "has no rows"),
        ("float[4,3] x) => (float[4,3] y", Options(external=("x",)), "leave out --io x=external, or rows"),
        ("float[4,3] z) => (float[4,3] y", Options(), "no input named 'x'"),
        ("float[4,3] x) => (float[4,3] y", Options(wrappers=("rust",)), "leave out rows of --input"),
    ],
)
def test_what_cannot_be_is_refused(text: str, options: Options, message: str) -> None:
    name = "z" if " z)" in text else "x"
    made = parser.parse_model(f"{HEAD} net ({text}) {{ y = Relu({name}) }}")
    with pytest.raises(MccError, match=message):
        compile_graph(load_proto(made, None, options.dims), replace(options, inputs={"x": ROWS}), "net")


def test_texts_and_modules_are_refused() -> None:
    made = parser.parse_model(f"{HEAD} net (string[4,3] x) => (string[4,3] y) {{ y = Identity(x) }}")
    with pytest.raises(WrongUse, match=r"not bytes of their own|as it comes in"):
        compiled(made, BY_ROWS)
    with pytest.raises(WrongUse, match=r"a module does not go with rows of --input(.|\n)*leave out rows"):
        replace(BY_ROWS, module=True)


PROGRAM = """
#include <stdio.h>
#include "picture.h"
static MCC_ALIGNED(PICTURE_ARENA_ALIGN) uint8_t arena[PICTURE_ARENA_BYTES];
static float frame[PICTURE_INPUT_X_COUNT];
static mcc_array_rows rows = {frame, PICTURE_INPUT_X_ROW_BYTES, PICTURE_INPUT_X_ROWS, 0};
static int fails(void *user, mcc_index first, mcc_index count, void *to)
{
    const mcc_index at = *(const mcc_index *)user;
    (void)to;
    return first <= at && at < first + count;
}
int main(void)
{
    picture_model m;
    mcc_index fifth = 5;
    if (picture_init(&m, arena, sizeof arena, picture_weights, picture_weights_bytes) != MCC_OK) return 1;
    printf("%d ", picture_run(&m));
    printf("%d ", picture_set_input_x(&m, NULL, NULL));
    printf("%d ", picture_set_input_x(&m, mcc_fetch_array, &rows));
    printf("%d ", picture_run(&m));
    printf("%d ", picture_set_input_x(&m, fails, &fifth));
    printf("%d ", picture_run(&m));
    m.ready = 0u;
    printf("%d", picture_set_input_x(&m, fails, &fifth));
    return 0;
}
"""


@pytest.mark.parametrize("options", [BY_ROWS, replace(BY_ROWS, slices=True), replace(BY_ROWS, single_file=True)])
def test_a_function_that_fails_ends_the_run(options: Options, tmp_path: Path) -> None:
    folder = written(picture(), tmp_path, options)
    (folder / "main.c").write_text(PROGRAM)
    sources = [str(path) for path in folder.glob("*.c")]
    subprocess.run(["gcc", *STRICT, f"-I{folder}/runtime", *sources, "-o", f"{folder}/a", "-lm"], check=True)
    said = subprocess.run([f"{folder}/a"], capture_output=True, text=True, check=True).stdout
    assert said == "1 1 0 0 0 30 2"


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "tcc"])
def test_the_c_is_clean(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder = written(picture(), tmp_path, BY_ROWS)
    flags = ["-x", "c++", "-std=c++11", *STRICT[1:]] if compiler == "g++" else list(STRICT)
    sources = [str(path) for path in folder.glob("*.c")]
    command = [compiler, *flags, f"-I{folder}/runtime", *sources, "-o", f"{folder}/a", "-lm"]
    subprocess.run(command, check=True)
    subprocess.run([f"{folder}/a"], check=True)


def test_a_program_that_picks_its_processor_passes_the_function_on(tmp_path: Path) -> None:
    path, folder = small_models.save(picture(), tmp_path), tmp_path / "out"
    targets = ["--target", "x86-64-v3,generic", "--wrapper", "cpp"]
    assert cli.run([str(path), "--input", "x=rows", *targets, "-o", str(folder)]) == 0
    subprocess.run(["make", "-s", "-C", str(folder), "CFLAGS=-O1"], check=True)
    (folder / "all.cpp").write_text('#include "picture.hpp"\n')
    flags = ["-std=c++11", *STRICT[1:], "-fsyntax-only", f"-I{folder}/runtime"]
    subprocess.run(["g++", *flags, str(folder / "all.cpp")], check=True)
    said = subprocess.run([str(folder / "picture")], capture_output=True, text=True, check=True).stdout
    assert said.startswith("y f32[1,2,6,6]: 0 0 0")


def test_an_arduino_example_gives_rows(tmp_path: Path) -> None:
    files = arrange(compiled(picture(), BY_ROWS).files, "arduino", "picture", BY_ROWS)
    write_folder(tmp_path / "out", files)
    sketch = next((tmp_path / "out").rglob("*.ino")).read_text()
    assert "picture_set_input_x(&picture, picture_rows_x, nullptr)" in sketch


def test_it_goes_with_states_and_streams(tmp_path: Path) -> None:
    made = parser.parse_model(
        f"{HEAD} kept (float[4,3] x, float[4,3] s) => (float[4,3] y, float[4,3] sum){{ sum = Add(x, s) y = Neg(sum) }}"
    )
    path = small_models.save(made, tmp_path)
    assert correctness.check(path, replace(BY_ROWS, state={"sum": "s"}), runs=2).ok
    weights = {"w": floats(1, 2, 3, 3)}
    made = model("window", [node("Conv", "x w", "y")], [("x", (1, 3, 12))], [("y", (1, 2, 10))], weights)
    path = small_models.save(made, tmp_path)
    assert correctness.check(path, replace(BY_ROWS, stream=Stream({"x": 2}, 4)), runs=2).ok


PROGRAM_IR = """program "p" {
  external input "x" %x: f32[4,2]
  buffer %a: f32[4,2]
  call Fetch(axis=0) (%x) -> (%a) from "x"
  output "y" %a
}
"""


def test_what_asks_for_rows_twice_is_found() -> None:
    def again(program: Program) -> None:
        first = program.body[0]
        assert isinstance(first, Call)
        program.body.append(replace(first, outs=(Buffer("b", f32, (4, 2)).whole(),)))

    def in_a_loop(program: Program) -> None:
        program.body[:] = [Loop(Symbol("i", 0, 2), 3, [], None, list(program.body))]

    def along_columns(program: Program) -> None:
        first = program.body[0]
        assert isinstance(first, Call)
        first.rows = 1

    verify(read(PROGRAM_IR, {}))
    for damage in (again, in_a_loop, along_columns):
        program = read(PROGRAM_IR, {})
        damage(program)
        with pytest.raises(InternalError, match="fetched"):
            verify(program)
