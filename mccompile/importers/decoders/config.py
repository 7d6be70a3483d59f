"""The numbers that a file says of its network: config.json of Hugging Face, or what GGUF says in the same words.

Invariant: what is read has the type and the range that it must have, or the file is damaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import BadFile, MccError, Problem, UnsupportedModel
from .description import ACTIVATIONS

_MOST = 1 << 31


def damaged(why: str, fix: str = "copy or download it again") -> BadFile:
    return BadFile(Problem("the file of a language model is damaged", "", why, fix))


def unsupported(why: str, fix: str = "export it to ONNX where it was trained") -> UnsupportedModel:
    return UnsupportedModel(Problem("a language model that cannot be read", "", why, fix))


@contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Errors inside that name no place get the path; what the system refuses is a damaged file."""
    try:
        yield
    except MccError as error:
        problems = (Problem(p.what, p.where or str(path), p.why, p.fix) for p in error.problems)
        raise type(error)(*problems) from error
    except OSError as error:
        raise damaged(f"{error.filename}: {error.strerror or error}") from None


class Config:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def has(self, name: str) -> bool:
        return self.values.get(name) is not None

    def count(self, name: str, default: int | None = None, least: int = 1) -> int:
        found = self.values.get(name)
        found = default if found is None else found
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found < _MOST:
            raise damaged(f"{name} is {_short(found)}, not a number of {least} or more")
        return found

    def real(self, name: str, default: float | None = None) -> float:
        found = self.values.get(name)
        found = default if found is None else found
        if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < 1e30:
            raise damaged(f"{name} is {_short(found)}, not a number")
        return float(found)

    def flag(self, name: str, default: bool = False) -> bool:
        found = self.values.get(name)
        found = default if found is None else found
        if not isinstance(found, bool):
            raise damaged(f"{name} is {_short(found)}, neither true nor false")
        return found

    def text(self, name: str, default: str | None = None) -> str:
        found = self.values.get(name)
        found = default if found is None else found
        if not isinstance(found, str):
            raise damaged(f"{name} is {_short(found)}, not text")
        return found

    def part(self, name: str) -> Config:
        found = self.values.get(name) or {}
        if not isinstance(found, Mapping):
            raise damaged(f"{name} is {_short(found)}, not an object")
        return Config(found)

    def texts(self, name: str, count: int) -> tuple[str, ...]:
        found = self.values.get(name)
        if not isinstance(found, list) or len(found) != count or not all(isinstance(each, str) for each in found):
            raise damaged(f"{name} is not a list of {count} words")
        return tuple(found)

    def called(self, **names: str) -> Config:
        """With values under other names too: hidden_size="n_embd"."""
        found = {name: self.values[own] for name, own in names.items() if self.has(own)}
        return Config({**self.values, **found})

    def filled(self, **values: object) -> Config:
        """With these values where the file has none."""
        return Config({**self.values, **{name: value for name, value in values.items() if not self.has(name)}})

    def reals(self, name: str, count: int) -> np.ndarray:
        found = self.values.get(name)
        if not isinstance(found, list) or len(found) != count:
            raise damaged(f"{name} is not a list of {count} numbers")
        return np.array([Config({name: each}).real(name) for each in found], np.float32)

    def activation(self, name: str, default: str | None = None) -> str:
        found = self.text(name, default)
        if found not in ACTIVATIONS:
            raise unsupported(f"{name} is {found!r}; what is known: {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[found]


def _short(found: object) -> str:
    return "missing" if found is None else repr(found)[:40]
