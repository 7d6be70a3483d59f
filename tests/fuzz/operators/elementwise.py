"""Element by element: functions, arithmetic, comparisons, casts."""

from __future__ import annotations

from ..builder import FLOATS, INTEGERS, Builder, Value
from .registry import makes

NUMBERS = (*FLOATS, *INTEGERS)
WIDE = ("float32", "float64", "int32", "int64", "uint32", "uint64", *FLOATS)


@makes("Abs", "Neg", "Sign")
def numbers(g: Builder, op: str) -> Value | None:
    signed = [dtype for dtype in NUMBERS if op != "Neg" or not dtype.startswith("u")]
    return g.node(op, [g.any(signed, exact=op == "Sign")], exact=True)


@makes("Relu")
def relu(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.any((*FLOATS, "int8", "int32"))], exact=True)


@makes("Ceil", "Floor", "Round", "ThresholdedRelu", "Shrink", "IsNaN")
def steps(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.float(exact=True)], exact=True)


@makes("IsInf")
def infinite(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.any(("float32", "float64"), exact=True)])


@makes("Celu", "Elu", "LeakyRelu", "Selu")
def rectifiers(g: Builder, op: str) -> Value | None:
    alpha = None if op == "Selu" or g.maybe() else 0.5
    dtypes = ("float32",) if op == "Celu" else FLOATS
    return g.node(op, [g.any(dtypes)], alpha=alpha, exact=op == "LeakyRelu" and alpha is not None)


@makes("Atan", "Cos", "Erf", "Exp", "HardSigmoid", "HardSwish", "Sigmoid", "Sin", "Softplus", "Softsign", "Tanh")
def curves(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.float()])


@makes("Asinh", "Cosh", "Sinh", "Mish", opset=18)
def more_curves(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.float()])


@makes("Gelu", opset=20)
def gelu(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.float()], approximate=g.pick([None, "tanh"]))


@makes("Swish", opset=24)
def swish(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.float()], alpha=g.pick([None, 0.5, 1.5]))


@makes("SwiGLU", opset=28)
def gated_swish(g: Builder, op: str) -> Value | None:
    x = g.float()
    dims = g.dims_of(x)
    return g.node(op, [x, g.leaf(x.dtype, dims)], alpha=g.pick([None, 0.5])) if dims is not None else None


@makes("Acos", "Asin", "Atanh", "Tan")
def inside_one(g: Builder, op: str) -> Value | None:
    dtype = g.pick(FLOATS if g.opset >= 22 else ("float32", "float64", "float16"))
    return g.node(op, [g.input(dtype, g.dims(g.integer(0, 4)), "unit")])


@makes("Acosh")
def above_one(g: Builder, op: str) -> Value | None:
    x = g.input("float32", g.dims(g.integer(0, 3)), "positive")
    more = g.node("Add", [x, g.constant(1.25, "float32")])
    return more and g.node(op, [more])


@makes("Log", "Sqrt", "Reciprocal")
def positive(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.input(g.pick(FLOATS), g.dims(g.integer(0, 4)), "positive")])


@makes("Not")
def negation(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.any(("bool",))])


@makes("Identity")
def identity(g: Builder, op: str) -> Value | None:
    x = g.any((*NUMBERS, "bool"))
    return g.node(op, [x], exact=True)


@makes("Dropout")
def dropout(g: Builder, op: str) -> Value | None:
    x = g.float()
    if g.maybe():
        return g.node(op, [x], exact=True)
    return g.node(op, [x, g.constant(0.25, "float32"), g.constant(False, "bool")], 2, exact=True)


@makes("BitwiseNot", opset=18)
def flipped(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.any(INTEGERS)])


def pair(g: Builder, x: Value, y: Value) -> list[Value | None]:
    return [y, x] if g.maybe(0.3) else [x, y]


@makes("Add", "Sub", "Mul")
def arithmetic(g: Builder, op: str) -> Value | None:
    x = g.any(NUMBERS)
    return g.node(op, pair(g, x, g.like(x)), exact=True)


@makes("Div")
def division(g: Builder, op: str) -> Value | None:
    x = g.any(NUMBERS)
    if x.is_float:
        return g.node(op, [x, g.drawn(x.dtype, x.shape[-1:] if x.is_static else (), "positive")])
    return g.node(op, [x, g.like(x, "integer", 1, 9)])


@makes("Mod")
def remainder(g: Builder, op: str) -> Value | None:
    x = g.any(NUMBERS, exact=True)
    if x.is_float:
        by = g.constant(g.pick([0.5, 2.0, -1.5]), x.dtype)
        return g.node(op, [x, by], fmod=1, exact=True)
    return g.node(op, [x, g.like(x, "integer", 1, 9)], fmod=g.integer(0, 1))


@makes("Pow")
def power(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "float64", "int32", "int64"))
    if g.maybe():
        return g.node(op, [x, g.constant(g.pick([0, 1, 2, 3]), g.pick([x.dtype, "int32", "float32"]))])
    base = g.input("float32", g.dims(g.integer(0, 3)), "positive")
    return g.node(op, [base, g.like(base, "exact")])


@makes("Max", "Min", "Sum", "Mean")
def several(g: Builder, op: str) -> Value | None:
    x = g.any(NUMBERS if op in ("Max", "Min") else FLOATS)
    others = [g.like(x) for _ in range(g.integer(0, 3))]
    return g.node(op, [x, *others], exact=op != "Mean")


@makes("And", "Or", "Xor")
def logic(g: Builder, op: str) -> Value | None:
    x = g.any(("bool",))
    return g.node(op, pair(g, x, g.like(x)))


@makes("BitwiseAnd", "BitwiseOr", "BitwiseXor", opset=18)
def bits(g: Builder, op: str) -> Value | None:
    x = g.any(INTEGERS)
    return g.node(op, pair(g, x, g.like(x)))


@makes("BitShift")
def shift(g: Builder, op: str) -> Value | None:
    x = g.any(("uint8", "uint16", "uint32", "uint64"))
    return g.node(op, [x, g.like(x, "integer", 0, 7)], direction=g.pick(["LEFT", "RIGHT"]))


@makes("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def comparison(g: Builder, op: str) -> Value | None:
    x = g.any((*NUMBERS, *(("bool",) if op == "Equal" else ())), exact=True)
    kind = "exact" if x.is_float else ""
    return g.node(op, pair(g, x, g.like(x, kind)), exact=True)


@makes("PRelu")
def slope(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "float64", "float16", "int32"))
    shape = [1 if not x.is_fixed(a) or g.maybe(0.3) else x.shape[a] for a in range(x.rank)]
    return g.node(op, [x, g.drawn(x.dtype, shape[g.integer(0, x.rank) :])], exact=True)


@makes("Where")
def where(g: Builder, op: str) -> Value | None:
    x = g.any((*NUMBERS, "bool"))
    return g.node(op, [g.like(x, "bool", dtype="bool"), *pair(g, x, g.like(x))], exact=True)


@makes("Clip")
def clip(g: Builder, op: str) -> Value | None:
    x = g.any(NUMBERS)
    low, high = (-1, 2) if not x.dtype.startswith("u") else (1, 9)
    ends = [g.constant(end, x.dtype) if g.maybe(0.8) else None for end in (low, high)]
    if g.maybe(0.15):
        ends[0] = g.input(x.dtype, (), "exact" if x.is_float else "")
    return g.node(op, [x, *ends], exact=True)


@makes("Cast", "CastLike", opset=19)
def cast(g: Builder, op: str) -> Value | None:
    from onnx import helper

    from ..builder import _numpy

    x = g.any((*NUMBERS, "bool"), exact=True)
    to = g.pick([*NUMBERS, "bool"])
    if x.is_float and to not in (*FLOATS, "bool"):
        lowest = min(float(array.astype("float64").min(initial=0)) for array in x.arrays)
        most = max(float(abs(array.astype("float64")).max(initial=0)) for array in x.arrays)
        if most > 100 or (lowest < 0 and to.startswith("u")):
            to = "int32"  # beyond the range the standard leaves it open
    if op == "CastLike":
        return g.node(op, [x, g.drawn(to, (1,))], exact=True)
    return g.node(op, [x], to=helper.np_dtype_to_tensor_dtype(_numpy(to)), exact=True)


@makes("BitCast", opset=26)
def bit_cast(g: Builder, op: str) -> Value | None:
    from onnx import TensorProto

    x = g.any(("int32", "uint32"))
    return g.node(op, [x], to=TensorProto.UINT32 if x.dtype == "int32" else TensorProto.INT32)
