"""Tensors that convolutions read or write in the order of ONNX come to lie channels-last where that gives them kernels
for 8-bit integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.base.constant import Constant
from mccompile.base.dtypes import i8, i32
from mccompile.codegen.int8.patch_conv import rescaled_case
from mccompile.driver import Options, compile_graph
from mccompile.expr.ir import apply, literal, operand
from mccompile.frontend.load import load_proto
from mccompile.kernels.registry import Registry
from mccompile.kinds.conv import Conv
from mccompile.kinds.map import Map
from mccompile.passes.api import Context
from mccompile.passes.program.lay_channels_last import lay_channels_last
from mccompile.plan.ir import Plan
from mccompile.program.ir import CONSTANT, INPUT, TEMPORARY, Buffer, Call, Program
from mccompile.program.verify import verify
from mccompile.targets import api as targets
from mccompile.targets.api import Prefer
from tests.passes.program.interpreter import outputs
from tests.small_models import model, node

PICTURE, SIGNAL = (1, 3, 12, 10), (1, 6, 40)


def network(shape: tuple[int, ...], convolutions: int = 1, flat: bool = False, group: int = 1) -> ModelProto:
    """Floats, quantized as they come, and convolutions over them; `flat`: the results follow each other as one row."""
    spatial, chance = shape[2:], np.random.default_rng(1)
    weights = {"s": np.array(0.03, np.float32), "t": np.array(0.002, np.float32)}
    weights |= {"z": np.array(-2, np.int8), "n": np.array(0, np.int8)}
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d")]
    outs: list[tuple[str, tuple[int, ...]]] = []
    for number in range(convolutions):
        w, y = f"w{number}", f"y{number}"
        weights[w] = chance.integers(-90, 90, (8, shape[1] // group, *(3 for _ in spatial))).astype(np.int8)
        nodes += [
            node("DequantizeLinear", f"{w} t n", f"{w}d"),
            node("Conv", f"d {w}d", f"{y}c", pads=[1] * 2 * len(spatial), group=group),
            node("QuantizeLinear", f"{y}c s z", f"{y}q"),
            node("DequantizeLinear", f"{y}q s z", f"{y}f" if flat else y),
        ]
        if flat:
            nodes.append(node("Flatten", f"{y}f", y))
        outs.append((y, (1, 8 * int(np.prod(spatial))) if flat else (1, 8, *spatial)))
    return model("planar", nodes, [("x", shape)], outs, weights)


def plan(proto: ModelProto, target: str, prefer: Prefer = Prefer.BALANCED, **options: object) -> Plan:
    return compile_graph(load_proto(proto, Path()), Options(target=target, prefer=prefer, **options), "planar").plan  # type: ignore[arg-type]


def kernels(found: Plan) -> list[str]:
    return [step.function.kernel.id for step in found.steps()]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("shape", [PICTURE, SIGNAL])
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55", "x86-64-v3"])
def test_no_convolution_is_portable(target: str, shape: tuple[int, ...], flat: bool) -> None:
    assert "conv/any_strided_direct__c" not in kernels(plan(network(shape, flat=flat), target, Prefer.TIME))


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
def test_depthwise_convolutions_are_worth_their_copies(target: str) -> None:
    found = kernels(plan(network((1, 8, 12, 10), group=8), target, Prefer.TIME))
    assert "conv/any_strided_direct__c" not in found


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_groups_are_worth_their_copies_where_memory_counts(target: str) -> None:
    found = kernels(plan(network((1, 24, 12, 10), group=2), target, Prefer.BALANCED))
    assert "conv/any_strided_direct__c" not in found


def test_readers_share_a_copy() -> None:
    copies = [step for step in plan(network(PICTURE, 3), "cortex-m4").steps() if "copy" in step.function.name]
    assert len(copies) == 1 + 3  # one behind each convolution


def test_copies_take_no_memory_where_every_byte_counts() -> None:
    proto, off = network(PICTURE), frozenset({"lay_channels_last"})
    plans = [plan(proto, "cortex-m4", Prefer.RAM, enough=1, without=without) for without in (frozenset(), off)]
    assert plans[0].arena_bytes <= plans[1].arena_bytes


@pytest.mark.parametrize("role", [INPUT, TEMPORARY])
def test_every_element_is_computed_as_before(role: str) -> None:
    case = rescaled_case("c", Conv((1, 2), (1, 1), (1, 0, 1, 1), 1, i32, x_zero=True), (2, 3, 9, 10), (8, 3, 3, 3))
    chance = np.random.default_rng(2)
    numbers = [Constant.of(chance.integers(-99, 99, t.static_shape).astype(t.dtype.numpy)) for t in case.ins[1:3]]
    numbers += [Constant.of(np.ascontiguousarray(value[0, :, :1, :1])) for value in case.values.values()]
    given = Buffer("x", i8, case.ins[0].static_shape, INPUT)
    x = given if role == INPUT else Buffer("turned", i8, case.ins[0].static_shape)
    y = Buffer("y", i8, case.outs[0].static_shape)
    buffers = [Buffer(f"c{n}", c.type.dtype, c.type.static_shape, CONSTANT, c) for n, c in enumerate(numbers)]
    constants = [b.whole() for b in buffers[:2]] + [b.whole().broadcast_to(y.shape) for b in buffers[2:]]
    first = Call(Map(apply("max", operand(0, i8), literal(3, i8))), (given.whole(),), (x.whole(),))
    conv = Call(case.kind, (x.whole(), *constants), (y.whole(),))
    program = Program("p", [("x", given)], [("y", y.whole())], [conv] if role == INPUT else [first, conv])
    inputs = {"x": chance.integers(-128, 128, given.shape).astype(np.int8)}
    before = outputs(program, inputs)["y"]
    lay_channels_last(program, Context(targets.load("cortex-m4"), Registry.load()))
    verify(program, "lay_channels_last")
    assert conv.ins[0].strides[1] == conv.outs[0].strides[1] == 1
    np.testing.assert_array_equal(outputs(program, inputs)["y"], before)


@pytest.mark.parametrize(("space", "window"), [((14, 14), 13), ((6, 14, 14), 3)])
def test_channels_of_other_groups_are_not_multiplied(space: tuple[int, ...], window: int) -> None:
    shape = (1, 32, *space)
    weights = {"w": np.ones((32, 1, *(window for _ in space)), np.float32)}
    nodes = [node("Conv", "x w", "y", group=32, pads=[window // 2] * 2 * len(space))]
    proto = model("depthwise", nodes, [("x", shape)], [("y", shape)], weights)
    assert "conv/f32_nhwc_depthwise__vec" in kernels(plan(proto, "x86-64-v3", Prefer.TIME))


def test_both_operands_of_one_reader_may_move() -> None:
    """Concat reads what a convolution reads and what it writes: both come to lie channels-last, one after the other."""
    chance = np.random.default_rng(3)
    weights = {"s": np.array(0.5, np.float32), "t": np.array(0.02, np.float32), "n": np.array(0, np.int8)}
    weights |= {w: chance.integers(-90, 90, (4, 4, 1, 1)).astype(np.int8) for w in ("v", "w")}
    nodes = [node("QuantizeLinear", "x s n", "xq"), node("DequantizeLinear", "xq s n", "xd"), node("Relu", "xd", "a")]
    for before, w, after in (("a", "v", "b"), ("b", "w", "c")):
        nodes += [
            node("DequantizeLinear", f"{w} t n", f"{w}d"),
            node("Conv", f"{before} {w}d", f"{after}f"),
            node("QuantizeLinear", f"{after}f s n", f"{after}q"),
            node("DequantizeLinear", f"{after}q s n", after),
        ]
    nodes += [node("Concat", "b c", "bc", axis=1), node("QuantizeLinear", "bc s n", "q")]
    nodes.append(node("DequantizeLinear", "q s n", "y"))
    proto = model("both", nodes, [("x", (1, 4, 12, 10))], [("y", (1, 8, 12, 10))], weights)
    found = compile_graph(load_proto(proto, Path()), Options(target="cortex-m4", prefer=Prefer.TIME), "both")
    assert not found.left_out


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_sampled_picture_is_copied_where_vectors_take_its_channels(mode: str) -> None:
    nodes = [node("GridSample", "x g", "y", mode=mode, padding_mode="reflection")]
    proto = model("sampled", nodes, [("x", (1, 32, 16, 16)), ("g", (1, 16, 16, 2))], [("y", (1, 32, 16, 16))], {})
    assert "grid_sample/any_channels_lanes__vec" in kernels(plan(proto, "x86-64-v3", Prefer.TIME))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_sampled_picture_of_few_channels_stays_planar_and_vectors_take_its_places(mode: str) -> None:
    nodes = [node("GridSample", "x g", "y", mode=mode, padding_mode="reflection")]
    proto = model("sampled", nodes, [("x", (1, 3, 16, 16)), ("g", (1, 16, 16, 2))], [("y", (1, 3, 16, 16))], {})
    assert kernels(plan(proto, "x86-64-v3", Prefer.TIME)) == ["grid_sample/any_strided_places__vec"]
