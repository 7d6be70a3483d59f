"""Transposed convolutions as products that are folded: the same results, where no form with vectors is as quick."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.dtypes import DType, f32, i32, u8
from mccompile.base.names import Names
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.kinds.conv_transpose import ConvTranspose
from mccompile.measure.correctness import check
from mccompile.passes.program.folded_products import folded_products
from mccompile.program.ir import Call
from tests.passes.program.test_split_phases import BIASED, VECTORS, equal
from tests.small_models import floats, model, node, save

PICTURE = ConvTranspose((2, 3), (1, 2), (1, 0), (8, 15), 1, f32)


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("kind", "x", "w", "dtype"),
    [
        (PICTURE, (2, 3, 4, 5), (3, 4, 3, 2), f32),
        (replace(PICTURE, epilogue=BIASED), (2, 3, 4, 5), (3, 4, 3, 2), f32),
        (replace(PICTURE, group=2), (1, 4, 4, 5), (4, 3, 3, 2), f32),
        (ConvTranspose((1, 1, 2), (1, 1, 1), (0, 0, 1), (5, 3, 5), 1, f32), (2, 6, 3, 1, 2), (6, 1, 3, 3, 4), f32),
        (replace(PICTURE, accumulator=i32, x_zero=True), (1, 3, 4, 5), (3, 2, 3, 2), u8),
        (ConvTranspose((3,), (1,), (0,), (10,), 1, f32), (1, 2, 4), (2, 3, 1), f32),  # no tap reaches some results
    ],
)
def test_results_stay_what_they_are(
    kind: ConvTranspose, x: tuple[int, ...], w: tuple[int, ...], dtype: DType, last: bool, way: int
) -> None:
    def chosen(call: Call) -> list[Call]:
        ways = list(folded_products(call, Names()))
        return ways[way] if way < len(ways) else []

    assert equal(chosen, kind, x, w, last, dtype) or (way, kind.group) == (1, 2)


def _plan_of(x: tuple[int, ...], w: tuple[int, ...], target: str, folder: Path, prefer: str = "time") -> set[str]:
    rank = len(x) - 2
    y = (x[0], w[1], *(2 * (size - 1) + taps for size, taps in zip(x[2:], w[2:], strict=True)))
    nodes = [node("ConvTranspose", "x w b", "y", strides=[2] * rank)]
    made = model("net", nodes, [("x", x)], [("y", y)], {"w": floats(0, *w), "b": np.ones(w[1], np.float32)})
    options = Options(target=target, prefer=prefer)
    if target == "native":
        assert check(save(made, folder), options, runs=1).ok
    return {step.op for step in compile_graph(load_proto(made), options, "net").plan.steps()}


@VECTORS
def test_small_volumes_of_one_result_are_folded(tmp_path: Path) -> None:
    """Taps beyond the edges would be most of the work, one channel fills no vector."""
    assert {"gemm", "fold"} <= _plan_of((7, 96, 8, 1, 2), (96, 1, 4, 4, 4), "native", tmp_path)


@pytest.mark.parametrize(("target", "prefer"), [("x86-64-v3", "ram"), ("cortex-m4", "time"), ("generic", "time")])
def test_elsewhere_nothing_is_folded(target: str, prefer: str, tmp_path: Path) -> None:
    assert "fold" not in _plan_of((7, 96, 8, 1, 2), (96, 1, 4, 4, 4), target, tmp_path, prefer)
