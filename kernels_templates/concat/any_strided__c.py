"""concat in portable C: each operand copied to its place, runs that lie together with memcpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import Dim, static
from mccompile.base.dtypes import DTYPES, f16, f32, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.moves import copy
from mccompile.codegen.rows import row_by_row
from mccompile.codegen.traffic import copied, has_traffic, moved, traffic
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.concat import Concat


class ConcatStrided(Kernel):
    kind = Concat
    branches = ""

    def cases(self) -> Sequence[Case]:
        def case(name: str, axis: int, *parts: TensorType, in_turns: bool = False, **options: Any) -> Case:
            shape = list(parts[0].shape)
            shape[axis] = sum(static(part.shape[axis]) for part in parts)
            return Case(name, Concat(axis, in_turns), parts, (TensorType(parts[0].dtype, tuple(shape)),), **options)

        last = (0, 2, 3, 1)
        i4 = DTYPES["i4"]
        images = [TensorType(f32, (2, channels, 5, 7)) for channels in (3, 1, 4)]
        return [
            case("channels", 1, *images),
            case("channels_last", 1, *images, permute={0: last, 2: last}, permute_outs={0: last}),
            case("last_axis", 2, TensorType(f16, (2, 3, 5)), TensorType(f16, (2, 3, 1))),
            case("transposed", 0, TensorType(u8, (2, 3)), TensorType(u8, (4, 3)), permute={1: (1, 0)}),
            case("vectors", 0, TensorType(f32, (1,)), TensorType(f32, (1,))),
            case("in_turns", 2, *(TensorType(f32, (2, 3, rows, 4)) for rows in (3, 3, 2)), in_turns=True),
            case("packed_in_turns", 1, TensorType(i4, (3, 3)), TensorType(i4, (3, 2)), in_turns=True),
            case("packed", 1, TensorType(i4, (3, 3)), TensorType(i4, (3, 2))),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        if reason:
            return No(reason)
        packed = call.outs[0].buffer.dtype.is_packed
        return Needs(rows=frozenset() if packed else frozenset(range(len(call.outs[0].shape))) - {call.of(Concat).axis})

    def cost(self, call: Call, target: Target) -> Cost:
        code = 40 * len(call.ins)
        y, axis = call.outs[0], call.of(Concat).axis
        step = len(call.ins) if call.of(Concat).in_turns else 1
        time = 0.0
        for x in call.ins:
            part = y.sliced(axis, 0, x.shape[axis], step)
            time += moved(part, x, target) if has_traffic(target) else copied(part, x, target)
        return Cost(max(time, traffic((y, *call.ins), target)) if has_traffic(target) else time, code=code)

    def context(self, call: Call) -> Mapping[str, Any]:
        by_rows = row_by_row(call, *self.parameter_names(call))
        y, axis = by_rows.outs[0], call.of(Concat).axis
        outs, ins = by_rows.out_names, by_rows.in_names
        copies = []
        first: Dim = 0
        step = len(ins) if call.of(Concat).in_turns else 1
        for name, x in zip(ins, by_rows.ins, strict=True):
            part = y.sliced(axis, 0, x.shape[axis], step)
            start = first * y.strides[axis]
            copies.append(copy(part, x, outs[0], name, start))
            first = first + (1 if call.of(Concat).in_turns else x.shape[axis])
        return {"copies": copies, "pointers": by_rows.pointers}

    def label(self, call: Call) -> str:
        return f"concat_{len(call.ins)}"
