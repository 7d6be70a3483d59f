"""Type rules keep symbols and known elements, and say what contradicts the standard."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dims import Dim, evaluate, symbol
from mccompile.base.dtypes import f32, i64
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Op, Refused, Site, Unsupported, constant_fact
from mccompile.ops.concat import Concat, Split
from mccompile.ops.constant import ConstantOfShape, Range
from mccompile.ops.data_dependent import NonZero
from mccompile.ops.expand import Expand, Tile
from mccompile.ops.gather import Compress, Gather, GatherND
from mccompile.ops.pad import Pad
from mccompile.ops.reshape import Flatten, Reshape, Squeeze, Unsqueeze
from mccompile.ops.resize import Resize
from mccompile.ops.rules.known_shapes import objects
from mccompile.ops.scatter import ScatterElements
from mccompile.ops.shape import Shape, Size
from mccompile.ops.slice import Slice
from mccompile.ops.top_k import TopK
from mccompile.ops.transpose import Transpose

N = symbol("n", 1, 64)


def f(*shape: Dim) -> Fact:
    return Fact(TensorType(f32, shape))


def ints(*values: int) -> Fact:
    return constant_fact(Constant.of(np.array(values, np.int64)))


def number(value: int) -> Fact:
    return constant_fact(Constant.of(np.array(value, np.int64)))


def dims(*values: Dim) -> Fact:
    return Fact(TensorType(i64, (len(values),)), objects(values))


def infer(op: Op, *facts: Fact | None, outputs: int = 1) -> list[Fact]:
    return list(op.infer(Site(facts, outputs)))


def shape(op: Op, *facts: Fact | None) -> tuple[Dim, ...]:
    return infer(op, *facts)[0].type.shape


def value(op: Op, *facts: Fact | None) -> list[Dim]:
    found = infer(op, *facts)[0].value
    assert found is not None
    return list(found.reshape(-1))


def test_symbols_go_through_shape_gather_concat_reshape() -> None:
    sizes = infer(Shape(), f(N, 3, 4))[0]
    batch = infer(Unsqueeze(), infer(Gather(), sizes, number(0))[0], ints(0))[0]
    wanted = infer(Concat(0), batch, ints(-1))[0]
    assert shape(Reshape(), f(N, 3, 4), wanted) == (N, 12)


@pytest.mark.parametrize(
    ("of", "to", "result"),
    [
        ((N, 6), (0, -1, 2), (N, 3, 2)),
        ((N, 6), (-1, 3), (2 * N, 3)),
        ((N, 4), (2, N, -1), (2, N, 2)),
        ((2, 0, 3), (-1, 3), (0, 3)),
        ((6,), (), None),
        ((2, 3), (-1, 4), None),
        ((2, 3), (-1, -1), None),
        ((2, 3), (2, 0, 0), None),
        ((2, 0), (0, 0, -1), None),
    ],
)
def test_reshape(of: tuple[Dim, ...], to: tuple[Dim, ...], result: tuple[Dim, ...] | None) -> None:
    if result is None:
        with pytest.raises(Invalid):
            infer(Reshape(), f(*of), dims(*to))
    else:
        assert shape(Reshape(), f(*of), dims(*to)) == result


def test_reshape_that_holds_only_for_one_size_is_refused() -> None:
    with pytest.raises(Unsupported, match="equal only for some sizes"):
        infer(Reshape(), f(N, 4), dims(8))


@pytest.mark.parametrize(
    ("op", "facts", "result"),
    [
        (Slice(), [dims(N, 3, 4), ints(-2), ints(2**62)], [3, 4]),
        (Slice(), [dims(N, 3, 4), ints(-1), ints(-100), ints(0), ints(-1)], [4, 3, N]),
        (Squeeze(), [infer(Unsqueeze(), dims(N), ints(0))[0], ints(0)], [N]),
        (Transpose(), [dims(1, N)], [1, N]),
        (Expand(), [dims(N), ints(3)], [N, N, N]),
        (Tile(), [dims(N, 2), ints(2)], [N, 2, N, 2]),
        (ConstantOfShape(5, i64), [ints(3)], [5, 5, 5]),
        (Range(), [number(2), number(11), number(4)], [2, 6, 10]),
        (Range(), [number(3), number(-1), number(-2)], [3, 1]),
        (Gather(), [dims(N, 3, 4), ints(-1, 0)], [4, N]),
        (Size(), [f(N, 2)], [2 * N]),
        (Shape(-2), [f(N, 2, 5)], [2, 5]),
        (NonZero(), [infer(ConstantOfShape(1, i64), ints(3))[0]], [0, 1, 2]),
    ],
)
def test_known_elements(op: Op, facts: list[Fact], result: list[Dim]) -> None:
    assert value(op, *facts) == result


def test_split_cuts_known_elements() -> None:
    parts = infer(Split(), dims(N, 3, 4), outputs=3)
    assert [list(part.value) for part in parts if part.value is not None] == [[N], [3], [4]]


@pytest.mark.parametrize(
    ("start", "end", "step"), [(1, 2**40, 1), (-3, 2**40, 1), (0, -1, 2), (-1, -(2**40), -1), (5, 2, -2)]
)
def test_slice_of_a_free_dimension_is_right_for_every_size(start: int, end: int, step: int) -> None:
    size = symbol("size", 0, 9)
    [found] = shape(Slice(), f(size), ints(start), ints(end), ints(0), ints(step))
    for actual in range(10):
        assert evaluate(found, {"size": actual}) == len(range(actual)[start:end:step])


def test_range_over_a_free_dimension_has_its_size() -> None:
    assert shape(Range(), number(0), Fact(TensorType(i64, ()), objects([N]).reshape(())), number(1)) == (N,)


def test_flatten_multiplies_symbols() -> None:
    assert shape(Flatten(2), f(N, 2, 3, 4)) == (2 * N, 12)


def test_resize_keeps_a_free_batch() -> None:
    scales = constant_fact(Constant.of(np.array([1, 1, 2, 1.5], np.float32)))
    assert shape(Resize(), f(N, 3, 4, 5), None, scales) == (N, 3, 8, 7)


COMPUTED = Fact(TensorType(i64, (1,)))


@pytest.mark.parametrize(
    ("op", "facts", "why"),
    [
        (Gather(), [f(3, 4), ints(3)], "index 3 is outside"),
        (Gather(), [f(3, 4), ints(0, -4)], "index -4 is outside"),
        (Gather(), [f(0, 4), COMPUTED], "empty"),
        (GatherND(), [f(3, 4), constant_fact(Constant.of(np.array([[0, 4]])))], "index 4 is outside"),
        (ScatterElements(), [f(3), ints(3), f(1)], "index 3 is outside"),
        (ScatterElements(), [f(3), ints(1), f(2)], "do not fit"),
        (ScatterElements(0, "mean"), [f(3), ints(1), f(1)], "reduction 'mean'"),
        (Concat(1), [f(2, 3), f(3, 3)], "cannot be joined"),
        (Split(0, 3), [f(4)], "num_outputs is 3, there are 1"),
        (Slice(), [f(4), ints(0), ints(1), ints(0), ints(0)], "a step is 0"),
        (Slice(), [f(4), ints(0), ints(1), ints(1)], "axis 1 is outside"),
        (Transpose((0, 0)), [f(2, 3)], "not an order"),
        (Squeeze(), [f(2, 1), ints(0)], "is not 1"),
        (Pad(), [f(3), ints(-2, -2)], "take more than"),
        (Pad("mirror"), [f(3), ints(1, 1)], "mode 'mirror'"),
        (Pad("edge"), [f(0), ints(1, 0)], "no elements to be padded with"),
        (TopK(), [f(3), ints(4)], "k is 4"),
        (Resize(mode="nearest"), [f(3), None, None, None], "one of scales and sizes"),
        (Resize(nearest_mode="up"), [f(3), None, None, ints(4)], "nearest_mode 'up'"),
        (Compress(0), [f(2), constant_fact(Constant.of(np.array([False, False, True])))], "chooses element 2"),
        (Range(), [number(0), number(3), number(0)], "delta is 0"),
    ],
)
def test_what_contradicts_the_standard_is_invalid(op: Op, facts: list[Fact | None], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        infer(op, *facts)


@pytest.mark.parametrize(
    ("op", "facts"),
    [
        (Reshape(), [f(4), Fact(TensorType(i64, (2,)))]),
        (Pad(), [f(4), Fact(TensorType(i64, (2,)))]),
        (Resize(), [f(4), None, f(1)]),
        (Squeeze(), [f(N, 2)]),
    ],
)
def test_sizes_that_depend_on_data_are_refused(op: Op, facts: list[Fact | None]) -> None:
    with pytest.raises(Refused) as caught:
        infer(op, *facts)
    assert isinstance(caught.value, Unsupported)
