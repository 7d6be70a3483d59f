"""Sizes that a file leaves open and nobody gives: what is open, and sizes worth trying.

Invariant: what is proposed has been tried; where nothing that was tried fits, no number is named.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace

from ..base.errors import BadFile, MccError, Problem, UnsupportedModel
from ..base.records import dataclass

Shape = tuple[int | str | None, ...]
_USERS_SHOWN = 3
_MOST_TRIES = 24
_MOST_NODES = 6000  # of the graph, over all tries
_ELEMENTS = 10  # of a sequence
# Sizes of pictures, of what is long (text, time), and of what a cache holds already; the likeliest first.
_TRIED = (
    (224, 16, 16),
    (32, 1, 16),
    (64, 128, 128),
    (256, 64, 64),
    (128, 256, 256),
    (96, 512, 512),
    (28, 8, 8),
    (160, 100, 100),
    (512, 80, 80),
    (320, 32, 1),
    (1, 1, 1),
    (112, 2, 2),
    (640, 1024, 1024),
    (299, 49, 49),
)
_LONG = re.compile(r"seq|len|time|frame|step|token|sample|num|past|total|cache", re.IGNORECASE)
_PICTURE = re.compile(r"height|width|size|image|^[hw]$", re.IGNORECASE)
_BATCH = re.compile(r"batch|^(n|b|bs)$", re.IGNORECASE)


@dataclass(frozen=True)
class Sizes:
    """A size for all that is open."""

    dims: Mapping[str, tuple[int, int]]
    shapes: Mapping[str, tuple[int, ...]]
    bounds: Mapping[str, tuple[int, ...]]

    @property
    def flags(self) -> str:
        given = [("--dim", name, str(low)) for name, (low, _) in self.dims.items()]
        given += [("--shape", name, ",".join(map(str, shape))) for name, shape in self.shapes.items()]
        given += [("--bound", name, str(most[0])) for name, most in self.bounds.items()]
        return " ".join(f"{flag} {shlex.quote(f'{name}={size}')}" for flag, name, size in given)


@dataclass
class OpenSizes:
    """What is open, and the users of each."""

    dims: dict[str, list[tuple[str, int, Shape]]] = field(default_factory=dict)  # name -> input, axis, shape
    shapes: dict[str, Shape | None] = field(default_factory=dict)  # of inputs with sizes that have no name
    sequences: dict[str, None] = field(default_factory=dict)
    users: dict[str, list[str]] = field(default_factory=dict)  # in words, in the order in which they were found

    def use(self, what: str, user: str) -> None:
        self.users.setdefault(what, []).append(user)

    def places(self, file: str) -> str:
        lines = []
        for users in self.users.values():
            each = list(dict.fromkeys(users))
            more = [f"{len(each) - _USERS_SHOWN} more inputs"] if len(each) > _USERS_SHOWN else []
            lines.append(f"{' and '.join([*each[:_USERS_SHOWN], *more])} in {file}")
        return "\n".join(lines)

    def sizes(self, picture: int, long: int, past: int) -> Sizes:
        of = {"one": 1, "picture": picture, "long": long, "past": past, "total": long + past}
        has_past = any(_kind(name, places) == "past" for name, places in self.dims.items())
        if not has_past:
            of["total"] = long
        dims = {name: of[_kind(name, places)] for name, places in self.dims.items()}
        shapes = {
            name: tuple(
                size if isinstance(size, int) else dims.get(size or "", of[_kind_at(axis, shape)])
                for axis, size in enumerate(shape)
            )
            for name, given in self.shapes.items()
            for shape in [given if given is not None else (1, 3, None, None)]
        }
        return Sizes(
            {name: (size, size) for name, size in dims.items()},
            shapes,
            {name: (_ELEMENTS,) for name in self.sequences},
        )


class SizesMissing(UnsupportedModel):
    """Sizes are open that nobody gives."""

    def __init__(self, free: OpenSizes, file: str) -> None:
        self.open, self.file = free, file
        super().__init__(self.problem(""))

    def problem(self, fix: str) -> Problem:
        why = "memory is planned at compile time, so every size must be known"
        return Problem("free dimensions have no size", self.open.places(self.file), why, fix)


class SizesMisfit(SizesMissing):
    """A file has numbers for what it leaves open, and these do not fit together."""

    def __init__(self, shapes: Mapping[str, tuple[int | str, ...]], file: str, why: str) -> None:
        self.why = why
        free = OpenSizes()
        for name, shape in shapes.items():
            for axis, size in enumerate(shape):
                if isinstance(size, str):
                    free.dims.setdefault(size, []).append((name, axis, shape))
                    free.use(f"--dim {size}", f"{size!r} of input {name!r}")
        super().__init__(free, file)

    def problem(self, fix: str) -> Problem:
        what = "the file's own sizes do not fit together, and it leaves them open"
        return Problem(what, self.open.places(self.file), self.why, fix)


def _kind(name: str, places: Iterable[tuple[str, int, Shape]]) -> str:
    """Of a named dimension, by its name, else by where it stands."""
    if re.search(r"total|\+", name, re.IGNORECASE):
        return "total"
    if re.search(r"past|cache", name, re.IGNORECASE):
        return "past"
    if _BATCH.search(name):
        return "one"
    if _LONG.search(name):
        return "long"
    if _PICTURE.search(name):
        return "picture"
    _, axis, shape = next(iter(places))
    return _kind_at(axis, shape)


def _kind_at(axis: int, shape: Shape) -> str:
    if len(shape) >= 4 and axis > 0:
        return "picture"
    return "one" if axis == 0 and len(shape) != 1 else "long"


def proposed(missing: SizesMissing, nodes: int, load: Callable[[Sizes], object]) -> UnsupportedModel:
    """The error with sizes that fit, and with all else that is wrong with the model then."""
    outcomes: list[tuple[Problem, ...]] = []
    for tried in _tries(missing.open, outcomes, min(_MOST_TRIES, max(2, _MOST_NODES // max(1, nodes)))):
        try:
            load(tried)
        except SizesMissing:
            break
        except UnsupportedModel as error:  # the sizes fit, something else is not supported
            return UnsupportedModel(missing.problem(_add(tried)), *error.problems)
        except BadFile as error:
            outcomes.append(error.problems)
        except MccError:
            break
        else:
            return UnsupportedModel(missing.problem(_add(tried)))
    always = [p for p in (outcomes or [()])[0] if all(p in problems for problems in outcomes)]
    if always:  # whatever the sizes are
        return UnsupportedModel(missing.problem(_add(missing.open.sizes(*_TRIED[0]))), *always)
    names = [f"--dim {shlex.quote(name)}=SIZE" for name in missing.open.dims]
    names += [f"--shape {shlex.quote(name)}=SIZE,..." for name in missing.open.shapes]
    names += [f"--bound {shlex.quote(name)}=COUNT" for name in missing.open.sequences]
    first = f"; with {missing.open.sizes(*_TRIED[0]).flags}: {outcomes[0][0].why}" if outcomes else ""
    return UnsupportedModel(missing.problem(f"give the sizes that it was made for: {' '.join(names)}{first}"))


def refitted(error: BadFile, free: Callable[[], object]) -> BadFile:
    """An error of sizes that a user gave, with those that fit where some do: `free` loads without the user's."""
    try:
        free()
    except UnsupportedModel as missing:
        fix = missing.problems[0].fix
        if fix.startswith("add ") and len(missing.problems) == 1:
            sizes = fix.removeprefix("add ").partition(" (")[0]
            return BadFile(*(replace(problem, fix=f"did you mean {sizes}?") for problem in error.problems))
    except MccError:
        pass
    return error


def _add(sizes: Sizes) -> str:
    return f"add {sizes.flags} (with sizes of your own)"


def _tries(free: OpenSizes, outcomes: list[tuple[Problem, ...]], most: int) -> Iterator[Sizes]:
    """Sizes to try, each once; numbers that refusals name come next."""
    waiting, done = list(_TRIED), set[str]()
    while waiting and len(done) < most:
        sizes = free.sizes(*waiting.pop(0))
        if sizes.flags in done:
            continue
        done.add(sizes.flags)
        yield sizes
        if len(outcomes) == 1:
            numbers = [int(number) for p in outcomes[0] for number in re.findall(r"(?<![.\d])\d{1,4}(?![.\d])", p.why)]
            likely = [number for number in dict.fromkeys(numbers) if 1 < number <= 4096][:6]
            waiting[:0] = [(number, number, number) for number in likely]
