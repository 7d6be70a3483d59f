"""Products with weights of few bits round activations to int8 only where the model or an option permits it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from mccompile.emit.summary import summary
from mccompile.measure.correctness import check

DEPTH, COLUMNS, BLOCK = 256, 512, 32


def model_in(folder: Path, accuracy_level: int | None) -> Path:
    chance = np.random.default_rng(3)
    packed = chance.integers(0, 256, (COLUMNS, DEPTH // BLOCK, BLOCK // 2)).astype(np.uint8)
    scales = chance.uniform(0.1, 1, COLUMNS * DEPTH // BLOCK).astype(np.float32)
    form = {"K": DEPTH, "N": COLUMNS, "bits": 4, "block_size": BLOCK}
    if accuracy_level is not None:
        form["accuracy_level"] = accuracy_level
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **form)
    x, y = (helper.make_tensor_value_info(*each) for each in _ENDS)
    graph = helper.make_graph(
        [node], "g", [x], [y], [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "pack_low_bit_weights.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


_ENDS = (("x", TensorProto.FLOAT, [4, DEPTH]), ("y", TensorProto.FLOAT, [4, COLUMNS]))


def rounding(package: Package) -> int:
    """How many steps round."""
    return sum(step.function.kernel.rounds for step in package.plan.steps())


@pytest.mark.parametrize(
    ("level", "asked", "rounds"),
    [
        (None, "model", False),
        (0, "model", False),
        (1, "model", False),
        (4, "model", True),
        (4, "float", False),
        (None, "int8", True),
        (None, "float", False),
    ],
)
def test_what_permits_rounding(level: int | None, asked: str, rounds: bool, tmp_path: Path) -> None:
    options = Options(target="x86-64-v3", prefer="time", block_activations=asked)
    package = compile(model_in(tmp_path, level), options)
    assert rounding(package) == rounds
    assert ("1 step rounds activations to int8" in summary(package.plan, 0)) == rounds


def test_products_of_four_bits_are_added_up_in_sixteen(tmp_path: Path) -> None:
    """A block of 32 has eight steps of two products of at most 15 * 127: 30,480."""
    package = compile(model_in(tmp_path, 4), Options(target="x86-64-v3", prefer="time"))
    (kernels,) = (data.decode() for name, data in package.files.items() if name.endswith("_kernels.c"))
    assert BLOCK == 32 and "mcc_dot_short_i32x8(" in kernels and "mcc_dot_few" not in kernels


def test_cores_without_such_a_kernel_compute_in_floats(tmp_path: Path) -> None:
    package = compile(model_in(tmp_path, 4), Options(target="cortex-m4"))
    assert not rounding(package)


def test_check_compares_floats_and_says_what_rounding_moves(tmp_path: Path) -> None:
    verdict = check(model_in(tmp_path, 4), Options(target="native", prefer="time"))
    assert verdict.ok
    (effect,) = verdict.effects
    assert effect.cause == "activations rounded to int8"
    assert 0 < effect.share < 0.02


def test_check_has_no_effect_to_tell_of_where_nothing_is_rounded(tmp_path: Path) -> None:
    verdict = check(model_in(tmp_path, 4), Options(target="native", prefer="time", block_activations="float"))
    assert verdict.ok
    assert not verdict.effects


def test_other_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="block activations cannot be 'int4'"):
        compile(model_in(tmp_path, 4), Options(block_activations="int4"))
