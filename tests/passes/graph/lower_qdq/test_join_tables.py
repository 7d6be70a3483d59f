"""What is computed of one 8-bit tensor, step by step, becomes one lookup, whatever form its roundings take."""

from __future__ import annotations

import onnx
import pytest

from .test_lower_qdq import check_exact, integers, operators


def stepwise(*steps: tuple[str, str]) -> onnx.ModelProto:
    """Every result is quantized. Operands: `x`, and `1`, `2` ... for what the steps before have made."""
    lines = ["x = DequantizeLinear (qx, sx, zx)"]
    for number, (op, operands) in enumerate(steps, 1):
        names = ", ".join(name if name == "x" else f"d{name}" for name in operands.split())
        lines += [
            f"y{number} = {op} ({names})",
            f"q{number} = QuantizeLinear (y{number}, s{number}, z{number})",
            f"d{number} = DequantizeLinear (q{number}, s{number}, z{number})",
        ]
    scales = [
        f"float s{n} = {{0.0{7 * n % 10}{3 * n % 10}1}}, int8 z{n} = {{{5 * n - 9}}}" for n in range(1, len(steps) + 1)
    ]
    return onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 20]> g (int8[2, 257] qx) => (int8[2, 257] q{len(steps)})
        <float sx = {{0.031}}, int8 zx = {{4}}, {", ".join(scales)}> {{ {" ".join(lines)} }}"""
    )


@pytest.mark.parametrize(
    "steps",
    [
        (("Sigmoid", "x"), ("Mul", "x 1")),
        (("Tanh", "x"), ("Mul", "1 x"), ("Add", "2 x"), ("Sub", "3 1")),
        (("Mul", "x x"), ("Relu", "1")),
        (("Sub", "x x"), ("Mul", "1 x")),
    ],
    ids=["swish", "gate", "square", "nothing"],
)
def test_a_chain_of_one_tensor_is_one_lookup(steps: tuple[tuple[str, str], ...]) -> None:
    proto = stepwise(*steps)
    assert operators(integers(proto)) == {"Lookup"}
    check_exact(proto)
