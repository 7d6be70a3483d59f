"""Looking inside runs on emulated boards: what their steps make comes out, and a wrong weight is found at its
layer."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from embedded.models import path_of
from mccompile.check.inputs import random_sets
from mccompile.driver import Options, compile
from mccompile.frontend.load import load
from mccompile.measure.board import compare_dump
from mccompile.measure.correctness import check
from mccompile.targets import api
from mccompile.toolchain.emulate import Emulated

BOARDS = ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc")
LAYER = "l24_w"  # of the sixth convolution, conv27, which runs row by row


def with_a_wrong_weight(path: Path, to: Path) -> Path:
    made = onnx.load(path)
    (weight,) = (each for each in made.graph.initializer if each.name == LAYER)
    array = numpy_helper.to_array(weight).copy()
    array.reshape(-1)[array.size // 2] ^= 0x28
    weight.CopyFrom(numpy_helper.from_array(array, LAYER))
    onnx.save(made, to)
    return to


@pytest.mark.parametrize("target", BOARDS)
def test_a_wrong_weight_on_the_board_is_found_at_its_layer(target: str, tmp_path: Path) -> None:
    path = path_of("separable_int8", tmp_path)
    options = Options(target=target, dump_values=True, name="net")
    packages = [compile(path, options), compile(with_a_wrong_weight(path, tmp_path / "bad.onnx"), options)]
    assert packages[0].identity == packages[1].identity, "the code tells them apart"
    inputs = next(random_sets(load(path), 0, 1)).inputs
    for package, folder in zip(packages, ("out", "bad"), strict=True):
        package.write(tmp_path / folder)
        sent = Emulated.build(tmp_path / folder, api.load(target), dump=True).dump(inputs)
        (tmp_path / f"{folder}.bin").write_bytes(b"boot\r\n" + sent)
    right = compare_dump(tmp_path / "out", tmp_path / "out.bin", path)
    assert right.ok and len(right.lines) == 9 and not right.damaged
    assert all(line.here is not None and line.here.max_abs == 0 and line.file is not None for line in right.lines)
    wrong = compare_dump(tmp_path / "out", tmp_path / "bad.bin", path).board
    assert wrong is not None and wrong.name == "quantizelinear29" and "conv27" in wrong.nodes
    assert "all of them at 16 of axis 1" in wrong.where


@pytest.mark.parametrize("target", (*BOARDS, "aarch64", "wasm32"))
def test_models_that_tell_what_happens_are_right(target: str, tmp_path: Path) -> None:
    options = Options(target=target, profile=True, dump_values=True)
    assert check(path_of("digits", tmp_path), options, runs=1).ok
