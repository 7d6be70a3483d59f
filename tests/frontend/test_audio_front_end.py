"""A front end made for a network has the frames, the layout and the integers of its input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper, parser

from mccompile.base.errors import WrongUse
from mccompile.frontend.audio_front_end import front_end
from mccompile.frontend.load import load_proto
from mccompile.importers import states

HEAD = '<ir_version: 8, opset_import: ["": 17]> g '


def made_for(of: str, **asked: Any) -> tuple[ModelProto, list[int], int]:
    """The front end, its shape and element type."""
    dtype, _, sizes = of.partition("[")
    text = f"(float[{sizes} x) => (float[{sizes} y) {{ y = Relu(x) }}"
    if dtype == "int8":
        moved = "t = Transpose(x) d = DequantizeLinear(t, s, z) y = Transpose(d)"
        text = f"(int8[{sizes} x) => (float[{sizes} y) {{ {moved} }}"
    network = parser.parse_model(HEAD + text)
    arrays = {"s": np.array(0.125, np.float32), "z": np.array(-7, np.int8)}
    network.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    made = front_end(network=load_proto(network), **asked)
    type = made.graph.output[0].type.tensor_type
    return made, [dim.dim_value for dim in type.shape.dim], type.elem_type


def ops(made: ModelProto) -> list[str]:
    return [node.op_type for node in made.graph.node]


@pytest.mark.parametrize(
    ("input", "frames", "turned"),
    [
        ("float[1,30,40]", 30, False),
        ("float[1,40,30,1]", 30, True),
        ("float[1,30,1,40]", 30, False),
        ("float[1,1200]", 30, False),
        ("float[1,1,40]", 1, False),
        ("int8[1,30,40]", 30, False),
    ],
)
def test_frames_and_layout_are_those_of_the_input(input: str, frames: int, turned: bool) -> None:
    made, shape, dtype = made_for(input)
    assert f"[{','.join(map(str, shape))}]" in input and ("Transpose" in ops(made)) == turned
    assert made.graph.input[0].type.tensor_type.shape.dim[1].dim_value == (frames - 1) * 320 + 480
    assert dtype == (TensorProto.INT8 if "int8" in input else TensorProto.FLOAT)
    scales = [numpy_helper.to_array(t).item() for t in made.graph.initializer if list(t.dims) == []]
    assert ("int8" not in input) or {0.125, -7} <= set(scales)


def test_a_network_with_states_says_what_its_frames_are() -> None:
    """States are not inputs of features, and frames that are joined to older ones have the scale of all of them."""
    network = parser.parse_model(
        HEAD + "(int8[1,3,40] x, int8[1,2,40] old) => (float[1,5,40] y, int8[1,2,40] kept) {"
        "both = Concat<axis=1>(old, x) kept = Slice(both, three, five, one) y = DequantizeLinear(both, s, z) }"
    )
    arrays = {"s": np.array(0.125, np.float32), "z": np.array(-7, np.int8)}
    arrays |= {name: np.array([n]) for name, n in (("one", 1), ("three", 3), ("five", 5))}
    network.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    states.declare(network, {"kept": "old"})
    made = front_end(network=load_proto(network), hop=160)
    assert [dim.dim_value for dim in made.graph.output[0].type.tensor_type.shape.dim] == [1, 3, 40]
    scales = [numpy_helper.to_array(t).item() for t in made.graph.initializer if list(t.dims) == []]
    assert {0.125, -7} <= set(scales)


def test_as_many_frames_as_features_have_to_be_told_apart() -> None:
    with pytest.raises(WrongUse, match="--features-first or --frames-first"):
        made_for("float[1,40,40]")
    assert "Transpose" in ops(made_for("float[1,40,40]", features_first=True)[0])
    assert "Transpose" not in ops(made_for("float[1,40,40]", features_first=False)[0])


def test_sizes_have_to_be_fixed() -> None:
    network = parser.parse_model(f"{HEAD}(float[b,30,40] x) => (float[b,30,40] y) {{ y = Relu(x) }}")
    with pytest.raises(WrongUse, match="an input of a fixed size"):
        front_end(network=load_proto(network, dims={"b": (1, 9)}))
    assert front_end(network=load_proto(network, dims={"b": (1, 1)})).graph.output[0].name == "features"


@pytest.mark.parametrize(
    ("input", "asked", "said"),
    [
        ("float[1,30,41]", {}, "one of its sizes: 30, 41"),
        ("float[1,30,40]", {"features_first": True}, "the features do not fit the network"),
        ("float[1,30,40]", {"frames": 29}, "the features do not fit the network"),
        ("float[1,30,40]", {"input_name": "z"}, "there is no input 'z'"),
        ("float[1,30,40]", {"quantized": (0.5, 200, "int8")}, "0.5,200,int8"),
        ("float[1,30,40]", {"quantized": (0.5, 0, "int4")}, "write --quantized 0.05,0"),
    ],
)
def test_refused(input: str, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse) as refused:
        made_for(input, **asked)
    assert said in str(refused.value)
