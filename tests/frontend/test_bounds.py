"""The option that an error suggests for a size that follows from data is one that compiles the model."""

from __future__ import annotations

import re

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from mccompile import backend
from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto

HEAD = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1, "local": 1]>\n'
PAD = "Pad (x, p)"
IN_FUNCTION = '<domain: "local", opset_import: ["": 18]>'
# model -> the name suggested first
MODELS = {
    "ONNX's own": (f"z = {PAD}", "", "z"),
    "decomposed": (f"z = com.microsoft.{PAD}", "", "z"),
    "a result of a function": (
        "z = local.F (x, p)",
        f"{IN_FUNCTION} F (a, q) => (c) {{ d = Pad (a, q) c = Neg (d) }}",
        "z",
    ),
    "inside of a function": (
        "z = local.F (x, p)",
        f"{IN_FUNCTION} F (a, q) => (c) {{ d = Pad (a, q) c = ReduceSum (d) }}",
        "z/d",
    ),
    "in both branches": (
        "b = Cast <to = 9> (k) z = If (b) <then_branch = g () => (float[m, n] v) { d = Pad (x, p) v = Relu (d) },"
        " else_branch = g () => (float[m, n] v) { d = Pad (x, p) v = Neg (d) }>",
        "",
        "d",
    ),
    "in the body of a loop": (
        "b = Cast <to = 9> (k) z = Loop (k, b, x) <body = g (int64 t, bool go, float[2, 3] v) => (bool on, float w)"
        " { on = Identity (go) d = Pad (v, p) r = ReduceMax <keepdims = 0> (d) w = Add (v, r) }>",
        "",
        "d",
    ),
}


def _prepare(text: str, more: str, **options: object) -> tuple[bytes, backend.Rep]:
    model = parser.parse_model(
        f"{HEAD} g (float[2, 3] x, int64[4] p, int64 k) => (float y)"
        f" <int64[1] i = {{0}}, int64[1] j = {{2}}> {{ {text} y = ReduceSum <keepdims = 0> (z) }} {more}"
    )
    bounds = options.get("bounds")
    load_proto(model, bounds=dict(bounds) if isinstance(bounds, dict) else None)  # by what is said here alone
    return model.SerializeToString(), backend.prepare(model, **options)


@pytest.mark.parametrize("name", MODELS)
def test_the_option_that_is_suggested_compiles_the_model(name: str) -> None:
    text, more, suggested = MODELS[name]
    with pytest.raises(UnsupportedModel, match="--bound") as refused:
        _prepare(text, more)
    found = re.search(r"--bound (\S+)=([\dx]+)", str(refused.value))
    assert found is not None and found[1] == suggested
    model, rep = _prepare(text, more, bounds={found[1]: tuple(map(int, found[2].split("x")))})
    feed = {"x": np.array([[1, -2, 3], [4, 5, -6]], np.float32), "p": np.array([1, 2, 0, 1]), "k": np.array(2)}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (want,) = onnxruntime.InferenceSession(model, options).run(None, feed)
    np.testing.assert_allclose(rep.run(feed)[0], want, 1e-6)


def test_a_bound_is_only_suggested_where_it_helps() -> None:
    with pytest.raises(UnsupportedModel, match="declare the shape") as refused:
        _prepare("s = Slice (p, i, j) z = CenterCropPad (x, s)", "")
    assert "--bound" not in str(refused.value)


def test_names_inside_of_a_decomposition_are_not_the_users() -> None:
    """Its second node makes what it calls t2, and so does a node of the model."""
    text = "t2 = Pad (x, p) u = com.microsoft.Pad (x, p) a = ReduceSum (t2) b = ReduceSum (u) z = Add (a, b)"
    with pytest.raises(UnsupportedModel, match="--bound u=4x6"):
        _prepare(text, "", bounds={"t2": (9,)})
