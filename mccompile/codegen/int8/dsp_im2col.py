"""int8 conv for cores with DSP instructions: the windows of some positions are widened into a patch (im2col),
which is multiplied with all channels. Four positions at once share the weights that are read; one takes a quarter of
the workspace. Where time comes first, weights are widened ahead of time and take twice the flash. Those of few values
are stored as indices: the weights of some channels at a time are widened in the workspace, and multiplied with all
patches.

Where channels are a multiple of four, taps outside of the image read padding; else a window over the edge is
put together element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import DType, i4, i8, i32
from ...base.records import dataclass
from ...kernels.api import Call, Case, Cost, Needs, No, Target, viewed
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...targets.api import Prefer
from ..tiles import epilogue_alias
from .dot import (
    DSP_SHIFTS,
    dsp_table,
    numbers,
    pack_indices,
    pack_nibbles,
    pack_pairs,
    pack_two_pairs,
    pack_wide,
    rescaling_of,
)
from .patch_conv import PatchConv, conv_of, in_nibbles, in_palette, is_flat, rescaled_case, residual_case
from .rates import Rates

MOST_NIBBLES = 60_000  # elements of a sum, in which 4-bit weights count 16 times
UNPACKED = 3072  # bytes of weights that are unpacked at once, if those of two channels are not more
UNPACKING = 4  # what the weight of a palette takes, over what a product of two takes
FOUR = Rates(0.84, 1.54, 5.0, run=15.5, loose=3.3)  # windows at once
FOUR_WIDE = replace(FOUR, product=0.71)
ONE_WINDOW = Rates(1.3, 1.54, 11.5, 11.6, window=30.0, run=15.5, loose=3.3)
ONE = Rates(0.93, 2.3, 11.5, 11.6, window=60.0)  # row of a product


@dataclass(frozen=True)
class Weights:
    """How functions read weights [channels, sum]."""

    functions: str  # what their names begin with
    form: str  # of the packing
    pack: Callable[[np.ndarray], np.ndarray]
    headers: frozenset[str] = frozenset({"mcc_dsp_dots.h"})


NIBBLES = Weights("nibbles", "4x2_nibbles", pack_nibbles, frozenset({"mcc_dsp_nibbles.h"}))
WIDE = Weights("wide", "4x2_wide", pack_wide, frozenset({"mcc_dsp_wide.h"}))
INDICES = Weights("wide", "4x2_indices", pack_indices, frozenset({"mcc_dsp_wide.h", "mcc_dsp_palette.h"}))
PAIRS, TWO_PAIRS = Weights("dot", "4x2", pack_pairs), Weights("dot", "1x4", pack_two_pairs)


class DspIm2col(PatchConv):
    raises = True
    packs = True
    rows_apart = True
    stored: ClassVar[tuple[DType, ...]] = (i8, i4)
    at_once: ClassVar[int]  # positions
    wide: ClassVar[bool] = False  # are weights of 16 bits?

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        short = {"short": (6, 3), "short_raised": (6, 12), "short_odd": (5, 2), "short_raised_one": (1, 12)}
        found = [
            *super().cases(),
            rescaled_case("not_shifted", plain, (1, 8, 5, 7), (6, 8, 3, 3), shift=0),
            *[
                rescaled_case(f"edges_{width}", replace(plain, pads=(2,) * 4), (1, n, 3, width), (4, n, 3, columns))
                for n, width, columns in ((2, 1, 3), (2, 2, 3), (1, 3, 4), (2, 5, 3))
            ],
            *[
                rescaled_case(name, plain, (1, 8, 5, 5), (channels, 8, 3, 3), shift=shift, short=True)
                for name, (channels, shift) in short.items()
            ],
        ]
        names = {"3x3", "3x3_u8", "few_channels", "one_channel", "two_pictures", "1x1", "residual"}
        names |= {"raised", "not_shifted", "short", "short_raised"}
        if self.wide:
            return of_blocks(found, lambda batch, channels, *spatial: (prod(spatial), channels))
        if self.at_once != 4:
            return found
        some = [case for case in found if case.name in names]
        pointwise = replace(plain, pads=(0,) * 4)
        several = [
            rescaled_case("blocks", pointwise, (1, 64, 3, 3), (70, 64, 1, 1)),
            rescaled_case("raised_blocks", plain, (1, 24, 3, 5), (26, 24, 3, 3), shift=12, short=True),
            residual_case("residual_blocks", pointwise, (1, 96, 2, 3), (48, 96, 1, 1)),
        ]
        return [*found, *in_nibbles(some), *in_palette([*some, *several])]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call, DSP_SHIFTS)
        if reason:
            return No(reason)
        kind, w, found, count = conv_of(call), call.ins[1], rescaling_of(call), self.points(call)
        lanes = self.lanes(call)
        if self.wide and (lanes == 1 or target.prefer != Prefer.TIME):
            return No("16-bit weights need four positions and two channels, and that time is preferred")
        nibbles, indexed = w.buffer.dtype is i4, self.indexed(call) is not None
        if nibbles and (lanes == 1 or self.depth(call) > MOST_NIBBLES):
            return No("4-bit weights need four positions, two channels and sums that fit 32 bits")
        depth, outs = self.depth(call), static(w.shape[0])
        more = (lanes * outs if found.rest else 0) + (unpacked(outs, depth) if indexed else 0)
        again = count % lanes > (0 if target.prefer == Prefer.FLASH else 1)  # some positions are computed twice
        return Needs(
            rows=frozenset({2} if not (nibbles or indexed or self.wide) or static(call.outs[0].shape[3]) >= 4 else ()),
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: -self.run(call) % 4},
            alias={} if again else epilogue_alias(call, kind.fixed),
            scratch=lanes * depth * 2 + more,
            scratch_align=4,
            blocks=(lanes, int(target.prefer == Prefer.FLASH)),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        found, count = super().cost(call, target), prod(call.ins[1].type.static_shape)
        if self.indexed(call) is not None:
            return cost_of_indices(found, count * (1 if call.rows is None else static(call.outs[0].shape[2])), target)
        return replace(found, blob=count) if self.wide else found

    def rates(self, call: Call) -> Rates:
        return ONE_WINDOW if self.lanes(call) == 1 else FOUR_WIDE if self.wide else FOUR

    def computed(self, call: Call) -> int:
        outs = super().computed(call)
        return outs + (-outs % 4 if self.lanes(call) == 1 else 0)

    def units(self, call: Call) -> Sequence[int]:
        """Groups of positions in one picture; the last one has those that fill no group."""
        if self.by_rows(call) or call.outs[0].shape[0] != 1:
            return super().units(call)
        lanes, small = call.blocks
        groups, rest = divmod(self.points(call), lanes)
        return (*(lanes,) * (groups - 1), lanes + (2 if rest == 1 and not small else lanes if rest else 0))

    def lanes(self, call: Call) -> int:
        """Positions at once, in this call."""
        return self.at_once if self.points(call) >= 4 and static(call.ins[1].shape[0]) % 2 == 0 else 1

    def indexed(self, call: Call) -> frozenset[int] | None:
        if self.wide or self.lanes(call) == 1 or not is_indexed(call):
            return None
        return padding(self.run(call))

    def depth(self, call: Call) -> int:
        """Elements of a window in a patch."""
        w = call.ins[1]
        run = self.run(call)
        return (run + -run % 4) * static(w.shape[2]) * (1 if self.joined(call) else static(w.shape[3]))

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = rescaling_of(call), static(call.ins[1].shape[0])
        w = viewed(call.ins[1], constants[1])
        runs = w.transpose(0, 2, 3, 1).reshape(channels, -1, self.run(call))
        rows = np.pad(runs, [(0, 0), (0, 0), (0, -self.run(call) % 4)]).reshape(channels, -1)
        values = numbers(call, constants, found, channels)
        table = dsp_table(found, values, 2 if call.blocks[0] == 4 else 4)
        return {1: weights_of(call, self.wide).pack(rows), **dict.fromkeys(found.tables, table)}

    def packing(self, call: Call) -> Mapping[int, str]:
        found = rescaling_of(call)
        form = weights_of(call, self.wide).form
        return {1: f"dsp_{form}_{self.run(call)}", **dict.fromkeys(found.tables, found.named(f"table_{form}"))}

    def headers(self, call: Call) -> frozenset[str]:
        return weights_of(call, self.wide).headers

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y, found = conv_of(call), call.ins[0], call.outs[0], rescaling_of(call)
        lanes, small = call.blocks
        count, outs, by_rows = self.points(call), static(call.ins[1].shape[0]), self.by_rows(call)
        indexed = self.indexed(call) is not None
        return {
            **self.rest(call),
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            **found.dsp_told,
            "lanes": lanes,
            "functions": weights_of(call, self.wide).functions,
            "indexed": indexed,
            "w": "(const int16_t *)(const void *)w" if self.wide else "own" if indexed else "w",
            "zero": kind.x_zero,
            "padded": self.padded(call),
            "flat": is_flat(call),
            "words": static(x.shape[1]) % 4 == 0,
            "joined": self.joined(call),
            "by_rows": by_rows,
            "bounds": self.bounds(call),
            "x_line": "row % x_lines" if x.lines else "row",
            "y_line": "row_out % y_lines" if y.lines else "row_out",
            # windows inside of the image have code of their own
            "inside": lanes == 4 and not small and not by_rows,
            "several": x.shape[0] != 1,
            "shared": call.workers > 1 and not by_rows,
            "one_more": count % 4 == 1 and not small,
            "again": lanes == 4 and (count % 4 > 1 or bool(small)),
            "whole": outs % 4 == 0 and not small,
            "few": outs < 4 and not small,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        found = {**super().sizes(call), "steps": self.depth(call) // 2}
        if self.indexed(call) is not None:
            found["block"] = block_of(static(call.ins[1].shape[0]), self.depth(call))
        if call.blocks[0] == 1 and rescaling_of(call).rest:  # results are not written to their places at once
            del found["y_pixel"]
        return found


def of_blocks(cases: Sequence[Case], sizes: Callable[..., tuple[int, int]]) -> list[Case]:
    """Cases with at least four positions and pairs of channels, as `sizes` finds them in the result's shape."""
    return [case for case in cases if (found := sizes(*case.outs[0].static_shape))[0] >= 4 and found[1] % 2 == 0]


def weights_of(call: Call, wide: bool) -> Weights:
    if call.ins[1].buffer.dtype is i4:
        return NIBBLES
    if call.blocks[0] == 1:
        return TWO_PAIRS
    return WIDE if wide else INDICES if is_indexed(call) else PAIRS


def is_indexed(call: Call) -> bool:
    """Do weights of 8 bits take few values?"""
    assert isinstance(call.kind, Conv | Gemm)
    return call.kind.palette and call.ins[1].buffer.dtype is i8


def cost_of_indices(cost: Cost, count: int, target: Target) -> Cost:
    """What a call takes whose weights are unpacked first, so many in all."""
    return replace(cost, time=cost.time + UNPACKING * count * target.machine.short_mac, blob=-count // 2)


def padding(run: int) -> frozenset[int]:
    """Which weights stand behind runs of so many elements."""
    return frozenset({0} if run % 4 else ())


def block_of(channels: int, depth: int) -> int:
    """How many channels are unpacked at once where weights are indices: an even number, as few as rounds allow."""
    pairs, most = channels // 2, max(UNPACKED // (4 * depth), 1)
    return 2 * -(-pairs // -(-pairs // most))


def unpacked(channels: int, depth: int) -> int:
    """The bytes that these take."""
    return block_of(channels, depth) * depth * 2
