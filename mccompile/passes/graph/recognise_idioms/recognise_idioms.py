"""recognise_idioms: operators that exporters have decomposed become one operator again.

Activations, normalizations and moves of elements that kernels know as a whole. The numbers in a spelling (0.5, the root
of 2 ...) are compared with a tolerance, as exporters round them, and that they were looked at is recorded. Formulas of
the operators found here are more careful than the spellings: a normalization of equal elements gives nothing, a
softplus does not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ....graph.ir import Graph, Op, Value
from ....ops.activation import Gelu, HardSigmoid, HardSwish, Mish, Softplus, Swish
from ....ops.normalization import GroupNormalization, LayerNormalization, RMSNormalization
from ....ops.reduce import ReduceL2, ReduceSumSquare
from ...api import Context
from ...pattern import AnyValue, ConstantOperand, FirstOf, Maker, Match, Number, Pattern, ResultOf, Rule, rewrite
from .moves import MOVES
from .positions import POSITIONS
from .reductions import REDUCTIONS

X = AnyValue("x")
Build = Callable[[Match, Maker], Value | None]


def recognise_idioms(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)
    rewrite(graph, REDUCTIONS)  # what is left, that is not a part of a normalization


# -- parts of patterns


def times(a: Pattern, b: Pattern, read_once: bool = False) -> ResultOf:
    return ResultOf("Mul", a, b, either_order=True, read_once=read_once)


def plus(a: Pattern, b: Pattern) -> ResultOf:
    return ResultOf("Add", a, b, either_order=True)


def scaled(a: Pattern, factor: float) -> FirstOf:
    return FirstOf(times(a, Number(factor)), ResultOf("Div", a, Number(1 / factor)))


def product(a: Pattern, b: Pattern, factor: float) -> FirstOf:
    """a * b * factor, whatever is multiplied first."""
    return FirstOf(times(scaled(a, factor), b), times(a, scaled(b, factor)), scaled(times(a, b), factor))


def squared(a: Pattern) -> FirstOf:
    return FirstOf(times(a, a), ResultOf("Pow", a, Number(2)))


def rules(name: str, pattern: Pattern, build: Build) -> Iterator[Rule]:
    """A rule for each form that the root can have."""
    match pattern:
        case FirstOf(patterns):
            for part in patterns:
                yield from rules(name, part, build)
        case ResultOf():
            yield Rule(name, pattern, build)


def becomes(op: Op) -> Build:
    """The operator applied to x, where that is of the result's type."""
    return lambda match, make: make.node(op, match["x"]) if match.root.output.type == match["x"].type else None


# -- activations

_HALF_ROOT = math.sqrt(0.5)
_GELU_ERF = plus(ResultOf("Erf", scaled(X, _HALF_ROOT), read_once=True), Number(1))
_CUBIC = FirstOf(
    scaled(FirstOf(ResultOf("Pow", X, Number(3)), times(squared(X), X)), 0.044715),
    times(scaled(squared(X), 0.044715), X),
    times(scaled(X, 0.044715), squared(X)),
)
_BENT = FirstOf(
    scaled(plus(X, _CUBIC), math.sqrt(2 / math.pi)),
    product(X, plus(scaled(squared(X), 0.044715), Number(1)), math.sqrt(2 / math.pi)),
    product(X, plus(times(scaled(X, 0.044715), X), Number(1)), math.sqrt(2 / math.pi)),
)
_GELU_TANH = plus(ResultOf("Tanh", _BENT, read_once=True), Number(1))

_THREE_MORE = plus(X, Number(3))
_RELU6 = FirstOf(
    ResultOf("Clip", _THREE_MORE, Number(0), Number(6), read_once=True),
    ResultOf(
        "Min", ResultOf("Max", _THREE_MORE, Number(0), either_order=True), Number(6), either_order=True, read_once=True
    ),
    ResultOf("Min", ResultOf("Relu", _THREE_MORE), Number(6), either_order=True, read_once=True),
)
_LOGISTIC_DENOMINATOR = plus(ResultOf("Exp", ResultOf("Neg", X), read_once=True), Number(1))


def _hard_swish(match: Match, make: Maker) -> Value | None:
    fields = vars(match.node("gate").op)
    if abs(fields["alpha"] - 1 / 6) > 1e-4 / 6 or abs(fields["beta"] - 0.5) > 1e-4:
        return None
    return becomes(HardSwish())(match, make)


def _swish(match: Match, make: Maker) -> Value | None:
    """x * sigmoid(alpha * x)"""
    factor = match["alpha"]
    if not factor.type.is_static or factor.type.count != 1 or match.root.output.type != match["x"].type:
        return None
    alpha = float(match.array("alpha").reshape(-1)[0])
    if not math.isfinite(alpha):
        return None
    make.used(f"{factor.name} is {alpha!r}")
    return make.node(Swish(alpha=alpha), match["x"])


_ACTIVATIONS = (
    *rules("gelu_erf", product(X, _GELU_ERF, 0.5), becomes(Gelu())),
    *rules("gelu_tanh", product(X, _GELU_TANH, 0.5), becomes(Gelu(approximate="tanh"))),
    *rules("hard_swish", product(X, _RELU6, 1 / 6), becomes(HardSwish())),
    *rules("hard_sigmoid", scaled(_RELU6, 1 / 6), becomes(HardSigmoid(alpha=1 / 6, beta=0.5))),
    Rule("hard_swish_gate", times(X, ResultOf("HardSigmoid", X, name="gate", read_once=True)), _hard_swish),
    Rule("swish", times(X, ResultOf("Sigmoid", X, read_once=True)), becomes(Swish())),
    Rule("swish_alpha", times(X, ResultOf("Sigmoid", times(X, ConstantOperand("alpha")), read_once=True)), _swish),
    Rule("swish_divided", ResultOf("Div", X, _LOGISTIC_DENOMINATOR), becomes(Swish())),
    Rule("softplus", ResultOf("Log", plus(ResultOf("Exp", X, read_once=True), Number(1))), becomes(Softplus())),
    Rule("mish", times(X, ResultOf("Tanh", ResultOf("Softplus", X, read_once=True), read_once=True)), becomes(Mish())),
)


# -- normalizations

_EPSILON = ConstantOperand("epsilon")
_MEAN = ResultOf("ReduceMean", X, ConstantOperand("axes"), name="mean")
_CENTRED = ResultOf("Sub", X, _MEAN)


def _root(square_sum: Pattern) -> tuple[FirstOf, FirstOf]:
    """sqrt(square_sum + epsilon), and one over it"""
    total = plus(square_sum, _EPSILON)
    root = FirstOf(ResultOf("Sqrt", total), ResultOf("Pow", total, Number(0.5)))
    return root, FirstOf(
        ResultOf("Reciprocal", root), ResultOf("Div", Number(1), root), ResultOf("Pow", total, Number(-0.5))
    )


def _over_root(a: Pattern, square_sum: Pattern) -> FirstOf:
    root, inverse = _root(square_sum)
    return FirstOf(ResultOf("Div", a, root), times(a, inverse))


def _mean_square(a: Pattern) -> ResultOf:
    return ResultOf("ReduceMean", squared(a), ConstantOperand("axes"), name="spread")


def _normalization(match: Match, make: Maker, means: tuple[str, ...]) -> tuple[int, float] | None:
    """The first of the axes and epsilon, where the axes are the last ones and x keeps its type."""
    x, epsilon, axes = match["x"], match["epsilon"], match["axes"].fact.value
    if axes is None or match.root.output.type != x.type or not epsilon.type.is_static or epsilon.type.count != 1:
        return None
    rank = x.type.rank
    first = rank - axes.size
    if sorted(int(axis) % max(rank, 1) for axis in axes.reshape(-1)) != list(range(first, rank)) or first == rank:
        return None
    if not all(vars(match.node(name).op)["keepdims"] for name in means):
        return None
    number = float(match.array("epsilon").reshape(-1)[0])
    if not 0 < number < 1:
        return None
    make.used(f"{epsilon.name} is {number!r}")
    return first, number


def _ones(match: Match, make: Maker) -> Value:
    """The scale of a normalization that does not scale."""
    return make.definite(np.ones(1, match["x"].type.dtype.numpy), f"{match.root.output.name}/ones")


def _layer_norm(match: Match, make: Maker) -> Value | None:
    found = _normalization(match, make, ("mean", "spread"))
    if found is None:
        return None
    return make.node(LayerNormalization(axis=found[0], epsilon=found[1]), match["x"], _ones(match, make))


def _layer_norm_by_factor(match: Match, make: Maker) -> Value | None:
    """x * factor + (bias - mean * factor), as Keras has it"""
    found = _normalization(match, make, ("mean", "spread"))
    if found is None or not (_takes(match, "scale") and _takes(match, "bias")):
        return None
    op = LayerNormalization(axis=found[0], epsilon=found[1])
    return make.node(op, match["x"], match["scale"], match["bias"])


def _rms_norm(match: Match, make: Maker) -> Value | None:
    found = _normalization(match, make, ("spread",))
    if found is None:
        return None
    return make.node(RMSNormalization(axis=found[0], epsilon=found[1]), match["x"], _ones(match, make))


def _group_norm(match: Match, make: Maker) -> Value | None:
    """Groups of channels are normalized as the channels of another shape."""
    x, cut, norm = match["x"].type, match.node("cut").output.type, match.node("norm")
    if match.root.output.type != x or x.rank < 3 or cut.rank != 3 or cut.shape[0] != x.shape[0]:
        return None
    channels, groups = x.shape[1], cut.shape[1]
    if not isinstance(channels, int) or not isinstance(groups, int) or groups < 1 or channels % groups:
        return None
    each = [
        make.constant(np.repeat(match.array(name), channels // groups), f"{norm.output.name}/{name}")
        for name in ("scale", "bias")
    ]
    return make.node(GroupNormalization(num_groups=groups, epsilon=vars(norm.op)["epsilon"]), match["x"], *each)


def _takes(match: Match, name: str) -> bool:
    """Can the value be the scale or bias of a normalization of x?"""
    x, value = match["x"].type, match[name].type
    return match.root.output.type == x and value.dtype is x.dtype and value.rank <= x.rank


def _with_scale(match: Match, make: Maker) -> Value | None:
    if not _takes(match, "scale"):
        return None
    return make.node(match.node("norm").op, match["x"], match["scale"])


def _with_bias(match: Match, make: Maker) -> Value | None:
    if not _takes(match, "bias"):
        return None
    return make.node(match.node("norm").op, match["x"], match["scale"], match["bias"])


_FACTOR = times(_root(_mean_square(_CENTRED))[1], AnyValue("scale"))
_BY_FACTOR = plus(times(X, _FACTOR), ResultOf("Sub", AnyValue("bias"), times(_MEAN, _FACTOR)))
_PLAIN = ResultOf("LayerNormalization RMSNormalization", X, Number(1), name="norm", read_once=True)
_SCALED = ResultOf("LayerNormalization", X, AnyValue("scale"), name="norm", read_once=True)
_GROUPS = ResultOf(
    "InstanceNormalization",
    ResultOf("Reshape", X, rest=True, name="cut"),
    ConstantOperand("scale"),
    ConstantOperand("bias"),
    name="norm",
    read_once=True,
)

_NORMALIZATIONS = (
    Rule("group_norm", ResultOf("Reshape", _GROUPS, rest=True), _group_norm),
    *rules("layer_norm", _over_root(_CENTRED, _mean_square(_CENTRED)), _layer_norm),
    Rule("layer_norm_by_factor", _BY_FACTOR, _layer_norm_by_factor),
    *rules("rms_norm", _over_root(X, _mean_square(X)), _rms_norm),
    Rule("normalized_and_scaled", times(_PLAIN, AnyValue("scale")), _with_scale),
    Rule("normalized_and_moved", plus(_SCALED, AnyValue("bias")), _with_bias),
)


# -- lengths


def _reduced(cls: type[ReduceL2] | type[ReduceSumSquare]) -> Build:
    """The same reduction of x, of its squares."""

    def build(match: Match, make: Maker) -> Value | None:
        total = match.node("sum")
        op = cls(keepdims=vars(total.op)["keepdims"], noop_with_empty_axes=vars(total.op)["noop_with_empty_axes"])
        if not op.noop_with_empty_axes or len(total.inputs) > 1:
            return make.node(op, match["x"], *total.inputs[1:], like=total.output)
        return None

    return build


_LENGTHS = (
    *rules("sum_of_squares", ResultOf("ReduceSum", squared(X), rest=True, name="sum"), _reduced(ReduceSumSquare)),
    Rule(
        "length",
        ResultOf("Sqrt", ResultOf("ReduceSumSquare", X, rest=True, name="sum", read_once=True)),
        _reduced(ReduceL2),
    ),
)

RULES = (*_ACTIVATIONS, *_NORMALIZATIONS, *_LENGTHS, *MOVES, *POSITIONS)
