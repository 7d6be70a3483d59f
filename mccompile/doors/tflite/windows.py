"""Windows that slide over pictures: TFLite's SAME and VALID as pads."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.ir import Invalid, Unsupported
from .file import SizeOpen

SAME, VALID = 0, 1


def pads(
    padding: int, sizes: Sequence[int | None], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """Before every axis, then behind; with SAME there is one more behind than before, if they are odd."""
    if min(*strides, *dilations, *kernel) < 1:
        raise Invalid(f"a window of {list(kernel)} with strides {list(strides)} and dilations {list(dilations)}")
    if padding == VALID:
        return [0] * (2 * len(sizes))
    if padding != SAME:
        raise Unsupported(f"padding {padding} is not known")
    totals = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        reach = (k - 1) * dilation + 1
        if size is None and stride > 1:
            raise SizeOpen(f"its pads follow from a size that has a range, with the stride {stride}")
        totals.append(max(0, (-(-size // stride) - 1) * stride + reach - size) if size is not None else reach - 1)
    return [total // 2 for total in totals] + [total - total // 2 for total in totals]
