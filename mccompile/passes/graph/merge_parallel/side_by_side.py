"""Convolutions and matrix products over one input, merged into one operator, whose result is split again.

Kernels compute FEW results side by side at once; one with fewer leaves them idle, and each reads the input anew. Where
the sizes of kernels differ, a smaller one is enlarged with zeros if these cost less than that.

Invariant: nobody has to copy a part. Readers take any strides, or all of them are the same Concat, which then joins
what has never been apart (simplify_algebra).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....base.constant import Constant
from ....base.names import new_name
from ....base.provenance import Provenance, merge
from ....base.records import dataclass
from ....graph.ir import Graph, Node, Op, Value, graphs
from ....ops.api import Operator
from ....ops.concat import Concat, Split
from ....ops.rules.elementwise import Elementwise, Unary
from ....targets.api import Target
from .branches import Branch, branch_of, widened

FEW = 8  # results side by side that a kernel computes at once
READ = 4  # what reading an element of the input anew costs, in multiply-accumulates


@dataclass(frozen=True)
class _Lane:
    """A convolution or product, and the activation behind it, if it is the only reader."""

    conv: Node
    activation: Node | None
    joined: Node | None  # the Concat that is the only reader of the result
    place: int  # among its operands

    @property
    def axis(self) -> int:
        """Of the result, along which lanes are joined."""
        return 1 if self.conv.op.name == "Conv" else self.conv.output.type.rank - 1

    @property
    def weights_axis(self) -> int:
        """The same of the weights."""
        return 0 if self.conv.op.name == "Conv" else 1

    @property
    def result(self) -> Value:
        return (self.activation or self.conv).output

    @property
    def weights(self) -> np.ndarray:
        return _array(self.conv, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the weights."""
        weights = self.conv.inputs[1]
        assert weights is not None
        return weights.type.static_shape

    @property
    def results(self) -> int:
        return self.shape[self.weights_axis]

    @property
    def taps(self) -> int:
        return prod(self.shape[2:])

    def branch(self) -> Branch | None:
        return branch_of(self.conv, self.weights, None)


class SideBySide:
    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph = graph
        self.vector_bits = 8 * target.vector_bytes
        self.names = {value.name for part in graphs(graph) for value in part.values()}

    def run(self) -> None:
        changed = False
        for x in [*self.graph.inputs, *(v for node in list(self.graph.nodes) for v in node.present_outputs)]:
            if len(x.uses) < 2:
                continue
            found = [self.lane(reader) for reader, position in x.uses if position == 0]
            lanes = [lane for lane in found if lane is not None]
            for group in [*self.enlarged(lanes), *self.few(lanes)]:
                if all(lane.conv in self.graph.nodes for lane, _ in group):
                    self.merge(x, group)
                    changed = True
        if changed:
            self.graph.sort()

    def lane(self, conv: Node) -> _Lane | None:
        """None where it cannot be merged."""
        if conv.op.domain or conv not in self.graph.nodes:
            return None
        if conv.op.name == "MatMul":
            weights = conv.inputs[1]
            if weights is None or weights.type.rank != 2 or conv.output.type.rank < 2:
                return None
        elif conv.op.name != "Conv" or vars(conv.op)["group"] != 1:
            return None
        if any(value is not None and value.constant is None for value in conv.inputs[1:]):
            return None
        activation = next(iter(conv.output.uses))[0] if len(conv.output.uses) == 1 else None
        if self.graph.is_output(conv.output) or not isinstance(activation and activation.op, Unary):
            activation = None
        lane = _Lane(conv, activation, None, 0)
        if self.graph.is_output(lane.result):
            return None
        readers = list(lane.result.uses)
        if len(readers) == 1 and isinstance(joined := readers[0][0].op, Concat):
            rank = lane.result.type.rank
            return _Lane(conv, activation, *readers[0]) if joined.axis % rank == lane.axis else None
        ops = [reader.op for reader, _ in readers]
        seen = all(isinstance(op, Elementwise) or (isinstance(op, Operator) and op.channels_last) for op in ops)
        return lane if seen else None

    # -- which become one: lanes with their weights

    def few(self, lanes: Sequence[_Lane]) -> list[list[tuple[_Lane, np.ndarray]]]:
        """Those of one size that have few results each."""
        groups: dict[tuple[object, ...], list[_Lane]] = {}
        for lane in lanes:
            groups.setdefault((lane.conv.op, *_alike(lane), *_others(lane)), []).append(lane)
        found = [_in_order(group) for group in groups.values() if all(lane.results < FEW for lane in group)]
        return [[(lane, lane.weights) for lane in group] for group in found if len(group) > 1]

    def enlarged(self, lanes: Sequence[_Lane]) -> list[list[tuple[_Lane, np.ndarray]]]:
        """Convolutions of several sizes, the largest with the smaller ones that it can take in."""
        found = []
        free = sorted((lane for lane in lanes if lane.conv.op.name == "Conv"), key=lambda lane: -lane.taps)
        while free:
            group = {free[0]: free[0].weights}
            while (more := self.taken_in(free[0], group, free[1:])) is not None:
                group |= more  # with it, others may come next to each other
            free = [lane for lane in free if lane not in group]
            if len(group) > 1:
                found.append([(lane, group[lane]) for lane in _in_order(list(group))])
        return found

    def taken_in(
        self, large: _Lane, group: dict[_Lane, np.ndarray], lanes: Sequence[_Lane]
    ) -> dict[_Lane, np.ndarray] | None:
        """The first of the lanes that can join the group of a large one, with its weights enlarged."""
        for lane in lanes:
            if lane in group or _alike(lane) != _alike(large) or lane.taps == large.taps:
                continue
            inside, around = lane.branch(), large.branch()
            weights = None if inside is None or around is None else widened(inside, around)
            results = sum(each.results for each in group)
            if weights is not None and self.pays(large, lane, results) and _in_order([*group, lane]):
                return {lane: weights.astype(lane.weights.dtype)}
        return None

    def pays(self, large: _Lane, small: _Lane, results: int) -> bool:
        """Do the small one's results, beside `results` of the large one, cost less than reading the input for them?
        Those that lie in the same vector cost nothing. Counted per place and channel of the input."""
        lanes = self.vector_bits // large.result.type.dtype.bits
        computed_anyway = results + small.results <= lanes
        return computed_anyway or (large.taps - small.taps) * small.results < READ

    def merge(self, x: Value, group: Sequence[tuple[_Lane, np.ndarray]]) -> None:
        lanes = [lane for lane, _ in group]
        first = max(lanes, key=lambda lane: lane.taps)  # the first of the largest
        names = "+".join(lane.conv.output.name for lane in lanes)
        nodes = [node for lane in lanes for node in (lane.conv, lane.activation) if node is not None]
        provenance = merge(*(node.provenance for node in nodes))
        weights = [array for _, array in group]
        counts = [lane.results for lane in lanes]
        ins = [x, self.constant(np.concatenate(weights, first.weights_axis), f"{names}/weights")]
        if first.conv.op.name == "Conv":
            biases = [_array(lane.conv, 2, count) for lane, count in zip(lanes, counts, strict=True)]
            ins.append(self.constant(np.concatenate(biases).astype(weights[0].dtype), f"{names}/bias"))
        result = self.add(first.conv.op, ins, provenance, names)[0]
        if first.activation is not None:
            result = self.add(first.activation.op, [result], provenance, f"{names}/activation")[0]
        sizes = self.constant(np.array(counts, np.int64), f"{names}/sizes")
        parts = self.add(Split(axis=first.axis), [result, sizes], provenance, f"{names}/part", len(lanes))
        for lane, part in zip(lanes, parts, strict=True):
            self.graph.replace(lane.result, part)
            if lane.activation is not None:
                self.graph.remove(lane.activation)
            self.graph.remove(lane.conv)

    def add(self, op: Op, ins: list[Value], provenance: Provenance, name: str, results: int = 1) -> list[Value]:
        return self.graph.compute(op, ins, [self.name(name) for _ in range(results)], provenance)

    def constant(self, array: np.ndarray, name: str) -> Value:
        return Value.of_constant(self.name(name), Constant.of(array))

    def name(self, text: str) -> str:
        return new_name(text, self.names)


def _alike(lane: _Lane) -> tuple[object, ...]:
    """What has to be the same."""
    return lane.result.type.dtype, lane.activation and lane.activation.op, lane.joined


def _others(lane: _Lane) -> tuple[int, ...]:
    """Sizes of the weights besides the number of results."""
    return tuple(size for axis, size in enumerate(lane.shape) if axis != lane.weights_axis)


def _in_order(lanes: Sequence[_Lane]) -> list[_Lane]:
    """In the order of the Concat that joins them; none where it takes something between them."""
    if lanes[0].joined is None:
        return list(lanes)
    found = sorted(lanes, key=lambda lane: lane.place)
    return found if found[-1].place - found[0].place == len(found) - 1 else []


def _array(conv: Node, position: int, zeros: int = 0) -> np.ndarray:
    value = conv.inputs[position] if position < len(conv.inputs) else None
    return np.zeros(zeros) if value is None or value.constant is None else value.constant.array
