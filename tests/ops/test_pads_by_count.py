"""Detections padded to a fixed number, as tf2onnx ends every SSD: by what is missing behind NonMaxSuppression."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import parser

from mccompile import backend

TEXT = """
<ir_version: 8, opset_import: ["": 17]> ssd (float[1,30,4] boxes, float[1,2,30] scores)
=> (few, front, rows, best, less)
<int64[1] most = {20}, float[1] iou = {0.5}, float[1] least = {0.3}, int64[1] zero = {0}, int64[1] one = {1},
 int64[1] two = {2}, int64[1] three = {3}, int64[1] ten = {10}, float minus = {-1}>
{
    selected = NonMaxSuppression(boxes, scores, most, iou, least)
    column = Slice(selected, two, three, one)
    places = Squeeze(column, one)
    count = Shape(places)
    kept = Min(ten, count)
    missing = Sub(ten, kept)
    behind = Concat<axis=0>(zero, missing)
    first = Slice(places, zero, kept)
    few = Pad(first, behind)
    before = Concat<axis=0>(missing, zero)
    front = Pad(first, before)
    all = Squeeze(boxes, zero)
    found = Gather(all, first)
    below = Concat<axis=0>(zero, zero, missing, zero)
    rows = Pad(found, below, minus)
    each = Squeeze(scores, zero)
    highest = ReduceMax<axes=[0], keepdims=0>(each)
    values = Gather(highest, places)
    top, order = TopK(values, kept)
    best = Pad(top, behind)
    is_less = Less(count, ten)
    chosen = Where(is_less, count, ten)
    rest = Sub(ten, chosen)
    after = Concat<axis=0>(zero, rest)
    less = Pad(first, after)
}
"""


def test_pads_that_follow_from_a_count() -> None:
    made = parser.parse_model(TEXT)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    ready = backend.prepare(made, flags=("-O0",), bounds={"less": [10]})
    chance = np.random.default_rng(3)
    for size, best in ((1.0, 1.0), (0.2, 1.0), (0.3, 0.35), (1.0, 0.2)):  # some, many, a few, none
        corners = chance.uniform(0, 1, (1, 30, 2))
        boxes = np.concatenate([corners, corners + size * chance.uniform(0, 1, (1, 30, 2))], 2).astype(np.float32)
        feed = {"boxes": boxes, "scores": chance.uniform(0, best, (1, 2, 30)).astype(np.float32)}
        for got, want in zip(ready.run(feed), session.run(None, feed), strict=True):
            assert got.shape == want.shape
            np.testing.assert_array_equal(got, want)
