"""Weights trained anew for code that is there: what is accepted, what is refused, and what is written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from mccompile import cli
from mccompile.driver import Options, compile, compile_several
from mccompile.emit.folder import write_folder
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import PLAIN, save
from tests.small_quantized import convolutions

CHANNELS = 8


def trained(seed: int, name: str = "net", relu_zero: int = -128, large: float = 1.0) -> ModelProto:
    """A quantized network whose weights, scales, biases and zero points come from a seed: convolutions of all kinds, a
    residual, a mean, a dense layer. `large`: how much one channel's scale is off the others."""
    chance = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}
    nodes = []

    def node(op: str, ins: str, out: str, **attributes: object) -> None:
        nodes.append(helper.make_node(op, ins.split(), [out], name=out, **attributes))

    def quantized(x: str, out: str, zero: int | None = None, scale: float = 0.05) -> None:
        weights[f"{out}_s"] = np.float32(scale * chance.uniform(0.7, 1.4))
        weights[f"{out}_z"] = np.int8(chance.integers(-20, 20) if zero is None else zero)
        node("QuantizeLinear", f"{x} {out}_s {out}_z", out)

    def layer(op: str, x: str, out: str, shape: tuple[int, ...], relu: bool, **attributes: object) -> None:
        products = int(np.prod(shape[1:]))
        scales = (chance.uniform(0.2, 1, shape[0]) * 0.03 / np.sqrt(products)).astype(np.float32)
        scales[0] *= large if "group" not in attributes else 1
        weights[f"{out}_w"] = chance.integers(-127, 128, shape).astype(np.int8)
        weights[f"{out}_ws"], weights[f"{out}_wz"] = scales, np.zeros(shape[0], np.int8)
        weights[f"{out}_b"] = chance.integers(-900, 900, shape[0]).astype(np.int32)
        weights[f"{out}_bs"] = scales * weights[f"{x}_s"]
        node("DequantizeLinear", f"{x} {x}_s {x}_z", f"{out}_x")
        node("DequantizeLinear", f"{out}_w {out}_ws {out}_wz", f"{out}_wf", axis=0)
        node("DequantizeLinear", f"{out}_b {out}_bs", f"{out}_bf", axis=0)
        node(op, f"{out}_x {out}_wf {out}_bf", f"{out}_f", **attributes)
        if relu:
            node("Relu", f"{out}_f", f"{out}_r")
        quantized(f"{out}_r" if relu else f"{out}_f", out, relu_zero if relu else None)

    weights["x_s"], weights["x_z"] = np.float32(0.05 * chance.uniform(0.7, 1.4)), np.int8(chance.integers(-20, 20))
    c, taps = CHANNELS, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    layer("Conv", "x", "a", (c, 3, 3, 3), True, **taps)
    layer("Conv", "a", "b", (c, 1, 3, 3), True, group=c, **taps)
    layer("Conv", "b", "d", (c, c, 1, 1), False)
    for name_of in ("a", "d"):
        node("DequantizeLinear", f"{name_of} {name_of}_s {name_of}_z", f"{name_of}_again")
    node("Add", "a_again d_again", "sum_f")
    quantized("sum_f", "sum")
    node("DequantizeLinear", "sum sum_s sum_z", "sum_x")
    node("GlobalAveragePool", "sum_x", "mean_f")
    quantized("mean_f", "mean_q")
    node("Flatten", "mean_q", "mean")
    weights["mean_s"], weights["mean_z"] = weights["mean_q_s"], weights["mean_q_z"]
    layer("Gemm", "mean", "y", (5, c), False, transB=1)
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.INT8, (1, 3, 6, 7))],
        [helper.make_tensor_value_info("y", TensorProto.INT8, (1, 5))],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def saved(made: ModelProto, folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    made.graph.name = name
    return save(made, folder)


def written(model: Path, folder: Path, options: Options = PLAIN) -> dict[str, bytes]:
    compile(model, options).write(folder)
    return contents(folder)


def blob(*arguments: object) -> int:
    return cli.run(["blob", *map(str, arguments)])


def changed(before: dict[str, bytes], folder: Path) -> set[str]:
    after = contents(folder)
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
def test_updatable_integers_trained_anew_have_the_same_code(target: str, tmp_path: Path) -> None:
    options = Options(target=target, updatable=True)
    out = tmp_path / "out"
    before = written(saved(trained(0), tmp_path, "net"), out, options)
    for seed in (1, 2, 3):
        assert blob(saved(trained(seed), tmp_path / "new", "net"), "--for", out) == 0
        assert changed(before, out) == {"net.mcb", "net_weights.c", "report.json"}


def test_the_blob_gives_what_the_new_model_compiled_alone_gives(tmp_path: Path) -> None:
    """Numbers are exact, whichever form they have."""
    out, new = tmp_path / "out", saved(trained(5), tmp_path / "new", "net")
    written(saved(trained(0), tmp_path, "net"), out, Options(updatable=True))
    old = Model.build(out)
    assert blob(new, "--for", out) == 0
    written(new, tmp_path / "alone")
    updated, alone = Model.build(out), Model.build(tmp_path / "alone")
    x = np.random.default_rng(1).integers(-128, 128, (20, 1, 3, 6, 7)).astype(np.int8)
    found = [[model.run({"x": each})["y"].tolist() for each in x] for model in (old, updated, alone)]
    assert found[1] == found[2] != found[0]


def test_scales_of_inputs_that_the_header_does_not_have_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, models = tmp_path / "out", [saved(trained(seed), tmp_path / str(seed), "net") for seed in (0, 5)]
    written(models[0], out, Options(updatable=True))
    capsys.readouterr()
    assert blob(models[0], "--for", out) == 0
    assert "note" not in capsys.readouterr().out
    assert blob(models[1], "--for", out) == 0
    said = capsys.readouterr().out
    assert "note     input x: scale and zero point were [0.0" in said and "output y: " in said


def test_floats_trained_anew_need_no_option(tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = written(saved(small_models.conv(0), tmp_path, "conv"), out)
    new = saved(small_models.conv(1), tmp_path / "new", "conv")
    assert blob(new, "--for", out) == 0
    assert changed(before, out) == {"conv.mcb", "conv_weights.c", "report.json"}
    assert (out / "conv.mcb").read_bytes() == compile(new).files["conv.mcb"]
    write_folder(out, compile(new).files)  # the folder is still one of mccompile's


def test_a_fact_that_does_not_hold_is_named_with_its_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    before = written(saved(trained(0), tmp_path, "net"), out, Options(updatable=True))
    assert blob(saved(trained(1, relu_zero=-100), tmp_path / "new", "net"), "--for", out) == 1
    said = capsys.readouterr().err
    assert "a/low is that of the type" in said and 'node "a" (QuantizeLinear)' in said and "fix" in said
    assert not changed(before, out)


def test_more_values_than_indices_tell_apart_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def of_values(count: int, seed: int) -> ModelProto:
        made, chance = convolutions(6, [(8, 3, 1), (8, 3, 1)]), np.random.default_rng(seed)
        (weights,) = (tensor for tensor in made.graph.initializer if tensor.name == "w1")
        palette = chance.choice(np.arange(-127, -7), count, False).astype(np.int8)
        array = palette[chance.permutation(np.arange(8 * 8 * 9) % count)].reshape(8, 8, 3, 3)
        weights.CopyFrom(numpy_helper.from_array(array, "w1"))
        return made

    out = tmp_path / "out"
    options = Options(target="cortex-m4", prefer="flash", blob="external")
    before = written(saved(of_values(16, 0), tmp_path, "net"), out, options)
    assert blob(saved(of_values(17, 1), tmp_path / "more", "net"), "--for", out) == 1
    said = capsys.readouterr().err
    assert "take at most 16 values" in said and "does not hold for the new model" in said
    assert not changed(before, out)
    assert blob(saved(of_values(16, 2), tmp_path / "others", "net"), "--for", out) == 0
    assert changed(before, out) == {"net.mcb", "report.json"}


def looked_up(places: list[int], folder: Path) -> Path:
    """The class of the largest score, by two tables."""
    text = """<ir_version: 8, opset_import: ["": 17]>
      net (float[3] scores) => (float[1] y) {
        class = ArgMax <axis = 0> (scores)
        place = Gather (places, class)
        y = Gather (table, place)
      }"""
    made = parser.parse_model(text)
    tables = {"places": np.array(places), "table": np.arange(6, dtype=np.float32)}
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in tables.items())
    return saved(made, folder, "net")


def test_indices_inside_of_the_range_that_code_relies_on_are_accepted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = written(looked_up([4, 1, 2], tmp_path), out)
    for places in ([0, 3, 1], [4, 4, 4]):
        assert blob(looked_up(places, tmp_path / "new"), "--for", out) == 0
        assert changed(before, out) == {"net.mcb", "net_weights.c", "report.json"}


@pytest.mark.parametrize("places", [[5, 1, 2], [-1, 1, 2]])
def test_indices_beside_that_range_are_refused_by_their_name(
    places: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    before = written(looked_up([4, 1, 2], tmp_path), out)
    assert blob(looked_up(places, tmp_path / "new"), "--for", out) == 1
    assert "places holds values from 0 to 4" in capsys.readouterr().err
    assert not changed(before, out)


def pruned(*rows: int) -> ModelProto:
    """A convolution whose weights of these channels are zero, and one that reads it."""
    made = convolutions(6, [(8, 3, 1), (4, 1, 1)])
    (weights,) = (tensor for tensor in made.graph.initializer if tensor.name == "w0")
    array = numpy_helper.to_array(weights).copy()
    array[list(rows)] = 0
    weights.CopyFrom(numpy_helper.from_array(array, "w0"))
    return made


def test_other_channels_may_be_dead_and_more_but_not_fewer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, more = tmp_path / "out", saved(pruned(0, 4, 5), tmp_path / "more", "net")
    before = written(saved(pruned(2, 5), tmp_path, "net"), out)
    assert blob(saved(pruned(2), tmp_path / "fewer", "net"), "--for", out) == 1
    assert "needs 6 of 8 channels" in capsys.readouterr().err
    assert not changed(before, out)
    assert blob(more, "--for", out) == 0
    written(more, tmp_path / "alone")
    updated, alone = Model.build(out), Model.build(tmp_path / "alone")
    x = np.random.default_rng(1).integers(-128, 128, (1, 1, 6, 6)).astype(np.int8)
    assert updated.run({"x": x})["y"].tolist() == alone.run({"x": x})["y"].tolist()


def test_code_that_does_without_a_fact_does_not_need_it(tmp_path: Path) -> None:
    """Here the bound of Relu was data; that it is the type's now is not a reason to refuse."""
    out = tmp_path / "out"
    written(saved(trained(0, relu_zero=-100), tmp_path, "net"), out, Options(updatable=True))
    assert blob(saved(trained(1), tmp_path / "new", "net"), "--for", out) == 0


def test_factors_out_of_reach_are_refused_without_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = saved(trained(1, large=30.0), tmp_path / "new", "net")
    for updatable in (False, True):
        out = tmp_path / f"out{updatable}"
        before = written(saved(trained(0), tmp_path, "net"), out, Options(updatable=updatable))
        assert blob(new, "--for", out) == (0 if updatable else 1)
        said = capsys.readouterr().err
        assert updatable or ("is rescaled in 32 bits with a shift of" in said and "--updatable" in said)
        assert updatable or not changed(before, out)


def test_another_architecture_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    before = written(saved(small_models.conv(), tmp_path, "conv"), out)
    assert blob(saved(small_models.mlp(), tmp_path / "new", "conv"), "--for", out) == 1
    assert "the model has other inputs" in capsys.readouterr().err
    assert not changed(before, out)


def test_options_are_those_of_the_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = Options(target="cortex-m4", prefer="time", name="other", blob="external", without=frozenset({"fuse"}))
    before = written(saved(small_models.conv(0), tmp_path, "conv"), out, options)
    assert blob(saved(small_models.conv(1), tmp_path / "new", "retrained"), "--for", out) == 0
    assert changed(before, out) == {"other.mcb", "report.json"}


def test_a_single_file_gets_its_array(tmp_path: Path) -> None:
    out, new = tmp_path / "out", saved(small_models.conv(1), tmp_path / "new", "conv")
    before = written(saved(small_models.conv(0), tmp_path, "conv"), out, Options(single_file=True))
    assert blob(new, "--for", out) == 0
    assert changed(before, out) == {"conv.mcb", "conv.c", "report.json"}
    assert (out / "conv.c").read_bytes() == compile(new, Options(single_file=True)).files["conv.c"]


def test_one_of_several_models_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    models = [saved(small_models.conv(0), tmp_path, "conv"), saved(small_models.mlp(), tmp_path, "mlp")]
    write_folder(out, compile_several(models, Options())[1])
    before = contents(out)
    new = saved(small_models.conv(1), tmp_path / "new", "conv")
    assert blob(new, "--for", out) == 2
    assert "--name conv" in capsys.readouterr().err and not changed(before, out)
    assert blob(new, "--for", out, "--name", "conv") == 0
    assert changed(before, out) == {"conv.mcb", "conv_weights.c", "report.json"}


@pytest.mark.parametrize("op", ["Relu", "Tanh"])
def test_a_blob_that_other_code_reads_is_replaced_where_both_are_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], op: str
) -> None:
    """Equal constants are one blob: of one network at two sizes, or, by chance, of two networks."""

    def made(seed: int, rows: int, op: str) -> ModelProto:
        body = f"{{ h = MatMul (x, w) y = {op} (h) }}"
        text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[{rows},6] x) => (float[{rows},5] y) {body}'
        model = parser.parse_model(text)
        model.graph.initializer.append(numpy_helper.from_array(small_models.floats(seed, 6, 5), "w"))
        return model

    out = tmp_path / "out"
    (tmp_path / "new").mkdir()
    models = [saved(made(0, 2, "Relu"), tmp_path, "one"), saved(made(0, 2, op), tmp_path, "other")]
    write_folder(out, compile_several(models, Options())[1])
    before = contents(out)
    new = saved(made(1, 2, "Relu"), tmp_path / "new", "one")
    assert "one.mcb" in before and "other.mcb" not in before
    assert blob(new, "--for", out, "--name", "other") == 2
    assert "give --name one" in capsys.readouterr().err
    assert blob(new, "--for", out, "--name", "one") == (0 if op == "Relu" else 1)
    if op != "Relu":
        assert "other reads the same blob" in capsys.readouterr().err and not changed(before, out)


def test_arranged_files_are_found_where_they_lie(tmp_path: Path) -> None:
    out, model = tmp_path / "out", saved(small_models.conv(0), tmp_path, "conv")
    assert cli.run([str(model), "-o", str(out), "--package", "arduino"]) == 0
    before = contents(out)
    assert blob(saved(small_models.conv(1), tmp_path / "new", "conv"), "--for", out) == 0
    names = {Path(name).name for name in changed(before, out)}
    assert names == {"conv.mcb", "conv_weights.c", "report.json"}


@pytest.mark.parametrize("report, words", [("", "cannot read"), ("{}", "not a report of mcc"), ("[", "not a report")])
def test_folders_of_others_are_refused(
    report: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if report:
        Path(tmp_path, "report.json").write_text(report)
    before = contents(tmp_path)
    assert blob(saved(small_models.conv(), tmp_path / "new", "conv"), "--for", tmp_path) == 4
    assert words in capsys.readouterr().err
    assert contents(tmp_path).keys() - before.keys() == {"new/conv.onnx"}


def test_several_targets_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, model = tmp_path / "out", saved(small_models.conv(), tmp_path, "conv")
    assert cli.run([str(model), "-o", str(out), "--target", "cortex-m4,generic"]) == 0
    before = contents(out)
    assert blob(model, "--for", out) == 2
    assert "several targets" in capsys.readouterr().err and not changed(before, out)


def test_the_report_has_the_identity_and_the_options(tmp_path: Path) -> None:
    package = compile(saved(trained(0), tmp_path, "net"), Options(updatable=True))
    report = json.loads(package.files["report.json"])
    assert bytes.fromhex(report["identity"]) == package.identity == package.files["net.mcb"][16:32]
    assert report["options"] == {"updatable": True}


def _reshaped(taken: str, given: str, folder: Path) -> Path:
    """Moves nothing, so that code is the same for all shapes."""
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[{taken}] x) => (float[{given}] y) '
    text += f"{{ h = Relu (x) shape = Constant <value_ints = [{given}]> () y = Reshape (h, shape) }}"
    return saved(parser.parse_model(text), folder, "g")


@pytest.mark.parametrize("taken, given, what", [("1, 6", "3, 2", "outputs"), ("2, 3", "2, 3", "inputs")])
def test_another_interface_is_refused_where_code_is_the_same(
    taken: str, given: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, new = tmp_path / "out", _reshaped(taken, given, tmp_path / "new")
    before = written(_reshaped("1, 6", "2, 3", tmp_path), out)
    assert blob(new, "--for", out) == 1
    said = capsys.readouterr().err
    assert f"the model has other {what}" in said and "this is another architecture" in said
    assert not changed(before, out)
    assert compile(new).files["g.c"] != before["g.c"]  # nor does init take the other's blob
    assert blob(_reshaped("1, 6", "2, 3", tmp_path / "same"), "--for", out) == 0


@pytest.mark.parametrize("op", ["LayerNormalization (x, a, b)", "Gemm (c, d)", "Add (e, f)"])
def test_weights_that_are_equal_by_chance_are_refused_with_a_command_that_helps(
    op: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command keeps options, and its code takes both trainings."""

    def model(other: int, folder: str) -> Path:
        text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[2,2] x) => (float[2,2] y)
            <float[2] a = {{1, 2}}, float[2] b = {{1, {other}}}, float[2,2] d = {{1, 2, 3, 4}},
             float[2,2] g = {{1, 2, 3, {other + 2}}}, float[2] e = {{3, 4}}, float[2] f = {{3, {other + 2}}}>
            {{ c = Gemm (x, g) h = Add (x, e) i = {op.replace("(e", "(h")} z = Add (i, c) y = Relu (z) }}"""
        return saved(parser.parse_model(text), tmp_path / folder, "net")

    out, new = tmp_path / "out", model(5, "new")
    written(model(2, "old"), out, Options(target="cortex-m4"))
    assert blob(new, "--for", out) == 1
    command = next(line for line in capsys.readouterr().err.splitlines() if "mccompile " in line)
    words = shlex.split(command[command.index("mccompile ") :])
    assert words[-3:] == ["--target", "cortex-m4", "--updatable"]
    assert cli.run(words[1:]) == 0
    for path in (model(2, "old"), new):
        assert blob(path, "--for", tmp_path / "out-new") == 0
