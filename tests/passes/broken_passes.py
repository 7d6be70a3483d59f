"""Passes that are wrong on purpose, on random graphs: each must be left out, and the C be that of `--without`.

`python -m tests.passes.broken_passes --graphs 200` tries ten passes on each of 200 graphs of the fuzzer. A fault breaks
an invariant that the verifier checks, or raises an error while a pass is half done; what is wrong and verifies all the
same is for other tests.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from mccompile import pipeline
from mccompile.base.errors import STRICT, InternalError, MccError
from mccompile.base.tensor import TensorType
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Fact, Graph, Value
from mccompile.passes.api import GRAPH, PROGRAM, Context
from mccompile.program.ir import TEMPORARY, Buffer, Call, Program
from tests.fuzz import subject as subjects
from tests.fuzz.options import dims

PASSES = (
    *("fold_constants", "simplify_algebra", "recognise_idioms", "lower_qdq", "assign_layout"),
    *("fuse", "trim_windows", "choose_kernels", "order_calls", "bufferize"),
)
LEFT_OUT = {"report.json"}  # names the pass, so it differs

Chance = np.random.Generator
Fault = Callable[[Any, Chance], None]


class Broken(Exception):
    """Raised by a pass that is wrong on purpose."""


def _stops(ir: Graph | Program, chance: Chance) -> None:
    raise Broken("stopped")


def _loses_a_node(graph: Graph, chance: Chance) -> None:
    del graph._nodes[_one(list(graph.nodes), chance)]


def _turns_nodes_around(graph: Graph, chance: Chance) -> None:
    graph._nodes = dict.fromkeys(reversed(list(graph.nodes)))


def _reads_nothing(graph: Graph, chance: Chance) -> None:
    node = _one([node for node in graph.nodes if node.inputs], chance)
    value = next(node.present_inputs)
    node.inputs[node.inputs.index(value)] = Value("nothing", value.fact)


def _forgets_readers(graph: Graph, chance: Chance) -> None:
    _one([value for node in graph.nodes for value in node.present_inputs], chance).uses.clear()


def _mistakes_a_type(graph: Graph, chance: Chance) -> None:
    value = _one(list(graph.nodes), chance).output
    value.fact = Fact(TensorType(value.type.dtype, (*value.type.shape, 3)))


def _loses_a_call(program: Program, chance: Chance) -> None:
    del program.body[int(chance.integers(len(program.body)))]


def _turns_calls_around(program: Program, chance: Chance) -> None:
    program.body.reverse()


def _reads_what_nobody_wrote(program: Program, chance: Chance) -> None:
    call = _call(program, chance)
    fresh = Buffer("nobody", call.ins[0].buffer.dtype, call.ins[0].shape, TEMPORARY)
    call.ins = (fresh.whole(), *call.ins[1:])


def _leaves_a_buffer(program: Program, chance: Chance) -> None:
    call = _call(program, chance)
    call.ins = (replace(call.ins[0], offset=1 << 40), *call.ins[1:])


def _names_two_alike(program: Program, chance: Chance) -> None:
    first, second = program.buffers()[:2]
    second.name = first.name


def _shrinks_a_result(program: Program, chance: Chance) -> None:
    call = _call(program, chance)
    call.outs = (replace(call.outs[0], shape=(), strides=()), *call.outs[1:])


GRAPH_FAULTS: tuple[Fault, ...] = (
    *(_stops, _loses_a_node, _turns_nodes_around, _reads_nothing, _forgets_readers, _mistakes_a_type),
)
PROGRAM_FAULTS: tuple[Fault, ...] = (
    *(_stops, _loses_a_call, _turns_calls_around, _reads_what_nobody_wrote, _leaves_a_buffer),
    *(_names_two_alike, _shrinks_a_result),
)


def _one(among: list[Any], chance: Chance) -> Any:
    if not among:
        raise Broken("there is nothing to break")
    return among[int(chance.integers(len(among)))]


def _call(program: Program, chance: Chance) -> Call:
    found: Call = _one([call for call in program.calls() if call.ins], chance)
    return found


@contextmanager
def broken(name: str, chance: Chance, faults: tuple[Fault, ...] = ()) -> Iterator[None]:
    """One pass does its work, and then something wrong that the verifier sees."""

    def wrong(ir: Any, context: Context) -> None:
        step.run(ir, context)
        stage, possible = (GRAPH, GRAPH_FAULTS) if isinstance(ir, Graph) else (PROGRAM, PROGRAM_FAULTS)
        for number in chance.permutation(len(faults or possible)):
            (faults or possible)[number](ir, chance)
            try:
                stage.verify(ir, name)  # type: ignore[attr-defined]
            except InternalError:
                return
        raise Broken("nothing that was done broke anything")

    steps = {"GRAPH_PASSES": pipeline.GRAPH_PASSES, "PROGRAM_PASSES": pipeline.PROGRAM_PASSES}
    (step,) = (step for each in steps.values() for step in each if step.name == name)
    patched = {n: tuple(replace(s, run=wrong) if s is step else s for s in each) for n, each in steps.items()}
    with mock.patch.multiple(pipeline, **patched):
        yield


def compiled(subject: subjects.Subject, without: frozenset[str] = frozenset()) -> Package:
    options = Options(dims=dims(subject), bounds=subject.bounds, state=subject.state, without=without)
    return compile_graph(load_proto(subject.model, dims=options.dims, bounds=options.bounds), options, "m")


def verdict(subject: subjects.Subject, name: str, chance: Chance) -> str:
    """What becomes of a graph where a pass is wrong."""
    try:
        wanted = compiled(subject, frozenset({name}))
    except MccError:
        return "refused anyway"
    try:
        with broken(name, chance):
            made = compiled(subject)
    except MccError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"crash: {type(error).__name__}: {error}"
    if [left.name for left in made.left_out] != [name]:
        return f"left out {[left.name for left in made.left_out]}"
    if made.files.keys() != wanted.files.keys():
        return "other files"
    other = [n for n in sorted(made.files.keys() - LEFT_OUT) if made.files[n] != wanted.files[n]]
    return f"other contents of {', '.join(other)}" if other else "right"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.passes.broken_passes")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first graph")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    os.environ.pop(STRICT, None)
    counts: Counter[str] = Counter()
    end, number = time.monotonic() + arguments.seconds, arguments.first
    while number < arguments.first + arguments.graphs and time.monotonic() < end:
        drawn = subjects.draw(arguments.seed, number)
        for place, name in enumerate(PASSES):
            found = verdict(drawn, name, np.random.default_rng([arguments.seed, number, place]))
            counts[found.split(":")[0]] += 1
            if found not in ("right", "refused anyway"):
                print(f"graph {number}, {name}: {found}", flush=True)
        number += 1
    print(f"{number - arguments.first} graphs:", end=" ")
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    return int(set(counts) - {"right", "refused anyway"} != set())


if __name__ == "__main__":
    sys.exit(main())
