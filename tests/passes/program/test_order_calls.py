"""order_calls: the order with the smallest peak; never one that reads before it writes."""

from __future__ import annotations

from tests.passes.program.before_after import after, calls

MAP = 'kernel "map/any_strided_loops__c"'


def test_large_results_are_used_up_one_by_one() -> None:
    """Two wide tensors, each sliced to a narrow one at once: first one, then the other."""
    before = f"""program "p" {{
  input "x" %x: f32[4]
  buffer %wide1: f32[100]
  buffer %wide2: f32[100]
  buffer %a: f32[4]
  buffer %b: f32[4]
  buffer %y: f32[4]
  call Map(expr=@neg(x0.f32)) (%x[100 by 0 at 0]) -> (%wide1) {MAP} from "wide1"
  call Map(expr=@abs(x0.f32)) (%x[100 by 0 at 1]) -> (%wide2) {MAP} from "wide2"
  call Map(expr=@exp(x0.f32)) (%wide1[4 by 1 at 0]) -> (%a) {MAP} from "a"
  call Map(expr=@exp(x0.f32)) (%wide2[4 by 1 at 0]) -> (%b) {MAP} from "b"
  call Map(expr=@add(x0.f32, x1.f32)) (%a, %b) -> (%y) {MAP} from "y"
  output "y" %y
}}
"""
    order = [line.rpartition(" from ")[2] for line in calls(after("order_calls", before))]
    assert order in (['"wide1"', '"a"', '"wide2"', '"b"', '"y"'], ['"wide2"', '"b"', '"wide1"', '"a"', '"y"'])


def test_a_region_keeps_what_it_needs_before_it() -> None:
    before = f"""program "p" {{
  input "x" %x: f32[4]
  input "flag" %flag: bool[]
  buffer %a: f32[4]
  buffer %y: f32[4]
  call Map(expr=@neg(x0.f32)) (%x) -> (%a) {MAP} from "a"
  if %flag {{
    call Map(expr=@exp(x0.f32)) (%a) -> (%y) {MAP} from "then"
  }} else {{
    call Map(expr=@abs(x0.f32)) (%a) -> (%y) {MAP} from "else"
  }}
  output "y" %y
}}
"""
    assert after("order_calls", before) == before
