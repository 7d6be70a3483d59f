"""reduce in portable C: a loop nest over the result, inside it one over the axes that are reduced. Cores that have
vectors also overlap additions: there the innermost loop adds up floats in chains, whose ends meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import product, upper
from mccompile.base.dtypes import bool_, f16, f32, f64, i32, u8, u64
from mccompile.base.tensor import TensorType
from mccompile.codegen.lanes import lanes_refusal
from mccompile.codegen.loops import index_c, magnitude, nest, size_name
from mccompile.codegen.rows import row_by_row
from mccompile.codegen.sums import levels
from mccompile.expr.ir import Expr, Index, apply, cast, index, literal, operand, walk
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    Target,
    View,
    elementwise_alias,
    static_views,
    supports_types,
)
from mccompile.kinds.reduce import Reduce

CHAINS = 4


def _has_index(expr: Expr | None) -> bool:
    return expr is not None and any(isinstance(node, Index) for node in walk(expr))


def _is_indexed(call: Call) -> bool:
    kind = call.of(Reduce)
    return _has_index(kind.element) or _has_index(kind.epilogue)


class StridedLoops(Kernel):
    kind = Reduce

    def cases(self) -> Sequence[Case]:
        x, t = operand(0, f32), TensorType(f32, (2, 3, 5, 7))
        mean = apply("div", operand(0, f32), literal(35, f32))
        scaled = apply("add", apply("mul", operand(0, f32), operand(1, f32)), operand(2, f32))
        distance = apply("abs", apply("sub", x, operand(1, f32)))
        columns, double = TensorType(f32, (2, 1, 5, 1)), TensorType(f64, (384,))
        channels, rows = TensorType(f32, (2, 3, 1, 1)), TensorType(f32, (2, 3, 5, 1))
        ints, bits, half = TensorType(i32, (4, 6)), TensorType(bool_, (4, 6)), TensorType(f16, (3, 300))
        weighted = apply("mul", x, cast(index(3), f32))
        whole = TensorType(i32, (3, 21))
        below = apply("exp_whole", apply("sub", cast(operand(1, i32), u64), cast(operand(0, i32), u64)))
        squares = apply("mul", *[cast(operand(0, i32), f64)] * 2)
        return [
            Case("mean_of_pictures", Reduce((2, 3), "add", f32, x, mean), (t,), (channels,)),
            Case("channels_last", Reduce((2, 3), "add", f32, x, mean), (t,), (channels,), permute={0: (0, 2, 3, 1)}),
            Case("epilogue", Reduce((3,), "add", f32, x, scaled), (t, rows, rows), (rows,)),
            Case("two_operands", Reduce((1, 3), "max", f32, distance, None, 2), (t, t), (columns,)),
            Case("positions", Reduce((3,), "add", f32, weighted), (t,), (rows,)),
            Case("all", Reduce((0, 1, 2, 3), "min", f32, x), (t,), (TensorType(f32, (1, 1, 1, 1)),)),
            Case("none", Reduce((), "add", f32, apply("mul", x, x)), (t,), (t,)),
            Case("scalar", Reduce((), "mul", f32, x), (TensorType(f32, ()),), (TensorType(f32, ()),)),
            Case("long", Reduce((1,), "add", f32, x), (TensorType(f32, (2, 20000)),), (TensorType(f32, (2, 1)),)),
            Case("doubles", Reduce((0,), "add", f64, operand(0, f64)), (double,), (TensorType(f64, (1,)),)),
            Case("halves", Reduce((1,), "add", f32, cast(operand(0, f16), f32), cast(operand(0, f32), f16)), (half,),
                 (TensorType(f16, (3, 1)),)),
            Case("wrap", Reduce((1,), "mul", i32, operand(0, i32)), (ints,), (TensorType(i32, (4, 1)),),
                 ranges={0: (-90000, 90000)}),
            Case("any", Reduce((0,), "or", bool_, operand(0, bool_)), (bits,), (TensorType(bool_, (1, 6)),)),
            Case("every", Reduce((0,), "and", bool_, operand(0, bool_)), (bits,), (TensorType(bool_, (1, 6)),)),
            Case("exponentials", Reduce((1,), "add", f64, below, None, 2), (whole,) * 2, (TensorType(f64, (3, 1)),),
                 repeated={1: (1,)}, ranges={0: (-90, 90), 1: (90, 91)}),
            Case("squares_of_whole", Reduce((0,), "add", f64, squares, cast(operand(0, f64), i32)),
                 (TensorType(i32, (300, 3)),), (TensorType(i32, (1, 3)),), ranges={0: (-90, 90)}),
            Case("bytes", Reduce((0,), "max", u8, operand(0, u8)), (TensorType(u8, (5, 3)),), (TensorType(u8, (1, 3)),),
                 ranges={0: (0, 255)}),
        ]  # fmt: skip

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        if reason:
            return No(reason)
        extras = range(call.of(Reduce).operands, len(call.ins))
        rows = frozenset(range(len(call.outs[0].shape))) - set(call.of(Reduce).axes)
        return Needs(
            alias={(0, i): 0 for i in extras if elementwise_alias(call, i)},
            symbols=True,
            blocks=(CHAINS,) if call.of(Reduce).accumulator.is_float and "vec" in target.isas else (),
            rows=frozenset() if _is_indexed(call) else rows,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.ins[0].type.count) * (1 + len(call.ins)) * target.machine.element, code=150)

    def vectorizes(self, call: Call, target: Target) -> bool:
        """Integers that lie side by side, in any order."""
        kind, x = call.of(Reduce), call.ins[0]
        if not kind.accumulator.is_integer or kind.operands != 1 or static_views(call, x):
            return False
        along = any(x.strides[axis] == 1 != x.shape[axis] for axis in kind.axes)
        return along and not lanes_refusal(target, [kind.element], [x.buffer.dtype])

    def context(self, call: Call) -> Mapping[str, Any]:
        kind = call.of(Reduce)
        by_rows = row_by_row(call, *self.parameter_names(call))
        out, outs, ins = by_rows.outs[0], by_rows.out_names, by_rows.in_names
        full, extras = by_rows.ins[: kind.operands], by_rows.ins[kind.operands :]
        # Elements are read in the order in which they lie in memory, as far as the order of axes can bring that about.
        reduced = sorted(kind.axes, key=lambda axis: (-magnitude(full[0].strides[axis]), axis))
        kept = [axis for axis in range(len(out.shape)) if axis not in kind.axes]
        indexed = _is_indexed(call)
        outer = nest([out.shape[a] for a in kept], [v.permuted(kept) for v in (out, *full, *extras)], indexed)
        inner = nest([full[0].shape[a] for a in reduced], [v.permuted(reduced) for v in full], indexed, prefix="r")
        axes = dict(zip([*kept, *reduced], [*outer.axes, *inner.axes], strict=True))
        positions = [axes[axis] for axis in range(len(axes))]

        def load(number: int, view: View) -> str:
            strides, counters = list(outer.strides[number + 1]), [loop.counter for loop in outer.loops]
            if number < kind.operands:
                strides += inner.strides[number]
                counters += [loop.counter for loop in inner.loops]
            return load_c(view.buffer.dtype, ins[number], index_c(strides, counters))

        loads = [load(number, view) for number, view in enumerate(by_rows.ins)]
        sums = levels(inner.loops, blocked=kind.combine == "add" and kind.accumulator.is_float)
        deepest = f"a{sums[-1].depth}" if sums else "a0"
        total = apply(kind.combine, operand(kind.operands, kind.accumulator), kind.element)
        chained = bool(call.blocks and inner.loops) and inner.loops[-1].extent >= 2 * CHAINS
        totals = [deepest, *(f"c{number}" for number in range(1, CHAINS) if chained)]
        stated = [to_statements(total, [*loads[: kind.operands], name], positions) for name in totals]
        joined = apply(kind.combine, operand(0, kind.accumulator), operand(1, kind.accumulator))
        epilogue = kind.epilogue or operand(0, kind.accumulator)
        after, result = to_statements(epilogue, ["a0", *loads[kind.operands :]], positions, "u")
        return {
            "outer": outer.loops,
            "by_rows": call.rows is not None,
            "pointers": by_rows.pointers,
            "levels": sums,
            "type": kind.accumulator.compute_c,
            "identity": literal_c(kind.identity(), kind.accumulator),
            "lines": stated[0][0],
            "chains": [(name, value) for name, (_, value) in zip(totals, stated, strict=True)],
            "counter": inner.loops[-1].counter if chained else "",
            "is_whole": chained and inner.loops[-1].count % CHAINS == 0,
            "joined": {
                name: to_statements(joined, [into, name])[1]
                for into, name in (
                    *((f"a{level.depth - 1}", f"a{level.depth}") for level in sums),
                    *((deepest, name) for name in totals[1:]),
                )
            },
            "after": after,
            "store": store_c(out.buffer.dtype, outs[0], outer.index(0), result),
        }

    def label(self, call: Call) -> str:
        kind = call.of(Reduce)
        count = size_name(product(call.ins[0].shape[axis] for axis in kind.axes))
        return f"reduce_{kind.combine}_{count}"
