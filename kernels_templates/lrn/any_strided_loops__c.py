"""lrn in portable C: per channel the range of its neighbours, inside it the loops over space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import f16, f32, f64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, nest
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.lrn import Lrn


class StridedLoops(Kernel):
    kind = Lrn

    def cases(self) -> Sequence[Case]:
        t, half, double = TensorType(f32, (2, 7, 3, 5)), TensorType(f16, (1, 4, 6)), TensorType(f64, (2, 3))
        return [
            Case("odd", Lrn(3, 2e-4, 0.75, 1.0), (t,), (t,)),
            Case("even", Lrn(4, 0.5, 0.5, 2.0), (t,), (t,)),
            Case("channels_last", Lrn(5, 0.5, 0.75, 1.0), (t,), (t,), permute={0: (0, 2, 3, 1)}),
            Case("wider_than_channels", Lrn(9, 0.5, 0.75, 1.0), (double,), (double,)),
            Case("halves", Lrn(3, 0.5, 0.75, 1.0), (half,), (half,)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.macs) * 2 * target.machine.element, code=250)

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, out = call.of(Lrn), call.ins[0], call.outs[0]
        outs, ins = self.parameter_names(call)
        space = list(range(2, len(out.shape)))
        around = nest([out.shape[a] for a in space], [out.permuted(space), x.permuted(space)])
        counters = [loop.counter for loop in around.loops]
        dtype = x.buffer.dtype
        wide = f64 if dtype is f64 else f32
        steps = x.strides[:2]

        def load(channel: str) -> str:
            return load_c(dtype, ins[0], index_c([*steps, *around.strides[1]], ["n", channel, *counters]))

        place = index_c([*out.strides[:2], *around.strides[0]], ["n", "c", *counters])
        suffix = "" if wide is f64 else "f"
        return {
            "batch": x.shape[0],
            "channels": x.shape[1],
            "before": kind.before,
            "after": kind.after,
            "space": around.loops,
            "type": wide.compute_c,
            "neighbour": load("k"),
            "zero": literal_c(0, wide),
            "bias": literal_c(kind.bias, wide),
            "scale": literal_c(kind.alpha / kind.size, wide),
            "beta": literal_c(kind.beta, wide),
            "pow": f"pow{suffix}",
            "store": store_c(dtype, outs[0], place, f"{load('c')} / power"),
        }

    def label(self, call: Call) -> str:
        return "lrn"
