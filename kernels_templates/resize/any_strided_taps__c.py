"""resize in portable C: for every element, a nest of loops over the taps of each resized axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f16, f32, f64, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, memory_order, nest
from mccompile.codegen.moves import along
from mccompile.codegen.traffic import AROUND, functions_called, has_traffic
from mccompile.codegen.windows import ring_row, ring_rows
from mccompile.expr.ir import Index, apply, cast, index, operand, walk
from mccompile.expr.scalar_c import cast_c, literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.resize import Resize

EACH = 7  # instructions of a tap: its place, its factor, the element, the sum, the loop


class ResizeTaps(Kernel):
    kind = Resize

    def cases(self) -> Sequence[Case]:
        def case(
            name: str, kind: Resize, x: TensorType, sizes: tuple[int, ...], *extra: TensorType, **options: Any
        ) -> Case:
            shape = list(x.shape)
            tables: list[TensorType] = []
            ranges = {}
            for axis, size, taps in zip(kind.axes, sizes, kind.taps, strict=True):
                ranges[1 + len(tables)] = (0.0, static(shape[axis]) - 1.0)
                tables += [TensorType(i32, (size, taps)), TensorType(kind.accumulator, (size, taps))]
                shape[axis] = size
            dtype = kind.epilogue.dtype if kind.epilogue else x.dtype
            return Case(name, kind, (x, *tables, *extra), (TensorType(dtype, tuple(shape)),), ranges=ranges, **options)

        image = TensorType(f32, (2, 3, 4, 5))
        last = {0: (0, 2, 3, 1)}
        plus = apply("add", operand(0, f32), operand(1, f32))
        counted = apply("add", operand(0, f32), cast(index(1), f32))
        return [
            case("bilinear", Resize((2, 3), (2, 2), f32), image, (7, 3)),
            case("channels_last", Resize((2, 3), (2, 2), f32), image, (5, 8), permute=last, permute_outs=last),
            case("cubic_1d", Resize((2,), (4,), f64), TensorType(f64, (1, 2, 5)), (9,)),
            case("three_axes", Resize((0, 1, 2), (2, 3, 1), f32), TensorType(f32, (2, 3, 4)), (3, 2, 5)),
            case("u8", Resize((1,), (2,), f32, cast(operand(0, f32), u8)), TensorType(u8, (3, 4)), (6,)),
            case("f16", Resize((0,), (2,), f32, cast(operand(0, f32), f16)), TensorType(f16, (4, 3)), (6,)),
            case("positions", Resize((1,), (2,), f32, counted), image, (6,), permute_outs=last),
            case("of_one", Resize((1,), (2,), f32), TensorType(f32, (3, 1)), (4,)),
            case("epilogue", Resize((1,), (2,), f32, plus), TensorType(f32, (3, 4)), (6,), TensorType(f32, (3, 6))),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        return No(reason) if reason else Needs(rows=frozenset(range(len(call.outs[0].shape))))

    def cost(self, call: Call, target: Target) -> Cost:
        if has_traffic(target):
            each = AROUND / 2 + len(call.ins) + functions_called(call)
            instructions = upper(call.macs) * EACH + upper(call.outs[0].type.count) * each
            return Cost(instructions / target.machine.issue, code=300)
        return Cost(upper(call.macs) * 0.5 * target.machine.element, code=300)

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(self.context(call)["unread"])

    def context(self, call: Call) -> Mapping[str, Any]:
        kind = call.kind
        assert isinstance(kind, Resize)
        x, y = call.ins[0], call.outs[0]
        (y_name,), in_names = self.parameter_names(call)
        shape = y.shape
        direct = along(x, [-1 if axis in kind.axes else axis for axis in range(len(shape))], shape)
        rows = [along(table, (axis, -1), shape) for axis, *pair in _tables(call) for table in pair]
        extras = call.ins[kind.fixed :]
        order = [axis for axis in memory_order(y) if axis != call.rows]
        whole = (y, direct, *rows, *extras)
        views = [view.permuted(order) for view in whole]
        indexed = any(isinstance(node, Index) for expr in kind.expressions() for node in walk(expr))
        loops = nest(views[0].shape, views, keep_axes=indexed)
        places = ["row" if axis == call.rows else loops.axes[order.index(axis)] for axis in range(len(shape))]

        def at(number: int) -> str:
            if call.rows is None:
                return loops.index(number)
            line = ring_row("row", whole[number].lines)
            return index_c([whole[number].strides[call.rows], 1], [line, loops.index(number)])

        accumulator = kind.accumulator
        sums = []
        unread: list[str] = []  # tables of positions on axes of one element
        before = at(1)
        for level, (axis, positions, weights) in enumerate(_tables(call)):
            number = 1 + 2 * level
            tap = f"t{level}"
            entry = index_c((1, positions.strides[1]), (at(1 + number), tap))
            weight = index_c((1, weights.strides[1]), (at(2 + number), tap))
            line = f"(mcc_index){in_names[number]}[{entry}]"
            ring = x.lines if axis == call.rows else 0
            step = index_c((x.strides[axis],), (f"({line} % {ring})" if ring else line,))
            place = f"{before} + {step}".removeprefix("0 + ")
            unread += [in_names[number]] if step == "0" else []
            sums.append(
                {"sum": f"s{level}", "tap": tap, "taps": kind.taps[level], "offset": f"o{level}", "place": place}
                | {"weight": f"{in_names[number + 1]}[{weight}]"}
            )
            before = f"o{level}"
        element = cast_c(load_c(x.buffer.dtype, in_names[0], before), x.buffer.dtype, accumulator)
        lines: list[str] = []
        value = "s0"
        if kind.epilogue is not None:
            names = in_names[kind.fixed :]
            start = 2 + len(rows)
            loads = [load_c(v.buffer.dtype, names[i], at(start + i)) for i, v in enumerate(extras)]
            lines, value = to_statements(kind.epilogue, ["s0", *loads], places)
        return {
            "by_rows": call.rows is not None,
            "rings": ring_rows("row", [y, *extras, *([direct] if call.rows not in kind.axes else [])]),
            "loops": loops.loops,
            "sums": sums,
            "unread": unread,
            "type": accumulator.compute_c,
            "zero": literal_c(0, accumulator),
            "element": element,
            "lines": lines,
            "store": store_c(y.buffer.dtype, y_name, at(0), value),
        }

    def label(self, call: Call) -> str:
        return "resize_" + "x".join(map(str, call.of(Resize).taps))


def _tables(call: Call) -> list[tuple[int, Any, Any]]:
    """Per resized axis: its number, the view of positions and that of weights."""
    return [(axis, call.ins[1 + 2 * n], call.ins[2 + 2 * n]) for n, axis in enumerate(call.of(Resize).axes)]
