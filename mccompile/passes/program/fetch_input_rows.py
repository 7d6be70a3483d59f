"""fetch_input_rows: inputs that a function of the user's program provides row by row (`--input NAME=rows`) become the
result of a call, which then runs row by row with its readers, like any other call.

The input itself is a buffer outside of the arena of which nothing is there; one call of the kind `fetch` reads it. Rows
are those of the picture: the axis along which convolutions, pools and their like go by rows, else the first with more
than one element. What is made has its rows one after the other, whatever the order of axes.
"""

from __future__ import annotations

from ...base.dtypes import string
from ...base.errors import Problem, WrongUse
from ...base.names import Names
from ...base.tensor import dense_strides
from ...expr.ir import operand
from ...kinds.fetch import Fetch
from ...kinds.map import Map
from ...program.ir import EXTERNAL, TEMPORARY, Buffer, Call, Item, Program, View, reads, walk
from ...program.relocate import Move
from ...program.taken_names import taken_names
from ..api import Context
from ..rows.row_chains import row_strides


def fetch_input_rows(program: Program, context: Context) -> None:
    names = taken_names(program)
    known = row_strides(program.body)
    for name, buffer in program.inputs:
        if name in context.memory.fetched:
            _check(name, buffer, context)
            _fetch(program, buffer, _axis(buffer, known.get(buffer)), names)


def _check(name: str, buffer: Buffer, context: Context) -> None:
    where, why, fix = f"--input {name}=rows", "", f"leave out rows for {name}"
    shape = buffer.shape
    if not buffer.type.is_static:
        why, fix = (
            f"it is {buffer.type}, and rows are of known sizes",
            "give each of its sizes one value: --shape or --dim",
        )
    elif buffer.dtype is string or buffer.dtype.is_packed:
        why = f"elements of {buffer.dtype} are not bytes of their own"
    elif sum(dim != 1 for dim in shape) == 0 or buffer.type.count == 0:
        why = f"{buffer.type} has no rows"
    elif len(shape) > 3 and shape[0] != 1:
        why, fix = f"it is a batch of {shape[0]} pictures", f"compile for one: --shape {name}=1,..."
    elif name in context.memory.external:
        why, fix = "--io says that it lies in memory", f"leave out --io {name}=external, or rows"
    if why:
        raise WrongUse(Problem(f"{name!r} cannot be fetched by rows", where, why, fix))


def _axis(buffer: Buffer, known: tuple[int, int] | None) -> int:
    """Of rows."""
    axes = range(len(buffer.shape))
    strides = dense_strides(buffer.shape)
    found = [axis for axis in axes if (strides[axis], buffer.shape[axis]) == known and buffer.shape[axis] != 1]
    return found[0] if found else next(axis for axis in axes if buffer.shape[axis] != 1)


def _fetch(program: Program, buffer: Buffer, axis: int, names: Names) -> None:
    """The buffer that was the input is what is made now, so whoever reads it need not know."""
    outside = Buffer(names.take(f"{buffer.name}_outside"), buffer.dtype, buffer.shape, EXTERNAL)
    position = next(i for i, (_, b) in enumerate(program.inputs) if b is buffer)
    program.inputs[position] = program.inputs[position][0], outside
    buffer.role, buffer.provenance = TEMPORARY, (buffer.name,)
    order = [axis, *(other for other in range(len(buffer.shape)) if other != axis)]
    rows = Buffer(names.take(f"{buffer.name}_rows"), buffer.dtype, tuple(buffer.shape[a] for a in order))
    rows.provenance = buffer.provenance
    result = rows.whole().permuted([order.index(a) for a in range(len(order))])
    made, copied = buffer.whole(), list[Item]()
    if not result.is_dense:  # rows would not lie one after the other
        made = result
        if not _read_elsewhere(program, buffer, Move(buffer.whole(), result)):
            copied = [Call(Map(operand(0, buffer.dtype)), (result,), (buffer.whole(),), buffer.provenance)]
    program.body[:0] = [Call(Fetch(axis), (outside.whole(),), (made,), buffer.provenance), *copied]


def _read_elsewhere(program: Program, buffer: Buffer, move: Move) -> bool:
    """Has all readers look at the elements where they are now; false, and nothing changes, where strides cannot say
    that for all of them."""
    calls = [item for item in program.body if isinstance(item, Call) and buffer in {v.buffer for v in item.ins}]
    alone = [view for item in walk(program.body) for view in reads(item) if view.buffer is buffer]
    mine = [view for call in calls for view in call.ins if view.buffer is buffer]
    handed_out = any(view.buffer is buffer for _, view in program.outputs)
    if handed_out or len(mine) != len(alone) or any(move.apply(view) is None for view in mine):
        return False

    def moved(view: View) -> View | None:
        return move.apply(view) if view.buffer is buffer else view

    for call in calls:
        call.ins = tuple(view for each in call.ins if (view := moved(each)) is not None)
    values = ((name, moved(view)) for name, view in program.values)
    program.values = [(name, view) for name, view in values if view is not None]
    return True
