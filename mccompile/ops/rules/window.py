"""The sliding window that convolutions and pools share: strides, dilations and pads with every `auto_pad` worked
out."""

from __future__ import annotations

from ...base.budgets import budgets
from ...base.dims import Dim, bounds, minimum, static
from ...base.records import dataclass
from ...base.tensor import Shape, show_shape
from ..api import Invalid, Unsupported


class PadsFollow(Unsupported):
    """How much `auto_pad` adds follows from a size that is known only at run time."""

    def __init__(self) -> None:
        super().__init__("auto_pad with a stride over a free dimension", "fix the dimension with --dim or --shape")


@dataclass(frozen=True)
class Window:
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]  # before each axis, then after each

    @staticmethod
    def of(
        space: Shape,
        kernel: Shape,
        strides: tuple[int, ...] | None,
        dilations: tuple[int, ...] | None,
        pads: tuple[int, ...] | None,
        auto_pad: str,
        ceil: bool = False,
    ) -> Window:
        """From the attributes as ONNX has them; `space` is the spatial part of the input's shape."""
        rank = len(space)
        sizes, steps, gaps = window_sizes(rank, kernel, strides, dilations)
        around = tuple(pads or (0,) * (2 * rank))
        if len(around) != 2 * rank or min(around) < 0:
            raise Invalid(f"pads {around} are not {2 * rank} numbers from 0 on")
        _check_reach(around)
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            around = _same(space, sizes, steps, gaps, lower=auto_pad == "SAME_LOWER")
        elif auto_pad == "VALID":
            around = (0,) * (2 * rank)
        elif auto_pad not in ("NOTSET", ""):
            raise Invalid(f"auto_pad {auto_pad!r} is not NOTSET, SAME_UPPER, SAME_LOWER or VALID")
        window = Window(sizes, steps, gaps, around)
        for dim, size in zip(window.out_space(space, ceil), space, strict=True):
            if bounds(dim)[1] < (1 if size != 0 else 0):
                raise Invalid(
                    f"a window of {show_shape(sizes)} does not fit into {show_shape(space)} with pads {around}"
                )
            if dim == 0 and size != 0:
                raise Unsupported(
                    f"a window of {show_shape(sizes)} may not fit into {show_shape(space)}",
                    "fix the free dimensions with --dim or --shape",
                )
        return window

    def out_space(self, space: Shape, ceil: bool = False) -> Shape:
        """How often the window fits along each axis; with `ceil` a last window that hangs over is counted if it starts
        inside."""
        rank = len(space)
        result: list[Dim] = []
        for axis, size in enumerate(space):
            before, after, step = self.pads[axis], self.pads[axis + rank], self.strides[axis]
            room = size + before + after - (self.kernel[axis] - 1) * self.dilations[axis] - 1
            count = room // step + 1
            if ceil:
                count = minimum((room + step - 1) // step + 1, (size + before - 1) // step + 1)
            result.append(count)
        return tuple(result)


def window_sizes(
    rank: int, kernel: Shape, strides: tuple[int, ...] | None, dilations: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, strides and dilations for so many spatial dimensions, with their defaults."""
    if not all(isinstance(k, int) for k in kernel):
        raise Unsupported("the kernel's size is known only at run time", "fix it with --dim or --shape")
    sizes = tuple(static(k) for k in kernel)
    steps = tuple(strides or (1,) * rank)
    gaps = tuple(dilations or (1,) * rank)
    if {len(sizes), len(steps), len(gaps)} != {rank}:
        raise Invalid(f"kernel {sizes}, strides {steps} and dilations {gaps} do not fit {rank} dimensions")
    if min(*sizes, *steps, *gaps) < 1:
        raise Invalid(f"kernel {sizes}, strides {steps} and dilations {gaps} must be positive")
    _check_reach((*((size - 1) * gap + 1 for size, gap in zip(sizes, gaps, strict=True)), *steps))
    return sizes, steps, gaps


def _check_reach(distances: tuple[int, ...]) -> None:
    """Refuses windows wider than any tensor that they could move over."""
    farthest, most = max(distances, default=0), budgets().reach
    if farthest > most:
        why = f"the window reaches over {farthest} elements, {most} are the most"
        raise Unsupported(why, "correct kernel_shape, strides, dilations and pads")


def _same(
    space: Shape, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...], lower: bool
) -> tuple[int, ...]:
    """Padding that makes the output ceil(size / stride); an odd one goes after (SAME_UPPER) or before (SAME_LOWER)."""
    before, after = [], []
    for size, k, step, gap in zip(space, kernel, strides, dilations, strict=True):
        if step != 1 and not isinstance(size, int):
            raise PadsFollow()
        extent = (k - 1) * gap + 1
        total = extent - 1 if step == 1 else max(0, (-(-static(size) // step) - 1) * step + extent - static(size))
        small, large = total // 2, total - total // 2
        before.append(large if lower else small)
        after.append(small if lower else large)
    return (*before, *after)
