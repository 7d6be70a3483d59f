"""Steps that workers share: the same bits as alone, in whatever order pieces run; no data race; nothing is in the files
of a model that does not ask for it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile
from mccompile.emit.summary import summary
from mccompile.targets import api as targets
from mccompile.toolchain.run import Model
from tests.emit.test_generated_c import STRICT
from tests.small_models import floats, model, node, save
from tests.thorough import some

RUNTIME = ("runtime/mcc_pool.h", "runtime/mcc_openmp.h", "runtime/mcc_cores.h")
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "shared.h"
#include "mcc_pool.h"
#include "mcc_cores.h"

static mcc_cores both;

static void *second_core(void *unused)
{
    (void)unused;
    mcc_cores_work(&both);
    return NULL;
}

static MCC_ALIGNED(SHARED_ARENA_ALIGN) uint8_t arena[SHARED_ARENA_BYTES];
static float alone[SHARED_OUTPUT_Y_COUNT];

static void backwards(void *pool, mcc_index count, void (*body)(void *context, mcc_index index), void *context)
{
    (void)pool;
    while (count-- > 0) body(context, count);
}

static int differs(shared_model *m)
{
    for (size_t i = 0; i < SHARED_INPUT_X_COUNT; i++) shared_input_x(m)[i] = (float)(i % 17u) - 8.0f;
    return shared_run(m) != MCC_OK || memcmp(alone, shared_output_y(m), sizeof alone) != 0;
}

int main(void)
{
    mcc_pool pool;
    pthread_t core;
    shared_model m;
    if (shared_init(&m, arena, sizeof arena, shared_weights, shared_weights_bytes) != MCC_OK) return 1;
    (void)differs(&m);
    memcpy(alone, shared_output_y(&m), sizeof alone);
    if (shared_set_parallel(&m, backwards, NULL) != MCC_OK || differs(&m)) return 2;
    if (mcc_pool_start(&pool, 3) != 0 || shared_set_parallel(&m, mcc_pool_for, &pool) != MCC_OK) return 3;
    for (int run = 0; run < 20; run++) {
        if (differs(&m)) return 4;
    }
    mcc_pool_stop(&pool);
    if (pthread_create(&core, NULL, second_core, NULL) != 0) return 5;
    if (shared_set_parallel(&m, mcc_cores_for, &both) != MCC_OK) return 6;
    for (int run = 0; run < 20; run++) {
        if (differs(&m)) return 7;
    }
    mcc_cores_stop(&both);
    return pthread_join(core, NULL);
}
"""


def network() -> onnx.ModelProto:
    """Convolutions of all sorts, a pool, a residual that is added in place, a matrix product."""
    nodes = [
        node("Conv", "x w1 b1", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 w2", "c2", pads=[1, 1, 1, 1], group=24),
        node("Conv", "c2 w3", "c3"),
        node("Add", "c3 r1", "s"),
        node("MaxPool", "s", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p w4", "c4", pads=[1, 1, 1, 1]),
        node("Flatten", "c4", "f"),
        node("MatMul", "f w5", "y"),
    ]
    weights = {
        "w1": floats(1, 24, 8, 3, 3),
        "b1": floats(2, 24),
        "w2": floats(3, 24, 1, 3, 3),
        "w3": floats(4, 24, 24, 1, 1),
        "w4": floats(5, 40, 24, 3, 3),
        "w5": floats(6, 40 * 15 * 13, 70),
    }
    return model("shared", nodes, [("x", (1, 8, 30, 26))], [("y", (1, 70))], weights)


@pytest.mark.parametrize("target", ["generic", "native"])
def test_workers_give_the_same_bits(target: str, tmp_path: Path) -> None:
    path = save(network(), tmp_path)
    x = {"x": floats(7, 1, 8, 30, 26)}
    results = []
    for threads in (1, 3):
        package = compile(path, Options(target=target, prefer="time", threads=threads))
        shared = [step.op for step in package.plan.steps() if step.shared]
        assert (len(shared) >= 4) == (threads > 1) and set(shared) <= {"conv", "gemm", "pool"}
        package.write(tmp_path / f"out{threads}")
        results.append(Model.build(tmp_path / f"out{threads}", flags=targets.load(target).cflags).run(x)["y"])
        assert all((name in package.files) == (threads > 1) for name in RUNTIME)
    assert np.array_equal(*results)


def deep() -> onnx.ModelProto:
    """A convolution whose weights are much more than its pictures."""
    weights = {"p": floats(3, 160, 160, 1, 1), "w": floats(1, 160, 160, 3, 3), "b": floats(2, 160)}
    nodes = [node("Conv", "x p", "q"), node("Conv", "q w b", "c", pads=[1, 1, 1, 1]), node("Add", "c q", "y")]
    return model("shared", nodes, [("x", (1, 160, 9, 9))], [("y", (1, 160, 9, 9))], weights)


def test_patches_are_transformed_once_before_they_are_multiplied(tmp_path: Path) -> None:
    """Each worker reads what all have made in the phase before."""
    path = save(deep(), tmp_path)
    x = {"x": floats(7, 1, 9, 9, 160)}
    results = []
    for threads in (1, 3):
        package = compile(path, Options(target="native", prefer="time", threads=threads, io_layout="nhwc"))
        phases = [len(step.shared.phases) for step in package.plan.steps() if step.shared]
        assert phases == ([1, 2] if threads > 1 else [])
        package.write(tmp_path / f"out{threads}")
        results.append(Model.build(tmp_path / f"out{threads}", flags=targets.load("native").cflags).run(x)["y"])
    assert np.array_equal(*results)


@some(1, ("made", "target"), [(network, "generic"), (network, "native"), (deep, "native")])
def test_the_pool_has_no_races(made: Callable[[], onnx.ModelProto], target: str, tmp_path: Path) -> None:
    options = Options(target=target, prefer="time", threads=3, io_layout="nhwc")
    compile(save(made(), tmp_path), options).write(tmp_path / "out")
    (tmp_path / "program.c").write_text(PROGRAM)
    sources = [tmp_path / "program.c", *(tmp_path / "out" / f"shared{part}.c" for part in ("", "_kernels", "_weights"))]
    march = ["-march=native"] if target == "native" else []
    flags = ["-std=c99", "-O1", "-g", *STRICT, *march, "-pthread", "-fsanitize=thread"]
    folders = [f"-I{tmp_path / 'out'}", f"-I{tmp_path / 'out' / 'runtime'}"]
    command = ["gcc", *flags, *folders, *map(str, sources), "-o", str(tmp_path / "program"), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True)
    if "cannot find" in built.stderr:
        pytest.skip("the thread sanitizer is not installed")
    assert built.returncode == 0, built.stderr[:4000]
    done = subprocess.run([str(tmp_path / "program")], capture_output=True, text=True)
    assert (done.returncode, done.stderr[:4000]) == (0, "")


def test_openmp_runs_it_too(tmp_path: Path) -> None:
    compile(save(network(), tmp_path), Options(prefer="time", threads=2)).write(tmp_path / "out")
    pool = "if (mcc_pool_start(&pool, 3) != 0 || shared_set_parallel(&m, mcc_pool_for, &pool) != MCC_OK) return 3;"
    text = PROGRAM.replace(pool, "if (shared_set_parallel(&m, mcc_openmp_for, NULL) != MCC_OK) return 3;")
    text = text.replace("mcc_pool_stop(&pool);", "").replace("mcc_pool pool;", "").replace("mcc_pool.h", "mcc_openmp.h")
    (tmp_path / "program.c").write_text(text)
    sources = [tmp_path / "program.c", *(tmp_path / "out" / f"shared{part}.c" for part in ("", "_kernels", "_weights"))]
    folders = [f"-I{tmp_path / 'out'}", f"-I{tmp_path / 'out' / 'runtime'}"]
    command = ["gcc", "-std=c99", "-O2", *STRICT, "-fopenmp", "-pthread", *folders, *map(str, sources)]
    subprocess.run([*command, "-o", str(tmp_path / "program"), "-lm"], check=True)
    assert subprocess.run([str(tmp_path / "program")]).returncode == 0


def test_less_than_one_thread_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there cannot be 0 threads"):
        compile(save(network(), tmp_path), Options(threads=0))


def test_workers_keep_to_memory_of_their_own_where_time_comes_first(tmp_path: Path) -> None:
    path = save(network(), tmp_path)
    lives = {
        (prefer, planner): compile(path, Options(prefer=prefer, threads=2, planner=planner)).plan.lives
        for prefer, planner in [("time", ""), ("time", "centred"), ("ram", ""), ("ram", "push-down")]
    }
    assert lives["time", ""] == lives["time", "centred"] != lives["ram", "push-down"] == lives["ram", ""]


def test_pieces_know_the_sizes_that_they_name(tmp_path: Path) -> None:
    """The operand of the shared step begins where a size says."""
    nodes = [node("Slice", "x first last zero", "l"), node("Exp", "l", "y")]
    weights = {"first": np.array([-1]), "last": np.array([1 << 40]), "zero": np.array([0])}
    made = model("shared", nodes, [("x", ("time", 64, 64))], [("y", (1, 64, 64))], weights)
    package = compile(save(made, tmp_path), Options(threads=2, dims={"time": (1, 5)}))
    assert [step.shared for step in package.plan.steps() if step.shared]
    package.write(tmp_path / "out")
    x = floats(3, 4, 64, 64)
    result = Model.build(tmp_path / "out", flags=("-std=c99", "-O1", *STRICT)).run({"x": x})["y"]
    np.testing.assert_allclose(result, np.exp(x[-1:]), rtol=1e-5)


@pytest.mark.skipif(not shutil.which("tcc"), reason="tcc is not installed")
def test_without_atomic_operations_pieces_run_one_after_the_other(tmp_path: Path) -> None:
    path = save(network(), tmp_path)
    x = {"x": floats(7, 1, 8, 30, 26)}
    results = []
    for threads in (1, 3):
        compile(path, Options(prefer="time", threads=threads)).write(tmp_path / f"out{threads}")
        results.append(Model.build(tmp_path / f"out{threads}", "tcc", ["-std=c99"]).run(x)["y"])
    np.testing.assert_array_equal(*results)


def test_what_is_too_short_to_be_shared_keeps_the_functions(tmp_path: Path) -> None:
    short = model("shared", [node("Relu", "x", "y")], [("x", (1, 8))], [("y", (1, 8))])
    package = compile(save(short, tmp_path), Options(threads=2))
    assert not any(step.shared for step in package.plan.steps())
    assert "changes nothing" in summary(package.plan, 0)
    package.write(tmp_path / "out")
    (tmp_path / "program.c").write_text(PROGRAM)
    sources = [str(path) for path in (tmp_path / "out").glob("*.c") if path.name != "main.c"]
    folders = [f"-I{tmp_path / 'out'}", f"-I{tmp_path / 'out' / 'runtime'}"]
    program = tmp_path / "program"
    command = ["cc", *STRICT, *folders, str(tmp_path / "program.c"), *sources, "-o", str(program), "-lm", "-pthread"]
    subprocess.run(command, check=True, capture_output=True)
    assert subprocess.run([str(program)]).returncode == 0
