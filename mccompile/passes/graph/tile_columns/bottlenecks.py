"""Inverted bottlenecks of a part: a 1x1 convolution that expands channels, a depthwise convolution, and a 1x1
convolution that reduces channels again, with the elementwise operators between them. fuse_bottlenecks turns them into
one call.

Only sums of integers are taken: these are the same in any order.
"""

from __future__ import annotations

from ....base.dims import static
from ....base.records import dataclass
from ....graph.ir import Node, Value
from ....kinds.bottleneck import rows_made
from ....ops.conv import ConvInteger
from ....ops.rules.window import Window
from .column_steps import ROWS
from .regions import Region


@dataclass(frozen=True)
class Bottleneck:
    widen: Node
    slide: Node
    narrow: Node
    inside: tuple[Value, ...]  # what the first two make, on the way to the third

    def rows_made(self, region: Region, rows: int) -> int:
        """By the first convolution, with those that it makes again, if so many rows are made at a time."""
        window, height = _window(self.slide), region.size(self.widen.output, ROWS)
        out = region.size(self.slide.output, ROWS)
        return rows_made(window.strides[0], window.pads[0], static(window.kernel[0]), height, out, rows)

    def window(self, region: Region, rows: int) -> int:
        """Bytes of the workspace."""
        window, x = _window(self.slide), self.slide.inputs[0]
        assert x is not None
        point = x.type.max_bytes // (static(x.type.shape[2]) * static(x.type.shape[3]))
        lines = (min(rows, region.size(self.slide.output, ROWS)) - 1) * window.strides[0] + static(window.kernel[0])
        return (lines * static(window.kernel[1]) + 1) * point


def bottlenecks(region: Region) -> list[Bottleneck]:
    """In the order of the graph. What ends one does not begin another one."""
    readers: dict[Value, list[Node]] = {}
    for node in region.nodes:
        for x in node.present_inputs:
            readers.setdefault(x, []).append(node)
    found: list[Bottleneck] = []
    for node in region.nodes:
        each = _around(region, node, readers) if _is_sliding(node) else None
        if each is not None and all(each.widen is not other.narrow for other in found):
            found.append(each)
    return found


def _around(region: Region, slide: Node, readers: dict[Value, list[Node]]) -> Bottleneck | None:
    inside: list[Value] = []
    x = slide.inputs[0]
    while x is not None and x.producer in region.steps and len(readers.get(x, [])) == 1:
        inside.insert(0, x)
        widen = x.producer
        if _is_of_points(widen):
            narrow, behind = _behind(region, slide.output, readers)
            return Bottleneck(widen, slide, narrow, (*inside, *behind)) if narrow is not None else None
        x = _only_operand(region, widen)
    return None


def _behind(region: Region, x: Value, readers: dict[Value, list[Node]]) -> tuple[Node | None, list[Value]]:
    """The convolution behind a value, and all before it."""
    values = [x]
    while len(readers.get(values[-1], [])) == 1 and values[-1] is not region.last:
        (node,) = readers[values[-1]]
        if _is_of_points(node):
            return node, values
        if _only_operand(region, node) is not values[-1]:
            break
        values.append(node.output)
    return None, []


def _only_operand(region: Region, node: Node) -> Value | None:
    """What an elementwise node reads, if that is one picture."""
    step = region.steps.get(node)
    places = list(step.reads(ROWS, (0, 1))) if step is not None and step.alike else []
    return node.inputs[places[0]] if len(places) == 1 else None


def _window(node: Node) -> Window:
    assert isinstance(node.op, ConvInteger)
    return node.op.window(node.site())


def _is_of_points(node: Node | None) -> bool:
    if node is None or not isinstance(node.op, ConvInteger) or node.op.group != 1 or node.output.type.rank != 4:
        return False
    window = _window(node)
    return set(window.kernel) == set(window.strides) == {1} and not any(window.pads)


def _is_sliding(node: Node) -> bool:
    """Over every channel alone, without gaps?"""
    x = node.inputs[0] if isinstance(node.op, ConvInteger) else None
    if x is None or not isinstance(node.op, ConvInteger) or node.output.type.rank != 4:
        return False
    channels = {node.op.group, x.type.shape[1], node.output.type.shape[1]}
    window = _window(node)
    reached = all(stride <= static(size) for stride, size in zip(window.strides, window.kernel, strict=True))
    return len(channels) == 1 and node.op.group > 1 and set(window.dilations) == {1} and reached
