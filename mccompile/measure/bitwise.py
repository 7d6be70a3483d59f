"""Are results the same bits, whichever compiler and flags build the code, and for whichever target it is written?

Each build differs in one thing from the one with the target's own flags: in its compiler, the level of optimization,
the language, or contraction (products and sums that are rounded once). Invariant: an inequality is wrong only where
`decided` says that nothing but the C decides the bits; any two NaN are equal.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import CheckFailed, Problem, WrongUse
from ..base.records import dataclass
from ..base.stages import stage
from ..driver import Options, compile_graph, settled
from ..emit.package import Package
from ..frontend.load import load
from ..targets.api import Target
from ..toolchain.emulate import Emulated
from ..toolchain.run import Model
from ..toolchain.tools import missing
from .building import flags_of, input_sets, refuse_undefined
from .handing import handed_over, handing_over
from .runs import Runs

COMPILERS = ("gcc", "clang", "tcc")  # of this machine
LEVELS = ("-O0", "-O2", "-O3", "-Os")
LANGUAGES = ("-std=c99", "-std=gnu99")
CONTRACTIONS = ("-ffp-contract=off", "-ffp-contract=on", "-ffp-contract=fast")
_KINDS = {"-O": LEVELS, "-std=": LANGUAGES, "-ffp-contract=": CONTRACTIONS}
_FUSES = re.compile(r"#define (__FMA__|__ARM_FEATURE_FMA|__FP_FAST_FMAF?|__riscv_flen|__AVX512F__)\b")
Bits = Sequence[Mapping[str, np.ndarray]]  # outputs of each set of inputs


@dataclass(frozen=True)
class BuildCommand:
    """A compiler and its flags."""

    cc: str
    flags: tuple[str, ...]

    def flag(self, kind: str) -> str:
        """The last of a kind: that counts."""
        return next((flag for flag in reversed(self.flags) if flag.startswith(kind)), "")

    def with_flag(self, kind: str, flag: str) -> BuildCommand:
        return BuildCommand(self.cc, (*(each for each in self.flags if not each.startswith(kind)), flag))

    def __str__(self) -> str:
        return " ".join([self.cc, *(flag for flag in map(self.flag, _KINDS) if flag)])


@dataclass(frozen=True)
class OutputDifference:
    """An output that differs."""

    output: str
    elements: int
    differing: int
    ulps: int  # the largest distance in units in the last place; of integers, and where one is NaN, 0

    def __str__(self) -> str:
        far = f", at most {self.ulps} ulp" if self.ulps else ""
        return f"{self.output}: {self.differing} of {self.elements} elements{far}"


@dataclass(frozen=True)
class ComparedBuild:
    way: BuildCommand
    decided: bool  # must it give the bits of the first one?
    apart: tuple[OutputDifference, ...]


@dataclass(frozen=True)
class BitComparison:
    target: str
    first: BuildCommand
    builds: tuple[ComparedBuild, ...]  # the others
    digest: str  # of all outputs of the first
    sets: int

    @property
    def wrong(self) -> list[ComparedBuild]:
        return [build for build in self.builds if build.apart and build.decided]

    @property
    def ok(self) -> bool:
        return not self.wrong

    def failure(self, model: Path) -> CheckFailed:
        worst = self.wrong[0]
        why = "; ".join(map(str, worst.apart))
        fix = "please report it, with the versions of both compilers"
        return CheckFailed(Problem(f"{model} has other bits by `{worst.way}` than by `{self.first}`", "", why, fix))


@stage("check")
def bitwise(path: Path, options: Options, data: Path | None, seed: int, runs: int, cc: str | None) -> BitComparison:
    """Builds the model in every way, and compares what each set of inputs gives."""
    if options.stream:
        fix = "leave out --stream, or --bitwise"
        raise WrongUse(Problem("--bitwise does not go with --stream", "--bitwise", "", fix))
    options = settled(path, replace(options, seeded=True))
    reading = (options.dims, options.shapes, options.bounds, options.reading)
    sets = input_sets(load(path, *reading), data, seed, runs)
    forms, _ = handing_over(load(path, *reading), options)
    given = [handed_over(data_set, forms)[1] for data_set in sets]
    graph, target = load(path, *reading), options.resolved_target()
    package = compile_graph(graph, options, options.name or path.stem)
    refuse_undefined(package)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        return _compared(folder, package, target, given, cc)


def _compared(folder: Path, package: Package, target: Target, given: Sequence[Any], cc: str | None) -> BitComparison:
    def bits(way: BuildCommand) -> Bits:
        if target.run:
            model: Model | Emulated = Emulated.build(folder, target, way.cc, way.flags)
        else:
            model = Model.build(folder, way.cc, way.flags)
        run = Runs(model)
        return [run(inputs) for inputs in given]

    first, *others = ways(target, flags_of(package, target), cc)
    wanted, fuses = bits(first), may_fuse(first)
    builds = []
    for way in others:
        try:
            found = bits(way)
        except WrongUse:
            if way.cc == first.cc:
                raise
            continue  # another compiler, which does not know the instructions of the target
        builds.append(ComparedBuild(way, decided(first, way, fuses), tuple(differences(wanted, found))))
    return BitComparison(package.plan.target, first, tuple(builds), digest(wanted), len(given))


def ways(target: Target, more: Sequence[str] = (), cc: str | None = None) -> list[BuildCommand]:
    """The target's own first; then with one thing changed at a time, by each compiler that is there."""
    own = cc or target.compiler
    found = [BuildCommand(own, (*target.cflags, *more))]
    if own == "cc":
        found += [
            replaced for name in COMPILERS if not missing([name]) for replaced in [BuildCommand(name, found[0].flags)]
        ]
    for way in [*found[1:]] or found[:1]:
        kinds = {kind: flags for kind, flags in _KINDS.items() if way.cc != "tcc" or flags != CONTRACTIONS}
        changed = [way.with_flag(kind, flag) for kind, flags in kinds.items() for flag in flags]
        found += [each for each in changed if str(each) != str(way)]
    return found


def decided(first: BuildCommand, way: BuildCommand, fuses: bool) -> bool:
    """Does only the C decide? It does where neither build contracts, or the machine has no instruction for that."""
    return not fuses or _contracts(first) == _contracts(way) == "off"


def _contracts(way: BuildCommand) -> str:
    """TCC contracts nothing, Clang within expressions unless flags say otherwise, and GCC what -std=gnu99 allows (`on`
    is `off` for it)."""
    if way.cc == "tcc":
        return "off"
    asked = way.flag("-ffp-contract=").rpartition("=")[2]
    if "clang" in way.cc:
        return asked or "on"
    if not asked:
        asked = "off" if way.flag("-std=") == "-std=c99" else "fast"
    return "off" if asked == "on" else asked


def may_fuse(way: BuildCommand) -> bool:
    """Does the machine multiply and add in one instruction, by the macros of the compiler?"""
    command = [*shlex.split(way.cc), *way.flags, "-dM", "-E", "-xc", "-"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    return done.returncode != 0 or _FUSES.search(done.stdout) is not None


def differences(wanted: Bits, found: Bits) -> Iterator[OutputDifference]:
    """The outputs that differ, over all sets of inputs."""
    for name in wanted[0] if wanted else ():
        pairs = [(as_bits(one[name]), as_bits(other[name])) for one, other in zip(wanted, found, strict=True)]
        differing = sum(int((a != b).sum()) if a.shape == b.shape else max(a.size, b.size) for a, b in pairs)
        if differing:
            far = [distance(one[name], other[name]) for one, other in zip(wanted, found, strict=True)]
            yield OutputDifference(name, sum(a.size for a, _ in pairs), differing, max(far))


def as_bits(array: np.ndarray) -> np.ndarray:
    """Bits as integers, of any NaN the same ones; what has no bits of its own (texts) as it is."""
    if array.dtype == object:
        return array
    if array.dtype.kind == "c":
        return as_bits(np.ascontiguousarray(array).view(array.real.dtype))
    found = _integers(array, "u").copy()
    if _is_float(array):
        found[np.isnan(array.astype(np.float64)).ravel()] = np.iinfo(found.dtype).max
    return found


def distance(one: np.ndarray, other: np.ndarray) -> int:
    if not _is_float(one) or one.shape != other.shape:
        return 0
    ordered = []
    for array in (one, other):
        plain = _integers(array, "i")
        ordered.append([int(np.iinfo(plain.dtype).min) - number if number < 0 else number for number in plain.tolist()])
    numbers = (np.isfinite(one.astype(np.float64)) & np.isfinite(other.astype(np.float64))).ravel()
    return max((abs(a - b) for a, b, known in zip(*ordered, numbers, strict=True) if known), default=0)


def _integers(array: np.ndarray, sign: str) -> np.ndarray:
    return np.ascontiguousarray(array).ravel().view(f"{sign}{array.dtype.itemsize}")


def digest(outputs: Bits) -> str:
    """Of all bits, with names."""
    found = hashlib.sha256()
    for each in outputs:
        for name, array in each.items():
            bits = as_bits(array)
            found.update(f"{name} {array.shape} ".encode())
            found.update(repr(bits.tolist()).encode() if bits.dtype == object else bits.tobytes())
    return found.hexdigest()


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or (array.dtype.kind == "V" and "float" in array.dtype.name)


def alike(found: Mapping[str, str]) -> list[list[str]]:
    """Names (of targets) in groups of the same digest, as they come."""
    groups: dict[str, list[str]] = {}
    for name, each in found.items():
        groups.setdefault(each, []).append(name)
    return list(groups.values())
