"""Loops as torch's and TensorFlow's exporters write them: what they carry, collect and end by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, ValueInfoProto, helper

from .net import Net, f, ints
from .spelling import spelled

Shape = Sequence[int | str | None] | None
TRUE = np.array(True)


def body(net: Net, first: int, ins: Sequence[tuple[str, int, Shape]], outs: Sequence[str]) -> GraphProto:
    """The nodes from the first on, as the body of a loop."""
    inside = net.nodes[first:]
    del net.nodes[first:]
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in ins]
    return helper.make_graph(inside, "body", inputs, [ValueInfoProto(name=name) for name in outs])


def loop(
    net: Net, trips: str | np.ndarray, carried: Sequence[str], shapes: Sequence[Shape], outs: int, first: int,
    results: Sequence[str], condition: str = "", kinds: Sequence[int] = (),
) -> str:  # fmt: skip
    ins = [("i", 7, []), ("c", 9, [])]
    ins += [(f"s{n}", kinds[n] if kinds else 1, shape) for n, shape in enumerate(shapes)]
    inner = body(net, first, ins, [condition or net_true(net), *results])
    return net.op("Loop", trips, TRUE, *carried, outs=outs, body=inner)


def net_true(net: Net) -> str:
    return net.constant(TRUE)


@spelled(
    "loop/grows", {"axis": 0}, {"axis": 1}, {"axis": 0, "named": 1}, {"axis": 0, "front": 1}, {"axis": 0, "given": 1},
    {"axis": 0, "start": 0}, {"axis": 0, "read": 1}, {"axis": 0, "known": 1}, steps=None, room=99,
)  # fmt: skip
def grows(
    net: Net, axis: int, named: int = 0, front: int = 0, given: int = 0, start: int = 1, read: int = 0, known: int = 0
) -> str:
    """A carried tensor that each trip makes longer, as greedy decoders write it."""
    x = net.input(net.floats(1, 3))
    begin = net.input(net.floats(*((start, 3) if axis == 0 else (3, start))), "begin")
    trips = net.constant(np.array(4)) if known else net.input(np.array(4, np.int64), "trips")
    row = x if axis == 0 else net.op("Transpose", x, perm=[1, 0])
    first = len(net.nodes)
    if read:
        row = net.op("Add", net.op("ReduceMean", "s0", axes=[0], keepdims=1), row)
    made = net.op("Concat", *((row, "s0") if front else ("s0", row)), axis=axis)
    shape: Shape = None
    if named:
        shape = ["rows", 3] if axis == 0 else [3, "rows"]
    y = loop(net, trips, [begin], [shape], 1, first, [made])
    net.bounds = {"trips": (6,)} if not given else {"trips": (6,), y: (8,)}
    if known:
        net.bounds = {}
    return y


@spelled("loop/grows_until", steps=None, room=99)
def grows_until(net: Net) -> list[str]:
    """A decoder that ends by a token: tokens so far are joined, the last one is looked up."""
    table = net.constant(net.floats(5, 5))
    begin = net.input(np.array([[1]], np.int64), "begin")
    first = len(net.nodes)
    last = net.op("Gather", "s0", np.array(-1), axis=1)
    scores = net.op("Gather", table, last, axis=0)
    token = net.op("ArgMax", scores, axis=1, keepdims=1)
    made = net.op("Concat", "s0", token, axis=1)
    more = net.op("Not", net.op("Squeeze", net.op("Equal", token, np.array([[2]]))))
    y = loop(net, np.array(6), [begin], [(1, None)], 1, first, [made], more, [7])
    return [y]


@spelled("loop/window", {"how": "slice"}, {"how": "concat"}, steps=None, room=9)
def keeps_a_window(net: Net, how: str) -> str:
    """A cache of fixed size: the oldest row goes out, a new one comes in."""
    begin = net.input(net.floats(4, 3), "begin")
    trips = net.input(np.array(5, np.int64), "trips")
    net.bounds = {"trips": (9,)}
    first = len(net.nodes)
    rest = net.op("Slice", "s0", ints(1), ints(9), ints(0))
    row = net.op("ReduceSum", "s0", ints(0)) if how == "concat" else net.op("Slice", "s0", ints(0), ints(1), ints(0))
    made = net.op("Concat", rest, net.op("Mul", row, f(0.5)), axis=0)
    return loop(net, trips, [begin], [(4, 3)], 1, first, [made])


@spelled("loop/collects", {"declared": 1}, {"declared": 0}, steps=None, room=9)
@spelled("loop/collects_until", {"until": 1}, steps=None, room=9)
def collects(net: Net, declared: int = 1, until: int = 0) -> list[str]:
    x = net.input(net.floats(3))
    trips = net.input(np.array(4, np.int64), "trips")
    net.bounds = {"trips": (6,)}
    first = len(net.nodes)
    made = net.op("Mul", "s0", f(0.5))
    largest = net.op("ReduceMax", made, keepdims=0)
    more = net.op("Greater", largest, f(0.05)) if until else ""
    y = loop(net, trips, [x], [(3,) if declared else None], 2, first, [made, made], more)
    return [y, f"{y}.1"]


def nested(net: Net, depth: int, level: int, value: str) -> str:
    if level > depth:
        return net.op("Add", value, f(1))
    first = len(net.nodes)
    inner = f"a{level}"
    made = nested(net, depth, level + 1, inner)
    if made == inner:
        made = net.op("Identity", inner)
    nodes = net.nodes[first:]
    del net.nodes[first:]
    ins = [(f"trip{level}", 7, []), (f"go{level}", 9, []), (inner, 1, [4])]
    graph = helper.make_graph(
        [helper.make_node("Identity", [f"go{level}"], [f"o{level}"]), *nodes],
        f"body{level}",
        [helper.make_tensor_value_info(*entry) for entry in ins],
        [ValueInfoProto(name=f"o{level}"), ValueInfoProto(name=made)],
    )
    result = f"loop{level}"
    operands = [net.constant(np.array(2)), net.constant(TRUE), value]
    net.nodes.append(helper.make_node("Loop", operands, [result], body=graph))
    return result


@spelled("loop/nested", *({"depth": depth} for depth in (1, 2, 3, 5, 8, 16)), steps=None, room=99)
def nested_loops(net: Net, depth: int) -> str:
    return nested(net, depth, 1, net.input(net.floats(4)))
