"""Bottlenecks as single calls: the same integers, with as many multiply-accumulates as were expected."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto

from mccompile.emit.package import Package
from mccompile.measure.correctness import build
from mccompile.targets import api as targets
from tests.passes.graph import exact_qdq
from tests.passes.graph.tile_columns.test_tile_columns import package
from tests.passes.program.before_after import after, calls
from tests.passes.qdq_graphs import BLOCKS, Net, network, some_integers
from tests.thorough import some

CONV, BOTTLENECK = BLOCKS.index(Net.conv), BLOCKS.index(Net.bottleneck)


def kinds(found: Package) -> list[str]:
    return [step.function.call.kind.name for step in found.plan.steps()]


def model(seed: int) -> ModelProto:
    return network(seed, [BOTTLENECK, CONV, BOTTLENECK], widest=8)


@some(2, "seed", range(6))
def test_integers_are_exact(seed: int) -> None:
    made = model(seed)
    inputs, plain = some_integers(made), package(made)
    costs = [cost for cost in package(made, recompute=16.0).column_tiles if cost.column_tiles.rows]
    assert {cost.column_tiles.rows for cost in costs} == {1, 2} and 1 in {cost.column_tiles.count for cost in costs}
    for cost in costs[:: max(1, len(costs) // 6)]:
        found = package(made, column_tiles=(cost.column_tiles,))
        assert (
            "bottleneck" in kinds(found) or cost.column_tiles.count > 1
        )  # tiles that are alike share what is in front
        assert found.macs <= plain.macs + max(cost.macs, 0), cost.column_tiles  # less where taps meet only padding
        got = build(found, targets.load("generic")).run(inputs)
        for name, array in exact_qdq.run(made, inputs).items():
            np.testing.assert_array_equal(got[name], array, str(cost.column_tiles))


def test_more_rows_at_a_time_compute_less() -> None:
    costs = [cost for cost in package(model(1), recompute=16.0).column_tiles if cost.column_tiles.count == 1]
    by_rows = {(cost.column_tiles.first, cost.column_tiles.last, cost.column_tiles.rows): cost for cost in costs}
    for (first, last, rows), cost in by_rows.items():
        if rows == 2 and (first, last, 1) in by_rows:
            assert cost.macs <= by_rows[first, last, 1].macs


def test_nothing_happens_unasked() -> None:
    text = """program "p" {
      input "x" %x: i32[1,4,6,6]
      const %w: i32[8,4,1,1] = #aaaa
      const %v: i32[8,1,3,3] = #bbbb
      const %u: i32[4,8,1,1] = #cccc
      buffer %a: i32[1,8,6,6]
      buffer %b: i32[1,8,6,6]
      buffer %y: i32[1,4,6,6]
      call Conv(strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), group=1, accumulator=i32) (%x, %w) -> (%a)
      call Conv(strides=(1, 1), dilations=(1, 1), pads=(1, 1, 1, 1), group=8, accumulator=i32) (%a, %v) -> (%b) from "d"
      call Conv(strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), group=1, accumulator=i32) (%b, %u) -> (%y)
      output "y" %y
    }"""
    assert len(calls(after("fuse_bottlenecks", text))) == 3
    (fused,) = calls(after("fuse_bottlenecks", text, bottlenecks={frozenset({"d"}): 2}))
    assert fused.startswith("call Bottleneck(") and "counts=(1, 1), rows=2) (%x, %w, %v, %u) -> (%y)" in fused
    read = text.replace('output "y" %y', 'output "y" %y output "b" %b')
    assert len(calls(after("fuse_bottlenecks", read, bottlenecks={frozenset({"d"}): 2}))) == 3
