"""The bound on the instructions of a run, of the code built with the flags of its target.

Sizes that are given before a run stand in the model's struct. Fewer rows may take more instructions (those that
no block of several takes), so a run is followed for all sizes that there are, and the dearest counts.
"""

from __future__ import annotations

import math
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ..base.errors import WrongUse
from ..emit.package import Package
from ..measure.building import flags_of
from ..targets.api import Target
from ..toolchain.bounds.program import Bound, bound
from ..toolchain.emulate import Emulated, run_command
from ..toolchain.tools import missing

MOST_SIZES = 64  # combinations that are followed


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
    given = package.plan.given
    if (many := math.prod(size.high - size.low + 1 for size in given)) > MOST_SIZES:
        names = " and ".join(size.name.removeprefix("n_") for size in given)
        fix = "narrower bounds, or one size for each build, have one"
        return _none(f"{names} may be given in {many} ways, and each of at most {MOST_SIZES} is followed: {fix}")
    sizes = [*_sizes(package)]
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        try:
            built = Emulated.build(folder, target, None, [*flags_of(package, target), "-g"])
        except WrongUse as failed:
            return _none(failed.problems[0].what)
        places = _places(folder, package, target) if given else []
        held = [dict(zip(places, each.values(), strict=True)) for each in sizes]
        found = bound(built.program, target.compiler, f"{package.plan.prefix}_run", aligned(package), held)
    return _told(package, found) | ({"sizes": _of_sizes(sizes, found)} if given and found.each else {})


def _sizes(package: Package) -> Iterator[dict[str, int]]:
    """All that may be given before a run, by name: the largest first."""
    given = package.plan.given
    for numbers in product(*(range(size.high, size.low - 1, -1) for size in given)):
        yield {size.name: number for size, number in zip(given, numbers, strict=True)}


def _places(folder: Path, package: Package, target: Target) -> list[int]:
    """Offsets of the given sizes in the model's struct, as the compiler has them."""
    prefix = package.plan.prefix
    offsets = ", ".join(f"offsetof({prefix}_model, {size.name})" for size in package.plan.given)
    text = f'#include <stddef.h>\n#include "{prefix}.h"\nconst unsigned places[] = {{{offsets}}};\n'
    words = [f"-I{folder}", f"-I{folder / 'runtime'}", "-x", "c", "-S", "-o", "-", "-"]
    command = [target.compiler, *target.cflags, *flags_of(package, target), *words]
    made = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    found = [int(number) for number in re.findall(r"^\s+\.word\s+(\d+)$", made, re.MULTILINE)]
    assert len(found) == len(package.plan.given), made
    return found


def _of_sizes(sizes: Sequence[Mapping[str, int]], found: Bound) -> list[dict[str, Any]]:
    pairs = zip(sizes, found.each, strict=True)
    return [
        {"given": {name.removeprefix("n_"): number for name, number in each.items()}, "instructions": cost}
        for each, cost in pairs
    ]


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
        of_sizes = f" for any of {len(found['sizes'])} sizes" if "sizes" in found else ""
        return f"a run takes at most {most}{of_sizes}, without the calls by which steps are counted"
    more = f", and {len(without) - 1} more in time.json" * (len(without) > 1)
    return f"no bound: {without[0]}{more}"
