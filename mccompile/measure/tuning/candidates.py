"""What may be measured: the kernels that the calls of a compiled network could have got, as keys of measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from ... import __version__
from ...base.records import dataclass
from ...driver import Options, pass_manager
from ...emit.package import Package
from ...kernels.api import Needs
from ...kernels.identity import identity
from ...kernels.measurements import Database, Key, Measurement, is_known, machine_of, of_kernel, target_name
from ...kernels.registry import effort
from ...passes.api import Context
from ...program.ir import Call


@dataclass(frozen=True)
class Candidate:
    """A kernel for a call."""

    name: str  # of the call, whatever its kernels ask for
    call: Call
    kernel: str
    needs: Needs
    key: Key
    model: float  # the time that its model says
    effort: float  # what the choice goes by, without measurements


class Candidates:
    """Of networks that are compiled with these options."""

    def __init__(self, options: Options, compiler: str, machine: str = "") -> None:
        self.context: Context = pass_manager(replace(options, tuned=None)).context
        self.target = self.context.target
        self.place = (target_name(self.target), machine or machine_of(self.target), compiler)

    def of(self, package: Package) -> Iterator[list[Candidate]]:
        """Call by call."""
        for explanation in package.explanations:
            call = explanation.call
            if is_known(call):
                name, choice = identity(call, Needs()), self.context.registry.choose(call, self.target)
                found = []
                for kernel, needs, cost in choice.candidates:
                    key = Key(identity(call, needs), *of_kernel(kernel, needs, __version__), *self.place)
                    found.append(Candidate(name, call, kernel.id, needs, key, cost.time, effort(cost, self.target)))
                yield found

    def write(self, path: Path, package: Package, figure: Callable[[float], float]) -> None:
        """A file in which each kernel took what `figure` makes of its model's time."""
        rows = {one.key: one.model for among in self.of(package) for one in among}
        Database(path, make=True).add(Measurement(key, figure(model), "", model) for key, model in rows.items())
