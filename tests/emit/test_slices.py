"""A run in slices: step by step it gives the same bits as in one go, and says when it is done."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from mccompile.driver import Options, compile_graph
from mccompile.evidence.folder import checked
from mccompile.frontend.load import load_proto
from mccompile.plan.ir import RowRegion
from mccompile.plan.row_calls import slices_of
from mccompile.toolchain.run import Model
from tests import small_models
from tests.passes.memory.test_state import STATES, inputs_of
from tests.passes.program.test_place_outside import LOOP
from tests.small_models import random_inputs, written

SLICED = Options(slices=True)
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
MODELS = {**{name: make() for name, make in small_models.ALL.items()}, "looped": LOOP}


@pytest.mark.parametrize("name", MODELS)
def test_step_by_step_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    made, inputs = MODELS[name], random_inputs(MODELS[name])
    sliced = Model.build(written(made, tmp_path / "sliced", SLICED))
    whole = Model.build(written(made, tmp_path / "whole"))
    assert sliced.report.sliced and not whole.report.sliced
    wanted = whole.run(inputs, poison=0xA5)
    for got in (sliced.run(inputs, poison=0xA5), sliced.run(inputs)):
        for output, array in wanted.items():
            np.testing.assert_array_equal(got[output], array)


@pytest.mark.parametrize("name", ["causal", "shifted", "counter"])
def test_states_are_handed_on(name: str, tmp_path: Path) -> None:
    made, states = STATES[name]
    models = []
    for sliced in (False, True):
        package = compile_graph(load_proto(made), Options(state=states, slices=sliced), "streaming")
        package.write(tmp_path / str(sliced))
        models.append(Model.build(tmp_path / str(sliced)))
    for seed in range(4):
        inputs = inputs_of(made, states, seed)
        wanted, got = (model.run(inputs) for model in models)
        assert all(np.array_equal(got[output], array) for output, array in wanted.items())


def _chain() -> onnx.ModelProto:
    """Convolutions that run row by row where memory comes first; the pool makes two rows of five."""
    nodes = [
        small_models.node("Conv", "x w1", "a", pads=[1, 1, 1, 1], strides=[2, 1]),
        small_models.node("Conv", "a w2", "b", pads=[1, 1, 1, 1]),
        small_models.node("MaxPool", "b", "c", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        small_models.node("Conv", "c w2", "y", pads=[1, 1, 1, 1]),
    ]
    weights = {"w1": small_models.floats(1, 8, 3, 3, 3), "w2": small_models.floats(2, 8, 8, 3, 3)}
    return small_models.model("chain", nodes, [("x", (1, 3, 20, 12))], [("y", (1, 8, 5, 6))], weights)


def test_chains_of_rows_are_cut_between_calls(tmp_path: Path) -> None:
    made, inputs = _chain(), random_inputs(_chain())
    packages = [
        compile_graph(load_proto(made), Options(slices=sliced, prefer="ram"), "chain") for sliced in (True, False)
    ]
    regions = [item for item in packages[0].plan.items if isinstance(item, RowRegion)]
    assert regions and slices_of(packages[0].plan) > len(packages[0].plan.items) + 20
    for package, name in zip(packages, ("sliced", "whole"), strict=True):
        checked(package)  # the C makes the calls of the plan in its order
        package.write(tmp_path / name)
    got, wanted = (Model.build(tmp_path / name).run(inputs, poison=0xA5) for name in ("sliced", "whole"))
    np.testing.assert_array_equal(got["y"], wanted["y"])


@pytest.mark.parametrize(("target", "most"), [("generic", 2000), ("generic", 20000)])
def test_long_steps_are_cut(target: str, most: int, tmp_path: Path) -> None:
    made, models = small_models.conv(), []
    for name, max_slice in (("cut", most), ("whole", 0)):
        package = compile_graph(load_proto(made), Options(target=target, max_slice=max_slice), "conv")
        checked(package)
        package.write(tmp_path / name)
        models.append(Model.build(tmp_path / name))
        cuts = [len(step.cuts) - 1 for step in package.plan.steps() if step.cuts]
        assert bool(cuts) == (max_slice == 2000)
        assert not cuts or slices_of(package.plan) == len(package.plan.items) + sum(cuts) - len(cuts)
    inputs = random_inputs(made)
    got, wanted = (model.run(inputs, poison=0xA5) for model in models)
    assert all(np.array_equal(got[output], array) for output, array in wanted.items())


TURNS = """
#include <stdio.h>
#include <string.h>
#include "chain.h"
static MCC_ALIGNED(CHAIN_ARENA_ALIGN) uint8_t arenas[2][CHAIN_ARENA_BYTES];
static float results[3][240];
int main(void)
{
    chain_model m[2];
    uint32_t i, step;
    for (i = 0; i < 2; i++) {
        float *x;
        if (chain_init(&m[i], arenas[i], sizeof arenas[i], chain_weights, chain_weights_bytes) != MCC_OK) return 1;
        x = chain_input_x(&m[i]);
        for (step = 0; step < 720; step++) x[step] = (float)((step * (i + 3)) % 17);
    }
    if (chain_begin(&m[0]) != MCC_OK || chain_begin(&m[1]) != MCC_OK) return 2;
    for (step = 1; step < CHAIN_STEPS; step++)
        for (i = 0; i < 2; i++)
            if (chain_run_steps(&m[i], 1u) != MCC_MORE) return 3;
    for (i = 0; i < 2; i++) {
        float *x;
        if (chain_run_steps(&m[i], 1u) != MCC_OK) return 4;
        memcpy(results[i], chain_output_y(&m[i]), sizeof results[i]);
        x = chain_input_x(&m[i]);
        for (step = 0; step < 720; step++) x[step] = (float)((step * (i + 3)) % 17);
        if (chain_run(&m[i]) != MCC_OK || memcmp(results[i], chain_output_y(&m[i]), sizeof results[i]) != 0) return 5;
    }
    return memcmp(results[0], results[1], sizeof results[0]) == 0 ? 6 : 0;
}
"""


@pytest.mark.parametrize("options", [Options(slices=True, prefer="ram"), Options(max_slice=11000, rows="off")])
def test_two_instances_take_turns_inside_of_a_chain_or_step(options: Options, tmp_path: Path) -> None:
    folder = written(_chain(), tmp_path, options)
    (folder / "main.c").write_text(TURNS)
    sources = [str(path) for path in folder.glob("*.c")]
    flags = ["-std=c99", *STRICT, "-fsanitize=undefined", f"-I{folder}", f"-I{folder}/runtime"]
    subprocess.run(["gcc", *flags, *sources, "-o", f"{folder}/a", "-lm"], check=True)
    assert subprocess.run([f"{folder}/a"], check=False).returncode == 0


def test_sizes_given_at_run_time_hold_in_all_steps(tmp_path: Path) -> None:
    nodes = [small_models.node("Relu", "x", "r"), small_models.node("MatMul", "r w", "y")]
    made = small_models.model("free", nodes, [("x", ("n", 4))], [("y", ("n", 3))], {"w": small_models.floats(1, 4, 3)})
    for sliced in (True, False):
        graph = load_proto(made, dims={"n": (1, 9)})
        compile_graph(graph, Options(slices=sliced), "free").write(tmp_path / str(sliced))
    models = [Model.build(tmp_path / str(sliced)) for sliced in (True, False)]
    for n in (9, 1, 5):
        got, wanted = (model.run({"x": small_models.floats(n, n, 4)}) for model in models)
        np.testing.assert_array_equal(got["y"], wanted["y"])


PROGRAM = """
#include <stdio.h>
#include "mlp.h"
static MCC_ALIGNED(MLP_ARENA_ALIGN) uint8_t arena[MLP_ARENA_BYTES];
int steps_seen;
int main(void)
{
    mlp_model m;
    uint32_t step;
    if (mlp_init(&m, arena, sizeof arena, mlp_weights, mlp_weights_bytes) != MCC_OK) return 1;
    printf("%d ", mlp_run_steps(&m, 1u));
    printf("%d ", mlp_begin(&m));
    printf("%d ", mlp_run_steps(&m, 0u));
    for (step = 1; step < MLP_STEPS; step++)
        if (mlp_run_steps(&m, 1u) != MCC_MORE) return 2;
    printf("%d ", mlp_run_steps(&m, 9u));
    printf("%d ", steps_seen == (int)MLP_STEPS);
    printf("%d ", mlp_run_steps(&m, 1u));
    printf("%d ", mlp_run(&m));
    printf("%d", steps_seen == 2 * (int)MLP_STEPS);
    return 0;
}
"""
CONFIG = "extern int steps_seen;\n#define MCC_STEP_HOOK(step) (steps_seen += (step) < MLP_STEPS)\n"


def test_a_program_is_told_when_there_is_more_and_its_hook_is_called(tmp_path: Path) -> None:
    folder = written(small_models.mlp(), tmp_path, SLICED)
    (folder / "main.c").write_text(PROGRAM)
    (folder / "config.h").write_text(CONFIG)
    sources = [str(path) for path in folder.glob("*.c")]
    flags = ["-std=c99", '-DMCC_CONFIG="config.h"', f"-I{folder}", f"-I{folder}/runtime"]
    subprocess.run(["gcc", *flags, *sources, "-o", f"{folder}/a", "-lm"], check=True)
    said = subprocess.run([f"{folder}/a"], capture_output=True, text=True, check=True).stdout
    assert said == "19 0 18 0 1 19 0 1"  # not begun, ok, more, done, all hooked, not begun again, a whole run, hooked


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "tcc"])
@pytest.mark.parametrize("name", MODELS)
def test_the_c_is_clean(compiler: str, name: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder = written(MODELS[name], tmp_path, SLICED)
    flags = {"g++": ["-x", "c++", "-std=c++11", *STRICT], "tcc": ["-Wall", "-Werror"]}.get(compiler, STRICT)
    source = str(folder / f"{MODELS[name].graph.name}.c")
    subprocess.run([compiler, *flags, f"-I{folder}/runtime", "-c", source, "-o", f"{folder}/a.o"], check=True)


def test_a_plain_run_has_none_of_it(tmp_path: Path) -> None:
    text = (written(small_models.mlp(), tmp_path) / "mlp.c").read_text()
    assert "switch" not in text and "HOOK" not in text
