"""Budgets and boards of networks that learn: the fastest plan that fits, or what would fit, in words that work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import mccompile
from mccompile.cli import run
from mccompile.driver import training
from mccompile.driver.options import Options
from mccompile.memory.recompute import Line
from mccompile.passes.learn.phase_graphs import Learning
from mccompile.passes.program import fuse_line_buffers, recompute_activations
from mccompile.targets.api import Prefer
from tests.thorough import some

LAYERS = """<ir_version: 8, opset_import: ["" : 17]> net (float[batch, 24] x) => (float[batch, 5] y) {
    a = MatMul(x, w1)  b = Relu(a)  c = MatMul(b, w2)  d = Relu(c)  y = MatMul(d, w3) }"""
WEIGHTS = {"w1": (24, 48), "w2": (48, 16), "w3": (16, 5)}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    model, chance = onnx.parser.parse_model(LAYERS), np.random.default_rng(0)
    for name, shape in WEIGHTS.items():
        array = chance.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    onnx.save(model, path)
    return ["train", str(path), "--loss", "cross_entropy:y", "--learn", "all", "--dim", "batch=64"]


def ram(out: Path) -> int:
    return int(json.loads((out / "report.json").read_text(encoding="utf-8"))["arena_bytes"])


def test_a_budget_holds_what_all_phases_take(words: list[str], tmp_path: Path) -> None:
    assert run([*words, "-o", str(tmp_path / "least"), "--budget", "ram=min"]) == 0
    least = ram(tmp_path / "least")
    assert run([*words, "-o", str(tmp_path / "out"), "--budget", f"ram={least},weights=9728"]) == 0
    assert ram(tmp_path / "out") == least
    assert run([*words, "-o", str(tmp_path / "less"), "--budget", f"ram={least - 1}"]) == 1
    assert run([*words, "-o", str(tmp_path / "less"), "--budget", "weights=9000"]) == 1


@some(1, "budget", [40000, 6000])  # one change is enough, several are needed
def test_what_would_fit_does(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], budget: int) -> None:
    asked = [*words, "-o", str(tmp_path / "out"), "--optimizer", "adam", "--budget", f"ram={budget}"]
    assert run(asked) == 1
    fixes = re.findall(r"with (--[^;]*?) it takes (\d+) bytes", capsys.readouterr().err)
    assert fixes
    for number, (flags, taken) in enumerate(fixes):
        out = tmp_path / f"out{number}"
        command = asked[:-2]
        if "--dim" in flags:  # a size is given once: the new one takes the place of the old one
            at = command.index("--dim")
            del command[at : at + 2]
        assert run([*command, "-o", str(out), *flags.split(), "--budget", f"ram={budget}"]) == 0
        assert max(ram(out), int(taken)) <= budget  # a faster plan may take more


def test_batches_may_come_sample_by_sample(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--accumulate", "2", "-o", str(tmp_path / "out"), "--budget", "ram=30000"]) == 1
    assert "--dim batch=1 --accumulate 128" in capsys.readouterr().err


def test_a_board_sets_target_and_budget(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "-o", str(tmp_path / "out"), "--board", "nucleo_f446re"]) == 0
    assert "net for cortex-m4" in capsys.readouterr().out
    assert run([*words, "-o", str(tmp_path / "small"), "--board", "uno"]) == 1
    said = capsys.readouterr().err
    assert "bytes of ram are" in said
    assert "it fits --board" in said


def test_the_frontier_has_plans_and_smaller_training(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--optimizer", "adam", "--frontier"]) == 0
    said = capsys.readouterr().out
    for less in ("--at-once", "--dim batch=1 --accumulate 64", "--optimizer sgd", "--learn last:1"):
        assert f"{less} --budget ram=min" in said
    assert re.search(r"^\d+ +\d+ +1\.00 +--prefer", said.splitlines()[1].strip())


@pytest.mark.parametrize(
    ("flags", "what", "fix"),
    [
        ("--budget flash=4K -o out", "--budget flash does not go with learning", "--budget ram=64K"),
        ("--board nucleo_f446r -o out", "nucleo_f446r", "nucleo_f446re"),
        ("--max-slice 1000 -o out", "--max-slice does not go with learning", "leave out --max-slice"),
        ("", "no output folder is given", "-o out/"),
    ],
)
def test_what_cannot_be_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str], flags: str, what: str, fix: str
) -> None:
    assert run([*words, *flags.split()]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert fix in said


DEEP = 8  # layers of a chain


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance, names = np.random.default_rng(1), [f"w{layer}" for layer in range(DEEP)]
    layers = "".join(f"a{n} = MatMul(h{n}, {name}) h{n + 1} = Tanh(a{n})" for n, name in enumerate(names))
    head = f'<ir_version: 8, opset_import: ["" : 17]> deep (float[64, 8] h0) => (float[64, 8] h{DEEP})'
    model = onnx.parser.parse_model(f"{head} {{ {layers} }}")
    for name in names:
        array = (chance.standard_normal((8, 8)) / 3).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    path = tmp_path_factory.mktemp("models") / "deep.onnx"
    onnx.save(model, path)
    return path


def test_the_same_is_learned_where_activations_are_computed_again(deep: Path) -> None:
    nets = [mccompile.train(deep, loss=f"mse:h{DEEP}", learn="all", recompute=factor) for factor in (1.0, 1.1, 2.0)]
    arenas, macs = ([net.report[what] for net in nets] for what in ("arena_bytes", "macs"))
    assert arenas[0] > arenas[1] > arenas[2]
    assert macs[0] < macs[1] <= 1.1 * macs[0]
    chance = np.random.default_rng(2)
    for _ in range(3):
        batch = [chance.standard_normal((64, 8)).astype(np.float32) for _ in range(2)]
        assert len({net.step(*batch, rate=0.1) for net in nets}) == 1
    for name, weight in nets[0].weights().items():
        np.testing.assert_array_equal(weight, nets[2].weights()[name])


@pytest.mark.thorough
def test_the_smallest_arena_does_not_depend_on_how_goals_fall(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arenas = set()
    for less in (0.85, 0.3):
        monkeypatch.setattr(recompute_activations, "LESS", less)
        arenas.add(mccompile.train(deep, loss=f"mse:h{DEEP}", learn="all", budget={"ram": "min"}).report["arena_bytes"])
    assert len(arenas) == 1


def test_what_is_drawn_without_a_seed_is_not_drawn_again(deep: Path, tmp_path: Path) -> None:
    model = onnx.load(deep)
    next(node for node in model.graph.node if "h4" in node.input).input[0] = "kept"
    model.graph.node.insert(8, onnx.helper.make_node("Dropout", ["h4", "ratio", "training"], ["kept"]))
    for name, array in (("ratio", np.float32(0.4)), ("training", np.array(True))):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    onnx.save(model, tmp_path / "dropping.onnx")
    asked = {"loss": f"mse:h{DEEP}", "learn": "all"}
    nets = [mccompile.train(tmp_path / "dropping.onnx", **asked, recompute=factor) for factor in (1.0, 2.0)]
    assert nets[0].report["arena_bytes"] > nets[1].report["arena_bytes"]
    batch = [np.random.default_rng(seed).standard_normal((64, 8)).astype(np.float32) for seed in (3, 4)]
    for _ in range(3):
        assert len({net.step(*batch, rate=0.1) for net in nets}) == 1


def test_a_budget_leads_to_activations_that_are_computed_again(deep: Path, tmp_path: Path) -> None:
    words = ["train", str(deep), "--loss", f"mse:h{DEEP}", "--learn", "all", "-o", str(tmp_path / "out")]
    assert run([*words, "--budget", "ram=15000", "--without", "recompute_activations"]) == 1
    assert run([*words, "--budget", "ram=15000"]) == 0
    assert ram(tmp_path / "out") <= 15000


def separable(path: Path, layers: int, channels: int, size: int) -> Path:
    """Depthwise convolutions and products of channels in turns, then a mean."""
    chance, body, held = np.random.default_rng(3), list[str](), dict[str, tuple[int, ...]]()
    for n in range(layers):
        held[f"w{n}"] = (channels, 1, 3, 3) if n % 2 else (channels, channels, 1, 1)
        kernel = f"<group = {channels}, pads = [1, 1, 1, 1]>" if n % 2 else ""
        body.append(f"a{n} = Conv {kernel} (h{n}, w{n})  h{n + 1} = Relu(a{n})")
    shape = f"1, {channels}, {size}, {size}"
    head = f'<ir_version: 8, opset_import: ["" : 17]> separable (float[{shape}] h0) => (float[1, {channels}] y)'
    text = f"{head} {{ {' '.join(body)} p = GlobalAveragePool(h{layers})  y = Flatten(p) }}"
    model = onnx.parser.parse_model(text)
    for name, dims in held.items():
        array = (chance.standard_normal(dims) / 3).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.save(model, path)
    return path


def test_gradients_may_lie_over_activations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors are stored channels-last. In one of the orders all readers of what a layer read have run before."""
    lines = list[Line]()

    def found(line: Line, goal: int, macs: int) -> Line:
        lines.append(line)
        return line

    monkeypatch.setattr(recompute_activations, "recomputed", found)
    model = separable(tmp_path / "separable.onnx", 5, 8, 8)
    words = ["train", str(model), "--loss", "cross_entropy:y", "--learn", "all", "--at-once", "--target", "cortex-m4"]
    assert run([*words, "-o", str(tmp_path / "out"), "--budget", "ram=min"]) == 0
    most = 0
    for line in lines:
        _, last = line.lives()
        large = {value for value, size in enumerate(line.sizes) if size == 4 * 8 * 8 * 8}
        most = max(most, sum(any(last[v] == n and v in large for v in s.over) for n, s in enumerate(line.steps)))
    assert most == 5


def test_a_gradient_is_stored_as_the_activation_that_it_is_written_over(tmp_path: Path) -> None:
    """The first layer has a kernel of weights, whose gradient is a convolution over a planar tensor."""
    model = onnx.load(separable(tmp_path / "separable.onnx", 2, 8, 10))
    weights = np.random.default_rng(4).standard_normal((8, 1, 3, 3)).astype(np.float32) / 3
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "w0"))
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("pads", [1, 1, 1, 1]))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(model, tmp_path / "net.onnx")
    words = ["train", str(tmp_path / "net.onnx"), "--loss", "cross_entropy:y", "--learn", "all", "--at-once"]
    words += ["--target", "cortex-m4", "--budget", "ram=min"]
    assert run([*words, "-o", str(tmp_path / "in_order")]) == 0
    assert run([*words, "-o", str(tmp_path / "planar"), "--without", "lay_over_operands"]) == 0
    assert ram(tmp_path / "in_order") < ram(tmp_path / "planar")


@pytest.mark.thorough
def test_rows_of_what_is_done_again_make_room_beside_new_weights(tmp_path: Path) -> None:
    """New weights lie beside the old ones only until they are brought there, also where chains of rows are chosen."""
    model = separable(tmp_path / "separable.onnx", 6, 32, 8)
    words = ["train", str(model), "--loss", "cross_entropy:y", "--learn", "all", "--at-once", "--target", "cortex-m4"]
    words += ["--budget", "ram=min"]
    assert run([*words, "-o", str(tmp_path / "rows")]) == 0
    assert run([*words, "-o", str(tmp_path / "whole"), "--without", "fuse_line_buffers"]) == 0
    assert ram(tmp_path / "rows") < ram(tmp_path / "whole")


@pytest.mark.thorough
def test_new_weights_are_made_beside_gradients_where_no_more_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products whose new weights take as much as an activation: with those, the old ones and dy there is no room."""
    model = separable(tmp_path / "separable.onnx", 6, 32, 6)
    asked = {"loss": "cross_entropy:y", "learn": "all", "at_once": True, "target": "generic"}
    small = mccompile.train(model, **asked, budget={"ram": "min"})
    assert "product_step" in {step["op"] for step in small.report["steps"]}
    plain = mccompile.train(model, **asked)
    assert "product_step" not in {step["op"] for step in plain.report["steps"]}
    chance = np.random.default_rng(5)
    for _ in range(4):
        x, y = chance.standard_normal((1, 32, 6, 6)).astype(np.float32), np.array([chance.integers(32)])
        assert small.step(x, y, rate=0.1) == pytest.approx(plain.step(x, y, rate=0.1), rel=1e-5)
    for name, weight in plain.weights().items():
        np.testing.assert_allclose(small.weights()[name], weight, rtol=1e-4, atol=1e-6)
    monkeypatch.setattr(recompute_activations, "step_products", lambda program, context: program.body)
    apart = mccompile.train(model, **asked, budget={"ram": "min"})
    assert small.report["arena_bytes"] + 1024 <= apart.report["arena_bytes"]


@pytest.mark.thorough
def test_layers_keep_rows_rather_than_shift_what_they_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each layer that is done again alone begins its result some rows before its operand, and all that lie so are one
    tall block. In a chain with the next layer it keeps a few rows, and nothing moves."""
    model = separable(tmp_path / "separable.onnx", 5, 8, 5)
    asked = {"loss": "cross_entropy:y", "learn": "all", "at_once": True, "budget": {"ram": "min"}, "target": "generic"}
    kept = mccompile.train(model, **asked)
    search = fuse_line_buffers.best_chains
    monkeypatch.setattr(
        fuse_line_buffers, "best_chains", lambda *asked, rigid=True: search(*asked, rigid=rigid) if rigid else []
    )
    shifted = mccompile.train(model, **asked)
    assert kept.report["arena_bytes"] <= shifted.report["arena_bytes"]
    x, y = np.random.default_rng(5).standard_normal((1, 8, 5, 5)).astype(np.float32), np.array([3])
    for _ in range(4):
        assert kept.step(x, y, rate=0.1) == pytest.approx(shifted.step(x, y, rate=0.1), rel=1e-5)


def test_an_input_that_all_phases_read_lies_where_it_suits_them(tmp_path: Path) -> None:
    """What the run laid over it, a result of layers fused line by line, is taken off it."""
    nodes, weights, last = [], {"w0": (8, 1, 3, 3), "f": (4, 4)}, "r0"
    nodes.append("c0 = Conv <pads=[1,1,1,1], strides=[2,2]> (x, w0) r0 = Relu(c0)")
    for n, (depth, channels, stride) in enumerate([(8, 8, 2), (8, 16, 2), (16, 4, 1)], 1):
        weights |= {f"d{n}": (depth, 1, 3, 3), f"w{n}": (channels, depth, 1, 1)}
        nodes.append(
            f"e{n} = Conv <group={depth}, pads=[1,1,1,1], strides=[{stride},1]> ({last}, d{n}) q{n} = Relu(e{n})"
        )
        nodes.append(f"c{n} = Conv(q{n}, w{n}) r{n} = Relu(c{n})")
        last = f"r{n}"
    nodes.append(f"g = GlobalAveragePool({last}) h = Flatten(g) y = MatMul(h, f)")
    graph = "net (float[1,1,8,8] x) => (float[1,4] y) {" + " ".join(nodes) + "}"
    model, path = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}'), tmp_path / "net.onnx"
    for name, shape in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    onnx.save(model, path)
    options = Options(target="cortex-m4", prefer=Prefer.RAM, recompute=4.0)
    plan = training.train(path, Learning(loss="mse:y", learn="all", at_once=True), options).plan
    assert plan.arenas[0].bytes == plan.arena_bound


def test_activations_are_computed_again_beside_a_loop_that_does_not_learn(tmp_path: Path) -> None:
    """Constants that only the loop reads lie in no arena."""
    body = "body (int64 i, bool go, float[1, 8] s) => (bool on, float[1, 8] t) { on = Identity(go) t = Mul(s, k) }"
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        net (float[1, 8] x, int64 n) => (float[1, 4] y) <bool yes = {{1}}> {{
            a = Loop (n, yes, x) <body = {body}> b = Relu(a) y = MatMul(b, w) }}""")
    weights = {"k": np.arange(8, dtype=np.float32).reshape(1, 8), "w": np.ones((8, 4), np.float32)}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, tmp_path / "net.onnx")
    options = Options(recompute=1.5)
    package = training.train(tmp_path / "net.onnx", Learning(loss="mse:y", learn="last:1"), options)
    assert not package.left_out
