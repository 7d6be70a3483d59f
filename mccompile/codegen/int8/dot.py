"""What kernels of 8-bit integers share: which operands rescale their sums, and how weights are packed for dot products.

A dot product of a machine takes `depth` elements of a sum for each of `lanes` channels. Packed weights are

    [block of lanes][block of the sum][whatever one instruction reads]

so that they are read from one end to the other once per group of positions. Sums are padded with zero weights, channels
with channels that nobody stores. Zero points of activations are subtracted where these are widened, or folded into the
bias; those of weights have no place here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base.constant import Constant
from ...base.dtypes import DType, i4, i8, i32, u8
from ...base.records import dataclass
from ...expr.ir import Apply, Cast, Expr, Literal, Operand, apply, cast, literal, operand, operands_used, rebuild, walk
from ...expr.itself import asked_once
from ...expr.raised import POWER_BITS, raised_by
from ...kernels.api import Call, View, viewed
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ..tiles import is_constant

SHORT_SHIFTS = range(1, 9)
DSP_SHIFTS = range(9)  # cores with DSP instructions also take those that shift by nothing
PALETTE = 16  # values that indices of 4 bits tell apart
FARTHEST = 65535  # places of results that mcc_helium.h stores together are numbers of 16 bits
TABLE = "table"  # every number of a channel, side by side, in place of the first operand that rescales
IN_TABLE = ("table1", "table2", "table3")  # the others, which stand in it
RAISED_SHIFTS = (12, 14, 16)  # of sums that are raised first; the usual one comes first


@dataclass(frozen=True)
class Rescaling:
    """((sum + bias) * raise * multiplier / 2^32 + addend) >> shift, saturated to 8 bits: what ShortRescale writes, with
    or without `raise`. `tables` are the operands of the call that are these numbers, in that order. `rest` is what is
    left of the epilogue, over the 8 bits as operand 0, and the epilogue's further operands."""

    tables: tuple[int, ...]
    shift: int
    dtype: DType
    rest: Expr | None
    packed: bool  # `raise` is two to the power that the multiplier ends with
    shared: bool  # all channels have one addend

    @property
    def bias(self) -> int:
        return self.tables[0]

    @property
    def is_raised(self) -> bool:
        return len(self.tables) > 3

    @property
    def is_short(self) -> bool:
        """Has a channel two numbers of its own?"""
        return self.shared and not self.is_raised

    @property
    def bounds(self) -> tuple[Expr, Expr] | None:
        """What the 8 bits stay within, where that is all that is left of the epilogue."""
        if self.rest is None:
            low, high = (0, 255) if self.dtype is u8 else (-128, 127)
            return literal(low, i32), literal(high, i32)
        if not isinstance(self.rest, Cast) or self.rest.dtype is not self.dtype:
            return None
        bounded, most = _arguments("min", self.rest.argument)
        number, least = _arguments("max", bounded)
        if number != cast(operand(0, self.dtype), i32) or least is None or most is None:
            return None
        return None if operand(0, self.dtype) in (*walk(least), *walk(most)) else (least, most)

    def fits(self, shifts: range, packed: bool = False) -> bool:
        """Is the shift one of these, or of those of sums that are raised? `packed`: also by what multipliers say."""
        if self.packed:
            return packed and self.is_short and self.shift == RAISED_SHIFTS[0]
        return self.shift in (RAISED_SHIFTS if self.is_raised else shifts)

    @property
    def form(self) -> str:
        """Which of the functions of mcc_helium.h does it; none if this is empty."""
        return self._wide_form if self.fits(SHORT_SHIFTS) else ""

    @property
    def dsp_form(self) -> str:
        """Which of the functions of mcc_dsp_dots.h does it."""
        if not self.is_short:
            return self._wide_form
        return f"packed{self.shift}" if self.packed else f"shared{self.shift}"

    @property
    def depthwise_form(self) -> str:
        """Which of the functions of mcc_dsp_depthwise.h does it."""
        return f"raised{self.shift}" if self.packed else self._wide_form

    @property
    def _wide_form(self) -> str:
        return f"raised{self.shift}" if self.is_raised else str(self.shift)

    def named(self, packing: str) -> str:
        """What the packing of a table is called."""
        return f"{packing}_short" if self.is_short else packing

    @property
    def told(self) -> dict[str, Any]:
        """What templates see of it."""
        dtype, rows = self.dtype, len(self.tables)
        return {"y_type": dtype.name, "y_c_type": dtype.storage_c, "form": self.form, "table_rows": rows}

    @property
    def dsp_told(self) -> dict[str, Any]:
        """What templates see of it where kernels know channels with two numbers."""
        rows, at, addend = (2, "table + 1", "table[0]") if self.is_short else (len(self.tables), "table", "0")
        found = {"form": self.dsp_form, "table_rows": rows, "table_at": at, "addend": addend}
        return {**self.told, **found}


def rescaling(call: Call, fixed: int, epilogue: Expr | None, raised: bool = False) -> Rescaling | None:
    """How the epilogue begins, if it begins like that, with constants that change along the channels at most. Channels
    lie along axis 1 of pictures, along the last one of matrices. `raised`: sums may be raised first."""
    beginning = _beginning(epilogue) if epilogue else None
    if beginning is None:
        return None
    leaves, shift, dtype, packed, rest = beginning
    tables = [fixed + leaf - 1 for leaf in leaves[1:]]
    if not all(_per_channel(call, call.ins[index]) for index in tables) or (len(tables) > 3 and not raised):
        return None
    rest_or_none = None if rest == operand(0, dtype) else rest
    addend = call.ins[tables[-1]]
    shared = _is_shared(call, addend) or (packed and addend.shape[_channels(call, addend)] == 1)
    return Rescaling(tuple(tables), shift, dtype, rest_or_none, packed, shared)


@asked_once
def _beginning(epilogue: Expr) -> tuple[tuple[int, ...], int, DType, bool, Expr] | None:
    """What `_start` gives for the only rescaling, and what is left to do with its result."""
    starts = {node: found for node in walk(epilogue) if (found := _start(node)) is not None}
    if len({(found[0], found[1]) for found in starts.values()}) != 1:
        return None
    leaves, shift, dtype, packed = next(iter(starts.values()))
    rest = rebuild(epilogue, lambda node: _bounded(node, dtype) if node in starts else None)
    if operands_used(rest) & set(leaves[1:]) or any(node == operand(0, i32) for node in walk(rest)):
        return None
    return leaves, shift, dtype, packed, rest


def rescaling_in(call: Call, raised: bool = False) -> Rescaling | None:
    """How the sums of a convolution or a product of matrices become 8 bits."""
    assert isinstance(call.kind, Conv | Gemm)
    return rescaling(call, call.kind.fixed, call.kind.epilogue, raised)


def rescaling_of(call: Call) -> Rescaling:
    found = rescaling_in(call, raised=True)
    assert found is not None  # `match` has seen it
    return found


def left_over(call: Call, raised: bool = False) -> Expr | None:
    """What is left to do with 8-bit results, or with totals of 32 bits where sums are not rescaled to 8 bits."""
    assert isinstance(call.kind, Conv | Gemm)
    found = rescaling_in(call, raised)
    return found.rest if found is not None else call.kind.epilogue or operand(0, i32)


def _channels(call: Call, view: View) -> int:
    """The axis along which channels lie."""
    return len(view.shape) - 1 if call.kind.name == "gemm" else 1


def _is_shared(call: Call, view: View) -> bool:
    """Is it one number for several channels?"""
    axis = _channels(call, view)
    return view.strides[axis] == 0 and view.shape[axis] != 1


def _per_channel(call: Call, view: View) -> bool:
    channels = _channels(call, view)
    strides = enumerate(zip(view.shape, view.strides, strict=True))
    return is_constant(view) and all(axis == channels or stride == 0 or size == 1 for axis, (size, stride) in strides)


def _start(node: Expr) -> tuple[tuple[int, ...], int, DType, bool] | None:
    """Operands, shift and type of a node that saturates what a rescaling gives, perhaps to tighter bounds; and whether
    the multiplier says how far sums are raised."""
    if not isinstance(node, Cast) or node.dtype not in (i8, u8):
        return None
    bounded, _ = _arguments("min", node.argument)
    shifted, _ = _arguments("max", bounded)
    if isinstance(node.argument, Apply) and node.argument.function == f"saturate_{node.dtype}":
        (shifted,) = node.argument.arguments
    scaled, shift = _arguments("shift_right", shifted)
    if not isinstance(scaled, Apply) or scaled.function != "high_sum":
        return None
    addend, total, multiplier = scaled.arguments
    begun, raised = _arguments("mul", total)
    lifted, _ = _arguments("shift_left", total)
    packed = lifted is not None and total == raised_by(lifted, multiplier)
    found, bias = _arguments("add", lifted if packed else total if raised is None else begun)
    wanted = [found, bias, *([] if raised is None else [raised]), multiplier, addend]
    leaves = [leaf.index for leaf in wanted if isinstance(leaf, Operand)]
    if len(leaves) != len(wanted) or leaves[0] != 0 or not isinstance(shift, Literal):
        return None
    return tuple(leaves), int(shift.value), node.dtype, packed


def _arguments(function: str, node: Expr | None) -> tuple[Expr | None, Expr | None]:
    """Those of a function of two, if the node applies it."""
    if isinstance(node, Apply) and node.function == function:
        return node.arguments[0], node.arguments[1]
    return None, None


def _bounded(node: Expr, dtype: DType) -> Expr:
    """The saturated number as operand 0, within the bounds of the node if those are tighter than its type's."""
    number = operand(0, dtype)
    bounded, high = _arguments("min", node.argument) if isinstance(node, Cast) else (None, None)
    _, low = _arguments("max", bounded)
    if low is None or high is None:
        return number
    return cast(apply("min", apply("max", cast(number, i32), low), high), dtype)


def epilogue_of(dtype: DType, shift: int, numbers: tuple[int, ...], packed: bool = False) -> Expr:
    """The expression of ShortRescale over the sum and operands of these numbers, without bounds of its own."""
    bias, *raised, multiplier, addend = (operand(number, i32) for number in numbers)
    total = apply("add", operand(0, i32), bias)
    total = raised_by(total, multiplier) if packed else apply("mul", total, raised[0]) if raised else total
    scaled = apply("high_sum", addend, total, multiplier)
    rounded = apply("shift_right", scaled, literal(shift, i32))
    return cast(apply(f"saturate_{dtype}", rounded), dtype)


def channel_numbers(channels: int, shift: int, short: bool = False) -> list[np.ndarray]:
    """Random numbers of channels for test cases with such a shift, which says whether sums are raised. `short`: each
    has two of its own."""
    chance = np.random.default_rng(channels)
    raised = shift in RAISED_SHIFTS
    bits = 14 + shift if raised else 23 + shift  # of the smallest multiplier
    span = (1 << min(bits, 30), 1 << min(bits + 2, 31))
    ranges = [(-3000, 3000), span, (-25 << shift, 25 << shift)]
    if raised:
        ranges = [(-3000, 3000), (0, 7), span, (-100 << shift, 100 << shift)]
    found = [chance.integers(low, high, channels).astype(np.int32) for low, high in ranges]
    if short:
        multipliers = found[2] >> POWER_BITS << POWER_BITS | found[1] if raised else found[1]
        return [found[0], multipliers, np.full(channels, found[-1][0], np.int32)]
    return [found[0], np.int32(1) << found[1], *found[2:]] if raised else found


def numbers(call: Call, constants: Mapping[int, Constant], found: Rescaling, channels: int) -> np.ndarray:
    """Bias, multiplier and addend of every channel, with `raise` behind the bias: [3 or 4, channels]."""
    rows = []
    for index in found.tables:
        view = viewed(call.ins[index], constants[index])
        axis = _channels(call, call.ins[index])
        rows.append(np.moveaxis(view, axis, -1).reshape(-1, channels)[0])
    return np.stack(rows).astype(np.int32)


def padded(array: np.ndarray, *multiples: int) -> np.ndarray:
    """Zeros behind each axis, up to a multiple."""
    return np.pad(array, [(0, -size % multiple) for size, multiple in zip(array.shape, multiples, strict=True)])


def pack_pairs(rows: np.ndarray) -> np.ndarray:
    """Weights [channels, sum] for mcc_dsp_dot4x2: [channels / 2][sum / 4][elements 0, 2 or 1, 3][element][channel]."""
    rows = padded(rows, 2, 4)
    blocks = rows.reshape(rows.shape[0] // 2, 2, rows.shape[1] // 4, 2, 2)  # channel; element = 2 * second + first
    return np.ascontiguousarray(blocks.transpose(0, 2, 4, 3, 1))


def pack_wide(rows: np.ndarray) -> np.ndarray:
    """The same for mcc_dsp_wide4x2, 16 bits each: [channels / 2][sum / 4][elements 0, 2 or 1, 3][channel][element]."""
    return np.ascontiguousarray(pack_pairs(rows).swapaxes(3, 4).astype("<i2")).view(np.int8)


def pack_indices(rows: np.ndarray) -> np.ndarray:
    """Weights [channels, sum] of at most 16 values for mcc_dsp_wide4x2, as mcc_dsp_unpack finds them there."""
    return indices_of(pack_pairs(rows).swapaxes(3, 4))


def indices_of(weights: np.ndarray) -> np.ndarray:
    """Their values, 16 bytes, and behind them two indices a byte, the first one below."""
    palette, indices = np.unique(weights, return_inverse=True)
    halves = indices.reshape(-1, 2).astype(np.uint8)
    packed = halves[:, 0] | halves[:, 1] << 4
    return np.concatenate([np.pad(palette, (0, PALETTE - len(palette))), packed.view(np.int8)])


def pack_two_pairs(rows: np.ndarray) -> np.ndarray:
    """Weights [channels, sum] for mcc_dsp_dot1x4: [channels / 4][sum / 4][two channels][elements 0, 2 or 1, 3][element]
    [channel], the first of the two plus 128."""
    rows = padded(rows, 4, 4)
    blocks = rows.reshape(rows.shape[0] // 4, 2, 2, rows.shape[1] // 4, 2, 2).copy()
    blocks[:, :, 0] ^= -128  # plus 128, in the numbers that have the same bits
    return np.ascontiguousarray(blocks.transpose(0, 3, 1, 5, 4, 2))


def pack_nibbles(rows: np.ndarray) -> np.ndarray:
    """Weights [channels, sum] of 4 bits for mcc_dsp_nibbles4x2: [channels / 2][sum][channel], the first one plus 8."""
    rows = padded(rows.astype(np.int8), 2, 4)
    first, second = rows[0::2], rows[1::2]
    return np.ascontiguousarray(np.stack([moved_by_eight(first), second], -1).astype(i4.numpy))


def moved_by_eight(values: np.ndarray) -> np.ndarray:
    """Numbers of 4 bits plus 8, in the numbers that have the same bits."""
    return np.where(values < 0, values + 8, values - 8)


def pack_fours(rows: np.ndarray, lanes: int = 4, depth: int = 4) -> np.ndarray:
    """Weights [channels, sum] in blocks of so many channels and elements: [block][part of sum][channel][element]."""
    rows = padded(rows, lanes, depth)
    blocks = rows.reshape(rows.shape[0] // lanes, lanes, rows.shape[1] // depth, depth)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3))


def pack_unsigned(rows: np.ndarray) -> np.ndarray:
    """Weights [channels, sum] plus 128, for mcc_scalar.h: [channels / 4][sum][channel]. The bytes count as signed."""
    moved = padded((rows.astype(np.int16) + 128).astype(np.uint8), 4, 4).view(np.int8)
    return np.ascontiguousarray(moved.reshape(-1, 4, moved.shape[1]).transpose(0, 2, 1))


def pack_signed(rows: np.ndarray) -> np.ndarray:
    """The same as they are, for mcc_scalar_pairs.h."""
    moved = padded(rows, 4, 4)
    return np.ascontiguousarray(moved.reshape(-1, 4, moved.shape[1]).transpose(0, 2, 1))


def pack_words(rows: np.ndarray) -> np.ndarray:
    """Weights [channels, sum], negated, for mcc_scalar_wide.h: [channels / 4][sum][two channels], each a word with the
    first of the two below."""
    negated = -padded(rows.astype(np.int64), 4, 4)
    pairs = negated.reshape(-1, 2, 2, negated.shape[1])
    words = (pairs[:, :, 0] + (pairs[:, :, 1] << 16)).transpose(0, 2, 1)
    return np.ascontiguousarray(words & 0xFFFFFFFF).astype("<u4").view(np.int8)


def without_zero(found: np.ndarray, rows: np.ndarray, zero: int, dtype: DType) -> np.ndarray:
    """Bias, multiplier and addend [3, channels] for activations of that type and zero point that are read as unsigned
    numbers (i8 plus 128), where weights [channels, sum] are signed."""
    bias = found[0] - (zero - dtype.low) * rows.astype(np.int64).sum(1)
    return np.stack([bias.astype(np.int32), *found[1:]])


def with_biases(packed: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Packed weights, and behind them a number for each channel, which is added to its totals."""
    return np.concatenate([packed.reshape(-1), padded(biases.astype("<i4"), 1, 4).reshape(-1).view(np.int8)])


def dsp_table(found: Rescaling, values: np.ndarray, lanes: int) -> np.ndarray:
    """Numbers of channels [3 or 4, channels] as mcc_dsp_dots.h reads those of so many at once. Where a channel has two
    of its own, the addend comes first, then biases and multipliers."""
    if not found.is_short:
        return {1: np.ascontiguousarray(values.T), 2: table_of_pairs(values), 4: table_of_fours(values)}[lanes]
    blocks = padded(values[:2], 1, lanes).reshape(2, -1, lanes).transpose(1, 0, 2)
    return np.concatenate([values[2, :1], blocks.reshape(-1)])


def table_of_pairs(found: np.ndarray) -> np.ndarray:
    """Numbers of channels [3 or 4, channels] as mcc_dsp_dot4x2 reads them: two biases, (two raises,) multiplier and
    addend of each."""
    *first, multiplier, addend = padded(found, 1, 2).reshape(len(found), -1, 2)
    return np.concatenate([*first, np.stack([multiplier, addend], -1).reshape(-1, 4)], 1)


def table_of_fours(found: np.ndarray) -> np.ndarray:
    """The same for mcc_dsp_dot1x4."""
    *first, multiplier, addend = padded(found, 1, 4).reshape(len(found), -1, 4)
    return np.concatenate([*first, np.stack([multiplier, addend], -1).reshape(-1, 8)], 1)


def table_of_vectors(found: np.ndarray, shift: int) -> np.ndarray:
    """The same for mcc_helium_dot2x4: four numbers of each kind."""
    numbers = padded(without_half(found, shift), 1, 4)
    return np.ascontiguousarray(numbers.reshape(len(found), -1, 4).transpose(1, 0, 2))


def without_half(found: np.ndarray, shift: int) -> np.ndarray:
    """Addends for shifts that round to the nearest."""
    *first, addend = found
    return np.stack([*first, addend - (1 << shift >> 1)])
