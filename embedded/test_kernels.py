"""Kernels for vectors and the like on this machine and on every other that has them and is emulated: their cases, and
sizes around their blocks, which targets share (CASES=all: each has all). Each kernel's cases are one program, as
optimized as the target's programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dtypes import f16
from mccompile.emit import parts
from mccompile.kernels.api import Call, Case, Kernel, SizedCase
from mccompile.targets import api as targets
from tests.damaged import damaged
from tests.kernels import harness
from tests.kernels.short_axes import warnings_of_short_axes
from tests.kernels.test_in_place import wrong_over_operands
from tests.kernels.test_matrix import (
    IDS_OF_PORTABLE,
    KERNELS,
    SHARES,
    SHARING,
    runs_of_older,
    warnings,
    write_portable,
    wrong_results,
)
from tests.kernels.test_odd_sizes import FAMILIES, computes_in_sixteen_bits, in_sixteen_bits, wrong_odd_sizes
from tests.kernels.test_vector_kernels import COMPILERS, V4

TARGETS = ("aarch64", "armv7a", "riscv64v", "riscv64v256", "wasm32", "wasm32-relaxed")
HAS_VECTORS = "vec" in targets.load("native").isas
OF_BYTES = "aarch64-i8mm"  # differs in how it multiplies bytes
OWN = [
    *((OF_BYTES, id) for id, kernel in KERNELS.items() if kernel.isa == "dot"),
    *(
        (target, id)
        for target in ("native", *TARGETS)
        for id, kernel in KERNELS.items()
        if kernel.isa != "c" and kernel.isa in targets.load(target).isas
    ),
    *runs_of_older(),
]


def has_parts(kernel: Kernel) -> bool:
    """Does its template mark blocks that may stand alone, or one that it imports?"""
    text = kernel.template.read_text()
    shared = kernel.template.parent.parent.glob("*.c.j2")
    texts = (text, *(path.read_text() for path in shared if f'from "{path.name}"' in text))
    return any("${part(" in each for each in texts)


IN_PARTS = [
    *(("generic", id) for id in IDS_OF_PORTABLE if has_parts(KERNELS[id])),
    *((target, id) for target, id in OWN if target == "riscv64v256" and has_parts(KERNELS[id])),
]


@pytest.mark.parametrize(("target", "id"), OWN)
def test_kernel_computes_what_its_kind_means(target: str, id: str, tmp_path: Path) -> None:
    assert not wrong_results(KERNELS[id], targets.load(target), tmp_path)


@pytest.mark.parametrize(("target", "id"), [("aarch64", "conv/i8_nhwc_winograd__neon"), *IN_PARTS])
def test_parts_are_handed_all_that_they_name(
    target: str, id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that may stand alone does."""
    monkeypatch.setattr(parts, "LONGEST", 10)
    monkeypatch.setattr(parts, "SHORTEST", 1)
    assert not wrong_results(KERNELS[id], targets.load(target), tmp_path)


@pytest.mark.parametrize("id", [id for target, id in OWN if target == "native"])
def test_results_over_operands(id: str, tmp_path: Path) -> None:
    assert not wrong_over_operands(KERNELS[id], targets.load("native"), tmp_path)


@pytest.mark.parametrize("id", IDS_OF_PORTABLE)
def test_portable_kernel_is_optimized_without_warnings(id: str, tmp_path: Path) -> None:
    assert not warnings(["gcc", "-std=c99", "-O2", "-c", *harness.STRICT], write_portable(id, tmp_path))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("id", [id for id, kernel in KERNELS.items() if kernel.isa == "vec"])
def test_vector_kernel_is_compiled_without_warnings(id: str, compiler: str, written: Callable[[str], Path]) -> None:
    flags = [*COMPILERS[compiler], *harness.STRICT, "-march=x86-64-v4", "-fsyntax-only"]
    command = [compiler, *flags, *harness.include_flags(written(id)), str(written(id) / "kernels.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:4000]) == (0, "")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders with a kernel for vectors in all its cases, written once for all compilers."""

    @cache
    def folder_of(id: str) -> Path:
        folder = tmp_path_factory.mktemp("kernel")
        harness.write_sources(harness.trials(KERNELS[id], V4), folder, restrict=False)
        return folder

    return folder_of


@pytest.mark.parametrize("id", ["reduce/f32_strided_lanes__vec", "resize/any_rows_separable__vec"])
def test_loops_without_a_rest_are_optimized_without_warnings(id: str, tmp_path: Path) -> None:
    """gcc warns of a loop that it knows to run never, as if it ran beyond all memory."""
    harness.write_sources(harness.trials(KERNELS[id], V4), tmp_path)
    flags = [*COMPILERS["gcc"], *harness.STRICT, "-march=x86-64-v4", "-O3", "-c", "-o", os.devnull]
    command = ["gcc", *flags, *harness.include_flags(tmp_path), str(tmp_path / "kernels.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:4000]) == (0, "")


@pytest.mark.parametrize(
    ("target", "id"), [(t, id) for t, id in OWN if t in ("riscv64v", OF_BYTES) and KERNELS[id].isa == "dot"]
)
def test_products_of_bytes_are_compiled_without_warnings(target: str, id: str, tmp_path: Path) -> None:
    found = targets.load(target)
    harness.write_sources(harness.trials(KERNELS[id], found), tmp_path, restrict=False)
    flags = [*(flag for flag in found.cflags if not flag.startswith("-fuse")), *harness.STRICT, "-fsyntax-only"]
    command = [found.compiler, *flags, *harness.include_flags(tmp_path), "kernels.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:2000]) == (0, "")


ON_ONE_TARGET = {id: target for target, id in reversed(OWN) if id not in IDS_OF_PORTABLE}


@pytest.mark.parametrize(("id", "target"), ON_ONE_TARGET.items())
def test_short_axes_are_compiled_without_warnings(id: str, target: str, tmp_path: Path) -> None:
    found = targets.load(target)
    flags = [flag for flag in found.cflags if not flag.startswith("-fuse")]
    command = [found.compiler, *flags, *harness.STRICT, "-fsyntax-only"]
    assert not warnings_of_short_axes(KERNELS[id], found, command, tmp_path)


HALVES = "aarch64-fp16"


def in_halves(kernel: Kernel) -> list[Case]:
    """The cases with 16-bit floats."""
    target = targets.load(HALVES)
    cases = [case for case in kernel.cases() if not case.option or target.option(case.option, 0)]
    return [case for case in cases if any(type.dtype is f16 for type in (*case.ins, *case.outs))]


@pytest.mark.parametrize("id", [id for id, kernel in KERNELS.items() if kernel.isa == "vec" and in_halves(kernel)])
def test_sixteen_bit_floats(id: str, tmp_path: Path) -> None:
    assert not wrong_results(KERNELS[id], targets.load(HALVES), tmp_path, in_halves(KERNELS[id]))


def long_sum() -> tuple[Kernel, list[Case]]:
    """A convolution in 16 bits, of 432 terms."""
    kernel = KERNELS["conv/f32_nhwc_tile__vec"]
    return kernel, [case for case in kernel.cases() if case.name == "half_pieces"]


def test_one_product_that_is_missing_is_told_from_rounding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, (kernel, cases) = harness.printed, long_sum()
    product = "acc[0] = mcc_fma_at_f16x8(w0, x0, 3, acc[0]);"
    monkeypatch.setattr(harness, "printed", damaged(made, product, "", 1))
    assert product in made(harness.trials(kernel, targets.load(HALVES), cases)[0].function).text
    assert "instead of" in wrong_results(kernel, targets.load(HALVES), tmp_path, cases)


def test_one_wrong_weight_is_told_from_rounding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, cases = long_sum()
    pack = kernel.pack

    def damaged(call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        packed = pack(call, constants)
        place = int(np.argmax(np.abs(packed[1]) > 1))
        packed[1][place] = -packed[1][place]
        return packed

    monkeypatch.setattr(kernel, "pack", damaged)
    assert "instead of" in wrong_results(kernel, targets.load(HALVES), tmp_path, cases)


HALF_FAMILIES = [
    (id, family) for id, family in FAMILIES if computes_in_sixteen_bits(KERNELS[id], family, targets.load(HALVES))
]


@pytest.mark.parametrize(("id", "family"), HALF_FAMILIES, ids=[family.__name__ for _, family in HALF_FAMILIES])
def test_odd_sizes_of_sixteen_bit_floats(id: str, family: SizedCase, tmp_path: Path) -> None:
    def halved(first: int, second: int, last: int) -> Case:
        return in_sixteen_bits(family(first, second, last))

    assert not wrong_odd_sizes(KERNELS[id], halved, targets.load(HALVES), tmp_path, every=7)


@pytest.mark.parametrize("target", [*(["native"] if HAS_VECTORS else []), *TARGETS])
@pytest.mark.parametrize(("id", "family"), FAMILIES, ids=[family.__name__ for _, family in FAMILIES])
def test_odd_sizes(target: str, id: str, family: SizedCase, tmp_path: Path) -> None:
    """Targets share the combinations of sizes."""
    every = 1 if SHARES == 1 else 7
    first = SHARING.index(target) % every
    assert not wrong_odd_sizes(KERNELS[id], family, targets.load(target), tmp_path, every, first)
