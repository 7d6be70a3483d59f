"""Operators that move elements, choose among them, or reduce them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..draw import BYTES, FLOAT, QUANTIZED, Draw, draws

MOVED = (*FLOAT, *QUANTIZED, "INT32")


def moved(draw: Draw, x: int, shape: Sequence[int], operands: Sequence[int] = (), **fields: object) -> Sequence[int]:
    """A result that is quantized as the input is."""
    return draw.op([x, *operands], [draw.out(shape, draw.net.tensors[x]["type"], **draw.alike(x))], **fields)


@draws("RESHAPE")
def _reshape(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4)
    target = tuple(draw.chance.permutation(shape))
    x = draw.input(shape, draw.pick(*MOVED))
    return moved(draw, x, target, [draw.ints(*target)])


@draws("SQUEEZE")
def _squeeze(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 3)
    x = draw.input((1, *shape, 1), draw.pick(*MOVED))
    return moved(draw, x, shape, options="SqueezeOptions", SqueezeDims=[0, len(shape) + 1])


@draws("EXPAND_DIMS")
def _expand_dims(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 3)
    axis = draw.int(-len(shape) - 1, len(shape))
    out = list(shape)
    out.insert(axis % (len(shape) + 1), 1)
    return moved(draw, draw.input(shape, draw.pick(*MOVED)), out, [draw.scalar(axis)])


@draws("TRANSPOSE")
def _transpose(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 5)
    order = draw.chance.permutation(len(shape))
    x = draw.input(shape, draw.pick(*MOVED))
    return moved(draw, x, [shape[axis] for axis in order], [draw.ints(*order)])


@draws("TILE")
def _tile(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4, 4)
    times = [draw.int(1, 3) for _ in shape]
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "INT32"))
    return moved(draw, x, np.multiply(shape, times), [draw.ints(*times)])


@draws("BROADCAST_TO")
def _broadcast_to(draw: Draw) -> Sequence[int]:
    out = draw.shape(1, 4, 4)
    shape = [1 if draw.flip() else size for size in out]
    return moved(draw, draw.input(shape, draw.pick("FLOAT32", "INT8", "INT32")), out, [draw.ints(*out)])


@draws("REVERSE_V2")
def _reverse(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4)
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "UINT8", "INT16", "INT32"))
    return moved(draw, x, shape, [draw.ints(draw.int(0, len(shape) - 1))])


@draws("REVERSE_SEQUENCE")
def _reverse_sequence(draw: Draw) -> Sequence[int]:
    shape = draw.shape(2, 4)
    time, batch = draw.chance.permutation(len(shape))[:2]
    lengths = draw.net.input((shape[batch],), "INT32")
    draw.ranges[lengths] = (1, shape[time])
    x = draw.input(shape, draw.pick("FLOAT32", "INT32"))
    fields = {"SeqDim": int(time), "BatchDim": int(batch)}
    return moved(draw, x, shape, [lengths], options="ReverseSequenceOptions", **fields)


@draws("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def _blocks(draw: Draw) -> Sequence[int]:
    size, (h, w, c) = draw.int(2, 3), draw.shape(3, 3, 4)
    small, large = (1, h, w, c * size * size), (1, h * size, w * size, c)
    to_depth = draw.name == "SPACE_TO_DEPTH"
    x = draw.input(large if to_depth else small, draw.pick("FLOAT32", "INT8", "UINT8"))
    options = "SpaceToDepthOptions" if to_depth else "DepthToSpaceOptions"
    return moved(draw, x, small if to_depth else large, options=options, BlockSize=size)


@draws("SPACE_TO_BATCH_ND")
def _space_to_batch(draw: Draw) -> Sequence[int]:
    blocks, pads, channels = [draw.int(1, 3), draw.int(1, 3)], np.zeros((2, 2), np.int32), draw.int(1, 3)
    whole = [draw.int(1, 6), draw.int(1, 6)]
    for axis in range(2):
        pads[axis, 0] = draw.int(0, 2)
        pads[axis, 1] = -(whole[axis] + pads[axis, 0]) % blocks[axis]
    out = [(n + int(sum(pad))) // b for n, pad, b in zip(whole, pads, blocks, strict=True)]
    x = draw.input((2, *whole, channels), draw.pick("FLOAT32", "INT8", "UINT8"))
    return moved(draw, x, (2 * blocks[0] * blocks[1], *out, channels), [draw.ints(*blocks), draw.net.constant(pads)])


@draws("BATCH_TO_SPACE_ND")
def _batch_to_space(draw: Draw) -> Sequence[int]:
    blocks, small, channels = [draw.int(1, 3), draw.int(1, 3)], [draw.int(2, 5), draw.int(2, 5)], draw.int(1, 3)
    crops = np.array([[draw.int(0, 1), draw.int(0, 1)], [draw.int(0, 1), 0]], np.int32)
    out = [n * b - int(sum(crop)) for n, b, crop in zip(small, blocks, crops, strict=True)]
    if min(out) < 1:
        crops, out = np.zeros((2, 2), np.int32), [n * b for n, b in zip(small, blocks, strict=True)]
    x = draw.input((2 * blocks[0] * blocks[1], *small, channels), draw.pick("FLOAT32", "INT8", "UINT8"))
    return moved(draw, x, (2, *out, channels), [draw.ints(*blocks), draw.net.constant(crops)])


@draws("PAD", "PADV2")
def _pad(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4, 5)
    widths = draw.chance.integers(0, 3, (len(shape), 2)).astype(np.int32)
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "UINT8", "INT32"))
    known = draw.net.tensors[x]
    operands = [draw.net.constant(widths)]
    if draw.name == "PADV2":
        value = np.array([draw.int(0, 5)], known["type"].lower())
        operands.append(draw.net.constant(value, known["scale"], known["zero"]))
    return moved(draw, x, np.array(shape) + widths.sum(axis=1), operands)


@draws("MIRROR_PAD")
def _mirror(draw: Draw) -> Sequence[int]:
    shape = tuple(size + 1 for size in draw.shape(1, 4, 5))
    widths = np.array([[draw.int(0, size - 1), draw.int(0, size - 1)] for size in shape], np.int32)
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "INT32"))
    out = np.array(shape) + widths.sum(axis=1)
    return moved(draw, x, out, [draw.net.constant(widths)], options="MirrorPadOptions", Mode=draw.pick(0, 1))


@draws("SLICE")
def _slice(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4)
    starts = [draw.int(0, size - 1) for size in shape]
    sizes = [draw.int(1, size - start) for start, size in zip(starts, shape, strict=True)]
    given = [
        -1 if start + n == size and draw.flip() else n for start, n, size in zip(starts, sizes, shape, strict=True)
    ]
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "UINT8", "INT16", "INT32"))
    if draw.flip(0.25):  # where it starts is computed
        start = draw.net.input((len(shape),), "INT32")
        draw.ranges[start] = (0, 0)
        sized = [n if n >= 0 else size for n, size in zip(sizes, shape, strict=True)]
        return moved(draw, x, sized, [start, draw.ints(*sized)])
    return moved(draw, x, sizes, [draw.ints(*starts), draw.ints(*given)])


@draws("STRIDED_SLICE")
def _strided_slice(draw: Draw) -> Sequence[int]:
    if draw.flip(0.4):
        return _spread_slice(draw)
    shape = draw.shape(1, 4)
    begins, ends, steps, out = [], [], [], list[int]()
    masks = dict.fromkeys(("BeginMask", "EndMask", "ShrinkAxisMask"), 0)
    for axis, size in enumerate(shape):
        step = draw.pick(1, 1, 2, -1)
        low, high = sorted((draw.int(0, size - 1), draw.int(0, size - 1)))
        begin, end = (low, high + 1) if step > 0 else (high, low - 1 if low else -size - 1)
        if draw.flip(0.2):
            masks["ShrinkAxisMask"] |= 1 << axis
            step, begin, end = 1, low - size if draw.flip() else low, low + 1
        else:
            for name in ("BeginMask", "EndMask"):
                masks[name] |= draw.flip(0.3) << axis
            given = slice(
                None if masks["BeginMask"] >> axis & 1 else begin, None if masks["EndMask"] >> axis & 1 else end, step
            )
            out.append(len(range(*given.indices(size))))
        begins, ends, steps = [*begins, begin], [*ends, end], [*steps, step]
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "UINT8", "INT16", "INT32"))
    operands = [draw.ints(*numbers) for numbers in (begins, ends, steps)]
    return moved(draw, x, out, operands, options="StridedSliceOptions", **masks)


def _spread_slice(draw: Draw) -> Sequence[int]:
    """With an ellipsis, new axes, and ends that leave nothing."""
    shape = draw.shape(2, 4)
    front = draw.int(0, len(shape) - 1)
    back = draw.int(0, len(shape) - 1 - front)  # for the ellipsis at least one axis: LiteRT takes one in any case
    places: list[int | str] = [*range(front), "ellipsis", *range(len(shape) - back, len(shape))]
    for _ in range(draw.int(0, 2)):
        places.insert(draw.int(0, len(places)), "new")
    masks = dict.fromkeys(("EllipsisMask", "NewAxisMask", "ShrinkAxisMask"), 0)
    begins, ends, index = list[int](), list[int](), list[Any]()
    for bit, place in enumerate(places):
        begin, end = 0, 1
        if place == "ellipsis":
            masks["EllipsisMask"] |= 1 << bit
            index.append(Ellipsis)
        elif place == "new":
            masks["NewAxisMask"] |= 1 << bit
            index.append(None)
        elif draw.flip(0.3):
            masks["ShrinkAxisMask"] |= 1 << bit
            begin = draw.int(0, shape[int(place)] - 1)
            end = begin + 1
            index.append(begin)
        else:
            begin, end = draw.int(-shape[int(place)] - 1, 1), draw.int(0, shape[int(place)] + 1)
            index.append(slice(begin, end))
        begins, ends = [*begins, begin], [*ends, end]
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "INT32"))
    operands = [draw.ints(*numbers) for numbers in (begins, ends, [1] * len(ends))]
    out = np.zeros(shape)[tuple(index)].shape
    return moved(draw, x, out, operands, options="StridedSliceOptions", **masks)


@draws("CONCATENATION")
def _concat(draw: Draw) -> Sequence[int]:
    shape, type = list(draw.shape(1, 4)), draw.pick("FLOAT32", "INT8", "UINT8", "INT16", "INT32")
    axis, parts, total = draw.int(0, len(shape) - 1), [], 0
    first: dict[str, object] = {}
    for _ in range(draw.int(1, 4)):
        shape[axis] = draw.int(1, 4)
        total += shape[axis]
        parts.append(draw.input(shape, type, **(first if type != "UINT8" else {})))
        first = draw.alike(parts[0])
    shape[axis] = total
    y = draw.out(shape, type, **(first if type != "UINT8" else {}))
    return draw.op(parts, [y], "ConcatenationOptions", Axis=axis - (len(shape) if draw.flip() else 0))


@draws("PACK")
def _pack(draw: Draw) -> Sequence[int]:
    shape, count, type = draw.shape(1, 3), draw.int(1, 4), draw.pick("FLOAT32", "INT8", "UINT8", "INT32")
    axis = draw.int(0, len(shape))
    x = draw.input(shape, type)
    parts = [x, *(draw.input(shape, type, **draw.alike(x)) for _ in range(count - 1))]
    out = [*shape[:axis], count, *shape[axis:]]
    return draw.op(parts, [draw.out(out, type, **draw.alike(x))], "PackOptions", ValuesCount=count, Axis=axis)


@draws("UNPACK")
def _unpack(draw: Draw) -> Sequence[int]:
    shape, axis = draw.shape(2, 4, 4), draw.int(0, 1)
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "UINT8", "INT32"))
    part = [*shape[:axis], *shape[axis + 1 :]]
    made = [draw.out(part, draw.net.tensors[x]["type"], **draw.alike(x)) for _ in range(shape[axis])]
    return draw.op([x], made, "UnpackOptions", Num=shape[axis], Axis=axis)


@draws("SPLIT", "SPLIT_V")
def _split(draw: Draw) -> Sequence[int]:
    shape = list(draw.shape(1, 4, 4))
    axis, count = draw.int(0, len(shape) - 1), draw.int(1, 3)
    sizes = [draw.int(1, 3) for _ in range(count)] if draw.name == "SPLIT_V" else [draw.int(1, 3)] * count
    shape[axis] = sum(sizes)
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "UINT8", "INT16", "INT32"))
    type, q = draw.net.tensors[x]["type"], draw.alike(x)
    made = [draw.out([*shape[:axis], size, *shape[axis + 1 :]], type, **q) for size in sizes]
    if draw.name == "SPLIT":
        return draw.op([draw.scalar(axis), x], made, "SplitOptions", NumSplits=count)
    return draw.op([x, draw.ints(*sizes), draw.scalar(axis)], made, "SplitVOptions", NumSplits=count)


@draws("GATHER")
def _gather(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4, 5)
    batch = draw.int(0, min(2, len(shape) - 1))
    axis = draw.int(batch, len(shape) - 1)
    taken = (*shape[:batch], *draw.shape(0, 2, 4))
    places = draw.net.input(taken, draw.pick("INT32", "INT64"))
    draw.ranges[places] = (0, shape[axis] - 1)
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "UINT8", "INT32"))
    out = (*shape[:axis], *taken[batch:], *shape[axis + 1 :])
    return moved(draw, x, out, [places], options="GatherOptions", Axis=axis, BatchDims=batch)


@draws("GATHER_ND")
def _gather_nd(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4, 5)
    depth = draw.int(1, len(shape))
    count = draw.shape(1, 2, 4)
    places = np.stack([draw.chance.integers(0, shape[axis], count) for axis in range(depth)], axis=-1).astype(np.int32)
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "INT32"))
    return moved(draw, x, (*count, *shape[depth:]), [draw.net.constant(places)])


@draws("EMBEDDING_LOOKUP")
def _embedding(draw: Draw) -> Sequence[int]:
    rows, width, count = draw.int(2, 8), draw.int(1, 6), draw.int(1, 5)
    places = draw.net.input((count,), "INT32")
    draw.ranges[places] = (0, rows - 1)
    return draw.op([places, draw.constant((rows, width))], [draw.out((count, width))])


@draws("SCATTER_ND")
def _scatter_nd(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 3, 5)
    depth, count = draw.int(1, len(shape)), draw.int(1, 5)
    places = np.stack([draw.chance.integers(0, shape[axis], count) for axis in range(depth)], axis=-1).astype(np.int32)
    updates = draw.input((count, *shape[depth:]), draw.pick("FLOAT32", "INT32"))
    y = draw.out(shape, draw.net.tensors[updates]["type"])
    return draw.op([draw.net.constant(places), updates, draw.ints(*shape)], [y])


@draws("DYNAMIC_UPDATE_SLICE")
def _update_slice(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4, 5)
    part = [draw.int(1, size) for size in shape]
    start = draw.net.input((len(shape),), "INT32")
    draw.ranges[start] = (-1, 5)
    x, update = draw.input(shape), draw.input(part)
    return draw.op([x, update, start], [draw.out(shape)])


@draws("ONE_HOT")
def _one_hot(draw: Draw) -> Sequence[int]:
    shape, depth = draw.shape(1, 3, 4), draw.int(1, 5)
    axis = draw.int(-1, len(shape))
    out = list(shape)
    out.insert(axis if axis >= 0 else len(shape), depth)
    x = draw.net.input(shape, "INT32")
    draw.ranges[x] = (-2, depth + 1)
    type = draw.pick("FLOAT32", "INT32")
    values = [draw.net.constant(np.array(number, type.lower())) for number in (3, -1)]
    return draw.op([x, draw.scalar(depth), *values], [draw.out(out, type)], "OneHotOptions", Axis=axis)


@draws("SELECT", "SELECT_V2")
def _select(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4)
    condition = shape[:1] if draw.name == "SELECT" and draw.flip(0.4) else shape
    if draw.name == "SELECT_V2":
        condition = tuple(1 if draw.flip(0.3) else size for size in shape)
    c = draw.net.input(condition, "BOOL")
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "INT32"))
    known = draw.net.tensors[x]
    y = draw.input(shape, known["type"], **draw.alike(x))
    return draw.op([c, x, y], [draw.out(shape, known["type"], **draw.alike(x))])


@draws("TOPK_V2")
def _top_k(draw: Draw) -> Sequence[int]:
    shape = (*draw.shape(0, 2, 4), draw.int(1, 9))
    k = draw.int(1, shape[-1])
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "INT32"))
    known = draw.net.tensors[x]
    out = (*shape[:-1], k)
    made = [draw.out(out, known["type"], **draw.alike(x)), draw.net.tensor(out, "INT32")]
    return draw.op([x, draw.scalar(k)], made)


@draws("FILL")
def _fill(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(1, 4), draw.pick("FLOAT32", "INT32")
    return draw.op([draw.ints(*shape), draw.input((), type)], [draw.out(shape, type)])


@draws("MATRIX_DIAG")
def _diag(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 3, 5)
    x = draw.input(shape, draw.pick("FLOAT32", "INT32"))
    return moved(draw, x, (*shape, shape[-1]))


@draws("MATRIX_SET_DIAG")
def _set_diag(draw: Draw) -> Sequence[int]:
    shape = draw.shape(2, 4, 5)
    x = draw.input(shape, draw.pick("FLOAT32", "INT32"))
    diagonal = draw.input((*shape[:-2], min(shape[-2:])), draw.net.tensors[x]["type"])
    return moved(draw, x, shape, [diagonal])


@draws("DILATE")
def _dilate(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4, 4)
    times = [draw.int(1, 3) for _ in shape]
    x = draw.input(shape, draw.pick("FLOAT32", "INT8", "INT32"))
    between = draw.net.constant(np.array(draw.int(-3, 3), draw.net.tensors[x]["type"].lower()), **draw.alike(x))
    out = [(size - 1) * by + 1 for size, by in zip(shape, times, strict=True)]
    return moved(draw, x, out, [draw.ints(*times), between], options="DilateOptions")


@draws("SHAPE", "RANK")
def _shape(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4)
    out = draw.net.tensor((len(shape),) if draw.name == "SHAPE" else (), "INT32")
    options = {"options": "ShapeOptions", "OutType": 2} if draw.name == "SHAPE" else {}
    return draw.op([draw.input(shape)], [out], **options)


@draws("SUM", optimised=True)  # the reference counts the zero point twice
@draws("MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")
def _reduce(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4, 5)
    axes = sorted(int(axis) for axis in draw.chance.permutation(len(shape))[: draw.int(1, len(shape))])
    kept = draw.flip()
    out = [1 if axis in axes else size for axis, size in enumerate(shape) if kept or axis not in axes]
    types = {"MEAN": (*FLOAT, *QUANTIZED), "SUM": (*FLOAT, "INT8", "INT32"), "REDUCE_PROD": (*FLOAT, "INT32")}
    truth = draw.name in ("REDUCE_ANY", "REDUCE_ALL")
    type = "BOOL" if truth else draw.pick(*types.get(draw.name, (*FLOAT, *QUANTIZED, "INT32")))
    x = draw.input(shape, type, (-3, 3) if draw.name == "REDUCE_PROD" else None)
    alike = draw.name in ("REDUCE_MAX", "REDUCE_MIN") or (draw.name == "MEAN" and draw.flip())
    y = draw.out(out, type, **(draw.alike(x) if alike else {}))
    if draw.name == "SUM" and type == "INT8":  # LiteRT's sums do not saturate
        draw.net.tensors[y] |= {"scale": draw.net.tensors[x]["scale"] * 2 * int(np.prod(shape)), "zero": 0}
    given = [axis - len(shape) if draw.flip(0.3) else axis for axis in axes]
    return draw.op([x, draw.ints(*given)], [y], "ReducerOptions", KeepDims=kept)


@draws("ARG_MAX", "ARG_MIN")
def _arg(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4)
    axis, type = draw.int(0, len(shape) - 1), draw.pick("INT32", "INT64")
    x = draw.input(shape, draw.pick(*FLOAT, *BYTES, "INT32"))
    y = draw.net.tensor([*shape[:axis], *shape[axis + 1 :]], type)
    options = f"Arg{draw.name[4:].title()}Options"
    return draw.op([x, draw.scalar(axis)], [y], options, OutputType={"INT32": 2, "INT64": 4}[type])


@draws("CUMSUM")
def _cumsum(draw: Draw) -> Sequence[int]:
    shape = draw.shape(1, 4)
    x = draw.input(shape, draw.pick("FLOAT32", "INT32"))
    axis = draw.scalar(draw.int(-len(shape), len(shape) - 1))
    return moved(draw, x, shape, [axis], options="CumsumOptions", Exclusive=draw.flip(), Reverse=draw.flip())
