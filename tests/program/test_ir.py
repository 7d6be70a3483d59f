"""Views say with strides what numpy does with arrays."""

from __future__ import annotations

from math import prod
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mccompile.base.dims import symbol
from mccompile.base.dtypes import DTYPES, f32
from mccompile.base.records import replace
from mccompile.program.ir import Buffer, Overlap, View, root


def view_of(shape: tuple[int, ...]) -> View:
    return Buffer("x", f32, shape).whole()


def elements(view: View) -> np.ndarray:
    """Which elements of its buffer a view shows."""
    index = np.full(view.shape, view.offset)
    for axis, (dim, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        index = index + stride * np.arange(dim).reshape([-1 if a == axis else 1 for a in range(len(view.shape))])
    return index


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(prod(shape)).reshape(shape)


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@given(shapes, st.randoms())
def test_permuted(shape: tuple[int, ...], chance: Random) -> None:
    order = list(range(len(shape)))
    chance.shuffle(order)
    np.testing.assert_array_equal(elements(view_of(shape).permuted(order)), numbered(shape).transpose(order))


@given(shapes, st.data())
def test_sliced_and_reshaped(shape: tuple[int, ...], data: st.DataObject) -> None:
    view, array = view_of(shape), numbered(shape)
    for axis in range(len(shape)):
        step = data.draw(st.sampled_from([1, 2, -1]))
        start = data.draw(st.integers(0, shape[axis] - 1))
        count = len(range(start, shape[axis], step)) if step > 0 else start + 1
        view = view.sliced(axis, start, count, step)
        chosen = [start + k * step for k in range(count)]
        array = np.take(array, chosen, axis)
    np.testing.assert_array_equal(elements(view), array)
    low, high = view.byte_range
    assert (low, high) == (4 * array.min(), 4 * (array.max() + 1))
    size = data.draw(st.sampled_from([d for d in range(1, array.size + 1) if array.size % d == 0]))
    reshaped = view.reshaped((size, array.size // size))
    if reshaped is not None:
        np.testing.assert_array_equal(elements(reshaped), array.reshape(size, -1))
    else:
        assert not view.is_dense


@given(shapes)
def test_broadcast(shape: tuple[int, ...]) -> None:
    wide = (3, *(4 if dim == 1 else dim for dim in shape))
    np.testing.assert_array_equal(elements(view_of(shape).broadcast_to(wide)), np.broadcast_to(numbered(shape), wide))


def test_a_dense_view_can_always_be_reshaped() -> None:
    assert view_of((2, 3, 4)).sliced(0, 1, 1).reshaped((4, 3)) is not None
    assert view_of((2, 3, 4)).permuted((2, 0, 1)).reshaped((24,)) is None


def test_an_empty_view_touches_nothing() -> None:
    assert view_of((3, 0)).byte_range == (0, 0)
    assert view_of((3, 0)).last_element == -1


def test_bytes_of_packed_elements() -> None:
    view = Buffer("x", DTYPES["u4"], (10,)).whole()
    assert view.byte_range == (0, 5)
    assert view.sliced(0, 2, 3).byte_range == (1, 3)


def test_bytes_stay_within_the_buffer_where_an_offset_grows_with_a_square() -> None:
    """The last row of n by n by 8 begins at 8 n * n - 8 n: at 0 for one row, not at 8 - 8 * 6."""
    n = symbol("n", 1, 6)
    view = Buffer("x", f32, (n, n, 8)).whole()
    last = view.sliced(0, n - 1, 1).sliced(1, 0, 1).reshaped((8,))
    assert last is not None
    assert last.byte_range == (0, 6 * 6 * 8 * 4)


def test_the_root_of_overlapping_buffers() -> None:
    base, middle, top = (Buffer(name, f32, (16,)) for name in "abc")
    middle.overlap, top.overlap = Overlap(base, 32), Overlap(middle, 8)
    assert root(top) == (base, 40)


def test_views_of_sizes_that_are_not_known_are_reshaped_where_strides_can_say_it() -> None:
    batch, time = symbol("batch", 1, 8), symbol("time", 1, 64)
    buffer = Buffer("x", f32, (batch, time, 6))
    bias = Buffer("b", f32, (6,)).whole().broadcast_to((batch, time, 6))
    assert bias.reshaped((batch * time, 6)) == View(bias.buffer, (batch * time, 6), (0, 1))
    heads = buffer.whole().permuted((1, 0, 2)).reshaped((time, batch, 2, 3))
    assert heads == View(buffer, (time, batch, 2, 3), (6, 6 * time, 3, 1))
    assert buffer.whole().permuted((1, 0, 2)).reshaped((time * batch, 6)) is None
    assert buffer.whole().permuted((0, 2, 1)).reshaped((batch, 6 * time)) is None


def test_a_buffer_has_the_type_of_its_elements_and_shape_as_they_are_now() -> None:
    buffer = Buffer("x", f32, (2, 3))
    assert buffer.type is buffer.type and buffer.max_bytes == 24
    buffer.shape = (4,)
    assert str(buffer.type) == "f32[4]" and buffer.max_bytes == 16
    buffer.dtype = DTYPES["i8"]
    assert str(buffer.type) == "i8[4]" and buffer.max_bytes == 4
    copied = replace(buffer, shape=(5,))
    assert copied.type.shape == (5,) and buffer.type.shape == (4,)
