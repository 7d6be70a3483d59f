"""States that grow, stored in fewer bits: elements that a run adds are rounded once, when they are written, and read as
f32.

f16: rounded to the nearest, ties to even. int8: each row along the last axis has a scale in f32, its largest magnitude
over 127 (and 2^-126 at least), and levels, which are the nearest integers to the numbers over the scale, ties to even;
the scales are a state of their own beside the levels.

Invariant: all readers see the rounded numbers, those of the run that adds them too, so results do not depend on how a
text is cut into runs.
"""

from __future__ import annotations

import numpy as np

from ...base.constant import Constant
from ...base.dtypes import DType, f16, f32, i8
from ...base.errors import Problem, WrongUse
from ...base.names import Names
from ...base.tensor import TensorType
from ...graph.ir import Fact, Graph, Node, Op, Value
from ...ops.binary import Div, Mul
from ...ops.cast import Cast
from ...ops.reduce import ReduceMax
from ...ops.unary import Abs, Round
from ...ops.variadic import Max
from ..api import CacheDtype
from .growing_states import growth, joined

_MOST = np.array(127, np.float32)
_LEAST = np.array(2.0**-126, np.float32)  # of scales


def narrow_caches(graph: Graph, dtype: CacheDtype) -> None:
    """Before the states that grow lie in buffers."""
    if dtype == CacheDtype.OWN:
        return
    inputs, outputs = ({v.name: v for v in values} for values in (graph.inputs, graph.outputs))
    names, found = Names(), 0
    for known in graph.values():
        names.take(known.name)
    for before, after in list(graph.states.items()):
        taken, made = inputs[before], outputs[after]
        grows = growth(taken.type, made.type)
        node = None if grows is None else joined(made, taken, grows.axis)
        if grows is None or node is None or taken.type.dtype is not f32:
            continue
        if dtype == CacheDtype.INT8 and grows.axis == taken.type.rank - 1:
            why = f"{before!r} is {taken.type} and grows along its last axis, along which numbers share a scale"
            raise WrongUse(Problem("a state cannot be stored in int8", "--cache-dtype int8", why, "use f16"))
        _Cache(graph, node, taken, made, names).store(dtype)
        found += 1
    if not found:
        why = "no state in f32 grows from run to run"
        fix = "leave it out, or name the cache: --state present=past --dim past=0..255"
        raise WrongUse(Problem("there is no cache to be stored in fewer bits", f"--cache-dtype {dtype}", why, fix))
    graph.sort()


class _Cache:
    """A state, and the node that joins it and what is new."""

    def __init__(self, graph: Graph, node: Node, taken: Value, made: Value, names: Names) -> None:
        self.graph, self.node, self.taken, self.made, self.names = graph, node, taken, made, names
        self.new = [value for value in node.inputs[1:] if value is not None]

    def store(self, dtype: CacheDtype) -> None:
        wide = Cast(f32.onnx)
        if dtype == CacheDtype.F16:
            kept = self.joined(f16, [self.of(Cast(f16.onnx), each) for each in self.new])
            before, after = (self.of(wide, each) for each in kept)
        else:
            scales = [self.scale(each) for each in self.new]
            pairs = zip(self.new, scales, strict=True)
            levels = [self.of(Cast(i8.onnx), self.of(Round(), self.of(Div(), *pair))) for pair in pairs]
            kept, beside = self.joined(i8, levels), self.joined(f32, scales)
            sides = zip(kept, beside, strict=True)
            before, after = (self.of(Mul(), self.of(wide, side[0]), side[1]) for side in sides)
            self.remember(*beside, self.names.take(f"{self.taken.name}.scale"), f"{self.made.name}.scale")
        self.graph.inputs.remove(self.taken)
        self.graph.outputs.remove(self.made)
        name, result = self.taken.name, self.made.name
        del self.graph.states[name]
        self.taken.name, self.made.name = (self.names.take(f"{each}/wide") for each in (name, result))
        self.graph.replace(self.taken, before)
        self.graph.replace(self.node.output, after)
        self.remember(*kept, name, result)

    def scale(self, x: Value) -> Value:
        """Of each row."""
        largest = self.of(ReduceMax(), self.of(Abs(), x), self.constant(np.array([-1])))
        return self.of(Max(), self.of(Div(), largest, self.constant(_MOST)), self.constant(_LEAST))

    def joined(self, dtype: DType, new: list[Value]) -> tuple[Value, Value]:
        """A state of levels or of scales, and that with what is new."""
        shape = self.taken.type.shape
        shape = shape if new[0].type.shape == self.new[0].type.shape else (*shape[:-1], 1)
        state = Value("", Fact(TensorType(dtype, shape)))
        return state, self.of(self.node.op, state, *new)

    def remember(self, before: Value, after: Value, name: str, result: str) -> None:
        before.name, after.name = name, result
        self.graph.inputs.append(before)
        self.graph.outputs.append(after)
        self.graph.states[name] = result

    def of(self, op: Op, *inputs: Value) -> Value:
        name = self.names.take(f"{self.taken.name}/{op.name}")
        return self.graph.compute(op, inputs, [name], self.node.provenance)[0]

    def constant(self, array: np.ndarray) -> Value:
        return Value.of_constant(self.names.take(f"{self.taken.name}/constant"), Constant.of(array))
