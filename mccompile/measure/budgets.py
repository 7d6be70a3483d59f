"""Budgets of what only a compiler or an emulator knows: flash with the code, stack, instructions.

Invariant: what is compared is measured on the target's own code: flash is code and weights after linking, stack the
larger of what the compiler's figures allow and what a run has used, instructions those of one run. The driver holds
budgets of RAM and weights.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.errors import CheckFailed, Problem, WrongUse, raise_all
from ..base.records import dataclass
from ..driver import Options, settled
from ..driver import compile as compile_model
from ..passes.api import WeightsDtype
from ..targets.api import Prefer
from ..toolchain.emulate import Emulated
from ..toolchain.tools import missing
from .building import refuse_undefined
from .cost import Cost, cost, flash_of

MEASURED = ("flash", "stack", "instructions")
# Options that may bring a figure down, as written and as fields.
_FRUGAL: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "flash": (
        ("--prefer flash", {"prefer": Prefer.FLASH}),
        ("--weights-dtype f16", {"weights_dtype": WeightsDtype.F16}),
    ),
    "instructions": (("--prefer time", {"prefer": Prefer.TIME}),),
    "stack": (),
}


@dataclass(frozen=True)
class Figures:
    code: int
    weights: int
    stack: int | None  # None: not known
    unseen: tuple[str, ...]  # functions of libraries whose stack comes on top
    instructions: int | None

    @property
    def flash(self) -> int:
        return self.code + self.weights

    def of(self, what: str) -> int | None:
        found: int | None = getattr(self, what)
        return found

    def parts(self, what: str) -> str:
        if what == "flash":
            return f"code {self.code}, weights {self.weights}"
        plus = f", plus {', '.join(f'{name} (unknown)' for name in self.unseen)}" if self.unseen else ""
        return f"of the deepest call{plus}" if what == "stack" else "of one run"


def hold(model: Path, options: Options, seen: Cost | None = None) -> list[str]:
    """Raises CheckFailed where a measured budget is exceeded; else a line for each of them. `seen`: what has been
    measured already, of the only target."""
    asked = {what: limit for what, limit in options.budget.items() if what in MEASURED}
    lines, problems = [], []
    for target in options.target.split(",") if asked else ():
        own = replace(options, target=target)
        figures = _of_cost(seen) if seen is not None else measured(model, own, asked)
        for what, limit in asked.items():
            used = figures.of(what)
            if used is None:
                raise _unknown(what, target)
            unit = "instructions" if what == "instructions" else f"bytes of {what}"
            if what == "instructions":
                lines.append(f"run      {used} instructions")
            else:
                lines.append(f"{what:<9}{used} bytes ({figures.parts(what)})")
            if used > limit:
                title = f"{used} {unit} are {used - limit} over the budget"
                fix = "; ".join(_fitting(model, own, what, limit)) or f"allow it: {_allowing(model, own, what, used)}"
                problems.append(Problem(title, f"{model.stem} for {target}", figures.parts(what), fix))
    raise_all(CheckFailed, problems)
    return lines


def _allowing(model: Path, options: Options, what: str, used: int) -> str:
    """The options with which the same plan fits: a wider budget alone may lead to a faster one that takes more."""
    wider, chosen = replace(options, budget={**options.budget, what: used}), settled(model, options)
    prefer = "" if settled(model, wider) == chosen or chosen.prefer is None else f"--prefer {chosen.prefer} "
    return f"{prefer}--budget {what}={used}"


def _fitting(model: Path, options: Options, what: str, limit: int) -> Iterator[str]:
    """Options with which it fits, each tried."""
    for words, changes in _FRUGAL[what]:
        other = replace(options, **changes)
        if other == options:
            continue
        used = measured(model, other, {what: limit}).of(what)
        if used is not None and used <= limit:
            yield f"with {words} it takes {used}"


def measured(model: Path, options: Options, asked: dict[str, int]) -> Figures:
    """The figures for one target; those that need a run only where its programs run."""
    target = options.resolved_target()
    options = settled(model, options)
    if target.run:
        return _of_cost(cost(model, options))
    if "instructions" in asked:
        raise _unknown("instructions", target.name)
    package = compile_model(model, replace(options, single_file=False, module=False))  # sizes are told apart by files
    refuse_undefined(package)
    cc = None if missing(["gcc"]) else "gcc"  # which tells the stack
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        program = Emulated.build(folder, target, cc)
    bound = program.call_graph.bound(f"{package.plan.prefix}_run")
    weights = package.weights_bytes
    own = {source: sizes for source, sizes in program.sections.items() if source != "libraries"}
    return Figures(flash_of(own), weights, bound.bytes, bound.unseen, None)


def _of_cost(found: Cost) -> Figures:
    stacks = [stack for stack in (found.stack_bound.bytes, found.run_stack, found.init_stack) if stack is not None]
    unseen = found.stack_bound.unseen if found.run_stack is None else ()
    stack = max(stacks, default=None)
    return Figures(found.code_bytes, found.weights_bytes, stack, unseen, found.run_instructions)


def _unknown(what: str, target: str) -> WrongUse:
    why = "its compiler does not say" if what == "stack" else "it names no emulator that counts them"
    fix = f"leave out {what}=, or name a core such as --target cortex-m4"
    return WrongUse(Problem(f"{what} of target {target} cannot be measured", "--budget", why, fix))
