"""Views moved over another buffer: they must show the same elements, or be refused."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.base.tensor import dense_strides
from mccompile.program.ir import Buffer, View
from mccompile.program.relocate import Move, covers_in_any_order, disjoint


def elements(view: View) -> np.ndarray:
    """Offsets of the elements that a view shows."""
    total = np.full(view.type.static_shape, static(view.offset))
    for axis, stride in enumerate(view.strides):
        steps = np.arange(static(view.shape[axis])).reshape([-1 if a == axis else 1 for a in range(len(view.shape))])
        total = total + steps * static(stride)
    return total


def image(order: tuple[int, ...] = (0, 2, 3, 1)) -> View:
    """A channels-last tensor [1, 6, 4, 5], as ONNX sees it."""
    buffer = Buffer("x", f32, (1, 4, 5, 6))
    strides = dense_strides((1, 4, 5, 6))
    return View(buffer, (1, 6, 4, 5), (strides[0], strides[3], strides[1], strides[2]))


def inside_of(channels: int, first: int) -> View:
    """Where those elements are as some of the channels of a larger tensor."""
    return View(Buffer("y", f32, (1, 4, 5, channels)), (1, 6, 4, 5), (20 * channels, 1, 5 * channels, channels), first)


@st.composite
def windows(draw: st.DrawFn) -> View:
    view = image()
    for axis in range(4):
        dim = static(view.shape[axis])
        start = draw(st.integers(0, dim - 1))
        view = view.sliced(axis, start, draw(st.integers(1, dim - start)))
    return view.permuted(draw(st.permutations(range(4))))


@given(windows(), st.integers(0, 3))
def test_a_moved_view_shows_the_same_elements(view: View, first: int) -> None:
    old, new = image(), inside_of(9, first)
    moved = Move(old, new).apply(view)
    assert moved is not None and moved.shape == view.shape
    where = dict(zip(elements(old).ravel().tolist(), elements(new).ravel().tolist(), strict=True))
    assert [where[e] for e in elements(view).ravel().tolist()] == elements(moved).ravel().tolist()


def test_rows_can_be_joined_but_not_with_channels() -> None:
    move = Move(image(), inside_of(9, 0))
    flat = View(image().buffer, (20, 6), (6, 1))
    moved = move.apply(flat)
    assert moved is not None and moved.strides == (9, 1)
    assert move.apply(View(image().buffer, (120,), (1,))) is None


def test_only_a_whole_buffer_in_some_order_is_covered() -> None:
    assert covers_in_any_order(image())
    assert not covers_in_any_order(image().sliced(1, 0, 3))
    assert not covers_in_any_order(View(image().buffer, (120,), (0,)))


@given(windows(), windows())
def test_disjoint_views_have_no_element_in_common(a: View, b: View) -> None:
    if disjoint(a, b):
        assert not set(elements(a).ravel().tolist()) & set(elements(b).ravel().tolist())


def test_channels_of_one_tensor_are_disjoint() -> None:
    whole = View(Buffer("y", f32, (1, 4, 5, 9)), (1, 9, 4, 5), (180, 1, 45, 9))
    assert disjoint(whole.sliced(1, 0, 3), whole.sliced(1, 3, 6))
    assert not disjoint(whole.sliced(1, 0, 4), whole.sliced(1, 3, 6))
