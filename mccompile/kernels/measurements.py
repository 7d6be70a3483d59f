"""What kernels took where they were measured: one SQLite file, which compiles read and `mccompile tune` writes.

Invariant: a measurement is told from all others by its key, and the first one of a key stays; so files can be merged in
any order, and a run that is begun again does nothing twice. Compiling needs no such file.
"""

from __future__ import annotations

import hashlib
import math
import re
import sqlite3
import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from ..base.errors import BadFile, Problem
from ..base.text import write
from ..program.ir import Call
from ..targets.api import Target, processor
from .api import Cost, Kernel, Needs, No
from .identity import identity, version_of

BOARD = "board"  # the machine of measurements that a command of the user's has made
EMULATED = "emulated"
DEFAULT = "default"  # in place of a file: those that come with mccompile
SHIPPED = Path(__file__).with_name("tuned.sqlite")
_FORM = 1  # of the file


@dataclass(frozen=True, order=True)
class Key:
    call: str  # identity.py
    kernel: str
    version: str  # of the kernel
    blocks: str  # sizes that it chose
    target: str
    machine: str  # a processor, or EMULATED, or BOARD
    compiler: str  # of C


@dataclass(frozen=True)
class Measurement:
    key: Key
    figure: float
    unit: str
    model: float  # what the kernel's model said then


def target_name(target: Target) -> str:
    """Its name, and what of it decides how C runs that is not part of calls."""
    flags = " ".join((target.compiler, *target.cflags))
    return f"{target.name} {hashlib.sha256(flags.encode()).hexdigest()[:8]}"


def machine_of(target: Target) -> str:
    return EMULATED if target.run else processor()


class Database:
    """One file. It is made where there is none and `make` says so."""

    def __init__(self, path: Path, make: bool = False) -> None:
        self.path = path
        if not make and not path.is_file():
            why, fix = "there is no such file", f"`mccompile tune MODEL --database {path}` makes one"
            raise BadFile(Problem("cannot read measurements", str(path), why, fix))
        with self._opened() as file:
            (form,) = file.execute("PRAGMA user_version").fetchone()
            if form == 0 and make:
                names = [field.name for field in fields(Key)]
                columns = ", ".join(f"{name} TEXT NOT NULL" for name in names)
                file.execute(
                    f"CREATE TABLE IF NOT EXISTS measurements ({columns}, figure REAL NOT NULL, unit TEXT NOT NULL, "
                    f"model REAL NOT NULL, PRIMARY KEY ({', '.join(names)})) WITHOUT ROWID"
                )
                file.execute(f"PRAGMA user_version = {_FORM}")
            elif form != _FORM:
                why, fix = f"its form is {form}, not {_FORM}", "name a file that `mccompile tune` has written"
                raise BadFile(Problem("no file of measurements", str(path), why, fix))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            file = sqlite3.connect(self.path, timeout=60)
            try:
                with file:
                    yield file
            finally:
                file.close()
        except sqlite3.Error as error:
            fix = "name a file that `mccompile tune` has written"
            raise BadFile(Problem("cannot use the file of measurements", str(self.path), str(error), fix)) from None

    def add(self, found: Iterable[Measurement]) -> int:
        """How many are new."""
        rows = [(*astuple(one.key), one.figure, one.unit, one.model) for one in found]
        with self._opened() as file:
            before = file.total_changes
            marks = ", ".join("?" * (len(fields(Key)) + 3))
            file.executemany(f"INSERT OR IGNORE INTO measurements VALUES ({marks})", rows)
            return file.total_changes - before

    def rows(self, target: Target | None = None) -> list[Measurement]:
        """In the order of their keys."""
        with self._opened() as file:
            where = ("", ()) if target is None else ("WHERE target = ?", (target_name(target),))
            found = file.execute(f"SELECT * FROM measurements {where[0]}", where[1]).fetchall()
        own = len(fields(Key))
        return sorted((Measurement(Key(*row[:own]), *row[own:]) for row in found), key=lambda one: one.key)


class Measured:
    """What kernels take on one target: as measured, in the unit of their models."""

    def __init__(self, found: Iterable[Measurement], target: Target, release: str) -> None:
        """Of several machines a board counts, then what the target is measured on here; of several compilers the
        newest."""
        rows = [row for row in found if row.key.target == target_name(target)]
        places = [[row for row in rows if row.key.machine == place] for place in (BOARD, machine_of(target))]
        used = next((place for place in places if place), [])
        self.release = release
        self.scale = scale_of(used)
        self.times: dict[tuple[str, ...], float] = {}
        for row in sorted(used, key=lambda row: _numbers(row.key.compiler)):
            self.times[_look(row.key)] = row.figure / self.scale

    def time(self, kernel: Kernel, call: Call, needs: Needs) -> float | None:
        """Of the whole call by one worker."""
        return self.times.get((identity(call, needs), *of_kernel(kernel, needs, self.release)))

    def versions(self) -> Iterator[tuple[str, str]]:
        """The kernel of each measurement, and which version of it."""
        for _, kernel, version, _ in self.times:
            yield kernel, version

    def corrected(self, found: Cost, kernel: Kernel, call: Call, target: Target) -> Cost:
        """What the model says of a call, or what was measured; of parts of it in proportion."""
        if not self.times:
            return found
        whole = replace(call, rows=None, workers=1, scratch=None)
        needs = kernel.match(whole, target)
        if isinstance(needs, No) or not is_known(whole):
            return found
        time = self.time(kernel, whole, needs)
        if time is None:
            return found
        if call.rows is not None or call.workers > 1:
            model = kernel.cost(replace(whole, blocks=needs.blocks), target).time
            time = found.time * time / model if model else found.time
        return replace(found, time=time, measured=True)


def is_known(call: Call) -> bool:
    """Are its sizes numbers?"""
    return all(view.is_static for view in (*call.ins, *call.outs))


def of_kernel(kernel: Kernel, needs: Needs, release: str) -> tuple[str, str, str]:
    """The part of a key that is about the kernel."""
    return kernel.id, version_of(kernel, release), write(needs.blocks)


def scale_of(rows: Iterable[Measurement]) -> float:
    """How many units of measurements one of the models is, over all of them."""
    ratios = [math.log(row.figure / row.model) for row in rows if row.figure > 0 and row.model > 0]
    return math.exp(statistics.median(ratios)) if ratios else 1.0


def _look(key: Key) -> tuple[str, ...]:
    return key.call, key.kernel, key.version, key.blocks


def _numbers(compiler: str) -> tuple[tuple[int, ...], str]:
    """What versions are sorted by."""
    return tuple(int(part) for part in re.findall(r"\d+", compiler)), compiler


def file_of(tuned: Path) -> Path:
    """The file that a name means."""
    return SHIPPED if tuned == Path(DEFAULT) else tuned


def measured_by(path: Path, target: Target, release: str) -> Measured:
    return Measured(Database(file_of(path)).rows(target), target, release)
