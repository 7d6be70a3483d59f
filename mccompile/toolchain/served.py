"""A compiled model on its board, behind the server of mcc_serve.h at the other end of a serial line.

Invariant: no request is carried out twice where that matters, and what is on the board is what was compiled: the same
code by its identity, the same weights by their checksum.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path

import numpy as np

from mccompile.base.errors import CheckFailed

from ..base.records import dataclass
from .elements import from_bytes, to_bytes
from .emulate import Results
from .model_report import Report, Tensor, check_inputs, given_sizes, read_blob, read_report
from .serial_line import BAUD, Line, Port
from .serial_requests import DONE, REFUSED, STOPPED, Piece, Requests

_VERSION = 2
_IDENTITY, _WRITE, _READ, _INIT, _RUN, _NEXT, _STORE = range(1, 8)
_PLACE, _READ_HEAD, _OFFSET = struct.Struct("<BI"), struct.Struct("<BIH"), struct.Struct("<I")
_ACTED, _ABOUT = struct.Struct("<BII"), struct.Struct("<BBHI")
_UNKNOWN = 0xFFFFFFFF
_BLOB = 64  # bytes of its head
_OWN = slice(16, 32)  # of these: which code they belong to
_STOPS, _TIMES, _STATE, _STORES = 1, 2, 4, 8  # what a server can
_TO_STOP, _RESET, _LOAD = 1, 2, 4  # how a run goes
_RECORD = 255  # where what a step has made is read
_SLOWEST, _CHECKED = 2e6, 2e5  # cycles per second of a board, and bytes of a blob that its init checks
_PER_MAC = 8  # cycles, where nobody has estimated them
_MUCH_LONGER = 4  # times the longest run that is known
_COMES_BACK = 15.0  # seconds that a board may take to start after it was flashed


@dataclass(frozen=True)
class RunCost:
    """What init or a run took on the board."""

    ticks: int  # of its clock; 0 where it has none
    stack: int | None  # bytes; None where the program does not say where the stack ends


class Served:
    """A model that a board runs."""

    def __init__(
        self,
        report: Report,
        blob: bytes,
        line: Line,
        name: str,
        baud: int = BAUD,
        cycles: float = 0.0,
        other_weights: bool = False,
    ) -> None:
        """`cycles`: what a run is estimated to take. `other_weights`: the board may have others than `blob`."""
        self.report = report
        self.runs: list[RunCost] = []
        self.init = RunCost(0, None)
        self.hz = 0  # ticks per second; 0: not known
        self.requests = Requests(line, name, baud)
        self._can = 0
        cycles = cycles or _PER_MAC * report.macs
        self._patience = cycles / _SLOWEST  # seconds that a run may take, as long as none was made
        self._checks = len(blob) / _CHECKED  # the same of init
        self._longest = 0.0
        self._same_model(blob, other_weights)

    @classmethod
    def open(cls, folder: Path, port: Port, cycles: float = 0.0, other_weights: bool = False) -> Served:
        """The model of an output folder, which the board must have."""
        report = read_report(folder)
        blob = read_blob(folder, report)
        line = port.open(_COMES_BACK if port.flash else 0.0)
        try:
            return cls(report, blob, line, port.name, port.baud, cycles, other_weights)
        except BaseException:
            line.close()
            raise

    def close(self) -> None:
        self.requests.close()

    @property
    def ticks(self) -> list[int]:
        return [took.ticks for took in self.runs]

    @property
    def can_dump(self) -> bool:
        return bool(self._can & _STOPS)

    @property
    def can_store(self) -> bool:
        return bool(self._can & _STORES)

    def time(self, inputs: Mapping[str, np.ndarray], runs: int) -> None:
        """So many runs, each on inputs that are written anew, and from the same state; `runs` and `init` say what they
        took."""
        self.begin()
        for _ in range(runs):
            how = self._give(inputs, None)
            self.runs.append(self._act(_RUN, bytes([how]), "run"))

    def run_twice(self, inputs: Mapping[str, np.ndarray], state: bytes | None = None) -> tuple[Results, Results]:
        """What a run of the model as init leaves it gives, and a second one on what the first one left. Both begin with
        `state`, or with the one after init."""
        if state is None:
            self.begin()
        return self._result(inputs, state), self._result(inputs, state)

    def begin(self) -> None:
        self.init = self._act(_INIT, b"", "init")

    def dump(self, inputs: Mapping[str, np.ndarray], state: bytes = b"") -> bytes:
        """What the steps of a run make, as mcc_dump.h writes it. It begins with `state`, or that after init."""
        if not self.can_dump:
            fix = "compile with --dump-values, run `mccompile serve`, and flash"
            raise self.requests.failed(
                "the board cannot dump the results of steps", "its code has no --dump-values", fix
            )
        self.begin()
        how = self._give(inputs, state or None) | _TO_STOP
        return b"".join(self._records(how))

    def step_ticks(self) -> list[int]:
        """Of each step in the last run; nothing where the code was compiled without --profile."""
        if not (self._can & _TIMES and self.report.profiled):
            return []
        contents = self._read(self._shapes + bool(self._shaped), 4 * self.report.profiled)
        return [int(each) for each in np.frombuffer(contents, "<u4")]

    def store(self, blob: bytes) -> None:
        """Gives the board another blob, which it runs from then on."""
        if not self.can_store:
            why, fix = (
                "its program reserves no memory for them",
                "have it call <model>_serve_updates with memory for a blob, and flash",
            )
            raise self.requests.failed("the board has no room for new weights", why, fix)
        at = 0
        while at < len(blob):
            piece = blob[at : at + self.requests.length - _OFFSET.size]  # one after the other
            state, told = self.requests.ask(_STORE, _OFFSET.pack(at) + piece, _ACTED.size)
            status = _ACTED.unpack(self._accepted(state, told))[0]
            if status != 0:
                fix = "see what the program's function does there: mcc_status in mcc.h"
                raise self.requests.failed("the board could not store the weights", f"status {status} at {at}", fix)
            at += len(piece)
        self.begin()
        self._same_model(blob)

    @property
    def _areas(self) -> int:
        """Those of inputs and outputs; behind them are the state, sizes of inputs and outputs, and the ticks of steps,
        as far as there are such."""
        return len(self.report.inputs) + len(self.report.outputs)

    @property
    def _sizes(self) -> int:
        return self._areas + bool(self.report.state_bytes)

    @property
    def _shapes(self) -> int:
        return self._sizes + bool(self.report.given)

    @property
    def _shaped(self) -> list[Tensor]:
        return [tensor for tensor in self.report.outputs if not tensor.is_static]

    def _records(self, how: int) -> Iterator[bytes]:
        state, told = self._long(_RUN, bytes([how]))
        while state == STOPPED:
            yield self._read(_RECORD, _ACTED.unpack(told)[1])
            state, told = self._long(_NEXT, bytes([how]))
        self._took(told, "run")

    def _result(self, inputs: Mapping[str, np.ndarray], state: bytes | None) -> Results:
        how = self._give(inputs, state)
        self.runs.append(self._act(_RUN, bytes([how]), "run"))
        areas, shapes = enumerate(self.report.outputs, len(self.report.inputs)), self._given_shapes()
        outputs = {tensor.name: self._output(area, tensor, shapes) for area, tensor in areas}
        kept = self._read(self._areas, self.report.state_bytes) if self.report.state_bytes else b""
        return Results(outputs, kept)

    def _give(self, inputs: Mapping[str, np.ndarray], state: bytes | None) -> int:
        """Writes what a run reads; how it is to begin."""
        check_inputs(self.report, inputs)
        if self.report.given:
            sizes = given_sizes(self.report, inputs)
            self._write(self._sizes, np.array([sizes[name] for name in self.report.given], "<u4").tobytes())
        for area, tensor in enumerate(self.report.inputs):
            self._write(area, to_bytes(tensor.in_memory(inputs[tensor.name]), tensor.dtype))
        if not self.report.state_bytes:
            return 0
        if state is None:
            return _RESET
        self._write(self._areas, state)
        return _LOAD

    def _given_shapes(self) -> dict[str, tuple[int, ...]]:
        """Of outputs that have not always the same."""
        told = self._read(self._shapes, 4 * sum(len(tensor.shape) for tensor in self._shaped))
        left = [int(size) for size in np.frombuffer(told, "<u4")]
        return {tensor.name: tuple(left.pop(0) for _ in tensor.shape) for tensor in self._shaped}

    def _output(self, area: int, tensor: Tensor, shapes: Mapping[str, tuple[int, ...]]) -> np.ndarray:
        shape = tensor.static_shape if tensor.is_static else shapes[tensor.name]
        return from_bytes(self._read(area, tensor.dtype.nbytes(prod(shape))), tensor.dtype, shape)

    def _write(self, area: int, contents: bytes) -> None:
        def pieces() -> Iterator[Piece]:
            at = 0
            while at < len(contents):
                part = contents[at : at + self.requests.length - _PLACE.size]
                yield Piece(at, _PLACE.pack(area, at) + part)
                at += len(part)

        for _, state, told in self.requests.pieces(_WRITE, pieces()):
            self._accepted(state, told)

    def _read(self, area: int, nbytes: int) -> bytes:
        def pieces() -> Iterator[Piece]:
            at = 0
            while at < nbytes:
                count = min(self.requests.length - 1, nbytes - at)
                yield Piece(at, _READ_HEAD.pack(area, at, count), count)
                at += count

        found = {at: self._accepted(state, told) for at, state, told in self.requests.pieces(_READ, pieces())}
        contents = b"".join(part for _, part in sorted(found.items()))
        if len(contents) != nbytes:
            raise self.requests.failed("the board sent a wrong number of bytes", f"{len(contents)}, not {nbytes}", "")
        return contents

    def _same_model(self, blob: bytes, other_weights: bool = False) -> None:
        told = self._accepted(*self.requests.ask(_IDENTITY, b"", _ABOUT.size + _BLOB))
        if len(told) != _ABOUT.size + _BLOB or told[0] != _VERSION:
            why = f"it speaks version {told[:1].hex()}, this is version {_VERSION:02x}"
            raise self.requests.failed(
                "the server is of another version", why, "run `mccompile serve` again, and flash"
            )
        _, self._can, most, self.hz = _ABOUT.unpack_from(told)
        self.requests.most = self.requests.length = most
        there, here = told[_ABOUT.size :], blob[:_BLOB]
        if there[_OWN] != here[_OWN]:
            why = f"its identity is {there[_OWN].hex()}, this one's {here[_OWN].hex()}"
            fix = "compile with the same options for both, and flash the board"
            raise self.requests.failed("another model is on the board", why, fix)
        if there != here and not other_weights:
            fix = "flash the board, or send them: mccompile blob --serial"
            raise self.requests.failed("the board has other weights", "checksums of the blobs differ", fix)

    def _act(self, code: int, body: bytes, function: str) -> RunCost:
        return self._took(self._long(code, body)[1], function)

    def _took(self, told: bytes, function: str) -> RunCost:
        status, ticks, stack = _ACTED.unpack(told)
        if status != 0:
            why = f"status {status}"
            raise self.requests.failed(f"{self.report.prefix}_{function} failed", why, "see mcc_status in mcc.h")
        return RunCost(ticks, None if stack == _UNKNOWN else stack)

    def _long(self, code: int, body: bytes) -> tuple[int, bytes]:
        """A request that may take long: a run little more than the longest one that is known."""
        began = time.monotonic()
        patience = self._checks if code == _INIT else _MUCH_LONGER * self._longest or self._patience
        state, told = self.requests.ask(code, body, _ACTED.size, patience)
        if code == _RUN and state == DONE:
            self._longest = max(self._longest, time.monotonic() - began)
        return state, self._accepted(state, told)

    def _accepted(self, state: int, told: bytes) -> bytes:
        if state == REFUSED:
            raise self._refused()
        return told

    def _refused(self) -> CheckFailed:
        why, fix = "its server has no such memory, or has begun anew", "flash the board, and see that it does not reset"
        return self.requests.failed("the board refused a request", why, fix)
