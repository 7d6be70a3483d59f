"""A convolution in tiles says of how many terms its runs are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mccompile.base.dtypes import f32
from mccompile.base.summation_error import ANY, SHORT, in_runs, plain, short_run
from mccompile.codegen.cases import conv_case
from mccompile.kernels.api import Call, Needs
from mccompile.kernels.registry import Registry
from mccompile.kinds.conv import Conv
from mccompile.targets import api as targets
from tests.kernels.harness import call_of

KERNEL = Registry.load()["conv/f32_nhwc_tile__vec"]
TARGET = targets.load("x86-64-v3")


def call(asked: int, inputs: int, *window: int) -> Call:
    kind = Conv((1, 1), (1, 1), (0, 0, 0, 0), 1, f32, rounding=asked)
    case = conv_case("runs", kind, (1, inputs, window[0] + 3, window[1] + 9), (16, inputs, *window))
    made = call_of(KERNEL, case)[0]
    needs = KERNEL.match(made, TARGET)
    assert isinstance(needs, Needs)
    return replace(made, blocks=needs.blocks)


@pytest.mark.parametrize(("inputs", "rows", "taps", "run"), [
    (64, 3, 3, 32),  # single taps: 64 inputs in 2 runs
    (5, 3, 3, 6),  # two inputs for three taps
    (2, 3, 3, 6),  # a row of taps
    (100, 1, 1, 8),
    (2, 1, 39, 2),  # taps of a row that are more than a run: each is one, however few its inputs are
])  # fmt: skip
def test_terms_of_a_run(inputs: int, rows: int, taps: int, run: int) -> None:
    assert KERNEL.rounding(call(SHORT, inputs, rows, taps)) == pytest.approx(in_runs(inputs * rows * taps, run))


def test_plain_sums_have_one_run() -> None:
    assert KERNEL.rounding(call(ANY, 64, 3, 3)) == plain(64 * 9)


def test_runs_of_one_term_are_worse_than_none() -> None:
    assert KERNEL.rounding(call(SHORT, 1, 1, 200)) > plain(200)


def test_runs_are_about_as_long_as_is_best() -> None:
    assert KERNEL.rounding(call(SHORT, 64, 3, 3)) == pytest.approx(in_runs(576, short_run(576)), rel=0.1)
