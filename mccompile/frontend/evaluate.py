"""What a node gives for constant operands: folding, one mechanism for all operators.

Invariant: a result has exactly the type that the operator's type rule gives, and its bytes do not depend on the machine
it was computed on: what CPUs and libraries round differently (sums of products, transcendental functions) is computed
in float64 and rounded once. Where that cannot be had, there is no result and the node stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import DType, f64, string
from ..base.tensor import TensorType
from ..graph.ir import Fact, Node, Value
from ..ops.api import Operator
from .reference import EvaluationFailed, run_node
from .save import is_standard

_ALWAYS_KEPT = frozenset({"Loop", "Scan", "If"})
# what the evaluator knows of these is not what ONNX says: letters without accents, Python's patterns and white space
_OF_STRINGS = frozenset({"StringNormalizer", "StringSplit", "RegexFullMatch"})
# sums of products other than those of `_contract`: too slow to compute here without BLAS, and rarely constant
_CONTRACTIONS = frozenset({
    "Conv", "ConvTranspose", "ConvInteger", "DeformConv", "QLinearConv", "Einsum", "LSTM", "GRU", "RNN", "Attention",
    "Det", "DFT", "STFT",
})  # fmt: skip
# computed wrong by evaluators in cases that the standard is clear about (docs/fuzzing.md), and rarely constant
_NOT_AS_STANDARD = frozenset({
    "AffineGrid", "AveragePool", "DynamicQuantizeLinear", "GlobalMaxPool", "GridSample", "LRN", "LpNormalization",
    "LpPool", "MaxPool", "MaxRoiPool", "MaxUnpool", "MeanVarianceNormalization", "QLinearMatMul", "Resize", "RoiAlign",
})  # fmt: skip
_KEPT = _ALWAYS_KEPT | _OF_STRINGS | _CONTRACTIONS | _NOT_AS_STANDARD
_IN_DOUBLE = frozenset({
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Gelu", "Log",
    "GlobalAveragePool", "HardSwish", "LayerNormalization", "LogSoftmax", "Mean", "Mish", "Pow", "RMSNormalization",
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum",
    "ReduceSumSquare", "Selu", "Sigmoid", "Sin", "Sinh", "Softmax", "Softplus", "Sum", "Swish", "Tan", "Tanh",
})  # fmt: skip
# finite for finite operands; the evaluator of some versions overflows on the way
_FINITE = frozenset({
    "Gelu", "LogSoftmax", "Mish", "ReduceLogSumExp", "Sigmoid", "Softmax", "Softplus", "Swish",
})  # fmt: skip
_SMALL = 1 << 16  # bytes of what is computed while loading


def known_constant(fact: Fact) -> Constant | None:
    """The constant that a type rule has found a value to be."""
    if fact.constant is not None:
        return fact.constant
    if fact.value is None or not fact.type.is_static or not all(isinstance(v, int) for v in fact.value.reshape(-1)):
        return None
    if tuple(fact.value.shape) != fact.type.static_shape or fact.type.dtype.is_packed:
        return None
    return Constant.of(np.array(fact.value.tolist(), fact.type.dtype.numpy).reshape(fact.type.static_shape))


def evaluate(node: Node, limit: int, spend: Callable[[int], None] = lambda _: None) -> list[Constant | None] | None:
    """The results (None for absent ones) of a node whose operands are constants, if they are few enough bytes; `spend`
    is told how many before they are made."""
    op = node.op
    if not isinstance(op, Operator) or op.random or op.name in _KEPT:
        return None
    if op.to_onnx()[1] is not None:
        return None  # the evaluator knows little of old opsets, and computes some of it wrong
    operands = [value and (value.constant or known_constant(value.fact)) for value in node.inputs]
    if any(value is not None and constant is None for value, constant in zip(node.inputs, operands, strict=True)):
        return None
    types = [value.type for value in node.present_outputs]
    if op.name in ("Cast", "CastLike") and any(v.type.dtype is string for v in (node.inputs[0], node.output) if v):
        return None  # numpy writes and reads some numbers in other ways
    if not all(type.is_static for type in types):
        return None
    size = sum(type.max_bytes for type in types)
    if size > limit + 4 * sum(c.type.max_bytes for c in operands if c):  # 4: bytes may become floats
        return None
    spend(size)
    arrays = [constant.array if constant else None for constant in operands]
    results = None if _overflows(node, arrays[0], types[0].dtype) else _run(node, arrays)
    if results is None:
        return None
    constants = [None if array is None else Constant.of(np.array(array)) for array in results]
    wanted = [value.type if value else None for value in node.outputs]
    return constants if [c and c.type for c in constants] == wanted else None


def _overflows(node: Node, array: np.ndarray | None, to: DType) -> bool:
    """Is a float converted to an integer that does not hold it? Every machine gives something else then."""
    if node.op.name not in ("Cast", "CastLike") or array is None or not to.is_integer or array.dtype.kind in "iub":
        return False
    with np.errstate(all="ignore"):
        whole = np.trunc(array.astype(np.float64))
    return not bool(((whole >= to.low) & (whole <= to.high)).all())


def constant_of(value: Value, found: dict[Value, Constant | None], depth: int = 50) -> Constant | None:
    """What a value is, if it follows from constants alone by a few small steps; `found` remembers."""
    if value not in found:
        known = value.constant or known_constant(value.fact)
        found[value] = known or (_computed(value, found, depth - 1) if depth and value.producer else None)
    return found[value]


def _computed(value: Value, found: dict[Value, Constant | None], depth: int) -> Constant | None:
    node = value.producer
    assert node is not None
    operands: list[Value | None] = []
    for operand in node.inputs:
        constant = constant_of(operand, found, depth) if operand is not None else None
        if operand is not None and constant is None:
            return None
        operands.append(Value.of_constant("", constant) if constant else None)
    results = evaluate(Node(node.op, operands, node.outputs, node.provenance, node.regions), _SMALL)
    return results[node.outputs.index(value)] if results else None


def _run(node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray | None] | None:
    name, type = node.op.name, node.output.type if node.outputs[0] else None
    if not is_standard(node):
        assert isinstance(node.op, Operator)
        result = node.op.evaluate(arrays)
        return None if result is None else [result]
    if type is not None and not node.op.domain and (name == "MatMul" or (name == "Gemm" and type.dtype.is_float)):
        return [_contract(node, arrays, type)]
    narrow = type is not None and type.dtype.is_float and type.dtype is not f64
    in_double = name in _IN_DOUBLE and not node.op.domain and narrow
    try:
        return _run_in_double(node, arrays) if in_double else run_node(node, arrays)
    except EvaluationFailed:
        return _run_with_scalars(node, arrays)


def _run_with_scalars(node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray | None] | None:
    """Exporters give vectors of one element where the standard wants scalars, such as the axis of CumSum."""
    given = [array.reshape(()) if array is not None and array.shape == (1,) else array for array in arrays]
    inputs = [None if array is None else Value.of_constant("", Constant.of(array)) for array in given]
    try:
        return run_node(Node(node.op, inputs, node.outputs, ()), given)
    except EvaluationFailed:
        return None


def _run_in_double(node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray | None] | None:
    wide = [_widened(value) for value in node.inputs]
    doubles = Node(node.op, wide, [_widened(value) for value in node.outputs], ())
    results = run_node(
        doubles,
        [
            array.astype(np.float64) if array is not None and value and value.type.dtype.is_float else array
            for array, value in zip(arrays, node.inputs, strict=True)
        ],
    )
    if node.op.name in _FINITE and _is_finite(arrays) and not _is_finite(results):
        return None
    return [
        array if array is None or value is None else array.astype(value.type.dtype.numpy)
        for array, value in zip(results, node.outputs, strict=True)
    ]


def _is_finite(arrays: Sequence[np.ndarray | None]) -> bool:
    return all(bool(np.isfinite(array.astype(np.float64)).all()) for array in arrays if array is not None)


def _widened(value: Value | None) -> Value | None:
    if value is None or not value.type.dtype.is_float:
        return value
    return Value(value.name, Fact(TensorType(f64, value.type.shape)))


def _contract(node: Node, arrays: Sequence[np.ndarray | None], type: TensorType) -> np.ndarray:
    """MatMul or Gemm: products added one after the other, the same on every machine."""
    attributes = vars(node.op)
    wide: np.dtype[np.generic] = np.dtype(np.float64 if type.dtype.is_float else type.dtype.numpy)
    a, b, *rest = (array if array is None else array.astype(wide) for array in arrays)
    assert a is not None and b is not None
    if attributes.get("transA"):
        a = a.T
    if attributes.get("transB"):
        b = b.T
    product = dot(a, b)
    if node.op.name == "Gemm":
        product = product * float(attributes["alpha"])
        if rest and rest[0] is not None:
            product = product + rest[0] * float(attributes["beta"])
    return np.asarray(product.astype(type.dtype.numpy))


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy's matmul without BLAS: one product after the other is added, elementwise operations only."""
    left = a[None, :] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    shape = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    total = np.zeros((*shape, left.shape[-2], right.shape[-1]), left.dtype)
    for k in range(left.shape[-1]):
        total += left[..., :, k, None] * right[..., None, k, :]
    if a.ndim == 1:
        total = total[..., 0, :]
    return total[..., 0] if b.ndim == 1 else total
