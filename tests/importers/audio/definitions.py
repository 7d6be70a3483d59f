"""What libraries define, written down once more from their documentation: in doubles, one frame after the other."""

from __future__ import annotations

import numpy as np


def sound(samples: int, rate: int) -> np.ndarray:
    """A voice of a kind: tones that rise and fall, and noise, as int16."""
    time = np.arange(samples) / rate
    tones = sum(np.sin(2 * np.pi * f * time + np.sin(9 * time)) / n for n, f in enumerate((150, 700, 1900, 3100), 1))
    noise = np.random.default_rng(2).standard_normal(samples) / 50
    heard = 6000 * (tones * (1 + np.sin(20 * time)) + noise)
    return np.clip(heard, -32768, 32767).astype(np.int16)


def spectra(samples: np.ndarray, window: int, hop: int, fft: int, pad: str = "") -> np.ndarray:
    """Power of each frequency, [frames, bins]; with `pad` as librosa, torch and Keras centre frames of a periodic Hann
    window in the middle of a transform."""
    x = samples / 32768
    weights = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    if pad:
        x = np.pad(x, fft // 2, mode=pad)  # type: ignore[call-overload]
        left = (fft - window) // 2
        weights = np.pad(weights, (left, fft - window - left))
    size = len(weights)
    starts = range(0, len(x) - size + 1, hop)
    return np.array([np.abs(np.fft.rfft(x[start : start + size] * weights, fft)) ** 2 for start in starts])


def htk(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))


def from_htk(mel: float) -> float:
    return float(700 * (10 ** (mel / 2595) - 1))


def slaney(hertz: float) -> float:
    return 3 * hertz / 200 if hertz < 1000 else float(15 + 27 * np.log(hertz / 1000) / np.log(6.4))


def from_slaney(mel: float) -> float:
    return 200 * mel / 3 if mel < 15 else float(1000 * np.exp(np.log(6.4) * (mel - 15) / 27))


def filters(rate: int, fft: int, mels: int, low: float, high: float, kind: str) -> np.ndarray:
    """[bins, mels]: `kind` is librosa, torchaudio or tensorflow."""
    to, back = (slaney, from_slaney) if kind == "librosa" else (htk, from_htk)
    edges = [to(low) + n * (to(high) - to(low)) / (mels + 1) for n in range(mels + 2)]
    if kind != "tensorflow":
        edges = [back(mel) for mel in edges]
    made = np.zeros((fft // 2 + 1, mels))
    for bin in range(1 if kind == "tensorflow" else 0, fft // 2 + 1):
        place = bin * rate / fft if kind != "tensorflow" else htk(bin * rate / fft)
        for mel in range(mels):
            left, middle, right = edges[mel : mel + 3]
            height = min((place - left) / (middle - left), (right - place) / (right - middle))
            area = 2 / (right - left) if kind == "librosa" else 1
            made[bin, mel] = max(height, 0) * area
    return made


def decibels(power: np.ndarray) -> np.ndarray:
    found = 10 * np.log10(np.maximum(power, 1e-10))
    return np.maximum(found, found.max() - 80)


def cosines(x: np.ndarray, count: int, first: float) -> np.ndarray:
    """DCT-II, orthonormal but for coefficient 0, which is multiplied with `first`."""
    size = x.shape[1]
    basis = [np.cos(np.pi * k * (2 * np.arange(size) + 1) / (2 * size)) for k in range(count)]
    found = np.sqrt(2 / size) * x @ np.array(basis).T
    found[:, 0] *= first
    return np.asarray(found)
