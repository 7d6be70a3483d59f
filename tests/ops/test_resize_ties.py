"""Resize to the nearest element: places half-way between two are found exactly, whatever a float32 makes of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, floor

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

from mccompile import backend

from .bundle import UNSEARCHED

HALF = Fraction(1, 2)
PAIRS = [(7, 4), (7, 2), (10, 12), (13, 4), (14, 1), (20, 6), (14, 19), (15, 8), (9, 42), (28, 16), (6, 15)]
COORDINATES = ["half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners"]
HOW = ["sizes", "scales", "computed"]


def wanted(size: int, out: int, coordinates: str, mode: str) -> list[int]:
    """The definition of the standard, in rational numbers."""
    found = []
    for x in range(out):
        place = (x + HALF) * Fraction(size, out) - HALF
        if coordinates == "asymmetric":
            place = Fraction(x * size, out)
        elif coordinates == "align_corners":
            place = Fraction(x * (size - 1), out - 1) if out > 1 else Fraction(0)
        elif coordinates == "pytorch_half_pixel" and out == 1:
            place = Fraction(0)
        near = ceil(place - HALF) if mode == "round_prefer_floor" else floor(place + HALF)
        found.append(min(max(near, 0), size - 1))
    return found


@pytest.mark.parametrize("how", HOW)
def test_halves_are_exact(how: str) -> None:
    cases = list(product(PAIRS, COORDINATES, ["round_prefer_floor", "round_prefer_ceil"]))
    nodes, inputs, outputs, constants, feed = [], [], [], [], {}
    for n, ((size, out), coordinates, mode) in enumerate(cases):
        x, given = f"x{n}", f"given{n}"
        numbers = np.array([1, out], np.int64)
        if how == "scales":
            numbers = np.array([1, np.float32(out) / np.float32(size)], np.float32)
        operands = [x, "", given] if how == "scales" else [x, "", "", given]
        nodes.append(helper.make_node("Resize", operands, [f"y{n}"], mode="nearest", nearest_mode=mode,
                                      coordinate_transformation_mode=coordinates))  # fmt: skip
        inputs.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, size]))
        if how == "computed":
            inputs.append(helper.make_tensor_value_info(given, TensorProto.INT64, [2]))
            outputs.append(helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, [1, out]))
            feed[given] = numbers
        else:
            constants.append(numpy_helper.from_array(numbers, given))
            outputs.append(ValueInfoProto(name=f"y{n}"))
        feed[x] = np.arange(size, dtype=np.float32).reshape(1, size)
    whole = helper.make_graph(nodes, "ties", inputs, outputs, constants)
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
    got = backend.prepare(made, flags=("-O0",), **UNSEARCHED).run(feed)
    different = [
        case
        for case, result in zip(cases, got, strict=True)
        if result.reshape(-1).tolist() != wanted(*case[0], *case[1:])
    ]
    assert not different


@pytest.mark.parametrize("size", [17, "n"])
def test_a_scale_in_decimals_is_meant_so(size: int | str) -> None:
    """1.3 is 1.2999999523 in float32; that no length is 1.3 times 17 leaves it 1.3."""
    modes = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], [mode], mode="nearest", nearest_mode=mode,
                         coordinate_transformation_mode="half_pixel")
        for mode in modes
    ]  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, size])
    scales = numpy_helper.from_array(np.array([1, 1.3], np.float32), "scales")
    whole = helper.make_graph(nodes, "decimal", [x], [ValueInfoProto(name=mode) for mode in modes], [scales])
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
    dims = {"n": (1, 20)} if size == "n" else {}
    got = backend.prepare(made, flags=("-O0",), dims=dims, **UNSEARCHED).run([np.arange(17, dtype=np.float32)[None]])
    places = [(x + HALF) / Fraction(13, 10) - HALF for x in range(22)]
    rounded = [[floor(p) for p in places], [ceil(p) for p in places], [ceil(p - HALF) for p in places]]
    rounded.append([floor(p + HALF) for p in places])
    for result, asked in zip(got, rounded, strict=True):
        assert result.reshape(-1).tolist() == [min(max(place, 0), 16) for place in asked]


@pytest.mark.parametrize("mode", ["round_prefer_floor", "round_prefer_ceil"])
def test_halves_of_free_sizes_are_exact(mode: str) -> None:
    resize = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest", nearest_mode=mode,
                              coordinate_transformation_mode="asymmetric")  # fmt: skip
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "n"])]
    constants = [numpy_helper.from_array(np.array([1, 4], np.int64), "sizes")]
    whole = helper.make_graph([resize], "ties", inputs, [ValueInfoProto(name="y")], constants)
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
    ready = backend.prepare(made, flags=("-O0",), dims={"n": (1, 16)})
    for size in (1, 7, 10, 13, 14):
        (got,) = ready.run({"x": np.arange(size, dtype=np.float32).reshape(1, size)})
        assert got.reshape(-1).tolist() == wanted(size, 4, "asymmetric", mode)
