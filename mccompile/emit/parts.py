"""Long functions in parts. A template marks blocks that may stand alone (`part` of base/marked.py); where a function
has more lines than `LONGEST` or loops and branches deeper than `DEEPEST`, its parts become functions of their own,
which compilers inline (`MCC_PART`). Equal parts that follow each other are one, as far as that is short. Where loops
are still too deep, one is found that can stand alone (deep_loops.py).

Invariant: a part is handed the names that it reads, and pointers to those that it writes. It declares nothing but in
blocks of its own, so where it stays, its brackets mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..base.marked import Part, called, opens_part, part_of, plain
from .deep_loops import SHORTEST, deep_loop, depth
from .layout import Block, shown
from .tokens import names_read, through_pointers

LONGEST = 150  # lines of a function that is not taken apart
DEEPEST = 5  # loops and branches around a line: six braces, with those of the function
_WIDTH = 110  # of a line that is surely not folded


def in_parts(top: Block, function: str, parameters: Mapping[str, str]) -> str:
    """The text of a function as it is printed, behind its parts, which may call what stands in front of it; changes
    the tree of it. `parameters`: how a part declares those of the function."""
    parts = _Parts(function, parameters)
    pieces: list[str] = []
    begin = head = 0  # of what is not printed yet, and of the function that is met next
    for place, item in enumerate(top.inside):
        if isinstance(item, Block) and (depth(item) > DEEPEST or _length(item) > LONGEST):
            known = len(parts.functions)
            parts.settle(item, parameters)
            if parts.functions[known:]:
                pieces += [*([_printed(top.inside[begin:head])] if head > begin else ()), *parts.functions[known:]]
                begin = head
        if isinstance(item, Block) or item.endswith(";"):
            head = place + 1
    return "\n".join((*pieces, _printed(top.inside[begin:])))


def _printed(items: list[Block | str]) -> str:
    top = Block("", items)
    dissolve(top)
    return shown(top)


class _Parts:
    def __init__(self, function: str, parameters: Mapping[str, str]) -> None:
        self.function, self.parameters = function, parameters
        self.functions: list[str] = []

    def settle(self, block: Block, scope: Mapping[str, str]) -> None:
        """Parts of parts first, then those of the block, until it is short enough, then loops that are too deep.
        `scope`: names that stand for something in the block, with their declarations."""
        _join(block)
        places = list(_places(block, 0))
        for around, place, _ in places:
            part = _block(around, place)
            self.settle(part, {**scope, **_opened(part).scope})
        length = _length(block) if places else 0
        for around, place, at in places:
            part = _block(around, place)
            is_deep = at + depth(part) > DEEPEST
            if not is_deep and length <= LONGEST:
                continue
            lines = _length(part)
            if is_deep or lines >= SHORTEST:
                around.inside[place] = self.call(part)
                length -= lines - 1
        while depth(block) > DEEPEST and (loop := deep_loop(block, scope, DEEPEST)):
            loop.around.inside[loop.place] = self.call(Block(loop.head, [loop.around.inside[loop.place]]))

    def call(self, block: Block) -> str:
        """Makes a block a function; the C that calls it."""
        part = _opened(block)
        names = names_read(_text(block))
        declared = {name: line for name, line in {**self.parameters, **part.scope}.items() if name in names}
        name = f"{self.function}_{part.name}{len(self.functions) + 1}"
        written = {name for name, line in declared.items() if "&" in line}
        signature = called(f"MCC_PART void {name}", [line.replace("&", "*") for line in declared.values()] or ["void"])
        whole = Block("", [signature, Block("{", block.inside)])
        dissolve(whole)
        head, _, body = shown(whole).partition("\n")
        self.functions.append(f"{head}\n{through_pointers(body, written)}")
        return called(name, ("&" * (each in written) + each for each in declared)) + ";"


def _block(around: Block, place: int) -> Block:
    block = around.inside[place]
    assert isinstance(block, Block)
    return block


def _opened(block: Block) -> Part:
    """The part that a block is."""
    part = part_of(block.head)
    assert part is not None
    return part


def _places(block: Block, at: int) -> Iterator[tuple[Block, int, int]]:
    """Where the parts of a block are and how deep, without those in other parts."""
    for place, item in enumerate(block.inside):
        if isinstance(item, Block):
            part = part_of(item.head)
            if part is not None and part.name and not part.is_step:
                yield block, place, at
            else:
                yield from _places(item, at + (part is None))


def _join(block: Block) -> None:
    """Makes parts of one name that follow each other one part, while it is short; not those inside of parts."""
    inside: list[Block | str] = []
    length = 0  # of the part that was met last, where it has been asked for
    for item in block.inside:
        last = inside[-1] if inside else ""
        if isinstance(item, Block) and not opens_part(item.head):
            _join(item)
        elif not isinstance(item, Block) or not isinstance(last, Block) or item.head != last.head:
            length = 0
        else:
            before, length = length or _length(last), _length(item)
            if before + length <= LONGEST:
                last.inside += item.inside
                length += before
                continue
        inside.append(item)
    block.inside = inside


def dissolve(block: Block) -> None:
    """Parts that stay where they are become what stands in them."""
    inside: list[Block | str] = []
    for item in block.inside:
        if isinstance(item, Block):
            dissolve(item)
            if opens_part(item.head):
                inside += item.inside
                continue
        inside.append(item)
    block.inside = inside


def _text(block: Block) -> str:
    return shown(Block("", [Block("{", block.inside)]))


def _length(block: Block) -> int:
    """Lines of a block, about as they are folded."""
    return folded_lines(_text(block).splitlines())


def folded_lines(lines: Iterable[str]) -> int:
    """How many there are, about, once they are folded."""
    return sum(1 if len(line) <= _WIDTH else max(1, -(-len(plain(line)) // _WIDTH)) for line in lines)
