"""The bound on the instructions of a run, of the code built with the flags of its target."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.errors import WrongUse
from ..emit.package import Package
from ..measure.building import flags_of
from ..targets.api import Target
from ..toolchain.bounds.program import Bound, bound
from ..toolchain.emulate import Emulated, run_command
from ..toolchain.tools import missing


def time_bound(package: Package, target: Target) -> dict[str, Any]:
    """The bound, or what has none."""
    is_core = any(flag.startswith("-mcpu=cortex-m") for flag in target.cflags)
    if not (is_core and target.compiler.startswith("arm-") and target.compiler.endswith("-gcc")):
        return _none("only machine code of Cortex-M by gcc is followed")
    tools = [
        target.compiler,
        *run_command(target)[:1],
        *(target.compiler[:-3] + end for end in ("objdump", "addr2line")),
    ]
    if lacking := missing(tools):
        return _none(f"{' and '.join(lacking)} is not installed")
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        package.write(Path(scratch, "out"))
        try:
            built = Emulated.build(Path(scratch, "out"), target, None, [*flags_of(package, target), "-g"])
        except WrongUse as failed:
            return _none(failed.problems[0].what)
        found = bound(built.program, target.compiler, f"{package.plan.prefix}_run", aligned(package))
    return _told(package, found)


def _told(package: Package, found: Bound) -> dict[str, Any]:
    steps: dict[str, list[int]] = {}
    for step in package.plan.steps():
        steps.setdefault(step.function.name, []).append(step.number)
    own = (f"{package.plan.prefix}_", "mcc_")
    return {
        "instructions": found.instructions,
        "without": [*found.without],
        "library": [
            {"function": name, "call": found.dearest[name], "instructions": found.functions[name]}
            for name in found.functions
            if not name.startswith(own)
        ],
        "functions": [
            {"function": name, "steps": numbers, "instructions": found.functions[name]}
            for name, numbers in steps.items()
            if name in found.functions
        ],
        "loops": [
            {"function": loop.function, "offset": loop.offset, "line": loop.line, "turns": loop.turns}
            for loop in found.loops
        ],
    }


def flow_facts(found: Mapping[str, Any]) -> str:
    """Bounds of loops as OTAWA reads them (F4), by the address of the first instruction."""
    lines = ["// The most turns of each loop whenever it is entered. Places are those of a build with these flags."]
    for loop in found["loops"]:
        place = f'"{loop["function"]}" + {loop["offset"]:#x}' if loop["offset"] else f'"{loop["function"]}"'
        lines.append(f"loop {place} {loop['turns']}; // {loop['line']}")
    return "\n".join(lines) + "\n"


def aligned(package: Package) -> int:
    """How many words at the beginning of the model's struct are addresses that init has found aligned: those of arenas
    and weights."""
    plan = package.plan
    return len(plan.arenas) + (not plan.window) if all(arena.align % 8 == 0 for arena in plan.arenas) else 0


def _none(why: str) -> dict[str, Any]:
    return {"instructions": None, "without": [why], "library": [], "functions": [], "loops": []}


def shown(found: Mapping[str, Any]) -> str:
    """For the terminal."""
    most, without = found["instructions"], found["without"]
    if most is not None:
        return f"a run takes at most {most}, without the calls by which steps are counted"
    more = f", and {len(without) - 1} more in time.json" * (len(without) > 1)
    return f"no bound: {without[0]}{more}"
