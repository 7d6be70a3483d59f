"""Products of int8 matrices in dot products of vectors: what kernels share that have tiles of rows x vectors of
columns, with constant weights or with a matrix that is computed and packed first.

Zero points of a that are known only at run time are multiplied with sums of the weights, those of weights with sums of
the rows of a. Weights without a sign become weights with one whose zero point is 128 less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...base.dims import static
from ...base.dtypes import i8, u8
from ...base.marked import named
from ...kernels.api import static_views
from ...kernels.work import Units
from ...kinds.gemm import Gemm
from ...program.ir import Call, View
from ...targets.api import Target
from ..loops import index_c
from ..tiles import Range, is_constant
from ..vector.vector_groups import Groups
from ..vector.vector_tiles import SECOND_LEVEL, TileSize
from .dot_forms import form_in
from .dot_tiles import NUMBER, DotEpilogue, DotTile, Place, dot_refusal
from .zero_points import is_one_number, without_zero_points, zero_c

AHEAD = 2048  # bytes


def _only(number: int) -> str:
    return "0"


def products_refusal(call: Call, target: Target) -> str:
    """Why dot products of vectors do not multiply the matrices, whichever they are, or nothing."""
    a, b = call.ins[:2]
    reason = dot_refusal(target) or static_views(call)
    if reason:
        return reason
    if a.buffer.dtype not in (i8, u8) or b.buffer.dtype not in (i8, u8):
        return "operands are not 8-bit integers"
    if 0 in (*a.shape, *b.shape):
        return "it multiplies no elements"
    return "" if a.strides[-1] == 1 or a.shape[-1] == 1 else "rows of a are not contiguous"


def product_groups(
    call: Call,
    names: Sequence[str],
    weights: str,
    late: bool = False,
    base: Callable[[int], str] = _only,
    units: Units | None = None,
) -> list[tuple[str, list[tuple[str, DotTile]]]]:
    """Loops over tiles of columns, and in each those over rows with their tile. `weights`: C of the pointer to those
    that are packed; `late`: zero points of a are not in their sums yet. `base`: C of where the matrix of an operand
    begins (from 1 on), or of the result (0)."""
    size, (rows, columns) = TileSize(*call.blocks[:3]), call.outs[0].type.static_shape[-2:]
    groups = Groups(size, columns)
    whole = rows // size.points * size.points
    runs = [(0, size.points, whole)] if whole else []
    runs += [(whole, rows - whole, rows)] if whole < rows else []
    found, epilogue = [], epilogue_of_products(call)
    for header, part in zip(groups.headers("j", units), groups.parts(), strict=True):
        tiles = [(_rows(run), _tile(call, epilogue, run[1], size, part, names, weights, late, base)) for run in runs]
        found.append((header, tiles))
    return found


def _tile(
    call: Call,
    epilogue: DotEpilogue,
    points: int,
    size: TileSize,
    part: tuple[int, int, int, int],
    names: Sequence[str],
    weights: str,
    late: bool,
    base: Callable[[int], str],
) -> DotTile:
    kind, a = call.of(Gemm), call.ins[0]
    _, _, vectors, last = part

    def place(view: View, name: str, number: int) -> Place:
        row, column = (static(stride) for stride in view.strides[-2:])
        return Place(name, view, index_c([1, row, column], [base(number), "i", "j"]), row, column)

    more = zip(call.ins[kind.fixed :], names[kind.fixed :], strict=True)
    extras = [place(view, name, number) for number, (view, name) in enumerate(more, kind.fixed + 1)]
    y = place(call.outs[0], "y", 0)
    hoisted, results = epilogue.statements(size, points, vectors, last, y, extras)
    depth, row = static(a.shape[-1]), static(a.strides[-2])
    heads, form = 1 + late, form_in(call)
    return DotTile(
        size.lanes,
        points,
        vectors,
        index_c([1, -(-depth // form.depth) * form.depth + heads * NUMBER], [weights, "j"]),
        (Range("c", depth, step=form.depth),),
        index_c([1, 1, row], ["a", base(1), "i"]),
        row,
        a.buffer.dtype,
        hoisted,
        results,
        epilogue.kept(size.lanes, points, vectors, extras),
        _zeros(call, size.lanes, points, vectors, late),
        heads,
        AHEAD if depth * static(call.outs[0].shape[-1]) > SECOND_LEVEL else 0,
        form,
    )


def _rows(run: tuple[int, int, int]) -> str:
    first, points, end = run
    if end - first == points:
        return f"{{\nconst mcc_index i = {first};"
    return Range("i", end, str(first), step=points).header


def _zeros(call: Call, lanes: int, points: int, vectors: int, late: bool) -> tuple[str, ...]:
    """What zero points that are not in the sums yet take off them."""
    zero = b_zero_of(call) if call.of(Gemm).b_zero else None

    return without_zero_points(
        lanes,
        points,
        vectors,
        (lambda point: late_zero(call, point)) if late else None,
        (lambda point: f"{named('rest')}[{index_c([1], ['i'], point)}]") if has_sums(call) else None,
        lambda vector: zero_c(call.ins[1], zero, named("b_zero"), "j", lanes, vector),
    )


def late_zero(call: Call, point: int = 0) -> str:
    """C of the zero point of a row of a, so many after row i."""
    if not call.of(Gemm).a_zero:
        return "0"
    row = 0 if is_one_number(call.ins[2]) else static(call.ins[2].strides[-1])
    return f"{named('a_zero')}[{index_c([row], ['i'], point * row)}]"


def has_late_zero(call: Call) -> bool:
    """Is there a zero point of a that is not known when weights are packed?"""
    return call.of(Gemm).a_zero and not (is_constant(call.ins[2]) and is_one_number(call.ins[2]))


def has_sums(call: Call) -> bool:
    """Are the rows of a summed up, for zero points of the weights?"""
    return call.of(Gemm).b_zero or call.ins[1].buffer.dtype is u8


def b_zero_of(call: Call) -> View:
    return call.ins[call.of(Gemm).fixed - 1]


def epilogue_of_products(call: Call) -> DotEpilogue:
    kind = call.of(Gemm)
    return DotEpilogue(call, kind.fixed, len(call.outs[0].shape) - 1, kind.epilogue)
