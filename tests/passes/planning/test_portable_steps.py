"""Long steps in portable C are named, with the reason, where the target has better instructions; others are not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from mccompile.emit.summary import summary
from tests import small_models
from tests.small_models import save


def made(folder: Path, target: str, op: str, dtype: int = TensorProto.FLOAT, **attributes: int | list[int]) -> Package:
    """One operator."""
    node = helper.make_node(op, ["x"], ["y"], name="step", **attributes)
    ends = [helper.make_tensor_value_info(name, dtype, [1, 16, 12, 12]) for name in ("x", "y")]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return compile(save(model, folder), Options(target=target))


def test_summary_and_report_name_the_step_and_why(tmp_path: Path) -> None:
    package = made(tmp_path, "x86-64-v3", "LpPool", kernel_shape=[1, 1], p=3)
    (step,) = package.plan.portable
    kernel = "pool/any_strided_windows__c"
    why = ("powers are not computed in vectors", "only for the maximum and the mean of floats of at most 32 bits")
    assert (step.provenance, step.kernel, step.why) == (("step",), kernel, why)
    line = f"portable 100% of a run is expected to go to step in portable C ({kernel}): "
    assert line + "; ".join(why) in summary(package.plan, 0).splitlines()
    said = {"name": "step", "kernel": kernel, "share": 1.0, "why": [*why]}
    assert json.loads(package.files["report.json"])["portable"] == [said]


def test_the_reasons_are_those_of_the_other_kernels(tmp_path: Path) -> None:
    (step,) = made(tmp_path, "armv7a", "Exp", TensorProto.DOUBLE).plan.portable
    assert {"exp is computed one by one", "vectors of f64 are not supported"} <= {*step.why}


@pytest.mark.parametrize(("target", "op"), [("generic", "Neg"), ("cortex-m4", "Neg"), ("x86-64-v3", "Sin")])
def test_nothing_is_said_where_nothing_is_better(target: str, op: str, tmp_path: Path) -> None:
    package = made(tmp_path, target, op)
    assert package.plan.portable == () and "portable" not in summary(package.plan, 0)


@pytest.mark.parametrize("dtype", [TensorProto.INT8, TensorProto.INT32, TensorProto.DOUBLE])
@pytest.mark.parametrize("target", ["x86-64-v3", "aarch64", "riscv64v", "wasm32"])
def test_loops_over_lanes_are_vectors_everywhere(target: str, dtype: int, tmp_path: Path) -> None:
    assert made(tmp_path, target, "Abs", dtype).plan.portable == ()


@pytest.mark.parametrize(
    "nodes",
    [
        "r = ReduceLogSumExp <keepdims = 1> (x, axes) y = Where (c, r, zero)",
        "r = ReduceProd <keepdims = 1> (x, axes) y = Cast <to = 6> (r)",
    ],
)
def test_reductions_stay_vectors_whatever_follows(nodes: str, tmp_path: Path) -> None:
    y = "int32" if "Cast" in nodes else "float"
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
        g (float[8, 16, 64] x, bool[1, 1, 64] c) => ({y}[1, 1, 64] y)
        <int64[2] axes = {{0, 1}}, float zero = {{0}}> {{ {nodes} }}"""
    package = compile(save(onnx.parser.parse_model(text), tmp_path), Options(target="x86-64-v3"))
    assert package.plan.portable == ()


def test_attention_is_one_step_whatever_rows_without_keys_become(tmp_path: Path) -> None:
    text = """<ir_version: 11, opset_import: ["" : 23]>
        g (float[1, 4, 64, 32] q, float[1, 4, 64, 32] k, float[1, 4, 64, 32] v) => (float[1, 4, 64, 32] y) {
        y = Attention (q, k, v) }"""
    package = compile(save(onnx.parser.parse_model(text), tmp_path), Options(target="x86-64-v3"))
    assert [step["kernel"].split("/")[0] for step in json.loads(package.files["report.json"])["steps"]] == ["attention"]


def test_what_follows_a_product_of_doubles_is_computed_in_vectors(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
        g (double[64, 32] a, double[32, 64] b) => (double[64, 64] y) { p = MatMul (a, b) y = Tanh (p) }"""
    package = compile(save(onnx.parser.parse_model(text), tmp_path), Options(target="x86-64-v3"))
    kernels = [step["kernel"] for step in json.loads(package.files["report.json"])["steps"]]
    assert kernels == ["gemm/any_panels_tile__vec", "map/f32_strided_loops__vec"]


@pytest.mark.parametrize("target", ["native", "x86-64-v3", "aarch64", "riscv64v", "wasm32", "cortex-m4"])
def test_example_models_have_none_but_those_known(target: str, tmp_path: Path) -> None:
    found = {
        (name, step.kernel, step.why)
        for name, model in small_models.ALL.items()
        for step in compile(_saved(model(), tmp_path / name), Options(target=target)).plan.portable
    }
    copied = ("branches", "concat/any_strided__c", ("concat has no other kernel",))
    assert found == (set() if target == "cortex-m4" else {copied})


def _saved(model: ModelProto, folder: Path) -> Path:
    folder.mkdir()
    return save(model, folder)


def test_functions_of_elements_that_lie_apart_are_computed_in_vectors(tmp_path: Path) -> None:
    """Every other channel gates the one before it."""
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=2, num_outputs=2),
        helper.make_node("Sigmoid", ["b"], ["c"]),
        helper.make_node("Mul", ["a", "c"], ["y"]),
    ]
    gated = small_models.model("gated", nodes, [("x", [9, 33, 2])], [("y", [9, 33, 1])], opset=18)
    package = compile(save(gated, tmp_path), Options(target="x86-64-v3"))
    assert package.plan.portable == ()
    assert "map/f32_strided_loops__vec" in {function.kernel.id for function in package.plan.functions}


@pytest.mark.parametrize("target", ["native", "x86-64-v3", "aarch64"])
@pytest.mark.parametrize("words", ["int16", "uint16"])
def test_convolutions_of_quantized_words_are_computed_in_vectors(words: str, target: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g ({words}[1, 17, 12, 12] x) => ({words}[1, 34, 12, 12] y)
        <float step = {{0.01}}, float fine = {{0.002}}, {words} zero = {{9}}> {{
        a = DequantizeLinear (x, step, zero) b = DequantizeLinear (w, fine)
        c = Conv <pads = [1, 1, 1, 1]> (a, b) y = QuantizeLinear (c, step, zero) }}"""
    model = onnx.parser.parse_model(text)
    weights = np.arange(34 * 17 * 9).reshape(34, 17, 3, 3) % 255 - 127
    model.graph.initializer.append(numpy_helper.from_array(weights.astype(np.int8), "w"))
    package = compile(save(model, tmp_path), Options(target=target))
    assert package.plan.portable == ()
    assert [step["kernel"] for step in json.loads(package.files["report.json"])["steps"]] == [
        "conv/any_strided_panels__vec"
    ]
