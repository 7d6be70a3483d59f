"""byte_norm in portable C: two passes over each group, one root between them; the result may lie over x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import Dim, product, upper
from mccompile.base.dtypes import DType, i8, i32, i64, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, size_name
from mccompile.codegen.sums import grouped
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias
from mccompile.kinds.byte_norm import LARGEST, ByteNorm, Precision

MOST_MOVED = 30  # by as many bits an i32 is moved up at most


class StridedSums(Kernel):
    kind = ByteNorm

    def cases(self) -> Sequence[Case]:
        nhwc = {i: (0, 2, 3, 1) for i in (0, 3, 4)}
        return [
            _case("i8", (5, 32), (1,), "standardize", i8, i8),
            _case("u8", (3, 7), (1,), "standardize", u8, u8),
            _case("rms", (3, 24), (1,), "rms", i8, u8),
            _case("space", (2, 3, 5, 7), (2, 3), "standardize", u8, i8, permute=nhwc, repeated={3: (0, 2, 3), 4: (0,)}),
            _case("narrow", (4, 16), (1,), "standardize", i8, i8, reach=(5, 7)),
            _case("alike", (4, 16), (1,), "standardize", i8, i8, reach=(5, 5)),
            _case("alike_no_epsilon", (4, 16), (1,), "rms", i8, i8, reach=(3, 3), epsilon=1),
            _case("one", (4, 1), (1,), "standardize", i8, i8),
            _case("long", (1, 5000), (1,), "standardize", i8, i8, repeated={3: (0,), 4: (0,)}),
            _case("longest", (1, LARGEST), (1,), "standardize", u8, i8, repeated={3: (0, 1), 4: (0, 1)}),
            _case("longest_extremes", (1, LARGEST), (1,), "rms", u8, i8, reach=(255, 255), repeated={3: (0, 1)}),
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
        y, gain, bias, x = (index_c([*outer.strides[i], *inner.strides[i]], counters) for i in range(4))
        count, kept = group_size(call), views[0].buffer.dtype
        assert isinstance(count, int)  # `match`
        precision = Precision(count)
        return {
            "outer": outer.loops,
            "inner": inner.loops,
            "centred": call.of(ByteNorm).measure == "standardize",
            "count": count,
            "squares": "uint32_t" if 16 + precision.bits <= 32 else "uint64_t",
            "fraction": precision.fraction,
            "scale": precision.scale + precision.dropped,
            "most_moved": MOST_MOVED - precision.scale - precision.dropped,
            "dropped": precision.dropped,
            "x": f"x[{x}]",
            "gain": f"gain[{gain}]",
            "bias": f"bias[{bias}]",
            "store": f"y[{y}] = ({kept.storage_c})mcc_saturate_{kept}(found);",
        }

    def label(self, call: Call) -> str:
        return f"{call.of(ByteNorm).measure}_{size_name(group_size(call))}"


def group_size(call: Call) -> Dim:
    """How many elements are measured together."""
    return product(call.ins[0].shape[axis] for axis in call.of(ByteNorm).axes)


def _case(
    name: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    measure: str,
    x: DType,
    y: DType,
    reach: tuple[int, int] | None = None,
    epsilon: int = 1 << 20,
    permute: Mapping[int, tuple[int, ...]] | None = None,
    repeated: Mapping[int, tuple[int, ...]] | None = None,
) -> Case:
    numbers, one = TensorType(i32, shape), TensorType(u8, ())
    types = (TensorType(x, shape), TensorType(x, ()), TensorType(i64, ()), numbers, numbers, one)
    values = {2: np.array(epsilon), 5: np.array(12, np.uint8)}
    low, high = (x.low, x.high) if reach is None else reach
    ranges = {0: (float(low), float(high)), 1: (-9.0, 9.0), 3: (-(2.0**29), 2.0**30), 4: (-(2.0**18), 2.0**18)}
    kind, out = ByteNorm(axes, measure, y), TensorType(y, shape)
    return Case(name, kind, types, (out,), permute or {}, ranges=ranges, values=values, repeated=repeated or {})
