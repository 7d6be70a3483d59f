"""What the kernels of byte_norm share: the numbers of a group of so many elements, C of its root and of an element, and
cases for the test matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..base.dims import Dim, product
from ..base.dtypes import DType, i32, i64, u8
from ..base.tensor import TensorType
from ..kernels.api import Call, Case
from ..kinds.byte_norm import ByteNorm, Precision

MOST_MOVED = 30  # by as many bits an i32 is moved up at most
SQUARES = "uint32_t"  # no group is so large that they need more


def group_size(call: Call) -> Dim:
    """How many elements are measured together."""
    return product(call.ins[0].shape[axis] for axis in call.of(ByteNorm).axes)


def summed(call: Call, x: str, sums: str, squares: str) -> list[str]:
    """C that adds an element to the sums of its group."""
    found = [f"const int32_t v = {x} - zero[0];"]
    found += [f"{sums} += v;"] if _is_centred(call) else []
    return [*found, f"{squares} += ({SQUARES})(v * v);"]


def measured(call: Call, sums: str, squares: str) -> list[str]:
    """C that makes `middle`, `root` and `up` of the sums of a group."""
    count, precision = group_size(call), _precision(call)
    scale = precision.scale + precision.dropped
    spread = f"(uint64_t){squares} * {count}u"
    spread += f" - (uint64_t)((int64_t){sums} * {sums})" if _is_centred(call) else ""
    return [
        f"const int32_t middle = {count} * zero[0]{f' + {sums}' if _is_centred(call) else ''};",
        f"const uint64_t spread = {spread};",
        "int moved;",
        f"const int32_t root = mcc_inverse_root((spread << {precision.fraction}) + (uint64_t)epsilon[0], &moved);",
        f"const int32_t up = moved > {MOST_MOVED - scale} ? 0 : (int32_t)1 << (moved + {scale});"
        " /* where all elements are alike */",
    ]


def normalized(call: Call, x: str, gain: str, bias: str, y: str, lane: str = "") -> list[str]:
    """C that stores the result of an element; `lane` is the index of the group's middle, root and up, if any."""
    kept, dropped = call.outs[0].buffer.dtype, _precision(call).dropped
    off = f"{group_size(call)} * {x} - middle{lane}"
    return [
        f"const int32_t off = {f'mcc_shr_i32({off}, {dropped})' if dropped else off};",
        f"const int32_t n = mcc_high_sum(0, off * up{lane}, root{lane});",
        f"const int32_t found = mcc_shr_i32(mcc_high_sum({bias}, n, {gain}), shift[0]);",
        f"{y} = ({kept.storage_c})mcc_saturate_{kept}(found);",
    ]


def _is_centred(call: Call) -> bool:
    return call.of(ByteNorm).measure == "standardize"


def _precision(call: Call) -> Precision:
    count = group_size(call)
    assert isinstance(count, int)  # `match` of all kernels
    return Precision(count)


def byte_norm_case(
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
