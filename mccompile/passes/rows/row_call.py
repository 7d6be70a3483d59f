"""A call that can run row by row, and what follows from its views: computed once, for many chains."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from ...base.dims import static
from ...base.records import dataclass
from ...kinds.transfer import Transfer
from ...program.ir import CONSTANT, Buffer, Call, View
from ...program.relocate import covers_in_any_order
from .row_play import Feeds, Window
from .row_windows import AXIS


@dataclass(frozen=True)
class RowCall:
    """A call that can run row by row."""

    call: Call
    axis: int  # of the result
    height: int
    windows: tuple[Window, ...]  # of the operands whose rows are known
    kernel: str
    scratch: tuple[int, int]  # bytes and alignment
    alias: frozenset[int]  # operands that the result may be written over
    time: float  # of all of it, call by call
    fewest: int = 1  # rows that it makes at a time
    most: int = sys.maxsize  # that it may make at a time
    takes_all: bool = False  # its rows are those of the operand, and the result is there after the last: ends a chain

    def saved(self, overhead: float) -> float:
        """Cycles that two rows at a time save: half of the calls, and what each of these looks at again that the one
        before it has looked at."""
        again = max(((w.size - w.stride / w.parts) / w.size for w in self.windows), default=0.0)
        return overhead * self.height / 2 + self.time * max(0.0, again) / 2


def comes_early(call: RowCall) -> bool:
    """Are the rows that it copied last on their way yet?"""
    return isinstance(call.call.kind, Transfer) and call.call.kind.early


@dataclass(frozen=True)
class RowFacts:
    """Of a call as it is when chains are played."""

    result: Buffer
    result_bytes: int
    covers: bool  # does the result fill its buffer?
    row: int  # bytes of a row of the result
    operands: tuple[Buffer, ...]
    outside: tuple[tuple[Buffer, Window], ...]  # that are read by windows, without constants
    folded: frozenset[Buffer]  # operands whose rows share elements
    whole: frozenset[Buffer]  # operands that every row reads all of
    rows: dict[int, int]  # bytes of a row of each operand that is read by a window

    @staticmethod
    def of(call: RowCall) -> RowFacts:
        out, ins = call.call.outs[0], call.call.ins
        windows = [(window, ins[window.operand]) for window in call.windows]
        return RowFacts(
            out.buffer,
            out.buffer.max_bytes,
            covers_in_any_order(out),
            _row_bytes(out, call.axis),
            tuple(view.buffer for view in ins),
            tuple((view.buffer, window) for window, view in windows if view.buffer.role != CONSTANT),
            frozenset(view.buffer for view in ins if len(view.shape) > call.axis and _overlaps(view, call.axis)),
            frozenset(_read_whole(call)),
            {window.operand: _row_bytes(view, operand_axis(call, window)) for window, view in windows},
        )


def read_row_bytes(buffer: Buffer, users: Feeds, facts: Sequence[RowFacts], readers: int) -> int:
    """Bytes of a row of an operand from outside; 0 where somebody does not read it by rows. `readers`: how many
    operands it is."""
    sizes = {facts[number].rows[window.operand] for number, window in users}
    return sizes.pop() if len(sizes) == 1 and readers == len(users) and buffer.role != CONSTANT else 0


def _read_whole(call: RowCall) -> Iterator[Buffer]:
    by_rows = {window.operand for window in call.windows}
    return (view.buffer for number, view in enumerate(call.call.ins) if number not in by_rows)


def _row_bytes(view: View, axis: int) -> int:
    """Bytes of a row, where a view shows whole rows of its buffer, one after the other; else 0."""
    size = static(view.strides[axis]) * view.buffer.dtype.bits // 8
    return size if covers_in_any_order(view) and size * static(view.shape[axis]) == view.buffer.type.max_bytes else 0


def _overlaps(view: View, axis: int) -> bool:
    """Do rows share elements, as frames of a signal do?"""
    others = (a for a in range(len(view.shape)) if a != axis)
    reach = sum((static(view.shape[a]) - 1) * abs(static(view.strides[a])) for a in others)
    return static(view.shape[axis]) > 1 and 0 < static(view.strides[axis]) <= reach


def rows_at_a_time(call: RowCall, window: Window, height: int) -> int:
    """How many rows of an operand each step makes of whatever makes all in `height` steps: of a repeated picture, all
    that are alike."""
    rows = static(call.call.ins[window.operand].shape[operand_axis(call, window)])
    return rows // height if rows % height == 0 else 1


def operand_axis(call: RowCall, window: Window) -> int:
    """The axis of rows of an operand: that of the result, but for what is pooled as a whole."""
    return AXIS if call.takes_all else call.axis
