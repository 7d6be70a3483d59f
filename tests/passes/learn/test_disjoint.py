"""Gradients of what was cut out of one value: side by side in one tensor, and right where parts overlap."""

from __future__ import annotations

from collections import Counter

import pytest

from mccompile.passes.graph.eliminate_dead import drop_dead
from mccompile.passes.learn.gradients import gradients
from tests.passes.learn.test_gradients import loaded, slopes

SUM = "y = ReduceSum <keepdims = 0> (all)"


def backward(text: str) -> Counter[str]:
    """The operators of the gradient that add, or move elements in memory."""
    graph = loaded(text)
    graph.outputs[:] = gradients(graph, graph.outputs[0], graph.inputs)
    drop_dead(graph)
    return Counter(node.op.name for node in graph.nodes if node.op.name in ("Add", "Concat", "Pad", "ScatterND"))


def cut(*ranges: tuple[int, int], size: int) -> str:
    """The sum over i of (i + 1) times the sum of a range."""
    lines = [f"float[{size}] x) => (float y) <int64[1] axis = {{0}}"]
    for i, (begin, end) in enumerate(ranges):
        lines.append(f", int64[1] b{i} = {{{begin}}}, int64[1] e{i} = {{{end}}}, float f{i} = {{{i + 1}.0}}")
    body = [f"s{i} = Slice(x, b{i}, e{i}, axis) p{i} = Mul(s{i}, f{i})" for i in range(len(ranges))]
    names = ", ".join(f"p{i}" for i in range(len(ranges)))
    return f"g ({''.join(lines)}> {{ {' '.join(body)} all = Concat <axis = 0> ({names}) {SUM} }}"


@pytest.mark.parametrize(
    ("ranges", "wanted", "operators"),
    [
        ([(4, 6), (0, 2), (2, 4)], [2, 2, 3, 3, 1, 1], {"Concat": 1}),  # in any order
        ([(1, 2), (4, 5)], [0, 1, 0, 0, 2, 0], {"Concat": 1, "Pad": 2}),  # zeros before, between and behind
        ([(0, 3), (2, 5), (3, 6)], [1, 1, 3, 5, 5, 3], {"Concat": 1, "Pad": 1, "Add": 1}),
        ([(1, 4)], [0, 1, 1, 1, 0, 0], {"Pad": 1}),
    ],
)
def test_what_does_not_overlap_shares_a_tensor(
    ranges: list[tuple[int, int]], wanted: list[int], operators: dict[str, int]
) -> None:
    text = cut(*ranges, size=6)
    assert slopes(text, x=[0] * 6)[0].tolist() == wanted
    assert backward(text) == operators


def test_axes_are_kept_apart() -> None:
    text = f"""g (float[2, 2] x) => (float y) <int64[1] none = {{0}}, int64[1] one = {{1}}> {{
        a = Slice(x, none, one, none) b = Slice(x, none, one, one) c = Slice(x, none, one, none)
        d = Flatten(a) e = Transpose(b) f = Flatten(c) all = Concat <axis = 0> (d, e, f) {SUM} }}"""
    assert slopes(text, x=[[0, 0], [0, 0]])[0].tolist() == [[3, 2], [1, 0]]


@pytest.mark.parametrize(
    ("places", "wanted"),
    [("{-1}", [0, 0, 0, 1]), ("{1, 2}", [0, 1, 1, 0]), ("{2, -1}", [0, 0, 1, 1]), ("{1, 1}", [0, 2, 0, 0]),
     ("{2, 1}", [0, 1, 1, 0]), ("{0, 2}", [1, 0, 1, 0])],
)  # fmt: skip
def test_known_places_that_follow_each_other_are_not_scattered(places: str, wanted: list[int]) -> None:
    count = places.count(",") + 1
    text = f"g (float[4] x) => (float y) <int64[{count}] at = {places}> {{ all = Gather(x, at) {SUM} }}"
    assert slopes(text, x=[0] * 4)[0].tolist() == wanted
    assert (backward(text)["ScatterND"] == 0) == (places in ("{-1}", "{1, 2}", "{2, -1}"))


def test_the_last_step_is_put_beside_the_others() -> None:
    text = f"""g (float[3, 2] x) => (float y) <int64 last = {{-1}}, int64[1] none = {{0}}, int64[1] two = {{2}}> {{
        a = Gather(x, last) b = Slice(x, none, two, none) c = Flatten <axis = 0> (b) d = Flatten <axis = 0> (a)
        all = Concat <axis = 1> (c, d) {SUM} }}"""
    assert slopes(text, x=[[0, 0]] * 3)[0].tolist() == [[1, 1]] * 3
    assert backward(text)["Add"] == 0
