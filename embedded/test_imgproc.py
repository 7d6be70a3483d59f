"""Image functions on emulated machines: the program of the folder finds nothing wrong, and a pixel takes as many
instructions as docs/imgproc.md says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import mccompile
from embedded import counted
from mccompile.imgproc.printing import parameters, scratch_bytes
from mccompile.targets.api import load
from mccompile.toolchain.boards import BOARDS, linker_script
from mccompile.toolchain.emulate import run_command

TARGETS = ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc", "aarch64", "wasm32")
COLOURS = "cvt_color=rgb2hsv,cvt_color=ycrcb2bgr,cvt_color=yuv2rgb_nv21"
SOME = f"resize,gaussian=5,warp_affine=reflect,warp_affine=constant,rotate=90,roi,{COLOURS}"
# The program without what boards have not.
QUIET = """#include <stdio.h>
#include <time.h>
#define printf(...) ((void)0)
#define clock() ((clock_t)0)
#define ROUNDS 1
#define main tested
#include "main.c"
#undef main
int main(void) { return tested(); }
"""
PAGE = Path(__file__).parents[1] / "docs" / "imgproc.md"
ROWS = re.findall(r"^\| `([\w=]+)` \| (?:(\d+)x(\d+) to )?96x96 \| ([\d.]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
COUNTED = """#include "imgproc.h"
#include "board.h"
static uint8_t x[X], y[Y];
static MCC_ALIGNED(8) uint8_t scratch[ROOM];
static const double matrix[6] = {0.9, -0.2, 10.0, 0.2, 0.9, -3.0};
int main(void)
{
    mcc_status status;
    (void)scratch;
    (void)matrix;
    for (uint32_t i = 0; i < X; ++i) x[i] = (uint8_t)((i * 2654435761u) >> 24);
    board_count_begin();
    status = CALL;
    board_count_end();
    return status;
}
"""


@pytest.mark.parametrize("how", ["", "known", "floats"])
@pytest.mark.parametrize("name", TARGETS)
def test_a_machine_makes_the_same_pictures(name: str, how: str, tmp_path: Path) -> None:
    target, command = load(name), run_command(load(name))
    asked: dict[str, Any] = {"target": name}
    asked |= {"size": (34, 26), "to": (12, 16), "channels": 3} if how == "known" else {}
    asked |= {"dtype": "f32"} if how == "floats" else {}
    functions = SOME.replace(",cvt_color=yuv2rgb_nv21", "") if how == "floats" else SOME
    folder = mccompile.image_functions(functions, **asked).write(tmp_path / "out")
    (tmp_path / "quiet.c").write_text(QUIET)
    bare = "-M" in command
    sources = [folder / "imgproc.c", tmp_path / "quiet.c", *([counted.BOARD / "bare.c"] if bare else [])]
    flags = [*target.cflags, *(f"-I{place}" for place in (folder, folder / "runtime", counted.BOARD))]
    if bare:
        at = command.index("-M") + 1
        board = BOARDS[command[at]]
        board = BOARDS[board.larger or board.machine]
        command[at] = board.machine
        (tmp_path / "board.ld").write_text(linker_script(board, "none"))
        flags += [*board.options, "-nostartfiles", f"-T{tmp_path / 'board.ld'}", "-Wl,--gc-sections"]
    made = tmp_path / "program"
    counted.run(target.compiler, *flags, *([] if bare else ["-static"]), *sources, "-lm", "-o", made)
    counted.run(*command, made)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_pixel_takes_as_long_as_the_page_says(row: tuple[str, str, str, str], tmp_path: Path) -> None:
    what, width, height, figure = row
    size = (int(width), int(height)) if width else (96, 96)
    has_to, of_colours = what.split("=")[0] in ("resize", "roi", "warp_affine"), what.startswith("cvt_color")
    more: dict[str, Any] = {"to": (96, 96)} if has_to else {}
    more |= {} if of_colours else {"channels": 3}
    library = mccompile.image_functions(what, size=size, target="cortex-m4", **more)
    folder, (fn,) = library.write(tmp_path / "out"), library.functions
    sizes = fn.trial()
    (rows, columns, channels), (to_rows, to_columns, to_channels) = fn.shapes(sizes)
    values = {name: name for name in ("y", "x", "scratch", "matrix")}
    values |= {"scratch_bytes": "sizeof scratch", "fill": "0", "left": "1", "top": "2"}
    program = COUNTED.replace("CALL", f"imgproc_{fn.symbol}({', '.join(values[name] for name in parameters(fn))})")
    program = program.replace("[X]", f"[{rows * columns * channels}]").replace("< X", f"< {rows * columns * channels}")
    program = program.replace("[Y]", f"[{to_rows * to_columns * to_channels}]")
    (tmp_path / "test.c").write_text(program.replace("ROOM", str(max(4, scratch_bytes(fn, sizes)))))
    objects = counted.model_objects(folder, tmp_path)
    objects.append(counted.compiled(tmp_path / "test.c", tmp_path, folder, folder / "runtime"))
    (count,) = counted.instructions(counted.program(objects, "none", tmp_path))
    assert count / (96 * 96) == pytest.approx(float(figure), rel=0.02)


def test_the_page_has_figures() -> None:
    assert len(ROWS) >= 10
