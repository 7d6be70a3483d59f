"""GatedDeltaNet: LinearAttention whose heads are axes of their own, with gates and norms of its own."""

from __future__ import annotations

import math

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body, Size
from ..contributed import writes

(QUERY, KEY, VALUE, LENGTHS, DECAY, BETA, STATE, RATE, BIAS) = range(9)
_TINY, _SMALL = 1e-12, 1e-6  # under the root of a norm; the other where a decay is bounded
_BOUNDED = ("sigmoid", "kda")
_LOWEST = -5.0  # of a decay that is bounded


@writes(
    "GatedDeltaNet",
    "g (float[2, 3, 2, 4] q, float[2, 3, 2, 4] k, float[2, 3, 4, 5] v, float[2, 3, 4] d, float[2, 3, 4] b,"
    " float[2, 4, 5, 4] s, float[4] a, float[4] t) => (float[2, 3, 4, 5] y, float[2, 4, 5, 4] z)"
    ' <float c = {0.001}> { w = Mul (q, c) y, z = com.microsoft.GatedDeltaNet <gate_activation = "kda",'
    ' beta_activation = "sigmoid", qk_l2_norm = 1> (w, k, v, "", d, b, s, a, t) }',
    "g (float[6, 36] q, float[6, 4, 4] d, float[6, 4] b, float[2, 4, 5, 4] s, float[4] a, float[16] t)"
    " => (float[6, 4, 5] y, float[2, 4, 5, 4] z) { y, z = com.microsoft.GatedDeltaNet"
    ' <gate_activation = "softplus", beta_activation = "sigmoid", qk_l2_norm = 1, scale = 0.5>'
    ' (q, "", "", "", d, b, s, a, t) }',
    "g (float[1, 3, 2, 4] q, float[1, 3, 2, 4] k, float[1, 3, 2, 4] v) => (float[1, 3, 2, 4] y)"
    ' { y = com.microsoft.GatedDeltaNet <update_rule = "linear"> (q, k, v) }',
    "g (float[4, 1, 4] q, float[4, 1, 4] k, float[4, 2, 3] v, float[4, 2] d, float[1, 2, 3, 4] s)"
    " => (float[4, 2, 3] y, float[1, 2, 3, 4] z) { h = HardSigmoid (d) e = Neg (h)"
    " l = Constant <value_ints = [0, 4]> () m = Cast <to = 6> (l)"
    ' y, z = com.microsoft.GatedDeltaNet <update_rule = "gated"> (q, k, v, m, e, "", s) }',
)
def gated_delta_net(body: Body) -> None:
    _refuse(body)
    body.opset = 27  # that has LinearAttention
    tokens, batch, heads, size, width = _sizes(body)
    query, key, value = _operands(body, batch, heads, size, width)
    shared = query[1]

    def keys(name: str) -> str:
        """Of each head of values."""
        if body.attribute("qk_l2_norm", 0):
            squares = body.op("ReduceSumSquare", name, body.ints(-1))
            name = body.op(
                "Div",
                name,
                body.op(
                    "Sqrt",
                    body.op(
                        "Add",
                        squares,
                        body.number(_SMALL if body.attribute("gate_activation", "none") in _BOUNDED else _TINY),
                    ),
                ),
            )
        if shared != heads:
            cut = body.op("Unsqueeze", name, body.ints(3))
            name = body.op("Tile", cut, body.ints(1, 1, 1, heads // shared, 1))
        return body.op("Reshape", name, body.sizes(batch, -1, heads * size))

    past = body.op("Transpose", body.operand(STATE), perm=[0, 1, 3, 2]) if body.has(STATE) else ""
    beta = body.operand(BETA)
    if beta:
        beta = body.op("Reshape", beta, body.sizes(batch, -1, heads))
        beta = body.op("Sigmoid", beta) if body.attribute("beta_activation", "none") == "sigmoid" else beta
    made = body.op(
        "LinearAttention",
        keys(query[0]),
        keys(key),
        value,
        past,
        _decay(body, tokens, batch, heads, size),
        beta,
        outs=2,
        q_num_heads=heads,
        kv_num_heads=heads,
        scale=float(body.attribute("scale", 0.0)) or 1 / math.sqrt(size),
        update_rule=str(body.attribute("update_rule", "gated_delta")),
    )
    ahead = [body.size(QUERY, axis) for axis in range(tokens)]
    body.give(0, body.op("Reshape", made, body.sizes(*ahead, heads, width)))
    if body.wants(1):
        body.give(1, body.op("Transpose", f"{made}_1", perm=[0, 1, 3, 2]), False)


def _refuse(body: Body) -> None:
    known = ("beta_activation", "chunk_size", "gate_activation", "gate_lower_bound", "qk_l2_norm", "scale")
    body.only(*known, "update_rule", off=("state_update_capacity",))
    body.ignore(LENGTHS)
    if body.has(LENGTHS) and not (body.has(STATE) and body.type(STATE).shape[0] == 1):
        why = "sequences of different lengths in one tensor (cu_seqlens)"
        raise Unsupported(why, "export the model with a batch of equal lengths, or of one sequence")


def _sizes(body: Body) -> tuple[int, Size, int, int, int]:
    """How many axes tokens have, the batch, heads of values, and the sizes of one of keys and one of values."""
    packed, rank = not body.has(KEY), body.type(QUERY).rank
    tokens = rank - (1 if packed else 2)
    if tokens not in (1, 2) or ((packed or tokens == 1) and not body.has(STATE)):
        raise Invalid(f"queries {body.type(QUERY)} without a state that says how many sequences there are")
    of_state = packed or body.has(STATE)
    shape = body.type(STATE).shape[1:] if of_state else (*body.type(VALUE).shape[-2:], body.type(QUERY).shape[-1])
    heads, width, size = shape if len(shape) == 3 else (0, 0, 0)
    if not (isinstance(heads, int) and isinstance(width, int) and isinstance(size, int) and heads * width * size):
        raise Unsupported(f"heads of sizes {shape}", "export the model with heads of known sizes")
    return tokens, body.size(QUERY if tokens == 2 else STATE, 0), heads, size, width


def _operands(body: Body, batch: Size, heads: int, size: int, width: int) -> tuple[tuple[str, int], str, str]:
    """Queries with the number of their heads, keys, and values; batch and tokens are axes."""
    query = body.operand(QUERY)
    if body.has(KEY):
        shared = body.type(QUERY).shape[-2]
        parts = [query, body.operand(KEY), body.operand(VALUE)]
    else:
        whole = body.type(QUERY).shape[-1]
        shared = (whole - heads * width) // (2 * size) if isinstance(whole, int) else 0
        if not isinstance(whole, int) or 2 * shared * size + heads * width != whole:
            raise Invalid(f"queries, keys and values {body.type(QUERY)} for {heads} heads of {size} and {width}")
        split = body.op("Split", query, body.ints(shared * size, shared * size, heads * width), axis=-1, outs=3)
        parts = [split, f"{split}_1", f"{split}_2"]
    if not isinstance(shared, int) or shared < 1 or heads % shared:
        raise Invalid(f"{heads} heads of values do not share {shared} of queries")
    keyed = [body.op("Reshape", part, body.sizes(batch, -1, shared, size)) for part in parts[:2]]
    return (keyed[0], shared), keyed[1], body.op("Reshape", parts[2], body.sizes(batch, -1, heads * width))


def _decay(body: Body, tokens: int, batch: Size, heads: int, size: int) -> str:
    """Logarithms, of each head or of each of its keys."""
    if not body.has(DECAY):
        return ""
    each = body.type(DECAY).rank == tokens + 2
    decay = body.op("Reshape", body.operand(DECAY), body.sizes(batch, -1, heads, *[size] * each))
    gate = str(body.attribute("gate_activation", "none"))
    body.ignore(RATE, BIAS)
    if gate != "none":
        if not (body.has(RATE) and body.has(BIAS)):
            raise Invalid(f"gate_activation {gate!r} without a_log and dt_bias")
        if gate not in ("softplus", "qwen", *_BOUNDED):
            raise Invalid(f"gate_activation {gate!r}")
        tail = body.ints(heads, *[-1] * each)
        rate, bias = (body.op("Reshape", body.operand(index), tail) for index in (RATE, BIAS))
        moved, rate = body.op("Add", decay, bias), body.op("Exp", rate)
        if gate in ("softplus", "qwen"):
            decay = body.op("Mul", body.op("Neg", rate), body.op("Softplus", moved))
        else:
            lowest = body.number(float(body.attribute("gate_lower_bound", _LOWEST)))
            decay = body.op("Mul", lowest, body.op("Sigmoid", body.op("Mul", rate, moved)))
    return body.op("Reshape", decay, body.sizes(batch, -1, heads * size if each else heads))
