"""select_kernels: every call gets a kernel, or all that get none are named at once."""

from __future__ import annotations

import pytest

from mccompile.base.errors import UnsupportedModel
from tests.passes.program.before_after import after, calls


def test_calls_get_kernels() -> None:
    text = """program "p" {
  input "x" %x: f32[2,3]
  buffer %y: f32[2,3]
  call Map(expr=@neg(x0.f32)) (%x) -> (%y) from "n"
  output "y" %y
}
"""
    expected = ['call Map(expr=@neg(x0.f32)) (%x) -> (%y) kernel "map/any_strided_loops__c" from "n"']
    assert calls(after("select_kernels", text)) == expected


def test_all_calls_without_a_kernel_are_named_with_reasons() -> None:
    text = """program "p" {
  dim time in 1..8
  input "x" %x: f32[3,time]
  buffer %y: f32[3,time]
  buffer %z: f32[3,time]
  call ScanAxis(axis=1, combine="add", accumulator=f32, exclusive=false) (%x) -> (%y) from "first"
  call ScanAxis(axis=1, combine="mul", accumulator=f32, exclusive=false) (%y) -> (%z) from "second"
  output "z" %z
}
"""
    with pytest.raises(UnsupportedModel) as caught:
        after("select_kernels", text)
    said = str(caught.value)
    assert said.count("no kernel for scan_axis on target generic") == 2
    assert 'node "first"' in said and 'node "second"' in said
    assert "any_strided_loops__c: the size time is known only at run time" in said
