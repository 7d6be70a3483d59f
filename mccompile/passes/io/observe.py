"""observe: inner tensors of the model made outputs, for `--observe`."""

from __future__ import annotations

from ...base.errors import Problem, WrongUse, raise_all
from ...base.near import meant
from ...graph.ir import Graph


def observe(graph: Graph, names: tuple[str, ...]) -> None:
    """Makes inner tensors outputs."""
    found = {value.name: value for value in graph.values()}
    unknown = [name for name in names if name not in found]
    problems = []
    for name in unknown:
        fix = meant(name, found, "--observe") or 'name one that `mccompile opt MODEL --passes ""` shows'
        problems.append(Problem(f"there is no tensor {name!r} to observe", graph.name, "", fix))
    raise_all(WrongUse, problems)
    graph.outputs += [found[name] for name in names if not graph.is_output(found[name])]
