"""Raw PPM files in numpy; tests/ops/test_image_decoder.py has the other formats."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.decode_image import DecodeImage


def oracle(kind: DecodeImage, file: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    colors = file[-18:].reshape(2, 3, 3)
    if kind.pixels == "Grayscale":
        weights = np.array([19595, 38470, 7471])
        grey = (colors.astype(np.int64) @ weights + 0x8000) >> 16
        return grey[..., None].astype(np.uint8), np.array(True)
    return (colors if kind.pixels == "RGB" else colors[..., ::-1]), np.array(True)
