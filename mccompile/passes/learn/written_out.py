"""Normalizations that are written out: a value over the root of a mean."""

from __future__ import annotations

from ...graph.ir import Value

_AROUND = ("Add", "Cast", "Clip", "Max", "ReduceMean")  # what makes the mean, and an epsilon, what a root is taken of


def is_normalized(x: Value) -> bool:
    """Is it divided by the root of a mean, or multiplied by one over it?"""
    node = x.producer
    if node is None:
        return False
    if node.op.name == "Cast":
        return is_normalized(next(node.present_inputs))
    if node.op.name == "Div":
        return _is_root(node.inputs[1])
    return node.op.name == "Mul" and any(_is_inverse(value) for value in node.present_inputs)


def _is_inverse(x: Value) -> bool:
    node = x.producer
    if node is None:
        return False
    if node.op.name == "Reciprocal":
        return _is_root(node.inputs[0])
    if node.op.name == "Div":
        return next(node.present_inputs).constant is not None and _is_root(node.inputs[1])
    return _is_power(x, -0.5)


def _is_root(x: Value | None) -> bool:
    node = x.producer if x is not None else None
    if x is None or node is None:
        return False
    return (node.op.name == "Sqrt" and _is_mean(node.inputs[0])) or _is_power(x, 0.5)


def _is_power(x: Value, of: float) -> bool:
    node = x.producer
    if node is None or node.op.name != "Pow":
        return False
    base, exponent = node.present_inputs
    known = exponent.constant is not None and exponent.type.count == 1
    return known and exponent.constant is not None and exponent.constant.array.item() == of and _is_mean(base)


def _is_mean(x: Value | None) -> bool:
    node = x.producer if x is not None else None
    if node is None or node.op.name not in _AROUND:
        return False
    return node.op.name == "ReduceMean" or any(_is_mean(value) for value in node.present_inputs)
