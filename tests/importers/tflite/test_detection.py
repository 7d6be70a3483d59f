"""The end of detectors: boxes decoded, chosen, and padded to a fixed number."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

from flatbuffers import flexbuffers

import mccompile
from mccompile.base.errors import MccError
from mccompile.graph.ir import Invalid
from mccompile.importers.tflite.flexbuffer import read_map

from .build import Net
from .litert import Litert

_COMPILER = shutil.which("tcc") or "cc"
KNOWN = {
    "max_detections": 6, "max_classes_per_detection": 1, "detections_per_class": 3, "use_regular_nms": False,
    "nms_score_threshold": 0.3, "nms_iou_threshold": 0.4, "num_classes": 3,
    "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
}  # fmt: skip


def detector(background: int = 1, **changes: Any) -> bytes:
    net, known = Net(), KNOWN | changes
    count = 12
    boxes, scores = net.input((1, count, 4)), net.input((1, count, known["num_classes"] + background))
    grid = np.stack(np.meshgrid([0.2, 0.4, 0.6, 0.8], [0.25, 0.5, 0.75]), axis=-1).reshape(-1, 2)
    anchors = net.constant(np.concatenate([grid, np.full((count, 2), 0.3)], axis=1).astype(np.float32))
    most = known["max_detections"]
    made = [net.tensor(shape) for shape in ((1, most, 4), (1, most), (1, most), (1,))]
    net.op("TFLite_Detection_PostProcess", [boxes, scores, anchors], made, custom=bytes(flexbuffers.Dumps(known)))
    return net.file(made)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"background": 0},
        {"use_regular_nms": True},
        {"nms_score_threshold": 0.95},
        {"max_detections": 20},
        {"nms_iou_threshold": 0.1, "num_classes": 1},
    ],
)
def test_boxes_are_those_of_the_interpreter(changes: dict[str, Any]) -> None:
    data = detector(**changes)
    network, reference = mccompile.load(data, target="generic", cc=_COMPILER), Litert(data)
    for seed in range(5):
        chance = np.random.default_rng(seed)
        shapes = (known["shape"] for known in reference.interpreter.get_input_details())
        boxes, scores = (chance.uniform(low, 1, next(shapes)).astype(np.float32) for low in (-1, 0))
        wanted = reference([boxes, scores])
        found = network(boxes, scores)
        count = int(wanted[3][0])
        assert int(found[3][0]) == count
        for got, want in zip(found[:3], wanted[:3], strict=True):
            np.testing.assert_allclose(got[:, :count], want[:, :count], rtol=1e-5, atol=1e-6)
            assert not got[:, count:].any()


def test_several_classes_for_a_box_are_refused() -> None:
    with pytest.raises(MccError, match="2 classes for each box"):
        mccompile.compile(detector(max_classes_per_detection=2))


def test_attributes_are_read_as_they_are_written() -> None:
    known = {"a": 1, "bb": -3, "c": 2.5, "d": True, "e": 70000, "text": "no number"}
    found = read_map(bytes(flexbuffers.Dumps(known)))
    assert found == {"a": 1, "bb": -3, "c": 2.5, "d": 1, "e": 70000}


def test_damaged_attributes_are_refused() -> None:
    data, chance = bytes(flexbuffers.Dumps(KNOWN)), np.random.default_rng(0)
    for _ in range(500):
        made = bytearray(data)
        made[int(chance.integers(len(made)))] = int(chance.integers(256))
        try:
            read_map(bytes(made[: int(chance.integers(1, len(made) + 1))]))
        except Invalid:
            continue
