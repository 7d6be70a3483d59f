"""onnxruntime's Tokenizer: words as onnxruntime finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper

from mccompile import backend
from mccompile.base.errors import MccError, UnsupportedModel
from mccompile.frontend.load import load_proto

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
TEXTS = np.array(["Ab_1 c,d  é-ü", "", "one,two;three", " a, b ,cc"], object)


def model(shape: tuple[int, ...], **attributes: Any) -> ModelProto:
    more = {"mark": 0, "mincharnum": 1, "pad_value": "#", **attributes}
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **more)
    types = [helper.make_tensor_value_info(name, 8, dims) for name, dims in (("x", shape), ("y", None))]
    graph = helper.make_graph([node], "words", types[:1], types[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize(
    "attributes",
    [
        {"tokenexp": "[a-zA-Z0-9_]+"},
        {"tokenexp": "[a-zA-Z0-9_]+", "mincharnum": 2, "pad_value": ""},
        {"tokenexp": "[^ ,]+", "mincharnum": 2},
        {"separators": [" "]},
        {"separators": [" ", "[.,;]", "-"], "mincharnum": 2},
        {"separators": [r"\s+"]},
    ],
)
def test_words(attributes: dict[str, Any]) -> None:
    for x in (TEXTS, TEXTS.reshape(2, 2)):
        made = model(x.shape, **attributes)
        (want,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
        (got,) = backend.prepare(made, flags=STRICT, bounds={"y": (6,)}).run({"x": x})
        assert got.tolist() == want.tolist()


def test_more_words_than_the_bound_end_the_run() -> None:
    made = model((4,), separators=[" "])
    with pytest.raises(UnsupportedModel, match="--bound y=100"):
        load_proto(made)
    with pytest.raises(MccError, match="outside the bounds"):
        backend.prepare(made, flags=STRICT, bounds={"y": (2,)}).run({"x": TEXTS})


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"tokenexp": "ab|c"}, "words that match"),
        ({"separators": ["ab"]}, "not a set of characters"),
        ({"separators": ["é"]}, "beyond ASCII"),
        ({"separators": [" "], "mark": 1}, "set mark to 0"),
    ],
)
def test_other_words_are_refused(attributes: dict[str, Any], why: str) -> None:
    with pytest.raises(MccError, match=why):
        backend.prepare(model((4,), **attributes), bounds={"y": (6,)})
