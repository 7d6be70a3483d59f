"""Normalizations, activations and rearrangements as exporters take them apart, next to the operator they mean."""

from __future__ import annotations

from collections.abc import Callable

from . import activations, normalizations, rearrangements
from .net import Net
from .spelling import add_spelling

Form = Callable[[Net, str], str]


def between(net: Net, form: Form) -> str:
    """The form between two convolutions, so that it has something to be fused into."""
    x = net.input(net.floats(1, 4, 12, 12))
    first = net.op("Conv", x, net.floats(8, 4, 3, 3), net.floats(8), pads=[1] * 4)
    return net.op("Conv", form(net, first), net.floats(4, 8, 3, 3), net.floats(4), pads=[1] * 4)


def behind(net: Net, form: Form) -> str:
    """The form behind a product."""
    x = net.input(net.floats(2, 6, 16))
    return net.op("MatMul", form(net, net.op("MatMul", x, net.floats(16, 24))), net.floats(24, 16))


def on_picture(net: Net, form: Form) -> str:
    return net.op("Relu", form(net, net.input(net.floats(1, 8, 12, 12))))


def before_convolution(net: Net, form: Form) -> str:
    return net.op("Conv", form(net, net.input(net.floats(1, 8, 12, 12))), net.floats(4, 32, 3, 3))


_FAMILIES: dict[str, tuple[Callable[[Net, Form], str], int, list[Form]]] = {
    "gelu": (behind, 20, activations.GELUS),
    "gelu_of_pictures": (between, 20, activations.GELUS),
    "tanh_gelu": (behind, 20, activations.TANH_GELU),
    "silu": (between, 24, activations.SILU),
    "hard_swish": (between, 17, activations.HARD_SWISHES),
    "mish": (between, 18, activations.MISH),
    "relu6": (between, 17, activations.RELU6),
    "prelu": (between, 17, activations.PRELU),
    "leaky": (between, 17, activations.LEAKY),
    "layer_norm": (behind, 17, normalizations.LAYER_NORMS),
    "rms_norm": (behind, 17, normalizations.RMS_NORM),
    "softmax": (behind, 17, normalizations.SOFTMAX),
    "batch_norm": (between, 17, normalizations.BATCH_NORM),
    "instance_norm": (between, 17, normalizations.INSTANCE_NORM),
    "group_norm": (between, 21, normalizations.GROUP_NORM),
    "shuffle": (on_picture, 17, rearrangements.SHUFFLE),
    "focus": (before_convolution, 17, rearrangements.FOCUS),
    "channel_shuffle": (between, 17, rearrangements.CHANNEL_SHUFFLE),
    "double": (between, 17, rearrangements.DOUBLE),
    "mean": (between, 17, rearrangements.MEANS),
    "pad": (between, 17, rearrangements.PAD),
}


for _family, (_around, _opset, _forms) in _FAMILIES.items():
    for _form in _forms:
        add_spelling(f"canonical/{_family}", _form.__name__.strip("_"), _around, {"form": _form}, opset=_opset)
