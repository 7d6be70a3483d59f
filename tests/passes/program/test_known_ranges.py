"""Indices that lie inside are not clamped, and init checks what that rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.kernels.registry import Registry
from mccompile.passes.api import Context, Training
from mccompile.passes.program.known_ranges import known_ranges
from mccompile.program.ir import Program
from mccompile.program.text import read, show
from mccompile.program.verify import verify
from mccompile.targets import api as targets


def after(lines: str, constants: Mapping[str, np.ndarray], training: Training | None = None) -> Program:
    """With inputs %x: f32[3], %n: i64[1] and %flag: bool[1], and a result of one float."""
    held = {name: Constant.of(array) for name, array in constants.items()}
    declared = "".join(f"  const %{name}: {each.type} = #{each.digest}\n" for name, each in held.items())
    text = f"""program "p" {{
  input "x" %x: f32[3]
  input "n" %n: i64[1]
  input "flag" %flag: bool[1]
{declared}  buffer %class: i64[1]
  buffer %b: i64[1]
  buffer %place: i64[1]
  buffer %y: f32[1]
{lines}
  output "y" %y
}}
"""
    program = read(text, {each.digest: each for each in held.values()})
    verify(program, "reading")
    known_ranges(program, Context(targets.load("generic"), Registry.load(), training=training or Training()))
    verify(program, "known_ranges")
    assert show(read(show(program), {each.digest: each for each in held.values()})) == show(program)
    return program


CHOSEN = """  call ArgReduce(axis=0, largest=true) (%x) -> (%class)
  call Gather(axes=(-1,)) (%base, %class) -> (%b)
  call Map(expr=@add(x0.i64, i64(1))) (%b) -> (%place)
  call Gather(axes=(-1,)) (%table, %place) -> (%y)"""
BASE = np.array([4, 1, 2])


def table(size: int) -> dict[str, np.ndarray]:
    return {"base": BASE, "table": np.arange(size, dtype=np.float32)}


def test_indices_that_are_inside_are_taken_as_they_are() -> None:
    program = after(CHOSEN, table(6))
    assert show(program).count("in_range=true") == 2
    assert list(program.assumptions) == ["base holds values from 0 to 4"]
    assert "within 0 to 4" in show(program)


@pytest.mark.parametrize(
    ("size", "training"),
    [
        (5, Training()),
        (6, Training(updatable=True)),
        (6, Training(facts_known=frozenset({"base holds values from 0 to 3"}))),
    ],
    ids=["too small", "updatable", "other code"],
)
def test_others_are_clamped(size: int, training: Training) -> None:
    program = after(CHOSEN, table(size), training)
    assert show(program).count("in_range=true") == 1  # ArgMax rests on no number
    assert not program.assumptions and "within" not in show(program)


def test_code_that_exists_keeps_its_ranges() -> None:
    """Constants that lie inside are as good, whatever their own range is, and each is judged by itself."""
    asked = frozenset({"base holds values from 0 to 5", "other holds values from 0 to 1"})
    lines = f"""  buffer %most: i64[1]
  call Gather(axes=(-1,)) (%other, %n) -> (%most)
{CHOSEN.replace("add(x0.i64, i64(1))) (%b)", "min(x0.i64, x1.i64)) (%b, %most)")}"""
    inside = after(lines, {**table(6), "other": np.array([1, 0])}, Training(facts_known=asked))
    assert show(inside).count("in_range=true") == 2 and set(inside.assumptions) == asked
    outside = after(lines, {**table(6), "other": np.array([2, -1])}, Training(facts_known=asked))
    assert show(outside).count("in_range=true") == 1
    assert list(outside.assumptions) == ["base holds values from 0 to 5"]


@pytest.mark.parametrize(
    ("index", "inside"),
    [
        ("call Map(expr=@min(max(x0.i64, i64(0)), i64(4))) (%n) -> (%place)", True),
        ("call Map(expr=@max(x0.i64, i64(0))) (%n) -> (%place)", False),
        ("call Map(expr=@to.i64(not(x0.bool))) (%flag) -> (%place)", True),
        ("call Map(expr=@to.i64(x0.bool)) (%flag) -> (%place)", False),  # whoever calls may write any byte
    ],
)
def test_a_range_comes_from_expressions(index: str, inside: bool) -> None:
    program = after(f"  {index}\n  call Gather(axes=(-1,)) (%table, %place) -> (%y)", table(5))
    assert ("in_range=true" in show(program)) == inside


def test_axes_that_no_index_picks_are_taken_as_they_are() -> None:
    """They are more than there are operands."""
    lines = """  buffer %picked: f32[1,1,1,3]
  call ArgReduce(axis=0, largest=true) (%x) -> (%class)
  call Gather(axes=(0,1,-1,3)) (%table, %class[1,1,1,3 by 0,0,0,0 at 0]) -> (%picked)
  call Gather(axes=(-1,)) (%picked[3 by 1 at 0], %class) -> (%y)"""
    program = after(lines, {"table": np.ones((1, 1, 3, 3), np.float32)})
    assert show(program).count("in_range=true") == 2


def test_an_index_from_the_end_that_there_never_is_is_not_asked_for() -> None:
    wrapped = "select(less(x0.i64, i64(0)), add(x0.i64, x1.i64), x0.i64)"
    lines = f"""  call Gather(axes=(-1,)) (%base, %n) -> (%b)
  call Map(expr=@{wrapped}) (%b, %size) -> (%place)
  call Gather(axes=(-1,)) (%table, %place) -> (%y)"""
    program = after(lines, {**table(5), "size": np.array([5])})
    assert "call Map(expr=@x0.i64) (%b) -> (%place)" in show(program)


@pytest.mark.parametrize(("numbers", "only"), [([1, 2, 3], True), ([1, np.nan, 3], False), ([1, np.inf, 3], False)])
def test_numbers_of_constants_are_compared_as_such(numbers: list[Any], only: bool) -> None:
    lines = """  call Gather(axes=(-1,)) (%table, %n[3 by 0 at 0]) -> (%y)
  call ArgReduce(axis=0, largest=true) (%y) -> (%class)
  output "class" %class"""
    made = {"table": np.array(numbers, np.float32)}
    text = lines.replace("%y", "%z")
    program = after(f"  buffer %z: f32[3]\n{text}\n  call Map(expr=@to.f32(x0.i64)) (%class) -> (%y)", made)
    assert ("only_numbers=true" in show(program)) == only


def test_a_number_that_a_loop_counts_up_is_not_its_first_one() -> None:
    lines = """  buffer %now: i64[1]
  buffer %next: i64[1]
  buffer %last: i64[1]
  call Map(expr=@x0.i64) (%first) -> (%now)
  loop step to 2 trips 3 carry %now, %next, %last {
    call Map(expr=@add(select(less(x0.i64, i64(1)), i64(7), x0.i64), i64(1))) (%now) -> (%next)
  }
  call Gather(axes=(-1,)) (%table, %last) -> (%y)"""
    program = after(lines, {**table(9), "first": np.array([0])})
    assert "select(less(x0.i64, i64(1))" in show(program) and not program.assumptions
    assert "in_range=true" not in show(program)
