"""conv of 8-bit integers for cores without SIMD. The windows of two positions are packed into one word, so that one
32-bit multiplication computes two 8-bit products; or, with twice the flash, the weights of two channels (`wide`).

Elements are copied one by one, so windows may begin anywhere; outside of the image lie zero points, which the bias
makes up for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import DType, i8, i32, u8
from ...kernels.api import Call, Case, Cost, Needs, No, Prefer, Target, viewed
from ...kinds.conv import Conv
from ..tiles import epilogue_alias
from .dot import left_over, numbers, pack_signed, pack_unsigned, pack_words, rescaling_in, without_zero
from .patch_conv import PatchConv, conv_of, is_flat, rescaled_case, totals_case
from .rates import scalar_cycles
from .scalar_sums import packed_sums, sums_context
from .two_parts import READ_FLIPPED, READ_UNSIGNED, are_apart, saves

WIDE, PAIRS = 0.72, 0.88  # of the time of a product, on the cores that they are made for
ELSEWHERE = 1.1  # where products have upper halves, or are added by the instruction that makes them
PAIRS_RESULT, TWO_PARTS_RESULT = 1.0, -12.0  # what a result takes more: sums of pairs, and rescaling in two parts
WIDE_RESULT = -23.0  # two parts where one function goes through all channels
FLIPPED = 1 - 128  # what wide patches hold is 127 less an element and its type's distance to u8: see mcc_scalar_wide.h


class ScalarIm2col(PatchConv):
    rows_apart = True
    wide: ClassVar[bool] = False  # do words hold the weights of two channels?
    pairs: ClassVar[bool] = False  # are weights signed, and steps of a sum taken two at a time?

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        if self.wide or self.pairs:
            return [*super().cases(), extremes_case("extremes", i8), extremes_case("extremes_u8", u8)]
        return [
            *super().cases(),
            totals_case("totals", plain, (1, 3, 5, 7), (6, 3, 3, 3)),
            totals_case("totals_two_pictures", plain, (2, 3, 5, 7), (6, 3, 3, 3)),
            totals_case("totals_u8", replace(plain, pads=(0,) * 4, x_zero=False), (1, 8, 3, 3), (5, 8, 1, 1), u8),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call, range(32), totals=not (self.wide or self.pairs))
        if reason:
            return No(reason)
        if self.wide and target.prefer != Prefer.TIME:
            return No("words of two weights take twice the flash: only where time is preferred")
        found = rescaling_in(call)
        results = (1 if self.wide else 2) * static(call.ins[1].shape[0]) * (1 if found else 4) if left_over(call) else 0
        return Needs(
            rows=frozenset({2}),
            constant=frozenset({1, *range(2, conv_of(call).fixed), *(found.tables if found else ())}),
            align={found.bias: 4} if found else {1: 4},
            alias=epilogue_alias(call, conv_of(call).fixed),
            scratch=self.depth(call) * 4 + results,
            scratch_align=4,
            blocks=(int(found is not None and (self.wide or saves(target))), int(target.prefer == Prefer.FLASH)),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        outs = static(call.ins[1].shape[0])
        product = 1.0
        if self.wide:
            product = WIDE if saves(target) else ELSEWHERE
        elif self.pairs:
            product = PAIRS if are_apart(target) else ELSEWHERE
        result = PAIRS_RESULT if self.pairs else 0.0
        if rescaling_in(call) and saves(target) and not self.pairs:
            result = WIDE_RESULT if self.wide else TWO_PARTS_RESULT
        time = scalar_cycles(self.work(call), call, target, product, result)
        return Cost(time, code=self.code, blob=self.depth(call) * (outs + -outs % 4) if self.wide else 0)

    def computed(self, call: Call) -> int:
        outs = super().computed(call)
        return outs + -outs % 4 if self.pairs else outs

    def taken(self, call: Call) -> int:
        """Elements of a window."""
        w = call.ins[1].type.static_shape
        return w[1] * w[2] * w[3]

    def depth(self, call: Call) -> int:
        return self.taken(call) + -self.taken(call) % 4

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        kind, found, channels = conv_of(call), rescaling_in(call), static(call.ins[1].shape[0])
        rows = viewed(call.ins[1], constants[1]).transpose(0, 2, 3, 1).reshape(channels, -1)
        zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0]) if kind.x_zero else 0
        values = numbers(call, constants, found, channels) if found else np.zeros((1, channels), np.int32)
        values = without_zero(
            values, rows, zero + (FLIPPED if self.wide else -128 if self.pairs else 0), call.ins[0].buffer.dtype
        )
        pack = pack_words if self.wide else pack_signed if self.pairs else pack_unsigned
        read = READ_FLIPPED if self.wide else READ_UNSIGNED
        return packed_sums(call, rows, values, call.blocks[0], pack, read, lanes=1 if self.wide else 4)

    def packing(self, call: Call) -> Mapping[int, str]:
        found = rescaling_in(call)
        if found is None:
            return {1: "scalar_with_biases"}
        parts = ("_parts_each" if self.wide else "_parts") * call.blocks[0]
        less, words = ("flipped", "_words") if self.wide else ("middle", "_signed") if self.pairs else ("zero", "")
        table = f"table_channels_less_{less}{parts}"
        return {1: f"scalar{words}", **dict.fromkeys(found.tables, table)}

    def headers(self, call: Call) -> frozenset[str]:
        part = "_wide" if self.wide else "_pairs" if self.pairs else ""
        return frozenset({f"mcc_scalar{part}.h"})

    def unpassed(self, call: Call) -> frozenset[str]:
        """The zero point, where no window reaches beyond the image."""
        zero = conv_of(call).x_zero and (is_flat(call) or not self.padded(call))
        return super().unpassed(call) | (frozenset({"x_zero"}) if zero else frozenset())

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y = conv_of(call), call.ins[0], call.outs[0]
        flip = "" if x.buffer.dtype is u8 else " ^ 128u"
        return {
            **self.rest(call),
            **sums_context(call, call.blocks[0]),
            "c_type": x.buffer.dtype.storage_c,
            "zero": f"(uint8_t)x_zero[0]{flip}" if kind.x_zero else f"0u{flip}",
            "middle_zero": f"{'x_zero[0]' if kind.x_zero else '0'} - {128 if x.buffer.dtype is u8 else 0}",
            "flipped_zero": f"{'127' if x.buffer.dtype is u8 else '-1'} - {'x_zero[0]' if kind.x_zero else '0'}",
            "padded": self.padded(call),
            "flat": is_flat(call),
            "joined": self.joined(call),
            "by_rows": self.by_rows(call),
            "bounds": self.bounds(call),
            "x_line": "row % x_lines" if x.lines else "row",
            "y_line": "row_out % y_lines" if y.lines else "row_out",
            "several": x.shape[0] != 1,
            "rounded": self.rounded(call),
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        taken = {"taken": self.taken(call)} if self.rounded(call) else {}
        return {**super().sizes(call), "steps": self.depth(call), **taken}

    def rounded(self, call: Call) -> bool:
        """Is a window shorter than its place in the patch, or may it be?"""
        return self.depth(call) != self.taken(call) or bool(call.blocks[-1])


def extremes_case(name: str, dtype: DType) -> Case:
    """The lowest weights meet the lowest and the highest elements."""
    case = rescaled_case(name, Conv((1, 1), (1, 1), (0,) * 4, 1, i32, x_zero=True), (1, 8, 2, 2), (8, 8, 1, 1), dtype)
    x = np.empty((1, 8, 2, 2), dtype.numpy)
    x[:, :, 0], x[:, :, 1] = dtype.low, dtype.high
    return replace(case, values={**case.values, 0: x, 1: np.full((8, 8, 1, 1), -128, np.int8)})
