"""TensorRT's plugins at the end of detectors, which torch's exporters and graph-surgeon scripts write into models:
boxes chosen class by class, the best of all classes in the order of their scores, and zeros up to a fixed number.

Invariant: results have the sizes that the attributes say, whatever is found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from ..base.records import dataclass
from ..graph.ir import Invalid, Unsupported
from .composed_body import Body, Size
from .composed_pieces import FIX

_LEAST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class _Found:
    """What is chosen of each sample, the best first: which box, which class, its score, and whether it is there."""

    boxes: str
    classes: str
    scores: str
    there: str


@dataclass(frozen=True)
class _Picture:
    boxes: str  # [batch, boxes, 4], corners
    scores: str  # [batch, classes, boxes]
    batch: Size
    count: int
    classes: int


def _efficient_nms(body: Body) -> None:
    body.only(
        "score_threshold", "iou_threshold", "max_output_boxes", "background_class", "score_activation",
        "class_agnostic", "box_coding", "plugin_version", "plugin_namespace",
    )  # fmt: skip
    if body.has(2):
        raise Unsupported(
            "boxes that are to be decoded with anchors", "export the model with the decoder in front of it"
        )
    picture = _picture(body, bool(body.attribute("score_activation", 0)), bool(body.attribute("box_coding", 0)))
    # those that reach the threshold count
    least = np.nextafter(np.float32(body.attribute("score_threshold", 0.25)), np.float32(-np.inf))
    scores = _without(body, picture, int(body.attribute("background_class", -1)))
    kept = int(body.attribute("max_output_boxes", 100))
    agnostic = bool(body.attribute("class_agnostic", 0))
    iou = float(body.attribute("iou_threshold", 0.5))
    found = _best(body, picture, scores, picture.boxes, kept, (iou, float(least)), agnostic)
    _give(body, found, TensorProto.INT32, 0)


def _batched_nms(body: Body) -> None:
    body.only(
        "shareLocation", "backgroundLabelId", "numClasses", "topK", "keepTopK", "scoreThreshold", "iouThreshold",
        "isNormalized", "clipBoxes", "scoreBits", "caffeSemantics", "plugin_version", "plugin_namespace",
    )  # fmt: skip
    if not body.attribute("shareLocation", 1) or not body.attribute("caffeSemantics", 1):
        raise Unsupported("boxes for each class, or overlaps that count at the threshold", "set shareLocation to 1")
    picture = _picture(body, False, False)
    scores = _without(body, picture, int(body.attribute("backgroundLabelId", -1)))
    most, kept = int(body.attribute("topK", picture.count)), int(body.attribute("keepTopK", 100))
    if 0 < most < picture.count:  # no others of a class are looked at
        best = body.op("TopK", scores, body.ints(most), outs=2, axis=2)
        last = body.op("Slice", best, body.ints(-1), body.ints(most), body.ints(2))
        scores = body.op("Where", body.op("Less", scores, last), body.number(_LEAST), scores)
    boxes = picture.boxes
    if not body.attribute("isNormalized", 1):  # pixels: the last row and column belong to a box
        boxes = body.op("Add", boxes, body.constant(np.array([0, 0, 1, 1], np.float32)))
    limits = float(body.attribute("iouThreshold", 0.5)), float(body.attribute("scoreThreshold", 0.0))
    found = _best(body, picture, scores, boxes, kept, limits, False)
    if body.attribute("clipBoxes", 1):
        clipped = body.op("Clip", found.boxes, body.number(0.0), body.number(1.0))
        found = _Found(clipped, found.classes, found.scores, found.there)
    _give(body, found, TensorProto.FLOAT, -1)


def _picture(body: Body, activate: bool, centres: bool) -> _Picture:
    boxes, scores = body.type(0), body.type(1)
    if boxes.rank not in (3, 4) or scores.rank != 3:
        raise Invalid(f"boxes {boxes} with scores {scores}")
    count, classes = scores.shape[1], scores.shape[2]
    if not isinstance(count, int) or not isinstance(classes, int):
        raise Unsupported(f"scores {scores}, whose boxes or classes are known only at run time", FIX)
    if boxes.rank == 4 and boxes.shape[2] != 1:
        raise Unsupported(f"boxes {boxes} for each class", "export the model with one box for all classes")
    corners = body.op("Reshape", body.operand(0), body.ints(0, -1, 4))
    if centres:
        parts = body.op("Split", corners, body.ints(2, 2), axis=2, outs=2)
        half = body.op("Mul", f"{parts}_1", body.number(0.5))
        corners = body.op("Concat", body.op("Sub", parts, half), body.op("Add", parts, half), axis=2)
    turned = body.op("Transpose", body.operand(1), perm=[0, 2, 1])
    return _Picture(corners, body.op("Sigmoid", turned) if activate else turned, body.size(1, 0), count, classes)


def _without(body: Body, picture: _Picture, background: int) -> str:
    if not 0 <= background < picture.classes:
        return picture.scores
    is_background = np.arange(picture.classes).reshape(1, -1, 1) == background
    return body.op("Where", body.constant(is_background), body.number(_LEAST), picture.scores)


def _best(
    body: Body, picture: _Picture, scores: str, boxes: str, kept: int, limits: tuple[float, float], agnostic: bool
) -> _Found:
    """Those of each sample that no better one overlaps, at most `kept`."""
    pairs = picture.count * picture.classes
    if agnostic:
        lines, wide = (
            body.op("Reshape", scores, body.ints(0, 1, -1)),
            body.op("Tile", boxes, body.ints(1, picture.classes, 1)),
        )
        shape = body.sizes(picture.batch, 1, pairs)
    else:
        lines, wide = scores, boxes
        shape = body.sizes(picture.batch, picture.classes, picture.count)
    limit = (body.constant(np.array([value], np.float32)) for value in limits)
    chosen = body.op("NonMaxSuppression", wide, lines, body.ints(kept), *limit)
    many = body.op("Shape", chosen, start=0, end=1)
    blank = body.op("Expand", body.number(0.0), shape)
    marks = body.op("ScatterND", blank, chosen, body.op("Expand", body.number(1.0), many))
    there = body.op("Greater", marks, body.number(0.5))
    flat = body.op("Reshape", body.op("Where", there, lines, body.number(_LEAST)), body.ints(0, -1))
    count = min(kept, pairs)
    best = body.op("TopK", flat, body.ints(count), outs=2, axis=1)
    is_there = body.op("Greater", best, body.number(_LEAST))
    number = body.op("Mod", f"{best}_1", body.index(picture.count))
    rows = body.op("Expand", body.op("Unsqueeze", number, body.ints(2)), body.ints(1, 1, 4))
    parts = (
        body.op("GatherElements", picture.boxes, rows, axis=1),
        body.op("Div", f"{best}_1", body.index(picture.count)),
        best,
        body.op("Cast", is_there, to=TensorProto.INT32),
    )
    if count == kept:
        return _Found(*parts)
    room = [[0, 0, 0, 0, kept - count, 0], *[[0, 0, 0, kept - count]] * 3]
    return _Found(*(body.op("Pad", part, body.ints(*pads)) for part, pads in zip(parts, room, strict=True)))


def _give(body: Body, found: _Found, classes: int, none: int) -> None:
    """Number, boxes, scores and classes, with nothing where nothing is."""
    there = body.op("Cast", found.there, to=TensorProto.BOOL)
    zero = body.number(0.0)
    body.give(0, body.op("ReduceSum", found.there, body.ints(1), keepdims=1), False)
    body.give(1, body.op("Where", body.op("Unsqueeze", there, body.ints(2)), found.boxes, zero))
    body.give(2, body.op("Where", there, found.scores, zero))
    kinds = body.op("Where", there, found.classes, body.index(none))
    body.give(3, body.op("Cast", kinds, to=classes), classes == TensorProto.FLOAT)


DOMAINS = ("", "TRT", "trt")
_PLUGINS: dict[str, Callable[[Body], None]] = {"EfficientNMS_TRT": _efficient_nms, "BatchedNMS_TRT": _batched_nms}
_PLUGINS["BatchedNMSDynamic_TRT"] = _batched_nms
WRITERS = {(domain, name): write for domain in DOMAINS for name, write in _PLUGINS.items()}
