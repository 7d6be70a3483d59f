"""Calls whose results nobody reads go away, and with them those that only they read."""

from __future__ import annotations

from tests.passes.program.before_after import after


def test_what_nobody_reads_is_not_computed() -> None:
    before = """program "p" {
  input "x" %x: f32[4]
  buffer %a: f32[4] from "a"
  buffer %b: f32[4] from "b"
  buffer %y: f32[4] from "y"
  call Map(expr=@neg(x0.f32)) (%x) -> (%a) from "a"
  call Map(expr=@abs(x0.f32)) (%a) -> (%b) from "b"
  call Map(expr=@exp(x0.f32)) (%x) -> (%y) from "y"
  output "y" %y
}
"""
    expected = """program "p" {
  input "x" %x: f32[4]
  buffer %y: f32[4] from "y"
  call Map(expr=@exp(x0.f32)) (%x) -> (%y) from "y"
  output "y" %y
}
"""
    assert after("eliminate_dead_calls", before) == expected
    assert after("eliminate_dead_calls", expected) == expected
