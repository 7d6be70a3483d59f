"""Means of quantized tensors are integers where windows hang over the image, too."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.toolchain.run import Model
from tests.small_models import written

SCALE, RESULT = 0.05, 0.03
VOLUME = "kernel_shape = [2, 3, 2], pads = [1, 1, 0, 0, 1, 1]"
TWO = "kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 2, 1]"


def network(attributes: str, shape: tuple[int, ...], out: tuple[int, ...]) -> onnx.ModelProto:
    sizes, results = (",".join(map(str, each)) for each in (shape, out))
    return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 19]>
    mean (int8[{sizes}] x) => (int8[{results}] y)
    <float s = {{{SCALE}}}, int8 z = {{7}}, float s2 = {{{RESULT}}}, int8 z2 = {{-5}}> {{
        xf = DequantizeLinear(x, s, z)
        yf = AveragePool <{attributes}> (xf)
        y = QuantizeLinear(yf, s2, z2)
    }}""")


@pytest.mark.parametrize(
    ("attributes", "shape", "taps", "steps", "gaps", "before"),
    [
        (TWO, (1, 5, 7, 6), (3, 2), (2, 1), (1, 1), (1, 0)),
        ("kernel_shape = [3], pads = [1, 1]", (2, 4, 9), (3,), (1,), (1,), (1,)),
        ("kernel_shape = [3], dilations = [2], pads = [2, 2]", (1, 4, 9), (3,), (1,), (2,), (2,)),
        ("kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1", (1, 4, 5, 7), (2, 2), (2, 2), (1, 1), (0, 0)),
        (VOLUME, (1, 3, 3, 4, 5), (2, 3, 2), (1,) * 3, (1,) * 3, (1, 1, 0)),
    ],
    ids=["two_axes", "line", "dilated", "ceil_mode", "volume"],
)
def test_a_mean_counts_what_is_inside_and_rounds_once(
    attributes: str,
    shape: tuple[int, ...],
    taps: tuple[int, ...],
    steps: tuple[int, ...],
    gaps: tuple[int, ...],
    before: tuple[int, ...],
    tmp_path: Path,
) -> None:
    x = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    graph = load_proto(network(attributes, shape, tuple("abcde"[: len(shape)])))
    package = compile_graph(graph, Options(name="mean"), "mean")
    assert not json.loads(package.files["report.json"])["float_in_quantized"]
    model = Model.build(written(network(attributes, shape, tuple("abcde"[: len(shape)])), tmp_path))
    found = model.run({"x": x})["y"]
    for place in np.ndindex(*found.shape):
        axes = zip(place[2:], steps, before, taps, gaps, shape[2:], strict=True)
        inside = [[p * s - b + t * g for t in range(k) if 0 <= p * s - b + t * g < n] for p, s, b, k, g, n in axes]
        seen = x[place[0], place[1]][np.ix_(*inside)].astype(int)
        mean = Fraction(int(seen.sum()), seen.size) - 7
        wanted = mean * Fraction(float(np.float32(SCALE))) / Fraction(float(np.float32(RESULT)))
        assert found[place] == min(max(round(wanted) - 5, -128), 127)
