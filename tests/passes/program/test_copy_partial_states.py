"""copy_partial_states, before and after: the smaller part of a tensor is copied at once, the larger one stays."""

from __future__ import annotations

from tests.passes.program.before_after import after, calls


def program(past: int, new: int) -> str:
    return f"""program "p" {{
  state "past" = "kept"
  input "x" %x: f32[{new},3]
  input "past" %past: f32[{past},3]
  buffer %b: f32[{past + new},3]
  buffer %y: f32[{past + new},3]
  call Concat(axis=0) (%past, %x) -> (%b)
  call Map(expr=@neg(x0.f32)) (%b) -> (%y)
  output "y" %y
  output "kept" %b[{past},3 by 3,1 at {3 * new}]
}}
"""


def test_a_small_part_is_copied_behind_its_writer() -> None:
    got = after("copy_partial_states", program(2, 8))
    assert calls(got)[1] == "call Map(expr=@x0.f32) (%b[2,3 by 3,1 at 24]) -> (%b_kept)"
    assert 'output "kept" %b_kept' in got


def test_a_large_part_stays() -> None:
    assert len(calls(after("copy_partial_states", program(8, 8)))) == 2


def test_what_is_an_output_as_well_stays() -> None:
    both = program(2, 8).replace('output "y" %y', 'output "y" %y\n  output "b" %b')
    assert len(calls(after("copy_partial_states", both))) == 2
