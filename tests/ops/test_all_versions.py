"""Every version of every elementwise, reducing, normalizing and quantizing operator gives what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import onnx
import pytest

from .bundle import One, Outcome, outcomes

# Each opset at which one of these operators changed; one model is compiled per opset.
OPSETS = (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 26, 28)
X = np.random.default_rng(1).uniform(-3, 3, (2, 3, 4)).astype(np.float32)
Y = np.random.default_rng(2).uniform(0.5, 2, (3, 1)).astype(np.float32)
UNIT = X / 3.1
EXTREME = np.array([-np.inf, -1e30, -200, -20, -1, -0.0, 0, 1, 20, 200, 1e30, np.inf, np.nan], np.float32)
FINITE = EXTREME[1:-2]
INTS = np.array([[-7, -1, 0, 3], [2, 5, -4, 9]], np.int32)
DIVISORS = np.array([3, -2, 5, -4], np.int32)
BITS = np.array([[True, False], [False, True]])
IMAGE = np.random.default_rng(3).standard_normal((2, 6, 3, 4)).astype(np.float32)
CHANNELS = [np.random.default_rng(seed).uniform(0.5, 2, 6).astype(np.float32) for seed in range(4)]


def since(name: str, opset: int) -> int:
    """The version of an operator that an opset means; 0 where it has none."""
    try:
        return int(onnx.defs.get_schema(name, max_inclusive_version=opset, domain="").since_version)
    except onnx.defs.SchemaError:
        return 0


def simple() -> Iterator[One]:
    """Operators whose form never changed."""
    for op in ("Abs", "Neg", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh", "Atan", "Asinh", "Erf", "Floor", "Ceil"):
        yield One(op, op, [X])
    for op in ("Sigmoid", "Softplus", "Softsign", "LeakyRelu", "ThresholdedRelu", "Elu", "Selu", "HardSigmoid"):
        yield One(op, op, [X])
        yield One(f"{op}_of_large", op, [FINITE])
    for op in ("HardSwish", "Celu", "Mish", "Gelu"):
        yield One(op, op, [X])
        yield One(f"{op}_of_large", op, [FINITE[np.abs(FINITE) < 1e3]])
    for op in ("Sqrt", "Log", "Reciprocal", "Exp"):
        yield One(op, op, [Y])
    for op in ("Asin", "Acos", "Atanh"):
        yield One(op, op, [UNIT])
    yield One("Acosh", "Acosh", [Y + 1])
    yield One("Round", "Round", [np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.4, 2.5], np.float32)])
    yield One("Sign", "Sign", [INTS])
    yield One("Relu_of_extremes", "Relu", [EXTREME])
    yield One("IsNaN", "IsNaN", [EXTREME])
    yield One("IsInf", "IsInf", [EXTREME])
    yield One("IsInf_negative", "IsInf", [EXTREME], {"detect_positive": 0})
    yield One("Gelu_tanh", "Gelu", [X], {"approximate": "tanh"})
    yield One("LeakyRelu_alpha", "LeakyRelu", [X], {"alpha": 0.3})
    yield One("Shrink", "Shrink", [X], {"lambd": 1.0, "bias": 0.5})
    yield One("PRelu", "PRelu", [X, Y])
    for op in ("Add", "Sub", "Mul", "Div", "Pow"):
        yield One(op, op, [np.abs(X), Y])
    for op in ("Add", "Sub", "Mul", "Div"):
        yield One(f"{op}_of_ints", op, [INTS, DIVISORS])
    for op in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        yield One(op, op, [X, Y])
    yield One("Equal_of_ints", "Equal", [INTS, DIVISORS])
    yield One("Equal_of_bools", "Equal", [BITS, BITS[:1]])
    for op in ("And", "Or", "Xor"):
        yield One(op, op, [BITS, BITS[:1]])
    yield One("Not", "Not", [BITS])
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield One(op, op, [INTS, DIVISORS])
    yield One("BitwiseNot", "BitwiseNot", [INTS])
    for direction in ("LEFT", "RIGHT"):
        amounts = np.array([0, 1, 3, 7], np.uint8)
        yield One(
            f"BitShift_{direction}", "BitShift", [np.array([[200], [9]], np.uint8), amounts], {"direction": direction}
        )
    yield One("Mod", "Mod", [INTS, DIVISORS])
    yield One("Mod_fmod", "Mod", [X, Y], {"fmod": 1})
    yield One("Mod_fmod_of_ints", "Mod", [INTS, DIVISORS], {"fmod": 1})
    yield One("Pow_with_int_exponent", "Pow", [Y, np.array([2, 3], np.int64)])
    yield One("Pow_of_int_base", "Pow", [np.abs(INTS), np.array([2.0, 0.0, 1.0, 3.0], np.float32)])
    for op in ("Max", "Min", "Sum", "Mean"):
        yield One(op, op, [X, Y, X[:1]])
    yield One("Where", "Where", [X > 0, X, Y])
    for target in (onnx.TensorProto.INT8, onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
        yield One(f"Cast_{target}", "Cast", [X], {"to": target})
    yield One("Identity", "Identity", [X])
    yield One("Dropout", "Dropout", [X])
    for op in ("ArgMax", "ArgMin"):
        yield One(op, op, [X], {"axis": 1})
        yield One(f"{op}_last", op, [np.round(X)], {"axis": -1, "keepdims": 0, "select_last_index": 1})
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield One(op, op, [X])
        yield One(f"{op}_axis", op, [X * 30], {"axis": 0})
    yield One("InstanceNormalization", "InstanceNormalization", [IMAGE, *CHANNELS[:2]])
    yield One("LpNormalization", "LpNormalization", [X], {"axis": 1})
    yield One("LpNormalization_1", "LpNormalization", [X], {"axis": 0, "p": 1})
    yield One("LRN", "LRN", [IMAGE], {"size": 5, "alpha": 0.5, "bias": 2.0})
    yield One("MeanVarianceNormalization", "MeanVarianceNormalization", [IMAGE])
    yield One("LayerNormalization", "LayerNormalization", [X, X[0, 0], X[1, 0]])
    yield One("LayerNormalization_3", "LayerNormalization", [X, X[0]], {"axis": 1}, outs=3)
    yield One("RMSNormalization", "RMSNormalization", [X, X[0]], {"axis": 1})
    yield One("Swish", "Swish", [X], {"alpha": 0.5})
    yield One("CumProd", "CumProd", [X, np.array(1)], {"reverse": 1}, frozenset({1}))
    yield One("BitShift_of_negatives", "BitShift", [INTS, np.abs(DIVISORS)], {"direction": "RIGHT"})
    yield One("Celu_of_doubles", "Celu", [X.astype(np.float64)], {"alpha": 0.5})
    yield One("DynamicQuantizeLinear", "DynamicQuantizeLinear", [X], outs=3)


def changed(opset: int) -> Iterator[One]:
    """Operators whose attributes became operands, or the other way round."""
    scalars = [np.array(-1, np.float32), np.array(1.5, np.float32)]
    if opset < 11:
        yield One("Clip", "Clip", [X], {"min": -1.0, "max": 1.5})
        yield One("Clip_one_bound", "Clip", [X], {"max": 1.5})
    else:
        yield One("Clip", "Clip", [X, *scalars], constant=frozenset({1}))
        yield One("Clip_one_bound", "Clip", [X, None, scalars[1]])
        yield One("Cumulative", "CumSum", [X, np.array(-2)], {"reverse": 1, "exclusive": 1}, frozenset({1}))
    yield One("BatchNormalization", "BatchNormalization", [IMAGE, *CHANNELS], {"epsilon": 1e-3})
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        name = f"Reduce{op}"
        data = np.abs(X) if op == "LogSum" else X * 50 if op == "LogSumExp" else X
        ints = np.abs(INTS) + 1
        if since(name, opset) < (13 if op == "Sum" else 18):
            yield One(name, name, [data], {"axes": [0, 2]})
            yield One(f"{name}_flat", name, [data], {"axes": [1], "keepdims": 0})
        else:
            axes = frozenset({1})
            yield One(name, name, [data, np.array([0, -1])], {}, axes)
            yield One(f"{name}_flat", name, [data, np.array([1])], {"keepdims": 0}, axes)
            if op in ("Sum", "Max", "Prod"):  # onnxruntime leaves out the rest of the others' work
                yield One(f"{name}_noop", name, [data], {"noop_with_empty_axes": 1})
        yield One(f"{name}_all", name, [data])
        if op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "SumSquare"):
            yield One(f"{name}_ints", name, [ints])
    if since("GroupNormalization", opset) == 21:
        yield One("GroupNormalization", "GroupNormalization", [IMAGE, *CHANNELS[:2]], {"num_groups": 3})
    if opset >= 10:
        scale, zero = np.array(0.02, np.float32), np.array(100, np.uint8)
        bytes_ = np.arange(24, dtype=np.uint8).reshape(2, 3, 4) * np.uint8(10)
        yield One("QuantizeLinear", "QuantizeLinear", [X, scale, zero])
        yield One("QuantizeLinear_default", "QuantizeLinear", [X, scale])
        yield One("DequantizeLinear", "DequantizeLinear", [bytes_, scale, zero])
    if opset >= 13:
        scales, zeros = Y[:, 0] / 50, np.array([-3, 0, 90], np.int8)
        yield One("QuantizeLinear_axis", "QuantizeLinear", [X, scales, zeros], {"axis": 1})
        yield One("DequantizeLinear_axis", "DequantizeLinear", [bytes_.view(np.int8), scales, zeros], {"axis": -2})
    if opset >= 21:
        blocks = np.abs(X[:, :, :2]) / 40 + np.float32(0.01)
        points = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
        yield One("QuantizeLinear_blocks", "QuantizeLinear", [X, blocks, points], {"axis": 2, "block_size": 2})
        yield One("QuantizeLinear_ragged", "QuantizeLinear", [X, blocks, points], {"axis": 2, "block_size": 3})
        yield One("DequantizeLinear_blocks", "DequantizeLinear", [bytes_, blocks, points], {"axis": 2, "block_size": 3})


def wanted(opset: int) -> list[One]:
    """What changed with this opset (everything at the first), and is valid there."""
    found = []
    for one in (*simple(), *changed(opset)):
        if not since(one.op, opset) or (since(one.op, opset) < opset and opset != OPSETS[0]):
            continue
        known = onnx.defs.get_schema(one.op, max_inclusive_version=opset, domain="")
        allowed = {c.type_param_str: set(c.allowed_type_strs) for c in known.type_constraints}
        types = [_type_name(array) for array in one.ins if array is not None]
        formal = [known.inputs[min(i, len(known.inputs) - 1)] for i in range(len(one.ins)) if one.ins[i] is not None]
        fits = all(t in allowed.get(f.type_str, {f.type_str}) for t, f in zip(types, formal, strict=True))
        same = known.inputs[0].type_str == known.inputs[-1].type_str
        if fits and (len(set(types)) == 1 or not same) and set(one.attributes) <= set(known.attributes):
            found.append(one)
    return found


def _type_name(array: np.ndarray) -> str:
    return f"tensor({ {'float32': 'float', 'float64': 'double'}.get(array.dtype.name, array.dtype.name) })"


@cache
def results(opset: int) -> dict[str, list[Outcome]]:
    return outcomes(opset, wanted(opset))


CASES = [(opset, one.label) for opset in OPSETS for one in wanted(opset)]


@pytest.mark.parametrize(("opset", "label"), CASES, ids=lambda value: str(value))
def test_same_as_onnxruntime(opset: int, label: str) -> None:
    for outcome in results(opset)[label]:
        got, want = outcome.got, outcome.want
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, want)
