"""The rewriting layer: what a pattern matches, and what every rewrite keeps."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.errors import InternalError
from mccompile.graph.ir import Graph, Value
from mccompile.graph.text import read, show
from mccompile.graph.verify import verify
from mccompile.ops.api import resolve
from mccompile.passes.pattern import AnyValue, Maker, Match, Number, OptionalOperand, ResultOf, Rule, rewrite

X = AnyValue("x")


def graph_of(text: str) -> Graph:
    return read(f'graph "g" {{\n{text}\n}}', resolve, {})


def lines(graph: Graph) -> list[str]:
    return [line.strip() for line in show(graph).splitlines() if " = " in line]


def give_x(match: Match, make: Maker) -> Value:
    return match["x"]


def build(operator: str, match: Match, make: Maker) -> Value:
    return make.node(resolve("", operator)(), match["x"])


def test_the_replacement_has_the_name_and_the_provenance_of_all_it_replaces() -> None:
    graph = graph_of(
        """
        input %x: f32[4]
        %a: f32[4] = Relu(%x) from "first", "second"
        %b: f32[4] = Neg(%a) from "third"
        %y: f32[4] = Exp(%b) from "y"
        output %y
        """
    )
    rule = Rule("relu_neg", ResultOf("Neg", ResultOf("Relu", X)), lambda m, make: build("Abs", m, make))
    assert rewrite(graph, [rule]) == 1
    verify(graph)
    assert lines(graph) == [
        '%b: f32[4] = Abs(%x) from "first", "second", "third"',
        '%y: f32[4] = Exp(%b) from "y"',
    ]


def test_a_pattern_over_an_operator_that_does_not_exist_cannot_be_made() -> None:
    with pytest.raises(InternalError, match="a pattern is for Negate, which is not an operator"):
        ResultOf("Neg Negate", X)


def test_a_node_that_others_read_is_matched_but_stays() -> None:
    text = """
        input %x: f32[4]
        %a: f32[4] = Relu(%x) from "a"
        %b: f32[4] = Neg(%a) from "b"
        %y: f32[4] = Add(%a, %b) from "y"
        output %y
        """
    graph = graph_of(text)
    assert rewrite(graph, [Rule("r", ResultOf("Neg", ResultOf("Relu", X)), lambda m, make: build("Abs", m, make))]) == 1
    assert len(graph) == 3
    only_alone = Rule("r", ResultOf("Neg", ResultOf("Relu", X, read_once=True)), lambda m, make: build("Abs", m, make))
    assert rewrite(graph_of(text), [only_alone]) == 0


def test_the_same_name_means_the_same_value() -> None:
    rule = Rule("twice", ResultOf("Add", X, X), lambda m, make: build("Neg", m, make))
    text = 'input %x: f32[4]\ninput %z: f32[4]\n%y: f32[4] = Add(%x, %{}) from "y"\noutput %y'
    assert rewrite(graph_of(text.replace("{}", "x")), [rule]) == 1
    assert rewrite(graph_of(text.replace("{}", "z")), [rule]) == 0


def test_operands_in_either_order() -> None:
    pattern = ResultOf("Add", X, ResultOf("Neg", AnyValue("n")), either_order=True)
    rule = Rule("minus", pattern, lambda m, make: make.node(resolve("", "Sub")(), m["x"], m["n"]))
    graph = graph_of(
        """
        input %x: f32[4]
        input %z: f32[4]
        %n: f32[4] = Neg(%z) from "n"
        %y: f32[4] = Add(%n, %x) from "y"
        output %y
        """
    )
    assert rewrite(graph, [rule]) == 1
    assert lines(graph) == ['%y: f32[4] = Sub(%x, %z) from "n", "y"']


def test_an_operand_that_may_be_absent() -> None:
    pattern = ResultOf("Clip", X, OptionalOperand(AnyValue("low")), OptionalOperand(AnyValue("high")))
    seen: list[bool] = []

    def look(match: Match) -> bool:
        seen.append(match.get("low") is not None)
        return False

    text = 'input %x: f32[4]\ninput %m: f32[]\n%y: f32[4] = Clip(%x, {}) from "y"\noutput %y'
    for operands in ("none, %m", "%m, none"):
        rewrite(graph_of(text.replace("{}", operands)), [Rule("look", pattern, give_x, look)])
    assert seen == [False, True]


def test_a_condition_is_asked() -> None:
    graph = graph_of('input %x: f32[4]\n%a: f32[4] = Relu(%x) from "a"\n%y: f32[4] = Exp(%a) from "y"\noutput %y')
    assert rewrite(graph, [Rule("never", ResultOf("Relu", X), give_x, lambda match: False)]) == 0


def test_one_rewrite_makes_room_for_the_next() -> None:
    chain = "\n".join(f'%v{i + 1}: f32[4] = Neg(%v{i}) from "n{i}"' for i in range(9))
    graph = graph_of(f'input %v0: f32[4]\n{chain}\n%y: f32[4] = Exp(%v9) from "y"\noutput %y')
    assert rewrite(graph, [Rule("undo", ResultOf("Neg", ResultOf("Neg", X)), give_x)]) == 4
    assert [node.op.name for node in graph.nodes] == ["Neg", "Exp"]


def test_a_rule_without_end_is_reported() -> None:
    graph = graph_of('input %x: f32[4]\n%y: f32[4] = Relu(%x) from "y"\noutput %y')
    rules = [
        Rule("there", ResultOf("Relu", X), lambda m, make: build("Abs", m, make)),
        Rule("back", ResultOf("Abs", X), lambda m, make: build("Relu", m, make)),
    ]
    with pytest.raises(InternalError, match=r"rewriting does not come to an end: rule (there|back) was applied"):
        rewrite(graph, rules)


def test_a_rule_that_changes_a_type_is_reported() -> None:
    graph = graph_of('input %x: f32[4]\n%a: i64[1] = Shape(%x) from "a"\n%y: i64[1] = Neg(%a) from "y"\noutput %y')
    with pytest.raises(InternalError, match="rule wrong makes"):
        rewrite(graph, [Rule("wrong", ResultOf("Shape", X), give_x)])


def test_an_output_is_never_renamed() -> None:
    graph = graph_of('input %x: f32[4]\n%y: f32[4] = Identity(%x) from "y"\noutput %y')
    assert rewrite(graph, [Rule("identity", ResultOf("Identity", X), give_x)]) == 0
    assert [value.name for value in graph.outputs] == ["y"]


def test_what_was_concluded_from_constants_is_recorded() -> None:
    graph = graph_of('input %x: f32[4]\n%a: f32[4] = Identity(%x) from "a"\n%y: f32[4] = Exp(%a) from "y"\noutput %y')

    def note(match: Match, make: Maker) -> Value:
        make.used("the sky is blue")
        return match["x"]

    rewrite(graph, [Rule("identity", ResultOf("Identity", X), note)])
    assert list(graph.assumptions) == ["the sky is blue"]


def test_only_what_a_rewrite_was_decided_on_is_recorded() -> None:
    text = 'input %x: f32[4]\nconst %two: f32[] = #two\n%y: f32[4] = Mul(%x, %two) from "y"\n'
    constants = {"two": Constant.of(np.array(2, np.float32))}

    def noted(match: Match, make: Maker) -> Value | None:
        make.used("x is looked at")
        return build("Neg", match, make) if match.root.op.name == "Mul" else None

    def facts(rule: Rule, more: str) -> list[str]:
        graph = read(f'graph "g" {{\n{text}{more}\n}}', resolve, constants)
        rewrite(graph, [rule])
        return list(graph.assumptions)

    assert facts(Rule("fits", ResultOf("Mul", X, Number(2)), noted), "output %y") == ["x is looked at", "two is 2"]
    last = '%z: f32[4] = Add(%y, %two) from "z"\noutput %z'
    assert facts(Rule("does not fit after all", ResultOf("Add", X, Number(2)), noted), last) == []


def test_a_constant_that_follows_from_definitions_is_no_fact() -> None:
    def with_one(match: Match, make: Maker) -> Value:
        one = make.definite(np.array(1, np.float32), "one")
        return make.node(resolve("", "Mul")(), make.node(resolve("", "Neg")(), match["x"]), one)

    rules = [Rule("one", ResultOf("Relu", X), with_one), Rule("times_one", ResultOf("Mul", X, Number(1)), give_x)]
    graph = graph_of('input %x: f32[4]\n%y: f32[4] = Relu(%x) from "y"\n%z: f32[4] = Exp(%y) from "z"\noutput %z')
    assert rewrite(graph, rules) == 2
    assert [node.op.name for node in graph.nodes] == ["Neg", "Exp"]
    assert not graph.assumptions
