"""Convolutions with groups, in every kernel that takes them: any number of channels and results in a group, one to
three dimensions, channels first and last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from mccompile.base.dtypes import f32, i8, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.kernels.api import Case, Needs
from mccompile.kernels.registry import Registry
from mccompile.kinds.conv import Conv
from mccompile.kinds.conv_transpose import ConvTranspose
from mccompile.targets import api as targets
from tests.kernels.harness import call_of
from tests.kernels.test_matrix import wrong_results

KERNELS = Registry.load()
IMAGES = {"1d": (9,), "1d_long": (17,), "2d": (3, 8), "one_row": (1, 5), "3d": (2, 3, 4)}
SIZES = [(4, 2, 1), (2, 4, 1), (3, 3, 2), (4, 1, 1), (3, 1, 2), (5, 2, 3), (8, 2, 1)]  # groups, and channels of one


def case(kind: type[Conv | ConvTranspose], image: str, size: tuple[int, int, int], last: bool, constant: bool) -> Case:
    group, channels, results = size
    space = IMAGES[image]
    rank = len(space)
    stride = (2, *(1,) * (rank - 1)) if rank > 1 else (2,)
    window = tuple(min(2, side) for side in space)
    x = (1, group * channels, *space)
    made: Conv | ConvTranspose
    if kind is Conv:
        made = Conv(stride, (1,) * rank, (0,) * rank + (1,) * rank, group, f32)
        w = (group * results, channels, *window)
        out = made.out_shape(x, w)
    else:
        sides = [(side - 1) * step + wide for side, step, wide in zip(space, stride, window, strict=True)]
        made = ConvTranspose(stride, (1,) * rank, (0,) * rank, tuple(sides), group, f32)
        w = (group * channels, results, *window)
        out = (1, group * results, *sides)
    order = (0, *range(2, rank + 2), 1)
    places = {"permute": {0: order}, "permute_outs": {0: order}} if last else {}
    name = f"{image}_{group}x{channels}_{results}{'_last' * last}{'_constant' * constant}"
    ins = TensorType(f32, x), TensorType(f32, w)
    return Case(name, made, ins, (TensorType(f32, out),), constant=frozenset({1} if constant else ()), **places)


def of_bytes(case: Case) -> Case:
    """The same of 8-bit integers with zero points, each channel of weights with its own."""
    assert isinstance(case.kind, Conv)
    x, w = (TensorType(dtype, type.shape) for dtype, type in zip((u8, i8), case.ins, strict=True))
    kind = replace(case.kind, accumulator=i32, x_zero=True, w_zero=True)
    ins = (x, w, TensorType(u8, ()), TensorType(i8, w.shape[:1]))
    ranges = {0: (0, 255), 1: (-128, 127), 2: (0, 255), 3: (-9, 9)}
    out = TensorType(i32, case.outs[0].shape)
    return replace(case, name=f"{case.name}_bytes", kind=kind, ins=ins, outs=(out,), ranges=ranges)


def cases(kind: type[Conv | ConvTranspose]) -> Sequence[Case]:
    """Every pair of an image and a size in one of the layouts, which take turns."""
    layouts = list(product((True, False), (True, False)))
    found = [
        case(kind, image, size, *layouts[(i + j) % 4]) for i, image in enumerate(IMAGES) for j, size in enumerate(SIZES)
    ]
    return found + [of_bytes(case) for case in found[::3] if kind is Conv]


@pytest.mark.parametrize("target", ["generic", "native"])
@pytest.mark.parametrize("id", [id for id, kernel in KERNELS.items() if kernel.kind in (Conv, ConvTranspose)])
def test_grouped_convolutions(id: str, target: str, tmp_path: Path) -> None:
    kernel, machine = KERNELS[id], targets.load(target)
    if kernel.isa not in machine.isas or (kernel.isa == "c" and target != "generic"):
        pytest.skip(f"not a kernel of {target}")
    taken = [c for c in cases(kernel.kind) if isinstance(kernel.match(call_of(kernel, c)[0], machine), Needs)]
    if not taken:
        pytest.skip("it takes no groups of floats")
    assert not wrong_results(kernel, machine, tmp_path, taken)
