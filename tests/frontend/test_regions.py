"""Bodies of If and Loop: read, typed, printed, written back. The operators here stand for any that have regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import BadFile, UnsupportedModel
from mccompile.frontend.load import load_proto
from mccompile.frontend.reference import run_graph
from mccompile.graph.dot import dot
from mccompile.graph.ir import Fact, Graph, Site
from mccompile.graph.text import constants_of, read, show
from mccompile.graph.verify import verify
from mccompile.kernels.registry import Registry
from mccompile.ops import api
from mccompile.ops.api import OnnxNode, Operator
from mccompile.passes.api import Context
from mccompile.passes.graph.eliminate_common_subexpressions import eliminate_common_subexpressions
from mccompile.passes.graph.eliminate_dead import eliminate_dead
from mccompile.passes.graph.fold_constants import fold_constants
from mccompile.passes.graph.simplify_algebra import simplify_algebra
from mccompile.targets import api as targets

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'
CHOICE = """g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
    a = Neg(x)
    [choice] y = If (c) <
        then_branch = t () => (float[2] q) { k = Relu(a) k2 = Identity(k) q = Add(k2, w) },
        else_branch = e () => (float[2] a) { unused = Abs(x) }
    >
}"""
COUNT = """g (float[2] x, int64 n, bool go) => (float[2] y) {
    [count] y = Loop (n, go, x) <
        body = b (int64 i, bool c, float[2] v) => (bool c2, float[2] u) { c2 = Identity(c) u = Add(v, x) }
    >
}"""


@dataclass(frozen=True)
class If(Operator):
    versions = (16,)

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(value.type) for value in site.regions[0].outputs]


@dataclass(frozen=True)
class Loop(Operator):
    versions = (16,)

    @classmethod
    def region_inputs(cls, node: OnnxNode, index: int) -> Sequence[Fact] | None:
        return [Fact(value.type) for value in node.inputs if value is not None]

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(value.type) for value in site.regions[0].outputs[1:]]


@pytest.fixture(autouse=True)
def operators(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**api.registry(), ("", "If"): If, ("", "Loop"): Loop}
    monkeypatch.setattr(api, "_REGISTRY", known)


def graph_of(text: str) -> Graph:
    graph = load_proto(parser.parse_model(HEAD + text))
    verify(graph)
    return graph


def test_branches_read_what_is_around_them() -> None:
    text = show(graph_of(CHOICE))
    assert (
        text
        == """graph "g" {
  input %x: f32[2]
  input %c: bool[]
  const %w: f32[2] = #6e22d7c1a3f4c3b1
  %a: f32[2] = Neg(%x) from "a"
  %y: f32[2] = If(%c) from "choice"
    region "t" {
      %"choice/then_branch/k": f32[2] = Relu(%a) from "k"
      %"choice/then_branch/k2": f32[2] = Identity(%"choice/then_branch/k") from "k2"
      %"choice/then_branch/q": f32[2] = Add(%"choice/then_branch/k2", %w) from "q"
      output %"choice/then_branch/q"
    }
    region "e" {
      %"choice/else_branch/unused": f32[2] = Abs(%x) from "unused"
      %"choice/else_branch/a": f32[2] = Identity(%a) from "a"
      output %"choice/else_branch/a"
    }
  output %y
}
""".replace("6e22d7c1a3f4c3b1", next(iter(constants_of(graph_of(CHOICE)))))
    )


@pytest.mark.parametrize("text", [CHOICE, COUNT])
def test_text_of_regions_reads_back(text: str) -> None:
    graph = graph_of(text)
    again = read(show(graph), api.resolve, constants_of(graph))
    verify(again)
    assert show(again) == show(graph)
    assert "cluster" in dot(graph)


@pytest.mark.parametrize(("condition", "result"), [(True, [2.0, 2.0]), (False, [1.0, -2.0])])
def test_branches_are_written_back(condition: bool, result: list[float]) -> None:
    context = Context(targets.load("generic"), Registry.load(()))
    graph = graph_of(CHOICE)
    feeds = {"x": np.array([-1, 2], np.float32), "c": np.array(condition)}
    assert run_graph(graph, feeds)[0].tolist() == result
    for run in (eliminate_dead, fold_constants, simplify_algebra, eliminate_common_subexpressions):
        run(graph, context)
        verify(graph)
        assert run_graph(graph, feeds)[0].tolist() == result
    names = [[node.op.name for node in region.nodes] for node in graph.nodes for region in node.regions]
    assert names == [["Relu", "Add"], ["Identity"]]


def test_a_body_knows_the_types_of_what_goes_round() -> None:
    graph = graph_of(COUNT)
    (node,) = graph.nodes
    (body,) = node.regions
    assert [str(value.type) for value in body.inputs] == ["i64[]", "bool[]", "f32[2]"]
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(3), "go": np.array(True)}
    assert run_graph(graph, feeds)[0].tolist() == [4, 8]


def test_everything_wrong_inside_is_found() -> None:
    text = CHOICE.replace("Relu(a)", "Rellu(a)").replace("Abs(x)", "Abss(x)")
    with pytest.raises(UnsupportedModel) as caught:
        graph_of(text)
    assert 'node "k" (Rellu, opset 17)' in str(caught.value)
    assert 'node "unused" (Abss, opset 17)' in str(caught.value)


def test_a_branch_that_reads_what_nothing_makes() -> None:
    with pytest.raises(BadFile, match="it reads 'nothing', which nothing makes"):
        graph_of(CHOICE.replace("Relu(a)", "Relu(nothing)"))
