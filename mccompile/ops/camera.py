"""Camera: a frame as sensors give it, as a picture of 8 bits: sampled where the result needs it, converted, resized.

Definitions are those of OpenCV: BT.601 in integers of 20 bits; INTER_LINEAR with weights of 11 bits, rounded once;
INTER_NEAREST; INTER_AREA where frames get smaller. Each pixel that a result reads is gathered and converted there, so
nothing of the frame's size is made, and what is made goes by rows of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from ..base.dtypes import i32, u8
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, literal, operand
from ..kinds.gather import Gather
from ..program.ir import View
from .api import Fact, Invalid, Lowering, Operator, Site
from .pad import padded
from .rules.samples import inside, linear, nearest

_WEIGHT = 1 << 11  # 1.0 of the share of a row or a column
UNIT = 1 << 20  # 1.0 of the factors below
LUMA = 1220542
OF_V, OF_U = (1673527, -852492, 0), (0, -409993, 2116026)  # for red, green, blue
_PACKED = ((2048, 32, 1), (32, 64, 32), (8, 4, 8))  # rgb565: divided, what is left, times
FORMATS = ("nv21", "nv12", "yuyv", "rgb565", "gray", "rgb")
MODES = ("bilinear", "nearest", "area")
MOST_TAPS = 16  # pixels of the frame that one of the result is made of
Sample = tuple[int, np.ndarray]  # 1 where it lies among rows of chroma; bytes of a row, by column of the frame


@dataclass(frozen=True)
class Camera(Operator):
    domain = "mccompile"
    format: str
    width: int
    height: int
    crop: tuple[int, int, int, int]  # x, y, width, height
    to: tuple[int, int]  # width, height
    mode: str
    channels: int = 3
    border: tuple[int, int, int, int] = (0, 0, 0, 0)  # left, top, right, bottom: around what is resized
    fill: int = 0  # there

    @property
    def frame(self) -> tuple[int, int]:
        """Rows and bytes of each."""
        rows = self.height * 3 // 2 if self.format.startswith("nv") else self.height
        return rows, self.width * {"yuyv": 2, "rgb565": 2, "rgb": 3}.get(self.format, 1)

    def infer(self, site: Site) -> list[Fact]:
        if site.type(0) != TensorType(u8, self.frame):
            raise Invalid(f"a frame is {site.type(0)}, not u8{list(self.frame)}")
        left, top, right, bottom = self.border
        return [Fact(TensorType(u8, (1, self.channels, top + self.to[1] + bottom, left + self.to[0] + right)))]

    def samples(self) -> list[Sample]:
        """What a pixel is made of."""
        x = np.arange(self.width)
        if self.channels == 1 and self.format in ("nv21", "nv12", "yuyv"):
            return [(0, x * (2 if self.format == "yuyv" else 1))]
        match self.format:
            case "nv21" | "nv12":
                first, second = (1, x // 2 * 2), (1, x // 2 * 2 + 1)
                return [(0, x), second, first] if self.format == "nv21" else [(0, x), first, second]
            case "yuyv":
                return [(0, x * 2), (0, x // 2 * 4 + 1), (0, x // 2 * 4 + 3)]
            case "rgb565":
                return [(0, x * 2), (0, x * 2 + 1)]
            case "rgb":
                return [(0, x * 3), (0, x * 3 + 1), (0, x * 3 + 2)]
        return [(0, x)]

    def lower(self, to: Lowering) -> None:
        width, height = self.to
        rows, columns = (self.taps(axis) for axis in (1, 0))
        samples, x = self.samples(), to.reshape(to.input(0), (1, 1, *self.frame))
        operands: list[View] = []

        def read(view: View) -> Expr:
            operands.append(view)
            return cast(operand(len(operands) - 1, view.buffer.dtype), i32)

        def numbers(values: Sequence[int] | np.ndarray, axis: int) -> Expr:
            array = np.asarray(values, np.int32).reshape([-1 if a == axis else 1 for a in range(4)])
            return read(to.constant(array, "camera"))

        colours = self.colours(numbers) if self.channels == 3 else []
        sums = []
        for places, row_weights in rows:
            found: list[list[View]] = [[] for _ in columns]
            for chroma in (0, 1):
                mine = [n for n, (plane, _) in enumerate(samples) if plane == chroma]
                table = [samples[n][1][across] for across, _ in columns for n in mine]
                if not mine:
                    continue
                line = self.height + places // 2 if chroma else places
                lines = to.constant(line.astype(np.int32).reshape(1, 1, -1, 1), "rows")
                picked = to.constant(np.concatenate(table).astype(np.int32).reshape(1, 1, 1, -1), "columns")
                shape = (1, 1, height, width * len(table))
                ins = [x, lines.broadcast_to(shape), picked.broadcast_to(shape)]
                (line_view,) = to.call(Gather((0, 1, -1, -2), in_range=True), ins, TensorType(u8, shape))
                cut = [line_view.sliced(3, n * width, width) for n in range(len(table))]
                for tap in range(len(columns)):
                    found[tap] += cut[tap * len(mine) : (tap + 1) * len(mine)]
            for (_, column_weights), views in zip(columns, found, strict=True):
                pixel = self.pixel(views, colours, read)
                if len(rows) * len(columns) == 1:
                    sums.append(pixel)
                    continue
                share = apply("mul", numbers(row_weights, 2), numbers(column_weights, 3))
                sums.append(apply("mul", pixel, share))
        value = reduce(lambda a, b: apply("add", a, b), sums)
        if len(sums) > 1:
            half = literal(_WEIGHT * _WEIGHT // 2, i32)
            value = apply("div", apply("add", value, half), literal(_WEIGHT * _WEIGHT, i32))
        result = to.map(cast(value, u8), operands, (1, self.channels, height, width))
        if any(self.border):
            left, top, right, bottom = self.border
            fill = to.constant(np.array(self.fill, np.uint8))
            result = padded(to, result, [0, 0, top, left], [0, 0, bottom, right], value=fill)
        to.set(0, result)

    def colours(self, numbers: object) -> list[Expr]:
        """Factors by channel."""
        assert callable(numbers)
        if self.format in ("nv21", "nv12", "yuyv"):
            return [numbers(OF_U, 1), numbers(OF_V, 1)]
        return [numbers(each, 1) for each in _PACKED] if self.format == "rgb565" else []

    def pixel(self, views: Sequence[View], colours: Sequence[Expr], read: object) -> Expr:
        """From 0 to 255, as i32."""
        assert callable(read)
        if len(views) == 1:
            return read(views[0])  # type: ignore[no-any-return]
        if self.format == "rgb":  # samples lie one after the other: they are channels
            first = views[0]
            shape, step = (1, 3, *first.shape[2:]), first.shape[3]
            return read(replace(first, shape=shape, strides=(0, step, *first.strides[2:])))  # type: ignore[no-any-return]
        if self.format == "rgb565":
            low, high = map(read, views)
            word = apply("add", apply("mul", high, literal(256, i32)), low)
            part = apply("mod", apply("div", word, colours[0]), colours[1])
            return apply("mul", part, colours[2])
        luma, u, v = map(read, views)
        raised = apply("max", apply("sub", luma, literal(16, i32)), literal(0, i32))
        terms = [apply("mul", raised, literal(LUMA, i32))]
        for each, factor in ((u, colours[0]), (v, colours[1])):
            terms.append(apply("mul", apply("sub", each, literal(128, i32)), factor))
        total = reduce(lambda a, b: apply("add", a, b), [*terms, literal(UNIT // 2, i32)])
        whole = apply("div", apply("max", total, literal(0, i32)), literal(UNIT, i32))
        return apply("min", whole, literal(255, i32))

    def taps(self, axis: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Positions in the frame for each row (axis 1) or column (axis 0) of the result, and their weights."""
        first, size, out = self.crop[axis], self.crop[axis + 2], self.to[axis]
        if size == out:
            return [(first + np.arange(out), np.full(out, _WEIGHT))]
        if self.mode == "nearest":
            return [(first + nearest(size, out), np.full(out, _WEIGHT))]
        if self.mode == "area":
            return _shares(first, size, out)
        low, share = inside(*linear(size, out), size)
        second = np.rint(share * _WEIGHT).astype(np.int64)
        return [(first + low, _WEIGHT - second), (first + np.minimum(low + 1, size - 1), second)]

    def evaluate(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
        frame = arrays[0]
        return None if frame is None else self.picture(frame)

    def picture(self, frame: np.ndarray) -> np.ndarray:
        """The result in numpy."""
        left, top, right, bottom = self.border
        around = ((0, 0), (0, 0), (top, bottom), (left, right))
        return np.pad(self._resized(frame), around, constant_values=self.fill)

    def _resized(self, frame: np.ndarray) -> np.ndarray:
        rows, columns = self.taps(1), self.taps(0)
        whole = self._converted(frame.astype(np.int64))
        if len(rows) * len(columns) == 1:
            return whole[:, rows[0][0]][:, :, columns[0][0]][None].astype(np.uint8)
        total = np.zeros((self.channels, self.to[1], self.to[0]), np.int64)
        for place, weight in rows:
            for across, share in columns:
                total += whole[:, place][:, :, across] * (weight[:, None] * share[None, :])
        return ((total + _WEIGHT * _WEIGHT // 2) // (_WEIGHT * _WEIGHT))[None].astype(np.uint8)

    def _converted(self, frame: np.ndarray) -> np.ndarray:
        """The frame as channels, rows, columns."""
        lines = np.arange(self.height)
        parts = [frame[self.height + lines // 2 if plane else lines][:, at] for plane, at in self.samples()]
        if len(parts) == 1:
            return np.broadcast_to(parts[0], (self.channels, *parts[0].shape))
        if self.format == "rgb":
            return np.stack(parts)
        if self.format == "rgb565":
            word = parts[0] + 256 * parts[1]
            return np.stack([word // d % m * k for d, m, k in zip(*_PACKED, strict=True)])
        luma = np.maximum(parts[0] - 16, 0) * LUMA + UNIT // 2
        found = [luma + u * (parts[1] - 128) + v * (parts[2] - 128) for u, v in zip(OF_U, OF_V, strict=True)]
        return np.asarray(np.clip(np.stack(found) // UNIT, 0, 255))


def _shares(first: int, size: int, out: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each pixel in a smaller one, as much as lies in it; together 1.0."""
    edges = np.arange(out + 1) * size / out
    low = np.floor(edges[:-1] + 1e-9).astype(np.int64)
    count = int((np.ceil(edges[1:] - 1e-9) - low).max())
    places = low[:, None] + np.arange(count)
    inside = np.minimum(places + 1, edges[1:, None]) - np.maximum(places, edges[:-1, None])
    weights = np.rint(np.maximum(inside, 0) * (out / size) * _WEIGHT).astype(np.int64)
    weights[np.arange(out), weights.argmax(axis=1)] += _WEIGHT - weights.sum(axis=1)
    places = first + np.minimum(places, size - 1)
    return [(places[:, n], weights[:, n]) for n in range(count)]
