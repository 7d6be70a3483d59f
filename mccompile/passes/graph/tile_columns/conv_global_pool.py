"""Recognizes a convolution followed by a global pool, a pair that block_channels computes by blocks of channels."""

from __future__ import annotations

from ....graph.ir import Node
from ....ops.conv import Conv, ConvInteger
from ....ops.fixed_point import SumPool
from ....ops.pool import AveragePool, GlobalAveragePool, GlobalMaxPool, MaxPool
from .regions import Region

POOLS = (AveragePool, GlobalAveragePool, GlobalMaxPool, MaxPool, SumPool)


def pooled(region: Region) -> Node | None:
    """The pool, if the part is such a convolution, a pool, and what is elementwise behind each."""
    conv, *others = region.nodes
    pools = [node for node in others if isinstance(node.op, POOLS)]
    if not isinstance(conv.op, Conv | ConvInteger) or conv.op.group != 1 or len(pools) != 1:
        return None
    points = all(size == 1 for size in pools[0].output.type.shape[2:]) and conv.output.type.shape[2:] != (1, 1)
    alike = all(region.steps[node].alike for node in others if node is not pools[0])
    return pools[0] if points and alike and region.is_whole else None
