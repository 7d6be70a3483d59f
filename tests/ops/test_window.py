"""Windows wider than any tensor."""

from __future__ import annotations

import pytest

from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto
from tests.small_models import floats, model, node

FAR = 1 << 40


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [FAR], "pads": [FAR - 1, FAR - 1]},
        {"kernel_shape": [3], "dilations": [FAR], "pads": [2, 2]},
        {"kernel_shape": [3], "strides": [FAR]},
        {"kernel_shape": [1 << 62], "dilations": [1 << 62]},
    ],
)
def test_pools_that_reach_too_far_are_refused(attributes: dict[str, list[int]]) -> None:
    far = model("far", [node("LpPool", "x", "y", **attributes)], [("x", [1, 1, 8])], [("y", [1, 1, "n"])], opset=22)
    with pytest.raises(UnsupportedModel, match=r'(?s)"y/LpPool".*the window reaches over \d+ elements'):
        load_proto(far)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_convolutions_that_reach_too_far_are_refused(op: str) -> None:
    nodes = [node(op, "x w", "y", strides=[FAR])]
    far = model("far", nodes, [("x", [1, 1, 8])], [("y", [1, 1, "n"])], {"w": floats(0, 1, 1, 3)})
    with pytest.raises(UnsupportedModel, match="the window reaches over 1099511627776 elements"):
        load_proto(far)
