"""Transposed convolutions as ordinary ones: the same results for every way in which phases, taps and edges can fall,
and in vectors where the target has them, written in place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from mccompile.base.budgets import limited
from mccompile.base.constant import Constant
from mccompile.base.dtypes import DType, f32, i8, i32, u8
from mccompile.base.errors import UnsupportedModel
from mccompile.base.names import Names
from mccompile.driver import Options, compile, compile_graph
from mccompile.expr.ir import apply, operand
from mccompile.frontend.load import load_proto
from mccompile.kinds.concat import Concat
from mccompile.kinds.conv import Conv
from mccompile.kinds.conv_transpose import ConvTranspose
from mccompile.kinds.fold import Fold
from mccompile.kinds.gemm import Gemm
from mccompile.kinds.map import Map
from mccompile.kinds.resize import Resize
from mccompile.measure.correctness import check
from mccompile.passes.program.split_phases import phases, split
from mccompile.program.ir import CONSTANT, INPUT, Buffer, Call, Item, Program, View
from mccompile.program.verify import verify
from mccompile.targets import api as targets
from tests.passes.program.interpreter import outputs
from tests.small_models import floats, model, node, save
from tests.thorough import some

VECTORS = pytest.mark.skipif("vec" not in targets.load("native").isas, reason="this machine has no kernels for vectors")
BIASED = apply("max", apply("add", operand(0, f32), operand(1, f32)), operand(2, f32))


def same(
    kind: ConvTranspose, x: tuple[int, ...], w: tuple[int, ...], joined: bool, last: bool, dtype: DType = f32
) -> bool:
    """Does the split call give what the call gives? False if it was not split."""
    return equal(lambda call: split(call, kind, Names(), joined), kind, x, w, last, dtype)


def equal(
    way: Callable[[Call], list[Call]],
    kind: ConvTranspose,
    x: tuple[int, ...],
    w: tuple[int, ...],
    last: bool,
    dtype: DType = f32,
) -> bool:
    """Do the calls of that way give what the call gives? False if there are none."""
    chance = np.random.default_rng(len(x) + sum(w))
    given = chance.integers(0, 9, x).astype(dtype.numpy)
    source = Buffer("x", dtype, x, INPUT)
    numbers = Constant.of(chance.integers(-9, 9, w).astype(i8.numpy if dtype is u8 else dtype.numpy))
    weights = Buffer("w", numbers.type.dtype, w, CONSTANT, numbers)
    shape = (x[0], w[1] * kind.group, *kind.space)
    order = (0, *range(2, len(shape)), 1) if last else tuple(range(len(shape)))
    result = Buffer("y", kind.accumulator, tuple(shape[axis] for axis in order))
    out = result.whole().permuted([order.index(axis) for axis in range(len(shape))])
    ins: list[View] = [source.whole(), weights.whole()]
    if kind.x_zero:
        ins.append(Buffer("zero", dtype, (), CONSTANT, Constant.of(np.array(3, dtype.numpy))).whole())
    if kind.epilogue:
        bias = Buffer("b", f32, (shape[1], *(1 for _ in shape[2:])), CONSTANT, Constant.of(floats(5, shape[1])))
        other = Buffer("other", f32, result.shape, INPUT)
        ins += [bias.whole().broadcast_to(shape), View(other, out.shape, out.strides)]
    call = Call(kind, tuple(ins), (out,), ("n",))
    calls = way(call)
    found = []
    for body in ([call], calls):
        inputs = [("x", source)] + ([("other", ins[-1].buffer)] if kind.epilogue else [])
        line: list[Item] = [*body]
        program = Program("p", inputs, [("y", out)], line)
        if body:
            verify(program, "split")
            values = {"x": given, "other": floats(6, *result.shape)}
            found.append(outputs(program, {name: values[name] for name, _ in inputs})["y"])
    if calls:
        np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-5)
    return bool(calls)


@pytest.mark.parametrize("joined", [False, True])
def test_every_way_in_which_taps_meet_inputs(joined: bool) -> None:
    split_ones = 0
    for size, kernel, stride, dilation, pad in itertools.product((1, 2, 5), (1, 2, 3, 4), (2, 3), (1, 2, 3), (0, 1, 2)):
        space = stride * (size - 1) + dilation * (kernel - 1) + 1 - pad
        if space > 0:
            kind = ConvTranspose((stride,), (dilation,), (pad,), (space,), 1, f32)
            split_ones += same(kind, (2, 3, size), (3, 2, kernel), joined, last=True)
    assert split_ones > (10 if joined else 50)


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_pictures_with_epilogues(joined: bool, last: bool) -> None:
    kind = ConvTranspose((2, 2), (1, 1), (1, 0), (9, 8), 1, f32, BIASED)
    assert same(kind, (2, 3, 5, 4), (3, 4, 3, 2), joined, last) is (last or not joined)
    assert same(ConvTranspose((2, 2), (1, 1), (0, 0), (6, 8), 1, f32), (1, 3, 3, 4), (3, 1, 2, 2), joined, last)


def test_groups_volumes_bytes_and_cut_edges() -> None:
    assert same(ConvTranspose((2, 3), (1, 1), (1, 1), (9, 13), 2, f32), (1, 4, 5, 5), (4, 3, 3, 3), False, True)
    assert same(
        ConvTranspose((2, 1, 2), (1, 2, 1), (1, 0, 0), (6, 6, 7), 1, f32), (1, 2, 3, 4, 3), (2, 3, 3, 2, 2), False, True
    )
    assert same(ConvTranspose((2, 2), (1, 1), (3, 3), (3, 4), 1, f32), (1, 2, 4, 5), (2, 3, 4, 4), False, True)
    zero = ConvTranspose((2, 2), (1, 1), (1, 1), (6, 8), 1, i32, x_zero=True)
    assert same(zero, (1, 3, 3, 4), (3, 2, 4, 4), False, True, u8)
    assert same(zero, (1, 3, 3, 4), (3, 2, 4, 4), True, True, u8)


@pytest.mark.parametrize("last", [False, True])
def test_results_that_no_tap_reaches_are_what_the_epilogue_makes_of_nothing(last: bool) -> None:
    kind = ConvTranspose((3, 4), (1, 1), (0, 1), (9, 10), 1, f32)
    assert same(kind, (2, 2, 3, 3), (2, 5, 2, 2), False, last)
    assert same(replace(kind, epilogue=BIASED), (2, 2, 3, 3), (2, 5, 2, 2), False, last)
    assert not same(kind, (2, 2, 3, 3), (2, 5, 2, 2), True, last)
    rows = ConvTranspose((3, 2), (1, 1), (0, 0), (7, 6), 1, f32)  # between rows lie none that a tap reaches
    assert not same(rows, (2, 2, 3, 3), (2, 1, 1, 2), True, last)
    assert same(rows, (2, 2, 3, 3), (2, 1, 1, 2), False, last)


def test_no_product_is_made_twice_or_left_out() -> None:
    for kernel, stride, dilation in itertools.product((1, 3, 4, 7), (1, 2, 3), (1, 2)):
        found = [tap for phase in phases(20, kernel, stride, dilation, 1) for tap in phase.taps]
        assert sorted(found) == list(range(kernel))


def upscaler() -> ModelProto:
    """Transposed convolutions with and without a bias, into a concat, and of one channel; and a bilinear resize."""
    nodes = [
        node("Conv", "x w0", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("ConvTranspose", "r w1 b1", "u", strides=[2, 2]),
        node("Conv", "r w2", "narrow"),
        node("ConvTranspose", "narrow w3", "v", strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
        node("Concat", "u v", "both", axis=1),
        node("ConvTranspose", "both w4 b4", "z", strides=[2, 2], kernel_shape=[4, 4], pads=[1, 1, 1, 1]),
        node("Resize", "z none scales", "wide", mode="linear"),
        node("Sigmoid", "wide", "y"),
    ]
    weights = {
        "w0": floats(1, 24, 5, 3, 3), "w1": floats(2, 24, 17, 2, 2), "b1": floats(3, 17), "w2": floats(4, 7, 24, 1, 1),
        "w3": floats(5, 7, 16, 3, 3), "w4": floats(6, 33, 1, 4, 4), "b4": floats(7, 1),
        "none": np.zeros(0, np.float32), "scales": np.array([1, 1, 0.5, 1.5], np.float32),
    }  # fmt: skip
    return model("up", nodes, [("x", (1, 5, 9, 11))], [("y", (1, 1, 18, 66))], weights)


@VECTORS
def test_in_vectors_and_in_place(tmp_path: Path) -> None:
    options = Options(target="native", prefer="time", without=frozenset({"recast_convolutions"}))
    verdict = check(save(upscaler(), tmp_path), options, runs=1)
    steps = [step.function for step in verdict.package.plan.steps()]
    assert verdict.ok
    assert {step.kernel.isa for step in steps if not isinstance(step.call.kind, Fold)} == {"vec"}
    assert {type(step.call.kind) for step in steps} == {Conv, Resize, Gemm, Fold, Map}  # one channel: a folded product


def decoder(group: int) -> ModelProto:
    """Bytes, from a convolution through a transposed one into a convolution."""
    chance = np.random.default_rng(0)
    weights = {"s": np.array(0.05, np.float32), "t": np.array(0.002, np.float32)}
    weights |= {"z": np.array(-3, np.int8), "n": np.array(0, np.int8)}
    shapes = {"a": (16, 8, 1, 1), "b": (16, 16 // group, 4, 4), "c": (8, 16, 1, 1)}
    weights |= {name: chance.integers(-90, 90, shape).astype(np.int8) for name, shape in shapes.items()}
    more: dict[str, dict[str, object]] = {"b": {"strides": [2, 2], "group": group}}
    nodes = [node("QuantizeLinear", "x s z", "i"), node("DequantizeLinear", "i s z", "i_")]
    for before, w, after in (("i", "a", "p"), ("p", "b", "q"), ("q", "c", "r")):
        nodes += [
            node("DequantizeLinear", f"{w} t n", f"{w}_"),
            node("ConvTranspose" if w == "b" else "Conv", f"{before}_ {w}_", f"{after}f", **more.get(w, {})),
            node("QuantizeLinear", f"{after}f s z", after),
            node("DequantizeLinear", f"{after} s z", f"{after}_"),
        ]
    nodes.append(node("DequantizeLinear", "r s z", "y"))
    return model("decoder", nodes, [("x", (1, 8, 8, 8))], [("y", (1, 8, 18, 18))], weights)


@some(1, "target", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("group", [1, 16])
def test_phases_of_bytes_take_kernels_of_small_cores_in_place(target: str, group: int) -> None:
    plan = compile_graph(load_proto(decoder(group), Path()), Options(target=target, prefer="balanced"), "d").plan
    kinds = {type(step.function.call.kind) for step in plan.steps()}
    assert kinds.isdisjoint({ConvTranspose, Concat})


@VECTORS
@pytest.mark.parametrize("group", [4, 16])
def test_groups_of_bytes_in_the_order_of_onnx_go_over_copies(group: int, tmp_path: Path) -> None:
    whole = decoder(group)
    kept = [each for each in whole.graph.node if each.output[0] in ("p_", "b_", "qf", "q")]
    weights = [each for each in whole.graph.initializer if each.name in "stznb"]
    source, made = (
        helper.make_tensor_value_info(*each)
        for each in (("p", TensorProto.INT8, (1, 16, 8, 8)), ("q", TensorProto.INT8, (1, 16, 18, 18)))
    )
    graph = helper.make_graph(kept, "up", [source], [made], weights)
    path = save(helper.make_model(graph, opset_imports=whole.opset_import, ir_version=whole.ir_version), tmp_path)
    verdict = check(path, Options(target="native", prefer="time"), runs=1)
    assert verdict.ok
    assert {step.function.kernel.isa for step in verdict.package.plan.steps()} <= {"dot", "vec"}


def test_where_bytes_of_code_count_one_function_stays(tmp_path: Path) -> None:
    nodes = [node("ConvTranspose", "x w", "y", strides=[2, 2])]
    path = save(
        model("up", nodes, [("x", (1, 3, 5, 5))], [("y", (1, 4, 10, 10))], {"w": floats(1, 3, 4, 2, 2)}), tmp_path
    )
    for prefer in ("ram", "flash", "time"):
        plan = compile(path, Options(target="generic", prefer=prefer)).plan
        assert [step.function.call.kind.name for step in plan.steps()] == ["conv_transpose"]


def test_results_of_few_channels_become_products_rather_than_fill_vectors_with_nothing() -> None:
    def kinds(channels: int) -> set[str]:
        nodes = [node("ConvTranspose", "x w", "y", pads=[1] * 4)]
        shapes = [("x", (1, 33, 64, 64))], [("y", (1, channels, 64, 64))]
        made = model("net", nodes, *shapes, {"w": floats(0, 33, channels, 3, 3)})
        plan = compile_graph(load_proto(made), Options(target="x86-64-v3", prefer="time"), "net").plan
        return {step.op for step in plan.steps()}

    assert kinds(3) >= {"gemm", "reduce"} and "conv" not in kinds(3)
    assert "conv" in kinds(64)


def test_what_would_become_too_many_convolutions_stays_one_call() -> None:
    def calls(step: int, side: int) -> list[str]:
        size = step * (side - 1) + 3
        nodes = [node("ConvTranspose", "x w", "y", strides=[step, step])]
        shapes = [("x", (1, 8, side, side))], [("y", (1, 8, size, size))]
        made = model("net", nodes, *shapes, {"w": floats(0, 8, 8, 3, 3)})
        return [step.op for step in compile_graph(load_proto(made), Options(target="x86-64-v3"), "net").plan.steps()]

    assert "conv_transpose" not in calls(2, 16)
    with limited(phases=3):
        assert calls(2, 16) == ["conv_transpose"]
    assert calls(1 << 11, 2) == ["conv_transpose"]  # four million phases, of a file of 200 bytes


def test_a_result_too_large_for_any_memory_is_refused_before_its_phases_are_counted() -> None:
    nodes = [node("ConvTranspose", "x w", "y", strides=[1 << 20, 1 << 20])]
    made = model("net", nodes, [("x", (1, 1, 2, 2))], [("y", (1, 1, "h", "w"))], {"w": floats(0, 1, 1, 2, 2)})
    with pytest.raises(UnsupportedModel, match=r'(?s)"y/ConvTranspose"'):
        compile_graph(load_proto(made), Options(), "net")
