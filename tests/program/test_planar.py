"""Windows over signals and volumes, seen as windows over pictures: the same results from the same memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mccompile.base.dims import symbol
from mccompile.base.dtypes import f32, i8, i32, i64
from mccompile.expr.ir import apply, operand
from mccompile.kinds.argmax_pool import ArgmaxPool
from mccompile.kinds.conv import Conv
from mccompile.kinds.conv_transpose import ConvTranspose
from mccompile.kinds.pool import Pool
from mccompile.kinds.resize import Resize
from mccompile.program.ir import INPUT, Buffer, Call, Program, View
from mccompile.program.planar import planar, turned
from mccompile.program.verify import verify
from tests.passes.program.interpreter import outputs

SUM = apply("add", operand(0, f32), operand(1, f32))


def channels_last(name: str, shape: tuple[int, ...], role: str = INPUT) -> View:
    rank = len(shape)
    stored = Buffer(name, f32, (shape[0], *shape[2:], shape[1]), role)
    return stored.whole().permuted((0, rank - 1, *range(1, rank - 1)))


def same(call: Call, change: Callable[[Call], Call | None]) -> Call:
    """The changed call, which gives the results of the call."""
    chance = np.random.default_rng(3)
    inputs = list(dict.fromkeys(view.buffer for view in call.ins))
    drawn = {b.name: chance.integers(-4, 5, b.type.static_shape).astype(b.dtype.numpy) for b in inputs}
    after = change(call)
    assert after is not None
    found = []
    for one in (call, after):
        named = [(f"y{n}", view.buffer.whole()) for n, view in enumerate(one.outs)]
        program = Program("p", [(b.name, b) for b in inputs], named, [one])
        verify(program, "planar")
        found.append(outputs(program, drawn))
    for name, values in found[0].items():
        np.testing.assert_array_equal(found[1][name], values)
    return after


Sizes = tuple[int, ...]


def conv(x: Sizes, w: Sizes, strides: Sizes, dilations: Sizes, pads: Sizes, group: int = 1) -> Call:
    kind = Conv(strides, dilations, pads, group, f32, SUM)
    shape = tuple(int(n) for n in kind.out_shape(x, w) if isinstance(n, int))
    bias = Buffer("b", f32, (shape[1],), INPUT).whole()
    wide = replace(bias, shape=shape, strides=(0, 1, *(0 for _ in shape[2:])))
    weights = Buffer("w", f32, w, INPUT).whole()
    return Call(kind, (channels_last("x", x), weights, wide), (channels_last("y", shape, "temporary"),))


def both(call: Call) -> Call:
    """As a picture of one row, then of one column."""
    row = same(call, planar)
    assert row.outs[0].shape[2:] == (1, *call.outs[0].shape[2:])
    column = same(row, turned)
    assert column.outs[0].shape[2:] == (*call.outs[0].shape[2:], 1)
    return row


@pytest.mark.parametrize(
    ("stride", "dilation", "before", "after", "group"),
    [(1, 1, 0, 0, 1), (2, 1, 1, 0, 1), (1, 3, 2, 5, 2), (3, 2, 0, 4, 4)],
)
def test_convolutions_of_signals(stride: int, dilation: int, before: int, after: int, group: int) -> None:
    both(conv((2, 4, 17), (8, 4 // group, 3), (stride,), (dilation,), (before, after), group=group))


def test_zero_points_stay_what_they_are() -> None:
    x, w = (Buffer(n, i8, s, INPUT).whole() for n, s in (("x", (1, 3, 9)), ("w", (2, 3, 3))))
    zeros = Buffer("z", i8, (), INPUT).whole(), Buffer("wz", i8, (2,), INPUT).whole()
    kind = Conv((1,), (1,), (1, 1), 1, i32, None, True, True)
    row = both(Call(kind, (x, w, *zeros), (Buffer("y", i32, (1, 2, 9)).whole(),)))
    assert row.ins[2:] == zeros


def test_transposed_convolutions_of_signals() -> None:
    kind = ConvTranspose((2,), (1,), (1,), (14,), 2, f32)
    w = Buffer("w", f32, (4, 3, 4), INPUT).whole()
    both(Call(kind, (channels_last("x", (1, 4, 7)), w), (channels_last("y", (1, 6, 14), "temporary"),)))


@pytest.mark.parametrize("algorithm", ["max", "average"])
def test_pools_of_signals(algorithm: str) -> None:
    for kernel, count in ((3, 5), (10, 1)):
        pad = int(count > 1)
        kind = Pool(algorithm, (kernel,), (2,), (1,), (pad, pad), (count,), f32, True)
        both(Call(kind, (channels_last("x", (1, 4, 10)),), (channels_last("y", (1, 4, count), "temporary"),)))


def test_places_of_the_largest() -> None:
    results = Buffer("y", f32, (1, 4, 5)).whole(), Buffer("p", i64, (1, 4, 5)).whole()
    both(Call(ArgmaxPool((3,), (2,), (1,), (1, 1), (5,)), (channels_last("x", (1, 4, 10)),), results))


def test_resized_signals() -> None:
    tables = Buffer("at", i32, (6, 1), INPUT).whole(), Buffer("by", f32, (6, 1), INPUT).whole()
    y = Buffer("y", f32, (1, 4, 6)).whole()
    call = Call(Resize((2,), (1,), f32), (channels_last("x", (1, 4, 3)), *tables), (y,))
    row = planar(call)
    column = turned(row)
    assert column is not None
    assert (row.kind, column.kind) == (Resize((3,), (1,), f32), Resize((2,), (1,), f32))
    assert (row.outs[0].shape, column.outs[0].shape) == ((1, 4, 1, 6), (1, 4, 6, 1))


@pytest.mark.parametrize("flat", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
def test_volumes_whose_windows_are_flat(flat: tuple[int, ...]) -> None:
    kernel = tuple(1 if axis in flat else 3 for axis in range(3))
    pads = tuple(int(k > 1) for k in kernel) * 2
    call = conv((1, 2, 4, 5, 6), (3, 2, *kernel), (1, 1, 1), (1, 1, 1), pads)
    assert len(same(call, planar).outs[0].shape) == 4


def test_several_volumes_are_pictures_only_where_they_lie_so() -> None:
    call = conv((2, 2, 4, 5, 6), (3, 2, 1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 1, 1, 0, 1, 1))
    assert same(call, planar).ins[0].shape == (8, 2, 5, 6)  # channels-last: volumes follow each other
    dense = replace(call, ins=(Buffer("x", f32, (2, 2, 4, 5, 6), INPUT).whole(), *call.ins[1:]))
    assert planar(dense) is dense


def test_windows_that_slide_along_three_axes_stay() -> None:
    for kernel, stride in itertools.product(((3, 3, 3), (2, 1, 2)), (1, 2)):
        call = conv((1, 2, 4, 5, 6), (3, 2, *kernel), (1, stride, 1), (1, 1, 1), (0,) * 6)
        if kernel[1] > 1 or stride > 1:
            assert planar(call) is call


def test_signals_of_any_length() -> None:
    n = symbol("n", 4, 32)
    w = Buffer("w", f32, (3, 2, 3), INPUT).whole()
    x, y = (Buffer(name, f32, (1, channels, n)).whole() for name, channels in (("x", 2), ("y", 3)))
    row = planar(Call(Conv((1,), (1,), (1, 1), 1, f32), (x, w), (y,)))
    assert row.outs[0].shape == (1, 3, 1, n)
    assert row.outs[0].strides == (3 * n, n, n, 1)
