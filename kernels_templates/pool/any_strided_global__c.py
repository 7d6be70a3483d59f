"""pool over a whole image in portable C: row after row is added to the result, so the image may pass by in a ring.

Sums are kept in the result where its elements can hold them (those of the accumulator's type), else in a workspace, in
16 bits where these hold every sum.
Short sums are added up element by element, as over any window; of long ones each row by itself, then the rows, which
keeps rounding errors small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Any

from mccompile.base.dims import product, static, upper
from mccompile.base.dtypes import DType, f32, f64, i8, i16, i32
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c, nest, size_name
from mccompile.codegen.tiles import LONG, term_c
from mccompile.codegen.traffic import has_traffic, traffic
from mccompile.codegen.windows import ring_row, ring_rows
from mccompile.expr.ir import operand
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.pool import Pool

LARGEST = 8  # instructions of the larger of two floats, one of which may be NaN: compared twice


class Global(Kernel):
    kind = Pool
    branches = ""

    def cases(self) -> Sequence[Case]:
        def case(name: str, algorithm: str, dtype: Any, *shape: int, extras: int = 0, **options: Any) -> Case:
            rank = len(shape) - 2
            ones = (1,) * rank
            kind = Pool(
                algorithm, shape[2:], ones, ones, (0,) * 2 * rank, ones, dtype, epilogue=RELU_OF_SUM if extras else None
            )
            out = TensorType(dtype, (*shape[:2], *ones))
            return Case(name, kind, (TensorType(dtype, shape), *[out] * extras), (out,), **options)

        nhwc = {0: (0, 2, 3, 1)}
        return [
            case("mean", "average", f32, 1, 8, 5, 7, permute=nhwc),
            case("mean_planes", "average", f32, 2, 3, 6, 5),
            case("mean_line", "average", f64, 1, 3, 9),
            case("max", "max", f32, 1, 6, 4, 4, permute=nhwc),
            case("max_bytes", "max", i8, 2, 5, 3, 4),
            case("sum", "sum", i32, 1, 8, 5, 7, permute=nhwc),
            case("mean_solid", "average", f32, 1, 2, 3, 4, 5),
            case("epilogue", "average", f32, 1, 12, 5, 7, extras=1, permute=nhwc),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Pool)
        reason = supports_types(call)
        if reason:
            return No(reason)
        x, y = call.ins[0], call.outs[0]
        whole = all(dim == size for dim, size in zip(x.shape[2:], kind.kernel, strict=True))
        if not whole or any(kind.pads) or any(dim != 1 for dim in y.shape[2:]) or x.type.count == 0:
            return No("the window is not the whole input")
        if kind.algorithm not in ("max", "average", "sum"):
            return No(f"it does not compute {kind.algorithm}")
        if not kind.accumulator.is_plain:
            return No(f"{kind.accumulator} is not a type of C")
        if y.buffer.dtype is kind.accumulator:
            return Needs(rows=frozenset({2}), symbols=True)
        if call.rows is None:
            return No("the result cannot hold a sum, and the input does not come by rows")
        return Needs(rows=frozenset({2}), scratch=_held(call).nbytes(static(y.type.count)), at_end=True)

    def cost(self, call: Call, target: Target) -> Cost:
        x, time = call.ins[0], upper(call.ins[0].type.count) * target.machine.mac
        if has_traffic(target) and call.of(Pool).accumulator is f32 and isinstance(x.shape[1], int):
            chains = gcd(x.shape[1], 8)
            of_one = 2 if call.of(Pool).algorithm != "max" else LARGEST  # instructions: a load and an addition
            each = max(target.machine.latency / chains, of_one / target.machine.issue)
            time = max(upper(x.type.count) * each, traffic((x,), target))
        return Cost(time, code=300)

    def label(self, call: Call) -> str:
        space = "x".join(map(size_name, call.ins[0].shape[2:]))
        return f"{call.of(Pool).algorithm}_pool_global_{space}x{call.ins[0].shape[1]}"

    def varies(self, call: Call, target: Target) -> Sequence[str]:
        assert isinstance(call.kind, Pool)
        largest = ["numbers are compared with the largest"] if call.kind.algorithm == "max" else []
        return [*largest, *super().varies(call, target)]

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y, extras = call.of(Pool), call.ins[0], call.outs[0], call.ins[1:]
        names = self.parameter_names(call)[1]
        sum_type = kind.accumulator
        channels = static(x.shape[1])
        lanes = next(n for n in (8, 4, 2, 1) if channels % n == 0)
        inner = x.sliced(2, 0, 1)
        loops = nest([1, 1, 1, *inner.shape[3:]], [inner], prefix="p")
        batch, channel, row = x.strides[:3]
        x_at = [
            index_c([batch, channel, row], ["n" if x.shape[0] != 1 else "0", "c", ring_row("row", x.lines)]),
            loops.index(0),
        ]
        loads = [term_c(x.buffer.dtype, "x", index_c([1, 1], x_at, lane * channel), sum_type) for lane in range(lanes)]

        one_batch = y.shape[0] == 1

        def at(view: Any, lane: str = "lane") -> str:
            batch, channel = view.strides[:2]
            return index_c([batch, channel, channel], ["0" if one_batch else "n", "c", lane])

        def sum_at(lane: str) -> str:
            if call.scratch is None:
                return at(y, lane)
            return index_c([channels, 1, 1], ["0" if one_batch else "n", "c", lane])

        values = [load_c(v.buffer.dtype, name, at(v)) for v, name in zip(extras, names[1:], strict=True)]
        lines, value = to_statements(kind.epilogue or operand(0, sum_type), ["total", *values], local="v")
        return {
            "rings": ring_rows("row", [x]),
            "batches": x.shape[0],
            "first": "0" if call.rows is None else "begin",
            "end": x.shape[2] if call.rows is None else "end",
            "rows": x.shape[2],
            "channels": channels,
            "lanes": lanes,
            "inner": loops.loops,
            "loads": loads,
            "found": ", ".join(f"a{lane}" for lane in range(lanes)),
            "type": sum_type.compute_c,
            "algorithm": kind.algorithm,
            "exact": not sum_type.is_float,
            "accumulator": sum_type.name,
            "sum_name": "" if sum_type.is_float else sum_type.name,
            "start": literal_c(sum_type.low, sum_type) if kind.algorithm == "max" else "0",
            "count": product(x.shape[2:]),
            "sums": f"(({_held(call).storage_c} *)(void *)scratch)" if call.scratch is not None else "y",
            "held": f"({_held(call).storage_c})" if call.scratch is not None and _held(call) is not sum_type else "",
            "sum_at": sum_at("lane"),
            "sum_ats": [sum_at(str(lane)) for lane in range(lanes)],
            "in_turn": not sum_type.is_float or kind.algorithm == "max" or upper(product(x.shape[2:])) <= LONG,
            "lines": lines,
            "store": store_c(y.buffer.dtype, "y", at(y), value),
        }


def _held(call: Call) -> DType:
    """The type of sums in the workspace."""
    x, kind = call.ins[0], call.of(Pool)
    largest = max(-x.buffer.dtype.low, x.buffer.dtype.high) * upper(product(x.shape[2:]))
    fits = kind.accumulator is i32 and x.buffer.dtype.is_integer and largest <= i16.high
    return i16 if fits else kind.accumulator
