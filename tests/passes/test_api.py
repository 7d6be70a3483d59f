"""The pass manager: verified after every pass, recorded, printed and dumped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.errors import InternalError
from mccompile.graph.ir import Graph
from mccompile.graph.text import read, show
from mccompile.kernels.registry import Registry
from mccompile.ops.api import resolve
from mccompile.passes.api import GRAPH, Context, GraphPass, PassManager, Record, Size
from mccompile.passes.constants_file import read_constants
from mccompile.passes.graph.eliminate_dead import eliminate_dead
from mccompile.targets import api as targets

CONTEXT = Context(targets.load("generic"), Registry.load(()))
W = Constant.of(np.array([1, 2], np.float32))


def graph() -> Graph:
    text = """graph "g" {
        input %x: f32[2]
        const %w: f32[2] = #w
        %dead: f32[2] = Neg(%x) from "dead"
        %y: f32[2] = Add(%x, %w) from "y"
        output %y
    }"""
    return read(text, resolve, {"w": W})


def test_every_pass_leaves_a_record() -> None:
    manager = PassManager(CONTEXT)
    manager.run(GRAPH, graph(), [GraphPass("nothing", lambda g, c: None), GraphPass("dead", eliminate_dead)])
    found = [replace(record, seconds=0.0) for record in manager.records]
    assert found == [Record("nothing", Size(2, 0, 16), Size(2, 0, 16)), Record("dead", Size(2, 0, 16), Size(1, 0, 8))]


def test_a_pass_that_breaks_the_graph_is_named() -> None:
    def wreck(broken: Graph, context: Context) -> None:
        broken.outputs[0].name = "w"

    with pytest.raises(InternalError, match="graph 'g' is broken after wreck"):
        PassManager(CONTEXT).run(GRAPH, graph(), [GraphPass("wreck", wreck)])


@pytest.mark.parametrize(("names", "count"), [({"dead"}, 1), ({"all"}, 2), ({"other"}, 0)])
def test_what_a_pass_left_is_printed(names: set[str], count: int) -> None:
    printed: list[str] = []
    manager = PassManager(CONTEXT, names, out=printed.append)
    manager.run(GRAPH, graph(), [GraphPass("nothing", lambda g, c: None), GraphPass("dead", eliminate_dead)])
    assert len(printed) == count
    assert all(text.startswith("# after ") and 'graph "g" {' in text for text in printed)


def test_a_dump_reads_back_with_its_constants(tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    net = graph()
    manager = PassManager(CONTEXT, dump=folder)
    manager.finished(GRAPH, net, "load")
    manager.run(GRAPH, net, [GraphPass("dead", eliminate_dead)])
    assert sorted(path.name for path in folder.iterdir()) == [
        "00-load.graph.dot",
        "00-load.graph.txt",
        "01-dead.graph.dot",
        "01-dead.graph.txt",
        "constants.zip",
    ]
    text = (folder / "01-dead.graph.txt").read_text()
    again = read(text, resolve, read_constants(folder / "constants.zip"))
    assert show(again) == text == show(net)
    assert "digraph" in (folder / "00-load.graph.dot").read_text()
