"""What evidence claims of random programs, on emulated cores: `python -m tests.fuzz.claims --seed 1 --seconds 100`.

Of each program the certificates are checked; init and run take at most the stack of their bounds, which are at most
1.15 times that and 64 bytes; a run takes at most the instructions of its bound. Status 1 says that something does not
hold.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

from embedded.bounds import around
from mccompile.base.errors import InternalError, MccError, UnsupportedModel
from mccompile.driver import Options, compile_graph
from mccompile.evidence.folder import checked, checked_ranges, checked_trace
from mccompile.evidence.stack import of_graph
from mccompile.evidence.time_bound import aligned
from mccompile.frontend.listed import nodes_of
from mccompile.frontend.load import load_proto
from mccompile.measure.building import flags_of
from mccompile.targets import api as targets
from mccompile.toolchain.bounds.program import bound
from mccompile.toolchain.emulate import Emulated

from . import options, subject, trial

CORES = ("cortex-m0", "cortex-m4", "cortex-m55")
FOLLOWED = 30  # seconds that a bound may take


def broken(drawn: subject.Subject, seed: int, core: str) -> tuple[list[str], str]:
    """The claims that do not hold, and what became of the bound on instructions."""
    target = targets.load(core)
    asked = Options(target=core, dims=options.dims(drawn), bounds=drawn.bounds, state=drawn.state)
    package = compile_graph(load_proto(drawn.model, None, asked.dims, bounds=asked.bounds), asked, "claims")
    memory = checked(package)
    checked_trace(package, nodes_of(drawn.model), memory)
    checked_ranges(package, memory)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        package.write(Path(scratch, "out"))
        built = Emulated.build(Path(scratch, "out"), target, None, [*flags_of(package, target), "-g"])
        given = {tensor.name for tensor in built.report.inputs}
        inputs = {name: array for name, array in drawn.runs([seed])[0].items() if name in given}
        count = built.count(inputs)
        names = ["claims_init", "claims_run"]
        bounds = of_graph(built.call_graph, names)["bounds"]
        found = []
        for name, used in zip(names, (count.init_stack, count.run_stack), strict=True):
            most = bounds[name]["bytes"]
            if used is not None and most is not None and not used <= most <= 1.15 * used + 64:
                found.append(f"{name} took {used} bytes of stack, its bound is {most}")
        try:
            with trial.limited(FOLLOWED):
                most = bound(built.program, target.compiler, "claims_run", aligned(package)).instructions
        except TimeoutError:
            most = None
        took = count.run_instructions - around(built.program, target.compiler, "claims_run")
    if most is None:
        return found, "no bound of time"
    return found + [f"a run took {took} instructions, its bound is {most}"] * (took > most), "bound"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.claims", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first subject")
    arguments = parser.parse_args()
    end, number = time.monotonic() + arguments.seconds, arguments.first
    counts: collections.Counter[str] = collections.Counter()
    while time.monotonic() < end:
        drawn, core = subject.draw(arguments.seed, number), CORES[number % len(CORES)]
        try:
            wrong, kind = broken(drawn, arguments.seed, core)
        except UnsupportedModel:
            wrong, kind = [], "refused"
        except (InternalError, MccError) as failed:
            wrong, kind = [str(failed)], "failed"
        counts[kind] += 1
        counts["wrong"] += bool(wrong)
        for each in wrong:
            print(f"--seed {arguments.seed} --first {number}, {core}: {each}", flush=True)
        number += 1
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
