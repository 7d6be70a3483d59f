"""Functions whose inlining makes too many nodes are refused before anything is inlined."""

from __future__ import annotations

import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper

from mccompile.base.budgets import limited
from mccompile.base.errors import BadFile, UnsupportedModel
from mccompile.frontend.load import load_proto

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]


def call(name: str, ins: str = "a", outs: str = "b") -> NodeProto:
    return helper.make_node(name, ins.split(), outs.split(), name=f"{outs}/{name}", domain="f")


def function(name: str, *nodes: NodeProto) -> FunctionProto:
    return helper.make_function("f", name, ["a", "c"], ["b"], nodes, OPSETS)


def calls(first: str, *functions: FunctionProto) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([call(first, "x c", "y")], "g", [x, c], [y])
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=9)


def leaf() -> FunctionProto:
    return function("F0", helper.make_node("Relu", ["a"], ["b"]))


def bomb(levels: int) -> ModelProto:
    twice = (function(f"F{n}", call(f"F{n - 1}", "a c", "m"), call(f"F{n - 1}", "m c", "b")) for n in range(1, levels))
    return calls(f"F{levels - 1}", leaf(), *twice)


def tower(levels: int) -> ModelProto:
    inner = (function(f"F{n}", call(f"F{n - 1}", "a c")) for n in range(1, levels))
    return calls(f"F{levels - 1}", leaf(), *inner)


def test_functions_that_double_are_refused_by_the_call() -> None:
    with pytest.raises(UnsupportedModel, match=r'(?s)f.F59.*"y/F59".*become 1729382256910270462 nodes'):
        load_proto(bomb(60))


def test_what_is_within_the_budget_is_written_out() -> None:
    assert len(load_proto(bomb(4)).nodes) == 8
    with limited(nodes=22):
        assert len(load_proto(bomb(4)).nodes) == 8
    with limited(nodes=21), pytest.raises(UnsupportedModel, match="become 22 nodes"):
        load_proto(bomb(4))


def test_functions_thousands_deep_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="3000 deep there, 100 are the most"):
        load_proto(tower(3000))


def test_functions_as_deep_as_the_budget_are_written_out() -> None:
    assert len(load_proto(tower(100)).nodes) == 1


def branch(name: str) -> NodeProto:
    made = helper.make_tensor_value_info("o", TensorProto.FLOAT, [2])
    graphs = [helper.make_graph([call(name, "a c", "o")], side, [], [made]) for side in ("yes", "no")]
    return helper.make_node("If", ["c"], ["b"], then_branch=graphs[0], else_branch=graphs[1])


def test_calls_in_branches_count() -> None:
    twice = [function(f"F{n}", branch(f"F{n - 1}")) for n in range(1, 40)]
    with pytest.raises(UnsupportedModel, match=r"become 2\d{12} nodes"):
        load_proto(calls("F39", leaf(), *twice))
    with limited(depth=6), pytest.raises(UnsupportedModel, match="7 deep there"):
        load_proto(calls("F3", leaf(), *twice[:3]))


def test_functions_that_call_each_other_in_all_orders_are_refused_at_once() -> None:
    """Every order of fourteen functions would be tried else."""
    names = [f"F{n}" for n in range(14)]
    each = [
        function(name, *(call(other, "a c", f"b{other}" if other != "F0" else "b") for other in names))
        for name in names
    ]
    with pytest.raises(BadFile, match=r'(?s)"y/F3".*function F\d+ calls itself: F'):
        load_proto(calls("F3", *each))
