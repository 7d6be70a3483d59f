"""Runs a compiled model on numpy arrays: builds its folder with the host's compiler and calls it through `host.c`.

Invariant: the model is treated as firmware would, and worse. Arena and weights lie at addresses no better aligned than
promised, between guard bytes; memory is poisoned before the model is initialised; guards and weights are checked after
every run.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence, Set
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.base.constant import encoded
from mccompile.base.dtypes import string
from mccompile.base.errors import CheckFailed, Problem, WrongUse, raise_all

from .build import DEFAULT_FLAGS, Library, find_compiler, load
from .elements import Bytes, descriptors, from_bytes, read_strings, to_bytes
from .host_library import HOST_CDEF, build_shared, read_weights
from .image import function_bytes
from .model_report import Report, Tensor, check_inputs, given_sizes, read_report

POISON = 0xA5  # a number as float; 0xFF would be NaN in every float type
_GUARD_BYTES = 256
_GUARD = 0xC3
_WEIGHTS_ALIGN = 64  # the most that a blob may ask for


class Model:
    """One instance of a compiled model. State that it keeps between runs lasts until a run that asks for poison."""

    def __init__(self, library: Library, report: Report, weights: bytes) -> None:
        self.report = report
        self.function_bytes: Mapping[str, int] = {}  # of code
        self._library = library
        self._weights_file = np.frombuffer(weights, np.uint8)
        self._weights = _Guarded(len(weights), _WEIGHTS_ALIGN)
        self._weights.bytes[:] = self._weights_file
        self._arenas = [_Guarded(arena.bytes, arena.align) for arena in report.arenas]
        self._struct = _Guarded(library.functions.mcc_host_model_bytes(), 16)
        outside = (tensor for tensor in (*report.inputs, *report.outputs) if tensor.room)
        self._outside = {tensor.symbol: _Guarded(tensor.room, tensor.align) for tensor in outside}
        self._init(POISON)

    @classmethod
    def build(
        cls,
        folder: Path,
        cc: str | None = None,
        flags: Sequence[str] = DEFAULT_FLAGS,
        steps: int = 0,
        dump: bool = False,
    ) -> Model:
        """Compile the C files of an output folder of mccompile, load them, and initialise the model. `steps`: so many
        tell when they end, and their times are wanted; with `dump` what they make can be."""
        report = read_report(folder)
        # Where what is loaded cannot be deleted (Windows), it stays until somebody clears the temporary files.
        with tempfile.TemporaryDirectory(prefix="mccompile-", ignore_cleanup_errors=True) as scratch:
            shared = build_shared(folder, report, Path(scratch, "model.so"), find_compiler(cc), flags, steps, dump)
            library, sizes = load(shared, HOST_CDEF), function_bytes(shared)
        made = cls(library, report, read_weights(folder, report))
        made.function_bytes = sizes
        return made

    def resize(self, sizes: Mapping[str, int]) -> None:
        """How large the inputs of the next runs are; `run` sees to it by itself."""
        values = self._library.ffi.new("ptrdiff_t[]", [sizes[name] for name in self.report.given])
        status = self._library.functions.mcc_host_resize(self._pointer(self._struct), values)
        self._check_status("resize", status)

    def reset(self, poison: int) -> None:
        """Initialises the model anew, over an arena that is filled with a byte."""
        self._init(poison)

    def save_state(self) -> bytes:
        """What the last run left for the next one."""
        place = self._library.ffi.new("uint8_t[]", max(self.report.state_bytes, 1))
        status = self._library.functions.mcc_host_state(self._pointer(self._struct), place, self._library.ffi.NULL)
        self._check_status("save_state", status)
        return bytes(self._library.ffi.buffer(place))[: self.report.state_bytes]

    def load_state(self, state: bytes) -> None:
        place, null = self._library.ffi.from_buffer(state), self._library.ffi.NULL
        status = self._library.functions.mcc_host_state(self._pointer(self._struct), null, place)
        self._check_status("load_state", status)

    def run(self, inputs: Mapping[str, np.ndarray], poison: int | None = None) -> dict[str, np.ndarray]:
        """Outputs by name. With `poison` (a byte) the arena is first filled with it and the model initialised anew."""
        check_inputs(self.report, inputs)
        if poison is not None:
            self._init(poison)
        ffi, c, model = self._library.ffi, self._library.functions, self._pointer(self._struct)
        self._give(inputs)
        self._check_status("run", c.mcc_host_run(model))
        self._check_memory()
        results = {}
        for index, tensor in enumerate(self.report.outputs):
            pointer = self._tensor_pointer(tensor, lambda place: c.mcc_host_output(model, place), self.report.outputs)
            shape = self._shape(index, tensor)
            content = bytes(ffi.buffer(pointer, tensor.dtype.nbytes(prod(shape))))
            if tensor.dtype is string:
                results[tensor.name] = read_strings(content, self._library.text).reshape(shape)
            else:
                results[tensor.name] = from_bytes(content, tensor.dtype, shape)
        return results

    def advance(self, inputs: Mapping[str, np.ndarray]) -> None:
        """A run for its states alone, of a model that was compiled with --advance."""
        self._give(inputs)
        self._check_status("advance", self._library.functions.mcc_host_advance(self._pointer(self._struct)))
        self._check_memory()

    def _give(self, inputs: Mapping[str, np.ndarray]) -> None:
        if self.report.given:
            self.resize(given_sizes(self.report, inputs))
        self._fill(self._contents(inputs, set(self.report.phases[0].inputs) if self.report.phases else None))

    def learn(self, inputs: Mapping[str, np.ndarray], rate: float) -> float:
        """The loss of a batch; gradients are kept, or weights moved."""
        check_inputs(self.report, inputs)
        c, model = self._library.functions, self._pointer(self._struct)
        self._fill(self._contents(inputs))
        self._check_status("learn", c.mcc_host_learn(model, rate))
        self._check_memory()
        return float(c.mcc_host_loss(model))

    def step(self, rate: float) -> None:
        """Moves the weights by what was learned since the last step; where it moved them at once, nothing."""
        self._check_status("step", self._library.functions.mcc_host_step(self._pointer(self._struct), rate))
        self._check_memory()

    def dump(self, inputs: Mapping[str, np.ndarray], state: bytes = b"") -> bytes:
        """What the steps of a run make, as mcc_dump.h writes it. It begins with `state`, or that after init."""
        c, model = self._library.functions, self._pointer(self._struct)
        self._init(POISON)
        if self.report.given:
            self.resize(given_sizes(self.report, inputs))
        if state:
            self.load_state(state)
        with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
            path = Path(scratch, "dump.bin")
            wrong = c.mcc_host_dump(model, str(path).encode())
            try:
                self.run(inputs)
            finally:
                wrong = wrong or c.mcc_host_dump(model, self._library.ffi.NULL)
            if wrong:
                raise WrongUse(Problem("cannot write what a run dumps", str(path), "the disk may be full"))
            return path.read_bytes()

    def time(self, inputs: Mapping[str, np.ndarray], runs: int) -> list[float]:
        """Seconds that each of so many runs takes. Inputs are written before each, outside of what is timed. States
        that have grown as long as there is room begin anew."""
        check_inputs(self.report, inputs)
        c, model = self._library.functions, self._pointer(self._struct)
        contents = self._contents(inputs)
        seconds: list[float] = []
        begun = True
        while len(seconds) < runs:
            self._fill(contents)
            start = time.perf_counter()
            status = c.mcc_host_run(model)
            spent = time.perf_counter() - start
            if status and begun:  # states that grow may be full
                self._init(POISON)
                begun = False
                continue
            self._check_status("run", status)
            seconds.append(spent)
            begun = True
        return seconds

    def _fill(self, contents: Sequence[tuple[Any, bytes]]) -> None:
        for pointer, content in contents:
            self._library.ffi.memmove(pointer, content, len(content))

    def _contents(self, inputs: Mapping[str, np.ndarray], only: Set[str] | None = None) -> list[tuple[Any, bytes]]:
        """Where each input goes, and what. Texts stay where they are until the next ones come."""
        given = {tensor.name: encoded(inputs[tensor.name]) for tensor in self.report.inputs if tensor.dtype is string}
        self._texts = np.frombuffer(b"".join(text for texts in given.values() for text in texts) + b"\0", np.uint8)
        place = int(self._texts.ctypes.data)
        found = []

        def accessor(place: int) -> Any:
            return self._library.functions.mcc_host_input(self._pointer(self._struct), place)

        for tensor in self.report.inputs:
            if only is not None and tensor.name not in only:
                continue
            if tensor.dtype is string:
                content, place = descriptors(given[tensor.name], place)
            else:
                content = to_bytes(tensor.in_memory(inputs[tensor.name]), tensor.dtype)
            found.append((self._tensor_pointer(tensor, accessor, self.report.inputs), content))
        return found

    def spent(self, steps: int) -> list[float]:
        """Seconds in each of the steps that it was built to time, in all runs so far."""
        return list(self._library.ffi.unpack(self._library.functions.mcc_host_spent(), steps))

    def _shape(self, index: int, tensor: Tensor) -> tuple[int, ...]:
        """The true shape of an output."""
        if tensor.is_static:
            return tensor.static_shape
        found = self._library.ffi.new("size_t[]", len(tensor.shape))
        self._library.functions.mcc_host_output_shape(self._pointer(self._struct), index, found)
        return tuple(int(size) for size in found)

    def _init(self, poison: int) -> None:
        for arena in self._arenas:
            arena.bytes[:] = poison
        self._struct.bytes[:] = poison
        status = self._library.functions.mcc_host_init(
            self._pointer(self._struct),
            [self._pointer(arena) for arena in self._arenas],
            [arena.bytes.size for arena in self._arenas],
            self._pointer(self._weights),
            self._weights.bytes.size,
        )
        self._check_status("init", status)
        for place, memory in enumerate(self._outside.values()):
            memory.bytes[:] = poison
            placed = self._library.functions.mcc_host_place(self._pointer(self._struct), place, self._pointer(memory))
            self._check_status("set", placed)

    def _pointer(self, memory: _Guarded) -> Any:
        return self._library.ffi.cast("void *", memory.address)

    def _tensor_pointer(self, tensor: Tensor, accessor: Callable[[int], Any], among: Sequence[Tensor]) -> Any:
        """Where a tensor lies; accessors know the place of those in the arena."""
        if tensor.room:
            return self._pointer(self._outside[tensor.symbol])
        pointer = accessor([t.symbol for t in among if not t.room].index(tensor.symbol))
        if pointer == self._library.ffi.NULL and tensor.nbytes:
            raise CheckFailed(Problem(f"{self.report.prefix} gives no address for {tensor.name}"))
        return pointer

    def _check_status(self, function: str, status: int) -> None:
        if status != 0:
            text = self._library.ffi.string(self._library.functions.mcc_host_status_text(status)).decode()
            raise self.report.failed(function, status, text)

    def _check_memory(self) -> None:
        problems = [
            Problem(
                f"{self.report.prefix}_run wrote outside its memory",
                where=f"the {what}",
                why=why,
                fix="please report it",
            )
            for what, memory in (
                *(("arena", arena) for arena in self._arenas),
                ("model struct", self._struct),
                ("weights", self._weights),
                *self._outside.items(),
            )
            for why in memory.damage()
        ]
        if not np.array_equal(self._weights.bytes, self._weights_file):
            problems.append(Problem(f"{self.report.prefix}_run changed its weights", fix="please report it"))
        raise_all(CheckFailed, problems)


class _Guarded:
    """Memory at an odd multiple of `align` (nothing better), between guard bytes."""

    def __init__(self, count: int, align: int) -> None:
        self._all: Bytes = np.full(count + 2 * _GUARD_BYTES + 2 * align, _GUARD, np.uint8)
        base = int(self._all.ctypes.data)
        self._start = _GUARD_BYTES + (align - base - _GUARD_BYTES) % (2 * align)
        self.address = base + self._start
        self.bytes: Bytes = self._all[self._start : self._start + count]
        guards = ((base, self._start), (self.address + count, self._all.size - self._start - count))
        _sanitizer("__asan_poison_memory_region", guards)
        weakref.finalize(self, _sanitizer, "__asan_unpoison_memory_region", guards)

    def damage(self) -> list[str]:
        found = []
        before = np.flatnonzero(self._all[: self._start] != _GUARD)
        after = np.flatnonzero(self._all[self._start + self.bytes.size :] != _GUARD)
        if before.size:
            found.append(f"{before.size} bytes changed, up to {self._start - int(before[0])} before its start")
        if after.size:
            found.append(f"{after.size} bytes changed, up to {int(after[-1]) + 1} past its end")
        return found


def _sanitizer(function: str, places: Sequence[tuple[int, int]]) -> None:
    """Under AddressSanitizer reading guard bytes ends the process as well: this forbids it, or allows it again."""
    call = getattr(ctypes.CDLL(None), function, None)
    if call is not None:
        for address, size in places:
            call(ctypes.c_void_p(address), ctypes.c_size_t(size))
