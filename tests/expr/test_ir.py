"""Expressions as keys: equal ones have equal hashes, in whatever process they are read."""

from __future__ import annotations

import pickle

from mccompile.base.dtypes import f16, f32
from mccompile.expr.ir import apply, cast, literal, operand, rebuild

SUM = apply("add", operand(0, f32), literal(2, f32))


def test_equal_expressions_are_one_key() -> None:
    assert len({SUM, apply("add", operand(0, f32), literal(2, f32)), apply("sub", *SUM.args)}) == 2


def test_hashes_are_not_pickled() -> None:
    """Another process hashes strings to other numbers."""
    hash(SUM)
    read = pickle.loads(pickle.dumps(SUM))
    assert read == SUM and vars(read).keys() < vars(SUM).keys()


def test_floats_that_are_widened_and_narrowed_again_are_what_they_were() -> None:
    narrow, wide = operand(0, f16), operand(0, f32)
    assert cast(cast(narrow, f32), f16) is narrow
    assert rebuild(cast(wide, f16), lambda node: cast(narrow, f32) if node is wide else None) is narrow


def test_rounding_to_fewer_bits_stays() -> None:
    rounded = cast(operand(0, f32), f16)
    assert cast(rounded, f32) != operand(0, f32)
