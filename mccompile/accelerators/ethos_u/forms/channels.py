"""BatchNormalization, Add or Mul by constants, Relu, Clip, or another scale, with no operator in front: a depthwise
convolution of one weight per channel; QUANTIZE where only the scale is another."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Value
from ...api import Unit
from .chain import Chain
from .families import Form, form
from .quantities import LAST, given_parameters, result_parameters, sizes
from .weights import Weights, scaled
from .windows import VALID, convolved
from .writing import Writing


def _weights(unit: Unit, chain: Chain) -> Weights | str:
    count = sizes(unit.reads[0])[1]
    given, result = given_parameters(unit.reads[0])[0], result_parameters(unit)[0]
    as_it_is = np.full((count, 1, 1, 1), 127, np.int16), np.array(1 / 127)
    return scaled(as_it_is, None, chain, (given, result), unit.reads[0].type.dtype.numpy)


def _only_quantizes(unit: Unit, chain: Chain) -> bool:
    return chain.is_plain and chain.activation(unit) == 0


@form("")
class Channels(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        if _only_quantizes(unit, chain):
            return ""
        if unit.reads[0].type.rank != 4 or len(unit.reads) != 1:
            return "channels are changed only of pictures"
        found = _weights(unit, chain)
        return found if isinstance(found, str) else ""

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        value, result = unit.reads[0], unit.makes[0]
        if _only_quantizes(unit, chain):
            quantized(writing, value, result)
            return ""
        weights = _weights(unit, chain)
        assert isinstance(weights, Weights)
        given, made = writing.ordered(value, LAST), writing.made(result, LAST)
        fields = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": VALID}
        fields |= {"FusedActivationFunction": chain.activation(unit) or 0}
        convolved(writing, (value, given), weights, made, 1, **fields)
        return ""


def quantized(writing: Writing, value: Value, result: Value) -> None:
    given, order = writing.made(value), writing.orders[value]
    writing.net.operator("QUANTIZE", [given], writing.made(result, order), "QuantizeOptions")
