"""Convolutions by groups, channels-last and over pictures instead of volumes: the same results, in vectors."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from mccompile.base.constant import Constant
from mccompile.base.dtypes import DType, f16, f32, f64, i8, i32, u8
from mccompile.base.names import Names
from mccompile.driver import Options
from mccompile.expr.ir import apply, cast, operand
from mccompile.kinds.conv import Conv
from mccompile.measure.correctness import check
from mccompile.passes.program.recast_convolutions import recast
from mccompile.program.ir import CONSTANT, INPUT, Buffer, Call, Item, Program, View
from mccompile.program.verify import verify
from mccompile.targets import api as targets
from tests.passes.program.interpreter import outputs
from tests.small_models import floats, model, node, save

VECTORS = pytest.mark.skipif("vec" not in targets.load("native").isas, reason="this machine has no kernels for vectors")
BIASED = apply("max", apply("add", operand(0, f32), operand(1, f32)), operand(2, f32))


def ways(kind: Conv, x: tuple[int, ...], w: tuple[int, ...], dtype: DType = f32) -> int:
    """How many ways there are, each of which gives what the call gives."""
    chance = np.random.default_rng(sum(x) + sum(w))
    source = Buffer("x", dtype, x, INPUT)
    numbers = Constant.of(chance.integers(-9, 9, w).astype(i8.numpy if dtype is u8 else dtype.numpy))
    ins: list[View] = [source.whole(), Buffer("w", numbers.type.dtype, w, CONSTANT, numbers).whole()]
    result = Buffer(
        "y", kind.epilogue.dtype if kind.epilogue else kind.accumulator, tuple(map(int, kind.out_shape(x, w)))
    )
    inputs = [("x", source)]
    if kind.x_zero:
        ins.append(Buffer("zero", dtype, (), CONSTANT, Constant.of(np.array(3, dtype.numpy))).whole())
    if kind.epilogue:
        bias = Constant.of(floats(5, w[0], *(1 for _ in x[2:])))
        other = Buffer("other", f32, result.shape, INPUT)
        ins += [Buffer("b", f32, bias.type.static_shape, CONSTANT, bias).whole().broadcast_to(result.shape)]
        ins += [other.whole()]
        inputs += [("other", other)]
    values = {"x": chance.integers(0, 9, x).astype(dtype.numpy), "other": floats(6, *map(int, result.shape))}
    call = Call(kind, tuple(ins), (result.whole(),), ("n",))

    def computed(calls: list[Call]) -> np.ndarray:
        line: list[Item] = [*calls]
        program = Program("p", inputs, [("y", result.whole())], line)
        verify(program, "recast")
        return outputs(program, {name: values[name] for name, _ in inputs})["y"]

    want, found = computed([call]), list(recast(call, Names()))
    for calls in found:
        np.testing.assert_allclose(computed(calls), want, rtol=1e-5, atol=1e-4)
    return len(found)


@pytest.mark.parametrize("group", [1, 2, 3])
def test_volumes_as_pictures_and_groups_apart(group: int) -> None:
    for stride, dilation, pads in itertools.product((1, 2), (1, 2), ((0, 0), (1, 2), (0, 1))):
        around = (pads[0], 1, 0, pads[1], 0, 2)
        kind = Conv((stride, 1, 2), (dilation, 2, 1), around, group, f32)
        assert ways(kind, (2, 6, 5, 6, 5), (6, 6 // group, 2, 3, 2)) == (3 if group == 1 else 5)


@pytest.mark.parametrize("group", [1, 6])
def test_results_in_16_bits_are_rounded_in_a_step_of_their_own(group: int, tmp_path: Path) -> None:
    kind = Conv((1, 2), (2, 1), (1, 0, 1, 0), group, f32, cast(BIASED, f16))
    assert ways(kind, (2, 6, 9, 7), (6, 6 // group, 3, 2)) > ways(
        replace(kind, epilogue=BIASED), (2, 6, 9, 7), (6, 6 // group, 3, 2)
    )
    nodes = [node("Cast", "x", "half", to=TensorProto.FLOAT16), node("Conv", "half w", "made", group=group)]
    weights = {"w": floats(0, 6, 6 // group, 3, 3).astype(np.float16)}
    made = model(
        "net",
        [*nodes, node("Cast", "made", "y", to=TensorProto.FLOAT)],
        [("x", (2, 6, 20, 33))],
        [("y", (2, 6, 18, 31))],
        weights,
    )
    verdict = check(save(made, tmp_path), Options(target="x86-64-v3", prefer="time"), runs=1)
    assert verdict.ok and {step.function.kernel.isa for step in verdict.package.plan.steps()} == {"vec"}


@pytest.mark.parametrize("group", [1, 2, 6])
def test_doubles_as_products_of_windows(group: int) -> None:
    for stride, dilation, pads in itertools.product((1, 2), (1, 2), ((0, 0, 0, 0), (1, 0, 2, 1))):
        kind = Conv((stride, 1), (dilation, 2), pads, group, f64)
        assert ways(kind, (2, 6, 9, 7), (6, 6 // group, 3, 2), f64) == (3 if group == 2 else 2)
    assert ways(Conv((2,), (1,), (1, 1), group, f64), (2, 6, 17), (6, 6 // group, 4), f64) > 0


def test_zero_points_stand_around_volumes() -> None:
    kind = Conv((1, 1, 1), (1, 1, 1), (1, 1, 1, 1, 1, 1), 2, i32, x_zero=True)
    assert ways(kind, (1, 4, 3, 4, 3), (6, 2, 3, 3, 3), u8) == 4


def test_volumes_of_one_channel_are_pictures_of_several() -> None:
    kind = Conv((2, 1, 1), (1, 1, 1), (1, 1, 2, 1, 1, 2), 1, i32, x_zero=True)
    assert ways(kind, (2, 1, 4, 5, 6), (3, 1, 3, 3, 5), u8) == 2
    depthwise = Conv((1, 1, 1), (1, 1, 1), (1, 1, 1, 1, 1, 1), 4, i32, x_zero=True)
    assert ways(depthwise, (1, 4, 3, 4, 3), (4, 1, 3, 3, 3), u8) == 1


def test_epilogues_run_once_per_result() -> None:
    assert ways(Conv((1, 1), (1, 1), (1, 1, 1, 1), 2, f32, BIASED), (2, 4, 5, 4), (6, 2, 3, 3)) == 3
    assert ways(Conv((2, 1), (1, 1), (1, 1, 1, 1), 5, f32, BIASED), (1, 5, 5, 4), (5, 1, 3, 3)) == 1


@pytest.mark.parametrize("group", [1, 3])
def test_few_results_are_sums_of_products(group: int) -> None:
    for stride, dilation, pads in itertools.product((1, 2), (1, 3), ((0, 0, 0, 0), (1, 0, 2, 3))):
        kind = Conv((1, stride), (dilation, 2), pads, group, f32)
        assert ways(kind, (2, 6, 9, 8), (3, 6 // group, 3, 2)) == (2 if group == 1 else 3)
        assert ways(kind, (2, 6, 9, 8), (27, 6 // group, 3, 2)) == (1 if group == 1 else 2)
    assert ways(Conv((2,), (1,), (1, 1), group, f32), (2, 6, 17), (3, 6 // group, 4)) == (2 if group == 1 else 3)


def single(x: tuple[int, ...], w: tuple[int, ...], **attributes: object) -> ModelProto:
    weights = {"w": floats(1, *w), "b": floats(2, w[0])}
    pads = [size // 2 for size in w[2:]] * 2
    conv = node("Conv", "x w b", "y", pads=pads, **attributes)
    return model("m", [conv], [("x", x)], [("y", (1, w[0], *x[2:]))], weights)


@VECTORS
def test_single_depthwise_convolutions_are_copied_where_that_is_quicker(tmp_path: Path) -> None:
    proto = single((1, 40, 27, 29), (40, 1, 5, 5), group=40)
    verdict = check(save(proto, tmp_path), Options(target="native", prefer="time"), runs=1)
    assert verdict.ok
    kernels = [step.function.kernel.id for step in verdict.package.plan.steps()]
    assert "conv/f32_nhwc_depthwise__vec" in kernels and len(kernels) == 3


@VECTORS
@pytest.mark.parametrize(("inputs", "group"), [(16, 1), (16, 2), (1, 1)])
def test_quantized_volumes_and_groups_are_no_portable_c(tmp_path: Path, inputs: int, group: int) -> None:
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w t", "v"), node("Conv", "d v", "c", pads=[1] * 6, group=group),
        node("QuantizeLinear", "c s z", "r"), node("DequantizeLinear", "r s z", "y"),
    ]  # fmt: skip
    whole = np.random.default_rng(0).integers(-127, 128, (24, inputs // group, 3, 3, 3)).astype(np.int8)
    weights = {"s": np.float32(0.05), "z": np.uint8(128), "t": np.float32(0.002), "w": whole}
    proto = model("m", nodes, [("x", (1, inputs, 8, 10, 10))], [("y", (1, 24, 8, 10, 10))], weights)
    verdict = check(save(proto, tmp_path), Options(target="native", prefer="time"), runs=1)
    functions = [step.function for step in verdict.package.plan.steps()]
    kernels = {function.kernel for function in functions if isinstance(function.call.kind, Conv)}
    assert verdict.ok
    assert kernels and all(kernel.isa != "c" for kernel in kernels)


@pytest.mark.parametrize("group", [1, 2])
def test_windows_of_a_pixel_are_products(group: int) -> None:
    for strides in ((1, 1), (1, 2)):
        kind = Conv(strides, (1, 1), (0, 0, 0, 0), group, f32, BIASED)
        assert ways(kind, (2, 6, 5, 4), (4, 6 // group, 1, 1)) == (2 if group == 1 else 3)
    unjoined = Conv((2, 2), (1, 1), (0, 0, 0, 0), 1, f32)  # rows of pixels that no stride joins
    assert ways(unjoined, (2, 6, 5, 5), (4, 6, 1, 1)) == 1


@VECTORS
def test_planar_heads_with_few_results_are_products(tmp_path: Path) -> None:
    verdict = check(
        save(single((1, 33, 24, 30), (2, 33, 3, 3)), tmp_path), Options(target="native", prefer="time"), runs=1
    )
    assert verdict.ok
    assert "gemm/f32_rows_tile__vec" in [step.function.kernel.id for step in verdict.package.plan.steps()]
