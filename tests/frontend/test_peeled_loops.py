"""Loops whose first trip changes the sizes of what they carry."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, parser

from mccompile import backend
from mccompile.base.errors import MccError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def model(count: str, operands: str = "trips, true, start", go: str = "go = Identity (c)") -> ModelProto:
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x, float[1] start{", int64 trips" if not count else ""}) => (float[2,3] y, float[n,2,3] e)
        <bool true = {{1}}, int64 last = {{2}}{f", int64 trips = {{{count}}}" if count else ""}> {{
          y, e = Loop <body = inner (int64 i, bool c, float s) => (bool go, float[2,3] next, float[2,3] part)
            {{ {go} n = Cast <to = 1> (i) t = Add (x, n) next = Add (s, t) part = Mul (t, next) }}> ({operands})
        }}"""
    )


def agrees(made: ModelProto) -> None:
    feeds = {"x": X, "start": np.array([5], np.float32)}
    wants = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feeds)
    for got, want in zip(backend.run_model(made, feeds), wants, strict=True):
        np.testing.assert_allclose(got, want, 1e-6)


@pytest.mark.parametrize("count", ["1", "4"])
def test_the_first_trip_makes_it_larger(count: str) -> None:
    agrees(model(count))


@pytest.mark.parametrize("count", ["1", "3"])
def test_one_number_that_becomes_a_row(count: str) -> None:
    made = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, float[1] start) => (float[3] y)
        <bool true = {{1}}, int64 trips = {{{count}}}> {{
          y = Loop <body = inner (int64 i, bool c, float s) => (bool go, float[3] next)
            {{ go = Identity (c) next = Add (s, x) }}> (trips, true, start)
        }}"""
    )
    feeds = {"x": X[0], "start": np.array([5], np.float32)}
    np.testing.assert_allclose(backend.run_model(made, feeds)[0], 5 + int(count) * X[0])


def test_rows_that_are_added_after_one() -> None:
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x, float[1,3] start) => (float[n,3] y)
        <bool true = {1}, int64 trips = {3}> {
          y = Loop <body = inner (int64 i, bool c, float s) => (bool go, float next)
            { go = Identity (c) next = Concat <axis = 0> (s, x) }> (trips, true, start)
        }"""
    )
    (got,) = backend.run_model(made, {"x": X, "start": X[:1]})
    np.testing.assert_array_equal(got, np.concatenate([X[:1], X, X, X]))


def test_a_condition_ends_the_trips_behind_it() -> None:
    agrees(model("9", go="go = Less (i, last)"))
    agrees(model("9", operands=", true, start", go="go = Less (i, last)"))


def test_a_loop_that_may_not_begin_is_refused() -> None:
    with pytest.raises(MccError, match="sizes that change from trip to trip"):
        backend.prepare(model(""), bounds={"trips": (4,)})
