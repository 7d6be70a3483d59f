"""A package as it runs on its target, and what to run it with."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..base.errors import Problem, WrongUse
from ..base.stages import stage
from ..check.inputs import DataSet, random_sets, stored_sets
from ..emit.package import Package
from ..graph.ir import Graph
from ..kinds.external import External
from ..quantize.samples import read_samples
from ..targets.api import Prefer, Target
from ..toolchain.emulate import Emulated
from ..toolchain.model_report import read_report
from ..toolchain.run import Model
from ..toolchain.serial_line import Port
from ..toolchain.served import Served
from .serving import refuse_unserved


def input_sets(graph: Graph, data: Path | None, seed: int, runs: int) -> list[DataSet]:
    """What to run a model with. Before the graph is compiled, which changes it."""
    if data is not None and data.suffix in (".npz", ".npy"):
        feeds = read_samples(data, graph).first(runs).feeds
        return [DataSet(f"{data.name} {number}", feed) for number, feed in enumerate(feeds)]
    if data is not None:
        return stored_sets(data, [value.name for value in graph.inputs], graph)
    return list(random_sets(graph, seed, runs))


def refuse_undefined(package: Package) -> None:
    """Nobody but its user has the code of a function that is only named."""
    for call in (function.call for function in package.plan.functions):
        if isinstance(call.kind, External) and not call.kind.include:
            where, name = ", ".join(call.provenance), call.kind.function
            fix = f"name the file that defines it as static: --external {where}={name},include={name}.h"
            raise WrongUse(Problem(f"nothing here has the code of function {name}", where, "it is linked later", fix))


@stage("build")
def build(package: Package, target: Target, cc: str | None = None) -> Model | Emulated:
    """The package as it runs on its target: emulated if the target names an emulator, else on this machine."""
    refuse_undefined(package)
    # Weights through a window come as late as they may. (A module's Makefile takes flags instead of its own.)
    late = ("-DMCC_LATE_COPIES",) if package.plan.window else ()
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        if target.run:
            small = ("-Os",) if target.prefer == Prefer.FLASH else ()
            return Emulated.build(folder, target, cc, (*small, *late))
        flags = (*target.cflags, *late)  # the model's headers ask for the target's, whatever kernels were chosen
        return Model.build(folder, cc, flags)


def on_board(package: Package, port: Port) -> Served:
    """The package as a board runs it, which must have been flashed."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        refuse_unserved(read_report(folder))
        return Served.open(folder, port)
