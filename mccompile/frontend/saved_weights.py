"""Reads what <model>_save has stored on a device, as runtime_c/include/mcc_store.h lays it out.

Invariant: what comes out was saved whole by the code of that report, or nothing does.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import DTYPES
from ..base.errors import BadFile, Problem, WrongUse
from ..graph.ir import Invalid
from .load import read_proto
from .tensors import tensor_constant

_MAGIC = b"MCCL"
_HEAD = struct.Struct("<4sIII16sI")  # magic, sequence, bytes, checksum of them, identity, checksum of the header
_HEADER_BYTES = 64


@dataclass(frozen=True)
class _Slot:
    sequence: int
    identity: str
    contents: bytes
    is_whole: bool


def saved_weights(file: Path, report: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What was saved last, by name: the weights, and what else `--save` asked for. `file`: the bytes of one slot or of
    both, with or without what lies around them; or an ONNX file that has the weights by their names."""
    stored = report.get("stored")
    if not stored:
        why, fix = "it has no <model>_save", "give the folder that `mccompile train` has written"
        raise WrongUse(Problem(f"the code of {report['model']} saves nothing", "--from", why, fix))
    shapes = {tensor["name"]: tensor for tensor in report["states"]}
    if file.suffix == ".onnx":
        return _initializers(file, [shapes[name] for name in report["initial"]])
    size = sum(shapes[name]["bytes"] for name in stored)
    return _parted(_newest(file, report, size).contents, [shapes[name] for name in stored])


def _initializers(file: Path, tensors: list[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Such as the mean of what devices learned, where the network is quantized: a file of floats is another network."""
    there = {tensor.name: tensor for tensor in read_proto(file).graph.initializer}
    found: dict[str, np.ndarray] = {}
    for tensor in tensors:
        name, wanted = tensor["name"], f"{tensor['dtype']}{tensor['shape']}"
        try:
            own = tensor_constant(there[name], file.parent)
        except (KeyError, Invalid) as error:
            raise _lacking(file, name, wanted, error.why if isinstance(error, Invalid) else "") from None
        if [*own.type.shape] != tensor["shape"] or str(own.type.dtype) != tensor["dtype"]:
            raise _lacking(file, name, wanted, f"the file has {own.type}")
        found[name] = np.asarray(own.array)
    return found


def _lacking(file: Path, name: str, wanted: str, why: str) -> BadFile:
    said = f"the code learns {name} {wanted}{'; ' if why else ''}{why}"
    fix = "give a file that `mccompile blob -o` has written for this code, or one with the same initializers"
    return BadFile(Problem(f"{file} lacks a weight that learns", "--from", said, fix))


def _parted(contents: bytes, tensors: list[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    found, begin = dict[str, np.ndarray](), 0
    for tensor in tensors:
        dtype = DTYPES[tensor["dtype"]].numpy.newbyteorder("<")
        elements = np.frombuffer(contents, dtype, int(np.prod(tensor["shape"], dtype=np.int64)), begin)
        found[tensor["name"]] = elements.reshape(tensor["shape"]).astype(dtype.newbyteorder("="))
        begin += tensor["bytes"]
    return found


def _newest(file: Path, report: Mapping[str, Any], size: int) -> _Slot:
    try:
        slots = [*_slots(file.read_bytes())]
    except OSError as error:
        fix = "give the bytes of the slots that <model>_save has written"
        raise BadFile(Problem(f"cannot read {file}", "--from", error.strerror or str(error), fix)) from None
    own = [slot for slot in slots if slot.identity == report["identity"] and len(slot.contents) == size]
    whole = [slot for slot in own if slot.is_whole]
    if not whole:
        raise BadFile(_why_none(file, report, slots, own))
    newest = whole[0]
    for slot in whole[1:]:
        if (slot.sequence - newest.sequence) % 2**32 < 2**31:
            newest = slot
    return newest


def _slots(data: bytes) -> Iterator[_Slot]:
    """All that have a whole header."""
    at = data.find(_MAGIC)
    while at >= 0:
        head = data[at : at + _HEAD.size]
        if len(head) == _HEAD.size:
            _, sequence, size, checksum, identity, own = _HEAD.unpack(head)
            if zlib.crc32(head[:-4]) == own:
                contents = data[at + _HEADER_BYTES : at + _HEADER_BYTES + size].ljust(size, b"\0")
                yield _Slot(sequence, identity.hex(), contents, zlib.crc32(contents) == checksum)
        at = data.find(_MAGIC, at + 1)


def _why_none(file: Path, report: Mapping[str, Any], slots: list[_Slot], own: list[_Slot]) -> Problem:
    name = report["model"]
    if own:
        why = "its checksum is not that of its bytes; the other slot is not whole, or not in the file"
        return Problem(f"what {file} holds of {name} is damaged", "--from", why, "read both slots of the device again")
    if slots:
        why = f"the code in the folder is {report['identity']}, what was saved is of {slots[0].identity}"
        fix = "give --for the folder whose code runs on the device"
        return Problem(f"{file} was saved by other code than that of {name}", "--from", why, fix)
    why = f"there is no header of a slot in its {file.stat().st_size} bytes"
    fix = "give the bytes that the functions of your mcc_store have written, from the beginning of a slot on"
    return Problem(f"{file} holds nothing that <model>_save has written", "--from", why, fix)
