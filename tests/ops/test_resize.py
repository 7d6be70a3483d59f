"""Resize: what follows from scales and sizes is bounded, and lies where the standard says."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, parser

from mccompile import backend
from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto
from tests.thorough import some

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'


def test_tables_of_positions_are_bounded() -> None:
    text = 'g (float[1,2] x) => (float[1,n] y) { y = Resize <mode = "linear"> (x, , s) }'
    model = parser.parse_model(HEAD + text)
    with pytest.raises(UnsupportedModel, match="axis 1 is resized to 20000000 elements"):
        load_proto(model, fixed={"s": np.array([1, 1e7], np.float32)})


SCALED = [(8, 1.7), (9, 0.55), (7, 1.5), (5, 2.9), (6, 0.34)]
FORMS: list[dict[str, Any]] = [
    {"mode": "nearest", "nearest_mode": "floor"},
    {"mode": "nearest", "nearest_mode": "ceil"},
    {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
    {"mode": "linear"},
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic"},
    {"mode": "cubic", "exclude_outside": 1},
    {"mode": "cubic", "antialias": 1, "cubic_coeff_a": -0.5},
]


def weights_at(distance: np.ndarray, mode: str, a: float = -0.75) -> np.ndarray:
    """Of the standard's linear and cubic interpolation."""
    if mode == "linear":
        return np.maximum(1 - distance, 0)
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def with_corners(x: np.ndarray, scale: float, mode: str, **form: Any) -> list[float]:
    """The standard's "x_original = x_resized * (length_original - 1) / (length_resized - 1)"."""
    size, out = len(x), int(np.floor(len(x) * scale))
    result = []
    for n in range(out):
        place = Fraction(n * (size - 1), out - 1)
        if mode == "nearest":
            rounded = {"floor": floor, "ceil": ceil, "round_prefer_ceil": lambda p: floor(p + Fraction(1, 2))}
            result.append(float(x[rounded[form["nearest_mode"]](place)]))
            continue
        index = np.arange(-8, size + 8)
        stretch = max(1.0, 1 / scale) if form.get("antialias") else 1.0
        weights = weights_at(np.abs(index - float(place)) / stretch, mode, form.get("cubic_coeff_a", -0.75))
        if form.get("exclude_outside"):
            weights = weights * ((index >= 0) & (index < size))
        result.append(float(weights / weights.sum() @ x[np.clip(index, 0, size - 1)]))
    return result


@some(1, "computed", [False, True], ids=["known", "computed"])
def test_corners_are_aligned_where_scales_ask_for_parts_of_an_element(computed: bool) -> None:
    cases = [(size, scale, form) for size, scale in SCALED for form in FORMS]
    nodes, inputs, outputs, constants, feed = [], [], [], [], {}
    for n, (size, scale, form) in enumerate(cases):
        more = {"coordinate_transformation_mode": "align_corners", "axes": [-1], **form}
        nodes.append(helper.make_node("Resize", [f"x{n}", "", f"s{n}"], [f"y{n}"], **more))
        inputs.append(helper.make_tensor_value_info(f"x{n}", TensorProto.FLOAT, [1, 1, size]))
        outputs.append(helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, [1, 1, int(size * scale)]))
        feed[f"x{n}"] = np.random.default_rng(n).normal(size=(1, 1, size)).astype(np.float32)
        given = np.array([scale], np.float32)
        if computed:
            inputs.append(helper.make_tensor_value_info(f"s{n}", TensorProto.FLOAT, [1]))
            feed[f"s{n}"] = given
        else:
            constants.append(numpy_helper.from_array(given, f"s{n}"))
    whole = helper.make_graph(nodes, "corners", inputs, outputs, constants)
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
    got = backend.prepare(made, flags=("-O0",)).run(feed)
    for n, ((size, scale, form), result) in enumerate(zip(cases, got, strict=True)):
        wanted = with_corners(feed[f"x{n}"].reshape(-1), scale, **form)
        np.testing.assert_allclose(result.reshape(-1), wanted, atol=1e-5, err_msg=f"{size} times {scale}: {form}")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_corners_of_free_sizes_are_aligned(mode: str) -> None:
    form = {"mode": mode} | ({"nearest_mode": "floor"} if mode == "nearest" else {})
    more = {"coordinate_transformation_mode": "align_corners", **form}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **more)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1, "n"])]
    constants = [numpy_helper.from_array(np.array([1, 1, 1, 1.5], np.float32), "s")]
    whole = helper.make_graph([node], "corners", inputs, [ValueInfoProto(name="y")], constants)
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
    ready = backend.prepare(made, flags=("-O0",), dims={"n": (2, 16)})
    for size in (3, 7, 8, 15):
        x = np.random.default_rng(size).normal(size=(1, 1, 1, size)).astype(np.float32)
        (got,) = ready.run({"x": x})
        np.testing.assert_allclose(got.reshape(-1), with_corners(x.reshape(-1), 1.5, **form), atol=1e-5)
