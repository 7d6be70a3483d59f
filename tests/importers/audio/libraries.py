"""Features as the libraries themselves make them by default, stored in libraries.npz.

KERAS_BACKEND=numpy python -m tests.importers.audio.libraries      # pip install librosa keras jax pymicro-features
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.importers.audio.definitions import sound

STORED = Path(__file__).with_name("libraries.npz")
SAMPLES = 8000


def librosa_mfcc() -> Any:
    librosa = import_module("librosa")
    return librosa.feature.mfcc(y=(sound(SAMPLES, 22050) / 32768).astype(np.float32), sr=22050)


def keras_mel() -> Any:
    keras = import_module("keras")
    return keras.layers.MelSpectrogram()((sound(SAMPLES, 16000) / 32768).astype(np.float32))


def keras_mfcc() -> Any:
    """Keras has no cosine transform of its own: the orthonormal one, which networks are trained with."""
    energies = np.asarray(keras_mel(), np.float64)
    dct = import_module("scipy.fft").dct
    return dct(energies, axis=0, norm="ortho")[:13]


def microfrontend() -> Any:
    """30 ms every 10 ms; what is stored is the integers."""
    front, found = import_module("pymicro_features").MicroFrontend(), []
    heard = sound(SAMPLES, 16000)
    for start in range(0, SAMPLES, 160):
        made = front.process_samples(heard[start : start + 160].astype("<i2").tobytes()).features
        found += [np.round(np.array(made) * 25.6)] if made else []
    return np.array(found)


MAKERS: dict[str, Callable[[], Any]] = {
    "librosa_mfcc": librosa_mfcc,
    "keras_mel": keras_mel,
    "keras_mfcc": keras_mfcc,
    "microfrontend": microfrontend,
}

if __name__ == "__main__":
    np.savez_compressed(STORED, **{name: np.asarray(maker(), np.float32) for name, maker in MAKERS.items()})
