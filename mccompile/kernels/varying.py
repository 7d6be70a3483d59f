"""Why the instructions of a call may depend on data, as far as that is seen from its types and its expressions.

Invariant: what is not known to take the same instructions for all numbers is named, by what may branch.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base.dtypes import DType, f32
from ..expr.ir import Apply, Cast, Expr, Literal, walk
from ..expr.nearest import nearest
from ..program.ir import Call
from ..targets.api import Target

BRANCHES = "branches"  # of targets: no instruction but a branch depends on a comparison
_MOVE = frozenset({"map", "concat", "pad", "reinterpret"})  # kinds that compute what their expressions say
_OWN = frozenset({"exp", "expm1", "log", "log1p", "tanh"})  # of mcc_elementary.h
_WAVES = frozenset({"sin", "cos"})  # there, too; vectors call them for lanes that are large
_ALIKE = frozenset({
    "add", "sub", "mul", "neg", "bit_and", "bit_or", "bit_xor", "bit_not", "high_sum", "shift_even", "shift_right",
})  # fmt: skip
_OF_FLOATS = _ALIKE | _OWN | {"div", "abs", "round_even"}
_SATURATE = frozenset({"saturate_i8", "saturate_u8"})
_CHOOSE = frozenset({"min", "max"})  # of integers, and of floats where the other number is known
_VECTORS = frozenset({"floor", "ceil", "trunc", "select", "less", "less_equal", "greater", "greater_equal", "equal"})


def varying(call: Call, target: Target, vectors: bool) -> Iterator[str]:
    """`vectors`: nothing in them branches for single lanes."""
    expressions = call.kind.expressions()
    nodes = [node for expr in expressions for node in walk(expr)]
    floats = any(dtype.is_float for node in nodes for dtype in _computed(node))
    sums = call.kind.name not in _MOVE and any(view.buffer.dtype.is_float for view in (*call.ins, *call.outs))
    if (floats or sums) and not has_fpu(target):
        yield "floats are computed by functions of a library"
        return
    rounded = {step for node in nodes if (near := nearest(node)) for step in near[2]}
    powers = any(isinstance(node, Apply) and node.function in _OWN for node in nodes)
    for node in nodes:
        if node not in rounded and (reason := _reason(node, target, vectors, powers)):
            yield reason


def _computed(node: Expr) -> set[DType]:
    """Types that an expression computes of, and with; reading and writing a number down computes nothing."""
    match node:
        case Cast(dtype, argument):
            return {dtype, argument.dtype}
        case Apply(dtype, _, arguments):
            return {dtype, *(argument.dtype for argument in arguments)}
    return set()


def has_fpu(target: Target) -> bool:
    return target.hosted or bool({"fpu", "vec"} & {*target.isas})


def _reason(node: Expr, target: Target, vectors: bool, powers: bool) -> str:
    match node:
        case Cast(dtype, argument):
            if nearest(node):
                return ""
            types = {dtype, argument.dtype}
            small = all(t is f32 if t.is_float else t.bits <= 32 and t.name not in ("u32", "bool") for t in types)
            between = any(t.is_float for t in types) and not small
            return f"{argument.dtype} becomes {dtype}" if between else ""
        case Apply(dtype, function, arguments):
            given = arguments[-1].dtype
            if given.is_float and given is not f32:
                return f"{function} of {given}"
            if function in (_CHOOSE | _VECTORS if vectors else _WAVES):
                return ""
            if function in _CHOOSE and (not given.is_float or isinstance(arguments[-1], Literal)):
                branches = target.option(BRANCHES, 0) or (given.is_float and powers) or given.bits > 32
                return f"{function} of {given}" if branches else ""
            if function in _SATURATE:
                return f"{function} branches" if target.option(BRANCHES, 0) else ""
            return "" if function in (_OF_FLOATS if given.is_float else _ALIKE) else f"{function} of {given}"
    return ""
