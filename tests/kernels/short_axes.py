"""Cases of a kernel with axes of one element: that leaves loops out, and with them whatever reads their counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mccompile.base.tensor import TensorType
from mccompile.kernels.api import Case, Kernel, Needs
from mccompile.targets.api import Target
from tests.kernels import harness
from tests.kernels.test_matrix import SHARES, warnings

Axis = tuple[int, int]  # its number, its size


def warnings_of_short_axes(kernel: Kernel, target: Target, compiler: Sequence[str], folder: Path) -> str:
    """What a compiler says of the kernel over them: of all functions that run alone, and of those that workers share or
    that run row by row for each third case; for all of them with CASES=all."""
    cases = [short for case in kernel.cases() for short in short_axes(case) if _serves(kernel, short, target)]
    if not cases:
        return ""
    in_parts = {case.name for case in cases[::SHARES]}
    found = [
        trial
        for trial in harness.trials(kernel, target, cases)
        if trial.case.name in in_parts or (trial.function.call.workers == 1 and trial.function.call.rows is None)
    ]
    harness.write_sources(found, folder, restrict=False, unread=True)
    return warnings(compiler, folder)


def short_axes(case: Case) -> Iterator[Case]:
    """The case with axes shortened to 1: all of a size, wherever they are, or those of the first operand and the
    results that have the same number, as the height of an image, and whatever else has their sizes there."""
    types = (*case.ins[:1], *case.outs)
    sizes = {size for type in (*case.ins, *case.outs) for size in type.static_shape}
    numbers = {number for type in types for number in range(len(type.shape))}
    ways = [{(number, size) for number in range(9)} for size in sorted(sizes - {0, 1})]
    ways += [{(number, t.static_shape[number]) for t in types if number < len(t.shape)} for number in sorted(numbers)]
    seen: list[tuple[tuple[TensorType, ...], ...]] = [(case.ins, case.outs)]
    for axes in ways:
        ins, outs = (
            tuple(TensorType(t.dtype, _shortened(t.static_shape, axes)) for t in types)
            for types in (case.ins, case.outs)
        )
        values = {
            index: value[tuple(slice(1 if one < size else None) for one, size in zip(short, value.shape, strict=True))]
            for index, value in case.values.items()
            for short in [_shortened(value.shape, axes)]
        }
        with suppress(ValueError, IndexError, AssertionError):  # of shapes that do not belong together
            if (ins, outs) not in seen and not case.kind.check(ins, outs):
                seen.append((ins, outs))
                yield replace(case, name=f"{case.name}_short_{len(seen)}", ins=ins, outs=outs, values=values)


def _shortened(shape: Sequence[int], axes: set[Axis]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else axis[1] for axis in enumerate(shape))


def _serves(kernel: Kernel, case: Case, target: Target) -> bool:
    if case.option and not target.option(case.option, 0):
        return False
    call = harness.call_of(kernel, case)[0]
    return any(isinstance(kernel.match(call, each), Needs) for each in (target, replace(target, prefer="time")))
