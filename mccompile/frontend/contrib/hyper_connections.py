"""Networks with several streams beside each other (hyper-connections), and the gate of an n-gram memory."""

from __future__ import annotations

from ...graph.ir import Invalid
from ..composed_body import Body
from ..composed_pieces import root_mean_square
from ..contributed import writes


@writes(
    "HyperConnectionPreMix",
    "g (float[2, 3, 4] x, float[2, 3] m) => (float[2, 4] y) { y = com.microsoft.HyperConnectionPreMix (x, m) }",
    "g (float[2, 5, 12] x, float[2, 5, 12] m) => (float[2, 5, 4] y)"
    " { y = com.microsoft.HyperConnectionPreMix <num_branches = 3, reduction_scale = 0.5> (x, m) }",
)
def hyper_connection_pre_mix(body: Body) -> None:
    body.only("num_branches", "reduction_scale")
    streams = _streams(body)
    total = body.op("ReduceSum", body.op("Mul", streams, _gates(body, 1)), body.ints(-2), keepdims=0)
    scale = body.attribute("reduction_scale", 1.0)
    body.give(0, total if scale == 1 else body.op("Mul", total, body.number(scale)))


@writes(
    "HyperConnectionPostMix",
    "g (float[2, 3, 4] x, float[2, 4] b, float[2, 3] p, float[2, 3, 3] m) => (float[2, 3, 4] y)"
    " { y = com.microsoft.HyperConnectionPostMix (x, b, p, m) }",
    "g (float[2, 12] x, float[2, 4] b, float[2, 3, 4] p) => (float[2, 12] y)"
    " { y = com.microsoft.HyperConnectionPostMix <num_branches = 3> (x, b, p) }",
)
def hyper_connection_post_mix(body: Body) -> None:
    body.only("num_branches")
    streams = _streams(body)
    if body.has(3):
        axes = range(body.type(3).rank)
        mix = body.op("Transpose", body.operand(3), perm=[*axes[:-2], axes[-1], axes[-2]])
        streams = body.op("MatMul", mix, streams)
    put = body.op("Mul", _gates(body, 2), body.op("Unsqueeze", body.operand(1), body.ints(-2)))
    made = body.op("Add", streams, put)
    body.give(0, body.op("Reshape", made, body.op("Shape", "in0")) if body.attribute("num_branches", 0) else made)


def _streams(body: Body) -> str:
    """[..., streams, features]"""
    count = int(body.attribute("num_branches", 0))
    if not count:
        return body.operand(0)
    return body.op("Reshape", body.operand(0), body.ints(*[0] * (body.type(0).rank - 1), count, -1))


def _gates(body: Body, index: int) -> str:
    """One for each stream, or for each of its features."""
    own, streams, count = body.type(index), body.type(0), int(body.attribute("num_branches", 0))
    rank = streams.rank + 1 if count else streams.rank
    if own.rank == rank:
        return body.operand(index)
    if own.rank != rank - 1:
        raise Invalid(f"gates {own} of streams {streams}")
    if own.shape[-1] == (count or streams.shape[-2]):
        return body.op("Unsqueeze", body.operand(index), body.ints(-1))
    return body.op("Reshape", body.operand(index), body.ints(*[0] * (own.rank - 1), count, -1))


@writes(
    "EngramGate",
    "g (float[2, 3, 2, 8] k, float[2, 3, 2, 8] q, float[2, 3, 8] v, float[2, 8] a, float[2, 8] b, float[2, 8] c)"
    " => (float[2, 3, 2, 8] y, float[2, 3, 2, 8] n) { y, n = com.microsoft.EngramGate (k, q, v, a, b, c) }",
    "g (float[1, 3, 2, 8] k, float[1, 3, 2, 8] q, float[1, 3, 8] v, float[2, 8] a, float[2, 8] b)"
    " => (float[1, 3, 2, 8] y) { y = com.microsoft.EngramGate <epsilon = 0.1> (k, q, v, a, b) }",
)
def engram_gate(body: Body) -> None:
    body.only("epsilon")
    width = body.type(0).shape[-1]
    if not isinstance(width, int):
        raise Invalid(f"keys {body.type(0)}, whose features are not known")
    both = body.op("Mul", _normalized(body, body.operand(0), 3), _normalized(body, body.operand(1), 4))
    dot = body.op("Mul", body.op("ReduceSum", both, body.ints(-1), keepdims=1), body.number(width**-0.5))
    root = body.op("Sqrt", body.op("Max", body.op("Abs", dot), body.number(1e-6)))
    gate = body.op("Sigmoid", body.op("Mul", body.op("Sign", dot), root))
    made = body.op("Mul", gate, body.op("Unsqueeze", body.operand(2), body.ints(-2)))
    body.give(0, made)
    if body.wants(1):
        body.give(1, _normalized(body, made, 5))


def _normalized(body: Body, x: str, scale: int) -> str:
    root = root_mean_square(body, x, body.attribute("epsilon", 1e-5))
    return body.op("Mul", body.op("Div", x, root), body.operand(scale))
