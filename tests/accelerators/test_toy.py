"""The accelerator of the tutorial: a chip behind SPI, which the test plays."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from mccompile.base.errors import CheckFailed
from mccompile.driver import Options, compile
from mccompile.measure import correctness
from mccompile.targets import api as targets
from mccompile.toolchain.emulate import Emulated
from mccompile.toolchain.tools import missing

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "accelerator"
ASKED = Options(accelerator=str(EXAMPLE / "toy"))
# What the chip does with what it is sent: a program, weights, a row. A row of NaN has no answer.
CHIP = """
#include <stddef.h>
#include <stdint.h>
#include <string.h>
__attribute__((weak)) int chip_count;
__attribute__((weak)) const void *chip_sent[3];
__attribute__((weak)) float chip_row[2][512];
__attribute__((weak)) int toy_spi_send(const void *bytes, size_t count)
{
    chip_sent[chip_count++ % 3] = bytes;
    return count == 0;
}
__attribute__((weak)) int toy_spi_receive(void *bytes, size_t count)
{
    const int32_t *layer = (const int32_t *)chip_sent[0] + 1, *end = layer + layer[-1];
    const float *w = (const float *)chip_sent[1];
    int now = 0;
    memcpy(chip_row[0], chip_sent[2], 256 * sizeof(float));
    if (chip_row[0][0] != chip_row[0][0]) return 1;
    for (; layer != end; layer += 2) {
        for (int j = 0; j < layer[1]; ++j) {
            float sum = layer[0] == 0 ? chip_row[now][j] : w[layer[0] * layer[1] + j];
            for (int i = 0; i < layer[0]; ++i) { sum += chip_row[now][i] * w[i * layer[1] + j]; }
            chip_row[!now][j] = layer[0] == 0 && sum < 0.0f ? 0.0f : sum;
        }
        if (layer[0] != 0) { w += (layer[0] + 1) * layer[1]; }
        now = !now;
    }
    memcpy(bytes, chip_row[now], count);
    return 0;
}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLE / "make_model.py"))
    return tmp_path / "mlp.onnx"


def test_the_stand_in_computes_the_region_and_the_report_says_who_computes_what(model: Path) -> None:
    assert correctness.check(model, ASKED).ok
    package = compile(model, ASKED)
    said = json.loads(package.files["report.json"])["accelerator"]
    assert [region["nodes"] for region in said["regions"]] == [["dense1", "relu", "dense2"]]
    assert said["regions"][0]["cycles"] == 8 * 4 * (256 + 10)
    assert said["left"] == [{"node": "softmax", "what": "Softmax", "why": "the chip knows Gemm and Relu, in floats"}]
    assert [step.op for step in package.plan.steps()] == ["external", "normalize"]


@pytest.mark.skipif(bool(missing(["arm-none-eabi-gcc", "qemu-system-arm"])), reason="nothing emulates the board")
def test_the_chip_is_sent_what_it_needs_and_may_fail(model: Path, tmp_path: Path) -> None:
    (tmp_path / "chip.h").write_text(CHIP, encoding="utf-8")
    x = np.random.default_rng(2).standard_normal((1, 256)).astype(np.float32)
    expected = ReferenceEvaluator(str(model)).run(None, {"x": x})[0]
    folder = tmp_path / "out"
    compile(model, replace(ASKED, target="cortex-m4")).write(folder)
    board = Emulated.build(folder, targets.load("cortex-m4"), None, ("-include", str(tmp_path / "chip.h")))
    assert np.allclose(board.run({"x": x})["y"], expected, atol=1e-6)
    x[0, 0] = np.nan
    with pytest.raises(CheckFailed, match="status 35"):
        board.run({"x": x})
