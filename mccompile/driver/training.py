"""A network that learns: its phases go through all passes by themselves, and are planned and emitted as one program."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

from ..base.errors import MccWarning, Problem, WrongUse
from ..base.names import readable
from ..emit.package import Package
from ..frontend.load import name_of
from ..graph.ir import Graph
from ..passes.api import PROGRAM, LeftOut
from ..passes.learn.join_phases import join_phases
from ..passes.learn.phase_graphs import LEARNED, RATE, Learning, keep_weights, learning_graph, step_graph
from ..pipeline import chosen
from ..plan.learning import LEARN, STEP
from ..program.ir import Program
from ..program.phases import Phase
from .compiling import packaged, pass_manager, programmed, read
from .options import PLAIN, Options
from .recovery import blamed, recovering

# Options that say what a run is like in ways that learning has not; by field, as written.
_REFUSED = {
    "external": "--io external",
    "state": "--state",
    "stream": "--stream",
    "inputs": "--input",
    "outputs": "--output",
    "slices": "--slices",
    "profile": "--profile",
    "dump_values": "--dump-values",
    "module": "--module",
    "wrappers": "--wrapper",
    "quantize": "--quantize",
    "functions": "--function",
    "accelerator": "--accelerator",
    "updatable": "--updatable",
    "observe": "--observe",
    "budget": "--budget",
    "board": "--board",
    "strips": "--recompute",
    "weights_dtype": "--weights-dtype",
    "weights_window": "--weights-window",
}


def train(model: Path, asked: Learning, options: Options = PLAIN) -> Package:
    """Compiles an ONNX file into a program that runs it and learns."""
    _check(asked, options)
    name = options.name or name_of(model)

    def attempt(left_out: tuple[LeftOut, ...]) -> Package:
        without = replace(options, without=options.without | {each.name for each in left_out})
        return replace(_trained(model, asked, without, readable(name), left_out), left_out=left_out)

    steps = [step for passes in chosen(options.optimize, options.without) for step in passes]
    return recovering(attempt, [step.name for step in steps if step.optional])


def _check(asked: Learning, options: Options) -> None:
    for field, flag in _REFUSED.items():
        if getattr(options, field) != getattr(PLAIN, field):
            raise WrongUse(Problem(f"{flag} does not go with learning", flag, "", "leave it out"))
    if asked.accumulate < 1:
        raise WrongUse(Problem(f"{asked.accumulate} batches make no step", "--accumulate", "", "--accumulate 1"))
    if asked.accumulate > 1 and asked.at_once:
        why = "gradients are added up, and weights cannot move before"
        raise WrongUse(Problem("--accumulate does not go with --at-once", "--accumulate", why, "leave one out"))
    if asked.clip is not None and not asked.clip > 0:
        raise WrongUse(Problem(f"--clip {asked.clip:g} is not above 0", "--clip", "", "--clip 1.0"))
    if asked.clip is not None and asked.at_once:
        why = "the norm is that of all gradients together, and each is used up before the next one is there"
        raise WrongUse(Problem("--clip does not go with --at-once", "--clip", why, "leave one out"))


def _trained(model: Path, asked: Learning, options: Options, name: str, left_out: tuple[LeftOut, ...]) -> Package:
    manager = pass_manager(options)

    def program_of(graph: Graph) -> Program:
        with blamed(manager):
            return programmed(graph, options, manager)

    run = read_learner(model, options)
    for text in keep_weights(run, asked).merged:
        warnings.warn(MccWarning(text), stacklevel=2)
    outputs = tuple(value.name for value in run.outputs)
    learn = learning_graph(read(model, options), asked)
    rate = (RATE,)
    parts = [
        (Phase("run", 0, {}, outputs), run),
        (Phase(LEARN, 0, {}, arguments=rate if asked.at_once else ()), learn),
    ]
    if not asked.at_once:
        parts.append((Phase(STEP, 0, {}, arguments=rate, after=LEARNED), step_graph(learn, asked)))
    made = [(phase, program_of(graph)) for phase, graph in parts]
    program = join_phases(name, made)
    manager.finished(PROGRAM, program, "join_phases")
    return packaged(program, run, options, name, manager, left_out)


def read_learner(model: Path, options: Options) -> Graph:
    """The graph of an ONNX file, where it may learn."""
    run = read(model, options)
    if run.states_of_file or run.interface is not None or not all(v.type.is_static for v in run.values()):
        why = "it has sizes that only a run knows, states of its own, or inputs that are no tensors"
        fix = "fix free dimensions with --dim NAME=1"
        raise WrongUse(Problem(f"{options.name or name_of(model)} cannot learn as it is", str(model), why, fix))
    return run
