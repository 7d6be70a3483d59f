"""scatter in portable C: x is copied (unless the result lies over it), then updates are put in row-major order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import DType, f16, f32, i8, i32, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, nest
from mccompile.codegen.moves import along, copy, move_c, position_c
from mccompile.expr.ir import Expr, apply, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, supports_types
from mccompile.kinds.scatter import Scatter


class ScatterRows(Kernel):
    kind = Scatter
    branches = "indices are compared with the sizes"

    def cases(self) -> Sequence[Case]:
        def reduce(function: str, dtype: DType) -> Expr:
            return apply(function, operand(0, dtype), operand(1, dtype))

        def case(name: str, kind: Scatter, x: TensorType, updates: tuple[int, ...], **options: Any) -> Case:
            indices = [TensorType(i32 if name == "add" else i64, updates)] * sum(axis < 0 for axis in kind.axes)
            return Case(name, kind, (x, TensorType(x.dtype, updates), *indices), (x,), **options)

        wild = {2: (-9.0, 9.0), 3: (-9.0, 9.0)}  # outside as well: the nearest element inside is meant
        return [
            case("rows", Scatter((-1, 1)), TensorType(f32, (4, 5)), (3, 5), ranges=wild),
            case("elements", Scatter((0, -1)), TensorType(i8, (3, 4)), (2, 7), ranges=wild),
            case("add", Scatter((-1, -2, 1), reduce("add", f32)), TensorType(f32, (4, 3, 2)), (6, 2), ranges=wild),
            case("max_f16", Scatter((-1,), reduce("max", f16)), TensorType(f16, (4,)), (6,), ranges=wild),
            case("of_one", Scatter((-1, 1)), TensorType(f32, (1, 3)), (2, 3), ranges=wild),
            case("mul", Scatter((-1, 1), reduce("mul", i32)), TensorType(i32, (3, 4)), (2, 4), permute={0: (1, 0)}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        if reason:
            return No(reason)
        return Needs(alias={(0, 0): 0} if elementwise_alias(call, 0) else {})

    def cost(self, call: Call, target: Target) -> Cost:
        elements = upper(call.ins[0].type.count) + upper(call.ins[1].type.count) * len(call.ins)
        return Cost(elements * target.machine.element, code=100 * len(call.ins))

    def unpassed(self, call: Call) -> frozenset[str]:
        """An index of an axis of one element moves nothing."""
        _, (_, _, *index_names) = self.parameter_names(call)
        axes = zip(call.of(Scatter).axes, call.outs[0].strides, strict=True)
        return frozenset(index_names[-1 - number] for number, stride in axes if number < 0 and stride == 0)

    def context(self, call: Call) -> Mapping[str, Any]:
        (x, updates, *indices), y, kind = call.ins, call.outs[0], call.of(Scatter)
        axes, reduction = kind.axes, kind.reduction
        (y_name,), (x_name, updates_name, *index_names) = self.parameter_names(call)
        unread = self.unpassed(call)
        loops = nest(updates.shape, [updates, along(y, axes, updates.shape), *indices])
        counters = [loop.counter for loop in loops.loops]
        used = (1 + level for strides in loops.strides[2:] for level, s in enumerate(strides) if s != 0)
        depth = max(used, default=0)
        lines = []
        to_index = list(counters)
        to_steps = list(loops.strides[1])
        for axis, number in enumerate(axes):
            if number < 0 and index_names[-1 - number] not in unread:
                load = load_c(indices[-1 - number].buffer.dtype, index_names[-1 - number], loops.index(1 - number))
                lines += position_c(f"p{axis}", load, x.shape[axis], in_range=False)
                to_index.append(f"p{axis}")
                to_steps.append(y.strides[axis])
        dtype, place = y.buffer.dtype, index_c(to_steps, to_index)
        if reduction is None:
            work = [move_c(dtype, y_name, place, updates_name, loops.index(0))]
        else:
            loads = [load_c(dtype, y_name, place), load_c(dtype, updates_name, loops.index(0))]
            work, value = to_statements(reduction, loads)
            work.append(store_c(dtype, y_name, place, value))
        return {
            "copy": copy(y, x, y_name, x_name),
            "x": x_name,
            "y": y_name,
            "type": dtype.storage_c,
            "loops": loops.loops[:depth],
            "lines": lines,
            "inner": loops.loops[depth:],
            "work": work,
        }

    def label(self, call: Call) -> str:
        return "scatter_" + "".join("i" if axis < 0 else str(axis) for axis in call.of(Scatter).axes)
