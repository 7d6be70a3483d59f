"""Flatbuffers of the TFLite schema, read with care.

Invariant: whatever bytes a file has, reading ends: every vector is charged with its length, and a file may not be
charged with more than a few times its size; what the generated code raises on bad offsets comes out as `Damaged`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

_TIMES = 16  # a vector may be shared by tables
_LEAST = 1 << 16
_EMPTY = struct.pack("<IHHi", 8, 4, 4, 4)  # a table without fields: all of them have their defaults
# what reading at a wrong place ends in; the generated code checks nothing
_WRONG = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError, MemoryError)


class Damaged(Exception):
    """The bytes are not a flatbuffer of this schema."""


@contextmanager
def trusting_nothing() -> Iterator[None]:
    try:
        yield
    except _WRONG as error:
        raise Damaged(str(error) or type(error).__name__) from None


class Reader:
    """Fields of tables by name; absent vectors are empty."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.schema = import_module("tflite")
        self._left = _TIMES * len(data) + _LEAST

    def root(self) -> Any:
        with trusting_nothing():
            return self.schema.Model.GetRootAs(self.data, 0)

    def charge(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise Damaged("its vectors are longer than the file")

    def field(self, table: Any, name: str) -> Any:
        with trusting_nothing():
            return getattr(table, name)()

    def tables(self, table: Any, name: str) -> list[Any]:
        count = self.field(table, f"{name}Length")
        self.charge(4 * count)
        with trusting_nothing():
            return [getattr(table, name)(number) for number in range(count)]

    def numbers(self, table: Any, name: str) -> np.ndarray:
        """A vector as a view into the file."""
        if not self.field(table, f"{name}Length"):
            return np.zeros(0, np.int64)
        found = np.asarray(self.field(table, f"{name}AsNumpy"))
        self.charge(found.nbytes)
        return found

    def ints(self, table: Any, name: str) -> tuple[int, ...]:
        return tuple(int(number) for number in self.numbers(table, name))

    def text(self, table: Any, name: str) -> str:
        found = self.field(table, name)
        if not isinstance(found, bytes):
            return ""
        self.charge(len(found))
        return found.decode(errors="replace")

    def options(self, kinds: str, kind: int, table: Any) -> tuple[str, Any]:
        """A union's table as its class, and the name of that; `kinds` is the enumeration that `kind` is from."""
        known = {number: name for name, number in vars(getattr(self.schema, kinds)).items() if isinstance(number, int)}
        name = known.get(kind, "")
        if not name or not kind or table is None:
            return "", None
        return name, self._at(name, table.Bytes, table.Pos)

    def defaults(self, name: str) -> Any:
        return self._at(name, _EMPTY, 8)

    def _at(self, name: str, data: bytes, place: int) -> Any:
        with trusting_nothing():
            found = getattr(self.schema, name)()
            found.Init(data, place)
            return found
