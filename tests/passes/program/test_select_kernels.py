"""select_kernels: every call gets a kernel, or all that get none are named at once."""

from __future__ import annotations

import pytest

from mccompile.base.dims import Dim, symbol
from mccompile.base.dtypes import f32, f64, i64
from mccompile.base.errors import UnsupportedModel
from mccompile.expr.ir import apply, index, operand
from mccompile.kinds.argmax_pool import ArgmaxPool
from mccompile.kinds.map import Map
from mccompile.kinds.random import Random
from mccompile.passes.program.select_kernels import over_slices
from mccompile.program.ir import Buffer, Call, View
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


@pytest.mark.parametrize(("expr", "dtype"), [("@x0.f16", "f16"), ("@less(x0.f16, f16(0.5))", "bool")])
def test_halves_that_lie_apart_are_copied_at_most_once(expr: str, dtype: str) -> None:
    """Every second one, by which no vectors go along."""
    text = f"""program "p" {{
  input "x" %x: f16[3,7,17]
  buffer %y: {dtype}[3,3,8]
  call Map(expr={expr}) (%x[3,3,8 by 119,34,2 at 0]) -> (%y) from "n"
  output "y" %y
}}
"""
    for target in ("x86-64-v3", "aarch64"):
        assert len(calls(after("select_kernels", text, target=target))) <= 2


def test_a_loop_over_a_batch_that_is_not_known_is_made_where_that_is_quicker() -> None:
    """No kernel for vectors takes the whole convolution; for one picture of the batch there is one."""
    text = """program "p" {
  dim batch in 1..8
  input "x" %x: f32[batch,20,20,16]
  const %w: f32[16,16,3,3] = #w
  buffer %y: f32[batch,20,20,16]
  call Conv(strides=(1, 1), dilations=(1, 1), pads=(1, 1, 1, 1), group=1, accumulator=f32) \
(%x[{batch},16,20,20 by 6400,1,320,16 at 0], %w) -> (%y[{batch},16,20,20 by 6400,1,320,16 at 0]) from "n"
  output "y" %y
}
"""
    assert "any_strided_direct__c" in calls(after("select_kernels", text))[0]
    assert "__vec" in calls(after("select_kernels", text, target="x86-64-v3"))[0]


@pytest.mark.parametrize(("axis", "is_sliced"), [(0, False), (1, True)])
def test_what_asks_for_its_own_position_is_not_cut_along_that_axis(axis: int, is_sliced: bool) -> None:
    """A slice starts at position 0 of its own."""
    x, y = (Buffer(name, i64, (symbol("batch", 1, 8), 3)) for name in "xy")
    call = Call(Map(apply("add", operand(0, i64), index(axis))), (x.whole(),), (y.whole(),))
    assert (over_slices(call, "slice") is not None) == is_sliced


@pytest.mark.parametrize(("begins", "is_sliced"), [(0, True), (symbol("batch", 1, 8), False)], ids=["ahead", "behind"])
def test_slices_of_what_begins_later_the_longer_it_is_are_seen_to_stay_inside(begins: Dim, is_sliced: bool) -> None:
    """From the last of 8 positions on there is one. No bound of the position by itself says so."""
    batch = symbol("batch", 1, 8)
    x, y = Buffer("x", f32, (9, 3)), Buffer("y", f32, (9 - batch, 3))
    view = View(x, y.shape, (3, 1), begins * 3)
    call = Call(Map(apply("neg", operand(0, f32))), (view,), (y.whole(),))
    assert (over_slices(call, "slice") is not None) == is_sliced


def test_places_in_a_whole_batch_are_not_found_picture_by_picture() -> None:
    batch = symbol("batch", 1, 8)
    x, y, places = Buffer("x", f32, (batch, 1, 5)), Buffer("y", f32, (batch, 1, 2)), Buffer("i", i64, (batch, 1, 2))
    call = Call(ArgmaxPool((2,), (3,), (1,), (0, 0), (2,)), (x.whole(),), (y.whole(), places.whole()))
    assert over_slices(call, "slice") is None
    y = Buffer("y", f64, (batch, 3))
    assert over_slices(Call(Random(False, 1), (), (y.whole(),)), "slice") is None
