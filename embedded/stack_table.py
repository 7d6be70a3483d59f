"""The stack that init and run take under emulation beside their bounds, network by network and core by core.

python -m embedded.stack_table digits wine/model.onnx ...    names of embedded/models.py (`own`: all of them), files
... --targets cortex-m0,cortex-m4

Status 1: more is taken than the bound, or the bound is above 1.15 times that and 64 bytes, or there is none.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from embedded.models import NAMES, path_of
from mccompile.base.errors import MccError
from mccompile.driver import Options, compile
from mccompile.evidence.stack import of_graph
from mccompile.evidence.time import runs
from mccompile.targets import api
from mccompile.toolchain.emulate import Emulated

CORES = "cortex-m0,cortex-m3,cortex-m4,cortex-m33,cortex-m55,rv32imc"
INPUTS = 2  # a constant one and another: which functions are called hardly depends on data


def rows(model: str, target: str) -> Iterator[tuple[str, bool]]:
    """A line for init and one for run, or why there is none; and whether the bound holds and is close."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        path = path_of(model, Path(scratch)) if model in NAMES else Path(model)
        name = path.parent.name if path.stem == "model" else path.stem
        try:
            package = compile(path, Options(target=target))
            package.write(Path(scratch, "out"))
            program = Emulated.build(Path(scratch, "out"), api.load(target))
            counts = [program.count(each) for each in runs(program.report.inputs, INPUTS)]
        except MccError as error:
            yield f"{name} on {target}: {str(error).splitlines()[0]}", True
            return
    bounds = of_graph(program.call_graph, [f"{package.plan.prefix}_{each}" for each in ("init", "run")])["bounds"]
    for each, taken in (("init", [c.init_stack for c in counts]), ("run", [c.run_stack for c in counts])):
        bound, used = bounds[f"{package.plan.prefix}_{each}"], max(size or 0 for size in taken)
        good = not bound["without"] and used <= bound["bytes"] <= 1.15 * used + 64
        most = "none" if bound["without"] else bound["bytes"]
        yield f"| {name} | {target} | {each} | {used} | {most} |{'' if good else ' no'}", good


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m embedded.stack_table", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--targets", default=CORES)
    arguments = parser.parse_args()
    print("| network | core | function | measured | bound |\n|---|---|---|---|---|", flush=True)
    whole = True
    for model in [name for each in arguments.models for name in (NAMES if each == "own" else [each])]:
        for target in arguments.targets.split(","):
            for line, good in rows(model, target):
                print(line, flush=True)
                whole &= good
    return int(not whole)


if __name__ == "__main__":
    sys.exit(main())
