"""pad in portable C: outer axes work out where they read (or fill a slab), the innermost goes in even segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import Dim, static, upper
from mccompile.base.dtypes import DTYPES, DType, f16, f32, i8, i64
from mccompile.base.marked import sized
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import Loop, index_c, memory_order
from mccompile.codegen.moves import copied_c, move_c, place, run_bytes_c
from mccompile.codegen.rows import row_by_row
from mccompile.codegen.traffic import COPIED, copied, has_traffic, moved, traffic
from mccompile.expr.dims_c import offset_c, size_c, stride_c
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.pad import Pad

Segment = tuple[Dim, Dim, Dim | None, int]  # first, count, first of x (or None: the constant), step


@dataclass
class Axis:
    size: Dim  # of x
    before: Dim
    after: Dim
    x_stride: Dim
    y_stride: Dim

    @property
    def extent(self) -> Dim:
        return self.before + self.size + self.after


class PadSegments(Kernel):
    kind = Pad
    branches = ""

    def cases(self) -> Sequence[Case]:
        def case(
            name: str, x: TensorType, before: tuple[int, ...], after: tuple[int, ...], mode: str, **options: Any
        ) -> Case:
            shape = tuple(b + static(dim) + a for b, dim, a in zip(before, x.shape, after, strict=True))
            value = (TensorType(x.dtype, ()),) if mode == "constant" and name != "zero" else ()
            return Case(name, Pad(before, after, mode), (x, *value), (TensorType(x.dtype, shape),), **options)

        image = TensorType(f32, (2, 3, 4, 5))
        before, after = (0, 0, 1, 2), (0, 0, 2, 3)
        turned = {0: (0, 2, 3, 1)}
        return [
            case("zero", image, before, after, "constant"),
            case("constant", image, before, after, "constant", permute=turned),
            case("channels_last", image, before, after, "constant", permute=turned, permute_outs=turned),
            case("channels", image, (0, 1, 0, 0), (1, 2, 0, 0), "constant"),
            *(case(mode, image, before, after, mode, permute=turned) for mode in ("edge", "reflect", "wrap")),
            case("edge_outer", TensorType(f16, (3, 2)), (2, 0), (3, 0), "edge"),
            case("reflect_far", TensorType(i8, (3, 3)), (5, 4), (7, 8), "reflect"),
            case("reflect_one", TensorType(i64, (1, 2)), (2, 0), (1, 0), "reflect"),
            case("wrap_far", TensorType(f32, (2, 3)), (5, 7), (4, 8), "wrap"),
            case("packed", TensorType(DTYPES["i4"], (3, 3)), (1, 1), (0, 2), "constant"),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        if reason:
            return No(reason)
        kind = call.of(Pad)
        pads = zip(kind.before, kind.after, strict=True)
        free = frozenset(axis for axis, pad in enumerate(pads) if pad == (0, 0))
        return Needs(rows=frozenset() if call.outs[0].buffer.dtype.is_packed else free)

    def cost(self, call: Call, target: Target) -> Cost:
        x, y = call.ins[0], call.outs[0]
        if call.of(Pad).mode != "constant":
            return Cost(upper(y.type.count) * target.machine.element, code=200)
        filled, inside = max(upper(y.type.count) - upper(x.type.count), 0), replace(y, shape=x.shape)
        if not has_traffic(target):
            return Cost(copied(inside, x, target) + filled * COPIED * target.machine.element, code=200)
        time = moved(inside, x, target) + filled / target.machine.stores
        return Cost(max(time, traffic((y, x), target)), code=200)

    def context(self, call: Call) -> Mapping[str, Any]:
        outs, ins = self.parameter_names(call)
        by_rows = row_by_row(call, outs, ins)
        x, y, kind = by_rows.ins[0], by_rows.outs[0], call.of(Pad)
        dtype = y.buffer.dtype
        names = list(by_rows.out_names), list(by_rows.in_names)
        axes = _merged(
            [
                Axis(dim, kind.before[axis], kind.after[axis], x.strides[axis], y.strides[axis])
                for axis, dim in ((axis, x.shape[axis]) for axis in memory_order(y))
            ],
            kind.mode,
        )
        if kind.mode != "constant" and not isinstance(axes[-1].size, int):
            axes.append(Axis(1, 0, 0, 1, 1))  # one element at a time: where segments end is not known
        outer, inner = axes[:-1], axes[-1]
        loops = []
        for number, axis in enumerate(outer):
            counters = [f"i{n}" for n in range(number + 1)]
            at = index_c([a.y_stride for a in outer[: number + 1]], counters)
            end = size_c(axis.before + axis.size)
            filled = axis.before + axis.after != 0 and kind.mode == "constant"
            loops.append(
                {
                    "counter": f"i{number}",
                    "extent": axis.extent,
                    "source": f"s{number}",
                    "place": _source_c(kind.mode, axis, f"i{number}") if axis.x_stride != 0 else "",
                    "inside": f"i{number} >= {size_c(axis.before)} && i{number} < {end}" if filled else "",
                    "slab": _slab(axes[number + 1 :], at, dtype, names[0][0]) if filled else None,
                }
            )
        y_at = index_c([a.y_stride for a in outer], [f"i{n}" for n in range(len(outer))])
        x_at = index_c([a.x_stride for a in outer], [f"s{n}" for n in range(len(outer))])
        segments = [_segment_c(part, inner, dtype, names, y_at, x_at) for part in _segments(kind.mode, inner)]
        fill = ""
        if kind.mode == "constant":
            fill = load_c(dtype, names[1][1], "0") if len(call.ins) == 2 else literal_c(0, dtype)
        return {
            "loops": loops,
            "segments": segments,
            "type": dtype.compute_c,
            "fill": fill,
            "pointers": by_rows.pointers,
        }

    def label(self, call: Call) -> str:
        return f"pad_{call.of(Pad).mode}"


def _merged(axes: Sequence[Axis], mode: str) -> list[Axis]:
    """Fewer axes: one without padding joins the axis before it where both tensors allow. A constant pads whole rows."""
    result: list[Axis] = []
    for axis in axes:
        last = result[-1] if result else None
        plain = axis.before == axis.after == 0
        if (
            last
            and plain
            and (mode == "constant" or last.before == last.after == 0)
            and last.x_stride == axis.x_stride * axis.size
            and last.y_stride == axis.y_stride * axis.size
        ):
            sizes = (last.size * axis.size, last.before * axis.size, last.after * axis.size)
            result[-1] = Axis(*sizes, axis.x_stride, axis.y_stride)
        elif not plain or axis.size != 1:
            result.append(axis)
    return result or [Axis(1, 0, 0, 1, 1)]


def _source_c(mode: str, axis: Axis, i: str) -> str:
    """C text of the position of x that position `i` of the result shows, for an axis that is not the innermost."""
    if axis.before == axis.after == 0:
        return i
    before, size = size_c(axis.before), size_c(axis.size)
    if mode == "edge":
        end, last = size_c(axis.before + axis.size), offset_c(axis.size - 1)
        return f"{i} < {before} ? 0 : {i} < {end} ? {i} - {before} : {last}"
    if mode == "constant":
        return f"{i} - {before}"
    if not isinstance(axis.size, int) or not isinstance(axis.before, int):
        period = size if mode == "wrap" else f"({size} > 1 ? 2 * ({size} - 1) : 1)"
        there = f"(({i} - {before}) % {period} + {period}) % {period}"
        return there if mode == "wrap" else f"{there} < {size} ? {there} : {period} - {there}"
    if mode == "wrap":
        return f"({i} + {sized(-axis.before % axis.size)}) % {size}"
    if axis.size == 1:
        return f"{i} * 0"
    turn = 2 * (axis.size - 1)
    there = f"({i} + {sized(-axis.before % turn)}) % {sized(turn)}"
    return f"{there} < {size} ? {there} : {sized(turn)} - {there}"


def _source(mode: str, axis: Axis, i: int) -> int:
    """The same as a number, where sizes are known."""
    size = static(axis.size)
    at = i - static(axis.before)
    if 0 <= at < size:
        return at
    if mode == "edge":
        return 0 if at < 0 else size - 1
    if mode == "wrap":
        return at % size
    period = max(2 * (size - 1), 1)
    return min(at % period, period - at % period) if size > 1 else 0


def _segments(mode: str, axis: Axis) -> list[Segment]:
    """The runs that make up the innermost axis."""
    runs: list[tuple[int, int, int, int]] = []
    if mode == "constant":
        end = axis.before + axis.size
        parts: list[Segment] = [(0, axis.before, None, 0), (axis.before, axis.size, 0, 1), (end, axis.after, None, 0)]
        return [part for part in parts if part[1] != 0]
    sources = [_source(mode, axis, i) for i in range(static(axis.extent))]
    for i, source in enumerate(sources):
        first, count, start, step = runs[-1] if runs else (0, 0, 0, 0)
        if count == 1 and abs(source - start) <= 1:
            runs[-1] = (first, 2, start, source - start)
        elif count > 1 and source == start + count * step:
            runs[-1] = (first, count + 1, start, step)
        else:
            runs.append((i, 1, source, 1))
    return list(runs)


def _segment_c(
    part: Segment, axis: Axis, dtype: DType, names: tuple[list[str], list[str]], y_at: str, x_at: str
) -> dict[str, Any]:
    first, count, source, step = part
    y, x = names[0][0], names[1][0]
    y_first = f"{y_at} + {offset_c(first * axis.y_stride)}".removeprefix("0 + ").removesuffix(" + 0")
    if source is None:
        return {"count": count, "statement": store_c(dtype, y, f"{y_first} + {_times('j', axis.y_stride)}", "fill")}
    x_first = f"{x_at} + {offset_c(source * axis.x_stride)}".removeprefix("0 + ").removesuffix(" + 0")
    x_first = x_first.replace("+ -", "- ")
    x_step = step * axis.x_stride
    if x_step == axis.y_stride == 1 and not dtype.is_packed:
        size = run_bytes_c(dtype, count)
        return {"count": 0, "statement": copied_c(place(y, y_first), place(x, x_first), size)}
    from_x = f"{x_first} + {_times('j', x_step)}".replace("+ -", "- ") if x_step != 0 else x_first
    return {"count": count, "statement": move_c(dtype, y, f"{y_first} + {_times('j', axis.y_stride)}", x, from_x)}


def _times(counter: str, stride: Dim) -> str:
    return counter if stride == 1 else f"{counter} * {stride_c(stride)}"


def _slab(axes: Sequence[Axis], at: str, dtype: DType, y: str) -> dict[str, Any]:
    """Loops that fill all of `axes` of the result."""
    spans: list[tuple[Dim, Dim]] = []
    for axis in axes:
        if spans and spans[-1][1] == axis.y_stride * axis.extent:
            spans[-1] = (spans[-1][0] * axis.extent, axis.y_stride)
        else:
            spans.append((axis.extent, axis.y_stride))
    loops = [Loop(f"f{number}", upper(extent), extent) for number, (extent, _) in enumerate(spans)]
    index = " + ".join([at, *(_times(loop.counter, stride) for loop, (_, stride) in zip(loops, spans, strict=True))])
    return {"loops": loops, "statement": store_c(dtype, y, index.removeprefix("0 + "), "fill")}
