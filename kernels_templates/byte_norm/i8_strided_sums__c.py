"""byte_norm in portable C: two passes over each group, one root between them; the result may lie over x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import i8, u8
from mccompile.codegen.byte_norm import SQUARES, byte_norm_case, group_size, measured, normalized, summed
from mccompile.codegen.loops import index_c, size_name
from mccompile.codegen.sums import grouped
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias
from mccompile.kinds.byte_norm import LARGEST, ByteNorm


class StridedSums(Kernel):
    kind = ByteNorm

    def cases(self) -> Sequence[Case]:
        nhwc = {i: (0, 2, 3, 1) for i in (0, 3, 4)}
        space, case = {3: (0, 2, 3), 4: (0,)}, byte_norm_case
        return [
            case("i8", (5, 32), (1,), "standardize", i8, i8),
            case("u8", (3, 7), (1,), "standardize", u8, u8),
            case("rms", (3, 24), (1,), "rms", i8, u8),
            case("space", (2, 3, 5, 7), (2, 3), "standardize", u8, i8, permute=nhwc, repeated=space),
            case("narrow", (4, 16), (1,), "standardize", i8, i8, reach=(5, 7)),
            case("alike", (4, 16), (1,), "standardize", i8, i8, reach=(5, 5)),
            case("alike_no_epsilon", (4, 16), (1,), "rms", i8, i8, reach=(3, 3), epsilon=1),
            case("one", (4, 1), (1,), "standardize", i8, i8),
            case("long", (1, 5000), (1,), "standardize", i8, i8, repeated={3: (0,), 4: (0,)}),
            case("longest", (1, LARGEST), (1,), "standardize", u8, i8, repeated={3: (0, 1), 4: (0, 1)}),
            case("longest_extremes", (1, LARGEST), (1,), "rms", u8, i8, reach=(255, 255), repeated={3: (0, 1)}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        count = group_size(call)
        if not isinstance(count, int) or count > LARGEST:
            return No(f"groups of {count} elements, more than {LARGEST} or known only at run time")
        return Needs(alias={(0, 0): 0} if elementwise_alias(call, 0) else {}, symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.ins[0].type.count) * 6 * target.machine.element, code=400)

    def context(self, call: Call) -> Mapping[str, Any]:
        views = (call.outs[0], call.ins[3], call.ins[4], call.ins[0])
        _, outer, inner = grouped(call.of(ByteNorm).axes, views, views[-1])
        counters = [loop.counter for loop in (*outer.loops, *inner.loops)]
        places = [index_c([*outer.strides[i], *inner.strides[i]], counters) for i in range(4)]
        y, gain, bias, x = (f"{name}[{at}]" for name, at in zip(("y", "gain", "bias", "x"), places, strict=True))
        return {
            "outer": outer.loops,
            "inner": inner.loops,
            "centred": call.of(ByteNorm).measure == "standardize",
            "squares": SQUARES,
            "summed": summed(call, x, "sum", "squares"),
            "measured": measured(call, "sum", "squares"),
            "normalized": normalized(call, x, gain, bias, y),
        }

    def label(self, call: Call) -> str:
        return f"{call.of(ByteNorm).measure}_{size_name(group_size(call))}"
