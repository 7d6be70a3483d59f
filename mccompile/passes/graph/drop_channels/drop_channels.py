"""drop_channels: channels of integers that never vary, or that nobody reads, are not computed.

Weights that are zero make a channel one number, which depends on its bias alone; so do operators over channels that
never vary. Convolutions and products that read such channels do without: what these add to a sum becomes part of its
bias. That is exact where it is the same everywhere; where windows hang over the padding and it is not, the channel
stays. Channels that only meet weights of zero go as well. Channels belong together through depthwise convolutions,
elementwise operators and the like (channel_steps.py): all of them stay if one does.

Floats are left alone: zero times infinity is not a number, and sums would be rounded in other places. How many channels
a tensor keeps is a fact about values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ....graph.ir import Graph, Node, Value, graphs
from ....ops.binary import Add
from ....ops.fixed_point import ShortRescale
from ....targets.api import Target
from ...api import Context
from .channel_steps import step_of
from .channel_sums import Product
from .channels import Cutting, Known, Masks, Step


def drop_channels(graph: Graph, context: Context) -> None:
    if graph.updatable:
        return
    cutting = Cutting({value.name for part in graphs(graph) for value in part.values()})
    for part in list(graphs(graph)):
        _Channels(part, graph, cutting, context.target).run()


def suits(target: Target, channels: int) -> bool:
    """Do kernels take so many without a rest? Counted instructions say that it pays to keep a few more for that."""
    if target.isas == ("c",):
        return True
    return channels % (8 if target.vector_bytes and channels > 8 else 4) == 0


class _Channels:
    def __init__(self, graph: Graph, whole: Graph, cutting: Cutting, target: Target) -> None:
        self.graph, self.whole, self.cutting, self.target = graph, whole, cutting, target
        self.steps: list[Step] = []
        self.keep: Masks = {}

    def run(self) -> None:
        axes: dict[Value, int] = {}
        known: dict[Value, Known] = {}
        for node in self.graph.nodes:
            step = step_of(node, axes)
            self.steps.append(step)
            if step.axis is None:
                continue
            size = node.output.type.shape[step.axis]
            assert isinstance(size, int)
            axes[node.output] = step.axis
            self.keep[node.output] = np.full(size, self.graph.is_output(node.output))
            found = step.know(known)
            if found is not None and found.where.any():
                known[node.output] = found
        self.grow()
        while self.filled(known):
            self.grow()
        if not all(mask.all() for mask in self.keep.values()):
            self.cut()

    def grow(self) -> None:
        """Until every step has what it needs."""
        before, count = -1, 0
        while before != count:
            for step in reversed(self.steps):
                step.grow(self.keep)
            before, count = count, sum(int(mask.sum()) for mask in self.keep.values())

    # -- how many are kept

    def filled(self, known: Mapping[Value, Known]) -> bool:
        """Keeps more channels of the first sum that has not as many as it may have."""
        for made in self.sums():
            mask = self.keep[made.node.output]
            more = self.count(made) - int(mask.sum())
            if more:
                found = known.get(made.node.output)
                varies = np.ones(len(mask), bool) if found is None else ~found.where
                left = np.flatnonzero(~mask)
                mask[left[np.argsort(varies[left], kind="stable")][:more]] = True  # what never varies needs no others
                return True
        return False

    def count(self, made: Product) -> int:
        """The fewest channels that a result may have."""
        mask = self.keep[made.node.output]
        fewer = range(max(int(mask.sum()), 1), len(mask))
        return next((n for n in fewer if suits(self.target, n) and self.whole.may_use(_fact(made, n))), len(mask))

    def sums(self) -> Iterator[Product]:
        return (step for step in self.steps if isinstance(step, Product))

    # -- the graph without the others

    def cut(self) -> None:
        for step in self.steps:
            if step.axis is None:
                continue
            mask = self.keep[step.node.output]
            if isinstance(step, Product):
                if not mask.all():
                    self.whole.assumptions[_fact(step, int(mask.sum()))] = None
                self.add(step, step.left_out(self.keep), mask)
            step.cut(self.cutting, self.keep)
        self.graph.sort()
        for node in self.graph.nodes:
            if any(value in self.keep for value in node.present_outputs):
                _infer(node)

    def add(self, step: Product, numbers: np.ndarray, mask: np.ndarray) -> None:
        """Numbers to the channels of a sum: to the biases behind it, else by a node of their own."""
        if not numbers.any():
            return
        total, axis = step.node.output, step.axis or 0
        numbers = numbers.reshape(-1, *(1,) * (total.type.rank - axis - 1))
        biases = [_bias(reader) for reader, _ in total.uses]
        if None not in biases and not self.graph.is_output(total):
            total.origin = None
            for reader, position, array in (found for found in biases if found is not None):
                self.cutting.put(reader, position, array + numbers)
            return
        result = Value(self.cutting.name(total.name), total.fact)
        more = self.cutting.constant(np.compress(mask, numbers, 0), total.name)
        node = self.graph.add(Node(Add(), [total, more], [result], step.node.provenance))
        self.graph.replace(total, result)
        total.origin = None
        self.graph.set_input(node, 0, total)
        self.keep[result] = mask


def _infer(node: Node) -> None:
    for value, fact in zip(node.outputs, node.op.infer(node.site()), strict=False):
        if value is not None:
            value.fact = fact


def _bias(reader: Node) -> tuple[Node, int, np.ndarray] | None:
    """The constant that a reader of sums adds to them: an operand of that node."""
    for position in {ShortRescale: (1,), Add: (0, 1)}.get(type(reader.op), ()):
        value = reader.inputs[position]
        if value is not None and value.constant is not None:
            return reader, position, value.constant.array
    return None


def _fact(made: Product, count: int) -> str:
    return f"{made.node.output.name} needs {count} of {len(made.needed)} channels"
