"""How an Ethos-U rounds where the operators of a region say otherwise, for its stand-in.

Vela computes an average pool as TFLite's kernels do: integers as they are stored, with halves away from zero. Other
operators round halves only where two factors meet one exactly.
"""

from __future__ import annotations

import itertools

import numpy as np

from ...base.constant import Constant
from ...base.dtypes import f32
from ...graph.ir import Graph, Node, Op, Value
from ...ops.binary import Add, Mul
from ...ops.cast import Cast
from ...ops.unary import Abs, Floor, Sign
from ...ops.variadic import Max


def round_pools(graph: Graph) -> bool:
    """Average pools between quantized tensors on the integers themselves. False: there are none."""
    pools = [node for node in graph.nodes if node.op.name == "AveragePool"]
    for pool in pools:
        _round(graph, pool)
    graph.sort()
    return bool(pools)


def _round(graph: Graph, pool: Node) -> None:
    """`_takes_pool` saw that scale and zero point stay the same. The mean of n integers is a half, or at least 1 / n
    away from one, which floats keep apart for all windows that Vela takes."""
    real, last = pool.inputs[0], _reader(pool)
    is_relu = last.op.name == "Relu"
    last = _reader(last) if is_relu else last
    assert real is not None and real.producer is not None
    names = (f"{last.output.name}/away{n}" for n in itertools.count())

    def step(op: Op, *inputs: Value | None) -> Value:
        return graph.compute(op, inputs, [next(names)], pool.provenance)[0]

    def number(value: float) -> Value:
        return Value.of_constant(next(names), Constant.of(np.array(value, np.float32)))

    mean = step(pool.op, step(Cast(to=f32.onnx), real.producer.inputs[0]))
    nudge = number(0.5 + 0.25 / float(np.prod(vars(pool.op)["kernel_shape"])))
    rounded = step(Mul(), step(Sign(), mean), step(Floor(), step(Add(), step(Abs(), mean), nudge)))
    if is_relu:
        zero = last.inputs[2].constant if len(last.inputs) > 2 and last.inputs[2] is not None else None
        rounded = step(Max(), rounded, number(0 if zero is None else float(zero.array.item())))
    graph.replace(last.output, step(Cast(to=last.output.type.dtype.onnx), rounded))


def _reader(node: Node) -> Node:
    """The one that reads its result."""
    ((reader, _),) = node.output.uses
    return reader
