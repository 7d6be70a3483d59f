"""Weights of few bits as bytes, four of which a lane multiplies with four activations that were rounded to int8.

Activations lie in the workspace as they are multiplied: rows of bytes, each block in whole words, zeros behind its
elements; then, for every row, a scale for each block, and what its sums begin with or what zero points are multiplied
with.
"""

from __future__ import annotations

from ...base.marked import named
from ...program.ir import Call
from ..vector.vector_tiles import TileSize
from .block_weights import raised
from .block_words import WordLayout

NUMBER = 4  # bytes


class Bytes:
    """The layout of a call's weights and activations, for tiles of a size; bytes are multiplied as they are stored
    less `shift`."""

    def __init__(self, call: Call, size: TileSize, shift: int) -> None:
        self.size, self.shift, self.words = size, shift, WordLayout(call, size)
        self.bits = self.words.dtype.bits
        self.steps = 8 // self.bits  # of a word
        self.bytes = self.words.words * self.words.per_word  # of a row of activations
        self.zeros = self.words.kind.zeros
        self.less = raised(self.words.dtype) - shift  # what numbers of a word are more than weights
        self.row_bytes = self.bytes + NUMBER * self.words.blocks * (1 + self.has_sums)
        self.slack = size.lanes * NUMBER

    @property
    def has_sums(self) -> bool:
        return self.zeros or self.less != 0

    def number(self, step: int, words: str) -> str:
        """C of four numbers of each word."""
        of = f"i32x{self.size.lanes}"
        if self.bits == 8:
            return f"mcc_dot_form_u8_{of}({words})" if self.shift else words
        mask = f"mcc_set_{of}({0x01010101 * ((1 << self.bits) - 1):#x})"
        return f"({words} >> {step * self.bits} & {mask})" if step else f"({words} & {mask})"

    @property
    def is_short(self) -> bool:
        """Do sums of a block fit 16 bits, in two halves of each lane?"""
        most = 2 * ((1 << self.bits) - 1) * 127  # of a step
        return self.bits < 8 and -(-self.words.block // NUMBER) * most < 1 << 15

    @property
    def dot(self) -> str:
        """C of the function that adds up products of such numbers and signed bytes."""
        kind = "" if self.bits == 8 else "_short" if self.is_short else "_few"
        return f"mcc_dot{kind}_i32x{self.size.lanes}"

    def starts(self, total: str) -> str:
        """C of what the sums of a block begin with; `total`: what they are less in a row, a whole number."""
        whole = f"(int32_t){total}" if self.adds_totals and not self.is_short else "0"
        return f"mcc_set_i32x{self.size.lanes}({whole})"

    def ended(self, sums: str, total: str) -> str:
        """C of the sums of a block."""
        of = f"i32x{self.size.lanes}"
        if not self.is_short:
            return sums
        whole = f"mcc_dot_whole_{of}({sums})"
        return f"mcc_add_{of}({whole}, mcc_set_{of}((int32_t){total}))" if self.adds_totals else whole

    @property
    def adds_totals(self) -> bool:
        return self.has_sums and not self.zeros

    def point(self, vector: int) -> str:
        """C of the zero points of a vector, as the numbers are stored."""
        of = f"f32x{self.size.lanes}"
        if not self.zeros:
            return f"mcc_set_{of}({self.less}.0f)"
        place = f"(const uint8_t *)(const void *)({named('b_zero')} + at + {vector * self.size.lanes})"
        loaded = f"mcc_load_bytes_{of}({place})"
        return f"mcc_sub_{of}({loaded}, mcc_set_{of}({self.shift}.0f))" if self.shift else loaded
