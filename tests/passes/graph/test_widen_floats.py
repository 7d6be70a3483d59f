from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.graph.text import read, show
from mccompile.graph.verify import verify
from mccompile.ops.api import resolve
from mccompile.passes.api import Context
from mccompile.passes.graph.widen_floats import widen_floats
from mccompile.targets import api as targets

W = np.array([[0.1, -2], [3, 1 / 3]], np.float16)
BEFORE = """
    input %x: f16[2,2]
    input %n: i64[2]
    const %w: f16[2,2] = #w
    %a: f16[2,2] = MatMul(%x, %w) from "a"
    %r: f16[2,2] = Relu(%a) from "r"
    %c: f16[2] = Cast(%n) {to=10} from "c"
    %y: f16[2,2] = Add(%r, %c) from "y"
    %p: bool[2,2] = Equal(%y, %r) from "p"
    output %y
    output %p
    """


@pytest.fixture
def fast(context: Context) -> Context:
    return replace(context, target=targets.load("x86-64-v3"))


def graph_of(text: str, **arrays: np.ndarray) -> Any:
    graph = read(f'graph "g" {{\n{text}\n}}', resolve, {name: Constant.of(array) for name, array in arrays.items()})
    verify(graph)
    return graph


def test_chains_become_wide_and_results_narrow_again(fast: Context) -> None:
    graph = graph_of(BEFORE, w=W)
    widen_floats(graph, fast)
    verify(graph)
    computing = [node for node in graph.nodes if node.op.name != "Cast"]
    assert [node.op.name for node in computing] == ["MatMul", "Relu", "Add", "Equal"]
    assert {str(value.type.dtype) for node in computing for value in node.present_inputs} == {"f32"}
    assert [str(value.type.dtype) for value in graph.outputs] == ["f16", "bool"]
    (wide,) = (value.constant for value in graph.constants() if value.constant)
    np.testing.assert_array_equal(wide.array, W.astype(np.float32))


def test_what_the_model_rounds_itself_stays_rounded(fast: Context) -> None:
    text = """
        input %x: f32[3]
        %h: f16[3] = Cast(%x) {to=10} from "h"
        %y: f16[3] = Neg(%h) from "y"
        output %y
        """
    graph = graph_of(text)
    widen_floats(graph, fast)
    verify(graph)
    neg = next(node for node in graph.nodes if node.op.name == "Neg")
    widened = neg.inputs[0]
    assert widened is not None and widened.producer is not None
    assert str(widened.producer.inputs[0]) == "%h"


@pytest.mark.parametrize(
    "lines, moved",
    [
        ('%y: f16[3,2] = Gather(%x, %i) {axis=0} from "y"', "f16"),
        ('%t: f16[2,2] = Transpose(%x) from "t"\n%y: f16[3,2] = Gather(%t, %i) {axis=0} from "y"', "f16"),
        ('%t: f16[3,2] = Gather(%x, %i) {axis=0} from "t"\n%y: f16[3,2] = Identity(%t) from "y"', "f16"),
        ('%g: f16[3,2] = Gather(%x, %i) {axis=0} from "g"\n%y: f16[3,2] = Neg(%g) from "y"', "f16"),
        ('%g: f16[2,2] = Neg(%x) from "g"\n%y: f16[3,2] = Gather(%g, %i) {axis=0} from "y"', "f32"),
        ('%g: f16[2,2] = Neg(%x) from "g"\n%t: f16[2,2] = Transpose(%g) from "t"\n'
         '%y: f16[3,2] = Gather(%t, %i) {axis=0} from "y"', "f32"),
    ],
)  # fmt: skip
def test_what_only_moves_stays_narrow_beside_nothing_that_computes(fast: Context, lines: str, moved: str) -> None:
    graph = graph_of(f"input %x: f16[2,2]\ninput %i: i64[3]\n{lines}\noutput %y")
    widen_floats(graph, fast)
    verify(graph)
    gather = next(node for node in graph.nodes if node.op.name == "Gather")
    assert str(gather.output.type.dtype) == moved
    assert all(str(value.type.dtype) == "f16" for value in graph.outputs)


@pytest.mark.parametrize("target", ["generic", "aarch64-fp16"])
def test_stays_narrow_where_memory_comes_first_or_the_target_computes_so(context: Context, target: str) -> None:
    graph = graph_of(BEFORE, w=W)
    before = show(graph)
    widen_floats(graph, replace(context, target=targets.load(target)))
    assert show(graph) == before
