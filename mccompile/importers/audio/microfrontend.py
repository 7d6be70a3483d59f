"""The front end of audio_microfrontend (TensorFlow), which TensorFlow Lite Micro's examples use, in integers as there:
every result is bit for bit the same.

Noise is estimated from frame to frame, so what follows the filters is a Scan over frames.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from . import integer_transform
from .graph_writer import I16, I32, I64, U32, U64, Writer
from .recipe import Recipe

_FILTER_BITS, _WINDOW_BITS, _NOISE_BITS, _MORE_BITS = 12, 12, 14, 10
_GAIN_BITS, _RATIO_BITS, _SHRUNK_BITS = 21, 12, 6
_LOG_BITS, _SEGMENT_BITS, _OUT_BITS = 16, 7, 6
_ONE = np.float32
STEPS = 25.6  # of a feature, to 1 of what networks take


def features(to: Writer, recipe: Recipe, frames: str) -> str:
    """[1, frames, features] of int32: from [1, frames, window] of samples."""
    count, length = recipe.frames, recipe.transform
    x = to.node("Mul", to.cast(to.shaped(frames, count, recipe.window), I32), to.of(I32, _window(recipe)))
    x = to.cast(integer_transform.low_bits(to, x, _WINDOW_BITS), I32)
    least = to.node("Equal", x, to.of(I32, -(1 << 15)))  # has no positive of 16 bits
    largest = to.node("ReduceMax", to.node("Abs", to.node("Where", least, to.of(I32, 0), x)), axes=(1,), keepdims=1)
    room = to.node("Sub", to.of(I64, 15), _bits(to, to.shaped(largest, count), I32, 15))
    raised = to.node("Mul", x, to.shaped(to.node("Gather", to.of(I32, 1 << np.arange(16)), room), count, 1))
    if length > recipe.window:
        raised = to.node("Pad", raised, to.ints(0, 0, 0, length - recipe.window))
    power = to.cast(integer_transform.powers(to, to.cast(raised, I16), count, length), I64)
    sums = to.node("MatMul", power, to.of(I64, _filters(recipe)[1:-1]))
    body = Writer(to)
    noise, frame, shift = (to.name(stem) for stem in ("noise", "sums", "room"))
    inputs = [(noise, I64, (recipe.mels,)), (frame, I64, (recipe.mels,)), (shift, U32, ())]
    made = _of_a_frame(body, recipe, noise, frame, shift)
    start = to.of(I64, np.zeros(recipe.mels))
    scanned = body.body(inputs, made)
    _, x = to.several("Scan", 2, start, sums, to.cast(room, U32), body=scanned, num_scan_inputs=2)
    return to.shaped(x, 1, count, recipe.mels)


def stepped(to: Writer, x: str, scale: float, zero: int, dtype: str) -> str:
    """As 8 bits, rounded as TensorFlow Lite Micro's examples do."""
    by = round(STEPS * 256 * scale)
    x = to.node("Add", to.node("Mul", x, to.of(I32, 256)), to.of(I32, by // 2))
    x = to.node("Add", to.node("Div", x, to.of(I32, by)), to.of(I32, zero))
    info = np.iinfo(dtype)
    x = to.node("Max", to.node("Min", x, to.of(I32, info.max)), to.of(I32, info.min))
    return to.cast(x, TensorProto.DataType.Value(dtype.upper()))


def _of_a_frame(to: Writer, recipe: Recipe, noise: str, sums: str, room: str) -> list[str]:
    """The new estimate of noise, and the features."""
    x = _down_by(to, _root(to, recipe, sums), room)
    up = to.cast(to.cast(to.node("Mul", x, to.of(I64, 1 << _MORE_BITS)), U32), I64)
    one = 1 << _NOISE_BITS
    parts = [int(np.float32(part) * one) for part in (recipe.noise_even, recipe.noise_odd, recipe.noise_left)]
    weights = np.where(np.arange(recipe.mels) % 2, parts[1], parts[0])
    noise = to.node("Mul", noise, to.of(I64, one - weights))
    noise = _down(to, to.node("Add", to.node("Mul", up, to.of(I64, weights)), noise), _NOISE_BITS)
    left = _down(to, to.node("Mul", x, to.of(I64, parts[2])), _NOISE_BITS)
    x = to.node("Max", left, _down(to, to.node("Sub", up, to.node("Min", noise, up)), _MORE_BITS))
    correction = recipe.transform.bit_length() - 1 - _FILTER_BITS // 2
    if recipe.log == "pcan":
        ratio = to.node("Mul", x, _gain(to, recipe, noise, _MORE_BITS - correction))
        x = _shrunk(to, _down(to, ratio, _GAIN_BITS - correction - _RATIO_BITS))
    return [noise, to.cast(_logarithm(to, _up(to, x, correction)), I32)]


def _root(to: Writer, recipe: Recipe, x: str) -> str:
    """The nearest integer to the square root, a bit at a time."""
    most = int(_filters(recipe).sum(axis=0).max()) << 31
    bits = 1 << np.arange((most.bit_length() + 1) // 2)[::-1]
    body = Writer(to)
    rest, root, bit = (to.name(stem) for stem in ("rest", "root", "bit"))
    twice = body.node("Mul", body.node("Add", body.node("Add", root, root), bit), bit)
    fits = body.node("GreaterOrEqual", rest, twice)
    zero = to.of(I64, 0)
    made = [
        body.node("Sub", rest, body.node("Where", fits, twice, zero)),
        body.node("Add", root, body.node("Where", fits, bit, zero)),
    ]
    shape = (recipe.mels,)
    inputs = [(rest, I64, shape), (root, I64, shape), (bit, I64, ())]
    start = to.of(I64, np.zeros(shape))
    rest, root = to.several("Scan", 2, x, start, to.of(I64, bits), body=body.body(inputs, made), num_scan_inputs=1)
    above = to.node("Greater", rest, root)
    room = to.node("Not", to.node("Equal", root, to.of(I64, 65535)))
    return to.node("Add", root, to.cast(to.node("And", above, room), I64))


def _gain(to: Writer, recipe: Recipe, noise: str, bits: int) -> str:
    """1 over a power of the noise: pieces of parabolas between powers of two."""

    def at(x: int) -> int:
        base = _ONE(x) / _ONE(1 << bits) + _ONE(recipe.pcan_offset)
        made = _ONE(np.float64(base) ** np.float64(_ONE(-recipe.pcan_strength)))
        return min(int(_ONE(1 << _GAIN_BITS) * made + _ONE(0.5)), 32767)

    rows = [(at(0), 0, 0), (at(1), 0, 0)]
    for power in range(1, 32):
        low = 1 << power
        first, middle, last = at(low), at(low + low // 2), at(2 * low - (power == 31))
        straight = 4 * (middle - first) - (last - first)
        rows.append((first, straight, last - first - straight))
    place = _bits(to, noise, I64, 32)
    start, slope, bend = (to.node("Gather", to.of(I64, column), place) for column in np.array(rows).T)
    fraction = to.node("Sub", _down_by(to, _up(to, noise, 11), place), to.of(I64, 1 << 10))
    x = to.node("Add", _floor(to, to.node("Mul", bend, fraction), 5), _up(to, slope, 5))
    x = to.node("Add", to.node("Mul", x, fraction), to.of(I64, 1 << 14))
    return to.node("Add", _floor(to, x, 15), start)


def _shrunk(to: Writer, x: str) -> str:
    """Squares of what is small."""
    squared = _down(to, to.node("Mul", x, x), 2 + 2 * _RATIO_BITS - _SHRUNK_BITS)
    straight = to.node("Sub", _down(to, x, _RATIO_BITS - _SHRUNK_BITS), to.of(I64, 1 << _SHRUNK_BITS))
    return to.node("Where", to.node("Less", x, to.of(I64, 2 << _RATIO_BITS)), squared, straight)


def _logarithm(to: Writer, x: str) -> str:
    """Of 1 and less it is 0."""
    segments, one = 1 << _SEGMENT_BITS, 1 << _LOG_BITS
    places = np.arange(segments + 1) / segments
    table = np.round(one * (np.log2(1 + places) - places))
    whole = to.node("Max", to.node("Sub", _bits(to, x, I64, 32), to.of(I64, 1)), to.of(I64, 0))
    fraction = to.node("Sub", _down_by(to, _up(to, x, _LOG_BITS), whole), to.of(I64, one))
    fraction = to.node("Max", fraction, to.of(I64, 0))
    segment = _down(to, fraction, _LOG_BITS - _SEGMENT_BITS)
    before = to.node("Gather", to.of(I64, table), segment)
    rise = to.node("Gather", to.of(I64, np.diff(table)), segment)
    within = to.node("Sub", fraction, _up(to, segment, _LOG_BITS - _SEGMENT_BITS))
    binary = to.node("Add", to.node("Add", _up(to, whole, _LOG_BITS), fraction), before)
    binary = to.node("Add", binary, _floor(to, to.node("Mul", rise, within), _LOG_BITS))
    half = to.of(I64, one // 2)
    natural = to.node("Mul", binary, to.of(I64, round(np.log(2) * one)))
    natural = _down(to, to.node("Add", natural, half), _LOG_BITS)
    made = _down(to, to.node("Add", _up(to, natural, _OUT_BITS), half), _LOG_BITS)
    made = to.node("Min", made, to.of(I64, (1 << 16) - 1))
    return to.node("Where", to.node("Greater", x, to.of(I64, 1)), made, to.of(I64, 0))


def _bits(to: Writer, x: str, element: int, most: int) -> str:
    """How many bits numbers that are not negative take, as int64."""
    powers = to.of(element, 1 << np.arange(most, dtype=np.int64))
    reached = to.node("GreaterOrEqual", to.node("Unsqueeze", x, to.ints(1)), powers)
    return to.node("ReduceSum", to.cast(reached, I64), to.ints(1), keepdims=0)


def _up(to: Writer, x: str, by: int) -> str:
    return to.node("Mul", x, to.of(I64, 1 << by)) if by >= 0 else _down(to, x, -by)


def _down(to: Writer, x: str, by: int) -> str:
    """Of numbers that are not negative."""
    return _down_by(to, x, to.of(U64, by))


def _down_by(to: Writer, x: str, by: str) -> str:
    return to.cast(to.node("BitShift", to.cast(x, U64), to.cast(by, U64), direction="RIGHT"), I64)


def _floor(to: Writer, x: str, by: int) -> str:
    raised = to.node("Add", x, to.of(I64, 1 << 40))
    return to.node("Sub", _down(to, raised, by), to.of(I64, 1 << (40 - by)))


def _window(recipe: Recipe) -> np.ndarray:
    """In floats of 32 bits, as all constants there."""
    angle = _ONE(_ONE(np.pi) * _ONE(2) / _ONE(recipe.window)) * (np.arange(recipe.window, dtype=_ONE) + _ONE(0.5))
    wave = np.cos(angle.astype(np.float64)).astype(_ONE)
    return np.asarray(np.floor((_ONE(0.5) - _ONE(0.5) * wave) * _ONE(1 << _WINDOW_BITS) + _ONE(0.5)))


def _filters(recipe: Recipe) -> np.ndarray:
    """[bins, mels]: each bin is shared by two filters, but for what each rounds."""

    def mel(hertz: np.ndarray) -> np.ndarray:
        return np.asarray(_ONE(1127) * np.log1p((hertz / _ONE(700)).astype(np.float64)).astype(_ONE), _ONE)

    def whole(weight: np.float32) -> int:
        return int(np.floor(weight * _ONE(1 << _FILTER_BITS) + _ONE(0.5)))

    low, top = mel(np.array([recipe.low, recipe.top], _ONE))
    spacing = _ONE(_ONE(top - low) / _ONE(recipe.mels + 1))
    edges = np.concatenate([[low], low + spacing * np.arange(1, recipe.mels + 2, dtype=_ONE)]).astype(_ONE)
    step = _ONE(0.5 * recipe.rate / (recipe.bins - 1))
    places = mel(np.arange(recipe.bins, dtype=_ONE) * step)
    made = np.zeros((recipe.bins, recipe.mels + 2), np.int64)
    for frequency in range(int(1.5 + _ONE(recipe.low) / step), recipe.bins):
        band = int(np.searchsorted(edges[1:], places[frequency]))  # the first edge that is not below
        if band > recipe.mels:
            break
        weight = _ONE((edges[band + 1] - places[frequency]) / (edges[band + 1] - edges[band]))
        made[frequency, band : band + 2] = whole(weight), whole(_ONE(1) - weight)
    return made[:, 1:-1]
