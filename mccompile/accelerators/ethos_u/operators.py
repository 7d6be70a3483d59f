"""Units as operators of TFLite: which have a form there, and what it is.

Of each value of the region `Writing.orders` says how its axes lie: pictures lie channels-last where an operator over
pictures reads or makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.ir import Value
from ...ops.quantize import DequantizeLinear, QuantizeLinear
from ...ops.transpose import Transpose
from ..api import Order, Region, Unit, Without
from .forms.chain import Chain, chain_of
from .forms.families import FORMS, MOVEMENTS, Form
from .forms.quantities import channels_last, parameters
from .forms.writing import CannotTurn, Writing

_SIGNALS = ("Conv", "ConvTranspose", "AveragePool", "MaxPool", "GlobalAveragePool")
_PICTURES = (
    "BatchNormalization",
    "Resize",
    "Relu",
    "Clip",
    "HardSigmoid",
)


def why_not(unit: Unit) -> str:
    """Why a unit has no form, or nothing."""
    moves = MOVEMENTS.get(unit.nodes[0].op.name)
    if not unit.is_quantized and not unit.moves and moves is None:
        return "it is not between quantized tensors"
    for value in (*unit.reads, *unit.makes):
        if value.type.dtype.name not in ("i8", "u8") or value.type.rank > 4:
            return f"{value.name!r} is {value.type}: only int8 and uint8 of up to four axes"
    if unit.work and len({value.type.dtype for value in (*unit.reads, *unit.makes)}) > 1:
        return "int8 and uint8 are its operands and results"
    if not unit.is_quantized:
        return "" if moves is None or unit.moves else moves.takes(unit.nodes[0])
    refused = _scales(unit)
    if refused:
        return refused
    found = form_of(unit)
    if isinstance(found, str):
        return found
    form, chain = found
    if chain.activation(unit) is None:
        return "no activation of TFLite has the bounds of its Clip"
    return form.takes(unit, chain)


def form_of(unit: Unit) -> tuple[type[Form], Chain] | str:
    chain = chain_of(unit)
    if isinstance(chain, str):
        return chain
    first = unit.work[0].op.name if unit.work else ""
    if chain.node is None and unit.reads[0].type.rank != 4 and first in FORMS and len(unit.work) == 1:
        chain = Chain(unit.work[0])  # channels are changed only of pictures
    form = FORMS.get(chain.node.op.name if chain.node is not None else "")
    return (form, chain) if form is not None else "the operator is not among those that are written for Vela"


def _scales(unit: Unit) -> str:
    for node in unit.nodes:
        if isinstance(node.op, QuantizeLinear | DequantizeLinear):
            source, scale = node.inputs[:2]
            if any(value.constant is None for value in node.inputs[1:] if value is not None):
                return "a scale is computed at run time"
            if scale is not None and scale.type.count != 1 and (source is None or source.constant is None):
                return "an activation has several scales"
    return ""


def written(region: Region) -> tuple[Writing, bytes | Without]:
    """The file of a region, or who has none."""
    writing = Writing(_scales_of(region))
    for value in region.inputs:
        rank = value.type.rank
        writing.made(value, channels_last(rank) if _is_picture(value) else tuple(range(rank)))
    for unit in region.units:
        try:
            refused = _write(writing, unit)
        except CannotTurn:
            refused = "its input lies otherwise, and Vela does not turn it"
        if refused:
            return writing, Without(refused, (unit,))
    inputs, results = ([writing.numbers[v] for v in values] for values in (region.inputs, region.results))
    return writing, writing.net.file(inputs, results)


def _write(writing: Writing, unit: Unit) -> str:
    """Why not, or nothing."""
    first = unit.nodes[0]
    if isinstance(first.op, Transpose) and not unit.is_quantized:
        source = unit.reads[0]
        perm = first.op.order(source.type.rank)
        writing.orders[first.output] = tuple(perm.index(axis) for axis in writing.orders[source])
        writing.numbers[first.output] = writing.made(source)
        return ""
    if not unit.is_quantized:
        return MOVEMENTS[first.op.name].write(writing, first)
    found = form_of(unit)
    return found if isinstance(found, str) else found[0].write(writing, unit, found[1])


def _is_picture(value: Value) -> bool:
    """Does an operator over pictures or signals read it?"""
    reals = [node.output for node, _ in value.uses if isinstance(node.op, DequantizeLinear)]
    names = {node.op.name for each in (value, *reals) for node, _ in each.uses}
    if value.type.rank == 3:
        return not names.isdisjoint(_SIGNALS)
    return value.type.rank == 4 and not names.isdisjoint((*_SIGNALS, *_PICTURES))


def _scales_of(region: Region) -> dict[Value, tuple[Any, Any]]:
    """Scale and zero point of each value that is int8; movements keep them."""
    found: dict[Value, tuple[Any, Any]] = {}
    for unit in region.units:
        for node in unit.nodes:
            if isinstance(node.op, QuantizeLinear):
                found[node.output] = parameters(node)
            elif isinstance(node.op, DequantizeLinear) and node.inputs[0] in unit.reads:
                found.setdefault(node.inputs[0], parameters(node))
    moves = [(a, b) for unit in region.units if not unit.is_quantized for a in unit.reads for b in unit.makes]
    for source, result in (*reversed(moves), *moves):
        for known, other in ((source, result), (result, source)):
            if known in found:
                found.setdefault(other, found[known])
    return found


def orders_of(values: Sequence[Value], writing: Writing) -> dict[Value, Order]:
    """Those that do not lie as the graph has them."""
    return {value: order for value in values if (order := writing.orders[value]) != tuple(range(len(order)))}
