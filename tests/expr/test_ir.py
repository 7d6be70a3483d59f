"""Expressions as keys: equal ones have equal hashes, in whatever process they are read."""

from __future__ import annotations

import pickle

from mccompile.base.dtypes import f32
from mccompile.expr.ir import apply, literal, operand

SUM = apply("add", operand(0, f32), literal(2, f32))


def test_equal_expressions_are_one_key() -> None:
    assert len({SUM, apply("add", operand(0, f32), literal(2, f32)), apply("sub", *SUM.args)}) == 2


def test_hashes_are_not_pickled() -> None:
    """Another process hashes strings to other numbers."""
    hash(SUM)
    read = pickle.loads(pickle.dumps(SUM))
    assert read == SUM and vars(read).keys() < vars(SUM).keys()
