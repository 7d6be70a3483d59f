"""byte_norm in loops over lanes: along neighbouring groups where these lie together, else along the elements of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import i8, u8
from mccompile.codegen.byte_norm import SQUARES, byte_norm_case, group_size, measured, normalized, summed
from mccompile.codegen.lanes import LANES, LEAST, each_lane, lane_pieces, lanes_refusal
from mccompile.codegen.loops import Loop, Nest, index_c
from mccompile.codegen.sums import grouped
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import AROUND
from mccompile.expr.code import Code
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    SizedCase,
    Target,
    elementwise_alias,
    static_views,
)
from mccompile.kinds.byte_norm import LARGEST, ByteNorm

PRODUCTS = 12  # cycles of a vector of 32-bit integers, which are multiplied in 64
ROOT = 60  # of a group


class Lanes(Kernel):
    kind = ByteNorm
    branches = "counts the bits of a number in front of its root"

    def cases(self) -> Sequence[Case]:
        last, space, case = {i: (0, 2, 3, 1) for i in (0, 3, 4)}, {3: (0, 2, 3), 4: (0,)}, byte_norm_case
        return [
            *(case(f"{x}_{y}", (3, 75), (1,), "standardize", x, y) for x in (i8, u8) for y in (i8, u8)),
            case("rms", (5, 64), (1,), "rms", i8, u8),
            case("pictures", (2, 3, 5, 17), (2, 3), "standardize", u8, i8, repeated=space),
            case("channels", (2, 19, 5, 7), (2, 3), "standardize", u8, i8, permute=last, repeated=space),
            case("columns", (9, 150), (0,), "rms", u8, i8),
            case("two_axes", (2, 3, 4, 25), (1, 3), "standardize", i8, i8),
            case("alike", (4, 16), (1,), "standardize", i8, i8, reach=(5, 5)),
            case("longest", (1, LARGEST), (1,), "standardize", u8, i8, repeated={3: (0, 1), 4: (0, 1)}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [rows]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = lanes_refusal(target, [], [view.buffer.dtype for view in call.ins]) or static_views(call)
        if reason:
            return No(reason)
        if _lanes(call) is None or static(group_size(call)) > LARGEST:
            return No("neither elements nor groups lie together, or they are too few, or groups are too large")
        return Needs(alias={(0, 0): 0} if elementwise_alias(call, 0) else {})

    def cost(self, call: Call, target: Target) -> Cost:
        count, found = static(call.ins[0].type.count), _lanes(call)
        assert found is not None
        vectors = count * PRODUCTS * 4 / max(target.vector_bytes, 1)
        loops = count / found[0].extent * 4 * AROUND / target.machine.issue
        return Cost(vectors + loops + count / static(group_size(call)) * ROOT, code=900)

    def context(self, call: Call) -> Mapping[str, Any]:
        found = _lanes(call)
        assert found is not None
        row, beside = found
        around = [Range.over(loop.counter, loop.count) for loop in _nests(call)[0].loops if loop != row]
        if not beside:
            return {"outer": around, "lines": self.of_group(call, row)}
        whole, lines = row.extent // LANES * LANES, list[str]()
        if whole:
            lines += [Range(row.counter, 0, "0", str(whole), LANES).header]
            lines += [*self.of_groups(call, row, row.counter, LANES), "}"]
        for begin, many in lane_pieces(row.extent - whole):
            lines += ["{", *self.of_groups(call, row, str(whole + begin), many), "}"]
        return {"outer": around, "lines": lines}

    def of_groups(self, call: Call, row: Loop, first: str, many: int) -> list[str]:
        """C for so many groups from `first` on."""
        around, ends = _loops(call, None)
        y, gain, bias, x = _elements(call, row, first)
        centred = call.of(ByteNorm).measure == "standardize"
        return [
            f"int32_t {f'sums[{many}], ' * centred}middles[{many}], roots[{many}], ups[{many}];",
            f"{SQUARES} squares[{many}];",
            *each_lane(many, [*["sums[lane] = 0;"] * centred, "squares[lane] = 0;"]),
            *[*around, *each_lane(many, summed(call, x, "sums[lane]", "squares[lane]")), *ends],
            f"for (mcc_index lane = 0; lane < {many}; ++lane) {{",
            *measured(call, "sums[lane]", "squares[lane]"),
            *[f"{name}s[lane] = {name};" for name in ("middle", "root", "up")],
            "}",
            *[*around, *each_lane(many, normalized(call, x, gain, bias, y, "s[lane]")), *ends],
        ]

    def of_group(self, call: Call, row: Loop) -> list[str]:
        """C for one group whose elements lie along a row."""
        around, ends = _loops(call, row)
        sums, made = list[str](), list[str]()
        for begin, many in lane_pieces(row.extent):
            y, gain, bias, x = _elements(call, row, str(begin))
            sums += each_lane(many, summed(call, x, "sum", "squares"))
            made += each_lane(many, normalized(call, x, gain, bias, y))
        centred = ["int32_t sum = 0;"] if call.of(ByteNorm).measure == "standardize" else []
        return [
            *[*centred, f"{SQUARES} squares = 0;", *around, *sums, *ends],
            *measured(call, "sum", "squares"),
            *[*around, *made, *ends],
        ]

    def label(self, call: Call) -> str:
        return f"{call.of(ByteNorm).measure}_{group_size(call)}"


def _nests(call: Call) -> tuple[Nest, Nest]:
    views = (call.outs[0], call.ins[3], call.ins[4], call.ins[0])
    _, outer, inner = grouped(call.of(ByteNorm).axes, views, views[-1])
    return outer, inner


def _lanes(call: Call) -> tuple[Loop, bool] | None:
    """The loop that lanes lie along, and whether it is one over groups."""
    for beside, loops in zip((True, False), _nests(call), strict=True):
        for loop, step in zip(loops.loops, loops.strides[3], strict=True):
            if step == 1 and loop.extent >= LEAST // 2:
                return loop, beside
    return None


def _loops(call: Call, row: Loop | None) -> tuple[list[str], list[str]]:
    """Loops over the elements of a group but along the row, and their ends."""
    around = [Range.over(loop.counter, loop.count).header for loop in _nests(call)[1].loops if loop != row]
    return around, ["}"] * len(around)


def _elements(call: Call, row: Loop, first: str) -> list[str]:
    """C of the elements of a lane: of the result, the gain, the bias and the operand."""
    outer, inner = _nests(call)
    lane = Code("lane" if first == "0" else f"{first} + lane", loose=first != "0")
    counters = [lane if loop == row else loop.counter for loop in (*outer.loops, *inner.loops)]
    places = [index_c([*outer.strides[i], *inner.strides[i]], counters) for i in range(4)]
    return [f"{name}[{at}]" for name, at in zip(("y", "gain", "bias", "x"), places, strict=True)]


def rows(first: int, second: int, last: int) -> Case:
    """Shorter rows are not served."""
    shape = (first, second, last + LEAST // 2 - 1)
    return byte_norm_case(f"{first}_{second}_{last}", shape, (1 + second % 2,), "standardize", i8, u8)
