"""A few rows by weights of few bits, which are converted where they lie: what kernels tell kernels_templates/block_few.

Invariant: the workspace holds the rows, made smaller for each place in a word, then the sum of each block of them; or
one row as digits (`block_digits.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.dims import static
from ...base.records import dataclass
from ...kernels.work import Units
from ...program.ir import Call
from ..loops import index_c
from ..vector.vector_epilogue import Epilogue, Reference, epilogue_statements
from ..vector.vector_tiles import SECOND_LEVEL, TileSize
from .block_digits import NO_DIGITS, Digits
from .block_weights import kind_of
from .block_words import FOUR, WordLayout

_FLOAT = 4
_BYTE = 8  # bits
_AHEAD = 2048  # bytes: what main memory delivers while it is asked for what follows


@dataclass(frozen=True)
class Group:
    """Tiles along the columns."""

    header: str
    vectors: int
    epilogue: Epilogue
    words: list[str]  # declarations of the words of its vectors


def room(call: Call, size: TileSize, digits: int) -> int:
    """Bytes of the workspace."""
    if digits != NO_DIGITS:
        return Digits(call, size, digits).room
    words = WordLayout(call, size)
    return size.points * (words.words * words.per_word + words.blocks) * _FLOAT


def few_rows(call: Call, size: TileSize, names: Sequence[str], digits: int) -> dict[str, Any]:
    """For the first `size.points` rows of a call; one in digits, whose weights are shifted by as much as `digits`."""
    words = WordLayout(call, size)
    headers = words.groups.headers("j", Units() if call.workers > 1 else None)
    parts = zip(headers, words.groups.parts(), strict=True)
    down, along = (static(stride) for stride in call.ins[0].strides)
    return {
        "words": words,
        "digits": None if digits == NO_DIGITS else Digits(call, size, digits),
        "of": f"f32x{size.lanes}",
        "rows": size.points,
        "groups": [_group(call, names, size, header, vectors, last) for header, (_, _, vectors, last) in parts],
        "along": along,
        "down": down,
        "elements": words.words * words.per_word,
        "ahead": _ahead(words),
        "first_of_rest": (words.words - words.stretches[-1].all_words) * words.per_word,
    }


def _ahead(words: WordLayout) -> int:
    """Bytes from weights that are used to those that are fetched; 0: those of a byte are read faster without."""
    is_large = FOUR * words.words * words.columns > SECOND_LEVEL
    return _AHEAD if is_large and words.dtype.bits < _BYTE else 0


def _group(call: Call, names: Sequence[str], size: TileSize, header: str, vectors: int, last: int) -> Group:
    def reference(view: Any, name: str) -> Reference:
        down, across = (static(stride) for stride in view.strides)
        return Reference(
            name, index_c([across], ["j"]), down if size.points > 1 else 0, across, stored=view.buffer.dtype
        )

    kind = kind_of(call)
    extras = [reference(view, name) for view, name in list(zip(call.ins, names, strict=True))[kind.fixed :]]
    of = (size.lanes, size.points, vectors, last)
    return Group(
        header,
        vectors,
        epilogue_statements(kind.epilogue, *of, reference(call.outs[0], "y"), extras, sums=True, long=True),
        [f"mcc_i32x{size.lanes} u{vector}" for vector in range(vectors)],
    )
