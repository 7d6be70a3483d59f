"""What QONNX writes besides quantizers of integers: small floats, and operators over channels that come last."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .net import Net, f
from .spelling import spelled

DOMAINS = ("onnx.brevitas", "qonnx.custom_op.general")
_LAST = "qonnx.custom_op.channels_last"
_SPREAD = np.concatenate([np.arange(-40, 40) / 8, np.geomspace(1e-5, 700, 40) * 0.5]).astype(np.float32)
_FORMATS = {(4, 3, 7, 448.0): ml_dtypes.float8_e4m3fn, (5, 2, 15, 57344.0): ml_dtypes.float8_e5m2}


@spelled(
    "qonnx/float",
    *({"form": form, "domain": domain} for form in _FORMATS for domain in DOMAINS),
    domains=DOMAINS, steps=None,
)  # fmt: skip
def float_quant(net: Net, form: tuple[int, int, int, float], domain: str) -> str:
    exponent, mantissa, bias, largest = form
    scaled = np.clip(_SPREAD / np.float32(0.25), -largest, largest)
    net.wanted = {"v0": scaled.astype(_FORMATS[form]).astype(np.float32) * np.float32(0.25)}
    numbers = (f(exponent), f(mantissa), f(bias), f(largest))
    return net.op("FloatQuant", net.input(_SPREAD), f(0.25), *numbers, domain=domain, rounding_mode="ROUND")


def _network(net: Net, last: bool) -> str:
    """A convolution, a normalization and a pool."""
    weights, four = net.floats(4, 3, 3, 3), [net.floats(4, low=0.5) for _ in range(4)]
    chance = np.random.default_rng(4)
    x = net.input(chance.uniform(-1, 1, (1, 8, 6, 3)).astype(np.float32))
    window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1]}
    pool: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    if last:
        x = net.op("Conv", x, np.ascontiguousarray(weights.transpose(0, 2, 3, 1)), domain=_LAST, **window)
        x = net.op("BatchNormalization", x, *four, domain=_LAST, epsilon=1e-5)
        return net.op("MaxPool", x, domain=_LAST, **pool)
    x = net.op("Transpose", x, perm=[0, 3, 1, 2])
    x = net.op("BatchNormalization", net.op("Conv", x, weights, **window), *four, epsilon=1e-5)
    return net.op("Transpose", net.op("MaxPool", x, **pool), perm=[0, 2, 3, 1])


@spelled("qonnx/channels_last")
def turned(net: Net) -> str:
    return _network(net, last=False)


@spelled("qonnx/channels_last", domains=(_LAST,), unknown=True)
def over_channels_last(net: Net) -> str:
    return _network(net, last=True)
