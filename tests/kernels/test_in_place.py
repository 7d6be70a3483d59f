"""Results that lie over an operand, in every way that a kernel allows: of the same and of a smaller element, in the
order of memory and in others, along every axis. Each kernel's own cases are turned and narrowed, and those run in which
it allows some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from mccompile.base.dtypes import DType, f16, f32, i8
from mccompile.base.tensor import TensorType
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.kernels.api import Case, Kernel, Needs
from mccompile.kernels.registry import Registry
from mccompile.targets import api as targets
from mccompile.targets.api import Target
from tests.kernels.harness import call_of
from tests.kernels.test_matrix import OPTIMISED, PORTABLE, wrong_results
from tests.thorough import some

KERNELS = Registry.load()


def narrowed(case: Case, dtype: DType) -> Case | None:
    """The same, with a result of smaller elements."""
    out = case.outs[0]
    name = next((f.name for f in fields(case.kind) if f.name in ("epilogue", "expr")), None)
    if name is None or len(case.outs) != 1 or not out.dtype.is_float or out.dtype.bits <= dtype.bits:
        return None
    inner = getattr(case.kind, name) or operand(0, getattr(case.kind, "accumulator", f32))
    if not dtype.is_float:
        inner = apply("mul", inner, literal(30.3, inner.dtype))
        inner = apply("min", apply("max", inner, literal(-100, inner.dtype)), literal(100, inner.dtype))
    kind = replace(case.kind, **{name: cast(inner, dtype)})
    return replace(case, name=f"{case.name}_{dtype}", kind=kind, outs=(TensorType(dtype, out.shape),))


def along(case: Case) -> Iterator[Case]:
    """The same along other axes, where results have the operands' shape."""
    shape = case.outs[0].shape
    if any(type.shape != shape for type in case.ins) or len(shape) < 2:
        return
    if isinstance(getattr(case.kind, "axis", None), int):
        for axis in range(len(shape)):
            yield replace(case, name=f"{case.name}_axis_{axis}", kind=_with(case.kind, axis=axis))
    if isinstance(getattr(case.kind, "axes", None), tuple):
        for axes in (*((axis,) for axis in range(len(shape))), (0, len(shape) - 1)):
            name = "".join(map(str, axes))
            yield replace(case, name=f"{case.name}_axes_{name}", kind=_with(case.kind, axes=axes))


def _with(kind: Any, **changed: Any) -> Any:
    return replace(kind, **changed)


def turned(case: Case) -> Iterator[Case]:
    """The same with the result, and all operands of its shape, in other orders of axes."""
    shape = case.outs[0].shape
    alike = [i for i, type in enumerate(case.ins) if type.shape == shape and i not in case.constant]
    if case.permute or case.permute_outs or len(case.outs) != 1 or len(shape) < 2 or not alike:
        return
    for name, order in (("last", (0, *range(2, len(shape)), 1)), ("reversed", tuple(reversed(range(len(shape)))))):
        if order != tuple(range(len(shape))):
            yield replace(
                case, name=f"{case.name}_{name}", permute=dict.fromkeys(alike, order), permute_outs={0: order}
            )


def cases(kernel: Kernel, target: Target) -> list[Case]:
    """One of each sort: of the same elements, operands and layouts, along the same axes."""
    found: dict[tuple[object, ...], Case] = {}
    types: set[object] = set()
    for own in kernel.cases():
        if own.option or not own.outs:
            continue
        key = tuple(type.dtype for type in (*own.ins, *own.outs))
        new = key not in types
        types.add(key)
        for first in (own, *along(own)) if new else (own,):
            for second in (first, *turned(first)) if new else (first,):
                for case in (second, narrowed(second, f16), narrowed(second, i8) if first is own else None):
                    if case is None or case.kind.check(case.ins, case.outs):
                        continue
                    needs = kernel.match(call_of(kernel, case)[0], target)
                    if not isinstance(needs, Needs) or not needs.alias:
                        continue
                    sort = (
                        tuple(type.dtype for type in (*case.ins, *case.outs)),
                        getattr(case.kind, "axes", None) or getattr(case.kind, "axis", None),
                        tuple(case.permute_outs.items()),
                        tuple(case.permute.items()),
                        tuple(needs.alias.items()),
                    )
                    found.setdefault(sort, case)
    return list(found.values())


@some(28, "id", [id for id, kernel in KERNELS.items() if kernel.isa in PORTABLE])
def test_results_over_operands(id: str, tmp_path: Path) -> None:
    assert not wrong_over_operands(KERNELS[id], targets.load("generic"), tmp_path, OPTIMISED)


def wrong_over_operands(kernel: Kernel, target: Target, folder: Path, flags: Sequence[str] = ()) -> str:
    """What is wrong with results over operands; embedded/test_kernels.py asks for those of this machine's vectors."""
    found = cases(kernel, target)
    if not found:
        pytest.skip("its results lie over no operands")
    return wrong_results(kernel, target, folder, found, flags)
