"""The verifier finds every way in which a pass could break a program."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_not

import pytest

import mccompile.program.verify as verifier
from mccompile.base.dtypes import f32
from mccompile.base.errors import InternalError
from mccompile.program.contents import contents
from mccompile.program.ir import Buffer, If, Overlap, Program, View
from mccompile.program.text import read
from mccompile.program.verify import verify

TEXT = """program "p" {
  input "x" %x: f32[4]
  buffer %a: f32[4]
  buffer %y: f32[8]
  buffer %b: f32[4]
  call Map(expr=@neg(x0.f32)) (%x) -> (%a)
  call Concat(axis=0) (%a, %x) -> (%y)
  call Map(expr=@add(x0.f32, x1.f32)) (%y[4 by 2 at 0], %a) -> (%b)
  output "y" %b
}
"""

IF = """program "p" {
  input "c" %c: bool[]
  input "x" %x: f32[4]
  buffer %y: f32[4]
  if %c {
    call Map(expr=@neg(x0.f32)) (%x) -> (%y)
  } else {
    call Map(expr=@abs(x0.f32)) (%x) -> (%y)
  }
  output "y" %y
}
"""


def swap(program: Program) -> None:
    program.body[0], program.body[1] = program.body[1], program.body[0]


def write_twice(program: Program) -> None:
    program.body[2].outs = program.body[0].outs


def write_input(program: Program) -> None:
    program.body[0].outs = (program.inputs[0][1].whole(),)


def leave_buffer(program: Program) -> None:
    first, second = program.body[2].ins
    program.body[2].ins = (View(first.buffer, (4,), (2,), 2), second)


def wrong_type(program: Program) -> None:
    program.body[2].outs = (Buffer("c", f32, (5,)).whole(),)


def same_name(program: Program) -> None:
    program.body[2].outs[0].buffer.name = "a"


def never_written(program: Program) -> None:
    program.outputs[0] = ("y", Buffer("z", f32, (4,)).whole())


def overlap_in_circles(program: Program) -> None:
    a, b = program.body[0].outs[0].buffer, program.body[2].outs[0].buffer
    a.overlap, b.overlap = Overlap(b), Overlap(a)


def part_missing(program: Program) -> None:
    """The first half of %y is written as a part of it, the second half by nobody."""
    program.body[0].outs[0].buffer.overlap = Overlap(program.body[1].outs[0].buffer, 0, part=True)
    del program.body[1]


def part_of_it_missing(program: Program) -> None:
    """The same, and only elements of both halves are read."""
    part_missing(program)
    program.body[1].ins = (View(program.body[1].ins[0].buffer, (4,), (1,), 2), program.body[1].ins[1])


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (swap, "before it is written"),
        (write_twice, "another writer"),
        (write_input, "which is input"),
        (leave_buffer, "leaves"),
        (wrong_type, "map"),
        (same_name, "two buffers are named 'a'"),
        (never_written, "before it is written"),
        (overlap_in_circles, "overlaps itself"),
        (part_missing, "before it is written"),
        (part_of_it_missing, "before it is written"),
    ],
)
def test_damage_is_found(damage: Callable[[Program], None], complaint: str) -> None:
    """And it is a change, so that it is looked for."""
    program = read(TEXT, {})
    verify(program)
    before = contents(program)
    damage(program)
    with pytest.raises(InternalError, match=complaint):
        verify(program, "a pass")
    after = contents(program)
    assert len(before) != len(after) or any(map(is_not, before, after))


def test_a_line_that_goes_to_another_branch_is_a_change() -> None:
    program = read(IF, {})
    before = contents(program)
    (region,) = program.body
    assert isinstance(region, If)
    region.otherwise.insert(0, region.then.pop())
    after = contents(program)
    assert len(before) == len(after) and any(map(is_not, before, after))


def test_what_is_read_of_a_tensor_may_have_been_written_as_parts_of_it() -> None:
    program = read(TEXT, {})
    y = program.body[1].outs[0].buffer
    program.body[0].outs[0].buffer.overlap = Overlap(y, 8, part=True)  # elements 2 to 5
    del program.body[1]
    add = program.body[1]
    add.ins = (View(y, (4,), (1,), 2), add.ins[1])
    verify(program)
    add.ins = (View(y, (4,), (1,), 1), add.ins[1])
    with pytest.raises(InternalError, match="before it is written"):
        verify(program)


def test_what_is_read_while_it_is_written_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is read as soon as it is there, long before the whole is."""
    looked: list[View] = []
    elements = verifier._elements
    monkeypatch.setattr(verifier, "_elements", lambda flat, view: looked.append(view) or elements(flat, view))
    count = 20
    lines = ['input "x" %x: f32[1]', f"buffer %y: f32[{count + 1}]", *(f"buffer %b{n}: f32[1]" for n in range(count))]
    for n in range(count):
        lines.append(f"call Map(expr=@neg(x0.f32)) (%x) -> (%y[1 by 1 at {n}])")
        lines.append(f"call Map(expr=@neg(x0.f32)) (%y[1 by 1 at {n}]) -> (%b{n})")
    program = read('program "p" {\n  ' + "\n  ".join(lines) + '\n  output "y" %b0\n}\n', {})
    verify(program)
    assert len(looked) == 2 * count
