"""Subgraphs within others, variables, and several signatures."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import mccompile
from mccompile.base.errors import BadFile, UnsupportedModel
from mccompile.importers.tflite.convert import to_onnx

from .build import Net
from .litert import Litert

_COMPILER = shutil.which("tcc") or "cc"


def run(data: bytes, *steps: tuple[np.ndarray, ...]) -> None:
    """Both give the same, step by step."""
    network, reference = mccompile.load(data, target="generic", cc=_COMPILER), Litert(data)
    for inputs in steps:
        for got, wanted in zip(network(*inputs), reference(inputs), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


def one(value: float) -> np.ndarray:
    return np.array([value], np.float32)


def test_if_runs_one_of_two_subgraphs() -> None:
    net = Net()
    condition, x, y = net.input((1,), "BOOL"), net.input((1,)), net.tensor((1,))
    numbers = []
    for name in ("ADD", "MUL"):
        number, graph = net.subgraph(name)
        a, made = graph.input((1,)), graph.tensor((1,))
        graph.op(name, [a, graph.constant(one(3))], [made], f"{name.title()}Options")
        graph.outputs = [made]
        numbers.append(number)
    net.op("IF", [condition, x], [y], "IfOptions", ThenSubgraphIndex=numbers[0], ElseSubgraphIndex=numbers[1])
    run(net.file([y]), (np.array([True]), one(5)), (np.array([False]), one(5)))


def looping(body_calls: int | None = None) -> Net:
    """Doubles a number until it is 100, and counts."""
    net = Net()
    x, count = net.input((1,)), net.constant(np.array([0], np.int32))
    y, trips = net.tensor((1,)), net.tensor((1,), "INT32")
    test, condition = net.subgraph("condition")
    a, _, goes_on = condition.input((1,)), condition.input((1,), "INT32"), condition.tensor((1,), "BOOL")
    condition.op("LESS", [a, condition.constant(one(100))], [goes_on], "LessOptions")
    condition.outputs = [goes_on]
    number, body = net.subgraph("body")
    a, n = body.input((1,)), body.input((1,), "INT32")
    twice, more = body.tensor((1,)), body.tensor((1,), "INT32")
    body.op("MUL", [a, body.constant(one(2))], [twice], "MulOptions")
    body.op("ADD", [n, body.constant(np.array([1], np.int32))], [more], "AddOptions")
    body.outputs = [twice, more]
    if body_calls is not None:
        again = [body.tensor((1,)), body.tensor((1,), "INT32")]
        body.op("WHILE", [twice, more], again, "WhileOptions", CondSubgraphIndex=test, BodySubgraphIndex=body_calls)
    net.op("WHILE", [x, count], [y, trips], "WhileOptions", CondSubgraphIndex=test, BodySubgraphIndex=number)
    net.outputs = [y, trips]
    return net


def test_while_runs_as_often_as_its_condition_says() -> None:
    run(looping().file([2, 3]), (one(7),), (one(200),), (one(1),))


def test_a_subgraph_within_itself_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="subgraph 2 is within itself"):
        mccompile.compile(looping(body_calls=2).file([2, 3]))


@pytest.mark.parametrize("first", [0.0, 5.0])
def test_a_variable_lasts_from_run_to_run(first: float) -> None:
    """It begins with what the subgraph that runs once assigns."""
    net = Net()
    number, init = net.subgraph("init")
    handle = init.tensor((), "RESOURCE")
    init.op("VAR_HANDLE", [], [handle], "VarHandleOptions", SharedName="sum", Container="")
    init.op("ASSIGN_VARIABLE", [handle, init.constant(one(first))], [])
    x, kept, before, after = net.input((1,)), net.tensor((), "RESOURCE"), net.tensor((1,)), net.tensor((1,))
    net.op("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=number)
    net.op("VAR_HANDLE", [], [kept], "VarHandleOptions", SharedName="sum", Container="")
    net.op("READ_VARIABLE", [kept], [before])
    net.op("ADD", [before, x], [after], "AddOptions")
    net.op("ASSIGN_VARIABLE", [kept, after], [])
    data = net.file([after])
    run(data, (one(1),), (one(2),), (one(4),))
    compiled = mccompile.compile(data)
    assert len(compiled.report["inputs"]) == len(compiled.report["outputs"]) == 1
    assert compiled.check().ok


def test_an_operator_that_reads_what_nothing_makes_is_refused() -> None:
    net = Net()
    y = net.tensor((1,))
    net.op("ABS", [net.tensor((1,))], [y])
    with pytest.raises(BadFile, match="nothing makes 't1', which it reads"):
        mccompile.compile(net.file([y]))


def test_sizes_that_are_computed_from_shapes_are_known() -> None:
    """As converters write the shape of a result whose batch is open: SHAPE, STRIDED_SLICE, MUL, PACK."""
    net = Net()
    x = net.input((1, 4, 6))
    shape, batch, wide = net.tensor((3,), "INT32"), net.tensor((), "INT32"), net.tensor((), "INT32")
    target, y = net.tensor((3,), "INT32"), net.tensor((1, 3, 8))
    net.op("SHAPE", [x], [shape], "ShapeOptions", OutType=2)
    for place, made in ((0, batch), (1, wide)):
        cut = [net.constant(np.array([number], np.int32)) for number in (place, place + 1, 1)]
        net.op("STRIDED_SLICE", [shape, *cut], [made], "StridedSliceOptions", ShrinkAxisMask=1)
    twice = net.tensor((), "INT32")
    net.op("MUL", [wide, net.constant(np.array(2, np.int32))], [twice], "MulOptions")
    parts = [batch, net.constant(np.array(3, np.int32)), twice]
    net.op("PACK", parts, [target], "PackOptions", ValuesCount=3)
    net.op("TILE", [x, net.constant(np.array([1, 1, 1], np.int32))], [tiled := net.tensor((1, 4, 6))])
    net.op("RESHAPE", [tiled, target], [y])
    data = net.file([y])
    run(data, (np.arange(24, dtype=np.float32).reshape(1, 4, 6),))
    assert [node.op_type for node in to_onnx(data, "net").graph.node] == ["Tile", "Reshape", "Identity"]
