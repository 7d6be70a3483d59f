"""unpool in portable C: zeros everywhere, then each element to its place; places outside are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import Dim, upper
from mccompile.base.dtypes import bf16, f16, f32, f64, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, nest
from mccompile.expr.dims_c import size_c
from mccompile.expr.scalar_c import load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.unpool import Unpool


class Scatter(Kernel):
    kind = Unpool

    def cases(self) -> Sequence[Case]:
        cases = []
        for name, inner, out, dtype in (
            ("same", (2, 3, 4, 6), (2, 3, 4, 6), f32),
            ("larger", (1, 2, 4, 4), (1, 2, 5, 7), f32),
            ("1d", (1, 2, 8), (1, 2, 8), f64),
            ("f16", (1, 2, 8), (1, 2, 9), f16),
            ("bf16", (1, 2, 8), (1, 2, 9), bf16),
        ):
            small = (*inner[:2], *(size // 2 for size in inner[2:]))
            total = 1
            for size in inner:
                total *= size
            ins = (TensorType(dtype, small), TensorType(i64, small))
            outs = (TensorType(dtype, out),)
            # Some places lie outside, on both sides.
            cases.append(Case(name, Unpool(inner, out), ins, outs, ranges={1: (-2.0, total + 1.0)}))
        return cases

    def match(self, call: Call, target: Target) -> No | Needs:
        """All sizes may be known at run time."""
        reason = supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * target.machine.element, code=200)

    def context(self, call: Call) -> Mapping[str, Any]:
        x, places = call.ins
        y, inner = call.outs[0], call.of(Unpool).inner
        clear = nest(y.shape, [y])
        walk = nest(x.shape, [x, places], prefix="j")
        total: Dim = 1
        axes: list[Mapping[str, Any]] = []
        strides: list[Dim] = []
        for axis in range(len(inner) - 1, -1, -1):
            size = inner[axis]
            if size != 1:
                axes.insert(0, {"name": f"i{axis}", "size": size_c(size), "step": size_c(total)})
                strides.insert(0, y.strides[axis])
            total = total * size
        to = index_c(strides, [axis["name"] for axis in axes])
        dtype = x.buffer.dtype
        return {
            "clear": clear.loops,
            "clear_store": store_c(dtype, "y", clear.index(0), "0"),
            "walk": walk.loops,
            "place": f"places[{walk.index(1)}]",
            "total": size_c(total),
            "axes": axes,
            "store": store_c(dtype, "y", to, load_c(dtype, "x", walk.index(0))),
        }
