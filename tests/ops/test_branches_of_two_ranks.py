"""If whose branches differ in rank: what reads the result, or the file, tells which branch a model can only have meant.
A run that comes to the other one ends with a status."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

from mccompile import backend
from mccompile.base.errors import MccError

HEAD = '<ir_version: 8, opset_import: ["": 17]> g '
CHOICE = (
    "y = If(c) <then_branch = t () => (s) {{ s = Squeeze({0}, one) }}, else_branch = e () => (k) {{ k = Neg({0}) }}>"
)
X = np.arange(12, dtype=np.float32).reshape(3, 1, 4)
FLAT = X.reshape(3, 4)


def model(text: str, x: str = "x") -> ModelProto:
    head = f"(float[3,1,4] x, bool c) => {text}"
    return parser.parse_model(HEAD + head.replace("CHOICE", CHOICE.format(x)))


CASES = {
    "the use takes two axes": (model("(z) <int64[1] one = {1}> { CHOICE z = Transpose<perm=[1,0]>(y) }"), True, FLAT.T),
    "the use takes three axes": (
        model("(z) <int64[1] one = {1}> { CHOICE z = Transpose<perm=[1,2,0]>(y) }"), False, -X.transpose(1, 2, 0),
    ),
    "the file declares the rank": (model("(z) <int64[1] one = {1}, float[a,b] y> { CHOICE z = Abs(y) }"), True, FLAT),
    "the output has a rank": (model("(float[a,b] y) <int64[1] one = {1}> { CHOICE }"), True, FLAT),
    "one depends on another": (
        model(
            "(z) <int64[1] one = {1}> { CHOICE t = Transpose<perm=[1,0]>(y)"
            " w = If(c) <then_branch = t2 () => (a) { a = Identity(t) }, else_branch = e2 () => (b)"
            " { b = Unsqueeze(t, one) }> z = Transpose<perm=[1,0]>(w) }"
        ), True, FLAT,
    ),
    "in a loop": (
        model(
            "(z) <int64[1] one = {1}, int64 n = {2}, bool go = {1}> { z = Loop(n, go, x) <body = b (int64 i, bool g,"
            " float[3,1,4] v) => (h, w) { h = Identity(g) CHOICE q = Transpose<perm=[1,0]>(y)"
            " r = Transpose<perm=[1,0]>(q) w = Unsqueeze(r, one) }> }", "v",
        ), True, X,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_branch_that_can_be_used(case: str) -> None:
    made, taken, want = CASES[case]
    ready = backend.prepare(made, flags=("-O0",))
    np.testing.assert_array_equal(ready.run({"x": X, "c": np.array(taken)})[0], want)
    with pytest.raises(MccError, match="cannot run the branch"):
        ready.run({"x": X, "c": np.array(not taken)})


def test_nothing_tells_the_rank() -> None:
    with pytest.raises(MccError, match=r"f32\[3,4\] in one branch and f32\[3,1,4\] in the other"):
        backend.prepare(model("(z) <int64[1] one = {1}> { CHOICE z = Abs(y) }"))


def test_a_free_axis_that_is_squeezed_where_it_is_one() -> None:
    made = parser.parse_model(
        HEAD + "(float[3,n,4] x) => (z) <int64[1] one = {1}, int64 at = {1}> { all = Shape(x) d = Gather(all, at)"
        " c = Equal(d, at) " + CHOICE.format("x") + " z = Transpose<perm=[1,0]>(y) }"
    )
    ready = backend.prepare(made, flags=("-O0",), dims={"n": (1, 4)})
    np.testing.assert_array_equal(ready.run({"x": X})[0], FLAT.T)
    with pytest.raises(MccError, match="cannot run the branch"):
        ready.run({"x": np.concatenate([X, X], 1)})
