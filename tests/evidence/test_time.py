"""The list of steps whose instructions may depend on data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from onnx import ModelProto, parser

from embedded.models import classifier, quantized
from embedded.quantized_models import separable_int8
from mccompile.base.dtypes import DType, f16, f32, u64
from mccompile.driver import Options
from mccompile.evidence import time as times
from mccompile.targets.api import load
from mccompile.toolchain.emulate import Emulated
from mccompile.toolchain.model_report import Tensor
from tests import small_models

SCHEMA = json.loads((Path(times.__file__).parent / "schemas" / "time.schema.json").read_text(encoding="utf-8"))


def reasons(model: ModelProto, core: str) -> list[list[str]]:
    package, target = small_models.compiled(model, Options(target=core)), load(core)
    return [[*times.named(step, target).reasons] for step in package.plan.steps()]


def test_kernels_that_compare_numbers_are_named() -> None:
    largest, mean, gemm, softmax, winner = reasons(classifier(), "cortex-m4")
    assert largest == ["numbers are compared with the largest"] and mean == gemm == []
    assert softmax and winner == ["each number is compared with the best one"]


def test_floats_without_an_fpu_are_named() -> None:
    assert all(
        "floats are computed by functions of a library" in each for each in reasons(small_models.mlp(), "cortex-m3")
    )


@pytest.mark.parametrize("made", ["int32[7] y) { y = Cast <to = 6> (x) }", "bool[7] y) { y = Less(x, x) }"])
def test_floats_of_which_integers_are_made_are_named_without_an_fpu(made: str) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g (float[7] x) => ({made}')
    assert reasons(model, "cortex-m3") == [["floats are computed by functions of a library"]]


@pytest.mark.parametrize("op", ["Sin", "Cos"])
def test_waves_are_named_where_vectors_leave_lanes_to_a_function(op: str) -> None:
    made = small_models.model("wave", [small_models.node(op, "x", "y")], [("x", [64])], [("y", [64])])
    assert [reasons(made, core) for core in ("cortex-m4", "cortex-m33")] == [[[]], [[]]]
    assert reasons(made, "cortex-m55") == [[f"{op.lower()} of f32"]]


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m33", "cortex-m55"])
def test_integer_networks_have_no_such_step(core: str) -> None:
    assert not any(reasons(quantized(), core))


def test_saturation_is_named_where_nothing_but_branches_compares() -> None:
    assert ["max of i32", "min of i32"] in reasons(separable_int8(), "cortex-m0")


def certificate(monkeypatch: pytest.MonkeyPatch, least: int) -> dict[str, Any]:
    """Of a program whose second step takes one instruction more in each run."""
    package, counts = small_models.compiled(small_models.mlp(), Options(target="cortex-m4")), iter(range(100))
    report = type("Report", (), {"inputs": ()})
    built = type("Built", (), {"report": report})
    monkeypatch.setattr(Emulated, "build", lambda *given, **named: built)
    monkeypatch.setattr(times, "missing", lambda tools: [])
    monkeypatch.setattr(times, "count_steps", lambda *given: [100, least + next(counts)])
    found = times.time_certificate(package, load("cortex-m4"))
    jsonschema.validate(found, SCHEMA)
    return found


def test_a_step_that_was_seen_to_differ_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = certificate(monkeypatch, 200)
    (step,) = found["steps"]
    assert (step["step"], step["reasons"], step["counted"]) == (1, [times.UNFORESEEN], {"low": 200, "high": 219})
    assert found["run"] == {"low": 300, "high": 319}
    assert times.shown(found) == "1 step may depend on data; 300 to 319 instructions for 20 inputs"


def test_long_runs_are_tried_with_fewer_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [certificate(monkeypatch, 10**power)["inputs"] for power in (6, 8, 9, 11)] == [20, 10, 2, 2]


def test_what_is_not_counted_says_why() -> None:
    package = small_models.compiled(small_models.mlp())
    found = times.time_certificate(package, load("generic"))
    jsonschema.validate(found, SCHEMA)
    assert found["inputs"] == 0 and "bare-metal" in times.shown(found)


def test_inputs_are_extremes_before_they_are_random() -> None:
    drawn = [each["x"] for each in times.runs([Tensor("x", "x", f32, (500,), 2000)], 11)]
    assert np.isnan(drawn[7]).all() and np.isinf(drawn[5]).all() and not drawn[0].any()
    assert (drawn[8] > 0).all() and (drawn[8] < np.finfo(np.float32).tiny).all()  # what libraries take longest for
    assert np.isfinite(drawn[9]).all() and not np.isfinite(drawn[10]).all()


@pytest.mark.parametrize(("dtype", "largest"), [(u64, 2**64 - 1), (f16, np.inf)])
@pytest.mark.filterwarnings("error")
def test_inputs_of_other_types_reach_their_ends(dtype: DType, largest: float) -> None:
    drawn = [each["x"] for each in times.runs([Tensor("x", "x", dtype, (4,), 32)], 12)]
    assert {each.dtype for each in drawn} == {np.dtype(dtype.numpy)}
    assert max(np.nanmax(each) for each in drawn if not np.isnan(each).all()) == largest
