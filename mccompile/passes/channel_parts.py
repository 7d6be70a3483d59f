"""Selects channels of a call's operands and results, for passes that run calls by blocks of channels."""

from __future__ import annotations

from ..base.constant import Constant
from ..base.dims import static
from ..base.names import Names
from ..kernels.api import viewed
from ..program.ir import CONSTANT, Buffer, View


def like(view: View, axis: int, size: int, names: Names) -> View:
    """A buffer for so many channels of what lies as the view says."""
    shape = (*view.shape[:axis], size, *view.shape[axis + 1 :])
    order = sorted(range(len(shape)), key=lambda each: (-static(view.strides[each]), each))
    old = view.buffer
    made = Buffer(names.take(f"{old.name}_channels"), old.dtype, tuple(shape[each] for each in order))
    made.provenance = old.provenance
    return made.whole().permuted([order.index(each) for each in range(len(shape))])


def cut(view: View, axis: int, start: int, size: int, names: Names) -> View:
    """Some channels of an operand; constants are cut, as kernels may pack all that is in a buffer."""
    part = view.sliced(axis, start, size)
    if view.buffer.role != CONSTANT or view.buffer.constant is None or view.strides[axis] == 0:
        return part
    array = viewed(part, view.buffer.constant)
    once = array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in view.strides)]
    value = Constant.of(once.copy())
    name = names.take(f"{view.buffer.name}_channels")
    shape = value.type.static_shape
    made = Buffer(name, view.buffer.dtype, shape, CONSTANT, value, view.buffer.provenance)
    return made.whole().broadcast_to(part.shape)
