"""Axes that a run names, where no shape is declared."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from mccompile import backend
from mccompile.base.errors import CheckFailed
from mccompile.check.inputs import random_sets
from mccompile.frontend.load import load_proto

HEAD = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]> '
X = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)


def agrees(text: str, *axes: list[int] | int, dtype: type = np.int64, x: np.ndarray = X) -> None:
    made = parser.parse_model(HEAD + text)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    rep = backend.prepare(made)
    for each in axes:
        feed = {"x": x, "a": np.array(each, dtype)}
        (want,), (got,) = session.run(None, feed), rep.run(feed)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("name", ["ReduceSum", "ReduceMean", "ReduceL2"])
def test_reductions(name: str, keep: int) -> None:
    one, two = ("n,m", "n") if not keep else ("n,m,k", "n,m,k")
    behind = f"{{ z = Relu(x) r = {name}<keepdims={keep}>(z, a) y = Neg(r) }}"
    agrees(f"g (float[3,4,5] x, int64[1] a) => (float[{one}] y) {behind}", [0], [1], [-1])
    agrees(f"g (float[3,4,5] x, int64[2] a) => (float[{two}] y) {behind}", [0, 1], [2, 0], [-1, 1])


def test_axes_are_put_in() -> None:
    agrees("g (float[3,4,5] x, int64[1] a) => (float[n,m,k,l] y) { y = Unsqueeze(x, a) }", [0], [1], [2], [-1])
    text = "g (float[3,4,5] x, int32 a) => (float[n,m,k,l] y) { y = com.microsoft.ExpandDims(x, a) }"
    agrees(text, 0, -1, 2, dtype=np.int32)


def test_sizes_that_are_the_same_whatever_axis_it_is() -> None:
    agrees(
        "g (float[4,4] x, int64[1] a) => (float[n] y) { y = ReduceMax<keepdims=0>(x, a) }",
        [0],
        [1],
        x=X[0, :, :4].copy(),
    )


def test_what_is_no_axis_ends_the_run() -> None:
    made = parser.parse_model(HEAD + "g (float[3,4] x, int64[1] a) => (float[n] y) { y = ReduceSum<keepdims=0>(x, a) }")
    rep = backend.prepare(made)
    with pytest.raises(CheckFailed, match="outside the bounds"):
        rep.run([X[:, :, 0], np.array([7])])


def test_random_axes_are_axes() -> None:
    made = parser.parse_model(HEAD + "g (float[3,4] x, int64[1] a) => (float[n] y) { y = ReduceSum<keepdims=0>(x, a) }")
    drawn = {int(each.inputs["a"][0]) for each in random_sets(load_proto(made), 0, 20)}
    assert drawn == {0, 1}
