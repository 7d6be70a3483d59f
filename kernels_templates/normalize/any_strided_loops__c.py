"""normalize in portable C: per group of elements two or three passes; the result may lie over the operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import Dim, product, upper
from mccompile.base.dtypes import f16, f32, f64, i8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import Loop, Nest, index_c, size_name
from mccompile.codegen.sums import grouped, levels
from mccompile.expr.ir import Index, apply, cast, literal, operand, size, walk
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, supports_types
from mccompile.kinds.normalize import Normalize


def group_size(call: Call) -> Dim:
    """How many elements are measured together."""
    return product(call.ins[0].shape[axis] for axis in call.of(Normalize).axes)


def _loops(call: Call) -> tuple[tuple[int, ...], Nest, Nest]:
    """The axes in the order of the loops; the loops over groups, and those inside of one."""
    indexed = any(isinstance(node, Index) for expr in call.of(Normalize).expressions() for node in walk(expr))
    return grouped(call.of(Normalize).axes, (call.outs[0], *call.ins), call.ins[0], indexed)


class StridedLoops(Kernel):
    kind = Normalize
    branches = "looks for the largest number, and takes powers or roots"

    def cases(self) -> Sequence[Case]:
        t, half, double = TensorType(f32, (2, 3, 5, 7)), TensorType(f16, (3, 9)), TensorType(f64, (4, 6))
        long = TensorType(f32, (2, 700))
        scaled = apply("add", apply("mul", operand(0, f32), operand(1, f32)), operand(2, f32))
        bounded = apply("max", operand(0, f32), literal(0.2, f32))
        to_half = cast(operand(0, f32), f16)
        stored = TensorType(i8, t.shape)
        off = apply("sub", operand(0, f32), operand(1, f32))
        read = apply("mul", cast(operand(0, i8), f32), operand(1, f32))
        more = apply("add", operand(0, f32), literal(1, f32))
        wide = {0: (-90.0, 90.0)}
        return [
            Case("softmax", Normalize((3,), "softmax", f32), (t,), (t,), ranges=wide),
            Case("softmax_of_channels", Normalize((1,), "softmax", f32), (t,), (t,), permute={0: (0, 2, 3, 1)}),
            Case("softmax_epilogue", Normalize((2, 3), "softmax", f32, 0.0, bounded), (t,), (t,), ranges=wide),
            Case("softmax_long", Normalize((1,), "softmax", f32), (long,), (long,)),
            Case("softmax_halves", Normalize((1,), "softmax", f32, 0.0, to_half), (half,), (half,)),
            Case("log_softmax", Normalize((1,), "log_softmax", f64), (double,), (double,), ranges=wide),
            Case("standardize", Normalize((2, 3), "standardize", f32, 1e-5, scaled), (t, t, t), (t,)),
            Case(
                "standardize_long", Normalize((1,), "standardize", f32, 1e-3), (long,), (long,), ranges={0: (1.0, 2.0)}
            ),
            Case("standardize_halves", Normalize((1,), "standardize", f32, 1e-5, to_half), (half,), (half,)),
            Case("standardize_far", Normalize((3,), "standardize", f32, 1e-3), (t,), (t,), ranges={0: (20.0, 20.0)}),
            Case("rms", Normalize((0, 3), "rms", f32, 1e-5), (t,), (t,)),
            Case("l1", Normalize((1,), "l1", f32), (t,), (t,)),
            Case("l2", Normalize((1,), "l2", f64), (double,), (double,)),
            Case("l2_of_zeros", Normalize((1,), "l2", f32), (t,), (t,), ranges={0: (0.0, 0.0)}),
            Case("softmax_of_differences", Normalize((3,), "softmax", f32, element=off, operands=2), (t, t), (t,)),
            Case("softmax_quantized", Normalize((3,), "softmax", f32, element=read, operands=2), (stored, t), (t,)),
            Case(
                "standardize_quantized",
                Normalize((2, 3), "standardize", f32, 1e-5, scaled, read, 2),
                (stored, t, t, t),
                (t,),
                permute={0: (0, 2, 3, 1)},
            ),
            Case("rms_of_differences", Normalize((3,), "rms", f32, 1e-5, None, off, 2), (t, t), (t,)),
            Case("log_of_differences", Normalize((3,), "log_softmax", f32, element=off, operands=2), (t, t), (t,)),
            Case("rms_of_squares", Normalize((1,), "rms", f32, 1e-5, None, apply("mul", more, more)), (t,), (t,)),
            Case("nothing_reduced", Normalize((), "softmax", f32), (t,), (t,)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if reason:
            return No(reason)
        order, _, _ = _loops(call)
        alias = {(0, i): 0 for i in range(len(call.ins)) if elementwise_alias(call, i, order=order)}
        return Needs(alias=alias, symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.ins[0].type.count) * 10 * target.machine.element, code=300)

    def headers(self, call: Call) -> frozenset[str]:
        has_exp = call.of(Normalize).measure in ("softmax", "log_softmax")
        return frozenset({"mcc_math.h", "math.h", *(["mcc_libm.h"] if has_exp else [])})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, out = call.of(Normalize), call.outs[0]
        outs, ins = self.parameter_names(call)
        views = (out, *call.ins)
        order, outer, inner = _loops(call)
        axes = dict(zip(order, [*outer.axes, *inner.axes], strict=True))
        counters = [loop.counter for loop in (*outer.loops, *inner.loops)]
        places = [index_c([*outer.strides[i], *inner.strides[i]], counters) for i in range(len(views))]
        loads = [load_c(view.buffer.dtype, ins[i], places[i + 1]) for i, view in enumerate(call.ins)]
        wide = kind.accumulator
        # Exponentials wait in the result where it holds them exactly, so that each is computed once.
        keeps = kind.measure == "softmax" and kind.epilogue is None and out.buffer.dtype is wide
        epilogue = kind.epilogue or operand(0, wide)
        indices = [axes[axis] for axis in range(len(axes))]
        lines, value = to_statements(epilogue, ["v", *loads[kind.operands :]], indices)
        reads, x = to_statements(kind.element or operand(0, wide), loads[: kind.operands], indices, local="u")
        loops = inner.loops or (Loop("r", 1),)
        sums = levels(loops, blocked=True)
        return {
            "outer": outer.loops,
            "inner": loops,
            "levels": sums,
            "depth": sums[-1].depth,
            "measure": kind.measure,
            "type": wide.compute_c,
            "T": wide.name,
            "f": "" if wide is f64 else "f",
            "zero": literal_c(0, wide),
            "one": literal_c(1, wide),
            "lowest": literal_c(wide.low, wide),
            "count": to_statements(cast(size(group_size(call)), wide), [])[1],
            "epsilon": literal_c(kind.epsilon, wide),
            "reads": reads,
            "element": x,
            "x": x if kind.element is None else f"({x})",  # the template computes with it
            "keeps": keeps,
            "kept": f"{outs[0]}[{places[0]}]",
            "lines": lines,
            "store": store_c(out.buffer.dtype, outs[0], places[0], value),
        }

    def label(self, call: Call) -> str:
        return f"{call.of(Normalize).measure}_{size_name(group_size(call))}"
