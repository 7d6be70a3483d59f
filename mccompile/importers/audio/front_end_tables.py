"""The constants of front ends: windows, filters, cosine transforms, and sums over frames.

Definitions are those of the libraries' documentation.
"""

from __future__ import annotations

import numpy as np

from .recipe import Recipe

_SLANEY_LINEAR = 200 / 3  # Hz per mel below 1 kHz
_SLANEY_LOG = np.log(6.4) / 27  # above, each mel is so much of a factor


def window(recipe: Recipe) -> np.ndarray:
    kind, _, symmetric = recipe.window_kind.partition("-")
    if kind == "ones":
        return np.ones(recipe.window)
    period = recipe.window - (1 if symmetric else 0)
    angle = 2 * np.pi * np.arange(recipe.window) / max(period, 1)
    return 0.5 - 0.5 * np.cos(angle) if kind == "hann" else 0.54 - 0.46 * np.cos(angle)


def to_mel(hertz: np.ndarray, scale: str) -> np.ndarray:
    if scale == "htk":
        return np.asarray(2595 * np.log10(1 + hertz / 700))
    above = 15 + np.log(np.maximum(hertz, 1000) / 1000) / _SLANEY_LOG
    return np.where(hertz < 1000, hertz / _SLANEY_LINEAR, above)


def to_hertz(mel: np.ndarray, scale: str) -> np.ndarray:
    if scale == "htk":
        return np.asarray(700 * (10 ** (mel / 2595) - 1))
    return np.where(mel < 15, mel * _SLANEY_LINEAR, 1000 * np.exp(_SLANEY_LOG * (np.maximum(mel, 15) - 15)))


def filters(recipe: Recipe) -> np.ndarray:
    """Triangles as [bins, mels]."""
    if recipe.mel_scale == "tensorflow":
        return _as_tensorflow(recipe)
    low, high = to_mel(np.array([recipe.low, recipe.top]), recipe.mel_scale)
    edges = to_hertz(np.linspace(low, high, recipe.mels + 2), recipe.mel_scale)
    made = _triangles(np.arange(recipe.bins) * recipe.rate / recipe.transform, edges)
    return made * (2 / (edges[2:] - edges[:-2])) if recipe.mel_norm == "slaney" else made


def _as_tensorflow(recipe: Recipe) -> np.ndarray:
    """In floats: where filters are narrower than bins, a weight may be little more than their rounding."""

    def mel(hertz: np.ndarray) -> np.ndarray:
        return np.asarray(np.float32(1127) * np.log(np.float32(1) + hertz / np.float32(700)))

    low, high = mel(np.array([recipe.low, recipe.top], np.float32))
    edges = np.linspace(low, high, recipe.mels + 2, dtype=np.float32)
    made = _triangles(mel(np.linspace(0, recipe.rate / 2, recipe.bins, dtype=np.float32)), edges)
    made[0] = 0  # no DC
    return made


def _triangles(places: np.ndarray, edges: np.ndarray) -> np.ndarray:
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (places[:, None] - low) / (centre - low)
    falling = (high - places[:, None]) / (high - centre)
    return np.asarray(np.maximum(0, np.minimum(rising, falling)))


def cosines(recipe: Recipe) -> np.ndarray:
    """The cosine transform (type 2) as [filters, coefficients]."""
    size = recipe.mels or recipe.bins
    angle = np.pi * (np.arange(size)[:, None] + 0.5) * np.arange(recipe.coefficients) / size
    made: np.ndarray = np.sqrt(2 / size) * np.cos(angle)
    if recipe.dct == "ortho":
        made[:, 0] /= np.sqrt(2)
    return made


def smoothing(recipe: Recipe) -> tuple[np.ndarray, np.ndarray]:
    """What a recursive mean over frames is made of, as [frames, frames], and what is left of the 1 that it starts
    with."""
    time = recipe.pcen_time * recipe.rate / recipe.hop
    part = (np.sqrt(1 + 4 * time**2) - 1) / (2 * time**2)
    frames = np.arange(recipe.frames)
    age = frames[:, None] - frames
    made = np.where(age >= 0, part * (1 - part) ** np.maximum(age, 0), 0)
    return made, (1 - part) ** (frames[:, None] + 1)


def changes(recipe: Recipe, order: int) -> np.ndarray:
    """The slope or the curve of what is fitted through the frames around each, as [frames, frames]. Near the ends it is
    that of the last whole stretch, or the last frame is repeated."""
    half, count = recipe.delta_width // 2, recipe.frames
    places = np.arange(-half, half + 1)
    made = np.zeros((count, count))
    if recipe.delta_ends == "repeat":
        for frame in range(count):
            np.add.at(made[frame], np.clip(frame + places, 0, count - 1), places / np.sum(places**2))
        return made if order == 1 else made @ made
    fitted = np.linalg.pinv(np.vander(places.astype(float), order + 1, increasing=True))
    for frame in range(count):
        centre = min(max(frame, half), count - 1 - half)
        made[frame, centre + places] = order * fitted[order]
    return made
