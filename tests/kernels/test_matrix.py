"""Every kernel, in all its cases, against numpy: under the sanitizers where it is portable, and on every target that
has it and is of this machine (embedded/test_kernels.py: on those that are emulated).

Most of the time is printing and compiling: whatever is asked of a portable kernel is asked of the program that computes
its cases."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mccompile.base.discovery import import_file
from mccompile.base.dtypes import DType
from mccompile.kernels.api import Case, Kernel, Needs
from mccompile.kernels.registry import Registry
from mccompile.targets import api as targets
from mccompile.targets.api import Target
from mccompile.toolchain.emulate import run_command
from tests.kernels.forged import run_forged
from tests.kernels.harness import (
    STRICT,
    Trial,
    call_of,
    compile_program,
    include_flags,
    run_program,
    trials,
    write_sources,
)
from tests.thorough import some

KERNELS = Registry.load()
# Not optimised: sanitizers then see every access, and building takes a quarter of the time. embedded/test_kernels.py
# asks for warnings that come from optimising; what an optimiser makes of `restrict` is run by test_in_place.py.
# Whether addresses wrap around takes half of the time of compiling, and is what make fuzz asks of its programs.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize=pointer-overflow", "-fno-sanitize-recover=all"]
SANITIZED = ["-std=c99", "-O0", *SANITIZERS, *STRICT]
OPTIMISED = ["-std=c99", "-O2", "-DHARNESS_GUARDS"]
WARNING_FREE = {
    "clang": ["-std=c99", "-fsyntax-only", *STRICT],
    "g++": ["-x", "c++", "-std=c++11", "-fsyntax-only", *STRICT],
    "tcc": ["-std=c99", "-c", "-Wall", "-Werror"],
}


QUICK = shutil.which("tcc") or ""  # takes a tenth of the time of others
SAME_ELEMENTS, FEWER_ELEMENTS = "same elements", "fewer elements"  # that values that are not finite reach
PORTABLE = {"c", "fpu", "scalar", "dsp", "helium"}  # the headers of others need their machine
INTEGERS = ("scalar", "dsp", "helium")
IDS_OF_PORTABLE = [id for id, kernel in KERNELS.items() if kernel.isa in PORTABLE]


def runs_of_older() -> list[tuple[str, str]]:
    """Target and kernel: those that this machine runs too. Targets from which `native` differs by flags alone, or by
    options that a rule of it adds, have the same text; it is built for both where it asks for what flags bring (`dot`)
    and these bring more."""
    native = targets.load("native")
    found = []
    for target in map(targets.load, targets.names()):
        if target.name == "native" or target.run or not set(target.isas) <= set(native.isas):
            continue
        for id, kernel in KERNELS.items():
            same = kernel.isa == "vec" or set(target.isas) == set(native.isas)
            same = same and set(target.options) <= set(native.options)
            if kernel.isa != "c" and kernel.isa in target.isas and not same and shutil.which(target.compiler):
                found.append((target.name, id))
    return found


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
@pytest.mark.parametrize("id", ["conv/any_strided_direct__c", "gemm/any_strided__c", "pool/any_strided_windows__c"])
def test_two_sums_at_once_are_whole(id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GCC 12 loses terms where each step makes two sums unsigned: not in tiles of two integers, or of any number."""
    monkeypatch.setattr(sys.modules[__name__], "_sanitizing", lambda: "gcc")
    cases = [case for case in KERNELS[id].cases() if not case.outs[0].dtype.is_float]
    assert not wrong_results(KERNELS[id], targets.load("generic"), tmp_path, cases, ["-std=c99", "-O2"])


@cache
def ids_built_otherwise(prefer: str, than: str) -> list[str]:
    """Portable kernels that are built otherwise where that is preferred."""
    one, other = (replace(targets.load("generic"), prefer=each) for each in (than, prefer))

    def differs(kernel: Kernel) -> bool:
        calls = (call_of(kernel, case)[0] for case in kernel.cases())
        answers = ((kernel.match(call, one), kernel.match(call, other)) for call in calls)
        return any(isinstance(found, Needs) and usual != found for usual, found in answers)

    return [id for id in IDS_OF_PORTABLE if differs(KERNELS[id])]


def _runs_of_portable() -> list[tuple[str, str]]:
    """Kernel and what is preferred: the target's own preference, and others for kernels that are built otherwise then.
    Of integers, what is made for time is asked for too: it has the longest sums without a check."""
    usual = targets.load("generic").prefer
    found = [(id, usual) for id in IDS_OF_PORTABLE]
    return found + [(id, prefer) for prefer in ("flash", "time") for id in ids_built_otherwise(prefer, than=usual)]


@some(35, ("id", "prefer"), _runs_of_portable())
def test_portable_kernel_computes_what_its_kind_means(id: str, prefer: str, tmp_path: Path) -> None:
    """No other compiler warns of it, and forged weights have it touch nothing else."""
    kernel, target = KERNELS[id], replace(targets.load("generic"), prefer=prefer)
    found, program = built(kernel, target, tmp_path)
    assert not wrong_of(kernel, found, program)
    if kernel.isa in INTEGERS and _sanitizing():
        run_forged(found, program)
    for compiler in filter(shutil.which, WARNING_FREE):
        if compiler != _sanitizing():  # which compiled it with the same warnings
            assert not warnings([compiler, *WARNING_FREE[compiler]], tmp_path)


@some(
    14, "id", [id for id, kernel in KERNELS.items() if kernel.isa != "c" and kernel.isa in targets.load("native").isas]
)
def test_native_kernel_computes_what_its_kind_means(id: str, tmp_path: Path) -> None:
    """embedded/test_kernels.py: as optimized as the target's programs."""
    assert not wrong_results(KERNELS[id], targets.load("native"), tmp_path, flags=["-O0"])


# Targets with the same kernels for vectors. They share the cases of each kernel, for compilers take minutes for them.
SHARING = (
    "native",
    "x86-64-v3",
    "aarch64",
    "armv7a",
    "riscv64v",
    "riscv64v256",
    "wasm32",
    "wasm32-relaxed",
    "aarch64-i8mm",
)
SHARES = 1 if os.environ.get("CASES") == "all" else 3


def shared_cases(kernel: Kernel, target: Target) -> list[Case]:
    """Each third case, beginning with another one from target to target; all of them with CASES=all."""
    cases = [case for case in kernel.cases() if not case.option or target.option(case.option, 0)]
    if kernel.isa in PORTABLE or target.name not in SHARING:
        return cases
    return cases[SHARING.index(target.name) % SHARES :: SHARES] or cases


def shared_forms(found: Sequence[Trial], target: Target) -> list[Trial]:
    """Without the functions that workers share, half of what is compiled, for all but each third case on emulated
    targets, beginning with another one on those that have the same cases; all of them with CASES=all. Kernels that run
    only under emulation have them for each case, and so have cases of an option, which fewer targets have."""
    here = found[0].function.kernel.isa in {*PORTABLE, *targets.load("native").isas}
    if not target.run or target.name not in SHARING or not here:
        return list(found)
    names = list(dict.fromkeys(trial.case.name for trial in found))
    with_workers = set(names[SHARING.index(target.name) // SHARES % SHARES :: SHARES] or names)
    with_workers |= {trial.case.name for trial in found if trial.case.option}
    return [trial for trial in found if trial.function.call.workers == 1 or trial.case.name in with_workers]


def wrong_results(
    kernel: Kernel,
    target: Target,
    folder: Path,
    cases: Sequence[Case] = (),
    flags: Sequence[str] = (),
    reach: Mapping[str, str] | None = None,
) -> str:
    """What is wrong with the results of cases on a target, see `built`. `reach`, by names of cases: of values that are
    not finite, only which elements they reach is compared."""
    return wrong_of(kernel, *built(kernel, target, folder, cases, flags), reach)


def built(
    kernel: Kernel, target: Target, folder: Path, cases: Sequence[Case] = (), flags: Sequence[str] = ()
) -> tuple[list[Trial], list[str]]:
    """Calls of a kernel in cases (by default those that the target has a share of), and the command that runs them in
    one program. `flags` are added to the target's; for `generic` they stand in place of the sanitizers, and without
    optimization the quickest compiler will do."""
    found = shared_forms(trials(kernel, target, cases or shared_cases(kernel, target)), target)
    if target.name == "generic":
        sanitizing = _sanitizing()
        quick = QUICK if "-O0" in flags else ""
        compiler = [quick or sanitizing or "gcc"]
        options = [] if flags else SANITIZED if sanitizing else OPTIMISED
    else:
        compiler, options = [target.compiler], list(target.cflags)
    options = [*options, *flags]
    write_sources(found, folder, restrict=not {"-O0", "-Og"} & set(options))
    program = compile_program(compiler, [*options, *(["-static"] if target.run else [])], folder)
    return found, [*run_command(target), *program]


def wrong_of(
    kernel: Kernel, found: Sequence[Trial], program: Sequence[str], reach: Mapping[str, str] | None = None
) -> str:
    """What is wrong with the results of a program."""
    results = run_program(program, found)
    return "\n".join(
        complaint
        for trial, blocks in zip(found, results, strict=True)
        for complaint in complaints(kernel, trial, blocks, (reach or {}).get(trial.case.name, ""))
    )


def write_portable(id: str, folder: Path) -> Path:
    """Each third case in all its forms, the others as one call alone; all in all with CASES=all."""
    found = trials(KERNELS[id], targets.load("generic"))
    whole = set(list(dict.fromkeys(trial.case.name for trial in found))[::SHARES])
    write_sources([trial for trial in found if trial.case.name in whole or is_alone(trial)], folder)
    return folder


def is_alone(trial: Trial) -> bool:
    """Neither over an operand, nor row by row, nor shared by workers."""
    call = trial.function.call
    return not trial.overwritten and call.rows is None and call.workers == 1


def warnings(compiler: Sequence[str], folder: Path) -> str:
    """What a compiler says of a kernel that was written there."""
    command = [*compiler, *include_flags(folder), str(folder / "kernels.c")]
    # the object goes into a folder of the test's own: a compiler may remove what it was told to write, even /dev/null
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return done.stderr[:6000] if done.returncode else ""


def test_every_kernel_has_cases() -> None:
    assert not [id for id, kernel in KERNELS.items() if not kernel.cases()]


def test_targets_leave_no_form_of_a_case_to_others() -> None:
    """Together, those that share a kernel's cases run each alone, over operands and shared by workers."""
    kernel = KERNELS["reduce/f32_strided_lanes__vec"]
    found = {name: targets.load(name) for name in SHARING if kernel.isa in targets.load(name).isas}
    forms = {name: shared_forms(trials(kernel, t, shared_cases(kernel, t)), t) for name, t in found.items()}
    assert {t.name for some in forms.values() for t in some} == {t.name for t in trials(kernel, found["aarch64"])}


def complaints(kernel: Kernel, trial: Trial, blocks: Sequence[bytes], reach: str = "") -> list[str]:
    """What is wrong with the results of one trial."""
    expected = expected_results(trial.case, trial.values)
    found = [f"{trial.name}: operand {index} was overwritten" for index in trial.damaged(blocks)]
    for number, (got, want) in enumerate(zip(trial.results(blocks), expected, strict=True)):
        type = trial.case.outs[number]
        if want is None:  # the kind does not say
            continue
        if want.shape != type.static_shape or want.dtype != type.dtype.numpy:
            found.append(f"{trial.name}: the oracle gives {want.dtype}{want.shape}, the case says {type}")
        elif not _is_close(*_alike(got, want, reach), type.dtype, trial.case.error):
            found.append(f"{trial.name}: result {number} is\n{got}\ninstead of\n{want}")
    return found


def _alike(got: np.ndarray, want: np.ndarray, reach: str) -> tuple[np.ndarray, np.ndarray]:
    """With one value for those that are not finite, and where they may be left out."""
    if not reach or want.dtype.kind not in "fV":
        return got, want
    lost = [~np.isfinite(array.astype(np.float64)) for array in (got, want)]
    one = lost[1] if reach == FEWER_ELEMENTS else lost[0] & lost[1]
    return np.where(one, got.dtype.type(0), got), np.where(one, want.dtype.type(0), want)


def expected_results(case: Case, values: Sequence[np.ndarray]) -> list[np.ndarray | None]:
    """What the oracle of its kind says for these operands."""
    kind = case.kind
    module = _oracle(kind.name)
    with np.errstate(all="ignore"):
        if kind.name in ("map", "random"):  # whose result's shape does not follow from their operands
            result = module.oracle(kind, *values, shape=case.outs[0].static_shape)
        elif kind.name == "read_numbers":  # and the only one whose result's type does not
            result = module.oracle(kind, *values, dtype=case.outs[0].dtype)
        else:
            result = module.oracle(kind, *values)
    return list(result) if isinstance(result, tuple) else [result]


@cache
def _oracle(kind: str) -> ModuleType:
    return import_file(Path(__file__).parent / "oracles" / f"{kind}.py", f"tests_kernels_oracles_{kind}")


def _is_close(got: np.ndarray, want: np.ndarray, dtype: DType, error: float) -> bool:
    """Floats within a few units of their own last place, or of that of single precision at the largest result; all else
    equal."""
    if not dtype.is_float:
        return bool(np.array_equal(got, want))
    a, b = got.astype(np.float64), want.astype(np.float64)
    mantissa = {
        "f64": 52,
        "f32": 23,
        "f16": 10,
        "bf16": 7,
        "f8e4m3fn": 3,
        "f8e4m3fnuz": 3,
        "f8e5m2": 2,
        "f8e5m2fnuz": 2,
    }
    own = 2.0 ** -mantissa.get(dtype.name, 1)
    largest = float(np.max(np.abs(b[np.isfinite(b)]), initial=1.0))
    atol = (16 * min(own, 2.0**-23) + error) * largest
    return bool(np.allclose(a, b, rtol=(1.01 if own > 1e-4 else 16) * own, atol=atol, equal_nan=True))


@cache
def _sanitizing() -> str:
    """The quickest compiler that has sanitizers, if any: clang takes half of gcc's time."""
    for compiler in filter(shutil.which, ("clang", "gcc")):
        with tempfile.TemporaryDirectory() as folder:
            command = [compiler, "-fsanitize=address,undefined", "-x", "c", "-", "-o", f"{folder}/program"]
            done = subprocess.run(command, input=b"int main(void) { return 0; }", capture_output=True, check=False)
        if done.returncode == 0:
            return compiler
    return ""
