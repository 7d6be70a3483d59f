"""Ranges of what expressions give hold for every element, and choices without them give the same."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from mccompile.base.dtypes import DType, bool_, f32, i8, i32, i64
from mccompile.expr.evaluate import evaluate
from mccompile.expr.ir import Expr, apply, cast, index, literal, operand
from mccompile.expr.known import Known, known, open_ways, position, sums, unknown

GIVEN = (Known(-3, 5), Known(2, 2), Known(-2, inf, nan=True), Known(0, 1), Known(-1.5, 0.5))
TYPES: tuple[DType, ...] = (i32, i32, f32, bool_, f32)
SHAPE = (40,)


def drawn(chance: np.random.Generator, dtype: DType, depth: int) -> Expr:
    """An expression of that type over operands of GIVEN."""
    if depth == 0 or chance.random() < 0.1:
        if dtype is not bool_ and chance.random() < 0.3:
            return literal(int(chance.integers(-4, 5)), dtype)
        own = [number for number, each in enumerate(TYPES) if each is dtype]
        return operand(int(chance.choice(own)), dtype)

    def more(of: DType) -> Expr:
        return drawn(chance, of, depth - 1)

    if dtype is bool_:
        name = chance.choice(["less", "less_equal", "greater", "greater_equal", "equal", "not", "and", "or", "xor"])
        if name in ("not", "and", "or", "xor"):
            return apply(str(name), *(more(bool_) for _ in range(1 if name == "not" else 2)))
        of = (i32, f32)[int(chance.integers(2))]
        return apply("is_nan", more(f32)) if chance.random() < 0.1 else apply(str(name), more(of), more(of))
    if chance.random() < 0.4:
        return apply("select", more(bool_), more(dtype), more(dtype))
    if chance.random() < 0.3:
        return cast(more((bool_, i32)[int(chance.integers(2))]), dtype)
    names = ["add", "mul", "min", "max", "sub"] + (["neg", "abs", "mod", "div"] if dtype is i32 else [])
    name = str(chance.choice(names))
    return apply(name, *(more(dtype) for _ in range(1 if name in ("neg", "abs") else 2)))


@pytest.mark.parametrize("seed", range(300))
def test_every_element_is_within(seed: int) -> None:
    chance = np.random.default_rng(seed)
    expr = drawn(chance, (bool_, i32, f32)[seed % 3], 4)
    operands = [
        chance.integers(-3, 6, SHAPE).astype(np.int32),
        np.full(SHAPE, 2, np.int32),
        np.where(chance.random(SHAPE) < 0.2, np.nan, chance.integers(-2, 9, SHAPE)).astype(np.float32),
        chance.random(SHAPE) < 0.5,
        chance.uniform(-1.5, 0.5, SHAPE).astype(np.float32),
    ]
    found, values = known(expr, GIVEN, SHAPE), evaluate(expr, operands, SHAPE)
    numbers = values[~np.isnan(values)] if expr.dtype is f32 else values.astype(np.int64)
    assert found.nan or len(numbers) == len(values)
    assert all(found.low <= number <= found.high for number in numbers.tolist())
    simple, _ = open_ways(expr, GIVEN, SHAPE)
    np.testing.assert_array_equal(evaluate(simple, operands, SHAPE), values)


def test_a_choice_that_goes_one_way_is_none() -> None:
    place = operand(0, i64)
    wrapped = apply("select", apply("less", place, literal(0, i64)), apply("add", place, literal(9, i64)), place)
    assert open_ways(wrapped, [Known(0, 8, of=frozenset({"table"}))], (3,)) == (place, frozenset({"table"}))
    assert open_ways(wrapped, [Known(-1, 8)], (3,)) == (wrapped, frozenset())
    assert open_ways(cast(wrapped, i32), [Known(-9, -1)], (3,))[0] == cast(wrapped.args[1], i32)


def test_a_bool_in_memory_may_be_any_byte() -> None:
    given = [unknown(bool_)]
    assert known(cast(operand(0, bool_), i64), given, (2,)) == Known(0, 255)
    assert known(cast(apply("not", operand(0, bool_)), i64), given, (2,)) == Known(0, 1)


def test_what_leaves_its_type_may_be_anything() -> None:
    assert known(apply("add", operand(0, i8), operand(0, i8)), [Known(0, 64)], ()) == unknown(i8)
    assert sums(Known(0, 100), 2**30, i32) == unknown(i32) and sums(Known(-1, 3), 4, i32) == Known(-4, 12)
    assert sums(Known(0.0, 1e36), 100, f32).nan and not sums(Known(0.0, 1.0), 100, f32).nan


def test_positions_are_within_their_axis() -> None:
    assert known(index(1), [], (4, 7)) == position(7) == Known(0, 6)
