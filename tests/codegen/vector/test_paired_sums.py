"""Sums whose numbers come two at a time, as C for Cortex-M55: how many pairs there are, and where each number lies."""

from __future__ import annotations

import re

from mccompile.targets import api as targets
from tests.kernels import harness
from tests.kernels.test_matrix import KERNELS

M55 = targets.load("cortex-m55")


def text_of(id: str, case: str) -> str:
    kernel = KERNELS[id]
    cases = [each for each in kernel.cases() if each.name == case]
    return harness.printed(harness.trials(kernel, M55, cases)[0].function).text


def test_a_block_of_fewer_keys_has_fewer_pairs() -> None:
    text = text_of("attention/f32_rows_blocks__vec", "values_across")
    sums = re.findall(r"MCC_VEC_SUMS_[^;]*;", text)
    assert sums
    assert all("width / 2" in each for each in sums)


def test_the_second_number_of_a_point_lies_beside_its_first() -> None:
    text = text_of("attention/f32_rows_blocks__vec", "values_across")
    assert {"xp[0]", "xp[1]", "xp[70]", "xp[71]", "xp[140]", "xp[141]"} == set(re.findall(r"xp\[\d+\]", text))
