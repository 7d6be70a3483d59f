"""A 1x1 convolution behind a Resize that enlarges is computed in front of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mccompile.driver import Options
from mccompile.toolchain.run import Model
from tests.small_models import compiled, floats, reference, written


def network(
    mode: str = "linear", scale: float = 2, channels: tuple[int, int] = (6, 2), kernel: int = 1, extra: str = ""
) -> onnx.ModelProto:
    before, after = channels
    size = int(8 * scale) - kernel + 1
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    enlarged (float[1,{before},8,8] x) => (float[1,{after},{size},{size}] y)
    <float[4] scales = {{1, 1, {scale}, {scale}}}, float[8] roi = {{0, 0, 0, 0, 1, 1, 1, 1}}> {{
        u = Resize <mode = "{mode}"{extra}> (x, roi, scales)
        y = Conv (u, w, b)
    }}"""
    made = onnx.parser.parse_model(text)
    weights = {"w": floats(0, after, before, kernel, kernel), "b": floats(1, after)}
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def macs(made: onnx.ModelProto, options: Options) -> int:
    return sum(step.macs for step in compiled(made, options).plan.steps())


OFF = Options(without=frozenset({"move_resize"}))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_it_is_less_work_and_the_same_result(mode: str, tmp_path: Path) -> None:
    made = network(mode)
    assert macs(made, Options()) < 0.6 * macs(made, OFF)
    assert compiled(made).plan.arena_bytes < compiled(made, OFF).plan.arena_bytes
    x = {"x": floats(3, 1, 6, 8, 8)}
    np.testing.assert_allclose(
        Model.build(written(made, tmp_path)).run(x)["y"], reference(made, x)["y"], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("axes", ["", ", axes = [1, 2, 3]", ", axes = [2, 3]"])
def test_sizes_name_the_channels_that_there_are_then(axes: str, tmp_path: Path) -> None:
    sizes = {"": "{1, 6, 16, 12}", ", axes = [1, 2, 3]": "{6, 16, 12}", ", axes = [2, 3]": "{16, 12}"}[axes]
    made = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
    enlarged (float[1,6,8,8] x) => (float[1,2,16,12] y) <int64[{sizes.count(",") + 1}] sizes = {sizes}> {{
        u = Resize <mode = "linear"{axes}> (x, , , sizes)
        y = Conv (u, w)
    }}""")
    made.graph.initializer.append(numpy_helper.from_array(floats(0, 2, 6, 1, 1), "w"))
    assert macs(made, Options()) < macs(made, OFF)
    x = {"x": floats(3, 1, 6, 8, 8)}
    np.testing.assert_allclose(
        Model.build(written(made, tmp_path)).run(x)["y"], reference(made, x)["y"], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    "made",
    [
        network(scale=0.5),
        network(channels=(2, 6)),
        network(kernel=3),
        network(scale=1),
        network(extra=', coordinate_transformation_mode = "tf_crop_and_resize"'),
    ],
    ids=["smaller", "more channels", "3x3", "same size", "other numbers outside"],
)
def test_where_it_is_no_gain_it_stays(made: onnx.ModelProto) -> None:
    assert macs(made, Options()) == macs(made, OFF)
