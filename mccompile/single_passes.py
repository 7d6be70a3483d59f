"""Single passes by name, on a model or on the text of an IR: what `mccompile opt` runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .base.constant import Constant
from .base.errors import BadFile, Problem, WrongUse
from .base.names import readable
from .base.near import meant
from .driver import Options, pass_manager, read
from .graph import text as graph_text
from .graph.ir import Graph
from .ops.api import resolve
from .passes.api import GRAPH, PROGRAM
from .passes.constants_file import read_constants
from .passes.io.call_functions import call_functions
from .passes.io.observe import observe
from .passes.lower import lower
from .passes.memory.state import declare_states
from .passes.stream.rewrite import stream
from .pipeline import GRAPH_PASSES, PROGRAM_PASSES
from .program import text as program_text
from .program.ir import Program


def run_passes(
    file: Path, names: Sequence[str], options: Options, side_file: Path | None = None
) -> tuple[str, dict[str, Constant]]:
    """Runs passes by name on an ONNX file or on the text of a graph or a program (whose constants are in `side_file`,
    by default constants.zip beside it). Gives the text of the result and the constants it refers to."""
    manager = pass_manager(options)
    ir = _read(file, options, side_file)
    graph_passes = {p.name: p for p in GRAPH_PASSES}
    program_passes = {p.name: p for p in PROGRAM_PASSES}
    for name in names:
        if isinstance(ir, Graph) and name in graph_passes:
            manager.run(GRAPH, ir, [graph_passes[name]])
        elif isinstance(ir, Graph) and name == "lower":
            size = GRAPH.size(ir)
            ir = lower(ir)
            manager.finished(PROGRAM, ir, "lower", size)
        elif isinstance(ir, Program) and name in program_passes:
            manager.run(PROGRAM, ir, [program_passes[name]])
        else:
            known = [*graph_passes, "lower"] if isinstance(ir, Graph) else list(program_passes)
            kind = "graph" if isinstance(ir, Graph) else "program"
            early = name in program_passes and isinstance(ir, Graph)
            why = f"there are {', '.join(known)}"
            fix = f"did you mean lower,{name}?" if early else meant(name, known)
            fix = fix or f"name some of them, such as --passes {known[0]}"
            raise WrongUse(Problem(f"cannot run pass {name!r} on a {kind}", str(file), why, fix))
    if isinstance(ir, Graph):
        return GRAPH.show(ir), dict(GRAPH.constants(ir))
    return PROGRAM.show(ir), dict(PROGRAM.constants(ir))


def _read(file: Path, options: Options, side_file: Path | None) -> Graph | Program:
    """A model, or the text of an IR, told apart by how the file begins."""
    try:
        with file.open("rb") as opened:
            start = opened.read(64).lstrip()
    except OSError as error:
        raise BadFile(Problem(f"cannot read {file}", "", error.strerror or str(error))) from None
    if not start.startswith((b'graph "', b'program "')):
        graph = read(file, options)
        observe(graph, options.observe)
        call_functions(graph, options.functions)
        declare_states(graph, {**graph.states_of_file, **options.state}, options.cache_dtype)
        graph = stream(graph, options.stream)[0] if options.stream else graph
        GRAPH.verify(graph, "load")
        return graph
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        why = f"it is not UTF-8: {error}"
        raise BadFile(Problem(f"{readable(file.name)} is not text", readable(str(file)), why)) from None
    constants: dict[str, Constant] = {}
    if side_file is not None or file.with_name("constants.zip").is_file():
        constants = read_constants(side_file or file.with_name("constants.zip"))
    if start.startswith(b'program "'):
        program = program_text.read(text, constants, file.name)
        PROGRAM.verify(program, file.name)
        return program
    graph = graph_text.read(text, resolve, constants, file.name)
    GRAPH.verify(graph, file.name)
    return graph
