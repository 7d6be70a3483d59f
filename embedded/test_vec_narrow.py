"""Vectors of floats from and to f16 and bf16 on every machine that has any and runs programs under emulation: the tests
of tests/runtime_c/test_vec_narrow.py. Nothing is asked of denormal floats but in bf16, which has them in its bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

from embedded.test_vectors import VARIANTS, emulated
from mccompile.driver import Options
from mccompile.measure import correctness
from mccompile.toolchain.tools import missing
from tests.runtime_c.test_vec import Vectors
from tests.runtime_c.test_vec_narrow import (
    test_every_code_is_read_as_its_number,
    test_floats_are_rounded_half_to_even,
    test_parts_touch_nothing_beyond,
)
from tests.small_models import save

__all__ = [
    "test_every_code_is_read_as_its_number",
    "test_floats_are_rounded_half_to_even",
    "test_parts_touch_nothing_beyond",
]


@pytest.fixture(scope="module", params=[*VARIANTS, ("armv7a", 4)], ids=str)
def vectors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Vectors:
    name, lanes = request.param
    return emulated(name, lanes, tmp_path_factory.mktemp("vec"))


@pytest.mark.skipif(bool(missing(["arm-none-eabi-gcc", "qemu-system-arm"])), reason="needs QEMU for Arm")
@pytest.mark.parametrize("expression", ["Neg (x)", "Tan (x)", "Mul (x, x)"])
def test_helium_reads_f16_in_any_register(expression: str, tmp_path: Path) -> None:
    """GNU's assembler takes vcvtb.f32.f16 of other registers than q0 for one of twice their number."""
    text = f'<ir_version: 10, opset_import: ["" : 21]> m (float16[32] x) => (float16[32] y) {{ y = {expression} }}'
    assert correctness.check(save(parser.parse_model(text), tmp_path), Options(target="cortex-m55")).ok


@pytest.mark.skipif(bool(missing(["arm-none-eabi-gcc", "qemu-system-arm"])), reason="needs QEMU for Arm")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_helium_makes_short_integers_of_floats_and_floats_of_them(dtype: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21]> m (float[5, 7] x) => ({dtype}[5, 7] q, float[5, 7] y)
    <float s = {{0.0037}}, {dtype} z = {{3}}> {{ q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z) }}"""
    assert correctness.check(save(parser.parse_model(text), tmp_path), Options(target="cortex-m55")).ok
