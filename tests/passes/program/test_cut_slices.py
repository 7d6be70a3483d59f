"""cut_slices: steps that take longer than a slice may are cut, by a kernel that can be; what cannot be had is refused
with a number that can."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

from mccompile.base.errors import UnsupportedModel, WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.option_texts import max_slice
from mccompile.plan.ir import RowRegion
from tests.small_models import floats, model, node


def _dense(rows: int = 1) -> onnx.ModelProto:
    weights = {"w": floats(1, 128, 128), "v": floats(2, 128, 4)}
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h v", "y")]
    return model("dense", nodes, [("x", (rows, 128))], [("y", (rows, 4))], weights)


def _chain() -> onnx.ModelProto:
    nodes = [node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("Conv", "a w", "y", pads=[1, 1, 1, 1])]
    return model("chain", nodes, [("x", (1, 8, 32, 8))], [("y", (1, 8, 32, 8))], {"w": floats(1, 8, 8, 3, 3)})


def compiled(made: onnx.ModelProto, most: int, **more: object) -> Package:
    return compile_graph(load_proto(made), Options(max_slice=most, **more), made.graph.name)  # type: ignore[arg-type]


def test_only_what_takes_longer_is_cut() -> None:
    steps = [*compiled(_dense(), 5000, target="cortex-m4").plan.steps()]
    assert [len(step.cuts) > 3 for step in steps] == [True, False]
    (first, *_), last = steps[0].cuts, steps[0].cuts[-1]
    assert (first, last) == (0, 16)  # tiles of eight columns
    assert all(np.diff(steps[0].cuts) > 0)


@pytest.mark.parametrize("made", [_dense(), _chain()], ids=["dense", "chain"])
@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
def test_the_fix_of_a_refusal_works(made: onnx.ModelProto, target: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        compiled(made, 100, target=target)
    found = re.search(r"try --max-slice (\d+)", str(caught.value))
    assert found and int(found[1]) > 100
    assert compiled(made, int(found[1]), target=target).plan.sliced


@pytest.mark.parametrize(("most", "rows"), [(0, [4, 4]), (4000, [2, 4]), (1500, [1, 4])])
def test_a_chain_makes_fewer_rows_at_a_time(most: int, rows: list[int]) -> None:
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("MaxPool", "a", "y", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    weights = {"w": floats(1, 8, 2, 3, 3)}
    made = model("chain", nodes, [("x", (1, 2, 32, 8))], [("y", (1, 8, 16, 4))], weights)
    items = compiled(made, most, prefer="ram", enough=8000).plan.items
    (region,) = (item for item in items if isinstance(item, RowRegion))
    assert [stage.step for stage in region.stages] == rows


def test_workers_do_not_share_slices() -> None:
    with pytest.raises(WrongUse, match="does not go with --threads"):
        Options(max_slice=1000, threads=2)


def test_numbers_are_read_as_they_are_written() -> None:
    assert max_slice("50K") == 50_000
    with pytest.raises(ValueError, match="did you mean --max-slice 50K"):
        max_slice("max=50 K")
