"""VarlenCausalConvWithState: CausalConvWithState over the tokens of one sequence, whose channels are the last axis."""

from __future__ import annotations

from ...graph.ir import Invalid, Unsupported
from ..composed_body import CONTRIB, Body
from ..contributed import writes

(TOKENS, WEIGHTS, LENGTHS, BIAS, STATE) = range(5)


@writes(
    "VarlenCausalConvWithState",
    "g (float[5, 3] x, float[3, 1, 4] w, float[3] b, float[1, 3, 3] s)"
    " => (float[5, 3] y, float[1, 3, 3] t) { l = Constant <value_ints = [0, 5]> () m = Cast <to = 6> (l) y, t ="
    ' com.microsoft.VarlenCausalConvWithState <activation = "silu"> (x, w, m, b, s) }',
    "g (float[2, 3] x, float[3, 1, 3] w, float[1, 3, 4] s) => (float[2, 3] y, float[1, 3, 4] t)"
    " { l = Constant <value_ints = [0, 2]> () m = Cast <to = 6> (l)"
    ' y, t = com.microsoft.VarlenCausalConvWithState <dilation = 2> (x, w, m, "", s) }',
)
def varlen_causal_conv_with_state(body: Body) -> None:
    body.only("activation", "dilation", off=("delta_offset", "group_size", "state_update_capacity"))
    if body.type(TOKENS).rank != 2 or not body.has(STATE):
        raise Invalid(f"tokens {body.type(TOKENS)} of one axis of channels, with a state, are needed")
    if body.type(STATE).shape[0] != 1:
        why = f"sequences of different lengths in one tensor (a state {body.type(STATE)})"
        raise Unsupported(why, "export the model for one sequence")
    body.ignore(LENGTHS)
    tokens = body.op("Unsqueeze", body.op("Transpose", body.operand(TOKENS), perm=[1, 0]), body.ints(0))
    operands = [body.operand(index) for index in (WEIGHTS, BIAS, STATE)]
    form = body.picked("activation", "dilation")
    made = body.op("CausalConvWithState", tokens, *operands, outs=2, domain=CONTRIB, **form)
    body.give(0, body.op("Transpose", body.op("Squeeze", made, body.ints(0)), perm=[1, 0]))
    if body.wants(1):
        body.give(1, f"{made}_1")
