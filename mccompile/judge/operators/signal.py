"""Transforms of signals."""

from __future__ import annotations

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges
from .casts import TYPES
from .moves import zeros_of


def _complex(x: Array) -> Array:
    """The last axis has the real part, and the imaginary one where there is one."""
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(np.complex128)


def _parts(x: Array) -> Array:
    return np.stack([x.real, x.imag], -1)


def transform(x: Array, length: int, inverse: bool) -> Array:
    """Along the last axis, of so many elements (cut or padded with 0): the standard's sum as a product."""
    x = x[..., :length]
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - x.shape[-1])])
    k = np.arange(length)
    angle = 2 * np.pi * (np.outer(k, k) % max(length, 1)) / max(length, 1)
    kernel = np.exp((1j if inverse else -1j) * angle)
    return x @ kernel / (length if inverse else 1)


@judges("DFT")
def dft(at: NodeSite) -> Array:
    x, inverse, onesided = at[0], bool(at.attr("inverse", 0)), bool(at.attr("onesided", 0))
    axis = int(np.asarray(at.get(2, -2)).reshape(-1)[0]) if at.version >= 20 else at.attr("axis", 1)
    if inverse and onesided:
        raise NoWitness("the inverse of half a spectrum")
    moved = np.moveaxis(x, axis, -2)
    length = int(np.asarray(at.get(1, moved.shape[-2])).reshape(-1)[0])
    found = transform(_complex(moved), length, inverse)
    if onesided:
        found = found[..., : length // 2 + 1]
    return np.moveaxis(_parts(found), -2, axis)


@judges("STFT")
def stft(at: NodeSite) -> Array:
    signal, step = at[0], int(np.asarray(at[1]).item())
    length = int(np.asarray(at.operands[3]).item()) if at.has(3) else len(at[2]) if at.has(2) else signal.shape[1]
    window = at.get(2, np.ones(length))
    values = _complex(signal) if signal.ndim == 3 else signal.astype(np.complex128)
    frames = (values.shape[1] - length) // step + 1
    cut = np.stack([values[:, n * step : n * step + length] for n in range(frames)], 1) * window
    found = transform(cut, length, False)
    return _parts(found[..., : length // 2 + 1] if at.attr("onesided", 1) else found)


@judges("HannWindow", "HammingWindow", "BlackmanWindow")
def window(at: NodeSite) -> Array:
    size = int(np.asarray(at[0]).item())
    turns = 2 * np.pi * np.arange(size) / (size if at.attr("periodic", 1) else size - 1)
    if at.node.op == "HannWindow":
        found = 0.5 - 0.5 * np.cos(turns)
    elif at.node.op == "HammingWindow":  # alpha is 25/46 in the standard's function
        found = 25 / 46 - 21 / 46 * np.cos(turns)
    else:
        found = 0.42 - 0.5 * np.cos(turns) + 0.08 * np.cos(2 * turns)
    return found.astype(zeros_of(TYPES[at.attr("output_datatype", 1)]))


@judges("MelWeightMatrix")
def mel_weight_matrix(at: NodeSite) -> Array:
    """Triangles between bins of the spectrum, which edges on the mel scale are rounded down to. The text leaves open
    how edges are spaced; the standard's test data divide the scale by two more than there are bands."""
    bands, length, rate = (int(np.asarray(at[n]).item()) for n in range(3))
    low, high = (float(np.asarray(at[n]).item()) for n in (3, 4))
    bottom, top = (2595 * np.log10(1 + edge / 700) for edge in (low, high))
    mel = bottom + (top - bottom) / (bands + 2) * np.arange(bands + 2)
    bins = np.floor((length + 1) * (700 * (10 ** (mel / 2595) - 1)) / rate).astype(np.int64)
    found = np.zeros((length // 2 + 1, bands))
    for n in range(bands):
        first, middle, end = bins[n : n + 3]
        if middle == first:
            found[middle, n] = 1
        for k in range(first, middle + 1):
            if middle > first:
                found[k, n] = (k - first) / (middle - first)
        for k in range(middle, end):
            if end > middle:
                found[k, n] = (end - k) / (end - middle)
    return found.astype(zeros_of(TYPES[at.attr("output_datatype", 1)]))
