"""Finds kernels by folder and chooses among them.

Kernels are the files `<kind>/<stem>.py` below `kernels_templates/` and below the user's own folders; each defines one
`Kernel`. Order of candidates is by cost, then by name: the same on every machine.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..base.dims import NotStatic
from ..base.discovery import data_folder, import_file
from ..base.errors import Problem, WrongUse
from ..base.records import dataclass, replace
from ..kinds.api import Kind
from ..program.ir import Call
from ..targets.api import Prefer, Target
from .api import Cost, Kernel, Needs, No, static_views
from .called_code import called_code
from .identity import version_of
from .measurements import Measured
from .slices import longest_slice
from .soft_floats import soft_floats

PORTABLE = "c"  # what kernels in C for every target are called by


class Candidate(NamedTuple):
    kernel: Kernel
    needs: Needs
    cost: Cost


@dataclass(frozen=True)
class Choice:
    """Candidates, best first, and why the other kernels of the kind said no."""

    candidates: tuple[Candidate, ...]
    refusals: tuple[tuple[str, str], ...]  # (kernel stem, reason)


class KernelFiles(Mapping[str, Kernel]):
    """A file is imported when its kernel, or another one of its kind, is asked for: most models need few kinds."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = dict(sorted(paths.items()))  # by id
        self._loaded: dict[str, Kernel] = {}
        self._of_kind: dict[str, list[Kernel]] = {}

    def __getitem__(self, key: str) -> Kernel:
        if key not in self._loaded:
            self._loaded[key] = _load(self.paths[key])
        return self._loaded[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def of_kind(self, kind: str) -> list[Kernel]:
        if kind not in self._of_kind:
            self._of_kind[kind] = [self[key] for key in self.paths if key.partition("/")[0] == kind]
        return self._of_kind[kind]


class Registry(Mapping[str, Kernel]):
    """Kernels by id, as they are chosen from."""

    def __init__(self, files: KernelFiles, measured: Measured | None = None, max_slice: int = 0) -> None:
        self.files = files
        self.measured = measured
        self.max_slice = max_slice

    @staticmethod
    def load(extra: Sequence[Path] = ()) -> Registry:
        own = _own()
        paths = dict(own.paths)
        for folder in extra:
            if not folder.is_dir():
                fix = "give an existing folder to --kernels"
                raise WrongUse(Problem("no such kernel folder", str(folder), "it is not there", fix))
            paths |= _files_in(folder)
        return Registry(KernelFiles(paths) if extra else own)

    def but(self, ids: Set[str]) -> Registry:
        """All kernels but these."""
        paths = self.files.paths
        kept = {key: path for key, path in paths.items() if key not in ids}
        return Registry(KernelFiles(kept) if len(kept) < len(paths) else self.files, self.measured, self.max_slice)

    def measured_by(self, measured: Measured) -> Registry:
        """The same kernels, with what they took instead of what their models say."""
        return Registry(self.files, measured, self.max_slice)

    def in_slices(self, max_slice: int) -> Registry:
        """The same kernels; those are chosen that can be cut into pieces of so many cycles. 0: of any length."""
        return Registry(self.files, self.measured, max_slice)

    def stale(self) -> int:
        """Measurements of other versions of kernels, or of kernels that are no more: nobody believes them."""
        if self.measured is None:
            return 0
        release = self.measured.release
        return sum(
            key not in self.files or version_of(self[key], release) != version
            for key, version in self.measured.versions()
        )

    def __getitem__(self, key: str) -> Kernel:
        return self.files[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def of_kind(self, kind: Kind) -> list[Kernel]:
        return self.files.of_kind(kind.name)

    def match(self, call: Call, target: Target) -> Needs | No:
        """What the kernel that a call has asks for."""
        return self[call.kernel].match(call, target)

    def choose(self, call: Call, target: Target) -> Choice:
        candidates: list[Candidate] = []
        refusals: list[tuple[str, str]] = []
        for kernel in self.of_kind(call.kind):
            if kernel.isa not in target.isas:
                continue
            answer = self._answer(kernel, call, target)
            if isinstance(answer, No):
                refusals.append((kernel.stem, answer.reason))
            else:
                candidates.append(answer)
        candidates = self._short(candidates, call, target)
        candidates.sort(key=lambda c: effort(c.cost, target))  # equal ones stay in the order of their ids
        return Choice(tuple(candidates), tuple(refusals))

    def _short(self, candidates: list[Candidate], call: Call, target: Target) -> list[Candidate]:
        """Those that can be cut into slices that are short enough; the one with the shortest where there are none."""
        if not self.max_slice or not candidates:
            return candidates
        slices = [longest_slice(c.kernel, call, target, c.cost.time, self.max_slice) for c in candidates]
        most = max(min(slices), self.max_slice)
        return [candidate for candidate, longest in zip(candidates, slices, strict=True) if longest <= most]

    def cost(self, kernel: Kernel, call: Call, target: Target) -> Cost:
        """What a kernel takes for a call."""
        found = kernel.cost(call, target)
        if self.measured is not None:
            found = self.measured.corrected(found, kernel, call, target)
        found = replace(found, code=found.code + called_code(call, kernel.isa, target))
        return found if found.measured else replace(found, time=found.time + soft_floats(call, target))

    def _answer(self, kernel: Kernel, call: Call, target: Target) -> No | Candidate:
        """What a kernel says to a call. One that turns out to need a size that is known only at run time says no."""
        try:
            needs = kernel.match(call, target)
            if isinstance(needs, No):
                return needs
            if call.rows is not None and call.rows not in needs.rows:
                return No("it does not compute row by row along this axis")
            if static_views(call):
                kernel.context(replace(call, blocks=needs.blocks))
            if moving := [
                view for view in call.ins if view.buffer.constant is not None and not isinstance(view.offset, int)
            ]:
                packed = kernel.packing(replace(call, blocks=needs.blocks))
                if any(call.ins[index] in moving for index in packed):
                    return No(f"weights that begin at {moving[0].offset} cannot be packed")
            return Candidate(kernel, needs, self.cost(kernel, replace(call, blocks=needs.blocks), target))
        except NotStatic as unknown:
            return No(str(unknown))


# Elements that could be moved in the time that a byte of code or weights counts as.
_WEIGHT = {Prefer.TIME: 0.001, Prefer.RAM: 0.1, Prefer.BALANCED: 0.1, Prefer.FLASH: 100.0}


def effort(cost: Cost, target: Target) -> float:
    """What counts when kernels are compared: time, and bytes as so many cycles each."""
    weight = _WEIGHT[target.prefer] * target.machine.element
    return cost.time + weight * (cost.code + cost.blob)


@cache
def _own() -> KernelFiles:
    return KernelFiles(_files_in(data_folder("kernels_templates")))


def _files_in(folder: Path) -> dict[str, Path]:
    return {f"{path.parent.name}/{path.stem}": path for path in folder.glob("*/*__*.py")}


@cache
def _load(path: Path) -> Kernel:
    folder = zlib.crc32(str(path.resolve().parent.parent).encode())  # others may have files of the same name
    module = import_file(path, f"mccompile_kernels_{folder:08x}.{path.parent.name}.{path.stem}")
    own = [
        c
        for c in vars(module).values()
        if isinstance(c, type) and issubclass(c, Kernel) and c.__module__ == module.__name__
    ]
    template = path.with_suffix(".c.j2")
    if len(own) != 1 or not template.is_file():
        why = f"it defines {len(own)} kernels" if len(own) != 1 else f"{template.name} is missing beside it"
        raise WrongUse(Problem("not a kernel", str(path), why, "a kernel is one Kernel class and one template"))
    kernel = own[0]()
    kernel.stem, kernel.template = path.stem, template
    isa = path.stem.rpartition("__")[2]
    kernel.isa = kernel.isa or isa
    if kernel.isa != isa or kernel.kind.name != path.parent.name:
        why = f"its name does not fit kind {kernel.kind.name!r} and isa {kernel.isa!r}"
        raise WrongUse(Problem("not a kernel", str(path), why, "name it <kind>/<dtype>_<layout>_<algorithm>__<isa>.py"))
    return kernel
