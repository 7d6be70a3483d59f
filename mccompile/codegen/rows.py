"""Row by row for kernels that only move elements: pointers to the row in hand, and operands of one row.

Invariant: what a kernel prints for one row of a call that does not run by rows is right for each row of one that does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..base.dims import static
from ..base.records import dataclass
from ..program.ir import Call, View
from .loops import index_c


@dataclass(frozen=True)
class RowByRow:
    """The views and pointers to print with; `pointers` are declared inside the loop over rows, if there is one."""

    outs: tuple[View, ...]
    ins: tuple[View, ...]
    out_names: tuple[str, ...]
    in_names: tuple[str, ...]
    pointers: tuple[str, ...]


def row_by_row(call: Call, out_names: Sequence[str], in_names: Sequence[str], whole: Collection[int] = ()) -> RowByRow:
    """`whole`: operands that every row needs all of."""
    axis = call.rows
    if axis is None:
        return RowByRow(call.outs, call.ins, tuple(out_names), tuple(in_names), ())
    pointers: list[str] = []

    def one_row(
        views: tuple[View, ...], names: Sequence[str], const: str, whole: Collection[int] = ()
    ) -> tuple[tuple[View, ...], tuple[str, ...]]:
        cut, found = [], []
        for number, (view, name) in enumerate(zip(views, names, strict=True)):
            if number in whole or len(view.shape) <= axis:  # a scalar beside the tensors
                cut.append(view)
                found.append(name)
                continue
            cut.append(view.sliced(axis, 0, 1))
            found.append(f"{name}_row")
            line = f"(row % {view.lines})" if view.lines else "row"
            at = index_c([static(view.strides[axis])], [line])
            pointers.append(f"{const}{view.buffer.dtype.storage_c} *{name}_row = {name} + {at};")
        return tuple(cut), tuple(found)

    outs, outs_found = one_row(call.outs, out_names, "")
    ins, ins_found = one_row(call.ins, in_names, "const ", whole)
    return RowByRow(outs, ins, outs_found, ins_found, tuple(pointers))
