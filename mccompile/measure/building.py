"""A package as it runs on its target, and what to run it with."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..base.errors import BadFile, Problem, WrongUse, warn
from ..base.stages import stage
from ..base.tensor import TensorType
from ..check.inputs import DataSet, random_sets, stored_sets
from ..emit.package import Package
from ..graph.ir import Fact, Graph, Value
from ..kinds.external import External
from ..quantize.pictures import refuse_pictures
from ..quantize.samples import read_samples
from ..targets.api import Prefer, Target
from ..toolchain.emulate import Emulated
from ..toolchain.model_report import read_blob, read_report
from ..toolchain.run import Model
from ..toolchain.serial_line import Port
from ..toolchain.served import Served
from .flashing import flashed
from .serving import refuse_unserved, server_files

RUNS = 3  # sets of inputs, unless another number is asked for


def input_sets(graph: Graph, data: Path | None, seed: int, runs: int) -> list[DataSet]:
    """What to run a model with. Before the graph is compiled, which changes it."""
    if data is not None and (data.is_file() or data.suffix in (".npz", ".npy")):
        feeds = read_samples(data, graph).first(runs).feeds
        return _telling(data, [DataSet(f"{data.name} {number}", feed) for number, feed in enumerate(feeds)])
    if data is not None:
        refuse_pictures(data, graph)
        return stored_sets(data, [value.name for value in graph.inputs], graph)
    return list(random_sets(graph, seed, runs))


def sets_asked_for(graph: Graph, data: Path, seed: int, runs: int) -> list[DataSet]:
    """Those of `data`; where there are fewer than were asked for, that is said."""
    sets = input_sets(graph, data, seed, runs)
    if len(sets) < runs != RUNS:
        warn(f"{data} has {len(sets)} samples: {len(sets)} of the {runs} runs that were asked for are made")
    return sets


def _telling(data: Path, sets: list[DataSet]) -> list[DataSet]:
    """The sets; refused where no element of an input of floats is finite: any result looks right then."""
    for name in sets[0].inputs if sets else ():
        arrays = [each.inputs[name] for each in sets]
        count = sum(array.size for array in arrays)
        if count and arrays[0].dtype.kind in "fc" and not any(np.isfinite(array).any() for array in arrays):
            why = f"{count} of {count} values of {name} are NaN or infinite, so every result would look right"
            raise BadFile(Problem("the data tells nothing", str(data), why, "give samples of what the model will see"))
    return sets


def refuse_undefined(package: Package) -> None:
    """Nobody but its user has the code of a function that is only named."""
    for call in (function.call for function in package.plan.functions):
        if isinstance(call.kind, External) and not call.kind.include:
            where, name = ", ".join(call.provenance), call.kind.function
            fix = f"name the file that defines it as static: --external {where}={name},include={name}.h"
            raise WrongUse(Problem(f"the code of function {name} is missing", where, "it is linked later", fix))


@stage("build")
def build(package: Package, target: Target, cc: str | None = None) -> Model | Emulated:
    """The package as it runs on its target: emulated if the target names an emulator, else on this machine."""
    refuse_undefined(package)
    flags = flags_of(package, target)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        if target.run:
            return Emulated.build(folder, target, cc, flags)
        # the model's headers ask for the target's flags, whatever kernels were chosen
        return Model.build(folder, cc, (*target.cflags, *flags))


def flags_of(package: Package, target: Target) -> tuple[str, ...]:
    """What a package is built with besides the target's own flags."""
    # Weights through a window come as late as they may. (A module's Makefile takes flags instead of its own.)
    late = ("-DMCC_LATE_COPIES",) if package.plan.window or any(a.copied for a in package.plan.arenas) else ()
    alone = ("-DMCC_STAND_IN",) if package.plan.partition else ()  # there is no accelerator here
    small = ("-Os",) if target.run and target.prefer == Prefer.FLASH else ()
    return (*small, *late, *alone)


def own_functions(sizes: Mapping[str, int], package: Package) -> dict[str, int]:
    """Of all functions of a program the bytes of those that steps call, with the parts that were cut out of them."""
    names = {function.name for function in package.plan.functions}
    found: dict[str, int] = {}
    for name, nbytes in sizes.items():
        parts = name.split("_")
        heads = ("_".join(parts[:count]) for count in range(len(parts), 0, -1))
        owner = next((head for head in heads if head in names), None)
        if owner is not None:
            found[owner] = found.get(owner, 0) + nbytes
    return found


def on_board(package: Package, port: Port) -> Served:
    """The package as a board runs it, which is flashed where the port has a command for that."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        return served(folder, port, package.estimate.time)


def served(folder: Path, port: Port, cycles: float = 0.0) -> Served:
    """An output folder on its board; `cycles`: what a run is estimated to take."""
    report = read_report(folder)
    refuse_unserved(report)
    if port.flash:
        for path, contents in server_files(report).items():
            Path(folder, path).write_bytes(contents)
        flashed(folder, port.flash)
    return Served.open(folder, port, cycles)


def sent(folder: Path, port: Port) -> int:
    """The weights of an output folder as a board's new ones; their bytes."""
    report = read_report(folder)
    refuse_unserved(report)
    blob = read_blob(folder, report)
    board = Served.open(folder, port, other_weights=True)
    try:
        board.store(blob)
    finally:
        board.close()
    return len(blob)


def dumped(folder: Path, port: Port, seed: int) -> bytes:
    """What the steps of a run on random inputs make on a board, which has the code of an output folder."""
    free = [tensor for tensor in read_report(folder).inputs if not tensor.is_static]
    if free:
        fix = "give all sizes with --dim, or compare the file of a dump"
        raise WrongUse(Problem("inputs are drawn for fixed sizes only", f"input {free[0].name!r}", str(free[0]), fix))
    board = served(folder, port)
    try:
        values = [Value(t.name, Fact(TensorType(t.dtype, t.static_shape))) for t in board.report.inputs]
        graph = Graph(board.report.prefix, values, values)
        return board.dump(next(random_sets(graph, seed, 1)).inputs)
    finally:
        board.close()
