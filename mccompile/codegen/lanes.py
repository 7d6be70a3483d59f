"""Loops over lanes: plain C of any element types in which no iteration waits for another one and nothing branches, so
that compilers make vectors of it (mcc_lanes.h). The general form beneath kernels with vectors of their own.

Invariant: every lane gets the bits that the portable kernel gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..base.dtypes import DType, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from ..base.marked import including
from ..expr.ir import Apply, Cast, Expr, Literal, Operand, apply, literal, operand, rebuild, walk
from ..expr.scalar_c import literal_c
from ..targets.api import Target
from .traffic import OPERATIONS

LANES = 64  # of a loop: whole vectors of bytes on every machine
LEAST = 16  # elements of a row
LOOP_BYTES = 32  # of the vectors that compilers make of loops at most, where there are wider ones
SHORTEST = 4  # of one that is computed in whole vectors nevertheless, as they may overlap
TYPES = (bool_, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64)
LONG_FLOATS = "long_floats"  # of targets: integers of 64 bits and floats are made of each other in vectors
_DIVISIONS = ("div", "mod", "fmod")
_DIVIDED = (u8, i8, u16, i16, i32, u32, i64)  # of these mcc_lanes.h makes quotients of floats
_LONG = (u32, i64, u64)  # become floats in vectors on few machines
_OF_FLOATS = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "min", "max", "sign", "floor", "ceil", "trunc", "lane_round_even",
    "equal", "less", "less_equal", "greater", "greater_equal", "is_nan", "is_positive_inf", "is_negative_inf", "select",
})  # fmt: skip
_FIXED = ("fixed_product", "fixed_round")
_NOT_OF_INTEGERS = frozenset({"pow", "div", "mod", "fmod"})
FIXED_OPERATIONS, LONG_OPERATIONS = 8, 5  # of a number in fixed point; where vectors multiply 64 bits
_HALVES = (f16, bf16)
_SHORT = ("shift_right", "shift_left")


def lanes_refusal(target: Target, expressions: Sequence[Expr], views: Sequence[DType]) -> str:
    """Why loops over lanes do not become vectors, or nothing."""
    if "vec" not in target.isas:
        return "the target has no vectors"
    if not target.option("loop_vectors", 1):
        return "the target's compilers do not make vectors of loops"
    nodes = [node for expr in expressions for node in walk(without_branches(expr))]
    for dtype in (*views, *(node.dtype for node in nodes)):
        if dtype not in TYPES:
            return f"lanes of {dtype} are not supported"
    return next(filter(None, (_refusal(node, target.option(LONG_FLOATS, 0) > 0) for node in nodes)), "")


def _refusal(node: Expr, long: bool) -> str:
    match node:
        case Cast() if node.argument.dtype.is_float and node.dtype in _LONG:
            return f"conversions of floats to {node.dtype} are not computed in vectors"
        case Cast() if node.argument.dtype in _LONG and node.dtype.is_float and not long:
            return f"{node.argument.dtype} becomes floats one by one"
        case Apply() if node.arguments[-1].dtype.is_float:
            return "" if node.function in _OF_FLOATS else f"{node.function} is computed one by one"
        case Apply(function=function) if function in _SHORT:
            wide = node.dtype in (i64, i8, i16)
            return f"{function} of {node.dtype} is computed one by one" if wide else ""
        case Apply() if node.function.removeprefix("lane_") in _FIXED:
            return ""
        case Apply() if node.function.startswith("lane_") and node.dtype in _LONG and not long:
            return f"quotients of {node.dtype} are not computed in vectors"
        case Apply() if node.function in _NOT_OF_INTEGERS and not _by_a_number(node):
            return f"{node.function} is computed one by one"
    return ""


def _by_a_number(node: Apply) -> bool:
    """Compilers multiply instead of dividing by a literal."""
    by = node.arguments[-1]
    return node.function in _DIVISIONS and node.dtype.bits <= 32 and isinstance(by, Literal) and by.value not in (0, -1)


def without_branches(expr: Expr) -> Expr:
    """The same by functions that have none."""

    def changed(node: Expr) -> Expr | None:
        if not isinstance(node, Apply):
            return None
        divides = node.function in _DIVISIONS and node.dtype in _DIVIDED and not _by_a_number(node)
        if divides or node.function in ("and", "or", *_FIXED) or (node.function == "round_even" and node.dtype is f32):
            return apply(f"lane_{node.function}", *map(without_branches, node.arguments))
        return None

    return rebuild(expr, changed)


def lane_pieces(count: int) -> Iterator[tuple[int, int]]:
    """Where loops over lanes begin, and over how many they go: whole vectors as long as there are some."""
    begin = 0
    for step in (LEAST, LEAST // 2, 1):
        many = (count - begin) // step * step
        if many:
            yield begin, many
        begin += many


def covering_pieces(count: int, of: int) -> Iterator[tuple[int, int]]:
    """The same for elements that may be computed twice: the last piece begins earlier rather than being short. `of`:
    elements of the row that the loops go over, of which these are the last."""
    step = next(size for size in (LEAST, LEAST // 2, SHORTEST, 1) if size <= max(of, 1))
    whole = count // step * step
    if whole:
        yield 0, whole
    if whole < count:
        yield count - step, step


def as_bits(expr: Expr) -> Expr:
    """The same where floats of 16 bits are chosen and moved alone, as integers of as many bits."""
    return (_bits(expr, expr.dtype) if expr.dtype in _HALVES else None) or expr


def bits_of(dtype: DType) -> DType:
    """What lanes have in place of floats of 16 bits."""
    return u16 if dtype in _HALVES else dtype


def _bits(node: Expr, dtype: DType) -> Expr | None:
    """Of a number that becomes one of the narrow type."""
    match node:
        case Operand() if node.dtype is dtype:
            return operand(node.index, u16)
        case Literal():
            return literal(int(np.array(node.value, f32.numpy).astype(dtype.numpy).view(u16.numpy)), u16)
        case Cast() if node.dtype in (dtype, f32) and node.argument.dtype in (dtype, f32):
            return _bits(node.argument, dtype)
        case Apply(function="select") if node.dtype in (dtype, f32):
            condition, *chosen = node.arguments
            found = [bits for one in chosen if (bits := _bits(one, dtype)) is not None]
            return apply("select", condition, *found) if len(found) == len(chosen) else None
    return None


def lane_key(value: str, dtype: DType, largest: bool) -> tuple[DType, str]:
    """Integers in the order of numbers, in which NaN is best and zeros are equal: their type, and C of one."""
    key = {f32: i32, f64: i64}.get(dtype, dtype)
    best = key.high if largest else key.low
    return key, f"mcc_lane_key_{dtype}({value}, {literal_c(best, key)})" if dtype.is_float else value


def each_lane(count: int, body: Sequence[str], cut: bool = False) -> list[str]:
    """A loop; `cut` says that floats become integers in it."""
    return [f"{including('mcc_lanes.h')}MCC_EACH_LANE{'_CUT' * cut}(lane, {count}) {{", *body, "}"]


def cuts(expr: Expr) -> bool:
    """Do floats become integers in it, also where these are divided?"""
    for node in walk(without_branches(expr)):
        match node:
            case Cast() if node.argument.dtype.is_float and not node.dtype.is_float and node.dtype is not bool_:
                return True
            case Apply(function="trunc" | "lane_div" | "lane_mod" | "lane_fmod"):
                return True
    return False


def lane_work(expressions: Sequence[Expr], dtypes: Sequence[DType], target: Target) -> float:
    """Cycles of an element of a result, of its arithmetic alone: every number is as wide as the widest."""
    nodes = [node for expr in expressions for node in set(walk(expr))]
    widest = max(dtype.bits for dtype in (*dtypes, *(node.dtype for node in nodes)))
    casts = sum(isinstance(node, Cast) for node in nodes)
    named = [node.function.removeprefix("lane_") for node in nodes if isinstance(node, Apply)]
    fixed = LONG_OPERATIONS if target.option(LONG_FLOATS, 0) else FIXED_OPERATIONS
    functions = sum(fixed if name in _FIXED else OPERATIONS.get(name, 1) for name in named)
    vectors = widest / 8 / max(min(target.vector_bytes, LOOP_BYTES), 1)
    if "rvv" in target.isas and any(map(cuts, expressions)):  # scalar code there (mcc_lanes.h)
        vectors *= LANES
    return vectors * (2 * casts + functions + len(dtypes)) / target.machine.fmas
