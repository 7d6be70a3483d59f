"""Runs a compiled model on numpy arrays: builds its folder with the host's compiler and calls it through `host.c`.

Invariant: the model is treated as firmware would, and worse. Arena and weights lie at addresses no better aligned than
promised, between guard bytes; memory is poisoned before the model is initialised; guards and weights are checked after
every run.
"""

from __future__ import annotations

import ctypes
import json
import re
import struct
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.base import dims
from mccompile.base.constant import encoded
from mccompile.base.dtypes import DTYPES, DType, string
from mccompile.base.errors import BadFile, CheckFailed, Problem, WrongUse, raise_all
from mccompile.base.structures import Interface

from .build import DEFAULT_FLAGS, Library, compile_shared, find_compiler, load

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

POISON = 0xA5  # a number as float; 0xFF would be NaN in every float type
_GUARD_BYTES = 256
_GUARD = 0xC3
_WEIGHTS_ALIGN = 64  # the most that a blob may ask for

_CDEF = """
size_t mcc_host_model_bytes(void);
int mcc_host_init(void *model, void *const *arenas, const size_t *arena_bytes,
                  const void *weights, size_t weights_bytes);
int mcc_host_run(void *model);
const double *mcc_host_spent(void);
void *mcc_host_input(void *model, int index);
const void *mcc_host_output(const void *model, int index);
int mcc_host_resize(void *model, const ptrdiff_t *sizes);
void mcc_host_output_shape(const void *model, int index, size_t *shape);
int mcc_host_place(void *model, int index, void *memory);
int mcc_host_state(void *model, void *to, const void *from);
const char *mcc_host_status_text(int status);
"""


@dataclass(frozen=True)
class Tensor:
    """An input or output as report.json describes it; `symbol` is its part of the accessor's name."""

    name: str
    symbol: str
    dtype: DType
    shape: tuple[int | str, ...]  # names of sizes that are known only at run time, or what follows from them
    nbytes: int  # at most
    room: int = 0  # of memory outside the arena: bytes, and alignment; 0: it lies in the arena
    align: int = 1

    @property
    def is_static(self) -> bool:
        return all(isinstance(size, int) for size in self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Arena:
    bytes: int
    align: int
    pool: str = ""  # its name, where a model has several


@dataclass(frozen=True)
class Report:
    """What report.json says that running needs."""

    prefix: str
    arenas: tuple[Arena, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    given: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # sizes that a run is told, and their bounds
    interface: Interface | None = None  # where inputs or outputs are not only tensors
    sliced: bool = False  # it can be run step by step
    state_bytes: int = 0  # of what a run leaves for the next one
    threads: int = 1  # workers that may share a step


class Model:
    """One instance of a compiled model. State that it keeps between runs lasts until a run that asks for poison."""

    def __init__(self, library: Library, report: Report, weights: bytes) -> None:
        self.report = report
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
        cls, folder: Path, cc: str | None = None, flags: Sequence[str] = DEFAULT_FLAGS, steps: Sequence[str] = ()
    ) -> Model:
        """Compile the C files of an output folder of mccompile, load them, and initialise the model. `steps` are calls
        in the text of the model whose times are wanted."""
        report = read_report(folder)
        # The example program has a main of its own; the weights are read from the blob, which need not be compiled.
        left_out = {"main.c", f"{report.prefix}_weights.c"}
        sources = [path for path in sorted(folder.glob("*.c")) if path.name not in left_out]
        try:
            weights = (folder / f"{report.prefix}.mcb").read_bytes()
        except OSError as error:
            raise _bad_folder(folder, f"{report.prefix}.mcb: {error.strerror}") from error
        compiler = find_compiler(cc)
        with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
            header = _host_model_header(report)
            if steps:
                header += f"#define MCC_HOST_STEPS {len(steps)}\n"
                model = folder / f"{report.prefix}.c"
                timed = Path(scratch, model.name)
                timed.write_text(with_ticks(model.read_text(encoding="utf-8"), steps), encoding="utf-8")
                sources[sources.index(model)] = timed
            Path(scratch, "mcc_host_model.h").write_text(header, encoding="utf-8")
            library = load(
                compile_shared(
                    compiler,
                    [*sources, Path(__file__).with_name("host.c")],
                    [Path(scratch), folder, folder / "runtime"],
                    Path(scratch, "model.so"),
                    [*flags, "-pthread"] if report.threads > 1 else flags,
                ),
                _CDEF,
            )
        return cls(library, report, weights)

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
        if self.report.given:
            self.resize(_given_sizes(self.report, inputs))
        for pointer, content in self._contents(inputs):
            ffi.memmove(pointer, content, len(content))
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

    def time(self, inputs: Mapping[str, np.ndarray], runs: int) -> list[float]:
        """Seconds that each of so many runs takes. Inputs are written before each, outside of what is timed."""
        check_inputs(self.report, inputs)
        ffi, c, model = self._library.ffi, self._library.functions, self._pointer(self._struct)
        contents = self._contents(inputs)
        seconds = []
        for _ in range(runs):
            for pointer, content in contents:
                ffi.memmove(pointer, content, len(content))
            start = time.perf_counter()
            status = c.mcc_host_run(model)
            seconds.append(time.perf_counter() - start)
            self._check_status("run", status)
        return seconds

    def _contents(self, inputs: Mapping[str, np.ndarray]) -> list[tuple[Any, bytes]]:
        """Where each input goes, and what. Texts stay where they are until the next ones come."""
        given = {tensor.name: encoded(inputs[tensor.name]) for tensor in self.report.inputs if tensor.dtype is string}
        self._texts = np.frombuffer(b"".join(text for texts in given.values() for text in texts) + b"\0", np.uint8)
        place = int(self._texts.ctypes.data)
        found = []

        def accessor(place: int) -> Any:
            return self._library.functions.mcc_host_input(self._pointer(self._struct), place)

        for tensor in self.report.inputs:
            if tensor.dtype is string:
                content, place = descriptors(given[tensor.name], place)
            else:
                content = to_bytes(inputs[tensor.name], tensor.dtype)
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
            raise CheckFailed(Problem(f"{self.report.prefix}_{function} failed", why=f"{text} (status {status})"))

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


def check_inputs(report: Report, inputs: Mapping[str, np.ndarray]) -> None:
    """Refuses names, shapes and element types that are not the model's."""
    expected = {tensor.name: tensor for tensor in report.inputs}
    problems = [
        Problem(
            f"there is no input {name!r}",
            where=report.prefix,
            why=f"the inputs are {', '.join(expected) or 'none'}",
            fix="remove it or correct its name",
        )
        for name in inputs
        if name not in expected
    ]
    for name, tensor in expected.items():
        given = inputs.get(name)
        if given is None:
            problems.append(Problem(f"input {name!r} is missing", where=report.prefix, fix=f"give it as {tensor}"))
        elif not _fits(given.shape, tensor.shape) or not _is_of(given, tensor.dtype):
            shown = f"{given.dtype}[{','.join(map(str, given.shape))}]"
            problems.append(
                Problem(f"input {name!r} does not fit", where=report.prefix, why=shown, fix=f"give {tensor}")
            )
    raise_all(WrongUse, problems)


def _is_of(given: np.ndarray, dtype: DType) -> bool:
    return given.dtype.kind in "OUS" if dtype is string else given.dtype == dtype.numpy


def _fits(given: tuple[int, ...], shape: tuple[int | str, ...]) -> bool:
    return len(given) == len(shape) and all(isinstance(b, str) or a == b for a, b in zip(given, shape, strict=True))


def _given_sizes(report: Report, inputs: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Sizes by name, as the inputs have them; where they have only what is computed from one, the first that fits."""
    sizes: dict[str, int] = {}
    computed: dict[str, int] = {}
    for tensor in report.inputs:
        for size, name in zip(inputs[tensor.name].shape, tensor.shape, strict=True):
            found = sizes if name in report.given else computed
            if isinstance(name, str) and found.setdefault(name, size) != size:
                why = f"{name} is {found[name]} and {size}"
                raise WrongUse(Problem(f"input {tensor.name!r} does not fit the others", report.prefix, why))
    for symbol in report.given:
        low, high = report.given[symbol]
        trials = (sizes | {symbol: size} for size in range(low, high + 1))
        if symbol not in sizes:
            sizes = next((trial for trial in trials if _agree(trial, computed)), sizes | {symbol: high})
    if not _agree(sizes, computed):
        why = ", ".join(f"{text} is {size}" for text, size in (sizes | computed).items())
        raise WrongUse(Problem("sizes of inputs do not fit each other", report.prefix, why))
    return sizes


def _agree(sizes: Mapping[str, int], computed: Mapping[str, int]) -> bool:
    """Are computed sizes what follows from those that are known? What needs others is not known yet."""
    for text, size in computed.items():
        try:
            if dims.parse(text, sizes) != size:
                return False
        except ValueError:
            continue
    return True


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


def to_bytes(array: np.ndarray, dtype: DType) -> bytes:
    """The elements as they lie in C memory: dense, row-major, packed if narrower than a byte."""
    dense = np.ascontiguousarray(array).reshape(-1)
    if not dtype.is_packed:
        return bytes(dense.view(np.uint8))
    per_byte = 8 // dtype.bits
    codes = np.zeros(dtype.nbytes(dense.size) * per_byte, np.uint8)
    codes[: dense.size] = dense.view(np.uint8) & ((1 << dtype.bits) - 1)
    shifted = codes.reshape(-1, per_byte) << (np.arange(per_byte, dtype=np.uint8) * dtype.bits)
    packed: Bytes = np.bitwise_or.reduce(shifted, axis=1).astype(np.uint8)
    return packed.tobytes()


def from_bytes(content: bytes, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """The opposite of `to_bytes`."""
    if not dtype.is_packed:
        return np.frombuffer(content, dtype.numpy).reshape(shape).copy()
    per_byte = 8 // dtype.bits
    packed = np.frombuffer(content, np.uint8).reshape(-1, 1)
    codes = (packed >> (np.arange(per_byte, dtype=np.uint8) * dtype.bits)) & ((1 << dtype.bits) - 1)
    codes = codes.reshape(-1)[: prod(shape)].reshape(shape)
    if dtype.kind == "float":
        return codes.astype(np.uint8).view(dtype.numpy)
    sign = (1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    return ((codes ^ sign).astype(np.int8) - np.int8(sign)).astype(dtype.numpy)


_DESCRIPTOR = struct.Struct("<QI4x")  # mcc_string where pointers have 64 bits


def descriptors(texts: Sequence[bytes], place: int) -> tuple[bytes, int]:
    """Strings as they lie in C memory, for texts that lie one after the other from address `place` on; and where the
    next text goes."""
    rows = []
    for text in texts:
        rows.append(_DESCRIPTOR.pack(place, len(text)))
        place += len(text)
    return b"".join(rows), place


def read_strings(content: bytes, text: Callable[[int, int], bytes]) -> np.ndarray:
    """The opposite: a vector of str. `text` reads bytes at an address."""
    found = [text(*_DESCRIPTOR.unpack_from(content, start)) for start in range(0, len(content), _DESCRIPTOR.size)]
    strings = np.empty(len(found), dtype=object)
    strings[:] = [each.decode(errors="surrogateescape") for each in found]
    return strings


def read_report(folder: Path) -> Report:
    """The report of an output folder; anything missing or odd in it is a bad file."""
    try:
        content = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        return Report(
            prefix=str(content["prefix"]),
            arenas=_arenas(content),
            inputs=tuple(_tensor(entry) for entry in content["inputs"]),
            outputs=tuple(_tensor(entry) for entry in content["outputs"]),
            state_bytes=sum(_tensor(entry).nbytes for entry in content.get("states", [])),
            sliced="slices" in content,
            given={
                str(size["name"]): (int(size["low"]), int(size["high"]))
                for size in content.get("sizes", [])
                if size["given"]
            },
            interface=Interface.from_json(content["interface"]) if "interface" in content else None,
            threads=int(content.get("threads", 1)),
        )
    except OSError as error:
        raise _bad_folder(folder, f"report.json: {error.strerror}") from error
    except KeyError as error:
        raise _bad_folder(folder, f"report.json has no {error}") from error
    except (ValueError, TypeError) as error:
        raise _bad_folder(folder, f"report.json: {error}") from error


def _arenas(content: Mapping[str, Any]) -> tuple[Arena, ...]:
    if "pools" not in content:
        return (Arena(int(content["arena_bytes"]), int(content["arena_align"])),)
    return tuple(Arena(int(pool["bytes"]), int(pool["align"]), str(pool["name"])) for pool in content["pools"])


def _tensor(entry: Mapping[str, Any]) -> Tensor:
    dtype, outside = DTYPES[str(entry["dtype"])], entry.get("external")
    tensor = Tensor(
        name=str(entry["name"]),
        symbol=str(entry["symbol"]),
        dtype=dtype,
        shape=tuple(size if isinstance(size, str) else int(size) for size in entry["shape"]),
        nbytes=int(entry["bytes"]),
        room=max(int(outside["bytes"]), 1) if outside else 0,
        align=int(outside["align"]) if outside else 1,
    )
    if tensor.is_static and tensor.nbytes != dtype.nbytes(prod(tensor.static_shape)):
        raise ValueError(f"{tensor.name}: {tensor.nbytes} bytes do not hold {tensor}")
    return tensor


_STEP_BY_STEP = """
#define MCC_HOST_RUN mcc_host_step_by_step
static mcc_status mcc_host_step_by_step(NAME_model *m)
{
    mcc_status status = NAME_begin(m);
    if (status != MCC_OK) return status;
    do status = NAME_run_steps(m, 1u);
    while (status == MCC_MORE);
    return status;
}
"""


def _host_model_header(report: Report) -> str:
    inputs = " ".join(f"MCC_HOST_EACH({tensor.symbol})" for tensor in report.inputs if not tensor.room)
    outputs = " ".join(f"MCC_HOST_EACH({tensor.symbol})" for tensor in report.outputs if not tensor.room)
    ways = [("input", t) for t in report.inputs if t.room] + [("output", t) for t in report.outputs if t.room]
    places = (f"MCC_HOST_EACH({n}, {way}_{t.symbol}, {t.dtype.storage_c})" for n, (way, t) in enumerate(ways))
    shaped = ((n, t.symbol) for n, t in enumerate(report.outputs) if not t.is_static)
    shapes = " ".join(f"MCC_HOST_EACH({n}, {symbol})" for n, symbol in shaped)
    sizes = ", ".join(f"(mcc_index)(n)[{n}]" for n in range(len(report.given)))
    resize = f"{report.prefix}_resize(m, {sizes})" if sizes else "MCC_OK"
    name = report.prefix
    arenas = ", ".join(f"(a)[{n}], (n)[{n}]" for n in range(len(report.arenas)))
    state = f"((to) ? {name}_save_state(m, to) : {name}_load_state(m, from))" if report.state_bytes else "MCC_OK"
    return (
        f'#include "{report.prefix}.h"\n'
        f"#define MCC_HOST_PREFIX {report.prefix}\n"
        f"{_STEP_BY_STEP.replace('NAME', name) if report.sliced else f'#define MCC_HOST_RUN {name}_run'}\n"
        f"#define MCC_HOST_INPUTS(MCC_HOST_EACH) {inputs}\n"
        f"#define MCC_HOST_OUTPUTS(MCC_HOST_EACH) {outputs}\n"
        f"#define MCC_HOST_SHAPES(MCC_HOST_EACH) {shapes}\n"
        f"#define MCC_HOST_PLACES(MCC_HOST_EACH) {' '.join(places)}\n"
        f"#define MCC_HOST_INIT(m, a, n, w, s) {name}_init(m, {arenas}, w, s)\n"
        f"#define MCC_HOST_RESIZE(m, n) {resize}\n"
        f"#define MCC_HOST_STATE(m, to, from) {state}\n"
        + (f"#define MCC_HOST_WORKERS {report.threads}\n" if report.threads > 1 else "")
    )


def with_ticks(model: str, steps: Sequence[str]) -> str:
    """The text of a model that tells the host when each step has ended."""
    for number, step in enumerate(steps):
        call, end = re.compile(r"\s+".join(map(re.escape, step.split()))), 0  # long calls stand in several lines
        while True:
            found = call.search(model, end)
            assert found is not None
            end = model.index(");", found.start())
            if not model.startswith(");  /* tick */", end):
                break  # else the same call has been found before
        model = f"{model[:end]});  /* tick */ mcc_host_tick({number});{model[end + 2 :]}"
    return f"void mcc_host_tick(int step);\n{model}"


def _bad_folder(folder: Path, why: str) -> BadFile:
    return BadFile(
        Problem(
            "this is not an output folder of mccompile",
            where=str(folder),
            why=why,
            fix=f"write it with `mccompile model.onnx -o {folder}`",
        )
    )
