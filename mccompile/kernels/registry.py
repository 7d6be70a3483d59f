"""Finds kernels by folder and chooses among them.

`Registry.load()` imports every `<kind>/<stem>.py` below `kernels_templates/` (and below the user's own folders); a file defines one
`Kernel`. Order of candidates is by cost, then by name: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.discovery import data_folder, import_file
from ..base.errors import Problem, WrongUse
from ..kinds.api import Kind
from ..program.ir import Call
from ..targets.api import Target
from .api import Cost, Kernel, Needs, No


@dataclass(frozen=True)
class Candidate:
    kernel: Kernel
    needs: Needs
    cost: Cost


@dataclass(frozen=True)
class Choice:
    """Candidates, best first, and why the other kernels of the kind said no."""

    candidates: tuple[Candidate, ...]
    refusals: tuple[tuple[str, str], ...]  # (kernel stem, reason)


class Registry:
    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = {kernel.id: kernel for kernel in sorted(kernels, key=lambda kernel: kernel.id)}
        self._by_kind: dict[str, list[Kernel]] = {}
        for kernel in self.kernels.values():
            self._by_kind.setdefault(kernel.kind.name, []).append(kernel)

    @staticmethod
    def load(extra: Sequence[Path] = ()) -> Registry:
        kernels: list[Kernel] = []
        for number, folder in enumerate([data_folder("kernels_templates"), *extra]):
            if not folder.is_dir():
                raise WrongUse(Problem("no such kernel folder", str(folder), "", "give an existing folder to --kernels"))
            for path in sorted(folder.glob("*/*__*.py")):
                kernels.append(_load(path, number))
        return Registry(kernels)

    def of_kind(self, kind: Kind) -> list[Kernel]:
        return self._by_kind.get(kind.name, [])

    def choose(self, call: Call, target: Target) -> Choice:
        candidates: list[Candidate] = []
        refusals: list[tuple[str, str]] = []
        for kernel in self.of_kind(call.kind):
            if kernel.isa not in target.isas:
                continue
            answer = kernel.match(call, target)
            if isinstance(answer, No):
                refusals.append((kernel.stem, answer.reason))
            else:
                candidates.append(Candidate(kernel, answer, kernel.cost(call, target)))
        weight = {"time": 1e-12, "ram": 1e-10, "flash": 1e-7}[target.prefer]  # seconds that a byte of code is worth
        candidates.sort(key=lambda c: (c.cost.time + weight * (c.cost.code + c.cost.blob), c.kernel.id))
        return Choice(tuple(candidates), tuple(refusals))


def _load(path: Path, source: int) -> Kernel:
    module = import_file(path, f"mccompile_kernels_{source}.{path.parent.name}.{path.stem}")
    own = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Kernel) and c.__module__ == module.__name__]
    template = path.with_suffix(".c.j2")
    if len(own) != 1 or not template.is_file():
        why = f"it defines {len(own)} kernels" if len(own) != 1 else f"{template.name} is missing beside it"
        raise WrongUse(Problem("not a kernel", str(path), why, "a kernel is one Kernel class and one template"))
    kernel = own[0]()
    kernel.stem = path.stem
    kernel.template = template
    if not path.stem.endswith(f"__{kernel.isa}") or kernel.kind.name != path.parent.name:
        why = f"its name does not fit kind {kernel.kind.name!r} and isa {kernel.isa!r}"
        raise WrongUse(Problem("not a kernel", str(path), why, "name it <kind>/<dtype>_<layout>_<algorithm>__<isa>.py"))
    return kernel
