"""What folding means: one block element after the other."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.fold import Fold


def oracle(kind: Fold, x: np.ndarray) -> np.ndarray:
    axes = len(kind.space)
    block, counts = x.shape[2 : 2 + axes], x.shape[2 + axes :]
    image = np.zeros((*x.shape[:2], *kind.space), x.dtype)
    for k in np.ndindex(*block):
        for window in np.ndindex(*counts):
            steps = zip(window, kind.strides, k, kind.dilations, kind.before, strict=True)
            place = [w * stride + e * dilation - before for w, stride, e, dilation, before in steps]
            if all(0 <= p < n for p, n in zip(place, kind.space, strict=True)):
                image[(slice(None), slice(None), *place)] += x[(slice(None), slice(None), *k, *window)]
    return image
