"""reinterpret in portable C: elements copied byte by byte, which every compiler makes one move of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import DTYPES, DType, f32, f64, i8, i16, i32, i64, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import nest
from mccompile.codegen.moves import copied_c, place
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.reinterpret import Reinterpret


class ReinterpretLoops(Kernel):
    kind = Reinterpret
    branches = ""

    def cases(self) -> Sequence[Case]:
        def case(name: str, x: DType, y: DType, shape: tuple[int, ...], **options: Any) -> Case:
            return Case(name, Reinterpret(), (TensorType(x, shape),), (TensorType(y, shape),), **options)

        return [
            case("floats", f32, i32, (2, 3)),
            case("doubles", i64, f64, (5,)),
            case("halves", i16, DTYPES["f16"], (4, 3), permute={0: (1, 0)}),
            case("bytes", i8, u8, ()),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if not reason and any(view.buffer.dtype.is_packed for view in (*call.ins, *call.outs)):
            reason = "elements share bytes"
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * target.machine.element, code=60)

    def context(self, call: Call) -> Mapping[str, Any]:
        loops = nest(call.outs[0].shape, [call.outs[0], call.ins[0]])
        size = call.ins[0].buffer.dtype.bits // 8
        move = copied_c(place("y", loops.index(0)), place("x", loops.index(1)), str(size))
        return {"loops": loops.loops, "move": move}
