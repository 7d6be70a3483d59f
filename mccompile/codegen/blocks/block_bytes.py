"""Weights of few bits as bytes, four of which a lane multiplies with four activations that were rounded to int8.

Numbers of a word lie so that a shift and a mask give four neighbours of the sum, one in each byte: first those in the
lowest bits, then the next. Activations lie in the workspace as they are multiplied: rows of bytes, each block in whole
words, zeros behind its elements; then, for every row, a scale for each block, and what its sums begin with or what
zero points are multiplied with.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...base.constant import Constant
from ...base.marked import named
from ...program.ir import Call
from ..vector.vector_tiles import TileSize
from .block_weights import raised
from .block_words import Words

FOUR = 4  # bytes that a lane multiplies at once, and bytes of a number


class Bytes:
    """The layout of a call's weights and activations, for tiles of a size; bytes are multiplied as they are stored
    less `shift`."""

    def __init__(self, call: Call, size: TileSize, shift: int) -> None:
        self.size, self.shift, self.words = size, shift, _Words(call, size)
        self.bits = self.words.dtype.bits
        self.steps = 8 // self.bits  # of a word
        self.bytes = self.words.words * self.words.per_word  # of a row of activations
        self.zeros = self.words.kind.zeros
        self.less = raised(self.words.dtype) - shift  # what numbers of a word are more than weights
        self.row_bytes = self.bytes + FOUR * self.words.blocks * (1 + self.has_sums)
        self.slack = size.lanes * FOUR

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
    def dot(self) -> str:
        """C of the function that adds up products of such numbers and signed bytes."""
        return f"mcc_dot{'' if self.bits == 8 else '_few'}_i32x{self.size.lanes}"

    def point(self, vector: int) -> str:
        """C of the zero points of a vector, as the numbers are stored."""
        of = f"f32x{self.size.lanes}"
        place = f"(const uint8_t *)(const void *)({named('b_zero')} + at + {vector * self.size.lanes})"
        loaded = f"mcc_load_bytes_{of}({place})"
        return f"mcc_sub_{of}({loaded}, mcc_set_{of}({self.shift}.0f))" if self.shift else loaded

    def pack(self, constants: Mapping[int, Constant]) -> dict[int, np.ndarray]:
        return self.words.pack(constants)

    def packing(self) -> dict[int, str]:
        return {index: f"{name}, bytes" for index, name in self.words.packing().items()}


class _Words(Words):
    def in_word(self, numbers: np.ndarray) -> np.ndarray:
        """The number of byte b above as many others lies beside it, not behind those of all bytes."""
        apart = numbers.reshape(*numbers.shape[:-1], -1, FOUR)
        return np.ascontiguousarray(apart.swapaxes(-1, -2)).reshape(numbers.shape)

    @property
    def run(self) -> tuple[tuple[int, int], ...]:
        return ((self.per_word // FOUR, 1), (FOUR, self.per_word // FOUR))
