"""The numbers that a file says of its network: config.json of Hugging Face, or what GGUF says in the same words.

Invariant: what is read has the type and the range that it must have, or the file is damaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import BadFile, MccError, Problem, UnsupportedModel
from .description import ACTIVATIONS, Rotary

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
            raise damaged(f"{name} is no list of {count} words")
        return tuple(found)

    def activation(self, name: str, default: str | None = None) -> str:
        found = self.text(name, default)
        if found not in ACTIVATIONS:
            raise unsupported(f"{name} is {found!r}; what is known: {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[found]


def rotary(config: Config, channels: int, base: float = 10000.0, kind: str = "") -> Rotary:
    """The rotary embedding of `channels` channels. `kind`: that of layers with this kind of attention."""
    if channels < 2 or channels % 2:
        raise damaged(f"{channels} channels of a head cannot be turned in pairs")
    said = config.part("rope_parameters")
    said = said.part(kind) if kind and said.has(kind) else said
    scaling = said if said.values else config.part("rope_scaling")
    base = said.real("rope_theta", config.real("rope_theta", base))
    if base <= 0:
        raise damaged(f"rope_theta is {base}")
    exponents = np.arange(0, channels, 2, dtype=np.float32) / np.float32(channels)
    frequencies = (np.float32(1) / np.power(np.float32(base), exponents)).astype(np.float32)
    if config.has("rope_factors"):  # what GGUF stores
        factors = np.asarray(config.values["rope_factors"], np.float32)
        if factors.shape != frequencies.shape or not (np.isfinite(factors) & (factors != 0)).all():
            raise damaged(f"rope_freqs has {factors.size} numbers for {channels} channels, or some are 0")
        return Rotary(frequencies / factors)
    return Rotary(_scaled(frequencies, scaling))


def _scaled(frequencies: np.ndarray, scaling: Config) -> np.ndarray:
    way = scaling.text("rope_type", scaling.text("type", "default"))
    if way == "default":
        return frequencies
    factor = scaling.real("factor", 1.0)
    if factor <= 0:
        raise damaged(f"factor of rope_scaling is {factor}")
    if way == "linear":
        return (frequencies / np.float32(factor)).astype(np.float32)
    if way != "llama3":
        raise unsupported(f"rotary embeddings are scaled by the way {way!r}; what is known: default, linear, llama3")
    low, high = scaling.real("low_freq_factor"), scaling.real("high_freq_factor")
    length = scaling.count("original_max_position_embeddings")
    if high <= low or low <= 0:
        raise damaged(f"low_freq_factor is {low}, high_freq_factor {high}")
    waves = 2 * math.pi / frequencies
    slow = np.where(waves > length / low, frequencies / factor, frequencies)
    share = (length / waves - low) / (high - low)
    between = (1 - share) * slow / factor + share * slow
    middle = (waves >= length / high) & (waves <= length / low)
    return np.where(middle, between, slow).astype(np.float32)


def _short(found: object) -> str:
    return "missing" if found is None else repr(found)[:40]
