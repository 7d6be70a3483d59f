"""`access` of every kind that says more than "the whole operand", by its numpy oracle: what lies outside of the boxes
does not change the part of the result, and what lies at their edges does."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from mccompile.base.dims import static
from mccompile.kernels.api import Case, Kernel
from mccompile.kernels.registry import Registry
from mccompile.kinds.api import Box, Kind
from tests.kernels.harness import call_of
from tests.kernels.test_matrix import expected_results

# Operands, and their axes (None: all), at whose edges elements matter to some of the result. Elsewhere more is read
# than decides: what is clamped or compared, what an index chooses, weights that meet padding.
TIGHT: dict[str, dict[int, tuple[int, ...] | None]] = {
    "concat": {0: None, 1: None},
    "conv": {0: None, 1: (0, 1)},
    "conv_transpose": {0: None},
    "gemm": {0: None, 1: None},
}
LARGEST = 1200  # elements of a case: what the oracles do in no time
TELLING = [kind for kind in {k.kind for _, k in Registry.load().items()} if kind.access is not Kind.access]


def kernels() -> Iterator[tuple[str, Kernel]]:
    for id, kernel in Registry.load().items():
        if kernel.isa == "c" and kernel.kind in TELLING:
            yield id, kernel


def cases() -> list[tuple[Kernel, Case]]:
    return [
        (kernel, case)
        for _, kernel in kernels()
        for case in kernel.cases()
        if case.outs[0].shape and 0 < sum(static(type.count) for type in (*case.ins, *case.outs)) < LARGEST
        if 0 not in case.outs[0].shape and all(type.dtype.name != "string" for type in case.ins)
    ]


def parts(shape: tuple[int, ...], chance: np.random.Generator) -> Iterator[Box]:
    """All, the first element, the last, and some boxes between."""
    yield tuple((0, dim) for dim in shape)
    yield tuple((0, 1) for _ in shape)
    yield tuple((dim - 1, dim) for dim in shape)
    for _ in range(2):
        lows = [int(chance.integers(0, dim)) for dim in shape]
        yield tuple((low, int(chance.integers(low, dim)) + 1) for low, dim in zip(lows, shape, strict=True))


def inside(box: Box) -> tuple[slice, ...]:
    return tuple(slice(static(low), static(high)) for low, high in box)


def changed(
    values: tuple[np.ndarray, ...], where: np.ndarray, case: Case, index: int, chance: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Other elements there in one operand; of the same range, where the case says one."""
    old = values[index]
    new = chance.permutation(old.reshape(-1)).reshape(old.shape)
    if old.dtype.kind == "f" and index not in case.ranges and index not in case.values:
        new = (new.astype(np.float64) * -7 + chance.choice([-40.0, 40.0], old.shape)).astype(old.dtype)
    return (*values[:index], np.where(where, new, old), *values[index + 1 :])


@pytest.mark.parametrize(
    ("kernel", "case"), cases(), ids=lambda item: item.id if isinstance(item, Kernel) else item.name
)
def test_boxes_are_what_is_read(kernel: Kernel, case: Case) -> None:
    chance = np.random.default_rng(zlib.crc32(f"{kernel.id} {case.name}".encode()))
    _, values = call_of(kernel, case)
    values = tuple(np.array(np.broadcast_to(v, t.static_shape)) for v, t in zip(values, case.ins, strict=True))
    before = result(case, values)
    shapes = [type.static_shape for type in case.ins], [type.static_shape for type in case.outs]
    for part in parts(case.outs[0].static_shape, chance):
        boxes = case.kind.access(*shapes, part)
        assert [len(box) for box in boxes] == [array.ndim for array in values]
        for index, box in enumerate(boxes):
            outside = np.ones(values[index].shape, bool)
            outside[inside(box)] = False
            other = changed(values, outside, case, index, chance)
            same = np.allclose(result(case, other)[inside(part)], before[inside(part)], 1e-4, 1e-4, equal_nan=True)
            assert same, f"{part} reads operand {index} outside of {box}"
            for axis, at in edges(case, index, boxes):
                edge = np.zeros(values[index].shape, bool)
                edge[inside((*box[:axis], (at, at + 1), *box[axis + 1 :]))] = True
                if not matters(case, values, index, edge, part, before, chance):
                    pytest.fail(f"{part} does not read operand {index} at {at} along {axis} of {box}")


def edges(case: Case, index: int, boxes: Sequence[Box]) -> Iterator[tuple[int, int]]:
    """The first and the last position along each axis of a box that should be tight."""
    axes = TIGHT.get(case.kind.name, {}).get(index, ())
    spread = any(step != 1 for step in getattr(case.kind, "dilations", ()))  # between taps and in padding nothing is
    empty = any(static(low) >= static(high) for box in boxes for low, high in box)  # read
    if not case.ins[index].dtype.is_float or spread or empty or "epilogue" in case.name:
        return
    for axis, (low, high) in enumerate(boxes[index]):
        if axes is None or axis in axes:
            yield axis, static(low)
            yield axis, static(high) - 1


def matters(
    case: Case,
    values: tuple[np.ndarray, ...],
    index: int,
    where: np.ndarray,
    part: Box,
    before: np.ndarray,
    chance: np.random.Generator,
) -> bool:
    """Does any of a few other contents there change the part?"""
    tries = (changed(values, where, case, index, chance) for _ in range(3))
    return any(not np.array_equal(result(case, other)[inside(part)], before[inside(part)]) for other in tries)


def result(case: Case, values: tuple[np.ndarray, ...]) -> np.ndarray:
    found = expected_results(case, values)[0]
    assert found is not None
    return found
