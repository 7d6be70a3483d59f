"""Loops that count with a value they carry, as torch writes EmbeddingBag: what it is in a trip is known."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from mccompile import backend
from mccompile.base.dims import symbol
from mccompile.base.dtypes import i32
from mccompile.base.tensor import TensorType
from mccompile.frontend.loop_counters import steps_of
from mccompile.graph.ir import Fact
from mccompile.ops.loop import _carried

BAGS = (
    '<ir_version: 9, opset_import: ["": 20]> g (float[9,2] x, int64[COUNT] ends) => (float[m,2] y) '
    "<int64 zero = {0}, int64 one = {1}, int64[1] last = {-1}, int64[1] axis = {0}, bool yes = {1},"
    " float[1,2] empty = {0, 0}, int64[1] first = {0}, int64 bags = {COUNT}>"
    " { places = Concat<axis = 0>(first, ends) none = SequenceEmpty()"
    ' k, all = Loop("", yes, zero, none) <body = b (int64 i, bool go, n, rows) => (on, more, longer) {'
    "  at = Reshape(n, last) by = CastLike(one, at) next = Add(at, by) behind = Add(next, by)"
    "  begin = Slice(places, at, next) end = Slice(places, next, behind) nothing = Equal(begin, end)"
    "  row = If(nothing) <then_branch = t () => (a) { a = Identity(empty) }, else_branch = e () => (c) {"
    "   part = Slice(x, begin, end) c = REDUCE(part, axis) }>"
    "  longer = SequenceInsert(rows, row) step = CastLike(one, n) more = Add(n, step) on = Less(more, bags) }>"
    " y = ConcatFromSequence<axis = 0>(all) }"
)


@pytest.mark.parametrize(("count", "reduce"), [(3, "ReduceMean"), (70, "ReduceMax")], ids=["few", "many"])
def test_bags_of_rows(count: int, reduce: str) -> None:
    """Few trips are unrolled, many are a loop that carries slots; bags may be empty."""
    made = parser.parse_model(BAGS.replace("COUNT", str(count)).replace("REDUCE", reduce))
    rng = np.random.default_rng(3)
    x = rng.normal(size=(9, 2)).astype(np.float32)
    ends = np.sort(rng.integers(1, 10, count))
    ends[1] = ends[0]
    feed = {"x": x, "ends": ends}
    (want,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feed)
    np.testing.assert_allclose(backend.prepare(made).run(feed)[0], want, rtol=1e-6)


@pytest.mark.parametrize(
    ("next_", "step"),
    [
        ("one = Constant<value_int = 1>() m = Add(n, one)", 1),
        ("one = Constant<value_ints = [-3]>() o = CastLike(one, n) p = Identity(n) m = Sub(p, o)", 3),
        ("m = Add(outer, n)", 7),
        ("m = Sub(outer, n)", None),
        ("m = Add(n, i)", None),
        ("m = Mul(n, outer)", None),
        ("f = Constant<value_float = 1.0>() o = Cast<to = 7>(f) m = Add(n, o)", None),
        ("m = Add(n, n)", None),
        ("c = Constant<value_int = 300>() s = Cast<to = 3>(c) o = Cast<to = 7>(s) m = Add(n, o)", None),
        ("c = Constant<value_int = 5>() s = Cast<to = 9>(c) o = Cast<to = 7>(s) m = Add(n, o)", None),
        ("c = Constant<value_int = 5>() s = CastLike(c, go) o = CastLike(s, n) m = Add(n, o)", None),
    ],
)
def test_steps(next_: str, step: int | None) -> None:
    body = parser.parse_graph(f"b (int64 i, bool go, int64 n) => (go, m) {{ {next_} }}")
    found = steps_of(body, lambda name: np.array(7) if name in ("outer", "n") else None)
    assert found == ({} if step is None else {2: step})


def test_a_counter_is_known_where_sizes_follow_from_it() -> None:
    """The part of a trip lies where a carried number says: a part of a known size."""
    made = parser.parse_model(
        '<ir_version: 9, opset_import: ["": 20]> g (float[40] x) => (float[k,4] y) <int64[1] zero = {0},'
        " int64[1] four = {4}, bool yes = {1}, int64 ten = {10}> { n, y = Loop(ten, yes, zero)"
        " <body = b (int64 i, bool go, int64[1] n) => (go, m, part) { m = Add(n, four) part = Slice(x, n, m) }> }"
    )
    feed = {"x": np.arange(40, dtype=np.float32)}
    np.testing.assert_array_equal(backend.prepare(made).run(feed)[0], feed["x"].reshape(10, 4))


@pytest.mark.parametrize(("start", "known"), [(0, True), (2**31 - 5, True), (2**31 - 4, False)])
def test_a_counter_that_may_wrap_around_is_not_known(start: int, known: bool) -> None:
    """In i32, after at most 4 trips that add 1."""
    first = Fact(TensorType(i32, ()), np.array(start, object))
    assert (_carried(first, symbol("i", 0, 4) * 1).value is not None) == known
