"""Kernels for vectors and the like on every machine that has them and runs programs under emulation: all their cases,
and sizes around their blocks. Each kernel's cases are one program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mccompile.kernels.api import Case
from mccompile.targets import api as targets
from tests.kernels.test_matrix import KERNELS, wrong_results
from tests.kernels.test_odd_sizes import FAMILIES, wrong_odd_sizes

TARGETS = ("aarch64", "armv7a", "riscv64v", "riscv64v256", "wasm32")
OWN = [
    (target, id)
    for target in TARGETS
    for id, kernel in KERNELS.items()
    if kernel.isa != "c" and kernel.isa in targets.load(target).isas
]


@pytest.mark.parametrize(("target", "id"), OWN)
def test_kernel_computes_what_its_kind_means(target: str, id: str, tmp_path: Path) -> None:
    assert not wrong_results(KERNELS[id], targets.load(target), tmp_path)


HALVES = [id for id, kernel in KERNELS.items() if any(case.option == "half_lanes" for case in kernel.cases())]


@pytest.mark.parametrize("id", HALVES)
def test_sixteen_bit_floats(id: str, tmp_path: Path) -> None:
    cases = [case for case in KERNELS[id].cases() if case.option == "half_lanes"]
    assert not wrong_results(KERNELS[id], targets.load("aarch64-fp16"), tmp_path, cases)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("id", "family"), FAMILIES, ids=[family.__name__ for _, family in FAMILIES])
def test_odd_sizes(target: str, id: str, family: Callable[[int, int, int], Case], tmp_path: Path) -> None:
    assert not wrong_odd_sizes(KERNELS[id], family, targets.load(target), tmp_path, every=4)
