"""Sequences and optional values against onnxruntime: known while compiling, in slots, carried by loops, passed in and
out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, parser

import mccompile
from mccompile import backend
from mccompile.base.errors import CheckFailed
from mccompile.toolchain.run import Model

CHANCE = np.random.default_rng(11)
Feed = Mapping[str, Any]


def floats(*shape: int) -> np.ndarray:
    return CHANCE.uniform(-1, 1, shape).astype(np.float32)


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def model(text: str) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')


def same(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert isinstance(got, list)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    else:
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def agrees(text: str, *feeds: Feed, **options: Any) -> None:
    """With and without the optional passes, more than once in the same memory."""
    made = model(text)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    for optimize in (True, False):
        prepared = backend.prepare(made, optimize=optimize, **options)
        for feed in (*feeds, *feeds):
            for got, want in zip(prepared.run(feed), session.run(None, feed), strict=True):
                same(got, want)


def refuses(text: str, feed: Feed, why: str, **options: Any) -> None:
    """The run ends with a status."""
    with pytest.raises(CheckFailed, match=why):
        backend.prepare(model(text), **options).run(feed)


# -- known while compiling


def test_known_positions_cost_nothing() -> None:
    text = """g (float[2] a, float[3] b) => (float[3] y, int64 n) {
        s = SequenceConstruct(a, b, a)
        p = Constant<value_int: int=-2>()
        t = SequenceErase(s)
        y = SequenceAt(s, p)
        n = SequenceLength(t)
    }"""
    agrees(text, {"a": floats(2), "b": floats(3)})


@pytest.mark.parametrize(("axis", "new"), [(0, 0), (1, 0), (-1, 1), (0, 1)])
def test_a_sequence_of_known_length_is_joined(axis: int, new: int) -> None:
    text = f"""g (float[4,3] x) => (float[a,b,c] y) {{
        s = SplitToSequence<axis: int=0>(x)
        z = ConcatFromSequence<axis: int={axis}, new_axis: int={new}>(s)
        y = Reshape(z, q)
    }}"""
    text = text.replace("=> (float[a,b,c] y)", "=> (float[a,b,c] y) <int64[3] q = {-1, 1, 1}>")
    agrees(text, {"x": floats(4, 3)})


def test_parts_of_given_sizes() -> None:
    text = """g (float[2,7] x) => (seq(float[2,n]) s) <int64[3] q = {2, 0, 5}> {
        s = SplitToSequence<axis: int=1>(x, q)
    }"""
    agrees(text, {"x": floats(2, 7)})


# -- positions and sizes that are known at run time

AT = """g (float[2] a, float[3] b, int64 p) => (float[n] y) {
    s = SequenceConstruct(a, b, a, b)
    y = SequenceAt(s, p)
}"""


def test_an_element_of_any_size_at_any_position() -> None:
    agrees(AT, *({"a": floats(2), "b": floats(3), "p": number(p)} for p in (0, 1, 3, -1, -4)))


@pytest.mark.parametrize("position", [4, -5, 2**62, -(2**62)])
def test_a_position_outside_is_a_status(position: int) -> None:
    refuses(AT, {"a": floats(2), "b": floats(3), "p": number(position)}, "size")


def test_elements_put_in_and_taken_out() -> None:
    text = """g (float[2,2] a, float[1,3] b, int64 p, int64 q) => (seq(float[u,v]) t, int64 n, float[r,c] last) {
        s = SequenceConstruct(a, b, a)
        i = SequenceInsert(s, b, p)
        t = SequenceErase(i, q)
        n = SequenceLength(t)
        e = Constant<value_int: int=-1>()
        last = SequenceAt(t, e)
    }"""
    ends = [(0, 0), (3, 3), (2, -1), (-1, 0), (-3, -4)]
    agrees(text, *({"a": floats(2, 2), "b": floats(1, 3), "p": number(p), "q": number(q)} for p, q in ends))


@pytest.mark.parametrize(("axis", "new"), [(0, 0), (1, 0), (-1, 1), (0, 1)])
def test_slots_are_joined(axis: int, new: int) -> None:
    text = f"""g (float[2,3] a, float[2,3] b, int64 p) => (float[] y) {{
        s = SequenceConstruct(a, b, a)
        t = SequenceErase(s, p)
        z = ConcatFromSequence<axis: int={axis}, new_axis: int={new}>(t)
        y = Neg(z)
    }}"""
    agrees(text, *({"a": floats(2, 3), "b": floats(2, 3), "p": number(p)} for p in (0, 1)))


SPLIT = """g (float[2,7] x, int64{kind} q) => (seq(float[2,n]) s) {{
    s = SplitToSequence<axis: int=1>(x, q)
}}"""


def test_a_tensor_is_cut_into_equal_parts() -> None:
    agrees(SPLIT.format(kind=""), *({"x": floats(2, 7), "q": number(q)} for q in (1, 2, 3, 7, 100)))


def test_a_tensor_is_cut_into_parts_of_computed_sizes() -> None:
    agrees(SPLIT.format(kind="[3]"), *({"x": floats(2, 7), "q": np.array(q)} for q in ([2, 0, 5], [7, 0, 0])))


@pytest.mark.parametrize("sizes", [[2, 2, 2], [-1, 4, 4], [2**62, 2**62, 7]])
def test_parts_that_are_not_the_whole_are_a_status(sizes: list[int]) -> None:
    refuses(SPLIT.format(kind="[3]"), {"x": floats(2, 7), "q": np.array(sizes)}, "size")


def test_parts_of_nothing_are_a_status() -> None:
    refuses(SPLIT.format(kind=""), {"x": floats(2, 7), "q": number(0)}, "size")


# -- loops and branches

GROWS = """g (int64 n, bool c, seq(float[m]) s) => (seq(float[m]) r) <float[5] x = {1.0, 2.0, 3.0, 4.0, 5.0}> {
    r = Loop (n, c, s) <body = b (int64 i, bool ci, seq(float[m]) si) => (bool co, seq(float[m]) so)
    <int64[1] zero = {0}, int64[1] one = {1}> {
        co = Identity(ci)
        j = Unsqueeze(i, zero)
        e = Add(j, one)
        part = Slice(x, zero, e)
        so = SequenceInsert(si, part)
    }>
}"""


def grown(trips: int, *first: np.ndarray) -> Feed:
    return {"n": number(trips), "c": np.array(True), "s": list(first)}


def test_a_loop_carries_a_sequence_that_grows_by_elements_of_other_sizes() -> None:
    agrees(GROWS, grown(5), grown(0), grown(7, floats(2), floats(9)), bounds={"n": (8,)})


def test_elements_of_another_rank_are_carried() -> None:
    agrees(GROWS.replace("seq(float[m])", "seq(float[])"), grown(3, floats(), floats(1, 2)), bounds={"n": (8,)})


def test_a_sequence_that_would_grow_beyond_its_bound_is_a_status() -> None:
    refuses(GROWS, grown(9), "size", bounds={"n": (8,)})


def test_slots_are_carried_and_erased_in_a_loop() -> None:
    text = """g (int64 n, seq(float[2]) s, int64 p) => (seq(float[2]) r, float[2] total) <float[2] z = {0.0, 0.0}> {
        r, total = Loop (n, , s, z) <body = b (int64 i, bool c, seq(float[2]) si, float[2] t)
        => (bool co, seq(float[2]) so, float[2] tn) {
            co = Identity(c)
            x = SequenceAt(si, p)
            so = SequenceErase(si, p)
            tn = Add(t, x)
        }>
    }"""
    feeds = ({"n": number(n), "s": [floats(2) for _ in range(5)], "p": number(p)} for n, p in ((3, 0), (5, -1), (0, 0)))
    agrees(text, *feeds, bounds={"s": (6,)})


def test_a_loop_over_a_list_is_written_out() -> None:
    text = """g (seq(float[n]) s, seq(float[n]) t) => (seq(float[n]) y) {
        y = SequenceMap (s, t) <body = b (float[n] a, float[n] b) => (float[n] c) { c = Add(a, b) }>
    }"""
    agrees(text, {"s": [floats(2), floats(5)], "t": [floats(2), floats(1)]})


def test_pieces_of_a_loop_that_ends_by_its_own_counter_have_known_sizes() -> None:
    """torch writes EmbeddingBag so: without trip count, and what is joined has to have the rows of `x`."""
    text = """g (float[6, 2] x, float[3, 2] y) => (float[3, 2] z)
        <int64 first = {0}, int64 bags = {3}, int64[4] starts = {0, 1, 4, 6}, bool go = {1}, int64[1] zero = {0}> {
        none = SequenceEmpty()
        last, parts = Loop (, go, first, none) <body = b (int64 i, bool c, int64 n, seq(float[1, 2]) s)
            => (bool on, int64 next, seq(float[1, 2]) t) <int64 one = {1}> {
            next = Add(n, one)
            from = Gather(starts, n)
            to = Gather(starts, next)
            from1 = Unsqueeze(from, zero)
            to1 = Unsqueeze(to, zero)
            rows = Slice(x, from1, to1, zero)
            mean = ReduceMean<axes = [0], keepdims = 1>(rows)
            t = SequenceInsert(s, mean)
            on = Less(next, bags)
        }>
        all = ConcatFromSequence<axis = 0>(parts)
        z = Add(all, y)
    }"""
    agrees(text, {"x": floats(6, 2), "y": floats(3, 2)})


def test_branches_give_sequences_of_different_form() -> None:
    text = """g (float[2] a, float[3] b, bool c, int64 p) => (float[n] y, int64 n) {
        s = If (c) <then_branch = t () => (seq(float[n]) u) { u = SequenceConstruct(a, b, a) },
                    else_branch = e () => (seq(float[n]) v) { v = SequenceConstruct(b) }>
        y = SequenceAt(s, p)
        n = SequenceLength(s)
    }"""
    cases = [(True, 2), (True, 1), (False, 0), (False, -1)]
    agrees(text, *({"a": floats(2), "b": floats(3), "c": np.array(c), "p": number(p)} for c, p in cases))


COLLECTS = """g (int64 n, bool c, float[2] x) => (float[2] last, float[k, 2] all) {
    last, all = Loop (n, c, x) <body = b (int64 i, bool ci, float[2] s) => (bool co, float[2] t, float[2] u)
    <float five = {5.0}> {
        t = Add(s, s)
        u = Neg(t)
        m = ReduceSum<keepdims: int=0>(t)
        co = Less(m, five)
    }>
}"""


def collects(trips: int, condition: bool, element: float) -> Feed:
    return {"n": number(trips), "c": np.array(condition), "x": np.full(2, element, np.float32)}


def test_as_many_elements_are_collected_as_there_are_trips() -> None:
    # by the count, by the condition, none at all
    agrees(COLLECTS, collects(3, True, 0.01), collects(100, True, 0.5), collects(8, False, 1), bounds={"n": (8,)})


def test_more_trips_than_the_bound_are_a_status() -> None:
    refuses(COLLECTS, collects(9, True, 0.0), "size", bounds={"all": (8,)})
    refuses(COLLECTS, collects(2**40, True, 0.0), "size", bounds={"all": (8,)})


def test_a_loop_that_ends_by_its_condition_at_the_bound_is_right() -> None:
    agrees(COLLECTS, collects(100, True, 0.5), bounds={"all": (3,)})


# -- optional values

PERHAPS = """g (optional(float[3]) o) => (bool h, float[3] y) <float[3] z = {1.0, 2.0, 3.0}> {
    h = OptionalHasElement(o)
    y = If (h) <then_branch = t () => (float[3] a) { a = OptionalGetElement(o) },
                else_branch = e () => (float[3] b) { b = Identity(z) }>
}"""


def test_an_optional_input_is_there_or_not() -> None:
    prepared = backend.prepare(model(PERHAPS))
    given = floats(3)
    for value, want in ((given, given), (None, np.array([1, 2, 3], np.float32)), (given, given)):
        has, got = prepared.run({"o": value})
        assert has == (value is not None)
        same(got, want)


def test_an_absent_value_that_is_needed_is_a_status() -> None:
    refuses("g (optional(float[3]) o) => (float[3] y) { y = OptionalGetElement(o) }", {"o": None}, "status")


# -- in and out


def test_a_list_of_the_shapes_that_come_is_compiled_for() -> None:
    text = "g (seq(float[n]) s, int64 p) => (seq(float[n]) t) { t = SequenceErase(s, p) }"
    agrees(text, {"s": [floats(2), floats(4)], "p": number(0)}, {"s": [floats(3)] * 3, "p": number(1)})


def test_a_bounded_sequence_of_any_length() -> None:
    text = """g (seq(float[2,3]) s, float[2,3] x) => (seq(float[2,3]) t, int64 n) {
        t = SequenceInsert(s, x)
        n = SequenceLength(s)
    }"""
    feeds = ({"s": [floats(2, 3) for _ in range(n)], "x": floats(2, 3)} for n in (1, 4, 0))
    agrees(text, *feeds, bounds={"s": (4,)})


def test_a_bounded_sequence_of_elements_of_any_size() -> None:
    text = """g (seq(float[n,3]) s, int64 p) => (seq(float[n,3]) t, float[n,3] y) {
        t = SequenceErase(s, p)
        y = SequenceAt(s, p)
    }"""
    feeds = ({"s": [floats(n, 3) for n in sizes], "p": number(-1)} for sizes in ([1, 5], [2, 3, 1, 4]))
    agrees(text, *feeds, bounds={"s": (4,)}, dims={"n": (1, 5)})


LENGTHS = "g (seq(float[2]) s, int64 p) => (float[2] y) { y = SequenceAt(s, p) }"


def test_a_position_beyond_the_length_is_a_status() -> None:
    refuses(LENGTHS, {"s": [floats(2)], "p": number(1)}, "size", bounds={"s": (3,)})


@pytest.mark.parametrize("length", [4, -1, 2**40])
def test_a_length_that_cannot_be_is_a_status(length: int, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(model(LENGTHS), path)
    mccompile.compile(path, mccompile.Options(bounds={"s": (3,)})).write(tmp_path / "out")
    built = Model.build(tmp_path / "out")
    with pytest.raises(CheckFailed, match="size"):
        built.run({"s": floats(3, 2), "s_length": number(length), "p": number(0)})
