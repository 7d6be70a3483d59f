"""gemm of 8-bit integers with constant weights, for cores with DSP instructions: rows of a are widened in scratch,
four at a time where there are so many, and multiplied with all columns of b. Where time comes first, weights of four
rows at a time are widened ahead of time and take twice the flash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import DType, i4, i8
from ...kernels.api import Call, Case, Cost, Needs, No, Target
from ...targets.api import Prefer
from .dot import DSP_SHIFTS, dsp_table, numbers, rescaling_of
from .dsp_im2col import (
    FOUR,
    FOUR_WIDE,
    MOST_NIBBLES,
    ONE,
    block_of,
    cost_of_indices,
    is_indexed,
    of_blocks,
    padding,
    unpacked,
    weights_of,
)
from .patch_conv import in_nibbles, in_palette
from .rates import Rates
from .rows_gemm import RowsGemm, gemm_of, product_case


class DspRows(RowsGemm):
    raises = True
    packs = True
    stored: ClassVar[tuple[DType, ...]] = (i8, i4)
    wide: ClassVar[bool] = False  # are weights of 16 bits?

    def cases(self) -> Sequence[Case]:
        sizes = {"row_not_shifted": (1, 37, 12), "rows_not_shifted": (6, 9, 4)}
        not_shifted = [product_case(name, *each, shift=0) for name, each in sizes.items()]
        short = {"short_row": (1, 37, 10), "short_rows": (5, 33, 6)}
        of_two = [product_case(name, *each, shift=2, short=True) for name, each in short.items()]
        of_two += [product_case(f"{name}_raised", *each, shift=12, short=True) for name, each in short.items()]
        found = [*super().cases(), *not_shifted, *of_two]
        names = {"one_row", "few_outputs", "rows", "rows_u8", "rows_one_more", "raised_row", "raised_rows", *sizes}
        names |= {case.name for case in of_two}
        if self.wide:
            return of_blocks(found, lambda rows, columns: (rows, columns))
        some = [case for case in found if case.name in names]
        several = [product_case("row_blocks", 1, 256, 26), product_case("rows_blocks", 5, 256, 26, short=True)]
        return [*found, *in_nibbles(some), *in_palette([*some, *several])]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call, DSP_SHIFTS)
        if reason:
            return No(reason)
        a, y, found = call.ins[0], call.outs[0], rescaling_of(call)
        depth, lanes = self.depth(call), _lanes(call)
        if call.ins[1].buffer.dtype is i4 and (lanes == 1 or depth > MOST_NIBBLES):
            return No("4-bit weights need two columns at a time and sums that fit 32 bits")
        if self.wide and (lanes == 1 or target.prefer != Prefer.TIME):
            return No("16-bit weights need four rows and two columns, and that time is preferred")
        results = lanes * static(y.shape[-1]) if found.rest else 0
        if self.indexed(call) is not None:
            results += unpacked(static(y.shape[-1]), depth)
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: depth - static(a.shape[-1])},
            scratch=lanes * depth * 2 + results,
            scratch_align=4,
            blocks=(lanes, int(target.prefer == Prefer.FLASH)),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        found, count = super().cost(call, target), prod(call.ins[1].type.static_shape)
        if self.indexed(call) is not None:
            return cost_of_indices(found, count, target)
        return replace(found, blob=count) if self.wide else found

    def rates(self, call: Call) -> Rates:
        return ONE if _lanes(call) == 1 else FOUR_WIDE if self.wide else FOUR

    def indexed(self, call: Call) -> frozenset[int] | None:
        if self.wide or _lanes(call) == 1 or not is_indexed(call):
            return None
        return padding(static(call.ins[0].shape[-1]))

    def at_once(self, call: Call) -> int:
        return 2 if call.blocks[0] == 4 else 4

    def units(self, call: Call) -> Sequence[int]:
        """None of weights of 4 bits, which have no addresses."""
        return () if call.ins[1].buffer.dtype is i4 else super().units(call)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, columns = rescaling_of(call), static(call.outs[0].shape[-1])
        rows = self.columns(call, constants)
        values = numbers(call, constants, found, columns)
        table = dsp_table(found, values, 2 if call.blocks[0] == 4 else 4)
        return {1: weights_of(call, self.wide).pack(rows), **dict.fromkeys(found.tables, table)}

    def packing(self, call: Call) -> Mapping[int, str]:
        form, found = weights_of(call, self.wide).form, rescaling_of(call)
        return {1: f"dsp_{form}", **dict.fromkeys(found.tables, found.named(f"table_{form}"))}

    def sizes(self, call: Call) -> Mapping[str, int]:
        """Without the distance of rows where results of one row at a time wait for the rest of the epilogue."""
        found = dict(super().sizes(call))
        if _lanes(call) == 1 and rescaling_of(call).rest:
            found.pop("y_row", None)
        if self.indexed(call) is not None:
            found["block"] = block_of(static(call.outs[0].shape[-1]), self.depth(call))
        return found

    def headers(self, call: Call) -> frozenset[str]:
        return weights_of(call, self.wide).headers

    def context(self, call: Call) -> Mapping[str, Any]:
        a, y, found = call.ins[0], call.outs[0], rescaling_of(call)
        rows, outs = y.type.static_shape[-2:]
        (lanes, small), indexed = call.blocks, self.indexed(call) is not None
        return {
            **self.rest(call),
            "type": a.buffer.dtype.name,
            **found.dsp_told,
            "lanes": lanes,
            "functions": weights_of(call, self.wide).functions,
            "indexed": indexed,
            "b": "(const int16_t *)(const void *)b" if self.wide else "own" if indexed else "b",
            "several": rows > 1,
            "alone": lanes == 4 and rows < 4,  # each row for itself, as the first of four
            "one_more": lanes == 4 and rows > 4 and rows % 4 == 1 and not small,
            "again": lanes == 4 and rows >= 4 and (rows % 4 > 1 or bool(small)),
            "whole": outs % 4 == 0 and not small,
            "few": outs < 4 and not small,
        }


def _lanes(call: Call) -> int:
    rows, columns = call.outs[0].type.static_shape[-2:]
    few = call.ins[1].buffer.dtype is i4 or gemm_of(call).palette
    return 4 if (rows >= 4 or few) and columns % 2 == 0 else 1
