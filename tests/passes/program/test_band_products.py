"""Products with matrices of short runs multiply and store the runs alone, and give the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.kinds.band_gemm import BandGemm
from mccompile.measure.correctness import build
from tests.small_models import floats, model, node

ROWS, COLUMNS = 64, 10


def matrix(run: int) -> np.ndarray:
    """Runs that go down from column to column, the last to the end; one column is all 0."""
    made = np.zeros((ROWS, COLUMNS), np.float32)
    for column in range(COLUMNS):
        low = (ROWS - run) * column // (COLUMNS - 1)
        made[low : low + run, column] = floats(column, run)
    made[:, 3] = 0
    return made


def network(weights: np.ndarray, turned: bool = False) -> ModelProto:
    nodes = [node("MatMul", "x m", "a"), node("Add", "a b", "c"), node("Relu", "c", "y")]
    if turned:
        weights, nodes = np.ascontiguousarray(weights.T), [node("Transpose", "t", "m"), *nodes]
    arrays = {"t" if turned else "m": weights, "b": floats(1, COLUMNS)}
    return model("bands", nodes, [("x", [2, 3, ROWS])], [("y", [2, 3, COLUMNS])], arrays)


def compiled(made: ModelProto, **options: Any) -> Package:
    return compile_graph(load_proto(made), Options(**options), "bands")


def runs(package: Package) -> list[int]:
    calls = [step.function.call for step in package.plan.steps()]
    return [call.ins[2].shape[1] for call in calls if isinstance(call.kind, BandGemm)]  # type: ignore[misc]


@pytest.mark.parametrize(("run", "stored"), [(1, 4), (7, 8), (16, 16)])
@pytest.mark.parametrize("turned", [False, True])
def test_only_runs_are_stored(run: int, stored: int, turned: bool) -> None:
    made = network(matrix(run), turned)
    package = compiled(made, prefer="time")
    assert runs(package) == [stored]
    x = floats(0, 2, 3, ROWS)
    got = build(package, Options().resolved_target()).run({"x": x})["y"]
    np.testing.assert_allclose(got, np.maximum(x @ matrix(run) + floats(1, COLUMNS), 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("run", "options"),
    [(17, {}), (7, {"updatable": True}), (7, {"without": frozenset({"band_products"})}),
     (16, {"target": "x86-64-v4", "prefer": "time"})],
    ids=["long runs", "updatable", "left out", "where vectors are quicker"],
)  # fmt: skip
def test_all_of_it_is_stored(run: int, options: dict[str, Any]) -> None:
    assert runs(compiled(network(matrix(run)), **options)) == []


def test_how_long_runs_are_is_a_fact() -> None:
    graph = load_proto(network(matrix(7)))
    graph.facts_known = frozenset()
    assert runs(compile_graph(graph, Options(), "bands")) == []
    package = compiled(network(matrix(7)))
    assert any("have at most 8 elements in a row" in fact for fact in package.plan.assumptions)


def test_integers_wrap() -> None:
    weights = (matrix(7) * 100).astype(np.int64)
    weights[0, 0] = 1 << 62
    made = model("bands", [node("MatMul", "x m", "y")], [("x", [3, ROWS])], [("y", [3, COLUMNS])], {"m": weights})
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.INT64
    package = compiled(made, prefer="time")
    assert runs(package) == [8]
    x = np.random.default_rng(1).integers(-(1 << 40), 1 << 40, (3, ROWS))
    got = build(package, Options().resolved_target()).run({"x": x})["y"]
    np.testing.assert_array_equal(got, x @ weights)
