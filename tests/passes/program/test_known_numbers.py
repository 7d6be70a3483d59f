"""Exponents and shifts that are constants become part of the expression; that they have this value is a fact."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.kernels.registry import Registry
from mccompile.passes.api import Context, Training
from mccompile.passes.program.known_numbers import known_numbers
from mccompile.program.ir import Program
from mccompile.program.text import read, show
from mccompile.program.verify import verify
from mccompile.targets import api as targets


def after(
    expr: str, number: np.ndarray, training: Training | None = None, dtype: str = "f32", step: int = 0
) -> Program:
    constant = Constant.of(number)
    text = f"""program "p" {{
  input "x" %x: {dtype}[4]
  const %e: {constant.type} = #{constant.digest}
  buffer %y: {dtype}[4] from "y"
  call Map(expr=@{expr}) (%x, %e[4 by {step} at 0]) -> (%y) from "y"
  output "y" %y
}}
"""
    program = read(text, {constant.digest: constant})
    verify(program, "reading")
    known_numbers(program, Context(targets.load("generic"), Registry.load(), training=training or Training()))
    verify(program, "known_numbers")
    return program


POW = "pow(x0.f32, x1.f32)"


def test_an_exponent_is_a_product_and_a_fact() -> None:
    program = after(POW, np.array([2], np.float32))
    assert "Map(expr=@mul(x0.f32, x0.f32)) (%x)" in show(program)
    assert list(program.assumptions) == ["e is 2"]


def test_shifts_are_numbers() -> None:
    program = after("shift_right(x0.u8, x1.u8)", np.array([3], np.uint8), dtype="u8")
    assert "shift_right(x0.u8, u8(3))" in show(program)
    assert list(program.assumptions) == ["e is 3"]


@pytest.mark.parametrize(
    ("expr", "number", "training", "step"),
    [
        (POW, [2.5], Training(), 0),
        (POW, [2], Training(updatable=True), 0),
        (POW, [2], Training(facts_known=frozenset({"e is 3"})), 0),
        (POW, [2, 2, 2, 2], Training(), 1),
        ("mul(x0.f32, x1.f32)", [2], Training(), 0),
    ],
    ids=["no form", "updatable", "other code", "several", "mul"],
)
def test_others_stay_operands(expr: str, number: list[float], training: Training, step: int) -> None:
    program = after(expr, np.array(number, np.float32), training, step=step)
    assert f"@{expr}" in show(program) and not program.assumptions


def test_an_operand_that_is_read_elsewhere_stays() -> None:
    program = after(f"add({POW}, x1.f32)", np.array([3], np.float32))
    assert "add(mul(mul(x0.f32, x0.f32), x0.f32), x1.f32)" in show(program)
    assert list(program.assumptions) == ["e is 3"]
