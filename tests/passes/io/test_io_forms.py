"""`--input` and `--output`: what a camera gives goes in, and what a program wants comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, parser

from embedded.models import quantized
from mccompile import option_texts
from mccompile.base.dtypes import i8, i32, u8, u64
from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure import correctness
from mccompile.passes.io.io_forms import InputForm, OutputForm, parse_input, parse_output
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import floats, model, node

CAMERA = InputForm(dtype=u8, nhwc=True, bgr=True, mean=(120.0, 110.0, 100.0), scale=(1 / 60, 1 / 58, 1 / 57))


def picture() -> ModelProto:
    weights = {"w": floats(1, 4, 3, 3, 3), "b": floats(2, 4)}
    return model(
        "picture",
        [node("Conv", "x w b", "y", pads=[1, 1, 1, 1])],
        [("x", (1, 3, 6, 6))],
        [("y", (1, 4, 6, 6))],
        weights,
    )


FORMS = {
    "camera": Options(inputs={"x": CAMERA}),
    "camera without optimisation": Options(inputs={"x": CAMERA}, optimize=False),
    "bytes": Options(inputs={"x": InputForm(dtype=i8, scale=(0.02,))}),
    "another order only": Options(inputs={"x": InputForm(nhwc=True)}, outputs={"y": OutputForm(nhwc=True)}),
    "the best channel": Options(outputs={"y": OutputForm(argmax=True, dtype=u8)}),
    "scaled": Options(outputs={"y": OutputForm(zero=(0.5,), scale=(3.0,))}),
    "bytes out": Options(outputs={"y": OutputForm(dtype=i8, scale=(10.0,))}),
    "bytes out without a scale": Options(outputs={"y": OutputForm(dtype=u8)}),
    "words out": Options(outputs={"y": OutputForm(dtype=i32, scale=(10.0,))}),
    "words out of range": Options(outputs={"y": OutputForm(dtype=i32, scale=(1e30,))}),
    "nothing below 0": Options(outputs={"y": OutputForm(dtype=u64, scale=(1e30,))}),
}


@pytest.mark.parametrize("name", FORMS)
def test_results_are_those_of_the_model(name: str, tmp_path: Path) -> None:
    path = small_models.save(picture(), tmp_path)
    verdict = correctness.check(path, FORMS[name], runs=2)
    assert verdict.ok and not [witness for witness in verdict.witnesses if witness.differs]


def test_a_camera_costs_one_conversion() -> None:
    plan = compile_graph(load_proto(picture()), FORMS["camera"], "picture").plan
    assert [(tensor.type.dtype, tensor.type.static_shape) for tensor in plan.inputs] == [(u8, (1, 6, 6, 3))]
    assert [step.op for step in plan.steps()] == ["map", "conv"]


def test_raw_integers_go_in_and_out() -> None:
    options = Options(inputs={"x": InputForm(raw=True)}, outputs={"y": OutputForm(raw=True)})
    plan = compile_graph(load_proto(quantized()), options, "quantized").plan
    assert [tensor.type.dtype for tensor in (*plan.inputs, *plan.outputs)] == [i8, i8]
    assert [step.op for step in plan.steps()] == ["conv"]


def test_raw_results_are_exact(tmp_path: Path) -> None:
    path = small_models.save(quantized(), tmp_path)
    options = Options(inputs={"x": InputForm(raw=True)}, outputs={"y": OutputForm(raw=True)})
    assert correctness.check(path, options, runs=2).ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(inputs={"z": InputForm(dtype=u8)}), "no input named 'z'"),
        (Options(inputs={"x": InputForm(raw=True)}), "cannot be handed over raw"),
        (Options(inputs={"x": InputForm(mean=(1.0, 2.0))}), "no axis of 2 channels"),
        (Options(outputs={"y": OutputForm(raw=True)}), "is not made by DequantizeLinear"),
    ],
)
def test_what_cannot_be_is_refused(options: Options, message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        compile_graph(load_proto(picture()), options, "picture")


def test_the_largest_of_truths_is_refused() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, float[3] z) => (bool[3] y) { y = Less(x, z) }'
    )
    with pytest.raises(WrongUse, match=r"no form of 'y' has ArgMax(.|\n)*takes numbers"):
        compile_graph(load_proto(made), Options(outputs={"y": OutputForm(argmax=True)}), "g")


@pytest.mark.parametrize(
    "options",
    [
        Options(inputs={"x": InputForm(dtype=u8)}),
        Options(inputs={"x": InputForm(scale=(2.0,))}),
        Options(outputs={"y": OutputForm(argmax=True)}),
    ],
)
def test_text_has_no_form_of_numbers(options: Options) -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (string[3] x) => (string[3] y) { y = StringConcat(x, x) }'
    with pytest.raises(WrongUse, match="it is text"):
        compile_graph(load_proto(parser.parse_model(text)), options, "g")


def test_another_order_of_axes_keeps_doubles(tmp_path: Path) -> None:
    text = "g (double[1,3,2,2] x) => (double[1,3,2,2] y) { y = Neg(x) }"
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    options = Options(inputs={"x": InputForm(nhwc=True)}, outputs={"y": OutputForm(nhwc=True)})
    compile_graph(load_proto(made), options, "g").write(tmp_path / "out")
    x = np.arange(12).reshape(1, 2, 2, 3) / 3
    np.testing.assert_array_equal(Model.build(tmp_path / "out").run({"x": x})["y"], -x)


def test_what_is_handed_out_as_it_comes_in_has_no_other_form() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,3] x) => (float[1,3] x, float[1,3] y) { y = Relu(x) }'
    )
    with pytest.raises(WrongUse, match=r"leave out --input x="):
        compile_graph(load_proto(made), Options(inputs={"x": InputForm(dtype=u8, scale=(0.5,))}), "g")


@pytest.mark.parametrize("weights", ["", "f16"])
def test_what_is_no_picture_any_more_keeps_its_axes(weights: str, tmp_path: Path) -> None:
    path = small_models.save(picture(), tmp_path)
    outputs = {"y": OutputForm(argmax=True)}
    options = Options(io_layout="nhwc", outputs=outputs, weights_dtype=weights)
    assert correctness.check(path, options, runs=1).ok


def test_words_are_read() -> None:
    name, form = parse_input("x=u8,nhwc,bgr,mean=120:110:100,std=60:58:57")
    assert name == "x" and form.dtype is u8 and form.nhwc and form.bgr
    np.testing.assert_allclose(form.scale, [1 / 60, 1 / 58, 1 / 57])
    assert parse_output("y=argmax,u8") == ("y", OutputForm(argmax=True, dtype=u8))
    for wrong in ("x", "x=", "x=u9", "x=mean=a", "x=scale=1/0", "x=string"):
        with pytest.raises(ValueError, match=r"."):
            parse_input(wrong)


@pytest.mark.parametrize("form", [InputForm(dtype=i8, mean=(0.0, 1.0, 0.0)), InputForm(bgr=True)])
def test_channels_are_those_of_the_model_whatever_a_free_size_is(form: InputForm, tmp_path: Path) -> None:
    made = model("free", [node("Relu", "x", "y")], [("x", (2, "n", 3))], [("y", (2, "n", 3))])
    options = Options(dims={"n": (2, 5)}, inputs={"x": form})
    assert correctness.check(small_models.save(made, tmp_path), options, runs=3).ok  # with n = 3, too


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ("u8,mean=1e999", "'1e999' is beyond the range of f32"),
        ("u8,scale=1e999999999", "beyond the range"),  # as a Fraction it takes all memory
        ("u8,mean=nan", "'nan' is beyond the range"),
        ("u8,mean=1:1e39:3", "beyond the range"),
        ("u8,std=0", "'0' has a 0"),
        ("u8,std=1:1e-300", "has a 0, or what is 0 in f32"),
        ("u8,scale=1/0", "is not a number such as"),
    ],
)
def test_numbers_that_f32_does_not_hold_are_refused(form: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_input(f"x={form}")
    if "scale" in form:
        with pytest.raises(ValueError, match=complaint):
            parse_output(f"y={form}")


def test_numbers_of_forms_may_be_quotients() -> None:
    assert parse_input("x=mean=123.7:-1,scale=1/255")[1] == InputForm(mean=(123.7, -1.0), scale=(1 / 255,))


@pytest.mark.parametrize("name", ["x", "y=z", "a,b", "x=u8x"])
def test_names_may_have_signs_of_their_own(name: str) -> None:
    forms = option_texts.input_forms((f"{name}=u8,scale=1/4",))
    assert forms == {name: InputForm(dtype=u8, scale=(0.25,))}
    assert option_texts.output_forms((f"{name}=argmax",)) == {name: OutputForm(argmax=True)}
