"""The catalogue: what is known of a board or a chip by name, and what was meant by a name that is not in it.

Invariant: every fact stands in a TOML file of this folder, which names its source; a name leads to one board, or the
boards that it could mean have the same core and memories, or it is refused with those that it could mean. A chip
belongs to the family whose name it begins with (`families.toml`, `other_families.toml`), and a family has a core
(`cores.toml`), which says for which target code is written; or it stands in `no_families.toml`, which says why not.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from mccompile.base.errors import Problem, WrongUse
from mccompile.base.records import dataclass
from mccompile.targets.processors import named_processor

_FOLDER = Path(__file__).resolve().parent
_NO_BOARDS = ("cores", "families", "other_families", "no_families")
_UNITS = {"K": 1 << 10, "M": 1 << 20}
_CHIP, _STM32_PART = 8, 11  # letters that tell a chip from others; what follows those of an STM32 is its package
_SHORT = re.compile(r"[a-z]{1,3}\d[a-z\d]{0,2}([a-z][a-z\d]([a-z]\d(tr)?)?)?")  # what follows `stm32`
_MAKER = 4  # letters that chips of one maker have in common
_KIT = re.compile(r"^(lp|launchxl|frdm|evk|ek|nucleo|kit|cy8ckit|cy8cproto|evb|numaker)(?=[a-z]+\d)")
_OWN = ("nucleo", "disco", "ek_", "frdm", "lpcxpresso")  # how boards of the makers of chips are called
_NAMELESS = "`mccompile boards stm32f4` lists a family; for other chips name the core: `mccompile targets` lists them"
_SHOWN = 4  # boards that a message names
_FEW = 3  # boards that are named instead of the command that lists them
_WORD = 3  # letters that are looked for inside of names


@dataclass(frozen=True)
class Core:
    """A core, and the target whose code runs there."""

    name: str
    target: str
    fpu: bool = False
    dsp: bool = False
    constants_in_ram: bool = False  # start-up code copies them from flash, which pointers do not reach
    note: str = ""


@dataclass(frozen=True)
class Board:
    """A board, or a chip by itself. `ram` is the largest memory in one piece that programs keep data in."""

    key: str  # what --board takes
    name: str
    chip: str
    core: Core
    mhz: int  # the fastest clock of its core
    ram: int
    flash: int
    also: tuple[str, ...] = ()  # other names
    source: str = ""  # the file that it stands in

    @property
    def budget(self) -> dict[str, int]:
        """What a model may take of it at most."""
        return {"ram": self.ram, "weights": self.ram if self.core.constants_in_ram else self.flash}

    @property
    def memories(self) -> tuple[Core, int, int]:
        return self.core, self.ram, self.flash

    @property
    def names(self) -> set[str]:
        without_maker = self.name.partition(" ")[2]
        return {_letters(name) for name in (self.key, self.name, without_maker, *self.also)} - {""}

    def has_chip(self, letters: str) -> bool:
        """Is its chip called so, without its package or with another one?"""
        own = _letters(self.chip)
        if own.startswith("stm32") and letters.startswith("stm32"):
            own, letters = own[:_STM32_PART], letters[:_STM32_PART]
        shorter, longer = sorted((own, letters), key=len)
        return own == letters or (len(shorter) >= _CHIP and longer.startswith(shorter))


@cache
def cores() -> dict[str, Core]:
    return {key: Core(**table) for key, table in _read("cores").items()}


@cache
def families() -> dict[str, Core]:
    """The core of each family of chips, by how the names of its chips begin."""
    by_core = {start: core for core, starts in _read("other_families").items() for start in starts}
    return {start: cores()[core] for start, core in (_read("families") | by_core).items()}


@dataclass(frozen=True)
class UnsupportedChips:
    """Chips for which no code is written."""

    what: str
    why: str
    instead: str
    starts: tuple[str, ...]


def unwritten(name: str) -> UnsupportedChips | None:
    """What keeps code from chips that begin like that; None where nothing does."""
    if core_of(name) is not None:
        return None
    letters = _letters(name)
    known = (UnsupportedChips(**table) for table in _read("no_families").values())
    return next((each for each in known if letters.startswith(tuple(each.starts))), None)


@cache
def boards() -> dict[str, Board]:
    """All of them by name, sorted."""
    files = (path.stem for path in _FOLDER.glob("*.toml") if path.stem not in _NO_BOARDS)
    found = {key: _board(key, table, file) for file in files for key, table in _read(file).items()}
    return dict(sorted(found.items()))


def family(chip: str) -> tuple[str, Core] | None:
    """The family that a chip belongs to, or that is called so; of a kit that of its chip."""
    letters = _chip_letters(chip)
    starts = [start for start in families() if letters.startswith(start)]
    longer = [start for start in families() if len(letters) > _WORD and start.startswith(letters)]
    start = max(starts, key=len, default=longer[0] if len(longer) == 1 else "")
    on_kit = _KIT.sub("", letters)
    return (start, families()[start]) if start else family(on_kit) if on_kit != letters else None


def find(name: str) -> Board:
    """The board or chip of that name."""
    found = _meant(name)
    if not found:
        raise WrongUse(unknown(name))
    told_apart = {board.memories: board for board in reversed(found)}
    if len(told_apart) > 1:
        several = list(reversed(told_apart.values()))
        why = "; ".join(
            f"{board.key} has {shown(board.ram)} of RAM, {shown(board.flash)} of flash" for board in several
        )
        fix = f"name one of them: --board {found[0].key}"
        raise WrongUse(Problem(f"{name!r} can be {len(found)} boards or chips", "--board", why, fix))
    return found[0]


def search(word: str) -> list[Board]:
    """Those whose names, chip or core hold that word; the nearest ones where none does, but for what is known."""
    known = family(word) or unwritten(word)
    return _holding(word) or ([] if known else _near(word))


def core_of(name: str) -> Core | None:
    """The core of a board, a chip or a family."""
    meant, known = _meant(name), family(name)
    return meant[0].core if meant else known[1] if known else None


def instead_of_target(name: str) -> str:
    """What to write where a board, a chip or a family is given as a target; empty where it is not one of them."""
    meant, core = _meant(name), core_of(name)
    if core is None:
        return ""
    found = meant or _of_family(name)
    which = "" if meant else "one of its boards, such as "
    board = f", or {which}--board {found[0].key} (sets memories too)" if found else ""
    return f"{name} runs on {core.name}: --target {core.target}{board}"


def nearest_to_target(name: str) -> str:
    """What to write where a target is written like a board; empty where none is near."""
    near = _near(name)
    return f"did you mean --board {near[0].key} or --target {near[0].core.target}, its core?" if near else ""


def listed(word: str) -> str:
    """The boards and chips that have a word in their names, or the command that lists them; empty where none has."""
    found = _holding(word)
    if 0 < len(found) <= _FEW:
        return f"did you mean {' or '.join(f'--board {board.key}' for board in found)}?"
    return f"`mccompile boards {word}` lists {len(found)} boards and chips with their targets" if found else ""


def _meant(name: str) -> list[Board]:
    """The board of that name; else those with a chip of that name, which people know best first."""
    letters = _letters(name)
    exact = [board for board in boards().values() if letters == _letters(board.key)]
    found = exact or [board for board in boards().values() if letters in board.names]
    chip = _chip_letters(name)
    return _known_first(found or [board for board in boards().values() if board.has_chip(chip)])


def _of_family(name: str) -> list[Board]:
    known = family(name)
    return _known_first([board for board in boards().values() if known is not None and family(board.chip) == known])


def _holding(word: str) -> list[Board]:
    letters = _letters(word)
    if len(letters) < _WORD:
        return []
    texts = {key: (*board.names, _letters(f"{board.chip} {board.core.name}")) for key, board in boards().items()}
    return [board for key, board in boards().items() if any(letters in text for text in texts[key])]


def _known_first(found: list[Board]) -> list[Board]:
    """The makers' own boards come before those of others."""

    def rank(board: Board) -> tuple[int, bool, str]:
        place = next((place for place, start in enumerate(_OWN) if board.key.startswith(start)), len(_OWN))
        return place, not board.also, board.key

    return sorted(found, key=rank)


def larger(than: Board, budget: Mapping[str, int]) -> list[Board]:
    """Boards with so much RAM and flash, those of the same maker, of the same core, and with the least RAM first; one
    of each size."""
    fit = [board for board in boards().values() if all(board.budget[what] >= need for what, need in budget.items())]

    def distance(board: Board) -> tuple[bool, bool, int, int, str]:
        maker = _letters(board.chip)[:_MAKER] != _letters(than.chip)[:_MAKER]
        return maker, board.core != than.core, board.ram, board.flash, board.key

    sizes: dict[tuple[int, int], Board] = {}
    for board in sorted(fit, key=distance):
        sizes.setdefault((board.ram, board.flash), board)
    return list(sizes.values())


def shown(size: int) -> str:
    """As files write it."""
    unit = next((unit for unit in ("M", "K") if size % _UNITS[unit] == 0), "")
    return f"{size // _UNITS[unit]}{unit}" if unit else str(size)


def unknown(name: str, where: str = "--board") -> Problem:
    known, strange = family(name), unwritten(name)
    if strange is not None:
        return Problem(f"no code is written for {name}", where, f"{strange.what}: {strange.why}", strange.instead)
    if known is not None:
        start, core = known
        why = f"the catalogue has no such board or chip; {start} is a family with {core.name}"
        some = ", ".join(board.key for board in _of_family(name)[:_SHOWN])
        fix = f"its boards are {some} (`mccompile boards {start}`)" if some else ""
        if close := [board.key for board in _near(name) if family(board.chip) == known]:
            fix = f"did you mean --board {close[0]}? {fix}"
        alone = f"without one: --target {core.target} --budget ram=96K"
        return Problem(f"unknown board {name!r}", where, why, "; ".join(filter(None, (fix, alone))))
    processor = named_processor(name)
    if processor is not None and (processor.target == name or not listed(name)):
        why = f"{name}: {processor.what}; boards and chips have names of their own"
        fix = f"did you mean --target {processor.target}?"
        return Problem(f"unknown board {name!r}", where, why, fix)
    near = [board.key for board in _near(name)]
    why = f"none of {len(boards())} boards and chips is called so"
    fix = f"did you mean --board {' or --board '.join(near)}?" if near else _NAMELESS
    return Problem(f"unknown board {name!r}", where, why, listed(name) or fix)


def _near(name: str) -> list[Board]:
    by_name = {letters: board for board in boards().values() for letters in sorted(board.names)}
    close = get_close_matches(_letters(name), by_name, 3, 0.75)
    return list({by_name[letters].key: by_name[letters] for letters in close}.values())


def _letters(name: str) -> str:
    """A name without what people write in different ways."""
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    return letters.removeprefix("at") if letters.startswith("atsam") else letters


def _chip_letters(name: str) -> str:
    """The name of a chip in full: people leave out the first letters of an STM32 (`f446`, `H743ZI`)."""
    letters = _letters(name)
    whole = f"stm32{letters}"
    return whole if _SHORT.fullmatch(letters) and any(whole.startswith(start) for start in families()) else letters


def _read(file: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{file}.toml").read_text(encoding="utf-8"))


def _board(key: str, table: dict[str, Any], file: str) -> Board:
    known = family(table["chip"])
    if known is None:
        raise ValueError(f"no family has chip {table['chip']} of board {key}")
    sizes = {what: _bytes(table[what]) for what in ("ram", "flash")}
    also = tuple(table.get("also", ()))
    return Board(key, table["name"], table["chip"], known[1], table["mhz"], **sizes, also=also, source=file)


def _bytes(text: str) -> int:
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else int(text)


def lines(found: list[Board]) -> Iterator[list[str]]:
    """A row of a table for each."""
    for board in found:
        speed = f"{board.mhz} MHz"
        yield [board.key, board.core.name, board.core.target, speed, shown(board.ram), shown(board.flash), board.name]
