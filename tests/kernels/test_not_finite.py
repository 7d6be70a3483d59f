"""Every kernel of floats over infinities, NaN, denormals and the largest numbers: they reach the elements that the
oracle of the kind says, and no others (DESIGN.md, "Values that are not finite")."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.kernels.api import Case, Kernel
from mccompile.kinds.normalize import Normalize
from mccompile.targets import api as targets
from mccompile.targets.api import Target
from tests.kernels.harness import call_of
from tests.kernels.test_matrix import FEWER_ELEMENTS, KERNELS, PORTABLE, SAME_ELEMENTS, shared_cases, wrong_results

MOST_CASES = 5
VALUES = (np.nan, np.inf, -np.inf, 1e-40, -0.0, np.inf)  # the first case has a NaN, however small it is
# Where a factor of the definition is 0, the product may be left out: see DESIGN.md.
FEWER = ("band_gemm", "dft", "resize", "roi_align")
OPEN = (*FEWER, "block_gemm")  # one infinity may be NaN: blocks are added up before zero points are taken away
WEIGHTED = ("conv", "conv_transpose", "gemm", "attention", "bottleneck", "scan")  # whose second operand is multiplied
WHOLE_TILES = ("conv/f32_nhwc_winograd__vec",)  # they reach all results of a tile
OF_FLOATS = [
    id
    for id, kernel in KERNELS.items()
    if id not in WHOLE_TILES and any(t.dtype.is_float for c in kernel.cases() for t in c.ins)
]


def _some(cases: Sequence[Case]) -> Sequence[Case]:
    """A few, and a few of groups, between which zeros stand; all of them with CASES=all."""
    if os.environ.get("CASES") == "all":
        return cases
    groups = [case for case in cases if "groups" in case.name]
    few = [*cases[:: max(1, len(cases) // MOST_CASES)], *groups[:: max(1, len(groups) // MOST_CASES)]]
    return list({case.name: case for case in few}.values())


def not_finite(kernel: Kernel, cases: Sequence[Case], operand: int = 0) -> list[Case]:
    """The cases with a few such numbers in an operand, where that is of floats and theirs to choose."""
    found = []
    for case in cases:
        if len(case.ins) <= operand or not case.ins[operand].dtype.is_float:
            continue
        if operand in case.values or operand in case.repeated:
            continue
        if case.ranges.get(operand) == (0.0, 0.0):  # of squares that are too small for a number nothing is left
            continue
        x = call_of(kernel, case)[1][operand].copy()
        if x.size == 0:
            continue
        number = len(found)
        chance = np.random.default_rng(number)
        count = max(1, min(3, x.size // 40))
        places = chance.choice(x.size, count, replace=False)
        x.reshape(-1)[places] = [VALUES[(number + k) % len(VALUES)] for k in range(count)]
        name = f"{case.name}_not_finite" + (f"_{operand}" if operand else "")
        found.append(replace(case, name=name, values={**case.values, operand: x}))
    return found


def wrong_where_not_finite(kernel: Kernel, target: Target, folder: Path, flags: Sequence[str] = ()) -> str:
    few = _some(shared_cases(kernel, target))
    cases = not_finite(kernel, few)
    if kernel.kind.name in OPEN:  # an epilogue may make a number of one infinity, and none of the other or of NaN
        cases = [case for case in cases if not getattr(case.kind, "epilogue", None)]
    reach = dict.fromkeys((c.name for c in cases), FEWER_ELEMENTS if kernel.kind.name in FEWER else SAME_ELEMENTS)
    if kernel.kind.name in WEIGHTED:  # products of weights and the zeros of padding may be left out
        others = [case for case in not_finite(kernel, few, 1) if not getattr(case.kind, "epilogue", None)]
        cases, reach = [*cases, *others], reach | dict.fromkeys((case.name for case in others), FEWER_ELEMENTS)
    return wrong_results(kernel, target, folder, cases, flags, reach) if cases else ""


def _target(kernel: Kernel) -> Target:
    target = targets.load("generic" if kernel.isa in PORTABLE else "native")
    if kernel.isa not in target.isas:
        pytest.skip("a kernel of other machines")
    return target


@pytest.mark.parametrize("id", OF_FLOATS)
def test_they_reach_what_the_kind_says(id: str, tmp_path: Path) -> None:
    """Which elements are accessed is what the matrix asks, with sanitizers."""
    assert not wrong_where_not_finite(KERNELS[id], _target(KERNELS[id]), tmp_path, ["-std=c99", "-O0"])


@pytest.mark.parametrize("id", [id for id, kernel in KERNELS.items() if kernel.kind is Normalize])
def test_a_sum_whose_inverse_is_no_number_divides(id: str, tmp_path: Path) -> None:
    case = next(case for case in KERNELS[id].cases() if case.name == "l2_of_zeros")
    of_denormals = replace(case, kind=replace(case.kind, measure="l1"), ranges={0: (1e-41, 1e-40)})
    assert not wrong_results(KERNELS[id], _target(KERNELS[id]), tmp_path, [of_denormals])
