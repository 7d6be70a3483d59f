"""gather in portable C: positions are read where indices change, and below that elements are copied in runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import DTYPES, f16, f32, f64, i8, i32, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, memory_order, nest
from mccompile.codegen.moves import along, copied_c, move_c, place, position_c, run_bytes_c
from mccompile.codegen.windows import ring_row, ring_rows
from mccompile.expr.scalar_c import load_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.gather import Gather


class GatherRows(Kernel):
    kind = Gather
    branches = "indices are compared with the sizes"

    def cases(self) -> Sequence[Case]:
        def case(name: str, kind: Gather, x: TensorType, y: tuple[int, ...], **options: Any) -> Case:
            indices = [TensorType(i64 if name != "elements" else i32, y)] * sum(axis < 0 for axis in kind.axes)
            return Case(name, kind, (x, *indices), (TensorType(x.dtype, y),), **options)

        x = TensorType(f32, (4, 5, 6))
        wild = {1: (-9.0, 9.0), 2: (-9.0, 9.0)}  # outside as well: the nearest element inside is taken
        turned = {0: (1, 0), 1: (1, 0)}
        return [
            case("rows", Gather((-1, 1, 2)), x, (3, 5, 6), ranges=wild),
            case("middle", Gather((0, -1, 3)), TensorType(f16, (2, 5, 3)), (2, 2, 3, 3), ranges=wild),
            case("elements", Gather((0, -1)), TensorType(i8, (3, 4)), (2, 7), ranges=wild),
            case("transposed", Gather((-1, 1)), TensorType(f64, (4, 5)), (3, 5), permute=turned, ranges=wild),
            case("turned_out", Gather((0, -1, 3)), x, (4, 2, 3, 6), permute_outs={0: (0, 3, 1, 2)}, ranges=wild),
            case("two", Gather((-2, 0, -1)), x, (5, 7), ranges=wild),
            case("packed", Gather((-1, 1)), TensorType(DTYPES["u4"], (4, 3)), (5, 3), ranges=wild),
            case("in_range", Gather((0, -1), in_range=True), TensorType(f32, (2, 3)), (2, 5), ranges={1: (0.0, 2.0)}),
            case("of_one", Gather((-1, 1)), TensorType(f32, (1, 3)), (4, 3), ranges=wild),
            case("scalar", Gather((-1,)), TensorType(f32, (4,)), (), ranges=wild),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        return No(reason) if reason else Needs(symbols=True, rows=frozenset(range(len(call.outs[0].shape))))

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * len(call.ins) * target.machine.element, code=80 * len(call.ins))

    def unpassed(self, call: Call) -> frozenset[str]:
        """An index of an axis of one element moves nothing."""
        _, (_, *index_names) = self.parameter_names(call)
        axes = zip(call.of(Gather).axes, call.ins[0].strides, strict=True)
        return frozenset(index_names[-1 - number] for number, stride in axes if number < 0 and stride == 0)

    def context(self, call: Call) -> Mapping[str, Any]:
        x, y, indices, axes = call.ins[0], call.outs[0], call.ins[1:], call.of(Gather).axes
        (y_name,), (x_name, *index_names) = self.parameter_names(call)
        unread = self.unpassed(call)
        order = [axis for axis in memory_order(y) if axis != call.rows]
        whole = (y, along(x, axes, y.shape), *indices)
        views = [view.permuted(order) for view in whole]
        loops = nest(views[0].shape, views)
        counters = [loop.counter for loop in loops.loops]
        rows = [(view.strides[call.rows], ring_row("row", view.lines)) for view in whole if call.rows is not None]

        def at(number: int, used: int) -> str:
            """Of the outermost so many loops."""
            pairs = [*rows[number : number + 1], *zip(loops.strides[number][:used], counters, strict=False)]
            return index_c([step for step, _ in pairs], [counter for _, counter in pairs])

        # Indices change along the outer loops only; from there on elements lie evenly.
        depth = max((1 + level for strides in loops.strides[2:] for level, s in enumerate(strides) if s), default=0)
        lines = []
        steps = []
        for axis, number in enumerate(axes):
            if number < 0 and index_names[-1 - number] not in unread:
                view, operand = indices[-1 - number], 1 - number
                load = load_c(view.buffer.dtype, index_names[-1 - number], at(operand, len(counters)))
                lines += position_c(f"p{axis}", load, x.shape[axis], call.of(Gather).in_range)
                ring = x.lines if call.rows is not None and indices[-1 - number].strides[call.rows] != 0 else 0
                steps.append((f"(p{axis} % {ring})" if ring else f"p{axis}", x.strides[axis]))
        from_index = [at(1, depth), *(name for name, _ in steps)]
        from_steps = [1, *(step for _, step in steps)]
        inner = loops.loops[depth:]
        dtype = y.buffer.dtype
        if len(inner) == 1 and loops.strides[0][-1] == loops.strides[1][-1] == 1 and not dtype.is_packed:
            target = place(y_name, at(0, len(counters) - 1))
            origin = place(x_name, index_c(from_steps, from_index))
            statement = copied_c(target, origin, run_bytes_c(dtype, inner[0].count))
            inner = ()
        else:
            from_index += counters[depth:]
            from_steps += loops.strides[1][depth:]
            statement = move_c(dtype, y_name, at(0, len(counters)), x_name, index_c(from_steps, from_index))
        return {
            "by_rows": call.rows is not None,
            "rings": ring_rows("row", [y, *([x] if any(call.rows == axis for axis in axes) else [])]),
            "loops": loops.loops[:depth],
            "lines": lines,
            "inner": inner,
            "statement": statement,
        }

    def label(self, call: Call) -> str:
        return "gather_" + "".join("i" if axis < 0 else str(axis) for axis in call.of(Gather).axes)
