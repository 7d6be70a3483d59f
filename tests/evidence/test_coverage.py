"""Statements and branches of generated C that generated inputs reach, and the names of those that none does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from embedded import models
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.evidence import coverage
from mccompile.frontend.load import load_proto
from mccompile.targets import api
from mccompile.toolchain.tools import missing
from tests import small_models
from tests.fuzz.blobs.models import MODELS
from tests.small_models import compiled, floats, model, node
from tests.small_trees import NODES

ML = "ai.onnx.ml"
SCHEMA = json.loads((Path(coverage.__file__).parent / "schemas" / "coverage.schema.json").read_text(encoding="utf-8"))
needs_gcov = pytest.mark.skipif(bool(missing(["gcc", "gcov"])), reason="gcov comes with gcc")


def measured(package: Package, target: str = "generic") -> dict[str, Any]:
    found = coverage.coverage_certificate(package, api.load(target))
    jsonschema.validate(found, SCHEMA)
    return found


def own(found: dict[str, Any]) -> dict[str, Any]:
    return {path: counts for path, counts in found["files"].items() if not path.startswith("runtime/")}


@needs_gcov
def test_all_of_the_code_of_a_network_is_reached_and_so_are_the_guards_of_init() -> None:
    found = measured(compiled(models.quantized(), Options(target="cortex-m0")), "cortex-m0")
    files = own(found)
    assert {*files} == {"quantized.c", "quantized_kernels.c"}
    assert all((f["reached"], f["taken"]) == (f["statements"], f["branches"]) != (0, 0) for f in files.values())
    gaps = [gap for gap in found["unreached"] if gap["function"] == "mcc_blob_open"]
    assert all("endian" in gap["text"] or "NULL" in gap["text"] for gap in gaps)
    assert not any(gap["function"] == "mcc_status_text" for gap in found["unreached"])


@needs_gcov
@pytest.mark.parametrize(("stride", "kernel", "pad"), [(2, 2, 0), (2, 3, 1), (3, 4, 1)])
def test_all_taps_of_a_transposed_convolution_are_reached(stride: int, kernel: int, pad: int) -> None:
    weights = {"w": floats(1, 4, 8, kernel, kernel)}
    made = node("ConvTranspose", "x w", "y", strides=[stride] * 2, pads=[pad] * 4)
    size = 3 * stride + kernel - 2 * pad
    package = compiled(model("turned", [made], [("x", (1, 4, 4, 4))], [("y", (1, 8, size, size))], weights))
    counts = own(measured(package))["turned_kernels.c"]
    assert (counts["reached"], counts["taken"]) == (counts["statements"], counts["branches"])


@needs_gcov
def test_a_class_is_found_where_all_scores_are_nan_or_none_is() -> None:
    nodes = [node("MatMul", "x w", "s"), node("ArgMax", "s", "y", axis=1)]
    made = model("classes", nodes, [("x", (1, 4))], [("y", (1, 1))], {"w": floats(1, 4, 3)})
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    counts = own(measured(compiled(made)))["classes_kernels.c"]
    assert (counts["reached"], counts["taken"]) == (counts["statements"], counts["branches"])


@needs_gcov
@pytest.mark.parametrize("name", ["tables", "forest"])
def test_what_no_input_reaches_is_not_generated(name: str) -> None:
    package = compile_graph(load_proto(MODELS["tables"].model()), Options(), name) if name == "tables" else forest()
    counts = own(measured(package))[f"{name}_kernels.c"]
    assert (counts["reached"], counts["taken"]) == (counts["statements"], counts["branches"])


@needs_gcov
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_probabilities_are_divided_by_their_size_without_a_branch_for_zero(norm: str) -> None:
    """As scikit-learn's converter writes classifiers."""
    nodes = [node("Softmax", "x", "p", axis=1), helper.make_node("Normalizer", ["p"], ["y"], None, None, ML, norm=norm)]
    made = learned("shares", nodes, [("x", 1, [1, 3])], [("y", 1, [1, 3])])
    counts = own(measured(compiled(made)))["shares_kernels.c"]
    assert (counts["reached"], counts["taken"]) == (counts["statements"], counts["branches"])


def forest() -> Package:
    """Classes by trees, whose sums are not NaN."""
    leaves = {"treeids": [0, 0, 1, 1, 1], "nodeids": [1, 2, 1, 3, 4], "ids": [0, 1, 2, 1, 0]}
    classes = {f"class_{key}": numbers for key, numbers in leaves.items()}
    weights = [0.5, 1.0, 2.0, 3.0, 0.25]
    labels = {"class_weights": weights, "classlabels_int64s": [0, 1, 2], "post_transform": "NONE"}
    nodes = NODES | {"nodes_modes": [mode.replace("_GT", "_LEQ") for mode in NODES["nodes_modes"]]}
    made = helper.make_node("TreeEnsembleClassifier", ["x"], ["y", "z"], domain=ML, **nodes, **classes, **labels)
    return compiled(learned("forest", [made], [("x", 1, [1, 3])], [("y", 7, [1]), ("z", 1, [1, 3])]))


def learned(name: str, nodes: list[NodeProto], *ports: list[tuple[str, int, list[int]]]) -> ModelProto:
    """A model with operators of ai.onnx.ml."""
    inputs, outputs = ([helper.make_tensor_value_info(*port) for port in of] for of in ports)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 3)]
    return helper.make_model(helper.make_graph(nodes, name, inputs, outputs), opset_imports=domains, ir_version=10)


@needs_gcov
def test_rows_of_a_ring_are_never_left_out(tmp_path: Path) -> None:
    """Windows that overlap, or touch each other."""
    package = compiled(models.quantized(), Options(target="x86-64-v3"))
    code = package.files["quantized_kernels.c"].decode()
    assert "const ring = " in code and "next = top" not in code


@needs_gcov
def test_code_that_no_input_reaches_is_named() -> None:
    package = compiled(small_models.mlp())
    text = package.files["mlp.c"].decode()
    before = "    m->arena ="
    assert before in text
    dead = text.replace(before, f"    if (m->ready == 77u) m->ready = 78u;\n{before}")
    found = measured(package.with_files(package.files | {"mlp.c": dead.encode()}))
    (gap,) = (gap for gap in found["unreached"] if gap["file"] == "mlp.c")
    assert gap["text"] == "if (m->ready == 77u) m->ready = 78u;" and not gap["reached"] and len(gap["branches"]) == 1
    assert gap["why"].startswith("a guard of init")


@needs_gcov
def test_figures_are_the_same_every_time() -> None:
    package = compiled(models.recurrent())
    assert measured(package) == measured(package)


@needs_gcov
def test_a_network_without_an_arena_has_no_guard_of_one() -> None:
    counts = own(measured(compiled(small_models.fixed())))["fixed.c"]
    assert (counts["reached"], counts["taken"]) == (counts["statements"], counts["branches"]) != (0, 0)


def test_what_cannot_be_measured_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    package = compiled(small_models.mlp())
    monkeypatch.setattr(coverage, "missing", lambda names: ["gcov"])
    found = measured(package)
    assert found["not_measured"] == "gcov is not installed" and coverage.shown(found).startswith("not measured: gcov")


@needs_gcov
def test_code_of_another_machine_is_not_measured() -> None:
    found = measured(compiled(small_models.conv(), Options(target="aarch64")), "aarch64")
    assert found["not_measured"] == "this machine does not run code for aarch64"


def test_numbers_are_broken_at_both_ends_of_a_constant() -> None:
    package = compiled(models.quantized())
    blob = package.files["quantized.mcb"]
    begin = int.from_bytes(blob[32:40], "little")
    changed = [
        [at - begin for at in range(begin, len(blob)) if other[at] != blob[at]]
        for other in coverage.broken_blobs(package, blob)
        if len(other) == len(blob) and other[:56] == blob[:56]
    ]
    arguments = [a for step in package.plan.steps() for a in step.arguments if a.address.base == "blob"]
    integers = [a for a in arguments if a.type.dtype.is_integer]
    for argument in integers:
        assert any(argument.low in places for places in changed)
        assert any(argument.high - 1 in places for places in changed)
        inside = [places for places in changed if places and argument.low <= places[0] < argument.high]
        assert all(places[-1] < argument.high for places in inside)
