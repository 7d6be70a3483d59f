"""The certificate of integers: for every step that computes them the range of each operand, sum and operation.

Invariant: ranges hold for all inputs. They come from types and from numbers of the blob; `check_ranges.py`, which knows
nothing of mccompile, computes them anew by rules of its own, and reads these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ..base.dims import evaluate, symbols
from ..expr.intervals import Range, applied, converted, of_type, sum_range
from ..expr.ir import Apply, Cast, Expr, Literal, Operand
from ..kinds.conv import Conv
from ..kinds.gemm import Gemm
from ..kinds.map import Map
from ..passes.witness import Witness
from ..plan.ir import BLOB, Argument, Plan, Step
from ..program import ir

SCHEMA = "mccompile-ranges-1"


def ranges_certificate(plan: Plan, witness: Witness, data: bytes) -> dict[str, Any]:
    """`data`: the section of the blob that has the constants."""
    steps: list[dict[str, Any]] = []
    other: list[dict[str, Any]] = []
    without = []
    for step, call in zip(plan.steps(), witness.program.calls(), strict=True):
        if not any(view.buffer.dtype.is_integer for view in (*call.ins, *call.outs)):
            without.append(step.number)
        elif isinstance(call.kind, (Conv, Gemm, Map)):
            steps.append({"step": step.number, **_step(step, call, data)})
        else:
            other.append({"step": step.number, "function": step.function.name, "kind": call.kind.name})
    return {"schema": SCHEMA, "prefix": plan.prefix, "steps": steps, "other": other, "not_integer": without}


def inexact(certificate: Mapping[str, Any]) -> list[str]:
    """Operations whose results may leave their type by these ranges: what comes then is defined (they wrap, or guard
    their operand), and not what mathematics says."""
    found = []
    for step in certificate["steps"]:
        names = sorted({node["op"] for node in step["nodes"] if node["exact"] is False})
        names += ["sum"] if step["sum"] is not None and not step["sum"]["exact"] else []
        found += [f"step {step['step']} ({step['function']}): {', '.join(names)}"] if names else []
    return found


def _step(step: Step, call: ir.Call, data: bytes) -> dict[str, Any]:
    count, kind = len(call.outs), call.kind
    arguments = step.arguments[count : count + len(call.ins)]
    operands = [_operand(argument, call, index, data) for index, argument in enumerate(arguments)]
    given, total, expr = [_range(operand["range"]) for operand in operands], None, None
    if isinstance(kind, Map):
        expr = kind.expr
    elif isinstance(kind, (Conv, Gemm)):
        total, expr = _sum(kind, call, given), kind.epilogue
        given = [_range(total["range"]) if total else None, *given[kind.fixed :]]
    nodes = _Nodes(given)
    if expr is not None:
        nodes.add(expr)
    return {
        "function": step.function.name,
        "kind": kind.name,
        "fixed": kind.fixed if isinstance(kind, (Conv, Gemm)) else 0,
        "operands": operands,
        "sum": total,
        "nodes": nodes.found,
    }


class _Nodes:
    """The operations of an expression, each behind its arguments."""

    def __init__(self, given: list[Range]) -> None:
        self.given = given
        self.found: list[dict[str, Any]] = []
        self.numbers: dict[Expr, int] = {}

    def add(self, expr: Expr) -> int:
        if expr not in self.numbers:
            arguments = [self.add(each) for each in expr.args]
            ranges = [_range(self.found[each]["range"]) for each in arguments]
            node: dict[str, Any] = {"op": "", "dtype": expr.dtype.name, "arguments": arguments}
            found, exact = of_type(expr.dtype), None
            match expr:
                case Operand(index=index):
                    node |= {"op": "operand", "of": index}
                    found = self.given[index]
                case Literal(value=value):
                    node |= {"op": "literal", "value": value}
                    found = None if expr.dtype.is_float else (int(value), int(value))
                case Apply(function=function):
                    node |= {"op": function}
                    found, exact = applied(function, ranges, expr.dtype)
                case Cast():
                    node |= {"op": "cast"}
                    found, exact = converted(ranges[0], expr.dtype)
                case _:
                    node |= {"op": "position"}
            self.numbers[expr] = len(self.found)
            self.found.append(node | {"range": None if found is None else list(found), "exact": exact})
        return self.numbers[expr]


def _sum(kind: Conv | Gemm, call: ir.Call, given: list[Range]) -> dict[str, Any] | None:
    """Of products, in any order, whether zero points are subtracted before or after."""
    weights = call.ins[1]
    dims = weights.shape[1:] if isinstance(kind, Conv) else call.ins[0].shape[-1:]
    products = prod(evaluate(dim, {s.name: s.high for s in symbols(dim)}) for dim in dims)
    ranges = dict(zip(kind.names[: kind.fixed], given, strict=False))
    a, b, *zeros = (ranges.get(name, (0, 0)) for name in (*kind.roles, *kind.optional))
    accumulator = of_type(kind.accumulator)
    if a is None or b is None or zeros[0] is None or zeros[1] is None or accumulator is None:
        return None
    low, high, most = sum_range(products, a, b, zeros[0], zeros[1])
    exact = most <= accumulator[1]
    return {
        "products": products,
        "dtype": kind.accumulator.name,
        "any_order": most,
        "range": [low, high] if exact else list(accumulator),
        "exact": exact,
    }


def _operand(argument: Argument, call: ir.Call, index: int, data: bytes) -> dict[str, Any]:
    """`from`: the range is that of the type, of the elements in these bytes of the blob's data, or of what a kernel
    packed in an order of its own."""
    view, dtype = call.ins[index], argument.type.dtype
    found: dict[str, Any] = {"role": argument.role, "dtype": dtype.name, "from": "type"}
    whole = of_type(dtype)
    if (before := call.packed_ranges.get(index)) is not None:
        return found | {"from": "packed", "range": list(before)}
    is_read = argument.address.base == BLOB and argument.low < argument.high and not view.buffer.packing
    if whole is None or not is_read or not dtype.is_integer or dtype.bits < 8:
        return found | {"range": None if whole is None else list(whole)}
    elements = np.frombuffer(data[argument.low : argument.high], dtype.numpy.newbyteorder("<"))
    place = {"low": argument.low, "high": argument.high}
    return found | {"from": "blob", "range": [int(elements.min()), int(elements.max())], **place}


def _range(pair: list[int] | None) -> Range:
    return None if pair is None else (pair[0], pair[1])
