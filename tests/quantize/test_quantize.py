"""Models become integers, and stay right: the digits of the example, and small networks that show one thing each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from embedded.quantized_models import separable_int8
from mccompile.base.errors import MccError, WrongUse
from mccompile.base.quantizing import METHODS, Recipe
from mccompile.check.oracle import Oracle
from mccompile.driver import Options, compile
from mccompile.frontend.judged import judged
from mccompile.frontend.load import load
from mccompile.frontend.reference import run_graph
from mccompile.frontend.save import write
from mccompile.judge.run import judge
from mccompile.measure import correctness
from mccompile.measure.quantization import quantize
from mccompile.quantize import through_onnxruntime
from mccompile.quantize.bench import outputs
from mccompile.quantize.equalise import equalise, largest, pairs
from mccompile.quantize.narrow_layers import LAYERS, narrow_layers
from mccompile.quantize.quantize import quantized
from mccompile.quantize.samples import decibels, read_samples
from tests import small_models
from tests.small_models import node, save

pytest.importorskip("onnxruntime")
EXPONENTIALS = 1024  # bytes of the table that Softmax reads
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "pictures.npz"
    with np.load(DIGITS / "pictures.npz") as stored:
        pixels, labels = stored["pixels"][:, None] / np.float32(16), stored["labels"]
    np.savez(path, image=pixels.astype(np.float32), labels=labels)
    return path


def test_digits_stay_right_and_shrink(pictures: Path, tmp_path: Path) -> None:
    result = tmp_path / "int8.onnx"
    report = quantize(DIGITS / "digits.onnx", result, pictures, Options(), Recipe())
    accuracy = report.quality.accuracy
    assert accuracy is not None and accuracy.after >= accuracy.before - 0.005
    assert report.after.arena <= report.before.arena / 3.9
    assert report.after.weights - EXPONENTIALS <= report.before.weights / 3
    assert report.quality.outputs["scores"] > 35
    assert not report.left_in_float
    assert report.differences is not None and report.differences.elements > 50_000
    assert report.differences.different <= report.differences.elements // 1000
    _require_exact(result, pictures)
    assert json.loads(json.dumps(report.as_dict()))["after"]["arena"] == report.after.arena
    assert "99.00% before" in report.show()
    assert correctness.check(result, Options(), runs=1).ok


def _require_exact(file: Path, pictures: Path) -> None:
    """Where a float simulation rounds a sum to the other side of a half, integers are those of real arithmetic."""
    proto = onnx.load(file)
    names = [node.output[0] for node in proto.graph.node if node.op_type == "QuantizeLinear"]
    observed = tuple(names[:-1])  # behind Softmax, exponentials come from a table
    built = correctness.build(compile(file, Options(observe=observed)), Options().resolved_target())
    exact, simulated = replace(judged(proto), outputs=observed), Oracle(file, observed)
    for number, feed in enumerate(read_samples(pictures, load(file)).feeds[:32]):
        got, floats = built.run(feed), simulated.run(feed)
        if number and all(np.array_equal(got[name], floats[name]) for name in observed):
            continue
        wanted = judge(exact, feed)
        for name in observed:
            np.testing.assert_array_equal(got[name], wanted[name], name)


def test_weights_of_4_bits_stay_right_and_shrink(pictures: Path, tmp_path: Path) -> None:
    options = Options(target="cortex-m4", prefer="flash")
    narrow, wide = (
        quantize(DIGITS / "digits.onnx", tmp_path / f"{weights}.onnx", pictures, options, Recipe(weights=weights))
        for weights in ("int4", "int8")
    )
    assert narrow.quality.accuracy is not None and narrow.quality.accuracy.after >= 0.98
    assert narrow.after.weights <= 0.65 * wide.after.weights and narrow.after.arena == wide.after.arena
    assert not narrow.left_in_float and narrow.differences is not None and narrow.differences.most <= 1
    assert narrow.differences.different <= narrow.differences.elements // 1000
    _require_exact(tmp_path / "int4.onnx", pictures)
    stored = [t for t in onnx.load(tmp_path / "int4.onnx").graph.initializer if t.data_type == onnx.TensorProto.INT4]
    assert len(stored) == 6


def test_weights_of_16_values_stay_right_and_shrink(pictures: Path, tmp_path: Path) -> None:
    options = Options(target="cortex-m4", prefer="flash")
    few, wide = (
        quantize(DIGITS / "digits.onnx", tmp_path / f"{weights}.onnx", pictures, options, Recipe(weights=weights))
        for weights in ("palette4", "int8")
    )
    assert few.quality.accuracy is not None and few.quality.accuracy.after >= 0.985
    assert few.after.weights <= 0.65 * wide.after.weights
    assert not few.left_in_float and few.differences is not None
    assert few.differences.different <= few.differences.elements // 10_000
    named = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / "palette4.onnx").graph.initializer}
    weights = [array for array in named.values() if array.dtype == np.int8 and array.size > 64]
    assert len(weights) == 6 and all(len(np.unique(array)) <= 16 for array in weights)
    assert correctness.check(tmp_path / "palette4.onnx", Options(prefer="flash"), runs=1).ok


def test_ternary_weights_come_through_unchanged(tmp_path: Path) -> None:
    scales = np.random.default_rng(0).uniform(0.1, 0.5, (1, 10)).astype(np.float32)
    signs = np.random.default_rng(1).integers(-1, 2, (64, 10))
    nodes = [node("Gemm", "x w b", "y")]
    weights = {"w": (signs * scales).astype(np.float32), "b": small_models.floats(3, 10)}
    path = save(small_models.model("ternary", nodes, [("x", (1, 64))], [("y", (1, 10))], weights), tmp_path)
    graph, feeds = load(path), np.random.default_rng(2).normal(0, 1, (8, 1, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", feeds)
    made = quantized(graph, read_samples(tmp_path / "x.npy", graph), Recipe(weights="ternary"), tmp_path, {})
    constants = [value.constant for value in load(made.file).constants() if value.type.dtype.name == "i4"]
    assert [c.array.astype(np.int64).tolist() for c in constants if c is not None] == [signs.tolist()]


def test_compiling_does_both_in_one_step(pictures: Path) -> None:
    package = compile(DIGITS / "digits.onnx", Options(quantize=pictures))
    assert package.plan.name == "digits"
    assert package.plan.arena_bytes <= compile(DIGITS / "digits.onnx").plan.arena_bytes / 3.9


def test_layers_that_win_most_stay_floats(pictures: Path, tmp_path: Path) -> None:
    graph = load(DIGITS / "digits.onnx")
    made = quantized(graph, read_samples(pictures, graph), Recipe(auto=1, samples=8), tmp_path, {})
    gains = [gain for _, gain in made.gains]
    assert gains == sorted(gains, reverse=True) and len(gains) == 6
    assert made.left == (made.gains[0][0],)
    kinds = [n.op.name for n in load(made.file).nodes if n.inputs[1:] and n.inputs[1] and n.inputs[1].constant]
    assert sum(kind in ("Conv", "Gemm") for kind in kinds) == 1  # others have weights behind DequantizeLinear


def dense(tmp_path: Path) -> Path:
    weights = {"w1": small_models.floats(1, 70, 64), "w2": small_models.floats(2, 64, 10)}
    nodes = [node("MatMul", "x w1", "h"), node("Tanh", "h", "t"), node("MatMul", "t w2", "y")]
    return save(small_models.model("dense", nodes, [("x", (1, 70))], [("y", (1, 10))], weights), tmp_path)


@pytest.mark.parametrize(
    ("recipe", "least", "stored"),
    [(Recipe(weights_only=8), 35, "INT8"), (Recipe(weights_only=4), 13, "INT4"), (Recipe(dynamic=True), 25, "INT8")],
    ids=["int8", "int4", "dynamic"],
)
def test_weights_alone_need_no_samples(recipe: Recipe, least: float, stored: str, tmp_path: Path) -> None:
    made = quantized(load(dense(tmp_path)), None, recipe, tmp_path, {})
    feeds = [{"x": small_models.floats(seed, 1, 70)} for seed in range(4)]
    assert decibels(outputs(made.float_file, made.file, feeds)[0]) > least
    kinds = [tensor.data_type for tensor in onnx.load(made.file).graph.initializer]
    assert kinds.count(onnx.TensorProto.DataType.Value(stored)) >= 2
    assert correctness.check(made.file, Options(), runs=1).ok
    if recipe.weights_only == 8:
        floats, bytes = (compile(path, Options()).plan.data_bytes for path in (made.float_file, made.file))
        assert bytes < 0.3 * floats


def uneven() -> onnx.ModelProto:
    """Channels of very different ranges between two convolutions."""
    weights = {"w1": small_models.floats(1, 4, 3, 3, 3), "b1": small_models.floats(2, 4)}
    weights |= {"w2": small_models.floats(3, 5, 4, 3, 3)}
    sizes = np.array([1, 30, 1 / 40, 5], np.float32)
    weights["w1"] *= sizes.reshape(4, 1, 1, 1)
    weights["b1"] *= sizes
    weights["w2"] /= sizes.reshape(1, 4, 1, 1)
    nodes = [
        node("Conv", "x w1 b1", "c"),
        node("Relu", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2]),
        node("Conv", "p w2", "y"),
    ]
    return small_models.model("uneven", nodes, [("x", (1, 3, 8, 8))], [("y", (1, 5, 3, 3))], weights)


def test_equalising_changes_no_bit_of_the_float_model(tmp_path: Path) -> None:
    graph, feed = load(save(uneven(), tmp_path)), {"x": small_models.floats(5, 1, 3, 8, 8)}
    before = run_graph(graph, feed)[0]
    (pair,) = pairs(graph)
    assert pair.between.name == "r"
    weights = pair.second.inputs[1]
    assert weights is not None and weights.constant is not None
    uneven_columns = largest(weights.constant.array)
    equalise(graph, [pair], {"r": np.array([1, 30, 1 / 40, 5])})
    changed = pair.second.inputs[1]
    assert changed is not None and changed.constant is not None
    columns = largest(changed.constant.array)
    assert columns.max() / columns.min() < uneven_columns.max() / uneven_columns.min() / 100
    np.testing.assert_array_equal(run_graph(graph, feed)[0], before)


def test_equalising_is_kept_where_it_helps(tmp_path: Path) -> None:
    path = save(uneven(), tmp_path)
    np.save(tmp_path / "x.npy", small_models.floats(6, 8, 3, 8, 8))
    noise = []
    for recipe in (Recipe(equalise=False), Recipe()):
        graph = load(path)
        samples = read_samples(tmp_path / "x.npy", graph)
        made = quantized(graph, samples, recipe, tmp_path, {})
        noise.append(decibels(outputs(made.float_file, made.file, samples.feeds)[0]))
        assert made.equalised == recipe.equalise
    assert noise[1] > noise[0] + 3


def test_without_onnxruntime_its_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(through_onnxruntime, "find_spec", lambda name: None)
    with pytest.raises(WrongUse, match="pip install onnxruntime"):
        quantized(load(dense(tmp_path)), None, Recipe(dynamic=True), tmp_path, {})


@pytest.mark.parametrize(
    ("store", "complaint"),
    [
        (lambda path: np.savez(path, other=np.zeros((2, 70), np.float32), more=np.zeros(2)), "the model takes x"),
        (lambda path: np.savez(path, x=np.zeros((2, 71), np.float32)), r"the array has the shape \[2, 71\]"),
        (lambda path: np.savez(path, x=np.zeros((0, 70), np.float32)), r"x has the shape \[0, 70\]"),
        (lambda path: np.savez(path, x=np.zeros((2, 70), np.complex64)), "the samples are complex64"),
        (lambda path: np.savez(path, x=np.zeros((2, 70), np.float32), y=np.zeros((2, 3))), "float64 of the shape"),
        (lambda path: path.write_bytes(b"no array"), "cannot read the samples"),
        (lambda path: None, "cannot read the samples"),
    ],
    ids=["names", "shape", "none", "type", "labels", "garbage", "missing"],
)
def test_samples_that_do_not_fit_are_refused(store: Callable[[Path], None], complaint: str, tmp_path: Path) -> None:
    graph = load(dense(tmp_path))
    store(tmp_path / "samples.npz")
    with pytest.raises(MccError, match=complaint):
        read_samples(tmp_path / "samples.npz", graph)


def test_samples_make_batches_and_lose_an_axis(tmp_path: Path) -> None:
    weights = {"w": small_models.floats(1, 3, 2)}
    nodes = [node("MatMul", "x w", "y")]
    np.savez(tmp_path / "s.npz", x=np.arange(30, dtype=np.float32).reshape(10, 3), labels=np.arange(10))
    for shape, runs in (((4, 3), 2), ((3,), 10)):
        out = (*shape[:-1], 2)
        path = save(small_models.model("batch", nodes, [("x", shape)], [("y", out)], weights), tmp_path)
        samples = read_samples(tmp_path / "s.npz", load(path))
        assert [feed["x"].shape for feed in samples.feeds] == [shape] * runs
        assert samples.labels is not None and len(samples.labels) == 10


def test_ranges_that_the_model_evens_out_first_do_no_harm(tmp_path: Path) -> None:
    """Also a bias with two axes, as some exporters have it."""
    sizes = np.array([1000, 1, 0.01, 30], np.float32)
    weights = {"mean": sizes, "size": sizes, "w": small_models.floats(1, 4, 8), "b": small_models.floats(2, 1, 8)}
    nodes = [
        node("Sub", "x mean", "d"),
        node("Div", "d size", "e"),
        node("MatMul", "e w", "m"),
        node("Add", "m b", "y"),
    ]
    path = save(small_models.model("even", nodes, [("x", (1, 4))], [("y", (1, 8))], weights), tmp_path)
    np.save(tmp_path / "x.npy", small_models.floats(6, 20, 4) * sizes + sizes)
    graph = load(path)
    samples = read_samples(tmp_path / "x.npy", graph)
    made = quantized(graph, samples, Recipe(), tmp_path, {})
    assert decibels(outputs(made.float_file, made.file, samples.feeds)[0]) > 30


def test_each_method_finds_other_ranges(tmp_path: Path) -> None:
    """Three samples in a thousand lie far outside."""
    samples = small_models.floats(6, 1000, 70)
    samples[:3] *= 50
    np.save(tmp_path / "x.npy", samples)
    path, scales = dense(tmp_path), []
    for method in METHODS[1:]:
        graph = load(path)
        made = quantized(graph, read_samples(tmp_path / "x.npy", graph), Recipe(method, samples=1000), tmp_path, {})
        arrays = {entry.name: onnx.numpy_helper.to_array(entry) for entry in onnx.load(made.file).graph.initializer}
        scales.append(float(arrays["x_scale"]))
    assert scales[0] > scales[1] > 1.1 * scales[2]


def test_weights_behind_batch_normalizations_stay_bytes(tmp_path: Path) -> None:
    made = quantized(load(DIGITS / "digits.onnx"), None, Recipe(weights_only=8), tmp_path, {})
    assert compile(made.file).plan.data_bytes < compile(DIGITS / "digits.onnx").plan.data_bytes / 3


def test_a_dead_channel_keeps_its_scale_and_bias(tmp_path: Path) -> None:
    """A smaller scale would need a bias of more than 32 bits."""
    made = separable_int8()
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    name = next(name for name, array in stored.items() if name.endswith("_w") and array.ndim == 4)
    weights, bias = stored[name].copy(), f"{name[:-2]}_b"
    weights[0] = 0
    for tensor in made.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights, name))
    graph = load(save(made, tmp_path))
    assert narrow_layers(graph, 7)
    found = [node.inputs[0] for node in graph.nodes if node.op.name == "DequantizeLinear"]
    (now,) = [value.constant.array for value in found if value and value.constant and value.name == f"{bias}/narrow"]
    assert now[0] == stored[bias][0] and now[1] != stored[bias][1]


@pytest.mark.parametrize("shared", ["s", "b"])
def test_layers_that_share_a_constant(shared: str, tmp_path: Path) -> None:
    """Each has a scale of its own afterwards, and both are as wide as before where they share a bias."""
    made = separable_int8()
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    alike = [name[:-2] for name, array in stored.items() if name.endswith("_s") and array.size == 32]
    first, second, *_ = (name for name in alike if stored[f"{name}_w"].ndim == 4)
    (two,) = (made_by for made_by in made.graph.node if f"{second}_{'w' if shared == 's' else 'b'}" in made_by.input)
    if shared == "s":
        two.input[1] = f"{first}_s"
    else:
        (one,) = (made_by for made_by in made.graph.node if f"{first}_b" in made_by.input)
        for reader in made.graph.node:
            reader.input[:] = [one.output[0] if name == two.output[0] else name for name in reader.input]
        made.graph.node.remove(two)
    graph = load(save(made, tmp_path))
    layers = sum(node.op.name in LAYERS for node in graph.nodes)
    assert narrow_layers(graph, 7) == (layers if shared == "s" else layers - 2)
    write(graph, tmp_path / "narrow.onnx")
    assert correctness.check(tmp_path / "narrow.onnx", Options(), runs=1).ok


def test_what_is_quantized_is_not_quantized_again(tmp_path: Path) -> None:
    made = quantized(load(dense(tmp_path)), None, Recipe(dynamic=True), tmp_path, {})
    with pytest.raises(WrongUse, match=r"not quantized again[\s\S]*DynamicQuantizeLinear stands at"):
        quantized(load(made.file), None, Recipe(dynamic=True), tmp_path, {})
    with pytest.raises(WrongUse) as caught:
        quantize(made.file, tmp_path / "again.onnx", None, Options(), Recipe(dynamic=True))
    assert caught.value.problems[0].where == str(made.file)
