"""An upper bound on the instructions of a run and of each function, from the machine code, beside the largest count of
several inputs under emulation: constants, extremes, infinities, NaN, subnormal and random ones.

python -m embedded.bounds model.onnx ... --target cortex-m4

Status 1 says that a run has no bound (what has none is named), or that a count is above it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mccompile.driver import Options, compile
from mccompile.evidence.time import counted, runs
from mccompile.evidence.time_bound import aligned
from mccompile.measure.building import flags_of
from mccompile.targets import api
from mccompile.toolchain.bounds.program import Bound, bound, disassembled
from mccompile.toolchain.disassembly import functions
from mccompile.toolchain.emulate import Emulated

INPUTS = 13  # nine constant ones, and random ones of four sizes


@dataclass(frozen=True)
class Compared:
    bound: Bound
    count: int  # the largest one
    inputs: int
    functions: Mapping[str, int]  # counts of all steps that call a function, with what their callers do for each call

    @property
    def ok(self) -> bool:
        return self.bound.instructions is not None and self.count <= self.bound.instructions

    def __str__(self) -> str:
        most = self.bound.instructions
        if most is None:
            return "\n".join([f"no bound, {self._counted}", *(f"  {each}" for each in self.bound.without)])
        lines = [f"at most {most} instructions, {self._counted}, {most / self.count:.4f} x"]
        for name, count in self.functions.items():
            lines.append(f"  {name}: at most {self.bound.functions.get(name, 0)}, {count} with its calls")
        return "\n".join(lines)

    @property
    def _counted(self) -> str:
        return f"{self.count} counted for the dearest of {self.inputs} inputs"


def around(program: Path, compiler: str, function: str) -> int:
    """Instructions of the board's program that are counted with a run: they call it, and what ends counting."""
    code = [each for _, body in functions(disassembled(program, compiler).splitlines()) for each in body]
    calls = [number for number, each in enumerate(code) if each.operands.endswith(f"<{function}>")]
    assert len(calls) == 1, "a run is called from several places"
    first = next(n for n in range(calls[0], 0, -1) if code[n].operands.endswith("<board_count_begin>"))
    last = next(n for n in range(calls[0], len(code)) if code[n].operands.endswith("<board_count_end>"))
    return last - first


def compared(path: Path, target: str, inputs: int = INPUTS) -> Compared:
    package, core = compile(path, Options(target=target)), api.load(target)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        package.write(Path(scratch, "out"))
        model = Emulated.build(Path(scratch, "out"), core, None, [*flags_of(package, core), "-g"])
        function = f"{package.plan.prefix}_run"
        counts = [model.count(each).run_instructions for each in runs(model.report.inputs, inputs)]
        count = max(counts) - around(model.program, core.compiler, function)
        found = bound(model.program, core.compiler, function, aligned(package))
    functions: dict[str, int] = {}
    for step in counted(package, core, 1).steps if found.instructions is not None else ():
        functions[step.function] = functions.get(step.function, 0) + step.low
    return Compared(found, count, inputs, functions)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m embedded.bounds", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="cortex-m4")
    parser.add_argument("--inputs", type=int, default=INPUTS)
    arguments = parser.parse_args()
    bad = 0
    for path in arguments.models:
        found = compared(path, arguments.target, arguments.inputs)
        bad += not found.ok
        print(f"{path}: {found}", flush=True)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
