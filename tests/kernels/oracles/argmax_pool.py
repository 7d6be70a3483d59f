"""argmax_pool in numpy: every window looked at on its own, places by numpy's own numbering."""

from __future__ import annotations

import numpy as np

from mccompile.base.dims import static
from mccompile.kinds.argmax_pool import ArgmaxPool


def oracle(kind: ArgmaxPool, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    space = tuple(static(size) for size in kind.space)
    y = np.zeros((*x.shape[:2], *space), x.dtype)
    places = np.zeros(y.shape, np.int64)
    numbers = np.arange(np.prod(x.shape[2:])).reshape(x.shape[2:], order="F" if kind.column_major else "C")
    per_image = numbers.size
    for place in np.ndindex(*y.shape):
        taps = [
            [o * kind.strides[a] - kind.pads[a] + t * kind.dilations[a] for t in range(kind.kernel[a])]
            for a, o in enumerate(place[2:])
        ]
        inside = np.ix_(*[[i for i in axis if 0 <= i < x.shape[a + 2]] for a, axis in enumerate(taps)])
        window = x[place[:2]][inside].reshape(-1)
        first = int(np.argmax(window))
        y[place] = window[first]
        places[place] = (place[0] * x.shape[1] + place[1]) * per_image + numbers[inside].reshape(-1)[first]
    return y, places
