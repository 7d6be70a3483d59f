"""Operations on floats cost what the library takes where a core has no FPU."""

from __future__ import annotations

import pytest

from mccompile.base.dtypes import DType, f32, f64, i8, i32
from mccompile.expr.ir import Expr, apply, cast, operand
from mccompile.kernels.soft_floats import soft_floats
from mccompile.kinds.gemm import Gemm
from mccompile.kinds.map import Map
from mccompile.kinds.pool import Pool
from mccompile.kinds.random import Random
from mccompile.program.ir import Buffer, Call
from mccompile.targets import api as targets


def doubled(dtype: DType) -> Expr:
    return apply("add", operand(0, dtype), operand(0, dtype))


def mapped(expr: Expr, dtype: DType) -> Call:
    return Call(Map(expr), (Buffer("x", dtype, (10,)).whole(),), (Buffer("y", expr.dtype, (10,)).whole(),))


@pytest.mark.parametrize(
    ("expr", "dtype", "operations"),
    [
        (doubled(f32), f32, 10),
        (cast(doubled(f32), i32), f32, 13),  # a conversion takes three tenths
        (apply("max", doubled(f32), operand(0, f32)), f32, 11),
        (doubled(i32), i32, 0),
        (operand(0, f32), f32, 0),
    ],
)
def test_each_operation_on_floats_is_a_call(expr: Expr, dtype: DType, operations: int) -> None:
    target = targets.load("cortex-m0")
    assert soft_floats(mapped(expr, dtype), target) == pytest.approx(operations * target.machine.soft_float)


def test_quantizing_takes_a_division_and_little_else() -> None:
    target = targets.load("cortex-m0")
    quotient = apply("div", operand(0, f32), operand(1, f32))
    zero = cast(operand(2, i8), f32)
    x, y = Buffer("x", f32, (10,)).whole(), Buffer("y", i8, (10,)).whole()
    scale, point = (Buffer(name, dtype, (1,)).whole() for name, dtype in (("scale", f32), ("point", i8)))
    expr = cast(apply("add", apply("round_even", quotient), zero), i8)
    call = Call(Map(expr), (x, scale.broadcast_to((10,)), point.broadcast_to((10,))), (y,))
    machine = target.machine
    assert 10 * machine.soft_divide < soft_floats(call, target) < 10 * (machine.soft_divide + machine.soft_float)


def test_products_of_floats_are_two_calls() -> None:
    a, b, y = (Buffer(name, f32, shape).whole() for name, shape in (("a", (2, 3)), ("b", (3, 5)), ("y", (2, 5))))
    target = targets.load("cortex-m0")
    call = Call(Gemm(f32), (a, b), (y,))
    assert soft_floats(call, target) == 2 * 30 * target.machine.soft_float


def test_drawn_numbers_are_no_operands_of_the_call() -> None:
    target = targets.load("cortex-m0")
    call = Call(Random(True, 1, cast(operand(0, f64), f32)), (), (Buffer("y", f32, (10,)).whole(),))
    assert soft_floats(call, target) == 10 * target.machine.soft_float


def test_sums_are_no_operands_of_the_call() -> None:
    """Each is converted, also where all elements of the first operand are one."""
    target = targets.load("cortex-m0")
    a, b = Buffer("a", i8, (1, 1)).whole().broadcast_to((2, 3)), Buffer("b", i8, (3, 5)).whole()
    call = Call(Gemm(i32, epilogue=cast(operand(0, i32), f32)), (a, b), (Buffer("y", f32, (2, 5)).whole(),))
    assert soft_floats(call, target) == 10 * target.machine.soft_float


def test_each_float_of_a_window_is_added_by_a_call() -> None:
    x, y = Buffer("x", f32, (1, 4, 6, 6)).whole(), Buffer("y", f32, (1, 4, 1, 1)).whole()
    call = Call(Pool("average", (6, 6), (1, 1), (1, 1), (0,) * 4, (), f32), (x,), (y,))
    target = targets.load("cortex-m0")
    assert soft_floats(call, target) == 4 * 36 * target.machine.soft_float


def test_an_fpu_needs_no_library() -> None:
    assert soft_floats(mapped(doubled(f32), f32), targets.load("cortex-m4")) == 0
