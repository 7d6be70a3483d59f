"""Attention reads keys and values as they are stored, with the numbers of floats."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, parser

from mccompile.base.dtypes import DType, f16, f32, i8
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.kinds.attention import Attention
from mccompile.measure.correctness import build
from tests.small_models import floats

END = "kt = Transpose <perm = [0, 2, 1]> (kw) s = MatMul(q, kt) p = Softmax(s) y = MatMul(p, vw) }"
HALVES = "(float[2,3,5] q, float16[2,70,5] k, float16[2,70,5] v) => (float[2,3,5] y{}) {{ kw = Cast <to = 1> (k) "
LEVELS = (
    "(float[2,3,5] q, int8[2,70,5] k, int8[2,70,5] v, float[{0}] a, float[{0}] b) => (float[2,3,5] y) {{"
    "kf = Cast <to = 1> (k) kw = Mul(kf, a) vf = Cast <to = 1> (v) vw = Mul(vf, b) "
)
VALUES = "vw = Cast <to = 1> (v) "


def model(text: str) -> ModelProto:
    return parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g ' + text)


def keys_of(made: ModelProto, target: str) -> tuple[DType, DType]:
    """The types of keys and values that are read; the result is compared with onnxruntime's."""
    options = Options(target=target, prefer="ram")
    package = compile_graph(load_proto(made), options, "stored")
    feeds = {}
    for number, entry in enumerate(made.graph.input):
        drawn = floats(number, *(dim.dim_value for dim in entry.type.tensor_type.shape.dim))
        kind = {1: np.float32, 3: np.int8, 10: np.float16}[entry.type.tensor_type.elem_type]
        feeds[entry.name] = (drawn * (20 if kind is np.int8 else 1)).astype(kind) * kind(1)
    want = ort.InferenceSession(made.SerializeToString()).run(["y"], feeds)[0]
    got = build(package, options.resolved_target()).run(feeds)["y"]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
    calls = [step.function.call for step in package.plan.steps()]
    (call,) = [call for call in calls if isinstance(call.kind, Attention)]
    return call.ins[1].buffer.dtype, call.ins[2].buffer.dtype


@pytest.mark.parametrize("target", ["generic", "native"])
@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        (HALVES.format("") + VALUES + END, f16),
        (LEVELS.format("2,70,1") + END, i8),
        (LEVELS.format("70,1") + END, i8),  # one for all heads
        (LEVELS.format("2,70,5") + END, f32),  # a factor for each number is not a factor of a row
        (LEVELS.format("2,1,5") + END, f32),
    ],
)
def test_keys_and_values_are_read_as_they_are_stored(text: str, dtype: DType, target: str) -> None:
    assert keys_of(model(text), target) == (dtype, dtype)


def test_what_others_read_as_floats_stays() -> None:
    text = HALVES.format(", float[2,70,5] z") + VALUES + END.replace("}", "z = Neg(kw) }")
    assert keys_of(model(text), "generic")[1] == f16
