"""Which part of the operand a part of the result needs, and which types do not fit."""

from __future__ import annotations

from mccompile.base.dtypes import f32, i64
from mccompile.base.tensor import TensorType
from mccompile.expr.ir import operand
from mccompile.kinds.arg_reduce import ArgReduce
from mccompile.kinds.normalize import Normalize
from mccompile.kinds.reduce import Reduce
from mccompile.kinds.scan_axis import ScanAxis

X = operand(0, f32)


def test_a_reduction_reads_reduced_axes_whole() -> None:
    boxes = Reduce((1,), "add", f32, X).access([(4, 5, 6)], [(4, 1, 6)], ((1, 2), (0, 1), (3, 5)))
    assert boxes == (((1, 2), (0, 5), (3, 5)),)


def test_a_normalization_reads_its_groups_whole() -> None:
    assert Normalize((1,), "softmax", f32).access([(4, 5)], [(4, 5)], ((1, 2), (0, 1))) == (((1, 2), (0, 5)),)


def test_a_running_sum_reads_what_came_before() -> None:
    assert ScanAxis(0, "add", f32).access([(9, 2)], [(9, 2)], ((3, 5), (0, 1))) == (((0, 5), (0, 1)),)


def test_a_reduction_keeps_its_axes() -> None:
    x = TensorType(f32, (2, 3))
    assert Reduce((1,), "add", f32, X).check([x], [TensorType(f32, (2,))])
    assert not Reduce((1,), "add", f32, X).check([x], [TensorType(f32, (2, 1))])


def test_positions_are_i64() -> None:
    x = TensorType(f32, (2, 3))
    assert ArgReduce(1, True).check([x], [TensorType(f32, (2, 1))])
    assert not ArgReduce(1, True).check([x], [TensorType(i64, (2, 1))])
