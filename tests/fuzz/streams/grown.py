"""One network of a seed."""

from __future__ import annotations

from onnx import ModelProto

from .layers import ENDS, LAYERS
from .networks import Grow, Network, NotRun


def network(seed: int) -> tuple[ModelProto, Network]:
    net = Network(seed)
    there, wanted = ["x"], net.number(1, 7)
    for _ in range(wanted):
        _grown(net, there, LAYERS, 0.7)
    if net.may(0.3):
        _grown(net, there, ENDS, 1.0)
    outputs = [there[-1]] if there[-1] != "x" else [net.op("Relu", "x")]
    if net.may(0.25) and len(there) > 2:
        other = net.one_of(there[1:-1])
        outputs = list(dict.fromkeys([*outputs, other]))
    return net.model(outputs), net


def _grown(net: Network, there: list[str], layers: list[Grow], newest: float) -> None:
    """One layer more, of the newest value or an older one; nothing where that cannot be."""
    x = there[-1] if net.may(newest) else net.one_of(there)
    nodes, layer = len(net.nodes), net.one_of(layers)
    try:
        there.append(layer(net, x))
    except NotRun:
        del net.nodes[nodes:]
