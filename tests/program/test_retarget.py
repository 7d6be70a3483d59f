"""Views re-expressed over another shape show the same elements."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from mccompile.base.dims import static
from mccompile.base.dtypes import i64
from mccompile.program.ir import Buffer, View
from mccompile.program.retarget import Common, through, to_shape_of

SIZES = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4)


def seen(view: View) -> np.ndarray:
    flat = np.arange(static(view.buffer.type.count))
    return as_strided(flat[static(view.offset) :], view.type.static_shape, [8 * static(s) for s in view.strides])


@st.composite
def views(draw: st.DrawFn) -> tuple[View, View, View]:
    """A whole buffer, the same transposed and reshaped, and another buffer over the shape of that."""
    shape = tuple(draw(SIZES))
    out = Buffer("a", i64, shape).whole()
    view = out.permuted(draw(st.permutations(range(len(shape)))))
    size = int(np.prod(shape))
    first = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    view = view.reshaped((first, size // first)) or view
    if draw(st.booleans()):
        view = view.permuted(list(reversed(range(len(view.shape)))))
    other = Buffer("b", i64, view.shape).whole()
    return out, view, other


@given(views())
def test_an_operand_of_the_consumer_over_the_shape_of_the_producer(drawn: tuple[View, View, View]) -> None:
    out, view, other = drawn
    change = to_shape_of(view, out)
    moved = None if change is None else change(other)
    if moved is not None:
        pairs = dict(zip(seen(view).reshape(-1), seen(other).reshape(-1), strict=True))
        assert dict(zip(seen(out).reshape(-1), seen(moved).reshape(-1), strict=True)) == pairs


@given(views())
def test_an_operand_of_the_producer_seen_by_the_consumer(drawn: tuple[View, View, View]) -> None:
    out, view, _ = drawn
    source = Buffer("s", i64, out.shape).whole()
    found = through(view, out, source)
    if found is not None:
        np.testing.assert_array_equal(seen(found), seen(view))  # both buffers count their elements alike


@given(views())
def test_both_over_a_finer_shape(drawn: tuple[View, View, View]) -> None:
    out, view, other = drawn
    common = Common.of(view, out)
    if common is not None:
        np.testing.assert_array_equal(seen(common.first(view)), seen(common.second(out)))
        assert seen(common.first(other)).size == seen(other).size


def test_a_transposed_reshape_is_found() -> None:
    out = Buffer("a", i64, (1, 4, 40, 40)).whole()
    view = out.reshaped((1, 4, 1600))
    assert view is not None
    change = to_shape_of(view.permuted((0, 2, 1)), out)
    assert change is not None
    moved = change(Buffer("y", i64, (1, 1600, 4)).whole())
    assert moved is not None and moved.strides == (0, 1, 160, 4)


def test_steps_through_a_tensor_without_elements() -> None:
    out = Buffer("a", i64, (12, 1, 0, 7)).whole()
    view = View(out.buffer, (5, 1, 0, 7), (-1, 0, 7, 1), 0)
    assert through(view, out, Buffer("b", i64, (12, 1, 0, 7)).whole()) is None
