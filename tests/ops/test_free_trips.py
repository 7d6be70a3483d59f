"""Loops over a free size: how often they run follows from a trip count, or from comparisons of counters alone."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile import backend
from mccompile.base.dims import evaluate
from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto

FLAGS = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
HEAD = '<ir_version: 8, opset_import: ["": 17]> '
CELL = (  # as tf2onnx writes a cell under tf.while_loop: sizes are int32, the condition is in front and in the body
    "g (float[batch,time,4] x) => (float[batch,o,3] y, float[batch,3] last)"
    "{ t = Transpose<perm=[1,0,2]>(x) s = Shape(t) small = Cast<to=6>(s) first = Constant<value_ints=[0]>()"
    "  second = Constant<value_ints=[1]>() n1 = Slice(small, first, second, first) n = Squeeze(n1, first)"
    "  third = Constant<value_ints=[2]>() rows = Slice(s, second, third, first) three = Constant<value_ints=[3]>()"
    "  shape = Concat<axis=0>(rows, three) h0 = ConstantOfShape(shape) zero = Constant<value=int32 {0}>()"
    "  most = Constant<value_int=9223372036854775807>() a0 = Less(zero, n) b0 = Less(zero, n) go0 = And(a0, b0)"
    "  e0, e1, last, all = Loop(most, go0, zero, zero, h0)"
    "  <body = b (int64 i, bool go, int32 counter, int32 step, float[rows_,3] h)"
    "   => (bool on, int32 counter_next, int32 step_next, float[rows_,3] h_next, float[rows_,3] out)"
    "   { one = Constant<value=int32 {1}>() counter_next = Add(counter, one) step_next = Add(step, one)"
    "     xt = Gather<axis=0>(t, step) p = MatMul(xt, w) q = MatMul(h, r) sum = Add(p, q) h_next = Tanh(sum)"
    "     out = Identity(h_next) l0 = Less(counter_next, n) l1 = Less(step_next, n) on = And(l0, l1) }>"
    "  y = Transpose<perm=[1,0,2]>(all) }"
)


def test_a_while_loop_over_time() -> None:
    made = parser.parse_model(HEAD + CELL)
    random = np.random.default_rng(0)
    for name, shape in (("w", (4, 3)), ("r", (3, 3))):
        made.graph.initializer.append(numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name))
    rep = backend.prepare(made, flags=FLAGS, dims={"batch": (1, 2), "time": (1, 9)})
    session = onnxruntime.InferenceSession(made.SerializeToString())
    for batch, time in ((2, 9), (1, 1), (2, 4)):
        feed = {"x": random.standard_normal((batch, time, 4)).astype(np.float32)}
        for got, want in zip(rep.run(feed), session.run(None, feed), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5)


def counting(trips: str, condition: str, start: str = "zero") -> ModelProto:
    """A loop that collects a counter; `n` is the free size, `five` a number."""
    return parser.parse_model(
        f"{HEAD} g (float[n_] x) => (int64[o] y) {{ n1 = Shape(x) none = Constant<value_ints=[0]>()"
        " n = Squeeze(n1, none) zero = Constant<value_int=0>() five = Constant<value_int=5>()"
        " two = Constant<value_int=2>() minus = Constant<value_int=-1>() yes = Constant<value=bool {1}>()"
        " far = Constant<value_int=9223372036854775807>()"
        f" last, kept, y = Loop({trips}, yes, {start}, five)"
        " <body = b (int64 i, bool go, int64 c, int64 same) => (bool on, int64 next, int64 same_next, int64 out)"
        f" {{ next = Add(c, two) same_next = Identity(same) on = {condition} out = Identity(c) }}> }}"
    )


@pytest.mark.parametrize(
    ("trips", "condition", "start"),
    [
        ("n", "Identity(go)", "zero"),
        ("n", "Less(next, same)", "zero"),
        ("", "Less(next, n)", "zero"),
        ("far", "LessOrEqual(next, n)", "zero"),
        ("far", "Greater(n, c)", "five"),
        ("far", "GreaterOrEqual(n, i)", "minus"),
        ("five", "Less(next, n)", "zero"),
    ],
)
def test_the_size_of_what_is_collected_follows(trips: str, condition: str, start: str) -> None:
    made = counting(trips, condition, start)
    graph = load_proto(made, dims={"n_": (1, 9)})
    rep = backend.prepare(made, flags=FLAGS, dims={"n_": (1, 9)})
    session = onnxruntime.InferenceSession(made.SerializeToString())
    for n in range(1, 10):
        feed = {"x": np.zeros(n, np.float32)}
        [want] = session.run(None, feed)
        np.testing.assert_array_equal(rep.run(feed)[0], want)
        assert evaluate(graph.outputs[0].type.shape[0], {"n_n": n}) == len(want)


def test_a_counter_that_falls() -> None:
    made = counting("", "Greater(next, zero)", "n")
    node = next(node for node in made.graph.node if node.op_type == "Loop")
    body = node.attribute[0].g
    body.node[0].input[1] = "minus"
    rep = backend.prepare(made, flags=FLAGS, dims={"n_": (1, 9)})
    for n in (1, 4, 9):
        np.testing.assert_array_equal(rep.run({"x": np.zeros(n, np.float32)})[0], np.arange(n, 0, -1))


def test_a_condition_with_not() -> None:
    made = counting("", "Not(enough)")
    body = next(node for node in made.graph.node if node.op_type == "Loop").attribute[0].g
    enough = parser.parse_node("enough = GreaterOrEqual(next, n)")
    body.node.insert(1, enough)
    rep = backend.prepare(made, flags=FLAGS, dims={"n_": (1, 9)})
    for n in (1, 4, 9):
        np.testing.assert_array_equal(rep.run({"x": np.zeros(n, np.float32)})[0], np.arange(0, n, 2))


@pytest.mark.parametrize(
    ("condition", "why"), [("Less(c, kept_)", "a value from elsewhere"), ("Greater(next, n)", "it never falls")]
)
def test_what_does_not_follow_needs_a_bound(condition: str, why: str) -> None:
    made = counting("", condition.replace("kept_", "computed"))
    made.graph.node.insert(0, parser.parse_node("computed = Cast<to=7>(first)"))
    made.graph.node.insert(0, parser.parse_node("first = ReduceMax<keepdims=0>(x)"))
    with pytest.raises(UnsupportedModel, match="--bound y=100"):
        load_proto(made, dims={"n_": (1, 9)})
