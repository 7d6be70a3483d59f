"""From a model to a package of C files, in stages:

    load -> [graph passes] -> lower -> [program passes] -> plan_memory -> emit

The order of passes stands in pipeline.py.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

from .. import __version__, option_table
from ..base.dataclass_json import to_json
from ..base.errors import Problem, WrongUse
from ..base.names import readable
from ..base.near import meant
from ..base.quality import Quality
from ..base.records import dataclass
from ..base.stages import stage
from ..base.streaming import Streamed
from ..base.structures import Interface
from ..emit.alike_functions import share_alike
from ..emit.module import as_module
from ..emit.package import Package, package
from ..emit.prefix import c_prefix
from ..emit.row_costs import costs_of_rows
from ..emit.single_file import single_file
from ..fitting import Attempt, Changes, Point, fitting, frontier, refused
from ..frontend.load import load, name_of
from ..graph.ir import Graph
from ..graph.snapshot import Snapshot
from ..kernels.measurements import measured_by
from ..kernels.registry import Registry
from ..kinds.external import External
from ..memory.planners import PLANNERS, Planner
from ..passes.api import GRAPH, PROGRAM, Context, GraphPass, PassManager, ProgramPass, SkippedPass, Training
from ..passes.graph.eliminate_dead import eliminate_dead
from ..passes.io.call_functions import call_functions, refuse_functions
from ..passes.io.io_forms import give_forms
from ..passes.io.io_schemes import io_schemes
from ..passes.io.observe import observe
from ..passes.io.turn_io import IoLayout, Order, turn_io, turned
from ..passes.lower import lower
from ..passes.memory.state import declare_states
from ..passes.planning.addressable import check_addressable
from ..passes.planning.estimate import estimate, with_cycles
from ..passes.planning.inside import FileTensor, look_inside, name_tensors
from ..passes.planning.moves_left import moves_left
from ..passes.planning.plan_memory import plan_memory
from ..passes.planning.portable_steps import portable_steps
from ..passes.stream.rewrite import stream
from ..passes.witness import witness
from ..pipeline import GRAPH_PASSES, PROGRAM_PASSES, chosen
from ..plan.handed import Quantized
from ..program.ir import Program
from ..quantize.quality import quality
from ..quantize.quantize import check_floats, quantized
from ..quantize.samples import read_samples
from ..targets.api import Prefer, Target
from .accelerating import accelerated
from .near_memory import in_near_memory
from .options import PLAIN, Options, RowByRow
from .recomputing import in_column_tiles
from .recovery import blamed, printable, printed, recovering

# What may differ between code and a blob for it.
_NOT_RECORDED = [option.name for option in option_table.options() if not option.entry.recorded]


def compile(  # noqa: A001 - what mccompile does
    model: Path, options: Options = PLAIN, facts: frozenset[str] | None = None
) -> Package:
    """Compiles an ONNX file. The package knows its files; `Package.write` puts them into a folder. `facts`: those that
    code made before relies on, where the blob is for that."""
    return _fitting(model, options, facts).package


def settled(model: Path, options: Options) -> Options:
    """Options without a search for a plan, that lead to the same code."""
    target = options.resolved_target()
    searched = options.budget or options.recompute > 1 or target.machine.weight_byte or options.memory(target).copied
    if not searched:
        return options
    asked, changes = _latest[-1]
    if asked != (options, _file(model)):
        changes = _changes(_fitting(model, options))
    return replace(options, board="", budget={}, recompute=1.0, **changes)


# What the latest search was asked and found: commands that measure what they have compiled ask for it again.
_latest: deque[tuple[object, Changes]] = deque([(None, {})], maxlen=1)


def _file(model: Path) -> object:
    """What tells a file from others, and from what it was before."""
    try:
        seen = model.stat()
    except OSError:
        return object()  # what is read from a pipe
    return model.absolute(), seen.st_ino, seen.st_size, seen.st_mtime_ns


def _changes(found: Point) -> Changes:
    return {"column_tiles": found.package.plan.column_tiles, **found.changes}


def best_plans(model: Path, options: Options) -> list[Point]:
    """The Pareto-optimal plans by RAM, flash and time, the fastest first."""
    return frontier(_attempt(model, options, is_printed=False))


def _attempt(model: Path, options: Options, facts: frozenset[str] | None = None, *, is_printed: bool) -> Attempt:
    def once(changes: Changes) -> Package:
        asked = replace(options, **changes)
        graph, heard = _read(model, asked)
        graph.facts_known = facts
        return replace(compile_graph(graph, asked, asked.name or name_of(model), is_printed), quality=heard)

    def tried(changes: Changes) -> Package:
        asked = replace(options, **changes)
        if asked.memory(asked.resolved_target()).copied and not asked.column_tiles and not asked.dump_values:
            return in_near_memory(once)(changes)
        if asked.recompute == 1 or asked.column_tiles:
            return once(changes)
        return in_column_tiles(once, asked.recompute)(changes)

    searched = options.recompute > 1 and not options.column_tiles
    if searched and not options.budget and not options.memory(options.resolved_target()).rows:
        why = "it makes line buffers narrower, and layers run line by line only with --prefer ram"
        fix = "try --prefer ram" + " --rows auto" * (options.rows == RowByRow.OFF)
        raise WrongUse(Problem("--recompute has no effect", "--recompute", why, fix))
    return tried


def _fitting(model: Path, options: Options, facts: frozenset[str] | None = None) -> Point:
    point = printable(partial(_search, model, options, facts))
    if facts is None:  # these decide, too
        _latest.append(((options, _file(model)), _changes(point)))
    return point


def _search(model: Path, options: Options, facts: frozenset[str] | None, is_printed: bool) -> Point:
    attempt = _attempt(model, options, facts, is_printed=is_printed)
    point, fits = fitting(attempt, options.prefer, options.budget)
    if fits and _may_pay(options, point):
        point = min(point, Point(_WHOLE, attempt(_WHOLE)), key=partial(_weighed, options))
    if not fits:
        further = frugal(options, point.changes)
        refused(point, options.budget, further, attempt, options.other_boards if options.board else None)
    return point


def frugal(options: Options, changes: Changes, but: str = "") -> list[tuple[str, Changes]]:
    """Options that may make an arena smaller than these do with changes. `but`: one that is not offered."""
    now = replace(options, **changes)
    further = [(words, c) for words, c in _FRUGAL if c.get("recompute", now.recompute + 1) > now.recompute]
    return [(words, c) for words, c in further if replace(now, **c) != now and but not in c]


# Without rows, weights are read once.
_WHOLE: Changes = {"rows": RowByRow.OFF}


def _may_pay(options: Options, point: Point) -> bool:
    """Does reading weights again for each row take time, and may time count more than memory?"""
    target = options.resolved_target()
    rows = bool(costs_of_rows(point.package.plan))
    return rows and not options.budget and bool(target.machine.weight_byte and options.memory(target).worth)


def _weighed(options: Options, point: Point) -> float:
    """What is to be small: time, and as much of the arena as that is worth."""
    return point.time * float(point.ram) ** options.memory(options.resolved_target()).worth


def read(model: Path, options: Options) -> Graph:
    """The graph of an ONNX file; quantized if that is asked for."""
    return _read(model, options)[0]


@stage("read")
def _read(model: Path, options: Options) -> tuple[Graph, Quality | None]:
    """Also what quantizing it costs, where that is asked for."""
    graph = load(model, options.dims, options.shapes, options.bounds, options.reading)
    if options.quantize is None:
        return graph, None
    refuse_functions(options.functions, "--quantize")
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        check_floats(graph, options.recipe, str(model))
        samples = read_samples(options.quantize, graph)
        made = quantized(graph, samples, options.recipe, Path(scratch), options.dims)
        return load(made.file, made.dims, None, options.bounds), quality(made, samples)


def channels_last(graph: Graph, options: Options) -> Mapping[str, Order]:
    """The order of axes of each input and output that is handed over channels-last. Of the graph as it was loaded:
    later, other operators may stand at its ends."""
    frames = {name for name, form in options.inputs.items() if form.camera}
    flat = {name for name, form in options.outputs.items() if form.argmax}  # these lose an axis
    asked = {name for forms in (options.inputs, options.outputs) for name, form in forms.items() if form.nhwc}
    return turned(graph, None if options.io_layout == IoLayout.NHWC else asked - frames, frames | flat)


# Options that may make an arena smaller, as fields and in words.
_FRUGAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--rows auto", {"rows": RowByRow.AUTO}),
    ("--prefer ram", {"prefer": Prefer.RAM}),
    ("--recompute 1.3", {"recompute": 1.3}),
    ("--planner push-down", {"planner": "push-down"}),
    ("--winograd off", {"winograd": 0}),
    ("all passes", {"optimize": True, "without": frozenset()}),
    ("inputs that may be overwritten (no --keep-inputs)", {"keep_inputs": False}),
)


@stage("compile")
def compile_graph(graph: Graph, options: Options, name: str, is_printed: bool = True) -> Package:
    """Compiles a graph that is already loaded (and changes it). Passes that fail are left out; with `is_printed` those
    that lead to what cannot be printed, too."""
    loaded = Snapshot(graph)

    def attempt(left_out: tuple[SkippedPass, ...]) -> Package:
        loaded.restore()
        asked = replace(options, without=options.without | {each.name for each in left_out})
        manager = pass_manager(asked, graph.facts_known, readable(name))
        with blamed(manager):
            made = replace(_compiled(graph, asked, readable(name), manager, left_out), left_out=left_out)
            return printed(made) if is_printed else made

    passes = (step for steps in chosen(options.optimize, options.without) for step in steps)
    return recovering(attempt, [step.name for step in passes if step.optional])


def _compiled(
    graph: Graph, options: Options, name: str, manager: PassManager, left_out: tuple[SkippedPass, ...]
) -> Package:
    interface = graph.interface
    graph.updatable = options.updatable
    observe(graph, options.observe)
    call_functions(graph, options.functions)
    declare_states(graph, {**graph.states_of_file, **options.state}, options.cache_dtype)
    tensors = name_tensors(graph) if options.dump_values and not options.stream else {}
    manager.finished(GRAPH, graph, "load")
    orders, streamed = channels_last(graph, options), None
    if options.stream:
        graph, streamed = stream(graph, options.stream)
        eliminate_dead(graph, manager.context)
        manager.finished(GRAPH, graph, "stream")
    give_forms(graph, options.inputs, options.outputs)
    turn_io(graph, orders)
    schemes = io_schemes(graph)
    program = programmed(graph, options, manager)
    made = GraphInterface(schemes, tensors, streamed, interface)
    return packaged(program, graph, options, name, manager, left_out, made)


def programmed(graph: Graph, options: Options, manager: PassManager) -> Program:
    """The program of a graph, behind all passes."""
    graph_passes, program_passes = chosen(options.optimize, options.without)
    manager.run(GRAPH, graph, graph_passes)
    size = GRAPH.size(graph)
    with stage("lower"):
        program = lower(graph)
    manager.finished(PROGRAM, program, "lower", size)
    manager.run(PROGRAM, program, program_passes)
    return program


@dataclass(frozen=True)
class GraphInterface:
    """What is known of a graph before passes change it: of its inputs and outputs, and the names of its tensors."""

    schemes: Mapping[str, Quantized] = field(default_factory=dict)
    tensors: Mapping[str, FileTensor] = field(default_factory=dict)
    streamed: Streamed | None = None
    interface: Interface | None = None


def packaged(
    program: Program,
    graph: Graph,
    options: Options,
    name: str,
    manager: PassManager,
    left_out: tuple[SkippedPass, ...],
    outside: GraphInterface | None = None,
    learning: Mapping[str, Any] | None = None,
) -> Package:
    """The plan of a program, and its files. `graph`: that it was made of. `learning`: how it learns, for the report."""
    context, outside = manager.context, outside or GraphInterface()
    interface = outside.interface
    program.name = name
    target, pools = context.target, options.mem or context.target.separate_pools
    prefix, planner = c_prefix(name), _planner(options, target)
    with stage("plan_memory"):
        show = options.dump_values
        plan = plan_memory(
            program,
            context.registry,
            target,
            prefix,
            planner,
            options.keep_inputs,
            pools,
            show,
            options.weights_window,
            options.advance,
        )
    check_addressable(plan, target)
    plan = plan.with_schemes(outside.schemes)
    plan = replace(plan, sliced=options.slices, parallel=options.threads > 1, column_tiles=options.column_tiles)
    plan = replace(plan, streamed=outside.streamed, trusts_blob=options.trust_blob)
    if context.accelerated is not None:
        called = {f.call.kind.function for f in plan.functions if isinstance(f.call.kind, External)}
        plan = replace(plan, partition=context.accelerated.partition.within(called))
    plan = with_cycles(replace(plan, portable=portable_steps(program, context)), context)
    if context.target.prefer == Prefer.FLASH:
        plan = share_alike(plan)
    plan = look_inside(plan, options.looks, outside.tensors)
    moves = moves_left(program, context)
    if interface is not None:
        interface = interface.within({tensor.name for tensor in (*plan.inputs, *plan.outputs)})
    made = package(
        plan,
        manager.records,
        moves,
        __version__,
        graph.left_in_float,
        options.delivery,
        interface,
        to_json(options, without=_NOT_RECORDED),
        graph.assumed,
        options.wrappers,
        context.explanations if options.tuned is not None else None,
        left_out,
        learning,
    )
    explained, estimated = tuple(context.explanations), estimate(program, plan, context)
    made = replace(
        made, explanations=explained, estimate=estimated, cuts=context.cuts, column_tiles=context.column_tiles
    )
    seen = witness(program, plan, context.registry, target, options.keep_inputs, manager.history)
    made = replace(made, witness=seen, smallest=context.smallest)
    made = as_module(made, options.blob) if options.module else made
    return single_file(made) if options.single_file else made


def _planner(options: Options, target: Target) -> Planner:
    """The one asked for; else one that keeps workers out of each other's memory, or that needs the least of it."""
    apart = options.threads > 1 and target.prefer == Prefer.TIME
    return PLANNERS[options.planner or ("centred" if apart else "push-down")]


def pass_manager(options: Options, facts: frozenset[str] | None = None, name: str = "model") -> PassManager:
    """A manager for the options, with what names passes and kernels checked. `facts`: see `compile`. `name`: of the
    model."""
    passes: list[GraphPass | ProgramPass] = [*GRAPH_PASSES, *PROGRAM_PASSES]
    names = {p.name for p in passes} | {"load", "stream", "lower", "all"}
    registry = Registry.load(options.kernels).in_slices(options.max_slice)
    for flag, given in (("--print-after", options.print_after), ("--without", options.without - registry.keys())):
        for wanted in sorted(given - names):
            is_kernel = "/" in wanted
            known = registry.keys() if is_kernel else names
            what = f"there is no {'kernel' if is_kernel else 'pass'} {wanted!r}"
            why = "" if is_kernel else f"the passes are {', '.join(sorted(names))}"
            raise WrongUse(Problem(what, flag, why, meant(wanted, known, flag)))
    for kept in sorted(p.name for p in passes if not p.optional and p.name in options.without):
        fix = f"leave out --without {kept}"
        raise WrongUse(Problem(f"pass {kept!r} cannot be left out", "--without", "compiling needs it", fix))
    target = options.resolved_target()
    if options.tuned is not None:
        registry = registry.measured_by(measured_by(options.tuned, target, __version__))
    context = Context(
        target,
        registry.but(options.without),
        options.memory(target),
        Training(options.updatable, facts),
        options.threads,
        options.weights_dtype,
        options.block_activations,
        options.float_error,
        accelerated(options, c_prefix(name), compile_graph),
        max_slice=options.max_slice,
    )
    return PassManager(context, options.print_after, options.dump)
