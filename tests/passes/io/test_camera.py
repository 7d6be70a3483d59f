"""Frames of cameras as inputs: pictures are those of OpenCV within one step, rows of them are all that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

import mccompile
from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure import correctness
from mccompile.ops.camera import FORMATS, Camera
from mccompile.passes.io.io_forms import InputForm, parse_input
from tests import small_models

SCALED = "mean=127.5,std=127.5"


def converted(format: str, frame: np.ndarray, width: int, height: int) -> np.ndarray:
    """The whole frame as RGB, by OpenCV."""
    cv2 = pytest.importorskip("cv2")
    code = {
        "nv21": "COLOR_YUV2RGB_NV21",
        "nv12": "COLOR_YUV2RGB_NV12",
        "yuyv": "COLOR_YUV2RGB_YUY2",
        "rgb565": "COLOR_BGR5652RGB",
        "gray": "COLOR_GRAY2RGB",
    }.get(format)
    flat = format.startswith("nv") or format == "gray"
    pixels = frame if flat else frame.reshape(height, width, -1)
    return pixels if code is None else np.asarray(cv2.cvtColor(pixels, getattr(cv2, code)))


def resized(picture: np.ndarray, to: tuple[int, int], mode: str) -> np.ndarray:
    cv2 = pytest.importorskip("cv2")
    ways = {"bilinear": cv2.INTER_LINEAR, "nearest": cv2.INTER_NEAREST, "area": cv2.INTER_AREA}
    return np.asarray(cv2.resize(picture, to, interpolation=ways[mode]))


def a_frame(camera: Camera) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, camera.frame, dtype=np.uint8)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "area"])
@pytest.mark.parametrize("format", FORMATS)
def test_pictures_are_those_of_opencv_within_one_step(format: str, mode: str) -> None:
    for to in ((20, 15), (64, 48), (25, 40), *(((90, 100),) if mode != "area" else ())):
        x, y, width, height = (4, 2, 50, 40) if to != (64, 48) else (0, 0, 64, 48)
        camera = Camera(format, 64, 48, (x, y, width, height), to, mode)
        frame = a_frame(camera)
        wanted = resized(converted(format, frame, 64, 48)[y : y + height, x : x + width], to, mode)
        apart = np.abs(camera.picture(frame)[0].transpose(1, 2, 0).astype(int) - wanted)
        assert apart.max() <= (mode != "nearest"), (to, apart.max())


def copier(shape: Sequence[int]) -> ModelProto:
    """What it makes is its input."""
    return small_models.model("copier", [small_models.node("Neg", "x", "y")], [("x", shape)], [("y", shape)])


def handed(text: str, **more: object) -> Options:
    name, form = parse_input(f"x={text}")
    return replace(Options(inputs={name: form}), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "shape", "more"),
    [
        ("nv21,resize=bilinear:20x16", (1, 3, 8, 12), {}),
        ("nv12,resize=bilinear:20x16,crop=1:3:13x11,letterbox=114,bgr", (1, 8, 12, 3), {"optimize": False}),
        ("yuyv,resize=nearest:20x16", (1, 3, 9, 7), {"target": "native", "rows": "off"}),
        ("rgb565", (1, 3, 5, 6), {}),
        ("bgr,resize=area:24x16", (1, 3, 8, 8), {"io_layout": "nhwc"}),
        ("gray,resize=bilinear:9x9", (1, 1, 5, 5), {"prefer": "flash"}),
        ("nv21,letterbox,resize=nearest:20x16", (1, 1, 8, 8), {"prefer": "time"}),
    ],
)
def test_compiled_code_makes_the_same_pictures(text: str, shape: Sequence[int], more: object, tmp_path: Path) -> None:
    path = small_models.save(copier(shape), tmp_path)
    assert correctness.check(path, handed(f"{text},{SCALED}", **more), runs=2).ok  # type: ignore[arg-type]


def int8_network() -> ModelProto:
    """96x96 pixels, three convolutions in int8."""
    chance = np.random.default_rng(1)
    constants = {"s": np.float32(1 / 127), "z": np.int8(0)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])]
    nodes.append(helper.make_node("DequantizeLinear", ["q", "s", "z"], ["h0"]))
    for number, (given, made, scale) in enumerate(((3, 8, 0.05), (8, 16, 0.2), (16, 32, 0.8))):
        names = [f"{what}{number}" for what in ("w", "t", "k", "c", "u", "v", "o", "p")]
        w, t, k, c, u, v, o, p = names
        constants |= {w: chance.integers(-90, 90, (made, given, 3, 3)).astype(np.int8), t: np.float32(0.01)}
        constants |= {u: np.float32(scale), v: np.int8(-128)}
        nodes.append(helper.make_node("DequantizeLinear", [w, t], [k]))
        nodes.append(helper.make_node("Conv", [f"h{number}", k], [c], pads=[1, 1, 1, 1], strides=[2, 2]))
        nodes.append(helper.make_node("Relu", [c], [o]))
        nodes.append(helper.make_node("QuantizeLinear", [o, u, v], [p]))
        nodes.append(helper.make_node("DequantizeLinear", [p, u, v], [f"h{number + 1}"]))
    nodes.append(helper.make_node("GlobalAveragePool", ["h3"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "int8_network",
        [helper.make_tensor_value_info("x", 1, [1, 3, 96, 96])],
        [helper.make_tensor_value_info("y", 1, [1, 32, 1, 1])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CAMERA = f"nv21,resize=bilinear:640x480,{SCALED}"


def test_a_camera_costs_no_more_than_four_of_its_rows() -> None:
    def arena(text: str) -> int:
        options = handed(text, target="cortex-m4", external=("x",))
        return compile_graph(load_proto(int8_network()), options, "net").plan.arena_bytes

    assert arena(CAMERA) <= arena(f"u8,{SCALED}") + 4 * 640


def test_a_network_sees_what_opencv_makes_of_a_frame(tmp_path: Path) -> None:
    """Pictures differ by one step at most, and so does what the first layer quantizes."""
    path = small_models.save(int8_network(), tmp_path)
    frame = np.random.default_rng(2).integers(0, 256, (720, 640), dtype=np.uint8)
    picture = resized(converted("nv21", frame, 640, 480), (96, 96), "bilinear")
    x = ((picture.astype(np.float32) - 127.5) / 127.5).transpose(2, 0, 1)[None]
    whole = mccompile.load(path, inputs={"x": CAMERA}, observe=["q"])(x=frame)
    wanted = mccompile.load(path, observe=["q"])(x=np.ascontiguousarray(x))
    assert np.abs(whole["q"].astype(int) - wanted["q"]).max() <= 1
    np.testing.assert_allclose(whole["y"], wanted["y"], rtol=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nv21", "the model takes 96x96|has no"),
        ("nv21,nhwc,resize=bilinear:640x480", "leave out nhwc"),
        ("nv21,resize=bilinear:641x480", "nv21 has no frames of 641x480"),
        ("rgb,crop=0:0:200x200,resize=bilinear:100x100", r"crop=0:0:100x100"),
        ("rgb,crop=0:0:80x80", r"resize=bilinear:96x96"),
        ("rgb,resize=area:64x64", "64x64 get larger"),
        ("rgb,resize=area:640x480", "16 are the most"),
    ],
)
def test_frames_that_cannot_be_are_refused(text: str, message: str) -> None:
    if text == "nv21":
        assert compile_graph(load_proto(int8_network()), handed(text), "net").plan.inputs[0].type.shape == (144, 96)
        return
    with pytest.raises(WrongUse, match=message):
        compile_graph(load_proto(int8_network()), handed(text), "net")


def test_words_of_cameras_are_read() -> None:
    _, form = parse_input("x=nv12,resize=area:64x48,crop=1:2:30x20,letterbox=9")
    assert form == InputForm(camera="nv12", resize="area", frame=(64, 48), crop=(1, 2, 30, 20), letterbox=9)
    assert parse_input("x=bgr,resize=nearest:9x9")[1].camera == "rgb" and parse_input("x=bgr")[1].camera == ""
    for wrong in ("x=resize=linear:9x9", "x=resize=area:9", "x=crop=1:2", "x=letterbox=300", "x=nv22"):
        with pytest.raises(ValueError, match=r"such as|did you mean"):
            parse_input(wrong)
