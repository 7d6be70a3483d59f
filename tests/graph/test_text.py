"""Graphs as text: what is printed reads back, and what cannot be read is said with its line."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.errors import BadFile, InternalError
from mccompile.graph.ir import Graph
from mccompile.graph.text import constants_of, read, show
from mccompile.graph.verify import verify
from mccompile.ops.api import resolve

TEXT = """graph "a \\"net\\"" {
  dim batch in 1..8
  fact "w is = #1 {or} %so: f32[2]"
  input %x: f32[batch,3,2*batch + 1]
  const %"w/0:0": f32[3,1] = #HASH
  %a: f32[batch,3,2*batch + 1] = Mul(%x, %"w/0:0") from "node = #x", "b: f32[1]"
  %y: f32[batch,3,2*batch + 1] = LeakyRelu(%a) {alpha=0.5} from "c"
  output %y
}
"""


def with_constant() -> tuple[str, dict[str, Constant]]:
    constant = Constant.of(np.ones((3, 1), np.float32))
    return TEXT.replace("HASH", constant.digest), {constant.digest: constant}


def test_text_reads_back_the_same() -> None:
    text, constants = with_constant()
    graph = read(text, resolve, constants)
    assert show(graph) == text
    assert constants_of(graph) == constants


def test_absent_operands_and_results() -> None:
    text = """graph "g" {
  input %x: f32[4]
  input %high: f32[]
  %a: f32[4], none = Dropout(%x) from "a"
  %y: f32[4] = Clip(%a, none, %high) from "y"
  output %y
}
"""
    assert show(read(text, resolve, {})) == text


def test_a_name_that_is_a_word_of_the_language() -> None:
    text = 'graph "g" {\n  input %output: f32[1]\n  %nan: f32[1] = Relu(%output) from "n"\n  output %nan\n}\n'
    assert show(read(text, resolve, {})) == text


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("LeakyRelu", "LeakyRulu", "there is no operator 'LeakyRulu'"),
        ("alpha", "alfa", "LeakyRelu has no field 'alfa'"),
        ("(%x, ", "(%z, ", "%z is not made above this line"),
        ("#HASH", "#0123456789abcdef", "constant #0123456789abcdef is not in the side file"),
        ("f32[batch,3,2*batch + 1] = Mul", "f99[batch] = Mul", "'f99[batch]' is not a type"),
        ("f32[batch,3,2*batch + 1] = Mul", "f32[time] = Mul", "'f32[time]' is not a type"),
        ("output %y\n}", "output %y", "expected"),
    ],
)
def test_what_cannot_be_read_is_said(old: str, new: str, why: str) -> None:
    _, constants = with_constant()
    text = TEXT.replace(old, new).replace("HASH", next(iter(constants)))
    with pytest.raises(BadFile) as caught:
        read(text, resolve, constants, "net.txt")
    assert why in str(caught.value)
    assert "cannot read net.txt" in str(caught.value)


def test_a_type_that_the_operator_does_not_give_is_seen() -> None:
    graph: Graph = read('graph "g" {\ninput %x: f32[2]\n%y: f32[3] = Relu(%x)\noutput %y\n}', resolve, {})
    with pytest.raises(InternalError, match=r"%y has type f32\[3\], its operator says f32\[2\]"):
        verify(graph)
