"""One row of floats by weights of few bits in dot products of bytes, with what floats hold: each element is rounded to
23 bits of the largest in its block, and these are three bytes with a sign, its digits to the base 256.

Invariant: the workspace holds a scale for each block, the sum of what is multiplied with them, then all lowest digits,
all in the middle and all highest ones, each block in whole words with zeros behind its elements.
"""

from __future__ import annotations

from ...base.dims import static
from ...program.ir import Call
from ...targets.api import Target
from ..int8.dot_forms import TERMS, form_of
from ..int8.dot_tiles import SHIFT, dot_headers, dot_lanes
from ..vector.vector_tiles import TileSize
from .block_bytes import NUMBER, Bytes
from .block_weights import kind_of

NO_DIGITS = -1
COUNT = 3
SHORTEST, LONGEST = 16, 512  # elements of a block: it pays, and sums of digits are exact floats


def digits_of(call: Call, size: TileSize, target: Target) -> int:
    """How weights are shifted that are multiplied with digits, or `NO_DIGITS` where floats are as fast."""
    depth, bits = static(call.ins[0].shape[1]), call.ins[1].buffer.dtype.bits
    if bits > target.option("dot_digits", 0) or size.lanes != dot_lanes(target) or form_of(target) is TERMS:
        return NO_DIGITS
    if call.ins[0].strides[1] != 1 or not SHORTEST <= min(kind_of(call).block, depth) <= LONGEST:
        return NO_DIGITS
    return SHIFT if target.option("dot_signed", 0) and bits == 8 else 0


def digit_headers(call: Call) -> frozenset[str]:
    """Of kernels whose last block is `digits_of`."""
    return dot_headers(call) if call.blocks[-1] != NO_DIGITS else frozenset()


class Digits(Bytes):
    @property
    def plane(self) -> int:
        """Bytes between digits of an element."""
        return self.bytes + self.slack

    @property
    def room(self) -> int:
        """Bytes of the workspace."""
        return COUNT * self.plane + 2 * NUMBER * self.words.blocks
