"""A network that learns: its phases go through all passes by themselves, and are planned and emitted as one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field as dataclass_field
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from ..base.errors import Problem, WrongUse, warn
from ..base.names import readable
from ..base.records import dataclass
from ..emit.package import Package
from ..fitting import SMALLEST, Attempt, Changes, Point, fitting, frontier, refused, told
from ..frontend.load import name_of, read_proto
from ..frontend.lost_parameters import lost_parameters
from ..graph.ir import Graph
from ..passes.api import PROGRAM, Context, Memory, SkippedPass
from ..passes.learn.integer_weights import stored
from ..passes.learn.join_phases import join_phases
from ..passes.learn.phase_graphs import (
    AUTO,
    LEARNED,
    RATE,
    Learning,
    begin_with,
    keep_weights,
    learning_graph,
    step_graph,
)
from ..passes.memory.apart import lay_apart
from ..pipeline import chosen
from ..plan.learning import LEARN, STEP
from ..program.ir import Program
from ..program.phases import Phase
from ..targets.api import Prefer
from .compiling import frugal, packaged, pass_manager, programmed, read
from .options import MOST_RECOMPUTED, PLAIN, Options
from .recomputing import in_column_tiles
from .recovery import blamed, printable, printed, recovering
from .smaller_training import smaller_training

# Options that say what a run is like in ways that learning has not: by field, as written, with why.
_REFUSED = {
    "advance": ("--advance", "a run that learns needs all outputs"),
    "external": ("--io external", "what a batch leaves for its gradients lies in the arena"),
    "state": ("--state", "no gradient leads back to an earlier run"),
    "stream": ("--stream", "no gradient leads back to an earlier push"),
    "inputs": ("--input", "a batch is given as the network takes it"),
    "outputs": ("--output", "the loss is of outputs as the network makes them"),
    "max_slice": ("--max-slice", "a batch is learned in one call"),
    "slices": ("--slices", "a batch is learned in one call"),
    "profile": ("--profile", "only steps of inference are counted"),
    "dump_values": ("--dump-values", "only steps of inference are handed out"),
    "module": ("--module", "the weights of a module are read only"),
    "wrappers": ("--wrapper", "wrappers have no functions for learning"),
    "quantize": ("--quantize", "integers have no gradient; quantize what has been learned"),
    "functions": ("--external", "your own C function has no gradient"),
    "accelerator": ("--accelerator", "what it computes has no gradient"),
    "updatable": ("--updatable", "the weights are in RAM, where they change anyway"),
    "observe": ("--observe", "only runs of inference show inner tensors"),
    "weights_dtype": ("--weights-dtype", "weights learn in f32"),
    "weights_window": ("--weights-window", "weights that learn stay in RAM"),
}


@dataclass(frozen=True)
class Earlier:
    """What is known of code that was made before, where a blob for it is made."""

    facts: frozenset[str] | None = None  # those that it relies on
    learned: Mapping[str, np.ndarray] = dataclass_field(default_factory=dict)  # what weights begin with


NOTHING = Earlier()


def train(model: Path, asked: Learning, options: Options = PLAIN, earlier: Earlier = NOTHING) -> Package:
    """Compiles an ONNX file into a program that runs it and learns: the fastest one within the budget."""
    _check(asked, options)

    def search(is_printed: bool) -> Point:
        attempt = _attempt(model, asked, options, earlier, is_printed)
        point, fits = fitting(attempt, options.prefer, options.budget)
        if not fits:
            lighter = [*frugal(options, point.changes, but="recompute"), *smaller_training(model, asked, options)]
            refused(point, options.budget, lighter, attempt, options.other_boards if options.board else None)
        return point

    return printable(search).package


def best_plans(model: Path, asked: Learning, options: Options = PLAIN) -> list[tuple[str, Point]]:
    """The Pareto-optimal plans of what is asked, and the smallest one of each that learns less; in words."""
    _check(asked, options)
    attempt = _attempt(model, asked, options)
    found = [(told(point.changes), point) for point in frontier(attempt)]
    for words, less in smaller_training(model, asked, options):
        changes = {**less, **SMALLEST}
        found.append((f"{words} {told(SMALLEST)}", Point(changes, attempt(changes))))
    return found


def smallest_within(model: Path, asked: Learning, options: Options) -> Point | None:
    """A plan within the budget of RAM that prefers memory to time, where there is one."""
    _check(asked, options)
    changes = {"prefer": Prefer.RAM, "enough": options.budget["ram"]}
    point = Point(changes, _attempt(model, asked, options)(changes))
    return None if point.over(options.budget) else point


def _attempt(
    model: Path, asked: Learning, options: Options, earlier: Earlier = NOTHING, is_printed: bool = False
) -> Attempt:
    """Changes are of options, and of what is asked."""
    of_training = {each.name for each in fields(Learning)}

    def attempt(changes: Changes) -> Package:
        less = {name: value for name, value in changes.items() if name in of_training}
        other = {name: value for name, value in changes.items() if name not in of_training}
        now = replace(options, **other)

        def once(tiles: Changes) -> Package:
            return _recovered(model, replace(asked, **less), replace(now, **tiles), earlier, is_printed)

        return in_column_tiles(once, now.recompute)({}) if now.recompute > 1 and not now.column_tiles else once({})

    return attempt


def _recovered(model: Path, asked: Learning, options: Options, earlier: Earlier, is_printed: bool) -> Package:
    name = options.name or name_of(model)

    def attempt(left_out: tuple[SkippedPass, ...]) -> Package:
        without = replace(options, without=options.without | {each.name for each in left_out})
        made = replace(_trained(model, asked, without, readable(name), left_out, earlier), left_out=left_out)
        return printed(made) if is_printed else made

    steps = [step for passes in chosen(options.optimize, options.without) for step in passes]
    return recovering(attempt, [step.name for step in steps if step.optional])


def _check(asked: Learning, options: Options) -> None:
    for field, (flag, why) in _REFUSED.items():
        if getattr(options, field) != getattr(PLAIN, field):
            raise WrongUse(Problem(f"{flag} does not go with learning", flag, why, f"leave out {flag}"))
    for what in options.budget.keys() - {"ram", "weights"}:
        why = "it is measured where a model only infers"
        fix = "give budgets of RAM and weights, such as --budget ram=64K"
        raise WrongUse(Problem(f"--budget {what} does not go with learning", "--budget", why, fix))
    if asked.learn == AUTO:
        why = "what learns is chosen by samples"
        raise WrongUse(Problem("--learn auto needs samples", "--learn auto", why, "add --data samples.npz"))
    if asked.accumulate < 1:
        raise WrongUse(
            Problem(f"{asked.accumulate} batches are too few for a step", "--accumulate", "", "--accumulate 1")
        )
    if asked.accumulate > 1 and asked.at_once:
        why = "gradients are added up, and weights cannot move before"
        raise WrongUse(Problem("--accumulate does not go with --at-once", "--accumulate", why, "leave one out"))
    if asked.clip is not None and not asked.clip > 0:
        raise WrongUse(Problem(f"--clip {asked.clip:g} is not above 0", "--clip", "", "--clip 1.0"))
    if asked.clip is not None and asked.at_once:
        why = "the norm is that of all gradients together, and each is used up before the next one is there"
        raise WrongUse(Problem("--clip does not go with --at-once", "--clip", why, "leave one out"))


def _trained(
    model: Path,
    asked: Learning,
    options: Options,
    name: str,
    left_out: tuple[SkippedPass, ...],
    earlier: Earlier,
) -> Package:
    manager = pass_manager(options, earlier.facts)

    def program_of(phase: Phase, graph: Graph, context: Context) -> Program:
        manager.context = replace(context, memory=_memory(context.memory, phase, graph, graphs, options))
        with blamed(manager):
            program = programmed(graph, options, manager)
        manager.context = context
        return program

    run = read_learner(model, options)
    kept = keep_weights(run, asked, infers=True)
    lost = lost_parameters(read_proto(model, options.reading), {stored(weight).name for weight in kept.weights})
    for text in (*kept.doubts, *lost):
        warn(text)
    outputs = tuple(value.name for value in run.outputs)
    learn = learning_graph(read(model, options), asked)
    parts = [(Phase("run", 0, {}, outputs), run), (Phase(LEARN, 0, {}), learn)]
    if not asked.at_once:
        parts.append((Phase(STEP, 0, {}, after=LEARNED), step_graph(learn, asked)))
    last, moves = parts[-1]
    parts[-1] = replace(last, arguments=(RATE,), stored=asked.stored(kept.weights)), moves
    graphs, context = [graph for _, graph in parts], manager.context
    for graph in graphs:
        graph.facts_known = earlier.facts
        begin_with(graph, earlier.learned)
    made = [(phase, program_of(phase, graph, context)) for phase, graph in parts]
    program = join_phases(name, made)
    lay_apart(program, options.keep_inputs, context.target.align)  # over an input that another phase reads too
    manager.finished(PROGRAM, program, "join_phases")
    return packaged(program, run, options, name, manager, left_out, learning=asked.to_json())


def _memory(memory: Memory, phase: Phase, graph: Graph, graphs: Sequence[Graph], options: Options) -> Memory:
    """What may be done with tensors of a phase: where one learns, calls may be done again to stay within a budget.
    Layers that only infer are the same in all phases; tiles of them are looked for in the one that learns."""
    if phase.name != LEARN:
        return replace(memory, recompute=1.0)
    apart = {name: size for other in graphs for name, size in _kept(other).items()}.items() - _kept(graph).items()
    enough = max(1, memory.enough - sum(size for _, size in apart)) if memory.enough else 0
    again = MOST_RECOMPUTED if options.enough and options.recompute == 1 else options.recompute
    return replace(memory, again=again, enough=enough)


def _kept(graph: Graph) -> dict[str, int]:
    """Bytes of what a call hands to the next one, by name."""
    names = graph.states.keys() | graph.initial.keys()
    return {value.name: value.type.max_bytes for value in graph.inputs if value.name in names}


def read_learner(model: Path, options: Options) -> Graph:
    """The graph of an ONNX file, where it may learn."""
    run, apart = read(model, options), "give what learns a file of its own"
    free = [f"{name}={high}" for name, (low, high) in options.dims.items() if low < high]
    open_value = next((value for value in run.values() if not value.type.is_static), None)
    if run.states_of_file:
        why, fix = f"it has states of its own, such as {next(iter(run.states_of_file))!r}", apart
    elif run.interface is not None:
        why, fix = "it has inputs or outputs that are not tensors", apart
    elif open_value is None:
        return run
    elif free:
        why, fix = "all calls learn from batches of one size", f"fix what is free: --dim {','.join(free)}"
    else:
        why, fix = f"{open_value.name!r} is {open_value.type}, which only a run knows", f"{apart}, without such sizes"
    raise WrongUse(Problem(f"{options.name or name_of(model)} cannot learn as it is", str(model), why, fix))
