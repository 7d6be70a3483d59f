"""det in portable C: elimination with row pivots, in a copy of each matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import DType, bf16, f16, f32, f64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, nest
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, supports_types
from mccompile.kinds.det import Det


class DetElimination(Kernel):
    kind = Det

    def cases(self) -> Sequence[Case]:
        def case(name: str, dtype: DType, shape: tuple[int, ...], **options: Any) -> Case:
            return Case(name, Det(), (TensorType(dtype, shape),), (TensorType(dtype, shape[:-2]),), **options)

        return [
            case("one", f32, (5, 5)),
            case("several", f32, (2, 3, 4, 4), permute={0: (0, 3, 1, 2)}),
            case("of_one", f32, (3, 1, 1)),
            case("two", f64, (7, 2, 2), permute={0: (2, 1, 0)}),
            case("singular", f32, (2, 3, 3), values={0: np.ones((2, 3, 3), np.float32)}),
            case("f16", f16, (3, 3)),
            case("bf16", bf16, (2, 2, 2)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        x = call.ins[0]
        unknown = "" if isinstance(x.shape[-1], int) else f"the size {x.shape[-1]} is known only at run time"
        if reason := unknown or supports_types(call):
            return No(reason)
        return Needs(scratch=_work(x).nbytes(static(x.shape[-1]) ** 2))

    def cost(self, call: Call, target: Target) -> Cost:
        size = static(call.ins[0].shape[-1])
        return Cost(upper(call.outs[0].type.count) * (size**3 / 3 + size**2) * 2 * target.machine.element, code=500)

    def context(self, call: Call) -> Mapping[str, Any]:
        x, y = call.ins[0], call.outs[0]
        outer = list(range(len(y.shape)))
        around = nest(y.shape, [y, x.permuted([*outer, len(outer), len(outer) + 1])])
        counters = [loop.counter for loop in around.loops]
        source = index_c([*around.strides[1], *x.strides[-2:]], [*counters, "row", "column"])
        work = _work(x)
        return {
            "loops": around.loops,
            "size": static(x.shape[-1]),
            "type": work.compute_c,
            "suffix": "f" if work is f32 else "",
            "zero": literal_c(0, work),
            "one": literal_c(1, work),
            "load": load_c(x.buffer.dtype, "x", source),
            "store": store_c(y.buffer.dtype, "y", around.index(0), "det"),
        }

    def label(self, call: Call) -> str:
        size = static(call.ins[0].shape[-1])
        return f"det_{size}x{size}"


def _work(x: View) -> DType:
    return f64 if x.buffer.dtype is f64 else f32
