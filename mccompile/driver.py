"""From a model to a package of C files, in stages:

    load -> [graph passes] -> lower -> [program passes] -> plan_memory -> emit

`compile` is everything the command line does. The order of passes stands in pipeline.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import __version__
from .base.dataclass_json import to_json
from .base.errors import Problem, WrongUse
from .base.names import readable
from .base.near import meant
from .base.own_functions import OwnFunction
from .base.stages import stage
from .base.streaming import Stream
from .doors.api import Reading
from .doors.joining import Prepended
from .emit.alike_functions import share_alike
from .emit.blob import CARRIERS, EXTERNAL, INCBIN, check_section
from .emit.dispatch import dispatched, picks_at_run_time, refuse_looks, refuse_unreachable, variant_name
from .emit.guarded import Variant, guarded, refuse
from .emit.layouts import arranged, layout_of
from .emit.module import as_module, refuse_several, refuse_with
from .emit.package import Package, package
from .emit.prefix import c_prefix
from .emit.several import several
from .emit.single_file import single_file
from .emit.wrappers.registry import check_wrappers
from .fitting import Attempt, Changes, Point, fitting, frontier, refused
from .frontend.load import load, name_of
from .graph.ir import Graph
from .kernels.measurements import measured_by
from .kernels.registry import Registry
from .memory.planners import PLANNERS, Planner
from .passes.api import GRAPH, PROGRAM, Context, GraphPass, PassManager, ProgramPass
from .passes.graph.eliminate_dead import eliminate_dead
from .passes.io.call_functions import call_functions, refuse_functions
from .passes.io.io_forms import InputForm, OutputForm, give_forms
from .passes.io.io_schemes import io_schemes
from .passes.io.observe import observe
from .passes.io.turn_io import Order, turn_io, turned
from .passes.lower import lower
from .passes.memory.state import declare_states
from .passes.planning.addressable import check_addressable
from .passes.planning.estimate import estimate
from .passes.planning.inside import look_inside, name_tensors
from .passes.planning.moves_left import moves_left
from .passes.planning.plan_memory import plan_memory
from .passes.stream.rewrite import stream
from .pipeline import GRAPH_PASSES, PROGRAM_PASSES, chosen
from .quantize.quantize import Recipe, quantized
from .quantize.samples import read_samples
from .targets import api as target_api
from .targets.api import Pool, Prefer, Target


@dataclass(frozen=True)
class Options:
    """Everything that can be asked for besides the model."""

    target: str = "generic"  # a name, or the path of a TOML file
    prefer: str = ""  # "ram", "time", "flash" or "balanced"; empty: what the target prefers
    name: str = ""  # of the model, and prefix of all C names; empty: from the file's name
    # free dimensions by name: lowest and highest size
    dims: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int | str | tuple[int, ...], ...]] = field(default_factory=dict)  # of inputs by name
    bounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of sizes that follow from data
    signature: str = ""  # of a TFLite file with several; empty: that of its first subgraph
    prepend: tuple[Prepended, ...] = ()  # models in front of it
    trust: bool = False  # what a file holds that would be executed by loading it may be
    optimize: bool = True
    without: frozenset[str] = frozenset()  # optional passes, and kernels, to leave out
    planner: str = ""  # one that suits
    rows: str = "auto"  # "off": calls never run row by row
    # the most bytes of "ram" (arena), "weights", "flash" (these and the code), "stack", and "instructions" of a run
    budget: Mapping[str, int] = field(default_factory=dict)
    enough: int = 0  # bytes of the arena: less is no better. What a budget leads to
    mem: tuple[Pool, ...] = ()  # memories for tensors; empty: what the target says
    weights_section: str = ""  # of the linker, for the weights; empty: where constants go
    winograd: int | None = None  # 0, 2 or 4: largest tile of Winograd's convolution; None: what the target says
    threads: int = 1  # workers that may share a step
    weights_dtype: str = ""  # "f16" or "bf16": how weights of convolutions and matrix products are stored
    updatable: bool = False  # integers: the code suits scales and zero points of networks that are trained anew
    keep_inputs: bool = False
    slices: bool = False  # a run can also be made a few steps at a time
    profile: bool = False  # runs count how long each step takes
    dump_values: bool = False  # runs hand out what each step makes
    single_file: bool = False  # one C file and one header
    module: bool = False  # code and weights become one file that a program loads
    wrappers: tuple[str, ...] = ()  # other languages that the model is for, each with a file
    blob: str = "array"  # how programs get the weights: "array", "incbin" or "external"
    io_layout: str = "onnx"  # "nhwc": pictures among inputs and outputs are channels-last
    external: tuple[str, ...] = ()  # inputs and outputs outside the arena, told by pointer; ALL: every one
    state: Mapping[str, str] = field(default_factory=dict)  # outputs that become inputs of the next run
    stream: Stream = field(default_factory=Stream)  # axes of time: a run takes the newest frames
    inputs: Mapping[str, InputForm] = field(default_factory=dict)  # what programs hand over, where not the model's own
    outputs: Mapping[str, OutputForm] = field(default_factory=dict)
    observe: tuple[str, ...] = ()  # inner tensors to be made outputs
    kernels: tuple[Path, ...] = ()  # folders with kernels of the user's own
    functions: tuple[OwnFunction, ...] = ()  # C functions of the user's own in the place of operators
    tuned: Path | None = None  # measurements of kernels, which count more than what their models say
    quantize: Path | None = None  # samples to find ranges with: the model is quantized first
    recipe: Recipe = field(default_factory=Recipe)  # how
    print_after: frozenset[str] = frozenset()
    dump: Path | None = None

    def __post_init__(self) -> None:
        for what, value, allowed, flag in (
            ("there is no planner {!r}", self.planner, ("", *PLANNERS), "--planner"),
            ("there is no layout {!r}", self.io_layout, ("onnx", "nhwc"), "--io-layout"),
            ("cannot prefer {!r}", self.prefer, ("", *Prefer), "--prefer"),
            ("the blob cannot be {!r}", self.blob, CARRIERS, "--blob"),
            ("rows cannot be {!r}", self.rows, ("off", "auto"), "--rows"),
            ("weights cannot be stored as {!r}", self.weights_dtype, ("", "f16", "bf16"), "--weights-dtype"),
        ):
            if value not in allowed:
                why = f"it can be {', '.join(filter(None, allowed))}"
                raise WrongUse(Problem(what.format(value), flag, why, meant(value, allowed, flag)))
        check_section(self.weights_section, self.blob)
        check_wrappers(self.wrappers)
        refuse_with(vars(self))
        if self.threads < 1:
            fix = "did you mean --threads 1?"
            raise WrongUse(Problem(f"there cannot be {self.threads} threads", "--threads", "one is the least", fix))

    def resolved_target(self) -> Target:
        target = target_api.load(self.target)
        if self.winograd is not None:
            target = replace(target, options=tuple(sorted({**dict(target.options), "winograd": self.winograd}.items())))
        prefer = self.prefer or target.prefer
        return replace(target, prefer=Prefer.RAM if prefer == Prefer.BALANCED else Prefer(prefer))

    @property
    def reading(self) -> Reading:
        return Reading(self.signature, self.trust, self.prepend, self.functions, self.dims, self.shapes)

    @property
    def balanced(self) -> bool:
        """Is time weighed against memory, where memory comes first?"""
        return (self.prefer or target_api.load(self.target).prefer) == Prefer.BALANCED


# What may differ between code and a blob for it.
_NOT_RECORDED = ("name", "budget", "print_after", "dump", "trust")


def compile(model: Path, options: Options = Options(), facts: frozenset[str] | None = None) -> Package:
    """Compiles an ONNX file. The package knows its files; `Package.write` puts them into a folder. `facts`: those that
    code made before relies on, where the blob is for that."""
    return _fitting(model, options, facts).package


def settled(model: Path, options: Options) -> Options:
    """Options without a budget that lead to the same code."""
    if not options.budget:
        return options
    return replace(options, budget={}, **_fitting(model, options).changes)


def best_plans(model: Path, options: Options) -> list[Point]:
    """The plans of which none is as bad as another one in RAM, flash and time: the fastest first."""
    return frontier(_attempt(model, options))


def _attempt(model: Path, options: Options, facts: frozenset[str] | None = None) -> Attempt:
    def attempt(changes: Changes) -> Package:
        asked = replace(options, **changes)
        graph = read(model, asked)
        graph.facts_known = facts
        return compile_graph(graph, asked, asked.name or name_of(model))

    return attempt


def _fitting(model: Path, options: Options, facts: frozenset[str] | None = None) -> Point:
    attempt = _attempt(model, options, facts)
    point, fits = fitting(attempt, options.prefer, options.budget)
    if not fits:
        now = replace(options, **point.changes)
        refused(point, options.budget, [(words, c) for words, c in _FRUGAL if replace(now, **c) != now], attempt)
    return point


@stage("read")
def read(model: Path, options: Options) -> Graph:
    """The graph of an ONNX file; quantized if that is asked for."""
    graph = load(model, options.dims, options.shapes, options.bounds, options.reading)
    if options.quantize is None:
        return graph
    refuse_functions(options.functions, "--quantize")
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        samples = read_samples(options.quantize, graph)
        made = quantized(graph, samples, options.recipe, Path(scratch), options.dims)
        return load(made.file, made.dims, None, options.bounds)


def channels_last(graph: Graph, options: Options) -> Mapping[str, Order]:
    """The order of axes of each input and output that is handed over channels-last."""
    asked = {name for forms in (options.inputs, options.outputs) for name, form in forms.items() if form.nhwc}
    found = turned(graph, None if options.io_layout == "nhwc" else asked)
    return {n: order for n, order in found.items() if n not in options.inputs or not options.inputs[n].camera}


# Options that may make an arena smaller, as fields and in words.
_FRUGAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--rows auto", {"rows": "auto"}),
    ("--prefer ram", {"prefer": "ram"}),
    ("--planner push-down", {"planner": "push-down"}),
    ("--winograd 0", {"winograd": 0}),
    ("all passes", {"optimize": True, "without": frozenset()}),
    ("inputs that may be overwritten (no --keep-inputs)", {"keep_inputs": False}),
)


def compile_several(models: Sequence[Path], options: Options) -> tuple[list[Package], Mapping[str, bytes]]:
    """Compiles ONNX files into one folder; the name in `options` is that of what they share."""
    return compile_all([(model, replace(options, name="")) for model in models], options.name or "models")


def compile_all(jobs: Sequence[tuple[Path, Options]], name: str) -> tuple[list[Package], Mapping[str, bytes]]:
    """The same where each model has options of its own; `name` is that of what they share."""
    if any(options.single_file for _, options in jobs):
        fix = "leave out --single-file, or compile each alone"
        raise WrongUse(Problem("several models do not go into a single file", "", "", fix))
    packages = [compile(model, options) for model, options in jobs]
    return packages, several(packages, c_prefix(name))


def compile_jobs(jobs: Sequence[tuple[Path, Options]], name: str) -> tuple[list[Package], Mapping[str, bytes]]:
    """One model or several, for one target or for several with commas between."""
    asked = {options.target for _, options in jobs}
    refuse_several([options.module for _, options in jobs], asked)
    if not any("," in target for target in asked):
        if len(jobs) > 1:
            return compile_all(jobs, name)
        package = compile(*jobs[0])
        return [package], package.files
    if len(asked) > 1:
        raise WrongUse(Problem("models have other lists of targets", "; ".join(sorted(asked)), "", "give all the same"))
    targets = [target_api.load(target) for target in sorted(asked)[0].split(",")]
    if len(jobs) == 1 and not jobs[0][1].single_file and picks_at_run_time(targets):
        return _dispatched(*jobs[0], targets)
    if any(options.blob == INCBIN for _, options in jobs):
        why = "each target has its own, and the assembler knows one name"
        raise WrongUse(Problem("the blob cannot be brought in by the assembler", "--target", why, "leave out --blob"))
    packages, variants = [], []
    for target in asked.pop().split(","):
        made, files = compile_jobs([(model, replace(options, target=target)) for model, options in jobs], name)
        resolved = target_api.load(target)
        packages += made
        variants.append(Variant(resolved.guard, resolved.build, files))
    return packages, guarded(variants, packages[0].plan.prefix if len(jobs) == 1 else c_prefix(name))


def _dispatched(model: Path, options: Options, targets: Sequence[Target]) -> tuple[list[Package], Mapping[str, bytes]]:
    """One model whose init picks what the processor runs."""
    refuse_looks(targets, {"--profile": options.profile, "--dump-values": options.dump_values})
    refuse([Variant(target.guard, target.build, {}) for target in targets])
    refuse_unreachable(targets)
    name = options.name or name_of(model)
    check_section(options.weights_section, options.blob)
    check_wrappers(options.wrappers)
    packages = []
    for target, asked in zip(targets, options.target.split(","), strict=True):
        own = replace(options, name=variant_name(name, target), target=asked, blob=EXTERNAL)
        own = replace(own, weights_section="", wrappers=())
        packages.append(compile(model, own))
    carried = (options.blob, options.weights_section)
    return packages, dispatched(packages, targets, name, c_prefix(name), *carried, options.wrappers)


@stage("compile")
def compile_graph(graph: Graph, options: Options, name: str) -> Package:
    """Compiles a graph that is already loaded (and changes it)."""
    name = readable(name)
    manager = pass_manager(options, graph.facts_known)
    context = manager.context
    interface = graph.interface
    graph.updatable = options.updatable
    observe(graph, options.observe)
    call_functions(graph, options.functions)
    declare_states(graph, {**graph.states_of_file, **options.state})
    tensors = name_tensors(graph) if options.dump_values and not options.stream else {}
    manager.finished(GRAPH, graph, "load")
    streamed = None
    if options.stream:
        eliminate_dead(graph, context)
        graph, streamed = stream(graph, options.stream)
        eliminate_dead(graph, context)
        manager.finished(GRAPH, graph, "stream")
    give_forms(graph, options.inputs, options.outputs)
    turn_io(graph, channels_last(graph, options))
    schemes = io_schemes(graph)
    graph_passes, program_passes = chosen(options.optimize, options.without)
    manager.run(GRAPH, graph, graph_passes)
    size = GRAPH.size(graph)
    with stage("lower"):
        program = lower(graph)
    manager.finished(PROGRAM, program, "lower", size)
    manager.run(PROGRAM, program, program_passes)
    program.name = name
    target, pools = context.target, options.mem or context.target.separate_pools
    prefix, planner = c_prefix(name), _planner(options, target)
    with stage("plan_memory"):
        show = options.dump_values
        plan = plan_memory(program, context.registry, target, prefix, planner, options.keep_inputs, pools, show)
    check_addressable(plan, target)
    plan = plan.with_schemes(schemes)
    plan = replace(plan, sliced=options.slices, parallel=options.threads > 1, streamed=streamed)
    if context.target.prefer == Prefer.FLASH:
        plan = share_alike(plan)
    plan = look_inside(plan, options.profile, options.dump_values, tensors)
    moves = moves_left(program, context)
    if interface is not None:
        interface = interface.within({tensor.name for tensor in (*plan.inputs, *plan.outputs)})
    with stage("emit"):
        made = package(
            plan,
            manager.records,
            moves,
            __version__,
            graph.left_in_float,
            options.blob,
            interface,
            options.weights_section,
            to_json(options, without=_NOT_RECORDED),
            graph.assumed,
            options.wrappers,
            context.explanations if options.tuned is not None else None,
        )
    made = replace(made, explanations=tuple(context.explanations), estimate=estimate(program, plan, context))
    made = as_module(made, options.blob) if options.module else made
    return single_file(made) if options.single_file else made


def arrange(files: Mapping[str, bytes], layout: str, name: str, options: Options) -> Mapping[str, bytes]:
    """The files of a package, or of several models, as `layout` wants them; `name` is that of the whole."""
    found = layout_of(layout, options.blob, options.single_file, options.module)
    return arranged(files, found, c_prefix(name), __version__, options.blob == EXTERNAL)


def _planner(options: Options, target: Target) -> Planner:
    """The one asked for; else one that keeps workers out of each other's memory, or that needs the least of it."""
    apart = options.threads > 1 and target.prefer == Prefer.TIME
    return PLANNERS[options.planner or ("centred" if apart else "push-down")]


def pass_manager(options: Options, facts: frozenset[str] | None = None) -> PassManager:
    """A manager for the options, with what names passes and kernels checked. `facts`: see `compile`."""
    passes: list[GraphPass | ProgramPass] = [*GRAPH_PASSES, *PROGRAM_PASSES]
    names = {p.name for p in passes} | {"load", "stream", "lower", "all"}
    registry = Registry.load(options.kernels)
    for flag, given in (("--print-after", options.print_after), ("--without", options.without - registry.keys())):
        for wanted in sorted(given - names):
            is_kernel = "/" in wanted
            known = registry.keys() if is_kernel else names
            what = f"there is no {'kernel' if is_kernel else 'pass'} {wanted!r}"
            why = "" if is_kernel else f"the passes are {', '.join(sorted(names))}"
            raise WrongUse(Problem(what, flag, why, meant(wanted, known, flag)))
    for kept in sorted(p.name for p in passes if not p.optional and p.name in options.without):
        raise WrongUse(Problem(f"pass {kept!r} cannot be left out", "", "compiling needs it"))
    target = options.resolved_target()
    if options.tuned is not None:
        registry = registry.measured_by(measured_by(options.tuned, target, __version__))
    rows = options.rows == "auto" and target.prefer == Prefer.RAM and "form_rows" not in options.without
    context = Context(
        target,
        registry.but(options.without),
        options.keep_inputs,
        options.external,
        rows,
        options.threads,
        options.weights_dtype,
        options.updatable,
        facts,
        options.enough,
        options.balanced,
    )
    return PassManager(context, options.print_after, options.dump)
