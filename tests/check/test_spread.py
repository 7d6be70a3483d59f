"""Which differences lie within the rounding spread of a reference, and which do not."""

from __future__ import annotations

from mccompile.check.compare import Comparison
from mccompile.check.spread import spread


def distance(mismatches: int, excess: float, why: str = "") -> Comparison:
    return Comparison("y", 0.0, 0.0, mismatches, why, excess)


OWN = [[distance(4, 3.0), distance(0, 0.5)], [distance(1, 5.0), distance(1, 0.1)]]


def covers(*found: Comparison) -> bool:
    made = spread("y", found, OWN)
    assert made is not None and made.sets == 2 and (made.own.mismatches, made.own.excess) == (4, 5.0)
    return made.covers


def test_as_far_as_the_reference_is_from_itself() -> None:
    assert covers(distance(5, 9.0), distance(3, 0.1))


def test_more_elements_than_the_reference_moves() -> None:
    assert not covers(distance(5, 2.0), distance(4, 2.0))


def test_further_than_the_reference_moves() -> None:
    assert not covers(distance(1, 11.0), distance(0, 0.0))


def test_other_shapes_are_wrong_and_others_of_other_shapes_say_nothing() -> None:
    assert spread("y", [distance(1, 1.0, "it is f32[2]")], OWN) is None
    assert spread("y", [distance(1, 1.0)], [[distance(1, 1.0, "it is f32[2]")], []]) is None
