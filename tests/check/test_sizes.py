"""Free dimensions have the sizes at which code goes wrong first."""

from __future__ import annotations

import pytest
from onnx import parser

from mccompile.check.inputs import random_sets
from mccompile.check.sizes import trials
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph

ATTENTION = """(float[2,past,4] cache, float[2,new,4] k, float[1,new,total] mask) => (float[2,new,4] y) {
    keys = Concat<axis = 1>(cache, k)
    t = Transpose<perm = [0, 2, 1]>(keys)
    s = MatMul(k, t)
    p = Add(s, mask)
    y = MatMul(p, keys)
}"""


def graph(text: str, **dims: tuple[int, int]) -> Graph:
    return load_proto(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}'), dims=dims)


RELU = "(float[time,3] x) => (float[time,3] y) { y = Relu(x) }"


@pytest.mark.parametrize(
    ("bounds", "wanted"), [((1, 9), [9, 1, 7]), ((1, 64), [64, 1, 41]), ((4, 5), [5, 4]), ((2, 4), [4, 2, 3])]
)
def test_the_highest_the_lowest_and_an_odd_one(bounds: tuple[int, int], wanted: list[int]) -> None:
    assert [next(iter(sizes.values())) for sizes in trials(graph(RELU, time=bounds))] == wanted


def test_the_lowest_is_one_that_leaves_no_size_negative() -> None:
    text = "(float[1,1,time] x) => (float[1,1,n] y) <float[1,1,5] w = {1, 2, 3, 4, 5}> { y = Conv(x, w) }"
    assert min(size for sizes in trials(graph(text, time=(1, 9))) for size in sizes.values()) == 4


def test_total_is_past_and_new() -> None:
    found = trials(graph(ATTENTION, past=(0, 6), new=(1, 3), total=(1, 9)))
    assert len(found) == 3
    assert all(sizes["n_total"] == sizes["n_past"] + sizes["n_new_"] for sizes in found)


def test_every_size_is_run_and_as_often_as_steps_say() -> None:
    made = graph(RELU, time=(1, 9))
    assert [len(data.inputs["x"]) for data in random_sets(made, 0, 1)] == [9, 1, 7]
    assert [len(data.inputs["x"]) for data in random_sets(made, 0, 1, steps=2)] == [9, 9, 1, 1, 7, 7]
    assert next(random_sets(made, 0, 1)).name == "random 0.0 (time=9)"
