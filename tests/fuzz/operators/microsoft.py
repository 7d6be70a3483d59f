"""Operators of com.microsoft, as onnxruntime's optimiser and its quantizer write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.decoders import TOKENS, decoder

from ..builder import Builder, Value
from .quantized import SCALES, scheme
from .registry import makes

MS = "com.microsoft"


def result(g: Builder, dtype: str) -> list[Value]:
    """Scale and zero point of a result. It is even: which way halves are rounded is left to judgement otherwise."""
    return [g.constant(g.pick(SCALES), "float32"), g.constant(g.pick([0, 2, 8, 116]), dtype)]


def table(g: Builder, width: int = 0) -> Value:
    return g.leaf("float32", (*g.dims(g.integer(1, 2), 6, (1, 2, 3)), width or g.pick([1, 2, 4, 8, 17])), "exact")


@makes("com.microsoft::BiasGelu", "com.microsoft::FastGelu")
def bias_gelu(g: Builder, op: str) -> Value | None:
    x = table(g)
    return g.node(op, [x, g.drawn("float32", x.shape[-1:])] if x.rank > 1 else [x], domain=MS)


@makes("com.microsoft::Gelu")
def gelu(g: Builder, op: str) -> Value | None:
    return g.node(op, [table(g)], domain=MS)


@makes("com.microsoft::QuickGelu")
def quick(g: Builder, op: str) -> Value | None:
    return g.node(op, [table(g)], domain=MS, alpha=g.pick([1.0, 1.702]))


@makes("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul")
def fused_matmul(g: Builder, op: str) -> Value | None:
    a, b, c = g.integer(1, 6), g.integer(1, 6), g.integer(1, 6)
    turned = [g.integer(0, 1), g.integer(0, 1)]
    x = g.leaf("float32", (b, a) if turned[0] else (a, b), "exact")
    y = g.leaf("float32", (c, b) if turned[1] else (b, c), "exact")
    return g.node(op, [x, y], domain=MS, transA=turned[0], transB=turned[1], alpha=g.pick([1.0, 0.5]), exact=True)


@makes("com.microsoft::FusedGemm")
def fused_gemm(g: Builder, op: str) -> Value | None:
    a, b, c = g.integer(1, 6), g.integer(1, 6), g.integer(1, 6)
    ins = [g.leaf("float32", shape, "exact") for shape in ((a, b), (b, c), (c,))]
    name = g.pick(["Relu", "Tanh", "Softsign", "Elu", "ScaledTanh"])
    parameters = {"activation_alpha": 0.5, "activation_beta": 1.5} if name in ("Elu", "ScaledTanh") else {}
    return g.node(op, ins, domain=MS, activation=name, **parameters)


@makes("com.microsoft::FusedConv")
def fused_conv(g: Builder, op: str) -> Value | None:
    c = g.integer(1, 4)
    x = g.leaf("float32", (1, c, g.integer(3, 6), g.integer(3, 6)), "exact")
    return g.node(op, [x, g.drawn("float32", (g.integer(1, 4), c, 2, 3))], domain=MS, activation="Relu", exact=True)


@makes("com.microsoft::SkipLayerNormalization", "com.microsoft::SkipSimplifiedLayerNormalization")
def skip(g: Builder, op: str) -> Value | None:
    x = g.leaf("float32", (1, g.integer(1, 3), width := g.pick([4, 8])), "exact")
    y = g.leaf("float32", x.shape, "exact")
    return g.node(op, [x, y, g.drawn("float32", (width,), "positive")], domain=MS, epsilon=1e-3)


@makes("com.microsoft::QuantizeLinear", "com.microsoft::DequantizeLinear")
def dq(g: Builder, op: str) -> Value | None:
    dtype = g.pick(["uint8", "int8"])
    x = table(g) if op.endswith("::QuantizeLinear") or op == "QuantizeLinear" else g.leaf(dtype, g.dims(2, 30))
    count = x.shape[1] if x.rank > 1 and x.is_fixed(1) and g.maybe(0.3) else 0  # along the axis that is the default
    return g.node(op, [x, *scheme(g, dtype, count)], domain=MS, exact=True)


@makes("com.microsoft::QLinearAdd", "com.microsoft::QLinearMul")
def q_pair(g: Builder, op: str) -> Value | None:
    dtype, dims = g.pick(["uint8", "int8"]), g.dims(g.integer(1, 3), 60, (1, 2, 3, 5, 8))
    ins = [v for _ in range(2) for v in (g.leaf(dtype, dims), *scheme(g, dtype))]
    return g.node(op, [*ins, *result(g, dtype)], domain=MS)


@makes("com.microsoft::QLinearGlobalAveragePool")
def q_pool(g: Builder, op: str) -> Value | None:
    x = g.leaf("uint8", (1, g.integer(1, 5), g.integer(1, 5), g.integer(1, 5)))
    return g.node(op, [x, *scheme(g, "uint8"), *result(g, "uint8")], domain=MS, channels_last=0)


@makes("com.microsoft::QLinearConcat")
def q_concat(g: Builder, op: str) -> Value | None:
    dtype = g.pick(["uint8", "int8"])
    parts = [v for _ in range(2) for v in (g.leaf(dtype, (2, g.integer(1, 3))), *scheme(g, dtype))]
    return g.node(op, [*result(g, dtype), *parts], domain=MS, axis=1)


@makes("com.microsoft::QGemm")
def q_gemm(g: Builder, op: str) -> Value | None:
    a, b, c = g.integer(1, 6), g.integer(1, 9), g.integer(1, 6)
    x, w = g.leaf("uint8", (a, b)), g.drawn("int8", (b, c))
    bias = g.drawn("int32", (c,), "integer", -500, 500)
    return g.node(op, [x, *scheme(g, "uint8"), w, *scheme(g, "int8"), bias, *result(g, "uint8")], domain=MS)


@makes("com.microsoft::DynamicQuantizeMatMul", "com.microsoft::MatMulIntegerToFloat")
def dynamic(g: Builder, op: str) -> Value | None:
    a, b, c = g.integer(1, 5), g.pick([1, 3, 4, 16]), g.integer(1, 6)
    w, (scale, zero) = g.drawn("int8", (b, c)), scheme(g, "int8")
    if op.startswith("Dynamic"):
        return g.node(op, [g.leaf("float32", (a, b), "exact"), w, scale, zero], domain=MS)
    x, (x_scale, x_zero) = g.leaf("uint8", (a, b)), scheme(g, "uint8")
    return g.node(op, [x, w, x_scale, scale, x_zero, zero], domain=MS, exact=True)


@makes("com.microsoft::RotaryEmbedding")
def rotary(g: Builder, op: str) -> Value | None:
    batch, length, heads, width = g.integer(1, 2), g.integer(1, 4), g.integer(1, 3), g.pick([2, 4, 8])
    x = g.leaf("float32", (batch, length, heads * width), "exact")
    tables = [g.drawn("float32", (8, width // 2), "unit") for _ in range(2)]
    ids = g.index(0, 7, (batch, length))
    return g.node(op, [x, ids, *tables], domain=MS, num_heads=heads if g.maybe(0.0) else None) if heads == 1 else None


@makes("com.microsoft::MultiHeadAttention")
def attention(g: Builder, op: str) -> Value | None:
    heads, width, length = g.integer(1, 3), g.pick([1, 2, 4]), g.integer(1, 4)
    keys = length if g.maybe(0.5) else g.integer(1, 5)
    ins = [g.leaf("float32", (1, count, heads * width), "exact") for count in (length, keys, keys)]
    return g.node(op, ins, domain=MS, num_heads=heads, unidirectional=g.integer(0, 1))


@makes("com.microsoft::QLinearLeakyRelu", "com.microsoft::QLinearSigmoid")
def q_curve(g: Builder, op: str) -> Value | None:
    dtype = g.pick(["uint8", "int8"])
    x = g.leaf(dtype, g.dims(g.integer(1, 3), 60, (1, 2, 3, 5, 8)))
    more = {"alpha": 0.25} if "Leaky" in op else {}
    return g.node(op, [x, *scheme(g, dtype), *result(g, dtype)], domain=MS, **more)


@makes("com.microsoft::QLinearSoftmax")
def q_shares(g: Builder, op: str) -> Value | None:
    x = g.leaf("uint8", (g.integer(1, 3), g.integer(2, 8)))  # of one element onnxruntime makes 0
    return g.node(op, [x, *scheme(g, "uint8"), *_final(g)], domain=MS, **{"opset": 13, "axis": 1})


def _final(g: Builder) -> list[Value]:
    return [g.constant(1 / 256, "float32"), g.constant(0, "uint8")]


@makes("com.microsoft::QLinearAveragePool")
def q_average(g: Builder, op: str) -> Value | None:
    """Means of 1, 2 or 4 elements: they are exact."""
    x = g.leaf("uint8", (1, g.integer(2, 5), g.integer(2, 5), g.integer(2, 5)))
    form = {"strides": g.pick([[1, 1], [2, 1], [2, 2]]), "pads": g.pick([[0, 0, 0, 0], [1, 0, 0, 1]])}
    form |= {name: g.integer(0, 1) for name in ("ceil_mode", "count_include_pad", "channels_last")}
    return g.node(op, [x, *scheme(g, "uint8"), *result(g, "uint8")], domain=MS, kernel_shape=[2, 2], **form)


@makes("com.microsoft::QLinearWhere")
def q_where(g: Builder, op: str) -> Value | None:
    dims = g.dims(g.integer(1, 3), 60, (1, 2, 3, 5, 8))
    pair = [v for _ in range(2) for v in (g.leaf("uint8", dims), *scheme(g, "uint8"))]
    return g.node(op, [g.leaf("bool", dims), *pair, *result(g, "uint8")], domain=MS)


@makes("com.microsoft::QLinearConv")
def q_conv(g: Builder, op: str) -> Value | None:
    c, out = g.integer(1, 5), g.integer(1, 9)
    x = g.leaf("uint8", (1, c, g.integer(3, 6), g.integer(3, 6)))
    w = g.drawn("int8", (out, c, g.integer(1, 3), g.integer(1, 3)))
    return g.node(op, [x, *scheme(g, "uint8"), w, *scheme(g, "int8"), *result(g, "uint8")], domain=MS)


@makes("com.microsoft::Attention")
def joint_attention(g: Builder, op: str) -> Value | None:
    heads, width, length, inside = g.integer(1, 3), g.pick([1, 2, 4]), g.integer(1, 4), g.integer(1, 5)
    x = g.leaf("float32", (1, length, inside), "exact")
    weights = [g.drawn("float32", shape, "unit") for shape in ((inside, 3 * heads * width), (3 * heads * width,))]
    return g.node(op, [x, *weights], domain=MS, num_heads=heads, unidirectional=g.integer(0, 1))


@makes("com.microsoft::QAttention")
def q_attention(g: Builder, op: str) -> Value | None:
    heads, width, length, inside = g.integer(1, 2), g.pick([2, 4]), g.integer(1, 4), g.integer(1, 5)
    x, w = g.leaf("uint8", (1, length, inside)), g.drawn("int8", (inside, 3 * heads * width))
    (scale, zero), (w_scale, w_zero) = scheme(g, "uint8"), scheme(g, "int8")
    bias = g.drawn("float32", (3 * heads * width,), "unit")
    return g.node(op, [x, w, bias, scale, w_scale, None, zero, w_zero], domain=MS, num_heads=heads)


@makes("com.microsoft::GroupQueryAttention")
def grouped(g: Builder, op: str) -> Value | None:
    groups, each, length, past = g.integer(1, 2), g.integer(1, 2), g.integer(1, 4), g.pick([0, 0, 1, 3])
    form: dict[str, Any] = {"num_heads": groups * each, "kv_num_heads": groups}
    rotary, whole = g.maybe(0.3), past + length
    width = 16 if rotary else 8  # as onnxruntime asks for
    q = g.leaf("float32", (1, length, groups * each * width), "exact")
    k, v = (g.leaf("float32", (1, length, groups * width), "exact") for _ in range(2))
    before = [g.leaf("float32", (1, groups, past, width), "exact") if past else None for _ in range(2)]
    open_ = not past and g.maybe(0.3)
    total = g.input("int32", (), "integer", whole, whole) if open_ else g.constant(whole, "int32")
    more: list[Value | None] = [g.constant([whole - 1], "int32"), total]
    if rotary:
        spare = g.integer(0, 2)
        more += [g.drawn("float32", (whole + spare, width // 2)) for _ in range(2)]
        more += [g.constant([[g.integer(0, spare) for _ in range(length)]], "int64")] if g.maybe(0.3) else []
        form |= {"do_rotary": 1, "rotary_interleaved": g.integer(0, 1)}
    form |= {"softcap": g.pick([0.5, 4.0])} if g.maybe(0.2) else {}
    form |= {"smooth_softmax": 1} if g.maybe(0.2) else {}
    form |= {"local_window_size": g.integer(1, 5)} if g.maybe(0.2) else {}
    form |= {"qk_output": g.integer(1, 2)} if g.maybe(0.3) else {}
    found = g.nodes_(op, [q, k, v, *before, *more], 4 if "qk_output" in form else 3, domain=MS, **form)
    return found[0] if found else None


@makes("com.microsoft::NGramHashMapping")
def hashed(g: Builder, op: str) -> Value | None:
    most, heads, dtype = g.integer(2, 3), g.integer(1, 2), g.pick(["int32", "int64"])
    ids = g.input(dtype, g.dims(2), "integer", 0, 50)
    factors = g.constant([g.integer(-9999, 9999) for _ in range(most)], dtype)
    rooms = g.constant([g.integer(1, 40) for _ in range((most - 1) * heads)], dtype)
    form = {"max_ngram_size": most, "n_head_per_ngram": heads, "pad_id": g.integer(0, 9)}
    found = g.nodes_(op, [ids, factors, rooms], g.integer(1, 2), domain=MS, exact=True, **form)
    return found[0] if found else None


@makes("com.microsoft::WordConvEmbedding")
def words(g: Builder, op: str) -> Value | None:
    window, width, filters = g.integer(1, 3), g.integer(1, 5), g.integer(1, 5)
    ids = g.input("int32", (*g.dims(1), g.integer(window, 6)), "integer", 1, 5)
    w, b = g.drawn("float32", (filters, 1, window, width)), g.drawn("float32", (filters,))
    return g.node(op, [ids, w, b, g.drawn("float32", (6, width))], domain=MS)


@makes("com.microsoft::MatMulNBits")
def narrow(g: Builder, op: str) -> Value | None:
    rows, inner, columns = g.pick([1, 2, 4, 9]), g.pick([16, 32, 40]), g.pick([1, 3, 6, 17, 40])
    bits = g.pick([2, 4, 8])
    blocks = (inner + 15) // 16
    w = g.drawn("uint8", (columns, blocks, 16 * bits // 8), "integer", 0, 255)
    more: list[Value | None] = [g.drawn("float32", (columns, blocks), "exact")]
    if bits > 2 and g.maybe(0.2):  # with an order of blocks, onnxruntime takes no notice of zero points
        more += [None, g.drawn("int32", (inner,), "integer", 0, blocks - 1)]
    elif g.maybe(0.5):
        more.append(g.drawn("uint8", (columns, (blocks * bits + 7) // 8), "integer", 0, 255))
    form = {"K": inner, "N": columns, "bits": bits, "block_size": 16}
    if g.maybe(0.3):
        form["accuracy_level"] = 4
    return g.node(op, [g.leaf("float32", (rows, inner), "exact"), w, *more], domain=MS, **form)


@makes("com.microsoft::MatMulBnb4")
def bnb(g: Builder, op: str) -> Value | None:
    inner, columns = 16, g.integer(1, 4)
    w = g.drawn("uint8", (columns * inner // 2,), "integer", 0, 255)
    scales = g.drawn("float32", (columns,), "positive")
    form = {"K": inner, "N": columns, "block_size": 16, "quant_type": g.integer(0, 1)}
    return g.node(op, [g.leaf("float32", (g.integer(1, 3), inner), "exact"), w, scales], domain=MS, **form)


@makes("com.microsoft::MatMulFpQ4")
def fp_q4(g: Builder, op: str) -> Value | None:
    inner, columns, form = g.integer(1, 70), g.integer(1, 4), g.integer(0, 1)
    blocks = []
    for _ in range(columns * -(-inner // 32)):
        scale = list(np.float32(g.pick([0.25, 0.5, -1.0])).tobytes())
        blocks += scale + [g.integer(0, 15) for _ in range(form)] + [g.integer(0, 255) for _ in range(16)]
    w, shape = g.constant(blocks, "uint8"), g.constant([inner, columns], "int64")
    x = g.leaf("float32", (g.integer(1, 3), inner), "exact")
    return g.node(op, [x, w, shape], domain=MS, blk_quant_type=form)


@makes("com.microsoft::GatherBlockQuantized")
def gather_blocks(g: Builder, op: str) -> Value | None:
    rows, width = g.integer(1, 5), g.pick([16, 32])
    w = g.drawn("uint8", (rows, width // 2), "integer", 0, 255)
    form = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": 4}
    scales = g.drawn("float32", (rows, width // 16), "exact")
    return g.node(op, [w, g.index(0, rows - 1, (g.integer(1, 3),)), scales], domain=MS, **form)


@makes("com.microsoft::DynamicQuantizeLSTM")
def lstm(g: Builder, op: str) -> Value | None:
    width, hidden, batch, steps = g.integer(1, 4), g.pick([1, 2, 4]), g.integer(1, 3), g.integer(1, 4)
    direction = g.pick(["forward", "forward", "reverse", "bidirectional"])
    both = 2 if direction == "bidirectional" else 1
    x = g.leaf("float32", (steps, batch, width), "normal")
    w, r = g.drawn("int8", (both, width, 4 * hidden)), g.drawn("int8", (both, hidden, 4 * hidden))
    scales = [g.constant([0.0078125] * both, "float32"), g.constant([0] * both, "int8")]
    more: list[Value | None] = [g.drawn("float32", (both, 8 * hidden)) if g.maybe(0.3) else None]
    # onnxruntime reads memory that it has not written where a sequence is empty and nobody reads all hidden states
    more.append(g.index(1, steps, (batch,), "int32") if g.maybe() else None)
    more += [g.leaf("float32", (both, batch, hidden)) if g.maybe(0.3) else None for _ in range(2)]
    found = g.nodes_(
        op, [x, w, r, *more, None, *scales, *scales], 3, domain=MS, hidden_size=hidden, direction=direction
    )
    return g.pick(found) if found else None


@makes("com.microsoft::CausalConvWithState")
def causal(g: Builder, op: str) -> Value | None:
    channels, taps, dilation = g.integer(1, 5), g.integer(1, 4), g.integer(1, 2)
    x, w = g.leaf("float32", (1, channels, g.integer(1, 5)), "exact"), g.drawn("float32", (channels, 1, taps), "exact")
    more = [g.drawn("float32", (channels,), "exact") if g.maybe(0.5) else None]
    more.append(g.leaf("float32", (1, channels, (taps - 1) * dilation), "exact") if g.maybe(0.5) else None)
    form = {"dilation": dilation, "activation": g.pick(["none", "silu"])}
    found = g.nodes_(op, [x, w, *more], 2, domain=MS, **form)
    return found[0] if found else None


@makes("com.microsoft::GatedDeltaNet")
def delta(g: Builder, op: str) -> Value | None:
    batch, length, groups, each = g.integer(1, 2), g.integer(1, 5), g.integer(1, 2), g.pick([1, 1, 2])
    depth, width, rule = g.pick([1, 2, 4]), g.pick([1, 3, 4]), g.pick(["linear", "gated", "delta", "gated_delta"])
    heads, tokens = groups * each, g.pick([(batch, length), (batch * length,)])
    ins: list[Value | None] = [g.leaf("float32", (*tokens, groups, depth), "unit") for _ in range(2)]
    ins += [g.leaf("float32", (*tokens, heads, width), "unit"), None]
    ins.append(g.leaf("float32", (*tokens, heads, *[depth] * g.integer(0, 1)), "unit") if "gated" in rule else None)
    ins.append(g.leaf("float32", (*tokens, heads), "unit") if "delta" in rule else None)
    has_state = len(tokens) == 1 or g.maybe()
    ins.append(g.leaf("float32", (batch, heads, width, depth), "unit") if has_state else None)
    form = {"update_rule": rule, "scale": g.pick([None, 0.5]), "qk_l2_norm": g.integer(0, 1)}
    if "gated" in rule and g.maybe():
        form["gate_activation"] = g.pick(["softplus", "kda"])
        ins += [g.drawn("float32", (heads,), "unit") for _ in range(2)]
    found = g.nodes_(op, ins, 2, domain=MS, **form)
    return found[0] if found else None


@makes("com.microsoft::DynamicTimeWarping")
def path(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.leaf("float32", (g.integer(1, 6), g.integer(1, 6)), "exact")], domain=MS)


@makes("com.microsoft::BifurcationDetector")
def agreeing(g: Builder, op: str) -> Value | None:
    source, matched, least = g.integer(1, 8), g.integer(0, 8), g.integer(1, 3)
    matched = min(matched, source)
    ins = [g.leaf("int64", (n,), "integer", 0, 3) for n in (source, g.integer(1, 6), source + 1 - matched)]
    form = {"min_ngram_size": least, "max_ngram_size": least + g.integer(0, 2)}
    found = g.nodes_(op, [*ins[:2], g.constant(matched, "int64"), ins[2]], 2, domain=MS, **form)
    return found[1] if found else None


@makes("com.microsoft::VarlenCausalConvWithState")
def causal_of_one(g: Builder, op: str) -> Value | None:
    tokens, channels, taps, dilation = g.integer(1, 5), g.integer(1, 5), g.integer(1, 4), g.integer(1, 2)
    x, w = g.leaf("float32", (tokens, channels), "exact"), g.drawn("float32", (channels, 1, taps), "exact")
    bias = g.drawn("float32", (channels,), "exact") if g.maybe() else None
    past = g.leaf("float32", (1, channels, (taps - 1) * dilation), "exact")
    form = {"dilation": dilation, "activation": g.pick(["none", "silu"])}
    found = g.nodes_(op, [x, w, g.constant([0, tokens], "int32"), bias, past], 2, domain=MS, **form)
    return found[0] if found else None


@makes("com.microsoft::MoE")
def experts(g: Builder, op: str) -> Value | None:
    tokens, width, inner, many = g.integer(1, 3), g.pick([1, 4, 5]), g.pick([1, 4, 6]), g.integer(1, 4)
    x, scores = g.leaf("float32", (tokens, width), "exact"), g.leaf("float32", (tokens, many), "normal")
    layers = [g.drawn("float32", (many, *shape), "exact") for shape in ((inner, width), (width, inner))]
    form = {"k": g.integer(1, many), "normalize_routing_weights": g.integer(0, 1)}
    form |= {"activation_type": g.pick(["relu", "silu", "identity"])}
    return g.node(op, [x, scores, layers[0], None, layers[1]], domain=MS, **form)


@makes("com.microsoft::MoEGroupRouter")
def router(g: Builder, op: str) -> Value | None:
    groups, size = g.integer(1, 4), g.integer(1, 4)
    experts = groups * size
    x, bias = g.leaf("float32", (*g.dims(g.integer(1, 2), 12), experts), "normal"), g.drawn("float32", (experts,))
    form = {"n_group": groups, "top_k": g.integer(1, experts), "group_topk": g.integer(1, 3)}
    return g.node(op, [x, bias], domain=MS, topk_group=g.integer(1, groups), **form)


@makes("com.microsoft::GreedySearch")
def tokens(g: Builder, op: str) -> Value | None:
    """No sequence ends: what onnxruntime leaves behind the end is open."""
    batch, given = g.integer(1, 3), g.integer(1, 4)
    ids, most = g.leaf("int32", (batch, given), "integer", 0, TOKENS - 1), given + g.integer(1, 6)
    length, penalty = g.constant([most], "int32"), g.constant([g.pick([0.5, 1.0, 1.75])], "float32")
    masks = [g.drawn("int32", shape, "integer", 0, 1) for shape in ((TOKENS,), (batch, TOKENS))]
    more = [each if g.maybe(0.3) else None for each in (penalty, *masks)]
    form = {"decoder": decoder(g.integer(0, 99), g.integer(1, 2)), "no_repeat_ngram_size": g.pick([0, 0, 1, 2, 3])}
    return g.node(op, [ids, length, None, *more], domain=MS, eos_token_id=-1, pad_token_id=g.integer(0, 3), **form)


@makes("com.microsoft::BeamSearch")
def beams(g: Builder, op: str) -> Value | None:
    batch, given, count = g.integer(1, 3), g.integer(1, 4), g.integer(1, 4)
    ids, most = g.leaf("int32", (batch, given), "integer", 0, TOKENS - 1), given + g.integer(1, 6)
    counts = [g.constant([n], "int32") for n in (most, g.pick([0, 0, most - 1]), count, g.integer(1, count))]
    exponent, penalty = (g.constant([g.pick([0.5, 1.0, 1.75])], "float32") for _ in range(2))
    masks = [g.drawn("int32", shape, "integer", 0, 1) for shape in ((TOKENS,), (batch, TOKENS))]
    more = [each if g.maybe(0.3) else None for each in (penalty, *masks)]
    form = {"decoder": decoder(g.integer(0, 99), g.integer(1, 2)), "no_repeat_ngram_size": g.pick([0, 0, 1, 2, 3])}
    form |= {"eos_token_id": g.integer(0, TOKENS - 1), "early_stopping": g.integer(0, 1)}
    return g.node(op, [ids, *counts, exponent, *more], domain=MS, pad_token_id=g.integer(0, 3), **form)
