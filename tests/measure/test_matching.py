"""Steps of two builds that do the same work find each other: by name, by nodes, by work in order."""

from __future__ import annotations

from typing import Any

import pytest

from mccompile.measure.matching import aligned, matched


def step(name: str, kernel: str = "conv/a__c", macs: int = 1) -> dict[str, Any]:
    return {"name": name, "kernel": kernel, "macs": macs}


def test_names_come_before_nodes() -> None:
    before = [step("a"), step("b + c"), step("a")]
    after = [step("c"), step("a"), step("a"), step("d")]
    assert matched(before, after) == {0: 1, 1: 0, 2: 2}


def test_work_in_order_joins_what_has_other_names() -> None:
    before = [step("a", macs=5), step("b", "pool/x__c", 0), step("c", macs=7), step("m", "map/x__c", 0)]
    after = [step("p", "map/x__c", 0), step("q", macs=5), step("r", "pool/y__dsp", 0), step("s", macs=7)]
    assert matched(before, after) == {}
    assert matched(before, after, by_work=True) == {0: 1, 1: 2, 2: 3}


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [("abcd", "bxd", [(1, 0), (3, 2)]), ("", "a", []), ("aaa", "aa", [(0, 0), (1, 1)]), ([None], [None], [])],
)
def test_the_longest_common_subsequence(before: Any, after: Any, wanted: list[tuple[int, int]]) -> None:
    assert aligned(before, after) == wanted
