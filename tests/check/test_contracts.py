"""Random inputs keep what a graph shows of them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from mccompile.check.inputs import DataSet, random_sets
from mccompile.frontend.load import load_proto
from mccompile.frontend.original import lengths


def sets(text: str, runs: int = 20, steps: int = 1, opset: int = 17, **dims: tuple[int, int]) -> list[DataSet]:
    head = f'<ir_version: 8, opset_import: ["": {opset}]> g '
    return list(random_sets(load_proto(parser.parse_model(head + text), dims=dims), 0, runs, steps))


def elements(found: list[DataSet], name: str) -> set[float]:
    return {each for data in found for each in data.inputs[name].reshape(-1).tolist()}


MASKS = {
    "made a bool": "(float[4,8] x, int64[4,8] m) => (float[4,8] y) { b = Cast<to = 9>(m) y = Where(b, x, x) }",
    "taken from one": """(float[4,8] x, int64[4,8] m) => (float[4,8] y) <float one = {1.0}, float far = {-10000.0}>
        { f = Cast<to = 1>(m) i = Sub(one, f) s = Mul(i, far) y = Add(x, s) }""",
    "of floats": """(float[4,8] x, float[4,8] m) => (float[4,8] y) <float one = {1.0}, float far = {-10000.0}>
        { i = Sub(one, m) s = Mul(i, far) y = Add(x, s) }""",
    "compared": "(float[4,8] x, int64[4,8] m) => (float[4,8] y) <int64 o = {0}> { b = Equal(m, o) y = Where(b, x, x) }",
}


@pytest.mark.parametrize("text", MASKS.values(), ids=MASKS)
def test_masks_are_0_and_1_and_hide_never_everything(text: str) -> None:
    found = sets(text)
    assert elements(found, "m") == {0, 1}
    assert all((data.inputs["m"][:, 0] == 1).all() for data in found)


def test_what_is_taken_from_one_but_moves_no_scores_is_no_mask() -> None:
    found = sets("(float[4,8] x) => (float[4,8] y) <float one = {1.0}> { i = Sub(one, x) y = Mul(i, x) }")
    assert len(elements(found, "x")) > 100


def test_an_index_that_is_moved_stays_in_its_table() -> None:
    text = "(float[6,2] t, int64[9] i) => (float[9,2] y) <int64 off = {2}> { j = Add(i, off) y = Gather(t, j) }"
    assert elements(sets(text), "i") == {-2, -1, 0, 1, 2, 3}


def test_an_index_stays_in_a_table_of_free_size() -> None:
    text = "(float[rows,2] t, int64[9] i) => (float[9,2] y) { y = Gather(t, i) }"
    for data in sets(text, rows=(1, 7)):
        assert data.inputs["i"].max() < len(data.inputs["t"])


def test_a_place_leaves_room_for_what_is_written_there() -> None:
    text = "(float[1,6,2] x, float[1,4,2] u, int64[1] at) => (float[1,6,2] y) { y = TensorScatter<axis = 1>(x, u, at) }"
    assert elements(sets(text, opset=24), "at") == {0, 1, 2}


def test_what_a_branch_is_chosen_by_is_what_it_is_compared_with() -> None:
    text = """(float[3] x, int64 rate) => (float[3] y) <int64 high = {16000}> {
        c = Equal(rate, high)
        y = If (c) <then_branch = t () => (float[3] a) { a = Neg(x) },
                    else_branch = e () => (float[3] b) { b = Abs(x) }>
    }"""
    assert elements(sets(text), "rate") == {16000}


def test_words_are_also_the_one_that_stands_for_nothing() -> None:
    text = """(float[50,2] t, int64[400] i) => (float[400,2] y, bool[400] z) <int64 pad = {3}>
        { y = Gather(t, i) z = Equal(i, pad) }"""
    words = sets(text, 1)[0].inputs["i"]
    assert 60 < np.count_nonzero(words == 3) < 200 and words.min() >= 0 and words.max() < 50


def test_lengths_of_a_prompt_are_those_of_all_tokens() -> None:
    """Nothing in our graph reads them there, but onnxruntime does."""
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[1,4,16] q, float[1,4,16] k, float[1,4,16] v, float[1,2,4,8] a, float[1,2,4,8] b, int64[1] n)
        => (float[1,4,16] y) <int32 total = {4}> {
        m = Cast<to = 6>(n)
        y, c, d = com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 2>(q, k, v, a, b, m, total)
    }"""
    assert lengths(parser.parse_model(text).graph) == {"n": 3}


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_a_mask_has_no_more_ones_than_what_is_sized_by_them_has_room_for(dtype: str) -> None:
    """A shape counted from 8 places, in code whose result may have 3 elements."""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g ({dtype}[8] m) => (float[n] y) <int64 axis = {{0}}, '
        "int64[1] last = {-1}> { i = Cast<to = 7>(m) c = CumSum(i, axis) k = Gather(c, last) y = ConstantOfShape(k) }"
    )
    totals = {int(each.inputs["m"].sum()) for each in random_sets(load_proto(model, bounds={"y": (3,)}), 0, 20)}
    assert totals <= {0, 1, 2, 3} and 3 in totals
