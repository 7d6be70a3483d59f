"""Windows that slide over pictures: TFLite's SAME and VALID as ONNX has them."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.ir import Invalid, Unsupported

SAME, VALID = 0, 1


def padded(
    padding: int, sizes: Sequence[int | None], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> dict[str, list[int] | str]:
    """Pads before every axis, then behind; with SAME there is one more behind than before, if they are odd. They follow
    from the sizes, so where one has a range (None), ONNX's form that says no more than TFLite does."""
    if min(*strides, *dilations, *kernel) < 1:
        raise Invalid(f"a window of {list(kernel)} with strides {list(strides)} and dilations {list(dilations)}")
    if padding == VALID:
        return {"pads": [0] * (2 * len(sizes))}
    if padding != SAME:
        raise Unsupported(f"padding {padding} is not known")
    if any(size is None and stride > 1 for size, stride in zip(sizes, strides, strict=True)):
        return {"auto_pad": "SAME_UPPER"}
    totals = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        reach = (k - 1) * dilation + 1
        totals.append(max(0, (-(-size // stride) - 1) * stride + reach - size) if size is not None else reach - 1)
    return {"pads": [total // 2 for total in totals] + [total - total // 2 for total in totals]}
