"""The sliding window that convolutions and pools share: strides, dilations and pads with every `auto_pad` worked out."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.dims import Dim, static
from ..base.tensor import Shape
from .api import Invalid, Unsupported


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
    ) -> Window:
        """From the attributes as ONNX has them; `space` is the spatial part of the input's shape."""
        rank = len(space)
        if not all(isinstance(k, int) for k in kernel):
            raise Unsupported("the kernel's size is known only at run time", "fix it with --dim or --shape")
        sizes = tuple(static(k) for k in kernel)
        steps = tuple(strides or (1,) * rank)
        gaps = tuple(dilations or (1,) * rank)
        around = tuple(pads or (0,) * (2 * rank))
        if len(sizes) != rank or len(steps) != rank or len(gaps) != rank or len(around) != 2 * rank:
            raise Invalid(f"kernel {sizes}, strides {steps}, dilations {gaps} and pads {around} do not fit {rank} dimensions")
        if min((*sizes, *steps, *gaps), default=1) < 1:
            raise Invalid(f"kernel {sizes}, strides {steps} and dilations {gaps} must be positive")
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            around = _same(space, sizes, steps, gaps, lower=auto_pad == "SAME_LOWER")
        elif auto_pad == "VALID":
            around = (0,) * (2 * rank)
        elif auto_pad not in ("NOTSET", ""):
            raise Invalid(f"auto_pad {auto_pad!r} is not NOTSET, SAME_UPPER, SAME_LOWER or VALID")
        window = Window(sizes, steps, gaps, around)
        for dim, size in zip(window.out_space(space), space, strict=True):
            if isinstance(dim, int) and dim < 0:
                raise Invalid(f"a window of {sizes} does not fit into {size}")
        return window

    def out_space(self, space: Shape, ceil: bool = False) -> Shape:
        """How often the window fits along each axis; with `ceil` a last window that hangs over is counted if it starts inside."""
        rank = len(space)
        result: list[Dim] = []
        for axis, size in enumerate(space):
            before, after, step = self.pads[axis], self.pads[axis + rank], self.strides[axis]
            room = size + before + after - (self.kernel[axis] - 1) * self.dilations[axis] - 1
            count = (room + (step - 1 if ceil else 0)) // step + 1
            if ceil and isinstance(count, int) and (count - 1) * step >= static(size) + before:
                count -= 1
            result.append(count)
        return tuple(result)


def _same(
    space: Shape, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...], lower: bool
) -> tuple[int, ...]:
    """Padding that makes the output ceil(size / stride); an odd one goes after (SAME_UPPER) or before (SAME_LOWER)."""
    before, after = [], []
    for size, k, step, gap in zip(space, kernel, strides, dilations, strict=True):
        if step != 1 and not isinstance(size, int):
            raise Unsupported("auto_pad with a stride over a free dimension", "fix the dimension with --dim or --shape")
        extent = (k - 1) * gap + 1
        total = extent - 1 if step == 1 else max(0, (-(-static(size) // step) - 1) * step + extent - static(size))
        small, large = total // 2, total - total // 2
        before.append(large if lower else small)
        after.append(small if lower else large)
    return (*before, *after)
