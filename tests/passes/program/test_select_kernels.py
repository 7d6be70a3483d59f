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
  input "x" %x: f32[3,0]
  buffer %y: i64[3,1]
  buffer %z: i64[3,1]
  call ArgReduce(axis=1, largest=true) (%x) -> (%y) from "first"
  call ArgReduce(axis=1, largest=false) (%x) -> (%z) from "second"
  output "y" %y
  output "z" %z
}
"""
    with pytest.raises(UnsupportedModel) as caught:
        after("select_kernels", text)
    said = str(caught.value)
    assert said.count("no kernel for arg_reduce on target generic") == 2
    assert 'node "first"' in said and 'node "second"' in said
    assert "any_strided_loops__c: the axis is empty" in said
