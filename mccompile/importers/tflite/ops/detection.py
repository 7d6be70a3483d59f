"""TFLite_Detection_PostProcess: boxes decoded with anchors, of which those stay that no better one overlaps.

Invariant: results have the sizes that the file says; behind the boxes that are found there are zeros.
"""

from __future__ import annotations

import numpy as np

from ....graph.ir import Invalid, Unsupported
from ..flexbuffer import read_map
from ..site import Site, converts

_LEAST = float(np.finfo(np.float32).min)


@converts("custom TFLite_Detection_PostProcess")
def _detection(site: Site) -> None:
    known = read_map(site.operator.custom)
    most, classes = int(known["max_detections"]), int(known["num_classes"])
    if known.get("use_regular_nms") and int(known.get("max_classes_per_detection", 1)) != 1:
        raise Unsupported("several classes for one box, chosen class by class")
    per_box = int(known.get("max_classes_per_detection", 1))
    if per_box != 1:
        raise Unsupported(f"{per_box} classes for each box", "convert the model with max_classes_per_detection=1")
    boxes_shape, scores_shape = site.shape(0), site.shape(1)
    if len(boxes_shape) != 3 or len(scores_shape) != 3 or boxes_shape[0] != 1 or classes < 1:
        raise Invalid(f"boxes {list(boxes_shape)} with scores {list(scores_shape)}")
    count, first = boxes_shape[1], scores_shape[2] - classes  # classes may begin behind the background
    if most < 1 or first < 0:
        raise Invalid(f"{most} boxes of {classes} classes, with scores {list(scores_shape)}")
    boxes = _decoded(site, known)
    scores = site.op("Slice", site.real(1), site.ints(first), site.ints(scores_shape[2]), site.ints(2))
    limits = float(known["nms_iou_threshold"]), float(known["nms_score_threshold"])
    if known.get("use_regular_nms"):
        lines, pairs = site.transposed(scores, (0, 2, 1)), classes * count
    else:
        lines = site.op("ReduceMax", scores, site.ints(2), keepdims=0)
        lines, pairs = site.reshape(lines, 1, 1, count), count
    # boxes that reach the threshold count; ONNX asks for more than it
    least = site.constant(np.nextafter(np.array([limits[1]], np.float32), np.float32(-np.inf)))
    each = min(int(known.get("detections_per_class", 100)) if known.get("use_regular_nms") else most, count)
    overlap = site.constant(np.array([limits[0]], np.float32))
    chosen = site.op("NonMaxSuppression", boxes, lines, site.ints(each), overlap, least)
    marks = site.op("Expand", site.number(0.0), site.ints(1, pairs // count, count))
    ones = site.op("Expand", site.number(1.0), site.op("Shape", chosen, start=0, end=1))
    marks = site.op("Greater", site.op("ScatterND", marks, chosen, ones), site.number(0.5))
    flat = site.reshape(site.op("Where", marks, lines, site.number(_LEAST)), -1)
    kept = min(most, pairs)
    best, places = site.ops("TopK", flat, site.ints(kept), outs=2, axis=0)
    there = site.op("Greater", best, site.number(_LEAST))
    box = site.op("Mod", places, site.scalar(count))
    if known.get("use_regular_nms"):
        kinds = site.op("Div", places, site.scalar(count))
    else:
        kinds = site.op("Gather", site.op("ArgMax", scores, axis=2, keepdims=0), box, axis=1)
    zero = site.number(0.0)
    found = site.op("Gather", site.reshape(boxes, count, 4), box, axis=0)
    columns = (
        (site.op("Where", site.reshape(there, kept, 1), found, zero), 4),
        (site.op("Where", there, site.reshape(site.cast(kinds, "FLOAT32"), kept), zero), 1),
        (site.op("Where", there, best, zero), 1),
    )
    for index, (value, width) in enumerate(columns):
        value = site.reshape(value, 1, kept, *([width] if width > 1 else []))
        if kept < most:
            room = [0] * (5 if width > 1 else 3)
            room.insert(4 if width > 1 else 3, most - kept)
            value = site.op("Pad", value, site.ints(*room))
        site.store(value, index)
    number = site.op("ReduceSum", site.cast(there, "FLOAT32"), site.ints(0), keepdims=1)
    site.store(number, 3)


def _decoded(site: Site, known: dict[str, float]) -> str:
    """Corners, from centres and sizes relative to anchors."""
    if site.shape(2) != (site.shape(0)[1], 4):
        raise Invalid(f"anchors {list(site.shape(2))} for boxes {list(site.shape(0))}")
    count = site.shape(0)[1]
    given = site.op("Slice", site.real(0), site.ints(0), site.ints(4), site.ints(2))
    scales = np.array([known[f"{name}_scale"] for name in "yxhw"], np.float32)
    given = site.op("Div", given, site.constant(scales))
    anchors = site.reshape(site.real(2), 1, count, 4)
    centres, sizes = site.ops("Split", given, site.ints(2, 2), outs=2, axis=2)
    anchor_centres, anchor_sizes = site.ops("Split", anchors, site.ints(2, 2), outs=2, axis=2)
    centres = site.op("Add", site.op("Mul", centres, anchor_sizes), anchor_centres)
    half = site.op("Mul", site.op("Mul", site.op("Exp", sizes), anchor_sizes), site.number(0.5))
    return site.op("Concat", site.op("Sub", centres, half), site.op("Add", centres, half), axis=2)
