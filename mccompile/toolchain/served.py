"""A compiled model on its board, behind the server of mcc_serve.h at the other end of a serial line.

Invariant: bytes that are lost, doubled or broken on the way cost time and never change a result: every frame has its
checksum, what is not answered is asked again, and no request is carried out twice where that matters.
"""

from __future__ import annotations

import secrets
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mccompile.base.errors import CheckFailed, Problem

from .elements import from_bytes, to_bytes
from .emulate import Results
from .model_report import Report, Tensor, check_inputs, read_report
from .serial_line import Line, Port

_VERSION = 1
_IDENTITY, _WRITE, _READ, _INIT, _RUN = range(1, 6)
_HEAD, _CRC, _PLACE, _ACTED = struct.Struct("<IB"), struct.Struct("<I"), struct.Struct("<BI"), struct.Struct("<BBI")
_BLOB = 64  # bytes of its head
_OWN = slice(16, 32)  # of these: which code they belong to
_BODY, _MOST = 240, 1 << 16  # bytes of a frame's body, and that are kept while no frame ends
_FIRST, _LAST = 0.25, 2.0  # seconds until a request is sent again: each time twice as many, up to these
_TRIES, _LONG = 8, 150  # of what is answered at once, and of a run


class Served:
    """A model that a board runs."""

    def __init__(self, report: Report, blob: bytes, line: Line, name: str) -> None:
        self.report = report
        self.ticks: list[int] = []  # of every run, as the board counts
        self._line, self._name = line, name
        self._number = secrets.randbits(32)
        self._got = bytearray()
        self._came = self._whole = 0  # bytes, and frames
        self._same_model(blob)

    @classmethod
    def open(cls, folder: Path, port: Port) -> Served:
        """The model of an output folder, which the board must have."""
        report = read_report(folder)
        return cls(report, (folder / f"{report.prefix}.mcb").read_bytes(), port.open(), port.name)

    def run_twice(self, inputs: Mapping[str, np.ndarray], state: bytes | None = None) -> tuple[Results, Results]:
        """What a run of the model as init leaves it gives, and a second one on what the first one left."""
        check_inputs(self.report, inputs)
        self._act(_INIT, "init")
        return self._result(inputs), self._result(inputs)

    def _result(self, inputs: Mapping[str, np.ndarray]) -> Results:
        for area, tensor in enumerate(self.report.inputs):
            contents = to_bytes(inputs[tensor.name], tensor.dtype)
            for at in range(0, len(contents), _BODY - _PLACE.size):
                piece = contents[at : at + _BODY - _PLACE.size]
                self._ask(_WRITE, _PLACE.pack(area, at) + piece)
        self.ticks.append(self._act(_RUN, "run"))
        areas = enumerate(self.report.outputs, len(self.report.inputs))
        return Results({tensor.name: self._output(area, tensor) for area, tensor in areas}, b"")

    def _output(self, area: int, tensor: Tensor) -> np.ndarray:
        contents = b""
        while len(contents) < tensor.nbytes:
            count = min(_BODY - 1, tensor.nbytes - len(contents))
            contents += self._ask(_READ, _PLACE.pack(area, len(contents)) + bytes([count]))
        return from_bytes(contents, tensor.dtype, tensor.static_shape)

    def _same_model(self, blob: bytes) -> None:
        told = self._ask(_IDENTITY)
        if len(told) != 2 + _BLOB or told[0] != _VERSION or told[1] != _BODY:
            why = f"it speaks version {told[:1].hex()}, this is version {_VERSION:02x}"
            raise self._failed("the server is of another version", why, "run `mccompile serve` again, and flash")
        there, here = told[2:], blob[:_BLOB]
        if there[_OWN] != here[_OWN]:
            why = f"its identity is {there[_OWN].hex()}, this one's {here[_OWN].hex()}"
            fix = "compile with the same options for both, and flash the board"
            raise self._failed("another model is on the board", why, fix)
        if there != here:
            raise self._failed("the board has other weights", "checksums of the blobs differ", "flash the board")

    def _act(self, code: int, function: str) -> int:
        """Ticks that it took."""
        _, status, ticks = _ACTED.unpack(b"\0" + self._ask(code, is_long=True))
        if status != 0:
            raise self._failed(f"{self.report.prefix}_{function} failed", f"status {status}", "see mcc_status in mcc.h")
        return int(ticks)

    def _ask(self, code: int, body: bytes = b"", is_long: bool = False) -> bytes:
        """The body of the answer."""
        self._number = (self._number + 1) & 0xFFFFFFFF
        asked = _HEAD.pack(self._number, code)
        frame = b"\0" + _encoded(_checked(asked + body)) + b"\0"  # the first zero ends what noise has begun
        wait = _FIRST
        for _ in range(_LONG if is_long else _TRIES):
            self._line.send(frame)
            end = time.monotonic() + wait
            while time.monotonic() < end:
                for answer in self._frames():
                    if answer.startswith(asked):
                        return self._accepted(answer[_HEAD.size :])
            wait = min(2 * wait, _LAST)
        raise self._silent(code)

    def _accepted(self, body: bytes) -> bytes:
        if not body or body[0] != 0:
            raise self._failed("the board refused a request", "its server has no such memory", "flash the board")
        return body[1:]

    def _frames(self) -> Iterator[bytes]:
        """Those that have come, without checksum; broken ones are left out."""
        came = self._line.receive()
        self._came += len(came)
        self._got += came
        *ended, rest = bytes(self._got).split(b"\0")
        self._got[:] = rest[-_MOST:]
        for each in ended:
            frame = _decoded(each)
            if len(frame) >= _HEAD.size + _CRC.size and _checked(frame[: -_CRC.size]) == frame:
                self._whole += 1
                yield frame[: -_CRC.size]

    def _silent(self, code: int) -> CheckFailed:
        if self._came and not self._whole:
            why = f"{self._came} bytes came, and no whole frame"
            return self._failed("the board is not understood", why, "give the board's baud rate: --baud 9600")
        why = "it stopped answering" if self._whole else "nothing came"
        fix = "flash a program that calls what `mccompile serve` wrote, and see that port and --baud are its own"
        return self._failed("the board does not answer", f"{why}, at request {code}", fix)

    def _failed(self, what: str, why: str, fix: str) -> CheckFailed:
        return CheckFailed(Problem(what, self._name, why, fix))


def _checked(contents: bytes) -> bytes:
    return contents + _CRC.pack(zlib.crc32(contents))


def _encoded(contents: bytes) -> bytes:
    """By COBS; frames are too short for a group without a zero."""
    return b"".join(bytes([len(group) + 1]) + group for group in contents.split(b"\0"))


def _decoded(contents: bytes) -> bytes:
    groups, at = [], 0
    while at < len(contents):
        size = contents[at]
        groups.append(contents[at + 1 : at + size])
        at += size
    return b"\0".join(groups) if at == len(contents) else b""
