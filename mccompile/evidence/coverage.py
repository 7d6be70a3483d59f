"""Which statements and branches of the generated C runs on generated inputs reach, counted by gcov.

Inputs are those of time.py: filled with one number, extremes, NaN, random ones of many sizes. Init is offered arenas
and blobs that it has to refuse. Invariant: what is not reached is named with its line and why.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..base.dtypes import string
from ..base.errors import CheckFailed, WrongUse
from ..emit.package import Package
from ..targets.api import Target
from ..toolchain.build import Compiler, Library, load
from ..toolchain.gcov import CDEF, FLAGS, TOOLS, CountedLine, reached
from ..toolchain.host_library import HOST_CDEF, build_shared
from ..toolchain.model_report import Report, read_report
from ..toolchain.run import Model
from ..toolchain.tools import missing, version
from .time import runs

INPUTS = 60
_PRODUCTS = 2 * 10**9  # of all runs: without optimization some ten seconds; six runs are made in any case
_PORTABLE = ("-DMCC_DSP_PORTABLE", "-DMCC_HELIUM_PORTABLE", "-DMCC_SCALAR_PORTABLE")  # C in place of assembly
_STATUSES = 64  # more than there are
_HEADER = 64  # bytes of a blob's own
RUNTIME = "runtime/"  # files that are the same for all models


def coverage_certificate(package: Package, target: Target) -> dict[str, Any]:
    """Statements and branches of each file, or why they were not counted."""
    found: dict[str, Any] = {"schema": "mccompile-coverage-1"}
    if why := _unmeasured(package):
        return found | {"not_measured": why}
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder, notes = Path(scratch, "out"), Path(scratch, "notes")
        package.write(folder)
        notes.mkdir()
        report = read_report(folder)
        flags = ("-std=c99", *FLAGS, *(_PORTABLE if target.run else [f for f in target.cflags if f.startswith("-m")]))
        try:
            shared = build_shared(folder, report, notes / "model.so", Compiler(("gcc",)), flags)
            library = load(shared, HOST_CDEF + CDEF)
        except WrongUse:
            return found | {"not_measured": f"this machine does not run code for {package.plan.target}"}
        count = max(6, min(INPUTS, _PRODUCTS // max(1, package.macs)))
        _run(library, package, report, count)
        library.functions.__gcov_dump()
        lines = reached(folder, notes)
    texts = {path: package.files[path].decode().split("\n") for path in lines}
    return found | {
        "compiler": version(["gcc"]),
        "flags": list(flags),
        "inputs": count,
        "files": {path: _counts(each) for path, each in lines.items()},
        "unreached": [gap for path, each in lines.items() for gap in _gaps(path, each, texts[path])],
        "mixed": [f"{path}:{line.number}" for path, each in lines.items() for line in _mixed(each, texts[path])],
    }


def total(coverage: Mapping[str, Any]) -> dict[str, int]:
    names = ("statements", "reached", "branches", "taken")
    return {name: sum(file[name] for file in coverage["files"].values()) for name in names}


def shown(coverage: Mapping[str, Any]) -> str:
    """For the terminal."""
    if why := coverage.get("not_measured"):
        return f"not measured: {why}"
    all_of = total(coverage)
    return (
        f"{all_of['reached']} of {all_of['statements']} lines, {all_of['taken']} of {all_of['branches']} branches "
        f"by {coverage['inputs']} inputs"
    )


def _unmeasured(package: Package) -> str:
    if lacking := missing(TOOLS):
        return f"{' and '.join(lacking)} is not installed"
    if package.plan.given:
        return f"the size {package.plan.given[0].name} is known only at run time"
    if any(tensor.type.dtype is string for tensor in package.plan.inputs):
        return "an input has texts"
    return ""


def _run(library: Library, package: Package, report: Report, count: int) -> None:
    blob = package.files[f"{package.plan.prefix}.mcb"]
    _misuse(library, report, blob)
    for broken in broken_blobs(package, blob):
        try:
            Model(library, report, broken)
        except CheckFailed:
            continue
    model = Model(library, report, blob)
    for code in range(-1, _STATUSES):
        library.functions.mcc_host_status_text(code)
    for inputs in runs(report.inputs, count):
        with suppress(CheckFailed):  # sizes beyond those that the model was compiled for
            model.run(inputs)
        if report.state_bytes:
            model.load_state(model.save_state())


def _misuse(library: Library, report: Report, blob: bytes) -> None:
    """Calls that init and run refuse: without a model, too early, with no memory, too little, or in a wrong place."""
    ffi, call, null = library.ffi, library.functions, library.ffi.NULL
    model = ffi.new("uint64_t[]", call.mcc_host_model_bytes() // 8 + 1)
    sizes = [arena.bytes for arena in report.arenas]
    memory = [ffi.new("uint64_t[]", size // 8 + 64) for size in sizes]
    places = [ffi.cast("void *", -(-int(ffi.cast("uintptr_t", each)) // 256) * 256) for each in memory]
    weights = ffi.new("uint64_t[]", len(blob) // 8 + 64)
    there = ffi.cast("char *", -(-int(ffi.cast("uintptr_t", weights)) // 256) * 256)
    ffi.memmove(there, blob, len(blob))
    call.mcc_host_run(null)
    call.mcc_host_run(model)
    call.mcc_host_init(null, places, sizes, there, len(blob))
    call.mcc_host_init(model, places, sizes, null, len(blob))
    call.mcc_host_init(model, places, sizes, there + 1, len(blob))
    for count in (0, _HEADER - 1, len(blob) - 1):
        call.mcc_host_init(model, places, sizes, there, count)
    for number in range(len(places)):
        less = [(places[number], sizes[number] - 1)] if sizes[number] else []
        for place, size in [(null, sizes[number]), (places[number] + 1, sizes[number]), *less]:
            given, bytes_of = [*places], [*sizes]
            given[number], bytes_of[number] = place, size
            call.mcc_host_init(model, given, bytes_of, there, len(blob))


def broken_blobs(package: Package, blob: bytes) -> Iterator[bytes]:
    """Blobs with one wrong byte in the header, with the header's checksum right or wrong; and with right checksums and
    numbers among the weights that are extremes of their type."""
    for place in range(_HEADER):
        flipped = bytearray(blob)
        flipped[place] ^= 0xFF
        yield bytes(flipped)
        yield _summed(flipped)
    yield blob[:-1] + bytes([blob[-1] ^ 0xFF])
    begin = int.from_bytes(blob[32:40], "little")
    yield _of_sizes(blob[:begin] + blob[begin + 1 :], begin)
    yield _of_sizes(blob[:begin] + bytes(1) + blob[begin:], begin + 1)
    seen: set[int] = set()
    for step in package.plan.steps():
        for argument in step.arguments:
            dtype = argument.type.dtype
            if argument.address.base != "blob" or not dtype.is_integer or argument.low in seen or dtype.bits < 8:
                continue
            seen.add(argument.low)
            size = dtype.bits // 8
            for place in (argument.low, argument.high - size):
                for number in (0, -1, 1 << (dtype.bits - 1), (1 << (dtype.bits - 1)) - 1):
                    made = bytearray(blob)
                    at = begin + place
                    made[at : at + size] = (number % (1 << dtype.bits)).to_bytes(size, "little")
                    yield _summed(made)


def _of_sizes(blob: bytes, begin: int) -> bytes:
    """With data from `begin` on, as the header then says."""
    made = bytearray(blob)
    for place, number in ((8, len(blob)), (32, begin), (40, len(blob) - begin)):
        made[place : place + 8] = number.to_bytes(8, "little")
    return _summed(made)


def _summed(blob: bytearray) -> bytes:
    begin = min(int.from_bytes(blob[32:40], "little"), len(blob))
    blob[56:60] = zlib.crc32(blob[begin:]).to_bytes(4, "little")
    blob[60:64] = zlib.crc32(blob[64:begin], zlib.crc32(blob[:60])).to_bytes(4, "little")
    return bytes(blob)


def _counts(lines: Sequence[CountedLine]) -> dict[str, int]:
    branches = [taken for line in lines for taken in line.branches]
    return {
        "statements": len(lines),
        "reached": sum(line.reached for line in lines),
        "branches": len(branches),
        "taken": sum(branches),
    }


def _gaps(path: str, lines: Sequence[CountedLine], text: Sequence[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.reached and all(line.branches):
            continue
        yield {
            "file": path,
            "line": line.number,
            "function": line.function,
            "reached": line.reached,
            "branches": [number for number, taken in enumerate(line.branches) if not taken],
            "why": _why(path, line),
            "text": text[line.number - 1].strip(),
        }


def _why(path: str, line: CountedLine) -> str:
    if path.startswith(RUNTIME):
        return "the runtime is the same for all models: nothing that was tried of this one needs it"
    if line.function.endswith("_init"):
        return "a guard of init: no blob or arena that was tried fails it alone"
    return "no input that was tried reaches it"


def _mixed(lines: Sequence[CountedLine], text: Sequence[str]) -> Iterator[CountedLine]:
    """Conditions with both && and ||. Of others, to take every branch is MC/DC, since both leave off early."""
    for line in lines:
        own = text[line.number - 1]
        if len(line.branches) > 2 and "&&" in own and "||" in own:
            yield line
