"""Reads what <model>_save has stored on a device, as runtime_c/include/mcc_store.h lays it out.

Invariant: what comes out was saved whole by the code of that report, or nothing does.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import DTYPES
from ..base.errors import BadFile, Problem, WrongUse, warn
from ..base.records import dataclass
from ..graph.ir import Invalid
from .load import read_proto
from .tensors import tensor_constant

_MAGIC = b"MCCL"
_HEAD = struct.Struct("<4sIII16sI")  # magic, sequence, bytes, checksum of them, identity, checksum of the header
_HEADER_BYTES = 64
_IDENTITY_AT = 16


@dataclass(frozen=True)
class _Slot:
    """What begins like a header: its fields, whatever they are worth."""

    at: int  # in the file
    sequence: int
    identity: str
    size: int
    has_magic: bool
    is_header: bool  # with the right checksum
    contents: bytes = b""  # of one that is whole, and of the code

    def is_of(self, identity: str, size: int) -> bool:
        """Was it written by this code? In a header that is not whole, two fields of three say so."""
        needed = 3 if self.is_header else 2
        return self.has_magic + (self.identity == identity) + (self.size == size) >= needed


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
        data = file.read_bytes()
    except OSError as error:
        fix = "give the bytes of the slots that <model>_save has written"
        raise BadFile(Problem(f"cannot read {file}", "--from", error.strerror or str(error), fix)) from None
    slots = [*_slots(data, str(report["identity"]), size)]
    own = [slot for slot in slots if slot.is_of(report["identity"], size)]
    whole = [slot for slot in own if slot.contents]
    if not whole:
        raise BadFile(_why_none(file, report, size, slots, own))
    newest = whole[0]
    for slot in whole[1:]:
        if _is_later(slot, newest):
            newest = slot
    lost = [slot for slot in own if not slot.contents and (not slot.is_header or _is_later(slot, newest))]
    if lost:
        warn(f"{file}: {_lost(lost[0])}; save {newest.sequence} is taken, {_at(newest)}")
    return newest


def _is_later(slot: _Slot, other: _Slot) -> bool:
    return 0 < (slot.sequence - other.sequence) % 2**32 < 2**31


def _lost(slot: _Slot) -> str:
    if slot.is_header:
        return f"save {slot.sequence}, {_at(slot)}, is newer but damaged"
    return f"the slot {_at(slot)} has a damaged header, as where the power failed, and may be newer"


def _at(slot: _Slot) -> str:
    return f"at byte {slot.at}"


def _slots(data: bytes, identity: str, size: int) -> Iterator[_Slot]:
    """All that has the magic or this identity where headers have it."""
    wanted = bytes.fromhex(identity)
    found = {*_found(data, _MAGIC, 0), *_found(data, wanted, _IDENTITY_AT)}
    for at in sorted(found):
        head = data[at : at + _HEAD.size]
        if len(head) == _HEAD.size:
            magic, sequence, said, checksum, own, of_head = _HEAD.unpack(head)
            slot = _Slot(at, sequence, own.hex(), said, magic == _MAGIC, zlib.crc32(head[:-4]) == of_head)
            if slot.is_header and (magic, own, said) == (_MAGIC, wanted, size):  # not as many bytes as any header says
                contents = data[at + _HEADER_BYTES : at + _HEADER_BYTES + size]
                if len(contents) == size and zlib.crc32(contents) == checksum:
                    slot = replace(slot, contents=contents)
            yield slot


def _found(data: bytes, part: bytes, offset: int) -> Iterator[int]:
    """Where headers begin that have it at this offset."""
    at = data.find(part, offset)
    while at >= 0:
        yield at - offset
        at = data.find(part, at + 1)


def _why_none(
    file: Path, report: Mapping[str, Any], size: int, slots: Sequence[_Slot], own: Sequence[_Slot]
) -> Problem:
    name, headers = report["model"], [slot for slot in slots if slot.is_header]
    other = next((slot.size for slot in headers if slot.identity == report["identity"] and slot.size != size), None)
    if other is not None:
        why = f"its header says {other} bytes, and the code saves {size}"
        return Problem(f"what {file} holds of {name} is damaged", "--from", why, "read both slots of the device again")
    if own:
        why = "its checksum is not that of its bytes; the other slot is not whole, or not in the file"
        return Problem(f"what {file} holds of {name} is damaged", "--from", why, "read both slots of the device again")
    if headers:
        why = f"the code in the folder is {report['identity']}, what was saved is of {headers[0].identity}"
        fix = "give --for the folder whose code runs on the device"
        return Problem(f"{file} was saved by other code than that of {name}", "--from", why, fix)
    why = f"there is no header of a slot in its {file.stat().st_size} bytes"
    fix = "give the bytes that the functions of your mcc_store have written, from the beginning of a slot on"
    return Problem(f"{file} holds nothing that <model>_save has written", "--from", why, fix)
