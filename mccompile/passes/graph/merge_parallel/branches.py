"""Parallel convolutions over one input: their weights, the extent of their windows, and when a smaller kernel can be
padded with zeros to a larger one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base.records import dataclass
from ....graph.ir import Node


@dataclass(frozen=True)
class Branch:
    """A convolution over x in full: kernel[O, C / group, space...], how far it reaches before and after, bias."""

    weights: np.ndarray
    before: tuple[int, ...]
    after: tuple[int, ...]
    bias: np.ndarray
    group: int
    strides: tuple[int, ...]
    dilations: tuple[int, ...]


def branch_of(node: Node, weights: np.ndarray, bias: np.ndarray | None) -> Branch | None:
    """None where the padding follows from sizes."""
    fields: dict[str, Any] = vars(node.op)
    rank = weights.ndim - 2
    if fields["auto_pad"] not in ("NOTSET", "", "VALID"):
        return None
    pads = tuple(fields["pads"] or (0,) * 2 * rank) if fields["auto_pad"] != "VALID" else (0,) * 2 * rank
    ones = (1,) * rank
    return Branch(
        weights.astype(np.float64),
        pads[:rank],
        pads[rank:],
        np.zeros(len(weights)) if bias is None else bias.astype(np.float64),
        fields["group"],
        tuple(fields["strides"] or ones),
        tuple(fields["dilations"] or ones),
    )


def widened(small: Branch, large: Branch) -> np.ndarray | None:
    """The weights of a convolution with zeros around them, so that they do the same at the place of a larger kernel."""
    if (small.group, small.strides) != (large.group, large.strides):
        return None
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
    return np.pad(small.weights, [(0, 0), (0, 0), *widths])
