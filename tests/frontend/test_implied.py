"""Integer inputs that say sizes: what declared shapes imply is known while compiling, and checked in every run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from mccompile import backend
from mccompile.base.errors import CheckFailed, UnsupportedModel
from mccompile.frontend.load import load_proto

CROP = """<ir_version: 8, opset_import: ["" : 18]>
g (float[6,4] x, int64[3] size, float[1] scale) => (float[{shape}] y) {{
    rows = Constant <value_ints: ints = [1]> ()
    ends = Constant <value_ints: ints = [3]> ()
    wanted = Slice (size, rows, ends)
    shape = Shape (x)
    most = Max (shape, wanted)
    more = Sub (most, shape)
    none = Sub (more, more)
    pads = Concat <axis = 0> (none, more)
    wide = Pad (x, pads)
    scaled = Mul (wide, scale)
    start = Sub (wanted, wanted)
    y = Slice (scaled, start, wanted)
}}"""


def crop(shape: str) -> ModelProto:
    return parser.parse_model(CROP.format(shape=shape))


def run(rep: object, x: np.ndarray, *size: int) -> np.ndarray:
    assert isinstance(rep, backend.Prepared)
    return np.asarray(rep.run([x, np.array(size, np.int64), np.array([2], np.float32)])[0])


def test_sizes_are_implied_and_what_says_none_is_free() -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    rep = backend.prepare(crop("3,5"), flags=("-O1",))
    want = 2 * np.pad(x, ((0, 0), (0, 1)))[:3]
    for anything in (0, -7, 1000):
        np.testing.assert_array_equal(run(rep, x, anything, 3, 5), want)
    for size in ((9, 3, 4), (9, 5, 3), (9, -3, 5)):
        with pytest.raises(CheckFailed, match="outside the bounds"):
            run(rep, x, *size)


def test_a_result_that_is_constant_is_checked_too() -> None:
    node = helper.make_node("Range", ["zero", "n", "step"], ["r"])
    cast = helper.make_node("Cast", ["count"], ["n"], to=TensorProto.FLOAT)
    square = helper.make_node("Mul", ["r", "r"], ["y"])
    numbers = [helper.make_tensor(*number) for number in (("zero", 1, [], [0.0]), ("step", 1, [], [1.0]))]
    inputs = [helper.make_tensor_value_info("count", TensorProto.INT32, ())]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4,))]
    graph = helper.make_graph([cast, node, square], "squares", inputs, outputs, numbers)
    rep = backend.prepare(helper.make_model(graph), flags=("-O1",))
    assert rep.run([np.array(4, np.int32)])[0].tolist() == [0, 1, 4, 9]
    with pytest.raises(CheckFailed, match="bounds"):
        rep.run([np.array(5, np.int32)])


def test_nothing_is_implied_by_a_shape_that_does_not_fit() -> None:
    with pytest.raises(UnsupportedModel, match="does not declare"):
        load_proto(crop("n,5"))
