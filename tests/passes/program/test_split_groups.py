"""Grouped convolutions of 8-bit integers get the kernels of dense ones: the same results, group by group or with
several in one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dtypes import f32, i8, i32
from mccompile.codegen.int8.patch_conv import rescaled_case
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.kernels.registry import Registry
from mccompile.kinds.conv import Conv
from mccompile.passes.api import Context
from mccompile.passes.program.split_groups import split_groups
from mccompile.program.ir import CONSTANT, INPUT, Buffer, Call, Program
from mccompile.program.verify import verify
from mccompile.targets import api as targets
from mccompile.targets.api import Prefer
from tests.passes.program.interpreter import outputs
from tests.signal_networks import Signal

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def grouped(groups: int, inputs: int, outs: int, size: int = 8) -> Program:
    """One over so many channels of each group, channels-last and rescaled."""
    kind = Conv((2, 1), (1, 1), (1, 1, 1, 0), groups, i32, x_zero=True)
    case = rescaled_case("c", kind, (1, groups * inputs, size, size), (groups * outs, inputs, 3, 3))
    chance = np.random.default_rng(groups)
    numbers = [Constant.of(chance.integers(-99, 99, t.static_shape).astype(t.dtype.numpy)) for t in case.ins[1:3]]
    numbers += [Constant.of(np.ascontiguousarray(value[0, :, :1, :1])) for value in case.values.values()]
    constants = [Buffer(f"c{n}", c.type.dtype, c.type.static_shape, CONSTANT, c) for n, c in enumerate(numbers)]
    out = case.outs[0].static_shape
    x = Buffer("x", i8, (1, size, size, groups * inputs), INPUT)
    y = Buffer("y", i8, tuple(out[axis] for axis in LAST))
    views = [b.whole() for b in constants[:2]] + [b.whole().broadcast_to(out) for b in constants[2:]]
    call = Call(case.kind, (x.whole().permuted(FIRST), *views), (y.whole().permuted(FIRST),))
    return Program("p", [("x", x)], [("y", y.whole())], [call])


def context(target: str, prefer: Prefer = Prefer.TIME) -> Context:
    return Context(replace(targets.load(target), prefer=prefer), Registry.load())


def convolutions(program: Program) -> list[Call]:
    return [call for call in program.calls() if isinstance(call.kind, Conv)]


# Of the second ones, windows of one group would have few channels; the last one is depthwise with two results each.
@pytest.mark.parametrize("sizes", [(2, 16, 16), (8, 2, 2), (5, 6, 4), (8, 2, 1), (16, 1, 2)])
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
def test_every_element_is_computed_as_before(target: str, sizes: tuple[int, int, int]) -> None:
    program = grouped(*sizes)
    inputs = {"x": np.random.default_rng(2).integers(-128, 128, program.inputs[0][1].shape).astype(np.int8)}
    before = outputs(program, inputs)["y"]
    split_groups(program, context(target))
    verify(program, "split_groups")
    np.testing.assert_array_equal(outputs(program, inputs)["y"], before)


@pytest.mark.parametrize(
    ("target", "sizes", "calls"),
    [("cortex-m4", (2, 16, 16), 2), ("cortex-m55", (8, 2, 2), 1), ("cortex-m55", (8, 2, 1), 1)],
)
def test_no_dense_convolution_is_portable(target: str, sizes: tuple[int, int, int], calls: int) -> None:
    program, asked = grouped(*sizes), context(target)
    split_groups(program, asked)
    found = convolutions(program)
    assert all(call.kind.group == 1 for call in found if isinstance(call.kind, Conv)) and len(found) >= calls
    assert all(asked.registry.choose(call, asked.target).candidates[0].kernel.isa != "c" for call in found)


def test_windows_of_many_channels_meet_no_zeros() -> None:
    program = grouped(2, 32, 32)
    macs = sum(int(str(call.macs)) for call in convolutions(program))
    split_groups(program, context("cortex-m4"))
    assert sum(int(str(call.macs)) for call in convolutions(program)) == macs


def test_floats_are_not_multiplied_with_zeros_of_other_groups() -> None:
    """What is not finite would spread."""
    kind = Conv((1, 1), (1, 1), (1, 1, 1, 1), 8, f32)
    w = Constant.of(np.ones((16, 2, 3, 3), np.float32))
    x, y = Buffer("x", f32, (1, 8, 8, 16), INPUT), Buffer("y", f32, (1, 8, 8, 16))
    views = (x.whole().permuted(FIRST), Buffer("w", f32, w.type.static_shape, CONSTANT, w).whole())
    program = Program("p", [("x", x)], [("y", y.whole())], [Call(kind, views, (y.whole().permuted(FIRST),))])
    for target in ("cortex-m4", "cortex-m55", "x86-64-v3"):
        split_groups(program, context(target))
        assert sum(int(str(call.macs)) for call in convolutions(program)) == 8 * 8 * 16 * 2 * 9


@pytest.mark.parametrize("target", ["cortex-m55", "aarch64"])
def test_groups_of_floats_stay_together_where_vectors_take_them(target: str) -> None:
    kind = Conv((1, 1), (1, 1), (1, 1, 1, 1), 2, f32)
    w = Constant.of(np.ones((32, 16, 3, 3), np.float32))
    x, y = Buffer("x", f32, (1, 8, 8, 32), INPUT), Buffer("y", f32, (1, 8, 8, 32))
    views = (x.whole().permuted(FIRST), Buffer("w", f32, w.type.static_shape, CONSTANT, w).whole())
    program = Program("p", [("x", x)], [("y", y.whole())], [Call(kind, views, (y.whole().permuted(FIRST),))])
    split_groups(program, context(target))
    assert [call.kind for call in convolutions(program)] == [kind]


def test_small_gains_cost_no_memory_where_that_comes_first() -> None:
    program = grouped(4, 8, 8)
    split_groups(program, context("cortex-m4", Prefer.RAM))
    assert len(convolutions(program)) == 1


@pytest.mark.parametrize("prefer", ["balanced", "ram"])
def test_groups_of_signals_are_split_where_memory_comes_first(prefer: str) -> None:
    net = Signal(24, 60, picture=False, quantized=True)
    net.stored()
    net.conv(24, 1)
    net.conv(16, 5, group=4)
    net.conv(8, 1)
    assert "conv/any_strided_direct__c" not in kernels(net, prefer)


def kernels(net: Signal, prefer: str) -> set[str]:
    plan = compile_graph(load_proto(net.model("n"), Path()), Options(target="cortex-m4", prefer=prefer), "n").plan
    return {function.kernel.id for function in plan.functions}


def test_a_little_memory_is_not_worth_portable_convolutions_of_their_parts() -> None:
    """Where their result lay channel by channel, the parts would be joined where they lie."""
    net = Signal(8, 144, picture=False, quantized=True)
    net.stored()
    net.conv(48, 1)
    net.conv(48, 9, group=8)
    net.conv(8, 1)
    assert "conv/any_strided_direct__c" not in kernels(net, "balanced")
