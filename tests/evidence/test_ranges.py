"""Certificates of integers, and their checker."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from embedded.models import quantized
from mccompile.base.dtypes import i8, i32, i64, u8
from mccompile.driver import Options
from mccompile.evidence import check_ranges
from mccompile.evidence.folder import checked, checked_ranges
from mccompile.evidence.ranges import inexact
from mccompile.expr import intervals
from mccompile.expr.functions import FUNCTIONS
from tests import small_models
from tests.evidence import mutate
from tests.evidence.range_changes import OF_RANGES

SMALL = [(-5, 3), (2, 7), (-9, -4), (0, 0)]


@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
def test_broken_certificates_are_rejected(target: str) -> None:
    good, problems = certificate(Options(target=target))
    assert problems(good) == []
    bad = mutate.broken(good, 1000, changes=OF_RANGES)
    assert [name for name, each in bad if not problems(each)] == []


def certificate(options: Options) -> tuple[dict[str, Any], Callable[[dict[str, Any]], list[str]]]:
    package = small_models.compiled(quantized(), options)
    memory, blob = checked(package), package.files[f"{package.plan.prefix}.mcb"]
    return checked_ranges(package, memory), lambda found: check_ranges.check(found, memory, blob)


def test_integers_of_a_quantized_network_are_exact() -> None:
    good, _ = certificate(Options(target="cortex-m4"))
    assert inexact(good) == [] and any(step["sum"] for step in good["steps"])
    assert {o["from"] for step in good["steps"] for o in step["operands"]} == {"type", "blob", "packed"}


def test_another_number_in_the_blob_is_found() -> None:
    package = small_models.compiled(quantized())
    memory = checked(package)
    good, blob = checked_ranges(package, memory), bytearray(package.files[f"{package.plan.prefix}.mcb"])
    bias = next(o for step in good["steps"] for o in step["operands"] if o["from"] == "blob" and o["dtype"] == "i32")
    begin = int.from_bytes(blob[32:40], "little") + bias["low"]
    blob[begin : begin + 4] = np.int32(2**31 - 1).tobytes()
    assert "out of its range" in check_ranges.check(good, memory, bytes(blob))[0]


def test_what_may_overflow_is_told() -> None:
    nodes = [small_models.node("Mul", "x x", "m"), small_models.node("BitShift", "m x", "y", direction="LEFT")]
    model = small_models.model("wide", nodes, [("x", [3])], [("y", [3])])
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.elem_type = 12  # uint32
    package = small_models.compiled(model)
    (line,) = inexact(checked_ranges(package, checked(package)))
    assert line.endswith("mul, shift_left")


@pytest.mark.parametrize("function", ["add", "sub", "mul", "min", "max", "neg", "abs", "shift_right", "saturate_i8"])
def test_an_interval_is_what_the_function_gives_and_no_more(function: str) -> None:
    count = FUNCTIONS[function].arity
    for ranges in itertools.product(SMALL, repeat=count):
        if function.startswith("shift") and ranges[1][0] < 0:
            continue
        found, exact = intervals.applied(function, ranges, i32)
        values = itertools.product(*(range(low, high + 1) for low, high in ranges))
        all_of = [int(FUNCTIONS[function].numpy(*map(np.int32, each))) for each in values]
        assert exact and found == (min(all_of), max(all_of))
        theirs = check_ranges.mathematical(function, [list(pair) for pair in ranges], check_ranges.TYPES["i32"])
        assert theirs == found


@pytest.mark.parametrize("seed", range(20))
def test_sums_hold_in_any_order_and_with_padding(seed: int) -> None:
    chance = np.random.default_rng(seed)
    a, b, a_zero, b_zero = (tuple(sorted(map(int, chance.integers(-128, 128, 2)))) for _ in range(4))
    low, high, most = intervals.sum_range(6, a, b, a_zero, b_zero)
    draws = [chance.integers(pair[0], pair[1] + 1, 6) for pair in (a, b)]
    zeros = [int(chance.integers(pair[0], pair[1] + 1)) for pair in (a_zero, b_zero)]
    terms = (draws[0] - zeros[0]) * (draws[1] - zeros[1])
    terms[: chance.integers(0, 6)] = 0
    assert low <= terms.sum() <= high
    raw = [*(draws[0] * draws[1]), *(-zeros[0] * draws[1])]
    assert max(abs(np.cumsum(raw))) <= most and max(abs(np.cumsum(terms))) <= most


def test_rounding_and_high_products_are_within() -> None:
    assert intervals.applied("high_sum", [(5, 9), (-(2**31), 3), (0, 2**31 - 1)], i32) == ((5 - 2**30, 10), True)
    assert intervals.applied("fixed_round", [(0, 1000), (64 + 3, 64 + 3)], i32) == ((-1, 125), True)
    assert intervals.applied("fixed_round", [(0, 1000), (0, 200)], i32) == (intervals.of_type(i32), False)
    assert intervals.applied("shift_even", [(-9, 28), (3, 3)], i32) == ((-2, 4), True)
    assert intervals.applied("shift_even", [(0, 2**31 - 4), (3, 3)], i32) == (intervals.of_type(i32), False)
    assert intervals.applied("shift_left", [(1, 1), (0, 32)], i32) == (intervals.of_type(i32), False)
    assert intervals.converted((-3, 200), i8) == ((-128, 127), False)
    assert intervals.converted((0, 200), u8) == ((0, 200), True)
    assert intervals.applied("div", [(0, 1), (0, 1)], i64) == (intervals.of_type(i64), None)
