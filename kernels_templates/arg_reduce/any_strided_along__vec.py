"""arg_reduce in loops over lanes, which compilers make vectors of, along an axis whose elements lie side by side: the
best element first, then the first or last that equals it.

Floats are compared as integers of the same order, in which zeros are equal and NaN is best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, f64, i8, i16, i32, i64, u8, u16, u32
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.lanes import LEAST, covering_pieces, each_lane, lane_key, lanes_refusal
from mccompile.codegen.loops import beside, index_c
from mccompile.codegen.tiles import Range
from mccompile.expr.code import Code
from mccompile.expr.scalar_c import literal_c, load_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.arg_reduce import ArgReduce

OPERATIONS = {True: 16, False: 8}  # on a vector of floats, of integers
TYPES = (i8, u8, i16, u16, i32, u32, i64, f32, f64)


class Along(Kernel):
    kind = ArgReduce

    def cases(self) -> Sequence[Case]:
        equal = (np.arange(180, dtype=np.float32).reshape(9, 20) * 7 % 4) - 1
        equal[0, [3, 15]] = equal[1, 0] = equal[2, 19] = equal[3, [0, 19]] = equal[4, 4:7] = np.nan
        equal[5:7] = np.where(equal[5:7] > 0, 0, -0.0)
        equal[7], equal[8] = -np.inf, np.inf
        found = [
            _case(f"{'largest' if largest else 'smallest'}{'_last' * last}", f32, (9, 20), largest, last, equal)
            for largest in (True, False)
            for last in (False, True)
        ]
        integers = [_case(str(dtype), dtype, (3, 77), dtype.bits > 8) for dtype in TYPES if dtype.is_integer]
        found += [replace(case, name=f"f64_{case.name}", ins=(TensorType(f64, (9, 20)),)) for case in found]
        found = [replace(case, values={0: equal.astype(case.ins[0].dtype.numpy)}) for case in found]
        return [*found, *integers, _case("shortest", f32, (7, 8)), _case("long", f32, (2, 5, 1037), last=True)]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [places]

    def match(self, call: Call, target: Target) -> No | Needs:
        x, axis = call.ins[0], call.of(ArgReduce).axis
        reason = lanes_refusal(target, (), [x.buffer.dtype]) or static_views(call)
        if reason:
            return No(reason)
        if x.buffer.dtype not in TYPES:
            return No(f"{x.buffer.dtype} is not compared in vectors")
        if x.strides[axis] != 1 or not LEAST // 2 <= static(x.shape[axis]) < i32.high:
            return No("compared elements are not contiguous, or are too few or too many")
        return Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        x, machine = call.ins[0], target.machine
        vectors = max(x.buffer.dtype.bits // 8, 4) / max(target.vector_bytes, 1)
        each = vectors * OPERATIONS[x.buffer.dtype.is_float] / machine.fmas
        return Cost(static(x.type.count) * each + static(call.outs[0].type.count) * 16 * machine.element, code=300)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_lanes.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x = call.of(ArgReduce), call.ins[0]
        outer, count, dtype = beside(kind.axis, call.outs[0], x), static(x.shape[kind.axis]), x.buffer.dtype
        (y,), (name,) = self.parameter_names(call)
        key, better = lane_key("", dtype, kind.largest)[0], ">" if kind.largest else "<"
        counters: list[str | Code] = [loop.counter for loop in outer.loops]
        found: list[str] = []
        where: list[str] = []
        for begin, many in covering_pieces(count, count):
            at = Code(index_c([1], ["lane"], begin), loose=begin > 0)
            value = load_c(dtype, name, index_c([*outer.strides[1], 1], [*counters, at]))
            one = f"const {key.compute_c} one = {lane_key(value, dtype, kind.largest)[1]};"
            found += each_lane(many, [one, f"best = one {better} best ? one : best;"])
            none, nearer = ("-1", ">") if kind.last else (str(count), "<")
            place = f"const int32_t place = one == best ? (int32_t)({at.text}) : {none};"
            where += each_lane(many, [one, place, f"where = place {nearer} where ? place : where;"])
        return {
            "outer": [Range.over(loop.counter, loop.count) for loop in outer.loops],
            "type": key.compute_c,
            "worst": literal_c(key.low if kind.largest else key.high, key),
            "nowhere": -1 if kind.last else count,
            "lines": found,
            "where": where,
            "result": f"{y}[{outer.index(0)}]",
        }

    def label(self, call: Call) -> str:
        return "arg_max" if call.of(ArgReduce).largest else "arg_min"


def places(first: int, second: int, last: int) -> Case:
    """Shorter rows are not served."""
    return _case(f"{first}_{second}_{last}", f32, (first, second, last + LEAST // 2 - 1))


def _case(
    name: str, dtype: DType, shape: Shape, largest: bool = True, last: bool = False, values: np.ndarray | None = None
) -> Case:
    out = TensorType(i64, (*shape[:-1], 1))
    kind = ArgReduce(len(shape) - 1, largest, last)
    given = {} if values is None else {0: values}
    return Case(name, kind, (TensorType(dtype, shape),), (out,), values=given, ranges={} if given else {0: (0, 60)})
