"""DeformConv against onnx's reference evaluator; what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.dtypes import f32
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Site
from mccompile.ops.deform_conv import DeformConv

from .bundle import One, outcomes

RANDOM = np.random.default_rng(6)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_windows_groups_and_masks() -> None:
    x, w = floats(2, 4, 6, 7), floats(6, 2, 3, 2)
    window = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1], "group": 2, "offset_group": 2}
    space = (4, 6)
    ins = [x, w, 2 * floats(2, 2 * 6 * 2, *space), floats(6), floats(2, 2 * 6, *space)]
    ones = [
        One("all", "DeformConv", ins, window),
        One("no_bias", "DeformConv", [*ins[:3], None, ins[4]], window),
        One("no_mask", "DeformConv", ins[:4], window),
    ]
    for label, (outcome,) in outcomes(22, ones).items():
        np.testing.assert_allclose(outcome.got, outcome.want, rtol=1e-4, atol=1e-5, err_msg=label)


def test_offsets_have_a_pair_for_every_tap() -> None:
    shapes = ((1, 2, 5, 5), (3, 2, 3, 3), (1, 9, 3, 3))
    with pytest.raises(Invalid, match="offset"):
        DeformConv().infer(Site(tuple(Fact(TensorType(f32, shape)) for shape in shapes), 1))
