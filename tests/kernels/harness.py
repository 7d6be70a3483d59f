"""Runs the cases of one kernel as a program: all functions in one file, memory in through stdin, out through stdout.

A case becomes several functions: operands and results apart, once for every way in which the kernel allows a result to
lie over an operand, all at once and row by row, and once for every way in which workers can share the call.
"""

from __future__ import annotations

import shlex
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mccompile.base.constant import Constant, encoded
from mccompile.base.dims import static
from mccompile.base.discovery import data_folder
from mccompile.base.dtypes import bf16, f16, string, u8
from mccompile.base.marked import plain
from mccompile.base.tensor import TensorType
from mccompile.emit.folding import folded
from mccompile.emit.kernels import printed, signature
from mccompile.kernels.api import Case, Kernel, Needs, No
from mccompile.kernels.work import phases
from mccompile.kinds.fetch import Fetch
from mccompile.passes.rows.row_windows import AXIS, pooled_whole
from mccompile.plan.ir import Function
from mccompile.program.ir import CONSTANT, Buffer, Call, View
from mccompile.targets.api import Target
from mccompile.toolchain.elements import from_bytes, to_bytes
from tests import precompiled
from tests.emit.c_faults import OF_CASES, ONCE, faults
from tests.lengths import LONGEST, LONGEST_OF_HALVES, too_long

import_module("ml_dtypes")  # comes with onnx; from here on numpy knows bfloat16 and the like
HERE = Path(__file__).parent
_built: dict[tuple[str, ...], list[str]] = {}  # what several tests run
POISON = 0xA5
WORKERS = 3
MOST_SECONDS = 600  # of a program; under emulation on a busy machine
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


class Place(NamedTuple):
    """Where an argument lies: block and byte offset."""

    block: int
    offset: int


@dataclass(frozen=True)
class Trial:
    """One call: a case with its operands' values, and an overlap of result and operand, if any."""

    name: str
    case: Case
    function: Function
    values: tuple[np.ndarray, ...]  # of the operands, in the shapes of the case but for repeated axes
    blocks: tuple[bytes, ...]
    aligns: tuple[int, ...]
    outs: tuple[Place, ...]
    ins: tuple[Place, ...]
    scratch: Place | None
    overwritten: frozenset[int]  # operands that share memory with a result
    strings: frozenset[int] = frozenset()  # blocks of strings
    pieces: tuple[tuple[int, int], ...] = ()  # what workers compute, the last one of each phase first

    def results(self, blocks: Sequence[bytes]) -> list[np.ndarray]:
        found = []
        for index, (place, type) in enumerate(zip(self.outs, self.case.outs, strict=True)):
            dtype, shape = type.dtype, type.static_shape
            order = self.case.permute_outs.get(index, tuple(range(len(shape))))
            contents = blocks[place.block][place.offset : place.offset + dtype.nbytes(prod(shape))]
            stored_shape = tuple(shape[axis] for axis in order)
            stored = _texts(contents, blocks, stored_shape) if dtype is string else None
            if stored is None:
                stored = from_bytes(contents, dtype, stored_shape)
            found.append(stored.transpose([order.index(axis) for axis in range(len(order))]))
        return found

    def damaged(self, blocks: Sequence[bytes]) -> list[int]:
        """Operands that were changed though no result lies over them."""
        return [
            i
            for i, place in enumerate(self.ins)
            if i not in self.overwritten and blocks[place.block] != self.blocks[place.block]
        ]


def trials(kernel: Kernel, target: Target, cases: Sequence[Case] = ()) -> list[Trial]:
    """Of these cases; by default the kernel's own."""
    found = []
    for case in cases or [case for case in kernel.cases() if not case.option or target.option(case.option, 0)]:
        call, values = call_of(kernel, case)
        needs = kernel.match(call, target)
        if isinstance(needs, No):  # some serve only where time comes first
            target = replace(target, prefer="time")
            needs = kernel.match(call, target)
        if isinstance(needs, No):
            raise AssertionError(f"{kernel.id} refuses its own case {case.name}: {needs.reason}")
        if needs.dense & case.permute.keys():  # as select_kernels copies them
            case = replace(case, permute={i: axes for i, axes in case.permute.items() if i not in needs.dense})
            call, values = call_of(kernel, case)
            needs = kernel.match(call, target)
            assert isinstance(needs, Needs)
        call.blocks = needs.blocks
        contents = _contents(call)
        packed = kernel.pack(call, contents)
        found.append(_trial(kernel, case, call, values, packed, needs, None, 0))
        for (out, operand), reach in sorted(needs.alias.items()):
            if call.ins[operand].type.count and operand not in case.constant:
                for distance in sorted({0, reach}):
                    found.append(_trial(kernel, case, call, values, packed, needs, (out, operand), distance))
        by_rows = needs.rows
        for rows in (None, *sorted(by_rows)):
            shared = replace(call, workers=WORKERS, rows=rows)
            needs = kernel.match(shared, target)
            assert isinstance(needs, Needs)
            shared.blocks = needs.blocks
            together = phases(kernel.units(shared), WORKERS, kernel.barrier(shared))
            parts = tuple(piece for phase in together for piece in reversed(phase))
            if len(parts) > len(together):
                packed = kernel.pack(shared, contents)
                trial = _trial(kernel, case, shared, values, packed, needs, None, 0)
                found.append(replace(trial, pieces=parts))
        for rows in sorted(by_rows):
            found += _row_by_row(kernel, case, replace(call, rows=rows), values, target)
    return found


def _row_by_row(
    kernel: Kernel, case: Case, call: Call, values: tuple[np.ndarray, ...], target: Target
) -> Iterator[Trial]:
    """Over each operand that it allows, or beside all."""
    needs = kernel.match(call, target)
    assert isinstance(needs, Needs)
    made = call.ins[0] if call.rows == AXIS and pooled_whole(call) else call.outs[0]
    call.blocks, height = needs.blocks, static(made.shape[call.rows or 0])
    packed = kernel.pack(call, _contents(call))
    for pair in sorted(needs.alias) or [None]:
        if pair is None or (call.ins[pair[1]].type.count and pair[1] not in case.constant):
            trial = _trial(kernel, case, call, values, packed, needs, pair, 0)
            yield replace(trial, pieces=tuple((row, row + 1) for row in range(height)))


def _contents(call: Call) -> dict[int, Constant]:
    return {i: v.buffer.constant for i, v in enumerate(call.ins) if v.buffer.constant is not None}


def call_of(kernel: Kernel, case: Case) -> tuple[Call, tuple[np.ndarray, ...]]:
    chance = np.random.default_rng(zlib.crc32(f"{kernel.id} {case.name}".encode()))
    views, values = [], []
    for index, type in enumerate(case.ins):
        shape = type.static_shape
        low, high = case.ranges.get(index, (-2, 2))
        if index in case.values:
            value = case.values[index]
        elif type.dtype.is_integer:
            low, high = max(low, type.dtype.low), min(high, type.dtype.high)
            value = chance.integers(int(low), int(high), shape, endpoint=True).astype(type.dtype.numpy)
        elif type.dtype is string:
            words = np.array(["", "a", "mcc", "Hello world", "héLlo", " 1.5 "], object)
            value = words[chance.integers(0, len(words), shape)].reshape(shape)
        elif type.dtype.kind == "bool":
            value = chance.integers(0, 2, shape).astype(bool)
        else:
            value = chance.uniform(low, high, shape).astype(type.dtype.numpy)
        repeated = case.repeated.get(index, ())
        value = value[tuple(slice(0, 1) if axis in repeated else slice(None) for axis in range(len(shape)))]
        order = case.permute.get(index, tuple(range(len(shape))))
        buffer = Buffer(f"x{index}", type.dtype, tuple(value.shape[axis] for axis in order))
        if index in case.constant:
            buffer.role, buffer.constant = CONSTANT, Constant.of(np.ascontiguousarray(value.transpose(order)))
        views.append(buffer.whole().permuted([order.index(axis) for axis in range(len(shape))]).broadcast_to(shape))
        values.append(value)
    outs = tuple(_result(f"y{i}", type, case.permute_outs.get(i)) for i, type in enumerate(case.outs))
    reason = case.kind.check(case.ins, case.outs)
    assert not reason, f"{kernel.id}: case {case.name} contradicts its kind: {reason}"
    return Call(case.kind, tuple(map(_plain, views)), tuple(map(_plain, outs)), (case.name,), kernel.id), tuple(values)


def _plain(view: View) -> View:
    """The stride of an axis of one element says nothing: 1 where it is the last one, as in dense tensors, else 0, as
    where a pass added the axis."""
    last = len(view.shape) - 1
    sizes = enumerate(zip(view.shape, view.strides, strict=True))
    strides = (int(axis == last) if dim == 1 else stride for axis, (dim, stride) in sizes)
    return replace(view, strides=tuple(strides))


def _result(name: str, type: TensorType, order: Sequence[int] | None) -> View:
    """A result that is stored in another order of axes, if one is given."""
    if order is None:
        return Buffer(name, type.dtype, type.shape).whole()
    stored = Buffer(name, type.dtype, tuple(type.shape[axis] for axis in order)).whole()
    return stored.permuted([order.index(axis) for axis in range(len(order))])


def _trial(
    kernel: Kernel,
    case: Case,
    call: Call,
    values: tuple[np.ndarray, ...],
    packed: object,
    needs: Needs,
    overlap: tuple[int, int] | None,
    distance: int,
) -> Trial:
    blocks: list[bytes] = []
    aligns: list[int] = []

    def block(contents: bytes, align: int) -> Place:
        blocks.append(contents)
        aligns.append(max(align, 4))
        return Place(len(blocks) - 1, 0)

    assert isinstance(packed, dict)
    ins = []
    texts = b""
    text_block = len(call.ins) + len(call.outs) + 1  # beyond all others
    for index, view in enumerate(call.ins):
        order = case.permute.get(index, tuple(range(len(view.shape))))
        stored = packed.get(index, values[index].transpose(order))
        if view.buffer.dtype is string:
            given = encoded(stored)
            contents, texts = _descriptors(given, text_block, len(texts)), texts + b"".join(given)
        else:
            contents = to_bytes(np.ascontiguousarray(stored), view.buffer.dtype)
        contents += bytes(needs.slack.get(index, 0))
        ins.append(block(contents, needs.align.get(index, 1)))
    outs = []
    for index, view in enumerate(call.outs):
        size = view.buffer.max_bytes
        if overlap is not None and overlap[0] == index:  # `distance` bytes before the operand, in one block with it
            place = ins[overlap[1]]
            room = max(0, size - distance - len(blocks[place.block]))
            blocks[place.block] = bytes([POISON]) * distance + blocks[place.block] + bytes([POISON]) * room
            ins[overlap[1]] = Place(place.block, distance)
            outs.append(place)
        else:
            outs.append(block(bytes([POISON]) * size, needs.align_outs.get(index, 1)))
    scratch = None
    if needs.scratch:
        buffer = Buffer("scratch", u8, (needs.scratch,))
        call = replace(call, scratch=buffer)
        scratch = block(bytes([POISON]) * needs.scratch, needs.scratch_align)
    out_names, in_names = kernel.parameter_names(call)
    aliased = frozenset() if overlap is None else frozenset({out_names[overlap[0]], in_names[overlap[1]]})
    name = case.name
    if overlap is not None:
        name += f"_over_{in_names[overlap[1]]}" + (f"_{distance}" if distance else "")
    name += "_shared" * (call.workers > 1) + ("" if call.rows is None else f"_by_rows_{call.rows}")
    function = Function(f"k_{name}", kernel, call, aliased)
    overwritten = frozenset() if overlap is None else frozenset({overlap[1]})
    places = zip((*ins, *outs), (*call.ins, *call.outs), strict=True)
    strings = frozenset(place.block for place, view in places if view.buffer.dtype is string)
    if strings:
        while len(blocks) <= text_block:
            block(b"", 1)
        blocks[text_block] = texts
    memory = tuple(blocks), tuple(aligns), tuple(outs), tuple(ins)
    return Trial(name, case, function, values, *memory, scratch, overwritten, strings)


_STRING = struct.Struct("<QI4x")  # block + 1 in the upper half of the pointer's place, offset in the lower; 0: no text


def _descriptors(texts: Sequence[bytes], block: int, start: int) -> bytes:
    rows = []
    for text in texts:
        rows.append(_STRING.pack(block + 1 << 32 | start if text else 0, len(text)))
        start += len(text)
    return b"".join(rows)


def _texts(contents: bytes, blocks: Sequence[bytes], shape: tuple[int, ...]) -> np.ndarray:
    found = np.empty(len(contents) // _STRING.size, object)
    for i in range(len(found)):
        place, size = _STRING.unpack_from(contents, i * _STRING.size)
        block, offset = (place >> 32) - 1, place & 0xFFFFFFFF
        found[i] = blocks[block][offset : offset + size].decode() if size else ""
    return found.reshape(shape)


def _faults(trial: Trial, text: str) -> list[tuple[str, int]]:
    """What a reviewer would mark. A loop that is left early may run once: no pass takes it away."""
    shown, call = folded(text), trial.function.call
    halves = any(view.buffer.dtype in (f16, bf16) for view in (*call.ins, *call.outs))  # are converted one by one
    long = too_long(shown, LONGEST_OF_HALVES if halves else LONGEST)
    return [*long.items(), *(fault for fault in faults(shown) if fault[0] not in {ONCE, *OF_CASES})]


def write_sources(found: Sequence[Trial], folder: Path, restrict: bool = True, unread: bool = False) -> None:
    """kernels.c with the functions, cases.c with what harness.c needs to call them. Functions that differ by their
    names alone are printed once; without `restrict`, which means little to a compiler that hardly optimises, also those
    that differ by it. `unread`: operands need not be read, as where no window meets one of a single element."""
    headers: set[str] = set()
    names: dict[str, str] = {}  # of functions, by what stands in them
    shared: dict[object, str] = {}  # the same, by what decides that
    alike: set[str] = set()  # that have been reviewed
    texts, declared, called = [], [], []
    for trial in found:
        same = trial.case.name, trial.function.call.rows, trial.function.call.workers
        if not restrict and same in shared:
            called.append(shared[same])
            continue
        made = printed(trial.function)
        reviewed = made.text.replace(trial.function.name, "").replace("MCC_RESTRICT ", "")
        if reviewed not in alike:
            alike.add(reviewed)
            assert not _faults(trial, made.text), f"{trial.name}: {_faults(trial, made.text)}"
        assert unread or _cast_away(made.text) <= _empty(trial), f"{trial.name} is given what it does not read"
        text, name, headers = plain(made.text), trial.function.name, headers | made.headers
        head = plain(signature(trial.function))
        if not restrict:
            text, head = text.replace("MCC_RESTRICT ", ""), head.replace("MCC_RESTRICT ", "")
        key = text.replace(name, "")
        if key not in names:
            texts.append(text)
            declared.append(f"{head};")
        called.append(names.setdefault(key, name))
        shared[same] = called[-1]
    asks = '#include "mcc_rows.h"\n' if any(trial.function.kernel.asks for trial in found) else ""
    (folder / "kernels.h").write_text(f'#include "mcc_copy.h"\n{asks}' + "\n".join(declared) + "\n")
    (folder / "kernels.c").write_text(
        '#include "kernels.h"\n' + "".join(f"#include <{name}>\n" for name in sorted(headers)) + "\n" + "\n".join(texts)
    )
    lines = ['#include "kernels.h"', '#include "harness.h"']
    rows = []
    for number, (trial, name) in enumerate(zip(found, called, strict=True)):
        runs = [f", {begin}, {end}" for begin, end in trial.pieces] or [""]
        calls = " ".join(f"{name}({_arguments(trial)}{run});" for run in runs)
        lines.append(f"static void call_{number}(uint8_t **b) {{ {_given_rows(trial)}{calls} }}")
        sizes = ", ".join(f"{len(block)}u" for block in trial.blocks)
        aligns = ", ".join(f"{align}u" for align in trial.aligns)
        lines.append(f"static const size_t bytes_{number}[] = {{{sizes}}}, align_{number}[] = {{{aligns}}};")
        strings = sum(1 << block for block in trial.strings)
        rows.append(f"    {{{len(trial.blocks)}, bytes_{number}, align_{number}, {strings}u, call_{number}}},")
    lines += ["static const struct harness_case cases[] = {", *rows, "};"]
    lines += [f"const struct harness_cases harness_cases = {{{len(rows)}u, cases}};", ""]
    (folder / "cases.c").write_text("\n".join(lines))


def _cast_away(text: str) -> set[str]:
    """Names that are cast to void, so that no compiler warns of them."""
    lines = (line.strip() for line in plain(text).splitlines())
    names = (line.removeprefix("(void)").rstrip(";").strip() for line in lines if line.startswith("(void)"))
    return {name for name in names if name.isidentifier()}


def _empty(trial: Trial) -> set[str]:
    """Of parameters those without elements, which nothing can be read of."""
    call = trial.function.call
    names = (name for some in trial.function.kernel.parameter_names(call) for name in some)
    return {name for name, view in zip(names, (*call.outs, *call.ins), strict=True) if view.type.count == 0}


def _arguments(trial: Trial) -> str:
    call, kernel = trial.function.call, trial.function.kernel
    found, (outs, ins), unpassed = [], kernel.parameter_names(call), trial.function.unpassed
    for names, places, views, const in ((outs, trial.outs, call.outs, ""), (ins, trial.ins, call.ins, "const ")):
        for name, place, view in zip(names, places, views, strict=True):
            if name in unpassed:
                continue
            at = place.offset + _first_byte(view)
            if const and kernel.asks:
                found.append("&rows")
                continue
            found.append(f"({const}{view.buffer.dtype.storage_c} *)(void *)(b[{place.block}] + {at})")
    if kernel.queued(call):
        found.append("&copying")
    if trial.scratch is not None:
        found.append(f"b[{trial.scratch.block}]")
    return ", ".join(found)


def _given_rows(trial: Trial) -> str:
    """What the program gives rows of, where a kernel asks for them, or a queue of copies."""
    call = trial.function.call
    if trial.function.kernel.queued(call):
        return "mcc_copying copying = {NULL, NULL, 0u}; "
    if not trial.function.kernel.asks:
        return ""
    rows = static(call.ins[0].shape[call.of(Fetch).axis])
    array = f"{{b[{trial.ins[0].block}], {call.ins[0].type.max_bytes // rows}u, {rows}, 0}}"
    return f"mcc_array_rows array = {array}; const mcc_rows rows = {{mcc_fetch_array, &array}}; "


def _first_byte(view: View) -> int:
    assert isinstance(view.offset, int)
    return view.offset * view.buffer.dtype.bits // 8


def include_flags(folder: Path) -> list[str]:
    return [f"-I{folder}", f"-I{HERE}", f"-I{data_folder('runtime_c') / 'include'}"]


def compile_program(compiler: Sequence[str], flags: Sequence[str], folder: Path) -> list[str]:
    """Builds kernels.c and cases.c, once for all tests that do; the command that runs them with harness.c, which is
    compiled once for all kernels. What is linked with -static is one program, else that of harness.c loads the cases:
    linking sanitizers takes long. The compiler's complaints make the test fail."""
    is_whole = "-static" in flags
    harness = str(_harness(tuple(compiler), tuple(flag for flag in flags if flag != "-static"), is_whole))
    made = folder / ("program" if is_whole else "cases.so")
    options, more = (flags, [harness, "-lm"]) if is_whole else ([*flags, "-shared", "-fPIC"], ["-lm"])
    sources = [folder / "kernels.c", folder / "cases.c"]
    key = (*compiler, *options, *(source.read_text() for source in (*sources, folder / "kernels.h")))
    if key not in _built:
        flags = [*options, *include_flags(folder)]
        _compile([*compiler, *flags, *map(str, precompiled.ahead(compiler, flags, sources)), *more, "-o", str(made)])
        _built[key] = [str(made)] if is_whole else [harness, str(made)]
    return _built[key]


@cache
def _harness(compiler: tuple[str, ...], flags: tuple[str, ...], is_object: bool) -> Path:
    """An object file, or a program that loads cases."""
    made = Path(tempfile.mkdtemp(dir=precompiled.folder().name), "harness.o" if is_object else "harness")
    how, libraries = (["-c"], []) if is_object else (["-DHARNESS_LOADS"], ["-ldl"])
    _compile([*compiler, *flags, *include_flags(HERE), *how, str(HERE / "harness.c"), "-o", str(made), *libraries])
    return made


def _compile(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr[:6000]}"


def run_program(command: Sequence[str], found: Sequence[Trial]) -> list[list[bytes]]:
    """Every trial's blocks after its call."""
    memory = b"".join(block for trial in found for block in trial.blocks)
    done = subprocess.run(command, input=memory, capture_output=True, check=False, timeout=MOST_SECONDS)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[:6000]
    result, position = [], 0
    for trial in found:
        blocks = []
        for block in trial.blocks:
            blocks.append(done.stdout[position : position + len(block)])
            position += len(block)
        result.append(blocks)
    return result
