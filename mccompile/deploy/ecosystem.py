"""The ecosystems that projects are written for: one folder in ecosystems/ each, and the programs: one in mains/ each.

An ecosystem's `ecosystem.toml` says how the model's files are arranged and where they go, which chips it has, what it
calls boards, and the commands of its README. Templates below the folder become files at their places, with NAME in
their paths replaced; one that comes out empty is left out.
Invariant: what a board is called there is a fact of the folder, or is given by the user; it is never guessed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.near import meant
from ..base.records import dataclass
from ..targets.boards.catalogue import Board

_HERE = Path(__file__).parent
ECOSYSTEMS, MAINS, SHARED = _HERE / "ecosystems", _HERE / "mains", _HERE / "shared"
_PACKAGED = re.compile(r"^(STM32\w{6}[A-Z])\d(\w*)$")  # makers' tools write x for the temperatures that it stands
_NONE = "-"  # in place of a fact: there is none
_BOARD = "board"  # the fact that says what the ecosystem calls a board


@dataclass(frozen=True)
class Ecosystem:
    name: str
    about: str
    needs: str  # what has to be installed
    layout: str  # how the model's files are arranged (emit/layouts)
    model: str  # the folder for these
    sources: str  # the folder for the program
    ram: int  # bytes that the rest of the program needs: stacks, drivers, an operating system
    build: Sequence[str] = ()  # commands
    flash: Sequence[str] = ()
    notes: Sequence[str] = ()
    port: str = "/dev/ttyACM0"  # where the board's line is seen
    chips: Sequence[str] = ("*",)  # that it has: patterns of their names
    bare: bool = False  # it brings start-up code, so it needs the compiler and the emulator of the target
    first: Sequence[str] = ()  # those for which it is taken where none is asked for
    microphones: Mapping[str, Sequence[str]] = field(default_factory=dict)  # each by patterns of chips and boards
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # each by pattern of board, chip or source

    @property
    def folder(self) -> Path:
        return ECOSYSTEMS / self.name

    def has(self, board: Board) -> bool:
        return any(_matches(pattern, board) for pattern in self.chips)

    def facts_of(self, board: Board, called: str = "") -> dict[str, str]:
        """What it says of a board; `called`: what it calls it, where the user says so."""
        found = {fact: _fact(table, board) for fact, table in self.facts.items()}
        if called:
            found[_BOARD] = called
        lacking = [fact for fact, said in found.items() if said == _NONE]
        if lacking == [_BOARD]:
            why = f"mccompile does not know what {self.name} calls {board.name}"
            fix = f"give its name there: --board-id NAME; or another one of {', '.join(_others(board, self))}"
            raise WrongUse(Problem(f"{self.name} has no name for {board.key}", "--board", why, fix))
        if lacking:
            raise self.refused(board, f"nothing here says its {' and '.join(lacking)} there")
        return {_BOARD: "", **found}

    def refuse_microphone(self, kind: str, board: Board) -> None:
        """Unless it has a driver for such a microphone at that board."""

        def reads(home: Ecosystem, kind: str) -> bool:
            return home.has(board) and any(_matches(pattern, board) for pattern in home.microphones.get(kind, ()))

        if reads(self, kind):
            return
        here = [f"--microphone {each}" for each in self.microphones if reads(self, each)]
        homes = [each for each in ecosystems().values() if reads(each, kind) and _is_called(each, board)]
        there = [f"--for {each.name}" for each in homes]
        why = f"nothing here has a driver of {self.name} for {kind.upper()} at a {board.chip}"
        fix = f"take {' or '.join([*here, *there])}" if here or there else "call <model>_push in a program of your own"
        raise WrongUse(Problem(f"{self.name} has no such microphone for {board.key}", f"--microphone {kind}", why, fix))

    def refused(self, board: Board, why: str) -> WrongUse:
        fix = f"one of {', '.join(_others(board, self))} has it: --for {_others(board, self)[0]}"
        return WrongUse(Problem(f"{self.name} does not have {board.key}", "--for", why, fix))


@dataclass(frozen=True)
class Main:
    """What a program does."""

    name: str
    about: str
    serial: str  # the emulated line, as QEMU takes it
    after: Sequence[str] = ()  # commands that use what runs
    server: str = ""  # what it links of `mccompile serve`: serve, or eembc for the runner of MLPerf Tiny
    emulator: str = ""  # options of QEMU
    prints: bool = False  # outputs, as text
    hears: bool = False  # it takes samples of a microphone

    @property
    def folder(self) -> Path:
        return MAINS / self.name


@cache
def ecosystems() -> Mapping[str, Ecosystem]:
    return {path.parent.name: Ecosystem(path.parent.name, **_toml(path)) for path in _tables(ECOSYSTEMS, "ecosystem")}


@cache
def mains() -> Mapping[str, Main]:
    return {path.parent.name: Main(path.parent.name, **_toml(path)) for path in _tables(MAINS, "main")}


def ecosystem_of(name: str, board: Board) -> Ecosystem:
    """The one called so; without a name that which is usual for the board."""
    if not name:
        usual = [each for each in ecosystems().values() if any(_matches(pattern, board) for pattern in each.first)]
        return usual[0] if usual else ecosystems()["platformio"]
    if name not in ecosystems():
        fix = meant(name, ecosystems(), "--for") or f"name one of them, such as --for {next(iter(ecosystems()))}"
        why = f"it can be {', '.join(ecosystems())}"
        raise WrongUse(Problem(f"there is no ecosystem {name!r}", "--for", why, fix))
    found = ecosystems()[name]
    if not found.has(board):
        raise found.refused(board, f"{board.name} has a {board.chip}, which it does not support")
    return found


def main_of(name: str) -> Main:
    if name not in mains():
        fix = meant(name, mains(), "--main") or f"name one of them, such as --main {next(iter(mains()))}"
        raise WrongUse(Problem(f"there is no program {name!r}", "--main", f"it can be {', '.join(mains())}", fix))
    return mains()[name]


def templates(folder: Path) -> Mapping[str, Path]:
    """By their places in the folder."""
    found = sorted(folder.rglob("*.j2"))
    return {path.relative_to(folder).as_posix().removesuffix(".j2"): path for path in found}


def _others(board: Board, but: Ecosystem) -> list[str]:
    """Ecosystems that have a board, the usual one first; there is always one."""
    found = [each for each in ecosystems().values() if each != but and each.has(board) and _is_called(each, board)]
    found.sort(key=lambda each: not any(_matches(pattern, board) for pattern in each.first))
    return [each.name for each in found] or ["none"]


def _is_called(ecosystem: Ecosystem, board: Board) -> bool:
    return all(_fact(table, board) != _NONE for table in ecosystem.facts.values())


def _fact(table: Mapping[str, str], board: Board) -> str:
    """What the first pattern that fits says."""
    said = next((said for pattern, said in table.items() if _matches(pattern, board)), _NONE)
    part = _PACKAGED.sub(r"\1x\2", board.chip)
    return said.format(key=board.key, KEY=board.key.upper(), chip=board.chip.lower(), part=part)


def _matches(pattern: str, board: Board) -> bool:
    return any(fnmatchcase(name, pattern) for name in (board.key, board.chip.lower(), f"from:{board.source}"))


def _tables(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(f"*/{name}.toml"))


def _toml(path: Path) -> Mapping[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
