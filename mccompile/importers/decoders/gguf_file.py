"""GGUF files: what they say, and where their tensors lie.

Invariant: no byte outside of the file is looked at, and what is made of it is no larger than the file allows.
"""

from __future__ import annotations

import struct
from functools import partial
from math import prod
from typing import Any

import numpy as np

from .config import damaged, unsupported
from .ggml import FORMS, OTHERS, Form, stored
from .weights import Blocks, Weight

MAGIC = b"GGUF"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_MOST_AXES = 4


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, len(MAGIC)

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.place:
            raise damaged(f"it was cut off: its {len(self.data)} bytes end where {size} more are read")
        self.place += size
        return self.data[self.place - size : self.place]

    def number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        data = self.take(self.number("Q"))
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")  # a token that is part of a character

    def value(self) -> Any:
        kind = self.number("I")
        return self.array() if kind == _ARRAY else self.element(kind)

    def element(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind not in _NUMBERS:
            raise damaged(f"a value of the type {kind}, which GGUF does not have")
        return self.number(_NUMBERS[kind])

    def array(self) -> Any:
        kind, count = self.number("I"), self.number("Q")
        if kind == _TEXT:
            self.check(count, 8)
            return [self.text() for _ in range(count)]
        if kind not in _NUMBERS:
            raise damaged(f"an array of the type {kind}, which GGUF does not have")
        size = struct.calcsize(_NUMBERS[kind])
        self.check(count, size)
        return list(struct.unpack(f"<{count}{_NUMBERS[kind]}", self.take(count * size)))

    def check(self, count: int, size: int) -> None:
        if count * size > len(self.data):
            raise damaged(f"{count} things in a file of {len(self.data)} bytes")


def read(data: bytes) -> tuple[dict[str, Any], dict[str, Weight]]:
    """What a file says, and its tensors by name."""
    reader = _Reader(data)
    version = reader.number("I")
    if version not in (2, 3):
        raise unsupported(f"version {version} of GGUF, where 2 and 3 are known", "convert the model anew")
    tensors, entries = reader.number("Q"), reader.number("Q")
    reader.check(tensors, 24)
    reader.check(entries, 12)
    said = {reader.text(): reader.value() for _ in range(entries)}
    heads = [_head(reader) for _ in range(tensors)]
    unit = said.get("general.alignment", 32)
    if not isinstance(unit, int) or not 1 <= unit <= 1 << 20:
        raise damaged(f"general.alignment is {str(unit)[:20]}")
    begin = -(-reader.place // unit) * unit
    whole = np.frombuffer(data, np.uint8)[begin:]
    if len({name for name, *_ in heads}) != len(heads):
        raise damaged("two tensors have one name")
    return said, {weight.name: weight for head in heads for weight in _matrices(*head, whole)}


def _matrices(name: str, shape: tuple[int, ...], kind: int, place: int, whole: np.ndarray) -> list[Weight]:
    """Of a stack, as experts lie: ffn_up_exps.0.weight and so on, each read alone."""
    weight, (stem, dot, end) = _weight(name, shape, kind, place, whole), name.rpartition(".")
    form = FORMS.get(kind)
    if len(shape) != 3 or not prod(shape) or form is None:
        return [weight]
    size = prod(shape[1:]) // form.elements * form.width
    names = (f"{stem}.{number}{dot}{end}" for number in range(shape[0]))
    return [_weight(each, shape[1:], kind, place + at * size, whole) for at, each in enumerate(names)]


def _head(reader: _Reader) -> tuple[str, tuple[int, ...], int, int]:
    name, axes = reader.text(), reader.number("I")
    if not 1 <= axes <= _MOST_AXES:
        raise damaged(f"tensor {name[:80]!r} has {axes} axes")
    shape = tuple(reader.number("Q") for _ in range(axes))[::-1]
    return name, shape, reader.number("I"), reader.number("Q")


def _weight(name: str, shape: tuple[int, ...], kind: int, place: int, whole: np.ndarray) -> Weight:
    form = FORMS.get(kind)
    size = 0
    if form is not None:
        size = prod(shape) // form.elements * form.width
        if shape[-1] % form.elements or size > len(whole) - place:
            where = f"{place}..{place + size} of {len(whole)} bytes"
            raise damaged(f"tensor {name[:80]!r} of {list(shape)} elements of {form.name} lies at {where}")
    return Weight(name, shape, partial(_read, name, form, kind, whole[place : place + size], shape))


def _read(name: str, form: Form | None, kind: int, data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | Blocks:
    if form is None:
        known = ", ".join(each.name for each in FORMS.values())
        raise unsupported(
            f"tensor {name} is stored in the type {OTHERS.get(kind, kind)} of GGML; what is known: {known}",
            "quantize the model to one of these: llama-quantize MODEL-F16.gguf MODEL.gguf Q4_K_M",
        )
    return stored(form, data, shape)
