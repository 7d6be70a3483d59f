"""Before and after: a pass on a graph written as text, compared with the text that is expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.graph.ir import Graph
from mccompile.graph.text import read, show
from mccompile.graph.verify import verify
from mccompile.kernels.registry import Registry
from mccompile.ops.api import resolve
from mccompile.passes.api import Context
from mccompile.targets import api as targets

Run = Callable[[Graph, Context], None]
Check = Callable[..., Graph]


@pytest.fixture
def context() -> Context:
    return Context(targets.load("generic"), Registry.load(()))


@pytest.fixture
def check(context: Context) -> Check:
    """check(run, before, expected, name=array ...): constants are written `#name` in both texts."""

    def check(run: Run, before: str, expected: str, **arrays: np.ndarray) -> Graph:
        graph = parse(before, arrays)
        verify(graph)
        run(graph, context)
        verify(graph, "the pass")
        assert show(graph) == show(parse(expected, arrays))
        return graph

    return check


def parse(text: str, arrays: Mapping[str, np.ndarray]) -> Graph:
    constants = {name: Constant.of(np.asarray(array)) for name, array in arrays.items()}
    return read(f'graph "g" {{\n{text}\n}}', resolve, constants)
