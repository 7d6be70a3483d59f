"""Kernels for vectors at sizes around their blocks: every pair of odd sizes in any two dimensions, in buffers that are
no better aligned than a float has to be, between guard bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mccompile.base.dtypes import f16, f32
from mccompile.base.tensor import TensorType
from mccompile.codegen.vector.vector_tiles import HALF_ERROR
from mccompile.expr.ir import Cast, Expr, Literal, Operand, cast, literal, operand, rebuild
from mccompile.kernels.api import Case, Kernel, Needs, SizedCase
from mccompile.kernels.registry import Registry
from mccompile.kinds.api import WithEpilogue
from mccompile.kinds.map import Map
from mccompile.targets import api as targets
from tests.kernels.harness import call_of
from tests.kernels.test_matrix import wrong_results
from tests.thorough import some

SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 33)
KERNELS = Registry.load()
NATIVE = targets.load("native")
FAMILIES: Sequence[tuple[str, SizedCase]] = [
    (id, family) for id, kernel in KERNELS.items() if kernel.isa == "vec" for family in kernel.sized_cases()
]


def triples() -> list[tuple[int, int, int]]:
    """Any two of the three are every pair of sizes once: rows of an orthogonal array."""
    count = len(SIZES)
    return [(SIZES[i], SIZES[j], SIZES[(i + j) % count]) for i in range(count) for j in range(count)]


def serves(kernel: Kernel, case: Case, target: targets.Target = NATIVE) -> bool:
    """Rows of a few elements are left to portable kernels."""
    return isinstance(kernel.match(call_of(kernel, case)[0], target), Needs)


def computes_in_sixteen_bits(kernel: Kernel, family: SizedCase, target: targets.Target) -> bool:
    """Does the kernel compute in 16 bits, or round to them?"""
    cases = [in_sixteen_bits(family(*sizes)) for sizes in triples()[::7]]
    return any(not case.kind.check(case.ins, case.outs) and serves(kernel, case, target) for case in cases)


def in_sixteen_bits(case: Case) -> Case:
    """The same with f16 for f32, and results that are rounded to it."""
    ins, outs = (
        tuple(TensorType(f16, t.shape) if t.dtype is f32 else t for t in types) for types in (case.ins, case.outs)
    )
    kind = case.kind
    if isinstance(kind, Map):
        kind = replace(kind, expr=rounded(kind.expr))
    elif isinstance(kind, WithEpilogue):
        kind = replace(kind, epilogue=rounded(kind.epilogue or operand(0, f32), element=0))
    return replace(case, kind=kind, ins=ins, outs=outs, error=HALF_ERROR)


def rounded(expr: Expr, element: int | None = None) -> Expr:
    """An expression over operands in f16; the computed `element` stays in f32, and is rounded first."""

    def narrower(node: Expr) -> Expr | None:
        match node:
            case Operand(dtype, index) if dtype is f32:
                return cast(node, f16) if index == element else operand(index, f16)
            case Literal(dtype, value) if dtype is f32:
                return literal(value, f16)
            case Cast(dtype, argument) if dtype is f32:
                return cast(rebuild(argument, narrower), f16)
        return None

    return rebuild(expr, narrower)


@pytest.mark.skipif("vec" not in NATIVE.isas, reason="this machine has no kernels for vectors")
@some(16, ("id", "family"), FAMILIES, ids=[family.__name__ for _, family in FAMILIES])
def test_odd_sizes(id: str, family: SizedCase, tmp_path: Path) -> None:
    """Others than in embedded/test_kernels.py."""
    assert not wrong_odd_sizes(KERNELS[id], family, NATIVE, tmp_path, every=7, first=3)


def wrong_odd_sizes(
    kernel: Kernel,
    family: SizedCase,
    target: targets.Target,
    folder: Path,
    every: int,
    first: int = 0,
) -> str:
    """Each so many-th of the combinations of sizes, from the `first` on; 7 leave nearly all sizes in each dimension."""
    chosen = triples()[first::every]
    cases = [case for case in (family(*sizes) for sizes in chosen) if serves(kernel, case, target)]
    assert len(cases) > len(chosen) // 2
    wasm = any("wasm" in flag for flag in target.cflags)  # its stack is small for what is not optimised
    more = ["-Wl,-z,stack-size=8388608"] if wasm else []
    return wrong_results(kernel, target, folder, cases, ["-Og", "-DHARNESS_GUARDS", *more])  # of all the quickest here


def test_every_kernel_for_vectors_has_cases_by_size() -> None:
    without = [id for id, kernel in KERNELS.items() if kernel.isa == "vec" and not kernel.sized_cases()]
    assert not without, f"kernels for vectors whose `sized_cases` gives no function (kernels/api.py): {without}"
