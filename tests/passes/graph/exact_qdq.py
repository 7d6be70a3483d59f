"""QDQ models in exact arithmetic: every float is a rational number, and QuantizeLinear rounds it once.

Written apart from the compiler: Python integers over one common denominator per tensor, straight from the ONNX file.
What no rational number is (the result of Sigmoid, Softmax, a normalization) is taken from float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper


@dataclass(frozen=True)
class Exact:
    """numerators / denominator"""

    numerators: np.ndarray  # of Python integers
    denominator: int

    @staticmethod
    def of(array: np.ndarray) -> Exact:
        fractions = [Fraction(float(number)) for number in array.reshape(-1)]
        denominator = math.lcm(1, *(f.denominator for f in fractions))
        return Exact(_objects([int(f * denominator) for f in fractions], array.shape), denominator)

    def over(self, denominator: int) -> np.ndarray:
        return self.numerators * (denominator // self.denominator)

    def __add__(self, other: Exact) -> Exact:
        common = math.lcm(self.denominator, other.denominator)
        return Exact(self.over(common) + other.over(common), common)

    def __mul__(self, other: Exact) -> Exact:
        return Exact(self.numerators * other.numerators, self.denominator * other.denominator)

    def matmul(self, other: Exact) -> Exact:
        return Exact(self.numerators @ other.numerators, self.denominator * other.denominator)

    def each(self, function: Callable[[np.ndarray], np.ndarray]) -> Exact:
        return Exact(function(self.numerators), self.denominator)

    def floats(self) -> np.ndarray:
        return np.array([n / self.denominator for n in self.numerators.reshape(-1)]).reshape(self.numerators.shape)

    def bounded(self, low: float | None, high: float | None) -> Exact:
        fractions = [None if bound is None else Fraction(float(bound)) for bound in (low, high)]
        common = math.lcm(self.denominator, *(f.denominator for f in fractions if f is not None))
        numerators = self.over(common)
        if fractions[0] is not None:
            numerators = np.maximum(numerators, int(fractions[0] * common))
        if fractions[1] is not None:
            numerators = np.minimum(numerators, int(fractions[1] * common))
        return Exact(numerators, common)


def _objects(numbers: list[int], shape: tuple[int, ...]) -> np.ndarray:
    made = np.empty(len(numbers), object)
    made[:] = numbers
    return made.reshape(shape)


def run(
    model: ModelProto, inputs: Mapping[str, np.ndarray], seen: dict[str, Any] | None = None
) -> dict[str, np.ndarray]:
    values: dict[str, Any] = {} if seen is None else seen
    values |= {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer} | dict(inputs)
    for node in model.graph.node:
        args = [values[name] if name else None for name in node.input]
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        values |= zip(node.output, _results(node, args, attributes), strict=True)
    return {o.name: _plain(values[o.name]) for o in model.graph.output}


def _plain(value: Any) -> np.ndarray:
    return value.floats() if isinstance(value, Exact) else np.asarray(value)


def _results(node: NodeProto, args: list[Any], attributes: Mapping[str, Any]) -> list[Any]:
    if node.op_type == "Split":
        parts = np.split(args[0].numerators, np.cumsum(args[1])[:-1], attributes.get("axis", 0))
        return [Exact(part, args[0].denominator) for part in parts]
    return [_result(node.op_type, args, attributes)]


def _result(op: str, args: list[Any], attributes: Mapping[str, Any]) -> Any:
    if op == "QuantizeLinear":
        return _quantize(args)
    if op == "DequantizeLinear":
        return _dequantize(args, attributes.get("axis", 1))
    if isinstance(args[0], np.ndarray) and args[0].dtype.kind in "iu":  # moved
        made = _result(op, [Exact(args[0].astype(object), 1), *args[1:]], attributes)
        return made.numerators.astype(args[0].dtype)
    exact = [Exact.of(arg) if isinstance(arg, np.ndarray) and arg.dtype.kind == "f" else arg for arg in args]
    x = exact[0]
    match op:
        case "Conv":
            return _conv(x, exact[1], exact[2] if len(exact) > 2 else None, attributes)
        case "ConvTranspose":
            return _conv_transpose(x, exact[1], exact[2] if len(exact) > 2 else None, attributes)
        case "Gemm" | "MatMul":
            b = exact[1].each(lambda a: a.T) if attributes.get("transB") else exact[1]
            return x.matmul(b) + exact[2] if len(exact) > 2 else x.matmul(b)
        case "Add":
            return x + exact[1]
        case "Sub":
            return x + exact[1].each(lambda a: -a)
        case "Max" | "Min":
            common = math.lcm(x.denominator, exact[1].denominator)
            function = np.maximum if op == "Max" else np.minimum
            return Exact(function(x.over(common), exact[1].over(common)), common)
        case "ReduceMean" | "ReduceSum" | "ReduceMax":
            axes = tuple(int(axis) for axis in args[1])
            if op == "ReduceMax":
                return x.each(lambda a: a.max(axis=axes, keepdims=True))
            total = x.each(lambda a: a.sum(axis=axes, keepdims=True))
            count = math.prod(x.numerators.shape[axis] for axis in axes) if op == "ReduceMean" else 1
            return Exact(total.numerators, x.denominator * count)
        case "Mul":
            return x * exact[1]
        case "Relu":
            return x.bounded(0, None)
        case "Clip":
            return x.bounded(*(None if bound is None else float(bound) for bound in [*args[1:], None, None][:2]))
        case "Concat":
            common = math.lcm(*(part.denominator for part in exact))
            return Exact(np.concatenate([part.over(common) for part in exact], attributes["axis"]), common)
        case "Reshape":
            return x.each(lambda a: a.reshape(tuple(args[1])))
        case "Flatten":
            return x.each(lambda a: a.reshape(math.prod(a.shape[: attributes.get("axis", 1)]), -1))
        case "Transpose":
            return x.each(lambda a: a.transpose(attributes["perm"]))
        case "GlobalAveragePool":
            total = x.each(lambda a: a.sum(axis=tuple(range(2, a.ndim)), keepdims=True))
            return Exact(total.numerators, x.denominator * math.prod(x.numerators.shape[2:]))
        case "AveragePool" | "MaxPool":
            return _pool(op, x, attributes)
        case "Sigmoid":
            return Exact.of(1 / (1 + np.exp(-x.floats())))
        case "Tanh":
            return Exact.of(np.tanh(x.floats()))
        case "HardSigmoid":
            scaled = x * Exact.of(np.array(np.float32(0.2))) + Exact.of(np.array(0.5))
            return scaled.bounded(0, 1)
        case "Softmax":
            axis = attributes.get("axis", -1)
            powers = np.exp(x.floats() - x.floats().max(axis, keepdims=True))
            return Exact.of(powers / powers.sum(axis, keepdims=True))
        case "LayerNormalization" | "InstanceNormalization":
            space = x.numerators.ndim - 2 if op == "InstanceNormalization" else 0
            axes = tuple(range(2, 2 + space)) or tuple(
                range(attributes.get("axis", -1) % x.numerators.ndim, x.numerators.ndim)
            )
            values = x.floats()
            off = values - values.mean(axes, keepdims=True)
            normal = off / np.sqrt((off * off).mean(axes, keepdims=True) + attributes.get("epsilon", 1e-5))
            gain, *bias = (part.each(lambda a: a.reshape(*a.shape, *[1] * space)) for part in exact[1:])
            return Exact.of(normal) * gain + bias[0] if bias else Exact.of(normal) * gain
    raise NotImplementedError(op)


def _quantize(args: list[Any]) -> np.ndarray:
    x = Exact.of(args[0]) if isinstance(args[0], np.ndarray) else args[0]
    zero = np.asarray(args[2])
    info, scale = np.iinfo(zero.dtype), Fraction(float(args[1]))
    divisor, factor = x.denominator * scale.numerator, scale.denominator
    rounded = [_half_even(int(n) * factor, divisor) for n in x.numerators.reshape(-1)]
    inside = [min(max(number + int(zero), int(info.min)), int(info.max)) for number in rounded]
    return np.array(inside, zero.dtype).reshape(x.numerators.shape)


def _half_even(numerator: int, denominator: int) -> int:
    whole, rest = divmod(numerator, denominator)
    if 2 * rest == denominator:
        return whole + whole % 2
    return whole + (2 * rest > denominator)


def _dequantize(args: list[Any], axis: int) -> Exact:
    q, scale = np.asarray(args[0]), np.asarray(args[1])
    zero = np.zeros(scale.shape, np.int64) if len(args) < 3 else np.asarray(args[2])
    shape = [-1 if a == axis % q.ndim else 1 for a in range(q.ndim)] if scale.size > 1 else ()
    integers = (q.astype(np.int64) - zero.astype(np.int64).reshape(shape)).astype(object)
    return Exact(integers, 1) * Exact.of(scale.reshape(shape))


def _conv(x: Exact, w: Exact, bias: Exact | None, attributes: Mapping[str, Any]) -> Exact:
    a, b = x.numerators, w.numerators
    group, space = attributes.get("group", 1), a.ndim - 2
    strides, pads = attributes.get("strides", [1] * space), attributes.get("pads", [0] * 2 * space)
    gaps = attributes.get("dilations", [1] * space)
    sizes = [before + n + after for before, n, after in zip(pads[:space], a.shape[2:], pads[space:], strict=True)]
    padded = np.zeros((*a.shape[:2], *sizes), object)  # np.pad would fill in integers of numpy, which overflow
    inside = [slice(before, before + n) for before, n in zip(pads[:space], a.shape[2:], strict=True)]
    padded[(slice(None), slice(None), *inside)] = a
    a = padded
    out = [(n - (k - 1) * g - 1) // s + 1 for n, k, g, s in zip(a.shape[2:], b.shape[2:], gaps, strides, strict=True)]
    each = b.shape[0] // group
    total = np.zeros((a.shape[0], b.shape[0], *out), object)
    for tap in np.ndindex(*b.shape[2:]):
        starts = [t * g for t, g in zip(tap, gaps, strict=True)]
        window = tuple(slice(t, t + (n - 1) * s + 1, s) for t, n, s in zip(starts, out, strides, strict=True))
        seen = a[(slice(None), slice(None), *window)]
        for g in range(group):
            part = seen[:, g * b.shape[1] : (g + 1) * b.shape[1]]
            factors = b[(slice(g * each, (g + 1) * each), slice(None), *tap)]
            products = np.tensordot(factors, part, axes=([1], [1]))
            total[:, g * each : (g + 1) * each] += np.moveaxis(products, 0, 1)
    made = Exact(total, x.denominator * w.denominator)
    return made if bias is None else made + bias.each(lambda v: v.reshape(-1, *[1] * space))


def _conv_transpose(x: Exact, w: Exact, bias: Exact | None, attributes: Mapping[str, Any]) -> Exact:
    a, b = x.numerators, w.numerators
    group, space = attributes.get("group", 1), a.ndim - 2
    strides, pads = attributes.get("strides", [1] * space), attributes.get("pads", [0] * 2 * space)
    each, inputs = b.shape[1], b.shape[0] // group
    full = [(n - 1) * s + k for n, s, k in zip(a.shape[2:], strides, b.shape[2:], strict=True)]
    total = np.zeros((a.shape[0], each * group, *full), object)
    for tap in np.ndindex(*b.shape[2:]):
        window = tuple(slice(t, t + (n - 1) * s + 1, s) for t, n, s in zip(tap, a.shape[2:], strides, strict=True))
        for g in range(group):
            part = slice(g * inputs, (g + 1) * inputs)
            products = np.tensordot(b[(part, slice(None), *tap)], a[:, part], axes=([0], [1]))
            total[(slice(None), slice(g * each, (g + 1) * each), *window)] += np.moveaxis(products, 0, 1)
    ends = zip(pads[:space], full, pads[space:], strict=True)
    kept = total[(slice(None), slice(None), *(slice(before, n - after) for before, n, after in ends))]
    made = Exact(kept, x.denominator * w.denominator)
    return made if bias is None else made + bias.each(lambda v: v.reshape(-1, *[1] * space))


def _pool(op: str, x: Exact, attributes: Mapping[str, Any]) -> Exact:
    a, kernel = x.numerators, attributes["kernel_shape"]
    pads = attributes.get("pads", [0] * 2 * len(kernel))
    if any(pads):
        assert op == "AveragePool" and attributes.get("count_include_pad")
        edges = list(zip(pads[: len(kernel)], a.shape[2:], pads[len(kernel) :], strict=True))
        padded = np.zeros((*a.shape[:2], *(sum(edge) for edge in edges)), object)
        padded[(slice(None), slice(None), *(slice(before, before + n) for before, n, _ in edges))] = a
        a = padded
    strides = attributes.get("strides", [1] * len(kernel))
    out = [(n - k) // s + 1 for n, k, s in zip(a.shape[2:], kernel, strides, strict=True)]
    made = np.empty((*a.shape[:2], *out), object)
    for place in np.ndindex(*out):
        window = tuple(slice(p * s, p * s + k) for p, s, k in zip(place, strides, kernel, strict=True))
        elements = a[(slice(None), slice(None), *window)].reshape(*a.shape[:2], -1)
        made[(slice(None), slice(None), *place)] = elements.max(-1) if op == "MaxPool" else elements.sum(-1)
    return Exact(made, x.denominator * (1 if op == "MaxPool" else math.prod(kernel)))
