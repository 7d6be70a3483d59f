"""RoiAlign with as many samples as a bin is large, against onnxruntime, and for regions far larger than the image."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, parser

from mccompile import backend

X = np.random.default_rng(5).standard_normal((1, 2, 5, 7)).astype(np.float32)


def model(attributes: str) -> ModelProto:
    return parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,2,5,7] x, float[4,4] r) => (float[4,2,2,3] y)'
        f" <int64[4] b = {{0, 0, 0, 0}}> {{ y = RoiAlign<output_height=2, output_width=3, {attributes}>(x, r, b) }}"
    )


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_regions_of_all_sizes(mode: str, coordinates: str) -> None:
    made = model(f'mode="{mode}", coordinate_transformation_mode="{coordinates}"')
    session, ready = onnxruntime.InferenceSession(made.SerializeToString()), backend.prepare(made)
    chance = np.random.default_rng(6)
    for scale in (1, 6, 40, 200):
        corners = np.sort(chance.uniform(-1, 2, (4, 2, 2)) * scale, axis=1).astype(np.float32)
        feed = {"x": X, "r": corners.reshape(4, 4)}
        np.testing.assert_allclose(ready.run(feed)[0], session.run(None, feed)[0], atol=1e-5)


def test_work_is_bounded_by_the_image() -> None:
    """Samples outside are not visited one by one: this would take minutes."""
    huge = [[0, 0, 1e9, 1e9], [-1e9, -1e9, 1e9, 1e9], [-3e38, -3e38, 3e38, 3e38], [np.nan] * 4]
    (got,) = backend.prepare(model('mode="avg"')).run({"x": X, "r": np.array(huge, np.float32)})
    assert np.isfinite(got[:2]).all() and np.abs(got[:2]).max() < 0.1
