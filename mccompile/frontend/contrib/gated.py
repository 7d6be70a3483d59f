"""Sums, activations and normalizations of gated networks, which round to the tensors' own type once."""

from __future__ import annotations

from ...graph.ir import Invalid
from ..composed_body import Body
from ..composed_pieces import root_mean_square
from ..contributed import writes


@writes(
    "GatedAdd",
    "g (float[3, 8] x, float[3, 8] y, float[3, 1] g) => (float[3, 8] z) { z = com.microsoft.GatedAdd (x, y, g) }",
)
def gated_add(body: Body) -> None:
    body.only()
    body.give(0, body.op("Add", body.operand(0), body.op("Mul", body.operand(1), body.operand(2))))


@writes(
    "ScaledSiLU",
    "g (float[3, 8] x) => (float[3, 8] y) { y = com.microsoft.ScaledSiLU <alpha = 0.5> (x) }",
    "g (float[3, 8] x) => (float[3, 8] y) <float s = {1.5}> { y = com.microsoft.ScaledSiLU (x, s) }",
)
def scaled_silu(body: Body) -> None:
    body.only("alpha")
    scale = body.operand(1) or body.number(body.attribute("alpha", 1.0))
    scaled = body.op("Mul", body.operand(0), scale)
    body.give(0, body.op("Mul", scaled, body.op("Sigmoid", scaled)))


@writes(
    "GatedRMSNorm",
    "g (float[2, 3, 8] x, float[4] s, float[2, 3, 8] g) => (float[2, 3, 8] y)"
    " { y = com.microsoft.GatedRMSNorm (x, s, g) }",
    "g (float[3, 8] x, float[8] s, float[3, 8] g) => (float[3, 8] y)"
    ' { y = com.microsoft.GatedRMSNorm <activation = "sigmoid", epsilon = 0.01> (x, s, g) }',
)
def gated_rms_norm(body: Body) -> None:
    body.only("activation", "epsilon")
    activation, count = str(body.attribute("activation", "silu")), body.type(1).shape[0]
    if activation not in ("silu", "swish", "sigmoid") or not isinstance(count, int):
        raise Invalid(f"activation {activation!r} of a scale {body.type(1)}")
    gate = body.op("Sigmoid", body.operand(2))
    if activation != "sigmoid":
        gate = body.op("Mul", body.operand(2), gate)
    cut = body.op("Reshape", body.operand(0), body.ints(*[0] * (body.type(0).rank - 1), -1, count))
    made = _normalized(body, cut, body.operand(1), body.attribute("epsilon", 1e-5))
    body.give(0, body.op("Mul", body.op("Reshape", made, body.op("Shape", "in0")), gate))


@writes(
    "BranchwiseRMSNorm",
    "g (float[2, 3, 8] x, float[3, 8] s) => (float[2, 3, 8] y) { y = com.microsoft.BranchwiseRMSNorm (x, s) }",
    "g (float[2, 24] x) => (float[2, 24] y) { y = com.microsoft.BranchwiseRMSNorm <num_branches = 3> (x) }",
)
def branchwise_rms_norm(body: Body) -> None:
    body.only("epsilon", "num_branches")
    branches, x, scale = int(body.attribute("num_branches", 0)), body.operand(0), body.operand(1)
    if branches:
        x = body.op("Reshape", x, body.ints(*[0] * (body.type(0).rank - 1), branches, -1))
    if scale and body.type(1).rank == 1:
        count = body.type(1).shape[0]
        width = body.type(0).shape[-1] if not branches else None
        if count != width and isinstance(count, int):
            many = branches or body.type(0).shape[-2]
            scale = body.op("Reshape", scale, body.ints(int(str(many)), -1)) if count % int(str(many)) == 0 else scale
    made = _normalized(body, x, scale, body.attribute("epsilon", 1e-5))
    body.give(0, body.op("Reshape", made, body.op("Shape", "in0")) if branches else made)


def _normalized(body: Body, x: str, scale: str, epsilon: float) -> str:
    made = body.op("Div", x, root_mean_square(body, x, epsilon))
    return body.op("Mul", made, scale) if scale else made
