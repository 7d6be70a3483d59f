"""Reads what mcc_dump.h writes (docs/looking_inside.md says how): records, each with a checksum, among which other text
may stand, as it does on a serial line.

Invariant: a record that is damaged is left out and counted; what is given has been checked.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from math import prod

import numpy as np

from mccompile.base.dtypes import DTYPES, DType

from ..base.records import dataclass
from .elements import from_bytes, to_bytes

MAGIC, VERSION = b"MCCD", 1
RUN, INPUT, STATE, VALUE, BUFFER, END = range(6)
_HEAD = struct.Struct("<BBHIHHIii")
_SUM = struct.Struct("<I")
_TYPES = {dtype.onnx: dtype for dtype in DTYPES.values()}


@dataclass(frozen=True)
class Record:
    kind: int
    name: str
    step: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    data: bytes
    axis: int = -1  # -1: all of it; else a row along this axis
    row: int = 0

    @cached_property
    def array(self) -> np.ndarray:
        """The elements in the order of the shape, however they lay in memory."""
        if self.dtype.is_packed or prod(self.shape) == 0:
            return from_bytes(self.data, self.dtype, self.shape)
        width = self.dtype.bits // 8
        flat = from_bytes(self.data, self.dtype, (len(self.data) // width,))
        steps = tuple(stride * flat.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps).copy()


@dataclass
class Run:
    """Of a model: what it began with, and what its steps have made, in order."""

    prefix: str
    identity: bytes
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    states: list[Record] = field(default_factory=list)
    parts: dict[object, list[Record]] = field(default_factory=dict)  # of what was made, in order of its beginnings
    ended: bool = False

    @property
    def made(self) -> list[Record]:
        """What steps have made; rows are put together."""
        return [_joined(parts) for parts in self.parts.values()]


@dataclass
class Dump:
    runs: list[Run]
    damaged: int  # records


def read_dump(contents: bytes) -> Dump:
    """All runs of which the beginning is there."""
    found = Dump([], 0)
    for record in _records(contents):
        if record is None:
            found.damaged += 1
        elif record.kind == RUN:
            found.runs.append(Run(record.name, record.data))
        elif found.runs:
            _add(found.runs[-1], record)
    for run in found.runs:
        given = {key: parts for key, parts in run.parts.items() if parts[0].kind == INPUT}
        run.inputs |= {parts[0].name: _joined(parts).array for parts in given.values()}
        run.parts = {key: parts for key, parts in run.parts.items() if key not in given}
    return found


def _add(run: Run, record: Record) -> None:
    if record.kind == INPUT and record.axis < 0:  # others come in rows
        run.inputs[record.name] = record.array
    elif record.kind == STATE:
        run.states.append(record)
    elif record.kind == END:
        run.ended = True
    else:
        key = (record.step, record.name) if record.axis >= 0 else len(run.parts)
        run.parts.setdefault(key, []).append(record)


def _joined(parts: list[Record]) -> Record:
    """The rows of one tensor as a whole, as far as they are there."""
    first = parts[0]
    if first.axis < 0:
        return first
    rows = [part.array for part in sorted(parts, key=lambda part: part.row)]
    whole = np.ascontiguousarray(np.concatenate(rows, first.axis))
    steps = tuple(stride // whole.itemsize for stride in whole.strides)
    return Record(first.kind, first.name, first.step, first.dtype, whole.shape, steps, to_bytes(whole, first.dtype))


def _records(contents: bytes) -> Iterator[Record | None]:
    """None for one that is damaged."""
    at = contents.find(MAGIC)
    while at >= 0:
        record, end = _record(contents, at + len(MAGIC))
        yield record
        at = contents.find(MAGIC, end)


def _record(contents: bytes, begin: int) -> tuple[Record | None, int]:
    """A record, and where it ends; without one where to look on."""
    at = begin + _HEAD.size
    if at > len(contents):
        return None, begin
    version, kind, letters, step, type, rank, count, axis, row = _HEAD.unpack_from(contents, begin)
    sizes = struct.Struct(f"<{2 * rank}i")
    end = at + sizes.size + letters + count
    if version != VERSION or type not in _TYPES or end + _SUM.size > len(contents):
        return None, begin
    if _SUM.unpack_from(contents, end)[0] != zlib.adler32(contents[begin:end]):
        return None, begin
    numbers = sizes.unpack_from(contents, at)
    at += sizes.size
    name = contents[at : at + letters].decode(errors="replace")
    data = contents[at + letters : end]
    return Record(kind, name, step, _TYPES[type], numbers[:rank], numbers[rank:], data, axis, row), end + _SUM.size
