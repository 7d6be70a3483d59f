"""Where results that are wrong begin to be wrong: the first tensor of the graph that is not what the reference says.

All inner tensors are made outputs, and where that makes the difference go away (they cannot be fused then), one at a
time by bisection. A board that hands out what its steps make is asked first, as it may be wrong alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..base.streaming import Stream
from ..check.compare import Comparison
from ..check.inputs import DataSet
from ..check.oracle import Oracle
from ..driver import Options, compile
from ..frontend.load import load
from ..frontend.original import Original
from ..passes.io.turn_io import IoLayout
from ..toolchain.dump import VALUE, read_dump
from ..toolchain.lists import as_lists
from ..toolchain.served import Served
from .building import build
from .verdict import DEFAULT, Difference, Tolerance


def first_difference(
    path: Path,
    options: Options,
    data_set: DataSet,
    tolerance: Tolerance = DEFAULT,
    cc: str | None = None,
    board: Served | None = None,
) -> Difference | None:
    """The first inner tensor, in the order of the graph, that is not what the reference says. A `board` that can tells
    what its steps make; of others, that is as their target is emulated."""
    graph = load(path, options.dims, options.shapes, options.bounds, options.reading)
    values = {v.name: v for v in graph.values() if v.producer is not None}
    names = [name for name in Original(path, options.reading).inner if name in values]
    lists = graph.interface.inputs if graph.interface else ()
    wanted = Oracle(path, names, options.reading).run(as_lists(lists, data_set.inputs))
    names = [name for name in names if isinstance(wanted[name], np.ndarray)]

    def different(name: str, found: Comparison) -> Difference:
        producer = values[name].producer
        return Difference(name, producer.provenance if producer else (), found)

    if board is not None and board.can_dump and _is_as_in_file(options):
        (run,) = read_dump(board.dump(data_set.inputs)).runs
        made = {each.name: each.array for each in run.made if each.kind == VALUE}
        compared = (tolerance.compare(name, made[name], wanted[name]) for name in names if name in made)
        wrong = next((each for each in compared if not each.ok), None)
        if wrong is not None:
            return different(wrong.name, wrong)

    def compare_observed(observed: Sequence[str]) -> list[Comparison]:
        plain = replace(options, io_layout=IoLayout.ONNX, state={}, stream=Stream(), inputs={}, outputs={})
        package = compile(path, replace(plain, observe=tuple(observed)))
        got = build(package, options.resolved_target(), cc).run(data_set.inputs)
        return [tolerance.compare(name, got[name], wanted[name]) for name in observed]

    found = next((c for c in compare_observed(names) if not c.ok), None)
    low, high = (0, len(names)) if found is None else (0, 0)
    while low < high:
        middle = (low + high) // 2
        comparison = compare_observed([names[middle]])[0]
        if comparison.ok:
            low = middle + 1
        else:
            found, high = comparison, middle
    if found is None:
        return None
    return different(found.name, found)


def _is_as_in_file(options: Options) -> bool:
    """Does a run take the file's inputs, and nothing else?"""
    return not (options.stream or options.state or options.inputs or options.outputs) and (
        options.io_layout == IoLayout.ONNX
    )
