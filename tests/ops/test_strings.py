"""Strings: operators that move and compare them, against onnxruntime or ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import parser

from mccompile import backend
from tests.ops.bundle import One, outcomes

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")


def texts(*items: Any) -> np.ndarray:
    return np.array(items, object)


X = texts(["ab", "", "Grüße"], ["c", "ab", "a b"])
Y = texts(["x", "yy", "zzz"], ["", "ab", "1"])


def ints(*items: Any) -> np.ndarray:
    return np.array(items, np.int64)


def test_strings_are_moved_like_numbers() -> None:
    ones = [
        One("gather", "Gather", [X, ints(2, 0)], {"axis": 1}),
        One("elements", "GatherElements", [X, ints([0, 2, 1])], {"axis": 1}),
        One("nd", "GatherND", [X, ints([1, 2], [0, 0])]),
        One("concat", "Concat", [X, Y], {"axis": 0}),
        One("constant", "Concat", [X, Y], {"axis": 1}, frozenset({1})),
        One("turned", "Transpose", [X], {"perm": [1, 0]}),
        One("cut", "Slice", [X, ints(2), ints(0), ints(1), ints(-1)], constant=frozenset({1, 2, 3, 4})),
        One("tiled", "Tile", [X, ints(2, 2)], constant=frozenset({1})),
        One("wide", "Expand", [X[:1], ints(3, 3)], constant=frozenset({1})),
        One("reshaped", "Reshape", [X, ints(3, 2)], constant=frozenset({1})),
        One("padded", "Pad", [X, ints(0, 1, 1, 0), np.array("-", object)], constant=frozenset({1, 2})),
        One("where", "Where", [np.array([True, False, True]), X, Y]),
        One("scattered", "ScatterElements", [X, ints([1, 0, 0]), Y[:1]], {"axis": 0}),
        One("put", "ScatterND", [X, ints([1]), Y[:1]]),
        One("split", "Split", [X], {"axis": 0, "num_outputs": 2}, outs=2),
        One("same", "Equal", [X, Y]),
        One("shape", "Shape", [X]),
        One("hot", "OneHot", [ints(0, 2), ints(3), texts("no", "yes")], {"axis": -1}, frozenset({1, 2})),
        One("reversed", "ReverseSequence", [X, ints(2, 3)], {"batch_axis": 0, "time_axis": 1}),
    ]
    for label, found in outcomes(19, ones).items():
        for outcome in found:
            assert outcome.got.tolist() == outcome.want.tolist(), label
            assert outcome.got.dtype == outcome.want.dtype, label


def test_padding_is_empty_unless_it_is_given() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (string[2] x) => (string[4] y) {'
        " pads = Constant <value_ints = [1, 1]> () y = Pad (x, pads) }"
    )
    (y,) = backend.prepare(model, flags=STRICT).run([texts("a", "b")])
    assert y.tolist() == ["", "a", "b", ""]


def test_distinct_strings_in_order_of_code_points() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (string[6] x) => (string[n] y, int64[n] i, int64[6] w, int64[n] c)'
        "{ y, i, w, c = Unique (x) }"
    )
    x = texts("b", "ä", "", "b", "a", "ab")
    y, i, w, c = backend.prepare(model, flags=STRICT).run([x])
    assert y.tolist() == ["", "a", "ab", "b", "ä"]
    assert (i.tolist(), w.tolist(), c.tolist()) == ([2, 4, 5, 0, 1], [3, 4, 0, 3, 1, 2], [1, 1, 1, 2, 1])


def test_strings_in_branches_and_loops() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (bool c, int64 n, string[2] x) => (string[2] y, string[2] z) {'
        " y = If (c) <then_branch = t () => (string[2] a) { a = Identity (x) },"
        ' else_branch = e () => (string[2] b) { b = Constant <value_strings = ["no", "none"]> () }>'
        " true = Constant <value = bool {1}> ()"
        " z = Loop (n, true, x) <body = l (int64 i, bool go, string[2] s) => (bool on, string[2] t) {"
        "   on = Identity (go) one = Constant <value_ints = [1, 0]> () t = Gather (s, one) }> }"
    )
    rep = backend.prepare(model, flags=STRICT)
    for condition, trips in ((True, 3), (False, 0), (False, 4)):
        y, z = rep.run([np.array(condition), np.array(trips), texts("left", "right")])
        assert y.tolist() == (["left", "right"] if condition else ["no", "none"])
        assert z.tolist() == (["right", "left"] if trips % 2 else ["left", "right"])
