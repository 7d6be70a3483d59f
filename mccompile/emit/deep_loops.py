"""Which loop of a function that nests too deep becomes a function of its own, and what it is handed.

Invariant: a loop is taken only where every local that it reads is declared in a line that can be read here, and where
nothing in it ends the function; what it writes of the locals around it is handed as `type &name` (base/marked.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..base.marked import opens_part, part
from ..base.records import dataclass
from .declarations import arrays_written, declared, lines_of, names_in_macros, names_written
from .layout import Block
from .tokens import names_read, tokens

_LOOPS = ("for (", "while (")
_LEAVES = frozenset(("return", "goto"))
_POINTER = 3  # a local that is written reads as badly as so many that are read
SHORTEST = 6  # lines that are not worth a function


@dataclass(frozen=True)
class DeepLoop:
    """A loop, where it stands, and the head of the part that holds it."""

    around: Block
    place: int
    head: str
    cost: tuple[bool, int]  # is it short, and what it is handed


def deep_loop(block: Block, parameters: Mapping[str, str], deepest: int) -> DeepLoop | None:
    """The one to take out of a block, so that what is left, or the part, is less deep."""
    fixed = {name for name, declaration in parameters.items() if "&" not in declaration}
    found = _loops(block, 0, dict(parameters), fixed, deepest)
    return min(found, key=lambda loop: loop.cost, default=None)


def depth(block: Block) -> int:
    """How deep the blocks in a block are nested, where its parts stay in it."""
    inside = (item for item in block.inside if isinstance(item, Block))
    return max((depth(item) + (not opens_part(item.head)) for item in inside), default=0)


def _loops(block: Block, at: int, scope: dict[str, str], fixed: set[str], deepest: int) -> Iterator[DeepLoop]:
    """Those that are too deep; `at` is how deep the block is, `fixed` has the names that a part cannot write."""
    for place, item in enumerate(block.inside):
        new = declared(item if isinstance(item, str) else item.head)
        scope |= new
        fixed -= new.keys()
        if isinstance(item, str):
            continue
        high = depth(item) + 1
        if at + high <= deepest:
            continue
        ends = place + 1 == len(block.inside) or not str(getattr(block.inside[place + 1], "head", "")).startswith("}")
        if item.head.startswith(_LOOPS) and ends and high <= deepest and (loop := _taken(block, place, scope, fixed)):
            yield loop
        inside = {**scope, **declared(item.head.partition("(")[2])}
        yield from _loops(item, at + (not opens_part(item.head)), inside, set(fixed), deepest)


def _taken(around: Block, place: int, scope: Mapping[str, str], fixed: set[str]) -> DeepLoop | None:
    loop = around.inside[place]
    assert isinstance(loop, Block)
    lines = list(lines_of(loop))
    reads = {name for line in lines for name in names_read(line)} & scope.keys()
    written = [tokens(line) for line in lines]
    writes = {name for line in written for name in names_written(line)} & reads
    # An element of a vector, and what a macro is handed, may be written too; a pointer stays what it is.
    values = {name for name in reads - fixed if "*" not in scope[name]}
    writes |= {name for line in written for name in (*arrays_written(line), *names_in_macros(line))} & values
    unknown = any(not scope[name] for name in reads)
    if unknown or writes & fixed or any(map(_leaves, lines)):
        return None
    counter = next(iter(declared(loop.head.partition("(")[2])), "")
    head = part(
        f"over_{counter}_" if counter else "loop", (_handed(scope[name], name in writes) for name in sorted(reads))
    )
    return DeepLoop(around, place, head, (len(lines) < SHORTEST, len(reads) + _POINTER * len(writes)))


def _leaves(line: str) -> bool:
    """May it leave the function, or does the preprocessor read it?"""
    return line.startswith("#") or not _LEAVES.isdisjoint(names_read(line))


def _handed(declaration: str, is_written: bool) -> str:
    kind, _, name = declaration.rpartition(" ")
    stars = name[: len(name) - len(name.lstrip("*"))]
    return f"{kind} {stars}{'&' * is_written}{name[len(stars) :].removeprefix('&')}"
