"""Runs that tell what happens inside: what steps leave in memory is what the file's tensors are, whatever the layout;
steps are counted; and nothing of that is in code that was not asked for it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

from embedded.models import path_of
from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile_graph, compile_jobs
from mccompile.frontend.load import load_proto
from mccompile.toolchain.dump import VALUE, Run, read_dump
from mccompile.toolchain.run import Model
from tests import small_models
from tests.emit.test_builds import run
from tests.emit.test_slices import STRICT
from tests.passes.memory.test_state import STATES, inputs_of
from tests.passes.program.test_place_outside import LOOP
from tests.small_models import random_inputs, save, written

INSIDE = {"profile": True, "dump_values": True}


def dumped(made: ModelProto, folder: Path, **options: Any) -> tuple[Run, dict[str, Any]]:
    """What the steps of a run on this machine make, and the report."""
    out = written(made, folder, Options(**INSIDE, **options))
    report = json.loads((out / "report.json").read_text())
    model = Model.build(out, None, ["-std=c99", "-O1", *report["flags"]], dump=True)
    found = read_dump(model.dump(random_inputs(made)))
    assert len(found.runs) == 1 and found.runs[0].ended and not found.damaged
    return found.runs[0], report


def right(made: ModelProto, run: Run) -> list[str]:
    """Names of tensors in it, each compared with what ONNX's evaluator gives."""
    from onnx.reference import ReferenceEvaluator

    names = [record.name for record in run.made if record.kind == VALUE]
    copy = ModelProto()
    copy.CopyFrom(made)
    known = {output.name for output in made.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    everything = [output.name for output in copy.graph.output]
    wanted = dict(zip(everything, ReferenceEvaluator(copy).run(everything, random_inputs(made)), strict=True))
    for record in run.made:
        if record.kind == VALUE:
            np.testing.assert_allclose(record.array, wanted[record.name], rtol=1e-4, atol=1e-5, err_msg=record.name)
    return names


@pytest.mark.parametrize(
    ("name", "options"),
    [("conv", {"optimize": False}), ("mlp", {}), ("branches", {}), ("branches", {"target": "native"})],
    ids=str,
)
def test_values_are_the_tensors_of_the_file(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    made = small_models.ALL[name]()
    names = right(made, dumped(made, tmp_path, **options)[0])
    assert {output.name for output in made.graph.output} <= set(names)


def test_rows_are_put_together(tmp_path: Path) -> None:
    made = onnx.load(path_of("digits", tmp_path))
    run, report = dumped(made, tmp_path)
    assert any("rows" in entry for step in report["steps"] for entry in step["made"])
    assert {"stem/Relu", "depthwise/Relu", "pointwise/Relu", "scores"} <= set(right(made, run))


def test_what_is_channels_last_in_memory_is_compared_as_the_file_has_it(tmp_path: Path) -> None:
    made = small_models.conv()
    run, report = dumped(made, tmp_path, target="native")
    (inner,) = (record for record in run.made if record.name == "r1")
    assert inner.shape == (1, 4, 6, 6) and inner.strides[1] == 1
    assert "r1" in right(made, run)
    assert [each["name"] for each in report["unseen"]] == ["c1", "c2", "sum"]
    assert all("fused into step" in each["why"] for each in report["unseen"])


@pytest.mark.parametrize(
    "options",
    [{"slices": True}, {"threads": 2, "prefer": "time"}, {"single_file": True}, {"external": ("x", "y")}],
    ids=str,
)
def test_other_forms_of_runs_tell_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    made = small_models.conv()
    plain, other = (dumped(made, tmp_path / str(n), **more)[0] for n, more in enumerate(({}, options)))
    for a, b in zip(plain.made, other.made, strict=True):
        assert (a.step, a.name) == (b.step, b.name)
        np.testing.assert_allclose(a.array, b.array, rtol=1e-5, atol=1e-6)


def test_a_step_in_a_loop_tells_each_time(tmp_path: Path) -> None:
    run, report = dumped(LOOP, tmp_path)
    steps = [record.step for record in run.made]
    assert max(map(steps.count, steps)) > 1 and len(report["steps"]) > 0


def test_states_come_with_the_inputs(tmp_path: Path) -> None:
    made, states = STATES["causal"]
    out = tmp_path / "out"
    compile_graph(load_proto(made), Options(state=states, **INSIDE), "streaming").write(out)
    model = Model.build(out, dump=True)
    inputs = inputs_of(made, states, 0)
    model.run(inputs)
    state = model.save_state()
    (run,) = read_dump(model.dump(inputs, state)).runs
    assert b"".join(record.data for record in run.states) == state and any(state)


def test_sizes_given_at_run_time_are_those_of_the_run(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (float[4,n] y) { t = Transpose(x) y = Exp(t) }'
    made, out = parser.parse_model(text), tmp_path / "out"
    compile_graph(load_proto(made, dims={"n": (1, 9)}), Options(**INSIDE), "free").write(out)
    model = Model.build(out, dump=True)
    for n in (9, 1, 5):
        x = small_models.floats(n, n, 4)
        (run,) = read_dump(model.dump({"x": x})).runs
        assert [(r.name, r.shape) for r in run.made] == [("y", (4, n))]
        np.testing.assert_allclose(run.made[0].array, np.exp(x.T), rtol=1e-5)
        np.testing.assert_array_equal(run.inputs["x"], x)


def test_nothing_is_there_where_it_was_not_asked_for(tmp_path: Path) -> None:
    """All else is the same: plan, kernels, blob, and the identity that ties blobs to code."""
    files = [compile_graph(load_proto(small_models.conv()), Options(**more), "conv").files for more in ({}, INSIDE)]
    plain = "".join(files[0][name].decode() for name in ("conv.c", "conv.h", "report.json"))
    assert not [word for word in ("dump", "ticks", "profile", "PROFILED", '"made"', '"unseen"') if word in plain]
    assert not {"runtime/mcc_dump.h", "runtime/mcc_profile.h"} & set(files[0])
    assert all(files[0][name] == files[1][name] for name in ("conv.mcb", "conv_kernels.c", "conv_weights.c"))
    calls = [line for line in files[0]["conv.c"].decode().splitlines() if "conv_conv_" in line]
    assert all(line.strip() in files[1]["conv.c"].decode() for line in calls) and calls


@pytest.mark.parametrize("flag", ["profile", "dump_values"])
def test_code_that_init_picks_among_is_refused(flag: str, tmp_path: Path) -> None:
    options = Options(target="x86-64-v3,generic", **{flag: True})
    with pytest.raises(WrongUse, match=f"--{flag.replace('_', '-')}.*\n.*x86-64-v3, generic"):
        compile_jobs([(save(small_models.conv(), tmp_path), options)], "conv")


PROFILED = """
#include <stdio.h>
#include "mlp.h"
unsigned now;
static MCC_ALIGNED(MLP_ARENA_ALIGN) uint8_t arena[MLP_ARENA_BYTES];
static void put(void *to, const char *text) { fputs(text, (FILE *)to); }
int main(void)
{
    mlp_model m;
    if (mlp_init(&m, arena, sizeof arena, mlp_weights, mlp_weights_bytes) != MCC_OK) return 1;
    if (mlp_run(&m) != MCC_OK || mlp_run(&m) != MCC_OK) return 2;
    mlp_put_profile(&m, put, stdout);
    printf("%u %u %u", (unsigned)mlp_step_ticks(&m, 0u), (unsigned)mlp_step_ticks(&m, MLP_PROFILED), now);
    return 0;
}
"""
NOTHING = small_models.model("nothing", [small_models.node("Flatten", "x", "y")], [("x", [4])], [("y", [4, 1])])
CLOCK = "extern unsigned now;\n#define MCC_CLOCK() (now += 1000u)\n"


def test_a_clock_of_the_program_counts_the_steps_of_the_last_run(tmp_path: Path) -> None:
    folder = written(small_models.mlp(), tmp_path, Options(profile=True))
    (folder / "main.c").write_text(PROFILED)
    (folder / "config.h").write_text(CLOCK)
    sources = [str(path) for path in folder.glob("*.c")]
    flags = ["-std=c99", *STRICT, '-DMCC_CONFIG="config.h"', f"-I{folder}", f"-I{folder}/runtime"]
    subprocess.run(["gcc", *flags, *sources, "-o", f"{folder}/a", "-lm"], check=True)
    said = subprocess.run([f"{folder}/a"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [
        "       1000  m1/MatMul + a1/Add + 1 more",
        "       1000  out.put/MatMul",
        "       2000  ticks in all steps",
        "1000 0 8000",
    ]


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "tcc"])
@pytest.mark.parametrize("name", ["digits", "looped", "nothing"])
def test_the_c_is_clean(compiler: str, name: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    made = {"looped": LOOP, "nothing": NOTHING}.get(name) or onnx.load(path_of("digits", tmp_path))
    folder = written(made, tmp_path, Options(**INSIDE))
    source = next(path for path in folder.glob("*.c") if path.with_suffix(".h").is_file() and "_" not in path.stem)
    flags = {"g++": ["-x", "c++", "-std=c++11", *STRICT], "tcc": ["-Wall", "-Werror"]}.get(compiler, STRICT)
    run(compiler, *flags, f"-I{folder}/runtime", "-c", source, "-o", folder / "a.o")
