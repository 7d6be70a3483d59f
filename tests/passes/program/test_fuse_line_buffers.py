"""Row by row: the same results as call by call, in less memory, whatever the shapes of windows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from mccompile.base.budgets import limited
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.emit.row_costs import costs_of_rows
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import build
from mccompile.passes.rows import row_chains, row_play
from mccompile.plan.ir import RowRegion
from tests.passes.program.before_after import after
from tests.small_models import floats, model, node
from tests.thorough import some


def compiled(made: ModelProto, rows: str, without: Collection[str] = ()) -> Package:
    options = Options(rows=rows, without=frozenset(without))
    return compile_graph(load_proto(made, Path()), options, made.graph.name)


def results(package: Package, made: ModelProto, poison: int) -> dict[str, np.ndarray]:
    inputs = {}
    for number, value in enumerate(made.graph.input):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        inputs[value.name] = floats(number, *shape)
    return dict(build(package, Options().resolved_target()).run(inputs, poison=poison))


def chain(kernels: list[tuple[int, int, int, int]], size: tuple[int, int], group: bool = False) -> ModelProto:
    """Convolutions (kernel, stride, pad, dilation) after each other, with ReLU between."""
    weights: dict[str, np.ndarray] = {}
    nodes, last, channels = [], "x", 3
    height, width = size
    for number, (kernel, stride, pad, dilation) in enumerate(kernels):
        out = channels if group and number % 2 else 5 + number
        groups = channels if group and number % 2 else 1
        weights[f"w{number}"] = floats(number, out, channels // groups, kernel, kernel)
        attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [dilation] * 2, "group": groups}
        nodes.append(node("Conv", f"{last} w{number}", f"c{number}", **attributes))
        nodes.append(node("Relu", f"c{number}", f"r{number}"))
        last, channels = f"r{number}", out
        height = (height + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1
        width = (width + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1
    y = [1, channels, height, width]
    return model("chain", nodes, [("x", [1, 3, *size])], [(last, y)], weights)


def residual() -> ModelProto:
    """A block whose input is needed again at its end, and a strided shortcut."""
    weights = {f"w{n}": floats(n, 4, 3 if n == 0 else 4, 3, 3) for n in range(4)} | {"s": floats(9, 4, 4, 1, 1)}
    pads = {"pads": [1] * 4}
    nodes = [
        node("Conv", "x w0", "a", **pads),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", **pads),
        node("Add", "b c", "d"),
        node("Conv", "d w2", "e", strides=[2, 2], **pads),
        node("Relu", "e", "f"),
        node("Conv", "f w3", "g", **pads),
        node("Conv", "d s", "h", strides=[2, 2]),
        node("Add", "g h", "y"),
    ]
    return model("residual", nodes, [("x", [1, 3, 20, 17])], [("y", [1, 4, 10, 9])], weights)


def pools() -> ModelProto:
    weights = {"w0": floats(0, 8, 3, 5, 5), "w1": floats(1, 2, 8, 3, 3)}
    nodes = [
        node("Conv", "x w0", "a", pads=[2] * 4),
        node("MaxPool", "a", "b", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        node("Sigmoid", "b", "c"),
        node("Mul", "b c", "d"),
        node("AveragePool", "d", "e", kernel_shape=[2, 2], strides=[1, 1]),
        node("Conv", "e w1", "y", pads=[1] * 4),
    ]
    return model("pools", nodes, [("x", [1, 3, 23, 18])], [("y", [1, 2, 11, 8])], weights)


def widened() -> ModelProto:
    """A residual that gets more channels on its way: rows of zeros and of it, to which a convolution adds its own."""
    weights = {"w0": floats(0, 6, 3, 3, 3), "w1": floats(1, 8, 6, 3, 3), "w2": floats(2, 4, 8, 3, 3)}
    weights |= {"pads": np.array([0, 0, 0, 0, 0, 2, 0, 0], np.int64)}
    pads = {"pads": [1] * 4}
    nodes = [
        node("Conv", "x w0", "a", **pads),
        node("Conv", "a w1", "b", **pads),
        node("Pad", "a pads", "c"),
        node("Add", "b c", "d"),
        node("Relu", "d", "e"),
        node("Conv", "e w2", "y", **pads),
    ]
    return model("widened", nodes, [("x", [1, 3, 20, 17])], [("y", [1, 4, 20, 17])], weights)


def quantized_mean() -> ModelProto:
    """Sums that do not fit into the result, which is written when the last row has been read."""
    weights = {"w0": floats(0, 6, 3, 3, 3), "w1": np.clip(40 * floats(1, 8, 6, 3, 3), -99, 99).astype(np.int8)}
    weights |= {"s": np.array(0.05, np.float32), "z": np.array(0, np.int8)}
    nodes = [
        node("QuantizeLinear", "x s z", "x8"),
        node("DequantizeLinear", "x8 s z", "xf"),
        node("Conv", "xf w0", "a", pads=[1] * 4),
        node("QuantizeLinear", "a s z", "a8"),
        node("DequantizeLinear", "a8 s z", "af"),
        node("DequantizeLinear", "w1 s z", "wf"),
        node("Conv", "af wf", "b", pads=[1] * 4),
        node("QuantizeLinear", "b s z", "b8"),
        node("DequantizeLinear", "b8 s z", "bf"),
        node("GlobalAveragePool", "bf", "c"),
        node("QuantizeLinear", "c s z", "c8"),
        node("DequantizeLinear", "c8 s z", "y"),
    ]
    return model("quantized_mean", nodes, [("x", [1, 3, 14, 9])], [("y", [1, 8, 1, 1])], weights)


def spectra() -> ModelProto:
    """Frames of a signal that share elements, transformed, weighted and summed: a result that may lie over the
    signal."""
    weights = {"hop": np.array(8), "w": floats(0, 20), "m": floats(1, 11, 6), "one": np.array(1, np.float32),
               "last": np.array([3]), "v": floats(2, 6, 9)}  # fmt: skip
    nodes = [
        node("STFT", "x hop w", "a"),
        node("Mul", "a a", "b"),
        node("ReduceSum", "b last", "c", keepdims=0),
        node("MatMul", "c m", "d"),
        node("Abs", "d", "e"),
        node("Add", "e one", "f"),
        node("Log", "f", "g"),
        node("MatMul", "g v", "y"),
    ]
    return model("spectra", nodes, [("x", [1, 404])], [("y", [1, 49, 9])], weights)


def models() -> Iterator[ModelProto]:
    yield chain([(3, 1, 1, 1), (3, 1, 1, 1), (3, 1, 1, 1)], (16, 12))
    yield chain([(3, 2, 1, 1), (3, 1, 1, 1), (3, 2, 0, 1), (1, 1, 0, 1)], (31, 20))
    yield chain([(5, 1, 2, 1), (3, 1, 2, 2), (3, 2, 3, 1)], (17, 9))
    yield chain([(3, 1, 1, 1), (3, 1, 1, 1), (1, 1, 0, 1), (3, 1, 1, 1), (1, 1, 0, 1)], (24, 24), group=True)
    yield chain([(1, 3, 0, 1), (2, 1, 1, 1), (1, 2, 0, 1)], (29, 13))
    yield residual()
    yield pools()
    yield widened()
    yield quantized_mean()
    yield spectra()


@some(3, "number", range(10))
def test_rows_give_the_same_results_in_less_memory(number: int) -> None:
    made = list(models())[number]
    plain, rows = compiled(made, "off"), compiled(made, "auto")
    assert rows.plan.arena_bytes < plain.plan.arena_bytes
    expected = results(plain, made, 0)
    for poison in (0, 0xFF):
        for name, array in results(rows, made, poison).items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)


def resized(scales: tuple[float, float], **attributes: object) -> ModelProto:
    """A picture that is resized between two convolutions."""
    height, width = (int(np.floor(np.float32(n) * np.float32(s))) for n, s in zip((17, 10), scales, strict=True))
    weights = {"v": floats(0, 5, 3, 3, 3), "w": floats(1, 2, 5, 3, 3), "s": np.array([1, 1, *scales], np.float32)}
    nodes = [
        node("Conv", "x v", "a", pads=[1] * 4),
        node("Relu", "a", "b"),
        helper.make_node("Resize", ["b", "", "s"], ["u"], **attributes),
        node("Conv", "u w", "y", pads=[1] * 4),
    ]
    return model("resized", nodes, [("x", [1, 3, 17, 10])], [("y", [1, 2, height, width])], weights)


RESIZED: list[tuple[tuple[float, float], dict[str, object]]] = [
    ((2, 2), {"mode": "nearest"}),
    ((3, 1), {"mode": "nearest"}),
    ((1, 2), {"mode": "nearest"}),
    ((1.5, 1.5), {"mode": "nearest"}),
    ((0.7, 2), {"mode": "nearest"}),
    ((2, 2), {"mode": "linear"}),
    ((1.5, 0.5), {"mode": "linear"}),
    ((2, 1), {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    ((0.4, 0.4), {"mode": "linear"}),
    ((2.3, 2.3), {"mode": "cubic"}),
]


@pytest.mark.parametrize(("scales", "attributes"), RESIZED)
def test_a_picture_is_resized_by_rows(scales: tuple[float, float], attributes: dict[str, object]) -> None:
    made = resized(scales, **attributes)
    plain, rows = compiled(made, "off"), compiled(made, "auto")
    assert rows.plan.arena_bytes < plain.plan.arena_bytes * 0.7
    expected = results(plain, made, 0)["y"]
    np.testing.assert_allclose(results(rows, made, 0xFF)["y"], expected, rtol=1e-5, atol=1e-5)


TRANSPOSED: list[tuple[int, dict[str, list[int]]]] = [
    (2, {"strides": [2, 2]}),
    (3, {"strides": [2, 1], "pads": [1, 1, 1, 1], "output_padding": [1, 0]}),
    (3, {"strides": [3, 2], "dilations": [2, 3], "pads": [2, 0, 0, 1]}),
    (2, {"strides": [4, 2], "dilations": [2, 1]}),
    (4, {"strides": [1, 1], "pads": [2, 1, 1, 2]}),
    (3, {"strides": [1, 2], "dilations": [3, 1], "pads": [4, 2, 4, 0]}),
]


@pytest.mark.parametrize(("kernel", "attributes"), TRANSPOSED)
def test_a_transposed_convolution_goes_by_rows(kernel: int, attributes: dict[str, list[int]]) -> None:
    shapes = (5, 3, 3, 3), (5, 6, kernel, kernel), (2, 6, 3, 3)
    weights = {name: floats(number, *shape) for number, (name, shape) in enumerate(zip("uvw", shapes, strict=True))}
    nodes = [
        node("Conv", "x u", "a", pads=[1] * 4),
        node("ConvTranspose", "a v", "b", **attributes),
        node("Relu", "b", "c"),
        node("Conv", "c w", "y", pads=[1] * 4, strides=[2, 2]),
    ]
    made = model("transposed", nodes, [("x", [1, 3, 17, 10])], [("y", ["n", "c", "h", "w"])], weights)
    whole = {"split_phases"}  # as one call
    plain, rows = compiled(made, "off", whole), compiled(made, "auto", whole)
    assert rows.plan.arena_bytes < plain.plan.arena_bytes * 0.7
    expected = results(plain, made, 0)["y"]
    np.testing.assert_allclose(results(rows, made, 0xFF)["y"], expected, rtol=1e-5, atol=1e-5)


def test_a_lookup_goes_by_rows() -> None:
    weights = {"v": np.arange(-36, 36, dtype=np.int8).reshape(8, 1, 3, 3), "s": np.array(0.1, np.float32),
               "w": np.arange(-36, 36, dtype=np.int8).reshape(1, 8, 3, 3), "z": np.array(0, np.int8)}  # fmt: skip
    nodes = [node("QuantizeLinear", "x s z", "q")]
    for number, (ins, out) in enumerate([("q v", "a"), ("a", "b"), ("b w", "c")]):
        reals = [f"{name}{number}" for name in ins.split()]
        kind = "Conv" if len(reals) > 1 else "Sigmoid"
        nodes += [node("DequantizeLinear", f"{name} s z", real) for name, real in zip(ins.split(), reals, strict=True)]
        nodes.append(node(kind, " ".join(reals), f"{out}f", **({"pads": [1] * 4} if kind == "Conv" else {})))
        nodes.append(node("QuantizeLinear", f"{out}f s z", out))
    nodes.append(node("DequantizeLinear", "c s z", "y"))
    made = model("looked_up", nodes, [("x", [1, 1, 16, 12])], [("y", [1, 1, 16, 12])], weights)
    plain, rows = compiled(made, "off"), compiled(made, "auto")
    assert rows.plan.arena_bytes < plain.plan.arena_bytes * 0.6
    np.testing.assert_array_equal(results(rows, made, 0xFF)["y"], results(plain, made, 0)["y"])


@pytest.mark.parametrize("size", [(16, 16), (16, 12)])
def test_columns_are_not_taken_for_rows(size: tuple[int, int]) -> None:
    """Rows of a picture that is turned are columns of the one that is made."""
    weights = {"v": floats(0, 8, 1, 3, 3), "w": floats(1, 1, 8, 3, 3)}
    pads = {"pads": [1] * 4}
    turn = node("Transpose", "a", "t", perm=[0, 1, 3, 2])
    nodes = [node("Conv", "x v", "a", **pads), turn, node("Conv", "t w", "y", **pads)]
    made = model("turned", nodes, [("x", [1, 1, *size])], [("y", [1, 1, *size[::-1]])], weights)
    expected = results(compiled(made, "off"), made, 0)["y"]
    np.testing.assert_allclose(results(compiled(made, "auto"), made, 0xFF)["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kept", [False, True])
def test_a_product_of_a_tensor_and_itself_needs_all_rows_of_it(kept: bool) -> None:
    nodes = [
        node("AveragePool", "x", "a", kernel_shape=[3, 2], strides=[2, 1]),
        node("Transpose", "a", "t", perm=[0, 1, 3, 2]),
        node("MatMul", "a t", "y"),
    ]
    made = model("gram", nodes, [("x", [2, 6, 9, 3])], [("y", [2, 6, 4, 4])])
    rows = compile_graph(load_proto(made, Path()), Options(keep_inputs=kept), "gram")
    expected = results(compiled(made, "off"), made, 0)["y"]
    np.testing.assert_allclose(results(rows, made, 0xFF)["y"], expected, rtol=1e-5, atol=1e-6)


def test_rows_lie_over_those_that_are_only_added_to_them() -> None:
    lives = {life.name: life for life in compiled(widened(), "auto").plan.lives}
    padded, added = lives["c/last"], lives["e/last"]
    assert (padded.low, padded.high) == (added.low, added.high)


@pytest.mark.parametrize("kernel", [3, 5])
def test_a_result_runs_after_the_rows_that_are_still_to_be_read(kernel: int) -> None:
    weights = {"v": floats(0, 4, 1, kernel, kernel), "w": floats(1, 1, 4, kernel, kernel)}
    pads = {"pads": [kernel // 2] * 4}
    nodes = [node("Conv", "x v", "a", **pads), node("Conv", "a w", "y", **pads)]
    made = model("over", nodes, [("x", [1, 1, 16, 16])], [("y", [1, 1, 16, 16])], weights)
    package = compiled(made, "auto")
    places = {life.name: (life.low, life.high) for life in package.plan.lives}
    assert places["y"] == places["x"]  # a ring that is as far ahead as a window reaches back
    assert package.plan.arena_bytes == (16 + 4 * kernel) * 16 * 4
    expected = results(compiled(made, "off"), made, 0)["y"]
    np.testing.assert_allclose(results(package, made, 0xFF)["y"], expected, rtol=1e-5, atol=1e-6)


def test_an_input_outside_of_the_arena_cuts_no_chain() -> None:
    weights = {"u": floats(0, 2, 8, 3, 3), "v": floats(1, 16, 2, 3, 3), "w": floats(2, 32, 16, 3, 3)}
    pads = {"pads": [1] * 4}
    nodes = [
        node("Conv", "x u", "a", **pads),
        node("Conv", "a v", "b", **pads),
        node("Conv", "b w", "y", strides=[4, 4], **pads),
    ]
    made = model("outside", nodes, [("x", [1, 8, 16, 16])], [("y", [1, 32, 4, 4])], weights)
    package = compile_graph(load_proto(made, Path()), Options(external=("x",)), "outside")
    rings = 3 * 16 * (2 + 16)  # instead of all of a
    assert package.plan.arena_bytes == 4 * (rings + 32 * 4 * 4)


@pytest.mark.parametrize(("more", "steps"), [(0, [1, 1, 1]), (600, [2, 2, 1]), (1600, [4, 2, 1])])
def test_calls_that_save_most_make_more_rows_at_a_time(more: int, steps: list[int]) -> None:
    """Where there is no room for more rows of all."""
    made = chain([(3, 1, 1, 1), (1, 1, 0, 1), (3, 2, 1, 1)], (32, 24))
    enough = 7584 + more
    options = Options(external=("x",), enough=enough)
    package = compile_graph(load_proto(made, Path()), options, "chain")
    (region,) = (item for item in package.plan.items if isinstance(item, RowRegion))
    assert [stage.step for stage in region.stages] == steps and package.plan.arena_bytes <= enough
    expected = results(compiled(made, "off"), made, 0)["r2"]
    np.testing.assert_allclose(results(package, made, 0xFF)["r2"], expected, rtol=1e-5, atol=1e-6)


def test_the_plan_says_what_rows_save_and_cost() -> None:
    made = chain([(3, 1, 1, 1), (3, 1, 1, 1), (3, 1, 1, 1)], (16, 12))
    plain, rows = compiled(made, "off").plan, compiled(made, "auto").plan
    assert rows.arena_by_calls == plain.arena_by_calls == plain.arena_bytes > rows.arena_bytes
    assert rows.arena_naive == plain.arena_naive
    assert not costs_of_rows(plain)
    (cost,) = costs_of_rows(rows)
    assert cost.calls == 3 * -(-16 // cost.height) and cost.read * 3 == cost.weights * cost.calls


def test_nothing_is_joined_where_nothing_is_gained() -> None:
    made = chain([(1, 1, 0, 1)], (4, 4))
    auto, off = (dict(compiled(made, rows).files) for rows in ("auto", "off"))
    assert auto.pop("report.json") != off.pop("report.json")  # which says what was asked for
    assert auto == off


def test_what_takes_too_long_to_play_runs_call_by_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """However tall the model is, and however many chains there are."""
    made = chain([(3, 1, 1, 1), (3, 1, 1, 1), (3, 1, 1, 1)], (1 << 16, 2))
    played = []

    def counted(*arguments: Any) -> row_chains.Run:
        played.append(row_play.played(*arguments))
        return played[-1]

    monkeypatch.setattr(row_chains, "played", counted)
    with limited(rows=1000):
        auto = compiled(made, "auto")
    assert 1000 < sum(run.steps for run in played) <= 2 * 1000 + 2
    assert auto.plan.arena_bytes == compiled(made, "off").plan.arena_bytes


def test_searches_of_one_program_share_what_they_play(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for an arena that is small enough, for the smallest, and with results over operands: playing takes most of
    the time of a compilation with rows."""
    played = []

    def counted(chains: row_chains.Chains, first: int, last: int, calls: Any, steps: tuple[int, ...]) -> Any:
        played.append((id(chains), first, last, steps))
        kept.append(chains)
        return original(chains, first, last, calls, steps)

    kept: list[object] = []
    original = row_chains.Chains._played
    monkeypatch.setattr(row_chains.Chains, "_played", counted)
    compiled(chain([(3, 1, 1, 1), (3, 1, 1, 1), (3, 1, 1, 1)], (16, 8)), "auto")
    assert len(played) == len(set(played))
    assert len(set(kept)) == 1


def test_a_wide_tensor_between_two_convolutions_becomes_a_ring_of_three_rows() -> None:
    conv = "Conv(strides=(1, 1), dilations=(1, 1), pads=(1, 1, 1, 1), group=1, accumulator=f32)"
    kernel = 'kernel "conv/any_strided_direct__c"'
    frame = """program "p" {
  input "x" %x: f32[1,1,16,16]
  const %v: f32[4,1,3,3] = #v
  buffer %a: f32[A] from "a"
  const %w: f32[1,4,3,3] = #w
  buffer %y: f32[1,1,16,16] from "y"
CALLS
  output "y" %y
}
"""
    before = f"""  call {conv} (%x, %v) -> (%a) {kernel} from "a"
  call {conv} (%a, %w) -> (%y) {kernel} from "y\""""
    ring = "%a[1,4,16,16 by 0,16,64,1 at 0 lines 3]"
    expected = f"""  rows before %x by 0 from "a", "y" {{
    stage 16 by 1 call {conv} (%x, %v) -> ({ring}) {kernel} rows 2 from "a"
    stage 16 by 1 pull 0 to 1, 1 call {conv} ({ring}, %w) -> (%y) {kernel} rows 2 from "y"
  }}"""
    text = frame.replace("CALLS", before).replace("[A]", "[1,4,16,16]")
    by_rows = frame.replace("CALLS", expected).replace("[A]", "[3,1,4,16]")
    assert after("fuse_line_buffers", text) == by_rows.replace("{\n", "{\n  call_by_call 5120\n", 1)


def test_what_several_rows_are_made_of_at_once_is_no_tensor_from_outside() -> None:
    """Rows that a Resize repeats are taken two at a time. Their ring is nothing that the result may be laid over."""
    kernel, same = 'kernel "conv/any_strided_direct__c"', "[1,16,12,8 by 1536,1,128,16 at 0]"
    conv = "Conv(strides=(1, 1), dilations=(1, 1), pads=(P, P, P, P), group=1, accumulator=i32, epilogue=@to.i8({}))"
    point, window = conv.replace("P", "0").format("x0.i32"), conv.replace("P", "1").format("add(x0.i32, to.i32(x1.i8))")
    enlarged, narrow = "%u[1,16,24,16 by 6144,1,256,16 at 0]", "[1,4,24,16 by 1536,1,64,4 at 0]"
    text = f"""program "p" {{
  input "x" %x: i8[1,12,8,16]
  buffer %a: i8[1,12,8,16] from "a"
  const %k: i8[16,16,1,1] = #k
  const %w: i8[4,16,1,1] = #w
  const %v: i8[4,16,3,3] = #v
  buffer %u: i8[1,24,16,16] from "u"
  buffer %p: i8[1,24,16,4] from "p"
  buffer %y: i8[1,24,16,4] from "y"
  call {point} (%x{same}, %k) -> (%a{same}) {kernel} from "a"
  call Map(expr=@x0.i8) (%a[12,2,8,2,16 by 128,0,16,0,1 at 0]) -> (%u[12,2,8,2,16 by 512,256,32,16,1 at 0]) \
kernel "map/any_strided_loops__c" from "u"
  call {point} ({enlarged}, %w) -> (%p{narrow}) {kernel} from "p"
  call {window} ({enlarged}, %v, %p{narrow}) -> (%y{narrow}) {kernel} from "y"
  output "y" %y
}}
"""
    (region,) = (line for line in after("fuse_line_buffers", text).splitlines() if line.startswith("  rows"))
    assert region == '  rows before %x by 0 from "a", "u", "p", "y" {'
