"""Weights of few bits for kernels with vectors: words of 32 bits, one for each column, with neighbouring elements of
the sum in each.

A number becomes a float in one of two ways. Where its bits lie in a mantissa, an exponent above them makes their unit 1
(`Place`), and what that adds is subtracted together with the zero point: for weights that are kept as floats for some
time. Or it is converted under a mask where it lies, which makes it a power of two larger (`whole`), and what it is
multiplied with smaller by as much (`unit`); zero points come in with the sums of what they are multiplied with.

Invariant: words lie in the order in which tiles of columns read them: tile, block, word of the block, vector, lane;
scales and zero points likewise. The words of a block are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..base.constant import Constant
from ..base.dims import static
from ..program.ir import Call
from .block_weights import contents, kind_of, raised, stored
from .vector_tiles import Groups, TileSize

WORD, MANTISSA, BIAS = 32, 23, 127  # bits of a word and of a float's mantissa; what its exponent counts from


@dataclass(frozen=True)
class Place:
    """Where a number lies in a word, and what its float is more than the number: 2^(23 - bit)."""

    shift: int
    mask: int
    unit: int  # bits of the float that is added
    more: int

    @staticmethod
    def of(bit: int, bits: int, alike: bool) -> Place:
        """`alike`: numbers are shifted down to bit 0, so that all become more by the same."""
        shift = bit if alike else 0
        while bit - shift + bits > MANTISSA:  # as few different shifts as will do
            shift += bits * (MANTISSA // bits)
        at = bit - shift
        power = MANTISSA - at
        return Place(shift, ((1 << bits) - 1) << at, (BIAS + power) << MANTISSA, 1 << power)

    def numbers(self, of: str, words: str) -> str:
        """C of the floats."""
        return f"mcc_bits_{of}({words}, {self.shift}, {self.mask:#x}, {self.unit:#x})"


@dataclass(frozen=True)
class Stretch:
    """Blocks of one length: the first and how many there are, elements of each, those in whole words and those left."""

    first: int
    count: int
    length: int
    per_word: int

    @property
    def words(self) -> int:
        return self.length // self.per_word

    @property
    def left(self) -> int:
        return self.length % self.per_word

    @property
    def all_words(self) -> int:
        return -(-self.length // self.per_word)


class Words:
    """The layout of a call's weights, for tiles of a size."""

    def __init__(self, call: Call, size: TileSize) -> None:
        self.call, self.size, self.kind = call, size, kind_of(call)
        self.dtype = call.ins[1].buffer.dtype
        depth, columns = (static(dim) for dim in call.ins[1].shape)
        self.depth, self.columns, self.groups = depth, columns, Groups(size, columns)
        self.block = min(self.kind.block, depth)
        self.per_word = WORD // self.dtype.bits
        self.stretches = self.cut(0, -(-depth // self.block))
        self.blocks = sum(stretch.count for stretch in self.stretches)
        self.words = sum(stretch.count * stretch.all_words for stretch in self.stretches)

    def cut(self, first: int, end: int) -> list[Stretch]:
        """Some of the blocks, those of one length together."""
        whole = self.depth // self.block
        found = [Stretch(first, min(end, whole) - first, self.block, self.per_word)] if first < min(end, whole) else []
        rest = self.depth % self.block
        return [*found, Stretch(whole, 1, rest, self.per_word)] if rest and end > whole else found

    def places(self) -> tuple[Place, ...]:
        """Of the numbers in a word."""
        bits = self.dtype.bits
        return tuple(Place.of(number * bits, bits, self.kind.zeros) for number in range(self.per_word))

    def less(self, place: Place, vector: int) -> str:
        """C of what is subtracted from the floats of a vector: with zero points, these are in it."""
        of = f"f32x{self.size.lanes}"
        return f"zero_{vector}" if self.kind.zeros else f"mcc_set_{of}({place.more + raised(self.dtype)}.0f)"

    def whole(self, number: int, words: str) -> str:
        """C of a number of each word, times `1 / unit`."""
        bits, of = self.dtype.bits, f"f32x{self.size.lanes}"
        at = number * bits
        if at + bits == WORD:
            return f"mcc_topmost_{of}({words}, {at})"
        return f"mcc_masked_{of}({words}, {((1 << bits) - 1) << at:#x})"

    def unit(self, number: int) -> str:
        """C of what the float of a number of a word is multiplied with to be that number."""
        at = number * self.dtype.bits
        return "1.0f" if at + self.dtype.bits == WORD else f"(1.0f / {1 << at}.0f)"

    def added(self, count: int) -> str:
        """C of the sum of x0, x1, ... in pairs of pairs."""
        terms = [f"x{number}" for number in range(count)]
        while len(terms) > 1:
            pairs = [f"({a} + {b})" for a, b in zip(terms[::2], terms[1::2], strict=False)]
            terms = pairs + terms[len(terms) // 2 * 2 :]
        return terms[0]

    def subtracted(self, vector: int, at: str) -> str:
        """C of the zero points of a vector; nothing where these are 0."""
        of, more = f"f32x{self.size.lanes}", raised(self.dtype)
        if self.kind.zeros:
            place = f"(const uint8_t *)(const void *)(b_zero + {at} + {vector * self.size.lanes})"
            return f"mcc_load_bytes_{of}({place}, 0.0f)"
        return f"mcc_set_{of}({more}.0f)" if more else ""

    def zero(self, vector: int, at: str) -> str:
        """C of the zero points of a vector, and what is subtracted besides."""
        more = f"{Place.of(0, self.dtype.bits, True).more}.0f"
        place = f"(const uint8_t *)(const void *)(b_zero + {at} + {vector * self.size.lanes})"
        return f"mcc_load_bytes_f32x{self.size.lanes}({place}, {more})"

    def pack(self, constants: Mapping[int, Constant]) -> dict[int, np.ndarray]:
        b, blocks = contents(self.call, constants)
        words = []
        for stretch in self.stretches:
            begin = stretch.first * self.block
            part = b[:, begin : begin + stretch.count * stretch.length].reshape(len(b), stretch.count, -1)
            room = np.zeros((self.groups.padded, stretch.count, stretch.all_words * self.per_word), np.uint8)
            room[: len(b), :, : stretch.length] = part
            words.append(room.reshape(self.groups.padded, -1, self.per_word))
        numbers = stored(self._in_tiles(np.concatenate(words, axis=1)), self.dtype)
        found = {1: numbers, 2: self._in_tiles(self._padded(blocks[0]))}
        if self.kind.zeros:
            zeros = blocks[1].astype(np.int16) + raised(self.dtype)
            found[3] = self._in_tiles(self._padded(zeros)).astype(np.uint8).view(blocks[1].dtype)
        return found

    def _padded(self, rows: np.ndarray) -> np.ndarray:
        more = np.zeros((self.groups.padded - self.columns, *rows.shape[1:]), rows.dtype)
        return np.concatenate([rows, more])

    def _in_tiles(self, rows: np.ndarray) -> np.ndarray:
        """What belongs to columns in the order of tiles."""
        tiles = []
        for begin, end, vectors, _ in self.groups.parts():
            each = vectors * self.size.lanes
            tile = rows[begin:end].reshape(-1, each, *rows.shape[1:])
            tiles.append(np.moveaxis(tile, 1, 2).reshape(-1))
        return np.concatenate(tiles)

    def packing(self) -> dict[int, str]:
        name = f"words of {self.size.vectors}x{self.size.lanes} columns in blocks of {self.kind.block}"
        return dict.fromkeys(range(1, self.kind.fixed), name)
