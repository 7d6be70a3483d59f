"""A target is data: one TOML file in this folder, or a file of the user's own.

Invariants: a `Target` is complete and checked (nothing is left to inherit, no key is unknown, the chain of ISAs ends
in the portable `c`), and it is a value: equal files give equal targets. Only a target with a `detect` table (`native`)
depends on the machine that compiles.

The keys of a file are the fields of `Target` except `name`, which is the file's stem, and two more: `inherits` names
the target (or the file, relative to this one) that supplies every key that is missing here; `detect` is a list of
rules (`machine`, CPU `flags`, `inherits`, maybe `options`), of which the first that fits this machine says what to
inherit.
"""

from __future__ import annotations

import os
import platform
import re
import tomllib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from mccompile.base.choice import chosen
from mccompile.base.errors import BadFile, Problem, WrongUse
from mccompile.base.meanings import ours
from mccompile.base.near import meant

from ..base.records import dataclass
from .boards.catalogue import instead_of_target, listed, nearest_to_target, unwritten
from .machine import USUAL, Machine, machine_in, read_machine
from .processors import named_processor

_FOLDER = Path(__file__).resolve().parent
_NATIVE = "native"
_FALLBACK = "generic"  # what a target with rules inherits where none of them fits
_FLAG_LINES = ("flags", "Features")  # how /proc/cpuinfo heads the list on x86 and on Arm
_SLIP = 0.8  # how alike a name of a target is that was written wrong
POOL_NAME = re.compile(r"[a-z][a-z0-9]*")


class Prefer(StrEnum):
    """What to optimize for."""

    RAM = "ram"
    TIME = "time"
    FLASH = "flash"
    BALANCED = "balanced"

    @classmethod
    def written(cls, text: str) -> Prefer:
        return chosen(cls, text, "cannot prefer {!r}", "--prefer")


LEAST = -1  # a budget: as little as there can be
WORTH = {Prefer.RAM: 2, Prefer.BALANCED: 1}  # percent of time that one percent of RAM may cost


@dataclass(frozen=True)
class Pool:
    """A memory that buffers may be placed in. `bytes` is None where it is not limited; speed class 0 is the fastest.
    The name is part of names in C."""

    name: str
    bytes: int | None
    speed: int
    copied: bool = False  # steps never work there: what lies there is copied to and from the other memory
    rate: int | None = None  # megabytes per second that copies to and from it reach
    latency_ns: int = 0  # that each of them takes besides

    @property
    def latency_bytes(self) -> int:
        """How many bytes are copied in that time."""
        return (self.rate or 0) * self.latency_ns // 1000


def fastest_first(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """Those of one speed stay in the order in which they were named."""
    return tuple(sorted(pools, key=lambda pool: pool.speed))


@dataclass(frozen=True)
class Build:
    """How C for a target is compiled: all that build files, headers and reports say of it."""

    target: str = "generic"
    compiler: str = "cc"
    flags: tuple[str, ...] = ()  # of the compiler and for linking; not those that only say how much to optimize
    link_flags: tuple[str, ...] = ()  # further ones
    needs: str = ""  # condition of the preprocessor without which the code does not compile, or not to what it is
    hosted: bool = True

    @property
    def is_wasm(self) -> bool:
        """Is it linked to a module of WebAssembly, which is not an ELF file?"""
        return any("wasm" in flag for flag in self.flags)


# What build files say themselves, or leave to the program that the code goes into.
_NOT_NEEDED = re.compile(r"-std=.*|-O.*|-f(function|data)-sections")


@dataclass(frozen=True)
class Target:
    """What code is written for. Each field is explained where it stands."""

    name: str
    description: str  # one line, for `mccompile targets`
    isas: tuple[str, ...]  # kernels are looked for in this order; the last is "c"
    pointer_bytes: int
    address_bits: int  # of the addresses that data can have; one object takes up to half of what they reach
    vector_bytes: int  # of the widest vector that one instruction works on; 0 without vectors
    align: int  # of the arena and of every buffer in it, in bytes
    pools: tuple[Pool, ...]
    compiler: str
    cflags: tuple[str, ...]
    run: str  # command that a program's path is appended to; empty: run it as it is
    prefer: Prefer
    guard: str = ""  # condition of the preprocessor that holds where code is compiled for it; for several targets
    needs: str = ""  # condition that holds where flags are as the kernels need them; empty: any compiler will do
    cpu: str = ""  # C (mcc_cpu_x86.h) that is true at run time where the processor runs code for it
    mhz: int = 0  # of the core, where that is known; --board says it too
    hosted: bool = True  # programs run under an operating system; else firmware brings what they are linked with
    options: tuple[tuple[str, int], ...] = ()  # block sizes that kernels ask for by name; merged along `inherits`
    machine: Machine = USUAL  # what things take there (machine.py); merged along `inherits`

    @property
    def largest_object(self) -> int:
        """Bytes that one array can have, such that differences of its addresses fit a word."""
        return (1 << (self.address_bits - 1)) - 1

    @property
    def separate_pools(self) -> tuple[Pool, ...]:
        """The pools that tensors are shared out among; none where there is one memory without a limit."""
        return self.pools if len(self.pools) > 1 or self.pools[0].bytes is not None else ()

    @property
    def build(self) -> Build:
        flags = [flag for flag in self.cflags if not _NOT_NEEDED.fullmatch(flag)]
        linking = tuple(flag for flag in flags if flag.startswith("-fuse-ld"))
        others = tuple(flag for flag in flags if flag not in linking)
        return Build(self.name, self.compiler, others, linking, self.needs, self.hosted)

    def option(self, name: str, default: int) -> int:
        return dict(self.options).get(name, default)


@cache
def names() -> tuple[str, ...]:
    """Every target that comes with mccompile, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load(name_or_path: str) -> Target:
    """The target of that name, or of that TOML file (anything that ends in .toml or holds a path separator)."""
    path = _find(name_or_path, Path())
    return _own(path) if path.parent == _FOLDER and path.stem != _NATIVE else _made(path)


@cache
def _own(path: Path) -> Target:
    """A target that comes with mccompile, and means the same on every machine."""
    return _made(path)


def _made(path: Path) -> Target:
    table = _read_with_inherited(path, ())
    table.setdefault("address_bits", min(48, 8 * table.get("pointer_bytes", 8)))
    problems = [f"{key} is missing" for key in _READERS if key not in table and key not in _OPTIONAL]
    problems = problems or _contradictions(table)
    if problems:
        raise _bad(path, problems)
    table["options"] = tuple(sorted(table.get("options", {}).items()))
    return Target(name=path.stem, **{**table, "machine": machine_in(table.get("machine", {}))})


def runs_here(target: Target) -> bool:
    """Does this machine run programs for a target that names no emulator? What `native` is here says so."""
    if target.name in (_FALLBACK, _NATIVE):
        return True
    rules = _read(_FOLDER / f"{_NATIVE}.toml")["detect"]
    return any(rule.inherits == target.name and rule.fits() for rule in rules)


def is_file(target: str) -> bool:
    """Is it a file of the user's own, not a name?"""
    return target.endswith(".toml") or os.sep in target


def _find(name_or_path: str, folder: Path) -> Path:
    if is_file(name_or_path):
        return folder / name_or_path
    if name_or_path not in names():
        raise WrongUse(_unknown(name_or_path))
    return _FOLDER / f"{name_or_path}.toml"


def _unknown(name: str) -> Problem:
    """A chip or a board leads to its target, a word to the one that is written like it."""
    first = name.split(",")[0]
    if "," in name:
        why = "with several targets, `mccompile compile`, `check`, `bench`, `analyze` and `studio` do each"
        return Problem("one target is needed here", f"--target {name}", why, f"did you mean --target {first}?")
    board = instead_of_target(name)
    known = named_processor(name)
    if "targets" in ours(name):
        return Problem(
            f"unknown target {name!r}", "--target", "no target has this name", "`mccompile targets` lists them"
        )
    strange = unwritten(name)
    if strange is not None:
        return Problem(f"no code is written for {name}", "--target", f"{strange.what}: {strange.why}", strange.instead)
    is_core = known is not None and name.lower() in f"{known.target} {known.what.lower()}"  # `m33`, which boards have
    boards = "" if is_core else board or listed(name)
    known = None if boards else known
    why = f"the targets are {', '.join(names())}" if known is None else f"{name}: {known.what}"
    is_board = boards and not get_close_matches(name.lower(), names(), 1, _SLIP)
    close = f"did you mean --target {known.target}?" if known is not None else boards if is_board else ""
    fix = board or close or meant(name, names(), "--target") or nearest_to_target(name)
    usual = f"did you mean --target {_FALLBACK}? It runs everywhere; or write a file of your own: --target ./mine.toml"
    return Problem(f"unknown target {name!r}", "--target", why, fix or usual)


def _read_with_inherited(path: Path, heirs: tuple[Path, ...]) -> dict[str, Any]:
    """The checked keys of a file and of all that it inherits from; the nearest wins, tables are merged."""
    if path.resolve() in heirs:
        circle = " -> ".join(heir.stem for heir in (*heirs, path))
        raise _bad(path, [f"it inherits from itself: {circle}"])
    own = _read(path)
    parent = own.pop("inherits", None)
    rules = own.pop("detect", None)
    if rules is not None:
        rule = next((rule for rule in rules if rule.fits()), _Rule("", frozenset(), _FALLBACK, {}))
        parent, own["options"] = rule.inherits, {**own.get("options", {}), **rule.options}
    if parent is None:
        return own
    try:
        inherited = _read_with_inherited(_find(parent, path.parent), (*heirs, path.resolve()))
    except WrongUse as error:
        raise _bad(path, [f"it inherits from {parent!r}, which is not a target"]) from error
    merged = {name: {**inherited.get(name, {}), **own.get(name, {})} for name in ("options", "machine")}
    return {**inherited, **own, **merged}


def _read(path: Path) -> dict[str, Any]:
    """The keys that stand in one file, each turned into what the field of `Target` holds."""
    return dict(_read_own(path) if path.parent == _FOLDER else _read_now(path))


@cache
def _read_own(path: Path) -> dict[str, Any]:
    """A file that comes with mccompile: it stays as it is."""
    return _read_now(path)


def _read_now(path: Path) -> dict[str, Any]:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _bad(path, [error.strerror or str(error)]) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad(path, [f"it is not TOML: {error}"]) from error
    readers = _READERS | {"inherits": _text, "detect": _rules}
    problems, table = [], {}
    for key, value in raw.items():
        if key not in readers:
            hint = meant(key, readers) or f"the keys are {', '.join(sorted(readers))}"
            problems.append(f"unknown key {key!r}; {hint}")
            continue
        try:
            table[key] = readers[key](value)
        except ValueError as error:
            problems.append(f"{key} must be {error}, not {value!r}")
    if "inherits" in raw and "detect" in raw:
        problems.append("inherits and detect exclude each other")
    if problems:
        raise _bad(path, problems)
    return table


def _bad(path: Path, problems: list[str]) -> BadFile:
    fix = f"correct the file; every key is explained in {Path(__file__).name} beside the targets of mccompile"
    return BadFile(*(Problem(f"bad target file {path.name}", where=str(path), why=why, fix=fix) for why in problems))


def _contradictions(table: dict[str, Any]) -> list[str]:
    found = []
    if not table["isas"] or table["isas"][-1] != "c":
        found.append('isas must end in "c", the portable kernels that every target falls back to')
    for key in ("isas", "pools"):
        listed = [item if isinstance(item, str) else item.name for item in table[key]]
        if len(set(listed)) != len(listed):
            found.append(f"{key} names something twice: {', '.join(listed)}")
    if not table["pools"]:
        found.append("pools must name at least one memory")
    for key, zero in (("pointer_bytes", False), ("align", False), ("vector_bytes", True)):
        value = table[key]
        if value & (value - 1) or not (value or zero):
            found.append(f"{key} must be a power of two{' or 0' if zero else ''}, not {value}")
    return found


# Readers turn what TOML holds into what the field holds; their ValueError completes the sentence "... must be".


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a string")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a whole number, 0 or more")
    return value


def _prefer(value: object) -> Prefer:
    if not isinstance(value, str) or value not in list(Prefer):
        raise ValueError(f"one of {', '.join(Prefer)}")
    return Prefer(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("a list of strings")
    return tuple(value)


def _pools(value: object) -> tuple[Pool, ...]:
    expected = "a list of tables with name, speed and, where they apply, bytes, copied, rate and latency_ns"
    pools = []
    for item in value if isinstance(value, list) else [None]:
        keys = {"name", "speed", "bytes", "copied", "rate", "latency_ns"}
        if not isinstance(item, dict) or not {"name", "speed"} <= item.keys() <= keys:
            raise ValueError(expected)
        if not isinstance(item.get("copied", False), bool):
            raise ValueError(expected)
        size, rate = (_count(item[key]) if key in item else None for key in ("bytes", "rate"))
        latency = _count(item.get("latency_ns", 0))
        if latency and not rate:
            raise ValueError("a list of pools, each with a rate where it has a latency")
        name = _text(item["name"])
        if not POOL_NAME.fullmatch(name):
            raise ValueError("a list of pools whose names are small letters and digits, such as dtcm")
        pools.append(Pool(name, size, _count(item["speed"]), item.get("copied", False), rate, latency))
    return fastest_first(pools)


def _options(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise ValueError("a table of whole numbers")
    return {name: _count(number) for name, number in value.items()}


def _rules(value: object) -> list[_Rule]:
    rules = []
    for item in value if isinstance(value, list) else [None]:
        if not isinstance(item, dict) or item.keys() - {"options"} != {"machine", "flags", "inherits"}:
            raise ValueError("a list of tables with machine, flags, inherits and maybe options")
        machine, inherits, options = _text(item["machine"]), _text(item["inherits"]), _options(item.get("options", {}))
        rules.append(_Rule(machine, frozenset(_texts(item["flags"])), inherits, options))
    return rules


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


_OPTIONAL = ("options", "machine", "guard", "needs", "cpu", "hosted", "mhz")
_READERS: dict[str, Callable[[object], Any]] = {
    "description": _text,
    "isas": _texts,
    "pointer_bytes": _count,
    "address_bits": _count,
    "vector_bytes": _count,
    "align": _count,
    "pools": _pools,
    "compiler": _text,
    "cflags": _texts,
    "run": _text,
    "prefer": _prefer,
    "guard": _text,
    "needs": _text,
    "cpu": _text,
    "hosted": _truth,
    "mhz": _count,
    "options": _options,
    "machine": read_machine,
}


@dataclass(frozen=True)
class _Rule:
    """One line of a `detect` table."""

    machine: str
    flags: frozenset[str]
    inherits: str
    options: dict[str, int]

    def fits(self) -> bool:
        return platform.machine() == self.machine and self.flags <= _cpu_flags()


@cache
def _cpu_flags() -> frozenset[str]:
    """What Linux says of the first CPU; nothing where there is no such file, so that only rules without flags fit."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return next(
        (frozenset(line.partition(":")[2].split()) for line in lines if line.startswith(_FLAG_LINES)), frozenset()
    )


@cache
def processor() -> str:
    """What Linux calls the first CPU, or Python that of another system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
