"""simplify_algebra: removes operators that change nothing, and merges pairs of operators that undo or repeat each
other.

Rewrites that hold only because of what a constant contains (x * 1) record that; those about axes, shapes and types need
not, since code depends on these anyway. A neutral 0 that is added may change the sign of a zero, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.dtypes import DType, i8, u8
from ...graph.ir import Graph, Op, Value
from ...ops.binary import Add, Sub
from ...ops.cast import Cast
from ...ops.choose import Clip
from ...ops.concat import Concat, Split
from ...ops.expand import Expand
from ...ops.identity import Dropout
from ...ops.reshape import Reshape
from ...ops.transpose import Transpose
from ..api import Context
from ..pattern import AnyValue, ConstantOperand, FirstOf, Maker, Match, OptionalOperand, ResultOf, Rule, rewrite

X, Y, C = AnyValue("x"), AnyValue("y"), ConstantOperand("c")
_RESHAPES = "Reshape Flatten Squeeze Unsqueeze"
_MANTISSA = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
_HELD_BY = {"bf16": ("f32", "f64"), "f16": ("f32", "f64"), "f32": ("f64",)}
_LARGEST_LOOKED_AT = 1 << 16  # bytes of a constant that may turn out to be neutral


def simplify_algebra(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)


def _x(match: Match, make: Maker) -> Value:
    return match["x"]


def _drops_nothing(match: Match) -> bool:
    op = match.root.op
    return isinstance(op, Dropout) and not op.is_training(match.root.site())


def _keeps_type(match: Match) -> bool:
    return match.root.output.type == match["x"].type


def _everywhere(match: Match, element: float) -> bool:
    """Is the constant `c` this number at every place?"""
    type = match["c"].type
    looked_at = type.is_static and type.max_bytes <= _LARGEST_LOOKED_AT and not type.dtype.is_packed
    return looked_at and bool((match.array("c") == element).all())


def _broadcast(value: Value, match: Match, make: Maker) -> Value | None:
    """`value` in the shape of the result."""
    type = match.root.output.type
    if value.type == type:
        return value
    if value.type.dtype is not type.dtype or not type.is_static:
        return None
    target = make.constant(np.array(type.static_shape, np.int64), f"{match.root.output.name}/shape")
    return make.node(Expand(), value, target)


def _neutral(operator: str, element: float, either_order: bool = False) -> Rule:
    """`operator` with a constant that is `element` everywhere gives the other operand."""

    def build(match: Match, make: Maker) -> Value | None:
        make.used(f"every element of {match['c'].name} is {element}")
        return _broadcast(match["x"], match, make)

    pattern = ResultOf(operator, X, C, either_order=either_order)
    return Rule(f"{operator.lower()}_{element}", pattern, build, lambda match: _everywhere(match, element))


def _absorbing(operator: str, element: int, kinds: str) -> Rule:
    """`operator` with a constant that is `element` everywhere gives that constant; for types where nothing (no NaN, no
    infinity) makes an exception."""

    def fits(match: Match) -> bool:
        return match["c"].type.dtype.kind in kinds.split() and _everywhere(match, element)

    def build(match: Match, make: Maker) -> Value | None:
        make.used(f"every element of {match['c'].name} is {element}")
        return _broadcast(match["c"], match, make)

    return Rule(f"{operator.lower()}_{element}_absorbs", ResultOf(operator, X, C, either_order=True), build, fits)


# -- bounds

_CLIP = (OptionalOperand(ConstantOperand("low")), OptionalOperand(ConstantOperand("high")))
_INNER_CLIP = ResultOf(
    "Clip",
    X,
    OptionalOperand(ConstantOperand("inner_low")),
    OptionalOperand(ConstantOperand("inner_high")),
    read_once=True,
)


def _bounds(match: Match, prefix: str = "") -> tuple[float, float] | None:
    """The bounds of a Clip; None where the lower one is above the upper one."""
    low, high = (
        unbounded if match.get(prefix + name) is None else float(match.array(prefix + name).reshape(-1)[0])
        for name, unbounded in (("low", -np.inf), ("high", np.inf))
    )
    return (low, high) if low <= high else None


def _clip(
    match: Match, make: Maker, inner: tuple[float, float] | None, outer: tuple[float, float] | None
) -> Value | None:
    """One Clip that does what two of them do after each other."""
    dtype = match["x"].type.dtype
    if inner is None or outer is None or not dtype.is_float:
        return None
    low, high = (min(max(bound, outer[0]), outer[1]) for bound in inner)
    name = match.root.output.name
    for bound in ("low", "high", "inner_low", "inner_high"):
        if match.get(bound) is not None:
            make.used(f"{match[bound].name} is ordered as a bound")
    bounds = [
        make.constant(np.array(bound, dtype.numpy), f"{name}/{what}") if np.isfinite(bound) else None
        for bound, what in ((low, "low"), (high, "high"))
    ]
    return make.node(Clip(), match["x"], *bounds)


_RELU = (0.0, np.inf)


def _clip_of_relu(match: Match, make: Maker) -> Value | None:
    return _clip(match, make, _RELU, _bounds(match))


def _relu_of_clip(match: Match, make: Maker) -> Value | None:
    return _clip(match, make, _bounds(match, "inner_"), _RELU)


def _clip_twice(match: Match, make: Maker) -> Value | None:
    return _clip(match, make, _bounds(match, "inner_"), _bounds(match))


def _joined(op: Op) -> Callable[[Match, Maker], Value]:
    """The operator applied to x and y."""
    return lambda match, make: make.node(op, match["x"], match["y"])


def _permutation(match: Match, name: str) -> tuple[int, ...]:
    op, rank = match.node(name).op, match["x"].type.rank
    perm = op.perm if isinstance(op, Transpose) else None
    return tuple(range(rank))[::-1] if perm is None else tuple(axis % rank for axis in perm)


def _moves_nothing(match: Match) -> bool:
    return _permutation(match, "outer") == tuple(range(match["x"].type.rank))


def _join_transposes(match: Match, make: Maker) -> Value:
    inner = _permutation(match, "inner")
    perm = tuple(inner[axis] for axis in _permutation(match, "outer"))
    return match["x"] if perm == tuple(range(len(perm))) else make.node(Transpose(perm=perm), match["x"])


def _join_reshapes(match: Match, make: Maker) -> Value | None:
    type = match.root.output.type
    if type == match["x"].type:
        return match["x"]
    if not type.is_static:
        return None
    shape = type.static_shape
    target = make.constant(np.array(shape, np.int64), f"{match.root.output.name}/shape")
    return make.node(Reshape(allowzero=int(0 in shape)), match["x"], target)


def _holds(narrow: DType, wide: DType) -> bool:
    """Is every value of one type a value of the other?"""
    if narrow is wide:
        return True
    if narrow.kind == "bool":
        return wide.is_integer or wide.name in _MANTISSA
    if narrow.is_integer and wide.is_integer:
        return wide.low <= narrow.low and narrow.high <= wide.high
    if narrow.is_integer:
        return narrow.bits <= _MANTISSA.get(wide.name, 0)
    return wide.name in _HELD_BY.get(narrow.name, ())


def _cast_between_is_exact(match: Match) -> bool:
    between = match.node("inner").output.type.dtype
    return _holds(match["x"].type.dtype, between)


def _join_casts(match: Match, make: Maker) -> Value:
    if match.root.output.type == match["x"].type:
        return match["x"]
    op = match.root.op
    assert isinstance(op, Cast)
    return make.node(op, match["x"])


def _steps_forward(match: Match) -> bool:
    """A slice that keeps the type takes everything; backwards where a step is negative."""
    operands = match.root.inputs
    steps = operands[4].fact.value if len(operands) > 4 and operands[4] is not None else None
    forward = len(operands) < 5 or operands[4] is None or (steps is not None and all(s == 1 for s in steps.reshape(-1)))
    return forward and _keeps_type(match)


def _pads_nothing(match: Match) -> bool:
    pads = match["c"].fact.value
    return pads is not None and not any(pads.reshape(-1)) and _keeps_type(match)


def _quantize_first(match: Match, make: Maker) -> Value | None:
    """The largest of quantized elements is the largest element, quantized; and four times smaller on its way."""
    scale, pool, quantize = match["scale"], match.node("pool").op, match.root.op
    if not scale.type.is_static or scale.type.count != 1 or match.root.output.type.dtype not in (i8, u8):
        return None
    if not float(match.array("scale").reshape(-1)[0]) > 0:
        return None
    make.used(f"{scale.name} is positive")
    largest = make.node(pool, make.node(quantize, match["x"], scale, match.get("zero")))
    shaped = match.nodes.get("shaped")
    return largest if shaped is None else make.node(shaped.op, largest, *shaped.inputs[1:])


def _never_apart(match: Match, make: Maker) -> Value | None:
    """A Concat that joins all parts of a Split again, in their order: takes what was split instead."""
    op, operands = match.root.op, match.root.inputs
    rank = match.root.output.type.rank
    assert isinstance(op, Concat)
    for first, value in enumerate(operands):
        split = value.producer if value is not None else None
        if split is None or not isinstance(split.op, Split) or (split.op.axis - op.axis) % rank:
            continue
        after = first + len(split.outputs)
        if [*split.outputs] == [*operands[first:after]]:
            return make.node(op, *operands[:first], split.inputs[0], *operands[after:])
    return None


def _with_bias(match: Match, make: Maker) -> Value | None:
    """What is added per channel is the bias of a convolution that has none, which is quantized with its sums."""
    out, bias, conv = match.root.output.type, match["c"].type, match.node("conv")
    if any(operand is not None for operand in conv.inputs[2:]) or conv.output.type != out or not bias.is_static:
        return None
    channels = out.shape[1]
    if bias.dtype is not out.dtype or not isinstance(channels, int) or bias.rank > out.rank or bias.count != channels:
        return None
    if (1,) * (out.rank - bias.rank) + bias.static_shape != (1, channels) + (1,) * (out.rank - 2):
        return None
    flat = make.constant(match.array("c").reshape(channels), f"{match['c'].name}/bias")
    return make.node(conv.op, *conv.inputs[:2], flat)


def _repeated(operator: str) -> Rule:
    return Rule(f"repeated_{operator.lower()}", ResultOf(operator, ResultOf(operator, X, name="inner")), _inner)


def _inner(match: Match, make: Maker) -> Value:
    return match.node("inner").output


_LARGEST = ResultOf("MaxPool", X, name="pool", read_once=True)
_SHAPED = ResultOf(_RESHAPES, _LARGEST, rest=True, name="shaped", read_once=True)
_ZERO = OptionalOperand(AnyValue("zero"))
_QUANTIZED = ResultOf("QuantizeLinear", FirstOf(_LARGEST, _SHAPED), ConstantOperand("scale"), _ZERO)

_CONVOLVED = ResultOf("Conv ConvTranspose", X, Y, rest=True, name="conv", read_once=True)

# Results are never negative, and NaN stays NaN.
_NEVER_NEGATIVE = ResultOf("Relu Sigmoid HardSigmoid Abs Exp Softmax Softplus", AnyValue("argument"), name="inner")

RULES = (
    Rule("identity", ResultOf("Identity", X), _x),
    Rule("dropout", ResultOf("Dropout", X, rest=True), _x, _drops_nothing),
    Rule("one_operand", ResultOf("Sum Mean Max Min Concat", X), _x, _keeps_type),
    Rule("never_apart", ResultOf("Concat", X, rest=True), _never_apart),
    Rule("transpose_nothing", ResultOf("Transpose", X, name="outer"), _x, _moves_nothing),
    Rule(
        "transpose_twice", ResultOf("Transpose", ResultOf("Transpose", X, name="inner"), name="outer"), _join_transposes
    ),
    Rule("reshape_to_itself", ResultOf(f"{_RESHAPES} Expand Tile", X, rest=True), _x, _keeps_type),
    Rule("reshape_twice", ResultOf(_RESHAPES, ResultOf(_RESHAPES, X, rest=True), rest=True), _join_reshapes),
    Rule("slice_all", ResultOf("Slice", X, rest=True), _x, _steps_forward),
    Rule("pad_nothing", ResultOf("Pad", X, C, rest=True), _x, _pads_nothing),
    Rule("cast_to_itself", ResultOf("Cast CastLike", X, rest=True), _x, _keeps_type),
    Rule("cast_twice", ResultOf("Cast", ResultOf("Cast", X, name="inner")), _join_casts, _cast_between_is_exact),
    Rule("negate_twice", ResultOf("Neg", ResultOf("Neg", X)), _x),
    Rule("not_twice", ResultOf("Not", ResultOf("Not", X)), _x),
    *(_repeated(operator) for operator in ("Relu", "Abs", "Floor", "Ceil", "Round", "Sign")),
    Rule("never_negative", ResultOf("Relu Abs", _NEVER_NEGATIVE), _inner),
    Rule("clip_of_relu", ResultOf("Clip", ResultOf("Relu", X, read_once=True), *_CLIP), _clip_of_relu),
    Rule("relu_of_clip", ResultOf("Relu", _INNER_CLIP), _relu_of_clip),
    Rule("clip_twice", ResultOf("Clip", _INNER_CLIP, *_CLIP), _clip_twice),
    Rule("add_negative", ResultOf("Add", X, ResultOf("Neg", Y), either_order=True), _joined(Sub())),
    Rule("subtract_negative", ResultOf("Sub", X, ResultOf("Neg", Y)), _joined(Add())),
    Rule("add_bias", ResultOf("Add", _CONVOLVED, C, either_order=True), _with_bias),
    Rule("quantize_first", _QUANTIZED, _quantize_first),
    _absorbing("Mul", 0, "int uint"),
    _absorbing("BitwiseAnd", 0, "int uint"),
    _absorbing("And", 0, "bool"),
    _absorbing("Or", 1, "bool"),
    _neutral("And", 1, either_order=True),
    _neutral("Or", 0, either_order=True),
    _neutral("Max", -np.inf, either_order=True),
    _neutral("Min", np.inf, either_order=True),
    _neutral("Mul", 1, either_order=True),
    _neutral("Div", 1),
    _neutral("Pow", 1),
    _neutral("Add", 0, either_order=True),
    _neutral("Sub", 0),
)
