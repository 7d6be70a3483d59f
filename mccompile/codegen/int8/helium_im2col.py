"""conv of 8-bit integers for cores with Helium: the windows of two positions are copied beside each other (im2col),
and multiplied with all channels. Two positions share the weights that are read; one takes half of the workspace.

Operands and result lie channels-last. Outside of the image lie zero points, which the bias makes up for. 1x1 windows
over channels in blocks of 16 are read where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import i8, i32
from ...expr.ir import operands_used
from ...kernels.api import Call, Case, Needs, No, Target, View, viewed
from ...kinds.conv import Conv
from ...targets.api import Prefer
from ..tiles import epilogue_alias
from .dot import FARTHEST, SHORT_SHIFTS, numbers, pack_fours, rescaling_of, table_of_vectors
from .partial_epilogue import vector_rest
from .patch_conv import PatchConv, between, conv_of, is_flat, is_single, rescaled_case, residual_case, rows_lie_apart
from .rates import Rates, Work

ONE, TWO = Rates(0.22, 0.13, 6.2, window=7.0, run=9.0), Rates(0.12, 0.13, 5.0, window=7.0, run=9.0)  # windows at once


class HeliumIm2col(PatchConv):
    raises = True
    rows_apart = True
    at_once: ClassVar[int]  # positions
    order: ClassVar[tuple[int, ...]] = (0, 2, 3, 1)  # of the elements of a window

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        pointwise = replace(plain, pads=(0,) * 4, x_zero=False)
        return [
            *(case for case in super().cases() if case.ins[0].dtype is i8),
            rescaled_case("1x1_in_place", pointwise, (1, 32, 5, 5), (8, 32, 1, 1)),
            residual_case("residual_of_fours", plain, (1, 8, 5, 4), (12, 8, 3, 3)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call, SHORT_SHIFTS)
        if reason:
            return No(reason)
        if call.ins[0].buffer.dtype is not i8:
            return No("x is not signed")
        found, outs, count = rescaling_of(call), static(call.ins[1].shape[0]), self.points(call)
        if (outs if found.rest else between(call.outs[0])) + 4 > FARTHEST:
            return No("the stride between positions of the result is too large")
        lanes = self.at_once if count > 1 else 1
        results = lanes * (outs + -outs % 4) if found.rest else 0
        over = self.copied_over(call)
        again = lanes == 2 and count % 2 != 0  # one position is computed twice
        return Needs(
            rows=frozenset({2}),
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: over} if over else {},
            alias={} if again else epilogue_alias(call, conv_of(call).fixed),
            scratch=self.laid_out(call, lanes) + over + results,
            scratch_align=4,
            blocks=(lanes, int(target.prefer == Prefer.FLASH)),
        )

    def unpassed(self, call: Call) -> frozenset[str]:
        return super().unpassed(call) | (frozenset() if self._reads_zero(call) else frozenset({"x_zero"}))

    def _reads_zero(self, call: Call) -> bool:
        """Is what lies outside of the image something else than 0?"""
        return conv_of(call).x_zero and self.padded(call) and not _flat(call)

    def laid_out(self, call: Call, lanes: int) -> int:
        """Elements of x that are copied before they are multiplied."""
        return 0 if _in_place(call) else lanes * self.depth(call)

    def copied_over(self, call: Call) -> int:
        """Bytes that a copy may read and write behind its run: it goes by 16."""
        return 15 if static(call.ins[0].shape[1]) % 16 else 0

    def depth(self, call: Call) -> int:
        """Elements of a window, in blocks of 16."""
        w = call.ins[1]
        depth = static(w.shape[1]) * static(w.shape[2]) * static(w.shape[3])
        return depth + -depth % 16

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = rescaling_of(call), static(call.ins[1].shape[0])
        w = viewed(call.ins[1], constants[1])
        rows = w.transpose(self.order).reshape(channels, -1)
        values = numbers(call, constants, found, channels)
        if conv_of(call).x_zero:
            zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0])
            values[0] -= (zero * rows.astype(np.int64).sum(1)).astype(np.int32)
        return {1: pack_fours(rows, 4, 16), **dict.fromkeys(found.tables, table_of_vectors(values, found.shift))}

    def packing(self, call: Call) -> Mapping[int, str]:
        folded = "_less_zero" if conv_of(call).x_zero else ""
        return {1: "helium_4x16", **dict.fromkeys(rescaling_of(call).tables, f"table_vectors_less_half{folded}")}

    def computed(self, call: Call) -> int:
        outs = super().computed(call)
        return outs + -outs % 4

    def work(self, call: Call) -> Work:
        """What is left to do by vectors takes a quarter, and next to nothing where it reads nothing."""
        found = super().work(call)
        if self.rest(call).get("rest_vectors"):
            found = replace(found, rest=found.rest // 4 if _read_by_rest(call) else 0)
        return replace(found, copied=0, runs=0) if _in_place(call) else found

    def rates(self, call: Call) -> Rates:
        return ONE if self.at_once == 1 or self.points(call) == 1 else TWO

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_helium.h"})

    def rest(self, call: Call) -> dict[str, Any]:
        """By fours where that can be."""
        found, operands, result = super().rest(call), *self.placed(call)
        if not found["rest"]:
            return found
        rescaling, read = rescaling_of(call), _read_by_rest(call)
        fours = static(call.outs[0].shape[1]) % 4 == 0 and not call.blocks[1]
        vectors = vector_rest(rescaling, operands, result) if fours else None
        joined = vectors is not None and all(map(_has_no_gaps, (call.outs[0], *read)))
        return {**found, **(vectors or {}), "rest_vectors": vectors is not None, "rest_joined": joined}

    def context(self, call: Call) -> Mapping[str, Any]:
        x, found = call.ins[0], rescaling_of(call)
        lanes, small = call.blocks
        count, outs, by_rows = self.points(call), static(call.ins[1].shape[0]), self.by_rows(call)
        return {
            **self.rest(call),
            **found.told,
            "lanes": lanes,
            "reads_zero": self._reads_zero(call),
            "padded": self.padded(call),
            "flat": _flat(call),
            "by_rows": by_rows,
            "x_line": "(row % x_lines)" if x.lines else "row",
            "x_row_out": "(row_out % x_lines)" if x.lines else "row_out",
            "y_line": "(row_out % y_lines)" if call.outs[0].lines else "row_out",
            "inside": lanes == 2 and not small and not by_rows,  # windows inside of the image have code of their own
            "long": static(call.ins[1].shape[1]) * static(call.ins[1].shape[3]) > 16,  # rows of a window
            "in_place": _in_place(call),
            "by_lines": False,
            "bounds": self.bounds(call),
            "joined": self.joined(call),
            "over": self.copied_over(call),
            "several": x.shape[0] != 1,
            "again": lanes == 2 and (count % 2 == 1 or bool(small)),
            "whole": outs % 4 == 0 and not small,
            "few": outs < 4 and not small,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        found = {**super().sizes(call), "steps": self.depth(call) // 16}
        unused = {"y_pixel"} if rescaling_of(call).rest else set()
        if _in_place(call):
            unused.add("inputs")
        return {name: size for name, size in found.items() if name not in unused}

    def windows(self, call: Call) -> dict[str, int]:
        return {"x_row": static(call.ins[0].strides[2])} if _flat(call) else super().windows(call)


def _flat(call: Call) -> bool:
    """Are windows single elements, in rows that follow each other, as far as they are computed in one go?"""
    return is_single(call) if call.rows is not None or rows_lie_apart(call) else is_flat(call)


def _read_by_rest(call: Call) -> list[View]:
    """Operands that what is left of the epilogue reads besides results, element by element."""
    rest, fixed = rescaling_of(call).rest, conv_of(call).fixed
    read = [call.ins[fixed + number - 1] for number in operands_used(rest) - {0}] if rest else []
    return [view for view in read if any(view.strides)]


def _in_place(call: Call) -> bool:
    """Are windows read where they lie?"""
    return _flat(call) and static(call.ins[0].shape[1]) % 16 == 0


def _has_no_gaps(view: View) -> bool:
    """Do elements of a picture follow each other, channels last? Or is there but one?"""
    channels, _, width = view.type.static_shape[1:]
    axes = zip(view.shape[1:], view.strides[1:], (1, width * channels, channels), strict=True)
    return not any(view.strides) or all(size == 1 or stride == wanted for size, stride, wanted in axes)
