"""block_products: products with weights of few bits read the weights as they are stored, without a float copy.

All spellings become one (ops/block_matmul.py): MatMul or Gemm of anything and DequantizeLinear of a constant matrix, as
it is or transposed, with scales and zero points for the whole matrix, for each column of the product or for blocks
along its sums. Integers of 8 bits that have no blocks stay with what follows: see keep_int8_weights.

Where the model lets a runtime round the other operand to int8 (RoundingDequantizeLinear), or --block-activations asks
for it, the operator says so.

After lower_qdq, which makes products of integers where both sides are quantized; before DequantizeLinear is folded.
"""

from __future__ import annotations

import numpy as np

from ...base.dims import static
from ...graph.ir import Graph, Value
from ...ops.api import normal_axis
from ...ops.binary import Add, Mul
from ...ops.block_matmul import BlockMatMul
from ...ops.matmul import Gemm
from ...ops.quantize import RoundingDequantizeLinear
from ...ops.transpose import Transpose
from ..api import BlockActivations, Context
from ..pattern import AnyValue, ConstantOperand, FirstOf, Maker, Match, OptionalOperand, ResultOf, Rule, rewrite

_WEIGHTS = ResultOf(
    "DequantizeLinear RoundingDequantizeLinear",
    ConstantOperand("w"),
    ConstantOperand("scale"),
    OptionalOperand(ConstantOperand("zero")),
    name="unpacked",
)
_EITHER_WAY = FirstOf(_WEIGHTS, ResultOf("Transpose", _WEIGHTS, name="turned"))
_MATMUL = ResultOf("MatMul", AnyValue("x"), _EITHER_WAY)
_GEMM = ResultOf("Gemm", AnyValue("x"), _EITHER_WAY, OptionalOperand(AnyValue("c")), name="gemm")


def block_products(graph: Graph, context: Context) -> None:
    asked = context.block_activations

    def product(match: Match, make: Maker) -> Value | None:
        return _product(match, make, asked)

    def gemm(match: Match, make: Maker) -> Value | None:
        return _gemm(match, make, asked)

    rewrite(graph, (Rule("block_matmul", _MATMUL, product), Rule("block_gemm", _GEMM, gemm)))


def _gemm(match: Match, make: Maker, asked: BlockActivations) -> Value | None:
    op, x, c = match.node("gemm").op, match["x"], match.get("c")
    assert isinstance(op, Gemm)
    left = make.node(Transpose((1, 0)), x) if op.transA else x
    made = _product(match, make, asked, bool(op.transB), left)
    if made is None:
        return None
    if op.alpha != 1:
        made = make.node(Mul(), made, _number(op.alpha, made, make))
    if c is None or op.beta == 0:
        return made
    return make.node(Add(), made, c if op.beta == 1 else make.node(Mul(), c, _number(op.beta, c, make)))


def _number(number: float, like: Value, make: Maker) -> Value:
    return make.definite(np.array(number, like.type.dtype.numpy), f"{like.name}/factor")


def _product(
    match: Match, make: Maker, asked: BlockActivations, turned: bool = False, x: Value | None = None
) -> Value | None:
    w, scale, zero, op = match["w"], match["scale"], match.get("zero"), match.node("unpacked").op
    block = vars(op)["block_size"]
    if w.type.rank != 2 or not w.type.dtype.is_integer or w.type.dtype.bits > 8 or 0 in w.type.shape:
        return None
    if not scale.type.dtype.is_float or (w.type.dtype.bits == 8 and not block):
        return None
    axis = int(turned) ^ int("turned" in match.nodes)  # of w, along which sums run
    shape: tuple[int, ...]
    if scale.type.count == 1:
        shape, block = (1, 1), 0
    elif normal_axis(vars(op)["axis"], 2) != (axis if block else 1 - axis):
        return None
    else:
        shape = scale.type.static_shape if block else (-1, 1) if axis else (1, -1)
    full = (shape[0], static(w.type.shape[1])) if axis == 0 else (static(w.type.shape[0]), shape[1])

    def spread(name: str, dtype: type[np.generic]) -> Value:
        array = match.array(name).astype(dtype).reshape(shape)
        return make.constant(np.ascontiguousarray(np.broadcast_to(array, full)), f"{match[name].name}/blocks")

    operands = [x or match["x"], w, spread("scale", np.float32)]
    if zero is not None:
        operands.append(spread("zero", np.int8 if w.type.dtype.kind == "int" else np.uint8))
    rounds = asked.rounds(isinstance(op, RoundingDequantizeLinear))
    return make.node(BlockMatMul(axis, block, rounds), *operands)
