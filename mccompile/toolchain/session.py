"""Calls a compiled model on numpy arrays, again and again, with as little around each run as can be.

Invariant: arrays are copied in and out, so a result stays as it is when the next run comes, and threads take turns. A
process is forked between runs, so that the copy goes on with whole states.
`run.Model` is the one that mistrusts the model; this one trusts it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from itertools import permutations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.base.constant import encoded
from mccompile.base.dtypes import DTYPES, string
from mccompile.base.errors import Problem, WrongUse

from .build import Library, load
from .elements import Bytes, descriptors, from_bytes, read_strings, to_bytes
from .host_library import HOST_CDEF, read_weights
from .lists import refuse_masked
from .model_report import Report, Tensor, check_inputs, given_sizes, read_report, refuse_sizes_outside

_ALIGN = 64  # of memory; the most that code asks for
_FORKS = threading.Lock()
_held: list[threading.Lock] = []  # while a process is forked


class Session:
    """One instance of a model. State that it has lasts from run to run, until `reset`."""

    def __init__(self, shared: Path, folder: Path) -> None:
        self.report: Report = read_report(folder)
        self._library: Library = load(shared, HOST_CDEF)
        self._turn = threading.Lock()
        _SESSIONS.add(self)
        self._weights = _memory_of(read_weights(folder, self.report))
        self._arenas = [aligned_bytes(arena.bytes) for arena in self.report.arenas]
        self._model = aligned_bytes(self._library.functions.mcc_host_model_bytes())
        self._here = self._pointer(self._model)
        outside = [tensor for tensor in (*self.report.inputs, *self.report.outputs) if tensor.room]
        self._outside = {tensor.symbol: aligned_bytes(tensor.room) for tensor in outside}
        self._sizes: dict[str, int] | None = None
        self.reset()

    def reset(self) -> None:
        """Forgets all state: as if the model were loaded again."""
        c = self._library.functions
        with self._turn:
            arenas = [self._pointer(arena) for arena in self._arenas]
            sizes = [arena.size for arena in self._arenas]
            weights = self._pointer(self._weights), self._weights.size
            self._check("init", c.mcc_host_init(self._here, arenas, sizes, *weights))
            for place, memory in enumerate(self._outside.values()):
                self._check("set", c.mcc_host_place(self._here, place, self._pointer(memory)))
            self._sizes = None
            self.calls = 0  # since then
            self._views: tuple[list[np.ndarray], list[np.ndarray]] | None = None
            if not self.report.given and all(_is_plain(t) for t in (*self.report.inputs, *self.report.outputs)):
                self._views = self._placed(self.report.inputs), self._placed(self.report.outputs)

    def saved(self) -> tuple[int, dict[str, int] | None, bytes]:
        """What later runs depend on: how many there were, the sizes that were told, and the state."""
        ffi = self._library.ffi
        with self._turn:
            place = ffi.new("uint8_t[]", max(self.report.state_bytes, 1))
            self._check("save_state", self._library.functions.mcc_host_state(self._here, place, ffi.NULL))
            return self.calls, self._sizes, bytes(ffi.buffer(place))[: self.report.state_bytes]

    def restore(self, saved: tuple[int, dict[str, int] | None, bytes]) -> None:
        """Goes on where another instance of the same model was."""
        calls, sizes, state = saved
        ffi = self._library.ffi
        with self._turn:
            if sizes is not None:
                self._resize(sizes)
            status = self._library.functions.mcc_host_state(self._here, ffi.NULL, ffi.from_buffer(state))
            self._check("load_state", status)
            self.calls = calls

    def learn(self, arrays: Sequence[Any], rate: float) -> float:
        """The loss of what is given in the order of the inputs; gradients are kept, or weights moved."""
        assert self._views is not None
        with self._turn:
            self._fill(arrays, self.report.inputs, self._views[0])
            self._check("learn", self._library.functions.mcc_host_learn(self._here, rate))
            return float(self._library.functions.mcc_host_loss(self._here))

    def step(self, rate: float) -> None:
        """Moves the weights by what was learned since the last step."""
        with self._turn:
            self._check("step", self._library.functions.mcc_host_step(self._here, rate))

    def run(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The outputs for arrays in the order of the inputs."""
        with self._turn:
            self.calls += 1
            if self._views is None:
                return self._run_any(arrays)
            ins, outs = self._views
            count = len(self.report.phases[0].inputs) if self.report.phases else len(ins)
            self._fill(arrays, self.report.inputs[:count], ins[:count])
            status = self._library.functions.mcc_host_run(self._here)
            if status != 0:
                self._check("run", status)
            return [view.copy() for view in outs]

    def _fill(self, arrays: Sequence[Any], tensors: Sequence[Tensor], views: Sequence[np.ndarray]) -> None:
        for view, given, tensor in zip(views, arrays, tensors, strict=True):
            array = given if type(given) is np.ndarray else _array_of(self.report, tensor, given)
            if array.shape != view.shape:
                raise _misfit(self.report, tensor, array)
            if array.dtype == view.dtype:
                view[...] = array
            else:
                view[...] = _converted(self.report, tensor, array)

    def _run_any(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The same where sizes are told at run time, or elements are not plain ones."""
        ffi, c = self._library.ffi, self._library.functions
        inputs = {
            tensor.name: _converted(self.report, tensor, _array_of(self.report, tensor, given))
            for tensor, given in zip(self.report.inputs, arrays, strict=True)
        }
        check_inputs(self.report, inputs)
        if self.report.given:
            sizes = given_sizes(self.report, inputs)
            refuse_sizes_outside(self.report, sizes)
            if sizes != self._sizes:
                self._resize(sizes)
        texts = {t.name: encoded(inputs[t.name]) for t in self.report.inputs if t.dtype is string}
        kept = _memory_of(b"".join(text for each in texts.values() for text in each) + b"\0")
        place = int(kept.ctypes.data)
        for tensor in self.report.inputs:
            if tensor.dtype is string:
                content, place = descriptors(texts[tensor.name], place)
            else:
                content = to_bytes(tensor.in_memory(inputs[tensor.name]), tensor.dtype)
            ffi.memmove(self._place(tensor, self.report.inputs), content, len(content))
        self._check("run", c.mcc_host_run(self._here))
        results = []
        for index, tensor in enumerate(self.report.outputs):
            shape = self._shape(index, tensor)
            count = tensor.dtype.nbytes(prod(shape))
            content = bytes(ffi.buffer(self._place(tensor, self.report.outputs), count)) if count else b""
            if tensor.dtype is string:
                results.append(read_strings(content, self._library.text).reshape(shape))
            else:
                results.append(from_bytes(content, tensor.dtype, shape))
        return results

    def _resize(self, sizes: dict[str, int]) -> None:
        values = self._library.ffi.new("ptrdiff_t[]", [sizes[name] for name in self.report.given])
        self._check("resize", self._library.functions.mcc_host_resize(self._here, values))
        self._sizes = sizes

    def _shape(self, index: int, tensor: Tensor) -> tuple[int, ...]:
        if tensor.is_static:
            return tensor.static_shape
        found = self._library.ffi.new("size_t[]", len(tensor.shape))
        self._library.functions.mcc_host_output_shape(self._here, index, found)
        return tuple(int(size) for size in found)

    def _placed(self, tensors: Sequence[Tensor]) -> list[np.ndarray]:
        """Arrays over the memory of tensors."""
        views = []
        for tensor in tensors:
            if not tensor.nbytes:
                views.append(np.empty(tensor.static_shape, tensor.dtype.numpy))
                continue
            memory = self._library.ffi.buffer(self._place(tensor, tensors), tensor.nbytes)
            shape = tensor.in_memory(np.empty(tensor.static_shape, np.uint8)).shape
            view = np.frombuffer(memory, tensor.dtype.numpy).reshape(shape)
            views.append(view if tensor.rows is None else np.moveaxis(view, 0, tensor.rows.axis))
        return views

    def _place(self, tensor: Tensor, among: Sequence[Tensor]) -> Any:
        if tensor.room:
            return self._pointer(self._outside[tensor.symbol])
        is_input = tensor in self.report.inputs and among is self.report.inputs
        accessor = self._library.functions.mcc_host_input if is_input else self._library.functions.mcc_host_output
        return accessor(self._here, [t.symbol for t in among if not t.room].index(tensor.symbol))

    def _pointer(self, memory: Bytes) -> Any:
        return self._library.ffi.cast("void *", memory.ctypes.data)

    def _check(self, function: str, status: int) -> None:
        if status != 0:
            text = self._library.ffi.string(self._library.functions.mcc_host_status_text(status)).decode()
            raise self.report.failed(function, status, text)


_SESSIONS: weakref.WeakSet[Session] = weakref.WeakSet()


def _before_fork() -> None:
    """Waits for the runs of other threads: in the copy they would never end."""
    _FORKS.acquire()
    for session in list(_SESSIONS):
        session._turn.acquire()
        _held.append(session._turn)


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    _FORKS.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_static and tensor.dtype is not string and not tensor.dtype.is_packed


_INTEGERS = ("bool", "int", "uint")
_REALS = (*_INTEGERS, "float")
_TAKES = {"bool": ("bool",), "int": _INTEGERS, "uint": _INTEGERS, "float": _REALS, "complex": (*_REALS, "complex")}
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_OF_TYPES = {dtype.numpy_name: dtype.kind for dtype in DTYPES.values()}


def _kind(dtype: np.dtype[Any]) -> str:
    """That of types which numpy does not have, too: it says that these take elements of all kinds."""
    return _OF_TYPES.get(dtype.name) or _KINDS.get(dtype.kind, "")


def _converted(report: Report, tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """The array with the elements that the model takes, where that is not a change of kind."""
    if tensor.dtype is string or array.dtype == tensor.dtype.numpy:
        return array
    if _kind(array.dtype) not in _TAKES.get(tensor.dtype.kind, ()):
        raise _misfit(report, tensor, array)
    _refuse_other_numbers(report, tensor, array)
    return array.astype(tensor.dtype.numpy)


def _refuse_other_numbers(report: Report, tensor: Tensor, array: np.ndarray) -> None:
    """Integers that the elements of the tensor cannot hold would become others."""
    wanted = tensor.dtype
    if not wanted.is_integer or not array.size:
        return
    whole = array if array.dtype.kind in "biu" else array.astype(np.int8)  # narrower ones, which numpy does not have
    least, largest = int(whole.min()), int(whole.max())
    if least < wanted.low or largest > wanted.high:
        why = f"it holds {least} to {largest}, and {wanted} holds {wanted.low} to {wanted.high}"
        fix = f"bring it into that range, as in numpy.clip({tensor.name}, {wanted.low}, {wanted.high})"
        raise WrongUse(Problem(f"input {tensor.name!r} does not fit", report.prefix, why, fix))


def _array_of(report: Report, tensor: Tensor, given: Any) -> np.ndarray:
    refuse_masked(given, tensor.name, report.prefix)
    try:
        return np.asarray(given)
    except ValueError as error:  # of lists
        why, fix = f"it is not an array: {error}", f"give {tensor}"
        raise WrongUse(Problem(f"input {tensor.name!r} does not fit", report.prefix, why, fix)) from None


def _misfit(report: Report, tensor: Tensor, array: np.ndarray) -> WrongUse:
    shown = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    fix = f"give {tensor}{_how(tensor, array)}"
    return WrongUse(Problem(f"input {tensor.name!r} does not fit", report.prefix, shown, fix))


def _how(tensor: Tensor, array: np.ndarray) -> str:
    """How to get there from what was given."""
    wanted = tuple(tensor.static_shape) if tensor.is_static else ()
    if array.dtype.kind != "O" and wanted and array.size:
        for axes in permutations(range(array.ndim)) if array.ndim == len(wanted) else ():  # the first stays, if it can
            if tuple(array.shape[axis] for axis in axes) == wanted != array.shape:
                return f": {tensor.name}.transpose({', '.join(map(str, axes))})"
        if array.shape[1:] == wanted[1:] and array.ndim == len(wanted) and wanted[0] < array.shape[0]:
            return f": the model takes {wanted[0]} at a time, so call it once for each"
        if array.shape != wanted and array.size == prod(wanted):
            return f": {tensor.name}.reshape({', '.join(map(str, wanted))})"
        if array.shape == wanted and _kind(array.dtype) in _REALS:
            return f": {tensor.name}.astype('{np.dtype(tensor.dtype.numpy).name}') where no values are lost"
    return ""


def aligned_bytes(count: int) -> Bytes:
    """Zeros, aligned as well as code may ask."""
    whole = np.zeros(count + _ALIGN, np.uint8)
    start = -int(whole.ctypes.data) % _ALIGN
    return whole[start : start + count]


def _memory_of(content: bytes) -> Bytes:
    found = aligned_bytes(len(content))
    found[:] = np.frombuffer(content, np.uint8)
    return found
