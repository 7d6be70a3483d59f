"""Weights of few bits for kernels with vectors: words of 32 bits, one for each column, with neighbouring elements of
the sum in each: four in the lowest bits of its bytes, the next four above them, so that a shift and a mask give four as
bytes too (`block_bytes.py`).

A number becomes a float under a mask where it lies, which makes it a power of two larger (`whole`); what it is
multiplied with, a scale or an element of the other operand, is made smaller by as much first (`unit`).

Invariant: words lie in the order in which tiles of columns read them: tile, block, word of the block, vector, lane;
scales and zero points likewise. The words of a block are its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import f32
from ...base.marked import named
from ...base.records import dataclass
from ...expr.code import Code
from ...kernels.api import Kernel
from ...kernels.column_tiles import ColumnTiles, column_tiles
from ...program.ir import Call
from ..vector.vector_groups import Groups
from ..vector.vector_tiles import TileSize, vector_headers
from .block_weights import contents, kind_of, label, raised, stored

WORD = 32  # bits
FOUR = 4  # bytes of a word


@dataclass(frozen=True)
class BlockRun:
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


class WordLayout:
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

    def cut(self, first: int, end: int) -> list[BlockRun]:
        """Some of the blocks, those of one length together."""
        whole = self.depth // self.block
        found = [BlockRun(first, min(end, whole) - first, self.block, self.per_word)] if first < min(end, whole) else []
        rest = self.depth % self.block
        return [*found, BlockRun(whole, 1, rest, self.per_word)] if rest and end > whole else found

    def place(self, number: int) -> int:
        """The lowest bit of a number of a word."""
        return number % FOUR * 8 + number // FOUR * self.dtype.bits

    def whole(self, number: int, words: str) -> str:
        """C of a number of each word, times `1 / unit`."""
        bits, of, at = self.dtype.bits, f"f32x{self.size.lanes}", self.place(number)
        if at + bits == WORD:
            return f"mcc_topmost_{of}({words}, {at})"
        return f"mcc_masked_{of}({words}, {((1 << bits) - 1) << at:#x})"

    def unit(self, number: int) -> Code:
        """C of what the float of a number of a word is multiplied with to be that number."""
        at = self.place(number)
        return Code("1.0f") if at in (0, WORD - self.dtype.bits) else Code(f"1.0f / {1 << at}.0f", loose=True)

    def scaled(self, number: int, vector: int) -> str:
        """C of weights as floats, given what to multiply and to add."""
        of, numbers = f"f32x{self.size.lanes}", self.whole(number, f"u{vector}")
        factor = f"scale_{vector}_{number}"
        if self.subtracted(vector, ""):
            return f"mcc_fma_{of}({numbers}, {factor}, less_{vector})"
        return f"mcc_mul_{of}({numbers}, {factor})"

    def factor(self, vector: int) -> str:
        """C of the scales of a vector in the block that begins at `at`."""
        stored = self.call.ins[2].buffer.dtype
        narrow = "" if stored is f32 else f"{stored}_"
        return f"mcc_load_{narrow}f32x{self.size.lanes}({named('scale')} + at + {vector * self.size.lanes})"

    def added(self, count: int) -> str:
        """C of the sum of x0, x1, ... in pairs of pairs."""
        terms = [Code(f"x{number}") for number in range(count)]
        while len(terms) > 1:
            paired = zip(terms[::2], terms[1::2], strict=False)
            pairs = [Code(f"{a.operand} + {b.operand}", loose=True) for a, b in paired]
            terms = pairs + terms[len(terms) // 2 * 2 :]
        return terms[0].text

    def subtracted(self, vector: int, at: str) -> str:
        """C of the zero points of a vector; nothing where these are 0."""
        of, more = f"f32x{self.size.lanes}", raised(self.dtype)
        if self.kind.zeros:
            place = f"(const uint8_t *)(const void *)({named('b_zero')} + {at} + {vector * self.size.lanes})"
            return f"mcc_load_bytes_{of}({place})"
        return f"mcc_set_{of}({more}.0f)" if more else ""

    def pack(self, constants: Mapping[int, Constant]) -> dict[int, np.ndarray]:
        b, blocks = contents(self.call, constants)
        words = []
        for stretch in self.stretches:
            begin = stretch.first * self.block
            part = b[:, begin : begin + stretch.count * stretch.length].reshape(len(b), stretch.count, -1)
            room = np.zeros((self.groups.padded, stretch.count, stretch.all_words * self.per_word), np.uint8)
            room[: len(b), :, : stretch.length] = part
            words.append(_in_bytes(room.reshape(self.groups.padded, -1, self.per_word)))
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

    def column_tiles(self) -> dict[int, list[ColumnTiles]]:
        parts, lanes = self.groups.parts(), self.size.lanes
        found = {place: column_tiles(parts, lanes, self.blocks) for place in range(2, self.kind.fixed)}
        if any(stretch.left for stretch in self.stretches):
            return found
        run = ((self.per_word // FOUR, 1), (FOUR, self.per_word // FOUR))  # numbers of a word: sizes and strides
        return {1: column_tiles(parts, lanes, self.depth, run), **found}

    def packing(self) -> dict[int, str]:
        name = f"words of {self.size.vectors}x{self.size.lanes} columns in blocks of {self.kind.block}"
        return dict.fromkeys(range(1, self.kind.fixed), name)


def _in_bytes(numbers: np.ndarray) -> np.ndarray:
    """Numbers of each word along the last axis, those in its lowest bits first."""
    apart = numbers.reshape(*numbers.shape[:-1], -1, FOUR)
    return np.ascontiguousarray(apart.swapaxes(-1, -2)).reshape(numbers.shape)


class WordsKernel(Kernel):
    """What kernels that read weights in words share. The last of their blocks says how bytes of weights are shifted."""

    def size(self, call: Call) -> TileSize:
        return TileSize(*call.blocks[:-1])

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        return WordLayout(call, self.size(call)).pack(constants)

    def packing(self, call: Call) -> Mapping[int, str]:
        return WordLayout(call, self.size(call)).packing()

    def column_tiles(self, call: Call) -> Mapping[int, Sequence[ColumnTiles]]:
        return WordLayout(call, self.size(call)).column_tiles()

    def label(self, call: Call) -> str:
        return label(call)

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call) | {"mcc_vec_bits.h"}
