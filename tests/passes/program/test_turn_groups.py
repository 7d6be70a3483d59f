"""Softmax and norms over axes whose elements lie apart, and sums along rows, go in another order of axes where that is
faster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import mccompile
from mccompile.targets.api import Prefer
from tests.small_models import model, node, save

Shape = tuple[int, ...]


def _model(op: str, shape: Shape, axis: int, folder: Path) -> Path:
    given = {"axis": np.array(axis, np.int64)} if op == "CumSum" else {}
    ends = {"CumSum": {"exclusive": 1, "reverse": 1}}.get(op, {"axis": axis})
    nodes = [node(op, "x axis" if given else "x", "y", **ends)]
    return save(model("turned", nodes, [("x", shape)], [("y", shape)], given, opset=18), folder)


@pytest.mark.parametrize(
    ("op", "shape", "axis"),
    [
        ("Softmax", (1000, 3), 0),
        ("LogSoftmax", (4, 301, 2), 1),
        ("LpNormalization", (2, 500, 3), 1),
        ("CumSum", (64, 200), 1),
        ("CumSum", (5, 40, 33), 2),
    ],
)
def test_results_stay_what_they_are(op: str, shape: Shape, axis: int, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    powers = np.exp(x)
    wanted: dict[str, Callable[[], np.ndarray]] = {
        "Softmax": lambda: powers / powers.sum(axis, keepdims=True),
        "LogSoftmax": lambda: x - np.log(powers.sum(axis, keepdims=True)),
        "LpNormalization": lambda: x / np.sqrt((x**2).sum(axis, keepdims=True)),
        "CumSum": lambda: np.flip(np.cumsum(np.flip(x, axis), axis), axis) - x,
    }
    found = mccompile.load(_model(op, shape, axis, tmp_path), target="native")(x.astype(np.float32))["y"]
    np.testing.assert_allclose(found, wanted[op](), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("op", "shape", "axis", "kernel"),
    [
        ("Softmax", (1000, 3), 0, "normalize/f32_rows_loops__vec"),
        ("CumSum", (64, 200), 1, "scan_axis/any_strided_lanes__vec"),
    ],
)
def test_a_turned_step_runs_in_vectors(op: str, shape: Shape, axis: int, kernel: str, tmp_path: Path) -> None:
    steps = _steps(op, shape, axis, tmp_path, mccompile.Options(target="x86-64-v3"))
    assert [step["op"] for step in steps] == ["map", kernel.split("/")[0], "map"] and steps[1]["kernel"] == kernel


@pytest.mark.parametrize(
    ("shape", "axis", "options"),
    [
        ((64, 1000), 1, mccompile.Options(target="x86-64-v3")),  # lies well
        ((1000, 3), 0, mccompile.Options(target="x86-64-v3", prefer=Prefer.RAM)),
        ((1000, 3), 0, mccompile.Options(target="cortex-m4", prefer=Prefer.TIME)),
    ],
)
def test_others_stay(shape: Shape, axis: int, options: mccompile.Options, tmp_path: Path) -> None:
    assert [step["op"] for step in _steps("Softmax", shape, axis, tmp_path, options)] == ["normalize"]


def _steps(op: str, shape: Shape, axis: int, folder: Path, options: mccompile.Options) -> list[dict[str, str]]:
    steps: list[dict[str, str]] = mccompile.compile(_model(op, shape, axis, folder), options).report["steps"]
    return steps


def test_softmax_of_bytes_keeps_its_bits(tmp_path: Path) -> None:
    shape = (300, 3)
    numbers = {"s": np.float32(0.1), "z": np.int8(3), "t": np.float32(1 / 256), "u": np.int8(-128)}
    nodes = [
        node("DequantizeLinear", "x s z", "real"),
        node("Softmax", "real", "shares", axis=0),
        node("QuantizeLinear", "shares t u", "y"),
    ]
    given = {name: np.array(value) for name, value in numbers.items()}
    made = model("bytes", nodes, [("x", shape)], [("y", shape)], given, opset=18)
    for end in (*made.graph.input, *made.graph.output):
        end.type.tensor_type.elem_type = TensorProto.INT8
    path = save(made, tmp_path)
    x = np.random.default_rng(0).integers(-128, 128, shape, np.int8)
    steps = mccompile.compile(path, mccompile.Options(target="x86-64-v3")).report["steps"]
    assert "byte_softmax/i8_strided_lanes__vec" in [step["kernel"] for step in steps]
    found, want = (mccompile.load(path, target=target)(x)["y"] for target in ("native", "generic"))
    np.testing.assert_array_equal(found, want)
