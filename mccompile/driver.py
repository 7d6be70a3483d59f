"""From a model to a package of C files, in stages:

    load -> [graph passes] -> lower -> [program passes] -> plan_memory -> emit

`compile` is everything the command line does. The order of passes stands in pipeline.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import __version__
from .base.errors import Problem, WrongUse
from .base.names import c_identifier
from .emit.package import Package, package
from .frontend.load import load
from .graph.ir import Graph, all_nodes
from .kernels.registry import Registry
from .memory.planners import PLANNERS
from .passes.api import GRAPH, PROGRAM, Context, PassManager
from .passes.lower import lower
from .passes.plan_memory import plan_memory
from .pipeline import GRAPH_PASSES, PROGRAM_PASSES, chosen
from .targets import api as target_api
from .targets.api import Target


@dataclass(frozen=True)
class Options:
    """Everything that can be asked for besides the model."""

    target: str = "generic"  # a name, or the path of a TOML file
    prefer: str = ""  # "ram", "time" or "flash"; empty: what the target prefers
    name: str = ""  # of the model, and prefix of all C names; empty: from the file's name
    dims: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # free dimensions by name: lowest and highest size
    shapes: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)  # of inputs by name
    optimize: bool = True
    without: frozenset[str] = frozenset()  # optional passes to leave out
    planner: str = "push-down"
    keep_inputs: bool = False
    kernels: tuple[Path, ...] = ()  # folders with kernels of the user's own
    print_after: frozenset[str] = frozenset()
    dump: Path | None = None

    def resolved_target(self) -> Target:
        target = target_api.load(self.target)
        return replace(target, prefer=self.prefer) if self.prefer else target


def compile(model: Path, options: Options = Options()) -> Package:
    """Compiles an ONNX file. The package knows its files; `Package.write` puts them into a folder."""
    graph = load(model, options.dims, options.shapes)
    return compile_graph(graph, options, options.name or model.stem)


def compile_graph(graph: Graph, options: Options, name: str) -> Package:
    """Compiles a graph that is already loaded (and changes it)."""
    manager = pass_manager(options)
    context = manager.context
    graph_passes, program_passes = chosen(options.optimize, options.without)
    manager.finished(GRAPH, graph, "load", sum(1 for _ in all_nodes(graph)))
    manager.run(GRAPH, graph, graph_passes)
    nodes = sum(1 for _ in all_nodes(graph))
    program = lower(graph)
    manager.finished(PROGRAM, program, "lower", nodes)
    manager.run(PROGRAM, program, program_passes)
    program.name = name
    plan = plan_memory(program, context.registry, context.target, c_identifier(name).lower(), PLANNERS[options.planner])
    return package(plan, [(r.name, r.nodes_before, r.nodes_after) for r in manager.records], __version__)


def pass_manager(options: Options) -> PassManager:
    """A manager for the options, with all of them checked."""
    names = {p.name for p in (*GRAPH_PASSES, *PROGRAM_PASSES)} | {"load", "lower", "all"}
    for wanted in sorted(options.print_after | options.without):
        if wanted not in names:
            raise WrongUse(Problem(f"there is no pass {wanted!r}", "", f"the passes are {', '.join(sorted(names))}"))
    for kept in sorted(p.name for p in (*GRAPH_PASSES, *PROGRAM_PASSES) if not p.optional and p.name in options.without):
        raise WrongUse(Problem(f"pass {kept!r} cannot be left out", "", "compiling needs it"))
    if options.planner not in PLANNERS:
        raise WrongUse(Problem(f"there is no planner {options.planner!r}", "", f"the planners are {', '.join(PLANNERS)}"))
    if options.prefer not in ("", "ram", "time", "flash"):
        raise WrongUse(Problem(f"cannot prefer {options.prefer!r}", "", "it can be ram, time or flash"))
    context = Context(options.resolved_target(), Registry.load(options.kernels), options.keep_inputs)
    return PassManager(context, options.print_after, options.dump)
