"""Weights in 16 bits: half the blob, and no more of a difference than rounding makes; what does not fit stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dtypes import DTYPES
from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile
from mccompile.measure.correctness import check
from mccompile.passes.program import narrow_weights
from tests.small_models import floats, model, node, save
from tests.thorough import some


def network(scale: float = 1.0) -> onnx.ModelProto:
    """An ordinary, a depthwise and a pointwise convolution, and a product."""
    nodes = [
        node("Conv", "x w1", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 w2", "c2", pads=[1, 1, 1, 1], group=20),
        node("Conv", "c2 w3", "c3"),
        node("Flatten", "c3", "f"),
        node("MatMul", "f w4", "y"),
    ]
    weights = {
        "w1": floats(1, 20, 6, 3, 3) * np.float32(scale),
        "w2": floats(2, 20, 1, 3, 3),
        "w3": floats(3, 40, 20, 1, 1),
        "w4": floats(4, 40 * 30, 33),
    }
    return model("narrow", nodes, [("x", (1, 6, 5, 6))], [("y", (1, 33))], weights)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@some(1, "target", ["generic", "native"])
def test_half_the_bytes_and_a_little_less_accurate(target: str, dtype: str, tmp_path: Path) -> None:
    path = save(network(), tmp_path)
    options = Options(target=target, weights_dtype=dtype)
    wide, narrow = (compile(path, o).plan for o in (Options(target=target, winograd=0), options))
    assert narrow.data_bytes < 0.55 * wide.data_bytes
    assert {entry.contents.type.dtype.name for entry in narrow.entries} == {dtype}
    verdict = check(path, options, runs=1)
    assert verdict.ok and [effect.output for effect in verdict.effects] == ["y"]
    assert 1e-6 < verdict.effects[0].share < (2e-3 if dtype == "f16" else 2e-2)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_wrong_weight_is_told_from_rounding(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the 24,000 of the product has another sign."""
    of = Constant.of

    def damaged(array: np.ndarray) -> Constant:
        if array.dtype.itemsize == 2 and array.ndim == 2:
            place = np.unravel_index(int(np.argmax(np.abs(array.astype(np.float32)))), array.shape)
            array[place] = -array[place]
        return of(array)

    path, options = save(network(), tmp_path), Options(weights_dtype=dtype)
    assert check(path, options, runs=1).ok
    monkeypatch.setattr(narrow_weights.Constant, "of", damaged)
    assert not check(path, options, runs=1).ok


def test_what_f16_cannot_hold_stays(tmp_path: Path) -> None:
    plan = compile(save(network(1e6), tmp_path), Options(weights_dtype="f16")).plan
    assert sorted(entry.contents.type.dtype.name for entry in plan.entries) == ["f16", "f16", "f16", "f32"]


def test_other_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="weights cannot be stored as 'i8'"):
        compile(save(network(), tmp_path), Options(weights_dtype="i8"))


def rows_by_matrix(rows: str, dtype: str) -> onnx.ModelProto:
    """A matrix of 320 KB whose elements are of the 16-bit type."""
    weights = floats(5, 256, 320).astype(DTYPES[dtype].numpy).astype(np.float32)
    made = model("rows", [node("MatMul", "x w", "y")], [("x", (1, 256))], [("y", (1, 320))], {"w": weights})
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = rows
    return made


def stored(made: onnx.ModelProto, tmp_path: Path, rows: tuple[int, int] = (1, 9), **options: Any) -> list[str]:
    path = save(made, tmp_path)
    given = Options(**{"target": "x86-64-v3", "dims": {"n": rows}, **options})
    return [entry.contents.type.dtype.name for entry in compile(path, given).plan.entries]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_large_matrix_of_16_bits_stays_so_for_single_rows(dtype: str, tmp_path: Path) -> None:
    made = rows_by_matrix("n", dtype)
    assert stored(made, tmp_path) == [dtype]
    assert stored(made, tmp_path, (2, 9)) == ["f32"]
    assert stored(made, tmp_path, target="generic") == ["f32"]
    assert stored(made, tmp_path, updatable=True) == ["f32"]
    assert check(tmp_path / "rows.onnx", Options(target="native", dims={"n": (1, 9)}), runs=2).ok


def test_a_matrix_with_one_other_element_is_not_rounded(tmp_path: Path) -> None:
    made = rows_by_matrix("n", "bf16")
    weights = onnx.numpy_helper.to_array(made.graph.initializer[0]).copy()
    weights[3, 7] = 0.1
    made.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    assert stored(made, tmp_path) == ["f32"]


def in_blocks(scale: float) -> onnx.ModelProto:
    """Weights of 4 bits with 160 scales that f16 holds, but for the last."""
    scales = np.full((4, 40), 0.125, np.float32)
    scales[-1, -1] = scale
    weights = (np.arange(128 * 40) % 13 - 6).reshape(128, 40).astype(DTYPES["i4"].numpy)
    nodes = [node("DequantizeLinear", "w s", "d", axis=0, block_size=32), node("MatMul", "x d", "y")]
    return model("blocks", nodes, [("x", ("n", 128))], [("y", ("n", 40))], {"w": weights, "s": scales}, opset=21)


@pytest.mark.parametrize(
    ("options", "held"),
    [
        ({"target": "generic"}, True),
        ({"target": "generic", "prefer": "time"}, False),  # it has no instruction for it
        ({"target": "x86-64-v3", "prefer": "time"}, True),
        ({"target": "generic", "updatable": True}, False),
    ],
)
def test_scales_are_halves_where_these_hold_them(options: dict[str, Any], held: bool, tmp_path: Path) -> None:
    assert ("f16" in stored(in_blocks(0.25), tmp_path, **options)) == held
    assert "f16" not in stored(in_blocks(0.1), tmp_path, **options)


@pytest.mark.parametrize("target", ["generic", "native"])
def test_products_with_halves_as_scales_are_right(target: str, tmp_path: Path) -> None:
    assert check(save(in_blocks(0.25), tmp_path), Options(target=target, dims={"n": (1, 5)}), runs=2).ok
