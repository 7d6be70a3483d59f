"""int8 weights that fit 4 bits: stored in them where flash comes first and the target's kernels unpack them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from embedded.quantized_models import in_four_bits, separable_int8
from mccompile.driver import Options, compile
from mccompile.plan.ir import Plan
from tests.small_models import save
from tests.small_quantized import convolutions


def planned(folder: Path, high: int = 7, target: str = "cortex-m4", prefer: str = "flash", **more: bool) -> Plan:
    """A convolution of 8 x 8 x 3 x 3 weights from -8 to `high`."""
    made = convolutions(8, [(8, 3, 1), (8, 3, 1)])
    for tensor in (tensor for tensor in made.graph.initializer if len(tensor.dims) == 4):
        weights = np.random.default_rng(0).integers(-8, 8, tuple(tensor.dims)).astype(np.int8)
        weights.reshape(-1)[0] = high
        tensor.CopyFrom(numpy_helper.from_array(weights, tensor.name))
    onnx.checker.check_model(made)
    return compile(save(made, folder), Options(target=target, prefer=prefer, **more)).plan


def bytes_of(plan: Plan, dtype: str) -> int:
    return sum(e.contents.type.max_bytes for e in plan.entries if e.contents.type.dtype.name == dtype)


def test_half_the_bytes_and_no_more_memory(tmp_path: Path) -> None:
    plan, wide = planned(tmp_path), planned(tmp_path, high=8)
    assert bytes_of(wide, "i4") == 0 and bytes_of(plan, "i4") >= 8 * 8 * 9 / 2
    assert wide.data_bytes - plan.data_bytes >= 8 * 8 * 9 / 2
    assert [a.bytes for a in plan.arenas] == [a.bytes for a in wide.arenas]


def test_each_channel_for_itself_and_single_rows_too(tmp_path: Path) -> None:
    path = save(in_four_bits(separable_int8(), 16), tmp_path)
    plan = compile(path, Options(target="cortex-m4", prefer="flash")).plan
    weights = [e for e in plan.entries if e.packing.startswith("dsp")]
    assert {e.contents.type.dtype.name for e in weights} == {"i4"}
    assert any("columns" in e.packing for e in weights)


@pytest.mark.parametrize(
    ("target", "prefer", "updatable"),
    [
        ("cortex-m4", "time", False),
        ("cortex-m4", "ram", False),
        ("generic", "flash", False),
        ("cortex-m4", "flash", True),
    ],
)
def test_elsewhere_they_keep_8_bits(target: str, prefer: str, updatable: bool, tmp_path: Path) -> None:
    assert bytes_of(planned(tmp_path, target=target, prefer=prefer, updatable=updatable), "i4") == 0
