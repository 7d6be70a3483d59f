"""What operations on floats take on a core without an FPU, where each is a call of the library.

Kernels count products and elements; this comes on top, whichever kernel computes a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..base.dims import upper
from ..expr.ir import Apply, Cast, Expr, Operand, walk
from ..kinds.api import AlongAxes, WithEpilogue
from ..kinds.map import Map
from ..kinds.pool import Pool
from ..program.ir import Call, View
from ..targets.api import Target
from .varying import has_fpu

BITS = frozenset({"abs", "max", "min", "neg", "select"})  # and rounding: done on the bits of a float
OF_BITS = 0.1  # of an operation
TO_INTEGER = 0.3


def soft_floats(call: Call, target: Target) -> float:
    """Cycles of the library."""
    if has_fpu(target):
        return 0.0
    machine = target.machine
    each = 0.0
    for expr in call.kind.expressions():
        views = _operands(expr, call)
        for node in {node for node in walk(expr) if isinstance(node, Apply | Cast)}:
            is_divided = isinstance(node, Apply) and node.function == "div" and node.dtype.is_float
            each += machine.soft_divide if is_divided else _operations(node, views) * machine.soft_float
    total = 0
    if call.macs and call.ins[0].buffer.dtype.is_float:
        total += 2 * upper(call.macs)
    if isinstance(call.kind, Pool) and call.kind.accumulator.is_float:
        total += upper(call.outs[0].type.count) * prod(call.kind.kernel)
    return each * upper(call.outs[0].type.count) + total * machine.soft_float


def _operands(expr: Expr, call: Call) -> Sequence[View | None]:
    """Of an expression, as far as the call has them; None: the kind computes it, as a sum or a random number."""
    kind = call.kind
    if isinstance(kind, WithEpilogue) and expr is kind.epilogue:
        return None, *call.ins[kind.fixed :]
    return call.ins if isinstance(kind, Map | AlongAxes) else ()


def _operations(node: Expr, views: Sequence[View | None]) -> float:
    """For each element: what is the same for all of them is computed once."""
    if not any(each.dtype.is_float for each in (node, *node.args)):
        return 0.0
    if isinstance(node, Cast):
        found = dict(enumerate(views)).get(node.argument.index) if isinstance(node.argument, Operand) else None
        return 0.0 if found is not None and not any(found.strides) else 1.0 if node.dtype.is_float else TO_INTEGER
    return OF_BITS if isinstance(node, Apply) and (node.function in BITS or _rounds(node) or _adds_whole(node)) else 1.0


def _rounds(node: Expr) -> bool:
    return isinstance(node, Apply) and node.function.startswith("round")


def _adds_whole(node: Apply) -> bool:
    """To what was rounded, which is computed in integers."""
    return node.function == "add" and any(map(_rounds, node.args))
