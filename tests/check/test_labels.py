"""Labels are told from numbers, and are right only where the reference gives them too."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper, parser

from mccompile.check.labels import labels, unexplained
from mccompile.frontend.load import load_proto

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[4,8] x, int8[4,8] q) => (int64[4] best, int64[4,3] places, int32[4,8] rounded, int8[4,8] bytes,
                                 bool[4,8] more, int32[4,8] products, int64[2] shape)
    <int64[1] k = {3}, float s = {0.1}> {
    best = ArgMax<axis = 1, keepdims = 0>(x)
    values, places = TopK(x, k)
    rounded = Cast<to = 6>(x)
    bytes = QuantizeLinear(x, s, zero)
    more = Greater(x, s)
    products = MatMulInteger(q, w)
    shape = Shape(x)
}"""


def test_labels_are_what_is_chosen_and_numbers_what_is_rounded() -> None:
    made = parser.parse_model(TEXT)
    for name, array in (("zero", np.zeros((), np.int8)), ("w", np.ones((8, 8), np.int8))):
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    assert labels(load_proto(made)) == {"best", "places", "more", "shape"}


def test_a_label_is_explained_by_any_run_of_the_reference() -> None:
    got = np.array([3, 5, 7])
    assert unexplained(got, [np.array([3, 5, 1]), np.array([2, 4, 7])]) == 0
    assert unexplained(got, [np.array([3, 4, 1]), np.array([2, 6, 7])]) == 1
