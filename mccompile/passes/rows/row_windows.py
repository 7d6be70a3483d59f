"""Which rows of the operands a row of the result needs, for kinds that state it: windows of convolutions and pools,
tables of Resize.

Invariant: a window may hold more rows than are read, never fewer.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...base.dims import static
from ...kinds.band_gemm import BandGemm
from ...kinds.bottleneck import Bottleneck
from ...kinds.concat import Concat
from ...kinds.conv import Conv
from ...kinds.conv_transpose import ConvTranspose
from ...kinds.dft import Dft
from ...kinds.gather import Gather
from ...kinds.gemm import Gemm
from ...kinds.lookup import Lookup
from ...kinds.map import Map
from ...kinds.pad import Pad
from ...kinds.pool import Pool
from ...kinds.reduce import Reduce
from ...kinds.resize import Resize
from ...program.ir import Buffer, Call, View
from .row_play import Window

AXIS = 2  # of rows: batch and channels come first


def pooled_whole(call: Call) -> bool:
    """Are all rows of the operand one window, and the result one row?"""
    kind = call.kind
    if not isinstance(kind, Pool) or static(call.outs[0].shape[AXIS]) != 1:
        return False
    return not any(kind.pads) and kind.kernel[0] == call.ins[0].shape[AXIS]


# A row of the result is made of the same row of operands.
FOLLOWING = (Map, Lookup, Concat, Pad, Reduce, Gemm, BandGemm, Dft)


def followers(call: Call) -> list[int]:
    """The operands that go by rows where the result does; every row needs the others as a whole."""
    kind = call.kind
    if isinstance(kind, Dft | Lookup):
        return [0]
    if isinstance(kind, Gemm | BandGemm):
        return [0, *range(kind.fixed, len(call.ins))]
    return list(range(len(call.ins)))


def axes_of_rows(call: Call) -> range | list[int] | None:
    """The axes that can be those of rows; None: any."""
    kind, rank = call.kind, len(call.outs[0].shape)
    if isinstance(kind, Dft):
        return range(rank - 2)
    if isinstance(kind, Gemm | BandGemm):
        return [rank - 2]
    return [axis for axis in range(rank) if axis not in kind.axes] if isinstance(kind, Reduce) else None


def windows_of(call: Call) -> list[Window] | None:
    """Of the operands that go by rows; None where nothing can be said."""
    kind = call.kind
    if pooled_whole(call):
        return [Window(0)]
    window = None
    if isinstance(kind, Conv):
        window = _sliding(static(call.ins[1].shape[AXIS]), kind)
    elif isinstance(kind, Bottleneck):
        window = _sliding(static(call.ins[1 + kind.counts[0]].shape[AXIS]), kind.slide)
    elif isinstance(kind, Pool):
        window = _sliding(kind.kernel[0], kind)
    elif isinstance(kind, ConvTranspose):
        window = _gathering(static(call.ins[1].shape[AXIS]), kind)
    elif isinstance(kind, Resize) and len(call.outs[0].shape) > AXIS + 1:
        window = _resized(call, kind)
    elif isinstance(kind, Gather) and len(call.outs[0].shape) > AXIS + 1:
        found = _gathered(call, kind)
        return None if found is None else [found]
    if window is None or not isinstance(kind, Conv | ConvTranspose | Bottleneck | Pool | Resize):
        return None
    return [window, *(Window(index) for index in range(kind.fixed, len(call.ins)))]


def _sliding(kernel: int, kind: Conv | Pool) -> Window:
    return Window(0, kind.strides[0], kind.pads[0], (kernel - 1) * kind.dilations[0] + 1)


def _gathering(kernel: int, kind: ConvTranspose) -> Window:
    """Row i of the operand and tap t give to row i * stride + t * dilation - pad."""
    reach = (kernel - 1) * kind.dilations[0]
    return Window(0, 1, reach - kind.pads[0], -(-reach // kind.strides[0]) + 1, kind.strides[0])


def _resized(call: Call, kind: Resize) -> Window | None:
    if AXIS not in kind.axes:
        return Window(0)
    number = kind.axes.index(AXIS)
    return _of_table(call, call.ins[1 + 2 * number].buffer, kind.taps[number])


def _gathered(call: Call, kind: Gather) -> Window | None:
    """Only the rows of x may follow those of the result, and only one index may count with them."""
    if len(kind.axes) <= AXIS or AXIS in (*kind.axes[:AXIS], *kind.axes[AXIS + 1 :]):
        return None
    along = [view for view in call.ins[1:] if view.strides[AXIS] != 0]
    if kind.axes[AXIS] == AXIS:
        return None if along else Window(0)
    table = call.ins[-kind.axes[AXIS]] if kind.axes[AXIS] < 0 and kind.in_range else None
    if table is None or along != [table] or _goes_across(table):
        return None
    return _of_table(call, table.buffer, 1)


def _goes_across(table: View) -> bool:
    return any(stride != 0 for axis, stride in enumerate(table.strides) if axis != AXIS)


def _of_table(call: Call, table: Buffer, taps: int) -> Window | None:
    """A window that holds all rows that a table names for each row; none where the table is computed at run time."""
    count, size = static(call.outs[0].shape[AXIS]), static(call.ins[0].shape[AXIS])
    if table.constant is None or count == 0 or table.constant.array.size != count * taps:
        return None
    positions = table.constant.array.reshape(count, taps).astype(np.int64)
    slopes = [Fraction(size, count), Fraction(size - 1, max(count - 1, 1))]
    return min((_over(positions, slope) for slope in slopes), key=lambda window: window.size)


def _over(positions: np.ndarray, slope: Fraction) -> Window:
    """The smallest window of a slope over all of them."""
    first, end = positions.min(axis=1), positions.max(axis=1) + 1
    reached = np.arange(len(positions)) * slope.numerator
    pad = int((reached - slope.denominator * (first + 1)).max()) + 1
    size = int((end - (reached - pad) // slope.denominator).max())
    return Window(0, slope.numerator, pad, size, slope.denominator)
