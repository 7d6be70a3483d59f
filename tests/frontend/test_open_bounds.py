"""Sizes that follow from data and that nobody bounds: one error proposes all of them, and `*` serves all."""

from __future__ import annotations

import re

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, parser

from mccompile import backend
from mccompile.base.errors import UnsupportedModel
from mccompile.check.inputs import random_sets
from mccompile.driver import Options, compile_graph
from mccompile.evidence.coverage import coverage_certificate
from mccompile.frontend.bounds import Bounds
from mccompile.frontend.load import load_proto
from mccompile.option_texts import bounds
from mccompile.targets import api

HEAD = '<ir_version: 9, opset_import: ["": 18]> '
# The shape of v can be asked for only once that of e is bounded.
CHAIN = """g (float[2,3] x, int64[1] a, int64[1] b) => (float[N,M] y)
<int64 zero = {0}, int64 one = {1}, int64[1] whole = {-1}, float[1,1] w = {1.5}> {
  s = Concat<axis=0>(a, b) e = Tile(x, s) t = Shape(e) m = ReduceMax<keepdims=0>(t) r = Range(zero, m, one)
  n = ReduceMax<keepdims=0>(r) k = Reshape(n, whole) h = Concat<axis=0>(k, b) v = Expand(w, h) y = Relu(v)
}"""
REPEATED = """g (float[2,3] x, int64[2] r) => (float[N,3] y) <int64 zero = {0}, int64 one = {1}, int64[1] last = {-1}> {
  c = CumSum(r, zero) l = Gather(c, last) n = Squeeze(l) t = Range(zero, n, one) u = Unsqueeze(t, last)
  g = GreaterOrEqual(u, c) i = Cast<to=7>(g) j = ReduceSum<keepdims=0>(i, last) y = Gather<axis=0>(x, j)
}"""


def model(text: str) -> ModelProto:
    return parser.parse_model(HEAD + text)


def proposed(made: ModelProto, given: Bounds | None = None) -> Bounds:
    """What the error says with --bound."""
    with pytest.raises(UnsupportedModel) as caught:
        load_proto(made, bounds=given)
    (fixes,) = {tuple(re.findall(r"--bound (\S+)", problem.fix)) for problem in caught.value.problems}
    return bounds(fixes)


def test_all_bounds_are_proposed_at_once_and_are_enough() -> None:
    every = proposed(model(CHAIN))
    assert every == {"e": (4, 6), "v": (100,)}
    load_proto(model(CHAIN), bounds=every)
    assert proposed(model(CHAIN), {"e": (8, 9)}) == {"v": (100,)}


def test_one_number_bounds_shapes_that_a_run_computes() -> None:
    load_proto(model(CHAIN), bounds={"*": (20,)})
    text = "g (float[1,2,9,7] x, int64[2] s) => (float[a,b,c,d] y) { y = Resize<axes=[2,3]>(x, , , s) }"
    assert load_proto(model(text), bounds={"*": (12,)}).outputs[0].type.shape[:2] == (1, 2)


def test_random_inputs_stay_within_bounds() -> None:
    graph = load_proto(model(REPEATED), bounds={"t": (20,)})
    for each in random_sets(graph, 0, 20):
        assert each.inputs["r"].min() >= 0 and each.inputs["r"].sum() <= 20


def test_evidence_goes_on_where_a_run_refuses_a_size() -> None:
    package = compile_graph(load_proto(model(REPEATED), bounds={"t": (20,)}), Options(), "m")
    assert coverage_certificate(package, api.load("generic"))["inputs"] > 5


@pytest.mark.parametrize("given", ["int64", "float"])
@pytest.mark.parametrize("how", ['mode="linear"', 'mode="cubic", exclude_outside=1'])
def test_pictures_are_resized_with_antialias_to_sizes_that_a_run_computes(given: str, how: str) -> None:
    operands = "x, , , s" if given == "int64" else "x, , s"
    made = model(
        f"g (float[1,2,9,7] x, {given}[2] s) => (float[a,b,c,d] y) "
        f"{{ y = Resize<antialias=1, axes=[2,3], {how}>({operands}) }}"
    )
    session = onnxruntime.InferenceSession(made.SerializeToString())
    rep = backend.prepare(made, bounds={"*": (12,)})
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 7)).astype(np.float32)
    for wanted in ([4, 3], [12, 12], [1, 2], [5, 11]):
        s = np.array(wanted) if given == "int64" else (np.array(wanted) / [9, 7] + 1e-4).astype(np.float32)
        np.testing.assert_allclose(rep.run([x, s])[0], session.run(None, {"x": x, "s": s})[0], rtol=1e-4, atol=1e-5)
