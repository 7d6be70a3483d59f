"""int8 weights that fit 4 bits, or take 16 values: stored in 4 bits where flash comes first and the target's kernels
unpack them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from embedded.quantized_models import in_four_bits, separable_int8
from mccompile.driver import Options, compile
from mccompile.measure import correctness
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


def of_palette(folder: Path, values: int, zero: bool = True, channels: int = 8, inputs: int = 8) -> Path:
    """A convolution of 3x3 weights of so many values that 4 bits do not hold, with and without 0 among them."""
    made = convolutions(8, [(inputs, 3, 1), (channels, 3, 1)])
    palette = np.append(np.arange(-70, -70 + 7 * (values - 1), 7) - 1, 0 if zero else 127).astype(np.int8)
    for tensor in (tensor for tensor in made.graph.initializer if tensor.name == "w1"):
        weights = palette[np.random.default_rng(0).integers(0, values, tuple(tensor.dims))]
        weights.reshape(-1)[:values] = palette
        tensor.CopyFrom(numpy_helper.from_array(weights, tensor.name))
    return save(made, folder)


def indexed(path: Path, target: str = "cortex-m4", prefer: str = "flash", **more: bool) -> tuple[Plan, int]:
    """How many weights are indices in the plan."""
    plan = compile(path, Options(target=target, prefer=prefer, **more)).plan
    return plan, sum(entry.packing.startswith("dsp") and "indices" in entry.packing for entry in plan.entries)


def test_sixteen_values_take_4_bits_and_16_bytes(tmp_path: Path) -> None:
    (few, found), (many, none) = indexed(of_palette(tmp_path, 16)), indexed(of_palette(tmp_path, 17))
    assert (found, none) == (1, 0)
    assert many.data_bytes - few.data_bytes >= 8 * 8 * 9 / 2 - 16 - 8
    assert any("take at most 16 values" in fact for fact in few.assumptions)
    assert not any("values" in fact for fact in many.assumptions)


def test_zeros_that_packing_adds_are_a_value_too(tmp_path: Path) -> None:
    assert indexed(of_palette(tmp_path, 16, zero=False))[1] == 1
    assert indexed(of_palette(tmp_path, 16, zero=False, inputs=7))[1] == 0
    assert indexed(of_palette(tmp_path, 15, zero=False, inputs=7))[1] == 1


def test_those_that_4_bits_hold_are_no_indices(tmp_path: Path) -> None:
    path = save(in_four_bits(separable_int8(), 16), tmp_path)
    assert indexed(path)[1] == 0


@pytest.mark.parametrize(
    ("target", "prefer", "updatable"),
    [("cortex-m4", "time", False), ("cortex-m0", "flash", False), ("cortex-m4", "flash", True)],
)
def test_elsewhere_values_are_not_counted(target: str, prefer: str, updatable: bool, tmp_path: Path) -> None:
    plan, found = indexed(of_palette(tmp_path, 16), target, prefer, updatable=updatable)
    assert found == 0 and not any("values" in fact for fact in plan.assumptions)


def test_odd_channels_keep_8_bits(tmp_path: Path) -> None:
    assert indexed(of_palette(tmp_path, 16, channels=7))[1] == 0


@pytest.mark.parametrize("dtype", ["uint8", "uint4"])
def test_weights_in_a_table_of_their_own(dtype: str, tmp_path: Path) -> None:
    """Gather of 16 values, as models with palettes store them: it is folded, and its values are found again."""
    path = of_palette(tmp_path, 16)
    made = onnx.load(path)
    (stored,) = (tensor for tensor in made.graph.initializer if tensor.name == "w1")
    values, own = np.unique(numpy_helper.to_array(stored), return_inverse=True)
    kind = onnx.TensorProto.DataType.Value(dtype.upper())
    indices = onnx.helper.make_tensor("indices", kind, tuple(stored.dims), own.reshape(-1).tolist())
    made.graph.initializer.remove(stored)
    made.graph.initializer.extend([numpy_helper.from_array(values, "values"), indices])
    cast = onnx.helper.make_node("Cast", ["indices"], ["places"], to=onnx.TensorProto.INT64)
    made.graph.node.insert(0, onnx.helper.make_node("Gather", ["values", "places"], ["w1"]))
    made.graph.node.insert(0, cast)
    made.opset_import[0].version, made.ir_version = 21, 10
    path = save(made, tmp_path)
    assert indexed(path)[1] == 1
    assert correctness.check(path, Options(), runs=1).ok
