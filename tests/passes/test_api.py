"""The pass manager: verified after every pass, recorded, printed and dumped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dtypes import f32
from mccompile.base.errors import InternalError
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Graph, Value
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


def test_what_a_pass_left_alone_is_not_verified_again() -> None:
    """Only a graph that is seen for the first time, or that has changed."""
    seen: list[str] = []
    stage = replace(GRAPH, verify=lambda graph, name: seen.append(name))
    steps = [
        GraphPass("nothing", lambda g, c: None),
        GraphPass("dead", eliminate_dead),
        GraphPass("again", eliminate_dead),
    ]
    manager, net = PassManager(CONTEXT), graph()
    manager.finished(stage, net, "load")
    manager.run(stage, net, steps)
    assert seen == ["load", "dead"]
    manager.run(stage, graph(), steps[:1])
    assert seen == ["load", "dead", "nothing"]


def rename(net: Graph) -> None:
    net.outputs[0].name = "w"


def forget_use(net: Graph) -> None:
    net.inputs[0].uses.popitem()


def forget_producer(net: Graph) -> None:
    net.outputs[0].producer = None


def retype(net: Graph) -> None:
    net.outputs[0].fact = Fact(TensorType(f32, (3,)))


def read_what_is_not_made(net: Graph) -> None:
    node = [*net.nodes][-1]
    net.set_input(node, 1, Value("nobody's", node.output.fact))


def swap(net: Graph) -> None:
    first, last = net.nodes
    net.remove(first)
    net.remove(last)
    net.add(last)
    net.outputs.append(first.output)


@pytest.mark.parametrize("wreck", [rename, forget_use, forget_producer, retype, read_what_is_not_made, swap])
def test_every_change_is_seen(wreck: Callable[[Graph], None]) -> None:
    manager, net = PassManager(CONTEXT), graph()
    manager.finished(GRAPH, net, "load")
    with pytest.raises(InternalError, match="graph 'g' is broken after wreck"):
        manager.run(GRAPH, net, [GraphPass("wreck", lambda broken, context: wreck(broken))])


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
