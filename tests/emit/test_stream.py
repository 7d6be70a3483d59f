"""What a program has of a network that takes the newest frames: push, reset, saved state, and what the header says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.streaming import Stream
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from tests.passes.stream.pushed import floats, model, session

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
WINDOW = model(
    "(float[1,2,6] x) => (float[1,3] y) { a = Conv(x, w) b = Relu(a) f = Flatten(b) y = Gemm(f, v) }",
    w=floats(4, 2, 3), v=floats(16, 3),
)  # fmt: skip
PROGRAM = """
#include <stdio.h>
#include "net.h"
static MCC_ALIGNED(NET_ARENA_ALIGN) uint8_t arena[NET_ARENA_BYTES];
static uint8_t saved[NET_STATE_BYTES];
static int push(net_model *m, float time)
{
    float *const x = net_input_x(m);
    x[0] = time;
    x[1] = time * time;
    return net_push(m);
}
int main(void)
{
    net_model m;
    int k;
    if (net_init(&m, arena, sizeof arena, net_weights, net_weights_bytes) != MCC_OK) return 1;
    for (k = 1; k <= 8; k++) printf("%d ", push(&m, 0.1f * (float)k));
    printf("%.9g\\n", (double)net_output_y(&m)[1]);
    if (net_save_state(&m, saved) != MCC_OK || net_reset(&m) != MCC_OK) return 2;
    printf("%d\\n", push(&m, 0.9f));
    if (net_load_state(&m, saved) != MCC_OK) return 3;
    printf("%d ", push(&m, 0.9f));
    printf("%.9g\\n", (double)net_output_y(&m)[1]);
    return NET_HOP == 1u && NET_WARM_UP == 6u && NET_LATENCY_Y == 0u ? 0 : 4;
}
"""


def written(folder: Path, **more: object) -> Path:
    package = compile_graph(load_proto(WINDOW), Options(stream=Stream({"x": 2}), **more), "net")  # type: ignore[arg-type]
    package.write(folder)
    return folder


def wanted(end: int) -> float:
    """The window whose newest frame is that of push `end`."""
    times = np.array([0.1 * k for k in range(end - 5, end + 1)], np.float32)
    return float(session(WINDOW).run(None, {"x": np.stack([times, times * times])[None]})[0][0, 1])


@pytest.mark.parametrize("more", [{}, {"slices": True}, {"single_file": True}], ids=["plain", "slices", "one file"])
def test_pushes_are_counted(more: dict[str, object], tmp_path: Path) -> None:
    """18 (MCC_MORE) up to the push before the first window is full; what is saved knows how many there were."""
    folder = written(tmp_path, **more)
    (folder / "main.c").write_text(PROGRAM)
    sources = [str(path) for path in folder.glob("*.c")]
    flags = ["-std=c99", f"-I{folder}", f"-I{folder}/runtime"]
    subprocess.run(["gcc", *flags, *sources, "-o", f"{folder}/a", "-lm"], check=True)
    first, again, last = subprocess.run([f"{folder}/a"], capture_output=True, text=True, check=True).stdout.splitlines()
    *statuses, y = first.split()
    assert statuses == ["18"] * 5 + ["0"] * 3 and again == "18"
    assert float(y) == pytest.approx(wanted(8), rel=1e-5)
    assert last.split()[0] == "0" and float(last.split()[1]) == pytest.approx(wanted(9), rel=1e-5)


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "tcc"])
def test_the_c_is_clean(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder = written(tmp_path)
    flags = {"g++": ["-x", "c++", "-std=c++11", *STRICT], "tcc": ["-Wall", "-Werror"]}.get(compiler, STRICT)
    subprocess.run(
        [compiler, *flags, f"-I{folder}/runtime", "-c", f"{folder}/net.c", "-o", f"{folder}/a.o"], check=True
    )


@pytest.mark.parametrize(("hop", "said"), [(1, "i += 32u) memcpy("), (2, "memmove(")])
def test_the_past_moves_up_piece_by_piece_where_it_divides(hop: int, said: str) -> None:
    window = model("(float[1,8,6] x) => (float[1,8,3] y) { y = Conv(x, w) }", w=floats(8, 8, 4))
    package = compile_graph(load_proto(window), Options(stream=Stream({"x": 2}, hop), target="cortex-m4"), "net")
    run = package.files["net.c"].decode().split("net_run")[1]
    assert said in " ".join(run.split())
