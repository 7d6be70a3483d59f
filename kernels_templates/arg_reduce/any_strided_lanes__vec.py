"""arg_reduce of any element types in loops over lanes, which compilers make vectors of: lanes are neighbouring results.
These also have compared elements beside each other, in rows too short for loops along them.

Places are counted in integers as wide as the elements where these hold them all. Lanes of the last vector of a row
begin earlier rather than being few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f64, i8, i16, i32, i64, u8, u32
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.lanes import LANES, LEAST, SHORTEST, each_lane, lane_key, lanes_refusal
from mccompile.codegen.loops import Nest, beside, index_c
from mccompile.codegen.tiles import Range
from mccompile.expr.scalar_c import load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.arg_reduce import ArgReduce

OPERATIONS = {True: 12, False: 5}  # on a vector of floats, of integers


class Lanes(Kernel):
    kind = ArgReduce

    def cases(self) -> Sequence[Case]:
        equal = np.arange(180, dtype=np.float64).reshape(9, 20) * 7 % 4
        equal[3:5, 2:5] = equal[0, 4:7] = np.nan
        equal[6] = np.where(equal[6] > 1, 0.0, -0.0)
        ties: dict[str, Any] = {"values": {0: equal}}
        short: dict[int, np.ndarray] = {0: equal.reshape(36, 5)}
        return [
            *(_case(str(dtype), dtype, (3, 7, 75), largest=dtype.bits > 8) for dtype in (i8, u8, i16, i32, u32, i64)),
            *(_case(f"few_{dtype}", dtype, (5, 37, 9)) for dtype in (i8, i32, i64)),
            *(_case(f"rows_of_{few}", dtype, (5, 37, few), 2) for few, dtype in ((2, i8), (3, i64), (7, u32))),
            _case("rows_of_4_last", i16, (65, 4), 1, largest=False, last=True),
            *(
                _case(f"equal_rows_of_5_{largest}_{last}", f64, (36, 5), 1, largest, last, values=short)
                for largest in (True, False)
                for last in (True, False)
            ),
            _case("many_places", i8, (300, 64), 0),
            _case("equal", f64, (9, 20), 0, **ties),
            _case("least_equal", f64, (9, 20), 0, largest=False, **ties),
            _case("last_equal", f64, (9, 20), 0, last=True, **ties),
            _case("last_least_equal", f64, (9, 20), 0, largest=False, last=True, **ties),
            _case("channels_first", i16, (2, 3, 7, 40), 3, permute={0: (0, 3, 1, 2)}),
            _case("result_apart", i32, (2, 3, 9, 16), 1, permute_outs={0: (0, 3, 2, 1)}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [places, short_rows]

    def match(self, call: Call, target: Target) -> No | Needs:
        x, axis = call.ins[0], call.of(ArgReduce).axis
        reason = lanes_refusal(target, (), [x.buffer.dtype]) or static_views(call)
        if reason:
            return No(reason)
        if not 0 < static(x.shape[axis]) <= i32.high or 0 in call.outs[0].shape:
            return No("there are no elements to compare, or too many for 32-bit indices")
        chosen = _nest(call).side_by_side(1, SHORTEST)  # the loop that lanes lie along
        if chosen is None:
            chosen = _rows_of_few(call)
        if chosen is None:
            return No("elements of the results are not contiguous, or are too few")
        return Needs(blocks=(_width(call, chosen), chosen))

    def cost(self, call: Call, target: Target) -> Cost:
        x, machine, (width, chosen) = call.ins[0], target.machine, call.blocks
        row, place = _nest(call).loops[chosen].extent, _place(call)
        vectors = max(1, width * max(x.buffer.dtype.bits, place.bits) / 8 / max(target.vector_bytes, 1))
        each = vectors * OPERATIONS[x.buffer.dtype.is_float] / machine.fmas * -(-row // width) / row
        return Cost(static(x.type.count) * each + static(call.outs[0].type.count) * 2 * machine.element, code=300)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_lanes.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, (width, chosen), x = call.of(ArgReduce), call.blocks, call.ins[0]
        loops, dtype, (y,), (operand,) = _nest(call), x.buffer.dtype, *self.parameter_names(call)
        row, place = loops.loops[chosen], _place(call)
        counters = [loop.counter for loop in loops.loops]
        better = (">" if kind.largest else "<") + "=" * kind.last

        key, steps = lane_key("", dtype, kind.largest)[0], [*loops.strides[1], x.strides[kind.axis]]

        def one(at: str, name: str = "one") -> str:
            index = index_c([*steps, loops.strides[1][chosen]], [*counters, at, "lane"])
            return f"const {key.compute_c} {name} = {lane_key(load_c(dtype, operand, index), dtype, kind.largest)[1]};"

        compared = [
            one("r"),
            f"const int taken = one {better} best[lane];",
            "best[lane] = taken ? one : best[lane];",
            f"where[lane] = taken ? ({place.storage_c})r : where[lane];",
        ]
        result = index_c([*loops.strides[0], loops.strides[0][chosen]], [*counters, "lane"])
        few = [f"{key.compute_c} best = first;", f"{place.compute_c} where = 0;"]
        for r in range(1, static(x.shape[kind.axis])):
            few += [
                one(str(r), f"one{r}"),
                f"where = one{r} {better} best ? {r} : where;",
                f"best = one{r} {better} best ? one{r} : best;",
            ]
        few = [one("0", "first"), *few, store_c(i64, y, result, "where")]
        return {
            "few": each_lane(width, few) if loops.strides[1][chosen] != 1 else (),
            "around": [Range(loop.counter, loop.extent) for loop in loops.loops if loop is not row],
            "counter": row.counter,
            "row": row.extent,
            "width": width,
            "key": key.storage_c,
            "place": place.storage_c,
            "extent": static(x.shape[kind.axis]),
            "first": each_lane(width, [one("0"), "best[lane] = one;", "where[lane] = 0;"]),
            "compared": each_lane(width, compared),
            "stored": each_lane(width, [store_c(i64, y, result, "where[lane]")]),
        }

    def label(self, call: Call) -> str:
        return "arg_max" if call.of(ArgReduce).largest else "arg_min"


def _nest(call: Call) -> Nest:
    return beside(call.of(ArgReduce).axis, call.outs[0], call.ins[0])


def _rows_of_few(call: Call) -> int | None:
    """The loop over short rows that lie one after the other."""
    x, loops = call.ins[0], _nest(call)
    few = static(x.shape[call.of(ArgReduce).axis])
    if few >= LEAST // 2 or x.strides[call.of(ArgReduce).axis] != 1:
        return None
    rows = (n for n, loop in enumerate(loops.loops) if loops.strides[1][n] == few and loop.extent >= LEAST)
    return next(rows, None)


def _place(call: Call) -> DType:
    """Integers that hold every place along the axis."""
    most, bits = static(call.ins[0].shape[call.of(ArgReduce).axis]) - 1, call.ins[0].buffer.dtype.bits
    return next(dtype for dtype in (i8, i16, i32) if dtype is i32 or (dtype.bits >= bits and most <= dtype.high))


def _width(call: Call, chosen: int) -> int:
    """Lanes: a vector of the machines that have the widest, or what a row has."""
    whole = max(LANES * 8 // call.ins[0].buffer.dtype.bits, LEAST)
    row = _nest(call).loops[chosen].extent
    return next(width for width in (whole, whole // 2, LEAST, LEAST // 2, SHORTEST) if width <= row)


def places(first: int, second: int, last: int) -> Case:
    """Fewer results beside each other are not served."""
    return _case(f"{first}_{second}_{last}", i16, (first, second, last + SHORTEST - 1))


def short_rows(first: int, second: int, last: int) -> Case:
    """Of 2 to 7 elements, and not fewer than are served."""
    few = 2 + second % (LEAST // 2 - 2)
    return _case(f"rows_{first}_{second}_{last}", i32, (first, last + LEAST - 1, few), 2)


def _case(
    name: str, dtype: DType, shape: Shape, axis: int = 1, largest: bool = True, last: bool = False, **options: Any
) -> Case:
    out, ranges = TensorType(i64, (*shape[:axis], 1, *shape[axis + 1 :])), {} if "values" in options else {0: (0, 60)}
    return Case(name, ArgReduce(axis, largest, last), (TensorType(dtype, shape),), (out,), ranges=ranges, **options)
