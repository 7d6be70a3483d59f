"""What stands behind the convolutions of detectors: boxes decoded, chosen and cut to a number that a bound settles."""

from __future__ import annotations

from typing import Any

import numpy as np

from .net import Net, f, ints
from .spelling import spelled

ANYTHING = {"*": (64,)}
BOXES, CLASSES = 20, 3


def boxes_and_scores(net: Net, batch: int = 1, classes: int = CLASSES) -> tuple[str, str]:
    """Corners of boxes, [batch, boxes, 4], and scores, [batch, classes, boxes]."""
    corners = net.floats(batch, BOXES, 2, low=0.0, high=6.0)
    boxes = np.concatenate([corners, corners + net.floats(batch, BOXES, 2, low=1.0, high=4.0)], -1)
    return net.input(boxes), net.input(net.floats(batch, classes, BOXES, low=0.0))


def chosen(net: Net, boxes: str, scores: str, most: int = 5, **more: Any) -> str:
    net.bounds = ANYTHING
    return net.op("NonMaxSuppression", boxes, scores, ints(most), f(0.4), f(0.3), **more)


@spelled("detector/selected", {}, {"batch": 2}, {"corners": 1}, {"most": 0}, steps=None, room=2)
def selected(net: Net, batch: int = 1, corners: int = 0, most: int = 3) -> str:
    return chosen(net, *boxes_and_scores(net, batch), most, center_point_box=corners)


@spelled(
    "detector/gather", {"how": "gather"}, {"how": "gather_nd"}, {"how": "slice"}, {"how": "split"}, steps=None, room=1.5
)
def gathered(net: Net, how: str) -> list[str]:
    boxes, scores = boxes_and_scores(net)
    found = chosen(net, boxes, scores)
    if how == "split":
        parts = net.op("Split", found, ints(1, 1, 1), outs=3, axis=1)
        numbers = net.op("Squeeze", f"{parts}.2", ints(1))
        kinds = net.op("Squeeze", f"{parts}.1", ints(1))
    else:
        numbers = net.op("Gather", found, np.array(2), axis=1)
        kinds = net.op("Gather", found, np.array(1), axis=1)
    flat = net.op("Squeeze", boxes, ints(0))
    if how == "gather_nd":
        place = net.op("Concat", net.op("Unsqueeze", kinds, ints(1)), net.op("Unsqueeze", numbers, ints(1)), axis=1)
        score = net.op("GatherND", net.op("Squeeze", scores, ints(0)), place)
        picked = net.op("GatherND", flat, net.op("Unsqueeze", numbers, ints(1)))
    elif how == "slice":
        pairs = net.op("Slice", found, ints(0), ints(3), ints(1))
        score = net.op("GatherND", scores, pairs)
        picked = net.op("Gather", flat, numbers, axis=0)
    else:
        places = net.op("Add", net.op("Mul", kinds, np.array(BOXES)), numbers)
        score = net.op("Gather", net.op("Reshape", scores, ints(-1)), places, axis=0)
        picked = net.op("Gather", flat, numbers, axis=0)
    return [picked, score, net.op("Cast", kinds, to=6)]


def of_torchvision(net: Net, classes: int) -> tuple[str, str, str]:
    """batched_nms: boxes moved apart by their classes, all at once, then the best of them."""
    boxes = net.input(net.floats(BOXES, 4, low=0, high=4))
    scores = net.input(net.floats(BOXES, low=0))
    kinds = net.input(net.integers(0, classes, BOXES))
    apart = net.op("Mul", net.op("Cast", kinds, to=1), net.op("Add", net.op("ReduceMax", boxes, keepdims=0), f(1)))
    moved = net.op("Add", boxes, net.op("Unsqueeze", apart, ints(1)))
    lines = net.op("Unsqueeze", net.op("Unsqueeze", scores, ints(0)), ints(0))
    found = chosen(net, net.op("Unsqueeze", moved, ints(0)), lines, BOXES)
    numbers = net.op("Squeeze", net.op("Gather", found, ints(2), axis=1), ints(1))
    return boxes, scores, numbers


@spelled("detector/torchvision", {"most": 100}, {"most": 5}, steps=None)
def of_torchvision_cut(net: Net, most: int) -> list[str]:
    boxes, scores, numbers = of_torchvision(net, 3)
    kept = net.op("Slice", numbers, ints(0), ints(most), ints(0))
    return [net.op("Gather", boxes, kept, axis=0), net.op("Gather", scores, kept, axis=0)]


@spelled("detector/torchvision_filters", {"least": 0.3}, {"least": 0.99}, {"least": 1.5}, steps=None)
def of_torchvision_filtered(net: Net, least: float) -> list[str]:
    """Scores above a threshold, boxes that are not tiny, then suppression: every number follows from data."""
    boxes, scores = net.input(net.floats(BOXES, 4, low=0, high=4)), net.input(net.floats(BOXES, low=0))
    above = net.op("Squeeze", net.op("NonZero", net.op("Greater", scores, f(least))), ints(0))
    own, score = net.op("Gather", boxes, above, axis=0), net.op("Gather", scores, above, axis=0)
    wide = net.op("Sub", net.op("Gather", own, np.array(2), axis=1), net.op("Gather", own, np.array(0), axis=1))
    large = net.op("Squeeze", net.op("NonZero", net.op("GreaterOrEqual", wide, f(0.01))), ints(0))
    own, score = net.op("Gather", own, large, axis=0), net.op("Gather", score, large, axis=0)
    lines = net.op("Unsqueeze", score, ints(0, 1))
    found = chosen(net, net.op("Unsqueeze", own, ints(0)), lines, 50)
    numbers = net.op("Squeeze", net.op("Gather", found, ints(2), axis=1), ints(1))
    return [net.op("Gather", own, numbers, axis=0), net.op("Gather", score, numbers, axis=0)]


@spelled("detector/topk", {"how": "min"}, {"how": "shape"}, {"how": "constant"}, steps=None, room=2)
def best_of(net: Net, how: str) -> list[str]:
    """TopK of at most k, as torch (Min of k and the size) and tf2onnx write it."""
    boxes, scores = boxes_and_scores(net)
    found = chosen(net, boxes, scores, 4)
    numbers = net.op("Gather", found, np.array(2), axis=1)
    flat = net.op("Squeeze", net.op("ReduceMax", scores, axes=[1], keepdims=0), ints(0))
    score = net.op("Gather", flat, numbers, axis=0)
    size = net.op("Shape", score)
    if how == "min":
        k = net.op("Min", size, ints(6))
    elif how == "shape":
        both = net.op("Concat", size, ints(6), axis=0)
        k = net.op("ReduceMin", both, axes=[0], keepdims=1)
    else:
        score = net.op("Concat", score, np.zeros(6, np.float32), axis=0)
        k = net.constant(ints(6))
    best = net.op("TopK", score, k, outs=2, axis=0, largest=1, sorted=1)
    return [best] if how == "constant" else [best, net.op("Gather", numbers, f"{best}.1", axis=0)]


@spelled(
    "detector/padded",
    {"how": "pad"},
    {"how": "pad_of_scalar"},
    {"how": "concat"},
    {"how": "scatter"},
    steps=None,
    room=3,
)
def padded(net: Net, how: str) -> str:
    """What is found, and zeros up to a fixed number, as TensorFlow's detectors give it."""
    boxes, scores = boxes_and_scores(net)
    found = chosen(net, boxes, scores, 4)
    numbers = net.op("Gather", found, np.array(2), axis=1)
    picked = net.op("Gather", net.op("Squeeze", boxes, ints(0)), numbers, axis=0)
    count = net.op("Shape", numbers)
    if how == "pad":
        kept = net.op("Slice", picked, ints(0), ints(10), ints(0))
        left = net.op("Sub", ints(10), net.op("Min", ints(10), count))
        pads = net.op("Concat", ints(0, 0), left, ints(0), axis=0)
        return net.op("Reshape", net.op("Pad", kept, pads), ints(10, 4))
    if how == "pad_of_scalar":
        least = net.op("Min", net.op("Squeeze", count), np.array(10))
        kept = net.op("Slice", picked, ints(0), net.op("Unsqueeze", least, ints(0)), ints(0))
        left = net.op("Unsqueeze", net.op("Sub", np.array(10), least), ints(0))
        pads = net.op("Reshape", net.op("Concat", ints(0, 0), left, ints(0), axis=0), ints(4))
        return net.op("Pad", kept, pads, f(0))
    if how == "concat":
        all = net.op("Concat", picked, np.zeros((10, 4), np.float32), axis=0)
        return net.op("Slice", all, ints(0), ints(10), ints(0))
    kept = net.op("Slice", picked, ints(0), ints(10), ints(0))
    size = net.op("Gather", net.op("Shape", kept), np.array(0))
    places = net.op("Unsqueeze", net.op("Range", np.array(0), size, np.array(1)), ints(1))
    return net.op("ScatterND", np.zeros((10, 4), np.float32), places, kept)


@spelled(
    "detector/no_more_than", {"how": "expand"}, {"how": "tile"}, {"how": "fill"}, {"how": "range"}, steps=None, room=3
)
def by_count(net: Net, how: str) -> str:
    """Tensors as long as what is found."""
    boxes, scores = boxes_and_scores(net)
    numbers = net.op("Gather", chosen(net, boxes, scores, 4), np.array(2), axis=1)
    count = net.op("Shape", numbers)
    if how == "expand":
        shape = net.op("Concat", count, ints(3), axis=0)
        return net.op("Expand", np.ones((1, 3), np.float32), shape)
    if how == "tile":
        return net.op("Tile", np.ones((1, 3), np.float32), net.op("Concat", count, ints(1), axis=0))
    if how == "fill":
        return net.op("ConstantOfShape", net.op("Concat", count, ints(3), axis=0))
    return net.op("Range", np.array(0), net.op("Squeeze", count), np.array(1))


@spelled("detector/yolo", {"how": "v5"}, {"how": "v8"}, {"how": "end2end"}, steps=None, room=9)
def yolo(net: Net, how: str) -> list[str]:
    if how == "v5":
        raw = net.input(net.floats(1, 3 * 8, 4, 4))
        cut = net.op("Transpose", net.op("Reshape", raw, ints(1, 3, 8, 4, 4)), perm=[0, 1, 3, 4, 2])
        parts = net.op("Split", net.op("Sigmoid", cut), ints(2, 2, 4), outs=3, axis=4)
        grid = net.floats(1, 3, 4, 4, 2)
        centre = net.op("Mul", net.op("Add", net.op("Mul", parts, f(2)), grid), f(8))
        size = net.op("Mul", net.op("Pow", net.op("Mul", f"{parts}.1", f(2)), f(2)), net.floats(1, 3, 4, 4, 2))
        whole = net.op("Concat", centre, size, f"{parts}.2", axis=4)
        return [net.op("Reshape", whole, ints(1, -1, 8))]
    raw = net.input(net.floats(1, 4 * 4 + 3, 20, low=-3, high=3))
    parts = net.op("Split", raw, ints(16, 3), outs=2, axis=1)
    spread = net.op("Transpose", net.op("Reshape", parts, ints(1, 4, 4, 20)), perm=[0, 2, 1, 3])
    weights = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    sides = net.op("Reshape", net.op("Conv", net.op("Softmax", spread, axis=1), weights), ints(1, 4, 20))
    near, far = (net.op("Slice", sides, ints(a), ints(a + 2), ints(1)) for a in (0, 2))
    anchors = net.floats(1, 2, 20, low=0, high=9)
    low, high = net.op("Sub", anchors, near), net.op("Add", anchors, far)
    middle = net.op("Div", net.op("Add", low, high), f(2))
    boxes = net.op("Mul", net.op("Concat", middle, net.op("Sub", high, low), axis=1), f(8))
    scores = net.op("Sigmoid", f"{parts}.1")
    if how == "v8":
        return [net.op("Concat", boxes, scores, axis=1)]
    turned = net.op("Transpose", boxes, perm=[0, 2, 1])
    found = chosen(net, turned, scores, 5, center_point_box=1)
    numbers = net.op("Gather", found, np.array(2), axis=1)
    picked = net.op("Gather", net.op("Squeeze", turned, ints(0)), numbers, axis=0)
    score = net.op("GatherND", scores, net.op("Gather", found, ints(0, 1, 2), axis=1))
    kinds = net.op("Cast", net.op("Gather", found, ints(1), axis=1), to=1)
    return [net.op("Concat", picked, net.op("Unsqueeze", score, ints(1)), kinds, axis=1)]


@spelled("detector/rt_detr", {"how": "mod"}, {"how": "fmod_div"}, {"how": "floor"}, steps=None, room=2)
def rt_detr(net: Net, how: str) -> list[str]:
    """The best of all queries and classes; which query and which class follows by division."""
    scores = net.op("Sigmoid", net.input(net.floats(2, 10, 3)))
    boxes = net.input(net.floats(2, 10, 4))
    best = net.op("TopK", net.op("Flatten", scores, axis=1), ints(6), outs=2, axis=1)
    place = f"{best}.1"
    if how == "floor":
        query = net.op("Cast", net.op("Floor", net.op("Div", net.op("Cast", place, to=1), f(3))), to=7)
    else:
        query = net.op("Div", place, np.array(3))
    kinds = (
        net.op("Mod", place, np.array(3))
        if how != "fmod_div"
        else net.op("Sub", place, net.op("Mul", query, np.array(3)))
    )
    wide = net.op("Tile", net.op("Unsqueeze", query, ints(2)), ints(1, 1, 4))
    return [kinds, net.op("GatherElements", boxes, wide, axis=1), best]


@spelled("detector/center_net", {"how": "equal"}, {"how": "where"}, steps=None, room=1.3)
def center_net(net: Net, how: str) -> list[str]:
    """Peaks of a heat map, and the sizes that stand there."""
    heat = net.op("Sigmoid", net.input(net.floats(1, 2, 8, 8, low=-3, high=3)))
    sizes = net.input(net.floats(1, 2, 8, 8))
    peak = net.op("Equal", net.op("MaxPool", heat, kernel_shape=[3, 3], pads=[1] * 4), heat)
    kept = net.op("Mul", heat, net.op("Cast", peak, to=1)) if how == "equal" else net.op("Where", peak, heat, f(0))
    best = net.op("TopK", net.op("Reshape", kept, ints(1, -1)), ints(5), outs=2, axis=1)
    place = net.op("Mod", f"{best}.1", np.array(64))
    rows = net.op("Transpose", net.op("Reshape", sizes, ints(1, 2, 64)), perm=[0, 2, 1])
    wide = net.op("Expand", net.op("Unsqueeze", place, ints(2)), ints(1, 5, 2))
    return [best, net.op("GatherElements", rows, wide, axis=1), net.op("Div", place, np.array(8))]


@spelled("detector/per_class", steps=None)
def suppressed_per_class(net: Net) -> str:
    """PaddleDetection's multiclass_nms3: what is found, sorted by score, and the rows of the best ones."""
    boxes, scores = boxes_and_scores(net)
    found = chosen(net, boxes, scores, 4)
    flat = net.op("Reshape", scores, ints(-1))
    kinds, numbers = (net.op("Squeeze", net.op("Gather", found, ints(n), axis=1), ints(1)) for n in (1, 2))
    place = net.op("Add", net.op("Mul", kinds, np.array(BOXES)), numbers)
    score = net.op("Gather", flat, place, axis=0)
    size = net.op("Shape", score)
    k = net.op("Min", size, ints(8))
    best = net.op("TopK", score, k, outs=2, axis=0)
    order = f"{best}.1"
    rows = net.op("Gather", net.op("Squeeze", boxes, ints(0)), net.op("Gather", numbers, order, axis=0), axis=0)
    kind = net.op("Cast", net.op("Gather", kinds, order, axis=0), to=1)
    return net.op("Concat", net.op("Unsqueeze", kind, ints(1)), net.op("Unsqueeze", best, ints(1)), rows, axis=1)


@spelled("detector/count", steps=None)
def how_many(net: Net) -> list[str]:
    boxes, scores = boxes_and_scores(net, 2)
    found = chosen(net, boxes, scores, 4)
    sample = net.op("Gather", found, np.array(0), axis=1)
    one = net.op("Equal", sample, np.array(1))
    return [net.op("ReduceSum", net.op("Cast", one, to=6), keepdims=0), net.op("Compress", found, one, axis=0)]


# -- TensorRT's plugins


def _suppressed(boxes: np.ndarray, scores: np.ndarray, iou: float, least: float, grow: float = 0.0) -> list[int]:
    """The boxes of one class that stay, the best first."""
    kept: list[int] = []
    for number in np.argsort(-scores, kind="stable"):
        if scores[number] <= least:
            break
        a = boxes[number] + np.array([0, 0, grow, grow])
        overlaps = []
        for other in kept:
            b = boxes[other] + np.array([0, 0, grow, grow])
            sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
            both = sides[0] * sides[1]
            overlaps.append(both / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both))
        if all(overlap <= iou for overlap in overlaps):
            kept.append(int(number))
    return kept


def _plugin(
    boxes: np.ndarray, scores: np.ndarray, most: int, iou: float, least: float, back: int, agnostic: bool, grow: float
) -> tuple[np.ndarray, ...]:
    """Numbers, boxes, scores, classes (-1 where nothing is) of what is found."""
    batch, _, classes = scores.shape
    count = np.zeros((batch, 1), np.int32)
    made = np.zeros((batch, most, 4), np.float32), np.zeros((batch, most), np.float32), np.full((batch, most), -1)
    for sample in range(batch):
        found: list[tuple[float, int, int]] = []
        if agnostic:
            flat = scores[sample].T.reshape(-1)
            wide = np.tile(boxes[sample], (classes, 1))
            found = [(flat[n], n // len(boxes[0]), n % len(boxes[0])) for n in _suppressed(wide, flat, iou, least)]
        for kind in range(0 if agnostic else classes):
            own = scores[sample, :, kind]
            if kind != back:
                found += [(own[n], kind, n) for n in _suppressed(boxes[sample], own, iou, least, grow)]
        best = sorted(found, key=lambda entry: (-entry[0], entry[1], entry[2]))[:most]
        count[sample] = len(best)
        for place, (score, kind, number) in enumerate(best):
            made[0][sample, place], made[1][sample, place] = boxes[sample, number], score
            made[2][sample, place] = kind
    return count, *made


@spelled(
    "detector/efficient_nms", {}, {"most": 100}, {"back": 1}, {"activate": 1}, {"coding": 1}, {"agnostic": 1},
    {"domain": "TRT"}, {"wide": 1}, {"batch": 1}, {"least": 0.95}, steps=None, room=99, domains=("TRT",),
)  # fmt: skip
def efficient_nms(
    net: Net, most: int = 6, back: int = -1, activate: int = 0, coding: int = 0, agnostic: int = 0, domain: str = "",
    wide: int = 0, batch: int = 2, least: float = 0.4,
) -> list[str]:  # fmt: skip
    corners = net.floats(batch, BOXES, 2, low=0.0, high=6.0)
    size = net.floats(batch, BOXES, 2, low=1.0, high=4.0)
    boxes = np.concatenate([corners, corners + size], -1)
    raw = net.floats(batch, BOXES, CLASSES, low=-3.0 if activate else 0.0, high=3.0 if activate else 1.0)
    scores = (1 / (1 + np.exp(-raw))).astype(np.float32) if activate else raw
    given = np.concatenate([corners + size / 2, size], -1) if coding else boxes
    given = given.reshape(batch, BOXES, 1, 4) if wide else given
    made = net.op(
        "EfficientNMS_TRT", net.input(given), net.input(raw), outs=4, domain=domain, score_threshold=least,
        iou_threshold=0.3, max_output_boxes=most, background_class=back, score_activation=activate,
        class_agnostic=agnostic, box_coding=coding, plugin_version="1",
    )  # fmt: skip
    names = [made, *(f"{made}.{number}" for number in range(1, 4))]
    results = _plugin(boxes, scores, most, 0.3, least, back, bool(agnostic), 0.0)
    net.wanted = dict(zip(names, (*results[:3], np.maximum(results[3], 0).astype(np.int32)), strict=True))
    return names


@spelled(
    "detector/batched_nms", {}, {"most": 100}, {"clip": 1}, {"back": 0}, {"top": 4}, {"dynamic": 1},
    steps=None, room=99,
)  # fmt: skip
@spelled("detector/batched_nms_of_pixels", {"pixels": 1})
def batched_nms(
    net: Net, most: int = 6, pixels: int = 0, clip: int = 0, back: int = -1, top: int = BOXES, dynamic: int = 0
) -> list[str]:
    corners = net.floats(2, BOXES, 2, low=0.0, high=6.0)
    boxes = np.concatenate([corners, corners + net.floats(2, BOXES, 2, low=1.0, high=4.0)], -1)
    scores = net.floats(2, BOXES, CLASSES, low=0.0)
    made = net.op(
        "BatchedNMSDynamic_TRT" if dynamic else "BatchedNMS_TRT", net.input(boxes.reshape(2, BOXES, 1, 4)),
        net.input(scores), outs=4, shareLocation=1, backgroundLabelId=back, numClasses=CLASSES, topK=top, keepTopK=most,
        scoreThreshold=0.4, iouThreshold=0.3, isNormalized=1 - pixels, clipBoxes=clip, plugin_version="1",
    )  # fmt: skip
    names = [made, *(f"{made}.{number}" for number in range(1, 4))]
    looked_at = np.where(scores < np.sort(scores, 1)[:, -top, None], -1, scores)
    count, own, best, kinds = _plugin(boxes, looked_at, most, 0.3, 0.4, back, False, float(pixels))
    own = np.clip(own, 0, 1) if clip else own
    net.wanted = dict(zip(names, (count, own, best, kinds.astype(np.float32)), strict=True))
    return names


@spelled("detector/anchors", refused="decoder in front")
def efficient_nms_with_anchors(net: Net) -> str:
    boxes = net.input(net.floats(1, BOXES, 4))
    return net.op("EfficientNMS_TRT", boxes, net.input(net.floats(1, BOXES, 3)), net.floats(1, BOXES, 4), outs=4)
