"""merge_parallel: convolutions and products over one input become one.

- Added up: conv(x, v) + conv(x, w) is conv(x, v + w). A smaller kernel is enlarged with zeros around it, x itself and x
  times a factor per channel are kernels of size 1, and halves of one convolution (Split, Add) are two.
- Side by side: convolutions or matrix products with few results each become one with more, whose result is split
  again, which costs nothing. Only where nobody needs a part in memory of its own, and only with the same kernel size.

Weights are added in float64 and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.constant import Constant
from ...base.provenance import Provenance, merge
from ...graph.ir import Graph, Node, Op, Value
from ...graph.pattern import Anything, ConstantOperand, Made, Maker, Match, Maybe, Pattern, Rule, graphs, rewrite
from ...ops.api import Operator
from ...ops.concat import Split
from ...ops.conv import Conv
from ...ops.elementwise import Elementwise, Unary
from ..api import Context

FEW = 8  # results side by side that a kernel computes at once; fewer leave it idle

X = Anything("x")


def merge_parallel(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)
    for part in list(graphs(graph)):
        _SideBySide(part).run()


# -- added up


@dataclass(frozen=True)
class _Branch:
    """A convolution over x in full: kernel[O, C / group, space...], how far it reaches before and after, bias."""

    weights: np.ndarray
    before: tuple[int, ...]
    after: tuple[int, ...]
    bias: np.ndarray
    group: int
    strides: tuple[int, ...]
    dilations: tuple[int, ...]


def _branch(node: Node, weights: np.ndarray, bias: np.ndarray | None) -> _Branch | None:
    """None where the padding follows from sizes."""
    fields: dict[str, Any] = vars(node.op)
    rank = weights.ndim - 2
    if fields["auto_pad"] not in ("NOTSET", "", "VALID"):
        return None
    pads = tuple(fields["pads"] or (0,) * 2 * rank) if fields["auto_pad"] != "VALID" else (0,) * 2 * rank
    ones = (1,) * rank
    return _Branch(
        weights.astype(np.float64),
        pads[:rank],
        pads[rank:],
        np.zeros(len(weights)) if bias is None else bias.astype(np.float64),
        fields["group"],
        tuple(fields["strides"] or ones),
        tuple(fields["dilations"] or ones),
    )


def _of(match: Match, suffix: str) -> _Branch | None:
    bias = match.array(f"b{suffix}") if match.get(f"b{suffix}") is not None else None
    return _branch(match.node(f"conv{suffix}"), match.array(f"w{suffix}"), bias)


def _identity(like: _Branch, channels: int, factor: np.ndarray) -> _Branch | None:
    """x * factor as a convolution of the same kind."""
    rank = len(like.strides)
    if any(step != 1 for step in like.strides) or len(like.weights) != channels:
        return None
    inner = channels // like.group
    weights = np.zeros((channels, inner, *(1,) * rank))
    weights[np.arange(channels), np.arange(channels) % inner] = factor.reshape(channels, *(1,) * rank)
    zeros = (0,) * rank
    return replace(like, weights=weights, before=zeros, after=zeros, bias=np.zeros(channels))


def _sum(a: _Branch, b: _Branch) -> _Branch | None:
    """Both as one kernel that is as large as the larger one."""
    if (a.group, a.strides) != (b.group, b.strides) or a.weights.shape[:2] != b.weights.shape[:2]:
        return None
    small, large = sorted((a, b), key=lambda branch: branch.weights[0, 0].size)
    widths = []
    for axis, dilation in enumerate(large.dilations):
        size, room = small.weights.shape[axis + 2], large.weights.shape[axis + 2]
        if size > 1 and small.dilations[axis] != dilation:
            return None
        # The small kernel begins at a tap of the large one, and ends at one.
        first, rest = divmod(large.before[axis] - small.before[axis], dilation)
        last = room - size - first
        if rest or first < 0 or last < 0 or large.after[axis] - small.after[axis] != last * dilation:
            return None
        widths.append((first, last))
    grown = np.pad(small.weights, [(0, 0), (0, 0), *widths])
    return replace(large, weights=large.weights + grown, bias=large.bias + small.bias)


def _made(match: Match, make: Maker, sum: _Branch | None) -> Value | None:
    """The convolution, where no number has become too large."""
    x, name = match["x"], match.root.output.name
    if sum is None:
        return None
    with np.errstate(over="ignore"):
        arrays = [array.astype(x.type.dtype.numpy) for array in (sum.weights, sum.bias)]
    if not all(np.isfinite(array.astype(np.float64)).all() for array in arrays):
        return None
    op = Conv(group=sum.group, strides=sum.strides, dilations=sum.dilations, pads=(*sum.before, *sum.after))
    weights, bias = arrays
    result = make.node(op, x, make.constant(weights, f"{name}/weights"), make.constant(bias, f"{name}/bias"))
    return result if result.type == match.root.output.type else None


def _added(match: Match, make: Maker) -> Value | None:
    a, b = _of(match, "1"), _of(match, "2")
    return _made(match, make, _sum(a, b)) if a is not None and b is not None else None


def _with_x(match: Match, make: Maker) -> Value | None:
    x, conv = match["x"].type, _of(match, "1")
    channels = x.shape[1]
    if conv is None or not isinstance(channels, int) or match.root.output.type != x or x.dtype.is_narrow_float:
        return None  # beside 1, a weight in half precision would lose its last places
    factor = np.ones(channels)
    if match.get("factor") is not None:
        type = match["factor"].type
        shape = (1,) * (x.rank - type.rank) + type.static_shape
        if any(size != 1 for axis, size in enumerate(shape) if axis != 1) or match.node("scaled").output.type != x:
            return None
        factor = np.broadcast_to(match.array("factor").astype(np.float64).reshape(-1), (channels,))
    other = _identity(conv, channels, factor)
    return None if other is None else _made(match, make, _sum(conv, other))


def _halves(match: Match, make: Maker) -> Value | None:
    """Add(a, b) of a, b = Split(conv(x)) along the channels."""
    a, b = match["a"], match["b"]
    split = a.producer
    if split is None or split.op.name != "Split" or split.op.domain or {*split.outputs} != {a, b} or a is b:
        return None
    total = split.inputs[0]
    if total is None or vars(split.op)["axis"] not in (1, 1 - total.type.rank) or not _only(a, b, total):
        return None
    conv = total.producer
    if conv is None or conv.op.name != "Conv" or conv.op.domain or conv.inputs[0] is None:
        return None
    constants = [value.constant for value in conv.inputs[1:] if value is not None]
    arrays = [constant.array for constant in constants if constant is not None]
    if len(arrays) != len(constants) or vars(conv.op)["group"] != 1 or len(arrays[0]) % 2:
        return None
    whole = _branch(conv, arrays[0], arrays[1] if len(arrays) > 1 else None)
    if whole is None:
        return None
    half = len(whole.weights) // 2
    parts = [replace(whole, weights=whole.weights[p], bias=whole.bias[p]) for p in (slice(half), slice(half, None))]
    match.values["x"] = conv.inputs[0]
    match.matched += [split, conv]
    return _made(match, make, _sum(*parts))


def _only(*values: Value) -> bool:
    return all(len(value.uses) == 1 for value in values)


def _conv(number: str) -> Made:
    w, b = ConstantOperand(f"w{number}"), Maybe(ConstantOperand(f"b{number}"))
    return Made("Conv", X, w, b, name=f"conv{number}", read_once=True)


def _plus(a: Pattern, b: Pattern) -> Made:
    return Made("Add", a, b, either_order=True)


_SCALED_X = Made("Mul", X, ConstantOperand("factor"), either_order=True, name="scaled", read_once=True)

RULES = (
    Rule("added", _plus(_conv("1"), _conv("2")), _added),
    Rule("x_added", _plus(_conv("1"), X), _with_x),
    Rule("scaled_x_added", _plus(_conv("1"), _SCALED_X), _with_x),
    Rule("halves_added", _plus(Anything("a"), Anything("b")), _halves),
)


# -- side by side


@dataclass(frozen=True)
class _Lane:
    """A convolution or product, and the activation behind it, if it is the only reader."""

    conv: Node
    activation: Node | None

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


class _SideBySide:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names = {value.name for part in graphs(graph) for value in part.values()}

    def run(self) -> None:
        changed = False
        for x in [*self.graph.inputs, *(v for node in list(self.graph.nodes) for v in node.present_outputs)]:
            groups: dict[tuple[object, ...], list[_Lane]] = {}
            for reader, position in x.uses:
                lane = self.lane(reader) if position == 0 else None
                if lane is not None:
                    groups.setdefault(_alike(lane), []).append(lane)
            for lanes in groups.values():
                if len(lanes) > 1 and all(_results(lane) < FEW for lane in lanes):
                    self.merge(x, lanes)
                    changed = True
        if changed:
            self.graph.sort()

    def lane(self, conv: Node) -> _Lane | None:
        """None where it cannot be merged, or should not: a part of a result is no memory of its own."""
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
        lane = _Lane(conv, activation)
        readers = [reader.op for reader, _ in lane.result.uses]
        seen = all(isinstance(op, Elementwise) or (isinstance(op, Operator) and op.channels_last) for op in readers)
        return lane if seen and not self.graph.is_output(lane.result) else None

    def merge(self, x: Value, lanes: list[_Lane]) -> None:
        first = lanes[0]
        names = "+".join(lane.conv.output.name for lane in lanes)
        nodes = [node for lane in lanes for node in (lane.conv, lane.activation) if node is not None]
        provenance = merge(*(node.provenance for node in nodes))
        weights = [_array(lane.conv, 1) for lane in lanes]
        counts = [w.shape[first.weights_axis] for w in weights]
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
        draft = Node(op, ins, [None] * results, provenance)
        made = [Value(self.name(name), fact) for fact in op.infer(draft.site())]
        draft.outputs = list(made)
        self.graph.add(draft)
        return made

    def constant(self, array: np.ndarray, name: str) -> Value:
        return Value.of_constant(self.name(name), Constant.of(array))

    def name(self, text: str) -> str:
        name, number = text, 1
        while name in self.names:
            number += 1
            name = f"{text}_{number}"
        self.names.add(name)
        return name


def _alike(lane: _Lane) -> tuple[object, ...]:
    """What has to be the same."""
    w = lane.conv.inputs[1]
    assert w is not None
    activation = lane.activation and lane.activation.op
    others = tuple(size for axis, size in enumerate(w.type.shape) if axis != lane.weights_axis)
    return lane.conv.op, w.type.dtype, others, activation


def _results(lane: _Lane) -> int:
    size = lane.conv.output.type.shape[lane.axis]
    return size if isinstance(size, int) else FEW


def _array(conv: Node, position: int, zeros: int = 0) -> np.ndarray:
    value = conv.inputs[position] if position < len(conv.inputs) else None
    return np.zeros(zeros) if value is None or value.constant is None else value.constant.array
