"""Operators without a class of their own, decomposed into other operators: the quantized ones of ONNX, and those of
onnxruntime's own domain that exporters and its quantizer emit.

Invariant: what stands here is the definition of the operator, in the order of rounding that onnxruntime has where that
decides about integers: products are summed as integers and scaled by one factor. Passes and kernels then see ordinary
operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import FunctionProto, NodeProto, TensorProto

from ..base.dims import static
from ..base.dtypes import f32, i8, u8
from ..base.tensor import Shape
from ..graph.ir import Invalid, Unsupported, Value
from ..ops.rules.window import Window
from .composed_attention import attention, quantized_attention, rotary_embedding
from .composed_blocks import gather_block_quantized, matmul_bnb4, matmul_nbits
from .composed_body import CONTRIB, Body
from .composed_buffered import decoder_masked, multi_head_attention
from .composed_detectors import WRITERS as DETECTORS
from .composed_early import STANDARD_FROM
from .composed_early import WRITERS as EARLY
from .composed_grouped import group_query_attention
from .composed_lstm import dynamic_quantize_lstm
from .composed_pieces import channels_of, give_token_counts, plus, root_mean_square
from .composed_qonnx import WRITERS as QONNX
from .composed_quantizers import WRITERS as QUANTIZERS
from .composed_sparse import sparse_attention
from .contributed import contributed
from .same_padding import WRITERS as SAME_PADDING


def _qlinear_conv(body: Body) -> None:
    x, w, scale = body.type(0), body.type(3), body.type(4)
    if x.dtype not in (i8, u8) or w.dtype not in (i8, u8):
        raise Unsupported(f"a convolution of {x.dtype} and {w.dtype}")
    window = body.picked("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    turned = bool(body.attribute("channels_last", 0))

    def ordered(name: str, back: bool = False) -> str:
        return body.channels_last(name, x.rank, back) if turned else name

    if body.are_constant(*range(1, 8)) and scale.count == body.type(5).count:
        ins = [ordered(body.dequantized(0, 1, 2)), body.dequantized(3, 4, 5, axis=0)]
        if body.has(8):
            ins.append(_dequantized_bias(body, 8, 1, 4))
        body.quantize(ordered(body.op("Conv", *ins, **window), back=True), 6, 7)
        return
    zero = body.operand(5)
    total = body.op("ConvInteger", ordered(body.operand(0)), body.operand(3), body.operand(2), zero, **window)
    along = body.ints(*range(1, w.rank - 1))
    if body.has(8):
        total = body.op("Add", total, body.op("Unsqueeze", body.operand(8), along))
    weights = body.operand(4)
    if scale.count != 1:
        weights = body.op("Unsqueeze", weights, along)
    factor = body.op("Div", body.op("Mul", body.operand(1), weights), body.operand(6))
    scaled = body.op("Mul", body.op("Cast", total, to=TensorProto.FLOAT), factor)
    body.give(0, body.op("QuantizeLinear", ordered(scaled, back=True), body.number(1.0), body.operand(7)), False)


def _dequantized_bias(body: Body, bias: int, x_scale: int, w_scale: int) -> str:
    scale = body.op("Mul", body.operand(x_scale), body.operand(w_scale))
    return body.op("DequantizeLinear", body.operand(bias), scale, axis=0)


def _qlinear_matmul(body: Body) -> None:
    if body.type(0).dtype not in (i8, u8) or body.type(3).dtype not in (i8, u8):
        raise Unsupported(f"a matrix product of {body.type(0).dtype} and {body.type(3).dtype}")
    if body.are_constant(1, 2, 4, 5, 6, 7) and body.type(1).count == 1 and _one_per_column(body, 3, 4, 5):
        body.quantize(body.op("MatMul", body.dequantized(0, 1, 2), body.dequantized(3, 4, 5, axis=-1)), 6, 7)
        return
    total = body.op("MatMulInteger", body.operand(0), body.operand(3), body.operand(2), body.operand(5))
    rows = body.as_float(body.operand(1))
    if body.type(1).rank == 1 and body.type(1).count != 1:
        rows = body.op("Unsqueeze", rows, body.ints(1))
    columns, result = body.as_float(body.operand(4)), body.as_float(body.operand(6))
    body.rescaled(total, body.op("Div", body.op("Mul", rows, columns), result), 7)


def _one_per_column(body: Body, matrix: int, scale: int, zero: int) -> bool:
    """Is there one scale and zero point for the matrix, or one for each of its columns?"""
    scales, rank = body.type(scale), body.type(matrix).rank
    alike = scales.count == body.type(zero).count and scales.dtype is f32
    return alike and (scales.count == 1 or (scales.rank == 1 and rank == 2))


def _quantized_binary(name: str) -> Callable[[Body], None]:
    def write(body: Body) -> None:
        body.only()
        body.quantize(body.op(name, body.dequantized(0, 1, 2), body.dequantized(3, 4, 5)), 6, 7)

    return write


def _quantized_unary(name: str, *attributes: str) -> Callable[[Body], None]:
    def write(body: Body) -> None:
        body.only(*attributes)
        body.quantize(body.op(name, body.dequantized(0, 1, 2), **body.picked(*attributes)), 3, 4)

    return write


def _quantized_pool(name: str, *attributes: str) -> Callable[[Body], None]:
    def write(body: Body) -> None:
        body.only("channels_last", *attributes)
        x = body.dequantized(0, 1, 2)
        rank, turned = body.type(0).rank, bool(body.attribute("channels_last", 0))
        form = body.picked(*attributes)
        if form.get("ceil_mode") and form.get("count_include_pad"):
            form |= _pads_of_whole_windows(body, body.type(0).shape[1:-1] if turned else body.type(0).shape[2:])
        made = body.op(name, body.channels_last(x, rank) if turned else x, **form)
        body.quantize(body.channels_last(made, rank, back=True) if turned else made, 3, 4)

    return write


def _pads_of_whole_windows(body: Body, space: Shape) -> dict[str, Any]:
    """Attributes of a pool whose last windows hang over: onnxruntime counts what is missing as padding, too."""
    if not all(isinstance(size, int) for size in space):
        why = "windows that hang over an image whose size is known only at run time"
        raise Unsupported(why, "fix the free dimensions with --dim or --shape")
    kernel, strides, pads = (body.attribute(name, None) for name in ("kernel_shape", "strides", "pads"))
    window = Window.of(space, tuple(kernel or ()), strides, None, pads, body.attribute("auto_pad", ""), ceil=True)
    sides = zip(window.out_space(space, ceil=True), window.strides, window.kernel, space, window.pads, strict=False)
    after = [max(0, (static(out) - 1) * step + k - static(size) - before) for out, step, k, size, before in sides]
    return {"auto_pad": "NOTSET", "ceil_mode": 0, "pads": [*window.pads[: len(space)], *after]}


def _qlinear_softmax(body: Body) -> None:
    body.only("axis", "opset")
    if body.attribute("opset", 13) < 13:
        body.opset = 12  # where all axes from `axis` on are one
    body.quantize(body.op("Softmax", body.dequantized(0, 1, 2), axis=body.attribute("axis", -1)), 3, 4)


def _qlinear_concat(body: Body) -> None:
    parts = [body.dequantized(first, first + 1, first + 2) for first in range(2, len(body.operands), 3)]
    body.quantize(body.op("Concat", *parts, axis=body.attribute("axis", 0)), 0, 1)


def _qlinear_where(body: Body) -> None:
    body.only()
    body.quantize(body.op("Where", body.operand(0), body.dequantized(1, 2, 3), body.dequantized(4, 5, 6)), 7, 8)


def _qlinear_reduce_mean(body: Body) -> None:
    axes = body.attribute("axes", ())
    x = body.dequantized(0, 1, 2)
    ins = [x, body.ints(*axes)] if axes else [x]
    body.quantize(body.op("ReduceMean", *ins, keepdims=body.attribute("keepdims", 1)), 3, 4)


def _qgemm(body: Body) -> None:
    fixed = body.has(8) and body.are_constant(1, 2, 3, 4, 5, 7, 8) and body.attribute("alpha", 1.0) == 1
    if fixed and _one_per_column(body, 3, 4, 5) and not (body.has(6) and body.type(6).rank != 1):
        ins = [body.dequantized(0, 1, 2), body.dequantized(3, 4, 5, axis=0 if body.attribute("transB", 0) else 1)]
        if body.has(6):
            ins.append(_dequantized_bias(body, 6, 1, 4))
        body.quantize(body.op("Gemm", *ins, **body.picked("transA", "transB")), 7, 8)
        return
    a, b = body.operand(0), body.operand(3)
    if body.attribute("transA", 0):
        a = body.op("Transpose", a, perm=[1, 0])
    if body.attribute("transB", 0):
        b = body.op("Transpose", b, perm=[1, 0])
    total = body.op("MatMulInteger", a, b, body.operand(2), body.operand(5))
    total = plus(body, total, 6)
    factor = body.op("Mul", body.operand(1), body.operand(4))
    alpha = body.attribute("alpha", 1.0)
    if alpha != 1:
        factor = body.op("Mul", factor, body.number(alpha))
    if body.has(7):
        body.rescaled(total, body.op("Div", factor, body.operand(7)), 8)
    else:
        body.give(0, body.op("Mul", body.as_float(total), factor))


def _fused_conv(body: Body) -> None:
    window = body.picked("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    made = body.op("Conv", body.operand(0), body.operand(1), body.operand(2), **window)
    body.give(0, body.activated(plus(body, made, 3)))


def _fused_gemm(body: Body) -> None:
    attributes = body.picked("alpha", "beta", "transA", "transB")
    body.give(0, body.activated(body.op("Gemm", body.operand(0), body.operand(1), body.operand(2), **attributes)))


def _fused_matmul(body: Body) -> None:
    sides = []
    for index, letter in ((0, "A"), (1, "B")):
        side, rank = body.operand(index), body.type(index).rank
        order = list(range(rank))
        if body.attribute(f"transBatch{letter}", 0) and rank > 2:
            order = [*order[1:-1], 0, order[-1]]  # the axis of the rows comes first there
        if body.attribute(f"trans{letter}", 0) and rank > 1:
            order[-2:] = order[:-3:-1]
        sides.append(side if order == list(range(rank)) else body.op("Transpose", side, perm=order))
    made = body.op("MatMul", *sides)
    alpha = body.attribute("alpha", 1.0)
    body.give(0, made if alpha == 1 else body.op("Mul", made, body.number(alpha)))


def _skip_layer_normalization(body: Body) -> None:
    total = plus(body, body.op("Add", body.operand(0), body.operand(1)), 4)
    epsilon = body.attribute("epsilon", 1e-12)
    parts = (total, body.operand(2), body.operand(3))
    made = body.op(
        "LayerNormalization", *parts, outs=3 if body.wants(1) or body.wants(2) else 1, axis=-1, epsilon=epsilon
    )
    body.give(0, made)
    for number in (1, 2):  # f32, whatever the operands are
        if body.wants(number):
            body.give(number, f"{made}_{number}", False)
    body.give(3, total)


def _skip_rms_normalization(body: Body) -> None:
    total = plus(body, body.op("Add", body.operand(0), body.operand(1)), 3)
    root = root_mean_square(body, total, body.attribute("epsilon", 1e-12))
    body.give(0, body.op("Mul", body.op("Div", total, root), body.operand(2)))
    if body.wants(1):  # there is no mean, for which onnxruntime gives 0
        body.give(1, body.op("Sub", root, root), False)
    if body.wants(2):
        body.give(2, body.op("Reciprocal", root), False)
    body.give(3, total)


def _layer_normalization(body: Body) -> None:
    attributes = {"axis": -1, **body.picked("axis", "epsilon")}
    parts = (body.operand(0), body.operand(1), body.operand(2))
    made = body.op("LayerNormalization", *parts, outs=len(body.node.output), **attributes)
    for number in range(len(body.node.output)):
        body.give(number, f"{made}_{number}" if number else made)


def _group_normalization(body: Body) -> None:
    """As opset 18 had it: a scale and a bias for each group, where later ones have one for each channel."""
    groups, (channels,) = int(body.attribute("num_groups", 0)), channels_of(body.type(0).shape[1])
    if groups < 1 or channels % groups or body.type(1).shape != (groups,):
        raise Invalid(f"{groups} groups of {channels} channels with a scale {body.type(1)}")
    which = body.ints(*(channel * groups // channels for channel in range(channels)))
    factors = (body.op("Gather", body.operand(index), which, axis=0) for index in (1, 2))
    body.give(0, body.op("GroupNormalization", body.operand(0), *factors, **body.picked("epsilon", "num_groups")))


def _rms_normalization(body: Body) -> None:
    body.opset = 23
    attributes = {"axis": -1, **body.picked("axis", "epsilon")}
    x, rank = body.operand(0), body.type(0).rank
    body.give(0, body.op("RMSNormalization", x, body.operand(1), **attributes))
    if body.wants(1):
        axes = range(int(attributes["axis"]) % rank, rank)
        body.give(1, body.op("Reciprocal", root_mean_square(body, x, body.attribute("epsilon", 1e-5), *axes)))


def _embed_layer_normalization(body: Body) -> None:
    body.ignore(7)  # the mask counts tokens for result 1 only
    if body.wants(1):
        give_token_counts(body, 7, 0)
    total = body.op("Gather", body.operand(2), body.operand(0), axis=0)
    if body.has(8):
        total = body.op("Add", total, body.op("Gather", body.operand(3), body.operand(8), axis=0))
    else:
        first = body.op("Slice", body.operand(3), body.ints(0), body.sizes(body.size(0, 1)), body.ints(0))
        total = body.op("Add", total, first)
    if body.has(1):
        total = body.op("Add", total, body.op("Gather", body.operand(4), body.operand(1), axis=0))
    epsilon = body.attribute("epsilon", 1e-12)
    body.give(0, body.op("LayerNormalization", total, body.operand(5), body.operand(6), axis=-1, epsilon=epsilon))
    body.give(2, total)


def _dynamic_quantize_matmul(body: Body) -> None:
    x = body.op("DynamicQuantizeLinear", body.operand(0), outs=3)
    total = body.op("MatMulInteger", x, body.operand(1), f"{x}_2", body.operand(3))
    scaled = body.op("Mul", body.as_float(total), body.op("Mul", f"{x}_1", body.operand(2)))
    body.give(0, plus(body, scaled, 4))


def _matmul_integer_to_float(body: Body) -> None:
    total = body.op("MatMulInteger", body.operand(0), body.operand(1), body.operand(4), body.operand(5))
    scaled = body.op("Mul", body.as_float(total), body.op("Mul", body.operand(2), body.operand(3)))
    body.give(0, plus(body, scaled, 6))


def _quantize(body: Body) -> None:
    """As ONNX has them, in a domain that had more types before."""
    body.only("axis")
    axis = body.attribute("axis", 1)
    made = body.op("QuantizeLinear", body.operand(0), body.operand(1), body.operand(2), axis=axis)
    body.give(0, made, False)


def _dequantize(body: Body) -> None:
    body.only("axis")
    body.give(0, body.dequantized(0, 1, 2, axis=body.attribute("axis", 1)))


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_WRITERS: dict[tuple[str, str], Callable[[Body], None]] = {
    ("", "QLinearConv"): _qlinear_conv,
    ("", "QLinearMatMul"): _qlinear_matmul,
    (CONTRIB, "QuantizeLinear"): _quantize,
    (CONTRIB, "DequantizeLinear"): _dequantize,
    (CONTRIB, "QLinearConv"): _qlinear_conv,
    (CONTRIB, "QLinearAdd"): _quantized_binary("Add"),
    (CONTRIB, "QLinearMul"): _quantized_binary("Mul"),
    (CONTRIB, "QLinearSigmoid"): _quantized_unary("Sigmoid"),
    (CONTRIB, "QLinearLeakyRelu"): _quantized_unary("LeakyRelu", "alpha"),
    (CONTRIB, "QLinearAveragePool"): _quantized_pool("AveragePool", *_POOL),
    (CONTRIB, "QLinearGlobalAveragePool"): _quantized_pool("GlobalAveragePool"),
    (CONTRIB, "QLinearSoftmax"): _qlinear_softmax,
    (CONTRIB, "QLinearConcat"): _qlinear_concat,
    (CONTRIB, "QLinearReduceMean"): _qlinear_reduce_mean,
    (CONTRIB, "QGemm"): _qgemm,
    (CONTRIB, "FusedConv"): _fused_conv,
    (CONTRIB, "FusedGemm"): _fused_gemm,
    (CONTRIB, "FusedMatMul"): _fused_matmul,
    (CONTRIB, "TransposeMatMul"): _fused_matmul,
    (CONTRIB, "SkipLayerNormalization"): _skip_layer_normalization,
    (CONTRIB, "SkipSimplifiedLayerNormalization"): _skip_rms_normalization,
    (CONTRIB, "EmbedLayerNormalization"): _embed_layer_normalization,
    (CONTRIB, "DynamicQuantizeMatMul"): _dynamic_quantize_matmul,
    (CONTRIB, "DynamicQuantizeLSTM"): dynamic_quantize_lstm,
    (CONTRIB, "MatMulIntegerToFloat"): _matmul_integer_to_float,
    (CONTRIB, "MatMulNBits"): matmul_nbits,
    (CONTRIB, "MatMulBnb4"): matmul_bnb4,
    (CONTRIB, "GatherBlockQuantized"): gather_block_quantized,
    (CONTRIB, "Attention"): attention,
    (CONTRIB, "QAttention"): quantized_attention,
    (CONTRIB, "MultiHeadAttention"): multi_head_attention,
    (CONTRIB, "DecoderMaskedMultiHeadAttention"): decoder_masked,
    (CONTRIB, "GroupQueryAttention"): group_query_attention,
    (CONTRIB, "SparseAttention"): sparse_attention,
    (CONTRIB, "RotaryEmbedding"): rotary_embedding,
    (CONTRIB, "QLinearWhere"): _qlinear_where,
    # onnxruntime has these in ONNX's domain, the first for opsets before it came to ONNX
    ("", "LayerNormalization"): _layer_normalization,
    ("", "SimplifiedLayerNormalization"): _rms_normalization,
    # ONNX took the first form of it out again
    ("", "GroupNormalization"): _group_normalization,
    **EARLY,
    **QONNX,
    **QUANTIZERS,
    **DETECTORS,
    **{key: entry.write for key, entry in contributed().items()},
}
# Names in ONNX's domain that it does not have, or only from an opset on.
_BEFORE: dict[str, int | None] = {
    **{name: None for domain, name in (*EARLY, *DETECTORS) if not domain},
    **STANDARD_FROM,
    "GroupNormalization": 21,
    "LayerNormalization": 17,
    "SimplifiedLayerNormalization": None,
}


_SEARCHES = ("Sampling", "WhisperBeamSearch")


def why_not(domain: str, name: str) -> tuple[str, str] | None:
    """Why an operator is not decomposed, and what helps."""
    if domain == CONTRIB and name in _SEARCHES:
        fix = "export the decoder as a model of its own, with its past as inputs, and choose tokens in your program"
        return f"{name} runs a whole decoder for every token, until the tokens say that it is enough", fix
    if domain == f"{CONTRIB}.nchwc":
        fix = "save the model with ORT_ENABLE_EXTENDED or below, or take the one that was optimized"
        return "onnxruntime optimized the model for the vectors of one machine", fix
    return None


def names() -> frozenset[tuple[str, str]]:
    """Domain and name of every operator that has a decomposition."""
    return frozenset(_WRITERS)


def is_of_onnxruntime(domain: str, name: str, opset: int) -> bool:
    """Is it an operator that ONNX does not have, at least not at this opset, though it is in its domain?"""
    first = _BEFORE.get(name, 0)
    return not domain and (first is None or opset < first)


def domains() -> frozenset[str]:
    """Those of others than ONNX, whose operators have one version that a file need not name."""
    return frozenset(domain for domain, _ in _WRITERS if domain)


def composed(
    domain: str,
    node: NodeProto,
    attributes: Mapping[str, Any],
    operands: Sequence[Value | None],
    declared: Sequence[tuple[int, ...] | None],
) -> FunctionProto:
    """The function that is one of these operators, for these operands; raises Refused. `declared` are the shapes that
    the file says of the results."""
    body = Body(node, attributes, operands)
    body.declared = declared
    writers = _WRITERS if (domain, node.op_type) in _WRITERS else SAME_PADDING
    writers[domain, node.op_type](body)
    return body.function()
