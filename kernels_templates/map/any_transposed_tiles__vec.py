"""Copies of elements of any type that lie across the result: square tiles are transposed in registers.

The last tile of a row or column begins earlier rather than being narrow, so some elements are copied twice. Where rows
of the operand are shorter than a tile and lie behind each other, as the channels of pictures do, tiles reach into the
rows before, and the first one into the next ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, bf16, bool_, f16, f32, f64, i8, i32, i64, u8, u16
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.across import Across
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import AROUND, has_traffic, innermost, one_by_one, traffic
from mccompile.codegen.vector.vector_loops import ordered_nest
from mccompile.expr.ir import Operand, operand
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.map import Map

REGISTER = 128  # bits
NARROW = ((u8, 43, 8), (i8, 32, 3), (u8, 39, 15), (f16, 17, 5), (u16, 16, 7), (f32, 9, 3))


class TransposedTiles(Kernel):
    kind = Map
    branches = ""

    def cases(self) -> Sequence[Case]:
        dtypes = (u8, i8, bool_, u16, f16, bf16, i32, f32, i64, f64)
        return [
            *[_case(f"{dtype}_{m}x{n}", dtype, (m, n), (1, 0)) for dtype in dtypes for m, n in ((16, 16), (19, 37))],
            _case("channels_first", i8, (2, 17, 4, 5), (0, 2, 3, 1)),
            *(_case(f"rows_{n}_{dtype}", dtype, (n, m), (1, 0)) for dtype, m, n in NARROW),
            _case("few_channels", u8, (2, 3, 5, 8), (0, 2, 3, 1)),
            _case("heads", f16, (2, 9, 3, 8), (0, 2, 3, 1)),
            _case("reversed", u16, (8, 3, 9), (2, 1, 0)),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [transposed]

    def match(self, call: Call, target: Target) -> No | Needs:
        if not has_traffic(target):
            return No("the target does not transpose tiles in registers")
        reason = static_views(call)
        if reason:
            return No(reason)
        dtypes = [view.buffer.dtype for view in (*call.ins, *call.outs)]
        if not isinstance(call.kind.expressions()[0], Operand) or len(dtypes) != 2 or dtypes[0] is not dtypes[1]:
            return No(refusals(call.kind.expressions()) or "only for copies")
        if dtypes[0].bits not in (8, 16, 32, 64) or dtypes[0].is_packed:
            return No("only for elements of 1, 2, 4 or 8 bytes")
        return (
            Needs()
            if _layout(call)
            else No("the operand is not transposed against the result, or its rows are too short")
        )

    def cost(self, call: Call, target: Target) -> Cost:
        if "rvv" in target.isas:  # vectors of any length are transposed in memory
            return Cost(1.5 * one_by_one(call, target), code=600)
        layout, machine = _layout(call), target.machine
        assert layout is not None
        side = layout.side
        tiles = prod(layout.nest.loops[number].extent for number in layout.around)
        tiles *= -(-layout.i.extent // side) * -(-layout.j.extent // side)
        rows = min(layout.j.extent, side)  # what becomes of others is not computed
        woven = sum(-(-rows // (1 << n)) << n for n in range(side.bit_length() - 1))  # one in a cycle
        each = max((2 * AROUND + side + rows + woven) / machine.issue, rows / machine.stores + woven)
        return Cost(max(tiles * each, traffic((*call.outs, *call.ins), target, innermost(call), side)), code=600)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_vec_transpose_bits.h"})

    def units(self, call: Call) -> Sequence[int]:
        """The outermost loop."""
        layout = _layout(call)
        assert layout is not None
        return (1,) * layout.nest.loops[layout.around[0]].extent if layout.around else ()

    def context(self, call: Call) -> Mapping[str, Any]:
        layout = _layout(call)
        assert layout is not None
        (y,), (x,) = self.parameter_names(call)
        loops = layout.nest.loops
        around = [Range(loops[number].counter, loops[number].extent) for number in layout.around]
        if call.workers > 1 and around:
            around[0] = replace(around[0], begin="begin", end="end")
        return {
            "around": around,
            "bits": call.outs[0].buffer.dtype.bits,
            "side": layout.side,
            "down": layout.j.extent,
            "part": layout.part,
            "across": layout.i.extent,
            "at_down": _begin("down", layout.j.extent, layout.side),
            "at_across": _begin("across", layout.i.extent, layout.side),
            "source": f"{x} + {layout.place(1)}",
            "from": static(layout.nest.strides[1][layout.at_i]),
            "result": f"{y} + {layout.place(0)}",
            "to": static(layout.nest.strides[0][layout.at_j]),
        }

    def label(self, call: Call) -> str:
        return "transpose"


@dataclass(frozen=True)
class _Layout(Across):
    side: int  # of a tile

    @property
    def part(self) -> int:
        """Columns of a tile that lie in other rows of the operand."""
        return max(self.side - self.j.extent, 0)

    def place(self, view: int) -> str:
        counters = [loop.counter for loop in self.nest.loops]
        counters[self.at_i], counters[self.at_j] = "column", "0" if self.part else "row"
        return index_c(self.nest.strides[view], counters)


def _layout(call: Call) -> _Layout | None:
    loops, side = ordered_nest([*call.outs, *call.ins]), REGISTER // call.outs[0].buffer.dtype.bits
    at_i = len(loops.loops) - 1
    if at_i < 1 or loops.strides[0][at_i] != 1 or loops.loops[at_i].extent < side:
        return None
    for at_j in range(at_i):
        rows = loops.loops[at_j].extent
        behind = loops.strides[1][at_i] == rows > 1 and loops.loops[at_i].extent >= 2 * side
        if loops.strides[1][at_j] == 1 and (rows >= side or behind):
            return _Layout(loops, at_i, at_j, side)
    return None


def _begin(counter: str, extent: int, side: int) -> str:
    last = extent - side
    return counter if extent % side == 0 else f"{counter} < {last} ? {counter} : {last}"


def transposed(first: int, second: int, last: int) -> Case:
    """Both sides of a tile are covered: shorter ones are not served."""
    return _case(f"{first}_{second}_{last}", u16, (first, second + 7, last + 7), (0, 2, 1))


def _case(name: str, dtype: DType, shape: tuple[int, ...], order: tuple[int, ...]) -> Case:
    t = TensorType(dtype, shape)
    return Case(name, Map(operand(0, dtype)), (t,), (t,), permute={0: order})
