"""Loops that end by their condition: how often they run is found where only counters decide."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from mccompile import backend
from mccompile.frontend.load import load_proto

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
WHILE = (
    "g (float[2] x, int64 n) => (float[2] y, float[k,2] all) { zero = Constant<value_int=0>()"
    " steps = Constant<value_float=5.0>() yes = Constant<value=bool {1}>() seven = Constant<value_int=7>()"
    " last, y, all = Loop(TRIPS, yes, zero, x) <body = b (int64 i, bool go, int64 step, float[2] s)"
    " => (bool on, int64 next, float[2] t, float[2] u) { one = Constant<value_int=1>()"
    " half = Constant<value_float=0.5>() next = Add(step, one) f = Cast<to=1>(next) on = CONDITION"
    " t = Mul(s, half) u = Identity(t) }> }"
)
LESS = "Less(f, steps)"


@pytest.mark.parametrize(
    ("trips", "condition", "wanted"),
    [
        ("", LESS, 5),
        ("seven", LESS, 5),
        ("seven", "LessOrEqual(f, f)", 7),
        ("zero", LESS, 0),
    ],
)
def test_counters_decide(trips: str, condition: str, wanted: int) -> None:
    made = parser.parse_model(HEAD + WHILE.replace("TRIPS", trips).replace("CONDITION", condition))
    graph = load_proto(made)
    assert graph.outputs[1].type.shape == (wanted, 2)
    feed = {"x": np.array([1.5, -2], np.float32), "n": np.array(0)}
    results = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feed)
    for got, want in zip(backend.prepare(made).run(feed), results, strict=True):
        np.testing.assert_array_equal(got, want)


def test_data_decide() -> None:
    text = WHILE.replace("TRIPS", "seven").replace("CONDITION", "Less(step, n)")
    made = parser.parse_model(HEAD + text)
    rep = backend.prepare(made)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    for n in (2, 0, 9):
        feed = {"x": np.array([1.5, -2], np.float32), "n": np.array(n)}
        for got, want in zip(rep.run(feed), session.run(None, feed), strict=True):
            np.testing.assert_array_equal(got, want)
