"""Sliding windows: convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges
from .products import less_zero


class Windows:
    """Strides, dilations and padding of the spatial axes, as the attributes say."""

    def __init__(self, at: NodeSite, sizes: Sequence[int], kernel: Sequence[int]) -> None:
        rank = len(kernel)
        self.kernel = [int(n) for n in kernel]
        self.strides: list[int] = list(at.attr("strides") or [1] * rank)
        self.dilations: list[int] = list(at.attr("dilations") or [1] * rank)
        self.reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        pads: list[int] = list(at.attr("pads") or [0] * (2 * rank))
        self.begin, self.end = pads[:rank], pads[rank:]
        self.how = at.attr("auto_pad", "NOTSET") or "NOTSET"
        self.sizes = [int(n) for n in sizes]
        self.ceil = bool(at.attr("ceil_mode", 0))
        if self.how in ("SAME_UPPER", "SAME_LOWER"):
            for n, size in enumerate(self.sizes):
                out = -(-size // self.strides[n])
                total = max((out - 1) * self.strides[n] + self.reach[n] - size, 0)
                small = total // 2
                self.begin[n] = small if self.how == "SAME_UPPER" else total - small
                self.end[n] = total - self.begin[n]
        elif self.how == "VALID":
            self.begin, self.end = [0] * rank, [0] * rank

    def out(self, n: int) -> int:
        room = self.sizes[n] + self.begin[n] + self.end[n] - self.reach[n]
        if room < 0:
            return 0 if not self.ceil else max(ceil(room / self.strides[n]) + 1, 0)
        if not self.ceil or self.how in ("SAME_UPPER", "SAME_LOWER"):
            return room // self.strides[n] + 1
        count = ceil(room / self.strides[n]) + 1
        # windows that would begin in the padding at the end are left out
        return count - 1 if (count - 1) * self.strides[n] >= self.sizes[n] + self.begin[n] else count

    def cut(self, x: Array, fill: Any) -> Array:
        """x[n, c, *outs, *kernel], with `fill` in the padding."""
        rank = len(self.kernel)
        widths = [(0, 0), (0, 0)]
        for n in range(rank):
            last = (self.out(n) - 1) * self.strides[n] + self.reach[n]
            widths.append((self.begin[n], max(last - self.sizes[n] - self.begin[n], 0)))
        index = np.pad(x, widths, constant_values=fill)
        for n in range(rank):
            places = np.arange(self.out(n))[:, None] * self.strides[n]
            places = places + np.arange(self.kernel[n]) * self.dilations[n]
            index = np.take(index, places, 2 + 2 * n)
        order = [0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 2 + 2 * rank, 2)]
        return index.transpose(order)


def convolved(at: NodeSite, x: Array, w: Array, groups: int) -> Array:
    """Without a bias; of floats or of integers that have no zero points any more."""
    windows = Windows(at, x.shape[2:], w.shape[2:])
    parts = windows.cut(x, 0)
    n, c = x.shape[:2]
    outs, rank, filters = parts.shape[2 : 2 + len(w.shape[2:])], len(w.shape[2:]), w.shape[0]
    taps = int(np.prod(w.shape[1:], dtype=np.int64))
    found = np.zeros((n, filters, *outs), np.result_type(x, w))
    per, made = c // groups, filters // groups
    for group in range(groups):
        part = parts[:, group * per : (group + 1) * per]
        rows = np.moveaxis(part, 1, 1 + rank).reshape(n, int(np.prod(outs, dtype=np.int64)), taps)
        weights = w[group * made : (group + 1) * made].reshape(made, taps)
        sums = rows @ weights.T
        found[:, group * made : (group + 1) * made] = np.moveaxis(sums, 1, 2).reshape(n, made, *outs)
    return found


def with_bias(y: Array, bias: Array | None) -> Array:
    return y if bias is None else y + bias.reshape(1, -1, *[1] * (y.ndim - 2))


@judges("Conv")
def conv(at: NodeSite) -> Array:
    return with_bias(convolved(at, at[0], at[1], at.attr("group", 1)), at.get(2))


@judges("ConvInteger")
def conv_integer(at: NodeSite) -> Array:
    x, w = less_zero(at[0], at.get(2), 1), less_zero(at[1], at.get(3), 0)
    return convolved(at, x, w, at.attr("group", 1)).astype(np.int32)


@judges("ConvTranspose")
def conv_transpose(at: NodeSite) -> Array:
    x, w, groups = at[0], at[1], at.attr("group", 1)
    rank = x.ndim - 2
    strides = at.attr("strides") or [1] * rank
    dilations = at.attr("dilations") or [1] * rank
    extra = at.attr("output_padding") or [0] * rank
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    full = [(s - 1) * step + r for s, step, r in zip(x.shape[2:], strides, reach, strict=True)]
    begin, outs = _transposed_pads(at, x.shape[2:], full, strides, extra)
    per, made = x.shape[1] // groups, w.shape[1]
    room = [max(f + e, b + o) for f, e, b, o in zip(full, extra, begin, outs, strict=True)]
    whole = np.zeros((x.shape[0], groups * made, *room), x.dtype)
    for tap in product(*(range(k) for k in w.shape[2:])):
        places = tuple(
            slice(t * d, t * d + (s - 1) * step + 1, step)
            for t, d, s, step in zip(tap, dilations, x.shape[2:], strides, strict=True)
        )
        for group in range(groups):
            weights = w[(slice(group * per, (group + 1) * per), slice(None), *tap)]
            part = np.moveaxis(np.tensordot(x[:, group * per : (group + 1) * per], weights, ([1], [0])), -1, 1)
            whole[(slice(None), slice(group * made, (group + 1) * made), *places)] += part
    cut = tuple(slice(b, b + o) for b, o in zip(begin, outs, strict=True))
    return with_bias(whole[(slice(None), slice(None), *cut)], at.get(2))


def _transposed_pads(
    at: NodeSite, sizes: Sequence[int], full: Sequence[int], strides: Sequence[int], extra: Sequence[int]
) -> tuple[list[int], list[int]]:
    """ "total_padding[i] = stride[i] * (input_size[i] - 1) + output_padding[i] + ... - output_shape[i]", of which
    the odd one stands at the end, in front with SAME_LOWER. SAME never pads, as the standard's own inference has it:
    what strides longer than the kernel do not reach is not there."""
    rank = len(sizes)
    how = at.attr("auto_pad", "NOTSET") or "NOTSET"
    shape = at.attr("output_shape")
    if shape is None and how not in ("SAME_UPPER", "SAME_LOWER"):
        pads = [0] * (2 * rank) if how == "VALID" else at.attr("pads") or [0] * (2 * rank)
        return list(pads[:rank]), [
            f + e - pads[n] - pads[rank + n] for n, (f, e) in enumerate(zip(full, extra, strict=True))
        ]
    wanted = list(shape)[-rank:] if shape else [s * step for s, step in zip(sizes, strides, strict=True)]
    totals = [max(f + e - out, 0) for f, e, out in zip(full, extra, wanted, strict=True)]
    begin = [total - total // 2 if how == "SAME_LOWER" else total // 2 for total in totals]
    same = wanted if shape else [f + e - total for f, e, total in zip(full, extra, totals, strict=True)]
    return begin, [int(n) for n in same]


# -- pools


def _pool_windows(at: NodeSite) -> Windows:
    return Windows(at, at[0].shape[2:], at.attr("kernel_shape"))


@judges("MaxPool")
def max_pool(at: NodeSite) -> tuple[Array, ...] | Array:
    x, windows = at[0], _pool_windows(at)
    rank = len(windows.kernel)
    is_float = x.dtype.kind == "f"
    lowest = -np.inf if is_float else np.iinfo(x.dtype).min
    parts = windows.cut(x, lowest)
    flat = parts.reshape(*parts.shape[: 2 + rank], -1)
    if flat.size and not windows.cut(np.ones(x.shape, bool), False).reshape(flat.shape).any(-1).all():
        raise NoWitness("a window reads only padding")
    found = flat.max(-1)
    if at.count < 2:
        return found
    spatial = x.shape[2:]
    numbers = np.arange(int(np.prod(spatial))).reshape(spatial)
    if at.attr("storage_order", 0):
        numbers = np.arange(int(np.prod(spatial))).reshape(spatial[::-1]).transpose()
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * rank) * int(np.prod(spatial))
    places = windows.cut(np.broadcast_to(numbers, x.shape) + planes, -1).reshape(flat.shape)
    first = np.argmax((flat == found[..., None]) & (places >= 0), -1)
    return found, np.take_along_axis(places, first[..., None], -1)[..., 0].astype(np.int64)


@judges("AveragePool")
def average_pool(at: NodeSite) -> Array:
    x, windows = at[0], _pool_windows(at)
    return averaged(x, windows, bool(at.attr("count_include_pad", 0)))


def averaged(x: Array, windows: Windows, with_padding: bool) -> Array:
    rank = len(windows.kernel)
    last = tuple(range(-rank, 0))
    total = windows.cut(x, 0).sum(last)
    counted = np.ones((1, 1, *x.shape[2:]))
    if with_padding:  # what lies beyond the padding, where sizes are rounded up, does not count
        counted = np.pad(counted, [(0, 0), (0, 0), *zip(windows.begin, windows.end, strict=True)], constant_values=1)
        padded = _Padded(windows)
        return total / padded.cut(counted, 0).sum(last)
    return total / windows.cut(counted, 0).sum(last)


class _Padded(Windows):
    """The same windows over what is padded already."""

    def __init__(self, windows: Windows) -> None:
        self.__dict__ |= windows.__dict__
        self.outs = [windows.out(n) for n in range(len(windows.kernel))]
        self.sizes = [s + b + e for s, b, e in zip(windows.sizes, windows.begin, windows.end, strict=True)]
        self.begin = [0] * len(self.kernel)

    def out(self, n: int) -> int:
        return self.outs[n]


@judges("LpPool")
def lp_pool(at: NodeSite) -> Array:
    windows, p = _pool_windows(at), at.attr("p", 2)
    rank = len(windows.kernel)
    return (np.abs(windows.cut(at[0], 0)) ** p).sum(tuple(range(-rank, 0))) ** (1 / p)


@judges("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(at: NodeSite) -> Array:
    x = at[0]
    axes = tuple(range(2, x.ndim))
    if at.node.op == "GlobalMaxPool":
        return np.asarray(x.max(axes, keepdims=True))
    if at.node.op == "GlobalAveragePool":
        return np.asarray(x.mean(axes, keepdims=True))
    p = at.attr("p", 2)
    return np.asarray((np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p))


@judges("MaxUnpool")
def max_unpool(at: NodeSite) -> Array:
    x, indices = at[0], at[1]
    kernel = at.attr("kernel_shape")
    rank = len(kernel)
    strides, pads = at.attr("strides") or [1] * rank, at.attr("pads") or [0] * (2 * rank)
    natural = [(x.shape[2 + n] - 1) * strides[n] - pads[n] - pads[rank + n] + kernel[n] for n in range(rank)]
    found = np.zeros(int(np.prod([*x.shape[:2], *natural])))
    if at.has(2):
        wanted = at.ints(2, "") or []
        if any(w < n for w, n in zip(wanted[2:], natural, strict=True)):
            raise NoWitness("the result is smaller than what is put into it")
        found[indices.reshape(-1)] = x.reshape(-1)
        inner = found.reshape(*x.shape[:2], *natural)
        return np.pad(inner, [(0, w - n) for w, n in zip(wanted, inner.shape, strict=True)])
    found[indices.reshape(-1)] = x.reshape(-1)
    return found.reshape(*x.shape[:2], *natural)


@judges("Col2Im")
def col2im(at: NodeSite) -> Array:
    blocks, image, kernel = at[0], at.ints(1, "") or [], at.ints(2, "") or []
    windows = Windows(at, image, kernel)
    outs = [windows.out(n) for n in range(len(kernel))]
    n, channels = blocks.shape[0], blocks.shape[1] // int(np.prod(kernel))
    parts = blocks.reshape(n, channels, *kernel, *outs)
    room = [s + b + e for s, b, e in zip(image, windows.begin, windows.end, strict=True)]
    whole = np.zeros((n, channels, *room))
    for tap in product(*(range(k) for k in kernel)):
        places = tuple(
            slice(t * d, t * d + (o - 1) * step + 1, step)
            for t, d, o, step in zip(tap, windows.dilations, outs, windows.strides, strict=True)
        )
        whole[(slice(None), slice(None), *places)] += parts[(slice(None), slice(None), *tap)]
    cut = tuple(slice(b, b + s) for b, s in zip(windows.begin, image, strict=True))
    return whole[(slice(None), slice(None), *cut)]


@judges("MaxRoiPool")
def max_roi_pool(at: NodeSite) -> Array:
    x, rois, (height, width), scale = at[0], at[1], at.attr("pooled_shape"), at.attr("spatial_scale", 1.0)
    found = np.zeros((len(rois), x.shape[1], height, width))
    for n, roi in enumerate(rois):
        left, top, right, bottom = (floor(float(c) * scale + 0.5) for c in roi[1:])
        tall, wide = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i, j in product(range(height), range(width)):
            rows = slice(
                *(min(max(r + top, 0), x.shape[2]) for r in (floor(i * tall / height), ceil((i + 1) * tall / height)))
            )
            cols = slice(
                *(min(max(c + left, 0), x.shape[3]) for c in (floor(j * wide / width), ceil((j + 1) * wide / width)))
            )
            part = x[int(roi[0]), :, rows, cols]
            found[n, :, i, j] = part.max((1, 2)) if part.size else 0
    return found


@judges("DeformConv")
def deform_conv(at: NodeSite) -> Array:
    x, w, offsets = at[0], at[1], at[2]
    if x.ndim != 4:
        raise NoWitness("DeformConv of other than images")
    windows = Windows(at, x.shape[2:], at.attr("kernel_shape") or w.shape[2:])
    groups, shared = at.attr("group", 1), at.attr("offset_group", 1)
    kh, kw = windows.kernel
    rows, cols = windows.out(0), windows.out(1)
    moves = offsets.reshape(x.shape[0], shared, kh, kw, 2, rows, cols)
    mask = at.get(4, np.ones((x.shape[0], shared * kh * kw, rows, cols))).reshape(
        x.shape[0], shared, kh, kw, rows, cols
    )
    taken = np.zeros((x.shape[0], x.shape[1], kh, kw, rows, cols))
    per = x.shape[1] // shared
    for n, g, i, j in product(range(x.shape[0]), range(shared), range(kh), range(kw)):
        y0 = np.arange(rows)[:, None] * windows.strides[0] - windows.begin[0] + i * windows.dilations[0]
        x0 = np.arange(cols)[None] * windows.strides[1] - windows.begin[1] + j * windows.dilations[1]
        part = x[n, g * per : (g + 1) * per]
        sampled = bilinear(part, y0 + moves[n, g, i, j, 0], x0 + moves[n, g, i, j, 1])
        taken[n, g * per : (g + 1) * per, i, j] = sampled * mask[n, g, i, j]
    made, each = w.shape[0] // groups, x.shape[1] // groups
    parts = [
        np.einsum("ocij,ncijhw->nohw", w[g * made : (g + 1) * made], taken[:, g * each : (g + 1) * each])
        for g in range(groups)
    ]
    return with_bias(np.concatenate(parts, 1), at.get(3))


def bilinear(planes: Array, y: Array, x: Array) -> Array:
    """planes[c, h, w] between its elements; 0 outside."""
    found = np.zeros((planes.shape[0], *np.broadcast_shapes(y.shape, x.shape)))
    top, left = np.floor(y), np.floor(x)
    for i, j in product((0, 1), (0, 1)):
        row, col = top + i, left + j
        weight = (1 - np.abs(y - row)) * (1 - np.abs(x - col))
        inside = (row >= 0) & (row < planes.shape[1]) & (col >= 0) & (col < planes.shape[2])
        rows, cols = np.where(inside, row, 0).astype(np.int64), np.where(inside, col, 0).astype(np.int64)
        found += np.where(inside, planes[:, rows, cols] * weight, 0)
    return found
