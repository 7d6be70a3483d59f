"""copy_column_tiles: tiles of columns (tile_columns) run one after the other, and each is copied into the result as
soon as it is computed. A copy runs row by row with the calls that compute its tile; a single call that joins the
tiles would need all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base.dims import static
from ...expr.ir import operand
from ...kinds.concat import Concat
from ...kinds.map import Map
from ...program.ir import Buffer, Call, Item, Program, View, reads, walk, writes
from ..api import Context


def copy_column_tiles(program: Program, context: Context) -> None:
    if any(_is_join(item) for item in program.body):
        program.body[:] = _spread(program.body)


def _is_join(item: Item) -> bool:
    return isinstance(item, Call) and isinstance(item.kind, Concat) and item.kind.apart


def _spread(body: list[Item]) -> Iterator[Item]:
    makers: dict[Buffer, list[int]] = {}
    for number, item in enumerate(body):
        for inner in walk([item]):
            for view in writes(inner):
                makers.setdefault(view.buffer, []).append(number)
    left = set(range(len(body)))

    def needed(buffer: Buffer) -> Iterator[Item]:
        """What makes it and is not there yet, in order."""
        found, looked_at = set[int](), [buffer]
        while looked_at:
            for number in makers.get(looked_at.pop(), []):
                if number in left and number not in found:
                    found.add(number)
                    looked_at += [view.buffer for inner in walk([body[number]]) for view in reads(inner)]
        left.difference_update(found)
        return (body[number] for number in sorted(found))

    for number, join in enumerate(body):
        if isinstance(join, Call) and _is_join(join):
            for part, place in zip(join.ins, _places(join), strict=True):
                yield from needed(part.buffer)
                yield Call(Map(operand(0, part.buffer.dtype)), (part,), (place,), join.provenance)
            left.discard(number)
    yield from (body[number] for number in sorted(left))


def _places(join: Call) -> list[View]:
    """Where operands lie in the result."""
    axis, found, position = join.of(Concat).axis, list[View](), 0
    for part in join.ins:
        size = static(part.shape[axis])
        found.append(join.outs[0].sliced(axis, position, size))
        position += size
    return found
