"""Answers about an expression are found once per object: equal ones may differ in the sign of a zero."""

from __future__ import annotations

import gc

from mccompile.base.dtypes import f32
from mccompile.expr.ir import Expr, Literal, apply, literal, operand
from mccompile.expr.itself import KEPT, asked_once
from mccompile.expr.scalar_c import literal_c


def scaled(value: float) -> Expr:
    return apply("mul", operand(0, f32), literal(value, f32))


def value_of(expr: Expr) -> float:
    factor = expr.args[1]
    assert isinstance(factor, Literal)
    return float(factor.value)


def test_the_same_object_is_looked_at_once_for_each_further_argument() -> None:
    asked: list[int] = []

    @asked_once
    def question(expr: Expr, number: int) -> int:
        asked.append(number)
        return number

    one = scaled(2.0)
    assert [question(one, 1), question(one, 1), question(one, 2), question(one, 1)] == [1, 1, 2, 1]
    assert asked == [1, 2]


def test_equal_expressions_keep_their_own_answers() -> None:
    factor = asked_once(lambda expr: literal_c(value_of(expr), f32))
    zero, minus = scaled(0.0), scaled(-0.0)
    assert zero == minus
    assert [factor(zero), factor(minus), factor(zero)] == ["0.0f", "-0.0f", "0.0f"]


def test_objects_that_are_gone_answer_for_no_others() -> None:
    value = asked_once(value_of)
    for number in range(2, 2 * KEPT):
        assert value(scaled(float(number))) == number
        gc.collect(0)
