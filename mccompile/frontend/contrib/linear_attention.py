"""Attention that carries a state from token to token, and what stands around it: gates, and convolutions that look
back."""

from __future__ import annotations

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body, Size
from ..contributed import writes

_WINDOW = ("a state for each of the last tokens (state_window)", "export the model with the state of the last one only")


@writes(
    "LinearAttention",
    "g (float[2, 3, 8] q, float[2, 3, 8] k, float[2, 3, 6] v, float[2, 3, 2] d, float[2, 3, 2] b)"
    " => (float[2, 3, 6] y, float[2, 2, 4, 3] s) { w = HardSigmoid (b) f = Neg (w)"
    ' y, s = com.microsoft.LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "gated_delta">'
    ' (q, k, v, "", f, w) }',
    "g (float[1, 3, 8] q, float[1, 3, 4] k, float[1, 3, 4] v, float[1, 1, 4, 4] p)"
    " => (float[1, 3, 8] y, float[1, 1, 4, 4] s) { y, s = com.microsoft.LinearAttention"
    ' <q_num_heads = 2, kv_num_heads = 1, update_rule = "linear", scale = 0.5, state_window = 0> (q, k, v, p) }',
    "g (float[2, 3, 8] q, float[2, 3, 16] k, float[2, 3, 12] v) => (float[2, 3, 12] y, float[2, 4, 4, 3] s)"
    " { y, s = com.microsoft.LinearAttention"
    ' <q_num_heads = 2, kv_num_heads = 4, update_rule = "linear"> (q, k, v) }',
)
def linear_attention(body: Body) -> None:
    kept = ("chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule")
    if body.attribute("state_window", 0):
        raise Unsupported(*_WINDOW)
    body.only(*kept, off=("state_window",))
    body.opset = 27  # that has LinearAttention
    given, query = body.picked(*kept), body.operand(0)
    heads, groups = (int(body.attribute(name, 0)) for name in ("q_num_heads", "kv_num_heads"))
    if 0 < heads < groups:  # which ONNX's does not take: several heads of keys share one of queries
        if groups % heads:
            raise Invalid(f"{groups} heads of keys do not share {heads} of queries")
        cut = body.op("Unsqueeze", body.op("Reshape", query, body.ints(0, 0, heads, -1)), body.ints(3))
        query = body.op("Reshape", body.op("Tile", cut, body.ints(1, 1, 1, groups // heads, 1)), body.ints(0, 0, -1))
        given["q_num_heads"] = groups
    made = body.op("LinearAttention", query, *(body.operand(index) for index in range(1, 6)), outs=2, **given)
    body.give(0, made)
    if body.wants(1):
        past = body.operands[3] if body.has(3) else None  # whose type the state has
        body.give(1, f"{made}_1", past is None or past.type.dtype.is_narrow_float)


@writes(
    "LinearAttentionGate",
    "g (float[2, 3, 4] a, float[4] t, float[4] s, float[2, 3, 4] b) => (float[2, 3, 4] d, float[2, 3, 4] e)"
    " { d, e = com.microsoft.LinearAttentionGate (a, t, s, b) }",
    "g (float[2, 3, 4] a, float[4] t, float[4] s) => (float[2, 3, 4] d)"
    " { d = com.microsoft.LinearAttentionGate (a, t, s) }",
)
def linear_attention_gate(body: Body) -> None:
    body.only()
    rate = body.op("Softplus", body.op("Add", body.operand(0), body.operand(1)))
    body.give(0, body.op("Mul", rate, body.operand(2)))
    if body.wants(1):
        body.give(1, body.op("Sigmoid", body.operand(3)))


@writes(
    "CausalConvWithState",
    "g (float[2, 3, 5] x, float[3, 1, 4] w, float[3] b, float[2, 3, 3] p) => (float[2, 3, 5] y, float[2, 3, 3] s)"
    ' { y, s = com.microsoft.CausalConvWithState <activation = "silu"> (x, w, b, p) }',
    "g (float[2, 2, 3, 2] x, float[6, 1, 3] w) => (float[2, 2, 3, 2] y, float[2, 4, 3, 2] s)"
    " { y, s = com.microsoft.CausalConvWithState <channels_last = 1, dilation = 2> (x, w) }",
)
def causal_conv_with_state(body: Body) -> None:
    """The tokens behind those that the state has kept, and a depthwise convolution over both."""
    body.only("activation", "channels_last", "dilation", "ndim", off=("state_window",))
    x, w, activation = body.type(0), body.type(1), str(body.attribute("activation", "none"))
    last, dilation = bool(body.attribute("channels_last", 0)), int(body.attribute("dilation", 1))
    if activation not in ("none", "silu", "swish") or w.rank != int(body.attribute("ndim", 1)) + 2:
        raise Invalid(f"activation {activation!r}, or weights {w} that are not those of its ndim")
    channels, taps = w.shape[0], w.shape[-1]
    if w.rank != 3 or not isinstance(channels, int) or not isinstance(taps, int):
        raise Unsupported(f"weights {w}", "export the model with convolutions of one axis and of known sizes")
    state = (taps - 1) * dilation
    batch = body.size(0, 0)

    def turned(name: str) -> str:
        """Channels in front of tokens, as one axis."""
        return body.op("Transpose", body.op("Reshape", name, body.ints(0, 0, channels)), perm=[0, 2, 1])

    tokens = turned(body.operand(0)) if last else body.operand(0)
    if body.has(3):
        past = turned(body.operand(3)) if last else body.operand(3)
    else:
        past = body.op("Expand", body.number(0.0), body.sizes(batch, channels, state))
    joined = body.op("Concat", past, tokens, axis=2)
    made = body.op("Conv", joined, body.operand(1), body.operand(2), group=channels, dilations=[dilation])
    if activation != "none":
        made = body.op("Mul", made, body.op("Sigmoid", made))
    many = body.size(0, 1 if last else 2)
    kept = body.op("Slice", joined, body.sizes(many), body.sizes(body.sum(many, state)), body.ints(2))

    def back(name: str, length: Size) -> str:
        shape = (batch, length, *(body.size(0, axis) for axis in range(2, x.rank)))
        return body.op("Reshape", body.op("Transpose", name, perm=[0, 2, 1]), body.sizes(*shape))

    body.give(0, back(made, many) if last else made)
    if body.wants(1):
        body.give(1, back(kept, state) if last else kept)
